"""A container engine that is killed or restarted under running units: each runs again, and is paid once.

The engine is the campaign's own, with its socket held as a service manager holds it.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from hearth.protocol.types import JobId
from tests.chaos.evidence import lacking
from tests.chaos.market import SCRIPT, ChaosMarket, Lane
from tests.kit.engine import Engine, own_engine
from tests.kit.running import wait
from tests.worker.runtimes.engines import BUSYBOX

RUN_SECONDS = 3
END_SECONDS = 150.0
HOW: dict[str, Callable[[Engine], None]] = {"killed": Engine.kill, "stopped": Engine.stop}
"""What happens to an engine before the next one is started: kill -9, or SIGTERM as at an upgrade."""


@dataclass
class Restart:
    """One restart: how, under which job, and how soon that job was settled."""

    how: str
    job: JobId
    moment: float
    """Seconds since the run began."""
    seconds: float = 0.0
    """From the end of the engine to the end of the job."""
    evidence: str = ""
    """The journal's line on the unit that was run more than once; empty where the engine's end broke no run."""


def run_restarts(
    market: ChaosMarket, *, rounds: int, seed: int, on_restart: Callable[[Restart], None] = lambda one: None
) -> list[str]:
    """Restart an engine `rounds` times in each way under a worker; return what went wrong."""
    rng, wrong, began = random.Random(seed), list[str](), time.monotonic()
    ways = list(HOW) * rounds
    rng.shuffle(ways)
    seen = Counter[str]()
    with own_engine(BUSYBOX.partition("/")[0]) as engine:
        lane = market.lane("containers", "docker", engine=engine.host)
        # A program that obeys would seem to have ended well.
        lane.script = f"trap 'exit 0' TERM; sleep {RUN_SECONDS} & wait $!; {SCRIPT}"
        lane.start()
        wait(lambda: lane.ready, "the worker works")
        for how in ways:
            one = Restart(how, lane.post(), time.monotonic() - began)
            try:
                _under(lane, engine, one, rng.uniform(0, RUN_SECONDS / 2))
            except AssertionError as error:
                wrong.append(f"{how} under {one.job.hex()[:12]}: {error}")
            on_restart(one)
            seen[how] += bool(one.evidence)
        lane.stop()
    return wrong + lacking(Counter(ways), seen)


def _under(lane: Lane, engine: Engine, one: Restart, pause: float) -> None:
    """Restart the engine while a job runs, and see that the unit runs again and nothing is left of it."""
    wait(lambda: lane.containers(running=True), "the unit runs")
    time.sleep(pause)
    at = time.monotonic()
    HOW[one.how](engine)
    engine.start()
    lane.settled(one.job, seconds=END_SECONDS)
    one.seconds = time.monotonic() - at
    lane.assert_once(one.job)
    wait(lambda: not lane.containers(), "no container is left")
    (row,) = [row for row in lane.entries() if row.key.job == one.job]
    if row.tries > 1:
        one.evidence = f"{row.key} was run {row.tries} times"
