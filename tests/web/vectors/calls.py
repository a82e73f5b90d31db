"""What a submitter signs in the page: calls with drawn terms, of a market in the chain's coin and of one in a token."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

from hearth.chain.port import Call
from hearth.market.calls import Calls
from hearth.market.network import Network
from hearth.protocol import parents, words
from hearth.protocol.parents import Condition, Parent
from hearth.protocol.types import SENTINEL, JobId
from hearth.protocol.units import Asset
from tests.web.vectors import _chance, _drawn
from tests.web.vectors._drawn import terms_words
from tests.web.vectors.network import NETWORK

DRAWN = 2
TOKEN = Asset("DEV", 6, "0x" + "7e" * 20)


def cases() -> dict[str, Any]:
    """Return both network files, and each call by its kind."""
    random = _chance.source("calls")
    token = replace(NETWORK, asset=TOKEN)
    found = [_drawn_case(random, network) for network in (NETWORK, token) for _ in _chance.rows(DRAWN)]
    return {"networks": {"coin": NETWORK.as_dict(), "token": token.as_dict()}, "cases": found}


def _drawn_case(random: Random, network: Network) -> dict[str, Any]:
    policy = _drawn.drawn_policy(random)
    count = random.choice((0, 0, 1, 3))
    packed = parents.pack_parents(
        [Parent(JobId(random.randbytes(32)), random.choice([*Condition])) for _ in range(count)]
    )
    terms = replace(_drawn.drawn_terms(random, policy), parents_hash=parents.parents_hash(packed))
    calls, index = Calls(network), random.choice((0, 7, SENTINEL))
    amount, to = random.getrandbits(random.choice((8, 90, 256))), f"0x{random.getrandbits(160):040x}"
    native = network.asset.address is None
    return {
        "network": "coin" if native else "token",
        "terms": terms_words(terms),
        "parents": [f"0x{one.hex()}" for one in packed],
        "index": str(index),
        "to": to,
        "amount": str(amount),
        "post": _plain(calls.post(terms, packed)),
        "approve": None if native else _plain(calls.approve_post(terms)),
        "cancel": _plain(calls.cancel(words.pack_terms(terms), index)),
        "accept": _plain(calls.accept(words.pack_terms(terms), index)),
        "withdraw": _plain(calls.withdraw(to, amount)),
    }


def _plain(call: Call) -> dict[str, str]:
    return {"to": call.to.lower(), "data": f"0x{call.data.hex()}", "value": str(call.value), "label": call.label}
