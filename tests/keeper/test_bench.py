"""The benchmark measures what it says: it compares winners, and its logs are ones that an index takes."""

from __future__ import annotations

import pytest

from bench import bench_match, fleets
from keeper import match


def test_bench_fleet__small_fleets__compare_and_report() -> None:
    for kind in fleets.KINDS:
        row = bench_match.bench_fleet(kind, 60, 8)
        assert (row["same_winners"], row["nodes"]) == (8, 60)
        assert row["jobs_with_a_winner"] > 0
        assert row["ratio"] > 0


def test_bench_fleet__columns_that_name_another__stop_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_match, "in_columns", lambda view, job: match.Winner(match.NodeId(1), 1))
    with pytest.raises(SystemExit, match="columns name"):
        bench_match.bench_fleet("random", 60, 8)


def test_bench_logs__lives__are_followed_to_their_end() -> None:
    found = bench_match.bench_logs(200)
    assert found["jobs_open_at_the_end"] == 200
    assert found["logs"] == 200 * (5 + 3)
    assert found["logs_per_second"] > 0
