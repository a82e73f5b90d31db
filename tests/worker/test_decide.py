"""worker.decide: each rule by its boundary, then the properties that must hold for any snapshot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import product
from random import Random
from typing import Any

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from hearth.market.profiles import PUBLIC
from hearth.protocol import formulas, words
from hearth.protocol.gas import CLAIM_GAS, FINISH_GAS
from hearth.protocol.types import (
    SENTINEL,
    Best,
    Billing,
    Gate,
    Header,
    JobId,
    Needs,
    Node,
    NodeFlag,
    NodeId,
    NodeState,
    Offer,
    Outcome,
    Policy,
    Runtime,
    State,
    Terms,
    TermsFlag,
    Unit,
    UnitFlag,
)
from hearth.protocol.types import ZERO_ADDRESS as NOBODY
from hearth.protocol.units import Asset
from worker.decide import (
    AHEAD,
    HELD,
    UNDER_WAY,
    Abort,
    Ack,
    Action,
    Beat,
    Claim,
    Close,
    Config,
    Decline,
    Execution,
    Finish,
    Flight,
    Gather,
    GiveUp,
    HandIn,
    Job,
    Kind,
    Lease,
    LeaseKey,
    Propose,
    ReadSpec,
    Reason,
    SetAside,
    Settle,
    Skip,
    Snapshot,
    SpecFacts,
    Stage,
    StartRun,
    SubmitResult,
    Target,
    TrustedJudge,
    Withdraw,
    decide,
    explain,
    notice,
    outlook,
)
from worker.decide.worth import most_pay

NOW = 1_800_000_000
MARKET = formulas.Immutables(dead_after=900, minimum_stake=10**18)
ME, OTHER = NodeId(3), NodeId(7)
POLICY = replace(PUBLIC.policy, min_price=0, min_keeper_fee=0)
NODE = Node(
    id=ME,
    owner="0x" + "11" * 20,
    operator="0x" + "22" * 20,
    stake=10**20,
    offer=Offer(runtimes=Runtime.WASM | Runtime.DOCKER, cores=8, ram_gib=32, disk_gib=100, slots=4, ask=10**15),
    state=NodeState(beat=NOW - 10, seasoned=True),
)
TERMS = Terms(
    submitter="0x" + "33" * 20,
    salt=1,
    spec=b"\x07" * 32,
    needs=Needs(cores=2, ram_gib=4),
    ceiling=4 * 10**15,
    max_seconds=600,
    deadline=NOW + 86_400,
    keeper_fee=10**12,
    policy=words.pack_policy(POLICY),
    max_attempts=3,
)
WASM = SpecFacts(runtime="wasm", target="bafymodule", output_bytes=1 << 20, input_bytes=1 << 10, sandbox_bytes=1 << 15)
CLAIM = (1 << 20) + (1 << 10) + (1 << 15)
ID = JobId(b"\xaa" * 32)
OPEN = Unit(state=State.OPEN, started=NOW - 5)
RUNNING = Unit(state=State.RUNNING, node=ME, rate=10**15, started=NOW - 100, mark=NOW + 800, attempts=1)
DECLINES_END = RUNNING.started + 150  # a quarter of max_seconds
BEGUN_BY = DECLINES_END - 2  # two seconds for the loop, and no lead
KEY = LeaseKey(ID, 0, 1)
CONFIG = Config(beat_every=300)
GATHERED, GATHERING = Execution(KEY, Stage.GATHERED), Execution(KEY, Stage.GATHERING)
"""What this machine has of an attempt that an ack would begin."""


JUDGE = "0x" + "44" * 20
SETS = TrustedJudge("accept.attesters", frozenset({8}))


def job_of(unit: Unit, best: Best | None = None, **overrides: object) -> Job:
    terms = replace(TERMS, **{k: v for k, v in overrides.items() if k in TERMS.__dataclass_fields__})  # type: ignore[arg-type]
    return Job(ID, terms, (Lease(0, unit, best or Best()),), spec=WASM)


def snapshot_of(*jobs: Job, **overrides: object) -> Snapshot:
    return replace(Snapshot(100, NOW, NODE, MARKET, jobs), **overrides)  # type: ignore[arg-type]


EXACT = job_of(OPEN, needs=replace(TERMS.needs, exact=True))
"""A job for one GPU tier alone, which is 0 as the node's offer has it."""


def image_of(name: str) -> Job:
    return replace(job_of(OPEN), spec=SpecFacts("docker", f"{name}@sha256:{'ab' * 32}", 1 << 20))


def test_decide__image_of_a_registry_that_is_allowed__taken() -> None:
    assert isinstance(only(snapshot_of(image_of("ghcr.io/me/x"))), Claim)
    named = replace(CONFIG, registries=("10.0.0.7:5000",))
    assert isinstance(only(snapshot_of(image_of("10.0.0.7:5000/x")), named), Claim)


def only(snapshot: Snapshot, config: Config = CONFIG, now: int = NOW) -> Action | Skip:
    """Return the single thing decided, a beat aside."""
    found = [a for a in decide(snapshot, config, now) if not isinstance(a, Beat)]
    assert len(found) == 1, found
    return found[0]


def reason(snapshot: Snapshot, config: Config = CONFIG, now: int = NOW) -> object:
    found = only(snapshot, config, now)
    assert isinstance(found, Skip), found
    return found.reason


def busy(count: int) -> Node:
    return replace(NODE, state=replace(NODE.state, busy=count))


# ---- beats ----


@pytest.mark.parametrize(("age", "due"), [(299, False), (300, True), (301, True)])
def test_decide__beat_age__beats_from_the_interval_on(age: int, due: bool) -> None:
    node = replace(NODE, state=replace(NODE.state, beat=NOW - age))
    assert (Beat(ME, NOW - age) in decide(snapshot_of(node=node), CONFIG, NOW)) is due


def test_decide__beat_in_flight__beats_not_again() -> None:
    node = replace(NODE, state=replace(NODE.state, beat=0))
    assert decide(snapshot_of(node=node), CONFIG, NOW) == [Beat(ME, 0)]
    assert decide(snapshot_of(node=node, flights=(Flight(Kind.BEAT),)), CONFIG, NOW) == []


def test_decide__paused_and_idle__beats_no_more_but_does_while_busy() -> None:
    paused = replace(CONFIG, hold=Reason.PAUSED)
    old = replace(NODE.state, beat=NOW - 400)
    assert decide(snapshot_of(node=replace(NODE, state=old)), paused, NOW) == []
    busy_one = snapshot_of(node=replace(NODE, state=replace(old, busy=1)))
    assert decide(busy_one, paused, NOW) == [Beat(ME, NOW - 400)]


@pytest.mark.parametrize("hold", [Reason.DISK_FULL, Reason.STORE_DOWN])
def test_decide__disk_full_and_idle_or_store_down__beats_on_and_takes_nothing(hold: Reason) -> None:
    """What a cheat gains: nothing. A node that fell silent for a full disk would pay a liveness fee for it."""
    full = replace(CONFIG, hold=hold)
    old = replace(NODE.state, beat=NOW - 400)
    assert decide(snapshot_of(node=replace(NODE, state=old)), full, NOW) == [Beat(ME, NOW - 400)]
    assert reason(snapshot_of(job_of(OPEN)), full) == hold


def test_decide__exited_node__never_beats() -> None:
    node = replace(NODE, operator="0x" + "00" * 20, state=NodeState())
    assert decide(snapshot_of(node=node), CONFIG, NOW) == []


# ---- open leases ----


def test_decide__open_claim_job__claims_it() -> None:
    bond = formulas.bond(TERMS)
    assert only(snapshot_of(job_of(OPEN))) == Claim(ID, 0, 0, bond, 0)


@pytest.mark.parametrize(("age", "claims"), [(299, False), (300, True)])
def test_decide__windowed_job_nobody_proposed__claims_from_open_claim_after(age: int, claims: bool) -> None:
    found = only(snapshot_of(job_of(replace(OPEN, started=NOW - age), match_window=12)))
    assert isinstance(found, Claim if claims else Propose)


def test_decide__windowed_job__proposes_itself() -> None:
    assert only(snapshot_of(job_of(OPEN, match_window=12))) == Propose(ID, 0, 0, 0)


def test_decide__rival_leads__proposes_only_with_a_strictly_larger_key() -> None:
    rate, offer, hot = NODE.offer.ask, NODE.offer, NODE.state
    mine = formulas.key(formulas.score(TERMS.needs, TERMS.ceiling, rate, offer, hot), formulas.seed(ID, 0, 0), NODE.id)
    windowed = replace(OPEN, mark=NOW + 5, rate=10**15)
    for key, wanted in ((mine - 1, Propose(ID, 0, 0, 0)), (mine, Reason.OUTBID), (mine + 1, Reason.OUTBID)):
        found = only(snapshot_of(job_of(windowed, Best(node=OTHER, key=key), match_window=12)))
        assert (found.reason if isinstance(found, Skip) else found) == wanted


@pytest.mark.parametrize(
    ("mark", "wanted"),
    [(NOW + 1, Reason.LEADING), (NOW, Ack), (NOW - 59, Ack), (NOW - 60, Reason.AWAITS_OPEN_CLAIM)],
)
def test_decide__own_proposal__acks_inside_the_ack_time_only(mark: int, wanted: object) -> None:
    job = led(mark)
    found = decide(snapshot_of(job, executions=(GATHERED,)), CONFIG, NOW)
    assert (found[0].reason if isinstance(found[0], Skip) else type(found[0])) == wanted
    # Past its time what was gathered is dropped.
    assert [type(step) for step in found[1:]] == ([Abort] if wanted is Reason.AWAITS_OPEN_CLAIM else [])


