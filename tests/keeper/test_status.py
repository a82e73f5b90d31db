"""The status document: what monitors and `hearth keeper status` read, key by key."""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hearth.base.errors import ChainError, ConfigError, NotFoundError
from hearth.chain.port import Block
from hearth.daemon.ledger import Ledger
from hearth.protocol.types import Header, NodeId
from hearth.protocol.units import Asset
from keeper.actions import Settle, Skip
from keeper.health import KeeperMetrics
from keeper.index import Index
from keeper.loop import Keeper
from keeper.report import status_lines
from keeper.status import MAX_LISTED, Cycle, read_status, status_of, write_status
from tests.keeper.markets import KEEPER, NOW, OTHER, case_of, job, node, open_unit

SKIP = Skip("node 3", "left to other keepers until 9")
DONE = {"action": "propose", "id": "0x00/1", "outcome": "mined", "detail": "0xabc"}


def cycle_of(*skips: Skip, unready: str = "") -> Cycle:
    rows = (
        job(open_unit(), replace(open_unit(), index=1), header=Header(touched=2, opened=NOW - 5), units=9),
        job(open_unit(), number=2),
    )
    snapshot = case_of((node(1), node(2, slots=1, busy=1)), rows, gas_price=7).snapshot
    head = Block(100, bytes(32), bytes(32), NOW, 1)
    return Cycle(head, snapshot, list(skips), balance=10**30, outcomes=[DONE], unready=unready)


def told_of(cycle: Cycle, **changes: Any) -> dict[str, Any]:
    index = Index(1, OTHER, KEEPER)
    index.credited = 10**21 + 500
    index.fleet.write(NodeId(1), bytes(224))
    ledger = Ledger(None, 2 * 10**20, 800, 10**21, Counter({"propose": 2}))
    values: dict[str, Any] = {"account": KEEPER, "payee": OTHER, "at": NOW + 4}
    return status_of(cycle, index, ledger, network="test", asset=Asset("TOK", 18, OTHER), **{**values, **changes})


def test_finish__account_sent_something_else_meanwhile__is_told_as_replaced_and_stops_nothing() -> None:
    def taken(pending: object) -> None:
        raise ChainError("another transaction has its number", hint="one keeper an account", code="NONCE_TAKEN")

    keeper: Any = object.__new__(Keeper)
    keeper.sender, keeper.metrics, keeper._waiting = SimpleNamespace(finish=taken), KeeperMetrics(), []
    cycle, action = cycle_of(), Settle(((job().id, 0),), reward=5, gas=1)
    pending: Any = None
    assert keeper._finish(action, pending, cycle) is None and keeper._waiting == []
    assert cycle.outcomes[1:] == [
        {"action": "settle", "id": action.id, "outcome": "replaced", "detail": "another transaction has its number"}
    ]


@pytest.mark.parametrize(("code", "waits"), [("FEE_CAP", True), ("SPEND_CAP", True), ("RPC_BROKEN", False)])
def test_withdraw__gas_is_too_dear_now__waits_and_fails_no_cycle(code: str, waits: bool) -> None:
    asked = []

    def send(*_: object, **__: object) -> None:
        asked.append(code)
        raise ChainError("not now", hint="hearth doctor", code=code)

    keeper: Any = object.__new__(Keeper)
    keeper.sender, keeper.address, keeper.asset = SimpleNamespace(send=send), KEEPER, Asset("TOK", 18, OTHER)
    keeper.settings = SimpleNamespace(withdraw_threshold=lambda asset: 5)
    keeper.config = SimpleNamespace(payee=KEEPER, is_worth=lambda *_: True, worth_of=lambda *_: 5)
    calls = SimpleNamespace(withdraw=lambda *_: None)
    keeper.market = SimpleNamespace(credit=lambda *_: 5, calls=calls)
    with nullcontext() if waits else pytest.raises(ChainError):
        keeper._withdraw(cycle_of().head, 7)
    assert asked == [code]


def test_unready__started_again_while_a_transaction_waits__sends_nothing_beside_it() -> None:
    """A keeper that has just started waits for none of its own sending, and does not look at final ones each time."""
    journal = SimpleNamespace(intents=lambda *states: ["sent before"])
    keeper: Any = object.__new__(Keeper)
    keeper._max_lag, keeper._waiting, keeper.reader = 0, [], SimpleNamespace(head=None)
    keeper.metrics = KeeperMetrics()
    fees = {"base_fee": lambda head: 1, "is_parked": lambda intent, fee: False, "why_capped": lambda *limits: ""}
    config = SimpleNamespace(max_fee=1)
    keeper.sender = SimpleNamespace(journal=journal, config=config, reconcile=lambda head: None, **fees)
    assert keeper._unready(0, cycle_of(), False) == "1 transactions wait to be mined"


