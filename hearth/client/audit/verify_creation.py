"""The part of the proof that is about how a market began: the transactions that created it, and its own choices."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from hearth.market.contracts import CONTRACTS
from hearth.market.creation import creation_fault
from hearth.market.profiles import DEVNET, PUBLIC
from hearth.protocol.types import LOCAL_CHAIN_ID
from hearth.protocol.units import format_duration

if TYPE_CHECKING:
    from hearth.market.reads import Market, Seats


def creation_faults(market: Market, in_time: Callable[[str], None]) -> tuple[list[str], list[str]]:
    """Return how the contracts were created otherwise than these sources do, and those of which nobody knows how.

    `in_time` is called with what is read next, and raises where the time for all is over.
    """
    network = market.network
    faults: list[str] = []
    unproven: list[str] = []
    for name in CONTRACTS:
        in_time("how it was created")
        named = network.creations.get(name)
        sent = None if named is None else market.port.transaction(named)
        if sent is None:
            unproven.append(name)
        elif fault := creation_fault(name, sent, network):
            faults.append(fault)
    return faults, unproven


def delay_faults(market: Market, seats: Seats) -> list[str]:
    """Return what is wrong with the seconds that everybody has to see a change of this market."""
    least = DEVNET.delay if market.network.job_chain_id == LOCAL_CHAIN_ID else PUBLIC.delay
    if seats.delay >= least:
        return []
    wanted = format_duration(least)
    return [f"a change waits {format_duration(seats.delay)} in the Steward, too short to be seen: at least {wanted}"]