def led(mark: int, **changes: object) -> Job:
    """Return a job whose one unit this node was proposed for, in a window that ends at a second."""
    job = job_of(replace(OPEN, mark=mark, rate=10**15), Best(node=ME), match_window=12)
    return replace(job, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("mark", [NOW + 12, NOW + 1, NOW, NOW - 58])
def test_decide__own_proposal__is_gathered_first_and_never_acked_before_all_is_here(mark: int) -> None:
    """What a cheat gains: nothing. An ack that is given back costs the node's bond the keeper's tip, and a submitter
    whose data is nowhere could burn its stake so."""
    snapshot = snapshot_of(led(mark))
    assert only(snapshot) == Gather(KEY, mark + POLICY.ack_time - 1)
    assert reason(replace(snapshot, executions=(GATHERING,))) == Reason.GATHERING
    # What is under way by another stage is no whole data either: it is put aside first.
    for stage in (Stage.DONE, Stage.REFUSED, Stage.BROKEN):
        found = decide(replace(snapshot, executions=(Execution(KEY, stage),)), CONFIG, NOW)
        assert [getattr(step, "reason", type(step)) for step in found] == [SetAside, Reason.STOPPING]
    # Nor is that of another attempt at the unit.
    other = Execution(replace(KEY, attempts=2), Stage.GATHERED)
    found = decide(replace(snapshot, executions=(other,)), CONFIG, NOW)
    assert [type(step) for step in found] == [Gather, Abort]


@pytest.mark.parametrize(("lead", "until"), [(0.0, 59), (20.7, 39), (200.0, -1)])
def test_decide__gathering__ends_while_the_ack_can_still_be_mined(lead: float, until: int) -> None:
    assert only(snapshot_of(led(NOW)), replace(CONFIG, lead=lead)) == Gather(KEY, NOW + until)


@pytest.mark.parametrize("stage", [Stage.GATHERING, Stage.GATHERED])
@pytest.mark.parametrize(
    ("changes", "config"),
    [
        ({"leases": (Lease(0, replace(OPEN, mark=NOW, rate=10**15), Best(node=OTHER)),)}, CONFIG),
        ({"leases": ()}, CONFIG),
        ({"leases": (Lease(0, replace(RUNNING, node=OTHER)),)}, CONFIG),
        ({"leases": (Lease(0, replace(OPEN, mark=NOW, rate=10**15, attempts=1), Best(node=OTHER)),)}, CONFIG),
        ({"retry_at": NOW + 9}, CONFIG),
        ({"spec": replace(WASM, target="bafyrefused")}, replace(CONFIG, modules_refused=("bafyrefused",))),
        ({}, replace(CONFIG, hold=Reason.DRAINING)),
        ({}, replace(CONFIG, max_slots=0)),
    ],
)
def test_decide__match_that_is_lost_or_not_wanted__drops_what_was_gathered(
    stage: Stage, changes: dict[str, object], config: Config
) -> None:
    found = decide(snapshot_of(led(NOW, **changes), executions=(Execution(KEY, stage),)), config, NOW)
    assert [step.attempt for step in found if isinstance(step, Abort)] == [KEY]
    assert not any(isinstance(step, Ack | Gather) for step in found)


def test_decide__ack_in_flight__keeps_what_was_gathered_and_counts_its_slot_once() -> None:
    flight = Flight(Kind.ACK, ID, 0, 1)
    other = replace(job_of(OPEN), id=JobId(b"\xbb" * 32))
    for slots, taken in ((1, False), (2, True)):
        node = replace(NODE, offer=replace(NODE.offer, slots=slots))
        found = decide(snapshot_of(led(NOW), other, node=node, executions=(GATHERED,), flights=(flight,)), CONFIG, NOW)
        assert found[0] == Skip(ID, 0, Reason.TX_PENDING)
        assert isinstance(found[1], Claim) is taken and len(found) == 2, found


@pytest.mark.parametrize("mark", [NOW + 9, NOW])
@pytest.mark.parametrize("executions", [(), (GATHERING,), (GATHERED,)])
@pytest.mark.parametrize(("slots", "taken"), [(1, False), (2, True)])
def test_decide__gathering__fills_one_slot_and_no_second(
    mark: int, executions: tuple[Execution, ...], slots: int, taken: bool
) -> None:
    node = replace(NODE, offer=replace(NODE.offer, slots=slots))
    other = replace(job_of(OPEN), id=JobId(b"\xbb" * 32))
    found = decide(snapshot_of(led(mark), other, node=node, executions=executions), CONFIG, NOW)
    assert isinstance(found[1], Claim) is taken and len(found) == 2, found


def test_decide__gathered_and_another_match_with_one_slot__keeps_the_first() -> None:
    """What a cheat gains: nothing. A second proposal of the node takes no slot from what it has begun to fetch."""
    node = replace(NODE, offer=replace(NODE.offer, slots=1))
    for name in (b"\x01", b"\xbb", b"\xfe"):
        second = replace(led(NOW), id=JobId(name * 32))
        for execution, step in ((GATHERED, Reason.LEADING), (GATHERING, Reason.GATHERING)):
            found = decide(snapshot_of(second, led(NOW + 5), node=node, executions=(execution,)), CONFIG, NOW)
            said = {step.job: step.reason for step in found if isinstance(step, Skip)}
            assert said == {ID: step, second.id: Reason.SLOTS_FULL} and len(found) == 2, found


def test_decide__fetched_in_vain__fetches_nothing_more_for_a_while_and_goes_on_with_what_is_here() -> None:
    rests = led(NOW, gather_at=NOW + 1)
    found = only(snapshot_of(rests))
    assert isinstance(found, Skip) and (found.reason, "in vain" in found.detail) == (Reason.RETRY_LATER, True)
    assert isinstance(only(snapshot_of(led(NOW, gather_at=NOW))), Gather)
    assert reason(snapshot_of(rests, executions=(GATHERING,))) == Reason.GATHERING
    assert isinstance(only(snapshot_of(rests, executions=(GATHERED,))), Ack)
    # A claim is as it was, and a slot is free for it.
    assert isinstance(only(snapshot_of(replace(job_of(OPEN), gather_at=NOW + 1))), Claim)


def test_decide__fetched_in_vain__proposes_no_node_that_would_not_take_what_it_won() -> None:
    """What a cheat gains: no lapse of this node, and no unit that its own proposal holds back from others."""
    fresh = replace(led(0), leases=(Lease(0, replace(OPEN, started=NOW), Best()),))
    assert isinstance(only(snapshot_of(fresh)), Propose)
    assert isinstance(only(snapshot_of(replace(fresh, gather_at=NOW))), Propose)
    found = only(snapshot_of(replace(fresh, gather_at=NOW + 1)))
    assert isinstance(found, Skip) and (found.reason, "in vain" in found.detail) == (Reason.RETRY_LATER, True)


def test_decide__acked_with_all_here__starts_with_it_once_it_is_deep_enough() -> None:
    deep = replace(CONFIG, confirmations=3)
    held = snapshot_of(replace(job_of(RUNNING), leases=(Lease(0, RUNNING, since=97),)), node=busy(1))
    assert only(replace(held, executions=(GATHERED,)), deep) == StartRun(KEY, RUNNING.mark, 1, BEGUN_BY)
    assert reason(replace(held, executions=(GATHERED,), block=99), deep) == Reason.AWAITS_CONFIRMATIONS
    assert reason(replace(held, executions=(GATHERING,)), deep) == Reason.GATHERING
    late = decide(replace(held, executions=(GATHERED,)), deep, RUNNING.mark)
    assert [type(step) for step in late if not isinstance(step, Beat)] == [Abort]


@pytest.mark.parametrize(
    ("spec", "max_loss", "said", "taken"),
    [
        (WASM, None, Gather, False),
        (None, None, ReadSpec, True),
        (replace(WASM, target="bafyrefused"), None, Reason.IMAGE_REFUSED, True),
        (WASM, 0, Reason.UNPROFITABLE, True),
    ],
)
def test_decide__led_for_what_it_would_not_ack__keeps_no_slot_for_it(
    spec: SpecFacts | None, max_loss: int | None, said: object, taken: bool
) -> None:
    """Profit: a rival proposes this node for jobs that nobody can run or that pay dust, to keep its slots empty."""
    config = replace(CONFIG, modules_refused=("bafyrefused",), max_loss=max_loss, coin_price=10**18, gas_price=10**6)
    rival, honest = JobId(b"\1" * 32), JobId(b"\2" * 32)
    dust = replace(TERMS, match_window=300, max_seconds=1, ceiling=10**15, keeper_fee=8)
    unit = replace(OPEN, rate=10**15, mark=NOW + 300)
    slots = [Job(rival, dust, (Lease(index, unit, Best(node=ME)),), spec=spec) for index in range(NODE.offer.slots)]
    jobs = (*slots, Job(honest, TERMS, (Lease(0, OPEN),), spec=WASM))
    found = [step for step in decide(snapshot_of(*jobs), config, NOW) if not isinstance(step, Beat)]
    (mine,) = [step for step in found if getattr(step, "job", None) == honest]
    assert isinstance(mine, Claim) is taken, found
    for step in (step for step in found if step is not mine):
        others = step.reason if isinstance(step, Skip) else type(step)
        assert others in (said, Reason.SPEC_UNREAD if said is ReadSpec else said)


def test_decide__rival_may_ack__waits() -> None:
    unit = replace(OPEN, mark=NOW - 1, rate=10**15)
    assert reason(snapshot_of(job_of(unit, Best(node=OTHER), match_window=12))) == Reason.AWAITS_ACK


def test_decide__two_lapses__claims_although_the_window_is_named() -> None:
    unit = replace(OPEN, mark=NOW - 60, rate=10**15, lapses=1)
    assert isinstance(only(snapshot_of(job_of(unit, Best(node=OTHER), match_window=12))), Claim)


@pytest.mark.parametrize("opened", [OPEN, None])
def test_decide__open_claims_below_its_ask__waits_and_claims_in_the_first_second_that_fits(opened: Unit | None) -> None:
    """It asks half of the ceiling, to which open claims rise in a third of the public ramp of 30 s."""
    for age, wait in ((0, 10), (9, 1), (10, 0), (300, 0)):
        if opened is not None:
            job = job_of(replace(opened, started=NOW - age), ceiling=2 * 10**15)
        else:
            terms = replace(TERMS, units=20, ceiling=2 * 10**15)
            job = Job(ID, terms, header=Header(touched=4, opened=NOW - age), spec=WASM)
        found = decide(snapshot_of(job), CONFIG, NOW)[0]
        if wait:
            assert found == Skip(ID, 4 if opened is None else 0, Reason.AWAITS_PRICE, f"{wait} s")
            ahead = outlook(snapshot_of(job), CONFIG, Target(ID), NOW)
            assert isinstance(ahead, Skip) and ahead.reason is Reason.AWAITS_PRICE
        else:
            assert isinstance(found, Claim)
    reads = replace(job, spec=None, **({"leases": (Lease(0, replace(OPEN, started=NOW)),)} if opened else {}))
    assert only(snapshot_of(reads)) == ReadSpec(ID), "the spec is read meanwhile"


def test_decide__second_lapse__waits_from_it() -> None:
    unit = replace(OPEN, started=NOW - 200, mark=NOW - 60 - 9, rate=10**15, lapses=1)
    second = Best(node=OTHER)
    found = only(snapshot_of(job_of(unit, second, match_window=12, ceiling=2 * 10**15)))
    assert found == Skip(ID, 0, Reason.AWAITS_PRICE, "1 s")
    later = replace(unit, mark=unit.mark - 1)
    assert isinstance(only(snapshot_of(job_of(later, second, match_window=12, ceiling=2 * 10**15))), Claim)


def test_decide__price_that_has_to_rise__keeps_no_slot_free() -> None:
    node, dear = replace(NODE, offer=replace(NODE.offer, slots=1)), replace(TERMS, ceiling=2 * 10**15)
    for number in range(8):  # the lot puts some in front of the other job
        rising = Job(JobId(bytes([number]) * 32), dear, (Lease(0, OPEN),), spec=WASM)
        found = decide(snapshot_of(rising, job_of(OPEN), node=node), CONFIG, NOW)
        assert [step.job for step in found if isinstance(step, Claim)] == [ID]


def test_decide__array__claims_a_lease_by_sentinel_for_each_free_slot() -> None:
    terms = replace(TERMS, units=20)
    bond = formulas.bond(terms)
    job = Job(ID, terms, header=Header(touched=4, opened=NOW - 5), spec=WASM)
    claims = [Claim(ID, 4 + behind, 0, bond, SENTINEL, behind=behind) for behind in range(4)]
    assert decide(snapshot_of(job), CONFIG, NOW) == claims
    flights = (Flight(Kind.CLAIM, ID, SENTINEL, bond),) * 3
    assert [decide(snapshot_of(job, flights=flights[:n]), CONFIG, NOW) for n in (1, 2, 3)] == [
        claims[1:],
        claims[2:],
        claims[3:],
    ]
    assert len({claim.key() for claim in claims}) == 4


def test_decide__array_whose_last_units_are_being_taken__waits_for_that() -> None:
    job = array(touched=3)
    flights = (Flight(Kind.CLAIM, ID, SENTINEL, 1),)
    assert only(snapshot_of(job, flights=flights)) == Claim(ID, 4, 0, formulas.bond(job.terms), SENTINEL, behind=1)
    assert only(snapshot_of(job, flights=flights * 2)) == Skip(ID, None, Reason.TX_PENDING)


def test_decide__slots_for_several_units_and_other_jobs__each_job_has_one_first() -> None:
    """Units behind the next one are taken where slots are free after all jobs had their turn."""
    others = [replace(job_of(OPEN), id=JobId(bytes([number]) * 32)) for number in (1, 2)]
    found = decide(snapshot_of(array(touched=0), *others), CONFIG, NOW)
    claims = [step for step in found if isinstance(step, Claim)]
    assert {step.job for step in claims[:3]} == {ID, *(job.id for job in others)}
    assert [(step.job, step.behind) for step in claims[3:]] == [(ID, 1)]


def test_decide__unit_that_is_open_again__is_claimed_while_the_next_one_is_being_taken() -> None:
    """The call for the next one takes an untouched unit, whichever that will be."""
    job = array(OPEN, touched=1)
    found = decide(snapshot_of(job, flights=(Flight(Kind.CLAIM, ID, SENTINEL, 1),)), CONFIG, NOW)
    assert (ID, 0) in [step.leases[0] for step in found if isinstance(step, Claim)]


def test_decide__next_unit_to_propose_for_while_one_is_being_taken__waits() -> None:
    """A proposal names its unit, and which is the next one is not known yet."""
    job = replace(array(touched=0), terms=replace(TERMS, units=5, match_window=60))
    assert isinstance(only(snapshot_of(job)), Propose)
    assert reason(snapshot_of(job, flights=(Flight(Kind.CLAIM, ID, SENTINEL, 1),))) == Reason.TX_PENDING


@pytest.mark.parametrize("header", [Header(touched=20, opened=NOW), Header(touched=4, opened=NOW, closed=True)])
def test_decide__array_with_nothing_left__offers_no_lease(header: Header) -> None:
    job = Job(ID, replace(TERMS, units=20), header=header, spec=WASM)
    assert decide(snapshot_of(job), CONFIG, NOW) == []
    assert [s.reason for s in explain(snapshot_of(job), CONFIG, ID, NOW) if isinstance(s, Skip)] == [Reason.ENDED]


BLOCKED = replace(OPEN, state=State.BLOCKED)
WAITING = Job(ID, replace(TERMS, units=20), header=Header(waiting=True, opened=NOW - 5, leases=20), spec=WASM)


@pytest.mark.parametrize("job", [job_of(BLOCKED), WAITING, replace(WAITING, spec=None)])
def test_decide__job_that_waits_for_its_parents__offers_nothing(job: Job) -> None:
    assert only(snapshot_of(job)) == Skip(ID, None, Reason.AWAITS_PARENTS)
    assert explain(snapshot_of(job), CONFIG, ID, NOW)[-1] == Skip(ID, None, Reason.AWAITS_PARENTS)


@pytest.mark.parametrize("age", [299, 300])
def test_decide__array_that_was_unlocked__takes_claims_by_the_time_at_which_it_opened(age: int) -> None:
    header = Header(opened=NOW - age, leases=20)
    job = replace(WAITING, terms=replace(WAITING.terms, match_window=12), header=header)
    assert isinstance(decide(snapshot_of(job), CONFIG, NOW)[0], Claim if age == 300 else Propose)


def test_decide__reopened_lease_of_closed_array__is_left() -> None:
    job = Job(ID, replace(TERMS, units=20), (Lease(2, OPEN),), Header(closed=True, touched=4, opened=NOW - 9), WASM)
    assert reason(snapshot_of(job)) == Reason.ARRAY_CLOSED


def test_decide__spec_unread__reads_it_once_for_every_lease() -> None:
    terms = replace(TERMS, units=20)
    job = Job(ID, terms, (Lease(0, OPEN), Lease(1, OPEN)), Header(touched=2, opened=NOW - 5))
    found = decide(snapshot_of(job), CONFIG, NOW)
    assert found.count(ReadSpec(ID)) == 1
    assert [a.reason for a in found if isinstance(a, Skip)] == [Reason.SPEC_UNREAD] * 2


@pytest.mark.parametrize(
    ("job", "config", "wanted"),
    [
        (job_of(OPEN), replace(CONFIG, hold=Reason.PAUSED), Reason.PAUSED),
        (job_of(OPEN), replace(CONFIG, hold=Reason.OUTSIDE_SCHEDULE), Reason.OUTSIDE_SCHEDULE),
        (job_of(OPEN), replace(CONFIG, min_rate=10**15 + 1), Reason.RATE_BELOW_MINIMUM),
        (job_of(OPEN), replace(CONFIG, min_pay=600 * 10**9 + 1), Reason.PAY_BELOW_MINIMUM),
        (job_of(OPEN), replace(CONFIG, max_seconds=599), Reason.TOO_LONG),
        (job_of(OPEN), replace(CONFIG, lead=300.5), Reason.TOO_TIGHT),
        (job_of(OPEN), replace(CONFIG, submitters_refused=frozenset({"0x" + "33" * 20})), Reason.SUBMITTER_REFUSED),
        (job_of(OPEN), replace(CONFIG, submitters=frozenset({"0x" + "44" * 20})), Reason.SUBMITTER_REFUSED),
        (job_of(OPEN), replace(CONFIG, gpu_only=True), Reason.NO_GPU_ASKED),
        (EXACT, replace(CONFIG, gpu_tiers=frozenset({0, 472})), Reason.GPU_KINDS),
        (EXACT, replace(CONFIG, gpu_tiers=frozenset({472})), Reason.GPU_KINDS),
        (job_of(OPEN), replace(CONFIG, modules=("bafyother*",)), Reason.IMAGE_REFUSED),
        (job_of(OPEN), replace(CONFIG, modules_refused=("bafymodul?",)), Reason.IMAGE_REFUSED),
        (image_of("ghcr.io/me/x"), replace(CONFIG, images_refused=("ghcr.io/me/*",)), Reason.IMAGE_REFUSED),
        (image_of("10.0.0.7:5000/x"), CONFIG, Reason.IMAGE_REFUSED),
        (image_of("10.0.0.7:5000/x"), replace(CONFIG, registries=("*",)), Reason.IMAGE_REFUSED),
        (image_of("python"), replace(CONFIG, registries=("ghcr.io",)), Reason.IMAGE_REFUSED),
        (job_of(OPEN), replace(CONFIG, max_output_bytes=(1 << 20) - 1), Reason.TOO_BIG),
        (job_of(OPEN), replace(CONFIG, max_input_bytes=(1 << 10) - 1), Reason.TOO_BIG),
        (job_of(OPEN), replace(CONFIG, room=CLAIM - 1), Reason.NO_ROOM),
        (job_of(OPEN, match_window=12), replace(CONFIG, room=CLAIM - 1), Reason.NO_ROOM),
        (job_of(OPEN), replace(CONFIG, room=-1, volumes=True), Reason.NO_ROOM),
        (job_of(OPEN), replace(CONFIG, runtimes=frozenset({"docker"})), Reason.NOT_SUPPORTED),
        (job_of(OPEN, judge=JUDGE), CONFIG, Reason.JUDGE_UNKNOWN),
        (job_of(OPEN, judge=JUDGE), replace(CONFIG, judges={"0x" + "45" * 20: TrustedJudge()}), Reason.JUDGE_UNKNOWN),
        (job_of(OPEN, judge=JUDGE, judge_data=7), replace(CONFIG, judges={JUDGE: SETS}), Reason.JUDGE_UNKNOWN),
        (job_of(OPEN, replicas=3, quorum=2), CONFIG, Reason.NOT_SUPPORTED),
        (job_of(OPEN, flags=TermsFlag.CONFIDENTIAL), CONFIG, Reason.NOT_SUPPORTED),
        (replace(job_of(OPEN), spec=SpecFacts(bad="no such key")), CONFIG, Reason.SPEC_BAD),
        (replace(job_of(OPEN), retry_at=NOW + 1), CONFIG, Reason.RETRY_LATER),
        (job_of(OPEN, ceiling=10**15 - 1), CONFIG, Gate.PRICE),
        (job_of(OPEN, needs=Needs(cores=9)), CONFIG, Gate.CORES),
        (job_of(OPEN, needs=Needs(cores=9), ceiling=2 * 10**15), CONFIG, Gate.CORES),
        (job_of(OPEN, ceiling=2 * 10**15), replace(CONFIG, max_slots=0), Reason.SLOTS_FULL),
        (job_of(OPEN, ceiling=2 * 10**15), CONFIG, Reason.AWAITS_PRICE),
        (job_of(OPEN, needs=Needs(runtimes=Runtime.NVIDIA)), CONFIG, Gate.RUNTIME),
        (job_of(OPEN, submitter=NODE.operator), CONFIG, Gate.SUBMITTER),
        (job_of(OPEN, deadline=NOW + 899), CONFIG, Gate.NO_TIME),
        (job_of(replace(OPEN, node=ME)), CONFIG, Gate.EXCLUDED),
        (job_of(OPEN, match_window=12), replace(CONFIG, propose=False), Reason.AWAITS_KEEPER),
        (job_of(OPEN, match_window=12), replace(CONFIG, propose_after=6), Reason.AWAITS_KEEPER),
    ],
)
def test_decide__job_not_wanted__names_the_reason(job: Job, config: Config, wanted: object) -> None:
    assert reason(snapshot_of(job), config) == wanted
    # The same job is taken where that one reason does not hold.
    assert not isinstance(only(snapshot_of(job_of(OPEN))), Skip)


@pytest.mark.parametrize(
    "limit",
    [
        {"min_rate": 10**15},
        {"min_pay": 600 * 10**9},
        {"max_seconds": 600},
        {"max_output_bytes": 1 << 20},
        {"max_input_bytes": 1 << 10},
    ],
)
def test_decide__job_at_the_very_limit_of_what_is_accepted__is_taken(limit: dict[str, int]) -> None:
    assert isinstance(only(snapshot_of(job_of(OPEN)), replace(CONFIG, **limit)), Claim)  # type: ignore[arg-type]


def test_decide__disk_without_room_for_all_that_a_job_may_take__nothing_is_promised_that_cannot_begin() -> None:
    """A lease that waits for room which never comes is given back, and its node accused."""
    other = replace(job_of(OPEN), id=JobId(b"\xbb" * 32))
    enough, both = replace(CONFIG, room=CLAIM), replace(CONFIG, room=2 * CLAIM)
    assert isinstance(only(snapshot_of(job_of(OPEN)), enough), Claim)
    # Outputs that lie on a volume take nothing of this disk.
    assert isinstance(only(snapshot_of(job_of(OPEN)), replace(CONFIG, room=CLAIM - (1 << 20), volumes=True)), Claim)
    # Room for one is not promised to two: decided at once, on its way, or taken and about to begin.
    for config, claims in ((enough, 1), (both, 2)):
        assert sum(isinstance(a, Claim) for a in decide(snapshot_of(job_of(OPEN), other), config, NOW)) == claims
        flying = snapshot_of(job_of(OPEN), other, flights=(Flight(Kind.CLAIM, other.id, 0, 1),))
        assert sum(isinstance(a, Claim) for a in decide(flying, config, NOW)) == claims - 1
        held = snapshot_of(job_of(OPEN), replace(job_of(RUNNING), id=other.id))
        assert sum(isinstance(a, Claim) for a in decide(held, config, NOW)) == claims - 1
    # A keeper's match is fetched for and acked only where it has room; what is gathered here has its own already.
    led = replace(OPEN, mark=NOW, rate=10**15)
    match, full = job_of(led, Best(node=ME), match_window=12), replace(CONFIG, room=0)
    assert reason(snapshot_of(match), full) == Reason.NO_ROOM
    assert isinstance(only(snapshot_of(match, executions=(GATHERED,)), full), Ack)


# ---- what the provider does not want ----

HUB = "docker.io/library/python"
DIGEST = "sha256:" + "ab" * 32


@pytest.mark.parametrize(
    "written",
    [
        *("python", "library/python", HUB, "index.docker.io/python", "index.docker.io/library/python"),
        *("docker.io:443/python", "Docker.IO/library/python", "docker.io./python", "index.docker.io:0443/python"),
        *("registry-1.docker.io/library/python", "registry-1.docker.io:443/library/python"),
        "registry.hub.docker.com/library/python",
    ],
)
@pytest.mark.parametrize(
    "pattern", ["python", HUB, "library/*", f"{HUB}@{DIGEST}", "docker.io/python", DIGEST, f"*@{DIGEST}"]
)
def test_decide__image_written_in_another_way__is_the_same_image(written: str, pattern: str) -> None:
    """What a cheat gains: nothing. A name that an engine reads alike is refused, and accepted, alike."""
    found = only(snapshot_of(image_of(written)), replace(CONFIG, images_refused=(pattern,)))
    assert isinstance(found, Skip) and found.reason == Reason.IMAGE_REFUSED
    assert found.detail == f'{written}@{DIGEST}: accept.refuse_images has "{pattern}"'
    assert isinstance(only(snapshot_of(image_of(written)), replace(CONFIG, images=(pattern,))), Claim)


@pytest.mark.parametrize(
    "pattern",
    [
        *("ghcr.io/me/*", "ghcr.io:443/me/*", "GHCR.io/Me/x", "ghcr.io./me/x", "ghcr.io.:0443/me/x", "*:443/me/*"),
        *("ghcr.io*/me/*", "gh[A-Z]r.io/me/x", f"ghcr.io:443/me/x@{DIGEST}", "*/me/x"),
    ],
)
def test_decide__registry_written_in_another_way__is_the_same_registry(pattern: str) -> None:
    """What a cheat gains: nothing. One host has one name, in a job and in a provider's list."""
    for host, port in product(("ghcr.io", "GHCR.io", "ghcr.io.", "Ghcr.Io."), ("", ":443", ":0443", ":00443")):
        job = image_of(f"{host}{port}/me/x")
        for registries in (("*",), ("ghcr.io",), ("GHCR.io.:443",), ("*.io:443",)):
            allowed = replace(CONFIG, registries=registries)
            assert isinstance(only(snapshot_of(job), allowed), Claim)
            assert isinstance(only(snapshot_of(job), replace(allowed, images=(pattern,))), Claim)
            refused = only(snapshot_of(job), replace(allowed, images_refused=(pattern,)))
            assert isinstance(refused, Skip) and refused.detail.endswith(f'accept.refuse_images has "{pattern}"')


@pytest.mark.parametrize("port", ["80", "080", "8443"])
def test_decide__registry_at_another_port__is_refused_with_its_host_and_not_allowed_with_it(port: str) -> None:
    """Plain http has another port, and a host's list of images is at each; but another port may be another program."""
    job, wide = image_of(f"ghcr.io:{port}/me/x"), replace(CONFIG, registries=("*",))
    assert isinstance(only(snapshot_of(job), wide), Claim)
    assert reason(snapshot_of(job), replace(wide, images_refused=("ghcr.io/me/*",))) == Reason.IMAGE_REFUSED
    assert reason(snapshot_of(job), replace(wide, images=("ghcr.io/me/*",))) == Reason.IMAGE_REFUSED
    assert reason(snapshot_of(job)) == Reason.IMAGE_REFUSED, "docker.registries names ghcr.io, at the port of https"
    named = replace(wide, images=(f"ghcr.io:{port}/me/*",), registries=(f"ghcr.io:{port}",))
    assert isinstance(only(snapshot_of(job), named), Claim)


@pytest.mark.parametrize("pattern", ["me/x", "me/*", "docker.io/*", "x"])
def test_decide__image_of_another_registry__is_none_of_docker_hub(pattern: str) -> None:
    job = image_of("evil.example/me/x")
    wide = replace(CONFIG, registries=("*",))
    assert reason(snapshot_of(job), replace(wide, images=(pattern,))) == Reason.IMAGE_REFUSED
    assert isinstance(only(snapshot_of(job), replace(wide, images_refused=(pattern,))), Claim)


USDC = Asset("USDC", 6)


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({"submitters": frozenset()}, "accept.submitters does not name 0x" + "33" * 20),
        ({"submitters_refused": frozenset({"0x" + "33" * 20})}, "accept.refuse_submitters names 0x" + "33" * 20),
        ({"max_seconds": 300}, "it may run for 10m, and accept.max_runtime is 5m"),
        ({"min_rate": 10**16}, "the node asks 0.0000036 ETH/h, and accept.min_price is 0.000036 ETH/h"),
        ({"min_rate": 10**16, "asset": USDC}, "the node asks 3600000 USDC/h, and accept.min_price is 36000000 USDC/h"),
        ({"min_pay": 10**12}, "a unit pays at most 0.0000006 ETH, and accept.min_pay is 0.000001 ETH"),
        ({"max_input_bytes": 512}, "its inputs have 1KiB, and this worker takes 512B (storage.max_input)"),
        ({"max_output_bytes": 1}, "its outputs may have 1MiB, and this worker takes 1B (storage.max_output)"),
        ({"modules": ("bafy?",)}, "bafymodule: no pattern of accept.modules fits"),
    ],
)
def test_decide__job_not_wanted__names_the_rule_and_the_value_in_units_of_people(config: object, told: str) -> None:
    found = only(snapshot_of(job_of(OPEN)), replace(CONFIG, **config))  # type: ignore[arg-type]
    assert isinstance(found, Skip) and found.detail == told


