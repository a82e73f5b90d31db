"""worker.runtimes.wasi_files: paths stay below their mount, and every byte that a guest holds is counted once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from worker.runtimes import wasi_abi as abi
from worker.runtimes.wasi_abi import Errno
from worker.runtimes.wasi_files import MAX_DEPTH, MAX_FDS, Files, Mount, OverCap, Place, Quota, locate, look, read_at

OUT, IN = 3, 4
CAP = 100


class Guest:
    """The files of a guest with a writable mount of CAP bytes and a read-only one."""

    def __init__(self, root: Path) -> None:
        for name in ("out", "in"):
            (root / name).mkdir()
        (root / "in" / "data").write_bytes(b"rows")
        self.out = root / "out"
        self.quota = Quota("/out", CAP)
        mounts = [Mount("/out", str(self.out), self.quota), Mount("/in", str(root / "in"))]
        self.files = Files(mounts, lambda data: None, lambda data: None)

    def at(self, path: str, fd: int = OUT) -> Place:
        return locate(self.files.need_folder(fd), path)

    def open(self, path: str, oflags: int = 0, *, fd: int = OUT, write: bool = False) -> int:
        return self.files.open(self.at(path, fd), oflags, read=True, write=write, append=False)

    def write(self, path: str, data: bytes) -> int:
        fd = self.open(path, abi.O_CREAT, write=True)
        self.files.write_at(self.files.need_file(fd, write=True), data, 0)
        return fd


@pytest.fixture
def guest(tmp_path: Path) -> Guest:
    return Guest(tmp_path)


def code_of(caught: pytest.ExceptionInfo[Errno]) -> int:
    return caught.value.code


# ---- paths ----


@pytest.mark.parametrize(
    ("path", "names", "as_folder"),
    [
        ("a", ("a",), False),
        ("./a//b", ("a", "b"), False),
        ("a/../b", ("b",), False),
        ("a/b/", ("a", "b"), True),
        (".", (), False),
        ("a/..", (), True),
    ],
)
def test_locate__path_below_its_base__is_resolved_by_name(
    guest: Guest, path: str, names: tuple[str, ...], as_folder: bool
) -> None:
    assert guest.at(path)[1:] == (names, as_folder)


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("", abi.NOENT),
        ("/etc/passwd", abi.PERM),
        ("..", abi.PERM),
        ("a/../../b", abi.PERM),
        ("/".join("x" * (MAX_DEPTH + 1)), abi.NAMETOOLONG),
    ],
)
def test_locate__path_that_leaves_its_base_or_is_too_deep__is_refused(guest: Guest, path: str, code: int) -> None:
    with pytest.raises(Errno) as caught:
        guest.at(path)
    assert code_of(caught) == code


def test_look__link_on_the_way__is_not_followed(guest: Guest, tmp_path: Path) -> None:
    os.symlink(tmp_path / "in", guest.out / "link")
    with pytest.raises(NotADirectoryError):
        look(guest.at("link/data"))
    with pytest.raises(Errno) as caught:
        guest.open("link")
    assert code_of(caught) == abi.LOOP


def test_open__every_way_it_can_end__closes_what_it_opened(guest: Guest) -> None:
    guest.files.create_folder(guest.at("a"))
    before = len(os.listdir("/proc/self/fd"))
    for path, oflags in (("a/absent", 0), ("absent/b", abi.O_CREAT), ("a", abi.O_TRUNC)):
        with pytest.raises((Errno, OSError)):
            guest.open(path, oflags)
    guest.files.close(guest.open("a"))
    assert len(os.listdir("/proc/self/fd")) == before


# ---- what may be written ----


def test_open__read_only_mount__is_not_written(guest: Guest) -> None:
    fd = guest.open("data", fd=IN)
    assert read_at(guest.files.need_file(fd), 10, 1) == b"ows"
    for call in (
        lambda: guest.open("data", fd=IN, write=True),
        lambda: guest.open("data", abi.O_TRUNC, fd=IN),
        lambda: guest.open("new", abi.O_CREAT, fd=IN),
        lambda: guest.files.unlink(guest.at("data", IN)),
        lambda: guest.files.create_folder(guest.at("new", IN)),
        lambda: guest.files.need_file(fd, write=True),
    ):
        with pytest.raises(Errno) as caught:
            call()
        assert code_of(caught) == abi.ROFS


def test_rename__between_mounts__is_refused(guest: Guest) -> None:
    guest.write("a", b"1")
    with pytest.raises(Errno) as caught:
        guest.files.rename(guest.at("a"), guest.at("a", IN))
    assert code_of(caught) == abi.ROFS


def test_write_at__one_byte_past_the_cap__ends_the_guest_before_it_is_written(guest: Guest) -> None:
    guest.write("full", bytes(CAP))
    fd = guest.open("more", abi.O_CREAT, write=True)
    with pytest.raises(OverCap):
        guest.files.write_at(guest.files.need_file(fd), b"1", 0)
    assert (guest.out / "more").stat().st_size == 0


def test_unlink__open_file__counts_until_it_is_closed(guest: Guest) -> None:
    fd = guest.write("a", bytes(60))
    guest.files.unlink(guest.at("a"))
    assert (guest.quota.used, guest.quota.entries) == (60, 0)
    with pytest.raises(OverCap):
        guest.write("b", bytes(60))
    guest.files.close(fd)
    assert guest.quota.used == 0


def test_rename__over_a_file__frees_what_was_there(guest: Guest) -> None:
    guest.files.close(guest.write("a", bytes(10)))
    guest.files.close(guest.write("b", bytes(30)))
    guest.files.rename(guest.at("a"), guest.at("b"))
    assert (guest.quota.used, guest.quota.entries) == (10, 1)
    guest.files.rename(guest.at("b"), guest.at("b"))
    assert (guest.quota.used, guest.quota.entries) == (10, 1)


def test_resize__up_and_down__counts_the_size_without_writing_it(guest: Guest) -> None:
    file = guest.files.need_file(guest.write("a", b"12"), write=True)
    guest.files.resize(file, CAP)
    assert guest.quota.used == CAP
    guest.files.resize(file, 1)
    assert (guest.quota.used, guest.files.size_of(file)) == (1, 1)
    with pytest.raises(OverCap):
        guest.files.resize(file, CAP + 1)
    assert (guest.out / "a").read_bytes() == b"1"


def test_create_folder__name_that_is_taken__costs_no_entry(guest: Guest) -> None:
    guest.files.create_folder(guest.at("a"))
    with pytest.raises(FileExistsError):
        guest.files.create_folder(guest.at("a"))
    assert guest.quota.entries == 1
    guest.files.remove_folder(guest.at("a"))
    assert guest.quota.entries == 0


# ---- descriptors ----


def test_open__last_descriptor__is_the_last(guest: Guest) -> None:
    guest.write("a", b"")
    for _ in range(MAX_FDS - 6):
        guest.open("a")
    with pytest.raises(Errno) as caught:
        guest.open("a")
    assert code_of(caught) == abi.MFILE
    guest.files.close(9)
    assert guest.open("a") == 9


def test_renumber__onto_another__closes_it_and_moves(guest: Guest) -> None:
    first, second = guest.write("a", b"1"), guest.write("b", b"2")
    guest.files.renumber(first, second)
    assert first not in guest.files
    assert read_at(guest.files.need_file(second), 9, 0) == b"1"
    with pytest.raises(Errno) as caught:
        guest.files.renumber(second, first)
    assert code_of(caught) == abi.BADF


@pytest.mark.parametrize(("fd", "code"), [(99, abi.BADF), (1, abi.SPIPE), (OUT, abi.ISDIR)])
def test_need_file__what_is_none__says_what_it_is(guest: Guest, fd: int, code: int) -> None:
    with pytest.raises(Errno) as caught:
        guest.files.need_file(fd)
    assert code_of(caught) == code
