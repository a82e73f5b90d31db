"""The sources of a job: a module is looked into before anything is stored, wherever it lies."""

from __future__ import annotations

import os
import stat
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest
import wasmtime

from hearth.base import fetch as fetching
from hearth.base.errors import BlockMissing, HearthError, NotFoundError, SpecError, StorageError, UnsafePath
from hearth.client.posting.preflight import Preflight
from hearth.client.posting.sources import COMMAND_LINE, NOTHING_MORE, Allowed, Sources
from hearth.config.settings import Settings
from hearth.jobfile import Blob, spec_from, spec_of
from hearth.local.project import convert_file
from hearth.protocol import runtimes
from hearth.protocol.wasi import MAX_MODULE_BYTES
from hearth.storage import unixfs
from hearth.storage.stores import MemoryStore
from tests.kit.http import answering, send

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


def _preflight(seconds: int = 600) -> Preflight:
    settings = SimpleNamespace(timeout=seconds, own=())
    session = SimpleNamespace(store=MemoryStore(), tell=lambda *_: None, settings=settings)
    return Preflight(SimpleNamespace(session=session))  # type: ignore[arg-type]


def test_name__cid_that_no_store_has__is_told_with_its_file_line_and_field(tmp_path: Path) -> None:
    (tmp_path / "module").write_bytes(GOOD)
    gone = MemoryStore().add_bytes(b"elsewhere").cid
    file = tmp_path / "job.yaml"
    file.write_text(
        "version: 1\nmodule: ./module\ninputs:\n- {src: ./module, dst: /in/a}\n"
        f'- {{src: "ipfs://{gone}", dst: /in/b}}\n'
        'price: {max_rate: "1/h"}\n'
    )
    with pytest.raises(BlockMissing) as caught:
        _preflight()._read(spec_of(file, None), NOTHING_MORE, tmp_path)
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
    (tmp_path / "module").touch()
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "x").write_bytes(b"x")
    root = store.add_path(tmp_path / "data").cid
    sources = Sources(spec_from({"module": "./module"}, folder=tmp_path), store, tmp_path)
    blob = sources.name(f"ipfs://{replace(root, version=0)}", field="inputs", workdir=False)
    assert str(replace(root, version=0)).startswith("Qm") and blob == Blob(cid=str(root), size=1)


@pytest.mark.parametrize(
    ("path", "content"),
    [
        *(("a b/ü", b"plain"), ("a%20b/%C3%BC", b"plain"), ("a%20b/ü", b"plain"), ("c%2520d/x", b"as it stands")),
        *(("c%20d/x", b"as it stands"), ("100%/x", b"a percent"), ("100%25/x", b"a percent")),
        *(("a%20b%2F%C3%BC", None), ("a%20b%zz", None), ("c d/x", None)),
    ],
)
def test_name__path_in_a_cid__is_found_as_it_stands_or_as_a_url_writes_it(
    tmp_path: Path, path: str, content: bytes | None
) -> None:
    for name, held in (("a b/ü", b"plain"), ("c%20d/x", b"as it stands"), ("100%/x", b"a percent")):
        (tmp_path / "tree" / name).parent.mkdir(parents=True)
        (tmp_path / "tree" / name).write_bytes(held)
    store = MemoryStore()
    (tmp_path / "module").touch()
    root = store.add_path(tmp_path / "tree").cid
    sources = Sources(spec_from({"module": "./module"}, folder=tmp_path), store, tmp_path)
    if content is None:
        with pytest.raises(NotFoundError, match="has no entry") as refused:
            sources.name(f"ipfs://{root}/{path}", field="inputs", workdir=False)
        assert "inputs: " in refused.value.message
        return
    blob = sources.name(f"ipfs://{root}/{path}", field="inputs", workdir=False)
    assert blob.cid == str(MemoryStore().add_bytes(content).cid)


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


# ---- what lies outside the job file's folder ----

