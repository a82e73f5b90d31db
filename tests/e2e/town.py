"""A small market for tests of the command line: a local chain, workers and a keeper as processes, and `hearth` itself.

Commands run in this process through `hearth.cli.__main__.main`, with the home folder in the environment, so that what
is tested is what a user gets: exit status, stdout, stderr.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from hearth.cli.__main__ import main
from hearth.client import Client
from hearth.config.settings import Settings
from tools import schemas

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
START_SECONDS = 90.0


@dataclass(frozen=True)
class Said:
    """What a command came to."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Return stdout as one JSON object."""
        return json.loads(self.out)

    @property
    def error(self) -> dict[str, Any]:
        """Return the error object that --json printed."""
        found: dict[str, Any] = json.loads(self.out)["error"]
        return found


def hearth(home: Path, *arguments: str, environ: dict[str, str] | None = None) -> Said:
    """Run one command with `home` as the home folder and without a terminal."""
    out, err = io.StringIO(), io.StringIO()
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HEARTH_") or "ANVIL" in name}
    kept |= {"HEARTH_HOME": str(home), "NO_COLOR": "1", **(environ or {})}
    with mock.patch.dict(os.environ, kept, clear=True), mock.patch.object(sys, "stdin", io.StringIO()):
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(list(arguments))
    check_reports(arguments, out.getvalue())
    return Said(code, out.getvalue(), err.getvalue())


def check_reports(arguments: Sequence[str], out: str) -> None:
    """Hold what a command printed against the types of reports: each line with --json, else what is a report.

    The canonical spec alone has no schema: it is the document whose hash is on chain.
    """
    if "--json" in arguments:
        for line in out.splitlines():
            told = json.loads(line)
            if "error" in told or not {"job", "spec"} <= set(arguments):
                schemas.validate(told)
        return
    with contextlib.suppress(ValueError):
        told = json.loads(out)
        if isinstance(told, dict) and told.keys() & {"schema", "error"}:
            schemas.validate(told)


class Town:
    """A running market: `hearth(...)` is a user of it, `client` the same in Python."""

    def __init__(self, home: Path, port: int, *, erc20: bool = False) -> None:
        self.home = home
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        told = self.hearth("devnet", "up", "--port", str(port), "--json", *(["--erc20"] if erc20 else []))
        assert told.code == 0, told.err + told.out
        self.url = str(told.json["url"])
        self.client = Client(Settings(home=home))
        self.session = self.client.session

    def hearth(self, *arguments: str, environ: dict[str, str] | None = None) -> Said:
        """Run a command of this town's user."""
        return hearth(self.home, *arguments, environ=environ)

    def worker_file(
        self, name: str = "worker", *, price: str = "0.60/h", slots: int = 2, extra: Sequence[str] = ()
    ) -> Path:
        """Write a worker.toml and return its path."""
        path = self.home / f"{name}.toml"
        told = self.hearth(
            *("worker", "init", "--account", name, "--config", str(path), "--price", price, "--country", "de"),
            *("--payout", self.session.key("owner").address, "--slots", str(slots), "--runtimes", "wasm"),
            *("--gpus", "none", "--cores", "1", "--memory", "1GiB", "--disk", "2GiB", *extra),
        )
        assert told.code == 0, told.err
        return path

    def add_worker(self, name: str = "worker", *, price: str = "0.60/h", slots: int = 2, stake: str = "20") -> int:
        """Register a worker, start its process, and return its node once it beats."""
        path = self.worker_file(name, price=price, slots=slots)
        told = self.hearth("worker", "register", "--config", str(path), "--stake", stake, "--json")
        assert told.code == 0, told.err + told.out
        node = int(told.json["node"])
        self.start(name, "-m", "worker", "--config", str(path))
        self.wait_beat(node)
        return node

    def add_keeper(self) -> None:
        """Start a keeper process with the devnet's keeper key."""
        self.start("keeper", "-m", "hearth.cli", "keeper", "run")

    def start(self, name: str, *arguments: str, failpoint: str = "") -> None:
        """Start a Python process of the town, perhaps one that dies at a named point."""
        environ = {key: value for key, value in os.environ.items() if not key.startswith("HEARTH_")}
        environ |= {"HEARTH_HOME": str(self.home), "PYTHONPATH": str(ROOT), "HEARTH_FAILPOINT": failpoint}
        with (self.home / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                [sys.executable, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environ,
                start_new_session=True,
            )

    def wait_beat(self, node: int) -> None:
        """Wait until a node is active."""
        end = time.monotonic() + START_SECONDS
        while True:
            rows = {row["node"]: row["status"] for row in self.client.net.workers()["workers"]}
            if rows.get(node) == "active":
                return
            assert time.monotonic() < end, f"node {node} never beat: {rows}"
            time.sleep(0.3)

    def rpc(self, method: str, *parameters: object) -> Any:
        """Call the chain's node directly."""
        port: Any = self.session.market.port
        return port.rpc(method, *parameters)

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
        self.hearth("devnet", "down")


@contextlib.contextmanager
def town(home: Path, port: int, *, erc20: bool = False) -> Iterator[Town]:
    """Run a market while the context is open."""
    made = Town(home, port, erc20=erc20)
    try:
        yield made
    finally:
        made.close()
