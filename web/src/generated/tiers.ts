// GPU tiers: the routing key of each model, and its memory (SPEC, "GPU tiers"; hearth/protocol/gpu_tiers.py).
// Written by `python -m tools.web_tables`: change tools/web_tables/tiers.py.

export const MODELS = [
  { tier: 3, slug: "t4", vramGib: 15 },
  { tier: 4, slug: "rtx-3060", vramGib: 12 },
  { tier: 5, slug: "rtx-4060", vramGib: 8 },
  { tier: 6, slug: "rtx-3060-ti", vramGib: 8 },
  { tier: 7, slug: "rtx-a4000", vramGib: 16 },
  { tier: 8, slug: "rtx-3070", vramGib: 8 },
  { tier: 9, slug: "rtx-3070-ti", vramGib: 8 },
  { tier: 10, slug: "rtx-4060-ti", vramGib: 8 },
  { tier: 11, slug: "rtx-5060", vramGib: 8 },
  { tier: 12, slug: "rtx-5060-ti", vramGib: 8 },
  { tier: 13, slug: "rtx-a5000", vramGib: 24 },
  { tier: 14, slug: "rtx-3080", vramGib: 10 },
  { tier: 15, slug: "l4", vramGib: 22 },
  { tier: 16, slug: "rtx-4070", vramGib: 12 },
  { tier: 17, slug: "a10", vramGib: 22 },
  { tier: 18, slug: "rtx-3080-ti", vramGib: 12 },
  { tier: 19, slug: "rtx-3090", vramGib: 24 },
  { tier: 20, slug: "rtx-4070-super", vramGib: 12 },
  { tier: 21, slug: "rtx-a6000", vramGib: 48 },
  { tier: 22, slug: "a40", vramGib: 45 },
  { tier: 23, slug: "rtx-3090-ti", vramGib: 24 },
  { tier: 24, slug: "rtx-4070-ti", vramGib: 12 },
  { tier: 25, slug: "rtx-5070", vramGib: 12 },
  { tier: 26, slug: "rtx-4070-ti-super", vramGib: 16 },
  { tier: 27, slug: "rtx-4080", vramGib: 16 },
  { tier: 28, slug: "rtx-4080-super", vramGib: 16 },
  { tier: 29, slug: "rtx-5070-ti", vramGib: 16 },
  { tier: 30, slug: "rtx-5080", vramGib: 16 },
  { tier: 32, slug: "rtx-4090", vramGib: 24 },
  { tier: 34, slug: "l40", vramGib: 45 },
  { tier: 35, slug: "rtx-6000-ada", vramGib: 48 },
  { tier: 36, slug: "l40s", vramGib: 45 },
  { tier: 38, slug: "rtx-5090", vramGib: 32 },
  { tier: 39, slug: "rtx-pro-6000", vramGib: 96 },
  { tier: 41, slug: "a100-40gb", vramGib: 40 },
  { tier: 42, slug: "a100-80gb", vramGib: 80 },
  { tier: 46, slug: "h100", vramGib: 80 },
  { tier: 49, slug: "h200", vramGib: 141 },
  { tier: 50, slug: "gh200", vramGib: 96 },
  { tier: 54, slug: "b100", vramGib: 180 },
  { tier: 56, slug: "b200", vramGib: 180 },
  { tier: 58, slug: "gb200", vramGib: 185 },
] as const;

export const MAX_TIER = 63 as const;

export const NO_GPU = 0 as const;

export const OLDER_TIER = 1 as const;
