"""Attesters.confirm: a quorum of the keys that a job commits to has its unit paid."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hearth.chain.typed_data import MAX_S
from hearth.protocol.attest import AttesterSet, Signature
from hearth.protocol.types import SENTINEL, Billing, Outcome, State
from tests.kit.attesters import Attested, account, address
from tests.kit.evm import reverts
from tests.kit.steps import BUDGET, FEE, PAY, SETTLE_PAY, credited
from tests.kit.world import RESULT, SPEC, World


def test_confirm__quorum_signed__pays_at_once_and_its_caller_too(market: World) -> None:
    attested = Attested(market)
    terms, node = attested.submitted()
    with credited(market) as got:
        receipt = attested.confirm(terms, attested.signed(terms))
    assert got == {
        "owner": PAY - FEE,
        "treasury": FEE,
        "keeper": SETTLE_PAY,
        "submitter": BUDGET - PAY - SETTLE_PAY,
    }
    event = receipt.event("Ruled")
    assert (event["verdict"], event["node"], event["pay"], event["taken"]) == (1, node, PAY, 0)
    assert market.state(terms) == State.SETTLED
    assert market.lock_of(terms) == 0


def test_confirm__payee_named__is_paid_in_the_callers_place(attested: Attested) -> None:
    terms, _ = attested.submitted()
    with credited(attested.world) as got:
        attested.confirm(terms, attested.signed(terms), payee=attested.world.stranger)
    assert got["stranger"] == SETTLE_PAY and "keeper" not in got


@pytest.mark.parametrize("members", [(0, 1), (0, 2), (1, 2), (0, 1, 2)])
def test_confirm__any_members__that_reach_the_quorum_do(attested: Attested, members: tuple[int, ...]) -> None:
    terms, _ = attested.submitted()
    attested.confirm(terms, attested.signed(terms, members=members))
    assert attested.world.state(terms) == State.SETTLED


@pytest.mark.parametrize("members", [(), (0,), (2,)])
def test_confirm__fewer_than_the_quorum__reverts(attested: Attested, members: tuple[int, ...]) -> None:
    terms, _ = attested.submitted()
    with reverts("attesters: too few signatures"):
        attested.confirm(terms, attested.signed(terms, members=members))


@pytest.mark.parametrize(("members", "quorum"), [(1, 1), (16, 1), (16, 16)])
def test_confirm__smallest_and_largest_sets__work(world: World, members: int, quorum: int) -> None:
    attested = Attested(world, members, quorum)
    terms, _ = attested.submitted()
    everyone = range(members)
    attested.confirm(terms, attested.signed(terms, members=everyone))
    assert world.state(terms) == State.SETTLED


def test_confirm__more_keys_than_16__reverts(world: World) -> None:
    attested = Attested(world, 16, 1)
    terms, _ = attested.submitted()
    with reverts(""):
        attested.confirm(terms, attested.signed(terms, members=(0,)), keys=[*attested.set.keys, "0x" + "ff" * 20])
    with reverts(""):
        attested.confirm(terms, [*attested.signed(terms, members=range(16)), Signature(0, 27, 1, 1)])


def test_confirm__other_keys_or_quorum_than_the_jobs__reverts(attested: Attested) -> None:
    terms, _ = attested.submitted()
    signatures = attested.signed(terms)
    mine = [address(account(number)) for number in (1, 2)]
    for keys, quorum in (
        (attested.set.keys, 1),
        (attested.set.keys, 3),
        (attested.set.keys[:2], 2),
        (attested.set.keys[::-1], 2),
        ((*attested.set.keys, "0x" + "ff" * 20), 2),
        (sorted(mine), 1),
        ((), 0),
    ):
        with reverts("attesters: wrong keys or quorum"):
            attested.confirm(terms, signatures, keys=keys, quorum=quorum)


def test_confirm__place_beyond_the_set__reverts(attested: Attested) -> None:
    terms, _ = attested.submitted()
    first, second = attested.signed(terms)
    for place in (3, 15, 2**256 - 1):
        with reverts("attesters: no such key"):
            attested.confirm(terms, [first, second._replace(place=place)])


def test_confirm__place_of_another_key__reverts(attested: Attested) -> None:
    terms, _ = attested.submitted()
    first, second = attested.signed(terms)
    with reverts("attesters: wrong signer"):
        attested.confirm(terms, [first, second._replace(place=2)])


def test_confirm__before_the_result__reverts(attested: Attested) -> None:
    world = attested.world
    terms = world.post(attested.terms())
    with reverts("jobs: not submitted"):
        attested.confirm(terms, attested.signed(terms))
    world.claim(terms, world.register())
    with reverts("jobs: not submitted"):
        attested.confirm(terms, attested.signed(terms))


def test_confirm__twice__reverts(attested: Attested) -> None:
    terms, _ = attested.submitted()
    signatures = attested.signed(terms)
    attested.confirm(terms, signatures)
    with reverts("jobs: not submitted"):
        attested.confirm(terms, signatures)


def test_confirm__never_posted__reverts(attested: Attested) -> None:
    terms = attested.terms()
    with reverts("jobs: not submitted"):
        attested.confirm(terms, attested.signed(terms))


def test_confirm__job_of_another_judge__reverts(attested: Attested) -> None:
    other = Attested(attested.world)
    terms, _ = other.submitted()
    with reverts("jobs: not the judge"):
        attested.confirm(terms, attested.signed(terms))


def test_confirm__after_its_time__works_until_somebody_settles(attested: Attested) -> None:
    """The refund of what nobody proved is due, and takes a call: until then a late signature still pays."""
    world = attested.world
    terms, _ = attested.submitted()
    signatures = attested.signed(terms)
    world.evm.at(terms.deadline + terms.challenge_window + 1)
    with world.evm.isolated():
        attested.confirm(terms, signatures)
        assert world.state(terms) == State.SETTLED
    assert world.settle(terms).events("Unproven")
    with reverts("jobs: not submitted"):
        attested.confirm(terms, signatures)


def test_confirm__accepted_before__reverts(attested: Attested) -> None:
    terms, _ = attested.submitted()
    signatures = attested.signed(terms)
    attested.world.accept(terms)
    with reverts("jobs: not submitted"):
        attested.confirm(terms, signatures)


def test_confirm__one_lease_job_by_another_index__reverts(attested: Attested) -> None:
    terms, _ = attested.submitted()
    for index in (1, SENTINEL):
        with reverts("jobs: no such unit"):
            attested.confirm(terms, attested.signed(terms), index)
    attested.confirm(terms, attested.signed(terms), 0)
    assert attested.world.state(terms) == State.SETTLED


def test_confirm__unit_of_an_array__signs_its_own_index(attested: Attested) -> None:
    terms, _ = attested.submitted(units=3, index=1)
    signatures = attested.signed(terms, 1)
    with reverts("attesters: wrong signer"):
        attested.confirm(terms, signatures, 0)
    attested.confirm(terms, signatures, 1)
    assert attested.world.state(terms, 1) == State.SETTLED
    assert attested.world.state(terms, 0) == State.SUBMITTED


@pytest.mark.parametrize("outcome", [outcome for outcome in Outcome if outcome.is_result])
def test_confirm__any_outcome__is_confirmed_as_it_stands(attested: Attested, outcome: Outcome) -> None:
    world = attested.world
    terms = world.post(attested.terms())
    world.claim(terms, world.register())
    world.submit(terms, outcome=int(outcome))
    assert attested.result(terms).outcome == outcome
    attested.confirm(terms, attested.signed(terms))
    assert world.unit(terms).outcome == outcome


@pytest.mark.parametrize("used", [1, 40, 2**24 - 1])
def test_confirm__fuel__is_signed_and_billed(attested: Attested, used: int) -> None:
    terms, _ = attested.submitted(billing=Billing.FUEL, used=used)
    assert attested.result(terms).fuel_seconds == used
    receipt = attested.confirm(terms, attested.signed(terms))
    rate = attested.world.unit(terms).rate
    assert receipt.event("Ruled")["pay"] == rate * min(used, terms.max_seconds) // 10**6


def test_confirm__signed_before_the_submit__pays_whoever_hands_it_in(attested: Attested) -> None:
    """What is signed is the result, not who computed it: the first attempt's node gave it up."""
    world = attested.world
    terms = world.post(attested.terms())
    expected = replace(attested.result(terms), result=RESULT, outcome=Outcome.OK)
    signatures = attested.sign(attested.document(expected))
    world.claim(terms, world.register())
    world.give_up(terms)
    world.claim(terms, world.register())
    world.submit(terms)
    attested.confirm(terms, signatures)
    assert world.state(terms) == State.SETTLED


