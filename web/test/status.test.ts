import { describe, expect, it } from "vitest";

import { activeStake, askInForce, livenessFee, quarantinedUntil, stakeShort, statusOf } from "../src/core/status";
import { STATUS } from "../src/generated/states";
import { big, type Json, type NodeFields, nodeOf, written } from "./lanes";
import { vectors } from "./vectors";

interface Case {
  readonly node: NodeFields;
  readonly now: number;
  readonly deadAfter: number;
  readonly minimumStake: string;
  readonly fee: string;
  readonly status: number;
  readonly stakeShort: Json;
  readonly livenessFee: Json;
  readonly quarantinedUntil: number | null;
  readonly askInForce: Json;
}

interface Vectors {
  readonly nodes: readonly Case[];
  readonly activeStake: readonly { readonly in: Json; readonly out: Json }[];
}

const DATA = vectors<Vectors>("status");

describe("a node's status", () => {
  it("is the library's", () => {
    DATA.nodes.forEach((one, number) => {
      const [node, minimum] = [nodeOf(one.node), big(one.minimumStake)];
      expect(statusOf(node, one.now, one.deadAfter, minimum), `status, node ${number}`).toBe(one.status);
      expect(written(stakeShort(node, minimum)), `short, node ${number}`).toEqual(one.stakeShort);
      expect(written(livenessFee(node, big(one.fee))), `liveness, node ${number}`).toEqual(one.livenessFee);
      expect(quarantinedUntil(node, one.now), `quarantine, node ${number}`).toBe(one.quarantinedUntil);
      expect(written(askInForce(node, one.now)), `ask, node ${number}`).toEqual(one.askInForce);
    });
    expect(new Set(DATA.nodes.map((one) => one.status)).size).toBe(Object.keys(STATUS).length);
  });

  it("asks for half of the minimum, rounded up", () => {
    for (const one of DATA.activeStake) expect(written(activeStake(big(one.in)))).toEqual(one.out);
  });
});
