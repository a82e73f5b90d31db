"""Both journals of a worker on a disk that is full to its last byte."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hearth.base.errors import StorageError
from hearth.base.files import Spare, free_bytes
from hearth.chain.port import Call
from hearth.chain.tx_journal import SignedTx, TxJournal, TxState
from hearth.protocol.types import JobId
from tests.kit.disks import MIB, fill, small_disk
from worker.decide import LeaseKey
from worker.journal import AttemptJournal, Moment, Phase

KEY = LeaseKey(JobId(b"\xaa" * 32), 5, 2)
FACTS = {"chain_id": 1, "genesis_hash": b"\x01" * 32, "address": "0x" + "11" * 20}
CALL = Call(to="0x" + "22" * 20, data=b"\x01" * 400, label="nodes.beat")
SPARE = 2 * MIB


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 8 MiB."""
    with small_disk(tmp_path / "disk", 8 * MIB) as path:
        yield path


def signed(number: int) -> SignedTx:
    return SignedTx(number.to_bytes(32, "big"), b"\x02" * 600, 21_000, 1, 1)


def test_write__disk_full_to_the_last_byte__goes_on_in_the_spares_room(disk: Path) -> None:
    """What a cheat gains: nothing. Whoever fills a node's disk does not keep it from beating and submitting."""
    spare = Spare(disk / "spare", SPARE)
    assert spare.hold()
    attempts, sends = AttemptJournal(disk / "work.db", spare), TxJournal(disk / "tx.db", **FACTS, spare=spare)  # type: ignore[arg-type]
    fill(disk / "ballast")
    assert free_bytes(disk) == 0
    for number in range(20):
        attempts.start(KEY, number)
        attempts.reach(KEY, Moment.RESULT)
        intent = sends.signed(sends.intend(f"beat/{number}", CALL), number, signed(number))
        assert sends.broadcast(intent).state is TxState.BROADCAST
    assert not spare.path.exists()
    entry = attempts.entry(KEY)
    assert entry is not None and (entry.phase, entry.tries) == (Phase.WORKING, 19)
    assert len(sends.intents(TxState.BROADCAST)) == 20


def test_open__disk_full_to_the_last_byte__begins_in_the_spares_room(disk: Path) -> None:
    spare = Spare(disk / "spare", SPARE)
    AttemptJournal(disk / "work.db").close()
    TxJournal(disk / "tx.db", **FACTS).close()  # type: ignore[arg-type]
    spare.hold()
    fill(disk / "ballast")
    journal = TxJournal(disk / "tx.db", **FACTS, spare=spare)  # type: ignore[arg-type]
    journal.intend("beat/1", CALL)
    AttemptJournal(disk / "work.db", spare).start(KEY, 1)


def test_write__no_spare__is_refused_by_name_and_helped_by_room(disk: Path) -> None:
    attempts, sends = AttemptJournal(disk / "work.db"), TxJournal(disk / "tx.db", **FACTS)  # type: ignore[arg-type]
    fill(disk / "ballast")
    with pytest.raises(StorageError) as first:
        for number in range(5_000):
            attempts.start(LeaseKey(KEY.job, number, 1), 1)
    with pytest.raises(StorageError) as second:
        for number in range(5_000):
            sends.intend(f"beat/{number}", CALL)
    for caught in (first, second):
        assert (caught.value.code, caught.value.retryable, caught.value.exit_code) == ("JOURNAL", True, 9)
    rows, intents = len(attempts.entries()), len(sends.intents(TxState.INTENT))
    (disk / "ballast").unlink()
    attempts.start(LeaseKey(KEY.job, 9_999, 1), 1)
    sends.intend("beat/9999", CALL)
    # What was refused is not there by half either.
    assert (len(attempts.entries()), len(sends.intents(TxState.INTENT))) == (rows + 1, intents + 1)


def test_open__no_spare__is_refused_by_name(disk: Path) -> None:
    AttemptJournal(disk / "work.db").close()
    TxJournal(disk / "tx.db", **FACTS).close()  # type: ignore[arg-type]
    fill(disk / "ballast")
    for opened in (lambda: AttemptJournal(disk / "work.db"), lambda: TxJournal(disk / "tx.db", **FACTS)):  # type: ignore[arg-type]
        with pytest.raises(StorageError) as caught:
            opened()
        assert (caught.value.code, caught.value.retryable) == ("JOURNAL", True)
    # The refused one gave its lease back.
    (disk / "ballast").unlink()
    TxJournal(disk / "tx.db", **FACTS).close()  # type: ignore[arg-type]


def test_spare__given_up__is_made_again_once_there_is_room(disk: Path) -> None:
    spare = Spare(disk / "spare", SPARE)
    assert spare.hold() and spare.hold()
    assert spare.path.stat().st_blocks * 512 == SPARE
    assert spare.give_up() and not spare.give_up()
    fill(disk / "ballast")
    assert not spare.hold()
    assert {path.name for path in disk.iterdir()} == {"ballast"}
    (disk / "ballast").unlink()
    assert spare.hold()