@pytest.mark.parametrize(
    "node",
    [
        replace(NODE, state=replace(NODE.state, beat=NOW - 900)),
        replace(NODE, stake=0),
        replace(NODE, exit_at=NOW + 9),
        replace(NODE, state=replace(NODE.state, status=NodeFlag.SLASHED, quarantine=NOW + 9)),
    ],
)
def test_decide__node_not_active__takes_nothing(node: Node) -> None:
    assert reason(snapshot_of(job_of(OPEN), node=node)) == Reason.NODE_STATUS


@pytest.mark.parametrize(("slots", "limit", "held", "wanted"), [(4, 63, 3, True), (4, 63, 4, False), (4, 2, 2, False)])
def test_decide__slots__are_never_exceeded(slots: int, limit: int, held: int, wanted: bool) -> None:
    node = replace(busy(held), offer=replace(NODE.offer, slots=slots))
    found = only(snapshot_of(job_of(OPEN), node=node), replace(CONFIG, max_slots=limit))
    assert isinstance(found, Claim) is wanted


def test_decide__execution_without_lease__fills_a_slot_until_it_is_stopped() -> None:
    node = replace(NODE, offer=replace(NODE.offer, slots=1))
    stray = Execution(LeaseKey(JobId(b"\xbb" * 32), 0, 1), Stage.WORKING)
    found = decide(snapshot_of(job_of(OPEN), node=node, executions=(stray,)), CONFIG, NOW)
    assert [type(a) for a in found] == [Abort, Skip]
    assert found[1] == Skip(ID, 0, Reason.SLOTS_FULL)


