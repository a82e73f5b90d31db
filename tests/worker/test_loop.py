"""worker.loop, worker.build and worker.__main__ on a real chain: the loop in this process, refusals, control file."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import structlog.testing
from eth_hash.auto import keccak

from hearth import __version__
from hearth.base.errors import ChainError, ConfigError, HearthError, StorageError, StoreDown
from hearth.base.files import free_bytes
from hearth.chain import follow, keys
from hearth.config.settings import asset_of
from hearth.daemon.loop import Backoff
from hearth.local import devnet
from hearth.local.devnet import free_port
from hearth.market.events import Closed, Declined, JobPosted, Started
from hearth.protocol import words
from hearth.protocol.types import LOCAL_CHAIN_ID, JobId, NodeId, Offer, Runtime, State
from hearth.protocol.units import format_amount
from hearth.storage.cid import Cid
from hearth.storage.stores import FolderStore
from tests.kit.anvil import need_anvil
from tests.kit.disks import MIB, fill, small_disk
from tests.kit.exchange import ETH, PASSWORD, Exchange, Scenario
from tests.kit.running import wait
from tests.kit.town import Said
from tests.kit.town import hearth as run_hearth
from tests.worker import test_decide as decided
from tools import schemas
from worker import settings
from worker.attempt.executor import Executor
from worker.attempt.folder import folders_in
from worker.build import build
from worker.decide import Claim, Config, LeaseKey
from worker.decide.actions import Decline, SubmitResult
from worker.journal import AttemptJournal, Moment
from worker.loop import Worker
from worker.machine import others
from worker.metrics import WorkerMetrics
from worker.mode import set_mode
from worker.outbox import Outbox
from worker.requests import Desk
from worker.rows import able, never_fits
from worker.status import read_status
from worker.watch import Payment, earnings_of

# ---- without a chain ----


def test_drained__owners_call_that_is_taken_up_and_not_sent__goes_on(tmp_path: Path) -> None:
    set_mode(tmp_path, "drain")
    nothing = SimpleNamespace(active=list, executions=dict, intents=lambda *_: [])
    worker = Worker.__new__(Worker)
    worker._home, worker._chain = tmp_path, SimpleNamespace(jobs=(), node=decided.NODE)  # type: ignore[assignment]
    worker._executor = worker._journal = nothing  # type: ignore[assignment]
    worker.sender = worker._outbox = SimpleNamespace(flights=tuple)  # type: ignore[assignment]
    worker._desk = Desk(tmp_path, None, worker.sender, decided.NODE.id)  # type: ignore[arg-type]
    assert worker._drained()
    (tmp_path / "requests" / "ab12.taken").write_text("{}")
    assert not worker._drained()


@pytest.mark.parametrize("fault", [ChainError("no answer"), ValueError("spare bits are set")])
def test_look__block_that_was_not_read_whole__is_read_again(fault: Exception) -> None:
    """The same block would else be decided on with the words of the one before, or with none."""
    read: list[str] = []

    def fails(head: Any) -> Any:
        read.append(head.hash)
        raise fault

    worker = Worker.__new__(Worker)
    worker._market = SimpleNamespace(port=SimpleNamespace(begin_cycle=lambda: None))  # type: ignore[assignment]
    worker._watcher = SimpleNamespace(sync=lambda *_: SimpleNamespace(hash="a"), lost=[])  # type: ignore[assignment]
    worker._head = worker._chain = None
    worker._watch_clock = lambda head: None  # type: ignore[method-assign]
    worker._reconcile = lambda head: None  # type: ignore[method-assign,misc]
    worker._read_chain = fails  # type: ignore[method-assign,assignment]
    for _ in range(2):
        with pytest.raises(ChainError) as caught:
            worker.look()
        assert caught.value.retryable
    assert read == ["a", "a"]


@pytest.mark.parametrize(
    ("fault", "seconds"),
    [
        (OSError(errno.ENOSPC, "no room"), 2.0),
        (StorageError("the journal cannot be used", code="JOURNAL", retryable=True, hint="h"), 2.0),
        (ChainError("no answer"), 30.0),
    ],
)
def test_survive__disk_that_stays_full__is_looked_at_every_two_seconds(fault: Exception, seconds: float) -> None:
    def fails() -> None:
        raise fault

    worker = Worker.__new__(Worker)
    worker._chain, worker.metrics, worker._pauses = None, WorkerMetrics(), Backoff(base=0.5, cap=30.0)
    with structlog.testing.capture_logs() as logs:
        assert not any(worker._survive(fails) for _ in range(20))
    assert worker._pauses.pause == seconds
    assert len(logs) == (5 if seconds == 2.0 else 20)
    worker._pauses.failed()
    assert worker._pauses.pause == 30.0


@pytest.mark.parametrize(
    ("block", "failures", "seconds"),
    [(None, 0, 2.0), (12.0, 0, 2.0), (2.0, 0, 1.0), (1.0, 0, 0.5), (0.1, 0, 0.5), (1.0, 1, 4.0)],
)
def test_pause__chain_of_any_pace__is_half_a_block_within_bounds(
    block: float | None, failures: int, seconds: float
) -> None:
    waited: list[float] = []
    worker = Worker.__new__(Worker)
    worker.reloader, worker._pauses = None, Backoff(base=2.0, cap=30.0)
    worker._pauses.failures = failures
    worker._clock = SimpleNamespace(block_seconds=block)  # type: ignore[assignment]
    worker.wake = SimpleNamespace(wait=waited.append, clear=lambda: None)  # type: ignore[assignment]
    worker._pause()
    assert waited == [seconds]


@pytest.mark.parametrize("begun", [True, False])
def test_read_chain__beat_that_is_due__is_sent_before_any_job_is_read(begun: bool) -> None:
    """However much strangers posted; a worker that only looks sends nothing."""
    order: list[str] = []
    worker = Worker.__new__(Worker)
    worker._begun, worker.errand = begun, None
    worker.told = SimpleNamespace(config=Config(beat_every=2))  # type: ignore[assignment]
    worker.sender = SimpleNamespace(address=decided.NODE.operator)  # type: ignore[assignment]
    worker._market = SimpleNamespace(credit=lambda *_: 0)  # type: ignore[assignment]
    worker._clock = SimpleNamespace(now=decided.NODE.state.beat + 9)  # type: ignore[assignment]
    worker._read_node = lambda head: decided.NODE  # type: ignore[method-assign]
    worker._why_hold = lambda head, node: None  # type: ignore[method-assign]
    send = lambda action: order.append(action.kind.value)  # noqa: E731
    worker._outbox = SimpleNamespace(flights=tuple, send=send)  # type: ignore[assignment]
    read = lambda *_: order.append("jobs") or ()  # type: ignore[func-returns-value]  # noqa: E731
    worker._watcher = SimpleNamespace(immutables=decided.MARKET, read=read)  # type: ignore[assignment]
    worker._executor = SimpleNamespace(ahead=tuple)  # type: ignore[assignment]
    worker._read_chain(SimpleNamespace(number=7, timestamp=decided.NOW, hash=bytes(32)))  # type: ignore[arg-type]
    assert order == (["beat", "jobs"] if begun else ["jobs"])


def test_earnings_of__books__add_up() -> None:
    lines = [
        Payment(1, "paid", decided.ID, 95, 5),
        Payment(2, "failed_theirs", decided.ID, 38, 2),
        Payment(3, "closed", decided.ID, 10, 1),
        Payment(4, "declined", decided.ID, 0),
        Payment(5, "reclaimed", decided.ID, 0),
        Payment(5, "slashed", None, 7),
        Payment(6, "lapsed", None, 1),
    ]
    found = earnings_of(lines)
    assert (found.paid, found.failed_theirs, found.closed, found.declined, found.timed_out) == (1, 1, 1, 1, 1)
    assert (found.income, found.fees, found.slashed, found.liveness_fees) == (143, 8, 7, 1)
    assert found.net == 143 - 7 - 1


def test_never_fits__state_of_the_node__does_not_count_but_its_offer_does() -> None:
    node, market = decided.NODE, decided.MARKET
    poor = replace(node, stake=0, state=replace(node.state, beat=0, busy=4, quarantine=decided.NOW * 2))
    assert never_fits(decided.TERMS, able(poor, market), market).name == "FITS"
    dear = replace(decided.TERMS, ceiling=node.offer.ask - 1)
    assert never_fits(dear, able(node, market), market).name == "PRICE"
    # A lower price that is on its way counts already.
    cheaper = replace(node, offer=replace(node.offer, pending=True), next_ask=1, next_ask_at=decided.NOW + 600)
    assert never_fits(dear, able(cheaper, market), market).name == "FITS"
    big = replace(decided.TERMS, needs=replace(decided.TERMS.needs, disk_gib=101))
    assert never_fits(big, able(node, market), market).name == "DISK"


def test_metrics__loop_that_turns__healthy_and_ready_apart() -> None:
    metrics = WorkerMetrics()
    assert metrics.health.health()[0]
    assert metrics.health.readiness() == (False, "it takes no work now: hearth worker status says why")
    metrics.ready = True
    assert metrics.health.readiness() == (True, "ready")
    metrics.ready = False
    assert not metrics.health.readiness()[0]


def test_metrics__loop_silent_for_a_minute__neither() -> None:
    metrics = WorkerMetrics()
    metrics.ready = True
    now = time.monotonic()
    metrics.health._clock = lambda: now + 61
    assert not metrics.health.health()[0]
    assert not metrics.health.readiness()[0]
    metrics.turn()
    assert metrics.health.readiness() == (True, "ready")


# ---- on a chain ----


@pytest.mark.e2e
def test_run__long_history__beats_while_it_is_read(
    exchange: Exchange, scenario: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A market of some months takes longer to read than a node may be silent: its leases would be reclaimed."""
    monkeypatch.setattr("worker.loop.MEANWHILE_SECONDS", 0.1)
    exchange.chain.rpc("anvil_mine", hex(200))
    begun = exchange.market.node(scenario.node).state.beat
    seen: list[int] = []
    real = follow.Cursor.read

    def slowly(self: follow.Cursor) -> follow.Tick:
        """As a provider does that serves few blocks at once."""
        self._span = 4
        tick = real(self)
        if tick.behind:
            time.sleep(0.2)
            seen.append(exchange.market.node(scenario.node).state.beat)
        return tick

    monkeypatch.setattr(follow.Cursor, "read", slowly)
    with working(scenario):
        wait(lambda: seen and seen[-1] >= begun + 4, "two more beats, before the history was read", 60)


