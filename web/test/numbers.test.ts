import { describe, expect, it } from "vitest";

import { bpsPercent, ceilDiv, floorDiv, floorDivInt, maxBig, minBig, percent, small } from "../src/core/numbers";
import { outcome } from "./lanes";

describe("division", () => {
  it.each([
    [7n, 2n, 3n, 4n],
    [-7n, 2n, -4n, -3n],
    [7n, -2n, -4n, -3n],
    [-7n, -2n, 3n, 4n],
    [6n, 2n, 3n, 3n],
    [-6n, 2n, -3n, -3n],
    [0n, -2n, 0n, 0n],
  ])("%s / %s is rounded down to %s and up to %s", (a, b, down, up) => {
    expect(floorDiv(a, b)).toBe(down);
    expect(ceilDiv(a, b)).toBe(up);
  });

  it("of numbers is exact up to the largest", () => {
    expect(floorDivInt(7, 2)).toBe(3);
    expect(floorDivInt(Number.MAX_SAFE_INTEGER - 1, 2)).toBe(4503599627370495);
    expect(floorDivInt(9007199254740990, 9007199254740991)).toBe(0);
    expect(floorDivInt(9007199254740989, 3)).toBe(3002399751580329);
  });

  it("by zero is refused", () => {
    for (const divide of [() => floorDiv(1n, 0n), () => ceilDiv(1n, 0n), () => floorDivInt(1, 0)]) {
      expect(outcome(divide)).toEqual({ code: "DIVIDE_BY_ZERO" });
    }
  });
});

describe("bigints", () => {
  it("are compared, and counted with where a number holds them", () => {
    expect([minBig(1n, 2n), minBig(2n, 1n), maxBig(1n, 2n), maxBig(2n, 1n)]).toEqual([1n, 1n, 2n, 2n]);
    expect(small(2n ** 53n - 1n)).toBe(Number.MAX_SAFE_INTEGER);
    expect(outcome(() => small(2n ** 53n))).toEqual({ code: "TOO_LARGE" });
    expect(outcome(() => small(-(2n ** 53n) - 1n))).toEqual({ code: "TOO_LARGE" });
  });
});

describe("percent", () => {
  it("is whole, half up, and nothing of nothing", () => {
    expect([percent(1, 200), percent(1, 201), percent(2, 3), percent(0, 5), percent(5, 5), percent(0, 0)]).toEqual(["1 %", "0 %", "67 %", "0 %", "100 %", ""]);
    expect([bpsPercent(9_949), bpsPercent(9_950), bpsPercent(0)]).toEqual(["99 %", "100 %", "0 %"]);
  });
});
