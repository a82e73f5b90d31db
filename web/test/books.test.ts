import { describe, expect, it } from "vitest";

import { bookFaults, Books, holdFaults, stakeFaults, type StoredBooks } from "../src/core/books";
import type { Hex } from "../src/core/bytes";
import { type Checkpoint, checkpointsIn } from "../src/core/checkpoints";
import { isUnitEvent, type MarketEvent } from "../src/core/events";
import { JobFold } from "../src/core/job-from-events";
import { Replay, type UnitStatus } from "../src/core/replay";
import { Strays } from "../src/core/logs";
import { eventsIn, misplaced, type Posted } from "../src/core/posted";
import { costOf, costUntilAnEnd, receiptOf } from "../src/core/receipt";
import { bestOf, jobOf, keptResult, resumedFrom, type StoredUnit, storedUnit } from "../src/core/stored";
import { type Header, isTerminal, windowEnd } from "../src/core/types";
import { type Asset, showAmount } from "../src/core/units";
import { failedCount, okCount, stateOf, tallyOf, labelOf, verdictOf, viewOf } from "../src/core/view";
import { packHeader, packUnit, unpackHeader } from "../src/core/words";
import { STATE } from "../src/generated/states";
import { type Brief, type Life, livesOf, logOf, marketOf } from "./lives";

interface Job {
  readonly job: Hex;
  readonly header: string | null;
  readonly units: readonly { readonly words: readonly [string, string, string]; readonly kept: readonly string[] }[];
  readonly told: { readonly settled: number; readonly failed: number; readonly results: readonly number[] };
  readonly facts: Readonly<Record<string, unknown>>;
  readonly checkpoints: readonly (readonly [number, readonly Readonly<Record<string, unknown>>[]])[];
  readonly receipt: Readonly<Record<string, unknown>>;
}

interface Told extends Life {
  readonly asset: Asset;
  readonly locks: readonly (readonly [Hex, Hex, string])[];
  readonly credits: readonly (readonly [Hex, string])[];
  readonly total: string;
  readonly held: string;
  readonly tracked: string;
  readonly reclaimed: number;
  readonly nodes: readonly (readonly [number, string, boolean])[];
  readonly holds: readonly (readonly [Hex, string])[];
  readonly faults: readonly string[];
  readonly steps: readonly { block: number; job: Hex; word: string; units: readonly string[] }[];
  readonly jobs: readonly Job[];
  readonly altered: readonly {
    readonly why: string;
    readonly edits: readonly (readonly [number, Brief | null])[];
    readonly faults: readonly string[];
    readonly strays: number;
    readonly first: readonly string[];
  }[];
}

const markets = livesOf<Told>();
const hex = (value: bigint): string => `0x${value.toString(16)}`;

function eventsOf(told: Told, briefs = told.logs, strays = new Strays()): MarketEvent[] {
  return [...eventsIn(briefs.map((brief) => logOf(brief, told)), marketOf(told), strays)];
}

function storedBooks(told: Told): StoredBooks {
  const locks = new Map<Hex, Map<Hex, bigint>>();
  for (const [controller, key, amount] of told.locks) {
    locks.set(controller, (locks.get(controller) ?? new Map<Hex, bigint>()).set(key, BigInt(amount)));
  }
  const credits = new Map(told.credits.map(([account, amount]) => [account, BigInt(amount)]));
  return { locks, credits, held: BigInt(told.held), tracked: BigInt(told.tracked) };
}

const storedUnits = (job: Job): StoredUnit[] =>
  job.units.map(({ words }) => storedUnit(...(words.map(BigInt) as [bigint, bigint, bigint])));

const headerOf = (job: Job): Header | null => (job.header === null ? null : unpackHeader(BigInt(job.header)));

