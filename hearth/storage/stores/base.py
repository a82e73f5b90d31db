"""The store interface, and what every store shares."""

from __future__ import annotations

import io
import secrets
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from hearth.base.errors import BlockMissing, StorageError, StoreDown
from hearth.storage import canonical, unixfs
from hearth.storage import cid as cids
from hearth.storage.cid import Cid
from hearth.storage.unixfs import DEFAULT_LIMITS, Entry, Ignore, Progress, ReadLimits, Renamed

BLOCK_TIMEOUT_SECONDS = 60.0
"""How long one block may take, from the request to its last byte."""
TRIAL_BYTES: Final = unixfs.CHUNK_BYTES
"""What a trial writes: as much as the largest block of a file. A disk with less room would take a smaller one."""


@dataclass(frozen=True, slots=True)
class StoreStatus:
    """Say whether a store can be used now; `detail` is for people."""

    url: str
    reachable: bool
    writable: bool
    detail: str


class Store(Protocol):
    """Keep and give content-addressed blocks, files, directories and documents.

    Every method may raise StorageError: StoreDown, BlockMissing, BlockCorrupt, TooLarge, BadCid, or READ_ONLY.
    """

    @property
    def url(self) -> str:
        """Return the store's name in messages: its URL, of a gateway without its path, which may be a key."""

    @property
    def writable(self) -> bool:
        """Return whether blocks can be put."""

    def put_block(self, data: bytes, codec: int = cids.RAW) -> Cid:
        """Store a block durably and return its CID (v1, sha2-256)."""

    def try_write(self) -> None:
        """Put a block that nobody has, read it and remove it. Raises StorageError where no result could be kept."""

    def get_block(self, cid: Cid, timeout: float = BLOCK_TIMEOUT_SECONDS) -> bytes:
        """Return a block, checked against its CID, within `timeout` seconds."""

    def has(self, cid: Cid) -> bool:
        """Return whether the store itself has the block now; a node is not asked to search the network."""

    def pin(self, cid: Cid) -> None:
        """Keep the whole DAG until `unpin`; raises BlockMissing if a part of it cannot be had."""

    def unpin(self, cid: Cid) -> None:
        """Let the DAG go; nothing happens if it was not pinned."""

    def collect(self) -> int:
        """Remove what no pin reaches and return the bytes freed: 0 of a store that does so by itself, or never."""

    def add_path(
        self, path: Path, ignore: Ignore | None = None, progress: Progress | None = None, *, still: bool = False
    ) -> Entry:
        """Import a file or directory tree and pin it; `still` is that of `unixfs.import_path`."""

    def add_bytes(self, data: bytes) -> Entry:
        """Import a file's content and pin it."""

    def fetch(
        self,
        cid: Cid,
        dest: Path,
        limits: ReadLimits = DEFAULT_LIMITS,
        progress: Progress | None = None,
        timeout: float | None = None,
        renamed: Renamed | None = None,
    ) -> Entry:
        """Write a file or directory tree to `dest`, wholly or not at all; `timeout` seconds for all of it.

        With `renamed`, names that a person's programs would obey are written under others, which it is told.
        """

    def put_json(self, value: Any) -> bytes:
        """Store a document in canonical form, pin it, and return the 32 bytes that name it."""

    def get_json(self, digest: bytes, timeout: float = BLOCK_TIMEOUT_SECONDS) -> Any:
        """Return the document that 32 bytes name."""

    def status(self) -> StoreStatus:
        """Return whether the store can be used now. Does not raise."""

    def close(self) -> None:
        """Release connections."""


