"""What a runtime is asked and what it answers, the same for WebAssembly and for containers.

A runtime never touches the chain or a store: it gets folders that are already filled, runs one unit, and says in
typed form how that ended. Source: worker.md.
"""

from __future__ import annotations

import math
import os
import re
import stat
import threading
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple, Protocol

from hearth.base.errors import SpecError
from hearth.base.text import plain
from hearth.protocol.runtimes import MAX_LOG_BYTES, RESERVED_ENV, WASM
from hearth.protocol.runtimes import MAX_OUTPUT_ENTRIES as MAX_OUTPUT_ENTRIES
from worker.gpu.port import Device

ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
MAX_ENV_BYTES = 64 * 1024
MAX_OUTPUT_DEPTH = 32
MAX_OUTPUT_PATH = 1024
# A file may take a block that it does not fill, a folder a few, and some file systems give a growing file room ahead.
BLOCKS_SLACK_BYTES = 64 << 20
TMP_BYTES = 256 << 20
"""What a guest may write below /tmp: of a module on the worker's disk, of a container in memory."""
ENGINE_LOG_BYTES = 20 << 20
"""What an engine may keep of a container's words."""

LogSink = Callable[[str, bytes], None]
"""Called as `on_log("stdout" | "stderr", chunk)` while a unit runs, from the thread that called `run`."""


class RunStatus(StrEnum):
    """Name the ways in which one run of one unit can end."""

    OK = "ok"
    EXIT = "exit"
    TRAP = "trap"
    OOM = "oom"
    TIMEOUT = "timeout"
    OUT_OF_FUEL = "out_of_fuel"
    OUTPUT_OVER_CAP = "output_over_cap"
    OUTPUT_MISSING = "output_missing"
    IMAGE_MISSING = "image_missing"
    BAD_INPUT = "bad_input"
    CANCELLED = "cancelled"
    # The sandbox itself failed (killed from outside, engine gone): says nothing about the job, the worker may retry.
    BROKEN = "broken"
    # The same, and what failed is the way by which a sandbox gets its GPUs.
    GPU_REFUSED = "gpu_refused"


class Level(StrEnum):
    """Grade one row of `hearth worker doctor`."""

    PASS = "PASS"
    WARN = "WARN"
    FAIL = "FAIL"


@dataclass(frozen=True)
class Check:
    """Report one thing that was looked at: its name, grade, what was found, and what to do about it."""

    name: str
    level: Level
    detail: str
    fix: str = ""


@dataclass(frozen=True)
class OutputRule:
    """Say what one output of the spec must be: guest path at or below /out, required or not, size cap in bytes."""

    path: str = "/out"
    required: bool = True
    max_bytes: int | None = None


@dataclass(frozen=True)
class SandboxLimits:
    """Bound one run: seconds of wall time, bytes, whole CPU cores, processes, and fuel (None: not metered).

    `most_seconds` is what the wall time may grow to while it runs; less than that time means not at all.
    """

    wall_seconds: int
    memory_bytes: int
    cpus: int = 1
    pids: int = 256
    out_bytes: int = 1 << 30
    tmp_bytes: int = TMP_BYTES
    log_bytes: int = MAX_LOG_BYTES
    fuel: int | None = None
    most_seconds: int = 0


@dataclass(slots=True)
class Bought:
    """The seconds of running time that were bought for a run after it began; the worker's loop writes them."""

    seconds: int = 0


@dataclass(slots=True)
class Room:
    """What a run without a file system of its own takes of the disk beside others.

    The worker's guard sets `full` and `tight`. Where the disk is tight, since it is full or another attempt waits for
    room, a run keeps to the bytes and entries that its job names, and nothing beyond counts as slack.

    The runtime sets the rest: `watched` says that it looks at what the run takes, `seen` that it has looked at all of
    it since the disk became tight, and since it became full, and `over` that the run ends for what was found, or for
    what nobody could look at. `taken` are the bytes of its last look.
    """

    tight: bool = False
    full: bool = False
    watched: bool = False
    seen: bool = False
    over: bool = False
    taken: int = 0


def sandbox_bytes(runtime: str) -> int:
    """Return the bytes of the home's disk that a runtime's sandbox may keep beside a job's data and outputs: a module's
    /tmp, or what the engine keeps of a container's log."""
    return TMP_BYTES if runtime == WASM.name else ENGINE_LOG_BYTES


