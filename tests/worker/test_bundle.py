"""hearth worker bundle, and the canary: a known key, its password and RPC tokens stand in no output at all."""

from __future__ import annotations

import json
import signal
import stat
import urllib.request
from contextlib import suppress
from pathlib import Path

import pytest

from hearth.local.devnet import free_port
from hearth.spec.resolved import ResolvedInput
from hearth.storage import cid as cids
from tests.kit.exchange import PASSWORD, Exchange, Scenario, status
from tests.kit.running import wait
from tests.kit.town import hearth

pytestmark = pytest.mark.e2e

TOKENS = ("tok-canary-of-a-path-71", "tok-canary-of-a-query-72", "tok-canary-of-a-user-73")


def secrets(scenario: Scenario) -> list[bytes]:
    """Return every form of what must stand nowhere."""
    key = scenario.secret
    texts = [key.hex(), key.hex().upper(), str(int.from_bytes(key, "big")), PASSWORD, *TOKENS]
    return [key, *(text.encode() for text in texts)]


def family(pid: int) -> list[int]:
    """Return a process and all that descend from it."""
    found = [pid]
    for one in found:
        with suppress(OSError):
            for task in Path(f"/proc/{one}/task").iterdir():
                found += [int(child) for child in (task / "children").read_text().split()]
    return found


def seen_outside(pid: int) -> dict[str, bytes]:
    """Return the arguments and environments of a process and its children, as another process sees them."""
    found = {}
    for one in family(pid):
        for name in ("cmdline", "environ"):
            with suppress(OSError):  # it has ended meanwhile
                found[f"{one}/{name}"] = Path(f"/proc/{one}/{name}").read_bytes()
    return found


@pytest.mark.parametrize("scenario", [{"turns": 300_000_000}], indirect=True)
def test_bundle__worker_at_work__helps_and_no_secret_is_in_it_or_anywhere(
    exchange: Exchange, scenario: Scenario, tmp_path: Path
) -> None:
    config, home, port = scenario.home / "worker.toml", exchange.user_home, free_port()
    path, query, user = TOKENS
    url = exchange.url.replace("127.0.0.1", f"user:{user}@127.0.0.1")
    rpc = f'"http://127.0.0.1:{free_port()}/v3/{path}", "{url}/?apikey={query}"'
    text = config.read_text().replace(f'"{exchange.url}"', rpc).replace('listen = ""', f'listen = "127.0.0.1:{port}"')
    config.write_text(text)
    scenario.start()
    scenario.working()
    gone = ResolvedInput(cid=str(cids.of(b"gone")), dst="/in/data", size=4)
    bad, job = scenario.post(inputs=(gone,)), scenario.post()
    assert scenario.process is not None
    outside: dict[str, bytes] = {}
    wait(lambda: outside.update(seen_outside(scenario.process.pid)) or len(family(scenario.process.pid)) > 1, "it runs")  # type: ignore[union-attr]
    limits = Path(f"/proc/{scenario.process.pid}/limits").read_text()
    assert [line.split()[4:6] for line in limits.splitlines() if line.startswith("Max core")] == [["0", "0"]]
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
    scenario.process.send_signal(signal.SIGABRT)
    assert scenario.process.wait(30) == -signal.SIGABRT
    assert list(scenario.home.glob("core*")) == []
    state = (scenario.home / "state").rglob("*")
    places |= {str(path): path.read_bytes() for path in [Path(log), *state] if path.is_file()}
    assert len(places) > 15
    leaks = [(place, canary) for place, content in places.items() for canary in secrets(scenario) if canary in content]
    assert leaks == []


def test_bundle__worker_toml_that_is_broken__says_so_and_tells_the_rest(tmp_path: Path, exchange: Exchange) -> None:
    config = tmp_path / "worker.toml"
    config.write_text(f'network = "devnet"\nrpc = ["https://x/{TOKENS[0]}"]\nnonsense = 1\n')
    network = ("--network", str(exchange.net.network_file))
    told = hearth(exchange.user_home, "worker", "bundle", "--config", str(config), "--json", *network)
    assert told.code == 0
    assert "nonsense" in told.json["missing"]["settings"]
    assert told.json["versions"]["wasmtime"]
    assert TOKENS[0] not in told.out