def test_decide__claim_in_flight__counts_against_the_slots() -> None:
    node = replace(NODE, offer=replace(NODE.offer, slots=1))
    flight = Flight(Kind.CLAIM, JobId(b"\xbb" * 32), 0, 1)
    found = only(snapshot_of(job_of(OPEN), node=node, flights=(flight,)))
    assert found == Skip(ID, 0, Gate.NO_SLOT)


def test_decide__ack_due_and_window_led__acks_first_with_one_slot() -> None:
    node = replace(NODE, offer=replace(NODE.offer, slots=1))
    jobs = []
    for name, mark in ((b"\x01", NOW + 5), (b"\x02", NOW - 5), (b"\x03", NOW + 9)):
        unit = replace(OPEN, mark=mark, rate=10**15)
        jobs.append(replace(job_of(unit, Best(node=ME), match_window=12), id=JobId(name * 32)))
    here = Execution(LeaseKey(jobs[1].id, 0, 1), Stage.GATHERED)
    found = decide(snapshot_of(*jobs, node=node, executions=(here,)), CONFIG, NOW)
    assert [type(a).__name__ for a in found] == ["Ack", "Skip", "Skip"]
    (first, *_) = decide(snapshot_of(*jobs, node=node), CONFIG, NOW)
    assert isinstance(first, Gather) and first.attempt == here.key, "and what is due first is fetched first"
    assert isinstance(found[0], Ack) and found[0].job == jobs[1].id


def test_decide__many_workers_see_the_same_jobs__they_start_at_different_ones() -> None:
    ids = [JobId(bytes([n]) * 32) for n in range(1, 21)]
    jobs = [replace(job_of(OPEN), id=job) for job in ids]
    firsts = set()
    for number in range(1, 41):
        node = replace(NODE, id=NodeId(number), offer=replace(NODE.offer, slots=1))
        claims = [a.job for a in decide(snapshot_of(*jobs, node=node), CONFIG, NOW) if isinstance(a, Claim)]
        assert len(claims) == 1
        firsts.add(claims[0])
    assert len(firsts) >= 8


# ---- leases that are held ----


def test_decide__held_lease_without_execution__starts_it() -> None:
    """The state folder may have been deleted: the chain alone says that the node holds the lease."""
    assert only(snapshot_of(job_of(RUNNING), node=busy(1))) == StartRun(KEY, RUNNING.mark, 1, BEGUN_BY)


@pytest.mark.parametrize("first", [0, 1])
def test_decide__several_leases_are_held__the_earliest_deadline_comes_first(first: int) -> None:
    deadlines = [RUNNING.mark + (0 if index == first else 60) for index in range(2)]
    held = array(*(replace(RUNNING, mark=mark) for mark in deadlines), touched=2)
    found = [one for one in decide(snapshot_of(held, node=busy(2)), CONFIG, NOW) if isinstance(one, StartRun)]
    assert [one.attempt.index for one in found] == [first, 1 - first]


def test_decide__confirmations__start_paid_compute_only_when_deep_enough() -> None:
    deep = replace(CONFIG, confirmations=3)
    for since, wanted in ((98, Reason.AWAITS_CONFIRMATIONS), (97, StartRun(KEY, RUNNING.mark, 1, BEGUN_BY))):
        job = replace(job_of(RUNNING), leases=(Lease(0, RUNNING, since=since),))
        found = only(snapshot_of(job, node=busy(1)), deep)
        assert (found.reason if isinstance(found, Skip) else found) == wanted


def test_decide__clock_skew__finishes_what_runs() -> None:
    done = Execution(KEY, Stage.DONE, Outcome.OK, b"\x01" * 32, b"\x02" * 32)
    found = only(
        snapshot_of(job_of(RUNNING), node=busy(1), executions=(done,)), replace(CONFIG, hold=Reason.CLOCK_SKEW)
    )
    assert found == Finish(KEY, b"\x01" * 32, b"\x02" * 32, Outcome.OK, 0)


@pytest.mark.parametrize(("now", "wanted"), [(RUNNING.mark - 1, Finish), (RUNNING.mark, Skip)])
def test_decide__finished_attempt__is_submitted_before_its_mark_only(now: int, wanted: type) -> None:
    done = Execution(KEY, Stage.DONE, Outcome.EXIT, b"\x01" * 32, b"\x02" * 32)
    assert isinstance(only(snapshot_of(job_of(RUNNING), node=busy(1), executions=(done,)), now=now), wanted)


@pytest.mark.parametrize("kind", [Kind.SUBMIT, Kind.FINISH])
def test_decide__submit_or_finish_in_flight__waits(kind: Kind) -> None:
    done = Execution(KEY, Stage.DONE, Outcome.OK, b"\x01" * 32)
    flight = Flight(kind, ID, 0)
    snapshot = snapshot_of(job_of(RUNNING), node=busy(1), executions=(done,), flights=(flight,))
    assert reason(snapshot) == Reason.TX_PENDING


def test_decide__refused_attempt__declines_with_its_outcome() -> None:
    refused = Execution(KEY, Stage.REFUSED, Outcome.BAD_INPUT, report=b"\x02" * 32)
    found = only(snapshot_of(job_of(RUNNING), node=busy(1), executions=(refused,)))
    assert found == Decline(KEY, b"\x02" * 32, Outcome.BAD_INPUT)


def test_decide__broken_sandbox__tries_again_then_gives_the_lease_back() -> None:
    for tries, wanted in (
        (1, StartRun(KEY, RUNNING.mark, 2, BEGUN_BY)),
        (3, Decline(KEY, bytes(32), Outcome.IMAGE_MISSING)),
    ):
        broken = Execution(KEY, Stage.BROKEN, tries=tries)
        assert only(snapshot_of(job_of(RUNNING), node=busy(1), executions=(broken,))) == wanted


def test_decide__hung_execution__is_stopped_at_the_mark() -> None:
    working = Execution(KEY, Stage.WORKING)
    snapshot = snapshot_of(job_of(RUNNING), node=busy(1), executions=(working,))
    assert reason(snapshot) == Reason.RUNNING
    assert isinstance(only(snapshot, now=RUNNING.mark), Abort)


def test_decide__still_working_a_lead_before_the_mark__is_given_back_while_that_can_be_mined() -> None:
    working = Execution(KEY, Stage.WORKING)
    slow = replace(CONFIG, lead=4.2)
    snapshot = snapshot_of(job_of(RUNNING), node=busy(1), executions=(working,))
    assert only(snapshot, slow, RUNNING.mark - 5) == GiveUp(KEY, bytes(32))
    assert reason(snapshot, slow, RUNNING.mark - 6) == Reason.RUNNING
    # What is ready is submitted to the last second, and the pay of a notice is not thrown away.
    done = replace(working, stage=Stage.DONE, outcome=Outcome.OK, result=b"\x01" * 32)
    assert isinstance(only(replace(snapshot, executions=(done,)), slow, RUNNING.mark - 1), Finish)
    closing = replace(snapshot, jobs=(job_of(replace(RUNNING, state=State.CLOSING)),))
    assert reason(closing, slow, RUNNING.mark - 4) == Reason.RUNNING
    # An outage in the middle of a run does not cut the time that was bought: the grace is beyond it.
    grace = formulas.grace(TERMS)
    stuck = replace(CONFIG, lead=1000.0)
    assert reason(snapshot, stuck, RUNNING.mark - 2 - grace) == Reason.RUNNING
    assert isinstance(only(snapshot, stuck, RUNNING.mark - 1 - grace), GiveUp)


@pytest.mark.parametrize("stage", [Stage.REFUSED, Stage.BROKEN])
def test_decide__what_cannot_be_run__is_declined_while_that_is_free_and_then_given_up(stage: Stage) -> None:
    ended = Execution(KEY, stage, Outcome.BAD_INPUT, report=b"\x02" * 32, tries=3)
    snapshot = snapshot_of(job_of(RUNNING), node=busy(1), executions=(ended,))
    slow = replace(CONFIG, lead=4.0)
    assert isinstance(only(snapshot, slow, DECLINES_END - 5), Decline)
    assert only(snapshot, slow, DECLINES_END - 4) == GiveUp(KEY, ended.report), "a decline would be mined too late"
    # A machine that is slow beyond measure tries in the first half of the window all the same.
    stuck = replace(CONFIG, lead=1_000.0)
    assert isinstance(only(snapshot, stuck, DECLINES_END - 76), Decline)
    assert isinstance(only(snapshot, stuck, DECLINES_END - 75), GiveUp)
    # A notice is paid where one waits, and a decline of a match would cost its tip.
    closing = replace(snapshot, jobs=(job_of(replace(RUNNING, state=State.CLOSING)),))
    assert reason(closing, slow, RUNNING.mark - 1) == Reason.NOTICE
    assert only(closing, slow, RUNNING.mark) == Close(ID, 0)


