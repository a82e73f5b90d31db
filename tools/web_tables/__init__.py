"""Write the library's tables as TypeScript for the page: web/src/generated/<name>.ts.

Each module here but __main__ and those with a leading underscore is a file: its docstring is the file's comment, and
`tables()` returns the constants by name. One with `folder()` instead is a folder of files: it returns the constants by
the files' names. What a table says is read from the library; nothing is written down here a second time.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tools.vyper_files import ROOT

GENERATED = ROOT / "web" / "src" / "generated"
_SAFE = 2**53
_WIDTH = 120


def files() -> dict[Path, str]:
    """Return every file with its text as the library of now would have it."""
    found: dict[Path, str] = {}
    for name in sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_")):
        module = importlib.import_module(f"{__name__}.{name}")
        said = " ".join((module.__doc__ or "").split())
        head = f"// {said}\n// Written by `python -m tools.web_tables`: change tools/web_tables/{name}.py.\n"
        if hasattr(module, "folder"):
            found |= {GENERATED / name / f"{one}.ts": head + _text(of) for one, of in module.folder().items()}
        else:
            found[GENERATED / f"{name}.ts"] = head + _text(module.tables())
    return found


def _text(constants: Mapping[str, Any]) -> str:
    return "".join(f"\nexport const {constant} = {literal(value)} as const;\n" for constant, value in constants.items())


def literal(value: Any, indent: int = 0) -> str:
    """Return a value as a TypeScript literal: whole numbers from 2**53 are bigints, bytes 0x-hex.

    Raises TypeError for a float, and for anything else that has no exact form.
    """
    if value is None or isinstance(value, bool | str):
        return json.dumps(value)
    if isinstance(value, Big):
        return f"{value.value}n"
    if isinstance(value, int):
        return str(int(value)) if abs(value) < _SAFE else f"{int(value)}n"
    if isinstance(value, bytes):
        return json.dumps("0x" + value.hex())
    if isinstance(value, Mapping):
        return _block("{}", [f"{_key(key)}: {literal(item, indent + 2)}" for key, item in value.items()], indent)
    if isinstance(value, Sequence):
        return _block("[]", [literal(item, indent + 2) for item in value], indent)
    raise TypeError(f"{value!r} has no exact form in TypeScript")


class Big:
    """A whole number that is a bigint in TypeScript whatever its size: an amount of money."""

    def __init__(self, value: int) -> None:
        self.value = int(value)


def _key(key: Any) -> str:
    text = str(int(key)) if isinstance(key, int) else str(key)
    return text if text.isidentifier() or text.isdigit() else json.dumps(text)


def _block(brackets: str, items: list[str], indent: int) -> str:
    opening, closing = brackets
    pad = " " if brackets == "{}" and items else ""
    line = f"{opening}{pad}{', '.join(items)}{pad}{closing}"
    if indent + len(line) <= _WIDTH - 20 and "\n" not in line:
        return line
    inner = "".join(f"{' ' * (indent + 2)}{item},\n" for item in items)
    return f"{opening}\n{inner}{' ' * indent}{closing}"
