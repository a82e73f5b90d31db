"""Offers as `hearth offers` lists them, of drawn nodes, by what a reader asks for; and what is asked for amiss."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from types import SimpleNamespace
from typing import Any

from hearth.client.nodes.workers import Workers
from hearth.protocol.gpu_tiers import TIERS
from hearth.protocol.types import Node, NodeId
from hearth.protocol.units import NATIVE, format_rate
from tests.web.vectors import _chance, _drawn
from tests.web.vectors._drawn import NOW, node_fields
from tests.web.vectors._plain import outcome
from tests.web.vectors.network import NETWORK

FLEETS, NODES, ASKED = 2, 9, 6
AMISS = (("", "40GB", ""), ("", "-1", ""), ("", "", "2"), ("", "", "2 BTC/h"), ("gtx-1", "", ""))


def cases() -> dict[str, Any]:
    """Return fleets with their offers by what is asked for, and what is refused."""
    random = _chance.source("offers")
    return {
        "now": NOW,
        "deadAfter": NETWORK.node_parameters.dead_after,
        "minimumStake": str(NETWORK.node_parameters.minimum_stake),
        "fleets": [_fleet(random) for _ in _chance.rows(FLEETS)],
        "amiss": [{"asked": list(asked), **outcome(lambda asked=asked: _offers((), *asked))} for asked in AMISS],
    }


def _fleet(random: Random) -> dict[str, Any]:
    nodes = tuple(_node(random, number + 1) for number in range(NODES))
    asks = [one.offer.ask for one in nodes]
    asked = [("", "", "")] + [
        (
            random.choice(("", "", "rtx-3090", *TIERS)),
            random.choice(("", "0", "24", "16GiB", "1.5 GiB")),
            random.choice(("", format_rate(random.choice(asks), NATIVE), "0.5 ETH/h", "1/s")),
        )
        for _ in range(ASKED)
    ]
    return {
        "nodes": [node_fields(node) for node in nodes],
        "asked": [{"asked": list(one), "offers": _offers(nodes, *one)} for one in asked],
    }


def _offers(nodes: tuple[Node, ...], gpu: str, vram: str, most: str) -> list[dict[str, Any]]:
    session: Any = SimpleNamespace(
        asset=NATIVE,
        network=NETWORK,
        market=SimpleNamespace(
            port=SimpleNamespace(head=lambda: SimpleNamespace(hash=b"", number=1, timestamp=NOW)),
            nodes=lambda _: nodes,
        ),
    )
    reads: Any = SimpleNamespace(session=session)
    rows = Workers(reads).offers(gpu=gpu or None, vram=vram or None, max_price=most or None)["offers"]
    left_out = {"owner", "ask_text", "disk_gib"}
    return [{name: value for name, value in row.items() if name not in left_out} for row in rows]


def _node(random: Random, number: int) -> Node:
    node = replace(_drawn.drawn_node(random), id=NodeId(number), stake=NETWORK.node_parameters.minimum_stake, exit_at=0)
    alive = replace(node.state, beat=NOW - random.choice((0, 10, 10, 5_000)))
    return replace(node, state=alive if random.random() < 0.8 else node.state)
