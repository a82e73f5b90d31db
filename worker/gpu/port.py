"""What a GPU is to the rest of the worker, whoever made it."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from hearth.protocol.gpu_tiers import NVIDIA, Vendor, slug_of

UNKNOWN: Final = "its model is not in the table: jobs that name a model pass it by; a later release may know it"


class Fault(StrEnum):
    """Name why a GPU can be given to no job now, the worst first."""

    DRIVER = "gpu_driver"
    """The driver answers no question."""
    LOST = "gpu_lost"
    """The GPU answers none, or is not there any more."""
    SICK = "gpu_sick"
    """It answers, and what it says of itself keeps jobs away until its owner acts."""
    ENGINE = "gpu_engine"
    """The container engine gives it to no container."""
    BUSY = "gpu_busy"
    """Somebody else uses it."""


@dataclass(frozen=True, slots=True)
class Device:
    """How a container asks for a GPU, and by what it is seen there.

    `uuid` is its name for owners and in reports, "" where the driver says none; `cdi` is its name in the CDI
    specification that `refresh` writes. Its node is called `nodes` with a number, with this `number` where that is
    known; `groups` are ids of the host's, of those that may open it.
    """

    uuid: str
    cdi: str
    nodes: str
    refresh: str
    number: int | None = None
    groups: tuple[int, ...] = ()


@dataclass(frozen=True)
class GpuInfo:
    """Describe one GPU. `defects` are reasons not to give it to a job that are its own; `processes` use it, None where
    nobody can say.

    What the driver does not say is None, or a defect where a job depends on it: a zero has a defect beside it.
    """

    index: int
    name: str
    device: Device
    vendor: Vendor
    vram_bytes: int
    vram_gib: int
    tier: int
    compute: tuple[int, ...]
    driver: str
    processes: tuple[tuple[int | None, int | None], ...] | None
    """The id and the memory of each; None where nobody says."""
    defects: tuple[str, ...]
    used_bytes: int | None = None
    cuda: str = ""
    """The version of CUDA that the driver speaks, "" where it does not say."""
    watts: int | None = None
    """Its power limit."""
    part: int | None = None
    """The place of a MIG slice in its GPU, None for a whole one."""
    remarks: tuple[str, ...] = ()
    """What its owner could do better, though jobs may have it."""

    @property
    def slug(self) -> str:
        """Return what job files call its tier."""
        return slug_of(self.vendor, self.tier)

    @property
    def label(self) -> str:
        """Return what rows call it: "0", or "0.2" for a slice of it."""
        return str(self.index) if self.part is None else f"{self.index}.{self.part}"

    @property
    def uuid(self) -> str:
        """Return by what name owners and reports know it, "" where the driver says none."""
        return self.device.uuid

    @property
    def users(self) -> tuple[str, ...]:
        """Say who uses it, which is a reason as well while no job of this worker has it."""
        pids = ("of another container" if pid is None else pid for pid, _ in self.processes or ())
        return tuple(f"process {pid} uses it: one tenant per GPU at a time" for pid in pids)

    @property
    def problems(self) -> tuple[str, ...]:
        """Return every reason not to give it to a job now; none means that it is fit."""
        return self.defects + self.users

    def problems_but(self, lent: Collection[str]) -> tuple[str, ...]:
        """Return the same, where jobs of this worker have the GPUs that are `lent`: who uses these is no problem."""
        return self.defects if self.uuid in lent else self.problems


@dataclass(frozen=True)
class GpuProbe:
    """Hold what was found: the GPUs, and why there are none or fewer than expected."""

    gpus: tuple[GpuInfo, ...]
    driver: str = ""
    reason: str = ""
    answers: bool = True
    """Whether the driver answered at all."""
    asked: bool = True
    """Whether the driver was asked: where no process could be started for that, this says nothing of any GPU."""
    absent: bool = False
    """Whether this machine has no driver, so that nobody expects a GPU."""
    lost: tuple[tuple[int, str], ...] = ()
    """The GPUs that did not answer: their indices, and what the driver said."""
    vendor: Vendor = NVIDIA
    """Whose driver was asked."""


@dataclass(frozen=True, slots=True)
class Driver:
    """How the GPUs of one vendor are looked at: by a program that prints an answer, which `parse` reads. `names` is how
    owners name one, and `listing` the command that shows these names."""

    vendor: Vendor
    program: str
    parse: Callable[[Mapping[str, Any]], GpuProbe]
    names: re.Pattern[str]
    listing: str
