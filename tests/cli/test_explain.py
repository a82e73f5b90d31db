"""`hearth job explain` as its own process: what it reads, what it prints, that it asks nobody."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hearth.market.calls import Calls
from hearth.market.network import save_network
from tests.kit.evm import ROOT
from tests.web.vectors import prepared
from tests.web.vectors.network import NETWORK

CALL = Calls(NETWORK).withdraw(prepared.OTHER, 10**17)
DATA = "0x" + CALL.data.hex()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    save_network(NETWORK, tmp_path / "home" / "networks" / "devnet.json")
    (tmp_path / "home").chmod(0o700)
    return tmp_path / "home"


def explain(home: Path, *arguments: str, stdin: str | bytes = b"") -> subprocess.CompletedProcess[str]:
    # Nothing answers there: an RPC that is asked is an error.
    said = stdin.encode() if isinstance(stdin, str) else stdin
    done = subprocess.run(
        [sys.executable, "-m", "hearth.cli", "job", "explain", "--rpc", "http://127.0.0.1:9", *arguments],
        env={"HEARTH_HOME": str(home), "PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": str(home)},
        cwd=home,
        input=said,
        capture_output=True,
        timeout=120,
        check=False,
    )
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def test_explain__data__is_told_in_lines_json_and_hashes(home: Path) -> None:
    done = explain(home, DATA)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "Withdraw 0.1 ETH of credit in Escrow"
    assert any(prepared.OTHER in line for line in lines)
    report = json.loads(explain(home, DATA, "--json").stdout)

    assert (report["schema"], report["network"]) == ("hearth.explanation/1", "devnet")
    assert lines[-1].endswith(report["calls"][0]["data_hash"])
    assert explain(home, DATA, "-q").stdout.strip() == report["calls"][0]["data_hash"]


def test_explain__stdin_and_a_file__are_read_alike(home: Path, tmp_path: Path) -> None:
    path = tmp_path / "call.txt"
    path.write_text(f"  {DATA}\n")
    said = explain(home, DATA).stdout

    assert explain(home, "-", stdin=f"{DATA}\n").stdout == said
    assert explain(home, str(path)).stdout == said


@pytest.mark.parametrize(
    ("given", "stdin", "why"),
    [("nowhere", b"", "No such file"), (".", b"", "Is a directory"), ("-", b"\xff\xfe", "it is no text")],
)
def test_explain__what_cannot_be_read__is_refused(home: Path, given: str, stdin: bytes, why: str) -> None:
    done = explain(home, given, stdin=stdin)

    assert done.returncode == 2
    assert why in done.stderr and "Traceback" not in done.stderr
