"""The images of the docker runtime: which are fetched, how much they may take, and which go again.

The engine fetches, unpacks and keeps an image; the worker chooses the registry, watches, and ends a pull by closing its
connection. What a registry or the engine says goes to the worker's log: a result holds sentences of ours alone.
Source: worker.md "docker", docs/decisions/0016-run-containers-behind-seen-walls.md.
"""

from __future__ import annotations

import io
import json
import os
import queue
import re
import tarfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import structlog

from hearth.base import peer
from hearth.base.addresses import is_public
from hearth.base.files import replace_text
from hearth.base.untrusted_json import read_json
from hearth.jobfile.image_config import image_fault, platform_fault
from hearth.protocol.units import GIB, format_size
from worker import registries
from worker.registries import DEFAULT_REGISTRIES
from worker.runtimes.base import Check, Level, RunResult, RunStatus

log = structlog.get_logger("worker.images")

POLL_SECONDS: Final = 0.25
SILENCE_SECONDS: Final = 60
"""How long an engine may say nothing of a pull: a registry that sends nothing holds no lease longer."""
LOOK_UP_SECONDS: Final = 10.0
"""For a registry's name, which a stranger chose and whose name server may be a stranger's as well."""
DISK_FACTOR: Final = 3
"""A pull is ended where the disk lost this many times an image's cap: packed, unpacked, and something beside it."""


@dataclass(frozen=True, slots=True)
class ImageRules:
    """What a provider allows of images: registries, bytes of one unpacked image, bytes of all that are kept, and the
    free bytes that are left on the engine's disk. `ledger` is the file that says which ones were pulled."""

    registries: tuple[str, ...] = DEFAULT_REGISTRIES
    max_bytes: int = 32 * GIB
    keep_bytes: int = 64 * GIB
    reserve_bytes: int = 2 * GIB
    ledger: Path | None = None


DEFAULT_RULES: Final = ImageRules()


@dataclass(slots=True)
class Pulled:
    """An image that this worker pulled: local unix time of its last use, and bytes unpacked (0: not known yet)."""

    used: float
    bytes: int = 0


