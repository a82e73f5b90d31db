import { describe, expect, it } from "vitest";

import { nearest } from "../src/core/near";
import { folded, str } from "../src/core/pytext";
import { needsShell, splitWords } from "../src/core/shell";
import type { Value } from "../src/core/yaml";
import { vectors } from "./vectors";

type Told = null | boolean | string | { whole: string } | { map: [string, Told][] } | Told[];
interface Near {
  word: string;
  names: number;
  most: number;
  found: string[];
}
interface Vectors {
  near: (Near | { lists: string[][] })[];
  shell: { text: string; words: string[] | string; shell: boolean }[];
  str: [Told, string][];
  folded: [string, string, boolean][];
}
const given = vectors<Vectors>("texts");

function valueOf(one: Told): Value {
  if (Array.isArray(one)) return one.map(valueOf);
  if (typeof one !== "object" || one === null) return one;
  return "whole" in one ? BigInt(one.whole) : new Map(one.map.map(([key, item]) => [key, valueOf(item)]));
}

describe("text as Python has it", () => {
  it("names the nearest names", () => {
    const lists = given.near.flatMap((one) => ("lists" in one ? one.lists : []));
    for (const one of given.near) {
      if ("lists" in one) continue;
      expect([one.word, nearest(one.word, lists[one.names] ?? [], one.most)]).toEqual([one.word, one.found]);
    }
    expect(nearest("a".repeat(10_000), ["a"], 1)).toEqual([]);
  });

  it("splits commands", () => {
    for (const { text, words, shell } of given.shell) {
      expect([text, splitWords(text), needsShell(text)]).toEqual([text, words, shell]);
    }
  });

  it("shows values", () => {
    for (const [value, text] of given.str) expect(str(valueOf(value))).toBe(text);
  });

  it("knows two spellings of a name for one", () => {
    for (const [one, other, same] of given.folded) {
      expect([one, other, folded(one) === folded(other)]).toEqual([one, other, same]);
    }
    // The one letter that is told apart there and not here.
    expect(folded("\u0131")).toBe(folded("i"));
  });
});
