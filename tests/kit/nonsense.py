"""Logs that no contract of Hearth would write, under a registry's own address, on anvil."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any

from hearth.market.events import EVENTS, JobPosted, UnitEvent, topic_of
from tests.kit.running import wait

Rpc = Callable[..., Any]
Said = tuple[list[bytes], bytes]
"""A log's topics and its data."""

_PUSH, _CALLDATALOAD, _CALLDATASIZE, _SUB, _DUP1, _CALLDATACOPY, _LOG0 = 0x60, 0x35, 0x36, 0x03, 0x80, 0x37, 0xA0


def emitter(topics: int) -> bytes:
    """Return the code of a contract that logs its calldata: so many topics, then the data."""
    loads = [byte for at in reversed(range(topics)) for byte in (_PUSH, 32 * at, _CALLDATALOAD)]
    size = [_PUSH, 32 * topics, _CALLDATASIZE, _SUB]
    copy = [_DUP1, _PUSH, 32 * topics, _PUSH, 0, _CALLDATACOPY]
    return bytes([*loads, *size, *copy, _PUSH, 0, _LOG0 + topics, 0])


def emit(rpc: Rpc, sender: str, address: str, logs: Sequence[Said]) -> None:
    """Have `address` write the logs, a transaction each, those of as many topics together; its code and storage are as
    before afterwards."""
    code = rpc("eth_getCode", address, "latest")
    for count, said in groupby(sorted(logs, key=_topics), _topics):
        rpc("anvil_setCode", address, "0x" + emitter(count).hex())
        sent = []
        for topics, data in said:
            payload = "0x" + (b"".join(topics) + data).hex()
            sent.append(
                rpc("eth_sendTransaction", {"from": sender, "to": address, "data": payload, "gas": hex(250_000)})
            )
        for one in sent:
            receipt = wait(lambda one=one: rpc("eth_getTransactionReceipt", one), "the log is mined")
            assert len(receipt["logs"]) == 1
    rpc("anvil_setCode", address, code)


def _topics(said: Said) -> int:
    return len(said[0])


def _lists(real: Sequence[Said]) -> Iterator[Said]:
    """Yield true posts of jobs whose lists of parents cannot be, each under an id that nobody has posted."""
    data = next(data for topics, data in real if topics[0] == topic_of(JobPosted))
    terms, said, size = data[: 9 * 32], data[10 * 32 : 12 * 32], len(data[: 12 * 32])
    unknown, wild = [topic_of(JobPosted), b"\x5b" * 32, bytes(32)], b"\xff" * 32
    for tail in (b"", wild, wild * 2, (size + 32).to_bytes(32, "big") + bytes(32), size.to_bytes(32, "big") + wild):
        yield unknown, terms + tail[:32] + said + tail[32:]
    for count in (1, 16, 17, 1 << 20):
        yield unknown, terms + size.to_bytes(32, "big") + said + count.to_bytes(32, "big") + bytes(16)


def nonsense(job: bytes, real: Sequence[Said], seed: int) -> Iterator[Said]:
    """Yield what no contract says of a known `job`, of an unknown one, of none; and `real` logs changed by chance."""
    unknown, high = b"\x5a" * 32, b"\xff" * 32
    number = {kind: value.to_bytes(32, "big") for kind, value in (("first", 0), ("next", 1), ("far", 1 << 200))}
    for cls in EVENTS.values():
        if issubclass(cls, UnitEvent):
            topic = topic_of(cls)
            for name, index in [(unknown, number["first"]), *((job, one) for one in (*number.values(), high))]:
                yield [topic, name, index, number["next"]], high * 3
            yield [topic, job, number["first"], number["next"]], b""
            yield [topic, job], high * 3
            yield [topic], b""
    yield [topic_of(JobPosted), job, bytes(32)], high * 16
    yield [topic_of(JobPosted), unknown, bytes(32)], high * 16
    yield [topic_of(JobPosted), high, bytes(32)], b""
    yield from _lists(real)
    draw = random.Random(seed)
    for _ in range(60):
        topics, data = draw.choice(real)
        topics, changed = list(topics), bytearray(data)
        if draw.randrange(2) and len(topics) > 1:
            at = draw.randrange(1, len(topics))
            topics[at] = bytes([topics[at][0] ^ 1 << draw.randrange(8)]) + topics[at][1:]
        elif changed:
            changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
        yield topics, bytes(changed[: draw.choice([len(changed), len(changed), draw.randrange(len(changed) + 1)])])
