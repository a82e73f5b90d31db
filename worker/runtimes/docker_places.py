"""Where the folders of a container really lie: an image may lead one of them into another by a link.

An engine follows such a link when it mounts, so that what comes later hides what came before: an image whose /out leads
to /tmp would be paid for results that are gone. Looked at once the container is made, before it starts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from hearth.base.text import brief, plain
from hearth.jobfile.image_config import no_volume
from worker.runtimes.docker_request import SCRATCH

OURS: Final = ("/in", "/job", "/out", "/tmp")
TEMPORARY: Final = ("/tmp", SCRATCH)
ENGINES: Final = ("/dev", "/etc", "/proc", "/sys")
"""Below these the engine mounts by itself."""
SYMLINK: Final = 1 << 27
"""The bit of a link in the file modes that an engine reports."""

Look = Callable[[str], Mapping[str, Any] | None]
"""What an engine says of a path in a container ({mode, linkTarget}), None where nothing is there."""


def place_fault(look: Look, volumes: Iterable[str], ours: Sequence[str] = OURS) -> str:
    """Return why the folders of a sandbox, `ours`, hide one another in an image, "" where each is its own."""
    real = {name: real_place(look, name) for name in ours}
    for name, place in real.items():
        others = [*ENGINES, *(real[other] for other in ours if other != name)]
        if place != name and any(_nested(place, other) for other in others):
            return (
                f"the image has a link at {name}, to {plain(brief(place))}, which the sandbox needs for another folder"
            )
    for volume in volumes:
        # Those below these are as temporary as what they hide.
        if any(_nested(real_place(look, volume), real[name]) for name in ours if name not in TEMPORARY):
            return no_volume(volume)
    return ""


def real_place(look: Look, path: str) -> str:
    """Return where a path of a container leads, with no link on its way; what is absent lies where it is named."""
    place = ""
    names = [name for name in path.split("/") if name]
    for number, name in enumerate(names):
        place = f"{place}/{name}"
        found = look(place)
        if found is None:
            return "/".join([place, *names[number + 1 :]])
        if int(found.get("mode") or 0) & SYMLINK:
            # An engine names the end of a link, whatever other links lead there.
            place = str(found.get("linkTarget") or "").rstrip("/")
    return place or "/"


def _nested(one: str, other: str) -> bool:
    """Say whether two absolute paths are the same, or one lies below the other."""
    one, other = one.rstrip("/") + "/", other.rstrip("/") + "/"
    return one.startswith(other) or other.startswith(one)
