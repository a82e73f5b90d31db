// What a job brings: its document and its sources, put into the store of `hearth web` or into one CAR file, and looked for where
// workers will look. Mirrors `Sources` of hearth/client/posting/sources.py.

import { writeCar } from "../core/car";
import { type Block, Cid, cidOfDigest, parseCid, parseUri } from "../core/cid";
import { HearthError } from "../core/errors";
import { noJobTakes } from "../core/ignore";
import { concat, sha256 } from "../core/bytes";
import { checkModule, checkModuleSize } from "../core/wasm-module";
import { blocksOf, importTree, limitsOfMarket, readFile, resolve, walk } from "../core/unixfs";
import { MAX_INPUT_ENTRIES } from "../generated/posting";
import { Blocks } from "./blocks";
import type { Opened } from "./opened-with";
import type { Picked } from "./picked-files";
import { rulesOf } from "./rules";
import { nameTree, type Progress, put, putTree } from "./upload";

// A named source: its CID, the bytes of its files, how many files and folders it holds; `picked` where it came from this machine,
// and `left` what no job takes of it.
export interface Named {
  readonly cid: string;
  readonly size: number;
  readonly entries: number;
  readonly kind: "file" | "directory";
  readonly picked?: Picked;
  readonly left?: readonly string[];
}

// Name what was picked for a source. Throws SECRET_FILE, and what reading it throws.
export async function nameSource(picked: Picked, isWorkdir: boolean): Promise<Named> {
  const { ignore, left: out } = await rulesOf(picked, isWorkdir);
  const entry = await nameTree(picked.node, ignore, () => undefined);
  const left = out.filter((path) => noJobTakes(path.replace(/\/$/, ""), path.endsWith("/")));
  const [cid, size, entries] = [String(entry.cid), Number(entry.size), entry.files + entry.folders];
  return { cid, size, entries, kind: picked.node.kind, picked, left };
}

// Name what lies in a store already, in the one spelling that specs have. Throws BAD_CID, and what reading it throws.
export async function nameStored(src: string, blocks: Blocks): Promise<Named> {
  const { cid: root, path } = parseUri(src);
  const found = path === "" ? root : await resolve(root, path, blocks.source);
  // The CIDs that `ipfs add` prints where nothing else is asked for: the same block, an older spelling.
  const target = found.version === 0 ? new Cid(1, found.codec, found.hashCode, found.digest) : found;
  const limits = limitsOfMarket(BigInt(Number.MAX_SAFE_INTEGER), MAX_INPUT_ENTRIES);
  let [size, entries, kind] = [0, 0, "file" as Named["kind"]];
  for await (const one of walk(target, blocks.source, limits)) {
    if (entries === 0) kind = one.kind;
    entries += 1;
    size += Number(one.size);
  }
  return { cid: String(target), size, entries, kind };
}

// Refuse a job that brings more files and folders than a worker takes. Throws TOO_MANY_FILES.
export function requireFew(named: readonly Named[]): void {
  if (named.reduce((sum, one) => sum + one.entries, 0) <= MAX_INPUT_ENTRIES) return;
  throw new HearthError(
    "TOO_MANY_FILES",
    `the job brings more than ${MAX_INPUT_ENTRIES} files and folders, more than a worker takes`,
    "pack them into an archive, or leave some out of the workdir: .hearthignore",
  );
}

// Refuse a module that no worker could start with so much memory. Throws NO_WASM for a folder, and as `checkModule` does.
export async function requireModule(src: string, named: Named, memoryBytes: bigint, blocks: Blocks): Promise<true> {
  if (named.kind === "directory") {
    throw new HearthError("NO_WASM", `module: ${src} is a folder`, "name the file in it", { field: "module" });
  }
  checkModuleSize(named.size);
  checkModule(await bytesOf(named, blocks), memoryBytes);
  return true;
}

async function bytesOf({ cid, size, picked }: Named, blocks: Blocks): Promise<Uint8Array> {
  const content = picked?.node.kind === "file" ? await picked.node.open() : undefined;
  if (content instanceof Blob) return new Uint8Array(await content.arrayBuffer());
  const limits = { ...limitsOfMarket(BigInt(size), 1), maxBlocks: Number.MAX_SAFE_INTEGER };
  const parts: Uint8Array[] = [];
  for await (const part of readFile(parseCid(cid), blocks.source, limits)) parts.push(part);
  return concat(parts);
}

// What is to be put: the sources that came from this machine, and the document.
export interface Load {
  readonly sources: readonly { readonly src: string; readonly isWorkdir: boolean; readonly named: Named }[];
  readonly document: Uint8Array<ArrayBuffer>;
}

// Put all of it into the store, the document last, and keep it. Throws SOURCE_CHANGED where a file changed since it was named,
// and as `putTree` does.
export async function putLoad(load: Load, tell: (src: string, progress: Progress) => void): Promise<void> {
  for (const { src, isWorkdir, named } of load.sources) {
    if (named.picked === undefined) continue;
    const { ignore } = await rulesOf(named.picked, isWorkdir);
    const entry = await putTree(named.picked.node, ignore, (progress) => tell(src, progress));
    requireSame(src, named, entry.cid);
  }
  await put(await documentBlock(load), true);
}

// Write all of it into the parts of one CAR file, for a store that this page cannot reach.
export async function carOfLoad(load: Load): Promise<BlobPart[]> {
  const document = await documentBlock(load);
  const own = load.sources.filter(({ named }) => named.picked !== undefined);
  const roots = [document.cid, ...own.map(({ named }) => parseCid(named.cid))];
  async function* blocks(): AsyncGenerator<Block> {
    yield document;
    for (const { src, isWorkdir, named } of own) {
      const picked = named.picked as Picked;
      const { ignore } = await rulesOf(picked, isWorkdir);
      const tree = importTree(picked.node, { ignore });
      for (;;) {
        const next = await tree.next();
        if (next.done === true) {
          requireSame(src, named, next.value.cid);
          break;
        }
        yield next.value;
      }
    }
  }
  const parts: BlobPart[] = [];
  for await (const bytes of writeCar(roots, blocks())) parts.push(bytes);
  return parts;
}

// Whom the market's workers can ask: its gateways, and where it names none the store itself.
export function giversFor(opened: Opened, gateways: readonly string[]): Blocks {
  return gateways.length > 0 ? new Blocks({ by: "host" }, gateways) : new Blocks(opened, []);
}

// Ask for every block of all that a job brings, each hashed, and return how many there are. Throws at the first that nobody has,
// as `Blocks.source` does.
export async function requireStored(load: Load, blocks: Blocks, tell: (count: number) => void): Promise<number> {
  const { cid } = await documentBlock(load);
  await blocks.source(cid);
  let count = 1;
  for (const { named } of load.sources) {
    // As large as it was named, in blocks of whatever size.
    const limits = { ...limitsOfMarket(BigInt(named.size), named.entries), maxBlocks: Number.MAX_SAFE_INTEGER };
    for await (const _ of blocksOf(parseCid(named.cid), blocks.source, limits)) {
      count += 1;
      tell(count);
    }
  }
  return count;
}

async function documentBlock({ document }: Load): Promise<Block> {
  return { cid: cidOfDigest(await sha256(document)), bytes: document };
}

function requireSame(src: string, named: Named, cid: Cid): void {
  if (String(cid) === named.cid) return;
  throw new HearthError("SOURCE_CHANGED", `${src} changed while it was read`, "pick it again");
}
