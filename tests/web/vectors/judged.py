"""Confirmations of results: sets of attesters with their digests, and the calls that bring signatures to the chain."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

from hearth.market.calls import Calls
from hearth.protocol import words
from hearth.protocol.attest import AttesterSet, Signature
from tests.web.vectors import _chance, _drawn
from tests.web.vectors._drawn import terms_words
from tests.web.vectors.network import NETWORK

DRAWN = 4


def cases() -> list[dict[str, Any]]:
    """Return each set with its word of the terms, and a call that confirms a unit."""
    random = _chance.source("judged")
    return [_case(random) for _ in _chance.rows(DRAWN)]


def _case(random: Random) -> dict[str, Any]:
    keys = tuple(sorted(f"0x{random.getrandbits(160):040x}" for _ in range(random.choice((1, 2, 3, 16)))))
    chosen = AttesterSet(keys, random.randrange(1, len(keys) + 1))
    terms = replace(_drawn.drawn_terms(random, _drawn.drawn_policy(random)), judge_data=chosen.judge_data)
    signed = [Signature(place, 27, random.getrandbits(256), random.getrandbits(250)) for place in range(chosen.quorum)]
    index = random.choice((0, 5))
    call = Calls(NETWORK).confirm(words.pack_terms(terms), index, keys, chosen.quorum, signed)
    return {
        "keys": list(keys),
        "quorum": chosen.quorum,
        "judgeData": str(chosen.judge_data),
        "terms": terms_words(terms),
        "index": index,
        "signatures": len(signed),
        "data": f"0x{call.data.hex()}",
    }
