"""Blocks to content, under limits: files, walks, paths, and the blocks of a whole DAG."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from urllib.parse import unquote

from hearth.base.errors import (
    BadCid,
    NotFoundError,
    TooLarge,
    UnsafePath,
)
from hearth.storage import cid as cids
from hearth.storage.cid import Cid
from hearth.storage.unixfs.codec import (
    TYPE_DIRECTORY,
    TYPE_FILE,
    TYPE_METADATA,
    TYPE_NAMES,
    TYPE_RAW,
    TYPE_SHARD,
    TYPE_SYMLINK,
    DagNode,
    Link,
    corrupt,
    decode_dag_node,
    decode_dag_pb,
)
from hearth.storage.unixfs.model import (
    DEFAULT_LIMITS,
    HASH_BITS,
    MAX_DAG_HEIGHT,
    BlockSource,
    Entry,
    ReadLimits,
)
from hearth.storage.unixfs.names import Names

NODES_BYTES: Final = 4 << 20
"""Decoded, a node takes some ten times its block."""


class Nodes:
    """Keep the nodes that were decoded last, NODES_BYTES of blocks in all: what looks at a tree before it writes it, or
    meets the same block at a million places, fetches and decodes it once."""

    def __init__(self) -> None:
        self._held: dict[Cid, tuple[DagNode, int]] = {}
        self._bytes = 0

    def get(self, cid: Cid) -> tuple[DagNode, int] | None:
        """Return a node and the bytes of its block, None where it is not held."""
        return self._held.get(cid)

    def keep(self, cid: Cid, node: DagNode, size: int) -> None:
        """Hold a node, and let go those that have been held longest."""
        self._held[cid] = (node, size)
        self._bytes += size
        while self._bytes > NODES_BYTES:
            oldest = next(iter(self._held))
            self._bytes -= self._held.pop(oldest)[1]


class Budget:
    """Count what has been read against the limits of one reader; `nodes` are those that it shares with another."""

    def __init__(self, source: BlockSource, limits: ReadLimits, nodes: Nodes | None = None) -> None:
        self._source = source
        self._limits = limits
        self._nodes = nodes or Nodes()
        self._foreseen = 0
        self._blocks = self._entries = self._bytes = self._node_bytes = self._held_bytes = 0
        self._below = dict(limits.max_below)

    def node(self, cid: Cid) -> DagNode:
        """Read a node. What a file's node holds of the file itself is content, and is bounded as that.

        Kubo's layout without raw leaves puts all of a file into nodes.
        """
        if cid.codec != cids.DAG_PB:
            raise corrupt(cid, f"a {cids.CODECS[cid.codec]} block is no UnixFS directory or file node")
        known = self._nodes.get(cid)
        if known is None:
            block = self.block(cid)
            known = decode_dag_node(cid, block), len(block)
            self._nodes.keep(cid, *known)
        else:
            self._count_block()
        node, size = known
        held = len(node.data) if node.kind in (TYPE_FILE, TYPE_RAW) else 0
        self._held_bytes += held
        if self._held_bytes > self._limits.max_bytes:
            raise _over("bytes", self._limits.max_bytes)
        self._node_bytes += size - held
        if self._node_bytes > self._limits.max_node_bytes:
            raise _over("bytes of inner nodes", self._limits.max_node_bytes)
        return node

    def block(self, cid: Cid) -> bytes:
        """Read a block, counted each time it is read."""
        self._count_block()
        block = self._source.get_block(cid)
        cids.check_block_size(block)
        return block

    def _count_block(self) -> None:
        self._blocks += 1
        if self._blocks > self._limits.max_blocks:
            raise _over("blocks", self._limits.max_blocks)

    def foresee(self, size: int) -> None:
        """Count what one more file declares, of which nothing is read."""
        self._foreseen += size
        if self._foreseen > self._limits.max_bytes:
            raise _over("bytes", self._limits.max_bytes)

    def promise(self, size: int) -> None:
        """Refuse a file that declares more content than is left, before any of it is read."""
        if self._bytes + size > self._limits.max_bytes:
            raise _over("bytes", self._limits.max_bytes)

    def content(self, data: bytes) -> bytes:
        """Count content that is about to be handed on."""
        self.promise(len(data))
        self._bytes += len(data)
        return data

    @property
    def entries(self) -> int:
        """Return how many files and directories were counted."""
        return self._entries

    def below(self, path: str, size: int) -> None:
        """Count a file's content against the limit of each path that it is or lies below, before any of it is read."""
        for top, left in self._below.items():
            if path == top or path.startswith(f"{top}/"):
                self._below[top] = left - size
                if size > left:
                    raise _over(f"bytes in {top}", dict(self._limits.max_below)[top])

    def entry(self) -> None:
        """Count a file or directory."""
        self._entries += 1
        if self._entries > self._limits.max_entries:
            raise _over("entries", self._limits.max_entries)


