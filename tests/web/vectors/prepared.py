"""Calls that commands prepare for another machine: what the library reads of them, and refuses of altered ones."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

from hearth.base.errors import RefusedError
from hearth.chain.port import Call
from hearth.client.prepared import Prepared, read_prepared
from hearth.market.abi import codec
from hearth.market.calls import Calls
from hearth.market.changes import Change, ChangeOp
from hearth.market.network import Network
from hearth.protocol import parents, words
from hearth.protocol.formulas import escrow_at_post
from hearth.protocol.parents import Condition, Parent
from hearth.protocol.types import SENTINEL, JobId, NodeId, TermsFlag
from tests.web.vectors import _chance, _drawn
from tests.web.vectors._plain import plain
from tests.web.vectors.calls import TOKEN
from tests.web.vectors.network import NETWORK

OWNER = _drawn.SUBMITTER
OTHER = "0x" + "0d" * 20
DOCUMENT = b'{"country":"de","gateways":["https://node.example"],"gpus":[],"software":"","version":1}'
_NODE = NodeId(7)


def cases() -> dict[str, Any]:
    """Return both network files, documents of owners with what the library reads or refuses, and those of others."""
    random = _chance.source("prepared")
    networks = {"coin": NETWORK, "token": replace(NETWORK, asset=TOKEN)}
    return {
        "networks": {name: network.as_dict() for name, network in networks.items()},
        "owners": [
            {"network": name, "document": document, **_read(document, network)}
            for name, network in networks.items()
            for document in _owned(random, network)
        ],
        "others": [
            {"network": name, **case}
            for name, network in networks.items()
            for case in (*_jobs(random, network), *_governed(random, network))
        ],
    }


def _read(document: dict[str, Any], network: Network) -> dict[str, Any]:
    """Return what the library reads of a document, or the page's code of its refusal."""
    try:
        prepared, function, arguments = read_prepared(document, network, "tx.json")
    except RefusedError as refused:
        return {"code": refused.code}
    except ValueError:
        return {"code": "BAD_TX"}
    return {"function": function, "args": _plain(arguments), "pays": str(prepared.paid)}


def _plain(arguments: Any) -> dict[str, Any]:
    return {name: str(value) if isinstance(value, int) else plain(value) for name, value in arguments.items()}


def _owned(random: Random, network: Network) -> Iterator[dict[str, Any]]:
    """Yield a document of each call of an owner, and of one call each way in which it can be wrong."""
    calls, native = Calls(network), network.asset.address is None
    offer = _drawn.drawn_node(random).offer
    stake, manifest = random.getrandbits(70), hashlib.sha256(DOCUMENT).digest()
    found = [
        (calls.register(OTHER, offer, manifest, stake, DOCUMENT), stake),
        (calls.register(OTHER, offer, manifest, stake), stake),
        (calls.add_stake(_NODE, OWNER, stake), stake),
        (calls.update_offer(_NODE, offer, manifest, DOCUMENT), 0),
        (calls.set_ask(_NODE, 12_345), 0),
        (calls.set_operator(_NODE, OTHER), 0),
        (calls.offer_owner(_NODE, OTHER), 0),
        (calls.accept_owner(_NODE), 0),
        (calls.exit_start(_NODE), 0),
        (calls.exit_cancel(_NODE), 0),
        (calls.exit_finish(_NODE), 0),
        (calls.withdraw(OWNER, 10**17), 0),
    ]
    documents = [_document(call, network, 0 if native else takes) for call, takes in found]
    yield from documents
    first, added = documents[0], documents[2]
    yield {**first, "data": first["data"] + "00"}
    yield {**first, "data": first["data"][:-2] + "00"}
    yield {**added, "data": added["data"] + "00" * 32}
    yield {**added, "data": added["data"][:10] + "01" + added["data"][12:]}
    yield {**added, "data": "0x12345678" + added["data"][10:]}
    yield {**added, "data": added["data"][:-2]}
    yield {**added, "value": str(int(added["value"]) + 1)}
    yield {**added, "approve": str(int(added["approve"]) + 1)}
    yield {**added, "value": added["approve"], "approve": added["value"]}
    yield {**documents[4], "value": "1"}
    yield {**added, "value": "-1"}
    yield {**added, "chain_id": network.chain_id + 1}
    yield {**added, "to": OTHER}
    yield {**added, "from": "0x12"}
    yield {**added, "action": "Pay me"}
    yield {name: value for name, value in added.items() if name != "approve"}


def _document(call: Call, network: Network, approve: int = 0, sender: str = OWNER) -> dict[str, Any]:
    return {**Prepared("call", sender, call, approve, "key").document(network)}


def _jobs(random: Random, network: Network) -> Iterator[dict[str, Any]]:
    calls, native = Calls(network), network.asset.address is None
    for count in (0, 2):
        listed = parents.pack_parents([Parent(JobId(random.randbytes(32)), Condition.SUCCESS) for _ in range(count)])
        drawn = _drawn.drawn_terms(random, _drawn.drawn_policy(random))
        changed = {"parents_hash": parents.parents_hash(listed), "ceiling": max(1, drawn.ceiling)}
        terms = replace(drawn, replicas=1, flags=TermsFlag(0), **changed)
        packed, takes = words.pack_terms(terms), escrow_at_post(terms)
        post = _document(calls.post(terms, listed), network, 0 if native else takes)
        yield _other("JobRegistry", "post", post, {"pays": str(takes)})
        for index in (0, SENTINEL) if count else (3,):
            yield _other(
                "JobRegistry", "cancel", _document(calls.cancel(packed, index), network), {"index": str(index)}
            )
            yield _other(
                "JobRegistry", "accept", _document(calls.accept(packed, index), network), {"index": str(index)}
            )


def _governed(random: Random, network: Network) -> Iterator[dict[str, Any]]:
    calls = Calls(network)
    change = Change(ChangeOp.SET_MINIMUM_STAKE, random.getrandbits(80), 3)
    for name, call in {
        "queue": calls.queue(change),
        "execute": calls.execute(change),
        "drop": calls.drop(change.id),
        "drop_previous_policy": calls.steward_drop_previous_policy(),
        "pause": calls.steward_pause(posts=True),
        "accept_council": calls.accept_council(),
        "accept_governor": calls.steward_accept_governor(registrations=True),
    }.items():
        yield _other("Steward", name, _document(call, network), {"change": "0x" + change.id.hex()})


def _other(contract: str, function: str, document: dict[str, Any], about: dict[str, Any]) -> dict[str, Any]:
    told = codec(contract).decode_input(bytes.fromhex(document["data"][2:]))
    assert told is not None and told[0] == function
    return {"contract": contract, "function": function, "document": document, **about}
