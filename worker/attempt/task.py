"""What the stages of an attempt share: the task, the bounds of this machine, progress, and the ways out.

Every stage is handed until when it may work, in seconds of `time.monotonic`, and `stop`, which is set where the lease
is gone or the worker ends. A stage returns what it made, or leaves by one of the three exceptions below.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from hearth.protocol.types import Outcome, Terms
from worker.decide import LeaseKey, Saved

RETRY_SECONDS: Final = 2.0
"""How long to wait before a store that is down or lacks a block is asked again."""


class Stopped(Exception):
    """The attempt was stopped: say nothing about the job."""


class Refused(Exception):
    """The job cannot be run, whoever tries: the outcome of the decline and the sentence for its report.

    The report is public. `inside` is for this machine's log and journal alone: where its stores are, what they said.
    """

    def __init__(self, outcome: Outcome, why: str, *, inside: str = "") -> None:
        super().__init__(why)
        self.outcome = outcome
        self.why = why
        self.inside = inside


class TooLate(Refused):
    """The lease's time is over before the work is."""

    def __init__(self, why: str) -> None:
        super().__init__(Outcome.BAD_INPUT, why)


class OutputsLate(TooLate):
    """The outputs are more than can be hashed and stored in time: the run is a result without them."""


class Broken(Exception):
    """This machine failed; the job may be tried again."""


class GpuRefused(Broken):
    """The sandbox did not get the GPUs that it was lent."""


@dataclass(frozen=True, slots=True)
class Task:
    """An attempt to carry out. `seconds` are left until the lease's deadline; the last `margin` of them are for upload
    and submit, the last half of these for documents, and the last quarter for the submit alone. In the first `begun`
    seconds the program must be started: later, what is missing could not be declined any more. `topped` seconds of
    running time were bought for the unit before, beside those of its terms; `states` are what it may begin with, the
    best first: the one that its lease names, or what is gathered before it has one. `held` of the unit's seconds are
    those of the checkpoint that the lease names and of what that was made of: they are paid to others."""

    key: LeaseKey
    terms: Terms
    seconds: float
    margin: float
    tries: int = 1
    begun: float = math.inf
    topped: int = 0
    states: tuple[Saved, ...] = ()
    held: int = 0

    @property
    def paid(self) -> int:
        """Return the seconds of running time that are paid for, one at least."""
        return max(1, self.terms.max_seconds + self.topped - self.held)


NOTICE_MARGIN: Final = 2.5
"""Seconds in which a little output is stored and its submit mined, on a chain with a block a second."""


@dataclass(frozen=True, slots=True)
class Notice:
    """The notice that a cancelled unit has: its program ends at `stop`, and what there is by then is submitted before
    `end` (times of `time.monotonic`), as `used` fuel seconds."""

    stop: float
    end: float
    used: int

    @classmethod
    def given(cls, seconds: float, margin: float, used: int) -> Notice:
        """Return the notice of a unit that has so many seconds left.

        The program has all of them but a `margin`, which is a third of them at most, and NOTICE_MARGIN where that is
        more: a notice of 3 s has room for nothing else.
        """
        end = time.monotonic() + seconds
        return cls(end - min(margin, max(seconds / 3, NOTICE_MARGIN)), end, used)

    @property
    def margin(self) -> float:
        """Return the seconds for upload and submit."""
        return self.end - self.stop


@dataclass(frozen=True, slots=True)
class Pace:
    """How slowly a job's data may come: at least `floor` bytes in any `window` seconds of waiting for it."""

    window: float = 120.0
    floor: int = 1 << 20


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a job may bring and leave on this machine, in bytes, and how slowly it may bring it."""

    max_input: int = 64 << 30
    max_output: int = 64 << 30
    pace: Pace = Pace()


@dataclass(slots=True)
class Progress:
    """How far an attempt is, as `hearth worker status` shows it: what it does now, and the bytes (of a run: seconds)
    done and promised in it."""

    phase: str = "starting"
    done: int = 0
    total: int = 0


LATE: Final = "the outputs are too large to be hashed and stored in the time that the lease left"


def watched(stop: threading.Event, until: float, late: str = LATE) -> Callable[[str, int], None]:
    """Return what a store or a namer calls after every part of the data.

    It raises Stopped once `stop` is set, and OutputsLate, for the reason `late`, past a time of `time.monotonic`.
    """

    def moved(_path: str, _count: int) -> None:
        if stop.is_set():
            raise Stopped
        if time.monotonic() >= until:
            raise OutputsLate(late)

    return moved
