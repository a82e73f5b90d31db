"""JobRegistry.post of jobs that name a judge: its word, window and bond; a job without one leaves all of it out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hearth.protocol import formulas, words
from hearth.protocol.types import Billing as B
from hearth.protocol.types import NodeId, Outcome, State, TermsFlag, UnitFlag
from tests.kit.evm import Contract, Reverted, reverts
from tests.kit.steps import BOND, BUDGET, KEEPER_FEE, PRICE, WINDOW, node_state, running
from tests.kit.world import DAY, ETHER, POLICY, RESULT, World

PROVEN = TermsFlag.NEWCOMERS | TermsFlag.PROVEN
# Answers `takes` with what its constructor was given, as a word.
ODD = """
# pragma version 0.4.3
struct Terms:
    submitter: uint256
    spec: bytes32
    needs: uint256
    money: uint256
    limits: uint256
    judge_data: uint256
    judge: uint256
    policy: uint256
    parents_hash: bytes32

ANSWER: immutable(uint256)

@deploy
def __init__(answer: uint256):
    ANSWER = answer

@external
@view
def takes(terms: Terms) -> uint256:
    assert ANSWER != 3, "judge: no"
    assert terms.limits % 2**24 == 1000
    return ANSWER
"""


def _post(world: World, **overrides: Any) -> Any:
    world.evm.set_balance(world.submitter, 2**100)
    return world.post(**overrides)


# ---- a job without a judge ----


@pytest.mark.parametrize("fields", [dict(judge_data=1), dict(judge_data=2**256 - 1), dict(flags=PROVEN)])
def test_post__no_judge__has_no_use_for_what_is_his(world: World, fields: dict[str, Any]) -> None:
    with reverts("jobs: no judge named"):
        _post(world, **fields)


@pytest.mark.parametrize("window", [1, WINDOW, 2**24 - 1])
def test_post__no_judge__takes_no_window(world: World, window: int) -> None:
    with reverts("jobs: no judge named"):
        _post(world, challenge_window=window)


def test_post__no_judge__may_ask_for_a_bond(world: World) -> None:
    """A bond is no judge's: without one it is what the node cannot use meanwhile."""
    terms = world.post(bond_bps=20_000)
    node = world.register()
    world.claim(terms, node)
    assert node_state(world, node).bond == 2 * PRICE


# ---- its judge ----


def test_post__judge__is_asked_and_posted(market: World) -> None:
    for fields in (market.judged(), market.judged(flags=PROVEN, judge_data=2**256 - 1, units=3)):
        terms = market.post(**fields)
        assert market.lock_of(terms) == terms.units * BUDGET


def test_post__judge_that_refuses__reverts(world: World) -> None:
    world.judge.send.set_refuses(True)
    with reverts("jobs: refused by the judge"):
        _post(world, **world.judged())
    world.judge.send.set_refuses(False)
    _post(world, **world.judged())


def test_post__judge_that_refuses_later__changes_nothing(world: World) -> None:
    """It is asked at post alone; it cannot take a job back."""
    node, terms = world.register(), world.post(**world.judged())
    world.judge.send.set_refuses(True)
    world.claim(terms, node)
    world.submit(terms)
    world.evm.warp(WINDOW)
    world.settle(terms)


@pytest.mark.parametrize("who", ["submitter", "treasury"])
def test_post__judge_without_code__reverts(world: World, who: str) -> None:
    with pytest.raises(Reverted):
        _post(world, **world.judged(judge=getattr(world, who).lower()))


@pytest.mark.parametrize("who", ["escrow", "jobs", "nodes", "rules", "lens"])
def test_post__judge_that_is_none__reverts(world: World, who: str) -> None:
    judge: Contract = getattr(world, who)
    with pytest.raises(Reverted):
        _post(world, **world.judged(judge=judge.address.lower()))


@pytest.mark.parametrize(
    ("answer", "reason"),
    [(0, "jobs: refused by the judge"), (1, None), (2, ""), (2**256 - 1, ""), (3, "judge: no")],
)
def test_post__judges_answer__is_one_or_nothing(world: World, answer: int, reason: str | None) -> None:
    judge = world.evm.deploy(ODD, answer)
    fields = world.judged(judge=judge.address.lower())
    if reason is None:
        _post(world, **fields)
    else:
        with reverts(reason):
            _post(world, **fields)


