"""A real geth in developer mode: the chain that `tools.services` runs for every test, or a process of a test's own.

Of one's own, because it can be stopped and killed. Its state lies in memory until it is stopped, so that a kill takes
the chain back to its last clean stop: a rollback that no node of a test made up.
"""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

from hearth.base.errors import ChainError
from hearth.chain.rpc import RpcChain
from hearth.local.devnet import free_port
from tests.kit.require import require
from tools.services import geth

CHAIN_ID = geth.CHAIN_ID
NOBODY = "0x" + "99" * 20


def need_geth() -> Path:
    """Return the geth program; where there is none, skip the calling test, or fail it as `require` says."""
    named = os.environ.get("HEARTH_TEST_GETH_BIN", "")
    require("geth", bool(named) and Path(named).is_file(), "make services-up builds it and names HEARTH_TEST_GETH_BIN")
    return Path(named)


def shared_chain() -> str:
    """Return the URL of the geth that every test shares; a test without it ends as `need_geth` says."""
    url = os.environ.get("HEARTH_TEST_GETH_RPC", "")
    require("geth", bool(url), "make services-up starts it and names HEARTH_TEST_GETH_RPC")
    return url


class Geth:
    """A geth process with a chain of its own under `folder`, at `url`; `close` ends it, and so does the tests' end.

    `block` is the chain's first, that of the shared chain unless told; `by_hand`: none follows by itself.
    """

    def __init__(self, folder: Path, block: dict[str, Any] | None = None, *, by_hand: bool = False) -> None:
        self._program, self._folder, self._by_hand = need_geth(), folder / "geth", by_hand
        self._port = free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        block = block or geth.genesis()
        self._chain_id = block["config"]["chainId"]
        geth.initialise(self._program, self._folder, block)
        self.start()

    def start(self) -> None:
        """Start it on the chain that its folder holds."""
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                geth.command(self._program, self._folder, self._port, by_hand=self._by_hand),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._folder,
            )
        atexit.register(self._process.kill)
        end = time.monotonic() + geth.START_SECONDS
        while not geth.serves(self._port, self._chain_id):
            assert self._process.poll() is None and time.monotonic() < end, f"no geth came up at {self.url}"
            time.sleep(0.05)

    def stop(self) -> None:
        """End it as a service manager does: what the chain holds is on disk then."""
        self._end(signal.SIGTERM)
        assert self._process.returncode == 0

    def kill(self) -> None:
        """End it as a power cut does."""
        self._end(signal.SIGKILL)

    def testify(self) -> str:
        """Return what it says of its newest block, whether that is one of its chain, and the end of its log."""
        chain = RpcChain([self.url])
        head = chain.head()
        try:
            chain.balance(NOBODY, head.hash)
            stands = "it stands" if chain.block(head.number) == head else "another one stands there"
        except ChainError as error:
            stands = error.message
        log = (self._folder / "log").read_text(errors="replace").splitlines()
        return "\n".join([f"geth at {head.number} {head.hash.hex()}: {stands}", *log[-30:]])

    def close(self) -> None:
        """End it for good."""
        self.kill()

    def _end(self, number: int) -> None:
        self._process.send_signal(number)
        self._process.wait(60)
        atexit.unregister(self._process.kill)
