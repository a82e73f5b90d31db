"""worker.requests on a scripted chain: who has a call at each moment, what is refused, and what is sent how often."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from eth_account import Account

from hearth.base.errors import ChainError, ConfigError, FundsError, HearthError, RefusedError
from hearth.chain.port import Call
from hearth.chain.tx import Sender, SenderConfig, Sent
from hearth.chain.tx_journal import TxJournal
from hearth.client.prepared import Prepared
from hearth.client.session import MAX_FEE
from hearth.market.abi import codec
from hearth.market.reads import Market
from hearth.protocol.types import NodeId
from tests.kit import build
from tests.kit.fake_chain import FakeChain
from worker.home import hold
from worker.requests import KEEP_SECONDS, MAX_TAKEN, VALID_SECONDS, Desk, RunningWorker

NODE = NodeId(3)
ACCOUNT = Account.from_key(b"\x11" * 32)
IDENTITY = "1f" * 16
MINE = ACCOUNT.address.lower()


@dataclass
class Rig:
    """One home with its desk, and the command's view of it."""

    home: Path
    chain: FakeChain
    market: Market
    desk: Desk
    command: RunningWorker
    journal: TxJournal
    checks: int = 0

    def prepared(self, call: Call | None = None, **changes: Any) -> Prepared:
        stake = self.market.calls.add_stake(NODE, MINE, 5)
        return replace(Prepared("stake", MINE, call or stake, 0, "key"), **changes)

    def check(self) -> None:
        """Count how often it is looked whether a call can be paid."""
        self.checks += 1

    def send(self, prepared: Prepared) -> list[Sent] | None:
        """Ask as a command does."""
        return self.command.send(prepared, self.check)

    def files(self) -> list[str]:
        return sorted(path.suffix for path in (self.home / "requests").glob("*.*") if path.name != "command.lock")

    def ask(self, prepared: Prepared, *, asked: float | None = None, **changes: Any) -> Path:
        """Write a request as a command does, and return its place."""
        document = {**prepared.document(self.market.network), **changes}
        place = self.home / "requests" / "ab12.asked"
        when = int(time.time() if asked is None else asked)
        place.write_text(json.dumps({"id": IDENTITY, "asked": when, "tx": document}))
        return place

    def outcome(self, place: Path) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(place.with_suffix(".done").read_text())
        return found

    def mine(self) -> None:
        """Mine a block, which the worker's loop meets with a look at what it has sent."""
        self.chain.mine()
        self.desk._sender.reconcile()

    def reads(self, name: str, contract: str = "NodeRegistry") -> None:
        """Let the chain accept a function."""
        address = self.market.network.contracts[contract]
        self.chain.on_call(address, codec(contract).selector(name), lambda call, block: b"")


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    chain = FakeChain()
    chain.set_balance(MINE, 10**18)
    network = build.network(chain)
    market = Market(chain, network)
    facts = {"chain_id": network.chain_id, "genesis_hash": network.genesis_hash, "address": MINE}
    with closing(TxJournal(tmp_path / "tx.db", **facts)) as journal:
        sender = Sender(chain, ACCOUNT, journal, SenderConfig(MAX_FEE, poll=0.01))
        session = SimpleNamespace(network=network, tell=lambda *_: None, settings=SimpleNamespace(timeout=0.3))
        command = RunningWorker(tmp_path, MINE, session, patience=0.3)  # type: ignore[arg-type]
        made = Rig(tmp_path, chain, market, Desk(tmp_path, market, sender, NODE), command, journal)
        made.reads("add_stake")
        yield made


# ---- the command's side ----


def test_send__no_worker__is_the_commands_own(rig: Rig) -> None:
    assert rig.send(rig.prepared()) is None
    assert rig.send(rig.prepared(sender="0x" + "22" * 20)) is None
    assert rig.files() == []


def test_send__worker_of_another_key__is_the_commands_own(rig: Rig) -> None:
    with hold(rig.home):
        assert rig.send(rig.prepared(sender="0x" + "22" * 20)) is None


def test_send__worker_that_takes_nothing_up__is_taken_back(rig: Rig) -> None:
    with hold(rig.home), pytest.raises(ConfigError) as caught:
        rig.send(rig.prepared())
    assert caught.value.code == "WORKER_SILENT" and "nothing was sent" in caught.value.message
    assert rig.checks == 1
    assert rig.files() == []


