"""The real contracts behind the port, in this process: what a client reads, signs and sends runs in an EVM.

`EvmChain` is the scripted chain of `tests.kit.fake_chain` whose calls and transactions the contracts of `tests.kit.evm`
answer. A transaction is mined at once. Gas costs nothing in the EVM, so that balances move by values alone, and a call
at an earlier block is answered from the newest state. `RealMarket` is a whole market on it, with a user's home.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pyrevm
import pytest
import wasmtime
from eth_utils.address import to_checksum_address
from eth_utils.crypto import keccak

from hearth.chain import keys
from hearth.chain.port import Block, BlockRef, Call, Transaction, refused
from hearth.client import Client
from hearth.config.settings import Settings
from hearth.protocol import words
from hearth.protocol.types import Billing, JobId, Outcome, Terms
from hearth.protocol.units import Asset
from tests.kit import build
from tests.kit.attesters import Attested
from tests.kit.evm import BLOCK_GAS, Contract, Evm, Reverted
from tests.kit.fake_chain import Effect, Event, FakeChain
from tests.kit.steward import Stewarded
from tests.kit.world import NODES, POLICY, World

MODULE = bytes(wasmtime.wat2wasm('(module (memory (export "memory") 1) (func (export "_start")))'))
"""A program that does nothing."""
WEALTH = 10**24
"""Wei of each account, beside what a test gives or takes."""
IN_TOKEN = pytest.mark.parametrize("market", [True], indirect=True, ids=["token"])
"""The test's `market` has a token for its asset."""
IN_BOTH = pytest.mark.parametrize("market", [False, True], indirect=True, ids=["coin", "token"])
"""The test is run on a market in the native coin, and on one in a token."""


class ChainEvm(Evm):
    """An `Evm` each of whose transactions and deployments is a block of its chain."""

    chain: EvmChain | None = None

    def raw_call(
        self, to: str | Contract, data: bytes = b"", *, sender: str | None = None, value: int = 0, gas: int = BLOCK_GAS
    ) -> bytes:
        """Mine one transaction and return the raw answer."""
        assert self.chain is not None
        address = to.address if isinstance(to, Contract) else to
        return self.chain.transact(address, data, sender or self.deployer, value)

    def answer(self, call: Call, block: Block, sender: str | None) -> bytes:
        """Return what a call comes to in a block; it changes nothing."""
        with self.isolated():
            self.block, self.now = block.number, block.timestamp
            who = to_checksum_address(sender) if sender else self.deployer
            if self.code_at(who):
                # Any account may be the sender of eth_call; the machine refuses one with code (EIP-3607).
                self.settle()
                info = self._machine.basic(who)
                self._machine.insert_account_info(who, pyrevm.AccountInfo(nonce=info.nonce, balance=info.balance))
                self._open_block()
            return self._run(to_checksum_address(str(call.to)), call.data, who, call.value, BLOCK_GAS, static=False)

    def execute(self, tx: Transaction, block: Block) -> bytes:
        """Run a transaction in a block."""
        self.block, self.now = block.number, block.timestamp
        to, sender = to_checksum_address(str(tx.to)), to_checksum_address(tx.sender)
        return self._run(to, tx.data, sender, tx.value, BLOCK_GAS, static=False)

    @property
    def events(self) -> tuple[Event, ...]:
        """Return what the last transaction that succeeded logged, as it stands on the chain."""
        return tuple(
            Event(log.address.lower(), tuple(bytes(topic) for topic in log.data[0]), bytes(log.data[1]))
            for log in self._machine.result.logs
        )

    def _create(self, code: bytes, sender: str, value: int) -> tuple[str, int]:
        assert self.chain is not None
        made = super()._create(code, sender, value)
        self.chain.mine(self.events)
        return made


