import { describe, expect, it } from "vitest";

import { type AttesterSet, digestOf, judgedWords, judgeDataOf } from "../src/core/attesters";
import { readSet } from "../src/core/attesters-file";
import type { Hex } from "../src/core/bytes";
import { HearthError } from "../src/core/errors";
import { networkOf } from "../src/core/network";
import { draftTerms } from "../src/core/posting";
import { resolve } from "../src/core/resolve";
import { loadSpec } from "../src/core/spec";
import { MAX_SET_BYTES } from "../src/generated/attesters";
import { ZERO_ADDRESS } from "../src/generated/bounds";
import { TERMS_FLAG } from "../src/generated/states";
import { policyOf, termsOf } from "./lanes";
import { vectors } from "./vectors";

interface File {
  readonly text: string;
  readonly keys?: readonly Hex[];
  readonly quorum?: number;
  readonly judgeData?: string;
  readonly code?: string;
  readonly field?: string;
}
interface Words {
  readonly terms: readonly string[];
  readonly asset: readonly [string, number];
  readonly keys: readonly Hex[];
  readonly quorum: number;
  readonly said: string;
}

const { name, files, words } = vectors<{ name: string; files: readonly File[]; words: readonly Words[] }>("attesters");

async function outcome(text: string): Promise<Omit<File, "text">> {
  try {
    const set = await readSet(new TextEncoder().encode(text), name);
    return { ...set, judgeData: digestOf(set) };
  } catch (error) {
    if (!(error instanceof HearthError)) throw error;
    return { code: error.code, field: String(error.details["field"]) };
  }
}

describe("a file of attesters", () => {
  it.each(files)("$text", async ({ text, ...wanted }) => {
    expect(await outcome(text)).toEqual(wanted);
  });

  it("is as long as the library takes it, and no longer", async () => {
    const [first] = files;
    const whole = (first?.text ?? "").padEnd(MAX_SET_BYTES, "#");
    expect((await outcome(whole)).code).toBeUndefined();
    expect((await outcome(`${whole}#`)).code).toBe("BAD_ATTESTERS");
  });
});

describe("a job's attesters in words", () => {
  it.each(words)("$quorum of $keys.length", ({ terms, asset: [symbol, decimals], keys, quorum, said }) => {
    const set = keys.length === 0 ? undefined : { keys, quorum };
    expect(judgedWords(termsOf(terms), policyOf(terms[7] as string), set, { symbol, decimals, address: null })).toBe(said);
  });
});

describe("the terms of an attested job", () => {
  const networks = vectors<{ networks: Record<string, unknown> }>("calls").networks;
  const network = networkOf(Object.values(networks)[0]);
  const policyWord = BigInt(words[0]?.terms[7] ?? 0);
  const file = `version: 1\nname: sum\nimage: "x@sha256:${"1".repeat(64)}"\nlimits: {runtime: 1m, deadline: 1h}\nprice: {max_rate: "1000/h"}\n`;
  const draft = async (more: string, set?: AttesterSet) => {
    const loaded = await loadSpec(file + more);
    const document = resolve(loaded.spec, () => undefined);
    return draftTerms(loaded, document, `0x${"a".repeat(64)}`, `0x${"5a".repeat(20)}`, network, { policyWord, now: 1_760_000_000 }, set);
  };
  const set: AttesterSet = { keys: [`0x${"a1".repeat(20)}`, `0x${"b2".repeat(20)}`], quorum: 2 };
  const named = "verify: {attesters: keys.yaml}\n";

  it("name the market's judge, the set, and that nothing is paid unproven", async () => {
    const { judge, judgeData, flags, challengeWindow } = await draft(named, set);
    expect([judge, judgeData]).toEqual([network.contracts.Attesters, judgeDataOf(set)]);
    expect(flags & TERMS_FLAG.PROVEN).toBe(TERMS_FLAG.PROVEN);
    expect(challengeWindow).toBeGreaterThan(0);
  });

  it("are not made without the set, and say on which line it is named", async () => {
    const refused = await draft(named).catch((error: unknown) => error);
    expect(refused).toMatchObject({ code: "NO_ATTESTERS", details: { line: 6, field: "verify.attesters" } });
  });

  it("take no set that the job file does not name", async () => {
    const { judge, judgeData, flags } = await draft("", set);
    expect([judge, judgeData, flags & TERMS_FLAG.PROVEN]).toEqual([ZERO_ADDRESS, 0n, 0]);
  });
});
