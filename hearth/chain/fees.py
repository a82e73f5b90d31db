"""What a transaction bids per gas, pure: a tip where nobody names one, the first bid, and what replaces it.

Fees are wei per gas.

A node takes a replacement only where both fees are higher: geth and anvil by a tenth, reth by more than a tenth. An
eighth, rounded up, is enough for all of them. Neither fee of any bid is above `most`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from hearth.chain.port import Fees

LEAST_TIP: Final = 10**6
MOST_TIP: Final = 10**9
"""The least tip that geth takes by default, and the one that it took at least for years."""


@dataclass(frozen=True, slots=True)
class Bid:
    """The two fees of a transaction: at most `max_fee` is paid, `priority_fee` of it to the block's builder."""

    max_fee: int
    priority_fee: int


def usual_tip(base_fee: int) -> int:
    """Return a tip that clients take by default, and that at most doubles the price where gas is not nearly free."""
    return min(MOST_TIP, max(LEAST_TIP, base_fee))


def opening(fees: Fees, most: int) -> Bid | None:
    """Pay for six blocks of rising base fee; None where the base fee is above `most`."""
    if fees.base_fee > most:
        return None
    max_fee = min(most, 2 * fees.base_fee + fees.priority_fee)
    return Bid(max_fee, min(max_fee, fees.priority_fee))


def raised(last: Bid, fees: Fees, most: int) -> Bid | None:
    """Return what replaces a bid: an eighth more, or what is asked now; None where no pool would take one of `most`."""
    priority = max(bumped(last.priority_fee), fees.priority_fee)
    max_fee = max(bumped(last.max_fee), min(most, 2 * fees.base_fee + priority))
    return None if max_fee > most else Bid(max_fee, min(max_fee, priority))


def bumped(fee: int) -> int:
    """Raise a fee by an eighth, rounded up."""
    return fee + max(1, -(-fee // 8))
