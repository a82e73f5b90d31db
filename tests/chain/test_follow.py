"""The cursor over the scripted chain: whatever the chain and its provider do, the derived rows equal the chain's."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from eth_account import Account
from eth_utils.address import to_checksum_address
from eth_utils.crypto import keccak

from hearth.base.errors import ChainError
from hearth.chain.follow import AUDIT, LAG_SECONDS, Cursor, Tick, witnessed
from hearth.chain.port import Block, Log
from tests.kit.fake_chain import Effect, Event, FakeChain, Fault, bloom_of

ACCOUNT = Account.from_key(b"\x11" * 32)
ADDRESS = "0x" + "ab" * 20
OTHER = "0x" + "cd" * 20
TOPIC, SECOND = keccak(b"Posted()"), keccak(b"Settled()")


def event(n: int, address: str = ADDRESS, topic: bytes = TOPIC) -> Event:
    return Event(address, (topic,), n.to_bytes(32, "big"))


class Reader:
    """A consumer as a daemon is one: rows by block hash, orphaned with their block."""

    def __init__(self, chain: FakeChain, path: Path | None = None, **options: Any) -> None:
        self.chain = chain
        self.path = path
        self.options = options
        self.rows: dict[tuple[bytes, int], int] = {}
        self.handled = 0
        self.cursor = self.open()

    def open(self) -> Cursor:
        return Cursor(self.chain, [ADDRESS], 0, self.path, topics=(TOPIC, SECOND), **self.options)

    def apply(self, tick: Tick) -> None:
        if tick.reset:
            self.rows.clear()
        for mark in tick.orphaned:
            for key in [k for k in self.rows if k[0] == mark.hash]:
                del self.rows[key]
        for log in tick.logs:
            key = (log.block_hash, log.log_index)
            if key not in self.rows:
                self.handled += 1
            self.rows[key] = int.from_bytes(log.data, "big")

    def run(self) -> None:
        """Read until caught up."""
        for _ in range(500):
            tick = self.cursor.read()
            self.apply(tick)
            self.cursor.advance(tick)
            if tick.behind == 0:
                return
        raise AssertionError("never caught up")

    def expected(self) -> dict[tuple[bytes, int], int]:
        return {
            (log.block_hash, log.log_index): int.from_bytes(log.data, "big")
            for mined in self.chain._blocks
            for log in mined.logs
            if log.address == ADDRESS
        }


def caught_up(blocks: int, **options: Any) -> tuple[FakeChain, Reader]:
    """Return a chain with one event in each of so many blocks, and a reader that has read them all."""
    chain = FakeChain()
    for n in range(blocks):
        chain.mine([event(n)])
    reader = Reader(chain, **options)
    reader.run()
    return chain, reader


def test_read__a_long_chain__catches_up_in_ranges_then_by_hash() -> None:
    chain = FakeChain()
    for n in range(300):
        chain.mine([event(n), event(n, OTHER)] if n % 3 == 0 else [])
    reader = Reader(chain, depth=16, span=50)
    reader.run()
    assert reader.rows == reader.expected() and len(reader.rows) == 100
    assert reader.cursor.position == 300
    assert chain.counts["logs"] < 6 + 17, "ranges far from the head, and no request where the bloom says nothing"


def test_read__far_behind__asks_for_no_more_blocks_at_once_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    chain = FakeChain()
    chain.mine(count=130)
    real, asked = chain.logs, list[tuple[int, int]]()

    def logs(addresses: Sequence[str], topics: Sequence[bytes] = (), **where: Any) -> list[Log]:
        if "to_block" in where:
            asked.append((where["from_block"], where["to_block"]))
        return real(addresses, topics, **where)  # type: ignore[arg-type]

    monkeypatch.setattr(chain, "logs", logs)
    Reader(chain, depth=16, span=50).run()
    assert asked[:3] == [(0, 49), (50, 99), (100, 114)]


def test_read__blocks_of_others_before_blooms_are_known__keep_nobody_waiting() -> None:
    """A block is asked for while no bloom is believed; that it holds no log of ours is what its bloom says."""
    chain = FakeChain()
    for n in range(5):
        chain.mine([event(n, OTHER)])
    cursor = Cursor(chain, [ADDRESS], 0, topics=(TOPIC, SECOND))
    assert cursor.read().behind == 0 and cursor.suspicions == 0


def test_read__without_advance__repeats_itself() -> None:
    chain = FakeChain()
    chain.mine([event(1)])
    cursor = Reader(chain).cursor
    assert cursor.read() == cursor.read()


def test_read__ranges_shown_and_never_advanced__are_asked_for_no_more(tmp_path: Path) -> None:
    chain = FakeChain()
    chain.mine([event(1)], count=40)
    reader = Reader(chain, tmp_path / "cursor.db", depth=8)
    for _ in range(5):
        reader.cursor.read()
        chain.mine()
    reader.run()
    before = chain.counts["block"]
    reader.run()
    assert chain.counts["block"] == before and reader.rows == reader.expected()


def test_read__first_block_of_the_market__starts_there() -> None:
    chain = FakeChain()
    for n in range(10):
        chain.mine([event(n)])
    cursor = Cursor(chain, [ADDRESS], 8, topics=(TOPIC,))
    assert cursor.position == 7
    tick = cursor.read()
    assert [int.from_bytes(log.data, "big") for log in tick.logs] == [7, 8, 9] and tick.reset
    cursor.advance(tick)
    assert cursor.position == 10


@pytest.mark.parametrize("start", [1, 8])
def test_read__chain_is_shorter_than_where_the_market_begins__shows_nothing_yet(start: int) -> None:
    chain = FakeChain()
    cursor = Cursor(chain, [ADDRESS], start, topics=(TOPIC,))
    tick = cursor.read()
    assert (tick.logs, tick.marks, tick.orphaned, tick.behind) == ((), (), (), 0)
    cursor.advance(tick)
    assert cursor.position == start - 1


@pytest.mark.parametrize("depth", [*range(1, 9), 16, 33, 63, 64])
def test_read__reorg_of_any_depth__loses_and_doubles_nothing(depth: int) -> None:
    chain, reader = caught_up(80)
    chain.reorg(depth, remine=[[event(1000 + n)] if n % 2 else [] for n in range(depth + 1)])
    tick = reader.cursor.read()
    gone = tick.orphaned
    assert not tick.reset, "what the ring holds below them stands"
    assert [mark.number for mark in gone] == list(range(80, 80 - depth, -1)), "each once, the newest first"
    reader.run()
    assert reader.rows == reader.expected()


def test_read__reorg_to_a_shorter_chain__orphans_the_rest() -> None:
    chain, reader = caught_up(20)
    chain.reorg(5, remine=[[], [event(7)]])
    reader.run()
    assert reader.rows == reader.expected() and reader.cursor.position == 17


def test_read__reorg_deeper_than_the_ring__starts_over() -> None:
    chain, reader = caught_up(60, depth=8)
    chain.reorg(50, remine=[[event(n)] for n in range(52)])
    reader.run()
    assert reader.rows == reader.expected()


def test_read__reorg_while_stepping__stops_at_the_broken_link() -> None:
    chain = FakeChain()
    for n in range(10):
        chain.mine([event(n)])
    reader = Reader(chain)
    head = chain.head()
    chain.reorg(4, remine=[[event(100 + n)] for n in range(5)])

    def old_head() -> Block:
        return head

    chain.head = old_head  # type: ignore[method-assign]
    tick = reader.cursor.read()
    assert [m.number for m in tick.marks] == list(range(10)), "block 10 of the old chain does not link to the new 9"
    reader.apply(tick)
    reader.cursor.advance(tick)
    del chain.head  # type: ignore[method-assign]
    reader.run()
    assert reader.rows == reader.expected()


@pytest.mark.parametrize("changed", ["end", "base", "log"])
def test_read__reorg_below_its_depth_while_a_range_is_read__is_an_error_and_nothing_of_it_is_shown(
    changed: str,
) -> None:
    """A range is known by both its ends: its logs count only where these stood before and after."""
    chain, reader = caught_up(10, depth=4)
    for n in range(10, 60):
        chain.mine([event(n)])
    real, block, depth = chain.logs, chain.block, {"end": 20, "base": 52, "log": 20}[changed]
    before = chain.block(56)

    def logs(*asked: Any, **where: Any) -> list[Log]:
        if where.get("to_block") == 56:
            chain.reorg(depth, remine=[[event(100 + n)] if changed != "end" else [] for n in range(depth)])
        return real(*asked, **where)

    def keeps(at: Any) -> Block | None:
        return before if at == 56 else block(at)

    chain.logs = logs  # type: ignore[method-assign]
    if changed == "log":
        chain.block = keeps  # type: ignore[method-assign]
    with pytest.raises(ChainError, match="deeper than expected") as caught:
        reader.cursor.read()
    assert caught.value.code == "REORG" and caught.value.retryable
    chain.logs, chain.block = real, block  # type: ignore[method-assign]
    reader.run()
    assert reader.rows == reader.expected()


def test_read__reorg_before_the_end_of_a_range_is_asked_for__is_an_error_since_its_base_is_gone() -> None:
    """Both looks at the range's end see the new chain: only the block below the range tells of the old one."""
    chain = FakeChain()
    for n in range(120):
        chain.mine([event(n)])
    reader = Reader(chain, depth=4, span=50)
    real, was = chain.block, chain.block(99)

    def block(at: Any) -> Block | None:
        if at == 99 and real(99) == was:
            chain.reorg(100, remine=[[event(1000 + n)] for n in range(101)])
        return real(at)

    chain.block = block  # type: ignore[method-assign]
    with pytest.raises(ChainError, match="deeper than expected") as caught:
        reader.run()
    assert caught.value.code == "REORG" and reader.cursor.position == 49
    reader.run()
    assert reader.rows == reader.expected()


