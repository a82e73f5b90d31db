"""Calls of a node's owner that a running worker sends: files in its home, one a call.

While a worker runs, its key signs in its process alone. A command that needs the same key leaves its call here, as
`--print-tx` would print it, and waits; the loop takes it up, sends it by its own journal, and says what it came to.

    NAME.asked    the command's, which may still take it back
    NAME.taken    the worker's: carried out by this process or by the next one
    NAME.done     what it came to, for the command to read and delete

A rename decides whose a call is, so a command that gives up knows whether it will be sent. NAME is the digest of the
call, so the same command run again meets the call that it left; the `id` inside, drawn once, is the call's key in the
transaction journal, so a process that starts again does not send it twice. Source: docs/decisions/0019.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import structlog

from hearth.base.errors import (
    ChainError,
    ConfigError,
    FundsError,
    HearthError,
    RefusedError,
    StorageError,
    UsageError,
)
from hearth.base.failpoints import fp
from hearth.base.files import make_private, replace_text
from hearth.base.locks import FileLock
from hearth.base.text import plain
from hearth.base.untrusted_json import read_json
from hearth.chain.port import Call, hex_of, refused
from hearth.chain.tx import Sent
from hearth.chain.tx_journal import TxState
from hearth.client.prepared import Prepared, call_digest, read_prepared
from worker.home import is_running

if TYPE_CHECKING:
    from hearth.chain.tx import Sender
    from hearth.client.session import Session
    from hearth.market.reads import Market
    from hearth.protocol.types import NodeId

FOLDER: Final = "requests"
ASKED, TAKEN, DONE = ".asked", ".taken", ".done"
ASIDE: Final = ".aside"
"""A folder where a request should be: refused, and kept for a person to look at."""
OWNER: Final = "owner"
"""What the journal's keys of these calls begin with, and what metrics call them."""
CALLS: Final = frozenset(
    f"nodes.{name}" for name in ("add_stake", "set_ask", "update_offer", "exit_start", "exit_cancel", "exit_finish")
)
"""What a worker sends for its own node; besides, it withdraws its own credit to itself."""
VALID_SECONDS: Final = 600
"""How old a call may be when it is first sent, in seconds."""
PATIENCE_SECONDS: Final = 60.0
"""How long a command waits until its call is taken up: twice the longest pause of a loop that fails."""
KEEP_SECONDS: Final = 86_400
"""How long an outcome that no command has read is kept."""
MAX_BYTES: Final = 1 << 16
MAX_TAKEN: Final = 16
_ID: Final = re.compile("[0-9a-f]{32}")
_ERRORS: Final = {kind.exit_code: kind for kind in (UsageError, ConfigError, ChainError, RefusedError, FundsError)}

log = structlog.get_logger("worker")


# ---- the command's side ----


class RunningWorker:
    """The worker of a home, as whoever needs the key that it holds sees it."""

    def __init__(self, home: Path, operator: str, session: Session, *, patience: float = PATIENCE_SECONDS) -> None:
        """Look at nothing yet; `operator` is the address of the worker's key."""
        self._home = home
        self._folder = home / FOLDER
        self._operator = operator
        self._session = session
        self._patience = patience

    def send(self, prepared: Prepared, check: Callable[[], object]) -> list[Sent] | None:
        """Have a call sent and wait for what it came to; None where no worker holds the key of its sender.

        `check` is called before something new is asked for. Raises what it raises, what the sending came to,
        ConfigError WORKER_SILENT (nothing was or will be sent), and ChainError TX_PENDING where the worker has taken it
        up and this wait ended first.
        """
        if prepared.sender != self._operator or not (self._folder.is_dir() or is_running(self._home)):
            return None
        with FileLock(make_private(self._folder) / "command.lock", _busy, wait_seconds=self._patience):
            place = self._folder / call_digest(prepared.call)
            found = self._left_over(place)
            if found is not None:
                return found
            if not place.with_suffix(TAKEN).exists():
                if not is_running(self._home):
                    _delete(place.with_suffix(ASKED))
                    if not place.with_suffix(TAKEN).exists():
                        return None
                elif not place.with_suffix(ASKED).exists():
                    check()
                    request = {"id": secrets.token_hex(16), "asked": int(time.time())}
                    document = {**request, "tx": prepared.document(self._session.network)}
                    replace_text(place.with_suffix(ASKED), json.dumps(document), durable=True)
                text = f"{prepared.action}: the running worker holds this key and sends it"
                self._session.tell("note", {"text": text})
            try:
                return self._wait(place, prepared.action)
            finally:
                # Whatever ends the wait: what the worker has not taken up by then it will not send.
                _delete(place.with_suffix(ASKED))

    def _left_over(self, place: Path) -> list[Sent] | None:
        """Return what the same command, which was cut off, came to; an error of then is tried again."""
        done = place.with_suffix(DONE)
        try:
            age = time.time() - done.stat().st_mtime
        except FileNotFoundError:
            return None
        sent, error = _collect(place)
        return [replace(one, repeated=True) for one in sent] if error is None and age < KEEP_SECONDS else None

    def _wait(self, place: Path, action: str) -> list[Sent]:
        began = time.monotonic()
        while True:
            # In this order: a worker that has stopped writes nothing more.
            stopped, waited = not is_running(self._home), time.monotonic() - began
            taken = place.with_suffix(TAKEN).exists()
            if place.with_suffix(DONE).exists():
                sent, error = _collect(place)
                if error is not None:
                    raise error
                return sent
            if stopped or waited >= (self._session.settings.timeout if taken else self._patience):
                if _delete(place.with_suffix(ASKED)):
                    raise self._silent(action, waited, stopped)
                if not place.with_suffix(DONE).exists():
                    raise self._under_way(action, waited, stopped)
            time.sleep(0.1)

    def _silent(self, action: str, waited: float, stopped: bool) -> ConfigError:
        return ConfigError(
            f"the worker of {self._home} {'has stopped' if stopped else f'is silent for {waited:.0f} s'}, and "
            f"{action} is taken back: nothing was sent",
            hint="hearth worker status; then the same command again",
            code="WORKER_SILENT",
            retryable=True,
            component="worker",
        )

    def _under_way(self, action: str, waited: float, stopped: bool) -> ChainError:
        more = "hearth worker start carries it out; " if stopped else ""
        return ChainError(
            f"the worker of {self._home} has taken up {action}, and "
            f"{'has stopped since' if stopped else f'it is not mined after {waited:.0f} s'}",
            hint=f"{more}the same command again says what it came to, and sends nothing twice",
            code="TX_PENDING",
            component="worker",
        )