// What `hearth net verify` finds, governance, creation and stored results aside.
function verified(told: Told, briefs: readonly Brief[]): { history: Replay; faults: string[]; strays: Strays } {
  const strays = new Strays();
  const history = new Replay(marketOf(told), strays);
  for (const event of eventsOf(told, briefs, strays)) history.add(event);
  history.end();
  const stored = storedBooks(told);
  const nodes = told.nodes.map(([id, stake]) => ({ id, stake: BigInt(stake) }));
  const here = new Set(told.nodes.filter(([, , owned]) => owned).map(([id]) => id));
  const faults = [...bookFaults(history.books, stored, told.asset.address !== null), ...history.faults];
  faults.push(...stakeFaults(history.books, nodes, told.contracts.NodeRegistry));
  const before = history.faults.length;
  const holds = new Map<Hex, bigint>();
  for (const posted of history.posted.values()) {
    const job = told.jobs.find((one) => one.job === posted.jobId) as Job;
    const units: UnitStatus[] = storedUnits(job).map((view, at) => ({
      view,
      kept: resumedFrom(view.unit.resume, (job.units[at]?.kept ?? []).map(BigInt)),
    }));
    const { settled, failed, results } = history.compare(posted, headerOf(job), units, here, holds);
    expect({ settled, failed, results: [...results.keys()] }).toEqual(job.told);
  }
  faults.push(...history.faults.slice(before));
  const registry = told.contracts.JobRegistry;
  faults.push(...holdFaults(history.books, holds, registry, stored.locks.get(registry) ?? new Map()));
  return { history, faults, strays };
}