SECRET = b"what nobody else may read"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cloned job beside somebody's own files: home/project, home/private/diary."""
    home = tmp_path / "home"
    clone = home / "project"
    (clone / "inner").mkdir(parents=True)
    (home / "private").mkdir()
    (home / "private" / "diary").write_bytes(SECRET)
    (clone / "module").write_bytes(GOOD)
    (clone / "inner" / "plain").write_bytes(b"plain")
    for link, target in (
        ("above", "../private"),
        ("twice", "above"),
        ("key", "../private/diary"),
        ("whole", str(home / "private" / "diary")),
        ("process", "/proc/self"),
        ("inside", "inner"),
        ("plainly", "inner/plain"),
        ("round", "round"),
        ("nowhere", "../gone"),
    ):
        (clone / link).symlink_to(target)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(clone)
    return clone


def _brought(
    project: Path, *srcs: str, allowed: Allowed = NOTHING_MORE, name: str = "job.yaml", workdir: str | None = None
) -> tuple[Sources, MemoryStore]:
    """Name and store what a job of these inputs brings."""
    store = MemoryStore()
    inputs = [{"src": src, "dst": f"/in/{number}"} for number, src in enumerate(srcs)]
    data = {"module": "./module", "inputs": inputs, **({"workdir": workdir} if workdir else {})}
    sources = Sources(spec_from(data, name, folder=project), store, project.parent, allowed=allowed)
    for src in srcs:
        sources.name(src, field="inputs", workdir=False)
        sources.store(src, workdir=False, progress=lambda *_: None)
    return sources, store


OUTSIDE = (
    *("~/private", "~/private/diary", "../private/diary", "inner/../../private", "above/diary", "above", "twice/diary"),
    *(
        "key",
        "whole",
        "./inner/../key",
        "process/environ",
        "process/cwd/../private",
        "/proc/self/environ",
        "/etc/passwd",
    ),
    *("..", "/", "~"),
)


@pytest.mark.parametrize("src", OUTSIDE)
def test_sources__path_that_leads_outside__is_refused_by_its_real_name(project: Path, src: str) -> None:
    with pytest.raises(SpecError) as refused:
        _brought(project, src)
    error = refused.value
    assert (error.code, error.exit_code, error.details["field"]) == ("OUTSIDE", 2, "inputs[0].src")
    assert "--allow-outside" in error.hint
    called = f" {src} lies " if src in ("/", "/etc/passwd") else f" {src} is /"
    assert called in error.message and error.message.count("/etc/passwd") == (src == "/etc/passwd")


def test_sources__several_outside__are_all_listed_before_any_is_read(project: Path) -> None:
    with pytest.raises(SpecError) as refused:
        _brought(project, "http://127.0.0.1:9/x", "above/diary", "plainly", workdir="~/private")
    assert [one["field"] for one in refused.value.details["problems"]] == ["workdir", "inputs[1].src"]
    sources, store = _brought(project, "above/diary", "plainly", allowed=Allowed(outside=True))
    assert sources.lines == [f"takes {project.parent / 'private' / 'diary'}, from outside {project} (--allow-outside)"]
    assert SECRET in store.blocks.values()


@pytest.mark.parametrize("src", ["inner", "inside/plain", "plainly", "./inner/../plainly", "inside", ".", "{}/inner"])
def test_sources__path_that_stays_inside__is_taken_without_a_word(project: Path, src: str) -> None:
    for link in ("above", "twice", "key", "whole", "process", "round", "nowhere", "inside", "plainly"):
        if src == ".":
            (project / link).unlink()
    sources, store = _brought(project, src.format(project))
    assert sources.lines == [] and b"plain" in store.blocks.values() and SECRET not in store.blocks.values()


