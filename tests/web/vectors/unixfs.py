"""Trees by recipe with the CIDs that the library gives them; names that are refused, disarmed, or taken for one.

A file of a recipe is [size, seed], its byte `i` being (7 * seed + i * i) % 251; a folder is a list of [name, recipe];
{"many": count, "prefix", "size", "seed"} is a folder of equal files whose names are the prefix and a number.
"""

from __future__ import annotations

import hashlib
import random
import tempfile
from pathlib import Path
from typing import Any

from hearth.base.errors import HearthError
from hearth.storage import cid as cids
from hearth.storage import unixfs
from hearth.storage.cid import Cid
from hearth.storage.unixfs import Link
from hearth.storage.unixfs.names import Names, _caseless
from tests.web.refused import code_of
from tests.web.vectors import _chance
from tools.web_tables.unixfs import LATER

_SCRIPTS = (
    "\u00fcmlaut",
    "\u0416\u0443\u043a",
    "\u03b1\u03c3\u03c2",
    "\u65e5\u672c\u8a9e",
    "\ud55c\uad6d\uc5b4",
    "\u0639\u0631\u0628\u064a",
    "\u0939\u093f\u0928\u094d\u0926\u0940",
)
_ORDER = (
    "\uffee",
    "\U0001f525",
    "\ue000",
    "\U00010000",
    "\ufb00x",
    "\U0010fffd",
    "z",
    "Z",
    "a",
    "a-b",
    "a.b",
    "aa",
    "~",
)
_KEYS = ("__proto__", "constructor", "toString", "hasOwnProperty", "length", "10", "9", "then")


def cases() -> dict[str, Any]:
    """Return the vectors."""
    with tempfile.TemporaryDirectory(prefix="hearth-vectors-") as folder:
        trees = [_imported(Path(folder) / str(at), recipe) for at, recipe in enumerate(_trees())]
        files = [_split(Path(folder) / f"file-{at}", *one) for at, one in enumerate(_files())]
    chance = _chance.source("names")
    hashed = [chance.randbytes(size) for size in (*range(40), 63, 64, 65, 255)]
    return {
        "trees": trees,
        "files": files,
        "directories": [_directory(*one) for one in ((5459, 64), (5459, 65), (100, 1), (7000, 1))],
        "hashes": [{"name": f"0x{raw.hex()}", "hash": str(unixfs.hash_name(raw))} for raw in hashed],
        "names": [{"name": f"0x{raw.hex()}", "parent": parent, **_named(raw, parent)} for raw, parent in _names()],
        "disarmed": [{"name": name, "place": unixfs.disarmed(name)} for name in _programs()],
        "pairs": [{"names": pair, "code": code_of(_both, *pair)} for pair in _pairs()],
        "caseless": [_folded(first, last) for first, last in _blocks()],
        "later": sorted(LATER),
    }


# ---- trees ----


def _trees() -> list[Any]:
    chance = _chance.source("trees")
    chunk = unixfs.CHUNK_BYTES
    sizes = (0, 1, 31, 32, 255, 1000, chunk - 1, chunk, chunk + 1, 2 * chunk, 3 * chunk + 7)
    many: dict[str, Any] = {"many": 300, "prefix": "copy-", "size": 1000, "seed": 1}
    plain = {"many": 2800, "prefix": "a-file-of-a-plain-directory-", "size": 3, "seed": 2}
    sharded = {"many": 3300, "prefix": "a-file-of-a-directory-that-is-sharded-", "size": 3, "seed": 3}
    trees: list[Any] = [[size, at] for at, size in enumerate(sizes)]
    trees += [[], [["empty", []], ["full", [["x", [1, 1]]]]], [["a", [["b", [["c", [["none", []]]]]]]]]]
    trees += [many, plain, sharded, [["large", sharded], ["x", [5, 5]]]]
    trees += [[[name, [at, at]] for at, name in enumerate(texts)] for texts in (_SCRIPTS, _ORDER, _KEYS)]
    trees += [[["a", [1, 1]], ["a0", []], ["a.b", [["a", [2, 2]]]], ["aB", [3, 3]]]]
    trees += [[[".hidden", [1, 1]], [" lead", [1, 2]], ["tail ", [1, 3]], ["...", [1, 4]], ["a+b%20&c=#?", [1, 5]]]]
    trees += [
        _nested(15, "d"),
        _nested(16, "d"),
        _nested(17, "d"),
        _nested(1, "x" * 255),
        _nested(2, "x" * 127),
        _nested(2, "x" * 128),
    ]
    # Refused by name, or as two names that some file systems take for one.
    refused = ["a\\b", "C:x", "a\u202eb", "\u200b", "a\nb", "\x7f", "\ufeffa", "a\xad"]
    trees += [[["ok", [1, 1]], [name, [1, 2]]] for name in refused]
    trees += [[[one, [1, 1]], [two, [1, 1]]] for one, two in (("Makefile", "makefile"), ("\u00fc", "u\u0308"))]
    trees += [[["sub", [["stra\u00dfe", []], ["STRASSE", [1, 1]]]]]]
    return trees + [_random(chance, 0) for _ in _chance.rows(8)]