describe.each(Object.entries(markets))("a %s market", (_, told) => {
  it("has the books of the library", () => {
    const { history, faults, strays } = verified(told, told.logs);
    const { books } = history;
    const locks = [...books.locks].flatMap(([owner, keys]) => [...keys].map(([key, one]) => [owner, key, `${one}`]));
    // The library lists locks by their first event, the page by controller.
    expect(locks.map(String).sort()).toEqual(told.locks.map(String).sort());
    expect([...books.credits].map(([account, amount]) => [account, `${amount}`])).toEqual(told.credits);
    expect(`${books.total}`).toBe(told.total);
    expect([history.reclaimed, faults, strays.count]).toEqual([told.reclaimed, told.faults, 0]);
    expect([...history.posted.keys()]).toEqual(told.jobs.map((job) => job.job));
  });

  it.each(told.altered.map((one) => [one.why, one] as const))("sees where %s", (why, one) => {
    const { edits, faults, strays, first } = one;
    const places = new Set(edits.map(([at]) => at));
    const briefs = told.logs.flatMap((brief, at) =>
      places.has(at) ? edits.flatMap(([place, log]) => (place === at && log !== null ? [log] : [])) : [brief],
    );
    const found = verified(told, briefs);
    // A job is what posted it first.
    for (const { log } of found.history.posted.values()) expect(log.logIndex).toBeLessThan(1_000);
    // Of a closed array the library does not ask that each unit has an event.
    expect(faults.length + strays > 0).toBe(!why.includes("closed array"));
    expect([found.faults, found.strays.count, found.strays.first]).toEqual([faults, strays, first]);
  });

  it("is short where Escrow holds less, or counts otherwise", () => {
    const books = new Books();
    for (const event of eventsOf(told)) books.apply(event);
    const stored = storedBooks(told);
    expect(bookFaults(books, { ...stored, held: stored.held - 1n }, false)).toEqual([
      `Escrow holds ${stored.held - 1n} and owes ${books.total}: short by 1`,
    ]);
    expect(bookFaults(books, { ...stored, tracked: books.total + 1n }, true)).toEqual([
      `Escrow tracks ${books.total + 1n} and owes ${books.total}`,
    ]);
    const registry = told.contracts.NodeRegistry;
    expect(stakeFaults(books, [{ id: 1, stake: 5n }], registry)).toEqual([
      `node 1 has a stake of 5, and ${books.locked(registry, `0x${"1".padStart(64, "0")}`)} is locked for it`,
    ]);
  });

  it("folds each job into what storage held after every block", () => {
    const folds = new Map<Hex, JobFold>();
    const times = new Map(told.times);
    const posts = postsOf(told);
    const queue = eventsOf(told);
    for (const step of told.steps) {
      while (queue[0] !== undefined && queue[0].log.blockNumber <= step.block) {
        const event = queue.shift() as MarketEvent;
        if (event.name === "JobPosted") {
          const at = times.get(event.log.blockNumber) as number;
          folds.set(event.jobId, new JobFold(posts.get(event.jobId) as Posted, at));
        }
        for (const fold of folds.values()) expect(fold.add(event)).toBe("");
      }
      const fold = folds.get(step.job) as JobFold;
      expect(fold.units.map((one) => hex(packUnit(one.unit))), `block ${step.block}`).toEqual(step.units);
      const word = jobOf(BigInt(step.word));
      expect(fold.header && hex(packHeader(fold.header))).toBe(word.header && step.word);
      // An attempt is over when its unit is: open again, or ended.
      for (const { unit, attempts } of fold.units) {
        const over = unit.state === STATE.OPEN || isTerminal(unit.state);
        const open = attempts.filter((attempt) => attempt.end === null);
        expect(open).toEqual(over ? [] : attempts.slice(-1));
      }
    }
    for (const job of told.jobs) {
      const fold = folds.get(job.job) as JobFold;
      const folded = fold.view(told.now);
      for (const view of [folded, viewOf(folded.terms, headerOf(job), storedUnits(job), told.now)]) {
        expect({
          tally: Object.fromEntries(tallyOf(view)),
          told: labelOf(view),
          verdict: verdictOf(view),
          state: stateOf(view),
          ok: okCount(view),
          failed: failedCount(view),
        }).toEqual(job.facts);
      }
      fold.units.forEach((one, at) => {
        const told = fold.stored()[at] as StoredUnit;
        const held = storedUnits(job)[at] as StoredUnit;
        expect([bestOf(told), keptResult(told)]).toEqual([bestOf(held), keptResult(held)]);
        const means = windowEnd(told.unit) !== 0 || keptResult(told) !== null;
        expect(told.second).toBe(means ? held.second : 0n);
        expect(one.attempts.map((attempt) => attempt.number)).toEqual(one.attempts.map((_, number) => number + 1));
        expect(one.attempts.length).toBe(one.unit.attempts);
      });
    }
  });

  it("knows what checkpoints came to, and where each job's money went", () => {
    const events = eventsOf(told);
    const posts = postsOf(told);
    const transactions = new Map<Hex, MarketEvent[]>();
    for (const event of events) {
      transactions.set(event.log.txHash, [...(transactions.get(event.log.txHash) ?? []), event]);
    }
    for (const job of told.jobs) {
      const own = events.filter((event) => "jobId" in event && event.jobId === job.job);
      const rows = [...checkpointsIn(own)].map(([unit, found]) => [unit, found.map((row) => inJson(row, told.asset))]);
      expect(rows).toEqual(job.checkpoints);
      const posted = posts.get(job.job) as Posted;
      const view = viewOf(posted.terms, headerOf(job), storedUnits(job), told.now);
      const found = receiptOf(view, job.job, own, transactions, told.contracts.JobRegistry);
      expect({
        escrow: `${found.escrow}`,
        topped_up: `${found.toppedUp}`,
        still_locked: `${found.stillLocked}`,
        workers: `${found.workers}`,
        checkpoints: found.checkpoints.map((one) => ({ ...one, pay: `${one.pay}`, fee: `${one.fee}` })),
        market_fee: `${found.marketFee}`,
        keepers: `${found.keepers}`,
        refunded: `${found.refunded}`,
      }).toEqual(job.receipt);
    }
  });

  it("tells a job's cost by its words alone, until something of it has ended", () => {
    const transactions = new Map<Hex, MarketEvent[]>();
    for (const event of eventsOf(told)) transactions.set(event.log.txHash, [...(transactions.get(event.log.txHash) ?? []), event]);
    const costs: (bigint | undefined)[] = [];
    for (const [job, posted] of postsOf(told)) {
      const fold = new JobFold(posted, told.now);
      const own = eventsOf(told).filter((event) => "jobId" in event && event.jobId === job);
      own.forEach((event, at) => {
        fold.add(event);
        // Money moves by whole transactions.
        if (own[at + 1]?.log.txHash === event.log.txHash) return;
        const view = fold.view(told.now);
        const cost = costUntilAnEnd(view);
        costs.push(cost);
        const known = costOf(receiptOf(view, job, own.slice(0, at + 1), transactions, told.contracts.JobRegistry));
        expect(known).toBeGreaterThanOrEqual(0n);
        if (cost !== undefined) expect([job, at, cost]).toEqual([job, at, known]);
      });
    }
    // In one of the two markets a proposer was paid before anything had ended.
    const paid = costs.some((cost) => cost !== undefined && cost > 0n);
    expect([costs.includes(undefined), costs.includes(0n), paid]).toEqual([true, true, told.asset.address === null]);
  });
});

