import { describe, expect, it } from "vitest";

import { HearthError } from "../src/core/errors";
import { zoneDistance, zoneMask, zoneOf, zonesIn } from "../src/core/zones";
import { outcome } from "./lanes";
import { vectors } from "./vectors";

interface Outcome {
  readonly out?: unknown;
  readonly code?: string;
}

interface Country extends Outcome {
  readonly in: string;
  readonly message?: string;
  readonly hint?: string;
}

interface Vectors {
  readonly countries: readonly Country[];
  readonly masks: readonly (Outcome & { readonly in: readonly string[] })[];
  readonly zones: readonly (Outcome & { readonly in: number })[];
  readonly distances: readonly (readonly [number, number, Outcome])[];
}

const DATA = vectors<Vectors>("zones");

function said({ in: country, message }: Country): Omit<Country, "in"> {
  try {
    return { out: zoneOf(country) };
  } catch (error) {
    if (!(error instanceof HearthError)) throw error;
    const { code, hint } = error;
    return message === undefined ? { code } : { code, message: error.message, hint };
  }
}

describe("zones", () => {
  it("hold countries, and refuse what is none with a hint", () => {
    for (const one of DATA.countries) {
      const { in: country, ...wanted } = one;
      expect(said(one), JSON.stringify(country)).toEqual(wanted);
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