def test_read__provider_lacks_the_last_block_of_a_range__lags() -> None:
    chain = FakeChain()
    chain.mine([event(1)], count=40)
    reader = Reader(chain, depth=8)
    with pytest.MonkeyPatch.context() as late, pytest.raises(ChainError, match="lacks block 32") as caught:
        late.setattr(chain, "block", lambda at: None)
        reader.cursor.read()
    assert caught.value.code == "RPC_LAGS" and caught.value.retryable
    reader.run()
    assert reader.rows == reader.expected()


def test_read__range_was_shown_and_its_end_leaves_the_chain__all_is_read_anew() -> None:
    """Only its last block is known by its hash: which of its logs still stand is not."""
    chain, reader = caught_up(10, depth=4)
    for n in range(10, 60):
        chain.mine([event(n)])
    shown = reader.cursor.read()
    reader.apply(shown)
    assert not shown.reset and len(shown.marks) == 1
    chain.reorg(40, remine=[[event(100 + n)] for n in range(41)])
    assert reader.cursor.read().reset
    reader.run()
    assert reader.rows == reader.expected()


def test_read__block_was_shown_after_one_that_was_too_and_leaves_the_chain__only_it_is_undone() -> None:
    chain = FakeChain()
    chain.mine([event(0)])
    reader = Reader(chain)
    reader.run()
    chain.mine([event(1)])
    chain.mine([event(2)])
    reader.apply(reader.cursor.read())
    chain.reorg(1, remine=[[event(3)]])
    tick = reader.cursor.read()
    assert not tick.reset and [mark.number for mark in tick.orphaned] == [3]
    reader.run()
    assert reader.rows == reader.expected()


