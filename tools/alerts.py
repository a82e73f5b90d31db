"""Write the tables of alerts in docs/PROVIDER.md and docs/KEEPER.md from docs/alerts.yml, or check them."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Final

from ruamel.yaml import YAML

from tools.lanes import write_or_check

RULES: Final = Path("docs/alerts.yml")
PAGES: Final = {"hearth-keeper": Path("docs/KEEPER.md"), "hearth-worker": Path("docs/PROVIDER.md")}
"""The page that has the table of a group of rules."""
TABLE: Final = re.compile(r"(?<=<!-- alerts -->\n).*?(?=<!-- /alerts -->)", re.DOTALL)


def render(root: Path) -> dict[Path, str]:
    """Return the pages, each with a row for every rule of its group."""
    pages = {}
    for group in YAML(typ="safe").load((root / RULES).read_text(encoding="utf-8"))["groups"]:
        rows = ["| Alert | What it costs to wait | Do |", "| --- | --- | --- |"]
        for rule in group["rules"]:
            rows.append(f"| `{rule['alert']}` | {rule['annotations']['cost']} | {rule['annotations']['runbook']} |")
        page = PAGES[group["name"]]
        pages[page] = TABLE.sub(lambda _, rows=rows: "\n".join(rows) + "\n", (root / page).read_text(encoding="utf-8"))
    return pages


def main(argv: list[str] | None = None) -> int:
    """Write the pages, or with --check compare them; exit 1 on a difference."""
    return write_or_check(argv, "alerts", str(RULES), f"{len(PAGES)} tables", render)


if __name__ == "__main__":
    sys.exit(main())
