"""Control of the oracle: a real market's facts are in order, and each thing planted in them is seen by its rule."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from hearth.market.events import Settled, Slashed, Split
from hearth.protocol import words
from hearth.protocol.types import JobId, NodeId, State
from tests.chaos import kills, oracle
from tests.chaos.market import ChaosMarket, chaos_market
from tests.chaos.oracle import Facts, Sent
from tests.kit.anvil import need_anvil

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

POINTS = ("m7.signed@jobs.claim", "m4.started", "m9.mined@jobs.submit")


@dataclass
class Run:
    """A market after one job, whose worker was killed at POINTS."""

    market: ChaosMarket
    facts: Facts
    kills: list[kills.Kill]
    faults: list[str]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    need_anvil()
    with chaos_market(tmp_path_factory.mktemp("oracle") / "market") as market:
        result = kills.Result()
        kills.kill_worker(market.lane("one"), iter([POINTS]), result)
        ready = [one.ready for one in result.kills if one.ready is not None]
        yield Run(market, oracle.gather(market, ready=ready), result.kills, result.faults)


def job_of(facts: Facts) -> JobId:
    (job,) = facts.posted
    return job


def test_kill_worker__three_points__each_counts_and_nothing_is_wrong(run: Run) -> None:
    assert [(one.point, one.counts) for one in run.kills] == [(point, True) for point in POINTS]
    assert run.faults == []
    assert oracle.judge(run.facts) == []
    assert run.facts.verification["settled"] == run.facts.verification["results_checked"] == 1
    assert run.facts.ready and run.facts.sent


def again(facts: Facts, kind: type[Any]) -> Facts:
    """Return the facts with the last event of a kind told twice, the second time by another transaction."""
    event = [one for one in facts.events if isinstance(one, kind)][-1]
    copy = replace(event, log=event.log._replace(tx_hash=b"\7" * 32))
    return replace(facts, events=(*facts.events, copy))


def paid_to(facts: Facts, change: Callable[[str, int], tuple[str, int]]) -> Facts:
    """Return the facts with each share of the last split changed."""
    (at, split) = [(at, one) for at, one in enumerate(facts.events) if isinstance(one, Split)][-1]
    shares = [change(*words.unpack_share(share)) for share in split.shares]
    packed = tuple(amount << 160 | int(account, 16) for account, amount in shares)
    return replace(facts, events=(*facts.events[:at], replace(split, shares=packed), *facts.events[at + 1 :]))


def without(facts: Facts, kind: type[Any]) -> Facts:
    return replace(facts, events=tuple(one for one in facts.events if not isinstance(one, kind)))


def slashed(facts: Facts) -> Facts:
    log = facts.events[-1].log
    return replace(facts, events=(*facts.events, Slashed(log, NodeId(1), "0x" + "00" * 20, 1, 1)))


def running(facts: Facts) -> Facts:
    job = job_of(facts)
    return replace(facts, units={job: replace(facts.units[job], state=State.RUNNING)})


def overdue(facts: Facts) -> Facts:
    job = job_of(facts)
    start = min(facts.seconds.values())
    return replace(facts, posted={job: replace(facts.posted[job], deadline=start)})


def sent(facts: Facts, **changes: Any) -> Facts:
    return replace(facts, sent=(*facts.sent, replace(_call(facts), **changes)))


def _call(facts: Facts) -> Sent:
    return next(one for one in facts.sent if one.to == facts.jobs_contract)


PLANTED: dict[str, tuple[str, Callable[[Facts], Facts]]] = {
    "a second payout": ("ends_once", lambda facts: again(facts, Settled)),
    "a second split of the lock": ("pays_as_the_model", lambda facts: again(facts, Split)),
    "a payee who is somebody else": (
        "pays_as_the_model",
        lambda facts: paid_to(facts, lambda account, amount: ("0x" + "66" * 20, amount)),
    ),
    "a wei too much": (
        "pays_as_the_model",
        lambda facts: paid_to(facts, lambda account, amount: (account, amount + 1)),
    ),
    "a job that nobody ended": ("lost", running),
    "an end that no event tells": ("lost", lambda facts: without(facts, Settled)),
    "an end after the deadline": ("late", overdue),
    "a slash": ("slashes", slashed),
    "a revert": ("spend", lambda facts: sent(facts, ok=False)),
    "a call that was mined twice": ("spend", sent),
    "a race that nobody else was in": (
        "spend",
        lambda facts: replace(sent(facts, ok=False, sender="0x" + "77" * 20, block=10**6), race_blocks=9),
    ),
    "a price of gas above the cap": ("spend", lambda facts: sent(facts, data="0x00", gas_price=10**12)),
    "a sandbox that is left": ("left", lambda facts: replace(facts, left=("a sandbox",))),
    "a slow start": ("ready", lambda facts: replace(facts, ready=(31.0,))),
}


@pytest.mark.parametrize("planted", PLANTED)
def test_judge__planted_fault__its_rule_says_so(run: Run, planted: str) -> None:
    rule, plant = PLANTED[planted]
    said = oracle.judge(plant(run.facts))
    assert said and any(one.startswith(f"{rule}: ") for one in said), said


def test_judge__revert_beside_anothers_call_of_the_job__is_a_lost_race(run: Run) -> None:
    assert oracle.judge(sent(run.facts, ok=False, sender="0x" + "77" * 20)) == []


def test_rules__each_has_a_control() -> None:
    assert {rule for rule, _ in PLANTED.values()} | {"books"} == {rule.__name__.strip("_") for rule in oracle.RULES}


def test_evidence__state_that_the_journal_does_not_show__does_not_count(run: Run) -> None:
    job = job_of(run.facts)
    (lane,) = run.market.lanes
    states = lane.journal_states()
    assert kills.tx_evidence(states, "m9.mined@jobs.submit", job) or kills.tx_evidence(
        states, "m10.final@jobs.submit", job
    )
    assert kills.tx_evidence(states, "m7.signed@jobs.submit", job) == ""
    assert kills.tx_evidence(states, "m9.mined@jobs.submit", JobId(bytes(32))) == ""
    assert kills.worker_evidence(lane, "m1.seen", job) == ""


def test_gather__escrow_robbed_on_the_chain__the_books_say_so(run: Run) -> None:
    """The last test of this market: its money is gone."""
    network = run.market.net.network
    run.market.chain.rpc("anvil_setBalance", network.escrow, "0x1")
    said = oracle.judge(oracle.gather(run.market))
    assert [one for one in said if one.startswith("books: Escrow holds 1")], said
