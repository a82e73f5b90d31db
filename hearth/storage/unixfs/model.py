"""What the parts of UnixFS share: the constants that fix a CID, blocks in and out, entries, limits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol

from hearth.storage import cid as cids
from hearth.storage.cid import Cid

CHUNK_BYTES: Final = 2**20
"""Bytes of a leaf."""
LINKS_PER_NODE: Final = 1024
"""Links of an inner node of a file."""
DIRECTORY_BLOCK_BYTES: Final = 256 * 1024
"""A directory whose block would be larger is sharded."""
SHARD_FANOUT: Final = 256
"""Slots of a shard; a name's place is read off its hash, one byte a level."""
MAX_NAME_BYTES: Final = 255
MAX_PATH_BYTES: Final = 255
MAX_PATH_DEPTH: Final = 16
MAX_DAG_HEIGHT: Final = 64
"""Inner nodes of one file on the way to a leaf."""
HASH_BITS: Final = 64
"""Bits of a name's hash: when they are used up, a directory has no further level."""

Progress = Callable[[str, int], None]
"""Called with the relative path ("" for a lone file) and the bytes just moved."""
Ignore = Callable[[str, bool], bool]
"""Called with a relative path ("a/b") and whether it is a directory; true leaves it out."""
Renamed = Callable[[str, str], None]
"""Called with the relative path of an entry that is written under another name, and that name."""


class BlockSink(Protocol):
    """Keep blocks."""

    def put_block(self, data: bytes, codec: int = cids.RAW) -> Cid:
        """Store a block and return its CID."""


class BlockSource(Protocol):
    """Give blocks that hash to their CIDs."""

    def get_block(self, cid: Cid) -> bytes:
        """Return the verified bytes of a block."""


@dataclass(frozen=True, slots=True)
class Entry:
    """Describe one file or directory.

    `path` relative, "" for the root; `size` content bytes; `tsize` bytes of all its blocks, repeats counted each time;
    `files` regular files in it; `folders` directories with itself, told by the importer alone. Readers leave `tsize`
    0, and `walk` a directory's `size` and `files`: not known there.
    """

    cid: Cid
    kind: Literal["file", "directory"]
    size: int
    tsize: int
    files: int = 1
    path: str = ""
    folders: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """Bound what a reader accepts from a DAG that somebody else made.

    `max_bytes` content bytes, `max_entries` files and directories, `max_blocks` blocks read; repeats count each time.
    `max_below` are content bytes of single paths ("a/b") with all that lies below them.
    """

    max_bytes: int = 64 * 2**30
    max_entries: int = 100_000
    max_blocks: int = 1_000_000
    max_below: tuple[tuple[str, int], ...] = ()

    @classmethod
    def of_market(cls, max_bytes: int, max_entries: int, max_below: tuple[tuple[str, int], ...] = ()) -> ReadLimits:
        """Return the limits of a tree that was imported with the market's constants, however its names hash.

        A leaf and its share of inner nodes for each CHUNK_BYTES, and for each entry a node, a last leaf, and a shard
        for every byte of its name's hash.
        """
        blocks = 2 * (max_bytes // CHUNK_BYTES) + (3 + HASH_BITS // 8) * max_entries
        return cls(max_bytes, max_entries, blocks, max_below)

    @property
    def max_node_bytes(self) -> int:
        """Return the bytes of inner nodes to parse at most, far above what any importer needs for such content."""
        return self.max_bytes // 8 + self.max_entries * 1024 + cids.MAX_BLOCK_BYTES

    @property
    def max_dag_bytes(self) -> int:
        """Return the bytes of all blocks of a DAG at most: what a reader of its content would take, each block once."""
        return self.max_bytes + self.max_node_bytes


DEFAULT_LIMITS: Final = ReadLimits()
