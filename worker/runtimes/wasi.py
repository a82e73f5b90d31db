"""WASI preview 1 for one unit, written so that two machines see the same bytes: the table of calls.

Why not the engine's own WASI: it shows inode numbers, times and directory order of the host, and knows no size cap.
Here the clock starts at a constant and moves by fixed steps, random numbers come from a seed, directories are sorted,
every call is charged in fuel for what it does (preview1.CHARGES: a guest cannot burn the host's time unpaid), and a
write past a cap stops the guest at that very write on every machine. No sockets,
no links. Numbers and layouts are in wasi_abi, files in wasi_files; what a call reads from the guest's memory and writes
to it is here.
Source: https://github.com/WebAssembly/WASI/blob/main/legacy/preview1/docs.md.
"""

from __future__ import annotations

import hashlib
import os
import stat
import struct
from collections.abc import Callable, Iterable

from hearth.protocol import wasi as preview1
from worker.runtimes import wasi_abi as abi
from worker.runtimes import wasi_files
from worker.runtimes.wasi_abi import Errno, GuestMemory
from worker.runtimes.wasi_files import Files, Mount, OpenFile, OpenFolder, Place, Stream

CLOCK_START_NS = 1_577_836_800 * 10**9  # 2020-01-01T00:00:00Z
CLOCK_STEP_NS = 1_000_000
MAX_PATH = 4096
MAX_IOVS = 1024
MAX_TRANSFER = 16 << 20
MAX_SUBSCRIPTIONS = 1024


