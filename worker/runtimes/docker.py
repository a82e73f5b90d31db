"""The docker runtime: one container per unit, by digest, without network, rights or a writable root.

What the engine is asked is in docker_request, what it can do in docker_engine, images in docker_images, the folders
that it shares in docker_files, and what takes them back in docker_janitor. What the engine says goes to the worker's
log; a result, which may be published, holds sentences of ours alone.
"""

from __future__ import annotations

import json
import math
import os
import posixpath
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import structlog

from hearth.base.errors import HearthError, StorageError
from hearth.base.files import free_bytes
from hearth.client.posting.engine import why_silent
from hearth.jobfile.image_config import NO_COMMAND, declares, has_command, no_volume, volumes_of
from hearth.protocol.runtimes import DOCKER
from hearth.protocol.units import format_size
from worker.gpu.port import Device
from worker.runtimes.base import (
    Check,
    Level,
    LogBuffer,
    LogSink,
    RunRequest,
    RunResult,
    RunStatus,
    check_outputs,
    guest_env,
)
from worker.runtimes.docker_engine import (
    engine_name,
    judge_engine,
    no_gpus,
    no_runtime,
    runtime_in,
    start_engine,
)
from worker.runtimes.docker_files import lend_output, share_inputs
from worker.runtimes.docker_gpu import held_elsewhere, try_gpu, without_gpus
from worker.runtimes.docker_images import DEFAULT_RULES, ImageRules, Images, look_at_disk
from worker.runtimes.docker_janitor import Looker, Meter, Unreclaimed, look_at_janitor, reclaim, starts_ours
from worker.runtimes.docker_places import OURS, place_fault
from worker.runtimes.docker_request import (
    JANITOR_LABEL,
    LABEL,
    SCRATCH,
    container_config,
    free_user,
    home_of,
    parse_image,
)
from worker.runtimes.profiles import NO_GPU_IN_GVISOR, is_gvisor
from worker.runtimes.published import copy_archive

log = structlog.get_logger("worker.docker")

POLL_SECONDS = 0.25
NO_PLACE = (
    "no sandbox can be made of the image, though the worker's own program starts in the same one: /in, /job, /out and "
    "/tmp must be folders in it, or absent, and its command the path of a program"
)
ENGINE_SECONDS = 60
KILLED = 137
"""The exit status of what SIGKILL ended."""
OOM_SECONDS, OOM_LOOKS = 10.0, 20
"""How long an engine is asked whether a memory limit ended a container, and how often."""
EVENTS_SECONDS = 2
"""How long an engine is asked for a death that it has not told of."""
LEFT_SECONDS = 1.0
"""How long after an engine failed it is asked again to end what it left; twice as long after each try that fails."""
LEFT_MOST_SECONDS = 30.0
PAUSE_SECONDS = 20.0
"""How long a container may be paused for the copy of a checkpoint: its submitter pays for the time, and the engine
says nothing of the container meanwhile, for which its run waits ENGINE_SECONDS."""
ARCHIVE_BYTES = 1 << 20
UNPAUSE_TRIES = 5
STOPPED = "the container was stopped from outside: its engine was restarted, or somebody ended it"
_CHOOSING = threading.Lock()
"""Held from the choice of a container's user to the container."""
EXEC = re.compile(r"(?<![/\w-])exec[: ]|error finding executable")
GVISOR_LOADS = "creating process: failed to load"


