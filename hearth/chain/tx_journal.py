"""The transaction journal: what was signed is on disk before it is broadcast, so no crash can lose or double it.

An intent moves intent -> signed -> broadcast -> mined -> final, or ends failed (reverted, or never sent) or replaced
(another transaction used its nonce, or the nonce is out of reach). Its key names the effect, such as
"job/0x..../0/submit/1": while an intent of a key is alive or done, the key is never signed for again. The chain may
take any of it back, at any depth. A lost journal loses no money: the nonce is adopted from the chain, contracts refuse
repeats, and every send is simulated first. A file of an older version is brought up to date as it is opened, one of
a newer version is refused. Source: threats.md "Threats".
"""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from hearth.base.errors import REINSTALL, ConfigError
from hearth.base.files import Spare
from hearth.base.journal_file import JournalFile, Schema, VersionError, disk_fails, unusable
from hearth.chain.keys import SignerLock
from hearth.chain.port import Call, Receipt, Signed
from hearth.chain.rollup import MOST_KEPT_TIMES, MOST_TIMES

_KEEP: Final = 30 * 86_400
"""Seconds that finished intents stay in the journal."""

_DAY: Final = 86_400
_AHEAD: Final = 3_600
"""What was spent later than this from now on bears the time of a clock that was wrong and is set right."""
SCHEMA: Final = Schema(
    version=2,
    tables="""
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE intents (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL,
    label TEXT NOT NULL,
    target TEXT,
    data BLOB NOT NULL,
    value TEXT NOT NULL,
    state TEXT NOT NULL,
    nonce INTEGER,
    note TEXT NOT NULL DEFAULT '',
    block_number INTEGER,
    block_hash BLOB,
    tx_hash BLOB,
    gas_used INTEGER,
    gas_price INTEGER,
    at REAL NOT NULL,
    ceiling INTEGER,
    rollup_fee TEXT NOT NULL DEFAULT '0'
);
CREATE UNIQUE INDEX one_live_intent ON intents (key) WHERE state NOT IN ('failed', 'replaced');
CREATE INDEX by_state ON intents (state);
CREATE TABLE attempts (
    hash BLOB PRIMARY KEY,
    intent INTEGER NOT NULL REFERENCES intents (id) ON DELETE CASCADE,
    raw BLOB NOT NULL,
    gas INTEGER NOT NULL,
    max_fee INTEGER NOT NULL,
    priority_fee INTEGER NOT NULL,
    cancels INTEGER NOT NULL,
    at REAL NOT NULL,
    rollup_fee TEXT NOT NULL DEFAULT '0'
);
CREATE INDEX by_intent ON attempts (intent);
""",
    # hearth 0.1.0 wrote version 0, which had no ceilings; version 1 knew nothing of what a rollup takes beside gas.
    steps=(
        "ALTER TABLE intents ADD COLUMN ceiling INTEGER",
        "ALTER TABLE intents ADD COLUMN rollup_fee TEXT NOT NULL DEFAULT '0';"
        "ALTER TABLE attempts ADD COLUMN rollup_fee TEXT NOT NULL DEFAULT '0'",
    ),
)


class TxState(StrEnum):
    """Where an intent is."""

    INTENT = "intent"
    SIGNED = "signed"
    BROADCAST = "broadcast"
    MINED = "mined"
    FINAL = "final"
    FAILED = "failed"
    REPLACED = "replaced"

    @property
    def live(self) -> bool:
        """Say whether bytes are signed whose fate is open."""
        return self in (TxState.SIGNED, TxState.BROADCAST)

    @property
    def done(self) -> bool:
        """Say whether the effect happened (MINED can still be undone by a reorg)."""
        return self in (TxState.MINED, TxState.FINAL)


