// What a job waits for before it opens: its parents' ends. Mirrors hearth/protocol/parents.py. The list of a job's
// parents is posted beside its terms, which hold its hash: a word of conditions, two bits for each parent, then their
// ids.

import { MAX_PARENTS, ZERO_HASH } from "../generated/bounds";
import { CONDITION, ENDED, PROGRESS } from "../generated/parents";
import { OUTCOME, STATE, UNIT_FLAG } from "../generated/states";
import { type Hex, hexNumber, hexWord } from "./bytes";
import { HearthError } from "./errors";
import { keccakOf } from "./terms";
import { type Header, isTerminal } from "./types";
import { isHeader, unpackHeader, unpackUnit } from "./words";

export type Condition = (typeof CONDITION)[keyof typeof CONDITION];
export type Ended = (typeof ENDED)[keyof typeof ENDED];
export type Progress = (typeof PROGRESS)[keyof typeof PROGRESS];

// One job that another waits for.
export interface Parent {
  readonly job: Hex;
  readonly condition: Condition;
}

// Return the list that `post` and `unlock` take: the conditions, then the ids; empty for no parents. Throws BAD_PARENTS
// for more than MAX_PARENTS.
export function packParents(parents: readonly Parent[]): readonly Hex[] {
  if (parents.length === 0) return [];
  if (parents.length > MAX_PARENTS) throw bad(`${parents.length} parents are more than ${MAX_PARENTS}`);
  const conditions = parents.reduce((sum, one, at) => sum | (BigInt(one.condition) << BigInt(2 * at)), 0n);
  return [hexWord(conditions), ...parents.map((one) => one.job)];
}

// Return the parents of a posted list. Throws BAD_PARENTS for one that no `post` takes.
export function unpackParents(packed: readonly Hex[]): readonly Parent[] {
  const [first, ...ids] = packed;
  if (first === undefined) return [];
  const conditions = BigInt(first);
  if (ids.length < 1 || ids.length > MAX_PARENTS || conditions >> BigInt(2 * ids.length) !== 0n) {
    throw bad(`${ids.length} parents with conditions ${hexNumber(conditions)}`);
  }
  return ids.map((job, at) => ({ job, condition: conditionOf((conditions >> BigInt(2 * at)) & 3n) }));
}

// Return what the terms hold of a list from packParents: 32 bytes, all zero for no parents.
export function parentsHash(packed: readonly Hex[]): Hex {
  return packed.length === 0 ? ZERO_HASH : keccakOf([32n, BigInt(packed.length), ...packed]);
}

// Say by a job's own word, as `Lens.jobs` returns it, how the job has ended. Zero, and the word of an array's unit, are
// no jobs: they never end. Throws BAD_WORD for a word that no contract writes.
export function endedBy(word: bigint): Ended {
  if (!isHeader(word)) {
    const unit = unpackUnit(word);
    if (!isTerminal(unit.state) || (unit.flags & UNIT_FLAG.ARRAY) !== 0) return ENDED.NOT_YET;
    return unit.state === STATE.SETTLED && unit.outcome === OUTCOME.OK ? ENDED.WELL : ENDED.OTHERWISE;
  }
  const header = unpackHeader(word);
  const whole = header.closed ? header.touched : header.leases;
  return header.done + header.failed === whole ? endOf(header) : ENDED.NOT_YET;
}

// Say how a job that has not ended ends where no further unit of it succeeds, by its own word. Throws BAD_WORD.
export const endsAtWorst = (word: bigint): Ended => (isHeader(word) ? endOf(unpackHeader(word)) : ENDED.OTHERWISE);

// Say what `unlock` may do with a job, by the words of its parents in their order. One parent that ended otherwise than
// asked ends the job at once, whatever the others do. Throws BAD_PARENTS for another number of words, BAD_WORD.
export function progressOf(parents: readonly Parent[], words: readonly bigint[]): Progress {
  if (parents.length !== words.length) throw bad(`${words.length} words of ${parents.length} parents`);
  let found: Progress = PROGRESS.OPENS;
  for (const [at, parent] of parents.entries()) {
    const end = endedBy(words[at] as bigint);
    if (end === ENDED.NOT_YET) found = PROGRESS.WAITS;
    else if ((parent.condition & end) === 0) return PROGRESS.FAILS;
  }
  return found;
}

const endOf = (header: Header): Ended =>
  header.done >= (header.quorum === 0 ? header.leases : header.quorum) ? ENDED.WELL : ENDED.OTHERWISE;

function conditionOf(bits: bigint): Condition {
  const found = Object.values(CONDITION).find((one) => BigInt(one) === bits);
  if (found === undefined) throw bad(`${bits} is not a valid Condition`);
  return found;
}

const bad = (why: string): HearthError => new HearthError("BAD_PARENTS", why);
