"""Attack: what a stranger's program or state costs the other attempts of a worker, by checkpoints."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import structlog.testing

from hearth.base.errors import ChainError
from hearth.jobfile.resolved import ResolvedCheckpoint, ResolvedInput, ResolvedOutput
from hearth.market.profiles import DEVNET
from hearth.protocol.types import Billing, Kept, NodeId, Outcome
from hearth.storage import cid as cids
from tests.kit import build
from tests.kit.disks import MIB, small_disk
from tests.worker.attempt import test_disk
from tests.worker.attempt.jobs import KEY
from tests.worker.attempt.test_checkpoints import count, offered, state
from tests.worker.attempt.test_executor import Rig, wait
from worker.attempt.task import Task
from worker.decide import Checkpoint, LeaseKey, Saved, Stage
from worker.disk import Disk
from worker.journal import Phase
from worker.loop import Worker
from worker.runtimes.base import RunRequest
from worker.runtimes.published import copy_folder

PLACE = "/out/state"
VICTIM = LeaseKey(KEY.job, 1, 1)


class Publishing(test_disk.Scripted):
    """A runtime whose program's folder is copied as that of a real one."""

    def copy_out(self, request: RunRequest, place: str, into: Path, moved: Callable[[], None]) -> None:
        copy_folder(request.out_dir, place, into, request.limits.out_bytes, moved)


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[test_disk.Rig]:
    """A rig whose home has 64 MiB, of which 8 are the floor, and two volumes of 64 MiB each beside it."""
    # As often for the time in which this disk fills as every quarter of a second for a real one.
    monkeypatch.setattr("worker.attempt.underway.GUARD_SECONDS", 0.01)
    monkeypatch.setattr("worker.runtimes.base.TMP_BYTES", 0)
    with ExitStack() as stack:
        home = stack.enter_context(small_disk(tmp_path / "home", 64 * MIB))
        volumes = [stack.enter_context(small_disk(tmp_path / "volumes" / str(at), 64 * MIB)) for at in range(2)]
        rig = test_disk.Rig(tmp_path, home, tuple(volumes), reserve=32 * MIB)
        stack.callback(rig.executor.close)
        yield rig