class DockerRuntime:
    """Run containers on the engine at `host` (None: DOCKER_HOST or the default socket).

    `runtime` names an OCI runtime registered with the engine, such as "runsc"; the engine's default where it is empty.
    `images` says which images are fetched and kept.
    """

    name = "docker"

    def __init__(self, host: str | None = None, *, runtime: str = "", images: ImageRules = DEFAULT_RULES) -> None:
        self._host = host
        self._runtime = runtime
        self.image_rules = images
        self._images = Images(images)
        # Units that the engine could not end; a lock of one is held while its containers are ended.
        self._left: dict[str, threading.Lock] = {}

    def available(self) -> tuple[bool, str]:
        """Say whether an engine answers and has the runtime; the reason is its version when it does."""
        from docker.errors import DockerException

        try:
            with self._connect() as api:
                version, info = api.version(), api.info()
        except DockerException as failed:
            return False, f"no Docker engine answers: {why_silent(failed)}"
        lack = no_runtime(info, self._runtime)
        return (False, lack) if lack else (True, engine_name(version, runtime_in(info, self._runtime)))

    def how_to_start(self) -> str:
        """Return what the worker's owner does where no engine answers."""
        return start_engine(self._host)

    def unknown_runtime(self) -> str:
        """Return the sentence on an engine that answers and does not know the runtime of the settings, else ""."""
        from docker.errors import DockerException

        if not self._runtime:
            return ""
        try:
            with self._connect() as api:
                return no_runtime(api.info(), self._runtime)
        except DockerException:
            return ""

    def prepare(self, target: str, until: float = math.inf, cancel: threading.Event | None = None) -> RunResult | None:
        """Pull an image by digest unless it is there; a result says why it cannot be run."""
        from docker.errors import DockerException
        from requests.exceptions import RequestException

        parsed = parse_image(target)
        if parsed is None:
            return RunResult(
                RunStatus.IMAGE_MISSING, f"the image {target!r} is not pinned: name@sha256:<64 hex digits>"
            )
        try:
            with self._connect() as api:
                return self._images.ready(api, *parsed, until, cancel or threading.Event())
        except (DockerException, RequestException) as failed:
            return _broken("the engine could not prepare the image", failed)

    def keeping(self, target: str) -> AbstractContextManager[None]:
        """Keep an image from being removed for others that are pulled."""
        parsed = parse_image(target)
        return nullcontext() if parsed is None else self._images.held("@".join(parsed))

    def inspect(self, request: RunRequest, cancel: threading.Event) -> RunResult | None:
        """Say what can be said of a unit without a container."""
        return _refusal(request)

    def run(self, request: RunRequest, cancel: threading.Event, on_log: LogSink | None = None) -> RunResult:
        """Run one unit and judge its outputs; never raises for anything that the job does."""
        refused = _refusal(request)
        if refused is not None:
            return refused
        env, parsed = guest_env(request), parse_image(request.image or "")
        assert parsed is not None
        with self._images.held("@".join(parsed)):
            named, until = "@".join(parsed), request.until - request.least_seconds
            problem = self.prepare(named, until, cancel) or self._end_earlier(request.unit)
            return problem or self._run(request, env, cancel, on_log)

    def _end_earlier(self, unit: str) -> RunResult | None:
        """End what an earlier try of a unit left, and what other units did; a result says why that cannot be.

        An engine that went away took its answers with it, and perhaps not its containers.
        """
        from docker.errors import DockerException
        from requests.exceptions import RequestException

        try:
            self._end_left(unit, self._left.get(unit))
            for other, lock in list(self._left.items()):
                self._end_left(other, lock)
        except (DockerException, RequestException, Unreclaimed, OSError) as failed:
            return _broken("the engine could not end an earlier try", failed)
        return None

    def _end_left(self, unit: str, lock: threading.Lock | None) -> None:
        """End a unit's containers; with a lock, unless it was done since, for then they are those of a later try."""
        with lock or nullcontext():
            if lock is not None and self._left.get(unit) is not lock:
                return
            with self._connect() as api:
                for left in _of_units(api, f"{LABEL}={unit}"):
                    _take_back(api, left)
            self._left.pop(unit, None)

    def _end_later(self, unit: str) -> None:
        """End a unit that the engine could not end as soon as it can: nobody pays for what it holds meanwhile."""
        if unit in self._left:
            return
        lock = self._left[unit] = threading.Lock()
        thread = threading.Thread(target=self._keep_ending, args=(unit, lock), name=f"ending {unit}", daemon=True)
        with suppress(RuntimeError):  # the machine gives no thread now: the next unit that runs ends it
            thread.start()

    def _keep_ending(self, unit: str, lock: threading.Lock) -> None:
        from docker.errors import DockerException
        from requests.exceptions import RequestException

        pause = LEFT_SECONDS
        while self._left.get(unit) is lock:
            time.sleep(pause)
            pause = min(LEFT_MOST_SECONDS, 2 * pause)
            with suppress(DockerException, RequestException, Unreclaimed, OSError):
                self._end_left(unit, lock)

    def run_archive(self, archive: bytes, request: RunRequest) -> RunResult:
        """Run a unit in an image made of a tar archive, with every flag of a pulled one, and remove the image.

        For programs of ours, which need no registry. What a process that was killed left of the same unit goes, too.
        """
        from docker.errors import DockerException
        from requests.exceptions import RequestException

        name = f"hearth-{request.unit.lower()}"
        try:
            with self._connect() as api:
                with suppress(DockerException):
                    api.remove_image(name, force=True)
                told = api.import_image_from_data(archive, repository=name)
                image = str(json.loads(told.splitlines()[-1])["status"])
                try:
                    return self._run(replace(request, image=image), guest_env(request), threading.Event(), None)
                finally:
                    api.remove_image(image, force=True)
        except (DockerException, RequestException, KeyError, ValueError) as failed:
            return _broken("the engine took no image", failed)

    def _run(
        self, request: RunRequest, env: Mapping[str, str], cancel: threading.Event, on_log: LogSink | None
    ) -> RunResult:
        """Run one unit whose image is there and judge its outputs."""
        from docker.errors import DockerException
        from requests.exceptions import RequestException

        try:
            with self._connect() as api:
                version, info = api.version(), api.info()
                runtime = runtime_in(info, self._runtime)
                if request.gpus and is_gvisor(runtime):
                    return RunResult(RunStatus.BROKEN, NO_GPU_IN_GVISOR)
                if request.gpus and (lack := no_gpus(version, info, request.gpus)[0]):
                    return RunResult(RunStatus.GPU_REFUSED, lack)
                if request.gpus and (held := held_elsewhere(api, [gpu.uuid for gpu in request.gpus], request.unit)):
                    return RunResult(RunStatus.GPU_REFUSED, held)
                run = _Run(api, request, env, cancel, on_log, cpus=int(info["NCPU"]), runtime=runtime)
                try:
                    result = run.to_end()
                except (DockerException, RequestException, Unreclaimed):
                    self._end_later(request.unit)
                    raise
        except (DockerException, RequestException) as failed:
            return _broken("the engine failed", failed)
        except Unreclaimed as failed:
            return RunResult(RunStatus.BROKEN, str(failed))
        if result.ok:
            status, detail = check_outputs(request.out_dir, request.outputs, request.limits.out_bytes)
            result = replace(result, status=status, detail=detail)
        return replace(result, engine=engine_name(version, runtime))

    def walls_down(self) -> int:
        """Count none: a container's walls are looked at in one (`hearth worker selftest`)."""
        return 0

    def copy_out(self, request: RunRequest, place: str, into: Path, moved: Callable[[], None]) -> None:
        """Copy what a running unit has published, while its container is paused: then nothing of it moves.

        It goes on in any case: a worker that ends here leaves it to the next, which ends it (`sweep`).
        """
        from docker.errors import DockerException, NotFound
        from requests.exceptions import RequestException

        try:
            with self._connect() as api:
                found = api.containers(filters={"label": f"{LABEL}={request.unit}", "status": "running"})
                container = next((each["Id"] for each in found if not _is_janitor(each)), None)
                if container is None:
                    return
                try:
                    api.pause(container)
                    with suppress(NotFound):  # it has published nothing yet
                        # Closed before the container goes on: the engine locks it for as long as an archive is read.
                        where = api._url("/containers/{0}/archive", container)
                        with closing(
                            api.get(where, params={"path": place}, stream=True, timeout=PAUSE_SECONDS)
                        ) as answer:
                            api._raise_for_status(answer)
                            chunks = _until(answer.iter_content(ARCHIVE_BYTES), PAUSE_SECONDS)
                            copy_archive(chunks, place, into, request.limits.out_bytes, moved)
                finally:
                    self._go_on(container)
        except (DockerException, RequestException) as failed:
            log.warning("a checkpoint was not copied", unit=request.unit, engine=_first_line(failed))
            raise StorageError("the engine gave no checkpoint", code="ENGINE", retryable=True) from failed

    def _go_on(self, container: str) -> None:
        """Let a container go on, whatever became of the connection that paused it; asked again where the engine is
        slow to answer.

        Raises the errors of docker and requests where it cannot be. Its unit's run then ends it at its time.
        """
        from docker.errors import APIError, DockerException, NotFound
        from requests.exceptions import RequestException

        for left in reversed(range(UNPAUSE_TRIES)):
            try:
                with self._connect() as api:
                    if not api.inspect_container(container)["State"]["Paused"]:
                        return
                    api.unpause(container)
                    return
            except NotFound:
                return
            except APIError as failed:
                if "is not paused" in str(failed) or "is not running" in str(failed):
                    return
                if not left:
                    raise
            except (DockerException, RequestException):
                if not left:
                    raise
            time.sleep(LEFT_SECONDS)

    def sweep(self, prefix: str = "") -> int:
        """End the units whose label starts with `prefix` and take back their outputs; 0 where no engine answers.

        A unit's container is there until its outputs are the worker's, and names their folder.
        """
        from docker.errors import DockerException
        from requests.exceptions import RequestException

        try:
            with self._connect() as api:
                found = [each for each in _of_units(api, LABEL) if each["Labels"][LABEL].startswith(prefix)]
                return sum(_clear(api, each) for each in found)
        except (DockerException, RequestException) as failed:
            log.warning("containers of an earlier process may be left", engine=_first_line(failed))
            return 0

    def gpu_refusals(self, gpus: Sequence[Device]) -> str:
        """Say why the engine gives containers no GPUs, or not all of these; "" where it may, or does not answer."""
        return self._told(lambda api: no_gpus(api.version(), api.info(), gpus)[0])

    def gpu_remedy(self, gpus: Sequence[Device]) -> str:
        """Say what its owner does about an engine that gives containers no GPUs, "" where it may."""
        return self._told(lambda api: no_gpus(api.version(), api.info(), gpus)[1])

    def gpu_held(self, gpu: Device) -> str:
        """Say which container that runs has a GPU, "" for none, or where no engine answers."""
        return self._told(lambda api: held_elsewhere(api, (gpu.uuid,), ""))

    def _told(self, ask: Callable[[Any], str]) -> str:
        """Return what a question says of the engine, "" where that does not answer."""
        from docker.errors import DockerException
        from requests.exceptions import RequestException

        try:
            with self._connect() as api:
                return ask(api)
        except (DockerException, RequestException):
            return ""

    def try_gpu(self, gpu: Device) -> str:
        """Start a program of ours with a GPU as a job would have it; say what is wrong with that, "" for nothing."""
        from docker.errors import DockerException
        from requests.exceptions import RequestException

        try:
            with self._connect() as api:
                if lack := no_gpus(api.version(), api.info(), (gpu,))[0]:
                    return lack
                return try_gpu(api, gpu, self._runtime)
        except (DockerException, RequestException, Unreclaimed) as failed:
            return f"the engine gives a container no GPU: {_first_line(failed)}"

    def capabilities(
        self, chain_id: int, *, gpus: Sequence[Device] = (), patched: frozenset[str] = frozenset()
    ) -> list[Check]:
        """Return the rows of `hearth worker doctor` about the engine; one FAIL row if none answers.

        `patched` are the versions of runc that the provider says its distribution has mended.
        """
        from docker.errors import DockerException

        try:
            with self._connect() as api:
                version, info = api.version(), api.info()
                rows = judge_engine(version, info, chain_id, gpus=gpus, patched=patched, wished=self._runtime)
                return [*rows, look_at_disk(info), look_at_janitor(version)]
        except DockerException as failed:
            return [
                Check(
                    "docker engine",
                    Level.FAIL,
                    f"no engine answers: {why_silent(failed)}",
                    f'{self.how_to_start()}, or set offer.runtimes = ["wasm"]',
                )
            ]

    def _connect(self) -> Any:  # docker.APIClient, whose published types leave half of its calls untyped
        from docker import APIClient
        from docker.utils import kwargs_from_env

        where = {"base_url": self._host} if self._host is not None else kwargs_from_env()
        return APIClient(**where, version="auto", timeout=ENGINE_SECONDS)


