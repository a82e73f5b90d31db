import { afterEach, describe, expect, it, vi } from "vitest";

import { CHUNK, DEPTH, KeptPast, kindOf } from "../src/chain/cache";
import { type Filter, type Piece, type Range, Span } from "../src/chain/logs";
import { Market } from "../src/chain/market";
import { rpcOf } from "../src/chain/rpc";
import { BOUNDS, type Head, VisitStore } from "../src/chain/visit-store";
import type { Hex } from "../src/core/bytes";
import { HearthError } from "../src/core/errors";
import { type Network, networkOf } from "../src/core/network";
import { Chain, dice, ESCROW, FakeStore, hashOf, JOBS, POSTED, Provider, type Said, STARTED } from "./scripted-chain";
import { vectors } from "./vectors";

const [JOB, OTHER] = [hashOf("job"), hashOf("other")];
const ALL: Filter = { addresses: [ESCROW, JOBS], topics: [] };
const POSTS: Filter = { addresses: [JOBS], topics: [POSTED] };
const OF_JOB: Filter = { addresses: [JOBS], topics: [null, JOB] };
const POST_OF_JOB: Filter = { addresses: [JOBS], topics: [POSTED, JOB] };
const FILTERS = [ALL, POSTS, OF_JOB, POST_OF_JOB];
const SAID: readonly Said[] = [
  { address: JOBS, topics: [POSTED, JOB] },
  { address: JOBS, topics: [POSTED, OTHER] },
  { address: JOBS, topics: [STARTED, JOB] },
  { address: ESCROW, topics: [hashOf("locked")] },
];

function networkAt(chain: Chain, changes: Partial<Network> = {}): Network {
  const [first] = vectors<readonly { readonly in: unknown }[]>("network");
  const network = networkOf(first?.in);
  const contracts = { ...network.contracts, Escrow: ESCROW, JobRegistry: JOBS };
  return { ...network, contracts, genesisHash: chain.blocks[0]?.hash as Hex, deployBlock: 0, rpc: ["http://a"], ...changes };
}

// A page that is open on a chain, over a store.
class Visit {
  readonly provider: Provider;
  readonly past: KeptPast;
  readonly shelf: VisitStore;
  readonly market: Market;

  constructor(
    readonly chain: Chain,
    store: FakeStore,
    { bounds = {}, network = {} }: { bounds?: Partial<typeof BOUNDS>; network?: Partial<Network> } = {},
  ) {
    const at = networkAt(chain, network);
    this.provider = new Provider(chain);
    const rpc = rpcOf(["http://a"], this.provider.fetch);
    this.shelf = new VisitStore(store, { ...BOUNDS, patience: 50, ...bounds });
    this.past = new KeptPast(at, rpc, this.shelf);
    this.market = new Market(at, rpc, this.past);
    this.look();
  }

  look(reorged = false): void {
    this.past.moved(this.chain.head, reorged);
  }

  // The places of a range's logs in the order of the chain, read until `most` pieces were.
  async read(filter: Filter, range: Partial<Range> = {}, { most = Number.POSITIVE_INFINITY, span = new Span() } = {}): Promise<string[]> {
    const pieces = await this.pieces(filter, range, most, span);
    const sorted = range.backwards === true ? pieces.reverse() : pieces;
    return sorted.flatMap(({ logs }) => logs.map((log) => `${log.blockHash}:${log.logIndex}`));
  }

  async pieces(filter: Filter, range: Partial<Range>, most: number, span: Span): Promise<Piece[]> {
    const found: Piece[] = [];
    const whole = { from: 0, to: this.chain.head.number, backwards: false, ...range };
    for await (const piece of this.past.logs(filter, whole, span)) {
      found.push(piece);
      if (found.length >= most) break;
    }
    await this.past.settled();
    return found;
  }
}

// A chain of so many blocks with a log in every third.
function chainOf(length: number): Chain {
  const chain = new Chain();
  grow(chain, length);
  return chain;
}

