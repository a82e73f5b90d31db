"""The attempts under way, and the disk that they share.

An attempt begins once the disk has room for all that its job may bring and leave, and for what the others may still
take of theirs. While there are any, a guard looks at the disk: below its floor, what nobody needs any more is deleted
first; then, and while an attempt waits for room, every run keeps to what its job names, to the byte, and one that holds
more ends as over its cap. Only where the disk is full and no run is over its cap, since something else fills it, the
attempt that takes the most room is stopped, and tried again when there is room. Source: worker.md "Disk".
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
from worker.attempt.task import RETRY_SECONDS, Notice, Progress, Stopped, Task, TooLate
from worker.decide import AHEAD, LeaseKey, Stage
from worker.disk import Disk, size_in_words
from worker.gpu.pool import Lent
from worker.runtimes.base import Bought, Room

log = structlog.get_logger("worker.attempt")

T = TypeVar("T")

GUARD_SECONDS: Final = 0.25
"""How often the disk is looked at."""
ROOM: Final = 4 << 20
"""Bytes that the disk must have beside its reserve for a copy to go on: more than one part of it takes."""
LOOK_SECONDS: Final = 45.0
"""How long the guard waits until every run has looked at what it takes: longer than a runtime lets a run go on that it
cannot look at, so that such a run ends as over its cap."""
APART_SECONDS: Final = 60.0
"""How long attempts that are tried again keep apart: one of them may have taken the other's room between two looks, and
would again. Not longer, or one could hold up another's lease."""
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
    claim: int = 0
    """The bytes of the home's disk that it may take in all: what its job brings, and leaves where it has no volume."""
    room: Room = field(default_factory=Room)
    """What its run takes of the disk."""
    apart_until: float = 0.0
    """Until when, of `time.monotonic`, it begins beside no other that is tried again; 0 where this is its first try."""
    waits: int = 0
    """The bytes of room that it waits for, 0 where it waits for none."""
    takes_room: bool = False
    """Whether it may take room on the home's disk now: it fetches, runs without a volume, or stores."""
    pressed: bool = False
    """Whether the disk was full at some time while it took room of it."""
    starved: bool = False
    """Whether it was stopped for the room that it takes."""
    bought: Bought = field(default_factory=Bought)
    """The seconds of running time that were bought for it since it began."""
    topped: int = 0
    """Those that were bought for its unit before."""
    margin: float = 0.0
    """The seconds that its task keeps for upload and submit."""
    notice: Notice | None = None
    """What is left to it where its unit was cancelled, and it hands in what it has."""
    resumes: int = 0
    """The attempt whose checkpoint lies in its folder whole, 0 for none."""
    refusal: str = ""
    """Why the store took no result when it was asked last, empty where it takes one."""
    lent: Lent | None = None
    """The GPUs that its run has; None while it does not run."""
    thread: threading.Thread | None = None


