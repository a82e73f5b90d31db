"""The same world on a real anvil: `AnvilEvm` answers like `tests.kit.evm.Evm`, with the gas of real receipts.

Automine puts each transaction into a block of its own at the time `now`; named accounts are impersonated, so no keys
are needed. Used by the gas benchmark and by tests that need a node's own behaviour.
"""

from __future__ import annotations

import atexit
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hearth.base.errors import ChainError, ConfigError
from hearth.chain.rpc import RpcChain
from hearth.local.devnet import HARDFORK, find_anvil, free_port
from tests.kit.evm import BLOCK_GAS, CHAIN_ID, START, Contract, _plain
from tests.kit.require import require
from tests.kit.rpc_evm import RpcError, RpcEvm, reverted

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


class AnvilEvm(RpcEvm):
    """One anvil process behind the interface of `Evm`; `close` ends it."""

    chain_id = CHAIN_ID

    def __init__(self, *, now: int = START) -> None:
        block = ("--chain-id", str(CHAIN_ID), "--gas-limit", str(BLOCK_GAS), "--timestamp", str(now - 1))
        self._anvil = Anvil(*block, "--base-fee", "0", "--accounts", "1")
        super().__init__(self._anvil.url, now=now)
        self.rpc("anvil_autoImpersonateAccount", True)
        self.deployer = self.account("deployer")

    def close(self) -> None:
        """End the process."""
        super().close()
        self._anvil.close()

    def set_balance(self, who: str | Contract, amount: int) -> None:
        self.rpc("anvil_setBalance", _plain(who), hex(amount))

    def catch_up(self) -> None:
        """Move `now` past the newest block, which others' transactions, mining and reorgs may have made."""
        block = self.rpc("eth_getBlockByNumber", "latest", False)
        self.now = max(self.now, int(block["timestamp"], 16)) + 1

    def _mine(self, request: dict[str, str]) -> str:
        self.rpc("evm_setNextBlockTimestamp", self.now)
        try:
            return str(self.rpc("eth_sendTransaction", request))
        except RpcError as error:
            raise reverted(error) from None

    @contextmanager
    def isolated(self) -> Iterator[None]:
        point = self.rpc("evm_snapshot")
        saved = (self.now, dict(self._contracts), dict(self._names))
        try:
            yield
        finally:
            self.rpc("evm_revert", point)
            self.now, self._contracts, self._names = saved
