"""worker.attempt.fetch: what a job needs comes whole and checked, or is refused, or broken, or stopped."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hearth.base.errors import BadDocument, BlockMissing
from hearth.protocol.types import Outcome
from hearth.spec import Blob
from hearth.spec.resolved import ResolvedInput
from hearth.storage import cid as cids
from hearth.storage.cid import Cid
from hearth.storage.stores import FolderStore
from tests.worker.attempt.jobs import Jobs
from worker.attempt import fetch
from worker.attempt.fetch import Fetch, check_terms, read_spec
from worker.attempt.folder import Folder
from worker.attempt.task import Bounds, Broken, Progress, Refused, Stopped


def fetching(store: FolderStore, seconds: float = 60) -> Fetch:
    return Fetch(store, Progress(), time.monotonic() + seconds, threading.Event())


# ---- for decisions ----


def test_read_spec__good_job__tells_what_a_decision_needs(jobs: Jobs) -> None:
    facts = read_spec(jobs.store, jobs.terms(jobs.spec("env")), {}, 5)
    assert (facts.runtime, facts.target, facts.output_bytes, facts.bad) == ("wasm", str(jobs.module.cid), 1 << 20, "")


def test_read_spec__store_without_it__raises_so_that_it_is_asked_again(jobs: Jobs) -> None:
    with pytest.raises(BlockMissing):
        read_spec(jobs.store, jobs.terms_only(b"\x01" * 32, jobs.spec("env")), {}, 5)


@pytest.mark.parametrize("change", ["cores", "ram_gib", "disk_gib"])
def test_read_spec__asks_more_than_its_terms_pay__is_bad(jobs: Jobs, change: str) -> None:
    terms = jobs.terms(jobs.spec("env"))
    cheap = replace(terms, needs=replace(terms.needs, **{change: getattr(terms.needs, change) - 1}))
    assert change in read_spec(jobs.store, cheap, {}, 5).bad
    assert read_spec(jobs.store, terms, {}, 5).bad == ""


@pytest.mark.parametrize("changes", [{"max_seconds": 21}, {"units": 2}])
def test_check_terms__times_or_units_differ__is_refused(jobs: Jobs, changes: dict[str, Any]) -> None:
    spec = jobs.spec("env")
    with pytest.raises(BadDocument, match="times or units"):
        check_terms(spec, jobs.terms(spec, **changes), {})


# ---- the spec ----


def test_spec__good_job__is_returned(jobs: Jobs) -> None:
    spec = jobs.spec("env")
    assert fetching(jobs.store).spec(jobs.terms(spec), {}, Bounds()) == spec


@pytest.mark.parametrize(("spare", "taken"), [(0, True), (-1, False)])
@pytest.mark.parametrize("side", ["max_input", "max_output"])
def test_spec__larger_than_this_machine_takes__is_refused(jobs: Jobs, side: str, spare: int, taken: bool) -> None:
    spec = jobs.spec("env")
    size = {"max_input": spec.download_bytes, "max_output": spec.output_bytes}[side]
    limited = Bounds(**{side: size + spare})
    if taken:
        assert fetching(jobs.store).spec(jobs.terms(spec), {}, limited) == spec
        return
    with pytest.raises(Refused, match="larger than this worker takes") as refused:
        fetching(jobs.store).spec(jobs.terms(spec), {}, limited)
    assert refused.value.outcome is Outcome.BAD_INPUT


def test_spec__no_time_left__is_refused_without_asking(jobs: Jobs) -> None:
    with pytest.raises(Refused, match="the spec did not arrive in time"):
        fetching(jobs.store, seconds=0).spec(jobs.terms(jobs.spec("env")), {}, Bounds())


# ---- the data ----


def test_data__good_job__fills_the_folder_and_counts_its_bytes(jobs: Jobs, folder: Folder) -> None:
    stage = fetching(jobs.store)
    stage.data(jobs.spec("env"), folder)
    assert sorted(path.name for path in folder.path.iterdir()) == ["in", "job", "module", "out"]
    assert (folder.inputs / "data.txt").read_bytes() == b"rows\n"
    assert (folder.job / "code.txt").read_bytes() == b"code"
    assert folder.module.stat().st_size == jobs.module.size
    assert list(folder.outputs.iterdir()) == []
    total = jobs.module.size + jobs.data.size + jobs.code.size
    assert (stage.progress.done, stage.progress.total) == (total, total)


def test_data__container_without_inputs__has_empty_folders(jobs: Jobs, folder: Folder) -> None:
    fetching(jobs.store).data(jobs.spec(runtime="docker", module=None, workdir=None, inputs=()), folder)
    assert sorted(path.name for path in folder.path.iterdir()) == ["in", "job", "out"]


def test_data__module_that_is_a_folder__is_refused(jobs: Jobs, folder: Folder) -> None:
    spec = jobs.spec("env", module=Blob(cid=str(jobs.code.cid), size=jobs.code.size))
    with pytest.raises(Refused, match="the module is a folder"):
        fetching(jobs.store).data(spec, folder)


def test_data__one_byte_more_than_the_spec_says__is_refused(jobs: Jobs, folder: Folder) -> None:
    small = ResolvedInput(cid=str(jobs.data.cid), dst="/in/data.txt", size=jobs.data.size - 1)
    with pytest.raises(Refused, match=r"/in/data\.txt"):
        fetching(jobs.store).data(jobs.spec("env", inputs=(small,)), folder)
    assert not (folder.inputs / "data.txt").exists()


def test_data__disk_that_is_in_the_way__is_this_machines_fault(jobs: Jobs, folder: Folder) -> None:
    folder.module.mkdir()
    (folder.module / "left").write_bytes(b"over")
    with pytest.raises(Broken):
        fetching(jobs.store).data(jobs.spec("env"), folder)


def test_data__block_that_nobody_has__is_refused_when_no_second_try_fits(jobs: Jobs, folder: Folder) -> None:
    absent = ResolvedInput(cid=str(cids.of(b"absent")), dst="/in/data.txt", size=6)
    began = time.monotonic()
    with pytest.raises(Refused, match="cannot be fetched"):
        fetching(jobs.store, seconds=fetch.RETRY_SECONDS).data(jobs.spec("env", inputs=(absent,)), folder)
    assert time.monotonic() - began < fetch.RETRY_SECONDS


def test_data__stop_in_the_middle__ends_it_and_leaves_no_half_file(
    jobs: Jobs, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = fetching(jobs.store)
    read = FolderStore.get_block

    def stop_at_the_data(self: FolderStore, cid: Cid, timeout: float = 60.0) -> bytes:
        if cid == jobs.data.cid:
            stage.stop.set()
        return read(self, cid, timeout)

    monkeypatch.setattr(FolderStore, "get_block", stop_at_the_data)
    with pytest.raises(Stopped):
        stage.data(jobs.spec("env"), folder)
    assert list(folder.inputs.iterdir()) == []


def test_data__store_that_comes_back__is_asked_again_and_counts_once(
    jobs: Jobs, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "RETRY_SECONDS", 0.01)
    path = _block(jobs.store.root, jobs.data.cid)
    aside = path.rename(path.with_suffix(".aside"))
    stage = fetching(jobs.store)
    threading.Timer(0.05, aside.rename, [path]).start()
    stage.data(jobs.spec("env"), folder)
    assert stage.progress.done == stage.progress.total


def _block(root: Path, cid: Cid) -> Path:
    name = cid.digest.hex()
    return root / "blocks" / name[:2] / name
