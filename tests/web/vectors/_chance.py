"""How many of the rows that are drawn at random stand in the files: few. A test draws more, from other seeds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import TypeVar

_T = TypeVar("_T")
_drawing = {"seed": "", "times": 1}


@contextmanager
def anew(seed: str, times: int) -> Iterator[None]:
    """Draw so many times the rows of the files, from seeds of one's own."""
    _drawing.update(seed=seed, times=times)
    try:
        yield
    finally:
        _drawing.update(seed="", times=1)


def source(seed: object) -> Random:
    """Return where the rows of a seed are drawn from."""
    return Random(f"{seed}{_drawing['seed']}")


def rows(count: int) -> range:
    """Return a number for each row, of which the files have so many."""
    return range(count * int(_drawing["times"]))


def some(draw: Random, rules: Sequence[_T], count: int) -> list[_T]:
    """Return as many of the rules, all of them where enough is drawn."""
    return draw.sample(rules, min(len(rules), len(rows(count))))


def telling(drawn: Iterable[_T], kinds: Callable[[_T], Iterable[Hashable]], count: int = 2) -> list[_T]:
    """Return rows until each kind of theirs stands there so many times; all of them where they are drawn anew."""
    met: Counter[Hashable] = Counter()
    found = []
    for one in drawn:
        own = set(kinds(one))
        if _drawing["times"] == 1 and all(met[kind] >= count for kind in own):
            continue
        met.update(own)
        found.append(one)
    return found