class _Run:
    """Hold one container from creation to removal."""

    def __init__(
        self,
        api: Any,
        request: RunRequest,
        env: Mapping[str, str],
        cancel: threading.Event,
        on_log: LogSink | None,
        *,
        cpus: int,
        runtime: str,
    ) -> None:
        self._api = api
        self._request = request
        self._env = env
        self._cancel = cancel
        self._on_log = on_log
        self._cpus = cpus
        self._runtime = runtime
        self._logs = {"stdout": LogBuffer(request.limits.log_bytes), "stderr": LogBuffer(request.limits.log_bytes)}
        self._sent = {"stdout": 0, "stderr": 0}
        self._free_before = free_bytes(request.out_dir)

    def to_end(self) -> RunResult:
        from docker.errors import APIError

        request, api = self._request, self._api
        share_inputs((request.job_dir, request.in_dir))
        lend_output(request.out_dir)
        image = api.inspect_image(request.image).get("Config") or {}
        if not request.command and not has_command(image):
            return RunResult(RunStatus.IMAGE_MISSING, NO_COMMAND)
        volumes = volumes_of(image)
        # The guest's user has no home that it could write to; an image that names one knows what lies there.
        homes = {name: place for name, place in home_of(request).items() if not declares(image, name)}
        container, config, refused = self._create(homes, volumes)
        if refused is not None:
            return self._not_started(refused, config, volumes)
        began = time.monotonic()
        looker = Looker(api, request.out_dir, request.unit, container)
        try:
            ours = (*OURS, SCRATCH) if request.gpus else OURS
            if fault := place_fault(lambda path: self._look(container, path), volumes, ours):
                return RunResult(RunStatus.IMAGE_MISSING, fault)
            # The engine takes up both streams before it answers, so that nothing of a later start is missed. Its log,
            # asked for as well, would repeat whatever was written until it is read.
            stream = api.attach(container, stdout=True, stderr=True, stream=True, demux=True)
            reader = threading.Thread(target=self._read, args=(stream,), daemon=True)
            reader.start()
            try:
                began = time.monotonic()
                api.start(container)
            except APIError as failed:
                result = self._not_started(failed, config, volumes)
            else:
                stopped = self._watch(container, Meter(request, looker, self._free_before), began)
                reader.join(ENGINE_SECONDS)
                result = name_end(end_of(api, container, stopped), stopped, request)
                if stopped is None and not _ended_by_itself(api, container):
                    log.warning("a container was stopped from outside", unit=request.unit, state=result.detail)
                    result = RunResult(RunStatus.BROKEN, STOPPED)
        finally:
            request.room.watched = False
            looker.close()
            wiped = _end(api, container, request.out_dir, request.unit)
        if wiped and result.ok:
            result = RunResult(RunStatus.OUTPUT_OVER_CAP, wiped)
        return replace(
            result,
            wall_seconds=time.monotonic() - began,
            stdout=self._logs["stdout"].value(),
            stderr=self._logs["stderr"].value(),
            stdout_truncated=self._logs["stdout"].truncated,
            stderr_truncated=self._logs["stderr"].truncated,
        )

    def _create(
        self, env: Mapping[str, str], volumes: Iterable[str]
    ) -> tuple[str, Mapping[str, Any], Exception | None]:
        """Make the container, as a user whom no other is: return its id, what was asked for, and why there is none."""
        from docker.errors import APIError

        with _CHOOSING:
            others = [each["Labels"] for each in self._api.containers(all=True, filters={"label": LABEL})]
            config = container_config(
                self._request,
                {**env, **self._env},
                volumes,
                cpus=min(self._request.limits.cpus, self._cpus),
                runtime=self._runtime,
                user=free_user(others, os.getpid()),
            )
            try:
                return self._api.create_container_from_config(config)["Id"], config, None
            except APIError as failed:
                return "", config, failed

    def _look(self, container: str, path: str) -> Mapping[str, Any] | None:
        """Return what the engine says of a path in a container, None where nothing is there, or no way to it.

        What no mount can be made at, the engine says at the start.
        """
        from docker.errors import APIError
        from docker.utils import decode_json_header

        where = self._api._url("/containers/{0}/archive", container)
        answer = self._api.head(where, params={"path": path}, timeout=ENGINE_SECONDS)
        try:
            self._api._raise_for_status(answer)
        except APIError:
            return None
        found: Mapping[str, Any] = decode_json_header(answer.headers["X-Docker-Container-Path-Stat"])
        return found

    def _not_started(self, failed: Exception, config: Mapping[str, Any], volumes: Iterable[str]) -> RunResult:
        """Name whose doing it is that the engine did not start a container: what it says is known, or it is asked again
        with a program of ours."""
        result = name_start_failure(_first_line(failed), self._request.command, volumes)
        if self._request.gpus and not starts_ours(self._api, config):
            # Whatever a hook of the GPU's says, it is this machine's.
            if starts_ours(self._api, without_gpus(config)):
                return RunResult(RunStatus.GPU_REFUSED, f"the engine gives a container no GPU: {_first_line(failed)}")
            return result
        if result.status is RunStatus.BROKEN and (self._request.gpus or starts_ours(self._api, config)):
            return RunResult(RunStatus.IMAGE_MISSING, NO_PLACE)
        return result

    def _read(self, stream: Iterable[tuple[bytes | None, bytes | None]]) -> None:
        for pair in stream:
            for name, chunk in zip(("stdout", "stderr"), pair, strict=True):
                if chunk:
                    self._logs[name].write(chunk)
                    room = self._request.limits.log_bytes - self._sent[name]
                    if self._on_log is not None and room > 0:
                        self._sent[name] += min(room, len(chunk))
                        self._on_log(name, chunk[:room])

    def _watch(self, container: str, meter: Meter, began: float) -> RunResult | None:
        """Wait for the end; kill on cancel, past the time, or past the output cap, and return why it was killed."""
        room = self._request.room
        room.watched = True
        while self._api.inspect_container(container)["State"]["Running"]:
            reason = None
            excess = meter.excess()
            if self._cancel.is_set():
                reason = RunResult(RunStatus.CANCELLED, "cancelled")
            elif time.monotonic() - began > self._request.wall_seconds:
                reason = RunResult(RunStatus.TIMEOUT, f"not done after {self._request.wall_seconds} s")
            elif excess:
                room.over = True
                reason = RunResult(RunStatus.OUTPUT_OVER_CAP, excess)
            if reason is not None:
                _kill(self._api, container)
                return reason
            self._cancel.wait(POLL_SECONDS)
        return None


