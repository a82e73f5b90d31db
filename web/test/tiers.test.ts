import { describe, expect, it } from "vitest";

import { slugOf, tierOfSlug } from "../src/core/tiers";
import { vectors } from "./vectors";

interface Vectors {
  readonly slugs: readonly string[];
  readonly tiers: readonly { readonly in: string; readonly out: number | null }[];
}

const DATA = vectors<Vectors>("tiers");

describe("GPU tiers", () => {
  it("have slugs", () => {
    expect(DATA.slugs.map((_, tier) => slugOf(tier))).toEqual(DATA.slugs);
  });

  it("are named by them", () => {
    for (const { in: slug, out } of DATA.tiers) expect(tierOfSlug(slug) ?? null, slug).toBe(out);
  });
});
