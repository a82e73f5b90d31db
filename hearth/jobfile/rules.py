"""Rules that hold for a spec as written and for the canonical document that a worker reads."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

from hearth.base.errors import BadCid, HearthError
from hearth.base.text import folded
from hearth.jobfile.problems import Location, Problem
from hearth.protocol.runtimes import RESERVED_ENV
from hearth.protocol.units import parse_duration
from hearth.protocol.zones import zone_of
from hearth.storage import cid

ONE_TEXT = "write one text, such as "
"""What helps where something else stands for a text; an example follows."""
CONSTANTS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
"""Words that YAML makes values of."""
_PLAIN_KEY = re.compile("[A-Za-z_][A-Za-z0-9_]*")
MAX_TEXT = 32_768
"""Characters in one string: an argument, a value of the environment."""
MAX_ITEMS = 1_024
"""Entries in one list or mapping."""
MAX_PATH = 255
MAX_PATH_DEPTH = 16

NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9 ._-]{0,63}$")
DECIMAL = re.compile(r"[0-9]{1,20}(\.[0-9]{1,20})?(e-?[0-9]{1,3})?")
_PART = r"[a-z0-9]+(?:[._-]+[a-z0-9]+)*"
IMAGE = re.compile(
    rf"(?=.{{1,255}}$)(?:[A-Za-z0-9.-]+(?::[0-9]{{1,5}})?/)?{_PART}(?:/{_PART})*"
    r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@sha256:[0-9a-f]{64})?",
)
DIGEST_IMAGE = re.compile(rf"(?:[A-Za-z0-9.-]+(?::[0-9]{{1,5}})?/)?{_PART}(?:/{_PART})*@sha256:[0-9a-f]{{64}}")
ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_SECRET_NAME = re.compile(r".*_(KEY|TOKEN)|KEY|TOKEN|.*(SECRET|PASSWORD|PASSWD|CREDENTIAL).*", re.IGNORECASE)
_PASSWORD = re.compile(r"://[^/?# \t\r\n:]*:[^/?# \t\r\n]+@")
"""Where a URL has a password; its scheme is left out, so that a long text takes no long time."""
COMPARED: Mapping[str, tuple[frozenset[str], frozenset[str]]] = {
    "hash": (frozenset(), frozenset()),
    "allclose": (frozenset({"file"}), frozenset({"atol", "rtol"})),
    "cosine": (frozenset({"file", "minimum"}), frozenset()),
    "metric": (frozenset({"file", "field", "atol"}), frozenset()),
}
"""The fields that each kind of comparator needs, and those that it takes besides."""


def is_plain_key(key: str) -> bool:
    """Say whether a key that is written without quotes is read as that key."""
    return _PLAIN_KEY.fullmatch(key) is not None and key not in CONSTANTS


def is_secret_name(name: str) -> bool:
    """Say whether a variable of this name holds what must not be public."""
    return _SECRET_NAME.fullmatch(name) is not None


def has_password(text: str) -> bool:
    """Say whether a text is or holds a URL with a password."""
    return _PASSWORD.search(text) is not None


def source(src: str, where: Location) -> Iterator[Problem]:
    """Check what names a thing to take in: a path, ipfs://CID[/path], or (inputs only) a URL."""
    scheme, separator, rest = src.partition("://")
    if not src:
        yield Problem(where, "is empty", "name a path, ipfs://CID or https://...")
    elif not separator:
        return
    elif scheme == "ipfs":
        try:
            cid.parse(rest.partition("/")[0])
        except BadCid as error:
            yield Problem(where, error.message, error.hint, error.code)
    elif scheme not in ("http", "https"):
        yield Problem(where, f"{scheme}:// is not supported", "use a path, ipfs://CID or https://...")
    elif where[0] != "inputs":
        yield Problem(where, f"{where[0]} is a path or ipfs://CID, not a URL", "download it first")
    elif has_password(src):
        yield Problem(where, "is a URL with a password, and a job is public", "download it first, and name the file")


def env(pairs: Mapping[str, str], where: Location) -> Iterator[Problem]:
    """Check names in the environment: everything in a spec is public, for ever."""
    for name in pairs:
        if not ENV_NAME.fullmatch(name):
            yield Problem((*where, name), "is not a name of an environment variable", "use A-Z, 0-9 and _")
        elif is_secret_name(name):
            yield Problem(
                (*where, name),
                "looks like a secret, and the environment of a job is public",
                "all that a job brings is public in this version, inputs too: keep secrets out of it",
                "SECRET_IN_ENV",
            )
        elif name.upper().startswith(RESERVED_ENV):
            prefix = next(prefix for prefix in RESERVED_ENV if name.upper().startswith(prefix))
            yield Problem((*where, name), f"names that start with {prefix} are the worker's", "choose another name")