@pytest.mark.parametrize("bit", [160, 161, 255])
def test_post__judge_of_more_than_an_address__reverts(world: World, bit: int) -> None:
    packed: list[Any] = list(words.pack_terms(world.terms(**world.judged())))
    packed[6] |= 1 << bit
    with reverts("jobs: spare bits set"):
        world.pay(world.jobs, "post", tuple(packed), [], amount=BUDGET, sender=world.submitter)


# ---- its window ----


@pytest.mark.parametrize("window", [0, 1, WINDOW - 1, 7 * DAY + 1, 2**23 + WINDOW, 2**24 - 1])
def test_post__window_out_of_range__reverts(world: World, window: int) -> None:
    with reverts("jobs: challenge_window range"):
        _post(world, **world.judged(challenge_window=window))


@pytest.mark.parametrize("window", [WINDOW, WINDOW + 1, 7 * DAY])
def test_post__window_at_the_bounds__is_taken(world: World, window: int) -> None:
    _post(world, **world.judged(challenge_window=window))


def test_post__least_window__is_the_frozen_policys() -> None:
    world = World(policy=replace(POLICY, min_challenge_window=1))
    _post(world, **world.judged(challenge_window=1))
    with reverts("jobs: challenge_window range"):
        _post(world, **world.judged(challenge_window=0))


def test_post__least_window_of_twenty_bits__counts_whole() -> None:
    world = World(policy=replace(POLICY, min_challenge_window=2**19))
    with reverts("jobs: challenge_window range"):
        _post(world, **world.judged(challenge_window=2**19 - 1))
    _post(world, **world.judged(challenge_window=2**19))


def test_post__window_is_looked_at_before_the_judge_is_asked(world: World) -> None:
    """No foreign code runs for terms that are refused anyway."""
    world.judge.send.set_refuses(True)
    with reverts("jobs: challenge_window range"):
        _post(world, **world.judged(challenge_window=1))
    with reverts("jobs: bond too large"):
        _post(world, **world.judged(bond_bps=2**24 - 1, ceiling=2**80 - 1))


# ---- its bond ----