@dataclass(frozen=True)
class RunRequest:
    """Describe one run of one unit.

    `unit` is a short id used in labels. `module` (a file) is for wasm, `image` (name@sha256:...) for docker. `command`
    is, for docker, the program and its arguments (empty: the image's own); a wasm module is the program itself, so
    there it holds the arguments. `job_dir` and `in_dir` are shown read-only as /job (the working directory) and /in,
    `out_dir` writable as /out. `seed` feeds the guest's random numbers, `index` of `units` becomes HEARTH_UNIT and
    HEARTH_UNITS. `volume` is the file system that `out_dir` has to itself, None where it lies among others' files.
    `until` is a time of `time.monotonic`: what is not over by then, compiling a wasm module included, is
    ended, so that the lease can still be given back; `bought` moves it, and the end of the run's own time, while it
    runs. `room` is what it takes of the disk. A run that has not begun when fewer than `least_seconds` are left
    until then is not begun.
    """

    unit: str
    command: tuple[str, ...]
    job_dir: Path
    in_dir: Path
    out_dir: Path
    limits: SandboxLimits
    volume: Path | None = None
    module: Path | None = None
    image: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    outputs: tuple[OutputRule, ...] = (OutputRule(),)
    gpus: tuple[Device, ...] = ()
    index: int = 0
    units: int = 1
    seed: bytes = bytes(32)
    until: float = math.inf
    least_seconds: int = 1
    bought: Bought = field(default_factory=Bought)
    room: Room = field(default_factory=Room)

    @property
    def wall_seconds(self) -> int:
        """Return the seconds that the run has by now."""
        return self.limits.wall_seconds + self.bought.seconds


@dataclass(frozen=True)
class RunResult:
    """Report how a run ended. `fuel_used` is exact and the same on any machine; `wall_seconds` is not."""

    status: RunStatus
    detail: str = ""
    exit_code: int | None = None
    fuel_used: int | None = None
    wall_seconds: float = 0.0
    stdout: bytes = b""
    stderr: bytes = b""
    stdout_truncated: bool = False
    stderr_truncated: bool = False
    engine: str = ""

    @property
    def ok(self) -> bool:
        """Say whether the job did what it was asked."""
        return self.status is RunStatus.OK


class Runtime(Protocol):
    """Run units in one kind of sandbox."""

    @property
    def name(self) -> str:
        """Return the spec's word for this runtime."""

    def available(self) -> tuple[bool, str]:
        """Say whether this machine can run it, with the reason when it cannot (the version when it can)."""

    def prepare(self, target: str, until: float = math.inf, cancel: threading.Event | None = None) -> RunResult | None:
        """Fetch or check the module file or image before a run, until a time of `time.monotonic` or `cancel` is set.

        A result means that it cannot be run, or not in time, or CANCELLED.
        """

    def keeping(self, target: str) -> AbstractContextManager[None]:
        """Keep a module or image here, from before it is prepared until the context ends."""

    def inspect(self, request: RunRequest, cancel: threading.Event) -> RunResult | None:
        """Look at a unit that was prepared, without running it, until the request's time or `cancel` is set.

        A result means that its run would be given back, or CANCELLED.
        """

    def run(self, request: RunRequest, cancel: threading.Event, on_log: LogSink | None = None) -> RunResult:
        """Run one unit to its end; never raises for anything that the job does."""

    def copy_out(self, request: RunRequest, place: str, into: Path, moved: Callable[[], None]) -> None:
        """Copy what a running unit has published in a folder below /out into an empty one, within the cap of /out.

        `moved` is called after each part; what it raises ends the copy. Raises UnsafePath and TooLarge for what no
        store takes, StorageError where the engine fails or the unit is gone, OSError where this disk fails.
        """

    def sweep(self, prefix: str = "") -> int:
        """Kill what an earlier process of this worker left running, by label; return how many."""

    def walls_down(self) -> int:
        """Count the walls that this machine does not put around a run, as far as that is seen without one."""


def wasm_no_room(memory_bytes: int, engine_bytes: int) -> str:
    """Return why a wasm run whose engine met its cap, or left too little of the job's own memory, is given back."""
    return (
        f"the engine needs more memory for this module than the job's {memory_bytes >> 20}MiB and "
        f"{engine_bytes >> 20}MiB of its own: raise resources.memory, or split the module's largest function"
    )


def wasm_late(left: float, seconds: int) -> str:
    """Return why a wasm run that would have only `left` of its `seconds` is given back."""
    return f"compiling the module took too long: {max(0.0, left):.1f} of {seconds} s were left for its run"