@dataclass(frozen=True, slots=True)
class Intent:
    """One effect that was decided on, and what became of it.

    `note` says why it failed or was replaced, or is what the caller remarked. `ceiling` is the most wei per gas that
    the effect is worth, None where it is worth what may be paid at all. `rollup_fee` are the wei that a rollup took
    beside gas.
    """

    id: int
    key: str
    call: Call
    state: TxState
    nonce: int | None
    note: str
    block_number: int | None
    block_hash: bytes | None
    tx_hash: bytes | None
    gas_used: int | None
    gas_price: int | None
    ceiling: int | None = None
    rollup_fee: int = 0

    @property
    def fee(self) -> int:
        """Return what its transaction cost beside the call's value, in wei; 0 while it is not mined."""
        return 0 if self.tx_hash is None else (self.gas_used or 0) * (self.gas_price or 0) + self.rollup_fee


@dataclass(frozen=True, slots=True)
class SignedTx:
    """One signed transaction for an intent; replacements share its nonce. Fees are wei per gas.

    One that `cancels` only uses the nonce up, since the intent's call had become pointless. `at` is Unix time, and
    `rollup_fee` the wei that are kept for what a rollup takes beside gas, by an estimate; 0 where nothing estimates it.
    """

    hash: bytes
    raw: bytes
    gas: int
    max_fee: int
    priority_fee: int
    cancels: bool = False
    at: float = 0.0
    rollup_fee: int = 0

    @property
    def limits(self) -> Signed:
        """Return what no receipt of it may be beyond."""
        return Signed(self.gas, self.max_fee, self.priority_fee)

    def taken(self, told: int | None, gas_cost: int) -> int:
        """Return the wei that a rollup took by a receipt's word: what is kept without one, and never beyond reason.

        What is beyond counts as the most that is within (hearth.chain.rollup). To refuse the receipt would leave the
        transaction without one for as long as its provider lies, or for good where the chain is that dear.
        """
        if told is None:
            return self.rollup_fee
        return min(told, MOST_KEPT_TIMES * self.rollup_fee or MOST_TIMES * gas_cost)


