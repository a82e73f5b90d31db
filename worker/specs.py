"""Read jobs' specs in threads, and leave a job alone for a while whose spec or data is nowhere, or could not be run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import Final

import structlog

from hearth.base.errors import HearthError
from hearth.protocol.types import JobId
from hearth.storage.stores import Store
from worker.attempt import fetch
from worker.decide import SpecFacts
from worker.rows import Row

log = structlog.get_logger("worker")

SPEC_SECONDS: Final = 20.0
"""How long reading a spec, and looking for its data, may take at most."""
FIRST_SPEC_SECONDS: Final = 10.0
"""How long the first try to read a spec may take; each later one of the same job may take twice as long."""
UNREAD_SECONDS: Final = 20
"""How long a job is left alone after the first try that failed; twice as long after each later one."""
UNREAD_DOUBLINGS: Final = 6
GIVEN_BACK_SECONDS: Final = 600
"""How long a job is left alone after one of its units was given back; twice as long after each later one. All units of
a job have the same program and data: what is missing for one is missing for ten thousand."""
MAX_READERS: Final = 16
"""Jobs whose specs are read at once: those of jobs that are nowhere must not keep the others waiting."""


class Specs:
    """The specs of the jobs in `rows`, from `store`; `on_read` is called from a reader's thread when it has ended."""

    def __init__(self, rows: Mapping[JobId, Row], store: Store, on_read: Callable[[], None]) -> None:
        self._rows = rows
        self._store = store
        self._on_read = on_read
        self._reading: set[JobId] = set()
        self._read: dict[JobId, SpecFacts | str] = {}
        self._lock = threading.Lock()

    def begin(self, job: JobId) -> None:
        """Read a job's spec in a thread: a slow store must not hold up a beat."""
        if job in self._reading or len(self._reading) >= MAX_READERS:
            return
        reader = threading.Thread(target=self._read_one, args=(job,), name=f"spec {job.hex()[:12]}", daemon=True)
        with suppress(RuntimeError):  # the machine gives no thread now: the next round asks again
            reader.start()
            self._reading.add(job)

    def learn(self, job: JobId) -> None:
        """Read a followed job's spec now. Raises StorageError where it cannot be had."""
        row = self._rows[job]
        row.spec = fetch.read_spec(self._store, row.terms, SPEC_SECONDS)

    def _read_one(self, job: JobId) -> None:
        answer: SpecFacts | str = "the job is followed no more"
        row = self._rows.get(job)
        try:
            if row is not None:
                seconds = min(SPEC_SECONDS, FIRST_SPEC_SECONDS * 2 ** min(row.unread, UNREAD_DOUBLINGS))
                answer = fetch.read_spec(self._store, row.terms, seconds)
        except HearthError as error:
            answer = error.message
        except Exception as error:  # the top of a thread: a reader that is lost would never be free again
            log.exception("spec not read by a fault of the worker", job=job.hex())
            answer = f"a fault of the worker: {error!r}"
        with self._lock:
            self._read[job] = answer
        self._on_read()

    def apply(self, now: int) -> None:
        """Enter what was read since the last call, at a second of the chain."""
        with self._lock:
            answers, self._read = self._read, {}
        for job, answer in answers.items():
            self._reading.discard(job)
            row = self._rows.get(job)
            if row is None:
                continue
            if isinstance(answer, SpecFacts):
                row.spec = answer
            else:
                row.retry_at = now + UNREAD_SECONDS * 2 ** min(row.unread, UNREAD_DOUBLINGS)
                row.retry_why = answer
                row.unread += 1
                log.warning("spec or data not there now", job=job.hex(), why=answer, tries=row.unread)

    def leave_alone(self, given_back: Mapping[JobId, str], now: int) -> None:
        """Leave jobs alone of which a unit could not be run here, each for the sentence given."""
        for job, why in given_back.items():
            row = self._rows.get(job)
            if row is not None:
                row.retry_at = now + GIVEN_BACK_SECONDS * 2 ** min(row.given_back, UNREAD_DOUBLINGS)
                row.retry_why = why
                row.given_back += 1

    def rest(self, in_vain: Collection[JobId], now: int) -> None:
        """Fetch nothing for a while for matches of jobs for which that was in vain twice or more, longer each time.

        Anybody may propose a node for his own job and take the match away again. Once is nobody's fault: a better node
        that proposes itself later in the window outbids this one. An ack ends it.
        """
        for job in in_vain:
            row = self._rows.get(job)
            if row is not None:
                if row.in_vain:
                    row.gather_at = now + UNREAD_SECONDS * 2 ** min(row.in_vain - 1, UNREAD_DOUBLINGS)
                row.in_vain += 1