def _refusal(request: RunRequest) -> RunResult | None:
    """Return why no container can be made for a unit, whatever its image holds, or None."""
    if parse_image(request.image or "") is None:
        return RunResult(RunStatus.IMAGE_MISSING, f"the image {request.image!r} is not pinned by digest")
    try:
        guest_env(request)
    except HearthError as refused:
        return RunResult(RunStatus.BAD_INPUT, refused.message)
    # The hooks that give a GPU run in the container's memory: what kills them must not look like the GPU's fault.
    least = DOCKER.least_memory_with_gpus if request.gpus else DOCKER.least_memory
    if request.limits.memory_bytes < least:
        asked = format_size(request.limits.memory_bytes)
        what = f"a container{' with GPUs' if request.gpus else ''} has {format_size(least)} at least"
        return RunResult(RunStatus.BAD_INPUT, f"resources.memory is {asked}, and {what}")
    return None


def _ended_by_itself(api: Any, container: str) -> bool:
    """Say whether the engine saw a container die before anybody killed it.

    An engine that is stopped ends its containers, and one that comes back after a crash those that live on. What that
    makes of a program looks like an end of its own: exit status 137, or 0 where it obeys. But an engine forgets what it
    saw when it ends, and notes a kill before the death.
    """
    now = datetime.fromisoformat(api.info()["SystemTime"]).timestamp()
    wanted = {"container": container, "event": ["kill", "die"]}
    with closing(api.events(since=0, until=int(now) + EVENTS_SECONDS, filters=wanted, decode=True)) as events:
        first: Mapping[str, Any] = next(iter(events), {})
    return first.get("Action") == "die"


