"""DAGs that strangers made: what each reader of the library finds in them or refuses, by whose code; and nodes alone.

What a reader found is JSON in a text, so that a DAG takes few lines. Sizes stand as decimal strings. A block is one
letter of what its name is (r raw, p dag-pb, c dag-cbor, 0 of version 0, i inline) and its bytes; of a CID that was
found its last eight characters stand.
"""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hearth.base.errors import BlockMissing, HearthError
from hearth.storage import cid as cids
from hearth.storage import unixfs
from hearth.storage.cid import Cid
from hearth.storage.unixfs import ReadLimits
from hearth.storage.unixfs.codec import encode_field
from tests.web.vectors import _chance

_NAMES = (
    b"a",
    b"b",
    b"A",
    b"c d",
    b".git",
    b"HEAD",
    b"x.txt",
    "\u00e9".encode(),
    b"..",
    b"",
    b"a/b",
    b"\xff",
    b"__proto__",
)
_SHARD = encode_field(1, 5) + encode_field(2, b"\xff") + encode_field(5, 0x22)
_LARGE = 2**63 + 5


def cases() -> dict[str, Any]:
    """Return the vectors."""
    chance = _chance.source("dags 3")
    dags = [make(chance) for make in (_files, _tree, _shards, _anything) for _ in _chance.rows(3)]
    dags += [_bomb(), _high(63), _high(64), _high(65), _slots(8), _slots(9), _shared(), _huge(), _kubo()]
    return {
        "dags": [_read(store, root, limits, path) for store, root, limits, path in dags],
        "nodes": [_node(raw) for raw in _raw_nodes(_chance.source("nodes"))],
    }


@dataclass
class _Store:
    """Hold blocks by the bytes of their names."""

    blocks: dict[bytes, bytes] = field(default_factory=dict)

    def put(self, block: bytes, codec: int = cids.DAG_PB) -> Cid:
        name = cids.of(block, codec)
        self.blocks[bytes(name)] = block
        return name

    def get_block(self, cid: Cid) -> bytes:
        if bytes(cid) not in self.blocks:
            raise BlockMissing(f"no {cid}")
        return self.blocks[bytes(cid)]


_Dag = tuple[_Store, Cid, ReadLimits, str]


def _pb(data: bytes, *links: tuple[bytes, Cid, int]) -> bytes:
    parts = [
        encode_field(2, encode_field(1, bytes(child)) + encode_field(2, name) + encode_field(3, tsize))
        for name, child, tsize in links
    ]
    return b"".join(parts) + encode_field(1, data)


def _file(kind: int, content: bytes, sizes: list[int], size: int | None) -> bytes:
    message = encode_field(1, kind) + (encode_field(2, content) if content else b"")
    message += b"" if size is None else encode_field(3, size)
    return message + b"".join(encode_field(4, one) for one in sizes)


def _limits(chance: random.Random) -> ReadLimits:
    below = chance.choice(((), (("a", 3),), (("a", 30), ("b", 2), ("a/b", 1))))
    if chance.random() < 0.5:
        return ReadLimits(1000, 100, 100, below)
    return ReadLimits(chance.randrange(40), chance.randrange(1, 12), chance.randrange(1, 12), below)


# ---- DAGs by chance ----


def _grow_file(store: _Store, chance: random.Random, depth: int) -> tuple[Cid, int]:
    """Put a file, sometimes one that lies about its size; return it and its size."""
    if depth == 0 or chance.random() < 0.3:
        leaf = chance.randbytes(chance.randrange(6))
        if chance.random() < 0.1:
            return Cid(
                1, cids.RAW, cids.IDENTITY, store.blocks.setdefault(b"\1\x55\0" + bytes((len(leaf),)) + leaf, leaf)
            ), len(leaf)
        return store.put(leaf, cids.RAW), len(leaf)
    parts = [_grow_file(store, chance, depth - 1) for _ in range(chance.randrange(4))]
    if parts and chance.random() < 0.3:
        parts.append(parts[0])
    content = chance.randbytes(chance.randrange(4)) if chance.random() < 0.4 else b""
    sizes = [size for _, size in parts]
    lie = chance.random()
    if sizes and lie < 0.08:
        sizes[-1] += chance.choice((-1, 1, _LARGE)) if sizes[-1] else 1
    if sizes and lie > 0.96:
        sizes.pop()
    total = len(content) + sum(sizes)
    size = chance.choice((total, total, total, None, total + (lie > 0.93)))
    kind = chance.choice((2, 2, 2, 2, 0, 1 if lie < 0.04 else 2))
    tsizes = [chance.choice((0, size, 7)) for size in (*sizes, 0)]
    links = [(b"", child, tsize) for (child, _), tsize in zip(parts, tsizes, strict=False)]
    return store.put(_pb(_file(kind, content, sizes, size), *links)), total


