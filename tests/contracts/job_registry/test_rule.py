"""JobRegistry.rule: the four verdicts, who may give them and when, and every split of money that follows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hearth.protocol import formulas, reputation, words
from hearth.protocol.reputation import ONE
from hearth.protocol.types import Billing, NodeFlag, NodeId, Outcome, State, Terms, TermsFlag, UnitFlag, Verdict
from tests.kit.evm import reverts
from tests.kit.steps import (
    BOND,
    BUDGET,
    FEE,
    LEASE,
    PAY,
    SETTLE_PAY,
    STALE,
    VOID_FEE,
    VOID_PAY,
    WINDOW,
    around,
    credited,
    disputed,
    judged,
    node_state,
    proven,
    running,
    season,
    submitted,
)
from tests.kit.vault import share
from tests.kit.world import DAY, ETHER, FEE_REFERENCE, POLICY, ZERO, World

RELEASE, CONFIRM, REJECT, VOID = Verdict
PROVEN = TermsFlag.NEWCOMERS | TermsFlag.PROVEN
CONFIRMED = {"owner": PAY - FEE, "treasury": FEE, "submitter": BUDGET - PAY - SETTLE_PAY}
VOIDED = {"owner": VOID_PAY - VOID_FEE, "treasury": VOID_FEE, "submitter": BUDGET - VOID_PAY}


def _fields(outcome: int, seconds: int = 0) -> int:
    return words.pack(words.FIELDS, {"outcome": outcome, "seconds": seconds})


def _event(world: World, terms: Terms, node: NodeId, **fields: Any) -> dict[str, Any]:
    """Return what `Ruled` must say of a one-lease job."""
    named = {"job_id": world.id_of(terms), "index": 0, "node": node, "word": world.load(terms)[1]}
    return named | {"pay": 0, "fee": 0, "taken": 0} | fields


# ---- release ----


def test_rule__release__makes_it_submitted_again_and_moves_nothing(market: World) -> None:
    terms, node = judged(market)
    before, hot = market.load(terms), node_state(market, node)
    market.evm.warp(7)
    market.dispute(terms)
    market.evm.warp(7)
    with credited(market) as got:
        receipt = market.rule(terms, RELEASE)
    assert got == {} and market.lock_of(terms) == BUDGET
    assert market.load(terms) == before and node_state(market, node) == hot
    assert receipt.event("Ruled") == _event(market, terms, node, verdict=RELEASE)


def test_rule__release_after_the_window__is_settled_at_once(world: World) -> None:
    """The mark stays where it was: a dispute delays what it held, and nothing more."""
    terms, _ = disputed(world)
    world.evm.warp(WINDOW + 600)
    world.rule(terms, RELEASE)
    with reverts("jobs: too late to dispute"):
        world.dispute(terms)
    with credited(world) as got:
        world.settle(terms)
    assert got["keeper"] == 4 * SETTLE_PAY and got["owner"] == PAY - FEE


def test_rule__release_of_a_metered_unit__pays_for_no_second_of_the_dispute(world: World) -> None:
    terms, _ = disputed(world, billing=Billing.METERED)
    world.evm.warp(500)
    world.rule(terms, RELEASE)
    world.accept(terms)
    assert world.credit(world.owner) == 25 * 100 * 10**12 * 95 // 100


# ---- confirm ----


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("flags", [TermsFlag.NEWCOMERS, PROVEN])
def test_rule__confirm__pays_as_a_settle_at_once(market: World, held: bool, flags: TermsFlag) -> None:
    terms, node = judged(market, flags=flags)
    if held:
        market.dispute(terms)
    with credited(market) as got:
        receipt = market.rule(terms, CONFIRM, payee=market.stranger)
    assert got == CONFIRMED | {"stranger": SETTLE_PAY}
    assert market.lock_of(terms) == 0
    unit = market.unit(terms)
    assert (unit.state, unit.outcome, unit.mark) == (State.SETTLED, Outcome.OK, market.evm.now)
    assert receipt.event("Ruled") == _event(market, terms, node, verdict=CONFIRM, pay=PAY, fee=FEE)
    assert receipt.events("Settled") == []
    state = node_state(market, node)
    assert (state.bond, state.r, state.count, state.s) == (0, ONE, 1, 0)


@pytest.mark.parametrize("late", [0, WINDOW, WINDOW + 600, 9 * DAY])
def test_rule__confirm__pays_its_payee_without_a_ramp(world: World, late: int) -> None:
    """No judge is paid for letting time pass."""
    terms, _ = proven(world)
    world.evm.warp(late)
    with credited(world) as got:
        world.rule(terms, CONFIRM, payee=world.keeper)
    assert got == CONFIRMED | {"keeper": SETTLE_PAY}


def test_rule__confirm_for_nobody_named__pays_the_judge(world: World) -> None:
    terms, _ = proven(world)
    with credited(world) as got:
        world.rule(terms, CONFIRM)
    assert got == CONFIRMED
    assert world.credit(world.judge.address) == SETTLE_PAY


@pytest.mark.parametrize(("outcome", "ok"), [(Outcome.OK, True), (Outcome.EXIT, False), (Outcome.OUT_OF_MEMORY, False)])
def test_rule__confirm__counts_what_ended_well(world: World, outcome: Outcome, ok: bool) -> None:
    terms, node = running(world, **world.judged())
    world.submit(terms, outcome=outcome)
    world.rule(terms, CONFIRM)
    assert node_state(world, node).r == (ONE if ok else 0)


def test_rule__confirm_in_an_array__counts_the_end_by_its_outcome(world: World) -> None:
    node, terms = world.register(), world.post(**world.judged(units=3))
    for index in range(3):
        world.claim(terms, node, index)
        world.submit(terms, index, outcome=Outcome.OK if index else Outcome.TRAP)
    assert world.rule(terms, CONFIRM, 0).event("Ruled")["index"] == 0
    world.rule(terms, CONFIRM, 1)
    world.rule(terms, CONFIRM, 2, fields=_fields(Outcome.EXIT))
    header = world.header(terms)
    assert (header.done, header.failed) == (1, 2)
    assert world.lock_of(terms) == 0


# ---- confirm with other fields ----


@pytest.mark.parametrize("seconds", [1, 16, 999, 1_000, 1_001, 2**24 - 1])
def test_rule__confirm_with_fields__replaces_outcome_and_fuel(market: World, seconds: int) -> None:
    terms, node = running(market, **market.judged(billing=Billing.FUEL))
    market.submit(terms, used=500)
    before = market.unit(terms)
    with credited(market) as got:
        market.rule(terms, CONFIRM, fields=_fields(Outcome.TIMEOUT, seconds), payee=market.keeper)
    pay = 25 * 10**12 * min(1_000, seconds)
    fee = pay * 500 // 10_000
    assert got == {
        "owner": pay - fee,
        "treasury": fee,
        "keeper": SETTLE_PAY,
        "submitter": BUDGET - pay - SETTLE_PAY,
    }
    expected = replace(before, state=State.SETTLED, outcome=Outcome.TIMEOUT, seconds=seconds)
    assert market.unit(terms) == expected
    assert node_state(market, node).r == 0


@pytest.mark.parametrize("billing", [Billing.FIXED, Billing.METERED])
def test_rule__confirm_with_an_outcome__leaves_the_seconds(world: World, billing: Billing) -> None:
    terms, node = running(world, **world.judged(billing=billing))
    world.evm.warp(100)
    world.submit(terms, outcome=Outcome.EXIT)
    world.rule(terms, CONFIRM, fields=_fields(Outcome.OK))
    unit = world.unit(terms)
    assert (unit.outcome, unit.seconds) == (Outcome.OK, 0)
    pay = PAY if billing == Billing.FIXED else PAY // 10
    assert world.credit(world.treasury) == pay * 500 // 10_000
    assert node_state(world, node).r > 0


@pytest.mark.parametrize("outcome", [0, 6, 7, 8, 15])
def test_rule__fields_without_a_results_outcome__revert(world: World, outcome: int) -> None:
    terms, _ = running(world, **world.judged(billing=Billing.FUEL))
    world.submit(terms)
    with reverts("jobs: outcome out of range"):
        world.rule(terms, CONFIRM, fields=_fields(outcome, 5))


@pytest.mark.parametrize(
    ("billing", "fields"),
    [
        (Billing.FUEL, 1),
        (Billing.FUEL, 1 | 1 << 28),
        (Billing.FUEL, 1 | 1 << 255),
        (Billing.FUEL, 1 | 5 << 4 | 1 << 28),
        (Billing.FIXED, 1 | 1 << 4),
        (Billing.METERED, 1 | 5 << 4),
        (Billing.METERED, 1 | 1 << 28),
    ],
)
def test_rule__fields_with_seconds_out_of_range__revert(world: World, billing: Billing, fields: int) -> None:
    terms, _ = running(world, **world.judged(billing=billing))
    world.submit(terms)
    with reverts("jobs: used out of range"):
        world.rule(terms, CONFIRM, fields=fields)


@pytest.mark.parametrize("verdict", [RELEASE, REJECT, VOID])
def test_rule__fields_beside_another_verdict__revert(world: World, verdict: Verdict) -> None:
    terms, _ = disputed(world)
    with reverts("jobs: outcome out of range"):
        world.rule(terms, verdict, fields=_fields(Outcome.OK))


# ---- reject ----


@pytest.mark.parametrize("held", [False, True])
def test_rule__reject__refunds_and_takes_the_whole_bond(market: World, held: bool) -> None:
    terms, node = proven(market)
    if held:
        market.dispute(terms)
    given = (share(market.submitter, 11), share(market.stranger, BOND // 2), 0)
    with credited(market) as got:
        receipt = market.rule(terms, REJECT, shares=given)
    burnt = BOND - BOND // 2 - 11
    assert got == {"submitter": BUDGET + 11, "stranger": BOND // 2, "dead": burnt}
    assert market.state(terms) == State.REFUNDED and market.lock_of(terms) == 0
    assert receipt.event("Ruled") == _event(market, terms, node, verdict=REJECT, taken=BOND)
    rejected = receipt.event("Rejected")
    assert (rejected["node"], rejected["burnt"], rejected["until"]) == (node, burnt, market.evm.now + 7 * DAY)
    assert market.node(node).stake == market.staked(node) == 100 * ETHER - BOND
    state = node_state(market, node)
    assert (state.bond, state.r, state.s) == (0, 0, 10 * ONE)
    assert state.status & NodeFlag.SLASHED and state.quarantine == market.evm.now + 7 * DAY


@pytest.mark.parametrize("bond_bps", [0, 10_000, 1_234_567])
def test_rule__reject__gives_six_tenths_of_the_bond_at_most(world: World, bond_bps: int) -> None:
    terms, node = disputed(world, bond_bps=bond_bps)
    bond = formulas.bond(terms)
    most = bond * 6 // 10
    for parts in ((most + 1, 0, 0), (most, 0, 1), (most // 3 + 1, most // 3 + 1, most // 3 + 1)):
        with reverts("nodes: shares too large"):
            world.rule(terms, REJECT, shares=tuple(share(world.keeper, part) for part in parts))  # type: ignore[arg-type]
    assert world.state(terms) == State.DISPUTED and node_state(world, node).bond == bond
    with credited(world) as got:
        world.rule(terms, REJECT, shares=(share(world.keeper, most), 0, 0))
    assert got == {"submitter": BUDGET, "keeper": most, "dead": bond - most}


def test_rule__reject_after_tips__refunds_what_the_unit_holds(world: World) -> None:
    node, terms = world.register(), world.post(**world.judged(match_window=30))
    world.propose(terms, node)
    world.evm.warp(30)
    world.ack(terms)
    world.submit(terms)
    world.dispute(terms)
    with credited(world) as got:
        world.rule(terms, REJECT)
    assert got == {
        "submitter": formulas.unit_holds(terms, replace(world.unit(terms), state=State.SUBMITTED)),
        "dead": BOND,
    }


def test_rule__reject_in_an_array__counts_as_failed_and_leaves_the_others(world: World) -> None:
    node, terms = world.register(), world.post(**world.judged(units=3, flags=PROVEN))
    for index in range(2):
        world.claim(terms, node, index)
        world.submit(terms, index)
    world.rule(terms, REJECT, 0)
    header = world.header(terms)
    assert (header.done, header.failed) == (0, 1)
    assert node_state(world, node).bond == BOND
    assert world.lock_of(terms) == 2 * BUDGET


def test_rule__shares_beside_another_verdict__give_nothing(market: World) -> None:
    """Only a bond that is lost has shares: they name nothing of the job's."""
    given = (share(market.stranger, 2**95), share(market.stranger, 1), share(market.stranger, 1))
    for verdict in (CONFIRM, VOID, RELEASE):
        with market.evm.isolated():
            terms, _ = disputed(market)
            with credited(market) as got:
                market.rule(terms, verdict, shares=given, payee=market.keeper)
            assert "stranger" not in got and "dead" not in got


