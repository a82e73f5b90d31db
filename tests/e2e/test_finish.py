"""An array that one worker runs: each result is settled with its submit, and the same call takes the next unit.

Real anvil processes, a block a second. A node on probation and a unit with a judge go by submit and settle as before.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hearth.market.events import Event, Finished, Settled, Started, Submitted
from hearth.protocol.types import JobId, State
from tests.kit.anvil import need_anvil
from tests.kit.exchange import Exchange, Scenario
from tests.kit.running import wait

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

UNITS = 10


@pytest.fixture(scope="module")
def exchange(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Exchange]:
    need_anvil()
    exchange = Exchange(tmp_path_factory.mktemp("finish"))
    try:
        yield exchange
    finally:
        exchange.close()


@pytest.fixture
def scenario(exchange: Exchange) -> Iterator[Scenario]:
    """Return a node that runs one unit at a time."""
    scenario = exchange.scenario(f"finish-{exchange.chain.head().number}")
    try:
        yield scenario
    finally:
        if scenario.process is not None and scenario.process.poll() is None:
            scenario.kill()


def of(exchange: Exchange, job: JobId, *kinds: type[Event]) -> list[Event]:
    return [one for one in exchange.logs() if isinstance(one, kinds) and getattr(one, "job_id", None) == job]


def taken_by_finish(exchange: Exchange, job: JobId) -> int:
    """Count the units that began in the transaction that ended the one before."""
    ends = {one.log.tx_hash for one in of(exchange, job, Finished)}
    return sum(one.log.tx_hash in ends for one in of(exchange, job, Started))


def test_array__one_slot__goes_from_unit_to_unit_by_one_call_each(
    exchange: Exchange, scenario: Scenario, capsys: pytest.CaptureFixture[str]
) -> None:
    earned = exchange.market.credit(exchange.owner.address)
    scenario.start()
    scenario.season()
    job = scenario.post(units=UNITS)
    scenario.settled(job, UNITS - 1)
    scenario.stop()
    for index in range(UNITS):
        scenario.assert_once(job, index)
    ends = of(exchange, job, Finished)
    assert [one.index for one in ends] == list(range(UNITS)) and not of(exchange, job, Submitted, Settled)
    assert taken_by_finish(exchange, job) == UNITS - 1
    calls = {name: exchange.transactions_of(scenario.operator, name, scenario.first_block)
             for name in ("claim", "submit", "finish", "settle", "settle_batch")}  # fmt: skip
    assert calls == {"claim": 1, "submit": 0, "finish": UNITS, "settle": 0, "settle_batch": 0}, calls
    # The settler's pay is the owner's too: all that the array held but for the fees of the market and what came back.
    fees = sum(one.pay - one.fee for one in ends)
    reward = exchange.market.terms_of(job).terms.keeper_fee // 8
    assert exchange.market.credit(exchange.owner.address) - earned == fees + UNITS * reward
    blocks = ends[-1].log.block_number - ends[0].log.block_number
    with capsys.disabled():
        print(f"\n{UNITS - 1} units in {blocks} blocks of a second, one slot")


@pytest.mark.parametrize("point", ["m7.signed@jobs.finish", "m8.broadcast@jobs.finish", "m9.mined@jobs.finish"])
def test_kill__around_a_finish_that_takes_the_next_unit__loses_nothing_and_pays_once(
    exchange: Exchange, scenario: Scenario, point: str
) -> None:
    scenario.start(point)
    scenario.season()
    job = scenario.post(units=3)
    scenario.died()
    states = {key: state for key, state in scenario.transactions().items() if key.startswith("finish/")}
    assert list(states.values()) == [{"m7": "signed", "m8": "broadcast", "m9": "mined"}[point[:2]]], states
    journal = {row.key.index: row for row in scenario.entries() if row.key.job == job}
    assert sorted(journal) == [0, 1] and journal[1].phase.value == "intent", "what it takes is noted before it is sent"
    scenario.start()
    for index in range(3):
        scenario.settled(job, index)
        scenario.assert_once(job, index)
    scenario.working()
    scenario.stop()
    ends = {one.log.tx_hash: one.index for one in of(exchange, job, Finished)}
    begun = {one.index: ends.get(one.log.tx_hash) for one in of(exchange, job, Started)}
    # A process that has just begun has not read the job's spec again: it may claim the last unit by a call of its own.
    assert len(ends) == 3 and begun[1] == 0 and begun[2] in (1, None)
    assert scenario.sandboxes() == [] and "signed" not in scenario.transactions().values()


def test_kill__state_lost_with_a_finish_under_way__the_next_unit_is_found_on_the_chain(
    exchange: Exchange, scenario: Scenario
) -> None:
    scenario.start("m8.broadcast@jobs.finish")
    scenario.season()
    job = scenario.post(units=2)
    scenario.died()
    wait(lambda: scenario.state(job, 0) is State.SETTLED, "what was sent is mined")
    scenario.forget()
    scenario.start()
    scenario.settled(job, 1)
    scenario.stop()
    for index in range(2):
        scenario.assert_once(job, index)
    assert taken_by_finish(exchange, job) == 1


def test_probation__result_of_a_new_node__is_submitted_and_settled_after_the_delay(exchange: Exchange) -> None:
    fresh = exchange.scenario("fresh")
    try:
        fresh.start()
        job = fresh.post(units=2, newcomers=True)
        fresh.settled(job, 1)
        fresh.stop()
    finally:
        if fresh.process is not None and fresh.process.poll() is None:
            fresh.kill()
    ends = of(exchange, job, Submitted, Settled)
    assert len(ends) == 4 and not of(exchange, job, Finished)
    at = {(type(one), one.index): exchange.chain.block(one.log.block_number).timestamp for one in ends}
    delay = exchange.market.policies().policy.fresh_delay
    assert all(at[Settled, index] - at[Submitted, index] >= delay > 0 for index in range(2))
