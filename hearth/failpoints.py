"""Kill this process at a named point, for the kill tests; nothing happens unless HEARTH_FAILPOINT names the point.

HEARTH_FAILPOINT is "m7.signed" or "m7.signed:3" (at the third hit). SIGKILL, so that nothing is flushed or cleaned up.
"""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter

_hits: Counter[str] = Counter()
_lock = threading.Lock()


def fp(name: str) -> None:
    """Pass the point `name`, or die there."""
    wanted = os.environ.get("HEARTH_FAILPOINT")
    if wanted is None:
        return
    point, _, nth = wanted.partition(":")
    if point != name:
        return
    with _lock:
        _hits[name] += 1
        if _hits[name] == int(nth or 1):
            os.kill(os.getpid(), signal.SIGKILL)
