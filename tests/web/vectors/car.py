"""CAR files: what is written, and what is read of or refused in others', headers of any DAG-CBOR among them.

A block is one letter of what its name is (r raw, p dag-pb, c dag-cbor, 0 of version 0, i inline, b blake3) and its
bytes.
"""

from __future__ import annotations

import hashlib
import io
import random
from typing import Any

from hearth.base.errors import HearthError
from hearth.storage import car
from hearth.storage import cid as cids
from hearth.storage.cid import Cid

_Block = tuple[Cid, bytes]

# Headers by hand, as hex: what stands in place of the one root, or the whole after a "!".
_ROOTS = (
    ("d82a450001550000", "da0000002a450001550000", "d9002a450001550000", "450001550000", "4401550000", "d82a4401550000")
    + (
        "d82a4100",
        "d82a40",
        "d82a450002550000",
        "d82a450001560000",
        "d82a460001550000aa",
        "d82a450001551300",
        "60",
        "f6",
    )
    + ("d82a5f450001550000ff", "d82a65000155000000", "d82b450001550000", "d829450001550000", "a0", "80", "01", "8100")
    + ("d82a470001ff01550000", "d82a45000181", "d82a4600018100550000", "d82a58230012200000", "d82a4500015500ff", "1c")
    + (f"d82a58230012{'20' + '00' * 32}", f"d82a58240012{'20' + '00' * 33}", f"d82a58220012{'20' + '00' * 31}")
    + (f"d82a58250001551220{'00' * 32}", f"d82a58260001551220{'00' * 33}", f"d82a58250001551221{'00' * 32}")
    + (f"d82a58450001550040{'00' * 64}", f"d82a58460001550041{'00' * 65}", f"d82a58450001551340{'00' * 64}")
    + (f"5824015512{'20' + '00' * 32}", f"d82a582500017112{'20' + '00' * 32}", f"d82a58250001551e{'20' + '00' * 32}")
)
_WHOLE = (
    ("80", "a0", "f6", "00", "6576657273", "a167766572736966e01", "a16776657273696f6e01", "a16776657273696f6e02")
    + (
        "a2{r}816776657273696f6e01",
        "a26776657273696f6e01{r}",
        "bf{r}{one}{v}01ff",
        "a2{r}{one}{v}1801",
        "a2{r}{one}{v}f5",
    )
    + (
        "a2{r}{one}{v}fa3f800000",
        "a2{r}{one}{v}fb3ff0000000000000",
        "a2{r}{one}{v}20",
        "a2{r}{one}{v}f93c00",
        "a2{r}{one}{v}",
    )
    + ("a2{r}{one}{v}1b0000000000000001", "a2{r}{one}{v}1bffffffffffffffff", "a2{r}{one}{v}3bffffffffffffffff")
    + ("a2{r}{one}{v}0100", "a3{r}{one}{v}01686d6f7265207468f6", "a3616101{r}{one}{v}01", "a3{r}{one}{r}{one}{v}01")
    + (
        "a3616101{r}{one}{v}01",
        "a36161f7{r}{one}{v}01",
        "a36161fb7ff8000000000000{r}{one}{v}01",
        "a36161fa7f800000{r}{one}{v}01",
    )
    + (
        "a361ff01{r}{one}{v}01",
        "a3616161ff{r}{one}{v}01",
        "a361618201a0{r}{one}{v}01",
        "a36161a2616201616101{r}{one}{v}01",
    )
    + ("a36161a2616101616201{r}{one}{v}01", "a36161a262616101616201{r}{one}{v}01", "a36161a2616101616101{r}{one}{v}01")
    + ("a3616199ffff{r}{one}{v}01", "a361619bffffffffffffffff{r}{one}{v}01", "a36161bb8000000000000000{r}{one}{v}01")
    + ("a361617f6161ff{r}{one}{v}01", "a361619f01ff{r}{one}{v}01", "a3f6f6{r}{one}{v}01", "a34161f6{r}{one}{v}01")
    + ("a3616178016b{r}{one}{v}01", "a3786101{r}{one}{v}01", "a378016101{r}{one}{v}01", "a36161c000{r}{one}{v}01")
    + (
        "a2{r}9801{link}{v}01",
        "a2{r}990001{link}{v}01",
        "a2{r}80{v}01",
        "a2{r}f6{v}01",
        "a2{r}a0{v}01",
        "a2{r}82{link}00{v}01",
    )
)
_PARTS = {"r": "65726f6f7473", "v": "6776657273696f6e", "one": "81d82a450001550000", "link": "d82a450001550000"}