def _kill(api: Any, container: str) -> None:
    """Kill a container and wait for its end; one that has ended or was never started is left as it is."""
    from docker.errors import APIError

    try:
        api.kill(container)
    except APIError as failed:
        if "is not running" not in str(failed):
            raise
    else:
        api.wait(container, timeout=ENGINE_SECONDS)


def _end(api: Any, container: str, output: Path | None, unit: str) -> str:
    """Kill a unit's container, take its outputs back, and only then remove it, so that a sweep can repeat both.

    Returns why the outputs were deleted, if they were. Raises Unreclaimed.
    """
    from docker.errors import NotFound

    with suppress(NotFound):  # somebody else removed it
        _kill(api, container)
    emptied = reclaim(api, output, unit) if output is not None and output.is_dir() else ""
    with suppress(NotFound):
        api.remove_container(container, force=True, v=True)
    return emptied


def _of_units(api: Any, label: str) -> list[Mapping[str, Any]]:
    """List containers with a label of ours; a janitor's come first: nobody waits for them any more."""
    found: list[Mapping[str, Any]] = api.containers(all=True, filters={"label": label})
    return sorted(found, key=lambda each: not _is_janitor(each))


def _is_janitor(found: Mapping[str, Any]) -> bool:
    """Say whether a container from the engine's list is a janitor; an image's own label says "1" for no unit."""
    return bool(found["Labels"].get(JANITOR_LABEL) == "1")


