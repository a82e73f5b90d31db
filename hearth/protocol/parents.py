"""What a job waits for before it opens: its parents' ends, pure.

The list of a job's parents is posted beside its terms, which hold its hash: a word of conditions, two bits for each
parent, then the parents' ids. Source: protocol.md "Parents"; mirrors contracts/JobRegistry.vy (`_fails`).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

from eth_utils.crypto import keccak

from hearth.base.abi import encode
from hearth.protocol import words
from hearth.protocol.types import MAX_PARENTS, ZERO_HASH, Header, JobId, Outcome, State, UnitFlag


class Condition(IntEnum):
    """The end of a parent that its child waits for; its bits are those of the ends that count."""

    SUCCESS = 1
    FAILURE = 2
    ALWAYS = 3


class Ended(IntEnum):
    """How a job has ended: not yet, every unit SETTLED with outcome ok, or otherwise."""

    NOT_YET = 0
    WELL = 1
    OTHERWISE = 2


class Progress(IntEnum):
    """What `unlock` may do with a job by its parents: nothing yet, open it, or end it with a refund."""

    WAITS = 0
    OPENS = 1
    FAILS = 2


class Parent(NamedTuple):
    """One job that another waits for."""

    job: JobId
    condition: Condition


def pack_parents(parents: Sequence[Parent]) -> tuple[bytes, ...]:
    """Return the list that `post` and `unlock` take: the conditions, then the ids; empty for no parents.

    Raises ValueError for more than `MAX_PARENTS`.
    """
    if not parents:
        return ()
    if len(parents) > MAX_PARENTS:
        raise ValueError(f"{len(parents)} parents are more than {MAX_PARENTS}")
    conditions = sum(parent.condition << 2 * at for at, parent in enumerate(parents))
    return (conditions.to_bytes(32, "big"), *(bytes(parent.job) for parent in parents))


def unpack_parents(packed: Sequence[bytes]) -> tuple[Parent, ...]:
    """Return the parents of a posted list. Raises ValueError for one that no `post` takes."""
    if not packed:
        return ()
    conditions, ids = int.from_bytes(packed[0], "big"), packed[1:]
    if not 1 <= len(ids) <= MAX_PARENTS or conditions >> 2 * len(ids):
        raise ValueError(f"{len(ids)} parents with conditions {conditions:#x}")
    return tuple(Parent(JobId(job), Condition(conditions >> 2 * at & 3)) for at, job in enumerate(ids))


def parents_hash(packed: Sequence[bytes]) -> bytes:
    """Return what the terms hold of a list from `pack_parents`: 32 bytes, all zero for no parents."""
    return keccak(encode(["bytes32[]"], [list(packed)])) if packed else ZERO_HASH


@lru_cache(maxsize=2**14)  # many jobs may wait for the same ones, and a keeper asks of each in every cycle
def ended(word: int) -> Ended:
    """Say by a job's own word, as `Lens.jobs` returns it, how the job has ended.

    0, and the word of an array's unit, are no jobs: they never end. Raises ValueError for a word that no contract
    writes.
    """
    if not words.is_header(word):
        unit = words.unpack_unit(word)
        if not unit.state.terminal or unit.flags & UnitFlag.ARRAY:
            return Ended.NOT_YET
        return Ended.WELL if (unit.state, unit.outcome) == (State.SETTLED, Outcome.OK) else Ended.OTHERWISE
    header = words.unpack_header(word)
    whole = header.touched if header.closed else header.leases
    if header.done + header.failed != whole:
        return Ended.NOT_YET
    return _end_of(header)


def ends_at_worst(word: int) -> Ended:
    """Say how a job that has not ended ends where no further unit of it succeeds, by its own word."""
    return _end_of(words.unpack_header(word)) if words.is_header(word) else Ended.OTHERWISE


def _end_of(header: Header) -> Ended:
    """Say how an array ends, or a job of replicas, that has no further success."""
    return Ended.WELL if header.done >= (header.quorum or header.leases) else Ended.OTHERWISE


def progress(parents: Sequence[Parent], job_words: Sequence[int]) -> Progress:
    """Say what `unlock` may do with a job, by the words of its parents in their order.

    One parent that ended otherwise than asked ends the job at once, whatever the others do.
    """
    found = Progress.OPENS
    for parent, word in zip(parents, job_words, strict=True):
        end = ended(word)
        if end is Ended.NOT_YET:
            found = Progress.WAITS
        elif not parent.condition & end:
            return Progress.FAILS
    return found
