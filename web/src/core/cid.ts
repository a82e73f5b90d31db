// Content identifiers: parse, print, verify. Mirrors hearth/storage/cid.py, and of hearth/storage/canonical.py how a
// document's digest on chain is its CID.

import { blake3 } from "@noble/hashes/blake3"; // a dependency of viem as well
import { base16 } from "multiformats/bases/base16";
import { base32, base32upper } from "multiformats/bases/base32";
import { base36 } from "multiformats/bases/base36";
import { base58btc } from "multiformats/bases/base58";
import { base64url } from "multiformats/bases/base64";

import { concat, equal, hexNumber, sha256, toHex } from "./bytes";
import { HearthError } from "./errors";
import {
  BLAKE3,
  CODECS,
  DAG_PB,
  DIGEST_BYTES,
  HASHES,
  IDENTITY,
  MAX_BLOCK_BYTES,
  MAX_INLINE_BYTES,
  MAX_TEXT,
  RAW,
  SHA2_256,
} from "../generated/cid";

export type Bytes = Uint8Array<ArrayBuffer>;
// A block and its name.
export type Block = { readonly cid: Cid; readonly bytes: Bytes };

// The bases that tools write CIDs in. The library reads rare ones too.
const BASES = [base32, base32upper, base36, base58btc, base16, base64url];
const V0_PREFIX = Uint8Array.of(SHA2_256, DIGEST_BYTES);
const HINT = "a CID looks like bafybei... or Qm...; copy it again from where it was printed";
const CODEC_NAMES: ReadonlyMap<number, string> = named(CODECS);
const HASH_NAMES: ReadonlyMap<number, string> = named(HASHES);

// Name a block by its codec and the hash of its bytes: `version` 0 or 1, `codec` one of CODECS, `hashCode` one of
// HASHES, `digest` 32 bytes, or for IDENTITY the block itself.
export class Cid {
  constructor(
    readonly version: number,
    readonly codec: number,
    readonly hashCode: number,
    readonly digest: Bytes,
  ) {}

  bytes(): Bytes {
    if (this.version === 0) return concat([V0_PREFIX, this.digest]);
    return concat([Uint8Array.of(1, this.codec, this.hashCode), varLength(this.digest.length), this.digest]);
  }

  // Return the text: v0 in base58, v1 in base32.
  toString(): string {
    return this.version === 0 ? base58btc.baseEncode(this.bytes()) : base32.encode(this.bytes());
  }

  // Return a text that two equal CIDs, and no others, have in common.
  get key(): string {
    return toHex(this.bytes());
  }

  // Return `block` if it hashes to this CID. Throws TOO_LARGE above 2 MiB, BLOCK_CORRUPT where the hash differs.
  async verify(block: Bytes): Promise<Bytes> {
    checkBlockSize(block);
    if (!equal(await hash(this.hashCode, block), this.digest)) {
      throw new HearthError(
        "BLOCK_CORRUPT",
        `block ${this}: the ${block.length} bytes received do not hash to it`,
        "hearth doctor",
        { cid: String(this) },
      );
    }
    return block;
  }
}

// Return the CIDv1 (sha2-256) of a block. Throws TOO_LARGE above 2 MiB.
export async function cidOf(block: Bytes, codec: number = RAW): Promise<Cid> {
  checkBlockSize(block);
  return new Cid(1, codec, SHA2_256, await sha256(block));
}

// Return the CIDv1 of a UnixFS root that is named by the sha2-256 digest of its dag-pb block alone, as on chain.
export const cidOfRoot = (digest: Bytes): Cid => new Cid(1, DAG_PB, SHA2_256, digest);

// Return the CID of the document that 32 bytes on chain name. Throws BAD_CID for another length.
export function cidOfDigest(digest: Bytes): Cid {
  if (digest.length !== DIGEST_BYTES) {
    throw bad(`a document digest has ${DIGEST_BYTES} bytes, this one has ${digest.length}`, "hearth job show JOB");
  }
  return new Cid(1, RAW, SHA2_256, digest);
}

// Return the 32 bytes that name a document; the inverse of `cidOfDigest`. Throws BAD_CID for a CID of anything else.
export function digestOfCid(document: Cid): Bytes {
  if (document.version !== 1 || document.codec !== RAW || document.hashCode !== SHA2_256) {
    throw bad(`${document} names no document: that takes CIDv1, raw, sha2-256`, "hearth job show JOB");
  }
  return cidOfDigest(document.digest).digest;
}

// Read a CID from its text: v0 in base58, v1 in the bases of BASES, each text in its one spelling.
// Throws BAD_CID for everything that is not exactly one CID of a listed codec and hash.
export function parseCid(text: string): Cid {
  // Characters are code points, of at most two units each.
  const length = text.length > 2 * MAX_TEXT ? text.length : [...text].length;
  if (length === 0 || length > MAX_TEXT) {
    throw bad(`a CID has 1 to ${MAX_TEXT} characters, this text has ${length}`);
  }
  return cidFromBytes(bytesOf(length === 46 && text.startsWith("Qm") ? `z${text}` : text), text);
}

