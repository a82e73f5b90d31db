"""Chains that answer unlike Ethereum, played over an anvil: a budget holds there, and keeper, worker and client see."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from eth_account import Account

from hearth.base.errors import ChainError, HearthError
from hearth.chain import rollup
from hearth.chain.port import Call
from hearth.chain.rpc import RpcChain
from hearth.chain.tx import ROLLUP_MARGIN, Sender, SenderConfig
from hearth.chain.tx_journal import TxJournal
from hearth.market.reads import Market
from hearth.protocol.types import NodeId
from tests.kit.anvil import bare_chain, need_anvil
from tests.kit.evm import CHAIN_ID
from tests.kit.live import LiveMarket
from tests.kit.other_chain import FIRST_BLOCK, OtherChain, other_chain
from worker.watch import Watcher

pytestmark = [pytest.mark.e2e, pytest.mark.net]

ACCOUNT = Account.from_key(b"\x11" * 32)
CALL = Call("0x" + "cd" * 20, b"", 0, "beat")
FULL = 10**20
GAS = 21_000
NODE = NodeId(1)


@pytest.fixture(scope="module")
def anvil() -> Iterator[str]:
    need_anvil()
    with bare_chain() as url:
        yield url


@contextmanager
def sender_on(chain: OtherChain, folder: Path, budget: int) -> Iterator[Sender]:
    """Yield a sender of an account that has all of its money and no day's budget spent."""
    honest = RpcChain([chain._upstream])
    honest.rpc("anvil_setBalance", ACCOUNT.address, hex(FULL))
    place = {"chain_id": 31337, "genesis_hash": honest.genesis_hash(), "address": ACCOUNT.address}
    journal = TxJournal(folder / "tx.db", **place)  # type: ignore[arg-type]
    config = SenderConfig(max_fee=10**11, day_budget=budget, timeout=20, poll=0.05, replace_after=10)
    yield Sender(RpcChain([chain.url]), ACCOUNT, journal, config)
    journal.close()


def spend(sender: Sender, times: int = 40) -> int:
    """Send until the budget refuses, and return how often that went well."""
    for number in range(times):
        try:
            sender.send(CALL, key=f"beat/{number}")
        except ChainError as error:
            assert error.code == "SPEND_CAP"
            return number
    raise AssertionError("the budget held nothing back")


@pytest.mark.parametrize("kind", ["honest", "nullgasprice", "nogasprice", "pendingreceipt"])
def test_send__chain_says_no_price_or_says_it_late__the_days_budget_holds_to_the_wei(
    anvil: str, tmp_path: Path, kind: str
) -> None:
    """Without a price each was free: a budget of 84e12 wei let 252e12 go."""
    with other_chain(anvil, kind) as chain, sender_on(chain, tmp_path, 84 * 10**12) as sender:
        heard: list[str] = []
        sender.port._providers._on_fault = lambda name, why: heard.append(why)  # type: ignore[attr-defined]
        assert spend(sender) > 0
        left = FULL - RpcChain([anvil]).balance(ACCOUNT.address)
        assert sender.journal.spent() == left <= 84 * 10**12 and heard == []


def test_send__rollup_takes_a_fee_for_the_chain_below__it_is_kept_back_and_counted(anvil: str, tmp_path: Path) -> None:
    honest, oracle = RpcChain([anvil]), rollup.ORACLES[0]
    price = honest.fees().price
    estimate = 12 * GAS * price
    # PUSH32 estimate, PUSH0, MSTORE, PUSH1 32, PUSH0, RETURN: the same for both questions.
    honest.rpc("anvil_setCode", oracle, "0x7f" + (estimate // 2).to_bytes(32, "big").hex() + "5f5260205ff3")
    budget = 100 * GAS * price
    try:
        with other_chain(anvil, "l1fee") as chain, sender_on(chain, tmp_path, budget) as sender:
            sent = spend(sender)
            gas = FULL - honest.balance(ACCOUNT.address)
            assert sent > 1 and len(chain.l1_fees) == sent
            assert sender.journal.spent() == gas + sum(chain.l1_fees.values()) <= budget
            assert sender.journal.attempts(sender.journal.newest("beat/"))[0].rollup_fee == ROLLUP_MARGIN * estimate  # type: ignore[arg-type]
            assert sender.send(CALL, key="beat/0").fee == 11 * GAS * price_of(chain, sender), "as told again"
    finally:
        honest.rpc("anvil_setCode", oracle, "0x")


def price_of(chain: OtherChain, sender: Sender) -> int:
    """Return the price per gas of the first call, by its receipt."""
    known = sender.journal.find("beat/0")
    assert known is not None and known.tx_hash is not None
    found = RpcChain([chain._upstream]).receipt(known.tx_hash)
    assert found is not None and found.gas_price is not None
    return found.gas_price


def test_send__receipts_tell_of_a_fee_that_nobody_estimates__the_next_one_keeps_as_much(
    anvil: str, tmp_path: Path
) -> None:
    price = RpcChain([anvil]).fees().price
    with other_chain(anvil, "l1fee") as chain, sender_on(chain, tmp_path, 20 * GAS * price) as sender:
        # The first takes eleven times its gas; the second would be sent, were only its gas kept.
        assert spend(sender) == 1
        assert sender.journal.spent() <= 20 * GAS * price


# ---- what a market's programs see ----


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveMarket]:
    need_anvil()
    live = LiveMarket(tmp_path_factory.mktemp("market"))
    assert live.world.register(slots=32) == NODE
    yield live
    live.close()


@pytest.mark.parametrize(
    ("kinds", "blooms"),
    [
        (("zerobloom",), False),
        (("onesbloom",), True),
        (("shift",), True),
        (("dupindex",), True),
        (("nullgasprice", "pendingreceipt", "stringid", "errornull", "notip"), True),
    ],
)
def test_market__on_a_chain_of_another_kind__is_seen_and_served(
    market: LiveMarket, kinds: tuple[str, ...], blooms: bool
) -> None:
    """With empty blooms worker and keeper were blind, without a word, and `doctor` had nothing to say."""
    world = market.world
    with other_chain(market.url, *kinds) as chain:
        network = market.network(deploy_block=FIRST_BLOCK + 1 if "shift" in kinds else 0)
        port = RpcChain([chain.url], chain_id=CHAIN_ID)
        keeper = market.keeper(port=port, network=network, home=kinds[0])
        keeper.start()
        keeper.cycle()
        seen = Watcher(Market(port, network), NODE)
        seen.sync()
        market.evm.catch_up()
        terms = world.post(match_window=12)
        assert ("propose", "mined") in {(one["action"], one["outcome"]) for one in keeper.cycle().outcomes}
        assert world.best(terms).node and keeper.ledger.gas_paid > 0
        seen.sync()
        assert world.id_of(terms) in seen.rows and keeper.reader.blooms is seen.blooms is blooms
        last = Market(port, network).newest(2, port.head())
        assert last[0].job_id == world.id_of(terms)
        assert keeper.sender is not None
        keeper.sender.journal.close()


def test_market__chain_counts_milliseconds__is_refused_by_name(market: LiveMarket) -> None:
    with other_chain(market.url, "ms") as chain, pytest.raises(HearthError, match="milliseconds"):
        market.keeper(port=RpcChain([chain.url], chain_id=CHAIN_ID), home="ms").start()
