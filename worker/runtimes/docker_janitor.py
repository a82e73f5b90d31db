"""What a worker cannot do to a guest's files on its own is done by a container of ours, the janitor.

It gives what a container wrote back to the worker, which does so at once where it is root; and it measures what a
container takes while that runs, where the worker cannot see it.

A guest is nobody on the host (never the worker: what escapes must not own its keys), so a worker that is a plain user
can neither read nor delete what it left, whatever it has to do so on its own. The program is janitor/janitor.c; its
image is imported from this package, with no registry. It gives all to whoever owns the folder itself, as the engine
sees it, so that one call is right for a rootless engine too.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import structlog

from hearth.base.files import free_bytes
from worker.runtimes.base import (
    BLOCKS_SLACK_BYTES,
    MAX_OUTPUT_DEPTH,
    Check,
    Level,
    RunRequest,
    Tree,
    measure,
    over_cap,
)
from worker.runtimes.docker_files import emptied, own
from worker.runtimes.docker_images import image_archive
from worker.runtimes.docker_places import TEMPORARY
from worker.runtimes.docker_request import JANITOR_LABEL, JANITOR_PROGRAM, janitor_config, looker_config

log = structlog.get_logger("worker.janitor")

IMAGE: Final = "hearth-janitor"
SECONDS: Final = 120
LOOK_SECONDS: Final = 30.0
"""How long a container may take what nobody measures, for closed folders or on a disk that lacks room: it is over its
cap then."""
ADRIFT_SECONDS: Final = 2.0
"""How long open files may be on their way between processes while the disk lacks room: nobody can measure them."""
TOO_DEEP: Final = 3
"""The program's exit status for a tree that it had to delete."""
_PROGRAMS: Final = Path(__file__).parent / "janitor"


class Unreclaimed(Exception):
    """A folder is still its guest's: the sentence on why."""


class Looker:
    """A container of ours that measures what another one takes, again and again, from `start` to `close`.

    It sees every folder below /out, and the files without a name that the other's processes hold.
    """

    def __init__(self, api: Any, folder: Path, unit: str, container: str) -> None:
        self._api, self._folder, self._unit, self._of = api, folder, unit, container
        self._container = ""
        self.looks = 0
        """How often it has looked at everything."""
        self.seen: Tree | None = None
        """What it saw last."""
        self.ended = False
        """Whether it looks no more: the other container has ended, or itself has, by nobody's fault there."""

    @property
    def started(self) -> bool:
        """Say whether it was started."""
        return bool(self._container)

    def start(self) -> None:
        """Start it. Raises Unreclaimed where the engine has or starts none."""
        from docker.errors import APIError

        try:
            self._container = self._create()
            stream = self._api.attach(self._container, stdout=True, stream=True)
            threading.Thread(target=self._follow, args=(stream,), daemon=True).start()
            self._api.start(self._container)
        except APIError as failed:
            log.warning("nobody looks at what a container takes", unit=self._unit, engine=str(failed))
            raise Unreclaimed("the janitor that measures what a container takes did not start") from failed

    def _create(self) -> str:
        """Create it with a right to follow the links of /proc/PID/map_files: the narrow one, where engine and kernel
        know it (Linux 5.9). Raises APIError, Unreclaimed."""
        from docker.errors import APIError

        image = janitor_image(self._api)
        for right in ("CHECKPOINT_RESTORE", "SYS_ADMIN"):
            config = looker_config(image, self._folder, self._unit, self._of, right)
            try:
                return str(self._api.create_container_from_config(config)["Id"])
            except APIError as failed:
                if right == "SYS_ADMIN" or "capability" not in str(failed).lower():
                    raise
        raise AssertionError(right)

    def close(self) -> None:
        """End it. Raises the engine's errors."""
        from docker.errors import NotFound

        if self._container:
            with suppress(NotFound):
                self._api.remove_container(self._container, force=True, v=True)

    def _follow(self, stream: Iterable[bytes]) -> None:
        try:
            self._read(stream)
        finally:
            self.ended = True

    def _read(self, stream: Iterable[bytes]) -> None:
        rest = b""
        for chunk in stream:
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                size, entries, blocks, deep, unnamed, unnamed_size, unnamed_blocks, adrift, partial = map(
                    int, line.split()
                )
                offence = f"a path is deeper than {MAX_OUTPUT_DEPTH}" if deep else ""
                self.seen = Tree(
                    *(size, entries, offence, bool(deep), blocks + unnamed_blocks),
                    unnamed=unnamed,
                    unnamed_size=unnamed_size,
                    adrift=adrift,
                    partial=bool(partial),
                )
                self.looks += not partial


