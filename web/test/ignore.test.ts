import { describe, expect, it } from "vitest";

import { fromHex } from "../src/core/bytes";
import { codeOf } from "../src/core/errors";
import { type Ignore, parseRules, workdirRules } from "../src/core/ignore";
import { vectors } from "./vectors";

interface Judged {
  left_out?: string;
  code?: string;
}
interface Vectors {
  paths: string[];
  rules: (Judged & { rules: string })[];
  random_paths: string[];
  random: (Judged & { rules: string })[];
  workdirs: (Judged & { files: Record<string, string> })[];
}

const said = vectors<Vectors>("ignore");

function judged(make: () => Ignore, places: readonly string[]): Judged {
  try {
    const ignore = make();
    const found = places.flatMap((place, at) => (ignore(place.slice(1), place.startsWith("d")) ? [at] : []));
    return { left_out: found.join(" ") };
  } catch (error) {
    return { code: codeOf(error) };
  }
}

describe("ignore", () => {
  it("leaves out what the library leaves out", () => {
    expect(said.rules.length).toBeGreaterThanOrEqual(150);
    for (const { rules, ...expected } of said.rules) {
      expect({ rules, ...judged(() => parseRules(rules), said.paths) }).toEqual({ rules, ...expected });
    }
    for (const { rules, ...expected } of said.random) {
      expect({ rules, ...judged(() => parseRules(rules), said.random_paths) }).toEqual({ rules, ...expected });
    }
    expect(new Set(said.random.map(({ code }) => code))).toEqual(new Set([undefined, "BAD_SPEC"]));
  });

  it("reads the rule files of a working directory", () => {
    for (const { files, ...expected } of said.workdirs) {
      const bytes = new Map(Object.entries(files).map(([name, text]) => [name, fromHex(text)]));
      expect({ files, ...judged(() => workdirRules(bytes), said.paths) }).toEqual({ files, ...expected });
    }
  });

  it("names the line of a malformed rule", () => {
    expect(() => parseRules("ok\r\n\r\n[z-a]")).toThrow(/line 3/);
  });

  it("does not hang at a rule that would make an expression go back and back", () => {
    const ignore = parseRules(`${"*a".repeat(120)}b`);
    const began = performance.now();
    expect(ignore("a".repeat(255), false)).toBe(false);
    expect(performance.now() - began).toBeLessThan(1000);
  });
});
