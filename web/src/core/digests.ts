// CIDs of what 32 bytes on chain name: a result's document, a checkpoint's folder. Mirrors hearth/storage/cid.py (of_root)
// and hearth/storage/canonical.py (cid_of_digest): CIDv1 in base32, sha2-256.

import { fromHex, type Hex } from "./bytes";
import { HearthError } from "./errors";

const RAW = 0x55;
const DAG_PB = 0x70;
const DIGEST_BYTES = 32;
const BASE32 = "abcdefghijklmnopqrstuvwxyz234567";

// Return the CID of a result's document, by its digest: what an attester names. Throws BAD_CID for no digest.
export const resultCid = (digest: Hex): string => cidText(RAW, digest);

// Return the CID of a checkpoint's files, by the digest of their folder. Throws BAD_CID for no digest.
export const stateCid = (root: Hex): string => cidText(DAG_PB, root);

function cidText(codec: number, digest: Hex): string {
  const bytes = fromHex(digest);
  if (bytes.length !== DIGEST_BYTES) {
    throw new HearthError("BAD_CID", `a document digest has 32 bytes, this one has ${bytes.length}`);
  }
  return `b${base32([1, codec, 0x12, DIGEST_BYTES, ...bytes])}`;
}

function base32(bytes: readonly number[]): string {
  let text = "";
  let held = 0;
  let bits = 0;
  for (const byte of bytes) {
    held = (held << 8) | byte;
    bits += 8;
    while (bits >= 5) {
      bits -= 5;
      text += BASE32.charAt((held >> bits) & 31);
    }
    held &= (1 << bits) - 1;
  }
  return bits > 0 ? text + BASE32.charAt((held << (5 - bits)) & 31) : text;
}
