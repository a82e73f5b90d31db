// The past of one market as earlier visits heard it: logs by filter and range of blocks, so that a visit costs the blocks
// since the last one.
//
// Only blocks 64 deep are kept. Each range bears a mark: a block at or after its end that the chain held when its logs
// were read. Before a range is shown, the chain must still hold its mark, whose hash stands for every block before it. If
// it does not, the range ends at the last of its own logs whose block the chain still holds. A text from the store is
// looked at like an answer of a provider: what is malformed or was not asked for is dropped and read anew.

import { keccak256 } from "viem/utils";

import { type Hex, hexNumber, utf8 } from "../core/bytes";
import { type Log, logsOf } from "../core/logs";
import type { Network } from "../core/network";
import { CONTRACTS } from "../generated/contracts";
import type { Block } from "./answers";
import { blockAsk, blockOf, checked, type Filter, fits, type Mark, type Piece, pieces, type Range, Span } from "./logs";
import type { LogHistory } from "./log-history";
import type { Rpc } from "./rpc";
import type { Head, VisitStore } from "./visit-store";
import { KeptTimes } from "./times";

// A block so deep is taken for final. Nothing hangs on it but work: marks are asked for all the same.
export const DEPTH = 64;
// A newer mark is taken once the chain has grown by so many blocks.
const STALE = 512;
// Characters up to which neighbouring ranges are joined to one.
export const CHUNK = 2 ** 18;
// A long reading is kept as it goes on: a tab may be closed at any time.
const FLUSH = 1_000;
// After a failed check providers alone are asked, for so many milliseconds.
const REST = 30_000;
const AT_ONCE = 100;
const PROBES = 16;

// Logs of a range that are kept; `good` is the era in which the chain was found to hold its mark.
interface Chunk {
  head: Head;
  readonly filter: Filter;
  good: number;
}

// From one reorg to the next: what was checked in it holds in it. Blocks up to `depth` are kept in it; the hash of this one
// is learnt with the first logs, where nothing was to be checked.
interface Era {
  readonly number: number;
  readonly depth: number;
  hash: Hex | undefined;
}

// The next part of a range: what one good range covers, or what none does.
interface Step {
  readonly from: number;
  readonly to: number;
  readonly chunk: Chunk | undefined;
}

// Neighbouring pieces of one reading that are not kept yet.
type Run = Piece;

export class KeptPast implements LogHistory {
  readonly #market: Hex;
  readonly #times: KeptTimes;
  #head: Block | undefined;
  #eras = 0;
  #era: Era | undefined;
  #checking: Promise<Era | undefined> | undefined;
  #restsUntil = 0;
  #chunks: Chunk[] | undefined;
  #served = false;
  #queue: Promise<void> = Promise.resolve();

  constructor(
    private readonly network: Network,
    private readonly rpc: Rpc,
    private readonly shelf: VisitStore,
    private readonly now: () => number = () => performance.now(),
  ) {
    this.#market = marketKey(network);
    this.#times = new KeptTimes(shelf, this.#market, network.genesisHash);
  }

