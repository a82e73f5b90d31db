import { describe, expect, it } from "vitest";

import { fromHex, toHex } from "../src/core/bytes";
import * as cids from "../src/core/cid";
import { codeOf } from "../src/core/errors";
import { refusal, refusalOf } from "./refusal";
import { vectors } from "./vectors";

interface Vectors {
  names: { bytes: string; text: string; version: number; codec: number; hash_code: number; digest: string }[];
  texts: { text: string; bytes?: string; code?: string }[];
  bytes: { bytes: string; text?: string; code?: string; start: { text?: string; end?: number; code?: string } }[];
  uris: { uri: string; cid?: string; path?: string; code?: string }[];
  verify: { size: number; byte: number; cid: string; code: string | null }[];
  of: { block: string; codec: number; text: string }[];
  roots: { digest: string; text: string }[];
  digests: { cid: string; digest?: string; code?: string }[];
  digest_lengths: { size: number; code: string | null }[];
}

const said = vectors<Vectors>("cids");

// What a call returns, or the code with which it refuses.
function outcome<T extends object>(act: () => T): T | { code: string } {
  try {
    return act();
  } catch (error) {
    return { code: codeOf(error) };
  }
}

describe("cids", () => {
  it("holds and prints the parts of a name", () => {
    for (const { bytes, text, version, codec, hash_code, digest } of said.names) {
      const cid = cids.cidFromBytes(fromHex(bytes));
      expect([cid.version, cid.codec, cid.hashCode, toHex(cid.digest)]).toEqual([version, codec, hash_code, digest]);
      expect([String(cid), toHex(cid.bytes()), cid.key]).toEqual([text, bytes, bytes]);
    }
    expect(new Set(said.names.map(({ version, hash_code }) => `${version} ${hash_code}`)).size).toBe(4);
  });

  it("reads texts as the library does, in the bases that tools write", () => {
    const read = new Set<string>();
    for (const { text, ...expected } of said.texts) {
      const found = outcome(() => ({ bytes: toHex(cids.parseCid(text).bytes()) }));
      // A text in another base, or in another spelling of its base, is refused.
      if ("code" in found) expect(found.code).toBe("BAD_CID");
      else expect({ text, ...found }).toEqual({ text, ...expected });
      if (!("code" in found)) read.add(text.slice(0, 1));
    }
    expect([..."bBkzfuQ"].filter((prefix) => !read.has(prefix))).toEqual([]);
    for (const { text, bytes } of said.names) expect(toHex(cids.parseCid(text).bytes())).toBe(bytes);
  });

  it("reads exactly the bytes that the library reads, alone and at a start", () => {
    for (const { bytes, start, ...expected } of said.bytes) {
      const raw = fromHex(bytes);
      expect({ bytes, ...outcome(() => ({ text: String(cids.cidFromBytes(raw)) })) }).toEqual({ bytes, ...expected });
      const found = outcome(() => {
        const { cid, end } = cids.cidFromStart(raw);
        return { text: String(cid), end };
      });
      expect({ bytes, ...found }).toEqual({ bytes, ...start });
    }
  });

  it("splits what names a path", () => {
    for (const { uri, ...expected } of said.uris) {
      const found = outcome(() => {
        const { cid, path } = cids.parseUri(uri);
        return { cid: String(cid), path };
      });
      expect({ uri, ...found }).toEqual({ uri, ...expected });
    }
  });

  it("checks blocks against their names by each hash", async () => {
    for (const { size, byte, cid, code } of said.verify) {
      const block = new Uint8Array(size).fill(byte);
      expect([size, cid, await refusalOf(() => cids.parseCid(cid).verify(block))]).toEqual([size, cid, code]);
    }
    expect(new Set(said.verify.map(({ code }) => code))).toEqual(new Set([null, "BLOCK_CORRUPT", "TOO_LARGE"]));
    expect(await refusalOf(() => cids.cidOf(new Uint8Array(2 ** 21 + 1)))).toBe("TOO_LARGE");
  });

  it("names blocks and roots", async () => {
    for (const { block, codec, text } of said.of) expect(String(await cids.cidOf(fromHex(block), codec))).toBe(text);
    for (const { digest, text } of said.roots) expect(String(cids.cidOfRoot(fromHex(digest)))).toBe(text);
  });

  it("turns a document's digest into its CID and back", () => {
    for (const { cid, digest, code } of said.digests) {
      const found = outcome(() => ({ digest: toHex(cids.digestOfCid(cids.parseCid(cid))) }));
      expect({ cid, ...found }).toEqual({ cid, ...(code === undefined ? { digest } : { code }) });
      if (digest !== undefined) expect(String(cids.cidOfDigest(fromHex(digest)))).toBe(cid);
    }
    for (const { size, code } of said.digest_lengths) {
      expect([size, refusal(() => cids.cidOfDigest(new Uint8Array(size)))]).toEqual([size, code]);
    }
  });

  it("has one spelling in each base", () => {
    const [text = ""] = said.names.filter(({ version }) => version === 1).map((one) => one.text);
    expect(String(cids.parseCid(text.toUpperCase()))).toBe(text);
    for (const other of [`${text}=`, `${text}a`, `b${text.slice(1).toUpperCase()}`, ` ${text}`, "\u{1f680}\u{1f680}", "\0a", ""]) {
      expect(refusal(() => cids.parseCid(other))).toBe("BAD_CID");
    }
  });
});