function bytesOf(text: string): Bytes {
  const base = BASES.find(({ prefix }) => text.startsWith(prefix));
  try {
    const raw = base?.decode(text);
    if (raw !== undefined && base?.encode(raw) === text) return Uint8Array.from(raw);
  } catch {
    // What a character of no base, or bits left over, make of it.
  }
  throw bad(`${JSON.stringify(text)} is no CID, or in a base that this page does not read`);
}

// Read the CID that some bytes begin with; return it and where it ends. Throws BAD_CID.
export function cidFromStart(raw: Bytes): { cid: Cid; end: number } {
  const length = raw[3] ?? 0;
  let end = 4 + length;
  if (isV0(raw)) end = 2 + DIGEST_BYTES;
  else if (raw.length > 4 && length >= 0x80) end = 5 + ((length & 0x7f) | ((raw[4] as number) << 7));
  return { cid: cidFromBytes(raw.slice(0, end)), end };
}

// Read a CID from its bytes; `shown` is the text to name in errors. Throws BAD_CID.
export function cidFromBytes(raw: Bytes, shown?: string): Cid {
  const name = shown === undefined ? toHex(raw.slice(0, 80)) : JSON.stringify(shown);
  if (isV0(raw) && raw.length === 2 + DIGEST_BYTES) return new Cid(0, DAG_PB, SHA2_256, raw.slice(2));
  // Every version, codec and hash on our lists is below 128, so each varint but the length is one byte long.
  const [version, codec, hashCode, length] = raw;
  if (version !== 1 || codec === undefined || hashCode === undefined || length === undefined) {
    throw bad(`${name} is no CID of version 0 or 1`);
  }
  if (!CODEC_NAMES.has(codec)) throw bad(`${name}: codec ${hexNumber(codec)} is not one of ${list(CODEC_NAMES)}`);
  if (!HASH_NAMES.has(hashCode)) {
    throw bad(`${name}: hash ${hexNumber(hashCode)} is not one of ${list(HASH_NAMES)}`);
  }
  const digest = raw.slice(length < 0x80 ? 4 : 5);
  if (hashCode === IDENTITY && digest.length > MAX_INLINE_BYTES) {
    throw bad(`${name}: it holds a block of more than ${MAX_INLINE_BYTES} bytes`);
  }
  if (hashCode !== IDENTITY && digest.length !== DIGEST_BYTES) {
    throw bad(`${name}: the digest is not exactly ${DIGEST_BYTES} bytes long`);
  }
  if (!equal(raw.slice(3, raw.length - digest.length), varLength(digest.length))) {
    throw bad(`${name}: the digest is not as long as it says`);
  }
  return new Cid(1, codec, hashCode, digest);
}

// Split `ipfs://CID/path`, `/ipfs/CID/path` or a bare CID into the CID and the path, without outer slashes.
// Throws BAD_CID.
export function parseUri(text: string): { cid: Cid; path: string } {
  for (const prefix of ["ipfs://", "/ipfs/"]) {
    if (!text.startsWith(prefix)) continue;
    const rest = text.slice(prefix.length);
    const slash = rest.indexOf("/");
    if (slash < 0) return { cid: parseCid(rest), path: "" };
    return { cid: parseCid(rest.slice(0, slash)), path: trimSlashes(rest.slice(slash)) };
  }
  return { cid: parseCid(text), path: "" };
}

// Refuse a block above 2 MiB. Throws TOO_LARGE.
export function checkBlockSize(block: Uint8Array): void {
  if (block.length <= MAX_BLOCK_BYTES) return;
  throw new HearthError(
    "TOO_LARGE",
    `a block has at most ${MAX_BLOCK_BYTES} bytes, this one has ${block.length}`,
    "hearth doctor",
  );
}

// Return what a codec is called: raw, dag-pb or dag-cbor.
export const codecName = (codec: number): string => CODEC_NAMES.get(codec) ?? hexNumber(codec);

// ---- inside ----

async function hash(hashCode: number, block: Bytes): Promise<Uint8Array> {
  if (hashCode === IDENTITY) return block;
  return hashCode === BLAKE3 ? blake3(block) : sha256(block);
}

const isV0 = (raw: Uint8Array): boolean => equal(raw.subarray(0, 2), V0_PREFIX);

// Return a digest's length as a varint: one byte, two for the longest block that a name may hold.
function varLength(size: number): Bytes {
  return size < 0x80 ? Uint8Array.of(size) : Uint8Array.of((size & 0x7f) | 0x80, size >> 7);
}

function trimSlashes(path: string): string {
  let start = 0;
  let end = path.length;
  while (start < end && path[start] === "/") start += 1;
  while (end > start && path[end - 1] === "/") end -= 1;
  return path.slice(start, end);
}

function named(table: Readonly<Record<number, string>>): ReadonlyMap<number, string> {
  return new Map(Object.entries(table).map(([code, name]) => [Number.parseInt(code, 10), name]));
}

const list = (names: ReadonlyMap<number, string>): string => [...names.values()].join(", ");

function bad(why: string, hint = HINT): HearthError {
  return new HearthError("BAD_CID", why, hint);
}
