// A response's body, as far as its reader takes it: whoever sends more is cut off.

import { concat } from "../core/bytes";

// Read a body of at most so many bytes, undefined where it has more.
export async function readBody({ body }: Response, most: number): Promise<Uint8Array<ArrayBuffer> | undefined> {
  const reader = body?.getReader();
  const parts: Uint8Array[] = [];
  let size = 0;
  while (reader !== undefined) {
    const { done, value } = await reader.read();
    if (done) break;
    size += value.length;
    if (size > most) {
      await reader.cancel();
      return undefined;
    }
    parts.push(value);
  }
  return concat(parts);
}
