// GPU tiers by their slugs. Mirrors hearth/protocol/gpu_tiers.py, without what only a worker asks: product names.

import { MODELS } from "../generated/tiers";

const TIERS: ReadonlyMap<string, number> = new Map(MODELS.map((model) => [model.slug, model.tier]));
const SLUGS: ReadonlyMap<number, string> = new Map(MODELS.map((model) => [model.tier, model.slug]));

// Return the key of a slug, as `resources.gpu.tier` of a job names it; undefined for one that is not in the table.
export const tierOfSlug = (slug: string): number | undefined => TIERS.get(slug);

// Return the slug of a key, or `tier-N` for one without a model of its own.
export const slugOf = (tier: number): string => SLUGS.get(tier) ?? `tier-${tier}`;
