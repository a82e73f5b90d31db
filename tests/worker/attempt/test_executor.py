"""worker.attempt.executor: real modules in the real sandbox, a real store on disk; each end, and every restart."""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import structlog.testing

from hearth.base.errors import StoreDown
from hearth.jobfile import Blob
from hearth.jobfile.resolved import ResolvedInput, ResolvedOutput
from hearth.protocol.types import Billing, JobId, NodeId, Outcome, Terms
from hearth.storage import canonical, unixfs
from hearth.storage import cid as cids
from hearth.storage.cid import Cid
from hearth.storage.stores import FolderStore, MemoryStore, open_store
from tests.storage.test_unixfs import SHARD, put
from tests.worker import wasm_tools
from tests.worker.attempt.jobs import KEY, Jobs, label
from tests.worker.test_gpu_pool import World
from worker.attempt import executor, folder, sandbox, supply, upload
from worker.attempt.attempt import Means
from worker.attempt.executor import Executor
from worker.attempt.folder import folders_in
from worker.attempt.task import Bounds, Notice, Task
from worker.decide import MAX_TRIES, LeaseKey
from worker.gpu.pool import LENT_SECONDS, Pool
from worker.journal import AttemptJournal, AttemptRow, Moment, Phase
from worker.runtimes.base import LogSink, RunRequest, RunResult, RunStatus
from worker.runtimes.wasm import WasmRuntime

AFTER_INTENT = [Moment.FETCHED, Moment.STARTED, Moment.RESULT, Moment.PINNED]


class Rig(Jobs):
    """A store with one job in it, and an executor over a folder."""

    def __init__(self, tmp_path: Path) -> None:
        super().__init__(tmp_path)
        self.home = tmp_path / "home"
        self.scratch = tmp_path / "scratch"
        self.scratch.mkdir()
        self.runtime: Any = WasmRuntime(self.scratch)
        self.bounds = Bounds()
        self.open()

    def open(self) -> None:
        self.journal = AttemptJournal(self.home / "work.db")
        self.means = Means(
            journal=self.journal,
            store=self.store,
            folders=folders_in(self.home),
            runtimes={"wasm": self.runtime},
            node=NodeId(3),
            label=label(),
            bounds=self.bounds,
            keep_seconds=3_600,
        )
        self.executor = Executor(self.means)

    def run(self, terms: Terms, *, seconds: float = 60, tries: int = 1, key: LeaseKey = KEY) -> AttemptRow:
        self.executor.start(Task(key, terms, seconds, 1.0, tries))
        return self.finished(key)

    def finished(self, key: LeaseKey = KEY) -> AttemptRow:
        wait(lambda: not self.executor.active())
        entry = self.journal.entry(key)
        assert entry is not None
        return entry

    def result(self, entry: AttemptRow) -> dict[str, Any]:
        found: dict[str, Any] = self.store.get_json(entry.result)
        return found

    def report(self, entry: AttemptRow) -> dict[str, Any]:
        found: dict[str, Any] = self.store.get_json(entry.report)
        return found


