"""What a job cannot do to this disk: real attempts on small file systems, filled by the tricks that no list shows."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hearth.base.errors import StorageError
from hearth.base.files import delete_tree, free_bytes
from hearth.jobfile.resolved import ResolvedOutput
from hearth.protocol.types import NodeId, Outcome
from hearth.storage import cid as cids
from tests.kit import build
from tests.kit.disks import MIB, fill, small_disk
from tests.worker.attempt.jobs import KEY, Jobs, label
from tests.worker.attempt.test_executor import wait
from worker.attempt.attempt import Means
from worker.attempt.executor import Executor
from worker.attempt.folder import Folder, Folders, folders_in
from worker.attempt.task import Bounds, Task
from worker.attempt.underway import LOOK_SECONDS, Underway
from worker.decide import MAX_TRIES, LeaseKey
from worker.disk import Disk
from worker.journal import AttemptJournal, AttemptRow, Moment, Phase
from worker.runtimes import docker_janitor
from worker.runtimes.base import LogSink, Room, RunRequest, RunResult, RunStatus
from worker.runtimes.wasm import WasmRuntime


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
            label=label(),
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
    monkeypatch.setattr("worker.runtimes.base.TMP_BYTES", 0)  # what a module's /tmp may hold is more than these disks
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
    """The journals have room while the disk is full. This runtime does not look at what its program takes, so the one
    that takes the most is stopped, and tried again; a container's is looked at, and ends as over its cap."""
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


class Telling(Scripted):
    """A runtime whose programs are told what their run takes of the disk, by the index of their unit."""

    def __init__(self, programs: dict[int, Callable[[Path, Room], RunStatus]]) -> None:
        super().__init__(lambda out: None)
        self.programs = programs

    def run(self, request: RunRequest, cancel: threading.Event, on_log: LogSink | None = None) -> RunResult:
        status = self.programs[request.index](request.out_dir, request.room)
        return RunResult(RunStatus.CANCELLED if cancel.is_set() else status)


def test_guard__one_run_takes_more_than_its_job_names__it_alone_goes_and_the_one_with_more_by_name_stays(
    made: Callable[..., Rig],
) -> None:
    """What a cheat gains: nothing. What has no name was seen by nobody once, and the honest attempt was stopped."""
    rig = made(reserve=32 * MIB)
    going, over = threading.Event(), threading.Event()

    relieve, count = rig.executor._underway._relieve, [0]

    def counted() -> None:
        relieve()
        count[0] += 1

    rig.executor._underway._relieve = counted  # type: ignore[method-assign]

    def honest(out: Path, room: Room) -> RunStatus:
        room.watched = room.seen = True
        (out / "result").write_bytes(bytes(16 * MIB))
        going.set()
        assert over.wait(20)
        return RunStatus.OK

    def greedy(out: Path, room: Room) -> RunStatus:
        room.watched = True
        with open(out / "ballast", "wb") as file:
            os.unlink(out / "ballast")
            file.write(bytes(40 * MIB))
            wait(lambda: room.tight, 20)
            looks = count[0]
            wait(lambda: count[0] > looks + 2, 20)  # the guard has had time to choose
            room.over = True
        return RunStatus.OUTPUT_OVER_CAP

    rig.means.runtimes = {"wasm": Telling({0: honest, 1: greedy})}
    other = LeaseKey(KEY.job, 1, 1)
    rig.executor.start(rig.task(cap=20 * MIB))
    assert going.wait(20)
    rig.executor.start(rig.task(key=other))
    wait(lambda: len(rig.executor.active()) == 1)
    over.set()
    wait(lambda: not rig.executor.active())
    ends = [rig.journal.entry(key) for key in (KEY, other)]
    assert [(entry.phase, entry.outcome) for entry in ends if entry] == [
        (Phase.DONE, Outcome.OK),
        (Phase.DONE, Outcome.EXIT),
    ]
    assert rig.executor.starved == 0


def test_start__room_that_another_attempt_may_still_take__waits_until_that_has_ended(made: Callable[..., Rig]) -> None:
    """What a job names is there for it: two that were begun on the same room would leave one of them without."""
    rig = made(reserve=8 * MIB)
    going, over = threading.Event(), threading.Event()

    def program(out: Path) -> None:
        (out / "done").write_bytes(b"ok")
        going.set()
        assert over.wait(20)

    rig.runtime.program = program
    other = LeaseKey(KEY.job, 1, 1)
    rig.executor.start(rig.task(cap=40 * MIB))
    assert going.wait(20)
    assert Disk(rig.home, rig.reserve).has(40 * MIB)
    assert 0 < rig.executor.unpromised() < 30 * MIB  # and no unit is taken for what it has claimed
    rig.executor.start(rig.task(key=other, cap=40 * MIB))
    wait(lambda: [one.phase for one in rig.executor.active() if one.key == other] == ["waiting for room on the disk"])
    # And what nobody may have beyond what his job names is looked for meanwhile.
    wait(lambda: [one.room.tight for one in rig.executor.active() if one.key == KEY] == [True])
    assert rig.executor.unpromised() < 0  # nor for what the other waits for
    over.set()
    wait(lambda: not rig.executor.active())
    for key in (KEY, other):
        entry = rig.journal.entry(key)
        assert entry is not None and (entry.phase, entry.outcome) == (Phase.DONE, Outcome.OK), entry


