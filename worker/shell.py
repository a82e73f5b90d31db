"""The worker's loop: read one block, decide, act, record, beat, sleep.

One thread reads the chain, decides and signs, and the same thread beats, so that a beat never vouches for a worker that
hangs or is gone. Attempts and spec reads run in daemon threads that end with the process. Contract state is the truth:
events only wake the loop and say where to look. Every send goes through `hearth.chain.tx.Sender`, whose journal also
says which transactions are under way. RPC and store failures are retried for as long as they last, while running
attempts go on; anything that no rule foresees ends the process. Source: SPEC section "Worker".
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

import structlog

from hearth.base.errors import (
    ChainError,
    ConfigError,
    FundsError,
    HearthError,
    NotFoundError,
    RefusedError,
    StorageError,
)
from hearth.base.failpoints import fp
from hearth.base.files import NO_ROOM, replace_text
from hearth.base.text import plain
from hearth.chain.port import Block, reason_of
from hearth.chain.rpc import RpcChain
from hearth.chain.tx import TOO_DEAR, Sender, SenderConfig
from hearth.chain.tx_journal import TxState
from hearth.client.standing import stake_command
from hearth.config.settings import asset_of
from hearth.daemon.chain_clock import GAPS, ChainClock, Doubt
from hearth.daemon.loop import Backoff
from hearth.daemon.reload import STILL_SECONDS, Reloader
from hearth.market.reads import Market
from hearth.protocol import formulas, words
from hearth.protocol.gas import BEAT_GAS, LEASE_GAS
from hearth.protocol.runtimes import RUNTIMES
from hearth.protocol.types import LOCAL_CHAIN_ID, ZERO_ADDRESS, Gate, JobId, Node, NodeId, Status, Unit
from hearth.protocol.units import format_amount
from hearth.storage.stores import FolderStore, Store
from worker.attempt import fetch
from worker.attempt.executor import Executor
from worker.attempt.task import Bounds, Task
from worker.attempt.underway import Running
from worker.decide import (
    ENGAGING,
    Action,
    Caller,
    ChainAction,
    Config,
    Flight,
    LeaseKey,
    LocalStep,
    Reason,
    Skip,
    Snapshot,
    SpecFacts,
    Target,
    decide,
    due_beat,
)
from worker.decide.room import own_leases
from worker.disk import Disk
from worker.flights import GAP, read_call
from worker.journal import AttemptJournal, AttemptRow, Moment, Phase
from worker.metrics import WorkerMetrics
from worker.requests import OWNER, Desk
from worker.settings import Settings, accepting_at
from worker.watch import NEW_OPERATOR, Watcher

if TYPE_CHECKING:
    from worker.reports import SkipReason, WorkerFacts, WorkerProcess

log = structlog.get_logger("worker")

SPEC_SECONDS: Final = 20.0
"""How long reading a spec, and looking for its data, may take at most."""
FIRST_SPEC_SECONDS: Final = 10.0
"""How long the first try to read a spec may take; each later one of the same job may take twice as long."""
UNREAD_SECONDS: Final = 20
"""How long a job is left alone after the first try that failed; twice as long after each later one."""
UNREAD_DOUBLINGS: Final = 6
GIVEN_BACK_SECONDS: Final = 600
"""How long a job is left alone after one of its units was given back; twice as long after each later one. All units of
a job have the same program and data: what is missing for one is missing for ten thousand."""
MAX_READERS: Final = 16
"""Jobs whose specs are read at once: those of jobs that are nowhere must not keep the others waiting."""
MAX_PAUSE: Final = 30.0
"""The longest pause after failed cycles, and the longest that a refused effect is left alone, in seconds."""
EFFECT_BASE: Final = 0.5
"""Half of the seconds for which an effect is left alone after its first failure."""
FUNDS_SECONDS: Final = 30.0
"""How long nothing new is taken after gas money was short."""
HOUSEKEEPING_SECONDS: Final = 600.0
STATUS_REASONS: Final = 500
"""Jobs whose reasons the status file names."""

GAS_NEXT: Final = "raise max_gas_price or gas.max_per_day in worker.toml, then hearth worker reload"

CONTROL_FILE: Final = "control.json"
STATUS_FILE: Final = "status.json"
MODES: Final = ("run", "pause", "drain")


# ---- files that other commands read and write ----


def set_mode(home: Path, mode: str) -> None:
    """Tell a running worker to "run", to "pause" (take nothing new) or to "drain" (finish, then stop)."""
    if mode not in MODES:
        raise ValueError(f"{mode} is none of {MODES}")
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    replace_text(home / CONTROL_FILE, json.dumps({"mode": mode}))


def read_mode(home: Path) -> str:
    """Return what the worker is told to do; "run" where nothing was said."""
    try:
        mode = json.loads((home / CONTROL_FILE).read_text(encoding="utf-8")).get("mode")
    except (OSError, ValueError, AttributeError):
        return "run"
    return mode if mode in MODES else "run"


def read_status(home: Path) -> WorkerProcess | None:
    """Return what a worker last said of itself, None where it never ran; "alive" says whether its process lives.

    Raises ConfigError where the file is not a worker's.
    """
    from hearth.daemon.status import read_status_file
    from worker.reports import WorkerProcess

    status = read_status_file(home / STATUS_FILE, WorkerProcess, component="worker")
    if status is None:
        return None
    status["alive"] = Path(f"/proc/{status['pid']}").exists() and status["state"] != "stopped"
    return status


@dataclass(frozen=True, slots=True)
class Told:
    """What the loop must know that does not change: who works for whom, and how.

    `disk` is the one on which attempts would take room: the home's, also where this process has a throwaway one.
    """

    node: NodeId
    settings: Settings
    disk: Disk
    chain_id: int
    native: bool
    config: Config
    poll: float


@dataclass(frozen=True, slots=True)
class Look:
    """What one round sees: the state at one block, what is allowed, and the chain's second."""

    snapshot: Snapshot
    config: Config
    now: int


