"""What a provider refuses, and how it gets its node back: real workers on a real chain."""

from __future__ import annotations

import pytest

from hearth.market.events import Declined, Started
from hearth.protocol.types import State
from tests.kit.exchange import Exchange, Scenario, status
from tests.kit.running import wait
from tests.kit.town import hearth

pytestmark = pytest.mark.e2e


def test_worker__denied_submitter__costs_the_node_nothing_and_the_allowed_job_runs(
    exchange: Exchange, scenario: Scenario
) -> None:
    """What a cheat gains: nothing. Matched by a keeper, the denied job is not acked: no bond, no decline, no gas."""
    config, node = scenario.home / "worker.toml", scenario.node
    allowed, stranger = exchange.submitter, exchange.sender(3)
    config.write_text(
        config.read_text().replace("[accept]", f'[accept]\nsubmitters = ["{allowed.address}"]\nmin_pay = "1 wei"')
    )
    before = exchange.market.node(node)
    scenario.start()
    scenario.working()
    wait(lambda: exchange.market.node(node).state.beat, "the node beats")
    denied = scenario.post(window=1, by=stranger)
    terms = exchange.market.terms_of(denied).packed
    # A keeper knows nothing of a provider's wishes, and proposes whom the chain finds fit.
    exchange.owner.send(exchange.market.calls.propose(terms, 0, node), key=f"propose/{denied.hex()}")
    won = exchange.market.unit(denied, 0)
    assert won.best.node == node
    reasons = wait(lambda: (status(scenario.home) or {}).get("reasons", {}).get(denied.hex()), "the reason is told")
    assert reasons[0]["reason"] == "submitter_refused"
    lapsed = won.unit.window_end + exchange.market.policies().policy.ack_time
    wait(lambda: exchange.chain.head().timestamp > lapsed, "the proposal lapses")
    assert scenario.state(denied) is State.OPEN

    job = scenario.post()
    scenario.settled(job)
    scenario.assert_once(job)
    after = exchange.market.node(node)
    assert (after.stake, after.state.bond, after.state.quarantine) == (before.stake, 0, 0)
    taken = {event.job_id for event in exchange.logs() if isinstance(event, Started | Declined) and event.node == node}
    assert taken == {job}
    for call, count in (("propose", 0), ("ack", 0), ("decline", 0), ("claim", 1)):
        assert exchange.transactions_of(scenario.operator, call, scenario.first_block) == count, call

    network = ("--network", str(exchange.net.network_file))
    why = hearth(exchange.user_home, "worker", "why", denied.hex(), "--config", str(config), *network)
    assert f"the worker: submitter_refused: accept.submitters does not name {stranger.address}" in why.out
