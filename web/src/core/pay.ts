// What a unit's end pays for kept checkpoints, and the fees of a pay. Mirrors that part of the section "money" of
// hearth/protocol/formulas.py from `reserved` on. Pay and fees are base units, rounded down.

import { BPS, CHECKPOINT_SHARE, MAX_RESUMED, RATE_SCALE } from "../generated/bounds";
import { OUTCOME } from "../generated/states";
import { HearthError } from "./errors";
import { leaseSeconds, topped } from "./money";
import { floorDiv } from "./numbers";
import type { Kept, Policy, Terms, Unit } from "./types";

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

// Return the treasury's share of a pay, rounding down.
export const feeOf = (pay: bigint, policy: Policy): bigint => floorDiv(pay * BigInt(policy.feeBps), BPS);

function keptOf(kept: KeptByAttempt, attempt: number): Kept {
  const record = kept.get(attempt);
  if (record === undefined) throw new HearthError("BAD_WORD", `attempt ${attempt} has kept no checkpoint`);
  return record;
}
