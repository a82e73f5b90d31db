"""Every error that Hearth shows to a person, with its exit code, its code and the next command.

Source: protocol.md "Errors"; exit codes are the table of the command line.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from hearth.base.text import one_line

if TYPE_CHECKING:
    from hearth.base.reports import ErrorReport

REINSTALL: Final = "pip install --force-reinstall hearth_market-VERSION.whl, or in a clone git pull and make setup"
"""How Hearth itself is installed again: no package index has it (docs/RUNBOOK.md, "The installed program")."""


class HearthError(Exception):
    """Report what happened, why, and the next command.

    `code` is a stable SCREAMING_SNAKE name, `hint` an existing command or the flag to use, `exit_code` the
    process exit status, `retryable` whether the same call may succeed later without a change, `component`
    the part that refused (hearth, cli, wallet, spec, job, matching, chain, store, runtime, config, worker, keeper),
    `details` JSON-ready facts.
    """

    code = "ERROR"
    exit_code = 1
    component = "hearth"
    retryable = False

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        code: str | None = None,
        retryable: bool | None = None,
        component: str | None = None,
        also: Sequence[str] = (),
        **details: Any,
    ) -> None:
        # Messages quote strangers, who may have written a line of their own, or what moves text. As one line, with that
        # written out, every terminal, log, status file and journal can hold them. `also` are further lines of ours.
        self.message = "\n".join(map(one_line, (message, *also)))
        self.hint = one_line(hint)
        super().__init__(self.message)
        self.details = details
        if code is not None:
            self.code = code
        if retryable is not None:
            self.retryable = retryable
        if component is not None:
            self.component = component

    def as_dict(self) -> ErrorReport:
        """Return the `{"error": {...}}` object that `--json` prints."""
        return {
            "error": {
                "code": self.code,
                "message": self.message,
                "hint": self.hint,
                "retryable": self.retryable,
                "component": self.component,
                "details": self.details,
            }
        }


class UsageError(HearthError):
    """Refuse a flag, an argument or a combination of them (exit 2)."""

    code, exit_code, component = "USAGE", 2, "cli"


class SpecError(HearthError):
    """Refuse a job spec or a terms field (exit 2)."""

    code, exit_code, component = "BAD_SPEC", 2, "spec"


class ConfigError(HearthError):
    """Refuse a configuration, an account, a key file or a password (exit 3)."""

    code, exit_code, component = "BAD_CONFIG", 3, "config"


class ChainError(HearthError):
    """Report an RPC that fails, lags or serves the wrong chain or contracts (exit 4)."""

    code, exit_code, component, retryable = "RPC_UNAVAILABLE", 4, "chain", True


class RefusedError(HearthError):
    """Report a transaction that a contract refuses, with its reason (exit 5)."""

    code, exit_code, component = "REFUSED", 5, "chain"


class FundsError(HearthError):
    """Report a balance that is short of escrow, stake or gas (exit 6)."""

    code, exit_code, component = "FUNDS_SHORT", 6, "wallet"


class NotFoundError(HearthError):
    """Report an id, prefix, file or name that matches nothing, or more than one thing (exit 7)."""

    code, exit_code, component = "NOT_FOUND", 7, "chain"


class NoWorkerError(HearthError):
    """Report that no live worker can take the job, the price being above the ceiling included (exit 8)."""

    code, exit_code, component, retryable = "NO_WORKER", 8, "matching", True


class StorageError(HearthError):
    """Report a store that is down, or a block that is missing or does not match its CID (exit 9)."""

    code, exit_code, component = "STORAGE", 9, "store"


class StoreDown(StorageError):
    """Report a store that does not answer, answers with an error, or is slower than its floor."""

    code, retryable = "STORE_DOWN", True


class BlockMissing(StorageError):
    """Report a block that a store does not have."""

    code, retryable = "BLOCK_MISSING", True


class BlockCorrupt(StorageError):
    """Report bytes that do not match their CID, or a node whose fields contradict each other."""

    code = "BLOCK_CORRUPT"


class BadCid(StorageError):
    """Refuse a text that is no CID, or a CID whose version, codec or hash is not on our list."""

    code = "BAD_CID"


class BadDocument(StorageError):
    """Refuse a JSON document that has no canonical form, or bytes that are not in it."""

    code = "BAD_DOCUMENT"


class TooLarge(StorageError):
    """Refuse data over a limit on bytes, blocks, entries or depth."""

    code = "TOO_LARGE"


class UnsafePath(StorageError):
    """Refuse a file name or file type that could not be unpacked safely on every machine."""

    code = "UNSAFE_PATH"


class BadDestination(StorageError):
    """Report a destination that exists already, cannot be written, or has no room left."""

    code = "BAD_DESTINATION"


class WaitTimeout(HearthError):
    """Report that waiting ended before the job did; the job is alive (exit 10)."""

    code, exit_code, component, retryable = "WAIT_TIMEOUT", 10, "cli", True


class JobFailed(HearthError):
    """Report a job that ran and failed (exit 100)."""

    code, exit_code, component = "JOB_FAILED", 100, "job"


class JobDisputed(HearthError):
    """Report a job that is disputed or rejected (exit 101)."""

    code, exit_code, component = "JOB_DISPUTED", 101, "job"


class JobEnded(HearthError):
    """Report a job that was cancelled or expired and refunded (exit 102)."""

    code, exit_code, component = "JOB_ENDED", 102, "job"
