"""worker.attempt.executor: what is gathered before a lease is taken, whole or not at all, and what goes on with it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hearth.jobfile import Blob
from hearth.jobfile.resolved import ResolvedInput
from hearth.protocol.types import JobId, Outcome, Terms
from hearth.storage import cid as cids
from hearth.storage import unixfs
from hearth.storage.cid import Cid
from tests.worker.attempt.jobs import KEY
from tests.worker.attempt.test_executor import AFTER_INTENT, Hung, Rig, wait
from worker.attempt.task import Task
from worker.decide import Execution, LeaseKey, Stage
from worker.gpu.pool import NoGpuError
from worker.journal import Phase
from worker.runtimes.base import RunRequest, RunResult, RunStatus

OTHER = LeaseKey(JobId(b"\xbb" * 32), 0, 1)


class Attentive(Hung):
    """A runtime that notes what is asked of it, and ends each run at once."""

    def __init__(self, refusal: RunResult | None = None) -> None:
        super().__init__(RunStatus.EXIT)
        self.refusal = refusal
        self.inspected: list[RunRequest] = []
        self.kept = 0

    @contextmanager
    def keeping(self, target: str) -> Iterator[None]:
        self.kept += 1
        try:
            yield
        finally:
            self.kept -= 1

    def inspect(self, request: RunRequest, cancel: threading.Event) -> RunResult | None:
        self.inspected.append(request)
        return self.refusal


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = Rig(tmp_path)
    yield made
    made.executor.close()


@pytest.fixture
def attentive(rig: Rig) -> Attentive:
    rig.runtime = Attentive()
    rig.open()
    return rig.runtime


def gather(rig: Rig, terms: Terms, seconds: float = 60) -> None:
    rig.executor.gather(Task(KEY, terms, seconds, 0))


def gathered(rig: Rig, terms: Terms) -> None:
    gather(rig, terms)
    wait(lambda: rig.executor.ahead() != (Execution(KEY, Stage.GATHERING),))
    assert rig.executor.ahead() == (Execution(KEY, Stage.GATHERED),), rig.executor.take_given_back()


def ended(rig: Rig) -> None:
    """Wait for the end of what was gathered in vain, which leaves nothing behind."""
    wait(lambda: not rig.executor.active())
    assert rig.executor.ahead() == () and rig.journal.entries() == []
    assert not list((rig.home / "jobs").iterdir())


def forget(rig: Rig) -> None:
    """Take out of the store all that it was ever given."""
    for path in (rig.store.root / "blocks").rglob("*"):
        if path.is_file():
            path.unlink()


def test_gather__whole__is_kept_and_its_run_fetches_nothing(rig: Rig) -> None:
    terms = rig.terms(rig.spec("files"))
    before = rig.store.pins()
    gathered(rig, terms)
    # Nothing of the job's has run, nothing is journaled, and nothing is stored.
    assert rig.journal.entries() == [] and rig.store.pins() == before
    assert list((rig.home / "jobs" / str(KEY) / "out").iterdir()) == []
    forget(rig)
    entry = rig.run(terms)
    assert (entry.phase, entry.outcome, entry.tries) == (Phase.DONE, Outcome.OK, 1)
    assert [moment for moment, _ in rig.journal.moments(KEY)] == AFTER_INTENT
    assert rig.executor.ahead() == () and rig.executor.take_in_vain() == set()


def missing(rig: Rig) -> ResolvedInput:
    """Store an input whose root is there and whose first leaf is nowhere."""
    entry = rig.store.add_bytes(bytes(3 << 20))
    lost = unixfs.links_of(entry.cid, rig.store.get_block(entry.cid))[0]
    (rig.store.root / "blocks" / lost.digest.hex()[:2] / lost.digest.hex()).unlink()
    return ResolvedInput(cid=str(entry.cid), dst="/in/data", size=entry.size)


def test_gather__leaf_that_is_nowhere__is_never_whole_and_says_so_to_nobody_else(rig: Rig) -> None:
    """What a cheat gains: nothing. The match is not acked, so that there is no bond to burn."""
    terms = rig.terms(rig.spec("env", inputs=(missing(rig),)))
    pins, blocks = rig.store.pins(), set((rig.store.root / "blocks").rglob("*"))
    gather(rig, terms, 3)
    ended(rig)
    (why,) = rig.executor.take_given_back().values()
    assert why.startswith("it was led, and not taken: /in/data (") and "cannot be fetched" in why
    # No report of it is published.
    assert set((rig.store.root / "blocks").rglob("*")) == blocks and rig.store.pins() == pins
    assert rig.executor.take_in_vain() == set()


@pytest.mark.parametrize("content", [b"no module", b"\0asm\1\0\0\0"])
def test_gather__module_that_cannot_be_run__is_found_before_the_lease_is_taken(rig: Rig, content: bytes) -> None:
    """Profit: a module that no engine compiles would be declined after the ack, at the node's cost."""
    module = rig.store.add_bytes(content)
    gather(rig, rig.terms(rig.spec(module=Blob(cid=str(module.cid), size=module.size))))
    ended(rig)
    assert rig.executor.take_given_back().keys() == {KEY.job}


