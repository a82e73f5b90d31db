// What the events of a market tell: its jobs, each unit's last word and result, and the money. Mirrors _History and the
// replay of hearth/client/audit/verify.py, and its comparison of a job's units with storage.

import { OUTCOME, STATE } from "../generated/states";
import { Books } from "./books";
import type { Hex } from "./bytes";
import { type EventNamed, isUnitEvent, type MarketEvent } from "./events";
import type { Strays } from "./logs";
import { jobHolds } from "./money";
import { checkpointPays, type KeptByAttempt } from "./pay";
import { type Market, misplaced, type Posted, postedOf } from "./posted";
import type { StoredUnit } from "./stored";
import { lockKey } from "./terms";
import { hasResult, type Header, nameOf } from "./types";
import { packUnit, unpackPolicy, unpackShare, unpackUnit } from "./words";

// A unit in storage, and the checkpoints that its attempt was resumed from, by attempt.
export interface UnitStatus {
  readonly view: StoredUnit;
  readonly kept: KeptByAttempt;
}

// What one job's units came to: settled, failed, and by index those with a result.
export interface Tally {
  readonly settled: number;
  readonly failed: number;
  readonly results: ReadonlyMap<number, StoredUnit>;
}

type Paid = EventNamed<"CheckpointPaid">;
export type ResultEvent = EventNamed<"Submitted"> | EventNamed<"Finished">;

export class Replay {
  readonly books = new Books();
  readonly #posted = new Map<Hex, Posted>();
  readonly #faults: string[] = [];
  reclaimed = 0;
  readonly #units = new Map<string, UnitTold>();
  // What was told to be paid for a checkpoint, until a split follows.
  #unsplit: Paid | undefined;

  constructor(
    readonly market: Market,
    readonly strays: Strays,
  ) {}

