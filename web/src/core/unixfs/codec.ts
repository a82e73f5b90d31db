// Nodes to bytes and back: dag-pb with UnixFS data, by a small protobuf of our own.
// Mirrors hearth/storage/unixfs/codec.py.

import { MURMUR3, TYPE_NAMES } from "../../generated/unixfs";
import { concat, hexNumber } from "../bytes";
import { type Bytes, type Cid, cidFromBytes } from "../cid";
import { HearthError } from "../errors";

// Point at a child: its name as bytes, `tsize` as the parent declares it (0 if it does not).
export interface Link {
  readonly cid: Cid;
  readonly name: Bytes;
  readonly tsize: bigint;
}

// One decoded dag-pb node with UnixFS data: `kind` is one of the UnixFS data types, `blockSizes` one content size per
// link of a file, `fanout` the slots of a shard, 0 of anything else.
export interface DagNode {
  readonly kind: number;
  readonly data: Bytes;
  readonly size: bigint;
  readonly blockSizes: readonly bigint[];
  readonly fanout: number;
  readonly links: readonly Link[];
}

export const TYPE_RAW = 0;
export const TYPE_DIRECTORY = 1;
export const TYPE_FILE = 2;
export const TYPE_METADATA = 3;
export const TYPE_SYMLINK = 4;
export const TYPE_SHARD = 5;

const VARINT = 0n;
const BYTES = 2n;
const FANOUTS: ReadonlyMap<bigint, number> = new Map([8, 16, 32, 64, 128, 256, 512, 1024].map((n) => [BigInt(n), n]));

// What is wrong with a block's bytes; readers of blocks turn it into BLOCK_CORRUPT.
class Malformed extends Error {}

type Field = readonly [number: bigint, value: bigint | Bytes];

// ---- writing ----

export function encodeField(number: number, value: bigint | number | Uint8Array): Bytes {
  const key = BigInt(number) << 3n;
  if (typeof value === "object") return concat([varint(key | BYTES), varint(BigInt(value.length)), value]);
  return concat([varint(key | VARINT), varint(BigInt(value))]);
}

// Return a dag-pb block: links first, then the data, as the dag-pb specification orders them.
export function encodeDagNode(data: Uint8Array, links: readonly Link[]): Bytes {
  const parts: Bytes[] = links.map((link) =>
    encodeField(
      2,
      concat([encodeField(1, link.cid.bytes()), encodeField(2, link.name), encodeField(3, link.tsize)]),
    ),
  );
  return concat([...parts, encodeField(1, data)]);
}

function varint(value: bigint): Bytes {
  const out: number[] = [];
  let left = value;
  for (; left > 0x7fn; left >>= 7n) out.push(low(left) | 0x80);
  return Uint8Array.from([...out, low(left)]);
}

const low = (value: bigint): number => Number.parseInt((value & 0x7fn).toString(), 10);

// ---- reading ----

// Read a dag-pb block with UnixFS data. Throws BLOCK_CORRUPT where its fields are malformed or disagree.
export function decodeDagNode(cid: Cid, block: Bytes): DagNode {
  return readable(cid, () => {
    const { links, data } = dagPb(block);
    return unixfs(data, links);
  });
}

// Return the children that a dag-pb block links to, in order. Throws BLOCK_CORRUPT.
export function decodeLinks(cid: Cid, block: Bytes): readonly Link[] {
  return readable(cid, () => dagPb(block).links);
}

export function corrupt(cid: Cid, why: string): HearthError {
  return new HearthError("BLOCK_CORRUPT", `block ${cid}: ${why}`, "hearth doctor", { cid: String(cid) });
}

function readable<T>(cid: Cid, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof Malformed || (error instanceof HearthError && error.code === "BAD_CID")) {
      throw corrupt(cid, error.message);
    }
    throw error;
  }
}

function dagPb(block: Bytes): { links: Link[]; data: Bytes } {
  const links: Link[] = [];
  let data: Bytes | undefined;
  let dataAfter = 0;
  for (const [number, value] of fields(block)) {
    if (number === 2n && typeof value === "object") links.push(link(value));
    else if (number === 1n && typeof value === "object" && data === undefined) {
      [data, dataAfter] = [value, links.length];
    } else throw new Malformed(`dag-pb field ${number} is unknown or stands twice`);
  }
  if (data === undefined) throw new Malformed("the node has no UnixFS data");
  if (dataAfter !== 0 && dataAfter !== links.length) throw new Malformed("the node's data stands between its links");
  return { links, data };
}

