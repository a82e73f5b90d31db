"""An attempt's folder on disk: what the job brings, what it leaves, and what a restart must know.

    module, job/, in/   what was fetched: the WebAssembly file, /job and /in of the sandbox
    out/, logs/         what the run left: /out of the sandbox, its stdout and stderr; out is a link where the attempt
                        has a volume, a file system of its own (worker/volumes.py)
    attempt.json        how the run ended; a restart reuses the result, or runs again where the file is absent
    checkpoint-*/       a copy of what the unit has published, while it is stored
    pins.json           what the store keeps for this attempt
    checkpoints.json    the checkpoints that it keeps for it besides

The folder is named by (job, index, attempts). Both JSON files are whole or absent. The layout is read by later versions
of this program, which recover what a killed one left.
"""

from __future__ import annotations

import json
import math
import os
import threading
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from hearth.base.errors import StorageError, UnsafePath
from hearth.base.files import delete_tree, replace_text
from hearth.storage import unixfs
from hearth.storage.unixfs import Entry
from worker.attempt.results import Kept
from worker.attempt.task import Broken, watched
from worker.decide import LeaseKey

KEPT: Final = "attempt.json"
PINS: Final = "pins.json"
CHECKPOINTS: Final = "checkpoints.json"


class Folder:
    """The folder of one attempt; it need not exist. Methods raise OSError where the disk fails, unless they say so."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.module = path / "module"
        self.job = path / "job"
        self.inputs = path / "in"
        self.logs = path / "logs"
        self._out = path / "out"

    @property
    def outputs(self) -> Path:
        """Return where /out lies: in this folder, or on the volume that it links to."""
        return Path(os.readlink(self._out)) if self._out.is_symlink() else self._out

    @property
    def volume(self) -> Path | None:
        """Return the file system that /out has to itself, None where it has none."""
        return Path(os.readlink(self._out)).parent if self._out.is_symlink() else None

    def renew(self) -> None:
        """Make the folder empty, for its owner only; what the store keeps of earlier tries stays known."""
        self.drop_data()
        delete_tree(self.path / KEPT, self.path / PINS)
        if not (self.path / CHECKPOINTS).exists():
            delete_tree(self.path)
        self.path.mkdir(mode=0o700, exist_ok=True)

    def remove(self) -> None:
        """Delete the folder as far as it can be deleted."""
        self.drop_data()
        delete_tree(self.path)

    def drop_data(self) -> bool:
        """Delete what the job brought and left; what names its stored results stays. Say whether there was any."""
        places = (self.module, self.job, self.inputs, self._out, self.logs, *self.path.glob("checkpoint-*"))
        here = [path for path in places if os.path.lexists(path)]
        # The volume first: once the link is gone, another attempt may have it.
        delete_tree(*([self.outputs] if self.volume is not None else []))
        delete_tree(*here)
        return bool(here)

    def empty_outputs(self) -> None:
        """Delete what the run left in /out."""
        delete_tree(self.outputs)
        self.outputs.mkdir(mode=0o700, exist_ok=True)

    def drop_copies(self) -> bool:
        """Delete copies of what the unit has published, whole or not. Say whether there was any."""
        copies = list(self.path.glob("checkpoint-*"))
        delete_tree(*copies)
        return bool(copies)

    def put_outputs_on(self, volume: Path) -> bool:
        """Let /out lie on an empty volume; say whether it could be emptied, since it is nobody's else."""
        out = volume / "out"
        delete_tree(out)
        if out.exists():
            return False
        out.mkdir(mode=0o700)
        self._out.symlink_to(out)
        return True

    @property
    def taken(self) -> int:
        """Return the bytes that the attempt takes on the disk of the home; what lies on a volume is not there."""
        total, folders = 0, [str(self.path)]
        while folders:  # and not os.walk, which recurses: a stranger's tree may have thousands of levels
            with suppress(OSError), os.scandir(folders.pop()) as entries:  # gone since, or its path is too long
                for entry in entries:
                    with suppress(OSError):
                        total += entry.stat(follow_symlinks=False).st_blocks * 512
                        if entry.is_dir(follow_symlinks=False):
                            folders.append(entry.path)
        return total

    @property
    def awaits_upload(self) -> bool:
        """Say whether it holds a result that no store has yet: the one thing that a restart cannot do without."""
        return self.read_kept() is not None and not self.read_pins()

    # ---- what the run left ----

    def write_logs(self, stdout: bytes, stderr: bytes) -> Entry:
        """Write both streams into logs/ and return its CID and size."""
        self.logs.mkdir(exist_ok=True)
        (self.logs / "stdout").write_bytes(stdout)
        (self.logs / "stderr").write_bytes(stderr)
        return unixfs.name_path(self.logs)

    def name_outputs(self, stop: threading.Event, until: float = math.inf) -> Entry:
        """Return the CID and size of out/.

        Raises UnsafePath where it holds what no store takes (links, devices, bad names, what may not be read): the same
        program is refused the same on every machine. Raises StorageError where this disk fails. Hashing takes minutes
        where outputs are large, holes in them included: it raises Stopped once `stop` is set, and TooLate past a time
        of `time.monotonic`.
        """
        try:
            return unixfs.name_path(self.outputs, progress=watched(stop, until))
        except StorageError as error:
            if isinstance(error.__cause__, PermissionError):
                raise UnsafePath(error.message, hint=error.hint) from error
            raise

    def holds(self, kept: Kept, stop: threading.Event, until: float = math.inf) -> bool:
        """Say whether what has to be stored is on disk: logs, and outputs with the CID that the result names.

        Raises what `name_outputs` raises.
        """
        if not (self.logs.is_dir() and self.outputs.is_dir()):  # deleted with the job's data by `drop_data`
            return False
        if kept.outputs is None:
            return True
        try:
            return str(self.name_outputs(stop, until).cid) == kept.outputs
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
        return self._read_list(PINS)

    def note_checkpoint(self, pin: str) -> None:
        """Note durably the CID of a checkpoint that is about to be stored."""
        known = [one for one in self.read_checkpoints() if one != pin]
        replace_text(self.path / CHECKPOINTS, json.dumps([*known, pin]), durable=True)

    def forget_checkpoint(self, pin: str) -> None:
        """Note that the store does not keep a checkpoint any more."""
        known = [one for one in self.read_checkpoints() if one != pin]
        replace_text(self.path / CHECKPOINTS, json.dumps(known), durable=True)

    def read_checkpoints(self) -> list[str]:
        """Return the CIDs of the checkpoints that the store keeps for this attempt, the newest last. Does not raise."""
        return self._read_list(CHECKPOINTS)

    def _read_list(self, name: str) -> list[str]:
        try:
            pins = json.loads((self.path / name).read_bytes())
        except (OSError, ValueError):
            return []
        return [pin for pin in pins if isinstance(pin, str)] if isinstance(pins, list) else []