class Images:
    """Fetch the images of one worker, and remove the least recently used of those that it fetched itself."""

    def __init__(self, rules: ImageRules = DEFAULT_RULES) -> None:
        self._rules = rules
        self._lock = threading.Lock()
        self._held: Counter[str] = Counter()
        self._pulled: dict[str, Pulled] | None = None

    @contextmanager
    def held(self, reference: str) -> Iterator[None]:
        """Keep an image from being removed while a unit needs it."""
        with self._lock:
            self._held[reference] += 1
        try:
            yield
        finally:
            with self._lock:
                self._held[reference] -= 1

    def ready(self, api: Any, name: str, digest: str, until: float, cancel: threading.Event) -> RunResult | None:
        """Return None once an image is on the engine and may be run, else why it may not.

        `until` is a time of `time.monotonic`. Raises the errors of docker and requests where the engine itself fails.
        """
        from docker.errors import NotFound

        reference = f"{name}@{digest}"
        refused = registries.refuse(reference, self._rules.registries)
        if refused:
            return RunResult(RunStatus.IMAGE_MISSING, refused)
        with self.held(reference):
            try:
                facts = api.inspect_image(reference)
            except NotFound:
                return self._fetch(api, name, digest, until, cancel)
            with self._lock:
                entry = self._entries().get(reference)
                if entry is not None:
                    entry.used = time.time()
                    # A worker that was killed once it was there has not noted it.
                    entry.bytes = entry.bytes or int(facts.get("Size", 0))
                    self._save()
            return refuse_image(facts, api.version())

    def _fetch(self, api: Any, name: str, digest: str, until: float, cancel: threading.Event) -> RunResult | None:
        """Pull an image, look at what came, and note it; what is refused does not stay."""
        from docker.errors import NotFound

        reference = f"{name}@{digest}"
        refused = self._refuse_address(reference)
        if refused is not None:
            return refused
        disk = EngineDisk(str(api.info().get("DockerRootDir", "")))
        self._make_room(api, lambda: not disk.below(self._rules.reserve_bytes))
        if disk.below(self._rules.reserve_bytes):
            return RunResult(RunStatus.BROKEN, "less of the engine's disk is free than storage.reserve: no image fits")
        # Noted before it is there: what a killed worker pulled is removed some day as well.
        self._note(reference, Pulled(time.time()))
        try:
            problem = Pull(api, name, digest, self._rules, disk).to_end(until, cancel)
            facts: Mapping[str, Any] = {}
            if problem is None:
                try:
                    facts = api.inspect_image(reference)
                except NotFound:
                    problem = RunResult(RunStatus.IMAGE_MISSING, f"the registry gave another image than {digest}")
            size = int(facts.get("Size", 0))
            if problem is None and size > self._rules.max_bytes:
                problem = too_large(size, self._rules.max_bytes)
            problem = problem or refuse_image(facts, api.version())
        except Exception:
            # Whatever failed: an image that stays and is not counted is bytes that keep_bytes never sees.
            if self._remove(api, reference):
                self._forget(reference)
            raise
        if problem is not None:
            if facts:
                self._remove(api, reference)
            self._forget(reference)
            return problem
        self._note(reference, Pulled(time.time(), size))
        self._make_room(api, lambda: self._kept() <= self._rules.keep_bytes)
        return None

    def _refuse_address(self, reference: str) -> RunResult | None:
        """Refuse a registry that only a pattern allows and that has an address in a private network."""
        if registries.is_named(reference, self._rules.registries):
            return None
        registry = registries.registry_of(reference)
        host, port = registries.host_and_port(registry)
        try:
            found = peer.look_up(host, port, time.monotonic() + LOOK_UP_SECONDS)
        except OSError as failed:
            log.warning("registry not found", registry=registry, why=str(failed))
            return RunResult(RunStatus.BROKEN, f"the name of the registry {registry} cannot be resolved")
        if all(is_public(place[0]) for _, place in found):
            return None
        return RunResult(RunStatus.IMAGE_MISSING, registries.not_public(registry))

    # ---- what is kept ----

    def _make_room(self, api: Any, enough: Callable[[], bool]) -> None:
        """Remove pulled images, the least recently used first, until `enough()`; never one that a unit needs."""
        with self._lock:
            oldest = sorted(self._entries(), key=lambda reference: self._entries()[reference].used)
        for reference in oldest:
            if enough():
                return
            with self._lock:
                free = not self._held[reference]
            if free and self._remove(api, reference):
                self._forget(reference)

    @staticmethod
    def _remove(api: Any, reference: str) -> bool:
        """Take an image's name by digest away, and with its last name the image; False where a container needs it."""
        from docker.errors import APIError, NotFound

        try:
            api.remove_image(reference, noprune=True)
        except NotFound:
            return True
        except APIError as failed:
            log.warning("image kept", image=reference, engine=str(failed))
            return False
        log.info("image removed", image=reference)
        return True

    def _kept(self) -> int:
        with self._lock:
            return sum(entry.bytes for entry in self._entries().values())

    def _note(self, reference: str, entry: Pulled) -> None:
        with self._lock:
            self._entries()[reference] = entry
            self._save()

    def _forget(self, reference: str) -> None:
        with self._lock:
            self._entries().pop(reference, None)
            self._save()

    def _entries(self) -> dict[str, Pulled]:
        """Return the ledger, read on first use; one that cannot be read is begun anew, and its images stay."""
        if self._pulled is None:
            self._pulled = {}
            path = self._rules.ledger
            if path is not None and path.exists():
                try:
                    raw = json.loads(path.read_bytes())["images"]
                    self._pulled = {str(key): Pulled(float(v["used"]), int(v["bytes"])) for key, v in raw.items()}
                except (OSError, ValueError, KeyError, TypeError, AttributeError) as failed:
                    log.warning("images pulled before are not removed", ledger=str(path), why=str(failed))
        return self._pulled

    def _save(self) -> None:
        if self._rules.ledger is not None:
            images = {reference: asdict(entry) for reference, entry in self._entries().items()}
            replace_text(self._rules.ledger, json.dumps({"version": 1, "images": images}))


