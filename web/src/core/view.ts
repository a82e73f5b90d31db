// A job at one block, by its touched leases with their lapses applied, and what it has come to. Mirrors JobView of
// hearth/client/views.py.

import { LONG_SECONDS } from "../generated/sentences";
import { OUTCOME, STATE, TERMS_FLAG } from "../generated/states";
import { HearthError } from "./errors";
import { settleableFrom, withLapse } from "./lapse";
import { arrayLabel, stateLabel, type StateLabel, unitLabel } from "./state-labels";
import { bestOf, type StoredUnit } from "./stored";
import { type Header, isTerminal, leasesOf, nameOf, type Policy, type Terms, type Unit } from "./types";
import { unpackPolicy } from "./words";

export type Verdict = "ok" | "failed" | "refunded" | "pending";

// A job at the block of the second `now`. `header` is an array's, null for a one-lease job; `units` have their lapses
// applied, `stored` are the same as they are on chain.
export interface JobView {
  readonly terms: Terms;
  readonly policy: Policy;
  readonly header: Header | null;
  readonly units: readonly Unit[];
  readonly stored: readonly StoredUnit[];
  readonly now: number;
}

// Return a job by its touched units as they are stored, every lapse applied. Throws RPC_BROKEN for words that are none.
export function viewOf(terms: Terms, header: Header | null, stored: readonly StoredUnit[], now: number): JobView {
  const policy = unpackPolicy(terms.policy);
  const units = stored.map((one) => withLapse(one.unit, bestOf(one), policy, now));
  return { terms, policy, header, units, stored, now };
}

// Count the leases that nobody touched and that can still be.
export const untouched = ({ header, terms }: JobView): number =>
  header === null || header.closed ? 0 : leasesOf(terms) - header.touched;

// Say whether the job still waits for its parents.
export const isBlocked = ({ header, units }: JobView): boolean =>
  header === null ? units[0]?.state === STATE.BLOCKED : header.waiting;

// Say whether every lease has ended.
export const isFinished = (view: JobView): boolean =>
  untouched(view) === 0 && view.units.every((unit) => isTerminal(unit.state));

// Say whether every lease has ended, or has a result that nobody but its submitter may settle for long: there is
// nothing to wait for then, since a result does not change.
export const isDelivered = (view: JobView): boolean =>
  untouched(view) === 0 && view.units.every((unit) => isTerminal(unit.state) || waits(view, unit) > LONG_SECONDS);

// Return when the last result that waits for its settlement may be settled, 0 where none waits.
export function unpaidUntil(view: JobView): number {
  const waiting = view.units.filter((unit) => waits(view, unit) > 0);
  return waiting.reduce((last, unit) => Math.max(last, settleableFrom(view.terms, view.policy, unit)), 0);
}

// Count the leases by what people read of them, those that nobody touched included.
export function tallyOf(view: JobView): ReadonlyMap<string, number> {
  const found = new Map<string, number>();
  const add = (word: string, count: number): unknown => found.set(word, (found.get(word) ?? 0) + count);
  for (const unit of view.units) add(unitLabel(unit), 1);
  const never = leasesOf(view.terms) - view.units.length;
  if (never !== 0) add(stateLabel(view.header?.closed === true ? STATE.CANCELLED : isBlocked(view) ? STATE.BLOCKED : STATE.OPEN), never);
  return found;
}

// Return how the job stands as a whole.
export function labelOf(view: JobView): StateLabel {
  const { header, terms } = view;
  if (header !== null && isFinished(view)) {
    const leases = leasesOf(terms);
    return arrayLabel(tallyOf(view), leases, terms.replicas > 1 ? terms.quorum : leases);
  }
  const word =
    header === null
      ? unitLabel(view.units[0] as Unit)
      : stateLabel(isBlocked(view) ? STATE.BLOCKED : header.touched > 0 ? STATE.RUNNING : STATE.OPEN);
  return { word, text: word };
}

// Count the units with a good result that is settled, or waits since its node is on probation.
export const okCount = (view: JobView): number =>
  view.units.filter((unit) => hasEndedWith(view, unit) && unit.outcome === OUTCOME.OK).length;

// Count the units with a failure of the program that is settled, or waits since its node is on probation.
export const failedCount = (view: JobView): number =>
  view.units.filter((unit) => hasEndedWith(view, unit) && unit.outcome !== OUTCOME.OK).length;

// Return what the job as a whole came to.
export function verdictOf(view: JobView): Verdict {
  const { terms } = view;
  if (!isDelivered(view)) return "pending";
  const ok = okCount(view);
  if (terms.replicas > 1 && ok >= terms.quorum) return "ok";
  if (failedCount(view) > 0) return "failed";
  return ok === leasesOf(terms) ? "ok" : "refunded";
}

// Return a one-lease job's state; for an array "blocked", "open", "running", "ended".
export function stateOf(view: JobView): string {
  if (view.header === null) return nameOf(STATE, (view.units[0] as Unit).state);
  if (isFinished(view)) return "ended";
  if (isBlocked(view)) return "blocked";
  return view.header.touched > 0 ? "running" : "open";
}

// Refuse a unit that a job does not have: NOT_FOUND. `name` is the job's, as people write it.
export function requireUnit(view: JobView, unit: number, name: string): void {
  const leases = leasesOf(view.terms);
  if (Number.isInteger(unit) && unit >= 0 && unit < leases) return;
  throw new HearthError(
    "NOT_FOUND",
    `job ${name.slice(0, 14)} has no unit ${unit}: 0 to ${leases - 1}`,
    `hearth job show ${name.slice(0, 14)}`,
  );
}

// The seconds that a unit's result waits before anyone may settle it, 0 for other units. What has to be proven, or is
// held by its judge, may still end in a refund at any time.
function waits({ terms, policy, now }: JobView, unit: Unit): number {
  if (unit.state !== STATE.SUBMITTED || (terms.flags & TERMS_FLAG.PROVEN) !== 0) return 0;
  return Math.max(0, settleableFrom(terms, policy, unit) - now);
}

const hasEndedWith = (view: JobView, unit: Unit): boolean => unit.state === STATE.SETTLED || waits(view, unit) > 0;