def wait(condition: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never came to pass"
        time.sleep(0.01)


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = Rig(tmp_path)
    yield made
    made.executor.close()


# ---- how an attempt ends ----


def test_start__program_that_works__stores_its_result(rig: Rig, tmp_path: Path) -> None:
    terms = rig.terms(rig.spec("files"))
    entry = rig.run(terms)
    assert (entry.phase, entry.outcome, entry.used) == (Phase.DONE, Outcome.OK, 0)
    assert [m for m, _ in rig.journal.moments(KEY)] == AFTER_INTENT
    result = rig.result(entry)
    outputs = cids.parse(result["outputs"]["cid"])
    rig.store.fetch(outputs, tmp_path / "got")
    assert (tmp_path / "got" / "sub" / "b.txt").read_text().startswith("alpha")
    # Nobody else sees what the job brought and left.
    assert (rig.home / "jobs").stat().st_mode & 0o077 == 0


def test_start__same_job_on_another_node__gives_the_same_result_document(rig: Rig) -> None:
    terms = rig.terms(rig.spec("clock"))
    first = rig.run(terms)
    again = rig.run(terms, key=LeaseKey(JobId(b"\xbb" * 32), 0, 2))
    assert first.outcome == Outcome.OK
    assert first.result == again.result
    assert first.report != again.report


@pytest.mark.parametrize(
    ("command", "changes", "outcome"),
    [
        (("fill", "/out/x", "2000000"), {}, Outcome.EXIT),
        (("env",), {"outputs": (ResolvedOutput(path="/out/absent", required=True, max_size=9),)}, Outcome.EXIT),
        (("spin",), {"runtime_seconds": 1}, Outcome.TIMEOUT),
    ],
)
def test_start__program_that_fails__is_a_result_with_its_log(
    rig: Rig, command: tuple[str, ...], changes: dict[str, Any], outcome: Outcome, tmp_path: Path
) -> None:
    entry = rig.run(rig.terms(rig.spec(*command, **changes)))
    assert (entry.phase, entry.outcome) == (Phase.DONE, outcome)
    assert rig.report(entry)["logs"]


def test_start__module_that_traps__is_a_result(rig: Rig, tmp_path: Path) -> None:
    module = rig.store.add_path(wasm_tools.from_text(tmp_path, wasm_tools.command("unreachable")))
    entry = rig.run(rig.terms(rig.spec(module=Blob(cid=str(module.cid), size=module.size))))
    assert (entry.phase, entry.outcome) == (Phase.DONE, Outcome.TRAP)


def test_start__module_that_grows_past_its_memory__is_a_result(rig: Rig, tmp_path: Path) -> None:
    body = "(loop (br_if 1 (i32.eq (memory.grow (i32.const 1)) (i32.const -1))) (br 0))"
    module = rig.store.add_path(wasm_tools.from_text(tmp_path, wasm_tools.command(f"(block {body}) unreachable")))
    entry = rig.run(rig.terms(rig.spec(module=Blob(cid=str(module.cid), size=module.size))))
    assert (entry.phase, entry.outcome) == (Phase.DONE, Outcome.OUT_OF_MEMORY)


def test_start__fuel_billing__reports_the_seconds_used(rig: Rig) -> None:
    entry = rig.run(rig.terms(rig.spec("env"), billing=Billing.FUEL))
    assert (entry.outcome, entry.used) == (Outcome.OK, 1)


def test_start__fuel_runs_out__is_a_time_out_that_bills_the_maximum(rig: Rig) -> None:
    entry = rig.run(rig.terms(rig.spec("spin", runtime_seconds=1), billing=Billing.FUEL))
    assert (entry.outcome, entry.used) == (Outcome.TIMEOUT, 1)


# ---- outputs that no store takes ----


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("a\nb", "holds U+000A"),
        ("a\\b", "holds a slash or a backslash"),
        ("C:x", "starts with a drive letter"),
        ("invoice\u202egpj.exe", "holds U+202E (RIGHT-TO-LEFT OVERRIDE)"),
        ("d/" + "x" * 254, "makes a path of more than 255 bytes"),
    ],
    ids=["newline", "backslash", "drive", "bidi", "long"],
)
def test_start__output_whose_name_cannot_travel__has_failed_the_same_on_every_machine(
    rig: Rig, name: str, why: str
) -> None:
    """What a cheat gains: nothing. Such a name once made a result OK and paid, with no outputs at all."""
    terms = rig.terms(rig.spec("under", "d", f"/out/{name}"))
    entry = rig.run(terms)
    assert (entry.phase, entry.outcome) == (Phase.DONE, Outcome.EXIT)
    result = rig.result(entry)
    assert (result["status"], result["outputs"], result["exit_code"]) == ("output_missing", None, 0)
    detail = rig.report(entry)["detail"]
    assert detail.startswith("output refused: the name ") and why in detail and detail.isprintable()
    again = rig.run(terms, key=LeaseKey(JobId(b"\xbb" * 32), 0, 2))
    assert again.result == entry.result and again.report != entry.report


def test_start__more_names_than_a_plain_block_holds__are_stored_and_can_be_read(rig: Rig) -> None:
    entry = rig.run(rig.terms(rig.spec("names", "1400", "150", runtime_seconds=60)), seconds=180)
    assert (entry.phase, entry.outcome) == (Phase.DONE, Outcome.OK)
    outputs = rig.result(entry)["outputs"]
    root = cids.parse(outputs["cid"])
    assert unixfs.decode_dag_node(root, rig.store.get_block(root)).fanout == unixfs.SHARD_FANOUT
    found = unixfs.walk(root, rig.store, unixfs.ReadLimits.of_market(1 << 20, 1401))
    assert sum(1 for _ in found) == 1401


def test_start__failed_run_with_more_than_its_spec_allows__stores_none_of_it(rig: Rig) -> None:
    """A submitter fetches no more than the spec allows: what an honest worker stores must be within it."""
    small = (
        ResolvedOutput(path="/out/x", required=False, max_size=1000),
        ResolvedOutput(path="/out/y", required=False, max_size=1 << 20),
    )
    entry = rig.run(rig.terms(rig.spec("trapped", "/out/x", "2000", outputs=small)))
    result = rig.result(entry)
    assert (entry.outcome, result["status"], result["outputs"]) == (Outcome.TRAP, "trap", None)
    assert "output /out/x is 2000 bytes, more than its cap of 1000" in rig.report(entry)["detail"]
    entry = rig.run(rig.terms(rig.spec("trapped", "/out/x", "999", outputs=small)), key=LeaseKey(KEY.job, 0, 2))
    assert entry.outcome == Outcome.TRAP and rig.result(entry)["outputs"] is not None


# ---- what is given back ----


def refused(entry: AttemptRow, outcome: Outcome) -> str:
    assert (entry.phase, entry.outcome) == (Phase.REFUSED, outcome), entry
    return entry.detail


def test_start__spec_that_is_no_document__is_declined(rig: Rig) -> None:
    digest = cids.of(b"not json").digest
    rig.store.put_block(b"not json")
    entry = rig.run(rig.terms_only(digest, rig.spec("env")))
    assert "JSON" in refused(entry, Outcome.BAD_INPUT)
    assert rig.report(entry)["outcome"] == "bad_input"


def test_start__module_that_is_no_module__is_declined(rig: Rig) -> None:
    junk = rig.store.add_bytes(b"\x00asm junk")
    refused(rig.run(rig.terms(rig.spec(module=Blob(cid=str(junk.cid), size=junk.size)))), Outcome.BAD_INPUT)


