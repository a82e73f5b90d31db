"""Every code by which the page refuses something is one of commands.md, or of page.md."""

from __future__ import annotations

import re
from pathlib import Path

from tests.checks.test_protocol_page import PAGES, section

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


def test_codes__thrown_in_the_page__are_in_its_table_or_the_commands() -> None:
    commands = set(re.findall("`([A-Z_]+)`", section("Commands", page="commands.md")))
    own = in_first_cells(PAGES["page.md"].split("\n## ")[0])
    source = "\n".join(path.read_text(encoding="utf-8") for path in SOURCES)
    # A code is given to an error at once, or to a function that makes one: then its name has two parts at least.
    thrown = set(re.findall(r'HearthError\(\s*"([A-Z_]+)"', source)) | set(re.findall('"([A-Z]+(?:_[A-Z]+)+)"', source))
    assert {"BAD_HEX", "JOURNAL_DOWN", "YAML_SUBSET", "BAD_PRICE"} <= thrown
    assert thrown - NOT_CODES - commands - own == set()
    assert {code for code in own if f'"{code}"' not in source} == set()
    assert own & commands == set()
