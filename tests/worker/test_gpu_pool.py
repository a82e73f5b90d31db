"""The GPUs of a worker: lent, given back, lost and found again, in random histories and one by one."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hearth.protocol.gpu_tiers import NVIDIA
from tests.kit.evm import ROOT
from tests.kit.running import wait
from worker.gpu import pool as subject
from worker.gpu.locks import Locks
from worker.gpu.nvidia import device_of
from worker.gpu.pool import LENT_SECONDS, MAX_PAUSE_SECONDS, PAUSE_SECONDS, Lent, NoGpuError, Pool
from worker.gpu.port import Device, Fault, GpuInfo, GpuProbe

UUIDS = tuple(f"GPU-0000000{number}-1111-2222-3333-444444444444" for number in range(4))
GIB = 1 << 30


def gpu(number: int) -> GpuInfo:
    """Return an RTX 4090 of this machine, which is well."""
    values = ("RTX 4090", device_of(UUIDS[number]), NVIDIA, 24 * GIB, 24, 472, (8, 9), "570.1")
    return GpuInfo(number, *values, processes=(), defects=(), used_bytes=GIB, cuda="12.8")


@dataclass
class World:
    """A machine with GPUs, as its driver and its engine see it."""

    gpus: dict[int, GpuInfo] = field(default_factory=lambda: {number: gpu(number) for number in range(3)})
    driver: bool = True
    given: bool = True
    second: float = 0.0
    looks: int = 0
    trials: list[str] = field(default_factory=list)

    def probe(self) -> GpuProbe:
        self.looks += 1
        if not self.driver:
            return GpuProbe((), reason="the driver does not answer", answers=False)
        return GpuProbe(tuple(self.gpus[number] for number in sorted(self.gpus)), "570.1")

    def trial(self, gpu: Device) -> str:
        uuid = gpu.uuid
        self.trials.append(uuid)
        return "" if self.given else "no device of it"

    def change(self, number: int, **changes: object) -> None:
        self.gpus[number] = replace(gpu(number), **changes)

    def works(self, uuid: str) -> bool:
        one = next((one for one in self.gpus.values() if one.uuid == uuid), None)
        return self.driver and one is not None and not one.problems


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def pool(world: World, tmp_path: Path) -> Pool:
    return pool_of(world, tmp_path)


def pool_of(world: World, locks: Path) -> Pool:
    made = Pool(world.probe, trial=world.trial, locks=Locks(locks), clock=lambda: world.second)
    made.look()
    return made


def states(pool: Pool) -> list[str]:
    return [one.state for one in pool.states()]


def test_lent__two_attempts__never_the_same_gpu_and_given_back_by_a_block_that_fails(pool: Pool) -> None:
    with pool.lent(2) as first:
        assert first.uuids == UUIDS[:2] and states(pool) == ["lent", "lent", "free"]
        with pytest.raises(ZeroDivisionError), pool.lent(1) as second:
            assert second.uuids == UUIDS[2:3]
            with pytest.raises(NoGpuError, match="1 GPUs are asked, and 0 can be given"), pool.lent(1):
                pass
            raise ZeroDivisionError
        assert states(pool) == ["lent", "lent", "free"]
    assert states(pool) == ["free"] * 3


def test_lent__no_gpu_asked__nobody_is_looked_at(world: World, pool: Pool) -> None:
    looks = world.looks
    with pool.lent(0) as lent:
        assert (lent.uuids, lent.trouble, lent.look(), lent.facts()) == ((), "", "", [])
    pool.check(0)
    assert world.looks == looks


@pytest.mark.parametrize(
    ("changes", "fault", "said"),
    [
        ({"defects": ("a memory row waits",)}, Fault.SICK, "a memory row waits"),
        ({"processes": ((7, None),)}, Fault.BUSY, "process 7 uses it"),
    ],
)
def test_look__gpu_that_is_unfit__given_to_nobody_until_it_is_well(
    world: World, pool: Pool, changes: dict[str, object], fault: Fault, said: str
) -> None:
    changed: list[str] = []
    pool.on_change = lambda: changed.append("changed")
    world.change(0, **changes)
    with pool.lent(1) as lent:
        assert lent.uuids == UUIDS[1:2] and pool.slots(1) == 2 and pool.slots(2) == 1
    trouble = pool.trouble
    assert trouble is not None and trouble.fault is fault and said in trouble.why and UUIDS[0] in trouble.why
    world.change(0)
    pool.look()
    assert (pool.trouble, states(pool), len(changed)) == (None, ["free"] * 3, 2)


def test_look__gpu_gone_and_driver_gone__every_gpu_that_was_known_is_told_of(world: World, pool: Pool) -> None:
    del world.gpus[1]
    pool.look()
    assert states(pool) == ["free", "gpu_lost", "free"]
    world.driver = False
    pool.look()
    assert states(pool) == ["gpu_driver"] * 3 and pool.slots(1) == 0
    assert pool.trouble is not None and pool.trouble.fault is Fault.DRIVER
    world.driver = True
    world.change(1)
    pool.look()
    assert states(pool) == ["free"] * 3


def test_pool__driver_down_at_the_start__no_slot_and_all_of_them_once_it_answers(tmp_path: Path) -> None:
    world = World(driver=False)
    pool = pool_of(world, tmp_path)
    assert (pool.slots(1), [one.uuid for one in pool.states()]) == (0, [""])
    world.driver = True
    pool.look()
    assert (pool.slots(1), states(pool)) == (3, ["free"] * 3)


def test_pool__named_gpu_that_is_not_there__is_lost_and_no_other_is_offered(tmp_path: Path) -> None:
    world = World()
    pool = Pool(world.probe, offered=lambda one: "" if one.uuid == UUIDS[0] else None, named=(UUIDS[0], UUIDS[3]))
    pool.look()
    assert [(one.uuid, one.state) for one in pool.states()] == [(UUIDS[0], "free"), (UUIDS[3], "gpu_lost")]
    assert pool.slots(1) == 1


def test_lent__gpu_that_fails_meanwhile__counts_once_another_look_sees_it_later_and_then_for_good(
    world: World, pool: Pool
) -> None:
    with pool.lent(2) as lent:
        world.change(0, processes=((7, None),), used_bytes=5 * GIB)  # the job's own process
        pool.look()
        gone = world.gpus.pop(1)
        pool.look()
        pool.look()
        assert lent.trouble == "" and states(pool) == ["lent", "free"]
        world.gpus[1] = gone  # the driver was slow once
        pool.look()
        world.second += LENT_SECONDS
        del world.gpus[1]
        pool.look()
        assert lent.trouble == ""
        world.second += LENT_SECONDS
        pool.look()
        assert UUIDS[1] in lent.trouble and pool.slots(1) == 2
        world.gpus[1] = gone
        pool.look()
        # It has failed the run, also where it is well again.
        assert UUIDS[1] in lent.look() and pool.trouble is None
        facts = lent.facts()
    assert [one["uuid"] for one in facts] == list(UUIDS[:2])
    assert [one["peak_memory"] for one in facts] == [5 * GIB, GIB] and facts[0]["cuda"] == "12.8"


def test_look__after_an_end_that_is_not_ok__one_look_is_enough(world: World, pool: Pool) -> None:
    with pool.lent(1) as lent:
        del world.gpus[0]
        assert UUIDS[0] in lent.look()
    with pool.lent(1) as lent:
        assert lent.look() == "" and lent.uuids == UUIDS[1:2]


def test_look__machine_that_can_start_no_process__says_nothing_of_any_gpu(world: World, pool: Pool) -> None:
    with pool.lent(1) as lent:
        pool._probe = lambda: GpuProbe((), reason="no process", answers=False, asked=False)
        for _ in range(3):
            pool.look()
            world.second += LENT_SECONDS
        assert (lent.look(), states(pool)) == ("", ["lent", "free", "free"])


def test_look__lent_gpu_of_less_memory_than_promised__is_its_jobs_and_sick_once_it_is_free(tmp_path: Path) -> None:
    world = World()
    pool = Pool(world.probe, offered=lambda one: "" if one.vram_gib == 24 else "it has 20 GiB: hearth worker update")
    pool.look()
    with pool.lent(1) as lent:
        world.change(0, vram_gib=20)
        for _ in range(3):
            pool.look()
            world.second += LENT_SECONDS
        assert lent.look() == ""
    pool.look()
    trouble = pool.trouble
    assert trouble is not None and (trouble.fault, "hearth worker update" in trouble.why) == (Fault.SICK, True)


def test_look__process_of_a_job_that_ended_since_the_look_began__is_nobodys(world: World, pool: Pool) -> None:
    with ExitStack() as stack:
        stack.enter_context(pool.lent(1))
        world.change(0, processes=((7, None),))
        plain = world.probe

        def probe() -> GpuProbe:
            found = plain()
            stack.close()
            return found

        pool._probe = probe
        pool.look()
        assert states(pool) == ["free"] * 3
    pool._probe = plain
    pool.look()
    assert states(pool) == ["gpu_busy", "free", "free"]


def test_look__several_that_wait__share_what_began_after_they_asked(world: World, pool: Pool) -> None:
    plain, looks, began = world.probe, world.looks, threading.Barrier(2)

    def slow() -> GpuProbe:
        began.wait(10)
        time.sleep(0.5)
        return plain()

    pool._probe = slow
    with ThreadPoolExecutor() as threads:
        first = threads.submit(pool.look)
        began.wait(10)
        pool._probe = plain
        others = [threads.submit(pool.look) for _ in range(6)]
        assert [one.result(30) for one in (first, *others)] == [{}] * 7
    assert world.looks - looks in (2, 3)


def test_refuse__gpu_that_no_sandbox_got__rests_longer_each_time_and_comes_back_by_a_trial(
    world: World, pool: Pool
) -> None:
    world.given = False
    with pool.lent(1) as lent:
        lent.refuse("unresolvable CDI device")
    assert states(pool) == ["gpu_engine", "free", "free"]
    pool.look()
    assert pool.trouble is not None and "unresolvable CDI device" in pool.trouble.why
    pause = PAUSE_SECONDS
    for _ in range(9):
        pool.try_again()
        assert world.trials == []
        world.second += pause
        pool.try_again()
        assert world.trials == [UUIDS[0]] and pool.trouble is not None and "no device of it" in pool.trouble.why
        world.trials.clear()
        pause = min(MAX_PAUSE_SECONDS, 2 * pause)
    world.given = True
    world.second += pause
    pool.try_again()
    assert states(pool) == ["free"] * 3


def test_lent__two_workers_of_one_machine__never_the_same_gpu_and_a_killed_one_holds_none(
    world: World, pool: Pool, tmp_path: Path
) -> None:
    other = pool_of(world, tmp_path)
    with pool.lent(2) as first:
        other.look()
        assert states(other) == ["gpu_busy", "gpu_busy", "free"]
        with other.lent(1) as second:
            assert not set(first.uuids) & set(second.uuids)
    program = (
        "import sys, time; from pathlib import Path; from worker.gpu.locks import Locks\n"
        "locks = Locks(Path(sys.argv[1])); assert all(map(locks.take, sys.argv[2:])); print('held', flush=True)\n"
        "time.sleep(600)"
    )
    command = [sys.executable, "-c", program, str(tmp_path), *UUIDS[:2]]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as killed:
        assert killed.stdout is not None and killed.stdout.readline() == "held\n"
        pool.look()
        assert states(pool) == ["gpu_busy", "gpu_busy", "free"]
        killed.kill()
    pool.look()
    assert states(pool) == ["free"] * 3


def test_locks__what_a_stranger_of_this_machine_put_there__neither_waited_for_nor_followed(tmp_path: Path) -> None:
    locks = Locks(tmp_path)
    files = [tmp_path / f"hearth-{uuid}.lock" for uuid in UUIDS]
    files[0].touch(mode=0o444)
    files[1].symlink_to(tmp_path / "elsewhere")
    os.mkfifo(files[2])
    assert all(map(locks.take, UUIDS)) and not (tmp_path / "elsewhere").exists()
    assert not Locks(tmp_path).take(UUIDS[0]) and not Locks(tmp_path).take(UUIDS[3])
    for uuid in UUIDS:
        locks.release(uuid)
    assert all(map(Locks(tmp_path).take, UUIDS))


def test_locks__file_system_without_locks__is_no_reason_to_keep_a_gpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("worker.gpu.locks.flock", refused)
    before, locks = len(os.listdir("/proc/self/fd")), Locks(tmp_path)
    assert locks.take(UUIDS[0]) and locks.take(UUIDS[0])
    locks.release(UUIDS[0])
    assert len(os.listdir("/proc/self/fd")) == before


def test_keep_looking__trial_that_takes_long__runs_are_looked_at_meanwhile(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subject, "LENT_SECONDS", 0.02)
    ended, stop = threading.Event(), threading.Event()

    def trial(gpu: Device) -> str:
        ended.wait(30)
        return ""

    pool = Pool(world.probe, trial=trial, clock=lambda: world.second)
    pool.look()
    pool.refuse(UUIDS[:1], "no device of it")
    world.second += PAUSE_SECONDS
    thread = threading.Thread(target=pool.keep_looking, args=(stop,))
    thread.start()
    try:
        looks = world.looks
        wait(lambda: world.looks > looks + 5, "it is looked at", 30)
        ended.set()
        wait(lambda: states(pool) == ["free"] * 3, "the trial clears it", 30)
    finally:
        ended.set()
        stop.set()
        thread.join(30)


def test_keep_looking__job_that_begins_in_an_idle_minute__is_looked_at_from_then_on(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subject, "LENT_SECONDS", 0.02)
    pool, stop = pool_of(world, tmp_path), threading.Event()
    thread = threading.Thread(target=pool.keep_looking, args=(stop,))
    thread.start()
    try:
        time.sleep(0.2)
        assert world.looks == 1
        with pool.lent(1) as lent:
            world.change(0, defects=("it fell off the bus",))
            world.second += subject.IDLE_SECONDS / 2
            wait(lambda: world.looks > 4, "it is looked at", 30)
            world.second += 1.0
            wait(lambda: lent.trouble != "", "the fault ends the run", 30)
    finally:
        stop.set()
        thread.join(30)


def test_lent__gpu_that_somebody_has_for_a_moment__is_waited_for(world: World, tmp_path: Path) -> None:
    pool = Pool(world.probe, locks=Locks(tmp_path), patience=20.0)
    other = Locks(tmp_path)
    assert all(other.take(uuid) for uuid in UUIDS[:3])
    threading.Timer(0.5, lambda: [other.release(uuid) for uuid in UUIDS[:3]]).start()
    with pool.lent(1) as lent:
        assert lent.uuids == UUIDS[:1]


# ---- random histories ----

NUMBERS = st.integers(0, 3)
STEPS = st.one_of(
    st.tuples(st.just("change"), NUMBERS, st.sampled_from([{}, {"defects": ("MIG",)}, {"processes": ((7, None),)}])),
    st.tuples(st.just("lose"), NUMBERS),
    st.tuples(st.just("driver"), st.booleans()),
    st.tuples(st.just("engine"), st.booleans()),
    st.tuples(st.just("begin"), st.integers(1, 3)),
    st.tuples(st.just("end"), st.integers(0, 5), st.booleans()),
    st.tuples(st.just("look")),
    st.tuples(st.just("wait"), st.sampled_from([1.0, 61.0, 4000.0])),
)


@contextmanager
def lending(pool: Pool, count: int) -> Iterator[Lent | None]:
    """Lend for a block, None where that is refused."""
    with ExitStack() as stack:
        try:
            lent = stack.enter_context(pool.lent(count))
        except NoGpuError:
            lent = None
        yield lent


@pytest.mark.hypothesis
def test_pool__random_histories__no_gpu_twice_none_that_does_not_work_and_none_lost_for_good(tmp_path: Path) -> None:
    @settings(max_examples=1000, deadline=None)
    @given(st.lists(STEPS, max_size=30))
    def play(steps: list[tuple[object, ...]]) -> None:
        world = World()
        pool = pool_of(world, tmp_path)
        held: list[tuple[ExitStack, Lent]] = []
        try:
            for step in steps:
                take(world, pool, held, step)
                lent = [uuid for _, one in held for uuid in one.uuids]
                assert len(lent) == len(set(lent))
                assert {one.uuid for one in pool.states() if one.state == "lent"} <= set(lent)
            # All is well again: every GPU that is here can be lent.
            for stack, _ in held:
                stack.close()
            held.clear()
            world.driver = world.given = True
            for number in range(4):
                world.change(number)
            world.second += 2 * MAX_PAUSE_SECONDS
            pool.look()
            pool.try_again()
            with pool.lent(4) as everything:
                assert everything.uuids == UUIDS
        finally:
            for stack, _ in held:
                stack.close()

    play()


def take(world: World, pool: Pool, held: list[tuple[ExitStack, Lent]], step: tuple[object, ...]) -> None:
    """Do one step of a history."""
    match step:
        case ("change", int(number), dict(changes)):
            world.change(number, **changes)
        case ("lose", int(number)):
            world.gpus.pop(number, None)
        case ("driver", bool(answers)):
            world.driver = answers
        case ("engine", bool(gives)):
            world.given = gives
        case ("begin", int(count)):
            stack = ExitStack()
            lent = stack.enter_context(lending(pool, count))
            if lent is None:
                stack.close()
                return
            assert len(lent.uuids) == count and all(world.works(uuid) for uuid in lent.uuids)
            held.append((stack, lent))
            if not world.given:
                lent.refuse("no device of it")
        case ("end", int(place), bool(looks)) if held:
            stack, lent = held.pop(place % len(held))
            broken = [uuid for uuid in lent.uuids if uuid not in {one.uuid for one in world.gpus.values()}]
            if looks and (broken or not world.driver):
                assert lent.look()
            world.second += LENT_SECONDS
            stack.close()
        case ("look",):
            pool.look()
            fit = sum(one.state in ("free", "lent") for one in pool.states())
            assert pool.slots(1) == fit
            world.second += 1
        case ("wait", float(seconds)):
            world.second += seconds
            pool.try_again()


def test_lent__one_tier_alone__no_other_gpu_is_given(world: World, pool: Pool) -> None:
    better = replace(gpu(0), tier=637)
    world.gpus[0] = better
    pool.look()
    assert pool.tiers == {472, 637}
    with pool.lent(1, 472) as lent:
        assert lent.gpus[0].tier == 472
    pool.check(1, 637)
    for call in (lambda: pool.check(2, 637), lambda: pool.lent(2, 637).__enter__(), lambda: pool.check(1, 5)):
        with pytest.raises(NoGpuError):
            call()
