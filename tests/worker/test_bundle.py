"""hearth worker bundle, and the canary: known keys, their passwords and RPC tokens stand in no output at all."""

from __future__ import annotations

import json
import shutil
import stat
import urllib.request
from pathlib import Path

import pytest

from hearth.chain import keys
from hearth.jobfile.resolved import ResolvedInput
from hearth.local import devnet
from hearth.local.devnet import free_port
from hearth.storage import cid as cids
from tests.kit.canary import (
    TOKENS,
    core_limit,
    dies_without_a_core,
    family,
    files_below,
    forms_of,
    leaks,
    seen_outside,
    with_tokens,
)
from tests.kit.exchange import PASSWORD, Exchange, Scenario, status
from tests.kit.running import start_python, wait
from tests.kit.town import hearth

pytestmark = pytest.mark.e2e

JOB = """\
version: 1
name: canary
runtime: wasm
module: ./program.wasm
resources: {cpus: 1, memory: 64MiB}
limits: {runtime: 10s, deadline: 1h}
price: {max_rate: "1.20/h"}
"""


@pytest.mark.parametrize("scenario", [{"turns": 1_000_000_000}], indirect=True)
def test_bundle__worker_at_work__helps_and_no_secret_is_in_it_or_anywhere(
    exchange: Exchange, scenario: Scenario, tmp_path: Path
) -> None:
    config, home, port = scenario.home / "worker.toml", exchange.user_home, free_port()
    rpc = f'"{with_tokens(f"http://127.0.0.1:{free_port()}")}", "{with_tokens(exchange.url, path=False)}"'
    text = config.read_text().replace(f'"{exchange.url}"', rpc).replace('listen = ""', f'listen = "127.0.0.1:{port}"')
    config.write_text(text)
    scenario.start(fresh=True)
    scenario.working()
    gone = ResolvedInput(cid=str(cids.of(b"gone")), dst="/in/data", size=4)
    bad, job = scenario.post(inputs=(gone,)), scenario.post()
    assert scenario.process is not None
    outside: dict[str, bytes] = {}
    wait(lambda: outside.update(seen_outside(scenario.process.pid)) or len(family(scenario.process.pid)) > 1, "it runs")  # type: ignore[union-attr]
    assert core_limit(scenario.process.pid) == ["1", "1"]
    scenario.settled(job)
    wait(lambda: (status(scenario.home) or {}).get("reasons", {}).get(bad.hex()), "the reason is told")

    out, log = tmp_path / "bundle.json", str(scenario.home / "log")
    network = ("--network", str(exchange.net.network_file))
    told = hearth(home, "worker", "bundle", "--config", str(config), "--log", log, "--out", str(out), *network)
    assert told.code == 0, told.err
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    again = hearth(home, "worker", "bundle", "--config", str(config), "--out", str(out), *network, "--json")
    assert again.error["code"] == "FILE_EXISTS"
    facts = json.loads(out.read_text())
    said = {
        name: hearth(home, "worker", *name.split(), "--config", str(config), *network)
        for name in ("bundle --json", "status --json", "doctor --json", f"why {job.hex()} --json")
    }

    # It helps.
    assert facts["missing"] == {}
    assert {row["name"] for row in facts["doctor"]} >= {"key file", "rpc", "store", "node"}
    assert facts["process"]["node"] == scenario.node
    assert facts["settings"]["offer"]["price"] == "0.0000036/h"
    assert any(row["job"] == f"{job.hex()[:12]}..." for row in facts["attempts"])
    assert any(row["key"].startswith("submit/") for row in facts["transactions"])
    assert any("attempt starts" in line for line in facts["log"])
    assert any(gone.cid in json.dumps(reason) for reason in facts["process"]["reasons"].values())
    assert {row["name"] for row in facts["home"]} >= {"work.db", "status.json", "jobs"}

    # The canary: nowhere.
    places = {f"hearth worker {name}": (one.out + one.err).encode() for name, one in said.items()}
    places |= {"bundle": out.read_bytes(), "the command that wrote it": (told.out + told.err).encode(), **outside}
    for page in ("metrics", "healthz", "readyz"):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/{page}", timeout=10) as answer:
            places[page] = answer.read()
    # A process that dies by a fault leaves no memory behind.
    assert dies_without_a_core(scenario.process.pid)
    assert list(scenario.home.glob("core*")) == []
    places |= {log: Path(log).read_bytes(), **files_below(scenario.home / "state")}
    assert len(places) > 15
    assert leaks(places, forms_of(scenario.secret, PASSWORD)) == []


