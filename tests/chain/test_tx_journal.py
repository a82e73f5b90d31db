"""The journal keeps its promises: one live intent per key, one process per file, no nonce given twice."""

from __future__ import annotations

import lzma
import multiprocessing
import sqlite3
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from hearth.base.errors import ConfigError
from hearth.chain.port import Call, Receipt
from hearth.chain.rollup import MOST_KEPT_TIMES, MOST_TIMES
from hearth.chain.tx_journal import SCHEMA, SignedTx, TxJournal, TxState
from tests.kit.evm import ROOT

ADDRESS = "0x" + "ab" * 20
GENESIS = b"\x01" * 32
CALL = Call("0x" + "cd" * 20, b"\x01\x02", 5, "jobs.claim")
ATTEMPT = SignedTx(b"\x0a" * 32, b"raw", 60_000, 10**12, 10**9)


def open_journal(folder: Path, **changes: object) -> TxJournal:
    facts = {"chain_id": 1, "genesis_hash": GENESIS, "address": ADDRESS, **changes}
    return TxJournal(folder / "tx.db", **facts)  # type: ignore[arg-type]


def receipt(ok: bool = True, number: int = 7, tx_hash: bytes = ATTEMPT.hash) -> Receipt:
    return Receipt(tx_hash, number, b"\x0b" * 32, ok, 50_000, 3, ADDRESS, CALL.to, None, ())


def test_signed_here__transaction_of_this_journal__is_known_before_it_is_mined_and_when_reopened(
    tmp_path: Path,
) -> None:
    journal = open_journal(tmp_path)
    assert not journal.signed_here(ATTEMPT.hash)
    intent = journal.signed(journal.intend("k", CALL), 4, ATTEMPT)
    assert journal.signed_here(ATTEMPT.hash) and not journal.signed_here(b"\x0c" * 32)
    journal.mined(intent, receipt())
    journal.close()
    assert open_journal(tmp_path).signed_here(ATTEMPT.hash)


def test_journal__reopened__has_everything(tmp_path: Path) -> None:
    journal = open_journal(tmp_path)
    intent = journal.signed(journal.intend("k", CALL), 4, ATTEMPT)
    journal.broadcast(intent)
    journal.close()
    journal = open_journal(tmp_path)
    found = journal.find("k")
    assert found is not None
    assert (found.call, found.state, found.nonce) == (CALL, TxState.BROADCAST, 4)
    (attempt,) = journal.attempts(found)
    assert attempt == replace(ATTEMPT, at=attempt.at) and attempt.at > 0
    journal.close()


def test_journal__on_disk__is_full_sync_wal_and_private(tmp_path: Path) -> None:
    journal = open_journal(tmp_path)
    assert journal._db.execute("PRAGMA synchronous").fetchone() == (2,)
    assert journal._db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert (tmp_path / "tx.db").stat().st_mode & 0o077 == 0
    journal.close()


@pytest.mark.parametrize("state", [TxState.INTENT, TxState.SIGNED, TxState.BROADCAST, TxState.MINED, TxState.FINAL])
def test_intend__key_alive_or_done__is_refused(tmp_path: Path, state: TxState) -> None:
    journal = open_journal(tmp_path)
    intent = journal.intend("k", CALL)
    if state is not TxState.INTENT:
        intent = journal.signed(intent, 0, ATTEMPT)
    if state in (TxState.BROADCAST, TxState.MINED, TxState.FINAL):
        intent = journal.broadcast(intent)
    if state in (TxState.MINED, TxState.FINAL):
        intent = journal.mined(intent, receipt())
    if state is TxState.FINAL:
        intent = journal.final(intent)
    assert intent.state is state
    with pytest.raises(ValueError, match="alive or done"):
        journal.intend("k", CALL)
    journal.close()


def test_intend__after_a_failure__is_taken_and_found_first(tmp_path: Path) -> None:
    journal = open_journal(tmp_path)
    for end in (lambda i: journal.failed(i, "never"), lambda i: journal.replaced(i, "taken")):
        end(journal.intend("k", CALL))
        found = journal.find("k")
        assert found is not None and not found.state.live
    fresh = journal.intend("k", CALL)
    assert journal.find("k") == fresh
    journal.close()


