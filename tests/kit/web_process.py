"""`hearth web`'s server as a process of its own, without a market: one that is stopped leaves no connection open.

python -m tests.kit.web_process PAGE STORE PORT
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hearth.storage.stores import FolderStore
from hearth.web.files import read_page
from hearth.web.server import Served, WebServer
from tests.kit.evm import ROOT
from tests.kit.http import NAME
from tests.web.vectors.network import NETWORK


@contextmanager
def web_process(page: Path, store: Path, port: int = 0) -> Iterator[str]:
    """Serve a folder's page while the context is open; yield the address to open."""
    command = [sys.executable, "-m", "tests.kit.web_process", str(page), str(store), str(port)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as running:
        try:
            assert running.stdout is not None
            yield running.stdout.readline().strip()
        finally:
            running.kill()


def main(page: str, store: str, port: str) -> None:
    """Serve until it is killed."""
    # A market whose RPC nobody serves: the page opens without one.
    network = {**NETWORK.as_dict(), "rpc": [], "gateways": []}
    served = Served(read_page(Path(page)), "devnet", network, FolderStore(Path(store)), True)
    with WebServer(served, int(port), name=NAME) as web:
        print(web.url, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
