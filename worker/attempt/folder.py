"""An attempt's folder on disk: what the job brings, what it leaves, and what a restart must know.

    module, job/, in/   what was fetched: the WebAssembly file, /job and /in of the sandbox
    out/, logs/         what the run left: /out of the sandbox, its stdout and stderr
    attempt.json        how the run ended; a restart reuses the result, or runs again where the file is absent
    pins.json           what the store keeps for this attempt

The folder is named by (job, index, attempts). Both JSON files are whole or absent. The layout is read by later versions
of this program, which recover what a killed one left.
"""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Collection
from pathlib import Path
from typing import Final

from hearth.base.errors import StorageError, UnsafePath
from hearth.base.files import replace_text
from hearth.storage import unixfs
from hearth.storage.unixfs import Entry
from worker.attempt.results import Kept
from worker.attempt.task import until_stopped
from worker.decide import LeaseKey

KEPT: Final = "attempt.json"
PINS: Final = "pins.json"


class Folder:
    """The folder of one attempt; it need not exist. Methods raise OSError where the disk fails, unless they say so."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.module = path / "module"
        self.job = path / "job"
        self.inputs = path / "in"
        self.outputs = path / "out"
        self.logs = path / "logs"

    def renew(self) -> None:
        """Make the folder empty, for its owner only."""
        self.remove()
        self.path.mkdir(mode=0o700)

    def remove(self) -> None:
        """Delete the folder as far as it can be deleted."""
        shutil.rmtree(self.path, ignore_errors=True)

    def drop_data(self) -> None:
        """Delete what the job brought and left; what names its stored results stays."""
        for path in (self.module, self.job, self.inputs, self.outputs, self.logs):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)

    # ---- what the run left ----

    def write_logs(self, stdout: bytes, stderr: bytes) -> Entry:
        """Write both streams into logs/ and return its CID and size."""
        self.logs.mkdir()
        (self.logs / "stdout").write_bytes(stdout)
        (self.logs / "stderr").write_bytes(stderr)
        return unixfs.name_path(self.logs)

    def name_outputs(self, stop: threading.Event) -> Entry:
        """Return the CID and size of out/.

        Raises UnsafePath where it holds what no store takes (links, devices, bad names, what may not be read): the same
        program is refused the same on every machine. Raises StorageError where this disk fails, and Stopped once `stop`
        is set: hashing takes minutes where outputs are large.
        """
        try:
            return unixfs.name_path(self.outputs, progress=until_stopped(stop))
        except StorageError as error:
            if isinstance(error.__cause__, PermissionError):
                raise UnsafePath(error.message, hint=error.hint) from error
            raise

    def holds(self, kept: Kept, stop: threading.Event) -> bool:
        """Say whether what has to be stored is on disk: logs, and outputs with the CID that the result names.

        Raises Stopped once `stop` is set.
        """
        if not (self.logs.is_dir() and self.outputs.is_dir()):  # deleted with the job's data by `drop_data`
            return False
        if kept.outputs is None:
            return True
        try:
            return str(self.name_outputs(stop).cid) == kept.outputs
        except StorageError:
            return False

    # ---- what a restart must know ----

    def write_kept(self, kept: Kept) -> None:
        """Write how the run ended, durably."""
        replace_text(self.path / KEPT, json.dumps(kept.as_dict()), durable=True)

    def read_kept(self) -> Kept | None:
        """Return how the run of an earlier process ended, None where none did. Does not raise."""
        try:
            return Kept.from_dict(json.loads((self.path / KEPT).read_bytes()))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def write_pins(self, pins: list[str]) -> None:
        """Write the CIDs that the store keeps for this attempt, durably."""
        self.path.mkdir(mode=0o700, exist_ok=True)
        replace_text(self.path / PINS, json.dumps(pins), durable=True)

    def read_pins(self) -> list[str]:
        """Return the CIDs that the store keeps for this attempt. Does not raise."""
        try:
            pins = json.loads((self.path / PINS).read_bytes())
        except (OSError, ValueError):
            return []
        return [pin for pin in pins if isinstance(pin, str)]


class Folders:
    """All attempts' folders, below one that only its owner can read; it is made where it is absent."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True, mode=0o700)

    def of(self, key: LeaseKey) -> Folder:
        """Return the folder of an attempt."""
        return Folder(self.root / str(key))

    def remove_others(self, known: Collection[str]) -> list[str]:
        """Delete what is none of the `known` attempts' folders; return the names."""
        others = [path for path in self.root.iterdir() if path.name not in known]
        for path in others:
            shutil.rmtree(path, ignore_errors=True)
        return [path.name for path in others]

    def pinned_elsewhere(self, pin: str, folder: Folder) -> bool:
        """Say whether another attempt's folder names a CID as well."""
        return any(path != folder.path and pin in Folder(path).read_pins() for path in self.root.iterdir())
