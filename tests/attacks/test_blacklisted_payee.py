"""Attack 1: a token freezes one of the parties, and the job must end all the same.

The frozen party's money waits as its credit in Escrow; everybody else is paid and may leave.
"""

from __future__ import annotations

import pytest

from tests.attacks.stages import ENDED, FREEZE, LIVE, PAUSE, credits, ended, finish, holding, parties, scene
from tests.kit import world as w
from tests.kit.evm import Reverted, reverts

FROZEN = ("submitter", "owner", "operator", "keeper", "stranger", "treasury", "dead")


@pytest.mark.parametrize("stage", [*LIVE, *ENDED])
def test_freeze__each_party_at_each_stage__ends_the_job_and_keeps_the_money(stage: str) -> None:
    """Control: the same job with nobody frozen ends with the same credits."""
    plain = scene(stage, "erc20")
    calls = finish(plain)
    wanted = credits(plain.world)
    for name in FROZEN:
        frozen = scene(stage, "erc20")
        world = frozen.world
        assert world.token is not None
        world.token.send.set_traits(FREEZE)
        world.token.send.freeze(parties(world)[name], True)
        assert finish(frozen) == calls
        assert ended(frozen)
        assert credits(world) == wanted
        for other, account in parties(world).items():
            owed = world.credit(account)
            if owed == 0 or account == w.DEAD:
                continue
            if other == name:
                with reverts("token: frozen"):
                    world.escrow.send.withdraw(account, owed, sender=account)
                assert world.credit(account) == owed
                # The account itself may name another receiver.
                world.escrow.send.withdraw(world.evm.account("second home"), owed, sender=account)
            else:
                before = holding(world, account)
                world.escrow.send.withdraw(account, owed, sender=account)
                assert holding(world, account) == before + owed


@pytest.mark.parametrize("stage", LIVE)
@pytest.mark.parametrize("how", ["escrow frozen", "token paused"])
def test_freeze__whole_asset__stops_withdrawals_alone(stage: str, how: str) -> None:
    found = scene(stage, "erc20")
    world = found.world
    assert world.token is not None
    world.token.send.freeze(world.escrow, True)
    world.token.send.set_traits(FREEZE if how == "escrow frozen" else PAUSE)
    finish(found)
    assert ended(found)
    owed = world.credit(world.submitter) + world.credit(world.owner)
    assert owed > 0
    for account in (world.submitter, world.owner):
        if world.credit(account):
            with pytest.raises(Reverted, match="token: "):
                world.escrow.send.withdraw(account, world.credit(account), sender=account)
    world.token.send.set_traits(0)
    for account in (world.submitter, world.owner):
        world.escrow.send.withdraw(account, world.credit(account), sender=account)
