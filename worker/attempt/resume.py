"""The state that a unit begins with: fetched whole and verified before the lease is taken, and put in its place.

It is a stranger's: whatever is wrong with it, the unit begins anew, and nothing is refused or given back for it.
Source: SPEC section "Worker".
"""

from __future__ import annotations

from dataclasses import dataclass

import structlog

from hearth.base.errors import HearthError, TooLarge, UnsafePath
from hearth.base.files import delete_tree
from hearth.spec import ResolvedSpec
from hearth.storage import cid as cids
from hearth.storage.unixfs import ReadLimits
from worker.attempt.fetch import Fetch
from worker.attempt.folder import Folder
from worker.attempt.task import Refused
from worker.decide import Saved
from worker.runtimes.base import MAX_OUTPUT_ENTRIES, measure, over_cap
from worker.runtimes.published import parts_of

log = structlog.get_logger("worker.attempt")


@dataclass(frozen=True, slots=True)
class Resume:
    """Where the state of one attempt goes: below /out in its folder, at the path that its spec names."""

    spec: ResolvedSpec
    folder: Folder

    def place(self, saved: Saved, fetch: Fetch) -> bool:
        """Fetch a state and put it in its place; say whether all of it lies there. Raises Stopped."""
        assert self.spec.checkpoint is not None
        self.clear()
        out, names = self.folder.outputs, parts_of(self.spec.checkpoint.path)
        place, cap = out.joinpath(*names), self.spec.output_bytes
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            fetch.tree("the state", cids.of_root(saved.root), ReadLimits.of_market(cap, MAX_OUTPUT_ENTRIES), place)
            if not place.is_dir():
                raise UnsafePath("it is no folder", hint="hearth worker status")
            tree = measure(out)
            if over_cap(tree, cap) or tree.offence:
                raise TooLarge(over_cap(tree, cap) or tree.offence, hint="hearth worker status")
        except (Refused, HearthError, OSError) as error:
            log.warning(
                "a state cannot be used: the unit begins anew", attempt=str(self.folder.path.name), why=str(error)
            )
            self.clear()
            return False
        told = {"of": saved.attempt, "node": saved.node, "root": saved.root.hex()}
        log.info("goes on from a checkpoint", attempt=str(self.folder.path.name), **told)
        return True

    def clear(self) -> None:
        """Put nothing in place: the unit begins anew."""
        assert self.spec.checkpoint is not None
        delete_tree(self.folder.outputs / parts_of(self.spec.checkpoint.path)[0])
