"""A node's record: decay, estimate, breaker. Equal bit for bit to contracts/reputation.vy, in integers throughout."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from hearth.protocol.types import BPS, NodeState

ONE: Final = 2**20
"""One observation's weight in the reputation lanes."""
MEMORY: Final = 50 * ONE
HALF_LIFE: Final = 30 * 86_400
STEP: Final = HALF_LIFE // 256
"""Seconds; what has passed decays in whole steps, and the rest of it waits for the next observation."""
SEASONED_AT: Final = 5 * ONE
BREAKER: Final = 12
QUARANTINE_BASE: Final = 3_600
QUARANTINE_MAX: Final = 7 * 86_400


def decay(value: int, steps: int) -> int:
    """Halve a lane every 256 steps, with a quadratic approximation of 2**-x between (error < 0.3 %)."""
    halvings, rest = divmod(steps, 256)
    if halvings >= 32:
        return 0
    x = rest << 8
    factor = 65_536 - ((43_908 * x) >> 16) + ((11_140 * ((x * x) >> 16)) >> 16)
    return ((value >> halvings) * factor) >> 16


def reputation(r: int, s: int) -> int:
    """Return a node's reputation in bps: the mean of Beta(1 + r, 1 + s), as stored."""
    return BPS * (r + ONE) // (r + s + 2 * ONE)


def observe(state: NodeState, ok: bool, weight: int, now: int) -> NodeState:
    """Return the node state after one observation of `weight` (ONE = 2**20).

    The breaker moves only for weights of at least ONE, so that cheap work can neither trip nor heal it.
    """
    steps = (now - state.rep_time) // STEP
    r, s = decay(state.r, steps), decay(state.s, steps)
    if ok:
        r += weight
    else:
        s += weight
    total = r + s
    if total > MEMORY:
        r, s = r * MEMORY // total, s * MEMORY // total
    cusum, trips, count, quarantine = state.cusum, state.trips, state.count, state.quarantine
    if weight >= ONE:
        if ok:
            cusum = max(0, cusum - 1)
            count = (count + 1) % 64
            if count == 0:
                trips = max(0, trips - 1)
        else:
            cusum = min(255, cusum + 4)
            if cusum >= BREAKER:
                quarantine = max(quarantine, now + min(QUARANTINE_MAX, QUARANTINE_BASE << trips))
                trips = min(15, trips + 1)
                cusum = 8
    return replace(
        state,
        r=r,
        s=s,
        rep_time=state.rep_time + steps * STEP,
        cusum=cusum,
        trips=trips,
        count=count,
        quarantine=quarantine,
        seasoned=state.seasoned or r >= SEASONED_AT,
    )


def success_weight(fee: int, fee_reference: int) -> int:
    """Return the weight of a paid success: ONE x min(1, fee / fee_reference), so that washing costs fees."""
    return min(ONE, ONE * fee // fee_reference)


def negligence_weight(rationed: bool) -> int:
    """Return the weight of a failed lease; half above the hour's burn ration."""
    return ONE // 2 if rationed else ONE
