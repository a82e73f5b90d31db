"""What a provider does with the worker of a worker.toml: look at it, register it, steer it, read its books.

What an owner does with the very key that a running worker holds, that worker sends (`worker.requests`).
`Provider(client, Path("worker.toml"))` is what `hearth worker ...` calls; from Python it serves the same.
"""

from __future__ import annotations

import shlex
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from hearth.base.errors import ConfigError, NotFoundError, RefusedError, UsageError
from hearth.base.files import AnyPath, path_of
from hearth.protocol.types import NodeId

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hearth.client import Client
    from hearth.client.nodes.workers import Workers
    from hearth.client.reports import Check as CheckRow
    from hearth.client.reports import Diagnosis, OwnerAction
    from hearth.client.reports import Wall as WallRow
    from hearth.client.session import Session
    from hearth.market.network import Network
    from hearth.protocol.types import Node, Offer
    from worker.left_node import LeftNode
    from worker.reports import (
        EarningsReport,
        Selftest,
        WorkerBenchmark,
        WorkerBundle,
        WorkerMode,
        WorkerReload,
        WorkerStatus,
        WorkerTake,
        WorkerVolumes,
        WorkerWhy,
    )
    from worker.runtimes.base import Check
    from worker.runtimes.profiles import Wall
    from worker.settings import Settings


