// The seconds of blocks that earlier visits heard, by the blocks' hashes: they hold on whatever chain.

import type { Hex } from "../core/bytes";
import type { Head, VisitStore } from "./visit-store";

const KIND = "times";
// Characters of a text up to which more is added to it.
const MOST = 2 ** 18;
const HASH = /^0x[0-9a-f]{64}$/;

export class KeptTimes {
  readonly #times = new Map<Hex, number>();
  readonly #heads: Head[] = [];
  readonly #fresh = new Map<Hex, number>();
  #loading: Promise<void> | undefined;

  constructor(
    private readonly shelf: VisitStore,
    private readonly market: Hex,
    private readonly genesis: Hex,
  ) {}

  async of(blocks: readonly Hex[]): Promise<ReadonlyMap<Hex, number>> {
    this.#loading ??= this.#load();
    await this.#loading;
    return new Map(blocks.flatMap((block) => (this.#times.has(block) ? [[block, this.#times.get(block) as number]] : [])));
  }

  add(times: ReadonlyMap<Hex, number>): void {
    for (const [block, time] of times) if (!this.#times.has(block)) this.#fresh.set(block, time);
  }

  clear(): void {
    this.#times.clear();
    this.#fresh.clear();
    this.#heads.length = 0;
    this.#loading = Promise.resolve();
  }

  // Keep what was added.
  async keep(): Promise<void> {
    if (this.#fresh.size === 0) return;
    const fresh = [...this.#fresh];
    this.#fresh.clear();
    for (const [block, time] of fresh) this.#times.set(block, time);
    const [open] = this.#heads.filter((head) => head.size < MOST);
    const before = open === undefined ? undefined : await this.#read(open);
    const entries = before === undefined ? fresh : [...before, ...fresh];
    const draft = { market: this.market, kind: KIND, from: 0, to: 0, mark: { number: 0, hash: this.genesis } };
    const kept = await this.shelf.put(draft, JSON.stringify(entries), before === undefined || open === undefined ? [] : [open]);
    if (open !== undefined) this.#heads.splice(this.#heads.indexOf(open), 1);
    if (kept !== undefined) this.#heads.push(kept);
  }

  async #load(): Promise<void> {
    const heads = ((await this.shelf.heads(this.market)) ?? []).filter((head) => head.kind === KIND);
    for (const head of heads) {
      const entries = await this.#read(head);
      if (entries === undefined) continue;
      for (const [block, time] of entries) this.#times.set(block, time);
      this.#heads.push(head);
    }
    void this.shelf.touch(this.#heads);
  }

  async #read(head: Head): Promise<[Hex, number][] | undefined> {
    const text = await this.shelf.text(head);
    if (text === undefined) return undefined;
    const entries = parsed(text);
    if (entries === undefined) await this.shelf.drop([head]);
    return entries;
  }
}

function parsed(text: string): [Hex, number][] | undefined {
  try {
    const found: unknown = JSON.parse(text);
    return Array.isArray(found) && found.every(isEntry) ? found : undefined;
  } catch {
    return undefined;
  }
}

function isEntry(value: unknown): value is [Hex, number] {
  if (!Array.isArray(value) || value.length !== 2) return false;
  return typeof value[0] === "string" && HASH.test(value[0]) && Number.isSafeInteger(value[1]) && value[1] >= 0;
}
