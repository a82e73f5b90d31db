import { describe, expect, it } from "vitest";

import { changeOf } from "../src/core/changes";
import { changeRow, type Governance, governorInWords, isOpen, rowsOf, stateOfChange, whenInWords } from "../src/core/governed";
import type { Hex } from "../src/core/bytes";
import { inWords } from "../src/core/parameters";
import { assetOf } from "../src/core/units";
import { unpackPolicy } from "../src/core/words";
import { EXECUTED, POLICY_GRACE } from "../src/generated/changes";
import { vectors } from "./vectors";

interface Case {
  readonly change: { readonly op: number; readonly word: string; readonly salt: string };
  readonly asset: { readonly symbol: string; readonly decimals: number; readonly address: Hex | null };
  readonly policy: string | null;
  readonly due: number;
  readonly held: string;
  readonly free: number;
  readonly now: number;
  readonly row: { readonly change: Hex; readonly kind: string; readonly state: string; readonly due: number; readonly ready: number; readonly until: number; readonly text: string };
  readonly values: readonly (readonly [string, string, string])[];
  readonly when: string;
}

interface Governor {
  readonly what: string;
  readonly one: { readonly governor: Hex; readonly steward: boolean; readonly offered: Hex | null; readonly pausedUntil: number };
  readonly now: number;
  readonly text: string;
}

const DATA = vectors<{ readonly rows: readonly Case[]; readonly governors: readonly Governor[] }>("governed");
const ASSET = assetOf("ETH", 18);

const share = (value: number): string => inWords("share", BigInt(value), ASSET);
const changeIn = ({ change }: Case) => changeOf(BigInt(change.op), BigInt(change.word), BigInt(change.salt));

describe("governance", () => {
  it("says of every change what the command says", () => {
    for (const one of DATA.rows) {
      const { symbol, decimals, address } = one.asset;
      const seen = { change: changeIn(one), due: one.due, state: stateOfChange(BigInt(one.held), one.now), block: 7 };
      const policy = one.policy === null ? null : unpackPolicy(BigInt(one.policy));
      const row = changeRow(seen, policy, assetOf(symbol, decimals, address), one.free, one.now);
      const { kind, state, due, ready, until, text } = row;
      expect({ change: row.id, kind, state, due, ready, until, text }).toEqual(one.row);
      expect(row.values.map(({ name, before, after }) => [name, before, after])).toEqual(one.values);
      expect(whenInWords(row)).toBe(one.when);
    }
  });

  it("has drawn every state of a change", () => {
    const states = new Set(DATA.rows.map(({ row }) => row.state));
    expect(states).toEqual(new Set(["waiting", "due", "lapsed", "dropped", "executed"]));
  });

  it("says of every governor what the command says", () => {
    for (const { what, one, now, text } of DATA.governors) expect(governorInWords(what, one, now)).toBe(text);
  });

  it("takes a policy no later than a day from now, whatever a provider says of the last one", () => {
    const one = DATA.rows.find(({ change, held, row }) => change.op === 1 && BigInt(held) > 2n && isOpen({ state: row.state } as never)) as Case;
    const policy = unpackPolicy(BigInt(one.change.word));
    const gov = { changes: [{ change: changeIn(one), due: one.now, held: BigInt(one.now), block: 7 }], policy, replaced: new Map(), previousUntil: 2 ** 40, lastUntil: 0 };
    expect(rowsOf(gov as unknown as Governance, ASSET, one.now)[0]?.ready).toBe(one.now + POLICY_GRACE);
  });

  it("shows an executed policy against the one that it replaced, and by its word where that is not known", () => {
    const one = DATA.rows.find(({ change }) => change.op === 1) as Case;
    const change = changeIn(one);
    const policy = unpackPolicy(change.word);
    const of = (replaced: ReadonlyMap<bigint, typeof policy>): string | undefined => {
      const gov = { changes: [{ change, due: 1, held: BigInt(EXECUTED), block: 7 }], policy, replaced, previousUntil: 0, lastUntil: 0 };
      return rowsOf(gov as unknown as Governance, ASSET, one.now)[0]?.text;
    };
    const before = { ...policy, feeBps: policy.feeBps + 1 };
    expect(of(new Map([[change.word, before]]))).toBe(`policy: fee_bps ${share(before.feeBps)} -> ${share(policy.feeBps)}`);
    expect(of(new Map())).toBe(`policy 0x${change.word.toString(16).padStart(64, "0")} for new jobs`);
  });
});
