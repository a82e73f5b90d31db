"""What both runtimes share: measuring and judging outputs, the guest's environment, log buffers."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hearth.base.errors import SpecError
from hearth.storage import canonical
from worker.runtimes import base
from worker.runtimes.base import OutputRule, RunStatus


@pytest.fixture
def out(tmp_path: Path) -> Path:
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


def judge(out: Path, *rules: OutputRule, cap: int = 1000) -> tuple[RunStatus, str]:
    return base.check_outputs(out, rules or (OutputRule(),), cap)


def test_check_outputs__files_within_bounds__ok(out: Path) -> None:
    (out / "a").mkdir()
    (out / "a" / "x").write_bytes(bytes(600))
    (out / "y").write_bytes(bytes(400))
    assert judge(out, OutputRule("/out/a", max_bytes=600), OutputRule("/out/y", max_bytes=400)) == (RunStatus.OK, "")


@pytest.mark.parametrize(
    ("rule", "status", "word"),
    [
        (OutputRule("/out/none"), RunStatus.OUTPUT_MISSING, "missing"),
        (OutputRule("/out/empty"), RunStatus.OUTPUT_MISSING, "empty"),
        (OutputRule("/out/folder"), RunStatus.OUTPUT_MISSING, "empty"),
        (OutputRule("/out/none", required=False), RunStatus.OK, ""),
        (OutputRule("/out/x", max_bytes=9), RunStatus.OUTPUT_OVER_CAP, "10 bytes"),
        (OutputRule("/out", max_bytes=9), RunStatus.OUTPUT_OVER_CAP, "10 bytes"),
        (OutputRule("/in/x"), RunStatus.BAD_INPUT, "not at or below /out"),
        (OutputRule("/out/../x"), RunStatus.BAD_INPUT, "not at or below /out"),
    ],
)
def test_check_outputs__rule__judged(out: Path, rule: OutputRule, status: RunStatus, word: str) -> None:
    (out / "x").write_bytes(bytes(10))
    (out / "empty").touch()
    (out / "folder").mkdir()
    found, why = judge(out, rule)
    assert found is status and word in why


def test_check_outputs__sum_one_byte_over_the_cap__over(out: Path) -> None:
    (out / "a").write_bytes(bytes(500))
    (out / "b").write_bytes(bytes(500))
    assert judge(out)[0] is RunStatus.OK
    (out / "b").write_bytes(bytes(501))
    assert judge(out)[0] is RunStatus.OUTPUT_OVER_CAP


def plant_symlink(out: Path) -> None:
    (out / "bad").symlink_to("/etc/passwd")


def plant_dangling(out: Path) -> None:
    (out / "bad").symlink_to("nowhere")


def plant_folder_link(out: Path) -> None:
    (out / "bad").symlink_to("/etc", target_is_directory=True)


def plant_hard_link(out: Path) -> None:
    (out.parent / "bad").write_text("secret")
    os.link(out.parent / "bad", out / "bad")


def plant_fifo(out: Path) -> None:
    os.mkfifo(out / "bad")


def plant_bytes(out: Path) -> None:
    os.mkdir(os.fsencode(out) + b"/bad\xff")


@pytest.mark.parametrize(
    "plant", [plant_symlink, plant_dangling, plant_folder_link, plant_hard_link, plant_fifo, plant_bytes]
)
def test_check_outputs__what_means_something_else_at_a_reader__refused(out: Path, plant: Any) -> None:
    (out / "good").write_text("x")
    assert judge(out)[0] is RunStatus.OK
    plant(out)
    found, why = judge(out, cap=10**6)
    assert found is RunStatus.OUTPUT_MISSING and "bad" in why


@pytest.mark.parametrize(("depth", "status"), [(31, RunStatus.OK), (32, RunStatus.OUTPUT_OVER_CAP)])
def test_check_outputs__nesting__bounded(out: Path, depth: int, status: RunStatus) -> None:
    (out / Path(*["d"] * depth)).mkdir(parents=True)
    assert judge(out)[0] is status


def test_check_outputs__long_paths__bounded(out: Path) -> None:
    (out / Path(*["d" * 200] * 4)).mkdir(parents=True)
    assert judge(out)[0] is RunStatus.OK
    (out / Path(*["d" * 200] * 6)).mkdir(parents=True)
    assert judge(out)[0] is RunStatus.OUTPUT_OVER_CAP


def test_measure__sparse_file__counts_in_full(out: Path) -> None:
    with (out / "sparse").open("wb") as file:
        file.truncate(10**12)
    assert base.measure(out).size == 10**12


def test_measure__file_that_is_moved_under_the_walk__counts_once(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that writes a file and then gives it its name must not look as if it held two."""
    for name in ("a", "b"):
        (out / name).mkdir()
    opened: list[str] = []
    plain = os.open

    def opening(path: Any, *values: Any, **named: Any) -> int:
        if path in ("a", "b"):
            if opened:
                os.rename(out / opened[0] / "file", out / path / "file")
            else:
                (out / path / "file").write_text("text")
            opened.append(path)
        return plain(path, *values, **named)

    monkeypatch.setattr(os, "open", opening)
    tree = base.measure(out)
    assert len(opened) == 2 and (tree.size, tree.entries) == (4, 3)


