"""Nodes at a moment: their status, what of their stake is missing or free, and their quarantine."""

from __future__ import annotations

from random import Random
from typing import Any

from hearth.market.profiles import PUBLIC
from hearth.protocol import formulas
from tests.web.vectors import _chance, _drawn
from tests.web.vectors._drawn import NOW, node_fields
from tests.web.vectors._plain import plain

COUNT = 30


def cases() -> dict[str, Any]:
    """Return nodes with what is said of them, and the stakes that keep a node active."""
    random = _chance.source("status")
    minimums = [0, 1, 2, 3, 10**18, 2**80 - 1]
    return {
        "nodes": [_case(random) for _ in _chance.rows(COUNT)],
        "activeStake": [{"in": plain(one), "out": plain(formulas.active_stake(one))} for one in minimums],
    }


def _case(random: Random) -> dict[str, Any]:
    node = _drawn.drawn_node(random)
    dead_after = random.choice((PUBLIC.node_parameters.dead_after, 90))
    minimum = random.choice((10**18, 10**18 + 1, 0))
    turns = (NOW, node.state.beat + dead_after, node.state.quarantine, node.next_ask_at)
    now = max(0, random.choice(turns) + random.choice((-1, 0, 0, 1)))
    fee = random.choice((0, 10**14, 10**30))
    return {
        "node": node_fields(node),
        "now": now,
        "deadAfter": dead_after,
        "minimumStake": str(minimum),
        "fee": str(fee),
        "status": int(formulas.status(node, now, dead_after, minimum)),
        "stakeShort": plain(formulas.stake_short(node, minimum)),
        "livenessFee": plain(formulas.liveness_fee(node, fee)),
        "quarantinedUntil": formulas.quarantined_until(node, now),
        "askInForce": plain(formulas.ask_in_force(node, now)),
    }
