"""Logs go to stderr, as text or as JSON lines."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator

import pytest
import structlog

from hearth.daemon.logs import configure_logs


@pytest.fixture(autouse=True)
def own_logging() -> Iterator[None]:
    """Undo what the test sets up."""
    yield
    structlog.reset_defaults()


def test_configure_logs__json__one_object_a_line_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs(True)
    log = structlog.get_logger("daemon")
    log.debug("too fine")
    log.info("sent", key="a")
    try:
        raise ValueError("odd")
    except ValueError:
        log.exception("fell")
    out, err = capsys.readouterr()
    assert out == ""
    lines = [json.loads(line) for line in err.splitlines()]
    assert [(line["level"], line["event"]) for line in lines] == [("info", "sent"), ("error", "fell")]
    assert lines[0]["key"] == "a" and lines[0]["timestamp"].endswith("Z")
    assert "ValueError: odd" in lines[1]["exception"]


def test_configure_logs__text__no_colours_for_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs(False)
    structlog.get_logger("daemon").info("sent", key="a")
    err = capsys.readouterr().err
    assert "sent" in err and "key=a" in err and "\x1b" not in err


def test_configure_logs__again__a_logger_used_before_follows(capsys: pytest.CaptureFixture[str]) -> None:
    log = structlog.get_logger("daemon")
    configure_logs(False)
    log.info("first")
    configure_logs(True)
    log.info("second")
    assert json.loads(capsys.readouterr().err.splitlines()[-1])["event"] == "second"


def test_configure_logs__disk_full_under_the_log__loses_the_line_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A service whose log is a file on the disk that a job fills must not die of a line."""
    full = open("/dev/full", "w", buffering=1)  # noqa: SIM115 - closing it fails, as every write to it does
    monkeypatch.setattr(sys, "stderr", full)
    configure_logs(True)
    for number in range(3):
        structlog.get_logger("daemon").warning("disk full", number=number)
    with pytest.raises(OSError, match="No space left"):
        print("control", file=full, flush=True)
    with contextlib.suppress(OSError):
        full.close()
