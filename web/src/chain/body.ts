// A body's bytes, as far as their reader takes them: whoever sends more is cut off.

import { concat } from "../core/bytes";

type Body = ReadableStream<Uint8Array> | null;

// Yield a body's bytes as they come; whoever takes no more of them ends it.
export async function* bytesOf(body: Body): AsyncGenerator<Uint8Array> {
  const reader = body?.getReader();
  if (reader === undefined) return;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

// Gather at most so many bytes, undefined where there are more.
export async function gathered(bytes: AsyncIterable<Uint8Array>, most: number): Promise<Uint8Array<ArrayBuffer> | undefined> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of bytes) {
    size += part.length;
    if (size > most) return undefined;
    parts.push(part);
  }
  return concat(parts);
}

// Read a body of at most so many bytes, undefined where it has more.
export const readBody = ({ body }: { readonly body: Body }, most: number): Promise<Uint8Array<ArrayBuffer> | undefined> => gathered(bytesOf(body), most);
