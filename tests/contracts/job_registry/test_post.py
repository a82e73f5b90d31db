"""JobRegistry.post: every range of the terms, what this version refuses, the exact funding."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from eth_utils.crypto import keccak

from hearth.base.abi import encode
from hearth.protocol import words
from hearth.protocol.parents import parents_hash
from hearth.protocol.types import Billing, Header, Needs, Posted, Runtime, State, Terms, TermsFlag, Unit
from tests.kit.evm import CHAIN_ID, Receipt, Reverted, reverts
from tests.kit.steps import BUDGET, KEEPER_FEE, LEASE, LIE, SILENT, around, awkward
from tests.kit.world import DAY, NEEDS, POLICY, World

TOP = 2**80 - 1


def _post(world: World, **overrides: Any) -> Receipt:
    world.evm.set_balance(world.submitter, 2**100)
    return world.post_receipt(world.terms(**overrides))


def _post_words(world: World, packed: tuple[Any, ...], amount: int) -> Receipt:
    return world.pay(world.jobs, "post", packed, [], amount=amount, sender=world.submitter)


def test_post__one_lease__opens_it_and_locks_the_funding(market: World) -> None:
    terms = market.terms()
    receipt = market.post_receipt(terms)
    job = market.id_of(terms)
    assert receipt.value == job
    assert market.unit(terms) == Unit(state=State.OPEN, started=market.evm.now)
    assert market.load(terms)[2:] == (0, 0)
    assert market.lock_of(market) == BUDGET


def test_post__array__writes_the_header_and_locks_every_lease(market: World) -> None:
    terms = market.post(units=7)
    assert market.header(terms) == Header(opened=market.evm.now, leases=7)
    assert [market.load(terms, index)[1] for index in (0, 6)] == [0, 0]
    assert market.lock_of(terms) == 7 * BUDGET


def test_post__default__logs_terms_and_parents(world: World) -> None:
    terms = world.terms()
    event = world.post_receipt(terms).event("JobPosted")
    assert (event["job_id"], event["submitter"], event["parents"]) == (world.id_of(terms), world.submitter, [])
    assert tuple(event["terms"]) == words.pack_terms(terms)


@pytest.mark.parametrize("block", [1_000, 2**63, 2**64 - 3])
def test_post__second_job__names_the_block_of_the_first(world: World, block: int) -> None:
    world.evm.block = block
    first = world.post_receipt(world.terms()).event("JobPosted")
    at = world.evm.block
    assert at > block and (first["number"], first["previous"]) == (1, 0)
    second = world.post_receipt(world.terms()).event("JobPosted")
    assert (second["number"], second["previous"]) == (2, at)
    assert words.unpack_posted(world.jobs.call.posted()) == Posted(block=at + 1, count=2)


def test_post__odd_price__rounds_the_funding_up(world: World) -> None:
    terms = world.terms(ceiling=10**18 + 1, max_seconds=999)
    price = 10**12 * 999 + 1  # (1e18 + 1) x 999 / 1e6 = 999e12 + 0.000999
    with reverts("jobs: wrong value sent"):
        world.post(terms, amount=price + 3 * 10**14 - 1)
    world.post(terms, amount=price + 3 * 10**14)


def test_post__same_terms_twice__reverts_even_after_the_end(world: World) -> None:
    terms = world.post()
    with reverts("jobs: posted before"):
        world.post(terms)
    world.cancel(terms)
    with reverts("jobs: posted before"):
        world.post(terms)
    world.post(replace(terms, salt=terms.salt + 1))


def test_post__not_the_submitter__reverts(world: World) -> None:
    terms = world.terms()
    with reverts("jobs: not the submitter"):
        world.jobs.send.post(words.pack_terms(terms), [], sender=world.stranger, value=BUDGET)


# ---- the words ----


@pytest.mark.parametrize(
    ("word", "bit"),
    [(2, bit) for bit in (10, 17, 28, 39, 54, 72, 106, 255)]
    + [(3, 160), (3, 255), (4, 212), (4, 255), (6, 160), (6, 255)],
)
def test_post__spare_bit__reverts(world: World, word: int, bit: int) -> None:
    packed: list[Any] = list(words.pack_terms(world.terms()))
    packed[word] |= 1 << bit
    with reverts("jobs: spare bits set"):
        _post_words(world, tuple(packed), BUDGET)


def test_post__spec_zero__reverts(world: World) -> None:
    with reverts("jobs: spec zero"):
        _post(world, spec=bytes(32))


def test_post__no_runtime__reverts(world: World) -> None:
    with reverts("jobs: no runtime asked"):
        _post(world, needs=replace(NEEDS, runtimes=Runtime(0)))


def test_post__largest_needs__are_taken(world: World) -> None:
    needs = Needs(Runtime(15), 63, 63, 1023, 1023, 16_383, 131_071, 0xFFFF, 15)
    _post(world, needs=needs)


def test_post__ceiling_zero__reverts(world: World) -> None:
    with reverts("jobs: ceiling zero"):
        _post(world, ceiling=0)


@pytest.mark.parametrize("seconds", [0, 30 * DAY + 1, 2**23 + 1_000, 2**24 - 1])
def test_post__max_seconds_out_of_range__reverts(world: World, seconds: int) -> None:
    with reverts("jobs: max_seconds out of range"):
        _post(world, max_seconds=seconds, deadline=world.evm.now + 90 * DAY)


@pytest.mark.parametrize("seconds", [1, 30 * DAY])
def test_post__max_seconds_at_the_bounds__is_taken(world: World, seconds: int) -> None:
    _post(world, max_seconds=seconds, deadline=world.evm.now + 90 * DAY, keeper_fee=10**11)


@pytest.mark.parametrize(("seconds", "lease"), [(1_000, LEASE), (3_000, 3_300), (3_009, 3_309), (3_010, 3_311)])
def test_post__deadline__leaves_a_whole_lease(world: World, seconds: int, lease: int) -> None:
    _post(world, max_seconds=seconds, deadline=world.evm.now + lease)
    with reverts("jobs: deadline too near"):
        _post(world, max_seconds=seconds, deadline=world.evm.now + lease - 1)


@pytest.mark.parametrize("units", [0, 2**20 + 1, 2**23 + 1, 2**24 - 1])
def test_post__units_out_of_range__revert(world: World, units: int) -> None:
    with reverts("jobs: units out of range"):
        _post(world, units=units)


def test_post__most_units__are_taken(world: World) -> None:
    world.evm.set_balance(world.submitter, 2**100)
    terms = world.post(units=2**20)
    assert world.lock_of(terms) == 2**20 * BUDGET


@pytest.mark.parametrize(
    "fields",
    [
        dict(chunk=0),
        dict(chunk=257, units=257),
        dict(chunk=2, units=3),
        dict(chunk=2),
        dict(chunk=2**15 + 1, units=2**15 + 1),
    ],
)
def test_post__chunk_out_of_range__reverts(world: World, fields: dict[str, int]) -> None:
    with reverts("jobs: chunk out of range"):
        _post_words(world, words.pack_terms(world.terms(**fields)), BUDGET)


@pytest.mark.parametrize(
    "fields",
    [dict(chunk=2, units=2), dict(chunk=256, units=256), dict(chunk=2, units=4), dict(chunk=3, units=2**23 + 1)],
)
def test_post__chunks__are_not_built(world: World, fields: dict[str, int]) -> None:
    with reverts("jobs: no chunks yet"):
        _post(world, **fields)


@pytest.mark.parametrize("replicas", [0, 2, 4, 6, 8, 9, 15])
def test_post__replicas_out_of_range__revert(world: World, replicas: int) -> None:
    with reverts("jobs: replicas out of range"):
        _post(world, replicas=replicas, quorum=max(replicas, 1))


@pytest.mark.parametrize(
    ("replicas", "quorum"), [(1, 0), (1, 2), (3, 1), (3, 4), (3, 10), (5, 2), (5, 6), (7, 3), (7, 8)]
)
def test_post__quorum_out_of_range__reverts(world: World, replicas: int, quorum: int) -> None:
    with reverts("jobs: quorum out of range"):
        _post(world, replicas=replicas, quorum=quorum)


@pytest.mark.parametrize(("replicas", "quorum"), [(3, 2), (3, 3), (5, 3), (7, 4), (7, 7)])
def test_post__replicas_without_a_judge_who_proves__revert(world: World, replicas: int, quorum: int) -> None:
    with reverts("jobs: replicas need a judge"):
        _post(world, replicas=replicas, quorum=quorum)
    with reverts("jobs: replicas need a judge"):
        _post(world, **world.judged(replicas=replicas, quorum=quorum))


@pytest.mark.parametrize("window", [1, 11, 301, 2**11 + 12, 4_095])
def test_post__match_window_out_of_range__reverts(world: World, window: int) -> None:
    with reverts("jobs: match_window out of range"):
        _post(world, match_window=window)


@pytest.mark.parametrize("window", [0, 12, 13, 300])
def test_post__match_window_at_the_bounds__is_taken(world: World, window: int) -> None:
    _post(world, match_window=window)


@pytest.mark.parametrize("billing", Billing)
@pytest.mark.parametrize("every", [1, POLICY.min_checkpoint - 1, POLICY.min_checkpoint, 2**23, 2**24 - 1])
def test_post__checkpoints__are_of_metered_jobs_and_not_too_often(world: World, billing: Billing, every: int) -> None:
    if billing == Billing.METERED and every >= POLICY.min_checkpoint:
        _post(world, billing=billing, checkpoint_every=every)
        return
    with reverts("jobs: checkpoint out of range"):
        _post(world, billing=billing, checkpoint_every=every)


def test_post__least_window_and_checkpoint_of_the_policy__count_with_their_highest_bits() -> None:
    world = World(policy=replace(POLICY, min_match_window=256, min_checkpoint=512))
    metered = {"billing": Billing.METERED}
    with reverts("jobs: match_window out of range"):
        _post(world, match_window=255)
    _post(world, match_window=256)
    with reverts("jobs: checkpoint out of range"):
        _post(world, checkpoint_every=511, **metered)
    _post(world, checkpoint_every=512, **metered)


@pytest.mark.parametrize(
    ("least", "reason"),
    [
        ({"min_price": 10**18}, "jobs: price below minimum"),
        ({"min_keeper_fee": 10**18}, "jobs: keeper_fee out of range"),
    ],
)
def test_post__least_amounts_of_the_policy__count_with_their_highest_bit(least: dict[str, int], reason: str) -> None:
    """An eighteenth power of ten is coded with the highest bit of its exponent."""
    world = World(policy=replace(POLICY, **least))
    with reverts(reason):
        _post(world)
    _post(world, ceiling=10**21, keeper_fee=10**18)


def test_post__runtime_without_a_name__is_taken(world: World) -> None:
    """Of the lane's eight only four have one."""
    packed: list[Any] = list(words.pack_terms(world.terms(needs=replace(NEEDS, runtimes=Runtime(0)))))
    with reverts("jobs: no runtime asked"):
        _post_words(world, tuple(packed), BUDGET)
    packed[2] |= 2**76
    _post_words(world, tuple(packed), BUDGET)


