"""docs/protocol.md names every code by which the page refuses something: of Commands, or of the page's own table."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = [path for path in sorted((ROOT / "web" / "src").rglob("*.ts*")) if "generated" not in path.parts]
# Names in capitals that are another library's: what `yaml` calls its tokens and faults.
NOT_CODES = {"BLOCK_FOLDED", "BLOCK_LITERAL", "QUOTE_DOUBLE", "TAG_RESOLVE_FAILED"}


def in_first_cells(text: str) -> set[str]:
    """Return the codes of a text's tables that stand in a first cell, each in one."""
    cells = [line.split("|")[1] for line in text.splitlines() if line.startswith("|")]
    found = re.findall("`([A-Z_]+)`", " ".join(cells))
    assert sorted(found) == sorted(set(found))
    return set(found)


def test_codes__thrown_in_the_page__stand_in_the_spec() -> None:
    spec = (ROOT / "docs" / "protocol.md").read_text(encoding="utf-8")
    commands = set(re.findall("`([A-Z_]+)`", spec.split("\n### Commands\n")[1].split("\n## ")[0]))
    own = in_first_cells(spec.split("\n## Page\n")[1].split("\n### ")[0])
    source = "\n".join(path.read_text(encoding="utf-8") for path in SOURCES)
    # A code is given to an error at once, or to a function that makes one: then its name has two parts at least.
    thrown = set(re.findall(r'HearthError\(\s*"([A-Z_]+)"', source)) | set(re.findall('"([A-Z]+(?:_[A-Z]+)+)"', source))
    assert {"BAD_HEX", "JOURNAL_DOWN", "YAML_SUBSET", "BAD_PRICE"} <= thrown
    assert thrown - NOT_CODES - commands - own == set()
    assert {code for code in own if f'"{code}"' not in source} == set()
    assert own & commands == set()
