"""What an owner of nodes writes and signs: offers, manifests, addresses, calls, and what keeps a node from work."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from random import Random
from typing import Any

from eth_utils.address import to_checksum_address

from hearth.base.errors import HearthError
from hearth.client.money import recipient
from hearth.client.nodes.obstacles import waits_of
from hearth.market.calls import Calls
from hearth.market.manifest import Manifest, carried
from hearth.market.network import Network
from hearth.protocol import words
from hearth.protocol.gpu_tiers import TIERS, vendor_of_slug
from hearth.protocol.runtimes import RUNTIMES
from hearth.protocol.types import NodeId, Runtime
from hearth.protocol.units import GIB
from hearth.storage import canonical
from tests.web.vectors import _chance
from tests.web.vectors._drawn import NOW, drawn_node, drawn_offer, node_fields
from tests.web.vectors.calls import TOKEN, _plain
from tests.web.vectors.network import NETWORK
from worker.gpu.nvidia import device_of
from worker.gpu.port import GpuInfo
from worker.settings import Machine, make_offer, parse

DRAWN = 10
LARGE = 1 << 60
"""Bytes that a machine has of everything: what is written is then what is offered."""
WISH = {
    "price": "0.60/h",
    "country": "de",
    "slots": "2",
    "runtimes": ["wasm"],
    "gpus": "0",
    "model": "",
    "vram": "",
    "cores": "4",
    "memory": "16GiB",
    "disk": "100GiB",
}
"""A form of the page that is in order."""
DRAWN_TEXTS: Mapping[str, tuple[Any, ...]] = {
    "price": (
        "0.60/h",
        "1.20 ETH/h",
        "5 gwei/s",
        "0/h",
        "1",
        "-1/h",
        "1e3/h",
        "1000000/s",
        "0.000001/d",
        " 2/h ",
        "1 XYZ/h",
    ),
    "country": ("de", "US", " in ", "uk", "xx", "", "deu"),
    "slots": ("1", "63", "64", "0"),
    "runtimes": (["wasm"], ["docker"], ["wasm", "docker"], []),
    "cores": ("1", "1023", "1024", "0"),
    "memory": ("1GiB", "1.5 GiB", "1536MiB", "512MiB", "64TiB", "16GB", "16", ""),
    "disk": ("2GiB", "200TiB", "1GiB", "1023MiB", "1B", "ten"),
}


def cases() -> dict[str, Any]:
    """Return each of them."""
    random = _chance.source("owners")
    token = replace(NETWORK, asset=TOKEN)
    return {
        "networks": {"coin": NETWORK.as_dict(), "token": token.as_dict()},
        "offers": [_offer(wish) for wish in (WISH, *_changed(random))],
        "manifests": [_manifest(random) for _ in range(6)],
        "recipients": [_recipient(text) for text in _addresses()],
        "calls": [_calls(random, network) for network in (NETWORK, token) for _ in _chance.rows(1)],
        "waits": [_waits(drawn_node(random)) for _ in _chance.rows(DRAWN)],
        "parameters": {name: str(value) for name, value in asdict(NETWORK.node_parameters).items()},
    }


def _changed(random: Random) -> list[dict[str, Any]]:
    single = [{**WISH, name: text} for name, texts in DRAWN_TEXTS.items() for text in texts]
    gpus = [
        {**WISH, "gpus": str(random.choice((1, 2, 63))), "model": slug, "vram": str(random.choice((1, 24, 1023)))}
        for slug in random.sample(sorted(TIERS), 8)
    ]
    return single + gpus


def _offer(wish: Mapping[str, Any]) -> dict[str, Any]:
    """Return a form with its offer's word, or the field that worker.toml is refused for."""

    def made() -> str:
        slots, count = int(wish["slots"]), int(wish["gpus"])
        data = {
            "network": "test",
            "home": "home",
            "rpc": ["http://127.0.0.1:1"],
            "account": {"payout": "0x" + "11" * 20, "keystore": "key.json", "password_file": "password"},
            "offer": {
                "price": wish["price"],
                "country": wish["country"],
                "slots": slots,
                "gpus": "all" if count else "none",
                "gpus_per_slot": count,
                "cores": int(wish["cores"]),
                "memory": wish["memory"],
                "disk": wish["disk"],
                "runtimes": wish["runtimes"],
            },
        }
        settings = parse(data, Path("worker.toml"))
        flags = Runtime(sum(RUNTIMES[name].flag for name in wish["runtimes"]))
        # `wanted_runtimes` refuses an offer without any, wherever it comes from.
        if not flags:
            raise HearthError("no runtime", field="offer.runtimes")
        gpus = tuple(_gpu(wish, index) for index in range(slots * count))
        return hex(words.pack_offer(make_offer(settings, NETWORK.asset, Machine(1 << 20, LARGE, LARGE, flags, gpus))))

    return {"wish": dict(wish), **_or_field(made)}


