"""Faults that last until somebody acts: each is held until its alerts fire, taken back, and has to be forgotten then.

And what an owner does to a node that works: another version of the program, another key of its operator.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from hearth.chain import keys
from hearth.chain.tx_journal import SCHEMA
from hearth.local import devnet
from hearth.protocol.types import State
from tests.chaos import alerts
from tests.chaos.alerts import Prometheus
from tests.chaos.faults import READY_SECONDS, Scene
from tests.chaos.market import Keeper, Lane
from tests.chaos.processes import Child
from tests.chaos.proxy import breaks
from tests.chaos.reorgs import MAX_DEPTH
from tests.kit.disks import fill
from tests.kit.exchange import ETH, PASSWORD
from tests.kit.liars import Lie
from tests.kit.running import wait
from worker.mode import set_mode

DEAD: dict[str, tuple[Lie, float]] = {"breaks": (breaks, 1.0)}
"""What a provider does that answers nothing."""
END_SECONDS = 240.0


@dataclass(frozen=True)
class Lasting:
    """A fault that is there from `begin` to `end`; `again` renews once a second what the chain or a daemon undoes."""

    begin: Callable[[Scene], None]
    end: Callable[[Scene], None]
    again: Callable[[Scene], None] = lambda scene: None


def hold(
    fault: Lasting, name: str, scene: Scene, prometheus: Prometheus, factor: float, stop: threading.Event
) -> str | None:
    """Hold a fault until each of its alerts fires, and take it back; return which came when.

    "" where one never did, None where `stop` came first.
    """
    wanted, fired = set(alerts.TABLE[name].alerts), dict[str, float]()
    longest = max(alerts.needs(alert, factor) for alert in wanted) + 2 * alerts.SLACK_SECONDS
    began = time.monotonic()
    fault.begin(scene)
    try:
        while wanted - fired.keys() and time.monotonic() - began < longest and not stop.wait(1.0):
            fault.again(scene)
            for alert in wanted & prometheus.firing(scene.lane.name):
                fired.setdefault(alert, time.monotonic() - began)
    finally:
        fault.end(scene)
    if wanted - fired.keys():
        return None if stop.is_set() else ""
    return ", ".join(f"{alert} after {seconds:.0f} s" for alert, seconds in sorted(fired.items()))


# ---- the faults ----


def _stop(one: Lane | Keeper) -> None:
    assert one.process is not None
    one.process.terminate()
    one.process.wait(60)


def _start(one: Lane | Keeper) -> None:
    one.start()
    wait(lambda: one.ready, "it works again", READY_SECONDS)


def _fill(scene: Scene) -> None:
    fill(scene.lane.home / "state" / "filled")


def _empty(scene: Scene) -> None:
    (scene.lane.home / "state" / "filled").unlink()


def _break_providers(scene: Scene) -> None:
    for proxy in scene.proxies:
        proxy.rate = 1.0


def _mend_providers(scene: Scene) -> None:
    for proxy in scene.proxies:
        proxy.rate = 0.0


def _change_settings(scene: Scene, change: Callable[[str, Path], str]) -> None:
    """Rewrite both settings files by a rule, the usual ones kept beside them, and have the daemons read them."""
    for one, path in _settings(scene):
        usual = path.with_suffix(".usual")
        usual.write_text(path.read_text())
        path.write_text(change(usual.read_text(), path))
        assert one.process is not None
        os.kill(one.process.pid, signal.SIGHUP)


def _usual_settings(scene: Scene) -> None:
    for one, path in _settings(scene):
        path.write_text(path.with_suffix(".usual").read_text())
        assert one.process is not None
        os.kill(one.process.pid, signal.SIGHUP)


def _settings(scene: Scene) -> Iterator[tuple[Lane | Keeper, Path]]:
    yield scene.lane, scene.lane.config
    yield scene.keeper, scene.keeper.home / "keeper.toml"


def _pay_nothing(text: str, path: Path) -> str:
    """Set the limit below every price there is; in worker.toml it is the first key, in keeper.toml one of [limits]."""
    limit = 'max_gas_price = "0.000000001 gwei"\n'
    return limit + text if path.name == "worker.toml" else text.replace("[limits]\n", f"[limits]\n{limit}")


def _misspell(text: str, path: Path) -> str:
    return text + "\n[no_such_section]\nkey = 1\n"


def _take_coin(scene: Scene) -> None:
    """Take it, and again where a reorganisation of the shared chain brought it back."""
    _set_coin(scene, 0)


def _give_coin(scene: Scene) -> None:
    _set_coin(scene, 10 * ETH)
    # Deeper than any reorganisation: else one would take it away again.
    scene.market.chain.rpc("anvil_mine", hex(MAX_DEPTH + 4))


def _set_coin(scene: Scene, wei: int) -> None:
    for address in (scene.lane.operator, scene.keeper.address):
        scene.market.chain.rpc("anvil_setBalance", address, hex(wei))


LASTING: dict[str, Lasting] = {
    "worker_stopped": Lasting(lambda scene: _stop(scene.lane), lambda scene: _start(scene.lane)),
    "disk_stays_full": Lasting(_fill, _empty, _fill),
    "no_provider": Lasting(_break_providers, _mend_providers),
    "settings_refused": Lasting(lambda scene: _change_settings(scene, _misspell), _usual_settings),
    "no_coin": Lasting(_take_coin, _give_coin, _take_coin),
    "keeper_stopped": Lasting(lambda scene: _stop(scene.keeper), lambda scene: _start(scene.keeper)),
    "gas_above_the_limit": Lasting(lambda scene: _change_settings(scene, _pay_nothing), _usual_settings),
}


# ---- what an owner does ----


def upgrade(scene: Scene) -> str:
    """Drain the worker, and let a process go on whose journal the version before wrote."""
    _await_lease(scene)
    lane, unit, began = scene.lane, scene.unit, time.monotonic()
    set_mode(lane.home / "state", "drain")
    assert lane.process is not None
    code = lane.process.wait(END_SECONDS)
    assert code == 0, f"the drain ended with {code}: {lane.log()[-800:]}"
    drained = time.monotonic() - began
    path = next((lane.home / "state").glob("tx-*.db"))
    before = make_old(path)
    _start(lane)
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=10)) as db:
        version = db.execute("PRAGMA user_version").fetchone()[0]
        after = db.execute("SELECT count(*) FROM intents WHERE id <= ?", (before,)).fetchone()[0]
    if version != SCHEMA.version:
        return ""
    return f"drained with its unit {unit} in {drained:.0f} s, {after} transactions brought to version {version}"


def _await_lease(scene: Scene) -> None:
    """Wait until a lease runs; where none comes in time, the evidence says what there was instead."""
    with suppress(AssertionError):
        wait(lambda: scene.unit == State.RUNNING.name, "a lease runs", READY_SECONDS)


def make_old(path: Path) -> int:
    """Make a journal of transactions one of version 0, which before its steps; return its newest row."""
    with closing(sqlite3.connect(path)) as db:
        for table, column in re.findall(r"ALTER TABLE (\w+) ADD COLUMN (\w+)", ";".join(SCHEMA.steps)):
            db.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
        db.execute("PRAGMA user_version=0")
        db.commit()
        newest: int = db.execute("SELECT max(id) FROM intents").fetchone()[0]
    return newest


def change_key(scene: Scene) -> str:
    """Let the owner offer the node to another key while a lease runs, and the worker go on with that one."""
    _await_lease(scene)
    lane, market = scene.lane, scene.market
    unit, old = scene.unit, lane.process
    assert old is not None
    name = f"operator-{time.monotonic_ns()}"
    new = keys.create_key(lane.home / "keys", name, PASSWORD, devnet=True)
    devnet.fund(market.chain, market.net.network, new.address, wei=10 * ETH)
    owner = lane.home / name
    keys.create_key(owner / "keys", "cold", PASSWORD, secret=bytes(devnet.account(1).key), devnet=True)
    owner.chmod(0o700)
    arguments = ("worker", "operator", new.address, "--node", str(lane.node), "--account", "cold", "--json")
    more = ("--password-file", str(lane.home / "password"), "--network", str(market.net.network_file))
    said = Child(owner / "said", "hearth", *arguments, *more, HEARTH_HOME=str(owner))
    code, text = said.wait(READY_SECONDS), (owner / "said").read_text()
    assert code == 0, text
    assert old.poll() is None and market.market.node(lane.node).operator == lane.operator, "the old key serves on"
    _stop(lane)
    lane.former.append(lane.operator)
    lane.operator = new.address
    lane.config.write_text(lane.config.read_text().replace(_keystore(lane), f"keys/{name}.json"))
    _start(lane)
    wait(lambda: market.market.node(lane.node).operator == new.address, "the new key's first beat", READY_SECONDS)
    # Deeper than any reorganisation: else one would give the node back to the old key.
    market.chain.rpc("anvil_mine", hex(MAX_DEPTH + 4))
    sent = len(json.loads(text.splitlines()[-1])["transactions"])
    return f"{sent} transaction with the unit {unit}; the old key's worker was stopped, the new one's works"


def _keystore(lane: Lane) -> str:
    line = next(line for line in lane.config.read_text().splitlines() if line.startswith("keystore = "))
    return line.partition(" = ")[2].strip('"')
