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
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from hearth.base.errors import HearthError
from tests.chaos.alerts import RESOLVE_SECONDS, Firing, Prometheus, Window, judge, now, prometheus
from tests.chaos.evidence import lacking, nine_in_ten
from tests.chaos.faults import FAULTS, GENTLE, Fault, Scene, set_scene
from tests.chaos.lasting import DEAD, LASTING, change_key, hold, upgrade
from tests.chaos.market import ChaosMarket
from tests.chaos.reorgs import MAX_DEPTH
from tests.kit.running import Process, wait

EVERY_SECONDS = 20.0
SAMPLE_SECONDS = 1.0
TELL_SECONDS = 60.0
LASTING_SECONDS = 1800.0
"""How long a soak is that has to commit each lasting fault."""
MIN_SAMPLES = 9
"""How many say whether something grew: three for each third."""
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
    wanted: tuple[str, ...] = ()
    """Faults that it has to commit, however often."""
    wrong: list[str] = field(default_factory=list)

    def commit(self, name: str, scene: Scene, act: Callable[[], str | None]) -> None:
        """Do something to a pair of daemons, and note when, with what evidence, and what went wrong."""
        began = now()
        evidence: str | None = ""
        try:
            evidence = act()
        except (AssertionError, subprocess.TimeoutExpired, HearthError, OSError, ValueError, LookupError) as error:
            # A fault that could not be committed is named, and the hour goes on.
            self.wrong.append(f"{name} of {scene.lane.name}: {error!r}")
        finally:
            one = Committed(Window(name, scene.lane.name, began, now()), evidence)
            self.committed.append(one)
            self.on_fault(one)

    def unseen(self) -> list[str]:
        """Return a sentence for each kind of fault without the evidence that a soak has to have."""
        whole = [one for one in self.committed if one.evidence is not None]
        times = Counter(dict.fromkeys(self.wanted, 0))
        times.update(one.window.fault for one in whole)
        return lacking(times, Counter(one.window.fault for one in whole if one.evidence), nine_in_ten)

    def join(self, futures: Iterable[Future[None]]) -> None:
        """Wait for what ran beside the soak; what ended it early is wrong, since it saw or did nothing more."""
        for error in [future.exception() for future in futures]:
            if error is not None:
                self.wrong.append(f"a thread of the soak ended with {error!r}")


@dataclass(frozen=True)
class Committed:
    """A fault, and what shows that it was there: "" for nothing, None where the soak ended before it could."""

    window: Window
    evidence: str | None


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
        soak.wanted = ("upgrade", "change_key", *(LASTING if seconds >= LASTING_SECONDS else ()))
        pool = stack.enter_context(ThreadPoolExecutor(2 + len(scenes)))
        futures = [pool.submit(_sample, soak, watched, steady.lane.home / "state", stop)]
        futures += [pool.submit(scene.lane.feed, stop) for scene in scenes.values()]
        futures += [pool.submit(_hurt, soak, hurt, watcher, random.Random(seed), stop)]
        try:
            _commit(soak, scenes, rng, began, seconds, every)
        finally:
            stop.set()
            soak.join(futures)
            # What fired last may still be there for its time.
            windows = [one.window for one in soak.committed]
            soak.firings = watcher.history(since, now())
            soak.wrong += judge(windows, soak.firings, soak.factor)
            soak.wrong += soak.unseen()
        for name, scene in scenes.items():
            end(soak, name, scene)
        soak.wrong += [f"{name}: {wrong}" for name, of in soak.samples.items() for wrong in swollen(of)]
        disk = soak.samples["worker"]["disk"]
        left = disk[-1] - disk[0] if disk else 0.0
        if left > DISK_BASE + DISK_PER_JOB * len(steady.lane.jobs):
            soak.wrong.append(f"{len(steady.lane.jobs)} jobs left {left / MIB:.1f} MiB on the worker's disk")


def swollen(samples: Samples) -> list[str]:
    """Return a sentence for each quantity whose last third lies above its second by more than may be, or is unknown."""
    found = []
    for what, (factor, more) in GROWTH.items():
        values = samples.get(what, [])
        if len(values) < MIN_SAMPLES:
            found.append(f"{what} was sampled {len(values)} times, and {MIN_SAMPLES} are wanted")
            continue
        before, after = figures(values)
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
    soak.jobs += len(scene.lane.jobs)
    try:
        wait(partial(scene.lane.all_over, scene.lane.jobs), f"every job of {name} ends", 240)
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
    """Return the medians of the second and the last third, 0 of too few samples for thirds."""
    third = len(samples) // 3
    if not third:
        return 0.0, 0.0
    return statistics.median(samples[third : 2 * third]), statistics.median(samples[2 * third :])
