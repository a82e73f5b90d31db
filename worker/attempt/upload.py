"""Stage four: store what an attempt made, pinned and read back; later, let it go.

Source: worker.md.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from hearth.base.errors import StorageError
from hearth.storage import canonical
from hearth.storage import cid as cids
from hearth.storage.stores import Store
from hearth.storage.unixfs import Progress
from worker.attempt.folder import Folder
from worker.attempt.results import Kept
from worker.attempt.task import RETRY_SECONDS, Broken, Stopped, watched


def upload(
    kept: Kept, folder: Folder, store: Store, *, until: float, stop: threading.Event, tell: Callable[[str], None]
) -> list[str]:
    """Store outputs, logs and documents and return their CIDs; a store that is down is asked again until a time.

    `tell` hears why the store takes nothing, at each try, and "" once it has taken everything.
    Raises StorageError where it stays down or refuses, Broken where disk or store changed the data, TooLate, Stopped.
    """
    while True:
        try:
            pins = _upload(kept, folder, store, watched(stop, until))
            tell("")
            return pins
        except StorageError as error:
            tell(error.message)
            if not error.retryable or time.monotonic() >= until:
                raise
        if stop.wait(RETRY_SECONDS):
            raise Stopped


def _upload(kept: Kept, folder: Folder, store: Store, progress: Progress) -> list[str]:
    pins: list[str] = []
    if kept.outputs is not None:
        pins.append(str(store.add_path(folder.outputs, progress=progress).cid))
        if pins[0] != kept.outputs:
            raise Broken("the outputs changed on disk after the run")
    pins.append(str(store.add_path(folder.logs, progress=progress).cid))
    for document in (kept.result, kept.report):
        digest = store.put_json(document)
        pins.append(str(canonical.cid_of_digest(digest)))
        if store.get_json(digest) != document:
            raise Broken("the store gives back another document than it was given")
    return pins


def is_stored(pins: list[str], store: Store) -> bool:
    """Say whether everything that an attempt stored is still there, whole; no pins: nothing was."""
    try:
        for pin in pins:
            store.pin(cids.parse(pin))
    except StorageError:
        return False
    return bool(pins)


def release(pin: str, store: Store) -> bool:
    """Let stored data go; False where a store is down, keeps it, and has to be asked again."""
    try:
        store.unpin(cids.parse(pin))
    except StorageError as error:
        return not error.retryable
    return True