def test_send__command_before_left_its_call_and_no_worker_came__is_withdrawn_and_sent_here(rig: Rig) -> None:
    left(rig)
    assert rig.files() == [".asked"]
    assert rig.send(rig.prepared()) is None
    assert rig.files() == []
    rig.desk.serve()
    assert rig.chain.sent == []


def left(rig: Rig) -> Path:
    """Leave the call of `rig.prepared()` as a command does that is killed while it waits."""

    class Killed(BaseException):
        pass

    def killed(place: Path, action: str) -> None:
        kept.append((place.with_suffix(".asked"), place.with_suffix(".asked").read_text()))
        raise Killed

    kept: list[tuple[Path, str]] = []
    command = RunningWorker(rig.home, MINE, rig.command._session)
    command._wait = killed  # type: ignore[assignment, method-assign]
    with hold(rig.home), suppress(Killed):
        command.send(rig.prepared(), rig.check)
    ((path, text),) = kept
    path.write_text(text)
    return path


def test_send__taken_up_by_a_worker_that_stopped__sends_nothing_beside_it(rig: Rig) -> None:
    left(rig)
    rig.desk.serve()
    assert rig.files() == [".taken"] and len(rig.chain.sent) == 1
    for _ in range(2):
        with pytest.raises(ChainError) as caught:
            rig.send(rig.prepared())
        assert caught.value.code == "TX_PENDING" and "hearth worker start" in caught.value.hint
    with hold(rig.home), pytest.raises(ChainError) as caught:
        rig.send(rig.prepared())
    assert caught.value.code == "TX_PENDING" and "not mined after" in caught.value.message
    # Another call is another matter.
    assert rig.send(rig.prepared(rig.market.calls.add_stake(NODE, MINE, 6))) is None


def test_send__outcome_that_a_killed_command_never_read__is_told_once_as_of_then(rig: Rig) -> None:
    path = left(rig)
    rig.desk.serve()
    rig.mine()
    rig.desk.serve()
    assert rig.files() == [".done"]
    rig.checks = 0
    found = rig.send(rig.prepared())
    # What is paid already need not be there a second time.
    assert rig.checks == 0
    assert found is not None and [(one.label, one.repeated, one.gas_used > 0) for one in found] == [
        ("nodes.add_stake", True, True)
    ]
    assert rig.files() == [] and rig.send(rig.prepared()) is None
    assert not path.exists() and len(rig.chain.sent) == 1


def test_send__outcome_that_is_older_than_it_is_kept__is_no_answer_to_a_new_call(rig: Rig) -> None:
    for age, told in ((KEEP_SECONDS - 60, True), (KEEP_SECONDS + 60, False)):
        path = left(rig)
        path.unlink()
        done = path.with_suffix(".done")
        done.write_text(json.dumps({"sent": [], "error": None}))
        os.utime(done, times=(time.time() - age,) * 2)
        assert (rig.send(rig.prepared()) is not None) is told
        assert rig.files() == []


def test_send__outcome_of_a_worker_that_died_after_it__closes_the_request(rig: Rig) -> None:
    path = left(rig)
    rig.desk.serve()
    request = path.with_suffix(".taken").read_text()
    rig.mine()
    rig.desk.serve()
    path.with_suffix(".taken").write_text(request)
    assert rig.send(rig.prepared()) is not None
    assert rig.files() == []


def test_send__error_that_a_killed_command_never_read__is_tried_again(rig: Rig) -> None:
    path = left(rig)
    outcome = {"sent": [], "error": {**RefusedError("no").as_dict()["error"], "exit_code": 5}}
    path.with_suffix(".done").write_text(json.dumps(outcome))
    path.unlink()
    assert rig.send(rig.prepared()) is None
    assert rig.files() == []


@pytest.mark.parametrize(
    "error", [RefusedError("an ask is pending", reason="nodes: an ask is pending"), FundsError("short")]
)
def test_send__what_the_worker_met__is_raised_as_it_was(rig: Rig, error: HearthError, monkeypatch: Any) -> None:
    def start(call: Call, *, key: str) -> Any:
        raise error

    monkeypatch.setattr(rig.desk._sender, "start", start)
    path = left(rig)
    rig.desk.serve()
    with hold(rig.home), pytest.raises(type(error)) as caught:
        rig.command._wait(path.with_suffix(""), "stake")
    assert caught.value.as_dict() == error.as_dict()
    assert rig.files() == []


