"""What a receipt's fields come to: whether a block has its transaction, its gas, and what was paid for it in all."""

from __future__ import annotations

from typing import Any, Final

from hearth.chain import answers
from tests.web.vectors._plain import plain

HASH: Final = "0x" + "cd" * 32
RECEIPT: Final[dict[str, Any]] = {
    "transactionHash": HASH,
    "blockNumber": "0x7",
    "blockHash": HASH,
    "status": "0x1",
    "gasUsed": "0x64",
    "effectiveGasPrice": "0x4",
    "from": "0x" + "ab" * 20,
    "logs": [],
}
_PARTS: Final = {"operatorFeeScalar": "0xf4240", "operatorFeeConstant": "0x5"}
_GARBLED: Final = "0xzz"
CHANGES: Final[tuple[dict[str, Any], ...]] = (
    {},
    # Where a block has it.
    *({"blockNumber": number, "blockHash": digest} for number in ("0x0", None, _GARBLED) for digest in (HASH, None)),
    {"blockHash": None},
    # Its price.
    *({"effectiveGasPrice": price, "l1Fee": "0x9"} for price in ("0x0", None, _GARBLED)),
    {"effectiveGasPrice": None, "l1Fee": _GARBLED},
    *({"gasUsed": gas, "l1Fee": "0x9"} for gas in ("0x0", None)),
    # Beside gas.
    *({"l1Fee": fee, "operatorFee": "0x8"} for fee in ("0x9", "0x0", None, _GARBLED)),
    *({"operatorFee": fee, **_PARTS} for fee in ("0x8", "0x0", None, _GARBLED)),
    *({**_PARTS, part: value} for part in _PARTS for value in ("0x0", None, _GARBLED)),
    *({"operatorFee": "0x8", **_PARTS, part: _GARBLED} for part in _PARTS),
    # Jovian's receipts have one field more, whatever it says.
    *({**_PARTS, "daFootprintGasScalar": value} for value in ("0x190", "0x0", None, _GARBLED)),
    {"l1Fee": "0x9", "daFootprintGasScalar": _GARBLED},
)


def cases() -> Any:
    """Return a receipt, and changes of it with what each comes to."""
    return {
        "receipt": RECEIPT,
        "cases": [{"changes": changes, "out": _told({**RECEIPT, **changes})} for changes in CHANGES],
    }


def _told(raw: dict[str, Any]) -> Any:
    """Return "not mined", "refused", or a receipt's gas and its fee, None where that is not said."""
    try:
        found = answers.receipt(raw)
    except answers.MALFORMED:
        return "refused"
    if found is None:
        return "not mined"
    return plain({"gas": found.gas_used, "fee": None if found.gas_price is None else found.fee})
