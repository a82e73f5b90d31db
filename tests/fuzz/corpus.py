"""The inputs that are kept in git: one text file a parser, one input a line in base64."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Final

from tests.fuzz.target import Target

FOLDER: Final = Path(__file__).parent / "corpus"
KEPT_BYTES: Final = 16 << 10
"""Of one parser's inputs in git, in base64."""


def kept(target: Target) -> list[bytes]:
    """Return the inputs of a parser: its valid seeds, and what a campaign found worth keeping."""
    path = FOLDER / f"{target.name}.txt"
    lines = path.read_text(encoding="ascii").split() if path.exists() else []
    return list(dict.fromkeys([*target.seeds(), *map(base64.b64decode, lines)]))


def keep(target: Target, inputs: list[bytes]) -> int:
    """Write the shortest inputs, as many as fit in KEPT_BYTES, beside what is no seed; return how many."""
    seeds = set(target.seeds())
    lines, size = [], 0
    for data in sorted({one for one in inputs if one and one not in seeds}, key=lambda one: (len(one), one)):
        line = base64.b64encode(data).decode()
        size += len(line) + 1
        if size > KEPT_BYTES:
            break
        lines.append(line)
    path = FOLDER / f"{target.name}.txt"
    if lines:
        path.write_text("".join(f"{line}\n" for line in lines), encoding="ascii")
    else:
        path.unlink(missing_ok=True)
    return len(lines)


def unpack(target: Target, folder: Path) -> None:
    """Write a parser's inputs to a folder as libFuzzer reads them, a file each."""
    folder.mkdir(parents=True, exist_ok=True)
    for data in kept(target):
        (folder / hashlib.sha256(data).hexdigest()[:40]).write_bytes(data)
