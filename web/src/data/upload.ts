// Files into the store of `hearth web`: every block by its CID, the root last, with the word that keeps all of it.

import { writeCar } from "../core/car";
import type { Block, Cid } from "../core/cid";
import { HearthError } from "../core/errors";
import type { Ignore } from "../core/ignore";
import { type Entry, importTree, type TreeNode } from "../core/unixfs";
import { askLocal } from "./opened-with";

const AT_ONCE = 4;

export interface Progress {
  readonly bytes: number;
  readonly blocks: number;
}

// Name a tree without keeping its blocks: its entry, with its CID.
export async function nameTree(node: TreeNode, ignore: Ignore, tell: (progress: Progress) => void): Promise<Entry> {
  return each(node, ignore, tell, async () => undefined);
}

// Put a tree into the store and keep it. Throws READ_ONLY, BAD_TOKEN, OFFLINE, STORE_DOWN and what reading it throws.
export async function putTree(node: TreeNode, ignore: Ignore, tell: (progress: Progress) => void): Promise<Entry> {
  // A block is put once the next one is there: the last is the root.
  let last: Block | undefined;
  const running = new Set<Promise<void>>();
  const failed: unknown[] = [];
  const settle = async (most: number): Promise<void> => {
    while (running.size > most) await Promise.race(running);
    if (failed.length > 0) throw failed[0];
  };
  const entry = await each(node, ignore, tell, async (block) => {
    const before = last;
    last = block;
    if (before === undefined) return;
    const one: Promise<void> = put(before, false)
      .catch((error: unknown) => void failed.push(error))
      .finally(() => running.delete(one));
    running.add(one);
    await settle(AT_ONCE - 1);
  });
  await settle(0);
  if (last !== undefined) await put(last, true);
  return entry;
}

// Write a named tree into the parts of a CAR file: for a store that this page cannot reach.
export async function carOf(node: TreeNode, ignore: Ignore, root: Cid): Promise<BlobPart[]> {
  const parts: BlobPart[] = [];
  // Nothing is read twice at once: blocks come as the tree is walked.
  for await (const bytes of writeCar([root], importTree(node, { ignore }))) parts.push(bytes);
  return parts;
}

async function each(
  node: TreeNode,
  ignore: Ignore,
  tell: (progress: Progress) => void,
  take: (block: Block) => Promise<void>,
): Promise<Entry> {
  const blocks = importTree(node, { ignore });
  let bytes = 0;
  let count = 0;
  for (;;) {
    const next = await blocks.next();
    if (next.done === true) return next.value;
    await take(next.value);
    bytes += next.value.bytes.length;
    count += 1;
    tell({ bytes, blocks: count });
  }
}

// Put one block, with `keep` as a root that is kept with all below it. Throws as `putTree` does.
export async function put(block: Block, keep: boolean): Promise<void> {
  const answer = await askLocal(`ipfs/${block.cid}${keep ? "?keep" : ""}`, { method: "PUT", body: block.bytes });
  if (answer.status === 201) return;
  const said = (await answer.json().catch(() => ({}))) as { error?: { code?: unknown; message?: unknown } };
  const { code, message } = said.error ?? {};
  throw new HearthError(
    typeof code === "string" ? code : "STORE_DOWN",
    typeof message === "string" ? message : `the store answers HTTP ${answer.status}`,
    "nothing of it is kept until all of it is there: try again",
  );
}
