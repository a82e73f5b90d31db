"""The worker's loop over real HTTP providers that lie, in front of a real chain: it works on, and pays for no lie."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest
from eth_utils.crypto import keccak

from hearth.chain.port import hex_of
from hearth.market.events import JobPosted, topic_of
from hearth.protocol import formulas, words
from hearth.protocol.types import JobId, Terms
from tests.kit import liars
from tests.kit.exchange import Exchange, Scenario
from tests.kit.liars import Asked, Lie, lying
from tests.kit.running import wait
from tests.worker.test_loop import state_of, working

pytestmark = pytest.mark.e2e


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who lies is asked again soon, so that a short test hears many lies."""
    monkeypatch.setattr("hearth.chain.providers._MAX_PAUSE", 0.3)


def use_rpc(scenario: Scenario, *urls: str) -> None:
    config = scenario.home / "worker.toml"
    config.write_text(config.read_text().replace(f'rpc = ["{scenario.exchange.url}"]', f"rpc = {json.dumps(urls)}"))


def test_run__two_of_three_providers_hostile__the_node_stays_active_and_settles(
    exchange: Exchange, scenario: Scenario
) -> None:
    with ExitStack() as stack:
        first = stack.enter_context(lying(exchange.url, *liars.BROKEN))
        second = stack.enter_context(lying(exchange.url, *reversed(liars.BROKEN)))
        use_rpc(scenario, first.url, second.url, exchange.url)
        with working(scenario, rpc_timeout=0.3) as running:
            job = scenario.post()
            scenario.settled(job)
            wait(lambda: first.counts.total() > len(liars.BROKEN) < second.counts.total(), "every lie was told")
            assert state_of(scenario)["status"] == "active"
            registry = running.worker.metrics.registry
            for liar in (first, second):
                assert registry.get_sample_value("hearth_worker_rpc_faults_total", {"provider": liar.url})
    scenario.assert_once(job)
    assert not reverted(scenario)


class Inventor:
    """A provider that tells one plausible story: another head, a job that nobody posted, no money, dear gas."""

    def __init__(self, exchange: Exchange, terms: Terms) -> None:
        self.network = exchange.net.network
        self.job: JobId = exchange.market.job_id(terms)
        self.terms = terms
        self.told: Counter[str] = Counter()

    def __call__(self, asked: Asked) -> None:
        """Lie where there is a lie for it, else tell the truth, so that it is asked on."""
        lie: Lie | None = getattr(self, asked.method, None)
        if lie is None:
            asked.forward()
            return
        self.told[asked.method] += 1
        lie(asked)

    def eth_getLogs(self, asked: Asked) -> None:
        from eth_abi.abi import encode

        (query,) = asked.params
        true = asked.truth()
        posted = {
            "address": self.network.jobs,
            "topics": [hex_of(topic_of(JobPosted)), hex_of(self.job), "0x" + "00" * 12 + self.terms.submitter[2:]],
            "data": hex_of(encode([formulas.TERMS_TYPE, "bytes32[]"], [words.pack_terms(self.terms), []])),
            "blockNumber": query.get("fromBlock", "0x1"),
            "blockHash": query.get("blockHash", hex_of(b"\5" * 32)),
            "transactionHash": hex_of(b"\6" * 32),
            "logIndex": "0x63",
        }
        asked.say([*true, posted])

    def eth_call(self, asked: Asked) -> None:
        true = asked.truth()
        asked.say("0x" + "00" * (len(true) // 2 - 1))

    def eth_getTransactionCount(self, asked: Asked) -> None:
        asked.say(hex(int(asked.truth(), 16) + 7))

    def eth_getTransactionReceipt(self, asked: Asked) -> None:
        asked.say(None)

    def eth_sendRawTransaction(self, asked: Asked) -> None:
        asked.say(hex_of(keccak(bytes.fromhex(asked.params[0][2:]))))

    def eth_estimateGas(self, asked: Asked) -> None:
        asked.say("0x5208")

    def eth_maxPriorityFeePerGas(self, asked: Asked) -> None:
        asked.say(hex(10**14))

    def eth_getBalance(self, asked: Asked) -> None:
        asked.say("0x0")


def reverted(scenario: Scenario) -> list[Any]:
    """List the operator's mined transactions that reverted, or that paid more than 20 gwei for gas."""
    chain, found = scenario.exchange.chain, []
    for number in range(scenario.first_block, chain.head().number + 1):
        for tx in chain.rpc("eth_getBlockByNumber", hex(number), True)["transactions"]:
            if tx["from"].lower() == scenario.operator:
                receipt = chain.receipt(bytes.fromhex(tx["hash"][2:]))
                assert receipt is not None
                if not receipt.ok or receipt.gas_price > 20 * 10**9:
                    found.append(receipt)
    return found


def test_run__one_of_three_providers_lies_plausibly__no_lie_is_worked_or_paid_for(
    exchange: Exchange, scenario: Scenario
) -> None:
    job = scenario.post()
    inventor = Inventor(exchange, replace(exchange.market.terms_of(job).terms, salt=7))
    with lying(exchange.url, inventor) as liar:
        use_rpc(scenario, liar.url, exchange.url, exchange.url)
        with working(scenario) as running:
            scenario.settled(job)
            outvoted = running.worker._market.port.counts["outvoted"]  # type: ignore[attr-defined]
            assert inventor.job not in running.worker._watcher.rows
    assert outvoted and inventor.told["eth_call"]
    assert {entry.key.job for entry in scenario.entries()} == {job}
    scenario.assert_once(job)
    assert not reverted(scenario)


def test_run__the_only_provider_lies_about_the_nonce_once__the_key_is_healed(
    exchange: Exchange, scenario: Scenario
) -> None:
    lies: list[str] = []

    def lie(asked: Asked) -> None:
        if asked.method == "eth_estimateGas":
            lies.append("what follows is the nonce to sign for")
        if asked.method == "eth_getTransactionCount" and asked.params[1] == "pending" and len(lies) == 1:
            asked.say(hex(int(asked.truth(), 16) + 5))
        else:
            asked.forward()

    with lying(exchange.url, lie) as liar:
        use_rpc(scenario, liar.url)
        with working(scenario):
            wait(lambda: state_of(scenario).get("status") == "active", "the first beat is mined")
    assert lies
    assert {f"gap/{nonce}" for nonce in range(5)} <= set(scenario.transactions())


def test_run__the_only_provider_serves_garbage_for_words__the_loop_outlives_it(
    exchange: Exchange, scenario: Scenario
) -> None:
    garbage: list[str] = []

    def lie(asked: Asked) -> None:
        if asked.method == "eth_call" and garbage:
            asked.say("0x" + garbage[0])
        else:
            asked.forward()

    with lying(exchange.url, lie) as liar:
        use_rpc(scenario, liar.url)
        with working(scenario) as running:
            wait(lambda: state_of(scenario).get("status") == "active", "it is active")
            for words_of in ("ff" * 32 * 7, "", "01", "00" * 32 * 40):
                garbage[:] = [words_of]
                wait(lambda: running.worker._pauses.failures, f"it notices {words_of}", 30)
                garbage.clear()
                wait(lambda: not running.worker._pauses.failures, "it goes on", 30)
            assert running.thread.is_alive()
