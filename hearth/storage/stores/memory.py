"""A store in memory, for tests and dry runs."""

from __future__ import annotations

from hearth.storage import unixfs
from hearth.storage.cid import IDENTITY, SHA2_256, Cid
from hearth.storage.stores.base import StoreBase, StoreStatus


class MemoryStore(StoreBase):
    """Keep blocks in a dictionary by their sha2-256 digest.

    `blocks` and `pins` are open to tests, which alter and drop them.
    """

    def __init__(self, name: str = "memory") -> None:
        super().__init__(f"memory:{name}", writable=True)
        self.blocks: dict[bytes, bytes] = {}
        self.pins: set[Cid] = set()

    def _read(self, cid: Cid, timeout: float) -> bytes:
        if not self.has(cid):
            raise self._missing(cid)
        return self.blocks[cid.digest]

    def _write(self, cid: Cid, data: bytes) -> None:
        self.blocks[cid.digest] = data

    def _remove(self, cid: Cid) -> None:
        self.blocks.pop(cid.digest, None)

    def has(self, cid: Cid) -> bool:
        """Return whether the block is here."""
        return cid.hash_code == IDENTITY or (cid.hash_code == SHA2_256 and cid.digest in self.blocks)

    def pin(self, cid: Cid) -> None:
        """Remember the root, after checking that all of its DAG is here."""
        for _ in unixfs.blocks_of(cid, self):
            pass
        self.pins.add(cid)

    def unpin(self, cid: Cid) -> None:
        """Forget the root."""
        self.pins.discard(cid)

    def status(self) -> StoreStatus:
        """Return the number of blocks."""
        return StoreStatus(self.url, True, True, f"{len(self.blocks)} blocks in memory")
