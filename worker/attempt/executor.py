"""Carry out attempts in threads, stage after stage, and write the journal's steps between them.

Each attempt runs in a thread of its own, in a folder named by (job, index, attempts) below the worker's home. Nothing
here reads or writes the chain. An attempt ends in one of four ways, which the journal keeps: DONE (a result, good or
bad, is stored and can be submitted), REFUSED (the job cannot be run, whoever tries: decline), BROKEN (this machine
failed: try again), or stopped because the lease is gone. Files are whole or absent: everything is written under a
temporary name, flushed and renamed, so that a crash at any point leaves what can be used again or what is swept away.
Source: SPEC section "Worker".
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import structlog

from hearth.base.errors import HearthError, StorageError
from hearth.protocol.types import JobId, NodeId
from hearth.storage import canonical
from hearth.storage.stores import Store
from worker.attempt import results, sandbox, upload
from worker.attempt.fetch import Fetch
from worker.attempt.folder import Folder, Folders
from worker.attempt.results import Kept
from worker.attempt.sandbox import GpuPool
from worker.attempt.task import Bounds, Broken, Progress, Refused, Stopped, Task
from worker.decide import LeaseKey
from worker.journal import AttemptJournal, Moment, Phase
from worker.runtimes.base import RunStatus, Runtime

log = structlog.get_logger("worker.attempt")


@dataclass(slots=True, kw_only=True)
class Running(Progress):
    """An attempt under way: its progress, the local unix time of its start, and how it is told to stop."""

    key: LeaseKey
    started: float
    stop: threading.Event = field(default_factory=threading.Event)
    why: str = ""
    thread: threading.Thread | None = None


class Executor:
    """Carry out attempts in threads, and remember in the journal how they end.

    `label` starts the name of every sandbox of this worker, so that a restart finds what an earlier process left.
    `keep_seconds` is how long results stay after their lease has ended, which the report promises.
    """

    def __init__(
        self,
        *,
        journal: AttemptJournal,
        store: Store,
        home: Path,
        runtimes: Mapping[str, Runtime],
        node: NodeId,
        label: str,
        tiers: Mapping[str, int],
        bounds: Bounds,
        keep_seconds: int,
        gpus: Sequence[str] = (),
        machine: Mapping[str, Any] | None = None,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        self._folders = Folders(home / "jobs")
        self._journal = journal
        self._store = store
        self._runtimes = runtimes
        self._node = node
        self._label = label
        self._tiers = tiers
        self._bounds = bounds
        self._keep_seconds = keep_seconds
        self._gpus = GpuPool(gpus)
        self._machine = dict(machine or {})
        self.on_change = on_change
        self._work: dict[LeaseKey, Running] = {}
        self._lock = threading.Lock()
        self._given_back: dict[JobId, str] = {}
        self.faults = 0
        """Attempts that ended by an exception that no rule foresees, for the metrics."""

    # ---- for the loop ----

    def recover(self) -> list[str]:
        """Make the machine and the journal agree after a crash, before anything is decided; return what was done.

        Sandboxes that an earlier process left are killed by label. Attempts that were under way become BROKEN, which
        counts as a try: a job that takes the worker down each time is given back in the end. Finished attempts whose
        result the store lost are BROKEN too. Folders that the journal does not know are removed.
        """
        done: list[str] = []
        for name, runtime in self._runtimes.items():
            killed = runtime.sweep(self._label)
            if killed:
                done.append(f"killed {killed} {name} sandboxes of an earlier process")
        known: set[str] = set()
        for entry in self._journal.entries():
            known.add(str(entry.key))
            if entry.phase is Phase.WORKING:
                self._journal.finish(entry.key, Phase.BROKEN, detail="the worker stopped while it ran")
                done.append(f"{entry.key} was at {entry.moment.value}")
            elif entry.phase is Phase.DONE and not self._has_result(entry.result):
                self._journal.finish(entry.key, Phase.BROKEN, detail="the store lost the result")
                done.append(f"{entry.key} lost its result")
        return done + [f"removed {name}" for name in self._folders.remove_others(known)]

    def _has_result(self, digest: bytes) -> bool:
        """Say whether the store has a result; one that is down now is believed to have it."""
        try:
            return self._store.has(canonical.cid_of_digest(digest))
        except StorageError:
            return True

    def start(self, task: Task) -> None:
        """Start an attempt in a thread; one that runs already is left alone."""
        with self._lock:
            if task.key in self._work:
                return
            work = Running(key=task.key, started=time.time())
            self._work[task.key] = work
        self._journal.start(task.key, task.tries)
        # A daemon: nothing of a worker outlives it, and a stuck download cannot keep it alive.
        work.thread = threading.Thread(target=self._run, args=(task, work), name=f"attempt {task.key}", daemon=True)
        work.thread.start()

    def stop(self, key: LeaseKey, why: str) -> None:
        """Stop an attempt whose lease is gone; one that no thread carries out is simply over."""
        with self._lock:
            work = self._work.get(key)
        if work is None:
            self._journal.end(key, why)
            return
        work.why = why
        work.stop.set()

    def set_aside(self, key: LeaseKey, why: str) -> None:
        """Note that an attempt has ended on chain: its folder goes when it is old, its result stays until then."""
        self._journal.end(key, why)
        self._folders.of(key).drop_data()

    def sweep(self, before: float) -> int:
        """Forget attempts that ended before a local unix time, with their files and pins; return how many."""
        forgotten = self._journal.forget(before)
        for key in forgotten:
            folder = self._folders.of(key)
            for pin in folder.read_pins():
                if not self._folders.pinned_elsewhere(pin, folder):
                    upload.release(pin, self._store)
            folder.remove()
        return len(forgotten)

    def active(self) -> list[Running]:
        """List the attempts under way."""
        with self._lock:
            return list(self._work.values())

    def take_given_back(self) -> dict[JobId, str]:
        """Return the jobs of which a unit was given back since the last call, and why."""
        with self._lock:
            found, self._given_back = self._given_back, {}
        return found

    def close(self, timeout: float = 10.0) -> None:
        """Stop every attempt so that the next process starts it again, and wait for the threads."""
        for work in self.active():
            work.why = work.why or "the worker stops"
            work.stop.set()
        end = time.monotonic() + timeout
        for work in self.active():
            if work.thread is not None:
                work.thread.join(max(0.0, end - time.monotonic()))

    # ---- one attempt ----

    def _run(self, task: Task, work: Running) -> None:
        """Carry out one attempt and journal its end."""
        key = task.key
        try:
            self._attempt(task, work)
        except Stopped:
            self._journal.end(key, work.why or "stopped")
            self._folders.of(key).drop_data()
        except Refused as refused:
            self._refuse(task, refused)
        except (Broken, HearthError, OSError) as error:
            self._break(task, work, str(error))
        except Exception as error:  # the top of a thread: a fault here must not stop other attempts
            self.faults += 1
            log.exception("attempt failed by a fault of the worker", attempt=str(key))
            self._break(task, work, f"a fault of the worker: {error!r}")
        finally:
            with self._lock:
                self._work.pop(key, None)
            self.on_change()

    def _attempt(self, task: Task, work: Running) -> None:
        """Take one attempt to its result, from where an earlier process left it."""
        deadline = time.monotonic() + task.seconds
        folder = self._folders.of(task.key)
        kept = folder.read_kept()
        stored = kept is not None and upload.is_stored(folder.read_pins(), self._store)
        if kept is None or not (stored or folder.holds(kept, work.stop)):
            stored = False
            folder.renew()
            kept = self._run_unit(task, work, folder, deadline - task.margin)
            folder.write_kept(kept)
        self._journal.reach(task.key, Moment.RESULT, f"outcome {kept.outcome.name}")
        if not stored:
            work.phase = "uploading"
            folder.write_pins(upload.upload(kept, folder, self._store, until=deadline, stop=work.stop))
        self._journal.reach(task.key, Moment.PINNED)
        self._journal.finish(
            task.key,
            Phase.DONE,
            outcome=kept.outcome,
            result=canonical.digest(kept.result),
            report=canonical.digest(kept.report),
            used=kept.used,
            detail=str(kept.report.get("detail", "")),
        )

    def _run_unit(self, task: Task, work: Running, folder: Folder, until: float) -> Kept:
        """Fetch into an empty folder, run, and judge, until a time of `time.monotonic`; nothing is stored yet."""
        # Half of the run's time must be left when the data is here.
        fetch = Fetch(self._store, work, until - task.terms.max_seconds / 2, work.stop, self._bounds)
        spec = fetch.spec(task.terms, self._tiers)
        fetch.data(spec, folder)
        self._journal.reach(task.key, Moment.FETCHED, f"{work.done} bytes")
        runtime = sandbox.prepare(spec, folder, self._runtimes, until=until, progress=work, stop=work.stop)
        with self._gpus.lent(spec.resources.gpus) as gpus:
            request = sandbox.request_for(task, spec, folder, label=self._label, gpus=gpus, until=until)
            began = time.time()
            self._journal.reach(task.key, Moment.STARTED, request.unit)
            run = sandbox.run(runtime, request, task.terms.max_seconds, progress=work, stop=work.stop)
        logs = folder.write_logs(run.stdout, run.stderr)
        outputs = None if run.status is RunStatus.OUTPUT_OVER_CAP else folder.name_outputs(work.stop)
        ended = time.time()
        return results.conclude(
            task,
            run,
            node=self._node,
            outputs=outputs,
            logs=logs,
            began=began,
            ended=ended,
            kept_until=ended + self._keep_seconds,
            machine=self._machine,
        )

    def _refuse(self, task: Task, refused: Refused) -> None:
        """Note that the job cannot be run; the report is stored if the store can be had."""
        key, outcome, why = task.key, refused.outcome, refused.why
        log.warning("given back", attempt=str(key), outcome=outcome.name.lower(), why=why, inside=refused.inside)
        report = results.refusal_document(
            job=key.job, index=key.index, attempt=key.attempts, node=self._node, outcome=outcome, why=why
        )
        digest = canonical.digest(report)
        folder = self._folders.of(key)
        folder.drop_data()
        with suppress(StorageError):
            self._store.put_json(report)
            folder.write_pins([str(canonical.cid_of_digest(digest))])
        detail = f"{why} ({refused.inside})" if refused.inside else why
        self._journal.finish(key, Phase.REFUSED, outcome=outcome, report=digest, detail=detail)
        with self._lock:
            self._given_back[key.job] = why

    def _break(self, task: Task, work: Running, why: str) -> None:
        """Note that this machine failed, after a pause that lets an engine or a store come back. Files stay: perhaps
        only the upload has to be repeated."""
        work.phase = f"failed: {why}"
        work.stop.wait(min(30.0, 2.0**task.tries))
        self._journal.finish(task.key, Phase.BROKEN, detail=why)
