"""Count what the attacks did, for docs/ASSURANCE.md: transactions sent and transactions refused, by test file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from tests.kit.evm import Evm, Reverted

_TESTS: Counter[str] = Counter()
_SENT: Counter[str] = Counter()
_REFUSED: Counter[str] = Counter()


@pytest.fixture(autouse=True)
def _counted(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Count each transaction that a test sends on the in-process machine."""
    name = request.path.stem
    _TESTS[name] += 1
    send = Evm.raw_call

    def counted(self: Evm, *args: Any, **options: Any) -> bytes:
        _SENT[name] += 1
        try:
            return send(self, *args, **options)
        except Reverted:
            _REFUSED[name] += 1
            raise

    monkeypatch.setattr(Evm, "raw_call", counted)
    yield


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the table; nothing where other processes ran the tests."""
    if not _TESTS:
        return
    terminalreporter.section("attacks")
    terminalreporter.write_line(f"{'file':28} {'tests':>6} {'transactions':>13} {'refused':>8}")
    for name in sorted(_TESTS):
        terminalreporter.write_line(f"{name:28} {_TESTS[name]:6} {_SENT[name]:13,} {_REFUSED[name]:8,}")
    terminalreporter.write_line(f"{'all':28} {_TESTS.total():6} {_SENT.total():13,} {_REFUSED.total():8,}")
