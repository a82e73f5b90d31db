"""A running worker reads its settings again, works on with a wrong clock, and hands its leases on when it ends."""

from __future__ import annotations

import os
import signal
import time
from itertools import pairwise
from pathlib import Path

import pytest

from hearth.protocol.types import State
from tests.kit.exchange import Exchange, Scenario, status
from tests.kit.running import start_python, wait
from tests.kit.town import Said
from tests.kit.town import hearth as run_hearth
from tests.kit.wall_clock import Clock

pytestmark = pytest.mark.e2e


def command(scenario: Scenario, *arguments: str) -> Said:
    """Run a command of the worker's user."""
    network = ("--network", str(scenario.exchange.net.network_file), "--json")
    config = ("--config", str(scenario.home / "worker.toml"))
    return run_hearth(scenario.exchange.user_home, "worker", *arguments, *config, *network)


def reasons(scenario: Scenario, job: bytes) -> list[str]:
    found = (status(scenario.home) or {}).get("reasons", {})
    return [line["reason"] for line in found.get(job.hex(), [])]


def test_reload__running_worker__takes_up_the_whole_file_or_nothing(scenario: Scenario) -> None:
    config = scenario.home / "worker.toml"
    usual = config.read_text()
    config.write_text(f'{usual}\n[gas]\nmax_loss = "0"\n')
    job = scenario.post()
    early = command(scenario, "reload")
    assert (early.code, early.error["code"]) == (3, "NOT_RUNNING")
    scenario.start()
    process = scenario.process
    assert process is not None
    # Asked before the worker is ready, it ends nothing and is done later.
    wait(lambda: signal_is_caught(process.pid, signal.SIGHUP), "it listens")
    os.kill(process.pid, signal.SIGHUP)
    wait(lambda: "settings read" in scenario.log(), "it reads its settings once it works")
    wait(lambda: reasons(scenario, job) == ["unprofitable"], "no unit of this test pays for its gas")

    # What the command itself refuses never reaches the process; what only the process meets is refused there.
    dear = usual + '\n[gas]\nmax_loss = "unlimited"\n'
    config.write_text(dear[:-5])
    said = command(scenario, "reload")
    assert (said.code, said.error["code"]) == (3, "BAD_CONFIG") and "cannot be read" in said.error["message"]
    assert "settings refused" not in scenario.log()
    os.kill(process.pid, signal.SIGHUP)
    wait(lambda: "settings refused" in scenario.log(), "the process refuses it too")
    config.write_text(dear.replace(scenario.exchange.url, "http://127.0.0.1:9"))
    said = command(scenario, "reload")
    assert said.code == 3 and "the old settings stay in force" in said.error["message"], said.out
    assert (reasons(scenario, job), scenario.state(job)) == (["unprofitable"], State.OPEN)

    config.write_text(dear.replace('country = "us"', 'country = "de"'))
    said = command(scenario, "reload", "--dry-run")
    assert said.code == 0 and said.json["applied"] == [] and scenario.state(job) is State.OPEN
    said = command(scenario, "reload")
    assert said.code == 0, said.out + said.err
    assert (said.json["applied"], said.json["restart"]) == (["gas.max_loss"], ["offer.country"])
    scenario.settled(job)
    assert process.poll() is None
    scenario.stop()
    scenario.assert_once(job)


WRONG_CLOCK = """
import runpy
from tests.kit.wall_clock import preload
preload()
import hearth.daemon.chain_clock as clock
import worker.loop
worker.loop.LOCAL_CHAIN_ID = 0
clock.MAX_SKEW_SECONDS = 5
runpy.run_module("worker", run_name="__main__", alter_sys=True)
"""
"""A worker on a chain that is not local, whose wall clock a test sets."""


def start_with_clock(scenario: Scenario, clock: Clock) -> None:
    environ = {"HEARTH_HOME": str(scenario.exchange.user_home), **clock.environ}
    arguments = ("-c", WRONG_CLOCK, "--json", "--config", str(scenario.home / "worker.toml"))
    scenario.process = start_python(scenario.home / "log", *arguments, **environ)


def test_run__clock_jumps_a_day_while_it_works__submits_in_time_beats_and_takes_nothing_new(
    exchange: Exchange, scenario: Scenario
) -> None:
    usual, scenario.module = scenario.module, exchange.module(scenario.name, 300_000_000)
    config, clock = scenario.home / "worker.toml", Clock(scenario.home / "clock")
    config.write_text(
        config.read_text().replace(str(usual.cid), str(scenario.module.cid)) + '[gas]\nmax_loss="unlimited"'
    )
    job = scenario.post()
    start_with_clock(scenario, clock)
    wait(lambda: (status(scenario.home) or {}).get("attempts"), "it runs")
    for jump in (86_400, -86_400):
        clock.set(jump)
        wait(lambda: (status(scenario.home) or {}).get("hold") == "clock_skew", "it doubts its clock")
        beat = exchange.market.node(scenario.node).state.beat
        wait(lambda before=beat: exchange.market.node(scenario.node).state.beat > before, "it beats on")  # type: ignore[misc]
    later = scenario.post()
    scenario.settled(job)
    wait(lambda: reasons(scenario, later) == ["clock_skew"], "it says why it takes nothing")
    assert scenario.state(later) is State.OPEN
    clock.set(0)
    scenario.settled(later)
    scenario.stop()
    for one in (job, later):
        scenario.assert_once(one)


