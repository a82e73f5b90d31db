"""Say by an image's configuration whether workers run it: one rule for them, and for a submitter before money moves.

What an image declares is a stranger's. What the sandbox sets itself (user, working folder, health check, labels,
ports) counts for nothing and refuses nothing. Source: worker.md "docker".
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import Any, Final

from hearth.base.text import brief, plain

LOADER_ENV: Final = ("LD_PRELOAD", "LD_AUDIT")
"""Read by every process that starts in the container, also by the GPU hook outside of it (CVE-2025-23266)."""
MAX_VOLUMES: Final = 64
PLATFORMS: Final = ("linux/amd64", "linux/arm64")
"""What machines of workers are, the usual one first."""
OWN_FOLDERS: Final = ("in", "job", "out")
"""The sandbox's folders that a job's data lies in: a volume below one would hide inputs, or take outputs away."""


def image_fault(config: Mapping[str, Any]) -> str:
    """Return why no worker runs an image of this configuration, "" where they do.

    `config` has an engine's keys: Env (a list of NAME=VALUE) and Volumes (a mapping by path), each None or absent too.
    """
    for item in config.get("Env") or []:
        name = str(item).partition("=")[0]
        if name in LOADER_ENV:
            return f"the image sets {name}, which workers refuse"
    volumes = sorted(map(str, config.get("Volumes") or {}))
    wrong = next((volume for volume in volumes if not is_volume(volume)), None)
    if wrong is not None:
        return no_volume(wrong)
    if len(volumes) > MAX_VOLUMES:
        return f"the image declares {len(volumes)} volumes, more than {MAX_VOLUMES}: build it with fewer"
    return ""


def declares(config: Mapping[str, Any], name: str) -> bool:
    """Say whether an image sets a variable of the environment."""
    return any(str(item).partition("=")[0] == name for item in config.get("Env") or [])


def platform_fault(image: Mapping[str, Any], engine: Mapping[str, Any]) -> str:
    """Return why an image is none for an engine's machine, "" where it is one, or one of the two does not say.

    `image` is the engine's inspection (Os, Architecture), `engine` its version (Os, Arch).
    """
    of_image = (str(image.get("Os") or ""), str(image.get("Architecture") or ""))
    of_engine = (str(engine.get("Os") or ""), str(engine.get("Arch") or ""))
    if not all((*of_image, *of_engine)) or of_image == of_engine:
        return ""
    return f"the image is for {plain(brief('/'.join(of_image)))}, and this machine is {'/'.join(of_engine)}"


def has_command(config: Mapping[str, Any]) -> bool:
    """Say whether an image names a program of its own: without one, its job must."""
    return bool(config.get("Entrypoint") or config.get("Cmd"))


NO_COMMAND: Final = "the image names no program (neither ENTRYPOINT nor CMD), and the job no command"


def no_volume(path: str) -> str:
    """Return why an image that declares a folder as a volume cannot be run."""
    return (
        f"the image declares a VOLUME that no sandbox can give it, {plain(brief(path))!r}: build it without, and write "
        "to /out or /tmp"
    )


def is_volume(path: str) -> bool:
    """Say whether a folder that an image declares as a volume can be an empty one, as far as its name says.

    One of OWN_FOLDERS itself is the sandbox's own whatever the image declares.
    """
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if not path.startswith("/") or ".." in parts or parts in ([], ["proc"], ["dev"]):
        return False
    return len(parts) == 1 or parts[0] not in OWN_FOLDERS


def volumes_of(config: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the folders that an image declares as volumes and the sandbox has to give, each once in its plain form.

    An engine reads `/data/` and `//data` as `/data`: what is answered under another name is not answered.
    """
    folders = {"/" + posixpath.normpath(str(path)).strip("/") for path in config.get("Volumes") or {}}
    return tuple(sorted(folders - {f"/{name}" for name in OWN_FOLDERS}))
