import { describe, expect, it } from "vitest";

import { codeOf } from "../src/core/errors";
import { askable, networkOf } from "../src/core/network";
import { vectors } from "./vectors";

interface Row {
  in?: object;
  with?: object;
  without?: string[];
  code?: string;
  chain_id: string;
  job_chain_id: string;
  contracts: Record<string, string>;
  asset: [string, number, string | null];
  policy: string;
  stake: string;
  hashes: Record<string, string>;
  rpc: string[];
  local: boolean;
}
type Case = Omit<Row, "with" | "without"> & { in: object };

// All rows but the first are the first one's file with some changes.
const ROWS = vectors<Row[]>("network");
const CASES: Case[] = ROWS.map(({ with: changed = {}, without = [], ...rest }) => {
  const file = { ...ROWS[0]?.in, ...changed };
  return { ...rest, in: Object.fromEntries(Object.entries(file).filter(([name]) => !without.includes(name))) };
});

function refusal(value: unknown): string | undefined {
  try {
    networkOf(value);
  } catch (error) {
    return codeOf(error);
  }
  return undefined;
}

describe("network files", () => {
  it.each(CASES.map((one, at) => [at, one] as const))("of the library, %i", (_, one) => {
    if (one.code !== undefined) {
      expect(refusal(one.in)).toBe(one.code);
      return;
    }
    const read = networkOf(one.in);
    expect({
      in: one.in,
      chain_id: String(read.chainId),
      job_chain_id: String(read.jobChainId),
      contracts: read.contracts,
      asset: [read.asset.symbol, read.asset.decimals, read.asset.address],
      policy: String(read.policy),
      stake: String(read.nodeParameters.minimum_stake),
      hashes: Object.fromEntries(read.codeHashes),
      rpc: read.rpc,
      local: read.local,
    }).toEqual(one);
  });

  it.each([null, [], "x", 7])("refuses %j", (value) => {
    expect(refusal(value)).toBe("BAD_NETWORK");
  });

  it("lets no name and no symbol move what stands beside it", () => {
    const [one] = CASES;
    const symbol = `\u202e${"x".repeat(99)}`;
    const hostile = { ...(one?.in as object), name: "n\u202e", asset: { symbol, decimals: 18, address: null } };
    const { name, asset } = networkOf(hostile);
    expect([name, asset.symbol]).toEqual(["nU+202E", `U+202E${"x".repeat(15)}…`]);
  });

  it("leaves out what a browser does not ask", () => {
    for (const url of ["ftp://a", "javascript:alert(1)", "http://user:word@a", "/x", "", `http://a/${"x".repeat(3000)}`]) {
      expect(askable(url)).toBeUndefined();
    }
    expect(askable("http://127.0.0.1:8545")?.origin).toBe("http://127.0.0.1:8545");
  });
});
