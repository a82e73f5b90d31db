// DAG-CBOR to values, as strictly as libipld reads it for the library: definite lengths, keys that are texts, sorted by
// length and then by bytes, each once; of tags links alone, of floats those of 32 and 64 bits that are finite.
// Source: https://ipld.io/specs/codecs/dag-cbor/spec/. Used for the headers of CAR files.

import { compare } from "./bytes";
import type { Bytes } from "./cid";
import { fromUtf8 } from "./unicode";

// Whole numbers are bigint. A link is the bytes of its CID, as a byte string is its bytes.
export type Cbor = null | boolean | bigint | number | string | Bytes | readonly Cbor[] | ReadonlyMap<string, Cbor>;

const LINK = 42n;
// How deep the library's interpreter recurses, unless told otherwise.
const MAX_DEPTH = 1000;
const MAX_LINK_DIGEST = 64n;

// What is no DAG-CBOR; readers turn it into a code of their own.
export class NoCbor extends Error {}

// Return the one value that bytes are. Throws NoCbor.
export function decodeDagCbor(bytes: Bytes): Cbor {
  const reader = new Reader(bytes);
  const value = reader.value(0);
  if (!reader.ended) throw new NoCbor("something follows the value");
  return value;
}

class Reader {
  #at = 0;

  constructor(readonly bytes: Bytes) {}

  get ended(): boolean {
    return this.#at === this.bytes.length;
  }

  value(depth: number): Cbor {
    if (depth > MAX_DEPTH) throw new NoCbor("it is nested too deep");
    const first = this.bytes[this.#at];
    if (first === undefined) throw new NoCbor("it has no end");
    const major = first >> 5;
    if (major === 7) return this.#simple(first);
    const number = this.#head();
    if (major === 0) return number;
    if (major === 1) return -1n - number;
    if (major === 2) return this.#taken(number);
    if (major === 3) return this.#text(number);
    if (major === 4) return this.#list(number, depth);
    return major === 5 ? this.#map(number, depth) : this.#link(number);
  }

  // Read the number that an item begins with: its value, length or tag.
  #head(): bigint {
    const info = (this.bytes[this.#at] as number) & 31;
    this.#at += 1;
    if (info < 24) return BigInt(info);
    if (info > 27) throw new NoCbor("a length is not definite");
    let value = 0n;
    for (const byte of this.#taken(1n << BigInt(info - 24))) value = (value << 8n) | BigInt(byte);
    return value;
  }

  #taken(length: bigint): Bytes {
    if (length > BigInt(this.bytes.length - this.#at)) throw new NoCbor("it has no end");
    const end = this.#at + Number.parseInt(length.toString(), 10);
    const taken = this.bytes.slice(this.#at, end);
    this.#at = end;
    return taken;
  }

  #text(length: bigint): string {
    const text = fromUtf8(this.#taken(length));
    if (text === undefined) throw new NoCbor("a text is not UTF-8");
    return text;
  }

  #list(count: bigint, depth: number): Cbor[] {
    // Each has a byte at least: nothing is made for what cannot be there.
    if (count > BigInt(this.bytes.length - this.#at)) throw new NoCbor("it has no end");
    const list: Cbor[] = [];
    for (let at = 0n; at < count; at += 1n) list.push(this.value(depth + 1));
    return list;
  }

  #map(count: bigint, depth: number): ReadonlyMap<string, Cbor> {
    if (2n * count > BigInt(this.bytes.length - this.#at)) throw new NoCbor("it has no end");
    const map = new Map<string, Cbor>();
    let before: Bytes | undefined;
    for (let at = 0n; at < count; at += 1n) {
      if ((this.bytes[this.#at] ?? 0) >> 5 !== 3) throw new NoCbor("a key is no text");
      const key = this.#taken(this.#head());
      if (before !== undefined && (before.length - key.length || compare(before, key)) >= 0) {
        throw new NoCbor("keys are sorted, each of them once");
      }
      before = key;
      const text = fromUtf8(key);
      if (text === undefined) throw new NoCbor("a key is not UTF-8");
      map.set(text, this.value(depth + 1));
    }
    return map;
  }

  #link(tag: bigint): Bytes {
    if (tag !== LINK || (this.bytes[this.#at] ?? 0) >> 5 !== 2) throw new NoCbor("a tag is no link");
    const raw = this.#taken(this.#head());
    const cid = raw.slice(1);
    if (raw[0] !== 0 || !looksLikeCid(cid)) throw new NoCbor("a link is no CID");
    return cid;
  }

  #simple(first: number): Cbor {
    this.#at += 1;
    if (first === 0xf4) return false;
    if (first === 0xf5) return true;
    if (first === 0xf6) return null;
    if (first !== 0xfa && first !== 0xfb) throw new NoCbor("a value is of no kind that is read");
    const raw = new DataView(this.#taken(first === 0xfa ? 4n : 8n).buffer);
    const value = first === 0xfa ? raw.getFloat32(0) : raw.getFloat64(0);
    if (!Number.isFinite(value)) throw new NoCbor("a number is not finite");
    return value;
  }
}

// Say whether bytes begin as a CID does, whatever its codec and hash, its digest of 64 bytes at most.
function looksLikeCid(bytes: Uint8Array): boolean {
  let at = 0;
  // Read a varint in its shortest form; undefined where there is none.
  function next(): bigint | undefined {
    let value = 0n;
    for (let count = 0; count < 10; count += 1) {
      const byte = bytes[at + count];
      if (byte === undefined) return undefined;
      value |= BigInt(byte & 0x7f) << BigInt(7 * count);
      if (byte >= 0x80) continue;
      if (byte === 0 && count > 0) return undefined;
      at += count + 1;
      return value;
    }
    return undefined;
  }
  const [version, codec] = [next(), next()];
  if (version === 0x12n && codec === 0x20n) return bytes.length >= at + 32;
  if (version !== 1n || codec === undefined || next() === undefined) return false;
  const size = next();
  return size !== undefined && size <= MAX_LINK_DIGEST && BigInt(bytes.length - at) >= size;
}
