// Bytes as they come: from a Blob slice by slice, or from a stream in pieces of any length. No more is read than is
// asked for, so that a file of any size passes through.

import type { Bytes } from "./cid";
import { HearthError } from "./errors";

// What bytes are read from: a Blob or a File, of which slices are read one at a time, or any stream.
export interface Slices {
  readonly size: number;
  slice(start: number, end: number): { arrayBuffer(): Promise<ArrayBuffer> };
}
export type Content = Slices | AsyncIterable<Uint8Array>;

// Yield content in chunks of exactly `size` bytes, the last one of what is left; one empty chunk of what is empty.
// Throws UNREADABLE with the `path` where it cannot be read, or changed meanwhile.
export async function* chunks(content: Content, size: number, path: string): AsyncGenerator<Bytes> {
  try {
    yield* "slice" in content ? slices(content, size) : pieces(content, size);
  } catch (error) {
    if (error instanceof HearthError) throw error;
    const why = error instanceof Error ? error.message : String(error);
    throw new HearthError("UNREADABLE", `${path || "the file"} cannot be read: ${why}`, "choose it again", { path });
  }
}

async function* slices(content: Slices, size: number): AsyncGenerator<Bytes> {
  for (let at = 0; at === 0 || at < content.size; at += size) {
    const end = Math.min(at + size, content.size);
    const bytes = new Uint8Array(await content.slice(at, end).arrayBuffer());
    if (bytes.length !== end - at) throw new Error("it changed while it was read");
    yield bytes;
  }
}

// Put pieces of any length together: streams give less and more than they are asked for.
async function* pieces(content: AsyncIterable<Uint8Array>, size: number): AsyncGenerator<Bytes> {
  let chunk = new Uint8Array(size);
  let held = 0;
  let any = false;
  for await (const piece of content) {
    for (let at = 0; at < piece.length; ) {
      const part = piece.subarray(at, at + size - held);
      chunk.set(part, held);
      held += part.length;
      at += part.length;
      if (held < size) continue;
      yield chunk;
      [chunk, held, any] = [new Uint8Array(size), 0, true];
    }
  }
  if (held > 0 || !any) yield chunk.slice(0, held);
}