@pytest.mark.parametrize(("more", "taken"), [(0, True), (1, True), (2, False)])
def test_decide__match_whose_tip_is_above_the_pay__is_not_acked(more: int, taken: bool) -> None:
    """Attack: a keeper fee as large as the price, for a job of which this node asks next to nothing."""
    cheap = led(NOW)
    pay = most_pay(cheap.terms, NODE.offer.ask)
    dear = replace(cheap, terms=replace(cheap.terms, keeper_fee=2 * pay + more))
    found = decide(snapshot_of(dear, node=replace(NODE, stake=10**24), executions=(GATHERED,)), CONFIG, NOW)[0]
    assert isinstance(found, Ack if taken else Skip), found
    if isinstance(found, Skip):
        assert found.reason == Reason.UNPROFITABLE and "burns" in found.detail


def test_decide__program_that_is_not_begun_when_declines_end__is_declined() -> None:
    working = Execution(KEY, Stage.WORKING)
    snapshot = snapshot_of(job_of(RUNNING), node=busy(1), executions=(working,))
    assert reason(snapshot, now=DECLINES_END - 2) == Reason.RUNNING
    assert only(snapshot, now=DECLINES_END - 1) == Decline(KEY, bytes(32), Outcome.BAD_INPUT)
    # What began late, after a restart, has no free way out any more: it runs.
    assert reason(snapshot, now=DECLINES_END) == Reason.RUNNING
    begun = replace(snapshot, executions=(replace(working, begun=True),))
    assert reason(begun, now=DECLINES_END - 1) == Reason.RUNNING
    closing = replace(snapshot, jobs=(job_of(replace(RUNNING, state=State.CLOSING)),))
    assert reason(closing, now=DECLINES_END - 1) == Reason.RUNNING


def test_decide__start_that_this_machine_delays__blames_no_data() -> None:
    snapshot = snapshot_of(job_of(RUNNING), node=busy(1))
    last = BEGUN_BY - (BEGUN_BY - RUNNING.started) // 4
    assert only(snapshot, now=last) == StartRun(KEY, RUNNING.mark, 1, BEGUN_BY)
    assert only(snapshot, now=last + 1) == StartRun(KEY, RUNNING.mark, 1, RUNNING.mark)


def test_decide__closing__submits_in_the_notice_and_closes_after_it() -> None:
    closing = replace(RUNNING, state=State.CLOSING, mark=NOW + 60)
    done = Execution(KEY, Stage.DONE, Outcome.OK, b"\x01" * 32)
    assert isinstance(only(snapshot_of(job_of(closing), node=busy(1), executions=(done,))), Finish)
    assert reason(snapshot_of(job_of(closing), node=busy(1))) == Reason.NOTICE
    assert only(snapshot_of(job_of(closing), node=busy(1)), now=NOW + 60) == Close(ID, 0)
    running = snapshot_of(job_of(closing), node=busy(1), executions=(Execution(KEY, Stage.WORKING),))
    assert only(running, now=NOW + 60) == Abort(KEY, "the submitter cancelled it")


@pytest.mark.parametrize(
    ("terms", "hands_in"),
    [
        ({"billing": Billing.METERED}, HandIn(KEY, NOW + 60)),
        ({"billing": Billing.FUEL}, HandIn(KEY, NOW + 60, 100 + 60 + PUBLIC.policy.start_fee_seconds)),
        ({"billing": Billing.FIXED}, None),
        ({"billing": Billing.FIXED, "max_seconds": 200}, HandIn(KEY, NOW + 60)),
        ({"billing": Billing.METERED, "judge": JUDGE, "challenge_window": 60}, None),
        ({"billing": Billing.METERED, "flags": TermsFlag.PROVEN, "judge": JUDGE, "challenge_window": 60}, None),
    ],
)
def test_decide__cancelled_while_its_program_runs__hands_in_what_it_has_where_that_costs_no_more(
    terms: dict[str, Any], hands_in: HandIn | None
) -> None:
    """A7: what was paid for never came. By the full price a submitter would pay for what he cancelled."""
    closing = replace(RUNNING, state=State.CLOSING, mark=NOW + 60)
    begun = Execution(KEY, Stage.WORKING, begun=True)
    found = only(snapshot_of(job_of(closing, **terms), node=busy(1), executions=(begun,)))
    assert found == (hands_in or Skip(ID, 0, Reason.RUNNING))
    fetching = Execution(KEY, Stage.WORKING)
    assert reason(snapshot_of(job_of(closing, **terms), node=busy(1), executions=(fetching,))) == Reason.RUNNING


def test_decide__cancelled_and_not_worth_the_gas_of_a_submit__waits_for_the_close() -> None:
    closing = replace(RUNNING, state=State.CLOSING, mark=NOW + 60)
    snapshot = snapshot_of(
        job_of(closing, billing=Billing.METERED), node=busy(1), executions=(Execution(KEY, Stage.WORKING, begun=True),)
    )
    dear = replace(CONFIG, max_loss=0, coin_price=10**18, gas_price=10**18)
    assert reason(snapshot, dear) == Reason.RUNNING


@given(
    terms=st.builds(
        lambda billing, seconds, ceiling, fee: replace(
            TERMS, billing=billing, max_seconds=seconds, ceiling=ceiling, keeper_fee=fee
        ),
        st.sampled_from(Billing),
        st.integers(1, 100_000),
        st.integers(1, 10**16),
        st.integers(0, 10**9),
    ),
    policy=st.builds(lambda start: replace(POLICY, start_fee_seconds=start), st.integers(0, 4_095)),
    share=st.integers(0, 2**16),
    topped=st.integers(0, 10_000),
    ran=st.integers(0, 100_000),
    at=st.integers(0, 2**16),
    shared=st.integers(0, 1_000),
)
def test_handed_in__any_cancelled_unit__costs_its_submitter_at_most_its_close_to_the_wei(
    terms: Terms, policy: Policy, share: int, topped: int, ran: int, at: int, shared: int
) -> None:
    """In a fuel job exactly as much, up to all its seconds. Whoever settles has no more for it than whoever closes."""
    terms = replace(terms, policy=words.pack_policy(policy))
    bought = topped if terms.billing is Billing.METERED else 0
    unit = replace(
        RUNNING, state=State.CLOSING, rate=terms.ceiling * share >> 16, mark=RUNNING.started + 1 + ran, seconds=bought
    )
    closed = formulas.pay_at_close(terms, unit)
    if not notice.may_hand_in(terms, unit):
        assert terms.billing is Billing.FIXED
        return
    submitted = notice.handed_in(terms, unit, RUNNING.started + (ran * at >> 16))
    paid = formulas.pay_at_settle(terms, submitted, shared)
    assert paid <= closed and formulas.checkpoint_pays(terms, submitted, {}) == []
    if terms.billing is Billing.FUEL:
        assert paid == closed or submitted.seconds == formulas.lease_seconds(terms)


@pytest.mark.parametrize(("after", "now", "due"), [(0, NOW, True), (30, NOW + 29, False), (30, NOW + 30, True)])
def test_decide__submitted__settles_after_the_configured_wait(after: int, now: int, due: bool) -> None:
    unit = replace(RUNNING, state=State.SUBMITTED, mark=NOW)
    found = only(snapshot_of(job_of(unit)), replace(CONFIG, settle_after=after), now)
    assert found == (Settle(((ID, 0),)) if due else Skip(ID, 0, Reason.AWAITS_WINDOW))


@pytest.mark.parametrize(("trusted", "data"), [(TrustedJudge(), 7), (SETS, 8)])
def test_decide__judge_that_is_trusted__taken(trusted: TrustedJudge, data: int) -> None:
    config = replace(CONFIG, judges={JUDGE: trusted})
    assert isinstance(only(snapshot_of(job_of(OPEN, judge=JUDGE, judge_data=data)), config), Claim)


def test_decide__result_that_may_be_disputed__waits_for_the_window_and_then_for_the_judge() -> None:
    unit = replace(RUNNING, state=State.SUBMITTED, mark=NOW - 59)
    judged = {"judge": JUDGE, "challenge_window": 60}
    assert reason(snapshot_of(job_of(unit, **judged))) == Reason.AWAITS_WINDOW
    assert only(snapshot_of(job_of(unit, **judged)), now=NOW + 1) == Settle(((ID, 0),))
    held = replace(unit, state=State.DISPUTED)
    end = NOW + 1 + formulas.STALE_SECONDS
    assert reason(snapshot_of(job_of(held, **judged)), now=end - 1) == Reason.AWAITS_JUDGE
    assert only(snapshot_of(job_of(held, **judged)), now=end) == Settle(((ID, 0),))


@pytest.mark.parametrize("state", [State.SUBMITTED, State.DISPUTED])
def test_decide__result_that_nobody_has_proven__is_left_to_others(state: State) -> None:
    unit = replace(RUNNING, state=state, mark=NOW)
    snapshot = snapshot_of(job_of(unit, judge=JUDGE, challenge_window=60, flags=TermsFlag.PROVEN))
    for now in (NOW, NOW + 365 * 86_400):
        assert reason(snapshot, now=now) == Reason.AWAITS_JUDGE


def test_decide__result_in_dispute_while_its_attempt_is_under_way__is_stopped() -> None:
    unit = replace(RUNNING, state=State.DISPUTED, mark=NOW)
    working = (Execution(KEY, Stage.WORKING),)
    found = decide(snapshot_of(job_of(unit, judge=JUDGE, challenge_window=60), executions=working), CONFIG, NOW)
    assert Abort(KEY, "a result was already submitted") in found


def test_decide__hundred_submitted__settles_in_batches_of_64() -> None:
    unit = replace(RUNNING, state=State.SUBMITTED, mark=NOW)
    terms = replace(TERMS, units=100)
    job = Job(ID, terms, tuple(Lease(i, unit) for i in range(100)), Header(touched=100, opened=NOW - 99), WASM)
    found = decide(snapshot_of(job), CONFIG, NOW)
    assert [len(a.items) for a in found if isinstance(a, Settle)] == [64, 36]


def test_decide__lease_of_another_node__is_left_alone() -> None:
    assert decide(snapshot_of(job_of(replace(RUNNING, node=OTHER))), CONFIG, NOW) == []


def test_decide__lease_lost__stops_the_run_and_puts_finished_ones_aside() -> None:
    lost = job_of(replace(RUNNING, node=OTHER, attempts=2))
    assert isinstance(only(snapshot_of(lost, executions=(Execution(KEY, Stage.WORKING),))), Abort)
    assert isinstance(only(snapshot_of(lost, executions=(Execution(KEY, Stage.DONE),))), SetAside)


@pytest.mark.parametrize(
    ("jobs", "why"),
    [
        ((), "the lease is over: its unit is not among the open ones"),
        ((job_of(OPEN),), "the lease was lost: its unit is waiting for a machine again"),
        ((job_of(replace(RUNNING, node=OTHER)),), "the lease was lost: its unit is another node's anew"),
        ((job_of(replace(RUNNING, attempts=2)),), "the lease was lost: its unit is this node's anew"),
    ],
)
def test_decide__lease_gone__says_what_became_of_it(jobs: tuple[Job, ...], why: str) -> None:
    found = decide(snapshot_of(*jobs, executions=(Execution(KEY, Stage.DONE),)), CONFIG, NOW)
    assert [one.why for one in found if isinstance(one, SetAside)] == [why]


def test_decide__claim_reorganised_away__keeps_running_while_its_transaction_is_on_its_way() -> None:
    flight = Flight(Kind.CLAIM, ID, 0, 1)
    snapshot = snapshot_of(job_of(OPEN), executions=(Execution(KEY, Stage.WORKING),), flights=(flight,))
    assert reason(snapshot) == Reason.TX_PENDING


def test_decide__newer_attempt__waits_until_the_old_execution_is_stopped() -> None:
    newer = replace(RUNNING, attempts=3)
    found = decide(snapshot_of(job_of(newer), node=busy(1), executions=(Execution(KEY, Stage.WORKING),)), CONFIG, NOW)
    assert [a.reason if isinstance(a, Skip) else type(a) for a in found] == [Reason.STOPPING, Abort]


