"""One attempt at a unit: from its task to a result that is stored, stage after stage.

What an earlier process left in the attempt's folder is used again where it is whole. Source: SPEC section "Worker".
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import structlog

from hearth.base.errors import UnsafePath
from hearth.protocol.types import NodeId
from hearth.storage.stores import Store
from hearth.storage.unixfs import Entry
from worker.attempt import results, sandbox, upload
from worker.attempt.fetch import Fetch
from worker.attempt.folder import Folder, Folders
from worker.attempt.intake import Intake
from worker.attempt.results import Kept
from worker.attempt.sandbox import GpuPool
from worker.attempt.task import Bounds, Task
from worker.attempt.underway import Running, Underway
from worker.journal import AttemptJournal, Moment
from worker.runtimes.base import RunRequest, RunResult, RunStatus, Runtime, check_outputs

log = structlog.get_logger("worker.attempt")


@dataclass(slots=True, kw_only=True)
class Means:
    """What every attempt of a worker works with.

    `label` starts the name of every sandbox of this worker, so that a restart finds what an earlier process left.
    `keep_seconds` is how long results stay after their lease has ended, which the report promises. `stores_here` says
    that results are stored on the disk of the folders; `machine` is what reports say of this machine.
    """

    journal: AttemptJournal
    store: Store
    folders: Folders
    runtimes: Mapping[str, Runtime]
    node: NodeId
    label: str
    tiers: Mapping[str, int]
    bounds: Bounds
    keep_seconds: int
    gpus: GpuPool = field(default_factory=GpuPool)
    stores_here: bool = True
    machine: Mapping[str, Any] = field(default_factory=dict)


class Attempt:
    """One attempt at a task, and how far it is (`work`). Leaves by Stopped, Refused, Broken, HearthError or OSError."""

    def __init__(self, means: Means, task: Task, work: Running, underway: Underway, intake: Intake) -> None:
        self._means = means
        self._task = task
        self._work = work
        self._underway = underway
        self._intake = intake
        self._folder = means.folders.of(task.key)

    def carry_out(self) -> Kept:
        """Take the attempt to a result that the store keeps, from where an earlier process left it, and return it."""
        means, task, work, folder = self._means, self._task, self._work, self._folder
        deadline = time.monotonic() + task.seconds
        # What is not stored by then is given back, while a decline can still be mined.
        until = deadline - task.margin / 4
        kept = folder.read_kept()
        stored = kept is not None and upload.is_stored(folder.read_pins(), means.store)
        if kept is None or not (stored or folder.holds(kept, work.stop, until)):
            stored = False
            folder.renew()
            found = kept = self._run_unit(until=deadline - task.margin, last=until)
            self._underway.when_room(lambda: folder.write_kept(found), until, work)
        means.journal.reach(task.key, Moment.RESULT, f"outcome {kept.outcome.name}")
        if not stored:
            if means.stores_here:
                outputs = kept.result.get("outputs") or {}
                self._underway.await_room(int(outputs.get("size", 0)), until, work)
            work.phase, work.takes_room = "uploading", means.stores_here
            pins = upload.upload(kept, folder, means.store, until=until, stop=work.stop, tell=self._tell)
            self._underway.when_room(lambda: folder.write_pins(pins), until, work)
        work.takes_room = False
        means.journal.reach(task.key, Moment.PINNED)
        return kept

    def _tell(self, refusal: str) -> None:
        """Say once why the store takes no result. Whether it takes others is for a trial to find."""
        if refusal and not self._work.refusal:
            log.warning("the store does not take a result", attempt=str(self._task.key), why=refusal)
            self._intake.tell(refusal)
        elif not refusal:
            self._intake.tell("")
        self._work.refusal = refusal

    def _run_unit(self, *, until: float, last: float) -> Kept:
        """Fetch into an empty folder and run, until a time of `time.monotonic`, and judge, until the `last`; nothing is
        stored yet."""
        means, task, work, folder = self._means, self._task, self._work, self._folder
        begin = until - sandbox.least_seconds(task)
        fetch = Fetch(means.store, work, begin, work.stop, means.bounds)
        spec = fetch.spec(task.terms, means.tiers)
        self._underway.await_room(spec.download_bytes, fetch.until, work)
        work.takes_room = True
        means.folders.lend_volume(folder)
        fetch.data(spec, folder)
        means.journal.reach(task.key, Moment.FETCHED, f"{work.done} bytes")
        runtime = sandbox.prepare(spec, folder, means.runtimes, until=begin, progress=work, stop=work.stop)
        with means.gpus.lent(spec.resources.gpus) as gpus:
            request = sandbox.request_for(task, spec, folder, label=means.label, gpus=gpus, until=until)
            began = time.time()
            means.journal.reach(task.key, Moment.STARTED, request.unit)
            work.takes_room = folder.volume is None
            run = sandbox.run(runtime, request, task.terms.max_seconds, progress=work, stop=work.stop)
        work.takes_room = False
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
            machine=means.machine,
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
