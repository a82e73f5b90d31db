"""Measure the sentences of the pages that people read first, and refuse what must be read twice.

    python -m tools.prose            refuse a page above the bounds, by sentence and by word
    python -m tools.prose --longest  print the long sentences of every page as well
    python -m tools.prose --root FOLDER   the same of another checkout

A sentence ends at `.`, `?` or `!` before a space, or where its paragraph or list item ends. A word is what spaces
separate and has a letter or digit in it; code in backticks is one word. Headings (a bold line too), tables, code
blocks, pictures and comments have no sentences; the words of headings and tables are held against the dialect.
"""

from __future__ import annotations

import argparse
import re
import statistics
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
PAGES: Final = (
    "README.md",
    *(f"docs/{name}.md" for name in ("FAQ", "JOB", "PROVIDER", "KEEPER", "PYTHON", "ARCHITECTURE")),
    *(f"docs/{name}.md" for name in ("protocol", "page", "worker", "keeper-program", "commands", "threats")),
)
"""The pages whose mean, 90th percentile and words are held; of the others in docs/ each sentence alone is."""
MAX_MEAN: Final = 17
MAX_NINE_OF_TEN: Final = 28
MAX_WORDS: Final = 45

DIALECT: Final = {
    r"anew": "again, or from the start",
    r"who(?:so)?ever": "anyone who, or the one who",
    r"heirs?": "dependents",
    r"strangers?": "untrusted, or somebody you do not know",
    r"stands?": "is, or lies",
    r"whom": "who, or a sentence of its own",
    r"(?:came|comes?) to": "is",
    r"became of": "happened to",
    r"hangs? on": "depends on",
    r"in vain": "for nothing, or without effect",
    r"all the same": "still",
    r"for ever": "permanently",
    r"besides": "also",
    r"likewise": "also",
    r"unasked": "by itself",
    r"hinders?": "stop, or prevent",
}
"""Words that people of this field do not use so, as patterns, and what to say instead."""
ALLOWANCE: Final = 1
"""How often a page may use each of them."""

_SPLIT = "split what `python -m tools.prose --longest` shows"
_FENCE = re.compile(r"^ *```.*?^ *```[^\n]*$", re.M | re.S)
_COMMENT = re.compile(r"<!--.*?-->", re.S)
_CODE = re.compile(r"`+[^`]+`+")
_PICTURE = re.compile(r"!\[[^\]]*\]\([^)]*\)")
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_ITEM = re.compile(r"^ *(?:[-*]|\d+\.) +")
_APART = re.compile(r"[#|<]|\*\*.*\*\*$")
"""What is no sentence: a heading, a row of a table, HTML, a bold line."""
_END = re.compile(r"(?<=[.?!])[\"')*]*\s+(?=[^a-z])")


@dataclass(frozen=True)
class Page:
    """One page: its sentences, and all of its text that is no code."""

    name: str
    sentences: tuple[str, ...]
    text: str

    @property
    def lengths(self) -> list[int]:
        """Return the words of each sentence."""
        return [words(one) for one in self.sentences]

    @property
    def mean(self) -> float:
        """Return the mean length."""
        return statistics.mean(self.lengths or [0])

    @property
    def nine_of_ten(self) -> int:
        """Return the length that nine sentences of ten do not pass."""
        ordered = sorted(self.lengths or [0])
        return ordered[(9 * len(ordered) + 9) // 10 - 1]


def words(sentence: str) -> int:
    """Return how many words a sentence has."""
    return len(re.findall(r"\S*\w\S*", sentence))


def page(name: str, text: str) -> Page:
    """Take a page apart."""
    lines = list(_prose(_PICTURE.sub("", _COMMENT.sub("", _FENCE.sub("", text)))))
    plain = "\n".join(lines)
    return Page(name, tuple(one for part in _paragraphs(lines) for one in _sentences(part)), plain)


def read(root: Path, name: str) -> Page:
    """Read one page of a checkout."""
    return page(name, (root / name).read_text(encoding="utf-8"))


def _prose(text: str) -> Iterator[str]:
    """Yield the lines of a text without indented code, each piece of code in it as one word, each link as its words."""
    blank, code = True, False
    for line in _CODE.sub("`code`", text).splitlines():
        # An indented line after an empty one is code, and so is what follows it; below a list item it is no code.
        code = line.startswith("    ") and (code or blank) and not _ITEM.match(line)
        blank = not line.strip()
        yield "" if code else _LINK.sub(r"\1", line)


def _paragraphs(lines: list[str]) -> Iterator[str]:
    """Yield each paragraph and each list item as one line."""
    held: list[str] = []
    for line in [*lines, ""]:
        apart = not line.strip() or _APART.match(line)
        if held and (apart or _ITEM.match(line)):
            yield " ".join(held)
            held = []
        if not apart:
            held.append(_ITEM.sub("", line).strip())


def _sentences(paragraph: str) -> list[str]:
    return [one for one in _END.split(paragraph) if words(one)]


def faults(page: Page) -> Iterator[str]:
    """Yield what must change on a page, a line each."""
    for one in page.sentences:
        if words(one) > MAX_WORDS:
            yield f"{page.name}: a sentence of {words(one)} words, at most {MAX_WORDS}: split it: {one}"
    if page.name not in PAGES:
        return
    if page.mean > MAX_MEAN:
        yield f"{page.name}: {page.mean:.1f} words a sentence, at most {MAX_MEAN}: {_SPLIT}"
    if page.nine_of_ten > MAX_NINE_OF_TEN:
        yield f"{page.name}: 9 of 10 within {page.nine_of_ten} words, at most {MAX_NINE_OF_TEN}: {_SPLIT}"
    for word, better in DIALECT.items():
        used = list(re.finditer(rf"\b(?:{word})\b", page.text, re.I))
        if len(used) > ALLOWANCE:
            where = page.text[max(0, used[-1].start() - 40) : used[-1].end() + 40].replace("\n", " ")
            yield f"{page.name}: {used[-1][0]!r} {len(used)} times, at most {ALLOWANCE}: say {better}: ...{where}..."


def main(argv: list[str] | None = None) -> int:
    """Exit 1 where a page is refused."""
    parser = argparse.ArgumentParser(prog="python -m tools.prose", description=__doc__.splitlines()[0])
    parser.add_argument("--longest", action="store_true", help="print the long sentences of every page as well")
    parser.add_argument("--root", type=Path, default=ROOT, help="the checkout to look at")
    options = parser.parse_args(argv)
    others = sorted(path.relative_to(options.root).as_posix() for path in (options.root / "docs").glob("*.md"))
    pages = [read(options.root, name) for name in [*PAGES, *(name for name in others if name not in PAGES)]]
    for one in pages:
        print(
            f"prose: {one.name}: {len(one.sentences)} sentences, mean {one.mean:.1f} words, "
            f"9 of 10 within {one.nine_of_ten}, longest {max(one.lengths, default=0)}"
        )
        if options.longest:
            long = [sentence for sentence in one.sentences if words(sentence) > MAX_NINE_OF_TEN]
            print("".join(f"  {words(sentence)}: {sentence}\n" for sentence in long), end="")
    refused = [fault for one in pages for fault in faults(one)]
    print("".join(f"{fault}\n" for fault in refused), end="", file=sys.stderr)
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