def test_start__input_larger_than_its_spec_says__is_declined(rig: Rig) -> None:
    spec = rig.spec("env", inputs=(ResolvedInput(cid=str(rig.data.cid), dst="/in/data.txt", size=3),))
    refused(rig.run(rig.terms(spec)), Outcome.BAD_INPUT)


def test_start__inputs_larger_than_this_worker_takes__is_declined(rig: Rig) -> None:
    rig.means.bounds = Bounds(max_input=4)
    assert "larger" in refused(rig.run(rig.terms(rig.spec("env"))), Outcome.BAD_INPUT)


def test_start__input_of_shards_that_share_their_children__is_declined_at_once(rig: Rig) -> None:
    """What a cheat gains: nothing. Such an input of 100 kB once kept a slot reading until its lease was lost."""
    memory = MemoryStore()
    here = put(memory, SHARD, (b"00name", memory.put_block(b"x")))
    for _ in range(7):
        here = put(memory, SHARD, *((b"%02X" % slot, here) for slot in range(256)))
    for block in memory.blocks.values():
        rig.store.put_block(block)
    spec = rig.spec("env", inputs=(ResolvedInput(cid=str(here), dst="/in/data.txt", size=6),))
    began = time.monotonic()
    assert "no part of a sharded directory" in refused(rig.run(rig.terms(spec)), Outcome.BAD_INPUT)
    assert time.monotonic() - began < 10


def test_start__corrupted_input__is_declined_and_never_run(rig: Rig) -> None:
    name = rig.data.cid.digest.hex()
    path = rig.store.root / "blocks" / name[:2] / name
    path.write_bytes(b"Rows\n")
    refused(rig.run(rig.terms(rig.spec("files"))), Outcome.BAD_INPUT)
    assert [m for m, _ in rig.journal.moments(KEY)] == []


def test_start__input_that_nobody_has__is_declined_once_a_run_would_lack_too_much(rig: Rig) -> None:
    absent = str(cids.of(b"absent"))
    spec = rig.spec("env", inputs=(ResolvedInput(cid=absent, dst="/in/data.txt", size=6),), runtime_seconds=2)
    assert "cannot be fetched" in refused(rig.run(rig.terms(spec), seconds=4), Outcome.BAD_INPUT)


class Slow(FolderStore):
    """A store that takes its time with one block."""

    def __init__(self, root: Path, block: Cid, seconds: float) -> None:
        super().__init__(root)
        self.block, self.seconds = block, seconds

    def get_block(self, cid: Cid, timeout: float = 60.0) -> bytes:
        if cid == self.block:
            time.sleep(self.seconds)
        return super().get_block(cid, timeout)


def test_start__inputs_a_little_late_and_no_end__is_paid_and_says_what_it_had(rig: Rig) -> None:
    """Profit: data that comes a little late and a program that never ends would hold a slot for the lease, unpaid."""
    rig.store = Slow(rig.store.root, rig.data.cid, 0.9)
    rig.runtime = Hung(RunStatus.TIMEOUT)
    rig.open()
    entry = rig.run(rig.terms(rig.spec("spin", runtime_seconds=6)), seconds=7.5)
    assert (entry.phase, entry.outcome) == (Phase.DONE, Outcome.TIMEOUT), entry
    (request,) = rig.runtime.requests
    assert 3 <= request.limits.wall_seconds < 6 and request.least_seconds == 3
    assert f"{request.limits.wall_seconds} of 6 s were left" in rig.report(entry)["detail"]


def test_start__inputs_too_late_for_most_of_the_run__is_given_back_before_it_runs(rig: Rig) -> None:
    """Profit: a run that could not be paid for is not begun, so it cannot hold the slot."""
    rig.store = Slow(rig.store.root, rig.data.cid, 4.5)
    rig.runtime = Hung(RunStatus.TIMEOUT)
    rig.open()
    refused(rig.run(rig.terms(rig.spec("spin", runtime_seconds=6)), seconds=7.5), Outcome.BAD_INPUT)
    assert rig.runtime.requests == []


def test_start__machine_that_is_late_itself__takes_its_chance(rig: Rig) -> None:
    rig.runtime = Hung(RunStatus.TIMEOUT)
    rig.open()
    said = refused(rig.run(rig.terms(rig.spec("spin", runtime_seconds=30)), seconds=18, tries=2), Outcome.BAD_INPUT)
    (request,) = rig.runtime.requests
    assert request.least_seconds == 1 and f"{request.limits.wall_seconds} of 30 s" in said


@pytest.fixture
def two_cores() -> Iterator[None]:
    """Two processor cores for what the test starts: a compiler takes all that there are."""
    all_of_them = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(all_of_them)[:2])
    yield
    os.sched_setaffinity(0, all_of_them)


def test_start__module_that_compiles_longer_than_its_lease__is_declined_in_time(
    rig: Rig, tmp_path: Path, two_cores: None
) -> None:
    """What a cheat gains: nothing. A submitter who posts a module that compiles for longer than the lease cannot make
    an honest node answer too late and lose stake: it gives the unit back while a decline is still mined."""
    # Each of so many loops over so many locals costs the compiler the square of it, and little memory.
    many = 1_000
    loops = "".join(
        f"(loop $l{at} (local.set {at} (i32.add (local.get {at * 7 % many}) (local.get {at * 3 % many})))"
        f" (br_if $l{at} (local.get {at * 5 % many})))"
        for at in range(many)
    )
    functions = f"(func (local {'i32 ' * many}) {loops})" * 300
    module = rig.store.add_path(
        wasm_tools.from_text(tmp_path, wasm_tools.command("(loop (br 0))").removesuffix(")") + functions + ")")
    )
    terms = rig.terms(rig.spec(module=Blob(cid=str(module.cid), size=module.size), runtime_seconds=1))
    began = time.monotonic()
    said = refused(rig.run(terms, seconds=4), Outcome.BAD_INPUT)
    assert time.monotonic() - began < 4
    # By a hair it may have been compiled, and the run too late.
    assert "not compiled in the time that there was" in said or "compiling the module took too long" in said


