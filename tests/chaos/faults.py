"""Faults of machines, processes and chains: each is committed, taken back, and says what shows that it was there."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from hearth.local import devnet
from tests.chaos.gateways import HOW, Gateway, Larder, larder
from tests.chaos.market import ChaosMarket, Keeper, Lane
from tests.chaos.processes import Child
from tests.chaos.proxy import ALONE, Proxy, Usage, between
from tests.chaos.reorgs import MAX_DEPTH, go_back
from tests.kit.disks import MIB, fill, small_disk
from tests.kit.liars import Lie
from tests.kit.running import Process, wait
from tests.kit.wall_clock import Clock

READY_SECONDS = 60.0
DISK = 384 * MIB
HOUR = 3600
JUMPS = (2 * HOUR, -2 * HOUR, 24 * HOUR)
LIE_SECONDS = 20.0


@dataclass
class Scene:
    """One worker with its keeper, the providers of both, the gateways with its jobs' data, their clock, and chance."""

    market: ChaosMarket
    lane: Lane
    keeper: Keeper
    proxies: list[Proxy]
    usage: Usage
    rng: random.Random
    larder: Larder
    clock: Clock

    @property
    def unit(self) -> str:
        """Return the state of the lane's newest unit."""
        return self.lane.state(self.lane.jobs[-1]).name if self.lane.jobs else "NONE"


def set_scene(
    market: ChaosMarket,
    stack: ExitStack,
    name: str,
    rng: random.Random,
    lies: Mapping[str, tuple[Lie, float]] = ALONE,
) -> Scene:
    """Start a worker on a small disk of its own (which needs root) and a keeper, behind providers that can fail.

    Its jobs' data is at gateways that can lie. Both have one clock, which can jump.
    """
    usage = Usage()
    proxies = stack.enter_context(between(market.url, [lies], usage, rate=0.0, seed=rng.randrange(1 << 30)))
    lane = market.lane(name, alone=False)
    lane.use_rpc(proxies[0].url)
    # More than the spare file, which the journals give up first: what is still short then is told.
    lane.config.write_text(lane.config.read_text().replace('reserve = "1MiB"', 'reserve = "16MiB"'))
    stack.enter_context(small_disk(lane.home / "state", DISK))
    food = stack.enter_context(larder(market.home / f"larder-{name}"))
    lane.use_larder(food)
    keeper = market.keeper(f"keeper-{name}", rpc=(proxies[0].url,), jitter="4s")
    lane.clock = keeper.clock = clock = Clock(lane.home / "clock")
    lane.start()
    keeper.start()
    wait(lambda: lane.ready and keeper.ready, "both daemons work")
    return Scene(market, lane, keeper, proxies, usage, rng, food, clock)


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
    return f"stopped for {seconds:.0f} s with its unit {unit}" if _still(process.pid, seconds) else ""


def _still(pid: int, seconds: float) -> bool:
    """Stop a process for some seconds; say whether it stood."""
    os.kill(pid, signal.SIGSTOP)
    try:
        time.sleep(seconds)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
    finally:
        os.kill(pid, signal.SIGCONT)


def chain_stalls(scene: Scene) -> str:
    """The only node takes connections and says nothing, for some seconds."""
    pid, seconds = devnet.status(scene.market.home).pid, scene.rng.uniform(3, 8)
    assert pid is not None
    unit = scene.unit
    return f"the chain stood still for {seconds:.0f} s with the unit {unit}" if _still(pid, seconds) else ""


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
    evidence = go_back(scene.market.chain, depth, replaced=True)
    return f"{evidence}, with the unit {unit}" if evidence else ""


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


def gateways_stall(scene: Scene) -> str:
    """Every gateway takes connections and says nothing, for some seconds."""
    seconds, waiting = scene.rng.uniform(3, 8), 0
    for one in scene.larder.gateways:
        os.kill(one.pid, signal.SIGSTOP)
    try:
        end = time.monotonic() + LIE_SECONDS
        while not waiting and time.monotonic() < end:
            time.sleep(0.1)
            waiting = sum(one.waiting for one in scene.larder.gateways)
        time.sleep(seconds)
    finally:
        for one in scene.larder.gateways:
            os.kill(one.pid, signal.SIGCONT)
    return f"a request of {waiting} bytes was left unread for {seconds:.0f} s" if waiting else ""


def gateways_drip(scene: Scene) -> str:
    """Every gateway sends a byte, and soon another, until one of them was given up."""
    return _lied(scene, scene.larder.gateways, "drips", 1, "drips were given up")


def gateways_lie(scene: Scene) -> str:
    """All gateways but the last serve false blocks, floods, bombs, wrong lengths and redirects inside."""
    evidence = _lied(scene, scene.larder.gateways[:-1], "lies", 5, "false answers")
    assert not scene.larder.told()["trapped"], "a worker followed a redirect"
    return evidence


def _lied(scene: Scene, gateways: list[Gateway], how: str, enough: int, what: str) -> str:
    """Let gateways lie until `enough` of it was met, and then for as long as the unit is at it; count what was met."""
    before, wanted = scene.larder.told(), set(HOW)
    for one in gateways:
        one.says(how)
    try:
        end = time.monotonic() + LIE_SECONDS
        while time.monotonic() < end and _met(scene.larder.told() - before, wanted) < enough:
            time.sleep(0.1)
    finally:
        for one in gateways:
            one.says("truth")
    met = scene.larder.told() - before
    count = _met(met, wanted)
    return f"{count} {what} of {len(wanted & set(met))} kinds" if count else ""


def _met(told: Counter[str], wanted: set[str]) -> int:
    return sum(told[name] for name in wanted)


def clock_jumps(scene: Scene) -> str:
    """The wall clock of worker and keeper is two hours or a day off, for some seconds, and comes back."""
    seen = []
    for jump in scene.rng.sample(JUMPS, 2):
        scene.clock.set(jump)
        try:
            wait(
                partial(_dates, scene, jump), f"both daemons go on with a clock that is {jump:+d} s off", READY_SECONDS
            )
            time.sleep(scene.rng.uniform(1, 4))
        finally:
            scene.clock.set(0)
        seen.append(f"{jump:+d} s")
    return f"both daemons went on with a clock {' and '.join(seen)} off, with the unit {scene.unit}"


def _dates(scene: Scene, jump: int) -> bool:
    """Say whether both daemons' newest status has the false date."""
    dates = ((scene.lane, "updated"), (scene.keeper, "at"))
    said = [json.loads((one.home / "state" / "status.json").read_text())[name] for one, name in dates]
    return all(abs(date - time.time() - jump) < HOUR / 2 for date in said)


def _tells(lane: Lane, before: int) -> bool:
    return lane.log().count("the disk is full") > before


Fault = Callable[[Scene], str]
KILLS: tuple[Fault, ...] = (kill_worker, kill_keeper)
STRANGERS: tuple[Fault, ...] = (gateways_stall, gateways_drip, gateways_lie, clock_jumps)
"""What gateways and clocks do."""
GENTLE: tuple[Fault, ...] = (
    *(stop_worker, stop_keeper, chain_stalls, second_copy, providers_fail, reorg, disk_full),
    *STRANGERS,
)
"""What a process lives through."""
FAULTS: tuple[Fault, ...] = (*KILLS, *GENTLE)
