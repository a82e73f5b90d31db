// The money and the times of a job's terms, from its spec: pure, in whole numbers. Mirrors hearth/jobfile/plan.py. Amounts
// are base units of the market's asset, rates base units x 1e6 per second, times chain seconds.

import { RATE_SCALE, ZERO_ADDRESS } from "../generated/bounds";
import { CONDITION } from "../generated/parents";
import { SPEC_BOUNDS } from "../generated/spec";
import { BILLING, TERMS_FLAG } from "../generated/states";
import type { Hex } from "./bytes";
import { HearthError } from "./errors";
import type { JobSpec } from "./model";
import { ceilDiv, floorDiv, floorDivInt, maxBig, minBig } from "./numbers";
import { packParents, type Parent, parentsHash } from "./parents";
import { maxSeconds, runtimeKind, runtimeOf, verifyMode } from "./spec";
import type { Billing, Needs, Policy, Terms } from "./types";
import {
  amountAtLeast,
  amountAtMost,
  type Asset,
  formatAmount,
  formatDuration,
  parseAmount,
  parseDuration,
  parseRate,
  rateAtLeast,
  rateAtMost,
  showAmount,
  showRate,
} from "./units";
import { deadlineIn } from "./deadline";

const AUTO_KEEPER_SHARE = BigInt(SPEC_BOUNDS.autoKeeperShare);
const LAST_SECOND = 2 ** 40;

// What a job may cost: `unitPrice` is the most that one unit pays; `total` is what escrow takes: units x (price +
// attempts x fee), and one fee more for whoever starts a job that waits for others.
export interface Prices {
  readonly ceiling: bigint;
  readonly keeperFee: bigint;
  readonly unitPrice: bigint;
  readonly total: bigint;
}

// The keeper fee that is set aside for each attempt of a unit at this price, where nobody names one.
export const autoKeeperFee = (price: bigint, policy: Policy): bigint =>
  maxBig(policy.minKeeperFee, floorDiv(price, AUTO_KEEPER_SHARE));

// The highest ceiling that `price.max_total` and `price.max_rate` allow, and the keeper fee. Everything rounds towards
// paying less. Throws NO_PRICE, PRICE_TOO_SMALL with the smallest figure that works, BAD_PRICE for a fee or a sum out
// of range, BAD_AMOUNT for another asset.
export function planPrices(spec: JobSpec, asset: Asset, policy: Policy): Prices {
  const { max_total: maxTotal, max_rate: maxRate } = spec.price;
  const [units, attempts, seconds] = [spec.array.units, spec.retry.attempts, maxSeconds(spec)];
  const fee = feeOf(spec, asset, policy);
  const feeAt = (price: bigint): bigint => fee ?? autoKeeperFee(price, policy);
  const jobCost = (price: bigint): bigint =>
    BigInt(units) * (price + BigInt(attempts) * feeAt(price)) + (spec.after.length > 0 ? feeAt(price) : 0n);

  // The chain takes a fee above its minimum only up to the price, and no price below the policy's.
  const plain = fee === undefined || fee <= policy.minKeeperFee;
  const least = leastCeiling(plain ? policy.minPrice : maxBig(policy.minPrice, fee), seconds);
  const work = priceAt(least, seconds);
  const smallest = amountAtLeast(jobCost(work), asset);
  const why = feesWhy(attempts, feeAt(work), work, asset);
  const ceilings: bigint[] = [];
  if (maxTotal !== null) {
    const affordable = largestPrice(amountOf(maxTotal, asset, "price.max_total"), jobCost);
    if (affordable < work) {
      throw tooSmall("max_total", maxTotal, `${units} unit(s) of ${spec.limits.runtime}`, smallest, why);
    }
    ceilings.push(floorDiv(affordable * RATE_SCALE, BigInt(seconds)));
  }
  if (maxRate !== null) {
    const rate = inField("price.max_rate", () => parseRate(maxRate, asset));
    if (rate < least) throw tooSmall("max_rate", maxRate, `units of ${spec.limits.runtime}`, rateAtLeast(least, asset));
    ceilings.push(rate);
  }
  const [first, second = first] = ceilings;
  if (first === undefined || second === undefined) {
    throw refuse(
      "price",
      "neither max_total nor max_rate is given: a job needs a price",
      `add price: {max_total: "..."}; the smallest that the contract takes is ${smallest}${why}`,
      "NO_PRICE",
    );
  }
  return checked(minBig(first, second), seconds, spec.limits.runtime, feeAt, jobCost, asset);
}

// How seconds are counted; auto is fuel where it is counted and no checkpoint is kept, else metered.
export function billingOf(spec: JobSpec): Billing {
  switch (spec.price.billing) {
    case "fixed":
      return BILLING.FIXED;
    case "fuel":
      return BILLING.FUEL;
    case "metered":
      return BILLING.METERED;
    case "auto":
      if (spec.checkpoint !== null) return BILLING.METERED;
      return runtimeKind(runtimeOf(spec)).metersFuel ? BILLING.FUEL : BILLING.METERED;
  }
}

