// What became of the results of a judged job: until when each may be judged, what its judge said of it, and by how many attesters
// one was confirmed. The words are those of `hearth job show` and `hearth job events`.

import type { Abi } from "viem";
import { decodeFunctionData, encodeFunctionData } from "viem/utils";

import { ATTESTERS_CALLS } from "../generated/calls/attesters";
import { STATE, TERMS_FLAG } from "../generated/states";
import type { Hex } from "./bytes";
import { counted } from "./counted";
import type { MarketEvent } from "./events";
import { challengeEnd } from "./lapse";
import { wordsOf } from "./prepared";
import { eventFacts, resultCid } from "./sentences";
import { keptResult } from "./stored";
import { keccakOf } from "./terms";
import { hasResult, type Terms, type Unit } from "./types";
import type { Asset } from "./units";
import type { JobView } from "./view";
import type { TermsWords } from "./words";

// A unit that has or had a result. `until` is when its judge's time ends, null where there is no result; `said` is what was said of
// it last, "" for nothing, in the transaction `tx`.
export interface JudgedUnit {
  readonly index: number;
  readonly unit: Unit;
  readonly result: string | null;
  readonly until: number | null;
  readonly said: string;
  readonly tx: Hex | null;
}

// How many signatures stood with a confirmation, of how many keys, and how many it takes.
export interface Confirmation {
  readonly signatures: number;
  readonly keys: readonly Hex[];
  readonly quorum: number;
}

const VERDICTS: ReadonlySet<string> = new Set(["Disputed", "Ruled", "Unproven"]);

// Return the units of a judged job that have a result, or of whose result something was said.
export function judgedUnits(view: JobView, events: readonly MarketEvent[], asset: Asset): JudgedUnit[] {
  const said = new Map<number, MarketEvent>();
  for (const event of events) if (VERDICTS.has(event.name) && "index" in event) said.set(Number(event.index), event);
  return view.units.flatMap((unit, index) => {
    const event = said.get(index);
    const waits = unit.state === STATE.SUBMITTED || unit.state === STATE.DISPUTED;
    if (!hasResult(unit.state) && event === undefined) return [];
    const kept = keptResult(view.stored[index] as JobView["stored"][number]);
    return {
      index,
      unit,
      result: kept === null ? null : resultCid(kept),
      until: waits ? judgedUntil(view.terms, unit) : null,
      said: event === undefined ? "" : String(eventFacts(event, asset).text),
      tx: event?.log.txHash ?? null,
    };
  });
}

// Return the second at which the time of a unit's judge ends.
const judgedUntil = (terms: Terms, unit: Unit): number =>
  (terms.flags & TERMS_FLAG.PROVEN) === 0 ? challengeEnd(terms, unit) : terms.deadline + terms.challengeWindow;

// Return the word of the terms that commits to a set of attesters: keccak256(abi_encode(keys, quorum)).
export const setDigest = (keys: readonly Hex[], quorum: bigint): bigint =>
  BigInt(keccakOf([64n, quorum, BigInt(keys.length), ...keys.map(BigInt)]));

// Read what a transaction to Attesters confirmed of a unit; null for any other, and where its set is not that of the terms. The
// contract takes no fewer signatures than its set asks for; which of its keys signed is not recomputed here.
export function confirmationIn(data: Hex, packed: TermsWords, index: number): Confirmation | null {
  try {
    const abi: Abi = ATTESTERS_CALLS;
    const told = decodeFunctionData({ abi, data });
    const [terms, unit, keys, quorum, signatures] = told.args as [unknown, bigint, readonly Hex[], bigint, readonly unknown[]];
    if (told.functionName !== "confirm" || encodeFunctionData({ abi, functionName: "confirm", args: told.args as [] }) !== data) return null;
    const same = wordsOf(terms).every((word, place) => BigInt(word) === BigInt(packed[place] as bigint));
    if (!same || unit !== BigInt(index) || setDigest(keys, quorum) !== BigInt(packed[5])) return null;
    return { signatures: signatures.length, keys: keys.map((key) => key.toLowerCase() as Hex), quorum: Number(quorum) };
  } catch {
    return null;
  }
}

// Say it: "2 signatures, of 3 attesters of whom 2 must sign".
export const confirmationInWords = ({ signatures, keys, quorum }: Confirmation): string =>
  `${counted(signatures, "signature")}, of ${keys.length} attesters of whom ${quorum} must sign`;