def cases() -> dict[str, Any]:
    """Return the vectors."""
    chance = random.Random("car")
    files = [_file(chance) for _ in range(24)] + [_roots(count) for count in (23, 24, 64, 65, 300)]
    small = [_bytes_of(*_file(chance)) for _ in range(40)]
    raws = [_headed(_header(text)) for text in _WHOLE] + [_headed(_rooted(text)) for text in _ROOTS]
    raws += [_headed(_header("a36161" + "81" * depth + "01{r}{one}{v}01")) for depth in (1, 500, 3000)]
    raws += _sectioned() + [_mutated(chance.choice(small), chance) for _ in range(320)]
    return {
        "written": [_written(*one) for one in files],
        "read": [{"bytes": f"0x{raw.hex()}", **_read(raw)} for raw in raws],
        "large": [_large(*one) for one in _fills()],
    }


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
        "read": _read(raw),
    }


def _letter(name: Cid) -> str:
    if name.version == 0:
        return "0"
    if name.hash_code != cids.SHA2_256:
        return "i" if name.hash_code == cids.IDENTITY else "b"
    return {cids.RAW: "r", cids.DAG_PB: "p", cids.DAG_CBOR: "c"}[name.codec]


def _read(raw: bytes) -> dict[str, Any]:
    try:
        roots, blocks = car.read(io.BytesIO(raw))
        found = [[str(name), f"0x{block.hex()}"] for name, block in blocks]
        return {"roots": [str(root)[-8:] for root in roots], "blocks": found}
    except HearthError as error:
        return {"code": error.code}


# ---- files of others ----


def _header(text: str) -> bytes:
    for name, part in _PARTS.items():
        text = text.replace("{" + name + "}", part)
    return bytes.fromhex(text + "0" * (len(text) % 2))


def _rooted(root: str) -> bytes:
    return bytes.fromhex("a265726f6f747381" + root + "0" * (len(root) % 2) + "6776657273696f6e01")


def _headed(header: bytes) -> bytes:
    return car._varint(len(header)) + header


def _sectioned() -> list[bytes]:
    """Put sections of every wrong length, and names that are none, behind a good header."""
    good = _bytes_of([cids.of(b"leaf")], [(cids.of(b"leaf"), b"leaf")])
    start = len(_bytes_of([cids.of(b"leaf")], []))
    tails = [
        b"\x00",
        b"\x01",
        b"\x01\x01",
        b"\x80",
        b"\x80\x00",
        b"\x80\x80\x80\x80\x80\x01",
        b"\x80\x80\x80\x80\x01",
        b"\xff",
    ]
    tails += [
        b"\xff\xff\xff\xff\x7f",
        b"\x02\x07\x07",
        b"\x04\x01\x55\x00\x00",
        b"\x84\x00\x01\x55\x00\x00",
        b"\x05\x01\x55\x00\x00x",
    ]
    tails += [
        b"\x22\x12\x20" + bytes(32),
        b"\x23\x12\x20" + bytes(32),
        b"\x05\x01\x55\x00\x05h",
        b"\x09\x01\x55\x00\x05hello",
    ]
    tails += [b"\x0e\x01\x55\x00\x05hellohello", b"\x0f\x01\x55\x00\x05hellohellox"]
    heads = [
        b"",
        b"\x80",
        b"\x00",
        b"\x80\x80\x80\x80\x80\x01",
        b"\xff\xff\x7f",
        b"\x20abc",
        b"\x81\x80\x04",
        b"\x80\x80\x04",
    ]
    return [
        good[:-1],
        good[:-1] + b"F",
        good[: start + 1],
        *(good + tail for tail in tails),
        *(good[:start] + tail for tail in tails),
        *heads,
    ]


def _mutated(raw: bytes, chance: random.Random) -> bytes:
    data = bytearray(raw)
    for _ in range(chance.randrange(1, 3)):
        at = chance.randrange(min(len(data), chance.choice((12, 60, 400))))
        kind = chance.randrange(4)
        if kind == 0:
            data[at] = chance.choice(
                (0, 1, 0x12, 0x20, 0x55, 0x58, 0x80, 0x81, 0x82, 0xA1, 0xA2, 0xD8, 0xF5, 0xF6, 0xFF)
            )
        elif kind == 1:
            data[at] ^= 1 << chance.randrange(8)
        elif kind == 2:
            del data[at : at + chance.randrange(1, 3)]
        else:
            data[at:at] = data[at : at + chance.randrange(1, 9)]
    return bytes(data)


# ---- large ones: a start, a byte that is repeated, and an end ----


def _fills() -> list[tuple[bytes, int]]:
    start = _bytes_of([cids.of(b"leaf")], [])
    most = cids.MAX_BLOCK_BYTES
    fills = []
    for size in (2**20, most, most + 1, most + 220, most + 221, most + 4096):
        name = bytes(Cid(1, cids.RAW, cids.SHA2_256, hashlib.sha256(b"\x07" * size).digest()))
        fills.append((start + car._varint(len(name) + size) + name, size))
    return [
        *fills,
        (fills[0][0], 2**20 - 1),
        (fills[0][0], 2**20 + 1),
        (car._varint(65537), 65537),
        (car._varint(65536), 65536),
    ]


def _large(start: bytes, count: int) -> dict[str, Any]:
    found = _read(start + b"\x07" * count)
    return {"start": f"0x{start.hex()}", "count": count, "code": found.get("code")}
