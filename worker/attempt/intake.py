"""Whether a worker's store takes results: what uploads met last, and trials where no upload would find out.

A store that is down, full or refuses writes would else be found by a result that it does not take, when the run that
made it is over and nobody pays for it. Trials are made in a thread: a store may hang for as long as it likes.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import structlog

from hearth.base.errors import HearthError
from hearth.storage.stores import Store

log = structlog.get_logger("worker.attempt")

EVERY_SECONDS: Final = 300.0
"""Between two writes of a store that took the first of them: 1 MiB each, 300 MB a day."""
AGAIN_SECONDS: Final = 10.0
"""Between two trials of a store that takes nothing."""
PATIENCE_SECONDS: Final = 60.0
"""How long a trial may take before the store counts as one that takes nothing."""
UNASKED: Final = "it has not been asked yet"


class Intake:
    """What the store of one worker did with what was written to it; `on_change` is called after each trial."""

    def __init__(self, store: Store, on_change: Callable[[], None]) -> None:
        """Ask nothing before `begin`: who only looks writes nothing."""
        self._store = store
        self.on_change = on_change
        self._lock = threading.Lock()
        self._refusal = ""
        self._due = math.inf
        self._since = math.inf
        """When the trial under way began; infinity where there is none, or an upload has shown more since."""
        self._trial: threading.Thread | None = None

    def begin(self) -> None:
        """Take the store for one that takes nothing until it has shown that it does, and ask it."""
        with self._lock:
            if self._due == math.inf:
                self._refusal, self._due = UNASKED, 0.0
        self.refusal()

    def wait(self, seconds: float) -> None:
        """Wait for the trial under way, no longer than this."""
        if self._trial is not None and self._trial.is_alive():
            self._trial.join(seconds)

    def refusal(self) -> str:
        """Return why the store takes no writes, "" where it takes them; it is tried again where that is due."""
        with self._lock:
            now = time.monotonic()
            if self._trial is not None and self._trial.is_alive():
                if now - self._since >= PATIENCE_SECONDS:
                    self._refusal = f"the store {self._store.url} has not answered for {now - self._since:.0f} s"
            elif now >= self._due:
                # A daemon, one at a time: what hangs keeps neither the worker nor another trial.
                self._trial = threading.Thread(target=self._try, name="store trial", daemon=True)
                self._since = now
                with suppress(RuntimeError):  # the machine gives no thread now: the next look asks again
                    self._trial.start()
            return self._refusal

    def tell(self, refusal: str) -> None:
        """Hear from a write why the store did not take it, "" where it did."""
        with self._lock:
            self._refusal, self._since = refusal, math.inf
            if self._due < math.inf:
                now = time.monotonic()
                # However many results are refused, none puts off the trial that says whether others are taken.
                self._due = min(max(self._due, now), now + AGAIN_SECONDS) if refusal else now + EVERY_SECONDS

    def _try(self) -> None:
        try:
            self._store.try_write()
            refusal = ""
        except HearthError as error:
            refusal = error.message
        except Exception as error:  # the top of a thread: a worker would wait for ever for its answer
            log.exception("the store could not be tried by a fault of the worker")
            refusal = f"a fault of the worker: {error!r}"
        self.tell(refusal)
        self.on_change()
