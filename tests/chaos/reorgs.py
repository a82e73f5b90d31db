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
from dataclasses import dataclass
from functools import partial

from hearth.chain.rpc import RpcChain
from tests.chaos.evidence import lacking
from tests.chaos.market import ChaosMarket, Lane
from tests.kit.running import wait

MAX_DEPTH = 64
LIFE_SECONDS = 9.0
"""About what a job takes to its end."""
DEAD_AFTER = 600
"""A reorg takes the newest beats with it; no honest node is silent for that."""
END_SECONDS = 240.0
KINDS = ("replaced", "taken away")
EARLIER = 12
"""Jobs of a lane that 64 blocks may hold."""


@dataclass
class Reorg:
    """One reorg: how deep, of which kind, and the states that the lanes' units had."""

    depth: int
    kind: str
    moment: float
    states: Counter[str]
    evidence: str = ""
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
    times, seen = Counter[str](), Counter[str]()
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
            kind = rng.choice(KINDS)
            states = Counter(lane.state(lane.jobs[-1]).name for lane in made if lane.jobs)
            one = Reorg(depth, kind, time.monotonic() - began, states)
            one.evidence = go_back(market.chain, depth, replaced=kind == "replaced")
            at = time.monotonic()
            for future in futures:
                future.result()
            for lane in made:
                lane.submitter.reconcile()
            try:
                wait(partial(_settle_down, made), f"every job ends after a reorg of {one.depth}", END_SECONDS)
            except AssertionError as error:
                logs = [lane.log()[-600:] for lane in made if not lane.all_over(lane.jobs[-EARLIER:])]
                wrong.append(f"{error}: {logs}")
                break
            one.seconds = time.monotonic() - at
            on_reorg(one)
            times[kind] += 1
            seen[kind] += bool(one.evidence)
    for lane in made:
        lane.stop()
    return wrong + lacking(times, seen)


def go_back(chain: RpcChain, depth: int, *, replaced: bool) -> str:
    """Take the newest blocks away; with `replaced` as many empty ones come at once, at least the next ones do soon.

    Return what shows that they are gone. Not anvil_reorg: where blocks come by time, anvil 1.7.1 loses the whole state
    with it.
    """
    newest = chain.head()
    chain.rpc("anvil_rollback", depth)
    # Rolled back, its clock goes on from the older block's second: each reorg would leave the chain later.
    chain.rpc("evm_setTime", int(time.time()))
    if replaced:
        chain.rpc("anvil_mine", hex(depth + 1))
    gone = chain.rpc("eth_getBlockByHash", f"0x{newest.hash.hex()}", False) is None
    return f"{depth} blocks deep, {newest.number} was the newest and is gone" if gone else ""


def _post_late(lane: Lane, pause: float) -> None:
    time.sleep(pause)
    lane.post()


def _settle_down(lanes: Sequence[Lane]) -> bool:
    """Say whether every job has ended that a reorg can have touched: a deep one takes earlier jobs' posts with it."""
    over = [lane.all_over(lane.jobs[-EARLIER:]) for lane in lanes]
    return all(over)