class EvmChain(FakeChain):
    """A chain whose state is an `Evm`'s. `warp` of that passes time; the next block, or `mine`, sees it."""

    def __init__(self, evm: ChainEvm) -> None:
        super().__init__(evm.chain_id, start=evm.now)
        self.evm = evm
        self._answered: bytes | Reverted = b""
        evm.chain = self

    def mine(
        self, events: Sequence[Event] = (), *, timestamp: int | None = None, include_pool: bool = True, count: int = 1
    ) -> Block:
        """Mine at the EVM's time, or a second after the newest block."""
        at = max(self.evm.now, self._blocks[-1].block.timestamp + count) if timestamp is None else timestamp
        block = super().mine(events, timestamp=at, include_pool=include_pool, count=count)
        self.evm.block, self.evm.now = block.number, block.timestamp
        return block

    def transact(self, to: str, data: bytes, sender: str, value: int) -> bytes:
        """Mine a transaction that nobody signed and return its raw answer. Raises Reverted."""
        who = sender.lower()
        nonce = self._blocks[-1].nonces.get(who, 0)
        digest = keccak(b"unsigned" + bytes.fromhex(who[2:]) + nonce.to_bytes(8, "big"))
        fees = (BLOCK_GAS, 2 * self.base_fee, self.priority_fee)
        self._pool[who, nonce] = (Transaction(digest, who, to.lower(), nonce, value, data, *fees, None, None), b"")
        self.mine()
        if isinstance(self._answered, Reverted):
            raise self._answered
        return self._answered

    def give(self, account: str, wei: int) -> None:
        """Let an account hold so much, and pay for any gas."""
        self.set_balance(account, 10**30)
        self.evm.set_balance(to_checksum_address(account), wei)

    def send_raw(self, raw: bytes) -> bytes:
        """Take a signed transaction and mine it at once."""
        digest = super().send_raw(raw)
        self.mine()
        return digest

    def call(self, call: Call, block: BlockRef = "latest", *, sender: str | None = None) -> bytes:
        """Ask the contract, in the newest state."""
        self._meet("call")
        return self._ask(call, self._known(block).block, sender)

    def estimate_gas(self, call: Call, sender: str) -> int:
        """Return the scripted estimate, after the contract had its chance to refuse."""
        self._meet("estimate_gas")
        self._ask(call, self._blocks[-1].block, sender)
        return self.gas_estimate

    def code(self, address: str, block: BlockRef = "latest") -> bytes:
        """Return the runtime code."""
        self._meet("code")
        return self.evm.code_at(to_checksum_address(address))

    def balance(self, address: str, block: BlockRef = "latest") -> int:
        """Return an account's native balance, now."""
        self._meet("balance")
        return self.evm.balance(to_checksum_address(address))

    def _ask(self, call: Call, block: Block, sender: str | None) -> bytes:
        try:
            return self.evm.answer(call, block, sender)
        except Reverted as error:
            raise refused(error.reason, label=call.label, data=error.data) from error

    def _run(self, tx: Transaction, block: Block) -> Effect:
        try:
            self._answered = self.evm.execute(tx, block)
        except Reverted as error:
            self._answered = error
            return Effect(ok=False)
        return Effect(events=self.evm.events, gas_used=self.evm.last_gas)


class RealMarket:
    """A market on the real contracts, whose deployer governs it, and the home of somebody who uses it.

    The home has the keys "dev", who submits, and "provider", who owns nodes. `told` is what their client says.
    """

    def __init__(self, home: Path, *, erc20: bool = False, **settings: Any) -> None:
        self.evm = ChainEvm()
        self.chain = EvmChain(self.evm)
        self.world = World(self.evm, erc20=erc20)
        self.attested = Attested(self.world)
        self.stewarded = Stewarded(self.world)
        world = self.world
        made = {
            "Escrow": world.escrow,
            "NodeRegistry": world.nodes,
            "Rules": world.rules,
            "JobRegistry": world.jobs,
            "Lens": world.lens,
            "Attesters": self.attested.contract,
            "Steward": self.stewarded.contract,
        }
        self.asset = Asset("TEST", 18, world.token.address.lower()) if world.token else build.NATIVE
        self.network = build.network(
            self.chain,
            contracts={name: contract.address.lower() for name, contract in made.items()},
            asset=self.asset,
            policy=words.pack_policy(POLICY),
            node_parameters=NODES,
        )
        self.home = home
        home.mkdir(mode=0o700, exist_ok=True)
        self.dev, self.provider = (self._key(name) for name in ("dev", "provider"))
        self.told: list[tuple[str, dict[str, Any]]] = []
        self.settings = Settings(home=home, **settings)
        self.client = self.open()

    def _key(self, name: str) -> str:
        address = keys.create_key(self.home / "keys", name, "pw", devnet=True).address
        (self.home / "keys" / f"{name}.password").write_text("pw")
        (self.home / "keys" / f"{name}.password").chmod(0o600)
        self.chain.give(address, WEALTH)
        if self.world.token is not None:
            self.world.token.send.mint(to_checksum_address(address), WEALTH)
        return address

    def open(self, *, dry_run: bool = False, settings: Settings | None = None) -> Client:
        """Return a client of this market, by default of this home."""
        client = Client(settings or self.settings, tell=self._hear, dry_run=dry_run, port=self.chain)
        client.session.__dict__["network"] = self.network
        return client

    def _hear(self, kind: str, facts: Any) -> None:
        self.told.append((kind, dict(facts)))

    def said(self, kind: str) -> list[str]:
        """Return the texts of what was told of a kind."""
        return [facts["text"] for one, facts in self.told if one == kind]

    def pass_time(self, seconds: int) -> int:
        """Let time pass, mine a block, and return its second."""
        self.evm.warp(seconds)
        return self.chain.mine().timestamp


