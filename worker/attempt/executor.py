"""Carry out attempts in threads, stage after stage, and write the journal's steps between them.

Each attempt runs in a thread of its own, in a folder named by (job, index, attempts) below the worker's home. Nothing
here reads or writes the chain. An attempt ends in one of four ways, which the journal keeps: DONE (a result, good or
bad, is stored and can be submitted), REFUSED (the job cannot be run, whoever tries: decline), BROKEN (this machine
failed: try again), or stopped because the lease is gone. Files are whole or absent: everything is written under a
temporary name, flushed and renamed, so that a crash at any point leaves what can be used again or what is swept away.
While attempts are under way a guard looks at the disk: below its floor, what nobody needs any more is deleted first,
then the attempt that takes the most room is stopped, and tried again when there is room. Source: SPEC section "Worker".
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, TypeVar

import structlog

from hearth.base.errors import HearthError, StorageError, UnsafePath
from hearth.base.files import NO_ROOM
from hearth.protocol.types import JobId, NodeId
from hearth.storage import canonical
from hearth.storage.stores import Store
from hearth.storage.unixfs import Entry
from worker.attempt import results, sandbox, upload
from worker.attempt.fetch import Fetch
from worker.attempt.folder import Folder, Folders
from worker.attempt.results import Kept
from worker.attempt.sandbox import GpuPool
from worker.attempt.task import RETRY_SECONDS, Bounds, Broken, Progress, Refused, Stopped, Task, TooLate
from worker.decide import LeaseKey
from worker.disk import Disk
from worker.journal import AttemptJournal, Moment, Phase
from worker.runtimes.base import RunRequest, RunResult, RunStatus, Runtime, check_outputs

log = structlog.get_logger("worker.attempt")

T = TypeVar("T")

GUARD_SECONDS: Final = 0.25
"""How often the disk is looked at."""


@dataclass(slots=True, kw_only=True)
class Running(Progress):
    """An attempt under way: its progress, the local unix time of its start, and how it is told to stop."""

    key: LeaseKey
    started: float
    stop: threading.Event = field(default_factory=threading.Event)
    why: str = ""
    takes_room: bool = False
    """Whether it may take room on the home's disk now: it fetches, runs without a volume, or stores."""
    starved: bool = False
    """Whether it was stopped for the room that it takes."""
    thread: threading.Thread | None = None


