import { describe, expect, it } from "vitest";

import * as reputation from "../src/core/reputation";
import type { NodeState } from "../src/core/types";
import { unpackNodeState } from "../src/core/words";
import { type Json, result } from "./lanes";
import { vectors } from "./vectors";

interface Case {
  readonly value: number;
  readonly steps: number;
  readonly r: number;
  readonly s: number;
  readonly hot: string;
  readonly ok: boolean;
  readonly weight: number;
  readonly now: number;
  readonly out?: Json;
  readonly code?: string;
}

const DATA = vectors<Readonly<Record<string, readonly Case[]>>>("reputation");

const hot = (one: Case): NodeState => unpackNodeState(BigInt(one.hot));

// The values of a state that an observation changes.
function changed({ bond, beat, busy, ...rest }: NodeState): unknown {
  expect([typeof bond, typeof beat, typeof busy]).toEqual(["bigint", "number", "number"]);
  return rest;
}

const CALLS: Readonly<Record<string, (one: Case) => unknown>> = {
  decay: (one) => reputation.decay(one.value, one.steps),
  reputation: (one) => reputation.reputation(one.r, one.s),
  observe: (one) => changed(reputation.observe(hot(one), one.ok, one.weight, one.now)),
  reject: (one) => changed(reputation.reject(hot(one), one.now)),
};

describe("a node's record", () => {
  it("has vectors for each function", () => {
    expect(Object.keys(DATA)).toEqual(Object.keys(CALLS));
  });

  it.each(Object.keys(CALLS))("%s as the library", (name) => {
    (DATA[name] as readonly Case[]).forEach((one, number) => {
      const wanted = one.code === undefined ? one.out : { code: one.code };
      expect(result(() => (CALLS[name] as (one: Case) => unknown)(one)), `${name}, case ${number}`).toEqual(wanted);
    });
  });

  it("keeps what no observation is about", () => {
    const state = unpackNodeState((1n << 256n) - 1n);
    const observed = reputation.observe({ ...state, repTime: 0 }, true, 0, 0);
    expect([observed.bond, observed.beat, observed.busy]).toEqual([state.bond, state.beat, state.busy]);
  });
});
