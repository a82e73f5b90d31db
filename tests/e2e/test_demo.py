"""A demo that is stopped in the middle, and the whole one on a geth (on anvil: test_wheel.py)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from hearth.chain.rpc import RpcChain
from hearth.local.demo import ANEW
from hearth.market.events import Finished, GaveUp, Settled, decode
from hearth.market.network import load_network
from hearth.protocol.types import LOCAL_CHAIN_ID
from tests.kit.geth import Geth, need_geth, shared_chain
from tests.kit.http import to_loopback
from tests.kit.town import ROOT
from tools import schemas
from tools.services import geth

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


def _environment(tmp_path: Path) -> dict[str, str]:
    return {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(ROOT), "HEARTH_HOME": str(tmp_path / "home")}


def left_behind(tmp_path: Path) -> list[str]:
    """Return the command lines of processes that still work in the demo's folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if str(tmp_path).encode() in line and b"hearth-demo-" in line:
                found.append(line.decode(errors="replace"))
    return found


def test_demo__terminated_in_the_middle__stops_what_it_started(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "hearth.cli", "demo"],
        cwd=ROOT,
        env=_environment(tmp_path),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    for line in process.stderr:
        if "is node 1" in line:
            break
    process.send_signal(signal.SIGTERM)
    process.stderr.read()
    assert process.wait(timeout=60) == 130
    end = time.monotonic() + 20
    while left_behind(tmp_path) and time.monotonic() < end:
        time.sleep(0.2)
    assert left_behind(tmp_path) == []
    assert not list(tmp_path.glob("hearth-demo-*"))


@pytest.fixture
def local_geth(tmp_path: Path) -> Iterator[Geth]:
    """Run a geth of the chain id that local chains have."""
    need_geth()
    made = Geth(tmp_path, geth.genesis(chain_id=LOCAL_CHAIN_ID))
    try:
        yield made
    finally:
        made.close()


@pytest.mark.deep
def test_demo__on_a_geth_that_runs_already__shows_every_scene_and_leaves_the_chain(
    tmp_path: Path, local_geth: Geth
) -> None:
    """It needs no anvil for that; the container job, and the engine that other tests share, are left out."""
    plain = {name: value for name, value in _environment(tmp_path).items() if name.startswith("HEARTH_TEST") is False}
    process = subprocess.Popen(
        [sys.executable, "-m", "hearth.cli", "demo", "--keep", "--web", "--rpc", local_geth.url],
        cwd=ROOT,
        env={**plain, "HEARTH_ANVIL": str(tmp_path / "nowhere")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        lines.append(line)
        if "the page: " in line:
            break
    assert "the page: " in lines[-1], "".join(lines)[-3000:]
    origin, _, token = lines[-1].split("the page: ")[1].strip().partition("/#token=")
    asked = to_loopback(f"{origin}/networks/devnet.json", headers={"X-Hearth-Token": token})
    with urllib.request.urlopen(asked, timeout=30) as answer:
        assert json.load(answer)["rpc"] == [local_geth.url]
    process.send_signal(signal.SIGINT)
    out, rest = process.communicate(timeout=120)
    stderr = "".join(lines) + rest
    assert process.returncode == 0, stderr[-3000:]
    report = json.loads(out)
    schemas.validate(report)
    assert report["solvent"] is True and "unproven" not in report and report["wall_seconds"] < 300
    for words in (
        "on a chain of Geth/",
        "on probation until they have been paid for some work: 1, 2, 3",
        "signed the result of attested",
        "what it waited for has ended as asked: it waits for a machine",
        "a job that it waited for ended otherwise than asked",
        "it beats no more",
        "gave it up and paid for that",
        "is off probation",
        "submitted and settled (ok)",
    ):
        assert words in stderr, words
    # A very busy machine begins anew, and says why.
    assert "from the checkpoint of attempt 1" in stderr or ANEW in stderr
    assert left_behind(tmp_path) == []

    # What it counts is what the chain says, which outlives it.
    (folder,) = tmp_path.glob("hearth-demo-*")
    network = load_network(folder / "networks" / "devnet.json")
    chain = RpcChain([local_geth.url])
    logs = chain.logs([network.jobs], from_block=network.deploy_block, to_block=chain.head().number)
    counts = Counter(type(event) for log in logs if (event := decode(log)) is not None)
    assert (report["finished"], report["given_up"]) == (counts[Finished], counts[GaveUp])
    assert counts[GaveUp] == 1 and counts[Finished] >= 2 and counts[Settled] >= 5


def test_demo__on_a_chain_that_is_no_local_one__is_refused_before_anything_is_sent(tmp_path: Path) -> None:
    url = shared_chain()
    said = subprocess.run(
        [sys.executable, "-m", "hearth.cli", "demo", "--rpc", url],
        cwd=ROOT,
        env=_environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (said.returncode, said.stdout) == (4, "")
    assert f"serves chain {geth.CHAIN_ID}: the keys are public" in said.stderr
    assert not list(tmp_path.glob("hearth-demo-*"))
