"""Add up what the units of wordcount-array counted: `python reduce.py FOLDER [--top N]`.

FOLDER is where `hearth job get` put the results; every counts.tsv below it is one unit's part. Prints the N most
frequent words and the total. Needs nothing but Python.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path


def reduce(folder: Path) -> tuple[Counter[str], int]:
    """Return the summed counts and how many parts there were."""
    total: Counter[str] = Counter()
    parts = sorted(folder.rglob("counts.tsv"))
    for part in parts:
        for line in part.read_text(encoding="ascii").splitlines():
            word, count = line.split("\t")
            total[word] += int(count)
    return total, len(parts)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Add up the parts of wordcount-array.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--top", type=int, default=10)
    chosen = parser.parse_args()
    total, parts = reduce(chosen.folder)
    if not parts:
        parser.error(f"no counts.tsv below {chosen.folder}")
    for word, count in sorted(total.items(), key=lambda item: (-item[1], item[0]))[: chosen.top]:
        print(f"{count:8} {word}")
    print(f"{total.total():8} words, {len(total)} different, from {parts} parts")


if __name__ == "__main__":
    main()
