"""Numbers and layouts of WASI preview 1, and the exception that answers a call with an error number.

Source: https://github.com/WebAssembly/WASI/blob/main/legacy/preview1/docs.md (layouts, errno numbers).
"""

from __future__ import annotations

import errno
import struct
from typing import Protocol

# ---- errno ----

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
"""What the guest is told of a host's error; one that is not here is the machine's trouble, no answer to a guest."""

# ---- file types, rights, flags ----

CHARACTER_DEVICE, DIRECTORY, REGULAR_FILE = 2, 3, 4
RIGHT_READ, RIGHT_SEEK, RIGHT_WRITE = 1 << 1, 1 << 2, 1 << 6
RIGHTS_ALL = (1 << 30) - 1
O_CREAT, O_DIRECTORY, O_EXCL, O_TRUNC = 1, 2, 4, 8
FD_APPEND = 1
CLOCK_REALTIME, CLOCKS = 0, 4
EVENT_CLOCK = 0
CLOCK_ABSOLUTE = 1

# ---- layouts ----

IOVEC = struct.Struct("<II")  # pointer, size
FDSTAT = struct.Struct("<BxH4xQQ")  # file type, flags, rights, rights of what is opened below
FILESTAT = struct.Struct("<QQB7xQQQQQ")  # device, number, file type, links, size, three times
PRESTAT = struct.Struct("<B3xI")  # 0 for a directory, bytes of its name
DIRENT = struct.Struct("<QQIB3x")  # position of the next, number, bytes of the name, file type
SUBSCRIPTION_BYTES = 48
SUBSCRIPTION = struct.Struct("<QB")  # user data, kind; what follows is the kind's, from byte 16
SUBSCRIPTION_CLOCK = struct.Struct("<I4xQQH")  # clock, timeout, precision, flags
EVENT = struct.Struct("<QHB5xQH6x")  # user data, errno, kind, bytes, flags


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
