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
"""A store that was down is asked last for this long, so that a dead one does not cost its timeout per block."""


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
        raise self._all_failed(cid, errors)

    def _try(self, store: Store, action: Callable[[Store], object]) -> None:
        """Do what may fail without harm; a failure is reported."""
        try:
            action(store)
        except StorageError as error:
            self._report(store, error)

    def _all_failed(self, cid: Cid, errors: list[StorageError]) -> StorageError:
        """Name the gravest reason: bytes that lie, then a store that may come back, then absence."""
        for kind in (BlockCorrupt, TooLarge, StoreDown, BlockMissing):
            if any(isinstance(error, kind) for error in errors):
                break
        return kind(
            f"no store gives block {cid}: " + "; ".join(error.message for error in errors),
            hint="hearth doctor",
            cid=str(cid),
            reasons=[error.code for error in errors],
        )

    def _write(self, cid: Cid, data: bytes) -> None:
        self._writer().put_block(data, cid.codec)
        for mirror in self._mirrors:
            self._try(mirror, partial(_copy, data, cid))

    def _writer(self) -> Store:
        self._require_writable()
        assert self._first is not None  # implied by writable
        return self._first

    def has(self, cid: Cid) -> bool:
        """Return whether one of the stores has the block; one that is down has not."""
        for store in self._order():
            try:
                if store.has(cid):
                    return True
            except StorageError as error:
                self._report(store, error)
        return False

    def pin(self, cid: Cid, limits: ReadLimits = DEFAULT_LIMITS) -> None:
        """Copy the whole DAG into the store that is written to and its mirrors, and pin it there."""
        writer = self._writer()
        for here, block in unixfs.blocks_of(cid, self, limits):
            writer.put_block(block, here.codec)
            for mirror in self._mirrors:
                self._try(mirror, partial(_copy, block, here))
        self._pin_added(cid)

    def _pin_added(self, cid: Cid) -> None:
        self._writer().pin(cid)
        for mirror in self._mirrors:
            self._try(mirror, lambda there: there.pin(cid))

    def unpin(self, cid: Cid) -> None:
        """Let the DAG go in the store that is written to and its mirrors."""
        self._writer().unpin(cid)
        for mirror in self._mirrors:
            self._try(mirror, lambda there: there.unpin(cid))

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


def _copy(block: bytes, cid: Cid, store: Store) -> None:
    store.put_block(block, cid.codec)
