"""worker.mode and worker.status: the two files by which a running worker and the commands talk."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
import structlog.testing

from hearth.base.errors import ConfigError
from hearth.cli.__main__ import main
from hearth.protocol.types import Gate, Status
from tests.kit.hints import faults_in
from tests.worker import test_decide as decided
from worker.decide.actions import Skip
from worker.decide.snapshot import OWN, Reason
from worker.holds import Holds, tell_left
from worker.home import hold
from worker.manage import Provider
from worker.mode import read_mode, set_mode
from worker.reason_texts import REASON_TEXTS, hold_lines
from worker.rows import Row
from worker.status import facts_of, read_status, write_status
from worker.watch import earnings_of

EARNED = earnings_of([])


def test_read_mode__file_missing_or_broken__runs(tmp_path: Path) -> None:
    assert read_mode(tmp_path) == "run"
    set_mode(tmp_path, "drain")
    assert read_mode(tmp_path) == "drain"
    for text in ("{", "[]", '{"mode": "dance"}'):
        (tmp_path / "control.json").write_text(text)
        assert read_mode(tmp_path) == "run"
    with pytest.raises(ValueError, match="dance"):
        set_mode(tmp_path, "dance")


STATUS = {
    "schema": "hearth.worker/1",
    "pid": 7,
    "state": "working",
    "node": 1,
    "operator": decided.NODE.operator,
    "mode": "run",
    "updated": 1,
    "earnings": {"paid": "0"},
}


@pytest.mark.parametrize("reason", [*Reason, "tomorrows"])
def test_hold_lines__each_hold__is_words_and_short_gas_names_key_and_command(reason: str) -> None:
    said: Any = {**STATUS, "hold": str(reason)}
    first, *more = hold_lines(said)
    assert first.startswith(f"nothing new is taken ({reason}): ")
    assert (first.endswith("another version")) == (reason == "tomorrows")
    address = STATUS["operator"]
    command = f'hearth wallet send {address} "0.05 ETH" --account owner'
    short = [f"the key {address} cannot pay its gas; on the owner's machine: {command}"]
    assert more == (short if reason is Reason.NOT_READY else []) and faults_in(command) == []
    assert hold_lines({**said, "hold": None}) == []
    told = hold_lines({**said, "store_refusal": "it is gone"})[1:]
    tried = ["it is gone; it is tried again by itself: hearth worker doctor"]
    assert told == (tried if reason is Reason.STORE_DOWN else more)


def test_status__key_that_cannot_pay_its_gas__is_named_with_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    process = {**STATUS, "hold": "not_ready", "alive": True}
    report = {"node": 1, "busy": 0, "slots": 1, "stake_text": "", "ask_text": "", "mode": "run"}
    report |= {"status_text": "live", "quarantined_until": None}
    report |= {"reputation_bps": 0, "seconds_since_beat": 1, "waits": [], "process": process}
    report |= {"owner_credit": "7", "owner_credit_text": "7 wei"}
    with mock.patch.object(Provider, "status", lambda self: report):
        assert main(["worker", "status"]) == 0
    shown = capsys.readouterr().out
    assert "  owner's credit in Escrow 7 wei: hearth worker withdraw pays it out\n" in shown
    assert "(not_ready): gas money is short" in shown and f"hearth wallet send {STATUS['operator']} " in shown


@pytest.mark.parametrize(("mode", "said"), [("run", "live"), ("pause", "paused, to others live")])
def test_status__node_that_its_owner_paused__is_told_as_he_and_as_others_see_it(
    mode: str, said: str, tmp_path: Path
) -> None:
    workers = SimpleNamespace(status=lambda node, start: {"status": "active", "status_text": "live"})
    provider = Provider(SimpleNamespace(session=SimpleNamespace(), workers=workers), tmp_path / "w")  # type: ignore[arg-type]
    provider._workers = workers  # type: ignore[assignment]
    provider.__dict__["settings"] = SimpleNamespace(home=tmp_path)
    provider.node = lambda: None  # type: ignore[assignment,method-assign,return-value]
    set_mode(tmp_path, mode)
    assert provider.status()["status_text"] == said


@pytest.mark.parametrize("change", [{"pid": "7"}, {"state": None}, {"attempts": [{}]}, {"schema": "hearth.keeper/1"}])
def test_read_status__foreign__is_refused_by_name(change: dict[str, object], tmp_path: Path) -> None:
    (tmp_path / "status.json").write_text(json.dumps({**STATUS, **change}))
    with pytest.raises(ConfigError, match=f"not what a worker writes .*{next(iter(change))}") as caught:
        read_status(tmp_path)
    assert (caught.value.code, caught.value.exit_code) == ("BAD_STATUS", 3)


def test_mode__status_file_that_cannot_be_read__the_worker_is_told_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "status.json").write_text(json.dumps({**STATUS, "state": "\ud800"}))
    provider = Provider(SimpleNamespace(session=SimpleNamespace(dry_run=False), workers=None), tmp_path / "w")  # type: ignore[arg-type]
    provider.__dict__["settings"] = SimpleNamespace(home=tmp_path)
    provider.__dict__["session"] = SimpleNamespace(dry_run=False)
    for tell, mode in ((provider.drain, "drain"), (provider.pause, "pause"), (provider.resume, "run")):
        assert tell()["mode"] == read_mode(tmp_path) == mode
    with hold(tmp_path):
        assert provider.drain()["alive"]
    assert not provider.drain()["alive"]


def written(home: Path, skip: Skip) -> Any:
    """Return a reason as the status file has it."""
    facts = facts_of(
        SimpleNamespace(node=decided.NODE, block=1, credit=0),  # type: ignore[arg-type]
        1,
        Status.ACTIVE,
        steps=[skip],
        watcher=SimpleNamespace(never_read=dict, waiting=set),  # type: ignore[arg-type]
        holds=SimpleNamespace(now=None, stake_short=0, capped="", refusal=""),  # type: ignore[arg-type]
        disk=SimpleNamespace(free=1, reserve=2),  # type: ignore[arg-type]
        active=[],
        pending=[],
    )
    write_status(home, "working", node=decided.NODE.id, operator=decided.NODE.operator, earnings=EARNED, facts=facts)
    found = read_status(home)
    assert found is not None
    return found["reasons"][decided.ID.hex()][0]


@pytest.mark.parametrize("reason", [*Reason, *(gate for gate in Gate if gate is not Gate.FITS)])
def test_why__each_reason__is_said_once_and_beside_no_word_that_it_fits(
    reason: Reason | Gate, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The chain's gate is open where the reason is the worker's own, and the same where it is a gate."""
    skip = Skip(decided.ID, None if reason in OWN else 0, reason)
    row = written(tmp_path, skip)
    gate = reason.name.lower() if isinstance(reason, Gate) else "fits"
    unit = {"unit": 0, "gate": gate, "text": REASON_TEXTS[reason] if isinstance(reason, Gate) else "it fits"}
    told = {"job": "0x" + decided.ID.hex(), "state": "open", "state_text": "waiting", "node": 1, "units": [unit]}
    workers = SimpleNamespace(gates=lambda job, node: told)
    client: Any = SimpleNamespace(session=None, workers=workers)
    provider = Provider(client, tmp_path / "w")
    provider.__dict__["settings"] = SimpleNamespace(home=tmp_path)
    provider.node = lambda: None  # type: ignore[assignment,method-assign,return-value]
    with hold(tmp_path), mock.patch("worker.commands._provider", lambda run, config: provider):
        assert main(["worker", "why", "0x" + decided.ID.hex()]) == 0
    shown = capsys.readouterr().out
    assert shown.count(row["detail"]) == 1 and "it fits" not in shown and "no worker runs" not in shown
    # Once in the log, and no more at the next block; what is of the market's course is in no log.
    rows: Any = {decided.ID: Row(decided.ID, decided.TERMS, 1)}
    with structlog.testing.capture_logs() as logs:
        for _ in range(2):
            tell_left([skip], rows)
    assert [line["reason"] for line in logs] == ([reason.value] if reason in OWN else [])


