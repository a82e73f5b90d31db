// A file of a market's history from wherever its reader has it: picked, by CID, or from a host that the reader types.

import { parseUri } from "../core/cid";
import { HearthError } from "../core/errors";
import { askable, type Network } from "../core/network";
import { readHistoryFile, type HistoryFile } from "../core/history-file";
import { limitsOfMarket, readFile, resolve } from "../core/unixfs";
import type { Blocks } from "./blocks";
import { fetched, streamed } from "./fetched";

// What a page holds at once: about as much as it keeps.
export const MAX_BYTES = 64 * 2 ** 20;

type Bytes = AsyncIterable<Uint8Array>;

// Read a file that was picked. Throws what `readHistoryFile` does, TOO_LARGE, UNREADABLE.
export const fromFile = (file: File, network: Network): Promise<HistoryFile> => readHistoryFile(linesOf(streamed(file.stream())), network);

// Read what a reader typed: a CID, with ipfs:// or a path or without, or an address. Throws besides BAD_CID, BLOCK_MISSING,
// BLOCK_CORRUPT, STORE_DOWN, and URL_DOWN.
export async function fromPlace(place: string, blocks: Blocks, network: Network): Promise<HistoryFile> {
  const url = /^https?:/i.test(place) ? askable(place) : undefined;
  return readHistoryFile(linesOf(url === undefined ? await named(place, blocks) : await fetched(url)), network);
}

// Yield the lines of UTF-8, empty ones left out, of at most MAX_BYTES in all. Throws TOO_LARGE.
export async function* linesOf(bytes: Bytes, most = MAX_BYTES): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let parts: string[] = [];
  let size = 0;
  for await (const chunk of bytes) {
    size += chunk.length;
    if (size > most) throw new HearthError("TOO_LARGE", `the file has more than ${most} bytes`, "read the chain instead");
    const [first = "", ...rest] = decoder.decode(chunk, { stream: true }).split("\n");
    parts.push(first);
    for (const next of rest) {
      const line = parts.join("");
      if (line !== "") yield line;
      parts = [next];
    }
  }
  const line = parts.join("") + decoder.decode();
  if (line !== "") yield line;
}

async function named(place: string, blocks: Blocks): Promise<Bytes> {
  const { cid, path } = parseUri(place);
  const root = path === "" ? cid : await resolve(cid, path, blocks.source);
  return readFile(root, blocks.source, limitsOfMarket(BigInt(MAX_BYTES), 1));
}