# ---- void ----


@pytest.mark.parametrize("held", [False, True])
def test_rule__void__pays_the_start_fee_and_adds_nothing_to_the_record(market: World, held: bool) -> None:
    terms, node = proven(market)
    if held:
        market.dispute(terms)
    before = node_state(market, node)
    with credited(market) as got:
        receipt = market.rule(terms, VOID, payee=market.keeper)
    assert got == VOIDED
    assert market.state(terms) == State.REFUNDED and market.lock_of(terms) == 0
    assert receipt.event("Ruled") == _event(market, terms, node, verdict=VOID, pay=VOID_PAY, fee=VOID_FEE)
    assert node_state(market, node) == replace(before, bond=0)
    assert market.node(node).stake == 100 * ETHER


def test_rule__void_hours_later__is_no_observation_and_lets_nothing_decay(world: World) -> None:
    node = world.register()
    season(world, node)
    terms = world.post(**world.judged())
    world.claim(terms, node)
    world.submit(terms)
    world.dispute(terms)
    before = node_state(world, node)
    world.evm.warp(2 * reputation.STEP)
    world.rule(terms, VOID)
    assert before.r > 0
    assert node_state(world, node) == replace(before, bond=0)


def test_rule__void_of_a_short_unit__pays_its_price_at_most(world: World) -> None:
    world.register(ask=10**20)
    terms = world.post(**world.judged(max_seconds=7, keeper_fee=10**12))
    world.evm.warp(POLICY.claim_ramp)
    world.claim(terms, NodeId(1))
    world.submit(terms)
    world.dispute(terms)
    receipt = world.rule(terms, VOID)
    price = formulas.price(terms)
    assert receipt.event("Ruled")["pay"] == price == 7 * 10**14 < 60 * 10**14


