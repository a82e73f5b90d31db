"""One file from a URL that anybody may have written: whole, in time, within a size, and from no private network.

Only an answer of status 200 in plain bytes counts, with the length that it announced. Redirects are followed here, a
few, each to an address that is looked at like the first, and never from https down to http.
"""

from __future__ import annotations

import http.client
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import IO, Final, NamedTuple
from urllib.parse import quote, urljoin, urlsplit

from hearth.base import peer
from hearth.base.errors import HearthError, StorageError, TooLarge
from hearth.base.files import refusal_of
from hearth.base.http import Host, pieces, said
from hearth.base.text import brief, one_line, quoted

MAX_REDIRECTS: Final = 5
SILENCE_SECONDS: Final = 60.0
"""How long a server may send nothing before it is given up, whatever time is left."""
_REDIRECTS: Final = (301, 302, 303, 307, 308)
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_QUOTED: Final = re.compile(r"[^!#-;=?-~]+")
"""What a browser writes by its numbers in a path or a query; what is written so already stays."""
_HEADERS: Final = {"User-Agent": "hearth", "Accept": "*/*", "Accept-Encoding": "identity", "Connection": "close"}
_MENDING: Final = "check the URL, or download it and name the file"


@dataclass(slots=True)
class Fetched:
    """What came: how many bytes, whether the server said so before, and the private hosts that were asked."""

    size: int = 0
    announced: bool = True
    private: list[str] = field(default_factory=list)


class _Place(NamedTuple):
    """Where a request goes: a URL in its parts, all of them ASCII."""

    url: str
    secure: bool
    host: str
    port: int
    target: str


class _Refused(Exception):
    """Say why an answer is not taken, in words that any screen may show."""


def fetch(url: str, out: IO[bytes], *, seconds: float, most: int, allow_private: bool = False) -> Fetched:
    """Write what a URL names to `out`: at most `most` bytes, within `seconds` for all of it, redirects included.

    With `allow_private` it, and what it redirects to, may lie in a private network. Raises StorageError URL_DOWN,
    URL_PRIVATE, TooLarge, or FILE_REFUSED where `out` cannot be written; something may have been written by then.
    """
    end = time.monotonic() + seconds
    shown = brief(one_line(url), 300)
    found = Fetched()
    try:
        place = _place(url.strip(" "))
        for _ in range(MAX_REDIRECTS + 1):
            location = _visit(place, _reader(out, found, most=most, end=end), found, end, allow_private=allow_private)
            if location is None:
                return found
            place = _redirected(place, location)
        raise _Refused(f"it redirects more than {MAX_REDIRECTS} times")
    except peer.LeadsInside as error:
        raise StorageError(
            f"{shown} is not fetched: {one_line(str(error))}, and everything that a job brings is public",
            hint="where that is meant, add --allow-private, or download it and name the file",
            code="URL_PRIVATE",
        ) from error
    except (OSError, http.client.HTTPException, ValueError, _Refused) as error:
        why, hint = said(error), _MENDING
        if time.monotonic() >= end:
            why, hint = f"it did not come whole within {seconds:.3g} s", "give it longer, such as --timeout 1h"
        elif isinstance(error, TimeoutError):
            why = f"nothing came from it for {SILENCE_SECONDS:g} s"
        raise StorageError(f"{shown} cannot be fetched: {why}", hint=hint, code="URL_DOWN") from error


def _place(url: str) -> _Place:
    """Take a URL apart, quoted as a browser would. Raises ValueError for what is none of http or https."""
    if _CONTROL.search(url):
        raise ValueError("it holds a control character")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https"):
        raise ValueError(f"{quoted(parts.scheme)} is neither http nor https")
    if parts.username is not None or parts.password is not None:
        raise ValueError("it names a user or a password, and none is sent")
    host = parts.hostname or ""
    if not host or re.search(r"[\s%<>\"\\^`{|}]", host.partition("%")[0]):
        raise ValueError("it names no host")
    # Names beyond ASCII go out as browsers write them; a bad one is a UnicodeError, which is a ValueError.
    host = host if ":" in host else host.encode("idna").decode()
    secure = parts.scheme == "https"
    port = parts.port if parts.port is not None else (443 if secure else 80)
    target = _written(parts.path or "/") + (f"?{_written(parts.query)}" if parts.query else "")
    return _Place(url, secure, host, port, target)


def _written(text: str) -> str:
    return _QUOTED.sub(lambda found: quote(found[0], safe=""), text)


def _redirected(place: _Place, location: str) -> _Place:
    """Return where an answer leads. Raises _Refused."""
    try:
        there = _place(urljoin(place.url, location.strip(" \t")))
    except ValueError as error:
        raise _Refused(f"it redirects to {quoted(location)}: {said(error)}") from error
    if place.secure and not there.secure:
        raise _Refused(f"it redirects to {quoted(location)}, from https to http")
    return there


def _visit(
    place: _Place,
    read: Callable[[http.client.HTTPResponse], str | None],
    found: Fetched,
    end: float,
    *,
    allow_private: bool,
) -> str | None:
    """Ask one host, and return where it redirects to, or None where the file was read. Raises what `fetch` catches."""

    def ask(public: bool) -> str | None:
        host = Host(place.host, place.port, secure=place.secure, public=public, silence=SILENCE_SECONDS)
        return host.exchange("GET", place.target, headers=_HEADERS, end=end, read=read)

    try:
        return ask(public=True)
    except peer.LeadsInside:
        if not allow_private:
            raise
        if place.host not in found.private:
            found.private.append(place.host)
        return ask(public=False)


def _reader(
    out: IO[bytes], found: Fetched, *, most: int, end: float
) -> Callable[[http.client.HTTPResponse], str | None]:
    """Return what reads an answer into a file: None for one that is it, the address for one that leads elsewhere."""

    def read(response: http.client.HTTPResponse) -> str | None:
        location = response.headers.get("Location")
        if response.status in _REDIRECTS and location is not None:
            return location
        if response.status != 200:
            raise _Refused(f"it answers with HTTP status {response.status}, {quoted(response.reason)}")
        _check_framing(response)
        if response.length is not None and response.length > most:
            raise _too_large(most)
        found.announced = response.length is not None or response.chunked
        for piece in pieces(response, end):
            found.size += len(piece)
            if found.size > most:
                raise _too_large(most)
            try:
                out.write(piece)
            except OSError as error:
                raise refusal_of(error) from error
        return None

    return read


def _check_framing(response: http.client.HTTPResponse) -> None:
    """Refuse an answer that is packed, or whose length is not one number. Raises _Refused."""
    if response.headers.defects:  # what stands below such a line was not read, its length perhaps
        raise _Refused("its headers are broken")
    for name, plain in (("Content-Encoding", "identity"), ("Transfer-Encoding", "chunked")):
        said_of_it = response.headers.get_all(name, [])
        if any(one.strip().lower() not in ("", plain) for one in said_of_it):
            raise _Refused(f"it sends {name} {quoted(', '.join(said_of_it))}, which was not asked for")
    lengths = {one.strip() for one in response.headers.get_all("Content-Length", [])}
    if len(lengths) > 1 or not all(re.fullmatch("[0-9]{1,18}", one) for one in lengths):
        raise _Refused(f"its length is no one number: {quoted(', '.join(sorted(lengths)))}")


def _too_large(most: int) -> HearthError:
    return TooLarge(f"it has more than {most} bytes", hint="put it into a store, and name its CID")
