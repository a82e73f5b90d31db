// What the parts of UnixFS share: limits of a reader, entries, and where blocks come from.
// Mirrors hearth/storage/unixfs/model.py; its constants are in generated/unixfs.ts.
//
// Sizes are bigint: a stranger's node may declare any number of bytes, and sums of them are compared.

import { MAX_BLOCK_BYTES } from "../../generated/cid";
import { CHUNK_BYTES, HASH_BITS, LIMITS } from "../../generated/unixfs";
import type { Bytes, Cid } from "../cid";

// Gives blocks that hash to their CIDs; whoever it is has checked them.
export type Source = (cid: Cid) => Promise<Bytes>;

// One file or directory: `path` is relative, "" for the root; `size` content bytes; `tsize` bytes of all its blocks,
// repeats counted each time.
export interface Found {
  readonly cid: Cid;
  readonly kind: "file" | "directory";
  readonly size: bigint;
  readonly tsize: bigint;
  readonly path: string;
}

// What was imported: `files` in it, and `folders` with itself.
export interface Entry extends Found {
  readonly files: number;
  readonly folders: number;
}

// Bound what a reader accepts from a DAG that somebody else made: content bytes, files and directories, blocks read
// (repeats count each time), and `maxBelow` content bytes of single paths ("a/b") with all that lies below them.
export interface ReadLimits {
  readonly maxBytes: bigint;
  readonly maxEntries: number;
  readonly maxBlocks: number;
  readonly maxBelow: readonly (readonly [path: string, bytes: bigint])[];
}

export const DEFAULT_LIMITS: ReadLimits = {
  maxBytes: BigInt(LIMITS.max_bytes),
  maxEntries: LIMITS.max_entries,
  maxBlocks: LIMITS.max_blocks,
  maxBelow: [],
};

// Return the limits of a tree that was imported with the market's constants, however its names hash: a leaf and its
// share of inner nodes for each CHUNK_BYTES, and for each entry a node, a last leaf, and a shard for every byte of its
// name's hash.
export function limitsOfMarket(
  maxBytes: bigint,
  maxEntries: number,
  maxBelow: ReadLimits["maxBelow"] = [],
): ReadLimits {
  const chunks = maxBytes / BigInt(CHUNK_BYTES);
  const blocks = 2n * chunks + BigInt((3 + HASH_BITS / 8) * maxEntries);
  // Above 2^53 no reader comes to the end of its count.
  const most = BigInt(Number.MAX_SAFE_INTEGER);
  return { maxBytes, maxEntries, maxBlocks: Number.parseInt((blocks < most ? blocks : most).toString(), 10), maxBelow };
}

// Return the bytes of inner nodes to parse at most, far above what any importer needs for such content.
export function maxNodeBytes(limits: ReadLimits): bigint {
  return limits.maxBytes / 8n + BigInt(limits.maxEntries) * 1024n + BigInt(MAX_BLOCK_BYTES);
}

// Return the bytes of all blocks of a DAG at most: what a reader of its content would take, each block once.
export function maxDagBytes(limits: ReadLimits): bigint {
  return limits.maxBytes + maxNodeBytes(limits);
}
