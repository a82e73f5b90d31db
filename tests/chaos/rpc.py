"""A market whose daemons hear false answers from their providers for some time, while jobs are posted and must end.

A worker and a keeper each with one provider that fails, with one that lags, with three of which one lies, and with
three of which two fail. In the end every provider is honest again, and every job must have ended well.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

from tests.chaos.evidence import lacking
from tests.chaos.market import ChaosMarket, Keeper, Lane
from tests.chaos.proxy import ALONE, BROKEN, LAGGING, LYING, Proxy, Usage, between
from tests.kit.running import wait

SETUPS = {
    "one that fails": ([ALONE], 0.35),
    "one that lags": ([LAGGING], 1.0),
    "one of three lies": ([LYING, {}, {}], 0.35),
    "two of three fail": ([BROKEN, BROKEN, {}], 0.35),
}
"""The faults of each provider, and the share of requests that are answered falsely where a fault fits."""
END_SECONDS = 240.0


@dataclass
class Pair:
    """A worker and a keeper with providers of one kind, and what these told each of them."""

    setup: str
    lane: Lane
    keeper: Keeper
    usages: dict[str, Usage]
    proxies: list[Proxy]


def run_rpc(market: ChaosMarket, *, seconds: float, seed: int, poll: float = 0.1) -> tuple[list[Pair], list[str]]:
    """Let every daemon hear false answers for `seconds`; return what was told and used, and what went wrong.

    `poll` is how often keepers look for a new block, in seconds.
    """
    wrong: list[str] = []
    with ExitStack() as stack:
        pairs = [_pair(market, stack, number, setup, seed, poll=poll) for number, setup in enumerate(SETUPS)]
        stop = threading.Event()
        with ThreadPoolExecutor(len(pairs)) as pool:
            fed = [pool.submit(pair.lane.feed, stop) for pair in pairs]
            time.sleep(seconds)
            stop.set()
        for one in fed:
            one.result()
        for pair in pairs:
            for proxy in pair.proxies:
                proxy.rate = 0.0
        for pair in pairs:
            try:
                wait(partial(pair.lane.all_over, pair.lane.jobs), f"every job of {pair.lane.name} ends", END_SECONDS)
            except AssertionError as error:
                wrong.append(f"{error}: {pair.lane.log()[-600:]} {pair.keeper.log()[-600:]}")
            for process, log in ((pair.lane.process, pair.lane.log()), (pair.keeper.process, pair.keeper.log())):
                assert process is not None
                if process.poll() is not None:
                    wrong.append(f"a daemon with {pair.setup} ended with {process.poll()}: {log[-600:]}")
            pair.lane.kill()
            pair.keeper.kill()
    return pairs, wrong + unheard(pairs)


def _pair(market: ChaosMarket, stack: ExitStack, number: int, setup: str, seed: int, *, poll: float) -> Pair:
    usages, proxies, urls = {}, [], {}
    for place, who in enumerate(("worker", "keeper")):
        usages[who] = Usage()
        faults, rate = SETUPS[setup]
        made = stack.enter_context(
            between(market.url, faults, usages[who], rate=0.0, seed=seed + 100 * number + 10 * place)
        )
        proxies += [proxy for proxy, table in zip(made, faults, strict=True) if table]
        urls[who] = tuple(proxy.url for proxy in made)
    lane = market.lane(f"rpc-{number}", alone=False)
    lane.use_rpc(*urls["worker"])
    keeper = market.keeper(f"keeper-{number}", poll=poll, rpc=urls["keeper"], jitter="4s")
    lane.start()
    keeper.start()
    wait(lambda: lane.ready and keeper.ready, f"{setup}: both daemons work")
    for proxy in proxies:
        proxy.rate = rate
    return Pair(setup, lane, keeper, usages, proxies)


def unheard(pairs: Sequence[Pair]) -> list[str]:
    """Return a sentence for each daemon that used no false answer, and each false answer that no daemon used."""
    times, seen = Counter[str](), Counter[str]()
    for pair in pairs:
        for who, usage in pair.usages.items():
            times[f"what a {who} hears of {pair.setup}"] = usage.told.total()
            seen[f"what a {who} hears of {pair.setup}"] = usage.used.total()
            times.update(usage.told)
            seen.update(usage.used)
    return lacking(times, seen)
