"""worker.runtimes.published: what a running unit has published, from its folder and from an archive."""

from __future__ import annotations

import io
import os
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from hearth.base.errors import StorageError, TooLarge, UnsafePath
from worker.runtimes import published
from worker.runtimes.published import copy_archive, copy_folder

PLACE = "/out/state/now"


@pytest.fixture
def out(tmp_path: Path) -> Path:
    (tmp_path / "out" / "state" / "now").mkdir(parents=True)
    return tmp_path / "out"


@pytest.fixture
def into(tmp_path: Path) -> Path:
    (tmp_path / "copy").mkdir()
    return tmp_path / "copy"


def copied(out: Path, into: Path, cap: int = 100) -> dict[str, bytes]:
    copy_folder(out, PLACE, into, cap, lambda: None)
    return tree(into)


def tree(into: Path) -> dict[str, bytes]:
    return {str(path.relative_to(into)): path.read_bytes() for path in sorted(into.rglob("*")) if path.is_file()}


def test_copy_folder__what_was_published__without_drafts_and_what_lies_elsewhere(out: Path, into: Path) -> None:
    now = out / "state" / "now"
    (now / "a").write_bytes(b"one")
    (now / "sub").mkdir()
    (now / "sub" / "b").write_bytes(b"two")
    (now / ".draft").write_bytes(b"half of")
    (now / ".drafts").mkdir()
    (now / ".drafts" / "c").write_bytes(b"half of")
    (out / "state" / "other").write_bytes(b"half of")
    assert copied(out, into) == {"a": b"one", "sub/b": b"two"}


def test_copy_folder__nothing_published_yet__copies_nothing(tmp_path: Path, into: Path) -> None:
    (tmp_path / "out").mkdir()
    assert copied(tmp_path / "out", into) == {}


def test_copy_folder__link_in_the_way_or_in_it__is_refused(out: Path, into: Path, tmp_path: Path) -> None:
    """What a cheat gains: nothing. A link would publish the worker's own key, under the job's name."""
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key").write_bytes(b"key")
    now = out / "state" / "now"
    (now / "x").symlink_to(secret / "key")
    with pytest.raises(UnsafePath, match="not a regular file"):
        copied(out, into)
    (now / "x").unlink()
    now.rmdir()
    now.symlink_to(secret)
    with pytest.raises(UnsafePath, match="no folder"):
        copied(out, into)
    now.unlink()
    now.write_bytes(b"a file")
    with pytest.raises(UnsafePath, match="no folder"):
        copied(out, into)
    now.unlink()
    now.mkdir()
    os.mkfifo(now / "pipe")
    with pytest.raises(UnsafePath, match="not a regular file"):
        copied(out, into)
    assert tree(into) == {}


def test_copy_folder__more_than_its_bounds__is_refused(out: Path, into: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = out / "state" / "now"
    with open(now / "holes", "wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(TooLarge, match="cap of 100"):
        copied(out, into)
    (now / "holes").unlink()
    monkeypatch.setattr(published, "MAX_OUTPUT_ENTRIES", 3)
    for number in range(4):
        (now / str(number)).write_bytes(b"")
    with pytest.raises(TooLarge, match="3 entries"):
        copied(out, into)


def test_copy_folder__names_come_and_go_meanwhile__every_copy_is_of_whole_files(
    out: Path, into: Path, tmp_path: Path
) -> None:
    now, over = out / "state" / "now", threading.Event()
    whole = {str(number): bytes([number]) * 4_000 for number in range(8)}

    def publish() -> None:
        while not over.is_set():
            for name, content in whole.items():
                (now / ".draft").write_bytes(content)
                os.rename(now / ".draft", now / name)
            for name in whole:
                (now / name).unlink()

    thread = threading.Thread(target=publish)
    thread.start()
    try:
        for number in range(60):
            target = tmp_path / f"copy-{number}"
            target.mkdir()
            for name, content in copied(out, target, cap=1 << 20).items():
                assert whole[name] == content
    finally:
        over.set()
        thread.join()


def test_copy_folder__told_to_stop__stops(out: Path, into: Path) -> None:
    (out / "state" / "now" / "a").write_bytes(b"one")

    def stop() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        copy_folder(out, PLACE, into, 100, stop)


# ---- archives ----


def archive(*members: tuple[tarfile.TarInfo, bytes]) -> Iterator[bytes]:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for info, content in members:
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    data = buffer.getvalue()
    yield from (data[start : start + 700] for start in range(0, len(data), 700))


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


FOLDER = (member("now", tarfile.DIRTYPE), b"")


def test_copy_archive__what_the_engine_gives__is_the_folder_without_drafts(into: Path) -> None:
    sub = (member("now/sub", tarfile.DIRTYPE), b"")
    files = ((member("now/a"), b"one"), (member("now/sub/b"), b"two" * 1_000), (member("now/.draft"), b"half"))
    copy_archive(archive(FOLDER, sub, *files), PLACE, into, 1 << 20, lambda: None)
    assert tree(into) == {"a": b"one", "sub/b": b"two" * 1_000}


@pytest.mark.parametrize(
    "bad",
    [
        member("now/x", tarfile.SYMTYPE, "/etc/passwd"),
        member("now/x", tarfile.LNKTYPE, "now/a"),
        member("now/x", tarfile.CHRTYPE),
        member("now/../../x"),
        member("/etc/x"),
        member("other/x"),
        member("now"),
        member("now/a\nb"),
    ],
    ids=["link", "hard link", "device", "out of it", "absolute", "beside it", "a file", "bad name"],
)
def test_copy_archive__what_no_store_takes__is_refused(into: Path, bad: tarfile.TarInfo, tmp_path: Path) -> None:
    first = () if bad.name == "now" else (FOLDER,)
    with pytest.raises(UnsafePath):
        copy_archive(archive(*first, (bad, b"")), PLACE, into, 1 << 20, lambda: None)
    assert tree(into) == {} and not (tmp_path / "x").exists()


def test_copy_archive__too_much_cut_off_or_nonsense__is_refused(into: Path) -> None:
    with pytest.raises(TooLarge):
        copy_archive(archive(FOLDER, (member("now/a"), b"x" * 101)), PLACE, into, 100, lambda: None)
    with pytest.raises(StorageError, match="cannot be read"):
        copy_archive([next(archive(FOLDER, (member("now/b"), b"x" * 9_000)))[:600]], PLACE, into, 1 << 20, lambda: None)
    with pytest.raises(StorageError, match="cannot be read"):
        copy_archive([b"nonsense" * 100], PLACE, into, 100, lambda: None)