  moved(head: Block, reorged: boolean): void {
    this.#head = head;
    if (reorged) this.#end();
    // Whoever reads logs next need not wait for it.
    if (this.#era === undefined) void this.#check();
  }

  async *logs(filter: Filter, range: Range, span: Span = new Span()): AsyncGenerator<Piece> {
    const used = new Set<Chunk>();
    let keeper: Keeper | undefined;
    let { from, to } = range;
    try {
      while (from <= to) {
        // Looked at anew for each piece: a store may open late, and a reorg may come in the middle.
        const era = await this.#check();
        if (keeper?.era !== era) {
          keeper?.end();
          keeper = era === undefined ? undefined : new Keeper(era, this.now, (run) => this.#later(() => this.#keep(era, filter, run)));
        }
        const step = this.#next(filter, { from, to, backwards: range.backwards });
        const piece = step.chunk === undefined ? await this.#told(filter, { ...range, ...step }, span, keeper) : await this.#shown(filter, step);
        // What was kept is gone, or doubted by now: the rest of the range is looked at anew.
        if (piece === undefined) continue;
        if (step.chunk !== undefined) used.add(step.chunk);
        yield piece;
        if (range.backwards) to = piece.from - 1;
        else from = piece.to + 1;
      }
    } finally {
      keeper?.end();
      if (used.size > 0) this.#later(() => this.shelf.touch([...used].map((chunk) => chunk.head)));
    }
  }

  async times(blocks: readonly Hex[]): Promise<ReadonlyMap<Hex, number>> {
    const found = await this.#times.of(blocks);
    if (found.size > 0) this.#served = true;
    return found;
  }

  keepTimes(times: ReadonlyMap<Hex, number>): void {
    this.#times.add(times);
    this.#later(() => this.#times.keep());
  }

  async take(filter: Filter, found: readonly Piece[], mark: Mark): Promise<number> {
    const era = await this.#check();
    const number = this.#eras;
    const [held] = await this.#blocks([mark.number]);
    if (era === undefined || mark.number > era.depth || held?.hash !== mark.hash) return 0;
    const kind = kindOf(filter);
    const isThere = ({ from, to }: Piece): boolean =>
      this.#chunks?.some(({ head, good }) => good === number && head.kind === kind && head.from <= to && from <= head.to) === true;
    let blocks = 0;
    for (const run of runsOf(found.filter((piece) => !isThere(piece)), filter)) {
      this.#later(async () => {
        if (isThere(run)) return;
        const { from, to } = run;
        await this.#put(number, filter, { market: this.#market, kind, from, to, mark }, run.logs, []);
        if (this.#chunks?.some(({ head }) => head.kind === kind && head.from === from && head.to === to) === true) blocks += to - from + 1;
      });
    }
    await this.settled();
    return blocks;
  }

  async forget(): Promise<boolean> {
    const served = this.#served;
    this.#served = false;
    this.#end();
    this.#chunks = [];
    this.#times.clear();
    this.#later(async () => this.shelf.drop((await this.shelf.heads(this.#market)) ?? []));
    return served;
  }

  // Resolves once everything that was to be kept so far is, or is given up.
  settled(): Promise<void> {
    return this.#queue;
  }

  // ---- which of it the chain holds ----

  #end(): void {
    this.#eras += 1;
    this.#era = undefined;
  }

