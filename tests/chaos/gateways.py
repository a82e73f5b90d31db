"""Gateways between a worker and the data of its jobs, each a process of its own, that tell the truth until told to lie.

A gateway serves a folder store. How it answers stands in its file `how`: "truth", the name of a lie, or "lies" for each
lie in turn. What it answered, it appends to its file `told`, one name a line, at the end of the answer; that is what
shows that a lie was met. "trapped" there means that somebody followed a redirect.
"""

from __future__ import annotations

import os
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from itertools import count
from pathlib import Path

from hearth.jobfile.resolved import ResolvedInput
from hearth.storage import cid as cids
from hearth.storage.stores import FolderStore
from tests.chaos.processes import Child
from tests.kit.http import answering, send
from tests.kit.running import wait

MIB = 1 << 20
INPUT_BYTES = 6 * MIB
Handler = BaseHTTPRequestHandler


def another_block(handler: Handler, block: bytes) -> None:
    """The right length, and a bit that is wrong."""
    send(handler, 200, bytes([block[0] ^ 1]) + block[1:])


def a_shorter_block(handler: Handler, block: bytes) -> None:
    """All but the last byte, as if that were all."""
    send(handler, 200, block[:-1])


def cut_off(handler: Handler, block: bytes) -> None:
    """Half of what it announces."""
    _begin(handler, ("Content-Length", str(len(block))))
    handler.wfile.write(block[: len(block) // 2])
    handler.close_connection = True


def announces_a_tebibyte(handler: Handler, block: bytes) -> None:
    """A length that no block has."""
    _begin(handler, ("Content-Length", str(1 << 40)))
    handler.wfile.write(block)
    handler.close_connection = True


def endless(handler: Handler, block: bytes) -> None:
    """Piece after piece, without a length."""
    _begin(handler, ("Transfer-Encoding", "chunked"))
    piece = b"%x\r\n%s\r\n" % (65536, bytes(65536))
    while True:
        handler.wfile.write(piece)


def bomb(handler: Handler, block: bytes) -> None:
    """64 MiB of zeros in 64 KiB, said to be packed."""
    send(handler, 200, zlib.compress(bytes(64 * MIB), 9), Content_Encoding="deflate")


def many_headers(handler: Handler, block: bytes) -> None:
    """Headers without an end."""
    handler.send_response(200)
    for number in count():
        handler.wfile.write(b"X-%d: y\r\n" % number)


def to_loopback(handler: Handler, block: bytes) -> None:
    """A redirect to a port of the provider's own machine: here, to one that tells."""
    send(handler, 302, Location=f"http://127.0.0.1:{handler.server.server_address[1]}/trap")  # type: ignore[index,misc]


def to_metadata(handler: Handler, block: bytes) -> None:
    """A redirect to where a cloud hands out credentials."""
    send(handler, 307, Location="http://169.254.169.254/latest/meta-data/iam/security-credentials/")


def refuses(handler: Handler, block: bytes) -> None:
    """503, for hours."""
    send(handler, 503, Retry_After="86400")


LIES: dict[str, Callable[[Handler, bytes], None]] = {
    lie.__name__: lie
    for lie in (
        another_block,
        endless,
        a_shorter_block,
        bomb,
        announces_a_tebibyte,
        to_loopback,
        many_headers,
        cut_off,
        to_metadata,
        refuses,
    )
}
"""First those after which a store is asked again, then those after which it is asked last for half a minute."""


def drips(handler: Handler, block: bytes) -> None:
    """A byte, and soon another."""
    _begin(handler, ("Content-Length", str(len(block))))
    for at in range(len(block)):
        handler.wfile.write(block[at : at + 1])
        time.sleep(0.02)


HOW = {**LIES, "drips": drips}


def _begin(handler: Handler, *headers: tuple[str, str]) -> None:
    handler.send_response(200)
    for name, value in headers:
        handler.send_header(name, value)
    handler.end_headers()


def main(argv: Sequence[str]) -> int:
    """Serve the store at the first argument from the folder at the second, until killed."""
    store, folder = FolderStore(Path(argv[0])), Path(argv[1])
    # Two gateways tell different lies at the same time.
    turns = count(len(LIES) // 2 * int(folder.name.rpartition("-")[2]))

    def answer(handler: Handler) -> None:
        how = (folder / "how").read_text()
        if "/ipfs/" not in handler.path:
            _tell(folder, "trapped")
            send(handler, 404)
            return
        block = store.get_block(cids.parse(handler.path.partition("/ipfs/")[2].partition("?")[0]))
        if how == "lies":
            how = list(LIES)[next(turns) % len(LIES)]
        try:
            if how == "truth":
                send(handler, 200, block)
            else:
                HOW[how](handler, block)
        finally:
            # Whoever is lied to hangs up.
            _tell(folder, how)

    with answering(answer) as port:
        (folder / "port.part").write_text(str(port))
        (folder / "port.part").replace(folder / "port")
        while True:
            time.sleep(3600)


def _tell(folder: Path, what: str) -> None:
    with (folder / "told").open("a") as file:
        file.write(f"{what}\n")


class Gateway:
    """One gateway process."""

    def __init__(self, store: FolderStore, folder: Path) -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        (folder / "told").touch()
        self.says("truth")
        self._process = Child(folder / "log", "gateway", str(store.root), str(folder))
        self.pid = self._process.pid
        self._port = int(wait((folder / "port").exists, "a gateway serves", 60) and (folder / "port").read_text())

    @property
    def url(self) -> str:
        """Return the URL under which a worker has it among its stores."""
        return f"gateway+http://127.0.0.1:{self._port}"

    def says(self, how: str) -> None:
        """Let it answer so from now on."""
        (self._folder / "how.part").write_text(how)
        (self._folder / "how.part").replace(self._folder / "how")

    @property
    def told(self) -> Counter[str]:
        """Return what it has answered."""
        return Counter((self._folder / "told").read_text().split())

    @property
    def waiting(self) -> int:
        """Count the bytes that it was sent and has not read, over open connections and those that were given up."""
        port = f":{self._port:04X}"
        rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        return sum(
            int(row[4].partition(":")[2], 16) for row in rows if row[1].endswith(port) and row[3] in ("01", "08")
        )

    def kill(self) -> None:
        """kill -9."""
        self._process.kill()
        self._process.wait()


class Larder:
    """Data that a worker can have from gateways alone: those that may lie are asked first, the last one is honest."""

    def __init__(self, home: Path, gateways: int) -> None:
        self._store = FolderStore(home / "store")
        self.gateways = [Gateway(self._store, home / f"gateway-{number}") for number in range(gateways)]

    @property
    def urls(self) -> list[str]:
        """Return the gateways' URLs."""
        return [one.url for one in self.gateways]

    def input(self) -> ResolvedInput:
        """Return an input that no job had before."""
        entry = self._store.add_bytes(os.urandom(INPUT_BYTES))
        return ResolvedInput(cid=str(entry.cid), dst="/in/data", size=entry.size)

    def told(self) -> Counter[str]:
        """Return what all of them have answered."""
        return sum((one.told for one in self.gateways), Counter())

    def close(self) -> None:
        """End the gateways."""
        for one in self.gateways:
            one.kill()


@contextmanager
def larder(home: Path, gateways: int = 3) -> Iterator[Larder]:
    """Run gateways while the context is open."""
    made = Larder(home, gateways)
    try:
        yield made
    finally:
        made.close()
