import { describe, expect, it } from "vitest";

import * as money from "../src/core/money";
import * as pay from "../src/core/pay";
import type { Header, Policy, Terms, Unit } from "../src/core/types";
import { unpackHeader, unpackKept } from "../src/core/words";
import { big, type Json, policyOf, result, termsOf, unitOf } from "./lanes";
import { vectors } from "./vectors";

interface Case {
  readonly terms: readonly string[];
  readonly unit: string;
  readonly header: string;
  readonly kept: Readonly<Record<string, string>>;
  readonly overdue: number;
  readonly seconds: number;
  readonly amount: number | string;
  readonly out: readonly Json[];
}

interface Given {
  readonly terms: Terms;
  readonly policy: Policy;
  readonly unit: Unit;
  readonly header: Header;
  readonly kept: pay.KeptByAttempt;
  readonly overdue: number;
  readonly seconds: number;
  readonly amount: bigint;
}

const DATA = vectors<{ readonly functions: readonly string[]; readonly cases: readonly Case[] }>("money");

const FUNCTIONS: Readonly<Record<string, (c: Given) => unknown>> = {
  unitPrice: (c) => money.unitPrice(c.terms),
  price: (c) => money.price(c.terms),
  toppedSeconds: (c) => money.topped(c.terms, c.unit).maxSeconds,
  topUpAmount: (c) => money.topUpAmount(c.terms, c.unit, c.seconds),
  leaseBudget: (c) => money.leaseBudget(c.terms),
  unlockFee: (c) => money.unlockFee(c.terms),
  escrowAtPost: (c) => money.escrowAtPost(c.terms),
  unitHolds: (c) => money.unitHolds(c.terms, c.unit),
  restHolds: (c) => money.restHolds(c.terms, c.header),
  jobHolds: (c) => money.jobHolds(c.terms, c.header, [c.unit, c.unit]),
  jobHoldsAlone: (c) => money.jobHolds(c.terms, null, [c.unit]),
  tip: (c) => money.tip(c.terms),
  grace: (c) => money.grace(c.terms, c.policy),
  leaseSeconds: (c) => money.leaseSeconds(c.terms),
  baseBond: (c) => money.baseBond(c.terms, c.policy),
  bond: (c) => money.bond(c.terms, c.policy),
  slashOf: (c) => money.slashOf(c.terms, c.policy),
  ramp: (c) => money.ramp(c.amount, c.overdue),
  settleReward: (c) => money.settleReward(c.terms, c.overdue),
  reclaimReward: (c) => money.reclaimReward(c.terms, c.amount, c.overdue),
  expireReward: (c) => money.expireReward(c.terms, c.unit, c.overdue),
  expireRewardOfRest: (c) => money.expireReward(c.terms, null, c.overdue),
  reserved: (c) => pay.reserved(c.unit, c.kept),
  checkpointPays: (c) => pay.checkpointPays(c.terms, c.policy, c.unit, c.kept),
  feeOf: (c) => pay.feeOf(c.amount, c.policy),
};

const given = (one: Case): Given => ({
  terms: termsOf(one.terms),
  policy: policyOf(one.terms[7] as string),
  unit: unitOf(one.unit),
  header: unpackHeader(BigInt(one.header)),
  kept: new Map(Object.entries(one.kept).map(([attempt, word]) => [Number(attempt), unpackKept(BigInt(word))])),
  overdue: one.overdue,
  seconds: one.seconds,
  amount: big(one.amount),
});

describe("money", () => {
  it("has vectors for each function", () => {
    expect(DATA.functions).toEqual(Object.keys(FUNCTIONS));
    expect(DATA.cases.length).toBeGreaterThan(30);
  });

  it.each(DATA.functions.map((name, at) => [name, at] as const))("%s as the library", (name, at) => {
    const call = FUNCTIONS[name] as (c: Given) => unknown;
    DATA.cases.forEach((one, number) => {
      expect(result(() => call(given(one))), `${name}, case ${number}`).toEqual(one.out[at]);
    });
  });

  it("is the worked example of the protocol", () => {
    const { terms, policy, unit } = given(DATA.cases[0] as Case);
    expect(money.unitPrice(terms)).toBe(20_334n);
    expect(money.leaseBudget(terms)).toBe(23_337n);
    expect(money.unitHolds(terms, unit)).toBe(22_837n);
    expect(money.bond(terms, policy)).toBe(10_167n);
    expect(money.slashOf(terms, policy)).toBe(1_016n);
    expect([0, 200, 600].map((overdue) => money.reclaimReward(terms, 1_016n, overdue))).toEqual([125n, 250n, 254n]);
    expect(money.expireReward(terms, null, 10)).toBe(262n);
    expect(pay.feeOf(4_250n, policy)).toBe(212n);
    expect(money.bond({ ...terms, bondBps: 10_000_000 }, policy)).toBe(20_334_000n);
  });
});