def _nested(depth: int, name: str) -> Any:
    recipe: Any = [1, 1]
    for _ in range(depth):
        recipe = [[name, recipe]]
    return recipe


def _random(chance: random.Random, depth: int) -> Any:
    letters = "abcXYZ019-_ .\u00e9\u4e2d\U0001f600\u05d0"
    names = {"".join(chance.choices(letters, k=chance.randrange(1, 9))).strip(". ") for _ in range(chance.randrange(6))}
    chosen = sorted({name.casefold(): name for name in names if name}.values())
    folder = [
        [name, _random(chance, depth + 1) if depth < 3 and chance.random() < 0.4 else [chance.randrange(3000), at]]
        for at, name in enumerate(chosen)
    ]
    chance.shuffle(folder)
    return folder


def _imported(place: Path, recipe: Any) -> dict[str, Any]:
    _write(place, recipe)
    sink = _Sink()
    try:
        entry = unixfs.import_path(place, sink)
    except HearthError as error:
        return {"tree": recipe, "code": error.code}
    return {"tree": recipe, **_told(entry, sink)}


def _told(entry: unixfs.Entry, sink: _Sink) -> dict[str, Any]:
    return {
        "cid": str(entry.cid),
        "size": str(entry.size),
        "tsize": str(entry.tsize),
        "files": entry.files,
        "folders": entry.folders,
        "blocks": sink.count,
        "order": f"0x{sink.names.hexdigest()}",
    }


class _Sink:
    """Name blocks, and remember in which order they came."""

    def __init__(self) -> None:
        self.count = 0
        self.names = hashlib.sha256()

    def put_block(self, data: bytes, codec: int = cids.RAW) -> Cid:
        name = cids.of(data, codec)
        self.count += 1
        self.names.update(bytes(name))
        return name


def _write(place: Path, recipe: Any) -> None:
    if isinstance(recipe, dict):
        place.mkdir()
        for number in range(recipe["many"]):
            (place / f"{recipe['prefix']}{number}").write_bytes(_content(recipe["size"], recipe["seed"]))
    elif recipe and isinstance(recipe[0], int):
        place.write_bytes(_content(*recipe))
    else:
        place.mkdir()
        for name, inner in recipe:
            _write(place / name, inner)


