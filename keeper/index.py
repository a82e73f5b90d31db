"""Keep what the chain says about nodes and jobs in columns, rebuilt from nothing by reading logs.

Nodes: pages of `Lens.nodes`, written into the columns of `keeper.fleet.Fleet` at every block (beats emit no event).
Units: every JobRegistry event that changes a unit carries its new word, so a page of logs is decoded by copying
32 bytes per log into a column of words. A row is kept per unit that has been touched and has not ended; an array of
2**20 units is one entry with its header, plus its touched units. What became of this keeper's own proposals, those that
it sent and that name its payee, is kept by job and by node. Nothing here is truth: a reorg, a lost file or a mismatch
with the chain (`compare`) costs a rebuild and nothing else.

No log stops a keeper. What cannot be placed is counted and stepped over; a job about which logs and chain contradict
each other is doubted, and its keeper reads everything anew or sets the job aside (`keeper.reader`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from eth_utils.crypto import keccak

from hearth.chain.port import Log
from hearth.market.events import (
    EVENTS,
    Checkpointed,
    CheckpointPaid,
    JobPosted,
    Proposed,
    Split,
    Started,
    UnitEvent,
    data_bytes_of,
    topic_of,
)
from hearth.protocol import formulas, words
from hearth.protocol.parents import Parent, parents_hash, unpack_parents
from hearth.protocol.types import (
    MAX_PARENTS,
    SENTINEL,
    ZERO_HASH,
    Best,
    Header,
    JobId,
    NodeId,
    State,
    Terms,
    Unit,
)
from hearth.protocol.words import TermsWords
from keeper.columns import U64, lane_of, limbs_of
from keeper.fleet import Fleet
from keeper.snapshot import JobRow, UnitRow
from keeper.trust import Record

TERMS_BYTES: Final = 9 * 32
_LIST_AT: Final = TERMS_BYTES + 3 * 32
"""The byte of a post's data at which its list of parents starts: after the terms, the word that points at it, the job's
number, and the block of the job posted before."""
_ZERO_INDEX: Final = bytes(32)
_ALL_INDEX: Final = SENTINEL.to_bytes(32, "big")
_STATE_MASK: Final = np.uint64(15)
_LIMITS_AT: Final = 4 * 32
"""The byte of the terms at which the word of limits starts."""
_UNITS, _CHUNK, _REPLICAS = (
    (words.shift_of(words.LIMITS, lane), (1 << words.width_of(words.LIMITS, lane)) - 1)
    for lane in ("units", "chunk", "replicas")
)


@dataclass(slots=True)
class _Job:
    """One job that has not ended: its terms and parents as the log had them, its header's lanes, its units' rows."""

    id: JobId
    raw: bytes
    listed: tuple[bytes, ...]
    leases: int
    since: int
    touched: int = 0
    closed: bool = False
    waiting: bool = False
    opened: int = 0
    ended: int = 0
    rows: dict[int, int] = field(default_factory=dict)
    view: JobRow | None = None
    terms: Terms | None = None
    parents: tuple[Parent, ...] = ()
    record: Record = Record()


@dataclass(frozen=True, slots=True)
class _Sent:
    """A proposal of this keeper's that its unit holds: its node, until when it may be acked, the lapses before."""

    node: NodeId
    until: int
    lapses: int


