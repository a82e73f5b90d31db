// GPU vendors and tiers by their slugs. Mirrors hearth/protocol/gpu_tiers.py, without what only a worker asks: product names.

import { MODELS, VENDORS } from "../generated/tiers";

export type Vendor = (typeof VENDORS)[number];

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

// Return the slug of a vendor's key, or `tier-N` for one without a model of its own.
export const slugOf = (vendor: Vendor | undefined, tier: number): string => SLUGS.get(`${vendor?.name ?? ""} ${tier}`) ?? `tier-${tier}`;
