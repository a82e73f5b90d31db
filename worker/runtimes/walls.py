"""The second wall round a WebAssembly unit: what its process may still ask of the kernel once it has loaded the engine.

The engine is the first wall. A hole in it gives a stranger this process, which has the worker's user; so before it sees
a byte of a module it gives up, for good, the capabilities that a worker of root has, every file but its unit's
(Landlock) and every system call but the few that running a unit takes (seccomp): no other file, so no key; no socket,
no program, no other process or thread, no mount, no memory that its limits do not count. Each wall stands where the
kernel has it; `look` says which, for `hearth worker doctor`.
Sources: https://docs.kernel.org/userspace-api/landlock.html, https://man7.org/linux/man-pages/man2/seccomp.2.html,
https://man7.org/linux/man-pages/man7/capabilities.7.html.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from worker.runtimes.base import Check, Level

PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 24, 38

# ---- capabilities: linux/capability.h ----

CAPABILITY_VERSION = 0x2008_0522
CAPABILITIES: Final = 64
"""As many as the kernel's words hold; it has fewer, and says of the first that it does not have that it is invalid."""

# ---- Landlock: linux/landlock.h; its three calls have the same numbers on every machine ----

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
ASK_VERSION = 1
RULE_PATH_BENEATH = 1
LEAST_VERSION: Final = 2
"""Version 1 (Linux 5.13 to 5.18) refuses every move between folders, which a unit may make within /out."""
_WRITE_FILE, _READ_FILE, _READ_DIR, _REMOVE_DIR, _REMOVE_FILE, _MAKE_DIR, _MAKE_REG, _REFER, _TRUNCATE = (
    *(1 << bit for bit in (1, 2, 3, 4, 5, 7, 8, 13, 14)),
)
_READ_FOLDER: Final = _READ_FILE | _READ_DIR
_USE_FOLDER: Final = (
    _READ_FOLDER | _WRITE_FILE | _REMOVE_DIR | _REMOVE_FILE | _MAKE_DIR | _MAKE_REG | _REFER | _TRUNCATE
)
_FILE_RIGHTS: Final = {2: 14, 3: 15, 5: 16}
"""Version -> how many rights over files it knows, the lowest bits; a later version knows those of the one before."""
_TCP: Final = 0b11
"""Binding and connecting, from version 4 on."""
_SCOPES: Final = 0b11
"""Abstract sockets and signals of processes outside, from version 6 on."""

# ---- seccomp: linux/seccomp.h, linux/filter.h, linux/audit.h ----

SET_MODE_FILTER, GET_ACTION_AVAIL = 1, 2
ALL_THREADS = 1
KILL_PROCESS, ERRNO, ALLOW = 0x8000_0000, 0x0005_0000, 0x7FFF_0000
_LOAD, _AND, _IF_EQUAL, _RETURN = 0x20, 0x54, 0x15, 0x06
_NUMBER_AT, _MACHINE_AT, _ARGUMENTS_AT = 0, 4, 16
_EPERM, _ENOSYS = 1, 38


class Machine(NamedTuple):
    """A kind of processor: its name in the kernel's audit log, its column in CALLS, its number of the call seccomp."""

    audit: int
    column: int
    seccomp: int


MACHINES: Final[Mapping[str, Machine]] = {
    "x86_64": Machine(0xC000_003E, 0, 317),
    "aarch64": Machine(0xC000_00B7, 1, 277),
}

CALLS: Final[Mapping[str, tuple[int | None, int | None]]] = {
    # files: which ones is Landlock's business
    "open": (2, None),
    "stat": (4, None),
    "lstat": (6, None),
    "openat": (257, 56),
    "newfstatat": (262, 79),
    "statx": (332, 291),
    "fstat": (5, 80),
    "read": (0, 63),
    "readv": (19, 65),
    "pread64": (17, 67),
    "write": (1, 64),
    "writev": (20, 66),
    "pwrite64": (18, 68),
    "lseek": (8, 62),
    "ftruncate": (77, 46),
    "getdents64": (217, 61),
    "mkdirat": (258, 34),
    "unlinkat": (263, 35),
    "renameat": (264, 38),
    "renameat2": (316, 276),
    "dup": (32, 23),
    "close": (3, 57),
    "fcntl": (72, 25),
    "ioctl": (16, 29),
    # memory
    "brk": (12, 214),
    "mmap": (9, 222),
    "mprotect": (10, 226),
    "mremap": (25, 216),
    "munmap": (11, 215),
    "madvise": (28, 233),
    "membarrier": (324, 283),
    # what threads share, and the end of this process
    "futex": (202, 98),
    "sched_yield": (24, 124),
    "sched_getaffinity": (204, 123),
    "getpid": (39, 172),
    "gettid": (186, 178),
    "tgkill": (234, 131),
    "exit": (60, 93),
    "exit_group": (231, 94),
    # signals that this process takes: the engine's traps are some
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "sigaltstack": (131, 132),
    "restart_syscall": (219, 128),
    # time, chance, the machine
    "clock_gettime": (228, 113),
    "clock_getres": (229, 114),
    "clock_nanosleep": (230, 115),
    "nanosleep": (35, 101),
    "gettimeofday": (96, 169),
    "getrandom": (318, 278),
    "uname": (63, 160),
    "sysinfo": (99, 179),
}
"""Calls that are left -> their numbers on x86-64 and arm64; others are answered as if the kernel did not have them."""


