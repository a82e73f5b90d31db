"""docs/decisions: few records, each with its parts, a list that leads to them, and no reference to one that is gone."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "decisions"
RECORDS = sorted(FOLDER.glob("0*.md"))
LIST = (FOLDER / "README.md").read_text(encoding="utf-8")
PARTS = ("**Decided", "**Why.**", "**Tried and rejected.**", "**Consequences.**")
ROOMS = ("hearth", "keeper", "worker", "contracts", "tools", "scripts", "bench", "tests", "docs", "web/src")
SUFFIXES = (".py", ".vy", ".vyi", ".md", ".toml", ".yml", ".c", ".ts", ".tsx")
MERGED = 104
"""How many records there were before they were merged by topic."""


def test_records__all__are_few_and_have_their_parts_and_name_real_files() -> None:
    assert [int(path.name[:4]) for path in RECORDS] == list(range(1, len(RECORDS) + 1)) and len(RECORDS) <= 40
    for path in RECORDS:
        text = path.read_text(encoding="utf-8")
        assert re.match(rf"# {path.name[:4]} \S", text) and all(part in text for part in PARTS), path.name
        named = re.findall(r"`((?:tests|tools|hearth|docs|contracts|worker)/[\w/.-]+\.\w+)`", text)
        assert [name for name in named if not (ROOT / name).is_file()] == [], path.name


def test_list__records__has_each_by_its_title() -> None:
    listed = re.findall(r"^- \[([^]]+)\]\(([^)]+)\): \S", LIST, re.M)
    titles = [path.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ") for path in RECORDS]
    assert listed == list(zip(titles, (path.name for path in RECORDS), strict=True))


def test_list__number_of_before__leads_to_a_record_that_says_it() -> None:
    rows = re.findall(r"^\| (\d{4}) [^|]+ \| \[(\d{4})\]\((\d{4}-[\w-]+\.md)\) \|$", LIST, re.M)
    assert [int(before) for before, _, _ in rows] == list(range(1, MERGED + 1))
    for before, now, name in rows:
        history = (FOLDER / name).read_text(encoding="utf-8").splitlines()[2]
        assert name.startswith(now) and before in history, before


def test_references__all_files__name_records_that_are_there() -> None:
    names, numbers = {path.name for path in RECORDS}, {path.name[:4] for path in RECORDS}
    files = [path for room in ROOMS for path in (ROOT / room).rglob("*") if path.suffix in SUFFIXES and path.is_file()]
    files += [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "pyproject.toml")]
    lost = []
    for path in files:
        text = path.read_text(encoding="utf-8")
        numbered = re.findall(r"\bdecisions/(\d{4})(?![\d-])|\bdecisions? (\d{4})(?: and (\d{4}))?", text, re.I)
        named = re.findall(r"\bdecisions/(\d{4}-[\w-]+\.md)", text)
        lost += [(path.name, name) for name in named if name not in names]
        lost += [(path.name, one) for row in numbered for one in row if one and one not in numbers]
    assert len(files) > 400 and lost == []
