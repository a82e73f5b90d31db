"""The wheel, installed as a user installs it: away from the clone, with the locked packages and nothing else."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import time
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from hearth import __version__
from hearth.local import devnet
from tests.e2e.test_demo import left_behind
from tests.kit.anvil import need_anvil
from tests.kit.require import require
from tests.kit.town import EXAMPLES, ROOT
from tools import schemas
from tools.mutants import copy_project

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(900)]

OWN = f"{sys.version_info.major}.{sys.version_info.minor}"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
SDIST_ONLY = "varint"
"""What the run-time lock holds and publishes no wheel."""
ENGINE = ("DOCKER_HOST", "HEARTH_DOCKER_HOST", "HEARTH_TEST_IMAGE_PYTHON_NUMPY")
"""Where `make services-up` has a container engine and the image of the demo's container job."""
CUT_OFF = re.compile(r"connection (?:error|broken)|NewConnectionError|ConnectTimeout|ProxyError|name resolution", re.I)
"""What pip says where it does not reach its index."""


@dataclass(frozen=True)
class Installed:
    """A virtual environment that holds the wheel, and the folder that its programs run in."""

    venv: Path
    folder: Path

    @property
    def packages(self) -> Path:
        """Return its site-packages."""
        return next((self.venv / "lib").glob("python3.*")) / "site-packages"

    def run(self, program: str, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
        """Run one of its programs with an environment of which only `environ` is given."""
        (self.folder / "empty").mkdir(exist_ok=True)
        return subprocess.run(
            [str(self.venv / "bin" / program), *arguments],
            cwd=self.folder,
            env={
                "HOME": str(self.folder),
                "HEARTH_HOME": str(self.folder / "home"),
                "PATH": str(self.folder / "empty"),
                "TMPDIR": str(self.folder),
                "NO_COLOR": "1",
                **environ,
            },
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )


def _pip(python: Path, *arguments: str) -> None:
    """Run an interpreter's pip as the user has set it up. Skips where its index cannot be reached."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [str(python), "-m", "pip", *arguments, "--disable-pip-version-check", "--no-input", "--quiet"]
    done = subprocess.run(command, env=kept, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode and CUT_OFF.search(done.stderr):
        require("packages", False, f"pip does not reach its index: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel of a copy of the tree, as `make wheel` does, with the locked tools and no download."""
    folder = tmp_path_factory.mktemp("wheel")
    copy_project(folder / "source")
    tools = Path(sys.prefix) / "build-wheels"
    require("build-wheels", tools.is_dir(), f"{tools} is not there: make setup")
    _pip(
        Path(sys.executable),
        *("wheel", "--no-deps", "--no-index", "--find-links", str(tools)),
        *("--wheel-dir", str(folder), str(folder / "source")),
    )
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def install(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Installed]:
    """Return the function that installs the wheel for one Python and remembers where."""
    made: dict[str, Installed] = {}

    def install(version: str) -> Installed:
        if version not in made:
            folder = tmp_path_factory.mktemp("installed")
            subprocess.run([_interpreter(version), "-m", "venv", str(folder / "venv")], check=True)
            python = folder / "venv" / "bin" / "python"
            _pip(python, "install", "--require-hashes", "-r", str(ROOT / "requirements-build.lock"))
            _pip(
                python,
                *("install", "--require-hashes", "--no-compile", "--no-build-isolation", "--only-binary", ":all:"),
                *("--no-binary", SDIST_ONLY, "-r", str(ROOT / "requirements.lock")),
            )
            # They only built; a program that needs them must say so.
            _pip(python, "uninstall", "--yes", "setuptools", "wheel")
            _install_as_written(wheel, folder, version)
            _pip(python, "check")
            made[version] = Installed(folder / "venv", folder)
        return made[version]

    return install


def _install_as_written(wheel: Path, folder: Path, version: str) -> None:
    """Run the line by which PROVIDER.md installs the wheel, where its packages are there already."""
    (line,) = re.findall(r"^    (python3 -m venv .*)$", (ROOT / "docs" / "PROVIDER.md").read_text(), re.M)
    (folder / "dist").mkdir()
    shutil.copy(wheel, folder / "dist")
    script = line.replace("python3", _interpreter(version), 1).replace("/opt/hearth", str(folder / "venv"))
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"PIP_NO_INDEX": "1"}
    done = subprocess.run(["bash", "-c", script], cwd=folder, env=kept, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "Successfully installed hearth-market" in done.stdout, done.stderr + done.stdout


@pytest.fixture(scope="module")
def installed(install: Callable[[str], Installed]) -> Installed:
    """Return the wheel installed for the Python that runs the tests."""
    return install(OWN)


def _interpreter(version: str) -> str:
    """Return the interpreter of a version. Skips where the machine has none."""
    if version == OWN:
        return sys.executable
    name = f"python{version}"
    found = shutil.which(name)
    works = found is not None and subprocess.run([name, "-c", ""], capture_output=True, check=False).returncode == 0
    require(name, works, "not run: no such interpreter on PATH")
    return name


def _files(folder: Path) -> dict[str, bytes]:
    """Return the files below a folder of examples that git would know."""
    found = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


def test_wheel__its_files__have_the_page_as_it_was_built(wheel: Path) -> None:
    """Users have no Node: what `hearth web` serves comes with the package."""
    with zipfile.ZipFile(wheel) as packed:
        found = {name: packed.read(name) for name in packed.namelist() if name.startswith("hearth/web/app")}
    built = [ROOT / "hearth/web/app.cid", *(path for path in (ROOT / "hearth/web/app").rglob("*") if path.is_file())]
    assert found == {str(path.relative_to(ROOT)): path.read_bytes() for path in built}


@pytest.mark.parametrize("version", PYTHONS)
def test_wheel__on_each_python__deploys_a_market_and_finds_everything_well(
    version: str, install: Callable[[str], Installed]
) -> None:
    program, anvil = install(version), str(need_anvil())
    # A folder of its name, such as a clone, lies beside whatever runs there.
    (program.folder / "hearth" / "docs").mkdir(parents=True)
    face = "import hearth; print(hearth.__file__, hearth.Client, hearth.Job)"
    assert program.run("python", "-c", face).stdout.startswith(str(program.packages))
    assert (program.packages / "hearth" / "py.typed").is_file()
    said = program.run("hearth", "--version")
    assert (said.returncode, said.stderr) == (0, "") and said.stdout.startswith(f"hearth {__version__} (protocol ")
    said = program.run("hearth", "--help")
    assert (said.returncode, said.stderr) == (0, "") and "the chain is the scheduler" in said.stdout
    said = program.run("hearth", "doctor", "--json")
    assert (said.returncode, json.loads(said.stdout)["result"]) == (3, "FAIL")
    try:
        said = program.run("hearth", "devnet", "up", "--port", str(devnet.free_port()), HEARTH_ANVIL=anvil)
        assert said.returncode == 0, said.stderr
        said = program.run("hearth", "doctor", "--json", "--account", "dev")
        levels = {row["name"]: row["level"] for row in json.loads(said.stdout)["checks"]}
        assert said.returncode == 0 and {levels.pop("docker")} <= {"PASS", "WARN"}, said.stdout
        assert set(levels) == {"settings", "network", "rpc", "account", "store"} and set(levels.values()) == {"PASS"}
    finally:
        said = program.run("hearth", "devnet", "down")
    assert (said.returncode, said.stdout) == (0, "stopped\n")


@pytest.mark.deep
def test_wheel__demo__last_line_is_a_solvent_verification_and_nothing_is_left_behind(installed: Installed) -> None:
    """The whole demo; the clone's own is the last step of `.ci/run`."""
    services = {name: os.environ[name] for name in ENGINE if name in os.environ}
    began = time.monotonic()
    said = installed.run("hearth", "demo", HEARTH_ANVIL=str(need_anvil()), **services)
    took = time.monotonic() - began
    assert said.returncode == 0, said.stderr[-3000:]
    assert len(said.stdout.splitlines()) == 1
    report = json.loads(said.stdout)
    schemas.validate(report)
    assert report["schema"] == "hearth.verify/1"
    assert report["solvent"] is True and "unproven" not in report
    assert "on probation until they have been paid for some work: 1, 2, 3" in said.stderr
    # The clock's seconds of the whole, but for what Python takes to start; the chain's run from the first posting.
    assert took - 15 < report["wall_seconds"] < took
    assert 0 < report["setup_seconds"] < report["wall_seconds"]
    assert report["seconds"] < report["wall_seconds"] - report["setup_seconds"] + 2
    assert report["failed"] == 1 and report["reclaimed"] >= 1
    # One job is refunded, since the one that it waited for failed.
    assert report["units"] - 1 == report["settled"] == report["results_checked"] >= 25
    assert report["finished"] >= 2 and report["given_up"] == 1
    assert "is off probation" in said.stderr and "submitted and settled (ok)" in said.stderr
    assert "gave it up and paid for that" in said.stderr
    assert "what it waited for has ended as asked: it waits for a machine" in said.stderr
    assert "a job that it waited for ended otherwise than asked" in said.stderr
    assert "it beats no more" in said.stderr and "late or silent" in said.stderr
    assert "349 of 360" in said.stderr or '"correct":349' in said.stderr
    assert "words" in said.stderr and "balances" in said.stderr and "gas per transaction" in said.stderr
    assert left_behind(installed.folder) == []
    assert not list(installed.folder.glob("hearth-demo-*"))
    assert _files(installed.packages / "hearth" / "examples") == _files(EXAMPLES)


def test_wheel__demo_without_anvil__names_the_one_command_and_starts_nothing(installed: Installed) -> None:
    home = installed.folder / "nowhere"
    said = installed.run("hearth", "demo", HEARTH_HOME=str(home))
    wanted = json.loads((ROOT / "package.json").read_text(encoding="utf-8"))["dependencies"]["@foundry-rs/anvil"]
    assert (said.returncode, said.stdout) == (3, "")
    assert f"  next: mkdir -p -m 700 {home} && npm install --prefix {home} @foundry-rs/anvil@{wanted}\n" in said.stderr
    assert "starting" not in said.stderr and not home.exists()
    assert not list(installed.folder.glob("hearth-demo-*"))


def test_wheel__its_packages__match_as_the_contracts_do(installed: Installed) -> None:
    """Run the tests of the keeper's arithmetic with what users get: another numpy than the one of this environment."""
    files = ("tests/keeper/test_match.py", "tests/keeper/test_tie_break.py")
    # Behind its own packages stand those of this environment, for pytest; numpy comes from the first.
    script = f"""
import sys
sys.path.append({sysconfig.get_path("purelib")!r})
import numpy, pytest
assert numpy.__version__.startswith("2."), numpy.__version__
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "-k", "winner or scores or tie_breaks", *{_under_root(files)!r}]))
"""
    done = installed.run("python", "-c", script, PYTHONDONTWRITEBYTECODE="1")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert re.search(r"\b\d+ passed\b", done.stdout) and "skipped" not in done.stdout


def _under_root(names: Sequence[str]) -> list[str]:
    return ["--rootdir", str(ROOT), "-c", str(ROOT / "pyproject.toml"), *(str(ROOT / name) for name in names)]