def test_read__first_block_was_shown_then_held_back_and_leaves_the_chain__is_still_told_as_orphaned() -> None:
    """A tick without it was handled meanwhile: what somebody may have acted on is not forgotten by that."""
    chain = FakeChain()
    chain.mine([event(1)])
    reader = Reader(chain)
    reader.cursor = Cursor(chain, [ADDRESS], 1, topics=(TOPIC, SECOND))
    shown = reader.cursor.read()
    reader.apply(shown)
    with pytest.MonkeyPatch.context() as late:
        late.setattr(chain, "logs", lambda *_, **__: [])
        tick = reader.cursor.read()
    assert shown.marks and not tick.marks and tick.behind == 1
    reader.cursor.advance(tick)
    chain.reorg(1, remine=[[event(2)]])
    assert reader.cursor.read().orphaned == shown.marks


def test_read__provider_falls_behind__waits_and_keeps_its_place() -> None:
    chain, reader = caught_up(10)
    before = dict(reader.rows)
    hidden = [chain._blocks.pop() for _ in range(3)]
    with pytest.raises(ChainError) as caught:
        reader.cursor.read()
    assert caught.value.code == "RPC_LAGS" and caught.value.retryable
    chain._blocks.extend(reversed(hidden))
    chain.mine([event(10)])
    reader.run()
    assert reader.rows == reader.expected() and before.items() <= reader.rows.items()


