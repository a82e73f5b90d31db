import { readFileSync } from "node:fs";

import { describe, expect, it } from "vitest";

import type { Hex } from "../src/core/bytes";
import { jobId, jobIdOfWords, lockKey, unitKey } from "../src/core/terms";
import { hasResult, isResult, isTerminal, leasesOf, nameOf, NEW_UNIT, type Terms } from "../src/core/types";
import { packTerms, unpackUnit } from "../src/core/words";
import { OUTCOME, STATE } from "../src/generated/states";
import { WORDS } from "../src/generated/words";
import { outcome, termsOf } from "./lanes";

interface Case {
  readonly chain_id: string;
  readonly registry: string;
  readonly terms: Readonly<Record<string, string>>;
  readonly words: readonly string[];
  readonly job_id: Hex;
}

const CASES = JSON.parse(
  readFileSync(new URL("../../tests/data/job_ids.json", import.meta.url), "utf8"),
) as readonly Case[];

const wordHex = (word: bigint | Hex): Hex =>
  typeof word === "bigint" ? `0x${word.toString(16).padStart(64, "0")}` : word;

// What the vectors write in snake case and in decimal, as terms.
function termsOfFields(fields: Readonly<Record<string, string>>): Terms {
  const named = Object.entries(fields).map(([name, text]): [string, unknown] => [
    name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()),
    text.startsWith("0x") ? text : Number(text),
  ]);
  const all = Object.fromEntries(named);
  const bigs = { salt: "salt", ceiling: "ceiling", keeperFee: "keeper_fee", judgeData: "judge_data", policy: "policy" };
  for (const [name, said] of Object.entries(bigs)) all[name] = BigInt(fields[said] as string);
  const inNeeds = WORDS.needs.lanes.filter((lane) => lane.kind !== "zero").map((lane) => lane.name);
  const needs = { ...Object.fromEntries(inNeeds.map((name) => [name, all[name]])), exact: all.exact === 1 };
  for (const name of inNeeds) delete all[name];
  return { ...all, needs } as unknown as Terms;
}

describe("terms", () => {
  it("are packed and named as twenty vectors say that share nothing with the library", () => {
    expect(CASES).toHaveLength(20);
    for (const one of CASES) {
      const terms = termsOfFields(one.terms);
      expect(packTerms(terms).map(wordHex)).toEqual(one.words);
      expect(termsOf(one.words)).toEqual(terms);
      expect(jobId(BigInt(one.chain_id), one.registry, terms)).toBe(one.job_id);
      const registry = `0x${one.registry.slice(2).toUpperCase()}`;
      expect(jobIdOfWords(BigInt(one.chain_id), registry, packTerms(terms))).toBe(one.job_id);
    }
  });

  it("count their leases", () => {
    expect(leasesOf({ units: 7, chunk: 2, replicas: 3 })).toBe(9);
    expect(outcome(() => leasesOf({ units: 7, chunk: 0, replicas: 3 }))).toEqual({ code: "DIVIDE_BY_ZERO" });
  });

  it("give the keys that the contracts store under", () => {
    const job = (CASES[0] as Case).job_id;
    expect(unitKey(job, 0, 1)).toBe(job);
    // keccak256 of 64 zero bytes.
    const zeros = "0xad3228b676f7d3cd4284a5443f17f1962b36e491b30a40b2405849e597ba5fb5";
    expect(unitKey(`0x${"0".repeat(64)}`, 0, 2)).toBe(zeros);
    expect(unitKey(job, 1, 2)).not.toBe(unitKey(job, 0, 2));
    expect(lockKey(`0x${"aB".repeat(20)}`)).toBe(`0x${"0".repeat(24)}${"ab".repeat(20)}`);
  });

  it("refuse a registry, a job and a chain that are none", () => {
    const words = packTerms(termsOfFields((CASES[0] as Case).terms));
    const registry = (CASES[0] as Case).registry;
    expect(outcome(() => jobIdOfWords(1n, "0x12", words))).toEqual({ code: "BAD_WORD" });
    expect(outcome(() => jobIdOfWords(-1n, registry, words))).toEqual({ code: "BAD_WORD" });
    expect(outcome(() => jobIdOfWords(1n << 256n, registry, words))).toEqual({ code: "BAD_WORD" });
    expect(outcome(() => unitKey("0x12", 0, 2))).toEqual({ code: "BAD_WORD" });
    expect(outcome(() => lockKey("0x12"))).toEqual({ code: "BAD_WORD" });
  });
});

describe("states", () => {
  it("begin with a word of zero", () => {
    expect(unpackUnit(0n)).toEqual(NEW_UNIT);
  });

  it("say what they mean", () => {
    const names = (said: (state: never) => boolean, all: Readonly<Record<string, number>>): readonly string[] =>
      Object.keys(all).filter((name) => said(all[name] as never));
    expect(names(isTerminal, STATE)).toEqual(["SETTLED", "REFUNDED", "CANCELLED", "EXPIRED"]);
    expect(names(hasResult, STATE)).toEqual(["SUBMITTED", "DISPUTED", "SETTLED"]);
    expect(names(isResult, OUTCOME)).toEqual(["OK", "EXIT", "TRAP", "OUT_OF_MEMORY", "TIMEOUT"]);
    expect(nameOf(OUTCOME, OUTCOME.OUT_OF_MEMORY)).toBe("out_of_memory");
    expect(nameOf(OUTCOME, 99)).toBe("");
  });
});
