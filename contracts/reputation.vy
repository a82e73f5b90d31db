# pragma version 0.4.3
"""
@title Reputation: beta for rank, CUSUM for the breaker
@author Hearth
@license Apache-2.0
@notice Pure arithmetic on a node's hot word. Reputation ranks; no safety argument rests on it.
@dev Mirrors `observe` and `decay` of hearth/protocol/formulas.py bit for bit. SPEC section "Reputation".
"""

import packing

ONE: constant(uint256) = 2**20
MEMORY: constant(uint256) = 50 * 2**20
SEASONED_AT: constant(uint256) = 5 * 2**20
HALF_LIFE: constant(uint256) = 30 * 86400
BREAKER: constant(uint256) = 12
QUARANTINE_BASE: constant(uint256) = 3600
QUARANTINE_MAX: constant(uint256) = 7 * 86400
# Every lane that `observe` rewrites.
LANES: constant(uint256) = (
    (packing.U26 << packing.REP_R)
    + (packing.U26 << packing.REP_S)
    + (packing.U32 << packing.REP_TIME)
    + (packing.U8 << packing.CUSUM)
    + (packing.U32 << packing.QUARANTINE)
    + (packing.U4 << packing.TRIPS)
    + (packing.U6 << packing.COUNT)
)


@internal
@pure
def _decay(amount: uint256, passed: uint256) -> uint256:
    """
    @dev Halve every 30 days, with a quadratic approximation of 2**-x between.
    """
    halvings: uint256 = passed // HALF_LIFE
    if halvings >= 32:
        return 0
    x: uint256 = ((passed % HALF_LIFE) << 16) // HALF_LIFE
    factor: uint256 = 65536 - ((43908 * x) >> 16) + ((11140 * ((x * x) >> 16)) >> 16)
    return ((amount >> halvings) * factor) >> 16


@internal
@pure
def _observe(hot: uint256, ok: bool, weight: uint256, now: uint256) -> uint256:
    """
    @notice Fold one observation into a hot word.
    @param weight In 1/2**20; only observations of at least ONE move the breaker.
    @param now Seconds, at least the word's reputation time.
    @return The new hot word.
    """
    passed: uint256 = now - ((hot >> packing.REP_TIME) & packing.U32)
    r: uint256 = self._decay((hot >> packing.REP_R) & packing.U26, passed)
    s: uint256 = self._decay((hot >> packing.REP_S) & packing.U26, passed)
    if ok:
        r += weight
    else:
        s += weight
    total: uint256 = r + s
    if total > MEMORY:
        r = r * MEMORY // total
        s = s * MEMORY // total

    cusum: uint256 = (hot >> packing.CUSUM) & packing.U8
    trips: uint256 = (hot >> packing.TRIPS) & packing.U4
    count: uint256 = hot >> packing.COUNT
    quarantine: uint256 = (hot >> packing.QUARANTINE) & packing.U32
    if weight >= ONE:
        if ok:
            if cusum != 0:
                cusum -= 1
            count = (count + 1) % 64
            if count == 0 and trips != 0:
                trips -= 1
        else:
            cusum = min(255, cusum + 4)
            if cusum >= BREAKER:
                quarantine = max(quarantine, now + min(QUARANTINE_MAX, QUARANTINE_BASE << trips))
                trips = min(15, trips + 1)
                cusum = 8
    seasoned: uint256 = 0
    if r >= SEASONED_AT:
        seasoned = packing.SEASONED
    return (
        (hot & ~LANES)
        | (r << packing.REP_R)
        | (s << packing.REP_S)
        | (now << packing.REP_TIME)
        | (cusum << packing.CUSUM)
        | (quarantine << packing.QUARANTINE)
        | (trips << packing.TRIPS)
        | seasoned
        | (count << packing.COUNT)
    )


@internal
@pure
def _score(hot: uint256) -> uint256:
    """
    @return The mean of Beta(1 + r, 1 + s) in bps, as stored, without decay.
    """
    r: uint256 = (hot >> packing.REP_R) & packing.U26
    s: uint256 = (hot >> packing.REP_S) & packing.U26
    return 10000 * (r + ONE) // (r + s + 2 * ONE)
