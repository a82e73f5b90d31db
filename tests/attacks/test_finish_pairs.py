"""Attack: a finish against submit, settle and claim in the same second, over random lives; not a base unit may differ.

Two worlds take the same steps. Where a unit ends well, one calls `finish` (with or without the next unit), the other
submits, settles to the owner, and claims the next unit where that is not refused. Metered, fuel and fixed billing,
checkpoints and chains of them, top-ups, notices, declines that accuse, failures, windows, low stakes.
"""

from __future__ import annotations

import random
from contextlib import suppress
from typing import Any

import pytest

from hearth.protocol.types import SENTINEL, Billing, State, TermsFlag, UnitFlag
from tests.attacks.stages import market
from tests.kit import world as w
from tests.kit.evm import Reverted
from tests.kit.steps import other, season

SEEDS = 6
STEPS = 80


class Pair:
    """Two worlds that live the same life."""

    def __init__(self, rng: random.Random) -> None:
        kind = rng.choice(["native", "erc20"])
        self.rng, self.worlds = rng, [market(kind), market(kind)]
        self.nodes: list[tuple[Any, str, str]] = []
        stakes = [rng.choice([2, 100]) * w.ETHER for _ in range(3)]
        slots = [rng.choice([1, 2, 4]) for _ in range(3)]
        asks = [rng.choice([25, 60, 100]) * 10**18 for _ in range(3)]
        for at, name in enumerate(("ann", "bob", "cid")):
            for world in self.worlds:
                node, operator = other(world, name, stake=stakes[at], slots=slots[at], ask=asks[at])
                if at != 2:
                    season(world, node, operator=operator)
            self.nodes.append((node, operator, name))
        for world in self.worlds:
            world.evm.at(max(one.evm.now for one in self.worlds))
        self.jobs: list[list[Any]] = []
        self.finishes = self.next = self.refused = 0

    def both(self, act: Any) -> bool:
        """Take a step in both worlds; it is refused in both or in none, for the same reason."""
        said = []
        for at, world in enumerate(self.worlds):
            try:
                act(world, at)
                said.append("")
            except Reverted as error:
                said.append(str(error))
        assert said[0] == said[1], said
        return not said[0]

    def post(self) -> None:
        rng = self.rng
        billing = rng.choice(list(Billing))
        fields: dict[str, Any] = {
            "units": rng.choice([1, 2, 3, 5]),
            "billing": billing,
            "max_attempts": rng.choice([1, 3, 8]),
            "max_seconds": rng.choice([200, 1_000]),
            "match_window": rng.choice([0, 0, 12]),
            "keeper_fee": rng.choice([10**13, 10**14]),
            "flags": TermsFlag(0)
            | rng.choice([TermsFlag.NEWCOMERS, TermsFlag.NEWCOMERS, TermsFlag.NEWCOMERS | TermsFlag.KEEP]),
        }
        if billing is Billing.METERED and rng.random() < 0.7:
            fields["checkpoint_every"] = 60
        span = rng.choice([2_000, 6_000, 10 * w.DAY])
        made: list[Any] = [None, None]

        def act(world: w.World, at: int) -> None:
            made[at] = world.post(deadline=world.evm.now + span, **fields)

        if self.both(act):
            self.jobs.append(made)

    def pick(self, move: str) -> tuple[list[Any], int, Any]:
        """Choose a unit that the move is likely for, and now and then any."""
        world, found = self.worlds[0], []
        for made in self.jobs:
            for index in range(made[0].leases):
                unit = world.unit(made[0], index)
                wanted = unit.state in (State.RUNNING, State.CLOSING)
                if move in ("claim", "propose"):
                    wanted = unit.state in (State.OPEN, State.NONE)
                found.append((wanted, made, index, unit))
        likely = [one for one in found if one[0]]
        _, made, index, unit = self.rng.choice(likely if likely and self.rng.random() < 0.9 else found)
        return made, index, unit

    def step(self) -> None:
        rng = self.rng
        move = rng.choices(
            ["post", "claim", "warp", "end", "checkpoint", "top_up", "lose", "decline", "cancel", "propose", "close"],
            [2, 10, 5, 9, 5, 2, 4, 1, 1, 1, 1],
        )[0]
        if move == "post" or not self.jobs:
            return self.post()
        terms, index, unit = self.pick(move)
        node, operator, _ = rng.choice(self.nodes)
        if move == "warp":
            seconds = rng.choice([0, 1, 10, 59, 61, 150, 400, 900])
            for world in self.worlds:
                world.evm.warp(seconds)
                for one, who, _ in self.nodes:
                    world.nodes.send.beat(one, sender=who)
            return None
        holder = next(((one, who, name) for one, who, name in self.nodes if one == unit.node), None)
        if move in ("end", "checkpoint", "lose", "decline") and holder is not None:
            operator = holder[1]
        if move == "claim":
            at_index = rng.choice([SENTINEL, index])
            resume = rng.choice([0, 0, *range(1, unit.attempts + 1)]) if at_index == index else 0
            self.both(lambda world, at: world.claim(terms[at], node, at_index, resume_from=resume, sender=operator))
        elif move == "end":
            self.end(terms, index, unit, holder)
        elif move == "checkpoint":
            self.both(lambda world, at: world.checkpoint(terms[at], index, sender=operator))
        elif move == "top_up":
            seconds = rng.choice([60, 500])
            self.both(lambda world, at: world.top_up(terms[at], seconds, index))
        elif move == "lose":
            if rng.random() < 0.5:
                self.both(lambda world, at: world.give_up(terms[at], index, sender=operator))
            else:
                self.both(lambda world, at: world.reclaim(terms[at], index))
        elif move == "decline":
            self.both(lambda world, at: world.decline(terms[at], index, sender=operator))
        elif move == "cancel":
            which = rng.choice([index, SENTINEL])
            self.both(lambda world, at: world.cancel(terms[at], which))
        elif move == "propose":
            self.both(lambda world, at: world.propose(terms[at], node, index))
            for world in self.worlds:
                world.evm.warp(12)
            self.both(lambda world, at: world.ack(terms[at], index, sender=operator))
        elif move == "close":
            self.both(lambda world, at: world.close(terms[at], index))
        return None

    def end(self, terms: list[Any], index: int, unit: Any, holder: Any) -> None:
        if unit.state not in (State.RUNNING, State.CLOSING) or holder is None or unit.flags & UnitFlag.FRESH:
            if unit.state is State.RUNNING and holder is not None:
                self.both(lambda world, at: world.submit(terms[at], index, sender=holder[1]))
                self.both(lambda world, at: world.settle(terms[at], index))
            return
        rng = self.rng
        node, operator, name = holder
        outcome, claims = rng.choice([1, 1, 1, 2, 5]), rng.random() < 0.7
        used = rng.choice([1, 50, 5_000]) if terms[0].billing == Billing.FUEL else 0
        first, second = self.worlds
        said = ["", ""]
        try:
            receipt = first.finish(terms[0], index, outcome=outcome, used=used, claims=claims, sender=operator)
            self.finishes += 1
            self.next += bool(receipt.events("Started"))
        except Reverted as error:
            said[0] = str(error)
            self.refused += 1
        try:
            second.submit(terms[1], index, outcome=outcome, used=used, sender=operator)
            second.settle(terms[1], index, payee=second.evm.account(name))
            if claims and terms[1].leases > 1:
                with suppress(Reverted):
                    second.claim(terms[1], node, SENTINEL, sender=operator)
        except Reverted as error:
            said[1] = str(error)
        assert said[0] == said[1], said

    def same(self) -> None:
        seen = []
        for at, world in enumerate(self.worlds):
            people = ["ann", "bob", "cid", "submitter", "treasury", "keeper", "owner", "stranger"]
            seen.append(
                {
                    "credits": [world.credit(world.evm.account(name)) for name in people] + [world.credit(w.DEAD)],
                    "lock": world.locked(world.submitter),
                    "nodes": [(world.node(one), world.staked(one)) for one, _, _ in self.nodes],
                    "totals": world.nodes.call.totals(),
                    "units": [
                        (world.load(made[at])[0], [world.load(made[at], i) for i in range(made[at].leases)])
                        for made in self.jobs
                    ],
                    "holds": sum(world.holds(made[at]) for made in self.jobs) - world.locked(world.submitter),
                }
            )
        assert seen[0] == seen[1]
        held = sum(self.worlds[0].holds(one) for one in self.worlds[0].posted) - seen[0]["lock"]
        assert held == 0
        for node, _ in seen[0]["nodes"]:
            assert node.stake >= node.state.bond


@pytest.mark.parametrize("seed", range(SEEDS))
def test_pairs__random_lives__finish_is_its_three_calls_to_the_unit(seed: int) -> None:
    pair = Pair(random.Random(seed))
    for _ in range(STEPS):
        pair.step()
        pair.same()
    assert pair.jobs
