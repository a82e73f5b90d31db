"""worker.specs: what becomes of a job whose spec cannot be had."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from hearth.base.errors import StoreDown
from hearth.storage.stores import MemoryStore
from tests.kit.running import wait
from tests.worker import test_decide as decided
from worker.specs import Specs


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
    specs = Specs(rows, MemoryStore(), {}, lambda: read_ended.append(True))
    specs.begin(decided.ID)
    wait(lambda: read_ended, "the reader has ended", 30)
    assert answer in str(specs._read[decided.ID])
    specs.apply(0)
    assert specs._reading == set()
