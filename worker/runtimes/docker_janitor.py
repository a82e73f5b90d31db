"""Give what a container wrote back to the worker: at once where the worker is root, else by a container of ours.

A guest is nobody on the host (never the worker: what escapes must not own its keys), so a worker that is a plain user
can neither read nor delete what it left, whatever it has to do so on its own. The program is janitor/janitor.c; its
image is imported from this package, with no registry. It gives all to whoever owns the folder itself, as the engine
sees it, so that one call is right for a rootless engine too.
"""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import structlog

from worker.runtimes.base import MAX_OUTPUT_DEPTH, Check, Level
from worker.runtimes.docker_files import emptied, own
from worker.runtimes.docker_request import JANITOR_LABEL, JANITOR_PROGRAM, janitor_config

log = structlog.get_logger("worker.janitor")

IMAGE: Final = "hearth-janitor"
SECONDS: Final = 120
TOO_DEEP: Final = 3
"""The program's exit status for a tree that it had to delete."""
_PROGRAMS: Final = Path(__file__).parent / "janitor"


class Unreclaimed(Exception):
    """A folder is still its guest's: the sentence on why."""


def reclaim(api: Any, folder: Path, unit: str) -> str:
    """Make everything below a folder the worker's, for nobody else to read; the unit's container must have ended.

    Returns why it was emptied instead, where it was too deep for tools that go by path names. Raises Unreclaimed, and
    the errors of docker and requests where the engine fails.
    """
    if os.geteuid() == 0:
        own(folder)
    elif any(folder.iterdir()) and _sweep_up(api, folder, unit) == TOO_DEEP:
        return f"/out held a path deeper than {MAX_OUTPUT_DEPTH} folders"
    os.chmod(folder, 0o700)
    return emptied(folder)


def starts_ours(api: Any, config: Mapping[str, Any]) -> bool:
    """Say whether the engine starts this program in the sandbox that it refused to an image, whose fault that is then.

    `config` is the body of the create call. The program finds nothing there that it may change.
    """
    from docker.errors import APIError

    host = config["HostConfig"]
    try:
        ours = {
            **config,
            "Image": _image(api),
            "Cmd": [JANITOR_PROGRAM],
            "Labels": {**config["Labels"], JANITOR_LABEL: "1"},
            # What else there is are volumes of the image.
            "HostConfig": {**host, "Tmpfs": {"/tmp": host["Tmpfs"]["/tmp"]}},
        }
        container = api.create_container_from_config(ours)["Id"]
    except (APIError, Unreclaimed):
        return False
    try:
        api.start(container)
    except APIError:
        return False
    finally:
        api.remove_container(container, force=True, v=True)
    return True


def platforms() -> tuple[str, ...]:
    """Return the platforms, as engines name them, that there is a program for."""
    return tuple(sorted(path.name.removeprefix("janitor-") for path in _PROGRAMS.glob("janitor-*")))


def look_at_janitor(version: Mapping[str, Any]) -> Check:
    """Check that what a container leaves can be taken back here, from an engine's `version`."""
    if os.geteuid() == 0:
        return Check("clean-up", Level.PASS, "the worker is root, and takes back what containers leave")
    platform = str(version.get("Arch", ""))
    if platform in platforms():
        return Check("clean-up", Level.PASS, f"a container of ours takes back what others leave ({platform})")
    return Check(
        "clean-up", Level.FAIL, no_janitor(platform), 'run the worker as root, or set offer.runtimes = ["wasm"]'
    )


def no_janitor(platform: str) -> str:
    """Return the sentence on a platform that there is no program for."""
    return f"a worker that is not root cannot take back what containers leave: there is no janitor for {platform}"


def _sweep_up(api: Any, folder: Path, unit: str) -> int:
    """Run the program on a folder and return its exit status."""
    from docker.errors import APIError
    from requests.exceptions import ReadTimeout

    config = janitor_config(_image(api), folder, unit)
    container = api.create_container_from_config(config)["Id"]
    try:
        api.start(container)
        status = int(api.wait(container, timeout=SECONDS)["StatusCode"])
    except (APIError, ReadTimeout) as failed:
        log.warning("a folder was not taken back", folder=str(folder), engine=str(failed))
        raise Unreclaimed(f"the janitor did not end on {folder}") from failed
    finally:
        api.remove_container(container, force=True, v=True)
    if status not in (0, TOO_DEEP):
        raise Unreclaimed(f"the janitor could not take back {folder} (exit {status})")
    return status


def _image(api: Any) -> str:
    """Return the name of the janitor's image for this engine, imported where it is not there."""
    from docker.errors import NotFound

    platform = str(api.version()["Arch"])
    if platform not in platforms():
        raise Unreclaimed(no_janitor(platform))
    archive = _archive(platform)
    tag = sha256(archive).hexdigest()[:12]
    try:
        api.inspect_image(f"{IMAGE}:{tag}")
    except NotFound:
        api.import_image_from_data(archive, repository=IMAGE, tag=tag)
    return f"{IMAGE}:{tag}"


@cache
def _archive(platform: str) -> bytes:
    """Return a tar with the program alone; the same bytes on every machine."""
    program = (_PROGRAMS / f"janitor-{platform}").read_bytes()
    entry = tarfile.TarInfo(JANITOR_PROGRAM.removeprefix("/"))
    entry.size, entry.mode = len(program), 0o755
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        tar.addfile(entry, io.BytesIO(program))
    return buffer.getvalue()
