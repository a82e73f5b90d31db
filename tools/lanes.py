"""Write what follows from the lane table of hearth.protocol.words, or check that what is committed does.

Three files: contracts/packing.vy (the contracts' constants), the tables of SPEC section "Words" (between two markers),
and hearth/protocol/words.json, for programs that read words and are not written in Python.

A lane X of word W gives the contracts W_X_SHIFT (its first bit), W_X_MASK (its width in ones, and so its largest value)
and W_X_LANE (the mask where it stands). A lane of one bit gives W_X, that bit; so do the flags of a lane, and a guard
GUARD_X. What a lane may hold is named X_VALUE. W_BITS is where the word's lanes end.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any, Final

from hearth.protocol.words import WORDS, Lane, Word
from tools.vyper_files import COMPILER, ROOT

PACKING: Final = Path("contracts/packing.vy")
SPEC: Final = Path("docs/SPEC.md")
DOCUMENT: Final = Path("hearth/protocol/words.json")
BEGIN: Final = "<!-- lanes: written by `make lanes` from hearth/protocol/words.py -->\n"
END: Final = "<!-- end of lanes -->\n"
GUARD: Final = "_guard_"

HEAD: Final = f'''# pragma version {COMPILER}
"""
@title Bit layouts of every packed word
@author Hearth
@license Apache-2.0
@notice Written by `make lanes` from hearth/protocol/words.py; SPEC section "Words" has the same tables. A lane's shift
        and its mask belong together: tools/check_vyper.py holds every use of them against the table.
"""
'''


def _note(lane: Lane) -> str:
    """Return what a lane means, in words: its unit aside."""
    named = ", ".join(f"{name} {value}" for name, value in (*lane.values, *lane.flags))
    return ": ".join(part for part in (lane.meaning, named) if part)


# ---- Vyper ----


def _constant(name: str, value: str, note: str = "") -> str:
    return f"{name}: constant(uint256) = {value}" + (f"  # {note}" if note else "")


def _lane_constants(prefix: str, lane: Lane, shift: int) -> list[str]:
    """Return the constants of one lane; none for a gap that no call looks at."""
    name = f"{prefix}_{lane.name.upper()}"
    note = ", ".join(part for part in (lane.unit, lane.meaning) if part)
    if lane.name.startswith(GUARD):
        return [_constant(f"{prefix}_GUARD_{lane.name.removeprefix(GUARD).upper()}", f"2**{shift}")]
    if lane.is_zero:
        return []
    if lane.width == 1:
        return [_constant(name, f"2**{shift}", note)]
    lines = [
        _constant(f"{name}_SHIFT", str(shift), note),
        _constant(f"{name}_MASK", f"2**{lane.width} - 1"),
        _constant(f"{name}_LANE", f"(2**{lane.width} - 1) << {shift}"),
    ]
    lines += [_constant(f"{prefix}_{flag}", f"2**{shift + bit.bit_length() - 1}") for flag, bit in lane.flags]
    return lines + [_constant(f"{lane.name.upper()}_{value}", str(number)) for value, number in lane.values]


def _guard_constants(prefix: str, word: Word) -> list[str]:
    """Return all guards of a word, and the sizes below them, each as one mask; nothing where it has none."""
    guards = [shift for lane, shift in word.placed if lane.name.startswith(GUARD)]
    if not guards:
        return []
    bits = " + ".join(f"2**{shift}" for shift in guards)
    return [
        _constant(f"{prefix}_GUARDS", bits),
        _constant(f"{prefix}_SIZES", f"2**{guards[-1] + 1} - 1 - {prefix}_GUARDS", "the lanes below the guards"),
    ]


def render_packing() -> str:
    """Return contracts/packing.vy."""
    text = HEAD
    for name, word in WORDS.items():
        prefix = name.upper()
        lines = [line for lane, shift in word.placed for line in _lane_constants(prefix, lane, shift)]
        lines += _guard_constants(prefix, word)
        if word.bits < 256:
            lines.append(_constant(f"{prefix}_BITS", str(word.bits)))
        text += "\n".join(["", f"# ---- {name}: {word.what} ----", *lines, ""])
    return text


# ---- SPEC and JSON ----


def render_tables() -> str:
    """Return the tables of SPEC section "Words", a heading each."""
    text = ""
    for name, word in WORDS.items():
        text += f"\n### {name.capitalize()}: {word.what}\n\n| lane | bit | width | unit | meaning |\n"
        text += "| --- | --- | --- | --- | --- |\n"
        for lane, shift in word.placed:
            shown = "(zero)" if lane.is_zero else f"`{lane.name}`"
            text += f"| {shown} | {shift} | {lane.width} | {lane.unit} | {_note(lane)} |\n"
    return text + "\n"


def render_spec(text: str) -> str:
    """Return SPEC with its tables replaced. Raises ValueError where a marker is missing."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{SPEC}: the lines that the tables stand between are missing")
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
        SPEC: render_spec((root / SPEC).read_text(encoding="utf-8")),
        DOCUMENT: render_document(),
    }


def main(argv: list[str] | None = None) -> int:
    """Write the files, or with --check compare them; exit 1 on a difference."""
    parser = argparse.ArgumentParser(prog="python -m tools.lanes", description=__doc__.splitlines()[0])
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
            print(f"{path} differs from hearth/protocol/words.py; run: make lanes", file=sys.stderr)
        else:
            target.write_text(text, encoding="utf-8")
    lanes = sum(not lane.is_zero for word in WORDS.values() for lane in word.lanes)
    print(f"lanes: {lanes} in {len(WORDS)} words, {len(stale)} files {'stale' if args.check else 'written'}")
    return 1 if args.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
