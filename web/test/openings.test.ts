import { describe, expect, it } from "vitest";

import { fit } from "../src/core/gates";
import { claimable, withLapse } from "../src/core/lapse";
import { openingOf } from "../src/core/openings";
import { bestOf, storedUnit } from "../src/core/stored";
import { leasesOf } from "../src/core/types";
import { viewOf } from "../src/core/view";
import { GATE, GATE_SENTENCES, STATE } from "../src/generated/states";
import { CASES, MARKET } from "./gate-cases";
import { nodeOf, termsOf } from "./lanes";

describe("what a node could take", () => {
  it("names the gate in its sentence, and where the node let the unit pass, from when it can claim it", () => {
    let [passed, shut] = [0, 0];
    for (const one of CASES) {
      const terms = termsOf(one.terms);
      const asStored = storedUnit(BigInt(one.unit), BigInt(one.best), 0n);
      const node = nodeOf(one.node);
      if (leasesOf(terms) !== 1 || asStored.unit.state !== STATE.OPEN) continue;
      // As it is, and as if it had opened just now: then it takes no claims yet.
      for (const started of [asStored.unit.started, one.now]) {
        const stored = { ...asStored, unit: { ...asStored.unit, started } };
        const view = viewOf(terms, null, [stored], one.now);
        const claim = claimable(terms, view.policy, stored.unit, one.now);
        if (view.policy.claimRamp === 0) continue;
        const gate = fit(terms, view.policy, stored.unit, bestOf(stored), node, { ...MARKET, now: one.now, claim });
        const found = openingOf(view, node, MARKET);
        expect(found?.gate).toBe(gate);
        if (gate === GATE.FITS || gate === GATE.PRICE) continue;
        const again = gate === GATE.EXCLUDED && withLapse(stored.unit, bestOf(stored), view.policy, one.now).lapses > 0;
        if (again) expect(found?.text).toMatch(/^it let it pass, and can claim it again: from /);
        else expect(found?.text).toBe(GATE_SENTENCES[gate]);
        [passed, shut] = [passed + Number(again), shut + Number(!again && gate === GATE.EXCLUDED)];
      }
    }
    expect([passed > 0, shut > 0]).toEqual([true, true]);
  });
});
