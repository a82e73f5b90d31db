"""The sources of a job file: local paths, URLs, CIDs and image tags, named by content before anything is stored."""

from __future__ import annotations

import hashlib
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from hearth.base.errors import BlockMissing, NotFoundError, SpecError, StorageError, TooLarge, UnsafePath
from hearth.base.files import expand, open_still
from hearth.base.found import IGNORE_FILE
from hearth.base.text import one_line, quoted
from hearth.config.settings import DEFAULT_TIMEOUT
from hearth.protocol.runtimes import MAX_INPUT_ENTRIES
from hearth.storage import ignore

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hearth.jobfile import Blob, LoadedSpec
    from hearth.storage.stores import Store
    from hearth.storage.unixfs import Ignore, Progress

MAX_URL_BYTES: Final = 8 << 30
_SHOWN: Final = 12
"""Names of one folder that are told."""
COMMAND_LINE: Final = "command line"
"""Where a spec of `hearth run` says that it comes from."""


class Allowed(NamedTuple):
    """What a job may bring besides the files of its own folder and of the internet, all of which becomes public.

    `outside` are files that lie, or lead by a link, outside the job file's folder, and of a command line every one that
    a link leads to; `private` is what a URL in a private network answers. Both are listed where they are taken.
    `private` lets an image's registry there be asked too.
    """

    outside: bool = False
    private: bool = False


NOTHING_MORE: Final = Allowed()


