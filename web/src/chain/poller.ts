// One poller for all tabs of an origin that show the same market: whoever holds a lock looks at the head and tells the
// others, who ask nothing. Hidden tabs neither look nor hold the lock. What a tab hears is looked at like any stranger's
// word, and one that hears nothing looks for itself.

import { HearthError } from "../core/errors";
import type { Block } from "./answers";

// What came since the head that was known before: `changed` and `reorged` as `Market.since` has them.
export interface News {
  readonly head: Block;
  readonly changed: boolean;
  readonly reorged: boolean;
}

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
  readonly look: (before: Block | undefined) => Promise<News>;
  readonly tell: (news: News) => void;
  readonly lost: (error: unknown) => void;
  // Undefined where a browser has no such thing, or the origin is shared with strangers.
  readonly tabs: Tabs | undefined;
}

const FORM = "hearth.heads/1";
// Looks that a tab hears nothing of before it looks for itself, and for how long one may take besides.
const MISSED = 3;
const SLOW = 2_000;

type Message =
  | { readonly kind: "ask" }
  | { readonly kind: "lost"; readonly error: HearthError }
  | { readonly kind: "news"; readonly news: News; readonly before: string | null };

export class Poller {
  readonly #channel: Channel | undefined;
  // The head that was heard of last, and what this tab has not been told yet, since it is hidden.
  #before: Block | undefined;
  #held: News | undefined;
  #awake = false;
  #leads = false;
  // Rises with all that makes a look that is under way one too many.
  #turn = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #rest: () => void = () => undefined;

  constructor(private readonly options: Options) {
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
      void this.#go();
      return;
    }
    const waiting = new AbortController();
    const rested = new Promise<void>((resolve) => waiting.signal.addEventListener("abort", () => resolve()));
    this.#rest = () => waiting.abort();
    const lead = (): Promise<void> => {
      if (waiting.signal.aborted) return rested;
      this.#leads = true;
      void this.#go();
      return rested;
    };
    this.#listen();
    this.#post({ kind: "ask" });
    tabs.lock(waiting.signal, lead).catch(() => {
      // A browser that lends no locks after all.
      if (!waiting.signal.aborted) void this.#go();
    });
  }

  // The tab is hidden: another one may look.
  rest(): void {
    this.#awake = false;
    this.#leads = false;
    this.#quiet();
    this.#rest();
  }

  close(): void {
    this.rest();
    this.#channel?.close();
  }

  // Look now and again.
  async #go(): Promise<void> {
    const turn = this.#quiet();
    const before = this.#before;
    try {
      const news = await this.options.look(before);
      if (turn !== this.#turn) return;
      if (this.#leads) this.#post({ kind: "news", news, before: before?.hash ?? null });
      this.#take(news);
    } catch (error) {
      if (turn !== this.#turn) return;
      if (this.#leads) this.#post({ kind: "lost", error: inWords(error) });
      this.options.lost(error);
    }
    this.#timer = setTimeout(() => void this.#go(), this.options.wait);
  }

  // Wait to hear from the tab that looks.
  #listen(): void {
    this.#quiet();
    this.#timer = setTimeout(() => void this.#go(), MISSED * this.options.wait + SLOW);
  }

  // End all looks, those under way too.
  #quiet(): number {
    clearTimeout(this.#timer);
    this.#turn += 1;
    return this.#turn;
  }

  #take(news: News): void {
    this.#before = news.head;
    if (this.#awake) {
      this.options.tell(news);
      return;
    }
    const { changed, reorged } = this.#held ?? { changed: false, reorged: false };
    this.#held = { head: news.head, changed: changed || news.changed, reorged: reorged || news.reorged };
  }

  #hear(raw: unknown): void {
    const message = messageOf(raw);
    if (message === undefined) return;
    if (message.kind === "ask") {
      const head = this.#before;
      if (this.#leads && head !== undefined) this.#post({ kind: "news", news: { head, changed: true, reorged: false }, before: null });
      return;
    }
    if (this.#leads) return;
    if (this.#awake) this.#listen();
    if (message.kind === "news") this.#take(this.#since(message.news, message.before));
    else if (this.#awake) this.options.lost(message.error);
  }

  // What another tab's news are to this one. Where it did not hear of the head that they follow on, it cannot know what
  // it missed.
  #since({ head, changed, reorged }: News, follows: string | null): News {
    const before = this.#before;
    if (before === undefined) return { head, changed: true, reorged: false };
    if (before.hash === head.hash) return { head, changed: false, reorged: false };
    return before.hash === follows ? { head, changed, reorged } : { head, changed: true, reorged: true };
  }

  #post(message: Message): void {
    const { kind } = message;
    if (kind === "ask") this.#channel?.post({ form: FORM, kind });
    else if (kind === "news") this.#channel?.post({ form: FORM, kind, ...message.news, before: message.before });
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
    case "ask":
      return { kind: "ask" };
    case "lost": {
      const { code, text, hint } = said;
      if (!isText(code, 40) || !/^[A-Z_]+$/.test(code) || !isText(text, 2_000) || !isText(hint, 500)) return undefined;
      return { kind: "lost", error: new HearthError(code, text, hint) };
    }
    case "news": {
      const { changed, reorged, before } = said;
      const head = headOf(said["head"]);
      if (head === undefined || typeof changed !== "boolean" || typeof reorged !== "boolean") return undefined;
      return before === null || isHash(before) ? { kind: "news", news: { head, changed, reorged }, before } : undefined;
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