class TxJournal(JournalFile):
    """The journal of one key on one chain. One process holds it at a time; its threads share it.

    Methods raise StorageError JOURNAL where the disk refuses.
    """

    def __init__(
        self, path: Path, *, chain_id: int, genesis_hash: bytes, address: str, spare: Spare | None = None
    ) -> None:
        """Open or make the journal at `path`.

        Raises ConfigError where another process holds it, or it belongs to another chain or key or to a newer version
        of hearth, and StorageError JOURNAL.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        self._held = SignerLock(path.with_name(path.name + ".lock"))
        self._held.acquire()
        facts = {"chain_id": str(chain_id), "genesis": genesis_hash.hex(), "address": address.lower()}
        try:
            super().__init__(path, SCHEMA, lambda db: _prepare(db, path, facts), spare, "chain")
        except VersionError as error:
            self._held.release()
            raise ConfigError(
                f"a newer version of Hearth wrote the journal {path} ({error.found}; this one reads up to "
                f"{error.version})",
                code="WRONG_JOURNAL",
                hint=REINSTALL,
            ) from error
        except sqlite3.DatabaseError as error:
            self._held.release()
            if disk_fails(error):
                raise unusable(path, error, "chain") from error
            raise ConfigError(
                f"the transaction journal {path} is damaged ({error})",
                code="BAD_JOURNAL",
                hint="move the file away: it is rebuilt from the chain; then hearth doctor",
            ) from error
        except ConfigError:
            self._held.release()
            raise

    def close(self) -> None:
        """Close the file and give up its lock."""
        super().close()
        self._held.release()

    def _change(self, sql: str, values: tuple[object, ...]) -> None:
        self._write(lambda db: db.execute(sql, values))

    @staticmethod
    def path_in(folder: Path, chain_id: int, genesis_hash: bytes, address: str) -> Path:
        """Name the journal of one key on one chain, so that a chain made anew starts with a new one."""
        return folder / f"tx-{chain_id}-{genesis_hash.hex()[:8]}-{address.lower()[2:10]}.db"

    # ---- reading ----

    def find(self, key: str) -> Intent | None:
        """Return the intent of a key that is alive or done, else the newest failed one, else None."""
        return self._one("WHERE key = ? ORDER BY state IN ('failed', 'replaced'), id DESC LIMIT 1", (key,))

    def newest(self, prefix: str, *, replaced: bool = False) -> Intent | None:
        """Return the newest intent that is alive or done of the keys that start with `prefix`, None for none.

        With `replaced`, one counts too that was given up because its nonce seemed to be another's.
        """
        left_out = ("failed", "failed") if replaced else ("failed", "replaced")
        return self._one(
            "WHERE substr(key, 1, length(?1)) = ?1 AND state NOT IN (?2, ?3) ORDER BY id DESC LIMIT 1",
            (prefix, *left_out),
        )

    def nonce_is_known(self, intent: Intent) -> bool:
        """Say whether another intent's transaction was mined with the nonce of this one."""
        sql = "SELECT 1 FROM intents WHERE nonce = ? AND id != ? AND tx_hash IS NOT NULL LIMIT 1"
        return bool(self._read(sql, (intent.nonce, intent.id)))

    def intents(self, *states: TxState) -> list[Intent]:
        """List the intents in some states, by nonce."""
        marks = ",".join("?" * len(states))
        rows = self._read(f"SELECT {_COLUMNS} FROM intents WHERE state IN ({marks}) ORDER BY nonce, id", states)
        return [_intent(row) for row in rows]

    def attempts(self, intent: Intent) -> list[SignedTx]:
        """List what was signed for an intent, oldest first."""
        rows = self._read(
            "SELECT hash, raw, gas, max_fee, priority_fee, cancels, at, rollup_fee FROM attempts"
            " WHERE intent = ? ORDER BY rowid",
            (intent.id,),
        )
        return [
            SignedTx(h, raw, gas, fee, tip, bool(cancels), at, int(beside))
            for h, raw, gas, fee, tip, cancels, at, beside in rows
        ]

    def signed_here(self, digest: bytes) -> bool:
        """Say whether a transaction's bytes were signed for this journal, whatever became of them.

        What ended more than 30 days ago is forgotten.
        """
        return bool(self._read("SELECT 1 FROM attempts WHERE hash = ?", (digest,)))

    def next_nonce(self) -> int:
        """Return one more than the highest nonce that is signed for or used; 0 for none.

        An intent that failed without being sent gave its nonce back.
        """
        ((nonce,),) = self._read("SELECT max(nonce) FROM intents WHERE state != 'failed' OR tx_hash IS NOT NULL")
        return 0 if nonce is None else int(nonce) + 1

    def nonces(self) -> set[int]:
        """Return the nonces for which this journal has bytes that wait, or that were mined, reverted or not."""
        rows = self._read("SELECT nonce FROM intents WHERE state IN ('signed', 'broadcast') OR tx_hash IS NOT NULL")
        return {nonce for (nonce,) in rows}

    def mined_from(self, nonce: int) -> list[Intent]:
        """List what was mined with a nonce or a higher one, reverted or not, by nonce."""
        clause = "WHERE tx_hash IS NOT NULL AND nonce >= ? ORDER BY nonce, id"
        return [_intent(row) for row in self._read(f"SELECT {_COLUMNS} FROM intents {clause}", (nonce,))]

    def spent(self, besides: Intent | None = None) -> int:
        """Return what gas has cost in the last 24 hours, and may yet cost for what waits, in wei.

        Of the attempts for one intent only one can be mined, so the dearest counts, with as much as `rollup_fee` where
        nothing estimated what a rollup takes of it. What was given up counts as if it
        waited while nobody knows which other transaction used its nonce. `besides` is left out.
        """
        day = time.time() - _DAY, time.time() + _AHEAD
        rows = self._read(
            "SELECT gas_used, gas_price, rollup_fee FROM intents WHERE tx_hash IS NOT NULL AND gas_used IS NOT NULL"
            " AND at > ? AND at <= ?",
            day,
        )
        waiting: dict[int, int] = {}
        seen = self.rollup_fee()
        for identity, gas, fee, beside in self._read(
            "SELECT i.id, a.gas, a.max_fee, a.rollup_fee FROM intents i JOIN attempts a ON a.intent = i.id"
            " WHERE i.state IN ('signed', 'broadcast') OR (i.state = 'replaced' AND i.at > ? AND i.at <= ?"
            " AND i.nonce NOT IN (SELECT nonce FROM intents WHERE tx_hash IS NOT NULL AND nonce IS NOT NULL))",
            day,
        ):
            if besides is None or identity != besides.id:
                waiting[identity] = max(waiting.get(identity, 0), gas * fee + (int(beside) or seen))
        mined = sum(int(gas) * int(price) + int(beside) for gas, price, beside in rows)
        return mined + sum(waiting.values())

    def rollup_fee(self) -> int:
        """Return the most wei that one transaction of the last 24 hours paid a rollup beside its gas."""
        day = time.time() - _DAY, time.time() + _AHEAD
        rows = self._read("SELECT rollup_fee FROM intents WHERE tx_hash IS NOT NULL AND at > ? AND at <= ?", day)
        return max((int(fee) for (fee,) in rows), default=0)

    def _one(self, clause: str, values: tuple[object, ...]) -> Intent | None:
        rows = self._read(f"SELECT {_COLUMNS} FROM intents {clause}", values)
        return _intent(rows[0]) if rows else None

    # ---- transitions ----

    def intend(self, key: str, call: Call, ceiling: int | None = None) -> Intent:
        """Write down what is about to be sent. Raises ValueError where the key is alive or done."""
        try:
            self._change(
                "INSERT INTO intents (key, label, target, data, value, state, at, ceiling)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (key, call.label, call.to, call.data, str(call.value), TxState.INTENT, time.time(), ceiling),
            )
        except sqlite3.IntegrityError as error:
            raise ValueError(f"an intent of key {key} is alive or done") from error
        found = self.find(key)
        assert found is not None
        return found

    def signed(self, intent: Intent, nonce: int, attempt: SignedTx) -> Intent:
        """Record signed bytes, before they are broadcast; a replacement keeps the intent's state."""

        def step(db: sqlite3.Connection) -> None:
            db.execute(
                "INSERT INTO attempts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) "
                "ON CONFLICT (hash) DO UPDATE SET intent = excluded.intent, at = excluded.at",
                (
                    attempt.hash,
                    intent.id,
                    attempt.raw,
                    attempt.gas,
                    attempt.max_fee,
                    attempt.priority_fee,
                    attempt.cancels,
                    time.time(),
                    str(attempt.rollup_fee),
                ),
            )
            db.execute(
                "UPDATE intents SET nonce = ?, state = CASE state WHEN 'intent' THEN 'signed' ELSE state END "
                "WHERE id = ?",
                (nonce, intent.id),
            )

        self._write(step)
        return self._get(intent.id)

    def broadcast(self, intent: Intent) -> Intent:
        """Record that a node took the bytes."""
        return self._move(intent, TxState.BROADCAST)

    def mined(self, intent: Intent, receipt: Receipt, failure: str | None = None) -> Intent:
        """Record the receipt: MINED, or FAILED where `failure` says why the effect did not happen.

        A receipt that says no gas, or nothing of what a rollup took, costs what was kept for it; what it says beyond
        reason does not count (`SignedTx.taken`).
        """
        state = TxState.MINED if failure is None else TxState.FAILED
        attempt = next((one for one in self.attempts(intent) if one.hash == receipt.tx_hash), None)
        gas, beside = receipt.gas_used, receipt.rollup_fee
        if attempt is not None:
            gas = gas or attempt.gas
            beside = attempt.taken(beside, gas * (receipt.gas_price or 0))
        self._change(
            "UPDATE intents SET state = ?, note = ?, tx_hash = ?, block_number = ?, block_hash = ?, gas_used = ?, "
            "gas_price = ?, rollup_fee = ?, at = ? WHERE id = ?",
            (
                *(state, failure or "", receipt.tx_hash, receipt.block_number, receipt.block_hash, gas),
                *(receipt.gas_price, str(beside or 0), time.time(), intent.id),
            ),
        )
        return self._get(intent.id)

    def unmined(self, intent: Intent) -> Intent:
        """Record that a reorg took the transaction out of the chain: it waits for another block.

        One that had failed there stays so, and its nonce is free again.
        """
        self._change(
            "UPDATE intents SET state = CASE state WHEN 'failed' THEN 'failed' ELSE 'broadcast' END, "
            "tx_hash = NULL, block_number = NULL, block_hash = NULL WHERE id = ?",
            (intent.id,),
        )
        return self._get(intent.id)

    def current(self, intent: Intent) -> Intent:
        """Return the intent as it stands now; another thread may have moved it."""
        return self._get(intent.id)

    def final(self, intent: Intent) -> Intent:
        """Record that no reorg can undo the transaction any more."""
        return self._move(intent, TxState.FINAL, intent.note)

    def remark(self, intent: Intent, note: str) -> Intent:
        """Note a word of the caller's beside an intent; a reorg that moves its transaction takes it away."""
        return self._move(intent, intent.state, note)

    def failed(self, intent: Intent, note: str) -> Intent:
        """Record that the intent was never sent. Its key and its nonce are free again."""
        return self._move(intent, TxState.FAILED, note)

    def replaced(self, intent: Intent, note: str) -> Intent:
        """Record that another transaction used the nonce. The key is free again."""
        return self._move(intent, TxState.REPLACED, note)

    def given_up(self, intent: Intent, note: str) -> Intent:
        """Record that the nonce is out of reach, so that it counts as nobody's. The key is free again."""
        self._change("UPDATE intents SET nonce = NULL WHERE id = ?", (intent.id,))
        return self._move(intent, TxState.REPLACED, note)

    def _move(self, intent: Intent, state: TxState, note: str = "") -> Intent:
        # What is mined keeps the second at which its gas was spent.
        self._change(
            "UPDATE intents SET state = ?, note = ?, at = CASE WHEN tx_hash IS NULL THEN ? ELSE at END WHERE id = ?",
            (state, note, time.time(), intent.id),
        )
        return self._get(intent.id)

    def _get(self, identity: int) -> Intent:
        found = self._one("WHERE id = ?", (identity,))
        assert found is not None
        return found


