"""The keeper as a process of its own, with a key file, a configuration and signals."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import structlog

from hearth.chain.keys import create_key
from hearth.local.devnet import free_port
from hearth.market.network import save_network
from hearth.protocol.types import TermsFlag
from keeper.__main__ import main
from keeper.health import KeeperHealth
from keeper.loop import Keeper
from keeper.process import run_keeper
from keeper.settings import parse
from tests.kit.anvil import need_anvil
from tests.kit.evm import ROOT
from tests.kit.live import SECRET, LiveMarket
from tests.kit.town import Said
from tests.kit.town import hearth as run_hearth
from tools import schemas

pytestmark = pytest.mark.net


@pytest.fixture
def market(tmp_path: Path) -> Iterator[LiveMarket]:
    need_anvil()
    live = LiveMarket(tmp_path)
    save_network(live.network(), tmp_path / "net.json")
    yield live
    live.close()


@pytest.fixture(autouse=True)
def own_process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Undo what `main` sets up: its logger writes to the stderr of one test, and a hardened process stays so."""
    monkeypatch.setattr("keeper.__main__.harden", lambda: None)
    monkeypatch.setenv("HEARTH_HOME", str(tmp_path / "user"))
    yield
    structlog.reset_defaults()


def write_config(folder: Path, *, key: bool = True, port: int = 0, extra: str = "") -> Path:
    path = folder / "keeper.toml"
    account = ""
    if key:
        create_key(folder / "keys", "keeper", "correct horse", secret=SECRET, devnet=True)
        password = folder / "password"
        password.write_text("correct horse\n")
        password.chmod(0o600)
        account = '[account]\nkeystore = "keys/keeper.json"\npassword_file = "password"\n'
    path.write_text(
        f'network = "{folder / "net.json"}"\nhome = "home"\npoll = 0.1\n'
        f'[work]\njitter = "0s"\nlatency = "0s"\nmax_loss = "unlimited"\n'
        f'[limits]\nmax_lag = "0s"\n'
        f'[metrics]\nlisten = "{f"127.0.0.1:{port}" if port else ""}"\n{extra}{account}'
    )
    return path


def start(config: Path, *flags: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "keeper", "--config", str(config), "--json", *flags]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def until(condition: Any, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.1)


def ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


@pytest.mark.e2e
def test_keeper__as_a_process__proposes_and_ends_on_sigterm(market: LiveMarket) -> None:
    world = market.world
    node = world.register()
    port = free_port()
    process = start(write_config(market.folder, port=port))
    try:
        until(lambda: ready(port) or process.poll() is not None)
        terms = world.post(match_window=12, flags=TermsFlag.NEWCOMERS)
        until(lambda: world.load(terms)[2] != 0 or process.poll() is not None)
        assert world.best(terms).node == node
        limits = Path(f"/proc/{process.pid}/limits").read_text()
        assert re.search(r"Max core file size +1 +1 ", limits), "its key could end in a core dump"
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 0, said
    lines = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    assert [line["action"] for line in lines if line["event"] == "action.mined"] == ["propose"]
    assert "correct horse" not in said
    assert SECRET.hex() not in said


@pytest.mark.e2e
def test_keeper__killed_while_its_transaction_waits__sends_it_once(market: LiveMarket) -> None:
    world = market.world
    world.register()
    terms = world.post(match_window=12, flags=TermsFlag.NEWCOMERS)
    config = write_config(market.folder)
    market.evm.rpc("evm_setAutomine", False)
    process = start(config)
    until(lambda: market.evm.rpc("txpool_status")["pending"] != "0x0" or process.poll() is not None)
    process.kill()
    process.communicate()
    again = start(config, "--cycles", "2")
    try:
        time.sleep(3)  # long enough to send a second one, were it to
        assert market.evm.rpc("txpool_status")["pending"] == "0x1"
        market.evm.rpc("evm_setIntervalMining", 1)
        _, said = again.communicate(timeout=60)
    finally:
        again.kill()
    assert again.returncode == 0, said
    assert world.best(terms).payee == market.address
    assert int(market.evm.rpc("eth_getTransactionCount", market.address, "latest"), 16) == 1


def test_main__two_keepers_on_one_key__second_refuses(market: LiveMarket, capsys: pytest.CaptureFixture[str]) -> None:
    config = write_config(market.folder)
    process = start(config)
    try:
        until(lambda: (market.folder / "home/status.json").exists() or process.poll() is not None)
        assert main(["--config", str(config), "--json", "--cycles", "1"]) == 3
    finally:
        process.kill()
        process.communicate()
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "KEY_IN_USE"


