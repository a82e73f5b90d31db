"""The checkpoints of a running unit: copied, stored, read back, and then offered to the loop, which sends them.

A thread of its own does it, so that a store that hangs keeps neither the unit nor its lease. Whatever fails is counted
and told, and tried again at the next time. One is offered at a time: the next is copied once the chain has taken or
refused the one before. Source: worker.md "Checkpoints".
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import structlog

from hearth.base.errors import HearthError, StorageError
from hearth.base.failpoints import fp
from hearth.base.files import delete_tree
from hearth.jobfile.resolved import ResolvedCheckpoint
from hearth.storage import cid as cids
from hearth.storage import unixfs
from hearth.storage.stores import Store
from hearth.storage.unixfs import Entry, Progress, ReadLimits
from worker.attempt.folder import Folder, Folders
from worker.attempt.task import Refused, Stopped, Task, watched
from worker.attempt.underway import ROOM, Underway
from worker.attempt.upload import release
from worker.journal import AttemptJournal
from worker.runtimes.base import MAX_OUTPUT_ENTRIES, RunRequest, Runtime

log = structlog.get_logger("worker.attempt")

NEWEST: Final = 2
"""The newest checkpoints of an attempt stay in the store, and the newest that the chain has."""
LATE: Final = "the lease's time to copy and store it is over"


@dataclass(slots=True)
class Tally:
    """Count what became of a worker's checkpoints, for the metrics."""

    stored: int = 0
    failed: int = 0
    unusable: int = 0
    """States of lost attempts that could not be fetched or used."""


@dataclass(slots=True, kw_only=True)
class Checkpoints:
    """Make the checkpoints of one run, from `with` to its end; `until` is the time by which all must be over."""

    wanted: ResolvedCheckpoint
    task: Task
    runtime: Runtime
    request: RunRequest
    folder: Folder
    folders: Folders
    store: Store
    journal: AttemptJournal
    underway: Underway
    until: Callable[[], float]
    tally: Tally
    on_change: Callable[[], None]
    _over: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> None:
        """Begin; where the machine gives no thread now, the run has no checkpoints."""
        thread = threading.Thread(target=self._run, name=f"checkpoints {self.task.key}", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            self._fail(str(error))

    def __exit__(self, *_: object) -> None:
        """End, without a wait for what is under way: it stops at its next step, and offers nothing any more."""
        self._over.set()

    def _run(self) -> None:
        while not self._over.wait(self.wanted.every):
            try:
                self._make()
            except Stopped:
                return
            except (Refused, HearthError, OSError) as error:
                if not self._over.is_set():
                    self._fail(str(error))
            except Exception as error:  # the top of a thread: the next checkpoint may be made all the same
                log.exception("no checkpoint by a fault of the worker", attempt=str(self.task.key))
                self._fail(repr(error))

    def _fail(self, why: str) -> None:
        self.tally.failed += 1
        log.warning("no checkpoint", attempt=str(self.task.key), why=why)

    def _make(self) -> None:
        """Make one, where there is something new, time for it, and none on its way."""
        key, until = self.task.key, self.until()
        entry = self.journal.entry(key)
        if entry is None or entry.offered or time.monotonic() >= until:
            return
        copy = self.folder.path / f"checkpoint-{time.monotonic_ns()}"
        copy.mkdir(mode=0o700)
        try:
            moved = self._watched(until)
            self.runtime.copy_out(self.request, self.wanted.path, copy, lambda: moved("", 0))
            found = unixfs.name_path(copy, progress=moved)
            begun_with = self.task.states[0].root if self.task.states else None
            if not found.files or found.cid.digest in (entry.checkpoint or begun_with, begun_with):
                return
            self.underway.check_spare(found.size)
            # Noted before it is stored: what a killed process stored is let go in the end.
            self.folder.note_checkpoint(str(found.cid))
            fp("c1.copied", "checkpoint")
            self._store(copy, found, until)
            fp("c2.stored", "checkpoint")
            if self._over.is_set():
                return
            self.journal.offer(key, found.cid.digest)
            fp("c3.offered", "checkpoint")
            self.tally.stored += 1
            self.on_change()
            self._let_go()
        finally:
            delete_tree(copy)

    def _watched(self, until: float) -> Progress:
        """Return what is called after every part of a copy. A file of holes takes nothing where it was made, and its
        copy all of its size: it ends before it takes room that other attempts may need."""
        watch = watched(self._over, until, LATE)

        def moved(path: str, count: int) -> None:
            watch(path, count)
            self.underway.check_spare(ROOM)

        return moved

    def _let_go(self) -> None:
        """Let the store forget what nobody will go on from any more."""
        entry = self.journal.entry(self.task.key)
        named = entry.named if entry is not None else None
        for pin in self.folder.read_checkpoints()[:-NEWEST]:
            if named is not None and pin == str(cids.of_root(named)):
                continue  # a state that was left and refused since: a lost lease is gone on with from it
            shared = pin in self.folder.read_pins() or self.folders.pinned_elsewhere(pin, self.folder)
            if shared or release(pin, self.store):
                self.folder.forget_checkpoint(pin)

    def _store(self, copy: Path, found: Entry, until: float) -> None:
        """Store a copy and read all of it back. Raises StorageError where the store does not give back the same."""
        moved = self._watched(until)
        if self.store.add_path(copy, progress=moved).cid != found.cid:
            raise StorageError("the copy changed on disk", code="CHANGED", hint="hearth worker doctor")
        for _ in unixfs.blocks_of(found.cid, self.store, ReadLimits.of_market(found.size, MAX_OUTPUT_ENTRIES)):
            moved("", 0)
