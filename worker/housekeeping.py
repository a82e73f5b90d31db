"""What a worker does now and then: end attempts that never became its own, let old results go, clear its store."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import Final

import structlog

from hearth.base.errors import StorageError
from hearth.storage.stores import Store
from worker.attempt.executor import Executor
from worker.journal import AttemptJournal, Phase

log = structlog.get_logger("worker")

HOUSEKEEPING_SECONDS: Final = 600.0


class Housekeeping:
    """The housekeeping of one worker's journal and store."""

    def __init__(self, journal: AttemptJournal, executor: Executor, store: Store) -> None:
        self._journal = journal
        self._executor = executor
        self._store = store
        self._due = 0.0
        self._uncollected = False
        self._clearing: threading.Thread | None = None

    def turn(self, keep_seconds: float) -> bool:
        """Do what is due, and say whether anything was; results are kept for `keep_seconds`."""
        if time.monotonic() < self._due:
            return False
        self._due = time.monotonic() + HOUSEKEEPING_SECONDS
        hour_ago = self._journal.clock() - 3600
        for entry in self._journal.entries(Phase.INTENT):
            if entry.changed < hour_ago:
                self._journal.end(entry.key, "never became this node's")
        self._clear(keep_seconds)
        return True

    def _clear(self, keep_seconds: float) -> None:
        """Let old results go, and a folder store drop them, in a thread: a beat must not wait for a store. One at a
        time."""
        if self._clearing is not None and self._clearing.is_alive():
            return
        before = self._journal.clock() - keep_seconds

        def clear() -> None:
            try:
                if self._executor.sweep(before):
                    self._uncollected = True
                if self._uncollected:
                    log.info("the store was cleared", freed=self._store.collect())
                    self._uncollected = False
            except (StorageError, OSError) as error:
                log.warning("the store could not be cleared", why=str(error))

        # A daemon, as an attempt is: a stop does not wait for it, and what it has not done the next one does.
        thread = threading.Thread(target=clear, name="clearing", daemon=True)
        with suppress(RuntimeError):  # the machine gives no thread now: the next turn asks again
            thread.start()
            self._clearing = thread