def env_values(pairs: Mapping[str, str], where: Location) -> Iterator[Problem]:
    """Check what variables hold, where the rule of their names lets them be; a document of before may hold more."""
    for name, value in pairs.items():
        if has_password(value) and not is_secret_name(name):
            yield Problem(
                (*where, name),
                "is a URL with a password, and the environment of a job is public",
                "all that a job brings is public in this version, inputs too: keep secrets out of it",
                "SECRET_IN_ENV",
            )


def places(entries: Sequence[tuple[Location, str]], root: str) -> Iterator[Problem]:
    """Check paths inside the job: absolute, below `root` (for /out also equal to it), none inside another."""
    seen: dict[str, str] = {}
    for where, path in entries:
        fault = _path_fault(path, root)
        if fault:
            yield Problem(where, f'"{path[:300]}" {fault}', f"write an absolute path such as {root}/data")
            continue
        # Two names that one file system holds apart and another does not are one name.
        name = folded(path)
        for other, shown in seen.items():
            if name == other:
                yield Problem(where, f'"{path}" is given twice ("{shown}")', "give each its own path")
            elif name.startswith(f"{other}/") or other.startswith(f"{name}/"):
                yield Problem(where, f'"{path}" and "{shown}" lie inside each other', "give each its own folder")
        seen[name] = path


def folder_below(path: str, root: str, where: Location) -> Iterator[Problem]:
    """Check the path of a folder inside the job: as `places` does, and not `root` itself."""
    yield from places([(where, path)], root)
    if path == root:
        yield Problem(where, f"is {root} itself", f"name a folder in it, such as {root}/data")


def _path_fault(path: str, root: str) -> str:
    parts = path.split("/")
    if not path.startswith("/"):
        return "is not absolute"
    if any(part in ("", ".", "..") for part in parts[1:]):
        return 'holds an empty part, "." or ".."'
    if any(unicodedata.category(character).startswith("C") or character == "\\" for character in path):
        return "holds a control character or a backslash"
    if len(path.encode()) > MAX_PATH or len(parts) - 1 > MAX_PATH_DEPTH:
        return f"is longer than {MAX_PATH} bytes or deeper than {MAX_PATH_DEPTH}"
    if root == "/in" and parts[1:3] == ["in", "parents"]:
        return "is kept for outputs of the jobs that this one waits for, which cannot be inputs in this version"
    if not (path.startswith(f"{root}/") or (root == "/out" and path == root)):
        return f"is not under {root}"
    return ""


def regions(countries: Sequence[str], where: Location) -> Iterator[Problem]:
    """Check a list of countries."""
    seen: set[str] = set()
    for index, country in enumerate(countries):
        try:
            zone_of(country)
        except HearthError as error:
            yield Problem((*where, index), error.message, error.hint, error.code)
        code = country.strip().lower()
        if code in seen:
            yield Problem((*where, index), f'"{country}" is given twice', "remove one")
        seen.add(code)


def compare(values: Mapping[str, str], where: Location) -> Iterator[Problem]:
    """Check a comparator: which fields its kind needs, and which it takes besides. Empty text counts as absent."""
    kind = values["kind"]
    needed, optional = COMPARED[kind]
    given = {name for name, value in values.items() if value} - {"kind"}
    for name in sorted(needed - given):
        yield Problem(where, f"kind {kind} needs {name}", f"add {name}")
    for name in sorted(given - needed - optional):
        yield Problem((*where, name), f"kind {kind} has no {name}", f"remove {name}")
    if kind == "allclose" and not given & optional:
        yield Problem(where, "kind allclose needs atol or rtol", 'add atol: "1e-5"')
    if "file" in given:
        yield from places([((*where, "file"), values["file"])], "/out")
        suffix = ".json" if kind == "metric" else ".npy"
        if kind != "hash" and not values["file"].endswith(suffix):
            yield Problem((*where, "file"), f"kind {kind} compares {suffix} files", f"name a {suffix} file")


def deadline(text: str) -> int | datetime | None:
    """Return seconds from now, or a moment (in UTC), or None for anything else."""
    try:
        return parse_duration(text)
    except HearthError:
        pass
    try:
        moment = datetime.fromisoformat(text)
        return moment.astimezone(UTC) if moment.tzinfo is not None and "T" in text else None
    except (ValueError, OverflowError):  # OverflowError: in UTC it is before the year 1, or after 9999
        return None
