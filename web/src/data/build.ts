// The page's own CID, read from its own files: what a reader compares with the one of a release.

import { HearthError } from "../core/errors";
import { type Entry, importTree, type TreeNode } from "../core/unixfs";

const LIST = "files.json";
const MAX_FILES = 200;
const PATH = /^[a-zA-Z0-9_-]+(?:[./][a-zA-Z0-9_-]+)*$/;

// Name the folder that this page was served from. Throws NO_BUILD where a file of it cannot be read.
export async function ownBuild(): Promise<Entry> {
  const listed: unknown = await (await own(LIST)).json();
  // The list does not name itself.
  const names = typeof listed === "object" && listed !== null ? [...Object.keys(listed), LIST].sort() : [];
  if (names.length < 2 || names.length > MAX_FILES || !names.every((one) => PATH.test(one))) {
    throw new HearthError("NO_BUILD", `${LIST} of this page names no files`);
  }
  const blocks = importTree(folderOf(names, ""));
  for (;;) {
    const next = await blocks.next();
    if (next.done === true) return next.value;
  }
}

function folderOf(names: readonly string[], path: string): TreeNode {
  const below = new Map<string, string[]>();
  for (const name of names) {
    const [first = "", ...rest] = name.split("/");
    below.set(first, [...(below.get(first) ?? []), rest.join("/")]);
  }
  const child = (name: string, rest: readonly string[]): TreeNode =>
    rest[0] === "" ? { kind: "file", open: async () => (await own(path + name)).blob() } : folderOf(rest, `${path}${name}/`);
  return { kind: "directory", list: () => [...below].map(([name, rest]) => ({ name, node: child(name, rest) })) };
}

async function own(name: string): Promise<Response> {
  const answer = await fetch(`./${name}`, { credentials: "omit", redirect: "error" }).catch(() => undefined);
  if (answer?.ok !== true) throw new HearthError("NO_BUILD", `${name} of this page cannot be read`);
  return answer;
}