def test_post__deadline_far_away__is_taken(world: World) -> None:
    for deadline in (2**39, 2**40 - 1):
        _post(world, deadline=deadline)


@pytest.mark.parametrize("attempts", [0, 9, 15])
def test_post__attempts_out_of_range__revert(world: World, attempts: int) -> None:
    with reverts("jobs: attempts out of range"):
        _post(world, max_attempts=attempts)


@pytest.mark.parametrize("attempts", [1, 8])
def test_post__attempts_at_the_bounds__are_funded(world: World, attempts: int) -> None:
    terms = world.post(max_attempts=attempts)
    assert world.lock_of(terms) == 10**17 + attempts * 10**14


@pytest.mark.parametrize("billing", [3, 8, 15])
def test_post__unknown_billing__reverts(world: World, billing: int) -> None:
    with reverts("jobs: billing out of range"):
        _post(world, billing=billing)


@pytest.mark.parametrize("billing", list(Billing))
def test_post__billing__is_taken(world: World, billing: Billing) -> None:
    _post(world, billing=billing)


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        (TermsFlag.CONFIDENTIAL, "jobs: no confidential jobs yet"),
        (TermsFlag.PREEMPTIBLE, "jobs: no preemptible jobs yet"),
        (TermsFlag.CONFIDENTIAL | TermsFlag.PREEMPTIBLE, "jobs: no confidential jobs yet"),
        (32, "jobs: unknown flag"),
        (128, "jobs: unknown flag"),
        (TermsFlag.NEWCOMERS | TermsFlag.PROVEN | TermsFlag.KEEP | 32, "jobs: unknown flag"),
    ],
)
def test_post__flag__is_not_built(world: World, flags: int, reason: str) -> None:
    with reverts(reason):
        _post(world, flags=flags)