class Only(NamedTuple):
    """Leave a call only where an argument, of its lower 32 bits those in `mask`, is one of `values`."""

    argument: int
    mask: int
    values: tuple[int, ...]


_MAP_PRIVATE = 0x02
_MAP_TYPE, _MAP_GROWSDOWN, _MAP_HUGETLB = 0x0F, 0x0100, 0x0004_0000
_F_GETFD, _F_SETFD, _F_GETFL, _F_DUPFD_CLOEXEC = 1, 2, 3, 1030
_FIOCLEX = 0x5451
_MADV_DONTNEED, _MADV_FREE = 4, 8


def conditions(pid: int) -> Mapping[str, Only]:
    """Return the calls of CALLS that are left in part: memory that is counted, folders that their owner can read and
    delete, signals to itself."""
    whole = 0xFFFF_FFFF
    return {
        # What an allocator asks for: not to take pages from the machine (of root), nor to find equal ones of others.
        "madvise": Only(2, whole, (_MADV_DONTNEED, _MADV_FREE)),
        # It counts neither what is shared nor what grows like a stack; huge pages are the machine's own few.
        "mmap": Only(3, _MAP_TYPE | _MAP_GROWSDOWN | _MAP_HUGETLB, (_MAP_PRIVATE,)),
        "mkdirat": Only(2, 0o700, (0o700,)),
        "fcntl": Only(1, whole, (_F_GETFD, _F_SETFD, _F_GETFL, _F_DUPFD_CLOEXEC)),
        "ioctl": Only(1, whole, (_FIOCLEX,)),
        "tgkill": Only(0, whole, (pid,)),
    }


def raise_walls(read: Iterable[str], write: Iterable[str], threads: Callable[[], None]) -> None:
    """Shut this process, of one thread, in: from now on it opens only what is at or below these paths.

    `threads` starts those that it needs beside: between the walls, since a thread has the wall of files of the one that
    starts it, and that of calls is put round all at once and lets no other be started.
    Walls that this kernel does not have are left out. Raises OSError where it has one and it cannot be raised.
    """
    _prctl(PR_SET_NO_NEW_PRIVS, 1)
    drop_capabilities()
    if landlock_version() >= LEAST_VERSION:
        shut_files(read, write)
    threads()
    if has_filters():
        shut_calls()


def look() -> list[Check]:
    """Return a row for each wall: whether it stands on this machine."""
    version = landlock_version()
    if version >= LEAST_VERSION:
        files = Check("wasm files", Level.PASS, f"Landlock {version}: a module's process opens its unit's files only")
    else:
        files = Check(
            "wasm files",
            Level.WARN,
            "no Landlock here: a module that breaks out of its engine can open what this user can, the key file too",
            "boot Linux 5.19 or newer, with landlock among its security modules (lsm=)",
        )
    if has_filters():
        calls = Check(
            "wasm system calls",
            Level.PASS,
            f"seccomp: a module's process has {len(CALLS)} calls, none to a network or for a thread",
        )
    else:
        calls = Check(
            "wasm system calls",
            Level.WARN,
            "no seccomp filter here: a module that breaks out of its engine can open sockets and start programs",
            f"boot a kernel with seccomp filters, on one of {', '.join(MACHINES)}",
        )
    return [files, calls]


# ---- capabilities ----


def drop_capabilities() -> None:
    """Give up what the kernel lets root do beside using its own files: what it may do, could do and could hand on.

    A filter leaves calls, not what they do for root: `madvise` takes pages from the machine, `open` passes any mode.
    """
    for capability in range(CAPABILITIES):
        try:
            _prctl(PR_CAPBSET_DROP, capability)
        except OSError as refused:
            # The first that this kernel does not have; or whoever is not root, which has none to hand on.
            if refused.errno not in (errno.EINVAL, errno.EPERM):
                raise
            break
    # Effective, permitted, inheritable, of 32 bits, low and high; the kernel keeps what is ambient within these.
    header = struct.pack("<Ii", CAPABILITY_VERSION, 0)
    _checked(int(_libc().capset(header, bytes(24))))


# ---- files ----


