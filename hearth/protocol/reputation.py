"""A node's record: decay, estimate, breaker. Equal bit for bit to contracts/reputation.vy, in integers throughout."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from hearth.protocol.types import BPS, Accused, NodeFlag, NodeId, NodeState, Outcome, Unit, UnitFlag

ONE: Final = 2**20
"""One observation's weight in the reputation lanes."""
MEMORY: Final = 50 * ONE
HALF_LIFE: Final = 30 * 86_400
STEP: Final = HALF_LIFE // 256
"""Seconds; what has passed decays in whole steps, and the rest of it waits for the next observation."""
SEASONED_AT: Final = 5 * ONE
BREAKER: Final = 192
"""Sixteenths at which the breaker trips: three whole failures of 64."""
AFTER_TRIP: Final = 128
"""Sixteenths that stay: one more whole failure trips it again."""
FAILURE: Final = 64
"""Sixteenths of a whole failure."""
SUCCESS: Final = 16
"""Sixteenths of a full success."""
VERDICT: Final = 10 * ONE
"""What a judge's verdict weighs, always enough for the breaker."""
SUCCESSES_A_TRIP: Final = 32
"""Full successes that take one off trips."""
ACCUSATION_TIME: Final = 3_600
"""Seconds from a decline in which the attempt starts whose success counts against who declined."""
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
    """Return the node state after one observation of `weight`, 0..ONE, of a failure up to VERDICT.

    The breaker's sum rises by each 64th of ONE that a failure fills in s, so that small ones add up and none counts for
    more than it weighs. A success takes 16 x its weight off, rounding down, so that cheap work does not heal.
    """
    steps = (now - state.rep_time) // STEP
    r, s = decay(state.r, steps), decay(state.s, steps)
    cusum, trips, count, quarantine = state.cusum, state.trips, state.count, state.quarantine
    if ok:
        r += weight
        cusum = max(0, cusum - weight * SUCCESS // ONE)
        if weight == ONE:
            count = (count + 1) % SUCCESSES_A_TRIP
            if count == 0:
                trips = max(0, trips - 1)
    else:
        cusum += (s + weight) * FAILURE // ONE - s * FAILURE // ONE
        s += weight
        if cusum >= BREAKER:
            quarantine = max(quarantine, now + min(QUARANTINE_MAX, QUARANTINE_BASE << trips))
            trips = min(15, trips + 1)
            cusum = AFTER_TRIP
    total = r + s
    if total > MEMORY:
        r, s = r * MEMORY // total, s * MEMORY // total
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


def reject(state: NodeState, now: int) -> NodeState:
    """Return the node state after a judge has rejected a result: a verdict's failure, a week aside, SLASHED."""
    observed = observe(state, False, VERDICT, now)
    until = max(observed.quarantine, now + QUARANTINE_MAX)
    return replace(observed, quarantine=until, status=observed.status | NodeFlag.SLASHED)


def fee_weight(fee: int, fee_reference: int) -> int:
    """Return what a fee weighs: ONE x min(1, fee / fee_reference), so that praise and blame both cost fees."""
    return min(ONE, ONE * fee // fee_reference)


def reclaim_weight(state: NodeState, fee: int, fee_reference: int, *, dead: bool, rationed: bool) -> int:
    """Return the weight of a reclaim of a lease that would have paid `fee`, for the node state before it.

    The first reclaim of a dead node counts its silence, as ONE, and further ones nothing. Above the hour's burn ration
    all of it counts half.
    """
    weight = fee_weight(fee, fee_reference)
    if dead:
        weight = 0 if state.silent else ONE
    return weight // 2 if rationed else weight


def accused_at_settle(accused: Accused, unit: Unit) -> NodeId:
    """Return the node that the success of a SUBMITTED unit counts against, 0 for none.

    It is another one that declined the unit, less than ACCUSATION_TIME before the attempt started that succeeded.
    """
    if unit.outcome != Outcome.OK or not unit.flags & UnitFlag.ACCUSED or accused.node == unit.node:
        return NodeId(0)
    return accused.node if unit.started < accused.at + ACCUSATION_TIME else NodeId(0)
