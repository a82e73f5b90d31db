"""One word a thing: the terms of docs/GLOSSARY.md are used, and words that were given up stay away."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.checks.test_protocol_page import tables

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "GLOSSARY.md"
ROWS = tables(PAGE.read_text(encoding="utf-8"))[0]
GLOSSARY = dict(ROWS)
PAGES = [ROOT / "README.md", *(path for path in sorted(PAGE.parent.glob("*.md")) if path != PAGE)]
ELSEWHERE = "\n".join(path.read_text(encoding="utf-8") for path in PAGES)

GIVEN_UP = {
    r"planted bug": "mutant",
    r"rehearsals?": "dry run",
    r"pulses?": "health",
    r"lots": "tie-break",
    r"hot words?": "node state",
    r"second slot": "auxiliary slot",
    r"twins?": "reference implementation",
}
"""Words that mean something else, or nothing, to people of this field; and what is said instead."""
ROOMS = ("hearth", "keeper", "worker", "contracts", "tools", "scripts", "bench", "tests", "docs")
SUFFIXES = (".py", ".vy", ".vyi", ".md", ".toml", ".yml", ".yaml", ".json")
HISTORY = (ROOT / "docs" / "decisions", ROOT / "hearth" / "market" / "artifacts", Path(__file__))


def named(term: str) -> re.Pattern[str]:
    """Return what finds a term, in any case, with a line's end or an underscore for a space, and inside identifiers."""
    return re.compile("(?<![a-z])" + term.replace(" ", r"[ _\n]+") + "(?![a-z])", re.I)


def given_up_in(text: str) -> list[str]:
    """Return what is said in a text that should be said otherwise."""
    return [f"{found[0]!r}: say {better}" for word, better in GIVEN_UP.items() if (found := named(word).search(text))]


def test_glossary__terms__are_few_and_sorted_and_have_one_sentence() -> None:
    assert list(GLOSSARY) == sorted(GLOSSARY, key=str.lower) and len(GLOSSARY) == len(ROWS) <= 60
    assert all(meaning and not re.search(r"\. |\.$", meaning) for meaning in GLOSSARY.values())


@pytest.mark.parametrize("term", [word for term in GLOSSARY for word in re.split(r" ?[()]", term) if word])
def test_glossary__term__is_used_in_another_page(term: str) -> None:
    assert named(rf"{term}s?").search(ELSEWHERE), f"the pages say {term} in the glossary only"


def test_words__given_up__appear_nowhere() -> None:
    files = [path for room in ROOMS for path in (ROOT / room).rglob("*") if path.suffix in SUFFIXES and path.is_file()]
    files += [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "pyproject.toml")]
    read = [path for path in files if not any(path == one or one in path.parents for one in HISTORY)]
    assert len(read) > 400
    found = {str(path.relative_to(ROOT)): given_up_in(path.read_text(encoding="utf-8")) for path in read}
    assert {path: words for path, words in found.items() if words} == {}


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("def are_the_twins() -> None:", 1),
        ("a planted\nbug, and a hot_word", 2),
        ("Twin", 1),
        ("slots, a pilot, between, impulse, a planted file", 0),
    ],
)
def test_given_up_in__text__counts_whole_words(text: str, count: int) -> None:
    assert len(given_up_in(text)) == count
