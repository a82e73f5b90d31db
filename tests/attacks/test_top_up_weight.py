"""Attack: a submitter raises what a node's failure weighs, after the node agreed to the lease, and has it back at once.

Bond and slash stay those of the terms, "since the node agreed to no more"; what a failure does to the node's record
does not. A top-up is money of the submitter's for one block: where the failure ends the unit, or he cancels what is
open again, he has all of it back, and no fee is paid.
"""

from __future__ import annotations

import pytest

from hearth.protocol import formulas
from hearth.protocol.reputation import ONE
from hearth.protocol.types import Billing
from tests.attacks.stages import KINDS, market
from tests.kit import world as w

DUST = 10
"""Seconds of a lease that the node agrees to."""


def _failures(kind: str, ending: str, more: int, attempts: int) -> tuple[int, int, int, int, int]:
    """Let a node fail three short leases, each topped up by `more` seconds just before; return its s and cusum, the
    seconds of its quarantine, what the submitter lost and what the node lost."""
    world = market(kind)
    node = world.register(slots=8)
    spent, stake = 0, world.staked(node)
    for _ in range(3):
        terms = world.post(
            billing=Billing.METERED, max_seconds=DUST, max_attempts=attempts, deadline=world.evm.now + 3 * w.DAY
        )
        world.claim(terms, node)
        spent += formulas.escrow_at_post(terms)
        if ending == "reclaim":
            # The last second in which it may be topped up; the node beats to the new end, and has no result.
            world.evm.at(world.unit(terms).mark - 1)
        if more:
            spent += formulas.top_up_amount(terms, world.unit(terms), more)
            world.top_up(terms, more)
        if ending == "reclaim":
            while world.evm.now < world.unit(terms).mark:
                world.nodes.send.beat(node, sender=world.operator)
                world.evm.at(min(world.unit(terms).mark, world.evm.now + w.DEAD_AFTER - 1))
            world.reclaim(terms)
        else:
            world.give_up(terms)
        if attempts > 1:
            world.cancel(terms)
    state = world.node(node).state
    assert world.credit(world.treasury) == 0
    quarantine = max(0, state.quarantine - world.evm.now)
    return state.s, state.cusum, quarantine, spent - world.credit(world.submitter), stake - world.staked(node)


@pytest.mark.xfail(strict=True, reason="a failure weighs the fee of the seconds that the unit was topped up by too")
@pytest.mark.parametrize("attempts", [1, 3])
@pytest.mark.parametrize("ending", ["give_up", "reclaim"])
@pytest.mark.parametrize("kind", KINDS)
def test_top_up__just_before_a_node_fails__adds_nothing_to_what_its_failure_weighs(
    kind: str, ending: str, attempts: int
) -> None:
    before = _failures(kind, ending, 0, attempts)
    after = _failures(kind, ending, 1_000, attempts)
    print(
        f"{kind}, {ending}: s {before[0] / ONE:.3f} -> {after[0] / ONE:.3f}, quarantine {before[2]} s -> {after[2]} s; "
        f"submitter loses {after[3] - before[3]}, node loses {before[4]} -> {after[4]}"
    )
    assert after[3] == before[3], "it cost the submitter nothing"
    assert after[:3] == before[:3]