class LogBuffer:
    """Keep the head and the tail of a stream within `cap` bytes and count what fell out between them.

    Half of the cap holds the first bytes, half the last ones, so that a flood hides neither the start nor the error.
    """

    def __init__(self, cap: int) -> None:
        self._head_cap = cap // 2
        self._tail_cap = cap - cap // 2
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self.dropped = 0

    def write(self, chunk: bytes) -> None:
        """Take the next bytes of the stream."""
        room = self._head_cap - len(self._head)
        if room > 0:
            self._head += chunk[:room]
            chunk = chunk[room:]
        if not chunk:
            return
        self._tail.append(chunk)
        self._tail_size += len(chunk)
        while self._tail_size > self._tail_cap:
            excess = self._tail_size - self._tail_cap
            first = self._tail[0]
            if len(first) <= excess:
                self._tail.popleft()
                lost = len(first)
            else:
                self._tail[0] = first[excess:]
                lost = excess
            self._tail_size -= lost
            self.dropped += lost

    @property
    def truncated(self) -> bool:
        """Say whether bytes were dropped."""
        return self.dropped > 0

    def value(self) -> bytes:
        """Return what was kept, with a line that names the gap."""
        gap = b"\n[... %d bytes dropped ...]\n" % self.dropped if self.dropped else b""
        return bytes(self._head) + gap + b"".join(self._tail)


def guest_env(request: RunRequest) -> dict[str, str]:
    """Return the whole environment of a guest: the spec's names plus HEARTH_UNIT and HEARTH_UNITS.

    Raises SpecError for a name that is no identifier, a name kept for the sandbox, a NUL, or more than 64 KiB.
    """
    env: dict[str, str] = {}
    for name, value in request.env.items():
        if not ENV_NAME.match(name):
            raise SpecError(
                f"env name {name!r} is not an identifier", hint="hearth check job.yaml", component="runtime"
            )
        if name.upper().startswith(RESERVED_ENV):
            raise SpecError(
                f"env name {name} is kept for the sandbox (no LD_*, NVIDIA_*, AMD_VISIBLE_*, HEARTH_*)",
                hint="rename it in the job spec, then: hearth check job.yaml",
                component="runtime",
            )
        if "\0" in value:
            raise SpecError(f"env value of {name} holds a NUL byte", hint="hearth check job.yaml", component="runtime")
        env[name] = value
    env["HEARTH_UNIT"] = str(request.index)
    env["HEARTH_UNITS"] = str(request.units)
    if sum(len(k.encode()) + len(v.encode()) + 2 for k, v in env.items()) > MAX_ENV_BYTES:
        raise SpecError("env is larger than 64 KiB", hint="move the data to an input file", component="runtime")
    return env


class Tree(NamedTuple):
    """Measure a folder: bytes of contents, entries, the first entry that is not allowed, whether it is too deep or has
    too many entries for tools that go by path names, and the bytes of disk that it takes.

    It is `blind` where a folder could not be read: the rest is then a part of the truth. Of files that are open and
    have no name, whoever sees them says how many there are, their contents as far as these have blocks, and how many
    open files are `adrift`: sent to a socket from which nobody has read them, where nobody can measure them. It is
    `partial` where its processes hold more than one look gets through: there is at least so much.
    """

    size: int
    entries: int
    offence: str
    too_deep: bool
    blocks: int
    blind: bool = False
    unnamed: int = 0
    unnamed_size: int = 0
    adrift: int = 0
    partial: bool = False


