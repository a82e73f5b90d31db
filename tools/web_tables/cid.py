"""What a CID may be made of, and the bases that its text may be in (SPEC, "Job spec"; hearth/storage/cid.py).

The bases are those of libipld but base256emoji, whose table would weigh more than all others together and which no tool
writes unasked; and the identity base, which has no alphabet. `bits` is how many bits a character holds, 0 where the
whole text is one number.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import libipld

from hearth.storage import cid

_BITS = {"0": 1, "7": 3, "fF": 4, "vVtTbBcCh": 5, "mMuU": 6, "9kKZz": 0}


def tables() -> Mapping[str, Any]:
    """Return codecs, hashes, limits, and the bases."""
    return {
        "RAW": cid.RAW,
        "DAG_PB": cid.DAG_PB,
        "DAG_CBOR": cid.DAG_CBOR,
        "CODECS": cid.CODECS,
        "IDENTITY": cid.IDENTITY,
        "SHA2_256": cid.SHA2_256,
        "BLAKE3": cid.BLAKE3,
        "HASHES": cid.HASHES,
        "DIGEST_BYTES": cid.DIGEST_BYTES,
        "MAX_INLINE_BYTES": cid.MAX_INLINE_BYTES,
        "MAX_BLOCK_BYTES": cid.MAX_BLOCK_BYTES,
        "MAX_TEXT": cid._MAX_TEXT,
        "BASES": [_base(code, bits) for codes, bits in _BITS.items() for code in codes],
    }


def _base(code: str, bits: int) -> dict[str, Any]:
    alphabet = _digits(code) if bits == 0 else _letters(code, bits)
    return {
        "code": code,
        "bits": bits,
        "alphabet": alphabet,
        "padded": libipld.encode_multibase(code, b"\0").endswith("="),
        "any_case": _reads(code, alphabet.swapcase(), alphabet),
    }


def _digits(code: str) -> str:
    """Return the digits of a base that reads a text as one number, as libipld writes them."""
    written = [libipld.encode_multibase(code, bytes((value,))).removeprefix(code) for value in range(256)]
    return "".join(text for text in written if len(text) == 1)


def _letters(code: str, bits: int) -> str:
    """Return the characters of a base of which each holds `bits` bits, in the order of their values."""
    count = 8 if bits == 1 else 1 << bits  # what eight characters of base 2 hold is one byte
    packed = 0
    for value in range(count):
        packed = packed << bits | value % (1 << bits)
    text = libipld.encode_multibase(code, packed.to_bytes(count * bits // 8, "big")).removeprefix(code)
    return text[: 1 << bits]


def _reads(code: str, text: str, same: str) -> bool:
    """Say whether a base takes a text for the same bytes as another."""
    try:
        return bool(text != same and libipld.decode_multibase(code + text) == libipld.decode_multibase(code + same))
    except ValueError:
        return False
