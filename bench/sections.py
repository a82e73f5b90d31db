"""Parts of pages that a bench writes: what lies between a mark and its end, so that the rest is a person's."""

from __future__ import annotations

from pathlib import Path


def marks(name: str, command: str | None = None) -> tuple[str, str]:
    """Return the lines that begin and end a part; `command` writes it, by default that of the bench of its name."""
    return f"<!-- {name}: written by `{command or f'make bench-{name}'}` -->\n", f"<!-- end of {name} -->\n"


def part(page: Path, name: str, command: str | None = None) -> str:
    """Return what lies between a part's marks in a page; raises ValueError where it has none."""
    text, (begin, end) = page.read_text(encoding="utf-8"), marks(name, command)
    if begin not in text or end not in text:
        raise ValueError(f"{page} has no part {name}: put the lines {begin.strip()} and {end.strip()} where it goes")
    return text.split(begin, 1)[1].split(end, 1)[0]


def write_part(page: Path, name: str, said: str, command: str | None = None) -> None:
    """Let a part of a page be `said`; raises ValueError where the page has none."""
    before, text = part(page, name, command), page.read_text(encoding="utf-8")
    begin, end = marks(name, command)
    page.write_text(text.replace(begin + before + end, begin + said + end), encoding="utf-8")