def landlock_version() -> int:
    """Return the version of the kernel's Landlock, 0 where there is none or it is switched off."""
    return max(0, _syscall(CREATE_RULESET, None, 0, ASK_VERSION))


def shut_files(read: Iterable[str], write: Iterable[str]) -> None:
    """Refuse this thread every file but those at or below `read`, to be read, and at or below `write`."""
    version = landlock_version()
    rights = (1 << next(count for least, count in sorted(_FILE_RIGHTS.items(), reverse=True) if version >= least)) - 1
    # A shorter structure says that the rest is not asked: a version takes no more than it knows.
    wanted = struct.pack("<QQQ", rights, _TCP, _SCOPES)[: 8 if version < 4 else 16 if version < 6 else 24]
    ruleset = _checked(_syscall(CREATE_RULESET, wanted, len(wanted), 0))
    try:
        for paths, allowed in ((read, _READ_FOLDER), (write, _USE_FOLDER)):
            for path in paths:
                _allow(ruleset, path, allowed & rights)
        _checked(_syscall(RESTRICT_SELF, ruleset, 0))
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    below = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        rights = rights if os.path.isdir(path) else rights & (_READ_FILE | _WRITE_FILE | _TRUNCATE)
        _checked(_syscall(ADD_RULE, ruleset, RULE_PATH_BENEATH, struct.pack("<Qi", rights, below), 0))
    finally:
        os.close(below)


# ---- system calls ----


def has_filters() -> bool:
    """Say whether this kernel filters calls, on a processor whose numbers are known here."""
    machine = MACHINES.get(os.uname().machine)
    return machine is not None and _syscall(machine.seccomp, GET_ACTION_AVAIL, 0, struct.pack("<I", ERRNO)) == 0


def shut_calls() -> None:
    """Refuse every thread of this process each call that is not in CALLS."""
    machine = MACHINES[os.uname().machine]
    code = program(machine, os.getpid())
    buffer = ctypes.create_string_buffer(code, len(code))
    header = struct.pack("HxxxxxxP", len(code) // _INSTRUCTION.size, ctypes.addressof(buffer))
    left_out = _checked(_syscall(machine.seccomp, SET_MODE_FILTER, ALL_THREADS, header))
    if left_out:
        raise OSError(errno.EBUSY, f"thread {left_out} has a filter of its own")


_INSTRUCTION: Final = struct.Struct("<HBBI")
"""Of the classic Berkeley packet filter: code, jump if true, jump if false, value."""


def program(machine: Machine, pid: int) -> bytes:
    """Return the filter that the kernel runs before every call of the process `pid`, on `machine`."""
    special = conditions(pid)
    # Another machine's calls (those of 32-bit programs) have other numbers: nothing here makes one.
    lines = [(_LOAD, 0, 0, _MACHINE_AT), (_IF_EQUAL, 1, 0, machine.audit), (_RETURN, 0, 0, KILL_PROCESS)]
    lines.append((_LOAD, 0, 0, _NUMBER_AT))
    for name, numbers in CALLS.items():
        number = numbers[machine.column]
        if number is not None:
            verdict = _in_part(special[name]) if name in special else [(_RETURN, 0, 0, ALLOW)]
            lines += [(_IF_EQUAL, 0, len(verdict), number), *verdict]
    # Libraries fall back on what an older kernel has; "not permitted" they would take for a fault.
    lines.append((_RETURN, 0, 0, ERRNO | _ENOSYS))
    return b"".join(_INSTRUCTION.pack(*line) for line in lines)


def _in_part(only: Only) -> list[tuple[int, int, int, int]]:
    lines = [(_LOAD, 0, 0, _ARGUMENTS_AT + 8 * only.argument), (_AND, 0, 0, only.mask)]
    for value in only.values:
        lines += [(_IF_EQUAL, 0, 1, value), (_RETURN, 0, 0, ALLOW)]
    return [*lines, (_RETURN, 0, 0, ERRNO | _EPERM)]


# ---- the kernel ----


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _raw(value: int | bytes | None) -> ctypes.c_long | ctypes.c_char_p:
    return ctypes.c_long(value) if isinstance(value, int) else ctypes.c_char_p(value)


def _syscall(number: int, *values: int | bytes | None) -> int:
    """Make a call that the C library does not know; bytes are passed by their address."""
    libc = _libc()
    libc.syscall.restype = ctypes.c_long
    return int(libc.syscall(ctypes.c_long(number), *map(_raw, values)))


def _prctl(option: int, *values: int | bytes) -> None:
    """Set a property of this thread; the kernel refuses one whose unused arguments are not zero."""
    padded = [*map(_raw, values), *[ctypes.c_long(0)] * (4 - len(values))]
    _checked(int(_libc().prctl(ctypes.c_int(option), *padded)))


def _checked(result: int) -> int:
    """Return what the kernel answered. Raises OSError where that is a refusal."""
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result