@pytest.mark.parametrize("refused", [True, False])
def test_reload__file_that_is_refused_or_taken__shows_in_the_metrics(refused: bool, tmp_path: Path) -> None:
    keeper: Any = object.__new__(Keeper)
    keeper.settings, keeper.adopt, keeper.metrics = SimpleNamespace(home=tmp_path), None, KeeperMetrics()
    keeper.reloader = SimpleNamespace(refused=refused, turn=lambda home, settings, adopt: None)
    keeper.metrics.settings_refused.set(not refused)
    keeper._reload()
    assert keeper.metrics.registry.get_sample_value("hearth_keeper_settings_refused") == refused


def test_status_of__cycle__literal_document() -> None:
    first, second = (row.id.hex() for row in sorted(cycle_of().snapshot.jobs, key=lambda row: row.id))
    told = told_of(cycle_of(SKIP))
    listed = {one["job"]: one for one in told.pop("list")}
    assert list(listed) == [f"0x{first}", f"0x{second}"]
    array, single = sorted(listed.values(), key=lambda one: -one["leases"])
    terms = job(number=2).terms
    common = {"keeper_fee": str(terms.keeper_fee), "ceiling": str(terms.ceiling), "deadline": terms.deadline}
    assert array == {"job": array["job"], "leases": 9, "touched": 2, "units": {"open": 2}, **common}
    assert single == {"job": single["job"], "leases": 1, "touched": 1, "units": {"open": 1}, **common}
    assert json.dumps(told) == json.dumps(
        {
            "schema": "hearth.keeper/1",
            "pid": os.getpid(),
            "at": NOW + 4,
            "network": "test",
            "block": 100,
            "time": NOW,
            "account": KEEPER,
            "payee": OTHER,
            "ready": True,
            "why": "",
            "balance_wei": "1000000000000000000000000000000",
            "gas_price_wei": "7",
            "nodes": 1,
            "nodes_ready": 1,
            "jobs": 0,
            "units": {},
            "profit_and_loss": {
                "asset": "TOK",
                "rewards": "500",
                "gas_wei": "200000000000000000000",
                "gas": "800",
                "profit": "-300",
                "mined": {"propose": 2},
            },
            "actions": [DONE],
            "skips": [{"id": "node 3", "why": "left to other keepers until 9"}],
            "skips_left_out": 0,
        }
    )


def test_status_of__unready_dry_run__says_why() -> None:
    told = told_of(cycle_of(unready="dry run: no account is configured"), account=None)
    assert (told["ready"], told["why"], told["account"]) == (False, "dry run: no account is configured", None)


def test_status_of__more_skips_than_are_listed__counts_the_rest() -> None:
    told = told_of(cycle_of(*[Skip(f"node {i}", "why") for i in range(MAX_LISTED + 3)]))
    assert len(told["skips"]) == MAX_LISTED
    assert told["skips_left_out"] == 3


def test_read_status__written__has_its_age(tmp_path: Path) -> None:
    told = told_of(cycle_of(SKIP))
    write_status(tmp_path, told)
    assert read_status(tmp_path, now=NOW + 14.9) == {**told, "age": 10, "alive": True}


def test_read_status__keeper_that_was_killed__runs_no_more(tmp_path: Path) -> None:
    """Nobody has buried it yet: its number is still there."""
    keeper = subprocess.Popen(["sleep", "60"])
    write_status(tmp_path, {**told_of(cycle_of(SKIP)), "pid": keeper.pid})
    assert read_status(tmp_path)["alive"]
    keeper.kill()
    os.waitid(os.P_PID, keeper.pid, os.WEXITED | os.WNOWAIT)
    told = read_status(tmp_path)
    keeper.wait()
    assert not told["alive"]
    assert status_lines(told, Asset("ETH", 18))[0].endswith("it runs no more: hearth keeper run")


def test_read_status__no_document__is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError) as caught:
        read_status(tmp_path)
    assert (caught.value.code, caught.value.exit_code) == ("NO_KEEPER", 7)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"schema": "hearth.worker/1", "at": 3}', '{"at": "soon"}'])
def test_read_status__damaged_or_foreign__is_refused_by_name(text: str, tmp_path: Path) -> None:
    (tmp_path / "status.json").write_text(text)
    with pytest.raises(ConfigError, match=r"status\.json is damaged, or not what a keeper writes") as caught:
        read_status(tmp_path)
    assert (caught.value.code, caught.value.exit_code) == ("BAD_STATUS", 3)
    assert "hearth keeper status" in caught.value.hint