function link(message: Bytes): Link {
  let cid: Cid | undefined;
  let name: Bytes = new Uint8Array();
  let tsize = 0n;
  let last = 0n;
  for (const [number, value] of fields(message)) {
    if (number <= last) throw new Malformed("a link's fields are out of order");
    last = number;
    if (number === 1n && typeof value === "object") cid = cidFromBytes(value);
    else if (number === 2n && typeof value === "object") name = value;
    else if (number === 3n && typeof value === "bigint") tsize = value;
    else throw new Malformed(`link field ${number} is unknown`);
  }
  if (cid === undefined) throw new Malformed("a link names no block");
  return { cid, name, tsize };
}

function unixfs(message: Bytes, links: readonly Link[]): DagNode {
  let kind = -1n;
  let data: Bytes = new Uint8Array();
  let size: bigint | undefined;
  let fanout = 0n;
  let hashType = 0n;
  const blockSizes: bigint[] = [];
  for (const [number, value] of fields(message)) {
    if (typeof value === "bigint") {
      if (number === 1n) kind = value;
      else if (number === 3n) size = value;
      else if (number === 4n) blockSizes.push(value);
      else if (number === 5n) hashType = value;
      else if (number === 6n) fanout = value;
    } else if (number === 2n) {
      data = value;
    } else if (number === 4n) {
      // The packed form, which protobuf readers must take.
      for (let at = 0; at < value.length; ) at = readVarint(value, at, (one) => blockSizes.push(one));
    }
  }
  const type = TYPE_NAMES.findIndex((_, number) => BigInt(number) === kind);
  if (type < 0) throw new Malformed(`UnixFS type ${kind} is unknown`);
  if (type === TYPE_FILE || type === TYPE_RAW) size = sizeOfFile(data, size, blockSizes, links);
  const slots = FANOUTS.get(fanout);
  if (type === TYPE_SHARD && (hashType !== BigInt(MURMUR3) || slots === undefined)) {
    throw new Malformed(`a directory shard has hash ${hexNumber(hashType)} and fanout ${fanout}`);
  }
  return { kind: type, data, size: size ?? 0n, blockSizes, fanout: type === TYPE_SHARD ? (slots ?? 0) : 0, links };
}

function sizeOfFile(
  data: Bytes,
  declared: bigint | undefined,
  blockSizes: readonly bigint[],
  links: readonly Link[],
): bigint {
  if (blockSizes.length !== links.length) {
    throw new Malformed(`a file has ${links.length} links but ${blockSizes.length} sizes for them`);
  }
  const actual = blockSizes.reduce((sum, one) => sum + one, BigInt(data.length));
  if (declared !== undefined && declared !== actual) {
    throw new Malformed(`a file declares ${declared} bytes, its parts add up to ${actual}`);
  }
  return actual;
}

// Yield (field number, value) of a protobuf message.
function* fields(message: Bytes): Generator<Field> {
  let key = 0n;
  let value = 0n;
  for (let at = 0; at < message.length; ) {
    at = readVarint(message, at, (found) => (key = found));
    const wire = key & 7n;
    if (wire !== VARINT && wire !== BYTES) throw new Malformed(`wire type ${wire} has no place in UnixFS`);
    at = readVarint(message, at, (found) => (value = found));
    if (wire === VARINT) {
      yield [key >> 3n, value];
      continue;
    }
    if (value > BigInt(message.length - at)) throw new Malformed("a field is longer than its message");
    const end = at + Number.parseInt(value.toString(), 10);
    yield [key >> 3n, message.subarray(at, end)];
    at = end;
  }
}

// Hand on the number that stands at a place, and return where it ends.
function readVarint(message: Uint8Array, start: number, found: (value: bigint) => void): number {
  // Seven bytes fit a number of JavaScript's; beyond them it goes on in bigint.
  let small = 0;
  let large = 0n;
  for (let count = 0; count < 10; count += 1) {
    const byte = message[start + count];
    if (byte === undefined) break;
    if (count < 7) small += (byte & 0x7f) * 2 ** (7 * count);
    else large |= BigInt(byte & 0x7f) << BigInt(7 * count);
    if (byte < 0x80) {
      const value = large + BigInt(small);
      if (value >= 2n ** 64n) break;
      found(value);
      return start + count + 1;
    }
  }
  throw new Malformed("a number is cut off or above 64 bits");
}