def test_start__runtime_that_is_not_here__is_declined(rig: Rig) -> None:
    rig.means.runtimes = {}
    refused(rig.run(rig.terms(rig.spec("env"))), Outcome.IMAGE_MISSING)


class Down(FolderStore):
    """A store whose reads or writes fail a number of times."""

    def __init__(self, root: Path, reads: int = 0, writes: int = 0) -> None:
        super().__init__(root)
        self.reads, self.writes = reads, writes

    def get_block(self, cid: Cid, timeout: float = 60.0) -> bytes:
        if self.reads > 0:
            self.reads -= 1
            raise StoreDown("the store is down", hint="hearth doctor")
        return super().get_block(cid, timeout)

    def add_path(self, *args: Any, **named: Any) -> Any:
        if self.writes > 0:
            self.writes -= 1
            raise StoreDown("the store is down", hint="hearth doctor")
        return super().add_path(*args, **named)


def test_start__store_that_is_down_for_a_while__is_asked_again(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supply, "RETRY_SECONDS", 0.01)
    monkeypatch.setattr(upload, "RETRY_SECONDS", 0.01)
    terms = rig.terms(rig.spec("env"))
    rig.store = Down(rig.store.root, reads=2, writes=2)
    rig.open()
    entry = rig.run(terms)
    assert (entry.phase, entry.outcome, entry.tries) == (Phase.DONE, Outcome.OK, 1)
    assert rig.store.reads == rig.store.writes == 0


class SlowWithOutputs(FolderStore):
    """Takes a tree in as long as its test says, and documents at once."""

    def add_path(self, path: Path, ignore: Any = None, progress: Any = None) -> Any:
        while path.name == "out":
            time.sleep(0.02)
            progress("", 0)
        return super().add_path(path, ignore, progress)


def test_start__outputs_that_take_too_long_to_store__are_left_out_of_a_result_that_is_in_time(rig: Rig) -> None:
    """What a cheat gains: nothing. A run whose outputs are too many for the time that is left would cost its node a
    part of the bond, were it given back then; it has run, and is paid."""
    terms = rig.terms(rig.spec("files", runtime_seconds=1))
    rig.store = SlowWithOutputs(rig.store.root)
    rig.open()
    began = time.monotonic()
    rig.executor.start(Task(KEY, terms, 10, 5.0))
    entry = rig.finished()
    assert time.monotonic() - began < 10
    assert (entry.phase, entry.outcome) == (Phase.DONE, Outcome.EXIT)
    result = rig.result(entry)
    assert (result["outcome"], result["status"], result["outputs"]) == ("exit", "output_missing", None)
    assert "too large to be hashed and stored" in rig.report(entry)["detail"]
    kept = folder.Folder(rig.home / "jobs" / str(KEY)).read_kept()
    assert kept is not None and kept.outputs is None, "a restart stores the same result"


def test_start__data_that_does_not_come_while_the_lease_can_be_declined__is_refused_then(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supply, "RETRY_SECONDS", 0.01)
    terms = rig.terms(rig.spec("env"))
    rig.store = Down(rig.store.root, reads=10**9)
    rig.open()
    began = time.monotonic()
    rig.executor.start(Task(KEY, terms, 3_600, 1.0, 1, 1.0))
    refused(rig.finished(), Outcome.BAD_INPUT)
    assert time.monotonic() - began < 30, "not when half of the lease is over"


