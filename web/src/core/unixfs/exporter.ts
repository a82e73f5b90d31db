// A tree as one stream of folders, files and their bytes, for whoever saves it.
// Mirrors hearth/storage/unixfs/exporter.py, which writes to a disk: order, limits and what is refused are the same.

import { utf8 } from "../bytes";
import type { Bytes, Cid } from "../cid";
import { DEFAULT_LIMITS, type ReadLimits, type Source } from "./model";
import { disarmed, joined, Names } from "./names";
import { Budget, contentOf, isDirectory, listDirectory, Nodes, type Opened, openNode, sizeOf, survey } from "./reader";

// A folder, a file, or the next bytes of the file before. `path` is the place in the tree, `place` the one to write to;
// they differ where a name was disarmed. A file's `size` is what its bytes add up to, or the stream throws.
export type Exported =
  | { readonly kind: "directory"; readonly path: string; readonly place: string }
  | { readonly kind: "file"; readonly path: string; readonly place: string; readonly size: bigint }
  | { readonly kind: "bytes"; readonly bytes: Bytes };

// Yield a file or a directory tree, parents first. With `disarm`, names that a person's programs would obey are written
// under another. A tree that unfolds to more than the limits is refused before anything of it comes. Throws UNSAFE_PATH,
// TOO_LARGE, BLOCK_CORRUPT and what the source throws, each at the earliest: what came before is then to be thrown away.
export async function* exportTree(
  cid: Cid,
  source: Source,
  limits: ReadLimits = DEFAULT_LIMITS,
  disarm = true,
): AsyncGenerator<Exported> {
  const nodes = new Nodes();
  await survey(cid, source, limits, nodes);
  const budget = new Budget(source, limits, nodes);
  budget.entry();
  yield* written(await openNode(cid, budget), budget, disarm, "", "");
}

// It goes no deeper than a path may be: names are checked before what they name is opened.
async function* written(
  opened: Opened,
  budget: Budget,
  disarm: boolean,
  path: string,
  place: string,
): AsyncGenerator<Exported> {
  if (!isDirectory(opened)) {
    const size = sizeOf(opened);
    budget.below(path, size);
    yield { kind: "file", path, place, size };
    if (opened instanceof Uint8Array) yield { kind: "bytes", bytes: budget.content(opened) };
    else for await (const bytes of contentOf(opened, budget)) yield { kind: "bytes", bytes };
    return;
  }
  // All names are read and checked before the first of them is written.
  const children = await listDirectory(opened, path, budget);
  yield { kind: "directory", path, place };
  const names = new Names(path);
  for (const [name, link] of children) {
    const to = disarm ? disarmed(name) : name;
    // A name made here may be one that stands in the directory too.
    names.add(utf8(to));
    yield* written(await openNode(link.cid, budget), budget, disarm, joined(path, name), joined(place, to));
  }
}
