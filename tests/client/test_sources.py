"""The sources of a job: a module is looked into before anything is stored, wherever it lies."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import MappingProxyType, SimpleNamespace

import pytest
import wasmtime

from hearth.base.errors import BlockMissing, SpecError
from hearth.client.posting.preflight import Preflight
from hearth.client.posting.sources import Sources
from hearth.protocol import runtimes
from hearth.protocol.wasi import MAX_MODULE_BYTES
from hearth.spec import Blob, spec_from, spec_of
from hearth.storage.stores import MemoryStore

GOOD = bytes(wasmtime.wat2wasm('(module (memory (export "memory") 1) (func (export "_start")))'))
PAGE = 65_536


@pytest.fixture(params=["path", "ipfs"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(request.param)


def _check(place: str, folder: Path, memory: int = PAGE) -> None:
    """Look into folder/module as a job file in `folder` would name it."""
    store = MemoryStore()
    src = "./module" if place == "path" else f"ipfs://{store.add_path(folder / 'module').cid}"
    held = len(store.blocks)
    sources = Sources(spec_from({"module": src}, folder=folder), store, folder)
    sources.name(src, field="module", workdir=False)
    try:
        sources.check_program(memory)
    finally:
        assert len(store.blocks) == held


def test_name__cid_that_no_store_has__is_told_with_its_file_line_and_field(tmp_path: Path) -> None:
    (tmp_path / "module").write_bytes(GOOD)
    gone = MemoryStore().add_bytes(b"elsewhere").cid
    file = tmp_path / "job.yaml"
    file.write_text(
        "version: 1\nmodule: ./module\ninputs:\n- {src: ./module, dst: /in/a}\n"
        f'- {{src: "ipfs://{gone}", dst: /in/b}}\n'
        'price: {max_rate: "1/h"}\n'
    )
    preflight = Preflight(SimpleNamespace(session=SimpleNamespace(store=MemoryStore(), tell=lambda *_: None)))  # type: ignore[arg-type]
    with pytest.raises(BlockMissing) as caught:
        preflight._read(spec_of(file, None), tmp_path)
    error = caught.value
    assert error.message.startswith(f"{file}:5: inputs[1].src: ") and str(gone) in error.message
    assert (error.details["line"], error.details["field"], error.exit_code) == (5, "inputs[1].src", 9)
    assert "correct the CID" in error.hint


@pytest.mark.parametrize("where", ["paths", "stored", "both"])
@pytest.mark.parametrize("entries", [7, 8])
def test_name__files_and_folders_of_all_sources__are_counted_as_a_worker_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, entries: int
) -> None:
    monkeypatch.setattr("hearth.client.posting.sources.MAX_INPUT_ENTRIES", 7)
    store, srcs = MemoryStore(), []
    for name, count in (("a", 1), ("b", entries - 6)):
        (tmp_path / name / "empty").mkdir(parents=True)
        for number in range(count):
            (tmp_path / name / f"{number}").touch()
        stored = where == "stored" or (where == "both" and name == "a")
        srcs.append(f"ipfs://{store.add_path(tmp_path / name).cid}" if stored else f"./{name}")
    (tmp_path / "module").write_bytes(GOOD)
    inputs = [{"src": src, "dst": f"/in/{number}"} for number, src in enumerate(srcs)]
    sources = Sources(spec_from({"module": "./module", "inputs": inputs}, folder=tmp_path), store, tmp_path)

    def name_all() -> None:
        for src in ("./module", *srcs):
            sources.name(src, field="inputs", workdir=False)

    if entries == 7:
        name_all()
        return
    with pytest.raises(SpecError) as refused:
        name_all()
    assert refused.value.code == "TOO_MANY_FILES" and "more than 7 files and folders" in refused.value.message
    assert "archive" in refused.value.hint


def test_name__cid_of_version_0__is_the_same_block_in_the_spelling_of_specs(tmp_path: Path) -> None:
    """What `ipfs add` prints by default."""
    store = MemoryStore()
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "x").write_bytes(b"x")
    root = store.add_path(tmp_path / "data").cid
    sources = Sources(spec_from({"module": "./module"}, folder=tmp_path), store, tmp_path)
    blob = sources.name(f"ipfs://{replace(root, version=0)}", field="inputs", workdir=False)
    assert str(replace(root, version=0)).startswith("Qm") and blob == Blob(cid=str(root), size=1)


def test_check_program__good__passes(place: str, tmp_path: Path) -> None:
    (tmp_path / "module").write_bytes(GOOD)
    _check(place, tmp_path)


def test_check_program__no_module__refused(place: str, tmp_path: Path) -> None:
    (tmp_path / "module").write_text("print('hello')\n")
    with pytest.raises(SpecError) as refused:
        _check(place, tmp_path)
    assert refused.value.code == "NO_WASM"


def test_check_program__module_of_a_runtime_without_webassembly__is_not_read_as_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = replace(runtimes.WASM, webassembly=False)
    monkeypatch.setattr(runtimes, "RUNTIMES", MappingProxyType({**runtimes.RUNTIMES, kind.name: kind}))
    (tmp_path / "module").write_text("print('hello')\n")
    _check("path", tmp_path)


def test_check_program__more_memory_than_asked__refused(place: str, tmp_path: Path) -> None:
    (tmp_path / "module").write_bytes(GOOD)
    with pytest.raises(SpecError) as refused:
        _check(place, tmp_path, PAGE - 1)
    assert (refused.value.code, refused.value.details["field"]) == ("MEMORY_SHORT", "resources.memory")


def test_check_program__folder__refused(place: str, tmp_path: Path) -> None:
    (tmp_path / "module").mkdir()
    (tmp_path / "module" / "a.wasm").write_bytes(GOOD)
    with pytest.raises(SpecError, match="is a folder") as refused:
        _check(place, tmp_path)
    assert refused.value.code == "NO_WASM"


def test_check_program__too_large__refused_before_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (tmp_path / "module").open("wb") as file:
        file.truncate(MAX_MODULE_BYTES + 1)
    monkeypatch.setattr(Path, "read_bytes", lambda path: pytest.fail("it was read"))
    with pytest.raises(SpecError) as refused:
        _check("path", tmp_path)
    assert refused.value.code == "MODULE_TOO_LARGE"
