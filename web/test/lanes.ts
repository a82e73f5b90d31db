// Values as vectors write them, as the page holds them: which of them are bigints, the lane table says.

import { type Hex } from "../src/core/bytes";
import { codeOf } from "../src/core/errors";
import type { Layout, Node, Policy, Terms, Unit } from "../src/core/types";
import { unpackNodeState, unpackOffer, unpackPolicy, unpackTerms, unpackUnit } from "../src/core/words";
import { WORDS } from "../src/generated/words";

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };
export type Fields = Readonly<Record<string, Json>>;

// Return the values of a word's lanes. The library's own words hold yes and no, and addresses, as numbers.
export function lanes(layout: Layout, fields: Fields): Record<string, unknown> {
  const kinds = new Map(layout.lanes.map((lane) => [lane.name, lane.kind]));
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, held(kinds.get(name), value)]));
}

function held(kind: string | undefined, value: Json): unknown {
  if (kind === "big") return big(value);
  if (kind === "bool") return value === true || value === 1;
  if (kind === "address" && !String(value).startsWith("0x")) return address(big(value));
  return value;
}

// White space that the library alone takes off: the page refuses such text.
export const LIBRARY_ALONE = /[\x1c-\x1f\x85]/;

export const big = (value: Json | undefined): bigint => BigInt(value as string | number);

const address = (value: bigint): Hex => `0x${value.toString(16).padStart(40, "0")}`;

// Return a policy of a vector that says its amounts.
export function policyValues(fields: Fields): Record<string, unknown> {
  const amounts = ["minPrice", "minKeeperFee", "probationPrice"].map((name) => [name, big(fields[name])]);
  return { ...lanes(WORDS.policy, fields), ...Object.fromEntries(amounts) };
}

// Return terms of a vector that says every field.
export function termsValues(fields: Fields): Record<string, unknown> {
  const bigs = ["salt", "ceiling", "keeperFee", "judgeData", "policy"].map((name) => [name, big(fields[name])]);
  return { ...fields, ...Object.fromEntries(bigs), needs: lanes(WORDS.needs, fields["needs"] as Fields) };
}

// Return what a call gives, or the code that it refuses with, as a vector says them.
export function outcome(call: () => unknown): { readonly out: unknown } | { readonly code: string } {
  try {
    return { out: call() };
  } catch (error) {
    return { code: codeOf(error) };
  }
}

// Return terms, a policy or a unit that a vector gives by its words in hexadecimal.
export const termsOf = (words: readonly string[]): Terms =>
  unpackTerms([
    BigInt(words[0] as string),
    words[1] as Hex,
    BigInt(words[2] as string),
    BigInt(words[3] as string),
    BigInt(words[4] as string),
    BigInt(words[5] as string),
    BigInt(words[6] as string),
    BigInt(words[7] as string),
    words[8] as Hex,
  ]);

export const policyOf = (word: string): Policy => unpackPolicy(BigInt(word));

export const unitOf = (word: string): Unit => unpackUnit(BigInt(word));

// Write a result as vectors do: numbers above 2^53 as text, nothing as null.
export function written(value: unknown): Json {
  if (value === undefined || value === null) return null;
  if (typeof value === "bigint") return value < SAFE && value > -SAFE ? Number(value) : String(value);
  if (Array.isArray(value)) return value.map(written);
  if (typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, written(item)]));
  }
  return value as Json;
}

// Return what a call gives, as vectors write it, or {code} where it refuses.
export function result(call: () => unknown): Json {
  const found = outcome(call);
  return "code" in found ? { code: found.code } : written(found.out);
}

const SAFE = 2n ** 53n;

// A node as Lens says it: its words in hexadecimal.
export interface NodeFields {
  readonly id: number;
  readonly owner: Hex;
  readonly operator: Hex;
  readonly stake: string;
  readonly offer: string;
  readonly hot: string;
  readonly nextAsk: string;
  readonly nextAskAt: number;
  readonly exitAt: number;
}

export const nodeOf = ({ offer, hot, stake, nextAsk, ...rest }: NodeFields): Node => ({
  ...rest,
  stake: big(stake),
  offer: unpackOffer(BigInt(offer)),
  state: unpackNodeState(BigInt(hot)),
  nextAsk: big(nextAsk),
});
