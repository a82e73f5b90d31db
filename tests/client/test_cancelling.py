"""Cancelling ends what it began: a unit that a proposal holds is waited for, one that moved is looked at again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from hearth.base.errors import RefusedError, WaitTimeout
from hearth.client.job import cancelling
from hearth.client.jobs import Jobs
from hearth.client.nodes.workers import _free
from hearth.market.profiles import DEVNET
from hearth.protocol.types import State, Unit
from hearth.protocol.words import pack_policy

JOB = bytes([7]) * 32


def view(*units: Unit, now: int = 100) -> Any:
    return SimpleNamespace(
        units=units,
        header=None,
        untouched=0,
        now=now,
        terms=SimpleNamespace(leases=len(units), policy=pack_policy(replace(DEVNET.policy, ack_time=30))),
        posted=SimpleNamespace(job_id=JOB, packed=None),
    )


class Reads:
    """A job that changes by a script, and a sender that notes what is cancelled."""

    def __init__(self, later: list[Any], *, timeout: int = 60, moved: tuple[int, ...] = ()) -> None:
        self.later, self.moved = later, list(moved)
        self.sent: list[str] = []
        calls = SimpleNamespace(cancel=lambda packed, index: index)
        self.session: Any = SimpleNamespace(
            settings=SimpleNamespace(timeout=timeout),
            market=SimpleNamespace(calls=calls, port=SimpleNamespace(head=lambda: None)),
            dry_run=False,
            tell=lambda kind, facts: None,
            sender=self._sender,
            send=self._send,
        )

    @contextmanager
    def _sender(self) -> Iterator[None]:
        yield None

    def _send(self, sender: object, index: int, key: str) -> dict[str, str]:
        if index in self.moved:
            self.moved.remove(index)
            raise RefusedError("jobs: not open")
        self.sent.append(key.partition("/")[2].partition("/")[2])
        return {"tx": key}

    def view(self, posted: object, head: object) -> Any:
        return self.later.pop(0)


@pytest.fixture(autouse=True)
def _no_sleep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cancelling, "POLL_SECONDS", 0.0)


OPEN, HELD = Unit(state=State.OPEN), Unit(state=State.OPEN, node=3, mark=90)
RUNNING, GONE = Unit(state=State.RUNNING, node=3, attempts=1), Unit(state=State.CLOSING)


def test_cancel__a_unit_that_a_proposal_holds__is_cancelled_once_it_runs() -> None:
    reads = Reads([view(HELD, GONE), view(RUNNING, GONE), view(GONE, GONE)])
    sent, after = cancelling.cancel(reads, view(HELD, OPEN), None)  # type: ignore[arg-type]
    assert len(sent) == 2 and after.units == (GONE, GONE)
    assert reads.sent == ["1/0", "0/1"]


def test_cancel__a_proposal_that_lapses__is_cancelled_then() -> None:
    reads = Reads([view(HELD, now=121), view(GONE)])
    cancelling.cancel(reads, view(HELD), None)  # type: ignore[arg-type]
    assert reads.sent == ["0/0"]


def test_cancel__a_unit_that_moved_meanwhile__is_looked_at_again() -> None:
    reads = Reads([view(RUNNING), view(GONE)], moved=(0,))
    cancelling.cancel(reads, view(OPEN), None)  # type: ignore[arg-type]
    assert reads.sent == ["0/1"]


def test_jobs_cancel__result_that_came_first__is_no_cancelled_job() -> None:
    done = view(Unit(state=State.SUBMITTED, node=3))
    done.labels, seen = ("result in", "result in"), []
    reads = Reads([done], moved=(0,))
    reads.session.require_funds = lambda *_, **__: None
    reads.session.records = SimpleNamespace(mark_seen=seen.append)
    running = view(RUNNING)
    running.terms.submitter = "0x1"
    jobs: Any = SimpleNamespace(session=reads.session, reads=reads, _require_own=lambda view: None)
    jobs.reads.look = lambda job: running
    with pytest.raises(RefusedError, match="was cancelled, since it moved first: its state is result in") as caught:
        Jobs.cancel(jobs, "0x07")
    assert (caught.value.code, seen, reads.sent) == ("NOTHING_TO_CANCEL", [], [])


def test_cancel__a_unit_held_for_too_long__says_what_is_left_and_what_was_done() -> None:
    reads = Reads([view(HELD, GONE)] * 9, timeout=0)
    with pytest.raises(WaitTimeout, match="1 cancelled; unit 0 of job 0x0707"):
        cancelling.cancel(reads, view(HELD, OPEN), None)  # type: ignore[arg-type]
    assert reads.sent == ["1/0"]


@pytest.mark.parametrize(
    ("busy", "quarantine", "free"), [(0, 0, 4), (1, 0, 3), (4, 0, 0), (5, 0, 0), (0, 100, 4), (0, 101, 0)]
)
def test_free__quarantine__is_none(busy: int, quarantine: int, free: int) -> None:
    state = SimpleNamespace(busy=busy, quarantine=quarantine)
    node: Any = SimpleNamespace(offer=SimpleNamespace(slots=4), state=state)
    assert _free(node, 100) == free
