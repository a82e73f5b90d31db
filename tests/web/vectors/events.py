"""Logs of every event of every contract, what they say, and what people read of that."""

from __future__ import annotations

import random
from typing import Any

from hearth.client.views import event_facts
from hearth.market import events
from hearth.protocol.units import NATIVE, Asset
from tests.web.vectors import _chance
from tests.web.vectors._events import chance_log, every_event, raw, shown
from tests.web.vectors._plain import plain

ASSETS = (NATIVE, Asset("TEST", 6, "0x" + "7e" * 20), Asset("WHOLE", 0, "0x" + "7f" * 20))


def cases() -> Any:
    """Return logs by chance, decoded, with what people read of each in one asset."""
    draw = _chance.source(11)
    places = [(contract, name, at) for contract, name in every_event() for at in _chance.rows(1)]
    return {
        "assets": [plain(asset) for asset in ASSETS],
        "events": [_case(contract, name, at, draw) for contract, name, at in places],
    }


def _case(contract: str, name: str, at: int, draw: random.Random) -> dict[str, Any]:
    log = chance_log(contract, name, draw)
    event = events.decode_of(log, contract)
    asset = at % len(ASSETS)
    facts = event_facts(event, ASSETS[asset])
    said = {name: facts[name] for name in ("unit", "text") if name in facts}
    return {"contract": contract, "log": raw(log), "event": shown(event), "asset": asset, "facts": said}
