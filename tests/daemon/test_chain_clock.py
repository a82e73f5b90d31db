"""Clock and chain compared: a wrong clock, a provider that lags, and an honest chain that mines on demand."""

from __future__ import annotations

from hearth.chain.port import Block
from hearth.daemon.chain_clock import GAPS, MAX_SKEW_SECONDS, ChainClock, Doubt

START = 1_800_000_000


class World:
    """A true time, a chain, a wall clock that is `wrong` by some seconds, and a process that looks every second."""

    def __init__(self, wrong: float = 0.0) -> None:
        self.true, self.wrong, self.frozen = float(START), wrong, False
        self.stopped_at = 0.0
        self.clock = ChainClock(self.wall, lambda: self.true)
        self.number = 0

    def wall(self) -> float:
        return (self.stopped_at if self.frozen else self.true) + self.wrong

    def freeze(self) -> None:
        self.frozen, self.stopped_at = True, self.true

    def block(self, late: float = 0.0) -> Block:
        self.number += 1
        return Block(self.number, self.number.to_bytes(32), (self.number - 1).to_bytes(32), int(self.true - late), 1)

    def live(self, seconds: int, every: int | None, late: float = 0.0) -> list[Doubt | None]:
        """Let time pass, with a block `every` so many seconds, and return the doubts of each second."""
        doubts = []
        for second in range(seconds):
            self.true += 1
            if every is not None and second % every == every - 1:
                self.head = self.block(late)
            self.clock.saw(self.head)
            doubts.append(self.clock.doubt())
        return doubts

    def begin(self, age: int = 0) -> None:
        """Start where the newest block is `age` seconds old."""
        self.head = self.block(age)
        self.clock.saw(self.head)


def test_age__no_other_block_comes__grows_whatever_the_wall_clock_says() -> None:
    world = World()
    assert world.clock.age == 0.0
    world.begin(age=5)
    assert world.clock.age == 5.0
    world.live(100, None)
    assert world.clock.age == 105.0
    world.wrong = -86_400.0
    assert world.clock.age == 100.0


def test_doubt__chain_and_clock_agree__is_none() -> None:
    world = World()
    world.begin()
    assert set(world.live(100, 12)) == {None}
    assert abs(world.clock.now - world.true) <= 1 and abs(world.clock.skew) <= 1


def test_doubt__clock_jumps_a_day__is_at_once_the_clocks_and_ends_with_it() -> None:
    for wrong in (86_400.0, -86_400.0, MAX_SKEW_SECONDS + 2.0, -MAX_SKEW_SECONDS - 2.0):
        world = World()
        world.begin()
        world.live(24, 12)
        world.wrong = wrong
        assert set(world.live(48, 12)) == {Doubt.CLOCK}
        assert abs(world.clock.now - world.true) <= 1, "deadlines stay the chain's"
        world.wrong = 0
        assert world.live(1, 12) == [None]


def test_doubt__clock_stands_still__is_the_clocks() -> None:
    world = World()
    world.begin()
    world.live(12, 12)
    world.freeze()
    doubts = world.live(60, 12)
    assert doubts[MAX_SKEW_SECONDS - 2] is None and doubts[MAX_SKEW_SECONDS + 2] is Doubt.CLOCK


def test_doubt__provider_shows_every_block_late__is_named() -> None:
    world = World()
    world.begin()
    assert set(world.live(48, 12, late=31 + 1)[12:]) == {Doubt.CLOCK}


def test_doubt__old_head_at_the_start__is_silence_until_a_block_comes() -> None:
    world = World()
    world.begin(age=4_000)
    assert set(world.live(20, None)) == {Doubt.SILENCE}
    world.head = world.block()
    assert set(world.live(20, None)) == {None}


def test_doubt__chain_of_regular_blocks_falls_silent__is_noticed() -> None:
    world = World()
    world.begin()
    world.live(120, 12)
    doubts = world.live(60, None)
    assert doubts[MAX_SKEW_SECONDS - 2] is None and doubts[MAX_SKEW_SECONDS + 2] is Doubt.SILENCE


def test_doubt__chain_that_mines_on_demand_is_idle__is_trusted() -> None:
    """Its head is an hour old, and the process has watched it all that time."""
    world = World()
    world.begin()
    world.live(120, 40)
    assert world.clock.mines_on_demand and set(world.live(3_600, None)) == {None}
    assert abs(world.clock.now - world.true) <= 1


def test_doubt__one_outage_of_a_regular_chain__makes_it_no_other_chain() -> None:
    world = World()
    world.begin()
    world.live(60, 12)
    world.live(300, 300)
    assert not world.clock.mines_on_demand
    world.live(12 * GAPS, 12)
    assert world.live(40, None)[-1] is Doubt.SILENCE


def test_learn__blocks_of_an_idle_chain__are_its_habit() -> None:
    world = World()
    blocks = [Block(n, n.to_bytes(32), (n - 1).to_bytes(32), START + 100 * n, 1) for n in range(1, 5)]
    world.clock.learn(blocks)
    assert world.clock.mines_on_demand


def test_saw__blocks_that_were_skipped__are_no_gap() -> None:
    """After an outage of the provider the next head is far from the last: that says nothing about the chain."""
    world = World()
    world.begin()
    for _ in range(4):
        world.true += 600
        world.number += 49
        world.head = world.block()
        world.clock.saw(world.head)
    assert not world.clock.mines_on_demand


def test_block_seconds__blocks_seen_now_and_then__are_the_chains_pace() -> None:
    world = World()
    assert world.clock.block_seconds is None
    world.begin()
    world.live(12 * (GAPS - 1), 12)
    assert world.clock.block_seconds is None
    world.live(24, 12)
    assert world.clock.block_seconds == 12
    # Heads of which every second one was missed; and a chain that goes back says nothing.
    for _ in range(2 * GAPS):
        world.true += 2
        world.number += 1
        world.head = world.block()
        world.clock.saw(world.head)
    assert world.clock.block_seconds == 1
    world.number = 0
    world.live(1, 1)
    assert world.clock.block_seconds is None