def _over(what: str, limit: int) -> TooLarge:
    return TooLarge(
        f"the data has more than {limit} {what}, the limit set for it",
        hint="name a smaller part of it; what a job may leave is its outputs' max_size: hearth check job.yaml",
        limit=limit,
        what=what,
    )


def read_file(cid: Cid, source: BlockSource, limits: ReadLimits = DEFAULT_LIMITS) -> Iterator[bytes]:
    """Yield the content of a file in pieces of at most MAX_BLOCK_BYTES.

    Raises BlockCorrupt when the root is no file or a part is not as long as its parent says, TooLarge at a limit.
    """
    budget = Budget(source, limits)
    if cid.codec == cids.RAW:
        yield budget.content(budget.block(cid))
        return
    node = budget.node(cid)
    if node.kind not in (TYPE_FILE, TYPE_RAW):
        raise corrupt(cid, f"a {TYPE_NAMES[node.kind]} stands where a file is expected")
    yield from content_of(node, budget)


def content_of(node: DagNode, budget: Budget) -> Iterator[bytes]:
    """Yield a file's content depth first, without recursion so that no DAG can exhaust the stack."""
    budget.promise(node.size)
    if node.data:
        yield budget.content(node.data)
    stack = [iter(zip(node.links, node.block_sizes, strict=True))]
    while stack:
        step = next(stack[-1], None)
        if step is None:
            stack.pop()
            continue
        link, declared = step
        if link.cid.codec == cids.RAW:
            data = budget.block(link.cid)
            _check_declared(link.cid, len(data), declared)
            yield budget.content(data)
            continue
        child = budget.node(link.cid)
        if child.kind not in (TYPE_FILE, TYPE_RAW):
            raise corrupt(link.cid, f"a {TYPE_NAMES[child.kind]} stands where a part of a file is expected")
        _check_declared(link.cid, child.size, declared)
        if len(stack) >= MAX_DAG_HEIGHT:
            raise TooLarge(f"a file's tree is higher than {MAX_DAG_HEIGHT}", hint="hearth doctor")
        if child.data:
            yield budget.content(child.data)
        stack.append(iter(zip(child.links, child.block_sizes, strict=True)))


def _check_declared(cid: Cid, actual: int, declared: int) -> None:
    if actual != declared:
        raise corrupt(cid, f"it holds {actual} bytes where its parent declares {declared}")


def list_directory(node: DagNode, path: str, budget: Budget) -> Iterator[tuple[str, Link]]:
    """Yield the entries of a plain or sharded directory; names are checked, each once.

    A shard's link name starts with its slot in hex; the rest is the entry's name, or nothing when it is a sub-shard.
    No shard is read twice: what lies in it is told apart from what lies elsewhere by its names' hashes, so an equal one
    can hold nothing.
    """
    names = Names(path)
    shards: set[Cid] = set()

    def entries(shard: DagNode, level: int) -> Iterator[tuple[str, Link]]:
        slot_bits = (shard.fanout - 1).bit_length()
        prefix = len(f"{shard.fanout - 1:X}") if shard.kind == TYPE_SHARD else 0
        for link in shard.links:
            if not prefix or len(link.name) > prefix:
                budget.entry()
                yield names.add(link.name[prefix:]), link
                continue
            if len(link.name) != prefix or link.cid in shards or (level + 1) * slot_bits > HASH_BITS:
                raise corrupt(link.cid, "it is no part of a sharded directory")
            shards.add(link.cid)
            child = budget.node(link.cid)
            if child.kind != TYPE_SHARD or child.fanout != node.fanout:
                raise corrupt(link.cid, "it is no part of a sharded directory")
            yield from entries(child, level + 1)

    return entries(node, 1)


def open_node(cid: Cid, budget: Budget) -> bytes | DagNode:
    """Return a raw leaf's bytes, or a file's or directory's node."""
    if cid.codec == cids.RAW:
        return budget.block(cid)
    node = budget.node(cid)
    if node.kind in (TYPE_METADATA, TYPE_SYMLINK):
        raise UnsafePath(
            f"{cid} is a UnixFS {TYPE_NAMES[node.kind]}; only files and directories are read",
            hint="ask for the data without links",
            cid=str(cid),
        )
    return node


def walk(cid: Cid, source: BlockSource, limits: ReadLimits = DEFAULT_LIMITS) -> Iterator[Entry]:
    """Yield every file and directory below and including `cid`, parents first, sizes as declared by the nodes.

    A child's `tsize` is what its parent declares.
    """
    budget = Budget(source, limits)
    budget.entry()
    stack = [(cid, "", 0)]
    while stack:
        here, path, tsize = stack.pop()
        opened = open_node(here, budget)
        if isinstance(opened, bytes) or opened.kind in (TYPE_FILE, TYPE_RAW):
            size = len(opened) if isinstance(opened, bytes) else opened.size
            yield Entry(here, "file", size, tsize or size, path=path)
            continue
        yield Entry(here, "directory", 0, tsize, 0, path)
        children = list(list_directory(opened, path, budget))
        stack.extend((link.cid, f"{path}/{name}" if path else name, link.tsize) for name, link in reversed(children))