def test_confirm__s_above_half_the_order__reverts(attested: Attested) -> None:
    terms, _ = attested.submitted()
    first, second = attested.signed(terms)
    for s in (MAX_S + 1, 2**256 - 1):
        with reverts("attesters: malformed signature"):
            attested.confirm(terms, [first, second._replace(s=s)])
    with reverts("attesters: wrong signer"):
        attested.confirm(terms, [first, second._replace(s=MAX_S)])


def test_confirm__signers_that_do_not_ascend__revert(attested: Attested) -> None:
    terms, _ = attested.submitted()
    first, second = attested.signed(terms)
    for signatures in ([second, first], [first, first]):
        with reverts("attesters: not in order"):
            attested.confirm(terms, signatures)


def test_judge_data__of_the_library__is_the_contracts(attested: Attested) -> None:
    """Sets of one key and of sixteen commit as the contract computes it: confirm takes them, and no neighbour."""
    for size in (1, 2, 16):
        keys = tuple(sorted(address(account(number)) for number in range(1, size + 1)))
        for quorum in {1, size}:
            chosen = AttesterSet(keys, quorum)
            terms, _ = attested.submitted(judge_data=chosen.judge_data)
            for wrong in {quorum - 1, quorum + 1}:
                with reverts("attesters: wrong keys or quorum"):
                    attested.confirm(terms, [], keys=keys, quorum=wrong)
            with reverts("attesters: too few signatures"):
                attested.confirm(terms, [], keys=keys, quorum=quorum)


def test_result__of_a_unit__holds_what_was_submitted(attested: Attested) -> None:
    terms, _ = attested.submitted()
    found = attested.result(terms)
    assert (found.spec, found.result, found.fields) == (SPEC, RESULT, 1)
    assert found.job == attested.world.id_of(terms)
