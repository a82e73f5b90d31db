"""What a contract can refuse with, read from its source."""

from __future__ import annotations

import re

from hearth.protocol.reasons import GATE, REASONS
from hearth.protocol.types import Gate
from tests.kit.evm import CONTRACTS

_NUMBERS = {reason.name: number for number, reason in REASONS.items()}


def reasons_in(contract: str) -> set[int]:
    """Return the numbers of the reasons that a contract's source names, a gate's where it adds to `reasons.GATE`.

    Raises KeyError for a name that the table does not have.
    """
    source = (CONTRACTS / f"{contract}.vy").read_text(encoding="utf-8")
    names = set(re.findall(r"\breasons\.([A-Z][A-Z_]*)", source))
    gates = {GATE + gate for gate in Gate if Gate.FITS < gate < Gate.SUBMITTER} if "GATE" in names else set()
    return {_NUMBERS[name] for name in names - {"GATE"}} | gates
