"""Write what follows from the lane table of hearth.protocol.words, or check that what is committed does.

Three files: contracts/packing.vy (the contracts' constants), the tables of protocol.md "Words" (between two markers),
and hearth/protocol/words.json, for programs that read words and are not written in Python.

A lane X of word W gives the contracts W_X_SHIFT (its first bit), W_X_MASK (its width in ones, and so its largest value)
and W_X_LANE (the mask where it stands). A lane of one bit gives W_X, that bit; so do the flags of a lane, and a guard
GUARD_X. What a lane may hold is named X_VALUE. W_BITS is where the word's lanes end.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Final

from hearth.protocol.words import WORDS, Lane
from tools.vyper_files import COMPILER, ROOT

PACKING: Final = Path("contracts/packing.vy")
PROTOCOL: Final = Path("docs/protocol.md")
DOCUMENT: Final = Path("hearth/protocol/words.json")
BEGIN: Final = "<!-- lanes: written by `make lanes` from hearth/protocol/words.py -->\n"
END: Final = "<!-- end of lanes -->\n"
OF_TERMS: Final = ("submitter", "money", "limits", "judge")
"""The words whose lanes are fields of the terms: the table of protocol.md "Terms" has them, with their ranges."""
GUARD: Final = "_guard_"
WORD_BITS: Final = 256
LINE: Final = 120

HEAD: Final = f'''# pragma version {COMPILER}
"""
@title Bit layouts of every packed word
@author Hearth
@license Apache-2.0
@notice Written by `make lanes` from hearth/protocol/words.py; SPEC section "Words" has the same tables. A lane's shift
        and its mask belong together: tools/check_vyper.py holds every use of them against the table.
"""
'''


class Kind(Enum):
    """What a constant of packing.vy is used for."""

    SHIFT = "the right side of << or >>"
    MASK = "& with what was shifted down by the same lane's shift, and the lane's largest value"
    PLACE = "& and | with a whole word"
    VALUE = "what a lane holds"
    END = "the right side of >>, to see bits above every lane"


@dataclass(frozen=True)
class Constant:
    """One constant of packing.vy, and the word and lane it belongs to ("" for several lanes).

    Masks are written out: the compiler takes three times as long over the same file in powers of two.
    """

    name: str
    value: str
    kind: Kind
    word: str
    lane: str = ""
    note: str = ""

    def __str__(self) -> str:
        plain = f"{self.name}: constant(uint256) = {self.value}"
        noted = f"{plain}  # {self.note}" if self.note else plain
        # The formatter breaks a longer line in two.
        return noted if len(noted) <= LINE else plain


# ---- Vyper ----


def _of_lane(word: str, lane: Lane, shift: int) -> Iterator[Constant]:
    """Yield the constants of one lane; none for a gap that no call looks at."""
    prefix, name = word.upper(), f"{word}_{lane.name}".upper()
    note = ", ".join(part for part in (lane.unit, lane.meaning) if part)
    if lane.name.startswith(GUARD):
        guard = f"{prefix}_GUARD_{lane.name.removeprefix(GUARD).upper()}"
        yield Constant(guard, f"2**{shift}", Kind.PLACE, word, lane.name)
    elif lane.is_zero:
        return
    elif lane.width == 1:
        yield Constant(name, f"2**{shift}", Kind.PLACE, word, lane.name, note)
    else:
        yield Constant(f"{name}_SHIFT", str(shift), Kind.SHIFT, word, lane.name, note)
        mask = (1 << lane.width) - 1
        yield Constant(f"{name}_MASK", str(mask), Kind.MASK, word, lane.name, f"2**{lane.width} - 1")
        yield Constant(f"{name}_LANE", f"{mask} << {shift}", Kind.PLACE, word, lane.name)
        for flag, bit in lane.flags:
            yield Constant(f"{prefix}_{flag}", f"2**{shift + bit.bit_length() - 1}", Kind.PLACE, word, lane.name)
        for value, number in lane.values:
            yield Constant(f"{lane.name.upper()}_{value}", str(number), Kind.VALUE, word, lane.name)


def constants_of(name: str) -> Iterator[Constant]:
    """Yield the constants of one word, in the order in which packing.vy has them."""
    word, prefix = WORDS[name], name.upper()
    for lane, shift in word.placed:
        yield from _of_lane(name, lane, shift)
    guards = [shift for lane, shift in word.placed if lane.name.startswith(GUARD)]
    if guards:
        together = sum(1 << shift for shift in guards)
        yield Constant(f"{prefix}_GUARDS", str(together), Kind.PLACE, name)
        sizes = (1 << guards[-1] + 1) - 1 - together
        yield Constant(f"{prefix}_SIZES", str(sizes), Kind.PLACE, name, note="the lanes below the guards")
    if word.bits < WORD_BITS:
        yield Constant(f"{prefix}_BITS", str(word.bits), Kind.END, name)


def render_packing() -> str:
    """Return contracts/packing.vy."""
    text = HEAD
    for name, word in WORDS.items():
        text += "\n".join(["", f"# ---- {name}: {word.what} ----", *map(str, constants_of(name)), ""])
    return text


# ---- protocol.md and JSON ----


def _note(lane: Lane) -> str:
    """Return what a lane means, in words: its unit aside."""
    named = ", ".join(f"{name} {value}" for name, value in (*lane.values, *lane.flags))
    return ": ".join(part for part in (lane.meaning, named) if part)


def render_tables() -> str:
    """Return the tables of protocol.md "Words", a heading each, but for those that "Terms" has."""
    text = ""
    for name, word in WORDS.items():
        if name in OF_TERMS:
            continue
        text += f"\n### {name.capitalize()}: {word.what}\n| lane | bit | width | unit | meaning |\n"
        text += "| --- | --- | --- | --- | --- |\n"
        for lane, shift in word.placed:
            shown = "(zero)" if lane.is_zero else f"`{lane.name}`"
            text += f"| {shown} | {shift} | {lane.width} | {lane.unit} | {_note(lane)} |\n"
    return text + "\n"


def render_protocol(text: str) -> str:
    """Return protocol.md with its tables replaced. Raises ValueError where a marker is missing."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{PROTOCOL}: the lines that the tables stand between are missing")
    return before + begin + render_tables() + end + after


