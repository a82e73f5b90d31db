"""Coded amounts of a policy, both ways, and those that have no code."""

from __future__ import annotations

from typing import Any

from hearth.protocol import words
from tests.web.vectors import _chance
from tests.web.vectors._plain import outcome


def cases() -> dict[str, Any]:
    """Return amounts with their codes and codes with their amounts, or the refusal."""
    random = _chance.source("amounts")
    drawn = [random.randrange(1024) * 10 ** random.randrange(32) for _ in range(60)]
    amounts = [
        0,
        1,
        1023,
        1024,
        1030,
        10_230,
        10_231,
        10**18,
        1023 * 10**31,
        1023 * 10**32,
        10**34,
        10**35,
        -1,
        -10,
        *drawn,
    ]
    amounts += [random.getrandbits(random.randrange(1, 130)) for _ in range(20)]
    codes = [0, 1, 1023, 1024, 1 << 15, (1 << 15) - 1, 1 << 20, -1, *(random.getrandbits(15) for _ in range(40))]
    return {
        "encode": [
            {"in": str(amount), **outcome(lambda amount=amount: words.encode_amount(amount))} for amount in amounts
        ],
        "decode": [{"in": code, **outcome(lambda code=code: str(words.decode_amount(code)))} for code in codes],
    }
