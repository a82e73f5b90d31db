"""Write the page's tables, or with --check say which of them differ from the library's."""

from __future__ import annotations

import argparse
import sys

from tools.web_tables import GENERATED, files


def main() -> int:
    """Exit 1 where a file is not as the library has it, or belongs to no table."""
    parser = argparse.ArgumentParser(prog="python -m tools.web_tables", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 where a file differs")
    options = parser.parse_args()
    wanted = files()
    if not options.check:
        for path, text in wanted.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    there = {path: path.read_text(encoding="utf-8") for path in GENERATED.rglob("*") if path.is_file()}
    wrong = sorted(path for path in {*wanted, *there} if wanted.get(path) != there.get(path))
    for path in wrong:
        print(f"{path}: differs from the library; make web-tables", file=sys.stderr)
    print(f"web_tables: {len(wanted)} files, {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
