"""worker.outbox: what is told of each transaction, and how long an effect that fails is left alone."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import structlog.testing

from hearth.base.errors import FundsError, RefusedError
from hearth.chain.port import refused
from hearth.chain.tx_journal import TxState
from worker.decide import Kind
from worker.metrics import WorkerMetrics
from worker.outbox import Outbox


def outbox_of(sender: Any) -> Outbox:
    """Return an outbox that sends by `sender`, with nothing else that it asks."""
    nothing: Any = SimpleNamespace()
    return Outbox(
        sender,
        market=nothing,
        journal=nothing,
        watcher=nothing,
        caller=nothing,
        ledger=nothing,
        metrics=WorkerMetrics(),
    )


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the outbox's clock, a list of one second that the test moves."""
    now = [1000.0]
    monkeypatch.setattr("worker.outbox.time", SimpleNamespace(monotonic=lambda: now[0]))
    return now


def action(kind: Kind, key: str) -> Any:
    """Return an action that begins nothing and may cost half of the cap."""
    facts = {"begins": None, "spare_gas": 0, "ceiling": lambda cap: cap // 2, "call": lambda by: None}
    return SimpleNamespace(key=lambda: key, kind=kind, **facts)


def accepts(*_: Any, **__: Any) -> Any:
    """Take a transaction, as a sender does, and say that it is mined."""
    return SimpleNamespace(intent=SimpleNamespace(state=TxState.MINED))


def sender_with(start: Any) -> Any:
    """Return a sender that does nothing but `start`."""
    return SimpleNamespace(start=start, config=SimpleNamespace(max_fee=8))


def test_send__key_without_coin_that_gets_some__is_told_from_the_first_send_to_the_next(clock: list[float]) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise FundsError("no coin")

    outbox, told = outbox_of(sender_with(refuse)), []
    for start in (refuse, accepts):
        outbox.sender.start = start  # type: ignore[method-assign]
        outbox.send(action(Kind.BEAT, "beat/1"))
        told.append((outbox._metrics.registry.get_sample_value("hearth_worker_funds_short"), outbox.funds_short))
        clock[0] += 31
    assert told == [(1.0, True), (0.0, False)]


def test_send__effect_that_fails_again_and_again__is_left_alone_for_1_to_30_s(clock: list[float]) -> None:
    sent: list[str] = []

    def refuse(call: Any, *, key: str, ceiling: int, spare_gas: int) -> Any:
        sent.append(key)
        raise RefusedError("jobs: not open")

    outbox, settle = outbox_of(sender_with(refuse)), action(Kind.SETTLE, "settle/1")
    for failures, seconds in enumerate((1, 2, 4, 8, 16, 30, 30), start=1):
        outbox.send(settle)
        assert len(sent) == failures
        clock[0] += seconds - 0.01
        outbox.send(settle)
        assert len(sent) == failures  # not yet
        clock[0] += 0.02
    outbox.sender.start = accepts  # type: ignore[method-assign]
    outbox.send(settle)
    # What went well begins anew.
    outbox.sender.start = refuse  # type: ignore[method-assign]
    outbox.send(settle)
    clock[0] += 1.01
    outbox.send(settle)
    assert len(sent) == 9


def mined(outbox: Outbox, key: str, state: TxState, note: str = "") -> list[Any]:
    """Let a transaction of a worker come to its end; return what the log says of it."""
    call = SimpleNamespace(label="x")
    before = SimpleNamespace(id=1, key=key, call=call)
    after = SimpleNamespace(id=1, key=key, call=call, state=state, note=note, fee=0, block_number=9)
    journal = SimpleNamespace(intents=lambda *_: [before], find=lambda _: after)
    outbox.sender = SimpleNamespace(journal=journal, reconcile=lambda _: SimpleNamespace(reorged=0))  # type: ignore[assignment]
    with structlog.testing.capture_logs() as logs:
        outbox.reconcile(None, 0)
    return [(line["log_level"], line["event"]) for line in logs]


def test_reconcile__beats__are_told_once_a_minute_and_the_rest_each_time(
    clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("worker.outbox.read_call", lambda call, market: (kind, ()))
    outbox, told = outbox_of(None), []
    for seconds, kind in ((0, Kind.BEAT), (3, Kind.BEAT), (3, Kind.SUBMIT), (3, Kind.SUBMIT), (51, Kind.BEAT)):
        clock[0] += seconds
        told += mined(outbox, kind, TxState.MINED)
    assert told == [(level, "mined") for level in ("info", "debug", "info", "info", "info")]
    kind = Kind.SETTLE
    assert mined(outbox, "settle/1", TxState.FAILED, "jobs: not submitted") == [
        ("info", "settled by somebody else first")
    ]
    assert mined(outbox, "settle/1", TxState.FAILED, "out of gas") == [("warning", "failed")]


def test_send__settle_that_somebody_else_was_first_with__is_no_news() -> None:
    def told(kind: Kind, why: str) -> list[str]:
        def refuse(*_: Any, **__: Any) -> Any:
            raise refused(why, label="jobs.settle")

        with structlog.testing.capture_logs() as logs:
            outbox_of(sender_with(refuse)).send(action(kind, "settle/1"))
        return [line["log_level"] for line in logs]

    assert told(Kind.SETTLE, "jobs: not submitted") == ["debug"]
    assert told(Kind.SETTLE, "jobs: window is open") == told(Kind.CLAIM, "jobs: not submitted") == ["info"]