class EngineDisk:
    """The file system below an engine's folder, where it is this machine's and can be seen."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._at_first = self.free()

    def free(self) -> int | None:
        """Return the free bytes, None where they cannot be seen."""
        try:
            found = os.statvfs(self._folder)
        except OSError:
            return None
        return found.f_bavail * found.f_frsize

    def below(self, reserve: int) -> bool:
        """Say whether less than `reserve` bytes are free."""
        free = self.free()
        return free is not None and free < reserve

    def lost(self) -> int:
        """Return how many bytes fewer are free than at first."""
        free = self.free()
        return 0 if free is None or self._at_first is None else self._at_first - free


class Pull:
    """One pull, read by a thread of its own so that a silent engine holds up nobody."""

    def __init__(self, api: Any, name: str, digest: str, rules: ImageRules, disk: EngineDisk) -> None:
        self._api = api
        self._name = name
        self._digest = digest
        self._rules = rules
        self._disk = disk
        self._lines: queue.SimpleQueue[Mapping[str, Any] | None] = queue.SimpleQueue()
        self._response: Any = None
        self._over = threading.Event()
        self._packed: dict[str, int] = {}

    def to_end(self, until: float, cancel: threading.Event) -> RunResult | None:
        """Return None once the image is there, else why it is not; a pull that is given up ends in the engine too."""
        threading.Thread(target=self._receive, name="pull", daemon=True).start()
        while True:
            try:
                line = self._lines.get(timeout=POLL_SECONDS)
            except queue.Empty:
                line = {}
            if line is None:
                return None
            if "error" in line:
                return name_pull_failure(f"{self._name}@{self._digest}", str(line["error"]))
            problem = self._judge(line, until, cancel)
            if problem is not None:
                self._give_up()
                return problem

    def _judge(self, line: Mapping[str, Any], until: float, cancel: threading.Event) -> RunResult | None:
        """Return why the pull is given up now, or None."""
        if cancel.is_set():
            return RunResult(RunStatus.CANCELLED, "cancelled")
        if time.monotonic() > until:
            return RunResult(
                RunStatus.BAD_INPUT, f"{self._name}@{self._digest} was not pulled in the time that there was"
            )
        if line.get("status") == "Downloading":
            detail = line.get("progressDetail") or {}
            self._packed[str(line.get("id"))] = max(int(detail.get("total") or 0), int(detail.get("current") or 0))
        packed = sum(self._packed.values())
        if packed > self._rules.max_bytes:
            return too_large(packed, self._rules.max_bytes)
        lost = self._disk.lost()
        if lost > DISK_FACTOR * self._rules.max_bytes:
            return too_large(lost, self._rules.max_bytes)
        if self._disk.below(self._rules.reserve_bytes):
            if lost > self._rules.max_bytes:
                return too_large(lost, self._rules.max_bytes)
            return RunResult(RunStatus.BROKEN, "the engine's disk is full down to storage.reserve")
        return None

    def _receive(self) -> None:
        """Ask for the image and hand on each line of the engine; None ends them."""
        from requests.exceptions import RequestException

        # APIClient.pull would wait for the engine's first line without end.
        url = f"{self._api.base_url}/v{self._api.api_version}/images/create"
        wanted = {"fromImage": self._name, "tag": self._digest}
        try:
            with self._api.post(url, params=wanted, stream=True, timeout=SILENCE_SECONDS) as response:
                self._response = response
                if self._over.is_set():
                    return
                if not response.ok:
                    self._lines.put({"error": response.text})
                    return
                for line in response.iter_lines():
                    if line:
                        self._lines.put(_line_of(line))
            self._lines.put(None)
        except (RequestException, ValueError, OSError) as failed:
            self._lines.put({"error": f"no answer of the engine: {failed}"})

    def _give_up(self) -> None:
        """Close the connection, by which the engine learns that nobody waits."""
        from docker.types import CancellableStream

        self._over.set()
        if self._response is not None:
            # Where the engine ends at this very moment, there is no socket any more.
            with suppress(OSError, AttributeError):
                CancellableStream(iter(()), self._response).close()


def _line_of(raw: bytes) -> dict[str, Any]:
    """Return a line of an engine's report of a pull. Raises ValueError for one that no engine writes."""
    line = read_json(raw)
    detail = (line.get("progressDetail") or {}) if isinstance(line, dict) else None
    if not isinstance(detail, dict) or not all(isinstance(detail.get(key) or 0, int) for key in ("total", "current")):
        raise ValueError("a line of another form")
    found: dict[str, Any] = line
    return found


_FAULTS: Final[tuple[tuple[tuple[str, ...], RunStatus, str], ...]] = (
    (
        (
            *("tar file(exit status 1", "tar file(gzip:", "tar file(flate:", "layers from manifest don't match"),
            *("invalid rootfs in image configuration", "json: cannot unmarshal", "mediatype in manifest should be"),
            *("unsupported media type", "encountered remote"),
            *("cannot be used on this platform", "operating system is not supported"),
        ),
        RunStatus.IMAGE_MISSING,
        "it is no image that this engine can unpack",
    ),
    (("toomanyrequests", "rate limit"), RunStatus.BROKEN, "its registry limits how often it answers"),
    (("x509", "certificate", "tls:", "http response to https"), RunStatus.BROKEN, "its registry's TLS is refused"),
    (("no space left",), RunStatus.BROKEN, "the engine's disk is full"),
    (
        (
            # With a space: the port of a connection may hold these digits.
            *("manifest unknown", "name unknown", "not found", " 404"),
            *("denied", "unauthorized", "no basic auth credentials"),
        ),
        RunStatus.IMAGE_MISSING,
        "its registry does not have it, or not for everybody",
    ),
    (
        ("dial tcp", "no such host", "connection refused", "timeout", "timed out", "eof", "connection reset"),
        RunStatus.BROKEN,
        "its registry does not answer",
    ),
)
_OTHER_PLATFORM: Final = re.compile(r"no match(?:ing manifest)? for (?:platform[^:]*: )?([a-z0-9]+/[a-z0-9]+)")
_UNPACKING: Final = "error processing tar file("
_REGISTERING: Final = "failed to register layer: "
_SPOILT: Final = ("archive/tar: invalid tar header", "unexpected eof", "gzip: invalid header", ": not a directory")
"""How newer engines say at a sentence's end that a layer cannot be unpacked."""
_KERNELS: Final = (
    *("no space left on device", "disk quota exceeded", "read-only file system", "input/output error"),
    *("cannot allocate memory", "too many open files"),
)
"""How a kernel says at a sentence's end that the machine fails and not the layer that it unpacks."""
_ADDRESS: Final = re.compile(r'https?://[^\s"]+')
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")


