"""What strangers run in containers: `python3 guest.py PROGRAM TOKEN WORDS..`, one function for each program.

A program that is refused ends at once with status 1 and says why. One that got through stays, so that the host can see
what it did; TOKEN is how the host knows its processes, and what it sends to whoever it reaches. Standard library only.
"""

from __future__ import annotations

import ctypes
import os
import platform
import shutil
import signal
import socket
import stat
import struct
import sys
import time
from pathlib import Path

STAY_SECONDS = 20
MIB = 1 << 20
TOKEN = sys.argv[2]
WORDS = sys.argv[3:]
COLUMN = {"x86_64": 0, "aarch64": 1}[platform.machine()]
NUMBERS = {"add_key": (248, 217), "userfaultfd": (323, 282), "io_uring_setup": (425, 425)}
LIBC = ctypes.CDLL(None, use_errno=True)


def stay() -> None:
    time.sleep(STAY_SECONDS)


def checked(result: int) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def ask(name: str, *values: object) -> int:
    LIBC.syscall.restype = ctypes.c_long
    wide = [ctypes.c_long(value) if isinstance(value, int) else value for value in values]
    return checked(int(LIBC.syscall(ctypes.c_long(NUMBERS[name][COLUMN]), *wide)))


def child(run: object) -> int:
    pid = os.fork()
    if pid == 0:
        run()  # type: ignore[operator]
        os._exit(0)
    return pid


# ---- what fills the machine ----


def fork_bomb() -> None:
    for _ in range(600):
        child(stay)
    stay()


def memory_hog() -> None:
    held = bytearray(b"x") * (200 * MIB)
    stay()
    del held


def tmp_filler() -> None:
    for number in range(2):
        with open(f"/tmp/{number}", "wb") as file:
            for _ in range(160):
                file.write(bytes(MIB))
    stay()


def shared_memory() -> None:
    """Make a segment of a size that the host can tell, and end: it belongs to no process."""
    LIBC.shmat.restype = ctypes.c_void_p
    at = LIBC.shmat(checked(LIBC.shmget(0, ctypes.c_size_t(int(WORDS[0])), 0o1600)), None, 0)
    ctypes.memset(ctypes.c_void_p(at), 1, int(WORDS[0]))


def output_filler() -> None:
    for number in range(40):
        with open(f"/out/{number}", "wb") as file:
            file.write(bytes(4 * MIB))
    stay()


def entry_bomb() -> None:
    for number in range(18_000):
        os.mknod(f"/out/{number}")
    stay()


def sparse_file() -> None:
    Path("/out/sparse").touch()
    os.truncate("/out/sparse", 1 << 40)


def preallocated_file() -> None:
    with open("/out/hidden", "wb") as file:
        size = ctypes.c_int64(96 * MIB)
        checked(LIBC.fallocate(file.fileno(), 1, ctypes.c_int64(0), size))
    stay()


def unnamed_files() -> None:
    """Hold files that have no name any more."""
    held = []
    for _ in range(40):
        held.append(os.open("/out/x", os.O_CREAT | os.O_RDWR))
        os.unlink("/out/x")
        os.write(held[-1], bytes(4 * MIB))
    stay()


def log_bomb() -> None:
    for _ in range(60):
        sys.stdout.buffer.write(b"0123456789abcde\n" * (MIB >> 4))
    sys.stdout.flush()
    time.sleep(2)


def spinner() -> None:
    def spin() -> None:
        while True:
            pass

    for _ in range(7):
        child(spin)
    spin()


def open_files() -> None:
    held = [os.open("/dev/null", os.O_RDONLY) for _ in range(2_000)]
    stay()
    del held


def core_file() -> None:
    """Crash with a core file of /out, by a child: the first process of a container takes no signal of its own.

    The core holds no memory, or it would be over the cap of /out, and whoever sees that first ends the program.
    """
    with open("/proc/self/coredump_filter", "w") as filter_:
        filter_.write("0")
    os.chdir("/out")
    os.waitpid(child(os.abort), 0)
    if os.listdir():
        stay()


def overtime() -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    stay()


# ---- what reaches somebody ----


def tcp_call() -> None:
    with socket.create_connection(("127.0.0.1", int(WORDS[0])), timeout=5) as line:
        line.sendall(TOKEN.encode())


def udp_call() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        line.sendto(TOKEN.encode(), ("127.0.0.1", int(WORDS[0])))


def local_call() -> None:
    with socket.socket(socket.AF_UNIX) as line:
        line.connect("\0" + WORDS[0])
        line.sendall(TOKEN.encode())


def raw_packet() -> None:
    """Send a datagram whose sender is forged."""
    body = TOKEN.encode()
    udp = struct.pack("!HHHH", 53, int(WORDS[0]), 8 + len(body), 0) + body
    sender, receiver = socket.inet_aton("127.0.0.9"), socket.inet_aton("127.0.0.1")
    header = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0, 64, socket.IPPROTO_UDP, 0, sender, receiver)
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as line:
        line.sendto(header + udp, ("127.0.0.1", 0))


def other_processes() -> None:
    """Print the arguments of a process of the host that hold a secret."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        for word in path.read_bytes().split(b"\0"):
            if word.startswith(b"hearth-secret-"):
                print(word.decode())
                return
    sys.exit("no process with a secret is to be seen")


# ---- what widens its rights ----


def mount() -> None:
    os.mkdir("/tmp/mounted")
    checked(LIBC.mount(b"none", b"/tmp/mounted", b"tmpfs", ctypes.c_ulong(0), None))
    stay()


def user_namespace() -> None:
    checked(LIBC.unshare(0x1000_0000))
    stay()


def trace() -> None:
    LIBC.ptrace.restype = ctypes.c_long
    checked(LIBC.ptrace(ctypes.c_long(0x4206), ctypes.c_long(child(stay)), None, None))
    stay()


def key() -> None:
    ask("add_key", b"user", TOKEN.encode(), b"x" * int(WORDS[0]), int(WORDS[0]), -2)
    stay()


def page_faults() -> None:
    ask("userfaultfd", 1)
    stay()


def ring() -> None:
    ask("io_uring_setup", 8, ctypes.create_string_buffer(256))
    stay()


def set_user_id() -> None:
    """Run a program of the image that belongs to root and has the set-user-ID bit."""
    program = f"import os, sys, time; os.geteuid() and sys.exit('still nobody'); time.sleep({STAY_SECONDS})"
    os.execv("/set-user-id", ["python3", "-c", program, TOKEN])


def root_files() -> None:
    Path("/usr/planted").write_text("x")
    stay()


def input_files() -> None:
    Path("/in/data.txt").write_text("spoilt")
    stay()


def device() -> None:
    os.mknod("/out/disk", stat.S_IFBLK | 0o666, os.makedev(7, 0))


def hidden_outputs() -> None:
    Path("/out/folder").mkdir()
    Path("/out/folder/file").write_text("x")
    os.chmod("/out/folder/file", 0)
    os.chmod("/out/folder", 0)


def linked_output() -> None:
    os.symlink(WORDS[0], "/out/stolen")


def program_of_tmp() -> None:
    shutil.copy(os.path.realpath("/bin/sh"), "/tmp/run")
    os.chmod("/tmp/run", 0o755)
    os.execv("/tmp/run", ["sh", "-c", f"sleep {STAY_SECONDS}; true", TOKEN])


if __name__ == "__main__":
    try:
        globals()[sys.argv[1]]()
    except (OSError, MemoryError) as refused:
        sys.exit(f"{sys.argv[1]}: {refused}")
