// What the contracts' storage says of jobs and units, as Lens and JobRegistry return it. Mirrors the pure part of
// hearth/market/reads.py. An RPC may answer anything: words that no contract writes are refused as RPC_BROKEN.

import { MAX_RESUMED } from "../generated/bounds";
import { STATE, UNIT_FLAG } from "../generated/states";
import { type Hex, hexWord } from "./bytes";
import { HearthError } from "./errors";
import type { KeptByAttempt } from "./pay";
import { type Accused, type Best, hasResult, type Header, type Kept, NEW_UNIT, type Unit, windowEnd } from "./types";
import { isHeader, unpackAccused, unpackBest, unpackHeader, unpackKept, unpackUnit } from "./words";

// A unit as stored: its lapse is not applied (`withLapse` does). `second` is its other slot: the best proposal while it
// is open, the result's digest once it has one.
export interface StoredUnit {
  readonly unit: Unit;
  readonly second: bigint;
  readonly accused: Accused;
}

const NO_BEST: Best = unpackBest(0n);
const NOBODY: Accused = unpackAccused(0n);

// Return what `unpack` reads in a contract's words. Throws RPC_BROKEN where no contract writes them.
export function asWritten<T>(unpack: () => T): T {
  try {
    return unpack();
  } catch (error) {
    if (!(error instanceof HearthError) || error.code !== "BAD_WORD") throw error;
    const message = `the RPC serves words that no contract writes: ${error.message}`;
    throw new HearthError("RPC_BROKEN", message, "hearth doctor");
  }
}

// Return what a job's own word says: the header of an array, or null and the unit of a one-lease job. Throws
// RPC_BROKEN.
export function jobOf(word: bigint): { readonly header: Header } | { readonly header: null; readonly unit: Unit } {
  return asWritten(() => (isHeader(word) ? { header: unpackHeader(word) } : { header: null, unit: unpackUnit(word) }));
}

// Read a one-lease job's unit, or a touched one of an array. Throws RPC_BROKEN.
export function storedUnit(word: bigint, second: bigint, accused: bigint): StoredUnit {
  return asWritten(() => ({ unit: unpackUnit(word), second, accused: unpackAccused(accused) }));
}

// Read a lease of an array: an untouched one is as the header says, open, blocked, or gone with a closed array. Throws
// RPC_BROKEN.
export function storedLease(header: Header, index: number, word: bigint, second: bigint, accused: bigint): StoredUnit {
  if (word !== 0n) return storedUnit(word, second, accused);
  const open = header.waiting ? STATE.BLOCKED : STATE.OPEN;
  const state = header.closed && index >= header.touched ? STATE.CANCELLED : open;
  return { unit: { ...NEW_UNIT, state, started: header.opened }, second: 0n, accused: NOBODY };
}

// Return the best proposal; meaningful only while the unit is OPEN with a proposal. Throws RPC_BROKEN.
export function bestOf({ unit, second }: StoredUnit): Best {
  return windowEnd(unit) === 0 ? NO_BEST : asWritten(() => unpackBest(second));
}

// Return the result's digest as storage keeps it, from SUBMITTED on; null for a unit without STORE.
export function keptResult({ unit, second }: StoredUnit): Hex | null {
  if ((unit.flags & UNIT_FLAG.STORE) === 0 || !hasResult(unit.state)) return null;
  return hexWord(second);
}

// Return by attempt the checkpoints that one resumed from, of which each names the one before it. Throws
// WRONG_CONTRACTS where they are not those that are named, RPC_BROKEN for words that are none.
export function resumedFrom(resume: number, words: readonly bigint[]): KeptByAttempt {
  const found = new Map<number, Kept>();
  let attempt = resume;
  for (const word of words) {
    if (attempt === 0 || found.has(attempt)) throw noAnswer();
    const kept = asWritten(() => unpackKept(word));
    found.set(attempt, kept);
    attempt = kept.resume;
  }
  if (attempt !== 0 && found.size < MAX_RESUMED) throw noAnswer();
  return found;
}

function noAnswer(): HearthError {
  const message = "Lens.status did not answer: the answer is not what its ABI says";
  return new HearthError("WRONG_CONTRACTS", message, "hearth doctor");
}
