import { describe, expect, it } from "vitest";

import { CHUNK, DEPTH, KeptPast } from "../src/chain/cache";
import { type Filter, type Piece, Span } from "../src/chain/logs";
import { Market } from "../src/chain/market";
import { logsOfProviders } from "../src/chain/log-history";
import { rpcOf } from "../src/chain/rpc";
import { BOUNDS, VisitStore } from "../src/chain/visit-store";
import { compareHistory, pastOf, provedBy, requireAgreement, SAMPLE } from "../src/chain/compare-history";
import type { Hex } from "../src/core/bytes";
import type { HearthError } from "../src/core/errors";
import { inOrder, type Log, logsOf } from "../src/core/logs";
import { type Network, networkOf } from "../src/core/network";
import { MAX_LINES, type Part, readHistoryFile, type HistoryFile } from "../src/core/history-file";
import { linesOf } from "../src/data/open-history";
import { refusal, refusalOf } from "./refusal";
import { Chain, ESCROW, FakeStore, hashOf, JOBS, POSTED, Provider, STARTED } from "./scripted-chain";
import { vectors } from "./vectors";

interface Told {
  readonly network: unknown;
  readonly block: number;
  readonly blockHash: Hex;
  readonly lines: readonly string[];
  readonly logs: readonly Log[];
}

const told = vectors<Told>("history_file");
const market = networkOf(told.network);

async function* given<T>(items: readonly T[]): AsyncGenerator<T> {
  yield* items;
}

const read = (lines: readonly string[], network: Network = market): Promise<HistoryFile> => readHistoryFile(given(lines), network);

// The file with one line changed: `change` gets what its JSON says.
function changed(at: number, change: (value: Record<string, unknown>) => unknown): string[] {
  return told.lines.map((line, place) => (place === at ? JSON.stringify(change(JSON.parse(line) as Record<string, unknown>)) : line));
}

