"""The page's built files and the one CID that names them all.

`app/` is what `make web` built from web/, and is in no commit; `app.cid` is its CID as a UnixFS folder, by which
releases name it.
"""

from __future__ import annotations

import mimetypes
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from hearth.base.errors import ConfigError
from hearth.storage import unixfs

APP: Final = Path(__file__).parent / "app"
INDEX: Final = "index.html"
_KINDS: Final = {
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".txt": "text/plain; charset=utf-8",
}
"""What the machine's own table may know otherwise."""


class File(NamedTuple):
    """One file of the page: its bytes, its media type and its CID."""

    data: bytes
    kind: str
    cid: str


class Page(NamedTuple):
    """The page's files by their path below the folder, and the folder's CID."""

    files: Mapping[str, File]
    cid: str


def read_page(folder: Path = APP) -> Page:
    """Read every file of the page. Raises ConfigError NO_PAGE where there is none, or it cannot be read."""
    files = {}
    try:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            data = path.read_bytes()
            files[path.relative_to(folder).as_posix()] = File(data, _kind(path), str(unixfs.name_path(path).cid))
        whole = str(unixfs.name_path(folder).cid) if files else ""
    except OSError as error:
        raise _no_page(f"the page in {folder} cannot be read: {error.strerror}") from error
    if INDEX not in files:
        raise _no_page(f"{folder} holds no page")
    return Page(files, whole)


def require_named(page: Page, folder: Path = APP) -> None:
    """Refuse a page that is not the one which was built. Raises ConfigError OTHER_PAGE, NO_PAGE."""
    named = named_cid(folder)
    if page.cid != named:
        raise ConfigError(
            f"the page in {folder} is {page.cid}, and {named} was built: its files were changed since",
            hint="install its wheel again, or in a clone make web",
            code="OTHER_PAGE",
        )


def named_cid(folder: Path = APP) -> str:
    """Return the CID of the page as it was built. Raises ConfigError NO_PAGE."""
    path = folder.with_suffix(".cid")
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, ValueError) as error:
        raise _no_page(f"{path} cannot be read: {error}") from error


def _kind(path: Path) -> str:
    return _KINDS.get(path.suffix) or mimetypes.guess_type(path.name, strict=True)[0] or "application/octet-stream"


def _no_page(why: str) -> ConfigError:
    return ConfigError(why, hint="install a wheel of make wheel, or in a clone make web", code="NO_PAGE")
