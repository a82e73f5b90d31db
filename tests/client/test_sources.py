"""The sources of a job: a module is looked into before anything is stored, wherever it lies."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest
import wasmtime

from hearth.base.errors import SpecError
from hearth.client.posting.sources import Sources
from hearth.protocol import runtimes
from hearth.protocol.wasi import MAX_MODULE_BYTES
from hearth.spec import spec_from
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
