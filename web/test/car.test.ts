import { blake3 } from "@noble/hashes/blake3";
import { describe, expect, it } from "vitest";

import { readCar, writeCar } from "../src/core/car";
import { concat, fromHex, sha256, toHex, utf8 } from "../src/core/bytes";
import { type Block, type Bytes, Cid, cidOf, parseCid } from "../src/core/cid";
import type { Content } from "../src/core/content";
import { codeOf } from "../src/core/errors";
import { BLAKE3, DAG_CBOR, DAG_PB, IDENTITY, RAW, SHA2_256 } from "../src/generated/cid";
import { vectors } from "./vectors";

interface Read {
  roots?: string[];
  blocks?: [string, string][];
  code?: string;
}
interface Vectors {
  written: { roots: string[] | number; blocks: string[]; bytes: string | null; digest: string; read: Read }[];
  read: (Read & { bytes: string })[];
  large: { start: string; count: number; code: string | null }[];
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

async function read(content: Content): Promise<Read> {
  try {
    const { roots, blocks } = await readCar(content);
    const found: [string, string][] = [];
    for await (const { cid, bytes } of blocks) found.push([String(cid), toHex(bytes)]);
    return { roots: roots.map((root) => String(root).slice(-8)), blocks: found };
  } catch (error) {
    return { code: codeOf(error) };
  }
}

async function* dripping(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += 3) yield bytes.subarray(at, at + 3);
}

describe("car", () => {
  it("writes the bytes that the library writes, and reads them", async () => {
    for (const { roots, blocks, bytes, digest, read: expected } of said.written) {
      const many = typeof roots === "number" ? Array.from({ length: roots }, (_, at) => cidOf(utf8(String(at)))) : [];
      const named = typeof roots === "number" ? await Promise.all(many) : roots.map(parseCid);
      const made = await written(named, await Promise.all(blocks.map(blockOf)));
      expect(toHex(await sha256(made))).toBe(digest);
      if (bytes !== null) expect(toHex(made)).toBe(bytes);
      expect(await read(new Blob([made]))).toEqual(expected);
    }
  });

  it("reads exactly what the library reads of others' files, however their bytes arrive", async () => {
    for (const { bytes, ...expected } of said.read) {
      const raw = fromHex(bytes);
      expect({ bytes, ...(await read(new Blob([raw]))) }).toEqual({ bytes, ...expected });
      expect({ bytes, ...(await read(dripping(raw))) }).toEqual({ bytes, ...expected });
    }
    const codes = new Set(said.read.map(({ code }) => code));
    expect(codes).toEqual(new Set([undefined, "BAD_CAR", "BAD_CID", "BLOCK_CORRUPT"]));
  });

  it("bounds headers and sections", async () => {
    for (const { start, count, code } of said.large) {
      const file = new Blob([fromHex(start), new Uint8Array(count).fill(7)]);
      expect([start, count, (await read(file)).code ?? null]).toEqual([start, count, code]);
    }
    expect(said.large.map(({ code }) => code)).toContain("TOO_LARGE");
  });

  it("asks for no more of a file than the next block takes", async () => {
    const blocks = await Promise.all(["01", "02", "03"].map((byte) => blockOf(`r${byte.repeat(2 ** 20)}`)));
    const file = new Blob([await written([(blocks[0] as Block).cid], blocks)]);
    const asked: number[] = [];
    const slice = (start: number, end: number): Blob => {
      asked.push(start);
      return file.slice(start, end);
    };
    const car = await readCar({ size: file.size, slice });
    expect(asked.length).toBe(1);
    await car.blocks.next();
    expect(asked.length).toBe(2);
  });
});