  // The era in which ranges may be shown and kept; undefined for none: then providers are asked alone.
  async #check(): Promise<Era | undefined> {
    const head = this.#head;
    if (head === undefined || head.number - DEPTH < this.network.deployBlock) return undefined;
    const fresh = this.#era !== undefined && head.number - DEPTH - this.#era.depth < STALE;
    if (fresh || this.now() < this.#restsUntil) return this.#era;
    this.#checking ??= this.#begin(head).finally(() => {
      this.#checking = undefined;
    });
    return (await this.#checking) ?? this.#era;
  }

  async #begin(head: Block): Promise<Era | undefined> {
    const number = this.#eras;
    const chunks = await this.#load();
    if (chunks === undefined) return undefined;
    // Marks beyond the head are of a longer chain, or this provider lags: nothing can be said of them yet.
    const doubted = chunks.filter((chunk) => chunk.good !== number && chunk.head.mark.number <= head.number);
    const depth = head.number - DEPTH;
    if (doubted.length === 0) {
      this.#era = { number, depth, hash: undefined };
      return this.#era;
    }
    const marks = groupsOf(doubted);
    const [mark, ...found] = await this.#blocks([depth, ...marks.map((group) => markOf(group).number)]);
    if (mark === undefined || number !== this.#eras) {
      if (mark === undefined) this.#restsUntil = this.now() + REST;
      return undefined;
    }
    for (const [place, group] of marks.entries()) {
      const there = found[place];
      if (there === undefined) continue;
      if (there.hash === markOf(group).hash) for (const chunk of group) chunk.good = number;
      else await this.#cut(group, number);
    }
    if (number !== this.#eras) return undefined;
    this.#era = { number, depth, hash: mark.hash };
    this.#remark(number, { number: depth, hash: mark.hash });
    return this.#era;
  }

  // One mark for all that is good: the next visit asks for one block.
  #remark(era: number, mark: Mark): void {
    const old = (this.#chunks ?? []).filter((chunk) => chunk.good === era && chunk.head.mark.number < mark.number);
    for (const chunk of old) chunk.head = { ...chunk.head, mark };
    this.#later(() => this.shelf.update(old.map((chunk) => chunk.head)));
  }

  async #load(): Promise<Chunk[] | undefined> {
    if (this.#chunks !== undefined) return this.#chunks;
    const heads = await this.shelf.heads(this.#market);
    if (heads === undefined) return undefined;
    this.#chunks ??= heads.flatMap((head) => {
      const filter = filterOf(head.kind);
      return filter === undefined ? [] : [{ head, filter, good: -1 }];
    });
    return this.#chunks;
  }

  // Drop ranges of one chain back to the last block that the chain still holds, as far as their own logs tell. Nothing is
  // dropped where providers do not say.
  async #cut(group: readonly Chunk[], era: number): Promise<void> {
    const points = new Map<number, Hex>();
    for (const chunk of group) for (const log of (await this.#read(chunk)) ?? []) points.set(log.blockNumber, log.blockHash);
    const sorted = [...points].map(([number, hash]) => ({ number, hash })).sort((a, b) => a.number - b.number);
    const common = await this.#lastHeld(sorted);
    if (common === undefined || era !== this.#eras) return;
    for (const chunk of group) {
      if (common === null || chunk.head.from > common.number) {
        this.#drop(chunk);
        continue;
      }
      const logs = await this.#read(chunk);
      this.#drop(chunk);
      if (logs === undefined) continue;
      const kept = logs.filter((log) => log.blockNumber <= common.number);
      const draft = { ...chunk.head, to: Math.min(chunk.head.to, common.number), mark: common };
      await this.#put(era, chunk.filter, draft, kept, []);
    }
  }

  // The last of some blocks of one chain that providers still have, null for none of them, undefined if they do not say.
  async #lastHeld(points: readonly Mark[]): Promise<Mark | null | undefined> {
    let [held, lost] = [-1, points.length];
    while (lost - held > 1) {
      const step = Math.ceil((lost - held - 1) / PROBES);
      const probes: number[] = [];
      for (let at = held + step; at < lost; at += step) probes.push(at);
      const found = await this.#blocks(probes.map((at) => points[at]?.number ?? 0));
      for (const [place, at] of probes.entries()) {
        const block = found[place];
        if (block === undefined) return undefined;
        if (block.hash === points[at]?.hash) held = at;
        else {
          lost = at;
          break;
        }
      }
    }
    return points[held] ?? null;
  }

  async #blocks(numbers: readonly number[]): Promise<(Block | undefined)[]> {
    const found: (Block | undefined)[] = [];
    try {
      for (let start = 0; start < numbers.length; start += AT_ONCE) {
        const some = numbers.slice(start, start + AT_ONCE);
        const said = await this.rpc.ask(some.map(blockAsk));
        found.push(...some.map((number, place) => blockOf(said[place], number)));
      }
    } catch {
      // Whoever asked for logs hears of it when these are asked for.
    }
    return numbers.map((_, place) => found[place]);
  }

  // ---- what is shown ----

  #next(filter: Filter, { from, to, backwards }: Range): Step {
    const good = (this.#chunks ?? []).filter((chunk) => chunk.good === this.#eras && holds(chunk.filter, filter));
    const edge = backwards ? to : from;
    const here = good.filter(({ head }) => head.from <= edge && edge <= head.to);
    const [chunk] = here.sort((a, b) => (backwards ? a.head.from - b.head.from : b.head.to - a.head.to));
    if (chunk !== undefined) return { from: Math.max(from, chunk.head.from), to: Math.min(to, chunk.head.to), chunk };
    if (backwards) return { from: Math.max(from, ...good.filter(({ head }) => head.to < edge).map(({ head }) => head.to + 1)), to, chunk };
    return { from, to: Math.min(to, ...good.filter(({ head }) => head.from > edge).map(({ head }) => head.from - 1)), chunk };
  }

  // The first piece of a range from a provider.
  async #told(filter: Filter, range: Range, span: Span, keeper: Keeper | undefined): Promise<Piece | undefined> {
    const era = keeper?.era;
    for await (const { marked, ...piece } of pieces(this.rpc, filter, range, span, era?.depth)) {
      if (era !== undefined) era.hash ??= marked;
      if (marked !== undefined && marked === era?.hash) keeper?.add(piece);
      return piece;
    }
    return undefined;
  }

  async #shown(filter: Filter, { from, to, chunk }: Step): Promise<Piece | undefined> {
    const found = chunk === undefined ? undefined : await this.#read(chunk);
    if (found === undefined || chunk?.good !== this.#eras) return undefined;
    this.#served = true;
    const logs = found.filter((log) => log.blockNumber >= from && log.blockNumber <= to && fits(log, filter));
    return { from, to, logs };
  }

  // The logs of a range; undefined where its text is gone or is not what it should be, and then the range is too.
  async #read(chunk: Chunk): Promise<Log[] | undefined> {
    const text = await this.shelf.text(chunk.head);
    const logs = text === undefined ? undefined : parsed(text, chunk);
    if (logs !== undefined) return logs;
    if (text === undefined) this.#chunks = this.#chunks?.filter((one) => one !== chunk);
    else this.#drop(chunk);
    return undefined;
  }

  // ---- what is kept ----

  #later(task: () => Promise<unknown>): void {
    this.#queue = this.#queue.then(task).then(
      () => undefined,
      () => undefined,
    );
  }

  #drop(chunk: Chunk): void {
    this.#chunks = this.#chunks?.filter((one) => one !== chunk);
    this.#later(() => this.shelf.drop([chunk.head]));
  }

  // Keep a run, joined with the ranges before and after it while these are small.
  async #keep(era: Era, filter: Filter, run: Run): Promise<void> {
    const kind = kindOf(filter);
    const mine = (this.#chunks ?? []).filter((chunk) => chunk.good === era.number && chunk.head.kind === kind);
    // Another reading was first.
    if (mine.some(({ head }) => head.from <= run.to && run.from <= head.to)) return;
    if (era.hash === undefined) return;
    let { from, to, logs } = run;
    let mark: Mark = { number: era.depth, hash: era.hash };
    let size = sizeOf(logs);
    const joined: Chunk[] = [];
    for (const chunk of mine) {
      const { head } = chunk;
      if ((head.to + 1 !== from && to + 1 !== head.from) || size + head.size > CHUNK) continue;
      const more = await this.#read(chunk);
      if (more === undefined) continue;
      logs = head.from < from ? [...more, ...logs] : [...logs, ...more];
      [from, to, size] = [Math.min(from, head.from), Math.max(to, head.to), size + head.size];
      if (head.mark.number > mark.number) mark = head.mark;
      joined.push(chunk);
    }
    await this.#put(era.number, filter, { market: this.#market, kind, from, to, mark }, logs, joined);
  }

  async #put(
    era: number,
    filter: Filter,
    { market, kind, from, to, mark }: Pick<Head, "market" | "kind" | "from" | "to" | "mark">,
    logs: readonly Log[],
    joined: readonly Chunk[],
  ): Promise<void> {
    if (era !== this.#eras) return;
    const replaced = joined.map((chunk) => chunk.head);
    const head = await this.shelf.put({ market, kind, from, to, mark }, JSON.stringify(logs.map(asSent)), replaced);
    if (head === undefined) return;
    this.#chunks = [...(this.#chunks ?? []).filter((chunk) => !joined.includes(chunk)), { head, filter, good: era }];
  }
}

