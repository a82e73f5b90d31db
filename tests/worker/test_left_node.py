"""A node that has left: which it was, by the registry's events."""

from __future__ import annotations

import pytest

from tests.kit.fake_chain import Event
from tests.kit.scripted import ScriptedMarket
from tests.market.test_events import own_log
from worker.left_node import find_left

ME, KEY, NEW_KEY, OTHER = ("0x" + f"{number:02x}" * 20 for number in (0x11, 0x12, 0x13, 0x14))


def _event(market: ScriptedMarket, name: str, **fields: object) -> Event:
    log = own_log(name, **fields)
    return Event(market.network.nodes, log.topics, log.data)


def _registered(market: ScriptedMarket, node: int, owner: str, operator: str) -> Event:
    return _event(
        market, "NodeRegistered", node=node, owner=owner, operator=operator, offer=1, stake=5, manifest=bytes(32)
    )


@pytest.fixture
def market() -> ScriptedMarket:
    """Nodes 1 and 3 were ours and left, 3 under another key than it began with; 2 was another's, and 4 is ours."""
    place = ScriptedMarket()
    whose = [(1, ME, KEY), (2, OTHER, KEY), (3, OTHER, OTHER), (4, ME, KEY)]
    place.chain.mine([_registered(place, *one) for one in whose])
    place.chain.mine([_event(place, "OperatorChanged", node=3, operator=NEW_KEY)])
    place.chain.mine([_event(place, "OwnerChanged", node=3, owner=ME)])
    for node in (1, 2, 3):
        place.chain.mine([_event(place, "ExitFinished", node=node, stake=5)])
    return place


@pytest.mark.parametrize(
    ("wanted", "operator", "owner", "node"),
    [
        (None, KEY, ME, 1),
        (None, NEW_KEY, ME, 3),
        (None, KEY, OTHER, 2),
        (3, KEY, ME, 3),
        (2, KEY, ME, None),
        (4, KEY, ME, None),
        (None, OTHER, OTHER, None),
    ],
)
def test_find_left__whose_it_was_at_its_end__finds_it(
    market: ScriptedMarket, wanted: int | None, operator: str, owner: str, node: int | None
) -> None:
    found = find_left(market.market, wanted, operator, owner)
    assert (None if found is None else found.node) == node
    if found is not None:
        block = market.chain.block(found.block)
        assert block is not None and found.at == block.timestamp and found.owner == owner
