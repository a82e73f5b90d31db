// What proposals are ranked by. Mirrors `score`, `seed`, `lot`, `ranked` and `key` of hearth/protocol/formulas.py.

import { BPS, BUCKET } from "../generated/bounds";
import type { Hex } from "./bytes";
import { floorDiv, floorDivInt, maxBig, small } from "./numbers";
import { reputation } from "./reputation";
import { keccakOf } from "./terms";
import type { Needs, NodeState, Offer, Terms } from "./types";
import { zoneDistance } from "./zones";

const TIER_STEP = 100;
const DISTANCE_STEP = 666;
const LOT_BITS = 40;
const LOT_DIGITS = 10;

// Return S, 0..1e8: price 40 %, reputation 30 %, hardware 20 %, distance 10 %, less the load penalty. Rates are base
// units x 1e6 per second. Throws DIVIDE_BY_ZERO for a ceiling or an offer of nothing.
export function score(needs: Needs, ceiling: bigint, rate: bigint, offer: Offer, state: NodeState): number {
  const p = floorDiv((ceiling - rate) * BPS, ceiling);
  const r = BigInt(reputation(state.r, state.s));
  const h = floorDiv(
    4n * share(needs.vramGib, offer.vramGib) +
      2n * (needs.tier === 0 ? BPS : maxBig(0n, BPS - BigInt(TIER_STEP * (offer.tier - needs.tier)))) +
      share(needs.ramGib, offer.ramGib) +
      share(needs.cores, offer.cores),
    8n,
  );
  const g = needs.zoneMask === 0 ? BPS : BPS - BigInt(DISTANCE_STEP * zoneDistance(needs.home, offer.zone));
  const load = 300n * floorDiv(BigInt(state.busy) * BPS, BigInt(offer.slots));
  return small(maxBig(0n, 4_000n * p + 3_000n * r + 2_000n * h + 1_000n * g - load));
}

// Return the seed of a unit's lot.
export const seed = (job: Hex, index: number, attempts: number): Hex =>
  keccakOf([job, BigInt(index), BigInt(attempts)]);

// Return a node's 40-bit lot.
export const lot = (unitSeed: Hex, node: number): number =>
  Number.parseInt(keccakOf([unitSeed, BigInt(node)]).slice(-LOT_DIGITS), 16);

// Return the score that a proposal's key is made of: replicas but the first go by lot alone.
export const ranked = (terms: Terms, index: number, unitScore: number): number =>
  terms.replicas > 1 && index > 0 ? 0 : unitScore;

// Return the 48-bit key of a proposal: the score's bucket, then the lot. The strictly larger key wins.
export const key = (unitScore: number, unitSeed: Hex, node: number): number =>
  floorDivInt(unitScore, BUCKET) * 2 ** LOT_BITS + lot(unitSeed, node);

const share = (need: number, offer: number): bigint =>
  offer === 0 ? BPS : floorDiv(BigInt(need) * BPS, BigInt(offer));
