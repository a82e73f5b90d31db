"""worker.runtimes.wasi: whatever numbers a guest passes, a call answers or ends it, and its cost follows the data."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from hearth.protocol import wasi as preview1
from worker.runtimes import wasi, wasi_abi
from worker.runtimes.wasi_files import Mount, OverCap, Quota

IN, OUT, FIRST = 3, 4, 5
SIZE = 1 << 16


class Memory:
    """A guest's memory of SIZE bytes."""

    def __init__(self) -> None:
        self.data = bytearray(SIZE)

    def read(self, pointer: int, size: int) -> bytes:
        if pointer + size > SIZE:
            raise wasi_abi.Errno(wasi_abi.FAULT)
        return bytes(self.data[pointer : pointer + size])

    def write(self, pointer: int, data: bytes) -> None:
        if pointer + len(data) > SIZE:
            raise wasi_abi.Errno(wasi_abi.FAULT)
        self.data[pointer : pointer + len(data)] = data


class Guest:
    """Call a host as a guest does, and add up what it is charged; past `fuel` it is out of it."""

    def __init__(self, root: Path, fuel: int = 1 << 62) -> None:
        for name in ("in", "out"):
            (root / name).mkdir(parents=True)
        (root / "in" / "data").write_bytes(b"rows")
        self.root = root
        self.memory = Memory()
        self.charged = 0
        self.fuel = fuel
        mounts = [Mount("/in", str(root / "in")), Mount("/out", str(root / "out"), Quota("/out", 1 << 16))]
        nothing: Callable[[bytes], None] = lambda data: None  # noqa: E731
        self.host = wasi.Wasi(
            args=["main"],
            env={"A": "1"},
            mounts=mounts,
            seed=b"",
            stdout=nothing,
            stderr=nothing,
            charge=self.charge,
        )
        self.host.memory = self.memory
        self._calls = self.host.calls()

    def charge(self, amount: int) -> None:
        assert amount >= 0
        self.charged += amount
        if self.charged > self.fuel:
            raise wasi.OutOfFuel

    def call(self, name: str, *values: int) -> int:
        return self._calls[name][1](*values)

    def cost(self, name: str, *values: int) -> int:
        """Return what one call is charged; it must be answered well."""
        before = self.charged
        assert self.call(name, *values) == wasi_abi.OK, name
        return self.charged - before

    def put(self, pointer: int, text: str) -> tuple[int, int]:
        self.memory.write(pointer, text.encode())
        return pointer, len(text.encode())

    def open(self, path: str, folder: int = IN, flags: int = 0, rights: int = wasi_abi.RIGHT_READ) -> int:
        assert self.call("path_open", folder, 0, *self.put(1024, path), flags, rights, 0, 0, 0) == wasi_abi.OK
        return int.from_bytes(self.memory.read(0, 4), "little")


NUMBERS = (
    *range(13),
    *(255, 256, 1024, 1025, 4095, 4096, 4097, SIZE - 8, SIZE - 1, SIZE, SIZE + 1),
    *(1 << bit for bit in (20, 31, 32, 53, 62, 63)),
    *((1 << bit) - 1 for bit in (31, 32, 53, 62, 63, 64)),
)


@pytest.mark.parametrize("name", preview1.CALLS)
def test_call__any_numbers_at_all__are_answered_or_end_the_guest(name: str, tmp_path: Path) -> None:
    """What a cheat gains: nothing. Another exception would look like a broken machine, and be tried again."""
    draw = random.Random(name)
    letters = preview1.CALLS[name]
    ends = (wasi.GuestExit, OverCap, wasi.OutOfFuel)
    for turn in range(400):
        if turn % 50 == 0:  # a call may close the folders
            guest = Guest(tmp_path / str(turn))
        # Names, buffers and descriptors that mean something, so that a call gets past its first look.
        guest.memory.data[:] = draw.randbytes(16) * (SIZE // 16)
        guest.put(1024, draw.choice(("data", "new", "..", "a/b", "\ud7ff", "x" * 300, ".")))
        guest.fuel = guest.charged + 10**8
        with suppress(*ends):
            guest.call("path_open", IN, 0, *guest.put(1024, "data"), 0, 2, 0, 0, 0)
            guest.call("path_open", OUT, 0, *guest.put(1024, "new"), wasi_abi.O_CREAT, 66, 0, 0, 0)
        values = [draw.choice(NUMBERS) for _ in letters]
        if draw.random() < 0.5 and len(letters) > 2:
            values[0] = draw.choice((IN, OUT, FIRST, FIRST + 1))
        signed = [value - (1 << 64) if value >= 1 << 63 else value for value in values]  # as the engine passes them
        with suppress(*ends):
            assert 0 <= guest.call(name, *signed) < 77
        with suppress(*ends):
            for fd in range(FIRST, 256):
                if fd in guest.host._files:
                    guest.call("fd_close", fd)
