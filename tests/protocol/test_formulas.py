"""The contracts' arithmetic equals hearth.protocol.formulas bit for bit, on drawn values and on extremes."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from hearth.protocol import formulas, reputation, words
from hearth.protocol.reputation import ONE
from hearth.protocol.types import (
    Best,
    Billing,
    Gate,
    Needs,
    Node,
    NodeFlag,
    NodeId,
    NodeState,
    Offer,
    Policy,
    Runtime,
    State,
    Terms,
    TermsFlag,
    Unit,
    UnitFlag,
)
from tests.kit.evm import NATIVE, Contract, Evm
from tests.kit.world import ETHER, POLICY

U = {bits: (1 << bits) - 1 for bits in (4, 5, 6, 8, 10, 12, 14, 16, 17, 24, 26, 32, 40, 48, 80)}
# A quarantine that starts within the last week of the 32-bit clock (in 2106) does not fit its lane.
LAST = U[32] - reputation.QUARANTINE_MAX
DEAD_AFTER, MINIMUM = 900, ETHER
DECAY_ERROR = 0.0028  # of the quadratic approximation of 2**-x


@cache
def _arithmetic() -> Contract:
    return Evm().deploy("mocks/ArithmeticMock")


@cache
def _gates() -> Contract:
    evm = Evm()
    return evm.deploy("mocks/GateMock", evm.deploy("Escrow", NATIVE), DEAD_AFTER, MINIMUM)


def _lane(bits: int, *, least: int = 0) -> st.SearchStrategy[int]:
    """Draw a value of a lane: its extremes often, small values often."""
    top = U[bits]
    return st.one_of(
        st.sampled_from([least, least + 1, top - 1, top]),
        st.integers(least, min(top, least + 100)),
        st.integers(least, top),
    )


def _hots(*, last: int = LAST) -> st.SearchStrategy[NodeState]:
    return st.builds(
        NodeState,
        beat=_lane(32),
        busy=_lane(6),
        bond=_lane(80),
        r=_lane(26),
        s=_lane(26),
        rep_time=st.one_of(st.just(0), st.integers(0, last)),
        cusum=_lane(8),
        quarantine=_lane(32),
        trips=_lane(4),
        status=st.builds(NodeFlag, st.integers(0, 7)),
        seasoned=st.booleans(),
        count=_lane(5),
        silent=st.booleans(),
    )


CODES = st.builds(lambda mantissa, exponent: mantissa * 10**exponent, st.integers(0, 1023), st.integers(0, 31))
POLICIES = st.builds(
    replace,
    st.just(POLICY),
    fee_bps=_lane(10),
    min_bond_bps=_lane(16),
    claim_ramp=_lane(12),
    fetch_floor=_lane(12),
    fresh_delay=_lane(16),
    open_claim_after=_lane(12),
    probation_price=CODES,
    ack_time=_lane(10),
    grace_floor=_lane(12),
    start_fee_seconds=_lane(12),
)
TERMS = st.builds(
    Terms,
    submitter=st.just("0x" + "11" * 20),
    salt=st.just(0),
    spec=st.just(b"\x01" * 32),
    needs=st.just(Needs()),
    ceiling=_lane(80, least=1),
    max_seconds=_lane(24, least=1),
    deadline=_lane(40),
    keeper_fee=_lane(80),
    policy=st.builds(words.pack_policy, POLICIES),
    max_attempts=st.integers(1, 8),
    billing=st.sampled_from(Billing),
    flags=st.sampled_from([TermsFlag(0), TermsFlag.NEWCOMERS, TermsFlag.PROVEN]),
    challenge_window=_lane(24),
    bond_bps=_lane(24),
)
# Its deadline and its window have the highest bits of their lanes.
PROVEN_LATE = Terms(
    submitter="0x" + "11" * 20,
    salt=0,
    spec=b"\x01" * 32,
    needs=Needs(),
    ceiling=1,
    max_seconds=1,
    deadline=U[40],
    keeper_fee=0,
    policy=words.pack_policy(POLICY),
    flags=TermsFlag.PROVEN,
    challenge_window=U[24],
)


def _money_limits(terms: Terms) -> tuple[int, int]:
    packed = words.pack_terms(terms)
    return packed[3], packed[4]


# ---- money ----


@given(TERMS)
def test_unit_price_and_budget__equal(terms: Terms) -> None:
    contract, (money, limits) = _arithmetic().call, _money_limits(terms)
    assert contract.unit_price(money, limits) == formulas.unit_price(terms) == formulas.price(terms)
    assert contract.budget(money, limits) == formulas.lease_budget(terms) == formulas.escrow_at_post(terms)


@given(TERMS, st.integers(0, 8))
def test_holds__equal(terms: Terms, tips: int) -> None:
    unit = Unit(state=State.OPEN, tips=min(tips, terms.max_attempts))
    assert _arithmetic().call.holds(*_money_limits(terms), words.pack_unit(unit)) == formulas.unit_holds(terms, unit)


@given(TERMS)
def test_bond__equal(terms: Terms) -> None:
    found = _arithmetic().call.bond(*_money_limits(terms), terms.policy)
    assert found == formulas.bond(terms) >= formulas.base_bond(terms)
    slash = _arithmetic().call.slash(*_money_limits(terms), terms.policy)
    assert slash == formulas.slash_of(terms) == formulas.slash_of(replace(terms, bond_bps=0))


@given(TERMS, st.integers(-1, 1))
def test_ask__equal(terms: Terms, beside: int) -> None:
    policy = formulas.policy_of(terms)
    for level in (policy, replace(policy, probation_price=_near(formulas.price(terms), beside))):
        posted = replace(terms, policy=words.pack_policy(level))
        ask = formulas.ask_of(posted)
        found = _arithmetic().call.ask(words.pack_terms(posted))
        assert tuple(found) == (words.pack_needs(ask.needs), ask.ceiling, ask.bond, ask.probation)


def _near(amount: int, beside: int) -> int:
    """Return an amount with a code next to `amount`, or `amount` itself."""
    mantissa, exponent = amount, 0
    while mantissa > 1022:
        mantissa, exponent = mantissa // 10, exponent + 1
    return max(0, mantissa + beside) * 10**exponent


@given(TERMS, _lane(80), _lane(24), _lane(24), _lane(40))
def test_pay_at_settle__equal(terms: Terms, rate: int, used: int, elapsed: int, started: int) -> None:
    policy = formulas.policy_of(terms)
    started = min(started, U[40] - elapsed)
    used = min(used, U[24] - terms.max_seconds)
    unit = Unit(state=State.SUBMITTED, rate=rate, started=started, mark=started + elapsed, seconds=used)
    contract = _arithmetic().call
    whole = _money_limits(formulas.topped(terms, unit))  # the contracts hand in limits with what was bought
    billed = formulas.billed_seconds(terms, unit)
    pay = contract.pay(*whole, words.pack_unit(unit), billed)
    assert pay == formulas.pay_at_settle(terms, unit) <= formulas.price(formulas.topped(terms, unit))
    assert contract.fee(pay, terms.policy) == formulas.fee_of(pay, policy)
    closing = min(elapsed, formulas.lease_seconds(formulas.topped(terms, unit))) + policy.start_fee_seconds
    found = contract.pay(*whole, words.pack_unit(unit), closing)
    assert found == formulas.pay_at_close(terms, replace(unit, state=State.CLOSING))
    found = contract.pay(*whole, words.pack_unit(unit), policy.start_fee_seconds)
    assert found == formulas.pay_at_void(terms, unit)


@given(_lane(80), st.one_of(st.integers(0, 1_200), st.integers(0, 2**40)))
@example(U[80], 0)
@example(U[80], 599)
@example(U[80], 600)
@example(U[80], 2**60)
def test_ramp__equal(base: int, overdue: int) -> None:
    assert _arithmetic().call.ramp(base, overdue) == formulas.ramp(base, overdue)


@given(_lane(80), st.integers(0, 2_000), TERMS)
def test_rewards__equal(slash: int, overdue: int, terms: Terms) -> None:
    ramp = _arithmetic().call.ramp
    assert ramp(terms.keeper_fee // 8, overdue) == formulas.settle_reward(terms, overdue)
    assert min(slash // 4, ramp(terms.keeper_fee // 8, overdue)) == formulas.reclaim_reward(terms, slash, overdue)
    expected = min(terms.keeper_fee, ramp(terms.keeper_fee // 4, overdue))
    assert expected == formulas.expire_reward(terms, None, overdue)


@given(st.integers(0, 2**15 - 1))
@example(2**15 - 1)
def test_amount__equal(code: int) -> None:
    assert _arithmetic().call.amount(code) == words.decode_amount(code)


@given(TERMS)
def test_lease_time__equal(terms: Terms) -> None:
    found = _arithmetic().call.lease_time(_money_limits(terms)[1], terms.policy)
    assert found == formulas.lease_seconds(terms) + formulas.grace(terms)


@given(
    TERMS,
    _lane(40),
    st.sampled_from([UnitFlag(0), UnitFlag.FRESH, UnitFlag.FRESH | UnitFlag.ACCUSED]),
    st.sampled_from([State.SUBMITTED, State.DISPUTED]),
)
@example(PROVEN_LATE, 1, UnitFlag(0), State.SUBMITTED)
def test_settleable_from__equal(terms: Terms, mark: int, flags: UnitFlag, state: State) -> None:
    unit = Unit(state=state, mark=mark, flags=flags)
    for posted in (terms, replace(terms, deadline=mark, challenge_window=0)):
        found = _arithmetic().call.settleable_from(_money_limits(posted)[1], terms.policy, words.pack_unit(unit))
        assert found == formulas.settleable_from(posted, unit) >= formulas.challenge_end(posted, unit)


@given(TERMS, _lane(40))
def test_declinable_until__equal(terms: Terms, started: int) -> None:
    policy = formulas.policy_of(terms)
    unit = Unit(state=State.RUNNING, started=started)
    found = _arithmetic().call.declinable_until(_money_limits(terms)[1], terms.policy, words.pack_unit(unit))
    assert found == formulas.declinable_until(terms, unit)
    assert started + policy.fetch_floor <= found <= started + max(policy.fetch_floor, 3_600)


@given(TERMS, _lane(80))
def test_whole_fee__equal(terms: Terms, rate: int) -> None:
    unit = Unit(state=State.RUNNING, rate=rate)
    found = _arithmetic().call.whole_fee(
        formulas.price(terms), words.pack_unit(unit), _money_limits(terms)[1], terms.policy
    )
    assert found == formulas.whole_fee(terms, unit)


@given(TERMS)
def test_burns__cover_the_tip(terms: Terms) -> None:
    """What a match paid its proposer is never more than its node loses, however the lease ends without a result."""
    tip = formulas.tip(terms)
    assert _arithmetic().call.tip(_money_limits(terms)[0]) == tip
    for flags in (UnitFlag(0), UnitFlag.ACKED, UnitFlag.FRESH):
        unit = Unit(state=State.RUNNING, flags=flags)
        found = _arithmetic().call.tip_to_burn(_money_limits(terms)[0], words.pack_unit(unit))
        assert found == formulas.tip_to_burn(terms, unit)
    slash, burn = formulas.slash_of(terms), formulas.give_up_burn(terms)
    assert 16 * tip <= formulas.base_bond(terms) <= formulas.bond(terms)
    assert tip <= burn <= slash
    for overdue in (0, 200, 600, 10**6):
        reward = formulas.reclaim_reward(terms, slash, overdue)
        assert tip <= slash - reward, "a reclaim that no ration spares"
        assert burn <= slash - reward, "to reclaim oneself never beats giving up"


# ---- matching ----


@given(st.binary(min_size=32, max_size=32), _lane(24), _lane(4), _lane(32), st.integers(0, 10**8))
def test_key__equal(job: bytes, index: int, attempts: int, node: int, score: int) -> None:
    found = _arithmetic().call.key(job, index, attempts, node, score)
    expected = formulas.key(score, formulas.seed(formulas.JobId(job), index, attempts), NodeId(node))
    assert found == expected <= U[48]


@given(_lane(32), _lane(80), _lane(40), st.integers(0, 14), _lane(32), POLICIES, st.integers(-2, 2))
def test_with_lapse__equal(
    node: int, rate: int, mark: int, lapses: int, winner: int, policy: Policy, beside: int
) -> None:
    unit = Unit(
        state=State.OPEN,
        node=NodeId(node),
        rate=rate,
        started=7,
        mark=mark,
        attempts=3,
        tips=2,
        lapses=lapses,
        flags=UnitFlag.ACCUSED,
    )
    best = Best(node=NodeId(winner), key=U[48], extensions=3, payee="0x" + "ff" * 20)
    now = max(0, mark + policy.ack_time + beside)
    contract, word = _arithmetic().call, words.pack_unit(unit)
    if contract.has_lapsed(word, words.pack_policy(policy), now):
        word = contract.drop(word, words.pack_best(best))
    terms = replace(PROVEN_LATE, policy=words.pack_policy(policy))
    assert words.unpack_unit(word) == formulas.with_lapse(terms, unit, best, now)


@given(TERMS, st.integers(0, 2), _lane(40), _lane(40), st.integers(0, 2))
def test_claims_from__equal(terms: Terms, window: int, started: int, mark: int, lapses: int) -> None:
    policy = formulas.policy_of(terms)
    terms = replace(terms, match_window=12 * window)
    for last in (mark, started + policy.open_claim_after, 0):
        unit = Unit(state=State.OPEN, started=started, mark=min(last, U[40]), lapses=lapses)
        found = _arithmetic().call.claims_from(words.pack_unit(unit), _money_limits(terms)[1], terms.policy)
        assert found == formulas.claims_from(terms, unit)


@given(TERMS, st.one_of(st.integers(0, 4_000), st.integers(0, 2**40)))
def test_claim_ceiling__equal(terms: Terms, waited: int) -> None:
    policy = formulas.policy_of(terms)
    policy = replace(policy, claim_ramp=max(1, policy.claim_ramp))
    terms = replace(terms, policy=words.pack_policy(policy))
    found = _arithmetic().call.claim_ceiling(_money_limits(terms)[0], terms.policy, waited)
    assert found == formulas.claim_ceiling(terms, waited)
    assert terms.ceiling // 4 <= found <= terms.ceiling
    assert (found == terms.ceiling) >= (waited >= policy.claim_ramp)


@given(TERMS, _lane(80))
def test_claim_wait__equal__and_is_the_first_second_that_suffices(terms: Terms, rate: int) -> None:
    policy = formulas.policy_of(terms)
    policy = replace(policy, claim_ramp=max(1, policy.claim_ramp))
    terms = replace(terms, policy=words.pack_policy(policy))
    for ask in {min(rate, terms.ceiling), terms.ceiling, formulas.ceil_div(terms.ceiling, 4), terms.ceiling // 4}:
        found = _arithmetic().call.claim_wait(_money_limits(terms)[0], terms.policy, ask)
        assert found == formulas.claim_wait(terms, ask) <= policy.claim_ramp
        assert formulas.claim_ceiling(terms, found) >= ask
        assert not found or formulas.claim_ceiling(terms, found - 1) < ask


SIZES: dict[str, int] = {"tier": 6, "gpu_count": 6, "vram_gib": 10, "cores": 10, "ram_gib": 14, "disk_gib": 17}


@st.composite
def _pairs(draw: st.DrawFn) -> tuple[Needs, Offer, NodeState, int]:
    """Draw needs, an offer that covers them, a node state and a ceiling not below the ask."""
    offered = {name: draw(_lane(bits)) for name, bits in SIZES.items()}
    needed = {name: draw(st.one_of(st.just(0), st.just(top), st.integers(0, top))) for name, top in offered.items()}
    needed["tier"] = max(needed["tier"], offered["tier"] - draw(st.integers(0, 6)))
    mask = draw(st.one_of(st.just(0), st.integers(0, U[16])))
    zones = [zone for zone in range(16) if not mask or mask >> zone & 1]
    offer = Offer(
        runtimes=Runtime(15),
        zone=draw(st.sampled_from(zones)),
        slots=draw(_lane(6, least=1)),
        ask=draw(_lane(80, least=1)),
        **offered,
    )
    needs = Needs(runtimes=Runtime.WASM, zone_mask=mask, home=draw(_lane(4)), **needed)
    hot = replace(draw(_hots()), busy=draw(st.integers(0, offer.slots - 1)))
    return needs, offer, hot, max(offer.ask, draw(_lane(80, least=1)))


@given(_pairs())
def test_score__equal(drawn: tuple[Needs, Offer, NodeState, int]) -> None:
    needs, offer, hot, ceiling = drawn
    found = _arithmetic().call.score(
        words.pack_needs(needs), ceiling, offer.ask, words.pack_offer(offer), words.pack_node_state(hot)
    )
    assert found == formulas.score(needs, ceiling, offer.ask, offer, hot)
    assert 0 <= found <= 10**8


def test_score__job_that_names_no_tier__who_hides_its_model_wins_nothing() -> None:
    needs, hot = Needs(gpu_count=1, vram_gib=20), NodeState()
    shown = [Offer(gpu_count=1, vram_gib=24, tier=tier, ask=1) for tier in (0, 1, 472, 1023)]
    assert len({formulas.score(needs, 10, 1, offer, hot) for offer in shown}) == 1
    named = replace(needs, tier=472)
    assert formulas.score(named, 10, 1, shown[2], hot) > formulas.score(named, 10, 1, shown[3], hot)


def test_score__all_distances__equal() -> None:
    hot = NodeState()
    for home in range(16):
        for zone in range(16):
            needs, offer = Needs(zone_mask=U[16], home=home), Offer(zone=zone, ask=1)
            found = _arithmetic().call.score(
                words.pack_needs(needs), 1, 1, words.pack_offer(offer), words.pack_node_state(hot)
            )
            assert found == formulas.score(needs, 1, 1, offer, hot), (home, zone)


def test_score__extremes__equal() -> None:
    worst_hot = NodeState(s=U[26], busy=62)
    needs = Needs(zone_mask=U[16], home=0)
    worst = Offer(tier=63, gpu_count=63, vram_gib=1023, cores=1023, ram_gib=U[14], zone=15, slots=63, ask=U[80])
    best_hot, best = NodeState(r=U[26]), Offer(ask=1)
    for need, offer, hot in ((needs, worst, worst_hot), (Needs(), best, best_hot), (needs, best, worst_hot)):
        found = _arithmetic().call.score(
            words.pack_needs(need), U[80], offer.ask, words.pack_offer(offer), words.pack_node_state(hot)
        )
        assert found == formulas.score(need, U[80], offer.ask, offer, hot)


# ---- gates ----


@st.composite
def _fitting(draw: st.DrawFn) -> tuple[Node, formulas.Ask, int]:
    """Draw a node, an ask that it fits, and the time."""
    needs, offer, hot, ceiling = draw(_pairs())
    now = draw(st.integers(DEAD_AFTER, LAST))
    bond, free = draw(_lane(80)), draw(_lane(80))
    held = min(bond, U[80] - free)
    asked = draw(st.integers(0, min(free, U[80] - held)))
    probation = draw(st.sampled_from([0, 1, held + asked - 1, held + asked, formulas.MAX_UINT]))
    probation = max(0, probation)
    seasoned = hot.seasoned or probation == 0 or (held > 0 and held + asked > probation)
    hot = replace(
        hot,
        beat=draw(st.integers(now - DEAD_AFTER + 1, now)),
        quarantine=draw(st.sampled_from([0, now - 1, now])),
        status=draw(st.sampled_from([NodeFlag(0), NodeFlag.SLASHED])),
        bond=held,
        seasoned=seasoned,
    )
    node = Node(NodeId(1), NATIVE, NATIVE, max(MINIMUM, held + free), offer, hot)
    ask = formulas.Ask(needs, ceiling, asked, probation)
    return node, ask, now


def _gate(node: Node, ask: formulas.Ask, now: int) -> int:
    """Return the contract's gate, and demand that it is the library's."""
    packed = words.pack_needs(ask.needs), ask.ceiling, ask.bond, ask.probation
    args = words.pack_node_state(node.state), words.pack_offer(node.offer), node.stake, packed, node.offer.ask
    evm = _gates().evm
    evm.now = now
    found: int = _gates().call.gate(*args)
    assert found == formulas.node_gate(node, ask, now, DEAD_AFTER, MINIMUM)
    return found


def _break(gate: Gate, node: Node, ask: formulas.Ask, now: int) -> tuple[Node, formulas.Ask]:
    """Change a fitting pair by as little as it takes to fail at one gate."""
    hot, offer, needs = node.state, node.offer, ask.needs
    lanes: dict[Gate, str] = dict(formulas._SIZE_GATES)
    if gate in lanes:
        name = lanes[gate]
        offered = min(getattr(offer, name), U[SIZES[name]] - 1)
        offer = replace(offer, **{name: offered})
        return replace(node, offer=offer), ask._replace(needs=replace(needs, **{name: offered + 1}))
    changes: dict[Gate, tuple[Node, formulas.Ask]] = {
        Gate.FITS: (node, ask),
        Gate.NOT_LIVE: (replace(node, state=replace(hot, beat=now - DEAD_AFTER)), ask),
        Gate.NOT_ACTIVE: (replace(node, stake=(MINIMUM - 1) // 2, state=replace(hot, bond=0)), ask),
        Gate.EXITING: (replace(node, state=replace(hot, status=NodeFlag.EXITING)), ask),
        Gate.QUARANTINED: (replace(node, state=replace(hot, quarantine=now + 1)), ask),
        Gate.NO_SLOT: (replace(node, state=replace(hot, busy=offer.slots)), ask),
        Gate.STAKE_SHORT: (node, ask._replace(bond=node.stake - hot.bond + 1)),
        Gate.RUNTIME: (replace(node, offer=replace(offer, runtimes=Runtime.JUROR)), ask),
        Gate.ZONE: (node, ask._replace(needs=replace(needs, zone_mask=U[16] ^ 1 << offer.zone))),
        Gate.PRICE: (node, ask._replace(ceiling=offer.ask - 1)),
        Gate.PROBATION: (replace(node, state=replace(hot, seasoned=False)), ask._replace(probation=0)),
    }
    return changes[gate]


@pytest.mark.parametrize("gate", [gate for gate in Gate if gate <= Gate.PROBATION])
def test_gate__broken_by_one__is_named_alike(gate: Gate) -> None:
    @settings(max_examples=25)
    @given(_fitting())
    def check(drawn: tuple[Node, formulas.Ask, int]) -> None:
        node, ask, now = drawn
        assert _gate(node, ask, now) == Gate.FITS
        assert _gate(*_break(gate, node, ask, now), now) == gate

    check()


@given(_fitting(), st.lists(st.sampled_from([g for g in Gate if g <= Gate.PROBATION]), min_size=2, max_size=5))
def test_gate__several_broken__name_the_same_first(drawn: tuple[Node, formulas.Ask, int], gates: list[Gate]) -> None:
    node, ask, now = drawn
    for gate in gates:
        node, ask = _break(gate, node, ask, now)
    assume(node.offer.ask > 0 and node.stake >= node.state.bond)
    _gate(node, ask, now)


def test_gate__newcomer__is_bounded_by_what_it_has_reserved_but_for_a_first_lease() -> None:
    node = Node(NodeId(1), NATIVE, NATIVE, MINIMUM, Offer(slots=3, ask=5), NodeState(beat=10**9))
    ask = formulas.Ask(Needs(), 5, 7, 10)
    for reserved, most, gate in (
        *((0, 1, Gate.FITS), (1, 1, Gate.PROBATION), (0, 0, Gate.PROBATION)),
        *((3, 10, Gate.FITS), (4, 10, Gate.PROBATION), (4, formulas.MAX_UINT, Gate.FITS)),
    ):
        held = replace(node, state=replace(node.state, bond=reserved))
        assert _gate(held, ask._replace(probation=most), 10**9) == gate, (reserved, most)


def test_gate__never_beat__is_not_live() -> None:
    node = Node(NodeId(1), NATIVE, NATIVE, MINIMUM, Offer(ask=5), NodeState())
    assert _gate(node, formulas.Ask(Needs(), 5, 0, formulas.MAX_UINT), 10) == Gate.NOT_LIVE


# ---- reputation ----


@given(_lane(26), st.one_of(st.integers(0, 3 * 256), st.integers(0, 2**32)))
@example(U[26], 0)
@example(U[26], 255)
@example(U[26], 256)
@example(U[26], 31 * 256)
@example(U[26], 32 * 256 - 1)
@example(U[26], 32 * 256)
def test_decay__equal(amount: int, steps: int) -> None:
    found = _arithmetic().call.decay(amount, steps)
    assert found == reputation.decay(amount, steps)
    exact = amount * 2 ** (-steps / 256)
    assert abs(found - exact) <= DECAY_ERROR * exact + 2


@pytest.mark.parametrize("pause", [78, 79, 1_000, 10_124, 10_125, 10_126, 86_400])
def test_observe__however_often__what_was_30_days_ago_counts_half(pause: int) -> None:
    """Profit of a node that is observed all the time, by work of its own that pays next to nothing: none."""
    start = 10**9
    end = start + reputation.HALF_LIFE
    hot = NodeState(beat=1, r=40 * ONE, s=10 * ONE, rep_time=start)
    for now in (*range(start, end, pause), end):
        hot = reputation.observe(hot, True, 0, now)
    assert hot.rep_time == end
    for found, before in ((hot.r, 40 * ONE), (hot.s, 10 * ONE)):
        assert 0.499 * before < found < 0.513 * before


WEIGHTS = st.one_of(st.sampled_from([0, 1, ONE // 2, ONE - 1, ONE]), st.integers(0, ONE))


@given(_hots(), st.booleans(), WEIGHTS, st.one_of(st.integers(0, 10**7), st.integers(0, 2**32)))
def test_observe__equal(hot: NodeState, ok: bool, weight: int, passed: int) -> None:
    now = min(hot.rep_time + passed, LAST)
    found = _arithmetic().call.observe(words.pack_node_state(hot), ok, weight, now)
    assert words.unpack_node_state(found) == reputation.observe(hot, ok, weight, now)


@given(st.lists(st.tuples(st.booleans(), WEIGHTS, st.integers(0, 5 * 86_400)), max_size=40), _hots(last=10**9))
def test_observe__histories__stay_equal(steps: list[tuple[bool, int, int]], start: NodeState) -> None:
    hot, now = start, start.rep_time
    word = words.pack_node_state(start)
    for ok, weight, passed in steps:
        now += passed
        hot, word = reputation.observe(hot, ok, weight, now), _arithmetic().call.observe(word, ok, weight, now)
        assert words.unpack_node_state(word) == hot


@pytest.mark.parametrize("ok", [True, False])
@pytest.mark.parametrize("trips", range(16))
def test_observe__every_trip_count_at_the_breaker__equal(ok: bool, trips: int) -> None:
    for cusum in (0, 1, 15, 16, 127, 128, 129, 191, 192, 255):
        for count in (0, 30, 31):
            for weight in (ONE // 64 - 1, ONE // 64, ONE - 1, ONE):
                hot = NodeState(r=U[26], s=U[26], rep_time=LAST, cusum=cusum, trips=trips, count=count, quarantine=LAST)
                found = _arithmetic().call.observe(words.pack_node_state(hot), ok, weight, LAST)
                assert words.unpack_node_state(found) == reputation.observe(hot, ok, weight, LAST)


def test_observe__third_failure__quarantines_for_an_hour_doubling_to_a_week() -> None:
    word, spans = words.pack_node_state(NodeState(beat=1, rep_time=10**9)), []
    for _ in range(11):
        word = _arithmetic().call.observe(word, False, ONE, 10**9)
        spans.append(max(0, words.unpack_node_state(word).quarantine - 10**9))
    hours = [0, 0, 1, 2, 4, 8, 16, 32, 64, 128, 168]
    assert spans == [3_600 * hour for hour in hours]


@given(_lane(26), _lane(26))
def test_reputation__equal(r: int, s: int) -> None:
    found = _arithmetic().call.reputation_of(words.pack_node_state(NodeState(r=r, s=s)))
    assert found == reputation.reputation(r, s)
    assert 0 < found < 10_000


def test_arithmetic__functions__are_each_compared() -> None:
    here = Path(__file__)
    source = "".join(path.read_text(encoding="utf-8") for path in (here, here.with_name("test_parents.py")))
    for function in _arithmetic().all_functions():
        assert f".{function.name}" in source, f"{function.name} is not compared"
