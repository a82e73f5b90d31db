"""A program that says what it sees of the rules it lives under, for test_profiles.py: it runs in a container.

Its one line of JSON is all that it prints; then it stays for a moment, to be looked at from outside.
"""

import ctypes
import json
import os
import resource
import select
import socket
import time

libc = ctypes.CDLL(None, use_errno=True)


def text(path):
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return None


def can_write(path):
    try:
        os.close(os.open(path, os.O_WRONLY))
    except OSError:
        return False
    return True


def refused(number, *arguments):
    """Say whether a system call of x86-64 fails, tried in a process of its own."""
    pid = os.fork()
    if pid == 0:
        os._exit(0 if libc.syscall(ctypes.c_long(number), *map(ctypes.c_long, arguments)) < 0 else 1)
    return os.waitpid(pid, 0)[1] == 0


def mounts():
    """Return the options of each mount by where it is; a later one hides an earlier one."""
    lines = [line.split() for line in text("/proc/mounts").splitlines()]
    return {line[1]: line[3].split(",") for line in lines}


def listed(path):
    return sorted(os.listdir(path)) if os.path.isdir(path) else []


def main():
    pages = ctypes.create_string_buffer(256)
    print(
        json.dumps(
            {
                "status": dict(line.split(":", 1) for line in text("/proc/self/status").splitlines()),
                "no_new_privileges": libc.prctl(39, 0, 0, 0, 0),
                "refused": {
                    "io_uring": refused(425, 1, ctypes.addressof(pages)),
                    "ptrace": refused(101, 0, 0, 0, 0),
                    "mount": refused(165, ctypes.addressof(pages), ctypes.addressof(pages), 0, 0, 0),
                    "unshare": refused(272, 0x10000000),
                },
                "interfaces": [name for _, name in socket.if_nameindex()],
                "mounts": mounts(),
                "devices": listed("/dev"),
                "limits": {
                    name: resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))
                    for name in ("NOFILE", "CORE", "FSIZE")
                },
                "oom": text("/proc/self/oom_score_adj"),
                "cgroups": [line.split(":", 2)[2] for line in text("/proc/self/cgroup").splitlines()],
                "cgroup_written": [
                    path
                    for folder, _, names in os.walk("/sys/fs/cgroup")
                    for path in (os.path.join(folder, name) for name in names)
                    if can_write(path)
                ],
                "pid": os.getpid(),
                "processes": [int(name) for name in os.listdir("/proc") if name.isdigit()],
                "first": text("/proc/1/comm"),
                "keys": text("/proc/keys"),
                "firmware": listed("/sys/firmware"),
                "sys_written": can_write("/proc/sys/kernel/hostname"),
                "uid_map": text("/proc/self/uid_map"),
                "kernel": os.uname().release,
                "environ": dict(os.environ),
                "stdin": os.read(0, 1).decode() if select.select([0], [], [], 0.2)[0] else "open",
                "apparmor": text("/proc/self/attr/current"),
            }
        ),
        flush=True,
    )
    time.sleep(0.7)


main()
