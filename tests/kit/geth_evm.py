"""The same world on a real geth, under the rules of a fork: `GethEvm` answers like `tests.kit.evm.Evm`.

Geth's `testing` methods put each transaction into a block of its own at the time `now`, which no clock moves. A block
is later than the one before it: where a test's time stands still, it goes on by a second for each transaction. Named
accounts have keys of their own here, so their addresses are not those of the other worlds.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any, Final

from eth_account import Account
from eth_account.signers.local import LocalAccount
from eth_utils import keccak, to_checksum_address

from hearth.local import devnet
from tests.kit.evm import CHAIN_ID, FUNDS, START, Contract, _plain
from tests.kit.geth import Geth
from tests.kit.rpc_evm import RpcEvm
from tools.services import geth

MOST_GAS: Final = {"osaka": 2**24, "amsterdam": 100_000_000}
"""What a transaction may use: since Osaka 2^24, beside what Amsterdam takes for new state."""
BLOCK_GAS: Final = 200_000_000
GAS_PRICE: Final = 10**10
"""Above every base fee of a chain whose blocks are nearly empty."""
ZERO: Final = "0x" + "00" * 32


class GethEvm(RpcEvm):
    """One geth process under "osaka" or "amsterdam" rules behind the interface of `Evm`; `close` ends it."""

    chain_id = CHAIN_ID

    def __init__(self, rules: str = "osaka", *, now: int = START) -> None:
        self.rules = rules
        self.last = ""
        """The hash of the last transaction."""
        self._bank = devnet.account(0)
        self._keys: dict[str, LocalAccount] = {self._bank.address: self._bank}
        self._folder = Path(tempfile.mkdtemp(prefix="hearth-geth-"))
        rich = {self._bank.address[2:]: {"balance": hex(FUNDS * 10**6)}}
        block = geth.genesis(rules, chain_id=CHAIN_ID, alloc=rich, timestamp=hex(now - 1), gasLimit=hex(BLOCK_GAS))
        self._geth = Geth(self._folder, block, by_hand=True)
        super().__init__(self._geth.url, now=now)
        self.deployer = self.account("deployer")

    def close(self) -> None:
        """End the process, and remove its chain."""
        super().close()
        self._geth.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def version(self) -> str:
        """Return what the client calls itself."""
        return str(self.rpc("web3_clientVersion"))

    def account(self, name: str) -> str:
        """Return the address that belongs to a name, the same in every run; funded when first asked for."""
        key: LocalAccount = Account.from_key(keccak(b"hearth test account " + name.encode()))
        if key.address not in self._keys:
            self._keys[key.address] = key
            self._names[key.address] = name
            self.set_balance(key.address, FUNDS)
        return to_checksum_address(key.address)

    def set_balance(self, who: str | Contract, amount: int) -> None:
        """Pay an account up to a balance, in wei; one that has more is no matter for a transfer."""
        short = amount - self.balance(who)
        assert short >= 0, "a transfer takes nothing away"
        self._send(self._request(_plain(who), b"", self._bank.address, short, 1_000_000))

    def new_slots(self) -> int:
        """Return how many storage slots the last transaction wrote that were zero before."""
        how = {"tracer": "prestateTracer", "tracerConfig": {"diffMode": True}}
        found = self.rpc("debug_traceTransaction", self.last, how)
        before = {address: set(state.get("storage", ())) for address, state in found["pre"].items()}
        after = {address: set(state.get("storage", ())) for address, state in found["post"].items()}
        return sum(len(slots - before.get(address, set())) for address, slots in after.items())

    def trace(self) -> list[dict[str, Any]]:
        """Return the steps of the last transaction: `op`, `depth`, `stack`, the `gas` left before it, its `gasCost`.

        A step has `refund` once the transaction has earned one: what it has earned so far.
        """
        steps: list[dict[str, Any]] = self.rpc("debug_traceTransaction", self.last, {"disableStorage": True})[
            "structLogs"
        ]
        return steps

    def data(self) -> bytes:
        """Return the call data of the last transaction."""
        return bytes.fromhex(self.rpc("eth_getTransactionByHash", self.last)["input"].removeprefix("0x"))

    def _mine(self, request: dict[str, str]) -> str:
        head = self.rpc("eth_getBlockByNumber", "latest", False)
        self.now = max(self.now, int(head["timestamp"], 16) + 1)
        attributes: dict[str, Any] = {
            "timestamp": hex(self.now),
            "prevRandao": ZERO,
            "suggestedFeeRecipient": self._bank.address,
            "withdrawals": [],
            "parentBeaconBlockRoot": ZERO,
        }
        if self.rules == "amsterdam":
            attributes["slotNumber"] = hex(int(head["number"], 16) + 1)
        sender = self._keys[to_checksum_address(request["from"])]
        signed = sender.sign_transaction(
            {
                "chainId": CHAIN_ID,
                "nonce": int(self.rpc("eth_getTransactionCount", sender.address, "latest"), 16),
                "gas": MOST_GAS[self.rules],
                "gasPrice": GAS_PRICE,
                "value": int(request["value"], 16),
                "data": request["data"],
            }
            | ({"to": to_checksum_address(request["to"])} if "to" in request else {})
        )
        self.rpc("testing_commitBlockV1", attributes, ["0x" + signed.raw_transaction.hex().removeprefix("0x")], None)
        self.last = "0x" + signed.hash.hex().removeprefix("0x")
        return self.last
