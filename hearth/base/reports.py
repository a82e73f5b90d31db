"""The error object that every program here prints with --json.

TypedDicts of typing_extensions, which pydantic can check on Python 3.11 too. They are imported for their types only:
no command pays for that package's import.
"""

from __future__ import annotations

from typing import Any

from typing_extensions import TypedDict


class ErrorFacts(TypedDict):
    """What happened, why, and the next command.

    `code` is a stable SCREAMING_SNAKE name, `hint` an existing command or the flag to use ("" where there is none),
    `retryable` whether the same call may succeed later without a change, `component` the part that refused, `details`
    facts that depend on the code: amounts in them are base units as decimal strings.
    """

    code: str
    message: str
    hint: str
    retryable: bool
    component: str
    details: dict[str, Any]


class ErrorReport(TypedDict):
    """What stdout carries where a command fails; it has no "schema", its one key names it."""

    error: ErrorFacts