def test_run__chain_that_mines_on_demand_has_been_idle__is_asked_and_trusted(
    exchange: Exchange, scenario: Scenario
) -> None:
    """Its newest block is old, as that of a provider that lags would be: a beat tells them apart."""
    config, clock = scenario.home / "worker.toml", Clock(scenario.home / "clock")
    config.write_text(config.read_text() + '[gas]\nmax_loss="unlimited"')
    job = scenario.post()
    rpc = exchange.chain.rpc
    with exchange.still():
        rpc("evm_setAutomine", True)
        try:
            wait(lambda: time.time() - exchange.chain.head().timestamp > 7, "the chain is idle")
            start_with_clock(scenario, clock)
            scenario.settled(job, seconds=60)
        finally:
            rpc("evm_setAutomine", False)
    assert '"hold": "clock_skew"' not in scenario.log()
    scenario.stop()
    scenario.assert_once(job)


def test_drain__a_lease_runs__beats_and_submits_it_and_the_next_process_goes_on(
    exchange: Exchange, scenario: Scenario
) -> None:
    """An upgrade: drain, end, start of another process; a stop hands the lease to the next process instead."""
    usual, scenario.module = scenario.module, exchange.module(scenario.name, 500_000_000)
    config = scenario.home / "worker.toml"
    config.write_text(config.read_text().replace(str(usual.cid), str(scenario.module.cid)))
    drained = scenario.post()
    scenario.start()
    wait(lambda: (status(scenario.home) or {}).get("attempts"), "it runs")
    first = scenario.process
    assert first is not None
    # A second process on the key, of whatever version, is refused while the first one runs.
    second = start_python(scenario.home / "second", "-m", "worker", "--config", str(config))
    assert second.wait(60) == 3 and "wallet list" in (scenario.home / "second").read_text()
    assert command(scenario, "drain").json == {
        "schema": "hearth.worker.mode/1",
        "mode": "drain",
        "alive": True,
        "dry_run": False,
    }
    stopped = scenario.post()
    assert first.wait(120) == 0, scenario.log()[-3000:]
    lasts = sorted(int(key.rpartition("/")[2]) for key in scenario.transactions() if key.startswith("beat/"))
    beats = [*(last for last in lasts if last), exchange.market.node(scenario.node).state.beat]
    dead_after = exchange.net.network.node_parameters.dead_after
    assert max(after - before for before, after in pairwise([*beats, beats[-1]])) < dead_after, "it beat all the time"
    assert scenario.state(stopped) is State.OPEN and scenario.state(drained) is State.SETTLED
    scenario.start()
    wait(lambda: (status(scenario.home) or {}).get("attempts"), "the next process works")
    scenario.stop()
    assert scenario.state(stopped) is State.RUNNING
    scenario.start()
    scenario.settled(stopped)
    scenario.stop()
    for one in (drained, stopped):
        scenario.assert_once(one)


def test_drain__killed_in_the_midst__the_next_process_ends_it(exchange: Exchange, scenario: Scenario) -> None:
    """A crash, or a machine that starts anew, takes back nothing that its owner wished."""
    usual, scenario.module = scenario.module, exchange.module(scenario.name, 500_000_000)
    config = scenario.home / "worker.toml"
    config.write_text(config.read_text().replace(str(usual.cid), str(scenario.module.cid)))
    job = scenario.post()
    scenario.start()
    wait(lambda: (status(scenario.home) or {}).get("attempts"), "it runs")
    assert command(scenario, "drain").json["alive"]
    scenario.kill()
    later = scenario.post()
    scenario.start()
    assert scenario.process is not None
    assert scenario.process.wait(60) == 0, scenario.log()[-3000:]
    assert (scenario.state(job), scenario.state(later)) == (State.SETTLED, State.OPEN)
    scenario.assert_once(job)
    # What has ended is over: the next start means to work.
    scenario.start()
    scenario.settled(later)
    scenario.stop()


def signal_is_caught(pid: int, number: int) -> bool:
    """Say whether a process has a handler for a signal, from /proc."""
    line = next(one for one in Path(f"/proc/{pid}/status").read_text().splitlines() if one.startswith("SigCgt"))
    return bool(int(line.split()[1], 16) >> (number - 1) & 1)