describe("a history file", () => {
  it("is read as the library writes it", async () => {
    const { last, parts, malformed } = await read(told.lines);
    expect([last, malformed]).toEqual([{ number: told.block, hash: told.blockHash }, 0]);
    expect(parts.flatMap((part) => part.logs)).toEqual(told.logs);
    expect([parts[0]?.from, parts.at(-1)?.to]).toEqual([market.deployBlock, told.block]);
    parts.slice(1).forEach((part, at) => expect(part.from).toBe((parts[at]?.to ?? 0) + 1));
  });

  it.each([
    ["nothing", [], "BAD_SNAPSHOT"],
    ["no JSON", ["hello"], "BAD_SNAPSHOT"],
    ["another form", changed(0, (head) => ({ ...head, schema: "hearth.history/2" })), "BAD_SNAPSHOT"],
    ["no last block", changed(0, (head) => ({ ...head, block: -1 })), "BAD_SNAPSHOT"],
    ["a last block without a hash", changed(0, (head) => ({ ...head, block_hash: "0x12" })), "BAD_SNAPSHOT"],
    ["another chain", changed(0, (head) => ({ ...head, chain_id: 1 })), "WRONG_MARKET"],
    ["another genesis", changed(0, (head) => ({ ...head, genesis_hash: `0x${"00".repeat(32)}` })), "WRONG_MARKET"],
    ["another beginning", changed(0, (head) => ({ ...head, deploy_block: 7 })), "WRONG_MARKET"],
    ["another Escrow", changed(0, (head) => ({ ...head, contracts: { ...(head["contracts"] as object), Escrow: ESCROW } })), "WRONG_MARKET"],
    ["fewer contracts", changed(0, (head) => ({ ...head, contracts: {} })), "WRONG_MARKET"],
  ])("of %s is refused", async (_, lines, code) => {
    expect(await refusalOf(() => read(lines))).toBe(code);
  });

  type Blocks = [number, string, unknown[][]][];
  const blocks = (change: (blocks: Blocks) => unknown): string[] =>
    changed(2, (part) => ({ ...part, blocks: change(structuredClone(part["blocks"]) as Blocks) }));
  const log = (change: (log: unknown[]) => unknown): string[] => blocks((all) => [[all[0]?.[0], all[0]?.[1], [change(all[0]?.[2][0] as unknown[])]]]);
  it.each([
    ["is no JSON", told.lines.map((line, at) => (at === 2 ? line.slice(1) : line))],
    ["has no blocks", changed(2, (part) => ({ ...part, blocks: null }))],
    ["ends before it begins", changed(2, (part) => ({ ...part, to: 0 }))],
    ["goes beyond the last block", changed(2, (part) => ({ ...part, to: told.block + 1 }))],
    ["begins before the market", changed(2, (part) => ({ ...part, from: market.deployBlock - 1 }))],
    ["begins in the one before", changed(2, (part) => ({ ...part, from: market.deployBlock }))],
    ["has a block of another range", blocks(([one]) => [[1_000_000, one?.[1], one?.[2]]])],
    ["has a block twice", blocks(([one]) => [one, one])],
    ["has a block without a hash", blocks(([one]) => [[one?.[0], "0x", one?.[2]]])],
    ["has a log of another contract", log(([at, tx, , ...rest]) => [at, tx, "Lens2", ...rest])],
    ["has a log without a transaction", log(([at, , ...rest]) => [at, "0x", ...rest])],
    ["has a log whose data are no bytes", log(([at, tx, name, topics]) => [at, tx, name, topics, "0x1"])],
    ["has a log of five topics", log(([at, tx, name, topics, data]) => [at, tx, name, Array(5).fill((topics as string[])[0]), data])],
    ["has a log without a place", log(([, ...rest]) => [-1, ...rest])],
    ["has a log twice", blocks(([one]) => [[one?.[0], one?.[1], [one?.[2][0], one?.[2][0]]]])],
  ])("leaves out and counts a line that %s", async (_, lines) => {
    const { parts, malformed } = await read(lines);
    expect(malformed).toBe(1);
    expect(parts.flatMap((part) => part.logs)).toEqual(told.logs.filter((one) => one !== told.logs[1]));
  });

  // The first block of a line with other places of its log: transactions by their last digit, each with the log's index.
  const placed = (...places: (readonly [number, number])[]): string[] =>
    blocks(([one]) => [[one?.[0], one?.[1], places.map(([tx, at]) => [at, `0x${"0".repeat(63)}${tx}`, ...(one?.[2][0]?.slice(2) ?? [])])]]);

  it("of a chain whose log indexes count in each transaction is read, and its logs keep their order", async () => {
    const written = [[9, 0], [9, 1], [3, 0], [3, 2], [5, 1]] as const;
    const { parts, malformed } = await read(placed(...written));
    const logs = parts[1]?.logs ?? [];
    expect([malformed, logs.length]).toEqual([0, written.length]);
    expect(inOrder([...logs].reverse()).map(({ txHash, logIndex }) => [Number(txHash), logIndex])).toEqual(written);
  });

  it.each([
    ["stands twice in its transaction", placed([9, 0], [3, 0], [3, 0])],
    ["stands after a later one of its transaction", placed([9, 1], [9, 0])],
    ["stands apart from its transaction", placed([9, 0], [3, 0], [9, 1])],
  ])("leaves out and counts a part with a log that %s", async (_, lines) => {
    const { parts, malformed } = await read(lines);
    expect([parts.length, malformed]).toEqual([told.lines.length - 2, 1]);
  });

  it("has its logs in their places beside those of a provider that tells its transactions' places", async () => {
    const [log] = (await read(told.lines)).parts.flatMap((part) => part.logs) as [Log];
    const there = [0, 1, 2].map((logIndex): Log => ({ ...log, logIndex: log.logIndex + logIndex, ...(logIndex === 1 ? {} : { txIndex: 4 }) }));
    expect(inOrder([...there].reverse())).toEqual(there);
  });

  it("of more lines than any writer makes is refused", async () => {
    const lines = (count: number): string[] => [told.lines[0] as string, ...Array.from({ length: count }, () => "{}")];
    expect((await read(lines(MAX_LINES))).malformed).toBe(MAX_LINES);
    expect(await refusalOf(() => read(lines(MAX_LINES + 1)))).toBe("BAD_SNAPSHOT");
  });

  it("is refused by its length, and read in chunks of any", async () => {
    const bytes = new TextEncoder().encode(`${told.lines.join("\n")}\n\n`);
    const chunks = Array.from({ length: Math.ceil(bytes.length / 7) }, (_, at) => bytes.slice(7 * at, 7 * at + 7));
    const lines: string[] = [];
    for await (const line of linesOf(given(chunks))) lines.push(line);
    expect(lines).toEqual(told.lines);
    const long = async (): Promise<void> => {
      for await (const _ of linesOf(given(chunks), bytes.length - 1));
    };
    expect(await refusalOf(long)).toBe("TOO_LARGE");
  });
});

