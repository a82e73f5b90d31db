"""The profile of each runtime: every rule that a guest lives under, with what it denies and how it is asked and seen.

The rules themselves are in docker_request (a container), walls and wasm_child (a module's process); worker.md has
these tables. A test walks them: each rule is looked at from inside a real guest and, where that can be, from outside,
and a key of the engine's create call that belongs to no rule is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from worker.runtimes.base import Check, Level

GVISOR: Final = "runsc"
"""The name of gVisor's program; a runtime registered as this, or as this and more after a hyphen, is taken for it."""
GPU_ROW: Final = "GPU by CDI"
"""The row of `hearth worker doctor` about an engine that gives GPUs."""
NO_GPU_IN_GVISOR: Final = "no GPU is given to a container in gVisor"


SELFTEST: Final = "selftest"


class Rule(NamedTuple):
    """Hold one rule: its name, what it denies, how it is asked for, and how it shows inside.

    `keys` are the keys of the engine's create call by which it is asked, those of HostConfig with a dot before them;
    `gvisor` says what is otherwise under gVisor, "" where nothing is. `row` is the row of `hearth worker doctor` that
    sees whether this machine has it: SELFTEST where only a program inside can, "" where every machine has it.
    """

    name: str
    denies: str
    asked: str
    inside: str
    keys: tuple[str, ...] = ()
    gvisor: str = ""
    row: str = ""