# ---- the worker's side ----


def test_serve__same_request_again_and_again__is_sent_once(rig: Rig) -> None:
    place = rig.ask(rig.prepared())
    for _ in range(3):
        rig.desk.serve()
    assert rig.files() == [".taken"] and len(rig.chain.sent) == 1 and rig.desk.busy
    rig.mine()
    rig.desk.serve()
    (sent,) = rig.outcome(place)["sent"]
    assert (sent["label"], sent["block_number"]) == ("nodes.add_stake", rig.chain.head().number)
    assert rig.files() == [".done"] and not rig.desk.busy
    # A worker that died before it let go of the request says the same again, and sends nothing.
    rig.ask(rig.prepared())
    rig.desk.serve()
    assert rig.outcome(place)["sent"] == [sent] and len(rig.chain.sent) == 1


@pytest.mark.parametrize("age", [VALID_SECONDS + 60, -VALID_SECONDS - 60])
def test_serve__request_of_another_day__is_not_sent_but_one_under_way_is_brought_to_its_end(rig: Rig, age: int) -> None:
    place = rig.ask(rig.prepared(), asked=time.time() - age)
    rig.desk.serve()
    assert rig.outcome(place)["error"]["code"] == "REQUEST_OLD" and rig.chain.sent == []
    rig.ask(rig.prepared())
    rig.desk.serve()
    rig.desk._clock = lambda: time.time() + age
    rig.desk.serve()
    rig.mine()
    rig.desk.serve()
    assert rig.outcome(place)["error"] is None and len(rig.chain.sent) == 1


STRANGER = "0x" + "33" * 20


@pytest.mark.parametrize(
    ("build", "changes", "code"),
    [
        (lambda calls: calls.add_stake(NodeId(4), MINE, 5), {}, "NOT_YOURS"),
        (lambda calls: calls.set_operator(NODE, STRANGER), {}, "NOT_YOURS"),
        (lambda calls: calls.offer_owner(NODE, STRANGER), {}, "NOT_YOURS"),
        (lambda calls: calls.withdraw(STRANGER, 5), {}, "NOT_YOURS"),
        (lambda calls: calls.add_stake(NODE, MINE, 5), {"from": STRANGER}, "NOT_YOURS"),
        (lambda calls: calls.add_stake(NODE, MINE, 5), {"chain_id": 1}, "WRONG_MARKET"),
        (lambda calls: calls.add_stake(NODE, MINE, 5), {"to": STRANGER}, "WRONG_MARKET"),
        (lambda calls: calls.add_stake(NODE, MINE, 5), {"data": "0x" + "00" * 36}, "BAD_TX"),
        (lambda calls: calls.add_stake(NODE, MINE, 5), {"value": "-1"}, "BAD_TX"),
        (lambda calls: calls.add_stake(NODE, MINE, 5), {"approve": None}, "BAD_TX"),
        (lambda calls: calls.add_stake(NODE, MINE, 5), {"approve": "5"}, "BAD_TX"),
        (lambda calls: calls.add_stake(NODE, MINE, 5), {"value": float("inf")}, "BAD_TX"),
        (lambda calls: calls.add_stake(NODE, MINE, 5), {"value": str(10**400)}, "BAD_TX"),
        (lambda calls: calls.add_stake(NODE, MINE, 5), {"action": "x" * (1 << 16)}, "BAD_TX"),
    ],
)
def test_serve__what_is_not_its_owners_for_its_node__is_refused(
    rig: Rig, build: Any, changes: dict[str, Any], code: str
) -> None:
    place = rig.ask(rig.prepared(build(rig.market.calls)), **changes)
    for name in ("set_operator", "offer_owner"):
        rig.reads(name)
    rig.reads("withdraw", "Escrow")
    rig.desk.serve()
    assert rig.outcome(place)["error"]["code"] == code
    assert rig.files() == [".done"] and rig.chain.sent == []