def name_pull_failure(reference: str, said: str) -> RunResult:
    """Tell an image that nobody can run, or that a registry does not have, or not for us, from a registry or a machine
    that cannot now.

    What the engine said may hold words of whoever answered it: it is logged, and not in the result.
    """
    log.warning("image not pulled", image=reference, engine=said[:2000])
    sentence = _without_names(reference, said.lower())
    if other := _OTHER_PLATFORM.search(sentence):
        why = f"its registry has it for other platforms than {other[1]}, which this machine is"
        return RunResult(RunStatus.IMAGE_MISSING, f"{reference} was not pulled: {why}")
    for words, status, why in _FAULTS:
        if any(word in sentence for word in words):
            return RunResult(status, f"{reference} was not pulled: {why}")
    return RunResult(RunStatus.BROKEN, f"{reference} was not pulled: the worker's log has the engine's reason")


def _without_names(reference: str, said: str) -> str:
    """Return what an engine said without the names in it that a stranger chose: an image may be called `x/certificate`.

    What is taken out is no part of a word of `_FAULTS`, however short the name: "for x", "x@", "a/x".
    """
    reference = reference.lower()
    registry = registries.registry_of(reference)
    host = registries.host_and_port(registry)[0]
    forms = (*registries.spellings(reference), reference.partition("@")[0])
    for spelled in sorted(forms, key=len, reverse=True):
        for form in (f"for {spelled}", f"{spelled}@", *([spelled] if "/" in spelled else [])):
            said = said.replace(form, "_")
    said = said.replace(f"lookup {host}", "_").replace(f"{registry}/", "_")
    # After the names, which may hold as many letters of a digest.
    said = _DIGEST.sub("_", _ADDRESS.sub("_", said))
    _, unpacking, rest = said.partition(_UNPACKING)
    if unpacking:
        # The layer had its digest: what fails is its own, or the kernel's, whose word comes after the layer's names.
        return next((word for word in _KERNELS if rest.endswith(word)), unpacking + rest.partition(")")[0])
    _, registering, rest = said.partition(_REGISTERING)
    if registering and rest.endswith(_SPOILT):
        return f"{_UNPACKING}gzip:"
    return said


def image_archive(programs: Mapping[str, bytes]) -> bytes:
    """Return a tar of programs by their paths, of which an engine makes an image; the same bytes on every machine."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for path, program in programs.items():
            entry = tarfile.TarInfo(path.removeprefix("/"))
            entry.size, entry.mode = len(program), 0o755
            tar.addfile(entry, io.BytesIO(program))
    return buffer.getvalue()


def look_at_disk(info: Mapping[str, Any]) -> Check:
    """Check that the disk can be watched that an engine unpacks images on, from its `info`."""
    folder = str(info.get("DockerRootDir", ""))
    free = EngineDisk(folder).free()
    if free is None:
        text = f"{folder or 'its folder'} cannot be seen from here: a pull is bounded by what the engine reports of it"
        return Check("image disk", Level.WARN, text, "let the worker's user enter the folders above it: chmod o+x")
    return Check("image disk", Level.PASS, f"{format_size(free >> 30 << 30)} free under {folder}")


def too_large(size: int, cap: int) -> RunResult:
    """Return the refusal of an image that takes more than one may."""
    taken, most = format_size(size >> 20 << 20), format_size(cap)
    return RunResult(
        RunStatus.BAD_INPUT, f"the image takes {taken} or more, and this worker takes {most} (docker.max_image)"
    )


def refuse_image(facts: Mapping[str, Any], version: Mapping[str, Any] = MappingProxyType({})) -> RunResult | None:
    """Refuse an image that preloads code, declares volumes that no sandbox has, or is for another machine than that of
    the engine, from its inspection and the engine's `version`."""
    fault = image_fault(facts.get("Config") or {}) or platform_fault(facts, version)
    return RunResult(RunStatus.IMAGE_MISSING, fault) if fault else None