def test_decide__credit_above_threshold__withdraws_once() -> None:
    rich = snapshot_of(credit=10**16)
    assert decide(rich, CONFIG, NOW) == []
    collects = replace(CONFIG, withdraw_at=10**16)
    assert decide(rich, collects, NOW) == [Withdraw(10**16, 100)]
    assert decide(replace(rich, flights=(Flight(Kind.WITHDRAW),)), collects, NOW) == []


@pytest.mark.parametrize(("bonds", "claims"), [(2, 2), (1.5, 1), (1, 1), (0.5, 0)])
@pytest.mark.parametrize("flying", [False, True])
@pytest.mark.parametrize("window", [0, 12])
def test_decide__stake_for_so_many_bonds__takes_no_more_units_than_it_covers(
    bonds: float, claims: int, flying: bool, window: int
) -> None:
    """What is decided at one look, or is on its way, binds its stake as what the chain has does."""
    bond = formulas.bond(TERMS)
    flights = (Flight(Kind.CLAIM, JobId(b"\xcc" * 32), 0, bond),) if flying else ()
    stake = NODE.stake - int(bonds * bond) - (bond if flying else 0)
    node = replace(NODE, state=replace(NODE.state, bond=stake))
    one = job_of(OPEN, match_window=window)
    other = replace(one, id=JobId(b"\xbb" * 32))
    found = decide(snapshot_of(one, other, node=node, flights=flights), CONFIG, NOW)
    assert len([step for step in found if isinstance(step, Propose if window else Claim)]) == claims
    assert [step.reason for step in found if isinstance(step, Skip)] == [Gate.STAKE_SHORT] * (2 - claims)


@pytest.mark.parametrize(
    "rule",
    [
        {"submitters": frozenset({"0x" + "44" * 20})},
        {"submitters": frozenset()},
        {"submitters_refused": frozenset({TERMS.submitter})},
    ],
)
def test_decide__held_unit_of_a_submitter_who_is_allowed_no_more__is_run_all_the_same(rule: dict[str, Any]) -> None:
    """Its bond is at stake, whatever the settings say by then."""
    held = snapshot_of(job_of(RUNNING), node=busy(1))
    assert reason(snapshot_of(job_of(OPEN)), replace(CONFIG, **rule)) == Reason.SUBMITTER_REFUSED
    assert only(held, replace(CONFIG, **rule)) == only(held) == StartRun(KEY, RUNNING.mark, 1, BEGUN_BY)


# ---- one unit by hand ----

HAND = replace(CONFIG, target=Target(ID))
ELSE = JobId(b"\xbb" * 32)


def test_decide__target__other_jobs_are_left_alone_even_where_this_node_has_won_them() -> None:
    """Keepers propose a node that beats: what it does not take lapses, and costs it nothing."""
    won = replace(job_of(replace(OPEN, mark=NOW - 1), Best(node=ME, key=1)), id=ELSE)
    assert isinstance(only(snapshot_of(won)), Gather)
    found = decide(snapshot_of(won, job_of(OPEN)), HAND, NOW)
    assert found == [Skip(ELSE, None, Reason.NOT_CHOSEN), Claim(ID, 0, 0, formulas.bond(TERMS), 0)]


def array(*units: Unit, touched: int, **overrides: object) -> Job:
    """Return an array of 5 with some of its touched leases."""
    leases = tuple(Lease(index, unit) for index, unit in enumerate(units))
    job = Job(ID, replace(TERMS, units=5), leases, Header(opened=NOW - 5, touched=touched), spec=WASM)
    return replace(job, **overrides)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("target", "wanted"), [(Target(ID), 1), (Target(ID, 0), 1), (Target(ID, 1), 1), (Target(ID, taken=True), 0)]
)
def test_decide__target_of_an_array__takes_one_unit(target: Target, wanted: int) -> None:
    snapshot = snapshot_of(array(OPEN, OPEN, touched=2))
    claims = [a for a in decide(snapshot, replace(CONFIG, target=target), NOW) if isinstance(a, Claim)]
    assert len(claims) == wanted
    assert target.index is None or [c.index for c in claims] == [target.index]


def test_decide__target_with_a_transaction_on_its_way__takes_no_second_unit() -> None:
    for where in (0, SENTINEL):
        snapshot = snapshot_of(array(OPEN, OPEN, touched=2), flights=(Flight(Kind.CLAIM, ID, where),))
        found = decide(snapshot, HAND, NOW)
        assert {a.reason for a in found if isinstance(a, Skip)} == {Reason.TX_PENDING} and len(found) == 3


@pytest.mark.parametrize("index", [None, 2])
def test_outlook__call_that_takes_the_next_unit__may_be_for_the_one_that_is_meant(index: int | None) -> None:
    snapshot = snapshot_of(array(touched=2), flights=(Flight(Kind.CLAIM, ID, SENTINEL, 1),))
    found = outlook(snapshot, CONFIG, Target(ID, index), NOW)
    assert isinstance(found, Skip) and found.job == ID
    assert (found.index, found.reason) in (
        (index, Reason.TX_PENDING),
        (3, Reason.TX_PENDING),
    )


@pytest.mark.parametrize("beat", [0, NOW - 10_000, NOW])
def test_outlook__node_that_was_silent__is_asked_as_if_it_had_beaten(beat: int) -> None:
    silent = replace(NODE, state=replace(NODE.state, beat=beat))
    assert outlook(snapshot_of(job_of(OPEN), node=silent), CONFIG, Target(ID), NOW) is None
    poor = outlook(snapshot_of(job_of(OPEN), node=replace(silent, stake=0)), CONFIG, Target(ID), NOW)
    why = "the node is not ready, its stake is short: hearth worker status"
    assert poor == Skip(ID, None, Reason.NODE_STATUS, why)


@pytest.mark.parametrize(
    ("job", "index", "wanted"),
    [
        (replace(job_of(OPEN), spec=None), None, ReadSpec(ID)),
        (replace(array(OPEN, OPEN, touched=2), spec=None), None, ReadSpec(ID)),
        (array(touched=0), 0, None),
        (array(touched=0), 1, Reason.NOT_NEXT),
        (array(replace(OPEN, node=ME), touched=1), 0, Gate.EXCLUDED),
        (array(replace(OPEN, node=ME), touched=1), None, None),
        (array(replace(RUNNING, node=OTHER), touched=1), 0, Reason.ENDED),
        (job_of(OPEN, deadline=NOW + 659), None, Gate.NO_TIME),
        (job_of(OPEN, ceiling=1), None, Gate.PRICE),
        (job_of(replace(OPEN, mark=NOW + 5), Best(node=OTHER, key=(1 << 48) - 1), match_window=9), 0, Reason.OUTBID),
        (job_of(replace(OPEN, mark=NOW + 5), Best(node=ME, key=1), match_window=9), 0, None),
        (replace(job_of(OPEN), id=ELSE), None, Reason.NOT_WATCHED),
        (job_of(BLOCKED), None, Reason.AWAITS_PARENTS),
        (job_of(BLOCKED), 0, Reason.AWAITS_PARENTS),
        (WAITING, None, Reason.AWAITS_PARENTS),
        (WAITING, 3, Reason.AWAITS_PARENTS),
    ],
)
def test_outlook__unit_that_is_not_held__says_what_keeps_the_node_from_it(
    job: Job, index: int | None, wanted: object
) -> None:
    found = outlook(snapshot_of(job), CONFIG, Target(ID, index), NOW)
    assert (found.reason if isinstance(found, Skip) else found) == wanted
    if isinstance(found, Skip):
        assert found.job == ID and (index is None or found.index in (index, None))


@pytest.mark.parametrize("rising", [0, 1])
def test_outlook__price_that_has_yet_to_rise__is_said_before_what_keeps_the_node_from_another_unit(rising: int) -> None:
    """Whichever unit the lot puts first: the node waits for the one that it will have."""
    fresh, excluded = replace(OPEN, started=NOW), replace(OPEN, node=ME)
    job = array(*((fresh, excluded) if rising == 0 else (excluded, fresh)), touched=5)
    dear = replace(job, terms=replace(job.terms, ceiling=2 * 10**15))
    assert outlook(snapshot_of(dear), CONFIG, Target(ID), NOW) == Skip(ID, rising, Reason.AWAITS_PRICE, "10 s")


def test_explain__unknown_job__says_so() -> None:
    found = explain(snapshot_of(job_of(OPEN)), CONFIG, JobId(b"\x01" * 32), NOW)
    assert isinstance(found[0], Skip) and found[0].name == "not_watched"


# ---- properties ----

ids = st.sampled_from([JobId(bytes([n]) * 32) for n in range(1, 7)])
times = st.integers(NOW - 1_000, NOW + 1_000)


@st.composite
def units(draw: st.DrawFn) -> Unit:
    state = draw(
        st.sampled_from([State.OPEN] * 3 + [State.RUNNING] * 3 + [State.CLOSING, State.SUBMITTED, State.SETTLED])
    )
    node = draw(st.sampled_from([ME, ME, OTHER, NodeId(0)]))
    if state == State.OPEN:
        live = draw(st.booleans())
        return Unit(
            state=state,
            node=node if draw(st.booleans()) else NodeId(0),
            started=NOW - draw(st.integers(0, 400)),
            mark=NOW + draw(st.integers(-80, 30)) if live else 0,
            rate=10**15 if live else 0,
            attempts=draw(st.integers(0, 2)),
            lapses=draw(st.integers(0, 2)),
        )
    return Unit(
        state=state,
        node=node or OTHER,
        rate=10**15,
        started=NOW - 100,
        mark=draw(times),
        attempts=draw(st.integers(1, 3)),
        flags=draw(st.sampled_from([UnitFlag(0), UnitFlag(0), UnitFlag.FRESH])),
    )


@st.composite
def jobs(draw: st.DrawFn, job: JobId) -> Job:
    terms = replace(
        TERMS,
        needs=Needs(cores=draw(st.sampled_from([0, 8, 9]))),
        ceiling=draw(st.sampled_from([10**14, 10**15, 2 * 10**15])),
        match_window=draw(st.sampled_from([0, 12])),
        deadline=NOW + draw(st.sampled_from([800, 900, 5_000])),
        replicas=draw(st.sampled_from([1, 1, 1, 3])),
        judge=draw(st.sampled_from([NOBODY, NOBODY, JUDGE])),
    )
    best = st.builds(Best, node=st.sampled_from([ME, OTHER]), key=st.sampled_from([0, 1 << 46, (1 << 48) - 1]))
    spec = draw(st.sampled_from([None, WASM, WASM, SpecFacts(bad="broken")]))
    if draw(st.booleans()):
        return Job(job, terms, (Lease(0, draw(units()), draw(best), draw(st.integers(90, 100))),), None, spec)
    touched = draw(st.integers(0, 4))
    kept = [i for i in range(touched) if draw(st.booleans())]
    leases = tuple(Lease(i, draw(units()), draw(best), draw(st.integers(90, 100))) for i in kept)
    header = Header(closed=draw(st.booleans()), touched=touched, opened=NOW - draw(st.integers(0, 400)))
    return Job(job, replace(terms, units=5, replicas=1), leases, header, spec)


def evenly(choices: Sequence[Any]) -> st.SearchStrategy[Any]:
    """Draw each choice about as often: by itself, hypothesis goes on with one for many examples."""
    return st.integers(0, 1 << 32).map(lambda seed: Random(seed).choice(choices))


FRESH = replace(OPEN, started=NOW - 100)
LONG = replace(RUNNING, started=NOW - 300)
BROUGHT = (Stage.GATHERING, Stage.GATHERED)
COURSES: tuple[tuple[Unit, Best, dict[str, object], tuple[Stage | None, ...]], ...] = (
    (FRESH, Best(), {}, (None,)),
    (replace(FRESH, attempts=1, node=OTHER), Best(), {}, (None,)),
    (FRESH, Best(), {"match_window": 12}, (None,)),
    (replace(FRESH, mark=NOW + 9, rate=10**15), Best(node=OTHER, key=1), {"match_window": 12}, (None,)),
    (replace(FRESH, mark=NOW + 9, rate=10**15), Best(node=ME, key=1), {"match_window": 12}, (None, None, *BROUGHT)),
    (replace(FRESH, mark=NOW - 9, rate=10**15), Best(node=ME, key=1), {"match_window": 12}, (Stage.GATHERED,)),
    (replace(FRESH, mark=NOW - 30, rate=10**15), Best(node=ME, key=1), {"match_window": 12}, (None, *BROUGHT)),
    (RUNNING, Best(), {}, (None, Stage.GATHERED, Stage.WORKING)),
    (RUNNING, Best(), {}, (Stage.DONE,)),
    (RUNNING, Best(), {}, (Stage.REFUSED, Stage.BROKEN)),
    (LONG, Best(), {}, (Stage.REFUSED,)),
    (LONG, Best(), {}, (Stage.BROKEN, Stage.REFUSED, Stage.DONE)),
    (replace(RUNNING, flags=UnitFlag.FRESH), Best(), {}, (Stage.DONE, Stage.DONE, Stage.WORKING)),
    (RUNNING, Best(), {"judge": JUDGE, "challenge_window": 60}, (Stage.DONE,)),
    (replace(RUNNING, state=State.CLOSING, mark=NOW + 60), Best(), {}, (Stage.WORKING,)),
    (replace(RUNNING, state=State.CLOSING, mark=NOW + 60), Best(), {}, (Stage.DONE, None)),
    (replace(RUNNING, state=State.CLOSING, mark=NOW - 1), Best(), {}, (Stage.WORKING, None)),
    (replace(RUNNING, state=State.SUBMITTED, mark=NOW - 9), Best(), {}, (None, Stage.WORKING, Stage.DONE)),
)
"""Units as they come about, with what was proposed for them, their job's terms, and how far this machine may be."""


