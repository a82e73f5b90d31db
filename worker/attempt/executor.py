"""Carry out an attempt: fetch by CID, run in a sandbox, upload, and say in digests how it ended.

Each attempt runs in a thread of its own, in a folder named by (job, index, attempts) below the worker's home. Nothing
here reads or writes the chain. An attempt ends in one of four ways, which the journal keeps: DONE (a result, good or
bad, is stored and can be submitted), REFUSED (the job cannot be run, whoever tries: decline), BROKEN (this machine
failed: try again), or stopped because the lease is gone. Files are whole or absent: everything is written under a
temporary name, flushed and renamed, so that a crash at any point leaves what can be used again or what is swept away.
Source: SPEC section "Worker"; SAFETY sections 4 and 8b.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

import structlog

from hearth.base.errors import BadDestination, BadDocument, HearthError, StorageError
from hearth.base.files import replace_text
from hearth.protocol.types import Billing, NodeId, Outcome, Terms
from hearth.protocol.types import Runtime as RuntimeFlag
from hearth.spec import FUEL_PER_SECOND, ResolvedSpec, needs_of, parse_canonical
from hearth.storage import canonical, unixfs
from hearth.storage import cid as cids
from hearth.storage.cid import Cid
from hearth.storage.stores import Store
from hearth.storage.unixfs import Entry, ReadLimits
from worker.attempt import results
from worker.decide import LeaseKey, SpecFacts
from worker.journal import Journal, Moment, Phase
from worker.runtimes.base import OutputRule, RunRequest, RunResult, RunStatus, Runtime, SandboxLimits

log = structlog.get_logger("worker.execution")

RETRY_SECONDS: Final = 2.0
"""How long to wait before a store that is down or lacks a block is asked again."""
MAX_USED: Final = (1 << 24) - 1
MAX_INPUT_ENTRIES: Final = 100_000

T = TypeVar("T")

KEPT: Final = "attempt.json"
"""The file that says how the run ended: whole or absent, so that a restart reuses a result or runs again."""
PINS: Final = "pins.json"


class _Stopped(Exception):
    """The attempt was cancelled."""


class _Refused(Exception):
    """The job cannot be run: the outcome of the decline and the sentence for its report."""

    def __init__(self, outcome: Outcome, why: str) -> None:
        super().__init__(why)
        self.outcome = outcome
        self.why = why


class _Broken(Exception):
    """This machine failed; the job may be tried again."""


@dataclass(frozen=True, slots=True)
class Task:
    """An attempt to carry out. `seconds` are left until the lease's mark; the last `margin` of them are for upload
    and submit."""

    key: LeaseKey
    terms: Terms
    seconds: float
    margin: float
    tries: int = 1


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a job may bring and leave on this machine, in bytes."""

    max_input: int = 64 << 30
    max_output: int = 64 << 30


@dataclass(slots=True)
class Work:
    """An attempt under way, as `hearth worker status` shows it: phase, bytes moved and promised in it."""

    key: LeaseKey
    started: float
    phase: str = "starting"
    done: int = 0
    total: int = 0
    cancel: threading.Event = field(default_factory=threading.Event)
    why: str = ""
    thread: threading.Thread | None = None


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
    target = spec.image if spec.module is None else spec.module.cid
    return SpecFacts(spec.runtime, target, spec.output_bytes)


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


