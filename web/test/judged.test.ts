import { describe, expect, it } from "vitest";

import type { Hex } from "../src/core/bytes";
import { confirmationIn, confirmationInWords, setDigest } from "../src/core/judged";
import { packTerms } from "../src/core/words";
import { termsOf } from "./lanes";
import { vectors } from "./vectors";

interface Case {
  readonly keys: readonly Hex[];
  readonly quorum: number;
  readonly judgeData: string;
  readonly terms: readonly string[];
  readonly index: number;
  readonly signatures: number;
  readonly data: Hex;
}

const CASES = vectors<readonly Case[]>("judged");

describe("a confirmation", () => {
  it("is of the set that the terms commit to, as the library commits to it", () => {
    for (const { keys, quorum, judgeData } of CASES) expect(setDigest(keys, BigInt(quorum))).toBe(BigInt(judgeData));
  });

  it("says how many signed, of how many", () => {
    for (const { keys, quorum, terms, index, signatures, data } of CASES) {
      const found = confirmationIn(data, packTerms(termsOf(terms)), index);
      expect(found).toEqual({ keys, quorum, signatures });
    }
    expect(confirmationInWords({ signatures: 2, keys: ["0x1", "0x2", "0x3"], quorum: 2 })).toBe(
      "2 signatures, of 3 attesters of whom 2 must sign",
    );
  });

  it("of another unit, of other terms or of another set says nothing", () => {
    const [one, other] = CASES as [Case, Case];
    const packed = packTerms(termsOf(one.terms));
    expect(confirmationIn(one.data, packed, one.index + 1)).toBeNull();
    expect(confirmationIn(one.data, packTerms(termsOf(other.terms)), one.index)).toBeNull();
    const key = (one.keys[0] as Hex).slice(2);
    expect(confirmationIn(one.data.replace(key, "0d".repeat(20)) as Hex, packed, one.index)).toBeNull();
  });

  it("that is none says nothing", () => {
    const [one] = CASES as [Case];
    const packed = packTerms(termsOf(one.terms));
    for (const data of ["0x", "0x12345678", `${one.data}00`, one.data.slice(0, -2)]) expect(confirmationIn(data as Hex, packed, one.index)).toBeNull();
  });
});