@st.composite
def courses(draw: st.DrawFn, job: JobId, course: int) -> tuple[Job, tuple[Execution, ...]]:
    """Draw a job whose unit, terms and attempt fit each other, as the one unit of it or as one of an array."""
    unit, best, changes, stages = COURSES[course]
    several, index, stage = draw(evenly([True, False])), draw(st.integers(0, 2)), draw(evenly(stages))
    lease = Lease(index if several else 0, unit, best, draw(st.sampled_from([90, 99])))
    header = (
        Header(
            draw(st.integers(0, 4)) == 4, touched=index + draw(st.sampled_from([1, 2, 3])), opened=NOW - 100, leases=5
        )
        if several
        else None
    )
    terms = replace(TERMS, **{"billing": Billing.METERED, **changes}, units=5 if several else 1)  # type: ignore[arg-type]
    watched = Job(job, terms, (lease,), header, draw(st.sampled_from([WASM, WASM, WASM, WASM, None])))
    if stage is None:
        return watched, ()
    key = LeaseKey(job, lease.index, unit.attempts + (unit.state is State.OPEN))
    begun, tries = draw(evenly([True, True, False])), draw(evenly([3, 3, 1, 2]))
    return watched, (Execution(key, stage, Outcome.OK, b"\x01" * 32, tries=tries, begun=begun),)


@st.composite
def wild(draw: st.DrawFn, job: JobId) -> tuple[Job, tuple[Execution, ...]]:
    """Draw a job of any fields, and attempts at any of its units."""
    watched = draw(jobs(job))
    keys = {
        LeaseKey(job, lease.index, lease.unit.attempts + draw(st.integers(0, lease.unit.state is State.OPEN)))
        for lease in watched.leases
        if draw(st.booleans())
    }
    return watched, tuple(
        Execution(key, draw(st.sampled_from(list(Stage))), Outcome.OK, b"\x01" * 32, tries=draw(st.integers(1, 3)))
        for key in sorted(keys)
    )


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    """Draw jobs of which most run their course, seen by a node that mostly is live and has free slots."""
    count = draw(evenly([6, 6, 5, 4, 2, 1, 0]))
    # Each course once at most, and in an even order, so that all come about in few examples. The rest are any jobs.
    order = Random(draw(st.integers(0, 1 << 32))).sample(range(len(COURSES) + 4), count)
    drawn = [
        draw(courses(job, course) if course < len(COURSES) else wild(job))
        for job, course in zip(
            draw(st.lists(ids, unique=True, min_size=count, max_size=count)),
            order,
            strict=True,
        )
    ]
    watched = tuple(job for job, _ in drawn)
    found = {one.key: one for _, executions in drawn for one in executions}
    if draw(st.integers(0, 3)) == 3:
        stray = LeaseKey(draw(ids), draw(st.integers(0, 3)), draw(st.integers(1, 3)))
        found.setdefault(stray, Execution(stray, draw(st.sampled_from(list(Stage))), Outcome.OK, b"\x01" * 32))
    executions = tuple(found[key] for key in sorted(found))
    flights = tuple(
        Flight(draw(st.sampled_from(list(Kind))), draw(ids), draw(st.sampled_from([0, 1, 2, SENTINEL])), 10**9)
        for _ in range(draw(st.sampled_from([0, 0, 0, 1, 2])))
    )
    held = sum(1 for j in watched for le in j.leases if le.unit.state in HELD and le.unit.node == ME)
    node = replace(
        NODE,
        offer=replace(NODE.offer, slots=draw(st.sampled_from([8, 8, 8, 8, 8, 4, 2, 1]))),
        state=replace(
            NODE.state,
            busy=held + draw(st.sampled_from([0, 0, 1])),
            beat=NOW - draw(st.sampled_from([10, 10, 10, 400, 400, 400, 900])),
        ),
    )
    return Snapshot(100, NOW, node, MARKET, watched, executions, flights)


def all_came_about(seen: Counter[type], kinds: Iterable[type]) -> None:
    """Fail where an action that a property speaks of came about in none of its examples."""
    missing = {kind.__name__ for kind in kinds if not seen[kind]}
    assert not missing, f"in no example: {', '.join(sorted(missing))}"


configs = st.builds(
    Config,
    beat_every=st.just(300),
    hold=st.sampled_from([None, None, None, None, None, Reason.PAUSED]),
    max_slots=st.sampled_from([63, 63, 63, 8, 8, 2, 1]),
    judges=st.sampled_from([{}, {JUDGE: TrustedJudge()}]),
    confirmations=st.sampled_from([0, 3]),
    settle_after=st.sampled_from([0, 500]),
)


wishes = st.fixed_dictionaries(
    {},
    optional={
        "submitters": st.just(frozenset({"0x" + "44" * 20})),
        "submitters_refused": st.just(frozenset({TERMS.submitter})),
        "modules": st.just(("bafyother",)),
        "modules_refused": st.just(("*",)),
        "gpu_only": st.just(True),
        "min_rate": st.just(10**15 + 1),
        "min_pay": st.just(10**18),
        "max_seconds": st.just(1),
        "max_input_bytes": st.just(0),
        "max_output_bytes": st.just(0),
    },
)
"""Rules of a provider, each of which refuses every job of `jobs` that has a spec."""


@pytest.mark.hypothesis
def test_decide__rule_that_refuses__neither_risks_a_bond_nor_gives_a_lease_back() -> None:
    """What a cheat gains: nothing. A rule holds before money moves, and of what is held by then none is asked."""
    free: Counter[type] = Counter()
    kept: Counter[type] = Counter()

    @given(snapshots(), configs, wishes.filter(bool))
    def refuses(snapshot: Snapshot, config: Config, rules: dict[str, object]) -> None:
        before, after = refused(snapshot, config, rules)
        free.update(map(type, before))
        kept.update(map(type, after))

    refuses()
    all_came_about(free, (Ack, Claim, Gather, Propose, Finish, SubmitResult, StartRun))
    all_came_about(kept, (StartRun, SubmitResult, Finish, Decline, GiveUp, Settle, Close, Abort, SetAside, Beat))


def refused(
    snapshot: Snapshot, config: Config, rules: dict[str, object]
) -> tuple[list[Action | Skip], list[Action | Skip]]:
    """Return what is decided without rules that refuse and with them, which take nothing new and leave the rest."""
    free, bound = (decide(snapshot, one, NOW) for one in (config, replace(config, **rules)))  # type: ignore[arg-type]
    assert not any(isinstance(a, Ack | Claim | Gather | Propose) for a in bound)
    assert not any(a.next for a in bound if isinstance(a, Finish))
    kept = (StartRun, SubmitResult, Finish, Decline, GiveUp, HandIn, Settle, Close, Abort, SetAside, Beat, Withdraw)
    ahead = {e.key for e in snapshot.executions if e.stage in AHEAD}
    before, after = (
        [
            replace(a, next=None) if isinstance(a, Finish) else a
            for a in found
            if isinstance(a, kept) and not (isinstance(a, Abort) and a.attempt in ahead)
        ]
        for found in (free, bound)
    )
    assert before == after
    # What was fetched for a match that is not wanted goes, and no more than that.
    dropped = [{a.attempt for a in found if isinstance(a, Abort)} for found in (free, bound)]
    assert dropped[0] <= dropped[1]
    return free, bound


def transactions(actions: list[Action | Skip]) -> list[tuple[JobId, int]]:
    """List the lease of every transaction decided."""
    found: list[tuple[JobId, int]] = []
    for action in actions:
        match action:
            case Propose(job, index) | Ack(job, index) | Claim(job, index) | Close(job, index):
                found.append((job, index))
            case SubmitResult(key) | Decline(key) | GiveUp(key):
                found.append((key.job, key.index))
            case Finish(key):
                found.append((key.job, key.index))
                if action.next is not None:
                    found.append((action.next.job, action.next.index))
            case Settle(items):
                found.extend(items)
    return found


def touches(action: Action | Skip) -> LeaseKey | None:
    match action:
        case Gather(key) | StartRun(key) | SubmitResult(key) | Finish(key) | Decline(key) | GiveUp(key):
            return key
        case Abort(key) | SetAside(key) | HandIn(key):
            return key
    return None


@pytest.mark.hypothesis
def test_decide__any_snapshot__keeps_its_promises() -> None:
    seen: Counter[type] = Counter()

    @given(snapshots(), configs)
    def keeps(snapshot: Snapshot, config: Config) -> None:
        seen.update(map(type, keep_promises(snapshot, config)))

    keeps()
    taking = (Ack, Claim, Gather, Propose, ReadSpec)
    running = (StartRun, SubmitResult, Finish, Decline, GiveUp, HandIn)
    all_came_about(seen, (*taking, *running, Settle, Close, Abort, SetAside))


