import { describe, expect, it } from "vitest";

import { concat, fromHex, sha256, toHex, utf8 } from "../src/core/bytes";
import { type Block, cidOf } from "../src/core/cid";
import type { Content } from "../src/core/content";
import { HearthError } from "../src/core/errors";
import {
  checkName,
  type Child,
  disarmed,
  type Entry,
  importFile,
  importTree,
  readFile,
  resolve,
  type Source,
  type TreeNode,
  walk,
} from "../src/core/unixfs";
import { caseless, Names } from "../src/core/unixfs/names";
import { hashName, putDirectory } from "../src/core/unixfs/sharding";
import { refusal, refusalOf } from "./refusal";
import { vectors } from "./vectors";

type Many = { many: number; prefix: string; size: number; seed: number };
type Recipe = [number, number] | [string, Recipe][] | Many;
interface Told {
  cid: string;
  size: string;
  tsize: string;
  files: number;
  folders: number;
  blocks: number;
  order: string;
}
interface Vectors {
  trees: (Partial<Told> & { tree: Recipe; code?: string })[];
  files: (Told & { bytes: number; chunk: number; links: number })[];
  directories: { count: number; last: number; cid: string; tsize: string; blocks: number }[];
  hashes: { name: string; hash: string }[];
  names: { name: string; parent: string; text?: string; code?: string }[];
  disarmed: { name: string; place: string }[];
  pairs: { names: string[]; code: string | null }[];
  caseless: { first: number; last: number; digest: string }[];
  later: number[];
}

const said = vectors<Vectors>("unixfs");

function content(size: number, seed: number): Uint8Array<ArrayBuffer> {
  const period = Uint8Array.from({ length: 251 }, (_, at) => (7 * seed + at * at) % 251);
  const bytes = new Uint8Array(size);
  for (let at = 0; at < size; at += 251) bytes.set(period.subarray(0, size - at), at);
  return bytes;
}

function treeOf(recipe: Recipe): TreeNode {
  if (!Array.isArray(recipe)) {
    const file: TreeNode = { kind: "file", open: () => new Blob([content(recipe.size, recipe.seed)]) };
    const list = Array.from({ length: recipe.many }, (_, at): Child => ({ name: `${recipe.prefix}${at}`, node: file }));
    return { kind: "directory", list: () => list };
  }
  const [one, two] = recipe;
  if (typeof one === "number") return { kind: "file", open: () => new Blob([content(one, two as number)]) };
  const children = recipe as [string, Recipe][];
  return { kind: "directory", list: async () => children.map(([name, inner]) => ({ name, node: treeOf(inner) })) };
}

// Run an importer to its end; keep its blocks.
async function imported(blocks: AsyncGenerator<Block, Entry>): Promise<{ entry: Entry; blocks: Block[] }> {
  const kept: Block[] = [];
  for (;;) {
    const next = await blocks.next();
    if (next.done) return { entry: next.value, blocks: kept };
    kept.push(next.value);
  }
}

async function told(made: { entry: Entry; blocks: Block[] }): Promise<Told> {
  const { cid, size, tsize, files, folders } = made.entry;
  const order = toHex(await sha256(concat(made.blocks.map((block) => block.cid.bytes()))));
  const names = { cid: String(cid), size: String(size), tsize: String(tsize) };
  // A lone file is in no folder, in either language.
  return { ...names, files, folders, blocks: made.blocks.length, order };
}

function sourceOf(blocks: readonly Block[]): Source {
  const there = new Map(blocks.map(({ cid, bytes }) => [cid.key, bytes]));
  return async (cid) => {
    const bytes = there.get(cid.key);
    if (bytes === undefined) throw new HearthError("BLOCK_MISSING", String(cid));
    return bytes;
  };
}

async function whole(pieces: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  for await (const piece of pieces) parts.push(piece);
  return concat(parts);
}

// Give bytes in uneven pieces, as streams do.
async function* dripping(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let at = 0, step = 1; at < bytes.length; at += step, step = (step * 7) % 1009) {
    yield bytes.subarray(at, at + step);
    yield new Uint8Array();
  }
}

