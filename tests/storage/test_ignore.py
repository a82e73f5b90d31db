"""Ignore rules: equal to git's own answer on the same tree."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from hearth.base.errors import SpecError
from hearth.storage import ignore, unixfs
from hearth.storage.ignore import no_job_takes
from tests.kit.require import require
from tests.storage.unixfs_cases import Hasher

PATHS = [
    "a.log",
    "keep.log",
    "b/c.log",
    "b/keep.log",
    "build/x",
    "sub/build/x",
    "out/x/y",
    "deep/a/b/target",
    "deep/target",
    "foo/bar",
    "x/foo/bar",
    "#hash",
    "!bang",
    "sp ace",
    "doc/a.txt",
    "doc/sub/a.txt",
    "cache1/x",
    "cacheA/x",
    "star*name",
    "q1",
    "q12",
    "dir.d/file",
    "plain",
    "[x]",
]
RULES = [
    "*.log",
    "*.log\n!keep.log",
    "build/",
    "/build",
    "build",
    "out/**",
    "**/target",
    "deep/**/target",
    "foo/bar",
    "/foo/bar",
    "\\#hash",
    "\\!bang",
    "# a comment\n\nplain   ",
    "doc/*.txt",
    "cache[0-9]",
    "cache[!0-9]/",
    "star\\*name",
    "q?",
    "b/\n!b/keep.log",
    "*\n!plain\n!doc\n!doc/a.txt",
    "plain/",
    "sp ace",
    "\\*.log",
    "!\\*.log\n\\[x]",
    "b[!x]c.log",
    "b[^x]keep.log\nb/c.log",
    "[!]a]1",
    "[!]q]1",
    "[]q]1",
    "[[]x]",
    "q[+--1]",
    "deep/***/target",
    "**/sub/**/x",
    "**/a/b/**/target",
    "*e*p/*a*e*",
]


# What `re` says of a pattern that it may read otherwise one day. Not all warnings: garbage of other tests has some too.
@pytest.mark.filterwarnings("error::FutureWarning", "error::DeprecationWarning")
@pytest.mark.parametrize("rules", RULES)
def test_parse__rules__the_files_that_git_would_take(tmp_path: Path, rules: str) -> None:
    git = shutil.which("git")
    require("git", git is not None, "no git on PATH")
    for path in PATHS:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(b"")
    (tmp_path / "rules").write_text(rules)
    subprocess.run([str(git), "init", "-q", str(tmp_path)], check=True, capture_output=True)
    done = subprocess.run(
        [str(git), "ls-files", "-oz", f"--exclude-from={tmp_path}/rules"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    taken: list[str] = []
    left_out = ignore.parse(rules + "\n/.git/")
    unixfs.import_path(tmp_path, Hasher(), ignore=left_out, progress=lambda path, size: taken.append(path))
    assert sorted(taken) == sorted(filter(None, done.stdout.split("\0")))


MANY = ["*a" * 100 + "b", "*" * 100 + "b", "x*" * 50 + "/" + "*a" * 50 + "b", "[!b]*" * 100 + "b"]
MANY += ["**/" * 100 + "b", "**/a/" * 50 + "b", "**/*a*/" * 50 + "b", "a**/" * 50 + "b", "**/a*a*/**/*" * 20 + "b"]


@pytest.mark.timeout(30)
@pytest.mark.parametrize("rule", MANY)
def test_parse__many_stars__end_soon(rule: str) -> None:
    """A folder that somebody downloaded brings its own rules."""
    left_out = ignore.parse(rule)
    assert not left_out("a" * 255, False)
    assert not left_out("/".join("a" * 128), False)


def test_parse__malformed_rule__refused_with_its_line() -> None:
    with pytest.raises(SpecError, match=r"line 2"):
        ignore.parse("ok\n[z-a]")


@pytest.mark.parametrize(
    ("name", "is_directory"), [(".SSH", True), (".\u017f\u017fh", True), ("server.\u212aEY", False), (".Env", False)]
)
def test_no_job_takes__name_in_another_case__is_left_out(name: str, is_directory: bool) -> None:
    """The long s and the Kelvin sign are an s and a k where a file system folds case."""
    assert no_job_takes(f"a/{name}", is_directory)
