"""The janitor's program on the real kernel: what a guest left is its folder's owner's, and nothing else is touched."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.disks import MIB, small_disk
from tools import build_programs
from worker.runtimes import docker_janitor
from worker.runtimes.base import Level, measure

JANITOR = build_programs.PROGRAMS[0]
PROGRAM = JANITOR.path({"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), "none"))
OWNER, GUEST = 60_502, 65_534
pytestmark = pytest.mark.skipif(os.geteuid() != 0 or not PROGRAM.exists(), reason="needs root to have two other users")


def clean(folder: Path) -> int:
    return subprocess.run([PROGRAM], cwd=folder, check=False).returncode


def as_guest(folder: Path, script: str) -> None:
    subprocess.run(["sh", "-e", "-c", script], cwd=folder, check=True, user=GUEST, group=GUEST, extra_groups=[])


@pytest.fixture
def out(tmp_path: Path) -> Path:
    folder = tmp_path / "out"
    folder.mkdir()
    os.chown(folder, OWNER, OWNER)
    folder.chmod(0o777)
    for above in folder.parents:
        if above.is_relative_to(tmp_path.parents[1]):
            above.chmod(0o755)
    return folder


def test_janitor__modes_links_pipes_and_set_id_bits__the_owners_and_nothing_outside(out: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("kept")
    outside.chmod(0o640)
    as_guest(
        out,
        f"umask 077; mkdir -p a/b; echo 1 > a/b/f; chmod 4755 a/b/f; mkfifo a/pipe; ln -s {outside} a/link;"
        " ln -s / a/root; mkdir many; for i in $(seq 300); do : > many/$i; done; chmod 000 a/b/f a/b a",
    )
    assert clean(out) == 0
    found = [out / "a", *(out / "a").rglob("*"), *(out / "many").iterdir()]
    assert len(found) == 306 and {path.lstat().st_uid for path in found} == {OWNER}
    assert {path.lstat().st_gid for path in found} == {OWNER}
    assert (out / "a" / "b" / "f").stat().st_mode & 0o7777 == 0o600 and (out / "a").stat().st_mode & 0o7777 == 0o700
    assert (outside.stat().st_uid, outside.stat().st_mode & 0o7777, outside.read_text()) == (0, 0o640, "kept")
    assert Path("/").stat().st_uid == 0 and out.stat().st_mode & 0o7777 == 0o777


def test_janitor__thousands_of_folders_deep_and_wide__emptied_with_few_descriptors(out: Path) -> None:
    deep = "import os\nfor i in range(4000):\n os.mkdir('d', 0o700); open('f', 'w').close(); os.chdir('d')"
    subprocess.run([sys.executable, "-c", f"{deep}\n"], cwd=out, check=True)
    (out / "hearth-0000000000000001").write_text("a name that the janitor would use")
    done = subprocess.run(["prlimit", "--nofile=80", PROGRAM], cwd=out, check=False)
    assert done.returncode == docker_janitor.TOO_DEEP
    assert list(out.iterdir()) == []


def test_janitor__depth_that_a_reader_takes__kept(out: Path) -> None:
    (out / "/".join(["d"] * 32)).mkdir(parents=True)
    assert clean(out) == 0
    shutil.rmtree(out / "d")


def test_janitor__kernel_that_refuses__says_so(out: Path) -> None:
    """Control: without its rights the program changes nothing."""
    as_guest(out, "mkdir a; echo 1 > a/f")
    done = subprocess.run([PROGRAM], cwd=out, check=False, user=OWNER, group=OWNER, extra_groups=[])
    assert done.returncode == 1 and (out / "a").stat().st_uid == GUEST


HOLDER = """
import mmap, os, socket, sys, threading
def unnamed(size):
    fd = os.open("out/x", os.O_CREAT | os.O_RDWR)
    os.unlink("out/x")
    os.write(fd, bytes(size))
    return fd
one = unnamed(1 << 20)
again = os.dup(one)
mapped = unnamed(2 << 20)
held = mmap.mmap(mapped, 4096)
os.close(mapped)
def apart():
    assert ctypes.CDLL(None, use_errno=True).unshare(0x400) == 0
    kept = unnamed(4 << 20)
    ready.set()
    threading.Event().wait()
import ctypes
ready = threading.Event()
threading.Thread(target=apart, daemon=True).start()
ready.wait()
near, far = socket.socketpair()
sent = unnamed(8 << 20)
socket.send_fds(near, [b"x"], [sent])
os.close(sent)
print("ready", flush=True)
sys.stdin.read()
"""


def test_janitor__look__counts_names_and_what_has_none_however_it_is_held(tmp_path: Path) -> None:
    """Open, mapped, in a table of one thread alone, and on its way between sockets, where it can be told, not measured.

    The container is a word of this process's own control groups, which every process here has."""
    with small_disk(tmp_path / "disk", 32 * MIB) as disk:
        (disk / "out" / "a" / "b").mkdir(parents=True)
        (disk / "out" / "a" / "b" / "f").write_bytes(bytes(MIB))
        (disk / "out" / "a").chmod(0)
        holder = subprocess.Popen(
            [sys.executable, "-c", HOLDER], cwd=disk, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        looker = None
        try:
            assert holder.stdout is not None and holder.stdout.readline() == "ready\n"
            looker = subprocess.Popen([PROGRAM, "look", ":/"], cwd=disk / "out", stdout=subprocess.PIPE, text=True)
            assert looker.stdout is not None
            size, entries, blocks, deep, unnamed, unnamed_size, unnamed_blocks, adrift, partial = map(
                int, looker.stdout.readline().split()
            )
            tree = measure(disk / "out")
            assert (size, entries, blocks) == (tree.size, tree.entries, tree.blocks) == (MIB, 3, MIB)
            assert (deep, unnamed, unnamed_size, unnamed_blocks, partial) == (0, 3, 7 * MIB, 7 * MIB, 0)
            # Other programs of this machine may have some on their way as well.
            assert adrift >= 1
        finally:
            for process in (holder, looker):
                if process is not None:
                    process.kill()
                    process.wait()


def test_janitor__look_at_a_container_without_processes__counts_names_alone(tmp_path: Path) -> None:
    """Control: of a container that has no process nothing without a name is counted, and it goes on until one came."""
    looker = subprocess.Popen([PROGRAM, "look", "no such container"], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert looker.stdout is not None
    assert [looker.stdout.readline() for _ in range(2)] == ["0 0 0 0 0 0 0 0 0\n"] * 2
    looker.kill()
    looker.wait()


def test_look_at_janitor__who_takes_outputs_back__root_a_program_or_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    assert docker_janitor.look_at_janitor({"Arch": "riscv64"}).level is Level.PASS
    monkeypatch.setattr(docker_janitor.os, "geteuid", lambda: 1000)
    assert docker_janitor.look_at_janitor({"Arch": "arm64"}).level is Level.PASS
    row = docker_janitor.look_at_janitor({"Arch": "riscv64"})
    assert row.level is Level.FAIL and "riscv64" in row.detail and "root" in row.fix


def test_programs__are_what_their_source_compiles_to() -> None:
    assert list(build_programs.stale()) == []
    assert docker_janitor.platforms() == tuple(sorted(JANITOR.targets))
