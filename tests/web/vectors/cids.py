"""CIDs: texts in every base, bytes, what is refused, blocks that hash to their name, documents' digests."""

from __future__ import annotations

import random
from typing import Any

import libipld

from hearth.base.errors import HearthError
from hearth.storage import canonical, cid
from hearth.storage.cid import Cid
from tests.web.refused import code_of
from tests.web.vectors import _chance

_BASES = "079fFvVtTbBcChkKzZmMuU"
_CODECS = tuple(cid.CODECS)


def cases() -> dict[str, Any]:
    """Return the vectors; where a `code` stands, that is refused."""
    chance = _chance.source("cids")
    names = [_name(chance) for _ in _chance.rows(15)]
    texts = [libipld.encode_multibase(base, bytes(name)) for base in _BASES for name in names[:3]]
    texts += [str(name) for name in names]
    texts += [_mutated(chance.choice(texts), chance) for _ in _chance.rows(20)] + _texts()
    raws = [_mutated_bytes(bytes(chance.choice(names)), chance) for _ in _chance.rows(20)] + _raws()
    return {
        "names": [{"bytes": f"0x{bytes(name).hex()}", **_fields(name)} for name in names],
        "texts": [{"text": text, **_parsed(text)} for text in texts],
        "bytes": [{"bytes": f"0x{raw.hex()}", **_from_bytes(raw), "start": _from_start(raw)} for raw in raws],
        "uris": [_uri(text) for text in _uris()],
        "verify": _verified(chance),
        "of": [
            {"block": f"0x{block.hex()}", "codec": codec, "text": str(cid.of(block, codec))} for block, codec in _OF
        ],
        "roots": [
            {"digest": f"0x{digest.hex()}", "text": str(cid.of_root(digest))} for digest in (bytes(32), b"\1" * 32)
        ],
        "digests": [
            _document(name) for name in [*names[:20], cid.of(b""), Cid(0, cid.DAG_PB, cid.SHA2_256, bytes(32))]
        ],
        "digest_lengths": [
            {"size": size, "code": code_of(canonical.cid_of_digest, bytes(size))} for size in (0, 31, 32, 33)
        ],
    }


_OF = ((b"", cid.RAW), (b"\x0a\x02\x08\x01", cid.DAG_PB), (b"hello", cid.RAW), (b"\xa0", cid.DAG_CBOR))


def _name(chance: random.Random) -> Cid:
    kind = chance.randrange(5)
    if kind == 0:
        return Cid(0, cid.DAG_PB, cid.SHA2_256, chance.randbytes(32))
    if kind == 1:
        return Cid(
            1, chance.choice(_CODECS), cid.IDENTITY, chance.randbytes(chance.choice((0, 1, 5, 63, 64, 127, 128)))
        )
    return Cid(1, chance.choice(_CODECS), chance.choice((cid.SHA2_256, cid.BLAKE3)), chance.randbytes(32))


def _fields(name: Cid) -> dict[str, Any]:
    return {
        "text": str(name),
        "version": name.version,
        "codec": name.codec,
        "hash_code": name.hash_code,
        "digest": f"0x{name.digest.hex()}",
    }


def _mutated(text: str, chance: random.Random) -> str:
    """Change a text in a place or two; case, padding and length among it."""
    for _ in range(chance.randrange(1, 3)):
        at = chance.randrange(len(text) + 1)
        kind = chance.randrange(6)
        if kind == 0:
            text = text[:at] + chance.choice("=aAzZ019+/-_ \n\u00e9\u212a\U0001f600") + text[at:]
        elif kind == 1:
            text = text[:at] + text[at + chance.randrange(1, 4) :]
        elif kind == 2:
            text = text[:at] + text[at:].swapcase()
        elif kind == 3:
            text = text + text[-8:]
        elif kind == 4:
            text = chance.choice(_BASES) + text[1:]
        else:
            text = text[:at] + chance.choice("abcxyzABC0127") + text[at + 1 :]
    return text


def _texts() -> list[str]:
    raw = bytes(cid.of(b""))
    texts = ["", " ", "b", "z", "f", "0", "\0", "Qm", "bafy", "p123", "\U0001f680", "Qm" + "1" * 44, "Qm" + "z" * 44]
    texts += [libipld.encode_multibase(base, raw + b"\0") for base in _BASES]
    texts += [libipld.encode_multibase(base, raw)[:-1] for base in _BASES]
    texts += [libipld.encode_multibase(base, raw).swapcase() for base in _BASES]
    texts += [libipld.encode_multibase(base, b"\0" * size) for base in "09fkzZ" for size in (1, 34)]
    texts += ["\0\x01\x55\x00\x05hello", "\0\x01\x55\x00\x02\u00e9", "\0\x01\x55\x00\x03\u00e9", "b\ud800", "\ud800"]
    texts += ["z" + "1" * 255, "z" + "1" * 256, "\0" + "\U0001f600" * 255, "\0" + "\U0001f600" * 256, "z" + "1" * 300]
    texts += [str(cid.of(b"")) + "\n", " " + str(cid.of(b"")), "ipfs://" + str(cid.of(b"")), str(cid.of(b"")).upper()]
    return texts


