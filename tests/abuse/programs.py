"""The abuse programs: what each is after, how the host would see it come about, and the one defence that stops it.

A defence is removed in these tests alone: from what is asked of the engine, at its last moment, or in a child of the
tests' own (holed_child). Where a second defence would stop a program too, it is `loosened` in both runs of a pair.
"""

from __future__ import annotations

import ctypes
import os
import stat
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.abuse.stage import GRACE_SECONDS, Sight
from tests.worker.runtimes.engines import Mutation, as_root, host
from tests.worker.wasm_tools import command
from worker.runtimes import base, docker, docker_janitor, walls, wasm
from worker.runtimes.base import used_bytes
from worker.runtimes.docker_request import GUEST_UIDS

MIB = 1 << 20
OUT_BYTES = 8 * MIB
KEY_BYTES = 13_337
Predicate = Callable[[Sight], bool]
Patch = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class Row:
    """One program. `during` and `after` say whether it achieved what it is after, while it runs and when it has ended.

    `remove` and `loosen` are changes of the engine's create call; of a WebAssembly child they are names of its WITHOUT;
    `patch` removes a defence of the worker's own process, `timeless` its clock, in a pair of both
    runs, as `fuel` is what both have. `ends` are the statuses, one of which the worker reports.
    """

    name: str
    program: str
    achieves: str
    defence: str
    ends: tuple[str, ...]
    during: Predicate | None = None
    after: Predicate | None = None
    remove: tuple[Mutation | str, ...] = ()
    loosen: tuple[Mutation | str, ...] = ()
    patch: Patch | None = None
    runtime: str = "docker"
    words: tuple[str, ...] = ()
    seconds: int = 60
    memory: int = 128
    image: str = ""
    cores: float = 1.0
    fuel: int = 0
    timeless: bool = False


# ---- what the host sees ----


def processes(most: int) -> Predicate:
    return lambda sight: len(sight.pids) > most


def memory(most: int) -> Predicate:
    return lambda sight: sight.memory() > most


def threads(most: int) -> Predicate:
    return lambda sight: any(len(os.listdir(f"/proc/{pid}/task")) > most for pid in sight.pids)


def lasting(seen: Predicate) -> Predicate:
    """Say whether something is to be seen for GRACE_SECONDS on end: a burst may pass a bound for a moment."""
    since: dict[str, float] = {}

    def stand(sight: Sight) -> bool:
        if not seen(sight):
            since.pop(sight.token, None)
            return False
        return time.monotonic() - since.setdefault(sight.token, time.monotonic()) > GRACE_SECONDS

    return stand


def tmp_entries(most: int) -> Predicate:
    """Say whether a module's /tmp, which its process has open, holds so many files."""
    return lambda sight: any(
        len(os.listdir(found)) > most for found in sight.links() if Path(found).name.startswith(wasm.TMP_PREFIX)
    )


def unnamed(most: int) -> Predicate:
    """Say whether the files without a name that its processes have open take so many bytes."""

    def hold(sight: Sight) -> bool:
        held = {}
        for pid in sight.pids:
            for fd in os.listdir(f"/proc/{pid}/fd"):
                info = os.stat(f"/proc/{pid}/fd/{fd}")
                if info.st_nlink == 0:
                    held[info.st_ino] = info.st_blocks * 512
        return sum(held.values()) > most

    return hold


def link(kind: str) -> Predicate:
    return lambda sight: any(kind in found for found in sight.links())


def received(sight: Sight) -> bool:
    assert sight.scene is not None
    return sight.token in sight.scene.received


def told(sight: Sight) -> bool:
    """Say whether a secret of the host's came out with what the program printed."""
    assert sight.scene is not None
    return sight.scene.secret.encode() in sight.stdout


def overtime(sight: Sight) -> bool:
    return sight.age > sight.seconds + GRACE_SECONDS


def disk(most: int) -> Predicate:
    return lambda sight: sum(info.st_blocks * 512 for info in sight.files()) > most