def fuel_seconds(fuel: int) -> int:
    """Return the seconds that WASM fuel is billed as: rounded up, at least 1, at most what a unit's word holds."""
    return min(MAX_USED, max(1, -(-fuel // FUEL_PER_SECOND)))


class GpuPool:
    """Hand out GPUs by UUID, each to one attempt at a time."""

    def __init__(self, uuids: Sequence[str] = ()) -> None:
        self._free = list(uuids)
        self._lock = threading.Lock()

    def take(self, count: int) -> tuple[str, ...] | None:
        """Return `count` GPUs, or None where fewer are free."""
        with self._lock:
            if count > len(self._free):
                return None
            taken = tuple(self._free[:count])
            del self._free[:count]
            return taken

    def give(self, uuids: Sequence[str]) -> None:
        """Take GPUs back."""
        with self._lock:
            self._free.extend(uuids)


class Executor:
    """Carry out attempts in threads, and remember in the journal how they end.

    `label` starts the name of every sandbox of this worker, so that a restart finds what an earlier process left.
    `keep_seconds` is how long results stay after their lease has ended, which the report promises.
    """

    def __init__(
        self,
        *,
        journal: Journal,
        store: Store,
        home: Path,
        runtimes: Mapping[str, Runtime],
        node: NodeId,
        label: str,
        tiers: Mapping[str, int],
        bounds: Bounds,
        keep_seconds: int,
        gpus: Sequence[str] = (),
        machine: Mapping[str, Any] | None = None,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        self.jobs = home / "jobs"
        self._journal = journal
        self._store = store
        self._runtimes = runtimes
        self._node = node
        self._label = label
        self._tiers = tiers
        self._bounds = bounds
        self._keep_seconds = keep_seconds
        self._gpus = GpuPool(gpus)
        self._machine = dict(machine or {})
        self.on_change = on_change
        self._work: dict[LeaseKey, Work] = {}
        self._lock = threading.Lock()
        self.faults = 0
        """Attempts that ended by an exception that no rule foresees, for the metrics."""
        self.jobs.mkdir(parents=True, exist_ok=True, mode=0o700)

    # ---- for the loop ----

    def recover(self) -> list[str]:
        """Make the machine and the journal agree after a crash, before anything is decided; return what was done.

        Sandboxes that an earlier process left are killed by label. Attempts that were under way become BROKEN, which
        counts as a try: a job that takes the worker down each time is given back in the end. Finished attempts whose
        result the store lost are BROKEN too. Folders that the journal does not know are removed.
        """
        done: list[str] = []
        for name, runtime in self._runtimes.items():
            killed = runtime.sweep(self._label)
            if killed:
                done.append(f"killed {killed} {name} sandboxes of an earlier process")
        known: set[str] = set()
        for entry in self._journal.entries():
            known.add(str(entry.key))
            if entry.phase is Phase.WORKING:
                self._journal.finish(entry.key, Phase.BROKEN, detail="the worker stopped while it ran")
                done.append(f"{entry.key} was at {entry.moment.value}")
            elif entry.phase is Phase.DONE and not self._has_result(entry.result):
                self._journal.finish(entry.key, Phase.BROKEN, detail="the store lost the result")
                done.append(f"{entry.key} lost its result")
        for folder in self.jobs.iterdir():
            if folder.name not in known:
                shutil.rmtree(folder, ignore_errors=True)
                done.append(f"removed {folder.name}")
        return done

    def _has_result(self, digest: bytes) -> bool:
        """Say whether the store has a result; one that is down now is believed to have it."""
        try:
            return self._store.has(canonical.cid_of_digest(digest))
        except StorageError:
            return True

    def start(self, task: Task) -> None:
        """Start an attempt in a thread; one that runs already is left alone."""
        with self._lock:
            if task.key in self._work:
                return
            work = Work(task.key, time.time())
            self._work[task.key] = work
        self._journal.start(task.key, task.tries)
        # A daemon: nothing of a worker outlives it, and a stuck download cannot keep it alive.
        work.thread = threading.Thread(target=self._run, args=(task, work), name=f"attempt {task.key}", daemon=True)
        work.thread.start()

    def stop(self, key: LeaseKey, why: str) -> None:
        """Stop an attempt whose lease is gone; one that no thread carries out is simply over."""
        with self._lock:
            work = self._work.get(key)
        if work is None:
            self._journal.end(key, why)
            return
        work.why = why
        work.cancel.set()

    def set_aside(self, key: LeaseKey, why: str) -> None:
        """Note that an attempt has ended on chain: its folder goes when it is old, its result stays until then."""
        self._journal.end(key, why)
        self._drop_data(self.jobs / str(key))

    def sweep(self, before: float) -> int:
        """Forget attempts that ended before a local unix time, with their files and pins; return how many."""
        forgotten = self._journal.forget(before)
        for key in forgotten:
            folder = self.jobs / str(key)
            for cid in _read_pins(folder):
                self._unpin(cid, folder)
            shutil.rmtree(folder, ignore_errors=True)
        return len(forgotten)

    def active(self) -> list[Work]:
        """List the attempts under way."""
        with self._lock:
            return list(self._work.values())

    def close(self, timeout: float = 10.0) -> None:
        """Stop every attempt so that the next process starts it again, and wait for the threads."""
        for work in self.active():
            work.why = work.why or "the worker stops"
            work.cancel.set()
        end = time.monotonic() + timeout
        for work in self.active():
            if work.thread is not None:
                work.thread.join(max(0.0, end - time.monotonic()))

    # ---- one attempt ----

    def _run(self, task: Task, work: Work) -> None:
        """Carry out one attempt and journal its end."""
        key = task.key
        try:
            self._attempt(task, work)
        except _Stopped:
            self._journal.end(key, work.why or "stopped")
            self._drop_data(self.jobs / str(key))
        except _Refused as refused:
            self._refuse(task, refused.outcome, refused.why)
        except (_Broken, HearthError, OSError) as error:
            self._break(task, work, str(error))
        except Exception as error:  # the top of a thread: a fault here must not stop other attempts
            self.faults += 1
            log.exception("attempt failed by a fault of the worker", attempt=str(key))
            self._break(task, work, f"a fault of the worker: {error!r}")
        finally:
            with self._lock:
                self._work.pop(key, None)
            self.on_change()

    def _attempt(self, task: Task, work: Work) -> None:
        mark = time.monotonic() + task.seconds
        folder = self.jobs / str(task.key)
        kept = _read_kept(folder)
        stored = kept is not None and self._is_stored(folder)
        if kept is None or not (stored or kept.matches(folder)):
            stored = False
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(mode=0o700)
            end = mark - task.margin
            spec = self._fetch(task, work, folder, end)
            run, began = self._sandbox(task, work, folder, spec, end)
            kept = self._judge(task, folder, spec, run, began)
            replace_text(folder / KEPT, json.dumps(kept.as_dict()), durable=True)
        self._journal.reach(task.key, Moment.RESULT, f"outcome {kept.outcome.name}")
        if not stored:
            self._upload(work, folder, kept, mark)
        self._journal.reach(task.key, Moment.PINNED)
        self._journal.finish(
            task.key,
            Phase.DONE,
            outcome=kept.outcome,
            result=canonical.digest(kept.result),
            report=canonical.digest(kept.report),
            used=kept.used,
            detail=str(kept.report.get("detail", "")),
        )

    # ---- fetch ----

    def _fetch(self, task: Task, work: Work, folder: Path, end: float) -> ResolvedSpec:
        """Fill the attempt's folder: spec, module, /job and /in, every block checked against its CID.

        Half of the run's time must be left when the data is here; what cannot be had until then is given back as bad
        input, the cheapest honest answer for everybody.
        """
        until = end - task.terms.max_seconds / 2
        work.phase = "fetching the spec"
        digest = canonical.cid_of_digest(task.terms.spec)
        document = self._retry(work, until, "the spec", lambda left: self._store.get_block(digest, left))
        try:
            spec = parse_canonical(document)
            check_terms(spec, task.terms, self._tiers)
        except HearthError as error:
            raise _Refused(Outcome.BAD_INPUT, error.message) from error
        if spec.download_bytes > self._bounds.max_input or spec.output_bytes > self._bounds.max_output:
            raise _Refused(Outcome.BAD_INPUT, "inputs or outputs are larger than this worker takes")
        (folder / "in").mkdir()
        (folder / "out").mkdir()
        work.total, work.done = spec.download_bytes, 0
        module = folder / "module" if spec.module else None
        wanted = [("module", spec.module.cid, spec.module.size, module)] if spec.module and module else []
        if spec.workdir:
            wanted.append(("workdir", spec.workdir.cid, spec.workdir.size, folder / "job"))
        else:
            (folder / "job").mkdir()
        for item in spec.inputs:
            # The spec's own rules keep `dst` below /in, without "..", each in its own place.
            wanted.append((item.dst, item.cid, item.size, folder / item.dst.removeprefix("/")))
        for name, cid, size, dest in wanted:
            self._fetch_one(work, until, name, cids.parse(cid), size, dest)
        if module is not None and not module.is_file():
            raise _Refused(Outcome.BAD_INPUT, "the module is a folder")
        self._journal.reach(task.key, Moment.FETCHED, f"{work.done} bytes")
        return spec

    def _fetch_one(self, work: Work, until: float, name: str, cid: Cid, size: int, dest: Path) -> None:
        """Fetch one file or tree of at most the `size` bytes that the spec names."""
        work.phase = f"fetching {name}"
        dest.parent.mkdir(parents=True, exist_ok=True)
        limits = ReadLimits(max_bytes=size, max_entries=MAX_INPUT_ENTRIES)
        before = work.done

        def moved(_: str, count: int) -> None:
            work.done += count
            if work.cancel.is_set():
                raise _Stopped

        def get(left: float) -> None:
            work.done = before
            self._store.fetch(cid, dest, limits, moved, left)

        self._retry(work, until, name, get)

    def _retry(self, work: Work, until: float, what: str, get: Callable[[float], T]) -> T:
        """Ask the store again while there is time; tell a fault of the data from one of this disk."""
        while True:
            left = until - time.monotonic()
            if work.cancel.is_set():
                raise _Stopped
            if left <= 0:
                raise _Refused(Outcome.BAD_INPUT, f"{what} did not arrive in time")
            try:
                return get(left)
            except BadDestination as error:
                raise _Broken(error.message) from error
            except StorageError as error:
                if not error.retryable:
                    raise _Refused(Outcome.BAD_INPUT, f"{what}: {error.message}") from error
                if until - time.monotonic() <= RETRY_SECONDS:
                    raise _Refused(Outcome.BAD_INPUT, f"{what} cannot be fetched: {error.message}") from error
            work.cancel.wait(RETRY_SECONDS)

    # ---- run ----

    def _sandbox(self, task: Task, work: Work, folder: Path, spec: ResolvedSpec, end: float) -> tuple[RunResult, float]:
        """Run the unit; return how it ended and the local unix time at which it began."""
        runtime = self._runtimes.get(spec.runtime)
        if runtime is None:
            raise _Refused(Outcome.IMAGE_MISSING, f"this worker does not run {spec.runtime}")
        work.phase = "preparing"
        module = folder / "module" if spec.module else None
        refusal = runtime.prepare(str(module) if module else spec.image)
        # A worker that is told to stop here has nothing against the job: the next process runs it.
        if work.cancel.is_set():
            raise _Stopped
        if refusal is not None:
            if refusal.status is RunStatus.BROKEN:
                raise _Broken(refusal.detail)
            outcome = results.OUTCOMES.get(refusal.status, Outcome.BAD_INPUT)
            raise _Refused(Outcome.BAD_INPUT if outcome.is_result else outcome, refusal.detail)
        gpus = self._gpus.take(spec.resources.gpus)
        if gpus is None:
            raise _Broken(f"{spec.resources.gpus} GPUs are asked and fewer are free")
        try:
            left = end - time.monotonic()
            seconds = int(min(task.terms.max_seconds, left))
            if seconds < 1:
                raise _Refused(Outcome.BAD_INPUT, "the inputs came too late to run")
            request = RunRequest(
                unit=f"{self._label}{task.key.job.hex()[:12]}-{task.key.index}-{task.key.attempts}",
                command=tuple(spec.command),
                job_dir=folder / "job",
                in_dir=folder / "in",
                out_dir=folder / "out",
                limits=SandboxLimits(
                    wall_seconds=seconds,
                    memory_bytes=spec.resources.memory_mib << 20,
                    cpus=spec.resources.cpus,
                    out_bytes=spec.output_bytes,
                    fuel=task.terms.max_seconds * FUEL_PER_SECOND if task.terms.billing == Billing.FUEL else None,
                ),
                module=module,
                image=spec.image or None,
                env=dict(spec.env),
                outputs=tuple(OutputRule(o.path, o.required, o.max_size) for o in spec.outputs),
                gpus=gpus,
                index=task.key.index,
                units=spec.units,
                # The same for every attempt and node, so that a seeded program gives the same result everywhere.
                seed=hashlib.sha256(b"hearth seed" + task.terms.spec + task.key.index.to_bytes(4, "big")).digest(),
            )
            work.phase, work.done, work.total = "running", 0, seconds
            began = time.time()
            self._journal.reach(task.key, Moment.STARTED, request.unit)
            result = runtime.run(request, work.cancel)
        finally:
            self._gpus.give(gpus)
        if result.status is RunStatus.CANCELLED or work.cancel.is_set():
            raise _Stopped
        if result.status is RunStatus.BROKEN:
            raise _Broken(result.detail)
        outcome = results.OUTCOMES[result.status]
        if not outcome.is_result:
            raise _Refused(outcome, result.detail)
        if outcome is Outcome.TIMEOUT and seconds < task.terms.max_seconds and result.status is RunStatus.TIMEOUT:
            # It had less than it paid for; calling that the program's time-out would be a lie.
            raise _Refused(
                Outcome.BAD_INPUT, f"the inputs came late: {seconds} of {task.terms.max_seconds} s were left"
            )
        return result, began

    # ---- result ----

    def _judge(self, task: Task, folder: Path, spec: ResolvedSpec, run: RunResult, began: float) -> Kept:
        """Write the logs, name the outputs by their CID, and build both documents; nothing is stored yet."""
        outcome = results.OUTCOMES[run.status]
        logs = folder / "logs"
        logs.mkdir()
        for name, text in (("stdout", run.stdout), ("stderr", run.stderr)):
            (logs / name).write_bytes(text)
        outputs = None if run.status is RunStatus.OUTPUT_OVER_CAP else _name_tree(folder / "out")
        used = 0
        if task.terms.billing == Billing.FUEL:
            used = fuel_seconds(
                run.fuel_used if run.fuel_used is not None else task.terms.max_seconds * FUEL_PER_SECOND
            )
        result = results.result_document(
            spec=task.terms.spec, index=task.key.index, outcome=outcome, run=run, outputs=outputs
        )
        ended = time.time()
        report = results.report_document(
            job=task.key.job,
            index=task.key.index,
            attempt=task.key.attempts,
            node=self._node,
            run=run,
            logs=_name_tree(logs),
            began=began,
            ended=ended,
            kept_until=ended + self._keep_seconds,
            used=used,
            machine=self._machine,
        )
        return Kept(outcome, used, result, report, None if outputs is None else str(outputs.cid))

    def _upload(self, work: Work, folder: Path, kept: Kept, until: float) -> None:
        """Store outputs, logs and documents, pinned and read back; a store that is down is asked until the mark."""
        work.phase = "uploading"
        while True:
            try:
                pins = self._upload_once(folder, kept)
                break
            except StorageError as error:
                if not error.retryable or time.monotonic() >= until:
                    raise
            if work.cancel.wait(RETRY_SECONDS):
                raise _Stopped
        replace_text(folder / PINS, json.dumps(pins), durable=True)

    def _upload_once(self, folder: Path, kept: Kept) -> list[str]:
        pins: list[str] = []
        if kept.outputs is not None:
            pins.append(str(self._store.add_path(folder / "out").cid))
            if pins[0] != kept.outputs:
                raise _Broken("the outputs changed on disk after the run")
        pins.append(str(self._store.add_path(folder / "logs").cid))
        for document in (kept.result, kept.report):
            digest = self._store.put_json(document)
            pins.append(str(canonical.cid_of_digest(digest)))
            if self._store.get_json(digest) != document:
                raise _Broken("the store gives back another document than it was given")
        return pins

    def _is_stored(self, folder: Path) -> bool:
        """Say whether everything that an attempt stored is still there, whole."""
        pins = _read_pins(folder)
        try:
            for pin in pins:
                self._store.pin(cids.parse(pin))
        except StorageError:
            return False
        return bool(pins)

    def _refuse(self, task: Task, outcome: Outcome, why: str) -> None:
        """Note that the job cannot be run; the report is stored if the store can be had."""
        report = results.refusal_document(
            job=task.key.job, index=task.key.index, attempt=task.key.attempts, node=self._node, outcome=outcome, why=why
        )
        digest = canonical.digest(report)
        folder = self.jobs / str(task.key)
        self._drop_data(folder)
        with suppress(StorageError):
            self._store.put_json(report)
            folder.mkdir(mode=0o700, exist_ok=True)
            replace_text(folder / PINS, json.dumps([str(canonical.cid_of_digest(digest))]), durable=True)
        self._journal.finish(task.key, Phase.REFUSED, outcome=outcome, report=digest, detail=why)

    def _break(self, task: Task, work: Work, why: str) -> None:
        """Note that this machine failed, after a pause that lets an engine or a store come back. Files stay: perhaps
        only the upload has to be repeated."""
        work.phase = f"failed: {why}"
        work.cancel.wait(min(30.0, 2.0**task.tries))
        self._journal.finish(task.key, Phase.BROKEN, detail=why)

    def _unpin(self, cid: str, folder: Path) -> None:
        """Let stored data go unless another attempt's folder names it as well."""
        for other in self.jobs.iterdir():
            if other != folder and cid in _read_pins(other):
                return
        with suppress(StorageError):
            self._store.unpin(cids.parse(cid))

    def _drop_data(self, folder: Path) -> None:
        """Delete what a job brought and left; what names its stored results stays."""
        for name in ("module", "job", "in", "out", "logs"):
            path = folder / name
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class Kept:
    """How a run ended, as it lies in the attempt's folder."""

    outcome: Outcome
    used: int
    result: dict[str, Any]
    report: dict[str, Any]
    outputs: str | None

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "outcome": int(self.outcome),
            "used": self.used,
            "result": self.result,
            "report": self.report,
            "outputs": self.outputs,
        }

    def matches(self, folder: Path) -> bool:
        """Say whether the outputs on disk still have the CID that the result names."""
        if self.outputs is None:
            return True
        found = _name_tree(folder / "out")
        return found is not None and str(found.cid) == self.outputs


def _name_tree(path: Path) -> Entry | None:
    """Return the CID and size of a tree, None where it holds what no store takes (links, devices, bad names)."""
    try:
        return unixfs.name_path(path)
    except StorageError:
        return None


def _read_kept(folder: Path) -> Kept | None:
    """Return how the run of an earlier process ended, None where none did."""
    try:
        raw = json.loads((folder / KEPT).read_bytes())
        return Kept(Outcome(raw["outcome"]), raw["used"], raw["result"], raw["report"], raw["outputs"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _read_pins(folder: Path) -> list[str]:
    try:
        pins = json.loads((folder / PINS).read_bytes())
    except (OSError, ValueError):
        return []
    return [pin for pin in pins if isinstance(pin, str)]