// The seconds from a unit's start to the end of its lease: its runtime and grace.
export function leaseSeconds(spec: JobSpec, policy: Policy): number {
  const seconds = maxSeconds(spec);
  return (seconds + Math.max(policy.graceFloor, floorDivInt(seconds, 10))) * spec.array.chunk;
}

// The job's deadline; `now` is the block's time. Without one in the spec: a day from now, or twice what every attempt
// in a row would take, if that is longer. Throws BAD_DEADLINE where not even one attempt fits.
export function deadlineOf(spec: JobSpec, policy: Policy, now: number): number {
  const lease = leaseSeconds(spec, policy);
  const text = spec.limits.deadline;
  if (text === null) return now + Math.max(SPEC_BOUNDS.defaultDeadline, 2 * spec.retry.attempts * lease);
  const given = deadlineIn(text);
  if (given === undefined) throw badDeadline(`"${text}" is neither a duration nor a time`, 'write "6h"');
  const moment = "after" in given ? now + given.after : given.at;
  if (moment < now + lease) {
    const left = moment > now ? `leaves ${moment - now} s` : "is over";
    const message = `${text} ${left}, and one attempt takes ${lease} s with its grace`;
    throw badDeadline(message, "raise limits.deadline or lower limits.runtime");
  }
  if (moment >= LAST_SECOND) throw badDeadline(`${text} is too far away: ${SPEC_BOUNDS.lastYear}`, 'write "6h"');
  return moment;
}

// The seconds in which proposals compete; 0 is open claim; by default the policy's minimum. Throws BAD_WINDOW
// for a window below the market's.
function matchWindowOf(spec: JobSpec, policy: Policy): number {
  const text = spec.match.window;
  if (text === null) return policy.minMatchWindow;
  const window = parseDuration(text);
  if (window === 0 || window >= policy.minMatchWindow) return window;
  const least = `${policy.minMatchWindow}s`;
  const hint = `use ${least}, or 0s for first come`;
  throw refuse("match.window", `${text} is below this market's ${least}`, hint, "BAD_WINDOW");
}

// The seconds from submit in which a judge may act; by default the policy's minimum, 0 without a judge. Throws
// BAD_WINDOW.
function challengeWindowOf(spec: JobSpec, policy: Policy): number {
  if (verifyMode(spec) === "none") return 0;
  const text = spec.verify.window;
  if (text === null) return policy.minChallengeWindow;
  const window = parseDuration(text);
  if (window >= policy.minChallengeWindow) return window;
  const least = formatDuration(policy.minChallengeWindow);
  throw refuse("verify.window", `${text} is below this market's ${least}`, `use ${least}`, "BAD_WINDOW");
}

// The seconds between two checkpoints of a unit, 0 where none are made. Throws BAD_SPEC below the market's.
function checkpointEveryOf(spec: JobSpec, policy: Policy): number {
  if (spec.checkpoint === null) return 0;
  const every = parseDuration(spec.checkpoint.every);
  if (every >= policy.minCheckpoint) return every;
  const least = formatDuration(policy.minCheckpoint);
  const message = `${spec.checkpoint.every} is below this market's ${least}`;
  throw refuse("checkpoint.every", message, `use ${least}`, "BAD_SPEC");
}

// The jobs that a spec waits for, in its order.
export function parentsOf(spec: JobSpec): readonly Parent[] {
  const conditions = { success: CONDITION.SUCCESS, failure: CONDITION.FAILURE, always: CONDITION.ALWAYS };
  return spec.after.map(({ job, condition }) => ({ job: job as Hex, condition: conditions[condition] }));
}

export interface TermsGiven {
  readonly submitter: Hex;
  readonly salt: bigint;
  // The digest of the canonical spec, and what it needs.
  readonly digest: Hex;
  readonly needs: Needs;
  readonly prices: Prices;
  // The registry's policy, unpacked and as its word.
  readonly policy: Policy;
  readonly policyWord: bigint;
  // The block's time, in chain seconds.
  readonly now: number;
  // The contract of the attesters that the spec names, and their set's commitment; without one, no judge.
  readonly judge?: Hex;
  readonly judgeData?: bigint;
}

// The terms of a job. Throws BAD_DEADLINE, BAD_WINDOW, BAD_PRICE and BAD_SPEC, with the field in the details.
export function termsOf(spec: JobSpec, given: TermsGiven): Terms {
  const { policy, now, judge = ZERO_ADDRESS, judgeData = 0n } = given;
  let flags = 0;
  if (spec.match.newcomers) flags |= TERMS_FLAG.NEWCOMERS;
  if (spec.verify.keep) flags |= TERMS_FLAG.KEEP;
  if (judgeData !== 0n) flags |= TERMS_FLAG.PROVEN;
  return {
    submitter: given.submitter,
    salt: given.salt,
    spec: given.digest,
    needs: given.needs,
    ceiling: given.prices.ceiling,
    maxSeconds: maxSeconds(spec),
    deadline: inProofTime(spec, deadlineOf(spec, policy, now), now),
    keeperFee: given.prices.keeperFee,
    policy: given.policyWord,
    units: spec.array.units,
    chunk: 1,
    replicas: 1,
    quorum: 1,
    matchWindow: matchWindowOf(spec, policy),
    challengeWindow: challengeWindowOf(spec, policy),
    checkpointEvery: checkpointEveryOf(spec, policy),
    maxAttempts: spec.retry.attempts,
    billing: billingOf(spec),
    flags,
    bondBps: 0,
    judge,
    judgeData,
    parentsHash: parentsHash(packParents(parentsOf(spec))),
  };
}