def test_post__newcomers__is_taken(world: World) -> None:
    _post(world, flags=TermsFlag.NEWCOMERS)


def test_post__keep__is_taken(world: World) -> None:
    _post(world, flags=TermsFlag.KEEP)


# ---- parents ----


def _listed(count: int, condition: int = 1) -> tuple[bytes, ...]:
    """Return a list of as many parents, all with one condition."""
    conditions = sum(condition << 2 * at for at in range(count))
    return (conditions.to_bytes(32, "big"), *(bytes([at + 1]) * 32 for at in range(count)))


def _post_after(world: World, packed: tuple[bytes, ...], **overrides: Any) -> Terms:
    terms = world.terms(parents_hash=parents_hash(packed), **overrides)
    world.post_receipt(terms, parents=packed)
    return terms


@pytest.mark.parametrize("count", [1, 2, 15])
def test_post__parents__block_it_and_are_logged(market: World, count: int) -> None:
    """The lock is one keeper fee more, for the unlock."""
    packed = _listed(count)
    terms = market.terms(parents_hash=parents_hash(packed))
    event = market.post_receipt(terms, parents=packed).event("JobPosted")
    assert tuple(event["parents"]) == packed
    assert market.unit(terms) == Unit(state=State.BLOCKED, started=market.evm.now)
    assert market.load(terms)[2:] == (0, 0)
    assert market.lock_of(terms) == BUDGET + KEEPER_FEE


