// What every example and every template brings: picked as a browser gives it, put into a store and looked for there.

import { globSync, readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

import { concat, sha256, toHex } from "../src/core/bytes";
import { type Bytes, cidOfDigest, parseCid } from "../src/core/cid";
import { canonicalBytes, dataOf, resolve } from "../src/core/resolve";
import { loadSpec, localSources } from "../src/core/spec";
import { exportTree, type Source } from "../src/core/unixfs";
import { Blocks } from "../src/data/blocks";
import { carOfLoad, type Load, nameSource, nameStored, putLoad, requireStored } from "../src/data/job-data";
import { forgetWords } from "../src/data/remember";
import { fromInput } from "../src/data/picked-files";
import { refusalOf } from "./refusal";
import { stubStorage } from "./storage";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const SET = "examples/attested/attesters.yaml";
const FILES = globSync(["examples/*/*.yaml", "hearth/local/templates/*/job.yaml"], { cwd: ROOT }).filter((path) => path !== SET);
// What a reader fills in, and an image as the page takes it: by its digest.
const FILLED: Readonly<Record<string, string>> = {
  "${PARENT}": `0x${"12".repeat(32)}`,
  "${IMAGE}": `example.com/numpy@sha256:${"34".repeat(32)}`,
  "python:3.12-slim": `example.com/python@sha256:${"56".repeat(32)}`,
  "pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime": `example.com/pytorch@sha256:${"78".repeat(32)}`,
};

beforeEach(() => void stubStorage());
afterEach(() => {
  forgetWords();
  vi.unstubAllGlobals();
});

// The store of `hearth web` behind `fetch`, as its server answers: it takes what hashes to its name, and gives it back.
function store(): { readonly blocks: Map<string, Bytes>; readonly kept: Set<string>; readonly source: Source } {
  const blocks = new Map<string, Bytes>();
  const kept = new Set<string>();
  vi.stubGlobal("fetch", async (url: string, { method, body }: RequestInit) => {
    const [, name = "", query = ""] = /^\.\/ipfs\/(\w+)\?*(.*)$/.exec(url) ?? [];
    if (method !== "PUT") {
      const found = blocks.get(name);
      return found === undefined ? new Response(null, { status: 404 }) : new Response(found as BodyInit);
    }
    blocks.set(name, await parseCid(name).verify(new Uint8Array(body as Uint8Array<ArrayBuffer>)));
    if (query === "keep") kept.add(name);
    return new Response(null, { status: 201 });
  });
  return { blocks, kept, source: givers().source };
}

const givers = (): Blocks => new Blocks({ by: "hearth web", local: { network: "devnet", writable: true }, network: {} }, []);

// Every file of a folder, or a file, as a file picker of a browser gives it.
function picked(path: string): File[] {
  if (!statSync(path).isDirectory()) return [fileOf(new Uint8Array(readFileSync(path)), "", path)];
  const found = readdirSync(path, { recursive: true, withFileTypes: true }).filter((one) => one.isFile());
  return found.map((one) => {
    const place = join(one.parentPath, one.name);
    return fileOf(new Uint8Array(readFileSync(place)), relative(dirname(path), place));
  });
}

// A file of a picked folder by its path there, and a lone one by its name alone.
function fileOf(content: Uint8Array<ArrayBuffer>, path: string, name = path): File {
  const file = new File([content], name.split("/").at(-1) ?? "");
  Object.defineProperty(file, "webkitRelativePath", { value: path });
  return file;
}

async function loadOf(files: Readonly<Record<string, File[]>>, workdir: string | null, document = new Uint8Array([123, 125])): Promise<Load> {
  const sources = Object.entries(files).map(async ([src, picks]) => {
    const isWorkdir = src === workdir;
    return { src, isWorkdir, named: await nameSource(fromInput(picks), isWorkdir) };
  });
  return { sources: await Promise.all(sources), document };
}

async function contentOf(cid: string, source: Source): Promise<Record<string, string>> {
  const parts: Record<string, Uint8Array[]> = {};
  let at = "";
  for await (const one of exportTree(parseCid(cid), source)) {
    if (one.kind === "bytes") parts[at]?.push(one.bytes);
    else at = one.path;
    if (one.kind === "file") parts[at] = [];
  }
  return Object.fromEntries(Object.entries(parts).map(([path, bytes]) => [path, toHex(concat(bytes))]));
}

const MIB = 2 ** 20;
const bytes = (size: number, seed: number): Uint8Array<ArrayBuffer> =>
  Uint8Array.from({ length: size }, (_, at) => (seed * at + (at >> 7)) % 251);

describe("what no job takes", () => {
  const names = [".env", "a/.ENV.local", ".git/config", ".ssh/id_rsa", "a/key.pem"];
  const folder = [fileOf(bytes(9, 1), "data/plain"), ...names.map((name) => fileOf(bytes(9, 2), `data/${name}`))];

  it.each([true, false])("is left out of a folder that is a workdir or none: %s", async (isWorkdir) => {
    const there = store();
    const rules = fileOf(new TextEncoder().encode("!.env\n!.git/**\n!*.pem\n"), "data/.gitignore");
    const load = await loadOf({ data: [...folder, rules] }, isWorkdir ? "data" : null);
    await putLoad(load, () => undefined);
    const [one] = load.sources;
    expect(Object.keys(await contentOf(one?.named.cid ?? "", there.source)).sort()).toEqual([".gitignore", "plain"]);
    expect([...(one?.named.left ?? [])].sort()).toEqual([".env", ".git/", ".ssh/", "a/.ENV.local", "a/key.pem"]);
    expect((await carOfLoad(load)).length).toBeGreaterThan(0);
  });

  it.each(names)("is refused where %s itself is picked", async (name) => {
    const last = name.split("/").at(-1) ?? "";
    const refused = last === "config" ? [fileOf(bytes(9, 1), ".git/config")] : [fileOf(bytes(9, 1), "", last)];
    expect(await refusalOf(() => nameSource(fromInput(refused), false))).toBe("SECRET_FILE");
  });
});

describe("what a job brings", () => {
  it("finds every example and every template", () => {
    expect(FILES.length).toBeGreaterThan(11);
    expect(FILES.some((path) => readFileSync(join(ROOT, path), "utf8").includes("workdir:"))).toBe(true);
  });

  it.each(FILES)("%s: is put into the store, found there whole, and is what was picked", async (path) => {
    const there = store();
    let text = readFileSync(join(ROOT, path), "utf8");
    for (const [from, to] of Object.entries(FILLED)) text = text.replaceAll(from, to);
    const { spec } = await loadSpec(text, "job.yaml");
    const places = localSources(spec).map(([, src]) => src).filter((src) => src !== spec.verify.attesters);
    const files = Object.fromEntries(places.map((src) => [src, picked(join(ROOT, dirname(path), src))]));
    const load = await loadOf(files, spec.workdir);
    const named = new Map(load.sources.map((one) => [one.src, one.named]));
    const document = canonicalBytes(resolve(spec, (src) => {
      const one = named.get(src);
      return one && dataOf(one.cid, one.size);
    }));
    const whole = { ...load, document };
    await putLoad(whole, () => undefined);
    let last = 0;
    expect(await requireStored(whole, givers(), (count) => (last = count))).toBe(there.blocks.size);
    expect(places.length === 0 || last === there.blocks.size).toBe(true);
    expect(there.kept).toEqual(new Set([...[...named.values()].map(({ cid }) => cid), String(cidOfDigest(await sha256(document)))]));
    for (const { src, named: { cid, kind, size, entries } } of load.sources) {
      const base = join(ROOT, dirname(path), src);
      const found = await contentOf(cid, there.source);
      for (const [place, held] of Object.entries(found)) expect(held).toBe(toHex(new Uint8Array(readFileSync(join(base, place)))));
      expect(Object.keys(found).length).toBe(files[src]?.length);
      // Named from the store, it is the same.
      expect(await nameStored(`ipfs://${cid}`, givers())).toEqual({ cid, kind, size, entries });
    }
  });

  it.each([
    ["an empty file", { data: [fileOf(bytes(0, 1), "")] }],
    ["a file of more than one block", { data: [fileOf(bytes(3 * MIB + 1, 3), "")] }],
    ["a folder of one empty file", { data: [fileOf(bytes(0, 1), "data/none")] }],
    ["a folder of folders", { data: [fileOf(bytes(9, 1), "data/a/b/c/d/e"), fileOf(bytes(9, 1), "data/a/same")] }],
    ["a folder of many small files", { data: Array.from({ length: 1_200 }, (_, at) => fileOf(bytes(3, at), `data/${"x".repeat(240)}${at}`)) }],
    [
      "two inputs and a workdir",
      {
        one: [fileOf(bytes(2 * MIB, 5), "one/large"), fileOf(bytes(7, 5), "one/small")],
        two: [fileOf(bytes(MIB + 5, 7), "")],
        work: [fileOf(bytes(40, 11), "work/src/main.py"), fileOf(bytes(40, 13), "work/.git/HEAD")],
      },
    ],
  ] satisfies [string, Record<string, File[]>][])("%s: is found as it was put", async (_, files) => {
    const there = store();
    const load = await loadOf(files, "work");
    await putLoad(load, () => undefined);
    expect(await requireStored(load, givers(), () => undefined)).toBe(there.blocks.size);
    // A store that this page cannot reach is given no more and no less.
    const car = await new Blob(await carOfLoad(load)).arrayBuffer();
    expect(car.byteLength).toBeGreaterThan([...there.blocks.values()].reduce((sum, block) => sum + block.length, 0));
  });

  it("leaves what a clone keeps for itself out of every folder, and reads ignore files of a workdir alone", async () => {
    const files = [
      fileOf(bytes(9, 1), "data/.git/config"),
      fileOf(bytes(9, 1), "data/below/.hearth/keys/key"),
      fileOf(new TextEncoder().encode("!.git/\nplain\n"), "data/.gitignore"),
      fileOf(bytes(9, 1), "data/plain"),
    ];
    const there = store();
    for (const [workdir, names] of [[null, [".gitignore", "plain"]], ["data", [".gitignore"]]] as const) {
      const load = await loadOf({ data: files }, workdir);
      await putLoad(load, () => undefined);
      expect(Object.keys(await contentOf(load.sources[0]?.named.cid ?? "", there.source)).sort()).toEqual(names);
    }
  });

  it("is not there while a block of it is missing, whichever it is", async () => {
    const there = store();
    const load = await loadOf({ work: [fileOf(bytes(MIB + 1, 5), "work/large"), fileOf(bytes(7, 5), "work/in/small")] }, "work");
    await putLoad(load, () => undefined);
    expect(there.blocks.size).toBe(7);
    for (const [name, block] of [...there.blocks]) {
      there.blocks.delete(name);
      expect(await refusalOf(() => requireStored(load, givers(), () => undefined))).toBe("BLOCK_MISSING");
      there.blocks.set(name, block);
    }
  });
});
