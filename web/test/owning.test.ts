import { describe, expect, it } from "vitest";

import { codeOf } from "../src/core/errors";
import { addedOf, type Ground, requireIdle, requireNoAsk, requireRegistrable, requireUnbonded, stakeOf } from "../src/core/owning";
import type { Node } from "../src/core/types";
import { NATIVE, parseAmount } from "../src/core/units";
import { ZERO_ADDRESS } from "../src/generated/bounds";
import { MAX_STAKE } from "../src/generated/owners";
import { type NodeFields, nodeOf } from "./lanes";
import { vectors } from "./vectors";

const [{ node: fields }] = vectors<{ waits: readonly { node: NodeFields }[] }>("owners").waits as [{ node: NodeFields }];
const NODE = nodeOf(fields);
const MINIMUM = 10n ** 18n;
const KEY = `0x${"5e".repeat(20)}` as const;
const taken = (act: () => unknown): string => {
  try {
    act();
    return "taken";
  } catch (error) {
    return codeOf(error);
  }
};
const withState = (state: Partial<Node["state"]>, rest: Partial<Node> = {}): Node => ({ ...NODE, ...rest, state: { ...NODE.state, ...state } });

describe("a stake", () => {
  it("is the minimum where none is named, and never less, and no more than a node holds", () => {
    expect([stakeOf(" ", MINIMUM, NATIVE), stakeOf("1", MINIMUM, NATIVE)]).toEqual([MINIMUM, MINIMUM]);
    expect(taken(() => stakeOf("0.999999999999999999", MINIMUM, NATIVE))).toBe("STAKE_SHORT");
    expect(stakeOf(`${MAX_STAKE} wei`, MINIMUM, NATIVE)).toBe(MAX_STAKE);
    expect(taken(() => stakeOf(`${MAX_STAKE + 1n} wei`, MINIMUM, NATIVE))).toBe("TOO_LARGE");
    expect(taken(() => stakeOf("-1", MINIMUM, NATIVE))).toBe("BAD_AMOUNT");
  });

  it("is added to what is there", () => {
    const node = { ...NODE, stake: MAX_STAKE - 1n };
    expect(addedOf("1 wei", node, NATIVE)).toBe(1n);
    expect(taken(() => addedOf("2 wei", node, NATIVE))).toBe("TOO_LARGE");
    expect(taken(() => addedOf("0", node, NATIVE))).toBe("BAD_AMOUNT");
    expect(addedOf("1.5", { ...NODE, stake: 0n }, NATIVE)).toBe(parseAmount("1.5", NATIVE));
  });
});

describe("a registration", () => {
  const ground: Ground = { minimumStake: MINIMUM, pausedUntil: 0, now: 100, owned: [{ node: NODE, offered: ZERO_ADDRESS }] };

  it("is refused while registrations are paused", () => {
    expect(taken(() => requireRegistrable({ name: "x" }, { ...ground, pausedUntil: 101 }, KEY))).toBe("PAUSED");
    expect(taken(() => requireRegistrable({ name: "x" }, { ...ground, pausedUntil: 100 }, KEY))).toBe("taken");
  });

  it("is refused for a key that works for the owner already, or is to", () => {
    expect(taken(() => requireRegistrable({ name: "x" }, ground, NODE.operator))).toBe("REGISTERED");
    const offered = { ...ground, owned: [{ node: NODE, offered: KEY }] };
    expect(taken(() => requireRegistrable({ name: "x" }, offered, KEY))).toBe("REGISTERED");
  });
});

describe("a change", () => {
  it("of the price waits for the one before", () => {
    const pending: Node = { ...NODE, offer: { ...NODE.offer, pending: true }, nextAskAt: 100 };
    expect([99, 100].map((now) => taken(() => requireNoAsk(pending, now)))).toEqual(["ASK_PENDING", "taken"]);
    expect(taken(() => requireNoAsk({ ...pending, offer: { ...NODE.offer, pending: false } }, 1))).toBe("taken");
  });

  it("of the offer waits until nothing runs", () => {
    expect([0, 1].map((busy) => taken(() => requireIdle(withState({ busy }))))).toEqual(["taken", "BUSY"]);
  });

  it("of an exit into an end waits for its time, and for its last bond", () => {
    const leaving = (bond: bigint): Node => withState({ bond }, { exitAt: 100 });
    expect([99, 100].map((now) => taken(() => requireUnbonded(leaving(0n), now)))).toEqual(["UNBONDING", "taken"]);
    expect(taken(() => requireUnbonded(leaving(1n), 100))).toBe("BOND_LEFT");
  });
});
