// The packed 256-bit words that the contracts store, emit and take. Mirrors hearth/protocol/words.py: packing refuses a
// value that does not fit its lane, unpacking refuses bits that no lane has. Every refusal here is BAD_WORD.

import { BILLING, OUTCOME, STATE } from "../generated/states";
import { HEADER_STATE, WORDS } from "../generated/words";
import { type Hex, hexAddress, hexNumber } from "./bytes";
import { HearthError } from "./errors";
import { floorDiv, small } from "./numbers";
import type {
  Accused,
  Best,
  Header,
  Kept,
  Lane,
  Layout,
  Needs,
  NodeState,
  Offer,
  Policy,
  Posted,
  Share,
  Terms,
  Unit,
  Values,
} from "./types";

// submitter, spec, needs, money, limits, judgeData, judge, policy, parentsHash: the struct `IJobRegistry.Terms`.
export type TermsWords = readonly [bigint, Hex, bigint, bigint, bigint, bigint, bigint, bigint, Hex];

const MAX_MANTISSA = ones(width(WORDS.amount, "mantissa"));
const MAX_EXPONENT = ones(width(WORDS.amount, "exponent"));
const WORD_BITS = 256;

// Pack values into a word. Throws BAD_WORD naming a value that does not fit its lane.
export function pack<L extends Layout>(layout: L, values: Values<L>): bigint {
  let word = 0n;
  for (const lane of layout.lanes) {
    if (lane.kind === "zero") continue;
    const value = stored(lane, (values as Record<string, unknown>)[lane.name]);
    if (value < 0n || value > ones(lane.width)) {
      throw badWord(`${lane.name} = ${value} does not fit in ${lane.width} bits`);
    }
    word |= value << BigInt(lane.shift);
  }
  return word;
}

// Unpack a word. Throws BAD_WORD where a bit outside the named lanes is set.
export function unpack<L extends Layout>(layout: L, word: bigint): Values<L> {
  const values: Record<string, unknown> = {};
  for (const lane of layout.lanes) {
    const value = (word >> BigInt(lane.shift)) & ones(lane.width);
    if (lane.kind !== "zero") values[lane.name] = read(lane, value);
    else if (value !== 0n) throw badWord(`lane ${lane.name} is not zero in ${shown(word)}`);
  }
  if (word >> BigInt(layout.bits) !== 0n) throw badWord(`spare bits are set in ${shown(word)}`);
  return values as Values<L>;
}

// Encode base units as exponent << 10 | mantissa, amount = mantissa x 10^exponent. Throws BAD_WORD for other amounts.
export function encodeAmount(amount: bigint): number {
  let mantissa = amount;
  let exponent = 0;
  while (mantissa > MAX_MANTISSA && mantissa % 10n === 0n && exponent <= MAX_EXPONENT) {
    mantissa = floorDiv(mantissa, 10n);
    exponent += 1;
  }
  if (mantissa < 0n || mantissa > MAX_MANTISSA || exponent > MAX_EXPONENT) {
    throw badWord(`${amount} is not mantissa (<= ${MAX_MANTISSA}) x 10**exponent (<= ${MAX_EXPONENT})`);
  }
  return small(pack(WORDS.amount, { mantissa, exponent }));
}

// Decode exponent << 10 | mantissa to base units. Throws BAD_WORD for more than its 15 bits.
export function decodeAmount(code: number): bigint {
  const { mantissa, exponent } = unpack(WORDS.amount, whole("a coded amount", code));
  return mantissa * 10n ** BigInt(exponent);
}

export const packNeeds = (needs: Needs): bigint => pack(WORDS.needs, needs);

export const unpackNeeds = (word: bigint): Needs => unpack(WORDS.needs, word);

export const packOffer = (offer: Offer): bigint => pack(WORDS.offer, offer);

export const unpackOffer = (word: bigint): Offer => unpack(WORDS.offer, word);

export const packNodeState = (state: NodeState): bigint => pack(WORDS.hot, state);

export const unpackNodeState = (word: bigint): NodeState => unpack(WORDS.hot, word);

export const packUnit = (unit: Unit): bigint => pack(WORDS.unit, unit);

// Unpack a unit's word. Throws BAD_WORD for an array's header.
export function unpackUnit(word: bigint): Unit {
  const values = unpack(WORDS.unit, word);
  return { ...values, state: member(STATE, values.state), outcome: member(OUTCOME, values.outcome) };
}

// Say whether a job's word is an array's header.
export const isHeader = (word: bigint): boolean => (word & 15n) === BigInt(HEADER_STATE);

export const packHeader = (header: Header): bigint => pack(WORDS.header, { ...header, state: HEADER_STATE });

// Unpack an array's header. Throws BAD_WORD for a unit's word.
export function unpackHeader(word: bigint): Header {
  const { state, ...header } = unpack(WORDS.header, word);
  if (state !== HEADER_STATE) throw badWord(`${shown(word)} is no array header`);
  return header;
}

export const packBest = (best: Best): bigint => pack(WORDS.best, best);

// Unpack the best proposal. The payee is in lower case, as every address that is unpacked.
export const unpackBest = (word: bigint): Best => unpack(WORDS.best, word);

