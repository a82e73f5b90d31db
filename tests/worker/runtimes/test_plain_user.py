"""The docker runtime's tests once more as PROVIDER.md advises to run a worker: a plain user in the engine's group."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.kit.plain_user import plain_home, run_plain
from tests.kit.require import require
from tests.worker.runtimes.engines import HOST, rules, runtime_of

ROOT = Path(__file__).resolve().parents[3]
SOCKET = Path((HOST or "unix:///var/run/docker.sock").removeprefix("unix://"))
FILES = ("test_docker.py", "test_docker_images.py", "test_docker_seccomp.py")
# What does not depend on who the worker is: what a guest may do, an engine's answers, images; HEARTH_PLAIN=full: none.
LEFT_OUT = (
    *("abuse", "bomb", "without", "image", "prepare", "numpy", "env", "log_driver", "gpu", "seccomp", "network"),
    *("process_status", "command_that", "sleeps", "available", "nonzero"),
)


@pytest.mark.docker
@pytest.mark.slow
def test_docker__plain_user_in_the_engines_group__every_output_is_its_own() -> None:
    import docker

    runtime_of(rules())
    require("docker", SOCKET.is_socket(), f"the engine is not at a socket of this machine: {HOST}")
    if os.geteuid() != 0:
        pytest.skip("these tests run as a plain user already")
    whole = os.environ.get("HEARTH_PLAIN") == "full"
    chosen = FILES if whole else FILES[:1]
    with docker.APIClient(base_url=HOST, version="auto") as api:
        engine = Path(api.info()["DockerRootDir"])
    with plain_home() as home:
        done = run_plain(
            [
                *("-m", "pytest", "-q", "-p", "no:cacheprovider", f"--basetemp={home / 'tests'}"),
                *([] if whole else ["-k", f"not ({' or '.join(LEFT_OUT)})"]),
                *(str(Path(__file__).with_name(name)) for name in chosen),
            ],
            home=home,
            groups=(SOCKET.stat().st_gid,),
            reads=(SOCKET,),
            sees=(engine,),  # a pull watches the free room of the engine's disk
            cwd=ROOT,
        )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    counted = re.search(r"(\d+) passed", done.stdout)
    assert counted is not None and int(counted[1]) >= 12 and "skipped" not in done.stdout, done.stdout[-2000:]