def test_stop__store_that_takes_nothing__is_named_in_the_log_and_counted(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The unit is given back meanwhile, and nothing would tell its owner that his store is why."""
    monkeypatch.setattr(upload, "RETRY_SECONDS", 0.01)
    terms = rig.terms(rig.spec("env"))
    rig.store = Down(rig.store.root, writes=10**9)
    rig.open()
    with structlog.testing.capture_logs() as logs:
        rig.executor.start(Task(KEY, terms, 60, 1.0, 1))
        wait(lambda: any(work.refusal for work in rig.executor.active()))
        rig.executor.stop(KEY, "given back")
        wait(lambda: not rig.executor.active())
    assert [line["why"] for line in logs if "store" in line["event"]] == ["the store is down"]
    assert rig.executor.broken == 1


def upload_in_vain(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Start an attempt whose result a store refuses that takes trials."""
    monkeypatch.setattr(upload, "RETRY_SECONDS", 0.01)
    terms = rig.terms(rig.spec("env"))
    rig.store = Down(rig.store.root, writes=10**9)
    rig.open()
    rig.executor.ask_store()
    assert rig.executor.store_refusal() == ""
    rig.executor.start(Task(KEY, terms, 60, 1.0, 1))


def test_store_refusal__result_that_is_refused__holds_until_the_store_takes_a_trial(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And no longer: what a store refuses of one stranger would else keep every slot idle until his lease ends."""
    upload_in_vain(rig, monkeypatch)
    wait(lambda: rig.executor.store_refusal() == "the store is down")
    rig.executor._intake._due = 0.0  # as AGAIN_SECONDS later
    wait(lambda: rig.executor.store_refusal() == "")
    left = rig.store.writes
    wait(lambda: rig.store.writes < left - 3)
    assert rig.executor.store_refusal() == "" and rig.executor.active()[0].refusal == "the store is down"
    rig.store.writes = 0
    assert rig.finished().phase is Phase.DONE


def test_store_refusal__upload_that_was_given_up__holds_until_the_store_takes_a_trial(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody asks it any more by an upload; the next job would be the next to ask."""
    upload_in_vain(rig, monkeypatch)
    wait(lambda: any(work.refusal for work in rig.executor.active()))
    rig.executor.stop(KEY, "given back")
    wait(lambda: not rig.executor.active())
    assert rig.executor.store_refusal() == "the store is down"
    rig.executor._intake._due = 0.0  # as AGAIN_SECONDS later
    wait(lambda: rig.executor.store_refusal() == "")


# ---- stopping and restarting ----


class Hung:
    """A runtime whose run ends only when it is cancelled, or breaks."""

    name = "wasm"

    def __init__(self, status: RunStatus | None = None) -> None:
        self.status = status
        self.requests: list[RunRequest] = []
        self.running = threading.Event()
        self.swept: list[str] = []

    def available(self) -> tuple[bool, str]:
        return True, "test"

    def prepare(self, target: str, until: float = 0, cancel: threading.Event | None = None) -> RunResult | None:
        return None

    def keeping(self, target: str) -> AbstractContextManager[None]:
        return nullcontext()

    def inspect(self, request: RunRequest, cancel: threading.Event) -> RunResult | None:
        return None

    def run(self, request: RunRequest, cancel: threading.Event, on_log: LogSink | None = None) -> RunResult:
        self.requests.append(request)
        self.running.set()
        if self.status is not None:
            return RunResult(self.status, "scripted")
        cancel.wait(30)
        return RunResult(RunStatus.CANCELLED)

    def sweep(self, prefix: str = "") -> int:
        self.swept.append(prefix)
        return 1


@pytest.fixture
def hung(rig: Rig) -> Hung:
    rig.runtime = Hung()
    rig.open()
    return rig.runtime


@pytest.mark.parametrize(("billing", "used"), [(Billing.METERED, 0), (Billing.FUEL, 17)])
def test_hand_in__program_that_runs__is_ended_and_what_it_left_is_a_result(
    rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, billing: Billing, used: int
) -> None:
    """A7: of a cancelled unit whose time was paid there was neither log nor output."""
    now = classmethod(lambda cls, seconds, margin, used: cls(time.monotonic(), time.monotonic() + 60, used))
    monkeypatch.setattr(Notice, "given", now)
    rig.executor.start(Task(KEY, rig.terms(rig.spec("spin"), billing=billing), 600, 1.0))
    wait(lambda: (rig.home / "jobs" / str(KEY) / "out" / "done").is_file())
    assert rig.executor.hand_in(KEY, 5, 17) and not rig.executor.hand_in(KEY, 5, 17)
    entry = rig.finished()
    assert (entry.phase, entry.outcome, entry.used) == (Phase.DONE, Outcome.TIMEOUT, used)
    result, report = rig.result(entry), rig.report(entry)
    assert (result["outcome"], result["status"], report["detail"]) == ("timeout", "cancelled", sandbox.NOTICED)
    assert report["logs"]["cid"] and report["used"] == used
    rig.store.fetch(cids.parse(result["outputs"]["cid"]), tmp_path / "got")
    assert (tmp_path / "got" / "done").read_text() == "1"


def test_hand_in__lease_lost_meanwhile__ends_without_a_result(rig: Rig, hung: Hung) -> None:
    rig.executor.start(Task(KEY, rig.terms(rig.spec("env")), 60, 1))
    hung.running.wait(10)
    assert rig.executor.hand_in(KEY, 600, 0)
    rig.executor.stop(KEY, "the lease is gone")
    assert rig.finished().phase is Phase.ENDED
    assert not rig.executor.hand_in(KEY, 600, 0)


def test_run__gpu_that_fails_and_is_well_again__is_this_machines_fault_and_no_result(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run was ended for it: what there was by then would be paid as what a submitter cancelled."""
    world, clock = World(), [0.0]
    pool = rig.means.gpus = Pool(world.probe, clock=lambda: clock[0])
    lend = pool.lent
    monkeypatch.setattr(pool, "lent", lambda *_: lend(1))  # as a container's: a module has none
    rig.executor.start(Task(KEY, rig.terms(rig.spec("spin")), 600, 1.0))
    wait(lambda: (rig.home / "jobs" / str(KEY) / "out" / "done").is_file())
    gone = world.gpus.pop(0)
    for _ in range(2):
        pool.look()
        clock[0] += LENT_SECONDS
    world.gpus[0] = gone
    entry = rig.finished()
    assert entry.phase is Phase.BROKEN and gone.uuid in entry.detail
    pool.look()
    assert [one.state for one in pool.states()] == ["free"] * 3


@pytest.mark.parametrize(("seconds", "margin", "kept"), [(120, 30, 30), (120, 100, 40), (3, 30, 2.5), (0, 30, 2.5)])
def test_notice__given__leaves_a_margin_of_a_third_and_what_a_submit_takes(
    seconds: int, margin: int, kept: float
) -> None:
    notice = Notice.given(seconds, margin, 0)
    assert notice.margin == pytest.approx(kept)


def test_stop__lease_lost__ends_the_run_and_deletes_its_data(rig: Rig, hung: Hung) -> None:
    rig.executor.start(Task(KEY, rig.terms(rig.spec("env")), 60, 1))
    hung.running.wait(10)
    rig.executor.stop(KEY, "the lease is gone")
    entry = rig.finished()
    assert (entry.phase, entry.detail) == (Phase.ENDED, "the lease is gone")
    assert list((rig.home / "jobs" / str(KEY)).iterdir()) == []


def test_close__running_attempt__starts_again_after_a_restart_as_the_same_try(rig: Rig, hung: Hung) -> None:
    rig.executor.start(Task(KEY, rig.terms(rig.spec("env")), 60, 1))
    hung.running.wait(10)
    rig.executor.close()
    rig.open()
    rig.executor.recover()
    assert rig.journal.executions() == ()


def test_close__while_a_run_is_prepared__starts_again_and_declines_nothing(
    rig: Rig, hung: Hung, monkeypatch: pytest.MonkeyPatch
) -> None:
    preparing = threading.Event()

    def prepare(target: str, until: float, cancel: threading.Event) -> None:
        preparing.set()
        rig.executor.active()[0].stop.wait(10)

    monkeypatch.setattr(hung, "prepare", prepare)
    rig.executor.start(Task(KEY, rig.terms(rig.spec("env")), 60, 1))
    assert preparing.wait(10)
    rig.executor.close()
    rig.open()
    rig.executor.recover()
    assert rig.journal.executions() == ()
    assert not hung.requests


def test_start__twice__runs_once(rig: Rig, hung: Hung) -> None:
    task = Task(KEY, rig.terms(rig.spec("env")), 60, 1)
    rig.executor.start(task)
    hung.running.wait(10)
    rig.executor.start(task)
    assert len(rig.executor.active()) == 1
    rig.executor.stop(KEY, "enough")
    rig.finished()
    assert len(hung.requests) == 1


def test_run__label_and_limits__are_those_of_the_lease(rig: Rig, hung: Hung) -> None:
    hung.status = RunStatus.OK
    rig.run(rig.terms(rig.spec("env"), billing=Billing.FUEL), key=LeaseKey(KEY.job, 4, 2))
    (request,) = hung.requests
    assert request.unit == label() + "aaaaaaaaaaaa-4-2"
    assert (request.limits.memory_bytes, request.limits.wall_seconds) == (64 << 20, 20)
    assert request.limits.fuel == 20 * 10**9
    assert (request.index, request.units) == (4, 1)
    assert (request.in_dir / "data.txt").parent.name == "in"


def test_start__sandbox_breaks__says_so_and_keeps_the_try(rig: Rig, hung: Hung) -> None:
    hung.status = RunStatus.BROKEN
    rig.executor.start(Task(KEY, rig.terms(rig.spec("env")), 60, 1, tries=2))
    wait(lambda: any(w.phase.startswith("failed") for w in rig.executor.active()))
    rig.executor.active()[0].stop.set()
    entry = rig.finished()
    assert (entry.phase, entry.tries, entry.detail) == (Phase.BROKEN, 2, "scripted")
    assert rig.executor.take_given_back() == {}


def test_start__sandbox_breaks_at_the_last_try__the_job_is_left_alone(rig: Rig, hung: Hung) -> None:
    """Its next unit would be taken at once, and fail three times as well."""
    hung.status = RunStatus.BROKEN
    rig.executor.start(Task(KEY, rig.terms(rig.spec("env")), 60, 1, tries=MAX_TRIES))
    wait(lambda: any(w.phase.startswith("failed") for w in rig.executor.active()))
    rig.executor.active()[0].stop.set()
    assert rig.finished().phase is Phase.BROKEN
    assert rig.executor.take_given_back() == {KEY.job: "a unit of it was given back: 3 tries failed here: scripted"}


def test_start__fault_of_the_worker_itself__breaks_that_attempt_only(
    rig: Rig, hung: Hung, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Hung, "prepare", lambda self, target, until, cancel: 1 / 0)
    rig.executor.start(Task(KEY, rig.terms(rig.spec("env")), 60, 1))
    wait(lambda: any(w.phase.startswith("failed") for w in rig.executor.active()))
    rig.executor.active()[0].stop.set()
    assert "ZeroDivisionError" in rig.finished().detail
    assert rig.executor.faults == 1


def test_recover__killed_while_running__kills_orphans_by_label_and_tries_again(rig: Rig, hung: Hung) -> None:
    rig.journal.start(KEY, 1)
    stray = rig.home / "jobs" / "stray"
    stray.mkdir(parents=True)
    done = rig.executor.recover()
    assert hung.swept == [label()]
    entry = rig.journal.entry(KEY)
    assert entry is not None and entry.phase is Phase.BROKEN
    assert not stray.exists()
    assert len(done) == 3


@pytest.mark.parametrize("how", ["killed", "killed twice", "lost", "no thread"])
@pytest.mark.parametrize("tries", [MAX_TRIES - 1, MAX_TRIES])
def test_recover__last_try_ended_with_the_process__the_job_is_left_alone(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, how: str, tries: int
) -> None:
    """A job that takes the worker down each time: its next unit would do so three times as well."""
    if how == "lost":
        rig.journal.start(KEY, tries)
        rig.journal.finish(KEY, Phase.DONE, result=cids.of(b"lost").digest)
    elif how == "no thread":
        task = Task(KEY, rig.terms(rig.spec("env")), 60, 1, tries)
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", Mock(side_effect=[None, RuntimeError("no thread")]))
            rig.executor.start(task)
    else:
        rig.journal.start(KEY, tries)
    if how != "no thread":
        rig.executor.recover()
    if how == "killed twice":
        rig.open()
        rig.executor.recover()
    entry = rig.journal.entry(KEY)
    assert entry is not None and entry.phase is Phase.BROKEN
    said = f"a unit of it was given back: {MAX_TRIES} tries failed here: {entry.detail}"
    assert rig.executor.take_given_back() == ({KEY.job: said} if tries == MAX_TRIES else {})


# The simulated kill is a SystemExit in the attempt's thread.
killed = pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")


def kill_at(rig: Rig, terms: Terms, moment: Moment) -> None:
    """Run an attempt whose journal stops at `moment`, as a kill -9 right after it would leave it."""
    reach = rig.journal.reach

    def stop_after(key: LeaseKey, reached: Moment, note: str = "") -> None:
        reach(key, reached, note)
        if reached is moment:
            raise SystemExit

    rig.journal.reach = stop_after  # type: ignore[method-assign]
    rig.executor.start(Task(KEY, terms, 60, 1))
    wait(lambda: not rig.executor.active())
    entry = rig.journal.entry(KEY)
    assert entry is not None and (entry.phase, entry.moment) == (Phase.WORKING, moment)
    rig.open()
    rig.executor.recover()


@killed
@pytest.mark.parametrize("moment", [Moment.RESULT, Moment.PINNED])
def test_start__killed_after_the_result__reuses_it(rig: Rig, moment: Moment) -> None:
    terms = rig.terms(rig.spec("env"))
    expected = rig.run(terms, key=LeaseKey(KEY.job, 0, 7)).result
    kill_at(rig, terms, moment)
    rig.runtime = Hung(RunStatus.TRAP)
    rig.open()
    entry = rig.run(terms, tries=2)
    assert (entry.phase, entry.outcome, entry.result) == (Phase.DONE, Outcome.OK, expected)
    assert rig.runtime.requests == []


@killed
@pytest.mark.parametrize("moment", [Moment.FETCHED, Moment.STARTED])
def test_start__killed_before_the_result__runs_again(rig: Rig, moment: Moment) -> None:
    terms = rig.terms(rig.spec("env"))
    kill_at(rig, terms, moment)
    entry = rig.run(terms, tries=2)
    assert (entry.phase, entry.outcome, entry.tries) == (Phase.DONE, Outcome.OK, 2)


@killed
def test_start__outputs_changed_after_the_result__runs_again(rig: Rig) -> None:
    terms = rig.terms(rig.spec("env"))
    kill_at(rig, terms, Moment.RESULT)
    folder = rig.home / "jobs" / str(KEY)
    before = json.loads((folder / "attempt.json").read_text())
    (folder / "out" / "done").write_text("tampered")
    entry = rig.run(terms, tries=2)
    assert rig.result(entry) == before["result"]
    assert [m for m, _ in rig.journal.moments(KEY)] == [*AFTER_INTENT[:-1], *AFTER_INTENT]


@killed
def test_start__half_written_result__runs_again(rig: Rig) -> None:
    terms = rig.terms(rig.spec("env"))
    kill_at(rig, terms, Moment.RESULT)
    (rig.home / "jobs" / str(KEY) / "attempt.json").write_text('{"outcome": 1')
    assert rig.run(terms, tries=2).outcome == Outcome.OK


def test_start__put_aside_and_held_again__reuses_what_is_stored(rig: Rig) -> None:
    """A deep reorganisation gives a settled lease back: nothing is run twice as long as the store has it all."""
    terms = rig.terms(rig.spec("env"))
    first = rig.run(terms)
    rig.executor.set_aside(KEY, "settled")
    assert rig.journal.executions() == ()
    rig.means.runtimes = {"wasm": Hung(RunStatus.TRAP)}
    assert rig.run(terms).result == first.result


def test_start__put_aside_held_again_and_lost_by_the_store__runs_again(rig: Rig) -> None:
    """Neither the store nor the disk has the outputs: what was put aside cannot be reused, and must not break."""
    terms = rig.terms(rig.spec("env"))
    first = rig.run(terms)
    rig.executor.set_aside(KEY, "settled")
    rig.store = FolderStore(rig.home.parent / "another")
    rig.module = rig.store.add_path(wasm_tools.from_c("probe"))
    rig.store.add_bytes(b"rows\n")
    rig.store.add_path(rig.home.parent / "work")
    rig.open()
    again = rig.run(rig.terms(rig.spec("env")))
    assert (again.phase, again.result) == (Phase.DONE, first.result)


def test_recover__store_lost_the_result__runs_again(rig: Rig) -> None:
    terms = rig.terms(rig.spec("env"))
    entry = rig.run(terms)
    shutil.rmtree(rig.store.root / "blocks")
    rig.executor.recover()
    again = rig.journal.entry(KEY)
    assert again is not None and again.phase is Phase.BROKEN
    rig.module = rig.store.add_path(wasm_tools.from_c("probe"))
    rig.store.add_bytes(b"rows\n")
    rig.store.add_path(rig.home.parent / "work")
    assert rig.run(rig.terms(rig.spec("env")), tries=2).result == entry.result


def test_recover__store_that_hangs__is_believed_for_all_results_at_once(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its worker beats only once it has recovered, however many results wait to be settled."""
    monkeypatch.setattr(executor, "RECOVER_SECONDS", 0.2)
    keys = [LeaseKey(JobId(bytes([number]) * 32), 0, 1) for number in range(20)]
    for number, key in enumerate(keys):
        rig.journal.start(key, 1)
        rig.journal.finish(key, Phase.DONE, outcome=Outcome.OK, result=bytes([number]) * 32, report=bytes(32))
    free = threading.Event()
    monkeypatch.setattr(FolderStore, "has", lambda store, cid: free.wait(30))
    began = time.monotonic()
    assert rig.executor.recover() == []
    assert time.monotonic() - began < 10
    free.set()
    assert [entry.key for entry in rig.journal.entries(Phase.DONE)] == keys


@pytest.mark.net
@pytest.mark.parametrize("urls", [("kubo://127.0.0.1:9",), ("kubo://127.0.0.1:9", "gateway+http://127.0.0.1:9")])
def test_recover__stores_are_not_up_yet__keeps_what_is_finished(rig: Rig, urls: tuple[str, ...]) -> None:
    """After a reboot the worker may be up before its Kubo: work that is done was once run again, or given back."""
    assert rig.run(rig.terms(rig.spec("env"))).phase is Phase.DONE
    rig.executor._store = open_store(*urls)
    assert rig.executor.recover() == []
    assert rig.finished().phase is Phase.DONE


def test_sweep__old_attempts__leave_the_disk_and_the_store(rig: Rig) -> None:
    terms = rig.terms(rig.spec("env"))
    first = rig.run(terms)
    other = LeaseKey(KEY.job, 0, 2)
    second = rig.run(terms, key=other)
    assert first.result == second.result
    outputs = cids.parse(rig.result(first)["outputs"]["cid"])
    rig.executor.set_aside(KEY, "settled")
    assert rig.executor.sweep(time.time() - 60) == 0
    assert rig.executor.sweep(time.time() + 60) == 1
    assert not (rig.home / "jobs" / str(KEY)).exists()
    # The other attempt has the same result and still needs it.
    assert outputs in rig.store.pins()
    rig.executor.set_aside(other, "settled")
    rig.executor.sweep(time.time() + 60)
    assert outputs not in rig.store.pins()


def test_sweep__cut_short__the_next_process_lets_go_what_is_left(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stop does not wait for it; what no journal names any more would be kept for ever."""
    outputs = cids.parse(rig.result(rig.run(rig.terms(rig.spec("env"))))["outputs"]["cid"])
    rig.executor.set_aside(KEY, "settled")
    with monkeypatch.context() as context, pytest.raises(KeyboardInterrupt):
        context.setattr(rig.store, "unpin", Mock(side_effect=KeyboardInterrupt))
        rig.executor.sweep(time.time() + 60)
    rig.journal.close()
    rig.open()
    rig.executor.recover()
    assert rig.executor.sweep(time.time() + 60) == 1
    assert outputs not in rig.store.pins()


def test_sweep__store_that_is_down__is_asked_again_and_others_go(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is forgotten while a store is down would stay pinned in it for ever."""
    other = LeaseKey(KEY.job, 0, 2)
    terms = [rig.terms(rig.spec(command)) for command in ("env", "clock")]
    entries = [rig.run(terms[0]), rig.run(terms[1], key=other)]
    results = [canonical.cid_of_digest(entry.result) for entry in entries]
    for key in (KEY, other):
        rig.executor.set_aside(key, "settled")
    unpin = rig.store.unpin

    def down(cid: Cid) -> None:
        if cid == results[0]:
            raise StoreDown("switched off", hint="")
        unpin(cid)

    with monkeypatch.context() as context:
        context.setattr(rig.store, "unpin", down)
        assert rig.executor.sweep(time.time() + 60) == 1
    assert [result in rig.store.pins() for result in results] == [True, False]
    # Nor does a restart lose sight of it.
    rig.journal.close()
    rig.open()
    rig.executor.recover()
    assert rig.executor.sweep(time.time() + 60) == 1
    assert results[0] not in rig.store.pins()
    assert not rig.journal.entries()
    assert rig.executor.sweep(time.time() + 60) == 0


def test_sweep__refused_attempt__its_report_goes_with_it(rig: Rig) -> None:
    rig.bounds = Bounds(max_input=1)
    rig.open()
    entry = rig.run(rig.terms(rig.spec("env")))
    report = canonical.cid_of_digest(entry.report)
    assert entry.phase is Phase.REFUSED and report in rig.store.pins()
    rig.executor.set_aside(KEY, "declined")
    rig.executor.sweep(time.time() + 60)
    assert report not in rig.store.pins()


def test_documents__of_an_attempt__are_canonical(rig: Rig) -> None:
    entry = rig.run(rig.terms(rig.spec("env")))
    for digest in (entry.result, entry.report):
        block = rig.store.get_block(canonical.cid_of_digest(digest))
        assert canonical.encode(canonical.decode(block)) == block
