// Directories to blocks: one plain block, or above DIRECTORY_BLOCK_BYTES a tree of shards (HAMT).
// Mirrors hearth/storage/unixfs/sharding.py.

import { DAG_PB } from "../../generated/cid";
import { DIRECTORY_BLOCK_BYTES, HASH_BITS, MURMUR3, SHARD_FANOUT } from "../../generated/unixfs";
import { compare, concat, utf8 } from "../bytes";
import { type Block, type Cid, cidOf } from "../cid";
import { HearthError } from "../errors";
import { encodeDagNode, encodeField, type Link, TYPE_DIRECTORY, TYPE_SHARD } from "./codec";

const SLOT_BITS = 31 - Math.clz32(SHARD_FANOUT);
const MASK = 2n ** 64n - 1n;
const C1 = 0x87c37b91114253d5n;
const C2 = 0x4cf5ad432745937fn;

export interface Stored {
  readonly cid: Cid;
  readonly tsize: bigint;
}

type Hashed = readonly [hash: bigint, link: Link];

// Yield the blocks of a directory of links with names, each of them once, in any order; return its CID and cumulative
// size. Throws UNSAFE_PATH where two names have the same hash, which no tree of shards can tell apart.
export async function* putDirectory(links: readonly Link[], path = ""): AsyncGenerator<Block, Stored> {
  const block = encodeDirectory(links);
  if (block.length > DIRECTORY_BLOCK_BYTES) {
    return yield* putShard(links.map((link) => [hashName(link.name), link] as const), 1, path);
  }
  return yield* put(block, links);
}

// Return the block of a plain directory, its links sorted by the bytes of their names.
function encodeDirectory(links: readonly Link[]): Uint8Array<ArrayBuffer> {
  return encodeDagNode(encodeField(1, TYPE_DIRECTORY), [...links].sort((a, b) => compare(a.name, b.name)));
}

// Yield a node's block and return its name and cumulative size.
export async function* put(block: Uint8Array<ArrayBuffer>, links: readonly Link[]): AsyncGenerator<Block, Stored> {
  const cid = await cidOf(block, DAG_PB);
  yield { cid, bytes: block };
  return { cid, tsize: links.reduce((sum, link) => sum + link.tsize, BigInt(block.length)) };
}

// Yield the shard of entries whose hashes agree in all levels above; a slot that several share is a shard again.
async function* putShard(entries: readonly Hashed[], level: number, path: string): AsyncGenerator<Block, Stored> {
  const slots = new Map<number, Hashed[]>();
  for (const entry of entries) {
    const slot = slotOf(entry[0], level);
    const there = slots.get(slot);
    if (there === undefined) slots.set(slot, [entry]);
    else there.push(entry);
  }
  const links: Link[] = [];
  const taken = new Uint8Array(SHARD_FANOUT / 8); // a bit a slot, the highest first
  for (let slot = 0; slot < SHARD_FANOUT; slot += 1) {
    const [one, other] = slots.get(slot) ?? [];
    if (one === undefined) continue;
    const byte = taken.length - 1 - (slot >> 3);
    taken[byte] = (taken[byte] ?? 0) | (1 << (slot & 7));
    const prefix = utf8(slot.toString(16).toUpperCase().padStart(2, "0"));
    if (other === undefined) {
      links.push({ ...one[1], name: concat([prefix, one[1].name]) });
      continue;
    }
    if (level * SLOT_BITS === HASH_BITS) throw sameHash(one[1], other[1], path);
    const { cid, tsize } = yield* putShard(slots.get(slot) ?? [], level + 1, path);
    links.push({ cid, name: prefix, tsize });
  }
  const bits = taken.subarray(taken.findIndex((byte) => byte !== 0));
  const head = [encodeField(1, TYPE_SHARD), encodeField(2, bits)];
  const data = concat([...head, encodeField(5, MURMUR3), encodeField(6, SHARD_FANOUT)]);
  return yield* put(encodeDagNode(data, links), links);
}

function slotOf(hash: bigint, level: number): number {
  const slot = (hash >> BigInt(HASH_BITS - level * SLOT_BITS)) & BigInt(SHARD_FANOUT - 1);
  return Number.parseInt(slot.toString(), 10);
}

function sameHash(one: Link, other: Link, path: string): HearthError {
  const [a, b] = [one, other].map((link) => JSON.stringify(new TextDecoder().decode(link.name)));
  return new HearthError(
    "UNSAFE_PATH",
    `the names ${a} and ${b} in ${path || "."} have the same hash: a directory of more than ` +
      `${DIRECTORY_BLOCK_BYTES} bytes of names cannot hold both`,
    "rename one of them",
    { path },
  );
}

// ---- the hash that places a name in shards ----

// Return the first 64 bits of MurmurHash3 x64 128, seed 0.
export function hashName(name: Uint8Array): bigint {
  let one = 0n;
  let two = 0n;
  const whole = name.length & ~15;
  for (let at = 0; at < whole; at += 16) {
    one = ((turn(one ^ mixLow(word(name, at)), 27n) + two) * 5n + 0x52dce729n) & MASK;
    two = ((turn(two ^ mixHigh(word(name, at + 8)), 31n) + one) * 5n + 0x38495ab5n) & MASK;
  }
  // A tail of no bytes mixes to 0 and changes nothing.
  one ^= mixLow(word(name, whole)) ^ BigInt(name.length);
  two ^= mixHigh(word(name, whole + 8)) ^ BigInt(name.length);
  one = (one + two) & MASK;
  two = (two + one) & MASK;
  return (end(one) + end(two)) & MASK;
}

// Return up to eight bytes, the lowest first, as a number.
function word(bytes: Uint8Array, at: number): bigint {
  let value = 0n;
  for (let place = Math.min(at + 8, bytes.length) - 1; place >= at; place -= 1) {
    value = (value << 8n) | BigInt(bytes[place] as number);
  }
  return value;
}

const turn = (value: bigint, by: bigint): bigint => ((value << by) | (value >> (64n - by))) & MASK;
const mixLow = (value: bigint): bigint => (turn((value * C1) & MASK, 31n) * C2) & MASK;
const mixHigh = (value: bigint): bigint => (turn((value * C2) & MASK, 33n) * C1) & MASK;

function end(value: bigint): bigint {
  const first = ((value ^ (value >> 33n)) * 0xff51afd7ed558ccdn) & MASK;
  const second = ((first ^ (first >> 33n)) * 0xc4ceb9fe1a85ec53n) & MASK;
  return second ^ (second >> 33n);
}