// A deadline until which a bond may wait for attesters. Throws BAD_DEADLINE.
function inProofTime(spec: JobSpec, deadline: number, now: number): number {
  const most = SPEC_BOUNDS.maxProofSeconds;
  if (verifyMode(spec) === "none" || deadline <= now + most) return deadline;
  const written = spec.limits.deadline ?? "the default";
  const message = `${written} is more than ${formatDuration(most)} away, as long as a bond waits for attesters`;
  throw badDeadline(message, `write "${formatDuration(most)}" at most`);
}

// The keeper fee that a spec names, undefined for an automatic one. Throws BAD_PRICE below the market's.
function feeOf(spec: JobSpec, asset: Asset, policy: Policy): bigint | undefined {
  const text = spec.price.keeper_fee;
  if (text === "auto") return undefined;
  const fee = amountOf(text, asset, "price.keeper_fee");
  if (fee >= policy.minKeeperFee) return fee;
  const smallest = formatAmount(policy.minKeeperFee, asset);
  throw refuse("price.keeper_fee", `${text} is below this market's ${smallest}`, `use "${smallest}"`);
}

function feesWhy(attempts: number, feeEach: bigint, work: bigint, asset: Asset): string {
  if (BigInt(attempts) * feeEach <= work) return "";
  const count = attempts > 1 ? `${attempts} keeper fees` : "a keeper fee";
  return `, since each unit pays ${count} of ${formatAmount(feeEach, asset)} at most beside its work`;
}

function checked(
  ceiling: bigint,
  seconds: number,
  runtime: string,
  feeAt: (price: bigint) => bigint,
  jobCost: (price: bigint) => bigint,
  asset: Asset,
): Prices {
  const price = priceAt(ceiling, seconds);
  const total = jobCost(price);
  const { maxRate, maxEscrow } = SPEC_BOUNDS;
  if (ceiling > maxRate) {
    const most = rateAtMost(maxRate, asset);
    throw refuse(
      "price",
      `${showRate(ceiling, asset)} for a unit of ${runtime} is above the most that a job may pay: ${most}`,
      `write max_total: "${amountAtMost(minBig(maxEscrow, jobCost(priceAt(maxRate, seconds))), asset)}" or max_rate: "${most}" at most`,
    );
  }
  if (feeAt(price) > maxRate) {
    const most = amountAtMost(maxRate, asset);
    const message = `${showAmount(feeAt(price), asset)} is above the most that a job may pay a keeper: ${most}`;
    throw refuse("price.keeper_fee", message, `write keeper_fee: "${most}" at most`);
  }
  if (total > maxEscrow) {
    const most = amountAtMost(maxEscrow, asset);
    const message = `${showAmount(total, asset)} in all is above the most that can be locked for a job: ${most}`;
    throw refuse("price", message, `write max_total: "${most}" at most, or split the array`);
  }
  return { ceiling, keeperFee: feeAt(price), unitPrice: price, total };
}

const priceAt = (ceiling: bigint, seconds: number): bigint => ceilDiv(ceiling * BigInt(seconds), RATE_SCALE);

// The smallest ceiling, at least 1, whose price reaches `floor`.
const leastCeiling = (floor: bigint, seconds: number): bigint =>
  maxBig(1n, floorDiv((maxBig(floor, 1n) - 1n) * RATE_SCALE, BigInt(seconds)) + 1n);

// The largest price whose cost fits the budget, or -1; `cost` never falls as the price rises.
function largestPrice(budget: bigint, cost: (price: bigint) => bigint): bigint {
  let low = -1n;
  let high = budget;
  while (low < high) {
    const middle = floorDiv(low + high + 1n, 2n);
    if (cost(middle) <= budget) low = middle;
    else high = middle - 1n;
  }
  return low;
}

const amountOf = (text: string, asset: Asset, field: string): bigint => inField(field, () => parseAmount(text, asset));

// What a reader refuses, as a refusal of a field.
function inField<T>(field: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof HearthError)) throw error;
    throw refuse(field, error.message, error.hint, error.code);
  }
}

function tooSmall(name: string, given: string, what: string, smallest: string, why = ""): HearthError {
  const hint = `the smallest that the contract takes is "${smallest}"${why}`;
  return refuse(`price.${name}`, `${given} is too small for ${what}`, hint, "PRICE_TOO_SMALL");
}

const badDeadline = (message: string, hint: string): HearthError =>
  refuse("limits.deadline", message, hint, "BAD_DEADLINE");

function refuse(field: string, message: string, hint: string, code = "BAD_PRICE"): HearthError {
  return new HearthError(code, `${field}: ${message}`, hint, { field });
}
