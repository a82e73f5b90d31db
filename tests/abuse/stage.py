"""What the host sees of abusive programs: their processes, what they reached, what they left. Nobody asks a guest.

A `Sight` is one run of one program; a `Watch` looks at all of them every few hundredths of a second, for as long as
they live, and notes whether what they are after has come about.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

PAGE = os.sysconf("SC_PAGE_SIZE")
TICKS = os.sysconf("SC_CLK_TCK")
LOOK_SECONDS = 0.03
YOUNG_SECONDS = 5.0
"""How long a process may still become one of a guest's."""
CONTAINER = re.compile(r"[0-9a-f]{64}")
GRACE_SECONDS = 3.0
"""How much longer than its time a program must live to have won: what ends it may be slow on a busy machine."""


@dataclass
class Sight:
    """One run of a program. `mark` stands in its processes' arguments; `seconds` and `cores` are what it may use."""

    mark: str
    token: str
    during: Callable[[Sight], bool] | None
    after: Callable[[Sight], bool] | None
    seconds: float
    cores: float = 1.0
    scene: Scene | None = None
    out: Path | None = None
    """Where the host has its /out, or what was stored of it; None once there is nothing."""
    status: str = ""
    detail: str = ""
    stdout: bytes = b""
    pids: tuple[int, ...] = ()
    container: str = ""
    since: float = 0.0
    hears: bool = False
    """Whether its worker is this process, which counts signals."""
    won: threading.Event = field(default_factory=threading.Event)

    def look(self, pids: tuple[int, ...], container: str) -> None:
        """Take note of the processes that it has now."""
        self.pids, self.container = pids, container
        self.since = self.since or time.monotonic()
        with suppress(OSError, IndexError, ValueError):  # a process that ends meanwhile
            if self.during is not None and self.during(self):
                self.won.set()

    def end(self) -> bool:
        """Say whether it won, now that it has ended."""
        if self.after is not None and self.after(self):
            self.won.set()
        return self.won.is_set()

    def told(self, aim: str) -> str:
        """Return a sentence on how it ended, for whoever reads a failure."""
        return f"{aim}: {self.status} ({self.detail}); it printed {self.stdout[-300:]!r}"

    # ---- what is to be seen ----

    @property
    def age(self) -> float:
        """Return the seconds since it was first seen."""
        return time.monotonic() - self.since

    def inside(self, path: str) -> Iterator[Path]:
        """Yield a path of the guest's as the host reaches it through each of its processes."""
        return (Path(f"/proc/{pid}/root{path}") for pid in self.pids)

    def memory(self) -> int:
        """Return the bytes of memory that its processes have."""
        return sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE for pid in self.pids)

    def processor(self) -> float:
        """Return the cores that it has used on average."""
        used = 0
        for pid in self.pids:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            used += int(fields[11]) + int(fields[12])
        return used / TICKS / max(self.age, 0.001)

    def links(self) -> Iterator[str]:
        """Yield what each open descriptor of its processes is."""
        for pid in self.pids:
            for fd in os.listdir(f"/proc/{pid}/fd"):
                with suppress(OSError):
                    yield os.readlink(f"/proc/{pid}/fd/{fd}")

    def facts(self, name: str) -> set[str]:
        """Return the words of a line of its processes' status."""
        return {
            word
            for pid in self.pids
            for line in Path(f"/proc/{pid}/status").read_text().splitlines()
            if line.startswith(f"{name}:")
            for word in line.split()[1:]
        }

    def files(self) -> Iterator[os.stat_result]:
        """Yield what the host says of everything in its /out."""
        if self.out is not None:
            for path in self.out.rglob("*"):
                with suppress(OSError):
                    yield path.lstat()


@dataclass
class Scene:
    """What there is on the host to be stolen from, called and found: ports, a secret file, a process with a secret."""

    secret: str
    key: Path
    ports: dict[str, str]
    engine_root: Path | None = None
    received: set[str] = field(default_factory=set)
    signals: int = 0


@contextmanager
def open_scene(folder: Path, name: str) -> Iterator[Scene]:
    """Listen, and let a process with a secret run, while the context is open."""
    secret = f"hearth-secret-{name}"
    key = folder / "keys" / "key.json"
    key.parent.mkdir(parents=True)
    key.write_text(secret)
    with ExitStack() as stack:
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        udp = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        udp.bind(("127.0.0.1", 0))
        local = stack.enter_context(socket.socket(socket.AF_UNIX))
        local.bind("\0" + secret)
        local.listen()
        ports = {"tcp": str(tcp.getsockname()[1]), "udp": str(udp.getsockname()[1]), "local": secret}
        scene = Scene(secret, key, ports)

        def hear() -> None:
            while True:
                try:
                    data = udp.recv(99)
                except OSError:
                    return
                scene.received.add(data.decode(errors="replace"))

        def answer(server: socket.socket) -> None:
            while True:
                try:
                    line, _ = server.accept()
                except OSError:
                    return
                with line:
                    scene.received.add(line.recv(99).decode(errors="replace"))

        for run, values in ((hear, ()), (answer, (tcp,)), (answer, (local,))):
            threading.Thread(target=run, args=values, daemon=True).start()
        sleeper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", secret])
        try:
            yield scene
        finally:
            sleeper.kill()
            sleeper.wait()
            for server in (tcp, udp, local):
                with suppress(OSError):
                    server.shutdown(socket.SHUT_RDWR)


class Watch(threading.Thread):
    """Look at the processes of every sight until stopped."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.sights: list[Sight] = []
        self._over = threading.Event()
        self._born: dict[int, float] = {}
        self._owner: dict[int, tuple[Sight | None, str]] = {}
        self._containers: dict[str, Sight] = {}

    def add(self, sight: Sight) -> Sight:
        """Look at a run from now on."""
        self.sights.append(sight)
        return sight

    def close(self) -> None:
        """Stop."""
        self._over.set()
        self.join()

    def run(self) -> None:
        """Look again and again."""
        while not self._over.wait(LOOK_SECONDS):
            found: dict[int, tuple[Sight, str, list[int]]] = {}
            alive = {int(name) for name in os.listdir("/proc") if name.isdigit()}
            for gone in self._born.keys() - alive:
                self._born.pop(gone)
                self._owner.pop(gone, None)
            for pid in sorted(alive):
                sight, container = self._of(pid)
                if sight is not None:
                    found.setdefault(id(sight), (sight, container, []))[2].append(pid)
            for sight, container, pids in found.values():
                sight.look(tuple(pids), container)

    def _of(self, pid: int) -> tuple[Sight | None, str]:
        """Return whose process this is, and its container."""
        known = self._owner.get(pid)
        if known is not None:
            return known
        now = time.monotonic()
        born = self._born.setdefault(pid, now)
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
            groups = CONTAINER.search(Path(f"/proc/{pid}/cgroup").read_text())
        except OSError:
            return None, ""
        container = groups[0] if groups else ""
        sight = self._containers.get(container) if container else None
        if sight is None and (container or "holed_child" in words):
            sight = next((one for one in self.sights if one.mark in words), None)
        if sight is not None and container:
            self._containers[container] = sight
        if sight is not None or now - born > YOUNG_SECONDS:
            self._owner[pid] = (sight, container)
        return sight, container
