"""The cursor over two real nodes that disagree: a provider that goes from one chain to another between two requests.

So does one with several nodes behind one address. Whenever that happens, in the end every event of the chain that stays
was shown once, and no other one is left.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import pytest

from hearth.base.errors import ChainError
from hearth.chain.endpoint import Endpoint
from hearth.chain.follow import Cursor, Tick
from hearth.chain.port import hex_of
from hearth.chain.rpc import RpcChain
from tests.kit.anvil import bare_chain, need_anvil

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

LOGGER: Final = bytes.fromhex("600980600c6000396000f3" + "00" + "60003560006000a100")
"""Creation code of a contract that logs its first word of input as a topic."""
HEIGHT: Final = 36
DEPTH: Final = 8
"""Blocks read one by one; the ring of the cursor holds twice as many."""

FORKS: Final = ((1, 2), (3, 3), (8, 9), (8, 5), (12, 14), (30, 31))
"""How many of the old chain's blocks are gone, and how many others have come."""
COMMON: Final = ("--no-mining", "--accounts", "1", "--base-fee", "0", "--timestamp", "1700000000")

Row = tuple[bytes, int]


class Trunk(NamedTuple):
    """The old chain, the contract that logs, and the node's state at some heights."""

    url: str
    address: str
    states: dict[int, str]


class Forks(NamedTuple):
    """Two nodes with the same blocks, and a contract that logs."""

    old: str
    new: str
    address: str


def mine(chain: RpcChain, address: str | None, *events: int) -> list[bytes]:
    """Mine one block with some events, or with the contract itself; return the transactions."""
    (sender,) = chain.rpc("eth_accounts")
    sent = []
    for number in events:
        call = {"from": sender, "gas": "0x30000", "gasPrice": "0x0", "data": hex_of(number.to_bytes(32, "big"))}
        call |= {"to": address} if address else {"data": hex_of(LOGGER)}
        sent.append(bytes.fromhex(chain.rpc("eth_sendTransaction", call)[2:]))
    chain.rpc("evm_mine")
    return sent


def events_of(block: int, salt: int) -> list[int]:
    """Choose a block's events: none, one or two, and never those of another fork."""
    return [1000 * salt + 2 * block + i for i in range((block + salt) % 3)]


@pytest.fixture(scope="module")
def trunk() -> Iterator[Trunk]:
    """Mine the old chain."""
    need_anvil()
    with bare_chain(*COMMON) as url:
        chain = RpcChain([url])
        (made,) = mine(chain, None, 0)
        receipt = chain.receipt(made)
        assert receipt is not None and receipt.contract is not None
        states: dict[int, str] = {}
        for block in range(2, HEIGHT + 1):
            mine(chain, receipt.contract, *events_of(block, 0))
            if block in {HEIGHT - back for back, _ in FORKS}:
                states[block] = chain.rpc("anvil_dumpState")
        yield Trunk(url, receipt.contract, states)


@pytest.fixture(scope="module")
def forks(request: pytest.FixtureRequest, trunk: Trunk) -> Iterator[Forks]:
    """Mine a new chain that has all but some of the old one's blocks, and others after them."""
    back, again = request.param
    with bare_chain(*COMMON) as url:
        chain = RpcChain([url])
        chain.rpc("anvil_loadState", trunk.states[HEIGHT - back])
        for block in range(HEIGHT - back + 1, HEIGHT - back + 1 + again):
            mine(chain, trunk.address, *events_of(block, 1))
        yield Forks(trunk.url, url, trunk.address)


class Switch:
    """An endpoint that asks the old chain or the new one, as `choose` says of each request by its number."""

    name = "http://switch"

    def __init__(self, forks: Forks) -> None:
        self.ends = Endpoint(forks.old, 5), Endpoint(forks.new, 5)
        self.choose: Callable[[int], bool] = lambda _: False
        self.asked = 0

    def ask(self, method: str, params: list[Any], parse: Callable[[Any], Any]) -> Any:
        self.asked += 1
        return self.ends[self.choose(self.asked)].ask(method, params, parse)


class Daemon:
    """A program that follows the contract, as the keeper and the worker do."""

    def __init__(self, forks: Forks) -> None:
        self.switch = Switch(forks)
        port = RpcChain([forks.old], sleep=lambda _: None)
        port._providers._all[0].endpoint = self.switch  # type: ignore[assignment]
        self.now = 0.0
        blocks, salts = range(2 * HEIGHT), range(2)
        topics = [event.to_bytes(32, "big") for block in blocks for salt in salts for event in events_of(block, salt)]
        self.cursor = Cursor(port, [forks.address], 0, topics=topics, depth=DEPTH, span=10, clock=lambda: self.now)
        self.rows: dict[Row, bytes] = {}

    def apply(self, tick: Tick) -> None:
        if tick.reset:
            self.rows.clear()
        gone = {mark.hash for mark in tick.orphaned}
        self.rows = {key: topic for key, topic in self.rows.items() if key[0] not in gone}
        for log in tick.logs:
            key = log.block_hash, log.log_index
            assert key not in self.rows, "taken twice"
            self.rows[key] = log.topics[0]
        self.cursor.advance(tick)

    def run(self) -> None:
        """Read until caught up; a read that fails is tried again, as ever."""
        for _ in range(100):
            self.now += 10
            try:
                tick = self.cursor.read()
            except ChainError as error:
                assert error.retryable, error
                continue
            self.apply(tick)
            if tick.behind == 0:
                return
        raise AssertionError("never caught up")


def truth(url: str, address: str) -> dict[Row, bytes]:
    chain = RpcChain([url])
    logs = chain.logs([address], from_block=0, to_block=chain.head().number)
    return {(log.block_hash, log.log_index): log.topics[0] for log in logs}


def by_fork(depth: int) -> pytest.MarkDecorator:
    """Run a test for each fork down to a depth."""
    chosen = [fork for fork in FORKS if fork[0] <= depth]
    return pytest.mark.parametrize("forks", chosen, indirect=True, ids=lambda fork: f"{fork[0]}-{fork[1]}")


@by_fork(HEIGHT)
def test_read__provider_on_another_chain_from_any_request_on__no_event_is_missed_or_taken_twice(forks: Forks) -> None:
    want = truth(forks.new, forks.address)
    followed, at = 0, 1
    while True:
        daemon = Daemon(forks)
        # The cursor is where a program stands that was stopped for a while: twelve blocks from the head.
        while daemon.cursor.position < HEIGHT - 12:
            daemon.apply(daemon.cursor.read())
        start = daemon.switch.asked
        daemon.switch.choose = lambda asked, limit=start + at: asked >= limit  # type: ignore[misc]
        daemon.run()
        ended_on_the_old_chain = daemon.switch.asked < start + at
        daemon.switch.choose = lambda _: True
        daemon.run()
        assert daemon.rows == want, at
        followed += 1
        if ended_on_the_old_chain:
            break
        at += 1
    assert followed > 12


@by_fork(DEPTH)
def test_read__provider_of_two_chains_at_once__ends_at_the_one_that_stays(forks: Forks) -> None:
    want = truth(forks.new, forks.address)
    for seed in range(10):
        rng, daemon = random.Random(seed), Daemon(forks)
        daemon.switch.choose = lambda _, rng=rng: rng.random() < 0.5  # type: ignore[misc]
        for _ in range(12):
            daemon.now += 10
            try:
                daemon.apply(daemon.cursor.read())
            except ChainError as error:
                assert error.retryable, error
        daemon.switch.choose = lambda _: True
        daemon.run()
        assert daemon.rows == want, seed
