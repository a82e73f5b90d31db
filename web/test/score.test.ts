import { describe, expect, it } from "vitest";

import type { Hex } from "../src/core/bytes";
import { key, lot, ranked, score, seed } from "../src/core/score";
import { unpackNeeds, unpackNodeState, unpackOffer } from "../src/core/words";
import { big, type Json, result, termsOf } from "./lanes";
import { vectors } from "./vectors";

interface Scored {
  readonly needs: string;
  readonly ceiling: Json;
  readonly rate: Json;
  readonly offer: string;
  readonly hot: string;
  readonly out?: number;
  readonly code?: string;
}

interface Keyed {
  readonly job: Hex;
  readonly index: number;
  readonly attempts: number;
  readonly node: number;
  readonly score: number;
  readonly seed: Hex;
  readonly lot: number;
  readonly key: number;
}

interface Ranked {
  readonly terms: readonly string[];
  readonly index: number;
  readonly score: number;
  readonly out: number;
}

interface Vectors {
  readonly scores: readonly Scored[];
  readonly keys: readonly Keyed[];
  readonly ranked: readonly Ranked[];
}

const DATA = vectors<Vectors>("score");

const scored = (one: Scored): Json =>
  result(() =>
    score(
      unpackNeeds(BigInt(one.needs)),
      big(one.ceiling),
      big(one.rate),
      unpackOffer(BigInt(one.offer)),
      unpackNodeState(BigInt(one.hot)),
    ),
  );

describe("scores", () => {
  it("are the library's", () => {
    DATA.scores.forEach((one, number) => {
      expect(scored(one), `case ${number}`).toEqual(one.code === undefined ? one.out : { code: one.code });
    });
  });

  it("are the worked example of the protocol", () => {
    expect(scored(DATA.scores[0] as Scored)).toBe(60_456_100);
  });

  it("are drawn by lot where they are equal", () => {
    DATA.keys.forEach((one, number) => {
      expect(seed(one.job, one.index, one.attempts), `seed ${number}`).toBe(one.seed);
      expect(lot(one.seed, one.node), `lot ${number}`).toBe(one.lot);
      expect(key(one.score, one.seed, one.node), `key ${number}`).toBe(one.key);
    });
  });

  it("count for the first replica only", () => {
    for (const one of DATA.ranked) expect(ranked(termsOf(one.terms), one.index, one.score)).toBe(one.out);
    expect(new Set(DATA.ranked.map((one) => one.out === 0)).size).toBe(2);
  });
});
