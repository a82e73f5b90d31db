"""The README's five minutes, as written: its shell blocks run one after the other on a devnet of their own."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hearth.local import devnet
from hearth.local.devnet import free_port
from tests.kit.anvil import need_anvil

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


def test_readme__every_shell_block__is_part_of_the_tour() -> None:
    assert len(blocks("tour", "sh")) == len(re.findall(r"^```sh$", README, re.M)) >= 6


def test_readme__tour__runs_as_written(tmp_path: Path) -> None:
    anvil = need_anvil()
    script = "set -eu\n" + "".join(blocks("tour", "sh"))
    # Another port, so that a devnet of the developer's own may run meanwhile: the one change.
    assert script.count("hearth devnet up\n") == 1
    script = script.replace("hearth devnet up\n", f"hearth devnet up --port {free_port()}\n")

    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "hearth"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m hearth.cli "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HEARTH_")}
    environment |= {
        "PATH": f"{tmp_path / 'bin'}:{environment.get('PATH', '')}",
        "PYTHONPATH": str(ROOT),
        "HOME": str(tmp_path),
        "HEARTH_ANVIL": str(anvil),
    }
    log = tmp_path / "tour.log"
    with log.open("wb") as out:
        shell = subprocess.Popen(
            ["bash", "-c", script],
            cwd=tmp_path,
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
            # Whatever is left of a tour that failed: the worker, the keeper and the chain are in its session.
            for stop in (signal.SIGTERM, signal.SIGKILL):
                try:
                    os.killpg(shell.pid, stop)
                except ProcessLookupError:
                    break
            shell.wait(10)
            devnet.down(tmp_path / ".hearth")
    said = log.read_text(encoding="utf-8", errors="replace")
    assert code == 0, said

    expected = [line for block in blocks("output", "text") for line in block.splitlines()]
    assert len(expected) >= 4
    assert [line for line in expected if line not in said] == []
    assert "exit code 100" in said
    assert '"solvent": true' in said and '"results_checked": 2' in said
    assert (tmp_path / ".hearth" / "out" / "weights.bin").stat().st_size > 0
    assert "withdrew " in said
    assert not devnet.status(tmp_path / ".hearth").running
