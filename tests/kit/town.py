"""A small market for tests of the command line: a local chain, workers and a keeper as processes, and `hearth` itself.

Commands run in this process through `hearth.cli.__main__.main`, with the home folder in the environment, so that what
is tested is what a user gets: exit status, stdout, stderr.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from hearth.cli.__main__ import main
from hearth.client import Client
from hearth.config.settings import Settings
from hearth.local.devnet import free_port
from tests.kit.evm import ROOT
from tests.kit.running import RunningMarket, wait
from tools import schemas

EXAMPLES = ROOT / "examples"
WASM_FILE = """\
version: 1
name: {name}
runtime: wasm
module: "{module}"
inputs: [{{src: "{text}", dst: /in/text.txt}}]
outputs: [{{path: /out, required: false, max_size: 1MiB}}]
resources: {{cpus: 1, memory: 32MiB}}
limits: {{runtime: 20s, deadline: 1h}}
price: {{max_rate: "{rate}"}}
match: {{window: 0s}}
"""
"""A job file of a module that reads a text; tests add to it."""
TEXT = EXAMPLES / "wordcount-array" / "text.txt"
START_SECONDS = 90.0


def wasm_file(path: Path, module: Path, *, rate: str = "1.20/h", more: str = "") -> Path:
    """Write the job file of a module that reads a text, with both beside it, and return its path."""
    for one in (module, TEXT):
        if one.parent != path.parent:
            shutil.copy(one, path.parent)
    text = WASM_FILE.format(name=path.stem, module=module.name, text=TEXT.name, rate=rate)
    path.write_text(text + more, encoding="utf-8")
    return path


def example_text(name: str, folder: Path) -> str:
    """Copy what an example's job brings into a folder, and return the text of its job file."""
    shutil.copytree(EXAMPLES / name, folder, ignore=shutil.ignore_patterns("*.yaml"), dirs_exist_ok=True)
    return (EXAMPLES / name / "job.yaml").read_text(encoding="utf-8")


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


class Town(RunningMarket):
    """A running market: `hearth(...)` is a user of it, `client` the same in Python."""

    def __init__(self, home: Path, port: int | None = None, *, erc20: bool = False) -> None:
        port = port or free_port()
        told = hearth(home, "devnet", "up", "--port", str(port), "--json", *(["--erc20"] if erc20 else []))
        assert told.code == 0, told.err + told.out
        super().__init__(home, port, erc20=erc20)
        assert not self.net.started and told.json["url"] == self.url
        self.client = Client(Settings(home=home))
        self.session = self.client.session

    def hearth(self, *arguments: str, environ: dict[str, str] | None = None) -> Said:
        """Run a command of this town's user."""
        return hearth(self.home, *arguments, environ=environ)

    def worker_file(
        self,
        name: str = "worker",
        *,
        price: str = "0.60/h",
        slots: int = 2,
        extra: Sequence[str] = (),
        settle_after: str = "",
    ) -> Path:
        """Write a worker.toml and return its path; `settle_after` is how long its results are left to others."""
        path = self.home / f"{name}.toml"
        told = self.hearth(
            *("worker", "init", "--account", name, "--config", str(path), "--price", price, "--country", "de"),
            *("--payout", self.session.key("owner").address, "--slots", str(slots), "--runtimes", "wasm"),
            *("--gpus", "none", "--cores", "1", "--memory", "1GiB", "--disk", "2GiB", *extra),
        )
        assert told.code == 0, told.err
        if settle_after:
            text = path.read_text(encoding="utf-8")
            assert text.count("\n[accept]") == 1
            path.write_text(
                text.replace("\n[accept]", f'\n[accept]\nsettle_after = "{settle_after}"\n#'), encoding="utf-8"
            )
        return path

    def add_worker(self, name: str = "worker", *, price: str = "0.60/h", slots: int = 2, stake: str = "20") -> int:
        """Register a worker, start its process, and return its node once it beats."""
        return self.start_worker(self.worker_file(name, price=price, slots=slots), name, stake=stake)

    def start_worker(
        self, path: Path, name: str = "worker", *, stake: str = "20", environ: dict[str, str] | None = None
    ) -> int:
        """Register the worker of a worker.toml, start its process, and return its node once it beats; both see
        `environ`."""
        told = self.hearth("worker", "register", "--config", str(path), "--stake", stake, "--json", environ=environ)
        assert told.code == 0, told.err + told.out
        node = int(told.json["node"])
        self.start(name, "-m", "worker", "--config", str(path), **(environ or {}))
        self.wait_beat(node)
        return node

    def add_keeper(self) -> None:
        """Start a keeper process with the devnet's keeper key."""
        self.start("keeper", "-m", "hearth.cli", "keeper", "run")

    def wait_beat(self, node: int) -> None:
        """Wait until a node is active."""

        def statuses() -> dict[int, str]:
            return {row["node"]: row["status"] for row in self.client.net.workers()["workers"]}

        try:
            wait(lambda: statuses().get(node) == "active", f"node {node} beats", START_SECONDS)
        except AssertionError as error:
            raise AssertionError(f"{error}; {statuses()}") from None

    def rpc(self, method: str, *parameters: object) -> Any:
        """Call the chain's node directly."""
        return self.chain.rpc(method, *parameters)


@contextlib.contextmanager
def town(home: Path, *, erc20: bool = False) -> Iterator[Town]:
    """Run a market while the context is open."""
    made = Town(home, erc20=erc20)
    try:
        yield made
    finally:
        made.close()
