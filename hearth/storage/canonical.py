"""Canonical JSON (RFC 8785): one document, one byte string, one 32-byte name on chain.

Spec, result, report and manifest are such documents. Each is one raw block, so its CID is CIDv1(raw, sha2-256).
Floats are refused in both directions: decimals and base units travel as strings. Source: protocol.md
"Result and report".
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from hearth.base.errors import BadCid, BadDocument, TooLarge
from hearth.base.text import plain
from hearth.base.untrusted_json import refuse_deep
from hearth.storage import cid
from hearth.storage.cid import Cid

MAX_DOCUMENT_BYTES = 2**20
MAX_DEPTH = 64
"""Nesting allowed, far below any interpreter's own limit, so that every reader agrees on what is a document."""
MAX_INTEGER = 2**53 - 1
_HINT = "hearth check job.yaml"


def encode(value: Any) -> bytes:
    """Return the RFC 8785 bytes of `value`: dict, list, tuple, str, int (|n| < 2^53), bool or None, nested.

    Raises BadDocument for floats, non-string keys, big integers, other types and lone surrogates, TooLarge above
    1 MiB.
    """
    import rfc8785

    _check(value, ())
    try:
        data = rfc8785.dumps(value)
    except (rfc8785.CanonicalizationError, UnicodeEncodeError) as error:
        raise BadDocument(f"the document has no canonical form: {error}", hint=_HINT) from error
    _check_size(data)
    return data


def decode(data: bytes) -> Any:
    """Return the value whose canonical bytes are exactly `data`.

    Raises BadDocument for anything else (other key order, white space, duplicate keys, floats), TooLarge above 1 MiB.
    """
    _check_size(data)
    try:
        refuse_deep(data, MAX_DEPTH)
        value = json.loads(data.decode())
    except ValueError as error:
        raise BadDocument(f"the bytes are no JSON document: {error}", hint=_HINT) from error
    # Equality also refuses what json.loads lets pass: keys that stand twice, other number forms, escapes.
    if encode(value) != data:
        raise BadDocument("the document is not in canonical form (RFC 8785: sorted keys, no white space)", hint=_HINT)
    return value


def digest(value: Any) -> bytes:
    """Return the 32 bytes that name a document on chain: sha2-256 of its canonical form."""
    return hashlib.sha256(encode(value)).digest()


def cid_of_digest(digest32: bytes) -> Cid:
    """Return the CID of the document that 32 bytes on chain name."""
    if len(digest32) != cid.DIGEST_BYTES:
        raise BadCid(f"a document digest has 32 bytes, this one has {len(digest32)}", hint="hearth job show JOB")
    return Cid(1, cid.RAW, cid.SHA2_256, digest32)


def digest_of_cid(document: Cid) -> bytes:
    """Return the 32 bytes that name a document; the inverse of `cid_of_digest`."""
    if cid_of_digest(document.digest) != document:
        raise BadCid(f"{document} names no document: that takes CIDv1, raw, sha2-256", hint="hearth job show JOB")
    return document.digest


def _check(value: Any, path: tuple[str | int, ...]) -> None:
    """Refuse what RFC 8785 or our rules leave out; the path is a tuple so that long keys cost nothing."""
    # An empty list is a level as well: what is read counts brackets.
    if len(path) + isinstance(value, (dict, list, tuple)) > MAX_DEPTH:
        raise BadDocument(f"{_shown(path)} is nested deeper than {MAX_DEPTH}", hint=_HINT)
    if isinstance(value, float):
        raise BadDocument(f"{_shown(path)} is the float {value!r}; write decimals as strings", hint=_HINT)
    if isinstance(value, int) and abs(value) > MAX_INTEGER:
        raise BadDocument(f"{_shown(path)} is beyond 2^53 - 1; write base units as strings", hint=_HINT)
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise BadDocument(f"{_shown(path)} has the key {key!r}, which is not a string", hint=_HINT)
            _check(item, (*path, key))
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            _check(item, (*path, index))


def _shown(path: tuple[str | int, ...]) -> str:
    return plain(".".join(str(part)[:40] for part in path)[:200]) or "the document"


def _check_size(data: bytes) -> None:
    if len(data) > MAX_DOCUMENT_BYTES:
        raise TooLarge(
            f"a document has at most {MAX_DOCUMENT_BYTES} bytes, this one has {len(data)};"
            " put bulk data into files and name their CIDs",
            hint=_HINT,
        )