export const packAccused = (accused: Accused): bigint => pack(WORDS.accused, accused);

export const unpackAccused = (word: bigint): Accused => unpack(WORDS.accused, word);

export const packKept = (kept: Kept): bigint => pack(WORDS.kept, kept);

// Unpack a kept checkpoint, all zero for none.
export const unpackKept = (word: bigint): Kept => unpack(WORDS.kept, word);

export const unpackPosted = (word: bigint): Posted => unpack(WORDS.posted, word);

// Unpack a share of Escrow's split: who is credited, and base units.
export const unpackShare = (word: bigint): Share => unpack(WORDS.share, word);

// Pack the parameters of new jobs. Throws BAD_WORD for an amount that has no exact code.
export function packPolicy(policy: Policy): bigint {
  return pack(WORDS.policy, {
    ...policy,
    minPrice: encodeAmount(policy.minPrice),
    minKeeperFee: encodeAmount(policy.minKeeperFee),
    probationPrice: encodeAmount(policy.probationPrice),
  });
}

// Unpack the parameters of a job; its amounts are base units.
export function unpackPolicy(word: bigint): Policy {
  const values = unpack(WORDS.policy, word);
  return {
    ...values,
    minPrice: decodeAmount(values.minPrice),
    minKeeperFee: decodeAmount(values.minKeeperFee),
    probationPrice: decodeAmount(values.probationPrice),
  };
}

// Pack terms into the nine words of `IJobRegistry.Terms`. Throws BAD_WORD naming a field out of its lane.
export function packTerms(terms: Terms): TermsWords {
  return [
    pack(WORDS.submitter, { account: terms.submitter, salt: terms.salt }),
    bytes32("spec", terms.spec),
    packNeeds(terms.needs),
    pack(WORDS.money, terms),
    pack(WORDS.limits, terms),
    fullWord("judgeData", terms.judgeData),
    pack(WORDS.judge, { account: terms.judge }),
    fullWord("policy", terms.policy),
    bytes32("parentsHash", terms.parentsHash),
  ];
}

// Unpack the nine words. Addresses are in lower case. Throws BAD_WORD where spare bits are set.
export function unpackTerms(words: TermsWords): Terms {
  const [submitter, spec, needs, money, limits, judgeData, judge, policy, parentsHash] = words;
  const payer = unpack(WORDS.submitter, submitter);
  const limit = unpack(WORDS.limits, limits);
  return {
    ...limit,
    ...unpack(WORDS.money, money),
    submitter: payer.account,
    salt: payer.salt,
    spec: bytes32("spec", spec),
    needs: unpackNeeds(needs),
    billing: member(BILLING, limit.billing),
    judgeData: fullWord("judgeData", judgeData),
    judge: unpack(WORDS.judge, judge).account,
    policy: fullWord("policy", policy),
    parentsHash: bytes32("parentsHash", parentsHash),
  };
}

function stored(lane: Lane, value: unknown): bigint {
  if (lane.kind === "address") return addressValue(lane.name, value);
  if (lane.kind === "bool") return value === true ? 1n : value === false ? 0n : refuseLane(lane);
  if (lane.kind === "big") return typeof value === "bigint" ? value : refuseLane(lane);
  return whole(lane.name, value);
}

function read(lane: Lane, value: bigint): unknown {
  if (lane.kind === "address") return hexAddress(value);
  if (lane.kind === "bool") return value === 1n;
  return lane.kind === "big" ? value : small(value);
}

function addressValue(name: string, value: unknown): bigint {
  if (typeof value !== "string" || !/^0x[0-9a-fA-F]{40}$/.test(value)) throw badWord(`${name} is no address`);
  return BigInt(value);
}

function whole(name: string, value: unknown): bigint {
  if (!Number.isSafeInteger(value)) throw badWord(`${name} is no whole number`);
  return BigInt(value as number);
}

function bytes32(name: string, value: string): Hex {
  if (!/^0x[0-9a-fA-F]{64}$/.test(value)) throw badWord(`${name} is not 32 bytes`);
  return value.toLowerCase() as Hex;
}

function fullWord(name: string, value: bigint): bigint {
  if (value < 0n || value > ones(WORD_BITS)) throw badWord(`${name} does not fit in ${WORD_BITS} bits`);
  return value;
}

function member<T extends number>(enumeration: Readonly<Record<string, T>>, value: number): T {
  const found = Object.values(enumeration).find((one) => one === value);
  if (found === undefined) throw badWord(`${value} is none of ${Object.keys(enumeration).join(", ")}`);
  return found;
}

function refuseLane(lane: Lane): never {
  throw badWord(`${lane.name} is no ${lane.kind === "bool" ? "yes or no" : "bigint"}`);
}

function ones(bits: number): bigint {
  return (1n << BigInt(bits)) - 1n;
}

function width(layout: Layout, name: string): number {
  return layout.lanes.find((lane) => lane.name === name)?.width ?? 0;
}

function shown(word: bigint): string {
  return word < 0n ? `-${hexNumber(-word)}` : hexNumber(word);
}

function badWord(message: string): HearthError {
  return new HearthError("BAD_WORD", message);
}
