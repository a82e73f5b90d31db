// The list of the jobs that a job waits for, as `post` and `unlock` take it, and its hash in the terms. Mirrors
// `pack_parents` and `parents_hash` of hearth/protocol/parents.py.

import { MAX_PARENTS, ZERO_HASH } from "../generated/bounds";
import { CONDITION } from "../generated/spec";
import type { Hex } from "./bytes";
import { HearthError } from "./errors";
import { keccakOf } from "./terms";

export type ParentCondition = (typeof CONDITION)[keyof typeof CONDITION];

// One job that another waits for: its id, and which end of it counts.
export interface Parent {
  readonly job: Hex;
  readonly condition: ParentCondition;
}

// The conditions, two bits for each parent, then the ids; empty for no parents. Throws BAD_SPEC for more than
// MAX_PARENTS.
export function packParents(parents: readonly Parent[]): readonly Hex[] {
  if (parents.length === 0) return [];
  if (parents.length > MAX_PARENTS) {
    throw new HearthError("BAD_SPEC", `${parents.length} parents are more than ${MAX_PARENTS}`);
  }
  const conditions = parents.reduce((word, { condition }, at) => word | (condition << (2 * at)), 0);
  return [`0x${conditions.toString(16).padStart(64, "0")}`, ...parents.map(({ job }) => job)];
}

// What the terms hold of a list from `packParents`: keccak256 of its ABI encoding as bytes32[], zero for no parents.
export function parentsHash(packed: readonly Hex[]): Hex {
  // The list stands behind its place, one word in, and its length.
  return packed.length === 0 ? ZERO_HASH : keccakOf([32n, BigInt(packed.length), ...packed]);
}