function grow(chain: Chain, count: number): void {
  for (let more = 0; more < count; more += 1) {
    const { number } = chain.head;
    chain.mine(number % 3 === 0 ? [SAID[(number / 3) % SAID.length] as Said] : []);
  }
}

const truth = (chain: Chain, filter: Filter, from = 0, to = chain.head.number): string[] => chain.places(filter, from, to);
const rangesOf = (visit: Visit): string[] => visit.provider.ranges.map(([from, to]) => `${from}-${to}`);
const headsOf = (store: FakeStore): Head[] => [...store.kept.values()] as Head[];

afterEach(() => {
  vi.useRealTimers();
});

describe("a second visit", () => {
  it("asks for the blocks since, in two requests", async () => {
    const [chain, store] = [chainOf(500), new FakeStore()];
    await new Visit(chain, store).read(ALL);
    grow(chain, 20);
    const visit = new Visit(chain, store);
    expect(await visit.read(ALL)).toEqual(truth(chain, ALL));
    expect(rangesOf(visit)).toEqual([`${500 - DEPTH + 1}-520`]);
    expect(visit.provider.requests).toHaveLength(2);
  });

  it("asks nothing for blocks that were deep already", async () => {
    const [chain, store] = [chainOf(500), new FakeStore()];
    await new Visit(chain, store).read(ALL, { from: 10, to: 400 });
    const visit = new Visit(chain, store);
    expect(await visit.read(ALL, { from: 10, to: 400 })).toEqual(truth(chain, ALL, 10, 400));
    expect(visit.provider.requests).toEqual([["eth_getBlockByNumber", "eth_getBlockByNumber"]]);
  });

  it.each([true, false])("fills gaps alone, backwards: %s", async (backwards) => {
    const [chain, store] = [chainOf(500), new FakeStore()];
    const first = new Visit(chain, store);
    await first.read(ALL, { from: 100, to: 149 });
    await first.read(ALL, { from: 300, to: 399, backwards: true });
    const visit = new Visit(chain, store);
    expect(await visit.read(ALL, { backwards })).toEqual(truth(chain, ALL));
    expect(rangesOf(visit).sort()).toEqual(["0-99", "150-299", "400-500"].sort());
    expect(headsOf(store)).toHaveLength(1);
  });

  it("reads what a wider filter has, and not what a narrower one has", async () => {
    const [chain, store] = [chainOf(500), new FakeStore()];
    await new Visit(chain, store).read(POSTS, { to: 400 });
    const narrower = new Visit(chain, store);
    expect(await narrower.read(POST_OF_JOB, { to: 400 })).toEqual(truth(chain, POST_OF_JOB, 0, 400));
    expect(rangesOf(narrower)).toEqual([]);
    const wider = new Visit(chain, store);
    for (const filter of [OF_JOB, ALL]) expect(await wider.read(filter, { to: 400 })).toEqual(truth(chain, filter, 0, 400));
    expect(rangesOf(wider)).toEqual(["0-400", "0-400"]);
    const last = new Visit(chain, store);
    for (const filter of FILTERS) expect(await last.read(filter, { to: 400 })).toEqual(truth(chain, filter, 0, 400));
    expect(rangesOf(last)).toEqual([]);
  });

  it("goes on where a reading was broken off", async () => {
    const [chain, store] = [chainOf(500), new FakeStore()];
    const first = new Visit(chain, store);
    first.provider.most = 40;
    await first.read(ALL, {}, { most: 5 });
    const visit = new Visit(chain, store);
    expect(await visit.read(ALL)).toEqual(truth(chain, ALL));
    const [[from]] = visit.provider.ranges as [[number, number]];
    expect(from).toBe(first.provider.ranges.reduce((last, [, to]) => Math.max(last, to + 1), 0));
    expect(from).toBeGreaterThan(100);
  });

  it("goes on where a tab was closed in the middle of a long reading", async () => {
    const [chain, store] = [chainOf(500), new FakeStore()];
    const first = new Visit(chain, store);
    first.provider.most = 10;
    let clock = 0;
    const past = new KeptPast(networkAt(chain), rpcOf(["http://a"], first.provider.fetch), first.shelf, () => clock);
    past.moved(chain.head, false);
    const reading = past.logs(ALL, { from: 0, to: 500, backwards: false });
    for (let pieces = 0; pieces < 20; pieces += 1) {
      await reading.next();
      clock += 300;
    }
    await past.settled(); // and nothing ends the reading
    const visit = new Visit(chain, store);
    expect(await visit.read(ALL)).toEqual(truth(chain, ALL));
    expect(visit.provider.ranges[0]?.[0]).toBeGreaterThan(100);
  });

  it("keeps long ranges in parts", async () => {
    const [chain, store] = [new Chain(), new FakeStore()];
    for (let block = 0; block < 400; block += 1) chain.mine([...SAID, ...SAID, ...SAID]);
    await new Visit(chain, store).read(ALL);
    expect(headsOf(store).length).toBeGreaterThan(3);
    for (const head of headsOf(store)) expect(head.size).toBeLessThan(1.5 * CHUNK);
    const visit = new Visit(chain, store);
    expect(await visit.read(ALL)).toEqual(truth(chain, ALL));
    expect(visit.provider.ranges).toEqual([[400 - DEPTH + 1, 400]]);
  });

  it("to a chain that is younger than 64 blocks keeps nothing", async () => {
    const [chain, store] = [chainOf(DEPTH - 1), new FakeStore()];
    const visit = new Visit(chain, store);
    expect(await visit.read(ALL)).toEqual(truth(chain, ALL));
    expect(visit.provider.requests).toHaveLength(1);
    expect(store.kept.size).toBe(0);
  });

  it("of a page that stays open keeps what has become deep", async () => {
    const [chain, store] = [chainOf(500), new FakeStore()];
    const visit = new Visit(chain, store);
    await visit.read(ALL);
    grow(chain, 600);
    visit.look();
    visit.provider.clear();
    expect(await visit.read(ALL)).toEqual(truth(chain, ALL));
    visit.provider.clear();
    expect(await visit.read(ALL)).toEqual(truth(chain, ALL));
    expect(rangesOf(visit)).toEqual([`${1_100 - DEPTH + 1}-1100`]);
  });

  it("of another market, or by other providers, sees nothing of it", async () => {
    const [chain, store] = [chainOf(300), new FakeStore()];
    await new Visit(chain, store).read(ALL);
    const { contracts } = networkAt(chain);
    for (const network of [{ rpc: ["http://b"] }, { contracts: { ...contracts, Lens: ESCROW } }, { genesisHash: hashOf("x") }]) {
      const visit = new Visit(chain, store, { network });
      expect(await visit.read(ALL)).toEqual(truth(chain, ALL));
      expect(rangesOf(visit)).toEqual(["0-300"]);
    }
    const key = new Visit(chain, store, { network: { rpc: ["http://a/another-key"] } });
    await key.read(ALL, { to: 200 });
    expect(rangesOf(key)).toEqual([]);
    expect(JSON.stringify(headsOf(store))).not.toContain("another-key");
  });
});