def _clear(api: Any, found: Mapping[str, Any]) -> bool:
    """End what an earlier process left, from the engine's list; say whether it was a unit and is gone."""
    from docker.errors import APIError

    try:
        return _take_back(api, found)
    except (APIError, Unreclaimed, OSError) as failed:
        log.warning("a container of an earlier process is left", unit=found["Labels"][LABEL], why=str(failed))
        return False


def _take_back(api: Any, found: Mapping[str, Any]) -> bool:
    """End a container from the engine's list, and take back its outputs; say whether it was a unit.

    Raises Unreclaimed, and the errors of docker and requests where the engine fails.
    """
    if _is_janitor(found):
        api.remove_container(found["Id"], force=True, v=True)
        return False
    _end(api, found["Id"], output_of(found), found["Labels"][LABEL])
    return True


def output_of(container: Mapping[str, Any]) -> Path | None:
    """Return the folder that a container has as /out, from the engine's list."""
    found = [mount["Source"] for mount in container.get("Mounts", []) if mount.get("Destination") == "/out"]
    return Path(found[0]) if found else None


def end_of(
    api: Any, container: str, stopped: RunResult | None, pause: Callable[[float], None] = time.sleep
) -> Mapping[str, Any]:
    """Return the engine's State of a container that has ended.

    An engine hears of an end and of the memory limit that brought it apart, and under load of the limit later: of one
    that was killed, and not by us, it is asked again for OOM_SECONDS.
    """
    for _ in range(OOM_LOOKS):
        state: Mapping[str, Any] = api.inspect_container(container)["State"]
        if stopped is not None or int(state["ExitCode"]) != KILLED or state.get("OOMKilled"):
            return state
        pause(OOM_SECONDS / OOM_LOOKS)
    return state