@pytest.mark.parametrize("text", ["", "{", "[]", '{"id": 1}', "\x00" * 100])
def test_serve__file_that_is_no_request__is_refused_and_the_next_one_served(rig: Rig, text: str) -> None:
    bad = rig.home / "requests" / "aa00.asked"
    bad.write_text(text)
    rig.ask(rig.prepared())
    rig.desk.serve()
    assert rig.outcome(bad)["error"]["code"] == "BAD_TX" and len(rig.chain.sent) == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("asked", value) for value in (float("inf"), 10**400, 10**60, 2**40, -1, True, "1", None)),
        *(("id", value) for value in ("\ud800", "1f", "1F" * 16, "1f" * 17, 7, None)),
    ],
)
def test_serve__id_or_time_of_no_command__is_refused_and_the_next_one_served(rig: Rig, name: str, value: Any) -> None:
    good = rig.ask(rig.prepared())
    bad = good.with_name("aa00.asked")
    bad.write_text(json.dumps({**json.loads(good.read_text()), name: value}))
    rig.desk.serve()
    assert rig.outcome(bad)["error"]["code"] == "BAD_TX" and len(rig.chain.sent) == 1


def _link(path: Path) -> None:
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir, _link], ids=["pipe", "folder", "link"])
def test_serve__what_is_no_file__is_refused_once_and_the_next_one_served(rig: Rig, make: Any) -> None:
    bad = rig.home / "requests" / "aa00.asked"
    make(bad)
    rig.ask(rig.prepared())
    rig.desk.serve()
    assert rig.outcome(bad)["error"]["code"] == "BAD_TX" and len(rig.chain.sent) == 1
    bad.with_suffix(".done").unlink()
    rig.desk.serve()
    assert not bad.with_suffix(".done").exists()


def test_serve__fault_with_one_request__ends_neither_the_loop_nor_the_others(rig: Rig, monkeypatch: Any) -> None:
    first = rig.ask(rig.prepared()).rename(rig.home / "requests" / "aa00.asked")
    rig.ask(rig.prepared())
    start, faults = rig.desk._sender.start, [OverflowError("too large")]

    def faulty(call: Call, *, key: str) -> Any:
        if faults:
            raise faults.pop()
        return start(call, key=key)

    monkeypatch.setattr(rig.desk._sender, "start", faulty)
    rig.desk.serve()
    # No error is its answer while it may be sent already: it is tried again, under the same key.
    assert len(rig.chain.sent) == 1 and first.with_suffix(".taken").exists()
    rig.desk.serve()
    rig.mine()
    rig.desk.serve()
    assert rig.outcome(first)["error"] is None and len(rig.chain.sent) == 1


def test_serve__more_than_one_round_takes__are_served_in_the_next(rig: Rig) -> None:
    for number in range(MAX_TAKEN + 1):
        (rig.home / "requests" / f"{number:02}.asked").write_text("{")
    rig.desk.serve()
    assert rig.files() == [".asked"] + [".done"] * MAX_TAKEN
    rig.desk.serve()
    assert rig.files() == [".done"] * (MAX_TAKEN + 1)


def test_serve__own_credit_to_itself__is_withdrawn(rig: Rig) -> None:
    rig.reads("withdraw", "Escrow")
    rig.ask(rig.prepared(rig.market.calls.withdraw(MINE, 5)))
    rig.desk.serve()
    assert len(rig.chain.sent) == 1


def test_serve__chain_away__keeps_what_it_took_up(rig: Rig, monkeypatch: Any) -> None:
    def start(call: Call, *, key: str) -> Any:
        raise ChainError("no line")

    with monkeypatch.context() as patch:
        patch.setattr(rig.desk._sender, "start", start)
        rig.ask(rig.prepared())
        rig.desk.serve()
    assert rig.files() == [".taken"]
    rig.desk.serve()
    assert len(rig.chain.sent) == 1


def test_sweep__outcomes_that_nobody_read__go_after_a_day(rig: Rig) -> None:
    path = rig.home / "requests" / "ab12.done"
    path.write_text("{}")
    rig.desk.sweep()
    assert path.exists()
    rig.desk._clock = lambda: time.time() + KEEP_SECONDS + 1
    rig.desk.sweep()
    assert not path.exists()
