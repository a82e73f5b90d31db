"""The unit of each parameter of a market, and its value for people; the page has the same table (tools/web_tables)."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Final, Literal

from hearth.market.network import NodeParameters
from hearth.protocol.types import Policy
from hearth.protocol.units import format_amount, format_duration

if TYPE_CHECKING:
    from hearth.protocol.units import Asset

Unit = Literal["amount", "span", "share", "number"]
"""An amount of the market's asset, seconds, 1/10,000, or a number without a unit."""
AMOUNTS: Final = ("min_price", "min_keeper_fee", "probation_price")
SHARES: Final = ("fee_bps", "min_bond_bps")
SPANS: Final = (
    *("claim_ramp", "fresh_delay", "fetch_floor", "min_match_window", "ack_time", "open_claim_after", "cancel_notice"),
    *("grace_floor", "start_fee_seconds", "min_challenge_window", "key_timeout", "min_checkpoint"),
)
"""The fields of a policy that a change may name: amounts of the asset, 1/10,000, spans of time."""
_BY_UNIT: Final[dict[Unit, tuple[str, ...]]] = {
    "amount": (*AMOUNTS, "minimum_stake", "fee_reference", "liveness_fee"),
    "span": (*SPANS, "dead_after", "ask_notice", "unbonding"),
    "share": (*SHARES, "ration_bps"),
    "number": ("version", "reserved", "reserved_high"),
}


def unit_of(name: str) -> Unit:
    """Return the unit of a parameter of new jobs or of nodes. Raises ValueError for one that has none here."""
    for unit, names in _BY_UNIT.items():
        if name in names:
            return unit
    raise ValueError(f"the parameter {name} has no unit")


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
