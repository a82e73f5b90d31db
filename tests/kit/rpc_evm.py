"""A world on a node behind JSON-RPC: what `tests.kit.anvil.AnvilEvm` and `tests.kit.geth_evm.GethEvm` share.

It answers like `tests.kit.evm.Evm`, with the gas of real receipts; each transaction has a block of its own at the time
`now`. How a transaction gets into a block, and whose keys sign, is each node's own.
"""

from __future__ import annotations

import http.client
import itertools
import json
import time
from abc import abstractmethod
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

from eth_utils import keccak, to_checksum_address

from tests.kit.evm import BLOCK_GAS, Contract, Evm, Function, Receipt, Reverted, _plain, reason_in


class RpcError(Exception):
    """The node answered with an error object."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(error.get("message", ""))
        self.error = error


class RpcEvm(Evm):
    """A node at `url` behind the interface of `Evm`; `close` ends the connection."""

    def __init__(self, url: str, *, now: int) -> None:
        self.url = url
        self._ids = itertools.count(1)
        self._connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
        self.exact_gas = True
        self.now = now
        self._contracts: dict[str, Contract] = {}
        self._events = {}
        self._names = {}
        self.creations: dict[str, bytes] = {}
        """The transaction of each contract that was created, by its address in lower case."""

    def close(self) -> None:
        """End the connection."""
        self._connection.close()

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
        self.creations[mined["contractAddress"].lower()] = bytes.fromhex(mined["transactionHash"][2:])
        return to_checksum_address(mined["contractAddress"]), int(mined["gasUsed"], 16)

    def _request(self, to: str | None, data: bytes, sender: str | None, value: int, gas: int) -> dict[str, str]:
        request = {"from": sender or self.deployer, "data": "0x" + data.hex(), "value": hex(value), "gas": hex(gas)}
        return {**request, "gasPrice": "0x0"} | ({"to": to} if to else {})

    def _call(self, request: dict[str, str], at: int) -> bytes:
        try:
            answer = self.rpc("eth_call", request, "latest", {}, {"time": hex(at)})
        except RpcError as error:
            raise reverted(error) from None
        return bytes.fromhex(answer[2:])

    @abstractmethod
    def _mine(self, request: dict[str, str]) -> str:
        """Put a transaction into a block at the time `now`, and return its hash."""

    def _send(self, request: dict[str, str]) -> dict[str, Any]:
        sent = self._mine(request)
        while (mined := self.rpc("eth_getTransactionReceipt", sent)) is None:
            time.sleep(0.005)
        if mined["status"] != "0x1":
            raise Reverted("failed when mined", b"", int(mined["gasUsed"], 16))
        return dict(mined)


def reverted(error: RpcError) -> Reverted:
    """Read a node's refusal of a call or a transaction."""
    data = bytes.fromhex(str(error.error.get("data") or "0x")[2:])
    return Reverted(reason_in(data) or str(error), data, 0)