class Executor:
    """Carry out attempts in threads, and remember in the journal how they end.

    `label` starts the name of every sandbox of this worker, so that a restart finds what an earlier process left.
    `keep_seconds` is how long results stay after their lease has ended, which the report promises. `volumes` are lent
    to attempts for /out, each to one at a time; `disk` is guarded (None: it is not), and `stores_here` says that
    results are stored on it.
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
        volumes: Sequence[Path] = (),
        disk: Disk | None = None,
        stores_here: bool = True,
        machine: Mapping[str, Any] | None = None,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        self._folders = folders_in(home, volumes)
        self._disk = disk or Disk(home, 0)
        self._stores_here = stores_here
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
        self._closing = threading.Event()
        self._guarded = False
        self._given_back: dict[JobId, str] = {}
        self.faults = 0
        """Attempts that ended by an exception that no rule foresees, for the metrics."""
        self.starved = 0
        """Attempts that were stopped because the disk was full, for the metrics."""

    # ---- for the loop ----

    def recover(self) -> list[str]:
        """Make the machine and the journal agree after a crash, before anything is decided; return what was done.

        Room is made before the journal is written. Attempts that were under way become BROKEN, which counts as a try: a
        job that takes the worker down each time is given back in the end. Finished attempts whose result the store lost
        are BROKEN too. Folders that the journal does not know are removed. Raises StorageError JOURNAL; it may be
        called again then.
        """
        done = make_room(self._folders, self._runtimes, self._label)
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
            guard, self._guarded = not self._guarded, True
        if guard:
            threading.Thread(target=self._guard, name="disk guard", daemon=True).start()
        try:
            self._journal.start(task.key, task.tries)
        except StorageError:
            with self._lock:
                del self._work[task.key]
            raise
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

    def allow(self, bounds: Bounds, keep_seconds: int) -> None:
        """Let attempts that begin from now on bring and leave this much, and keep results that long."""
        self._bounds, self._keep_seconds = bounds, keep_seconds

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
        self._closing.set()
        for work in self.active():
            work.why = work.why or "the worker stops"
            work.stop.set()
        end = time.monotonic() + timeout
        for work in self.active():
            if work.thread is not None:
                work.thread.join(max(0.0, end - time.monotonic()))

    # ---- the disk ----

    def _guard(self) -> None:
        """Look at the disk while attempts are under way."""
        while True:
            with self._lock:
                if not self._work:
                    self._guarded = False
                    return
            try:
                if self._disk.full:
                    self._relieve()
            except OSError as error:  # a disk that fails is what it looks at
                log.warning("the disk cannot be looked at", why=str(error))
            time.sleep(GUARD_SECONDS)

    def _relieve(self) -> None:
        """Make room: delete what no attempt needs; where there is nothing, stop the attempt that takes the most.

        One at a time: what it gives back may be enough. An attempt that only waits, or writes to a volume, is left
        alone, since its end would give nothing back.
        """
        with self._lock:
            running = list(self._work.values())
            # Under the lock, so that no attempt begins in a folder that is being emptied.
            freed = self._folders.free_dead({str(work.key) for work in running})
        if freed:
            log.warning("disk full: deleted data that no attempt needs", attempts=freed, disk=self._disk.in_words())
            return
        if any(work.starved for work in running):
            return
        takers = [work for work in running if work.takes_room and not work.stop.is_set()]
        if takers:
            most = max(takers, key=lambda work: self._folders.of(work.key).taken)
            most.why = f"this machine's disk was full: {self._disk.in_words()}"
            most.starved = True
            most.stop.set()
            self.starved += 1
            log.warning("disk full: attempt stopped, it is tried again", attempt=str(most.key), why=most.why)

    def _await_room(self, size: int, until: float, work: Running) -> None:
        """Wait until `size` bytes can be fetched. Raises TooLate past a time of `time.monotonic`, Stopped."""
        work.phase = "waiting for room on the disk"
        while not self._disk.has(size):
            if time.monotonic() >= until:
                raise TooLate(f"this machine had no room for it in time: {self._disk.in_words()}")
            if work.stop.wait(RETRY_SECONDS):
                raise Stopped

    def _when_room(self, write: Callable[[], T], until: float, work: Running) -> T:
        """Write what a run left; where the disk is full, wait for room. Raises OSError past `until`, Stopped."""
        while True:
            try:
                return write()
            except OSError as error:
                if error.errno not in NO_ROOM or time.monotonic() >= until:
                    raise
                work.phase = "waiting for room on the disk"
            if work.stop.wait(RETRY_SECONDS):
                raise Stopped

    def _note(self, write: Callable[[], None]) -> None:
        """Write the end of an attempt into the journal, for as long as the disk takes nothing: it would never end else.

        Where the worker stops meanwhile, the next process finds the attempt as it stood.
        """
        while True:
            try:
                return write()
            except StorageError as error:
                log.warning("the end of an attempt is not written yet", why=error.message)
            if self._closing.wait(RETRY_SECONDS):
                return

    # ---- one attempt ----

    def _run(self, task: Task, work: Running) -> None:
        """Carry out one attempt and journal its end."""
        key = task.key
        try:
            self._attempt(task, work)
        except Stopped:
            if work.starved:
                self._break(task, work, work.why)
            else:
                self._note(lambda: self._journal.end(key, work.why or "stopped"))
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
        # What is not stored by then is given back, while a decline can still be mined.
        until = deadline - task.margin / 4
        folder = self._folders.of(task.key)
        kept = folder.read_kept()
        stored = kept is not None and upload.is_stored(folder.read_pins(), self._store)
        if kept is None or not (stored or folder.holds(kept, work.stop, until)):
            stored = False
            folder.renew()
            found = kept = self._run_unit(task, work, folder, until=deadline - task.margin, last=until)
            self._when_room(lambda: folder.write_kept(found), until, work)
        self._journal.reach(task.key, Moment.RESULT, f"outcome {kept.outcome.name}")
        if not stored:
            if self._stores_here:
                outputs = kept.result.get("outputs") or {}
                self._await_room(int(outputs.get("size", 0)), until, work)
            work.phase, work.takes_room = "uploading", self._stores_here
            pins = upload.upload(kept, folder, self._store, until=until, stop=work.stop)
            self._when_room(lambda: folder.write_pins(pins), until, work)
        work.takes_room = False
        self._journal.reach(task.key, Moment.PINNED)
        self._note(
            lambda: self._journal.finish(
                task.key,
                Phase.DONE,
                outcome=kept.outcome,
                result=canonical.digest(kept.result),
                report=canonical.digest(kept.report),
                used=kept.used,
                detail=str(kept.report.get("detail", "")),
            )
        )
        folder.drop_data()  # the store has it; a volume is free for the next attempt

    def _run_unit(self, task: Task, work: Running, folder: Folder, *, until: float, last: float) -> Kept:
        """Fetch into an empty folder and run, until a time of `time.monotonic`, and judge, until the `last`; nothing is
        stored yet."""
        # Half of the run's time must be left when the data is here.
        fetch = Fetch(self._store, work, until - task.terms.max_seconds / 2, work.stop, self._bounds)
        spec = fetch.spec(task.terms, self._tiers)
        self._await_room(spec.download_bytes, fetch.until, work)
        work.takes_room = True
        self._folders.lend_volume(folder)
        fetch.data(spec, folder)
        self._journal.reach(task.key, Moment.FETCHED, f"{work.done} bytes")
        runtime = sandbox.prepare(spec, folder, self._runtimes, until=until, progress=work, stop=work.stop)
        with self._gpus.lent(spec.resources.gpus) as gpus:
            request = sandbox.request_for(task, spec, folder, label=self._label, gpus=gpus, until=until)
            began = time.time()
            self._journal.reach(task.key, Moment.STARTED, request.unit)
            work.takes_room = folder.volume is None
            run = sandbox.run(runtime, request, task.terms.max_seconds, progress=work, stop=work.stop)
        work.takes_room = False
        logs = self._when_room(lambda: folder.write_logs(run.stdout, run.stderr), last, work)
        work.phase = "hashing the outputs"
        run, outputs = _name_outputs(request, run, folder, work.stop, last)
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
        """Note that the job cannot be run; the report is stored if store and disk take it."""
        key, outcome, why = task.key, refused.outcome, refused.why
        log.warning("given back", attempt=str(key), outcome=outcome.name.lower(), why=why, inside=refused.inside)
        report = results.refusal_document(
            job=key.job, index=key.index, attempt=key.attempts, node=self._node, outcome=outcome, why=why
        )
        digest = canonical.digest(report)
        folder = self._folders.of(key)
        folder.drop_data()
        with suppress(StorageError, OSError):
            self._store.put_json(report)
            folder.write_pins([str(canonical.cid_of_digest(digest))])
        detail = f"{why} ({refused.inside})" if refused.inside else why
        self._note(
            lambda: self._journal.finish(key, Phase.REFUSED, outcome=outcome, report=digest, detail=detail),
        )
        with self._lock:
            self._given_back[key.job] = why

    def _break(self, task: Task, work: Running, why: str) -> None:
        """Note that this machine failed, after a pause that lets an engine or a store come back. A result stays, since
        only its upload has to be repeated; all else is fetched and made again, and its disk is free meanwhile."""
        work.phase, work.takes_room = f"failed: {why}", False
        folder = self._folders.of(task.key)
        if not folder.awaits_upload:
            folder.drop_data()
        work.stop.wait(min(30.0, 2.0**task.tries))
        self._note(lambda: self._journal.finish(task.key, Phase.BROKEN, detail=why))


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


def folders_in(home: Path, volumes: Sequence[Path] = ()) -> Folders:
    """Return the folders of the attempts of a worker's home."""
    return Folders(home / "jobs", volumes)


def make_room(folders: Folders, runtimes: Mapping[str, Runtime], label: str) -> list[str]:
    """Kill the sandboxes that an earlier process left, by their label, and delete what no restart can use of it.

    It writes nothing, so that a start on a full disk can begin with it. Returns what was done.
    """
    swept = {name: runtime.sweep(label) for name, runtime in runtimes.items()}
    done = [f"killed {killed} {name} sandboxes of an earlier process" for name, killed in swept.items() if killed]
    return done + [f"freed {name}" for name in folders.free_dead()]