def _lane_document(lane: Lane, shift: int) -> dict[str, Any]:
    document: dict[str, Any] = {"name": lane.name, "shift": shift, "width": lane.width, "unit": lane.unit}
    document["meaning"] = lane.meaning
    if lane.values:
        document["values"] = dict(lane.values)
    if lane.flags:
        document["flags"] = dict(lane.flags)
    return document


def render_document() -> str:
    """Return words.json: word -> {what, bits, lanes}, one lane a line. Every bit outside the lanes is zero."""
    words = []
    for name, word in WORDS.items():
        shown = [(lane, shift) for lane, shift in word.placed if not lane.is_zero]
        lanes = ",\n".join("      " + json.dumps(_lane_document(lane, shift)) for lane, shift in shown)
        head = f'    "what": {json.dumps(word.what)},\n    "bits": {word.bits},\n'
        words.append(f'  {json.dumps(name)}: {{\n{head}    "lanes": [\n{lanes}\n    ]\n  }}')
    return "{\n" + ",\n".join(words) + "\n}\n"


def render(root: Path) -> dict[Path, str]:
    """Return every file that follows from the table, by its path in the project."""
    return {
        PACKING: render_packing(),
        PROTOCOL: render_protocol((root / PROTOCOL).read_text(encoding="utf-8")),
        DOCUMENT: render_document(),
    }


def write_or_check(
    argv: list[str] | None, tool: str, table: str, counted: str, render: Callable[[Path], dict[Path, str]]
) -> int:
    """Write what `render` makes of `table`, or with --check compare it; exit 1 on a difference.

    `counted` is what the table has, for the last line; `tool` is the module's name here and make's command.
    """
    about = f"Write what follows from {table}, or check it."
    parser = argparse.ArgumentParser(prog=f"python -m tools.{tool}", description=about)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 where a file is stale")
    parser.add_argument("--root", type=Path, default=ROOT, help="the project's folder")
    args = parser.parse_args(argv)
    stale = []
    for path, text in render(args.root).items():
        target = args.root / path
        if target.is_file() and target.read_text(encoding="utf-8") == text:
            continue
        stale.append(path)
        if args.check:
            print(f"{path} differs from {table}; run: make {tool}", file=sys.stderr)
        else:
            target.write_text(text, encoding="utf-8")
    print(f"{tool}: {counted}, {len(stale)} files {'stale' if args.check else 'written'}")
    return 1 if args.check and stale else 0


def main(argv: list[str] | None = None) -> int:
    """Write the files, or with --check compare them; exit 1 on a difference."""
    lanes = sum(not lane.is_zero for word in WORDS.values() for lane in word.lanes)
    return write_or_check(argv, "lanes", "hearth/protocol/words.py", f"{lanes} in {len(WORDS)} words", render)


if __name__ == "__main__":
    sys.exit(main())
