import { describe, expect, it } from "vitest";

import { HearthError } from "../src/core/errors";
import { type Location, placeKey } from "../src/core/problems";
import { readText, type Value } from "../src/core/yaml";
import { vectors } from "./vectors";

interface Case {
  text: string;
  variables?: Record<string, string>;
  value?: string;
  lines?: string;
  code?: string;
  problems?: string;
  narrow?: boolean;
}
const { fixed, random } = vectors<{ fixed: Case[]; random: Case[] }>("yaml");

type Told = null | boolean | string | { whole: string } | { map: [string, Told][] } | Told[];

function told(value: Value): Told {
  if (typeof value === "bigint") return { whole: value.toString() };
  if (value instanceof Map) return { map: [...value].map(([key, item]): [string, Told] => [key, told(item)]) };
  if (Array.isArray(value)) return value.map((item: Value) => told(item));
  return value as null | boolean | string;
}

async function outcome({ text, variables }: Case) {
  try {
    const read = await readText(new TextEncoder().encode(text), "job.yaml", new Map(Object.entries(variables ?? {})));
    return { value: told(read.value), lines: read.source.lines };
  } catch (error) {
    if (!(error instanceof HearthError)) throw error;
    const problems = error.details["problems"] as { [key: string]: unknown }[];
    const rows = problems.map((one) => [one["line"], one["field"], one["message"], one["hint"], one["code"]]);
    return { code: error.code, problems: rows };
  }
}

function expectRead(found: Awaited<ReturnType<typeof outcome>>, wanted: Case): void {
  expect(found.value).toEqual(JSON.parse(wanted.value as string));
  const lines = JSON.parse(wanted.lines as string) as [Location, number][];
  expect(new Map(found.lines)).toEqual(new Map(lines.map(([where, line]) => [placeKey(where), line])));
}

describe("the text of a job file", () => {
  it.each(fixed)("$text", async (wanted) => {
    const found = await outcome(wanted);
    if (wanted.narrow) {
      expect(wanted.value).toBeDefined();
      expect(found.code).toBe("YAML_SUBSET");
    } else if (wanted.code === undefined) {
      expectRead(found, wanted);
    } else if (wanted.problems !== undefined) {
      expect(found.code).toBe(wanted.code);
      expect(found.problems).toEqual(JSON.parse(wanted.problems));
    } else {
      // No YAML for the library, nor for the page: of what it does not read it need not say whether it is YAML.
      expect([wanted.code, "YAML_SUBSET"]).toContain(found.code);
    }
  });

  it("is never read differently, whatever stands in it", async () => {
    let read = 0;
    for (const wanted of random) {
      const found = await outcome(wanted);
      if (found.code !== undefined) continue;
      expect(wanted.code, wanted.text).toBeUndefined();
      expectRead(found, wanted);
      read += 1;
    }
    // What the page leaves to the library is the exception.
    const readable = random.filter((one) => one.code === undefined).length;
    expect(read).toBeGreaterThan(0.8 * readable);
    expect(readable).toBeGreaterThan(100);
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