def test_rule__void_under_a_long_start_fee__pays_all_of_it() -> None:
    world = World(policy=replace(POLICY, start_fee_seconds=2_048))
    terms, _ = disputed(world, max_seconds=3_600)
    receipt = world.rule(terms, VOID)
    paid = receipt.event("Ruled")["pay"]
    assert paid == VOID_PAY * 2_048 // POLICY.start_fee_seconds < formulas.price(terms)


def test_rule__void_of_what_was_declined_before__accuses_nobody(world: World) -> None:
    first = world.register()
    other = world.register(owner=world.evm.account("owner 2"), operator=world.keeper)
    terms = world.post(**world.judged(flags=PROVEN))
    world.claim(terms, first)
    world.decline(terms)
    world.claim(terms, other, sender=world.keeper)
    world.submit(terms, sender=world.keeper)
    with world.evm.isolated():
        world.rule(terms, CONFIRM)
        assert node_state(world, first).s > 0
    world.rule(terms, VOID)
    assert node_state(world, first).s == 0


# ---- who, and when ----


@pytest.mark.parametrize("verdict", list(Verdict))
def test_rule__not_the_judge__reverts(world: World, verdict: Verdict) -> None:
    terms, _ = disputed(world, flags=PROVEN)
    packed = words.pack_terms(terms)
    for sender in (world.submitter, world.owner, world.operator, world.deployer, world.keeper):
        with reverts("jobs: not the judge"):
            world.jobs.send.rule(packed, 0, verdict, 0, [0, 0, 0], ZERO, sender=sender)
    plain, _ = submitted(world)
    with reverts("jobs: not the judge"):
        world.rule(plain, verdict)


