"""Several stores as one: read from each in turn, write to the first that can be written."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from hearth.base.errors import BlockCorrupt, BlockMissing, StorageError, StoreDown, TooLarge
from hearth.storage import unixfs
from hearth.storage.cid import SHA2_256, Cid
from hearth.storage.stores.base import Store, StoreBase, StoreStatus
from hearth.storage.unixfs import DEFAULT_LIMITS, ReadLimits

COOL_DOWN_SECONDS: Final = 30.0
"""A store that was down is asked last for this long, so that a dead one does not cost its timeout per block; a mirror
that could not be written is left out."""


@dataclass(frozen=True, slots=True)
class StoreFault:
    """Report what one store of a chain did wrong, while another one helped out."""

    store: str
    code: str
    message: str


class Chain(StoreBase):
    """Read from `stores` in order, each with its own deadline; write to the first writable one and to `mirrors` more.

    A store that is down, lacks the block or serves other bytes is skipped; `on_fault` hears of all but mere absence.
    `keep` copies what had to be read from a later store into the first writable one. Not reading a mirror back is the
    caller's choice; failing to write one is a fault, not an error, as long as the first write succeeded.
    """

    def __init__(
        self,
        stores: Sequence[Store],
        *,
        mirrors: int = 0,
        keep: bool = False,
        on_fault: Callable[[StoreFault], None] | None = None,
    ) -> None:
        if not stores:
            raise ValueError("a chain needs a store")
        writable = [store for store in stores if store.writable]
        super().__init__(" ".join(store.url for store in stores), writable=bool(writable))
        self.stores = tuple(stores)
        self._first = writable[0] if writable else None
        self._mirrors = tuple(writable[1 : 1 + mirrors])
        self._keep = keep
        self._on_fault = on_fault
        self._down_until: dict[str, float] = {}
        # Not the same: what a store does not give may be a stranger's doing, and is no reason to keep results from it.
        self._unwritten_until: dict[str, float] = {}
        self._import = _Import()
        self._lock = threading.Lock()

    def _order(self) -> list[Store]:
        now = time.monotonic()
        with self._lock:
            return sorted(self.stores, key=lambda store: self._down_until.get(store.url, 0.0) > now)

    def _report(self, store: Store, error: StorageError) -> None:
        if isinstance(error, StoreDown):
            with self._lock:
                self._down_until[store.url] = time.monotonic() + COOL_DOWN_SECONDS
        if self._on_fault is not None and not isinstance(error, BlockMissing):
            self._on_fault(StoreFault(store.url, error.code, error.message))

    def _read(self, cid: Cid, timeout: float) -> bytes:
        errors: list[StorageError] = []
        keep_in: Store | None = None
        for store in self._order():
            try:
                data = store.get_block(cid, timeout)
            except (StoreDown, BlockMissing, BlockCorrupt, TooLarge) as error:
                self._report(store, error)
                errors.append(error)
                if self._keep and store is self._first and not isinstance(error, StoreDown):
                    keep_in = store
                continue
            if keep_in is not None and cid.hash_code == SHA2_256:
                self._try(keep_in, partial(_copy, data, cid))
            return data
        raise none_gives(cid, errors)

    def _try(self, store: Store, action: Callable[[Store], object]) -> StorageError | None:
        """Do what may fail without harm; a failure is reported and returned."""
        try:
            action(store)
        except StorageError as error:
            self._report(store, error)
            return error
        return None

    def _write(self, cid: Cid, data: bytes) -> None:
        self._writer().put_block(data, cid.codec)
        self._copy_to_mirrors(data, cid)

    def try_write(self) -> None:
        """Try the store that is written to; a mirror that takes nothing fails no write."""
        self._writer().try_write()

    def _copy_to_mirrors(self, data: bytes, cid: Cid) -> None:
        """Copy a block; a mirror that failed just now is not waited for again."""
        for mirror in self._mirrors:
            if self._in_mirror(mirror, partial(_copy, data, cid)) is not None:
                self._import.lacking.add(mirror.url)

    def _in_mirror(self, mirror: Store, action: Callable[[Store], object]) -> StorageError | None:
        """Do something in a mirror, unless it was down just now; return why it is not done."""
        with self._lock:
            if self._unwritten_until.get(mirror.url, 0.0) > time.monotonic():
                return self._down(f"{mirror.url} was down just now")
        error = self._try(mirror, action)
        if isinstance(error, StoreDown):
            with self._lock:
                self._unwritten_until[mirror.url] = time.monotonic() + COOL_DOWN_SECONDS
        return error

    def _writer(self) -> Store:
        self._require_writable()
        assert self._first is not None  # implied by writable
        return self._first

    def has(self, cid: Cid) -> bool:
        """Return whether one of the stores has the block. Raises StoreDown where none says so and one is down."""
        down: StoreDown | None = None
        for store in self._order():
            try:
                if store.has(cid):
                    return True
            except StorageError as error:
                self._report(store, error)
                if isinstance(error, StoreDown):
                    down = error
        if down is not None:
            raise down
        return False

    def pin(self, cid: Cid, limits: ReadLimits = DEFAULT_LIMITS) -> None:
        """Copy the whole DAG into the store that is written to and its mirrors, and pin it there."""
        writer = self._writer()
        for here, block in unixfs.blocks_of(cid, self, limits):
            writer.put_block(block, here.codec)
            self._copy_to_mirrors(block, here)
        self._pin_added(cid)

    def _pin_added(self, cid: Cid) -> None:
        """Pin a DAG in the store that is written to, and in the mirrors that took all of it: others would search."""
        lacking, self._import.lacking = self._import.lacking, set()
        self._writer().pin(cid)
        for mirror in self._mirrors:
            if mirror.url not in lacking:
                self._in_mirror(mirror, lambda there: there.pin(cid))

    def unpin(self, cid: Cid) -> None:
        """Let the DAG go in the store that is written to and its mirrors; raise, at the end, what one could not."""

        def let_go(store: Store) -> None:
            store.unpin(cid)

        failures = [self._try(self._writer(), let_go), *(self._in_mirror(mirror, let_go) for mirror in self._mirrors)]
        for error in failures:
            if error is not None:
                raise error

    def collect(self) -> int:
        """Clear the stores that are written to; the others are somebody else's."""
        return sum(store.collect() for store in (self._writer(), *self._mirrors))

    def status(self) -> StoreStatus:
        """Return every store's status in one."""
        found = [store.status() for store in self.stores]
        return StoreStatus(
            self.url,
            any(status.reachable for status in found),
            any(status.writable for status in found),
            "; ".join(f"{status.url}: {status.detail}" for status in found),
        )

    def close(self) -> None:
        """Close every store."""
        for store in self.stores:
            store.close()


def none_gives(cid: Cid, errors: Sequence[StorageError]) -> StorageError:
    """Return the error of a block that several stores were asked for in vain.

    It names the gravest reason: bytes that lie, then a store that may come back, then absence. A second try may help
    where it may help with one of them: who lies does not speak for the others.
    """
    for kind in (BlockCorrupt, TooLarge, StoreDown, BlockMissing):
        if any(isinstance(error, kind) for error in errors):
            break
    return kind(
        f"no store gives block {cid}: " + "; ".join(error.message for error in errors),
        hint="hearth doctor",
        retryable=any(error.retryable for error in errors),
        cid=str(cid),
        reasons=[error.code for error in errors],
    )


class _Import(threading.local):
    """What one thread is importing: the mirrors that lack a block of what it has put since it pinned last."""

    def __init__(self) -> None:
        self.lacking: set[str] = set()


def _copy(block: bytes, cid: Cid, store: Store) -> None:
    store.put_block(block, cid.codec)
