import { describe, expect, it } from "vitest";

import { concat, fromHex, toHex } from "../src/core/bytes";
import { type Bytes, Cid, cidOf, parseCid } from "../src/core/cid";
import { codeOf, HearthError } from "../src/core/errors";
import {
  blocksOf,
  countEntries,
  declaredSize,
  exportTree,
  linksOf,
  readFile,
  type ReadLimits,
  resolve,
  type Source,
  walk,
} from "../src/core/unixfs";
import { decodeDagNode } from "../src/core/unixfs/codec";
import { limitsOfMarket, maxNodeBytes } from "../src/core/unixfs/model";
import { DAG_CBOR, DAG_PB, IDENTITY, RAW, SHA2_256 } from "../src/generated/cid";
import { vectors } from "./vectors";

interface Vectors {
  dags: { root: string; blocks: string[]; limits: string; path: string; found: Record<string, string> }[];
  nodes: { bytes: string; node: string; links: string }[];
}

const said = vectors<Vectors>("dags");

async function outcome(read: () => Promise<unknown>): Promise<unknown> {
  try {
    return { is: await read() };
  } catch (error) {
    return { code: codeOf(error) };
  }
}

async function all<T, U>(found: AsyncIterable<T>, show: (one: T) => U): Promise<U[]> {
  const list: U[] = [];
  for await (const one of found) list.push(show(one));
  return list;
}

async function sourceOf(blocks: readonly string[]): Promise<Source> {
  const there = new Map<string, Bytes>();
  for (const block of blocks) {
    const bytes = fromHex(block.slice(1));
    const codec = { r: RAW, p: DAG_PB, c: DAG_CBOR, "0": DAG_PB, i: RAW }[block[0] ?? ""] ?? RAW;
    const named = await cidOf(bytes, codec);
    const old = new Cid(0, DAG_PB, SHA2_256, named.digest);
    there.set((block[0] === "0" ? old : block[0] === "i" ? new Cid(1, RAW, IDENTITY, bytes) : named).key, bytes);
  }
  return async (cid) => {
    const bytes = there.get(cid.key);
    if (bytes === undefined) throw new HearthError("BLOCK_MISSING", String(cid));
    return bytes;
  };
}

function limitsOf(text: string): ReadLimits {
  const [bytes, entries, blocks, below] = JSON.parse(text) as [string, number, number, [string, number][]];
  const maxBelow = below.map(([top, most]) => [top, BigInt(most)] as const);
  return { maxBytes: BigInt(bytes), maxEntries: entries, maxBlocks: blocks, maxBelow };
}

const short = (cid: Cid): string => String(cid).slice(-8);
const hex = (bytes: Uint8Array): string => toHex(bytes).slice(2);

// Export into memory: places with their bytes (null: a folder), and what was renamed.
async function exported(root: Cid, source: Source, limits: ReadLimits, disarm: boolean): Promise<unknown> {
  const places = new Map<string, string | null>();
  const renamed: string[] = [];
  let at = "";
  let left = 0n;
  for await (const one of exportTree(root, source, limits, disarm)) {
    if (one.kind === "bytes") {
      places.set(at, `${places.get(at)}${hex(one.bytes)}`);
      left -= BigInt(one.bytes.length);
      continue;
    }
    expect(left).toBe(0n);
    at = one.place;
    left = one.kind === "file" ? one.size : 0n;
    places.set(at, one.kind === "file" ? "" : null);
    if (one.path.split("/").at(-1) !== one.place.split("/").at(-1)) renamed.push(one.path);
  }
  expect(left).toBe(0n);
  const order = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b));
  return [[...places].sort(([a], [b]) => order(a, b)), renamed.sort(order)];
}

// A dag-pb node of unnamed links, with so many bytes of data.
const nodeOf = (links: readonly Cid[], size: number): Bytes =>
  concat([
    ...links.flatMap((link) => [new Uint8Array([0x12, 38, 0x0a, 36]), link.bytes()]),
    new Uint8Array([0x0a, (size & 127) | 128, ((size >> 7) & 127) | 128, size >> 14]),
    new Uint8Array(size),
  ]);

