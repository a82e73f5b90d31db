// The life of a unit: when proposals lapse, claims open, and anyone may settle, reclaim or expire. Mirrors the section
// "the life of a unit" of hearth/protocol/formulas.py. Times are chain seconds.

import { MAX_FETCH, MAX_LAPSES, STALE_SECONDS } from "../generated/bounds";
import { STATE, TERMS_FLAG, UNIT_FLAG } from "../generated/states";
import { grace, leaseSeconds } from "./money";
import { ceilDiv, floorDiv, floorDivInt, maxBig, small } from "./numbers";
import { type Best, deadlineAt, type Policy, submittedAt, type Terms, type Unit, windowEnd } from "./types";

// Say whether an OPEN unit holds a proposal whose ack time has not run out.
export const hasLiveProposal = (unit: Unit, policy: Policy, now: number): boolean =>
  windowEnd(unit) !== 0 && now < windowEnd(unit) + policy.ackTime;

// Return the unit as every guard reads it: a proposal that nobody acked in time is dropped and counted.
export function withLapse(unit: Unit, best: Best, policy: Policy, now: number): Unit {
  if (windowEnd(unit) === 0 || now < windowEnd(unit) + policy.ackTime) return unit;
  return { ...unit, node: best.node, lapses: unit.lapses + 1, rate: 0n, mark: 0 };
}

// Return the first second since its last proposal at which an OPEN unit (as stored) takes claims; their price rises
// from it on. While a proposal is live, that is the second at which it lapses, if nobody acks it.
export function claimsFrom(terms: Terms, policy: Policy, unit: Unit): number {
  if (terms.matchWindow === 0) return unit.started;
  const opens = unit.started + policy.openClaimAfter;
  if (windowEnd(unit) === 0) return opens;
  const lapsed = windowEnd(unit) + policy.ackTime;
  return unit.lapses + 1 >= MAX_LAPSES ? lapsed : Math.max(opens, lapsed);
}

// Say whether an OPEN unit (as stored) takes claims now, their price aside.
export const claimable = (terms: Terms, policy: Policy, unit: Unit, now: number): boolean =>
  unit.state === STATE.OPEN && now >= claimsFrom(terms, policy, unit);

// Return the highest ask that a claim may lock `waited` seconds after claimsFrom: a quarter of the ceiling at first and
// all of it after the policy's claimRamp, rounding down. Throws DIVIDE_BY_ZERO for a policy without a ramp.
export function claimCeiling(terms: Terms, policy: Policy, waited: number): bigint {
  const ramp = policy.claimRamp;
  return floorDiv(terms.ceiling * BigInt(ramp + 3 * Math.min(ramp, waited)), BigInt(4 * ramp));
}

// Return the fewest seconds after which claimCeiling reaches a rate, which is at most the ceiling. Throws
// DIVIDE_BY_ZERO for a ceiling of zero.
export function claimWait(terms: Terms, policy: Policy, rate: bigint): number {
  const ramp = BigInt(policy.claimRamp);
  const parts = ceilDiv(4n * ramp * rate, terms.ceiling);
  return small(ceilDiv(maxBig(0n, parts - ramp), 3n));
}

// Return the first second at which an OPEN unit (as stored) may be claimed by a node that asks `rate`, if nobody
// proposes or acks meanwhile; null where the rate is above the ceiling. Mirrors `Lens.claimable_from`.
export function claimableFrom(terms: Terms, policy: Policy, unit: Unit, rate: bigint): number | null {
  if (rate > terms.ceiling) return null;
  return claimsFrom(terms, policy, unit) + claimWait(terms, policy, rate);
}

// Say whether an OPEN unit (its lapse applied) takes a proposal now, the key aside.
export function proposable(terms: Terms, unit: Unit, now: number): boolean {
  if (unit.state !== STATE.OPEN || terms.matchWindow === 0 || unit.lapses >= MAX_LAPSES) return false;
  return windowEnd(unit) === 0 || now < windowEnd(unit);
}

// Say whether an attempt that starts now can end before the deadline; of a unit that may be topped up, `topped` terms.
export const hasTime = (terms: Terms, policy: Policy, now: number): boolean =>
  now + leaseSeconds(terms) + grace(terms, policy) <= terms.deadline;

// Return the first second at which `expire` is valid; of a unit that may be topped up, for `topped` terms.
export const expirableFrom = (terms: Terms, policy: Policy): number =>
  terms.deadline - leaseSeconds(terms) - grace(terms, policy) + 1;

// Return the second from which a SUBMITTED unit cannot be disputed any more: its submit where there is no judge.
export const challengeEnd = (terms: Terms, unit: Unit): number => submittedAt(unit) + terms.challengeWindow;

// Return the first second at which the result of a node that was on probation counts for its record.
export const freshUntil = (policy: Policy, unit: Unit): number => submittedAt(unit) + policy.freshDelay;

// Return the first second at which anyone may settle a SUBMITTED or DISPUTED unit; its submitter may accept before.
// Where the terms ask for a proof, settling then is a refund, and costs the node what a lost lease does.
export function settleableFrom(terms: Terms, policy: Policy, unit: Unit): number {
  const stale = unit.state === STATE.DISPUTED ? STALE_SECONDS : 0;
  const opens = challengeEnd(terms, unit) + stale;
  if (terms.flags & TERMS_FLAG.PROVEN) return Math.max(opens, terms.deadline + terms.challengeWindow);
  return unit.flags & UNIT_FLAG.FRESH ? Math.max(opens, freshUntil(policy, unit)) : opens;
}

// Return the second from which a RUNNING unit cannot be declined any more, only given up.
export const declinableUntil = (terms: Terms, policy: Policy, unit: Unit): number =>
  unit.started + Math.max(policy.fetchFloor, Math.min(floorDivInt(terms.maxSeconds, 4), MAX_FETCH));

// Return the first second at which a RUNNING unit can be reclaimed: lease over, or node dead.
export const reclaimableFrom = (unit: Unit, beat: number, deadAfter: number): number =>
  Math.min(deadlineAt(unit), Math.max(beat, unit.started) + deadAfter);