// ---- against a chain ----

const ALL: Filter = { addresses: [ESCROW, JOBS], topics: [] };

function chainOf(length: number): Chain {
  const chain = new Chain();
  while (chain.blocks.length < length) {
    chain.mine(chain.blocks.length % 3 === 0 ? [{ address: JOBS, topics: [POSTED, hashOf("job")] }, { address: ESCROW, topics: [STARTED] }] : []);
  }
  return chain;
}

class Place {
  readonly provider: Provider;
  readonly network: Network;
  readonly past: KeptPast;
  readonly market: Market;

  constructor(readonly chain: Chain, store = new FakeStore()) {
    const contracts = { ...market.contracts, Escrow: ESCROW, JobRegistry: JOBS };
    this.network = { ...market, contracts, genesisHash: chain.blocks[0]?.hash as Hex, deployBlock: 0, rpc: ["http://a"] };
    this.provider = new Provider(chain);
    const rpc = rpcOf(["http://a"], this.provider.fetch);
    this.past = new KeptPast(this.network, rpc, new VisitStore(store, { ...BOUNDS, patience: 50 }));
    this.market = new Market(this.network, rpc, this.past);
    this.past.moved(chain.head, false);
  }

  // The file of this chain up to a block, cut into parts that leave out some blocks.
  parts(ranges: readonly (readonly [number, number])[]): Part[] {
    // A file does not hold its transactions' places.
    const written = (log: Record<string, unknown>): unknown => ({ ...log, transactionIndex: undefined });
    return ranges.map(([from, to]) => ({ from, to, logs: logsOf(this.chain.matching(ALL, from, to).map(written)) }));
  }

  history(to: number, parts = this.parts([[0, to]])): HistoryFile {
    return { last: { number: to, hash: this.chain.blocks[to]?.hash as Hex }, parts, malformed: 0 };
  }
}

const places = (found: readonly Piece[]): string[] => found.flatMap(({ logs }) => logs.map((log) => `${log.blockHash}:${log.logIndex}`));

describe("a file's past", () => {
  it.each([false, true])("is the file where it tells, and the provider where it does not (backwards: %s)", async (backwards) => {
    const place = new Place(chainOf(100));
    const past = pastOf(place.parts([[10, 19], [20, 29], [50, 60]]), place.market.rpc);
    const found: Piece[] = [];
    for await (const piece of past.logs(ALL, { from: 5, to: 90, backwards }, new Span())) found.push(piece);
    expect(places(backwards ? found.reverse() : found)).toEqual(place.chain.places(ALL, 5, 90));
    expect(place.provider.ranges.sort((a, b) => a[0] - b[0])).toEqual([[5, 9], [30, 49], [61, 90]]);
    const narrow: Piece[] = [];
    const posts = { addresses: [JOBS], topics: [POSTED] };
    for await (const piece of past.logs(posts, { from: 12, to: 15, backwards }, new Span())) narrow.push(piece);
    expect(places(narrow)).toEqual(place.chain.places(posts, 12, 15));
  });
});