class Errand(Protocol):
    """What a worker is sent for, where it does not work for the market at large; `wanted` is read at every block."""

    @property
    def wanted(self) -> Target:
        """Return the unit that it is sent for."""

    def narrow(self, snapshot: Snapshot, config: Config) -> Config:
        """Return what is allowed of what the provider's settings allow."""

    def over(self, look: Look) -> bool:
        """Say, after each round, whether the worker can stop."""


class NodeLeftError(Exception):
    """The node's exit is finished: the chain knows it no more, and this worker has nothing left to be."""


class Worker:
    """One worker: one node, one key, one home folder.

    With an `errand` it does that alone, whatever mode the control file says: a person has sent it.
    """

    def __init__(
        self,
        told: Told,
        *,
        market: Market,
        sender: Sender,
        journal: AttemptJournal,
        executor: Executor,
        store: Store,
        tiers: Mapping[str, int],
        metrics: WorkerMetrics,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.stop = threading.Event()
        self.wake = threading.Event()
        self.metrics = metrics
        self.errand: Errand | None = None
        self.reloader: Reloader[Settings] | None = None
        self.adopt: Callable[[Settings], None] = lambda new: None
        self.told = told
        self._home = told.settings.home
        self._market = market
        self.sender = sender
        self._journal = journal
        self._executor = executor
        self._store = store
        self._tiers = tiers
        self._wall = clock
        self._clock = ChainClock(clock)
        self._watcher = Watcher(market, told.node)
        payout = sender.address if told.native else told.settings.account.payout
        self._caller = Caller(market.calls, told.node, payout, self._terms)
        self._head: Block | None = None
        self._reconciled_at = 0.0
        self._gas_price = 0
        self._chain: Snapshot | None = None
        # Effects that failed: until when of time.monotonic each is left alone, and its growing pause.
        self._failed: dict[str, tuple[float, Backoff]] = {}
        self._reading: set[JobId] = set()
        self._read: dict[JobId, SpecFacts | str] = {}
        self._lock = threading.Lock()
        self._pauses = Backoff(base=told.poll, cap=MAX_PAUSE)
        self._funds_short_until = 0.0
        self._housekeeping_at = 0.0
        self._uncollected = False
        self._clearing: threading.Thread | None = None
        self._look: Look | None = None
        self._begun = False
        self._left = False
        self._ended = False
        self._last: list[Action | Skip] = []
        self._hold: Reason | None = None
        self._stake_short = 0
        self._disk_short = False
        self._capped = ""
        self._desk = Desk(self._home, market, sender, told.node)
        self._show(metrics)

    def _show(self, metrics: WorkerMetrics) -> None:
        """Export what is asked for at each scrape: a loop that can read no block must not leave the ages as they were,
        and attempts count in threads of their own."""
        metrics.head_age.set_function(self._head_age)
        metrics.beat_age.set_function(self._beat_age)
        executor, watcher = self._executor, self._watcher
        metrics.counted("starved", "Attempts that were stopped because the disk was full", lambda: executor.starved)
        metrics.counted("broken", "Attempts that failed by this machine or its stores", lambda: executor.broken)
        metrics.counted("faults", "Attempts ended by an exception that no rule foresees", lambda: executor.faults)
        metrics.counted("reorgs", "Reorganisations met", lambda: watcher.reorgs)

    def take_up(self, told: Told, paying: SenderConfig, bounds: Bounds, port: RpcChain | None) -> None:
        """Work by other settings from now on; `port` knows other providers of the same chain, None for the same."""
        if port is not None:
            assert isinstance(self._market.port, RpcChain)
            self._market.port.ask_instead(port)
        self.sender.config = paying
        told.disk.keep(told.settings.reserve_bytes)
        self._executor.allow(bounds, told.settings.keep_seconds)
        self.told = told

    # ---- the loop ----

    def run(self) -> None:
        """Work until told to stop, until a drain or the errand has nothing left, or until the node has left the market.

        Raises HearthError for what no retry helps.
        """
        self._begin()
        state = "stopped"
        try:
            while not self.stop.is_set():
                self._reload()
                if self._survive(self._round) and self._ended:
                    state = "drained"
                    break
                self._pause()
        finally:
            self._executor.close()
            self._write_status(state)

    def _begin(self) -> None:
        """Reconcile before acting: sandboxes, journal, transactions. Waits for an RPC that is down."""
        steps = [self._recover, self._market.check, self._reconcile]
        while not self.stop.is_set():
            while steps and self._survive(steps[0]):
                del steps[0]
            if not steps:
                self._begun = True
                return
            self._pause()
            self._reload()

    def _pause(self) -> None:
        """Wait until the next round is due, or something woke the loop."""
        waits = self.reloader is not None and self.reloader.pending
        self.wake.wait(min(STILL_SECONDS, self._pauses.pause) if waits else self._pauses.pause)
        self.wake.clear()

    def _reload(self) -> None:
        """Take up what has changed in the settings file, where that was asked for."""
        if self.reloader is not None:
            self.reloader.turn(self._home, self.told.settings, self.adopt)
            self.metrics.settings_refused.set(self.reloader.refused)

    def _recover(self) -> None:
        for note in self._executor.recover():
            log.info("recovered", what=note)
        if self.errand is None and read_mode(self._home) == "drain":
            # A drain ended the process before; starting it again means to work again.
            set_mode(self._home, "run")

    def _survive(self, step: Callable[[], None]) -> bool:
        """Run a step; failures of RPC, disk and store are counted and retried, others are raised."""
        try:
            step()
        except (ChainError, StorageError) as error:
            # Once the chain was read well, no answer of a provider ends the process.
            if not error.retryable and not (isinstance(error, ChainError) and self._chain is not None):
                raise
            return self._failed_cycle(error.code, error.message)
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
            return self._failed_cycle("DISK_FULL", str(error))
        self._pauses.succeeded()
        return True

    def _failed_cycle(self, code: str, why: str) -> bool:
        self._pauses.failed()
        self.metrics.failures.labels(code).inc()
        log.warning("cycle failed", code=code, why=why, failures=self._pauses.failures)
        return False

    def _round(self) -> None:
        """Do one round, and note whether it was the last."""
        try:
            if not self._left:
                self.cycle()
        except NodeLeftError:
            log.info("the node has left the market, and its worker ends", node=self.told.node)
            self._left = True
        if self._left:
            # Whoever asked for the exit still waits to hear what it came to.
            self._reconcile()
            self._desk.serve()
        self._ended = not self._desk.busy if self._left else self._over()

    def cycle(self) -> None:
        """Do one round: read what is new, decide, act, record."""
        look = self._look = self.look()
        self._last = decide(look.snapshot, look.config, look.now)
        try:
            self._act(look.now)
            self._desk.serve()
        finally:
            self._housekeep()
            self._record(look.snapshot, look.now)

    def look(self) -> Look:
        """Read what is new, and say what may be done about it."""
        self._market.port.begin_cycle()
        try:
            head = self._watcher.sync()
            self._watch_clock(head)
            if self._head is None or head.hash != self._head.hash:
                self._reconcile(head)
                # Only what was read whole is looked at again as long as the block stays.
                self._chain = self._read_chain(head)
                self._head = head
            elif time.monotonic() - self._reconciled_at >= self.sender.config.replace_after and self._flights():
                # A chain that mines on demand has no next block before it has what the pool may have dropped.
                self._reconcile(head)
        except ValueError as error:  # words that no contract writes: packed lanes out of range, short data
            raise ChainError(
                f"the RPC serves words that cannot be: {error}", code="RPC_BROKEN", hint="hearth worker doctor"
            ) from error
        assert self._chain is not None
        now = self._clock.now
        self._apply_specs(now)
        self._apply_given_back(now)
        snapshot = replace(
            self._chain,
            jobs=self._watcher.refresh(self._chain.jobs),
            executions=self._journal.executions(),
            flights=self._flights(),
        )
        self._hold = self._why_hold(head)
        config = replace(self.told.config, hold=self._hold, gas_price=self._gas_price)
        if self.errand is not None:
            config = self.errand.narrow(snapshot, config)
        return Look(snapshot, config, now)

    # ---- reading ----

    def _read_chain(self, head: Block) -> Snapshot:
        """Read everything that a decision needs, at one block, and beat before what strangers make long.

        Raises NodeLeftError after the end of an exit.
        """
        node = self._read_node(head)
        self._beat(head, node)
        credit = self._market.credit(self.sender.address, head.hash)
        if self.told.config.max_loss is not None:
            fees = self._market.port.fees()
            self._gas_price = fees.base_fee + fees.priority_fee
        target = None if self.errand is None else self.errand.wanted
        jobs = self._watcher.read(head, node, target)
        return Snapshot(head.number, head.timestamp, node, self._watcher.immutables, jobs, credit=credit)

    def _beat(self, head: Block, node: Node) -> None:
        """Send the beat that is due, where the loop has begun. One that fails is decided again with all the rest."""
        snapshot = Snapshot(head.number, head.timestamp, node, self._watcher.immutables, flights=self._flights())
        config = replace(self.told.config, hold=self._why_hold(head))
        beat = due_beat(snapshot, config, self._clock.now) if self._begun else None
        if beat is not None:
            with suppress(ChainError, StorageError):
                self._send(beat)

    def _read_node(self, head: Block) -> Node:
        """Read this worker's node. Raises NodeLeftError after the end of an exit."""
        try:
            node = self._market.node(self.told.node, head.hash)
        except NotFoundError as error:
            if self._chain is None:
                raise
            if not 0 < self._chain.node.exit_at <= head.timestamp:
                raise ChainError(
                    f"the RPC knows no node {self.told.node} any more, which was there at block {self._chain.block}",
                    code="RPC_LIES",
                    hint="hearth worker doctor",
                ) from error
            raise NodeLeftError from error
        if node.operator not in (self.sender.address, ZERO_ADDRESS):
            raise ConfigError(
                f"node {node.id} is operated by {node.operator} now, this worker signs with {self.sender.address}",
                hint=f"{NEW_OPERATOR}; if you did not, its owner can take it back: hearth worker operator ADDRESS",
                code="NOT_OPERATOR",
                component="worker",
            )
        return node

    def _watch_clock(self, head: Block) -> None:
        """Compare the clock with a block, at the first one with those before it too; a local chain has its own time."""
        if self._head is None and not self._is_local:
            numbers = range(max(0, head.number - GAPS), head.number)
            before = [block for number in numbers if (block := self._market.port.block(number)) is not None]
            self._clock.learn([*before, head])
        self._clock.saw(head)

    @property
    def _is_local(self) -> bool:
        return self.told.chain_id == LOCAL_CHAIN_ID

    def _reconcile(self, head: Block | None = None) -> None:
        """Learn what became of transactions: mined, dropped, replaced, reorganised; send again what is unknown."""
        self._reconciled_at = time.monotonic()
        before = self.sender.journal.intents(TxState.SIGNED, TxState.BROADCAST)
        found = self.sender.reconcile(head)
        if found.reorged:
            known = {intent.id for intent in before}
            again = [one for one in self.sender.journal.intents(TxState.BROADCAST) if one.id not in known]
            log.warning(
                "transactions left the chain", count=found.reorged, sent_again=[_short(one.key) for one in again]
            )
        for intent in before:
            after = self.sender.journal.find(intent.key)
            if after is None or after.id != intent.id or after.state.live:
                continue
            read = read_call(intent.call, self._market)
            kind = OWNER if intent.key.startswith(f"{OWNER}/") else read[0].value if read else GAP
            self.metrics.transactions.labels(kind, after.state.value).inc()
            if after.gas_used and after.gas_price:
                self.metrics.gas_spent.inc(after.gas_used * after.gas_price)
            if after.state.done:
                fp("m9.mined", intent.call.label)
                log.info("mined", key=_short(intent.key), block=after.block_number)
            else:
                log.warning("failed", key=_short(intent.key), state=after.state.value, why=after.note)
                self._back_off(intent.key)

    def _flights(self) -> tuple[Flight, ...]:
        """Return what is signed and not mined, as the tx journal knows it."""
        flights: list[Flight] = []
        for intent in self.sender.journal.intents(TxState.SIGNED, TxState.BROADCAST):
            read = read_call(intent.call, self._market)
            if read is None:
                continue
            kind, leases = read
            if not leases:
                flights.append(Flight(kind))
            for job, index in leases:
                row = self._watcher.rows.get(job)
                bond = formulas.bond(row.terms, row.policy) if row is not None and kind in ENGAGING else 0
                flights.append(Flight(kind, job, index, bond))
        return tuple(flights)

    def _why_hold(self, head: Block) -> Reason | None:
        """Return why nothing new is taken now, or None."""
        settings, short, dear = self.told.settings, self._tell_disk(), self._tell_gas(head)
        mode = read_mode(self._home)
        if mode != "run" and self.errand is None:
            return Reason.DRAINING if mode == "drain" else Reason.PAUSED
        local = time.localtime(self._wall())
        if not accepting_at(settings.accept.schedule, local.tm_hour * 60 + local.tm_min):
            return Reason.OUTSIDE_SCHEDULE
        # The second of a local chain is whatever its owner asks for.
        doubt = None if self._is_local else self._clock.doubt()
        if doubt is not None:
            return Reason.CLOCK_SKEW if doubt is Doubt.CLOCK else Reason.CHAIN_SILENT
        if time.monotonic() < self._funds_short_until:
            return Reason.NOT_READY
        if short:
            return Reason.DISK_FULL
        return Reason.GAS_CAPPED if dear else None

    def _tell_gas(self, head: Block) -> bool:
        """Say whether gas is too dear to take new work; the log hears what is kept back, and since when no more."""
        half = self.sender.config.max_fee // 2
        everything = self.sender.why_capped(head.base_fee, BEAT_GAS)
        work = everything or self.sender.why_capped(head.base_fee, LEASE_GAS, half)
        self.metrics.gas_capped.labels("everything").set(bool(everything))
        self.metrics.gas_capped.labels("new work").set(bool(work))
        said = (
            f"beats and submits wait: {everything}" if everything else f"nothing new is taken: {work}" if work else ""
        )
        if said.partition(":")[0] != self._capped.partition(":")[0]:
            if said:
                log.warning("gas is too dear", what=said, next=GAS_NEXT)
            else:
                log.info("gas is not too dear any more")
        self._capped = said
        return bool(work)

    def _tell_disk(self) -> bool:
        """Say whether the disk is short of its reserve; the log hears of each change."""
        disk = self.told.disk
        short = disk.short
        if short is not self._disk_short:
            told = log.warning if short else log.info
            told("the disk is full: nothing new is taken" if short else "the disk has room again", disk=disk.in_words())
            self._disk_short = short
        self.metrics.disk_free.set(disk.free)
        self.metrics.disk_short.set(short)
        return short

    # ---- acting ----

    def _act(self, now: int) -> None:
        """Carry out what was decided: first what needs no chain, so that no outage or fee spike holds it up."""
        for step in self._last:
            if isinstance(step, LocalStep):
                step.perform(self, now)
        for step in self._last:
            if isinstance(step, ChainAction):
                self._send(step)

    def start_attempt(self, attempt: LeaseKey, seconds: int, tries: int) -> None:
        """Begin to execute a held lease, which has `seconds` left."""
        row = self._watcher.rows[attempt.job]
        # Upload and submit need time at the end; a third of the grace, which the lease has beyond the run itself.
        margin = max(1.0, min(120.0, formulas.grace(row.terms, row.policy) / 3))
        log.info("attempt starts", attempt=str(attempt), tries=tries, seconds=seconds)
        self._executor.start(Task(attempt, row.terms, float(seconds), margin, tries))

    def stop_attempt(self, attempt: LeaseKey, why: str) -> None:
        """Stop an execution."""
        log.warning("attempt stopped", attempt=str(attempt), why=why)
        self._executor.stop(attempt, why)

    def set_aside(self, attempt: LeaseKey, why: str) -> None:
        """Put an attempt's files aside."""
        self._executor.set_aside(attempt, why)

    def _send(self, action: ChainAction) -> None:
        """Send one action. A refusal by a contract is a lost race: the next cycle decides anew."""
        key, begins = action.key(), action.begins
        if key in self._failed and time.monotonic() < self._failed[key][0]:
            return
        if begins is not None:
            if self._journal.entry(begins) is None:
                self._journal.intend(begins, Moment.SEEN)
            self._journal.intend(begins, Moment.INTENT, key)
        try:
            ceiling = action.ceiling(self.sender.config.max_fee)
            pending = self.sender.start(action.call(self._caller), key=key, ceiling=ceiling)
        except ChainError as error:
            if error.code not in TOO_DEAR:
                raise
            # What may cost more than this is sent all the same.
            self.metrics.failures.labels(error.code).inc()
            log.warning("not sent: gas is too dear", key=_short(key), why=error.message)
            self._back_off(key)
        except RefusedError as error:
            self.metrics.refused.labels(action.kind.value, reason_of(error) or "no reason").inc()
            log.info("refused", key=_short(key), why=error.message)
            self._back_off(key)
        except FundsError as error:
            self._funds_short_until = time.monotonic() + FUNDS_SECONDS
            self.metrics.funds_short.set(1)
            self.metrics.failures.labels(error.code).inc()
            log.error("gas money is short", why=error.message, hint=error.hint)
            self._back_off(key)
        else:
            self._failed.pop(key, None)
            self.metrics.funds_short.set(0)
            # Done already: mined in a block that is newer than the one that this cycle reads.
            if not pending.intent.state.done:
                log.info("sent", key=_short(key))

    def _terms(self, job: JobId) -> words.TermsWords:
        return words.pack_terms(self._watcher.rows[job].terms)

    def _back_off(self, key: str) -> None:
        """Leave an effect alone for a while, longer each time: 1, 2, 4 .. 30 s."""
        _, pauses = self._failed.get(key, (0.0, Backoff(base=EFFECT_BASE, cap=MAX_PAUSE)))
        pauses.failed()
        self._failed[key] = (time.monotonic() + pauses.pause, pauses)

    # ---- for an errand ----

    def progress(self, attempt: LeaseKey) -> Running | None:
        """Return how far an attempt that is under way is."""
        return next((work for work in self._executor.active() if work.key == attempt), None)

    def entry(self, attempt: LeaseKey) -> AttemptRow | None:
        """Return an attempt's row in the journal."""
        return self._journal.entry(attempt)

    def unit(self, job: JobId, index: int) -> Unit:
        """Return a unit as stored at the block last read. Raises NotFoundError for an unknown job."""
        assert self._head is not None
        return self._market.unit(job, index, self._head.hash).unit

    def never_fits(self, job: JobId) -> Gate:
        """Return the gate by which the node's offer can never serve a job; else FITS."""
        return self._watcher.never_read().get(job, Gate.FITS)

    def learn_spec(self, job: JobId) -> None:
        """Read a followed job's spec now. Raises StorageError where it cannot be had."""
        row = self._watcher.rows[job]
        row.spec = fetch.read_spec(self._store, row.terms, self._tiers, SPEC_SECONDS)

    # ---- specs ----

    def read_spec(self, job: JobId) -> None:
        """Read a job's spec in a thread: a slow store must not hold up a beat."""
        if job in self._reading or len(self._reading) >= MAX_READERS:
            return
        reader = threading.Thread(target=self._read_one, args=(job,), name=f"spec {job.hex()[:12]}", daemon=True)
        with suppress(RuntimeError):  # the machine gives no thread now: the next round asks again
            reader.start()
            self._reading.add(job)

    def _read_one(self, job: JobId) -> None:
        answer: SpecFacts | str = "the job is followed no more"
        row = self._watcher.rows.get(job)
        try:
            if row is not None:
                seconds = min(SPEC_SECONDS, FIRST_SPEC_SECONDS * 2 ** min(row.unread, UNREAD_DOUBLINGS))
                answer = fetch.read_spec(self._store, row.terms, self._tiers, seconds)
        except HearthError as error:
            answer = error.message
        except Exception as error:  # the top of a thread: a reader that is lost would never be free again
            log.exception("spec not read by a fault of the worker", job=job.hex())
            answer = f"a fault of the worker: {error!r}"
        with self._lock:
            self._read[job] = answer
        self.wake.set()

    def _apply_specs(self, now: int) -> None:
        with self._lock:
            answers, self._read = self._read, {}
        for job, answer in answers.items():
            self._reading.discard(job)
            row = self._watcher.rows.get(job)
            if row is None:
                continue
            if isinstance(answer, SpecFacts):
                row.spec = answer
            else:
                row.retry_at = now + UNREAD_SECONDS * 2 ** min(row.unread, UNREAD_DOUBLINGS)
                row.retry_why = answer
                row.unread += 1
                log.warning("spec or data not there now", job=job.hex(), why=answer, tries=row.unread)

    def _apply_given_back(self, now: int) -> None:
        """Leave a job alone of which a unit could not be run here."""
        for job, why in self._executor.take_given_back().items():
            row = self._watcher.rows.get(job)
            if row is not None:
                row.retry_at = now + GIVEN_BACK_SECONDS * 2 ** min(row.given_back, UNREAD_DOUBLINGS)
                row.retry_why = f"a unit of it was given back: {why}"
                row.given_back += 1

    # ---- keeping house ----

    def _over(self) -> bool:
        """Say whether the errand is done, or where there is none a drain."""
        if self.errand is None:
            return self._drained()
        return self._look is not None and self.errand.over(self._look)

    def _drained(self) -> bool:
        """Say whether a drain has nothing left to do, or an exited node nothing left to be."""
        snapshot = self._chain
        if snapshot is None or read_mode(self._home) != "drain":
            return False
        return not (
            self._executor.active()
            or self._desk.busy
            or self._flights()
            or self._journal.executions()
            or own_leases(snapshot)
        )

    def _housekeep(self) -> None:
        if time.monotonic() < self._housekeeping_at:
            return
        self._housekeeping_at = time.monotonic() + HOUSEKEEPING_SECONDS
        hour_ago = time.time() - 3600
        for entry in self._journal.entries(Phase.INTENT):
            if entry.changed < hour_ago:
                self._journal.end(entry.key, "never became this node's")
        self._clear()
        self._desk.sweep()
        self._failed = {key: held for key, held in self._failed.items() if held[0] > time.monotonic()}

    def _clear(self) -> None:
        """Let old results go, and a folder store drop them, in a thread: a beat must not wait for a store. One at a
        time."""
        if self._clearing is not None and self._clearing.is_alive():
            return
        before = time.time() - self.told.settings.keep_seconds

        def clear() -> None:
            try:
                if self._executor.sweep(before):
                    self._uncollected = True
                if self._uncollected and isinstance(self._store, FolderStore):
                    log.info("the store was cleared", freed=self._store.collect())
                    self._uncollected = False
            except (StorageError, OSError) as error:
                log.warning("the store could not be cleared", why=str(error))

        # A daemon, as an attempt is: a stop does not wait for it, and what it has not done the next one does.
        thread = threading.Thread(target=clear, name="clearing", daemon=True)
        with suppress(RuntimeError):  # the machine gives no thread now: the next turn asks again
            thread.start()
            self._clearing = thread

    def _record(self, snapshot: Snapshot, now: int) -> None:
        """Tell the metrics and the status file how things stand."""
        if not self._disk_short:
            self.told.disk.spare.hold()
        node, earnings = snapshot.node, self._watcher.earnings
        status = formulas.status(node, now, snapshot.immutables.dead_after, snapshot.immutables.minimum_stake)
        metrics = self.metrics
        metrics.turn()
        metrics.ready = status is Status.ACTIVE and self._hold is None
        metrics.head.set(snapshot.block)
        metrics.clock_skew.set(0.0 if self._is_local else self._clock.skew)
        metrics.busy.set(node.state.busy)
        metrics.stake_short.set(self._tell_stake(node))
        metrics.attempts_running.set(len(self._executor.active()))
        metrics.slots_lost.set(max(0, node.offer.slots - self.told.config.max_slots))
        metrics.runtimes_lost.set(
            sum(
                bool(node.offer.runtimes & kind.flag)
                for name, kind in RUNTIMES.items()
                if name not in self.told.config.runtimes
            )
        )
        for name, value in asdict(earnings).items():
            metrics.books.labels(name).set(value)
        working = metrics.ready or bool(self._executor.active())
        self._write_status("working" if working else "waiting", snapshot, now, status)

    def _head_age(self) -> float:
        """Return how old the newest block is, by the wall clock, and at least for how long no other has come."""
        head = self._head
        return 0.0 if head is None else max(0.0, self._wall() - head.timestamp, self._clock.silent)

    def _beat_age(self) -> float:
        """Return the chain's seconds since the node's last beat, as far as this process knows of it."""
        chain = self._chain
        return 0.0 if chain is None else max(0.0, float(self._clock.now - chain.node.state.beat))

    def _tell_stake(self, node: Node) -> int:
        """Return how much stake the node lacks, in base units; the log hears of each change."""
        short = formulas.stake_short(node, self._watcher.immutables.minimum_stake)
        if short != self._stake_short:
            asset = asset_of(self._market.network)
            if short:
                log.warning(
                    "stake is short: no work comes",
                    short=format_amount(short, asset),
                    next=stake_command(short, asset),
                )
            else:
                log.info("stake suffices", stake=format_amount(node.stake, asset))
            self._stake_short = short
        return short

    def _write_status(
        self, state: str, snapshot: Snapshot | None = None, now: int = 0, status: Status | None = None
    ) -> None:
        facts: WorkerProcess = {
            "schema": "hearth.worker/1",
            "pid": os.getpid(),
            "state": state,
            "node": int(self.told.node),
            "operator": self.sender.address,
            "mode": read_mode(self._home),
            "updated": int(time.time()),
            "earnings": {k: str(v) if isinstance(v, int) else v for k, v in asdict(self._watcher.earnings).items()},
        }
        if snapshot is not None and status is not None:
            facts = {**facts, **self._facts_of(snapshot, now, status)}
        with suppress(OSError):  # a full disk must not stop a worker from submitting
            replace_text(self._home / STATUS_FILE, json.dumps(facts))

    def _facts_of(self, snapshot: Snapshot, now: int, status: Status) -> WorkerFacts:
        node: Node = snapshot.node
        reasons: dict[str, list[SkipReason]] = {}
        for step in self._last:
            if isinstance(step, Skip) and (step.job.hex() in reasons or len(reasons) < STATUS_REASONS):
                line: SkipReason = {"index": step.index, "reason": step.name, "detail": plain(step.detail)}
                reasons.setdefault(step.job.hex(), []).append(line)
        for job, gate in self._watcher.never_read().items():
            if len(reasons) < STATUS_REASONS:
                reasons.setdefault(job.hex(), []).append(_gate_line(gate))
        for job in self._watcher.waiting():
            if job.hex() not in reasons and len(reasons) < STATUS_REASONS:
                late = "more units are open than are read at one block; this job's are read at a later one"
                reasons[job.hex()] = [{"index": None, "reason": Reason.AWAITS_TURN.value, "detail": late}]
        return {
            "status": status.name.lower(),
            "hold": None if self._hold is None else self._hold.value,
            "block": snapshot.block,
            "chain_time": now,
            "last_beat": node.state.beat,
            "busy": node.state.busy,
            "slots": node.offer.slots,
            "stake": str(node.stake),
            "stake_short": str(self._stake_short),
            "credit": str(snapshot.credit),
            "disk_free": self.told.disk.free,
            "disk_reserve": self.told.disk.reserve,
            "gas_capped": self._capped,
            "attempts": [
                {
                    "job": work.key.job.hex(),
                    "index": work.key.index,
                    "attempt": work.key.attempts,
                    "phase": work.phase,
                    "done": work.done,
                    "total": work.total,
                    "since": int(work.started),
                }
                for work in self._executor.active()
            ],
            "pending": [_short(i.key) for i in self.sender.journal.intents(TxState.SIGNED, TxState.BROADCAST)],
            "reasons": reasons,
        }


def _gate_line(gate: Gate) -> SkipReason:
    return {"index": None, "reason": gate.name.lower(), "detail": "this node's offer can never serve the job"}


def _short(key: str) -> str:
    """Cut a key down to what a log line can hold."""
    return key if len(key) <= 120 else key[:117] + "..."