describe("unixfs import", () => {
  it("gives every tree the blocks, the CID and the sizes of the library, and reads them back", async () => {
    for (const { tree, code, ...expected } of said.trees) {
      const shown = JSON.stringify(tree).slice(0, 80);
      if (code !== undefined) {
        expect([shown, await refusalOf(() => imported(importTree(treeOf(tree))))]).toEqual([shown, code]);
        continue;
      }
      const made = await imported(importTree(treeOf(tree)));
      expect({ shown, ...(await told(made)) }).toEqual({ shown, ...expected });
      for (const { cid, bytes } of made.blocks) expect(cid.key).toBe((await cidOf(bytes, cid.codec)).key);
      let size = 0n;
      for await (const found of walk(made.entry.cid, sourceOf(made.blocks))) size += found.size;
      expect(size).toBe(made.entry.size);
    }
    expect(said.trees.filter(({ code }) => code === "UNSAFE_PATH").length).toBeGreaterThan(10);
  }, 60_000);

  it("splits files as the library does, however their bytes arrive", async () => {
    for (const { bytes, chunk, links, ...expected } of said.files) {
      const options = { chunkBytes: chunk, linksPerNode: links };
      const data = content(bytes, 5);
      for (const given of [new Blob([data]), dripping(data)] satisfies Content[]) {
        const made = await imported(importFile(given, options));
        expect({ bytes, ...(await told(made)) }).toEqual({ bytes, ...expected });
        expect(toHex(await whole(readFile(made.entry.cid, sourceOf(made.blocks))))).toBe(toHex(data));
      }
    }
  });

  it("shards directories above 256 KiB", async () => {
    const child = await cidOf(new Uint8Array());
    for (const { count, last, cid, tsize, blocks } of said.directories) {
      const names = [...Array.from({ length: count }, (_, at) => String(at).padStart(4, "0")), "x".repeat(last)];
      const links = names.map((name) => ({ cid: child, name: utf8(name), tsize: 0n })).reverse();
      let put = 0;
      const made = putDirectory(links);
      let next = await made.next();
      for (; !next.done; next = await made.next()) put += 1;
      expect([last, String(next.value.cid), String(next.value.tsize), put]).toEqual([last, cid, tsize, blocks]);
    }
    for (const { name, hash } of said.hashes) expect([name, String(hashName(fromHex(name)))]).toEqual([name, hash]);
  });

  it("reads no further than the next block takes", async () => {
    const asked: number[] = [];
    const gib = 2 ** 30;
    const file = {
      size: gib,
      slice: (start: number, end: number) => {
        asked.push(start);
        return { arrayBuffer: async () => new ArrayBuffer(end - start) };
      },
    };
    const blocks = importFile(file);
    for (let count = 1; count <= 3; count += 1) {
      await blocks.next();
      expect(asked.length).toBe(count);
    }
    await blocks.return(undefined as never);
  });

  it("leaves out what the rules say, unseen, and tells what it read", async () => {
    const moved: [string, number][] = [];
    const asked: [string, boolean][] = [];
    const secret: TreeNode = {
      kind: "directory",
      list: () => {
        throw new Error("looked into");
      },
    };
    const root: TreeNode = {
      kind: "directory",
      list: () => [
        { name: "skip", node: secret },
        { name: "\ud800", node: secret },
        { name: "keep", node: { kind: "directory", list: () => [{ name: "x", node: treeOf([5, 1]) }] } },
      ],
    };
    const ignore = (path: string, isDirectory: boolean): boolean => {
      asked.push([path, isDirectory]);
      return path === "skip" || path === "\ud800";
    };
    const progress = (path: string, bytes: number): void => void moved.push([path, bytes]);
    const { entry } = await imported(importTree(root, { ignore, progress }));
    expect(asked).toEqual([["keep", true], ["keep/x", false], ["skip", true], ["\ud800", true]]);
    expect(moved).toEqual([["keep/x", 5]]);
    expect([entry.size, entry.files, entry.folders]).toEqual([5n, 1, 2]);
    const half: TreeNode = { kind: "directory", list: () => [{ name: "\ud800", node: secret }] };
    expect(await refusalOf(() => imported(importTree(half)))).toBe("UNSAFE_PATH");
  });

  it("says which file cannot be read, or changed meanwhile", async () => {
    const gone = { size: 3, slice: () => ({ arrayBuffer: () => Promise.reject(new Error("gone")) }) };
    const cut = { size: 3, slice: () => ({ arrayBuffer: async () => new ArrayBuffer(2) }) };
    async function* broken(): AsyncGenerator<Uint8Array> {
      yield new Uint8Array(1);
      throw new Error("broken");
    }
    for (const file of [gone, cut, broken()]) {
      expect(await refusalOf(() => imported(importFile(file, {}, "a/b")))).toBe("UNREADABLE");
    }
  });
});

describe("unixfs names", () => {
  it("takes exactly the names that the library takes", () => {
    for (const { name, parent, text, code } of said.names) {
      expect([name, parent, refusal(() => checkName(fromHex(name), parent))]).toEqual([name, parent, code ?? null]);
      if (text !== undefined) expect(checkName(fromHex(name), parent)).toBe(text);
    }
  });

  it("disarms the names that programs obey", () => {
    for (const { name, place } of said.disarmed) expect([name, disarmed(name)]).toEqual([name, place]);
  });

  it("takes two names for one where a file system may", () => {
    for (const { names, code } of said.pairs) {
      const seen = new Names("here");
      expect([names, refusal(() => names.forEach((name) => seen.add(utf8(name))))]).toEqual([names, code]);
    }
  });

  it("folds every character as the library does", async () => {
    const later = new Set(said.later);
    for (const { first, last, digest } of said.caseless) {
      const folded: string[] = [];
      for (let code = first; code <= last; code += 1) {
        if (!later.has(code)) folded.push(caseless(String.fromCodePoint(code)));
      }
      expect([first, toHex(await sha256(utf8(folded.join("\0"))))]).toEqual([first, digest]);
    }
  }, 30_000);

  it("finds an entry called __proto__, and none that is not there", async () => {
    const made = await imported(importTree(treeOf([["__proto__", [3, 1]], ["b", [["c", [1, 1]]]]])));
    const source = sourceOf(made.blocks);
    expect(String(await resolve(made.entry.cid, "__proto__", source))).toBe(String(await cidOf(content(3, 1))));
    expect(String(await resolve(made.entry.cid, "__pr%6ft%6F__", source))).toBe(String(await cidOf(content(3, 1))));
    expect(await refusalOf(() => resolve(made.entry.cid, "constructor", source))).toBe("NOT_FOUND");
    expect(await refusalOf(() => resolve(made.entry.cid, "b/toString", source))).toBe("NOT_FOUND");
  });
});
