"""Directories to blocks: one plain block, or above DIRECTORY_BLOCK_BYTES a tree of shards (HAMT).

What decides is the exact size of the plain block, and a shard's form is Kubo's: together the profile `unixfs-v1-2025`
of IPIP-499 (https://specs.ipfs.tech/ipips/ipip-0499/). The tree follows from the names alone, whatever their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hearth.base.errors import (
    UnsafePath,
)
from hearth.storage import cid as cids
from hearth.storage.cid import Cid
from hearth.storage.unixfs.codec import MURMUR3, TYPE_DIRECTORY, TYPE_SHARD, Link, encode_dag_node, encode_field
from hearth.storage.unixfs.model import DIRECTORY_BLOCK_BYTES, HASH_BITS, SHARD_FANOUT, BlockSink

_MASK: Final = 2**64 - 1
_C1: Final = 0x87C37B91114253D5
_C2: Final = 0x4CF5AD432745937F
_SLOT_BITS: Final = (SHARD_FANOUT - 1).bit_length()


def put_directory(links: Sequence[Link], sink: BlockSink, path: str = "") -> tuple[Cid, int]:
    """Store a directory of links with names, each of them once, in any order; return its CID and cumulative size.

    Raises UnsafePath where two names have the same hash, which no tree of shards can tell apart.
    """
    block = encode_directory(links)
    if len(block) > DIRECTORY_BLOCK_BYTES:
        return _put_shard([(hash_name(link.name), link) for link in links], 1, sink, path)
    return sink.put_block(block, cids.DAG_PB), len(block) + sum(link.tsize for link in links)


def encode_directory(links: Sequence[Link]) -> bytes:
    """Return the block of a plain directory, its links sorted by the bytes of their names."""
    return encode_dag_node(encode_field(1, TYPE_DIRECTORY), sorted(links, key=lambda link: link.name))


def _put_shard(entries: list[tuple[int, Link]], level: int, sink: BlockSink, path: str) -> tuple[Cid, int]:
    """Store the shard of entries whose hashes agree in all levels above; a slot that several share is a shard again."""
    slots: dict[int, list[tuple[int, Link]]] = {}
    for hashed, link in entries:
        slot = hashed >> (HASH_BITS - level * _SLOT_BITS) & SHARD_FANOUT - 1
        slots.setdefault(slot, []).append((hashed, link))
    links = []
    for slot in sorted(slots):
        prefix = b"%02X" % slot
        (_, first), *others = slots[slot]
        if not others:
            links.append(Link(first.cid, prefix + first.name, first.tsize))
            continue
        if level * _SLOT_BITS == HASH_BITS:
            raise UnsafePath(
                f"the names {first.name!r} and {others[0][1].name!r} in {path or '.'} have the same hash: a directory"
                f" of more than {DIRECTORY_BLOCK_BYTES} bytes of names cannot hold both",
                hint="rename one of them",
                path=path,
            )
        cid, tsize = _put_shard(slots[slot], level + 1, sink, path)
        links.append(Link(cid, prefix, tsize))
    taken = sum(1 << slot for slot in slots)
    data = (
        encode_field(1, TYPE_SHARD)
        + encode_field(2, taken.to_bytes((taken.bit_length() + 7) // 8, "big"))
        + encode_field(5, MURMUR3)
        + encode_field(6, SHARD_FANOUT)
    )
    block = encode_dag_node(data, links)
    return sink.put_block(block, cids.DAG_PB), len(block) + sum(link.tsize for link in links)


def hash_name(name: bytes) -> int:
    """Return the 64 bits that place a name in shards: the first half of MurmurHash3 x64 128, seed 0.

    Source: MurmurHash3.cpp of https://github.com/aappleby/smhasher, in the public domain.
    """
    one = two = 0
    whole = len(name) & ~15
    for at in range(0, whole, 16):
        low, high = int.from_bytes(name[at : at + 8], "little"), int.from_bytes(name[at + 8 : at + 16], "little")
        one = ((_turn(one ^ _mix_low(low), 27) + two) * 5 + 0x52DCE729) & _MASK
        two = ((_turn(two ^ _mix_high(high), 31) + one) * 5 + 0x38495AB5) & _MASK
    # A tail of no bytes mixes to 0 and changes nothing.
    one ^= _mix_low(int.from_bytes(name[whole : whole + 8], "little")) ^ len(name)
    two ^= _mix_high(int.from_bytes(name[whole + 8 :], "little")) ^ len(name)
    one = (one + two) & _MASK
    two = (two + one) & _MASK
    return (_end(one) + _end(two)) & _MASK


def _turn(value: int, by: int) -> int:
    return (value << by | value >> (64 - by)) & _MASK


def _mix_low(word: int) -> int:
    return _turn(word * _C1 & _MASK, 31) * _C2 & _MASK


def _mix_high(word: int) -> int:
    return _turn(word * _C2 & _MASK, 33) * _C1 & _MASK


def _end(value: int) -> int:
    value = (value ^ value >> 33) * 0xFF51AFD7ED558CCD & _MASK
    value = (value ^ value >> 33) * 0xC4CEB9FE1A85EC53 & _MASK
    return value ^ value >> 33