def entries(most: int) -> Predicate:
    """Say whether so many files stand for three seconds: a burst may pass the cap for a moment."""

    def stand(sight: Sight) -> bool:
        found = [(len(os.listdir(out)), out.stat().st_mtime) for out in sight.inside("/out")]
        return any(count > most and time.time() - since > 3 for count, since in found)

    return stand


def longest(most: int) -> Predicate:
    return lambda sight: any(info.st_size > most for info in sight.files())


def there(path: str, text: str = "") -> Predicate:
    return lambda sight: any(found.exists() and text in found.read_text() for found in sight.inside(path))


def tmp_over(most: int) -> Predicate:
    return lambda sight: any(used_bytes(found) > most for found in sight.inside("/tmp"))


def open_over(most: int) -> Predicate:
    return lambda sight: any(len(os.listdir(f"/proc/{pid}/fd")) > most for pid in sight.pids)


def busy(sight: Sight) -> bool:
    return sight.age > 1 and sight.processor() > 1.3 * sight.cores + 0.02


def worked_for(seconds: float) -> Predicate:
    return lambda sight: sight.processor() * sight.age > seconds


def kept_logs(sight: Sight) -> bool:
    assert sight.scene is not None and sight.scene.engine_root is not None
    folder = sight.scene.engine_root / "containers" / sight.container
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) > 30 * MIB


def core_left(sight: Sight) -> bool:
    found = (path for out in sight.inside("/out") for path in out.glob("core*"))
    return any(path.stat().st_size > 0 for path in found)


def mounted(sight: Sight) -> bool:
    return any(" /tmp/mounted " in Path(f"/proc/{pid}/mountinfo").read_text() for pid in sight.pids)


def other_namespace(sight: Sight) -> bool:
    return any(os.readlink(f"/proc/{pid}/ns/user") != os.readlink("/proc/self/ns/user") for pid in sight.pids)


def traced(sight: Sight) -> bool:
    return bool(sight.facts("TracerPid") - {"0"})


def key_held(_: Sight) -> bool:
    """Say whether the kernel counts a key of this size among those of the guests' user."""
    rows = [line.split() for line in Path("/proc/key-users").read_text().splitlines()]
    return any(int(row[0].rstrip(":")) in GUEST_UIDS and int(row[-1].partition("/")[0]) >= KEY_BYTES for row in rows)


def segment(sight: Sight) -> bool:
    """Say whether the host has a shared segment of the size that stands for a run's token."""
    rows = [line.split() for line in Path("/proc/sysvipc/shm").read_text().splitlines()[1:]]
    return any(int(row[3]) == segment_bytes(sight.token) for row in rows)


def segment_bytes(token: str) -> int:
    return MIB + 4096 * (int(token[-6:], 16) % 4096)


def drop_segments(tokens: set[str]) -> None:
    """Delete the segments of runs: what a private namespace does by its end."""
    sizes = {segment_bytes(token) for token in tokens}
    libc = ctypes.CDLL(None)
    for line in Path("/proc/sysvipc/shm").read_text().splitlines()[1:]:
        row = line.split()
        if int(row[3]) in sizes and int(row[7]) in GUEST_UIDS:
            libc.shmctl(int(row[1]), 0, None)


def as_root_of_the_host(sight: Sight) -> bool:
    return any(Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"python3\0-c") for pid in sight.pids) and bool(
        {"0"} & sight.facts("Uid")
    )


def device_left(sight: Sight) -> bool:
    return any(stat.S_ISBLK(info.st_mode) for info in sight.files())


def not_ours(sight: Sight) -> bool:
    return any(info.st_uid != os.geteuid() or not info.st_mode & stat.S_IRUSR for info in sight.files())


def leads_to_the_secret(sight: Sight) -> bool:
    assert sight.scene is not None
    stolen = sight.out / "stolen" if sight.out is not None else None
    return sight.status == "ok" and stolen is not None and stolen.exists() and stolen.read_text() == sight.scene.secret


def runs_from_tmp(sight: Sight) -> bool:
    return any(os.readlink(f"/proc/{pid}/exe").endswith("/tmp/run") for pid in sight.pids)


def planted(sight: Sight) -> bool:
    assert sight.scene is not None
    return (sight.scene.key.parent / f"planted-{sight.token}").exists()