@pytest.mark.parametrize("verdict", [4, 5, 2**255])
def test_rule__unknown_verdict__reverts(world: World, verdict: int) -> None:
    terms, _ = disputed(world)
    with reverts("jobs: verdict out of range"):
        world.rule(terms, verdict)


@pytest.mark.parametrize("verdict", [RELEASE, REJECT, VOID])
def test_rule__not_disputed__reverts(world: World, verdict: Verdict) -> None:
    """Without a proof asked for, a judge that was silent within the window has nothing to take afterwards."""
    terms, _ = judged(world)
    for moment in (0, WINDOW - 1, 1, STALE):
        world.evm.warp(moment)
        with reverts("jobs: not disputed"):
            world.rule(terms, verdict)


def test_rule__release_of_a_proof_not_disputed__reverts(world: World) -> None:
    terms, _ = proven(world)
    with reverts("jobs: not disputed"):
        world.rule(terms, RELEASE)


@pytest.mark.parametrize("verdict", list(Verdict))
def test_rule__after_an_end__reverts(world: World, verdict: Verdict) -> None:
    for first in (CONFIRM, REJECT, VOID):
        with world.evm.isolated():
            terms, _ = proven(world)
            world.rule(terms, first)
            with reverts("jobs: not submitted"):
                world.rule(terms, verdict)
            with reverts("jobs: not submitted"):
                world.dispute(terms)
            with reverts("jobs: not submitted"):
                world.settle(terms)


