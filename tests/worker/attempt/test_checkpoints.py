"""Checkpoints and resumes of attempts: the real example in the real sandbox, a real store on disk or Kubo."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hearth.base.errors import StoreDown
from hearth.jobfile import Blob
from hearth.jobfile.resolved import ResolvedCheckpoint, ResolvedOutput
from hearth.protocol.types import Billing, NodeId, Outcome, Terms
from hearth.storage import cid as cids
from hearth.storage import unixfs
from hearth.storage.stores import MemoryStore
from hearth.storage.stores.gateway_server import GatewayServer
from tests.worker.attempt.jobs import KEY
from tests.worker.attempt.test_executor import Rig, wait
from worker.attempt.folder import Folder
from worker.attempt.task import Task
from worker.decide import LeaseKey, Saved, Stage
from worker.disk import Disk
from worker.journal import Phase

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "resume" / "count.wasm"
PLACE = "/out/checkpoints"
NEXT = LeaseKey(KEY.job, KEY.index, 2)
ROUNDS = "60000000"


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = Rig(tmp_path)
    yield made
    made.executor.close()


def count(rig: Rig, steps: int, rounds: str = ROUNDS, **changes: Any) -> Terms:
    module = rig.store.add_path(EXAMPLE)
    values: dict[str, Any] = {
        "module": Blob(cid=str(module.cid), size=module.size),
        "checkpoint": ResolvedCheckpoint(every=1, path=PLACE),
        "outputs": (ResolvedOutput(path="/out", required=True, max_size=1 << 20),),
        **changes,
    }
    spec = rig.spec(str(steps), rounds, **values)
    return rig.terms(spec, billing=Billing.METERED, checkpoint_every=1 if values["checkpoint"] else 0)


def offered(rig: Rig, key: LeaseKey = KEY) -> bytes:
    """Wait for a checkpoint, and return its root."""
    wait(lambda: (entry := rig.journal.entry(key)) is not None and entry.offered)
    entry = rig.journal.entry(key)
    assert entry is not None and entry.checkpoint is not None
    return entry.checkpoint


def stored(rig: Rig, root: bytes, to: Path) -> list[str]:
    rig.store.fetch(cids.of_root(root), to)
    return sorted(path.name for path in to.iterdir())


def result_of(rig: Rig, key: LeaseKey, to: Path) -> dict[str, Any]:
    entry = rig.finished(key)
    assert (entry.phase, entry.outcome) == (Phase.DONE, Outcome.OK)
    from hearth.storage import cid as cids

    rig.store.fetch(cids.parse(rig.result(entry)["outputs"]["cid"]), to)
    found: dict[str, Any] = json.loads((to / "result.json").read_text())
    return found


def test_start__unit_that_publishes__offers_a_whole_state_that_the_store_has(rig: Rig, tmp_path: Path) -> None:
    rig.executor.start(Task(KEY, count(rig, 1000), 120, 1.0))
    root = offered(rig)
    (name,) = stored(rig, root, tmp_path / "state")
    step = int(name.removeprefix("step-"))
    assert (tmp_path / "state" / name).read_text().split()[0] == str(step) and step > 0
    [execution] = rig.journal.executions()
    assert (execution.stage, execution.offered) == (Stage.WORKING, root)
    # One is offered at a time: what comes after it waits for the chain.
    time.sleep(1.5)
    assert offered(rig) == root
    rig.journal.take_back(KEY, taken=True)
    assert offered(rig) != root
    wait(lambda: rig.executor.tally.stored == 2)  # counted after it is offered
    assert rig.executor.tally.failed == 0


def test_start__lost_unit_begun_again_with_its_state__goes_on_where_it_was(rig: Rig, tmp_path: Path) -> None:
    terms = count(rig, 12, "1200000000")
    rig.executor.start(Task(KEY, terms, 120, 1.0))
    root = offered(rig)
    rig.executor.stop(KEY, "the lease is lost")
    rig.finished()
    saved = Saved(1, NodeId(9), 5, root)
    rig.executor.gather(Task(NEXT, terms, 60, 0.0, states=(saved,)))
    wait(lambda: any(one.stage is Stage.GATHERED for one in rig.executor.ahead()))
    assert [one.resumes for one in rig.executor.ahead()] == [1]
    rig.executor.start(Task(NEXT, terms, 120, 1.0, states=(saved,)))
    found = result_of(rig, NEXT, tmp_path / "got")
    done = found["steps_of_attempts"]
    assert len(done) == 2 and sum(done) == found["steps"] == 12 and min(done) > 0
    anew = LeaseKey(KEY.job, KEY.index, 3)
    rig.executor.start(Task(anew, terms, 120, 1.0))
    without = result_of(rig, anew, tmp_path / "anew")
    assert (without["value"], without["steps_of_attempts"]) == (found["value"], [12])


def test_start__chain_says_anew_though_a_state_was_gathered__begins_anew(rig: Rig, tmp_path: Path) -> None:
    terms = count(rig, 3, "1000")
    saved = Saved(1, NodeId(9), 5, state(rig, tmp_path, "2 00000000000000aa 1 2\n"))
    rig.executor.gather(Task(NEXT, terms, 60, 0.0, states=(saved,)))
    wait(lambda: any(one.stage is Stage.GATHERED for one in rig.executor.ahead()))
    rig.executor.start(Task(NEXT, terms, 120, 1.0))
    assert result_of(rig, NEXT, tmp_path / "got")["steps_of_attempts"] == [3]


def state(rig: Rig, tmp_path: Path, text: str) -> bytes:
    folder = tmp_path / "made"
    folder.mkdir()
    (folder / "step-000002").write_text(text)
    return rig.store.add_path(folder).cid.digest


def test_start__worker_begins_again_with_its_own_lease__state_is_fetched_once_more(rig: Rig, tmp_path: Path) -> None:
    terms = count(rig, 3, "1000")
    saved = Saved(1, NodeId(9), 5, state(rig, tmp_path, "2 00000000000000aa 1 2\n"))
    rig.executor.start(Task(NEXT, terms, 120, 1.0, tries=2, states=(saved,)))
    assert result_of(rig, NEXT, tmp_path / "got")["steps_of_attempts"] == [2, 1]


# ---- states that cannot be used ----


def _file(rig: Rig, folder: Path) -> bytes:
    (folder / "one").write_bytes(b"x" * 10)
    return rig.store.add_path(folder / "one").cid.digest


def _too_large(rig: Rig, folder: Path) -> bytes:
    (folder / "big").write_bytes(b"x" * (2 << 20))
    return rig.store.add_path(folder).cid.digest


def _link(rig: Rig, folder: Path) -> bytes:
    """Name a symbolic link in a UnixFS folder: type 4, and where it leads."""
    from hearth.storage import cid as cids
    from hearth.storage.unixfs.codec import Link, encode_dag_node, encode_field
    from hearth.storage.unixfs.sharding import encode_directory

    link = rig.store.put_block(encode_dag_node(encode_field(1, 4) + encode_field(2, b"/etc/passwd"), []), cids.DAG_PB)
    return rig.store.put_block(encode_directory([Link(link, b"step-000002", 20)]), cids.DAG_PB).digest


def _gone(rig: Rig, folder: Path) -> bytes:
    return os.urandom(32)


def _bad_name(rig: Rig, folder: Path) -> bytes:
    from hearth.storage import cid as cids
    from hearth.storage.unixfs.codec import Link
    from hearth.storage.unixfs.sharding import encode_directory

    leaf = rig.store.put_block(b"x")
    return rig.store.put_block(encode_directory([Link(leaf, b"../../module", 1)]), cids.DAG_PB).digest


@pytest.mark.parametrize("make", [_file, _too_large, _link, _gone, _bad_name])
def test_gather__state_that_cannot_be_used__begins_anew_and_never_refuses(rig: Rig, tmp_path: Path, make: Any) -> None:
    folder = tmp_path / "hostile"
    folder.mkdir()
    terms = count(rig, 3, "1000")
    rig.executor.allow(replace(rig.bounds, pace=replace(rig.bounds.pace, window=1.0)), 3_600)
    rig.executor.gather(Task(NEXT, terms, 30, 0.0, states=(Saved(1, NodeId(9), 5, make(rig, folder)),)))
    wait(lambda: any(one.stage is Stage.GATHERED for one in rig.executor.ahead()))
    assert [one.resumes for one in rig.executor.ahead()] == [0]
    assert rig.executor.tally.unusable == 1
    rig.executor.start(Task(NEXT, terms, 120, 1.0))
    assert result_of(rig, NEXT, tmp_path / "got")["steps_of_attempts"] == [3]


def test_gather__newest_state_does_not_come__has_its_share_of_the_time_and_no_more(
    rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = Saved(1, NodeId(9), 5, state(rig, tmp_path, "2 00000000000000aa 1 2\n"))
    gone = [Saved(attempt, NodeId(8), 1, os.urandom(32)) for attempt in (4, 3)]
    get, roots = rig.store.get_block, {one.root for one in gone}

    def search(cid: Any, timeout: float = 0) -> bytes:
        """Look for what is nowhere for as long as may be."""
        time.sleep(timeout if cid.digest in roots else 0)
        return get(cid, timeout)

    monkeypatch.setattr(rig.store, "get_block", search)
    rig.executor.gather(Task(LeaseKey(KEY.job, 0, 5), count(rig, 3, "1000"), 12, 0.0, states=(*gone, good)))
    wait(lambda: any(one.stage is Stage.GATHERED for one in rig.executor.ahead()))
    assert [one.resumes for one in rig.executor.ahead()] == [1]
    assert rig.executor.tally.unusable == 2


def test_gather__home_without_room_for_a_state__begins_anew_and_stops_nothing(
    rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Disk, "spares", lambda disk, size: False)
    saved = Saved(1, NodeId(9), 5, state(rig, tmp_path, "2 00000000000000aa 1 2\n"))
    rig.executor.gather(Task(NEXT, count(rig, 3, "1000"), 60, 0.0, states=(saved,)))
    wait(lambda: any(one.stage is Stage.GATHERED for one in rig.executor.ahead()))
    assert [one.resumes for one in rig.executor.ahead()] == [0]
    assert (rig.executor.tally.unusable, rig.executor.starved) == (1, 0)


# ---- what fails, and what is cleaned up ----


def test_start__store_that_takes_nothing__unit_ends_well_without_checkpoints(
    rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = rig.store.add_path

    def refuse(path: Path, *args: Any, **kwargs: Any) -> unixfs.Entry:
        if path.name.startswith("checkpoint"):
            raise StoreDown("it is full")
        return add(path, *args, **kwargs)

    terms = count(rig, 30, "400000000")
    monkeypatch.setattr(rig.store, "add_path", refuse)
    rig.executor.start(Task(KEY, terms, 120, 1.0))
    assert result_of(rig, KEY, tmp_path / "got")["steps_of_attempts"] == [30]
    entry = rig.journal.entry(KEY)
    assert entry is not None and entry.checkpoint is None
    assert rig.executor.tally.failed >= 1 and rig.executor.tally.stored == 0


def test_start__store_that_loses_a_block__offers_nothing(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was not read back is not sent: nobody could go on from it, and this node would be paid for nothing."""
    terms = count(rig, 1000)
    add = rig.store.add_path

    def lose(path: Path, *args: Any, **kwargs: Any) -> unixfs.Entry:
        entry = add(path, *args, **kwargs)
        if path.name.startswith("checkpoint"):
            leaf = next(cid for cid, _ in unixfs.blocks_of(entry.cid, rig.store) if cid != entry.cid)
            rig.store._remove(leaf)
        return entry

    monkeypatch.setattr(rig.store, "add_path", lose)
    rig.executor.start(Task(KEY, terms, 120, 1.0))
    wait(lambda: rig.executor.tally.failed >= 2)
    entry = rig.journal.entry(KEY)
    assert entry is not None and entry.checkpoint is None and not entry.offered