@pytest.mark.parametrize(
    ("bond_bps", "bond"),
    [
        (0, BOND),
        (1, BOND),
        (4_999, BOND),
        (5_000, BOND),
        (5_001, BOND + PRICE // 10_000),
        (10_000, PRICE),
        (5_000_000, 500 * PRICE),
    ],
)
def test_bond__share_of_the_price__is_at_least_the_policys(world: World, bond_bps: int, bond: int) -> None:
    terms, node = running(world, bond_bps=bond_bps)
    assert node_state(world, node).bond == bond == formulas.bond(terms)


def test_bond__share_of_the_price__rounds_up(world: World) -> None:
    terms, node = running(world, ceiling=10**20 + 7, max_seconds=999, bond_bps=7_777)
    price = formulas.price(terms)
    assert node_state(world, node).bond == -(-7_777 * price // 10_000) > 7_777 * price // 10_000


def test_bond__share_that_is_a_ten_thousandth_above_a_unit__rounds_up(world: World) -> None:
    terms, node = running(world, ceiling=10**20 + 1_000, bond_bps=10_001)
    product = 10_001 * formulas.price(terms)
    assert product % 10_000 == 1
    assert node_state(world, node).bond == product // 10_000 + 1


def test_bond__keeper_fees__are_the_least_as_well(world: World) -> None:
    _, node = running(world, keeper_fee=PRICE, bond_bps=79_999)
    assert node_state(world, node).bond == 8 * PRICE


def test_bond__beyond_the_stake__keeps_the_node_out(world: World) -> None:
    node = world.register(stake=3 * ETHER)
    terms = world.post(bond_bps=300_000)
    assert formulas.bond(terms) == 3 * ETHER
    dear = world.post(bond_bps=300_001)
    with reverts("nodes: free stake short"):
        world.claim(dear, node)
    world.claim(terms, node)
    with reverts("nodes: free stake short"):
        world.claim(world.post(), node)


def test_bond__of_80_bits__is_refused(world: World) -> None:
    fields: dict[str, Any] = dict(max_seconds=10**6, deadline=world.evm.now + 30 * DAY, keeper_fee=KEEPER_FEE)
    # The price is the ceiling here.
    largest = (2**80 - 1) * 10_000 // (2**24 - 1)
    _post(world, bond_bps=2**24 - 1, **{**fields, "ceiling": largest})
    with reverts("jobs: bond too large"):
        _post(world, bond_bps=2**24 - 1, **{**fields, "ceiling": largest + 1})


def test_bond__whatever_it_is__negligence_costs_a_tenth_of_the_base_bond(world: World) -> None:
    for call in ("reclaim", "give_up"):
        with world.evm.isolated():
            terms, node = running(world, bond_bps=1_000_000)
            assert node_state(world, node).bond == 100 * PRICE
            if call == "reclaim":
                world.evm.at(world.unit(terms).mark)
                world.reclaim(terms)
                lost = BOND // 10
            else:
                world.give_up(terms)
                lost = BOND // 10 - BOND // 10 // 4
            assert 100 * ETHER - world.node(node).stake == lost
            assert node_state(world, node).bond == 0


def test_bond__newcomer__reserves_the_whole_and_then_no_second(world: World) -> None:
    """What is reserved counts as it is against what probation allows; a first lease always fits."""
    node = world.register(slots=9)
    first = world.post(flags=TermsFlag(0), ceiling=10**19, bond_bps=1_000_000)
    second = world.post(flags=TermsFlag(0), ceiling=10**19)
    world.evm.warp(POLICY.claim_ramp)
    world.nodes.send.set_ask(node, 10**18, sender=world.owner)
    world.evm.warp(600)
    world.nodes.send.beat(node, sender=world.operator)
    world.claim(first, node)
    assert node_state(world, node).bond == 10**18
    with reverts("nodes: on probation"):
        world.claim(second, node)


# ---- what is kept for it ----


def test_submit__judged__keeps_the_digest(market: World) -> None:
    for match_window in (0, 30):
        node, terms = market.register(), market.post(**market.judged(match_window=match_window))
        if match_window:
            market.propose(terms, node)
            market.evm.warp(30)
            market.ack(terms)
        else:
            market.claim(terms, node)
        assert market.unit(terms).flags & UnitFlag.STORE
        market.submit(terms)
        assert market.load(terms)[2] == int.from_bytes(RESULT, "big")
        assert market.unit(terms).flags & UnitFlag.STORE


def test_submit__not_judged__keeps_none(world: World) -> None:
    terms, _ = running(world)
    assert not world.unit(terms).flags & UnitFlag.STORE
    world.submit(terms)
    assert world.load(terms)[2] == 0


def test_submit__after_another_attempt__keeps_the_last_digest(world: World) -> None:
    node = world.register()
    other = world.register(owner=world.evm.account("owner 2"), operator=world.evm.account("operator 2"))
    terms = world.post(**world.judged())
    world.claim(terms, node)
    world.give_up(terms)
    assert not world.unit(terms).flags & UnitFlag.STORE
    world.claim(terms, NodeId(other), sender=world.evm.account("operator 2"))
    assert world.load(terms)[2] == 0
    packed = world.id_of(terms), 0, b"\x99" * 32, b"\x88" * 32, 1, 0
    world.jobs.send.submit(*packed, sender=world.evm.account("operator 2"))
    assert world.load(terms)[2] == int.from_bytes(b"\x99" * 32, "big")


@pytest.mark.parametrize("billing", list(B))
def test_submit__timeout_of_a_judged_job__is_a_result(world: World, billing: B) -> None:
    """A program that never ends must not cost its node a slash; what a timeout is worth, the judge says."""
    terms, _ = running(world, billing=billing, **world.judged())
    world.submit(terms, outcome=Outcome.TIMEOUT)
    assert (world.state(terms), world.unit(terms).outcome) == (State.SUBMITTED, Outcome.TIMEOUT)
