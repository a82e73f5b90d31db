"""The network file: which contracts on which chain make a market, and what was read back from them at deployment.

Written by the deployment (hearth.market.deployment), read by everything else. Source: commands.md "Network file".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from hearth.base.errors import ConfigError
from hearth.base.files import read_bounded, replace_text
from hearth.base.untrusted_json import MAX_BYTES, read_json
from hearth.market.contracts import CONTRACTS
from hearth.protocol.types import LOCAL_CHAIN_ID, ZERO_ADDRESS
from hearth.protocol.units import NATIVE, Asset

PROTOCOL_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class NodeParameters:
    """The immutables of NodeRegistry: times in seconds, amounts in base units, the ration in bps of total stake."""

    dead_after: int
    ask_notice: int
    unbonding: int
    minimum_stake: int
    fee_reference: int
    liveness_fee: int
    ration_bps: int


@dataclass(frozen=True, slots=True)
class Network:
    """One market. `contracts` are addresses in lower case by name; `policy` is the word at deployment.

    `creations` are the hashes of the transactions that created the contracts, by name, as far as they are known.
    `chain_id` is the chain's now, for transactions; `deployed_chain_id` what it was at deployment, None for the same.
    """

    name: str
    chain_id: int
    genesis_hash: bytes
    contracts: Mapping[str, str]
    asset: Asset
    policy: int
    deploy_block: int
    node_parameters: NodeParameters
    code_hashes: Mapping[str, bytes] = field(default_factory=dict)
    creations: Mapping[str, bytes] = field(default_factory=dict)
    rpc: tuple[str, ...] = ()
    explorer: str | None = None
    gateways: tuple[str, ...] = ()
    protocol_version: int = PROTOCOL_VERSION
    deployed_chain_id: int | None = None

    @property
    def job_chain_id(self) -> int:
        """Return the chain id that ids of jobs are made with: the chain's at deployment."""
        return self.chain_id if self.deployed_chain_id is None else self.deployed_chain_id

    @property
    def local(self) -> bool:
        """Say whether this is a local chain."""
        return self.chain_id == LOCAL_CHAIN_ID

    @property
    def bloom_witness(self) -> bytes | None:
        """Return a transaction whose block must announce logs (`hearth.chain.follow`): Rules logs as it is created."""
        return self.creations.get("Rules")

    @property
    def escrow(self) -> str:
        """Return the address of Escrow."""
        return self.contracts["Escrow"]

    @property
    def nodes(self) -> str:
        """Return the address of NodeRegistry."""
        return self.contracts["NodeRegistry"]

    @property
    def rules(self) -> str:
        """Return the address of Rules."""
        return self.contracts["Rules"]

    @property
    def jobs(self) -> str:
        """Return the address of JobRegistry."""
        return self.contracts["JobRegistry"]

    @property
    def lens(self) -> str:
        """Return the address of Lens."""
        return self.contracts["Lens"]

    @property
    def attesters(self) -> str:
        """Return the address of Attesters."""
        return self.contracts["Attesters"]

    @property
    def steward(self) -> str:
        """Return the address of Steward."""
        return self.contracts["Steward"]

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        parameters = self.node_parameters
        return {
            "name": self.name,
            "chain_id": self.chain_id,
            **({} if self.deployed_chain_id is None else {"deployed_chain_id": self.deployed_chain_id}),
            "genesis_hash": "0x" + self.genesis_hash.hex(),
            "protocol_version": self.protocol_version,
            "contracts": dict(self.contracts),
            "asset": {
                "symbol": self.asset.symbol,
                "decimals": self.asset.decimals,
                "address": self.asset.address,
            },
            "policy": f"{self.policy:#066x}",
            "deploy_block": self.deploy_block,
            "explorer": self.explorer,
            "gateways": list(self.gateways),
            "rpc": list(self.rpc),
            "code_hashes": {name: "0x" + value.hex() for name, value in self.code_hashes.items()},
            "creations": {name: "0x" + value.hex() for name, value in self.creations.items()},
            # Amounts are strings: they pass 2**53.
            "node_parameters": {
                "dead_after": parameters.dead_after,
                "ask_notice": parameters.ask_notice,
                "unbonding": parameters.unbonding,
                "minimum_stake": str(parameters.minimum_stake),
                "fee_reference": str(parameters.fee_reference),
                "liveness_fee": str(parameters.liveness_fee),
                "ration_bps": parameters.ration_bps,
            },
        }


