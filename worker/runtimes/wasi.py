"""WASI preview 1 for one unit, written so that two machines see the same bytes.

Why not the engine's own WASI: it shows inode numbers, times and directory order of the host, and knows no size cap.
Here the clock starts at a constant and moves by fixed steps, random numbers come from a seed, directories are sorted,
every call is charged in fuel, and a write past a cap stops the guest at that very write on every machine. No sockets,
no links: a symbolic link can be neither made nor followed, so `..` can be resolved by name and never leaves a mount.
Source: https://github.com/WebAssembly/WASI/blob/main/legacy/preview1/docs.md (layouts, errno numbers).
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from hearth.protocol import wasi as preview1
from worker.runtimes.base import MAX_OUTPUT_DEPTH, MAX_OUTPUT_ENTRIES

CLOCK_START_NS = 1_577_836_800 * 10**9  # 2020-01-01T00:00:00Z
CLOCK_STEP_NS = 1_000_000
# A host call costs far more time than one instruction; without this a guest could burn hours of host time unpaid.
FUEL_PER_CALL = 20_000
FUEL_PER_BYTE = 1
FUEL_PER_RANDOM_BYTE = 16
MAX_FDS = 256
MAX_ENTRIES = MAX_OUTPUT_ENTRIES
MAX_PATH = 4096
MAX_DEPTH = MAX_OUTPUT_DEPTH - 1  # names below a mount: a tree must stay within what tools can walk and delete
MAX_IOVS = 1024
MAX_TRANSFER = 16 << 20
MAX_SUBSCRIPTIONS = 1024

OK, ACCES, BADF, EXIST, FAULT, ILSEQ, INVAL, ISDIR, LOOP, MFILE = 0, 2, 8, 20, 21, 25, 28, 31, 32, 33
NAMETOOLONG, NOENT, NOSYS, NOTDIR, NOTEMPTY, NOTSOCK, NOTSUP, PERM, ROFS, SPIPE = 37, 44, 52, 54, 55, 57, 58, 63, 69, 70
XDEV = 75
ERRNO = {
    errno.EACCES: ACCES,
    errno.EEXIST: EXIST,
    errno.EINVAL: INVAL,
    errno.EISDIR: ISDIR,
    errno.ELOOP: LOOP,
    errno.ENAMETOOLONG: NAMETOOLONG,
    errno.ENOENT: NOENT,
    errno.ENOTDIR: NOTDIR,
    errno.ENOTEMPTY: NOTEMPTY,
    errno.EPERM: PERM,
    errno.EXDEV: XDEV,
}
CHARACTER_DEVICE, DIRECTORY, REGULAR_FILE = 2, 3, 4
RIGHT_READ, RIGHT_SEEK, RIGHT_WRITE = 1 << 1, 1 << 2, 1 << 6
RIGHTS_ALL = (1 << 30) - 1
O_CREAT, O_DIRECTORY, O_EXCL, O_TRUNC = 1, 2, 4, 8
FD_APPEND = 1


class GuestExit(Exception):
    """End the guest because it called proc_exit."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class OverCap(Exception):
    """End the guest because it wrote more than a folder's cap."""


class OutOfFuel(Exception):
    """End the guest because a host call cost more fuel than was left."""


class TimeUp(Exception):
    """End the guest because its wall time is over."""


class Errno(Exception):
    """Answer a call with a WASI error number."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class GuestMemory(Protocol):
    """Read and write the guest's linear memory; both raise Errno(FAULT) outside it."""

    def read(self, pointer: int, size: int) -> bytes:
        """Return `size` bytes at `pointer`."""

    def write(self, pointer: int, data: bytes) -> None:
        """Store `data` at `pointer`."""


@dataclass
class Quota:
    """Count the bytes and entries of one writable mount."""

    name: str
    cap: int
    used: int = 0
    entries: int = 0

    def grow(self, size: int) -> None:
        """Take `size` bytes, or end the guest."""
        if self.used + size > self.cap:
            raise OverCap(f"{self.name} would hold {self.used + size} bytes, more than its cap of {self.cap}")
        self.used += size

    def add_entry(self) -> None:
        """Take one directory entry, or end the guest."""
        if self.entries + 1 > MAX_ENTRIES:
            raise OverCap(f"{self.name} would hold more than {MAX_ENTRIES} entries")
        self.entries += 1