describe("dags", () => {
  it("finds in every DAG what the library finds, or refuses it by the same code", async () => {
    const codes = new Set<unknown>();
    for (const { root, blocks, limits, path, found } of said.dags) {
      const cid = parseCid(root);
      const source = await sourceOf(blocks);
      const most = limitsOf(limits);
      const readers: Record<string, () => Promise<unknown>> = {
        walk: () =>
          all(walk(cid, source, most), ({ path: place, kind, size, tsize, cid: name }) => {
            return [place, kind, String(size), String(tsize), short(name)];
          }),
        count: () => countEntries(cid, source, most),
        file: async () => hex(concat(await all(readFile(cid, source, most), (piece) => piece))),
        resolve: async () => String(await resolve(cid, path, source, most)),
        declared: async () => String(await declaredSize(cid, source)),
        blocks: () => all(blocksOf(cid, source, most), (one) => short(one.cid)),
        disarmed: () => exported(cid, source, most, true),
        as_is: () => exported(cid, source, most, false),
      };
      expect(Object.keys(found)).toEqual(Object.keys(readers));
      for (const [name, read] of Object.entries(readers)) {
        const expected = JSON.parse(found[name] ?? "") as { code?: string };
        expect([root, name, await outcome(read)]).toEqual([root, name, expected]);
        codes.add(expected.code);
      }
    }
    const every = [undefined, "BLOCK_CORRUPT", "BLOCK_MISSING", "TOO_LARGE", "UNSAFE_PATH", "NOT_FOUND", "BAD_CID"];
    expect(codes).toEqual(new Set(every));
  });

  it("reads every node as the library does", async () => {
    const name = new Cid(1, DAG_PB, SHA2_256, new Uint8Array(32));
    for (const { bytes, node, links } of said.nodes) {
      const block = fromHex(bytes);
      const found = await outcome(async () => {
        const read = decodeDagNode(name, block);
        const children = read.links.map((link) => [short(link.cid), hex(link.name), String(link.tsize)]);
        return [read.kind, hex(read.data), String(read.size), read.blockSizes.map(String), read.fanout, children];
      });
      expect([bytes, found]).toEqual([bytes, JSON.parse(node)]);
      expect([bytes, await outcome(async () => linksOf(name, block).map(short))]).toEqual([bytes, JSON.parse(links)]);
    }
  });

  it("refuses a source's block above 2 MiB", async () => {
    const cid = await cidOf(new Uint8Array(1));
    const source: Source = async () => new Uint8Array(2 ** 21 + 1);
    expect(await outcome(() => all(readFile(cid, source), () => 0))).toEqual({ code: "TOO_LARGE" });
  });

  it("takes a block that is full of links, and stops at its limit", async () => {
    const count = 180_000;
    const raw = new Uint8Array(11 * count + 4);
    for (let at = 0; at < count; at += 1) {
      // A link to an inline block of three bytes.
      raw.set([0x12, 9, 0x0a, 7, 1, RAW, IDENTITY, 3, at >> 16, (at >> 8) & 255, at & 255], 11 * at);
    }
    raw.set([0x0a, 2, 0x08, 1], 11 * count);
    const root = await cidOf(raw, DAG_PB);
    const source: Source = async (cid) => (cid.hashCode === IDENTITY ? cid.digest : raw);
    const few: ReadLimits = { maxBytes: 2n ** 30n, maxEntries: 9, maxBlocks: 50, maxBelow: [] };
    expect(await outcome(() => all(blocksOf(root, source, few), () => 0))).toEqual({ code: "TOO_LARGE" });
    expect(linksOf(root, raw).length).toBe(count);
    expect(await outcome(() => all(walk(root, source), () => 0))).toEqual({ code: "UNSAFE_PATH" });
  }, 60_000);

  it("refuses more bytes of blocks than any reader of the content takes", async () => {
    const there = new Map<string, Bytes>();
    const put = async (bytes: Bytes, codec: number): Promise<Cid> => {
      const name = await cidOf(bytes, codec);
      there.set(name.key, bytes);
      return name;
    };
    const source: Source = async (cid) => there.get(cid.key) as Bytes;
    const read = async (codec: number, count: number, maxBytes: bigint): Promise<unknown> => {
      const leaves = Array.from({ length: count }, (_, at) => put(nodeOf([], 2 ** 20 + at), codec));
      const root = await put(nodeOf(await Promise.all(leaves), 2), DAG_PB);
      const limits: ReadLimits = { maxBytes, maxEntries: 5, maxBlocks: 50, maxBelow: [] };
      return outcome(() => all(blocksOf(root, source, limits), () => 0));
    };
    expect(await read(RAW, 3, 2n ** 21n)).toEqual({ code: "TOO_LARGE" });
    expect(await read(RAW, 3, 2n ** 22n)).toEqual({ is: [0, 0, 0, 0] });
    expect(await read(DAG_PB, 3, 2n ** 21n)).toEqual({ is: [0, 0, 0, 0] });
    expect(await read(DAG_PB, 5, 2n ** 21n)).toEqual({ code: "TOO_LARGE" });
  });

  it("bounds a tree of the market as the library does", () => {
    const limits = limitsOfMarket(5n * 2n ** 20n + 1n, 7);
    expect(limits).toEqual({ maxBytes: 5n * 2n ** 20n + 1n, maxEntries: 7, maxBlocks: 10 + 11 * 7, maxBelow: [] });
    expect(maxNodeBytes(limits)).toBe((5n * 2n ** 20n + 1n) / 8n + 7n * 1024n + 2n ** 21n);
    expect(limitsOfMarket(2n ** 100n, 1).maxBlocks).toBe(Number.MAX_SAFE_INTEGER);
  });
});