DOCKER_PROFILE: Final = (
    Rule(
        "user",
        "being root, the worker, or another guest that runs",
        "`User` 60706 to 61183, no other container's, group 65534, whatever the image says",
        "`Uid` and `Gid` of /proc/self/status",
        ("User",),
        row=SELFTEST,
    ),
    Rule(
        "capabilities",
        "every right of root, set-id programs included",
        "`CapDrop` ALL; `Privileged` false",
        "five empty sets in /proc/self/status",
        (".CapDrop", ".Privileged"),
        "four sets: it has no ambient ones",
        row=SELFTEST,
    ),
    Rule(
        "no new privileges",
        "gaining rights by starting a program",
        "`SecurityOpt` no-new-privileges",
        "`prctl` says 1",
        (".SecurityOpt",),
        row=SELFTEST,
    ),
    Rule(
        "system calls",
        "calls that no job needs",
        "`SecurityOpt` seccomp=, the worker's own list; with GPUs also what a program says of where its own memory is "
        "to be (get_mempolicy, set_mempolicy, mbind)",
        "`Seccomp` is 2; io_uring, mount, ptrace and new namespaces are refused",
        (".SecurityOpt",),
        "every call is gVisor's own, whose process on the host has a filter of its own (`Seccomp` is 2 there)",
        row="seccomp",
    ),
    Rule(
        "apparmor",
        "what the engine's own AppArmor profile lists",
        "nothing: an engine adds it by itself where the kernel has AppArmor",
        "/proc/self/attr/current, where the kernel has AppArmor",
        (),
        "gVisor has none",
        row="apparmor",
    ),
    Rule(
        "network",
        "every network",
        "`NetworkMode` none; `NetworkDisabled`",
        "loopback is the only interface",
        (".NetworkMode", "NetworkDisabled"),
    ),
    Rule(
        "root file system",
        "writing to the image",
        "`ReadonlyRootfs`",
        "/ is mounted read-only",
        (".ReadonlyRootfs",),
    ),
    Rule(
        "temporary files",
        "filling memory, or running programs, by /tmp, /dev/shm and the image's volumes",
        "`Tmpfs` with a size, noexec, nosuid, nodev; `ShmSize` 64 MiB, with GPUs 1 GiB or half of the job's memory",
        "options and sizes of the mounts",
        (".Tmpfs", ".ShmSize"),
        "without nodev, and no device can be made",
    ),
    Rule(
        "scratch",
        "running what the job wrote. With GPUs it may, in one folder, since frameworks compile for the card that they "
        "find: it has no right that its first program had not",
        "with GPUs `Tmpfs` /scratch: exec, nosuid, nodev, 8 GiB or half of the job's memory",
        "there is no /scratch without GPUs",
        (".Tmpfs",),
    ),
    Rule(
        "mounts",
        "any folder of the host but three, and writing to two of these",
        "`Mounts`: /job and /in read-only, /out writable, none shared back",
        "/job and /in are mounted read-only; no other folder of the host",
        (".Mounts",),
    ),
    Rule(
        "devices",
        "hardware",
        "nothing: the engine's list is the harmless ones",
        "names in /dev",
        (),
        "/dev/fuse and /dev/net/tun are gVisor's own",
    ),
    Rule(
        "gpus",
        "GPUs that the job was not given, all of them in an image that asks for them itself",
        "`DeviceRequests` by name through CDI, `GroupAdd` for AMD's; `NVIDIA_VISIBLE_DEVICES` and AMD's are void",
        "no /dev/nvidia*",
        (".DeviceRequests", ".GroupAdd"),
        "none is given: a job with GPUs is refused",
        row=GPU_ROW,
    ),
    Rule(
        "processes",
        "more processes and threads than the job may have",
        "`PidsLimit`",
        "pids.max of its control group; one more cannot be made",
        (".PidsLimit",),
        "twice as many and 64, since the sandbox's own threads count; beyond them the sandbox ends",
        row="process limit",
    ),
    Rule(
        "memory",
        "more memory than the job has",
        "`Memory`",
        "memory limit of its control group; a program beyond it is killed",
        (".Memory",),
        "64 MiB more, since the sandbox's own memory counts",
        row="memory limit",
    ),
    Rule(
        "swap",
        "swapping",
        "`MemorySwap`, equal to `Memory`",
        "as seen from outside",
        (".MemorySwap",),
        row="swap limit",
    ),
    Rule(
        "cpu time",
        "more cores than the job has",
        "`NanoCpus`",
        "cpu quota of its control group",
        (".NanoCpus",),
        row="cpu limit",
    ),
    Rule(
        "open files",
        "more than 1,024 open files a process, with GPUs 16,384: each tensor that a data loader passes is one",
        "`Ulimits` nofile",
        "RLIMIT_NOFILE",
        (".Ulimits",),
    ),
    Rule(
        "core files",
        "core files, and dumps to a program that collects them",
        "`Ulimits` core 1",
        "RLIMIT_CORE",
        (".Ulimits",),
    ),
    Rule(
        "file size",
        "one file far above the output's cap",
        "`Ulimits` fsize",
        "RLIMIT_FSIZE",
        (".Ulimits",),
    ),
    Rule(
        "out of memory",
        "the worker being killed before the job where the machine has no memory left",
        "`OomScoreAdj` 500",
        "/proc/self/oom_score_adj",
        (".OomScoreAdj",),
        "seen from outside only",
    ),
    Rule(
        "ipc",
        "others' shared memory, semaphores and queues",
        "`IpcMode` private",
        "its namespace is not the host's",
        (".IpcMode",),
    ),
    Rule(
        "control groups",
        "seeing, or changing, the limits of others and its own",
        "`CgroupnsMode` private",
        "/proc/self/cgroup is its own root; no limit can be written",
        (".CgroupnsMode",),
        "gVisor's own tree, and the container's name in it",
    ),
    Rule(
        "other processes",
        "seeing or signalling any process but its own",
        "nothing: `PidMode` and `UTSMode` are never asked",
        "it is process 1, and the others are its own",
    ),
    Rule(
        "kernel files",
        "reading the kernel's secrets and changing its settings in /proc and /sys",
        "nothing: the engine's masked and read-only paths",
        "/proc/keys and /sys/firmware are empty, /proc/sys cannot be written",
        (),
        "these files are gVisor's own",
    ),
    Rule(
        "user namespace",
        "a root of the container being one outside",
        "nothing: the engine's `userns-remap`, or a rootless engine; `UsernsMode` is never asked",
        "/proc/self/uid_map",
        (),
        "/proc/self/uid_map is gVisor's own",
        row="user namespace",
    ),
    Rule(
        "kernel",
        "speaking to the host's kernel",
        "`Runtime`, as `docker.runtime` of worker.toml says: runsc, or the engine's own",
        "the kernel names itself gVisor",
        (".Runtime",),
        row="gVisor (runsc)",
    ),
    Rule(
        "environment",
        "what the worker knows: paths, addresses, keys",
        "`Env`: the job's, `USER`, `HEARTH_UNIT`, `HEARTH_UNITS`, and `HOME`=/tmp where neither job nor image sets it, "
        "with GPUs /scratch, and folders in it as the caches of CUDA, Triton and Inductor; "
        "names that steer a loader or the GPU hook are refused",
        "its environment",
        ("Env",),
    ),
    Rule(
        "input",
        "a terminal, and words from one",
        "`OpenStdin` and `Tty` false",
        "stdin ends at once",
        ("OpenStdin", "Tty"),
    ),
    Rule(
        "init",
        "a program that is not the job's",
        "`Init` false, whatever the engine's default",
        "process 1 is the job's",
        (".Init",),
    ),
    Rule(
        "logs",
        "filling the engine's disk by words",
        "`LogConfig` local, two files of 10 MB",
        "as seen from outside",
        (".LogConfig",),
        row="log driver local",
    ),
    Rule(
        "end",
        "starting again, running after its end, checks that the image brings",
        "`StopTimeout` 5 s, `RestartPolicy` no, `Healthcheck` none",
        "as seen from outside",
        ("StopTimeout", ".RestartPolicy", "Healthcheck"),
    ),
)

