// What a reader names by an address, as bytes: nothing goes along that tells who asks.

import { bytesOf } from "../chain/body";
import { HearthError } from "../core/errors";

// Fetch from an address that a browser can ask. Throws URL_DOWN; while it is read UNREADABLE.
export async function fetched(url: URL): Promise<AsyncIterable<Uint8Array>> {
  const answer = await fetch(url, { credentials: "omit", redirect: "error", referrerPolicy: "no-referrer" }).catch(() => undefined);
  if (answer?.ok === true && answer.body !== null) return streamed(answer.body);
  const why = answer === undefined ? "cannot be reached from here" : `answers ${answer.status}`;
  throw new HearthError("URL_DOWN", `${url.origin} ${why}`, "save the file from there, and pick it here");
}

// Yield a body's bytes as they come. Throws UNREADABLE.
export async function* streamed(body: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* bytesOf(body);
  } catch {
    throw new HearthError("UNREADABLE", "the file cannot be read to its end", "get it again");
  }
}
