// GPU vendors and tiers by their slugs. Mirrors hearth/protocol/gpu_tiers.py, without what only a worker asks: product names.

import { MODELS, VENDORS } from "../generated/tiers";
import { WORDS } from "../generated/words";

export type Vendor = (typeof VENDORS)[number];

const MOST_TIER = 2 ** (WORDS.offer.lanes.find((lane) => lane.name === "tier")?.width ?? 0) - 1;
const TIERS: ReadonlyMap<string, number> = new Map(MODELS.map((model) => [model.slug, model.tier]));
const SLUGS: ReadonlyMap<string, string> = new Map(MODELS.map((model) => [`${model.vendor} ${model.tier}`, model.slug]));

// Return the key of a slug, as `resources.gpu.tier` of a job names it; undefined for one that is not in the table.
export const tierOfSlug = (slug: string): number | undefined => TIERS.get(slug);

// Return a vendor by its name.
export const vendorNamed = (name: string): Vendor | undefined => VENDORS.find((one) => one.name === name);

// Return whose GPUs a job or an offer with these runtimes means, undefined for nobody's.
export const vendorOf = (runtimes: number): Vendor | undefined => VENDORS.find((one) => (one.flag & runtimes) !== 0);

// Return who makes a model, undefined for a slug that is not in the table.
export const vendorOfSlug = (slug: string): Vendor | undefined => {
  const vendor = MODELS.find((model) => model.slug === slug)?.vendor;
  return vendor === undefined ? undefined : vendorNamed(vendor);
};

// Return what an owner picks for a GPU: the slug of its model, or vendor and key where the table has no model of it.
export const gpuName = (vendor: Vendor | undefined, tier: number): string =>
  SLUGS.get(`${vendor?.name ?? ""} ${tier}`) ?? `${vendor?.name ?? ""} tier-${tier}`;

// Return whose GPU that is and its key, undefined for none.
export function gpuNamed(name: string): { readonly vendor: Vendor; readonly tier: number } | undefined {
  const [, whose = "", key = ""] = /^(\w+) tier-(\d{1,4})$/.exec(name) ?? [];
  const vendor = vendorNamed(whose) ?? vendorOfSlug(name);
  const tier = key === "" ? tierOfSlug(name) : Number(key);
  return vendor === undefined || tier === undefined || tier < 1 || tier > MOST_TIER ? undefined : { vendor, tier };
}

// Return the slug of a vendor's key, or `tier-N` for one without a model of its own.
export const slugOf = (vendor: Vendor | undefined, tier: number): string => SLUGS.get(`${vendor?.name ?? ""} ${tier}`) ?? `tier-${tier}`;
