"""The project's programs as processes that start in a tenth of the time: forked from a server with their imports done.

What runs is what `python -P -m worker`, `python -P -m keeper` and `hearth` run, each with a process group, an
environment and a working folder of its own. A campaign starts some thousands of them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from multiprocessing import get_context
from multiprocessing.connection import wait as wait_for
from pathlib import Path

# Not from tests.kit: each child imports this module, and would import the compiler with it.
ROOT = Path(__file__).resolve().parents[2]
_server = get_context("forkserver")
_server.set_forkserver_preload(["tests.chaos.preload", "tests.chaos.programs"])
# A pipe gives each exit status once, and `start` reads those of all processes that ended: the second of two threads
# that read at the same time is told 255.
_statuses = threading.Lock()


class Child:
    """One process of a program, writing to `log`, in its folder; of HEARTH_ names it sees those given."""

    def __init__(self, log: Path, program: str, *arguments: str, **environ: str) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("HEARTH_")}
        environment = {**kept, "PYTHONPATH": str(ROOT), **environ}
        self._process = _server.Process(target=_enter, args=(str(log), program, arguments, environment), daemon=False)
        with _statuses:
            self._process.start()
        assert self._process.pid is not None
        self.pid: int = self._process.pid

    @property
    def returncode(self) -> int | None:
        """Return the exit status, less than zero for a signal; None while it runs."""
        with _statuses:
            return self._process.exitcode

    def poll(self) -> int | None:
        """Look whether it has ended, and return its exit status."""
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end. Raises subprocess.TimeoutExpired."""
        wait_for([self._process.sentinel], timeout)
        code = self.returncode
        if code is None:
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0.0)
        return code

    def terminate(self) -> None:
        """Send SIGTERM."""
        self._process.terminate()

    def kill(self) -> None:
        """Send SIGKILL."""
        self._process.kill()


def _enter(log: str, program: str, arguments: tuple[str, ...], environment: dict[str, str]) -> None:
    """Become the program: what a fork has of its parent is replaced before anything of the program runs."""
    from tests.chaos.programs import PROGRAMS

    os.setsid()
    null, file = os.open(os.devnull, os.O_RDONLY), os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for source, target in ((null, 0), (file, 1), (file, 2)):
        os.dup2(source, target)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(Path(log).parent)
    sys.argv = [program, *arguments]
    sys.stdin = open(0)  # noqa: SIM115
    sys.stdout, sys.stderr = open(1, "w", buffering=1), open(2, "w", buffering=1)  # noqa: SIM115
    sys.exit(PROGRAMS[program](list(arguments)))
