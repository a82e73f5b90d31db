"""The docker runtime's tests once more: on an engine with user namespaces, with gVisor, on a newer engine, and as
PROVIDER.md advises to run a worker, a plain user in the engine's group.

With HEARTH_ENGINES=full every test of containers runs in each of these ways (`make test-docker`); otherwise those that
depend on it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.kit.plain_user import plain_home, run_plain
from tests.kit.require import require
from tests.worker.runtimes.engines import need

pytestmark = [pytest.mark.docker, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[3]
FILES = ("test_docker.py", "test_docker_images.py", "test_docker_seccomp.py")
WHOLE = os.environ.get("HEARTH_ENGINES") == "full"
# What does not depend on who the worker is: what a guest may do, an engine's answers, images.
NOT_OF_USERS = (
    *("abuse", "bomb", "without", "image", "prepare", "numpy", "env", "log_driver", "gpu", "seccomp", "network"),
    *("process_status", "command_that", "sleeps", "available", "nonzero"),
)
# Whose an output is, which the user namespace moves, and what is taken back from a guest.
OF_OWNERS = ("reads_input", "modes_of_its_own", "cannot_be_taken_back", "more_than_the_volume")
# Where gVisor says or counts in its own way: ends, limits, outputs.
OF_KERNELS = ("reads_input", "process_status__no", "cannot_start", "memory_bomb__oom", "killed_over_its_cap")

# What a newer engine does or says in another way: mounts, layers that cannot be unpacked, starts.
OF_VERSIONS = ("reads_input", "outputs_away", "bad_in_itself", "cannot_start")


def arguments(files: Sequence[str], words: str, home: Path) -> list[str]:
    """Return what pytest is asked: the tests of the files that match `words`, or all of them."""
    names = [str(Path(__file__).with_name(name)) for name in (FILES if WHOLE else files)]
    chosen = [] if WHOLE else ["-k", words]
    return ["-m", "pytest", "-q", "-p", "no:cacheprovider", f"--basetemp={home / 'tests'}", *chosen, *names]


def check(done: subprocess.CompletedProcess[str], least: int) -> None:
    """Check that all tests passed, and at least so many."""
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    counted = re.search(r"(\d+) passed", done.stdout)
    assert counted is not None and int(counted[1]) >= least, done.stdout[-2000:]
    assert WHOLE or "skipped" not in done.stdout, done.stdout[-2000:]


@pytest.mark.parametrize(
    ("name", "files", "words", "least"),
    [
        ("userns", ("test_docker.py", "test_docker_disk.py"), OF_OWNERS, 8),
        ("runsc", ("test_docker.py",), OF_KERNELS, 6),
        ("gpu", ("test_docker.py", "test_docker_images.py"), OF_VERSIONS, 16),
    ],
    ids=["userns", "runsc", "gpu"],
)
def test_docker__engine_of_another_kind__does_what_the_first_does(
    name: str, files: Sequence[str], words: Sequence[str], least: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need(name)
    monkeypatch.setenv("HEARTH_TEST_ENGINE", name)
    command = [sys.executable, *arguments(files, " or ".join(words), tmp_path)]
    check(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False), least)


@pytest.mark.parametrize(
    ("name", "words", "least"),
    [
        ("runc", f"not ({' or '.join(NOT_OF_USERS)})", 12),
        ("userns", "reads_input or cannot_be_taken_back", 2),
        pytest.param("gpu", f"not ({' or '.join(NOT_OF_USERS)})", 12, marks=pytest.mark.deep),
    ],
    ids=["runc", "userns", "gpu"],
)
def test_docker__plain_user_in_the_engines_group__every_output_is_its_own(
    name: str, words: str, least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    import docker

    kind = need(name)
    socket = Path((kind.host or "unix:///var/run/docker.sock").removeprefix("unix://"))
    require("docker", socket.is_socket(), f"the engine is not at a socket of this machine: {kind.host}")
    if os.geteuid() != 0:
        pytest.skip("these tests run as a plain user already")
    with docker.APIClient(base_url=kind.host, version="auto") as api:
        engine = Path(api.info()["DockerRootDir"])
    monkeypatch.setenv("HEARTH_TEST_ENGINE", name)
    with plain_home() as home:
        done = run_plain(
            arguments(FILES[:1], words, home),
            home=home,
            groups=(socket.stat().st_gid,),
            reads=(socket,),
            sees=(engine,),  # a pull watches the free room of the engine's disk
            cwd=ROOT,
        )
    check(done, least)
