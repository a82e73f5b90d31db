"""The worker's loop: read one block, decide, act, record, beat, sleep.

One thread reads the chain, decides and signs, and the same thread beats, so that a beat never vouches for a worker that
hangs or is gone. Attempts and spec reads run in daemon threads that end with the process. Contract state is the truth:
events only wake the loop and say where to look. Every send goes through `hearth.chain.tx.Sender`, whose journal also
says which transactions are under way. RPC and store failures are retried for as long as they last, while running
attempts go on; anything that no rule foresees ends the process. Source: worker.md.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Final, Protocol

import structlog

from hearth.base.errors import (
    ChainError,
    ConfigError,
    NotFoundError,
    StorageError,
)
from hearth.base.files import NO_ROOM
from hearth.chain.port import Block
from hearth.chain.rpc import RpcChain
from hearth.chain.tx import Sender, SenderConfig
from hearth.config.settings import asset_of
from hearth.daemon.chain_clock import GAPS, ChainClock
from hearth.daemon.ledger import LEDGER_FILE, Ledger
from hearth.daemon.loop import Backoff
from hearth.daemon.reload import STILL_SECONDS, Reloader
from hearth.market.reads import Market
from hearth.protocol import formulas, words
from hearth.protocol.runtimes import RUNTIMES
from hearth.protocol.types import (
    LOCAL_CHAIN_ID,
    ZERO_ADDRESS,
    Billing,
    Gate,
    JobId,
    Kept,
    Node,
    NodeId,
    State,
    Status,
    Unit,
)
from hearth.protocol.units import format_amount
from hearth.storage.stores import Store
from worker.attempt.executor import Executor
from worker.attempt.task import Bounds, Task
from worker.attempt.underway import Running
from worker.decide import (
    Action,
    Beat,
    Caller,
    ChainAction,
    Config,
    Kind,
    LeaseKey,
    LocalStep,
    Reason,
    Saved,
    Skip,
    Snapshot,
    Stage,
    Target,
    decide,
    due_beat,
)
from worker.decide.open import may_begin_with
from worker.decide.policy import followed_seconds
from worker.decide.room import own_leases
from worker.disk import Disk
from worker.gpu.pool import GPU_STATES
from worker.holds import Holds, tell_left
from worker.housekeeping import Housekeeping
from worker.journal import AttemptJournal, AttemptRow, Phase
from worker.manifests import Manifests
from worker.metrics import WorkerMetrics
from worker.mode import read_mode, set_mode
from worker.outbox import Outbox
from worker.registered import gateway_differences
from worker.requests import Desk
from worker.settings import Settings
from worker.specs import Specs
from worker.status import facts_of, read_status, write_status
from worker.watch import NEW_OPERATOR, Watcher, may_serve

if TYPE_CHECKING:
    from worker.reports import WorkerFacts

log = structlog.get_logger("worker")

MAX_PAUSE: Final = 30.0
"""The longest pause after failed cycles, in seconds."""
LEAST_PAUSE: Final = 0.5
"""The shortest pause between two cycles that go well, in seconds, however fast the chain's blocks come."""
DISK_PAUSE: Final = 2.0
"""The longest after one that a full disk made fail: it harms nobody to look again, and beats must go on at once."""
DISK_CODES: Final = ("DISK_FULL", "JOURNAL")
KEPT_ASKS: Final = 3
"""Rounds in which it is asked what the chain has kept of a lost attempt, before a lease goes on without an answer."""
MEANWHILE_SECONDS: Final = 5.0
"""Between two looks at the node, while a long history is read."""


