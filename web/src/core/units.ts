// Human units, read and written exactly: amounts, rates, durations and sizes. Mirrors hearth/protocol/units.py. Amounts
// are base units of the market's asset, rates base units x 1e6 per second, sizes bytes: bigints. Durations are seconds.

import {
  BYTES_OF,
  ETHER_DECIMALS,
  GIB,
  MIB,
  RATE_SCALE,
  RATE_SECONDS_OF,
  SECONDS_OF,
  SHOWN_DIGITS,
} from "../generated/bounds";
import type { Hex } from "./bytes";
import { HearthError } from "./errors";
import { ceilDiv, floorDiv, floorDivInt } from "./numbers";
import { trimmed } from "./unicode";

const AMOUNT = /^([0-9]{1,40})(?:\.([0-9]{1,40}))?(?: ?([A-Za-z][A-Za-z0-9.]{0,15}))?$/;
// A comma where a point is meant; "1,000" may mean a thousand.
const COMMA = /[0-9],([0-9]{1,2}(?![0-9])|[0-9]{4,})/;
const DURATION = /^(?:([0-9]{1,9})d)?(?:([0-9]{1,9})h)?(?:([0-9]{1,9})m)?(?:([0-9]{1,9})s)?$/;
const SIZE = /^([0-9]{1,18})(?:\.([0-9]{1,12}))? ?([A-Za-z]+)$/;

const PER: ReadonlyMap<string, number> = new Map(Object.entries(RATE_SECONDS_OF));
const BYTES: ReadonlyMap<string, bigint> = new Map(Object.entries(BYTES_OF));
const ETHER: ReadonlyMap<string, number> = new Map(Object.entries(ETHER_DECIMALS));
const SHOWN_SIZES = ["TiB", "GiB", "MiB", "KiB"] as const;
export const MAX_DECIMALS = 36;

// The one asset of a deployment: its symbol, its decimals 0..36, its token's address or null for the native coin.
export interface Asset {
  readonly symbol: string;
  readonly decimals: number;
  readonly address: Hex | null;
}

// The coin of a chain that says nothing else.
export const NATIVE: Asset = { symbol: "ETH", decimals: 18, address: null };

// Return an asset. Throws BAD_ASSET for decimals outside 0..36.
export function assetOf(symbol: string, decimals: number, address: Hex | null = null): Asset {
  if (!Number.isInteger(decimals) || decimals < 0 || decimals > MAX_DECIMALS) {
    throw new HearthError("BAD_ASSET", `asset ${symbol} has ${decimals} decimals, outside 0..${MAX_DECIMALS}`);
  }
  return { symbol, decimals, address };
}

// An amount or a rate with its unit, as most are shown, or the number alone.
export interface Form {
  readonly symbol: boolean;
}
const WITH_SYMBOL: Form = { symbol: true };

// Return base units for "0.60", "0.60 ETH" or, of a native coin, "5 gwei" or "7 wei". Throws BAD_AMOUNT for a sign, an
// exponent, more decimals than the unit has, or another symbol.
export function parseAmount(text: string, asset: Asset): bigint {
  const [whole, fraction, said] = splitAmount(text, asset.symbol);
  const symbol = said === "" ? asset.symbol : said;
  const decimals = decimalsOf(symbol, asset);
  if (decimals === undefined) {
    // The number is not repeated: with another unit it would be another amount.
    const hint = `amounts are in ${asset.symbol}, such as "0.60 ${asset.symbol}"`;
    throw badAmount(text, `is in ${symbol}, and this market pays in ${asset.symbol}`, hint);
  }
  const digits = withoutZeros(fraction);
  if (digits.length > decimals) {
    const why = `has ${digits.length} decimals, and ${symbol} has ${decimals}`;
    throw badAmount(text, why, `the smallest amount is ${formatAmount(1n, asset)}`);
  }
  return BigInt(whole) * 10n ** BigInt(decimals) + BigInt(digits.padEnd(decimals, "0") || "0");
}

// Return the digits before and after the point and the unit, as far as they are written; `symbol` is that of the
// example of how an amount is written. Throws BAD_AMOUNT.
export function splitAmount(text: string, symbol: string = NATIVE.symbol): readonly [string, string, string] {
  const match = AMOUNT.exec(trimmed(text));
  if (match === null) throw badAmount(text, "is not an amount", `write it as "0.60" or "0.60 ${symbol}"`);
  return [match[1] as string, match[2] ?? "", match[3] ?? ""];
}