def test_guard__checkpoint_of_a_sparse_file__stops_no_other_attempt(
    disk: test_disk.Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file of holes takes nothing of its volume; its copy fills the home, where the guard blames who fetches."""
    going, over, slow = threading.Event(), threading.Event(), threading.Event()

    def program(out: Path) -> None:
        (out / "state").mkdir()
        with open(out / "state" / "holes", "wb") as file:
            file.truncate(58 * MIB)
        going.set()
        over.wait(30)

    disk.runtime = Publishing(program)
    disk.means.runtimes = {"wasm": disk.runtime}  # type: ignore[dict-item]
    assert Disk(disk.home, 0).spare.hold()
    cap = 60 * MIB
    values: dict[str, Any] = {
        "outputs": (ResolvedOutput(path="/out", required=True, max_size=cap),),
        "resources": build.spec().resources.model_copy(update={"disk_gib": 128}),
        "runtime_seconds": 60,
    }
    attack = disk.spec("env", checkpoint=ResolvedCheckpoint(every=1, path=PLACE), **values)
    data = disk.store.add_bytes(b"the victim's input\n")
    honest = disk.spec("env", inputs=(ResolvedInput(cid=str(data.cid), dst="/in/data.txt", size=data.size),), **values)
    get = disk.store.get_block

    def slowly(cid: Any, *args: Any) -> bytes:
        if cid == data.cid:
            slow.wait(30)
        return get(cid, *args)

    monkeypatch.setattr(disk.store, "get_block", slowly)
    disk.executor.start(Task(KEY, disk.terms(attack, billing=Billing.METERED, checkpoint_every=1), 90, 1.0))
    assert going.wait(20)
    disk.executor.start(Task(VICTIM, disk.terms(honest), 90, 1.0))
    try:
        wait(lambda: disk.executor.starved > 0 or disk.executor.tally.failed >= 3, 30)
        print(f"stopped for room: {disk.executor.starved}, failed checkpoints: {disk.executor.tally.failed}")
    finally:
        slow.set()
        over.set()
    wait(lambda: not disk.executor.active())
    entry, attacker = disk.journal.entry(VICTIM), disk.journal.entry(KEY)
    assert entry is not None and attacker is not None
    print(f"victim: {entry.phase.name} ({entry.detail}); attacker: {attacker.phase.name} {attacker.outcome.name}")
    assert (attacker.phase, attacker.outcome) == (Phase.DONE, Outcome.OK)
    assert (entry.phase, entry.outcome) == (Phase.DONE, Outcome.OK)


# ---- resuming ----


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = Rig(tmp_path)
    yield made
    made.executor.close()


def test_gather__newest_state_is_nowhere__goes_on_from_the_one_before(rig: Rig, tmp_path: Path) -> None:
    """Attempt 1 left 50 minutes of work. Attempt 2 was a saboteur's: a second, a root of nothing, and it gave up."""
    terms = count(rig, 3, "1000", runtime_seconds=3_600)
    rig.executor.allow(replace(rig.bounds, pace=replace(rig.bounds.pace, window=1.0)), 3_600)
    good = Saved(1, NodeId(9), 3_000, state(rig, tmp_path, "2 00000000000000aa 1 2\n"))
    garbage = Saved(2, NodeId(8), 1, b"\xff" * 32)
    kept = {1: Kept(3_000, 10**15, NodeId(9)), 2: Kept(1, 10**15, NodeId(8))}
    third = LeaseKey(KEY.job, KEY.index, 3)
    worker = Worker.__new__(Worker)
    worker._executor = rig.executor
    worker._head = SimpleNamespace(hash=bytes(32))  # type: ignore[assignment]
    worker._market = SimpleNamespace(kept=lambda job, index, leases, attempt, block: kept[attempt])  # type: ignore[assignment]
    worker._watcher = SimpleNamespace(rows={KEY.job: SimpleNamespace(terms=terms, unheard={})})  # type: ignore[assignment]
    worker.told = SimpleNamespace(node=NodeId(8))  # type: ignore[assignment]
    learnt: list[NodeId] = []
    worker.manifests = SimpleNamespace(learn=learnt.append)  # type: ignore[assignment]
    worker.gather(third, 30, (garbage, good), 3_599)
    # Where another node's state may be had; one's own is in one's own store.
    assert learnt == [9]
    wait(lambda: any(one.stage is Stage.GATHERED for one in rig.executor.ahead()))
    [ahead] = rig.executor.ahead()
    assert ahead.resumes == 1


# ---- what is said ----


def test_start__copy_that_is_not_over_in_time__is_no_fault_of_the_worker(rig: Rig) -> None:
    class Endless(Publishing):
        def copy_out(self, request: RunRequest, place: str, into: Path, moved: Callable[[], None]) -> None:
            while True:
                moved()
                time.sleep(0.05)

    def program(out: Path) -> None:
        time.sleep(4)
        (out / "done").write_bytes(b"ok")

    rig.means.runtimes = {"wasm": Endless(program)}  # type: ignore[dict-item]
    terms = count(rig, 1, checkpoint=ResolvedCheckpoint(every=1, path=PLACE))
    with structlog.testing.capture_logs() as logs:
        rig.executor.start(Task(KEY, terms, 4, 1.0))
        wait(lambda: not rig.executor.active())
        wait(lambda: rig.executor.tally.failed > 0)
    said = [line["event"] for line in logs if line["log_level"] == "error"]
    print(said)
    assert said == []


def test_start__program_that_goes_back_to_an_earlier_state__store_keeps_what_the_chain_has(rig: Rig) -> None:
    """States a, b, a, c: the second a is an effect of its own, though it has the root of the first. Where it is refused
    all the same, the chain's last is b, and b is not let go when c is offered."""
    turn, over = threading.Event(), threading.Event()
    now = ["a"]

    def program(out: Path) -> None:
        (out / "state").mkdir()
        while not over.is_set():
            if turn.wait(0.05):
                (out / "state" / ".draft").write_text(now[0])
                (out / "state" / ".draft").rename(out / "state" / "it")
                turn.clear()

    rig.means.runtimes = {"wasm": Publishing(program)}  # type: ignore[dict-item]
    terms = count(rig, 1, checkpoint=ResolvedCheckpoint(every=1, path=PLACE))
    rig.executor.start(Task(KEY, terms, 120, 1.0))
    roots: list[bytes] = []
    keys: list[str] = []
    try:
        for place, name in enumerate(("a", "b", "a", "c")):
            now[0] = name
            turn.set()
            wait(lambda: not turn.is_set())
            roots.append(offered(rig))
            [execution] = rig.journal.executions()
            keys.append(Checkpoint(KEY, roots[-1], execution.offers).key())
            if name != "c":  # which is on its way
                rig.journal.take_back(KEY, taken=place < 2)
        wait(lambda: rig.executor.tally.stored == 4)
        time.sleep(0.5)
        assert roots[0] == roots[2] and len(set(keys)) == 4
        assert {cids.of_root(roots[1]), cids.of_root(roots[3])} <= set(rig.store.pins())
    finally:
        over.set()


def refuse(node: NodeId) -> None:
    """Say, as a chain that does not answer, nothing of where a node has gateways: a state may be had without that."""
    raise ChainError("no answer")


@pytest.mark.parametrize(("topped", "before", "paid"), [(0, 0, 600), (0, 500, 100), (900, 500, 1_000), (0, 9_000, 1)])
def test_start_attempt__program_that_goes_on_from_a_state__runs_for_what_it_leaves_and_no_longer(
    topped: int, before: int, paid: int
) -> None:
    """Profit: seconds that the chain pays for once are run once; what a node ran beyond them was a gift."""
    terms = build.terms(max_seconds=3_600, billing=Billing.METERED, checkpoint_every=60)
    began: list[Task] = []
    worker = Worker.__new__(Worker)
    worker._head = SimpleNamespace(hash=bytes(32))  # type: ignore[assignment]
    kept = {(KEY.job, 0, 1, 1): Kept(seconds=3_000, node=NodeId(9), before=before)}
    worker._market = SimpleNamespace(kept=lambda *asked: kept[asked[:4]])  # type: ignore[assignment]
    row = SimpleNamespace(terms=terms, policy=DEVNET.policy, in_vain=0, unheard={})
    worker._watcher = SimpleNamespace(rows={KEY.job: row})  # type: ignore[assignment]
    worker._outbox = SimpleNamespace(lead=SimpleNamespace(seconds=1.0))  # type: ignore[assignment]
    worker._executor = SimpleNamespace(start=began.append)  # type: ignore[assignment]
    worker.told = SimpleNamespace(node=NodeId(3))  # type: ignore[assignment]
    worker.manifests = SimpleNamespace(learn=refuse)  # type: ignore[assignment]
    state = Saved(1, NodeId(9), 3_000, bytes(32))
    worker.start_attempt(LeaseKey(KEY.job, 0, 2), 3_700, 1, 300, topped, state)
    worker.start_attempt(LeaseKey(KEY.job, 0, 2), 3_700, 1, 300, topped, None)
    resumed, anew = began
    assert (resumed.paid, resumed.states) == (paid, (state,)) and (anew.paid, anew.states) == (3_600 + topped, ())
