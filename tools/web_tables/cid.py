"""What a CID may be made of (protocol.md "Job spec"; hearth/storage/cid.py)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hearth.storage import cid


def tables() -> Mapping[str, Any]:
    """Return codecs, hashes, and limits."""
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
    }