class Index:
    """The market as of the last block applied."""

    def __init__(
        self,
        chain_id: int,
        registry: str,
        payee: str = "",
        capacity: int = 1_024,
        *,
        sent: Callable[[bytes], bool] | None = None,
    ) -> None:
        """Begin with nothing. `sent` says by its hash whether this keeper sent a transaction.

        Anybody may name its payee. None: it is not known what was sent, and all that names the payee is its own.
        """
        self.fleet = Fleet()
        self.logs = 0
        """Logs read since the rebuild."""
        self.strays = 0
        """Logs among them that could not be placed."""
        self.doubts: set[JobId] = set()
        """Jobs that are not what their logs say."""
        self.aside: set[JobId] = set()
        """Doubted jobs of which nothing is kept."""
        self.credited = 0
        """Base units that Escrow has credited to the payee, from the first block read."""
        self.records: dict[NodeId, Record] = {}
        """What became of this keeper's proposals of each node, but for those that a unit still holds."""
        self._prefix = chain_id.to_bytes(32, "big") + bytes(12) + bytes.fromhex(registry[2:])
        self._payee = bytes.fromhex(payee.removeprefix("0x"))
        self._was_sent = sent
        self._jobs: dict[bytes, _Job] = {}
        self._rows: dict[bytes, int] = {}
        self._keys: list[bytes] = [b""] * capacity
        self._free = list(range(capacity - 1, -1, -1))
        self._words: U64 = np.zeros((capacity, 4), np.uint64)
        self._seconds: U64 = np.zeros((capacity, 4), np.uint64)
        self._unread: set[bytes] = set()
        self._posted, self._proposed, self._split = topic_of(JobPosted), topic_of(Proposed), topic_of(Split)
        self._started = topic_of(Started)
        self._sent: dict[int, _Sent] = {}
        self._moves = _moves()

    def __len__(self) -> int:
        """Count the jobs that have not ended."""
        return len(self._jobs)

    # ---- writing ----

    def apply(self, logs: Sequence[Log], at: int) -> None:
        """Apply a page of logs of JobRegistry and Escrow, in chain order; `at` is the time of the page's last block.

        Logs that cannot follow what was read before, by a gap or a lying provider, are counted in `strays`.
        """
        rows: list[int] = []
        data: list[bytes] = []
        best_rows: list[int] = []
        best: list[bytes] = []
        moves, proposed = self._moves, self._proposed
        own = self._own(logs)  # first: the journal may fail, and then nothing must be half applied
        for log in logs:
            kind = log.topics[0] if log.topics else b""
            if kind in moves:
                row = self._move(log, kind, at, own)
                if row < 0:
                    continue
                rows.append(row)
                data.append(log.data[:32])
                if kind == proposed:
                    best_rows.append(row)
                    best.append(log.data[32:64])
            elif kind == self._posted:
                self._post(log, at)
            elif kind == self._split and self._payee in log.data:
                self._credit(log)
        self.logs += len(logs)
        if not rows:
            return
        written = np.array(rows)
        limbs = limbs_of(b"".join(data), len(data))
        self._words[written] = limbs  # of a row that appears twice the later log stays: numpy assigns in order
        if best:
            self._seconds[np.array(best_rows)] = limbs_of(b"".join(best), len(best))
        for row in set(rows):
            self._jobs[self._keys[row][:32]].view = None
        over = (self._words[written, 0] & _STATE_MASK) >= State.SETTLED
        for row in set(written[over].tolist()):
            self._end(row)

    def _post(self, log: Log, at: int) -> None:
        job = JobId(log.topics[1]) if len(log.topics) > 1 else JobId(b"")
        leases = _leases_of(log.data)
        listed = _list_of(log.data)
        if not job or listed is None or job in self._jobs or job in self.aside or not leases:
            self._stray(log)
            return
        self._jobs[job] = entry = _Job(JobId(job), log.data[:TERMS_BYTES], listed, leases, at)
        self._unread.add(job)
        blocked = log.data[TERMS_BYTES - 32 : TERMS_BYTES] != ZERO_HASH
        if leases == 1:
            entry.touched = 1
            row = self._open_row(entry, _ZERO_INDEX)  # first: it may replace the columns by longer ones
            self._words[row] = (State.BLOCKED if blocked else State.OPEN, 0, 0, 0)
        else:
            entry.waiting = blocked

    def _own(self, logs: Sequence[Log]) -> set[bytes]:
        """Return the hashes of the transactions that sent this keeper's proposals, among those that logs are of."""
        proposed, payee, sent = self._proposed, self._payee, self._was_sent
        named = {log.tx_hash for log in logs if log.data[44:64] == payee and log.topics and log.topics[0] == proposed}
        return named if sent is None else {digest for digest in named if sent(digest)}

    def _move(self, log: Log, kind: bytes, at: int, own: set[bytes]) -> int:
        """Return the row of the unit that a log moves, or -1 for a log about a whole array or one that fits nowhere."""
        topics = log.topics
        if len(topics) < 3 or len(log.data) < self._moves[kind]:
            self._stray(log)
            return -1
        row = self._rows.get(topics[1] + topics[2], -1)
        try:
            if row < 0:
                row = self._first_event(log, at)
            if row in self._sent:
                self._answer(row, kind, log.data)
            if row >= 0 and log.tx_hash in own and kind == self._proposed and log.data[44:64] == self._payee:
                self._remember(row, log.data)
        except ValueError:  # a word that no contract writes
            self._stray(log)
            return -1
        return row

    def _first_event(self, log: Log, at: int) -> int:
        """Return a new row for a lease's first event, or -1 for a log about a whole array or one that fits nowhere.

        Raises ValueError for a header that no contract writes.
        """
        entry = self._jobs.get(log.topics[1])
        index = log.topics[2]
        number = int.from_bytes(index, "big")
        if entry is not None and entry.leases > 1 and index == _ALL_INDEX:
            self._set_header(entry, int.from_bytes(log.data[:32], "big"))
            self._finish(entry)
            return -1
        if entry is None or number != entry.touched or number >= entry.leases:
            self._stray(log)
            return -1
        entry.touched, entry.since = number + 1, at
        return self._open_row(entry, index)

    def _stray(self, log: Log) -> None:
        """Count a log that cannot be placed, and doubt the job that it names where that one is known."""
        self.strays += 1
        if len(log.topics) > 1 and log.topics[1] in self._jobs:
            self.doubts.add(JobId(log.topics[1]))

    def set_aside(self) -> list[JobId]:
        """Keep nothing of the doubted jobs, nor of what logs still say of them; return them."""
        jobs = [job for job in self.doubts if job in self._jobs]
        for job in jobs:
            for row in list(self._jobs[job].rows.values()):
                self._drop(row)
            del self._jobs[job]
            self._unread.discard(job)
        self.aside.update(jobs)
        self.doubts.clear()
        return jobs

    def _open_row(self, entry: _Job, index: bytes) -> int:
        if not self._free:
            self._grow()
        row = self._free.pop()
        key = entry.id + index
        self._rows[key], self._keys[row] = row, key
        entry.rows[int.from_bytes(index, "big")] = row
        return row

    def _grow(self) -> None:
        size = len(self._keys)
        self._words = np.concatenate([self._words, np.zeros((size, 4), np.uint64)])
        self._seconds = np.concatenate([self._seconds, np.zeros((size, 4), np.uint64)])
        self._keys += [b""] * size
        self._free = list(range(2 * size - 1, size - 1, -1))

    def _end(self, row: int) -> None:
        """Drop the row of a unit that has ended, and its job with the last one."""
        entry = self._drop(row)
        entry.ended += 1
        entry.view = None
        self._finish(entry)

    def _drop(self, row: int) -> _Job:
        """Free a row, and return its job."""
        key = self._keys[row]
        entry = self._jobs[key[:32]]
        del self._rows[key]
        del entry.rows[int.from_bytes(key[32:], "big")]
        self._sent.pop(row, None)
        self._free.append(row)
        return entry

    def _finish(self, entry: _Job) -> None:
        if entry.ended == (entry.touched if entry.closed else entry.leases):
            del self._jobs[entry.id]
            self._unread.discard(entry.id)

    def _set_header(self, entry: _Job, word: int) -> None:
        header = words.unpack_header(word)
        entry.closed, entry.waiting, entry.opened, entry.view = header.closed, header.waiting, header.opened, None

    def _remember(self, row: int, data: bytes) -> None:
        """Keep a proposal of this keeper's until something else becomes of its unit; `data` is its event's."""
        terms = self._read(self._jobs[self._keys[row][:32]])
        unit = words.unpack_unit(int.from_bytes(data[:32], "big"))
        best = words.unpack_best(int.from_bytes(data[32:64], "big"))
        self._sent[row] = _Sent(best.node, formulas.lapses_at(terms, unit), unit.lapses)

    def _answer(self, row: int, kind: bytes, data: bytes) -> None:
        """Record what became of this keeper's proposal of a unit, by the unit's next event.

        A unit that holds a live proposal takes no claim and no cancel, so a start before it lapses is its ack, and
        what is neither that nor a better proposal comes after it lapsed.
        """
        entry, sent = self._jobs[self._keys[row][:32]], self._sent.pop(row)
        unit = words.unpack_unit(int.from_bytes(data[:32], "big"))
        node = self.records.get(sent.node, Record())
        if kind == self._started and unit.started < sent.until:
            entry.record, self.records[sent.node] = entry.record.acked(), node.acked().capped()
            return
        entry.record = entry.record.lost(sent.until)
        if kind != self._proposed or unit.lapses > sent.lapses:
            self.records[sent.node] = node.lost(sent.until)

    def _credit(self, log: Log) -> None:
        for start in range(0, 128, 32):
            share = log.data[start : start + 32]
            if share[12:] == self._payee:
                self.credited += int.from_bytes(share[:12], "big")

    # ---- reading the chain ----

    def unread(self) -> list[JobId]:
        """Return the jobs whose word no event has carried yet: when they opened is read from the chain."""
        return [JobId(job) for job in self._unread]

    def live(self) -> list[JobId]:
        """Return every job that has not ended."""
        return [JobId(job) for job in self._jobs]

    def compare(self, jobs: Sequence[JobId], chain: Iterable[int]) -> list[JobId]:
        """Take the jobs' words as read from the chain at the index's block; doubt and return those that were wrong.

        When a fresh job opened, or began to wait, is taken from the chain, and is no difference: the event of its post
        lacks it.
        """
        wrong: list[JobId] = []
        for job, word in zip(jobs, chain, strict=True):
            entry = self._jobs[job]
            fresh = job in self._unread
            self._unread.discard(job)
            if entry.leases > 1:
                right = words.is_header(word)
                if right:
                    header = words.unpack_header(word)
                    held = (entry.leases, entry.touched, entry.closed, entry.waiting, entry.opened)
                    opened = entry.opened if fresh else header.opened
                    right = (header.leases, header.touched, header.closed, header.waiting, opened) == held
                    right &= header.done + header.failed == entry.ended
                    self._set_header(entry, word)
            else:
                row = entry.rows[0]
                unit = _int_of(self._words[row])
                right = unit == word or (fresh and word & 15 == unit and unit in (State.OPEN, State.BLOCKED))
                self._words[row] = limbs_of(word.to_bytes(32, "big"), 1)[0]
                entry.view = None
            if not right:
                wrong.append(job)
        self.doubts.update(wrong)
        return wrong

    # ---- for decide ----

    def rows(self) -> tuple[JobRow, ...]:
        """Return every job that has not ended, with its touched units. Unchanged jobs keep their object.

        A job whose words no contract writes, whose terms are not those of its id, or whose parents are not those of its
        terms, is doubted and not among them.
        """
        found: list[JobRow] = []
        for entry in self._jobs.values():
            try:
                found.append(entry.view or self._view(entry))
            except ValueError:
                self.doubts.add(entry.id)
        return tuple(found)

    def packed(self, job: JobId) -> TermsWords:
        """Return a job's nine words, to send back as calldata."""
        return _terms_words(self._jobs[job].raw)

    def states(self) -> dict[State, int]:
        """Count the touched units that have not ended by state."""
        rows = np.fromiter(self._rows.values(), np.int64, len(self._rows))
        counts = np.bincount(lane_of(self._words[rows], words.UNIT, "state"), minlength=16)
        return {state: int(counts[state]) for state in State if counts[state]}

    def _read(self, entry: _Job) -> Terms:
        """Return a job's terms, and learn its parents. Raises ValueError where they are not its id's."""
        if entry.terms is None:
            if keccak(self._prefix + entry.raw) != entry.id:
                raise ValueError(f"the terms of job 0x{entry.id.hex()} have another id")
            terms = words.unpack_terms(_terms_words(entry.raw))
            if parents_hash(entry.listed) != terms.parents_hash:
                raise ValueError(f"the parents of job 0x{entry.id.hex()} have another hash")
            entry.parents = unpack_parents(entry.listed)
            entry.terms = terms
        return entry.terms

    def _view(self, entry: _Job) -> JobRow:
        terms = self._read(entry)
        units = tuple(self._unit(index, row) for index, row in entry.rows.items())
        header = None
        if entry.leases > 1:
            header = Header(
                closed=entry.closed,
                waiting=entry.waiting,
                touched=entry.touched,
                opened=entry.opened,
                leases=entry.leases,
            )
        view = JobRow(entry.id, terms, units, header, entry.since, entry.record, entry.parents)
        if view.waits and not entry.parents:
            raise ValueError(f"job 0x{entry.id.hex()} waits, and has no parents")
        if header is not None and any(row.unit.state == State.BLOCKED for row in units):
            raise ValueError(f"a unit of the array 0x{entry.id.hex()} waits by itself")
        entry.view = view
        return entry.view

    def _unit(self, index: int, row: int) -> UnitRow:
        unit: Unit = words.unpack_unit(_int_of(self._words[row]))
        best = Best()
        if unit.window_end:
            best = words.unpack_best(_int_of(self._seconds[row]))
        return UnitRow(index, unit, best, row in self._sent)


