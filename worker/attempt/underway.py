"""The attempts under way, and the disk that they share.

While there are any, a guard looks at the disk: below its floor, what nobody needs any more is deleted first, then the
attempt that takes the most room is stopped, and tried again when there is room. Source: SPEC section "Worker".
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeVar

import structlog

from hearth.base.errors import StorageError
from hearth.base.files import NO_ROOM
from worker.attempt.folder import Folders
from worker.attempt.task import RETRY_SECONDS, Progress, Stopped, Task, TooLate
from worker.decide import AHEAD, LeaseKey, Stage
from worker.disk import Disk
from worker.runtimes.base import Bought

log = structlog.get_logger("worker.attempt")

T = TypeVar("T")

GUARD_SECONDS: Final = 0.25
"""How often the disk is looked at."""
ROOM: Final = 4 << 20
"""Bytes that the disk must have beside its reserve for a copy to go on: more than one part of it takes."""
TURN_SECONDS: Final = 0.1
"""How often an attempt that was gathered looks whether it is its turn."""


@dataclass(slots=True, kw_only=True)
class Running(Progress):
    """An attempt under way: its progress, the local unix time of its start, and how it is told to stop."""

    key: LeaseKey
    started: float
    stage: Stage = Stage.WORKING
    """GATHERING and GATHERED before its lease is taken, WORKING from its start on."""
    task: Task | None = None
    """What it was gathered for, once that begins."""
    stop: threading.Event = field(default_factory=threading.Event)
    why: str = ""
    takes_room: bool = False
    """Whether it may take room on the home's disk now: it fetches, runs without a volume, or stores."""
    starved: bool = False
    """Whether it was stopped for the room that it takes."""
    bought: Bought = field(default_factory=Bought)
    """The seconds of running time that were bought for it since it began."""
    topped: int = 0
    """Those that were bought for its unit before."""
    resumes: int = 0
    """The attempt whose checkpoint lies in its folder whole, 0 for none."""
    refusal: str = ""
    """Why the store took no result when it was asked last, empty where it takes one."""
    thread: threading.Thread | None = None


class Underway:
    """The attempts of one worker that threads carry out, each by its key, and a guard of the `disk` below `folders`."""

    def __init__(self, folders: Folders, disk: Disk) -> None:
        self._folders = folders
        self._disk = disk
        self._work: dict[LeaseKey, Running] = {}
        self._lock = threading.Lock()
        self._guarded = False
        self.starved = 0
        """Attempts that were stopped because the disk was full, for the metrics."""

    def enter(self, key: LeaseKey, stage: Stage = Stage.WORKING) -> Running | None:
        """Note an attempt that begins now, or is gathered from now on, and guard the disk from here on.

        None where it is under way already.
        """
        with self._lock:
            if key in self._work:
                return None
            work = self._work[key] = Running(key=key, started=time.time(), stage=stage)
            guard, self._guarded = not self._guarded, True
        if guard:
            threading.Thread(target=self._guard, name="disk guard", daemon=True).start()
        return work

    def leave(self, key: LeaseKey) -> None:
        """Note that an attempt is over."""
        with self._lock:
            self._work.pop(key, None)

    def get(self, key: LeaseKey) -> Running | None:
        """Return an attempt under way, None where it is not."""
        with self._lock:
            return self._work.get(key)

    def all(self) -> list[Running]:
        """List the attempts under way."""
        with self._lock:
            return list(self._work.values())

    # ---- from a match to its attempt ----

    def gathered(self, work: Running) -> None:
        """Note that all of an attempt lies here whole."""
        with self._lock:
            work.stage, work.phase = Stage.GATHERED, "ready, until the unit is taken"

    def await_turn(self, work: Running) -> Task:
        """Wait until an attempt begins that was gathered. Raises Stopped where it was stopped before."""
        while not work.stop.wait(TURN_SECONDS):
            if work.task is not None:
                return work.task
        with self._lock:  # a turn is given under it, and to none that is stopped: this look is the last word
            if work.task is None:
                raise Stopped
            return work.task

    def give_turn(self, task: Task) -> bool:
        """Let an attempt begin that was gathered; False where it was stopped meanwhile."""
        with self._lock:
            work = self._work.get(task.key)
            if work is None or work.stage is not Stage.GATHERED or work.stop.is_set():
                return False
            work.stage, work.started, work.task = Stage.WORKING, time.time(), task
            return True

    # ---- the guard ----

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
            except Exception:  # the top of a thread: every later attempt would miss a guard that has ended
                log.exception("the disk cannot be looked at")
            time.sleep(GUARD_SECONDS)

    def _relieve(self) -> None:
        """Make room: delete what no attempt needs; where there is nothing, stop the attempt that takes the most.

        One at a time: what it gives back may be enough; one that was gathered and has not begun goes first. An attempt
        that only waits, or writes to a volume, is left alone, since its end would give nothing back.
        """
        with self._lock:
            running = list(self._work.values())
            # Under the lock, so that no attempt begins in a folder that is being emptied. A copy of what runs on is
            # given up before any attempt is.
            freed = self._folders.free_dead({str(work.key) for work in running}) or self._folders.drop_copies()
        if freed:
            log.warning("disk full: deleted data that no attempt needs", attempts=freed, disk=self._disk.in_words())
            return
        if any(work.starved for work in running):
            return
        takers = [work for work in running if work.takes_room and not work.stop.is_set()]
        if takers:
            most = max(takers, key=lambda work: (work.stage in AHEAD, self._folders.of(work.key).taken))
            most.why = f"this machine's disk was full: {self._disk.in_words()}"
            most.starved = True
            most.stop.set()
            self.starved += 1
            log.warning("disk full: attempt stopped, it is tried again", attempt=str(most.key), why=most.why)

    # ---- room, for the stages of an attempt ----

    def check_spare(self, size: int) -> None:
        """Raise StorageError DISK_FULL where `size` bytes would take room that other attempts may need: of what an
        attempt can go on without, a copy of its state or another's state."""
        if not self._disk.spares(size):
            why = f"this machine's disk has no room for it: {self._disk.in_words()}"
            raise StorageError(why, code="DISK_FULL", retryable=True)

    def await_room(self, size: int, until: float, work: Running) -> None:
        """Wait until `size` bytes can be fetched. Raises TooLate past a time of `time.monotonic`, Stopped."""
        work.phase = "waiting for room on the disk"
        while not self._disk.has(size):
            if time.monotonic() >= until:
                raise TooLate(f"this machine had no room for it in time: {self._disk.in_words()}")
            if work.stop.wait(RETRY_SECONDS):
                raise Stopped

    def when_room(self, write: Callable[[], T], until: float, work: Running) -> T:
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