def test_facts_of__reason_that_quotes_a_stranger__is_read_back(tmp_path: Path) -> None:
    facts = written(tmp_path, Skip(decided.ID, 0, Reason.SPEC_BAD, "the key \ud800 is odd"))
    assert facts["detail"] == "the key \\ud800 is odd"


def test_facts_of__reason_without_a_detail__says_what_it_means(tmp_path: Path) -> None:
    facts = written(tmp_path, Skip(decided.ID, 0, Gate.NO_SLOT))
    assert facts == {"index": 0, "reason": "no_slot", "detail": "every slot that it may fill is taken"}


@pytest.mark.parametrize("text", ["", "{", "null", "[1]", "\x00"])
def test_read_status__damaged__is_refused_by_name(text: str, tmp_path: Path) -> None:
    (tmp_path / "status.json").write_text(text)
    with pytest.raises(ConfigError, match=r"status\.json is damaged"):
        read_status(tmp_path)


def test_read_status__a_newer_workers_keys__are_let_through(tmp_path: Path) -> None:
    (tmp_path / "status.json").write_text(json.dumps({**STATUS, "new_key": 1}))
    found = read_status(tmp_path)
    assert found is not None and found["node"] == 1


def test_read_status__dead_process__is_not_alive(tmp_path: Path) -> None:
    assert read_status(tmp_path) is None

    def alive(pid: int, state: str) -> bool:
        (tmp_path / "status.json").write_text(json.dumps({**STATUS, "pid": pid, "state": state}))
        found = read_status(tmp_path)
        assert found is not None
        return found["alive"]

    with hold(tmp_path):
        # One that was killed said it, and another has the home.
        assert [alive(os.getpid(), "working"), alive(os.getpid(), "stopped"), alive(1, "working")] == [
            True,
            False,
            False,
        ]
    # The number lives on, as a killed process that nobody has buried or as another one; the worker does not.
    assert not alive(os.getpid(), "working")


def test_holds__what_keeps_the_worker_from_all_work__is_in_the_log_once_at_each_change() -> None:
    holds: Any = Holds(None, None, None, lambda: 0.0)  # type: ignore[arg-type]
    found = [Reason.PAUSED, Reason.PAUSED, Reason.OUTSIDE_SCHEDULE, None, None, Reason.NOT_READY, None]
    holds._why = lambda *args, **named: found.pop(0)
    with structlog.testing.capture_logs() as logs:
        while found:
            holds.look(None, None, None, None, refusal="", funds_short=False, sent=False)
        for detail in ("the node is quarantined", "the node is quarantined", ""):
            holds.tell_status([Skip(decided.ID, None, Reason.NODE_STATUS, detail)] if detail else [])
    # That gas money is short, whoever sends says.
    assert [(line["event"], line.get("reason")) for line in logs] == [
        ("nothing new is taken", "paused"),
        ("nothing new is taken", "outside_schedule"),
        ("new work is taken again", None),
        ("nothing new is taken", "node_status"),
    ]
