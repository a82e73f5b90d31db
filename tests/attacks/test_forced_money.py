"""Attack 36: money that arrives uncalled, by a mint, a block reward or a self-destruct, must break nothing."""

from __future__ import annotations

import pytest

from tests.attacks.stages import KINDS, LIVE, Scene, booked, credits, ended, finish, holding, scene
from tests.kit import world as w
from tests.kit.evm import Contract, reverts

AMOUNTS = (1, 2**95)


def _force(found: Scene, target: Contract, amount: int) -> None:
    """Give `amount` to a contract without any call to it."""
    world = found.world
    if world.token is not None:
        world.token.send.mint(target, amount)
        return
    # Init code that destroys itself in favour of the target: PUSH20 address, SELFDESTRUCT.
    world.evm.set_balance(world.stranger, world.evm.balance(world.stranger) + amount)
    world.evm.deploy_code(b"\x73" + bytes.fromhex(target.address[2:]) + b"\xff", sender=world.stranger, value=amount)
    assert world.evm.balance(target) >= amount


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stage", LIVE)
def test_donation__to_every_contract_at_each_stage__changes_nobodys_books(stage: str, kind: str) -> None:
    """Control: the same job without donations."""
    plain = scene(stage, kind)
    calls = finish(plain)
    for amount in AMOUNTS:
        found = scene(stage, kind)
        world = found.world
        for target in (world.escrow, world.nodes, world.jobs, world.lens):
            _force(found, target, amount)
        assert finish(found) == calls
        assert ended(found)
        assert credits(world) == credits(plain.world)
        assert world.node(found.node) == plain.world.node(plain.node)
        assert holding(world, world.escrow) == booked(found) + amount
        # Everybody leaves with what is his, and no one with the donation.
        for account in (world.owner, world.submitter, world.treasury, world.stranger, world.keeper):
            owed = world.credit(account)
            if owed:
                world.escrow.send.withdraw(account, owed, sender=account)
            with reverts("escrow: short"):
                world.escrow.send.withdraw(account, 1, sender=account)


@pytest.mark.parametrize("kind", KINDS)
def test_donation__before_everything__whole_life_works(kind: str) -> None:
    """Deposits, too, are right with money already there: before the first registration, before the post."""
    plain, found = scene("settled", kind), scene("open", kind)
    world = found.world
    for target in (world.escrow, world.nodes, world.jobs, world.lens):
        _force(found, target, 7)
    other = world.terms(flags=found.terms.flags)
    world.post(other)
    node = world.register(owner=world.keeper, operator=world.stranger)
    world.pay(world.nodes, "add_stake", node, world.keeper, 5, amount=5, sender=world.keeper)
    assert world.staked(node) == 100 * w.ETHER + 5
    world.claim(other, found.node)
    world.evm.warp(5)
    world.submit(other)
    world.settle(other)
    assert credits(world) == credits(plain.world)


@pytest.mark.parametrize("name", ["nodes", "jobs", "lens", "escrow"])
def test_donation__plain_transfer_of_coin__is_refused(name: str) -> None:
    """No contract takes coin without a call that says what for."""
    found = scene("open")
    target = getattr(found.world, name)
    before = found.world.evm.state_hash()
    with reverts(""):
        found.world.evm.raw_call(target, b"", sender=found.world.stranger, value=1)
    assert found.world.evm.state_hash() == before
