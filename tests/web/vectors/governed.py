"""Governance in words: changes of every kind and state as `hearth gov status` shows them, and who governs."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

from hearth.cli.gov import _governor, _when
from hearth.client.governance.changes import Seen, change_row, state_of
from hearth.market.changes import DROPPED, EXECUTED, LIFE, PAUSE_EVERY, PAUSE_TIME, Change, ChangeOp
from hearth.protocol import words
from hearth.protocol.types import Policy
from hearth.protocol.units import Asset
from tests.web.vectors import _chance
from tests.web.vectors._drawn import NOW, drawn_policy
from tests.web.vectors._plain import plain

DRAWN = 20
ASSETS = (Asset("ETH", 18, None), Asset("USDC", 6, "0x" + "7e" * 20))
STEWARD = "0x" + "57" * 20


def cases() -> dict[str, Any]:
    """Return drawn changes with their rows, and governors with their sentences."""
    random = _chance.source("governed")
    return {
        "rows": [_row(random) for _ in _chance.rows(DRAWN)],
        "governors": [_governed(random) for _ in _chance.rows(DRAWN // 4)],
    }


def _row(random: Random) -> dict[str, Any]:
    policy = drawn_policy(random)
    op, asset = random.choice([*ChangeOp]), random.choice(ASSETS)
    change = Change(op, _word(random, op, policy), random.choice((0, 1, 2**255)))
    due = NOW + random.choice((-LIFE - 1, -LIFE, -LIFE + 1, -1, 0, 1, 86_400))
    held = random.choice((DROPPED, EXECUTED, due, due, due, due))
    before = random.choice((policy, policy, None))
    free = random.choice((0, NOW - 1, NOW + 60, due + LIFE))
    row = change_row(Seen(change, due, state_of(held, NOW), 7), before, asset, free=free, now=NOW)
    return {
        "change": {"op": int(op), "word": str(change.word), "salt": str(change.salt)},
        "asset": {"symbol": asset.symbol, "decimals": asset.decimals, "address": asset.address},
        "policy": None if before is None else str(words.pack_policy(before)),
        "due": due,
        "held": str(held),
        "free": free,
        "now": NOW,
        "row": {name: plain(row[name]) for name in ("change", "kind", "state", "due", "ready", "until", "text")},  # type: ignore[literal-required]
        "values": [[one["name"], one["before_text"], one["after_text"]] for one in row["values"]],
        "when": _when(row),
    }


def _word(random: Random, op: ChangeOp, policy: Policy) -> int:
    if op is ChangeOp.SET_POLICY:
        changed = replace(policy, fee_bps=random.randrange(1_000), ack_time=random.randrange(2, 600))
        return words.pack_policy(random.choice((policy, changed, replace(changed, min_price=random.randrange(1_000)))))
    if op is ChangeOp.SET_MINIMUM_STAKE:
        return random.choice((0, 10**17, random.getrandbits(90)))
    return random.choice((0, random.getrandbits(160)))


def _governed(random: Random) -> dict[str, Any]:
    what, mine = random.choice(("posts", "registrations")), random.random() < 0.5
    paused = random.choice((0, NOW - 1, NOW, NOW + 1, NOW + PAUSE_TIME, NOW + PAUSE_TIME - PAUSE_EVERY))
    one: Any = {
        "governor": STEWARD if mine else f"0x{random.getrandbits(160):040x}",
        "steward": mine,
        "offered": random.choice((None, f"0x{random.getrandbits(160):040x}")),
        "paused_until": paused,
        "pausable_from": paused and paused - PAUSE_TIME + PAUSE_EVERY,
    }
    return {"what": what, "one": plain(one), "now": NOW, "text": _governor(what, one, NOW).strip()}
