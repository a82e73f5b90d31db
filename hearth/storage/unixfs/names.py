"""Names that strangers chose: what may become a file's name here, and how one that may not is spelled in a message."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from hearth.base.errors import UnsafePath
from hearth.base.found import FOUND
from hearth.base.text import UNSEEN
from hearth.storage.unixfs.model import MAX_NAME_BYTES, MAX_PATH_BYTES, MAX_PATH_DEPTH

_OBEYED: Final = FOUND | frozenset(
    ("_darcs", "_fossil_", "cvs", "head", "mise.toml", "_vimrc", "_gvimrc", "_exrc")
    + ("desktop.ini", "autorun.inf", "startup.m")
)
"""Names without a dot by which programs find files that they obey, because they lie in the folder where one works: our
own, version control (HEAD makes a repository of any folder), shells, editors, file managers, MATLAB."""
_DATA: Final = frozenset((".zarray", ".zattrs", ".zgroup", ".zmetadata", ".metadata"))
"""Names with a dot that are data: of Zarr's arrays, and of PyTorch's checkpoints."""
_SHORT: Final = re.compile(r"[^.~]{1,6}~[0-9]{1,6}(\.[^.]{0,3})?")
"""The form of Windows' second, short names, by which `.git` is also `GIT~1`."""
RENAMED_PREFIX: Final = "renamed-"


def check_name(raw: bytes, parent: str) -> str:
    """Return a directory entry's name as text, or raise UnsafePath.

    Refused: empty, "." and "..", "/", backslash, characters that hide or move text (controls, bidirectional,
    zero-width), drive letters, bytes that are not UTF-8, more than MAX_NAME_BYTES; and, with the parent's path,
    MAX_PATH_BYTES or MAX_PATH_DEPTH exceeded.
    """
    shown = f"{parent or '.'}/{raw[:80]!r}"
    try:
        name = raw.decode()
    except UnicodeDecodeError as error:
        raise _unsafe(shown, "is not UTF-8") from error
    if name in ("", ".", ".."):
        raise _unsafe(shown, "is no file name")
    if "/" in name or "\\" in name:
        raise _unsafe(shown, "holds a slash or a backslash")
    unseen = UNSEEN.search(name)
    if unseen is not None:
        raise _unsafe(shown, f"holds {_character(unseen[0])}, a character that hides or moves text")
    if re.match(r"[A-Za-z]:", name):
        raise _unsafe(shown, "starts with a drive letter")
    if len(raw) > MAX_NAME_BYTES:
        raise _unsafe(shown, f"has {len(raw)} bytes, more than {MAX_NAME_BYTES}")
    path = f"{parent}/{name}" if parent else name
    if len(path.encode()) > MAX_PATH_BYTES:
        raise _unsafe(shown, f"makes a path of more than {MAX_PATH_BYTES} bytes")
    if path.count("/") >= MAX_PATH_DEPTH:
        raise _unsafe(shown, f"lies deeper than {MAX_PATH_DEPTH} directories")
    return name


def disarmed(name: str) -> str:
    """Return the name under which an entry is written where programs of a person work: that of `name` itself, or, for
    one that a program might obey (of those that begin with a dot all but `_DATA`), the same with RENAMED_PREFIX.

    Compared as file systems do that fold case, decompose, and drop dots, spaces and streams (":...") at a name's end.
    """
    key = _caseless(name).partition(":")[0].rstrip(". ")
    hidden = name.startswith(".") and key not in _DATA
    return RENAMED_PREFIX + name if hidden or key in _OBEYED or _SHORT.fullmatch(key) else name


class Names:
    """Collect the names of one directory; refuse repeats, and names that some file systems take for one."""

    def __init__(self, parent: str) -> None:
        self._parent = parent
        self._seen: dict[str, bytes] = {}

    def add(self, raw: bytes) -> str:
        name = check_name(raw, self._parent)
        key = _caseless(name)
        if key in self._seen:
            other = self._seen[key]
            what = "stands twice" if other == raw else f"differs from {other!r} only in case or Unicode form"
            raise _unsafe(f"{self._parent or '.'}/{raw[:80]!r}", what)
        self._seen[key] = raw
        return name


def _caseless(name: str) -> str:
    """Return Unicode's canonical caseless form (D145): what a case-folding, normalising file system compares."""
    return unicodedata.normalize("NFD", unicodedata.normalize("NFD", name).casefold())


def _character(character: str) -> str:
    """Return a character's number and, where it has one, its name: U+202E (RIGHT-TO-LEFT OVERRIDE)."""
    called = unicodedata.name(character, "")
    return f"U+{ord(character):04X}" + (f" ({called})" if called else "")


def _unsafe(shown: str, why: str) -> UnsafePath:
    return UnsafePath(f"the name {shown} {why}", hint="rename the file", path=shown)
