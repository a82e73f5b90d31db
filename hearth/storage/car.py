"""CAR files: the blocks of whole DAGs in one file, as `ipfs dag export` and a page that cannot upload write.

A file of version 1 is a header, which may name roots, and sections: a length, a CID, a block. One of version 2 holds
such a file between a header and an index, neither of which is needed: so it is read as Kubo reads it. Either is read as
a stream, whatever its size, and no block of it is believed before its CID is checked. Version 1 is what is written.
Sources: https://ipld.io/specs/transport/car/carv1/ and https://ipld.io/specs/transport/car/carv2/.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import IO, Final, Protocol

from hearth.base.errors import StorageError
from hearth.storage import cid as cids
from hearth.storage.cid import Cid

VERSION: Final = 1
MAX_HEADER_BYTES: Final = 64 * 1024
MAX_ROOTS: Final = 64
MAX_SECTION_BYTES: Final = cids.MAX_BLOCK_BYTES + 256
"""The largest block and a CID before it."""
_LINK_TAG: Final = b"\xd8\x2a"
"""What DAG-CBOR writes before a CID: tag 42."""
_ROOTS_KEY: Final = b"\xa2\x65roots"
_VERSION_KEY: Final = b"\x67version"
_ROOTLESS: Final = b"\xa1" + _VERSION_KEY + b"\x01"
"""A header that says nothing of roots, which is as good as naming none."""
_PRAGMA_2: Final = b"\xa1" + _VERSION_KEY + b"\x02"
"""The first header of a file of version 2."""
_HEADER_2: Final = struct.Struct("<16xQQQ")
"""The second: promises of the file, where what it holds begins, how many bytes that has, where the index is."""
_SKIP_BYTES: Final = 64 * 1024


class _Readable(Protocol):
    def read(self, length: int, /) -> bytes:
        """Return the next bytes, fewer at the end."""


class _Window:
    """The next `size` bytes of a file, as a file."""

    def __init__(self, file: _Readable, size: int) -> None:
        self._file, self._left = file, size

    def read(self, length: int, /) -> bytes:
        data = self._file.read(min(length, self._left))
        self._left -= len(data)
        return data


def write(roots: Iterable[Cid], blocks: Iterable[tuple[Cid, bytes]], file: IO[bytes]) -> tuple[int, int]:
    """Write a CAR file and return (how many blocks, bytes of them)."""
    header = _encode_header(tuple(roots))
    file.write(_varint(len(header)) + header)
    count = size = 0
    for cid, block in blocks:
        name = bytes(cid)
        file.write(_varint(len(name) + len(block)) + name)
        file.write(block)
        count, size = count + 1, size + len(block)
    return count, size


def read(file: IO[bytes]) -> tuple[tuple[Cid, ...], Iterator[tuple[Cid, bytes]]]:
    """Return the roots of a CAR file, none where it names none, and its blocks in order, each checked as it comes.

    Raises StorageError BAD_CAR for what is none, and BlockCorrupt, BadCid or TooLarge, at once or from the iterator.
    """
    inner: _Readable = file
    header = _header_of(inner)
    if header == _PRAGMA_2:
        inner = _payload_of(file)
        header = _header_of(inner)
    return _roots_in(header), _sections(inner)


def _header_of(file: _Readable) -> bytes:
    length = _read_varint(file, MAX_HEADER_BYTES)
    if length is None:
        raise _bad("it is empty")
    return _read_bytes(file, length)


def _payload_of(file: _Readable) -> _Readable:
    """Return the file of version 1 inside one of version 2, whose pragma was read."""
    at, size, _ = _HEADER_2.unpack(_read_bytes(file, _HEADER_2.size))
    skipped = len(_PRAGMA_2) + 1 + _HEADER_2.size
    if at < skipped:
        raise _bad("what it holds begins inside its own header")
    while skipped < at:
        skipped += len(_read_bytes(file, min(_SKIP_BYTES, at - skipped)))
    return _Window(file, size)


def _sections(file: _Readable) -> Iterator[tuple[Cid, bytes]]:
    while (length := _read_varint(file, MAX_SECTION_BYTES)) is not None:
        section = _read_bytes(file, length)
        cid, at = cids.from_start(section)
        yield cid, cid.verify(section[at:])


# ---- the header: {"roots": [links], "version": 1} in DAG-CBOR ----


def _encode_header(roots: tuple[Cid, ...]) -> bytes:
    links = b"".join(_LINK_TAG + _head(2, len(raw)) + raw for raw in (b"\0" + bytes(root) for root in roots))
    return _ROOTS_KEY + _head(4, len(roots)) + links + _VERSION_KEY + _head(0, VERSION)


def _roots_in(header: bytes) -> tuple[Cid, ...]:
    """Return the roots that a header names.

    DAG-CBOR has one form for each header, so this reads that form and no CBOR: a decoder that goes down as deep as a
    stranger's file says would have this depend on how much stack is left.
    """
    if header == _ROOTLESS:
        return ()
    roots: list[Cid] = []
    if header.startswith(_ROOTS_KEY):
        count, at = _read_head(header, len(_ROOTS_KEY), 4)
        if count > MAX_ROOTS:
            raise _bad(f"it names more than {MAX_ROOTS} roots")
        for _ in range(count):
            if not header.startswith(_LINK_TAG, at):
                raise _bad("a root of it is no link")
            length, at = _read_head(header, at + len(_LINK_TAG), 2)
            roots.append(cids.from_bytes(header[at + 1 : at + length]))
            at += length
    if _encode_header(tuple(roots)) != header:
        raise _bad(f"its header is not that of version {VERSION}, or 2")
    return tuple(roots)


def _read_head(header: bytes, at: int, kind: int) -> tuple[int, int]:
    """Return the value of the CBOR item that starts there, and where its content does. Raises BAD_CAR for another."""
    first, more = header[at : at + 1], header[at + 1 : at + 3]
    if first and first[0] >> 5 == kind:
        value = first[0] & 31
        if value < 24:
            return value, at + 1
        size = value - 23
        if size <= len(more):
            return int.from_bytes(more[:size], "big"), at + 1 + size
    raise _bad("its header is no DAG-CBOR")


def _head(kind: int, value: int) -> bytes:
    """Return the first bytes of a CBOR item: its kind and its length or value, below 2^16."""
    if value < 24:
        return bytes((kind << 5 | value,))
    return bytes((kind << 5 | 24, value)) if value < 256 else bytes((kind << 5 | 25, value >> 8, value & 255))


# ---- lengths ----


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*out, value))


def _read_varint(file: _Readable, most: int) -> int | None:
    """Return the next length, None at the end of the file. Raises StorageError BAD_CAR above `most`, or for 0."""
    value = shift = 0
    while True:
        byte = file.read(1)
        if not byte:
            if shift:
                raise _bad("it ends in the middle of a length")
            return None
        value |= (byte[0] & 0x7F) << shift
        shift += 7
        if not byte[0] & 0x80:
            break
        if shift > 28:
            raise _bad("a length of it has no end")
    if not 0 < value <= most:
        raise _bad(f"a part of it says that it has {value} bytes, and may have 1 to {most}")
    return value


def _read_bytes(file: _Readable, length: int) -> bytes:
    data = file.read(length)
    if len(data) < length:
        raise _bad("it ends in the middle of a block")
    return data


def _bad(why: str) -> StorageError:
    return StorageError(
        f"this is no CAR file that can be read: {why}",
        hint="write it anew: hearth store export CID FILE",
        code="BAD_CAR",
    )
