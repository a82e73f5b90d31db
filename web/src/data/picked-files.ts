// What a reader picked or dropped, as a tree to import.
//
// A folder picker reports files with their paths alone: empty folders and symbolic links are not in it, and hidden files
// are. Dropped folders do list the empty ones. The page says which of the two it was.

import { HearthError } from "../core/errors";
import type { Child, TreeNode } from "../core/unixfs";

export interface Picked {
  readonly name: string;
  readonly node: TreeNode;
  // Whether folders without files would be in it.
  readonly emptyFolders: boolean;
}

interface Folder {
  readonly files: Map<string, File>;
  readonly folders: Map<string, Folder>;
}

// Files of an input: one alone, several as a folder, or a folder with its paths.
export function fromInput(files: readonly File[]): Picked {
  const [first] = files;
  if (first === undefined) throw new HearthError("NOTHING_PICKED", "nothing was picked");
  const inFolder = first.webkitRelativePath !== "";
  if (files.length === 1 && !inFolder) return { name: first.name, node: fileNode(first), emptyFolders: true };
  const root: Folder = { files: new Map(), folders: new Map() };
  for (const file of files) {
    const path = inFolder ? file.webkitRelativePath.split("/").slice(1) : [file.name];
    add(root, path, file);
  }
  const name = inFolder ? (first.webkitRelativePath.split("/")[0] ?? "folder") : `${files.length} files`;
  return { name, node: folderNode(root), emptyFolders: !inFolder };
}

// What was dropped; read its entries before the event ends.
export function fromDrop(entries: readonly FileSystemEntry[]): Picked {
  const [first] = entries;
  if (first === undefined) throw new HearthError("NOTHING_PICKED", "no file and no folder was dropped");
  if (entries.length === 1) return { name: first.name, node: entryNode(first), emptyFolders: true };
  const children = entries.map((entry) => ({ name: entry.name, node: entryNode(entry) }));
  return { name: `${entries.length} files`, node: { kind: "directory", list: () => children }, emptyFolders: true };
}

function add(folder: Folder, path: readonly string[], file: File): void {
  const [name = "", ...rest] = path;
  if (rest.length === 0) {
    folder.files.set(name, file);
    return;
  }
  const inner = folder.folders.get(name) ?? { files: new Map(), folders: new Map() };
  folder.folders.set(name, inner);
  add(inner, rest, file);
}

const fileNode = (file: File): TreeNode => ({ kind: "file", open: () => file });

function folderNode(folder: Folder): TreeNode {
  const children: Child[] = [
    ...[...folder.files].map(([name, file]) => ({ name, node: fileNode(file) })),
    ...[...folder.folders].map(([name, inner]) => ({ name, node: folderNode(inner) })),
  ];
  return { kind: "directory", list: () => children };
}

function entryNode(entry: FileSystemEntry): TreeNode {
  if (entry.isFile) {
    const file = entry as FileSystemFileEntry;
    return { kind: "file", open: () => new Promise<File>((done, fail) => file.file(done, fail)) };
  }
  return { kind: "directory", list: () => listed(entry as FileSystemDirectoryEntry) };
}

async function listed(folder: FileSystemDirectoryEntry): Promise<Child[]> {
  const reader = folder.createReader();
  const found: Child[] = [];
  for (;;) {
    // A browser gives a hundred at a time.
    const some = await new Promise<FileSystemEntry[]>((done, fail) => reader.readEntries(done, fail));
    if (some.length === 0) return found;
    found.push(...some.map((entry) => ({ name: entry.name, node: entryNode(entry) })));
  }
}

// The bytes of a file at the top of what was picked, undefined where there is none: rules of what to leave out.
export async function bytesOf(picked: Picked, name: string): Promise<Uint8Array | undefined> {
  if (picked.node.kind !== "directory") return undefined;
  const child = (await picked.node.list()).find((one) => one.name === name && one.node.kind === "file");
  if (child?.node.kind !== "file") return undefined;
  const content = await child.node.open();
  return content instanceof Blob ? new Uint8Array(await content.arrayBuffer()) : undefined;
}
