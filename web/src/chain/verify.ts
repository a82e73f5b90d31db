// The books of a market, recomputed here: every event of Escrow and JobRegistry replayed, and compared with what storage
// says of each lock, credit, unit and stake at one block. Mirrors hearth/client/verify.py, but for results and for how the
// contracts were created, which `hearth net verify` looks at.

import { bookFaults, Books, holdFaults, stakeFaults } from "../core/books";
import type { Hex } from "../core/bytes";
import type { MarketEvent } from "../core/events";
import { JobFold } from "../core/fold";
import { Strays } from "../core/logs";
import { jobHolds } from "../core/money";
import { eventsIn, type Posted, postedOf } from "../core/posted";
import { jobOf, type StoredUnit, storedUnit } from "../core/stored";
import { lockKey } from "../core/terms";
import { type Header, leasesOf, nameOf, type Unit } from "../core/types";
import { OUTCOME, STATE } from "../generated/states";
import type { Block } from "./answers";
import { readLeases } from "./leases";
import { Span } from "./logs";
import { type Market, PAGE } from "./market";
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

interface History {
  readonly books: Books;
  readonly folds: ReadonlyMap<Hex, JobFold>;
  readonly reclaimed: number;
  readonly strays: Strays;
}

interface Stored {
  readonly posted: Posted;
  readonly header: Header | null;
  readonly units: readonly StoredUnit[];
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
  const { books, folds, reclaimed, strays } = await replay(market, at, tell);
  const stored = await readJobs(market, [...folds.values()].map((fold) => fold.posted), at);
  const { overview, nodes } = await readFleet(market, at);
  const registry = network.contracts.JobRegistry;

  const faults: string[] = [];
  const holds = new Map<Hex, bigint>();
  let [units, settled, failed] = [0, 0, 0];
  for (const one of stored) {
    const { terms, jobId } = one.posted;
    const now = one.units.map(({ unit }) => unit);
    const key = lockKey(terms.submitter);
    holds.set(key, (holds.get(key) ?? 0n) + jobHolds(terms, one.header, now));
    faults.push(...unitFaults(jobId, folds.get(jobId), now, one.header));
    units += leasesOf(terms);
    settled += now.filter((unit) => unit.state === STATE.SETTLED).length;
    failed += now.filter(hasFailed).length;
  }
  const held = { held: overview.held, tracked: overview.tracked, credits: await readCredits(market, books, at) };
  const locks = await readLocks(market, books, holds, at);
  faults.push(...bookFaults(books, { ...held, locks }, network.asset.address !== null));
  faults.push(...holdFaults(books, holds, registry, locks.get(registry) ?? new Map()));
  faults.push(...stakeFaults(books, nodes, network.contracts.NodeRegistry));
  return {
    at,
    jobs: stored.length,
    units,
    settled,
    failed,
    reclaimed,
    owed: books.total,
    held: overview.held,
    solvent: faults.length === 0,
    faults: faults.slice(0, MAX_FAULTS),
    strays: strays.inWords(),
  };
}

const hasFailed = (unit: Unit): boolean =>
  unit.state === STATE.REFUNDED || (unit.state === STATE.SETTLED && unit.outcome !== OUTCOME.OK);

async function replay(market: Market, at: Block, tell: (block: number) => void): Promise<History> {
  const { network } = market;
  const filter = { addresses: [network.contracts.Escrow, network.contracts.JobRegistry], topics: [] };
  const range = { from: network.deployBlock, to: at.number, backwards: false };
  const [books, folds, strays] = [new Books(), new Map<Hex, JobFold>(), new Strays()];
  let reclaimed = 0;
  for await (const piece of market.past.logs(filter, range, new Span())) {
    const events = [...eventsIn(piece.logs, network, strays)];
    // An untouched lease is open since its job's post: only posts need the second of their block.
    const posts = events.filter((event) => event.name === "JobPosted").map((event) => event.log.blockHash);
    const { times } = await market.about(posts, []);
    for (const event of events) {
      books.apply(event);
      if (event.name === "Reclaimed") reclaimed += 1;
      fold(event, folds, times, market, strays);
    }
    tell(piece.to);
  }
  return { books, folds, reclaimed, strays };
}

function fold(
  event: MarketEvent,
  folds: Map<Hex, JobFold>,
  times: ReadonlyMap<Hex, number>,
  { network }: Market,
  strays: Strays,
): void {
  if (event.name === "JobPosted") {
    const job = event.jobId.slice(0, 14);
    if (folds.has(event.jobId)) strays.note(event.log, `job ${job} is posted already`);
    else folds.set(event.jobId, new JobFold(postedOf(event, network), times.get(event.log.blockHash) ?? 0));
    return;
  }
  if (!("jobId" in event)) return;
  const why = folds.get(event.jobId)?.add(event) ?? `job ${event.jobId.slice(0, 14)} was not posted`;
  if (why !== "") strays.note(event.log, why);
}

// Compare a job's touched units in storage with its last events.
function unitFaults(job: Hex, folded: JobFold | undefined, now: readonly Unit[], header: Header | null): string[] {
  return now.flatMap((unit, index) => {
    const told = folded?.units[index]?.unit;
    const name = `unit ${index} of ${job.slice(0, 14)}`;
    if (told === undefined) {
      const quiet = unit.state === STATE.OPEN || header === null || header.closed;
      return quiet ? [] : [`${name} is ${nameOf(STATE, unit.state)} without an event`];
    }
    const ends = `${name}: its events end in ${nameOf(STATE, told.state)}, storage says ${nameOf(STATE, unit.state)}`;
    return same(told, unit) ? [] : [ends];
  });
}

const same = (a: Unit, b: Unit): boolean =>
  (Object.keys(a) as (keyof Unit)[]).every((lane) => a[lane] === b[lane]);

async function readJobs(market: Market, posted: readonly Posted[], at: Block): Promise<Stored[]> {
  const found: Stored[] = [];
  for (let start = 0; start < posted.length; start += PAGE) {
    const some = posted.slice(start, start + PAGE);
    const [page] = await market.read(at, market.status(some.map((one) => ({ job: one.jobId, index: 0 }))));
    const headers = page.map(({ job }) => jobOf(job).header);
    const arrays = some.flatMap(({ jobId: job }, place) => {
      const header = headers[place];
      return header ? [{ job, header }] : [];
    });
    const leases = await readLeases(market, arrays, at);
    for (const [place, one] of some.entries()) {
      const { word, second, accused } = page[place] ?? { word: 0n, second: 0n, accused: 0n };
      const header = headers[place] ?? null;
      const units = header === null ? [storedUnit(word, second, accused)] : (leases.get(one.jobId) ?? []);
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
