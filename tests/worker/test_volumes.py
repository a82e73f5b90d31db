"""worker.volumes on real loop devices: what root makes, what a worker and its doctor see of it, how it goes."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from hearth.base.errors import ConfigError
from hearth.base.files import free_bytes
from hearth.cli.leaf import carried
from hearth.cli.root import root
from hearth.protocol.types import JobId
from tests.kit.disks import MIB, fill, need_mounts
from tests.kit.hints import faults_in
from tests.worker.test_doctor import levels, told
from worker import doctor, volumes
from worker.attempt.folder import Folders
from worker.decide import LeaseKey
from worker.home import hold

SIZE = 256 * MIB


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A home whose volumes are gone after the test."""
    need_mounts()
    path = tmp_path / "state"
    yield path
    if path.exists():
        volumes.remove(path)


def options_of(mount: Path) -> set[str]:
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, where, kind, options, *_ = line.split()
        if where == str(mount):
            return {kind, *options.split(",")}
    return set()


def test_make__two_slots__file_systems_of_allocated_blocks_for_the_workers_user(home: Path) -> None:
    made = volumes.make(home, 2, SIZE, "nobody")
    nobody = pwd.getpwnam("nobody")
    assert [(one.path, one.mounted, one.sparse) for one in made] == [
        (home / "volumes" / name, True, False) for name in ("0", "1")
    ]
    assert volumes.mounted(home) == tuple(one.path for one in made)
    for one in made:
        assert {"ext4", "nosuid", "nodev"} <= options_of(one.path)
        assert (one.path.stat().st_uid, one.path.stat().st_mode & 0o777) == (nobody.pw_uid, 0o700)
        assert (one.image.stat().st_uid, one.image.stat().st_mode & 0o777) == (0, 0o600)
        assert one.fstab.split() == [str(one.image), str(one.path), "ext4", volumes.BOOT_OPTIONS, "0", "2"]
    assert home.owner() == "nobody" and (home / "volumes").owner() == "root"
    # Again: nothing is lost, and what is missing is added.
    (made[0].path / "kept").write_text("x")
    assert len(volumes.make(home, 3, SIZE, "nobody")) == 3
    assert (made[0].path / "kept").exists()
    assert [one.path.name for one in volumes.remove(home)] == ["0", "1", "2"]
    assert not (home / "volumes").exists() and volumes.mounted(home) == ()


def test_lend_volume__worker_that_is_a_plain_user__fills_empties_and_lends_it_again(home: Path) -> None:
    """Root makes the volumes, and nothing of a worker's day needs root."""
    with tempfile.TemporaryDirectory(prefix="hearth-test-") as top:  # pytest's own folders are root's alone
        os.chmod(top, 0o755)
        state = Path(top) / "state"
        volumes.make(state, 1, SIZE, "nobody")
        try:
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    os.setgid(65534)
                    os.setuid(65534)
                    folders = Folders(state / "jobs", volumes.mounted(state))
                    for number in range(2):
                        folder = folders.of(LeaseKey(JobId(b"\xaa" * 32), number, 1))
                        folder.renew()
                        folders.lend_volume(folder)
                        (folder.outputs / "made").mkdir()
                        (folder.outputs / "made" / "by a job").write_bytes(b"x")
                        assert folder.volume == state / "volumes" / "0"
                        folder.drop_data()
                    code = 0
                finally:
                    os._exit(code)
            assert os.waitpid(child, 0)[1] == 0
        finally:
            volumes.remove(state)


def test_make__volume_that_is_filled__takes_nothing_more_of_the_disk(home: Path) -> None:
    (made,) = volumes.make(home, 1, SIZE, "root")
    fill(made.path / "ballast")
    assert free_bytes(made.path) == 0
    (made,) = volumes.volumes_of(home)
    assert not made.sparse and made.image.stat().st_size == SIZE
    (made.path / "ballast").unlink()
    # As many files as a job may make leave as many blocks half empty.
    assert SIZE // 2 < volumes.size_of(made.path) < SIZE - 64 * MIB


def test_make__inode_tables__are_zeroed_so_that_the_kernel_punches_no_holes_later(home: Path) -> None:
    (made,) = volumes.make(home, 1, SIZE, "root")
    program = shutil.which("dumpe2fs", path=volumes._PATH)
    assert program is not None
    said = subprocess.run([program, str(made.image)], check=True, capture_output=True, text=True).stdout
    groups = [line for line in said.splitlines() if re.match(r"Group \d+:", line)]
    assert len(groups) > 1 and all("ITABLE_ZEROED" in line for line in groups)