def _files(chance: random.Random) -> _Dag:
    store = _Store()
    root, _ = _grow_file(store, chance, chance.randrange(1, 5))
    return store, root, _limits(chance), "a"


def _grow_tree(store: _Store, chance: random.Random, depth: int) -> Cid:
    if depth == 0 or chance.random() < 0.2:
        return _grow_file(store, chance, chance.randrange(3))[0]
    pool = _NAMES[:8] if chance.random() < 0.85 else _NAMES
    names = chance.sample(pool, chance.randrange(5)) if chance.random() < 0.9 else chance.choices(pool, k=4)
    links = [(name, _grow_tree(store, chance, depth - 1), chance.choice((0, 9, 2**40))) for name in names]
    return store.put(_pb(encode_field(1, 1), *links))


def _tree(chance: random.Random) -> _Dag:
    store = _Store()
    root = _grow_tree(store, chance, chance.randrange(1, 5))
    if chance.random() < 0.2 and store.blocks:
        store.blocks.pop(chance.choice(list(store.blocks)))
    return store, root, _limits(chance), chance.choice(("a", "b", "a/b", "/c d/", "", "x.txt/a", ".."))


def _grow_shard(store: _Store, chance: random.Random, level: int, fanout: int) -> Cid:
    width = len(f"{fanout - 1:X}")
    links = []
    for slot in sorted(chance.sample(range(fanout), chance.randrange(1, 5))):
        prefix = f"{slot:0{width}X}".encode()
        if level < 3 and chance.random() < 0.35:
            inner = fanout if chance.random() < 0.95 else 16
            links.append((prefix, _grow_shard(store, chance, level + 1, inner), 0))
        else:
            name = b"%d-%d" % (level, chance.randrange(40))
            links.append((prefix[: chance.choice((width,) * 9 + (1,))] + name, _grow_file(store, chance, 1)[0], 3))
    if links and chance.random() < 0.1:
        links.append(links[0])
    return store.put(_pb(_SHARD + encode_field(6, fanout), *links))


def _shards(chance: random.Random) -> _Dag:
    store = _Store()
    root = _grow_shard(store, chance, 1, chance.choice((8, 16, 256, 256, 1024)))
    return store, root, _limits(chance), f"1-{chance.randrange(40)}"


def _anything(chance: random.Random) -> _Dag:
    """Put nodes of every kind above each other, whether they fit or not."""
    store = _Store()
    pool = [store.put(b"leaf", cids.RAW), store.put(b"\xa0", cids.DAG_CBOR), _grow_file(store, chance, 2)[0]]
    for _ in range(chance.randrange(2, 7)):
        kind = chance.randrange(6)
        children = chance.choices(pool, k=chance.randrange(3))
        data = _file(kind, chance.choice((b"", b"/etc/passwd")), [4] * len(children) if kind in (0, 2) else [], None)
        if kind == 5:
            data = _SHARD + encode_field(6, chance.choice((8, 256, 7, 2048)))
        links = [(chance.choice(_NAMES), child, 1) for child in children]
        pool.append(store.put(_pb(data, *links)))
    old = Cid(0, cids.DAG_PB, cids.SHA2_256, pool[-1].digest)
    store.blocks[bytes(old)] = store.blocks[bytes(pool[-1])]
    return store, chance.choice((pool[-1], pool[-1], old, pool[0], pool[1])), _limits(chance), "a"


# ---- DAGs by hand ----


def _bomb() -> _Dag:
    """Build a file of 2^40 bytes out of blocks that link twice to the one below."""
    store = _Store()
    here, size = store.put(b"\0", cids.RAW), 1
    for _ in range(40):
        here, size = store.put(_pb(_file(2, b"", [size, size], None), (b"", here, 0), (b"", here, 0))), 2 * size
    return store, here, ReadLimits(2**40, 10, 60), ""


