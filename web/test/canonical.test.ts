import { describe, expect, it } from "vitest";

import { equal, fromHex, toHex, utf8 } from "../src/core/bytes";
import { decode, digest, encode } from "../src/core/canonical";
import { refusal } from "./refusal";
import { vectors } from "./vectors";

interface Vectors {
  documents: { text: string; bytes: string; digest: string }[];
  refused: { text: string; code: string }[];
  bytes: { bytes: string; code: string | null }[];
  made: { before: string; repeated: string; count: number; after: string; code: string | null }[];
}

const said = vectors<Vectors>("canonical");

describe("canonical", () => {
  it("writes, names and reads every document as the library does", async () => {
    expect(said.documents.length).toBeGreaterThanOrEqual(40);
    for (const { text, bytes, digest: name } of said.documents) {
      const document: unknown = JSON.parse(text);
      expect([text, toHex(encode(document)), toHex(await digest(document))]).toEqual([text, bytes, name]);
      expect(toHex(encode(decode(fromHex(bytes))))).toBe(bytes);
      expect(decode(fromHex(bytes))).toEqual(document);
    }
  });

  it("refuses what has no canonical form", () => {
    for (const { text, code } of said.refused) {
      expect([text, refusal(() => encode(JSON.parse(text)))]).toEqual([text, code]);
    }
  });

  it("takes exactly the bytes that the library takes", () => {
    const codes = said.bytes.map(({ bytes }) => refusal(() => decode(fromHex(bytes))));
    expect(codes).toEqual(said.bytes.map(({ code }) => code));
    expect(new Set(codes)).toEqual(new Set([null, "BAD_DOCUMENT"]));
  });

  it("bounds size and nesting", () => {
    for (const { before, repeated, count, after, code } of said.made) {
      const bytes = utf8(before + repeated.repeat(count) + after);
      expect([before, repeated, count, refusal(() => decode(bytes))]).toEqual([before, repeated, count, code]);
      if (code === null) expect(equal(encode(decode(bytes)), bytes)).toBe(true);
    }
    expect(refusal(() => encode("x".repeat(2 ** 20 - 1)))).toBe("TOO_LARGE");
  });

  it.each([
    [undefined],
    [[undefined]],
    [[, 1]],
    [1n],
    [Number.NaN],
    [-0],
    [Symbol("a")],
    [{ [Symbol("a")]: 1 }],
    [() => 1],
    [new Map([["a", 1]])],
    [new Date(0)],
    [new Uint8Array(1)],
    [{ a: { toJSON: () => 1 } }],
  ])("refuses %s, which is no value of JSON", (value) => {
    expect(refusal(() => encode(value))).toBe("BAD_DOCUMENT");
  });

  it("keeps a stranger's keys keys", () => {
    const read = decode(utf8('{"__proto__":{"polluted":1},"constructor":2}')) as Record<string, unknown>;
    expect(Object.keys(read)).toEqual(["__proto__", "constructor"]);
    expect(Object.getPrototypeOf(read)).toBe(null);
    expect(({} as Record<string, unknown>)["polluted"]).toBe(undefined);
  });

  it("refuses a value that holds itself", () => {
    const loop: unknown[] = [];
    loop.push(loop);
    expect(refusal(() => encode(loop))).toBe("BAD_DOCUMENT");
  });
});
