"""worker.specs: what becomes of a job whose spec cannot be had."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from hearth.base.errors import StoreDown
from hearth.storage.stores import MemoryStore
from tests.kit.running import wait
from tests.worker import test_decide as decided
from worker.rows import Row
from worker.specs import UNREAD_DOUBLINGS, UNREAD_SECONDS, Specs


@pytest.mark.parametrize(
    ("rows", "fault", "answer"),
    [
        ({}, None, "followed no more"),
        ({decided.ID: SimpleNamespace(terms=decided.TERMS, unread=0)}, StoreDown("no line", hint="h"), "no line"),
        (
            {decided.ID: SimpleNamespace(terms=decided.TERMS, unread=0)},
            ZeroDivisionError("ours"),
            "a fault of the worker",
        ),
    ],
)
def test_read_one__spec_that_cannot_be_had__frees_the_reader(
    rows: dict[Any, Any], fault: Exception | None, answer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(*arguments: Any) -> Any:
        assert fault is not None
        raise fault

    monkeypatch.setattr("worker.attempt.fetch.read_spec", read)
    read_ended: list[bool] = []
    specs = Specs(rows, MemoryStore(), lambda: read_ended.append(True))
    specs.begin(decided.ID)
    wait(lambda: read_ended, "the reader has ended", 30)
    assert answer in str(specs._read[decided.ID])
    specs.apply(0)
    assert specs._reading == set()


def test_rest__fetched_in_vain__nothing_once_then_twice_as_long_each_time_and_claims_are_as_they_were() -> None:
    row = Row(decided.ID, decided.TERMS, 1)
    specs = Specs({decided.ID: row}, MemoryStore(), lambda: None)
    specs.rest({decided.ELSE}, 1_000)
    specs.rest({decided.ID}, 1_000)
    assert (row.gather_at, row.in_vain) == (0, 1), "a better node in the same window is nobody's fault"
    for times in range(8):
        specs.rest({decided.ID}, 1_000)
        assert row.gather_at == 1_000 + UNREAD_SECONDS * 2 ** min(times, UNREAD_DOUBLINGS)
    assert (row.retry_at, row.retry_why, row.in_vain) == (0, "", 9)
