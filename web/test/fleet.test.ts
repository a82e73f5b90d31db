import { describe, expect, it } from "vitest";

import { asksOf, backed, fleetOf, gatesOf, takers, workersInWords } from "../src/core/fleet";
import { NATIVE } from "../src/core/units";
import { GATE } from "../src/generated/states";
import { type NodeFields, nodeOf, policyOf, termsOf } from "./lanes";
import { vectors } from "./vectors";

interface Case {
  readonly terms: readonly string[];
  readonly nodes: readonly NodeFields[];
  readonly now: number;
  readonly gates: Readonly<Record<string, number>>;
  readonly takers: number;
  readonly asks: readonly string[];
  readonly anyPrice: readonly string[];
  readonly backed: string | null;
  readonly words: string;
}

const DATA = vectors<{ deadAfter: number; minimumStake: string; cases: readonly Case[] }>("fleet");
const MARKET = { deadAfter: DATA.deadAfter, minimumStake: BigInt(DATA.minimumStake) };

describe("a fleet", () => {
  it("is counted as the library counts it", () => {
    DATA.cases.forEach((one, number) => {
      const [terms, policy] = [termsOf(one.terms), policyOf(one.terms[7] as string)];
      const fleet = fleetOf(one.nodes.map(nodeOf), one.now, MARKET);
      const gates = gatesOf(fleet, terms, policy);
      expect(Object.fromEntries(gates), `gates, case ${number}`).toEqual(one.gates);
      expect(takers(gates)).toBe(one.takers);
      expect(asksOf(fleet, terms, policy).map(String), `asks, case ${number}`).toEqual(one.asks);
      expect(asksOf(fleet, terms, policy, true).map(String), `any price, case ${number}`).toEqual(one.anyPrice);
      expect(backed(fleet, terms, policy, NATIVE) ?? null, `backed, case ${number}`).toBe(one.backed);
      expect(workersInWords(gates, terms)).toBe(one.words);
    });
  });

  it("meets the gates that only a fleet has words for", () => {
    const met = new Set(DATA.cases.flatMap((one) => Object.keys(one.gates).map(Number)));
    for (const gate of [GATE.FITS, GATE.NO_SLOT, GATE.QUARANTINED, GATE.NO_TIME, GATE.PRICE, GATE.PROBATION, GATE.SUBMITTER, GATE.GPU_COUNT]) {
      expect(met.has(gate), `gate ${gate}`).toBe(true);
    }
    expect(DATA.cases.some((one) => one.words.includes("accept.attesters"))).toBe(true);
    expect(DATA.cases.some((one) => one.backed !== null)).toBe(true);
  });
});
