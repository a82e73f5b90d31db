"""worker.attempt.fetch: what a job needs comes whole and checked, or is refused, or broken, or stopped."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from hearth.base.errors import BadDocument, BlockMissing, StorageError
from hearth.jobfile import Blob, needs_of
from hearth.jobfile.resolved import ResolvedInput
from hearth.protocol.gpu_tiers import TIERS
from hearth.protocol.types import Outcome, Runtime
from hearth.storage import cid as cids
from hearth.storage.cid import Cid
from hearth.storage.stores import Chain, FolderStore, GatewayStore, Store
from hearth.storage.unixfs import Link, encode_directory
from tests.storage.test_stores_gateway import hostile, send
from tests.worker.attempt.jobs import Jobs
from worker.attempt import fetch, supply
from worker.attempt.fetch import Fetch, check_terms, read_spec
from worker.attempt.folder import Folder
from worker.attempt.supply import Supply
from worker.attempt.task import RETRY_SECONDS, Bounds, Broken, Pace, Progress, Refused, Stopped


def fetching(store: Store, seconds: float = 60, bounds: Bounds | None = None) -> Fetch:
    return Fetch(store, Progress(), time.monotonic() + seconds, threading.Event(), bounds or Bounds())


# ---- for decisions ----


def test_read_spec__good_job__tells_what_a_decision_needs(jobs: Jobs) -> None:
    facts = read_spec(jobs.store, jobs.terms(jobs.spec("env")), 5)
    assert (facts.runtime, facts.target, facts.output_bytes, facts.bad) == ("wasm", str(jobs.module.cid), 1 << 20, "")


def test_read_spec__store_without_it__raises_so_that_it_is_asked_again(jobs: Jobs) -> None:
    with pytest.raises(BlockMissing):
        read_spec(jobs.store, jobs.terms_only(b"\x01" * 32, jobs.spec("env")), 5)


@pytest.mark.parametrize("change", ["cores", "ram_gib", "disk_gib"])
def test_read_spec__asks_more_than_its_terms_pay__is_bad(jobs: Jobs, change: str) -> None:
    terms = jobs.terms(jobs.spec("env"))
    cheap = replace(terms, needs=replace(terms.needs, **{change: getattr(terms.needs, change) - 1}))
    assert change in read_spec(jobs.store, cheap, 5).bad
    assert read_spec(jobs.store, terms, 5).bad == ""


@pytest.mark.parametrize("changes", [{"max_seconds": 21}, {"units": 2}])
def test_check_terms__times_or_units_differ__is_refused(jobs: Jobs, changes: dict[str, Any]) -> None:
    spec = jobs.spec("env")
    with pytest.raises(BadDocument, match="times or units"):
        check_terms(spec, jobs.terms(spec, **changes))


@pytest.mark.parametrize(
    ("asked", "paid"),
    [
        ({"exact": True}, {"exact": False}),
        ({"exact": False}, {"exact": True}),
        ({"exact": True}, {"exact": True, "tier": TIERS["h100"]}),
        ({"vendor": "amd", "tier": "mi210"}, {}),
        ({"vendor": "amd", "tier": ""}, {}),
    ],
    ids=["exact unpaid", "exact unasked", "another tier", "AMD's by NVIDIA's terms", "AMD's, any"],
)
def test_check_terms__other_gpu_than_its_terms_name__is_refused(
    jobs: Jobs, asked: dict[str, Any], paid: dict[str, Any]
) -> None:
    gpu = {"gpus": 1, "vendor": "nvidia", "tier": "rtx-4090", "exact": False, **asked}
    env = jobs.spec("env")
    spec = env.model_copy(update={"resources": env.resources.model_copy(update=gpu)})
    needs = needs_of(spec.resources, spec.runtime)
    terms = replace(jobs.terms(env), needs=needs)
    check_terms(spec, terms)
    needs = replace(needs, runtimes=Runtime.WASM | Runtime.NVIDIA, **{"tier": TIERS["rtx-4090"], **paid})
    with pytest.raises(BadDocument, match=r"which GPU it must be|the spec needs|the spec asks for tier"):
        check_terms(spec, replace(terms, needs=needs))


def absent(name: str = "absent", dst: str = "/in/data.txt") -> ResolvedInput:
    """Return an input that no store has."""
    return ResolvedInput(cid=str(cids.of(name.encode())), dst=dst, size=len(name))


@pytest.mark.parametrize("what", ["module", "workdir", "inputs"])
def test_read_spec__data_that_is_nowhere__is_seen_before_a_bond_is_risked(jobs: Jobs, what: str) -> None:
    gone = absent()
    blob = Blob(cid=gone.cid, size=gone.size)
    terms = jobs.terms(jobs.spec("env", **{what: (gone,) if what == "inputs" else blob}))
    with pytest.raises(StorageError, match=gone.cid) as caught:
        read_spec(jobs.store, terms, 5)
    assert (caught.value.code, caught.value.retryable) == ("BLOCK_MISSING", True)
    name = {"module": "the module", "workdir": "the working directory", "inputs": "/in/data.txt"}[what]
    assert caught.value.message.startswith(f"{name} ({gone.cid}) cannot be had: ")


def test_read_spec__look_at_the_data__reads_little_of_it_and_nodes_first(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = [jobs.store.add_bytes(bytes([number]) * 2**20) for number in range(8)]
    tree = jobs.store.add_bytes(bytes(3 * 2**20))
    inputs = [
        ResolvedInput(cid=str(entry.cid), dst=f"/in/{number}", size=entry.size)
        for number, entry in enumerate([*raw, tree])
    ]
    terms = jobs.terms(jobs.spec("env", inputs=tuple(inputs)))
    asked: list[Cid] = []
    read = FolderStore.get_block

    def note(self: FolderStore, cid: Cid, timeout: float = 60.0) -> bytes:
        asked.append(cid)
        return read(self, cid, timeout)

    monkeypatch.setattr(FolderStore, "get_block", note)
    read_spec(jobs.store, terms, 20)
    # The spec, then nodes by size, then what is small, then 4 MiB of leaves and no more.
    assert set(asked[1:3]) == {jobs.code.cid, tree.cid}
    assert asked[3] == jobs.module.cid
    assert len([cid for cid in asked if cid in [entry.cid for entry in raw]]) == 4


# ---- the spec ----


def test_spec__good_job__is_returned(jobs: Jobs) -> None:
    spec = jobs.spec("env")
    assert fetching(jobs.store).spec(jobs.terms(spec)) == spec


@pytest.mark.parametrize(("spare", "taken"), [(0, True), (-1, False)])
@pytest.mark.parametrize("side", ["max_input", "max_output"])
def test_spec__larger_than_this_machine_takes__is_refused(jobs: Jobs, side: str, spare: int, taken: bool) -> None:
    spec = jobs.spec("env")
    size = {"max_input": spec.download_bytes, "max_output": spec.output_bytes}[side]
    limited = Bounds(**{side: size + spare})
    if taken:
        assert fetching(jobs.store, bounds=limited).spec(jobs.terms(spec)) == spec
        return
    with pytest.raises(Refused, match="larger than this worker takes") as refused:
        fetching(jobs.store, bounds=limited).spec(jobs.terms(spec))
    assert refused.value.outcome is Outcome.BAD_INPUT


def test_spec__no_time_left__is_refused_without_asking(jobs: Jobs) -> None:
    with pytest.raises(Refused, match="the spec did not arrive in time"):
        fetching(jobs.store, seconds=0).spec(jobs.terms(jobs.spec("env")))


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
        fetching(jobs.store, seconds=RETRY_SECONDS).data(jobs.spec("env", inputs=(absent,)), folder)
    assert time.monotonic() - began < RETRY_SECONDS


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
    monkeypatch.setattr(supply, "RETRY_SECONDS", 0.01)
    path = _block(jobs.store.root, jobs.data.cid)
    aside = path.rename(path.with_suffix(".aside"))
    stage = fetching(jobs.store)
    threading.Timer(0.05, aside.rename, [path]).start()
    stage.data(jobs.spec("env"), folder)
    assert stage.progress.done == stage.progress.total


@pytest.mark.net
def test_data__gateway_that_lies_beside_a_store_that_comes_back__gives_no_lease_back(
    jobs: Jobs, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supply, "RETRY_SECONDS", 0.01)
    path = _block(jobs.store.root, jobs.data.cid)
    aside = path.rename(path.with_suffix(".aside"))
    with hostile(lambda handler: send(handler, 200, b"lies")) as url:
        stage = fetching(Chain([jobs.store, GatewayStore(url)]))
        threading.Timer(0.2, aside.rename, [path]).start()
        stage.data(jobs.spec("env"), folder)
    assert stage.progress.done == stage.progress.total


# ---- data that does not come ----


def test_data__input_that_is_nowhere__is_waited_for_one_window_and_named(
    jobs: Jobs, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supply, "RETRY_SECONDS", 0.05)
    gone = absent()
    bounds = Bounds(pace=Pace(window=0.5))
    began = time.monotonic()
    with pytest.raises(Refused) as refused:
        fetching(jobs.store, 8, bounds).data(jobs.spec("env", inputs=(gone,)), folder)
    assert 0.4 < time.monotonic() - began < 6
    assert refused.value.outcome is Outcome.BAD_INPUT
    # What is published names the data and what was asked, and nothing of this machine.
    assert refused.value.why.startswith(
        f"/in/data.txt ({gone.cid}) cannot be fetched: a folder gave no block {gone.cid}"
    )
    assert str(jobs.store.root) in refused.value.inside
    assert str(jobs.store.root) not in refused.value.why
    assert not (folder.inputs / "data.txt").exists()


@pytest.mark.net
def test_data__store_that_drips__is_given_up_after_a_window_of_too_little(jobs: Jobs, folder: Folder) -> None:
    tree = _tree_of(jobs, files=60)
    spec = jobs.spec("env", inputs=(tree,))

    def slowly(pause: float) -> Callable[[BaseHTTPRequestHandler], None]:
        def answer(handler: BaseHTTPRequestHandler) -> None:
            time.sleep(pause)
            name = urlsplit(handler.path).path.removeprefix("/ipfs/")
            send(handler, 200, jobs.store.get_block(cids.parse(name)))

        return answer

    # 8 blocks in a window are asked for; they come at one a second.
    pace = Pace(window=2.0, floor=8 * supply.BLOCK_WORTH)
    with hostile(slowly(1.0)) as url:
        began = time.monotonic()
        with pytest.raises(Refused, match=r"/in/tree .*comes too slowly: a gateway of its own gave less than 128 ?KiB"):
            fetching(GatewayStore(url), 60, Bounds(pace=pace)).data(spec, folder)
        assert time.monotonic() - began < 15
    folder.renew()
    with hostile(slowly(0)) as url:
        fetching(GatewayStore(url), 3600, Bounds(pace=pace)).data(spec, folder)
    assert len(list((folder.inputs / "tree").iterdir())) == 60


def test_supply__time_that_this_machine_takes__is_not_the_stores(jobs: Jobs) -> None:
    asked = Supply(jobs.store, time.monotonic() + 60, threading.Event(), Pace(window=1.0, floor=1 << 30))
    for _ in range(5):
        asked.get_block(jobs.data.cid)
        time.sleep(0.3)


@pytest.mark.net
def test_supply__error_that_names_a_store__stays_inside(jobs: Jobs, folder: Folder) -> None:
    _block(jobs.store.root, jobs.data.cid).write_bytes(b"spoilt")
    with hostile(lambda handler: send(handler, 200, bytes(cids.MAX_BLOCK_BYTES + 1))) as url:
        # A chain says of each of its stores what it did.
        chain = Chain([jobs.store, GatewayStore(url)])
        with pytest.raises(Refused) as refused:
            fetching(chain).data(jobs.spec("env"), folder)
    assert "BLOCK_CORRUPT" in refused.value.why
    assert url in refused.value.inside
    assert url not in refused.value.why


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("folder:///home/alice/store", "a folder"),
        ("kubo://10.0.0.7:5001", "a Kubo node"),
        ("gateway+https://ipfs.io", "the gateway ipfs.io"),
        ("gateway+http://nas.local:8080", "a gateway of its own"),
        ("gateway+http://10.0.0.7:8080/path", "a gateway of its own"),
    ],
)
def test_name_of__store__says_its_kind_and_no_place_inside(url: str, name: str) -> None:
    assert supply.name_of(url) == name


# ---- too many files ----


def _tree_of(jobs: Jobs, *, files: int, dst: str = "/in/tree", empty: bool = False) -> ResolvedInput:
    """Store a folder of small files, or of empty ones, which are all the same block."""
    links = []
    for number in range(files):
        entry = jobs.store.add_bytes(b"" if empty else f"{dst} {number}".encode())
        links.append(Link(entry.cid, f"f{number:04}".encode(), entry.tsize))
    block = encode_directory(links)
    cid = jobs.store.put_block(block, cids.DAG_PB)
    return ResolvedInput(cid=str(cid), dst=dst, size=0 if empty else sum(link.tsize for link in links))


@pytest.mark.parametrize(("limit", "taken"), [(16, True), (15, False)])
@pytest.mark.parametrize("empty", [True, False])
def test_data__files_and_folders_of_all_inputs_together__are_bounded_before_one_is_made(
    jobs: Jobs, folder: Folder, monkeypatch: pytest.MonkeyPatch, limit: int, taken: bool, empty: bool
) -> None:
    # The module 1, the working directory 2, two folders with 5 and 6 files: 16.
    inputs = (_tree_of(jobs, files=5, dst="/in/a", empty=empty), _tree_of(jobs, files=6, dst="/in/b", empty=empty))
    monkeypatch.setattr(fetch, "MAX_INPUT_ENTRIES", limit)
    stage = fetching(jobs.store)
    if taken:
        stage.data(jobs.spec("env", inputs=inputs), folder)
        assert len(list(folder.inputs.rglob("*"))) == 13
        return
    with pytest.raises(Refused, match="more than 15 files and folders; pack them") as refused:
        stage.data(jobs.spec("env", inputs=inputs), folder)
    assert refused.value.outcome is Outcome.BAD_INPUT
    assert list(folder.path.iterdir()) == []


def test_data__folders_of_the_same_folders__are_refused_at_once_and_cost_no_inode(
    jobs: Jobs, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "MAX_INPUT_ENTRIES", 5000)
    empty = jobs.store.add_bytes(b"")
    cid, size = empty.cid, 0
    for _ in range(4):
        # 1,000 names of one thing: four levels of them are 10^12 files in 200 kB.
        block = encode_directory([Link(cid, f"{number}".encode(), size) for number in range(1000)])
        cid = jobs.store.put_block(block, cids.DAG_PB)
    bomb = ResolvedInput(cid=str(cid), dst="/in/bomb", size=1)
    with pytest.raises(Refused, match="more than 5000 files and folders"):
        fetching(jobs.store).data(jobs.spec("env", inputs=(bomb,)), folder)
    assert list(folder.path.iterdir()) == []


def _block(root: Path, cid: Cid) -> Path:
    name = cid.digest.hex()
    return root / "blocks" / name[:2] / name