def _parsed(text: str) -> dict[str, Any]:
    try:
        return {"bytes": f"0x{bytes(cid.parse(text)).hex()}"}
    except HearthError as error:
        return {"code": error.code}


def _mutated_bytes(raw: bytes, chance: random.Random) -> bytes:
    data = bytearray(raw)
    kind = chance.randrange(4)
    if kind == 0:
        data[chance.randrange(min(6, len(data)))] = chance.choice(
            (0, 1, 2, 18, 30, 32, 85, 112, 113, 127, 128, 129, 255)
        )
    elif kind == 1:
        del data[chance.randrange(len(data)) :]
    elif kind == 2:
        data += chance.randbytes(chance.randrange(1, 3))
    else:
        data[chance.randrange(min(6, len(data)))] ^= 1 << chance.randrange(8)
    return bytes(data)


def _raws() -> list[bytes]:
    raw = bytes(cid.of(b""))
    return [
        b"",
        b"\x00",
        b"\x01",
        b"\x01\x55\x12",
        b"\x01\x55\x12\x00",
        b"\x01\x55\x00\x00",
        b"\x01\x55\x00\x80\x00",
        b"\x01\x55\x00\x80",
        b"\x01\x55\x00\x80\x01" + bytes(128),
        b"\x01\x55\x00\x81\x01" + bytes(129),
        b"\x01\x55\x00\x82\x00" + bytes(2),
        b"\x01\x55\x00\xff\xff" + bytes(300),
        b"\x01\x55\x13\x40" + bytes(64),
        b"\x01\x72\x12\x20" + bytes(32),
        b"\x81\x00\x55\x12\x20" + bytes(32),
        b"\x02\x55\x12\x20" + bytes(32),
        b"\x12\x20" + bytes(32),
        b"\x12\x20" + bytes(33),
        b"\x12\x20" + bytes(31),
        raw + b"block",
        raw + raw,
    ]


def _from_bytes(raw: bytes) -> dict[str, Any]:
    try:
        return {"text": str(cid.from_bytes(raw))}
    except HearthError as error:
        return {"code": error.code}


def _from_start(raw: bytes) -> dict[str, Any]:
    try:
        found, end = cid.from_start(raw)
        return {"text": str(found), "end": end}
    except HearthError as error:
        return {"code": error.code}


def _uris() -> list[str]:
    name = str(cid.of(b""))
    paths = ["", "/", "//", "/a", "/a/", "//a/b c//", "/a//b", "/\u00e9?x#y"]
    texts = [
        prefix + name + path for prefix in ("", "ipfs://", "/ipfs/", "IPFS://", "https://x/ipfs/") for path in paths
    ]
    return [*texts, "", "ipfs://", "/ipfs/", "ipfs:///a", "ipfs:/" + name, "ipfs/" + name, "/ipfs/" + name + "?a"]


def _uri(text: str) -> dict[str, Any]:
    try:
        found, path = cid.parse_uri(text)
        return {"uri": text, "cid": str(found), "path": path}
    except HearthError as error:
        return {"uri": text, "code": error.code}


def _verified(chance: random.Random) -> list[dict[str, Any]]:
    """Return blocks of a size, all of one byte, with names that are theirs or another's."""
    import blake3

    rows = []
    for size in (0, 1, 63, 64, 65, 1023, 1024, 1025, 5000, 2**20, cid.MAX_BLOCK_BYTES, cid.MAX_BLOCK_BYTES + 1):
        block = b"\x07" * size
        digest = blake3.blake3(block).digest()
        names = [Cid(1, cid.RAW, cid.BLAKE3, digest), Cid(1, cid.RAW, cid.SHA2_256, digest)]
        if size <= cid.MAX_BLOCK_BYTES:
            names.append(cid.of(block))
            names.append(Cid(0, cid.DAG_PB, cid.SHA2_256, cid.of(block).digest))
        if size <= cid.MAX_INLINE_BYTES:
            names.append(Cid(1, cid.RAW, cid.IDENTITY, block))
            names.append(Cid(1, cid.RAW, cid.IDENTITY, block + b"\0"))
        rows += [{"size": size, "byte": 7, "cid": str(name), "code": code_of(name.verify, block)} for name in names]
    return rows


def _document(name: Cid) -> dict[str, Any]:
    try:
        return {"cid": str(name), "digest": f"0x{canonical.digest_of_cid(name).hex()}"}
    except HearthError as error:
        return {"cid": str(name), "code": error.code}