def test_make__volume_that_lost_mount_and_blocks__is_mended(home: Path, tmp_path: Path) -> None:
    (made,) = volumes.make(home, 1, SIZE, "root")
    volumes._run("umount", str(made.path))
    volumes._run("fallocate", "--punch-hole", "--offset", str(40 * MIB), "--length", str(8 * MIB), str(made.image))
    (lost,) = volumes.volumes_of(home)
    assert lost.sparse and not lost.mounted and volumes.mounted(home) == ()
    rows = doctor.look_at_volumes(told(tmp_path, home=str(home)))
    assert [row.level.value for row in rows] == ["WARN", "WARN"]
    assert "not mounted" in rows[0].detail and "not allocated" in rows[1].detail
    program = Path(sys.executable).with_name("hearth")  # sudo would not find it by its name
    assert rows[0].fix.startswith(f"sudo {program} worker volumes --home {home} --slots 1 --size 256MiB")
    context = root.make_context("hearth", [], resilient_parsing=True)
    for row in rows:
        led = carried(context, {"--config": "w.toml"}, row.fix)
        assert "volumes --config w.toml --home" in led and faults_in(led) == []
    (mended,) = volumes.make(home, 1, SIZE, "root")
    assert mended.mounted and not mended.sparse
    assert levels(doctor.look_at_volumes(told(tmp_path, home=str(home)))) == {"volumes": "PASS"}
    fewer = doctor.look_at_volumes(told(tmp_path, home=str(home), offer__slots=2))
    assert [row.level.value for row in fewer] == ["PASS", "WARN"]


def test_make__folder_that_a_user_made__is_refused(home: Path) -> None:
    """Root would follow the links that wait for it there."""
    home.mkdir()
    (home / "volumes").mkdir()
    os.chown(home / "volumes", 65534, 65534)
    with pytest.raises(ConfigError, match="not root's alone") as caught:
        volumes.make(home, 1, SIZE, "nobody")
    assert caught.value.code == "VOLUME_FAILED"
    (home / "volumes").rmdir()


@pytest.mark.parametrize(
    ("size", "user", "code", "said"),
    [
        (MIB, "root", "VOLUME_FAILED", "too small"),
        (SIZE, "nobody-of-that-name", "VOLUME_FAILED", "there is no user"),
        (1 << 60, "root", "NO_ROOM", "are needed"),
    ],
)
def test_make__what_cannot_be__is_refused_before_a_file_is_made(
    home: Path, size: int, user: str, code: str, said: str
) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        volumes.make(home, 1, size, user)
    assert caught.value.code == code
    assert volumes.volumes_of(home) == []
    if size == MIB:
        assert caught.value.hint.endswith(f"volumes --home {home} --slots 1 --size 256MiB, or more")


def test_make__another_size__names_the_way(home: Path) -> None:
    volumes.make(home, 1, SIZE, "root")
    with pytest.raises(ConfigError, match="has 256MiB") as caught:
        volumes.make(home, 1, 2 * SIZE, "root")
    assert caught.value.hint.startswith("hearth worker volumes --remove")


def test_make_remove__worker_that_runs__is_not_disturbed(home: Path) -> None:
    home.mkdir()
    with hold(home):
        for act in (lambda: volumes.make(home, 1, SIZE, "root"), lambda: volumes.remove(home)):
            with pytest.raises(ConfigError) as caught:
                act()
            assert caught.value.code == "HOME_IN_USE" and caught.value.hint.startswith("hearth worker drain")


def test_make__not_root__says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    for act in (lambda: volumes.make(tmp_path, 1, SIZE, "root"), lambda: volumes.remove(tmp_path)):
        with pytest.raises(ConfigError) as caught:
            act()
        assert (caught.value.code, caught.value.exit_code) == ("NEEDS_ROOT", 3)


def test_look_at_volumes__none__warns_where_containers_are_offered(tmp_path: Path) -> None:
    assert levels(doctor.look_at_volumes(told(tmp_path))) == {"volumes": "WARN"}
    assert levels(doctor.look_at_volumes(told(tmp_path, offer__runtimes=["wasm"]))) == {"volumes": "PASS"}
