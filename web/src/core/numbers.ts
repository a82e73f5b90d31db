// Whole numbers: division with a direction, and the one way from a bigint to a number. Money is a bigint from the word
// that it was read in to the text that is shown; times, counts and shares are numbers.

import { BPS } from "../generated/bounds";
import { HearthError } from "./errors";

// Divide, rounding down, as Python's // does for negative numbers too. Throws DIVIDE_BY_ZERO.
export function floorDiv(a: bigint, b: bigint): bigint {
  if (b === 0n) throw divideByZero();
  const quotient = a / b;
  return quotient * b !== a && a < 0n !== b < 0n ? quotient - 1n : quotient;
}

// Divide, rounding up. Throws DIVIDE_BY_ZERO.
export function ceilDiv(a: bigint, b: bigint): bigint {
  return -floorDiv(-a, b);
}

// Divide whole numbers that are not negative, rounding down: exact for all safe ones. Throws DIVIDE_BY_ZERO.
export function floorDivInt(a: number, b: number): number {
  if (b === 0) throw divideByZero();
  return (a - (a % b)) / b;
}

export const minBig = (a: bigint, b: bigint): bigint => (a < b ? a : b);

export const maxBig = (a: bigint, b: bigint): bigint => (a > b ? a : b);

// Return a time, a count or a share as a number. Throws TOO_LARGE for what a number does not hold exactly.
export function small(value: bigint): number {
  const number = Number(value);
  if (!Number.isSafeInteger(number)) throw new HearthError("TOO_LARGE", "this number is too large to count with");
  return number;
}

// A share as whole percent, half up, as the commands print it; "" of nothing.
export const percent = (part: number, of: number): string => (of === 0 ? "" : `${Math.floor((200 * part + of) / (2 * of))} %`);

export const bpsPercent = (bps: number): string => percent(bps, Number(BPS));

function divideByZero(): HearthError {
  return new HearthError("DIVIDE_BY_ZERO", "a share of nothing has no value");
}
