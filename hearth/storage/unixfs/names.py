"""Names that strangers chose: what may become a file's name here."""

from __future__ import annotations

import re
import unicodedata

from hearth.base.errors import (
    UnsafePath,
)
from hearth.storage.unixfs.model import MAX_NAME_BYTES, MAX_PATH_BYTES, MAX_PATH_DEPTH


def check_name(raw: bytes, parent: str) -> str:
    """Return a directory entry's name as text, or raise UnsafePath.

    Refused: empty, "." and "..", "/", backslash, NUL and other control characters, drive letters, bytes that are not
    UTF-8, more than MAX_NAME_BYTES; and, with the parent's path, MAX_PATH_BYTES or MAX_PATH_DEPTH exceeded.
    """
    shown = f"{parent or '.'}/{raw[:80]!r}"
    try:
        name = raw.decode()
    except UnicodeDecodeError as error:
        raise _unsafe(shown, "is not UTF-8") from error
    if name in ("", ".", ".."):
        raise _unsafe(shown, "is no file name")
    if re.search(r"[/\\\x00-\x1f\x7f]", name):
        raise _unsafe(shown, "holds a slash, a backslash or a control character")
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


class Names:
    """Collect the names of one directory; refuse repeats, and names that some file systems take for one."""

    def __init__(self, parent: str) -> None:
        self._parent = parent
        self._seen: dict[str, bytes] = {}

    def add(self, raw: bytes) -> str:
        name = check_name(raw, self._parent)
        # Unicode's canonical caseless match (D145): what a case-folding, normalising file system compares.
        key = unicodedata.normalize("NFD", unicodedata.normalize("NFD", name).casefold())
        if key in self._seen:
            other = self._seen[key]
            what = "stands twice" if other == raw else f"differs from {other!r} only in case or Unicode form"
            raise _unsafe(f"{self._parent or '.'}/{raw[:80]!r}", what)
        self._seen[key] = raw
        return name


def _unsafe(shown: str, why: str) -> UnsafePath:
    return UnsafePath(f"the name {shown} {why}", hint="rename the file", path=shown)