// Return an amount in human units, exact and without trailing zeros: "0.6 ETH"; parseAmount reads it back.
export function formatAmount(baseUnits: bigint, asset: Asset, { symbol } = WITH_SYMBOL): string {
  const digits = magnitude(baseUnits).toString().padStart(asset.decimals + 1, "0");
  const point = digits.length - asset.decimals;
  const fraction = withoutZeros(digits.slice(point));
  const number = `${baseUnits < 0n ? "-" : ""}${digits.slice(0, point)}${fraction === "" ? "" : `.${fraction}`}`;
  return symbol ? `${number} ${asset.symbol}` : number;
}

// Return an amount for people: to SHOWN_DIGITS significant digits, half up, with a leading "~" where inexact.
export function showAmount(baseUnits: bigint, asset: Asset, form = WITH_SYMBOL): string {
  const exact = magnitude(baseUnits);
  const step = stepOf(exact);
  const rounded = floorDiv(exact + floorDiv(step, 2n), step) * step;
  return (rounded === exact ? "" : "~") + formatAmount(baseUnits < 0n ? -rounded : rounded, asset, form);
}

// Return base units x 1e6 per second for "1.20/h" or "1.20 ETH/h" (also /min, /s, /d), rounded down, asks and ceilings
// alike, so that equal texts meet. Throws BAD_RATE without a time unit or with another one, and as parseAmount does.
export function parseRate(text: string, asset: Asset): bigint {
  const [amount, seconds] = splitRate(text);
  const [, , said] = splitAmount(amount, asset.symbol);
  if (said !== "" && decimalsOf(said, asset) === undefined) {
    const hint = `rates are in ${asset.symbol}, such as "1.20 ${asset.symbol}/h"`;
    throw badAmount(text, `is in ${said}, and this market pays in ${asset.symbol}`, hint);
  }
  return floorDiv(parseAmount(amount, asset) * RATE_SCALE, BigInt(seconds));
}

// Return the amount of a rate, as it is written, and the seconds that it is for. Throws BAD_RATE.
export function splitRate(text: string): readonly [string, number] {
  const [, amount = "", per = ""] = /^([^]*)\/([^/]*)$/.exec(trimmed(text)) ?? [];
  const seconds = PER.get(trimmed(per));
  if (seconds !== undefined && !COMMA.test(amount)) return [trimmed(amount), seconds];
  throw new HearthError("BAD_RATE", `"${text}" is not a rate`, 'write it with a point, per hour: "1.20/h"; the others are /s, /min and /d');
}

// Return a rate per hour, to the nearest base unit: "1.2 ETH/h"; undoes parseRate for whole base units.
export const formatRate = (rate: bigint, asset: Asset): string => `${formatAmount(perHour(rate), asset)}/h`;

// Return a rate per hour for people, as showAmount does.
export const showRate = (rate: bigint, asset: Asset): string => `${showAmount(perHour(rate), asset)}/h`;

// Return the smallest amount of at most SHOWN_DIGITS significant digits that covers base units, not negative.
export function amountAtLeast(baseUnits: bigint, asset: Asset): string {
  const step = stepOf(baseUnits);
  return formatAmount(ceilDiv(baseUnits, step) * step, asset);
}

// Return the largest amount of at most SHOWN_DIGITS significant digits that the base units cover, not negative.
export function amountAtMost(baseUnits: bigint, asset: Asset): string {
  const step = stepOf(baseUnits);
  return formatAmount(floorDiv(baseUnits, step) * step, asset);
}

// Return what amountAtLeast does for people: with a leading "~" where it is more than the base units.
export function showAtLeast(baseUnits: bigint, asset: Asset): string {
  const text = amountAtLeast(baseUnits, asset);
  return text === formatAmount(baseUnits, asset) ? text : `~${text}`;
}

// Return the smallest rate per hour of so many digits that parseRate reads as not below the rate.
export const rateAtLeast = (rate: bigint, asset: Asset): string =>
  `${amountAtLeast(ceilDiv(rate * BigInt(RATE_SECONDS_OF.h), RATE_SCALE), asset)}/h`;

