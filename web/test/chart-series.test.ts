import { describe, expect, it } from "vitest";

import { type Bucket, bucketsOf, medianBig, medianOf, quantile, type Step, widthFor } from "../src/core/chart-series";
import { dice } from "./scripted-chain";

describe("medians", () => {
  it("are a value that was there, the lower of two", () => {
    expect(medianBig([])).toBeUndefined();
    expect(medianBig([7n])).toBe(7n);
    expect(medianBig([9n, 1n])).toBe(1n);
    expect(medianBig([10n ** 30n, 3n, 2n])).toBe(3n);
    expect(medianOf([10, 9, 100, 1])).toBe(9);
    expect(quantile([1, 2, 3, 4, 5, 6, 7, 8, 9, 10], 90)).toBe(9);
    expect(quantile([1, 2, 3], 90)).toBe(3);
  });

  it("have no more than half of all on either side", () => {
    const draw = dice(1);
    for (let round = 0; round < 200; round += 1) {
      const values = Array.from({ length: 1 + draw(20) }, () => BigInt(draw(12)));
      const median = medianBig(values) as bigint;
      expect(2 * values.filter((one) => one < median).length <= values.length).toBe(true);
      expect(2 * values.filter((one) => one > median).length <= values.length).toBe(true);
      expect(values).toContain(median);
    }
  });
});

const area = (found: readonly (Step | Bucket)[], of: "busy" | "slots"): number => found.reduce((sum, one) => sum + one[of], 0);

describe("buckets", () => {
  it("hold the areas below the steps", () => {
    const steps = [{ at: 50, busy: 0, slots: 2 }, { at: 70, busy: 1, slots: 2 }, { at: 130, busy: 2, slots: 4 }, { at: 250, busy: 0, slots: 0 }];
    expect(bucketsOf(steps, 300, 100)).toEqual([
      { at: 50, width: 50, busy: 30, slots: 100 },
      { at: 100, width: 100, busy: 30 + 140, slots: 60 + 280 },
      { at: 200, width: 100, busy: 100, slots: 200 },
    ]);
    expect(bucketsOf([], 300, 100)).toEqual([]);
    expect(bucketsOf(steps, 60, 100)).toEqual([{ at: 50, width: 10, busy: 0, slots: 20 }]);
  });

  it("hold as much at any width", () => {
    const draw = dice(2);
    for (let round = 0; round < 60; round += 1) {
      let at = draw(1_000);
      const steps = Array.from({ length: 1 + draw(30) }, () => ({ at: (at += 1 + draw(400)), busy: draw(9), slots: 9 + draw(9) }));
      const end = at + draw(500);
      const whole = steps.map((step, place) => {
        const seconds = (steps[place + 1]?.at ?? end) - step.at;
        return { ...step, busy: step.busy * seconds, slots: step.slots * seconds };
      });
      for (const width of [1, 60, 7_000, 10 ** 9]) {
        const found = bucketsOf(steps, end, width);
        expect(area(found, "busy")).toBe(area(whole, "busy"));
        expect(area(found, "slots")).toBe(area(whole, "slots"));
        found.forEach((one, place) => expect(one.at + one.width).toBe(found[place + 1]?.at ?? end));
      }
    }
  });

  it("are as few as asked for", () => {
    for (const seconds of [0, 59, 3_600, 86_400, 31_536_000, 10 ** 10]) {
      const width = widthFor(seconds, 200);
      for (const at of [0, 17, width - 1]) expect(bucketsOf([{ at, busy: 1, slots: 1 }], at + seconds, width).length).toBeLessThanOrEqual(201);
    }
  });
});