class Folders:
    """All attempts' folders, below one that only its owner can read; it is made where it is absent.

    `volumes` are the file systems that are lent to attempts, each to one at a time. Which are lent is on disk, in the
    folders' links, so that a restart finds it again.
    """

    def __init__(self, root: Path, volumes: Sequence[Path] = ()) -> None:
        self.root = root
        self.volumes = tuple(volumes)
        self._lock = threading.Lock()
        root.mkdir(parents=True, exist_ok=True, mode=0o700)

    def of(self, key: LeaseKey) -> Folder:
        """Return the folder of an attempt."""
        return Folder(self.root / str(key))

    def lend_volume(self, folder: Folder) -> None:
        """Put /out of an attempt on a volume that is free; without volumes, do nothing. Raises Broken for none free."""
        with self._lock:
            lent = {Folder(path).volume for path in self.root.iterdir()}
            for volume in self.volumes:
                if volume not in lent and os.path.ismount(volume) and folder.put_outputs_on(volume):
                    return
        if self.volumes:
            raise Broken("no volume is free for /out: hearth worker doctor")

    def free_dead(self, busy: Collection[str] = ()) -> list[str]:
        """Delete the data that no attempt needs any more, but of the `busy` ones; return the names of the folders."""
        others = [path for path in self.root.iterdir() if path.name not in busy]
        return [path.name for path in others if not Folder(path).awaits_upload and Folder(path).drop_data()]

    def drop_copies(self) -> list[str]:
        """Delete the copies of what units have published that are under way; return the names of their folders."""
        return [path.name for path in self.root.iterdir() if Folder(path).drop_copies()]

    def remove_others(self, known: Collection[str]) -> list[str]:
        """Delete what is none of the `known` attempts' folders; return the names."""
        others = [path for path in self.root.iterdir() if path.name not in known]
        for path in others:
            Folder(path).remove()
        return [path.name for path in others]

    def pinned_elsewhere(self, pin: str, folder: Folder) -> bool:
        """Say whether another attempt's folder names a CID as well."""
        others = (Folder(path) for path in self.root.iterdir() if path != folder.path)
        return any(pin in other.read_pins() + other.read_checkpoints() for other in others)


def folders_in(home: Path, volumes: Sequence[Path] = ()) -> Folders:
    """Return the folders of the attempts of a worker's home."""
    return Folders(home / "jobs", volumes)
