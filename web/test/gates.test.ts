import { describe, expect, it } from "vitest";

import { askOf, fit, mayNewcomer, nodeGate } from "../src/core/gates";
import { askInForce } from "../src/core/status";
import { unpackBest } from "../src/core/words";
import { FLEET_LABELS, GATE, PASSING_GATES } from "../src/generated/states";
import { CASES, MARKET } from "./gate-cases";
import { nodeOf, outcome, policyOf, termsOf, unitOf, written } from "./lanes";

describe("gates", () => {
  it("are the library's", () => {
    CASES.forEach((one, number) => {
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
    const shut = new Set(CASES.map((one) => one.propose.out));
    expect(Object.values(GATE).filter((gate) => !shut.has(gate))).toEqual([]);
  });

  it("have words, but for the one that is none", () => {
    const wordless = Object.values(GATE).filter((gate) => !(gate in FLEET_LABELS));
    expect(wordless).toEqual([GATE.FITS]);
    expect(PASSING_GATES).toEqual([GATE.QUARANTINED, GATE.NO_SLOT, GATE.NOT_OPEN]);
  });
});