describe("what checkpoints earned", () => {
  it("is asked of nodes that have not left alone, and of others where it was told", () => {
    const told = markets["native"] as Told;
    const job = told.jobs.find((one) => one.units.some((unit) => unit.kept.length > 1)) as Job;
    const [unit] = storedUnits(job) as [StoredUnit];
    const kept = resumedFrom(unit.unit.resume, (job.units[0]?.kept ?? []).map(BigInt));
    const faultsOf = (paid: number, here: ReadonlySet<number>): number => {
      const history = new Replay(marketOf(told), new Strays());
      let left = paid;
      for (const event of eventsOf(told)) if (event.name !== "CheckpointPaid" || (left -= 1) >= 0) history.add(event);
      history.end();
      const before = history.faults.length;
      const posted = history.posted.get(job.job) as Posted;
      history.compare(posted, headerOf(job), [{ view: unit, kept }], here, new Map());
      return history.faults.length - before;
    };
    expect(kept.size).toBe(2);
    // Both were paid; the one of the node that is here was; none was.
    expect([2, 1, 0].map((paid) => faultsOf(paid, new Set([1, 2])))).toEqual([0, 1, 1]);
    expect([2, 1, 0].map((paid) => faultsOf(paid, new Set([2])))).toEqual([0, 0, 1]);
    expect([2, 1, 0].map((paid) => faultsOf(paid, new Set()))).toEqual([0, 0, 0]);
  });
});

describe("a job's fold", () => {
  it("leaves out what is no event of its units", () => {
    const told = markets["native"] as Told;
    const events = eventsOf(told);
    const arrays = told.jobs.filter((job) => job.header !== null);
    const posted = postsOf(told).get((arrays[0] as Job).job) as Posted;
    const fold = new JobFold(posted, 5);
    const moves = events.filter((event) => isUnitEvent(event) && event.jobId === posted.jobId);
    const later = moves.find((event) => "index" in event && event.index === 1n) as MarketEvent;
    expect(fold.add(later)).toMatch(/has not opened its unit 1, only 0 of them/);
    expect(fold.add({ ...later, index: 999n } as MarketEvent)).toMatch(/has no unit 999/);
    expect(misplaced(later, undefined)).toMatch(/was not posted/);
    const foreign = events.find((event) => isUnitEvent(event) && event.jobId !== posted.jobId) as MarketEvent;
    expect(fold.add(foreign)).toBe("");
    expect([fold.units, fold.header?.touched]).toEqual([[], 0]);
  });
});

function postsOf(told: Told): ReadonlyMap<Hex, Posted> {
  const history = new Replay(marketOf(told), new Strays());
  for (const event of eventsOf(told)) history.add(event);
  return history.posted;
}

// A checkpoint as `hearth job show --json` has it.
function inJson(row: Checkpoint, asset: Asset): Readonly<Record<string, unknown>> {
  const { attempt, node, seconds, root, resumedFrom: from, kept, paid } = row;
  return {
    attempt,
    node,
    seconds,
    root,
    resumed_from: from,
    kept,
    pay: paid === null ? null : `${paid.pay}`,
    fee: paid === null ? null : `${paid.fee}`,
    earned_text: paid === null ? null : showAmount(paid.pay - paid.fee, asset),
  };
}
