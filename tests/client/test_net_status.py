"""`hearth net status`: what a first look at a market reads, of one block, and what it says of it."""

from __future__ import annotations

from typing import Any

import pytest
from eth_abi.abi import encode

from hearth.chain.port import Block, Call
from hearth.client.net import Net
from hearth.market.abi import codec
from hearth.market.reads import PAGE
from hearth.protocol import formulas, words
from hearth.protocol.types import ZERO_ADDRESS, NodeId, NodeState, Offer, Outcome, Runtime, State, Unit
from tests.client.test_parents import Place
from tests.kit.scripted import OVERVIEW

NODE = "(address,address,uint256,uint256,uint256,uint256,uint256)"
STAKE = 10**18
ENDED = Unit(state=State.SETTLED, outcome=Outcome.OK, node=NodeId(1), attempts=1)


class Shown(Place):
    """A market of `nodes` nodes, one of which left, whose posts are paused until `until`."""

    def __init__(self, nodes: int, until: int = 0) -> None:
        super().__init__()
        self.nodes, self.until = nodes, until
        self.asked: list[tuple[str, int]] = []
        self.silent, self.stake = 0, STAKE
        self.on("Lens", "overview", self._overview)
        self.on("Lens", "nodes", self._nodes)

    def status(self) -> dict[str, Any]:
        """Return the report, with one block more mined after the head was read."""
        head = self.chain.head

        def then_a_block() -> Block:
            found = head()
            self.chain.mine()
            return found

        self.market.port.head = then_a_block  # type: ignore[method-assign]
        return dict(Net(self.jobs).status())

    def _overview(self, call: Call, block: Block) -> bytes:
        self.asked.append(("overview", block.number))
        totals = words.pack(words.TOTALS, {"next_id": self.nodes + 1, "hour": 0, "burnt": 0, "total": 0})
        posted = words.pack(words.POSTED, {"block": 1, "count": len(self.stored)})
        policy = self.network.policy
        here = (self.network.chain_id, block.number, block.timestamp, ZERO_ADDRESS)
        return encode([OVERVIEW], [(*here, 7 * STAKE, 0, posted, totals, policy, 0, 0, self.until, 0, STAKE)])

    def _nodes(self, call: Call, block: Block) -> bytes:
        self.asked.append(("nodes", block.number))
        told = codec("Lens").decode_input(call.data)
        assert told is not None
        offer, rows = words.pack_offer(Offer(runtimes=Runtime.WASM, slots=3, ask=1)), []
        hot = words.pack_node_state(NodeState(beat=block.timestamp - self.silent, busy=2))
        for node in range(told[1]["first"], told[1]["first"] + told[1]["count"]):
            if node == 1:
                rows.append((f"0x{1:040x}", ZERO_ADDRESS, 0, offer, 0, 0, 0))
            else:
                rows.append((f"0x{1:040x}", f"0x{2:040x}", self.stake, offer, hot, 0, 0))
        return encode([f"{NODE}[]"], [rows])


@pytest.mark.parametrize("count", [1, PAGE, PAGE + 1])
def test_status__market__is_read_by_one_call_and_pages_at_one_block(count: int) -> None:
    shown = Shown(count)
    for _ in range(3):
        shown.post(ENDED)
    shown.post(Unit(state=State.OPEN))
    before, head = shown.chain.counts["call"], shown.chain.head().number
    report = shown.status()
    pages = -(-count // PAGE)
    assert shown.asked == [("overview", head)] + [("nodes", head)] * pages
    assert shown.chain.counts["call"] - before == 1 + pages + 1, "a page of jobs besides"
    assert (report["block"], report["escrow_balance"], report["escrow_text"]) == (
        head,
        str(7 * STAKE),
        f"{7 * STAKE} wei",
    )
    assert report["workers"] == {"active": count - 1, "exited": 1} if count > 1 else {"exited": 1}
    assert (report["slots"], report["busy"]) == (3 * (count - 1), 2 * (count - 1))
    assert (report["jobs"], report["units"]) == (4, {"settled": 3, "open": 1})


@pytest.mark.parametrize(
    ("short", "silent", "status"),
    [(0, -1, "active"), (0, 0, "inactive"), (1, -1, "pending")],
)
def test_status__worker_that_is_silent_or_short_of_stake__is_not_counted_as_active(
    short: int, silent: int, status: str
) -> None:
    shown = Shown(2)
    parameters = shown.network.node_parameters
    shown.silent = parameters.dead_after + silent
    shown.stake = formulas.active_stake(parameters.minimum_stake) - short
    assert shown.status()["workers"] == {status: 1, "exited": 1}


def test_status__posts_paused__is_over_at_its_second() -> None:
    for offset, paused in ((-1, False), (0, False), (1, True)):
        shown = Shown(1)
        shown.until = shown.chain.head().timestamp + offset
        report = shown.status()
        assert (report["posts_paused"], report["paused_until"]) == (paused, shown.until)