def test_rule__confirm_after_the_window__is_valid_until_it_is_settled(world: World) -> None:
    terms, _ = judged(world)
    for offset in around(world, world.unit(terms).mark + WINDOW):
        assert offset in (-1, 0, 1)
        assert world.rule(terms, CONFIRM).event("Ruled")["pay"] == PAY


def test_rule__one_lease_by_another_index__reverts(world: World) -> None:
    terms, _ = judged(world)
    with reverts("jobs: no such unit"):
        world.rule(terms, CONFIRM, 1)


def test_rule__untouched_unit__reverts(world: World) -> None:
    terms = world.post(**world.judged(units=3, flags=PROVEN))
    for verdict in Verdict:
        with reverts("jobs: not submitted"):
            world.rule(terms, verdict, 2)


# ---- newcomers ----


@pytest.mark.parametrize("flags", [TermsFlag.NEWCOMERS, PROVEN])
def test_rule__confirm_of_a_newcomer__waits_for_the_delay(flags: TermsFlag) -> None:
    """Who names a judge of his own would else end his node's probation in one block."""
    world = World(policy=replace(POLICY, fresh_delay=3_600))
    terms, node = judged(world, flags=flags)
    assert world.unit(terms).flags & UnitFlag.FRESH
    for offset in around(world, world.unit(terms).mark + 3_600):
        if offset < 0:
            with reverts("jobs: too early to settle"):
                world.rule(terms, CONFIRM)
            continue
        world.rule(terms, CONFIRM)
        assert node_state(world, node).r == ONE
        assert world.credit(world.owner) == PAY - FEE