def test_start__store_that_hangs__neither_run_nor_end_waits_for_it(
    rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add, release = rig.store.add_path, threading.Event()

    def hang(path: Path, *args: Any, **kwargs: Any) -> unixfs.Entry:
        if path.name.startswith("checkpoint"):
            release.wait(60)
        return add(path, *args, **kwargs)

    terms = count(rig, 10, "300000000")
    monkeypatch.setattr(rig.store, "add_path", hang)
    rig.executor.start(Task(KEY, terms, 120, 1.0))
    try:
        assert result_of(rig, KEY, tmp_path / "got")["steps"] == 10
    finally:
        release.set()
    time.sleep(0.5)
    entry = rig.journal.entry(KEY)
    assert entry is not None and not entry.offered


def test_sweep__attempt_that_has_ended__its_checkpoints_are_let_go(rig: Rig) -> None:
    rig.executor.start(Task(KEY, count(rig, 1000), 120, 1.0))
    roots = []
    for _ in range(3):
        roots.append(offered(rig))
        rig.journal.take_back(KEY, taken=True)
        wait(lambda: rig.executor.tally.stored > len(roots))
    folder = Folder(rig.home / "jobs" / str(KEY))
    wait(lambda: len(folder.read_checkpoints()) == 2)
    kept = folder.read_checkpoints()
    assert len(kept) == 2 and str(cids.of_root(roots[0])) not in kept
    assert cids.of_root(roots[-1]) in rig.store.pins() and cids.of_root(roots[0]) not in rig.store.pins()
    rig.executor.stop(KEY, "the lease is lost")
    rig.finished()
    assert not list(folder.path.glob("checkpoint-*"))
    assert rig.executor.sweep(time.time() + 10) == 1
    assert cids.of_root(roots[-1]) not in rig.store.pins() and not folder.path.exists()


def test_recover__killed_while_it_was_stored__half_a_copy_is_swept_and_what_was_offered_stays(rig: Rig) -> None:
    terms = count(rig, 1000)
    rig.executor.start(Task(KEY, terms, 120, 1.0))
    root = offered(rig)
    rig.executor.close()
    rig.finished()
    rig.journal.start(KEY, 1)  # as a killed process leaves it
    half = rig.home / "jobs" / str(KEY) / "checkpoint-1"
    half.mkdir()
    (half / "step-000099").write_text("99 half of a")
    rig.open()
    rig.executor.recover()
    assert not half.exists()
    [execution] = rig.journal.executions()
    assert (execution.stage, execution.offered) == (Stage.BROKEN, root)


# ---- seconds that are bought while it runs ----


def test_top_up__unit_that_would_time_out__runs_for_as_long_as_was_bought(rig: Rig, tmp_path: Path) -> None:
    terms = count(rig, 1000, "100000000", checkpoint=None, runtime_seconds=3)
    rig.executor.start(Task(KEY, terms, 30, 1.0))
    wait(lambda: any(work.phase == "running" for work in rig.executor.active()))
    rig.executor.top_up(KEY, 3)
    entry = rig.finished()
    assert entry.outcome is Outcome.TIMEOUT
    report = rig.report(entry)
    assert report["detail"] == "not done after 6 s" and 5_500 < report["run_milliseconds"] < 9_000


def test_start__topped_up_before__has_those_seconds_too(rig: Rig) -> None:
    terms = count(rig, 1000, "100000000", checkpoint=None, runtime_seconds=1)
    rig.executor.start(Task(KEY, terms, 30, 1.0, topped=2))
    rig.executor.top_up(KEY, 2)
    entry = rig.finished()
    assert (entry.outcome, rig.report(entry)["detail"]) == (Outcome.TIMEOUT, "not done after 3 s")


# ---- states that lie with the node that made them ----


@pytest.mark.net
@pytest.mark.parametrize("local", [True, False], ids=["local chain", "any other"])
def test_gather__state_in_its_nodes_store_alone__comes_from_the_gateway_that_it_names(
    rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, local: bool
) -> None:
    """However long this machine's own store searches for it. On no other chain is a port of this machine asked."""
    saved = Saved(1, NodeId(9), 5, state(rig, tmp_path, "2 00000000000000aa 1 2\n"))
    theirs, get = MemoryStore(), rig.store.get_block
    for cid, block in unixfs.blocks_of(cids.of_root(saved.root), rig.store):
        theirs.put_block(block, cid.codec)

    def search(cid: Any, timeout: float = 0) -> bytes:
        if theirs.has(cid):
            time.sleep(timeout)
            raise StoreDown("nowhere")
        return get(cid, timeout)

    monkeypatch.setattr(rig.store, "get_block", search)
    asked: list[NodeId] = []
    with GatewayServer(theirs) as server:
        urls = (server.url.removeprefix("gateway+"),)
        rig.means.local = local
        rig.executor.gateways_of(lambda node: asked.append(node) or (urls if node == 9 else ()))
        rig.executor.gather(Task(NEXT, count(rig, 3, "1000"), 8, 0.0, states=(saved,)))
        wait(lambda: any(one.stage is Stage.GATHERED for one in rig.executor.ahead()))
    assert [one.resumes for one in rig.executor.ahead()] == [1 if local else 0]
    assert asked == [9] and rig.executor.tally.unusable == (0 if local else 1)
