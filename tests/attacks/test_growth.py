"""Attack 26: grow the market until a loop over everything runs out of gas. No call may cost more among ten thousand.

The same calls are measured in a market of one node and one job and among NODES nodes and JOBS jobs, each with every
account and slot cold.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from hearth.protocol import formulas, words
from hearth.protocol.types import SENTINEL, NodeId, Terms, TermsFlag
from tests.attacks.stages import Scene, market
from tests.kit import world as w
from tests.kit.evm import Evm

NODES, JOBS = 10_000, 10_000
BAND = 0.01

Call = Callable[["Leaving"], Any]


@dataclass
class Leaving(Scene):
    """A scene with one more node, which is about to finish its exit."""

    leaver: NodeId


class Sample:
    """One market and jobs in every state, ready for one measured call each."""

    def __init__(self, nodes: int, jobs: int) -> None:
        self.world = world = market("native")
        self.evm: Evm = world.evm
        self.node = world.register(stake=10_000 * w.ETHER, slots=63)
        self._crowd(nodes, jobs)
        self.leaver = world.register(owner=world.stranger)
        world.nodes.send.exit_start(self.leaver, sender=world.stranger)
        self.terms: dict[str, Terms] = {}
        for name in ("open", "window", "running", "submitted", "expirable", "overdue", "noticed", "won"):
            self.terms[name] = world.post(
                flags=TermsFlag.NEWCOMERS,
                match_window=12 if name in ("won", "window") else 0,
                max_seconds=20_000 if name in ("running", "submitted") else 1_000,
                deadline=world.evm.now + (2_000 if name == "expirable" else 30 * w.DAY),
            )
        world.evm.warp(formulas.expirable_from(self.terms["expirable"]) - world.evm.now)
        world.nodes.send.beat(self.node, sender=world.operator)
        for name in ("overdue", "submitted", "running", "noticed"):
            world.claim(self.terms[name], self.node)
        world.submit(self.terms["submitted"])
        world.evm.warp(world.unit(self.terms["overdue"]).mark - world.evm.now - 200)
        world.nodes.send.beat(self.node, sender=world.operator)
        world.cancel(self.terms["noticed"])
        world.evm.warp(200)
        world.nodes.send.beat(self.node, sender=world.operator)
        world.propose(self.terms["won"], self.node)
        world.evm.warp(12)
        self.array = world.post(flags=TermsFlag.NEWCOMERS, units=max(2, jobs))
        self.evm.settle()

    def _crowd(self, nodes: int, jobs: int) -> None:
        """Register nodes and post jobs that play no part."""
        world = self.world
        offer = words.pack_offer(w.OFFER)
        data = world.nodes.encode("register", world.stranger, offer, bytes(32), w.ETHER)
        world.evm.set_balance(world.stranger, 10**30)
        for _ in range(nodes):
            world.evm.raw_call(world.nodes, data, sender=world.stranger, value=w.ETHER)
        world.evm.set_balance(world.keeper, 10**30)
        terms = world.terms(submitter=world.keeper.lower(), flags=TermsFlag.NEWCOMERS)
        amount = formulas.escrow_at_post(terms)
        for n in range(jobs):
            packed = words.pack_terms(w.replace(terms, salt=10**9 + n))
            world.evm.raw_call(world.jobs, world.jobs.encode("post", packed, ()), sender=world.keeper, value=amount)

    def gas(self, call: Call, name: str) -> int:
        """Return the gas of one call, after which everything is as before."""
        scene = Leaving(self.world, self.node, self.terms.get(name, self.array), self.leaver)
        with self.evm.isolated():
            call(scene)
            return self.evm.last_gas


def _nodes(name: str, *args: Any) -> Call:
    return lambda s: getattr(s.world.nodes.send, name)(s.node, *args, sender=s.world.owner)


def _exit_finish(scene: Leaving) -> None:
    scene.world.evm.warp(w.UNBONDING)
    scene.world.nodes.send.exit_finish(scene.leaver, sender=scene.world.keeper)


CALLS: dict[str, tuple[str, Call]] = {
    "register": ("", lambda s: s.world.register(beat=False)),
    "add_stake": (
        "",
        lambda s: s.world.pay(s.world.nodes, "add_stake", s.node, s.world.owner, 5, amount=5, sender=s.world.owner),
    ),
    "set_ask": ("", _nodes("set_ask", 7)),
    "exit_start": ("", _nodes("exit_start")),
    "exit_finish": ("", _exit_finish),
    "beat": ("", lambda s: s.world.nodes.send.beat(s.node, sender=s.world.operator)),
    "check_liveness": (
        "",
        lambda s: (s.world.evm.warp(w.DEAD_AFTER), s.world.nodes.send.check_liveness([s.node], w.ZERO))[1],
    ),
    "post": ("", lambda s: s.world.post(s.world.terms(salt=2**90))),
    "claim": ("open", lambda s: s.world.claim(s.terms, s.node)),
    "cancel open": ("open", lambda s: s.world.cancel(s.terms)),
    "propose": ("window", lambda s: s.world.propose(s.terms, s.node)),
    "ack": ("won", lambda s: s.world.ack(s.terms)),
    "submit": ("running", lambda s: s.world.submit(s.terms)),
    "decline": ("running", lambda s: s.world.decline(s.terms)),
    "give_up": ("running", lambda s: s.world.give_up(s.terms)),
    "cancel": ("running", lambda s: s.world.cancel(s.terms)),
    "settle": ("submitted", lambda s: s.world.settle(s.terms)),
    "accept": ("submitted", lambda s: s.world.accept(s.terms)),
    "close": ("noticed", lambda s: s.world.close(s.terms)),
    "reclaim": ("overdue", lambda s: s.world.reclaim(s.terms)),
    "expire": ("expirable", lambda s: s.world.expire(s.terms)),
    "claim next": ("array", lambda s: s.world.claim(s.terms, s.node, SENTINEL)),
    "cancel all": ("array", lambda s: s.world.cancel(s.terms, SENTINEL)),
    "withdraw": (
        "submitted",
        lambda s: (
            s.world.settle(s.terms),
            s.world.escrow.send.withdraw(s.world.owner, 1, sender=s.world.owner),
        )[1],
    ),
}


@pytest.mark.slow
def test_growth__ten_thousand_nodes_and_jobs__every_call_costs_the_same() -> None:
    small, large = Sample(0, 0), Sample(NODES, JOBS)
    rows, worst = [], 0.0
    for name, (job, call) in CALLS.items():
        few, many = small.gas(call, job), large.gas(call, job)
        # Calldata of larger numbers costs a few units more.
        change = (many - few) / few
        worst = max(worst, abs(change))
        rows.append(f"{name:15} {few:8} {many:8} {change:+.2%}")
    # Read last: what is read between two measured calls would be warm in the second.
    assert large.world.nodes.call.totals() & 0xFFFFFFFF == NODES + 3
    print("\n".join([f"call            alone    among {NODES} nodes and {JOBS} jobs", *rows]))
    assert worst <= BAND, "\n".join(rows)