class Sources:
    """What a spec names, as it was when it was read. URLs are fetched into `scratch`, which must outlive this.

    `seconds` is the time for all URLs together.
    """

    def __init__(
        self,
        loaded: LoadedSpec,
        store: Store,
        scratch: Path,
        *,
        allowed: Allowed = NOTHING_MORE,
        seconds: float = DEFAULT_TIMEOUT,
        kept: Sequence[Path] = (),
    ) -> None:
        """Look where its paths lead, and name nothing yet. Raises SpecError NO_SOURCE, OWN_HOME, SECRET_FILE, OUTSIDE.

        `kept` are files and folders that no job takes, and that are left out of every folder, as secrets are
        (`storage.ignore.ALWAYS`).
        """
        self._loaded = loaded
        self._store = store
        self._scratch = scratch
        self._allowed = allowed
        self._seconds = seconds
        self.blobs: dict[str, Blob] = {}
        self.lines: list[str] = []
        """What was taken from outside or from a private network, in words."""
        self._kept = tuple(Path(os.path.realpath(path)) for path in kept)
        self._entries = 0
        self._paths: dict[str, Path] = {}
        self._look()

    def _look(self) -> None:
        """Resolve every path, and refuse what leads outside the job file's folder, all of it at once.

        What the command itself names lies where it says, outside or not; none of it may lead over a link.
        """
        from hearth.jobfile import local_sources
        from hearth.jobfile.problems import Problem, field_name

        base = Path(os.path.realpath(self._loaded.folder))
        typed = self._loaded.source.name == COMMAND_LINE and not self._loaded.source.lines
        own, secret, outside = [], [], []
        for where, src in local_sources(self._loaded.spec):
            if _is_url(src) or src.startswith("ipfs://"):
                continue
            path = self._paths[src] = self._resolved(src, field_name(where))
            if any(_lies_in(path, one) for one in self._kept_from(path, base)):
                hint = "copy what may be public to another folder, and name it there"
                said = f"{_leads(src, path)} is of the settings and keys of your own Hearth, which no job takes"
                own.append(Problem(where, said, hint, "OWN_HOME"))
            inside = path == base or base in path.parents
            if (name := _secret_in(path, base) or _secret_in(self._written(src), base)) is not None:
                hint = "where it may be public, copy it to another name, and name that"
                said = f"{_leads(src, path)} looks like a secret ({name}); all that a job brings is public"
                secret.append(Problem(where, said, hint, "SECRET_FILE"))
                continue
            linked = typed and path != self._written(src)
            place = "" if typed or not inside else _place_of_tokens(path, base)
            if inside and not linked and not place:
                continue
            if typed and not linked:
                self.lines.append(f"takes {path}, from outside {base}: the command names it")
                continue
            place = place or "behind a link"
            self.lines.append(f"takes {path}, {place if inside else f'from outside {base}'} (--allow-outside)")
            why = f"lies {place}" if inside else f"lies outside the job's folder {base}"
            hint = "where it is meant to be public, add --allow-outside; else copy it beside the job file"
            outside.append(Problem(where, f"{_leads(src, path)} {why}", hint, "OUTSIDE"))
        refused = own or [*secret, *([] if self._allowed.outside else outside)]
        if refused:
            raise self._loaded.source.refuse(refused)
        for path in dict.fromkeys(self._paths.values()):
            self.lines += [
                f"leaves {one} out of {path}: it is of your own Hearth, and no job takes it"
                for one in self._kept
                if path in one.parents and os.path.lexists(one)
            ]

    def _kept_from(self, path: Path, base: Path) -> tuple[Path, ...]:
        """Return what no job takes; a job that somebody wrote into a folder of the home may take that folder's files.

        Never keys or passwords, which are named beside the home.
        """
        if path == base or base in path.parents:
            return tuple(one for one in self._kept if one not in base.parents)
        return self._kept

    def _resolved(self, src: str, field: str) -> Path:
        """Return where a path leads, with every link on its way followed. Raises SpecError NO_SOURCE."""
        try:
            path = self._loaded.folder / expand(Path(src))
        except ValueError as error:
            raise SpecError(f"{src}: {error}", hint="write its path out, from /", code="NO_SOURCE") from error
        try:
            return path.resolve(strict=True)
        except (OSError, RuntimeError) as error:  # the latter is a loop of links
            missing = isinstance(error, FileNotFoundError)
            why = f"there is no {path}" if missing else f"{path} cannot be read: {error}"
            hint = "correct the path, which counts from the job file's folder" if missing else f"ls -l {path}"
            raise self._loaded.located(
                SpecError(f"{field}: {why}", hint=hint, code="NO_SOURCE", field=field)
            ) from error

    def _written(self, src: str) -> Path:
        """Return the path that a text spells, with no link followed but those above the working and the home folder."""
        path = Path(src)
        if src.startswith("~"):
            first, *rest = path.parts
            return Path(os.path.abspath(os.path.join(os.path.realpath(expand(Path(first))), *rest)))
        return Path(os.path.abspath(os.path.join(os.path.realpath(self._loaded.folder), path)))

    def name(self, src: str, *, field: str, workdir: bool) -> Blob:
        """Return the CID and size of a source, without storing any of it. Each source of a job is named once.

        Raises SpecError TOO_MANY_FILES, StorageError URL_DOWN, URL_PRIVATE, TOO_LARGE, and what reading a CID raises.
        """
        from hearth.jobfile import Blob
        from hearth.storage import unixfs

        if src.startswith("ipfs://"):
            try:
                self.blobs[src] = self._stored(src, field)
            except (StorageError, NotFoundError) as error:
                self._loaded.place(error, field)
                if isinstance(error, BlockMissing):
                    error.hint = "correct the CID, or bring its blocks with hearth store import FILE; hearth doctor"
                raise
            return self.blobs[src]
        if _is_url(src):
            self._fetch(src, field)
        path = self._paths[src]
        left: list[str] = []
        try:
            entry = unixfs.name_path(path, ignore=self._rules(path, workdir, left), still=True)
        except (NotFoundError, StorageError) as error:
            if workdir and isinstance(error, UnsafePath):
                error.hint = f"leave it out with a rule in {IGNORE_FILE}, or {error.hint}"
            if path.is_dir():
                error.message = f"in {src}, {error.message}"
            self._loaded.place(error, field)
            raise
        if left:
            more = f" and {len(left) - _SHOWN} more" if len(left) > _SHOWN else ""
            names = ", ".join(map(one_line, left[:_SHOWN]))
            self.lines.append(f"leaves {names}{more} out of {path}: no job takes what may hold keys or tokens")
        self._count(entry.files + entry.folders, field)
        self.blobs[src] = Blob(cid=str(entry.cid), size=entry.size)
        return self.blobs[src]

    def _fetch(self, url: str, field: str) -> None:
        """Fetch a URL once, whole, in what is left of the time for all of them."""
        from hearth.base.fetch import fetch

        began = time.monotonic()
        path = self._scratch.resolve() / hashlib.sha256(url.encode()).hexdigest()
        try:
            with path.open("wb") as out:
                found = fetch(url, out, seconds=self._seconds, most=MAX_URL_BYTES, allow_private=self._allowed.private)
        except StorageError as error:
            self._loaded.place(error, field)
            raise
        self._seconds -= time.monotonic() - began
        self._paths[url] = path
        if found.private:
            hosts = ", ".join(map(one_line, found.private))
            self.lines.append(f"takes what {hosts} answers, in a private network (--allow-private)")
        if not found.announced:
            self.lines.append(f"took {found.size} bytes as all of {one_line(url)}: its server does not say how many")

    def _stored(self, src: str, field: str) -> Blob:
        """Return the CID, in the one spelling that specs have, and the size of what lies in a store already."""
        from hearth.jobfile import Blob
        from hearth.storage import cid, unixfs

        root, path = cid.parse_uri(src)
        target = unixfs.resolve(root, path, self._store) if path else root
        if target.version == 0:
            # The CIDs that `ipfs add` prints where nothing else is asked for: the same block, an older spelling.
            target = replace(target, version=1)
        limits = unixfs.ReadLimits(max_entries=MAX_INPUT_ENTRIES)
        try:
            found = [entry.size for entry in unixfs.walk(target, self._store, limits)]
        except TooLarge as error:
            if error.details.get("what") != "entries":
                raise
            raise self._too_many(field) from error
        self._count(len(found), field)
        return Blob(cid=str(target), size=sum(found))

    def _count(self, entries: int, field: str) -> None:
        """Count files and folders over all sources of the job: a worker takes no more. Raises SpecError."""
        self._entries += entries
        if self._entries > MAX_INPUT_ENTRIES:
            raise self._too_many(field)

    def _too_many(self, field: str) -> SpecError:
        ignoring = "" if self._loaded.spec.workdir is None else ", or leave some out of the workdir: .hearthignore"
        return self._loaded.located(
            SpecError(
                f"{field}: the job brings more than {MAX_INPUT_ENTRIES:,} files and folders, more than a worker takes",
                hint=f"pack them into an archive{ignoring}",
                code="TOO_MANY_FILES",
                field=field,
            )
        )

    def check_program(self, memory_bytes: int) -> None:
        """Refuse a job whose runtime runs WebAssembly, and whose module no worker could start with so much memory.

        The module has been named. Raises SpecError as `wasm_module.check_module` does, NO_WASM for a folder, and what
        reading a CID raises.
        """
        from hearth.jobfile import wasm_module
        from hearth.protocol.runtimes import RUNTIMES
        from hearth.storage import cid, unixfs

        src = self._loaded.spec.module
        if src is None or not RUNTIMES[self._loaded.spec.kind].webassembly:
            return
        blob = self.blobs[src]
        root = cid.parse(blob.cid)
        stored = src.startswith("ipfs://")
        kind = next(unixfs.walk(root, self._store)).kind if stored else "file" if self._paths[src].is_file() else ""
        if kind != "file":
            raise SpecError(f"module: {src} is a folder", hint="name the file in it", code="NO_WASM", field="module")
        wasm_module.check_size(blob.size)
        raw = b"".join(unixfs.read_file(root, self._store)) if stored else self._read(src)
        wasm_module.check_module(raw, memory_bytes)

    def store(self, src: str, *, workdir: bool, progress: Progress) -> None:
        """Store a named source; a CID is stored already. Raises SpecError SOURCE_CHANGED where it changed since."""
        if src.startswith("ipfs://"):
            return
        path = self._paths[src]
        entry = self._store.add_path(path, ignore=self._rules(path, workdir, []), progress=progress, still=True)
        if str(entry.cid) != self.blobs[src].cid:
            raise SpecError(f"{src} changed while it was read", hint="submit it again", code="SOURCE_CHANGED")

    def _rules(self, path: Path, workdir: bool, left: list[str]) -> Ignore:
        """Return what is left out of a folder: of a work folder what its rules say, of any what no job takes.

        `left` takes the names of what no job takes, which a program may miss.
        """
        from hearth.jobfile.workdir import workdir_rules

        rules = workdir_rules(path) if workdir else ignore.no_job_takes
        kept = {one.relative_to(path).as_posix() for one in self._kept if path in one.parents}

        def ignored(name: str, folder: bool) -> bool:
            if name in kept:
                return True
            out = rules(name, folder)
            if out and ignore.no_job_takes(name, folder):
                left.append(name)
            return out

        return ignored

    def _read(self, src: str) -> bytes:
        """Return the bytes of a named file."""
        with open(open_still(self._paths[src]), "rb") as file:
            return file.read()


