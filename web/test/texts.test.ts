import { describe, expect, it } from "vitest";

import { folded, trimmed } from "../src/core/unicode";
import { vectors } from "./vectors";

const given = vectors<{ folded: [string, string, boolean][] }>("texts");

describe("text", () => {
  it("knows two spellings of a name for one", () => {
    for (const [one, other, same] of given.folded) {
      expect([one, other, folded(one) === folded(other)]).toEqual([one, other, same]);
    }
    // The one letter that is told apart there and not here.
    expect(folded("\u0131")).toBe(folded("i"));
  });

  it("is trimmed of no more than the library takes off", () => {
    expect(trimmed(" \t\u00a0a b\u3000\n")).toBe("a b");
    for (const kept of ["\ufeffa", "a\ufeff ", "\x1ca", "\u200ba"]) expect(trimmed(kept)).toBe(kept);
  });
});
