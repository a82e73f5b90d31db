import { blake3 } from "@noble/hashes/blake3";
import { describe, expect, it } from "vitest";

import { writeCar } from "../src/core/car";
import { concat, fromHex, sha256, toHex, utf8 } from "../src/core/bytes";
import { type Block, type Bytes, Cid, cidOf, parseCid } from "../src/core/cid";
import { BLAKE3, DAG_CBOR, DAG_PB, IDENTITY, RAW, SHA2_256 } from "../src/generated/cid";
import { vectors } from "./vectors";

interface Vectors {
  written: { roots: string[] | number; blocks: string[]; bytes: string | null; digest: string }[];
}

const said = vectors<Vectors>("car");

async function blockOf(text: string): Promise<Block> {
  const bytes = fromHex(text.slice(1));
  const codec = { p: DAG_PB, c: DAG_CBOR }[text[0] ?? ""] ?? RAW;
  const named = await cidOf(bytes, codec);
  if (text[0] === "0") return { cid: new Cid(0, DAG_PB, SHA2_256, named.digest), bytes };
  if (text[0] === "i") return { cid: new Cid(1, RAW, IDENTITY, bytes), bytes };
  return { cid: text[0] === "b" ? new Cid(1, RAW, BLAKE3, new Uint8Array(blake3(bytes))) : named, bytes };
}

async function written(roots: readonly Cid[], blocks: readonly Block[]): Promise<Bytes> {
  const parts: Bytes[] = [];
  for await (const part of writeCar(roots, blocks)) parts.push(part);
  return concat(parts);
}

describe("car", () => {
  it("writes the bytes that the library writes", async () => {
    for (const { roots, blocks, bytes, digest } of said.written) {
      const many = typeof roots === "number" ? Array.from({ length: roots }, (_, at) => cidOf(utf8(String(at)))) : [];
      const named = typeof roots === "number" ? await Promise.all(many) : roots.map(parseCid);
      const made = await written(named, await Promise.all(blocks.map(blockOf)));
      expect(toHex(await sha256(made))).toBe(digest);
      if (bytes !== null) expect(toHex(made)).toBe(bytes);
    }
  });
});
