"""Say which files of tests cost a run the most: `python -m tools.dearest build/tests.xml`.

What it reads is what `pytest --junitxml` writes. A test's seconds are those that passed, with its fixtures: where
processes share a core, they add up to more than the run took. Beside them is what the test used of a core, its child
processes counted once they have ended (tests/conftest.py): what it waited is the difference.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parents[1]


def file_of(classname: str) -> str:
    """Return the file that a junit classname stands for: its dotted path, perhaps followed by a class."""
    parts = classname.split(".")
    for end in range(len(parts), 0, -1):
        path = Path(*parts[:end]).with_suffix(".py")
        if (ROOT / path).is_file():
            return str(path)
    return classname


def main() -> None:
    parser = argparse.ArgumentParser(description="say which files of tests cost a run the most")
    parser.add_argument("report", type=Path, help="what pytest --junitxml wrote")
    parser.add_argument("-n", "--number", type=int, default=20, help="how many to show")
    parser.add_argument("--tests", action="store_true", help="show tests instead of files")
    parser.add_argument("--cpu", action="store_true", help="order by what was used of a core")
    asked = parser.parse_args()
    seconds: Counter[str] = Counter()
    used: Counter[str] = Counter()
    count: Counter[str] = Counter()
    for case in ElementTree.parse(asked.report).iter("testcase"):
        name = file_of(case.get("classname", ""))
        if asked.tests:
            name += "::" + case.get("name", "")
        seconds[name] += float(case.get("time", "0"))  # type: ignore[assignment]
        cpu = case.find("properties/property[@name='cpu']")
        used[name] += 0.0 if cpu is None else float(cpu.get("value", "0"))  # type: ignore[assignment]
        count[name] += 1
    print(f"{count.total()} tests, {seconds.total():.0f} seconds, {used.total():.0f} of a core")
    print(f"{'seconds':>8}  {'core':>8}  {'tests':>5}")
    by = used if asked.cpu else seconds
    for name, _ in by.most_common(asked.number):
        print(f"{seconds[name]:8.1f}  {used[name]:8.1f}  {count[name]:5}  {name}")


if __name__ == "__main__":
    main()