def test_sources__project_behind_a_link__is_where_it_leads(project: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(project)
    assert _brought(tmp_path / "link", "inside/plain")[0].lines == []
    with pytest.raises(SpecError):
        _brought(tmp_path / "link", "key")


@pytest.mark.parametrize("src", ["round", "nowhere", "gone", "inner/plain/x", "~nobody-here/x"])
def test_sources__path_that_leads_nowhere__is_no_source(project: Path, src: str) -> None:
    with pytest.raises(SpecError) as refused:
        _brought(project, src)
    assert refused.value.code == "NO_SOURCE"


def test_sources__file_that_goes_while_it_is_read__is_named_once(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only what was found inside a folder is said to be "in" the source."""

    def gone(*_: object, **__: object) -> None:
        raise NotFoundError("module is not there")

    monkeypatch.setattr(unixfs, "name_path", gone)
    with pytest.raises(NotFoundError) as refused:
        _brought(project, "module")
    assert refused.value.message == "job.yaml: inputs: module is not there"


def test_sources__folder_with_a_link_in_it__is_refused_and_the_hint_helps(project: Path) -> None:
    (project / "inner" / "link").symlink_to("../../private")
    with pytest.raises(UnsafePath) as refused:
        _brought(project, "inner")
    assert ".hearthignore" not in refused.value.hint
    workdir = Sources(spec_from({"module": "module", "workdir": "inner"}, folder=project), MemoryStore(), project)
    with pytest.raises(UnsafePath) as refused:
        workdir.name("inner", field="workdir", workdir=True)
    assert refused.value.message.startswith("command line: workdir: in inner, link is a symbolic link;")
    assert ".hearthignore" in refused.value.hint
    (project / "inner" / ".hearthignore").write_text("link\n")
    assert workdir.name("inner", field="workdir", workdir=True).size == 5


def test_sources__path_that_the_command_names__is_confirmed_and_told(project: Path) -> None:
    for src in ("~/private/diary", "../private/diary", f"{project.parent}/private"):
        sources, store = _brought(project, src, name=COMMAND_LINE)
        assert SECRET in store.blocks.values()
        (line,) = sources.lines
        assert line.startswith(f"takes {project.parent}/private") and "the command names it" in line
    assert _brought(project, "./inner/../inner/plain", f"{project}/inner", name=COMMAND_LINE)[0].lines == []


@pytest.mark.parametrize(
    ("folder", "src"),
    [
        *((".", "key"), (".", "above/diary"), (".", "{}/key"), (".", "../project/above"), (".", "~/project/key")),
        *(("../work", "~/project/above"), ("../work", "../project/twice"), ("../work", "{}/above/diary")),
        *(("..", "project/above"), ("..", "project/key"), (".", "process/cwd/../private"), (".", "above/../inner")),
    ],
)
def test_sources__link_on_the_way_of_what_the_command_names__is_refused_by_its_real_name(
    project: Path, folder: str, src: str
) -> None:
    """Whoever types ~/project/above has not said ~/private."""
    (project.parent / "work").mkdir()
    (project.parent / "inner").mkdir()
    (project.parent / "work" / "module").write_bytes(GOOD)
    (project.parent / "module").write_bytes(GOOD)
    place = (project / folder).resolve()
    src = src.format(project)
    with pytest.raises(SpecError) as refused:
        _brought(place, src, name=COMMAND_LINE)
    assert refused.value.code == "OUTSIDE" and f"{src} is {os.path.realpath(place / Path(src).expanduser())}, " in str(
        refused.value
    )
    sources, _ = _brought(place, src, name=COMMAND_LINE, allowed=Allowed(outside=True))
    assert "(--allow-outside)" in sources.lines[0]


def test_sources__home_and_working_folder_behind_links__are_no_links_on_the_way(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "moved").symlink_to(project.parent)
    monkeypatch.setenv("HOME", str(tmp_path / "moved"))
    for src in ("~/private/diary", "inner/plain"):
        _brought(tmp_path / "moved" / "project", src, name=COMMAND_LINE)


# ---- secrets by the names that programs give them ----

NAMED = (
    ".env",
    ".env.local",
    ".git/config",
    ".ssh/id_ed25519",
    "keys/Server.KEY",
    ".aws/credentials",
    ".netrc",
    "a.pem",
    "hearth.toml",
)


@pytest.fixture
def secrets(project: Path) -> Path:
    """A clone in which whoever works there has kept their own, and whose ignore files take all of it back."""
    for name in NAMED:
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_bytes(SECRET)
        (project / "inner" / name).parent.mkdir(parents=True, exist_ok=True)
        (project / "inner" / name).write_bytes(SECRET)
    (project / "harmless").symlink_to(".env")
    (project / "inner" / ".hearthignore").write_text("!*\n!.env\n!.git/**\n!.ssh/**\n!*.pem\n")
    return project


@pytest.mark.parametrize("name", ["job.yaml", COMMAND_LINE])
@pytest.mark.parametrize("src", [*NAMED, ".git", ".ssh", "{}/.env", "harmless", "../project/.env"])
def test_sources__secret_that_is_named__is_taken_by_no_flag(secrets: Path, src: str, name: str) -> None:
    src = src.format(secrets)
    with pytest.raises(SpecError) as refused:
        _brought(secrets, src, name=name, allowed=Allowed(outside=True))
    error = refused.value
    assert (error.code, error.exit_code, error.details["field"]) == ("SECRET_FILE", 2, "inputs[0].src")
    assert error.message.count(str(Path(src.replace("harmless", ".env")).name)) >= 1 and "another name" in error.hint


@pytest.mark.parametrize("field", ["module", "workdir"])
def test_sources__secret_as_module_or_workdir__is_refused_too(secrets: Path, field: str) -> None:
    data = {"module": "module", field: ".git/config" if field == "module" else ".ssh"}
    with pytest.raises(SpecError) as refused:
        Sources(spec_from(data, folder=secrets), MemoryStore(), secrets)
    assert (refused.value.code, refused.value.details["field"]) == ("SECRET_FILE", field)


@pytest.mark.parametrize("workdir", [True, False])
def test_sources__folder_with_secrets__leaves_them_out_and_says_so(secrets: Path, workdir: bool) -> None:
    store = MemoryStore()
    data = {"module": "module", **({"workdir": "inner"} if workdir else {"inputs": [{"src": "inner", "dst": "/in/x"}]})}
    sources = Sources(spec_from(data, folder=secrets), store, secrets)
    sources.name("inner", field="inputs", workdir=workdir)
    sources.store("inner", workdir=workdir, progress=lambda *_: None)
    assert b"plain" in store.blocks.values() and SECRET not in store.blocks.values()
    (line,) = sources.lines
    assert line.startswith("leaves ") and f"out of {secrets / 'inner'}: " in line
    assert ".aws, .env, .env.local, .git, .netrc, .ssh, a.pem, hearth.toml, keys/Server.KEY" in line


def test_sources__job_below_a_folder_of_such_a_name__takes_its_own_files(project: Path) -> None:
    (project / ".docker" / "data").mkdir(parents=True)
    (project / ".docker" / "data" / "x").write_bytes(b"plain")
    (project / ".docker" / "module").write_bytes(GOOD)
    assert b"plain" in _brought(project / ".docker", "data")[1].blocks.values()


# ---- the keys and settings of whoever posts it ----


@pytest.fixture
def own(project: Path) -> Settings:
    """A clone in which somebody keeps their home, as README does, and whose ignore files take all of it back."""
    for name in (".hearth/keys/owner.json", ".hearth/password", ".hearth/jobs/x", ".hearth/out/x", ".git/config"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_bytes(SECRET)
    for name in ("rpc", "inner/password"):
        (project / name).write_bytes(SECRET)
    for link in project.iterdir():
        if link.is_symlink():
            link.unlink()
    (project / ".gitignore").write_text("!.git/\n!.hearth/\n!*\n")
    (project / ".hearthignore").write_text("!.git/\n!.hearth/\n!.git/**\n!**/.hearth/**\n")
    return Settings(home=project / ".hearth", password_file=project / "inner/password", rpc_file=project / "rpc")


def _taken(settings: Settings, folder: Path, src: str, *, workdir: bool = False) -> tuple[Sources, MemoryStore]:
    data = {
        "module": "ipfs://bafkqaaa",
        **({"workdir": src} if workdir else {"inputs": [{"src": src, "dst": "/in/x"}]}),
    }
    store = MemoryStore()
    loaded = spec_from(data, "job.yaml", folder=folder)
    sources = Sources(loaded, store, folder, allowed=Allowed(outside=True), kept=settings.own)
    sources.name(src, field="inputs", workdir=workdir)
    sources.store(src, workdir=workdir, progress=lambda *_: None)
    return sources, store


@pytest.mark.parametrize(
    ("folder", "src"),
    [
        *(
            (".", ".hearth"),
            (".", ".hearth/keys/owner.json"),
            (".", ".hearth/out/x"),
            (".", "rpc"),
            (".", "inner/password"),
        ),
        *((".", "link/keys"), ("inner", "../.hearth"), ("inner", "../rpc"), ("inner", "password")),
        *(
            (".hearth", "out"),
            (".hearth", "."),
            (".hearth/jobs", "../out"),
            (".hearth/jobs", "../keys"),
            (".hearth/keys", "."),
        ),
    ],
)
def test_sources__own_home_keys_and_passwords__are_taken_by_no_flag(
    project: Path, own: Settings, folder: str, src: str
) -> None:
    (project / "link").symlink_to(".hearth")
    with pytest.raises(SpecError) as refused:
        _taken(own, project / folder, src)
    assert refused.value.code == "OWN_HOME" and str((project / folder / src).resolve()) in refused.value.message


@pytest.mark.parametrize("workdir", [True, False])
def test_sources__folder_that_holds_the_home__leaves_it_out_and_says_so(
    project: Path, own: Settings, workdir: bool
) -> None:
    sources, store = _taken(own, project, ".", workdir=workdir)
    assert b"plain" in store.blocks.values() and SECRET not in store.blocks.values()
    said = [project / ".hearth", project / ".hearth" / "keys", project / "inner" / "password", project / "rpc"]
    assert [one for one in said if any(f"leaves {one} out of {project}: " in line for line in sources.lines)] == said


def test_sources__hidden_name__is_taken_by_its_flag_only(project: Path, own: Settings) -> None:
    """Profit: a stranger's job file, saved in a home, names a file in which some program keeps a token."""
    for src in (".config/gh/hosts.yml", ".tokens"):
        (project / src).parent.mkdir(parents=True, exist_ok=True)
        (project / src).write_bytes(SECRET)
        with pytest.raises(SpecError) as refused:
            _brought(project, src)
        assert refused.value.code == "OUTSIDE" and "hidden name ." in refused.value.message
        assert SECRET in _taken(own, project, src)[1].blocks.values()
        _brought(project, src, name=COMMAND_LINE)


@pytest.mark.parametrize("src", [".", "{home}"])
def test_sources__all_of_a_home__is_taken_by_its_flag_only(
    project: Path, own: Settings, src: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Profit: a stranger's job file, saved in a home, takes the folder that it lies in."""
    monkeypatch.setenv("HOME", str(project))
    with pytest.raises(SpecError) as refused:
        _brought(project, src.format(home=project))
    assert refused.value.code == "OUTSIDE" and "your home folder" in refused.value.message


def test_sources__own_files_by_another_name__are_taken_by_no_flag(project: Path, own: Settings) -> None:
    """A file system may know a file by several names: by another case, where it does not tell them apart."""
    assert own.rpc_file is not None
    os.link(own.rpc_file, project / "RPC")
    with pytest.raises(SpecError) as refused:
        _taken(own, project, "RPC")
    assert refused.value.code == "OWN_HOME"


def test_sources__folder_in_the_home__may_be_that_of_a_job(project: Path, own: Settings) -> None:
    """Whoever keeps job files in their home wrote them there."""
    assert SECRET in _taken(own, project / ".hearth" / "jobs", "x")[1].blocks.values()


@pytest.mark.parametrize("moment", ["name", "store"])
@pytest.mark.parametrize("part", ["folder", "file"])
def test_sources__link_that_comes_after_the_look__is_not_followed(project: Path, moment: str, part: str) -> None:
    (project / "inner" / "diary").write_bytes(b"harmless")
    store = MemoryStore()
    data = {"module": "module", "inputs": [{"src": "inner/diary", "dst": "/in/x"}]}
    sources = Sources(spec_from(data, folder=project), store, project)
    if moment == "store":
        sources.name("inner/diary", field="inputs", workdir=False)
    if part == "folder":
        (project / "inner").rename(project / "old")
        (project / "inner").symlink_to("../private")
    else:
        (project / "inner" / "diary").unlink()
        (project / "inner" / "diary").symlink_to("../../private/diary")
    with pytest.raises((StorageError, SpecError)):
        if moment == "name":
            sources.name("inner/diary", field="inputs", workdir=False)
        else:
            sources.store("inner/diary", workdir=False, progress=lambda *_: None)
    assert store.blocks == {}


@pytest.mark.timeout(30)
@pytest.mark.parametrize("kind", [stat.S_IFIFO, stat.S_IFSOCK])
@pytest.mark.parametrize("where", ["input", "folder", "module", "rules", "attesters", "job", "convert"])
def test_sources__pipe_or_socket_anywhere__is_refused_and_keeps_nobody_waiting(
    project: Path, kind: int, where: str
) -> None:
    name = {"folder": "inner/odd", "rules": "inner/.hearthignore", "module": "module"}.get(where, "odd")
    (project / name).unlink(missing_ok=True)
    os.mknod(project / name, 0o600 | kind)
    data: dict[str, Any] = {"module": "module"}
    if where in ("input", "folder"):
        data["inputs"] = [{"src": "odd" if where == "input" else "inner", "dst": "/in/x"}]
    elif where == "rules":
        data["workdir"] = "inner"
    elif where == "attesters":
        data["verify"] = {"attesters": "odd"}
    empty = where == "rules" and kind == stat.S_IFIFO  # a pipe that nobody writes to holds no rules
    with nullcontext() if empty else pytest.raises(HearthError):
        if where == "convert":
            convert_file(project / name)
        else:
            _preflight()._read(spec_of(project / name if where == "job" else data), NOTHING_MORE, project)


def test_load_spec__pipe_that_somebody_writes_to__is_read(tmp_path: Path) -> None:
    """As the shell makes of `hearth check <(...)`."""
    here, there = os.pipe()
    os.write(there, b'image: x\nprice: {max_total: "1"}\n')
    os.close(there)
    assert spec_of(f"/dev/fd/{here}").spec.image == "x"
    os.close(here)


# ---- URLs ----


@pytest.mark.net
def test_sources__urls__share_one_time_and_say_what_was_private(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "module").write_bytes(GOOD)
    given: list[float] = []
    whole = fetching.fetch

    def fetch(*args: Any, seconds: float, **named: Any) -> fetching.Fetched:
        given.append(seconds)
        return whole(*args, seconds=seconds, **named)

    monkeypatch.setattr(fetching, "fetch", fetch)
    with answering(lambda handler: send(handler, 200, b"plain")) as port:
        urls = [f"http://127.0.0.1:{port}/{name}" for name in "ab"]
        inputs = [{"src": url, "dst": f"/in/{number}"} for number, url in enumerate(urls)]
        loaded = spec_from({"module": "module", "inputs": inputs, "price": {"max_total": "1"}}, folder=tmp_path)
        with pytest.raises(StorageError) as refused:
            _preflight()._read(loaded, NOTHING_MORE, tmp_path)
        sources, *_ = _preflight(90)._read(loaded, Allowed(private=True), tmp_path)
    assert refused.value.code == "URL_PRIVATE" and refused.value.details["field"] == "inputs[0].src"
    assert "inputs[0].src: " in refused.value.message
    assert given[:2] == [600.0, 90.0] and given[2] < 90.0
    assert [sources.blobs[url].cid for url in urls] == [str(MemoryStore().add_bytes(b"plain").cid)] * 2
    assert sources.lines == ["takes what 127.0.0.1 answers, in a private network (--allow-private)"] * 2
