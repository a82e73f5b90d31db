"""What a submitter pays to hold a stranger's slot with data that is nowhere: a real chain, a real worker process."""

from __future__ import annotations

from typing import Any

import pytest

from hearth.market.events import Declined, Started
from hearth.spec.resolved import ResolvedInput
from hearth.storage import cid as cids
from tests.kit.exchange import Exchange, Scenario, status
from tests.kit.running import wait
from tests.worker.test_shell import events_of

pytestmark = pytest.mark.e2e

WINDOW = 2
"""Seconds for which data may fail to come, of a lease of 600."""


def test_worker__data_that_is_nowhere__holds_no_slot_or_one_for_a_window_and_never_a_second(
    exchange: Exchange, scenario: Scenario
) -> None:
    config = scenario.home / "worker.toml"
    config.write_text(config.read_text().replace("[storage]\n", f'[storage]\nfetch_window = "{WINDOW}s"\n'))
    stake = exchange.market.node(scenario.node).stake
    # One has no first block; of the other the root is there and a leaf is not. One post is 1,000 units.
    gone = ResolvedInput(cid=str(cids.of(b"nowhere")), dst="/in/data", size=7)
    data, lost = scenario.input_without_a_leaf()
    rootless = scenario.post(inputs=(gone,), units=1000, newcomers=True)
    leafless = scenario.post(inputs=(data,), units=1000, newcomers=True)
    scenario.start()
    scenario.working()

    wait(lambda: events_of(exchange, leafless, Declined), "it is given back")
    at = [events_of(exchange, leafless, kind)[0].log.block_number for kind in (Started, Declined)]
    began, ended = (exchange.chain.block(number).timestamp for number in at)
    # 300 seconds before there was a window: half of the run. Blocks come each second, and decisions with them.
    assert ended - began <= WINDOW + 8
    # The slot is free, and goes to whose data is there.
    good = scenario.post()
    scenario.settled(good)

    def reasons() -> list[Any]:
        found = (status(scenario.home) or {}).get("reasons", {})
        return [found[job.hex()][0] for job in (rootless, leafless) if job.hex() in found]

    told, other = wait(lambda: len(reasons()) == 2 and reasons(), "both reasons are told")
    assert (told["reason"], other["reason"]) == ("retry_later", "retry_later")
    assert f"/in/data ({gone.cid}) cannot be had: " in told["detail"]
    missing = f"/in/data ({data.cid}) cannot be fetched: a folder gave no block {lost}"
    assert f"a unit of it was given back: {missing}" in other["detail"]
    assert [len(events_of(exchange, job, Started)) for job in (rootless, leafless)] == [0, 1]
    node = exchange.market.node(scenario.node)
    assert (node.stake, node.state.busy, node.state.bond) == (stake, 0, 0)
    assert sorted(one.key.job for one in scenario.entries()) == sorted([good, leafless])
