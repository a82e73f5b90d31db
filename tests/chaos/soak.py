"""A market under a fault every 20 seconds, whose daemons must neither grow nor lose a job.

What a pair of daemons that lives through it uses of memory, descriptors, threads and disk is sampled, and must be flat:
the last third of the samples beside the second, since a process fills its caches first. Prometheus watches, and its
alerts must be those that `tests.chaos.alerts.TABLE` names for the faults.
"""

from __future__ import annotations

import os
import random
import statistics
import subprocess
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from hearth.base.errors import HearthError
from tests.chaos.alerts import RESOLVE_SECONDS, Firing, Prometheus, Window, judge, now, prometheus
from tests.chaos.faults import FAULTS, GENTLE, Fault, Scene, set_scene
from tests.chaos.lasting import DEAD, LASTING, change_key, hold, upgrade
from tests.chaos.market import ChaosMarket
from tests.chaos.reorgs import MAX_DEPTH, _all_over
from tests.kit.running import Process, wait

EVERY_SECONDS = 20.0
SAMPLE_SECONDS = 1.0
TELL_SECONDS = 60.0
MIB = 1 << 20
GROWTH: dict[str, tuple[float, float]] = {
    "memory": (1.05, 4 * MIB),
    "descriptors": (1.0, 4),
    "threads": (1.0, 4),
}
"""What may be used in the end: so many times what was used before, and so much more."""
DISK_PER_JOB = 256 << 10
"""Bytes of journals and results that a job may leave, kept for a week."""

DISK_BASE = 8 * MIB
"""What the logs of two journals grow to before SQLite writes them from their start again."""
Samples = dict[str, list[float]]


@dataclass
class Soak:
    """What a soak came to: faults with their evidence, samples by daemon and quantity, and what went wrong.

    `on_fault` and `on_used` hear at once of each fault, and once a minute of what a daemon used since.
    """

    factor: float = 1.0
    on_fault: Callable[[Committed], None] = lambda one: None
    on_used: Callable[[str, Mapping[str, float]], None] = lambda name, used: None
    committed: list[Committed] = field(default_factory=list)
    firings: list[Firing] = field(default_factory=list)
    samples: dict[str, Samples] = field(default_factory=dict)
    jobs: int = 0
    wrong: list[str] = field(default_factory=list)

    def commit(self, name: str, scene: Scene, act: Callable[[], str]) -> None:
        """Do something to a pair of daemons, and note when, with what evidence, and what went wrong."""
        began, evidence = now(), ""
        try:
            evidence = act()
        except (AssertionError, subprocess.TimeoutExpired, HearthError, OSError, ValueError, LookupError) as error:
            # A fault that could not be committed is named, and the hour goes on.
            self.wrong.append(f"{name} of {scene.lane.name}: {error!r}")
        finally:
            one = Committed(Window(name, scene.lane.name, began, now()), evidence)
            self.committed.append(one)
            self.on_fault(one)


@dataclass(frozen=True)
class Committed:
    """A fault, and what shows that it was there."""

    window: Window
    evidence: str


def run_soak(market: ChaosMarket, soak: Soak, *, seconds: float, seed: int, every: float = EVERY_SECONDS) -> None:
    """Run the market for `seconds` with a fault `every` so many; needs root, for the workers' small disks.

    Of three workers and keepers one pair is hurt in what it lives through, one is killed as well and gets another
    version and another key, and one has what lasts until somebody acts. Whatever ends it, `soak` has what there was.
    """
    rng, stop = random.Random(seed), threading.Event()
    with ExitStack() as stack:
        scenes = {name: set_scene(market, stack, name, rng) for name in ("steady", "killed")}
        scenes["hurt"] = hurt = set_scene(market, stack, "hurt", rng, DEAD)
        market.chain.rpc("anvil_mine", hex(MAX_DEPTH + 4))
        watcher = stack.enter_context(prometheus(market.home / "prometheus", market.ports, soak.factor))
        began, since = time.monotonic(), now()
        steady = scenes["steady"]
        watched = {"worker": steady.lane.process, "keeper": steady.keeper.process}
        for name in watched:
            soak.samples[name] = defaultdict(list)
        threads = [threading.Thread(target=_sample, args=(soak, watched, steady.lane.home / "state", stop))]
        threads += [threading.Thread(target=_feed, args=(scene, stop)) for scene in scenes.values()]
        threads += [threading.Thread(target=_hurt, args=(soak, hurt, watcher, random.Random(seed), stop))]
        for thread in threads:
            thread.start()
        try:
            _commit(soak, scenes, rng, began, seconds, every)
        finally:
            stop.set()
            for thread in threads:
                thread.join()
            # What fired last may still be there for its time.
            windows = [one.window for one in soak.committed]
            soak.firings = watcher.history(since, now())
            soak.wrong += judge(windows, soak.firings, soak.factor)
        for name, scene in scenes.items():
            end(soak, name, scene)
        soak.wrong += [f"{name}: {wrong}" for name, of in soak.samples.items() for wrong in swollen(of)]
        disk = soak.samples["worker"]["disk"]
        left = disk[-1] - disk[0] if disk else 0.0
        if left > DISK_BASE + DISK_PER_JOB * len(steady.lane.jobs):
            soak.wrong.append(f"{len(steady.lane.jobs)} jobs left {left / MIB:.1f} MiB on the worker's disk")