@pytest.mark.e2e
def test_reload__running_keeper__takes_up_the_whole_file_or_nothing(market: LiveMarket, tmp_path: Path) -> None:
    """A keeper that may lose nothing does not propose at anvil's gas price; one that may, does, without a restart."""
    world = market.world
    world.register()
    terms = world.post(match_window=12, flags=TermsFlag.NEWCOMERS)
    config = write_config(market.folder)
    generous = config.read_text()
    careful = generous.replace('max_loss = "unlimited"', 'max_loss = "0"')
    config.write_text(careful)

    def reload() -> Said:
        network = ("--network", str(tmp_path / "net.json"), "--json")
        return run_hearth(tmp_path / "user", "keeper", "reload", "--config", str(config), *network)

    early = reload()
    assert (early.code, early.error["code"]) == (3, "NOT_RUNNING")
    status = market.folder / "home" / "status.json"
    process = start(config)
    try:
        until(lambda: status.exists() or process.poll() is not None)
        config.write_text(careful + "[limits")
        assert reload().error["code"] == "BAD_CONFIG"
        process.send_signal(signal.SIGHUP)
        until(lambda: (market.folder / "home" / "reload.json").exists())
        config.unlink()
        assert reload().error["code"] == "NO_CONFIG"
        config.write_text(generous.replace("[limits]", '[limits]\npage_blocks = 9\nmax_gas_price = "7 gwei"'))
        said = reload()
        assert said.code == 0, said.out + said.err
        assert said.json["applied"] == ["limits.max_gas_price", "work.max_loss"]
        assert said.json["restart"] == ["limits.page_blocks"]
        market.evm.rpc("evm_mine")
        until(lambda: world.load(terms)[2] != 0 or process.poll() is not None)
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 0, log
    assert log.count("settings refused") == 1 and log.count("settings read") == 1


def test_run_keeper__reload_that_was_asked_for__is_taken_up_by_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a keeper told to spend less would go on as before, and `hearth keeper reload` would wait in vain."""
    settings, taken = parse({"network": "devnet", "home": "h", "metrics": {"listen": ""}}, Path("/keeper.toml")), []
    reloader: Any = SimpleNamespace(turn=lambda home, old, adopt: adopt(old), refused=False)
    keeper: Any = SimpleNamespace(
        settings=settings,
        adopt=taken.append,
        metrics=KeeperHealth(60.0).metrics,
        start=lambda: None,
        stop=lambda: None,
        run=lambda cycles: Keeper._reload(keeper),
    )
    monkeypatch.setattr("keeper.process.stop_on_signals", lambda stop: None)
    with ExitStack() as stack:
        run_keeper(keeper, stack, 1, reloader)
    assert taken == [settings]


def test_main__explain__prints_why(market: LiveMarket, capsys: pytest.CaptureFixture[str]) -> None:
    terms = market.world.post(match_window=12)
    job = "0x" + market.world.id_of(terms).hex()
    config = write_config(market.folder, key=False)
    assert main(["--config", str(config), "--explain", job]) == 0
    told = json.loads(capsys.readouterr().out)
    schemas.validate(told)
    assert told["job"] == job
    assert told["keeper"][0]["does"] == "nothing"
    assert main(["--config", str(config), "--explain", "0x12"]) == 2
    assert main(["--config", str(config), "--explain", "0x" + "00" * 32]) == 7


def test_main__key_that_others_can_read__refuses(market: LiveMarket, capsys: pytest.CaptureFixture[str]) -> None:
    config = write_config(market.folder)
    (market.folder / "keys/keeper.json").chmod(0o644)
    assert main(["--config", str(config), "--json", "--cycles", "1"]) == 3
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "OPEN_FILE"


def test_main__metrics_address_in_use__refuses(market: LiveMarket, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        config = write_config(market.folder, port=port)
        assert main(["--config", str(config), "--json", "--cycles", "1"]) == 3
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["message"].startswith(f"metrics.listen: 127.0.0.1:{port} cannot be had")
    assert (error["component"], error["details"]) == ("keeper", {"field": "metrics.listen"})


def test_main__wrong_chain__refuses_before_sending(market: LiveMarket, capsys: pytest.CaptureFixture[str]) -> None:
    config = write_config(market.folder)
    save_network(market.network(genesis_hash=bytes(32)), market.folder / "net.json")
    assert main(["--config", str(config), "--json", "--cycles", "1"]) == 4
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "WRONG_CHAIN"


def test_main__dry_run_for_one_cycle__says_what_it_would_do(market: LiveMarket) -> None:
    market.world.register()
    market.world.post(match_window=12, flags=TermsFlag.NEWCOMERS)
    config = write_config(market.folder)
    process = start(config, "--dry-run", "--cycles", "1")
    _, said = process.communicate(timeout=60)
    assert process.returncode == 0, said
    assert '"event": "action.dry"' in said
    assert not (market.folder / "home").exists()
    assert int(market.evm.rpc("eth_getTransactionCount", market.address, "latest"), 16) == 0
