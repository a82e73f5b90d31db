"""worker.attempt.sandbox: what a run is given, and which of its ends are the job's."""

from __future__ import annotations

import threading
import time
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from hearth.jobfile import ResolvedSpec
from hearth.protocol.types import Billing, Outcome, Terms
from tests.worker.attempt.jobs import KEY, Jobs
from worker.attempt import sandbox
from worker.attempt.folder import Folder
from worker.attempt.task import Broken, Progress, Refused, Stopped, Task
from worker.gpu.nvidia import device_of
from worker.runtimes.base import LogSink, OutputRule, RunRequest, RunResult, RunStatus
from worker.runtimes.wasm import WasmRuntime


@dataclass
class Scripted:
    """A runtime that answers as it is told."""

    refusal: RunResult | None = None
    result: RunResult = field(default_factory=lambda: RunResult(RunStatus.OK))
    sets: threading.Event | None = None
    prepared: str = ""
    name: str = "wasm"

    def available(self) -> tuple[bool, str]:
        return True, "test"

    def prepare(self, target: str, until: float = 0, cancel: threading.Event | None = None) -> RunResult | None:
        self.prepared = target
        if self.sets is not None:
            self.sets.set()
        return self.refusal

    def keeping(self, target: str) -> AbstractContextManager[None]:
        return nullcontext()

    def inspect(self, request: RunRequest, cancel: threading.Event) -> RunResult | None:
        return self.refusal

    def run(self, request: RunRequest, cancel: threading.Event, on_log: LogSink | None = None) -> RunResult:
        if self.sets is not None:
            self.sets.set()
        return self.result

    def sweep(self, prefix: str = "") -> int:
        return 0


def prepare(spec: ResolvedSpec, folder: Folder, runtime: Scripted) -> Any:
    stop = runtime.sets or threading.Event()
    return sandbox.prepare(
        spec,
        folder,
        {runtime.name: runtime},
        until=time.monotonic() + 9,
        progress=Progress(),
        stop=stop,
        kept=ExitStack(),
    )


def request(terms: Terms, spec: ResolvedSpec, folder: Folder, seconds: float, **changes: Any) -> RunRequest:
    values = {"label": "chain-3-", "gpus": (), "until": time.monotonic() + seconds}
    return sandbox.request_for(Task(KEY, terms, 60, 1), spec, folder, **{**values, **changes})


# ---- preparing ----


def test_prepare__runtime_that_is_not_here__is_refused(jobs: Jobs, folder: Folder) -> None:
    with pytest.raises(Refused) as refused:
        sandbox.prepare(
            jobs.spec("env"),
            folder,
            {},
            until=time.monotonic() + 9,
            progress=Progress(),
            stop=threading.Event(),
            kept=ExitStack(),
        )
    assert refused.value.outcome is Outcome.IMAGE_MISSING


def test_prepare__module_or_image__is_what_the_runtime_is_shown(jobs: Jobs, folder: Folder) -> None:
    wasm, docker = Scripted(), Scripted(name="docker")
    assert prepare(jobs.spec("env"), folder, wasm) is wasm
    assert prepare(jobs.spec(runtime="docker", module=None, image="name@sha256:00"), folder, docker) is docker
    assert (wasm.prepared, docker.prepared) == (str(folder.module), "name@sha256:00")


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (RunStatus.BAD_INPUT, Outcome.BAD_INPUT),
        (RunStatus.IMAGE_MISSING, Outcome.IMAGE_MISSING),
        # Nothing has run: an end of a run is no result here.
        (RunStatus.OOM, Outcome.BAD_INPUT),
        (RunStatus.CANCELLED, Outcome.BAD_INPUT),
    ],
)
def test_prepare__runtime_refuses__is_a_decline(
    jobs: Jobs, folder: Folder, status: RunStatus, outcome: Outcome
) -> None:
    with pytest.raises(Refused, match="why") as refused:
        prepare(jobs.spec("env"), folder, Scripted(RunResult(status, "why")))
    assert refused.value.outcome is outcome


def test_prepare__runtime_breaks__says_nothing_about_the_job(jobs: Jobs, folder: Folder) -> None:
    with pytest.raises(Broken, match="no engine"):
        prepare(jobs.spec("env"), folder, Scripted(RunResult(RunStatus.BROKEN, "no engine")))


def test_prepare__stopped_meanwhile__declines_nothing(jobs: Jobs, folder: Folder) -> None:
    with pytest.raises(Stopped):
        prepare(jobs.spec("env"), folder, Scripted(RunResult(RunStatus.BAD_INPUT), sets=threading.Event()))


# ---- the request ----


def test_request_for__spec_and_terms__are_what_it_says(jobs: Jobs, folder: Folder) -> None:
    spec = jobs.spec("env", "A")
    made = request(jobs.terms(spec), spec, folder, 60, gpus=(device_of("GPU-a"),))
    assert made.unit == "chain-3-aaaaaaaaaaaa-0-1"
    assert (made.command, dict(made.env), made.gpus) == (("env", "A"), {"EPOCHS": "3"}, (device_of("GPU-a"),))
    assert (made.job_dir, made.in_dir, made.out_dir) == (folder.job, folder.inputs, folder.outputs)
    assert (made.module, made.image) == (folder.module, None)
    assert (made.limits.memory_bytes, made.limits.cpus, made.limits.out_bytes) == (64 << 20, 1, 1 << 20)
    assert made.limits.fuel is None
    assert made.outputs == (OutputRule("/out", True, 1 << 20),)
    fuelled = request(jobs.terms(spec, billing=Billing.FUEL), spec, folder, 60)
    assert fuelled.limits.fuel == 20 * 10**9


