"""A match on a real chain: what it needs lies here before the ack, or there is none."""

from __future__ import annotations

import pytest

from hearth.jobfile.resolved import ResolvedInput
from hearth.market.events import Declined, Started
from hearth.protocol.types import JobId, State
from hearth.storage import cid as cids
from hearth.storage import unixfs
from hearth.storage.cid import Cid
from tests.kit.exchange import Exchange, Scenario, status
from tests.kit.running import wait
from tests.worker.test_loop import events_of

pytestmark = pytest.mark.e2e

WINDOW = 8
"""Seconds of a match: what is fetched here comes from a folder, on a machine that may be busy."""


def change(scenario: Scenario, old: str, new: str) -> None:
    """Replace a line of the worker's settings."""
    config = scenario.home / "worker.toml"
    text = config.read_text()
    assert text.count(old) == 1
    config.write_text(text.replace(old, new))


def propose(exchange: Exchange, job: JobId, scenario: Scenario) -> None:
    """Have the node proposed by somebody else."""
    terms = exchange.market.terms_of(job).packed
    exchange.owner.send(exchange.market.calls.propose(terms, 0, scenario.node), key=f"propose/{job.hex()}")
    assert exchange.market.unit(job, 0).best.node == scenario.node


def awake(exchange: Exchange, scenario: Scenario) -> None:
    """Start the worker, and wait until its node can be proposed."""
    scenario.start()
    scenario.working()
    wait(lambda: exchange.market.node(scenario.node).state.beat, "the node beats")


def phases(scenario: Scenario) -> list[str]:
    """Return what the worker does now."""
    return [one["phase"] for one in (status(scenario.home) or {}).get("attempts", [])]


def test_worker__led_for_data_that_is_nowhere__acks_never_and_loses_nothing(
    exchange: Exchange, scenario: Scenario
) -> None:
    """Profit: a submitter and his keeper, in league, burn nothing of a node that they proposed for a poisoned job."""
    change(scenario, "confirmations = 0", "confirmations = 0\npropose = false")
    change(scenario, "[storage]\n", '[storage]\nfetch_window = "2s"\n')
    before = exchange.market.node(scenario.node)
    awake(exchange, scenario)
    data, lost = scenario.input_without_a_leaf()
    job = scenario.post(window=WINDOW, inputs=(data,))
    propose(exchange, job, scenario)

    def told() -> str:
        (reason, *_) = (status(scenario.home) or {}).get("reasons", {}).get(job.hex(), [{"reason": "", "detail": ""}])
        return str(reason["detail"]) if reason["reason"] == "retry_later" else ""

    why = wait(told, "it says why it takes nothing of the job")
    assert f": it was led, and not taken: /in/data ({data.cid}) cannot be fetched: a folder gave no block {lost}" in why
    # Its slot is free meanwhile.
    good = scenario.post()
    scenario.settled(good)
    lapsed = exchange.market.unit(job, 0).unit.window_end + exchange.market.policies().policy.ack_time
    wait(lambda: exchange.chain.head().timestamp > lapsed + 3, "the proposal lapses")
    assert scenario.state(job) is State.OPEN
    assert events_of(exchange, job, Started) == events_of(exchange, job, Declined) == []
    after = exchange.market.node(scenario.node)
    assert (after.stake, after.state.bond, after.state.quarantine) == (before.stake, 0, 0)
    for call in ("ack", "decline"):
        assert exchange.transactions_of(scenario.operator, call, scenario.first_block) == 0, call
    assert [row.key.job for row in scenario.entries()] == [good], "no journal and no report knows of the other"
    assert not list((scenario.home / "state" / "jobs").glob(f"{job.hex()}*"))


def blocks_of(scenario: Scenario, cid: Cid) -> set[Cid]:
    """Name a file's blocks."""
    if cid.codec == cids.RAW:
        return {cid}
    return {cid, *unixfs.links_of(cid, scenario.exchange.store.get_block(cid))}


def test_worker__led_and_all_is_here__acks_and_runs_without_the_jobs_blocks(
    exchange: Exchange, scenario: Scenario
) -> None:
    """Profit: who lets a node ack, and takes the data away then, has not made it decline."""
    change(scenario, "confirmations = 0", "confirmations = 2\npropose = false")
    awake(exchange, scenario)
    store = exchange.store
    entry = store.add_bytes(scenario.name.encode() + bytes(3 << 20))
    job = scenario.post(window=WINDOW, inputs=(ResolvedInput(cid=str(entry.cid), dst="/in/data", size=entry.size),))
    propose(exchange, job, scenario)
    wait(lambda: "ready, until the unit is taken" in phases(scenario), "all of it lies here")
    assert scenario.state(job) is State.OPEN
    for cid in blocks_of(scenario, entry.cid) | blocks_of(scenario, cids.parse(scenario.module.cid)):
        (store.root / "blocks" / cid.digest.hex()[:2] / cid.digest.hex()).unlink()
    scenario.settled(job)
    scenario.assert_once(job)
    assert exchange.transactions_of(scenario.operator, "ack", scenario.first_block) == 1


@pytest.mark.parametrize(
    "point",
    [
        "m3.fetched",
        *(pytest.param(point, marks=pytest.mark.deep) for point in ("", "m2.intent@attempt", "m8.broadcast@jobs.ack")),
    ],
)
def test_worker__killed_in_a_match__loses_nothing_and_submits_once(
    exchange: Exchange, scenario: Scenario, point: str
) -> None:
    """kill -9 with all of it here, before the ack, on its way, and once it goes on: the next process fetches again."""
    scenario.start(point)
    job = scenario.post(window=WINDOW)
    if point:
        scenario.died()
    else:
        wait(lambda: "ready, until the unit is taken" in phases(scenario), "all of it lies here")
        scenario.kill()
        assert scenario.entries() == []
    scenario.start()
    scenario.settled(job)
    scenario.working()
    scenario.assert_once(job)
    scenario.stop()
    assert scenario.submits() == 1 and scenario.sandboxes() == []