@pytest.mark.e2e
@pytest.mark.parametrize("slow", ["letting go", "collecting"])
def test_run__store_that_is_long_in_clearing__beats_go_on_and_a_stop_does_not_wait(
    slow: str, exchange: Exchange, scenario: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Letting go a pin hangs, or the folder's lock is held, as a disk of many files would keep the collector busy."""
    monkeypatch.setattr("worker.housekeeping.HOUSEKEEPING_SECONDS", 0.1)
    store, home, free, unpin = exchange.store, scenario.home / "state", threading.Event(), FolderStore.unpin
    gone = store.put_block(f"{scenario.name} {slow}".encode())
    path = store.root / "blocks" / gone.digest.hex()[:2] / gone.digest.hex()
    os.utime(path, (1, 1))
    store.pin(gone)
    # What an earlier process has left: an attempt that ended long ago.
    journal, key = AttemptJournal(home / "work.db"), LeaseKey(decided.ID, 0, 1)
    journal.start(key, 1)
    journal.end(key, "settled")
    journal._change("UPDATE attempts SET changed = 1", ())
    journal.close()
    folders_in(home).of(key).write_pins([str(gone)])

    def let_go(self: FolderStore, cid: Cid) -> None:
        assert slow != "letting go" or free.wait(60)
        unpin(self, cid)

    monkeypatch.setattr(FolderStore, "unpin", let_go)
    with open(store.root / "lock", "ab") as lock, ExitStack() as stack:
        fcntl.flock(lock, fcntl.LOCK_SH)
        running = stack.enter_context(working(scenario))
        clearing = wait(lambda: running.worker._housekeeping._clearing, "the store is being cleared", 30)
        begun = exchange.market.node(scenario.node).state.beat
        wait(lambda: exchange.market.node(scenario.node).state.beat >= begun + 4, "two more beats", 30)
        wait(lambda: (gone in store.pins()) is (slow == "letting go"), "it is let go, or is being let go", 30)
        assert clearing.is_alive() and running.worker._housekeeping._clearing is clearing, "one at a time"
        assert path.exists()
        stack.close()  # joins the loop
        assert clearing.is_alive()
    free.set()
    clearing.join(30)
    assert gone not in store.pins() and path.exists() is (slow == "letting go")


@dataclass
class Running:
    """A worker in a thread of this process; `error` is what ended it."""

    thread: threading.Thread
    worker: Worker = field(init=False)
    error: HearthError | None = None


@contextmanager
def working(scenario: Scenario, **overrides: Any) -> Iterator[Running]:
    """Run the scenario's worker in a thread, opened there as well; raise what ended it."""
    opened = threading.Event()

    def run() -> None:
        try:
            with ExitStack() as stack:
                running.worker = build(settings.load(scenario.home / "worker.toml"), stack, overrides)
                opened.set()
                running.worker.run()
        except HearthError as error:
            running.error = error
        finally:
            opened.set()

    running = Running(threading.Thread(target=run))
    running.thread.start()
    assert opened.wait(60)
    try:
        if running.error is None:
            yield running
    finally:
        if hasattr(running, "worker"):
            running.worker.stop.set()
            running.worker.wake.set()
        running.thread.join(60)
    assert not running.thread.is_alive()
    if running.error is not None:
        raise running.error


def state_of(scenario: Scenario) -> dict[str, Any]:
    found = read_status(scenario.home / "state")
    if found is not None:
        schemas.validate(found)
    return found or {}


def reasons(scenario: Scenario, job: JobId) -> list[str]:
    return [line["reason"] for line in state_of(scenario).get("reasons", {}).get(job.hex(), [])]


def events_of(exchange: Exchange, job: JobId, kind: type) -> list[Any]:
    return [e for e in exchange.logs() if isinstance(e, kind) and e.job_id == job]  # type: ignore[attr-defined]


@pytest.mark.e2e
@pytest.mark.parametrize("scenario", [{"slots": 2}], indirect=True)
def test_run__array_on_two_slots__runs_each_lease_once(exchange: Exchange, scenario: Scenario) -> None:
    job = scenario.post(units=5, newcomers=True)
    with working(scenario):
        for index in range(5):
            scenario.settled(job, index)
        wait(lambda: state_of(scenario)["earnings"]["paid"] == "5", "the books show it")
    for index in range(5):
        scenario.assert_once(job, index)
    node = exchange.market.node(scenario.node)
    assert (node.state.busy, node.state.bond) == (0, 0)


@pytest.mark.e2e
def test_run__paused__takes_nothing_and_says_why_until_it_is_resumed(scenario: Scenario) -> None:
    home = scenario.home / "state"
    set_mode(home, "pause")
    job = scenario.post()
    with working(scenario) as running:
        wait(lambda: reasons(scenario, job) == ["paused"], "the worker says that it is paused")
        assert not running.worker.metrics.ready
        set_mode(home, "run")
        scenario.settled(job)
    assert state_of(scenario)["state"] == "stopped"


@pytest.mark.e2e
def test_run__drained__finishes_what_it_holds_and_ends(exchange: Exchange, scenario: Scenario) -> None:
    usual, scenario.module = scenario.module, exchange.module(scenario.name, 1_500_000_000)
    config = scenario.home / "worker.toml"
    config.write_text(config.read_text().replace(str(usual.cid), str(scenario.module.cid)))
    job = scenario.post()
    with working(scenario, settle_after=0) as running:
        wait(lambda: scenario.state(job) is State.RUNNING, "it runs")
        set_mode(scenario.home / "state", "drain")
        other = scenario.post()
        running.thread.join(120)
        assert not running.thread.is_alive()  # type: ignore[attr-defined]
    scenario.assert_once(job)
    assert scenario.state(other) is State.OPEN
    assert state_of(scenario)["state"] == "drained"
    given = ("--config", str(config), "--network", str(exchange.net.network_file))
    books = run_hearth(exchange.user_home, "worker", "earnings", *given, "--json").json
    spent = 10 * ETH - exchange.chain.balance(scenario.operator)
    assert int(books["gas_wei"]) == spent > 0
    assert int(books["profit"]) == int(books["income"]) - spent
    said = run_hearth(exchange.user_home, "worker", "earnings", *given).out
    assert "timed out       0" in said and "leases lost, since nothing was submitted in time" in said
    # Starting it again means to work again.
    with working(scenario):
        scenario.settled(other)


@pytest.mark.e2e
def test_run__job_that_cannot_be_run__is_given_back_with_its_reason(exchange: Exchange, scenario: Scenario) -> None:
    data, _ = scenario.input_without_a_leaf(spoilt=True)
    job = scenario.post(inputs=(data,))
    with working(scenario) as running:
        wait(lambda: events_of(exchange, job, Declined), "it is declined")
        wait(lambda: state_of(scenario)["earnings"]["declined"] == "1", "the books show it")
        wait(lambda: reasons(scenario, job) == ["retry_later"], "it does not take the job again")
        # The unit is open and still names the node that declined it, which holds nothing.
        assert scenario.unit(job).node == scenario.node
        set_mode(scenario.home / "state", "drain")
        running.thread.join(120)
        assert state_of(scenario)["state"] == "drained"
    (declined,) = events_of(exchange, job, Declined)
    report = exchange.store.get_json(declined.report)
    assert report["outcome"] == "bad_input" and data.cid in report["detail"]
    assert scenario.state(job) is State.OPEN


@pytest.mark.e2e
@pytest.mark.parametrize("scenario", [{"turns": 40_000_000_000}], indirect=True)
def test_run__cancelled_while_it_runs__is_closed_and_paid_for_its_time(exchange: Exchange, scenario: Scenario) -> None:
    job = scenario.post()
    with structlog.testing.capture_logs() as logs, working(scenario):
        wait(scenario.sandboxes, "it runs")
        terms = exchange.market.terms_of(job).terms
        exchange.submitter.send(exchange.market.calls.cancel(terms, 0), key=f"cancel/{job.hex()}")
        wait(lambda: scenario.state(job) is State.CANCELLED, "it is closed")
        wait(lambda: not scenario.sandboxes(), "the program is stopped")
    (closed,) = events_of(exchange, job, Closed)
    assert closed.pay > closed.fee > 0
    begins = next(line for line in logs if line["event"] == "a worker begins")
    assert (begins["version"], begins["node"], begins["runtimes"]) == (__version__, scenario.node, ["wasm"])
    assert begins["offer"] == "1 x 0 GPU, 1 cores, 1 GiB RAM, 1 GiB disk at 0.0000036 ETH/h"


@pytest.mark.e2e
@pytest.mark.parametrize("scenario", [{"turns": 3_000_000_000}], indirect=True)
def test_run__reorganisation_takes_the_claim_away__runs_on_and_settles_once(
    exchange: Exchange, scenario: Scenario
) -> None:
    job = scenario.post()
    with working(scenario) as running:
        wait(scenario.sandboxes, "it runs")
        (started,) = events_of(exchange, job, Started)
        with exchange.still():
            # From the claim on, but not the post, whose sender does not watch.
            exchange.chain.rpc("anvil_reorg", exchange.chain.head().number - started.log.block_number + 1, [])
            assert scenario.state(job) is State.OPEN
        scenario.settled(job)
        assert running.worker._watcher.reorgs >= 1
        moments = [moment for moment, _ in running.worker._journal.moments(LeaseKey(job, 0, 1))]
    scenario.assert_once(job)
    # The same claim came back, and the run that it paid for was never given up.
    assert events_of(exchange, job, Started)[0].log.tx_hash == started.log.tx_hash
    assert moments.count(Moment.STARTED) == 1


@pytest.mark.e2e
def test_run__rpc_away_for_a_while__goes_on_where_it_was(exchange: Exchange, scenario: Scenario) -> None:
    with working(scenario, rpc_timeout=2.0) as running:
        wait(lambda: state_of(scenario).get("status") == "active", "it is active")
        os.kill(exchange.net.pid, signal.SIGSTOP)
        try:
            wait(lambda: running.worker._pauses.failures > 0, "it notices", 60)
        finally:
            os.kill(exchange.net.pid, signal.SIGCONT)
        job = scenario.post()
        scenario.settled(job)
    scenario.assert_once(job)


@pytest.mark.e2e
def test_run__store_that_hangs_past_the_lease__is_given_back_in_time_and_costs_no_stake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Attack: a stranger's short job whose end takes longer than its lease; whatever hangs, the loop gives it back."""
    hang = threading.Event()

    def deaf(_self: FolderStore, *_args: object, **_more: object) -> object:
        hang.wait(60)
        raise StoreDown("it hung")

    need_anvil()
    exchange = Exchange(tmp_path)
    try:
        monkeypatch.setenv("HEARTH_HOME", str(exchange.user_home))
        scenario = exchange.scenario("hung")
        stake = exchange.market.node(scenario.node).stake
        # A devnet's lease of two seconds is over ten seconds later, of which a busy machine may need most to look.
        exchange.set_policy(grace_floor=12, fetch_floor=60)
        job = scenario.post(seconds=2)
        monkeypatch.setattr(FolderStore, "add_path", deaf)
        # Three transactions say little of how long the next one takes while other tests begin.
        monkeypatch.setattr("worker.lead.LEAST", 5.0)
        with working(scenario):
            wait(lambda: scenario.state(job) is not State.OPEN, "it is taken")
            # After the deadline the chain takes no decline.
            wait(lambda: events_of(exchange, job, Declined), "it is given back", 60)
        assert exchange.market.node(scenario.node).stake == stake
    finally:
        hang.set()
        exchange.close()


@pytest.mark.e2e
@pytest.mark.parametrize("how", ["refuses", "hangs"])
def test_run__store_that_takes_nothing__no_job_is_taken_and_the_node_beats_until_it_does(
    how: str, exchange: Exchange, scenario: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each job would run in vain and be given back at its end, one after the other."""
    # A store that takes results may be slow on a busy machine.
    for name, seconds in (("PATIENCE_SECONDS", 5.0), ("EVERY_SECONDS", 0.5), ("AGAIN_SECONDS", 0.5)):
        monkeypatch.setattr(f"worker.attempt.intake.{name}", seconds)
    place, start, ill, soon_ill = FolderStore._place, Executor.start, threading.Event(), threading.Event()
    ill.set()

    def placed(self: FolderStore, path: Path, data: bytes) -> None:
        # The worker's alone: the submitter stores its jobs in the same folder, from the test's own thread.
        while ill.is_set() and threading.current_thread().name.startswith(("store trial", "attempt")):
            if how == "refuses":
                raise OSError(errno.EROFS, "it is read-only")
            time.sleep(0.05)
        place(self, path, data)

    def goes_ill(self: Executor, task: Any) -> None:
        if soon_ill.is_set():
            soon_ill.clear()
            ill.set()
        start(self, task)

    monkeypatch.setattr(FolderStore, "_place", placed)
    monkeypatch.setattr(Executor, "start", goes_ill)
    said = "it is read-only" if how == "refuses" else "has not answered for"
    first = scenario.post()
    try:
        with structlog.testing.capture_logs() as logs, working(scenario) as running:
            gauge = running.worker.metrics.registry.get_sample_value

            def holds(job: JobId) -> bool:
                found = state_of(scenario)
                told = found.get("hold") == "store_down" and said in found["store_refusal"]
                return told and reasons(scenario, job) == ["store_down"]

            wait(lambda: holds(first), "it takes nothing from the start, and says why")
            assert gauge("hearth_worker_store_down") == 1 and not running.worker.metrics.ready
            begun = wait(lambda: exchange.market.node(scenario.node).state.beat, "its first beat waits for no store")
            wait(lambda: exchange.market.node(scenario.node).state.beat > begun, "it goes on beating")
            assert (scenario.state(first), scenario.entries()) == (State.OPEN, [])
            ill.clear()
            scenario.settled(first)
            assert gauge("hearth_worker_store_down") == 0
            soon_ill.set()
            second = scenario.post()
            wait(ill.is_set, "another is taken, and the store is away before its result is there")
            third = scenario.post()
            wait(lambda: holds(third), "it takes nothing more")
            assert scenario.state(third) is State.OPEN
            ill.clear()
            for job in (second, third):
                scenario.settled(job)
    finally:
        ill.clear()
    told = [one["event"] for one in logs if one["event"].startswith(("the store takes no", "the store takes results"))]
    assert told == ["the store takes no results: nothing new is taken", "the store takes results again"] * 2
    for job in (first, second, third):
        scenario.assert_once(job)


@pytest.mark.e2e
def test_run__lease_that_is_lost__is_in_the_log_with_its_cost_and_how_far_it_had_come(
    exchange: Exchange, scenario: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = Outbox.send

    def silent(self: Outbox, action: Any) -> None:
        if isinstance(action, SubmitResult | Decline):
            raise ChainError("the base fee is above the cap", code="FEE_CAP", hint="hearth doctor")
        send(self, action)

    monkeypatch.setattr(Outbox, "send", silent)
    stake = exchange.market.node(scenario.node).stake
    job = scenario.post(seconds=2)
    with structlog.testing.capture_logs() as logs, working(scenario):
        wait(lambda: any(e.phase == "done" for e in scenario.entries()), "it ran")
        wait(lambda: exchange.chain.head().timestamp >= scenario.unit(job).deadline_at, "its time is over")
        (posted,) = events_of(exchange, job, JobPosted)
        scenario.submitter.send(exchange.market.calls.reclaim(posted.terms, 0), key=f"reclaim/{job.hex()}")
        wait(lambda: any(one["event"].startswith("lease lost") for one in logs), "the loss is in the log")
    (told,) = [one for one in logs if one["event"].startswith("lease lost")]
    assert told["attempt"] == f"{job.hex()}-0-1" and "its result was ready at" in told["why"], told
    lost = stake - exchange.market.node(scenario.node).stake
    assert lost > 0 and told["cost"] == format_amount(lost, asset_of(exchange.net.network))


@pytest.mark.e2e
def test_run__sends_fail_for_a_while__runs_what_it_holds_and_submits_later(
    exchange: Exchange, scenario: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fee spike must not keep a held lease from running."""
    send = Outbox.send
    spike, claimed = threading.Event(), threading.Event()

    def dear(self: Outbox, action: Any) -> None:
        if not isinstance(action, Claim) and claimed.is_set() and spike.is_set():
            raise ChainError("the base fee is above the cap", code="FEE_CAP", hint="hearth doctor")
        send(self, action)
        if isinstance(action, Claim):
            claimed.set()

    monkeypatch.setattr(Outbox, "send", dear)
    spike.set()
    job = scenario.post()
    with working(scenario) as running:
        wait(lambda: any(e.phase == "done" for e in scenario.entries()), "it ran")
        wait(lambda: running.worker._pauses.failures > 1, "the sends fail")
        assert scenario.state(job) is State.RUNNING
        spike.clear()
        scenario.settled(job)
    scenario.assert_once(job)


@pytest.mark.e2e
def test_run__gas_above_its_limits__submits_what_it_holds_takes_nothing_and_says_so(
    exchange: Exchange, scenario: Scenario
) -> None:
    """Above half of the cap nothing begins and beats and submits go out; above all of it they wait, and it is said."""
    config = scenario.home / "worker.toml"
    config.write_text('max_gas_price = "40 gwei"\n' + config.read_text())

    def at(gwei: int, condition: Any) -> Any:
        """Keep the base fee at a price until a condition holds."""
        exchange.chain.rpc("anvil_setNextBlockBaseFeePerGas", hex(gwei * 10**9))
        return condition()

    job = scenario.post()
    with working(scenario) as running:
        wait(lambda: scenario.state(job) is not State.OPEN, "it is taken")
        later = scenario.post()
        wait(lambda: at(30, lambda: state_of(scenario).get("hold") == "gas_capped"), "it takes nothing new")
        beat = exchange.market.node(scenario.node).state.beat
        done = (State.SUBMITTED, State.SETTLED)
        wait(lambda: at(30, lambda: scenario.state(job) in done), "what it holds is submitted")
        wait(lambda: at(30, lambda: exchange.market.node(scenario.node).state.beat > beat), "it beats")
        assert (scenario.state(later), reasons(scenario, later)) == (State.OPEN, ["gas_capped"])
        said = "beats and submits wait"
        wait(lambda: at(60, lambda: said in state_of(scenario).get("gas_capped", "")), "it says that all waits")
        gauge = running.worker.metrics.registry.get_sample_value
        assert gauge("hearth_worker_gas_capped", {"what": "everything"}) == 1
        wait(lambda: at(1, lambda: scenario.state(later) is State.SETTLED), "it goes on by itself")
        wait(lambda: state_of(scenario)["gas_capped"] == "", "it says that it goes on")
    scenario.assert_once(later)


@pytest.mark.e2e
def test_run__operator_replaced__stops_with_the_reason(exchange: Exchange, scenario: Scenario) -> None:
    """By an offer alone it works on; the other key's first beat ends it."""
    calls, node = exchange.market.calls, scenario.node
    with pytest.raises(ConfigError) as caught, working(scenario) as running:
        wait(lambda: state_of(scenario).get("status") == "active", "it is active")
        exchange.owner.send(calls.set_operator(node, exchange.submitter.address), key=f"set_operator/{node}")
        job = scenario.post()
        scenario.settled(job)
        exchange.submitter.send(calls.beat(node), key=f"first beat/{node}")
        running.thread.join(60)  # type: ignore[attr-defined]
    assert caught.value.code == "NOT_OPERATOR"


@pytest.mark.e2e
def test_run__node_offered_to_this_key__is_taken_over_by_its_first_beat(exchange: Exchange, scenario: Scenario) -> None:
    """Another key operates it and has just beaten, so that no beat would be due."""
    market, calls, node = exchange.market, exchange.market.calls, scenario.node
    exchange.owner.send(calls.set_operator(node, exchange.submitter.address), key=f"away/{node}")
    exchange.submitter.send(calls.beat(node), key=f"beat away/{node}")
    assert refusal(scenario).code == "NO_NODE"
    exchange.owner.send(calls.set_operator(node, scenario.operator), key=f"back/{node}")
    job = scenario.post(by=exchange.owner)
    with working(scenario):
        scenario.settled(job)
    assert market.node(node).operator == scenario.operator
    assert next(iter(scenario.transactions())).startswith("beat/"), "nothing is sent before it"


@pytest.mark.e2e
def test_run__gas_money_gone__says_so_and_goes_on_when_it_is_back(
    exchange: Exchange, scenario: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("worker.outbox.FUNDS_SECONDS", 3.0)
    job = scenario.post()
    exchange.chain.rpc("anvil_setBalance", scenario.operator, "0x0")
    with working(scenario):
        wait(lambda: state_of(scenario).get("hold") == "not_ready", "it holds")
        assert scenario.state(job) is State.OPEN
        exchange.chain.rpc("anvil_setBalance", scenario.operator, hex(ETH))
        wait(lambda: state_of(scenario).get("status") == "active", "it beats again")


@pytest.mark.e2e
def test_run__own_credit_above_the_threshold__is_withdrawn_as_gas_money(exchange: Exchange, scenario: Scenario) -> None:
    """Settling earns the settler's share of the keeper fee, which pays for gas."""
    job = scenario.post()
    with working(scenario, withdraw_at=1):
        scenario.settled(job)
        wait(lambda: "withdraw/" in " ".join(scenario.transactions()), "it withdraws")
        wait(lambda: exchange.market.credit(scenario.operator) == 0, "the credit is gone")


def leave_stake(exchange: Exchange, node: int, stake: int) -> None:
    """Let a node have lost all of its stake but so much, as by slashes, without the losses."""
    nodes, key = exchange.net.network.nodes, (1).to_bytes(32, "big") + node.to_bytes(32, "big")
    slot = "0x" + keccak(key).hex()  # of NodeRegistry._owners
    record = words.unpack(words.OWNER, int(exchange.chain.rpc("eth_getStorageAt", nodes, slot, "latest"), 16))
    assert record["stake"] == exchange.market.node(NodeId(node)).stake > stake
    word = words.pack(words.OWNER, {**record, "stake": stake})
    exchange.chain.rpc("anvil_setStorageAt", nodes, slot, f"0x{word:064x}")
    exchange.chain.rpc("evm_mine")


@pytest.mark.e2e
@pytest.mark.parametrize("scenario", [{"stake": 1}], indirect=True)
def test_run__stake_below_half_the_minimum__says_how_much_is_missing_and_the_command_that_mends_it(
    exchange: Exchange, scenario: Scenario, tmp_path: Path
) -> None:
    missing = 10**13
    minimum = exchange.net.network.node_parameters.minimum_stake
    leave_stake(exchange, scenario.node, minimum // 2 - missing)
    keys.create_key(tmp_path / "keys", "owner", PASSWORD, secret=bytes(devnet.account(1).key), devnet=True)
    with structlog.testing.capture_logs() as logs, working(scenario) as running:

        def hearth(*arguments: str) -> Said:
            config = ("--config", str(scenario.home / "worker.toml"), "--network", str(exchange.net.network_file))
            return run_hearth(tmp_path, "worker", *arguments, *config)

        wait(lambda: state_of(scenario).get("stake_short") == str(missing), "it says what it lacks")
        said = state_of(scenario)
        assert (said["status"], said["state"]) == ("pending", "waiting")
        assert running.worker.metrics.registry.get_sample_value("hearth_worker_stake_short") == missing
        (line,) = [line for line in logs if line["event"].startswith("stake is short")]
        assert (line["log_level"], line["short"]) == ("warning", "0.00001 ETH")
        shown = hearth("status").out
        assert "not ready" in shown and "waiting" in shown and "working" not in shown
        same = f"--network {exchange.net.network_file} --config {scenario.home / 'worker.toml'}"
        assert f"the minimum of 1 ETH: hearth worker stake {same} 0.50001\n" in shown
        assert "  stake 0.00001 ETH short of half" in shown
        doctor = hearth("doctor", "--json")
        row = next(row for row in doctor.json["checks"] if row["name"] == "stake")
        assert doctor.code == 3 and row["level"] == "FAIL" and "0.00001 ETH short" in row["detail"]
        (wait_for,) = [one for one in hearth("status", "--json").json["waits"] if one["reason"] == "stake"]
        assert wait_for["next"] == row["fix"] == line["next"] == "hearth worker stake 0.50001"
        password = ("--account", "owner", "--password-file", str(scenario.home / "password"))
        mended = hearth(*wait_for["next"].split()[2:], *password)
        assert mended.code == 0, mended.err
        wait(lambda: state_of(scenario).get("state") == "working", "it can work again")
        assert running.worker.metrics.registry.get_sample_value("hearth_worker_stake_short") == 0
        assert not any(one["reason"] == "stake" for one in hearth("status", "--json").json["waits"])
        assert [line["stake"] for line in logs if line["event"] == "stake suffices"] == ["1 ETH"]


@pytest.mark.e2e
def test_build__worker_toml_that_offers_something_else__says_what_and_the_command(
    exchange: Exchange, scenario: Scenario
) -> None:
    config, same = scenario.home / "worker.toml", "the chain has another offer than worker.toml"
    given = ("--config", str(config), "--network", str(exchange.net.network_file), "--json")

    def told() -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
        """What a start logs, and what the doctor says, each with its command."""
        with structlog.testing.capture_logs() as logs, ExitStack() as stack:
            build(settings.load(config), stack)
        checks = run_hearth(exchange.user_home, "worker", "doctor", *given).json["checks"]
        rows = [row for row in checks if row["name"] == "registered" and row["level"] == "WARN"]
        return [(line["what"], line["fix"]) for line in logs if line["event"] == same], [
            (row["detail"], row["fix"]) for row in rows
        ]

    assert told() == ([], [])
    config.write_text(config.read_text().replace('"0.0000036/h"', '"0.0000045/h"').replace("slots = 1", "slots = 2"))
    logged, checked = told()
    assert (
        logged
        == checked
        == [
            (
                "offer.price is 0.0000045 ETH/h here, and the chain has 0.0000036 ETH/h",
                'hearth worker price "0.0000045/h", or set offer.price = "0.0000036 ETH/h" in worker.toml',
            ),
            ("offer.slots is 2 here, and the chain has 1", "hearth worker update"),
        ]
    )


# ---- refusals to start, each with nothing sent and nothing written to the chain ----


def refusal(scenario: Scenario) -> HearthError:
    chain = scenario.exchange.chain
    before = (chain.nonce(scenario.operator), chain.balance(scenario.operator))
    with pytest.raises(HearthError) as caught, ExitStack() as stack:
        build(settings.load(scenario.home / "worker.toml"), stack)
    assert (chain.nonce(scenario.operator), chain.balance(scenario.operator)) == before
    return caught.value


def edit_network(scenario: Scenario, change: Any) -> None:
    """Give the scenario a network file of its own, changed."""
    data = json.loads(scenario.exchange.net.network_file.read_text())
    change(data)
    (scenario.home / "network.json").write_text(json.dumps(data))
    config = scenario.home / "worker.toml"
    config.write_text(config.read_text().replace(str(scenario.exchange.net.network_file), "./network.json"))


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("change", "code", "exit_code"),
    [
        (lambda d: d.update(chain_id=1), "WRONG_CHAIN", 4),
        (lambda d: d.update(genesis_hash="0x" + "11" * 32), "WRONG_CHAIN", 4),
        (lambda d: d.update(protocol_version=2), "WRONG_VERSION", 3),
        (lambda d: d.update(deployed_chain_id=1), "WRONG_CONTRACTS", 4),
        (lambda d: d["code_hashes"].update(JobRegistry="0x" + "11" * 32), "WRONG_CONTRACTS", 4),
        (lambda d: d["contracts"].update(JobRegistry=d["contracts"]["Lens"]), "WRONG_CONTRACTS", 4),
        (lambda d: d["contracts"].update(Escrow="0x" + "11" * 20), "WRONG_CONTRACTS", 4),
    ],
)
def test_build__network_file_of_another_market__is_refused(
    scenario: Scenario, change: Any, code: str, exit_code: int
) -> None:
    edit_network(scenario, change)
    error = refusal(scenario)
    assert (error.code, error.exit_code) == (code, exit_code)


@pytest.mark.e2e
def test_build__key_or_password_unfit__is_refused(scenario: Scenario) -> None:
    password = scenario.home / "password"
    password.chmod(0o644)
    assert refusal(scenario).code == "OPEN_FILE"
    password.chmod(0o600)
    password.write_text("wrong")
    assert refusal(scenario).code == "WRONG_PASSWORD"
    password.unlink()
    assert refusal(scenario).code == "NO_FILE"
    shutil.rmtree(scenario.home / "keys")
    assert refusal(scenario).code == "NO_ACCOUNT"


@pytest.mark.e2e
def test_build__key_without_a_node__is_refused(scenario: Scenario) -> None:
    shutil.rmtree(scenario.home / "keys")
    keys.create_key(scenario.home / "keys", "operator", PASSWORD, devnet=True)
    assert refusal(scenario).code == "NO_NODE"
    config = scenario.home / "worker.toml"
    config.write_text(f"node = {scenario.node}\n" + config.read_text())
    assert refusal(scenario).code == "NOT_OPERATOR"


def strangers_node(exchange: Exchange, operator: str) -> int:
    """Have the submitter register a node of its own with somebody's key; return its id."""
    sender, offer = exchange.submitter, Offer(runtimes=Runtime.WASM, cores=1, ram_gib=1, disk_gib=1, slots=1, ask=1)
    stake = exchange.net.network.node_parameters.minimum_stake
    sender.send(exchange.market.calls.register(operator, offer, bytes(32), stake), key=f"hijack/{operator}")
    return max(int(node.id) for node in exchange.market.nodes("latest"))


@pytest.mark.e2e
def test_build__strangers_node_with_this_key__is_not_worked_for(exchange: Exchange, scenario: Scenario) -> None:
    """What a stranger would gain: a machine that works, beats and pays gas for him, or one that cannot start."""
    theirs = strangers_node(exchange, scenario.operator)
    job = scenario.post()
    with working(scenario):
        scenario.settled(job)
    assert exchange.market.node(NodeId(theirs)).state.beat == 0
    config = scenario.home / "worker.toml"
    config.write_text(f"node = {theirs}\n" + config.read_text())
    assert refusal(scenario).code == "NOT_OWNER"


@pytest.mark.e2e
def test_build__node_that_a_stranger_offers_to_this_key__is_not_taken_over(
    exchange: Exchange, scenario: Scenario
) -> None:
    """What a stranger would gain: that this key answers for the failures of his node."""
    theirs = NodeId(strangers_node(exchange, exchange.owner.address))
    offer = exchange.market.calls.set_operator(theirs, scenario.operator)
    exchange.submitter.send(offer, key=f"pushed/{theirs}")
    job = scenario.post()
    with working(scenario):
        scenario.settled(job)
    assert exchange.market.node(theirs).operator == exchange.owner.address
    config = scenario.home / "worker.toml"
    text = config.read_text()
    config.write_text(f"node = {theirs}\n" + text)
    assert refusal(scenario).code == "NOT_OWNER"
    config.write_text(text.replace("operator.json", "other.json"))
    other = keys.create_key(scenario.home / "keys", "other", PASSWORD, devnet=True)
    exchange.submitter.send(exchange.market.calls.set_operator(theirs, other.address), key=f"pushed again/{theirs}")
    assert refusal(scenario).code == "NO_NODE"


@pytest.mark.e2e
def test_build__key_with_a_strangers_node_alone__is_refused(exchange: Exchange, scenario: Scenario) -> None:
    shutil.rmtree(scenario.home / "keys")
    other = keys.create_key(scenario.home / "keys", "operator", PASSWORD, devnet=True)
    theirs = strangers_node(exchange, other.address)
    error = refusal(scenario)
    assert (error.code, error.exit_code) == ("NOT_OWNER", 3)
    assert error.message.startswith(f"node {theirs} belongs to {exchange.submitter.address}")


@pytest.mark.e2e
def test_run__node_goes_to_another_owner__runs_what_it_holds_takes_nothing_and_falls_silent(
    exchange: Exchange, scenario: Scenario
) -> None:
    """A worker beats and works only for the owner that it was told of."""
    market, node = exchange.market, scenario.node
    job = scenario.post()
    with structlog.testing.capture_logs() as logs, working(scenario):
        wait(lambda: scenario.state(job) is State.RUNNING, "it works")
        exchange.owner.send(market.calls.offer_owner(node, exchange.submitter.address), key=f"offer/{node}")
        exchange.submitter.send(market.calls.accept_owner(node), key=f"accept/{node}")
        wait(lambda: state_of(scenario).get("hold") == "other_owner", "it takes nothing new")
        scenario.settled(job)
        later = scenario.post(by=exchange.owner)
        beat = market.node(node).state.beat
        wait(lambda: reasons(scenario, later) == ["other_owner"], "it says why")
        exchange.chain.rpc("anvil_mine", hex(20))
        wait(lambda: state_of(scenario).get("block", 0) >= exchange.chain.head().number - 3, "it looks on")
        assert (scenario.state(later), market.node(node).state.beat) == (State.OPEN, beat)
    (line,) = [line for line in logs if line["event"].startswith("the node has another owner")]
    assert line["owner"] == exchange.submitter.address
    assert refusal(scenario).code == "NOT_OWNER"


@pytest.mark.e2e
def test_build__metrics_address_in_use__is_refused(scenario: Scenario) -> None:
    config = scenario.home / "worker.toml"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        config.write_text(config.read_text().replace('listen = ""', f'listen = "127.0.0.1:{port}"'))
        error = refusal(scenario)
    assert (error.exit_code, error.component) == (3, "worker")
    assert error.message.startswith(f"metrics.listen: 127.0.0.1:{port} cannot be had")


@pytest.mark.e2e
def test_build__gateway_address_in_use__is_refused(scenario: Scenario) -> None:
    config = scenario.home / "worker.toml"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        config.write_text(f'{config.read_text()}\n[gateway]\nlisten = "127.0.0.1:{port}"\n')
        error = refusal(scenario)
    assert (error.exit_code, error.component) == (3, "worker")
    assert error.message == f"gateway.listen: 127.0.0.1:{port} cannot be had: Address already in use"


@pytest.mark.e2e
def test_build__rpc_down__is_refused_as_retryable(scenario: Scenario) -> None:
    config = scenario.home / "worker.toml"
    config.write_text(config.read_text().replace(scenario.exchange.url, f"http://127.0.0.1:{free_port()}"))
    error = refusal(scenario)
    assert isinstance(error, ChainError) and error.retryable and error.exit_code == 4


@pytest.mark.e2e
def test_main__second_worker_on_the_key__ends_with_key_in_use(scenario: Scenario) -> None:
    with working(scenario):
        scenario.start()
        assert scenario.process is not None
        assert scenario.process.wait(60) == 3
    error = json.loads(scenario.log().strip().splitlines()[-1])["error"]
    assert error["code"] == "KEY_IN_USE"
    scenario.assert_secret_kept()


@pytest.mark.e2e
def test_main__copy_of_the_key_and_a_home_of_its_own__ends_with_key_in_use(scenario: Scenario) -> None:
    """What a provider loses who copies a worker.toml and its key: nothing. Two of one node would fight over nonces."""
    copy = scenario.copied()
    set_mode(scenario.home / "state", "pause")  # it sends nothing meanwhile
    scenario.start()
    scenario.working()
    assert scenario.process is not None
    error = refusal(copy)
    assert (error.code, error.exit_code) == ("KEY_IN_USE", 3) and f"process {scenario.process.pid} " in error.message
    assert f"that is the worker in {scenario.home / 'state'}: " in error.hint
    copy.start()
    assert copy.process is not None and copy.process.wait(60) == 3 and "KEY_IN_USE" in copy.log()
    # The lock is the process's: one that is killed leaves none behind.
    scenario.kill()
    copy.start()
    copy.working()
    copy.stop()


@pytest.mark.e2e
def test_build__home_of_another_keys_worker__is_refused(exchange: Exchange, scenario: Scenario) -> None:
    other = exchange.scenario(f"{scenario.name}b")
    config = other.home / "worker.toml"
    config.write_text(config.read_text().replace('home = "state"', f'home = "{scenario.home / "state"}"'))
    with working(scenario):
        error = refusal(other)
        assert (error.code, error.exit_code) == ("HOME_IN_USE", 3)
        assert str(scenario.home / "state") in error.message and "set another home" in error.hint
        # The doctor of a worker with a home of its own sees this one.
        (beside,) = [one for one in others(exchange.user_home, other.home) if one.home == str(scenario.home / "state")]
        assert (beside.cores, beside.memory_gib, beside.disk_gib) == (1, 1, 1)
    # Where it has ended its lock says nothing, and its journal and results wait for it to come back.
    error = refusal(other)
    assert (error.code, error.exit_code) == ("HOME_IN_USE", 3)
    # So they do when the chain has changed its id meanwhile.
    exchange.chain.rpc("anvil_setChainId", LOCAL_CHAIN_ID + 1)
    as_it_was = config.read_text()
    try:
        edit_network(other, lambda d: d.update(chain_id=LOCAL_CHAIN_ID + 1, deployed_chain_id=LOCAL_CHAIN_ID))
        assert refusal(other).code == "HOME_IN_USE"
    finally:
        exchange.chain.rpc("anvil_setChainId", LOCAL_CHAIN_ID)
        config.write_text(as_it_was)
    assert f"the home of node {scenario.node}'s worker, whose key is {scenario.operator}" in error.message
    # What a home says of another chain is of no use.
    for journal in (scenario.home / "state").glob("tx-*.db*"):
        journal.unlink()
    with working(other):
        wait(lambda: state_of(scenario).get("node") == other.node, "the other one works there")


@pytest.mark.e2e
def test_main__sigterm__ends_well_and_a_new_process_goes_on(exchange: Exchange, scenario: Scenario) -> None:
    job = scenario.post()
    scenario.start()
    wait(lambda: scenario.state(job) is not State.OPEN, "it is claimed")
    scenario.working()
    scenario.stop()
    scenario.start()
    scenario.settled(job)
    scenario.working()
    scenario.stop()
    scenario.assert_once(job)


@pytest.mark.e2e
def test_run__disk_full_to_the_last_byte__starts_beats_says_so_and_works_again(
    exchange: Exchange, scenario: Scenario
) -> None:
    """What a cheat gains: nothing. Whoever fills the disk silences no node, and costs it neither stake nor uptime."""
    config = scenario.home / "worker.toml"
    config.write_text(config.read_text().replace('reserve = "1MiB"', 'reserve = "32MiB"'))

    def beat() -> int:
        return exchange.market.node(scenario.node).state.beat

    def beats() -> None:
        last = beat()
        wait(lambda: beat() > last + 2, "it goes on beating")

    def said(job: JobId) -> list[str]:
        lines = (read_status(scenario.home / "state") or {}).get("reasons", {}).get(job.hex(), [])
        return [line["reason"] for line in lines]

    with small_disk(scenario.home / "state", 384 * MIB) as home:
        # What an earlier process left of an attempt is all that gives this one room to begin.
        dead = home / "jobs" / f"{'ab' * 32}-0-1" / "in"
        dead.mkdir(parents=True)
        (dead / "data").write_bytes(b"x" * (20 * MIB))
        fill(home / "others")
        assert free_bytes(home) == 0
        scenario.start()
        job = scenario.post()
        wait(lambda: said(job) == ["disk_full"], f"it says why it takes nothing\n{scenario.log()[-2000:]}")
        beats()
        (home / "others").unlink()
        wait(lambda: scenario.state(job) in (State.SUBMITTED, State.SETTLED), "it works again")
        wait(lambda: (home / "spare").exists(), "the spare is there again")
        fill(home / "others")
        other = scenario.post()
        wait(lambda: said(other) == ["disk_full"], "it says it while it runs")
        beats()
        found = read_status(scenario.home / "state")
        assert found is not None and found["hold"] == "disk_full" and found["disk_free"] < found["disk_reserve"]
        fill(home / "others")
        wait(lambda: "cycle failed" in scenario.log(), "the room that was kept for its journals is taken too")
        (home / "others").unlink()
        beats()
        scenario.stop()
    assert "Traceback" not in scenario.log()