def preallocate(path: Path, size: int) -> None:
    """Give a file blocks beyond its end, which its size does not show."""
    with path.open("wb") as file:
        libc = ctypes.CDLL(None, use_errno=True)
        keep_size, start = ctypes.c_int(1), ctypes.c_int64(0)
        assert libc.fallocate(file.fileno(), keep_size, start, ctypes.c_int64(size)) == 0, ctypes.get_errno()


def test_check_outputs__blocks_beyond_the_end_of_a_file__over_cap(out: Path) -> None:
    (out / "good").write_text("x")
    preallocate(out / "hidden", base.BLOCKS_SLACK_BYTES // 2)
    assert judge(out)[0] is RunStatus.OK  # a file system may do as much for a file that grows
    preallocate(out / "hidden", 2 * base.BLOCKS_SLACK_BYTES)
    assert base.measure(out).size == 1
    found, why = judge(out)
    assert found is RunStatus.OUTPUT_OVER_CAP and "bytes of disk" in why


def test_measure__more_entries_than_are_allowed__ends_there(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A guest that makes millions of names must not keep the worker walking past the lease's end."""
    monkeypatch.setattr(base, "MAX_OUTPUT_ENTRIES", 10)
    for number in range(40):
        (out / str(number)).write_text("")
    tree = base.measure(out)
    assert (tree.entries, tree.too_deep) == (11, True)
    assert judge(out)[0] is RunStatus.OUTPUT_OVER_CAP


@given(st.lists(st.binary(max_size=50)), st.integers(0, 120))
def test_log_buffer__any_stream__head_and_tail_of_it_within_the_cap(chunks: list[bytes], cap: int) -> None:
    buffer = base.LogBuffer(cap)
    for chunk in chunks:
        buffer.write(chunk)
    whole, kept = b"".join(chunks), buffer.value()
    if len(whole) <= cap:
        assert kept == whole and not buffer.truncated
    else:
        head, tail = cap // 2, cap - cap // 2
        assert buffer.dropped == len(whole) - cap
        assert kept.startswith(whole[:head]) and kept.endswith(whole[len(whole) - tail :])


def request(env: dict[str, str]) -> base.RunRequest:
    here = Path("/")
    limits = base.SandboxLimits(1, 1)
    return base.RunRequest("u", (), here, here, here, limits, env=env, index=2, units=5)


def test_guest_env__spec_and_unit__nothing_else() -> None:
    assert base.guest_env(request({"A": "1"})) == {"A": "1", "HEARTH_UNIT": "2", "HEARTH_UNITS": "5"}


@pytest.mark.parametrize(
    "env",
    [
        {"LD_PRELOAD": "x"},
        {"NVIDIA_DRIVER_CAPABILITIES": "all"},
        {"HEARTH_UNITS": "9"},
        {"Ld_preload": "x"},
        {"A": "\0"},
        {"A-B": ""},
    ],
)
def test_guest_env__names_of_the_sandbox__refused(env: dict[str, str]) -> None:
    with pytest.raises(SpecError):
        base.guest_env(request(env))


def test_guest_env__64_kib__is_the_most() -> None:
    rest = len("A") + len("HEARTH_UNIT") + len("HEARTH_UNITS") + 2 + 3 * 2
    assert base.guest_env(request({"A": "x" * (base.MAX_ENV_BYTES - rest)}))
    with pytest.raises(SpecError, match="64 KiB"):
        base.guest_env(request({"A": "x" * (base.MAX_ENV_BYTES - rest + 1)}))


@pytest.mark.parametrize("kind", ["link", "hard link", "pipe", "file", "file in a folder"])
def test_check_outputs__name_that_is_no_text__refused_in_words_that_can_be_stored(tmp_path: Path, kind: str) -> None:
    """What a cheat gains: nothing. A reason that no report can hold would look like a fault of the worker."""
    out = os.fsencode(tmp_path / "out")
    odd = b"\xff" if kind != "file in a folder" else b"\xfe/x"
    os.makedirs(os.path.dirname(os.path.join(out, odd)))
    path = os.path.join(out, odd)
    if kind == "link":
        os.symlink(b"x", path)
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        Path(os.fsdecode(path)).write_bytes(b"x")
    if kind == "hard link":
        os.link(path, os.path.join(out, b"a"))
    status, detail = base.check_outputs(tmp_path / "out", (), 1 << 20)
    assert status is RunStatus.OUTPUT_MISSING and detail
    canonical.encode({"detail": detail})