def topics() -> set[bytes]:
    """Return the first topics of every log that an index reads."""
    return {topic_of(JobPosted), topic_of(Split), *_moves()}


def _moves() -> dict[bytes, int]:
    """Return the first topic of every event that changes a unit, and the least bytes of its data.

    A checkpoint changes none, and what it earned has no word: of neither a log is asked for, however many there are.
    """
    moves = [cls for cls in EVENTS.values() if issubclass(cls, UnitEvent) and cls not in (Checkpointed, CheckpointPaid)]
    return {topic_of(cls): data_bytes_of(cls) for cls in moves}


def _leases_of(data: bytes) -> int:
    """Return how many leases a post's terms ask for, 0 where they are such as no contract takes."""
    limits = int.from_bytes(data[_LIMITS_AT : _LIMITS_AT + 32], "big")
    units, chunk, replicas = ((limits >> shift) & mask for shift, mask in (_UNITS, _CHUNK, _REPLICAS))
    return units // chunk * replicas if chunk else 0


def _list_of(data: bytes) -> tuple[bytes, ...] | None:
    """Return the words of a posted list of parents, None for data that no registry writes."""
    start = _LIST_AT + 32
    count = (len(data) - start) // 32
    if not 0 <= count <= MAX_PARENTS + 1 or len(data) != start + 32 * count:
        return None
    place, length = data[TERMS_BYTES : TERMS_BYTES + 32], data[_LIST_AT:start]
    if place != _LIST_AT.to_bytes(32, "big") or length != count.to_bytes(32, "big"):
        return None
    return tuple(data[at : at + 32] for at in range(start, len(data), 32))


def _int_of(limbs: U64) -> int:
    return int.from_bytes(limbs[::-1].astype(">u8").tobytes(), "big")


def _terms_words(raw: bytes) -> TermsWords:
    at = [raw[i : i + 32] for i in range(0, TERMS_BYTES, 32)]
    a, _, c, d, e, f, g, h, _ = (int.from_bytes(word, "big") for word in at)
    return (a, at[1], c, d, e, f, g, h, at[8])
