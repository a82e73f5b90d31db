"""What a wallet is asked to sign, as `hearth job explain` tells it: sentence, arguments, hash, the job's four words."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

from hearth.base.errors import HearthError
from hearth.client.explain.calldata import four_words
from hearth.client.explain.explaining import explain
from hearth.client.prepared import Prepared
from hearth.market.calls import Calls, Upkeep, UpkeepOp
from hearth.market.changes import Change, ChangeOp
from hearth.market.network import Network
from hearth.protocol import words
from hearth.protocol.parents import parents_hash
from hearth.protocol.types import NodeId, TermsFlag, Unit
from tests.web.vectors import _chance, _drawn, prepared
from tests.web.vectors.calls import TOKEN
from tests.web.vectors.network import NETWORK


def cases() -> dict[str, Any]:
    """Return files of calls and calls as data alone, with what the library tells of them or the code that refuses."""
    random = _chance.source("told of calls")
    networks = {"coin": NETWORK, "token": replace(NETWORK, asset=TOKEN)}
    texts = [("coin", text) for text in _texts(NETWORK)]
    # Of a market in a token most is told in the same words.
    texts += [("token", text) for text in _chance.some(random, list(_texts(networks["token"])), 12)]
    alone = [
        {"network": name, "to": call.to, "data": "0x" + call.data.hex(), **_told("0x" + call.data.hex(), network)}
        for name, network in networks.items()
        for call in _chance.some(random, list(_alone(random, network)), 14 if name == "coin" else 4)
    ]
    ids = [bytes(32), bytes([255]) * 32, *(random.randbytes(32) for _ in range(20))]
    return {
        "networks": {name: network.as_dict() for name, network in networks.items()},
        "files": [{"network": name, "text": text, **_told(text, networks[name])} for name, text in texts],
        "alone": alone,
        "words": [{"job": "0x" + job.hex(), "words": four_words(job)} for job in ids],
    }


def _told(text: str, network: Network) -> dict[str, Any]:
    try:
        report = explain(text, network)
    except HearthError as error:
        return {"code": error.code}
    kept = ("what", "data_hash", "job", "four_words")
    return {
        "calls": [
            {**{name: one[name] for name in kept}, "rows": [[row["name"], row["text"]] for row in one["rows"]]}  # type: ignore[literal-required]
            for one in report["calls"]
        ]
    }


def _texts(network: Network) -> Iterator[str]:
    """Yield the files of the vectors `prepared`, a policy that is announced, and approvals before what they are for."""
    found, name = prepared.cases(), "coin" if network.asset.address is None else "token"
    for case in (*found["owners"], *found["others"]):
        if case["network"] == name:
            yield json.dumps(case["document"])
    calls, me = Calls(network), prepared.OWNER
    policy = words.pack_policy(_drawn.drawn_policy(_chance.source("announced")))
    queued = calls.queue(Change(ChangeOp.SET_POLICY, policy, 1))
    yield json.dumps(Prepared("call", me, queued, 0, "key").document(network))
    if network.asset.address is not None:
        takes = 10**18
        stake = Prepared("call", me, calls.add_stake(NodeId(7), me, takes), takes, "key").document(network)
        for amount, spender in ((takes, network.nodes), (takes + 1, network.nodes), (takes, network.jobs)):
            first = Prepared("call", me, calls.approve(spender, amount), 0, "key").document(network)
            yield json.dumps({"prepared": [first, stake]})
        yield json.dumps({"prepared": [stake, first]})


def _alone(random: Random, network: Network) -> Iterator[Any]:
    """Yield calls that a page has signed, as a wallet shows them."""
    calls = Calls(network)
    drawn = _drawn.drawn_terms(random, _drawn.drawn_policy(random))
    terms = replace(drawn, replicas=1, flags=TermsFlag(0), ceiling=max(1, drawn.ceiling), parents_hash=parents_hash([]))
    packed = words.pack_terms(terms)
    yield calls.post(terms, [])
    yield calls.cancel(packed, 1)
    yield calls.accept(packed, 0)
    yield calls.top_up(terms, 0, Unit(), 60)
    yield calls.settle(packed, 2, prepared.OTHER)
    yield calls.close(packed, 2)
    yield calls.reclaim(packed, 2)
    yield calls.expire(packed, 2)
    yield calls.unlock(packed, [])
    yield calls.check_liveness([NodeId(1), NodeId(4)], prepared.OTHER)
    yield calls.perform_upkeep([Upkeep(UpkeepOp.SETTLE, packed, 3), Upkeep(UpkeepOp.LIVENESS, None, 2, 5)])
    yield calls.withdraw(prepared.OTHER, 10**17)
    # Calls of other contracts, and of ours that nobody prepares, are told by nobody.
    yield calls.propose(packed, 0, NodeId(1))
    yield calls.drop_previous_policy()
