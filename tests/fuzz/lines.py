"""Which lines of Hearth's functions an input reaches, by the interpreter's own tracing."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

from tests.fuzz.target import Target, check

ROOT: Final = Path(__file__).parents[2]
_ROOMS: Final = tuple(f"{ROOT}/{room}/" for room in ("hearth", "keeper", "worker"))

Line = tuple[CodeType, int]


def reached(target: Target, data: bytes) -> set[Line]:
    """Return the lines that one input reaches; what breaks a rule is told where it is tested."""
    found: set[Line] = set()

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        code = frame.f_code
        if not code.co_filename.startswith(_ROOMS) or code.co_name in ("<module>", "<lambda>"):
            return None
        found.add((code, frame.f_lineno))
        return trace

    sys.settrace(trace)
    try:
        with suppress(Exception):
            check(target, data)
    finally:
        sys.settrace(None)
    return {(code, line) for code, line in found if line > code.co_firstlineno}


def of_functions(codes: Iterable[CodeType]) -> set[Line]:
    """Return every line of some functions."""
    return {(code, line) for code in codes for _, _, line in code.co_lines() if line and line > code.co_firstlineno}
