"""Market.newest: the list of all jobs, read backwards from its end, a block of posts at a time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hearth.base.errors import ChainError
from hearth.chain.port import Log, Topics
from hearth.market import reads
from hearth.protocol import words
from hearth.protocol.types import Terms
from tests.kit import build
from tests.kit.scripted import ScriptedMarket

TERMS = build.terms(submitter="0x" + "5b" * 20)
JOBS = [replace(TERMS, salt=salt) for salt in range(1, 8)]


class Listed(ScriptedMarket):
    """A market of seven jobs: one, then three in one block, then one a block with empty blocks between."""

    def __init__(self, ahead: int = 0) -> None:
        super().__init__()
        self.chain.mine()
        self.ahead = ahead
        self.asked: list[tuple[int, int]] = []
        self.end, self.count = 0, 0
        for terms in ([JOBS[0]], JOBS[1:4], [], [JOBS[4]], [JOBS[5]], [], [JOBS[6]]):
            self.post(terms)
        logs = self.chain.logs

        def counted(addresses: list[str], topics: Topics = (), *, from_block: int, to_block: int) -> list[Log]:
            self.asked.append((from_block, to_block))
            return logs(addresses, topics, from_block=from_block, to_block=to_block)

        self.chain.logs = counted  # type: ignore[method-assign]
        self.tell(self.count, self.end)

    def tell(self, count: int, block: int) -> None:
        self.tell_end(words.pack(words.POSTED, {"block": block + self.ahead, "count": count}), ahead=self.ahead)

    def post(self, many: list[Terms], *, skip: int = 0, previous: int | None = None) -> None:
        """Mine a block of posts; `skip` numbers are left out before it, and `previous` is told instead of the truth."""
        at, events = self.chain.head().number + 1, []
        self.count += skip
        for terms in many:
            self.count += 1
            before = (self.end and self.end + self.ahead) if previous is None else previous
            events.append(self.posted(terms, number=self.count, previous=before))
            self.end = at
        self.chain.mine(events)

    def newest(self, count: int) -> list[Terms]:
        return [one.terms for one in self.market.newest(count, self.chain.head())]


@pytest.fixture
def listed() -> Listed:
    return Listed()


@pytest.mark.parametrize("count", range(9))
def test_newest__some_or_all__newest_first(listed: Listed, count: int) -> None:
    assert listed.newest(count) == JOBS[::-1][:count]


def test_newest__few_of_many__asks_for_the_blocks_of_their_posts_alone(listed: Listed) -> None:
    listed.newest(3)
    assert len(listed.asked) == 3 and all(first == last for first, last in listed.asked)


def test_newest__market_without_jobs__is_empty() -> None:
    market = ScriptedMarket()
    market.chain.mine()
    market.tell_end(0)
    assert market.market.newest(5, market.chain.head()) == []


# Arbitrum's contracts see Ethereum's numbers: fewer than its own, or more.
@pytest.mark.parametrize("ahead", [1_000_000, 1, -1])
@pytest.mark.parametrize("span", [1, 2, 3, 100])
def test_newest__contracts_see_other_numbers_of_blocks__searches_ranges(
    monkeypatch: pytest.MonkeyPatch, ahead: int, span: int
) -> None:
    """`jobs --last 5` failed there: the logs of a block were asked for that is another one, or none."""
    monkeypatch.setattr(reads, "RANGE", span)
    listed = Listed(ahead)
    for count in range(9):
        assert listed.newest(count) == JOBS[::-1][:count]
    assert min(first for first, _ in listed.asked) >= listed.network.deploy_block
    listed.asked.clear()
    listed.newest(1)
    assert len(listed.asked) == 1 and listed.asked[0][1] == listed.chain.head().number
    listed.post([replace(TERMS, salt=9)], skip=1)
    listed.tell(listed.count, listed.end)
    refused(listed, 2)


def test_newest__job_posted_after_the_head_that_is_read__is_left_out(listed: Listed) -> None:
    """What storage says at a block counts, and not what another block's logs add."""
    listed.tell(6, listed.chain.head().number - 2)
    assert listed.newest(2) == JOBS[5:3:-1]


def refused(listed: Listed, count: int = 9) -> None:
    with pytest.raises(ChainError) as caught:
        listed.newest(count)
    assert caught.value.code == "RPC_LIES" and "no log of the market's job" in caught.value.message


def test_newest__log_left_out__is_the_providers_lie(listed: Listed) -> None:
    listed.post([replace(TERMS, salt=9)], skip=1)
    listed.tell(listed.count, listed.end)
    assert len(listed.newest(1)) == 1
    refused(listed, 2)


@pytest.mark.parametrize("off", [0, 1])
def test_newest__post_that_names_its_own_or_a_later_block__ends_the_walk(listed: Listed, off: int) -> None:
    listed.post([replace(TERMS, salt=9)], previous=listed.chain.head().number + 1 + off)
    listed.tell(listed.count, listed.end)
    refused(listed)


def test_newest__block_without_posts__is_the_providers_lie(listed: Listed) -> None:
    listed.tell(7, 1)
    refused(listed)


def test_newest__number_beyond_storage__is_left_out(listed: Listed) -> None:
    """A log of a job that storage does not count is no job."""
    listed.tell(3, 3)
    assert listed.newest(9) == JOBS[2::-1]


def test_newest__terms_of_another_id__are_the_providers_lie(listed: Listed) -> None:
    at = listed.chain.head().number + 1
    event = listed.posted(JOBS[0], listed.market.job_id(JOBS[1]), number=8, previous=listed.end)
    listed.chain.mine([event])
    listed.tell(8, at)
    with pytest.raises(ChainError) as caught:
        listed.newest(1)
    assert caught.value.code == "RPC_LIES"
