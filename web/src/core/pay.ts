// What a unit's end pays: the result's seconds, kept checkpoints, fees. Mirrors the section "money" of
// hearth/protocol/formulas.py from `reserved` on. Pay and fees are base units, rounded down.

import { BPS, CHECKPOINT_SHARE, MAX_RESUMED, RATE_SCALE } from "../generated/bounds";
import { BILLING, OUTCOME } from "../generated/states";
import { HearthError } from "./errors";
import { leaseSeconds, price, topped } from "./money";
import { floorDiv, minBig } from "./numbers";
import { deadlineAt, type Kept, type Policy, submittedAt, type Terms, type Unit } from "./types";

// Kept checkpoints by the attempt that left them.
export type KeptByAttempt = ReadonlyMap<number, Kept>;

// What a kept checkpoint earns when a result that was made of it is settled: pay and fee in base units.
export interface CheckpointPay {
  readonly attempt: number;
  readonly node: number;
  readonly pay: bigint;
  readonly fee: bigint;
}

// Return the seconds that come first of the checkpoints which a lease resumed from. Throws BAD_WORD where its
// checkpoint is not among `kept`.
export function reserved(unit: Unit, kept: KeptByAttempt): number {
  if (unit.resume === 0) return 0;
  const record = keptOf(kept, unit.resume);
  return record.before + record.seconds;
}

// Return the seconds that a SUBMITTED unit bills, whether it was cancelled meanwhile or not. `shared` are those that
// `reserved` keeps for the checkpoints which it was made of.
export function billedSeconds(terms: Terms, unit: Unit, shared = 0): number {
  const limit = leaseSeconds(topped(terms, unit));
  if (terms.billing === BILLING.FUEL) return Math.min(unit.seconds, limit);
  if (terms.billing === BILLING.METERED) {
    return Math.min(submittedAt(unit) - unit.started, Math.max(0, limit - shared));
  }
  return limit;
}

// Return a SUBMITTED unit's pay before the fee; `shared` as in billedSeconds.
export const payAtSettle = (terms: Terms, unit: Unit, shared = 0): bigint =>
  minBig(price(topped(terms, unit)), payFor(unit.rate, billedSeconds(terms, unit, shared)));

// Return what a SUBMITTED unit's settling pays for kept checkpoints, newest first, nodes that left included. All that a
// unit bills stays within its seconds: the oldest checkpoint has them first, each later one what is left, MAX_RESUMED
// at most, the result the rest. Throws BAD_WORD where a checkpoint is not among `kept`.
export function checkpointPays(
  terms: Terms,
  policy: Policy,
  unit: Unit,
  kept: KeptByAttempt,
): readonly CheckpointPay[] {
  if (unit.outcome !== OUTCOME.OK) return [];
  const whole = leaseSeconds(topped(terms, unit));
  const pays: CheckpointPay[] = [];
  let attempt = unit.resume;
  for (let looked = 0; looked < MAX_RESUMED && attempt !== 0; looked += 1) {
    const record = keptOf(kept, attempt);
    const seconds = Math.min(Math.max(0, whole - record.before), record.seconds);
    if (seconds > 0) {
      const [share, parts] = CHECKPOINT_SHARE;
      const pay = floorDiv(record.rate * BigInt(seconds) * share, parts * RATE_SCALE);
      pays.push({ attempt, node: record.node, pay, fee: feeOf(pay, policy) });
    }
    attempt = record.resume;
  }
  return pays;
}

// Return the pay of a CLOSING unit whose notice is over, before the fee.
export function payAtClose(terms: Terms, policy: Policy, unit: Unit): bigint {
  const whole = topped(terms, unit);
  const seconds = Math.min(deadlineAt(unit) - unit.started, leaseSeconds(whole)) + policy.startFeeSeconds;
  return minBig(price(whole), payFor(unit.rate, seconds));
}

// Return the pay of a unit that its judge voids, before the fee: the start fee.
export const payAtVoid = (terms: Terms, policy: Policy, unit: Unit): bigint =>
  minBig(price(topped(terms, unit)), payFor(unit.rate, policy.startFeeSeconds));

// Return the treasury's share of a pay, rounding down.
export const feeOf = (pay: bigint, policy: Policy): bigint => floorDiv(pay * BigInt(policy.feeBps), BPS);

// Return the fee of a lease of which every second is billed: what its failure weighs by. It is as posted: a submitter
// who tops up a lease that fails could else make the failure heavier.
export const wholeFee = (terms: Terms, policy: Policy, unit: Unit): bigint =>
  feeOf(minBig(price(terms), payFor(unit.rate, leaseSeconds(terms))), policy);

const payFor = (rate: bigint, seconds: number): bigint => floorDiv(rate * BigInt(seconds), RATE_SCALE);

function keptOf(kept: KeptByAttempt, attempt: number): Kept {
  const record = kept.get(attempt);
  if (record === undefined) throw new HearthError("BAD_WORD", `attempt ${attempt} has kept no checkpoint`);
  return record;
}
