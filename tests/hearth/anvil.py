"""Start real anvils for tests of the chain port and what stands on it."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hearth.chain.web3 import Web3Chain
from hearth.errors import ChainError

ROOT = Path(__file__).parents[2]
# The mnemonic that anvil documents: "test test test test test test test test test test test junk".
KEYS = (
    "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
    "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d",
    "0x5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a",
)


def binary() -> Path:
    """Find anvil: in this checkout, or in the main one of a worktree."""
    from hearth.devnet import find_anvil

    return find_anvil(ROOT)


def free_port() -> int:
    """Return a loopback port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def anvil(*flags: str, port: int | None = None) -> Iterator[str]:
    """Run an anvil and yield its URL; it mines on demand and at each transaction unless the flags say otherwise."""
    chosen = free_port() if port is None else port
    process = subprocess.Popen(
        [str(binary()), "--port", str(chosen), "--silent", "--hardfork", "cancun", *flags],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    url = f"http://127.0.0.1:{chosen}"
    try:
        deadline = time.monotonic() + 30
        while True:
            try:
                Web3Chain([url], timeout=2, attempts=1).chain_id()
                break
            except ChainError:
                if process.poll() is not None or time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
        yield url
    finally:
        process.terminate()
        process.wait(10)
