"""Stage one: fetch by CID what a job needs, every block checked, and refuse a spec that its terms do not pay for.

Source: worker.md "Data".
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hearth.base.errors import BadDestination, BadDocument, HearthError, StorageError, TooLarge
from hearth.jobfile import ResolvedSpec, needs_of, parse_canonical
from hearth.protocol.runtimes import MAX_INPUT_ENTRIES
from hearth.protocol.types import Outcome, Terms
from hearth.protocol.types import Runtime as RuntimeFlag
from hearth.storage import canonical, unixfs
from hearth.storage import cid as cids
from hearth.storage.cid import Cid
from hearth.storage.stores import Store
from hearth.storage.unixfs import ReadLimits
from worker.attempt.folder import Folder
from worker.attempt.supply import Supply
from worker.attempt.task import Bounds, Broken, Progress, Refused, Stopped
from worker.decide import SpecFacts
from worker.runtimes.base import sandbox_bytes

LOOK_BYTES: Final = 4 << 20
"""Bytes of data that are read at most of a job that was not taken."""


def read_spec(store: Store, terms: Terms, timeout: float) -> SpecFacts:
    """Fetch a job's spec, look whether its data is there, and return what a decision needs.

    Raises StorageError where the spec or the beginning of its data cannot be had now.
    """
    end = time.monotonic() + timeout
    document = store.get_block(canonical.cid_of_digest(terms.spec), timeout)
    try:
        spec = parse_canonical(document)
        check_terms(spec, terms)
    except HearthError as error:
        return SpecFacts(bad=error.message)
    _look(store, spec, end)
    brings = spec.download_bytes
    return SpecFacts(spec.runtime, spec.target, spec.output_bytes, brings, sandbox_bytes(spec.runtime))


def _look(store: Store, spec: ResolvedSpec, end: float) -> None:
    """Read the first block of each thing that a job brings, while time and LOOK_BYTES last. Raises StorageError.

    A bond is risked, and a slot held unpaid, for a job whose data may be nowhere: this much can be seen for nothing.
    Nodes of trees come first: they are small, and name the rest.
    """
    roots = sorted(
        ((cids.parse(cid), size, name) for name, cid, size in _brought(spec)),
        key=lambda root: (root[0].codec == cids.RAW, root[1]),
    )
    read = 0
    for cid, _, name in roots:
        left = end - time.monotonic()
        if left <= 0 or read >= LOOK_BYTES:
            return
        try:
            read += len(store.get_block(cid, left))
        except StorageError as error:
            raise StorageError(
                f"{name} ({cid}) cannot be had: {error.message}",
                hint="hearth worker doctor",
                code=error.code,
                retryable=True,
            ) from error


def _brought(spec: ResolvedSpec) -> list[tuple[str, str, int]]:
    """Return all that a job brings: its name in sentences, its CID, and the most bytes that it may have."""
    data = [("the module", spec.module), ("the working directory", spec.workdir)]
    named = [(name, blob.cid, blob.size) for name, blob in data if blob is not None]
    return named + [(item.dst, item.cid, item.size) for item in spec.inputs]


def check_terms(spec: ResolvedSpec, terms: Terms) -> None:
    """Refuse a spec that asks for more than its terms pay for. Raises BadDocument.

    The chain matched the terms' needs; what a machine gives is what the spec asks. A difference would be a way to rent
    64 cores for the price of one.
    """
    asked = needs_of(spec.resources, spec.runtime)
    paid = terms.needs
    for name in ("gpu_count", "vram_gib", "cores", "ram_gib", "disk_gib", "tier"):
        if getattr(asked, name) > getattr(paid, name):
            raise BadDocument(
                f"the spec asks for {name} {getattr(asked, name)}, its terms for {getattr(paid, name)}",
                hint="hearth job spec JOB",
            )
    if (asked.exact, asked.tier) != (paid.exact, paid.tier) and (asked.exact or paid.exact):
        raise BadDocument("the spec and its terms differ in which GPU it must be", hint="hearth job spec JOB")
    if asked.runtimes & ~paid.runtimes & ~RuntimeFlag.JUROR:
        raise BadDocument(f"the spec needs {asked.runtimes!r}, its terms {paid.runtimes!r}", hint="hearth job spec JOB")
    if (spec.runtime_seconds, spec.units, spec.chunk) != (terms.max_seconds, terms.units, terms.chunk):
        raise BadDocument("the spec's times or units are not those of its terms", hint="hearth job spec JOB")
    if (0 if spec.checkpoint is None else spec.checkpoint.every) != terms.checkpoint_every:
        raise BadDocument("the spec's checkpoints are not those of its terms", hint="hearth job spec JOB")


@dataclass(slots=True)
class Fetch:
    """Fetch for one attempt from `store` until a time of `time.monotonic`, or until `stop` is set.

    A store that is down or lacks a block is asked again while data comes (`worker.attempt.supply`); what is missing
    then is refused as bad input, the cheapest honest answer for everybody. Methods raise Refused, Broken (this disk),
    Stopped.
    """

    store: Store
    progress: Progress
    until: float
    stop: threading.Event
    bounds: Bounds = Bounds()

    def spec(self, terms: Terms) -> ResolvedSpec:
        """Fetch the spec and check it against its terms and against what this machine takes."""
        self.progress.phase = "fetching the spec"
        supply = self._supply("the spec")
        try:
            document = supply.get_block(canonical.cid_of_digest(terms.spec))
        except StorageError as error:
            raise supply.refusal(error) from error
        try:
            spec = parse_canonical(document)
            check_terms(spec, terms)
        except HearthError as error:
            raise Refused(Outcome.BAD_INPUT, error.message) from error
        if spec.download_bytes > self.bounds.max_input or spec.output_bytes > self.bounds.max_output:
            raise Refused(Outcome.BAD_INPUT, "inputs or outputs are larger than this worker takes")
        return spec

    def data(self, spec: ResolvedSpec, folder: Folder) -> None:
        """Fill an empty folder: the module, /job and /in, and an empty /out.

        All trees are counted before the first file is made, so that too many cost this disk nothing.
        """
        places = {"the module": folder.module, "the working directory": folder.job}
        # The spec's own rules keep `dst` below /in, without "..", each in its own place.
        places |= {item.dst: folder.path / item.dst.removeprefix("/") for item in spec.inputs}
        supply, left = self._supply("the data"), MAX_INPUT_ENTRIES
        self.progress.done, self.progress.total = 0, spec.download_bytes
        for name, cid, size in _brought(spec):
            left -= self._count(supply, name, cids.parse(cid), size, left)
        folder.inputs.mkdir()
        folder.outputs.mkdir(exist_ok=True)  # there already, where it lies on a volume
        if not spec.workdir:
            folder.job.mkdir()
        for name, cid, size in _brought(spec):
            limits = ReadLimits(max_bytes=size, max_entries=MAX_INPUT_ENTRIES)
            self._tree(supply, name, cids.parse(cid), limits, places[name])
        if spec.module and not folder.module.is_file():
            raise Refused(Outcome.BAD_INPUT, "the module is a folder")

    def _supply(self, what: str) -> Supply:
        return Supply(self.store, self.until, self.stop, self.bounds.pace, what)

    def _count(self, supply: Supply, name: str, cid: Cid, size: int, left: int) -> int:
        """Return how many files and folders one tree has, of at most `left`."""
        self.progress.phase = f"looking at {name}"
        supply.what = f"{name} ({cid})"
        try:
            return unixfs.count_entries(cid, supply, ReadLimits(max_bytes=size, max_entries=left))
        except TooLarge as error:
            if error.details.get("what") != "entries":
                raise supply.refusal(error) from error
            raise Refused(
                Outcome.BAD_INPUT,
                f"the job brings more than {MAX_INPUT_ENTRIES} files and folders; pack them into archives",
            ) from error
        except StorageError as error:
            raise supply.refusal(error) from error

    def tree(self, name: str, cid: Cid, limits: ReadLimits, dest: Path, check: Callable[[], None]) -> None:
        """Fetch one file or tree within limits, wholly or not at all; what `check` raises after a part ends it."""
        self.progress.done, self.progress.total = 0, 0
        self._tree(self._supply(name), name, cid, limits, dest, check)

    def _tree(
        self,
        supply: Supply,
        name: str,
        cid: Cid,
        limits: ReadLimits,
        dest: Path,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        """Fetch one file or tree within limits."""
        self.progress.phase = f"fetching {name}"
        supply.what = f"{name} ({cid})"
        dest.parent.mkdir(parents=True, exist_ok=True)

        def moved(_: str, count: int) -> None:
            self.progress.done += count
            if self.stop.is_set():
                raise Stopped
            check()

        try:
            unixfs.export(cid, supply, dest, limits, moved)
        except BadDestination as error:
            raise Broken(error.message) from error
        except StorageError as error:
            raise supply.refusal(error) from error
