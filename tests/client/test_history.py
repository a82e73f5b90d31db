"""What an account spent and earned: each split to its job and party, all gas once, what is unknown said."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hearth.base.errors import UsageError
from hearth.chain.port import Call, Receipt
from hearth.chain.tx_journal import SignedTx, TxJournal
from hearth.client.job.history import block_from, history, keeper_pay
from hearth.protocol import words
from hearth.protocol.formulas import escrow_at_post, lock_key
from hearth.protocol.types import Unit
from tests.client.test_library import OneTransaction, _unit
from tests.client.test_parents import ACCOUNT, WELL
from tests.kit.fake_chain import Event
from tests.market.test_events import own_log
from tools import schemas

KEEPER, NODE_OWNER, TREASURY, OTHER = ("0x" + f"{number:02x}" * 20 for number in (0x61, 0x62, 0x63, 0x66))
GAS_PRICE = 10**9


class Market(OneTransaction):
    """A market whose transactions a test sends: one a block, by whom it says, with the gas that it says."""

    def __init__(self, home: Path) -> None:
        super().__init__()
        self.session.settings = SimpleNamespace(home=home, timeout=0)
        self.receipts: dict[bytes, Receipt] = {}
        self.nonces: dict[str, int] = {}
        self.sent_with: dict[bytes, int] = {}
        self.chain.receipt = lambda tx_hash, **most: self.receipts.get(tx_hash)  # type: ignore[method-assign]
        self.chain.nonce = lambda address, pending=False: self.nonces.get(address, 0)  # type: ignore[method-assign]
        self.chain.transaction = lambda tx_hash: SimpleNamespace(nonce=self.sent_with[tx_hash])  # type: ignore
        self.answer("Escrow", "locked", ["uint256"], [0])

    def by(self, sender: str, gas: int, events: list[Event] | None = None) -> bytes:
        """Mine a transaction with some events, or say who sent the last block's; return its hash."""
        block = self.chain.head() if events is None else self.chain.mine(events)
        self.sent_with[block.hash] = self.nonces.get(sender, 0)
        self.nonces[sender] = self.sent_with[block.hash] + 1
        facts: dict[str, Any] = {"ok": True, "to": None, "contract": None, "logs": ()}
        self.receipts[block.hash] = Receipt(
            tx_hash=block.hash,
            block_number=block.number,
            block_hash=block.hash,
            gas_used=gas,
            gas_price=GAS_PRICE,
            sender=sender,
            **facts,
        )
        return block.hash

    def split(self, *shares: tuple[str, int], controller: str = "", key: bytes = lock_key(ACCOUNT)) -> Event:
        """Return a split of a lock, by default of the submitter's jobs."""
        packed = tuple(words.pack(words.SHARE, {"account": int(who, 16), "amount": amount}) for who, amount in shares)
        packed += (0,) * (4 - len(packed))
        log = own_log("Split", controller=controller or self.network.jobs, key=key, shares=packed)
        return Event(self.network.escrow, log.topics, log.data)

    def withdrawn(self, account: str, amount: int) -> Event:
        log = own_log("Withdrawn", account=account, to=account, amount=amount)
        return Event(self.network.escrow, log.topics, log.data)


@pytest.fixture
def market(tmp_path: Path) -> Market:
    return Market(tmp_path)


def test_history__each_party__gets_its_own_of_every_split(market: Market) -> None:
    job = market.post(WELL)
    market.by(ACCOUNT, 100)
    his = market.post(WELL, submitter=OTHER)
    market.by(OTHER, 100)
    market.by(KEEPER, 7, [_unit(market, "Started", job), market.split((KEEPER, 2))])
    paid = [(NODE_OWNER, 50), (TREASURY, 3), (KEEPER, 5), (ACCOUNT, 40)]
    foreign = [(NODE_OWNER, 60), (TREASURY, 4), (ACCOUNT, 6), (OTHER, 30)]
    stake = market.split((NODE_OWNER, 900), controller=market.network.nodes, key=bytes(31) + b"\5")
    settled = [_unit(market, "Settled", job), market.split(*paid), _unit(market, "Settled", his)]
    market.by(KEEPER, 9, [*settled, market.split(*foreign, key=lock_key(OTHER)), stake])
    market.by(ACCOUNT, 11, [market.withdrawn(ACCOUNT, 30)])

    mine = history(market.reads, ACCOUNT)
    schemas.validate(mine)
    locked = escrow_at_post(market.view(job).terms)
    row, other = sorted(mine["jobs"], key=lambda one: not one["mine"])
    assert (row["job"], row["locked"], row["spent"], row["refunded"], row["earned"]) == (
        job,
        str(locked),
        "60",
        "40",
        "0",
    )
    assert (other["job"], other["mine"], other["spent"], other["earned"]) == (his, False, "0", "6")
    assert (mine["spent"], mine["refunded"], mine["earned"], mine["withdrawn"]) == ("60", "40", "6", "30")
    assert (mine["gas"], mine["gas_transactions"]) == (str(111 * GAS_PRICE), 2)
    assert (mine["gas_unknown"], mine["other_transactions"]) == (0, 0)

    keeper = history(market.reads, KEEPER)
    assert ([row["earned"] for row in keeper["jobs"]], keeper["spent"], keeper["locked"]) == (["7"], "0", "0")
    assert (keeper["gas"], keeper["gas_transactions"]) == (str(16 * GAS_PRICE), 2)
    owner = history(market.reads, NODE_OWNER)
    assert (owner["earned"], owner["from_nodes"], owner["gas"]) == ("110", "900", "0")
    # What a proposer, a settler and whoever shows a silence had is told apart from what nodes had for running jobs.
    silent = own_log("NodeLapsed", node=5, payee=KEEPER, fee=11)
    finished = [
        _unit(market, "Finished", job),
        market.split((NODE_OWNER, 50), (TREASURY, 3), (KEEPER, 5), (ACCOUNT, 4)),
    ]
    market.by(KEEPER, 9, [Event(market.network.nodes, silent.topics, silent.data), *finished])
    had = {who: keeper_pay(market.reads, who) for who in (KEEPER, NODE_OWNER, TREASURY, ACCOUNT)}
    assert had == {KEEPER: 2 + 5 + 11, NODE_OWNER: 0, TREASURY: 0, ACCOUNT: 6}


