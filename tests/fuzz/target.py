"""One parser of strangers' bytes: how it is called, what it may refuse with, and what must hold of what it returns."""

from __future__ import annotations

import logging
import resource
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Literal

import structlog

from hearth.base.errors import HearthError

Kind = Literal["bytes", "json", "text", "disk"]
AIMS: Final[dict[Kind, int]] = {"bytes": 10**7, "json": 10**6, "text": 10**5, "disk": 10**5}
"""Executions of each parser, once, by what it reads: `text` is what a person writes (YAML, TOML), `disk` what the same
parser of bytes writes out."""
MAX_SECONDS: Final = 1.0
"""Of the thread's own processor time, for one input of at most MAX_BYTES."""
MAX_GROWTH_KIB: Final = 256 << 10
"""By which one input may raise the process's peak of resident memory."""
MAX_BYTES: Final = 64 << 10


class Finding(AssertionError):
    """One input takes too long or too much memory, or an oracle contradicts what was read."""


@dataclass(frozen=True)
class Target:
    """A parser under test.

    `parse` is the real parser on bytes; None, or an error of `refuses`, which its callers expect, is a refusal, and so
    is a value that `takes` denies, where a parser names in its answer what it did not take.
    `oracle` looks at what came out and raises Finding; nothing that it raises counts as a refusal. `seeds` are inputs
    of the form, some of which are taken.
    """

    name: str
    kind: Kind
    what: str
    parse: Callable[[bytes], Any]
    seeds: Callable[[], Iterable[bytes]]
    refuses: tuple[type[BaseException], ...] = (HearthError,)
    oracle: Callable[[bytes, Any], object] | None = None
    takes: Callable[[Any], bool] = lambda value: value is not None


def check(target: Target, data: bytes) -> bool:
    """Run one input and return whether it was taken. Raises Finding, or what the parser should never raise."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.thread_time()
    try:
        value = target.parse(data)
    except target.refuses:
        value, taken = None, False
    else:
        taken = target.takes(value)
    seconds = time.thread_time() - began
    growth = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak
    if seconds > MAX_SECONDS:
        raise Finding(f"{target.name}: {len(data)} bytes took {seconds:.2f} s")
    if growth > MAX_GROWTH_KIB:
        raise Finding(f"{target.name}: {len(data)} bytes took {growth >> 10} MiB")
    if value is not None and target.oracle is not None:
        target.oracle(data, value)
    return taken


@contextmanager
def quiet() -> Iterator[None]:
    """Drop what parsers log, before it is put together: millions of inputs have millions of reasons."""
    before = structlog.get_config()
    nothing = structlog.make_filtering_bound_logger(logging.CRITICAL)
    structlog.configure(wrapper_class=nothing, cache_logger_on_first_use=False)
    try:
        yield
    finally:
        structlog.configure(**before)


def same(target: str, first: object, second: object) -> None:
    """Raise Finding where two readings differ."""
    if first != second:
        raise Finding(f"{target}: {first!r:.500} is not {second!r:.500}")
