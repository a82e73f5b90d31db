"""What a transaction bids: within what it may pay, and high enough for every pool, whatever fees are asked."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hearth.chain.fees import Bid, bumped, opening, raised
from hearth.chain.port import Fees

GWEI = 10**9
WEI = st.integers(0, 1 << 62)
ASKED = st.builds(Fees, WEI, WEI)


def is_replacement(new: Bid, old: Bid) -> bool:
    """Say whether the strictest pool takes it: both fees an eighth higher, in whole wei."""
    return new.max_fee * 8 >= old.max_fee * 9 and new.priority_fee * 8 >= old.priority_fee * 9


@given(ASKED, st.lists(ASKED, max_size=12), WEI)
def test_bids__any_fees_that_are_asked__stay_within_and_each_replaces_the_last(
    first: Fees, later: list[Fees], most: int
) -> None:
    bid = opening(first, most)
    assert (bid is None) == (first.base_fee > most)
    for asked in later:
        if bid is None:
            return
        assert 0 <= bid.priority_fee <= bid.max_fee <= most
        new = raised(bid, asked, most)
        if new is None:
            assert bumped(bid.max_fee) > most, "only the cap ends the raising"
        else:
            assert is_replacement(new, bid) and new.max_fee > bid.max_fee and new.priority_fee > bid.priority_fee
        bid = new


@given(ASKED, WEI)
def test_raised__spike_within_the_cap__is_bid_at_once(asked: Fees, most: int) -> None:
    new = raised(Bid(0, 0), asked, most)
    assert new is None or new.max_fee >= min(most, asked.base_fee)


def test_bumped__is_an_eighth_rounded_up_and_never_nothing() -> None:
    assert [bumped(fee) for fee in (0, 1, 8, 9, 16, 8 * GWEI)] == [1, 2, 9, 11, 18, 9 * GWEI]