def measure(folder: Path, volume: Path | None = None) -> Tree:
    """Walk a folder that a stranger's program filled, by descriptors, following no link, to MAX_OUTPUT_DEPTH.

    Sizes are of contents, so that a sparse file counts in full. Blocks are what the disk lacks, room that is taken
    ahead of a file's end included; where the folder has a `volume` to itself, its file system says how many, with
    those of files that have no name any more. A name that vanishes under the walk counts as nothing, and one file or
    folder that is moved under it counts once. Links, devices and names that are not UTF-8 are offences: they mean
    something else at a reader. The walk ends at one entry more than MAX_OUTPUT_ENTRIES, which is too many whatever the
    others are.
    """
    total = entries = blocks = 0
    offence, too_deep, blind = "", False, False
    met: set[int] = set()

    def scan(fd: int, depth: int, where: str) -> None:
        nonlocal total, entries, blocks, offence, too_deep, blind
        with os.scandir(fd) as found:
            for entry in found:
                if entries > MAX_OUTPUT_ENTRIES:
                    too_deep = True
                    offence = offence or f"it has more than {MAX_OUTPUT_ENTRIES} entries"
                    return
                entries += 1
                path = f"{where}/{entry.name}"
                name = plain(path)
                try:
                    info = entry.stat(follow_symlinks=False)
                    if stat.S_ISDIR(info.st_mode) or info.st_nlink == 1:
                        if info.st_ino in met:
                            entries -= 1
                            continue
                        met.add(info.st_ino)
                    blocks += info.st_blocks * 512
                    if stat.S_ISDIR(info.st_mode):
                        if depth == MAX_OUTPUT_DEPTH or len(os.fsencode(path)) > MAX_OUTPUT_PATH:
                            too_deep = True
                            offence = offence or f"a path is deeper than {MAX_OUTPUT_DEPTH} or {MAX_OUTPUT_PATH} bytes"
                            continue
                        below = os.open(entry.name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=fd)
                        try:
                            scan(below, depth + 1, path)
                        finally:
                            os.close(below)
                except (FileNotFoundError, NotADirectoryError):
                    continue
                except PermissionError:
                    blind = True
                    offence = offence or f"{name} is not readable for the worker's user"
                    continue
                if not stat.S_ISDIR(info.st_mode) and not stat.S_ISREG(info.st_mode):
                    offence = offence or f"{name} is not a regular file or folder"
                elif stat.S_ISREG(info.st_mode):
                    total += info.st_size
                    if info.st_nlink > 1:
                        offence = offence or f"{name} is a hard link"
                if not entry.name.isascii() and any("\udc80" <= character <= "\udcff" for character in entry.name):
                    offence = offence or f"{os.fsencode(name)!r} is not UTF-8"

    top = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        scan(top, 1, "/" + folder.name)
    finally:
        os.close(top)
    return Tree(total, entries, offence, too_deep, blocks if volume is None else used_bytes(volume), blind)


def used_bytes(volume: Path) -> int:
    """Return the bytes that are taken on a file system, those of open files without a name included."""
    found = os.statvfs(volume)
    return (found.f_blocks - found.f_bfree) * found.f_frsize


def over_cap(tree: Tree, cap: int, name: str = "/out", *, tight: bool = False) -> str:
    """Return the sentence on what a folder has too much of, empty if it keeps within bounds.

    Files without a name have the slack that blocks have, but where the disk is `tight`.
    """
    if tree.size > cap:
        return f"{name} holds {tree.size} bytes, more than the cap of {cap}"
    if tree.entries > MAX_OUTPUT_ENTRIES:
        return f"{name} holds more than {MAX_OUTPUT_ENTRIES} entries"
    if tree.blocks > 2 * cap + BLOCKS_SLACK_BYTES:
        return f"{name} takes {tree.blocks} bytes of disk, which is far beyond the cap of {cap}"
    if tight and tree.size + tree.unnamed_size > cap:
        return (
            f"{name} holds {tree.size} bytes, and files without a name {tree.unnamed_size}: "
            f"together more than the cap of {cap}, on a disk that lacks room"
        )
    if tight and tree.entries + tree.unnamed > MAX_OUTPUT_ENTRIES:
        return f"{name} holds {tree.entries} entries and {tree.unnamed} open files without a name: too many"
    return tree.offence if tree.too_deep else ""


def check_outputs(out_dir: Path, rules: tuple[OutputRule, ...], cap: int) -> tuple[RunStatus, str]:
    """Judge the outputs of a run that ended well: (OK, "") or the failure with its sentence.

    Links and devices are refused (they would name other files at the reader), sizes are of contents. An output that is
    required and missing, or empty, is a failure: an empty result must never look like a success.
    """
    tree = measure(out_dir)
    excess = over_cap(tree, cap)
    if excess:
        return RunStatus.OUTPUT_OVER_CAP, excess
    if tree.offence:
        return RunStatus.OUTPUT_MISSING, f"output refused: {tree.offence}"
    for rule in rules:
        parts = [part for part in rule.path.split("/") if part]
        if not parts or parts[0] != "out" or ".." in parts:
            return RunStatus.BAD_INPUT, f"output path {rule.path} is not at or below /out"
        path = out_dir.joinpath(*parts[1:])
        inside = measure(path).entries if path.is_dir() else 0
        size = measure(path).size if path.is_dir() else path.stat().st_size if path.is_file() else 0
        if rule.required and (not path.exists() or (path.is_dir() and inside == 0) or (path.is_file() and size == 0)):
            what = "missing" if not path.exists() else "empty"
            return RunStatus.OUTPUT_MISSING, f"required output {rule.path} is {what}"
        if rule.max_bytes is not None and size > rule.max_bytes:
            return (
                RunStatus.OUTPUT_OVER_CAP,
                f"output {rule.path} is {size} bytes, more than its cap of {rule.max_bytes}",
            )
    return RunStatus.OK, ""
