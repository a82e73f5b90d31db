"""The README's commands as written: the five minutes on a devnet, the market of your own on another chain."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hearth.chain.rpc import Web3Chain
from hearth.local import devnet
from hearth.local.devnet import free_port
from hearth.market.network import load_network
from hearth.market.reads import Market
from tests.kit.anvil import bare_chain, need_anvil
from tests.kit.require import require

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SECONDS = 300


def blocks(mark: str, language: str) -> list[str]:
    """Return the fenced blocks that follow a comment which begins with `mark`."""
    return re.findall(rf"^<!-- {mark}[^\n]*-->\n```{language}\n(.*?)^```$", README, re.M | re.S)


def test_readme__first_lines__say_what_it_is() -> None:
    head = "\n".join(README.splitlines()[:10])
    assert "Unaudited" in head and "market" in head
    assert "make demo" in README and "make test" in README
    for name in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / name).exists(), name


def test_readme__every_shell_block__is_run_by_a_test() -> None:
    run = [blocks("tour", "sh"), blocks("market", "sh")]
    assert sum(map(len, run)) == len(re.findall(r"^```sh$", README, re.M))
    assert len(run[0]) >= 6 and len(run[1]) >= 4


def play(mark: str, folder: Path, *, change: Callable[[str], str] = str, **variables: str) -> tuple[int, str]:
    """Run the blocks of a mark in a clean folder, as a user who has the clone's examples and scripts there.

    Returns the exit status (-1 after SECONDS) and everything that was said.
    """
    script = change("set -eu\n" + "".join(blocks(mark, "sh")))
    (folder / "bin").mkdir()
    command = folder / "bin" / "hearth"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m hearth.cli "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    for name in ("examples", "scripts"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "ape-config.yaml", folder)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HEARTH_")}
    environment |= {
        "PATH": f"{folder / 'bin'}:{Path(sys.executable).parent}:{environment.get('PATH', '')}",
        "PYTHONPATH": str(ROOT),
        "HOME": str(folder),
        **variables,
    }
    log = folder / "said.log"
    with log.open("wb") as out:
        shell = subprocess.Popen(
            ["bash", "-c", script],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = shell.wait(SECONDS)
        except subprocess.TimeoutExpired:
            code = -1
        finally:
            # Whatever still runs, of a script that failed too: the worker, the keeper and the chain are in its session.
            for stop in (signal.SIGTERM, signal.SIGKILL):
                try:
                    os.killpg(shell.pid, stop)
                except ProcessLookupError:
                    break
            shell.wait(10)
    return code, log.read_text(encoding="utf-8", errors="replace")


@pytest.fixture
def anvil() -> Path:
    return need_anvil()


def test_readme__tour__runs_as_written(tmp_path: Path, anvil: Path) -> None:
    def on_a_free_port(script: str) -> str:
        # Another port, so that a devnet of the developer's own may run meanwhile: the one change.
        assert script.count("hearth devnet up\n") == 1
        return script.replace("hearth devnet up\n", f"hearth devnet up --port {free_port()}\n")

    try:
        code, said = play("tour", tmp_path, change=on_a_free_port, HEARTH_ANVIL=str(anvil))
    finally:
        devnet.down(tmp_path / ".hearth")
    assert code == 0, said

    expected = [line for block in blocks("output", "text") for line in block.splitlines()]
    assert len(expected) >= 4
    assert [line for line in expected if line not in said] == []
    assert "exit code 100" in said
    assert '"solvent": true' in said and '"results_checked": 2' in said
    assert (tmp_path / ".hearth" / "out" / "weights.bin").stat().st_size > 0
    assert "withdrew " in said
    assert not devnet.status(tmp_path / ".hearth").running


@pytest.mark.usefixtures("anvil")
def test_readme__a_market_of_your_own__runs_as_written_through_a_paid_job(tmp_path: Path) -> None:
    require("ape", (Path(sys.executable).parent / "ape").exists(), "the dev dependencies are not installed")
    phrase = tmp_path / "phrase"
    phrase.write_text("test test test test test test test test test test test junk\n")
    phrase.chmod(0o600)
    treasury = devnet.account(devnet.TREASURY).address
    with bare_chain("--chain-id", "4242", "--block-time", "1") as url:
        code, said = play("market", tmp_path, RPC=url, PHRASE=str(phrase), TREASURY=treasury)
        assert code == 0, said
        network = load_network(tmp_path / "networks" / "mymarket.json")
        market = Market(Web3Chain([url], timeout=10), network)
        market.check()
        assert (network.chain_id, market.immutable("JobRegistry", "TREASURY")) == (4242, treasury.lower())
        assert market.credit(treasury.lower()) > 0
        assert market.policies().paused_until > market.port.head().timestamp
    assert (tmp_path / ".mine" / "out" / "weights.bin").stat().st_size > 0
    assert '"solvent": true' in said and '"settled": 1' in said