def count_entries(cid: Cid, source: BlockSource, limits: ReadLimits = DEFAULT_LIMITS) -> int:
    """Return how many files and directories a tree has, itself included; only inner nodes are read, no content.

    Every name is checked on the way, so that what is no tree to unpack is known before anything is written.
    """
    budget = Budget(source, limits)
    budget.entry()
    stack = [(cid, "")]
    while stack:
        here, path = stack.pop()
        if here.codec == cids.RAW:
            continue
        opened = open_node(here, budget)
        if isinstance(opened, DagNode) and opened.kind in (TYPE_DIRECTORY, TYPE_SHARD):
            children = list_directory(opened, path, budget)
            stack.extend((link.cid, f"{path}/{name}" if path else name) for name, link in children)
    return budget.entries


def survey(cid: Cid, source: BlockSource, limits: ReadLimits, nodes: Nodes) -> None:
    """Refuse a tree that unfolds to more than the limits, by the word of its nodes, before anything of it is written.

    A block that is named a million times is a million files. Only nodes are read, each once; no content. Raises what
    `count_entries` does.
    """
    budget = Budget(source, limits, nodes)
    budget.entry()
    stack = [(cid, "", 0)]
    while stack:
        here, path, tsize = stack.pop()
        if here.codec == cids.RAW:
            # Its parent's word for it; no leaf is larger than a block.
            size = min(tsize, cids.MAX_BLOCK_BYTES)
        else:
            opened = open_node(here, budget)
            assert isinstance(opened, DagNode)
            if opened.kind in (TYPE_DIRECTORY, TYPE_SHARD):
                children = list_directory(opened, path, budget)
                stack.extend((link.cid, f"{path}/{name}" if path else name, link.tsize) for name, link in children)
                continue
            size = opened.size
        budget.foresee(size)
        budget.below(path, size)


def resolve(cid: Cid, path: str, source: BlockSource, limits: ReadLimits = DEFAULT_LIMITS) -> Cid:
    """Follow a path ("a/b/c") from a directory and return the CID it names. Raises NotFoundError.

    A name is taken as it stands, and where there is none such, as a URL writes it: `a%20b` is also `a b`.
    """
    budget = Budget(source, limits)
    here, walked = cid, ""
    for part in filter(None, path.split("/")):
        opened = open_node(here, budget)
        children: dict[str, Link] = {}
        if isinstance(opened, DagNode) and opened.kind in (TYPE_DIRECTORY, TYPE_SHARD):
            children = dict(list_directory(opened, walked, budget))
        name = part if part in children else unquote(part)
        if name not in children:
            raise NotFoundError(f"{cid} has no entry {path!r}", hint="check the path", component="store", path=path)
        here, walked = children[name].cid, f"{walked}/{name}" if walked else name
    return here


def declared_size(cid: Cid, source: BlockSource) -> int:
    """Return about how many bytes a fetch will move, by the root's own word: for progress bars, not for limits."""
    opened = open_node(cid, Budget(source, DEFAULT_LIMITS))
    if isinstance(opened, bytes):
        return len(opened)
    if opened.kind in (TYPE_DIRECTORY, TYPE_SHARD):
        return sum(link.tsize for link in opened.links)
    return opened.size


def links_of(cid: Cid, block: bytes) -> tuple[Cid, ...]:
    """Return the children that a block links to, in order."""
    if cid.codec == cids.RAW:
        return ()
    if cid.codec != cids.DAG_PB:
        raise BadCid(
            f"{cid}: the links of {cids.CODECS[cid.codec]} blocks are not followed",
            hint="name a UnixFS file or directory",
        )
    try:
        return tuple(link.cid for link in decode_dag_pb(block)[0])
    except (ValueError, BadCid) as error:
        raise corrupt(cid, str(error)) from error


def blocks_of(cid: Cid, source: BlockSource, limits: ReadLimits = DEFAULT_LIMITS) -> Iterator[tuple[Cid, bytes]]:
    """Yield every block of a DAG once, parents first, within the same limits as a reader of its content.

    A raw block is content. How much of a node is, is not looked at here: all blocks are held against both limits' sum.
    """
    budget, left = Budget(source, limits), limits.max_dag_bytes
    seen = {cid}
    stack = [cid]
    while stack:
        here = stack.pop()
        block = budget.block(here)
        if here.codec == cids.RAW:
            budget.content(block)
        left -= len(block)
        if left < 0:
            raise _over("bytes of blocks", limits.max_dag_bytes)
        yield here, block
        fresh = [child for child in dict.fromkeys(links_of(here, block)) if child not in seen]
        seen.update(fresh)
        stack.extend(reversed(fresh))
