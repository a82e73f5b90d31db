"""Faults of machines, processes and chains: each is committed, taken back, and says what shows that it was there."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from hearth.local import devnet
from tests.chaos.market import ChaosMarket, Keeper, Lane
from tests.chaos.processes import Child
from tests.chaos.proxy import ALONE, Proxy, Usage, between
from tests.chaos.reorgs import MAX_DEPTH, _state, go_back
from tests.kit.disks import MIB, fill, small_disk
from tests.kit.liars import Lie
from tests.kit.running import Process, wait

READY_SECONDS = 60.0
DISK = 96 * MIB


@dataclass
class Scene:
    """One worker with its keeper, the providers of both, and chance."""

    market: ChaosMarket
    lane: Lane
    keeper: Keeper
    proxies: list[Proxy]
    usage: Usage
    rng: random.Random

    @property
    def unit(self) -> str:
        """Return the state of the lane's newest unit."""
        return _state(self.lane, self.lane.jobs[-1]).name if self.lane.jobs else "NONE"


def set_scene(
    market: ChaosMarket,
    stack: ExitStack,
    name: str,
    rng: random.Random,
    lies: Mapping[str, tuple[Lie, float]] = ALONE,
) -> Scene:
    """Start a worker on a small disk of its own (which needs root) and a keeper, behind providers that can fail."""
    usage = Usage()
    proxies = stack.enter_context(between(market.url, [lies], usage, rate=0.0, seed=rng.randrange(1 << 30)))
    lane = market.lane(name, alone=False)
    lane.use_rpc(proxies[0].url)
    # More than the spare file, which the journals give up first: what is still short then is told.
    lane.config.write_text(lane.config.read_text().replace('reserve = "1MiB"', 'reserve = "16MiB"'))
    stack.enter_context(small_disk(lane.home / "state", DISK))
    keeper = market.keeper(f"keeper-{name}", rpc=(proxies[0].url,), jitter="4s")
    lane.start()
    keeper.start()
    wait(lambda: lane.ready and keeper.ready, "both daemons work")
    return Scene(market, lane, keeper, proxies, usage, rng)


def kill_worker(scene: Scene) -> str:
    """kill -9, and a new process."""
    return _killed(scene, scene.lane)


def kill_keeper(scene: Scene) -> str:
    """The same of the keeper."""
    return _killed(scene, scene.keeper)


def _killed(scene: Scene, victim: Lane | Keeper) -> str:
    unit = scene.unit
    victim.kill()
    began = time.monotonic()
    victim.start()
    wait(lambda: victim.ready, "the next process works", READY_SECONDS)
    return f"killed with its unit {unit}, ready after {time.monotonic() - began:.1f} s"


def stop_worker(scene: Scene) -> str:
    """SIGSTOP for some seconds, as a machine that swaps or a laptop that sleeps."""
    return _stopped(scene, scene.lane.process)


def stop_keeper(scene: Scene) -> str:
    """The same of the keeper."""
    return _stopped(scene, scene.keeper.process)


def _stopped(scene: Scene, process: Process | None) -> str:
    assert process is not None
    unit, seconds = scene.unit, scene.rng.uniform(3, 10)
    os.kill(process.pid, signal.SIGSTOP)
    try:
        time.sleep(seconds)
        stat = Path(f"/proc/{process.pid}/stat").read_text()
    finally:
        os.kill(process.pid, signal.SIGCONT)
    return f"stopped for {seconds:.0f} s with its unit {unit}" if stat.rpartition(")")[2].split()[0] == "T" else ""


def chain_stalls(scene: Scene) -> str:
    """The only node takes connections and says nothing, for some seconds."""
    pid, seconds = devnet.status(scene.market.home).pid, scene.rng.uniform(3, 8)
    assert pid is not None
    unit = scene.unit
    os.kill(pid, signal.SIGSTOP)
    try:
        time.sleep(seconds)
    finally:
        os.kill(pid, signal.SIGCONT)
    return f"the chain stood still for {seconds:.0f} s with the unit {unit}"


def second_copy(scene: Scene) -> str:
    """A second worker on the same key and home: it has to be refused."""
    log = scene.lane.home / "second.log"
    log.unlink(missing_ok=True)
    environ = {"HEARTH_HOME": str(scene.market.user_home)}
    copy = Child(log, "worker", "--json", "--config", str(scene.lane.config), **environ)
    code = copy.wait(READY_SECONDS)
    text = log.read_text()
    return f"refused with exit {code}: KEY_IN_USE" if code == 3 and "KEY_IN_USE" in text else ""


def providers_fail(scene: Scene) -> str:
    """False answers for some seconds."""
    before = scene.usage.used.total()
    for proxy in scene.proxies:
        proxy.rate = 0.4
    time.sleep(scene.rng.uniform(5, 10))
    for proxy in scene.proxies:
        proxy.rate = 0.0
    used = scene.usage.used.total() - before
    return f"{used} false answers were used" if used else ""


def reorg(scene: Scene) -> str:
    """The newest blocks are replaced by empty ones, 1 to 64 of them."""
    depth, unit = scene.rng.randint(1, MAX_DEPTH), scene.unit
    go_back(scene.market.chain, depth, replaced=True)
    return f"{depth} blocks deep with the unit {unit}"


def disk_full(scene: Scene) -> str:
    """The disk of the worker's home has not one byte left, for some seconds; it must say so, and need no help."""
    told = scene.lane.log().count("the disk is full")
    rest = scene.lane.home / "state" / "filled"
    fill(rest)
    try:
        wait(partial(_tells, scene.lane, told), "the worker says that its disk is full", READY_SECONDS)
    finally:
        rest.unlink()
    return f"told with its unit {scene.unit}"


def _tells(lane: Lane, before: int) -> bool:
    return lane.log().count("the disk is full") > before


Fault = Callable[[Scene], str]
KILLS: tuple[Fault, ...] = (kill_worker, kill_keeper)
GENTLE: tuple[Fault, ...] = (stop_worker, stop_keeper, chain_stalls, second_copy, providers_fail, reorg, disk_full)
"""What a process lives through."""
FAULTS: tuple[Fault, ...] = (*KILLS, *GENTLE)
