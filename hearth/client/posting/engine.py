"""This machine's container engine: how it is reached, and what to do where it does not answer."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING, Final

from hearth.base.errors import ConfigError
from hearth.base.text import brief, one_line

if TYPE_CHECKING:
    from docker import DockerClient

_SAID: Final = 200


def connect(seconds: int) -> DockerClient:
    """Return a client of the engine that DOCKER_HOST names, else of the `docker` command's own, which has answered.

    `seconds` bounds one answer of it. Raises ConfigError NO_DOCKER.
    """
    import docker

    try:
        return docker.from_env(timeout=seconds)
    except Exception as error:  # the library raises Exception itself over a context that it cannot read
        raise ConfigError(
            f"no container engine answers here: {why_silent(error)}",
            hint=f'{start_engine()}, or name images by digest ("name@sha256:...")',
            code="NO_DOCKER",
        ) from error


def why_silent(error: BaseException) -> str:
    """Return why no engine answers, in plain words where the system says why; else what the docker library says."""
    from requests.exceptions import Timeout

    cause: BaseException | None = error
    seen: list[BaseException] = []  # two may be each other's cause
    while cause is not None and cause not in seen:
        if isinstance(cause, FileNotFoundError):
            return "there is no socket at its address, so that it does not run, or is not installed"
        if isinstance(cause, ConnectionRefusedError):
            return "nothing listens at its address, so that it does not run"
        if isinstance(cause, PermissionError):
            return "this user may not open its socket: sudo usermod -aG docker $USER, then log in anew"
        if isinstance(cause, socket.gaierror):
            return "the name in its address is not known"
        if isinstance(cause, Timeout | TimeoutError):
            return "it takes too long to answer"
        seen.append(cause)
        cause = cause.__cause__ or cause.__context__
    said = str(error).removeprefix("Error while fetching server API version: ")
    return brief(one_line(said), _SAID) or type(error).__name__


def start_engine() -> str:
    """Return what a user does where no engine answers: at DOCKER_HOST, where the `docker` command finds its own, or at
    the usual place. A worker's owner is told by `worker.runtimes.docker_engine.start_engine`."""
    named = os.environ.get("DOCKER_HOST")
    if named:
        return f"start the engine at {one_line(named)}, or unset DOCKER_HOST"
    address = address_of_context()
    if address:
        return f"start the engine of your docker context, and export DOCKER_HOST={one_line(address)}"
    return "start Docker"


def address_of_context() -> str:
    """Return the address of the context that the `docker` command uses, "" for the default or an unreadable one."""
    from docker.context import ContextAPI

    try:
        context = ContextAPI.get_context(os.environ.get("DOCKER_CONTEXT"))
    except Exception:  # noqa: BLE001 - the library raises Exception itself, and what its files lack
        return ""
    return "" if context is None or context.name == "default" else str(context.Host or "")
