"""A worker on a real chain that goes back: what the chain no longer knows is done again, however deep, and said."""

from __future__ import annotations

import pytest
import structlog.testing

from hearth.market.events import Started
from hearth.protocol.types import State
from tests.kit.exchange import Exchange, Scenario
from tests.kit.running import wait
from tests.worker.test_loop import events_of, working

pytestmark = pytest.mark.e2e

DEPTH = 600


def test_run__settled_job_is_rolled_back_by_600_blocks__is_claimed_run_and_settled_again(
    exchange: Exchange, scenario: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Claim, submit and settlement are final in the journal by then; the chain alone says what stands."""
    monkeypatch.setattr("hearth.chain.follow.LAG_SECONDS", 1.0)
    chain = exchange.chain
    job = scenario.post()
    with structlog.testing.capture_logs() as logs, working(scenario, finality=4) as running:
        scenario.settled(job)
        claimed = events_of(exchange, job, Started)[0].log.block_number
        missing = DEPTH - 1 - (chain.head().number - claimed)
        if missing > 0:
            chain.rpc("anvil_mine", hex(missing))
        journal = running.worker.sender.journal

        def is_final() -> bool:
            claim = journal.newest("claim/")
            return claim is not None and claim.state.value == "final"

        wait(is_final, "the claim is final in the journal")
        with exchange.still():
            chain.rpc("anvil_rollback", chain.head().number - claimed + 1)
            assert scenario.state(job) is State.OPEN
        scenario.settled(job)
        assert running.worker._watcher.reorgs >= 1
    scenario.assert_once(job)
    said = {line["event"]: line for line in logs if line["log_level"] == "warning"}
    assert said["the chain has gone back"]["to"] == claimed - 1
    again = said["transactions left the chain"]["sent_again"]
    assert any(key.startswith(f"claim/{job.hex()}") for key in again)