_COLUMNS: Final = (
    "id, key, target, data, value, label, state, nonce, note, block_number, block_hash, tx_hash, gas_used, gas_price, "
    "ceiling, rollup_fee"
)


def _prepare(db: sqlite3.Connection, path: Path, facts: dict[str, str]) -> None:
    """Write whose journal this is, and forget what is old. Raises ConfigError WRONG_JOURNAL for that of another chain
    or key."""
    for name, value in facts.items():
        db.execute("INSERT OR IGNORE INTO meta VALUES (?, ?)", (name, value))
        (found,) = db.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        if found != value:
            raise ConfigError(
                f"the journal {path} belongs to another {name.replace('_', ' ')} ({found}, not {value})",
                code="WRONG_JOURNAL",
                hint="use another state folder for each network and account",
            )
    db.execute("DELETE FROM intents WHERE state IN ('final', 'failed', 'replaced') AND at < ?", (time.time() - _KEEP,))


def _intent(row: tuple[Any, ...]) -> Intent:
    identity, key, target, data, value, label, state, nonce, note, *mined, ceiling, rollup_fee = row
    block_number, block_hash, tx_hash, gas_used, gas_price = mined
    return Intent(
        id=identity,
        key=key,
        call=Call(target, data, int(value), label),
        state=TxState(state),
        nonce=nonce,
        note=note,
        block_number=block_number,
        block_hash=block_hash,
        tx_hash=tx_hash,
        gas_used=gas_used,
        gas_price=gas_price,
        ceiling=ceiling,
        rollup_fee=int(rollup_fee),
    )


def mined_in(path: Path) -> set[bytes]:
    """Return the hashes of what a journal says was mined, reverted or not, beside a process that holds it.

    Of a file that is not there, or cannot be read, it is nothing: what it lacks, the nonce tells.
    """
    if not path.is_file():
        return set()
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as db:
            return {bytes(found) for (found,) in db.execute("SELECT tx_hash FROM intents WHERE tx_hash IS NOT NULL")}
    except sqlite3.Error:
        return set()
