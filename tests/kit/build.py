"""Plain values of the market's types for tests without contracts: name what the test is about, the rest is valid.

Amounts are base units, times Unix seconds. What a test's numbers hang on stands in the test.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hearth.chain.port import ChainPort
from hearth.jobfile import ResolvedSpec
from hearth.jobfile.resolved import ResolvedCompare, ResolvedOutput, ResolvedResources, ResolvedVerify
from hearth.market.contracts import CONTRACTS
from hearth.market.network import Network
from hearth.market.profiles import DEVNET
from hearth.protocol.types import Needs, Node, NodeId, NodeState, Offer, Terms
from hearth.protocol.units import Asset
from hearth.protocol.words import pack_policy

NATIVE = Asset("ETH", 18)
TOKEN = Asset("USDX", 6, "0x" + "70" * 20)
ADDRESSES = {name: f"0x{number:02x}" + "c0" * 19 for number, name in enumerate(CONTRACTS, 1)}


def network(chain: ChainPort, **changes: Any) -> Network:
    """Return the network of a market on `chain` whose contracts lie at ADDRESSES."""
    values: dict[str, Any] = {
        "name": "test",
        "chain_id": chain.chain_id(),
        "genesis_hash": chain.genesis_hash(),
        "contracts": ADDRESSES,
        "asset": NATIVE,
        "policy": pack_policy(DEVNET.policy),
        "deploy_block": 0,
        "node_parameters": DEVNET.node_parameters,
    }
    return Network(**{**values, **changes})


def terms(**changes: Any) -> Terms:
    """Return the terms of a job of one unit and 60 s that asks nothing special."""
    plain = Terms(
        submitter="0x" + "5b" * 20,
        salt=1,
        spec=b"\x33" * 32,
        needs=Needs(),
        ceiling=10**18,
        max_seconds=60,
        deadline=2_000_000_000,
        keeper_fee=10**14,
        policy=pack_policy(DEVNET.policy),
        max_attempts=3,
    )
    return replace(plain, **changes)


def node(number: int, **changes: Any) -> Node:
    """Return a seasoned node with two slots and stake for many leases; `changes` may name fields of its parts too."""
    hot = {name: changes.pop(name) for name in list(changes) if name in NodeState.__dataclass_fields__}
    offer = {name: changes.pop(name) for name in list(changes) if name in Offer.__dataclass_fields__}
    plain = Node(
        id=NodeId(number),
        owner=f"0x{number + 0x100:040x}",
        operator=f"0x{number + 0x200:040x}",
        stake=10**12,
        offer=replace(Offer(slots=2, cores=4, ram_gib=8, ask=5 * 10**6), **offer),
        state=replace(NodeState(r=20 << 20, seasoned=True), **hot),
    )
    return replace(plain, **changes)


def spec(**changes: Any) -> ResolvedSpec:
    """Return the resolved spec of a wasm job of one unit and 20 s without files."""
    values: dict[str, Any] = {
        "version": 1,
        "name": "test",
        "runtime": "wasm",
        "image": "",
        "module": None,
        "command": (),
        "workdir": None,
        "env": {},
        "inputs": (),
        "outputs": (ResolvedOutput(path="/out/result", required=True, max_size=1024),),
        "resources": ResolvedResources(
            gpus=0, vendor="", tier="", exact=False, vram_gib=0, cpus=1, memory_mib=64, disk_gib=1, regions=()
        ),
        "runtime_seconds": 20,
        "fuel_per_second": 1_000_000_000,
        "units": 1,
        "chunk": 1,
        "verify": ResolvedVerify(
            mode="none", compare=ResolvedCompare(kind="hash", file="", atol="", rtol="", minimum="", field="")
        ),
    }
    return ResolvedSpec(**{**values, **changes})
