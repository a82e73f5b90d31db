"""The unit of each parameter of a market, and its value for people; the page has the same table (tools/web_tables)."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Final, Literal

from hearth.client.changes import AMOUNTS, SHARES, SPANS
from hearth.market.network import NodeParameters
from hearth.protocol.types import Policy
from hearth.protocol.units import format_amount, format_duration

if TYPE_CHECKING:
    from hearth.protocol.units import Asset

Unit = Literal["amount", "span", "share", "number"]
"""An amount of the market's asset, seconds, 1/10,000, or a number without a unit."""
_NODE_AMOUNTS: Final = ("minimum_stake", "fee_reference", "liveness_fee")
_NODE_SPANS: Final = ("dead_after", "ask_notice", "unbonding")


def unit_of(name: str) -> Unit:
    """Return the unit of a parameter of new jobs or of nodes."""
    if name in (*AMOUNTS, *_NODE_AMOUNTS):
        return "amount"
    if name in (*SPANS, *_NODE_SPANS):
        return "span"
    return "share" if name in (*SHARES, "ration_bps") else "number"


POLICY_UNITS: Final[dict[str, Unit]] = {field.name: unit_of(field.name) for field in fields(Policy)}
NODE_UNITS: Final[dict[str, Unit]] = {field.name: unit_of(field.name) for field in fields(NodeParameters)}


def in_words(unit: Unit, value: int, asset: Asset) -> str:
    """Return a parameter's value for people, exact: "0.6 ETH", "2h30m", "250 (2.5 %)"."""
    if unit == "amount":
        return format_amount(value, asset)
    if unit == "span":
        return format_duration(value)
    if unit == "share":
        whole, rest = divmod(value, 100)
        return f"{value} ({whole}{f'.{rest:02}'.rstrip('0') if rest else ''} %)"
    return str(value)
