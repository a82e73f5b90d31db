"""A market of real processes for campaigns: anvil, workers, a keeper, submitters; a run costs seconds.

A lane is a node with its key, home, program and submitter: it takes its own jobs only, so that several lanes are hurt
at the same time on one chain. The market's clock is the devnet's but for `dead_after`: an honest node that is killed
again and again on a busy machine must not count as silent.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

from hearth.base.errors import HearthError, NotFoundError, StorageError
from hearth.chain import keys
from hearth.chain.tx import Sender, SenderConfig
from hearth.chain.tx_journal import TxJournal
from hearth.client.session import MAX_FEE
from hearth.jobfile import ResolvedSpec
from hearth.local import devnet
from hearth.market.profiles import DEVNET
from hearth.protocol.types import JobId, Runtime, State
from tests.chaos.alerts import quiet_port
from tests.chaos.gateways import Larder
from tests.chaos.processes import Child
from tests.kit import build
from tests.kit.exchange import ETH, PASSWORD, Exchange, Scenario, status
from tests.kit.wall_clock import Clock
from tests.worker.runtimes.engines import BUSYBOX, HOST

DEAD_AFTER = 90
SCRIPT = "printf ok > /out/result"
STATES = 192
"""Blocks whose state the chain keeps: more than any reorg takes away."""


class ChaosMarket(Exchange):
    """A running market with lanes."""

    def __init__(self, home: Path, *, dead_after: int = DEAD_AFTER, metrics: bool = False) -> None:
        """Start its chain; with `metrics` each daemon serves its own, at `ports`."""
        home.mkdir(parents=True, exist_ok=True)
        home.chmod(0o700)
        nodes = replace(DEVNET.node_parameters, dead_after=dead_after)
        with (
            mock.patch.object(devnet, "DEVNET", replace(DEVNET, node_parameters=nodes)),
            mock.patch.dict(os.environ, HEARTH_ANVIL=str(_anvil_of_hours(home))),
        ):
            super().__init__(home)
        self.lanes: list[Lane] = []
        self.keepers: list[Keeper] = []
        self.ports: dict[str, int] = {}
        """Where metrics are served on loopback, by NAME-worker and NAME-keeper."""
        self._metrics = metrics
        self._named: dict[str, Sender] = {}

    def _listen(self, daemon: str) -> str:
        """Return where a daemon serves its metrics, as its settings have it."""
        if not self._metrics:
            return ""
        self.ports[daemon] = quiet_port()
        return f"127.0.0.1:{self.ports[daemon]}"

    def named_sender(self, name: str) -> Sender:
        """Return the sender of a new key with coin, made at its first use."""
        if name not in self._named:
            from eth_account import Account

            account, network = Account.create(), self.net.network
            devnet.fund(self.chain, network, account.address, wei=100 * ETH)
            facts = {"chain_id": network.chain_id, "genesis_hash": network.genesis_hash, "address": account.address}
            journal = TxJournal(self.home / f"tx-{name}.db", **facts)
            self._named[name] = Sender(self.chain, account, journal, SenderConfig(MAX_FEE, poll=0.1, replace_after=3.0))
        return self._named[name]

    def lane(
        self,
        name: str,
        runtime: str = "wasm",
        *,
        turns: int = 1_000_000,
        alone: bool = True,
        engine: str | None = HOST,
    ) -> Lane:
        """Register a node and write its worker.toml; nothing runs yet. Unless `alone` it leaves keepers their work."""
        flag = Runtime.DOCKER if runtime == "docker" else Runtime.WASM
        made = self.scenario(name, turns=turns, runtime=flag)
        lane = Lane(**vars(made), runtime=runtime, engine=engine)
        config = lane.config
        text = config.read_text().replace('listen = ""', f'listen = "{self._listen(f"{name}-worker")}"')
        if not alone:
            text = text.replace("[accept]\n", '[accept]\nsettle_after = "1h"\npropose = false\n')
        if runtime == "docker":
            text = text.replace('["wasm"]', '["docker"]')
            text += f'\n[docker]\nhost = "{engine}"\nregistries = ["{BUSYBOX.partition("/")[0]}"]\n'
        config.write_text(text)
        self.lanes.append(lane)
        # His coin lies as deep as his node: a reorg that takes it away would leave him with nothing to send again by.
        self.named_sender(f"submitter-{name}")
        self._divide()
        return lane

    def _divide(self) -> None:
        """Let each lane refuse the submitters of all others: containers have no name that tells whose they are."""
        for lane in self.lanes:
            others = json.dumps([one.submitter.address for one in self.lanes if one is not lane])
            lines = [line for line in lane.config.read_text().splitlines() if not line.startswith("refuse_submitters")]
            lines.insert(lines.index("[accept]") + 1, f"refuse_submitters = {others}")
            lane.config.write_text("\n".join(lines) + "\n")

    def keeper(
        self, name: str = "keeper", *, poll: float = 0.5, rpc: tuple[str, ...] = (), jitter: str = "0s"
    ) -> Keeper:
        """Make a keeper with a key of its own; nothing runs yet."""
        home = self.home / name
        home.mkdir()
        key = keys.create_key(home / "keys", "keeper", PASSWORD, devnet=True)
        devnet.fund(self.chain, self.net.network, key.address, wei=10 * ETH)
        (home / "password").write_text(PASSWORD)
        (home / "password").chmod(0o600)
        config, listen = home / "keeper.toml", self._listen(f"{name.removeprefix('keeper-')}-keeper")
        config.write_text(
            f"""
