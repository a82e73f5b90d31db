"""Where an attempt's blocks come from: the stores, asked again while what was asked for keeps coming.

A lease's slot is not paid while its data is on the way. So data that stops coming, or comes more slowly than the
provider allows, is waited for no longer than one window, however long the lease is.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from hearth.base.addresses import is_local_name
from hearth.base.errors import BlockMissing, StorageError
from hearth.protocol.types import Outcome
from hearth.protocol.units import format_size
from hearth.storage.cid import Cid
from hearth.storage.stores import BLOCK_TIMEOUT_SECONDS, Store
from worker.attempt.task import RETRY_SECONDS, Pace, Refused, Stopped, TooLate

BLOCK_WORTH: Final = 16 << 10
"""Bytes that a block counts at least: many small files come more slowly than a large one, and are no stall."""


@dataclass(slots=True)
class Supply:
    """Give blocks of `store` until a time of `time.monotonic`, until `stop` is set, or until they come too slowly.

    `what` names what is being fetched, in sentences. Only the time in which a store is waited for counts against its
    pace: what this machine needs to write is nobody else's fault. `get_block` raises Refused, Stopped, and the store's
    errors that no second try helps.
    """

    store: Store
    until: float
    stop: threading.Event
    pace: Pace = field(default_factory=Pace)
    what: str = "the data"
    _waited: float = 0.0
    _come: int = 0
    _said: str = ""
    _lacks: bool = False

    def get_block(self, cid: Cid) -> bytes:
        """Return a block, checked; one that is missing is asked for again."""
        while True:
            if self.stop.is_set():
                raise Stopped
            began = time.monotonic()
            left = min(self.until - began, self.pace.window - self._waited)
            if left <= 0:
                raise self._late(cid)
            try:
                block = self.store.get_block(cid, min(left, BLOCK_TIMEOUT_SECONDS))
            except StorageError as error:
                if not error.retryable:
                    raise
                self._said, self._lacks = error.message, isinstance(error, BlockMissing)
                took = time.monotonic() - began
                if left - took <= RETRY_SECONDS:
                    self._waited += took
                    raise self._late(cid) from error
                self.stop.wait(RETRY_SECONDS)
                self._waited += time.monotonic() - began
                continue
            self._count(len(block), time.monotonic() - began)
            return block

    def _count(self, size: int, seconds: float) -> None:
        """Enter a block; a new window begins where enough has come in this one."""
        self._said, self._lacks = "", False
        self._waited += seconds
        self._come += max(size, BLOCK_WORTH)
        if self._come >= self.pace.floor:
            self._waited, self._come = 0.0, 0

    def _late(self, cid: Cid) -> Refused:
        """Return the refusal of what does not come: what, which block, who was asked, and for how long.

        Where nothing is wrong with it but the time that there was, it is TooLate.
        """
        names = ", ".join(name_of(url) for url in self.store.url.split())
        if self._come and not self._lacks:
            least = format_size(self.pace.floor)
            why = f"{self.what} comes too slowly: {names} gave less than {least} in {self._waited:.0f} s"
        elif self._said:
            why = f"{self.what} cannot be fetched: {names} gave no block {cid} in {self._waited:.0f} s of asking"
        else:
            why = f"{self.what} did not arrive in time from {names}"
        if not self._said and time.monotonic() + RETRY_SECONDS >= self.until:
            return TooLate(why)
        return Refused(Outcome.BAD_INPUT, why, inside=self._said)

    def refusal(self, error: StorageError) -> Refused:
        """Return the refusal of data that no second try helps. What names this worker's stores stays inside."""
        known = not any(url in error.message for url in self.store.url.split())
        why = error.message if known else f"the stores give what cannot be used ({error.code})"
        return Refused(Outcome.BAD_INPUT, f"{self.what}: {why}", inside="" if known else error.message)


def name_of(url: str) -> str:
    """Return what a stranger may know of a store: its kind, and the host of a gateway that is public."""
    parts = urlsplit(url)
    if not parts.scheme.startswith("gateway"):
        return "a Kubo node" if parts.scheme == "kubo" else "a folder"
    host = parts.hostname or ""
    return "a gateway of its own" if is_local_name(host) else f"the gateway {host}"
