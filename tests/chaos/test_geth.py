"""A market on geth, deployed, run and rolled back by the public commands: the chain restarts, and forgets.

Geth keeps its state in memory until it is stopped. Killed, it goes back to its last clean stop: tens of blocks, with
every transaction in them and nothing in its pool. What a test node's rollback call imitates happens here by itself.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hearth.base.errors import ChainError, NotFoundError
from hearth.chain.port import Block, Call
from hearth.chain.rpc import RpcChain
from hearth.chain.tx import Sender, SenderConfig
from hearth.chain.tx_journal import TxJournal
from hearth.client.session import MAX_FEE
from hearth.local import devnet
from hearth.market.events import Reclaimed, Settled, Started, Submitted
from hearth.protocol.types import State
from tests.kit.anvil import Anvil, need_anvil
from tests.kit.geth import CHAIN_ID, NOBODY, Geth, need_geth
from tests.kit.own_market import OwnMarket
from tests.kit.require import require
from tests.kit.running import wait
from tests.kit.town import example_text
from tools.services.geth import BLOCK_GAS

pytestmark = [pytest.mark.deep, pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnMarket]:
    need_geth()
    require("ape", (Path(sys.executable).parent / "ape").exists(), "the dev dependencies are not installed")
    made = OwnMarket(tmp_path_factory.mktemp("own"))
    try:
        made.open()
        yield made
    finally:
        made.close()


def test_geth__killed__its_receipts_of_lost_blocks_are_not_believed(tmp_path: Path) -> None:
    """It serves them for ever, however long its new chain is: what they say is sent again, once."""
    geth = Geth(tmp_path)
    account, chain = devnet.account(0), RpcChain([geth.url])
    facts = {"chain_id": CHAIN_ID, "genesis_hash": chain.genesis_hash(), "address": account.address}
    try:
        with closing(TxJournal(tmp_path / "tx.db", **facts)) as journal:
            sender = Sender(chain, account, journal, SenderConfig(MAX_FEE, poll=0.1, timeout=60.0))
            calls = {f"pay/{number}": Call(NOBODY, b"", 10**number, "pay") for number in range(3)}
            before = {key: sender.send(call, key=key) for key, call in calls.items()}
            top = chain.head().number
            geth.kill()
            geth.start()
            assert chain.nonce(account.address) == 0
            # Its new chain is as long as the old one was.
            wait(lambda: chain.head().number > top, "blocks come", 60)
            assert sender.reconcile(chain.head()).reorged == len(calls)
            after = {key: sender.send(call, key=key) for key, call in calls.items()}
        assert chain.balance(NOBODY) == 111 and chain.nonce(account.address) == len(calls)
        for key, sent in after.items():
            assert sent.tx_hash == before[key].tx_hash and sent.block_hash != before[key].block_hash
    finally:
        geth.close()


def job_file(market: OwnMarket, name: str, epochs: int) -> str:
    """Write a job that trains for so many epochs, some 20 a second, and return its path.

    Its lease is long: a chain that went back shows one that began before all that a test did since.
    """
    path = market.home / f"{name}.yaml"
    path.write_text(
        example_text("digits", market.home)
        .replace("name: digits", f"name: {name}")
        .replace('"20"', f'"{epochs}"')
        .replace("runtime: 60s", "runtime: 20m")
        + "match: {newcomers: true}\n"
    )
    return str(path)


def state(market: OwnMarket, job: str) -> State | None:
    """Return the state of a job's only unit; None while the chain does not know the job, or does not answer."""
    try:
        found: State = market.unit(job).state
    except (ChainError, NotFoundError):
        return None
    return found


def accept(market: OwnMarket, job: str) -> None:
    """Pay for a job's result as its submitter, as soon as there is one: its node is new, and would wait for an hour."""
    wait(lambda: state(market, job) is State.SUBMITTED, "its result is here")
    market("job", "accept", job, "--account", "deployer")
    wait(lambda: state(market, job) is State.SETTLED, "the job is paid")


def running(market: OwnMarket, job: str) -> Block | None:
    """Return the newest block where a job runs in it."""
    head = market.chain.head()
    try:
        return head if market.unit(job, head.hash).state is State.RUNNING else None
    except NotFoundError:
        return None


def earnings(market: OwnMarket) -> dict[str, Any]:
    said: dict[str, Any] = market("worker", "earnings", "--config", str(market.worker_file), "--json").json
    return said


def verified(market: OwnMarket) -> dict[str, Any]:
    """Replay the market's events against its books, which must be equal."""
    report: dict[str, Any] = market("net", "verify", "--json").json
    assert report["solvent"] is True and report["reclaimed"] == report["failed"] == 0
    return report


