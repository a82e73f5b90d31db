"""Attack: a judge reaches for what is not its: another job, another node, the rest of a stake, a second end."""

from __future__ import annotations

import itertools

import pytest

from hearth.protocol import formulas, words
from hearth.protocol.types import State, TermsFlag, Verdict
from tests.attacks.stages import KINDS, STAGES, booked, holding, market, scene
from tests.kit import world as w
from tests.kit.evm import Reverted, reverts
from tests.kit.vault import share

PROVEN = TermsFlag.NEWCOMERS | TermsFlag.PROVEN


@pytest.mark.parametrize("stage", STAGES)
def test_rights__foreign_judge_at_each_stage__changes_nothing(stage: str) -> None:
    """A judge that is named elsewhere calls for this job, with its terms and with its own name in them."""
    found = scene(stage)
    world = found.world
    other = world.evm.deploy("mocks/MockJudge", world.jobs)
    mine = w.replace(found.terms, judge=other.address.lower(), challenge_window=7_200)
    before = world.evm.state_hash()
    for terms in (found.terms, mine):
        packed = words.pack_terms(terms)
        for index in (0, 1, formulas.MAX_UINT):
            with pytest.raises(Reverted):
                other.send.dispute(packed, index)
            for verdict in Verdict:
                with pytest.raises(Reverted):
                    other.send.rule(packed, index, verdict, 0, [0, 0, 0], world.stranger)
    assert world.evm.state_hash() == before


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("first", [Verdict.CONFIRM, Verdict.REJECT, Verdict.VOID])
def test_rights__second_ruling__moves_nothing_more(first: Verdict, kind: str) -> None:
    found = scene("proven", kind)
    world = found.world
    world.rule(found.terms, first)
    before = world.evm.state_hash()
    for verdict in Verdict:
        with reverts("jobs: not submitted"):
            world.rule(found.terms, verdict)
    assert world.evm.state_hash() == before


@pytest.mark.parametrize("kind", KINDS)
def test_rights__verdict_on_one_lease__leaves_the_others_of_the_node(kind: str) -> None:
    """A node that took three jobs, one of a bad judge's: the bad judge takes that lease's bond and no more."""
    world = market(kind)
    node = world.register(slots=9)
    good, plain, bad = (
        world.post(**fields) for fields in (world.judged(), {}, world.judged(flags=PROVEN, bond_bps=40_000))
    )
    for terms in (good, plain, bad):
        world.claim(terms, node)
        world.submit(terms)
    stake, bond = world.node(node).stake, formulas.bond(bad)
    most = bond * 6 // 10
    for part in (most + 1, bond, stake):
        with reverts("nodes: shares too large"):
            world.rule(bad, Verdict.REJECT, shares=(share(world.stranger, part), 0, 0))
    world.rule(bad, Verdict.REJECT, shares=(share(world.stranger, most), 0, 0))
    assert stake - world.node(node).stake == bond
    assert world.node(node).state.bond == formulas.bond(good) + formulas.bond(plain)
    assert world.lock_of(good) == world.lock_of(plain) == formulas.escrow_at_post(good)
    world.settle(plain)
    world.rule(good, Verdict.CONFIRM)
    assert world.state(good) == world.state(plain) == State.SETTLED


@pytest.mark.parametrize("kind", KINDS)
def test_rights__submitters_judge__takes_no_more_of_the_node_than_its_bond(kind: str) -> None:
    """League of judge and submitter: what they can gain is bounded by the terms that the node took."""
    for bond_bps, proven in itertools.product((0, 10_000, 500_000), (False, True)):
        world = market(kind)
        node = world.register()
        terms = world.post(**world.judged(bond_bps=bond_bps, flags=PROVEN if proven else TermsFlag.NEWCOMERS))
        world.claim(terms, node)
        world.submit(terms)
        if not proven:
            world.dispute(terms)
        bond, stake = formulas.bond(terms), world.node(node).stake
        world.rule(terms, Verdict.REJECT, shares=(share(world.submitter, bond * 6 // 10), 0, 0))
        gained = world.credit(world.submitter) - formulas.escrow_at_post(terms)
        assert gained == bond * 6 // 10
        assert stake - world.node(node).stake == bond
        assert world.credit(w.DEAD) == bond - gained


def test_rights__fields__never_pay_more_than_the_price() -> None:
    """League of judge and node: the submitter chose the judge, and can lose what the unit holds, no more."""
    world = market("native")
    node = world.register(ask=10**20)
    terms = world.post(**world.judged(billing=1))
    world.evm.warp(w.POLICY.claim_ramp)
    world.claim(terms, node)
    world.submit(terms, used=1)
    most = words.pack(words.FIELDS, {"outcome": 1, "seconds": 2**24 - 1})
    ruled = world.rule(terms, Verdict.CONFIRM, fields=most, payee=world.owner).event("Ruled")
    assert ruled["pay"] == formulas.price(terms)
    paid = world.credit(world.owner) + world.credit(world.treasury) + world.credit(world.submitter)
    assert paid == formulas.escrow_at_post(terms)


@pytest.mark.parametrize("stage", ["disputed", "proven"])
def test_rights__ruling_out_of_gas_or_refused__is_none(stage: str) -> None:
    """All or nothing: shares that Escrow refuses leave the unit, the bond and the stake as they were."""
    found = scene(stage)
    world = found.world
    before = world.evm.state_hash()
    with reverts("escrow: share for nobody"):
        world.rule(found.terms, Verdict.REJECT, shares=(1 << 160, 0, 0))
    assert world.evm.state_hash() == before
    assert booked(found) == holding(world, world.escrow)