def _high(levels: int) -> _Dag:
    store = _Store()
    here = store.put(b"x", cids.RAW)
    for _ in range(levels):
        here = store.put(_pb(_file(2, b"", [1], None), (b"", here, 0)))
    return store, here, ReadLimits(), ""


def _slots(levels: int) -> _Dag:
    store = _Store()
    here = store.put(_pb(_SHARD + encode_field(6, 256), (b"00name", store.put(b"x", cids.RAW), 1)))
    for level in range(levels - 1):
        here = store.put(_pb(_SHARD + encode_field(6, 256), (b"%02X" % level, here, 0)))
    return store, here, ReadLimits(), "name"


def _shared() -> _Dag:
    store = _Store()
    here = store.put(_pb(_SHARD + encode_field(6, 8), (b"0name", store.put(b"x", cids.RAW), 1)))
    for _ in range(7):
        here = store.put(_pb(_SHARD + encode_field(6, 8), *((b"%X" % slot, here, 0) for slot in range(8))))
    return store, here, ReadLimits(), "name"


def _huge() -> _Dag:
    """Declare sizes that no double can hold: 2^53 + 1 and 2^64 - 1 bytes of a leaf that has one."""
    store = _Store()
    leaf = store.put(b"x", cids.RAW)
    large = store.put(_pb(_file(2, b"", [2**53 + 1, 2**64 - 1], 2**53 + 2**64), (b"", leaf, 1), (b"", leaf, 2**64 - 1)))
    return store, store.put(_pb(encode_field(1, 1), (b"a", large, 2**53 + 1), (b"b", leaf, 0))), ReadLimits(2**70), "a"


def _kubo() -> _Dag:
    """Put what older tools write: data before links, sizes in packed form, a mode, a leaf of type raw."""
    store = _Store()
    leaf = store.put(_pb(_file(0, b"ab", [], 2)))
    link = encode_field(2, encode_field(1, bytes(leaf)))
    message = encode_field(1, 2) + encode_field(3, 4) + encode_field(4, b"\x02\x02") + encode_field(7, 0o644)
    return store, store.put(encode_field(1, message) + link + link), ReadLimits(), ""


# ---- what readers say ----


def _read(store: _Store, root: Cid, limits: ReadLimits, path: str) -> dict[str, Any]:
    readers: dict[str, Callable[[], Any]] = {
        "walk": lambda: [
            [entry.path, entry.kind, str(entry.size), str(entry.tsize), str(entry.cid)[-8:]]
            for entry in unixfs.walk(root, store, limits)
        ],
        "count": lambda: unixfs.count_entries(root, store, limits),
        "file": lambda: b"".join(unixfs.read_file(root, store, limits)).hex(),
        "resolve": lambda: str(unixfs.resolve(root, path, store, limits)),
        "declared": lambda: str(unixfs.declared_size(root, store)),
        "blocks": lambda: [str(name)[-8:] for name, _ in unixfs.blocks_of(root, store, limits)],
        "disarmed": lambda: _exported(root, store, limits, disarm=True),
        "as_is": lambda: _exported(root, store, limits, disarm=False),
    }
    return {
        "root": str(root),
        "blocks": [_letter(cids.from_bytes(name)) + block.hex() for name, block in store.blocks.items()],
        "limits": json.dumps([str(limits.max_bytes), limits.max_entries, limits.max_blocks, limits.max_below]),
        "path": path,
        "found": {name: json.dumps(_outcome(read)) for name, read in readers.items()},
    }


def _letter(name: Cid) -> str:
    if name.version == 0:
        return "0"
    return "i" if name.hash_code == cids.IDENTITY else {cids.RAW: "r", cids.DAG_PB: "p", cids.DAG_CBOR: "c"}[name.codec]


def _outcome(read: Callable[[], Any]) -> Any:
    try:
        return {"is": read()}
    except HearthError as error:
        return {"code": error.code}


def _exported(root: Cid, store: _Store, limits: ReadLimits, *, disarm: bool) -> list[Any]:
    """Export to a disk and read back: places with their bytes (None: a folder), and which of them were renamed."""
    told: list[str] = []
    with tempfile.TemporaryDirectory(prefix="hearth-vectors-") as folder:
        dest = Path(folder) / "out"
        unixfs.export(root, store, dest, limits, renamed=(lambda path, _: told.append(path)) if disarm else None)
        places = [dest, *dest.rglob("*")] if dest.is_dir() else [dest]
        found = {
            "" if place == dest else place.relative_to(dest).as_posix(): None
            if place.is_dir()
            else place.read_bytes().hex()
            for place in places
        }
    return [sorted(found.items()), sorted(told)]


