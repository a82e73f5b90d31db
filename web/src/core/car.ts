// CAR files, version 1: the blocks of whole DAGs in one file, for a page that cannot upload. Mirrors the writer of
// hearth/storage/car.py, as a stream, whatever the size; the page reads none.

import { VERSION } from "../generated/car";
import { concat, utf8 } from "./bytes";
import type { Block, Bytes, Cid } from "./cid";

const LINK_TAG = Uint8Array.of(0xd8, 0x2a); // what DAG-CBOR writes before a CID: tag 42
const ROOTS_KEY = concat([Uint8Array.of(0xa2, 0x65), utf8("roots")]);
const VERSION_KEY = concat([Uint8Array.of(0x67), utf8("version")]);

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

// ---- the header: {"roots": [links], "version": 1} in DAG-CBOR ----

function encodeHeader(roots: readonly Cid[]): Bytes {
  const links = roots.map((root) => {
    const raw = concat([Uint8Array.of(0), root.bytes()]);
    return concat([LINK_TAG, head(2, raw.length), raw]);
  });
  return concat([ROOTS_KEY, head(4, roots.length), ...links, VERSION_KEY, head(0, VERSION)]);
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