network = "{self.net.network_file}"
home = "state"
poll = {poll}
rpc = {json.dumps(rpc or (self.url,))}

[account]
keystore = "keys/keeper.json"
password_file = "password"

[work]
jitter = "{jitter}"
latency = "0s"
max_loss = "unlimited"

[limits]
compare_every = 1
max_failures = 1000000

[metrics]
listen = "{listen}"
"""
        )
        self.keepers.append(Keeper(self, home, key.address))
        return self.keepers[-1]

    def close(self) -> None:
        for one in (*self.lanes, *self.keepers):
            if one.process is not None and one.process.poll() is None:
                one.kill()
        for sender in self._named.values():
            sender.journal.close()
        super().close()


def _anvil_of_hours(home: Path) -> Path:
    """Return an anvil that goes back also after hours: 1.7.1 loses all state at a rollback after some 3,000 blocks,
    unless it keeps its newest states in memory alone."""
    script = home / "anvil-of-hours"
    script.write_text(f'#!/bin/sh\nexec {devnet.find_anvil()} "$@" --prune-history {STATES}\n')
    script.chmod(0o700)
    return script


class Lane(Scenario):
    """One node with its worker as a forked process."""

    def __init__(self, *, runtime: str, engine: str | None, **fields: Any) -> None:
        super().__init__(**fields)
        self.runtime, self._engine = runtime, engine
        self.script = SCRIPT
        """What its containers run."""
        self.former: list[str] = []
        """Operators that the node had before."""
        self.clock: Clock | None = None
        """The wall clock of its processes, None for the machine's."""
        self.larder: Larder | None = None
        """Where the data of its jobs is; without one they bring none."""

    @property
    def config(self) -> Path:
        """Return its settings' file."""
        return self.home / "worker.toml"

    @property
    def submitter(self) -> Sender:
        """Return who posts for this lane alone."""
        return self.exchange.named_sender(f"submitter-{self.name}")  # type: ignore[attr-defined,no-any-return]

    def spec(self, **changes: Any) -> ResolvedSpec:
        if self.runtime == "wasm":
            return super().spec(**changes)
        command = ("sh", "-c", self.script)
        return build.spec(name="chaos", runtime="docker", image=BUSYBOX, command=command, **changes)

    def post(self, **changes: Any) -> JobId:
        """Post a job; as every command of a user does, look first what became of earlier transactions."""
        self.submitter.reconcile()
        if self.larder is not None:
            changes.setdefault("inputs", (self.larder.input(),))
        return super().post(**changes)

    def feed(self, stop: threading.Event) -> None:
        """Post one job after the other, by turns for keepers to match and for the worker to claim.

        Where the chain does not answer, the submitter tries again, as a person does.
        """
        while not stop.is_set():
            with suppress(HearthError):
                if self.all_over(self.jobs[-1:]):
                    self.post(match_window=4 if len(self.jobs) % 2 else 0)
            stop.wait(0.5)

    def state(self, job: JobId, index: int = 0) -> State:
        """Return a unit's state; NONE where the chain does not know its job (any more)."""
        with suppress(NotFoundError):
            return super().state(job, index)
        return State.NONE

    def all_over(self, jobs: Sequence[JobId]) -> bool:
        """Say whether every one has ended; a post that left the chain is sent again, as `hearth submit` does."""
        states = [self.state(job) for job in jobs]
        if State.NONE in states:
            self.submitter.reconcile()
        return all(state.terminal for state in states)

    def start(self, failpoint: str = "", **environ: str) -> None:
        """Start the worker as a process of its own, perhaps one that dies at a named point."""
        environ |= {"HEARTH_HOME": str(self.exchange.user_home), "HEARTH_FAILPOINT": failpoint}
        environ |= self.clock.environ if self.clock is not None else {}
        self.process = Child(self.home / "log", "worker", "--json", "--config", str(self.config), **environ)

    @property
    def ready(self) -> bool:
        """Say whether the newest process has done its first round."""
        return self.process is not None and (status(self.home) or {}).get("pid") == self.process.pid

    def use_rpc(self, *urls: str) -> None:
        """Name other providers in the settings."""
        self._use("rpc", urls)

    def use_larder(self, larder: Larder) -> None:
        """Let its jobs bring data, which its worker finds at gateways alone."""
        self.larder = larder
        self._use("stores", (self.exchange.store.url, *larder.urls))

    def _use(self, name: str, urls: Sequence[str]) -> None:
        lines = [line for line in self.config.read_text().splitlines() if not line.startswith(f"{name} = ")]
        lines.insert(2, f"{name} = {json.dumps(urls)}")
        self.config.write_text("\n".join(lines) + "\n")

    def journal_states(self) -> dict[str, str]:
        """Return the state of every transaction by key, as the journal's file has it."""
        return states_in(self.home / "state")

    def containers(self, *, running: bool = False) -> list[str]:
        """List the units of this node that have a container, perhaps only those whose container runs."""
        if self.runtime != "docker":
            return []
        import docker

        from worker.runtimes.docker_request import LABEL

        network = self.exchange.net.network
        prefix = f"{network.chain_id}-{network.genesis_hash.hex()[:6]}-{self.node}-"
        client = docker.APIClient(base_url=self._engine)
        try:
            found = client.containers(all=not running, filters={"label": LABEL})
        finally:
            client.close()
        return [each["Labels"][LABEL] for each in found if each["Labels"].get(LABEL, "").startswith(prefix)]