def signalled(sight: Sight) -> bool:
    assert sight.scene is not None
    return sight.hears and sight.scene.signals > 0


def environment_told(sight: Sight) -> bool:
    return b"PATH=" in sight.stdout.replace(b"PYTHONPATH=", b"")


def much_kept(sight: Sight) -> bool:
    return len(sight.stdout) > 2 * MIB


def engine_fell(sight: Sight) -> bool:
    return "died by" in sight.detail


def blames_the_worker(sight: Sight) -> bool:
    return sight.status == "broken"


# ---- what is removed ----


def limit(name: str, value: int | None) -> Mutation:
    """Return a change of one ulimit; None removes it."""

    def apply(config: dict[str, Any]) -> None:
        held = [one for one in config["HostConfig"]["Ulimits"] if one["Name"] != name]
        if value is not None:
            held.append({"Name": name, "Soft": value, "Hard": value})
        config["HostConfig"]["Ulimits"] = held

    return apply


def the_hosts_network(config: dict[str, Any]) -> None:
    config["NetworkDisabled"] = False
    config["HostConfig"]["NetworkMode"] = "host"


def security(*kinds: str) -> Mutation:
    """Return a change that leaves of SecurityOpt what starts with one of these."""

    def apply(config: dict[str, Any]) -> None:
        held = config["HostConfig"]["SecurityOpt"]
        config["HostConfig"]["SecurityOpt"] = [one for one in held if one.startswith(kinds)]

    return apply


def any_call(config: dict[str, Any]) -> None:
    security("no-new")(config)
    config["HostConfig"]["SecurityOpt"].append("seccomp=unconfined")


def writable_mounts(config: dict[str, Any]) -> None:
    for mount in config["HostConfig"]["Mounts"]:
        mount["ReadOnly"] = False


def no_watcher(patch: pytest.MonkeyPatch) -> None:
    for module in (docker_janitor, base):
        patch.setattr(module, "over_cap", lambda *_, **__: "")