def _or_field(made: Callable[[], str]) -> dict[str, Any]:
    try:
        return {"word": made()}
    except HearthError as error:
        # Of the file as a whole its refusal names each field that is at fault at the beginning of a line.
        found = error.details.get("field") or re.search(r"offer\.\w+", error.message)
        assert found is not None, error.message
        return {"field": found if isinstance(found, str) else found.group()}


def _gpu(wish: Mapping[str, Any], index: int) -> GpuInfo:
    slug, size = wish["model"], int(wish["vram"])
    vendor = vendor_of_slug(slug)
    assert vendor is not None
    return GpuInfo(index, slug, device_of(f"GPU-{index}"), vendor, size * GIB, size, TIERS[slug], (9, 0), "1", (), ())


def _manifest(random: Random) -> dict[str, Any]:
    """Return a call that carries a manifest, or another document than it names, and what a reader finds."""
    country = random.choice(("de", "in", "us"))
    document = canonical.encode(Manifest("" if random.random() < 0.5 else "hearth 1", country).document())
    digest = hashlib.sha256(document).digest()
    other = random.random() < 0.3
    calls, offer = Calls(NETWORK), drawn_offer(random)
    sent = document[:-1] if other else document + b"}" if random.random() < 0.5 else document
    call = calls.register("0x" + "22" * 20, offer, digest, 1, sent)
    if random.random() < 0.5:
        call = calls.update_offer(NodeId(3), offer, digest, sent)
    found = carried(call.data, digest)
    first = canonical.encode(Manifest(country=country).document())
    return {
        "data": f"0x{call.data.hex()}",
        "digest": f"0x{digest.hex()}",
        "carried": None if found is None else f"0x{found.hex()}",
        "country": country,
        "first": {"document": f"0x{first.hex()}", "digest": f"0x{hashlib.sha256(first).hexdigest()}"},
    }


def _addresses() -> list[str]:
    good = "0x" + "5a" * 19 + "cd"
    checked = to_checksum_address(good)
    return [
        good,
        good.upper().replace("0X", "0x"),
        checked,
        checked.swapcase().replace("0X", "0x"),
        "0x" + "00" * 20,
    ] + [
        *NETWORK.contracts.values(),
        *("", "0x", "0x12", good[2:], "vitalik.eth", good + "0", f" {good}"),
    ]


def _recipient(text: str) -> dict[str, Any]:
    try:
        return {"text": text, "address": recipient(text, NETWORK)}
    except HearthError as error:
        return {"text": text, "code": error.code}


def _calls(random: Random, network: Network) -> dict[str, Any]:
    calls, offer, node = Calls(network), drawn_offer(random), NodeId(random.randrange(1, 2**32))
    if random.random() < 0.8:
        offer = replace(offer, pending=False)
    account = f"0x{random.getrandbits(160):040x}"
    amount, ask = random.getrandbits(80), random.getrandbits(80)
    document = canonical.encode(Manifest(country="de").document())
    digest = hashlib.sha256(document).digest()
    made = {
        "register": calls.register(account, offer, digest, amount, document),
        "add_stake": calls.add_stake(node, account, amount),
        "update_offer": calls.update_offer(node, offer, digest, document),
        "set_ask": calls.set_ask(node, ask),
        "set_operator": calls.set_operator(node, account),
        "offer_owner": calls.offer_owner(node, account),
        "accept_owner": calls.accept_owner(node),
        "exit_start": calls.exit_start(node),
        "exit_cancel": calls.exit_cancel(node),
        "exit_finish": calls.exit_finish(node),
    }
    native = network.asset.address is None
    return {
        "network": "coin" if native else "token",
        "offer": hex(words.pack_offer(offer)),
        "node": node,
        "account": account,
        "amount": str(amount),
        "ask": str(ask),
        "document": f"0x{document.hex()}",
        "digest": f"0x{digest.hex()}",
        "made": {name: _plain(call) for name, call in made.items()},
        "approve": None if native else _plain(calls.approve_stake(amount)),
    }


def _waits(node: Any) -> dict[str, Any]:
    return {
        "node": node_fields(node),
        "now": NOW,
        "waits": [dict(one) for one in waits_of(node, NOW, NETWORK.node_parameters, NETWORK.asset)],
    }