class Keeper:
    """A keeper process, killed and started again."""

    def __init__(self, market: ChaosMarket, home: Path, address: str) -> None:
        self.market, self.home, self.address = market, home, address
        self.process: Child | None = None
        self.clock: Clock | None = None

    def start(self, failpoint: str = "") -> None:
        """Start it, perhaps to die at a named point."""
        environ = {"HEARTH_HOME": str(self.market.user_home), "HEARTH_FAILPOINT": failpoint}
        environ |= self.clock.environ if self.clock is not None else {}
        self.process = Child(
            self.home / "log", "keeper", "--json", "--config", str(self.home / "keeper.toml"), **environ
        )

    def kill(self) -> None:
        """kill -9."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def log(self) -> str:
        """Return what its processes wrote."""
        path = self.home / "log"
        return path.read_text(errors="replace") if path.exists() else ""

    @property
    def ready(self) -> bool:
        """Say whether the newest process has ended its first cycle."""
        path = self.home / "state" / "status.json"
        if self.process is None or not path.exists():
            return False
        return bool(json.loads(path.read_text()).get("pid") == self.process.pid)

    def journal_states(self) -> dict[str, str]:
        """Return the state of every transaction by key, as the journal's file has it."""
        return states_in(self.home / "state")


def states_in(folder: Path) -> dict[str, str]:
    """Return the states of a journal of transactions by key; read by SQLite itself, its log included."""
    found = sorted(folder.rglob("tx-*.db"))
    if not found:
        return {}
    db = sqlite3.connect(f"file:{found[0]}?mode=ro", uri=True, timeout=10)
    try:
        return dict(db.execute("SELECT key, state FROM intents ORDER BY id"))
    except sqlite3.DatabaseError as error:
        raise StorageError(f"{found[0]}: {error}") from error
    finally:
        db.close()


def of_job(states: dict[str, str], kind: str, job: JobId) -> dict[str, str]:
    """Return the transactions of one kind that name a job."""
    return {key: state for key, state in states.items() if key.startswith(f"{kind}/") and job.hex() in key}


@contextmanager
def chaos_market(home: Path, *, dead_after: int = DEAD_AFTER, metrics: bool = False) -> Iterator[ChaosMarket]:
    """Run a market while the context is open."""
    made = ChaosMarket(home, dead_after=dead_after, metrics=metrics)
    try:
        yield made
    finally:
        made.close()
