import { describe, expect, it } from "vitest";

import { codeOf } from "../src/core/errors";
import type { Value } from "../src/core/values";
import { readText } from "../src/core/yaml";
import { vectors } from "./vectors";

interface Case {
  text: string;
  variables?: Record<string, string>;
  value?: Told;
  code?: string;
  narrow?: boolean;
}
const { fixed = [], random } = vectors<{ fixed?: Case[]; random: Case[] }>("yaml");

type Told = null | boolean | string | { whole: string } | { map: [string, Told][] } | Told[];

function told(value: Value): Told {
  if (typeof value === "bigint") return { whole: value.toString() };
  if (value instanceof Map) return { map: [...value].map(([key, item]): [string, Told] => [key, told(item)]) };
  if (Array.isArray(value)) return value.map((item: Value) => told(item));
  return value as null | boolean | string;
}

async function outcome({ text, variables }: Case): Promise<{ value?: Told; code?: string }> {
  try {
    const read = await readText(new TextEncoder().encode(text), "job.yaml", new Map(Object.entries(variables ?? {})));
    return { value: told(read.value) };
  } catch (error) {
    return { code: codeOf(error) };
  }
}

describe("the text of a job file", () => {
  it.each(fixed)("$text", async (wanted) => {
    const { value, code } = await outcome(wanted);
    if (wanted.narrow) expect([code, wanted.value]).toEqual(["YAML_SUBSET", expect.anything()]);
    else if (wanted.code === undefined) expect(value).toEqual(wanted.value);
    // Why it is refused is the reader's own, but for variables.
    else if (wanted.variables !== undefined) expect(code).toBe(wanted.code);
    else expect(code).toMatch(/^(BAD_SPEC|DUPLICATE_KEY|UNQUOTED|MISSING_VAR|YAML_SUBSET)$/);
  });

  it("is never read differently, whatever stands in it", async () => {
    let read = 0;
    for (const wanted of random) {
      const { value, code } = await outcome(wanted);
      if (code !== undefined) continue;
      expect(value, wanted.text).toEqual(wanted.value);
      read += 1;
    }
    // What the page leaves to the library is the exception.
    const readable = random.filter((one) => one.code === undefined).length;
    expect(read).toBeGreaterThan(0.7 * readable);
    expect(readable).toBeGreaterThan(random.length / 5);
  });

  it("knows the line of each of its parts", async () => {
    const { source } = await readText("# c\nimage: a\nenv:\n  A: b\n\n  C: |\n    d\ninputs:\n- src: a\n  dst: b\n", "job.yaml");
    const lines = [["image"], ["env"], ["env", "A"], ["env", "C"], ["inputs", 0, "dst"], ["name"]].map((where) => source.lineOf(where));
    expect(lines).toEqual([2, 3, 4, 6, 10, 2]);
    const json = await readText('{"image": "a",\r\n"env":\n {"A": "b"}}', "job.json");
    expect(json.source.lineOf(["env", "A"])).toBe(3);
    await expect(readText("a: b\nc: 1.5\n", "job.yaml")).rejects.toMatchObject({ code: "UNQUOTED", details: { field: "c", line: 2 } });
    await expect(readText("a: b\nb: c\na: d\n", "job.yaml")).rejects.toMatchObject({ code: "DUPLICATE_KEY", details: { field: "a", line: 3 } });
    await expect(readText("a: b\nb: @c\n", "job.yaml")).rejects.toMatchObject({ code: "BAD_SPEC", details: { line: 2 } });
  });

  it("makes a reader neither hang nor overflow", { timeout: 60_000 }, async () => {
    const deep = ["[", "{a: ", "- ", "? ", "[[a: "].map((one) => `a: ${one.repeat(20_000)}`);
    const many = [`a: ${"&x ".repeat(20_000)}`, `a: [${"} ".repeat(20_000)}`, `a: '${"''".repeat(100_000)}x`];
    for (const text of [...deep, ...many]) expect((await outcome({ text })).code).toBe("BAD_SPEC");
  });

  it("may have 1 MiB and no more, in bytes", async () => {
    const text = `a: ${"\u00e9".repeat((1 << 19) - 2)}\n`;
    expect((await outcome({ text })).code).toBeUndefined();
    expect((await outcome({ text: `${text}\n` })).code).toBe("BAD_SPEC");
  });

  it("holds at most 100,000 values", { timeout: 60_000 }, async () => {
    const list = (count: number) => ({ text: `a: [${"1,".repeat(count)}]` });
    expect((await outcome(list(99_998))).code).toBeUndefined();
    expect((await outcome(list(99_999))).code).toBe("BAD_SPEC");
  });

  it("is UTF-8 as bytes, and well formed as text", async () => {
    await expect(readText(Uint8Array.of(0x61, 0x3a, 0x20, 0xff), "x")).rejects.toMatchObject({ code: "BAD_SPEC" });
    await expect(readText("a: \ud800", "x")).rejects.toMatchObject({ code: "BAD_SPEC" });
    expect((await readText("\ufeffa: \u00e9", "x")).value).toEqual(new Map([["a", "\u00e9"]]));
  });
});
