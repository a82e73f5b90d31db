"""Attack 15: a node arranges things so that its slash would revert, and its failed lease could not be reclaimed.

However it stands, thin stake, exit under way, other operator, other owner, fees taken, ration used up, the reclaim goes
through and takes its due, or what the hour's ration leaves of it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from hearth.protocol import formulas, words
from hearth.protocol.types import NodeFlag, TermsFlag, Verdict
from tests.attacks.stages import KINDS, Scene, market
from tests.kit import world as w
from tests.kit.evm import reverts


def _nothing(scene: Scene) -> None:
    pass


def _leave(scene: Scene) -> None:
    scene.world.nodes.send.exit_start(scene.node, sender=scene.world.owner)


def _left(scene: Scene) -> None:
    _leave(scene)
    scene.world.evm.warp(w.UNBONDING)
    with reverts("nodes: bond outstanding"):
        scene.world.nodes.send.exit_finish(scene.node, sender=scene.world.owner)


def _offered(scene: Scene) -> None:
    scene.world.nodes.send.set_operator(scene.node, scene.world.evm.account("new key"), sender=scene.world.owner)


def _other_operator(scene: Scene) -> None:
    _offered(scene)
    scene.world.nodes.send.beat(scene.node, sender=scene.world.evm.account("new key"))


def _other_owner(scene: Scene) -> None:
    heir = scene.world.evm.account("heir")
    scene.world.nodes.send.offer_owner(scene.node, heir, sender=scene.world.owner)
    scene.world.nodes.send.accept_owner(scene.node, sender=heir)


def _charged(scene: Scene) -> None:
    """Let a keeper take the liveness fee as often as it can be earned."""
    for _ in range(3):
        scene.world.evm.warp(w.DEAD_AFTER)
        scene.world.nodes.send.check_liveness([scene.node], w.ZERO, sender=scene.world.keeper)
        scene.world.nodes.send.beat(scene.node, sender=scene.world.operator)


def _raised_minimum(scene: Scene) -> None:
    scene.world.nodes.send.set_minimum_stake(10**6 * w.ETHER, sender=scene.world.deployer)
    scene.world.nodes.send.pause(sender=scene.world.deployer)


ESCAPES: dict[str, Callable[[Scene], None]] = {
    "stays": _nothing,
    "leaves": _leave,
    "unbonding over": _left,
    "offered": _offered,
    "other operator": _other_operator,
    "other owner": _other_owner,
    "charged": _charged,
    "raised minimum": _raised_minimum,
}
# Base units above what the leases reserve.
SPARE = {"none": 0, "one": 1, "fee less one": w.LIVENESS_FEE - 1, "plenty": 10**20}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("escape", ESCAPES)
def test_slash__each_way_out__is_taken_in_full(escape: str, kind: str) -> None:
    for (name, spare), leases, attempts in itertools.product(SPARE.items(), (1, 3), (1, 2)):
        world = market(kind)
        # A price of 10 ether: the bond is 5, above the minimum stake.
        terms = world.terms(
            units=leases,
            ceiling=10**22,
            max_seconds=1_000,
            max_attempts=attempts,
            keeper_fee=10**16,
            deadline=world.evm.now + 90 * w.DAY,
            flags=TermsFlag.NEWCOMERS,
        )
        bond = formulas.bond(terms)
        scene = Scene(world, world.register(stake=leases * bond + spare), terms)
        world.post(terms)
        for index in range(leases):
            world.claim(terms, scene.node, index)
        ESCAPES[escape](scene)
        scene.to(world.unit(terms).mark)
        for index in range(leases):
            before = world.node(scene.node)
            totals = words.unpack(words.TOTALS, world.nodes.call.totals())
            slashed = world.reclaim(terms, index).event("Slashed")
            after = world.node(scene.node)
            taken = slashed["reward"] + slashed["burnt"]
            burnt = totals["burnt"] if totals["hour"] == world.evm.now // 3_600 else 0
            if burnt < max(before.stake // 100, 3 * w.MINIMUM_STAKE):
                assert taken == formulas.slash_of(terms), name
            assert before.stake - after.stake == taken > 0
            assert (before.state.bond - after.state.bond, before.state.busy - after.state.busy) == (bond, 1)
            assert after.stake >= after.state.bond


@pytest.mark.parametrize("kind", KINDS)
def test_slash__smallest_amounts__pays_its_caller(kind: str) -> None:
    """Bonds of eight of the least keeper fees: a tenth, and the caller's quarter of it, are not nothing."""
    policy = w.replace(w.POLICY, min_price=0, min_keeper_fee=8)
    for price in range(1, 23):
        world = market(kind, policy=policy)
        node = world.register(ask=1)
        terms = world.terms(
            ceiling=price * 10**6, max_seconds=1, keeper_fee=8, max_attempts=1, flags=TermsFlag.NEWCOMERS
        )
        scene = Scene(world, node, terms)
        world.post(terms)
        world.claim(terms, node)
        scene.to(world.unit(terms).mark)
        slashed = world.reclaim(terms).event("Slashed")
        assert slashed["reward"] + slashed["burnt"] == formulas.bond(terms) // 10
        assert slashed["reward"] > 0
        assert world.lock_of(terms) == 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("escape", ESCAPES)
def test_verdict__each_way_out__is_taken_in_full(escape: str, kind: str) -> None:
    """A rejected result costs its whole bond, whatever its node did between submit and verdict."""
    for (name, spare), bond_bps in itertools.product(SPARE.items(), (0, 50_000)):
        world = market(kind)
        terms = world.terms(
            **world.judged(ceiling=10**22, keeper_fee=10**16, bond_bps=bond_bps, deadline=world.evm.now + 90 * w.DAY)
        )
        bond = formulas.bond(terms)
        scene = Scene(world, world.register(stake=bond + spare), terms)
        world.post(terms)
        world.claim(terms, scene.node)
        world.submit(terms)
        world.dispute(terms)
        ESCAPES[escape](scene)
        before = world.node(scene.node)
        rejected = world.rule(terms, Verdict.REJECT).event("Rejected")
        after = world.node(scene.node)
        assert rejected["burnt"] == before.stake - after.stake == bond, name
        assert (before.state.bond, after.state.bond) == (bond, 0)
        assert world.staked(scene.node) == after.stake <= spare


def test_slash__while_exiting__keeps_the_mark_and_lets_go_afterwards() -> None:
    world = market("native")
    node = world.register()
    terms = world.terms(flags=TermsFlag.NEWCOMERS, max_attempts=1)
    world.post(terms)
    world.claim(terms, node)
    scene = Scene(world, node, terms)
    _left(scene)
    world.reclaim(terms)
    assert world.node(node).state.status & NodeFlag.EXITING
    stake = world.node(node).stake
    world.nodes.send.exit_finish(node, sender=world.stranger)
    assert world.credit(world.owner) == stake
