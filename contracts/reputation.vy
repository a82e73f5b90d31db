# pragma version 0.4.3
"""
@title Reputation: beta for rank, CUSUM for the breaker
@author Hearth
@license Apache-2.0
@notice Pure arithmetic on a node's state. Reputation ranks; no safety argument rests on it.
@dev Mirrors `observe` and `decay` of hearth/protocol/formulas.py bit for bit. SPEC section "Reputation".
"""

import packing

ONE: constant(uint256) = 2**20
MEMORY: constant(uint256) = 50 * 2**20
SEASONED_AT: constant(uint256) = 5 * 2**20
STEP: constant(uint256) = 10125  # seconds; 256 of them are the half-life of 30 days
BREAKER: constant(uint256) = 192  # sixteenths: three whole failures trip it
AFTER_TRIP: constant(uint256) = 128  # sixteenths: one more trips it again
FAILURE: constant(uint256) = 64  # sixteenths of a whole failure
SUCCESS: constant(uint256) = 16  # sixteenths of a full success
VERDICT: constant(uint256) = 10 * 2**20  # what a judge's verdict weighs, always enough for the breaker
SUCCESSES_A_TRIP: constant(uint256) = 32  # full successes that take one off trips
QUARANTINE_BASE: constant(uint256) = 3600
QUARANTINE_MAX: constant(uint256) = 7 * 86400
# Every lane that `observe` rewrites.
LANES: constant(uint256) = (
    packing.HOT_R_LANE
    + packing.HOT_S_LANE
    + packing.HOT_REP_TIME_LANE
    + packing.HOT_CUSUM_LANE
    + packing.HOT_QUARANTINE_LANE
    + packing.HOT_TRIPS_LANE
    + packing.HOT_COUNT_LANE
)


@internal
@pure
def _decay(amount: uint256, steps: uint256) -> uint256:
    """
    @dev Halve every 256 steps, with a quadratic approximation of 2**-x between.
    """
    halvings: uint256 = steps // 256
    if halvings >= 32:
        return 0
    # lanes: x and factor have 16 fraction bits
    x: uint256 = (steps % 256) << 8
    # lanes: see x
    factor: uint256 = 65536 - ((43908 * x) >> 16) + ((11140 * ((x * x) >> 16)) >> 16)
    # lanes: a halving each, and the fraction bits dropped
    return ((amount >> halvings) * factor) >> 16


@internal
@pure
def _observe(hot: uint256, ok: bool, weight: uint256, now: uint256) -> uint256:
    """
    @notice Fold one observation into a node state.
    @param weight In 1/2**20, at most ONE, of a failure at most VERDICT.
    @param now Seconds, at least the word's reputation time.
    @return The new node state.
    """
    # Whole steps only, the rest of the time kept: a node that is observed all the time decays as any other.
    decayed: uint256 = (hot >> packing.HOT_REP_TIME_SHIFT) & packing.HOT_REP_TIME_MASK
    steps: uint256 = (now - decayed) // STEP
    r: uint256 = (hot >> packing.HOT_R_SHIFT) & packing.HOT_R_MASK
    s: uint256 = (hot >> packing.HOT_S_SHIFT) & packing.HOT_S_MASK
    if steps != 0:
        r = self._decay(r, steps)
        s = self._decay(s, steps)
    cusum: uint256 = (hot >> packing.HOT_CUSUM_SHIFT) & packing.HOT_CUSUM_MASK
    trips: uint256 = (hot >> packing.HOT_TRIPS_SHIFT) & packing.HOT_TRIPS_MASK
    count: uint256 = (hot >> packing.HOT_COUNT_SHIFT) & packing.HOT_COUNT_MASK
    quarantine: uint256 = (hot >> packing.HOT_QUARANTINE_SHIFT) & packing.HOT_QUARANTINE_MASK
    if ok:
        r += weight
        # Less than a sixteenth is lost: cheap work does not heal.
        cusum -= min(cusum, weight * SUCCESS // ONE)
        if weight == ONE:
            count = (count + 1) % SUCCESSES_A_TRIP
            if count == 0 and trips != 0:
                trips -= 1
    else:
        # Less than a sixteenth waits in s: small failures add up, and none counts for more than it weighs.
        cusum += (s + weight) * FAILURE // ONE - s * FAILURE // ONE
        s += weight
        if cusum >= BREAKER:
            # lanes: twice as long with each trip
            quarantine = max(quarantine, now + min(QUARANTINE_MAX, QUARANTINE_BASE << trips))
            trips = min(15, trips + 1)
            cusum = AFTER_TRIP
    total: uint256 = r + s
    if total > MEMORY:
        r = r * MEMORY // total
        s = s * MEMORY // total
    seasoned: uint256 = 0
    if r >= SEASONED_AT:
        seasoned = packing.HOT_SEASONED
    return (
        (hot & ~LANES)
        | (r << packing.HOT_R_SHIFT)
        | (s << packing.HOT_S_SHIFT)
        | ((decayed + steps * STEP) << packing.HOT_REP_TIME_SHIFT)
        | (cusum << packing.HOT_CUSUM_SHIFT)
        | (quarantine << packing.HOT_QUARANTINE_SHIFT)
        | (trips << packing.HOT_TRIPS_SHIFT)
        | seasoned
        | (count << packing.HOT_COUNT_SHIFT)
    )


@internal
@pure
def _score(hot: uint256) -> uint256:
    """
    @return The mean of Beta(1 + r, 1 + s) in bps, as stored, without decay.
    """
    r: uint256 = (hot >> packing.HOT_R_SHIFT) & packing.HOT_R_MASK
    s: uint256 = (hot >> packing.HOT_S_SHIFT) & packing.HOT_S_MASK
    return 10000 * (r + ONE) // (r + s + 2 * ONE)