def keep_promises(snapshot: Snapshot, config: Config) -> list[Action | Skip]:
    """Return what is decided, which holds all that the rules promise."""
    actions = decide(snapshot, config, NOW)
    note(repr(actions))
    leases = {(j.id, le.index): (j, le) for j in snapshot.jobs for le in j.leases}
    own = {
        LeaseKey(*where, le.unit.attempts): le
        for where, (_, le) in leases.items()
        if le.unit.node == ME and le.unit.state in HELD | {State.SUBMITTED}
    }
    executions = {e.key: e for e in snapshot.executions}
    flying = {(f.job, f.index) for f in snapshot.flights}

    # What is left alone is named by its job and, where it is one of several, by its unit.
    known = {job.id for job in snapshot.jobs} | {key.job for key in executions}
    for one in actions:
        if isinstance(one, Skip):
            assert one.job in known and (one.index is None or isinstance(one.index, int))

    # Never two transactions for one lease, none for a lease with one in flight, never two steps for one attempt.
    sent = transactions(actions)
    assert len(sent) == len(set(sent))
    assert not set(sent) & flying
    stepped = [key for key in map(touches, actions) if key is not None]
    assert len(stepped) == len(set(stepped))

    # Never more leases than slots, counting what the chain holds and what is in flight.
    engaged = [a for a in actions if isinstance(a, Ack | Claim)]
    inflight = sum(1 for f in snapshot.flights if f.kind in (Kind.ACK, Kind.CLAIM))
    slots = min(config.max_slots, snapshot.node.offer.slots)
    assert not engaged or snapshot.node.state.busy + inflight + len(engaged) <= slots
    assert config.hold is None or not any(isinstance(a, Ack | Claim | Gather | Propose | ReadSpec) for a in actions)
    # Nor more than the machine has: what is gathered for a lease that is not held, or on its way, fills one slot.
    engaging = {(f.job, f.index) for f in snapshot.flights if f.kind in (Kind.ACK, Kind.CLAIM)}
    ended = {a.attempt for a in actions if isinstance(a, Abort)}
    taken = {(a.job, a.index) for a in engaged}
    waiting = [
        e
        for e in snapshot.executions
        if e.stage in AHEAD
        and e.key not in ended
        and not (e.key in own and own[e.key].unit.state in HELD)
        and (e.key.job, e.key.index) not in engaging | taken
    ]
    begun = [*engaged, *(a for a in actions if isinstance(a, Gather))]
    assert not begun or snapshot.node.state.busy + inflight + len(begun) + len(waiting) <= slots

    for action in actions:
        match action:
            case SubmitResult(key) | Finish(key) | Decline(key) | GiveUp(key):
                assert own[key].unit.state in HELD and own[key].unit.mark > NOW
                assert executions[key].stage != Stage.WORKING or not isinstance(action, SubmitResult | Finish)
                final = not own[key].unit.flags & UnitFlag.FRESH and leases[key.job, key.index][0].terms.judge == NOBODY
                assert not isinstance(action, SubmitResult | Finish) or isinstance(action, Finish) == final
                until = formulas.declinable_until(leases[key.job, key.index][0].terms, own[key].unit)
                assert not isinstance(action, Decline) or (until > NOW and own[key].unit.state == State.RUNNING)
                assert not isinstance(action, GiveUp) or own[key].unit.state == State.RUNNING
            case StartRun(key):
                assert own[key].unit.state == State.RUNNING and own[key].unit.mark > NOW
                assert key not in executions or executions[key].stage in (Stage.BROKEN, Stage.GATHERED)
                assert not any(
                    e.stage == Stage.WORKING and (e.key.job, e.key.index) == (key.job, key.index)
                    for e in snapshot.executions
                )
            case Settle(items):
                for item in items:
                    assert leases[item][1].unit.state == State.SUBMITTED and leases[item][1].unit.node == ME
            case Close(job, index):
                unit = leases[job, index][1].unit
                assert unit.state == State.CLOSING and unit.mark <= NOW and unit.node == ME
            case Abort(key):
                assert executions[key].stage in UNDER_WAY
                assert key not in own or own[key].unit.state == State.SUBMITTED or own[key].unit.mark <= NOW
            case HandIn(key, until, _):
                assert executions[key].stage is Stage.WORKING and own[key].unit.state is State.CLOSING
                assert own[key].unit.mark == until > NOW
            case SetAside(key):
                assert key not in own and executions[key].stage not in UNDER_WAY
            case Gather(key, until):
                job, stored = leases[key.job, key.index]
                assert key not in executions and key.attempts == stored.unit.attempts + 1 and key not in own
                assert stored.best.node == ME and until < stored.unit.mark + POLICY.ack_time
            case Ack(job, index):
                stored = leases[job, index][1]
                assert stored.best.node == ME and stored.unit.mark <= NOW < stored.unit.mark + POLICY.ack_time
                assert executions[LeaseKey(job, index, stored.unit.attempts + 1)].stage is Stage.GATHERED
            case Propose(job, index) if (job, index) in leases:
                stored = leases[job, index][1]
                read = formulas.with_lapse(leases[job, index][0].terms, stored.unit, stored.best, NOW)
                assert formulas.proposable(leases[job, index][0].terms, read, NOW)
                assert read.mark == 0 or stored.best.node != ME
            case Claim(job, index) if (job, index) in leases:
                stored = leases[job, index][1]
                terms = leases[job, index][0].terms
                assert formulas.claimable(terms, stored.unit, NOW)
                rises = formulas.claimable_from(terms, stored.unit, NODE.offer.ask)
                assert rises is not None and rises <= NOW

    # Every lease that the node runs is executed exactly once: already, or from now on, or for a reason that is named.
    for key, lease in own.items():
        if lease.unit.state != State.RUNNING or (key.job, key.index) in flying or lease.unit.mark <= NOW:
            continue
        starts = sum(1 for a in actions if isinstance(a, StartRun) and a.attempt == key)
        present = key in executions and executions[key].stage not in (Stage.BROKEN, Stage.GATHERED)
        waits = any(
            isinstance(a, Skip)
            and (a.job, a.index) == (key.job, key.index)
            and a.reason in (Reason.AWAITS_CONFIRMATIONS, Reason.STOPPING)
            for a in actions
        )
        declines = any(isinstance(a, Decline | GiveUp) and a.attempt == key for a in actions)
        assert starts + present + (waits and not present) + (declines and not present) == 1

    # Everything that is open, or ours, is spoken of: silence is no answer to `hearth worker why`.
    spoken = {(s.job, s.index) for s in actions if isinstance(s, Skip)} | set(sent)
    spoken |= {(key.job, key.index) for key in stepped}
    whole = {s.job for s in actions if isinstance(s, Skip) and s.index is None}
    whole |= {a.job for a in actions if isinstance(a, ReadSpec)}
    for where, (job, lease) in leases.items():
        if lease.unit.state == State.OPEN or LeaseKey(*where, lease.unit.attempts) in own:
            assert where in spoken or job.id in whole
    return actions


@pytest.mark.hypothesis
@given(snapshots(), configs, st.randoms(use_true_random=False))
def test_decide__same_facts_in_another_order__decides_the_same(
    snapshot: Snapshot, config: Config, random: object
) -> None:
    jobs_list, executions = list(snapshot.jobs), list(snapshot.executions)
    random.shuffle(jobs_list)  # type: ignore[attr-defined]
    random.shuffle(executions)  # type: ignore[attr-defined]
    shuffled = replace(snapshot, jobs=tuple(jobs_list), executions=tuple(executions))
    assert set(map(repr, decide(snapshot, config, NOW))) == set(map(repr, decide(shuffled, config, NOW)))


# ---- what gas costs ----

GWEI = 10**9
PAYS = 600 * 10**9
"""The most that a unit of TERMS pays this node, base units: its ask for 600 s; PUBLIC takes no fee here."""


def dear(price: int, **changes: object) -> Config:
    """Allow no loss at `price` wei per gas, where a coin is worth one base unit."""
    return replace(CONFIG, **{"max_loss": 0, "coin_price": 1, "gas_price": price, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("job", "gas"),
    [
        (job_of(OPEN), 78_000 + 102_000),
        (job_of(replace(OPEN, mark=NOW - 1), Best(node=ME, key=1), match_window=12), 75_000 + 102_000),
        (job_of(OPEN, match_window=12), 103_000 + 75_000 + 102_000),
        (job_of(OPEN, flags=TermsFlag.KEEP), 78_000 + 102_000 + 23_000),
        (job_of(OPEN, judge=JUDGE, challenge_window=60), 78_000 + 67_000 + 104_000),
    ],
)
def test_decide__unit_that_brings_less_than_its_gas__is_left_alone(job: Job, gas: int) -> None:
    pay = PAYS - formulas.fee_of(PAYS, POLICY)
    worth = pay * 10**18 // gas
    ready = snapshot_of(job, executions=(GATHERED,) if job.leases[0].best.node == ME else ())
    trusted = {"judges": {JUDGE: TrustedJudge()}}
    (taken,) = decide(ready, dear(worth, **trusted), NOW)
    assert isinstance(taken, Claim | Ack | Propose) and taken.ceiling(1 << 200) == worth
    assert taken.ceiling(worth) == worth // 2, "what begins something has half of the cap"
    assert reason(snapshot_of(job), dear(worth + 1, **trusted)) == Reason.UNPROFITABLE
    assert isinstance(only(ready, dear(worth + 1, max_loss=10**9, **trusted)), Claim | Ack | Propose)
    for unasked in ({"coin_price": 0}, {"max_loss": None}):
        assert isinstance(only(ready, dear(worth * 9, **trusted, **unasked)), Claim | Ack | Propose)


def test_decide__unit_of_a_node_on_probation__is_reckoned_with_its_submit_and_its_settlement() -> None:
    """What it submits waits for `fresh_delay`; off probation a result settles itself."""
    fresh = replace(NODE, state=replace(NODE.state, seasoned=False))
    cheap = job_of(OPEN, flags=TermsFlag.NEWCOMERS)
    pay = PAYS - formulas.fee_of(PAYS, POLICY)
    worth = pay * 10**18 // (78_000 + 44_000 + 104_000)
    assert isinstance(only(snapshot_of(cheap, node=fresh), dear(worth)), Claim)
    assert reason(snapshot_of(cheap, node=fresh), dear(worth + 1)) == Reason.UNPROFITABLE
    assert isinstance(only(snapshot_of(cheap), dear(worth + 1)), Claim)


def test_decide__units_of_a_job_that_bill_next_to_nothing__are_not_taken_for_the_most_that_they_may_bring() -> None:
    """An array of a million units, each of which ends at once: one of them costs the node its gas, and no more."""
    price = PAYS * 10**18 // 180_000 // 2
    config = dear(price)
    seen = replace(job_of(OPEN, billing=Billing.METERED), paid=(5, 7))
    assert reason(snapshot_of(seen), config) == Reason.UNPROFITABLE
    assert isinstance(only(snapshot_of(replace(seen, paid=())), config), Claim)
    assert isinstance(only(snapshot_of(replace(seen, paid=(PAYS, PAYS))), config), Claim)
    fixed = replace(seen, terms=replace(seen.terms, billing=Billing.FIXED))
    assert reason(snapshot_of(fixed), config) == Reason.UNPROFITABLE, (
        "each bills its whole time, unless it is cancelled"
    )
    waits = Unit(state=State.SUBMITTED, node=ME, rate=10**15, started=NOW - 3, mark=NOW - 2, attempts=1)
    unsettled = replace(seen, paid=(), leases=(*seen.leases, Lease(1, waits)))
    found = [step for step in decide(snapshot_of(unsettled), config, NOW) if isinstance(step, Skip)]
    assert Reason.UNPROFITABLE in [step.reason for step in found], "what is not settled yet is known all the same"


@pytest.mark.hypothesis
@given(
    st.lists(st.tuples(st.integers(1, 600), st.integers(1, 2_000)), min_size=1, max_size=60),
    st.sampled_from([Billing.METERED, Billing.FUEL, Billing.FIXED]),
)
def test_decide__any_units_of_a_stranger_at_any_gas_price__cost_little_more_than_they_brought(
    units: list[tuple[int, int]], billing: Billing
) -> None:
    """The profit test: the submitter chooses how long each unit runs, and posts when gas is as dear as it likes.

    One lease is taken on hope. The sum of averages is at most the harmonic number times what came in.
    """
    gas, earned, spent, harmonic = CLAIM_GAS + FINISH_GAS, 0, 0, 0.0
    job = job_of(OPEN, billing=billing)
    for seconds, share in units:
        price = PAYS * 10**18 // gas * share // 1_000
        (step,) = decide(snapshot_of(job), dear(price), NOW)
        if not isinstance(step, Claim):
            continue
        pay = 10**15 * (600 if billing is Billing.FIXED else seconds) // 10**6
        earned += pay - formulas.fee_of(pay, POLICY)
        spent += gas * price // 10**18
        job = replace(job, paid=(*job.paid, pay - formulas.fee_of(pay, POLICY)))
        harmonic += 1 / len(job.paid)
    assert spent <= (earned if billing is Billing.FIXED else PAYS + earned * harmonic + len(units))


@pytest.mark.parametrize("hold", [Reason.CLOCK_SKEW, Reason.CHAIN_SILENT, Reason.GAS_CAPPED])
def test_decide__clock_chain_or_gas_that_is_not_trusted__beats_on_and_takes_nothing(hold: Reason) -> None:
    config = replace(CONFIG, hold=hold)
    old = replace(NODE.state, beat=NOW - 400)
    assert decide(snapshot_of(node=replace(NODE, state=old)), config, NOW) == [Beat(ME, NOW - 400)]
    assert reason(snapshot_of(job_of(OPEN), node=replace(NODE, state=replace(NODE.state, beat=NOW))), config) == hold


def test_decide__silent_chain__is_asked_by_one_beat() -> None:
    """A chain that mines on demand answers with a block; its second is known then."""
    silent = replace(CONFIG, hold=Reason.CHAIN_SILENT)
    fresh = replace(NODE, state=replace(NODE.state, beat=NOW - 1))
    assert decide(snapshot_of(node=fresh), silent, NOW + 29) == [], "blocks that come need no asking, and cost no gas"
    assert decide(snapshot_of(node=fresh), silent, NOW + 30) == [Beat(ME, NOW - 1)]
    assert decide(snapshot_of(node=fresh, flights=(Flight(Kind.BEAT),)), silent, NOW + 30) == []
    told = replace(NODE, state=replace(NODE.state, beat=NOW))
    assert decide(snapshot_of(node=told), silent, NOW + 40) == []
    assert decide(snapshot_of(node=fresh), CONFIG, NOW + 30) == []


def test_ceiling__what_saves_stake_or_pay__may_cost_all_of_the_cap() -> None:
    done = Execution(KEY, Stage.DONE, Outcome.OK, b"\x01" * 32, b"\x02" * 32)
    for action in (
        Beat(ME, 0),
        SubmitResult(KEY, done.result, done.report, Outcome.OK, 0),
        Finish(KEY, done.result, done.report, Outcome.OK, 0, Claim(ID, 1, 0, 5, SENTINEL)),
        Decline(KEY, done.report, Outcome.BAD_INPUT),
    ):
        assert action.ceiling(100) is None
    for other in (Settle(((ID, 0),)), Close(ID, 0), Withdraw(5, 1), Claim(ID, 0, 0, 1, 0), Ack(ID, 0, 0, 1)):
        assert other.ceiling(100) == 50