class Shop:
    """A market with one node of a stranger, whose machine does what a test says with the jobs of the home."""

    JOB: Final[Mapping[str, Any]] = {
        "version": 1,
        "name": "digits",
        "runtime": "wasm",
        "module": "module.wasm",
        "outputs": [{"path": "/out", "max_size": "1MiB"}],
        "resources": {"cpus": 1, "memory": "64MiB"},
        "limits": {"runtime": "60s", "deadline": "24h"},
        "price": {"max_rate": "0.036/h", "keeper_fee": "0.000008"},
        "match": {"newcomers": True, "window": "0s"},
    }

    def __init__(self, market: RealMarket, folder: Path, **offer: Any) -> None:
        """Let `folder`, where the caller works, hold the module that JOB names."""
        self.market, self.world, self.client = market, market.world, market.client
        self.folder = folder
        (folder / "module.wasm").write_bytes(MODULE)
        self.node = self.world.register(**{"ask": 10**12, "stake": 10**20, **offer})
        self.store = self.client.session.store

    def post(self, **fields: Any) -> str:
        """Post JOB with other fields; return its id."""
        return self.client.jobs.submit({**self.JOB, **fields}, again=True).id

    def terms(self, job: str) -> Terms:
        """Return a job's terms."""
        return self.client.session.market.terms_of(JobId(bytes.fromhex(job[2:]))).terms

    def start(self, job: str, unit: int = 0) -> None:
        """Let the node take a unit, once it is open to claims."""
        terms = self.terms(job)
        if terms.match_window:
            self.market.pass_time(self.world.policy.open_claim_after)
        self.world.nodes.send.beat(self.node, sender=self.world.operator)
        self.world.claim(terms, self.node, unit)

    def outputs(self, files: Mapping[str, str]) -> dict[str, Any]:
        """Store files as a unit's outputs, and return what a result says of them."""
        place = Path(tempfile.mkdtemp(dir=self.folder))
        for name, text in files.items():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_text(text)
        entry = self.store.add_path(place)
        return {"cid": str(entry.cid), "size": entry.size}

    def hand_in(
        self,
        job: str,
        unit: int = 0,
        *,
        outcome: Outcome = Outcome.OK,
        files: Mapping[str, str] | None = None,
        logs: Mapping[str, str] | None = None,
        used: int = 1,
        report: Mapping[str, Any] | None = None,
        **result: Any,
    ) -> dict[str, Any]:
        """Let the node submit a result, with outputs, logs and a report; return the result's document."""
        terms = self.terms(job)
        document = {
            "spec": terms.spec.hex(),
            "index": unit,
            "outcome": outcome.name.lower(),
            "status": outcome.name.lower(),
            "exit_code": 0 if outcome is Outcome.OK else 3,
            "outputs": None if files is None else self.outputs(files),
            **result,
        }
        told = dict(report or {}) | ({} if logs is None else {"logs": self.outputs(logs)})
        digests = (self.store.put_json(document), self.store.put_json(told))
        used = used if terms.billing is Billing.FUEL else 0
        fields = (self.world.id_of(terms), unit, *digests, int(outcome), used)
        self.world.jobs.send.submit(*fields, sender=self.world.operator)
        return document

    def settle(self, job: str, unit: int = 0) -> None:
        """Let a keeper settle a unit as soon as anyone may."""
        self.market.pass_time(60)
        self.world.settle(self.terms(job), unit)

    def done(self, job: str, unit: int = 0, *, seconds: int = 10, **how: Any) -> dict[str, Any]:
        """Let a unit run for so many seconds, and be handed in and settled."""
        self.start(job, unit)
        self.market.pass_time(seconds)
        document = self.hand_in(job, unit, **how)
        self.settle(job, unit)
        return document