def swollen(samples: Samples) -> list[str]:
    """Return a sentence for each quantity whose last third lies above its second by more than may be."""
    found = []
    for what, (factor, more) in GROWTH.items():
        values = samples.get(what, [])
        third = len(values) // 3
        if third < 3:
            continue
        before, after = statistics.median(values[third : 2 * third]), statistics.median(values[2 * third :])
        if after > before * factor + more:
            found.append(f"{what} grew from {before:.0f} to {after:.0f}")
    return found


def used_by(pid: int) -> dict[str, float]:
    """Return what a process uses: bytes of memory, descriptors, threads."""
    status = Path(f"/proc/{pid}/status").read_text()
    fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    return {
        "memory": int(fields["VmRSS"].split()[0]) * 1024.0,
        "threads": float(fields["Threads"]),
        "descriptors": float(len(os.listdir(f"/proc/{pid}/fd"))),
    }


def _commit(
    soak: Soak, scenes: dict[str, Scene], rng: random.Random, began: float, seconds: float, every: float
) -> None:
    """Commit one fault after the other, each kind before any comes again; and what an owner does at each third."""
    kinds: list[tuple[str, Fault]] = []
    owner = [(seconds * 2 / 3, change_key), (seconds / 3, upgrade)]
    while time.monotonic() - began < seconds or owner:
        at = time.monotonic()
        if owner and at - began >= owner[-1][0]:
            name, act = "killed", owner.pop()[1]
        else:
            if not kinds:
                kinds = [("steady", fault) for fault in GENTLE] + [("killed", fault) for fault in FAULTS]
                rng.shuffle(kinds)
            name, act = kinds.pop()
        soak.commit(act.__name__, scenes[name], partial(act, scenes[name]))
        time.sleep(max(0.0, every - (time.monotonic() - at)))


def _hurt(soak: Soak, scene: Scene, watcher: Prometheus, rng: random.Random, stop: threading.Event) -> None:
    """Commit one lasting fault after the other; the next begins when no alert fires any more."""
    kinds: list[str] = []
    while not stop.is_set():
        kinds = kinds or rng.sample(sorted(LASTING), len(LASTING))
        name = kinds.pop()
        soak.commit(name, scene, lambda name=name: hold(LASTING[name], name, scene, watcher, soak.factor, stop))  # type: ignore[misc]
        resolved = time.monotonic() + RESOLVE_SECONDS
        while not stop.wait(1.0) and time.monotonic() < resolved:
            with suppress(OSError):
                if not watcher.firing(scene.lane.name):
                    break


def _feed(scene: Scene, stop: threading.Event) -> None:
    """Post one job after the other; where the chain does not answer, the submitter tries again, as a person does."""
    while not stop.is_set():
        with suppress(HearthError):
            if not scene.lane.jobs or _all_over([(scene.lane, scene.lane.jobs[-1])]):
                scene.lane.post(match_window=4 if len(scene.lane.jobs) % 2 else 0)
        stop.wait(1.0)


def _sample(soak: Soak, watched: dict[str, Process | None], disk: Path, stop: threading.Event) -> None:
    told = time.monotonic()
    while not stop.wait(SAMPLE_SECONDS):
        for name, process in watched.items():
            assert process is not None
            with suppress(OSError):
                for what, value in used_by(process.pid).items():
                    soak.samples[name][what].append(value)
        with suppress(OSError):
            files = os.statvfs(disk)
            filled = (disk / "filled").exists()
            if not filled:
                soak.samples["worker"]["disk"].append(float((files.f_blocks - files.f_bfree) * files.f_frsize))
        if time.monotonic() - told >= TELL_SECONDS:
            told = time.monotonic()
            for name, samples in soak.samples.items():
                soak.on_used(name, {what: values[-1] for what, values in samples.items()})


def end(soak: Soak, name: str, scene: Scene) -> None:
    """Let every job end, and both daemons stop."""
    jobs = [(scene.lane, job) for job in scene.lane.jobs]
    soak.jobs += len(jobs)
    try:
        wait(partial(_all_over, jobs), f"every job of {name} ends", 240)
    except AssertionError as error:
        soak.wrong.append(f"{error}: {scene.lane.log()[-800:]} {scene.keeper.log()[-800:]}")
    for what, process in (("worker", scene.lane.process), ("keeper", scene.keeper.process)):
        assert process is not None
        if process.poll() is not None:
            soak.wrong.append(f"the {what} of {name} ended with {process.poll()}")
            continue
        process.terminate()
        process.wait(60)


def figures(samples: Sequence[float]) -> tuple[float, float]:
    """Return the medians of the second and the last third."""
    third = len(samples) // 3
    if not third:
        return 0.0, 0.0
    return statistics.median(samples[third : 2 * third]), statistics.median(samples[2 * third :])
