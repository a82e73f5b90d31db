"""Lists of parents both ways, how a job's word says that it ended, and what `unlock` may do by it."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hearth.protocol import words
from hearth.protocol.parents import (
    Condition,
    Parent,
    ended,
    ends_at_worst,
    pack_parents,
    parents_hash,
    progress,
    unpack_parents,
)
from hearth.protocol.types import MAX_PARENTS, Header, JobId, Outcome, State, Unit, UnitFlag
from tests.web.vectors import _chance
from tests.web.vectors._plain import outcome


def cases() -> Any:
    """Return lists, words and both together, with what the library makes of each, or the code of the refusal."""
    draw = _chance.source(16)
    lists = [
        [Parent(JobId(draw.randbytes(32)), draw.choice(list(Condition))) for _ in range(n)]
        for n in (0, 1, 2, MAX_PARENTS, MAX_PARENTS + 1)
    ]
    job_words = _words()
    return {
        "lists": [{"parents": _said(parents), **_told(_packed, parents)} for parents in lists],
        "packed": [
            {"packed": ["0x" + one.hex() for one in packed], **_told(lambda one=packed: _said(unpack_parents(one)))}
            for packed in _packs(draw)
        ],
        "words": [{"word": hex(word), **_told(_ends, word)} for word in job_words],
        "progress": [
            {"parents": _said(parents), "words": [hex(one) for one in chosen], **_told(progress, parents, chosen)}
            for parents, chosen in _chosen(draw, job_words)
        ],
    }


def _drawn(draw: random.Random, count: int) -> list[Parent]:
    return [Parent(JobId(draw.randbytes(32)), draw.choice(list(Condition))) for _ in range(count)]


def _said(parents: Any) -> list[list[Any]]:
    return [["0x" + parent.job.hex(), int(parent.condition)] for parent in parents]


def _told(call: Callable[..., Any], *args: Any) -> dict[str, Any]:
    found = outcome(lambda: call(*args))
    return {"code": "refused"} if "code" in found else found


def _packed(parents: list[Parent]) -> list[Any]:
    packed = pack_parents(parents)
    return [["0x" + one.hex() for one in packed], parents_hash(packed)]


def _packs(draw: random.Random) -> list[list[bytes]]:
    def word(number: int) -> bytes:
        return number.to_bytes(32, "big")

    ids = [draw.randbytes(32) for _ in range(MAX_PARENTS + 1)]
    return [
        *(
            [],
            [word(1)],
            [word(0)],
            [word(1), ids[0]],
            [word(3), ids[0]],
            [word(0), ids[0]],
            [word(4), ids[0]],
            [word(2**255), ids[0]],
        ),
        *([word(0b1011), *ids[:2]], [word(0b1000), *ids[:2]]),
        *([word(4**count - 1), *ids[:count]] for count in (MAX_PARENTS, MAX_PARENTS + 1)),
    ]


def _words() -> list[int]:
    units = [
        Unit(state, result, flags=flags)
        for state in State
        for result in (Outcome.NONE, Outcome.OK, Outcome.EXIT)
        for flags in (UnitFlag(0), UnitFlag.ARRAY)
    ]
    header = Header(touched=3, opened=9, leases=3)
    headers = [
        replace(header, done=done, failed=failed, closed=closed, quorum=quorum, touched=touched)
        for done, failed in ((0, 0), (3, 0), (2, 1), (1, 2), (2, 0), (0, 3))
        for closed in (False, True)
        for quorum in (0, 2)
        for touched in (2, 3)
    ]
    return [*(words.pack_unit(unit) for unit in units), *(words.pack_header(one) for one in headers), 0, 11, 31 << 4]


def _ends(word: int) -> list[int]:
    return [int(ended(word)), int(ends_at_worst(word))]


def _chosen(draw: random.Random, job_words: list[int]) -> list[tuple[list[Parent], list[int]]]:
    found = []
    for _ in _chance.rows(12):
        parents = _drawn(draw, draw.randrange(1, 4))
        found.append((parents, [draw.choice(job_words[:-2]) for _ in parents]))
    one = [Parent(JobId(bytes(32)), Condition.ALWAYS)]
    return [*found, (one, []), (one, [0, 0]), ([], []), (one, [11])]