describe("a reorg", () => {
  const LENGTH = 150;

  const depths = Array.from({ length: LENGTH }, (_, at) => at + 1);
  const each = depths.filter((depth) => depth <= 20 || Math.abs(depth - 64) <= 4 || depth % 17 === 0 || depth === LENGTH);
  it.each(each)("%i blocks deep drops back to the last log that both chains have", async (depth) => {
    const [chain, store] = [chainOf(LENGTH), new FakeStore()];
    const [stays, comes] = [new Visit(chain, store), new Visit(chain, store)];
    await stays.read(ALL);
    chain.drop(depth);
    grow(chain, depth + 1);
    stays.look(true);
    for (const visit of [stays, new Visit(chain, store), comes]) {
      visit.look(visit === comes);
      visit.provider.clear();
      expect(await visit.read(ALL)).toEqual(truth(chain, ALL));
    }
    const common = LENGTH - depth;
    const again = stays.provider.ranges[0]?.[0] ?? 0;
    // A log is in every third block, one after the block whose number three divides.
    const lastLog = common < 1 ? -1 : common - ((common - 1) % 3);
    expect(again).toBe(depth <= DEPTH ? LENGTH - DEPTH + 1 : lastLog + 1);
  });

  it("while a range is read keeps nothing of the chain that was dropped", async () => {
    for (const depth of [10, 64, 65, 100, 140]) {
      for (const piece of [1, 3, 5, 8]) {
        const [chain, store] = [chainOf(LENGTH), new FakeStore()];
        const visit = new Visit(chain, store);
        visit.provider.most = 20;
        let asked = 0;
        visit.provider.before = (method) => {
          asked += method === "eth_getLogs" ? 1 : 0;
          if (method === "eth_getLogs" && asked === piece) {
            chain.drop(depth);
            grow(chain, depth + 1);
          }
          return undefined;
        };
        await visit.read(ALL, { to: LENGTH });
        visit.provider.before = () => undefined;
        visit.look(true);
        expect(await visit.read(ALL)).toEqual(truth(chain, ALL));
        expect(await new Visit(chain, store).read(ALL)).toEqual(truth(chain, ALL));
      }
    }
  });

  it("of few logs among many, while these are read, leaves none of them", async () => {
    for (const lost of [700, 1_500, 2_300]) {
      const [chain, store] = [new Chain(), new FakeStore()];
      for (let block = 0; block < 3_000; block += 1) chain.mine([SAID[0] as Said]);
      const visit = new Visit(chain, store);
      visit.provider.most = 100;
      visit.provider.before = (method) => {
        const next = (visit.provider.ranges.at(-1)?.[1] ?? 0) + 1;
        if (method !== "eth_getLogs" || next < lost) return undefined;
        visit.provider.before = () => undefined;
        // The last three blocks that were read are replaced, and all that was not read yet.
        chain.drop(chain.head.number - (next - 4));
        while (chain.head.number < 3_000) chain.mine([SAID[0] as Said]);
        return undefined;
      };
      await visit.read(ALL, { to: 3_000 });
      expect(chain.head.number).toBe(3_000);
      visit.look(true);
      expect(await visit.read(ALL)).toEqual(truth(chain, ALL));
      expect(await new Visit(chain, store).read(ALL)).toEqual(truth(chain, ALL));
    }
  });

  it("is found in few requests, however many logs are kept", async () => {
    const [chain, store] = [new Chain(), new FakeStore()];
    for (let block = 0; block < 3_000; block += 1) chain.mine([SAID[0] as Said]);
    await new Visit(chain, store).read(ALL);
    chain.drop(1_000);
    grow(chain, 1_200);
    const visit = new Visit(chain, store);
    expect(await visit.read(ALL)).toEqual(truth(chain, ALL));
    expect(rangesOf(visit)).toEqual(["2001-3200"]);
    expect(visit.provider.requests.length).toBeLessThan(7);
  });

  it("to a shorter chain shows nothing of the longer one, and drops it once its end is passed", async () => {
    const [chain, store] = [chainOf(300), new FakeStore()];
    await new Visit(chain, store).read(ALL);
    chain.drop(200);
    grow(chain, 20);
    const visit = new Visit(chain, store);
    expect(await visit.read(ALL)).toEqual(truth(chain, ALL));
    grow(chain, 400);
    const later = new Visit(chain, store);
    expect(await later.read(ALL)).toEqual(truth(chain, ALL));
    for (const { mark } of headsOf(store)) expect(chain.blocks[mark.number]?.hash).toBe(mark.hash);
  });
});

