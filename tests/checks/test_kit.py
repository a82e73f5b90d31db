"""tests/kit/__init__.py names every module of the kit, each once."""

from __future__ import annotations

import re
from pathlib import Path

from tests import kit


def test_kit__its_list__names_every_module_once() -> None:
    listed = re.findall(r"^    (\w+) +\S", kit.__doc__ or "", re.MULTILINE)
    assert sorted(listed) == sorted(path.stem for path in Path(kit.__path__[0]).glob("[!_]*.py"))
