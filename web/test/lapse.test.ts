import { describe, expect, it } from "vitest";

import * as lapse from "../src/core/lapse";
import { type Best, deadlineAt, type Policy, submittedAt, type Terms, type Unit, windowEnd } from "../src/core/types";
import { packUnit, unpackBest } from "../src/core/words";
import { big, type Json, policyOf, result, termsOf, unitOf } from "./lanes";
import { vectors } from "./vectors";

interface Case {
  readonly terms: readonly string[];
  readonly unit: string;
  readonly best: string;
  readonly now: number;
  readonly rate: number | string;
  readonly waited: number;
  readonly beat: number;
  readonly deadAfter: number;
  readonly out: readonly Json[];
}

interface Given extends Pick<Case, "now" | "waited" | "beat" | "deadAfter"> {
  readonly terms: Terms;
  readonly policy: Policy;
  readonly unit: Unit;
  readonly best: Best;
  readonly rate: bigint;
}

const DATA = vectors<{ readonly functions: readonly string[]; readonly cases: readonly Case[] }>("lapse");

const FUNCTIONS: Readonly<Record<string, (c: Given) => unknown>> = {
  windowEnd: (c) => windowEnd(c.unit),
  deadlineAt: (c) => deadlineAt(c.unit),
  submittedAt: (c) => submittedAt(c.unit),
  hasLiveProposal: (c) => lapse.hasLiveProposal(c.unit, c.policy, c.now),
  withLapse: (c) => `0x${packUnit(lapse.withLapse(c.unit, c.best, c.policy, c.now)).toString(16)}`,
  claimsFrom: (c) => lapse.claimsFrom(c.terms, c.policy, c.unit),
  claimable: (c) => lapse.claimable(c.terms, c.policy, c.unit, c.now),
  claimCeiling: (c) => lapse.claimCeiling(c.terms, c.policy, c.waited),
  claimWait: (c) => lapse.claimWait(c.terms, c.policy, c.rate < c.terms.ceiling ? c.rate : c.terms.ceiling),
  claimableFrom: (c) => lapse.claimableFrom(c.terms, c.policy, c.unit, c.rate),
  proposable: (c) => lapse.proposable(c.terms, c.unit, c.now),
  hasTime: (c) => lapse.hasTime(c.terms, c.policy, c.now),
  expirableFrom: (c) => lapse.expirableFrom(c.terms, c.policy),
  challengeEnd: (c) => lapse.challengeEnd(c.terms, c.unit),
  freshUntil: (c) => lapse.freshUntil(c.policy, c.unit),
  settleableFrom: (c) => lapse.settleableFrom(c.terms, c.policy, c.unit),
  declinableUntil: (c) => lapse.declinableUntil(c.terms, c.policy, c.unit),
  reclaimableFrom: (c) => lapse.reclaimableFrom(c.unit, c.beat, c.deadAfter),
};

const given = (one: Case): Given => ({
  ...one,
  terms: termsOf(one.terms),
  policy: policyOf(one.terms[7] as string),
  unit: unitOf(one.unit),
  best: unpackBest(BigInt(one.best)),
  rate: big(one.rate),
});

describe("the life of a unit", () => {
  it("has vectors for each function", () => {
    expect(DATA.functions).toEqual(Object.keys(FUNCTIONS));
    expect(DATA.cases.length).toBeGreaterThan(40);
  });

  it.each(DATA.functions.map((name, at) => [name, at] as const))("%s as the library", (name, at) => {
    const call = FUNCTIONS[name] as (c: Given) => unknown;
    const outs = DATA.cases.map((one) => one.out[at]);
    DATA.cases.forEach((one, number) => {
      expect(result(() => call(given(one))), `${name}, case ${number}`).toEqual(outs[number]);
    });
    // A function of which all cases say the same would be tested by none of them.
    expect(new Set(outs.map((out) => JSON.stringify(out))).size, name).toBeGreaterThan(1);
  });

  it("is the worked example of the protocol for open claims", () => {
    const { terms, policy } = given(DATA.cases[0] as Case);
    const risen = [0, 7, 8, 30].map((waited) => lapse.claimCeiling(terms, policy, waited));
    expect(risen).toEqual([250_000n, 425_000n, 450_000n, 1_000_000n]);
    expect([250_000n, 425_001n, 1_000_000n].map((rate) => lapse.claimWait(terms, policy, rate))).toEqual([0, 8, 30]);
  });
});