def _busy(pid: int | None) -> ConfigError:
    return ConfigError(
        f"process {pid or '(starting)'} waits for this worker to send a call already",
        hint="wait for it: hearth worker status",
        code="KEY_IN_USE",
        retryable=True,
        component="worker",
        pid=pid,
    )


def _content(path: Path) -> bytes:
    """Return what a request holds. Raises OSError, ValueError for a link, a pipe, a folder or too much."""
    # Without waiting: a pipe would hold the loop until somebody writes to it.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError("it is no regular file")
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ValueError(f"it has more than {MAX_BYTES} bytes")
    return content


def _delete(path: Path) -> bool:
    """Delete a file; say whether it was there."""
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    return True


# ---- the worker's side ----


class Desk:
    """Take up what an owner asks for, send it once, and say what it came to."""

    def __init__(
        self, home: Path, market: Market, sender: Sender, node: NodeId, *, clock: Callable[[], float] = time.time
    ) -> None:
        """Make the folder of requests. Raises ConfigError OPEN_FOLDER where others can enter it."""
        self._folder = make_private(home / FOLDER)
        self._market = market
        self._sender = sender
        self._node = node
        self._clock = clock

    @property
    def busy(self) -> bool:
        """Say whether something is taken up that has no outcome yet."""
        return any(self._folder.glob(f"*{TAKEN}"))

    def serve(self) -> None:
        """Bring every request a step forward. Never raises for what one of them meets."""
        for path in sorted(self._folder.glob(f"*{ASKED}"))[:MAX_TAKEN]:
            # The command may take it back at this moment.
            with suppress(OSError):
                path.rename(path.with_suffix(TAKEN))
                log.info("taken up for the owner", request=plain(path.stem))
                fp("owner.taken")
        for path in sorted(self._folder.glob(f"*{TAKEN}")):
            name = plain(path.stem)
            try:
                sent = self._carry_out(path)
            except HearthError as error:
                # A disk that takes no journal is no answer either: the call may be on its way.
                if isinstance(error, ChainError | StorageError) and error.retryable:
                    log.warning("not sent for the owner yet", request=name, why=error.message)
                    continue
                log.warning("not sent for the owner", request=name, why=error.message)
                self._answer(path, [], error)
            except Exception:
                # A fault that no request should be able to cause. It may be sent already, so that no error may be its
                # answer: it stays, the journal knows it by its id, and what never got there is soon too old to send.
                log.exception("not sent for the owner yet by a fault of the worker", request=name)
            else:
                if sent is not None:
                    fp("owner.mined")
                    log.info("sent for the owner", request=name, calls=[one.label for one in sent])
                    self._answer(path, sent, None)

    def sweep(self) -> None:
        """Delete outcomes that nobody came to read."""
        for path in self._folder.glob(f"*{DONE}"):
            with suppress(OSError):
                if self._clock() - path.stat().st_mtime > KEEP_SECONDS:
                    path.unlink()

    def _carry_out(self, path: Path) -> list[Sent] | None:
        """Send what is not sent yet; return what all of it came to, None while something waits to be mined.

        Raises HearthError where it cannot be, or was not, done.
        """
        identity, asked, prepared = self._read(path)
        journal = self._sender.journal
        sent: list[Sent] = []
        for key, call in self._steps(f"{OWNER}/{identity}", prepared):
            known = journal.find(key)
            under_way = known is not None and (known.state.live or known.state.done)
            if known is not None and not under_way and (known.tx_hash or known.state is TxState.REPLACED):
                raise refused(known.note, label=call.label)
            # A journal forgets in time, so what is old is not sent for the first time.
            if not under_way and abs(self._clock() - asked) > VALID_SECONDS:
                raise RefusedError(
                    f"{call.label} was asked for at {asked}, more than {VALID_SECONDS} s from now: nothing was sent",
                    hint="the same command again",
                    code="REQUEST_OLD",
                    component="worker",
                )
            pending = self._sender.start(call, key=key)
            if not pending.intent.state.done:
                return None
            sent.append(replace(self._sender.finish(pending), repeated=False))
        return sent

    def _steps(self, key: str, prepared: Prepared) -> list[tuple[str, Call]]:
        """Return the calls of a request in their order, by their keys: an approval where one is or was needed."""
        steps = [(key, prepared.call)]
        if prepared.approve:
            journal, approval = self._sender.journal, f"{key}/approve"
            if journal.find(approval) is not None or (
                journal.find(key) is None
                and self._market.allowance(prepared.sender, self._market.network.nodes) < prepared.approve
            ):
                steps.insert(0, (approval, self._market.calls.approve_stake(prepared.approve)))
        return steps

    def _read(self, path: Path) -> tuple[str, int, Prepared]:
        """Return a request's id, its Unix time, and its call, which is one that an owner has for this node.

        Raises UsageError BAD_TX, RefusedError NOT_YOURS, WRONG_MARKET.
        """
        try:
            raw = read_json(_content(path))
            identity, asked = raw["id"], raw["asked"]
            if not (isinstance(identity, str) and _ID.fullmatch(identity)):
                raise ValueError("its id is not 32 hex digits")
            if not (type(asked) is int and 0 <= asked < 1 << 40):
                raise ValueError("its time is no Unix time")
            prepared, _, arguments = read_prepared(raw["tx"], self._market.network, path.name)
        except (OSError, ValueError, LookupError, TypeError, ArithmeticError) as error:
            raise UsageError(
                f"{path} is no request: {error!r}", hint="the same command again", code="BAD_TX"
            ) from error
        label, mine = prepared.call.label, self._sender.address
        own = label in CALLS and arguments.get("node") == self._node
        own |= label == "escrow.withdraw" and str(arguments.get("to")).lower() == mine
        if not own or prepared.sender != mine:
            raise RefusedError(
                f"the worker of node {self._node} sends for {mine}, and {label} in {path.name} is not for that",
                hint="hearth worker --help",
                code="NOT_YOURS",
                component="worker",
            )
        return identity, asked, prepared

    def _answer(self, path: Path, sent: list[Sent], error: HearthError | None) -> None:
        """Write the outcome, then let go of the request; on a full disk the next cycle tries again."""
        outcome = {
            "sent": [_facts(one) for one in sent],
            "error": None if error is None else {**error.as_dict()["error"], "exit_code": error.exit_code},
        }
        with suppress(OSError):
            replace_text(path.with_suffix(DONE), json.dumps(outcome), durable=True)
            try:
                path.unlink()
            except IsADirectoryError:
                path.rename(path.with_suffix(f".{secrets.token_hex(8)}{ASIDE}"))