@dataclass(frozen=True, slots=True)
class Told:
    """What the loop must know of its settings, replaced as a whole at a reload: who works for whom, and how.

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
        self.sender = sender
        self._home = told.settings.home
        self._market = market
        self._journal = journal
        self._executor = executor
        self._wall = clock
        self._clock = ChainClock(clock)
        # A wall clock that is wrong, or is set right, must not make old what was paid for a moment ago.
        journal.clock = self._second
        self._watcher = Watcher(market, told.node)
        self.manifests = Manifests(market, self._watcher.named)
        self._ledger = Ledger.open(self._home / LEDGER_FILE)
        payout = sender.address if told.native else told.settings.account.payout
        self._outbox = Outbox(
            sender,
            market=market,
            journal=journal,
            watcher=self._watcher,
            caller=Caller(market.calls, told.node, payout, self._terms),
            ledger=self._ledger,
            metrics=metrics,
        )
        self._holds = Holds(sender, metrics, None if self._is_local else self._clock, clock)
        self._specs = Specs(self._watcher.rows, store, self.wake.set)
        self._housekeeping = Housekeeping(journal, executor, store)
        self._desk = Desk(self._home, market, sender, told.node)
        self._pauses = Backoff(base=told.poll, cap=MAX_PAUSE)
        self._head: Block | None = None
        self._chain: Snapshot | None = None
        self._look: Look | None = None
        self._gas_price = 0
        self._begun = False
        self._left = False
        self._beats_again = 0.0
        self._ended = False
        self._last: list[Action | Skip] = []
        self._compared: tuple[tuple[str, ...], tuple[str, ...]] | None = None
        self._show(metrics)

    def _show(self, metrics: WorkerMetrics) -> None:
        """Export what is asked for at each scrape: a loop that reads no block, or has no room to write, must not leave
        ages and disk as they were, and attempts count in threads of their own."""
        metrics.head_age.set_function(self._head_age)
        metrics.beat_age.set_function(self._beat_age)
        metrics.disk_free.set_function(lambda: self.told.disk.free)
        metrics.disk_short.set_function(lambda: self.told.disk.short)
        executor, watcher = self._executor, self._watcher
        metrics.store_down.set_function(lambda: bool(executor.store_refusal()))
        metrics.counted("starved", "Attempts that were stopped because the disk was full", lambda: executor.starved)
        metrics.counted("broken", "Attempts that failed by this machine or its stores", lambda: executor.broken)
        tally = executor.tally
        metrics.counted("checkpoints", "Checkpoints that were stored", lambda: tally.stored)
        metrics.counted("checkpoints_failed", "Checkpoints that could not be copied or stored", lambda: tally.failed)
        unusable = "States of lost attempts that could not be fetched or used"
        metrics.counted("states_unusable", unusable, lambda: tally.unusable)
        metrics.counted("faults", "Attempts ended by an exception that no rule foresees", lambda: executor.faults)
        metrics.counted("reorgs", "Reorganisations met", lambda: watcher.reorgs)
        metrics.follows(lambda: watcher.suspicions, lambda: watcher.blooms)

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
        steps = [self._recover, self._market.identity.check, self._reconcile]
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
        pause = self._pauses.pause
        block = self._clock.block_seconds
        if block is not None and not self._pauses.failures:
            # Twice a block, so that no lease waits for a whole one to be seen.
            pause = min(pause, max(LEAST_PAUSE, block / 2))
        self.wake.wait(min(STILL_SECONDS, pause) if waits else pause)
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
            # Starting it again after a drain means to work again; one that a crash or a stop cut short goes on.
            with suppress(ConfigError):  # a file that was cut off says of no drain that it ended
                status = read_status(self._home)
                if status is not None and status["state"] == "drained":
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
        on_disk = code in DISK_CODES
        self._pauses.failed(DISK_PAUSE if on_disk else None)
        self.metrics.failures.labels(code).inc()
        failures = self._pauses.failures
        # Of many that come every two seconds, the 1st, 2nd, 4th, 8th and so on.
        if not on_disk or failures & (failures - 1) == 0:
            log.warning("cycle failed", code=code, why=why, failures=failures)
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
        self._holds.tell_status(self._last)
        tell_left(self._last, self._watcher.rows)
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
            head = self._watcher.sync(self._beat_meanwhile)
            self._tell_lost()
            self._watch_clock(head)
            if self._head is None or head.hash != self._head.hash:
                self._reconcile(head)
                # Only what was read whole is looked at again as long as the block stays.
                self._chain = self._read_chain(head)
                self._head = head
            elif self._outbox.stale and self._outbox.flights():
                # A chain that mines on demand has no next block before it has what the pool may have dropped.
                self._reconcile(head)
        except ValueError as error:  # words that no contract writes, of those that are unpacked here and not in Market
            raise ChainError(
                f"the RPC serves words that cannot be: {error}", code="RPC_BROKEN", hint="hearth worker doctor"
            ) from error
        assert self._chain is not None
        now = self._clock.now
        # Asked before why some have ended: what is not here any more has said why.
        executions = (*self._journal.executions(), *self._executor.ahead())
        self._specs.apply(now)
        self._specs.leave_alone(self._executor.take_given_back(), now)
        self._specs.rest(self._executor.take_in_vain(), now)
        snapshot = replace(
            self._chain,
            jobs=self._watcher.refresh(self._chain.jobs),
            executions=executions,
            flights=self._outbox.flights(),
        )
        hold, lead = self._why_hold(head, snapshot.node), self._outbox.lead.seconds
        room = self._executor.unpromised()
        slots, lack = self._slots(snapshot.node)
        config = replace(self.told.config, hold=hold, room=room, gas_price=self._gas_price, lead=lead)
        tiers = self._executor.gpus.tiers
        config = replace(config, max_slots=min(config.max_slots, slots), lack=lack, gpu_tiers=tiers)
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
            self._gas_price = self._market.port.fees().price
        target = None if self.errand is None else self.errand.wanted
        ahead = [execution.key for execution in self._executor.ahead()]
        jobs = self._watcher.read(head, node, target, ahead)
        return Snapshot(head.number, head.timestamp, node, self._watcher.immutables, jobs, credit=credit)

    def _beat_meanwhile(self) -> None:
        """Beat while the market's history is read, which may take longer than a node may be silent."""
        if not self._begun or time.monotonic() < self._beats_again:
            return
        self._beats_again = time.monotonic() + MEANWHILE_SECONDS
        head = self._market.port.head()
        self._watch_clock(head)
        self._reconcile(head)
        self._beat(head, self._read_node(head))

    def _beat(self, head: Block, node: Node) -> None:
        """Send the beat that is due, where the loop has begun. One that fails is decided again with all the rest."""
        snapshot = Snapshot(head.number, head.timestamp, node, self._watcher.immutables, flights=self._outbox.flights())
        config = replace(self.told.config, hold=self._why_hold(head, node))
        beat = due_beat(snapshot, config, self._clock.now) if self._begun else None
        if beat is not None:
            with suppress(ChainError, StorageError):
                self._outbox.send(beat)

    def _read_node(self, head: Block) -> Node:
        """Read this worker's node, which its first beat takes over where it is offered to its key.

        Raises NodeLeftError after the end of an exit, ConfigError NOT_OPERATOR where it is another key's.
        """
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
        if node.operator in (self.sender.address, ZERO_ADDRESS):
            return node
        if not may_serve(self._market, node, self.sender.address, head.hash):
            raise ConfigError(
                f"node {node.id} is operated by {node.operator} now, this worker signs with {self.sender.address}",
                hint=f"{NEW_OPERATOR}; if you did not, its owner can take it back: hearth worker operator ADDRESS",
                code="NOT_OPERATOR",
                component="worker",
            )
        if self._begun and not any(flight.kind is Kind.BEAT for flight in self._outbox.flights()):
            self._outbox.send(Beat(node.id, node.state.beat))
        # What runs on it is another key's until then: nothing of it is looked at.
        raise ChainError(
            f"node {node.id} is operated by {node.operator} until the first beat of {self.sender.address} is mined",
            code="AWAITS_BEAT",
            retryable=True,
            hint="hearth worker start sends it",
            component="worker",
        )

    def _watch_clock(self, head: Block) -> None:
        """Compare the clock with a block, at the first one with those before it too; a local chain has its own time."""
        if not self._clock.now and not self._is_local:
            numbers = range(max(0, head.number - GAPS), head.number)
            before = [block for number in numbers if (block := self._market.port.block(number)) is not None]
            self._clock.learn([*before, head])
        self._clock.saw(head)

    @property
    def _is_local(self) -> bool:
        return self.told.chain_id == LOCAL_CHAIN_ID

    def _reconcile(self, head: Block | None = None) -> None:
        """Learn what became of transactions; send again what is unknown."""
        self._outbox.reconcile(head, self.told.config.coin_price)

    def _slots(self, node: Node) -> tuple[int, tuple[Reason, str] | None]:
        """Return how many slots of a node's offer have their GPUs, and why fewer than all."""
        pool, per_slot, offered = self._executor.gpus, node.offer.gpu_count, node.offer.slots
        slots = min(offered, pool.slots(per_slot)) if per_slot else offered
        if slots == offered:
            return slots, None
        # The thread that looks may change it at any time.
        trouble = pool.trouble
        if trouble is not None:
            return slots, (Reason(trouble.fault), trouble.why)
        return slots, (Reason.GPU_LOST, f"the offer promises {offered} x {per_slot} GPUs, more than are here")

    def _why_hold(self, head: Block, node: Node) -> Reason | None:
        """Return why nothing new is taken now, or None."""
        told, short, refusal = self.told, self._outbox.funds_short, self._executor.store_refusal()
        sent, (slots, lack) = self.errand is not None, self._slots(node)
        gpus = lack[0] if lack is not None and not slots else None
        return self._holds.look(
            head, node, told.settings, told.disk, refusal=refusal, funds_short=short, sent=sent, gpus=gpus
        )

    def _tell_lost(self) -> None:
        """Say in the log what each lease that ran out cost, and how far its attempt had come."""
        lost, self._watcher.lost = self._watcher.lost, []
        for attempt, cost in lost:
            entry = self._journal.entry(attempt)
            log.warning(
                "lease lost: nothing was mined in its time",
                attempt=str(attempt),
                cost=format_amount(cost, asset_of(self._market.network)),
                why=_how_far(entry),
                lead=f"this machine's transactions take {self._outbox.lead.seconds:.1f} s",
                next="hearth worker doctor",
            )

    # ---- acting ----

    def _act(self, now: int) -> None:
        """Carry out what was decided: first what sends nothing, so that no outage or fee spike holds it up.

        Some of it asks the chain about one lease: what does not come is tried again in the next round, and holds up
        no other.
        """
        self._tell_bought()
        for step in self._last:
            if isinstance(step, LocalStep):
                try:
                    step.perform(self, now)
                except ChainError as error:
                    self.metrics.failures.labels(error.code).inc()
                    log.warning("step failed", step=type(step).__name__, code=error.code, why=error.message)
        for step in self._last:
            if isinstance(step, ChainAction):
                self._outbox.send(step)

    def _tell_bought(self) -> None:
        """Let what runs go on for as long as was bought for it by this block, up to what this worker takes."""
        assert self._chain is not None
        for key, (job, lease) in own_leases(self._chain).items():
            if lease.unit.state is State.RUNNING and job.terms.billing is Billing.METERED:
                self._executor.top_up(key, followed_seconds(job.terms, lease.unit, self.told.config))

    def read_spec(self, job: JobId) -> None:
        """Begin to read a job's spec."""
        self._specs.begin(job)

    def gather(self, attempt: LeaseKey, seconds: int, saved: Sequence[Saved], most: int) -> None:
        """Fetch within `seconds` what an attempt needs whose lease this node may take, and the first state in `saved`
        that can be had, of those which the chain has kept and which hold no more than `most` seconds. Raises what
        `_kept` raises."""
        states: list[Saved] = []
        for one in saved:
            kept = self._kept(attempt, one)
            if kept is None:
                break  # it costs a time-out each, and those after it are older
            if may_begin_with(one, kept, most):
                states.append(one)
        self._learn_gateways(states)
        log.info("gathering before it is taken", attempt=str(attempt), seconds=seconds)
        terms = self._watcher.rows[attempt.job].terms
        self._executor.gather(Task(attempt, terms, float(seconds), 0.0, states=tuple(states)))

    def start_attempt(
        self, attempt: LeaseKey, seconds: int, tries: int, begun: int, topped: int, state: Saved | None
    ) -> None:
        """Begin to execute a held lease that has `seconds` left; in `begun` its program must be started. `topped`
        seconds were bought beside those of its terms, and it begins with a `state`. Raises what `_kept` raises."""
        row = self._watcher.rows[attempt.job]
        row.in_vain = 0
        # Upload and submit need time at the end: a third of the grace, which the lease has beyond the run itself,
        # or what this machine needs for a submit and what comes before it, where that is more.
        grace = formulas.grace(replace(row.terms, max_seconds=row.terms.max_seconds + topped))
        margin = max(1.0, min(120.0, grace / 3))
        margin = max(margin, min(grace, self._outbox.lead.seconds + margin / 4))
        states: tuple[Saved, ...] = ()
        held = 0
        if state is not None:
            kept = self._kept(attempt, state)
            # Its log tells its own seconds, not those of what it was made of: these may then be run unpaid, which is
            # less than a lease that is not begun costs.
            states, held = (state,), state.seconds if kept is None else kept.before + kept.seconds
            self._learn_gateways(states)
        log.info("attempt starts", attempt=str(attempt), tries=tries, seconds=seconds)
        task = Task(attempt, row.terms, float(seconds), margin, tries, float(begun), topped, states, held)
        self._executor.start(task)

    def _learn_gateways(self, states: Sequence[Saved]) -> None:
        """Learn where the nodes that made some states have gateways; a state may be had without that."""
        with suppress(ChainError):
            for node in {state.node for state in states} - {self.told.node}:
                self.manifests.learn(node)

    def _kept(self, attempt: LeaseKey, state: Saved) -> Kept | None:
        """Return what the chain has kept of the lost attempt whose `state` a lease may begin with, None where that was
        asked in vain KEPT_ASKS times in a row.

        Raises ChainError before: another provider, or the same one a round later, may tell it.
        """
        assert self._head is not None
        row, asked = self._watcher.rows[attempt.job], (attempt.index, state.attempt)
        try:
            kept = self._market.kept(attempt.job, attempt.index, row.terms.leases, state.attempt, self._head.hash)
        except ChainError as error:
            row.unheard[asked] = row.unheard.get(asked, 0) + 1
            if row.unheard[asked] < KEPT_ASKS:
                raise
            log.warning("state not known", attempt=str(attempt), of=state.attempt, code=error.code, why=error.message)
            return None
        row.unheard.pop(asked, None)
        return kept

    def stop_attempt(self, attempt: LeaseKey, why: str) -> None:
        """Stop an execution."""
        log.warning("attempt stopped", attempt=str(attempt), why=why)
        self._executor.stop(attempt, why)

    def hand_in(self, attempt: LeaseKey, seconds: int, used: int) -> None:
        """Have a cancelled unit hand in what it has within its notice."""
        if self._executor.hand_in(attempt, seconds, used):
            log.info("cancelled by its submitter: it hands in what it has", attempt=str(attempt), seconds=seconds)

    def set_aside(self, attempt: LeaseKey, why: str) -> None:
        """Put an attempt's files aside."""
        self._executor.set_aside(attempt, why)

    def _terms(self, job: JobId) -> words.TermsWords:
        return words.pack_terms(self._watcher.rows[job].terms)

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

    def ask_store(self) -> None:
        """Have the store show that it takes results, before it is decided whether to take any."""
        self._executor.ask_store()

    def learn_spec(self, job: JobId) -> None:
        """Read a followed job's spec now. Raises StorageError where it cannot be had."""
        self._specs.learn(job)

    # ---- recording ----

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
            or self._outbox.flights()
            or self._journal.executions()
            or own_leases(snapshot)
        )

    def _second(self) -> float:
        """Return the chain's second, the wall clock's where no block was read yet and on a local chain."""
        return self._wall() if self._is_local else float(self._clock.now or self._wall())

    def _housekeep(self) -> None:
        # What is stored has ages by the wall clock, and the head may be a liar's.
        if not self._is_local and self._clock.doubt() is not None:
            return
        if self._housekeeping.turn(self.told.settings.keep_seconds):
            self._desk.sweep()
            self._outbox.forget()

    def _record(self, snapshot: Snapshot, now: int) -> None:
        """Tell the metrics and the status file how things stand."""
        if not self._holds.disk_short:
            self.told.disk.spare.hold()
        node, earnings = snapshot.node, self._watcher.earnings
        status = formulas.status(node, now, snapshot.immutables.dead_after, snapshot.immutables.minimum_stake)
        metrics = self.metrics
        metrics.turn()
        metrics.ready = status is Status.ACTIVE and self._holds.now is None
        metrics.head.set(snapshot.block)
        metrics.clock_skew.set(0.0 if self._is_local else self._clock.skew)
        metrics.busy.set(node.state.busy)
        minimum = snapshot.immutables.minimum_stake
        metrics.stake_short.set(self._holds.tell_stake(node, minimum, asset_of(self._market.network)))
        metrics.attempts_running.set(sum(work.stage is Stage.WORKING for work in self._executor.active()))
        metrics.slots_lost.set(max(0, node.offer.slots - min(self.told.config.max_slots, self._slots(node)[0])))
        gpus = self._executor.gpus.states()
        for state in GPU_STATES:
            metrics.gpus.labels(state).set(sum(one.state == state for one in gpus))
        metrics.runtimes_lost.set(
            sum(
                bool(node.offer.runtimes & kind.flag)
                for name, kind in RUNTIMES.items()
                if name not in self.told.config.runtimes
            )
        )
        self._ledger.begin(earnings.net)
        for name, value in asdict(earnings).items():
            metrics.books.labels(name).set(value)
        working = metrics.ready or bool(self._executor.active())
        facts = facts_of(
            snapshot,
            now,
            status,
            steps=self._last,
            watcher=self._watcher,
            holds=self._holds,
            disk=self.told.disk,
            active=self._executor.active(),
            pending=self._outbox.pending(),
            gateways=self._own_gateways(),
            gpus=gpus,
        )
        self._write_status("working" if working else "waiting", facts)

    def _own_gateways(self) -> tuple[str, ...]:
        """Return where the chain says that this node's results can be fetched; say once where worker.toml differs."""
        try:
            found = self.manifests.learn(self.told.node)
        except ChainError:
            return self.manifests.known(self.told.node)
        if self._compared != (found, self.told.settings.gateway.urls):
            self._compared = (found, self.told.settings.gateway.urls)
            for text, fix in gateway_differences(self.told.settings.gateway.urls, found):
                log.warning("the chain has another manifest than worker.toml", what=text, fix=fix)
        return found

    def _head_age(self) -> float:
        """Return how old the newest block is, by the wall clock, and at least for how long no other has come."""
        head = self._head
        return 0.0 if head is None else max(0.0, self._wall() - head.timestamp, self._clock.silent)

    def _beat_age(self) -> float:
        """Return the chain's seconds since the node's last beat, as far as this process knows of it."""
        chain = self._chain
        return 0.0 if chain is None else max(0.0, float(self._clock.now - chain.node.state.beat))

    def _write_status(self, state: str, facts: WorkerFacts | None = None) -> None:
        write_status(
            self._home,
            state,
            node=self.told.node,
            operator=self.sender.address,
            earnings=self._watcher.earnings,
            facts=facts,
        )


def _how_far(entry: AttemptRow | None) -> str:
    """Say how far the attempt of a lost lease had come, and when."""
    if entry is None:
        return "it was never begun here"
    at = time.strftime("%H:%M:%S", time.localtime(entry.changed))
    done = {Phase.DONE: "its result was ready", Phase.REFUSED: "it was to be given back"}.get(entry.phase)
    step = entry.moment.partition(".")[2]
    return f"{done or f'it had come to {step}'} at {at}; {entry.detail}".removesuffix("; ")
