"""A job file in the making, the list of what could not be carried over, and the words that several formats share."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from hearth.base.urls import redact_url
from hearth.jobfile import rules
from hearth.jobfile.sugar import needs_shell
from hearth.protocol.gpu_tiers import NVIDIA, TIERS, VENDORS, VendorName, vendor_of_slug
from hearth.protocol.units import format_size
from hearth.storage.ignore import no_job_takes

NO_NETWORK: Final = "a job has no network"
NO_COUNTERPART: Final = "a job has nothing like it"
OURS: Final = frozenset({"image", "module", "runtime", "command", "limits", "price", "env", "inputs", "outputs"})
"""Keys of a job file that none of the other systems' files has at its top."""
_SIZE: Final = re.compile(r"([0-9]{1,12})(?:\.([0-9]{1,9}))? ?([kKmMgGtT]?)(i?)[bB]?")
_POWERS: Final = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_MIB: Final = 1 << 20
_VRAM: Final = {model.slug: model.vram_gib for vendor in VENDORS.values() for model in vendor.models}
_NOMINAL: Final = 10
"""A card's memory by its name is at most a tenth more than what it offers."""
_OUTSIDE: Final = (
    "lies outside this file's folder, and everything in a job is public; copy what is needed beside the job file, "
    "and name that as an input"
)
_SECRET: Final = (
    "looks like a secret ({}), and everything in a job is public; where it may be, copy it to another name, "
    "and name that"
)
_PASSWORD: Final = "has a password in it, and everything in a job is public; download it, and name the file as an input"


class NotConvertible(Exception):
    """Say why a file describes no job of one container without a network."""


@dataclass(frozen=True, slots=True)
class Note:
    """What could not be carried over as it was: its key in the file, and why, or what stands in its place."""

    key: str
    why: str


