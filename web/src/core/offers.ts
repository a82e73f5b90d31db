// What live nodes offer and ask, cheapest first, and the same by tier and by zone. `offersOf` mirrors `offers` of
// hearth/client/nodes/workers.py. Asks are rates, base units x 1e6 per second.

import { ZONE_COUNT } from "../generated/bounds";
import { RUNTIME, STATUS } from "../generated/states";
import { HearthError } from "./errors";
import { reputation } from "./reputation";
import { compareBig } from "./chart-series";
import { askInForce, quarantinedUntil, statusOf } from "./status";
import { slugOf, tierOfSlug, vendorOf, vendorOfSlug, type Vendor } from "./tiers";
import type { Node, Offer } from "./types";
import { type Asset, gibCeil, parseRate, parseSize } from "./units";

// One slot of a live node, and how many of them a job could take now; `tier` is "tier-N" where N is no model's key, "" without a GPU.
export interface Offered {
  readonly node: number;
  readonly ask: bigint;
  readonly gpus: number;
  readonly tier: string;
  readonly vramGib: number;
  readonly cores: number;
  readonly ramGib: number;
  readonly zone: number;
  readonly slots: number;
  readonly free: number;
  readonly probation: boolean;
  readonly quarantined: number | null;
  readonly reputation: number;
  readonly runtimes: readonly string[];
}

// What a reader asks for: this GPU or a better one, at least so much of its memory, at most this ask, one zone.
export interface Wanted {
  readonly vendor: Vendor | undefined;
  readonly tier: number;
  readonly vramGib: bigint;
  readonly most: bigint | undefined;
  readonly zone: number | undefined;
}

// As much of a market as tells who is live.
export interface Rules {
  readonly deadAfter: number;
  readonly minimumStake: bigint;
}

const ANYTHING: Wanted = { vendor: undefined, tier: 0, vramGib: 0n, most: undefined, zone: undefined };

// Read what is asked for as it is written, "" for no wish: a slug, "40" (GiB) or "40GiB", "2/h", a zone's slug. Throws
// UNKNOWN_TIER, UNKNOWN_ZONE, BAD_SIZE, BAD_RATE, BAD_AMOUNT.
export function wantedOf(
  texts: { readonly gpu: string; readonly vram: string; readonly most: string; readonly zone: string },
  zones: readonly { readonly number: number; readonly slug: string }[],
  asset: Asset,
): Wanted {
  const { gpu, vram, most, zone } = texts;
  const tier = gpu === "" ? 0 : tierOfSlug(gpu);
  if (tier === undefined) throw new HearthError("UNKNOWN_TIER", "the link names a GPU that is not in the tier table", "pick one of the list");
  const place = zones.find((one) => one.slug === zone)?.number;
  if (zone !== "" && place === undefined) throw new HearthError("UNKNOWN_ZONE", "the link names a zone that is none", "pick one of the map");
  return {
    vendor: vendorOfSlug(gpu),
    tier,
    vramGib: vram === "" ? 0n : gibCeil(parseSize(/^[0-9]+$/.test(vram) ? `${vram}GiB` : vram)),
    most: most === "" ? undefined : parseRate(most, asset),
    zone: place,
  };
}

// Return the live nodes' offers that fit, cheapest first.
export function offersOf(nodes: readonly Node[], now: number, rules: Rules, wanted = ANYTHING): Offered[] {
  const { vendor, tier, vramGib, most, zone } = wanted;
  return nodes
    .filter((node) => isLive(node, now, rules) && (vendor === undefined || vendor === vendorOfOffer(node.offer)) && node.offer.tier >= tier && BigInt(node.offer.vramGib) >= vramGib)
    .map((node) => offered(node, now))
    .filter((one) => (most === undefined || one.ask <= most) && (zone === undefined || one.zone === zone))
    .sort((a, b) => compareBig(a.ask, b.ask) || a.node - b.node);
}

// A step of the asks of one tier: who takes that ask has so many free slots, and all cheaper ones besides.
export interface Rung extends Offered {
  readonly upTo: number;
}

export interface Ladder {
  // The slug of a tier, "" for nodes without a GPU.
  readonly tier: string;
  readonly rungs: readonly Rung[];
  readonly slots: number;
  readonly free: number;
}

// Return the asks by tier, those without a GPU first, then the weaker ones; `offers` are the cheapest first.
export function laddersOf(offers: readonly Offered[]): Ladder[] {
  const found = new Map<string, Rung[]>();
  for (const one of offers) {
    const rungs = found.get(one.tier) ?? [];
    rungs.push({ ...one, upTo: (rungs.at(-1)?.upTo ?? 0) + one.free });
    found.set(one.tier, rungs);
  }
  return [...found]
    .map(([tier, rungs]) => ({ tier, rungs, slots: rungs.reduce((sum, one) => sum + one.slots, 0), free: rungs.at(-1)?.upTo ?? 0 }))
    .sort((a, b) => (tierOfSlug(a.tier) ?? 0) - (tierOfSlug(b.tier) ?? 0));
}

// What stands in one zone: live nodes, silent ones, the live ones' free slots, their cheapest ask.
export interface Tile {
  readonly zone: number;
  readonly live: number;
  readonly silent: number;
  readonly free: number;
  readonly cheapest: bigint | undefined;
}

// Return a tile for each zone, in their order.
export function tilesOf(nodes: readonly Node[], now: number, rules: Rules): Tile[] {
  const offers = offersOf(nodes, now, rules);
  const silent = nodes.filter((node) => statusOf(node, now, rules.deadAfter, rules.minimumStake) === STATUS.INACTIVE);
  return Array.from({ length: ZONE_COUNT }, (_, zone) => {
    const here = offers.filter((one) => one.zone === zone);
    return {
      zone,
      live: here.length,
      silent: silent.filter((node) => node.offer.zone === zone).length,
      free: here.reduce((sum, one) => sum + one.free, 0),
      cheapest: here[0]?.ask,
    };
  });
}

const isLive = (node: Node, now: number, { deadAfter, minimumStake }: Rules): boolean =>
  statusOf(node, now, deadAfter, minimumStake) === STATUS.ACTIVE;

function offered(node: Node, now: number): Offered {
  const { offer, state } = node;
  const quarantined = quarantinedUntil(node, now);
  return {
    node: node.id,
    ask: askInForce(node, now),
    gpus: offer.gpuCount,
    tier: offer.gpuCount === 0 ? "" : slugOf(vendorOf(offer.runtimes), offer.tier),
    vramGib: offer.vramGib,
    cores: offer.cores,
    ramGib: offer.ramGib,
    zone: offer.zone,
    slots: offer.slots,
    free: quarantined === null ? Math.max(0, offer.slots - state.busy) : 0,
    probation: !state.seasoned,
    quarantined,
    reputation: reputation(state.r, state.s),
    runtimes: Object.entries(RUNTIME).filter(([, flag]) => (offer.runtimes & flag) !== 0).map(([name]) => name.toLowerCase()),
  };
}

// Whose GPUs an offer has.
const vendorOfOffer = (offer: Offer): Vendor | undefined => (offer.gpuCount === 0 ? undefined : vendorOf(offer.runtimes));
