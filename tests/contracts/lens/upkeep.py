"""A market with one piece of upkeep of each kind, and how candidates are written."""

from __future__ import annotations

from hearth.protocol import words
from hearth.protocol.types import Terms
from tests.kit.world import World

SETTLE, CLOSE, RECLAIM, EXPIRE, LIVENESS = range(1, 6)
NO_TERMS = (0, bytes(32), 0, 0, 0, 0, 0, 0, bytes(32))

Candidate = tuple[int, tuple[object, ...], int, int]


def candidate(op: int, terms: Terms | None = None, index: int = 0, count: int = 0) -> Candidate:
    """Write one candidate; liveness takes `index` as the first node and `count` nodes."""
    return op, words.pack_terms(terms) if terms else NO_TERMS, index, count


def due(world: World, *candidates: Candidate) -> list[Candidate]:
    """Return the candidates that `checkUpkeep` picks."""
    needed, found = world.lens.call.checkUpkeep(list(candidates))
    assert needed == bool(found)
    return [(c.op, tuple(c.terms), c.index, c.count) for c in found]