def test_post__array_with_parents__waits_and_is_funded_for_one_unlock(market: World) -> None:
    terms = _post_after(market, _listed(2), units=7)
    assert market.header(terms) == Header(opened=market.evm.now, waiting=True, leases=7)
    assert [market.load(terms, index)[1] for index in (0, 6)] == [0, 0]
    assert market.lock_of(terms) == 7 * BUDGET + KEEPER_FEE


@pytest.mark.parametrize("amount", [BUDGET, BUDGET + KEEPER_FEE - 1, BUDGET + KEEPER_FEE + 1])
def test_post__parents_with_another_funding__reverts(world: World, amount: int) -> None:
    packed = _listed(1)
    terms = world.terms(parents_hash=parents_hash(packed))
    with reverts("jobs: wrong value sent"):
        world.post_receipt(terms, amount=amount, parents=packed)


def test_post__list_and_hash_that_disagree__revert(world: World) -> None:
    """A list without a hash, a hash without its list, and each list under another's hash."""
    packed, other = _listed(2), _listed(2, 3)
    for hashed, parents in (
        (bytes(32), packed),
        (bytes(32), (bytes(32),)),
        (parents_hash(packed), ()),
        (parents_hash(packed), other),
        (parents_hash(packed), packed[:2]),
        (parents_hash(packed), (packed[0], packed[2], packed[1])),
        (b"\x01" * 32, packed),
    ):
        with reverts("jobs: parents not as hashed"):
            world.post_receipt(world.terms(parents_hash=hashed), parents=parents)


def test_post__empty_list_under_its_own_hash__reverts(world: World) -> None:
    empty = keccak(encode(["bytes32[]"], [[]]))
    with reverts("jobs: parents out of range"):
        world.post_receipt(world.terms(parents_hash=empty), parents=())


def _with_conditions(conditions: int, count: int) -> tuple[bytes, ...]:
    return (conditions.to_bytes(32, "big"), *_listed(count)[1:])


@pytest.mark.parametrize(
    "packed",
    [
        _with_conditions(0, 0),
        _with_conditions(1, 0),
        _with_conditions(0, 1),
        _with_conditions(1 << 2, 1),
        _with_conditions(1 | 1 << 2, 1),
        _with_conditions(1 | 1 << 255, 1),
        _with_conditions(0b01_00, 2),
        _with_conditions(0b00_01, 2),
        _with_conditions(0b01_00_01, 3),
        _with_conditions((1 << 28) - 1, 15),
        _with_conditions((1 << 31) - 1, 15),
        _with_conditions((1 << 30) - 1 - (3 << 14), 15),
    ],
)
def test_post__parents_out_of_range__revert(world: World, packed: tuple[bytes, ...]) -> None:
    """No parent at all, one without a condition, or conditions of more parents than there are."""
    with reverts("jobs: parents out of range"):
        _post_after(world, packed)


@pytest.mark.parametrize("condition", [1, 2, 3])
@pytest.mark.parametrize("count", [1, 15])
def test_post__each_condition_at_the_ends_of_the_range__is_taken(world: World, condition: int, count: int) -> None:
    _post_after(world, _listed(count, condition))


