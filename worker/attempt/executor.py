"""Carry out attempts in threads, and write into the journal how they end.

Each attempt runs in a thread of its own, in a folder named by (job, index, attempts) below the worker's home. Nothing
here reads or writes the chain. Where a proposal leads to its lease, all that an attempt needs is gathered before that
is taken: the thread then waits for its turn, and no journal knows of it, so that a process that dies takes it along.

An attempt ends in one of four ways, which the journal keeps: DONE (a result, good or bad, is stored and can be
submitted), REFUSED (the job cannot be run, whoever tries: decline), BROKEN (this machine failed: try again), or stopped
because the lease is gone. Files are whole or absent: everything is written under a
temporary name, flushed and renamed, so that a crash at any point leaves what can be used again or what is swept away.
Source: worker.md.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import Final

import structlog

from hearth.base.errors import HearthError, StorageError
from hearth.protocol.types import JobId, NodeId
from hearth.storage import canonical
from worker.attempt import results, upload
from worker.attempt.attempt import Attempt, Gathered, Means
from worker.attempt.checkpoints import Tally
from worker.attempt.folder import Folders
from worker.attempt.intake import Intake
from worker.attempt.results import Kept
from worker.attempt.task import RETRY_SECONDS, Bounds, Broken, Notice, Refused, Stopped, Task, TooLate
from worker.attempt.underway import Running, Underway
from worker.decide import AHEAD, MAX_TRIES, Execution, LeaseKey, Stage
from worker.disk import Disk
from worker.gpu.pool import NoGpuError, Pool
from worker.journal import Phase
from worker.runtimes.base import Runtime

log = structlog.get_logger("worker.attempt")

RECOVER_SECONDS: Final = 5.0
"""For all that a store is asked at a start."""


class Executor:
    """Carry out attempts in threads, and remember in the journal how they end; a `disk` that is given is guarded."""

    def __init__(self, means: Means, *, disk: Disk | None = None, on_change: Callable[[], None] = lambda: None) -> None:
        self._means = means
        self._journal = means.journal
        self._store = means.store
        self._folders = means.folders
        self._underway = Underway(means.folders, disk or Disk(means.folders.root.parent, 0))
        self.on_change = on_change
        self._intake = Intake(means.store, lambda: self.on_change())
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._given_back: dict[JobId, str] = {}
        self._in_vain: set[JobId] = set()
        self.faults = 0
        """Attempts that ended by an exception that no rule foresees, for the metrics."""
        self.broken = 0
        """Attempts that failed by this machine, its engine or its stores, for the metrics."""

    @property
    def tally(self) -> Tally:
        """Return what became of checkpoints, for the metrics."""
        return self._means.tally

    @property
    def starved(self) -> int:
        """Return how many attempts were stopped because the disk was full, for the metrics."""
        return self._underway.starved

    @property
    def gpus(self) -> Pool:
        """Return the GPUs that attempts have and can have."""
        return self._means.gpus

    # ---- for the loop ----

    def recover(self) -> list[str]:
        """Make the machine and the journal agree after a crash, before anything is decided; return what was done.

        Room is made before the journal is written. Attempts that were under way become BROKEN, which counts as a try: a
        job that takes the worker down each time is given back in the end. Finished attempts whose result the store lost
        are BROKEN too; a job of which one has ended its last try so is left alone. Folders that the journal does not
        know are removed. From here on the store has to show that it takes writes. Raises StorageError JOURNAL; it may
        be called again then.
        """
        done = make_room(self._folders, self._means.runtimes, self._means.label)
        self._intake.begin()
        known: set[str] = set()
        lost = self._find_lost()
        for entry in self._journal.entries():
            known.add(str(entry.key))
            if entry.phase is Phase.WORKING:
                self._fail(entry.key, entry.tries, "the worker stopped while it ran")
                done.append(f"{entry.key} was at {entry.moment.value}")
            elif entry.key in lost:
                self._fail(entry.key, entry.tries, "the store lost the result")
                done.append(f"{entry.key} lost its result")
            elif entry.phase is Phase.BROKEN:
                self._count_out(entry.key, entry.tries, entry.detail)  # an earlier process had no time to act on it
        return done + [f"removed {name}" for name in self._folders.remove_others(known)]

    def _find_lost(self) -> set[LeaseKey]:
        """Return the finished attempts whose result the store does not have.

        A store that is down is believed to have it, and so is one that has not answered after RECOVER_SECONDS: until a
        worker has recovered it does not beat.
        """
        lost: set[LeaseKey] = set()
        done = self._journal.entries(Phase.DONE)

        def ask() -> None:
            for entry in done:
                with suppress(StorageError):
                    if not self._store.has(canonical.cid_of_digest(entry.result)):
                        lost.add(entry.key)

        asking = threading.Thread(target=ask, name="recover", daemon=True)
        with suppress(RuntimeError):  # the machine gives no thread now
            asking.start()
            asking.join(RECOVER_SECONDS)
        return set(lost)

    def gather(self, task: Task) -> None:
        """Bring here in a thread what an attempt needs whose lease is not taken yet, in the seconds of its task.

        `start` goes on with it.
        """
        work = self._underway.enter(task.key, Stage.GATHERING)
        if work is None:
            return
        work.thread = threading.Thread(target=self._gather, args=(task, work), name=f"gather {task.key}", daemon=True)
        try:
            work.thread.start()
        except RuntimeError:  # the machine gives no thread now: the next round asks again
            self._underway.leave(task.key)

    def ahead(self) -> tuple[Execution, ...]:
        """Return what is gathered, or being gathered, for leases that are not taken yet."""
        found = (work for work in self._underway.all() if work.stage in AHEAD)
        return tuple(Execution(work.key, work.stage, resumes=work.resumes) for work in found)

    def start(self, task: Task) -> None:
        """Start an attempt in a thread, or let the thread go on that gathered for it; one that runs already is left
        alone."""
        waiting = self._underway.get(task.key)
        if waiting is not None and waiting.stage is Stage.GATHERED:
            self._journal.start(task.key, task.tries)
            if not self._underway.give_turn(task):
                self._fail(task.key, task.tries, "what was gathered for it was given up")
            return
        work = self._underway.enter(task.key)
        if work is None:
            return
        try:
            self._journal.start(task.key, task.tries)
        except StorageError:
            self._underway.leave(task.key)
            raise
        # A daemon: nothing of a worker outlives it, and a stuck download cannot keep it alive.
        work.thread = threading.Thread(target=self._run, args=(task, work), name=f"attempt {task.key}", daemon=True)
        try:
            work.thread.start()
        except RuntimeError as error:  # the machine gives no thread now
            self._underway.leave(task.key)
            self._fail(task.key, task.tries, str(error))

    def top_up(self, key: LeaseKey, topped: int) -> None:
        """Let an attempt run for as long as its unit says by now: `topped` seconds were bought beside its terms'."""
        work = self._underway.get(key)
        if work is not None and work.stage is Stage.WORKING:
            work.bought.seconds = max(0, topped - work.topped)

    def hand_in(self, key: LeaseKey, seconds: float, used: int) -> bool:
        """Have an attempt end its program and store what there is so that it can be submitted in so many seconds, as
        `used` fuel seconds; say whether it was not told before."""
        work = self._underway.get(key)
        if work is None or work.stage is not Stage.WORKING or work.notice is not None:
            return False
        work.notice = Notice.given(seconds, work.margin, used)
        return True

    def stop(self, key: LeaseKey, why: str) -> None:
        """Stop an attempt whose lease is gone; one that no thread carries out is simply over."""
        work = self._underway.get(key)
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
        """Forget attempts that ended before a second of the journal's, with files and pins; return how many had any.

        The journal forgets them last: where the process ends before, the next one lets go what is left. One whose store
        is down keeps its folder, and the journal it and those after it, until the store has let go what it kept.
        """
        gone = 0
        forgotten = before
        for entry in self._journal.entries(Phase.ENDED):
            if entry.changed >= before:
                break
            folder = self._folders.of(entry.key)
            pins = [*folder.read_pins(), *folder.read_checkpoints()]
            own = [pin for pin in pins if not self._folders.pinned_elsewhere(pin, folder)]
            if all(upload.release(pin, self._store) for pin in own):
                folder.remove()
                gone += bool(pins)
            else:
                forgotten = min(forgotten, entry.changed)
        self._journal.forget(forgotten)
        return gone

    def allow(self, bounds: Bounds, keep_seconds: int) -> None:
        """Let attempts that begin from now on bring and leave this much, and keep results that long."""
        self._means.bounds, self._means.keep_seconds = bounds, keep_seconds

    def gateways_of(self, gateways: Callable[[NodeId], Sequence[str]]) -> None:
        """Fetch what another node made, where no store has it, from the `gateways` that it names."""
        self._means.gateways = gateways

    def active(self) -> list[Running]:
        """List the attempts under way."""
        return self._underway.all()

    def unpromised(self) -> int:
        """Return the bytes of the home's disk that a new attempt may claim."""
        return self._underway.unpromised()

    def ask_store(self) -> None:
        """Have the store show that it takes writes, and wait RECOVER_SECONDS for it."""
        self._intake.begin()
        self._intake.wait(RECOVER_SECONDS)

    def store_refusal(self) -> str:
        """Return why the store takes no results now, "" where it takes them."""
        return self._intake.refusal()

    def take_given_back(self) -> dict[JobId, str]:
        """Return the jobs of which a unit could not be run here since the last call, and why, in a sentence."""
        with self._lock:
            found, self._given_back = self._given_back, {}
        return found

    def take_in_vain(self) -> set[JobId]:
        """Return the jobs for which something was gathered since the last call that no attempt began with."""
        with self._lock:
            found, self._in_vain = self._in_vain, set()
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

    def _gather(self, task: Task, work: Running) -> None:
        """Gather for one attempt, wait for its turn, and carry it out; what no turn comes for is deleted.

        Why there is none is said before the thread is seen to have ended: else it would be gathered once more at once.
        """
        with ExitStack() as kept:
            try:
                found = Attempt(self._means, task, work, self._underway, self._intake).gather_ahead(kept)
                self._underway.gathered(work)
                self.on_change()
                begun = self._underway.await_turn(work)
            except (Stopped, TooLate, NoGpuError) as ended:
                # Which GPUs are well is known without this job: it is led again once they are.
                why = work.why or "stopped" if isinstance(ended, Stopped) else str(ended)
                log.info("gathered in vain", attempt=str(task.key), why=why)
                with self._lock:
                    self._in_vain.add(task.key.job)
            except Refused as refused:
                log.warning("not taken", attempt=str(task.key), why=refused.why, inside=refused.inside)
                self._leave_alone(task.key.job, f"it was led, and not taken: {refused.why}")
            except (Broken, HearthError, OSError) as error:
                self.broken += 1
                log.warning("not taken", attempt=str(task.key), why=str(error))
                self._leave_alone(task.key.job, f"it was led, and not taken: this machine failed: {error}")
            except Exception as error:  # the top of a thread: a fault here must not stop other attempts
                self.faults += 1
                log.exception("not gathered by a fault of the worker", attempt=str(task.key))
                self._leave_alone(task.key.job, f"it was led, and not taken: a fault of the worker: {error!r}")
            else:
                return self._run(begun, work, found)
        folder = self._folders.of(task.key)
        if folder.read_pins() or folder.read_checkpoints():
            folder.drop_data()
        else:
            folder.remove()
        self._underway.leave(task.key)
        self.on_change()

    def _run(self, task: Task, work: Running, found: Gathered | None = None) -> None:
        """Carry out one attempt, with what was `found` for it before, and journal its end."""
        key = task.key
        try:
            kept = Attempt(self._means, task, work, self._underway, self._intake).carry_out(found)
            self._finish(task, kept)
        except Stopped:
            if work.starved:
                self._break(task, work, work.why)
            else:
                self.broken += bool(work.refusal)
                self._note(lambda: self._journal.end(key, work.why or "stopped"))
                self._folders.of(key).drop_data()
        except Refused as refused:
            self._refuse(task, refused)
        except (Broken, NoGpuError, HearthError, OSError) as error:
            self.broken += 1
            self._break(task, work, str(error))
        except Exception as error:  # the top of a thread: a fault here must not stop other attempts
            self.faults += 1
            log.exception("attempt failed by a fault of the worker", attempt=str(key))
            self._break(task, work, f"a fault of the worker: {error!r}")
        finally:
            self._underway.leave(key)
            self.on_change()

    def _finish(self, task: Task, kept: Kept) -> None:
        """Note that the result can be submitted."""
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
        self._folders.of(task.key).drop_data()  # the store has it; a volume is free for the next attempt

    def _refuse(self, task: Task, refused: Refused) -> None:
        """Note that the job cannot be run; the report is stored if store and disk take it."""
        key, outcome, why = task.key, refused.outcome, refused.why
        log.warning("given back", attempt=str(key), outcome=outcome.name.lower(), why=why, inside=refused.inside)
        report = results.refusal_document(
            job=key.job, index=key.index, attempt=key.attempts, node=self._means.node, outcome=outcome, why=why
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
        self._leave_alone(key.job, f"a unit of it was given back: {why}")

    def _break(self, task: Task, work: Running, why: str) -> None:
        """Note that this machine failed, after a pause that lets an engine or a store come back. A result stays, since
        only its upload has to be repeated; all else is fetched and made again, and its disk is free meanwhile."""
        work.phase, work.claim = f"failed: {why}", 0
        folder = self._folders.of(task.key)
        if not folder.awaits_upload:
            folder.drop_data()
        work.takes_room = False  # and not before: the guard would stop another one for the room that is still taken
        work.stop.wait(min(30.0, 2.0**task.tries))
        self._note(lambda: self._fail(task.key, task.tries, why))

    def _fail(self, key: LeaseKey, tries: int, why: str) -> None:
        """Write that a try failed by this machine. Raises StorageError."""
        self._journal.finish(key, Phase.BROKEN, detail=why)
        self._count_out(key, tries, why)

    def _count_out(self, key: LeaseKey, tries: int, why: str) -> None:
        """Leave the job alone where the try that failed was the last of its unit."""
        if tries >= MAX_TRIES:
            self._leave_alone(key.job, f"a unit of it was given back: {MAX_TRIES} tries failed here: {why}")

    def _leave_alone(self, job: JobId, why: str) -> None:
        """Let no other unit of a job be taken for a while: it would end here as this one did."""
        with self._lock:
            self._given_back[job] = why


def make_room(folders: Folders, runtimes: Mapping[str, Runtime], label: str) -> list[str]:
    """Kill the sandboxes that an earlier process left, by their label, and delete what no restart can use of it.

    It writes nothing, so that a start on a full disk can begin with it. Returns what was done.
    """
    swept = {name: runtime.sweep(label) for name, runtime in runtimes.items()}
    done = [f"killed {killed} {name} sandboxes of an earlier process" for name, killed in swept.items() if killed]
    return done + [f"freed {name}" for name in folders.free_dead()]
