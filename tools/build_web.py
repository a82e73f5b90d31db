"""Build the page into hearth/web/app, or check that what stands there is what the sources give.

    python -m tools.build_web            build, and write the folder's CID into hearth/web/app.cid
    python -m tools.build_web --check    build in another folder and compare every byte; then the budgets and the rules

The build depends on the locked tools and the sources alone: no hash of a machine, a folder or an hour is in it, so that
whoever builds it gets the same CID. What the page is made of, with licences, is written into its licenses.txt.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from hearth.web.files import APP, INDEX, read_page
from tools.check_rooms import circles
from tools.vyper_files import ROOT

WEB = ROOT / "web"
NODE = Path(shutil.which("node") or "node")
FILES = "files.json"
LICENSES = "licenses.txt"

FIRST_JS = 60_000
FIRST_CSS = 8_000
LAZY = 30_000
"""Budgets in bytes of gzip: of what the first page loads, and of each part that is loaded later."""

RULES = (
    (r"\binnerHTML\b|\bouterHTML\b|insertAdjacentHTML|dangerouslySetInnerHTML|document\.write", "text nodes only"),
    (r"\beval\s*\(|new Function\b|setTimeout\(\s*[\"'`]", "no code from text"),
    (r"https?://(?!www\.w3\.org/|127\.0\.0\.1|localhost)[a-z0-9-]+\.[a-z]", "no address of anybody's"),
    (r"\bparseFloat\b|\btoLocaleString\b|\bIntl\.NumberFormat\b", "numbers are exact and need no language"),
    (r": any\b|<any\b|\bas any\b", "a type says what it is"),
    (r"\bwindow\.ethereum\b", "wallets are found by EIP-6963"),
    (r"Math\.random", "chance is of crypto.getRandomValues"),
)
"""What no source of the page may hold, and why."""
PURE = (
    r"\bfetch\s*\(|\b(document|window|globalThis|navigator)\.[a-z]+\(|\blocalStorage\b|\bindexedDB\b|Date\.now"
    r"|new Date\(\)|\bset(Timeout|Interval)\b",
    "is pure",
)
"""What nothing in src/core may hold: it is tested without a browser."""
_KEPT = re.compile(
    r"(?m)^  (?:(?:private|readonly) )*(?P<name>#?\w+)"
    r"(?:: (?!readonly |Readonly)[^=\n]+)? = (?:new (?:Map|Set)\b|\[).*;$"
)
"""A collection that an object keeps, and may go on changing: its type does not say that it is replaced."""
LAYERS = ("generated", "core", "chain", "data", "wallet", "ui")
"""The folders of src, from the lowest: each may import from itself and from those before it."""
APART = ("offline",)
"""Folders whose scripts stand by themselves: they import from themselves alone, and nobody from them."""
_COMMENT = re.compile(r"^\s*(//|\*|/\*)")
_IMPORT = re.compile(r"""(?m)(?:^(?:import|export)\b[^"';]*?\s?|\bimport\s*\(\s*)["'](?P<path>\.{1,2}/[^"']+)["']""")
_READ = re.compile(
    r"(?m)^import\s+(?:type\s+)?(?:\{(?P<names>[^}]*)\}|\*\s*as\s+(?P<whole>\w+))"
    r"""\s*from\s*["'][^"']*/generated/(?P<table>[\w/-]+)["']"""
)


def build(out: Path) -> None:
    """Build the page into a folder that is made anew."""
    vite = [str(NODE), "node_modules/vite/bin/vite.js", "build", "--logLevel", "warn"]
    subprocess.run(vite, cwd=WEB, check=True, env={**os.environ, "HEARTH_WEB_OUT": str(out), "NODE_ENV": "production"})
    (out / LICENSES).write_text(_licenses(), encoding="utf-8")
    files = {path.relative_to(out).as_posix(): path for path in out.rglob("*") if path.is_file()}
    # By the names the page reads itself, and names its own CID; by the digests (sha2-256) a browser keeps it whole.
    listed = {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in sorted(files.items())}
    (out / FILES).write_text(json.dumps(listed, indent=0) + "\n", encoding="ascii")


