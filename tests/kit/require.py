"""Decide what a test does when a real part that it needs is missing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tools.services.base import ServiceError
from tools.services.golang import GoProgram


def require(part: str, available: bool, why: str) -> None:
    """Skip the calling test where `part` is missing, or fail it where HEARTH_REQUIRE names the part.

    `part` is a short name such as "docker" or "kubo"; `why` says what was looked for and not found.
    HEARTH_REQUIRE is a comma list; CI sets it, so that a part that did not start cannot hide as a skip.
    """
    if available:
        return
    wanted = {name.strip() for name in os.environ.get("HEARTH_REQUIRE", "").split(",")}
    if part in wanted:
        pytest.fail(f"HEARTH_REQUIRE names {part}, which is missing: {why}", pytrace=False)
    pytest.skip(f"{part} is missing: {why}")


def need_program(program: GoProgram) -> Path:
    """Return a program of a pinned module, built on the first call (minutes); skip where it cannot be had."""
    try:
        return program.binary()
    except ServiceError as failure:
        require(program.name, False, str(failure))
        raise
