"""Put each mutant of tests/mutants into a copy of the project and see the named tests turn red.

A row of a file there, one file for each room:

    [[mutant]]
    name = "fee_paid_twice"
    bug = "One sentence on what is broken."
    file = "hearth/fee.py"
    find = "a text that occurs once in the file"
    replace = "what takes its place"
    tests = "arguments for pytest, e.g. tests/attacks/test_rounding.py -k lives"

A bug counts as caught only where the named tests pass without it and fail with it (pytest's exit status 1): a text that
is not there, a contract that does not compile, or tests that are not there are an error, not a catch. `--check` runs no
test: it names the rows whose text does not occur once any more.

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
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, fields
from pathlib import Path

from tools.vyper_files import ROOT

MUTANTS = ROOT / "tests" / "mutants"
TESTS_FAILED = 1
# Heavy folders that a copy reaches by a link.
LINKED = (".venv", ".venv-node", "node_modules", "web/node_modules")
# Contracts as the tests compile them (tests/kit/evm.py): a copy starts with what is compiled already.
COMPILED = ".build/evm"
# The page as it is built, which is in no commit, and its CID beside it: tests read both.
PAGE = "hearth/web/app"
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
    """One row: its name, what it breaks, the text of a file that it replaces, and pytest's arguments."""

    name: str
    bug: str
    file: str
    find: str
    replace: str
    tests: str

    @property
    def arguments(self) -> tuple[str, ...]:
        """Return what pytest is given."""
        return tuple(self.tests.split())

    @property
    def of_a_contract(self) -> bool:
        """Say whether the bug is in a contract."""
        return self.file.startswith("contracts/")


KEYS = {field.name for field in fields(Bug)}


def read(folder: Path = MUTANTS) -> list[Bug]:
    """Read the rows of all rooms; raises ValueError by name where one is not whole or has the name of another."""
    bugs: dict[str, Bug] = {}
    for path in sorted(folder.glob("*.toml")):
        for row in tomllib.loads(path.read_text(encoding="utf-8"))["mutant"]:
            name = f"{path.name}: {row.get('name')}"
            if row.keys() != KEYS or not all(isinstance(value, str) for value in row.values()):
                raise ValueError(f"{name}: needs the texts {', '.join(sorted(KEYS))}, and no others")
            if row["find"] == row["replace"] or row["name"] in bugs:
                raise ValueError(f"{name}: changes nothing, or has the name of another")
            bugs[row["name"]] = Bug(**row)
    return list(bugs.values())


def misfit(bug: Bug, root: Path = ROOT) -> str:
    """Return "" where the bug fits the project, else why it can break, or turn red, nothing there."""
    path = root / bug.file
    count = path.read_text(encoding="utf-8").count(bug.find) if path.is_file() else 0
    if count != 1:
        return f"its text is {count} times in {bug.file}, not once"
    named = [argument.partition("::")[0] for argument in bug.arguments if argument.startswith("tests/")]
    gone = [name for name in named if not (root / name).exists()]
    return f"no tests {', '.join(gone)}" if gone else ""


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
    shutil.copytree(ROOT / PAGE, target / PAGE)
    shutil.copy2(ROOT / f"{PAGE}.cid", target / f"{PAGE}.cid")
    # Not a link: entries of a broken library would displace the good ones.
    if (ROOT / COMPILED).exists():
        shutil.copytree(ROOT / COMPILED, target / COMPILED)


def shares_services(tests: tuple[str, ...], root: Path = ROOT) -> bool:
    """Say whether a file that pytest's arguments name, or that lies in a folder that they name, has such tests."""
    named = [root / argument.partition("::")[0] for argument in tests if argument.startswith("tests")]
    files = [file for path in named for file in (path.rglob("*.py") if path.is_dir() else [path]) if file.exists()]
    return not named or any(mark in file.read_text(encoding="utf-8") for file in files for mark in SHARING)


def needs_artifacts(bug: Bug) -> bool:
    """Say whether the bug's tests would run the contracts as they were built, without the bug."""
    paths = [argument for argument in bug.arguments if argument.startswith("tests")]
    compiling = bool(paths) and all(path.startswith(COMPILING) for path in paths)
    return bug.of_a_contract and not compiling


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
        if why := misfit(bug, folder):
            return why
        path = folder / bug.file
        path.write_text(path.read_text(encoding="utf-8").replace(bug.find, bug.replace), encoding="utf-8")
        # A contract that does not compile would turn every test red, and prove nothing.
        if bug.of_a_contract and (broken := build(folder, artifacts=needs_artifacts(bug))):
            return broken
        seen = run_tests(folder, bug.arguments)
        with _COPYING:
            keep_compiled(folder)
        if seen.returncode != TESTS_FAILED:
            return f"the tests did not turn red (exit {seen.returncode}):\n{seen.stdout[-2000:]}"
    return ""


def judge(bugs: list[Bug], jobs: int, *, without_control: bool = False) -> Iterator[tuple[Bug, str]]:
    """Yield each bug in its order, with "" where it is caught, else why it is not."""
    # Many bugs name the same tests: each set runs once without a bug.
    controls: dict[tuple[str, ...], str] = {}
    turns = {bug.arguments: threading.Lock() for bug in bugs}
    services = threading.Lock()

    def one(bug: Bug) -> str:
        tests = bug.arguments
        with services if shares_services(tests) else nullcontext():
            with turns[tests]:
                if tests not in controls:
                    controls[tests] = "" if without_control else control(tests)
            return controls[tests] or plant(bug)

    with ThreadPoolExecutor(jobs) as pool:
        yield from zip(bugs, pool.map(one, bugs), strict=True)


def main(argv: list[str] | None = None) -> int:
    """Plant the named bugs, or all; exit 1 where one is not caught."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="names of rows in tests/mutants; all of them by default")
    parser.add_argument("--check", action="store_true", help="run no test; name the rows that do not fit the code")
    parser.add_argument("--no-control", action="store_true", help="do not run the tests without the bug first")
    parser.add_argument("--jobs", type=int, default=2, help="bugs that are tried at a time (default 2)")
    args = parser.parse_args(argv)
    bugs = read()
    if unknown := set(args.names) - {bug.name for bug in bugs}:
        parser.error(f"no rows {', '.join(sorted(unknown))}")
    bugs = [bug for bug in bugs if not args.names or bug.name in args.names]
    if args.check:
        stale = [f"{bug.name}: {why}" for bug in bugs if (why := misfit(bug))]
        print("\n".join(stale), end="\n" if stale else "", file=sys.stderr)
        return 1 if stale else 0
    missed = 0
    for bug, why in judge(bugs, args.jobs, without_control=args.no_control):
        missed += bool(why)
        print(f"{'MISSED' if why else 'caught'}  {bug.name}: {bug.bug}{' ' + why if why else ''}", flush=True)
    print(f"mutants: {len(bugs)} bugs, {len(bugs) - missed} caught, {missed} missed")
    return 1 if missed or not bugs else 0


if __name__ == "__main__":
    sys.exit(main())
