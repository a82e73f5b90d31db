"""The GPUs that a worker gives to jobs: which are free, which are lent, and which can be given to none now, and why.

The machine is looked at before a GPU is lent, every LENT_SECONDS while one is lent or has a fault, and every
IDLE_SECONDS else. A GPU with a fault is given to nobody until a look finds it well again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import structlog

from worker.gpu.locks import Locks
from worker.gpu.port import Device, Fault, GpuInfo, GpuProbe

log = structlog.get_logger("worker.gpu")

LENT_SECONDS: Final = 5.0
IDLE_SECONDS: Final = 60.0
PAUSE_SECONDS: Final = 5.0
MAX_PAUSE_SECONDS: Final = 600.0
"""After a sandbox did not get a GPU, and the most after many such trials."""
GONE: Final = "it does not answer, or is not in this machine any more"
ELSEWHERE: Final = "another worker of this machine has it"
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
        self.trouble = ""
        """What went wrong with them since they were lent, "" for nothing. A GPU that is well again has failed its run
        all the same."""
        self._peaks: dict[str, int] = {}

    @property
    def devices(self) -> tuple[Device, ...]:
        """Return how a container asks for them."""
        return tuple(gpu.device for gpu in self.gpus)

    @property
    def uuids(self) -> tuple[str, ...]:
        """Return their names."""
        return tuple(gpu.uuid for gpu in self.gpus)

    def look(self) -> str:
        """Look at them now, and say what is or was wrong with them, "" for nothing."""
        if self.gpus and not self.trouble:
            self.judge(self._pool.look())
        return self.trouble

    def judge(self, troubles: Mapping[str, Trouble]) -> None:
        """Note what is wrong with them."""
        told = [f"GPU {uuid}: {troubles[uuid].why}" for uuid in self.uuids if uuid in troubles]
        self.trouble = self.trouble or "; ".join(told)

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
        offered: Callable[[GpuInfo], str | None] = lambda gpu: "",
        named: Sequence[str] = (),
        trial: Callable[[Device], str] = lambda gpu: "",
        locks: Locks | None = None,
        clock: Callable[[], float] = time.monotonic,
        patience: float = 0.0,
    ) -> None:
        """`offered` says what a GPU that is here lacks of what the offer promises, "" for nothing, None for one that no
        job is to have. `named` are those that must be here; without a `probe` there are none. `trial` gives a GPU to a
        sandbox and says what is wrong with that. `patience` are the seconds for which somebody else may have one that
        is to be lent: a benchmark has it for some."""
        self._probe = probe
        self._offered = offered
        self._locks = locks
        self._trial = trial
        self._clock = clock
        self._patience = patience
        self._changing = threading.Lock()
        self._looking = threading.Lock()
        self._begun = 0
        self._known = set(named)
        self._here: dict[str, GpuInfo] = {}
        self._lent: dict[str, Lent] = {}
        self._released: set[str] = set()
        self._refusals: dict[str, _Refusal] = {}
        self._suspects: dict[str, float] = {}
        self._seen: Mapping[str, Trouble] = {}
        self.troubles: Mapping[str, Trouble] = {}
        """What keeps GPUs from jobs, by their UUIDs; by "" where nobody knows which there are."""
        self.on_change: Callable[[], None] = lambda: None

    # ---- for the loop: nothing here waits for a driver ----

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

    @property
    def uuids(self) -> list[str]:
        """Return the GPUs that are known, well or not."""
        return [one.uuid for one in self.states() if one.uuid]

    @property
    def tiers(self) -> frozenset[int]:
        """Return of which tiers the GPUs that are here are, well or not."""
        with self._changing:
            return frozenset(gpu.tier for gpu in self._here.values())

    @property
    def devices(self) -> list[Device]:
        """Return the GPUs that are here, well or not."""
        with self._changing:
            return [gpu.device for gpu in self._here.values()]

    def _state(self, uuid: str) -> GpuState:
        trouble = self.troubles.get(uuid)
        name = self._here[uuid].name if uuid in self._here else ""
        if trouble is not None:
            return GpuState(uuid, name, trouble.fault, trouble.why)
        return GpuState(uuid, name, "lent" if uuid in self._lent else "free")

    # ---- for attempts ----

    def check(self, count: int, tier: int | None = None) -> None:
        """Look, and raise NoGpuError where fewer GPUs, of a tier where one is named, are well than `count`."""
        if count:
            self.look()
            with self._changing:
                self._refuse_fewer(count, len(self._well(tier)))

    @contextmanager
    def lent(self, count: int, tier: int | None = None) -> Iterator[Lent]:
        """Lend `count` GPUs, of a tier where one is named, for a block. Raises NoGpuError where fewer are free and
        well."""
        if count:
            self.look()
        taken = self._taken(count, tier)
        try:
            yield taken
        finally:
            with self._changing:
                for uuid in taken.uuids:
                    del self._lent[uuid]
                    self._suspects.pop(uuid, None)
                    self._released.add(uuid)
                    self._release(uuid)

    def _taken(self, count: int, tier: int | None) -> Lent:
        """Take GPUs, as soon as who has them for a moment gives them back. Raises NoGpuError."""
        until = time.monotonic() + self._patience
        while True:
            try:
                with self._changing:
                    taken = self._take(count, tier)
                    self._lent |= dict.fromkeys(taken.uuids, taken)
                    return taken
            except NoGpuError:
                busy = any(one.fault is Fault.BUSY for one in self._seen.values())
                if not busy or time.monotonic() >= until:
                    raise
            time.sleep(1.0)
            self.look()

    # ---- the look ----

    def keep_looking(self, stop: threading.Event) -> None:
        """Look again and again until told to stop; for a thread of its own. A trial has one besides: it may take
        minutes, and runs must be looked at meanwhile."""
        trying: threading.Thread | None = None
        looked = self._clock()
        # A job may begin in the middle of an idle minute.
        while not stop.wait(LENT_SECONDS):
            if not (self._lent or self.troubles) and self._clock() - looked < IDLE_SECONDS:
                continue
            looked = self._clock()
            try:
                self.look()
                if self._due() and (trying is None or not trying.is_alive()):
                    trying = threading.Thread(target=self.try_again, name="GPU trial", daemon=True)
                    trying.start()
            except Exception:  # the top of a thread: without it no fault would be seen any more
                log.exception("the GPUs could not be looked at")

    def look(self) -> Mapping[str, Trouble]:
        """Ask the driver, note what keeps GPUs from jobs, and return what this look saw; a look that began after the
        call is as good.

        What is seen on a GPU that is lent ends its run once another look sees it too, LENT_SECONDS later.
        """
        if self._probe is None:
            return {}
        asked = self._begun
        with self._looking:
            if self._begun > asked:
                return self._seen
            self._begun += 1
            with self._changing:
                self._released.clear()
            found = self._probe()
            with self._changing:
                before = self.troubles
                if found.asked:
                    self._seen = self._judge(found)
                self.troubles = self._counted(self._seen)
                for lent in {id(one): one for one in self._lent.values()}.values():
                    lent.note(self._here)
                    lent.judge(self.troubles)
        self._tell(before)
        return self._seen

    def refuse(self, uuids: Sequence[str], why: str) -> None:
        """Give GPUs to nobody that a sandbox did not get, until a trial has shown that one does."""
        with self._changing:
            before = self.troubles
            for uuid in uuids:
                self._rest(uuid, why)
            self.troubles = {**before, **{uuid: Trouble(Fault.ENGINE, why) for uuid in uuids}}
        self._tell(before)

    def _due(self) -> list[Device]:
        """Return the GPUs that have rested since a sandbox did not get them."""
        now = self._clock()
        with self._changing:
            rested = [uuid for uuid, one in self._refusals.items() if one.until <= now]
            return [self._here[uuid].device for uuid in rested if uuid in self._here]

    def try_again(self) -> None:
        """Try each GPU that has rested; what fails again rests longer."""
        due = self._due()
        for gpu in due:
            why = self._trial(gpu)
            with self._changing:
                if why:
                    self._rest(gpu.uuid, why)
                else:
                    self._refusals.pop(gpu.uuid, None)
        if due:
            self.look()

    def _rest(self, uuid: str, why: str) -> None:
        last = self._refusals.get(uuid)
        pause = PAUSE_SECONDS if last is None else min(MAX_PAUSE_SECONDS, 2 * last.pause)
        self._refusals[uuid] = _Refusal(why, pause, self._clock() + pause)

    def _judge(self, found: GpuProbe) -> dict[str, Trouble]:
        """Note what is here, and return what is wrong with it."""
        if not found.answers:
            self._here = {}
            return dict.fromkeys(self._known or {""}, Trouble(Fault.DRIVER, found.reason))
        lacks = {gpu.uuid: "" if gpu.uuid in self._lent else self._offered(gpu) for gpu in found.gpus if gpu.uuid}
        self._here = {gpu.uuid: gpu for gpu in found.gpus if lacks.get(gpu.uuid) is not None}
        self._known |= self._here.keys()
        troubles = {uuid: Trouble(Fault.LOST, GONE) for uuid in self._known - self._here.keys()}
        for uuid, gpu in self._here.items():
            trouble = self._trouble_of(gpu, lacks[uuid] or "")
            if trouble is not None:
                troubles[uuid] = trouble
        if not self._known and found.reason:
            troubles[""] = Trouble(Fault.LOST, found.reason)
        return troubles

    def _trouble_of(self, gpu: GpuInfo, lack: str) -> Trouble | None:
        """Return what is wrong with a GPU that answers, which has less than the offer promises by a `lack`."""
        if gpu.defects or lack:
            return Trouble(Fault.SICK, "; ".join([*gpu.defects, *([lack] if lack else [])]))
        if gpu.uuid in self._refusals:
            return Trouble(Fault.ENGINE, self._refusals[gpu.uuid].why)
        # Who used it when this look began may have ended with the job that it was lent to.
        if gpu.uuid in self._lent or gpu.uuid in self._released:
            return None
        if gpu.users:
            return Trouble(Fault.BUSY, "; ".join(gpu.users))
        if not self._claim(gpu.uuid):
            return Trouble(Fault.BUSY, ELSEWHERE)
        self._release(gpu.uuid)
        return None

    def _counted(self, seen: Mapping[str, Trouble]) -> dict[str, Trouble]:
        """Return what counts of what was seen: of a GPU that is lent, what was seen LENT_SECONDS ago as well."""
        now = self._clock()
        self._suspects = {uuid: self._suspects.get(uuid, now) for uuid in self._lent if uuid in seen}
        fresh = {uuid for uuid, since in self._suspects.items() if now - since < LENT_SECONDS}
        return {uuid: one for uuid, one in seen.items() if uuid not in fresh or one.fault is Fault.ENGINE}

    def _tell(self, before: Mapping[str, Trouble]) -> None:
        """Let the log and the loop hear of each change."""
        now = self.troubles
        if before == now:
            return
        for uuid, one in now.items():
            if before.get(uuid) != one:
                log.warning("a GPU is given to no job", gpu=uuid, reason=one.fault.value, why=one.why, next=NEXT)
        for uuid in before.keys() - now.keys():
            log.info("a GPU is well again", gpu=uuid)
        self.on_change()

    # ---- under `_changing` ----

    def _well(self, tier: int | None = None) -> list[GpuInfo]:
        here = [gpu for uuid, gpu in self._here.items() if uuid not in self.troubles]
        return [gpu for gpu in here if tier is None or gpu.tier == tier]

    def _take(self, count: int, tier: int | None) -> Lent:
        taken: list[GpuInfo] = []
        for gpu in sorted(self._well(tier), key=lambda gpu: (gpu.index, gpu.part or 0)):
            # What a look has seen and does not count yet keeps it from another job all the same.
            free = gpu.uuid not in self._lent and gpu.uuid not in self._seen
            if len(taken) < count and free and self._claim(gpu.uuid):
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
        return self._locks is None or self._locks.take(uuid)

    def _release(self, uuid: str) -> None:
        if self._locks is not None:
            self._locks.release(uuid)
