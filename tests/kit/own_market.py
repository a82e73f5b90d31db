"""A market that was deployed as the README's "A market of your own" says, on a geth of its own, and its programs."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hearth.chain.port import BlockRef
from hearth.chain.rpc import RpcChain
from hearth.local import devnet
from hearth.market.events import Event, decode
from hearth.market.network import load_network
from hearth.market.reads import Market
from tests.kit.evm import ROOT
from tests.kit.geth import Geth
from tests.kit.readme import PHRASE
from tests.kit.running import start_python, wait
from tests.kit.town import Said, hearth

NAMES = ("deployer", "worker", "keeper")
"""The keys of this market's user, by their index in the phrase."""
KEEPER = """
network = "{network}"
home = "keeper"
[account]
keystore = "{keys}/keeper.json"
password_file = "{home}/password"
[work]
jitter = "0s"
[metrics]
listen = ""
"""


class OwnMarket:
    """One user's market, keys, worker and keeper below `home`; every command is the public one."""

    def __init__(self, home: Path) -> None:
        """Start the chain, import the keys, deploy the contracts."""
        self.home, self.geth = home, Geth(home)
        self._programs: dict[str, subprocess.Popen[bytes]] = {}
        self._folder = home / "hearth"
        self._folder.mkdir(mode=0o700)
        self._environ = {"HEARTH_PASSWORD_FILE": str(self._secret("password", "swordfish"))}
        phrase = self._secret("phrase", PHRASE)
        for index, name in enumerate(NAMES):
            self("wallet", "import", name, str(phrase), "--index", str(index))
        file = self._deploy()
        self._environ["HEARTH_NETWORK"] = str(file)
        self.chain = RpcChain([self.geth.url])
        self.market = Market(self.chain, load_network(file))
        self.worker_file = home / "worker.toml"

    def _secret(self, name: str, text: str) -> Path:
        path = self.home / name
        path.write_text(text + "\n")
        path.chmod(0o600)
        return path

    def _deploy(self) -> Path:
        command = [str(Path(sys.executable).parent / "ape"), "run", "deploy", "--network", self.geth.url]
        command += ["--account", "deployer", "--name", "own", "--folder", str(self.home / "networks"), "--yes"]
        command += ["--treasury", devnet.account(devnet.TREASURY).address]
        command += ["--council", devnet.account(devnet.DEPLOYER).address]
        kept = {name: value for name, value in os.environ.items() if not name.startswith("HEARTH_")}
        kept |= {**self._environ, "HEARTH_HOME": str(self._folder), "HOME": str(self.home), "PYTHONPATH": str(ROOT)}
        done = subprocess.run(command, cwd=ROOT, env=kept, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return self.home / "networks" / "own.json"

    def __call__(self, *arguments: str, code: int = 0) -> Said:
        """Run a command of this market's user, which must end with `code`."""
        said = hearth(self._folder, *arguments, environ=self._environ)
        assert said.code == code, said.err + said.out
        return said

    def start(self, name: str, *arguments: str) -> None:
        """Start `hearth ARGUMENTS` as a process."""
        environ = {**self._environ, "HEARTH_HOME": str(self._folder)}
        self._programs[name] = start_python(self.home / f"{name}.log", "-m", "hearth.cli", *arguments, **environ)

    def open(self) -> None:
        """Register a worker, start it and a keeper, and wait until its offer stands."""
        self(
            *("worker", "init", "--config", str(self.worker_file), "--account", "worker", "--price", "0.60/h"),
            *("--country", "de", "--runtimes", "wasm", "--gpus", "none"),
        )
        # No ports of metrics: a market that runs as the README says has them.
        text = self.worker_file.read_text()
        self.worker_file.write_text(re.sub(r'^listen = ".*"$', 'listen = ""', text, flags=re.M))
        keeper = self.home / "keeper.toml"
        keeper.write_text(
            KEEPER.format(network=self._environ["HEARTH_NETWORK"], keys=self._folder / "keys", home=self.home)
        )
        self("worker", "register", "--config", str(self.worker_file))
        self.start("worker", "worker", "start", "--config", str(self.worker_file))
        self.start("keeper", "keeper", "run", "--config", str(keeper))
        wait(lambda: self("offers", "-q").out.strip(), "the worker's offer stands")

    def log(self, name: str) -> str:
        """Return what a program wrote."""
        return (self.home / f"{name}.log").read_text(errors="replace")

    def events(self) -> list[Event]:
        """Return every event of the market's contracts."""
        network = self.market.network
        addresses: Sequence[str] = list(network.contracts.values())
        logs = self.chain.logs(addresses, from_block=network.deploy_block, to_block=self.chain.head().number)
        return [event for log in logs if (event := decode(log)) is not None]

    def unit(self, job: str, block: BlockRef = "latest") -> Any:
        """Return the only unit of a job as the chain has it."""
        return self.market.unit(bytes.fromhex(job[2:]), 0, block).unit  # type: ignore[arg-type]

    def assert_alive(self) -> None:
        """Check that every program still runs."""
        for name, program in self._programs.items():
            assert program.poll() is None, f"{name} ended with {program.returncode}\n{self.log(name)[-4000:]}"

    def close(self) -> None:
        """Stop everything."""
        for program in self._programs.values():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(program.pid, signal.SIGKILL)
            program.wait()
        self.geth.close()
