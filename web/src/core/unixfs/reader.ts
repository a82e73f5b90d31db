// Blocks to content, under limits: files, walks, paths, and the blocks of a whole DAG.
// Mirrors hearth/storage/unixfs/reader.py. Nothing in a block is trusted but that it hashes to its name: sizes, names,
// counts and depth are checked here. Nothing recurses deeper than a path or a shard may be.

import { DAG_PB, MAX_BLOCK_BYTES, RAW } from "../../generated/cid";
import { HASH_BITS, MAX_DAG_HEIGHT, TYPE_NAMES } from "../../generated/unixfs";
import { fromHex } from "../bytes";
import { type Block, type Bytes, checkBlockSize, type Cid, codecName } from "../cid";
import { HearthError } from "../errors";
import {
  corrupt,
  type DagNode,
  decodeDagNode,
  decodeLinks,
  type Link,
  TYPE_DIRECTORY,
  TYPE_FILE,
  TYPE_METADATA,
  TYPE_RAW,
  TYPE_SHARD,
  TYPE_SYMLINK,
} from "./codec";
import { DEFAULT_LIMITS, type Found, maxDagBytes, maxNodeBytes, type ReadLimits, type Source } from "./model";
import { joined, Names } from "./names";

// A raw leaf's bytes, or a file's or directory's node.
export type Opened = Bytes | DagNode;
export type Named = readonly [name: string, link: Link];

const MAX_LEAF = BigInt(MAX_BLOCK_BYTES);
// Decoded, a node takes some ten times its block.
const NODES_BYTES = 4 << 20;

// Keeps the nodes that were decoded last, NODES_BYTES of blocks in all: what looks at a tree before it writes it, or meets the
// same block at a million places, fetches and decodes it once.
export class Nodes {
  readonly #held = new Map<string, { readonly node: DagNode; readonly size: number }>();
  #bytes = 0;

  get(cid: Cid): { readonly node: DagNode; readonly size: number } | undefined {
    return this.#held.get(cid.key);
  }

  keep(cid: Cid, node: DagNode, size: number): void {
    this.#held.set(cid.key, { node, size });
    this.#bytes += size;
    for (const [oldest, held] of this.#held) {
      if (this.#bytes <= NODES_BYTES) break;
      this.#held.delete(oldest);
      this.#bytes -= held.size;
    }
  }
}

// Count what has been read against the limits of one reader; `nodes` are those that it shares with another.
export class Budget {
  readonly #below: Map<string, bigint>;
  #blocks = 0;
  #entries = 0;
  #bytes = 0n;
  #nodeBytes = 0n;
  #heldBytes = 0n;
  #promised = 0n;

  constructor(
    readonly source: Source,
    readonly limits: ReadLimits,
    readonly nodes = new Nodes(),
  ) {
    this.#below = new Map(limits.maxBelow);
  }

  // Return how many files and directories were counted.
  get entries(): number {
    return this.#entries;
  }

  // Read a node. What a file's node holds of the file itself is content, and is bounded as that: Kubo's layout without
  // raw leaves puts all of a file into nodes.
  async node(cid: Cid): Promise<DagNode> {
    if (cid.codec !== DAG_PB) {
      throw corrupt(cid, `a ${codecName(cid.codec)} block is no UnixFS directory or file node`);
    }
    const { node, size } = this.#held(cid) ?? (await this.#decoded(cid));
    const held = isFile(node) ? node.data.length : 0;
    this.#heldBytes += BigInt(held);
    if (this.#heldBytes > this.limits.maxBytes) throw over("bytes", this.limits.maxBytes);
    this.#nodeBytes += BigInt(size - held);
    const most = maxNodeBytes(this.limits);
    if (this.#nodeBytes > most) throw over("bytes of inner nodes", most);
    return node;
  }

  // A node that is held, which counts as if it were read.
  #held(cid: Cid): { readonly node: DagNode; readonly size: number } | undefined {
    const known = this.nodes.get(cid);
    if (known !== undefined) this.#countBlock();
    return known;
  }

  async #decoded(cid: Cid): Promise<{ readonly node: DagNode; readonly size: number }> {
    const block = await this.block(cid);
    const node = decodeDagNode(cid, block);
    this.nodes.keep(cid, node, block.length);
    return { node, size: block.length };
  }