def test_newest__several_of_a_prefix__the_last_that_is_alive_or_done(tmp_path: Path) -> None:
    journal = open_journal(tmp_path)
    assert journal.newest("send/a_/") is None
    for number, key in enumerate(("send/a_/0", "send/a_/1", "send/ab/0")):
        journal.signed(journal.intend(key, CALL), number, replace(ATTEMPT, hash=bytes([number]) * 32))
    found = journal.newest("send/a_/")
    assert found is not None and found.key == "send/a_/1"
    journal.failed(found, "never sent")
    found = journal.newest("send/a_/")
    assert found is not None and (found.key, found.note) == ("send/a_/0", "")
    journal.remark(found, "seen")
    journal.final(journal.mined(journal.current(found), receipt()))
    assert journal.newest("send/a_/") == journal.find("send/a_/0")
    journal.close()


def test_remark__final__keeps_it(tmp_path: Path) -> None:
    journal = open_journal(tmp_path)
    mined = journal.mined(journal.signed(journal.intend("k", CALL), 0, ATTEMPT), receipt())
    assert journal.final(journal.remark(mined, "seen")).note == "seen"
    journal.close()


def test_spent__yesterdays_gas_becomes_final_today__is_not_todays(tmp_path: Path) -> None:
    """Half an hour after it was mined a transaction is final: that moment is not when its gas was spent."""
    journal = open_journal(tmp_path)
    mined = journal.mined(journal.signed(journal.intend("k", CALL), 0, ATTEMPT), receipt())
    assert journal.spent() == 50_000 * 3
    journal._db.execute("UPDATE intents SET at = at - 86401")
    assert journal.spent() == 0
    journal.final(journal.remark(mined, "seen"))
    assert journal.spent() == 0
    journal.close()


@pytest.mark.parametrize(("ahead", "counts"), [(60, True), (30 * 86_400, False)])
def test_spent__clock_that_ran_ahead_is_set_right__todays_budget_is_free_again(
    ahead: int, counts: bool, tmp_path: Path
) -> None:
    journal = open_journal(tmp_path)
    journal.mined(journal.signed(journal.intend("k", CALL), 0, ATTEMPT), receipt())
    journal._db.execute("UPDATE intents SET at = at + ?", (ahead,))
    assert journal.spent() == (50_000 * 3 if counts else 0)
    journal.close()


def test_next_nonce__given_back_only_where_never_sent(tmp_path: Path) -> None:
    journal = open_journal(tmp_path)
    assert journal.next_nonce() == 0
    journal.failed(journal.signed(journal.intend("a", CALL), 3, ATTEMPT), "no funds")
    assert journal.next_nonce() == 0
    reverted = journal.signed(journal.intend("b", CALL), 3, replace(ATTEMPT, hash=b"\x0c" * 32))
    journal.mined(reverted, receipt(False, tx_hash=b"\x0c" * 32), "jobs: not open")
    assert journal.next_nonce() == 4
    journal.replaced(journal.signed(journal.intend("c", CALL), 4, replace(ATTEMPT, hash=b"\x0d" * 32)), "taken")
    assert journal.next_nonce() == 5
    journal.close()


def test_unmined__after_a_reorg__is_pending_again(tmp_path: Path) -> None:
    journal = open_journal(tmp_path)
    intent = journal.mined(journal.broadcast(journal.signed(journal.intend("k", CALL), 0, ATTEMPT)), receipt())
    assert (intent.state, intent.block_number, intent.gas_used) == (TxState.MINED, 7, 50_000)
    intent = journal.unmined(intent)
    assert (intent.state, intent.block_number, intent.tx_hash) == (TxState.BROADCAST, None, None)
    journal.close()


@pytest.mark.parametrize("change", [{"chain_id": 2}, {"genesis_hash": b"\x02" * 32}, {"address": "0x" + "ee" * 20}])
def test_journal__of_another_chain_or_key__is_refused(tmp_path: Path, change: dict[str, object]) -> None:
    open_journal(tmp_path).close()
    with pytest.raises(ConfigError) as caught:
        open_journal(tmp_path, **change)
    assert caught.value.code == "WRONG_JOURNAL"
    open_journal(tmp_path).close()


def test_path_in__another_genesis__is_another_file(tmp_path: Path) -> None:
    paths = {
        TxJournal.path_in(tmp_path, 1, GENESIS, ADDRESS),
        TxJournal.path_in(tmp_path, 2, GENESIS, ADDRESS),
        TxJournal.path_in(tmp_path, 1, b"\x02" * 32, ADDRESS),
        TxJournal.path_in(tmp_path, 1, GENESIS, "0x" + "ee" * 20),
    }
    assert len(paths) == 4