  // Every job, in the order of the posts.
  get posted(): ReadonlyMap<Hex, Posted> {
    return new Map(this.#posted);
  }

  // How the events contradict themselves, or what they were compared with.
  get faults(): readonly string[] {
    return [...this.#faults];
  }

  // Replay one event, in the order of the chain; what has no place in the books is counted as a stray and left out.
  add(event: MarketEvent): void {
    this.books.apply(event);
    if (event.name === "JobPosted") {
      if (this.#posted.has(event.jobId)) {
        this.strays.note(event.log, `job ${event.jobId.slice(0, 14)} is posted already`);
        return;
      }
      this.#posted.set(event.jobId, postedOf(event, this.market));
    }
    if (event.name === "Split" && event.controller === this.market.contracts.JobRegistry) {
      this.#close(event.shares.map((share) => unpackShare(share).amount));
    }
    if (!isUnitEvent(event)) return;
    const why = misplaced(event, this.#posted.get(event.jobId));
    if (why !== "") this.strays.note(event.log, why);
    else this.#addUnit(event);
  }

  // Say that no event follows.
  end(): void {
    this.#close([]);
  }

  // Return the last word that the events tell of a unit, undefined for none.
  word(job: Hex, index: bigint): bigint | undefined {
    return this.#units.get(unitName(job, index))?.word;
  }

  // Return the event that named a unit's result last.
  submitted(job: Hex, index: number): ResultEvent | undefined {
    return this.#units.get(unitName(job, BigInt(index)))?.submitted;
  }

  // Compare a job's touched units in storage with its last events, and add what all of them hold to `holds`, by key of
  // Escrow. `header` is an array's, null for a one-lease job; `here` are the nodes that have not left. Returns what the
  // units came to, and adds differences to `faults`.
  compare(
    posted: Posted,
    header: Header | null,
    stored: readonly UnitStatus[],
    here: ReadonlySet<number>,
    holds: Map<Hex, bigint>,
  ): Tally {
    const { terms, jobId } = posted;
    const name = (index: number): string => `unit ${index} of ${jobId.slice(0, 14)}`;
    const told = { settled: 0, failed: 0, results: new Map<number, StoredUnit>() };
    for (const [index, one] of stored.entries()) {
      const { unit } = one.view;
      if (unit.state === STATE.SETTLED) told.settled += 1;
      const failed = unit.state === STATE.SETTLED && unit.outcome !== OUTCOME.OK;
      if (failed || unit.state === STATE.REFUNDED) told.failed += 1;
      if (hasResult(unit.state)) told.results.set(index, one.view);
      this.#compareCheckpoints(posted, index, one, here);
      const expected = this.word(jobId, BigInt(index));
      if (expected !== undefined && expected !== packUnit(unit)) {
        const said = stateName(unpackUnit(expected).state);
        this.#faults.push(`${name(index)}: its events end in ${said}, storage says ${stateName(unit.state)}`);
      }
      if (expected === undefined && unit.state !== STATE.OPEN && header !== null && !header.closed) {
        this.#faults.push(`${name(index)} is ${stateName(unit.state)} without an event`);
      }
    }
    const key = lockKey(terms.submitter);
    const held = jobHolds(terms, header, stored.map((one) => one.view.unit));
    holds.set(key, (holds.get(key) ?? 0n) + held);
    return told;
  }

  // ---- inside ----

  #addUnit(event: Extract<MarketEvent, { of: "unit" | "node-unit" }>): void {
    const name = unitName(event.jobId, event.index);
    let unit = this.#units.get(name);
    if (unit === undefined) this.#units.set(name, (unit = { paid: [] }));
    if (event.name === "CheckpointPaid") {
      this.#close([]);
      this.#unsplit = event;
      unit.paid.push(event);
      return;
    }
    unit.word = event.word;
    if (event.name === "Reclaimed") this.reclaimed += 1;
    if (event.name === "Submitted" || event.name === "Finished") unit.submitted = event;
  }

  // Compare a split with what was told to be paid for a checkpoint just before it, if anything was.
  #close(amounts: readonly bigint[]): void {
    const event = this.#unsplit;
    this.#unsplit = undefined;
    if (event === undefined) return;
    const wanted = [event.pay - event.fee, event.fee, 0n, 0n];
    if (amounts.length === wanted.length && amounts.every((amount, at) => amount === wanted[at])) return;
    const told = `the checkpoint of attempt ${event.attempt} of unit ${event.index} of ${event.jobId.slice(0, 14)}`;
    const split = `the split of it is (${amounts.join(", ")})`;
    this.#faults.push(`${told} earned ${event.pay} with a fee of ${event.fee}, and ${split}`);
  }

  // Compare what was told to be paid for the checkpoints that a unit's result was made of with what had to be. Of a
  // node that has left by now the chain does not say any more whether it was there.
  #compareCheckpoints(posted: Posted, index: number, one: UnitStatus, here: ReadonlySet<number>): void {
    const { terms, jobId } = posted;
    const { unit } = one.view;
    const resumed = unit.state === STATE.SETTLED && unit.resume !== 0;
    const due = resumed ? checkpointPays(terms, unpackPolicy(terms.policy), unit, one.kept) : [];
    const told = (this.#units.get(unitName(jobId, BigInt(index)))?.paid ?? []).map(shownPay);
    const owed = due.filter((pay) => here.has(pay.node) || told.includes(shownPay(pay))).map(shownPay);
    if (told.length === owed.length && told.every((pay, at) => pay === owed[at])) return;
    this.#faults.push(
      `unit ${index} of ${jobId.slice(0, 14)}: events say that its checkpoints earned [${told.join(", ")}], ` +
        `storage [${owed.join(", ")}]`,
    );
  }
}

interface UnitTold {
  word?: bigint;
  submitted?: ResultEvent;
  readonly paid: Paid[];
}

const unitName = (job: Hex, index: bigint): string => `${job}:${index}`;

const stateName = (state: number): string => nameOf(STATE, state).toUpperCase();

const shownPay = ({ attempt, node, pay, fee }: Pick<Paid, "attempt" | "node" | "pay" | "fee">): string =>
  `(${attempt}, ${node}, ${pay}, ${fee})`;
