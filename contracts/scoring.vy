# pragma version 0.4.3
"""
@title Scoring: how well a node suits a unit
@author Hearth
@license Apache-2.0
@notice Price 40 %, reputation 30 %, hardware 20 %, distance 10 %, less a penalty for load. Exact integers.
@dev Mirrors `score` of hearth/protocol/formulas.py bit for bit. SPEC section "Matching".
"""

import packing
import reputation

BPS: constant(uint256) = 10000
# Distances 0..15 of 16 x 16 zones, four rows a word; hearth/protocol/zones.py says where they come from.
DISTANCES: constant(uint256[4]) = [
    115791591011990179359091437303021369747695134853901057961635486664844191822896,
    105740001193556721429311851434829242014945790590958002647421758736734773881205,
    113942239391186978340552839206099580411076375436677144238375641707395828547274,
    2447082185508041999960633072839199160471848498945888538459750667391987089388,
]


@internal
@pure
def _share(need: uint256, offer: uint256) -> uint256:
    if offer == 0:
        return BPS
    return need * BPS // offer


@internal
@pure
def _distance(a: uint256, b: uint256) -> uint256:
    # lanes: four zones a word
    row: uint256 = DISTANCES[a >> 2]
    # lanes: 16 rows of 4 bits for each of its zones
    return (row >> (((a & 3) << 6) | (b << 2))) & 15


@internal
@pure
def _score(needs: uint256, ceiling: uint256, rate: uint256, offer: uint256, hot: uint256) -> uint256:
    """
    @notice Rate a node whose gates hold for a unit.
    @param ceiling The unit's highest rate, not zero; `rate` is at most this.
    @return 0..1e8, higher is better.
    """
    price: uint256 = (ceiling - rate) * BPS // ceiling

    # Who asks for no tier does not prefer a card that is said to be weak.
    tier: uint256 = 0
    gap: uint256 = 0
    if needs & packing.NEEDS_TIER_MASK != 0:
        gap = 100 * ((offer & packing.OFFER_TIER_MASK) - (needs & packing.NEEDS_TIER_MASK))
    if gap < BPS:
        tier = BPS - gap
    vram: uint256 = self._share(
        (needs >> packing.NEEDS_VRAM_GIB_SHIFT) & packing.NEEDS_VRAM_GIB_MASK,
        (offer >> packing.OFFER_VRAM_GIB_SHIFT) & packing.OFFER_VRAM_GIB_MASK,
    )
    ram: uint256 = self._share(
        (needs >> packing.NEEDS_RAM_GIB_SHIFT) & packing.NEEDS_RAM_GIB_MASK,
        (offer >> packing.OFFER_RAM_GIB_SHIFT) & packing.OFFER_RAM_GIB_MASK,
    )
    cores: uint256 = self._share(
        (needs >> packing.NEEDS_CORES_SHIFT) & packing.NEEDS_CORES_MASK,
        (offer >> packing.OFFER_CORES_SHIFT) & packing.OFFER_CORES_MASK,
    )
    hardware: uint256 = (4 * vram + 2 * tier + ram + cores) // 8

    near: uint256 = BPS
    if (needs >> packing.NEEDS_ZONE_MASK_SHIFT) & packing.NEEDS_ZONE_MASK_MASK != 0:
        near = BPS - 666 * self._distance(
            (needs >> packing.NEEDS_HOME_SHIFT) & packing.NEEDS_HOME_MASK,
            (offer >> packing.OFFER_ZONE_SHIFT) & packing.OFFER_ZONE_MASK,
        )

    load: uint256 = 300 * (
        ((hot >> packing.HOT_BUSY_SHIFT) & packing.HOT_BUSY_MASK)
        * BPS // ((offer >> packing.OFFER_SLOTS_SHIFT) & packing.OFFER_SLOTS_MASK)
    )
    total: uint256 = 4000 * price + 3000 * reputation._score(hot) + 2000 * hardware + 1000 * near
    if total <= load:
        return 0
    return total - load
