"""The same world on a real anvil: `AnvilEvm` answers like `tests.kit.evm.Evm`, with the gas of real receipts.

Automine puts each transaction into a block of its own at the time `now`; named accounts are impersonated, so no keys
are needed. Used by the gas benchmark and by tests that need a node's own behaviour.
"""

from __future__ import annotations

import atexit
import http.client
import itertools
import json
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from eth_utils import keccak, to_checksum_address

from hearth.base.errors import ChainError, ConfigError
from hearth.chain.rpc import RpcChain
from hearth.local.devnet import HARDFORK, find_anvil, free_port
from tests.kit.evm import BLOCK_GAS, CHAIN_ID, START, Contract, Evm, Function, Receipt, Reverted, _plain, reason_in
from tests.kit.require import require

START_SECONDS = 20.0


def need_anvil() -> Path:
    """Return the anvil program; where there is none, skip the calling test, or fail it as `require` says."""
    try:
        return find_anvil()
    except ConfigError as error:
        require("anvil", False, error.message)
        raise


class Anvil:
    """An anvil process on loopback, at `url` once it is made; `close` ends it, and so does the end of the tests."""

    def __init__(self, *arguments: str, hardfork: str = HARDFORK) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._process = subprocess.Popen(
            [find_anvil(), "--port", str(self.port), "--hardfork", hardfork, "--silent", *arguments],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
        )
        atexit.register(self._process.kill)
        end = time.monotonic() + START_SECONDS
        while not self._answers():
            assert self._process.poll() is None and time.monotonic() < end, f"no anvil came up at {self.url}"
            time.sleep(0.05)

    def _answers(self) -> bool:
        try:
            RpcChain([self.url], attempts=1).chain_id()
        except ChainError:
            return False
        return True

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        atexit.unregister(self._process.kill)


@contextmanager
def bare_chain(*arguments: str) -> Iterator[str]:
    """Run an anvil without a market, and yield its URL."""
    anvil = Anvil(*arguments)
    try:
        yield anvil.url
    finally:
        anvil.close()


