import { describe, expect, it } from "vitest";

import type { Overview } from "../src/chain/lens";
import type { Hex } from "../src/core/bytes";
import { networkOf } from "../src/core/network";
import { fingerprintOf } from "../src/core/posting";
import { jobIdOfWords } from "../src/core/terms";
import { packTerms, unpackPolicy } from "../src/core/words";
import { grace } from "../src/core/money";
import { entryOf, fateOf, Journal, type Kept, type Shelf } from "../src/wallet/journal";
import { termsOf } from "./lanes";
import { vectors } from "./vectors";

interface Case {
  readonly terms: readonly string[];
  readonly parents: readonly Hex[];
}

const DATA = vectors<{ networks: Record<string, unknown>; cases: readonly Case[] }>("calls");
const NETWORK = networkOf(DATA.networks["coin"]);
const [FIRST, SECOND] = DATA.cases as readonly [Case, Case];
const SPEC = "bafkreispec";

class Memory implements Shelf {
  readonly held = new Map<string, unknown>();
  broken = false;

  async all(): Promise<readonly unknown[]> {
    if (this.broken) throw new Error("the disk is full");
    // What a database gives is a copy.
    return structuredClone([...this.held.values()]);
  }

  async put(record: Kept): Promise<void> {
    if (this.broken) throw new Error("the disk is full");
    this.held.set(record.job, structuredClone(record));
  }

  async drop(job: Hex): Promise<void> {
    this.held.delete(job);
  }
}

const given = (one: Case, fingerprint: Hex = "0x01", time = 100) => ({
  fingerprint,
  name: "sum",
  spec: SPEC,
  parents: one.parents,
  block: { number: time, hash: `0x${"a".repeat(64)}` as Hex, time },
});

describe("the journal", () => {
  it("gives back the very terms, under the job's id", async () => {
    for (const one of DATA.cases) {
      const shelf = new Memory();
      const journal = new Journal(shelf, NETWORK);
      const { kept } = await journal.write(given(one), termsOf(one.terms));
      const words = packTerms(termsOf(one.terms));
      expect(kept.job).toBe(jobIdOfWords(NETWORK.jobChainId, NETWORK.contracts.JobRegistry, words));
      const [found] = await new Journal(shelf, NETWORK).unseen();
      expect(packTerms(found?.terms ?? termsOf(SECOND.terms))).toEqual(words);
      expect(found?.kept.parents).toEqual(one.parents);
    }
  });

  it("finds what has no end yet, newest first, by its fingerprint", async () => {
    const journal = new Journal(new Memory(), NETWORK);
    const [first] = [await journal.write(given(FIRST, "0x01", 5), termsOf(FIRST.terms))];
    const second = await journal.write(given(SECOND, "0x02", 9), termsOf(SECOND.terms));
    expect((await journal.unseen()).map(({ kept }) => kept.job)).toEqual([second.kept.job, first.kept.job]);
    expect((await journal.unseen("0x01")).map(({ kept }) => kept.job)).toEqual([first.kept.job]);
    await journal.sent(first, `0x${"d".repeat(64)}`);
    expect((await journal.unseen("0x01"))[0]?.kept.hash).toBe(`0x${"d".repeat(64)}`);
    await journal.see(first.kept.job);
    expect(await journal.unseen("0x01")).toEqual([]);
    await journal.forget(second.kept.job);
    expect(await journal.unseen()).toEqual([]);
  });

  it("says whether it holds the job of a file, of any account, until its end is seen", async () => {
    const journal = new Journal(new Memory(), NETWORK);
    const terms = termsOf(FIRST.terms);
    const { kept } = await journal.write(given(FIRST, await fingerprintOf(terms, "1h")), terms);
    const mine = { ...terms, submitter: `0x${"12".repeat(20)}` as Hex, salt: 5n, deadline: terms.deadline + 9 };
    expect(await journal.holds(mine, "1h")).toBe(true);
    expect(await journal.holds(mine, "2h")).toBe(false);
    expect(await journal.holds({ ...mine, ceiling: mine.ceiling + 1n }, "1h")).toBe(false);
    await journal.see(kept.job);
    expect(await journal.holds(mine, "1h")).toBe(false);
  });

  it("is another one for another market", async () => {
    const shelf = new Memory();
    await new Journal(shelf, NETWORK).write(given(FIRST), termsOf(FIRST.terms));
    expect(await new Journal(shelf, { ...NETWORK, jobChainId: 1n }).unseen()).toEqual([]);
  });

  it("that cannot be written or read is no journal", async () => {
    const shelf = new Memory();
    shelf.broken = true;
    const journal = new Journal(shelf, NETWORK);
    await expect(journal.write(given(FIRST), termsOf(FIRST.terms))).rejects.toMatchObject({ code: "JOURNAL_DOWN" });
    await expect(journal.unseen()).rejects.toMatchObject({ code: "JOURNAL_DOWN" });
    await expect(journal.unseen()).rejects.toThrow("nothing is signed");
  });

  it("believes no record that was altered", async () => {
    const { kept } = await new Journal(new Memory(), NETWORK).write(given(FIRST), termsOf(FIRST.terms));
    expect(entryOf(kept, NETWORK)?.kept.job).toBe(kept.job);
    const other = (changes: Record<string, unknown>) => entryOf({ ...kept, ...changes }, NETWORK);
    const terms = [...kept.terms];
    terms[3] = `0x${(BigInt(terms[3] as Hex) + 1n).toString(16).padStart(64, "0")}`;
    expect(other({ terms })).toBeUndefined();
    expect(other({ terms: terms.slice(1) })).toBeUndefined();
    expect(other({ job: `0x${"0".repeat(64)}` })).toBeUndefined();
    expect(other({ account: `0x${"0".repeat(40)}` })).toBeUndefined();
    expect(other({ parents: [`0x${"0".repeat(64)}`] })).toBeUndefined();
    expect(other({ schema: "hearth.web.posted/2" })).toBeUndefined();
    expect(other({ hash: "<b>" })).toBeUndefined();
    for (const raw of [null, 7, {}, { ...kept, block: null }, { ...kept, terms: "x" }]) expect(entryOf(raw, NETWORK)).toBeUndefined();
  });
});

describe("journalled terms", () => {
  const terms = termsOf(FIRST.terms);
  const policy = unpackPolicy(terms.policy);
  const lease = terms.maxSeconds * terms.chunk + grace(terms, policy);
  const early = terms.deadline - lease;
  const market = (changes: Partial<Overview>): Overview =>
    ({ policy: terms.policy, previousPolicy: 0n, previousUntil: 0, time: early, ...changes }) as Overview;

  it.each<[string, bigint, Partial<Overview>, string]>([
    ["are posted once the chain knows them", 1n, { policy: 1n, time: 2 ** 40 }, "posted"],
    ["are open until then", 0n, {}, "open"],
    ["are open under the parameters before", 0n, { policy: 1n, previousPolicy: terms.policy, previousUntil: early + 1 }, "open"],
    ["are over once those ended", 0n, { policy: 1n, previousPolicy: terms.policy, previousUntil: early }, "over"],
    ["are over under other parameters", 0n, { policy: 1n }, "over"],
    ["are over once no attempt fits", 0n, { time: early + 1 }, "over"],
  ])("%s", (_, word, changes, is) => {
    expect(fateOf(terms, word, market(changes)).is).toBe(is);
  });
});
