"""The byte gate rejects what shifts the compiler's view of a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.check_bytes import check_bytes, main

REFUSED = {
    "cve-2026-114116 form feed in a comment": b"# note \x0c here\nA: constant(address) = msg.sender\n",
    "cve-2026-114116 line separator in a comment": "# note \u2028 here\n".encode(),
    "cve-2026-114114 byte order mark": b"\xef\xbb\xbf# pragma version 0.4.3\n",
    "cve-2026-114114 multi-byte name": "m\u00e9thode: uint256\n".encode(),
    "full-width digit": "x: uint256 = \uff11\n".encode(),
    "tab": b"\tx: uint256\n",
    "carriage return": b"x: uint256\r\n",
    "zero byte": b"x: uint256\x00\n",
    "delete": b"# \x7f\n",
}


@pytest.mark.parametrize("name", REFUSED)
def test_check_bytes__refused_byte__names_line_and_byte(name: str) -> None:
    problems = check_bytes("a.vy", REFUSED[name])
    assert len(problems) == 1
    assert problems[0].startswith("a.vy:1:")


def test_check_bytes__every_byte_alone__only_newline_and_printable_pass() -> None:
    passed = {byte for byte in range(256) if not check_bytes("a.vy", bytes([byte]))}
    assert passed == {0x0A, *range(0x20, 0x7F)}


def test_main__one_bad_file_among_good__exits_1_and_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "good.vy").write_bytes(b"x: uint256\n")
    (tmp_path / "bad.vyi").write_bytes(b"# \xff\n")
    (tmp_path / "other.txt").write_bytes(b"\xff")
    assert main([str(tmp_path)]) == 1
    assert "2 files, 15 bytes, 1 refused" in capsys.readouterr().out


def test_main__missing_folder__exits_2(tmp_path: Path) -> None:
    assert main([str(tmp_path / "nowhere")]) == 2
