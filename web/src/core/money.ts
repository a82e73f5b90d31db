// What leases cost, hold and reserve, and what their keepers earn. Mirrors the section "money" of
// hearth/protocol/formulas.py; what kept checkpoints are paid is in pay.ts. Amounts are base units, rates base units x 1e6 per
// second, times chain seconds. Prices and bonds are rounded up, what is paid out down.

import { BPS, RATE_SCALE, SLASH_DIVISOR, ZERO_HASH } from "../generated/bounds";
import { BILLING, STATE } from "../generated/states";
import { ceilDiv, floorDiv, floorDivInt, maxBig, minBig } from "./numbers";
import { type Header, isTerminal, leasesOf, type Policy, type Terms, type Unit } from "./types";

const BOND_FEES = 8n;
const RAMP_SECONDS_SCALE = 5;
const RAMP_MOST = 3_000;
const RAMP_ONE = 1_000;

// Return p', the most that one unit can pay: ceil(ceiling x max_seconds / 1e6).
export const unitPrice = (terms: Terms): bigint => ceilDiv(terms.ceiling * BigInt(terms.maxSeconds), RATE_SCALE);

// Return a lease's price, chunk x p'.
export const price = (terms: Terms): bigint => BigInt(terms.chunk) * unitPrice(terms);

// Return a job's terms as they are for a unit: maxSeconds with what the unit was topped up by.
export function topped(terms: Terms, unit: Unit): Terms {
  if (unit.seconds === 0 || terms.billing !== BILLING.METERED) return terms;
  return { ...terms, maxSeconds: terms.maxSeconds + unit.seconds };
}

// Return what topping a unit up by `seconds` costs: what its price grows by.
export function topUpAmount(terms: Terms, unit: Unit, seconds: number): bigint {
  const now = topped(terms, unit);
  return price({ ...now, maxSeconds: now.maxSeconds + seconds }) - price(now);
}

// Return what a fresh lease holds in escrow: its price and every keeper fee it may need.
export const leaseBudget = (terms: Terms): bigint => price(terms) + BigInt(terms.maxAttempts) * terms.keeperFee;

// Return what `unlock` pays its caller: a keeper fee, which a job with parents is funded with besides.
export const unlockFee = (terms: Terms): bigint => terms.keeperFee;

// Return the exact funding of a job.
export function escrowAtPost(terms: Terms): bigint {
  const unlock = terms.parentsHash === ZERO_HASH ? 0n : unlockFee(terms);
  return BigInt(leasesOf(terms)) * leaseBudget(terms) + unlock;
}

// Return what an unended unit holds: its budget less the tips already paid, of a BLOCKED one-lease job with the fee of
// its `unlock`; zero once it has ended.
export function unitHolds(terms: Terms, unit: Unit): bigint {
  if (isTerminal(unit.state)) return 0n;
  const unlock = unit.state === STATE.BLOCKED ? unlockFee(terms) : 0n;
  return leaseBudget(topped(terms, unit)) - BigInt(unit.tips) * tip(terms) + unlock;
}

// Return what the untouched leases of an array hold, with the fee of its `unlock` while it waits.
export function restHolds(terms: Terms, header: Header): bigint {
  if (header.closed) return 0n;
  const unlock = header.waiting ? unlockFee(terms) : 0n;
  return BigInt(leasesOf(terms) - header.touched) * leaseBudget(terms) + unlock;
}

// Return what a job holds of its submitter's lock: each touched unit's part and, of an array, the rest's.
export function jobHolds(terms: Terms, header: Header | null, units: readonly Unit[]): bigint {
  const touched = units.reduce((sum, unit) => sum + unitHolds(terms, unit), 0n);
  return touched + (header === null ? 0n : restHolds(terms, header));
}

// Return what a proposer earns when its proposal is acked.
export const tip = (terms: Terms): bigint => floorDiv(terms.keeperFee, 2n);

// Return the seconds that a lease has beyond maxSeconds.
export const grace = (terms: Terms, policy: Policy): number =>
  Math.max(policy.graceFloor, floorDivInt(terms.maxSeconds, 10)) * terms.chunk;

// Return the seconds that a lease may bill: maxSeconds for each of its units.
export const leaseSeconds = (terms: Terms): number => terms.maxSeconds * terms.chunk;

// Return the least bond of a lease: max(ceil(the policy's share x price), 8 keeper fees).
export const baseBond = (terms: Terms, policy: Policy): bigint =>
  maxBig(ceilDiv(BigInt(policy.minBondBps) * price(terms), BPS), BOND_FEES * terms.keeperFee);

// Return the stake that a lease reserves, what a judge may take: max(ceil(bond_bps x price), the base bond).
export const bond = (terms: Terms, policy: Policy): bigint =>
  maxBig(ceilDiv(BigInt(terms.bondBps) * price(terms), BPS), baseBond(terms, policy));

// Return what a lost lease costs the node, its caller's reward included; it goes by the base bond.
export const slashOf = (terms: Terms, policy: Policy): bigint => floorDiv(baseBond(terms, policy), SLASH_DIVISOR);

// Grow a keeper's pay from 1x to 4x over 600 s since the action became valid, rounding down.
export function ramp(base: bigint, overdue: number): bigint {
  const parts = RAMP_ONE + Math.min(RAMP_MOST, RAMP_SECONDS_SCALE * overdue);
  return floorDiv(base * BigInt(parts), BigInt(RAMP_ONE));
}

// Return the settler's and the closer's pay.
export const settleReward = (terms: Terms, overdue: number): bigint => ramp(floorDiv(terms.keeperFee, 8n), overdue);

// Return the reclaimer's pay, which comes out of the slash; so does the settler's of a unit without a proof.
export const reclaimReward = (terms: Terms, slash: bigint, overdue: number): bigint =>
  minBig(floorDiv(slash, 4n), ramp(floorDiv(terms.keeperFee, 8n), overdue));

// Return the expirer's pay; `unit` is null for an array's untouched ones, which pay once for the whole array.
export function expireReward(terms: Terms, unit: Unit | null, overdue: number): bigint {
  if (unit !== null && leasesOf(terms) > 1) return 0n;
  return minBig(terms.keeperFee, ramp(floorDiv(terms.keeperFee, 4n), overdue));
}
