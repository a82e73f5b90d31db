"""What jobs are called, and when blocks were: kept here by digest, so that a list of jobs fetches neither.

The chain has no names: a job's name stands in its spec, whose digest is in its terms. One is kept as the spec is posted
from here, or read. Whatever is kept can be deleted, and a disk that takes nothing keeps nothing.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hearth.base.errors import HearthError
from hearth.base.files import make_private, replace_text
from hearth.jobfile.rules import NAME

if TYPE_CHECKING:
    from hearth.chain.port import ChainPort

MOST_BLOCKS: Final = 300
"""Blocks that one command asks for to tell when something was."""
KEPT_MOMENTS: Final = 20_000
_FAR_SECOND: Final = 1 << 40


class Names:
    """The names of specs, one file each, in `folder` below the user's `home`; neither need exist."""

    def __init__(self, home: Path, folder: Path, documents: Path | None, *, writes: bool = True) -> None:
        """Name the folders; `documents` is this machine's own store of documents, where it is a folder."""
        self._home = home
        self._folder = folder
        self._documents = documents
        self._writes = writes

    def of(self, spec: bytes) -> str | None:
        """Return the name in the spec of this digest, None where nobody here has read it."""
        with suppress(OSError, UnicodeDecodeError):
            name = (self._folder / spec.hex()).read_text(encoding="utf-8")
            if NAME.fullmatch(name):
                return name
        return self._in_store(spec)

    def note(self, spec: bytes, name: object) -> None:
        """Keep the name that a spec was found to have; a stranger's may be no name."""
        if not self._writes or not isinstance(name, str) or not NAME.fullmatch(name):
            return
        with suppress(OSError, HearthError):
            make_private(self._home)
            replace_text(make_private(self._folder) / spec.hex(), name)

    def _in_store(self, spec: bytes) -> str | None:
        """Return the name in a document of the own store: what was posted from here lies there."""
        from hearth.storage.stores import FolderStore

        if self._documents is None or not self._documents.is_dir():
            return None
        try:
            document = FolderStore(self._documents).get_json(spec)
        except HearthError:
            return None
        name = document.get("name") if isinstance(document, dict) else None
        self.note(spec, name)
        return name if isinstance(name, str) and NAME.fullmatch(name) else None


class Moments:
    """The seconds of blocks, by their hashes, in one file."""

    def __init__(self, home: Path, file: Path, *, writes: bool = True) -> None:
        """Read nothing yet."""
        self._home = home
        self._file = file
        self._writes = writes
        self._known: dict[str, int] | None = None
        self._new = 0

    def at(self, block: bytes, port: ChainPort | None) -> int | None:
        """Return the second of a block; None where it is not kept, and nobody is asked, knows it or may be asked more.

        Raises ChainError.
        """
        known = self._load()
        name = block.hex()
        if name not in known and port is not None and self._new < MOST_BLOCKS:
            found = port.block(block)
            if found is None:
                return None
            known[name] = found.timestamp
            self._new += 1
        return known.get(name)

    def save(self) -> None:
        """Keep what was learnt, beside what another command kept meanwhile."""
        if not self._new or not self._writes:
            return
        learnt, self._known = self._load(), None
        kept = list({**self._load(), **learnt}.items())[-KEPT_MOMENTS:]
        self._new = 0
        with suppress(OSError, HearthError):
            make_private(self._home)
            make_private(self._file.parent)
            replace_text(self._file, json.dumps(dict(kept)))

    def _load(self) -> dict[str, int]:
        if self._known is None:
            try:
                told = json.loads(self._file.read_text(encoding="utf-8"))
            except (OSError, ValueError, RecursionError):
                told = {}
            pairs = told.items() if isinstance(told, dict) else ()
            self._known = {name: at for name, at in pairs if type(at) is int and 0 < at < _FAR_SECOND}
        return self._known
