"""Text that every file, terminal and journal can hold, and a stranger's words as a person may read them."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

UNSEEN: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u2028\u2029\ufff9-\ufffb"
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Control characters (C0, DEL, C1), line and paragraph separators, annotations, and Unicode's
Default_Ignorable_Code_Point: what a screen does not show, or shows in another order. Ranges and no property of the
running Python's tables, so that every machine refuses the same names, and writes out the same."""
_MOVES: Final = re.compile(UNSEEN.pattern.replace("[\x00-\x1f", "[\x00-\x08\x0b-\x1f", 1))
"""UNSEEN without tabs and line ends."""


def plain(text: str) -> str:
    r"""Return text with each half of a surrogate pair written out, as \ud800: it has no UTF-8, and stops any writer."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def folded(name: str) -> str:
    """Return a name without its case and its way of composing accents: file systems may take equal ones for one."""
    return unicodedata.normalize("NFC", name).casefold()


def printable(text: str) -> str:
    """Return text with what a screen does not show, or shows in another order, written out, as `\\x1b`.

    Tabs and line ends stay: it is for text of several lines of our own, such as an error with its list.
    """
    return plain(_MOVES.sub(_number, text))


def one_line(text: str) -> str:
    """Return the same as one line: tabs and line ends are written out too. What strangers write is shown so."""
    return plain(UNSEEN.sub(_number, text))


def quoted(text: str, most: int = 500) -> str:
    """Return a stranger's words as one line in quotes, at most `most` characters: none of it passes for ours."""
    inner = brief(one_line(text), most).replace('"', '\\"')
    return f'"{inner}"'


def brief(text: str, most: int = 80) -> str:
    """Return text of at most `most` characters, with three dots where its end is left out."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


def _number(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()