def test_start__result_that_the_store_here_has_no_room_for__others_keep_to_what_they_named_meanwhile(
    made: Callable[..., Rig],
) -> None:
    """What others were promised does not hold up a result; what they have beyond that does, and is looked for."""
    rig = made(reserve=8 * MIB)
    rig.means.stores_here = True
    going, over = threading.Event(), threading.Event()

    def done(out: Path, room: Room) -> RunStatus:
        (out / "done").write_bytes(bytes(16 * MIB))
        (rig.home / "others").write_bytes(bytes(34 * MIB))
        return RunStatus.OK

    def goes_on(out: Path, room: Room) -> RunStatus:
        going.set()
        assert over.wait(60)
        return RunStatus.OK

    rig.means.runtimes = {"wasm": Telling({0: done, 1: goes_on})}
    other = LeaseKey(KEY.job, 1, 1)
    rig.executor.start(rig.task(key=other, cap=20 * MIB))
    assert going.wait(20)
    rig.executor.start(rig.task(cap=17 * MIB))
    wait(lambda: [one.room.tight for one in rig.executor.active() if one.key == other] == [True])
    assert [one.phase for one in rig.executor.active() if one.key == KEY] == ["waiting for room on the disk"]
    (rig.home / "others").write_bytes(bytes(20 * MIB))
    wait(lambda: KEY not in [one.key for one in rig.executor.active()])
    assert [one.key for one in rig.executor.active()] == [other]
    over.set()
    wait(lambda: not rig.executor.active())
    entry = rig.journal.entry(KEY)
    assert entry is not None and (entry.phase, entry.outcome) == (Phase.DONE, Outcome.OK), entry


def test_start__program_fails_while_the_disk_was_full__is_tried_again_and_then_believed(
    made: Callable[..., Rig],
) -> None:
    """A disk that another fills for a moment is no result of this job's; and who fills it and fails costs no stake."""
    rig = made(reserve=32 * MIB)

    def fails(out: Path, room: Room) -> RunStatus:
        room.watched = True
        fill(rig.home / "others")
        wait(lambda: room.tight, 20)
        (rig.home / "others").unlink()
        return RunStatus.EXIT

    rig.means.runtimes = {"wasm": Telling({0: fails})}
    entry = rig.run(rig.task())
    assert (entry.phase, entry.detail) == (Phase.BROKEN, "it failed while this machine's disk was full")
    entry = rig.run(rig.task(tries=MAX_TRIES))
    assert (entry.phase, entry.outcome) == (Phase.DONE, Outcome.EXIT)
    # A second run would not be over in time.
    entry = rig.run(rig.task(seconds=20, key=LeaseKey(KEY.job, 0, 2)))
    assert (entry.phase, entry.outcome) == (Phase.DONE, Outcome.EXIT)


def test_lacked_room__another_run_was_over_its_cap__until_its_own_end(tmp_path: Path) -> None:
    """The disk may have been full for less than the guard sleeps: that another took too much is told later."""
    underway = Underway(folders_in(tmp_path), Disk(tmp_path, 0))
    honest, greedy = underway.enter(KEY), underway.enter(LeaseKey(KEY.job, 1, 1))
    assert honest is not None and greedy is not None
    honest.takes_room = True
    assert not underway.lacked_room(honest)
    greedy.room.over = True
    assert underway.lacked_room(honest) and not underway.lacked_room(greedy)
    underway.leave(greedy.key)
    assert underway.lacked_room(honest)
    underway.leave(KEY)


def test_await_claim__two_that_are_tried_again__begin_apart_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stranger that took all room between two looks failed each try of an honest attempt beside its own."""
    underway, until = Underway(folders_in(tmp_path), Disk(tmp_path, 0)), time.monotonic() + 3_600
    stranger, honest, fresh = (underway.enter(LeaseKey(KEY.job, index, 1)) for index in range(3))
    assert stranger is not None and honest is not None and fresh is not None
    monkeypatch.setattr("worker.attempt.underway.RETRY_SECONDS", 0.01)
    underway.await_claim(MIB, until, stranger, again=True)
    underway.await_claim(MIB, until, fresh)
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(underway.await_claim, MIB, until, honest, again=True)
        while not honest.waits:
            assert not waiting.done()
        assert honest.claim == 0
        stranger.claim = 0  # its run has ended
        waiting.result(10)
    monkeypatch.setattr("worker.attempt.underway.APART_SECONDS", 0.0)
    underway.await_claim(MIB, until, stranger, again=True)
    assert honest.claim == stranger.claim == MIB
    for work in (stranger, honest, fresh):
        underway.leave(work.key)


@pytest.mark.parametrize("waited", [False, True], ids=["before its time", "after it"])
def test_relieve__one_that_nobody_could_look_at__goes_and_never_the_one_that_was_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, waited: bool
) -> None:
    """The guard of the disk stopped the honest one for what a stranger's mappings hid: it had more by name."""
    underway = Underway(folders_in(tmp_path), Disk(tmp_path, 0))
    honest, stranger = underway.enter(KEY), underway.enter(LeaseKey(KEY.job, 1, 1))
    assert honest is not None and stranger is not None
    for work in (honest, stranger):
        work.takes_room = work.room.watched = True
    honest.room.seen, honest.room.taken = True, 40 * MIB
    monkeypatch.setattr("worker.attempt.underway.LOOK_SECONDS", 0.0 if waited else 3_600.0)
    underway._relieve()
    assert [honest.stop.is_set(), stranger.stop.is_set()] == [False, waited]
    # Its own runtime ends it before that, as over its cap, and not as a failure of this machine.
    assert LOOK_SECONDS > docker_janitor.LOOK_SECONDS
    for work in (honest, stranger):
        underway.leave(work.key)


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
    rig = made(1)  # no home of these tests has room for what the job may leave

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
    left = deep / f"hearth-wasm-{label()}job"
    deep_tree(left)
    WasmRuntime(deep).sweep(label())
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
    rig.run(rig.task())
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
