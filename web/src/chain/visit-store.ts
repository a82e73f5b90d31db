// What is kept from visit to visit, on a store that may be missing, slow, full, or hold anything: bounded in size, and
// never in anybody's way. Whatever goes wrong means that nothing is kept, and is told to nobody.

import { type Hex, toHex } from "../core/bytes";
import type { Mark } from "./logs";

// One thing that is kept: its head says what it is, its text holds it. Texts never change: a new one has a new id.
export interface Head {
  readonly id: string;
  readonly version: number;
  // Whose it is, what it is, and for which blocks; `mark` is a block of the chain that it was read from.
  readonly market: Hex;
  readonly kind: string;
  readonly from: number;
  readonly to: number;
  readonly mark: Mark;
  // Characters of the text.
  readonly size: number;
  // When it was read last, in milliseconds since the epoch.
  readonly used: number;
}

// A store of heads and texts; any of its promises may fail. It looks at nothing that it holds.
export interface Store {
  heads(): Promise<readonly unknown[]>;
  text(id: string): Promise<unknown>;
  // All of it or nothing: put these, drop those. A head without a text goes to one that is there, or nowhere.
  write(puts: readonly { readonly head: Head; readonly text?: string }[], drops: readonly string[]): Promise<void>;
  // Leave nothing behind.
  erase(): Promise<void>;
}

export interface Bounds {
  // Characters that all texts have together.
  readonly most: number;
  // Milliseconds that a reader waits for the store before it does without.
  readonly patience: number;
  // Milliseconds since the epoch.
  readonly now: () => number;
}

export const VERSION = 1;
const MAX_HEADS = 10_000;
// No reader waits for what is written: it may take so many times as long.
const WRITING = 10;
export const BOUNDS: Bounds = { most: 64 * 2 ** 20, patience: 1_500, now: () => Date.now() };

export type Draft = Omit<Head, "id" | "version" | "size" | "used">;

export class VisitStore {
  // What was used since then is not dropped for something else: one long reading would drop its own beginning.
  readonly since: number;
  #heads: Map<string, Head> | undefined;
  // Resolves once the store is open, or was waited for long enough.
  #opened: Promise<void> | undefined;
  #writable = true;
  // It did not answer in time: nobody waits for it again.
  #late = false;

  constructor(
    private readonly store: Store,
    private readonly bounds: Bounds = BOUNDS,
  ) {
    this.since = bounds.now();
  }

  // Open the store, before anybody needs it: it may take a while.
  open(): Promise<void> {
    this.#opened ??= within(this.#open(), this.bounds.patience).catch(() => undefined) as Promise<void>;
    return this.#opened;
  }

  // The heads of one market; undefined where there is no store (yet).
  async heads(market: Hex): Promise<Head[] | undefined> {
    await this.open();
    return this.#heads === undefined ? undefined : [...this.#heads.values()].filter((head) => head.market === market);
  }

