import { describe, expect, it } from "vitest";

import * as units from "../src/core/units";
import { big, LIBRARY_ALONE, outcome } from "./lanes";
import { vectors } from "./vectors";

interface Case {
  readonly asset: number;
  readonly in: string | number;
  readonly out?: unknown;
  readonly code?: string;
}

interface Vectors {
  readonly assets: readonly units.Asset[];
  readonly [name: string]: readonly unknown[];
}

const DATA = vectors<Vectors>("units");

const CALLS: Readonly<Record<string, (one: Case, asset: units.Asset) => unknown>> = {
  parseAmount: (one, asset) => units.parseAmount(one.in as string, asset),
  splitAmount: (one) => units.splitAmount(one.in as string),
  formatAmount: (one, asset) => units.formatAmount(big(one.in), asset),
  showAmount: (one, asset) => units.showAmount(big(one.in), asset),
  bareAmount: (one, asset) => units.showAmount(big(one.in), asset, { symbol: false }),
  parseRate: (one, asset) => units.parseRate(one.in as string, asset),
  splitRate: (one) => units.splitRate(one.in as string),
  formatRate: (one, asset) => units.formatRate(big(one.in), asset),
  showRate: (one, asset) => units.showRate(big(one.in), asset),
  amountAtLeast: (one, asset) => units.amountAtLeast(big(one.in), asset),
  showAtLeast: (one, asset) => units.showAtLeast(big(one.in), asset),
  amountAtMost: (one, asset) => units.amountAtMost(big(one.in), asset),
  rateAtMost: (one, asset) => units.rateAtMost(big(one.in), asset),
  rateAtLeast: (one, asset) => units.rateAtLeast(big(one.in), asset),
  parseDuration: (one) => units.parseDuration(one.in as string),
  formatDuration: (one) => units.formatDuration(one.in as number),
  parseSize: (one) => units.parseSize(one.in as string),
  formatSize: (one) => units.formatSize(big(one.in)),
  gibCeil: (one) => units.gibCeil(big(one.in)),
  mibCeil: (one) => units.mibCeil(big(one.in)),
};
const MONEY = new Set(["parseAmount", "parseRate", "parseSize", "gibCeil", "mibCeil"]);

// A vector holds a number as JSON does where it is below 2^53, else as text.
const written = (value: bigint): number | string => (value < 2n ** 53n ? Number(value) : String(value));

// What a call gives or refuses with, as the vectors write it.
function said(name: string, one: Case): Omit<Case, "asset" | "in"> {
  const asset = DATA.assets[one.asset ?? 0] as units.Asset;
  const found = outcome(() => (CALLS[name] as (typeof CALLS)[string])(one, asset));
  if (!("out" in found)) return found;
  expect(typeof found.out === "bigint", name).toBe(MONEY.has(name));
  return { out: typeof found.out === "bigint" ? written(found.out) : found.out };
}

describe("units", () => {
  const names = Object.keys(DATA).filter((name) => name !== "assets");

  it("have vectors for each function", () => {
    expect(names.sort()).toEqual(Object.keys(CALLS).sort());
  });

  it.each(names)("%s as the library", (name) => {
    const cases = DATA[name] as readonly Case[];
    expect(cases.length).toBeGreaterThan(10);
    for (const one of cases) {
      const { asset: _, in: given, ...wanted } = one;
      const found = said(name, one);
      if (LIBRARY_ALONE.test(String(given))) expect(found).toHaveProperty("code");
      else expect(found, `${name}(${JSON.stringify(given)}, ${one.asset})`).toEqual(wanted);
    }
  });

  it("refuse an asset that no chain has", () => {
    for (const decimals of [-1, 37, 1.5, Number.NaN]) {
      expect(outcome(() => units.assetOf("TOK", decimals))).toEqual({ code: "BAD_ASSET" });
    }
    expect(units.assetOf("ETH", 18)).toEqual(units.NATIVE);
    expect(units.formatAmount(7n, units.assetOf("PT", 0))).toBe("7 PT");
    expect(units.assetOf("TOK", 36, `0x${"11".repeat(20)}`).address).toBe(`0x${"11".repeat(20)}`);
  });

  it("know no signed zero", () => {
    expect(units.formatDuration(-0)).toBe("0s");
    expect(Object.is(units.parseDuration("0s"), 0)).toBe(true);
  });

  it("are quick with long texts", () => {
    for (const long of ["9".repeat(1e6), " ".repeat(1e6), "1d".repeat(5e5), "/".repeat(1e6), `${"1.".repeat(5e5)}k`]) {
      for (const parse of [units.parseDuration, units.parseSize, units.splitAmount, units.splitRate]) {
        expect(outcome(() => parse(long))).toHaveProperty("code");
      }
    }
  });
});
