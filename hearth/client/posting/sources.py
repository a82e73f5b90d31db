"""The sources of a job file: local paths, URLs, CIDs and image tags, named by content before anything is stored."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hearth.base.errors import BlockMissing, ConfigError, SpecError, StorageError, TooLarge
from hearth.base.files import expand
from hearth.protocol.runtimes import MAX_INPUT_ENTRIES
from hearth.protocol.units import format_size

if TYPE_CHECKING:
    from hearth.spec import Blob, LoadedSpec
    from hearth.storage.stores import Store
    from hearth.storage.unixfs import Ignore, Progress

MAX_URL_BYTES: Final = 8 << 30
URL_SECONDS: Final = 60.0


class Sources:
    """What a spec names, as it was when it was read. URLs are fetched into `scratch`, which must outlive this."""

    def __init__(self, loaded: LoadedSpec, store: Store, scratch: Path) -> None:
        """Name nothing yet."""
        self._loaded = loaded
        self._store = store
        self._scratch = scratch
        self.blobs: dict[str, Blob] = {}
        self._entries = 0

    def name(self, src: str, *, field: str, workdir: bool) -> Blob:
        """Return the CID and size of a source, without storing any of it. Each source of a job is named once.

        Raises SpecError NO_SOURCE, TOO_MANY_FILES, StorageError URL_DOWN, TOO_LARGE, and what reading a CID raises.
        """
        from hearth.spec import Blob
        from hearth.storage import unixfs

        if src.startswith("ipfs://"):
            try:
                self.blobs[src] = self._stored(src, field)
            except StorageError as error:
                self._loaded.place(error, field)
                if isinstance(error, BlockMissing):
                    error.hint = "correct the CID, or bring its blocks with hearth store import FILE; hearth doctor"
                raise
            return self.blobs[src]
        path_here = self._path(src)
        if _is_url(src):
            _download(src, path_here)
        elif not path_here.exists():
            raise self._loaded.located(
                SpecError(
                    f"{field}: there is no {path_here}",
                    hint="correct the path, which counts from the job file's folder",
                    code="NO_SOURCE",
                    field=field,
                )
            )
        entry = unixfs.name_path(path_here, ignore=_rules(path_here, workdir))
        self._count(entry.files + entry.folders, field)
        self.blobs[src] = Blob(cid=str(entry.cid), size=entry.size)
        return self.blobs[src]

    def _stored(self, src: str, field: str) -> Blob:
        """Return the CID, in the one spelling that specs have, and the size of what lies in a store already."""
        from hearth.spec import Blob
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
        return self._loaded.located(
            SpecError(
                f"{field}: the job brings more than {MAX_INPUT_ENTRIES:,} files and folders, more than a worker takes",
                hint="pack them into an archive, or leave some out of the workdir: .hearthignore",
                code="TOO_MANY_FILES",
                field=field,
            )
        )

    def check_program(self, memory_bytes: int) -> None:
        """Refuse a job whose runtime runs WebAssembly, and whose module no worker could start with so much memory.

        The module has been named. Raises SpecError as `wasm_module.check_module` does, NO_WASM for a folder, and what
        reading a CID raises.
        """
        from hearth.protocol.runtimes import RUNTIMES
        from hearth.spec import wasm_module
        from hearth.storage import cid, unixfs

        src = self._loaded.spec.module
        if src is None or not RUNTIMES[self._loaded.spec.kind].webassembly:
            return
        blob = self.blobs[src]
        root = cid.parse(blob.cid)
        stored = src.startswith("ipfs://")
        kind = next(unixfs.walk(root, self._store)).kind if stored else "file" if self._path(src).is_file() else ""
        if kind != "file":
            raise SpecError(f"module: {src} is a folder", hint="name the file in it", code="NO_WASM", field="module")
        wasm_module.check_size(blob.size)
        raw = b"".join(unixfs.read_file(root, self._store)) if stored else self._path(src).read_bytes()
        wasm_module.check_module(raw, memory_bytes)

    def store(self, src: str, *, workdir: bool, progress: Progress) -> None:
        """Store a named source; a CID is stored already. Raises SpecError SOURCE_CHANGED where it changed since."""
        if src.startswith("ipfs://"):
            return
        path = self._path(src)
        entry = self._store.add_path(path, ignore=_rules(path, workdir), progress=progress)
        if str(entry.cid) != self.blobs[src].cid:
            raise SpecError(f"{src} changed while it was read", hint="submit it again", code="SOURCE_CHANGED")

    def _path(self, src: str) -> Path:
        """Return where a source lies, or is fetched to."""
        if _is_url(src):
            return self._scratch / hashlib.sha256(src.encode()).hexdigest()[:16]
        try:
            return self._loaded.folder / expand(Path(src))
        except ValueError as error:
            raise SpecError(f"{src}: {error}", hint="write its path out, from /", code="NO_SOURCE") from error


def _is_url(src: str) -> bool:
    return src.startswith(("https://", "http://"))


def _rules(path: Path, workdir: bool) -> Ignore | None:
    """Return what is left out of a work folder; inputs are taken whole."""
    from hearth.spec.workdir import workdir_rules

    return workdir_rules(path) if workdir else None


def resolve_image(image: str) -> str:
    """Return a tag's digest reference by asking its registry through the container engine."""
    import docker
    from docker.errors import DockerException, NotFound

    try:
        engine = docker.from_env(timeout=60)
    except DockerException as error:
        raise ConfigError(
            f"no container engine answers here, so {image} cannot be resolved to a digest: {error}",
            hint='name the image by digest ("name@sha256:..."), or start Docker; hearth doctor',
            code="NO_DOCKER",
        ) from error
    try:
        digest = engine.images.get_registry_data(image).id
    except NotFound as error:
        raise SpecError(f"there is no image {image}", hint="check its name and tag", code="NO_IMAGE") from error
    except DockerException as error:
        raise StorageError(
            f"the registry of {image} does not answer: {error}", hint="hearth doctor", code="REGISTRY_DOWN"
        ) from error
    finally:
        engine.close()
    head, slash, last = image.rpartition("/")
    return f"{head}{slash}{last.partition(':')[0]}@{digest}"


def _download(url: str, path: Path) -> None:
    """Fetch a URL once, whole, within bounds on bytes and silence."""
    from urllib.error import URLError
    from urllib.request import Request, urlopen

    try:
        with (
            urlopen(Request(url, headers={"User-Agent": "hearth"}), timeout=URL_SECONDS) as answer,
            path.open("wb") as out,
        ):
            taken = 0
            while chunk := answer.read(1 << 20):
                taken += len(chunk)
                if taken > MAX_URL_BYTES:
                    raise StorageError(
                        f"{url} has more than {format_size(MAX_URL_BYTES)}", hint="name a CID", code="TOO_LARGE"
                    )
                out.write(chunk)
    except (URLError, OSError, ValueError) as error:
        raise StorageError(
            f"{url} cannot be fetched: {error}", hint="check the URL, or download it and name the file", code="URL_DOWN"
        ) from error
