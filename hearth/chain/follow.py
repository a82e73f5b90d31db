"""Follow the market's logs by block hash: catch up in ranges, then block by block, and walk back where a reorg came.

A cursor keeps a ring of (number, hash, parent hash). `read` returns what changed since the last `advance`: blocks
that left the chain, and the logs of blocks that joined it. Until `advance` the same logs are shown again, also after a
crash, so handlers are keyed by (block hash, transaction hash, log index); a block that was shown and then left the
chain is reported as orphaned, advanced or not. Of a range only the last block is known by its hash: where that leaves
the chain, the market is read from its first block, as it is where a reorg outran the ring. The ring is a cache: a
damaged or foreign one is dropped, and the market is read anew as well.

A block's bloom may save the request for its logs only on a chain whose blooms were seen to announce logs: there are
chains that leave them empty. The transaction that created the market is the first witness, and each log that is read
is another; one that its block did not announce ends all trust. Every few blocks those that were passed on a bloom's
word are asked for all the same, so that a chain that stops filling blooms hides a log no longer than that.
Source: threats.md "Threats".
"""

from __future__ import annotations

import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

from hearth.base.errors import ChainError
from hearth.chain.port import Block, ChainPort, Log

DEPTH: Final = 64
"""Blocks from the head within which a reorg is expected; they are read one by one, by hash."""
LAG_SECONDS: Final = 30.0
"""A provider that stays behind what was passed for longer is not late: the chain has gone back."""
SPAN: Final = 5_000
"""Blocks that one `read` catches up at most, so that progress is kept."""
_PATIENCE: Final = 3
"""Reads after which a block's logs are believed against its bloom."""
_CHANCE: Final = 0.01
"""How often a bloom may announce a log by chance for the cursor to wait for it; above, it is asked for once more."""
_VAIN: Final = 2
"""Blocks that are waited for in vain, one after another: from then on a block is asked for once more at once.

Anybody can log what makes a bloom announce our contracts and topics, in each block, for the price of one transaction.
"""
_CROWDED: Final = 256
AUDIT: Final = 16
"""Blocks that are passed on their bloom's word alone before all of them are asked for their logs."""
_FULL: Final = 1024
"""Bits of 2,048 in a bloom, above which one of our topics, or a contract, is there by chance too often."""

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS ring (number INTEGER PRIMARY KEY, hash BLOB NOT NULL, parent BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS shown (hash BLOB PRIMARY KEY, number INTEGER NOT NULL, parent BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS passed (hash BLOB PRIMARY KEY, number INTEGER NOT NULL, logs INTEGER NOT NULL,
    unannounced INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT NOT NULL);
"""


@dataclass(frozen=True, slots=True)
class Mark:
    """A block that the cursor has passed."""

    number: int
    hash: bytes
    parent: bytes


@dataclass(frozen=True, slots=True)
class Tick:
    """What changed: apply `orphaned` (newest first), then `logs` (oldest first), then call `Cursor.advance`.

    `reset` says that everything derived before is void: the logs start again at the market's first block.
    `behind` counts the blocks that are still to be read; 0 means caught up with `head`.
    """

    head: Block
    orphaned: tuple[Mark, ...]
    logs: tuple[Log, ...]
    marks: tuple[Mark, ...]
    behind: int
    reset: bool = False


class _Passed(NamedTuple):
    """A block that an audit looks at again: the logs that were taken of it, and whether its bloom announced none."""

    number: int
    logs: int
    unannounced: bool


class Cursor:
    """Follow `addresses` from `start` on. One thread uses it; `path` None keeps the ring in memory."""

    def __init__(
        self,
        port: ChainPort,
        addresses: Sequence[str],
        start: int,
        path: Path | None = None,
        *,
        topics: Iterable[bytes],
        witness: bytes | None = None,
        blooms: bool | None = None,
        depth: int = DEPTH,
        span: int = SPAN,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Open the cursor.

        `topics` are the first topics that these contracts emit: a block whose bloom holds one of them together
        with a contract, and whose logs then lack it, is read again a few times before it is believed. `witness` is the
        hash of a transaction that logged: whether its block announces that says what a bloom is worth here, unless
        `blooms` says what an earlier cursor has found.
        """
        self._port = port
        self._addresses = [a.lower() for a in addresses]
        self._topics = tuple(topics)
        self._start, self._depth, self._span = start, depth, span
        self._suspected: tuple[bytes, int] = (b"", 0)
        self.suspicions = 0
        """How often a provider left out logs that a block's bloom announces (or the bloom was wrong by chance)."""
        self._vain = 0
        """How many blocks were waited for in vain since one of them showed a log after all."""
        self._witness = witness
        self.blooms = blooms
        """Whether this chain's blooms announce logs, None while nothing has shown it."""
        self._passed: dict[bytes, _Passed] = {}
        """Blocks that were passed on their bloom's word, or believed against it, since the last audit, by hash."""
        self._missed: int | None = None
        """The first of those that had a log after all: nothing stands from there on."""
        self._ring: list[Mark] = []
        self._shown: dict[bytes, Mark] = {}
        self._fresh = True
        self._clock = clock
        self._behind_since: float | None = None
        self._db = self._open(path)

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    @property
    def position(self) -> int:
        """Return the number of the last block that was passed, `start` - 1 before the first."""
        return self._ring[-1].number if self._ring else self._start - 1

    def _open(self, path: Path | None) -> sqlite3.Connection:
        about = {
            "chain": str(self._port.chain_id()),
            "genesis": self._port.genesis_hash().hex(),
            "contracts": " ".join(self._addresses),
            "start": str(self._start),
        }
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                return self._load(sqlite3.connect(path, isolation_level=None), about)
            except sqlite3.DatabaseError:
                for part in (path, Path(f"{path}-wal"), Path(f"{path}-shm")):
                    part.unlink(missing_ok=True)
        return self._load(sqlite3.connect(path or ":memory:", isolation_level=None), about)

    def _load(self, db: sqlite3.Connection, about: dict[str, str]) -> sqlite3.Connection:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=NORMAL")
        db.executescript(_SCHEMA)
        if dict(db.execute("SELECT name, value FROM about")) == about:
            self._ring = [Mark(*row) for row in db.execute("SELECT number, hash, parent FROM ring ORDER BY number")]
            shown = db.execute("SELECT hash, number, parent FROM shown")
            self._shown = {digest: Mark(number, digest, parent) for digest, number, parent in shown}
            passed = db.execute("SELECT hash, number, logs, unannounced FROM passed")
            self._passed = {digest: _Passed(number, logs, bool(bare)) for digest, number, logs, bare in passed}
            # Where nothing was passed, nobody may have heard yet that what an earlier file told is void.
            self._fresh = not self._ring
        else:
            db.execute("BEGIN IMMEDIATE")
            db.execute("DELETE FROM ring")
            db.execute("DELETE FROM shown")
            db.execute("DELETE FROM passed")
            db.execute("DELETE FROM about")
            db.executemany("INSERT INTO about VALUES (?, ?)", about.items())
            db.execute("COMMIT")
        return db

    def read(self) -> Tick:
        """Return what changed since the last `advance`, without moving the cursor.

        Raises ChainError where the provider fails; the next `read` starts over.
        """
        head = self._port.head()
        self._audit(head)
        ring = list(self._ring)
        orphaned = self._walk_back(ring, head)
        stale = self._stale_shown(head)
        torn = any(self._ends_range(mark) for mark in stale + orphaned)
        if torn:
            ring.clear()  # which logs of a range are gone is not known, so nothing stands
        reset = self._fresh or torn or (bool(orphaned) and not ring)
        orphaned = stale + orphaned
        base = ring[-1] if ring else None
        first = base.number + 1 if base else self._start
        stable = head.number - self._depth
        if first <= stable:
            logs, marks = self._catch_up(base, first, min(stable, first + self._span - 1))
        else:
            logs, marks = self._step(base, first, head)
        self._note_shown(marks)
        upto = marks[-1].number if marks else (base.number if base else self._start - 1)
        return Tick(head, tuple(orphaned), tuple(logs), tuple(marks), max(0, head.number - upto), reset)

    def advance(self, tick: Tick) -> None:
        """Write that a tick was handled."""
        gone = {mark.hash for mark in tick.orphaned}
        stay = [] if tick.reset else [mark for mark in self._ring if mark.hash not in gone]
        ring = stay + list(tick.marks)
        ring = ring[-2 * self._depth :]
        passed = ring[-1].number if ring else self._start - 1
        # What was shown up to here either stands, and was shown again by this tick, or is among its orphans.
        done = gone | {digest for digest, mark in self._shown.items() if mark.number <= passed}
        self._db.execute("BEGIN IMMEDIATE")
        self._db.executemany("DELETE FROM shown WHERE hash = ?", [(digest,) for digest in done])
        self._db.execute("DELETE FROM ring")
        self._db.executemany("INSERT INTO ring VALUES (?, ?, ?)", [(m.number, m.hash, m.parent) for m in ring])
        self._db.execute("DELETE FROM passed")
        self._db.executemany("INSERT INTO passed VALUES (?, ?, ?, ?)", [(d, *p) for d, p in self._passed.items()])
        self._db.execute("COMMIT")
        self._ring = ring
        self._missed = None
        self._shown = {digest: mark for digest, mark in self._shown.items() if digest not in done}
        self._fresh = False

    def _ends_range(self, mark: Mark) -> bool:
        """Say whether a mark stands for more blocks than its own, since what came before it is no mark."""
        return mark.parent not in self._shown and all(mark.parent != one.hash for one in self._ring)

    def _stale_shown(self, head: Block) -> list[Mark]:
        """Return what was shown but never advanced past, and has left the chain since; newest first."""
        stale: list[Mark] = []
        for mark in self._shown.values():
            found = head if mark.number == head.number else self._port.block(mark.number)
            # A node that crashed still serves by number what lay above its head.
            if found is None or found.hash != mark.hash or mark.number > head.number:
                stale.append(mark)
        return sorted(stale, key=lambda mark: -mark.number)

    def _note_shown(self, marks: list[Mark]) -> None:
        """Remember what is about to be shown, before anybody acts on it."""
        fresh = [mark for mark in marks if mark.hash not in self._shown]
        if fresh:
            self._db.execute("BEGIN IMMEDIATE")
            rows = [(mark.hash, mark.number, mark.parent) for mark in fresh]
            self._db.executemany("INSERT INTO shown VALUES (?, ?, ?)", rows)
            self._db.execute("COMMIT")
            self._shown.update((mark.hash, mark) for mark in fresh)

    def _walk_back(self, ring: list[Mark], head: Block) -> list[Mark]:
        """Drop from `ring` what is no longer in the chain, or was passed without its logs; return it, newest first."""
        orphaned: list[Mark] = []
        if ring and self._lags(ring, head):
            # What we passed is still the truth until something contradicts it.
            raise ChainError(
                f"the provider is behind: its head is {head.number}, block {ring[-1].number} was seen",
                code="RPC_LAGS",
                hint="hearth doctor",
            )
        while ring:
            mark = ring[-1]
            if mark.number > head.number:
                orphaned.append(ring.pop())
                continue
            found = head if mark.number == head.number else self._port.block(mark.number)
            if found is not None and found.hash == mark.hash and (self._missed is None or mark.number < self._missed):
                break
            orphaned.append(ring.pop())
        return orphaned

    def _lags(self, ring: list[Mark], head: Block) -> bool:
        """Say whether a head below what was passed is that of a provider that is late, and not of another chain."""
        known = next((mark for mark in ring if mark.number == head.number), None)
        if head.number >= ring[-1].number or (known is not None and known.hash != head.hash):
            self._behind_since = None
            return False
        now = self._clock()
        if self._behind_since is None:
            self._behind_since = now
        return now - self._behind_since < LAG_SECONDS

    def _catch_up(self, base: Mark | None, first: int, last: int) -> tuple[list[Log], list[Mark]]:
        """Read a range below the reorg depth; the blocks at both its ends must stand before and after.

        A provider that goes to and fro between chains which differ below that depth may still mix them.
        """
        end = self._block(last)
        logs = self._port.logs(self._addresses, from_block=first, to_block=last)
        again = self._block(last)
        before = self._block(base.number) if base else None
        strange = any(log.block_hash != end.hash for log in logs if log.block_number == last)
        if strange or again.hash != end.hash or (base and before and before.hash != base.hash):
            raise ChainError("a reorg deeper than expected happened while reading", code="REORG", hint="hearth doctor")
        if logs and self.blooms is not False:
            self._learn(
                self._block(logs[-1].block_number), [log for log in logs if log.block_hash == logs[-1].block_hash]
            )
        return logs, [Mark(end.number, end.hash, end.parent_hash)]

    def _step(self, base: Mark | None, first: int, head: Block) -> tuple[list[Log], list[Mark]]:
        """Read the newest blocks one by one, each linked to the one before; stop where one is not."""
        logs: list[Log] = []
        marks: list[Mark] = []
        last = base
        for number in range(first, head.number + 1):
            block = head if number == head.number else self._port.block(number)
            if block is None or (last is not None and block.parent_hash != last.hash):
                break
            found = self._logs_of(block)
            if found is None:
                break
            logs.extend(found)
            last = Mark(block.number, block.hash, block.parent_hash)
            marks.append(last)
        return logs, marks

    def _logs_of(self, block: Block) -> list[Log] | None:
        """Return a block's logs; None where the block's bloom says that some are missing, for a few reads.

        Where a bloom is as full as that of a busy chain, it often says so by chance, where it is doubted one provider
        may say so in each block, and any stranger's logs may. A cursor that waited each time would not keep up: it asks
        a second time instead. What is believed then is looked at again with the blocks that were passed.
        """
        self._passed.pop(block.hash, None)
        if self._may_pass(block):
            self._passed[block.hash] = _Passed(block.number, 0, unannounced=True)
            return []
        logs = self._port.logs(self._addresses, block_hash=block.hash)
        self._learn(block, logs)
        seen = self._suspected[1] if self._suspected[0] == block.hash else 0
        if not self._is_suspicious(block.bloom, logs):
            if seen:
                self._vain = 0
            return logs
        self.suspicions += 1
        if block.doubted or self._vain >= _VAIN or self._chance(block.bloom, logs) > _CHANCE:
            again = self._port.logs(self._addresses, block_hash=block.hash)
            if len(again) > len(logs):
                self._vain, logs = 0, again
        else:
            self._suspected = (block.hash, seen + 1)
            if seen + 1 < _PATIENCE:
                return None
            self._vain += 1
        self._passed[block.hash] = _Passed(block.number, len(logs), unannounced=False)
        return logs

    def _may_pass(self, block: Block) -> bool:
        """Say whether a block has no log of ours, by a bloom of a chain whose blooms are known to announce them."""
        if self.blooms is None and self._witness is not None:
            self.blooms, self._witness = witnessed(self._port, self._witness), None
        return self.blooms is True and not self._holds(block.bloom)

    def _holds(self, bloom: bytes) -> bool:
        """Say whether a bloom holds one of the contracts."""
        return any(_in_bloom(bloom, bytes.fromhex(address[2:])) for address in self._addresses)

    def _learn(self, block: Block, logs: Sequence[Log]) -> None:
        """Take a block's logs for what its bloom is worth; one that was not announced ends all trust."""
        if not logs or self.blooms is False or any(log.block_hash != block.hash for log in logs):
            return
        self.blooms = announces(block, logs)

    def _audit(self, head: Block) -> None:
        """Ask for the logs of the blocks that were passed or believed: from one that has more, all is read anew."""
        if not self._passed:
            return
        numbers = [passed.number for passed in self._passed.values()]
        first, last = min(numbers), min(head.number, max(numbers))
        if first > last or (len(numbers) < AUDIT and head.number - first < self._depth):
            return
        logs = Counter(log.block_hash for log in self._port.logs(self._addresses, from_block=first, to_block=last))
        # A provider that is behind says nothing of what lies above its head.
        due = {block: passed for block, passed in self._passed.items() if passed.number <= last}
        missed = [passed for block, passed in due.items() if logs[block] > passed.logs]
        if missed:
            self._missed = min(passed.number for passed in missed)
        if any(passed.unannounced for passed in missed):
            self.blooms = False
        self._passed = {block: passed for block, passed in self._passed.items() if block not in due}

    def _is_suspicious(self, bloom: bytes, logs: list[Log]) -> bool:
        """Say whether a bloom that holds one of the contracts announces a log that is not there.

        On a crowded chain most topics are in the bloom by chance: there only a block without any log counts, and
        in a full bloom nothing does.
        """
        # A block is asked for also where its bloom may be worth nothing.
        if not bloom or not self._holds(bloom):
            return False
        have = {log.topics[0] for log in logs if log.topics}
        bits = int.from_bytes(bloom, "big").bit_count()
        if bits > _FULL or (logs and bits > _CROWDED):
            return False
        return any(_in_bloom(bloom, t) for t in self._topics if t not in have)

    def _chance(self, bloom: bytes, logs: list[Log]) -> float:
        """Return how often a bloom this full announces a log of ours that is not there."""
        there = (int.from_bytes(bloom, "big").bit_count() / 2048) ** 3
        have = {log.topics[0] for log in logs if log.topics}
        contract = 1.0 if logs else 1 - (1 - there) ** len(self._addresses)
        topic = 1 - (1 - there) ** sum(topic not in have for topic in self._topics)
        return contract * topic

    def _block(self, number: int) -> Block:
        found = self._port.block(number)
        if found is None:
            raise ChainError(f"the provider lacks block {number}", code="RPC_LAGS", hint="hearth doctor")
        return found


def announces(block: Block, logs: Iterable[Log]) -> bool:
    """Say whether a block's bloom holds everything that it must of some of its logs."""
    items = {item for log in logs for item in (bytes.fromhex(log.address[2:]), *log.topics)}
    return bool(block.bloom) and all(_in_bloom(block.bloom, item) for item in items)


def witnessed(port: ChainPort, tx_hash: bytes) -> bool | None:
    """Say whether the block of a transaction announces what it logged; None where that cannot be seen."""
    receipt = port.receipt(tx_hash)
    block = None if receipt is None else port.block(receipt.block_hash)
    if receipt is None or not receipt.logs or block is None:
        return None
    return announces(block, receipt.logs)


@lru_cache(maxsize=4096)
def _bits(item: bytes) -> int:
    """Return the three bits that an address or topic sets in a bloom (yellow paper, section 4.3.1)."""
    from eth_utils.crypto import keccak

    digest = keccak(item)
    bits = 0
    for i in (0, 2, 4):
        bits |= 1 << (int.from_bytes(digest[i : i + 2], "big") & 2047)
    return bits


def _in_bloom(bloom: bytes, item: bytes) -> bool:
    """Say whether a block may hold a log of an address or topic; always where the bloom is unknown."""
    if not bloom:
        return True
    bits = _bits(item)
    return int.from_bytes(bloom, "big") & bits == bits