  // A text; undefined where it is not what its head says, and then both are dropped, or where it does not come in time.
  async text(head: Head): Promise<string | undefined> {
    if (this.#late) return undefined;
    try {
      const found = await this.#soon(this.store.text(head.id), this.bounds.patience);
      if (typeof found === "string" && found.length === head.size) return found;
      if (!this.#late) void this.drop([head]);
    } catch {
      // It is gone: whatever it held is read anew.
    }
    return undefined;
  }

  // Keep something in the place of what it replaces; undefined where it is not kept.
  async put(draft: Draft, text: string, replaced: readonly Head[] = []): Promise<Head | undefined> {
    if (this.#heads === undefined || !this.#writable || this.#late) return undefined;
    const head: Head = { ...draft, id: newId(), version: VERSION, size: text.length, used: this.bounds.now() };
    const gone = replaced.map((one) => one.id);
    const evicted = this.#room(head.size, new Set(gone));
    if (evicted === undefined) return undefined;
    return (await this.#write([{ head, text }], [...gone, ...evicted])) ? head : undefined;
  }

  // Write heads anew whose texts stay.
  async update(heads: readonly Head[]): Promise<void> {
    const known = heads.filter((head) => this.#heads?.has(head.id) === true);
    if (known.length > 0 && this.#writable && !this.#late) await this.#write(known.map((head) => ({ head })), []);
  }

  // Say that something is of use, so that others are dropped before it.
  async touch(heads: readonly Head[]): Promise<void> {
    const now = this.bounds.now();
    const current = heads.flatMap((head) => this.#heads?.get(head.id) ?? []);
    await this.update(current.filter((head) => head.used < this.since).map((head) => ({ ...head, used: now })));
  }

  async drop(heads: readonly Head[]): Promise<void> {
    const ids = heads.map((head) => head.id);
    if (ids.length > 0 && !this.#late) await this.#write([], ids);
  }

  // ---- inside ----

  async #open(): Promise<void> {
    const raw = await this.store.heads();
    const heads = raw.map(headOf);
    // A clock that was set back makes nothing undroppable.
    const past = (head: Head): Head => ({ ...head, used: Math.min(head.used, this.since - 1) });
    this.#heads = new Map(heads.flatMap((head) => (head === undefined ? [] : [[head.id, past(head)]])));
    const bad = raw.flatMap((one, at) => (heads[at] === undefined ? idOf(one) : []));
    const evicted = this.#room(0, new Set(bad)) ?? [];
    if (bad.length + evicted.length > 0) await this.#write([], [...bad, ...evicted]);
  }

  // What is dropped, the one that was used longest ago first, so that `size` more fits; undefined where it cannot fit.
  #room(size: number, gone: ReadonlySet<string>): string[] | undefined {
    const held = [...(this.#heads ?? new Map<string, Head>()).values()].filter((head) => !gone.has(head.id));
    let [total, count] = [size + held.reduce((sum, head) => sum + head.size, 0), held.length];
    const fits = (): boolean => total <= this.bounds.most && count < MAX_HEADS;
    const dropped: string[] = [];
    for (const head of held.sort((a, b) => a.used - b.used)) {
      if (fits() || head.used >= this.since) break;
      dropped.push(head.id);
      total -= head.size;
      count -= 1;
    }
    return fits() ? dropped : undefined;
  }

  async #soon<T>(answer: Promise<T>, patience: number): Promise<T | undefined> {
    const found = await within(answer, patience);
    if (found !== LATE) return found;
    this.#late = true;
    return undefined;
  }

  async #write(puts: readonly { readonly head: Head; readonly text?: string }[], drops: readonly string[]): Promise<boolean> {
    for (const id of drops) this.#heads?.delete(id);
    try {
      await this.#soon(this.store.write(puts, drops), WRITING * this.bounds.patience);
    } catch {
      // A full disk, a browser that keeps nothing: it will not be otherwise a moment later.
      this.#writable = false;
    }
    if (!this.#writable || this.#late) return false;
    for (const { head } of puts) this.#heads?.set(head.id, head);
    return true;
  }
}

const isHash = (value: unknown): value is Hex => typeof value === "string" && /^0x[0-9a-f]{64}$/.test(value);
const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;
const isText = (value: unknown): value is string => typeof value === "string" && value.length <= 4_096;

// A head as it was written; undefined for anything else, of another version too.
function headOf(value: unknown): Head | undefined {
  const { id, version, market, kind, from, to, size, used, mark } = fieldsOf(value);
  const { number, hash } = fieldsOf(mark);
  if (version !== VERSION || !isText(id) || !isText(kind) || !isHash(market) || !isHash(hash)) return undefined;
  if (!isCount(from) || !isCount(to) || !isCount(number) || !isCount(size) || !isCount(used)) return undefined;
  return from <= to && to <= number ? { id, version, market, kind, from, to, mark: { number, hash }, size, used } : undefined;
}

const idOf = (value: unknown): string[] => [fieldsOf(value)["id"]].filter((id) => typeof id === "string");

const fieldsOf = (value: unknown): Readonly<Record<string, unknown>> => (typeof value === "object" && value !== null ? { ...value } : {});

const newId = (): string => toHex(crypto.getRandomValues(new Uint8Array(16))).slice(2);

const LATE = Symbol("late");

// What a promise comes to, or LATE after so many milliseconds.
async function within<T>(promise: Promise<T>, patience: number): Promise<T | typeof LATE> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<typeof LATE>((resolve) => {
    timer = setTimeout(() => resolve(LATE), patience);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