class Meter:
    """What one container takes of the disk, from its start to its end, and whether that is too much.

    The names below /out tell it at first. A looker is started once they cannot: where folders are closed to the worker,
    where the disk is tight, or where it has lost more than they show. `free_before` are the bytes that were free before
    the container was made.
    """

    def __init__(self, request: RunRequest, looker: Looker, free_before: int) -> None:
        self._request, self._room, self._looker, self._free_before = request, request.room, looker, free_before
        self._cap = request.limits.out_bytes
        self._no_looker = False
        """Whether the engine starts none."""
        self._looks = 0
        """The looks that were taken up, the last of them at `_looked`."""
        self._looked = self._not_adrift = self._unseen_since = time.monotonic()
        """`_not_adrift` is when open files on their way were last no matter, `_unseen_since` when all that it takes was
        last seen or no matter."""
        self._tight_from: int | None = None
        """The looks that there had been when the disk became tight, or full after that; None where it is not tight."""
        self._was_full = False

    def excess(self) -> str:
        """Measure once, note it in the request's `room`, and return the sentence on what the container takes too much
        of, or what nobody can measure; "" for nothing. Raises Unreclaimed where nobody could ever measure it."""
        named, tight = measure(self._request.out_dir, self._request.volume), self._room.tight
        self._room.taken = named.blocks
        if not named.blind and not self._beyond_names(named, tight):
            self._tight_from, self._was_full, self._room.seen = None, False, False
            self._unseen_since = time.monotonic()
            return over_cap(named, self._cap)
        self._start_looker()
        if not self._no_looker:
            return self._excess_looked_at(named, tight)
        if named.blind:
            raise Unreclaimed("/out holds folders that the worker cannot read, and no janitor looks into them")
        self._room.seen = tight  # there is no more to be seen
        return over_cap(named, self._cap, tight=tight)

    def _start_looker(self) -> None:
        if self._looker.started or self._no_looker:
            return
        try:
            self._looker.start()
        except Unreclaimed:
            self._no_looker = True
        self._looked = time.monotonic()

    def _excess_looked_at(self, named: Tree, tight: bool) -> str:
        """Return the sentence by the looker's last look; by the names before its first, and once it looks no more."""
        room, looks = self._room, self._looker.looks
        # What one that has ended saw last may be long gone, and what came since it did not see.
        seen = named if self._looker.ended or self._looker.seen is None else self._looker.seen
        now, again = time.monotonic(), looks > self._looks
        if again:
            self._looks, self._looked = looks, now
        elif named.blind and now - self._looked > LOOK_SECONDS:
            if self._looker.ended:
                raise Unreclaimed("/out holds folders that the worker cannot read, and the janitor has ended")
            return f"/out holds folders that nobody could look into for {LOOK_SECONDS:.0f} s"
        if self._request.volume is not None:
            seen = seen._replace(blocks=named.blocks)
        room.taken = seen.blocks
        complete = self._complete(looks, tight)
        room.seen = complete and not seen.adrift and not seen.partial and not self._looker.ended
        lacks_room = room.full or self._lost_more_than(seen)
        # A janitor that has ended is no fault of the run: the guard stops it before those that were seen, as unseen.
        if (complete and again) or not (tight and lacks_room) or self._looker.ended:
            self._unseen_since = now
        adrift = self._adrift(seen.adrift if complete and lacks_room else 0)
        return over_cap(seen, self._cap, tight=tight) or adrift or self._unseen(now)

    def _complete(self, looks: int, tight: bool) -> bool:
        """Say whether all that it takes was seen since the disk became tight, and since it became full."""
        became_full, self._was_full = self._room.full and not self._was_full, self._room.full
        if not tight:
            self._tight_from = None
            return False
        if self._tight_from is None or became_full:
            self._tight_from = looks
        # The look after the one that was under way then has seen all of it.
        return looks >= self._tight_from + 2

    def _unseen(self, now: float) -> str:
        """Return the sentence on what nobody could look at for too long on a disk that lacks room, whoever fills it."""
        if now - self._unseen_since <= LOOK_SECONDS:
            return ""
        return (
            f"its processes hold so much that nobody could look at all of it for {LOOK_SECONDS:.0f} s, "
            "on a disk that lacks room"
        )

    def _adrift(self, files: int) -> str:
        """Return the sentence on open files that were on their way at every look for too long; `files` is 0 where they
        are no matter, since the disk has room or not all of it was seen."""
        now = time.monotonic()
        if not files:
            self._not_adrift = now
        elif now - self._not_adrift > ADRIFT_SECONDS:
            return (
                f"{files} open files are on their way between its processes, where nobody can measure them, "
                "on a disk that lacks room"
            )
        return ""

    def _beyond_names(self, named: Tree, tight: bool) -> bool:
        """Say whether it may take room that no names show: the disk is tight, or has lost more than they do."""
        return self._request.volume is None and (tight or self._lost_more_than(named))

    def _lost_more_than(self, tree: Tree) -> bool:
        """Say whether the disk has lost more than was seen, and some slack, since before the container was made."""
        return self._free_before - free_bytes(self._request.out_dir) > tree.blocks + BLOCKS_SLACK_BYTES


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
            "Image": janitor_image(api),
            "Cmd": [JANITOR_PROGRAM],
            "Labels": {**config["Labels"], JANITOR_LABEL: "1"},
            # What else there is are volumes of the image.
            "HostConfig": {**host, "Tmpfs": {one: host["Tmpfs"][one] for one in TEMPORARY if one in host["Tmpfs"]}},
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

    config = janitor_config(janitor_image(api), folder, unit)
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


def janitor_image(api: Any) -> str:
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
    """Return a tar with the program alone."""
    return image_archive({JANITOR_PROGRAM: (_PROGRAMS / f"janitor-{platform}").read_bytes()})