  #countBlock(): void {
    this.#blocks += 1;
    if (this.#blocks > this.limits.maxBlocks) throw over("blocks", this.limits.maxBlocks);
  }

  // Count what one more file declares, of which nothing is read.
  foresee(size: bigint): void {
    this.#promised += size;
    if (this.#promised > this.limits.maxBytes) throw over("bytes", this.limits.maxBytes);
  }

  // Read a block, counted each time it is read.
  async block(cid: Cid): Promise<Bytes> {
    this.#countBlock();
    const block = await this.source(cid);
    checkBlockSize(block);
    return block;
  }

  // Refuse a file that declares more content than is left, before any of it is read.
  promise(size: bigint): void {
    if (this.#bytes + size > this.limits.maxBytes) throw over("bytes", this.limits.maxBytes);
  }

  // Count content that is about to be handed on.
  content(data: Bytes): Bytes {
    this.promise(BigInt(data.length));
    this.#bytes += BigInt(data.length);
    return data;
  }

  // Count a file's content against the limit of each path that it is or lies below, before any of it is read.
  below(path: string, size: bigint): void {
    for (const [top, left] of this.#below) {
      if (path !== top && !path.startsWith(`${top}/`)) continue;
      this.#below.set(top, left - size);
      if (size > left) throw over(`bytes in ${top}`, new Map(this.limits.maxBelow).get(top) ?? 0n);
    }
  }

  // Count a file or directory.
  entry(): void {
    this.#entries += 1;
    if (this.#entries > this.limits.maxEntries) throw over("entries", this.limits.maxEntries);
  }
}

// Yield the content of a file in pieces of at most 2 MiB. Throws BLOCK_CORRUPT where the root is no file or a part is
// not as long as its parent says, TOO_LARGE at a limit.
export async function* readFile(cid: Cid, source: Source, limits: ReadLimits = DEFAULT_LIMITS): AsyncGenerator<Bytes> {
  const budget = new Budget(source, limits);
  if (cid.codec === RAW) {
    yield budget.content(await budget.block(cid));
    return;
  }
  const node = await budget.node(cid);
  if (!isFile(node)) throw corrupt(cid, `a ${TYPE_NAMES[node.kind]} stands where a file is expected`);
  yield* contentOf(node, budget);
}

// Yield a file's content depth first, without recursion so that no DAG can exhaust the stack.
export async function* contentOf(node: DagNode, budget: Budget): AsyncGenerator<Bytes> {
  budget.promise(node.size);
  if (node.data.length > 0) yield budget.content(node.data);
  const stack = [{ node, at: 0 }];
  for (let top = stack.at(-1); top !== undefined; top = stack.at(-1)) {
    const [link, declared] = [top.node.links[top.at], top.node.blockSizes[top.at]];
    if (link === undefined || declared === undefined) {
      stack.pop();
      continue;
    }
    top.at += 1;
    if (link.cid.codec === RAW) {
      const data = await budget.block(link.cid);
      checkDeclared(link.cid, BigInt(data.length), declared);
      yield budget.content(data);
      continue;
    }
    const child = await budget.node(link.cid);
    if (!isFile(child)) {
      throw corrupt(link.cid, `a ${TYPE_NAMES[child.kind]} stands where a part of a file is expected`);
    }
    checkDeclared(link.cid, child.size, declared);
    if (stack.length >= MAX_DAG_HEIGHT) {
      throw new HearthError("TOO_LARGE", `a file's tree is higher than ${MAX_DAG_HEIGHT}`, "hearth doctor");
    }
    if (child.data.length > 0) yield budget.content(child.data);
    stack.push({ node: child, at: 0 });
  }
}

function checkDeclared(cid: Cid, actual: bigint, declared: bigint): void {
  if (actual !== declared) throw corrupt(cid, `it holds ${actual} bytes where its parent declares ${declared}`);
}

// Return the entries of a plain or sharded directory in the order of its links; names are checked, each once.
//
// A shard's link name starts with its slot in hex; the rest is the entry's name, or nothing when it is a sub-shard. No
// shard is read twice: what lies in it is told apart from what lies elsewhere by its names' hashes, so an equal one can
// hold nothing.
export async function listDirectory(node: DagNode, path: string, budget: Budget): Promise<Named[]> {
  const names = new Names(path);
  const shards = new Set<string>();
  const found: Named[] = [];
  const slotBits = 32 - Math.clz32(Math.max(node.fanout, 1) - 1);
  const prefix = node.kind === TYPE_SHARD ? (node.fanout - 1).toString(16).length : 0;

  // It goes no deeper than HASH_BITS / slotBits levels.
  async function read(shard: DagNode, level: number): Promise<void> {
    for (const link of shard.links) {
      if (prefix === 0 || link.name.length > prefix) {
        budget.entry();
        found.push([names.add(link.name.subarray(prefix)), link]);
        continue;
      }
      if (link.name.length !== prefix || shards.has(link.cid.key) || (level + 1) * slotBits > HASH_BITS) {
        throw noShard(link.cid);
      }
      shards.add(link.cid.key);
      const child = await budget.node(link.cid);
      if (child.kind !== TYPE_SHARD || child.fanout !== node.fanout) throw noShard(link.cid);
      await read(child, level + 1);
    }
  }

  await read(node, 1);
  return found;
}

const noShard = (cid: Cid): HearthError => corrupt(cid, "it is no part of a sharded directory");

// Return a raw leaf's bytes, or a file's or directory's node. Throws UNSAFE_PATH for a symbolic link.
export async function openNode(cid: Cid, budget: Budget): Promise<Opened> {
  if (cid.codec === RAW) return budget.block(cid);
  const node = await budget.node(cid);
  if (node.kind === TYPE_METADATA || node.kind === TYPE_SYMLINK) {
    throw new HearthError(
      "UNSAFE_PATH",
      `${cid} is a UnixFS ${TYPE_NAMES[node.kind]}; only files and directories are read`,
      "ask for the data without links",
      { cid: String(cid) },
    );
  }
  return node;
}

// Yield every file and directory below and including `cid`, parents first, sizes as declared by the nodes. A child's
// `tsize` is what its parent declares; a directory's `size` is 0: not known here.
export async function* walk(cid: Cid, source: Source, limits: ReadLimits = DEFAULT_LIMITS): AsyncGenerator<Found> {
  const budget = new Budget(source, limits);
  budget.entry();
  const stack = [{ cid, path: "", tsize: 0n }];
  for (let here = stack.pop(); here !== undefined; here = stack.pop()) {
    const { path, tsize } = here;
    const opened = await openNode(here.cid, budget);
    if (!isDirectory(opened)) {
      const size = sizeOf(opened);
      yield { cid: here.cid, kind: "file", size, tsize: tsize === 0n ? size : tsize, path };
      continue;
    }
    yield { cid: here.cid, kind: "directory", size: 0n, tsize, path };
    for (const [name, link] of (await listDirectory(opened, path, budget)).reverse()) {
      stack.push({ cid: link.cid, path: joined(path, name), tsize: link.tsize });
    }
  }
}

// Return how many files and directories a tree has, itself included; only inner nodes are read, no content. Every name
// is checked on the way, so that what is no tree to unpack is known before anything is saved.
export async function countEntries(cid: Cid, source: Source, limits: ReadLimits = DEFAULT_LIMITS): Promise<number> {
  const budget = new Budget(source, limits);
  budget.entry();
  const stack = [{ cid, path: "" }];
  for (let here = stack.pop(); here !== undefined; here = stack.pop()) {
    if (here.cid.codec === RAW) continue;
    const opened = await openNode(here.cid, budget);
    if (!isDirectory(opened)) continue;
    for (const [name, link] of await listDirectory(opened, here.path, budget)) {
      stack.push({ cid: link.cid, path: joined(here.path, name) });
    }
  }
  return budget.entries;
}

// Refuse a tree that unfolds to more than the limits, by the word of its nodes, before anything of it is saved. A block that
// is named a million times is a million files. Only nodes are read, each once; no content.
export async function survey(cid: Cid, source: Source, limits: ReadLimits, nodes: Nodes): Promise<void> {
  const budget = new Budget(source, limits, nodes);
  budget.entry();
  const stack = [{ cid, path: "", tsize: 0n }];
  for (let here = stack.pop(); here !== undefined; here = stack.pop()) {
    // Of a leaf its parent's word; none is larger than a block.
    let size = here.tsize < MAX_LEAF ? here.tsize : MAX_LEAF;
    if (here.cid.codec !== RAW) {
      const opened = await openNode(here.cid, budget);
      if (isDirectory(opened)) {
        for (const [name, link] of await listDirectory(opened, here.path, budget)) {
          stack.push({ cid: link.cid, path: joined(here.path, name), tsize: link.tsize });
        }
        continue;
      }
      size = sizeOf(opened);
    }
    budget.foresee(size);
    budget.below(here.path, size);
  }
}

// Follow a path ("a/b/c") from a directory and return the CID it names. A name is taken as it stands, and where there is
// none such, as a URL writes it: `a%20b` is also `a b`. Throws NOT_FOUND.
export async function resolve(
  cid: Cid,
  path: string,
  source: Source,
  limits: ReadLimits = DEFAULT_LIMITS,
): Promise<Cid> {
  const budget = new Budget(source, limits);
  let [here, walked] = [cid, ""];
  for (const part of path.split("/").filter((one) => one !== "")) {
    const opened = await openNode(here, budget);
    const children = new Map(isDirectory(opened) ? await listDirectory(opened, walked, budget) : []);
    const name = children.has(part) ? part : unquoted(part);
    const next = children.get(name);
    if (next === undefined) {
      throw new HearthError("NOT_FOUND", `${cid} has no entry ${JSON.stringify(path)}`, "check the path", { path });
    }
    [here, walked] = [next.cid, joined(walked, name)];
  }
  return here;
}

const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
const unquoted = (part: string): string =>
  part.replace(/(?:%[0-9a-f]{2})+/gi, (run) => decoder.decode(fromHex(run.replaceAll("%", ""))));

// Return about how many bytes a fetch will move, by the root's own word: for progress bars, not for limits.
export async function declaredSize(cid: Cid, source: Source): Promise<bigint> {
  const opened = await openNode(cid, new Budget(source, DEFAULT_LIMITS));
  return isDirectory(opened) ? opened.links.reduce((sum, link) => sum + link.tsize, 0n) : sizeOf(opened);
}

// Return the children that a block links to, in order. Throws BLOCK_CORRUPT, and BAD_CID for DAG-CBOR.
export function linksOf(cid: Cid, block: Bytes): Cid[] {
  if (cid.codec === RAW) return [];
  if (cid.codec !== DAG_PB) {
    throw new HearthError(
      "BAD_CID",
      `${cid}: the links of ${codecName(cid.codec)} blocks are not followed`,
      "name a UnixFS file or directory",
    );
  }
  return decodeLinks(cid, block).map((link) => link.cid);
}

// Yield every block of a DAG once, parents first, within the same limits as a reader of its content. A raw block is
// content. How much of a node is, is not looked at here: all blocks are held against both limits' sum.
export async function* blocksOf(cid: Cid, source: Source, limits: ReadLimits = DEFAULT_LIMITS): AsyncGenerator<Block> {
  const budget = new Budget(source, limits);
  const most = maxDagBytes(limits);
  let bytesRead = 0n;
  const seen = new Set([cid.key]);
  const stack = [cid];
  for (let here = stack.pop(); here !== undefined; here = stack.pop()) {
    const bytes = await budget.block(here);
    if (here.codec === RAW) budget.content(bytes);
    bytesRead += BigInt(bytes.length);
    if (bytesRead > most) throw over("bytes of blocks", most);
    yield { cid: here, bytes };
    const fresh: Cid[] = [];
    for (const child of linksOf(here, bytes)) {
      if (seen.has(child.key)) continue;
      seen.add(child.key);
      fresh.push(child);
    }
    // One by one: a block may link to more than a call has room for arguments.
    for (const child of fresh.reverse()) stack.push(child);
  }
}

// ---- inside ----

const isFile = (node: DagNode): boolean => node.kind === TYPE_FILE || node.kind === TYPE_RAW;

export function isDirectory(opened: Opened): opened is DagNode {
  return !(opened instanceof Uint8Array) && (opened.kind === TYPE_DIRECTORY || opened.kind === TYPE_SHARD);
}

// Return the bytes of a file, by its node's own word.
export const sizeOf = (opened: Opened): bigint =>
  opened instanceof Uint8Array ? BigInt(opened.length) : opened.size;

function over(what: string, limit: bigint | number): HearthError {
  return new HearthError(
    "TOO_LARGE",
    `the data has more than ${limit} ${what}, the limit set for it`,
    "name a smaller part of it; what a job may leave is its outputs' max_size: hearth check job.yaml",
    { limit: String(limit), what },
  );
}
