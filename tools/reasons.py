"""Write what follows from the table of hearth.protocol.reasons, or check that what is committed does.

Two modules of the contracts: reasons.vy (a constant for each reason, and the one function that refuses) and
reason_texts.vy (what `Lens.reason` answers). The tables of protocol.md "Errors" say more than the table, namely when a
reason is given; tests/checks/test_protocol_page.py compares them.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

from hearth.protocol.reasons import GATE, REASONS
from tools.lanes import write_or_check
from tools.vyper_files import COMPILER

MODULE: Final = Path("contracts/reasons.vy")
TEXTS: Final = Path("contracts/reason_texts.vy")
ROW: Final = 32
"""Bytes of a row of the texts, which is what a reason has at most."""
SIGNATURE: Final = "Refused(uint256)"

ERROR: Final[dict[str, Any]] = {
    "type": "error",
    "name": SIGNATURE.partition("(")[0],
    "inputs": [{"name": "reason", "type": "uint256"}],
}
"""The ABI's entry of what `_refuse` reverts with. Vyper has no custom errors and writes none."""

HEAD: Final = f'''# pragma version {COMPILER}
"""
@title Reasons: the numbers that the contracts refuse with
@author Hearth
@license Apache-2.0
@notice Written by `make reasons` from hearth/protocol/reasons.py; SPEC section "Errors" says when each is given, and
        `Lens.reason` what it is in words.
"""

# What is added to a gate of NodeRegistry to make its reason.
GATE: constant(uint256) = {GATE}

'''
REFUSE: Final = f'''

@pure
@internal
def _refuse(reason: uint256):
    """
    @dev Revert with the error `{SIGNATURE}`, which people and programs read by the table.
    """
    raw_revert(abi_encode(reason, method_id=method_id("{SIGNATURE}")))
'''

TEXTS_HEAD: Final = f'''# pragma version {COMPILER}
"""
@title Reason texts: what the numbers of reasons.vy mean
@author Hearth
@license Apache-2.0
@notice Written by `make reasons` from hearth/protocol/reasons.py. One row of 32 bytes a reason, padded with blanks.
"""

ROW: constant(uint256) = {ROW}  # bytes
'''
TEXTS_TAIL: Final = """    text: String[ROW] = slice(ROWS, row * ROW, ROW)
    rest: uint256 = convert(convert(text, Bytes[ROW]), uint256)
    size: uint256 = ROW
    for i: uint256 in range(ROW):
        # lanes: the last byte
        if rest & 255 != 32:
            break
        # lanes: the byte before it
        rest >>= 8
        size -= 1
    return slice(text, 0, size)
"""


def render_module() -> str:
    """Return contracts/reasons.vy."""
    names = "\n".join(f"{reason.name}: constant(uint256) = {number}" for number, reason in REASONS.items())
    return HEAD + names + "\n" + REFUSE


def _runs() -> list[tuple[int, int, int]]:
    """Return (first number, last number, row of the first) of each run of numbers without a gap."""
    runs: list[tuple[int, int, int]] = []
    for row, number in enumerate(REASONS):
        if runs and number == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], number, runs[-1][2])
        else:
            runs.append((number, number, row))
    return runs


def render_texts() -> str:
    """Return contracts/reason_texts.vy."""
    rows = "".join(reason.text.ljust(ROW) for reason in REASONS.values())
    text = TEXTS_HEAD + f'ROWS: constant(\n    String[{len(rows)}]\n) = "{rows}"\n'
    text += '\n\n@pure\n@internal\ndef _text(reason: uint256) -> String[ROW]:\n    """\n'
    text += '    @return The text without the blanks that pad it; none for a number that is no reason\'s.\n    """\n'
    text += "    row: uint256 = 0\n"
    for place, (first, last, row) in enumerate(_runs()):
        text += f"    {'elif' if place else 'if'} reason >= {first} and reason <= {last}:\n"
        text += f"        row = reason - {first - row}\n"
    return text + '    else:\n        return ""\n' + TEXTS_TAIL


def render(root: Path) -> dict[Path, str]:
    """Return every file that follows from the table, by its path in the project."""
    return {MODULE: render_module(), TEXTS: render_texts()}


def main(argv: list[str] | None = None) -> int:
    """Write the files, or with --check compare them; exit 1 on a difference."""
    return write_or_check(argv, "reasons", "hearth/protocol/reasons.py", f"{len(REASONS)}", render)


if __name__ == "__main__":
    sys.exit(main())
