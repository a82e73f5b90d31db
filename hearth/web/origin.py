"""The name of a home's page under `localhost`: it gives the page an origin that nothing else on the machine ever had.

A browser takes `<name>.localhost` for this machine without asking anybody, keeps what it stores for that name apart,
and runs its scripts for nobody else. The name is drawn once, and told to nobody but whoever is given the address: who
does not know it can leave nothing there for the page to meet. Source: page.md "How the page is opened".
"""

from __future__ import annotations

import os
import re
import secrets
from pathlib import Path
from typing import Final

from hearth.base.errors import BadDestination, ConfigError
from hearth.base.files import check_private, make_private, new_file

FILE: Final = "web-name"
"""In the home folder, of mode 600."""
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz234567"
_LENGTH: Final = 20
"""Letters and digits of a name, of 5 bits each."""
_NAME: Final = re.compile(f"[{_LETTERS}]{{{_LENGTH}}}")


def name_of(home: Path) -> str:
    """Return the name of a home's page; draw it where there is none yet.

    Raises ConfigError BAD_PAGE_NAME, OPEN_FILE, NO_FILE, OPEN_FOLDER.
    """
    path = home / FILE
    try:
        make_private(home)
        if not path.exists():
            _draw(path)
        check_private(path, "the name of the page")
        name = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise _bad(path, "cannot be read or written") from error
    if not _NAME.fullmatch(name):
        raise _bad(path, "holds no name that hearth web drew")
    return name


def _draw(path: Path) -> None:
    name = "".join(secrets.choice(_LETTERS) for _ in range(_LENGTH))
    try:
        with new_file(path) as out:
            os.fchmod(out.fileno(), 0o600)
            out.write(f"{name}\n".encode())
    except BadDestination:
        # Another start was first, and its name is the one.
        if not path.exists():
            raise


def _bad(path: Path, why: str) -> ConfigError:
    return ConfigError(f"{path} {why}", hint="delete it: hearth web draws another name", code="BAD_PAGE_NAME")
