"""The state that a unit begins with: fetched whole and verified before the lease is taken, and put in its place.

It is a stranger's: whatever is wrong with it, the unit begins with another or anew, and nothing is refused or given
back for it.
Source: worker.md "Resume".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import structlog

from hearth.base.errors import HearthError, TooLarge, UnsafePath
from hearth.base.files import delete_tree
from hearth.jobfile import ResolvedSpec
from hearth.storage import cid as cids
from hearth.storage.unixfs import ReadLimits
from worker.attempt.fetch import Fetch
from worker.attempt.folder import Folder
from worker.attempt.task import Refused
from worker.attempt.underway import ROOM
from worker.decide import Saved
from worker.runtimes.base import MAX_OUTPUT_ENTRIES, measure, over_cap
from worker.runtimes.published import parts_of

log = structlog.get_logger("worker.attempt")


@dataclass(frozen=True, slots=True)
class Resume:
    """Where the state of one attempt goes: below /out in its folder, at the path that its spec names.

    `check_spare` raises StorageError where the disk has no room for so many bytes more; None does not ask.
    """

    spec: ResolvedSpec
    folder: Folder
    check_spare: Callable[[int], None] | None = None

    def place(self, saved: Saved, fetch: Fetch) -> bool:
        """Fetch a state and put it in its place; say whether all of it lies there. Raises Stopped."""
        assert self.spec.checkpoint is not None
        told = {"of": saved.attempt, "node": saved.node, "root": saved.root.hex()}
        out, names = self.folder.outputs, parts_of(self.spec.checkpoint.path)
        place, cap = out.joinpath(*names), self.spec.output_bytes
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            limits = ReadLimits.of_market(cap, MAX_OUTPUT_ENTRIES)
            fetch.tree("the state", cids.of_root(saved.root), limits, place, self._has_spare)
            if not place.is_dir():
                raise UnsafePath("it is no folder", hint="hearth worker status")
            tree = measure(out)
            if over_cap(tree, cap) or tree.offence:
                raise TooLarge(over_cap(tree, cap) or tree.offence, hint="hearth worker status")
        except (Refused, HearthError, OSError) as error:
            log.warning("a state cannot be used", attempt=self.folder.path.name, why=str(error), **told)
            self.clear()
            return False
        log.info("goes on from a checkpoint", attempt=self.folder.path.name, **told)
        return True

    def _has_spare(self) -> None:
        if self.check_spare is not None:
            self.check_spare(ROOM)

    def clear(self) -> None:
        """Put nothing in place: the unit begins anew."""
        assert self.spec.checkpoint is not None
        delete_tree(self.folder.outputs / parts_of(self.spec.checkpoint.path)[0])