@pytest.mark.parametrize("verdict", [REJECT, VOID])
def test_rule__other_verdicts_of_a_newcomer__wait_for_nothing(verdict: int) -> None:
    world = World(policy=replace(POLICY, fresh_delay=3_600))
    terms, _ = judged(world, flags=PROVEN)
    world.rule(terms, verdict)
    assert world.state(terms) == State.REFUNDED


def test_rule__confirm_of_a_newcomer__accuses_once_the_delay_is_over() -> None:
    world = World(policy=replace(POLICY, fresh_delay=3_600))
    first = world.register()
    other = world.register(owner=world.evm.account("owner 2"), operator=world.keeper)
    terms = world.post(**world.judged())
    world.claim(terms, first)
    world.decline(terms)
    world.claim(terms, other, sender=world.keeper)
    world.submit(terms, sender=world.keeper)
    world.evm.warp(3_600)
    world.rule(terms, CONFIRM)
    assert node_state(world, first).s == reputation.fee_weight(FEE, FEE_REFERENCE)


# ---- the worked example ----

EXAMPLE = replace(POLICY, min_price=0, min_keeper_fee=8)


def _worked(kind: str, **overrides: Any) -> tuple[World, Terms]:
    """Submit the unit of the protocol's worked example, its tip paid, 17 fuel seconds used."""
    world = World(erc20=kind == "erc20", policy=EXAMPLE)
    node = world.register(ask=250_000_001)
    base: dict[str, Any] = dict(
        ceiling=333_333_333, max_seconds=61, keeper_fee=1_001, match_window=12, billing=Billing.FUEL
    )
    terms = world.post(**world.judged(**{**base, **overrides}))
    world.propose(terms, node, payee=world.stranger)
    world.evm.warp(12)
    world.ack(terms)
    world.evm.warp(17)
    world.submit(terms, used=17)
    return world, terms


@pytest.mark.parametrize("kind", ["native", "erc20"])
def test_worked_example__confirm__pays_its_line(kind: str) -> None:
    world, terms = _worked(kind)
    with credited(world) as got:
        world.rule(terms, CONFIRM, payee=world.keeper)
    assert got == {"owner": 4_038, "treasury": 212, "keeper": 125, "submitter": 18_462}


@pytest.mark.parametrize("kind", ["native", "erc20"])
def test_worked_example__void__pays_its_line(kind: str) -> None:
    world, terms = _worked(kind)
    world.dispute(terms)
    with credited(world) as got:
        world.rule(terms, VOID)
    assert got == {"owner": 14_250, "treasury": 750, "submitter": 7_837}


@pytest.mark.parametrize("kind", ["native", "erc20"])
@pytest.mark.parametrize("bond_bps", [0, 10_000_000])
def test_worked_example__unproven__pays_its_line(kind: str, bond_bps: int) -> None:
    world, terms = _worked(kind, flags=PROVEN, bond_bps=bond_bps)
    world.evm.at(terms.deadline + WINDOW)
    with credited(world) as got:
        world.settle(terms)
    assert got == {"submitter": 22_837, "keeper": 125, "dead": 891}


@pytest.mark.parametrize("kind", ["native", "erc20"])
def test_worked_example__reject_of_a_thousand_prices__pays_its_line(kind: str) -> None:
    world, terms = _worked(kind, bond_bps=10_000_000)
    assert node_state(world, NodeId(1)).bond == formulas.bond(terms) == 20_334_000
    world.dispute(terms)
    given = (share(world.submitter, 20_334), share(world.stranger, 8_133_600), share(world.keeper, 203_340))
    with credited(world) as got:
        world.rule(terms, REJECT, shares=given)
    assert got == {
        "submitter": 22_837 + 20_334,
        "stranger": 8_133_600,
        "keeper": 203_340,
        "dead": 11_976_726,
    }
    assert world.node(NodeId(1)).stake == 100 * ETHER - 20_334_000


def test_rule__paused_market__goes_on(world: World) -> None:
    terms, _ = disputed(world)
    world.rules.send.pause()
    world.nodes.send.pause()
    world.rule(terms, REJECT)
    assert LEASE < WINDOW < STALE
