// A job's events folded into what storage holds of it: its units' words, its array's header, each unit's attempts. The
// library reads storage instead; that both agree after every block is what the vectors `books` hold. Every event of a
// unit carries the unit's new word, so that the last one counts; leases of an array are opened in order, each by an
// event.

import { SENTINEL, ZERO_HASH } from "../generated/bounds";
import { OUTCOME, STATE, UNIT_FLAG, VERDICT } from "../generated/states";
import type { Hex } from "./bytes";
import { type EventNamed, isUnitEvent, type MarketEvent, type NodeUnitEvent } from "./events";
import type { Log } from "./logs";
import { misplaced, type Posted } from "./posted";
import type { StoredUnit } from "./stored";
import { hasResult, type Header, isTerminal, leasesOf, NEW_UNIT, type Unit, windowEnd } from "./types";
import { type JobView, viewOf } from "./view";
import { unpackAccused, unpackHeader, unpackUnit } from "./words";

// One lease of a unit, from its start: `end` is the event that ended it, null while it runs or waits for its
// settlement.
export interface Attempt {
  readonly number: number;
  readonly node: number;
  readonly started: Log;
  readonly resumedFrom: number | null;
  readonly end: NodeUnitEvent | null;
}

// A touched unit: its last word, the best proposal's word (0 for none), its attempts, and what named its result last.
export interface FoldedUnit {
  readonly unit: Unit;
  readonly best: bigint;
  readonly attempts: readonly Attempt[];
  readonly result: EventNamed<"Submitted"> | EventNamed<"Finished"> | null;
}

const NOBODY = unpackAccused(0n);
const ENDS: ReadonlySet<string> = new Set<MarketEvent["name"]>([
  ...(["Settled", "Finished", "Closed", "Reclaimed", "Declined", "GaveUp", "Unproven"] as const),
]);

export class JobFold {
  readonly #units: FoldedUnit[] = [];
  readonly #array: boolean;
  #header: Header;

  // `postedAt` is the second of the block that posted the job.
  constructor(
    readonly posted: Posted,
    postedAt: number,
  ) {
    const { terms } = posted;
    const waiting = terms.parentsHash !== ZERO_HASH;
    const leases = leasesOf(terms);
    const quorum = terms.replicas === 1 ? 0 : terms.quorum;
    this.#array = leases !== 1;
    this.#header = { closed: false, waiting, touched: 0, done: 0, failed: 0, opened: postedAt, leases, quorum };
    if (!this.#array) {
      const unit = { ...NEW_UNIT, state: waiting ? STATE.BLOCKED : STATE.OPEN, started: postedAt };
      this.#units.push({ unit, best: 0n, attempts: [], result: null });
    }
  }

  // Fold one event, in the order of the chain. Returns why it is none of this job's units, "" where it was folded, or
  // is about no unit.
  add(event: MarketEvent): string {
    if (!isUnitEvent(event) || event.jobId !== this.posted.jobId) return "";
    const why = misplaced(event, this.posted);
    if (why !== "" || event.name === "CheckpointPaid") return why;
    if (event.index === SENTINEL) {
      const { closed, waiting, opened } = unpackHeader(event.word);
      this.#header = { ...this.#header, closed, waiting, opened };
      return "";
    }
    const index = Number(event.index);
    if (index > this.#units.length) {
      return `job ${event.jobId.slice(0, 14)} has not opened its unit ${index}, only ${this.#units.length} of them`;
    }
    this.#units[index] = moved(this.#units[index], event);
    return "";
  }

  // The touched units, by index; of a one-lease job always its one unit.
  get units(): readonly FoldedUnit[] {
    return [...this.#units];
  }

  // The header of an array as storage has it, null for a one-lease job.
  get header(): Header | null {
    if (!this.#array) return null;
    const ended = this.#units.filter(({ unit }) => isTerminal(unit.state));
    const done = ended.filter(({ unit }) => unit.state === STATE.SETTLED && unit.outcome === OUTCOME.OK).length;
    return { ...this.#header, touched: this.#units.length, done, failed: ended.length - done };
  }

  // Return the units as storage has them, but for who is accused of a decline, which no event says.
  stored(): readonly StoredUnit[] {
    return this.#units.map((one) => ({ unit: one.unit, second: secondOf(one), accused: NOBODY }));
  }

  // Return the job as it stands at the second `now`, every lapse applied.
  view(now: number): JobView {
    return viewOf(this.posted.terms, this.header, this.stored(), now);
  }
}

// Return what a unit is after an event of its own; undefined is a unit that nobody had touched.
function moved(before: FoldedUnit | undefined, event: UnitMove): FoldedUnit {
  const unit = unpackUnit(event.word);
  const { best, attempts, result } = before ?? { best: 0n, attempts: [], result: null };
  const one = { unit, best, attempts, result };
  switch (event.name) {
    case "Proposed":
      return { ...one, best: event.best };
    case "Started": {
      const resumedFrom = unit.resume === 0 ? null : unit.resume;
      const attempt = { number: unit.attempts, node: event.node, started: event.log, resumedFrom, end: null };
      return { ...one, best: 0n, attempts: [...attempts, attempt] };
    }
    case "Submitted":
      return { ...one, result: event };
    case "Finished":
      return { ...one, result: event, attempts: endedBy(attempts, event) };
    case "Ruled":
      return event.verdict === VERDICT.RELEASE ? one : { ...one, attempts: endedBy(attempts, event) };
    default:
      return ENDS.has(event.name) ? { ...one, attempts: endedBy(attempts, event as NodeUnitEvent) } : one;
  }
}

type UnitMove = Exclude<Extract<MarketEvent, { of: "unit" | "node-unit" }>, { name: "CheckpointPaid" }>;

function endedBy(attempts: readonly Attempt[], end: NodeUnitEvent): readonly Attempt[] {
  const last = attempts.at(-1);
  return last === undefined ? attempts : [...attempts.slice(0, -1), { ...last, end }];
}

function secondOf({ unit, best, result }: FoldedUnit): bigint {
  if (windowEnd(unit) !== 0) return best;
  const keeps = (unit.flags & UNIT_FLAG.STORE) !== 0 && hasResult(unit.state);
  return keeps && result !== null ? BigInt(result.result satisfies Hex) : 0n;
}
