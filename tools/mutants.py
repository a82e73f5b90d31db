"""Apply each mutant of tests/mutants to a copy of the project and see the named tests turn red.

A patch file starts with header lines, then a unified diff with paths from the project's root:

    Bug: one sentence on what is broken
    Tests: arguments for pytest, e.g. tests/attacks/test_rounding.py -k lives
    (blank line, then the diff)

A bug counts as caught only where the named tests pass without it and fail with it (pytest's exit status 1): a patch
that does not apply, does not compile into a run of tests, or names no tests is an error, not a catch.

Two are tried at a time, each in a copy of its own: many tests wait more than they compute. Those whose tests share an
engine or a Kubo (tests/conftest.py) are tried one after the other.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from tools.vyper_files import ROOT

MUTANTS = ROOT / "tests" / "mutants"
TESTS_FAILED = 1
# Heavy folders that a copy reaches by a link.
LINKED = (".venv", ".venv-node", "node_modules", "web/node_modules")
# Contracts as the tests compile them (tests/kit/evm.py): a copy starts with what is compiled already.
COMPILED = ".build/evm"
COMPILE = (
    "from hearth.market.contracts import CONTRACTS; from tests.kit.evm import compile_contract\n"
    "for name in CONTRACTS: compile_contract(name)"
)
# Tests that compile the contracts from source; all others read hearth/market/artifacts, which are built anew for them.
COMPILING = ("tests/attacks", "tests/contracts", "tests/stateful")
# Tests that share services bear one of these marks; two runs of pytest know nothing of each other's groups.
SHARING = ("mark.docker", "mark.kubo")
# Held while a copy is made of what is compiled, or something is added to it.
_COPYING = threading.Lock()


@dataclass(frozen=True)
class Bug:
    """One mutant: its file name, what it breaks, the pytest arguments that must catch it, and its diff."""

    name: str
    what: str
    tests: tuple[str, ...]
    diff: str


def parse(name: str, text: str) -> Bug:
    """Read a patch file; raises ValueError where a header is missing."""
    head, separator, diff = text.partition("\n\n")
    fields = dict(line.split(": ", 1) for line in head.splitlines() if ": " in line)
    if not separator or "Bug" not in fields or "Tests" not in fields or "--- " not in diff:
        raise ValueError(f"{name}: needs `Bug:` and `Tests:` lines, an empty line, then a unified diff")
    return Bug(name, fields["Bug"], tuple(fields["Tests"].split()), diff)


def copy_project(target: Path) -> None:
    """Copy what git tracks, and what it does not ignore, to `target`; link the installed environments."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    for name in filter(None, listed.split("\0")):
        source = ROOT / name
        if source.is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target / name)
    for name in LINKED:
        if (ROOT / name).exists():
            (target / name).symlink_to(ROOT / name)
    # Not a link: entries of a broken library would displace the good ones.
    if (ROOT / COMPILED).exists():
        shutil.copytree(ROOT / COMPILED, target / COMPILED)


def shares_services(tests: tuple[str, ...], root: Path = ROOT) -> bool:
    """Say whether a file that pytest's arguments name, or that lies in a folder that they name, has such tests."""
    named = [root / argument.partition("::")[0] for argument in tests if argument.startswith("tests")]
    files = [file for path in named for file in (path.rglob("*.py") if path.is_dir() else [path]) if file.exists()]
    return not named or any(mark in file.read_text(encoding="utf-8") for file in files for mark in SHARING)


def touches_contracts(bug: Bug) -> bool:
    """Say whether the diff changes a contract."""
    return any(line.startswith("+++ b/contracts/") for line in bug.diff.splitlines())


def needs_artifacts(bug: Bug) -> bool:
    """Say whether the bug's tests would run the contracts as they were built, without the bug."""
    paths = [argument for argument in bug.tests if argument.startswith("tests")]
    compiling = bool(paths) and all(path.startswith(COMPILING) for path in paths)
    return touches_contracts(bug) and not compiling


def build(folder: Path, *, artifacts: bool) -> str:
    """Compile the contracts of a copy, into its artifacts or only for tests; return the compiler's complaint."""
    command = ["-m", "tools.build_artifacts"] if artifacts else ["-c", COMPILE]
    built = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    return "" if built.returncode == 0 else f"the contracts do not build with it: {built.stderr[-2000:]}"


