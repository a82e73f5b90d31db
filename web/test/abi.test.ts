import type { Abi, AbiEvent, AbiParameter } from "viem";
import { decodeErrorResult, decodeFunctionResult, encodeFunctionData, toEventSelector, toFunctionSelector } from "viem/utils";
import { describe, expect, it } from "vitest";

import type { ViewAbi } from "../src/chain/view";
import { EVENTS } from "../src/generated/events";
import { REFUSED } from "../src/generated/reasons";
import { vectors } from "./vectors";

type Said = string | boolean | Said[];

interface Case {
  readonly name: string;
  readonly args: readonly Said[];
  readonly data: string;
  readonly answer: readonly Said[];
  readonly answer_data: `0x${string}`;
}

const { functions, events, refusal } = vectors<{
  readonly functions: Record<string, readonly Case[]>;
  readonly events: readonly AbiEvent[];
  readonly refusal: Abi[number];
}>("abi");
const files = import.meta.glob<Record<string, Abi>>("../src/generated/{reads,calls}/*.ts", { eager: true });
const tables: Readonly<Record<string, Abi>> = Object.assign({}, ...Object.values(files)) as Record<string, Abi>;

// A vector's value as viem takes it: tuples by the names of their components, whole numbers as viem has them.
function value(said: Said, parameter: AbiParameter): unknown {
  const array = /^(.*)\[\d*\]$/.exec(parameter.type);
  if (array !== null) return (said as Said[]).map((one) => value(one, { ...parameter, type: array[1] as string }));
  if ("components" in parameter) {
    const parts = parameter.components as readonly AbiParameter[];
    return Object.fromEntries(parts.map((part, at) => [part.name, value((said as Said[])[at] as Said, part)]));
  }
  if (parameter.type === "uint8") return Number(said);
  return parameter.type.startsWith("uint") ? BigInt(said as string) : said;
}

// What viem decoded, with addresses in lower case as everywhere in Hearth.
function plain(decoded: unknown): unknown {
  if (Array.isArray(decoded)) return decoded.map(plain);
  if (typeof decoded === "string" && decoded.startsWith("0x")) return decoded.toLowerCase();
  if (typeof decoded !== "object" || decoded === null) return decoded;
  return Object.fromEntries(Object.entries(decoded).map(([name, one]) => [name, plain(one)]));
}

describe("abi", () => {
  it.each(Object.entries(functions).flatMap(([constant, all]) => all.map((one, at) => [constant, one.name, at % 2, one])))(
    "%s %s encodes and decodes as the library (%i)",
    (constant, name, _, one) => {
      const abi = tables[constant as string] as Abi;
      const { args, data, answer, answer_data } = one as Case;
      const entry = abi.find((each) => "name" in each && each.name === name);
      if (entry?.type !== "function") throw new Error(`${String(constant)} has no ${String(name)}`);
      const given = entry.inputs.map((parameter, at) => value(args[at] as Said, parameter));
      expect(encodeFunctionData({ abi, functionName: name as string, args: given })).toBe(data);
      const told = entry.outputs.map((parameter, at) => value(answer[at] as Said, parameter));
      if (told.length === 0) return;
      const decoded = decodeFunctionResult({ abi, functionName: name as string, data: answer_data });
      expect(plain(decoded)).toEqual(plain(told.length === 1 ? told[0] : told));
    },
  );

  it("has every function in a vector, and each contract in a constant", () => {
    for (const [constant, abi] of Object.entries(tables)) {
      const named = (functions[constant] ?? []).map((one) => one.name);
      expect(new Set(named)).toEqual(new Set(abi.map((one) => ("name" in one ? one.name : ""))));
    }
    expect(Object.keys(functions).sort()).toEqual(Object.keys(tables).sort());
  });

  it("has the events that the decoder knows, under the same topics", () => {
    const topics = events.map((event) => [event.name, toEventSelector(event)]).sort();
    expect(topics).toEqual(EVENTS.map((event) => [event.name, event.topic]).sort());
  });

  it("has each view under the selector of its signature", () => {
    const views = Object.values(tables).flat().filter((one): one is ViewAbi => "selector" in one);
    expect(views.length).toBeGreaterThan(20);
    for (const one of views) expect(one.selector).toBe(toFunctionSelector(one));
  });

  it("has the refusal under its selector", () => {
    const data = `${REFUSED}${(1037).toString(16).padStart(64, "0")}` as const;
    expect(decodeErrorResult({ abi: [refusal], data }).args).toEqual([1037n]);
  });
});
