// What a job waits for before it opens: its parents' ends. Mirrors hearth/protocol/parents.py.
//
// The list of a job's parents is posted beside its terms, which hold its hash: a word of conditions, two bits for each
// parent, then the parents' ids.

import { encodeAbiParameters, keccak256 } from "viem/utils";

import { MAX_PARENTS, ZERO_HASH } from "../generated/bounds";
import { OUTCOME, STATE, UNIT_FLAG } from "../generated/states";
import type { Hex } from "./bytes";
import { HearthError } from "./errors";
import { jobOf } from "./stored";
import { type Header, isTerminal } from "./types";

// The end of a parent that its child waits for; its bits are those of the ends that count.
export const CONDITION = { SUCCESS: 1, FAILURE: 2, ALWAYS: 3 } as const;
// How a job has ended: not yet, every unit settled with outcome ok, or otherwise.
export const ENDED = { NOT_YET: 0, WELL: 1, OTHERWISE: 2 } as const;
export type Ended = (typeof ENDED)[keyof typeof ENDED];

export interface Parent {
  readonly job: Hex;
  readonly condition: number;
}

// Return the parents of a posted list, none of an empty one. Throws BAD_PARENTS for a list that no post takes.
export function unpackParents(packed: readonly Hex[]): readonly Parent[] {
  const [first, ...ids] = packed;
  if (first === undefined) return [];
  const conditions = BigInt(first);
  if (ids.length < 1 || ids.length > MAX_PARENTS || conditions >> BigInt(2 * ids.length) !== 0n) throw bad(ids.length);
  return ids.map((job, at) => {
    const condition = Number((conditions >> BigInt(2 * at)) & 3n);
    if (condition === 0) throw bad(ids.length);
    return { job, condition };
  });
}

// Return what the terms hold of a posted list: 32 bytes, all zero for no parents.
export const parentsHash = (packed: readonly Hex[]): Hex =>
  packed.length === 0 ? ZERO_HASH : keccak256(encodeAbiParameters([{ type: "bytes32[]" }], [packed]));

// Say by a job's own word how it has ended. 0, and the word of an array's unit, are no jobs: they never end. Throws
// RPC_BROKEN for a word that no contract writes.
export function endedOf(word: bigint): Ended {
  const job = jobOf(word);
  if (job.header === null) {
    const { unit } = job;
    if (!isTerminal(unit.state) || (unit.flags & UNIT_FLAG.ARRAY) !== 0) return ENDED.NOT_YET;
    return unit.state === STATE.SETTLED && unit.outcome === OUTCOME.OK ? ENDED.WELL : ENDED.OTHERWISE;
  }
  const { header } = job;
  const whole = header.closed ? header.touched : header.leases;
  return header.done + header.failed === whole ? endOf(header) : ENDED.NOT_YET;
}

// An array ends well, or a job of replicas, by its successes alone.
const endOf = (header: Header): Ended =>
  header.done >= (header.quorum === 0 ? header.leases : header.quorum) ? ENDED.WELL : ENDED.OTHERWISE;

function bad(count: number): HearthError {
  return new HearthError("BAD_PARENTS", `${count} parents with conditions that no post takes`);
}
