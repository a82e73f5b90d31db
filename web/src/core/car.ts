// CAR files, version 1: the blocks of whole DAGs in one file, for a page that cannot upload.
// Mirrors hearth/storage/car.py. Written and read as a stream, whatever the size; no block is believed before its CID
// is checked.

import { MAX_HEADER_BYTES, MAX_ROOTS, MAX_SECTION_BYTES, VERSION } from "../generated/car";
import { concat, equal, utf8 } from "./bytes";
import { type Block, type Bytes, type Cid, cidFromBytes, cidFromStart } from "./cid";
import { ByteReader, type Content } from "./content";
import { HearthError } from "./errors";

const LINK_TAG = Uint8Array.of(0xd8, 0x2a); // what DAG-CBOR writes before a CID: tag 42
const ROOTS_KEY = concat([Uint8Array.of(0xa2, 0x65), utf8("roots")]);
const VERSION_KEY = concat([Uint8Array.of(0x67), utf8("version")]);
const PRAGMA_2 = concat([Uint8Array.of(0xa1), VERSION_KEY, Uint8Array.of(2)]); // the header of a file of version 2

// Yield the bytes of a CAR file, block by block.
export async function* writeCar(
  roots: readonly Cid[],
  blocks: AsyncIterable<Block> | Iterable<Block>,
): AsyncGenerator<Bytes> {
  const header = encodeHeader(roots);
  yield concat([varint(header.length), header]);
  for await (const { cid, bytes } of blocks) {
    const name = cid.bytes();
    yield concat([varint(name.length + bytes.length), name]);
    yield bytes;
  }
}

// Return the roots of a CAR file, and its blocks in their order, each checked against its CID as it comes. Throws
// BAD_CAR for what is none, and BLOCK_CORRUPT, BAD_CID, TOO_LARGE or UNREADABLE, at once or from the iterator.
export async function readCar(content: Content): Promise<{ roots: Cid[]; blocks: AsyncGenerator<Block> }> {
  const reader = new ByteReader(content);
  const length = await readVarint(reader, MAX_HEADER_BYTES);
  if (length === undefined) throw bad("it is empty");
  return { roots: rootsIn(await readWhole(reader, length)), blocks: sections(reader) };
}

async function* sections(reader: ByteReader): AsyncGenerator<Block> {
  for (;;) {
    const length = await readVarint(reader, MAX_SECTION_BYTES);
    if (length === undefined) return;
    const section = await readWhole(reader, length);
    const { cid, end } = cidFromStart(section);
    yield { cid, bytes: await cid.verify(section.slice(end)) };
  }
}

// ---- the header: {"roots": [links], "version": 1} in DAG-CBOR ----

function encodeHeader(roots: readonly Cid[]): Bytes {
  const links = roots.map((root) => {
    const raw = concat([Uint8Array.of(0), root.bytes()]);
    return concat([LINK_TAG, head(2, raw.length), raw]);
  });
  return concat([ROOTS_KEY, head(4, roots.length), ...links, VERSION_KEY, head(0, VERSION)]);
}

// DAG-CBOR has one form for each header, so this reads that form and no CBOR.
function rootsIn(header: Bytes): Cid[] {
  if (equal(header, PRAGMA_2)) throw bad(`it is of version 2, and only version ${VERSION} is read`);
  const roots: Cid[] = [];
  if (startsAt(header, 0, ROOTS_KEY)) {
    let { value: count, at } = readHead(header, ROOTS_KEY.length, 4);
    if (count < 1 || count > MAX_ROOTS) throw bad(`it does not name 1 to ${MAX_ROOTS} roots`);
    for (; count > 0; count -= 1) {
      if (!startsAt(header, at, LINK_TAG)) throw bad("a root of it is no link");
      const link = readHead(header, at + LINK_TAG.length, 2);
      at = link.at + link.value;
      roots.push(cidFromBytes(header.slice(link.at + 1, at)));
    }
  }
  if (roots.length === 0 || !equal(header, encodeHeader(roots))) {
    throw bad(`its header is not that of version ${VERSION}`);
  }
  return roots;
}

const startsAt = (bytes: Bytes, at: number, part: Bytes): boolean =>
  equal(bytes.subarray(at, at + part.length), part);

// Return the value of the CBOR item that starts there, and where its content does. Throws BAD_CAR for another.
function readHead(header: Bytes, at: number, kind: number): { value: number; at: number } {
  const [first = 0, high, low] = header.subarray(at, at + 3);
  const value = first & 31;
  if (at < header.length && first >> 5 === kind) {
    if (value < 24) return { value, at: at + 1 };
    if (value === 24 && high !== undefined) return { value: high, at: at + 2 };
    if (value === 25 && high !== undefined && low !== undefined) return { value: high * 256 + low, at: at + 3 };
  }
  throw bad("its header is no DAG-CBOR");
}

// Return the first bytes of a CBOR item: its kind and its length or value, below 2^16.
function head(kind: number, value: number): Bytes {
  if (value < 24) return Uint8Array.of((kind << 5) | value);
  return value < 256
    ? Uint8Array.of((kind << 5) | 24, value)
    : Uint8Array.of((kind << 5) | 25, value >> 8, value & 255);
}

// ---- lengths ----

function varint(value: number): Bytes {
  const out: number[] = [];
  let left = value;
  for (; left > 0x7f; left >>>= 7) out.push((left & 0x7f) | 0x80);
  return Uint8Array.from([...out, left]);
}

// Return the next length, undefined at the end of the file. Throws BAD_CAR above `most`, for 0, and after five bytes.
async function readVarint(reader: ByteReader, most: number): Promise<number | undefined> {
  let value = 0;
  for (let count = 0; ; count += 1) {
    if (count > 4) throw bad("a length of it has no end");
    const [byte] = await reader.read(1);
    if (byte === undefined) {
      if (count > 0) throw bad("it ends in the middle of a length");
      return undefined;
    }
    value += (byte & 0x7f) * 2 ** (7 * count);
    if (byte < 0x80) break;
  }
  if (value < 1 || value > most) {
    throw bad(`a part of it says that it has ${value} bytes, and may have 1 to ${most}`);
  }
  return value;
}

async function readWhole(reader: ByteReader, length: number): Promise<Bytes> {
  const bytes = await reader.read(length);
  if (bytes.length < length) throw bad("it ends in the middle of a block");
  return bytes;
}

function bad(why: string): HearthError {
  const hint = "write it anew: hearth store export CID FILE";
  return new HearthError("BAD_CAR", `this is no CAR file that can be read: ${why}`, hint);
}
