"""`hearth net snapshot`: what a file of a market's history holds, and when there is none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hearth.base.errors import BadDestination, ChainError
from hearth.chain.follow import DEPTH
from hearth.client.audit import history_file
from hearth.client.net import Net
from hearth.protocol.types import Unit
from hearth.storage.canonical import encode
from tests.client.test_parents import Place


def lines_of(path: Path) -> list[Any]:
    """Return the lines of a history file, each of which must be canonical JSON."""
    raw = path.read_bytes().splitlines(keepends=True)
    found = [json.loads(line) for line in raw]
    assert [encode(one) + b"\n" for one in found] == raw
    return found


@pytest.fixture
def place() -> Place:
    made = Place()
    for _ in range(5):
        made.chain.mine(count=10)
        made.post(Unit())
    return made


def test_snapshot__a_market__holds_every_log_up_to_a_final_block_once(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_file, "LOG_SPAN", 1)  # so that every block is the last of one read
    place.chain.mine(count=DEPTH)
    final = place.chain.head().number - DEPTH
    place.post(Unit())  # not final yet
    file = tmp_path / "history.jsonl"
    report = Net(place.jobs).snapshot(file)
    head, *parts = lines_of(file)

    block = place.chain.block(final + 1)
    assert block is not None
    assert head == {
        "schema": "hearth.history/1",
        "chain_id": place.network.chain_id,
        "genesis_hash": f"0x{place.network.genesis_hash.hex()}",
        "deploy_block": place.network.deploy_block,
        "contracts": dict(place.network.contracts),
        "block": final + 1,
        "block_hash": f"0x{block.hash.hex()}",
    }
    told = place.chain.logs(list(place.network.contracts.values()), (), from_block=0, to_block=final + 1)
    names = {address: name for name, address in place.network.contracts.items()}
    assert [(one["from"], one["to"]) for one in parts] == [(place.network.deploy_block, final + 1)]
    assert [
        [number, block_hash, *log] for one in parts for number, block_hash, logs in one["blocks"] for log in logs
    ] == [
        [
            *(log.block_number, f"0x{log.block_hash.hex()}", log.log_index, f"0x{log.tx_hash.hex()}"),
            *(names[log.address], [f"0x{topic.hex()}" for topic in log.topics], f"0x{log.data.hex()}"),
        ]
        for log in told
    ]
    assert report["logs"] == len(told) == 5
    assert (report["block"], report["parts"], report["bytes"]) == (final + 1, 1, file.stat().st_size)


def test_snapshot__of_much__is_cut_between_blocks(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_file, "PART_CHARS", 1)
    place.chain.mine(count=DEPTH)
    file = tmp_path / "history.jsonl"
    report = Net(place.jobs).snapshot(file)
    head, *parts = lines_of(file)

    assert report["parts"] == len(parts) == 5
    assert [len(one["blocks"]) for one in parts] == [1] * 5
    ends = [place.network.deploy_block - 1, *(one["to"] for one in parts)]
    assert [one["from"] for one in parts] == [end + 1 for end in ends[:-1]]
    assert ends[-1] == head["block"]


def test_snapshot__a_young_chain__has_none(place: Place, tmp_path: Path) -> None:
    with pytest.raises(ChainError) as refused:
        Net(place.jobs).snapshot(tmp_path / "history.jsonl")

    assert refused.value.code == "NOT_FINAL"
    assert list(tmp_path.iterdir()) == []


def test_snapshot__a_chain_that_drops_the_block_meanwhile__leaves_nothing(place: Place, tmp_path: Path) -> None:
    place.chain.mine(count=DEPTH)
    logs = place.chain.logs

    def then_reorg(*arguments: Any, **options: Any) -> Any:
        found = logs(*arguments, **options)
        place.chain.reorg(DEPTH + 1)
        place.chain.mine(count=2 * DEPTH)
        return found

    place.market.port.logs = then_reorg  # type: ignore[method-assign]
    with pytest.raises(ChainError) as refused:
        Net(place.jobs).snapshot(tmp_path / "history.jsonl")

    assert refused.value.code == "REORG"
    assert list(tmp_path.iterdir()) == []


def test_snapshot__a_file_that_is_there__is_left_alone(place: Place, tmp_path: Path) -> None:
    place.chain.mine(count=DEPTH)
    file = tmp_path / "history.jsonl"
    file.write_text("mine")
    with pytest.raises(BadDestination):
        Net(place.jobs).snapshot(file)
    place.session.dry_run = True
    Net(place.jobs).snapshot(tmp_path / "other.jsonl")

    assert file.read_text() == "mine" and list(tmp_path.iterdir()) == [file]