# ---- outcomes ----


def _facts(sent: Sent) -> dict[str, Any]:
    return {
        "key": sent.key,
        "label": sent.label,
        "tx_hash": None if sent.tx_hash is None else hex_of(sent.tx_hash),
        "block_number": sent.block_number,
        "gas_used": sent.gas_used,
        "fee": str(sent.fee),
    }


def _collect(place: Path) -> tuple[list[Sent], HearthError | None]:
    """Return what a request came to, what was sent or the error, and let go of it.

    Raises ConfigError where the file is damaged.
    """
    found = _read_outcome(place.with_suffix(DONE))
    # A worker that died after its answer left the request too; without its answer it would not be over.
    _delete(place.with_suffix(TAKEN))
    _delete(place.with_suffix(DONE))
    return found


def _read_outcome(path: Path) -> tuple[list[Sent], HearthError | None]:
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        sent = [
            Sent(
                key=one["key"],
                label=one["label"],
                tx_hash=None if one["tx_hash"] is None else bytes.fromhex(one["tx_hash"][2:]),
                block_number=one["block_number"],
                block_hash=None,
                gas_used=one["gas_used"],
                fee=int(one["fee"]),
            )
            for one in raw["sent"]
        ]
        if raw["error"] is None:
            return sent, None
        facts = dict(raw["error"])
        kind = _ERRORS.get(facts.pop("exit_code"), HearthError)
        return sent, kind(facts.pop("message"), **facts.pop("details"), **facts)
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            f"what the worker said in {path} cannot be read: {error!r}",
            hint=f"hearth worker status; then delete {path}",
            component="worker",
        ) from error
