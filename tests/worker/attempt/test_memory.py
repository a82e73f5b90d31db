"""The memory of a worker and of its sandbox does not grow with what a job brings and leaves."""

from __future__ import annotations

from pathlib import Path

from tests.worker.attempt.copying import measured

MIB = 1 << 20


def test_attempt__eight_times_the_data_in_and_out__takes_the_same_memory(tmp_path: Path) -> None:
    (tmp_path / "small").mkdir()
    (tmp_path / "large").mkdir()
    small, large = measured(tmp_path / "small", 8 * MIB), measured(tmp_path / "large", 64 * MIB)
    assert (large["bytes_in"], large["bytes_out"]) == (64 * MIB, 64 * MIB)
    for part in ("worker_peak_mib", "sandbox_peak_mib"):
        assert large[part] < 1.15 * small[part], (part, small, large)