class RpcError(Exception):
    """The node answered with an error object."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(error.get("message", ""))
        self.error = error


class AnvilEvm(Evm):
    """One anvil process behind the interface of `Evm`; `close` ends it."""

    chain_id = CHAIN_ID

    def __init__(self, *, now: int = START) -> None:
        block = ("--chain-id", str(CHAIN_ID), "--gas-limit", str(BLOCK_GAS), "--timestamp", str(now - 1))
        self._anvil = Anvil(*block, "--base-fee", "0", "--accounts", "1")
        self.url = self._anvil.url
        self._ids = itertools.count(1)
        self._connection = http.client.HTTPConnection("127.0.0.1", self._anvil.port, timeout=60)
        self.rpc("anvil_autoImpersonateAccount", True)
        self.exact_gas = True
        self.now = now
        self._contracts: dict[str, Contract] = {}
        self._events = {}
        self._names = {}
        self.deployer = self.account("deployer")

    def close(self) -> None:
        """End the process."""
        self._connection.close()
        self._anvil.close()

    def rpc(self, method: str, *params: Any) -> Any:
        """Call one JSON-RPC method; raises RpcError with the node's answer."""
        body = json.dumps({"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": params})
        try:
            self._connection.request("POST", "/", body, {"Content-Type": "application/json"})
            answer = json.loads(self._connection.getresponse().read())
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            raise OSError(str(error)) from error
        if "error" in answer:
            raise RpcError(answer["error"])
        return answer["result"]

    # accounts and state

    def balance(self, who: str | Contract) -> int:
        return int(self.rpc("eth_getBalance", _plain(who), "latest"), 16)

    def set_balance(self, who: str | Contract, amount: int) -> None:
        self.rpc("anvil_setBalance", _plain(who), hex(amount))

    def code_at(self, who: str | Contract) -> bytes:
        return bytes.fromhex(self.rpc("eth_getCode", _plain(who), "latest")[2:])

    def storage_at(self, who: str | Contract, slot: int) -> int:
        return int(self.rpc("eth_getStorageAt", _plain(who), hex(slot), "latest"), 16)

    def create_address(self, deployer: str, ahead: int = 0) -> str:
        nonce = int(self.rpc("eth_getTransactionCount", deployer, "latest"), 16) + ahead
        item = b"" if nonce == 0 else nonce.to_bytes((nonce.bit_length() + 7) // 8, "big")
        encoded = item if nonce and nonce < 0x80 else bytes([0x80 + len(item)]) + item
        body = b"\x94" + bytes.fromhex(deployer[2:]) + encoded
        return to_checksum_address(keccak(bytes([0xC0 + len(body)]) + body)[12:])

    # time

    def catch_up(self) -> None:
        """Move `now` past the newest block, which others' transactions, mining and reorgs may have made."""
        block = self.rpc("eth_getBlockByNumber", "latest", False)
        self.now = max(self.now, int(block["timestamp"], 16)) + 1

    # running

    def transact(
        self,
        contract: Contract,
        function: Function,
        args: Sequence[Any],
        *,
        sender: str | None = None,
        value: int = 0,
        gas: int = BLOCK_GAS,
    ) -> Receipt:
        request = self._request(contract.address, function.encode(args), sender, value, gas)
        value_returned = self._call(request, self.now)
        mined = self._send(request)
        logs = tuple(
            self._decode_log(
                SimpleNamespace(
                    address=log["address"],
                    data=([bytes.fromhex(t[2:]) for t in log["topics"]], bytes.fromhex(log["data"][2:])),
                )
            )
            for log in mined["logs"]
        )
        return Receipt(function.decode(value_returned), logs, int(mined["gasUsed"], 16), True)

    def raw_call(
        self, to: str | Contract, data: bytes = b"", *, sender: str | None = None, value: int = 0, gas: int = BLOCK_GAS
    ) -> bytes:
        request = self._request(_plain(to), data, sender, value, gas)
        answer = self._call(request, self.now)
        self._send(request)
        return answer

    def _run(self, to: str, data: bytes, sender: str | None, value: int, gas: int, *, static: bool) -> bytes:
        return self._call(self._request(to, data, sender, value, gas), self.now)

    def _create(self, code: bytes, sender: str, value: int) -> tuple[str, int]:
        mined = self._send(self._request(None, code, sender, value, BLOCK_GAS))
        return to_checksum_address(mined["contractAddress"]), int(mined["gasUsed"], 16)

    def _request(self, to: str | None, data: bytes, sender: str | None, value: int, gas: int) -> dict[str, str]:
        request = {"from": sender or self.deployer, "data": "0x" + data.hex(), "value": hex(value), "gas": hex(gas)}
        return {**request, "gasPrice": "0x0"} | ({"to": to} if to else {})

    def _call(self, request: dict[str, str], at: int) -> bytes:
        try:
            answer = self.rpc("eth_call", request, "latest", {}, {"time": hex(at)})
        except RpcError as error:
            raise _reverted(error) from None
        return bytes.fromhex(answer[2:])

    def _send(self, request: dict[str, str]) -> dict[str, Any]:
        self.rpc("evm_setNextBlockTimestamp", self.now)
        try:
            sent = self.rpc("eth_sendTransaction", request)
        except RpcError as error:
            raise _reverted(error) from None
        while (mined := self.rpc("eth_getTransactionReceipt", sent)) is None:
            time.sleep(0.005)
        if mined["status"] != "0x1":
            raise Reverted("failed when mined", b"", int(mined["gasUsed"], 16))
        return dict(mined)

    @contextmanager
    def isolated(self) -> Iterator[None]:
        point = self.rpc("evm_snapshot")
        saved = (self.now, dict(self._contracts), dict(self._names))
        try:
            yield
        finally:
            self.rpc("evm_revert", point)
            self.now, self._contracts, self._names = saved


def _reverted(error: RpcError) -> Reverted:
    data = bytes.fromhex(str(error.error.get("data") or "0x")[2:])
    return Reverted(reason_in(data) or str(error), data, 0)
