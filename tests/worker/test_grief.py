"""What strangers' jobs cost a node, and those who post them: a real chain, a real worker."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hearth.chain.port import Call, hex_of
from hearth.jobfile.resolved import ResolvedInput
from hearth.local import devnet
from hearth.market.abi import codec
from hearth.market.events import Declined, Started, Submitted
from hearth.protocol.types import SENTINEL, JobId, Runtime, Terms
from hearth.storage import cid as cids
from tests.kit.exchange import Exchange, Scenario, status
from tests.kit.liars import Asked, lying
from tests.kit.running import wait
from tests.worker.test_hostile_rpc import use_rpc
from tests.worker.test_loop import events_of, working

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
    # 300 seconds before there was a window: half of the run. A busy machine decides and sends some blocks later.
    assert ended - began <= WINDOW + 60
    # The slot is free, and goes to whose data is there.
    good = scenario.post()
    scenario.settled(good)

    def reasons() -> list[Any]:
        found = (status(scenario.home) or {}).get("reasons", {})
        return [found[job.hex()][0] for job in (rootless, leafless) if job.hex() in found]

    def both_wait() -> list[Any]:
        found = reasons()
        return found if [one["reason"] for one in found] == ["retry_later"] * 2 else []

    # While the good job holds the slot, that may be the reason.
    told, other = wait(both_wait, "both reasons are told")
    assert f"/in/data ({gone.cid}) cannot be had: " in told["detail"]
    missing = f"/in/data ({data.cid}) cannot be fetched: a folder gave no block {lost}"
    assert f"a unit of it was given back: {missing}" in other["detail"]
    assert [len(events_of(exchange, job, Started)) for job in (rootless, leafless)] == [0, 1]
    node = exchange.market.node(scenario.node)
    assert (node.stake, node.state.busy, node.state.bond) == (stake, 0, 0)
    assert sorted(one.key.job for one in scenario.entries()) == sorted([good, leafless])


class Counting:
    """An honest provider that notes each beat that is sent, and whose units each round reads: a job per call."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        """The beats and the rounds, in the order in which they began."""
        self.rounds: list[list[JobId]] = []
        self._beat = codec("NodeRegistry").selector("beat").hex()
        views = (("Lens", "jobs"), ("Lens", "units"), ("JobRegistry", "load"))
        self._views = {codec(contract).selector(name).hex(): name for contract, name in views}

    def __call__(self, asked: Asked) -> None:
        if asked.method == "eth_sendRawTransaction" and self._beat in asked.params[0]:
            self.begun.append("beat")
        if asked.method == "eth_call":
            data = str(asked.params[0].get("data") or asked.params[0]["input"])[2:]
            name = self._views.get(data[:8])
            if name == "jobs":
                self.begun.append(name)
                self.rounds.append([])
            elif name is not None:
                self.rounds[-1].append(JobId(bytes.fromhex(data[8:72])))
        asked.forward()


class Attacker:
    """One party of two accounts: one posts arrays, the other's node is proposed for a unit of each."""

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self.node = exchange.scenario("helper", runtime=Runtime.WASM | Runtime.DOCKER)
        self.poster = devnet.account(5).address
        exchange.chain.rpc("anvil_impersonateAccount", self.node.operator)

    def send(self, sender: str, call: Call) -> None:
        """Have a transaction mined with the next block."""
        sent = {"from": sender, "to": call.to, "data": hex_of(call.data), "value": hex(call.value), "gas": hex(10**6)}
        self.exchange.chain.rpc("eth_sendTransaction", sent)

    def post(self, terms: Terms) -> Terms:
        """Post an array whose spec is nowhere."""
        terms = replace(terms, submitter=self.poster.lower(), spec=bytes([7] * 32), match_window=300)
        self.send(self.poster, self.exchange.market.calls.post(terms))
        return terms

    def touch(self, arrays: list[Terms]) -> None:
        """Have a unit of each array proposed to his own node, which never takes it."""
        market, mine = self.exchange.market, lambda: self.exchange.chain.rpc("anvil_mine", hex(1))
        self.send(self.node.operator, market.calls.beat(self.node.node))
        mine()
        for terms in arrays:
            self.send(self.poster, market.calls.propose(terms, SENTINEL, self.node.node))
        mine()
        headers = [market.header(market.job_id(terms)) for terms in arrays]
        assert all(header is not None and header.touched == 1 for header in headers)


def test_run__a_strangers_arrays__are_read_within_one_bound_while_own_leases_are_run_and_beats_go_out(
    exchange: Exchange, scenario: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Profit: arrays at the least price cost the node that they are aimed at no beat, no lease and no stake.

    The bound is lowered to two calls of a round; four arrays meet it, and eight do not move it.
    """
    bound, some = 2, 4
    monkeypatch.setattr("worker.rows.PAGES", bound)
    monkeypatch.setattr("worker.rows.PAGES_LED", bound - 1)
    market, attacker, provider = exchange.market, Attacker(exchange), Counting()
    own = scenario.post(units=2, newcomers=True)
    model = market.terms_of(own).terms
    arrays = [attacker.post(replace(model, salt=salt)) for salt in range(2 * some)]
    needs = replace(model.needs, runtimes=Runtime.DOCKER)
    foreign = [attacker.post(replace(model, salt=1_000 + salt, needs=needs)) for salt in range(some)]
    attacker.touch(arrays[:some] + foreign)

    def read(rounds: list[list[JobId]]) -> set[JobId]:
        return {job for jobs in rounds for job in jobs}

    first, later = ({market.job_id(terms) for terms in half} for half in (arrays[:some], arrays[some:]))
    stake = market.node(scenario.node).stake
    with lying(exchange.url, provider) as proxy:
        use_rpc(scenario, proxy.url)
        with working(scenario):
            wait(lambda: first <= read(provider.rounds), "each has its turn")
            few = provider.rounds[:]
            attacker.touch(arrays[some:])
            wait(lambda: first | later <= read(provider.rounds[len(few) :]), "each has its turn again")
            wait(lambda: events_of(exchange, own, Submitted), "its own lease is taken, run and submitted")
            beat = market.node(scenario.node).state.beat
            wait(lambda: market.node(scenario.node).state.beat > beat, "it beats on")
    many = provider.rounds[len(few) :]
    for rounds in (few, many):
        assert max(sum(job != own for job in jobs) for jobs in rounds) == bound, rounds
    assert max(jobs.count(own) for jobs in many) == 1, "a page of its own lease's, beside the bound"
    assert not read(provider.rounds) & {market.job_id(terms) for terms in foreign}, "it can never take them"
    assert provider.begun.index("beat") < provider.begun.index("jobs"), "the beat waits for nobody's jobs"
    assert market.node(scenario.node).stake == stake