describe("a cache", () => {
  it("keeps what was compared, and asks for none of it again", async () => {
    const store = new FakeStore();
    const place = new Place(chainOf(300), store);
    const { last, parts } = place.history(200, place.parts([[0, 90], [91, 200]]));
    expect(await place.past.take(ALL, parts, last)).toBe(201);
    expect(await place.past.take(ALL, parts, last)).toBe(0);
    const again = new Place(place.chain, store);
    const found: Piece[] = [];
    for await (const piece of again.past.logs(ALL, { from: 0, to: 299, backwards: false }, new Span())) found.push(piece);
    expect(places(found)).toEqual(place.chain.places(ALL, 0, 299));
    expect(Math.min(...again.provider.ranges.map(([from]) => from))).toBe(201);
  });

  it("joins a file of very many parts to few entries", async () => {
    const store = new FakeStore();
    const place = new Place(chainOf(1_100), store);
    const parts = place.parts(Array.from({ length: 1_000 }, (_, at) => [at, at] as const));
    expect(await place.past.take(ALL, parts, place.history(999).last)).toBe(1_000);
    expect([...store.kept.values()].length).toBeLessThan(10);
    expect(Math.max(...[...store.texts.values()].map((text) => String(text).length))).toBeLessThan(2 * CHUNK);
    const again = new Place(place.chain, store);
    const found: Piece[] = [];
    for await (const piece of again.past.logs(ALL, { from: 0, to: 1_099, backwards: false }, new Span())) found.push(piece);
    expect(places(found)).toEqual(place.chain.places(ALL, 0, 1_099));
    expect(Math.min(...again.provider.ranges.map(([from]) => from))).toBe(1_000);
  });

  it("joins nothing over a gap, and keeps a part beside what is there", async () => {
    const place = new Place(chainOf(300));
    const { last } = place.history(200);
    expect(await place.past.take(ALL, place.parts([[50, 60]]), last)).toBe(11);
    expect(await place.past.take(ALL, place.parts([[0, 20], [30, 49], [50, 60], [61, 200]]), last)).toBe(21 + 20 + 140);
    place.provider.clear();
    const found: Piece[] = [];
    for await (const piece of place.past.logs(ALL, { from: 0, to: 200, backwards: false }, new Span())) found.push(piece);
    expect(places(found)).toEqual(place.chain.places(ALL, 0, 200));
    expect(place.provider.ranges).toEqual([[21, 29]]);
  });

  it("keeps no log that its filter does not ask for", async () => {
    const place = new Place(chainOf(300));
    const { last, parts } = place.history(200);
    const posts = { addresses: [JOBS], topics: [] };
    expect(await place.past.take(posts, parts, last)).toBe(201);
    place.provider.clear();
    const found: Piece[] = [];
    for await (const piece of place.past.logs(posts, { from: 0, to: 200, backwards: false }, new Span())) found.push(piece);
    expect(places(found)).toEqual(place.chain.places(posts, 0, 200));
    expect(place.provider.ranges).toEqual([]);
  });

  it("keeps nothing of another chain, nor of blocks that are not deep, nor without a store", async () => {
    const place = new Place(chainOf(300));
    const { last, parts } = place.history(200);
    expect(await place.past.take(ALL, parts, { ...last, hash: hashOf("other") })).toBe(0);
    const near = place.history(300 - DEPTH);
    expect(await place.past.take(ALL, near.parts, near.last)).toBe(0);
    const broken = new FakeStore();
    broken.fault = () => Promise.reject(new Error("blocked"));
    expect(await new Place(place.chain, broken).past.take(ALL, parts, last)).toBe(0);
    expect(await logsOfProviders(place.market.rpc).take(ALL, parts, last)).toBe(0);
  });

  it("forgets what was taken with the rest", async () => {
    const place = new Place(chainOf(300));
    const { last, parts } = place.history(200);
    await place.past.take(ALL, parts, last);
    await place.past.forget();
    place.provider.clear();
    for await (const _ of place.past.logs(ALL, { from: 0, to: 299, backwards: false }, new Span()));
    expect(Math.min(...place.provider.ranges.map(([from]) => from))).toBe(0);
  });
});

