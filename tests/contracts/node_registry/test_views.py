"""NodeRegistry's views: last_seen, operator_of, owner_of, offered_operator, appraise, gate, get and totals."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hearth.protocol import formulas, words
from hearth.protocol.types import Gate, Runtime
from tests.kit.evm import NATIVE, reverts
from tests.kit.steps import around, ask, engage
from tests.kit.world import ASK_NOTICE, DEAD_AFTER, ETHER, NEEDS, OFFER, UNBONDING, World


def test_last_seen__before_and_after_a_beat__is_zero_then_its_second(seated: World) -> None:
    node = seated.register(beat=False)
    assert seated.nodes.call.last_seen(node) == 0
    seated.nodes.send.beat(node, sender=seated.operator)
    assert seated.nodes.call.last_seen(node) == seated.evm.now
    assert seated.nodes.call.last_seen(node + 1) == seated.nodes.call.last_seen(0) == 0


def test_offered_operator__of_a_node_and_of_none__is_the_key_or_zero(seated: World) -> None:
    node = seated.register()
    assert seated.nodes.call.offered_operator(node) == seated.nodes.call.offered_operator(node + 1) == NATIVE
    seated.nodes.send.set_operator(node, seated.stranger, sender=seated.owner)
    assert seated.nodes.call.offered_operator(node) == seated.stranger
    assert seated.nodes.call.offered_operator(node + 1) == NATIVE


def test_operator_of__before_and_after_an_offered_key_beats__is_who_may_act(seated: World) -> None:
    node = seated.register(beat=False)
    assert seated.nodes.call.operator_of(node) == seated.operator
    seated.nodes.send.set_operator(node, seated.stranger, sender=seated.owner)
    assert seated.nodes.call.operator_of(node) == seated.operator
    seated.nodes.send.beat(node, sender=seated.stranger)
    assert seated.nodes.call.operator_of(node) == seated.stranger


def test_owner_of__before_and_after_it_changes_hands__is_the_owner(seated: World) -> None:
    node = seated.register()
    seated.nodes.send.offer_owner(node, seated.stranger, sender=seated.owner)
    assert seated.nodes.call.owner_of(node) == seated.owner
    seated.nodes.send.accept_owner(node, sender=seated.stranger)
    assert seated.nodes.call.owner_of(node) == seated.stranger


@pytest.mark.parametrize("view", ["operator_of", "owner_of"])
def test_operator_of__node_that_left_or_never_was__is_zero(seated: World, view: str) -> None:
    node = seated.register()
    seated.nodes.send.exit_start(node, sender=seated.owner)
    seated.evm.warp(UNBONDING)
    seated.nodes.send.exit_finish(node, sender=seated.owner)
    for none in (0, node, node + 1, 2**32, 2**256 - 1):
        assert getattr(seated.nodes.call, view)(none) == NATIVE


def test_appraise__fits__gives_rate_score_and_operator(seated: World) -> None:
    node = seated.register(gpu_count=0, vram_gib=0, tier=0)
    # price 7500, reputation 5000, hardware (4x10000 + 2x10000 + 1250 + 2500) // 8, distance 10000, no load
    expected = 4_000 * 7_500 + 3_000 * 5_000 + 2_000 * 7_968 + 1_000 * 10_000
    assert seated.nodes.call.appraise(node, ask()) == (OFFER.ask, expected, seated.operator)


def test_appraise__load__lowers_the_score(seated: World) -> None:
    node = seated.register(slots=4)
    free = seated.nodes.call.appraise(node, ask())[1]
    engage(seated, node)
    assert seated.nodes.call.appraise(node, ask())[1] == free - 300 * 2_500


def test_appraise__gate_fails__reverts_with_its_reason(seated: World) -> None:
    node = seated.register()
    with reverts("nodes: cores short"):
        seated.nodes.call.appraise(node, ask(needs=replace(NEEDS, cores=17)))
    with reverts("nodes: not live"):
        seated.nodes.call.appraise(node + 1, ask())


@pytest.mark.parametrize("home", range(16))
def test_appraise__zone_mask__counts_the_distance_from_home(seated: World, home: int) -> None:
    node = seated.register(zone=7)
    needs = replace(NEEDS, zone_mask=0xFFFF, home=home)
    record = seated.node(node)
    expected = formulas.score(needs, 100 * 10**18, OFFER.ask, record.offer, record.state)
    assert seated.nodes.call.appraise(node, ask(needs=needs))[1] == expected


def test_gate__live_node__is_zero_until_dead_after(seated: World) -> None:
    node = seated.register()
    for offset in around(seated, seated.evm.now + DEAD_AFTER):
        assert seated.nodes.call.gate(node, ask()) == (Gate.FITS if offset < 0 else Gate.NOT_LIVE)


def test_gate__pending_ask__counts_from_the_end_of_its_notice(seated: World) -> None:
    node = seated.register()
    seated.nodes.send.set_ask(node, 2 * OFFER.ask, sender=seated.owner)
    for offset in around(seated, seated.evm.now + ASK_NOTICE):
        assert seated.nodes.call.gate(node, ask(ceiling=OFFER.ask)) == (Gate.FITS if offset < 0 else Gate.PRICE)


def test_gate__unknown_node__is_not_live(seated: World) -> None:
    assert seated.nodes.call.gate(0, ask()) == seated.nodes.call.gate(9, ask()) == Gate.NOT_LIVE


def test_get__unknown_node__is_all_zero(seated: World) -> None:
    assert tuple(seated.nodes.call.get(1)) == (NATIVE, NATIVE, 0, 0, 0, 0, 0)


def test_totals__after_two_registrations__counts_ids_and_stake(seated: World) -> None:
    seated.register(stake=ETHER)
    seated.register(stake=2 * ETHER)
    assert words.unpack(words.TOTALS, seated.nodes.call.totals()) == {
        "next_id": 3,
        "hour": 0,
        "burnt": 0,
        "total": 3 * ETHER,
    }


def test_gate__bond_at_the_nodes_stake__is_the_last_that_fits(seated: World) -> None:
    node = seated.register(stake=7 * ETHER)
    for bond, gate in ((7 * ETHER, Gate.FITS), (7 * ETHER + 1, Gate.STAKE_SHORT)):
        assert seated.nodes.call.gate(node, ask(bond=bond)) == gate


def test_gate__past_2038__reads_the_beat_whole(seated: World) -> None:
    seated.evm.at(2**31)
    node = seated.register()
    assert seated.nodes.call.last_seen(node) == 2**31
    for offset in around(seated, seated.evm.now + DEAD_AFTER):
        assert seated.nodes.call.gate(node, ask()) == (Gate.FITS if offset < 0 else Gate.NOT_LIVE)


def test_gate__runtime_without_a_name__is_missing_where_it_is_not_offered(seated: World) -> None:
    """Of the lane's eight only four have one."""
    offer = words.pack_offer(replace(OFFER, runtimes=Runtime(0))) | 2**76
    lacks = seated.register()
    paid = {"amount": ETHER, "sender": seated.owner}
    has = seated.pay(seated.nodes, "register", seated.operator, offer, b"\x55" * 32, ETHER, **paid).value
    seated.nodes.send.beat(has, sender=seated.operator)
    _, *others = ask()
    wanted = (words.pack_needs(replace(NEEDS, runtimes=Runtime(0))) | 2**76, *others)
    assert seated.nodes.call.gate(lacks, wanted) == Gate.RUNTIME
    assert seated.nodes.call.gate(has, wanted) == Gate.FITS