def no_look(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(docker_janitor.Meter, "_beyond_names", lambda *_: False)


def no_check(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(docker, "check_outputs", lambda *_: (base.RunStatus.OK, ""))


def no_clean_up(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(docker, "reclaim", lambda *_: "")


def whole_logs(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(wasm, "LogBuffer", lambda _: base.LogBuffer(1 << 40))


def believing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(wasm, "ENDS", frozenset(base.RunStatus))


# ---- containers ----

DOCKER = [
    Row("fork bomb", "fork_bomb", "600 processes", "`PidsLimit`", ("exit",),
        during=processes(400), remove=(host(PidsLimit=None),), memory=512),
    Row("memory hog", "memory_hog", "more memory than the job's", "`Memory`", ("oom",),
        during=memory(160 * MIB), remove=(host(Memory=None, MemorySwap=None),), memory=64),
    Row("/tmp filler", "tmp_filler", "300 MiB in a folder of 256 MiB", "the size of its tmpfs", ("exit",),
        during=tmp_over(300 * MIB), remove=(host(Tmpfs={"/tmp": "rw,size=1g,mode=1777"}),), memory=512),
    Row("memory without a process", "shared_memory", "a shared segment that outlives it", "`IpcMode` private", ("ok",),
        during=segment, after=segment, words=("segment",), remove=(host(IpcMode="host"),)),
    Row("output filler", "output_filler", "160 MiB in outputs of 8 MiB", "the watcher of /out", ("output_over_cap",),
        after=disk(150 * MIB), during=disk(150 * MIB), patch=no_watcher),
    Row("file bomb", "entry_bomb", "18,000 files in /out", "the watcher of /out", ("output_over_cap",),
        during=entries(17_900), patch=no_watcher),
    Row("huge sparse file", "sparse_file", "a file of 1 TiB in /out", "`fsize`", ("exit",),
        after=longest(1 << 39), remove=(limit("fsize", None),)),
    Row("hidden blocks", "preallocated_file", "96 MiB in an empty file", "seccomp: `fallocate` of mode 0", ("exit",),
        during=disk(90 * MIB), after=disk(90 * MIB), remove=(any_call,)),
    Row("files without a name", "unnamed_files", "160 MiB in outputs of 8 MiB that no list shows",
        "the look at what is open", ("output_over_cap",), during=lasting(unnamed(150 * MIB)), patch=no_look),
    Row("log bomb", "log_bomb", "60 MB of the engine's logs", "`LogConfig`", ("ok",),
        during=kept_logs, remove=(host(LogConfig={"Type": "json-file"}),)),
    Row("spinner", "spinner", "more cores than its own", "`NanoCpus`", ("timeout",),
        during=busy, loosen=(host(NanoCpus=10**7),), remove=(host(NanoCpus=None),), cores=0.01, seconds=6),
    Row("open files", "open_files", "2,000 open files", "`nofile`", ("exit",),
        during=open_over(1_500), remove=(limit("nofile", 4_096),)),
    Row("core file", "core_file", "a core file on the host's disk", "`core`", ("ok",),
        during=core_left, remove=(limit("core", -1),)),
    Row("overtime", "overtime", "a run past its time, deaf to signals", "the worker's clock", ("timeout",),
        during=overtime, timeless=True, seconds=2),
    Row("call by TCP", "tcp_call", "a byte to a port of the host", "`NetworkMode` none", ("exit",),
        during=received, after=received, words=("tcp",), remove=(the_hosts_network,)),
    Row("call by UDP", "udp_call", "a datagram to a port of the host", "`NetworkMode` none", ("ok", "exit"),
        during=received, after=received, words=("udp",), remove=(the_hosts_network,)),
    Row("call by a socket without a path", "local_call", "a byte to an abstract socket", "`NetworkMode` none",
        ("exit",), during=received, after=received, words=("local",), remove=(the_hosts_network,)),
    Row("forged sender", "raw_packet", "a packet with a sender of its own choice", "`CapDrop`", ("exit",),
        during=received, after=received, words=("udp",), loosen=(the_hosts_network, as_root),
        remove=(host(CapDrop=None),)),
    Row("other processes", "other_processes", "the arguments of the host's processes", "its own process namespace",
        ("exit",), after=told, remove=(host(PidMode="host"),)),
    Row("mount", "mount", "a file system of its own", "seccomp", ("exit",),
        during=mounted, loosen=(as_root, host(CapDrop=None, CapAdd=["SYS_ADMIN"])), remove=(any_call,)),
    Row("user namespace", "user_namespace", "root of a namespace", "seccomp", ("exit",),
        during=other_namespace, remove=(any_call,)),
    Row("trace", "trace", "control of another process", "seccomp", ("exit",),
        during=traced, remove=(security("no-new"),)),
    Row("kernel keys", "key", "a key in the kernel's memory", "seccomp", ("exit",),
        during=key_held, words=(str(KEY_BYTES),), remove=(any_call,)),
    Row("page faults", "page_faults", "userfaultfd, which kernel exploits stand on", "seccomp", ("exit",),
        during=link("userfaultfd"), remove=(any_call,)),
    Row("io_uring", "ring", "calls that seccomp does not see", "seccomp", ("exit",),
        during=link("io_uring"), remove=(any_call,)),
    Row("set-user-ID program", "set_user_id", "a process of user 0", "`no-new-privileges`", ("exit",),
        during=as_root_of_the_host, remove=(security("seccomp"),), image="set-user-id"),
    Row("root's files", "root_files", "a file in the image's /usr", "`ReadonlyRootfs`", ("exit",),
        during=there("/usr/planted"), loosen=(as_root,), remove=(host(ReadonlyRootfs=None),)),
    Row("spoilt inputs", "input_files", "other inputs than the submitter's", "`ReadOnly` mounts", ("exit",),
        during=there("/in/data.txt", "spoilt"), loosen=(as_root, host(CapDrop=None)), remove=(writable_mounts,)),
    Row("device", "device", "a node of the host's disk in /out", "`CapDrop`", ("exit",),
        after=device_left, loosen=(as_root,), remove=(host(CapDrop=None),)),
    Row("hidden outputs", "hidden_outputs", "files that the worker does not own", "the clean-up", ("ok",),
        after=not_ours, patch=no_clean_up),
    Row("linked output", "linked_output", "a file of the host's as its result", "the check of outputs",
        ("output_missing",), after=leads_to_the_secret, words=("key",), patch=no_check),
    Row("program of /tmp", "program_of_tmp", "a program that no image holds", "`noexec`", ("exit",),
        during=runs_from_tmp, remove=(host(Tmpfs={"/tmp": "rw,exec,size=64m,mode=1777"}),)),
]  # fmt: skip

# ---- WebAssembly ----

WASI = '(import "wasi_snapshot_preview1" "%s" (func $%s (param %s) (result i32)))'
EXIT = '(import "wasi_snapshot_preview1" "proc_exit" (func $proc_exit (param i32)))'
LOOP = command("(loop br 0)")
GROW = command(
    "(local $at i32) (loop $more"
    " (local.set $at (i32.mul (memory.grow (i32.const 16)) (i32.const 65536)))"
    " (if (i32.lt_s (local.get $at) (i32.const 0)) (then unreachable))"
    " (memory.fill (local.get $at) (i32.const 1) (i32.const 1048576))"
    " (br_if $more (i32.lt_u (memory.size) (i32.const 2900)))) (loop br 0)"
)
TABLE = command(
    "(if (i32.eq (table.grow (ref.func $f) (i32.const 18000000)) (i32.const -1)) (then unreachable)) (loop br 0)",
    start="(table 1 funcref) (elem declare func $f) (func $f)",
)
RECURSION = (
    '(module (memory (export "memory") 1) (func $down (param i64) (result i64)'
    " (i64.add (call $down (i64.add (local.get 0) (i64.const 1))) (i64.const 1)))"
    ' (func (export "_start") (drop (call $down (i64.const 0)))))'
)
CLIMB = f"""(module
  {WASI % ("path_open", "path_open", "i32 i32 i32 i32 i32 i64 i64 i32 i32")}
  {WASI % ("fd_read", "fd_read", "i32 i32 i32 i32")} {WASI % ("fd_write", "fd_write", "i32 i32 i32 i32")} {EXIT}
  (memory (export "memory") 1)
  (data (i32.const 0) "../../../keys/key.json") (data (i32.const 96) "\\80\\00\\00\\00\\40\\00\\00\\00")
  (func (export "_start") (local $refused i32)
    (local.set $refused (call $path_open (i32.const 3) (i32.const 0) (i32.const 0) (i32.const 22) (i32.const 0)
      (i64.const 2) (i64.const 2) (i32.const 0) (i32.const 64)))
    (if (local.get $refused) (then (call $proc_exit (local.get $refused))))
    (drop (call $fd_read (i32.load (i32.const 64)) (i32.const 96) (i32.const 1) (i32.const 72)))
    (drop (call $fd_write (i32.const 1) (i32.const 96) (i32.const 1) (i32.const 72)))))"""
HOLE = command("nop")

WASM = [
    Row("endless loop", LOOP, "a run past its time", "the clock of epochs", ("timeout",), runtime="wasm",
        during=overtime, remove=("clock",), seconds=1),
    Row("more fuel", LOOP, "more instructions than were paid for", "fuel", ("out_of_fuel", "timeout"),
        runtime="wasm", during=worked_for(3), loosen=("clock",), remove=("fuel",),
        timeless=True, seconds=2, fuel=10**8),
    Row("memory without end", GROW, "more memory than the job's", "the store's limit of memory", ("oom",),
        runtime="wasm", during=memory(200 * MIB), remove=("memory",), memory=64),
    Row("table without end", TABLE, "memory by a table", "the store's limit of tables", ("trap", "oom"), runtime="wasm",
        during=memory(170 * MIB), remove=("table",), memory=64),
    Row("recursion", RECURSION, "the end of its process by a signal", "the limit of its stack", ("trap",),
        runtime="wasm", after=engine_fell, remove=("stack",)),
    Row("way up", CLIMB, "a file above its folders, by `..`", "the paths of WASI", ("exit",), runtime="wasm",
        after=told, loosen=("files",), remove=("paths",)),
    Row("outputs without end", "fill /out/x 25165824", "24 MiB in outputs of 8 MiB", "the quota of /out",
        ("output_over_cap",), runtime="wasm", after=disk(20 * MIB), loosen=("watch",), remove=("quota",)),
    Row("files without end", "fds stay", "more descriptors than 256", "the cap of descriptors", ("exit",),
        runtime="wasm", during=open_over(300), remove=("descriptors",)),
    Row("words without end", "flood", "4 MB of the worker's memory", "the buffer of logs", ("ok",), runtime="wasm",
        after=much_kept, patch=whole_logs),
    Row("hole: key", "read_key", "the provider's key", "Landlock", ("bad_input",), runtime="wasm",
        after=told, remove=("files",)),
    Row("hole: file", "plant_file", "a file beside the key", "Landlock", ("bad_input",), runtime="wasm",
        after=planted, remove=("files",)),
    Row("hole: environment", "read_environment", "the worker's environment", "Landlock", ("bad_input",), runtime="wasm",
        after=environment_told, loosen=("rights",), remove=("files",)),
    Row("hole: call", "call_out", "a datagram to a port of the host", "seccomp", ("bad_input",), runtime="wasm",
        during=received, after=received, remove=("calls",)),
    Row("hole: process", "start_process", "a process of its own", "seccomp", ("bad_input",), runtime="wasm",
        during=processes(1), remove=("calls",)),
    Row("hole: signal", "signal_worker", "a signal to the worker", "seccomp", ("bad_input",), runtime="wasm",
        during=signalled, after=signalled, loosen=("files",), remove=("calls",)),
    Row("hole: threads", "start_threads", "100 threads", "seccomp", ("bad_input",), runtime="wasm",
        during=threads(90), remove=("calls",)),
    Row("hole: shared memory", "share_memory", "400 MiB in a job of 64 MiB", "seccomp: `mmap` is private",
        ("bad_input",), runtime="wasm", during=memory(390 * MIB), remove=("calls",), memory=64),
    Row("hole: hoarded memory", "hoard_memory", "800 MiB in a job of 64 MiB", "the watch of its memory", ("bad_input",),
        runtime="wasm", during=lasting(memory(700 * MIB)), remove=("watch",), memory=64),
    Row("hole: files", "fill_tmp", "17,000 files in /tmp", "the watch of its folders", ("bad_input",), runtime="wasm",
        during=lasting(tmp_entries(16_900)), remove=("watch",)),
    Row("hole: answer", "false_answer", "a fault of the worker's that is none", "the reading of answers", ("trap",),
        runtime="wasm", after=blames_the_worker, patch=believing),
]  # fmt: skip

ROWS = {row.name: row for row in (*DOCKER, *WASM)}


def lacking(name: str) -> str:
    """Return what this machine lacks for a program to succeed without its defence; "" where it can."""
    if name == "core file" and _setting("kernel/core_pattern").startswith(("|", "/")):
        return "this machine keeps core files elsewhere"
    if name == "user namespace" and _setting("kernel/apparmor_restrict_unprivileged_userns") == "1":
        return "this machine gives no user namespaces"
    if name == "io_uring" and _setting("kernel/io_uring_disabled") == "2":
        return "this machine has no io_uring"
    if name.startswith("hole:") and (walls.landlock_version() < walls.LEAST_VERSION or not walls.has_filters()):
        return "this kernel has no Landlock or no seccomp filter"
    return ""


def _setting(name: str) -> str:
    path = Path("/proc/sys") / name
    return path.read_text().strip() if path.exists() else ""


def table() -> list[str]:
    """Return the lines of docs/ASSURANCE.md about the programs: `python -m tests.abuse.programs` prints them."""
    titles = ("Program", "Runtime", "What stops it", "Without that it has", "With it the worker reports")
    lines = [f"| {' | '.join(titles)} |", "|---|---|---|---|---|"]
    for row in ROWS.values():
        stopped = f"{row.defence} (others out)" if row.loosen else row.defence
        lines.append(f"| {row.name} | {row.runtime} | {stopped} | {row.achieves} | {' or '.join(row.ends)} |")
    return lines


if __name__ == "__main__":
    print("\n".join(table()))