describe("a store", () => {
  it.each(["heads", "text", "write"] as const)("whose %s fail costs nothing but the cache", async (broken) => {
    const [chain, store] = [chainOf(300), new FakeStore()];
    await new Visit(chain, store).read(ALL);
    store.fault = (call) => {
      if (call === broken) throw new Error("QuotaExceededError");
    };
    const visit = new Visit(chain, store);
    for (const filter of FILTERS) expect(await visit.read(filter)).toEqual(truth(chain, filter));
    expect(await visit.past.times([hashOf("x")])).toEqual(new Map());
    visit.past.keepTimes(new Map([[hashOf("x"), 1]]));
    await visit.past.settled();
  });

  it.each(["heads", "text", "write"] as const)("whose %s hang are not waited for", async (broken) => {
    const [chain, store] = [chainOf(300), new FakeStore()];
    await new Visit(chain, store).read(ALL);
    store.fault = (call) => (call === broken ? new Promise(() => undefined) : undefined);
    const visit = new Visit(chain, store);
    const began = performance.now();
    for (const filter of FILTERS) {
      const found: string[] = [];
      for await (const { logs } of visit.past.logs(filter, { from: 0, to: 300, backwards: false })) {
        found.push(...logs.map((log) => `${log.blockHash}:${log.logIndex}`));
      }
      expect(found).toEqual(truth(chain, filter));
    }
    expect(await visit.past.times([hashOf("x")])).toEqual(new Map());
    await visit.past.forget();
    await visit.past.settled();
    // A read is waited for once, for 50 ms, and a write for ten times as long.
    expect(performance.now() - began).toBeLessThan(2_000);
  });

  it("that opens late is used from then on", async () => {
    const [chain, store] = [chainOf(300), new FakeStore()];
    await new Visit(chain, store).read(ALL, { from: 100 });
    let opens = (): void => undefined;
    const opened = new Promise<void>((resolve) => (opens = resolve));
    store.fault = (call) => (call === "heads" ? opened : undefined);
    const visit = new Visit(chain, store);
    visit.provider.most = 50;
    let found = 0;
    for await (const { logs } of visit.past.logs(ALL, { from: 0, to: 300, backwards: false })) {
      found += logs.length;
      opens();
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    expect(found).toBe(truth(chain, ALL).length);
    await visit.past.settled();
    expect(visit.provider.ranges.filter(([from, to]) => from <= 300 - DEPTH && to >= 100)).toEqual([]);
  });

  it("that was written to in vain is not written to again", async () => {
    const [chain, store] = [chainOf(300), new FakeStore()];
    let tries = 0;
    store.fault = (call) => {
      if (call !== "write") return;
      tries += 1;
      throw new Error("QuotaExceededError");
    };
    const visit = new Visit(chain, store);
    for (const filter of FILTERS) await visit.read(filter);
    expect(tries).toBe(1);
  });

  type Edit = (store: FakeStore, id: string, head: Head, text: string) => void;
  const asHead = (change: Record<string, unknown>): Edit => (store, id, head) => void store.kept.set(id, { ...head, ...change });
  const asLogs = (change: (logs: Record<string, unknown>[]) => unknown): Edit => (store, id, head, text) => {
    const changed = JSON.stringify(change(JSON.parse(text) as Record<string, unknown>[]));
    store.texts.set(id, changed);
    store.kept.set(id, { ...head, size: changed.length });
  };
  const first = (change: Record<string, unknown>) => asLogs(([log, ...rest]) => [{ ...log, ...change }, ...rest]);
  const CORRUPT: readonly (readonly [string, Edit])[] = [
    ["of another version", asHead({ version: 2 })],
    ["whose head is no object", (store, id) => void store.kept.set(id, null)],
    ["without a range", asHead({ from: undefined })],
    ["whose range is turned round", asHead({ from: 300, to: 200 })],
    ["whose mark is before its end", asHead({ mark: { number: 3, hash: hashOf("x") } })],
    ["whose mark has no hash", asHead({ mark: { number: 240, hash: "0x1" } })],
    ["whose mark is of no chain", asHead({ mark: { number: 240, hash: hashOf("x") } })],
    ["whose filter is none", asHead({ kind: "{}" })],
    ["whose filter is no JSON", asHead({ kind: "[" })],
    ["whose filter is another", asHead({ kind: kindOf(POSTS) })],
    ["of another size", asHead({ size: 3 })],
    ["without a text", (store, id) => void store.texts.delete(id)],
    ["whose text is a number", (store, id) => void store.texts.set(id, 7)],
    ["that was cut", (store, id, head, text) => (store.texts.set(id, text.slice(0, -1)), void store.kept.set(id, { ...head, size: head.size - 1 }))],
    ["whose text is no list", asLogs(() => ({}))],
    ["with null for a log", asLogs((logs) => [null, ...logs])],
    ["with a log of another contract", first({ address: `0x${"77".repeat(20)}` })],
    ["with a log beyond its range", first({ blockNumber: "0x12c" })],
    ["with a log twice", asLogs((logs) => [logs[0], ...logs])],
    ["with five topics", first({ topics: Array<string>(5).fill(POSTED) })],
    ["with half a byte", first({ data: "0x1" })],
    ["with two hashes of one block", first({ blockNumber: "0x4", logIndex: "0x7" })],
    ["that holds another hash of its mark", asLogs((logs) => [...logs, { ...logs[0], blockNumber: `0x${(300 - DEPTH).toString(16)}` }])],
  ];

  it.each(CORRUPT)("with an entry %s drops it, and shows nothing of it", async (_, edit) => {
    const [chain, store] = [chainOf(300), new FakeStore()];
    await new Visit(chain, store).read(ALL);
    const [head] = headsOf(store) as [Head];
    edit(store, head.id, head, String(store.texts.get(head.id)));
    const visit = new Visit(chain, store);
    for (const filter of FILTERS) expect(await visit.read(filter)).toEqual(truth(chain, filter));
    const again = new Visit(chain, store);
    for (const filter of FILTERS) expect(await again.read(filter)).toEqual(truth(chain, filter));
    expect(store.kept.has(head.id) && JSON.stringify(store.kept.get(head.id)) === JSON.stringify(head)).toBe(false);
  });

  it("does not hold more than it may, and drops what was used longest ago", async () => {
    const [chain, store] = [chainOf(400), new FakeStore()];
    let clock = 1_000;
    const bounds = { most: 30_000, now: () => (clock += 1) };
    const asked = async (from: number): Promise<string[]> => {
      const visit = new Visit(chain, store, { bounds });
      expect(await visit.read(ALL, { from, to: from + 60 })).toEqual(truth(chain, ALL, from, from + 60));
      expect(store.size).toBeLessThanOrEqual(30_000);
      return rangesOf(visit);
    };
    for (const from of [0, 100, 200]) expect(await asked(from)).not.toEqual([]);
    expect(await asked(0)).toEqual([]);
    expect(await asked(270)).not.toEqual([]);
    expect(await asked(0)).toEqual([]);
    expect(await asked(100)).not.toEqual([]);
  });

  it("keeps the beginning of a reading that is longer than all it may hold", async () => {
    const [chain, store] = [chainOf(1_000), new FakeStore()];
    const bounds = { most: 40_000 };
    const first = new Visit(chain, store, { bounds });
    for (let from = 0; from < 900; from += 50) await first.read(ALL, { from, to: from + 49 });
    expect(store.size).toBeLessThanOrEqual(40_000);
    const visit = new Visit(chain, store, { bounds });
    expect(await visit.read(ALL)).toEqual(truth(chain, ALL));
    expect(visit.provider.ranges[0]?.[0]).toBeGreaterThan(90);
  });

  it("with entries of the future still makes room", async () => {
    const [chain, store] = [chainOf(400), new FakeStore()];
    await new Visit(chain, store, { bounds: { most: 40_000, now: () => 9e12 } }).read(ALL, { to: 150 });
    const visit = new Visit(chain, store, { bounds: { most: 40_000, now: () => 1e12 } });
    await visit.read(ALL, { from: 200, to: 330 });
    const again = new Visit(chain, store);
    await again.read(ALL, { from: 200, to: 330 });
    expect(rangesOf(again)).toEqual([]);
  });

  it("that holds too much already is made smaller", async () => {
    const [chain, store] = [chainOf(400), new FakeStore()];
    for (const [from, to] of [[0, 100], [120, 330]]) await new Visit(chain, store).read(ALL, { from: from as number, to: to as number });
    const most = store.size - 1;
    await new Visit(chain, store, { bounds: { most } }).read(ALL, { from: 120, to: 200 });
    expect(store.size).toBeLessThanOrEqual(most);
  });
});

describe("a provider", () => {
  it.each([
    ["refuses blocks", { error: { code: -32_000, message: "no" } }],
    ["has no such block", { result: null }],
    ["answers nonsense", { result: { number: "x" } }],
  ])("that %s is asked for logs alone, and nothing is dropped", async (_, answer) => {
    const [chain, store] = [chainOf(300), new FakeStore()];
    await new Visit(chain, store).read(ALL);
    const before = [...store.kept.keys()];
    const visit = new Visit(chain, store);
    visit.provider.before = (method) => (method === "eth_getBlockByNumber" ? answer : undefined);
    for (const filter of FILTERS) expect(await visit.read(filter)).toEqual(truth(chain, filter));
    expect(visit.provider.requests).toHaveLength(FILTERS.length + 1);
    expect([...store.kept.keys()]).toEqual(before);
  });

  it("that refuses a newer mark leaves the older one", async () => {
    const [chain, store] = [chainOf(300), new FakeStore()];
    const visit = new Visit(chain, store);
    await visit.read(ALL);
    grow(chain, 700);
    visit.look();
    visit.provider.before = (method) => (method === "eth_getBlockByNumber" ? { result: null } : undefined);
    visit.provider.clear();
    expect(await visit.read(ALL)).toEqual(truth(chain, ALL));
    expect(rangesOf(visit)).toEqual([`${300 - DEPTH + 1}-1000`]);
  });

  it("that lags behind what is kept drops nothing of it", async () => {
    const [chain, store] = [chainOf(300), new FakeStore()];
    await new Visit(chain, store).read(ALL);
    const visit = new Visit(chain, store);
    visit.past.moved(chain.blocks[100] as (typeof chain.blocks)[number], true);
    expect(await visit.read(ALL, { to: 100 })).toEqual(truth(chain, ALL, 0, 100));
    const again = new Visit(chain, store);
    await again.read(ALL, { to: 300 - DEPTH });
    expect(rangesOf(again)).toEqual([]);
  });
});

describe("the seconds of blocks", () => {
  it("are asked for once", async () => {
    const [chain, store] = [chainOf(100), new FakeStore()];
    const blocks = chain.blocks.slice(10, 30).map((block) => block.hash);
    for (const requests of [1, 0, 0]) {
      const visit = new Visit(chain, store);
      const { times } = await visit.market.about(blocks, []);
      expect(blocks.map((block) => times.get(block))).toEqual(chain.blocks.slice(10, 30).map((block) => block.time));
      expect(visit.provider.requests.flat().filter((one) => one === "eth_getBlockByHash")).toHaveLength(20 * requests);
      await visit.past.settled();
    }
    const more = new Visit(chain, store);
    await more.market.about(chain.blocks.slice(20, 40).map((block) => block.hash), []);
    await more.past.settled();
    expect(headsOf(store)).toHaveLength(1);
  });

  it.each(["[[1,2]]", "{}", "[", '[["0x12",5]]', `[["${hashOf("x")}",-1]]`, `[["${hashOf("x")}",1,2]]`])(
    "that are none are asked for anew: %s",
    async (text) => {
      const [chain, store] = [chainOf(100), new FakeStore()];
      const [block] = chain.blocks.slice(50) as [(typeof chain.blocks)[number]];
      const first = new Visit(chain, store);
      await first.market.about([block.hash], []);
      await first.past.settled();
      const [head] = headsOf(store) as [Head];
      store.texts.set(head.id, text);
      store.kept.set(head.id, { ...head, size: text.length });
      const visit = new Visit(chain, store);
      expect((await visit.market.about([block.hash], [])).times.get(block.hash)).toBe(block.time);
      await visit.past.settled();
      expect(store.kept.has(head.id)).toBe(false);
    },
  );
});

describe("a reading that would accuse", () => {
  const lying = async (): Promise<never> => Promise.reject(new HearthError("RPC_LIES", "no such log"));

  it("over what was kept is run again without it", async () => {
    const [chain, store] = [chainOf(300), new FakeStore()];
    const poisoned = new Visit(chain, store);
    poisoned.provider.before = (method) => (method === "eth_getLogs" ? { result: [] } : undefined);
    await poisoned.read(ALL);
    const visit = new Visit(chain, store);
    const whole = async (): Promise<string[]> => visit.read(ALL);
    const found = await visit.market.sure(whole, (logs) => logs.length < 50);
    expect(found).toEqual(truth(chain, ALL));
    const again = new Visit(chain, store);
    expect(await again.market.sure(async () => again.read(ALL), (logs) => logs.length < 50)).toEqual(truth(chain, ALL));
    expect(rangesOf(again)).toEqual([`${300 - DEPTH + 1}-300`]);
  });

  it("over what providers say accuses at once", async () => {
    const visit = new Visit(chainOf(300), new FakeStore());
    let runs = 0;
    await expect(visit.market.sure(async () => ((runs += 1), lying()))).rejects.toThrow("no such log");
    await visit.read(ALL);
    await visit.market.sure(async () => (runs += 1), () => true);
    expect(runs).toBe(2);
  });

  it("that fails for another reason keeps what there is", async () => {
    const [chain, store] = [chainOf(300), new FakeStore()];
    await new Visit(chain, store).read(ALL);
    const visit = new Visit(chain, store);
    await visit.read(ALL);
    const down = async (): Promise<never> => Promise.reject(new HearthError("RPC_UNAVAILABLE", "down"));
    await expect(visit.market.sure(down)).rejects.toThrow("down");
    expect(store.kept.size).toBe(1);
  });
});

// Two tabs over one store, a chain that grows and is reorganised, a store that rots: whatever comes in whatever order,
// what is read is what the chain says.
describe("whatever happens", () => {
  it.each(Array.from({ length: 150 }, (_, seed) => seed))("reads the chain: seed %i", async (seed) => {
    const roll = dice(seed);
    const [chain, store] = [chainOf(60 + roll(150)), new FakeStore()];
    const bounds = roll(3) === 0 ? { most: 20_000 } : {};
    const tabs = [new Visit(chain, store, { bounds }), new Visit(chain, store, { bounds })];
    for (let step = 0; step < 40; step += 1) {
      const place = roll(2);
      const visit = tabs[place] as Visit;
      switch (roll(9)) {
        case 0:
          for (let more = roll(80); more > 0; more -= 1) chain.mine(SAID.filter(() => roll(6) === 0));
          for (const tab of tabs) tab.look();
          break;
        case 1: {
          const depth = 1 + roll(roll(2) === 0 ? 20 : chain.head.number - 1);
          chain.drop(depth);
          for (let more = roll(2 * depth); more > 0; more -= 1) chain.mine(SAID.filter(() => roll(6) === 0));
          for (const tab of tabs) tab.look(true);
          break;
        }
        case 2:
          tabs[place] = new Visit(chain, store, { bounds });
          break;
        case 3: {
          const ids = [...store.texts.keys()];
          const id = ids[roll(ids.length + 1)];
          if (id !== undefined) store.texts.set(id, roll(2) === 0 ? "[]" : String(store.texts.get(id)).replace(/[0-9]/, "f"));
          break;
        }
        case 4:
          visit.provider.most = 1 + roll(60);
          break;
        case 5:
          if (roll(4) === 0) await visit.past.forget().then(() => visit.past.settled());
          break;
        default: {
          const to = roll(chain.head.number + 1);
          const range = { from: roll(to + 1), to, backwards: roll(2) === 0 };
          const filter = FILTERS[roll(FILTERS.length)] as Filter;
          if (roll(4) === 0) await visit.read(filter, range, { most: 1 + roll(4) });
          const [found, beside] = await Promise.all([visit.read(filter, range), (tabs[1 - place] as Visit).read(POSTS, { ...range })]);
          expect(found).toEqual(truth(chain, filter, range.from, range.to));
          expect(beside).toEqual(truth(chain, POSTS, range.from, range.to));
        }
      }
      if (bounds.most !== undefined) expect(store.size).toBeLessThanOrEqual(2 * bounds.most);
    }
  });
});
