"""Measure how long a posted job waits for a real worker process, beyond the chain's own block time.

The chain mines each transaction at once, so what is left is ours: the post is seen in the logs, the worker notices it,
reads and checks the spec, simulates, signs and claims, and the lease is seen in the logs. Written to
bench/results/start.json with the machine's description; absolute times are reported, never asserted.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import threading
import time
from pathlib import Path

import click

from bench.bench_match import machine
from hearth.market.events import JobPosted, Started, topic_of
from hearth.protocol.types import JobId
from tests.kit.exchange import Exchange, Scenario

OUT = Path(__file__).parent / "results" / "start.json"
LOOK = 0.005
"""Seconds between two looks at the logs."""


def _first_seen(exchange: Exchange, event: type[JobPosted] | type[Started], from_block: int) -> float:
    """Return when an event after `from_block` was first visible to a reader, on the monotonic clock."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        head = exchange.chain.head().number
        jobs, topics = [exchange.net.network.jobs], [[topic_of(event)]]
        if head >= from_block and exchange.chain.logs(jobs, topics, from_block=from_block, to_block=head):
            return time.monotonic()
        time.sleep(LOOK)
    raise click.ClickException(f"no {event.__name__} within 60 s")


def _wait_for_start(scenario: Scenario) -> float:
    """Post one open-claim job and return the milliseconds from its post's log to its start's log."""
    exchange = scenario.exchange
    block = exchange.chain.head().number + 1
    posted: list[JobId] = []
    post = threading.Thread(target=lambda: posted.append(scenario.post(newcomers=True)))
    post.start()
    seen = _first_seen(exchange, JobPosted, block)
    started = _first_seen(exchange, Started, block)
    post.join()
    scenario.settled(posted[0])
    return 1_000 * (started - seen)


@click.command()
@click.option("--rounds", default=20, show_default=True, help="Jobs to post, one after another.")
def main(rounds: int) -> None:
    """Post jobs to one running worker and write the median and the worst wait."""
    with tempfile.TemporaryDirectory() as folder:
        exchange = Exchange(Path(folder))
        try:
            scenario = exchange.scenario("start", turns=1_000)
            exchange.chain.rpc("evm_setIntervalMining", 0)
            exchange.chain.rpc("evm_setAutomine", True)
            scenario.start()
            scenario.working()
            try:
                waits = [_wait_for_start(scenario) for _ in range(rounds)]
            finally:
                scenario.stop()
        finally:
            exchange.close()
    result = {
        "machine": machine(),
        "rounds": rounds,
        "post_to_start_ms": round(statistics.median(waits), 1),
        "post_to_start_ms_worst": round(max(waits), 1),
    }
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    click.echo(f"{OUT.name}: {result['post_to_start_ms']} ms from post to start, beyond the block")


if __name__ == "__main__":
    main()