def test_history__checkpoint_that_is_paid_between__does_not_take_the_refund(market: Market) -> None:
    job = market.post(WELL)
    paid = own_log("CheckpointPaid", job_id=market.session.job_id(job), index=0, node=5, pay=20, fee=1)
    checkpoint = Event(market.network.jobs, paid.topics, paid.data)
    for_it, rest = market.split((NODE_OWNER, 19), (TREASURY, 1)), market.split((NODE_OWNER, 5), (ACCOUNT, 0))
    rest = market.split((NODE_OWNER, 5), (TREASURY, 1), (KEEPER, 2), (ACCOUNT, 70))
    market.chain.mine([_unit(market, "Settled", job), checkpoint, for_it, rest])
    (row,) = history(market.reads, ACCOUNT)["jobs"]
    assert (row["spent"], row["refunded"]) == ("28", "70")


def test_history__transactions_that_nobody_here_knows__are_counted_and_not_taken_for_0(
    market: Market, tmp_path: Path
) -> None:
    market.post(WELL)
    market.by(ACCOUNT, 100)
    market.nonces[ACCOUNT] = 5
    (tmp_path / "state").mkdir()
    facts = {"chain_id": market.network.chain_id, "genesis_hash": market.network.genesis_hash, "address": ACCOUNT}
    with closing(TxJournal(TxJournal.path_in(tmp_path / "state", *facts.values()), **facts)) as journal:
        lost = SignedTx(b"\x0c" * 32, b"", 1, 1, 1)
        intent = journal.signed(journal.intend("cancel/1", Call(None, b"")), 3, lost)
        receipt = next(iter(market.receipts.values()))
        journal.mined(intent, Receipt(**{**_fields(receipt), "tx_hash": lost.hash}))
        # Another process holds the journal: it is read all the same.
        report = history(market.reads, ACCOUNT)
    assert (report["gas"], report["gas_transactions"]) == (str(100 * GAS_PRICE), 1)
    assert (report["gas_unknown"], report["other_transactions"]) == (1, 3)


def _fields(receipt: Receipt) -> dict[str, Any]:
    return {name: getattr(receipt, name) for name in Receipt.__dataclass_fields__}


def test_history__since__counts_what_moved_since_then(market: Market, monkeypatch: pytest.MonkeyPatch) -> None:
    job = market.post(WELL)
    market.by(ACCOUNT, 100)
    market.chain.mine(count=1_000)
    market.by(KEEPER, 1, [_unit(market, "Settled", job), market.split((NODE_OWNER, 50), (ACCOUNT, 40))])
    report = history(market.reads, ACCOUNT, "10s")
    (row,) = report["jobs"]
    assert (row["mine"], row["locked"], row["spent"]) == (True, "0", "90")
    # No journal here says what it sent before, and so how many it has sent since.
    assert (report["gas"], report["gas_transactions"], report["other_transactions"]) == ("0", 0, None)
    (sent,) = (one.tx_hash for one in market.receipts.values() if one.sender == ACCOUNT)
    with monkeypatch.context() as patch:
        patch.setattr("hearth.chain.tx_journal.mined_in", lambda path: {sent})
        assert history(market.reads, ACCOUNT, "10s")["other_transactions"] == 0
    # A smart account settles a stranger's job and withdraws at once: what came is what went.
    his = market.post(WELL, submitter=OTHER)
    split = market.split((NODE_OWNER, 60), (TREASURY, 4), (ACCOUNT, 30), (OTHER, 6), key=lock_key(OTHER))
    market.by(ACCOUNT, 11, [_unit(market, "Settled", his), split, market.withdrawn(ACCOUNT, 30)])
    report = history(market.reads, ACCOUNT, "10s")
    assert (report["gas"], report["gas_transactions"], report["other_transactions"]) == (str(11 * GAS_PRICE), 1, 0)
    with pytest.raises(UsageError) as caught:
        history(market.reads, ACCOUNT, "yesterday")
    assert caught.value.hint


@pytest.mark.parametrize("second", range(98, 108))
def test_block_from__every_second__is_the_first_block_that_is_not_older(second: int, market: Market) -> None:
    times = [100, 101, 101, 105]
    blocks: dict[int, Any] = {7 + at: SimpleNamespace(timestamp=time) for at, time in enumerate(times)}
    port: Any = SimpleNamespace(block=blocks.get)
    wanted = next((7 + at for at, time in enumerate(times) if time >= second), 11)
    assert block_from(port, second, 7, 10) == wanted


def test_history__log_of_a_unit_that_is_none__is_a_stray_and_moves_nothing(market: Market) -> None:
    job = market.post(WELL)
    stray = _unit(market, "Settled", job, Unit())
    unknown = own_log("Settled", job_id=b"\x5a" * 32, index=0, node=5)
    market.chain.mine([Event(stray.address, unknown.topics, unknown.data), market.split((ACCOUNT, 40))])
    report = history(market.reads, ACCOUNT)
    assert (report["spent"], report["refunded"], report.get("strays", {}).get("count")) == ("0", "0", 1)
