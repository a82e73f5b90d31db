"""What people read of a keeper: money in the market's asset, ids that can be copied."""

from __future__ import annotations

from typing import Any

import pytest

from hearth.protocol.units import Asset
from keeper.report import explain_lines, profit_text, status_lines, work_rows

ETH, TOK = Asset("ETH", 18), Asset("TOK", 6, "0x" + "11" * 20)
JOB = "0x" + "ab" * 32


def status(profit: int, **changes: Any) -> dict[str, Any]:
    books = {"asset": "ETH", "rewards": str(profit + 10**14), "gas": str(10**14), "profit": str(profit)}
    told = {
        "account": "0x" + "cd" * 20,
        "block": 7,
        "age": 3,
        "ready": True,
        "why": "",
        "jobs": 2,
        "nodes_ready": 5,
        "profit_and_loss": {**books, "mined": {"propose": 4, "settle": 1}},
    }
    return {**told, **changes}


@pytest.mark.parametrize(
    ("profit", "asset", "text"),
    [
        (21 * 10**14, ETH, "profit 0.0021 ETH"),
        (0, ETH, "profit 0 ETH"),
        (-5 * 10**13, ETH, "profit -0.00005 ETH"),
        (1_234_567_890_123_456_789, ETH, "profit ~1.23457 ETH"),
        (2_500_000, TOK, "profit 2.5 TOK"),
    ],
)
def test_profit_text__amount__is_in_the_markets_asset(profit: int, asset: Asset, text: str) -> None:
    assert profit_text(status(profit), asset) == text


def test_status_lines__ready__money_and_what_was_mined() -> None:
    assert status_lines(status(21 * 10**14), ETH) == [
        f"keeper 0x{'cd' * 20} at block 7, 3 s ago: ready",
        "  rewards 0.0022 ETH, gas 0.0001 ETH, profit 0.0021 ETH",
        "  mined 4 propose, 1 settle; 2 jobs, 5 nodes ready",
    ]


def test_status_lines__dry_run__says_why_it_sends_nothing() -> None:
    books = {"rewards": "0", "gas": "0", "profit": "0", "mined": {}}
    told = status(0, account=None, ready=False, why="dry run: no account is configured", profit_and_loss=books)
    first, _, last = status_lines(told, ETH)
    assert first == "keeper without an account at block 7, 3 s ago: not ready: dry run: no account is configured"
    assert last == "  mined nothing; 2 jobs, 5 nodes ready"


def test_work_rows__batch__first_id_whole_and_the_number_of_the_others() -> None:
    work = [
        {"does": "propose", "ids": [f"{JOB}/3"], "earns": "5", "earns_text": "0.5 ETH"},
        {"does": "settle", "ids": [f"{JOB}/0", f"{JOB}/1"], "earns": "5", "earns_text": "1 ETH"},
    ]
    assert work_rows({"work": work}) == [
        ("propose", f"{JOB}/3", "0.5 ETH"),
        ("settle", f"{JOB}/0 and 1 more", "1 ETH"),
    ]


def test_explain_lines__units__with_their_whole_ids() -> None:
    told = {
        "nodes": {"fits": 2, "cores": 1},
        "keeper": [{"id": f"{JOB}/all", "does": "nothing", "why": "its job is closed"}],
    }
    assert explain_lines(told) == ["nodes: 2 fits, 1 cores", f"{JOB}/all: nothing, its job is closed"]
    assert explain_lines({"nodes": {}, "keeper": []}) == ["nodes: no live node"]