WASM_PROFILE: Final = (
    Rule(
        "module",
        "anything but what WASI gives: no pointer leaves its memory",
        "wasmtime, of one version and configuration",
        "an access beyond its memory is a trap",
        row="wasm",
    ),
    Rule(
        "files",
        "every file but its unit's",
        "Landlock, Linux 5.19 or newer",
        "the worker's key cannot be opened",
        row="wasm files",
    ),
    Rule(
        "system calls",
        "all but the few that a run takes",
        "a seccomp filter",
        "`Seccomp` is 2; `ptrace` and `mount` are absent",
        row="wasm system calls",
    ),
    Rule(
        "network",
        "every socket",
        "the seccomp filter, and Landlock 4 or newer",
        "no socket can be made",
        row="wasm system calls",
    ),
    Rule(
        "programs",
        "another program, another process",
        "the seccomp filter, and Landlock",
        "`fork` and `execve` fail",
        row="wasm system calls",
    ),
    Rule(
        "threads",
        "a thread beside the guest's and the clock's",
        "the seccomp filter, round both at once",
        "there are two, and no other can be started",
        row="wasm system calls",
    ),
    Rule(
        "uncounted memory",
        "memory that RLIMIT_DATA does not count: shared, growing like a stack, huge pages",
        "the seccomp filter: `mmap` is private",
        "no shared mapping can be made",
        row="wasm system calls",
    ),
    Rule(
        "listed folders",
        "folders that their owner cannot read, count and delete",
        "the seccomp filter: `mkdirat` with the owner's rights",
        "none can be made",
        row="wasm system calls",
    ),
    Rule(
        "memory advice",
        "taking pages from the machine, or finding equal ones of others",
        "the seccomp filter: `madvise` gives memory back",
        "no other advice is taken",
        row="wasm system calls",
    ),
    Rule("no new privileges", "gaining rights by starting a program", "`PR_SET_NO_NEW_PRIVS`", "`NoNewPrivs` is 1"),
    Rule(
        "capabilities",
        "what a worker that is root may do, within the calls that are left",
        "`PR_CAPBSET_DROP` of all, `capset` to none",
        "the five sets of /proc/self/status are 0",
    ),
    Rule(
        "memory",
        "more than the job's and 256 MiB for the engine",
        "RLIMIT_DATA and RLIMIT_AS; the engine's own cap for the module",
        "both limits",
    ),
    Rule(
        "watch",
        "memory beyond the job's and 512 MiB; more in /out or /tmp than their bytes and 16,384 entries",
        "the worker looks every 0.1 s, rarer where there is much to walk through, and kills",
        "what it holds too much of ends it",
    ),
    Rule(
        "out of memory",
        "the worker being killed before the job where the machine has no memory left",
        "`oom_score_adj` 500",
        "/proc/self/oom_score_adj",
    ),
    Rule("cpu time", "computing without end", "fuel, an epoch deadline, RLIMIT_CPU", "RLIMIT_CPU"),
    Rule("open files", "more descriptors than WASI's table has, twice", "RLIMIT_NOFILE", "RLIMIT_NOFILE"),
    Rule("file size", "one file above the caps of /out and /tmp", "RLIMIT_FSIZE", "RLIMIT_FSIZE"),
    Rule("core files", "core files, and dumps to a program that collects them", "RLIMIT_CORE 1", "RLIMIT_CORE"),
    Rule("inspection", "other processes of the same user reading its memory", "`PR_SET_DUMPABLE` 0", "`prctl` says 0"),
    Rule(
        "environment",
        "what the worker knows: paths, addresses, keys",
        "two variables of our own, the second taken out at once",
        "its environment",
    ),
    Rule(
        "descriptors",
        "what the worker has open",
        "the three standard ones and the pipe of its answer are passed",
        "/proc/self/fd",
    ),
    Rule("end", "living longer than the worker", "`PR_SET_PDEATHSIG` SIGKILL, a session of its own", "`prctl` says 9"),
)


def is_gvisor(runtime: str) -> bool:
    """Say whether an OCI runtime, by the name that it is registered under, is gVisor."""
    return runtime == GVISOR or runtime.startswith(f"{GVISOR}-")


class State(StrEnum):
    """Say whether a wall stands; UNSEEN where that shows only inside a guest, or whoever knows does not answer."""

    STANDS = "stands"
    MISSING = "missing"
    UNSEEN = "unseen"


class Wall(NamedTuple):
    """Report one wall round a runtime's guests: whether it stands, what that means, and what to do about it."""

    runtime: str
    name: str
    state: State
    detail: str
    fix: str = ""


def profile_walls(runtime: str, profile: Iterable[Rule], rows: Sequence[Check]) -> list[Wall]:
    """Return the walls of a runtime that a machine may lack, by the rows of `hearth worker doctor`.

    Where a runtime does not answer, its own row says why, and nothing is said of its walls.
    """
    return [_wall(runtime, rule, rows) for rule in profile if rule.row]


def _wall(runtime: str, rule: Rule, rows: Sequence[Check]) -> Wall:
    """Return a wall that stands where the rows that see it pass, and is unseen where there is none."""
    seen = [row for row in rows if row.name == rule.row]
    bad = next((row for row in seen if row.level is not Level.PASS), None)
    silent = next((row for row in rows if row.name == runtime and row.level is not Level.PASS), None)
    if bad is not None:
        return Wall(runtime, rule.name, State.MISSING, bad.detail, bad.fix)
    if seen:
        return Wall(runtime, rule.name, State.STANDS, f"denies {rule.denies}")
    if silent is not None:
        return Wall(runtime, rule.name, State.UNSEEN, silent.detail, silent.fix)
    return Wall(
        runtime, rule.name, State.UNSEEN, f"only a program inside could say: {rule.inside}", "hearth worker selftest"
    )
