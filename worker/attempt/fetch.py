"""Stage one: fetch by CID what a job needs, every block checked, and refuse a spec that its terms do not pay for.

Source: SPEC section "Worker".
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from hearth.base.errors import BadDestination, BadDocument, HearthError, StorageError
from hearth.protocol.types import Outcome, Terms
from hearth.protocol.types import Runtime as RuntimeFlag
from hearth.spec import ResolvedSpec, needs_of, parse_canonical
from hearth.storage import canonical
from hearth.storage import cid as cids
from hearth.storage.cid import Cid
from hearth.storage.stores import Store
from hearth.storage.unixfs import ReadLimits
from worker.attempt.folder import Folder
from worker.attempt.task import RETRY_SECONDS, Bounds, Broken, Progress, Refused, Stopped
from worker.decide import SpecFacts

MAX_INPUT_ENTRIES: Final = 100_000

Fetched = TypeVar("Fetched")


def read_spec(store: Store, terms: Terms, tiers: Mapping[str, int], timeout: float) -> SpecFacts:
    """Fetch a job's spec and return what a decision needs. Raises StorageError where it cannot be had now."""
    try:
        spec = parse_canonical(store.get_block(canonical.cid_of_digest(terms.spec), timeout))
        check_terms(spec, terms, tiers)
    except StorageError as error:
        if error.retryable:
            raise
        return SpecFacts(bad=error.message)
    except HearthError as error:
        return SpecFacts(bad=error.message)
    return SpecFacts(spec.runtime, spec.target, spec.output_bytes)


def check_terms(spec: ResolvedSpec, terms: Terms, tiers: Mapping[str, int]) -> None:
    """Refuse a spec that asks for more than its terms pay for. Raises BadDocument.

    The chain matched the terms' needs; what a machine gives is what the spec asks. A difference would be a way to rent
    64 cores for the price of one.
    """
    asked = needs_of(spec.resources, spec.runtime, tiers)
    paid = terms.needs
    for name in ("gpu_count", "vram_gib", "cores", "ram_gib", "disk_gib", "tier"):
        if getattr(asked, name) > getattr(paid, name):
            raise BadDocument(
                f"the spec asks for {name} {getattr(asked, name)}, its terms for {getattr(paid, name)}",
                hint="hearth job spec JOB",
            )
    if asked.runtimes & ~paid.runtimes & ~RuntimeFlag.JUROR:
        raise BadDocument(f"the spec needs {asked.runtimes!r}, its terms {paid.runtimes!r}", hint="hearth job spec JOB")
    if (spec.runtime_seconds, spec.units, spec.chunk) != (terms.max_seconds, terms.units, terms.chunk):
        raise BadDocument("the spec's times or units are not those of its terms", hint="hearth job spec JOB")


@dataclass(frozen=True, slots=True)
class Fetch:
    """Fetch for one attempt from `store` until a time of `time.monotonic`, or until `stop` is set.

    A store that is down or lacks a block is asked again until then; what is still missing is refused as bad input, the
    cheapest honest answer for everybody. Methods raise Refused, Broken (this disk), Stopped.
    """

    store: Store
    progress: Progress
    until: float
    stop: threading.Event

    def spec(self, terms: Terms, tiers: Mapping[str, int], bounds: Bounds) -> ResolvedSpec:
        """Fetch the spec and check it against its terms and against what this machine takes."""
        self.progress.phase = "fetching the spec"
        cid = canonical.cid_of_digest(terms.spec)
        document = self._ask("the spec", lambda left: self.store.get_block(cid, left))
        try:
            spec = parse_canonical(document)
            check_terms(spec, terms, tiers)
        except HearthError as error:
            raise Refused(Outcome.BAD_INPUT, error.message) from error
        if spec.download_bytes > bounds.max_input or spec.output_bytes > bounds.max_output:
            raise Refused(Outcome.BAD_INPUT, "inputs or outputs are larger than this worker takes")
        return spec

    def data(self, spec: ResolvedSpec, folder: Folder) -> None:
        """Fill an empty folder: the module, /job and /in, and an empty /out."""
        folder.inputs.mkdir()
        folder.outputs.mkdir(exist_ok=True)  # there already, where it lies on a volume
        self.progress.done, self.progress.total = 0, spec.download_bytes
        wanted: list[tuple[str, str, int, Path]] = []
        if spec.module:
            wanted.append(("module", spec.module.cid, spec.module.size, folder.module))
        if spec.workdir:
            wanted.append(("workdir", spec.workdir.cid, spec.workdir.size, folder.job))
        else:
            folder.job.mkdir()
        for item in spec.inputs:
            # The spec's own rules keep `dst` below /in, without "..", each in its own place.
            wanted.append((item.dst, item.cid, item.size, folder.path / item.dst.removeprefix("/")))
        for name, cid, size, dest in wanted:
            self._tree(name, cids.parse(cid), size, dest)
        if spec.module and not folder.module.is_file():
            raise Refused(Outcome.BAD_INPUT, "the module is a folder")

    def _tree(self, name: str, cid: Cid, size: int, dest: Path) -> None:
        """Fetch one file or tree of at most the `size` bytes that the spec names."""
        self.progress.phase = f"fetching {name}"
        dest.parent.mkdir(parents=True, exist_ok=True)
        limits = ReadLimits(max_bytes=size, max_entries=MAX_INPUT_ENTRIES)
        before = self.progress.done

        def moved(_: str, count: int) -> None:
            self.progress.done += count
            if self.stop.is_set():
                raise Stopped

        def get(left: float) -> None:
            self.progress.done = before
            self.store.fetch(cid, dest, limits, moved, left)

        self._ask(name, get)

    def _ask(self, what: str, get: Callable[[float], Fetched]) -> Fetched:
        """Ask the store again while there is time; tell a fault of the data from one of this disk."""
        while True:
            left = self.until - time.monotonic()
            if self.stop.is_set():
                raise Stopped
            if left <= 0:
                raise Refused(Outcome.BAD_INPUT, f"{what} did not arrive in time")
            try:
                return get(left)
            except BadDestination as error:
                raise Broken(error.message) from error
            except StorageError as error:
                if not error.retryable:
                    raise Refused(Outcome.BAD_INPUT, f"{what}: {error.message}") from error
                if self.until - time.monotonic() <= RETRY_SECONDS:
                    raise Refused(Outcome.BAD_INPUT, f"{what} cannot be fetched: {error.message}") from error
            self.stop.wait(RETRY_SECONDS)