class StoreBase(ABC):
    """Build files, trees and documents on five primitives; check every block on its way out."""

    def __init__(self, url: str, *, writable: bool) -> None:
        self._url = url
        self._writable = writable

    @property
    def url(self) -> str:
        """Return the store's name in messages: its URL, of a gateway without its path, which may be a key."""
        return self._url

    @property
    def writable(self) -> bool:
        """Return whether blocks can be put."""
        return self._writable

    @abstractmethod
    def _read(self, cid: Cid, timeout: float) -> bytes:
        """Return the bytes stored under a CID, unchecked, or raise BlockMissing or StoreDown."""

    @abstractmethod
    def _write(self, cid: Cid, data: bytes) -> None:
        """Store a block durably; only called on writable stores."""

    def _remove(self, cid: Cid) -> None:  # noqa: B027 - a store that is only read, or made of others, puts none
        """Remove a block that this process has put and nothing refers to."""

    @abstractmethod
    def has(self, cid: Cid) -> bool:
        """Return whether the store itself has the block now; a node is not asked to search the network."""

    @abstractmethod
    def pin(self, cid: Cid) -> None:
        """Keep the whole DAG until `unpin`; raises BlockMissing if a part of it cannot be had."""

    @abstractmethod
    def unpin(self, cid: Cid) -> None:
        """Let the DAG go; nothing happens if it was not pinned."""

    @abstractmethod
    def status(self) -> StoreStatus:
        """Return whether the store can be used now. Does not raise."""

    def collect(self) -> int:
        """Remove what no pin reaches and return the bytes freed: 0 of a store that does so by itself, or never."""
        return 0

    def close(self) -> None:  # noqa: B027 - most stores hold nothing
        """Release connections."""

    def put_block(self, data: bytes, codec: int = cids.RAW) -> Cid:
        """Store a block durably and return its CID (v1, sha2-256)."""
        self._require_writable()
        cid = cids.of(data, codec)
        self._write(cid, data)
        return cid

    def try_write(self) -> None:
        """Put a block that nobody has, read it and remove it. Raises StorageError where no result could be kept.

        It is drawn anew each time: of a block that is there already no store writes anything.
        """
        cid = self.put_block(secrets.token_bytes(TRIAL_BYTES))
        try:
            self.get_block(cid)
        finally:
            with suppress(StorageError):  # a collection takes what stays
                self._remove(cid)

    def get_block(self, cid: Cid, timeout: float = BLOCK_TIMEOUT_SECONDS) -> bytes:
        """Return a block, checked against its CID, within `timeout` seconds; an inline one needs no store."""
        return cid.digest if cid.hash_code == cids.IDENTITY else cid.verify(self._read(cid, timeout))

    def add_path(
        self, path: Path, ignore: Ignore | None = None, progress: Progress | None = None, *, still: bool = False
    ) -> Entry:
        """Import a file or directory tree and pin it; `still` is that of `unixfs.import_path`."""
        self._require_writable()
        entry = unixfs.import_path(path, self, ignore=ignore, progress=progress, still=still)
        self._pin_added(entry.cid)
        return entry

    def add_bytes(self, data: bytes) -> Entry:
        """Import a file's content and pin it."""
        self._require_writable()
        entry = unixfs.import_file(io.BytesIO(data), self)
        self._pin_added(entry.cid)
        return entry

    def fetch(
        self,
        cid: Cid,
        dest: Path,
        limits: ReadLimits = DEFAULT_LIMITS,
        progress: Progress | None = None,
        timeout: float | None = None,
        renamed: Renamed | None = None,
    ) -> Entry:
        """Write a file or directory tree to `dest`, wholly or not at all; `timeout` seconds for all of it.

        With `renamed`, names that a person's programs would obey are written under others, which it is told.
        """
        source = self if timeout is None else Timed(self, timeout)
        return unixfs.export(cid, source, dest, limits, progress, renamed)

    def put_json(self, value: Any) -> bytes:
        """Store a document in canonical form, pin it, and return the 32 bytes that name it."""
        cid = self.put_block(canonical.encode(value))
        self._pin_added(cid)
        return canonical.digest_of_cid(cid)

    def get_json(self, digest: bytes, timeout: float = BLOCK_TIMEOUT_SECONDS) -> Any:
        """Return the document that 32 bytes name."""
        return canonical.decode(self.get_block(canonical.cid_of_digest(digest), timeout))

    def _pin_added(self, cid: Cid) -> None:
        """Pin a DAG whose blocks have just been put here."""
        self.pin(cid)

    def _require_writable(self) -> None:
        if not self._writable:
            raise StorageError(
                f"the store {self._url} is read-only",
                hint="name a folder or a Kubo node as well: hearth init",
                code="READ_ONLY",
            )

    def _missing(self, cid: Cid, why: str = "") -> BlockMissing:
        return BlockMissing(
            f"the store {self._url} does not have block {cid}{': ' + why if why else ''}",
            hint="hearth doctor",
            store=self._url,
            cid=str(cid),
        )

    def _down(self, why: str) -> StoreDown:
        return StoreDown(f"the store {self._url} cannot be used: {why}", hint="hearth doctor", store=self._url)


class ReadOnlyStore(StoreBase):
    """Read from whoever gives blocks and promises nothing: what it says it has without giving it is worth nothing."""

    def __init__(self, url: str) -> None:
        super().__init__(url, writable=False)

    def _write(self, cid: Cid, data: bytes) -> None:
        self._require_writable()

    def has(self, cid: Cid) -> bool:
        """Return whether the store gives the block."""
        try:
            self.get_block(cid, BLOCK_TIMEOUT_SECONDS)
        except BlockMissing:
            return False
        return True

    def pin(self, cid: Cid) -> None:
        """Refuse. Raises StorageError READ_ONLY."""
        self._require_writable()

    def unpin(self, cid: Cid) -> None:
        """Refuse. Raises StorageError READ_ONLY."""
        self._require_writable()


class Timed:
    """Give blocks until a deadline that covers all of them."""

    def __init__(self, store: Store, timeout: float) -> None:
        self._store = store
        self._timeout = timeout
        self._end = time.monotonic() + timeout

    def get_block(self, cid: Cid) -> bytes:
        """Return a block. Raises StoreDown once the time is over."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise StoreDown(
                f"the store {self._store.url} did not give all the data within {self._timeout:g} s",
                hint="hearth doctor",
                store=self._store.url,
            )
        return self._store.get_block(cid, min(left, BLOCK_TIMEOUT_SECONDS))