class Provider:
    """The worker of one settings file, by a client of its market."""

    def __init__(self, client: Client, config: AnyPath, *, vouch: Callable[[Path, bytes], None] | None = None) -> None:
        """Read nothing yet; the file is read, and refused, at the first call: by `vouch` too, which gets its bytes."""
        self._session = client.session
        self._workers = client.workers
        self._config = path_of(config)
        self._vouch = vouch
        self._network: Network | None = None
        """The market of a found settings file, of the bytes that were vouched for."""
        self._key: str | None = None
        """The address of its key, as it was vouched for."""
        self._fault: ConfigError | None = None
        """Why what it names could not be asked about."""

    @cached_property
    def session(self) -> Session:
        """Return the client's session, which asks those whom the worker of the settings file asks.

        A file that is missing or wrong is refused by whoever needs more of it than that.
        """
        with suppress(ConfigError):
            own = self._session.settings
            self._session.settings = own.for_program(self.settings.network, self.settings.rpc, self.settings.code)
            if self._session.settings is not own:
                from worker.settings import MEND_RPC

                self._session.mend_rpc = MEND_RPC
        return self._session

    @cached_property
    def settings(self) -> Settings:
        """Return the settings of the file. Raises ConfigError."""
        from worker.settings import load

        return load(self._config, self._vouch)

    def use_named(self) -> None:
        """Ask about what a settings file that nobody named names in turn: the market that is paid, the key that works.

        What was asked about is what is used: of the market the bytes, of the key its address. What is missing or wrong
        is told by the one who reads it, but nothing is signed then: what lies there later nobody has seen.
        Raises ConfigError UNKNOWN_FILE.
        """
        for use in (self._use_network, self._use_key):
            try:
                use()
            except ConfigError as error:
                if error.code == "UNKNOWN_FILE":
                    raise
                self._fault = self._fault or error

    def _use_key(self) -> None:
        from hearth.base.text import quoted
        from hearth.chain.keys import keystore_in, read_keystore_bytes
        from worker.settings import operator_key

        path = self.settings.account.keystore
        try:
            raw = read_keystore_bytes(path)
            self.operator = self._key = f"0x{keystore_in(raw, path)['address']}"
        except ConfigError:
            operator_key(self.settings)  # which says the way back
            raise
        said = f"{quoted(str(path))}, {self._named}, is the key of {self._key}"
        self._session.settings.require(path, raw, said, named=self._option)

    def _use_network(self) -> None:
        from hearth.base.files import is_path
        from hearth.config.settings import found_network

        network = self.settings.network
        if is_path(network):
            self._network = found_network(self._session.settings, Path(network), self._named, named=self._option)
            if self.session.settings.network == network:
                self.session.network = self._network

    @property
    def _named(self) -> str:
        """Say where the name of a file that nobody named stands."""
        from hearth.base.text import quoted

        return f"named by {quoted(str(self._config.absolute()))}"

    @property
    def _option(self) -> str:
        return f"--config {shlex.quote(str(self._config))}"

    def _require_asked(self) -> None:
        """Refuse to sign where a found file, or what it names, could not be asked about. Raises ConfigError."""
        if self._fault is not None:
            raise self._fault

    @cached_property
    def operator(self) -> str:
        """Return the address of the key that works."""
        from worker.settings import operator_key

        return operator_key(self.settings).address

    @cached_property
    def _owner(self) -> Workers:
        """Return what the owner does; the running worker sends what its key signs."""
        from worker.requests import RunningWorker

        self._require_asked()
        return self._workers.through(RunningWorker(self.settings.home, self.operator, self.session))

    def _find(self) -> Node | None:
        """Return this worker's node as it stands, None where there is none."""
        from worker.watch import find_node

        market = self.session.market
        owner = self.settings.account.payout
        with suppress(NotFoundError):  # worker.toml names a node that has left
            return find_node(market, self.settings.node, self.operator, owner, market.port.head().hash)
        return None

    @cached_property
    def _left(self) -> LeftNode | None:
        """Return this worker's node that left the market last, None where none did."""
        from worker.left_node import find_left

        settings = self.settings
        return find_left(self.session.market, settings.node, self.operator, settings.account.payout)

    def node(self) -> Node:
        """Return this worker's node as it stands. Raises NotFoundError NO_NODE, ConfigError NOT_OPERATOR, NOT_OWNER."""
        from hearth.client.views import moment
        from worker.build import find_own_node

        settings, market = self.settings, self.session.market
        node = None
        with suppress(NotFoundError):  # worker.toml names a node that has left, or that never was
            node = find_own_node(settings, settings.home, market, self.operator, market.port.head().hash)
        if node is not None:
            return node
        credit, left = market.credit(settings.account.payout), self._left
        paid = f"hearth worker withdraw pays out {self.session.amount(credit)} of credit; " if credit else ""
        text = f"no node of {self.session.network.name} is operated by {self.operator}"
        if settings.node is not None:
            text = f"there is no node {settings.node} on {self.session.network.name}, which worker.toml names"
        if left is not None:
            text = f"node {left.node} left the market at {moment(left.at)}"
            paid = f"hearth worker earnings shows its books; {paid}"
        raise NotFoundError(text, hint=f"{paid}hearth worker register", code="NO_NODE", component="worker")

    # ---- the machine ----

    def doctor(self) -> Diagnosis:
        """Look at everything that a worker needs; PASS, WARN or FAIL, with the fix."""
        from hearth.client.doctor import worst
        from worker.doctor import diagnose, walls_of
        from worker.gpu.probing import one_look

        session = self.session
        with one_look():
            found = diagnose(self.settings, session.network, session.unchecked_market.port, session.settings.home)
        rows = [_row(check) for check in found]
        walls = [_wall(wall) for wall in walls_of(self.settings, found)]
        return {"schema": "hearth.doctor/1", "result": worst(rows), "checks": rows, "walls": walls}

    def benchmark(self) -> WorkerBenchmark:
        """Measure each GPU that the settings give to jobs, in a container as a job's; none may be in use.

        The figures are kept in the worker's home, and its next manifest says them. Raises ConfigError NO_GPU.
        """
        from worker.benchmark import benchmark
        from worker.settings import docker_of, given_gpus
        from worker.status import lent_gpus

        settings = self.settings
        lent = lent_gpus(settings.home)
        gpus = given_gpus(settings, lent)
        if not gpus:
            raise ConfigError(
                "these settings give no GPU to jobs",
                hint='set offer.gpus = "all" in worker.toml, then: hearth worker doctor',
                code="NO_GPU",
                component="worker",
            )
        rows = [_row(check) for check in benchmark(docker_of(settings), settings.home, gpus, lent)]
        return {"schema": "hearth.worker.benchmark/1", "result": _result(rows), "checks": rows}

    # ---- the owner's actions ----

    def register(self, *, stake: str | None = None, print_tx: bool = False) -> OwnerAction:
        """Register this machine with a stake, by default the market's minimum.

        Raises ConfigError UNSAFE_ENGINE where it would offer containers in an engine with known holes, HOME_IN_USE
        where the settings name another worker's home, RefusedError, FundsError.
        """
        from worker.build import refuse_anothers_home
        from worker.home import hold
        from worker.watch import find_node

        market, settings = self.session.market, self.settings
        payout = settings.account.payout
        found = find_node(market, None, self.operator, payout, market.port.head().hash)
        if found is not None:
            raise RefusedError(
                f"the key {self.operator} operates node {found.id} already, or is offered it",
                hint="hearth worker update; hearth worker status",
                code="REGISTERED",
                component="worker",
                node=found.id,
            )
        # No worker that runs there can be this one's: its key has no node yet.
        hold(settings.home).refuse_held()
        refuse_anothers_home(settings.home, market, self.operator)
        offer, manifest = self._offer()
        report = self._owner.register(self.operator, offer, manifest, payout=payout, stake=stake, print_tx=print_tx)
        if not print_tx and not self.session.dry_run:
            node = find_node(market, None, self.operator, payout, "latest")
            report["node"] = None if node is None else node.id
        return report

    def update(self, *, print_tx: bool = False) -> OwnerAction:
        """Replace the idle node's offer by what the settings and the machine say now. Raises RefusedError BUSY."""
        node = self.node()
        offer, manifest = self._offer()
        return self._owner.update_offer(node, offer, manifest, print_tx=print_tx)

    def price(self, rate: str, *, print_tx: bool = False) -> OwnerAction:
        """Change the node's ask; it takes effect after the market's notice."""
        return self._owner.set_ask(self.node(), rate, print_tx=print_tx)

    def replace_operator(self, operator: str, *, node: int | None = None, print_tx: bool = False) -> OwnerAction:
        """Offer the node to the key of another address: where the key that works is lost, stolen or replaced.

        That key's first beat takes it over; naming the present operator takes an offer back. `node` names it where
        neither settings nor key are at hand. The owner's key signs here, never a running worker, which that beat would
        end. Raises UsageError BAD_ADDRESS, NotFoundError, ConfigError NOT_OWNER, KEY_IN_USE.
        """
        number = node if node is not None else self.settings.node
        found = self.node() if number is None else self.session.market.node(NodeId(number))
        if not print_tx and self._works_for(found):
            raise ConfigError(
                f"the worker that runs here signs with the key that owns node {found.id}, and ends when it loses it",
                hint="hearth worker drain, then the same command again; leases of a worker that is stopped go over",
                code="KEY_IN_USE",
                component="worker",
            )
        return self._workers.set_operator(found, operator, print_tx=print_tx)

    def _works_for(self, node: Node) -> bool:
        """Say whether a worker runs here with the key that owns a node; neither settings nor key need be here."""
        from worker.home import is_running

        with suppress(ConfigError):
            return node.owner == self.operator and is_running(self.settings.home)
        return False

    def stake(self, amount: str, *, again: bool = False, print_tx: bool = False) -> OwnerAction:
        """Add stake to the node, from its owner or any account that is chosen; stake leaves only by exit.

        The same amount is added once where no running worker sends it; `again` adds it once more.
        """
        return self._owner.add_stake(self.node(), amount, again=again, print_tx=print_tx)

    def withdraw(self, amount: str | None = None, *, print_tx: bool = False) -> OwnerAction:
        """Pay what the node has earned, its owner's credit in Escrow, out to the owner; all of it by default.

        Where the node has left the market, the owner is the settings' payout address.
        """
        node = self._find()
        owner = self.settings.account.payout if node is None else node.owner
        return self._owner.withdraw(owner, amount, print_tx=print_tx)

    def exit(self, *, cancel: bool = False, finish: bool = False, print_tx: bool = False) -> OwnerAction:
        """Start the node's exit; after the unbonding time `finish` credits its stake; `cancel` stays after all."""
        return self._owner.exit(self.node(), cancel=cancel, finish=finish, print_tx=print_tx)

    def _offer(self) -> tuple[Offer, bytes]:
        """Return what the machine offers and its manifest, which is stored. Raises ConfigError UNSAFE_ENGINE,
        GPU_NOT_GIVEN."""
        from worker.benchmark import refuse_incapable
        from worker.doctor import refuse_unfit
        from worker.gpu.probing import one_look
        from worker.settings import probe_offer
        from worker.status import lent_gpus

        with one_look():
            offer = probe_offer(self.settings, self.session.asset, lent=lent_gpus(self.settings.home))
            refuse_unfit(self.settings, self.session.network.chain_id, offer)
            if not self.session.dry_run:
                refuse_incapable(self.settings)
            return offer, self._manifest()

    def _manifest(self) -> bytes:
        """Store the manifest, the details of the offer that the chain only names, and return its canonical form."""
        from hearth.storage import canonical
        from worker.gateway import manifest_of, store_manifest

        if self.session.dry_run:
            return canonical.encode(manifest_of(self.settings).document())
        return store_manifest(self.settings)

    # ---- the process ----

    def start(self) -> None:
        """Run the worker in this process until it is told to stop. Raises UsageError for a dry run."""
        from hearth.daemon.logs import configure_logs
        from hearth.daemon.loop import harden
        from worker.__main__ import start

        if self.session.dry_run:
            raise UsageError(
                "a worker that sends nothing holds no lease: it has no dry run", hint="hearth worker doctor"
            )
        self._require_asked()
        configure_logs(False)
        harden()
        start(self._config, self.settings, self._network, self._key)

    def take(self, job: str, *, unit: int | None = None) -> WorkerTake:
        """Take one unit of a job by hand, run it and submit it in this process; by default the next one that fits.

        Raises RefusedError NOT_TAKEN, FundsError, ConfigError KEY_IN_USE before anything is sent; later HearthError
        DECLINED or LEASE_LOST, JobEnded, KeyboardInterrupt.
        """
        import logging

        from hearth.daemon.logs import configure_logs
        from hearth.daemon.loop import harden
        from worker.take import take

        self._require_asked()
        configure_logs(False, logging.WARNING)
        harden()
        return take(
            self.session, self.settings, self.session.job_id(job), unit, network=self._network, operator=self._key
        )

    def pause(self) -> WorkerMode:
        """Tell the worker to take nothing new and to end what it runs; idle and paused, it does not beat."""
        return self._mode("pause")

    def resume(self) -> WorkerMode:
        """Tell a paused worker to take work again."""
        return self._mode("run")

    def drain(self) -> WorkerMode:
        """Tell the worker to end what it runs and then stop."""
        return self._mode("drain")

    def reload(self) -> WorkerReload:
        """Have the running worker read its settings again, which are checked first; a dry run only checks them.

        Raises ConfigError for what is refused, NOT_RUNNING, WORKER_SILENT.
        """
        from hearth.daemon.reload import ask
        from worker.home import LOCK_FILE

        settings, asset, dry_run = self.settings, self.session.asset, self.session.dry_run
        # What only the market's asset shows.
        settings.min_rate(asset), settings.withdraw_threshold(asset), settings.coin_price(asset)
        settings.max_loss(asset, local=self.session.local)
        applied, restart = ([], []) if dry_run else ask(settings.home / LOCK_FILE, settings.home, "worker")
        return {"schema": "hearth.worker.reload/1", "applied": applied, "restart": restart, "dry_run": dry_run}

    def _mode(self, mode: str) -> WorkerMode:
        from worker.home import is_running
        from worker.mode import set_mode
        from worker.status import read_status

        home, dry_run = self.settings.home, self.session.dry_run
        # First: a worker whose status file is damaged must be told to stop just the same.
        if not dry_run:
            set_mode(home, mode)
        try:
            said = read_status(home)
            alive = bool(said and said["alive"])
        except ConfigError:
            alive = is_running(home)
        return {"schema": "hearth.worker.mode/1", "mode": mode, "alive": alive, "dry_run": dry_run}

    def volumes(
        self,
        *,
        slots: int | None = None,
        size: str | None = None,
        home: AnyPath | None = None,
        user: str | None = None,
        remove: bool = False,
    ) -> WorkerVolumes:
        """Make and mount a file system of its own for each slot's /out, of `size` each, or remove them all; as root.

        What is left out is the settings': their home and slots; `user` is the home's owner. Raises UsageError,
        ConfigError NEEDS_ROOT, HOME_IN_USE, NO_ROOM, VOLUME_FAILED.
        """
        from hearth.protocol.units import parse_size
        from worker import volumes

        where = (path_of(home) or self.settings.home).resolve()
        dry_run = self.session.dry_run
        if dry_run and (remove or size is not None):
            volumes.refuse_running(where)
        if remove:
            found = volumes.volumes_of(where) if dry_run else volumes.remove(where)
        elif size is None:
            raise UsageError("how large a volume is has no default", hint="hearth worker volumes --size 20GiB")
        else:
            count = slots or self.settings.offer.slots
            found = volumes.plan(where, count, parse_size(size))
            if not dry_run:
                found = volumes.make(where, count, parse_size(size), user)
        return {
            "schema": "hearth.worker.volumes/1",
            "home": str(where),
            "volumes": [
                {"path": str(one.path), "image": str(one.image), "size": one.size, "mounted": one.mounted}
                for one in found
            ],
            "fstab": [one.fstab for one in found],
            "removed": remove,
            "dry_run": dry_run,
        }

    # ---- what is known of it ----

    def status(self) -> WorkerStatus:
        """Return what the chain and the running worker say of this machine's node."""
        from hearth.client.nodes.obstacles import START
        from worker.mode import MODE_LABELS, read_mode
        from worker.status import read_status

        home = self.settings.home
        mode, process = read_mode(home), read_status(home)
        alive = bool(process and process["alive"])
        # A process that runs and does not beat was paused, or something is wrong with it.
        start = START if not alive else "hearth worker resume" if mode != "run" else "hearth worker doctor"
        told = self._workers.status(self.node(), start=start)
        if mode in MODE_LABELS:
            told["status_text"] = f"{MODE_LABELS[mode]}, to others {told['status_text']}"
        return {"schema": "hearth.worker.status/1", **told, "mode": mode, "process": process}

    def why(self, job: str) -> WorkerWhy:
        """Say why this node does or does not take a job: the chain's gate per unit, and the worker's reasons."""
        from worker.status import read_status

        told = self._workers.gates(job, self.node())
        said = read_status(self.settings.home)
        reasons = {} if said is None else said.get("reasons", {})
        own = reasons.get(told["job"].removeprefix("0x"), [])
        for unit in told["units"]:
            if unit["gate"] == "fits" and any(row["index"] in (None, unit["unit"]) for row in own):
                unit["text"] = "the market allows it, and its worker decides"
        return {
            "schema": "hearth.worker.why/1",
            **told,
            "worker": own,
            "worker_alive": bool(said and said["alive"]),
        }

    def bundle(self, log: AnyPath | None = None) -> WorkerBundle:
        """Return what whoever helps has to know of this worker, with every secret taken out."""
        from worker.bundle import bundle

        return bundle(
            self.session.settings,
            lambda: self.settings,
            lambda: self.doctor()["checks"],
            path_of(log),
        )

    def earnings(self) -> EarningsReport:
        """Return the node's books, read from the chain, and what this machine's worker paid for gas.

        Where it has left the market, they are those of all its time.
        """
        from hearth.client.job.history import keeper_pay
        from hearth.client.reading import JobReader
        from hearth.daemon.ledger import LEDGER_FILE, Ledger
        from hearth.protocol.units import NATIVE, show_amount
        from worker.left_node import LeftNode
        from worker.watch import Watcher

        session = self.session
        try:
            node: Node | LeftNode = self.node()
        except NotFoundError:
            if self._left is None:
                raise
            node = self._left
        left_at = node.at if isinstance(node, LeftNode) else None
        number = node.node if isinstance(node, LeftNode) else node.id
        watcher = Watcher(session.market, number)
        watcher.sync()
        books = watcher.earnings
        keeping = keeper_pay(JobReader(session), node.operator)
        credit = session.market.credit(node.owner)
        ledger = Ledger.open(self.settings.home / LEDGER_FILE)
        # Without a beginning there are no books yet; gas that cost nothing is of a coin whose price nobody said.
        known = ledger.credited_before is not None and (ledger.coin_cost > 0 or not ledger.gas_paid)
        profit = ledger.earned(books.net) - ledger.coin_cost if known else None
        return {
            "schema": "hearth.earnings/1",
            "node": number,
            "left_at": left_at,
            "owner": node.owner,
            "asset": session.asset.symbol,
            "paid": books.paid,
            "failed_theirs": books.failed_theirs,
            "declined": books.declined,
            "given_up": books.given_up,
            "closed": books.closed,
            "timed_out": books.timed_out,
            "voided": books.voided,
            "rejected": books.rejected,
            "unproven": books.unproven,
            "income": str(books.income),
            "fees": str(books.fees),
            "keeping": str(keeping),
            "slashed": str(books.slashed),
            "liveness_fees": str(books.liveness_fees),
            "owner_credit": str(credit),
            "gas_wei": str(ledger.gas_paid),
            "profit": None if profit is None else str(profit),
            "text": {
                "income": session.amount(books.income),
                "fees": session.amount(books.fees),
                "keeping": session.amount(keeping),
                "slashed": session.amount(books.slashed),
                "liveness_fees": session.amount(books.liveness_fees),
                "owner's credit": session.amount(credit),
                "gas": show_amount(ledger.gas_paid, NATIVE),
                "profit": "unknown" if profit is None else session.amount(profit),
            },
        }


