import { describe, expect, it } from "vitest";

import type { Hex } from "../src/core/bytes";
import { checkpointsIn, paidIn } from "../src/core/checkpoints";
import { decodeOf } from "../src/core/events";
import type { Contract } from "../src/core/network";
import { sharesIn } from "../src/core/receipt";
import { NATIVE, showAmount } from "../src/core/units";
import { vectors } from "./vectors";

interface Vectors {
  readonly jobs: readonly [Hex, Hex];
  readonly registry: Hex;
  readonly sequences: readonly {
    readonly logs: readonly (readonly [Contract, readonly Hex[], Hex])[];
    readonly checkpoints: readonly (readonly [number, readonly unknown[]])[];
    readonly paid: readonly unknown[];
    readonly shares: readonly string[];
  }[];
}

const { jobs, registry, sequences } = vectors<Vectors>("folds");
const ZERO = `0x${"00".repeat(32)}` as const;
const place = { address: registry, blockNumber: 1, blockHash: ZERO, txHash: ZERO };

describe("events in any order", () => {
  it.each(sequences.map((one, at) => [at, one] as const))("come to what the library says (%i)", (_, one) => {
    const events = one.logs.map(([contract, topics, data], logIndex) =>
      decodeOf({ ...place, topics, data, logIndex }, contract),
    );
    const own = events.filter((event) => "jobId" in event && event.jobId === jobs[0]);
    const rows = [...checkpointsIn(own)].map(([unit, found]) => [
      unit,
      found.map(({ resumedFrom, paid, ...row }) => ({
        ...row,
        resumed_from: resumedFrom,
        pay: paid && `${paid.pay}`,
        fee: paid && `${paid.fee}`,
        earned_text: paid && showAmount(paid.pay - paid.fee, NATIVE),
      })),
    ]);
    expect(Object.fromEntries(rows)).toEqual(Object.fromEntries(one.checkpoints));
    expect(paidIn(own).map((paid) => ({ ...paid, pay: `${paid.pay}`, fee: `${paid.fee}` }))).toEqual(one.paid);
    const { refunded, settled, keepers } = sharesIn(events, jobs[0], registry);
    expect([refunded, settled, keepers].map(String)).toEqual(one.shares);
  });

  it("have checkpoints and shares of every kind", () => {
    const found = sequences.flatMap((one) => one.checkpoints.flatMap(([, rows]) => rows));
    const rows = found as readonly { readonly kept: boolean; readonly pay: unknown }[];
    const kinds = new Set(rows.map((row) => `${row.kept} ${row.pay === null}`));
    expect(kinds.size).toBe(4);
    for (const at of [0, 1, 2]) expect(sequences.some((one) => one.shares[at] !== "0")).toBe(true);
  });
});
