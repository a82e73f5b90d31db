"""Lists of parents with their hash and what is read of them, and words of jobs with how each has ended."""

from __future__ import annotations

import random
from typing import Any

from hearth.protocol import parents, words
from hearth.protocol.types import MAX_PARENTS, Header, Outcome, State, Unit, UnitFlag


def cases() -> dict[str, Any]:
    """Return lists that a post takes, lists that none takes, and words."""
    chance = random.Random(5)
    lists = [
        [
            sum(chance.randint(1, 3) << 2 * at for at in range(count)).to_bytes(32, "big"),
            *(chance.randbytes(32) for _ in range(count)),
        ]
        for count in (1, 1, 2, 3, 8, MAX_PARENTS)
    ]
    refused = [
        [bytes(32)],
        [(1).to_bytes(32, "big")],
        [(1).to_bytes(32, "big"), *(bytes(32) for _ in range(MAX_PARENTS + 1))],
        [(4).to_bytes(32, "big"), bytes(32)],
        [bytes(32), bytes(32)],
        [b"\xff" * 32, bytes(32)],
    ]
    return {
        "lists": [_list(one) for one in ([], *lists)],
        "refused": [[_hex(part) for part in one] for one in refused if _refused(one)],
        "words": [{"word": str(word), "ended": int(parents.ended(word))} for word in _words(chance)],
    }


def _list(packed: list[bytes]) -> dict[str, Any]:
    found = parents.unpack_parents(packed)
    return {
        "packed": [_hex(part) for part in packed],
        "hash": _hex(parents.parents_hash(packed)),
        "parents": [[_hex(one.job), int(one.condition)] for one in found],
    }


def _refused(packed: list[bytes]) -> bool:
    try:
        parents.unpack_parents(packed)
    except ValueError:
        return True
    return False


def _words(chance: random.Random) -> list[int]:
    units = [
        Unit(state=state, outcome=outcome, flags=UnitFlag(flags))
        for state in State
        for outcome in (Outcome.NONE, Outcome.OK, Outcome.TIMEOUT)
        for flags in (0, int(UnitFlag.ARRAY))
    ]
    headers = []
    for _ in range(60):
        leases = chance.randint(2, 9)
        touched = chance.randint(0, leases)
        done = chance.randint(0, touched)
        failed = chance.choice((touched - done, chance.randint(0, touched - done)))
        quorum = chance.choice((0, 0, chance.randint(1, leases)))
        closed = chance.random() < 0.5
        headers.append(
            Header(leases=leases, touched=touched, done=done, failed=failed, quorum=quorum, closed=closed, opened=7)
        )
    return [0, *(words.pack_unit(unit) for unit in units), *(words.pack_header(header) for header in headers)]


def _hex(value: bytes) -> str:
    return "0x" + value.hex()
