"""What a job cannot do to this disk: real attempts on small file systems, filled by the tricks that no list shows."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hearth.base.errors import StorageError
from hearth.base.files import delete_tree, free_bytes
from hearth.protocol.types import NodeId, Outcome
from hearth.spec.resolved import ResolvedOutput
from hearth.storage import cid as cids
from tests.kit import build
from tests.kit.disks import MIB, fill, small_disk
from tests.worker.attempt.jobs import KEY, Jobs
from tests.worker.attempt.test_executor import wait
from worker.attempt.attempt import Means
from worker.attempt.executor import Executor
from worker.attempt.folder import Folder, Folders, folders_in
from worker.attempt.task import Bounds, Task
from worker.decide import LeaseKey
from worker.disk import Disk
from worker.journal import AttemptJournal, AttemptRow, Moment, Phase
from worker.runtimes.base import LogSink, RunRequest, RunResult, RunStatus
from worker.runtimes.wasm import WasmRuntime

LABEL = f"disk-{os.getpid()}-3-"


class Scripted:
    """A runtime whose program is a function of this test; it ends when that does, or when it is cancelled."""

    name = "wasm"

    def __init__(self, program: Callable[[Path], None]) -> None:
        self.program = program
        self.volumes: list[Path | None] = []
        self.held: list[Any] = []

    def available(self) -> tuple[bool, str]:
        return True, "test"

    def prepare(self, target: str, until: float = 0, cancel: threading.Event | None = None) -> RunResult | None:
        return None

    def keeping(self, target: str) -> AbstractContextManager[None]:
        return nullcontext()

    def inspect(self, request: RunRequest, cancel: threading.Event) -> RunResult | None:
        return None

    def run(self, request: RunRequest, cancel: threading.Event, on_log: LogSink | None = None) -> RunResult:
        self.volumes.append(request.volume)
        try:
            self.program(request.out_dir)
            if self.held:
                cancel.wait(30)
        finally:
            # A killed process gives back what it holds.
            while self.held:
                self.held.pop().close()
        return RunResult(RunStatus.CANCELLED if cancel.is_set() else RunStatus.OK)

    def sweep(self, prefix: str = "") -> int:
        return 0


class Rig(Jobs):
    """An executor on a disk of its own, whose runtime does what the test says; the store is on another disk."""

    def __init__(self, tmp_path: Path, home: Path, volumes: tuple[Path, ...] = (), reserve: int = 0) -> None:
        super().__init__(tmp_path)
        self.home, self.volumes, self.reserve = home, volumes, reserve
        self.runtime = Scripted(lambda out: (out / "done").write_bytes(b"ok") and None)
        self.open()

    def open(self) -> None:
        disk = Disk(self.home, self.reserve)
        self.journal = AttemptJournal(self.home / "work.db", disk.spare)
        self.means = Means(
            journal=self.journal,
            store=self.store,
            folders=folders_in(self.home, self.volumes),
            runtimes={"wasm": self.runtime},
            node=NodeId(3),
            label=LABEL,
            tiers={},
            bounds=Bounds(),
            keep_seconds=3_600,
            stores_here=False,
        )
        self.executor = Executor(self.means, disk=disk)

    def task(
        self,
        seconds: float = 60,
        *,
        tries: int = 1,
        key: LeaseKey = KEY,
        cap: int = 1024,
        runtime: int = 20,
        command: tuple[str, ...] = ("env",),
    ) -> Task:
        spec = self.spec(
            *command,
            outputs=(ResolvedOutput(path="/out", required=True, max_size=cap),),
            resources=build.spec().resources.model_copy(update={"disk_gib": 128}),
            runtime_seconds=runtime,
        )
        return Task(key, self.terms(spec), seconds, 1.0, tries)

    def run(self, task: Task) -> AttemptRow:
        self.executor.start(task)
        wait(lambda: not self.executor.active())
        entry = self.journal.entry(task.key)
        assert entry is not None
        return entry

    def folder(self, key: LeaseKey = KEY) -> Folder:
        return Folder(self.home / "jobs" / str(key))


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Rig]]:
    """What makes a rig on a disk of 64 MiB, with volumes of 8 MiB each."""
    monkeypatch.setattr("worker.attempt.executor.RETRY_SECONDS", 0.05)
    with ExitStack() as stack:

        def make(volumes: int = 0, **changes: Any) -> Rig:
            home = stack.enter_context(small_disk(tmp_path / "home", 64 * MIB))
            disks = [
                stack.enter_context(small_disk(home / "volumes" / str(number), 8 * MIB)) for number in range(volumes)
            ]
            rig = Rig(tmp_path, home, tuple(disks), **changes)
            stack.callback(rig.executor.close)
            return rig

        yield make


# ---- volumes ----


def test_start__volume__is_what_out_lies_on_and_is_free_and_empty_afterwards(
    made: Callable[..., Rig], tmp_path: Path
) -> None:
    rig = made(1)
    entry = rig.run(rig.task())
    assert (entry.phase, entry.outcome, rig.runtime.volumes) == (Phase.DONE, Outcome.OK, [rig.volumes[0]])
    outputs = cids.parse(rig.store.get_json(entry.result)["outputs"]["cid"])
    rig.store.fetch(outputs, tmp_path / "got")
    assert (tmp_path / "got" / "done").read_bytes() == b"ok"
    assert rig.folder().volume is None and list(rig.volumes[0].iterdir()) == []
    # The next one gets it.
    assert rig.run(rig.task(key=LeaseKey(KEY.job, 1, 1))).outcome == Outcome.OK
    assert rig.runtime.volumes == [rig.volumes[0]] * 2


def test_start__two_attempts_at_once__never_share_a_volume(made: Callable[..., Rig]) -> None:
    rig = made(2)
    both = threading.Barrier(2, timeout=20)

    def program(out: Path) -> None:
        (out / "done").write_bytes(b"ok")
        both.wait()

    rig.runtime.program = program
    keys = [LeaseKey(KEY.job, index, 1) for index in range(2)]
    for key in keys:
        rig.executor.start(rig.task(key=key))
    wait(lambda: not rig.executor.active())
    assert sorted(map(str, rig.runtime.volumes)) == sorted(map(str, rig.volumes))


def test_start__no_volume_free__breaks_and_never_runs_beside_them(made: Callable[..., Rig]) -> None:
    rig = made(1)
    holder = rig.folder(LeaseKey(KEY.job, 7, 1))
    holder.renew()
    assert holder.put_outputs_on(rig.volumes[0])
    rig.executor.start(rig.task())
    wait(lambda: any("no volume is free" in work.phase for work in rig.executor.active()))
    rig.executor.active()[0].stop.set()
    wait(lambda: not rig.executor.active())
    assert rig.runtime.volumes == []


killed = pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")


@killed
@pytest.mark.parametrize(("moment", "kept"), [(Moment.STARTED, False), (Moment.RESULT, True)])
def test_recover__killed_with_a_volume__finds_it_again(made: Callable[..., Rig], moment: Moment, kept: bool) -> None:
    """A result that is not stored yet keeps its volume; what a run left half done gives it back."""
    rig = made(1)
    reach = rig.journal.reach

    def stop_after(key: LeaseKey, reached: Moment, note: str = "") -> None:
        reach(key, reached, note)
        if reached is moment:
            (rig.folder().outputs / "more").write_bytes(b"x") if not kept else None
            raise SystemExit

    rig.journal.reach = stop_after  # type: ignore[method-assign]
    task = rig.task()
    rig.executor.start(task)
    wait(lambda: not rig.executor.active())
    rig.open()
    rig.executor.recover()
    assert rig.folder().volume == (rig.volumes[0] if kept else None)
    assert [path.name for path in rig.volumes[0].iterdir()] == (["out"] if kept else [])
    entry = rig.run(rig.task(tries=2))
    assert (entry.phase, entry.outcome, len(rig.runtime.volumes)) == (Phase.DONE, Outcome.OK, 1)
    assert list(rig.volumes[0].iterdir()) == []


def test_start__volume_filled_to_the_last_byte__the_home_goes_on(made: Callable[..., Rig]) -> None:
    rig = made(1)
    rig.runtime.program = lambda out: fill(out / "ballast")
    free = free_bytes(rig.home)
    entry = rig.run(rig.task(cap=64 * MIB))
    assert (entry.phase, entry.outcome) == (Phase.DONE, Outcome.OK)
    assert free - free_bytes(rig.home) < MIB


@pytest.mark.parametrize(("cap", "phase"), [(MIB, Phase.DONE), (64 * MIB, Phase.BROKEN)])
def test_start__wasm_program_that_writes_too_much__is_ended_on_its_volume(
    made: Callable[..., Rig], tmp_path: Path, cap: int, phase: Phase
) -> None:
    """Past its cap it failed; past what the volume has, the machine did, since a result is the same on every machine.
    No such job is taken: `worker.build.config_of`."""
    rig = made(1)
    rig.means.runtimes = {"wasm": WasmRuntime(tmp_path)}
    free = free_bytes(rig.home)
    entry = rig.run(rig.task(cap=cap, command=("fill", "/out/x", str(32 * MIB))))
    assert (entry.phase, entry.outcome) == (phase, Outcome.EXIT if phase is Phase.DONE else Outcome.NONE)
    assert free - free_bytes(rig.home) < MIB
    assert rig.run(rig.task(key=LeaseKey(KEY.job, 1, 1))).outcome == Outcome.OK


# ---- a disk that is full ----


def unnamed(rig: Rig, out: Path) -> None:
    """Fill the disk by a file that is open and has no name."""
    fill(out / "ballast")
    rig.runtime.held.append(open(out / "ballast", "rb"))  # noqa: SIM115 - that it stays open is the attack
    (out / "ballast").unlink()


def test_guard__disk_filled_by_a_file_without_a_name__that_attempt_is_stopped_and_others_go_on(
    made: Callable[..., Rig],
) -> None:
    """What a cheat gains: nothing. The disk is full for as long as it takes to kill the program, the journals have
    room meanwhile, and the worker tries again, then gives the lease back without a slash."""
    rig = made(reserve=32 * MIB)
    assert Disk(rig.home, 0).spare.hold()
    rig.runtime.program = lambda out: unnamed(rig, out)
    entry = rig.run(rig.task())
    assert (entry.phase, entry.tries) == (Phase.BROKEN, 1)
    assert "disk was full" in entry.detail
    assert rig.executor.starved == 1
    assert free_bytes(rig.home) > 32 * MIB
    rig.runtime.program = lambda out: (out / "done").write_bytes(b"ok") and None
    assert rig.run(rig.task(tries=2)).outcome == Outcome.OK


def test_guard__disk_filled_from_outside__deletes_dead_data_and_leaves_alone_what_a_stop_would_not_help(
    made: Callable[..., Rig],
) -> None:
    rig = made(1, reserve=32 * MIB)
    going, over = threading.Event(), threading.Event()

    def program(out: Path) -> None:
        (out / "done").write_bytes(b"ok")
        going.set()
        over.wait(20)

    rig.runtime.program = program
    dead = rig.folder(LeaseKey(KEY.job, 7, 1))
    dead.renew()
    dead.inputs.mkdir()
    fill_some = 4 * MIB
    (dead.inputs / "old").write_bytes(b"x" * fill_some)
    rig.executor.start(rig.task())
    assert going.wait(20)
    fill(rig.home / "others")
    wait(lambda: not dead.inputs.exists())
    assert free_bytes(rig.home) >= fill_some
    # On a volume: its end would give nothing back, so it may go on, and its result is kept.
    time.sleep(0.6)
    assert rig.executor.starved == 0
    (rig.home / "others").unlink()
    over.set()
    wait(lambda: not rig.executor.active())
    entry = rig.journal.entry(KEY)
    assert entry is not None and (entry.phase, entry.outcome) == (Phase.DONE, Outcome.OK)


def test_start__no_room__waits_and_runs_when_there_is(made: Callable[..., Rig]) -> None:
    rig = made(reserve=32 * MIB)
    fill(rig.home / "others")
    Disk(rig.home, 0).spare.give_up()
    (rig.home / "others").unlink()
    (rig.home / "others").write_bytes(b"x" * (60 * MIB))
    rig.executor.start(rig.task())
    wait(lambda: [work.phase for work in rig.executor.active()] == ["waiting for room on the disk"])
    (rig.home / "others").unlink()
    wait(lambda: not rig.executor.active())
    entry = rig.journal.entry(KEY)
    assert entry is not None and (entry.phase, entry.outcome) == (Phase.DONE, Outcome.OK)


def test_start__no_room_until_it_is_too_late__is_declined_in_time(made: Callable[..., Rig]) -> None:
    """A lease that lay still would cost a tenth of its bond; a decline costs nothing."""
    rig = made(reserve=32 * MIB)
    (rig.home / "others").write_bytes(b"x" * (60 * MIB))
    task = replace(rig.task(seconds=6, runtime=2), margin=3.0)
    began = time.monotonic()
    entry = rig.run(task)
    assert time.monotonic() - began < 6
    assert (entry.phase, entry.outcome) == (Phase.REFUSED, Outcome.BAD_INPUT)
    assert "had no room for it in time" in entry.detail


def test_finish__journal_that_the_disk_refuses_for_a_while__is_written_when_it_can_be(made: Callable[..., Rig]) -> None:
    """An attempt whose end is not written would never end, and its lease would run out."""
    rig = made()
    finish, refusals = rig.journal.finish, [1, 1, 1]

    def refuse(*arguments: Any, **named: Any) -> None:
        if refusals:
            refusals.pop()
            raise StorageError("full", code="JOURNAL", retryable=True)
        finish(*arguments, **named)

    rig.journal.finish = refuse  # type: ignore[method-assign]
    entry = rig.run(rig.task())
    assert refusals == [] and (entry.phase, entry.outcome) == (Phase.DONE, Outcome.OK)


def test_start__journal_that_the_disk_refuses__leaves_no_attempt_behind(made: Callable[..., Rig]) -> None:
    rig = made()
    task = rig.task()
    fill(rig.home / "others")
    with pytest.raises(StorageError):
        for number in range(5_000):  # until the log's own room is used up
            rig.journal.start(LeaseKey(KEY.job, number, 9), 1)
    with pytest.raises(StorageError) as caught:
        rig.executor.start(task)
    assert caught.value.code == "JOURNAL" and rig.executor.active() == []
    (rig.home / "others").unlink()
    assert rig.run(task).outcome == Outcome.OK


# ---- holes ----


@pytest.mark.parametrize("told", ["nothing", "to stop"])
def test_start__outputs_of_holes__are_left_out_in_time_and_stop_is_heard(made: Callable[..., Rig], told: str) -> None:
    """What a cheat gains: nothing. 64 GiB of holes take a second to make and minutes to hash, past the lease's end, and
    a lease that is given back so late costs its node a part of the bond: the run is over, and is paid without them."""
    rig = made()

    def program(out: Path) -> None:
        with open(out / "holes", "wb") as file:
            file.truncate(64 << 30)

    rig.runtime.program = program
    task = replace(rig.task(seconds=6, cap=64 << 30, runtime=1), margin=3.0)
    began = time.monotonic()
    rig.executor.start(task)
    wait(lambda: [work.phase for work in rig.executor.active()] == ["hashing the outputs"])
    if told == "to stop":
        rig.executor.stop(KEY, "the lease is gone")
        wait(lambda: not rig.executor.active())
        entry = rig.journal.entry(KEY)
        assert entry is not None and entry.phase is Phase.ENDED
        return
    wait(lambda: not rig.executor.active())
    assert time.monotonic() - began < 6
    entry = rig.journal.entry(KEY)
    assert entry is not None and (entry.phase, entry.outcome) == (Phase.DONE, Outcome.EXIT)
    assert "too large to be hashed" in entry.detail
    result = rig.store.get_json(entry.result)
    assert (result["status"], result["outputs"]) == ("output_missing", None)


# ---- files, and trees of many levels ----


def test_disk__files_run_out_before_bytes__is_short_then_full_and_says_so(tmp_path: Path) -> None:
    with small_disk(tmp_path / "home", 64 * MIB, files=4_000) as home:
        disk = Disk(home, 4 * MIB)
        assert not disk.short and disk.has(MIB)
        for number in range(3_600):
            (home / str(number)).touch()
        assert disk.free > 60 * MIB
        assert disk.short and not disk.full and disk.has(MIB), "an eighth of the files are the reserve"
        for number in range(3_600, 3_900):
            (home / str(number)).touch()
        assert disk.full and not disk.has(1)
        assert disk.in_words().endswith("of the 4,000 files that this file system can hold are free")
        assert not Disk(home, 0).short, "a disk without a reserve is not looked at"


@pytest.fixture
def deep(tmp_path: Path) -> Iterator[Path]:
    """A place for a deep tree, which pytest itself could not delete."""
    yield tmp_path / "deep"
    delete_tree(tmp_path / "deep")


def deep_tree(root: Path, levels: int = 3_000) -> None:
    """Make folders in folders, deeper than Python recurses and than any path can name."""
    root.mkdir(parents=True)
    here = os.open(root, os.O_DIRECTORY)
    for _ in range(levels):
        os.mkdir("d", dir_fd=here)
        inner = os.open("d", os.O_DIRECTORY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)


def test_sweep__tmp_of_thousands_of_levels__is_deleted_and_ends_nothing(deep: Path) -> None:
    left = deep / "hearth-wasm-31337-job"
    deep_tree(left)
    WasmRuntime(deep).sweep("31337-")
    assert not left.exists()


def test_taken__tree_of_thousands_of_levels__is_counted_as_far_as_it_can_be_named(deep: Path) -> None:
    deep_tree(deep / "out")
    (deep / "out" / "file").write_bytes(bytes(MIB))
    assert Folder(deep).taken >= MIB


def test_guard__fault_of_its_own__is_logged_and_it_looks_again(
    made: Callable[..., Rig], monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = made(reserve=32 * MIB)
    looks: list[int] = []

    def fault(folders: Folders, busy: object = ()) -> list[str]:
        looks.append(1)
        raise RuntimeError("a fault of the worker")

    monkeypatch.setattr(Folders, "free_dead", fault)

    def program(out: Path) -> None:
        fill(out / "filler")
        wait(lambda: len(looks) > 2)
        (out / "filler").unlink()

    rig.runtime.program = program
    rig.run(rig.task(cap=1 << 30))
    assert len(looks) > 2


def test_start__machine_that_gives_no_thread__is_a_broken_attempt_and_the_next_one_runs(
    made: Callable[..., Rig], monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = made()
    start = threading.Thread.start

    def refused(thread: threading.Thread) -> None:
        if thread.name.startswith("attempt"):
            raise RuntimeError("can't start new thread")
        start(thread)

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refused)
        assert rig.run(rig.task()).phase is Phase.BROKEN
    assert rig.run(rig.task(tries=2)).phase is Phase.DONE
