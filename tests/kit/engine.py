"""A Docker engine of a test's own, which can be killed and restarted: the one that all tests share never is."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.kit.require import require
from tests.kit.running import wait
from tools.services import engine

READY_SECONDS = 60.0


def need_own_engine() -> str:
    """Return the engine's program; skip, or fail where CI says so, where this process may not start one."""
    found = shutil.which("dockerd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    require("docker", found is not None and os.geteuid() == 0, "an engine of one's own needs dockerd, and root")
    assert found is not None
    return found


class Engine:
    """An engine that may pull from a loopback registry, at `host`; its state lies below `folder` (a short path).

    It is the system's, or `dockerd`; programs of packages unpacked below `programs` come before the system's. The
    shell's `lines` are run before it, in a mount namespace of their own and its.

    Its socket is listened on by this process, as a service manager's is (docker.socket): who asks an engine that is not
    there waits until it is there again.
    """

    def __init__(
        self,
        folder: Path,
        registry: str,
        *,
        config: Mapping[str, Any] | None = None,
        dockerd: Path | None = None,
        programs: Path | None = None,
        lines: str = "",
    ) -> None:
        self._folder, path = folder, folder / "socket"
        self.host = f"unix://{path}"
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(path))
        self._socket.listen(64)
        (folder / "daemon.json").write_text(json.dumps(config or {}))
        # vfs works on any file system, and an image of the tests is small.
        self._command = engine.command(str(dockerd or need_own_engine()), folder, "fd://", "vfs", registry)
        self._command.append(f"--cgroup-parent=/{folder.name}")
        self._env = dict(os.environ)
        if programs is not None:
            self._env["PATH"] = f"{programs}/usr/bin:{self._env['PATH']}"
        self._enter = ["unshare", "--mount", "--propagation", "private"] if lines else []
        self._lines = lines
        self.start()

    def start(self) -> None:
        """Start it on what its folder holds, and wait until it answers."""
        # A killed engine leaves these; where nobody reaps its orphans, they name processes that seem to live.
        for file in ("pid", "exec/containerd/containerd.pid"):
            (self._folder / file).unlink(missing_ok=True)
        script = f'set -e\n{self._lines}\nLISTEN_PID=$$ LISTEN_FDS=1 exec "$@" 3<&0 </dev/null'
        handed = [*self._enter, "sh", "-c", script, "sh", *self._command]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                handed, stdin=self._socket, stdout=log, stderr=log, env=self._env, start_new_session=True
            )
        wait(lambda: engine.answers(self.host), "an engine of one's own answers", READY_SECONDS)

    def kill(self) -> None:
        """kill -9, as a crash: what it started lives on."""
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """SIGTERM, as a service manager restarts it: it ends what it runs."""
        self._process.terminate()
        assert self._process.wait(READY_SECONDS) == 0

    def close(self) -> None:
        """Stop it with everything that it runs."""
        with suppress(subprocess.TimeoutExpired):
            self._process.terminate()
            self._process.wait(30)
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._socket.close()
        # Containers that outlived an engine, and their parents, are in no group of its.
        ours = (("cmdline", f"{self._folder}/exec/".encode()), ("cgroup", f"/{self._folder.name}/".encode()))
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if any(mark in (process / file).read_bytes() for file, mark in ours):
                    os.kill(int(process.name), signal.SIGKILL)
        engine.remove(self._folder)


@contextmanager
def own_engine(registry: str, **words: Any) -> Iterator[Engine]:
    """Run an engine while the context is open; `words` are those of Engine."""
    folder = Path(tempfile.mkdtemp(prefix="hearth-engine-"))
    # Where containers have user namespaces, their root is nobody here and must reach what is theirs.
    folder.chmod(0o711)
    made = Engine(folder, registry, **words)
    try:
        yield made
    finally:
        made.close()
