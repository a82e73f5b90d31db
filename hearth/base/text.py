"""Text that every file, terminal and journal can hold."""

from __future__ import annotations


def plain(text: str) -> str:
    r"""Return text with each half of a surrogate pair written out, as \ud800: it has no UTF-8, and stops any writer."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def one_line(text: str) -> str:
    """Return text as one line that any screen shows as it is: what is not printable is written out, as `\\x1b`."""
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


def brief(text: str, most: int = 80) -> str:
    """Return text of at most `most` characters, with three dots where its end is left out."""
    return text if len(text) <= most else f"{text[: most - 3]}..."
