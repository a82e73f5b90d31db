"""Find a node that has left the market: the registry has forgotten it, and its events have not."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from hearth.base.errors import ChainError
from hearth.client.reading import market_events
from hearth.market.events import ExitFinished, NodeRegistered, OperatorChanged, OwnerChanged
from hearth.market.reads import Market
from hearth.protocol.types import NodeId


class LeftNode(NamedTuple):
    """A node that has left, whose it was at its end, and in which block it left: its number, and its chain second."""

    node: NodeId
    owner: str
    operator: str
    block: int
    at: int


def find_left(market: Market, wanted: int | None, operator: str, owner: str) -> LeftNode | None:
    """Return the node of `owner` that left last of those that `operator` operated, or the `wanted` one; else None.

    Every event of the registry of nodes is read. Raises ChainError.
    """
    network, head = market.network, market.port.head()
    whose: dict[NodeId, tuple[str, str]] = defaultdict(lambda: ("", ""))
    found: tuple[NodeId, int, bytes] | None = None
    for event in market_events(market, [network.nodes], network.deploy_block, head.number):
        if isinstance(event, NodeRegistered):
            whose[event.node] = (event.owner, event.operator)
        elif isinstance(event, OwnerChanged):
            whose[event.node] = (event.owner, whose[event.node][1])
        elif isinstance(event, OperatorChanged):
            whose[event.node] = (whose[event.node][0], event.operator)
        elif isinstance(event, ExitFinished):
            its_owner, its_operator = whose[event.node]
            if its_owner == owner and (event.node == wanted if wanted is not None else its_operator == operator):
                found = (event.node, event.log.block_number, event.log.block_hash)
    if found is None:
        return None
    node, number, block_hash = found
    block = market.port.block(block_hash)
    if block is None:
        raise ChainError(f"the RPC serves no block {number}", code="RPC_LIES", hint="hearth worker doctor")
    return LeftNode(node, *whose[node], number, block.timestamp)