class GuestExit(Exception):
    """End the guest because it called proc_exit."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class OutOfFuel(Exception):
    """End the guest because a host call cost more fuel than was left."""


class TimeUp(Exception):
    """End the guest because its wall time is over."""


class TooEarly(Exception):
    """End the guest because it passed a pointer before its memory can be seen: in its start function."""


class Strings:
    """Hold the arguments or the environment as a guest reads them: one after the other, each with its NUL."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.starts: list[int] = []
        parts: list[bytes] = []
        size = 0
        for text in texts:
            parts.append(text.encode() + b"\0")
            self.starts.append(size)
            size += len(parts[-1])
        self.data = b"".join(parts)


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
        self._args = Strings(args)
        self._env = Strings(f"{name}={value}" for name, value in env.items())
        self._seed = seed
        self._random_block = 0
        self._random_left = b""
        self._elapsed_ns = 0
        self._charge = charge
        self._files = Files(mounts, stdout, stderr)
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
            "fd_advise": lambda fd, offset, size, advice: self._files.need_file(fd),
            "fd_allocate": self._fd_allocate,
            "fd_close": self._files.close,
            "fd_datasync": lambda fd: self._files.need(fd),
            "fd_fdstat_get": self._fd_fdstat_get,
            "fd_fdstat_set_flags": self._fd_fdstat_set_flags,
            "fd_fdstat_set_rights": lambda fd, base, inheriting: self._files.need(fd),
            "fd_filestat_get": self._fd_filestat_get,
            "fd_filestat_set_size": self._fd_filestat_set_size,
            "fd_filestat_set_times": lambda fd, atime, mtime, flags: self._files.need_file(fd, write=True),
            "fd_pread": self._fd_pread,
            "fd_prestat_get": self._fd_prestat_get,
            "fd_prestat_dir_name": self._fd_prestat_dir_name,
            "fd_pwrite": self._fd_pwrite,
            "fd_read": self._fd_read,
            "fd_readdir": self._fd_readdir,
            "fd_renumber": self._files.renumber,
            "fd_seek": self._fd_seek,
            "fd_sync": lambda fd: self._files.need(fd),
            "fd_tell": self._fd_tell,
            "fd_write": self._fd_write,
            "path_create_directory": self._path_create_directory,
            "path_filestat_get": self._path_filestat_get,
            "path_filestat_set_times": self._path_filestat_set_times,
            "path_link": lambda *_: _refuse(abi.NOTSUP),
            "path_open": self._path_open,
            "path_readlink": self._path_readlink,
            "path_remove_directory": self._path_remove_directory,
            "path_rename": self._path_rename,
            "path_symlink": lambda *_: _refuse(abi.NOTSUP),
            "path_unlink_file": self._path_unlink_file,
            "poll_oneoff": self._poll_oneoff,
            "proc_exit": self._proc_exit,
            "proc_raise": lambda signal: _refuse(abi.NOSYS),
            "random_get": self._random_get,
            "sched_yield": lambda: None,
            "sock_accept": lambda *_: _refuse(abi.NOTSOCK),
            "sock_recv": lambda *_: _refuse(abi.NOTSOCK),
            "sock_send": lambda *_: _refuse(abi.NOTSOCK),
            "sock_shutdown": lambda *_: _refuse(abi.NOTSOCK),
        }
        return {name: (letters, self._entry(letters, bodies[name])) for name, letters in preview1.CALLS.items()}

    def _entry(self, letters: str, body: Callable[..., object]) -> Callable[..., int]:
        """Wrap a call: charge it, read its integers as unsigned (WebAssembly has one kind), answer an errno."""
        masks = [0xFFFF_FFFF if letter == "i" else 0xFFFF_FFFF_FFFF_FFFF for letter in letters]

        def call(*values: int) -> int:
            self._pay("call")
            try:
                body(*(value & mask for value, mask in zip(values, masks, strict=True)))
            except Errno as refused:
                return refused.code
            except OSError as failed:
                # What is not in the table (disk full, I/O error) is the machine's trouble, no answer to a guest.
                if failed.errno not in abi.ERRNO:
                    raise
                return abi.ERRNO[failed.errno]
            return abi.OK

        return call

    def _pay(self, what: str, count: int = 1) -> None:
        """Charge for work before it is done."""
        self._charge(preview1.CHARGES[what] * count)

    # -- memory ------------------------------------------------------------------------------------------------------

    def _read(self, pointer: int, size: int) -> bytes:
        if self.memory is None:
            raise TooEarly
        return self.memory.read(pointer, size)

    def _write(self, pointer: int, data: bytes) -> None:
        if self.memory is None:
            raise TooEarly
        self.memory.write(pointer, data)

    def _write32(self, pointer: int, value: int) -> None:
        self._write(pointer, struct.pack("<I", value))

    def _write64(self, pointer: int, value: int) -> None:
        self._write(pointer, struct.pack("<Q", value))

    def _iovs(self, pointer: int, count: int) -> list[tuple[int, int]]:
        if count > MAX_IOVS:
            raise Errno(abi.INVAL)
        self._pay("buffer", count)
        return [(at, size) for at, size in abi.IOVEC.iter_unpack(self._read(pointer, abi.IOVEC.size * count))]

    def _gather(self, pointer: int, count: int) -> bytes:
        """Read the guest's buffers, at most MAX_TRANSFER bytes (a short write is legal)."""
        iovs = self._iovs(pointer, count)
        room = min(sum(size for _, size in iovs), MAX_TRANSFER)
        self._pay("KiB", -(-room // 1024))
        parts: list[bytes] = []
        for at, size in iovs:
            parts.append(self._read(at, min(size, room)))
            room -= len(parts[-1])
        return b"".join(parts)

    def _scatter(self, iovs: list[tuple[int, int]], data: bytes) -> None:
        done = 0
        for at, size in iovs:
            self._write(at, data[done : done + size])
            done += min(size, len(data) - done)

    def _place(self, fd: int, pointer: int, size: int) -> Place:
        """Read a path from the guest and resolve it below an open folder."""
        base = self._files.need_folder(fd)
        if size > MAX_PATH:
            raise Errno(abi.NAMETOOLONG)
        raw = self._read(pointer, size)
        self._charge(preview1.CHARGES["path"] + preview1.CHARGES["name"] * (raw.count(b"/") + 1))
        if b"\0" in raw:
            raise Errno(abi.INVAL)
        try:
            path = raw.decode()
        except UnicodeDecodeError:
            raise Errno(abi.ILSEQ) from None
        return wasi_files.locate(base, path)

    def _write_filestat(self, pointer: int, number: int, kind: int, size: int) -> None:
        self._write(pointer, abi.FILESTAT.pack(1, number, kind, 1, size, *[CLOCK_START_NS] * 3))

    # -- arguments, clock, random ------------------------------------------------------------------------------------

    def _sizes(self, strings: Strings, count: int, size: int) -> None:
        self._write32(count, len(strings.starts))
        self._write32(size, len(strings.data))

    def _strings(self, strings: Strings, pointers: int, buffer: int) -> None:
        self._pay("string", len(strings.starts))
        # Past the last address it starts anew, and the write of the strings is refused.
        self._write(pointers, b"".join(struct.pack("<I", buffer + start & 0xFFFF_FFFF) for start in strings.starts))
        self._write(buffer, strings.data)

    def _clock_res_get(self, clock: int, result: int) -> None:
        if clock >= abi.CLOCKS:
            raise Errno(abi.INVAL)
        self._write64(result, CLOCK_STEP_NS)

    def _clock_time_get(self, clock: int, _precision: int, result: int) -> None:
        if clock >= abi.CLOCKS:
            raise Errno(abi.INVAL)
        self._write64(result, self._elapsed_ns + (CLOCK_START_NS if clock == abi.CLOCK_REALTIME else 0))
        self._elapsed_ns += CLOCK_STEP_NS  # a loop that waits for time to pass must end

    def _random_get(self, pointer: int, size: int) -> None:
        while size:
            step = min(size, 1 << 16)
            self._pay("random byte", step)
            data = bytearray(self._random_left)
            while len(data) < step:
                data += hashlib.sha256(self._seed + self._random_block.to_bytes(8, "little")).digest()
                self._random_block += 1
            self._write(pointer, bytes(data[:step]))
            self._random_left = bytes(data[step:])
            pointer, size = pointer + step, size - step

    def _poll_oneoff(self, subscriptions: int, events: int, count: int, stored: int) -> None:
        if not 0 < count <= MAX_SUBSCRIPTIONS:
            raise Errno(abi.INVAL)
        self._pay("subscription", count)
        ready: list[bytes] = []
        clocks: list[tuple[int, int]] = []
        raw = self._read(subscriptions, abi.SUBSCRIPTION_BYTES * count)
        for at in range(0, len(raw), abi.SUBSCRIPTION_BYTES):
            userdata, tag = abi.SUBSCRIPTION.unpack_from(raw, at)
            if tag == abi.EVENT_CLOCK:
                clock, timeout, _, flags = abi.SUBSCRIPTION_CLOCK.unpack_from(raw, at + 16)
                if flags & abi.CLOCK_ABSOLUTE:
                    now = self._elapsed_ns + (CLOCK_START_NS if clock == abi.CLOCK_REALTIME else 0)
                    timeout = max(0, timeout - now)
                clocks.append((timeout, userdata))
            else:
                fd = struct.unpack_from("<I", raw, at + 16)[0]
                ready.append(abi.EVENT.pack(userdata, abi.OK if fd in self._files else abi.BADF, tag, 0, 0))
        if not ready:
            # Nothing but time is waited for: time jumps, so that a sleep costs nobody anything.
            first = min(timeout for timeout, _ in clocks)
            self._elapsed_ns = min(self._elapsed_ns + first, 1 << 62)
            ready = [
                abi.EVENT.pack(user, abi.OK, abi.EVENT_CLOCK, 0, 0) for timeout, user in clocks if timeout == first
            ]
        self._write(events, b"".join(ready))
        self._write32(stored, len(ready))

    def _proc_exit(self, code: int) -> None:
        raise GuestExit(code)

    # -- open files --------------------------------------------------------------------------------------------------

    def _fd_fdstat_get(self, fd: int, result: int) -> None:
        found = self._files.need(fd)
        if isinstance(found, Stream):
            # A terminal by WASI's reading: the C library then writes line by line, so logs are live and survive a trap.
            kind, flags = abi.CHARACTER_DEVICE, abi.FD_APPEND
            rights = abi.RIGHT_READ if found.sink is None else abi.RIGHT_WRITE
        elif isinstance(found, OpenFolder):
            kind, flags, rights = abi.DIRECTORY, 0, abi.RIGHTS_ALL
        else:
            kind, flags = abi.REGULAR_FILE, abi.FD_APPEND if found.append else 0
            refused = (0 if found.writable else abi.RIGHT_WRITE) | (0 if found.readable else abi.RIGHT_READ)
            rights = abi.RIGHTS_ALL & ~refused
        self._write(result, abi.FDSTAT.pack(kind, flags, rights, abi.RIGHTS_ALL))

    def _fd_fdstat_set_flags(self, fd: int, flags: int) -> None:
        found = self._files.need(fd)
        if isinstance(found, OpenFile):
            found.append = bool(flags & abi.FD_APPEND)

    def _fd_filestat_get(self, fd: int, result: int) -> None:
        found = self._files.need(fd)
        if isinstance(found, Stream):
            self._write_filestat(result, fd + 1, abi.CHARACTER_DEVICE, 0)
        else:
            self._write_filestat(result, *wasi_files.facts_of(found.mount, found.path, os.fstat(found.fd)))

    def _fd_filestat_set_size(self, fd: int, size: int) -> None:
        self._files.resize(self._files.need_file(fd, write=True), size)

    def _fd_allocate(self, fd: int, offset: int, size: int) -> None:
        file = self._files.need_file(fd, write=True)
        if offset + size > self._files.size_of(file):
            self._files.resize(file, offset + size)

    def _read_into(self, file: OpenFile, pointer: int, count: int, offset: int) -> int:
        """Fill the guest's buffers from a file and return the bytes read."""
        iovs = self._iovs(pointer, count)
        size = wasi_files.left_of(file, min(sum(size for _, size in iovs), MAX_TRANSFER), offset)
        self._pay("KiB", -(-size // 1024))
        data = wasi_files.read_at(file, size, offset)
        self._scatter(iovs, data)
        return len(data)

    def _fd_read(self, fd: int, iovs: int, count: int, result: int) -> None:
        found = self._files.need(fd)
        done = 0
        if isinstance(found, OpenFolder):
            raise Errno(abi.ISDIR)
        if isinstance(found, OpenFile):
            done = self._read_into(found, iovs, count, found.offset)
            found.offset += done
        elif found.sink is not None:
            raise Errno(abi.BADF)
        self._write32(result, done)

    def _fd_pread(self, fd: int, iovs: int, count: int, offset: int, result: int) -> None:
        self._write32(result, self._read_into(self._files.need_file(fd), iovs, count, offset))

    def _fd_write(self, fd: int, iovs: int, count: int, result: int) -> None:
        found = self._files.need(fd)
        if isinstance(found, Stream):
            if found.sink is None:
                raise Errno(abi.BADF)
            data = self._gather(iovs, count)
            found.sink(data)
        else:
            file = self._files.need_file(fd, write=True)
            data = self._gather(iovs, count)
            if file.append:
                file.offset = self._files.size_of(file)
            self._files.write_at(file, data, file.offset)
            file.offset += len(data)
        self._write32(result, len(data))

    def _fd_pwrite(self, fd: int, iovs: int, count: int, offset: int, result: int) -> None:
        file = self._files.need_file(fd, write=True)
        data = self._gather(iovs, count)
        self._files.write_at(file, data, offset)
        self._write32(result, len(data))

    def _fd_seek(self, fd: int, delta: int, whence: int, result: int) -> None:
        file = self._files.need_file(fd)
        if whence > 2:
            raise Errno(abi.INVAL)
        signed = delta - (1 << 64) if delta >= 1 << 63 else delta
        start = (0, file.offset, os.fstat(file.fd).st_size)[whence]
        if not 0 <= start + signed < 1 << 62:
            raise Errno(abi.INVAL)
        file.offset = start + signed
        self._write64(result, file.offset)

    def _fd_tell(self, fd: int, result: int) -> None:
        self._write64(result, self._files.need_file(fd).offset)

    # -- folders and paths -------------------------------------------------------------------------------------------

    def _fd_prestat_get(self, fd: int, result: int) -> None:
        found = self._files.need(fd)
        if not isinstance(found, OpenFolder) or not found.preopen:
            raise Errno(abi.BADF)
        self._write(result, abi.PRESTAT.pack(0, len(found.mount.guest.encode())))

    def _fd_prestat_dir_name(self, fd: int, pointer: int, size: int) -> None:
        found = self._files.need_folder(fd)
        name = found.mount.guest.encode()
        if size < len(name):
            raise Errno(abi.NAMETOOLONG)
        self._write(pointer, name)

    def _fd_readdir(self, fd: int, buffer: int, size: int, cookie: int, result: int) -> None:
        folder = self._files.need_folder(fd)
        listing = self._files.listing(folder, lambda count: self._pay("entry", count), anew=cookie == 0)
        data = bytearray()
        size = min(size, MAX_TRANSFER)
        position = cookie
        while position < len(listing) and len(data) < size:
            name, number, kind = listing[position]
            position += 1
            data += abi.DIRENT.pack(position, number, len(name), kind) + name
        self._pay("listed name", position - cookie)
        self._write(buffer, bytes(data[:size]))
        self._write32(result, min(len(data), size))

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
        if oflags & abi.O_CREAT:
            self._pay("change")
        opened = self._files.open(
            self._place(fd, pointer, size),
            oflags,
            read=bool(rights & abi.RIGHT_READ),
            write=bool(rights & abi.RIGHT_WRITE),
            append=bool(fdflags & abi.FD_APPEND),
        )
        self._write32(result, opened)

    def _path_filestat_get(self, fd: int, _lookup: int, pointer: int, size: int, result: int) -> None:
        place = self._place(fd, pointer, size)
        info = wasi_files.look(place)
        if place.as_folder and not stat.S_ISDIR(info.st_mode):
            raise Errno(abi.NOTDIR)
        self._write_filestat(result, *wasi_files.facts_of(place.base.mount, place.path, info))

    def _path_filestat_set_times(
        self, fd: int, _lookup: int, pointer: int, size: int, _atime: int, _mtime: int, _flags: int
    ) -> None:
        place = self._place(fd, pointer, size)
        place.need_quota()
        wasi_files.look(place)  # times are fixed; it must exist

    def _path_readlink(self, fd: int, pointer: int, size: int, _buffer: int, _room: int, _used: int) -> None:
        wasi_files.look(self._place(fd, pointer, size))
        raise Errno(abi.INVAL)  # nothing here is a link

    def _path_create_directory(self, fd: int, pointer: int, size: int) -> None:
        self._pay("change")
        self._files.create_folder(self._place(fd, pointer, size))

    def _path_remove_directory(self, fd: int, pointer: int, size: int) -> None:
        self._pay("change")
        self._files.remove_folder(self._place(fd, pointer, size))

    def _path_unlink_file(self, fd: int, pointer: int, size: int) -> None:
        self._pay("change")
        self._files.unlink(self._place(fd, pointer, size))

    def _path_rename(self, fd: int, pointer: int, size: int, to_fd: int, to_pointer: int, to_size: int) -> None:
        self._pay("change")
        self._pay("open file", len(self._files))
        self._files.rename(self._place(fd, pointer, size), self._place(to_fd, to_pointer, to_size))


def _refuse(code: int) -> None:
    raise Errno(code)
