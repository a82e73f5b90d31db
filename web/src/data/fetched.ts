// What a reader names by an address, as bytes: nothing goes along that tells who asks.

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
  const reader = body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } catch {
    throw new HearthError("UNREADABLE", "the file cannot be read to its end", "get it again");
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}
