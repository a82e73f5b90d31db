"""Attacks on attesters' signatures: replays, malleability, signers that are nobody, one key that counts twice."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hearth.chain import typed_data
from hearth.chain.typed_data import MAX_S
from hearth.protocol.attest import AttesterSet, Signature
from hearth.protocol.types import Billing, Outcome, State, Terms
from tests.kit.attesters import Attested, account, address
from tests.kit.evm import reverts
from tests.kit.steps import credited
from tests.kit.world import ZERO, World

ORDER = 2 * MAX_S + 1


@pytest.fixture
def attested() -> Attested:
    return Attested(World())


def _pays(attested: Attested, terms: Terms, signatures: list[Signature], index: int = 0) -> None:
    """The control of an attack: the honest call pays the node."""
    with credited(attested.world) as got:
        attested.confirm(terms, signatures, index)
    assert got["owner"] > 0


def test_replay__signatures_of_another_job__pay_nothing(attested: Attested) -> None:
    """Profit of a node that was attested once and hands garbage in for a job of the same spec afterwards."""
    terms, _ = attested.submitted()
    signatures = attested.signed(terms)
    _pays(attested, terms, signatures)
    other, _ = attested.submitted()
    assert other.spec == terms.spec
    with reverts("attesters: wrong signer"):
        attested.confirm(other, signatures)


def test_replay__signatures_of_another_unit__pay_nothing(attested: Attested) -> None:
    terms, _ = attested.submitted(units=3, index=1)
    signatures = attested.signed(terms, 0)
    with reverts("attesters: wrong signer"):
        attested.confirm(terms, signatures, 1)
    _pays(attested, terms, signatures, 0)


def test_replay__signatures_on_another_chain__pay_nothing(attested: Attested) -> None:
    """A chain that split keeps contracts and jobs; the attesters saw one of the two results."""
    world = attested.world
    terms, _ = attested.submitted()
    signatures = attested.signed(terms)
    world.evm.become_chain(31_338)
    with reverts("attesters: wrong signer"):
        attested.confirm(terms, signatures)
    _pays(attested, terms, attested.signed(terms))


def test_replay__signatures_for_another_contract__pay_nothing(attested: Attested) -> None:
    other = Attested(attested.world)
    terms, _ = attested.submitted()
    document = attested.document(attested.result(terms), contract=other.contract.address)
    with reverts("attesters: wrong signer"):
        attested.confirm(terms, attested.sign(document))


@pytest.mark.parametrize(
    "change",
    [
        {"result": bytes.fromhex("12" * 32)},
        {"spec": bytes.fromhex("34" * 32)},
        {"outcome": Outcome.EXIT},
        {"fuel_seconds": 39},
        {"fuel_seconds": 41},
        {"index": 1},
    ],
    ids=lambda change: "-".join(f"{name}" for name in change),
)
def test_replay__signatures_of_a_changed_result__pay_nothing(attested: Attested, change: dict[str, object]) -> None:
    """What a node hands in is what was attested, to the fuel second."""
    terms, _ = attested.submitted(billing=Billing.FUEL, used=40)
    with reverts("attesters: wrong signer"):
        attested.confirm(terms, attested.signed(terms, **change))
    _pays(attested, terms, attested.signed(terms))


def test_replay__second_attempt_with_another_result__pays_nothing(attested: Attested) -> None:
    """A result that was attested before its submit does not vouch for what comes in its place."""
    world = attested.world
    terms = world.post(attested.terms())
    world.claim(terms, world.register())
    expected = replace(attested.result(terms), result=bytes.fromhex("99" * 32), outcome=Outcome.OK)
    signatures = attested.sign(attested.document(expected))
    world.submit(terms)
    with reverts("attesters: wrong signer"):
        attested.confirm(terms, signatures)


def test_replay__spec_of_another_job_in_the_terms__is_another_job(attested: Attested) -> None:
    terms, _ = attested.submitted()
    signatures = attested.signed(terms)
    with reverts("attesters: wrong signer"):
        attested.confirm(replace(terms, spec=bytes.fromhex("35" * 32)), signatures)


def test_malleability__flipped_s__is_refused(attested: Attested) -> None:
    """The other signature that holds for the same digest counts for nothing, alone or beside the first."""
    terms, _ = attested.submitted()
    first, second = attested.signed(terms)
    flipped = second._replace(v=55 - second.v, s=ORDER - second.s)
    for signatures in ([first, flipped], [first, second, flipped]):
        with reverts("attesters: malformed signature"):
            attested.confirm(terms, signatures)
    _pays(attested, terms, [first, second])


@pytest.mark.parametrize("v", [0, 1, 26, 29, 255, 256 + 27, 2**256 - 1])
def test_malleability__any_v_but_27_and_28__is_refused(attested: Attested, v: int) -> None:
    terms, _ = attested.submitted()
    first, second = attested.signed(terms)
    with reverts("attesters: malformed signature"):
        attested.confirm(terms, [first, second._replace(v=v)])


@pytest.mark.parametrize(("r", "s"), [(0, 1), (1, 0), (0, 0), (2**256 - 1, 1), (ORDER, 1), (5, 1)])
def test_nobody__signature_without_a_signer__is_no_members(attested: Attested, r: int, s: int) -> None:
    """Where nothing can be recovered the signer is zero; (5, 1) is a point on no curve."""
    terms, _ = attested.submitted()
    first, second = attested.signed(terms)
    with reverts("attesters: wrong signer"):
        attested.confirm(terms, [first, second._replace(r=r, s=s)])


def test_nobody__zero_key_in_the_set__never_signs(attested: Attested) -> None:
    """A set with a zero key was made by hand: whoever posts it may not be told that somebody has to sign."""
    keys = (ZERO, attested.set.keys[0])
    terms, _ = attested.submitted(judge_data=_commit(keys, 1))
    with reverts("attesters: not in order"):
        attested.confirm(terms, [Signature(0, 27, 0, 1)], keys=keys, quorum=1)
    signature = attested.signed(terms, members=(0,))[0]._replace(place=1)
    attested.confirm(terms, [signature], keys=keys, quorum=1)
    assert attested.world.state(terms) == State.SETTLED


def test_nobody__quorum_of_zero__confirms_nothing(attested: Attested) -> None:
    terms, _ = attested.submitted(judge_data=_commit(attested.set.keys, 0))
    for signatures in ([], attested.signed(terms)):
        with reverts("attesters: too few signatures"):
            attested.confirm(terms, signatures, quorum=0)


def test_quorum__one_signature_twice__counts_once(attested: Attested) -> None:
    terms, _ = attested.submitted()
    (one,) = attested.signed(terms, members=(0,))
    with reverts("attesters: not in order"):
        attested.confirm(terms, [one, one])


def test_quorum__one_key_that_stands_twice__counts_once(attested: Attested) -> None:
    """A member that got its key into the set twice signs at both places."""
    mine = attested.set.keys[0]
    keys = (mine, mine, attested.set.keys[1])
    terms, _ = attested.submitted(judge_data=_commit(keys, 2))
    (one,) = attested.signed(terms, members=(0,))
    with reverts("attesters: not in order"):
        attested.confirm(terms, [one, one._replace(place=1)], keys=keys, quorum=2)
    (other,) = attested.signed(terms, members=(1,))
    attested.confirm(terms, [one, other._replace(place=2)], keys=keys, quorum=2)
    assert attested.world.state(terms) == State.SETTLED


def test_quorum__signatures_in_another_order__are_refused(attested: Attested) -> None:
    terms, _ = attested.submitted()
    first, second, third = attested.signed(terms, members=(0, 1, 2))
    for signatures in ([second, first], [first, third, second], [third, second, first]):
        with reverts("attesters: not in order"):
            attested.confirm(terms, signatures)


def test_quorum__strangers_signature_beside_enough__is_refused(attested: Attested) -> None:
    """Nothing that is brought goes unchecked."""
    terms, _ = attested.submitted()
    stranger = account(99)
    assert address(stranger) not in attested.set.keys
    document = attested.document(attested.result(terms))
    forged = Signature(2, *typed_data.sign(stranger, document))
    with reverts("attesters: wrong signer"):
        attested.confirm(terms, [*attested.signed(terms), forged])


def test_pay__without_a_payee__is_the_callers_and_not_the_contracts(attested: Attested) -> None:
    world = attested.world
    terms, _ = attested.submitted()
    attested.confirm(terms, attested.signed(terms), sender=world.stranger)
    assert world.credit(world.stranger) > 0
    assert world.credit(attested.contract.address) == 0


def test_unproven__nobody_signs__refunds_and_costs_the_node(attested: Attested) -> None:
    """A node that hands garbage in earns nothing by waiting: profit below zero."""
    world = attested.world
    terms, node = attested.submitted()
    stake = world.node(node).stake
    world.evm.at(terms.deadline + terms.challenge_window)
    with credited(world) as got:
        world.settle(terms)
    assert "owner" not in got and world.node(node).stake < stake
    assert world.state(terms) == State.REFUNDED


def _commit(keys: tuple[str, ...], quorum: int) -> int:
    """Commit to a set that the library would not make."""
    made = object.__new__(AttesterSet)
    object.__setattr__(made, "keys", keys)
    object.__setattr__(made, "quorum", quorum)
    return made.judge_data
