"""Ignore rules for packing a directory: the .gitignore language, read from `.hearthignore` in its root.

Source: the pattern format of gitignore(5). One file per tree; nested ignore files are not read.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

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
        pattern = pattern.removeprefix("!")
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


_FOLDERS: Final = "(?:.*/)?"
_STAR: Final = "[^/]*"


def _compile(pattern: str) -> re.Pattern[str]:
    """Return the expression of a pattern, in which only the last star and the last folders go back over a path.

    Each before them stops where what follows it first fits, for the next one takes whatever lies between. Otherwise a
    rule of ten stars would take hours over one path.
    """
    # A slash inside ties the pattern to the root; without one it matches at any depth.
    out = "" if "/" in pattern else _FOLDERS
    pattern = pattern.lstrip("/")
    at, star, folders = 0, -1, -1
    while at < len(pattern):
        stars = len(pattern) - at - len(pattern[at:].lstrip("*"))
        if stars > 1 and pattern[at - 1 : at] in ("", "/") and pattern.startswith("/", at + stars):
            if folders >= 0:
                out = f"{out[:folders]}(?>(?:.*?/)??{out[folders + len(_FOLDERS) :]})"
            out, at, star, folders = out + _FOLDERS, at + stars + 1, -1, len(out)
        elif pattern.startswith("/**", at) and at + 3 == len(pattern):
            out, at = out + "/.*", at + 3
        elif stars:
            if star >= 0:
                out = f"{out[:star]}(?>[^/]*?{out[star + len(_STAR) :]})"
            out, at, star = out + _STAR, at + stars, len(out)
        elif pattern[at] == "?":
            out, at = out + "[^/]", at + 1
        elif pattern[at] == "[" and (end := pattern.find("]", at + 2 + pattern.startswith(("!", "^"), at + 1))) > 0:
            out, at = out + _class(pattern[at + 1 : end]), end + 1
        elif pattern[at] == "\\" and at + 1 < len(pattern):
            out, at = out + re.escape(pattern[at + 1]), at + 2
        else:
            out, at = out + re.escape(pattern[at]), at + 1
    return re.compile(out, re.DOTALL)


def _class(body: str) -> str:
    """Return the expression for what stands between brackets; no class holds the slash."""
    negated = body.startswith(("!", "^"))
    inside = re.sub(r"([\\\[&~|])", r"\\\1", body[negated:])
    return f"(?!/)[{'^' if negated else ''}{inside}]"
