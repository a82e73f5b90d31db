// A node's record: decay, estimate, breaker. Mirrors hearth/protocol/reputation.py bit for bit, as the contracts do.
// r, s and weights are 1/2^20, cusum 1/16, times chain seconds. All is reckoned in bigints: what is shifted here would
// not fit the 32 bits that numbers are shifted in.

import { BPS, REPUTATION } from "../generated/bounds";
import { NODE_FLAG } from "../generated/states";
import { HearthError } from "./errors";
import { floorDiv, maxBig, minBig, small } from "./numbers";
import type { NodeState } from "./types";

const { AFTER_TRIP, BREAKER, FAILURE, MEMORY, ONE, QUARANTINE_BASE, QUARANTINE_MAX } = REPUTATION;
const { SEASONED_AT, STEP, SUCCESS, SUCCESSES_A_TRIP, VERDICT } = REPUTATION;
const STEPS_A_HALVING = 256n;
const MOST_HALVINGS = 32n;
const MOST_TRIPS = 15n;

// Halve a lane every 256 steps, with a quadratic approximation of 2^-x between (error < 0.3 %). Throws BAD_WORD for
// steps back in time.
export function decay(value: number, steps: number): number {
  return small(decayed(BigInt(value), BigInt(steps)));
}

// Return a node's reputation in bps: the mean of Beta(1 + r, 1 + s), as stored.
export function reputation(r: number, s: number): number {
  return small(floorDiv(BPS * (BigInt(r) + ONE), BigInt(r) + BigInt(s) + 2n * ONE));
}

// Return the node state after one observation of `weight`, 0..ONE, of a failure up to VERDICT. The breaker's sum rises
// by each 64th of ONE that a failure fills in s; a success takes 16 x its weight off, rounding down. Throws BAD_WORD
// where `now` is before the record's own time.
export function observe(state: NodeState, ok: boolean, weight: number, now: number): NodeState {
  const steps = floorDiv(BigInt(now - state.repTime), STEP);
  const before = { r: decayed(BigInt(state.r), steps), s: decayed(BigInt(state.s), steps) };
  const observed = ok ? succeeded(state, before, BigInt(weight)) : failed(state, before, BigInt(weight), BigInt(now));
  const { r, s } = remembered(observed.r, observed.s);
  return {
    ...state,
    r: small(r),
    s: small(s),
    repTime: state.repTime + small(steps * STEP),
    cusum: small(observed.cusum),
    trips: small(observed.trips),
    count: small(observed.count),
    quarantine: small(observed.quarantine),
    seasoned: state.seasoned || r >= SEASONED_AT,
  };
}

// Return the node state after a judge has rejected a result: a verdict's failure, a week aside, SLASHED.
export function reject(state: NodeState, now: number): NodeState {
  const observed = observe(state, false, small(VERDICT), now);
  const until = Math.max(observed.quarantine, now + small(QUARANTINE_MAX));
  return { ...observed, quarantine: until, status: observed.status | NODE_FLAG.SLASHED };
}

interface Lanes {
  readonly r: bigint;
  readonly s: bigint;
}

interface Observed extends Lanes {
  readonly cusum: bigint;
  readonly trips: bigint;
  readonly count: bigint;
  readonly quarantine: bigint;
}

const unchanged = (state: NodeState): Omit<Observed, "r" | "s"> => ({
  cusum: BigInt(state.cusum),
  trips: BigInt(state.trips),
  count: BigInt(state.count),
  quarantine: BigInt(state.quarantine),
});

function succeeded(state: NodeState, { r, s }: Lanes, weight: bigint): Observed {
  const was = unchanged(state);
  const cusum = maxBig(0n, was.cusum - floorDiv(weight * SUCCESS, ONE));
  if (weight !== ONE) return { ...was, r: r + weight, s, cusum };
  const count = (was.count + 1n) % SUCCESSES_A_TRIP;
  const trips = count === 0n ? maxBig(0n, was.trips - 1n) : was.trips;
  return { ...was, r: r + weight, s, cusum, count, trips };
}

function failed(state: NodeState, { r, s }: Lanes, weight: bigint, now: bigint): Observed {
  const was = unchanged(state);
  const cusum = was.cusum + floorDiv((s + weight) * FAILURE, ONE) - floorDiv(s * FAILURE, ONE);
  if (cusum < BREAKER) return { ...was, r, s: s + weight, cusum };
  const quarantine = maxBig(was.quarantine, now + minBig(QUARANTINE_MAX, QUARANTINE_BASE << was.trips));
  return { ...was, r, s: s + weight, cusum: AFTER_TRIP, trips: minBig(MOST_TRIPS, was.trips + 1n), quarantine };
}

function remembered(r: bigint, s: bigint): Lanes {
  const total = r + s;
  if (total <= MEMORY) return { r, s };
  return { r: floorDiv(r * MEMORY, total), s: floorDiv(s * MEMORY, total) };
}

function decayed(value: bigint, steps: bigint): bigint {
  const halvings = floorDiv(steps, STEPS_A_HALVING);
  if (halvings < 0n) throw new HearthError("BAD_WORD", "this record is of a time that is still to come");
  if (halvings >= MOST_HALVINGS) return 0n;
  const x = (steps - halvings * STEPS_A_HALVING) << 8n;
  const factor = 65_536n - ((43_908n * x) >> 16n) + ((11_140n * ((x * x) >> 16n)) >> 16n);
  return ((value >> halvings) * factor) >> 16n;
}
