import { describe, expect, it } from "vitest";

import { slugOf, tierOfSlug, vendorOf, vendorOfSlug } from "../src/core/tiers";
import { vectors } from "./vectors";

interface Vectors {
  readonly slugs: readonly { readonly runtimes: number; readonly slugs: readonly string[] }[];
  readonly tiers: readonly { readonly in: string; readonly out: number | null; readonly vendor: string | null }[];
}

const DATA = vectors<Vectors>("tiers");

describe("GPU tiers", () => {
  it("have slugs", () => {
    for (const { runtimes, slugs } of DATA.slugs) {
      expect(slugs.map((_, tier) => slugOf(vendorOf(runtimes), tier))).toEqual(slugs);
    }
  });

  it("are named by them", () => {
    for (const { in: slug, out, vendor } of DATA.tiers) {
      expect(tierOfSlug(slug) ?? null, slug).toBe(out);
      expect(vendorOfSlug(slug)?.name ?? null, slug).toBe(vendor);
    }
  });
});
