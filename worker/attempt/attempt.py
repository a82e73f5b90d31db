"""One attempt at a unit: from its task to a result that is stored, stage after stage.

What an earlier process left in the attempt's folder is used again where it is whole. Source: worker.md.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import structlog

from hearth.base.errors import UnsafePath
from hearth.jobfile import ResolvedResources, ResolvedSpec, exact_tier
from hearth.protocol.types import NodeId
from hearth.storage.stores import LastResort, ProviderGateways, Store
from hearth.storage.unixfs import Entry
from worker.attempt import results, sandbox, upload
from worker.attempt.checkpoints import Checkpoints, Tally
from worker.attempt.fetch import Fetch
from worker.attempt.folder import Folder, Folders
from worker.attempt.intake import Intake
from worker.attempt.results import Kept
from worker.attempt.resume import Resume
from worker.attempt.task import Bounds, Broken, GpuRefused, OutputsLate, Task
from worker.attempt.underway import Halt, Running, Underway
from worker.decide import MAX_TRIES
from worker.gpu.pool import Lent, Pool
from worker.journal import AttemptJournal, Moment
from worker.runtimes.base import RunRequest, RunResult, RunStatus, Runtime, check_outputs, sandbox_bytes

log = structlog.get_logger("worker.attempt")


@dataclass(slots=True, kw_only=True)
class Means:
    """What every attempt of a worker works with.

    `label` starts the name of every sandbox of this worker, so that a restart finds what an earlier process left.
    `keep_seconds` is how long results stay after their lease has ended, which the report promises. `stores_here` says
    that results are stored on the disk of the folders; `machine` is what reports say of this machine, beside the
    GPUs that an attempt had. `gateways` are
    those that a node names for what it made, of which this machine's own are meant on a `local` chain alone.
    """

    journal: AttemptJournal
    store: Store
    folders: Folders
    runtimes: Mapping[str, Runtime]
    node: NodeId
    label: str
    bounds: Bounds
    keep_seconds: int
    gpus: Pool = field(default_factory=Pool)
    tally: Tally = field(default_factory=Tally)
    stores_here: bool = True
    gateways: Callable[[NodeId], Sequence[str]] = lambda node: ()
    local: bool = False
    machine: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Gathered:
    """What an attempt needs, once it lies in its folder whole: `size` bytes were fetched."""

    spec: ResolvedSpec
    runtime: Runtime
    size: int


class Attempt:
    """One attempt at a task, and how far it is (`work`). Leaves by Stopped, Refused, Broken, NoGpuError, HearthError or
    OSError."""

    def __init__(self, means: Means, task: Task, work: Running, underway: Underway, intake: Intake) -> None:
        self._means = means
        self._task = task
        self._work = work
        self._underway = underway
        self._intake = intake
        self._folder = means.folders.of(task.key)

    def gather_ahead(self, kept: ExitStack) -> Gathered | None:
        """Bring all here that the attempt needs, in the seconds of its task, before its lease is taken.

        Nothing of the job's runs. What was brought lies here until the `kept` context ends; it is None where an earlier
        process left a result that is stored. Raises TooLate where it took too long, and Refused where a run would be
        given back.
        """
        task, work = self._task, self._work
        until = time.monotonic() + task.seconds
        if self._folder.read_kept() is not None and upload.is_stored(self._folder.read_pins(), self._means.store):
            return None
        found = self._gather(until, kept)
        self._means.gpus.check(found.spec.resources.gpus, exact_tier(found.spec.resources))
        request = sandbox.inspection_for(task, found.spec, self._folder, label=self._means.label, until=until)
        sandbox.inspect(found.runtime, request, progress=work, stop=work.stop)
        self._resume(found.spec, until)
        return found

    def carry_out(self, found: Gathered | None = None) -> Kept:
        """Take the attempt to a result that the store keeps, from where an earlier process left it, and return it; what
        was `found` before the lease was taken is not fetched again."""
        means, task, work, folder = self._means, self._task, self._work, self._folder
        work.topped, work.margin = task.topped, task.margin
        begun = time.monotonic() + task.seconds

        def deadline() -> float:
            end = begun + work.bought.seconds
            return end if work.notice is None else min(end, work.notice.end)

        until = deadline() - self._margin / 4
        kept = folder.read_kept()
        stored = kept is not None and upload.is_stored(folder.read_pins(), means.store)
        if kept is None or not (stored or folder.holds(kept, work.stop, until)):
            stored = False
            with ExitStack() as here:
                begin = min(begun - task.margin - sandbox.least_seconds(task), time.monotonic() + task.begun)
                found = found or self._gather(begin, here)
                self._resume(found.spec, begin)
                made = kept = self._run_unit(found, deadline)
            until = deadline() - self._margin / 4
            self._underway.when_room(lambda: folder.write_kept(made), until, work)
        means.journal.reach(task.key, Moment.RESULT, f"outcome {kept.outcome.name}")
        if not stored:
            if means.stores_here:
                outputs = kept.result.get("outputs") or {}
                self._underway.await_room(int(outputs.get("size", 0)), until, work)
            work.phase, work.takes_room = "uploading", means.stores_here
            # Outputs that take longer are left out of the result: they are the submitter's to choose, and the run is
            # done.
            kept, pins = self._upload(kept, deadline() - self._margin / 2, until)
            self._underway.when_room(lambda: folder.write_pins(pins), until, work)
        work.takes_room = False
        means.journal.reach(task.key, Moment.PINNED)
        return kept

    @property
    def _margin(self) -> float:
        """Return the seconds for upload and submit, at the end of the lease or of its notice."""
        return self._task.margin if self._work.notice is None else self._work.notice.margin

    def _upload(self, kept: Kept, outputs_until: float, until: float) -> tuple[Kept, list[str]]:
        """Store a result, after `outputs_until` without its outputs, and return what is stored and its CIDs."""
        store, folder, stop = self._means.store, self._folder, self._work.stop
        if kept.outputs is not None:
            try:
                return kept, upload.upload(kept, folder, store, until=outputs_until, stop=stop, tell=self._tell)
            except OutputsLate as late:
                without = kept = results.drop_outputs(kept, late.why)
                self._underway.when_room(lambda: folder.write_kept(without), until, self._work)
        return kept, upload.upload(kept, folder, store, until=until, stop=stop, tell=self._tell)

    def _tell(self, refusal: str) -> None:
        """Say once why the store takes no result. Whether it takes others is for a trial to find."""
        if refusal and not self._work.refusal:
            log.warning("the store does not take a result", attempt=str(self._task.key), why=refusal)
            self._intake.tell(refusal)
        elif not refusal:
            self._intake.tell("")
        self._work.refusal = refusal

    def _gather(self, until: float, kept: ExitStack) -> Gathered:
        """Fetch into an empty folder, and make the runtime ready, until a time of `time.monotonic`."""
        means, task, work, folder = self._means, self._task, self._work, self._folder
        folder.renew()
        fetch = Fetch(means.store, work, until, work.stop, means.bounds)
        spec = fetch.spec(task.terms)
        self._underway.await_claim(self._claim(spec), until, work, again=task.tries > 1)
        work.takes_room = True
        means.folders.lend_volume(folder)
        fetch.data(spec, folder)
        size = work.done
        runtime = sandbox.prepare(spec, folder, means.runtimes, until=until, progress=work, stop=work.stop, kept=kept)
        return Gathered(spec, runtime, size)

    def _claim(self, spec: ResolvedSpec) -> int:
        """Return the bytes of the home's disk that a job may take: what it brings, its outputs unless they lie on a
        volume, and what its sandbox keeps besides."""
        return (
            spec.download_bytes
            + sandbox_bytes(spec.runtime)
            + (0 if self._means.folders.volumes else spec.output_bytes)
        )

    def _resume(self, spec: ResolvedSpec, until: float) -> None:
        """Let the first state that can be had of those which the task names lie where the program looks for it, and no
        other. Each has an equal share of the time that is left: what is nowhere hides none of those after it."""
        means, work, states = self._means, self._work, self._task.states
        if spec.checkpoint is None or work.resumes in ([one.attempt for one in states] or [0]):
            return
        # What lies on a volume takes no room of the home's.
        resume = Resume(spec, self._folder, None if self._folder.volume else self._underway.check_spare)
        resume.clear()
        work.resumes = 0
        for tried, state in enumerate(states):
            now = time.monotonic()
            share = now + (until - now) / (len(states) - tried)
            store = self._behind(state.node, share)
            if resume.place(state, Fetch(store, work, share, work.stop, means.bounds)):
                work.resumes = state.attempt
                return
            means.tally.unusable += 1

    def _behind(self, node: NodeId, until: float) -> Store:
        """Return the stores, and as the last resort what a node names, until a time of `time.monotonic`."""
        means = self._means
        urls = means.gateways(node)
        if not urls:
            return means.store
        gateways = ProviderGateways(f"node {node}", urls, local=means.local, until=until)
        # Stores that search for what they have not would else take all of the time.
        return LastResort(means.store, lambda: gateways, first_share=0.5)

    def _run_unit(self, found: Gathered, deadline: Callable[[], float]) -> Kept:
        """Run until the margin before a deadline of `time.monotonic`, and judge; nothing is stored yet."""
        means, task, work, folder = self._means, self._task, self._work, self._folder
        spec = found.spec
        means.journal.reach(task.key, Moment.FETCHED, f"{found.size} bytes")
        with self._lent(spec.resources) as lent:
            until = deadline() - task.margin - work.bought.seconds
            request = sandbox.request_for(task, spec, folder, label=means.label, gpus=lent.devices, until=until)
            request = replace(request, bought=work.bought, room=work.room)
            began = time.time()
            means.journal.reach(task.key, Moment.STARTED, request.unit)
            work.takes_room, work.pressed = folder.volume is None, False
            with self._checkpoints(found, request, deadline):
                run = sandbox.run(found.runtime, request, task.paid, progress=work, stop=work.stop, halt=Halt(work))
            # What a program makes of a GPU that fails is not its own end, and nobody pays for it.
            if not run.ok and (why := lent.look()):
                raise Broken(why)
        if run.status is RunStatus.OUTPUT_OVER_CAP:
            folder.empty_outputs()  # they are not stored, and others wait for the room
        lacked = self._underway.lacked_room(work)
        work.takes_room, work.claim = False, 0
        # Perhaps the disk refused what its job may leave. It is tried again, but not for ever, and only where there is
        # time: a program that fails by itself would else be run for nothing until its lease is lost.
        again = task.tries < MAX_TRIES and deadline() - self._margin - time.monotonic() >= task.paid
        if run.status is RunStatus.EXIT and lacked and again:
            raise Broken("it failed while this machine's disk was full")
        last = deadline() - self._margin / 2
        logs = self._underway.when_room(lambda: folder.write_logs(run.stdout, run.stderr), last, work)
        work.phase = "hashing the outputs"
        run, outputs = _name_outputs(request, run, folder, work.stop, last)
        ended = time.time()
        return results.conclude(
            task,
            run,
            node=means.node,
            outputs=outputs,
            logs=logs,
            began=began,
            ended=ended,
            kept_until=means.journal.clock() + means.keep_seconds,
            machine={**means.machine, "gpus": lent.facts()},
            used_as_closed=0 if work.notice is None else work.notice.used,
        )

    @contextmanager
    def _lent(self, need: ResolvedResources) -> Iterator[Lent]:
        """Lend GPUs for a run, which ends where one of them fails. Raises NoGpuError where fewer are free and well."""
        try:
            with self._means.gpus.lent(need.gpus, exact_tier(need)) as lent:
                self._work.lent = lent
                try:
                    yield lent
                except GpuRefused as refused:
                    lent.refuse(str(refused))
                    raise
        finally:
            self._work.lent = None

    def _checkpoints(
        self, found: Gathered, request: RunRequest, deadline: Callable[[], float]
    ) -> AbstractContextManager[None]:
        """Return what makes the checkpoints of a run, if its job has any, until the margin before a deadline."""
        means, task = self._means, self._task
        if found.spec.checkpoint is None:
            return nullcontext()
        return Checkpoints(
            wanted=found.spec.checkpoint,
            task=task,
            runtime=found.runtime,
            request=request,
            folder=self._folder,
            folders=means.folders,
            store=means.store,
            journal=means.journal,
            underway=self._underway,
            until=lambda: deadline() - task.margin,
            tally=means.tally,
            on_change=self._intake.on_change,
        )


def _name_outputs(
    request: RunRequest, run: RunResult, folder: Folder, stop: threading.Event, until: float
) -> tuple[RunResult, Entry | None]:
    """Return a run as its outputs leave it, and their CID and size, None where they are not stored.

    Whatever the run came to, what its spec does not allow is not stored: its submitter would not fetch it. A runtime
    has checked the outputs of a run that ended well. Raises what `Folder.name_outputs` raises, but UnsafePath.
    """
    if run.status is RunStatus.OUTPUT_OVER_CAP:
        return run, None
    if not run.ok:
        rules = tuple(replace(rule, required=False) for rule in request.outputs)
        _, why = check_outputs(request.out_dir, rules, request.limits.out_bytes)
        if why:
            return results.without_outputs(run, why), None
    try:
        return run, folder.name_outputs(stop, until)
    except UnsafePath as refused:
        return results.without_outputs(run, f"output refused: {refused.message}"), None
    except OutputsLate as late:
        return results.without_outputs(run, late.why), None
