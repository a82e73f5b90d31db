"""Rules that leave files out of a job, and what Python takes for white space and for the end of a line
(hearth/storage/ignore.py, hearth/jobfile/workdir.py).
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from hearth.jobfile import workdir
from hearth.storage import ignore


def tables() -> Mapping[str, Any]:
    """Return the standing rules, the files that hold a folder's own, and the characters between and after rules."""
    every = [chr(number) for number in range(sys.maxunicode + 1)]
    return {
        "USUAL": ignore.USUAL,
        "ALWAYS": ignore.ALWAYS,
        "RULE_FILES": workdir.RULE_FILES,
        "SPACES": "".join(character for character in every if character.isspace()),
        "LINE_ENDS": "".join(character for character in every if len(f"a{character}b".splitlines()) == 2),
    }
