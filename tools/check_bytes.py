"""Refuse any byte in a Vyper file but newline and printable ASCII.

CVE-2026-114116 and CVE-2026-114114: form feeds, U+2028, a byte order mark or multi-byte names shift the
compiler's idea of where a literal stands, and an address constant can silently be replaced by another.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

SUFFIXES = (".vy", ".vyi")


def check_bytes(label: str, data: bytes) -> list[str]:
    """Return one message for each line of `data` with a refused byte; empty when the file is clean."""
    problems = []
    for number, line in enumerate(data.split(b"\n"), start=1):
        bad = [(column, byte) for column, byte in enumerate(line, start=1) if not 0x20 <= byte <= 0x7E]
        if bad:
            column, byte = bad[0]
            problems.append(f"{label}:{number}:{column}: byte 0x{byte:02x} is neither newline nor printable ASCII")
    return problems


def main(argv: list[str] | None = None) -> int:
    """Check every Vyper file under the named folders; exit 1 on the first list of problems, 2 on a missing folder."""
    parser = argparse.ArgumentParser(prog="python -m tools.check_bytes", description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path)
    folders: list[Path] = parser.parse_args(argv).folders
    missing = [str(folder) for folder in folders if not folder.exists()]
    if missing:
        print(f"check_bytes: no such folder: {', '.join(missing)}", file=sys.stderr)
        return 2
    files = sorted(path for folder in folders for path in folder.rglob("*") if path.suffix in SUFFIXES)
    sizes = 0
    problems: list[str] = []
    for path in files:
        data = path.read_bytes()
        sizes += len(data)
        problems += check_bytes(path.as_posix(), data)
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"check_bytes: {len(files)} files, {sizes} bytes, {len(problems)} refused")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
