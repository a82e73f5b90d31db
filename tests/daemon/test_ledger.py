"""A program's books: kept over restarts, begun anew where the file is lost, and not kept by a dry run."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from hearth.daemon.ledger import Ledger


def test_ledger__saved__is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    Ledger(path, 7 * 10**20, 3, 11, Counter({"propose": 2})).save()
    assert Ledger.open(path) == Ledger(path, 7 * 10**20, 3, 11, Counter({"propose": 2}))
    assert json.loads(path.read_text()) == {
        "gas_paid": "700000000000000000000",
        "coin_cost": "3",
        "credited_before": "11",
        "mined": {"propose": 2},
    }


def test_ledger__no_file__begins(tmp_path: Path) -> None:
    assert Ledger.open(tmp_path / "ledger.json") == Ledger(tmp_path / "ledger.json")


@pytest.mark.parametrize("text", ["{", "{}", "[]", '{"gas_paid": "x"}', "null"])
def test_ledger__damaged_file__begins_anew(text: str, tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    path.write_text(text)
    assert Ledger.open(path) == Ledger(path)


def test_ledger__rewards__count_from_its_beginning() -> None:
    ledger = Ledger(None)
    assert ledger.rewards(40) == 40
    ledger.credited_before = 30
    assert ledger.rewards(40) == 10
    assert ledger.rewards(20) == 0  # the index is being rebuilt
    assert ledger.earned(20) == -10  # what was lost counts


def test_ledger__begun__does_not_begin_again(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    for earned in (7, 9):
        ledger = Ledger.open(path)
        ledger.begin(earned)
        assert Ledger.open(path) == ledger and ledger.credited_before == 7


def test_ledger__gas__is_kept_in_wei_and_at_the_price_of_its_moment() -> None:
    ledger = Ledger(None)
    ledger.pay(10**18, 2650 * 10**6)
    ledger.pay(1, 2000 * 10**6)
    assert (ledger.gas_paid, ledger.coin_cost) == (10**18 + 1, 2650 * 10**6 + 1)


def test_ledger__without_a_path__keeps_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Ledger(None, gas_paid=7).save()
    assert list(tmp_path.iterdir()) == []
