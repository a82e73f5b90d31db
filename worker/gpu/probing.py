"""Look at this machine's GPUs, in a process of its own with a time limit; no GPU is a normal state with a reason."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from hearth.protocol.gpu_tiers import Vendor
from worker.gpu import amd, nvidia
from worker.gpu.port import Driver, GpuProbe

SECONDS: Final = 20.0
"""A driver without persistence mode initialises each GPU anew, which takes seconds; one that takes longer than this
hangs."""
DRIVERS: Final = (nvidia.DRIVER, amd.DRIVER)
ROOT: Final = Path(__file__).resolve().parents[2]


class Looks:
    """Ask the driver, never twice at a time: a process that a hung driver holds cannot be ended, even by SIGKILL."""

    def __init__(self, driver: Driver, seconds: float = SECONDS) -> None:
        self._driver = driver
        self._seconds = seconds
        self._lock = threading.Lock()
        self._held: subprocess.Popen[bytes] | None = None

    def probe(self) -> GpuProbe:
        """Return what there is now; never raises because there is none, or because the driver does not answer."""
        with self._lock:
            return replace(self._driver.parse(self._ask()), vendor=self._driver.vendor)

    def _ask(self) -> Mapping[str, Any]:
        if self._held is not None and self._held.poll() is None:
            return {"unavailable": "it has not answered an earlier question yet"}
        self._held = None
        try:
            child = subprocess.Popen(
                [sys.executable, "-P", "-m", self._driver.program],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                cwd="/",
                start_new_session=True,
            )
        except OSError as failed:
            return {"unavailable": f"no process could be started to ask it: {failed.strerror}", "asked": False}
        try:
            said, complaint = child.communicate(timeout=self._seconds)
        except subprocess.TimeoutExpired:
            self._held = child
            _end(child)
            return {"unavailable": f"it does not answer within {self._seconds:.0f} s"}
        if child.returncode:
            lines = complaint.decode("utf-8", "replace").strip().splitlines()
            how = f"signal {-child.returncode}" if child.returncode < 0 else lines[-1] if lines else "no word"
            return {"unavailable": f"its library ended the process that asked it: {how}"}
        try:
            found: Mapping[str, Any] = json.loads(said)
        except ValueError:
            return {"unavailable": "the process that asked it said no answer"}
        return found


def _end(child: subprocess.Popen[bytes]) -> None:
    """Kill a process, and wait a moment for its end: one that the kernel holds stays."""
    child.kill()
    for pipe in (child.stdout, child.stderr):
        if pipe is not None:
            pipe.close()
    with suppress(subprocess.TimeoutExpired):
        child.wait(1.0)


class _Kept(threading.local):
    """What drivers answered since a thread's `one_look` began, None outside."""

    answers: dict[str, GpuProbe] | None = None


_KEPT: Final = _Kept()
_LOOKS: Final = {driver.vendor.name: Looks(driver) for driver in DRIVERS}


@contextmanager
def one_look() -> Iterator[None]:
    """Ask each driver once at most while the context is open: for a command that speaks of one moment."""
    kept, _KEPT.answers = _KEPT.answers, {}
    try:
        yield
    finally:
        _KEPT.answers = kept


def drivers_of(names: Sequence[str]) -> list[Driver]:
    """Return the drivers whose GPUs are so named."""
    return [driver for driver in DRIVERS if any(driver.names.match(name) for name in names)]


def probe(names: Sequence[str] = ()) -> GpuProbe:
    """Return this machine's GPUs of one vendor, as they are now: of whom `names` are, else of the first who has any."""
    found = []
    for driver in drivers_of(names)[:1] or DRIVERS:
        found.append(probe_of(driver.vendor))
        # A driver without a GPU of its own hides no other's; one that fails is told.
        if found[-1].gpus or found[-1].lost or not (found[-1].absent or found[-1].answers):
            return found[-1]
    first = next((one for one in found if not one.absent), found[0])
    return replace(first, reason="; ".join(one.reason for one in found))


def probe_of(vendor: Vendor) -> GpuProbe:
    """Return this machine's GPUs of a vendor, as they are now."""
    answers = _KEPT.answers
    if answers is None:
        return _LOOKS[vendor.name].probe()
    if vendor.name not in answers:
        answers[vendor.name] = _LOOKS[vendor.name].probe()
    return answers[vendor.name]
