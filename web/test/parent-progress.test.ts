import { describe, expect, it } from "vitest";

import type { Hex } from "../src/core/bytes";
import type { Condition } from "../src/core/parents";
import { storedUnit } from "../src/core/stored";
import { NEW_UNIT } from "../src/core/types";
import { viewOf } from "../src/core/view";
import { isJob, latestEnd, type ParentView, progressInWords, waitsFor } from "../src/core/parent-progress";
import { packUnit } from "../src/core/words";
import { STATE } from "../src/generated/states";
import { termsOf } from "./lanes";
import { vectors } from "./vectors";

interface Case {
  readonly terms: readonly string[];
  readonly now: number;
  readonly parents: readonly {
    readonly job: Hex;
    readonly condition: Condition;
    readonly word: string;
    readonly terms: readonly string[] | null;
    readonly text: string;
    readonly latest: number | null;
  }[];
  readonly waits: string;
}

const cases = vectors<readonly Case[]>("waits");

function parentsOf(one: Case): ParentView[] {
  return one.parents.map(({ job, condition, word, terms }) => ({
    parent: { job, condition },
    word: BigInt(word),
    terms: terms === null ? null : termsOf(terms),
  }));
}

const BLOCKED = storedUnit(packUnit({ ...NEW_UNIT, state: STATE.BLOCKED, started: 5 }), 0n, 0n);

describe("a job that waits", () => {
  it.each(cases.map((one, at) => [at, one] as const))("is told of as the library does (%i)", (_, one) => {
    const parents = parentsOf(one);
    expect(parents.map((parent) => progressInWords(parent, one.now))).toEqual(one.parents.map(({ text }) => text));
    const latest = parents.map(({ terms }) => (terms === null ? null : latestEnd(terms)));
    expect(latest).toEqual(one.parents.map((parent) => parent.latest));
    expect(parents.map(({ word }) => isJob(word))).toEqual(one.parents.map(({ terms }) => terms !== null));
    expect(waitsFor(viewOf(termsOf(one.terms), null, [BLOCKED], one.now), parents)).toBe(one.waits);
  });

  it("is told of in every way", () => {
    const said = cases.flatMap((one) => [one.waits, ...one.parents.map(({ text }) => text)]);
    const ways = [/^no attempt/, /^what it waited for has/, /was to end well, and/, /was to fail, and/, /^waits for/];
    const ends = [/never ends/, /^ended well/, /units done$/];
    const rest = [/^ended otherwise: (failed|given back): /, /^ended otherwise: [a-z]+$/, /units done so far/];
    for (const way of [...ways, ...ends, ...rest, /may submit until/, /may be settled from/, /^waiting for a machine, until/, /^waiting for other jobs/]) {
      expect(said.some((one) => way.test(one)), String(way)).toBe(true);
    }
  });

  it("says less of a parent whose post is too far back", () => {
    const parent = { job: `0x${"1".repeat(64)}`, condition: 3 } as const;
    const far = (word: bigint): string => progressInWords({ parent, word, terms: null }, 9);
    expect(far(packUnit({ ...NEW_UNIT, state: STATE.OPEN, started: 5 }))).toBe("waiting for a machine");
    expect(far(packUnit({ ...NEW_UNIT, state: STATE.SUBMITTED, started: 5, mark: 7 }))).toBe("result in");
  });
});