@dataclass(frozen=True)
class Mount:
    """Show the host folder `host` to the guest as `guest`; no quota means read-only."""

    guest: str
    host: str
    quota: Quota | None = None


@dataclass
class Node:
    """Follow one written file, so that its bytes count until it is both unlinked and closed."""

    size: int
    opens: int = 0
    linked: bool = True


@dataclass
class Stream:
    """Stand for stdin (no sink, always at its end), stdout or stderr."""

    sink: Callable[[bytes], None] | None


@dataclass
class Folder:
    """Hold an open directory: its mount, its guest path below the mount, its host descriptor."""

    mount: Mount
    path: tuple[str, ...]
    fd: int
    preopen: bool = False
    listing: list[tuple[bytes, int, int]] = field(default_factory=list)


@dataclass
class File:
    """Hold an open regular file with the guest's own offset."""

    mount: Mount
    path: tuple[str, ...]
    fd: int
    key: tuple[int, int]
    readable: bool
    writable: bool
    append: bool
    offset: int = 0


def inode(mount: Mount, path: tuple[str, ...]) -> int:
    """Return a file number made from the guest path, the same on every machine."""
    root = "/job" if mount.guest == "." else mount.guest
    digest = hashlib.sha256("/".join((root, *path)).encode("utf-8", "surrogateescape")).digest()
    return int.from_bytes(digest[:8], "little") | 1


