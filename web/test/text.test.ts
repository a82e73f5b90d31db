import { describe, expect, it } from "vitest";

import { shown, shownLine, shownLog } from "../src/core/text";

describe("what strangers write", () => {
  it.each([
    ["plain", "plain"],
    ["a\u202eb", "aU+202Eb"],
    ["zero\u200bwidth", "zeroU+200Bwidth"],
    ["\u0000\u001b[31m", "U+0000U+001B[31m"],
    ["\ud800x", "U+D800x"],
    ["x\udc00", "xU+DC00"],
    ["\u{1f600}", "\u{1f600}"],
    ["\u{e0041}", "U+E0041"],
    ["two\nlines\ttab", "two\nlines\ttab"],
  ])("%j is shown as %j", (text, wanted) => {
    expect(shown(text)).toBe(wanted);
  });

  it("is cut", () => {
    expect(shown("x".repeat(20), 10)).toBe(`${"x".repeat(10)}…`);
    expect(shownLine("a\nb\tc")).toBe("aU+000AbU+0009c");
  });

  it("loses its colours where it is a log", () => {
    expect(shownLog("\u001b[1;31mred\u001b[0m\r\n\u001b]0;title\u0007end")).toBe("red\nend");
    expect(shownLog("\u001b[31")).toBe("U+001B[31");
  });
});
