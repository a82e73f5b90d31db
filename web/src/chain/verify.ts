// The books of a market, recomputed here: every event of Escrow and JobRegistry replayed, and compared with what storage
// says of each lock, credit, unit and stake at one block. Mirrors hearth/client/audit/verify.py, but for results and for how the
// contracts were created, which `hearth net verify` looks at.

import { bookFaults, type Books, holdFaults, stakeFaults } from "../core/books";
import type { Hex } from "../core/bytes";
import { Replay, type UnitStatus } from "../core/replay";
import { Strays } from "../core/logs";
import { eventsIn, type Posted } from "../core/posted";
import { storedUnit } from "../core/stored";
import { type Header, leasesOf } from "../core/types";
import { ZERO_ADDRESS } from "../generated/bounds";
import type { Block } from "./answers";
import { arraysOf, readLeases, readRows, statusOf } from "./leases";
import { Span } from "./logs";
import { PAGE } from "./lens";
import type { Market } from "./market";
import { readFleet } from "./nodes";

// Faults that are listed; there may be more.
const MAX_FAULTS = 100;

export interface Verdict {
  readonly at: Block;
  readonly jobs: number;
  readonly units: number;
  readonly settled: number;
  readonly failed: number;
  readonly reclaimed: number;
  // What Escrow owes by the events, and holds, in base units.
  readonly owed: bigint;
  readonly held: bigint;
  readonly solvent: boolean;
  readonly faults: readonly string[];
  // What was stepped over among the logs, "" for nothing.
  readonly strays: string;
}

interface Stored {
  readonly posted: Posted;
  readonly header: Header | null;
  readonly units: readonly UnitStatus[];
}

// Replay and compare; `tell` hears up to which block it has read. Throws what reading throws: books that were read in part
// say nothing.
export function verify(market: Market, at: Block, tell: (block: number) => void): Promise<Verdict> {
  return market.sure(
    () => compare(market, at, tell),
    (verdict) => !verdict.solvent,
  );
}

async function compare(market: Market, at: Block, tell: (block: number) => void): Promise<Verdict> {
  const { network } = market;
  const strays = new Strays();
  const replayed = await replay(market, at, tell, strays);
  const { books } = replayed;
  const jobs = await readJobs(market, [...replayed.posted.values()], at);
  const { overview, nodes } = await readFleet(market, at);
  const here = new Set(nodes.filter((node) => node.owner !== ZERO_ADDRESS).map((node) => node.id));

  const holds = new Map<Hex, bigint>();
  const told = jobs.map(({ posted, header, units }) => replayed.compare(posted, header, units, here, holds));
  const credits = await readCredits(market, books, at);
  const locks = await readLocks(market, books, holds, at);
  const { held, tracked } = overview;
  const { JobRegistry, NodeRegistry } = network.contracts;
  const faults = [
    ...bookFaults(books, { held, tracked, credits, locks }, network.asset.address !== null),
    ...replayed.faults,
    ...stakeFaults(books, nodes, NodeRegistry),
    ...holdFaults(books, holds, JobRegistry, locks.get(JobRegistry) ?? new Map()),
  ];
  return {
    at,
    jobs: jobs.length,
    units: jobs.reduce((sum, { posted }) => sum + leasesOf(posted.terms), 0),
    settled: told.reduce((sum, one) => sum + one.settled, 0),
    failed: told.reduce((sum, one) => sum + one.failed, 0),
    reclaimed: replayed.reclaimed,
    owed: books.total,
    held,
    solvent: faults.length === 0,
    faults: faults.slice(0, MAX_FAULTS),
    strays: strays.inWords(),
  };
}

async function replay(market: Market, at: Block, tell: (block: number) => void, strays: Strays): Promise<Replay> {
  const { network } = market;
  const filter = { addresses: [network.contracts.Escrow, network.contracts.JobRegistry], topics: [] };
  const range = { from: network.deployBlock, to: at.number, backwards: false };
  const replayed = new Replay(network, strays);
  for await (const piece of market.past.logs(filter, range, new Span())) {
    for (const event of eventsIn(piece.logs, network, strays)) replayed.add(event);
    tell(piece.to);
  }
  replayed.end();
  return replayed;
}

async function readJobs(market: Market, posted: readonly Posted[], at: Block): Promise<Stored[]> {
  const found: Stored[] = [];
  for await (const rows of readRows(market, posted, at)) {
    const leases = await readLeases(market, arraysOf(rows), at);
    for (const { posted: one, status, header } of rows) {
      const { word, second, accused, kept } = status;
      const only = (): UnitStatus[] => [statusOf(storedUnit(word, second, accused), kept)];
      const units = header === null ? only() : (leases.get(one.jobId) ?? []);
      found.push({ posted: one, header, units });
    }
  }
  return found;
}

async function readCredits(market: Market, books: Books, at: Block): Promise<Map<Hex, bigint>> {
  return readMany([...books.credits.keys()], async (some) => (await market.read(at, market.credits(some)))[0]);
}

async function readLocks(
  market: Market,
  books: Books,
  holds: ReadonlyMap<Hex, bigint>,
  at: Block,
): Promise<Map<Hex, Map<Hex, bigint>>> {
  const { JobRegistry } = market.network.contracts;
  const wanted = new Map([...books.locks].map(([controller, keys]) => [controller, new Set(keys.keys())]));
  wanted.set(JobRegistry, new Set([...(wanted.get(JobRegistry) ?? []), ...holds.keys()]));
  const found = new Map<Hex, Map<Hex, bigint>>();
  for (const [controller, keys] of wanted) {
    const read = async (some: readonly Hex[]) => (await market.read(at, market.locks(controller, some)))[0];
    found.set(controller, await readMany([...keys], read));
  }
  return found;
}

async function readMany(
  keys: readonly Hex[],
  read: (some: readonly Hex[]) => Promise<readonly bigint[]>,
): Promise<Map<Hex, bigint>> {
  const found = new Map<Hex, bigint>();
  for (let start = 0; start < keys.length; start += PAGE) {
    const some = keys.slice(start, start + PAGE);
    const amounts = await read(some);
    some.forEach((key, place) => found.set(key, amounts[place] ?? 0n));
  }
  return found;
}