def test_journal__damaged_file__is_a_named_error(tmp_path: Path) -> None:
    (tmp_path / "tx.db").write_bytes(b"not a database" * 100)
    with pytest.raises(ConfigError) as caught:
        open_journal(tmp_path)
    assert caught.value.code == "BAD_JOURNAL"


def _try_to_open(folder: Path, answer: multiprocessing.Queue) -> None:  # type: ignore[type-arg]
    try:
        open_journal(folder).close()
        answer.put("opened")
    except ConfigError as error:
        answer.put(error.code)


def test_journal__a_second_process__is_refused_until_the_first_ends(tmp_path: Path) -> None:
    journal = open_journal(tmp_path)
    context = multiprocessing.get_context("fork")
    answers: multiprocessing.Queue[str] = context.Queue()
    for expected in ("KEY_IN_USE", "opened"):
        process = context.Process(target=_try_to_open, args=(tmp_path, answers))
        process.start()
        assert answers.get(timeout=20) == expected
        process.join(20)
        if expected == "KEY_IN_USE":
            journal.close()


def test_journal__many_threads__lose_nothing(tmp_path: Path) -> None:
    journal = open_journal(tmp_path)

    def work(worker: int) -> None:
        for i in range(20):
            key = f"{worker}/{i}"
            journal.signed(journal.intend(key, CALL), worker * 20 + i, replace(ATTEMPT, hash=key.encode().ljust(32)))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [i.nonce for i in journal.intents(TxState.SIGNED)] == list(range(80))
    journal.close()


def test_journal__a_failed_transition__changes_nothing(tmp_path: Path) -> None:
    journal = open_journal(tmp_path)
    intent = journal.intend("k", CALL)
    with pytest.raises(sqlite3.IntegrityError):
        journal.signed(intent, 1, replace(ATTEMPT, raw=None))  # type: ignore[arg-type]
    assert journal.find("k") == intent
    journal.close()


def test_prune__old_and_finished__is_forgotten(tmp_path: Path) -> None:
    journal = open_journal(tmp_path)
    journal.failed(journal.intend("old", CALL), "x")
    journal.signed(journal.intend("live", CALL), 1, ATTEMPT)
    journal._db.execute("UPDATE intents SET at = 0")
    journal.close()
    journal = open_journal(tmp_path)
    assert journal.find("old") is None and journal.find("live") is not None
    journal.close()


# ---- what was spent ----


@pytest.mark.parametrize(
    ("kept", "told", "taken"),
    [
        (0, None, 0),
        (0, 6, 6),
        (0, 10**30, MOST_TIMES * 150_000),
        (9, None, 9),
        (9, 6, 6),
        (9, 10**30, MOST_KEPT_TIMES * 9),
    ],
)
def test_mined__receipt_tells_a_rollup_fee_beyond_reason__the_most_within_it_counts(
    tmp_path: Path, kept: int, told: int | None, taken: int
) -> None:
    journal = open_journal(tmp_path)
    intent = journal.signed(journal.intend("a", CALL), 1, replace(ATTEMPT, rollup_fee=kept))
    found = journal.mined(intent, replace(receipt(tx_hash=ATTEMPT.hash), gas_used=50_000, rollup_fee=told))
    assert found.rollup_fee == journal.rollup_fee() == taken and journal.spent() == 150_000 + taken
    journal.close()


def test_mined__receipt_says_no_gas_and_no_rollup_fee__costs_what_was_kept(tmp_path: Path) -> None:
    journal = open_journal(tmp_path)
    attempt = replace(ATTEMPT, rollup_fee=10**20)
    for key, gas, beside in (("a", 0, None), ("b", 50_000, 7)):
        one = replace(attempt, hash=key.encode() * 32)
        intent = journal.signed(journal.intend(key, CALL), ord(key), one)
        told = replace(receipt(tx_hash=one.hash), gas_used=gas, rollup_fee=beside)
        assert journal.mined(intent, told).fee == (60_000 * 3 + 10**20 if beside is None else 50_000 * 3 + 7)
    assert journal.spent() == 60_000 * 3 + 10**20 + 50_000 * 3 + 7 and journal.rollup_fee() == 10**20
    journal.close()