@pytest.mark.parametrize("env", [{"LD_PRELOAD": "x"}, {"HEARTH_UNIT": "7"}])
def test_gather__environment_that_no_sandbox_takes__is_found_before_the_lease_is_taken(
    rig: Rig, env: dict[str, str]
) -> None:
    gather(rig, rig.terms(rig.spec("env", env=env)))
    ended(rig)
    assert rig.executor.take_given_back().keys() == {KEY.job}


def test_gather__more_than_the_time_allows__is_in_vain_and_says_nothing_against_the_job(rig: Rig) -> None:
    gather(rig, rig.terms(rig.spec("env")), 0)
    ended(rig)
    assert rig.executor.take_given_back() == {} and rig.executor.take_in_vain() == {KEY.job}


def test_gather__runtime_not_ready_in_time__is_in_vain_and_otherwise_refused(rig: Rig, attentive: Attentive) -> None:
    attentive.refusal = RunResult(RunStatus.BAD_INPUT, "too slow, or unfit")
    gather(rig, rig.terms(rig.spec("env")))
    ended(rig)
    assert rig.executor.take_given_back() == {KEY.job: "it was led, and not taken: too slow, or unfit"}

    def slow(request: RunRequest, cancel: threading.Event) -> RunResult | None:
        cancel.wait(2)
        return attentive.refusal

    attentive.inspect = slow  # type: ignore[method-assign]
    gather(rig, rig.terms(rig.spec("env")), 1)
    ended(rig)
    assert rig.executor.take_given_back() == {} and rig.executor.take_in_vain() == {KEY.job}


