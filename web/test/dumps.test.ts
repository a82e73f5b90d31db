import { describe, expect, it } from "vitest";

import { dumpValues } from "../src/core/dump";
import type { Value, ValueMap } from "../src/core/values";
import { readText } from "../src/core/yaml";
import { vectors } from "./vectors";

type Told = null | boolean | string | { whole: string } | { map: [string, Told][] } | Told[];

function untold(value: Told): Value {
  if (value === null || typeof value !== "object") return value;
  if (Array.isArray(value)) return value.map(untold);
  return "whole" in value ? BigInt(value.whole) : new Map(value.map.map(([key, item]) => [key, untold(item)]));
}

describe("plain values as the text of a job file", () => {
  it.each(vectors<{ value: string; text: string }[]>("dumps"))("$text", async ({ value, text }) => {
    const given = untold(JSON.parse(value) as Told) as ValueMap;
    expect(dumpValues(given)).toBe(text);
    expect((await readText(text, "job.yaml")).value).toEqual(given);
  });

  it("a half of a surrogate pair is refused when it is read, and never another text", async () => {
    const text = dumpValues(new Map([["a", "x\ud800y"]]));
    await expect(readText(text, "job.yaml")).rejects.toMatchObject({ code: "BAD_SPEC" });
  });
});
