"""Attack: an owner judges his own node. Whatever he does with a judge of his own, he pays more than he gets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hearth.protocol import formulas
from hearth.protocol.types import TermsFlag, Verdict
from tests.attacks.stages import KINDS, market
from tests.kit import world as w
from tests.kit.evm import reverts
from tests.kit.steps import judged
from tests.kit.vault import share

PROVEN = TermsFlag.NEWCOMERS | TermsFlag.PROVEN


def _own(world: w.World, **overrides: Any) -> w.Terms:
    """Post a job of the owner's own, judged by his judge."""
    return world.post(**world.judged(**{"flags": PROVEN, "submitter": world.owner.lower(), **overrides}))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bond_bps", [0, 50_000, 900_000])
def test_launder__stake_out_without_unbonding__burns_four_tenths(kind: str, bond_bps: int) -> None:
    """Unbonding takes seven days, in which a slash still reaches the stake: a verdict must be no way round it."""
    world = market(kind)
    node = world.register(stake=100 * w.ETHER)
    terms = _own(world, bond_bps=bond_bps)
    world.nodes.send.set_ask(node, 1, sender=world.owner)
    world.claim(terms, node)
    world.submit(terms)
    bond = formulas.bond(terms)
    spent = formulas.escrow_at_post(terms)
    with reverts("nodes: shares too large"):
        world.rule(terms, Verdict.REJECT, shares=(share(world.owner, bond * 6 // 10), share(world.owner, 1), 0))
    world.rule(terms, Verdict.REJECT, shares=(share(world.owner, bond * 6 // 10), 0, 0))
    back = world.credit(world.owner) - spent
    assert back == bond * 6 // 10
    assert world.credit(w.DEAD) >= bond * 4 // 10
    # And the node is set aside for as long as unbonding would have taken.
    assert world.node(node).state.quarantine >= world.evm.now + w.UNBONDING


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("flags", [TermsFlag.NEWCOMERS, PROVEN])
def test_season__own_judge_confirms_at_once__is_refused_before_the_delay(kind: str, flags: TermsFlag) -> None:
    """Ten jobs posted, run and confirmed within one second would end a node's probation."""
    world = market(kind, policy=replace(w.POLICY, fresh_delay=3_600))
    node = world.register(slots=20)
    for _ in range(10):
        terms = _own(world, flags=flags)
        world.claim(terms, node)
        world.submit(terms)
        with reverts("jobs: too early to settle"):
            world.rule(terms, Verdict.CONFIRM, payee=world.owner)
    state = world.node(node).state
    assert (state.r, state.seasoned) == (0, False)


@pytest.mark.parametrize("kind", KINDS)
def test_rival__brings_a_newcomers_proof_early__takes_neither_its_record_nor_the_pay(kind: str) -> None:
    """Whoever confirms first gets the settler's pay: it cannot be done while the success would not count."""
    world = market(kind, policy=replace(w.POLICY, fresh_delay=3_600))
    terms, node = judged(world, flags=PROVEN)
    world.evm.warp(3_599)
    with reverts("jobs: too early to settle"):
        world.rule(terms, Verdict.CONFIRM, payee=world.stranger)
    world.evm.warp(1)
    world.rule(terms, Verdict.CONFIRM, payee=world.owner)
    assert world.node(node).state.r > 0 and world.credit(world.stranger) == 0


@pytest.mark.parametrize("kind", KINDS)
def test_season__own_judge_after_the_delay__costs_what_any_settle_does(kind: str) -> None:
    """Five references of fees, as without a judge: the judge makes washing no cheaper."""
    world = market(kind, policy=replace(w.POLICY, fresh_delay=3_600))
    price = w.POLICY.probation_price
    node = world.register(stake=200 * w.ETHER, ask=price * 10**6 // 1_000, slots=20)
    before, washed = world.credit(world.treasury), 0
    while not world.node(node).state.seasoned:
        terms = _own(world, ceiling=price * 10**6 // 1_000)
        world.evm.warp(w.POLICY.claim_ramp)
        world.nodes.send.beat(node, sender=world.operator)
        world.claim(terms, node)
        world.submit(terms)
        world.evm.warp(3_600)
        world.rule(terms, Verdict.CONFIRM, payee=world.owner)
        washed += 1
    assert world.credit(world.treasury) - before >= 5 * w.FEE_REFERENCE and washed >= 5


@pytest.mark.parametrize("kind", KINDS)
def test_void__own_judge__heals_no_record_and_pays_its_fee(kind: str) -> None:
    """VOID is no way to have leases without a trace: it takes what CONFIRM takes of the start fee."""
    world = market(kind)
    node = world.register()
    for _ in range(3):
        terms = _own(world)
        world.claim(terms, node)
        world.submit(terms)
        world.rule(terms, Verdict.VOID)
    state = world.node(node).state
    assert (state.r, state.s, state.bond) == (0, 0, 0)
    pay = formulas.pay_at_void(terms, world.unit(terms))
    assert world.credit(world.treasury) == 3 * formulas.fee_of(pay, w.POLICY) > 0


@pytest.mark.parametrize("outcome", [1, 2])
def test_accuse__own_judge_turns_a_failure_into_a_success__costs_the_whole_pay(outcome: int) -> None:
    """A rival declined a poisoned job; an honest node's exit is called a success: the accusation costs pay and fee."""
    world = market("native")
    rival = world.register(owner=world.evm.account("owner 2"), operator=world.keeper)
    node = world.register()
    terms = world.post(**world.judged(flags=PROVEN))
    world.claim(terms, rival, sender=world.keeper)
    world.decline(terms, sender=world.keeper)
    world.claim(terms, node)
    world.submit(terms, outcome=2)
    world.rule(terms, Verdict.CONFIRM, fields=outcome)
    assert (world.node(rival).state.s > 0) == (outcome == 1)
    # As much as without a judge: the submitter pays what the unit says it pays.
    assert world.credit(world.owner) + world.credit(world.treasury) == 25 * 10**15
