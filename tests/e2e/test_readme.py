"""The README's commands as written: the five minutes on a devnet, the market of your own on anvil and on geth."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hearth.chain.rpc import RpcChain
from hearth.local import devnet
from hearth.local.devnet import free_port
from hearth.market.network import load_network
from hearth.market.reads import Market
from hearth.protocol.gpu_tiers import TIERS
from hearth.protocol.types import NodeId, Offer, Runtime
from tests.kit.anvil import bare_chain, need_anvil
from tests.kit.geth import CHAIN_ID, shared_chain
from tests.kit.readme import PHRASE, README, ROOT, blocks, ending, play
from tests.kit.require import require
from tests.kit.town import Town, town

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


def test_readme__first_lines__say_what_it_is() -> None:
    head = "\n".join(README.splitlines()[:10])
    assert "Unaudited" in head and "market" in head
    assert "make demo" in README and "make test" in README
    assert README.split("```text\n")[0].count("\n") <= 60, "the first output is below the first screen"
    for name in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / name).exists(), name


def test_readme__background_processes__are_waited_for_by_their_ids() -> None:
    # A shell that no person sits at forgets a job that has ended: `wait %1` then fails, and `wait "$worker"` does not.
    scripts = "".join(blocks("tour", "sh") + blocks("market", "sh"))
    assert re.findall(r"^(?:wait|kill) +(?!\"\$)", scripts, re.M) == []
    for name in re.findall(r'^(?:wait|kill) +"\$(\w+)"', scripts, re.M):
        assert f"&\n{name}=$!\n" in scripts, name


def test_readme__every_shell_block__is_run_by_a_test() -> None:
    run = [blocks("tour", "sh"), blocks("market", "sh")]
    assert sum(map(len, run)) == len(re.findall(r"^```sh$", README, re.M))
    assert len(run[0]) >= 6 and len(run[1]) >= 4


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
    assert code == 0, ending(said)

    expected = [line for block in blocks("output", "text") for line in block.splitlines()]
    assert len(expected) >= 4
    assert [line for line in expected if line not in said] == []
    assert "exit code 100" in said
    # The job file's, the failing one's, and that of the job without a file.
    assert '"solvent": true' in said and '"results_checked": 3' in said
    assert (tmp_path / ".hearth" / "out" / "weights.bin").stat().st_size > 0
    assert "withdrew " in said
    assert not devnet.status(tmp_path / ".hearth").running


@pytest.fixture
def place(tmp_path: Path, anvil: Path) -> Iterator[Town]:
    with town(tmp_path) as made:
        yield made


OFFERED = (("rtx-4090", 24, 40), ("rtx-3060", 12, 20), ("", 0, 10))
"""What three machines say that they offer: tier, memory in GiB, hundredths of a coin an hour. None has a GPU."""


def test_readme__gpu_job__check_prints_these_lines(place: Town) -> None:
    calls, kinds = place.market.calls, Runtime.WASM | Runtime.DOCKER
    nodes = dict(zip((3, 5, 6), OFFERED, strict=True))
    for operator, (tier, vram, price) in nodes.items():
        offer = Offer(
            runtimes=kinds | Runtime.NVIDIA if tier else kinds,
            tier=TIERS.get(tier, 0),
            gpu_count=int(bool(tier)),
            vram_gib=vram,
            cores=8,
            ram_gib=64,
            disk_gib=200,
            ask=price * 10**22 // 3_600,
        )
        key = devnet.account(operator).address
        place.sender(2).send(calls.register(key, offer, bytes(32), 2 * 10**18), key=f"register/{operator}")
    for node, operator in enumerate(nodes, 1):
        place.sender(operator).send(calls.beat(NodeId(node)), key=f"beat/{operator}")

    folder = place.home / "finetune"
    (folder / "work").mkdir(parents=True)
    (folder / "work" / "train.py").write_text("print()\n")
    (folder / "data.jsonl").write_text("{}\n")
    (file,), (printed,) = blocks("GPU job", "yaml"), blocks("GPU check", "text")
    (folder / "job.yaml").write_text(file)
    assert len(file.splitlines()) <= 10
    with place.still():  # so that no node falls silent meanwhile
        told = place.hearth("check", str(folder / "job.yaml"), "--account", "dev")
    assert told.code == 0, told.err + told.out
    assert [line for line in printed.splitlines() if line not in told.out.splitlines()] == []


@pytest.fixture
def own_chain() -> Iterator[str]:
    """Run a chain that is not the devnet's, and yield its URL: a geth where one is at hand, an anvil where none is."""
    if "HEARTH_TEST_GETH_RPC" in os.environ or "geth" in os.environ.get("HEARTH_REQUIRE", ""):
        yield shared_chain()
        return
    need_anvil()
    with bare_chain("--chain-id", str(CHAIN_ID), "--block-time", "1") as url:
        yield url


@pytest.mark.deep
def test_readme__a_market_of_your_own__runs_as_written_through_a_paid_job(tmp_path: Path, own_chain: str) -> None:
    require("ape", (Path(sys.executable).parent / "ape").exists(), "the dev dependencies are not installed")
    phrase = tmp_path / "phrase"
    phrase.write_text(PHRASE + "\n")
    phrase.chmod(0o600)
    treasury = devnet.account(devnet.TREASURY).address
    code, said = play("market", tmp_path, RPC=own_chain, PHRASE=str(phrase), TREASURY=treasury)
    assert code == 0, ending(said)
    network = load_network(tmp_path / "networks" / "mymarket.json")
    market = Market(RpcChain([own_chain], timeout=10), network)
    market.identity.check()
    assert (network.chain_id, market.immutable("JobRegistry", "TREASURY")) == (CHAIN_ID, treasury.lower())
    assert market.credit(treasury.lower()) > 0
    assert market.policies().paused_until > market.port.head().timestamp
    assert "policy: fee_bps 500 (5 %) -> 300 (3 %)" in said and market.policy().fee_bps == 500
    assert market.governor("Rules") == network.steward
    assert (tmp_path / ".mine" / "out" / "weights.bin").stat().st_size > 0
    assert '"solvent": true' in said and '"settled": 1' in said
