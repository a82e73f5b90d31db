"""Attack 6: the governor changes the fee, and everything else that he can, while a job is under way.

The job must end as if nothing had happened: its parameters were frozen at post.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from hearth.protocol import formulas, words
from hearth.protocol.types import Policy, TermsFlag
from tests.attacks.stages import KINDS, LIVE, STAGES, Scene, credits, finish, market, scene
from tests.kit import world as w

HARSH = replace(
    w.POLICY,
    fee_bps=1_000,
    min_bond_bps=60_000,
    min_price=10**18,
    min_keeper_fee=10**17,
    probation_price=0,
    min_match_window=300,
    ack_time=2,
    open_claim_after=3_600,
    cancel_notice=0,
    grace_floor=3_600,
    start_fee_seconds=4_095,
)
KIND = replace(w.POLICY, fee_bps=0, min_bond_bps=1, grace_floor=1, ack_time=600, probation_price=0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stage", LIVE)
@pytest.mark.parametrize("policy", [HARSH, KIND], ids=["harsh", "kind"])
def test_set_policy__at_each_stage__changes_nothing_for_the_job(stage: str, policy: Policy, kind: str) -> None:
    """Control: the same job without the change, to the unit and to the credit."""
    plain, changed = scene(stage, kind), scene(stage, kind)
    changed.world.rules.send.set_policy(words.pack_policy(policy), sender=changed.world.deployer)
    changed.world.rules.send.drop_previous_policy(sender=changed.world.deployer)
    assert finish(plain) == finish(changed)
    assert plain.world.evm.now == changed.world.evm.now
    assert credits(plain.world) == credits(changed.world)
    assert [plain.world.load(plain.terms, i) for i in range(3)] == [
        changed.world.load(changed.terms, i) for i in range(3)
    ]
    assert plain.world.node(plain.node) == changed.world.node(changed.node)


def test_set_policy__then_a_whole_life__pays_the_fee_of_the_post() -> None:
    """The life from claim to payment happens under the new policy; the next job pays the new fee."""
    found = scene("open")
    world = found.world
    world.rules.send.set_policy(words.pack_policy(HARSH), sender=world.deployer)
    world.claim(found.terms, found.node)
    world.submit(found.terms)
    settled = world.settle(found.terms).event("Settled")
    assert settled["fee"] == settled["pay"] * w.POLICY.fee_bps // 10_000 > 0

    fresh = market("native", policy=HARSH)
    terms = fresh.terms(keeper_fee=10**17, ceiling=10**21, max_seconds=3_600, flags=TermsFlag.NEWCOMERS)
    other = Scene(fresh, fresh.register(stake=1_000 * w.ETHER), terms)
    STAGES["submitted"](other)
    settled = fresh.settle(other.terms).event("Settled")
    assert settled["fee"] == settled["pay"] * 1_000 // 10_000 == formulas.fee_of(settled["pay"], HARSH)