def test_post__parents_and_escrow__fit_96_bits(world: World) -> None:
    """The fee of the unlock counts too."""
    fields: dict[str, int] = dict(
        max_seconds=10**6, deadline=world.evm.now + 30 * DAY, units=2**20, keeper_fee=10**11, max_attempts=1
    )
    most = 2**76 - 1 - 10**11
    _post(world, **fields, ceiling=most)
    world.evm.set_balance(world.submitter, 2**100)
    # 2**20 leases leave 2**20 - 1 base units, less than a keeper fee.
    with reverts("jobs: escrow too large"):
        _post_after(world, _listed(1), **fields, ceiling=most)
    _post_after(world, _listed(1), **fields, ceiling=most - 10**5)


def test_post__judged_with_parents__is_blocked_too(world: World) -> None:
    terms = _post_after(world, _listed(1), **world.judged())
    assert world.state(terms) == State.BLOCKED
    for refused in (lambda: world.dispute(terms), lambda: world.rule(terms, 1)):
        with reverts("jobs: not submitted"):
            refused()


def test_post__same_job_after_other_parents__is_another_job(world: World) -> None:
    first = _post_after(world, _listed(1))
    second = replace(first, parents_hash=parents_hash(_listed(2)))
    world.post_receipt(second, parents=_listed(2))
    assert world.id_of(first) != world.id_of(second)
    with reverts("jobs: posted before"):
        world.post_receipt(first, parents=_listed(1))


# ---- money ----


def test_post__price__may_equal_the_minimum(world: World) -> None:
    # 1e12 is the least price: a ceiling of 1e15 for 1,000 s
    _post(world, ceiling=10**15, keeper_fee=10**11)
    _post(world, ceiling=10**15 - 999, keeper_fee=10**11)  # rounds up to it
    with reverts("jobs: price below minimum"):
        _post(world, ceiling=10**15 - 1_000, keeper_fee=10**11)


def test_post__keeper_fee__lies_between_the_minimum_and_the_price(world: World) -> None:
    for fee in (10**11 - 1, 10**17 + 1, TOP):
        with reverts("jobs: keeper_fee out of range"):
            _post(world, keeper_fee=fee)
    for fee in (10**11, 10**17):
        _post(world, keeper_fee=fee)


def test_post__keeper_fee_of_80_bits__is_no_fee_of_fewer(world: World) -> None:
    with reverts("jobs: keeper_fee out of range"):
        _post_words(world, words.pack_terms(world.terms(keeper_fee=2**79 + KEEPER_FEE)), BUDGET)


def test_post__price_below_the_least_keeper_fee__takes_that_fee() -> None:
    world = World(policy=replace(POLICY, min_price=1, min_keeper_fee=1_000))
    _post(world, ceiling=1, keeper_fee=1_000)
    for fee in (999, 1_001):
        with reverts("jobs: keeper_fee out of range"):
            _post(world, ceiling=1, keeper_fee=fee)


def test_post__bond__fits_80_bits(world: World) -> None:
    # 8 keeper fees are the larger bond here
    fee = 2**77
    with reverts("jobs: bond too large"):
        _post(world, ceiling=2**79, max_seconds=10**6, deadline=world.evm.now + 30 * DAY, keeper_fee=fee)
    _post(world, ceiling=2**79, max_seconds=10**6, deadline=world.evm.now + 30 * DAY, keeper_fee=fee - 1)


def test_post__bond_share__fits_80_bits() -> None:
    world = World(policy=replace(POLICY, min_bond_bps=20_000))
    with reverts("jobs: bond too large"):
        _post(world, ceiling=2**79, max_seconds=10**6, deadline=world.evm.now + 30 * DAY)
    _post(world, ceiling=2**79 - 1, max_seconds=10**6, deadline=world.evm.now + 30 * DAY)


def test_post__funding__fits_96_bits(world: World) -> None:
    fields: dict[str, int] = dict(
        ceiling=2**76,
        max_seconds=10**6,
        deadline=world.evm.now + 30 * DAY,
        units=2**20,
        keeper_fee=10**11,
        max_attempts=1,
    )
    with reverts("jobs: escrow too large"):
        _post(world, **fields)
    # each of the 2**20 leases may hold 2**76 - 1
    _post(world, **{**fields, "ceiling": 2**76 - 1 - 10**11})
    with reverts("jobs: escrow too large"):
        _post(world, **{**fields, "ceiling": 2**76 - 10**11})


@pytest.mark.parametrize("difference", [-1, 1])
def test_post__native_value_not_the_funding__reverts(world: World, difference: int) -> None:
    with reverts("jobs: wrong value sent"):
        world.post(amount=BUDGET + difference)