def network_of(raw: Mapping[str, Any], source: str = "the network file") -> Network:
    """Parse the JSON form. Raises ConfigError naming `source` and what is wrong."""
    try:
        version = int(raw["protocol_version"])
        contracts = {name: _address(raw["contracts"][name]) for name in CONTRACTS}
        asset = raw["asset"]
        token = asset["address"]
        deployed = raw.get("deployed_chain_id")
        network = Network(
            name=_text(raw["name"]),
            chain_id=int(raw["chain_id"]),
            genesis_hash=_hash(raw["genesis_hash"]),
            contracts=contracts,
            asset=Asset(_text(asset["symbol"]), int(asset["decimals"]), None if token is None else _address(token)),
            policy=int(raw["policy"], 16),
            deploy_block=int(raw["deploy_block"]),
            node_parameters=NodeParameters(**{key: int(value) for key, value in raw["node_parameters"].items()}),
            code_hashes={str(name): _hash(value) for name, value in raw.get("code_hashes", {}).items()},
            creations={str(name): _hash(value) for name, value in raw.get("creations", {}).items()},
            rpc=tuple(_text(url) for url in raw.get("rpc", ())),
            explorer=None if raw.get("explorer") is None else _text(raw["explorer"]),
            gateways=tuple(_text(url) for url in raw.get("gateways", ())),
            protocol_version=version,
            deployed_chain_id=None if deployed is None else int(deployed),
        )
        if min(network.chain_id, network.job_chain_id, network.deploy_block) < 0:
            raise ValueError("a chain id or its deploy_block is negative")
        if max(network.chain_id, network.job_chain_id) >> 256:
            raise ValueError("a chain id has more than 256 bits")
        if token is None and network.asset.decimals != NATIVE.decimals:
            raise ValueError(f"a coin has {NATIVE.decimals} decimals, not {network.asset.decimals}")
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise ConfigError(
            f"{source} is no network file: {error!r}", code="BAD_NETWORK", hint="use --network FILE"
        ) from error
    if version != PROTOCOL_VERSION:
        raise ConfigError(
            f"{source} is for protocol version {version}; this program speaks {PROTOCOL_VERSION}",
            code="WRONG_VERSION",
            hint="hearth --version",
        )
    return network


def load_network(path: Path) -> Network:
    """Read a network file. Raises ConfigError where it is missing or malformed."""
    return network_in(read_network(path), path)


def read_network(path: Path) -> bytes:
    """Return what a network file holds, as far as it is read. Raises ConfigError NO_NETWORK."""
    try:
        return read_bounded(path, MAX_BYTES)
    except OSError as error:
        raise ConfigError(
            f"the network file {path} cannot be read: {error.strerror}", code="NO_NETWORK", hint="use --network NAME"
        ) from error


def network_in(raw: bytes, path: Path) -> Network:
    """Parse what the network file at `path` holds. Raises ConfigError BAD_NETWORK, WRONG_VERSION."""
    try:
        data = read_json(raw)
    except ValueError as error:
        raise ConfigError(f"{path} is no JSON: {error}", code="BAD_NETWORK", hint="use --network FILE") from error
    return network_of(data, str(path))


def save_network(network: Network, path: Path) -> None:
    """Write a network file, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_text(path, json.dumps(network.as_dict(), indent=2) + "\n")


def _text(raw: object) -> str:
    if not isinstance(raw, str):
        raise TypeError(f"{raw!r} is no text")
    return raw


def _address(raw: str) -> str:
    value = bytes.fromhex(raw.removeprefix("0x"))
    if len(value) != 20:
        raise ValueError(f"{raw} is no address")
    address = "0x" + value.hex()
    if address == ZERO_ADDRESS:
        raise ValueError("an address is zero")
    return address


def _hash(raw: str) -> bytes:
    value = bytes.fromhex(raw.removeprefix("0x"))
    if len(value) != 32:
        raise ValueError(f"{raw} is no hash")
    return value