def test_gather__gpu_that_is_not_well__is_in_vain_and_says_nothing_against_the_job(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    def check(count: int, tier: int | None) -> None:
        raise NoGpuError("1 GPUs are asked, and 0 can be given")

    monkeypatch.setattr(rig.means.gpus, "check", check)
    gather(rig, rig.terms(rig.spec("env")))
    ended(rig)
    assert rig.executor.take_given_back() == {} and rig.executor.take_in_vain() == {KEY.job}


def test_gather__this_machine_fails__leaves_the_job_alone(rig: Rig, attentive: Attentive) -> None:
    attentive.refusal = RunResult(RunStatus.BROKEN, "engine gone")
    gather(rig, rig.terms(rig.spec("env")))
    ended(rig)
    assert rig.executor.take_given_back() == {KEY.job: "it was led, and not taken: this machine failed: engine gone"}
    assert rig.executor.broken == 1


class Halfway:
    """A store that is held up in the middle of a job's data, once its folder has begun to fill."""

    def __init__(self, rig: Rig) -> None:
        self.lets_go, self._inputs, self._get = (
            threading.Event(),
            rig.home / "jobs" / str(KEY) / "in",
            rig.store.get_block,
        )
        rig.store.get_block = self.get_block  # type: ignore[method-assign]
        self.reached = threading.Event()

    def get_block(self, cid: Cid, timeout: float = 0) -> bytes:
        if self._inputs.exists():
            self.reached.set()
            assert self.lets_go.wait(60)
        return self._get(cid, timeout)

    def go_on(self) -> None:
        self.lets_go.set()


@pytest.fixture
def halfway(rig: Rig) -> Iterator[Halfway]:
    made = Halfway(rig)
    yield made
    made.go_on()


def brought(rig: Rig, terms: Terms, stage: Stage, request: pytest.FixtureRequest) -> Callable[[], None]:
    """Gather to a stage; return what lets the store go on."""
    if stage is Stage.GATHERED:
        gathered(rig, terms)
        return lambda: None
    half: Halfway = request.getfixturevalue("halfway")
    gather(rig, terms)
    assert half.reached.wait(60)
    return half.go_on


def test_start__half_of_it_is_here__begins_nothing_until_it_is_whole(
    rig: Rig, attentive: Attentive, halfway: Halfway
) -> None:
    terms = rig.terms(rig.spec("env"))
    gather(rig, terms)
    assert halfway.reached.wait(60)
    rig.executor.start(Task(KEY, terms, 60, 1))
    assert rig.executor.ahead() == (Execution(KEY, Stage.GATHERING),)
    assert rig.journal.entries() == [] and attentive.requests == []
    halfway.go_on()
    wait(lambda: rig.executor.ahead() == (Execution(KEY, Stage.GATHERED),))
    assert rig.run(terms).phase is Phase.DONE and len(attentive.requests) == 1


@pytest.mark.parametrize("stage", [Stage.GATHERING, Stage.GATHERED])
def test_stop__match_that_is_lost__frees_the_folder_and_counts_as_in_vain(
    rig: Rig, request: pytest.FixtureRequest, stage: Stage
) -> None:
    terms = rig.terms(rig.spec("env"))
    go_on = brought(rig, terms, stage, request)
    rig.executor.stop(KEY, "outbid")
    go_on()
    ended(rig)
    assert rig.executor.take_in_vain() == {KEY.job} and rig.executor.take_given_back() == {}
    # And it can be gathered once more.
    gathered(rig, terms)


@pytest.mark.parametrize("stage", [Stage.GATHERING, Stage.GATHERED])
def test_recover__killed_while_it_gathered__takes_nothing_of_it_for_whole(
    rig: Rig, request: pytest.FixtureRequest, stage: Stage
) -> None:
    """The next process fetches all of it again: it cannot know what of a file the disk has."""
    terms = rig.terms(rig.spec("files"))
    go_on = brought(rig, terms, stage, request)
    killed = rig.executor
    rig.open()
    assert rig.executor.recover() == [f"freed {KEY}", f"removed {KEY}"]
    assert rig.executor.ahead() == () and rig.journal.executions() == ()
    assert not list((rig.home / "jobs").iterdir())
    killed.stop(KEY, "dead")
    go_on()
    wait(lambda: not killed.active())
    assert (rig.run(terms).phase, rig.finished().outcome) == (Phase.DONE, Outcome.OK)


def test_start__given_up_this_very_moment__fails_a_try_and_is_fetched_again(rig: Rig, attentive: Attentive) -> None:
    terms = rig.terms(rig.spec("env"))
    gathered(rig, terms)
    (work,) = rig.executor.active()
    work.stop.set()  # by the guard of the disk, say, whose word comes first
    rig.executor.start(Task(KEY, terms, 60, 1))
    entry = rig.finished()
    assert (entry.phase, entry.tries, attentive.requests) == (Phase.BROKEN, 1, [])
    rig.executor.start(Task(KEY, terms, 60, 1, 2))
    assert rig.finished().phase is Phase.DONE


def test_relieve__disk_full__keeps_what_is_gathered_whole_or_stops_it_before_what_runs(rig: Rig) -> None:
    """A full disk takes no part of it: else half would be taken for whole."""
    rig.runtime = Hung()
    rig.open()
    rig.executor.start(Task(OTHER, rig.terms(rig.spec("env")), 60, 1))
    assert rig.runtime.running.wait(30)
    (rig.home / "jobs" / str(OTHER) / "out" / "much").write_bytes(bytes(4 << 20))
    gathered(rig, rig.terms(rig.spec("env")))
    before = sorted((rig.home / "jobs" / str(KEY)).rglob("*"))
    (rig.home / "jobs" / "dead" / "in").mkdir(parents=True)
    rig.executor._underway._relieve()
    assert sorted((rig.home / "jobs" / str(KEY)).rglob("*")) == before
    assert not (rig.home / "jobs" / "dead" / "in").exists()
    rig.executor._underway._relieve()
    wait(lambda: len(rig.executor.active()) == 1)
    assert rig.executor.active()[0].key == OTHER and rig.executor.starved == 1
    assert rig.executor.take_in_vain() == {KEY.job}


def test_gather__image_and_gpus__keeps_the_one_until_its_end_and_takes_none_of_the_others(
    rig: Rig, attentive: Attentive, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[int] = []
    lent = rig.means.gpus.lent
    monkeypatch.setattr(rig.means.gpus, "lent", lambda count, tier: taken.append(count) or lent(count, tier))
    terms = rig.terms(rig.spec("env"))
    gathered(rig, terms)
    assert (attentive.kept, taken) == (1, []) and attentive.inspected[0].gpus == ()
    rig.run(terms)
    assert (attentive.kept, len(taken)) == (0, 1)


def test_gather__result_of_an_earlier_process__is_fetched_no_more_and_submitted(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ack was mined, the run done, and both left the chain: the match is acked once more."""
    terms = rig.terms(rig.spec("files"))
    first = rig.run(terms)
    rig.executor.set_aside(KEY, "reorganised away")

    def fetched(*arguments: Any) -> None:
        raise AssertionError("it is fetched again")

    monkeypatch.setattr("worker.attempt.fetch.Fetch.spec", fetched)
    gathered(rig, terms)
    again = rig.run(terms)
    assert (again.phase, again.result) == (Phase.DONE, first.result)


def test_missing__leaf__is_what_the_store_lacks(rig: Rig) -> None:
    """A control: the input is not simply unreadable from its root on."""
    assert rig.store.get_block(cids.parse(missing(rig).cid))