class Wasi:
    """Serve the preview 1 calls of one guest. `charge(fuel)` is called first in every call and may end the guest."""

    def __init__(
        self,
        *,
        args: list[str],
        env: dict[str, str],
        mounts: list[Mount],
        seed: bytes,
        stdout: Callable[[bytes], None],
        stderr: Callable[[bytes], None],
        charge: Callable[[int], None],
    ) -> None:
        self._args = [arg.encode() + b"\0" for arg in args]
        self._env = [f"{name}={value}".encode() + b"\0" for name, value in env.items()]
        self._seed = seed
        self._random_block = 0
        self._random_left = b""
        self._elapsed_ns = 0
        self._charge = charge
        self._nodes: dict[tuple[int, int], Node] = {}
        self._fds: dict[int, Stream | Folder | File] = {0: Stream(None), 1: Stream(stdout), 2: Stream(stderr)}
        for mount in mounts:
            fd = os.open(mount.host, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            self._fds[len(self._fds)] = Folder(mount, (), fd, preopen=True)
        self.memory: GuestMemory | None = None

    # -- the table of calls ------------------------------------------------------------------------------------------

    def calls(self) -> dict[str, tuple[str, Callable[..., int]]]:
        """Return name -> (parameter letters, function); i = i32, I = i64; every one but proc_exit returns an errno."""
        bodies: dict[str, Callable[..., object]] = {
            "args_get": lambda argv, buf: self._strings(self._args, argv, buf),
            "args_sizes_get": lambda count, size: self._sizes(self._args, count, size),
            "environ_get": lambda argv, buf: self._strings(self._env, argv, buf),
            "environ_sizes_get": lambda count, size: self._sizes(self._env, count, size),
            "clock_res_get": self._clock_res_get,
            "clock_time_get": self._clock_time_get,
            "fd_advise": lambda fd, offset, size, advice: self._need_file(fd),
            "fd_allocate": self._fd_allocate,
            "fd_close": self._fd_close,
            "fd_datasync": lambda fd: self._need(fd),
            "fd_fdstat_get": self._fd_fdstat_get,
            "fd_fdstat_set_flags": self._fd_fdstat_set_flags,
            "fd_fdstat_set_rights": lambda fd, base, inheriting: self._need(fd),
            "fd_filestat_get": self._fd_filestat_get,
            "fd_filestat_set_size": self._fd_filestat_set_size,
            "fd_filestat_set_times": lambda fd, atime, mtime, flags: self._need_file(fd, write=True),
            "fd_pread": self._fd_pread,
            "fd_prestat_get": self._fd_prestat_get,
            "fd_prestat_dir_name": self._fd_prestat_dir_name,
            "fd_pwrite": self._fd_pwrite,
            "fd_read": self._fd_read,
            "fd_readdir": self._fd_readdir,
            "fd_renumber": self._fd_renumber,
            "fd_seek": self._fd_seek,
            "fd_sync": lambda fd: self._need(fd),
            "fd_tell": self._fd_tell,
            "fd_write": self._fd_write,
            "path_create_directory": self._path_create_directory,
            "path_filestat_get": self._path_filestat_get,
            "path_filestat_set_times": self._path_filestat_set_times,
            "path_link": lambda *_: self._refuse(NOTSUP),
            "path_open": self._path_open,
            "path_readlink": self._path_readlink,
            "path_remove_directory": self._path_remove_directory,
            "path_rename": self._path_rename,
            "path_symlink": lambda *_: self._refuse(NOTSUP),
            "path_unlink_file": self._path_unlink_file,
            "poll_oneoff": self._poll_oneoff,
            "proc_exit": self._proc_exit,
            "proc_raise": lambda signal: self._refuse(NOSYS),
            "random_get": self._random_get,
            "sched_yield": lambda: None,
            "sock_accept": lambda *_: self._refuse(NOTSOCK),
            "sock_recv": lambda *_: self._refuse(NOTSOCK),
            "sock_send": lambda *_: self._refuse(NOTSOCK),
            "sock_shutdown": lambda *_: self._refuse(NOTSOCK),
        }
        return {name: (letters, self._entry(letters, bodies[name])) for name, letters in preview1.CALLS.items()}

    def _entry(self, letters: str, body: Callable[..., object]) -> Callable[..., int]:
        """Wrap a call: charge it, read its integers as unsigned (WebAssembly has one kind), answer an errno."""
        masks = [0xFFFF_FFFF if letter == "i" else 0xFFFF_FFFF_FFFF_FFFF for letter in letters]

        def call(*values: int) -> int:
            self._charge(FUEL_PER_CALL)
            try:
                body(*(value & mask for value, mask in zip(values, masks, strict=True)))
            except Errno as refused:
                return refused.code
            except OSError as failed:
                # What is not in the table (disk full, I/O error) is the machine's trouble, no answer to a guest.
                if failed.errno not in ERRNO:
                    raise
                return ERRNO[failed.errno]
            return OK

        return call

    # -- memory ------------------------------------------------------------------------------------------------------

    def _read(self, pointer: int, size: int) -> bytes:
        assert self.memory is not None
        return self.memory.read(pointer, size)

    def _write(self, pointer: int, data: bytes) -> None:
        assert self.memory is not None
        self.memory.write(pointer, data)

    def _write32(self, pointer: int, value: int) -> None:
        self._write(pointer, struct.pack("<I", value))

    def _write64(self, pointer: int, value: int) -> None:
        self._write(pointer, struct.pack("<Q", value))

    def _iovs(self, pointer: int, count: int) -> list[tuple[int, int]]:
        if count > MAX_IOVS:
            raise Errno(INVAL)
        return [(at, size) for at, size in struct.iter_unpack("<II", self._read(pointer, 8 * count))]

    def _gather(self, pointer: int, count: int) -> bytes:
        """Read the guest's buffers, at most MAX_TRANSFER bytes (a short write is legal)."""
        parts: list[bytes] = []
        room = MAX_TRANSFER
        for at, size in self._iovs(pointer, count):
            parts.append(self._read(at, min(size, room)))
            room -= len(parts[-1])
        data = b"".join(parts)
        self._charge(FUEL_PER_BYTE * len(data))
        return data

    def _scatter(self, iovs: list[tuple[int, int]], data: bytes) -> None:
        self._charge(FUEL_PER_BYTE * len(data))
        done = 0
        for at, size in iovs:
            self._write(at, data[done : done + size])
            done += min(size, len(data) - done)

    # -- descriptors and paths ---------------------------------------------------------------------------------------

    @staticmethod
    def _refuse(code: int) -> None:
        raise Errno(code)

    def _need(self, fd: int) -> Stream | Folder | File:
        found = self._fds.get(fd)
        if found is None:
            raise Errno(BADF)
        return found

    def _need_file(self, fd: int, *, write: bool = False) -> File:
        found = self._need(fd)
        if isinstance(found, Stream):
            raise Errno(SPIPE)
        if isinstance(found, Folder):
            raise Errno(ISDIR)
        if write and not found.writable:
            raise Errno(ROFS if found.mount.quota is None else BADF)
        return found

    def _need_folder(self, fd: int) -> Folder:
        found = self._need(fd)
        if not isinstance(found, Folder):
            raise Errno(NOTDIR)
        return found

    def _free_fd(self) -> int:
        for fd in range(MAX_FDS):
            if fd not in self._fds:
                return fd
        raise Errno(MFILE)

    def _path(self, pointer: int, size: int) -> str:
        if size > MAX_PATH:
            raise Errno(NAMETOOLONG)
        raw = self._read(pointer, size)
        if b"\0" in raw:
            raise Errno(INVAL)
        try:
            return raw.decode()
        except UnicodeDecodeError:
            raise Errno(ILSEQ) from None

    def _locate(self, fd: int, pointer: int, size: int) -> tuple[Folder, tuple[str, ...], bool]:
        """Return (base, names below it, whether the path must be a folder); a path that leaves its base is refused."""
        base = self._need_folder(fd)
        path = self._path(pointer, size)
        if not path:
            raise Errno(NOENT)
        if path.startswith("/"):
            raise Errno(PERM)
        names: list[str] = []
        for name in path.split("/"):
            if name == "..":
                if not names:
                    raise Errno(PERM)
                names.pop()
            elif name not in ("", "."):
                names.append(name)
        if len(base.path) + len(names) > MAX_DEPTH:
            raise Errno(NAMETOOLONG)
        return base, tuple(names), path.endswith(("/", "/.", "/.."))

    @staticmethod
    def _open_parent(base: Folder, names: tuple[str, ...]) -> int:
        """Open the folder that holds the last name, step by step, following no link; the caller closes it."""
        here = os.dup(base.fd)
        for name in names[:-1]:
            try:
                below = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=here)
            finally:
                os.close(here)
            here = below
        return here

    @staticmethod
    def _quota(folder: Folder) -> Quota:
        if folder.mount.quota is None:
            raise Errno(ROFS)
        return folder.mount.quota

    def _filestat(self, mount: Mount, path: tuple[str, ...], info: os.stat_result) -> bytes:
        if stat.S_ISDIR(info.st_mode):
            kind, size = DIRECTORY, 0  # a directory's own size is the host file system's business
        elif stat.S_ISREG(info.st_mode):
            kind, size = REGULAR_FILE, info.st_size
        else:
            raise Errno(ACCES)
        return struct.pack("<QQB7xQQQQQ", 1, inode(mount, path), kind, 1, size, *[CLOCK_START_NS] * 3)

    # -- arguments, clock, random ------------------------------------------------------------------------------------

    def _sizes(self, strings: list[bytes], count: int, size: int) -> None:
        self._write32(count, len(strings))
        self._write32(size, sum(map(len, strings)))

    def _strings(self, strings: list[bytes], pointers: int, buffer: int) -> None:
        for position, text in enumerate(strings):
            self._write32(pointers + 4 * position, buffer)
            self._write(buffer, text)
            buffer += len(text)

    def _clock_res_get(self, clock: int, result: int) -> None:
        if clock > 3:
            raise Errno(INVAL)
        self._write64(result, CLOCK_STEP_NS)

    def _clock_time_get(self, clock: int, _precision: int, result: int) -> None:
        if clock > 3:
            raise Errno(INVAL)
        self._write64(result, self._elapsed_ns + (CLOCK_START_NS if clock == 0 else 0))
        self._elapsed_ns += CLOCK_STEP_NS  # a loop that waits for time to pass must end

    def _random_get(self, pointer: int, size: int) -> None:
        while size:
            step = min(size, 1 << 16)
            self._charge(FUEL_PER_RANDOM_BYTE * step)
            while len(self._random_left) < step:
                block = hashlib.sha256(self._seed + self._random_block.to_bytes(8, "little")).digest()
                self._random_block += 1
                self._random_left += block
            self._write(pointer, self._random_left[:step])
            self._random_left = self._random_left[step:]
            pointer, size = pointer + step, size - step

    def _poll_oneoff(self, subscriptions: int, events: int, count: int, stored: int) -> None:
        if not 0 < count <= MAX_SUBSCRIPTIONS:
            raise Errno(INVAL)
        ready: list[bytes] = []
        clocks: list[tuple[int, int]] = []
        for raw in (self._read(subscriptions + 48 * i, 48) for i in range(count)):
            userdata, tag = struct.unpack_from("<QB", raw)
            if tag == 0:
                clock, timeout, _, flags = struct.unpack_from("<I4xQQH", raw, 16)
                if flags & 1:  # absolute
                    timeout = max(0, timeout - self._elapsed_ns - (CLOCK_START_NS if clock == 0 else 0))
                clocks.append((timeout, userdata))
            else:
                fd = struct.unpack_from("<I", raw, 16)[0]
                ready.append(struct.pack("<QHB5xQH6x", userdata, OK if fd in self._fds else BADF, tag, 0, 0))
        if not ready:
            # Nothing but time is waited for: time jumps, so that a sleep costs nobody anything.
            first = min(timeout for timeout, _ in clocks)
            self._elapsed_ns = min(self._elapsed_ns + first, 1 << 62)
            ready = [struct.pack("<QHB5xQH6x", user, OK, 0, 0, 0) for timeout, user in clocks if timeout == first]
        self._write(events, b"".join(ready))
        self._write32(stored, len(ready))

    def _proc_exit(self, code: int) -> None:
        raise GuestExit(code)

    # -- open files --------------------------------------------------------------------------------------------------

    def _fd_close(self, fd: int) -> None:
        found = self._need(fd)
        del self._fds[fd]
        if isinstance(found, Stream):
            return
        os.close(found.fd)
        if isinstance(found, File):
            self._drop_open(found)

    def _drop_open(self, file: File) -> None:
        node = self._nodes.get(file.key)
        if node is None:
            return
        node.opens -= 1
        if node.opens == 0:
            del self._nodes[file.key]
            if not node.linked and file.mount.quota is not None:
                file.mount.quota.used -= node.size

    def _fd_renumber(self, fd: int, target: int) -> None:
        source = self._need(fd)
        self._need(target)
        if fd != target:
            self._fd_close(target)
            del self._fds[fd]
            self._fds[target] = source

    def _fd_fdstat_get(self, fd: int, result: int) -> None:
        found = self._need(fd)
        if isinstance(found, Stream):
            # A terminal by WASI's reading: the C library then writes line by line, so logs are live and survive a trap.
            kind, flags, rights = CHARACTER_DEVICE, FD_APPEND, RIGHT_READ if found.sink is None else RIGHT_WRITE
        elif isinstance(found, Folder):
            kind, flags, rights = DIRECTORY, 0, RIGHTS_ALL
        else:
            kind, flags = REGULAR_FILE, FD_APPEND if found.append else 0
            rights = RIGHTS_ALL & ~(0 if found.writable else RIGHT_WRITE) & ~(0 if found.readable else RIGHT_READ)
        self._write(result, struct.pack("<BxH4xQQ", kind, flags, rights, RIGHTS_ALL))

    def _fd_fdstat_set_flags(self, fd: int, flags: int) -> None:
        found = self._need(fd)
        if isinstance(found, File):
            found.append = bool(flags & FD_APPEND)

    def _fd_filestat_get(self, fd: int, result: int) -> None:
        found = self._need(fd)
        if isinstance(found, Stream):
            self._write(result, struct.pack("<QQB7xQQQQQ", 1, fd + 1, CHARACTER_DEVICE, 1, 0, *[CLOCK_START_NS] * 3))
        else:
            self._write(result, self._filestat(found.mount, found.path, os.fstat(found.fd)))

    def _resize(self, file: File, size: int) -> None:
        node, quota = self._nodes[file.key], file.mount.quota
        assert quota is not None
        if size > node.size:
            quota.grow(size - node.size)
        else:
            quota.used -= node.size - size
        node.size = size

    def _fd_filestat_set_size(self, fd: int, size: int) -> None:
        file = self._need_file(fd, write=True)
        self._resize(file, size)
        os.ftruncate(file.fd, size)

    def _fd_allocate(self, fd: int, offset: int, size: int) -> None:
        file = self._need_file(fd, write=True)
        if offset + size > self._nodes[file.key].size:
            self._resize(file, offset + size)
            os.ftruncate(file.fd, offset + size)

    def _read_at(self, file: File, iovs: list[tuple[int, int]], offset: int) -> int:
        if not file.readable:
            raise Errno(BADF)
        wanted = min(sum(size for _, size in iovs), MAX_TRANSFER)
        data = b""
        if offset < os.fstat(file.fd).st_size:
            while len(data) < wanted and (more := os.pread(file.fd, wanted - len(data), offset + len(data))):
                data += more
        self._scatter(iovs, data)
        return len(data)

    def _fd_read(self, fd: int, iovs: int, count: int, result: int) -> None:
        found = self._need(fd)
        done = 0
        if isinstance(found, Folder):
            raise Errno(ISDIR)
        if isinstance(found, File):
            done = self._read_at(found, self._iovs(iovs, count), found.offset)
            found.offset += done
        elif found.sink is not None:
            raise Errno(BADF)
        self._write32(result, done)

    def _fd_pread(self, fd: int, iovs: int, count: int, offset: int, result: int) -> None:
        self._write32(result, self._read_at(self._need_file(fd), self._iovs(iovs, count), offset))

    def _write_at(self, file: File, data: bytes, offset: int) -> None:
        if data and offset + len(data) > self._nodes[file.key].size:
            self._resize(file, offset + len(data))
        done = 0
        while done < len(data):
            done += os.pwrite(file.fd, data[done:], offset + done)

    def _fd_write(self, fd: int, iovs: int, count: int, result: int) -> None:
        found = self._need(fd)
        if isinstance(found, Stream):
            if found.sink is None:
                raise Errno(BADF)
            data = self._gather(iovs, count)
            found.sink(data)
        else:
            file = self._need_file(fd, write=True)
            data = self._gather(iovs, count)
            if file.append:
                file.offset = self._nodes[file.key].size
            self._write_at(file, data, file.offset)
            file.offset += len(data)
        self._write32(result, len(data))

    def _fd_pwrite(self, fd: int, iovs: int, count: int, offset: int, result: int) -> None:
        file = self._need_file(fd, write=True)
        data = self._gather(iovs, count)
        self._write_at(file, data, offset)
        self._write32(result, len(data))

    def _fd_seek(self, fd: int, delta: int, whence: int, result: int) -> None:
        file = self._need_file(fd)
        if whence > 2:
            raise Errno(INVAL)
        signed = delta - (1 << 64) if delta >= 1 << 63 else delta
        start = (0, file.offset, os.fstat(file.fd).st_size)[whence]
        if not 0 <= start + signed < 1 << 62:
            raise Errno(INVAL)
        file.offset = start + signed
        self._write64(result, file.offset)

    def _fd_tell(self, fd: int, result: int) -> None:
        self._write64(result, self._need_file(fd).offset)

    # -- folders and paths -------------------------------------------------------------------------------------------

    def _fd_prestat_get(self, fd: int, result: int) -> None:
        found = self._need(fd)
        if not isinstance(found, Folder) or not found.preopen:
            raise Errno(BADF)
        self._write(result, struct.pack("<B3xI", 0, len(found.mount.guest.encode())))

    def _fd_prestat_dir_name(self, fd: int, pointer: int, size: int) -> None:
        found = self._need_folder(fd)
        name = found.mount.guest.encode()
        if size < len(name):
            raise Errno(NAMETOOLONG)
        self._write(pointer, name)

    def _fd_readdir(self, fd: int, buffer: int, size: int, cookie: int, result: int) -> None:
        folder = self._need_folder(fd)
        if cookie == 0:
            folder.listing = self._list(folder)
        data = bytearray()
        size = min(size, MAX_TRANSFER)
        for position, (name, number, kind) in enumerate(folder.listing[cookie:], start=cookie + 1):
            data += struct.pack("<QQIB3x", position, number, len(name), kind) + name
            if len(data) >= size:
                break
        self._charge(FUEL_PER_BYTE * len(data))
        self._write(buffer, bytes(data[:size]))
        self._write32(result, min(len(data), size))

    @staticmethod
    def _list(folder: Folder) -> list[tuple[bytes, int, int]]:
        found = [
            (b".", inode(folder.mount, folder.path), DIRECTORY),
            (b"..", inode(folder.mount, folder.path[:-1]), DIRECTORY),
        ]
        with os.scandir(folder.fd) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    kind = DIRECTORY
                elif entry.is_file(follow_symlinks=False):
                    kind = REGULAR_FILE
                else:
                    continue
                found.append((os.fsencode(entry.name), inode(folder.mount, (*folder.path, entry.name)), kind))
        return found[:2] + sorted(found[2:])

    def _path_open(
        self,
        fd: int,
        _lookup: int,
        pointer: int,
        size: int,
        oflags: int,
        rights: int,
        _inheriting: int,
        fdflags: int,
        result: int,
    ) -> None:
        base, names, as_folder = self._locate(fd, pointer, size)
        as_folder = as_folder or bool(oflags & O_DIRECTORY)
        new_fd = self._free_fd()
        write = bool(rights & RIGHT_WRITE) and not as_folder
        if write or oflags & (O_CREAT | O_TRUNC):
            self._quota(base)
        parent = self._open_parent(base, names)
        try:
            leaf = names[-1] if names else "."
            try:
                info = os.stat(leaf, dir_fd=parent, follow_symlinks=False)
            except FileNotFoundError:
                if not oflags & O_CREAT or as_folder:
                    raise
                self._quota(base).add_entry()
                os.close(os.open(leaf, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o644, dir_fd=parent))
                info = os.stat(leaf, dir_fd=parent, follow_symlinks=False)
            else:
                if oflags & O_CREAT and oflags & O_EXCL:
                    raise Errno(EXIST)
            path = base.path + names
            if stat.S_ISDIR(info.st_mode):
                if write or oflags & O_TRUNC:
                    raise Errno(ISDIR)
                opened = os.open(leaf, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
                self._fds[new_fd] = Folder(base.mount, path, opened)
            elif stat.S_ISREG(info.st_mode):
                if as_folder:
                    raise Errno(NOTDIR)
                flags = os.O_RDWR if write or oflags & O_TRUNC else os.O_RDONLY
                opened = os.open(leaf, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
                self._open_file(new_fd, base.mount, path, opened, rights, write, oflags, fdflags)
            else:
                raise Errno(LOOP if stat.S_ISLNK(info.st_mode) else ACCES)
        finally:
            os.close(parent)
        self._write32(result, new_fd)

    def _open_file(
        self,
        new_fd: int,
        mount: Mount,
        path: tuple[str, ...],
        opened: int,
        rights: int,
        write: bool,
        oflags: int,
        fdflags: int,
    ) -> None:
        info = os.fstat(opened)
        key = (info.st_dev, info.st_ino)
        file = File(mount, path, opened, key, bool(rights & RIGHT_READ), write, bool(fdflags & FD_APPEND))
        if mount.quota is not None:
            self._nodes.setdefault(key, Node(info.st_size)).opens += 1
            if oflags & O_TRUNC:
                self._resize(file, 0)
                os.ftruncate(opened, 0)
        self._fds[new_fd] = file

    def _path_filestat_get(self, fd: int, _lookup: int, pointer: int, size: int, result: int) -> None:
        base, names, as_folder = self._locate(fd, pointer, size)
        parent = self._open_parent(base, names)
        try:
            info = os.stat(names[-1] if names else ".", dir_fd=parent, follow_symlinks=False)
        finally:
            os.close(parent)
        if as_folder and not stat.S_ISDIR(info.st_mode):
            raise Errno(NOTDIR)
        self._write(result, self._filestat(base.mount, base.path + names, info))

    def _path_filestat_set_times(
        self, fd: int, _lookup: int, pointer: int, size: int, _atime: int, _mtime: int, _flags: int
    ) -> None:
        base, names, _ = self._locate(fd, pointer, size)
        self._quota(base)
        parent = self._open_parent(base, names)
        try:
            os.stat(names[-1] if names else ".", dir_fd=parent, follow_symlinks=False)  # times are fixed; it must exist
        finally:
            os.close(parent)

    def _path_readlink(self, fd: int, pointer: int, size: int, _buffer: int, _room: int, _used: int) -> None:
        base, names, _ = self._locate(fd, pointer, size)
        parent = self._open_parent(base, names)
        try:
            os.stat(names[-1] if names else ".", dir_fd=parent, follow_symlinks=False)
        finally:
            os.close(parent)
        raise Errno(INVAL)  # nothing here is a link

    def _path_create_directory(self, fd: int, pointer: int, size: int) -> None:
        base, names, _ = self._locate(fd, pointer, size)
        quota = self._quota(base)
        if not names:
            raise Errno(EXIST)
        parent = self._open_parent(base, names)
        try:
            quota.add_entry()
            try:
                os.mkdir(names[-1], 0o755, dir_fd=parent)
            except OSError:
                quota.entries -= 1
                raise
        finally:
            os.close(parent)

    def _path_remove_directory(self, fd: int, pointer: int, size: int) -> None:
        base, names, _ = self._locate(fd, pointer, size)
        quota = self._quota(base)
        if not names:
            raise Errno(INVAL)
        parent = self._open_parent(base, names)
        try:
            os.rmdir(names[-1], dir_fd=parent)
            quota.entries -= 1
        finally:
            os.close(parent)

    def _forget(self, quota: Quota, info: os.stat_result) -> None:
        """Account for a regular file that lost its name; while it is open its bytes stay counted."""
        quota.entries -= 1
        node = self._nodes.get((info.st_dev, info.st_ino))
        if node is None:
            quota.used -= info.st_size
        else:
            node.linked = False

    def _path_unlink_file(self, fd: int, pointer: int, size: int) -> None:
        base, names, as_folder = self._locate(fd, pointer, size)
        quota = self._quota(base)
        if not names or as_folder:
            raise Errno(ISDIR if not names else NOTDIR)
        parent = self._open_parent(base, names)
        try:
            info = os.stat(names[-1], dir_fd=parent, follow_symlinks=False)
            os.unlink(names[-1], dir_fd=parent)
            self._forget(quota, info)
        finally:
            os.close(parent)

    def _follow(self, mount: Mount, source: tuple[str, ...], target: tuple[str, ...]) -> None:
        """Give what is open the path that it has now: depths are judged by it, and file numbers are made from it."""
        for found in self._fds.values():
            if not isinstance(found, Stream) and found.mount is mount and found.path[: len(source)] == source:
                found.path = target + found.path[len(source) :]

    def _path_rename(self, fd: int, pointer: int, size: int, to_fd: int, to_pointer: int, to_size: int) -> None:
        base, names, _ = self._locate(fd, pointer, size)
        to_base, to_names, _ = self._locate(to_fd, to_pointer, to_size)
        quota = self._quota(base)
        if self._quota(to_base) is not quota:
            raise Errno(XDEV)
        if not names or not to_names:
            raise Errno(INVAL)
        parent = self._open_parent(base, names)
        try:
            to_parent = self._open_parent(to_base, to_names)
            try:
                source = os.stat(names[-1], dir_fd=parent, follow_symlinks=False)
                if stat.S_ISDIR(source.st_mode) and len(to_base.path + to_names) > len(base.path + names):
                    raise Errno(NOTSUP)  # moved down and down again, a tree would pass MAX_DEPTH
                try:
                    target = os.stat(to_names[-1], dir_fd=to_parent, follow_symlinks=False)
                except FileNotFoundError:
                    target = None
                os.rename(names[-1], to_names[-1], src_dir_fd=parent, dst_dir_fd=to_parent)
                self._follow(base.mount, base.path + names, to_base.path + to_names)
                if target is None or (target.st_dev, target.st_ino) == (source.st_dev, source.st_ino):
                    return
                if stat.S_ISDIR(target.st_mode):
                    quota.entries -= 1
                else:
                    self._forget(quota, target)
            finally:
                os.close(to_parent)
        finally:
            os.close(parent)