def name_end(state: Mapping[str, Any], stopped: RunResult | None, request: RunRequest) -> RunResult:
    """Name the end of a container from the engine's State and from why it was stopped, if it was."""
    if stopped is not None:
        return stopped
    code = int(state["ExitCode"])
    if state.get("OOMKilled") and code != 0:
        return RunResult(
            RunStatus.OOM, f"killed at its memory limit of {request.limits.memory_bytes} bytes", exit_code=code
        )
    if code == 0:
        return RunResult(RunStatus.OK, exit_code=0)
    return RunResult(RunStatus.EXIT, f"the program exited with {code}", exit_code=code)


def name_start_failure(message: str, command: Sequence[str] = (), volumes: Iterable[str] = ()) -> RunResult:
    """Tell a command that the image does not have, or a volume in its own way, from an engine that cannot start."""
    for volume in volumes:
        place = posixpath.normpath(volume)
        if f'to rootfs at "{place}"' in message or f'mount submount "{place}"' in message:
            return RunResult(RunStatus.IMAGE_MISSING, no_volume(volume))
    program = f"{command[0]!r} or the image's entry point" if command else "the image's own command"
    # gVisor says in its own words that it cannot read or understand the program. A hook that cannot be run is a
    # "fork/exec" of this machine's.
    asked = bool(EXEC.search(message)) or GVISOR_LOADS in message
    if "executable file not found" in message or ("no such file or directory" in message and asked):
        return RunResult(RunStatus.EXIT, f"{program} was not found in the image", exit_code=127)
    if ("permission denied" in message and asked) or GVISOR_LOADS in message:
        return RunResult(RunStatus.EXIT, f"{program} cannot be executed in the image", exit_code=126)
    log.warning("container not started", engine=message)
    return RunResult(RunStatus.BROKEN, "the engine could not start the container: the worker's log has its reason")


def _until(chunks: Iterable[bytes], seconds: float) -> Iterator[bytes]:
    """Pass on what comes in so many seconds. Raises StorageError where that is not all."""
    end = time.monotonic() + seconds
    for chunk in chunks:
        if time.monotonic() >= end:
            raise StorageError(f"its copy took more than {seconds:.0f} s", code="SLOW", hint="hearth worker status")
        yield chunk


def _broken(what: str, failed: Exception) -> RunResult:
    """Log what the engine said and return a result without it."""
    log.warning(what, engine=_first_line(failed))
    return RunResult(RunStatus.BROKEN, f"{what}: the worker's log has its reason")


def _first_line(failed: Exception) -> str:
    explanation = getattr(failed, "explanation", None)
    text = str(explanation or failed).strip()
    return text.splitlines()[0][:500] if text else type(failed).__name__
