"""Write vectors again: all of them, or those that are named."""

from __future__ import annotations

import sys

from tests.web.vectors import DATA, names, written

for name in sys.argv[1:] or names():
    (DATA / f"{name}.json").write_text(written(name), encoding="utf-8")
    print(DATA / f"{name}.json")
