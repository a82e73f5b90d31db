"""Named points at which a test kills the process, to show that nothing is lost there.

HEARTH_FAILPOINT=NAME[@TAG][:N] sends SIGKILL to the process at the N-th hit (default 1) of `fp(NAME, TAG)`; without a
TAG any tag counts. Unset, a failpoint is one comparison.
"""

from __future__ import annotations

import os
import signal
import threading
from functools import lru_cache
from typing import NamedTuple

_lock = threading.Lock()
_hits = 0


class _Target(NamedTuple):
    name: str
    tag: str
    hits: int


@lru_cache(maxsize=1)
def _target() -> _Target | None:
    text = os.environ.get("HEARTH_FAILPOINT", "")
    if not text:
        return None
    point, _, count = text.partition(":")
    name, _, tag = point.partition("@")
    return _Target(name, tag, int(count or 1))


def fp(name: str, tag: str = "") -> None:
    """Kill this process where the environment names this point; the line on stderr is the test's evidence."""
    target = _target()
    if target is None or target.name != name or target.tag not in ("", tag):
        return
    global _hits
    with _lock:
        _hits += 1
        if _hits < target.hits:
            return
        os.write(2, f"failpoint {name} {tag} hit {_hits}\n".encode())
        os.kill(os.getpid(), signal.SIGKILL)