@pytest.mark.parametrize(("left", "seconds"), [(100, 20), (20.5, 20), (19.5, 19), (10.5, 10)])
def test_request_for__time_left__bounds_the_run(jobs: Jobs, folder: Folder, left: float, seconds: int) -> None:
    spec = jobs.spec("env")
    assert request(jobs.terms(spec), spec, folder, left).limits.wall_seconds == seconds


@pytest.mark.parametrize("left", [9.9, 0.9, 0, -5])
def test_request_for__less_left_than_a_run_must_have__is_refused(jobs: Jobs, folder: Folder, left: float) -> None:
    spec = jobs.spec("env")
    with pytest.raises(Refused, match="too late to run"):
        request(jobs.terms(spec), spec, folder, left)


def test_request_for__seed__is_of_the_spec_and_the_unit_alone(jobs: Jobs, folder: Folder) -> None:
    spec = jobs.spec("env")
    terms = jobs.terms(spec)
    first = request(terms, spec, folder, 60).seed
    other = sandbox.request_for(
        Task(replace(KEY, attempts=9), terms, 9, 1, 2), spec, folder, label="", gpus=(), until=time.monotonic() + 5
    )
    next_unit = sandbox.request_for(
        Task(replace(KEY, index=1), terms, 9, 1), spec, folder, label="", gpus=(), until=time.monotonic() + 5
    )
    assert first == other.seed != next_unit.seed


@pytest.mark.parametrize(
    ("paid", "least"), [(1, 1), (2, 1), (15, 8), (20, 10), (60, 50), (100, 90), (600, 540), (2_592_000, 2_332_800)]
)
def test_fair_seconds__lack_a_tenth_or_ten_seconds_and_never_more_than_half(paid: int, least: int) -> None:
    assert sandbox.fair_seconds(paid) == least


@pytest.mark.parametrize(
    ("tries", "seconds", "least"), [(1, 22.0, 10), (1, 21.0, 10), (1, 20.9, 1), (1, 5.0, 1), (2, 22.0, 1)]
)
def test_least_seconds__machine_that_is_late_itself__takes_its_chance(
    jobs: Jobs, tries: int, seconds: float, least: int
) -> None:
    assert sandbox.least_seconds(Task(KEY, jobs.terms(jobs.spec("env")), seconds, 1.0, tries)) == least


# ---- the run ----


def run(
    jobs: Jobs, folder: Folder, runtime: Any, *, left: float = 60, stop: threading.Event | None = None
) -> RunResult:
    spec = jobs.spec("env")
    made = request(jobs.terms(spec), spec, folder, left)
    return sandbox.run(runtime, made, spec.runtime_seconds, progress=Progress(), stop=stop or threading.Event())


@pytest.mark.parametrize("status", [RunStatus.OK, RunStatus.EXIT, RunStatus.TRAP, RunStatus.OOM, RunStatus.TIMEOUT])
def test_run__end_of_the_program__is_a_result(jobs: Jobs, folder: Folder, status: RunStatus) -> None:
    assert run(jobs, folder, Scripted(result=RunResult(status))).status is status


def test_run__broken_sandbox__says_nothing_about_the_job(jobs: Jobs, folder: Folder) -> None:
    with pytest.raises(Broken, match="gone"):
        run(jobs, folder, Scripted(result=RunResult(RunStatus.BROKEN, "gone")))


def test_run__image_gone_meanwhile__is_a_decline(jobs: Jobs, folder: Folder) -> None:
    with pytest.raises(Refused) as refused:
        run(jobs, folder, Scripted(result=RunResult(RunStatus.IMAGE_MISSING)))
    assert refused.value.outcome is Outcome.IMAGE_MISSING


def test_run__time_out_of_a_run_cut_short__is_a_result_that_says_what_it_had(jobs: Jobs, folder: Folder) -> None:
    """Profit: who brings his data a little late and never ends would hold a slot for the whole lease, unpaid."""
    late = Scripted(result=RunResult(RunStatus.TIMEOUT, "not done after 19 s"))
    cut = run(jobs, folder, late, left=19.5)
    assert cut.status is RunStatus.TIMEOUT
    assert cut.detail == "not done after 19 s: it began late, and 19 of 20 s were left"
    assert run(jobs, folder, late, left=60).detail == "not done after 19 s"
    with pytest.raises(Refused, match="9 of 20 s were left"):
        spec = jobs.spec("env")
        tried_again = Task(KEY, jobs.terms(spec), 10, 1, 2)
        made = sandbox.request_for(tried_again, spec, folder, label="", gpus=(), until=time.monotonic() + 9.5)
        sandbox.run(late, made, 20, progress=Progress(), stop=threading.Event())
    # Fuel does not depend on the time: a guest that burnt all of it had what it paid for.
    spent = Scripted(result=RunResult(RunStatus.OUT_OF_FUEL))
    assert run(jobs, folder, spent, left=19.5).status is RunStatus.OUT_OF_FUEL


def test_run__stopped_meanwhile__is_no_result(jobs: Jobs, folder: Folder) -> None:
    stop = threading.Event()
    with pytest.raises(Stopped):
        run(jobs, folder, Scripted(sets=stop), stop=stop)
    with pytest.raises(Stopped):
        run(jobs, folder, Scripted(result=RunResult(RunStatus.CANCELLED)))


def test_run__real_module__ends_by_itself(jobs: Jobs, folder: Folder) -> None:
    for path in (folder.job, folder.inputs, folder.outputs):
        path.mkdir()
    jobs.store.fetch(jobs.module.cid, folder.module)
    result = run(jobs, folder, WasmRuntime(folder.path))
    assert result.status is RunStatus.OK
    assert b"EPOCHS=3" in result.stdout