# ---- nodes alone ----


def _raw_nodes(chance: random.Random) -> list[bytes]:
    leaf, old = cids.of(b"leaf"), Cid(0, cids.DAG_PB, cids.SHA2_256, bytes(32))
    good = [
        _pb(encode_field(1, 1)),
        _pb(encode_field(1, 1), (b"a", leaf, 4), (b"b", old, 2**64 - 1)),
        _pb(_file(2, b"abc", [], 3)),
        _pb(_file(2, b"", [4, 300], 304), (b"", leaf, 4), (b"", old, 300)),
        _pb(_file(0, b"x", [4], None), (b"", leaf, 0)),
        _pb(_SHARD + encode_field(6, 256), (b"00name", leaf, 4), (b"FF", old, 0)),
        _pb(encode_field(1, 4) + encode_field(2, b"/etc/passwd")),
        encode_field(1, encode_field(1, 2) + encode_field(3, 4) + encode_field(4, b"\x02\x02") + encode_field(7, 420))
        + encode_field(2, encode_field(1, bytes(leaf))) * 2,
    ]
    hand = [b"", b"\x0a", b"\x0a\x00", b"\x0a\x02\x08\x06", b"\x0a\x02\x08\x01" * 2, b"\x12\x00\x0a\x02\x08\x01"]
    hand += [
        b"\x0a\x82\x80\x00\x08\x01",
        b"\x0a\x02\x08\x81\x80\x00",
        b"\x0a\x04\x08\x01\x08\x02",
        b"\x0d\x00\x00\x00\x00",
    ]
    hand += [b"\x0a\x0c\x08\x02\x18" + b"\xff" * 8 + b"\x01", b"\x0a\x0d\x08\x02\x18" + b"\xff" * 9 + b"\x02"]
    hand += [
        b"\x0a\x0e\x08\x02\x18" + b"\xff" * 10 + b"\x01",
        b"\x0a\x04\x10\x01\x08\x01",
        b"\x0a\x05\x08\x01\x2a\x01x",
    ]
    hand += [b"\x0a\x0b\x08\x05\x28\x22\x30\x80\x80\x80\x80\x80\x02", b"\x0a\x06\x08\x05\x28\x22\x30\x08", b"\x08\x01"]
    return good + hand + [_mutated(chance.choice(good), chance) for _ in _chance.rows(25)]


def _mutated(block: bytes, chance: random.Random) -> bytes:
    data = bytearray(block)
    for _ in range(chance.randrange(1, 3)):
        at = chance.randrange(len(data))
        kind = chance.randrange(5)
        if kind == 0:
            data[at] = chance.choice((0, 1, 2, 4, 8, 10, 16, 18, 24, 32, 34, 40, 48, 127, 128, 255))
        elif kind == 1:
            del data[at : at + chance.randrange(1, 3)]
        elif kind == 2:
            data[at:at] = chance.choice((b"\x08\x01", b"\x18\x05", b"\x20\x04", b"\x12\x00", b"\x80", b"\x0a\x01a"))
        elif kind == 3:
            data[at] ^= 1 << chance.randrange(8)
        elif len(data) < 200:
            data += data[at:]
        if not data:
            return b""
    return bytes(data)


def _node(raw: bytes) -> dict[str, Any]:
    name = Cid(1, cids.DAG_PB, cids.SHA2_256, bytes(32))
    links = _outcome(lambda: [str(child)[-8:] for child in unixfs.links_of(name, raw)])
    return {
        "bytes": f"0x{raw.hex()}",
        "node": json.dumps(_outcome(lambda: _fields(name, raw))),
        "links": json.dumps(links),
    }


def _fields(name: Cid, raw: bytes) -> list[Any]:
    node = unixfs.decode_dag_node(name, raw)
    links = [[str(link.cid)[-8:], link.name.hex(), str(link.tsize)] for link in node.links]
    fanout = node.fanout if node.kind == 5 else 0
    return [node.kind, node.data.hex(), str(node.size), [str(one) for one in node.block_sizes], fanout, links]
