"""A running market: a local chain in real time with the contracts on it, and the project's programs as processes."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

from hearth.chain.rpc import RpcChain
from hearth.chain.tx import Sender, SenderConfig
from hearth.chain.tx_journal import TxJournal
from hearth.client.session import MAX_FEE
from hearth.local import devnet
from hearth.market.reads import Market
from tests.kit.evm import ROOT


def wait(condition: Callable[[], Any], what: str, seconds: float = 150) -> Any:
    """Wait until a condition holds and return what it gave.

    What costs much to look at is looked at less often: several tests that wait share the cores with what they wait for.
    """
    end = time.monotonic() + seconds
    while True:
        began = time.thread_time()
        if found := condition():
            return found
        assert time.monotonic() < end, f"never: {what}"
        time.sleep(min(1.0, max(0.1, 8 * (time.thread_time() - began))))


class Process(Protocol):
    """What a test does with a process: of subprocess.Popen, that much."""

    pid: int

    @property
    def returncode(self) -> int | None:
        """Return the exit status, less than zero for a signal; None while it runs."""

    def poll(self) -> int | None:
        """Look whether it has ended, and return its exit status."""

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end. Raises subprocess.TimeoutExpired."""

    def terminate(self) -> None:
        """Send SIGTERM."""

    def kill(self) -> None:
        """Send SIGKILL."""


def start_python(log: Path, *arguments: str, **environ: str) -> subprocess.Popen[bytes]:
    """Start a Python process of this tree, writing to `log`, in its folder; of HEARTH_ names it sees those given."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HEARTH_")}
    with log.open("ab") as file:
        return subprocess.Popen(
            [sys.executable, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            env={**kept, "PYTHONPATH": str(ROOT), **environ},
            cwd=log.parent,
            start_new_session=True,
        )


class RunningMarket:
    """A devnet under `home`, a sender for each of its public accounts, and processes beside it until `close`."""

    def __init__(self, home: Path, port: int | None = None, *, erc20: bool = False) -> None:
        """Start the chain, or find it where it runs already."""
        self.home = home
        self.port = port or devnet.free_port()
        self.net = devnet.up(home, self.port, erc20=erc20)
        self.url = self.net.url
        self.chain = RpcChain([self.url])
        self.market = Market(self.chain, self.net.network)
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self._senders: dict[int, Sender] = {}

    def sender(self, index: int) -> Sender:
        """Return the sender of a public account."""
        if index not in self._senders:
            account = devnet.account(index)
            network = self.net.network
            facts = {"chain_id": network.chain_id, "genesis_hash": network.genesis_hash, "address": account.address}
            journal = TxJournal(self.home / f"tx-{index}.db", **facts)
            self._senders[index] = Sender(self.chain, account, journal, SenderConfig(MAX_FEE, poll=0.1))
        return self._senders[index]

    @contextlib.contextmanager
    def still(self) -> Iterator[None]:
        """Let no block come while the context is open."""
        self.chain.rpc("evm_setIntervalMining", 0)
        try:
            yield
        finally:
            self.chain.rpc("evm_setIntervalMining", 1)

    def start(self, name: str, *arguments: str, failpoint: str = "", **environ: str) -> None:
        """Start a Python process of this market's user, perhaps one that dies at a named point."""
        told = {"HEARTH_HOME": str(self.home), "HEARTH_FAILPOINT": failpoint, **environ}
        self.processes[name] = start_python(self.home / f"{name}.log", *arguments, **told)

    def stop(self, name: str) -> None:
        """Kill a process and its children."""
        process = self.processes.pop(name)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def close(self) -> None:
        """Stop everything."""
        for name in list(self.processes):
            self.stop(name)
        for sender in self._senders.values():
            sender.journal.close()
        devnet.down(self.home)
