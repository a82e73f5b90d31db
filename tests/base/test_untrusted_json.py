"""hearth.base.untrusted_json: what no reader of strangers' JSON has to meet, and text that every writer can write."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hearth.base.errors import HearthError
from hearth.base.files import replace_text
from hearth.base.text import plain
from hearth.base.untrusted_json import MAX_BYTES, MAX_DEPTH, read_json


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        ("", "Expecting value"),
        ("[" * 100_000, "nested deeper"),
        ("[" * MAX_DEPTH + "]" * MAX_DEPTH, "nested deeper"),
        ('{"a": 1e999}', "not finite"),
        ('{"a": Infinity}', "Infinity"),
        ("[NaN]", "NaN"),
        (str(2**256), "256 bits"),
        (str(-(10**400)), "256 bits"),
        ("9" * 5000, "digits"),
        (r'{"\ud800": 1}', "surrogate"),
        (r'["a\udc00"]', "surrogate"),
        ('"\ud800"', "UTF-8"),
        (b"\xff", "UTF-8"),
        ('"' + "a" * MAX_BYTES + '"', "bytes"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_read_json__out_of_bounds__is_a_value_error_that_says_why(raw: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        read_json(raw)


READERS = {
    "untrusted_json": "from hearth.base.untrusted_json import read_json as read",
    "canonical": "from hearth.storage.canonical import decode as read",
    "spec": "from hearth.jobfile.text import read_text; read = lambda raw: read_text(raw, 'job.json')",
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    "raw",
    ["[" * 200_000, '{"a":' * 150_000, '{"a":["]",' * 90_000, '"' + r"\"" * 400_000 + "[", "1" + "," * 900_000],
    ids=["lists", "objects", "strings", "escapes", "no-bracket"],
)
def test_read__no_guard_of_the_interpreter__is_a_refusal_and_no_crash(reader: str, raw: str) -> None:
    program = f"""
import sys
{READERS[reader]}
from hearth.base.errors import HearthError
sys.setrecursionlimit(10**6)
try:
    read(sys.stdin.buffer.read())
except (ValueError, HearthError) as error:
    print(error)
"""
    ran = subprocess.run([sys.executable, "-c", program], input=raw, capture_output=True, text=True, timeout=20)
    assert (ran.returncode, bool(ran.stdout)) == (0, True), ran.stderr


def test_read_json__brackets_in_strings__are_no_nesting() -> None:
    text = '["' + "[{" * 200 + r"\"[[" + '"]'
    assert read_json(text) == ["[{" * 200 + '"[[']


def test_read_json__within_the_bounds__is_the_value() -> None:
    assert read_json('{"a": [1, 2.5, null, true, "\\ud83d\\ude00é"]}') == {"a": [1, 2.5, None, True, "😀é"]}
    assert read_json(str(2**256 - 1).encode()) == 2**256 - 1
    deep = MAX_DEPTH - 1
    assert read_json("[" + "[]," * 200 + "{}]")[:2] == [[], []]
    assert read_json("[" * deep + "]" * deep) is not None


def test_plain__half_a_surrogate_pair__is_written_out_and_files_and_sqlite_take_it(tmp_path: Path) -> None:
    assert plain("a\ud800é😀") == "a\\ud800é😀"
    error = HearthError("the key \ud800", hint="look at \udfff")
    replace_text(tmp_path / "said", error.message)
    with sqlite3.connect(":memory:") as base:
        assert base.execute("SELECT ? || ?", (error.message, error.hint)).fetchone() == (
            "the key \\ud800look at \\udfff",
        )
    assert str(error) == error.message


def test_read_json__more_values_than_are_wanted__is_a_value_error() -> None:
    assert read_json("[1, 2, 3]", max_values=3) == [1, 2, 3]
    with pytest.raises(ValueError, match="more than 3 values"):
        read_json("[1, 2, 3, 4]", max_values=3)
