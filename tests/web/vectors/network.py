"""Network files: good ones with what is read from them, and each field missing or wrong."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from hearth.base.errors import HearthError
from hearth.market.contracts import CONTRACTS
from hearth.market.network import Network, NodeParameters, network_of
from hearth.protocol.units import Asset

NETWORK = Network(
    name="devnet",
    chain_id=31_337,
    genesis_hash=bytes(range(32)),
    contracts={name: "0x" + bytes((at + 1,) * 20).hex() for at, name in enumerate(CONTRACTS)},
    asset=Asset("ETH", 18, None),
    policy=2**255 + 12_345,
    deploy_block=7,
    node_parameters=NodeParameters(600, 3_600, 86_400, 10**17, 2**70, 10**12, 100),
    code_hashes={name: bytes((at,) * 32) for at, name in enumerate(CONTRACTS)},
    rpc=("http://127.0.0.1:8545", "https://rpc.example/key"),
    gateways=("http://127.0.0.1:8080",),
)


def cases() -> list[dict[str, Any]]:
    """Return each file, all but the first by its changes, with what the library reads, or the code of its refusal."""
    good, *others = _files()
    return [{"in": good, **_read(good)}, *({**_changes(good, one), **_read(one)} for one in others)]


def _changes(good: dict[str, Any], one: dict[str, Any]) -> dict[str, Any]:
    """Return what a file has otherwise than the good one, and what it lacks."""
    changed = {name: value for name, value in one.items() if name not in good or good[name] != value}
    return {"with": changed, "without": [name for name in good if name not in one]}


def _files() -> Iterator[dict[str, Any]]:
    good = NETWORK.as_dict()
    yield good
    yield {**good, "deployed_chain_id": 1, "explorer": "https://explorer.example"}
    yield {**good, "asset": {"symbol": "USDC", "decimals": 6, "address": "0x" + "Ab" * 20}}
    yield {name: value for name, value in good.items() if name not in ("rpc", "gateways", "explorer", "code_hashes")}
    yield {**good, "protocol_version": 2}
    needed = ("name", "chain_id", "genesis_hash", "protocol_version", "contracts", "asset", "policy", "deploy_block")
    for name in (*needed, "node_parameters"):
        yield {key: value for key, value in good.items() if key != name}
        yield {**good, name: []}
    for name in CONTRACTS:
        for wrong in (None, "0x", "0x" + "00" * 20, "0x" + "11" * 19, "0x" + "zz" * 20)[: 5 if name == "Escrow" else 1]:
            one = copy.deepcopy(good)
            one["contracts"][name] = wrong
            yield one
    for name in good["node_parameters"]:
        one = copy.deepcopy(good)
        del one["node_parameters"][name]
        yield one
    for wrong in (-1, 2**256, "-5", "x", None):
        yield {**good, "chain_id": str(wrong) if isinstance(wrong, int) else wrong}
    for wrong in ("0x12", "xyz", "0x" + "1" * 63 + "g"):
        yield {**good, "genesis_hash": wrong}
    yield {**good, "policy": "word"}
    for name in ("rpc", "gateways"):
        yield {**good, name: [7]}
    yield {**good, "explorer": {}}
    yield {**good, "asset": {**good["asset"], "symbol": 3}}
    yield {**good, "asset": {"symbol": "ETH", "decimals": 18}}
    # A coin has 18 decimals, a token as many as it says, up to 36.
    for decimals in (0, 6, 17, 19, 21, 36, 37, 255, -1, None):
        yield {**good, "asset": {**good["asset"], "decimals": decimals}}
    for decimals in (0, 18, 36, 37, 255, -1, None):
        yield {**good, "asset": {"symbol": "USDC", "decimals": decimals, "address": "0x" + "ab" * 20}}


def _read(raw: dict[str, Any]) -> dict[str, Any]:
    try:
        network = network_of(raw)
    except HearthError as error:
        return {"code": error.code}
    return {
        "chain_id": str(network.chain_id),
        "job_chain_id": str(network.job_chain_id),
        "contracts": dict(network.contracts),
        "asset": [network.asset.symbol, network.asset.decimals, network.asset.address],
        "policy": str(network.policy),
        "stake": str(network.node_parameters.minimum_stake),
        "hashes": {name: "0x" + value.hex() for name, value in network.code_hashes.items()},
        "rpc": list(network.rpc),
        "local": network.local,
    }