// Return the largest rate per hour of so many digits that parseRate reads as not above the rate.
export const rateAtMost = (rate: bigint, asset: Asset): string =>
  `${amountAtMost(floorDiv(rate * BigInt(RATE_SECONDS_OF.h), RATE_SCALE), asset)}/h`;

// Return seconds for "30m", "6h", "90s", "2h30m" or "1d12h"; "0s" is zero. Throws BAD_DURATION for a number without a
// unit, fractions, or units out of order.
export function parseDuration(text: string): number {
  const parts = DURATION.exec(trimmed(text))?.slice(1) ?? [];
  if (parts.every((part) => part === undefined)) {
    throw new HearthError("BAD_DURATION", `"${text}" is not a duration`, 'write "2h30m", "90s", "7d"');
  }
  const scales = Object.values(SECONDS_OF);
  return scales.reduce((sum, scale, at) => sum + Number.parseInt(parts[at] ?? "0", 10) * scale, 0);
}

// Return a duration as parseDuration reads it: "2h30m"; negative ones keep their sign.
export function formatDuration(seconds: number): string {
  if (seconds === 0) return "0s";
  let rest = Math.abs(seconds);
  let text = seconds < 0 ? "-" : "";
  for (const [unit, scale] of Object.entries(SECONDS_OF)) {
    const count = floorDivInt(rest, scale);
    if (count > 0) text += `${count}${unit}`;
    rest %= scale;
  }
  return text;
}

// Return bytes for "16GiB", "1.5 GiB", "512MiB", "16Gi" or "100B". Throws BAD_SIZE for decimal units ("16GB" names
// another number on every system), a missing unit, or a fraction that is not a whole number of bytes.
export function parseSize(text: string): bigint {
  const match = SIZE.exec(trimmed(text));
  const scale = BYTES.get(match?.[3] ?? "");
  if (match === null || scale === undefined) {
    throw new HearthError("BAD_SIZE", `"${text}" is not a size: the units are B, KiB, MiB, GiB, TiB`, 'write "16GiB" or "512MiB"');
  }
  const fraction = match[2] ?? "";
  const denominator = 10n ** BigInt(fraction.length);
  const part = BigInt(fraction || "0") * scale;
  if (part % denominator !== 0n) {
    throw new HearthError("BAD_SIZE", `"${text}" is not a whole number of bytes`, "use a smaller unit");
  }
  return BigInt(match[1] as string) * scale + floorDiv(part, denominator);
}

// Return bytes in the largest unit that holds them as a whole number: "16GiB", "1536MiB", "100B".
export function formatSize(size: bigint): string {
  const unit = SHOWN_SIZES.find((one) => size !== 0n && size % BYTES_OF[one] === 0n);
  return unit === undefined ? `${size}B` : `${floorDiv(size, BYTES_OF[unit])}${unit}`;
}

// Return bytes in whole GiB, rounded up.
export const gibCeil = (size: bigint): bigint => ceilDiv(size, BigInt(GIB));

// Return bytes in whole MiB, rounded up.
export const mibCeil = (size: bigint): bigint => ceilDiv(size, BigInt(MIB));

// The decimals of a unit that the asset's amounts may be written in, undefined where it is no such unit.
function decimalsOf(symbol: string, asset: Asset): number | undefined {
  if (symbol.toLowerCase() === asset.symbol.toLowerCase()) return asset.decimals;
  const ethers = asset.address === null && asset.decimals === ETHER_DECIMALS.ether;
  return ethers ? ETHER.get(symbol.toLowerCase()) : undefined;
}

const perHour = (rate: bigint): bigint =>
  floorDiv(rate * BigInt(RATE_SECONDS_OF.h) + floorDiv(RATE_SCALE, 2n), RATE_SCALE);

const magnitude = (value: bigint): bigint => (value < 0n ? -value : value);

// The least of the SHOWN_DIGITS most significant digits, as a power of ten.
const stepOf = (value: bigint): bigint => 10n ** BigInt(Math.max(0, value.toString().length - SHOWN_DIGITS));

function withoutZeros(digits: string): string {
  let end = digits.length;
  while (end > 0 && digits.charAt(end - 1) === "0") end -= 1;
  return digits.slice(0, end);
}

function badAmount(text: string, why: string, hint: string): HearthError {
  return new HearthError("BAD_AMOUNT", `"${text}" ${why}`, hint);
}