@dataclass(frozen=True)
class Paid:
    """A job that was paid, what the worker had earned then, and a block with the job running before the chain's last
    clean stop."""

    job: str
    earned: dict[str, Any]
    stopped: Block


@pytest.fixture(scope="module")
def paid(market: OwnMarket) -> Paid:
    """Run a job to its payment; in the middle of it the chain is stopped and started again."""
    job = market("submit", job_file(market, "first", 60), "--account", "deployer", "-q").out.strip()
    stopped: Block = wait(lambda: running(market, job), "the job runs")
    market.geth.stop()
    market.geth.start()
    assert market.chain.block(stopped.number) == stopped
    accept(market, job)
    return Paid(job, earnings(market), stopped)


def test_geth__stopped_and_started_in_the_middle_of_a_job__it_is_paid(market: OwnMarket, paid: Paid) -> None:
    market.assert_alive()
    assert (paid.earned["paid"], paid.earned["slashed"]) == (1, "0") and int(paid.earned["income"]) > 0
    report = verified(market)
    assert (report["settled"], report["results_checked"]) == (1, 1)


def test_geth__every_block_again_on_anvil__the_same_gas_status_and_logs(market: OwnMarket, paid: Paid) -> None:
    """One life, from the deployment to the payment, on two clients: block for block at the same time and fees."""
    need_anvil()
    head, raw = market.chain.head().number, market.chain.rpc
    blocks = [raw("eth_getBlockByNumber", hex(number), False) for number in range(head + 1)]
    began = str(int(blocks[0]["timestamp"], 16))
    first = ("--chain-id", str(CHAIN_ID), "--gas-limit", str(BLOCK_GAS), "--timestamp", began)
    anvil = Anvil(*first, "--no-mining", "--order", "fifo", hardfork="osaka")
    try:
        other = RpcChain([anvil.url]).rpc
        seen = Counter[str]()
        for block in blocks[1:]:
            other("anvil_setNextBlockBaseFeePerGas", block["baseFeePerGas"])
            for tx in block["transactions"]:
                other("eth_sendRawTransaction", raw("eth_getRawTransactionByHash", tx))
            other("evm_setNextBlockTimestamp", int(block["timestamp"], 16))
            other("evm_mine")
            for tx in block["transactions"]:
                ours, theirs = (ask("eth_getTransactionReceipt", tx) for ask in (raw, other))
                assert theirs is not None, f"block {block['number']}: {tx} is not in the same block"
                for name in ("status", "gasUsed", "contractAddress", "effectiveGasPrice"):
                    assert ours.get(name) == theirs.get(name), (block["number"], tx, name)
                told = [[(log["address"], log["topics"], log["data"]) for log in one["logs"]] for one in (ours, theirs)]
                assert told[0] == told[1]
                seen["transactions"] += 1
        assert seen["transactions"] >= 10
    finally:
        anvil.close()


def test_geth__killed__what_the_chain_forgot_is_done_again_and_paid_once(market: OwnMarket, paid: Paid) -> None:
    second = job_file(market, "second", 20)
    posted = market("submit", second, "--account", "deployer", "-q").out.strip()
    market.geth.kill()
    market.geth.start()
    # The chain knows neither the second job nor the end of the first, which its worker tells it at once.
    assert market.chain.block(paid.stopped.number) == paid.stopped
    with pytest.raises(NotFoundError):
        market.unit(posted)
    try:
        accept(market, paid.job)
    except AssertionError as error:
        error.add_note(f"{market.geth.testify()}\n{market.log('worker')[-6000:]}")
        raise
    market.assert_alive()
    again = earnings(market)
    assert {name: again[name] for name in ("paid", "income", "slashed")} == {
        name: paid.earned[name] for name in ("paid", "income", "slashed")
    }
    assert "transactions left the chain" in market.log("worker")

    # The same command posts the same job, once, and it is paid.
    told = market("submit", second, "--account", "deployer", "--wait", "--json").json
    assert told["job"] == posted and told["results"]["verdict"] == "ok"
    accept(market, posted)
    counts = Counter(type(event) for event in market.events())
    assert (counts[Started], counts[Submitted], counts[Settled], counts[Reclaimed]) == (2, 2, 2, 0)
    last = earnings(market)
    assert (last["paid"], last["slashed"]) == (2, "0")
    report = verified(market)
    assert (report["jobs"], report["settled"], report["results_checked"]) == (2, 2, 2)