def test_cursor__reopened__goes_on_where_it_was(tmp_path: Path) -> None:
    chain = FakeChain()
    for n in range(30):
        chain.mine([event(n)])
    reader = Reader(chain, tmp_path / "cursor.db")
    reader.run()
    reader.cursor.close()
    chain.mine([event(99)])
    reader.cursor = reader.open()
    tick = reader.cursor.read()
    assert not tick.reset and [int.from_bytes(log.data, "big") for log in tick.logs] == [99]


def test_cursor__closed__leaves_one_file_in_a_folder_that_it_made(tmp_path: Path) -> None:
    chain = FakeChain()
    chain.mine([event(1)])
    path = tmp_path / "state" / "of a worker" / "cursor.db"
    reader = Reader(chain, path)
    reader.run()
    reader.cursor.close()
    assert list(path.parent.iterdir()) == [path], "what is written ahead has gone into it"


def test_read__nothing_new_to_show__does_not_wait_for_whoever_writes_to_the_file(tmp_path: Path) -> None:
    chain = FakeChain()
    chain.mine([event(1)])
    reader = Reader(chain, tmp_path / "cursor.db")
    shown = reader.cursor.read()
    other = sqlite3.connect(tmp_path / "cursor.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert reader.cursor.read() == shown
    other.close()
    reader.cursor.close()


def test_cursor__crash_between_read_and_advance__shows_the_logs_again(tmp_path: Path) -> None:
    chain = FakeChain()
    chain.mine([event(1)])
    reader = Reader(chain, tmp_path / "cursor.db")
    reader.run()
    chain.mine([event(2)])
    shown = reader.cursor.read().logs
    reader.cursor.close()
    assert reader.open().read().logs == shown != ()


def test_read__shown_block_lies_above_the_head_of_a_node_that_crashed__is_orphaned() -> None:
    """It serves the block by number still; it is no part of its chain."""
    chain = FakeChain()
    chain.mine([event(1)])
    reader = Reader(chain)
    reader.run()
    chain.mine([event(2)])
    (shown,) = reader.cursor.read().marks
    dead = chain.block(shown.number)
    chain.reorg(1, remine=[])
    alive = chain.block
    chain.block = lambda at: dead if at == shown.number else alive(at)  # type: ignore[method-assign, assignment]
    assert chain.head().number < shown.number and shown in reader.cursor.read().orphaned


def test_cursor__damaged_file__starts_over(tmp_path: Path) -> None:
    chain = FakeChain()
    for n in range(5):
        chain.mine([event(n)])
    path = tmp_path / "cursor.db"
    path.write_bytes(b"\0not sqlite" * 500)
    reader = Reader(chain, path)
    reader.run()
    assert reader.rows == reader.expected()


def test_cursor__of_another_chain_or_market__starts_over(tmp_path: Path) -> None:
    chain = FakeChain()
    for n in range(5):
        chain.mine([event(n)])
    path = tmp_path / "cursor.db"
    reader = Reader(chain, path)
    reader.run()
    chain.mine([event(5)])
    reader.cursor.read()
    reader.cursor.close()
    for other, addresses in ((FakeChain(chain_id=5), [ADDRESS]), (chain, [OTHER])):
        other.mine()
        cursor = Cursor(other, addresses, 0, path, topics=(TOPIC,))
        assert cursor.read().reset and cursor.position == -1
        cursor.close()
        again = Cursor(other, addresses, 0, path, topics=(TOPIC,))
        fresh = Cursor(other, addresses, 0, topics=(TOPIC,))
        assert again.read() == fresh.read(), "nothing of the one before is left in the file"
        again.close()


def hide(chain: FakeChain, missing: Sequence[int], times: int) -> None:
    """Let the provider leave out some events from the logs of a block, for a number of requests."""
    real, left = chain.logs, [times]

    def logs(addresses: Sequence[str], topics: Sequence[bytes] = (), **where: int) -> list[Log]:
        found = real(addresses, topics, **where)  # type: ignore[arg-type]
        if any(int.from_bytes(log.data, "big") in missing for log in found) and left[0] > 0:
            left[0] -= 1
            return [log for log in found if int.from_bytes(log.data, "big") not in missing]
        return found

    chain.logs = logs  # type: ignore[method-assign,assignment]


def test_read__provider_leaves_out_a_log__the_bloom_tells_and_it_is_read_again() -> None:
    chain = FakeChain()
    chain.mine([event(1)])
    chain.mine([event(2), event(3, topic=SECOND)])
    chain.mine()
    hide(chain, [1], times=2)
    hide(chain, [3], times=2)
    reader = Reader(chain)
    first = reader.cursor.read()
    assert first.logs == () and first.behind == 3
    reader.run()
    assert reader.rows == reader.expected() and reader.cursor.suspicions == 4


def test_read__bloom_wrong_by_chance__is_believed_after_three_reads() -> None:
    chain = FakeChain()
    chain.mine([event(1)])
    hide(chain, [1], times=100)
    reader = Reader(chain)
    for _ in range(3):
        tick = reader.cursor.read()
    assert tick.behind == 0 and tick.logs == ()


def crowd(rng: random.Random, count: int = 115) -> list[Event]:
    """Return others' events, as many as make a bloom say what is not so most often."""
    return [Event("0x" + rng.randbytes(20).hex(), (rng.randbytes(32), rng.randbytes(32)), b"") for _ in range(count)]


def test_read__busy_chain__a_bloom_that_is_wrong_by_chance_holds_nothing_up() -> None:
    rng, chain = random.Random(1), FakeChain()
    for _ in range(20):
        chain.mine(crowd(rng))
    chain.mine([event(1), *crowd(rng)])
    topics = (TOPIC, SECOND, *(rng.randbytes(32) for _ in range(10)))
    cursor = Cursor(chain, [ADDRESS, OTHER, "0x" + "ef" * 20], 0, topics=topics)
    tick = cursor.read()
    assert [log.data for log in tick.logs] == [event(1).data] and tick.behind == 0
    assert cursor.suspicions >= 2


def test_read__busy_chain_and_a_log_left_out_once__is_asked_for_again_at_once() -> None:
    rng, chain = random.Random(2), FakeChain()
    chain.mine([event(1), *crowd(rng)])
    hide(chain, [1], times=1)
    reader = Reader(chain)
    reader.run()
    assert reader.rows == reader.expected() and len(reader.rows) == 1


class Doubted(FakeChain):
    """A chain of which one provider of several announces, in each block, a log of ours that is not there."""

    def _make_block(self, number: int, parent: bytes, timestamp: int, events: Sequence[Event] = ()) -> Block:
        made = super()._make_block(number, parent, timestamp, events)
        return made.announcing([made, made, replace(made, bloom=bloom_of([event(0), event(0, topic=SECOND)]))])


def test_read__one_of_three_announces_a_log_in_each_block__holds_nothing_up_and_hides_none() -> None:
    """Each block was waited for, and every cursor fell further behind for good."""
    chain = Doubted()
    reader = Reader(chain, blooms=True)
    for _ in range(6):
        chain.mine()
        tick = reader.cursor.read()
        reader.cursor.advance(tick)
        assert tick.behind == 0
    chain.mine([event(1)])
    hide(chain, [1], times=1)
    reader.run()
    assert reader.rows == reader.expected() and len(reader.rows) == 1, "it is asked for again at once"


def forged() -> Event:
    """Return a stranger's log that makes a bloom announce our contract: such topics take a second to find."""
    wanted, topics, number = bloom_bits(ADDRESS), [TOPIC], 0
    while wanted:
        topic = number.to_bytes(32, "big")
        if wanted & bloom_bits(topic.hex()):
            topics.append(topic)
            wanted &= ~bloom_bits(topic.hex())
        number += 1
    return Event(OTHER, tuple(topics), b"")


def bloom_bits(item: str) -> int:
    return int.from_bytes(bloom_of([Event("0x" + item.removeprefix("0x"), (), b"")]), "big")


def test_read__a_strangers_logs_announce_ours_in_each_block__hold_nothing_up_and_hide_none() -> None:
    """One transaction a block kept every cursor 64 blocks behind, and no keeper caught up again."""
    chain = FakeChain()
    reader = Reader(chain, blooms=True)
    behind = []
    for _ in range(40):
        chain.mine([forged()])
        tick = reader.cursor.read()
        reader.cursor.advance(tick)
        behind.append(tick.behind)
    assert max(behind) <= 5 and behind[10:] == [0] * 30
    chain.mine([event(1), forged()])
    hide(chain, [1], times=2)
    for _ in range(AUDIT + 1):
        chain.mine([forged()])
        reader.run()
    assert reader.rows == reader.expected() and len(reader.rows) == 1, "it is asked for again once it is late"


def crowded(reader: Reader) -> Reader:
    """Let strangers' logs have been waited for in vain, so that nobody waits for what a bloom announces."""
    for _ in range(4):
        reader.chain.mine([forged()])
        for _ in range(4):
            tick = reader.cursor.read()
            reader.apply(tick)
            reader.cursor.advance(tick)
    return reader


@pytest.mark.parametrize("restarted", [False, True])
def test_read__one_of_a_blocks_logs_comes_late__is_read_then_and_blooms_are_still_believed(
    tmp_path: Path, restarted: bool
) -> None:
    """What was believed against its bloom is asked for again, not only blocks without any log; the bloom was right."""
    reader = crowded(Reader(FakeChain(), tmp_path / "cursor.db", blooms=True))
    reader.chain.mine([event(1), event(2, topic=SECOND)])
    hide(reader.chain, [2], times=2)
    reader.run()
    if restarted:
        reader.cursor.close()
        reader.cursor = reader.open()
    for _ in range(AUDIT + 1):
        reader.chain.mine([forged()])
        reader.run()
    assert reader.rows == reader.expected() and len(reader.rows) == 2
    assert reader.cursor.blooms is True


def test_read__audit_at_a_provider_that_is_behind__forgets_nothing_above_its_head(monkeypatch: Any) -> None:
    reader = crowded(Reader(FakeChain(), blooms=True))
    while len(reader.cursor._passed) < AUDIT - 1:
        reader.chain.mine([forged()])
        reader.run()
    reader.chain.mine([event(1), forged()])
    hide(reader.chain, [1], times=2)
    reader.run()
    with monkeypatch.context() as late, pytest.raises(ChainError):
        late.setattr(reader.chain, "head", lambda: reader.chain._blocks[-2].block)
        reader.cursor.read()
    for _ in range(AUDIT + 1):
        reader.chain.mine([forged()])
        reader.run()
    assert reader.rows == reader.expected() and len(reader.rows) == 1


def test_read__one_percent_of_logs_left_out_at_random__none_is_missed() -> None:
    rng = random.Random(7)
    chain = FakeChain()
    reader = Reader(chain, depth=2_000)
    real = chain.logs

    def logs(addresses: Sequence[str], topics: Sequence[bytes] = (), **where: int) -> list[Log]:
        return [log for log in real(addresses, topics, **where) if rng.random() > 0.01]  # type: ignore[arg-type]

    chain.logs = logs  # type: ignore[method-assign,assignment]
    for n in range(1_000):
        chain.mine([event(n)])
    reader.run()
    assert reader.rows == reader.expected() and len(reader.rows) == 1_000 and reader.cursor.suspicions > 0


def test_read__random_histories_with_faults__always_ends_at_the_chains_truth(tmp_path: Path) -> None:
    for seed in range(12):
        rng = random.Random(seed)
        chain = FakeChain()
        chain.mine()
        reader = Reader(chain, tmp_path / f"{seed}.db", depth=24, span=10)
        for step in range(60):
            act = rng.random()
            if act < 0.5:
                for _ in range(rng.randint(1, 12)):
                    chain.mine([event(step)] if rng.random() < 0.6 else [])
            elif act < 0.65 and len(chain._blocks) > 25:
                depth = rng.randint(1, 20)
                chain.reorg(depth, remine=[[event(n)] for n in range(rng.randint(depth - 1, depth + 3))])
            elif act < 0.8:
                chain.fail(Fault("down", times=rng.randint(1, 3)))
            elif act < 0.85:
                reader.cursor.close()
                while True:
                    try:
                        reader.cursor = reader.open()
                        break
                    except ChainError:
                        continue
            try:
                tick = reader.cursor.read()
            except ChainError:
                continue
            reader.apply(tick)
            if rng.random() < 0.8:
                reader.cursor.advance(tick)
        chain._faults.clear()
        chain.mine(count=3)
        reader.run()
        assert reader.rows == reader.expected(), seed
        reader.cursor.close()


class Clock:
    """A clock that a test moves."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize("depth", [20, 100, 600])
def test_read__chain_gone_back_and_still_shorter__is_believed_after_a_while(depth: int) -> None:
    """No provider is late for that long: below what was passed, nothing contradicts it, and it stays."""
    chain, clock = FakeChain(), Clock()
    for n in range(700):
        chain.mine([event(n)])
    reader = Reader(chain)
    reader.cursor._clock = clock
    reader.run()
    chain.reorg(depth, remine=[])
    for clock.now in (0.0, LAG_SECONDS - 1):
        with pytest.raises(ChainError, match="is behind"):
            reader.cursor.read()
    clock.now = LAG_SECONDS
    reader.run()
    assert reader.rows == reader.expected() and reader.cursor.position == 700 - depth
    chain.mine([event(999)])
    reader.run()
    assert reader.rows == reader.expected()


def test_read__provider_late_now_and_then__never_adds_up(depth: int = 3) -> None:
    chain, clock = FakeChain(), Clock()
    for n in range(10):
        chain.mine([event(n)])
    reader = Reader(chain)
    reader.cursor._clock = clock
    reader.run()
    for _ in range(10):
        clock.now += LAG_SECONDS - 1
        hidden = [chain._blocks.pop() for _ in range(depth)]
        with pytest.raises(ChainError, match="is behind"):
            reader.cursor.read()
        chain._blocks.extend(reversed(hidden))
        reader.run()


# ---- what a bloom is worth ----


class Blind(FakeChain):
    """A chain that leaves blooms empty from one block on, up to another."""

    def __init__(self, first: int = 0, last: int = 10**9) -> None:
        self.empty = range(first, last)
        super().__init__()

    def _make_block(self, number: int, parent: bytes, timestamp: int, events: Sequence[Event] = ()) -> Block:
        made = super()._make_block(number, parent, timestamp, events)
        return replace(made, bloom=bytes(256)) if number in self.empty else made


class Unknown(Blind):
    """A chain whose provider names no bloom of some blocks."""

    def _make_block(self, number: int, parent: bytes, timestamp: int, events: Sequence[Event] = ()) -> Block:
        made = super()._make_block(number, parent, timestamp, events)
        return replace(made, bloom=b"") if number in self.empty else made


def follow(chain: FakeChain, reader: Reader, blocks: Sequence[Sequence[Event]]) -> int:
    """Mine one block after the other and read each; return how often logs were asked for."""
    before = chain.counts["logs"]
    for events in blocks:
        chain.mine(events)
        reader.run()
    return chain.counts["logs"] - before


def test_read__chain_leaves_blooms_empty__every_block_is_asked_and_no_log_is_missed() -> None:
    """Worker and keeper were blind, without a word: no event was seen, and jobs stayed open for ever."""
    chain = Blind()
    reader = Reader(chain)
    assert follow(chain, reader, [[], [event(1)], [], [event(2)], []]) >= 5
    assert reader.rows == reader.expected() and len(reader.rows) == 2 and reader.cursor.blooms is False


def test_read__block_without_a_bloom_where_blooms_are_believed__is_asked_for_at_once() -> None:
    chain = Unknown(first=3, last=4)
    reader = Reader(chain)
    follow(chain, reader, [[event(1)], []])
    assert reader.cursor.blooms is True
    follow(chain, reader, [[event(2)]])
    assert reader.rows == reader.expected() and len(reader.rows) == 2


@pytest.mark.parametrize("witnessed", [True, False])
def test_read__blooms_were_seen_to_announce__a_block_without_ours_costs_no_request(witnessed: bool) -> None:
    """The block of the market's creation is such a sight, and so is each log of ours."""
    chain = FakeChain()
    chain.set_balance(ACCOUNT.address, 10**18)
    tx_hash = chain.send_raw(logging_transaction(chain))
    chain.mine([] if witnessed else [event(1)])
    reader = Reader(chain, witness=tx_hash if witnessed else None)
    reader.run()
    asked = follow(chain, reader, [[], [event(2, OTHER)], [], [event(3)], []])
    assert asked == 1 and reader.rows == reader.expected() and reader.cursor.blooms is True
    reader.cursor.close()


@pytest.mark.parametrize("depth", [4, 64])
def test_read__witness_is_in_a_block_that_does_not_announce_it__blooms_are_not_believed(depth: int) -> None:
    chain = Blind(0, 2)
    chain.set_balance(ACCOUNT.address, 10**18)
    tx_hash = chain.send_raw(logging_transaction(chain))
    chain.mine()
    reader = Reader(chain, witness=tx_hash, depth=depth)
    assert follow(chain, reader, [[], []]) >= 2 and reader.cursor.blooms is False


@pytest.mark.parametrize("unseen", ["unknown", "without logs", "without its block"])
def test_witnessed__what_a_transaction_logged_cannot_be_seen__says_nothing(unseen: str) -> None:
    chain = FakeChain()
    chain.set_balance(ACCOUNT.address, 10**18)
    tx_hash = chain.send_raw(logging_transaction(chain))
    if unseen == "without logs":
        chain.on_send("0x" + "ee" * 20, b"\1\2\3\4", lambda tx, block: Effect())
    if unseen != "unknown":
        chain.mine()
    if unseen == "without its block":
        chain.block = lambda at: None  # type: ignore[method-assign]
    assert witnessed(chain, tx_hash) is None
    reader = Cursor(chain, [ADDRESS], 0, topics=(TOPIC,), witness=tx_hash)
    if unseen != "without its block":
        assert reader.read().behind == 0 and reader.blooms is None


@pytest.mark.parametrize("chain", [FakeChain(), Blind()])
def test_witnessed__what_a_transaction_logged__is_announced_or_not(chain: FakeChain) -> None:
    chain.set_balance(ACCOUNT.address, 10**18)
    tx_hash = chain.send_raw(logging_transaction(chain))
    chain.mine()
    assert witnessed(chain, tx_hash) is (type(chain) is FakeChain)


@pytest.mark.parametrize("quiet", range(1, AUDIT + 2))
def test_read__chain_stops_filling_blooms__what_was_hidden_is_read_a_few_blocks_later(quiet: int) -> None:
    chain = Blind(first=10)
    reader = Reader(chain)
    follow(chain, reader, [[event(1)], *([[]] * 8)])
    assert reader.cursor.blooms is True
    follow(chain, reader, [[event(2)], *([[]] * quiet)])
    follow(chain, reader, [[event(3)], *([[]] * (AUDIT - 2))])
    assert reader.rows == reader.expected() and len(reader.rows) == 3 and reader.cursor.blooms is False


def test_read__one_bloom_is_empty_where_hardly_a_block_is_passed__its_log_is_read_before_it_is_out_of_reach() -> None:
    chain = Blind(first=12, last=13)
    reader = Reader(chain, depth=20)
    follow(chain, reader, [[event(n)] for n in range(12 + 21)])
    assert reader.rows == reader.expected() and reader.cursor.blooms is False


def test_read__old_blooms_are_full_and_the_newest_log_is_not_announced__is_found_in_catching_up() -> None:
    chain = Blind(first=50)
    for n in range(60):
        chain.mine([event(n)])
    chain.mine(count=30)
    reader = Reader(chain, depth=16, span=1_000)
    reader.run()
    assert reader.cursor.blooms is False and reader.rows == reader.expected()


def test_read__chain_goes_back_below_what_an_audit_would_ask_for__goes_on() -> None:
    chain = FakeChain()
    reader = Reader(chain)
    follow(chain, reader, [[event(1)], *([[]] * (AUDIT - 1))])
    chain.reorg(10, remine=[()])
    real = chain.logs

    def logs(*asked: Any, **where: Any) -> list[Log]:
        assert where.get("to_block", 0) <= chain._blocks[-1].block.number, "clients refuse what is beyond their head"
        return real(*asked, **where)

    chain.logs = logs  # type: ignore[method-assign]
    follow(chain, reader, [[event(2)], *([[]] * 2 * AUDIT)])
    assert reader.rows == reader.expected() and reader.cursor.blooms is True


def logging_transaction(chain: FakeChain) -> bytes:
    """Return a signed transaction that logs, when it is mined."""
    target = "0x" + "ee" * 20
    chain.on_send(target, b"\1\2\3\4", lambda tx, block: Effect(events=(Event(target, (SECOND,), b""),)))
    fields = {"type": 2, "chainId": 31337, "nonce": 0, "gas": 90_000, "maxFeePerGas": 10**10, "value": 0}
    call = {"maxPriorityFeePerGas": 1, "data": b"\1\2\3\4", "to": to_checksum_address(target)}
    signed = ACCOUNT.sign_transaction({**fields, **call})
    return bytes(signed.raw_transaction)
