import { describe, expect, it } from "vitest";

import type { Hex } from "../src/core/bytes";
import { codeOf } from "../src/core/errors";
import { endedOf, parentsHash, unpackParents } from "../src/core/parents";
import { vectors } from "./vectors";

interface Cases {
  lists: { packed: Hex[]; hash: Hex; parents: [Hex, number][] }[];
  refused: Hex[][];
  words: { word: string; ended: number }[];
}

const cases = vectors<Cases>("parents");

describe("parents", () => {
  it.each(cases.lists)("of a list, $hash", ({ packed, hash, parents }) => {
    expect(parentsHash(packed)).toBe(hash);
    expect(unpackParents(packed).map(({ job, condition }) => [job, condition])).toEqual(parents);
  });

  it("of a list that no post takes are refused", () => {
    expect(cases.refused.length).toBeGreaterThan(4);
    for (const packed of cases.refused) {
      let code = "";
      try {
        unpackParents(packed);
      } catch (error) {
        code = codeOf(error);
      }
      expect(code).toBe("BAD_PARENTS");
    }
  });

  it("have ended as their words say", () => {
    for (const { word, ended } of cases.words) expect(endedOf(BigInt(word))).toBe(ended);
  });
});
