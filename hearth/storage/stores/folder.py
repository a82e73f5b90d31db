"""The embedded store: one file per block in a folder, safe for several processes and against crashes.

Layout: `blocks/<first byte of the digest, hex>/<digest, hex>` | `pins/<CID>` (empty files) | `tmp/` | `lock`.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from hearth.base.errors import BlockCorrupt, BlockMissing
from hearth.base.files import flush_folder
from hearth.base.urls import folder_url
from hearth.storage import cid as cids
from hearth.storage import unixfs
from hearth.storage.cid import IDENTITY, SHA2_256, Cid
from hearth.storage.stores.base import StoreBase, StoreStatus
from hearth.storage.unixfs import ReadLimits

COLLECT_GRACE_SECONDS: Final = 3600.0
"""Blocks put within this time are never collected: they may belong to an import that has not pinned its root yet."""
PORTION: Final = 256
"""Files that a collection goes through before it lets go of the lock."""
_UNBOUNDED: Final = ReadLimits(max_bytes=2**63, max_entries=2**63, max_blocks=2**63)
"""For walks over our own pins: what is here already has been accepted before."""


class FolderStore(StoreBase):
    """Keep blocks as files named by their sha2-256 digest; the folder is made by the first write.

    A block is written under a temporary name, flushed, renamed, and its directory flushed: it is whole or not there.
    What the disk spoils later is found on reading (BlockCorrupt) and healed by putting the block again.
    """

    def __init__(self, root: Path) -> None:
        self.root = Path(os.path.abspath(root))
        super().__init__(folder_url(self.root), writable=True)

    def _path(self, cid: Cid) -> Path:
        name = cid.digest.hex()
        return self.root / "blocks" / name[:2] / name

    def _pin_path(self, cid: Cid) -> Path:
        return self.root / "pins" / str(cid)

    def _read(self, cid: Cid, timeout: float) -> bytes:
        if cid.hash_code != SHA2_256:
            raise self._missing(cid)
        try:
            with open(self._path(cid), "rb") as file:
                return file.read(cids.MAX_BLOCK_BYTES + 1)
        except FileNotFoundError as error:
            raise self._missing(cid) from error
        except OSError as error:
            raise self._down(f"reading {self._path(cid)}: {error.strerror}") from error

    def _write(self, cid: Cid, data: bytes) -> None:
        path = self._path(cid)
        try:
            with self._locked(fcntl.LOCK_SH):
                if self._same(path, data):
                    os.utime(path)  # young again for the collector
                    return
                self._make(path.parent)
                self._place(path, data)
        except OSError as error:
            raise self._down(f"writing {path}: {error.strerror}") from error

    def _remove(self, cid: Cid) -> None:
        try:
            self._path(cid).unlink(missing_ok=True)
        except OSError as error:
            raise self._down(f"removing {self._path(cid)}: {error.strerror}") from error

    @staticmethod
    def _same(path: Path, data: bytes) -> bool:
        try:
            return path.stat().st_size == len(data) and path.read_bytes() == data
        except FileNotFoundError:
            return False

    def _place(self, path: Path, data: bytes) -> None:
        temporary = self.root / "tmp" / f"{os.getpid()}-{secrets.token_hex(8)}"
        try:
            with open(temporary, "xb", buffering=0) as file:
                view = memoryview(data)
                while view:
                    view = view[file.write(view) :]
                os.fsync(file.fileno())
            os.rename(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
        flush_folder(path.parent)

    def _make(self, directory: Path) -> None:
        """Make a directory of the store, flushed in its parent so that it outlives a power loss."""
        if not directory.is_dir():
            if directory != self.root:
                self._make(directory.parent)
            directory.mkdir(mode=0o700, parents=directory == self.root, exist_ok=True)
            flush_folder(directory.parent)

    @contextmanager
    def _locked(self, operation: int) -> Iterator[None]:
        """Hold the folder's lock: shared to write, alone to collect."""
        self._make(self.root / "tmp")
        with open(self.root / "lock", "ab") as lock:
            fcntl.flock(lock, operation)
            yield

    def has(self, cid: Cid) -> bool:
        """Return whether the block's file is here; its bytes are checked when they are read."""
        return cid.hash_code == IDENTITY or (cid.hash_code == SHA2_256 and self._path(cid).is_file())

    def pin(self, cid: Cid) -> None:
        """Keep a DAG through collections, after checking that all of it is here."""
        try:
            with self._locked(fcntl.LOCK_SH):
                # Under the lock, so that no collection comes between the look and the pin.
                for _ in unixfs.blocks_of(cid, _Present(self), _UNBOUNDED):
                    pass
                self._make(self.root / "pins")
                self._place(self._pin_path(cid), b"")
        except OSError as error:
            raise self._down(f"pinning {cid}: {error.strerror}") from error

    def unpin(self, cid: Cid) -> None:
        """Let a DAG go at the next collection."""
        try:
            self._pin_path(cid).unlink(missing_ok=True)
        except OSError as error:
            raise self._down(f"unpinning {cid}: {error.strerror}") from error

    def pins(self) -> list[Cid]:
        """Return the pinned roots."""
        folder = self.root / "pins"
        return [cids.parse(path.name) for path in sorted(folder.iterdir())] if folder.is_dir() else []

    def collect(self, grace_seconds: float = COLLECT_GRACE_SECONDS) -> int:
        """Remove blocks that no pin reaches and that are older than the grace; return the bytes freed.

        Others write between two portions. A block is looked at once more under the lock, where nobody writes, and what
        was pinned meanwhile is walked before anything else goes. Killed half way, it has removed some of what nobody
        refers to.
        """
        freed = 0
        keep: set[Cid] = set()
        names: set[str] = set()
        try:
            if not self.root.is_dir():
                return 0
            before = time.time() - grace_seconds
            for portion in self._portions():
                while True:
                    pins = self.pins()
                    self._reach(pins, keep, names)
                    with self._locked(fcntl.LOCK_EX):
                        if set(self.pins()) <= keep:
                            freed += sum(_drop(path, before) for path in portion if path.name not in names)
                            break
        except OSError as error:
            raise self._down(f"collecting: {error.strerror}") from error
        return freed

    def _portions(self) -> Iterator[list[Path]]:
        """Yield the files of blocks, and those that were never renamed to one, in lists that are soon gone through."""
        for folder in [*sorted((self.root / "blocks").glob("??")), self.root / "tmp"]:
            files = list(folder.iterdir()) if folder.is_dir() else []
            for first in range(0, len(files), PORTION):
                yield files[first : first + PORTION]

    def _reach(self, pins: Iterable[Cid], keep: set[Cid], names: set[str]) -> None:
        """Add what the pins reach; a block that is lost or spoilt counts as one without children."""
        stack = [cid for cid in pins if cid not in keep]
        while stack:
            cid = stack.pop()
            if cid in keep:
                continue
            keep.add(cid)
            names.add(cid.digest.hex())
            if cid.codec == cids.DAG_PB:
                with suppress(BlockMissing, BlockCorrupt):
                    stack.extend(unixfs.links_of(cid, self.get_block(cid)))

    def status(self) -> StoreStatus:
        """Return how much is stored, and whether the folder can be written."""
        here = self.root
        try:
            while not here.exists():
                here = here.parent
            sizes = [path.stat().st_size for path in (self.root / "blocks").glob("??/*")]
        except OSError as error:
            return StoreStatus(self.url, False, False, f"{here}: {error.strerror}")
        writable = os.access(here, os.W_OK | os.X_OK)
        detail = f"{len(sizes)} blocks, {sum(sizes)} bytes" if writable else f"{here} cannot be written"
        return StoreStatus(self.url, os.access(here, os.R_OK), writable, detail)


def _drop(path: Path, before: float) -> int:
    """Remove a file that was not written since; return its bytes, 0 where it stays or is gone."""
    try:
        found = path.stat()
        if found.st_mtime >= before:
            return 0
        path.unlink()
    except FileNotFoundError:  # another collection of the same folder
        return 0
    return found.st_size


class _Present:
    """Give inner nodes, and for leaves only look whether they are there."""

    def __init__(self, store: FolderStore) -> None:
        self._store = store

    def get_block(self, cid: Cid) -> bytes:
        if cid.codec == cids.RAW and self._store.has(cid):
            return b""
        return self._store.get_block(cid)