// What comes before the books: these need no contracts that answer.
describe("comparing", () => {
  const refused = async (place: Place, history: HistoryFile, draw: (below: number) => number = () => 0): Promise<string> => {
    const [error] = await compareHistory(place.market, history, () => undefined, draw).then(
      () => [],
      (why: HearthError) => [why],
    );
    return `${error?.code} ${error?.message}`;
  };

  it("refuses a file of another chain, and one whose last block is not deep enough", async () => {
    const place = new Place(chainOf(300));
    const other = place.history(200);
    expect(await refused(place, { ...other, last: { number: 200, hash: hashOf("other") } })).toMatch(/^SNAPSHOT_DIFFERS .*200/);
    expect(await refused(place, place.history(299 - DEPTH + 1))).toMatch(/^NOT_FINAL/);
  });

  it.each([
    ["a lock is another", { faults: ["lock 00 of 0x: events say 2, storage 1"], strays: "", jobs: 3 }, 3n],
    ["a log has no place", { faults: [], strays: "a log is none", jobs: 3 }, 3n],
    ["a job is left out", { faults: [], strays: "", jobs: 3 }, 4n],
    ["a job is made up", { faults: [], strays: "", jobs: 3 }, 2n],
  ])("refuses a file by which %s", (_, verdict, posted) => {
    expect(refusal(() => requireAgreement(verdict, posted))).toBe("SNAPSHOT_DIFFERS");
    expect(refusal(() => requireAgreement({ faults: [], strays: "", jobs: 3 }, 3n))).toBe(null);
  });

  it("refuses a block of which the provider has other logs, and asks no more than a sample", async () => {
    const place = new Place(chainOf(300));
    // Stretches are of one block, and the first one has no logs.
    place.provider.most = 1;
    const [part] = place.parts([[0, 200]]) as [Part];
    const [first, ...rest] = part.logs as [Log, ...Log[]];
    for (const logs of [rest, [{ ...first, data: "0x01" as Hex }, ...rest], [{ ...first, txHash: hashOf("other") }, ...rest]]) {
      expect(await refused(place, place.history(200, [{ ...part, logs }]))).toMatch(/^SNAPSHOT_DIFFERS .*block 3 /);
    }
    const asked = place.provider.requests.map((methods) => methods.filter((method) => method === "eth_getLogs").length);
    expect(Math.max(...asked)).toBe(SAMPLE);
  });

  it("refuses a block of no chain, though the provider answers an error to its hash", async () => {
    const place = new Place(chainOf(300));
    place.provider.most = 1;
    const [part] = place.parts([[0, 200]]) as [Part];
    const [first] = part.logs as [Log];
    for (const [at, blockNumber] of [3, 4].entries()) {
      const invented = { ...first, blockNumber, blockHash: hashOf("no chain"), txHash: hashOf("none"), logIndex: 2 };
      const logs = [...part.logs, invented].sort((a, b) => a.blockNumber - b.blockNumber || a.logIndex - b.logIndex);
      expect(await refused(place, place.history(200, [{ ...part, logs }]), () => at)).toMatch(new RegExp(`^SNAPSHOT_DIFFERS .*block ${blockNumber} `));
    }
    const logs = part.logs.map((log) => ({ ...log, blockHash: hashOf(`no chain ${log.blockNumber}`) }));
    expect(await refused(place, place.history(200, [{ ...part, logs }]))).toMatch(/^SNAPSHOT_DIFFERS /);
  });

  // Blocks with logs are every third one.
  const BEFORE = 90;
  it.each([
    ["it left out", (logs: readonly Log[]) => logs.filter((log) => log.blockNumber !== BEFORE)],
    ["it left out in part", (logs: readonly Log[]) => logs.filter((log) => log.blockNumber !== BEFORE || log.logIndex > 0)],
    ["it left out with all others", () => []],
  ])("refuses a file for logs that %s, in a stretch of blocks", async (_, change) => {
    const place = new Place(chainOf(300));
    const [part] = place.parts([[0, 200]]) as [Part];
    const history = place.history(200, [{ ...part, logs: change(part.logs) }]);
    // Blocks with logs are drawn from the end, and stretches from the middle.
    const said = await refused(place, history, (below) => (below === 201 ? 80 : below - 1));
    expect(said).toMatch(/^SNAPSHOT_DIFFERS .*block \d+ holds other logs/);
  });

  it("draws stretches anywhere in the file, each as wide as the provider serves, and asks for no block of them twice", async () => {
    const place = new Place(chainOf(300));
    place.provider.most = 20;
    // The places of blocks among the 191 of the file, between whose parts ten are missing.
    const draws = [0, 10, 150, 140, 190, 60, 65, 180];
    const history = place.history(200, place.parts([[0, 99], [110, 200]]));
    const said = await refused(place, history, (below) => (below === 191 ? (draws.shift() ?? 0) : 0));
    // No contract answers here: what comes after the sample fails.
    expect(said).not.toMatch(/holds other logs/);
    expect(draws.length).toBe(0);
    const { ranges } = place.provider;
    const stretches = ranges.slice(ranges.findIndex(([from, to]) => to > from)).slice(0, 7);
    expect(stretches).toEqual([[0, 11], [160, 171], [139, 150], [200, 200], [49, 60], [65, 76], [179, 190]]);
  });

  it("takes no file where the provider does not say what a block holds", async () => {
    const place = new Place(chainOf(300));
    let asked = 0;
    place.provider.before = (method) => {
      asked += method === "eth_getLogs" ? 1 : 0;
      return method === "eth_getLogs" && asked === 5 ? { error: { code: -32_000, message: "pruned" } } : undefined;
    };
    expect(await refused(place, place.history(200))).toMatch(/^RPC_ERROR .*pruned/);
  });

  it("proves no log of a contract that nobody replays", () => {
    const { network } = new Place(chainOf(10));
    expect(provedBy(network)).toEqual({ addresses: [ESCROW, JOBS], topics: [] });
  });
});
