"""The long walk itself: what it counts, where it goes on, what ends it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench.sections import marks, part
from tests.stateful import walk
from tests.stateful.test_market import STEPS, MarketMachine, Tally, shortcomings


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Keep record and page in a folder of the test's own."""
    monkeypatch.setattr(walk, "RECORD", tmp_path / "walk.json")
    monkeypatch.setattr(walk, "PAGE", tmp_path / "page.md")
    (tmp_path / "page.md").write_text("".join(marks("walk", "make walk")))
    monkeypatch.setattr(walk, "SLICE", 1)
    return tmp_path


def test_walk__interrupted__goes_on_with_the_next_history(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walk, "LEAST", 0)
    assert walk.main(["--steps", str(STEPS), "--seed", "7"]) in (0, 1)
    first = json.loads((here / "walk.json").read_text())
    walk.main(["--steps", str(2 * STEPS), "--seed", "7"])
    second = json.loads((here / "walk.json").read_text())
    for asset in walk.ASSETS:
        one, two = first["assets"][asset], second["assets"][asset]
        assert (one["steps"], two["steps"]) == (STEPS, 2 * STEPS) and one["fault"] is None and two["fault"] is None
        assert sum(two["attempted"].values()) > sum(one["attempted"].values()) and two["endings"] == 2
    page = (here / "page.md").read_text()
    assert f"| erc20 | {2 * STEPS} | 2 |" in page and "Seed 7" in page


def test_walk__another_seed__begins_anew(here: Path) -> None:
    row = {"steps": 9}
    (here / "walk.json").write_text(json.dumps({"digest": walk.digest(), "seed": 1, "assets": {"native": row}}))
    walk.main(["--steps", str(STEPS), "--seed", "2"])
    record = json.loads((here / "walk.json").read_text())
    assert record["seed"] == 2 and {row["histories"] for row in record["assets"].values()} == {1}


def test_walk__chain_and_model_differ__ends_there_and_says_where(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def differ(machine: MarketMachine) -> None:
        assert machine.steps < 5, "the books differ"

    monkeypatch.setattr(MarketMachine, "books_are_equal", differ)
    assert walk.main(["--steps", "100000", "--seed", "3"]) == 1
    row = json.loads((here / "walk.json").read_text())["assets"]["native"]
    assert "the books differ" in row["fault"] and f"in history {3 * walk.SPREAD}, step 5" in row["fault"]
    assert "the books differ" in capsys.readouterr().out


def test_tally_of__row_of_it__is_the_same() -> None:
    tally = Tally()
    machine: Any = type("Machine", (MarketMachine,), {"erc20": False, "tally": tally})
    walk.play(machine(), 11)
    again = walk.tally_of(json.loads(json.dumps(walk.row_of(tally, 1, 1.0))))
    assert again.report() == tally.report()
    assert shortcomings(tally, 1_000) and shortcomings(again, 20) == shortcomings(tally, 20)


def test_record__in_git__is_what_assurance_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    record = walk.read_record()
    assert part(walk.PAGE, "walk", "make walk") == walk.table()
    for row in record["assets"].values():
        assert row["fault"] is None and row["steps"] >= 500_000
        assert shortcomings(walk.tally_of(row), walk.LEAST) == []
