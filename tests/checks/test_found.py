"""What programs look for in the folder they are started in: each such name is one that results never bring."""

from __future__ import annotations

import ast
import builtins
import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import click
import pytest

from hearth.base.found import FOUND
from hearth.cli.__main__ import main
from hearth.cli.root import root
from hearth.storage.unixfs.names import disarmed
from tools.vyper_files import ROOT
from worker.__main__ import main as worker_main

ROOMS: Final = ("hearth", "worker", "keeper", "scripts")
NO_FILE: Final = {"-": "standard input, where an option names it"}
"""What stands in Path(...) and is no file of the working folder."""
HERE: Final = {
    ("hearth/config/settings.py", "load_settings"): "the search for a hearth.toml",
    ("hearth/jobfile/loaded.py", "spec_from"): "where the sources of a job that is no file begin",
    ("hearth/jobfile/load.py", "parse_spec"): "the same",
    ("hearth/jobfile/load.py", "spec_of"): "the same",
    ("hearth/client/posting/quick.py", "spec_of_run"): "the same, of hearth run",
    ("hearth/cli/convert.py", "convert"): "whether the paths of a converted job count from there",
    ("hearth/local/project.py", "write_project"): "where hearth init writes",
    ("keeper/__main__.py", "settings_of"): "where a path that an option names begins",
}
"""Who asks where the program was started, and what for: a file that is read there has a name in FOUND."""


LOOKS: Final = ("stat", "lstat", "open", "scandir", "listdir", "readlink")
"""How a program asks the system of a file."""


def leaves(command: click.Command, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from leaves(found, (*words, name))
    else:
        yield words, command


COMMANDS: Final = dict(leaves(root))


def test_commands__every_path_that_is_a_default__is_found_by_its_name() -> None:
    defaults = set()
    for command in (*COMMANDS.values(), worker_main):
        for param in command.params:
            if isinstance(param.default, Path) or (isinstance(param.type, click.Path) and param.default):
                defaults.add(str(param.default))
    assert defaults and defaults <= FOUND


def test_sources__every_path_of_the_working_folder__is_found_by_its_name() -> None:
    """Literals alone: what an option names begins with the option, and a constant of FOUND is one of it."""
    literals, here = set(), set()
    for file in (file for room in ROOMS for file in sorted((ROOT / room).rglob("*.py"))):
        if "templates" in file.parts or "examples" in file.parts:
            continue
        name = str(file.relative_to(ROOT))
        for function, call in _calls(ast.parse(file.read_text(encoding="utf-8"))):
            called = ast.unparse(call.func)
            first = call.args[0] if call.args else None
            said = first.value if isinstance(first, ast.Constant) else None
            if called in ("Path", "open") and isinstance(said, str) and not said.startswith("/"):
                literals.add(said)
            if called in ("Path.cwd", "os.getcwd") or (called == "Path" and not call.args):
                here.add((name, function))
    assert literals <= FOUND | set(NO_FILE)
    assert here == set(HERE)


def _calls(node: ast.AST, function: str = "") -> Iterator[tuple[str, ast.Call]]:
    for child in ast.iter_child_nodes(node):
        inside = child.name if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) else function
        if isinstance(child, ast.Call):
            yield inside, child
        yield from _calls(child, inside)


@pytest.mark.parametrize("words", sorted(COMMANDS), ids=" ".join)
def test_command__in_an_empty_folder__looks_for_nothing_else(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is asked of the system, of this folder and those above it, while a command runs into its first refusal."""
    if words in (("demo",), ("devnet", "up"), ("worker", "selftest"), ("init",)):
        pytest.skip("it starts or writes something")
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    monkeypatch.setenv("HEARTH_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(below)
    seen: set[str] = set()

    def watch(owner: Any, name: str) -> None:
        real = getattr(owner, name)

        def spy(path: Any, *args: Any, **more: Any) -> Any:
            if isinstance(path, str | os.PathLike) and more.get("dir_fd") is None:
                full = Path(os.path.abspath(os.fspath(path)))
                seen.update(full.relative_to(one).parts[0] for one in (below, below.parent) if one in full.parents)
            return real(path, *args, **more)

        monkeypatch.setattr(owner, name, spy)

    for owner, name in ((builtins, "open"), (io, "open"), *((os, name) for name in LOOKS)):
        watch(owner, name)
    given = ["7" if isinstance(one.type, click.types.IntParamType) else "/none" for one in _needed(COMMANDS[words])]
    main([*words, *given, "--json"])
    monkeypatch.undo()
    assert seen - {"b"} <= FOUND


def _needed(command: click.Command) -> Iterator[click.Parameter]:
    return (one for one in command.params if isinstance(one, click.Argument) and one.required)


_OURS: Final = re.compile(r"""python\d?((?: -\w+)*?) -m (?:hearth|worker|keeper)\b""")


def test_programs__every_spelling_of_ours_by_its_module__looks_for_no_module_in_the_working_folder() -> None:
    """Profit: a job left a hearth.py among its outputs, and whoever ran a program of ours there ran it."""
    texts = [ROOT / "README.md", *(file for file in (ROOT / "docs").rglob("*") if file.suffix in (".md", ".service"))]
    sources = [file for room in ROOMS for file in sorted((ROOT / room).rglob("*.py"))]
    said = [match for file in [*texts, *sources] for match in _OURS.finditer(file.read_text(encoding="utf-8"))]
    assert len(said) > 10 and all("-P" in match[1].split() for match in said)
    starts = [
        [ast.unparse(one) for one in node.elts]
        for file in sources
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.List | ast.Tuple) and node.elts and ast.unparse(node.elts[0]) == "sys.executable"
    ]
    assert starts and all(line[1] == "'-P'" for line in starts if "'-m'" in line)


@pytest.mark.parametrize(
    "program",
    [
        (str(Path(sys.executable).with_name("hearth")),),
        (sys.executable, "-P", "-m", "hearth.cli"),
        (sys.executable, "-P", "-m", "worker"),
        (sys.executable, "-P", "-m", "keeper"),
        (sys.executable, "-P", "-m", "hearth.storage.stores.gateway_server"),
    ],
    ids=lambda program: Path(program[-1]).name,
)
def test_program__started_among_a_jobs_results__imports_none_of_them(program: tuple[str, ...], tmp_path: Path) -> None:
    for name in ("hearth", "worker", "keeper", "click", "json", "argparse", "pydantic", "sitecustomize"):
        (tmp_path / f"{name}.py").write_text("open('/dev/stderr', 'w').write('theirs'); raise SystemExit(66)\n")
    done = subprocess.run([*program, "--help"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "theirs" not in done.stderr, done.stderr


@pytest.mark.parametrize("name", sorted(FOUND))
def test_disarmed__what_our_programs_find__is_written_under_another_name(name: str) -> None:
    """Profit: a job left a hearth.toml among its outputs, and the next command in them paid whom it named."""
    for spelled in (name, name.upper(), name + ".", name + " ", name + "::$DATA"):
        assert disarmed(spelled) == f"renamed-{spelled}"
