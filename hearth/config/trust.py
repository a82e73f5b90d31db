"""A file that a command finds because of where it lies is used once a person has said so.

A clone, an archive or a job's results can bring a hearth.toml or a network file, and whoever wrote it would choose whom
the next command pays, which key signs, and who hears of it. So a found file counts once somebody who was asked, or
`hearth trust`, has vouched for this path and this content; what our own commands write is vouched for as it is written.
A file that is named on the command line, in the environment or by a file that counts is no find.
"""

from __future__ import annotations

import hashlib
import os
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hearth.base.errors import ConfigError
from hearth.base.files import make_private, replace_text

KNOWN: Final = "known"
"""The folder in the home folder with one file for each path and content that somebody vouched for."""


@dataclass(frozen=True, slots=True)
class Trust:
    """What the user of a home folder said of found files.

    `ask` puts a question that is answered by yes or no, None where nobody is there; a dry run does not `remember`.
    """

    home: Path
    ask: Callable[[str], bool] | None = None
    remember: bool = True

    def require(self, path: Path, raw: bytes, said: str, *, named: str = "") -> None:
        """Ask whether the file at `path` with the content `raw` may be used, where nobody has vouched for it yet.

        `said` is what it says and who named it, `named` an option that would name it. Raises ConfigError UNKNOWN_FILE
        where the answer is no, or nobody can be asked.
        """
        if self.knows(path, raw):
            return
        place = spot(path)
        if self.ask is not None and self.ask(f"{said}. It was not used from here before, as it stands. Use it?"):
            if self.remember:
                self.record(path, raw)
            return
        raise ConfigError(
            f"{said}. It was not used from here before, as it stands, and whoever wrote it could choose whom you pay",
            hint=f"read it, then: hearth trust {shlex.quote(str(place))}" + (f"; or {named}" if named else ""),
            code="UNKNOWN_FILE",
        )

    def knows(self, path: Path, raw: bytes) -> bool:
        """Say whether somebody vouched for this path with this content."""
        return self._entry(path, raw).is_file()

    def record(self, path: Path, raw: bytes) -> None:
        """Remember that somebody vouches for this path with this content. Raises OSError, ConfigError OPEN_FOLDER."""
        entry = self._entry(path, raw)
        self.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        make_private(entry.parent)
        replace_text(entry, f"{os.fsencode(spot(path))!r}\n")

    def _entry(self, path: Path, raw: bytes) -> Path:
        place = os.fsencode(spot(path))
        name = hashlib.sha256(len(place).to_bytes(8, "big") + place + raw).hexdigest()
        return self.home / KNOWN / name


def spot(path: Path) -> Path:
    """Return where a file lies: links on the way to its folder are followed, and itself is not, where it is one.

    Paths in a settings file start from the folder of the link, so that a link of a known file is another find.
    """
    return Path(os.path.realpath(path.parent)) / path.name
