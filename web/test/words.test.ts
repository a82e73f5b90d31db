import { describe, expect, it } from "vitest";

import type { Hex } from "../src/core/bytes";
import { codeOf } from "../src/core/errors";
import type { Layout, Terms } from "../src/core/types";
import * as words from "../src/core/words";
import { STATE } from "../src/generated/states";
import { WORDS } from "../src/generated/words";
import { type Fields, lanes, outcome, policyValues, termsOf, termsValues } from "./lanes";
import { vectors } from "./vectors";

interface Case {
  readonly layout: keyof typeof WORDS;
  readonly lane: string;
  readonly value: string;
  readonly type: keyof typeof TYPED;
  readonly word: string;
  readonly words: readonly string[];
  readonly again?: string;
  readonly out?: Fields;
  readonly code?: string;
}

interface Vectors {
  readonly unpack: readonly Case[];
  readonly pack: readonly Case[];
  readonly typed: readonly Case[];
  readonly terms: readonly Case[];
  readonly headers: readonly { readonly word: string; readonly out: boolean }[];
}

interface Typed {
  readonly layout: Layout;
  readonly unpack: (word: bigint) => unknown;
  readonly pack?: (value: never) => bigint;
}

const TYPED = {
  needs: { layout: WORDS.needs, unpack: words.unpackNeeds, pack: words.packNeeds },
  offer: { layout: WORDS.offer, unpack: words.unpackOffer, pack: words.packOffer },
  node_state: { layout: WORDS.hot, unpack: words.unpackNodeState, pack: words.packNodeState },
  unit: { layout: WORDS.unit, unpack: words.unpackUnit, pack: words.packUnit },
  header: { layout: WORDS.header, unpack: words.unpackHeader, pack: words.packHeader },
  best: { layout: WORDS.best, unpack: words.unpackBest, pack: words.packBest },
  accused: { layout: WORDS.accused, unpack: words.unpackAccused, pack: words.packAccused },
  kept: { layout: WORDS.kept, unpack: words.unpackKept, pack: words.packKept },
  posted: { layout: WORDS.posted, unpack: words.unpackPosted },
  policy: { layout: WORDS.policy, unpack: words.unpackPolicy, pack: words.packPolicy },
} satisfies Record<string, Typed>;

const DATA = vectors<Vectors>("words");

const integer = (text: string): bigint => (text.startsWith("-") ? -BigInt(text.slice(1)) : BigInt(text));

function zeros(layout: Layout): Record<string, unknown> {
  const named = layout.lanes.filter((one) => one.kind !== "zero").map((one) => [one.name, 0]);
  return lanes(layout, Object.fromEntries(named));
}

function expected(one: Case, value: (fields: Fields) => unknown): unknown {
  return one.code === undefined ? { out: value(one.out as Fields) } : { code: one.code };
}

describe("words", () => {
  it("unpacks each layout, and refuses what no lane has", () => {
    for (const one of DATA.unpack) {
      const layout: Layout = WORDS[one.layout];
      const found = outcome(() => words.unpack(layout, integer(one.word)));
      expect(found, `${one.layout} ${one.word}`).toEqual(expected(one, (fields) => lanes(layout, fields)));
      if (one.code === undefined) expect(words.pack(layout, (found as { out: never }).out)).toBe(integer(one.word));
    }
  });

  it("packs what fits a lane, and refuses one more", () => {
    for (const one of DATA.pack) {
      const layout: Layout = WORDS[one.layout];
      const kind = layout.lanes.find((lane) => lane.name === one.lane)?.kind;
      const value = integer(one.value);
      // Yes and no, and addresses, have no value beyond their lanes in the page.
      if (kind === "bool" && one.code !== undefined) continue;
      const given = kind === "big" ? value : kind === "address" ? `0x${value.toString(16)}` : Number(value);
      const values = { ...zeros(layout), [one.lane]: kind === "bool" ? value === 1n : given } as never;
      const wanted = one.code === undefined ? { out: integer(one.word) } : { code: one.code };
      expect(outcome(() => words.pack(layout, values)), `${one.layout}.${one.lane} ${value}`).toEqual(wanted);
    }
  });

  it("unpacks and packs whole values", () => {
    for (const one of DATA.typed) {
      const { layout, unpack, pack }: Typed = TYPED[one.type];
      const value = (fields: Fields) => (one.type === "policy" ? policyValues(fields) : lanes(layout, fields));
      const found = outcome(() => unpack(integer(one.word)));
      expect(found, `${one.type} ${one.word}`).toEqual(expected(one, value));
      if (one.again !== undefined && pack !== undefined) {
        expect(pack((found as { out: never }).out), `${one.type} ${one.word}`).toBe(integer(one.again));
      }
    }
  });

  it("unpacks and packs terms", () => {
    for (const one of DATA.terms) {
      const found = outcome(() => termsOf(one.words));
      expect(found, one.words[0]).toEqual(expected(one, termsValues));
      if (one.code !== undefined) continue;
      const packed = words.packTerms((found as { out: Terms }).out);
      expect(packed.map((word) => (typeof word === "bigint" ? `0x${word.toString(16)}` : word))).toEqual(one.words);
    }
  });

  it("tells an array's header", () => {
    for (const one of DATA.headers) expect(words.isHeader(BigInt(one.word)), one.word).toBe(one.out);
  });

  it.each([
    ["a number where money is", { ask: 5 }],
    ["a fraction", { slots: 1.5 }],
    ["more than a number holds", { slots: 2 ** 60 }],
    ["nothing", { slots: undefined }],
    ["a number for yes", { pending: 1 }],
  ])("refuses %s", (_, change) => {
    const offer = { ...words.unpackOffer(0n), ...change } as never;
    expect(outcome(() => words.packOffer(offer))).toEqual({ code: "BAD_WORD" });
  });

  it("refuses what is no address, no hash and no word of the terms", () => {
    const terms = termsOf((DATA.terms[0] as Case).words);
    const wrong: readonly Partial<Terms>[] = [
      { submitter: "0x12" },
      { judge: `0x${"g".repeat(40)}` },
      { judge: `${terms.judge}\n` as Hex },
      { spec: "0x" },
      { parentsHash: `0x${"0".repeat(66)}` },
      { judgeData: 1n << 256n },
      { policy: -1n },
    ];
    for (const change of wrong) {
      const found = outcome(() => words.packTerms({ ...terms, ...change }));
      expect(found, Object.keys(change)[0]).toEqual({ code: "BAD_WORD" });
    }
    const packed = words.packTerms(terms);
    for (const place of [5, 7]) {
      const beyond = packed.map((word, at) => (at === place ? 1n << 256n : word)) as never;
      expect(outcome(() => words.unpackTerms(beyond))).toEqual({ code: "BAD_WORD" });
    }
  });

  it("takes addresses in either case, and writes them in lower case", () => {
    const best = words.unpackBest(words.packBest({ payee: `0x${"aB".repeat(20)}`, node: 1, key: 2, extensions: 3 }));
    expect(best.payee).toBe(`0x${"ab".repeat(20)}`);
  });

  it("names the refusal", () => {
    try {
      words.unpackUnit(BigInt(STATE.EXPIRED + 1));
      expect.unreachable();
    } catch (error) {
      expect(codeOf(error)).toBe("BAD_WORD");
      expect(String(error)).toContain("11 is none of NONE, BLOCKED");
    }
  });
});
