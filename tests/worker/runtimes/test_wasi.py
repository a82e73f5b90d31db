"""worker.runtimes.wasi: whatever numbers a guest passes, a call answers or ends it, and its cost follows the data."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from hearth.protocol import wasi as preview1
from worker.runtimes import wasi, wasi_abi, wasi_files
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


# ---- what calls cost ----


@pytest.fixture
def guest(tmp_path: Path) -> Guest:
    return Guest(tmp_path)


COSTS = preview1.CHARGES
CALL, PATH, NAME = COSTS["call"], COSTS["path"], COSTS["name"]


@pytest.mark.parametrize("count", [1, 3, 1024])
def test_charge__buffers_and_bytes__each_and_by_the_kib(guest: Guest, count: int) -> None:
    """What a cheat gains: nothing. A call with a thousand buffers of a byte is as dear as a thousand calls are slow."""
    fd = guest.open("new", OUT, wasi_abi.O_CREAT, 66)
    for place in range(count):
        guest.memory.write(4096 + 8 * place, wasi_abi.IOVEC.pack(16_384, 3))
    whole = CALL + COSTS["buffer"] * count + COSTS["KiB"] * -(-3 * count // 1024)
    assert guest.cost("fd_write", fd, 4096, count, 0) == whole
    assert guest.cost("fd_pread", fd, 4096, count, 0, 0) == whole
    assert guest.cost("fd_write", 1, 4096, count, 0) == whole
    assert guest.cost("fd_pread", fd, 4096, count, 1 << 20, 0) == whole - COSTS["KiB"] * -(-3 * count // 1024)


@pytest.mark.parametrize("count", [0, 1, 50])
def test_charge__listing__each_name_when_it_is_made_and_when_it_is_passed_on(guest: Guest, count: int) -> None:
    (guest.root / "in" / "sub").mkdir()
    for number in range(count):
        (guest.root / "in" / "sub" / f"{number}").touch()
    fd = guest.open("sub", flags=wasi_abi.O_DIRECTORY)
    made, told = COSTS["entry"] * count, COSTS["listed name"]
    assert guest.cost("fd_readdir", fd, 2048, 32_768, 0, 0) == CALL + made + told * (count + 2)
    assert guest.cost("fd_readdir", fd, 2048, 1, 0, 0) == CALL + made + told
    assert guest.cost("fd_readdir", fd, 2048, 32_768, 1, 0) == CALL + told * (count + 1)  # goes on with what is kept
    assert guest.cost("fd_readdir", fd, 2048, 32_768, count + 2, 0) == CALL


def test_charge__listing_beyond_the_fuel__is_taken_before_a_name_is_looked_at(
    guest: Guest, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[object] = []
    monkeypatch.setattr(wasi_files, "number_of", lambda *_: looked.append(1) or 1)
    guest.fuel = guest.charged + CALL + COSTS["entry"] - 1
    with pytest.raises(wasi.OutOfFuel):
        guest.call("fd_readdir", IN, 2048, 4096, 0, 0)
    assert len(looked) == 2  # the folder and the one above


@pytest.mark.parametrize(("path", "names"), [("data", 1), ("./data", 2), ("x/../x/../data", 5), ("x//../data", 4)])
def test_charge__path__each_name_of_it(guest: Guest, path: str, names: int) -> None:
    assert guest.cost("path_filestat_get", IN, 0, *guest.put(1024, path), 64) == CALL + PATH + NAME * names


def test_charge__changes_of_a_folder__each(guest: Guest) -> None:
    at = guest.put(1024, "new")
    to = guest.put(2048, "other")
    changed = CALL + PATH + NAME + COSTS["change"]
    assert guest.cost("path_create_directory", OUT, *at) == changed
    assert guest.cost("path_remove_directory", OUT, *at) == changed
    assert guest.cost("path_open", OUT, 0, *at, wasi_abi.O_CREAT, 66, 0, 0, 0) == changed
    assert guest.cost("path_open", OUT, 0, *at, 0, 66, 0, 0, 0) == changed - COSTS["change"]
    open_files = COSTS["open file"] * 7  # three streams, two folders, two files
    assert guest.cost("path_rename", OUT, *at, OUT, *to) == changed + PATH + NAME + open_files
    assert guest.cost("path_unlink_file", OUT, *to) == changed


@pytest.mark.parametrize("count", [1, 1024])
def test_charge__subscriptions__each(guest: Guest, count: int) -> None:
    guest.memory.data[:] = bytes(SIZE)
    assert guest.cost("poll_oneoff", 0, 0, count, 0) == CALL + COSTS["subscription"] * count


def test_charge__strings_and_random_bytes__each(guest: Guest) -> None:
    assert guest.cost("args_get", 64, 128) == guest.cost("environ_get", 64, 128) == CALL + COSTS["string"]
    assert guest.cost("args_sizes_get", 64, 128) == CALL
    assert guest.cost("random_get", 0, 999) == CALL + COSTS["random byte"] * 999


# ---- folders that are listed ----


def test_listing__more_names_than_are_kept__made_again_and_the_same(
    guest: Guest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a cheat gains: nothing. Open folders do not keep their names in the host's memory without end."""
    monkeypatch.setattr(wasi_files, "MAX_LISTED", 100)
    for number in range(30):
        (guest.root / "in" / f"{number:03}").touch()
    fds = [guest.open(".", flags=wasi_abi.O_DIRECTORY) for _ in range(10)]
    first: list[bytes] = []
    for fd in fds:
        guest.cost("fd_readdir", fd, 2048, 24 + 1, 0, 0)
        first.append(bytes(guest.memory.data[2048:2072]))
    kept = [len(one.listing or ()) for one in map(guest.host._files.need_folder, fds)]
    assert kept == [0] * 7 + [33] * 3  # the last ones read
    entry = COSTS["entry"] * 31
    told = COSTS["listed name"]
    assert guest.cost("fd_readdir", fds[-1], 2048, 1, 5, 0) == CALL + told
    assert guest.cost("fd_readdir", fds[0], 4096, 8192, 5, 0) == CALL + entry + told * 28
    again = bytes(guest.memory.data[4096:8192])
    guest.cost("fd_readdir", fds[-1], 4096, 8192, 5, 0)
    assert bytes(guest.memory.data[4096:8192]) == again
    for fd in fds:
        guest.call("fd_close", fd)
    assert guest.host._files._listed == []


def test_args_get__buffer_at_the_last_address__is_refused_and_nothing_wraps(guest: Guest) -> None:
    assert guest.call("args_get", 0, 0xFFFF_FFFF) == wasi_abi.FAULT
