"""worker.mode and worker.status: the two files by which a running worker and the commands talk."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

from hearth.base.errors import ConfigError
from hearth.cli.__main__ import main
from hearth.protocol.types import Gate, Status
from tests.kit.hints import faults_in
from tests.worker import test_decide as decided
from worker.decide.actions import Skip
from worker.decide.snapshot import Reason
from worker.home import hold
from worker.manage import Provider
from worker.mode import read_mode, set_mode
from worker.status import facts_of, read_status, write_status
from worker.watch import earnings_of
from worker.words import hold_lines

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
    report = {"node": 1, "status": "ACTIVE", "busy": 0, "slots": 1, "stake_text": "", "ask_text": "", "mode": "run"}
    report |= {"reputation_bps": 0, "seconds_since_beat": 1, "waits": [], "process": process}
    with mock.patch.object(Provider, "status", lambda self: report):
        assert main(["worker", "status"]) == 0
    shown = capsys.readouterr().out
    assert "(not_ready): gas money is short" in shown and f"hearth wallet send {STATUS['operator']} " in shown


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
    """Return a reason as `hearth worker why` reads it."""
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