def _leads(src: str, path: Path) -> str:
    """Return the beginning of a sentence on a path: what it is called, and where it leads if that is elsewhere."""
    return src if src == str(path) else f"{src} is {path}, and"


def _place_of_tokens(path: Path, base: Path) -> str:
    """Return where in a job's folder a path lies, if tokens may be there: behind a hidden name, or around a home."""
    home = Path(os.path.realpath(Path.home()))
    if path == home or path in home.parents:
        return f"around your home folder {home}"
    hidden = next((part for part in path.relative_to(base).parts if part.startswith(".")), "")
    return hidden and f"behind the hidden name {hidden}"


def _lies_in(path: Path, place: Path) -> bool:
    """Say whether a path is a place or lies below it, whatever the spelling of either."""
    try:
        return any(os.path.samefile(one, place) for one in (path, *path.parents))
    except OSError:  # no such place, so that nothing lies there
        return False


def _secret_in(path: Path, base: Path) -> str | None:
    """Return the part of a path that no job takes, looked for below the job file's folder where it lies there."""
    below = path.relative_to(base) if base in path.parents else path.relative_to("/")
    for number, name in enumerate(below.parts, 1):
        if ignore.no_job_takes(name, number < len(below.parts) or path.is_dir()):
            return name
    return None


def _is_url(src: str) -> bool:
    return src.startswith(("https://", "http://"))


def resolve_image(image: str, *, allow_private: bool = False) -> str:
    """Return a tag's digest reference by asking its registry through the container engine.

    Raises StorageError URL_PRIVATE for one in a private network without `allow_private`, REGISTRY_DOWN; SpecError
    NO_IMAGE; ConfigError NO_DOCKER.
    """
    from docker.errors import DockerException, NotFound

    from hearth.client.posting.engine import connect
    from hearth.client.posting.images import require_public

    engine = connect(60)
    try:
        if not allow_private:
            require_public(image)
        digest = engine.images.get_registry_data(image).id
    except NotFound as error:
        raise SpecError(f"there is no image {image}", hint="check its name and tag", code="NO_IMAGE") from error
    except DockerException as error:
        raise StorageError(
            f"the registry of {image} does not answer: {quoted(str(error))}",
            hint=f'try it with docker pull {image}, or name the image by digest ("name@sha256:...")',
            code="REGISTRY_DOWN",
        ) from error
    finally:
        engine.close()
    head, slash, last = image.rpartition("/")
    return f"{head}{slash}{last.partition(':')[0]}@{digest}"
