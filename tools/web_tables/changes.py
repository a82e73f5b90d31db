"""What a market's Steward may be asked for, its times in seconds, and the fields of a policy (changes.py)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from hearth.client.governance import changes as told
from hearth.market import changes
from hearth.protocol.types import Policy
from tools.web_tables.words import camel


def tables() -> Mapping[str, Any]:
    """Return the operations by name, the states of a change that is over, times in seconds, and a policy's fields.

    Of each field: its name in the library and in the page. Its unit is in parameters.py.
    """
    return {
        "CHANGE_OP": {op.name: int(op) for op in changes.ChangeOp},
        "ADDRESS_OPS": [int(op) for op in changes.ChangeOp if op.names_an_address],
        "OFFERS": {int(op): op.offers for op in changes.ChangeOp if op.offers},
        "DROPPED": changes.DROPPED,
        "EXECUTED": changes.EXECUTED,
        "LIFE": changes.LIFE,
        "POLICY_GRACE": changes.POLICY_GRACE,
        "PAUSE_TIME": changes.PAUSE_TIME,
        "PAUSE_EVERY": changes.PAUSE_EVERY,
        "KINDS": {int(op): kind for op, kind in told.KINDS.items()},
        "OVER": told.OVER,
        "MAX_LOOKED": told.MAX_LOOKED,
        "POLICY_FIELDS": [[field.name, camel(field.name)] for field in fields(Policy)],
    }
