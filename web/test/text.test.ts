import { describe, expect, it } from "vitest";

import { HearthError } from "../src/core/errors";
import { oneLine, shown, shownLine, shownLog } from "../src/core/text";

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
    ["\u{e0fff}\u{1bca0}\u{1d173}", "U+E0FFFU+1BCA0U+1D173"],
    ["a\u034f\u00ad\u3164\ufeff\ufe0fb", "aU+034FU+00ADU+3164U+FEFFU+FE0Fb"],
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

describe("what a refusal quotes", () => {
  it("is one line, written as the library writes it", () => {
    const evil = "fine\n  next: hearth\r\t\u001b[2K\u202e\u3164\u00ad\u{e0041}\ud800";
    const written = String.raw`fine\n  next: hearth\r\t\x1b[2K\u202e\u3164\xad\U000e0041\ud800`;
    expect(oneLine(evil)).toBe(written);
    const error = new HearthError("BAD", evil, evil, {}, ["ours", evil]);
    expect(error.message).toBe(`${written}\nours\n${written}`);
    expect(error.hint).toBe(written);
    expect(oneLine("Grüße, 你好\u3000世界 🙂\u00a0!")).toBe("Grüße, 你好\u3000世界 🙂\u00a0!");
  });
});
