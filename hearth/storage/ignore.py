"""Ignore rules for packing a directory: the .gitignore language, read from `.hearthignore` in its root.

Source: the pattern format of gitignore(5). One file per tree; nested ignore files are not read.
"""

from __future__ import annotations

import re
from pathlib import Path

from hearth.base.errors import SpecError
from hearth.storage.unixfs import Ignore

FILE_NAME = ".hearthignore"
ALWAYS = (".git/", ".hearth/", "__pycache__/", ".venv/", FILE_NAME)
"""Rules that stand before the user's own, which may take them back with "!"."""


def load(root: Path) -> Ignore:
    """Return the rules for packing `root`: ALWAYS, then the lines of its `.hearthignore`, if it has one."""
    try:
        text = (root / FILE_NAME).read_text()
    except (FileNotFoundError, NotADirectoryError):
        text = ""
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(f"{root / FILE_NAME} cannot be read: {error}", hint="hearth check job.yaml") from error
    return parse("\n".join((*ALWAYS, text)))


def parse(text: str) -> Ignore:
    """Return a function that tells whether a relative path is left out; of the rules that match, the last decides."""
    rules: list[tuple[re.Pattern[str], bool, bool]] = []
    for number, line in enumerate(text.splitlines(), 1):
        pattern = line.rstrip() if not line.endswith("\\ ") else line
        if not pattern or pattern.startswith("#"):
            continue
        keep = pattern.startswith("!")
        pattern = pattern.removeprefix("!").removeprefix("\\")
        directories_only = pattern.endswith("/")
        try:
            rules.append((_compile(pattern.rstrip("/")), directories_only, keep))
        except re.error as error:
            raise SpecError(
                f"ignore rule {line!r} (line {number}) is malformed: {error}", hint="hearth check job.yaml"
            ) from error

    def ignored(path: str, is_directory: bool) -> bool:
        for pattern, directories_only, keep in reversed(rules):
            if (is_directory or not directories_only) and pattern.fullmatch(path):
                return not keep
        return False

    return ignored


def _compile(pattern: str) -> re.Pattern[str]:
    # A slash inside ties the pattern to the root; without one it matches at any depth.
    out = "" if "/" in pattern else "(?:.*/)?"
    pattern = pattern.lstrip("/")
    at = 0
    while at < len(pattern):
        if pattern.startswith("**/", at):
            out, at = out + "(?:.*/)?", at + 3
        elif pattern.startswith("/**", at) and at + 3 == len(pattern):
            out, at = out + "/.*", at + 3
        elif pattern[at] == "*":
            out, at = out + "[^/]*", at + 1
        elif pattern[at] == "?":
            out, at = out + "[^/]", at + 1
        elif pattern[at] == "[" and (end := pattern.find("]", at + 2)) > 0:
            body = pattern[at + 1 : end].replace("\\", "\\\\")
            out, at = out + "[" + ("^" + body[1:] if body[0] in "!^" else body) + "]", end + 1
        elif pattern[at] == "\\" and at + 1 < len(pattern):
            out, at = out + re.escape(pattern[at + 1]), at + 2
        else:
            out, at = out + re.escape(pattern[at]), at + 1
    return re.compile(out, re.DOTALL)