class Draft:
    """Collect a job and notes."""

    def __init__(self) -> None:
        self.job: dict[str, Any] = {"version": 1}
        self.notes: list[Note] = []

    def note(self, key: str, why: str) -> None:
        """Add a line to what could not be carried over."""
        self.notes.append(Note(key[:200], why))

    def leave(
        self, where: str, given: Mapping[str, Any], used: Iterable[str], reasons: Mapping[str, str] | None = None
    ) -> None:
        """Note every key of a mapping that was not used, with the reason that is known for it."""
        for key in given:
            if key not in used:
                self.note(f"{where}.{key}" if where else key, (reasons or {}).get(key, NO_COUNTERPART))

    def name(self, value: object) -> None:
        """Take a name over, with what a job's name may not hold replaced."""
        cleaned = re.sub("[^A-Za-z0-9 ._-]", "-", value if isinstance(value, str) else "").strip(" ._-")[:64]
        if cleaned:
            self.job["name"] = cleaned

    def image(self, value: object, key: str) -> None:
        """Take a container image over. Raises NotConvertible where none is named."""
        if value is None:
            raise NotConvertible(f"{key} names no image, and a job is a container or a WebAssembly module")
        image = text(value, key)
        if "$" in image:
            raise NotConvertible(f'{key} holds a variable ("{image[:80]}"): write the image out')
        if not rules.IMAGE.fullmatch(image):
            raise NotConvertible(f'{key} "{image[:80]}" is no image reference')
        self.job |= {"runtime": "docker", "image": image}

    def command(self, entry: object, arguments: object, entry_key: str, arguments_key: str) -> None:
        """Take over what replaces an image's entry point, and what is passed to it."""
        first, rest = words(entry, entry_key), words(arguments, arguments_key)
        if first:
            self.note(
                entry_key, "a job does not replace the entry point of an image: use an image without one of its own"
            )
        if first or rest:
            self.job["command"] = [*first, *rest]

    def env(self, value: object, key: str, *, filled: bool = False) -> None:
        """Take the environment over: a mapping, or a list of K=V; what a job may not hold is noted.

        `filled` says that what its system would replace in it was looked at already.
        """
        taken = self.job.get("env", {})
        for name, content in _pairs(value, key).items():
            where = f"{key}.{name}"
            problem = next(rules.env({name: ""}, ()), None)
            if problem is not None:
                self.note(where, problem.message)
            elif content is None:
                self.note(where, "has no value in the file, and a job takes none from your shell: write it in env")
            elif problem := next(rules.env_values({name: text(content, where)}, ()), None):
                self.note(where, problem.message)
            else:
                taken[name] = text(content, where)
                if not filled and re.search(r"(?<!\$)\$[A-Za-z_{]", taken[name]):
                    self.note(where, "is taken as written: nothing replaces the variable in it")
        if taken:
            self.job["env"] = taken

    def cpus(self, value: object, key: str) -> None:
        """Take over a number of cores ("500m" is half a one), rounded up to whole ones."""
        content = text(value, key).removesuffix("+")
        match = re.fullmatch(r"([0-9]{1,6})(?:\.([0-9]{1,6}))?(m?)", content)
        if match is None:
            raise NotConvertible(f'{key} "{content[:80]}" is no number of cores')
        scale = 10 ** len(match[2] or "") * (1000 if match[3] else 1)
        parts = int(match[1] + (match[2] or ""))
        cores = max(1, -(-parts // scale))
        if cores * scale != parts:
            self.note(key, f"{content} cores became {cores}: a job takes whole ones")
        self.need("cpus", cores)

    def size(self, name: str, value: object, key: str, *, plain: int = 1, decimal: bool = True) -> None:
        """Take over a size, read as by `size_of`."""
        self.need(name, format_size(size_of(value, key, plain=plain, decimal=decimal)))

    def need(self, name: str, value: object) -> None:
        """Set a part of `resources`."""
        self.job.setdefault("resources", {})[name] = value

    def gpu(self, count: int, models: Iterable[str], key: str, vram: int = 0, vendor: VendorName = NVIDIA.name) -> None:
        """Ask for GPUs: of the weakest of these models or a better one, else of a vendor, with `vram` bytes each at
        least.

        A model's memory by its name is more than its driver leaves free: an L4 has 24 GiB and offers 22. So of a model
        that is named no more is asked than it offers; far more than that is another card's, and is asked as it stands.
        """
        if count < 1:
            return
        need: dict[str, Any] = {"count": count}
        tiers = []
        for model in models:
            slug = _slug(model, vram)
            if slug:
                tiers.append(slug)
            else:
                self.note(key, f"the model {model[:60]} is not in the tier table")
        makers = {vendor_of_slug(slug) for slug in tiers}
        if len(makers) > 1:
            self.note(key, "models of several vendors became those of the first: a job asks for one vendor's")
            tiers = [slug for slug in tiers if vendor_of_slug(slug) is vendor_of_slug(tiers[0])]
        if tiers:
            need["tier"] = min(tiers, key=lambda slug: TIERS[slug])
            if len(tiers) > 1:
                self.note(key, f"several models became {need['tier']}, the weakest of them, or any better one")
            free = min(_VRAM[slug] for slug in tiers) << 30
            if free < vram <= free + free // _NOMINAL:
                self.note(key, f"{format_size(vram)} of memory became {format_size(free)}: {need['tier']} offers that")
                vram = free
        elif vendor != NVIDIA.name:
            need["vendor"] = vendor
        if vram:
            need["vram"] = format_size(vram)
        self.need("gpu", need)

    def input(self, src: str, target: str, key: str) -> None:
        """Take over data that is mounted at `target`; a job reads it below /in, and no path outside this folder."""
        if self._leaves_out(src, key):
            return
        if src.strip("./") == "":
            self.note(key, "the whole folder becomes public, its hidden files too: name what is needed")
        path = "/" + "/".join(part for part in target.split("/") if part not in ("", ".", "..", "~"))
        dst = path if path.startswith("/in/") else f"/in{path}" if path != "/" else "/in/data"
        self.job.setdefault("inputs", []).append({"src": src, "dst": dst})
        if dst != target.rstrip("/"):
            # What a job starts in comes from one folder, so that nothing can be mounted below it.
            way = "put it into the folder that is mounted at /job, or " if path.startswith("/job/") else ""
            self.note(
                key, f"{src[:120]} is read at {dst}, not {target[:120]}: {way}change the program or its arguments"
            )

    def workdir(self, src: str, target: str, key: str, *, read_only: bool = False) -> None:
        """Take over the folder that a program starts in, from below this file's folder: a job shows it at /job."""
        if self._leaves_out(src, key):
            return
        if src.strip("./") == "":
            self.note(key, "the whole folder becomes public: .gitignore and .hearthignore say what stays out of it")
        self.job["workdir"] = src
        if target.rstrip("/") != "/job":
            self.note(key, f"{src[:120]} is read at /job, not {target[:120]}: change the program or its arguments")
        if not read_only:
            self.note(key, "the folder that a job starts in is read-only: write to /out and /tmp")

    def _leaves_out(self, src: str, key: str) -> bool:
        """Say whether a source is one that no job takes, and note why."""
        why = not_taken(src)
        if why:
            self.note(key, f"{shown(src)} is not taken: it {why}")
        return bool(why)

    def output(self, target: str, key: str) -> None:
        """Take over a folder of results; a job writes them to /out."""
        target = target.rstrip("/") or "/"
        if target != "/out" and not target.startswith("/out/"):
            self.note(key, f"results go to /out, not {target[:120]}: change the program or its arguments")
            target = "/out"
        outputs = self.job.setdefault("outputs", [])
        if target not in [output["path"] for output in outputs]:
            outputs.append({"path": target, "required": False})


def not_taken(src: str) -> str:
    """Return what a path does, by its own words, that keeps a job from taking it; "" for none of it, and for most URLs.

    `hearth check` would refuse such a source, which the job file then names for no use.
    """
    if "://" in src:
        return _PASSWORD if rules.has_password(src) else ""
    depth, outside = 0, src.startswith(("/", "~"))
    for part in src.split("/"):
        if part and no_job_takes(part, True):
            return _SECRET.format(part[:120])
        depth += {"..": -1, "": 0, ".": 0}.get(part, 1)
        outside = outside or depth < 0
    return _OUTSIDE if outside else ""


def shown(src: str) -> str:
    """Return a source as a note names it: without its password."""
    return redact_url(src) if rules.has_password(src) else src[:120]


def mapping(value: object, key: str) -> dict[str, Any]:
    """Return a mapping, or an empty one for nothing. Raises NotConvertible."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise NotConvertible(f"{key} is {_called(value)}, not a mapping")
    return value


def sequence(value: object, key: str, wanted: str = "a list") -> list[Any]:
    """Return a list, or an empty one for nothing. `wanted` is what it should be. Raises NotConvertible."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise NotConvertible(f"{key} is {_called(value)}, not {wanted}")
    return value


def text(value: object, key: str, wanted: str = "text") -> str:
    """Return text; a number or a truth value as it is written. `wanted` is what it should be. Raises NotConvertible."""
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str | int):
        raise NotConvertible(f"{key} is {_called(value)}, not {wanted}")
    return str(value)


def count(value: object, key: str, default: int = 1) -> int:
    """Return a whole number. Raises NotConvertible."""
    if value is None:
        return default
    content = text(value, key, "a whole number")
    if not re.fullmatch("[0-9]{1,6}", content):
        raise NotConvertible(f'{key} "{content[:80]}" is no whole number')
    return int(content)


def words(value: object, key: str) -> list[str]:
    """Return a command as a list; text that needs a shell gets one. Raises NotConvertible."""
    if value is None:
        return []
    if not isinstance(value, str):
        return [text(item, f"{key}[{index}]") for index, item in enumerate(sequence(value, key, "text or a list"))]
    if needs_shell(value):
        return ["sh", "-c", value]
    try:
        return shlex.split(value)
    except ValueError as error:
        raise NotConvertible(f"{key} cannot be split into words: {error}") from error


def size_of(value: object, key: str, *, plain: int = 1, decimal: bool = True) -> int:
    """Return bytes, rounded up to whole MiB. Raises NotConvertible.

    `plain` is the unit of a bare number in bytes; `decimal` says whether "M" without "i" is 10^6 and not 2^20.
    """
    content = text(value, key).strip().removesuffix("+")
    match = _SIZE.fullmatch(content)
    if match is None:
        raise NotConvertible(f'{key} "{content[:80]}" is no size')
    base = 1000 if decimal and not match[4] else 1024
    unit: int = base ** _POWERS[match[3].lower()] if match[3] else plain
    fraction = match[2] or ""
    parts: int = 10 ** len(fraction)
    size = -(-int(match[1] + fraction) * unit // parts)
    return -(-size // _MIB) * _MIB


def only(items: Mapping[str, Any], what: str) -> tuple[str, Any]:
    """Return the one entry of a mapping. Raises NotConvertible for none or several, by their names."""
    if len(items) != 1:
        named = f" ({', '.join(str(name)[:40] for name in list(items)[:8])})" if items else ""
        raise NotConvertible(f"it describes {len(items)} {what}s{named}, and a job is one container")
    return next(iter(items.items()))


def _called(value: object) -> str:
    """Return what kind of value stands in a file, in words."""
    kinds = {type(None): "empty", bool: "true or false", int: "a number", str: "text", list: "a list"}
    return kinds.get(type(value), "a mapping")


def _pairs(value: object, key: str) -> dict[str, Any]:
    """Return the names and values of an environment, written as a mapping or as a list of K=V."""
    if value is None or isinstance(value, dict):
        return mapping(value, key)
    pairs: dict[str, Any] = {}
    for index, item in enumerate(sequence(value, key, "a mapping or a list of K=V")):
        name, equals, content = text(item, f"{key}[{index}]").partition("=")
        pairs[name] = content if equals else None
    return pairs


def _slug(model: str, vram: int) -> str:
    """Return the slug of a model in any spelling, "" for one that is not known.

    A name without its memory ("A100") is the least of its kind, or the least that has `vram` bytes.
    """
    wanted = re.sub("^(nvidia|tesla|geforce|amd|instinct|radeon)+", "", re.sub("[^a-z0-9]", "", model.lower()))
    plain = {re.sub("[^a-z0-9]", "", slug): slug for slug in TIERS}
    if wanted in plain:
        return plain[wanted]
    kinds = {
        int(found[1]): slug
        for squashed, slug in plain.items()
        if wanted and (found := re.fullmatch(re.escape(wanted) + "([0-9]{1,4})gb", squashed))
    }
    fitting = [size for size in sorted(kinds) if size << 30 >= vram]
    return kinds[fitting[0]] if fitting else ""
