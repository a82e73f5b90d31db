"""The GPUs that a worker gives to jobs: which are free, which are lent, and which can be given to none now, and why.

The machine is looked at before a GPU is lent, every LENT_SECONDS while one is lent or has a fault, and every
IDLE_SECONDS else. A GPU with a fault is given to nobody until a look finds it well again. Workers of one machine that
have different homes know of each other's GPUs by locks, which the kernel frees when a process dies.
"""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path
from typing import Final

import structlog

from worker.gpu.port import Fault, GpuInfo, GpuProbe

log = structlog.get_logger("worker.gpu")

LENT_SECONDS: Final = 5.0
IDLE_SECONDS: Final = 60.0
GONE: Final = "it does not answer, or is not in this machine any more"
ELSEWHERE: Final = "another worker of this machine has it"
PAUSE_SECONDS: Final = 60.0
MAX_PAUSE_SECONDS: Final = 3600.0
"""After a sandbox did not get a GPU, and the most after many such trials."""
LOCKS: Final = Path("/run/lock")
NEXT: Final = "hearth worker doctor"


GPU_STATES: Final = ("free", "lent", *Fault)


class NoGpuError(Exception):
    """Fewer GPUs are free and well than an attempt needs."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """Say what keeps a GPU from jobs: its fault, and a sentence."""

    fault: Fault
    why: str


@dataclass(frozen=True, slots=True)
class GpuState:
    """How a GPU is: one of GPU_STATES, and where that is a fault, a sentence. A GPU that is not here has no name."""

    uuid: str
    name: str
    state: str
    why: str = ""


@dataclass(slots=True)
class _Refusal:
    """What was said where a sandbox did not get a GPU, how long it rests, and until when."""

    why: str
    pause: float
    until: float


class Lent:
    """The GPUs that one attempt has."""

    def __init__(self, pool: Pool, gpus: Sequence[GpuInfo]) -> None:
        self._pool = pool
        self.gpus = tuple(gpus)
        self._peaks: dict[str, int] = {}

    @property
    def uuids(self) -> tuple[str, ...]:
        """Return by what names a container gets them."""
        return tuple(gpu.uuid for gpu in self.gpus)

    @property
    def trouble(self) -> str:
        """Say what is wrong with them by the last look, "" for nothing."""
        troubles = self._pool.troubles
        return "; ".join(f"GPU {gpu.uuid}: {troubles[gpu.uuid].why}" for gpu in self.gpus if gpu.uuid in troubles)

    def look(self) -> str:
        """Look at them now, and say what is wrong with them, "" for nothing."""
        if self.gpus:
            self._pool.look()
        return self.trouble

    def refuse(self, why: str) -> None:
        """Note that a sandbox did not get them."""
        self._pool.refuse(self.uuids, why)

    def facts(self) -> list[dict[str, str | int]]:
        """Return what a report says of them: sizes in bytes, and the most memory that any look saw used, if one did."""
        return [
            {
                "uuid": gpu.uuid,
                "name": gpu.name,
                "driver": gpu.driver,
                "memory": gpu.vram_bytes,
                **({"cuda": gpu.cuda} if gpu.cuda else {}),
                **({"peak_memory": self._peaks[gpu.uuid]} if gpu.uuid in self._peaks else {}),
            }
            for gpu in self.gpus
        ]

    def note(self, found: Mapping[str, GpuInfo]) -> None:
        """Note how much of their memory is used."""
        for uuid in self.uuids:
            used = found[uuid].used_bytes if uuid in found else None
            if used is not None:
                self._peaks[uuid] = max(used, self._peaks.get(uuid, 0))


class Pool:
    """The GPUs of one worker."""

    def __init__(
        self,
        probe: Callable[[], GpuProbe] | None = None,
        *,
        offered: Callable[[GpuInfo], bool] = lambda gpu: True,
        named: Sequence[str] = (),
        trial: Callable[[str], str] = lambda uuid: "",
        locks: Path | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`offered` says of a GPU that is here whether it is what the offer promises, `named` are those that must be
        here; without a `probe` there are none. `trial` gives a GPU to a sandbox and says what is wrong with that."""
        self._probe = probe
        self._offered = offered
        self._locks = locks or (LOCKS if os.access(LOCKS, os.W_OK) else Path(tempfile.gettempdir()))
        self._changing = threading.Lock()
        self._looking = threading.Lock()
        self._trial = trial
        self._clock = clock
        self._refusals: dict[str, _Refusal] = {}
        self._known = set(named)
        self._here: dict[str, GpuInfo] = {}
        self._lent: dict[str, Lent] = {}
        self._claims: dict[str, int] = {}
        self.troubles: Mapping[str, Trouble] = {}
        """What keeps GPUs from jobs, by their UUIDs; by "" where nobody knows which there are."""
        self.on_change: Callable[[], None] = lambda: None

    # ---- for the loop ----

    def slots(self, per_slot: int) -> int:
        """Return how many slots of so many GPUs each there are, those that are lent included."""
        with self._changing:
            return len(self._well()) // per_slot

    @property
    def trouble(self) -> Trouble | None:
        """Return the worst of what keeps GPUs from jobs, with a sentence on each of them."""
        troubles = dict(self.troubles)
        if not troubles:
            return None
        worst = min((one.fault for one in troubles.values()), key=list(Fault).index)
        return Trouble(worst, "; ".join(f"{uuid or 'GPUs'}: {one.why}" for uuid, one in sorted(troubles.items())))

    def states(self) -> list[GpuState]:
        """Return how each GPU is, by their UUIDs."""
        with self._changing:
            return [self._state(uuid) for uuid in sorted({*self._here, *self.troubles})]

    def _state(self, uuid: str) -> GpuState:
        trouble = self.troubles.get(uuid)
        name = self._here[uuid].name if uuid in self._here else ""
        if trouble is not None:
            return GpuState(uuid, name, trouble.fault, trouble.why)
        return GpuState(uuid, name, "lent" if uuid in self._lent else "free")

    # ---- for attempts ----

    def check(self, count: int) -> None:
        """Look, and raise NoGpuError where fewer GPUs are well than `count`, lent or not."""
        if count:
            self.look()
            with self._changing:
                self._refuse_fewer(count, len(self._well()))

    @contextmanager
    def lent(self, count: int) -> Iterator[Lent]:
        """Lend `count` GPUs for a block. Raises NoGpuError where fewer are free and well."""
        if count:
            self.look()
        with self._changing:
            taken = self._take(count)
            for gpu in taken.gpus:
                self._lent[gpu.uuid] = taken
        try:
            yield taken
        finally:
            with self._changing:
                for uuid in taken.uuids:
                    del self._lent[uuid]
                    self._release(uuid)

    # ---- the look ----

    def keep_looking(self, stop: threading.Event) -> None:
        """Look again and again until told to stop; for a thread of its own."""
        while not stop.wait(LENT_SECONDS if self._lent or self.troubles else IDLE_SECONDS):
            try:
                self.look()
                self.try_again()
            except Exception:  # the top of a thread: without it no fault would be seen any more
                log.exception("the GPUs could not be looked at")

    def look(self) -> None:
        """Ask the driver, and note what keeps GPUs from jobs.

        What a first look finds on GPUs that are lent counts where a second one finds it too: it ends a run.
        """
        if self._probe is None:
            return
        with self._looking:
            found = self._probe()
            if self._troubled(found):
                found = self._probe()
            with self._changing:
                before, self.troubles = self.troubles, self._judge(found)
                for lent in {id(one): one for one in self._lent.values()}.values():
                    lent.note(self._here)
        self._tell(before)

    def refuse(self, uuids: Sequence[str], why: str) -> None:
        """Give GPUs to nobody that a sandbox did not get, until a trial has shown that one does."""
        with self._changing:
            before = self.troubles
            for uuid in uuids:
                self._rest(uuid, why)
            self.troubles = {**before, **{uuid: Trouble(Fault.ENGINE, why) for uuid in uuids}}
        self._tell(before)

    def try_again(self) -> None:
        """Try each GPU that a sandbox did not get, once it has rested; what fails again rests longer."""
        now = self._clock()
        with self._changing:
            due = [uuid for uuid, one in self._refusals.items() if one.until <= now and uuid in self._here]
        for uuid in due:
            why = self._trial(uuid)
            with self._changing:
                if why:
                    self._rest(uuid, why)
                else:
                    del self._refusals[uuid]
        if due:
            self.look()

    def _rest(self, uuid: str, why: str) -> None:
        last = self._refusals.get(uuid)
        pause = PAUSE_SECONDS if last is None else min(MAX_PAUSE_SECONDS, 2 * last.pause)
        self._refusals[uuid] = _Refusal(why, pause, self._clock() + pause)

    def _troubled(self, found: GpuProbe) -> bool:
        with self._changing:
            here = {gpu.uuid: gpu for gpu in found.gpus}
            return any(uuid not in here or here[uuid].defects for uuid in self._lent)

    def _judge(self, found: GpuProbe) -> dict[str, Trouble]:
        """Note what is here, and return what keeps GPUs from jobs."""
        if not found.answers:
            self._here = {}
            return dict.fromkeys(self._known or {""}, Trouble(Fault.DRIVER, found.reason))
        self._here = {gpu.uuid: gpu for gpu in found.gpus if gpu.uuid and self._offered(gpu)}
        self._known |= self._here.keys()
        troubles = {uuid: Trouble(Fault.LOST, GONE) for uuid in self._known - self._here.keys()}
        for uuid, gpu in self._here.items():
            if gpu.defects:
                troubles[uuid] = Trouble(Fault.SICK, "; ".join(gpu.defects))
            elif uuid in self._refusals:
                troubles[uuid] = Trouble(Fault.ENGINE, self._refusals[uuid].why)
            elif uuid in self._lent:
                continue
            elif gpu.users:
                troubles[uuid] = Trouble(Fault.BUSY, "; ".join(gpu.users))
            elif not self._claim(uuid):
                troubles[uuid] = Trouble(Fault.BUSY, ELSEWHERE)
            else:
                self._release(uuid)
        if not self._known and found.reason:
            troubles[""] = Trouble(Fault.LOST, found.reason)
        return troubles

    def _tell(self, before: Mapping[str, Trouble]) -> None:
        """Let the log and the loop hear of each change."""
        if before == self.troubles:
            return
        for uuid, one in self.troubles.items():
            if before.get(uuid) != one:
                log.warning("a GPU is given to no job", gpu=uuid, reason=one.fault.value, why=one.why, next=NEXT)
        for uuid in before.keys() - self.troubles.keys():
            log.info("a GPU is well again", gpu=uuid)
        self.on_change()

    # ---- under `_changing` ----

    def _well(self) -> list[GpuInfo]:
        return [gpu for uuid, gpu in self._here.items() if uuid not in self.troubles]

    def _take(self, count: int) -> Lent:
        taken: list[GpuInfo] = []
        for gpu in sorted(self._well(), key=lambda gpu: gpu.index):
            if len(taken) < count and gpu.uuid not in self._lent and self._claim(gpu.uuid):
                taken.append(gpu)
        if len(taken) < count:
            for gpu in taken:
                self._release(gpu.uuid)
            self._refuse_fewer(count, len(taken))
        return Lent(self, taken)

    def _refuse_fewer(self, count: int, free: int) -> None:
        if free < count:
            trouble = self.trouble
            why = f": {trouble.why}" if trouble is not None else ""
            raise NoGpuError(f"{count} GPUs are asked, and {free} can be given{why}")

    def _claim(self, uuid: str) -> bool:
        """Lock a GPU against the other workers of this machine; say whether none has it."""
        path = self._locks / f"hearth-{uuid}.lock"
        try:
            descriptor = _opened(path)
        except OSError as failed:
            log.warning("other workers of this machine may take the same GPU", gpu=uuid, why=str(failed))
            return True
        try:
            flock(descriptor, LOCK_EX | LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        self._claims[uuid] = descriptor
        return True

    def _release(self, uuid: str) -> None:
        descriptor = self._claims.pop(uuid, None)
        if descriptor is not None:
            os.close(descriptor)


def _opened(path: Path) -> int:
    """Open a lock's file, which a worker of another user may have made. Raises OSError."""
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
    with suppress(FileNotFoundError):
        return os.open(path, flags)
    with suppress(FileExistsError):  # another worker's, of this moment
        return os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o644)
    return os.open(path, flags)
