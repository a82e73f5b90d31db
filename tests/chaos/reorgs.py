"""Reorgs of every depth from 1 to 64 while units are in each state: what left the chain is done again, and once.

A run posts a job in every lane, waits for a random moment of their lives, replaces the newest blocks by empty ones (or
takes them away), and goes on until every job has ended. Nodes, keys and coin lie deeper than any reorg.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from hearth.base.errors import NotFoundError
from hearth.chain.rpc import RpcChain
from hearth.protocol.types import JobId, State
from tests.chaos.market import ChaosMarket, Lane
from tests.kit.running import wait

MAX_DEPTH = 64
LIFE_SECONDS = 9.0
"""About what a job takes to its end."""
DEAD_AFTER = 600
"""A reorg takes the newest beats with it; no honest node is silent for that."""
END_SECONDS = 240.0
EARLIER = 12
"""Jobs of a lane that 64 blocks may hold."""


@dataclass
class Reorg:
    """One reorg: how deep, of which kind, and the states that the lanes' units had."""

    depth: int
    kind: str
    moment: float
    states: Counter[str]
    seconds: float = 0.0
    """From the reorg to the end of every job."""


def depths(rng: random.Random, runs: int) -> list[int]:
    """Return a depth for each run: every one of 1 to 64 before any comes again."""
    found: list[int] = []
    while len(found) < runs:
        found += rng.sample(range(1, MAX_DEPTH + 1), MAX_DEPTH)
    return found[:runs]


def run_reorgs(
    market: ChaosMarket, *, runs: int, lanes: int, seed: int, began: float, on_reorg: Callable[[Reorg], None]
) -> list[str]:
    """Reorganise the chain `runs` times under `lanes` workers; return what went wrong."""
    rng, wrong = random.Random(seed), []
    made = [market.lane(f"lane-{number}") for number in range(lanes)]
    for lane in made:
        lane.start()
    wait(lambda: all(lane.ready for lane in made), "the workers work")
    market.chain.rpc("anvil_mine", hex(MAX_DEPTH + 4))
    with ThreadPoolExecutor(lanes) as pool:
        for depth in depths(rng, runs):
            starts = [rng.uniform(0, LIFE_SECONDS / 2) for _ in made]
            futures = [pool.submit(_post_late, lane, pause) for lane, pause in zip(made, starts, strict=True)]
            time.sleep(rng.uniform(1.0, LIFE_SECONDS))
            jobs = [(lane, lane.jobs[-1]) for lane in made if lane.jobs]
            kind = rng.choice(("replaced", "taken away"))
            one = Reorg(depth, kind, time.monotonic() - began, _states(jobs))
            go_back(market.chain, depth, replaced=kind == "replaced")
            at = time.monotonic()
            for future in futures:
                future.result()
            # A deep reorg takes earlier jobs with it, their posts too.
            jobs = [(lane, job) for lane in made for job in lane.jobs[-EARLIER:]]
            for lane in made:
                lane.submitter.reconcile()
            try:
                wait(partial(_all_over, jobs), f"every job ends after a reorg of {one.depth}", END_SECONDS)
            except AssertionError as error:
                logs = [lane.log()[-600:] for lane, job in jobs if not _state(lane, job).terminal]
                wrong.append(f"{error}: {_states(jobs)} {logs}")
                break
            one.seconds = time.monotonic() - at
            on_reorg(one)
    for lane in made:
        lane.stop()
    return wrong


def go_back(chain: RpcChain, depth: int, *, replaced: bool) -> None:
    """Take the newest blocks away; with `replaced` as many empty ones come at once, at least the next ones do soon.

    Not anvil_reorg: where blocks come by time, anvil 1.7.1 loses the whole state with it.
    """
    chain.rpc("anvil_rollback", depth)
    # Rolled back, its clock goes on from the older block's second: each reorg would leave the chain later.
    chain.rpc("evm_setTime", int(time.time()))
    if replaced:
        chain.rpc("anvil_mine", hex(depth + 1))


def _post_late(lane: Lane, pause: float) -> None:
    time.sleep(pause)
    lane.post()


def _state(lane: Lane, job: JobId) -> State:
    """Return a unit's state; NONE where the chain does not know its job (any more)."""
    with suppress(NotFoundError):
        return lane.state(job)
    return State.NONE


def _states(jobs: Sequence[tuple[Lane, JobId]]) -> Counter[str]:
    return Counter(_state(lane, job).name for lane, job in jobs)


def _all_over(jobs: Sequence[tuple[Lane, JobId]]) -> bool:
    """Say whether every job has ended; a post that left the chain is sent again, as `hearth submit` does."""
    over = True
    for lane, job in jobs:
        state = _state(lane, job)
        if state is State.NONE:
            lane.submitter.reconcile()
        over = over and state.terminal
    return over
