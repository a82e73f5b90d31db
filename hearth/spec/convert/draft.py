"""A job file in the making, the list of what could not be carried over, and the words that several formats share."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from hearth.protocol.gpu_tiers import TIERS
from hearth.protocol.units import format_size
from hearth.spec import rules
from hearth.spec.sugar import needs_shell

NO_NETWORK: Final = "a job has no network"
NO_COUNTERPART: Final = "a job has nothing like it"
_SIZE: Final = re.compile(r"([0-9]{1,12})(?:\.([0-9]{1,9}))? ?([kKmMgGtT]?)(i?)[bB]?")
_POWERS: Final = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_MIB: Final = 1 << 20


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

    def env(self, value: object, key: str) -> None:
        """Take the environment over: a mapping, or a list of K=V; what a job may not hold is noted."""
        taken = self.job.get("env", {})
        for name, content in _pairs(value, key).items():
            where = f"{key}.{name}"
            problem = next(rules.env({name: ""}, ()), None)
            if problem is not None:
                self.note(where, problem.message)
            elif content is None:
                self.note(where, "has no value in the file, and a job takes none from your shell: write it in env")
            else:
                taken[name] = text(content, where)
                if re.search(r"(?<!\$)\$[A-Za-z_{]", taken[name]):
                    self.note(where, "is taken as it stands: nothing replaces the variable in it")
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

    def gpu(self, count: int, models: Iterable[str], key: str, vram: int = 0) -> None:
        """Ask for GPUs: of the weakest of these models or a better one, with at least `vram` bytes each."""
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
        if tiers:
            need["tier"] = min(tiers, key=lambda slug: TIERS[slug])
            if len(tiers) > 1:
                self.note(key, f"several models became {need['tier']}, the weakest of them, or any better one")
        if vram:
            need["vram"] = format_size(vram)
        self.need("gpu", need)

    def input(self, src: str, target: str, key: str) -> None:
        """Take over data that is mounted at `target`; a job reads it below /in."""
        path = "/" + "/".join(part for part in target.split("/") if part not in ("", ".", "..", "~"))
        dst = path if path.startswith("/in/") else f"/in{path}" if path != "/" else "/in/data"
        self.job.setdefault("inputs", []).append({"src": src, "dst": dst})
        if dst != target:
            self.note(key, f"{src[:120]} is read at {dst}, not {target[:120]}: change the program or its arguments")

    def output(self, target: str, key: str) -> None:
        """Take over a folder of results; a job writes them to /out."""
        if target != "/out" and not target.startswith("/out/"):
            self.note(key, f"results go to /out, not {target[:120]}: change the program or its arguments")
            target = "/out"
        outputs = self.job.setdefault("outputs", [])
        if target not in [output["path"] for output in outputs]:
            outputs.append({"path": target, "required": False})


def mapping(value: object, key: str) -> dict[str, Any]:
    """Return a mapping, or an empty one for nothing. Raises NotConvertible."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise NotConvertible(f"{key} is not a mapping")
    return value


def sequence(value: object, key: str) -> list[Any]:
    """Return a list, or an empty one for nothing. Raises NotConvertible."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise NotConvertible(f"{key} is not a list")
    return value


def text(value: object, key: str) -> str:
    """Return text; a number or a truth value as it is written. Raises NotConvertible."""
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str | int):
        raise NotConvertible(f"{key} is not text")
    return str(value)


def count(value: object, key: str, default: int = 1) -> int:
    """Return a whole number. Raises NotConvertible."""
    if value is None:
        return default
    content = text(value, key)
    if not re.fullmatch("[0-9]{1,6}", content):
        raise NotConvertible(f'{key} "{content[:80]}" is no whole number')
    return int(content)


def words(value: object, key: str) -> list[str]:
    """Return a command as a list; text that needs a shell gets one. Raises NotConvertible."""
    if value is None:
        return []
    if not isinstance(value, str):
        return [text(item, key) for item in sequence(value, key)]
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


def _pairs(value: object, key: str) -> dict[str, Any]:
    """Return the names and values of an environment, written as a mapping or as a list of K=V."""
    if not isinstance(value, list):
        return mapping(value, key)
    pairs: dict[str, Any] = {}
    for item in value:
        name, equals, content = text(item, key).partition("=")
        pairs[name] = content if equals else None
    return pairs


def _slug(model: str, vram: int) -> str:
    """Return the slug of a model in any spelling, "" for one that is not known.

    A name without its memory ("A100") is the least of its kind, or the least that has `vram` bytes.
    """
    wanted = re.sub("^(nvidia|tesla|geforce)+", "", re.sub("[^a-z0-9]", "", model.lower()))
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
