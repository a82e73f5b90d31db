"""Attack 5: a token that keeps a part of every transfer. A deposit is counted in full, or refused in full."""

from __future__ import annotations

import pytest

from hearth.protocol import formulas, words
from hearth.protocol.types import TermsFlag
from tests.attacks.stages import FEE, holding, market
from tests.kit import world as w
from tests.kit.evm import Reverted

# Basis points that the token keeps.
FEES = [0, 1, 2, 3, 5, 10, 50, 99, 100, 101, 500, 1_000, 2_500, 5_000, 9_999, 10_000]


def _post(world: w.World) -> int:
    terms = world.terms(flags=TermsFlag.NEWCOMERS)
    world.post(terms)
    return formulas.escrow_at_post(terms)


def _register(world: w.World) -> int:
    world.register(beat=False)
    return 100 * w.ETHER


def _add_stake(world: w.World) -> int:
    world.pay(world.nodes, "add_stake", 1, world.owner, 3, amount=3, sender=world.stranger)
    return 3


DEPOSITS = {"post": _post, "register": _register, "add_stake": _add_stake}


@pytest.mark.parametrize("name", DEPOSITS)
@pytest.mark.parametrize("bps", FEES)
def test_fee_on_transfer__each_deposit__counts_what_arrived_or_refuses(name: str, bps: int) -> None:
    world = market("erc20")
    assert world.token is not None
    world.register()
    world.token.send.set_traits(FEE)
    world.token.send.set_fee(bps)
    counted, held = world.escrow.call.tracked(), holding(world, world.escrow)
    taken = formulas.escrow_at_post(world.terms()) if name == "post" else 100 * w.ETHER if name == "register" else 3
    if taken * bps // 10_000 == 0:
        amount = DEPOSITS[name](world)
        assert world.escrow.call.tracked() - counted == holding(world, world.escrow) - held == amount
        return
    with pytest.raises(Reverted) as caught:
        DEPOSITS[name](world)
    assert caught.value.reason == "escrow: not funded"
    assert world.escrow.call.tracked() == counted
    assert holding(world, world.escrow) == held


@pytest.mark.parametrize("bps", [1, 100, 10_000])
def test_fee_on_transfer__covered_by_a_donation__never_counts_more_than_is_there(bps: int) -> None:
    """What a donor leaves may make up for the token's fee; the books still stay below the balance."""
    world = market("erc20")
    assert world.token is not None
    world.token.send.set_traits(FEE)
    world.token.send.set_fee(bps)
    world.token.send.mint(world.escrow, 10**18)
    terms = world.terms(flags=TermsFlag.NEWCOMERS)
    amount = formulas.escrow_at_post(terms)
    world.pay(world.jobs, "post", words.pack_terms(terms), (), amount=amount, sender=world.submitter)
    assert world.escrow.call.tracked() == amount <= holding(world, world.escrow)
