"""A market on a real anvil, with the network, the port and the keys that a keeper process has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from eth_account import Account
from eth_utils.crypto import keccak

from hearth.chain.rpc import RpcChain
from hearth.chain.tx import Sender, SenderConfig
from hearth.chain.tx_journal import TxJournal
from hearth.client.session import MAX_FEE
from hearth.market.contracts import CONTRACTS
from hearth.market.network import Network
from hearth.market.profiles import DEVNET
from hearth.protocol import words
from hearth.protocol.types import ZERO_ADDRESS
from hearth.protocol.units import Asset
from keeper.health import KeeperHealth
from keeper.loop import Keeper
from keeper.settings import Settings, parse
from tests.kit.anvil import AnvilEvm
from tests.kit.evm import CHAIN_ID
from tests.kit.world import ETHER, NODES, World

SECRET = bytes.fromhex("5a" * 32)


class LiveMarket:
    """A world on anvil and what is needed to run keepers on it."""

    def __init__(self, folder: Path, *, erc20: bool = False) -> None:
        self.evm = AnvilEvm()
        self.world = World(self.evm, erc20=erc20)
        self.attesters = self.evm.deploy("Attesters", self.world.jobs)
        council, world = self.world.deployer, self.world
        self.steward = self.evm.deploy("Steward", world.nodes, world.rules, council, ZERO_ADDRESS, DEVNET.delay)
        self.folder = folder
        self.url = self.evm.url
        self.account = Account.from_key(SECRET)
        self.evm.set_balance(self.account.address, 10 * ETHER)

    @property
    def address(self) -> str:
        return str(self.account.address).lower()

    def network(self, **changes: Any) -> Network:
        world = self.world
        deployed = (world.escrow, world.nodes, world.rules, world.jobs, world.lens, self.attesters, self.steward)
        contracts = {name: one.address.lower() for name, one in zip(CONTRACTS, deployed, strict=True)}
        token = None if world.token is None else world.token.address.lower()
        values: dict[str, Any] = {
            "name": "test",
            "chain_id": CHAIN_ID,
            "genesis_hash": bytes.fromhex(self.evm.rpc("eth_getBlockByNumber", "0x0", False)["hash"][2:]),
            "contracts": contracts,
            "asset": Asset("TOK" if token else "ETH", 18, token),
            "policy": words.pack_policy(world.policy),
            "deploy_block": 0,
            "node_parameters": NODES,
            "code_hashes": {name: keccak(self.evm.code_at(address)) for name, address in contracts.items()},
            "creations": {name: self.evm.creations[address] for name, address in contracts.items()},
            "rpc": (self.url,),
        }
        return Network(**{**values, **changes})

    def settings(self, **changes: Any) -> Settings:
        data: dict[str, Any] = {
            "network": "test",
            "home": "home",
            "poll": 0.05,
            "work": {"jitter": "0s", "latency": "0s", "max_loss": "unlimited"},
            "limits": {"max_lag": "0s", "wait": "20s"},
            "metrics": {"listen": ""},
        }
        return parse({**data, **changes}, self.folder / "keeper.toml")

    def port(self) -> RpcChain:
        return RpcChain([self.url], chain_id=CHAIN_ID)

    def keeper(self, *, dry: bool = False, port: Any = None, network: Network | None = None, **changes: Any) -> Keeper:
        settings = self.settings(**changes)
        settings.home.mkdir(mode=0o700, exist_ok=True)
        network = network or self.network()
        chain = port or self.port()
        sender = None
        if not dry:
            facts = {"genesis_hash": network.genesis_hash, "address": self.address}
            journal = TxJournal(settings.home / "tx.db", chain_id=network.chain_id, **facts)
            config = SenderConfig(MAX_FEE, timeout=20.0, poll=0.05)
            sender = Sender(chain, self.account, journal, config, chain_id=network.chain_id)
        return Keeper(settings, network, chain, sender, KeeperHealth(60.0))

    def warp(self, seconds: int) -> None:
        """Move time on by `seconds` and mine a block there."""
        self.evm.catch_up()
        self.evm.warp(seconds)
        self.evm.rpc("evm_setNextBlockTimestamp", self.evm.now)
        self.evm.rpc("evm_mine")

    def close(self) -> None:
        self.evm.close()
