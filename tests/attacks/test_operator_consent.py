"""Attack: a node is pushed on a key that did not ask for it, or kept by a thief of its key.

A key's first beat is its consent. Until it comes a node offered to a key is none of its own, whatever the node's owner
has coming; once it is offered, nothing that a thief of the old key does keeps the new one out.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from hearth.protocol import words
from hearth.protocol.types import SENTINEL, NodeId, Outcome, Terms, TermsFlag
from tests.attacks.stages import KINDS, market
from tests.kit import world as w
from tests.kit.evm import Reverted, reverts

UNITS = 8


def _leased(kind: str) -> tuple[w.World, NodeId, Terms]:
    """Return a market with a node that holds one lease of an array."""
    world = market(kind)
    node = world.register(stake=80 * w.ETHER, slots=4)
    terms = world.post(units=UNITS, flags=TermsFlag.NEWCOMERS)
    world.claim(terms, node, SENTINEL)
    return world, node, terms


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fresh", [False, True])
def test_offer__node_with_failures_to_come__leaves_the_victim_out_of_them(kind: str, fresh: bool) -> None:
    """Whoever owns a failing node offers it, or registers it, for a stranger's key, which never beats for it."""
    world, node, terms = _leased(kind)
    victim = world.evm.account("victim")
    own = world.register(owner=world.stranger, operator=victim)
    before = world.node(own)
    pushed = world.register(operator=victim, beat=False) if fresh else node
    if not fresh:
        for _ in range(3):
            world.claim(terms, node, SENTINEL)
        world.nodes.send.set_operator(node, victim, sender=world.owner)
    # Nothing but its own beat makes it serve: not its beats for its own node, not its other calls.
    world.nodes.send.heartbeat([own], sender=victim)
    for call in (
        lambda: world.claim(terms, pushed, SENTINEL, sender=victim),
        lambda: world.submit(terms, sender=victim),
        lambda: world.decline(terms, sender=victim),
    ):
        with reverts("nodes: not the operator"):
            call()
    if not fresh:
        world.evm.at(world.unit(terms).mark)
        for index in range(4):
            world.reclaim(terms, index)
        failed = world.node(node)
        assert failed.state.s > 0 and failed.state.silent and failed.operator == world.operator
    kept = world.node(own)
    assert (kept.operator, kept.stake) == (victim, before.stake)
    assert w.replace(kept.state, beat=0) == w.replace(before.state, beat=0)


def _acts(world: w.World, node: NodeId, terms: Terms) -> dict[str, Callable[[], object]]:
    """Return what the thief of a node's key tries before the new one has beaten."""
    thief, nodes = world.operator, world.nodes.send
    packed = words.pack_offer(w.replace(w.OFFER, ask=0))
    return {
        "beat": lambda: nodes.beat(node, sender=thief),
        "heartbeat": lambda: nodes.heartbeat([node] * 3, sender=thief),
        "claim": lambda: world.claim(terms, node, SENTINEL, sender=thief),
        "submit": lambda: world.submit(terms, sender=thief),
        "decline": lambda: world.decline(terms, outcome=Outcome.BAD_INPUT, sender=thief),
        "offer": lambda: nodes.set_operator(node, thief, sender=thief),
        "owner": lambda: nodes.accept_owner(node, sender=thief),
        "exit": lambda: nodes.exit_start(node, sender=thief),
        "finish": lambda: nodes.exit_finish(node, sender=thief),
        "update": lambda: nodes.update_offer(node, packed, bytes(32), sender=thief),
        "silence": lambda: (world.evm.warp(w.DEAD_AFTER), nodes.check_liveness([node], thief, sender=thief)),
    }


@pytest.mark.parametrize("kind", KINDS)
def test_offer__thief_of_the_old_key__cannot_keep_the_node(kind: str) -> None:
    world, node, terms = _leased(kind)
    new = world.evm.account("new key")
    world.nodes.send.set_operator(node, new, sender=world.owner)
    owner = world.node(node).owner
    for order in itertools.permutations(_acts(world, node, terms), 3):
        with world.evm.isolated():
            for name in order:
                try:
                    _acts(world, node, terms)[name]()
                except Reverted:
                    continue
            before = world.node(node)
            world.nodes.send.beat(node, sender=new)
            after = world.node(node)
            assert (after.operator, after.owner, after.exit_at) == (new, owner, 0), order
            assert (after.stake, after.state.busy, after.state.bond) == (
                before.stake,
                before.state.busy,
                before.state.bond,
            ), order
            for name in ("beat", "heartbeat", "claim", "submit", "decline", "offer"):
                with pytest.raises(Reverted):
                    _acts(world, node, terms)[name]()
