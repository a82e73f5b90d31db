"""What a campaign hears of how its processes ended."""

from __future__ import annotations

import signal
import time
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import forkserver
from pathlib import Path

import pytest

from tests.chaos.processes import Child

pytestmark = pytest.mark.e2e


@pytest.fixture
def slow_pipes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a second reader of an exit status come while the first is at it, as a busy machine does now and then."""
    read = forkserver.read_signed

    def slowly(fd: int) -> int:
        time.sleep(0.2)
        return int(read(fd))

    monkeypatch.setattr(forkserver, "read_signed", slowly)


@pytest.mark.usefixtures("slow_pipes")
def test_child__killed_while_another_starts__ended_by_the_signal(tmp_path: Path) -> None:
    children: list[Child] = []

    def start() -> Child:
        folder = tmp_path / str(len(children))
        folder.mkdir()
        children.append(Child(folder / "log", "gateway", str(folder), str(folder)))
        return children[-1]

    try:
        with ThreadPoolExecutor(2) as pool:
            for _ in range(3):
                one = start()
                one.kill()
                other = pool.submit(start)
                assert pool.submit(one.wait, 30).result() == one.poll() == -signal.SIGKILL
                other.result().kill()
                assert other.result().wait(30) == -signal.SIGKILL
    finally:
        for child in children:
            child.kill()
