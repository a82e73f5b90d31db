import { describe, expect, it } from "vitest";

import { zoneDistance, zoneMask, zoneOf, zonesIn } from "../src/core/zones";
import { LIBRARY_ALONE, outcome } from "./lanes";
import { vectors } from "./vectors";

interface Outcome {
  readonly out?: unknown;
  readonly code?: string;
}

interface Country extends Outcome {
  readonly in: string;
}

interface Vectors {
  readonly countries: readonly Country[];
  readonly masks: readonly (Outcome & { readonly in: readonly string[] })[];
  readonly zones: readonly (Outcome & { readonly in: number })[];
  readonly distances: readonly (readonly [number, number, Outcome])[];
}

const DATA = vectors<Vectors>("zones");

describe("zones", () => {
  it("hold countries, and refuse what is none", () => {
    for (const { in: country, ...wanted } of DATA.countries) {
      const found = outcome(() => zoneOf(country));
      if (LIBRARY_ALONE.test(country)) expect(found).toHaveProperty("code");
      else expect(found, JSON.stringify(country)).toEqual(wanted);
    }
  });

  it("are masked by countries", () => {
    for (const { in: countries, ...wanted } of DATA.masks) {
      expect(outcome(() => zoneMask(countries)), countries.join(" ")).toEqual(wanted);
    }
  });

  it("are read from a mask", () => {
    for (const { in: mask, ...wanted } of DATA.zones) {
      expect(outcome(() => zonesIn(mask).map((zone) => zone.number)), String(mask)).toEqual(wanted);
    }
    expect(outcome(() => zonesIn(0.5))).toEqual({ code: "BAD_WORD" });
  });

  it("are as far apart as the library says", () => {
    expect(DATA.distances.length).toBeGreaterThan(256);
    for (const [a, b, wanted] of DATA.distances) expect(outcome(() => zoneDistance(a, b)), `${a} ${b}`).toEqual(wanted);
    expect(outcome(() => zoneDistance(0.5, 0))).toEqual({ code: "BAD_WORD" });
  });
});