def _content(size: int, seed: int) -> bytes:
    period = bytes((7 * seed + at * at) % 251 for at in range(251))
    return (period * (size // 251 + 1))[:size]


# ---- files with other constants, and directories at their limit ----


def _files() -> list[tuple[int, int, int]]:
    """Return (size, bytes of a chunk, links of a node) at which a file's tree changes its shape."""
    cases = []
    for chunk, links in ((1, 2), (7, 3), (256, 2), (100, 174)):
        rows = [0, 1, 2, links, *((links**2, links**3) if links < 10 else ())]
        cases += [(max(0, chunk * row + more), chunk, links) for row in rows for more in (-1, 0, 1)]
    return sorted(set(cases))


def _split(place: Path, size: int, chunk: int, links: int) -> dict[str, Any]:
    place.write_bytes(_content(size, 5))
    sink = _Sink()
    entry = unixfs.import_path(place, sink, chunk_bytes=chunk, links_per_node=links)
    return {"bytes": size, "chunk": chunk, "links": links, **_told(entry, sink)}


def _directory(count: int, last: int) -> dict[str, Any]:
    """Name a directory of `count` empty files with four digits, and one whose name is `last` times x."""
    child = cids.of(b"")
    links = [Link(child, b"%04d" % number, 0) for number in range(count)]
    sink = _Sink()
    name, tsize = unixfs.put_directory([*links, Link(child, b"x" * last, 0)], sink)
    return {"count": count, "last": last, "cid": str(name), "tsize": str(tsize), "blocks": sink.count}


# ---- names ----


def _names() -> list[tuple[bytes, str]]:
    texts = [
        "a",
        "",
        ".",
        "..",
        "...",
        "a/b",
        "/",
        "a\\b",
        "C:",
        "c:x",
        "1:x",
        "\u00e9:",
        "a:b",
        " ",
        "nul",
        "-rf",
        "~",
    ]
    texts += [
        "x" * 255,
        "x" * 256,
        "\u00e9" * 127,
        "\u00e9" * 128,
        "\U0001f600",
        "\ue000",
        "\ufffd",
        "\ufffe",
        "\U0010ffff",
    ]
    raws = [text.encode() for text in (*texts, *_SCRIPTS, *_ORDER, *_KEYS)]
    edges = {edge for first, last in _unseen() for edge in (first - 1, first, last, last + 1) if 0 <= edge < 0x110000}
    raws += [f"a{chr(edge)}b".encode() for edge in sorted(edges) if not 0xD800 <= edge < 0xE000]
    raws += [b"\xff", b"a\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82", b"\x80", b"C\xff:", b"/\xff"]
    deep = "/".join("d" * 15)
    places = [(raw, "") for raw in raws]
    places += [(b"x", deep), (b"x", f"{deep}/d"), (b"x" * 55, "n" * 199), (b"x" * 56, "n" * 199), (b"..", "a/b")]
    accented = "\u00e9".encode()
    return [*places, (accented * 27, "n" * 200), (accented * 28, "n" * 199), (b"x", "n" * 253), (b"x", "n" * 254)]


def _unseen() -> list[tuple[int, int]]:
    from tools.web_tables import text as table

    return list(table._unseen())


def _named(raw: bytes, parent: str) -> dict[str, Any]:
    try:
        return {"text": unixfs.check_name(raw, parent)}
    except HearthError as error:
        return {"code": error.code}


def _programs() -> list[str]:
    names = ".git .GIT .Git GIT~1 git~1 .git. .hg .envrc .vscode HEAD head Head. desktop.ini AUTORUN.INF ENVRC~12"
    names += (
        " CONFIG~1.TOM CONFIG~1.TOMX a~b x~1234567 toolong~1 .what ...x startup.m _darcs CVS git gitx header head.csv"
    )
    names += " .zarray .ZGROUP .zattrs. .metadata .zmetadata:x a.b~1 ~1 x~1. x~1.a renamed-.git mise.toml mise.toml:x"
    extra = [
        ".git ",
        ".git::$INDEX_ALLOCATION",
        ".\u017fvn",
        "HEAD ",
        "head. .",
        "\uff28ead",
        "\u212aEAD",
        "de\u017fktop.ini",
    ]
    return [
        *names.split(),
        *extra,
        "a\U0001f600~1",
        "\U0001f600" * 6 + "~1",
        "\U0001f600" * 7 + "~1",
        "hea\u0064\u0301",
    ]


def _pairs() -> list[list[str]]:
    same = [["A", "a"], ["\u00fc", "u\u0308"], ["stra\u00dfe", "STRASSE"], ["\u212b", "\u00e5"], ["\u03c3", "\u03c2"]]
    same += [
        ["\u1e9e", "ss"],
        ["\ufb03", "FFI"],
        ["\u0130", "i\u0307"],
        ["\u01c4", "\u01c6"],
        ["\u1f80", "\u1f00\u03b9"],
    ]
    same += [["\u13a0", "\uab70"], ["\u1c80", "\u0432"], ["\u0345", "\u03b9"], ["\u1fb3", "\u03b1\u03b9"], ["x", "x"]]
    same += [
        ["\ud55c", "\u1112\u1161\u11ab"],
        ["\U00010400", "\U00010428"],
        ["a\u0323\u0307", "a\u0307\u0323"],
        ["K", "\u212a"],
    ]
    other = [
        ["a", "b"],
        ["i", "\u0131"],
        ["I", "\u0131"],
        ["\u0130", "i"],
        ["\u2460", "1"],
        ["\uff21", "A"],
        ["\u00aa", "a"],
    ]
    other += [["\ufb06", "\ufb05x"], ["x", "x "], ["__proto__", "constructor"], ["\u00df", "s"], ["\u03b9", "i"]]
    return same + other


def _both(*names: str) -> None:
    seen = Names("here")
    for name in names:
        seen.add(name.encode())


def _blocks() -> list[tuple[int, int]]:
    """Return ranges of characters: small ones where letters are, large ones elsewhere."""
    small = [(first, first + 0xFFF) for first in range(0, 0x20000, 0x1000) if first != 0xD000]
    return [*small, (0xD000, 0xD7FF), (0x20000, 0x2FFFF), (0x30000, 0x10FFFF)]


def _folded(first: int, last: int) -> dict[str, Any]:
    """Name what all characters of a range are in canonical caseless form, but those that are younger."""
    chosen = [number for number in range(first, last + 1) if number not in LATER]
    text = "\0".join(_caseless(chr(number)) for number in chosen)
    return {"first": first, "last": last, "digest": f"0x{hashlib.sha256(text.encode()).hexdigest()}"}