def test_keeper_and_submitter__at_work__no_secret_is_seen_from_outside_or_lies_anywhere(
    exchange: Exchange, tmp_path: Path
) -> None:
    """Settings hold the tokens, a file of mode 600 the password: neither stands anywhere else."""
    password, temporary, user = tmp_path / "password", tmp_path / "tmp", tmp_path / "user"
    temporary.mkdir()
    password.write_text(PASSWORD)
    password.chmod(0o600)
    network, url = str(exchange.net.network_file), with_tokens(exchange.url, path=False)
    user.mkdir(mode=0o700)
    # One process a key: of two with copies of one, the second would wait.
    secrets = [bytes(devnet.account(number).key) for number in (3, 4)]
    for folder, secret in zip((tmp_path, user), secrets, strict=True):
        keys.create_key(folder / "keys", "canary", PASSWORD, secret=secret, devnet=True)
    facts = f'network = "{network}"\nrpc = ["{url}"]\n'
    (tmp_path / "keeper.toml").write_text(
        f'{facts}home = "keeper"\n[account]\nkeystore = "keys/canary.json"\npassword_file = "password"\n'
        '[metrics]\nlisten = ""\n'
    )
    (user / "config.toml").write_text(f'{facts}password_file = "{password}"\n')
    (tmp_path / "job.yaml").write_text(JOB)
    exchange.module("program", 1_000_000)
    shutil.copy(exchange.home / "program.wasm", tmp_path)
    environ = {"HEARTH_HOME": str(user), "TMPDIR": str(temporary)}
    submit = ("-m", "hearth.cli", "submit", "job.yaml", "--anyway", "--yes", "--json")
    running = {
        "keeper": start_python(tmp_path / "keeper.log", "-m", "keeper", "--config", "keeper.toml", **environ),
        "submit": start_python(tmp_path / "submit.log", *submit, "--wait", **environ),
    }
    outside: dict[str, bytes] = {}
    try:
        wait(lambda: (tmp_path / "keeper" / "status.json").exists(), "the keeper works")
        wait(lambda: b"posted" in (tmp_path / "submit.log").read_bytes(), "the job is posted")
        for process in running.values():
            outside |= seen_outside(process.pid)
            assert core_limit(process.pid) == ["1", "1"]
            assert dies_without_a_core(process.pid)
    finally:
        for process in running.values():
            process.kill()
            process.wait()
    command = ("keeper", "bundle", "--config", str(tmp_path / "keeper.toml"), "--log", str(tmp_path / "keeper.log"))
    for name, told in {
        "keeper bundle": hearth(user, *command, "--json"),
        "keeper status": hearth(user, "keeper", "status", "--config", str(tmp_path / "keeper.toml"), "--json"),
        "a refusal": hearth(user, "wallet", "send", "0x" + "11" * 20, "9999999", "--json"),
        "settings": hearth(user, "doctor", "--json"),
    }.items():
        outside[name] = (told.out + told.err).encode()
    written = (tmp_path / "keeper", user / "data", temporary)
    found = files_below(*written) | {str(path): path.read_bytes() for path in tmp_path.glob("*.log")}
    found |= {name: content for name, content in files_below(user).items() if not name.endswith("config.toml")}
    assert len(outside) >= 8 and any(name.endswith(".db") for name in found)
    for secret in secrets:
        assert leaks(outside | found, forms_of(secret, PASSWORD)) == []


def test_bundle__worker_toml_that_is_broken__says_so_and_tells_the_rest(tmp_path: Path, exchange: Exchange) -> None:
    config = tmp_path / "worker.toml"
    config.write_text(f'network = "devnet"\nrpc = ["https://x/{TOKENS[0]}"]\nnonsense = 1\n')
    network = ("--network", str(exchange.net.network_file))
    told = hearth(exchange.user_home, "worker", "bundle", "--config", str(config), "--json", *network)
    assert told.code == 0
    assert "nonsense" in told.json["missing"]["settings"]
    assert told.json["versions"]["wasmtime"]
    assert TOKENS[0] not in told.out
