"""What a rollup takes for a transaction beside its gas, pure: what a receipt says of it, and how its contract is asked.

Two families of rollups take it, both from the sender's balance and beyond the fees that were signed, so that nothing
but an estimate bounds it:

- OP Stack chains: `l1Fee`, and since Isthmus an operator's fee, which a receipt gives as `operatorFee` or as the two
  numbers it is made of (specs.optimism.io, Isthmus and Jovian "Execution Engine", "Operator Fee"). The predeploy
  GasPriceOracle estimates both.
- Scroll, and chains made of it: `l1Fee` (docs.scroll.io, "Transaction Fees on Scroll"), by its L1GasPriceOracle.

Arbitrum's chains count the L1 part in gas (`gasUsedForL1` is a share of `gasUsed`), Linea, ZKsync, Polygon and Taiko
in the price of gas: there is nothing beside. Amounts are wei.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

ORACLES: Final = ("0x420000000000000000000000000000000000000f", "0x5300000000000000000000000000000000000002")
"""Where OP Stack chains and Scroll have the contract that estimates: the same function has one name on both."""
TYPICAL_BYTES: Final = 512
TYPICAL_GAS: Final = 100_000
"""The bytes and the gas of a call by which what comes beside gas is shown, and weighed, as a price per gas."""
MOST_TIMES: Final = 32
"""Times what gas cost that a receipt's word of what came beside it counts, where nothing estimates that.

No signature bounds that fee, so one false word could use up a budget, and a balance, for a day. On rollups it has been
tens of times of what gas cost, on chains of other kinds nothing.
"""
MOST_KEPT_TIMES: Final = 8
"""Times what was kept by the estimate of the chain's own contract that such a word counts: sixteen estimates.

The price of data on the chain below may rise while a transaction waits, by an eighth each 12 s.
"""
_ENVELOPE: Final = bytes(range(1, 181))
"""As much as a signed transaction has beside its call's data, and as hard to compress."""
_L1_FEE: Final = bytes.fromhex("49948e0e")  # getL1Fee(bytes)
_OPERATOR_FEE: Final = bytes.fromhex("275aedd2")  # getOperatorFee(uint256)
_MILLION: Final = 10**6
_JOVIAN: Final = 100
"""What Jovian multiplies an operator's scalar by, where Isthmus divided it by a million."""


def asks_l1_fee(data: bytes) -> bytes:
    """Return the call that asks what a transaction of this data pays for its place on the chain below."""
    raw = data + _ENVELOPE
    padded = raw + bytes(-len(raw) % 32)
    return _L1_FEE + (32).to_bytes(32, "big") + len(raw).to_bytes(32, "big") + padded


def asks_operator_fee(gas: int) -> bytes:
    """Return the call that asks what so much gas pays to the chain's operator."""
    return _OPERATOR_FEE + gas.to_bytes(32, "big")


def said(answer: bytes) -> int | None:
    """Return the wei that an oracle answers, None where there is no oracle."""
    return int.from_bytes(answer[:32], "big") if len(answer) >= 32 else None


def fee_in(receipt: Mapping[str, Any], gas_used: int, amount: Any) -> int | None:
    """Return what a receipt says was taken beside gas, None where it says nothing; `amount` reads a quantity.

    Raises what `amount` raises for a field that is there and is no number.
    """
    found = [amount(receipt[name]) for name in ("l1Fee", "operatorFee") if receipt.get(name) is not None]
    parts = [receipt.get(name) for name in ("operatorFeeScalar", "operatorFeeConstant")]
    if receipt.get("operatorFee") is None and any(part is not None for part in parts):
        scalar, constant = (0 if part is None else amount(part) for part in parts)
        # Only receipts since Jovian have this field.
        is_jovian = receipt.get("daFootprintGasScalar") is not None
        found.append((gas_used * scalar * _JOVIAN if is_jovian else gas_used * scalar // _MILLION) + constant)
    return sum(found) if found else None
