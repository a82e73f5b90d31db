"""CAR files that are written.

A block is one letter of what its name is (r raw, p dag-pb, c dag-cbor, 0 of version 0, i inline, b blake3) and its
bytes.
"""

from __future__ import annotations

import hashlib
import io
import random
from typing import Any

from hearth.storage import car
from hearth.storage import cid as cids
from hearth.storage.cid import Cid
from tests.web.vectors import _chance

_Block = tuple[Cid, bytes]


def cases() -> dict[str, Any]:
    """Return the vectors."""
    chance = _chance.source("car")
    files = [_file(chance) for _ in _chance.rows(6)] + [_roots(count) for count in (23, 24, 64, 65, 300)]
    return {"written": [_written(*one) for one in files]}


def _file(chance: random.Random) -> tuple[list[Cid], list[_Block]]:
    blocks = [_block(chance) for _ in range(chance.randrange(5))]
    roots = [name for name, _ in blocks[: chance.randrange(1, 3)]] or [_block(chance)[0]]
    return roots, blocks


def _block(chance: random.Random) -> _Block:
    import blake3

    block = chance.randbytes(chance.choice((0, 1, 5, 60)))
    kind = chance.randrange(6)
    if kind == 0:
        return Cid(0, cids.DAG_PB, cids.SHA2_256, cids.of(block).digest), block
    if kind == 1:
        return Cid(1, cids.RAW, cids.IDENTITY, block), block
    if kind == 2:
        return Cid(1, cids.RAW, cids.BLAKE3, blake3.blake3(block).digest()), block
    return cids.of(block, chance.choice(tuple(cids.CODECS))), block


def _roots(count: int) -> tuple[list[Cid], list[_Block]]:
    return [cids.of(b"%d" % at) for at in range(count)], []


def _bytes_of(roots: list[Cid], blocks: list[_Block]) -> bytes:
    out = io.BytesIO()
    car.write(roots, blocks, out)
    return out.getvalue()


def _written(roots: list[Cid], blocks: list[_Block]) -> dict[str, Any]:
    raw = _bytes_of(roots, blocks)
    return {
        "roots": [str(root) for root in roots] if len(roots) < 10 else len(roots),
        "blocks": [_letter(name) + block.hex() for name, block in blocks],
        "bytes": f"0x{raw.hex()}" if len(raw) < 2000 else None,
        "digest": f"0x{hashlib.sha256(raw).hexdigest()}",
    }


def _letter(name: Cid) -> str:
    if name.version == 0:
        return "0"
    if name.hash_code != cids.SHA2_256:
        return "i" if name.hash_code == cids.IDENTITY else "b"
    return {cids.RAW: "r", cids.DAG_PB: "p", cids.DAG_CBOR: "c"}[name.codec]
