// One poller for all tabs of an origin that show the same market: whoever holds a lock looks at the head and tells the
// others, who ask nothing. Hidden tabs neither look nor hold the lock. What a tab hears is looked at like any stranger's
// word, and one that hears nothing looks for itself.

import { HearthError } from "../core/errors";
import type { Block } from "./answers";
import type { Since } from "./market";

export interface Channel {
  post(message: unknown): void;
  close(): void;
}

// How tabs find each other; in a browser Web Locks and a BroadcastChannel (tabs.ts).
export interface Tabs {
  // Run `hold` while nobody else runs one, until its promise is settled. Rejects once `signal` says to wait no longer.
  lock(signal: AbortSignal, hold: () => Promise<void>): Promise<void>;
  channel(hear: (message: unknown) => void): Channel;
}

export interface Options {
  // Milliseconds from one look to the next.
  readonly wait: number;
  // Look what came since a block. After a failure nobody knows how far back it is: what was logged since may be much, and
  // `withLogs` is false.
  readonly look: (before: Block, withLogs: boolean) => Promise<Since>;
  readonly tell: (news: Since) => void;
  readonly lost: (error: unknown) => void;
  // Undefined where a browser has no such thing, or the origin is shared with strangers.
  readonly tabs: Tabs | undefined;
}

const FORM = "hearth.heads/1";
// Looks that a tab hears nothing of before it looks for itself, and for how long one may take besides.
const MISSED = 3;
const SLOW = 2_000;

type Message =
  | { readonly kind: "lost"; readonly error: HearthError }
  // `before` is the hash of the head that the news follow on.
  | { readonly kind: "news"; readonly news: Since; readonly before: string };

// Follows the chain from a head on; it sleeps until it is woken.
export class Poller {
  readonly #channel: Channel | undefined;
  readonly #patience: number;
  // The head that was heard of last, and what this tab has not been told yet, since it is hidden.
  #before: Block;
  #held: Since | undefined;
  #awake = false;
  #leads = false;
  // The head was looked at a moment ago.
  #fresh = true;
  // The last look failed.
  #failed = false;
  // Something was missed: what came since `#before` only a look can tell.
  #behind = false;
  // Rises with all that makes a look that is under way one too many.
  #turn = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #rest: () => void = () => undefined;

  constructor(
    head: Block,
    private readonly options: Options,
  ) {
    this.#before = head;
    this.#patience = MISSED * options.wait + SLOW;
    this.#channel = options.tabs?.channel((message) => this.#hear(message));
  }