def test_spent__given_up_for_a_nonce_that_nobody_is_known_to_have_used__counts_until_that_is_known(
    tmp_path: Path,
) -> None:
    journal = open_journal(tmp_path)
    intent = journal.signed(journal.intend("k", CALL), 4, ATTEMPT)
    journal.replaced(intent, "another transaction used its nonce")
    assert journal.spent() == ATTEMPT.gas * ATTEMPT.max_fee
    other = journal.signed(journal.intend("other", CALL), 4, replace(ATTEMPT, hash=b"\x0c" * 32))
    journal.mined(other, receipt(tx_hash=b"\x0c" * 32))
    assert journal.spent() == 50_000 * 3
    journal.close()


# ---- files of other versions ----


@pytest.fixture(params=range(SCHEMA.version))
def old_journal(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A journal of each version before, with one mined, one failed and two waiting intents, one of them replaced.

    hearth 0.1.0 wrote the first; the others are it, brought up to their version.
    """
    path = tmp_path / "tx.db"
    path.write_bytes(lzma.decompress((ROOT / "tests" / "data" / "tx-journal-0.1.0.db.xz").read_bytes()))
    with sqlite3.connect(path) as db:
        for statement in ";".join(SCHEMA.steps[: request.param]).split(";"):
            db.execute(statement)
        db.execute(f"PRAGMA user_version={request.param}")
    return path


OLD = {
    "chain_id": 31337,
    "genesis_hash": bytes.fromhex("65bd8a2c1c054611598fcb8f9851a56d59846d377302c6b78a5f2b06c56e3703"),
    "address": "0x19e7e376e7c213b7e7e7e46cc70a5dd086daff2a",
}


def test_journal__file_of_the_version_before__keeps_every_intent_and_takes_new_ones(old_journal: Path) -> None:
    for _ in range(2):
        journal = TxJournal(old_journal, **OLD)  # type: ignore[arg-type]
        found = {one.key: (one.state, one.nonce, one.ceiling) for one in journal.intents(*TxState)}
        assert found == {
            "never": (TxState.FAILED, None, None),
            "mined": (TxState.MINED, 0, None),
            "waiting": (TxState.BROADCAST, 1, None),
            "beat/1/0": (TxState.BROADCAST, 2, None),
        }
        waits = [len(journal.attempts(one)) for one in journal.intents(TxState.BROADCAST)]
        assert waits == [1, 2] and journal.next_nonce() == 3
        journal.close()
    journal = TxJournal(old_journal, **OLD)  # type: ignore[arg-type]
    assert journal.intend("new", CALL, ceiling=5).ceiling == 5
    journal.close()


def test_journal__file_of_the_version_before__has_the_tables_of_a_new_one(tmp_path: Path, old_journal: Path) -> None:
    new, old = open_journal(tmp_path / "new"), TxJournal(old_journal, **OLD)  # type: ignore[arg-type]
    for table in ("meta", "intents", "attempts"):
        for look in ("table_info", "index_list", "foreign_key_list"):
            assert old._read(f"PRAGMA {look}({table})") == new._read(f"PRAGMA {look}({table})")
    assert old._read("PRAGMA user_version") == [(SCHEMA.version,)]
    new.close()
    old.close()


def test_journal__killed_while_it_is_brought_up_to_date__is_as_it_was(old_journal: Path) -> None:
    """All of it is one transaction: the version and the column come together."""
    db = sqlite3.connect(old_journal, isolation_level=None)
    (version,) = db.execute("PRAGMA user_version").fetchone()
    columns = db.execute("PRAGMA table_info(intents)").fetchall()
    db.execute("CREATE TRIGGER full BEFORE INSERT ON meta BEGIN SELECT RAISE(ABORT, 'no more'); END")
    with pytest.raises(ConfigError, match="damaged"):
        TxJournal(old_journal, **OLD)  # type: ignore[arg-type]
    assert db.execute("PRAGMA user_version").fetchone() == (version,)
    assert db.execute("PRAGMA table_info(intents)").fetchall() == columns
    db.execute("DROP TRIGGER full")
    db.close()
    TxJournal(old_journal, **OLD).close()  # type: ignore[arg-type]


def test_journal__file_of_a_newer_version__is_refused_and_left_alone(old_journal: Path) -> None:
    with sqlite3.connect(old_journal) as db:
        db.execute(f"PRAGMA user_version={SCHEMA.version + 1}")
    before = old_journal.read_bytes()
    for _ in range(2):
        with pytest.raises(ConfigError, match="newer version") as caught:
            TxJournal(old_journal, **OLD)  # type: ignore[arg-type]
        assert caught.value.code == "WRONG_JOURNAL" and "hearth_market" in caught.value.hint
    assert old_journal.read_bytes()[100:] == before[100:]
