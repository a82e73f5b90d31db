import { describe, expect, it } from "vitest";

import { askOf, fit, mayNewcomer, nodeGate } from "../src/core/gates";
import { askInForce } from "../src/core/status";
import { unpackBest } from "../src/core/words";
import { GATE, GATE_WORDS, PASSING_GATES } from "../src/generated/states";
import { type Json, type NodeFields, nodeOf, outcome, policyOf, termsOf, unitOf, written } from "./lanes";
import { vectors } from "./vectors";

interface Case {
  readonly terms: readonly string[];
  readonly unit: string;
  readonly best: string;
  readonly node: NodeFields;
  readonly now: number;
  readonly ask: readonly Json[];
  readonly askInForce: Json;
  readonly mayNewcomer: boolean;
  readonly gate: number;
  readonly propose: { readonly out?: number; readonly code?: string };
  readonly claim: { readonly out?: number; readonly code?: string };
}

interface Vectors {
  readonly deadAfter: number;
  readonly minimumStake: string;
  readonly cases: readonly Case[];
}

const DATA = vectors<Vectors>("gates");
const MARKET = { deadAfter: DATA.deadAfter, minimumStake: BigInt(DATA.minimumStake) };

describe("gates", () => {
  it("are the library's", () => {
    DATA.cases.forEach((one, number) => {
      const [terms, policy] = [termsOf(one.terms), policyOf(one.terms[7] as string)];
      const [unit, best, node] = [unitOf(one.unit), unpackBest(BigInt(one.best)), nodeOf(one.node)];
      const ask = askOf(terms, policy);
      expect(written([ask.ceiling, ask.bond, ask.probation]), `ask, case ${number}`).toEqual(one.ask);
      expect(ask.needs).toEqual(terms.needs);
      expect(written(askInForce(node, one.now)), `ask in force, case ${number}`).toEqual(one.askInForce);
      expect(mayNewcomer(ask, node.state.bond), `newcomer, case ${number}`).toBe(one.mayNewcomer);
      expect(nodeGate(node, ask, one.now, MARKET), `gate, case ${number}`).toBe(one.gate);
      const look = (claim: boolean) => () => fit(terms, policy, unit, best, node, { ...MARKET, now: one.now, claim });
      expect(outcome(look(false)), `propose, case ${number}`).toEqual(one.propose);
      expect(outcome(look(true)), `claim, case ${number}`).toEqual(one.claim);
    });
  });

  it("are each shut in some case", () => {
    const shut = new Set(DATA.cases.map((one) => one.propose.out));
    expect(Object.values(GATE).filter((gate) => !shut.has(gate))).toEqual([]);
  });

  it("have words, but those that a unit says itself", () => {
    const wordless = Object.values(GATE).filter((gate) => !(gate in GATE_WORDS));
    expect(wordless).toEqual([GATE.FITS, GATE.NOT_OPEN]);
    expect(PASSING_GATES).toEqual([GATE.QUARANTINED, GATE.NO_SLOT]);
  });
});
