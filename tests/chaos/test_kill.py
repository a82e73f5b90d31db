"""kill -9 at the ten moments and at random times, with and without the state folder: nothing lost, nothing twice.

Every case is a node, a key and a worker process of its own on one local chain; several run at the same time. A case
counts only where the journal of the dead process shows the job in the state that the case is named for. CI runs the ten
moments, some of them without the state folder, and a few random times; HEARTH_CHAOS=full runs each moment both ways
and 50 random times both ways.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.kit.anvil import need_anvil
from tests.kit.exchange import Exchange, Scenario
from tests.kit.running import wait
from worker.journal import Moment, Phase

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(3600)]

FULL = os.environ.get("HEARTH_CHAOS") == "full"
SEED = 20_261_120
AT_ONCE = 4
LIFE_SECONDS = 6.0
"""About what a job takes from its post to its settlement on this chain."""


@dataclass(frozen=True)
class Case:
    """One way to die: failpoints of the successive processes, or a time; and whether the state folder goes as well."""

    name: str
    failpoints: tuple[str, ...] = ()
    delay: float | None = None
    wipe: bool = False
    turns: int = 1_000_000

    def __str__(self) -> str:
        return self.name


POINTS = (
    "m1.seen",
    "m2.intent@attempt",
    "m3.fetched",
    "m4.started",
    "m5.result",
    "m6.pinned",
    "m7.signed@jobs.submit",
    "m8.broadcast@jobs.submit",
    "m9.mined@jobs.submit",
    "m10.final@jobs.settle",
)
# Without HEARTH_CHAOS=full, one moment of each kind is also tried without the state folder.
WIPED_IN_CI = ("m2.intent@attempt", "m5.result", "m8.broadcast@jobs.submit")


def _cases() -> list[Case]:
    cases = [Case(point.partition("@")[0], (point,)) for point in POINTS]
    cases += [
        Case(f"{point.partition('@')[0]}-wiped", (point,), wipe=True)
        for point in POINTS
        if FULL or point in WIPED_IN_CI
    ]
    cases.append(Case("m4.started-then-m7.signed", ("m4.started", "m7.signed@jobs.submit")))
    cases.append(Case("while-the-program-runs", delay=-1.0, turns=1_500_000_000))
    times = random.Random(SEED)
    for number in range(50 if FULL else 2):
        delay = times.uniform(0, LIFE_SECONDS)
        cases.append(Case(f"random-{number:02}", delay=delay, wipe=False if FULL else bool(number % 2)))
        if FULL:
            cases.append(Case(f"random-{number:02}-wiped", delay=delay, wipe=True))
    return cases


CASES = _cases()


def die(exchange: Exchange, case: Case) -> str:
    """Live through one case; return the evidence that the journal showed. Raises AssertionError."""
    scenario = exchange.scenario(case.name, turns=case.turns)
    try:
        return _die(scenario, case)
    finally:
        if scenario.process is not None and scenario.process.poll() is None:
            scenario.kill()


def _die(scenario: Scenario, case: Case) -> str:
    seen: list[str] = []
    if case.delay is None:
        scenario.start(case.failpoints[0])
        job = scenario.post()
        for number, point in enumerate(case.failpoints):
            if number:
                scenario.start(point)
            scenario.died()
            seen.append(evidence(scenario, point))
    else:
        scenario.start()
        wait(lambda: "beat/" in scenario.log() and "mined" in scenario.log(), "the worker beats")
        job = scenario.post()
        if case.delay < 0:
            orphans = wait(scenario.sandboxes, "the program runs")
            scenario.kill()
            seen.append(f"sandbox {orphans}")
        else:
            time.sleep(case.delay)
            scenario.kill()
            seen.append(", ".join(f"{e.phase} {e.moment}" for e in scenario.entries()) or "nothing written yet")
    if case.wipe:
        scenario.forget()
    scenario.start()
    scenario.settled(job)
    scenario.working()
    scenario.assert_once(job)
    scenario.stop()
    assert scenario.submits() == 1
    assert scenario.sandboxes() == []
    scenario.assert_secret_kept()
    if not case.wipe:
        assert "signed" not in scenario.transactions().values()
    return "; ".join(seen)


def evidence(scenario: Scenario, point: str) -> str:
    """Check that the journals of the dead process show the job at this moment; return the line that does."""
    name = point.partition("@")[0]
    assert f"failpoint {name}" in scenario.log()
    transactions = scenario.transactions()
    if name in set(Moment):
        (entry,) = scenario.entries()
        assert entry.moment == Moment(name)
        assert entry.phase is (Phase.INTENT if entry.moment in (Moment.SEEN, Moment.INTENT) else Phase.WORKING)
        return f"{entry.key} {entry.phase} {entry.moment}"
    kind, states = {
        "m7.signed": ("submit", {"signed"}),
        "m8.broadcast": ("submit", {"broadcast"}),
        "m9.mined": ("submit", {"mined"}),
        "m10.final": ("settle", {"final"}),
    }[name]
    found = {key: state for key, state in transactions.items() if key.startswith(f"{kind}/")}
    assert len(found) == 1 and set(found.values()) == states, transactions
    return str(found)


Outcomes = dict[str, "Future[str]"]


@pytest.fixture(scope="module")
def outcomes(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Future[str]]]:
    """Run every selected case, several at once."""
    need_anvil()
    exchange = Exchange(tmp_path_factory.mktemp("chaos"))
    wanted = [
        item.callspec.params["case"]
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.path == Path(__file__) and hasattr(item, "callspec")
    ]
    pool = ThreadPoolExecutor(AT_ONCE)
    try:
        yield {case.name: pool.submit(die, exchange, case) for case in wanted}
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        exchange.close()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_worker__killed__loses_nothing_and_submits_once(outcomes: Outcomes, case: Case) -> None:
    print(case.name, outcomes[case.name].result())


def test_cases__cover_the_ten_moments_both_ways() -> None:
    """The full run has each moment with and without the state folder, and 50 seeded times both ways."""
    assert [int(point[1:].partition(".")[0]) for point in POINTS] == list(range(1, 11))
    kept = {case.failpoints[0] for case in CASES if len(case.failpoints) == 1 and not case.wipe}
    assert kept == set(POINTS)
    if FULL:
        assert {case.failpoints[0] for case in CASES if case.failpoints and case.wipe} == set(POINTS)
        assert sum(case.name.startswith("random") for case in CASES) == 100