def selftest(settings: Settings | None = None) -> Selftest:
    """Run a real program in each runtime of this machine, end to end through its sandbox, and check it.

    Without settings the container engine is the default one, and every GPU is tried. Raises ConfigError.
    """
    from worker.gpu import probing
    from worker.runtimes.base import Check, Level
    from worker.runtimes.docker import DockerRuntime
    from worker.selftest import selftest as run_all
    from worker.selftest import try_gpus
    from worker.settings import docker_of
    from worker.status import lent_gpus

    runtime = DockerRuntime() if settings is None else docker_of(settings)
    lent = frozenset() if settings is None else lent_gpus(settings.home)
    names = () if settings is None else settings.offer.gpu_names
    found = () if settings is not None and settings.offer.gpus == "none" else probing.probe(names).gpus
    gpus = [one for one in found if not one.problems_but(lent) and (not names or one.uuid in names)]
    tried = try_gpus(runtime, gpus, lent) if gpus and runtime.available()[0] else []
    gone = sorted(set(names) - {one.uuid for one in gpus})
    missing = [Check(f"gpu {uuid}", Level.FAIL, "it is not here, or not fit", "hearth worker doctor") for uuid in gone]
    rows = [_row(check) for check in (*run_all(runtime), *tried, *missing)]
    return {"schema": "hearth.selftest/1", "result": _result(rows), "checks": rows}


def _result(rows: Sequence[CheckRow]) -> Literal["PASS", "FAIL"]:
    """Return how a try ended: what this machine does not have is a warning, and no failure of what it has."""
    return "FAIL" if any(row["level"] == "FAIL" for row in rows) else "PASS"


def _wall(wall: Wall) -> WallRow:
    return {
        "runtime": wall.runtime,
        "name": wall.name,
        "state": wall.state.value,
        "detail": wall.detail,
        "fix": wall.fix,
    }


def _row(check: Check) -> CheckRow:
    return {"name": check.name, "level": check.level.value, "detail": check.detail, "fix": check.fix}
