"""Stage two: prepare a runtime, bound a run by the spec and by the time left, run it, and name its end honestly.

Source: worker.md.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import Final

from hearth.jobfile import FUEL_PER_SECOND, ResolvedSpec
from hearth.jobfile.model import MAX_RUNTIME
from hearth.protocol.types import Billing, Outcome
from worker.attempt.folder import Folder
from worker.attempt.results import OUTCOMES
from worker.attempt.task import Broken, GpuRefused, Progress, Refused, Stopped, Task, TooLate
from worker.gpu.port import Device
from worker.runtimes.base import OutputRule, RunRequest, RunResult, RunStatus, Runtime, SandboxLimits

MAY_LACK: Final = 10
"""Seconds that a run may lack of those that its terms pay for, where a tenth of them is less."""


def prepare(
    spec: ResolvedSpec,
    folder: Folder,
    runtimes: Mapping[str, Runtime],
    *,
    until: float,
    progress: Progress,
    stop: threading.Event,
    kept: ExitStack,
) -> Runtime:
    """Return a spec's runtime once its module or image is here, where it is `kept`.

    Raises Refused (TooLate past `until`), Broken, Stopped.
    """
    runtime = runtimes.get(spec.runtime)
    if runtime is None:
        raise Refused(Outcome.IMAGE_MISSING, f"this worker does not run {spec.runtime}")
    progress.phase = "preparing"
    target = str(folder.module) if spec.module else spec.image
    kept.enter_context(runtime.keeping(target))
    _heed(runtime.prepare(target, until, stop), until, stop)
    return runtime


def inspect(runtime: Runtime, request: RunRequest, *, progress: Progress, stop: threading.Event) -> None:
    """See that a run would not be given back, before anything of the job's runs.

    Raises Refused (TooLate past the time of the request), Broken, Stopped.
    """
    progress.phase = "looking at the program"
    _heed(runtime.inspect(request, stop), request.until, stop)


def _heed(refusal: RunResult | None, until: float, stop: threading.Event) -> None:
    """Raise what a runtime says against a run, which was asked until a time of `time.monotonic`."""
    # A worker that is told to stop here has nothing against the job: the next process runs it.
    if stop.is_set():
        raise Stopped
    if refusal is None:
        return
    if refusal.status is RunStatus.BROKEN:
        raise Broken(refusal.detail)
    if time.monotonic() >= until:
        raise TooLate(refusal.detail)
    outcome = OUTCOMES.get(refusal.status, Outcome.BAD_INPUT)
    raise Refused(Outcome.BAD_INPUT if outcome.is_result else outcome, refusal.detail)


def fair_seconds(paid: int) -> int:
    """Return how many of the seconds that its terms pay for a run must have had for its time-out to be a result.

    What it may lack is a tenth of them or ten seconds, whichever is more, and never more than half.
    """
    return paid - max(paid // 10, min(paid // 2, MAY_LACK))


def least_seconds(task: Task) -> int:
    """Return how many seconds must be left for a run of this task to be begun.

    Where the job's data or module brings the delay, as many as make it a result, however it ends: else one that never
    ends would hold its slot to the end of the lease, unpaid. Where this machine was late itself, it takes its chance.
    """
    paid = task.paid
    late = task.tries > 1 or task.seconds - task.margin < paid
    return 1 if late else fair_seconds(paid)


def request_for(
    task: Task, spec: ResolvedSpec, folder: Folder, *, label: str, gpus: tuple[Device, ...], until: float
) -> RunRequest:
    """Return the run of a task: what the spec asks, for the seconds paid or those left until a time, if fewer.

    `label` starts the sandbox's name. Raises Refused where fewer are left than a run must have.
    """
    paid = task.paid
    seconds, least = int(min(paid, until - time.monotonic())), least_seconds(task)
    if seconds < least:
        left = f"{max(0, seconds)} of {paid} s are left, and a run has {least} at least"
        raise Refused(Outcome.BAD_INPUT, f"the inputs came too late to run: {left}")
    request = inspection_for(task, spec, folder, label=label, until=until)
    limits = replace(request.limits, wall_seconds=seconds)
    return replace(request, limits=limits, gpus=gpus, least_seconds=least)


def inspection_for(task: Task, spec: ResolvedSpec, folder: Folder, *, label: str, until: float) -> RunRequest:
    """Return the run of a task as if it had all the seconds paid, and without GPUs: what there is to look at before.

    The look ends at `until`, a time of `time.monotonic`.
    """
    key, terms = task.key, task.terms
    return RunRequest(
        unit=f"{label}{key.job.hex()[:12]}-{key.index}-{key.attempts}",
        command=tuple(spec.command),
        job_dir=folder.job,
        in_dir=folder.inputs,
        out_dir=folder.outputs,
        volume=folder.volume,
        limits=SandboxLimits(
            wall_seconds=task.paid,
            memory_bytes=spec.resources.memory_mib << 20,
            cpus=spec.resources.cpus,
            out_bytes=spec.output_bytes,
            fuel=terms.max_seconds * FUEL_PER_SECOND if terms.billing == Billing.FUEL else None,
            most_seconds=MAX_RUNTIME if terms.billing == Billing.METERED else 0,
        ),
        module=folder.module if spec.module else None,
        image=spec.image or None,
        env=dict(spec.env),
        outputs=tuple(OutputRule(o.path, o.required, o.max_size) for o in spec.outputs),
        index=key.index,
        units=spec.units,
        # The same for every attempt and node, so that a seeded program gives the same result everywhere.
        seed=hashlib.sha256(b"hearth seed" + terms.spec + key.index.to_bytes(4, "big")).digest(),
        until=until,
        least_seconds=0,
    )


NOTICED: Final = "the submitter cancelled it: this is what there was when its notice ended"


def run(
    runtime: Runtime,
    request: RunRequest,
    paid_seconds: int,
    *,
    progress: Progress,
    stop: threading.Event,
    halt: threading.Event | None = None,
) -> RunResult:
    """Run a unit to an end that is a result, good or bad. Raises Refused, Broken, Stopped.

    The run's own deadline is in its request; `paid_seconds` are those that the terms pay for. `halt` is set where
    `stop` is, and where the run is to end and what it has is to count: it is then CANCELLED.
    """
    progress.phase, progress.done, progress.total = "running", 0, request.limits.wall_seconds
    result = runtime.run(request, halt or stop)
    seconds, paid_seconds = request.wall_seconds, paid_seconds + request.bought.seconds
    if stop.is_set():
        raise Stopped
    if result.status is RunStatus.CANCELLED:
        if halt is None:
            raise Stopped
        return replace(result, detail=NOTICED)
    if result.status is RunStatus.GPU_REFUSED:
        raise GpuRefused(result.detail)
    if result.status is RunStatus.BROKEN:
        raise Broken(result.detail)
    outcome = OUTCOMES[result.status]
    if not outcome.is_result:
        raise Refused(outcome, result.detail)
    if result.status is RunStatus.TIMEOUT and seconds < paid_seconds:
        late = f"it began late, and {seconds} of {paid_seconds} s were left"
        if seconds < fair_seconds(paid_seconds):
            # Calling that the program's time-out would be a lie.
            raise Refused(Outcome.BAD_INPUT, late)
        return replace(result, detail=f"{result.detail}: {late}")
    return result
