"""Logs of a long-running program: lines on stderr, for people or for machines."""

from __future__ import annotations

import logging
import sys
from collections.abc import MutableMapping
from contextlib import suppress
from typing import Any, TextIO

import structlog

from hearth.base.text import one_line


def configure_logs(as_json: bool, level: int = logging.INFO) -> None:
    """Log to stderr from `level` on: one JSON object per line, or text for people.

    Loggers are not cached, so that a program that runs in another's process leaves nothing of itself behind.
    """
    renderer: Any = structlog.processors.JSONRenderer() if as_json else structlog.dev.ConsoleRenderer(colors=False)
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            _as_one_line,
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(_Lines(sys.stderr)),  # type: ignore[arg-type]
    )


def _as_one_line(logger: Any, name: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Write out, in each text of an event, what would end its line or move text: strangers' words stand among them."""
    return {key: one_line(value) if isinstance(value, str) else value for key, value in event.items()}


def set_level(name: str) -> None:
    """Log from a level on: "debug", "info", "warning" or "error"."""
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[name.upper()])
    )


class _Lines:
    """Write lines to a stream; what a full disk or a closed pipe does not take is lost, and nothing else is."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> None:
        with suppress(OSError):
            self._stream.write(text)

    def flush(self) -> None:
        with suppress(OSError):
            self._stream.flush()