def _licenses() -> str:
    """Return the licence of every package that the page runs with, those that came along included."""
    lock = json.loads((WEB / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    parts = []
    for place, package in sorted(lock.items()):
        if not place or package.get("dev") or package.get("optional") or package.get("peer"):
            continue
        folder = WEB / place
        texts = sorted(folder.glob("LICEN[CS]E*")) or sorted(folder.glob("license*"))
        text = texts[0].read_text(encoding="utf-8") if texts else f"License: {package.get('license', 'not said')}\n"
        parts.append(f"{place.rpartition('node_modules/')[2]} {package['version']}\n\n{text.strip()}\n")
    return "What Hearth's page is made of, beside Hearth itself (Apache-2.0).\n\n" + "\n----\n\n".join(parts)


def differences(built: Path, present: Path) -> list[str]:
    """Return the files that are not the same in both folders."""
    here, there = (
        {path.relative_to(folder): path for path in folder.rglob("*") if path.is_file()} for folder in (built, present)
    )
    return [
        str(name)
        for name in sorted({*here, *there})
        if name not in here or name not in there or here[name].read_bytes() != there[name].read_bytes()
    ]


def over_budget(folder: Path) -> Iterator[str]:
    """Say which part of the page is larger than it may be, in bytes of gzip."""
    sizes = sizes_of(folder)
    first = first_files(folder)
    for suffix, most in ((".js", FIRST_JS), (".css", FIRST_CSS)):
        size = sum(sizes[name] for name in first if name.endswith(suffix))
        if size > most:
            yield f"the first page loads {size} bytes of {suffix}, {most} are allowed"
    for name, size in sizes.items():
        if name.endswith(".js") and name not in first and size > LAZY:
            yield f"{name} has {size} bytes, {LAZY} are allowed"
    if fonts := [name for name in sizes if name.endswith((".woff", ".woff2", ".ttf"))]:
        yield f"fonts: {', '.join(fonts)}"


def sizes_of(folder: Path) -> dict[str, int]:
    """Return each file's bytes as gzip packs them."""
    return {
        path.relative_to(folder).as_posix(): len(gzip.compress(path.read_bytes(), 9, mtime=0))
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def first_files(folder: Path) -> set[str]:
    """Return what the first page loads: what the document names, and what those import at once."""
    found: set[str] = set()
    waiting = re.findall(r'(?:src|href)="\./([^"]+)"', (folder / INDEX).read_text(encoding="utf-8"))
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        if name.endswith(".js"):
            text = (folder / name).read_text(encoding="utf-8")
            waiting += re.findall(r'(?:^|[;}\s])(?:import|export)\s*(?:[^"()]*?from\s*)?"\./([^"]+)"', text)
    return found


def broken_rules(web: Path = WEB) -> Iterator[str]:
    """Say which source holds what none may, or imports from a layer above it or in a circle, and which table nobody
    reads."""
    graph: dict[str, set[str]] = {}
    for path in sorted((web / "src").rglob("*.ts*")):
        inner = path.relative_to(web / "src").parts[0]
        text = path.read_text(encoding="utf-8")
        where = f"web/{path.relative_to(web).as_posix()}"
        graph[where] = set()
        for number, named in imports(text):
            graph[where] |= {
                f"web/{target.relative_to(web).as_posix()}"
                for ending in ("", ".ts", ".tsx")
                if (target := Path(os.path.normpath(path.parent / f"{named}{ending}"))).is_file()
            }
            if other := _above(inner, path, named, web / "src"):
                yield f"{where}:{number}: {inner} imports from {other}: {named}"
        if inner == "generated":
            continue
        for number, line in enumerate(text.splitlines(), 1):
            if _COMMENT.match(line):
                continue
            for pattern, why in (*RULES, *((PURE,) if inner == "core" else ())):
                if re.search(pattern, line):
                    yield f"{where}:{number}: {why}: {line.strip()[:80]}"
        yield from (f"{where}:{number}: {why}" for number, why in handed_out(text))
    yield from (f"circle: {' -> '.join(circle)}" for circle in circles(graph))
    yield from unread(web)


def handed_out(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line of each collection that a class hands out though it may go on changing it, and what is wrong.

    Whatever a page memoises over it would stay as it was: a map that has grown is the same map.
    """
    for kept in _KEPT.finditer(text):
        name, line = kept["name"], text.count("\n", 0, kept.start()) + 1
        if not name.startswith("#") and "private" not in kept[0]:
            yield line, f"{name} is changed in place where everybody sees it: keep it as #{name}, hand out a copy"
        for given in re.finditer(rf"(?:\breturn|=>|[:,{{?]|\?\?)\s*this\.{name}(?=\s*(?:[;,}}:\n]|\?\?))", text):
            at = text.count("\n", 0, given.start()) + 1
            yield at, f"this.{name} is handed out, and changed in place after that: hand out a copy"


def imports(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the path of everything beside it that a module imports or exports on, types and parts too."""
    for found in _IMPORT.finditer(text):
        yield text.count("\n", 0, found.start("path")) + 1, found["path"]


def _above(inner: str, path: Path, named: str, src: Path) -> str | None:
    """Return the folder that an import comes from, None where it may."""
    target = Path(os.path.normpath(path.parent / named))
    other = target.relative_to(src).parts[0] if target.is_relative_to(src) else named
    if other == inner and inner in (*LAYERS, *APART):
        return None
    below = LAYERS[: LAYERS.index(inner)] if inner in LAYERS else ()
    return None if other in below else other


def unread(web: Path = WEB) -> Iterator[str]:
    """Say which constants of the tables no module and no test of the page reads by its name."""
    read: set[tuple[str, str]] = set()
    for path in sorted((*(web / "src").rglob("*.ts*"), *(web / "test").rglob("*.ts"))):
        text = path.read_text(encoding="utf-8")
        for found in _READ.finditer(text):
            pattern = rf"\b{found['whole']}\.(\w+)" if found["whole"] else r"(\w+)(?:\s+as\s+\w+)?\s*(?:,|$)"
            read |= {(found["table"], name) for name in re.findall(pattern, found["names"] or text)}
    tables = web / "src" / "generated"
    for path in sorted(tables.rglob("*.ts")):
        table = path.relative_to(tables).with_suffix("").as_posix()
        for name in re.findall(r"^export const (\w+)", path.read_text(encoding="utf-8"), re.MULTILINE):
            if (table, name) not in read:
                mend = f"leave it out in tools/web_tables/{table.partition('/')[0]}.py"
                yield f"web/src/generated/{table}.ts: nobody reads {name}: {mend}"


def check() -> list[str]:
    """Return everything that is wrong with the page as it was built, and with its sources."""
    with tempfile.TemporaryDirectory(prefix="hearth-web-") as folder:
        built = Path(folder) / "elsewhere" / "app"
        build(built)
        wrong = [f"hearth/web/app/{name}: differs from the sources; make web" for name in differences(built, APP)]
        named = APP.with_suffix(".cid").read_text(encoding="ascii").strip()
        if read_page(built).cid != named:
            wrong.append(f"hearth/web/app.cid names {named}; make web")
        return [*wrong, *over_budget(built), *broken_rules()]


def main() -> int:
    """Exit 1 where --check finds something."""
    parser = argparse.ArgumentParser(prog="python -m tools.build_web", description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="build elsewhere and compare; write nothing here")
    if parser.parse_args().check:
        wrong = check()
        print("\n".join(wrong), file=sys.stderr, end="\n" if wrong else "")
    else:
        build(APP)
        wrong = []
        APP.with_suffix(".cid").write_text(read_page(APP).cid + "\n", encoding="ascii")
    sizes, first = sizes_of(APP), first_files(APP)
    loads = ", ".join(
        f"{sum(sizes[name] for name in first if name.endswith(suffix)):,} B of {suffix}" for suffix in (".js", ".css")
    )
    print(
        f"build_web: {read_page(APP).cid}, {len(sizes)} files; gzip: the first page loads {loads}; {len(wrong)} wrong"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