def keep_compiled(folder: Path) -> None:
    """Keep what a copy compiled for the next run: a broken contract has a name of its own there."""
    for path in (folder / COMPILED).glob("*.json"):
        kept = ROOT / COMPILED / path.name
        if not kept.exists():
            kept.parent.mkdir(parents=True, exist_ok=True)
            partial = kept.with_suffix(f".{os.getpid()}")
            shutil.copy2(path, partial)
            os.replace(partial, kept)


def run_tests(folder: Path, tests: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    """Run pytest in `folder` on one worker; its packages come before the installed ones, in subprocesses too."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    environment = os.environ | {"PYTHONPATH": str(folder)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def control(tests: tuple[str, ...]) -> str:
    """Return "" where the tests pass without any bug, else why a red run would prove nothing."""
    with tempfile.TemporaryDirectory(prefix="hearth-mutant-") as name:
        with _COPYING:
            copy_project(Path(name))
        clean = run_tests(Path(name), tests)
    return (
        "" if clean.returncode == 0 else f"its tests fail without it (exit {clean.returncode}):\n{clean.stdout[-2000:]}"
    )


def plant(bug: Bug) -> str:
    """Return "" where the bug turns its tests red, else why it does not."""
    with tempfile.TemporaryDirectory(prefix="hearth-mutant-") as name:
        folder = Path(name)
        with _COPYING:
            copy_project(folder)
        applied = subprocess.run(
            ["git", "apply", "--whitespace=nowarn", "-"],
            cwd=folder,
            input=bug.diff,
            capture_output=True,
            text=True,
            check=False,
        )
        if applied.returncode != 0:
            return f"the patch does not apply: {applied.stderr.strip()}"
        # A contract that does not compile would turn every test red, and prove nothing.
        if touches_contracts(bug) and (broken := build(folder, artifacts=needs_artifacts(bug))):
            return broken
        seen = run_tests(folder, bug.tests)
        with _COPYING:
            keep_compiled(folder)
        if seen.returncode != TESTS_FAILED:
            return f"the tests did not turn red (exit {seen.returncode}):\n{seen.stdout[-2000:]}"
    return ""


def judge(bugs: list[Bug], jobs: int, *, without_control: bool = False) -> Iterator[tuple[Bug, str]]:
    """Yield each bug in its order, with "" where it is caught, else why it is not."""
    # Many bugs name the same tests: each set runs once without a bug.
    controls: dict[tuple[str, ...], str] = {}
    turns = {bug.tests: threading.Lock() for bug in bugs}
    services = threading.Lock()

    def one(bug: Bug) -> str:
        with services if shares_services(bug.tests) else nullcontext():
            with turns[bug.tests]:
                if bug.tests not in controls:
                    controls[bug.tests] = "" if without_control else control(bug.tests)
            return controls[bug.tests] or plant(bug)

    with ThreadPoolExecutor(jobs) as pool:
        yield from zip(bugs, pool.map(one, bugs), strict=True)


def main(argv: list[str] | None = None) -> int:
    """Plant the named bugs, or all; exit 1 where one is not caught."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="file names in tests/mutants; all of them by default")
    parser.add_argument("--no-control", action="store_true", help="do not run the tests without the bug first")
    parser.add_argument("--jobs", type=int, default=2, help="bugs that are tried at a time (default 2)")
    args = parser.parse_args(argv)
    paths = sorted(MUTANTS.glob("*.patch"))
    if args.names:
        paths = [path for path in paths if path.name in args.names or path.stem in args.names]
    bugs = [parse(path.name, path.read_text(encoding="utf-8")) for path in paths]
    missed = 0
    for bug, why in judge(bugs, args.jobs, without_control=args.no_control):
        missed += bool(why)
        print(f"{'MISSED' if why else 'caught'}  {bug.name}: {bug.what}{': ' + why if why else ''}", flush=True)
    print(f"mutants: {len(paths)} bugs, {len(paths) - missed} caught, {missed} missed")
    return 1 if missed or not paths else 0


if __name__ == "__main__":
    sys.exit(main())