class Halt(threading.Event):
    """Set where a run is to end: its attempt is stopped, its unit's notice is nearly over, or its GPUs have failed."""

    def __init__(self, work: Running) -> None:
        super().__init__()
        self._work = work

    def is_set(self) -> bool:
        """Say whether it is to end now."""
        lent = self._work.lent
        return self._work.stop.is_set() or self.noticed or (lent is not None and bool(lent.trouble))

    @property
    def noticed(self) -> bool:
        """Say whether it is to hand in what it has."""
        notice = self._work.notice
        return notice is not None and time.monotonic() >= notice.stop

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is, or a time is over."""
        self._work.stop.wait(timeout)
        return self.is_set()


class Underway:
    """The attempts of one worker that threads carry out, each by its key, and a guard of the `disk` below `folders`."""

    def __init__(self, folders: Folders, disk: Disk) -> None:
        self._folders = folders
        self._disk = disk
        self._work: dict[LeaseKey, Running] = {}
        self._lock = threading.Lock()
        self._guarded = False
        self._full_since: float | None = None
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
            gone = self._work.pop(key, None)
            if gone is not None and gone.room.over:
                for work in self._work.values():
                    work.pressed |= work.takes_room

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
                full = self._disk.full
                waits = any(work.waits for work in self.all())
                for work in self.all():
                    work.room.full = full and work.takes_room
                    work.room.tight = (full or waits) and work.takes_room
                    work.pressed |= work.room.full
                if full:
                    self._relieve()
                else:
                    self._full_since = None
            except Exception:  # the top of a thread: every later attempt would miss a guard that has ended
                log.exception("the disk cannot be looked at")
            time.sleep(GUARD_SECONDS)

    def _relieve(self) -> None:
        """Make room: delete what no attempt needs; where there is nothing, and no run takes more than its job names,
        stop the attempt that takes the most.

        One at a time: what it gives back may be enough; one that was gathered and has not begun goes first. An attempt
        that only waits, or writes to a volume, is left alone, since its end would give nothing back. So is whoever was
        seen since the disk became full, while others take room that nobody can look at.
        """
        self._full_since = self._full_since or time.monotonic()
        with self._lock:
            running = list(self._work.values())
            # Under the lock, so that no attempt begins in a folder that is being emptied. A copy of what runs on is
            # given up before any attempt is.
            freed = self._folders.free_dead({str(work.key) for work in running}) or self._folders.drop_copies()
        if freed:
            log.warning("disk full: deleted data that no attempt needs", attempts=freed, disk=self._disk.in_words())
            return
        # One that holds no room any more, though it has not left yet, keeps nobody from being stopped.
        if any((work.starved or work.room.over) and work.takes_room for work in running):
            return
        unseen = [work for work in running if work.room.watched and not work.room.seen]
        if unseen and time.monotonic() - self._full_since < LOOK_SECONDS:
            return
        # Who was seen to keep to what its job names does not go for one that nobody could look at.
        takers = [work for work in unseen or running if work.takes_room and not work.stop.is_set()]
        if takers:
            most = max(takers, key=lambda work: (work.stage in AHEAD, self._taken_by(work)))
            most.why = f"this machine's disk was full: {self._disk.in_words()}"
            most.starved = True
            most.stop.set()
            self.starved += 1
            log.warning("disk full: attempt stopped, it is tried again", attempt=str(most.key), why=most.why)

    def _taken_by(self, work: Running) -> int:
        """Return the bytes that an attempt takes on the disk: by its folder's names, or as its run was seen to."""
        return max(self._folders.of(work.key).taken, work.room.taken)

    # ---- room, for the stages of an attempt ----

    def lacked_room(self, work: Running) -> bool:
        """Say whether the disk may have refused an attempt's run what its job may leave: it was full, or another run
        took more than its own job named, perhaps all of it between two looks."""
        over = any(other.room.over for other in self.all() if other is not work)
        return work.takes_room and (work.pressed or over or self._disk.full)

    def unpromised(self) -> int:
        """Return the bytes of the disk that a new attempt may claim, beside what others may still take or wait for."""
        with self._lock:
            return self._disk.claimable - sum(self._owed(work) + work.waits for work in self._work.values())

    def _owed(self, work: Running) -> int:
        """Return the bytes that an attempt may still take of what it has claimed."""
        return max(0, work.claim - self._taken_by(work))

    def check_spare(self, size: int) -> None:
        """Raise StorageError DISK_FULL where `size` bytes would take room that other attempts may need: of what an
        attempt can go on without, a copy of its state or another's state."""
        if not self._disk.spares(size):
            why = f"this machine's disk has no room for it: {self._disk.in_words()}"
            raise StorageError(why, code="DISK_FULL", retryable=True)

    def await_room(self, size: int, until: float, work: Running) -> None:
        """Wait until the disk has room for `size` bytes that the store takes of a result.

        What others were promised is no matter: they may never take it and can be tried again, while this run is done
        and its lease would be lost. Raises TooLate past a time of `time.monotonic`, Stopped.
        """
        self._await(size, until, work, beside_others=False)

    def await_claim(self, claim: int, until: float, work: Running, *, again: bool = False) -> None:
        """Wait until the disk has room for all that an attempt may take, beside what the others may still take.

        One that is tried again begins apart from others that are, for a while. Raises TooLate past a time of
        `time.monotonic`, Stopped.
        """
        now = time.monotonic()
        # The rest of its time is for what it fetches.
        work.apart_until = now + min(APART_SECONDS, max(0.0, until - now) / 4) if again else 0.0
        self._await(claim, until, work, beside_others=True)

    def _await(self, size: int, until: float, work: Running, *, beside_others: bool) -> None:
        """Wait for room, during which the runs of others keep to what their jobs name; beside others it is claimed."""
        work.phase = "waiting for room on the disk"
        try:
            while True:
                owed = self._get_room(size, work, beside_others)
                if owed is None:
                    return
                if time.monotonic() >= until:
                    besides = f", and others that run may still take {size_in_words(owed)}" if owed else ""
                    raise TooLate(
                        f"this machine had no room for it in time: {self._disk.in_words()}, it may take "
                        f"{size_in_words(size)}{besides}"
                    )
                work.waits = max(1, size)
                if work.stop.wait(RETRY_SECONDS):
                    raise Stopped
        finally:
            work.waits = 0

    def _get_room(self, size: int, work: Running, beside_others: bool) -> int | None:
        """Return None where there is room now, which is claimed beside others, else the bytes owed to them."""
        with self._lock:  # two that begin at once would both be promised the same room
            others = [other for other in self._work.values() if other is not work] if beside_others else []
            owed = sum(self._owed(other) for other in others)
            apart = time.monotonic() < work.apart_until and any(one.apart_until and one.claim for one in others)
            if apart or not self._disk.has(size + owed):
                return owed
            if beside_others:
                work.claim = size
            return None

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