def test_post__value_beside_tokens__reverts() -> None:
    world = World(erc20=True)
    with reverts("jobs: wrong value sent"):
        world.jobs.send.post(words.pack_terms(world.terms()), [], sender=world.submitter, value=1)


def test_post__tokens_not_approved__reverts() -> None:
    world = World(erc20=True)
    with reverts("token: allowance short"):
        world.post(amount=BUDGET - 1)


def test_post__token_that_answers_false__reverts(world: World) -> None:
    token, _, jobs = awkward(world)
    token.send.mint(world.submitter, BUDGET)
    token.send.approve(jobs, BUDGET, sender=world.submitter)
    token.send.set_traits(LIE)
    with reverts("jobs: transfer failed"):
        jobs.send.post(words.pack_terms(world.terms()), [], sender=world.submitter)


def test_post__token_that_answers_nothing__takes_the_budget(world: World) -> None:
    token, _, jobs = awkward(world)
    token.send.mint(world.submitter, BUDGET)
    token.send.approve(jobs, BUDGET, sender=world.submitter)
    token.send.set_traits(SILENT)
    jobs.send.post(words.pack_terms(world.terms()), [], sender=world.submitter)
    assert token.call.balanceOf(world.submitter) == 0


# ---- policies ----


def test_post__other_policy__reverts(world: World) -> None:
    for policy in (0, 1, words.pack_policy(replace(POLICY, fee_bps=400))):
        with reverts("jobs: policy not current"):
            _post_words(world, words.pack_terms(world.terms(policy=policy)), BUDGET)


def test_post__previous_policy__is_taken_for_24_hours(world: World) -> None:
    newer = words.pack_policy(replace(POLICY, fee_bps=400))
    world.rules.send.set_policy(newer)
    for offset in around(world, world.evm.now + DAY):
        _post(world, policy=newer)
        if offset < 0:
            _post(world)
        else:
            with reverts("jobs: policy not current"):
                _post(world)


def test_post__policy_before_the_previous__reverts(world: World) -> None:
    for fee in (400, 300):
        world.evm.warp(DAY)
        world.rules.send.set_policy(words.pack_policy(replace(POLICY, fee_bps=fee)))
    _post(world, policy=words.pack_policy(replace(POLICY, fee_bps=400)))
    with reverts("jobs: policy not current"):
        _post(world)


def test_post__paused__waits_until_the_pause_ends(market: World) -> None:
    market.rules.send.pause()
    for offset in around(market, market.evm.now + 7 * DAY):
        if offset < 0:
            with reverts("jobs: paused"):
                _post(market)
        else:
            _post(market)
            # Nothing writes it back: the held one counts until another is set.
            assert tuple(market.rules.call.policies()[:2]) == (0, words.pack_policy(POLICY))
            _post(market)


def test_post__paused__refuses_the_previous_policy_and_zero_too(world: World) -> None:
    newer = words.pack_policy(replace(POLICY, fee_bps=400))
    world.rules.send.set_policy(newer)
    world.rules.send.pause()
    for policy in (newer, words.pack_policy(POLICY), 0):
        with reverts("jobs: paused"):
            _post_words(world, words.pack_terms(world.terms(policy=policy)), BUDGET)


def test_post__pause_over__takes_no_zero_policy(world: World) -> None:
    world.rules.send.pause()
    world.evm.warp(7 * DAY)
    with reverts("jobs: policy not current"):
        _post_words(world, words.pack_terms(world.terms(policy=0)), BUDGET)


def test_post__policy_set_within_a_pause__comes_after_it_with_its_previous(world: World) -> None:
    newer = words.pack_policy(replace(POLICY, fee_bps=400))
    world.rules.send.pause()
    world.evm.warp(7 * DAY - 10)
    world.rules.send.set_policy(newer)
    with reverts("jobs: paused"):
        _post(world, policy=newer)
    world.evm.warp(10)
    _post(world)
    _post(world, policy=newer)
    world.evm.warp(DAY)
    with reverts("jobs: policy not current"):
        _post(world)


def test_post__too_many_parents__is_refused_by_the_decoder(world: World) -> None:
    terms: Terms = world.terms()
    with pytest.raises(Reverted):
        world.post_receipt(terms, parents=(b"\x01" * 32,) * 17)


def test_post__chain_that_has_taken_another_id__reverts(world: World) -> None:
    world.evm.become_chain(CHAIN_ID + 1)
    with reverts("jobs: chain id has changed"):
        world.post()
    world.evm.become_chain(CHAIN_ID)
    world.post()
