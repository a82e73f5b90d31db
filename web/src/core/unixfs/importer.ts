// Files and directories to blocks, as a stream: what is held is one chunk, and one row of links per level.
// Mirrors hearth/storage/unixfs/importer.py.
//
// An importer yields blocks and returns the entry. It reads on only when the next block is asked for, so that whoever
// stores blocks sets the pace, and a file of any size passes through.

import { RAW } from "../../generated/cid";
import { CHUNK_BYTES, LINKS_PER_NODE } from "../../generated/unixfs";
import { concat } from "../bytes";
import { type Block, cidOf } from "../cid";
import { chunks, type Content } from "../content";
import { compareText } from "../unicode";
import { encodeDagNode, encodeField, type Link, TYPE_FILE } from "./codec";
import type { Entry } from "./model";
import { joined, nameBytes, Names } from "./names";
import { put, putDirectory } from "./sharding";

// A tree to import. What a file holds and a folder lists is asked for when its turn has come.
export interface FileNode {
  readonly kind: "file";
  open(): Content | Promise<Content>;
}
export interface FolderNode {
  readonly kind: "directory";
  list(): readonly Child[] | Promise<readonly Child[]>;
}
export type TreeNode = FileNode | FolderNode;
export interface Child {
  readonly name: string;
  readonly node: TreeNode;
}

export interface ImportOptions {
  // Called with a relative path ("a/b") and whether it is a directory; true leaves it out.
  readonly ignore?: (path: string, isDirectory: boolean) => boolean;
  // Called with the relative path ("" for a lone file) and the bytes just read.
  readonly progress?: (path: string, bytes: number) => void;
  // The market's constants unless a test passes others: with another one a CID is of another protocol.
  readonly chunkBytes?: number;
  readonly linksPerNode?: number;
}

type Part = { readonly link: Link; readonly size: bigint };

// Yield the blocks of one file and return its entry. Throws UNREADABLE where its content cannot be read.
export async function* importFile(
  content: Content,
  options: ImportOptions = {},
  path = "",
): AsyncGenerator<Block, Entry> {
  const most = options.linksPerNode ?? LINKS_PER_NODE;
  const levels: Part[][] = [[]];
  for await (const bytes of chunks(content, options.chunkBytes ?? CHUNK_BYTES, path)) {
    // A full row becomes one node of the row above only once another part is known to follow it.
    for (let level = 0; (levels[level]?.length ?? 0) >= most; level += 1) {
      const row = levels[level] ?? [];
      const above = (levels[level + 1] ??= []);
      above.push(yield* putFileNode(row));
      row.length = 0;
    }
    const cid = await cidOf(bytes, RAW);
    yield { cid, bytes };
    const size = BigInt(bytes.length);
    levels[0]?.push({ link: { cid, name: new Uint8Array(), tsize: size }, size });
    options.progress?.(path, bytes.length);
  }
  let row = levels[0] ?? [];
  for (const above of levels.slice(1)) {
    above.push(yield* putFileNode(row));
    row = above;
  }
  const root = row.length === 1 ? (row[0] as Part) : yield* putFileNode(row);
  return { cid: root.link.cid, kind: "file", size: root.size, tsize: root.link.tsize, files: 1, folders: 0, path };
}

// Yield the blocks of a file or a directory tree, children before their folder, and return its entry. Names are refused
// as everywhere; modes and times are left out, so that the same content has the same CID everywhere.
// Throws UNSAFE_PATH and UNREADABLE.
export async function* importTree(
  node: TreeNode,
  options: ImportOptions = {},
  path = "",
): AsyncGenerator<Block, Entry> {
  if (node.kind === "file") return yield* importFile(await node.open(), options, path);
  const links: Link[] = [];
  const seen = new Names(path);
  let [size, files, folders] = [0n, 0, 1];
  const children = [...(await node.list())].sort((a, b) => compareText(a.name, b.name));
  for (const child of children) {
    const place = joined(path, child.name);
    if (options.ignore?.(place, child.node.kind === "directory")) continue;
    const name = nameBytes(child.name, path);
    seen.add(name); // it bounds the depth as well, before anything below is looked at
    const entry = yield* importTree(child.node, options, place);
    links.push({ cid: entry.cid, name, tsize: entry.tsize });
    size += entry.size;
    files += entry.files;
    folders += entry.folders;
  }
  const { cid, tsize } = yield* putDirectory(links, path);
  return { cid, kind: "directory", size, tsize, files, folders, path };
}

async function* putFileNode(parts: readonly Part[]): AsyncGenerator<Block, Part> {
  const size = parts.reduce((sum, part) => sum + part.size, 0n);
  const sizes = parts.map((part) => encodeField(4, part.size));
  const data = concat([encodeField(1, TYPE_FILE), encodeField(3, size), ...sizes]);
  const links = parts.map((part) => part.link);
  const { cid, tsize } = yield* put(encodeDagNode(data, links), links);
  return { link: { cid, name: new Uint8Array(), tsize }, size };
}