// Gathers the pieces of one reading up to the mark, and hands them on in runs.
class Keeper {
  #run: Run | undefined;
  #since: number;

  constructor(
    readonly era: Era,
    private readonly now: () => number,
    private readonly hand: (run: Run) => void,
  ) {
    this.#since = now();
  }

  add(piece: Piece): void {
    const to = Math.min(piece.to, this.era.depth);
    if (piece.from > to) return;
    const { from } = piece;
    const logs = piece.logs.filter((log) => log.blockNumber <= to);
    const before = this.#run;
    if (before?.to === from - 1) this.#run = { from: before.from, to, logs: [...before.logs, ...logs] };
    else if (before?.from === to + 1) this.#run = { from, to: before.to, logs: [...logs, ...before.logs] };
    else {
      this.end();
      this.#run = { from, to, logs };
    }
    if (sizeOf(this.#run.logs) > CHUNK || this.now() - this.#since > FLUSH) this.end();
  }

  // Hand on what there is, in parts that are not read for too long at once.
  end(): void {
    const run = this.#run;
    this.#run = undefined;
    this.#since = this.now();
    if (run === undefined) return;
    let [from, size] = [run.from, 0];
    let part: Log[] = [];
    for (const log of run.logs) {
      const last = part.at(-1)?.blockNumber ?? log.blockNumber;
      if (size > CHUNK && log.blockNumber > last) {
        this.hand({ from, to: last, logs: part });
        [from, size, part] = [last + 1, 0, []];
      }
      part.push(log);
      size += weightOf(log);
    }
    this.hand({ from, to: run.to, logs: part });
  }
}

// The same pieces, neighbours joined up to a size, with what a filter asks for alone.
function runsOf(found: readonly Piece[], filter: Filter): Run[] {
  const runs: { from: number; to: number; logs: Log[] }[] = [];
  let size = 0;
  for (const { from, to, logs } of found) {
    const mine = logs.filter((log) => fits(log, filter));
    const more = sizeOf(mine);
    const last = runs.at(-1);
    if (last !== undefined && last.to === from - 1 && size + more <= CHUNK) {
      last.to = to;
      for (const log of mine) last.logs.push(log);
      size += more;
    } else {
      runs.push({ from, to, logs: mine });
      size = more;
    }
  }
  return runs;
}

// What a market is known by here: its chain, its contracts, and whom it is read from. What other providers said is not
// shown as theirs.
export function marketKey(network: Network): Hex {
  const origins = network.rpc.map((url) => new URL(url).origin).sort();
  return keccak256(utf8(JSON.stringify([network.genesisHash, CONTRACTS.map((name) => network.contracts[name]), origins])));
}

const markOf = ([chunk]: readonly Chunk[]): Mark => (chunk as Chunk).head.mark;

// About as many characters as a log has as text.
const weightOf = (log: Log): number => log.data.length + 70 * log.topics.length + 330;
const sizeOf = (logs: readonly Log[]): number => logs.reduce((sum, log) => sum + weightOf(log), 0);


// A log as providers send it, so that it is read back as theirs are.
export function asSent({ address, topics, data, blockNumber, blockHash, txHash, txIndex, logIndex }: Log): Record<string, unknown> {
  const turn = txIndex === undefined ? {} : { transactionIndex: hexNumber(txIndex) };
  const place = { blockNumber: hexNumber(blockNumber), blockHash, transactionHash: txHash, ...turn, logIndex: hexNumber(logIndex) };
  return { address, topics, data, ...place };
}

// Ranges by the hash of their marks.
function groupsOf(chunks: readonly Chunk[]): Chunk[][] {
  const groups = new Map<Hex, Chunk[]>();
  for (const chunk of chunks) {
    const { hash } = chunk.head.mark;
    groups.set(hash, [...(groups.get(hash) ?? []), chunk]);
  }
  return [...groups.values()];
}

function parsed(text: string, { head, filter }: Chunk): Log[] | undefined {
  try {
    const logs = checked(logsOf(JSON.parse(text)), filter, head);
    const hashes = new Map<number, Hex>([[head.mark.number, head.mark.hash]]);
    for (const { blockNumber, blockHash } of logs) {
      if ((hashes.get(blockNumber) ?? blockHash) !== blockHash) return undefined;
      hashes.set(blockNumber, blockHash);
    }
    return logs;
  } catch {
    return undefined;
  }
}

// ---- filters ----

// A filter as text: the same for filters that ask for the same.
export function kindOf({ addresses, topics }: Filter): string {
  const last = topics.findLastIndex((topic) => topic !== null);
  const sorted = topics.slice(0, last + 1).map((topic) => (topic === null ? null : typeof topic === "string" ? [topic] : [...topic].sort()));
  return JSON.stringify([[...addresses].sort(), sorted]);
}

const isHex = (value: unknown): value is Hex => typeof value === "string" && /^0x[0-9a-f]+$/.test(value);
const areHex = (value: unknown): value is Hex[] => Array.isArray(value) && value.every(isHex);

function filterOf(kind: string): Filter | undefined {
  try {
    const [addresses, topics] = JSON.parse(kind) as [unknown, unknown];
    if (!areHex(addresses) || !Array.isArray(topics)) return undefined;
    return topics.every((topic) => topic === null || areHex(topic)) ? { addresses, topics } : undefined;
  } catch {
    return undefined;
  }
}

// Say whether what one filter asks for is among what another does.
function holds(wide: Filter, narrow: Filter): boolean {
  return (
    narrow.addresses.every((address) => wide.addresses.includes(address)) &&
    wide.topics.every((topic, at) => {
      const asked = narrow.topics[at] ?? null;
      return topic === null || (asked !== null && [asked].flat().every((one) => [topic].flat().includes(one)));
    })
  );
}