  // The tab is seen: look, or hear from the tab that does.
  wake(): void {
    if (this.#awake) return;
    this.#awake = true;
    if (this.#held !== undefined) this.options.tell(this.#held);
    this.#held = undefined;
    const { tabs } = this.options;
    if (tabs === undefined) {
      this.#begin();
      return;
    }
    const waiting = new AbortController();
    const rested = new Promise<void>((resolve) => waiting.signal.addEventListener("abort", () => resolve()));
    this.#rest = () => waiting.abort();
    const lead = (): Promise<void> => {
      if (!waiting.signal.aborted) {
        this.#leads = true;
        this.#begin();
      }
      return rested;
    };
    if (this.#behind) void this.#look(this.#patience);
    else this.#wait(this.#patience);
    tabs.lock(waiting.signal, lead).catch(() => {
      // A browser that lends no locks after all.
      if (!waiting.signal.aborted) this.#begin();
    });
  }

  // The tab is hidden: another one may look.
  rest(): void {
    this.#awake = this.#leads = this.#fresh = false;
    this.#quiet();
    this.#rest();
  }

  close(): void {
    this.rest();
    this.#channel?.close();
  }

  // Look now and again.
  #begin(): void {
    if (this.#fresh) this.#wait(this.options.wait);
    else void this.#look(this.options.wait);
  }

  // Look, and again after so many milliseconds, if nothing is heard till then.
  async #look(again: number): Promise<void> {
    const turn = this.#quiet();
    const before = this.#before;
    this.#fresh = false;
    try {
      const news = await this.options.look(before, !this.#failed);
      if (turn !== this.#turn) return;
      if (this.#leads) this.#post({ kind: "news", news, before: before.hash });
      this.#take(news);
    } catch (error) {
      if (turn !== this.#turn) return;
      this.#failed = true;
      if (this.#leads) this.#post({ kind: "lost", error: inWords(error) });
      this.options.lost(error);
    }
    if (turn === this.#turn) this.#wait(again);
  }

  // Look after so many milliseconds.
  #wait(milliseconds: number): void {
    this.#quiet();
    this.#timer = setTimeout(() => void this.#look(this.options.wait), milliseconds);
  }

  // End all looks, those under way too.
  #quiet(): number {
    clearTimeout(this.#timer);
    this.#turn += 1;
    return this.#turn;
  }

  #take(news: Since): void {
    this.#before = news.head;
    this.#failed = this.#behind = this.#fresh = false;
    if (this.#awake) {
      this.options.tell(news);
      return;
    }
    const { changed, reorged } = this.#held ?? { changed: false, reorged: false };
    this.#held = { head: news.head, changed: changed || news.changed, reorged: reorged || news.reorged };
  }

  #hear(raw: unknown): void {
    const message = messageOf(raw);
    if (message === undefined || this.#leads) return;
    if (message.kind === "lost") {
      this.#failed = true;
      this.#fresh = false;
      if (!this.#awake) return;
      this.#wait(this.#patience);
      this.options.lost(message.error);
      return;
    }
    const { news, before } = message;
    const same = news.head.hash === this.#before.hash;
    this.#behind = !same && before !== this.#before.hash;
    if (!this.#behind) {
      if (this.#awake) this.#wait(this.#patience);
      this.#take(same ? { head: news.head, changed: false, reorged: false } : news);
    } else if (this.#awake) void this.#look(this.#patience);
  }

  #post(message: Message): void {
    const { kind } = message;
    if (kind === "news") this.#channel?.post({ form: FORM, kind, ...message.news, before: message.before });
    else {
      const { code, message: text, hint } = message.error;
      this.#channel?.post({ form: FORM, kind, code, text, hint });
    }
  }
}

const isHash = (value: unknown): value is `0x${string}` => typeof value === "string" && /^0x[0-9a-f]{64}$/.test(value);
const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;
const isText = (value: unknown, most: number): value is string => typeof value === "string" && value.length <= most;

// A message as another tab of this page posts it; undefined for anything else.
function messageOf(raw: unknown): Message | undefined {
  if (typeof raw !== "object" || raw === null) return undefined;
  const said: Readonly<Record<string, unknown>> = { ...raw };
  if (said["form"] !== FORM) return undefined;
  switch (said["kind"]) {
    case "lost": {
      const { code, text, hint } = said;
      if (!isText(code, 40) || !/^[A-Z_]+$/.test(code) || !isText(text, 2_000) || !isText(hint, 500)) return undefined;
      return { kind: "lost", error: new HearthError(code, text, hint) };
    }
    case "news": {
      const { changed, reorged, before } = said;
      const head = headOf(said["head"]);
      if (head === undefined || typeof changed !== "boolean" || typeof reorged !== "boolean") return undefined;
      return isHash(before) ? { kind: "news", news: { head, changed, reorged }, before } : undefined;
    }
    default:
      return undefined;
  }
}

function headOf(raw: unknown): Block | undefined {
  if (typeof raw !== "object" || raw === null) return undefined;
  const { number, hash, parent, time }: Readonly<Record<string, unknown>> = { ...raw };
  return isCount(number) && isHash(hash) && isHash(parent) && isCount(time) ? { number, hash, parent, time } : undefined;
}

function inWords(error: unknown): HearthError {
  const { code, message, hint } = error instanceof HearthError ? error : { code: "FAULT", message: String(error), hint: "" };
  return new HearthError(code, message.slice(0, 2_000), hint.slice(0, 500));
}
