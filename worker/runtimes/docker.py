"""The docker runtime: one container per unit, by digest, without network, rights or a writable root.

What the engine is asked is in docker_request, what it can do in docker_engine, the folders it shares in docker_files.
"""

from __future__ import annotations

import json
import math
import posixpath
import re
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from hearth.base.errors import HearthError
from hearth.base.text import brief, plain
from hearth.protocol.runtimes import DOCKER
from hearth.protocol.units import format_size
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
    measure,
    over_cap,
)
from worker.runtimes.docker_engine import CDI_ENGINE_MAJOR, engine_major, engine_name, judge_engine, no_cdi
from worker.runtimes.docker_files import lend_output, share_inputs, take_output
from worker.runtimes.docker_request import LABEL, ImageFacts, container_config, parse_image

GPU_UUID = re.compile(r"GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")
POLL_SECONDS = 0.25
ENGINE_SECONDS = 60
MAX_VOLUMES = 64
# Read by every process that starts in the container, also by the GPU hook outside of it (CVE-2025-23266).
IMAGE_ENV_REFUSED = ("LD_PRELOAD", "LD_AUDIT")


class DockerRuntime:
    """Run containers on the engine at `host` (None: DOCKER_HOST or the default socket).

    `runtime` names an OCI runtime registered with the engine, such as "runsc"; the engine's default where it is empty.
    """

    name = "docker"

    def __init__(self, host: str | None = None, *, runtime: str = "") -> None:
        self._host = host
        self._runtime = runtime

    def available(self) -> tuple[bool, str]:
        """Say whether an engine answers; the reason is its version when it does."""
        from docker.errors import DockerException

        try:
            with self._connect() as api:
                version = api.version()
                known = api.info()["Runtimes"]
        except DockerException as failed:
            return False, f"no Docker engine answers: {_first_line(failed)}"
        if self._runtime and self._runtime not in known:
            return False, f"the engine has no runtime {self._runtime}, only {', '.join(sorted(known))}"
        return True, engine_name(version, self._runtime)

    def prepare(self, target: str, until: float = math.inf) -> RunResult | None:
        """Pull an image by digest unless it is there; a result says why it cannot be run."""
        from docker.errors import APIError, DockerException, NotFound
        from requests.exceptions import RequestException

        parsed = parse_image(target)
        if parsed is None:
            return RunResult(
                RunStatus.IMAGE_MISSING, f"the image {target!r} is not pinned: name@sha256:<64 hex digits>"
            )
        name, digest = parsed
        try:
            with self._connect() as api:
                try:
                    facts = api.inspect_image(f"{name}@{digest}")
                except NotFound:
                    problem = self._pull(api, name, digest, until)
                    if problem is not None:
                        return problem
                    facts = api.inspect_image(f"{name}@{digest}")
        except NotFound:
            return RunResult(RunStatus.IMAGE_MISSING, f"the registry gave another image than {digest}")
        except (APIError, DockerException, RequestException) as failed:
            return RunResult(RunStatus.BROKEN, f"the engine could not prepare {name}: {_first_line(failed)}")
        return refuse_image(facts)

    def run(self, request: RunRequest, cancel: threading.Event, on_log: LogSink | None = None) -> RunResult:
        """Run one unit and judge its outputs; never raises for anything that the job does."""
        if request.image is None or parse_image(request.image) is None:
            return RunResult(RunStatus.IMAGE_MISSING, f"the image {request.image!r} is not pinned by digest")
        try:
            env = guest_env(request)
        except HearthError as refused:
            return RunResult(RunStatus.BAD_INPUT, refused.message)
        if request.limits.memory_bytes < DOCKER.least_memory:
            asked, least = format_size(request.limits.memory_bytes), format_size(DOCKER.least_memory)
            return RunResult(RunStatus.BAD_INPUT, f"resources.memory is {asked}, and a container has {least} at least")
        wrong = [uuid for uuid in request.gpus if not GPU_UUID.match(uuid)]
        if wrong:
            return RunResult(RunStatus.BROKEN, f"{wrong[0]!r} is not a GPU UUID")
        return self.prepare(request.image, request.until) or self._run(request, env, cancel, on_log)

    def run_archive(self, archive: bytes, request: RunRequest) -> RunResult:
        """Run a unit in an image made of a tar archive, with every flag of a pulled one, and remove the image.

        For a machine's self-test, which needs no registry.
        """
        from docker.errors import DockerException
        from requests.exceptions import RequestException

        try:
            with self._connect() as api:
                image = str(json.loads(api.import_image_from_data(archive).splitlines()[-1])["status"])
                try:
                    return self._run(replace(request, image=image), guest_env(request), threading.Event(), None)
                finally:
                    api.remove_image(image, force=True)
        except (DockerException, RequestException, KeyError, ValueError) as failed:
            return RunResult(RunStatus.BROKEN, f"the engine took no image: {_first_line(failed)}")

    def _run(
        self, request: RunRequest, env: Mapping[str, str], cancel: threading.Event, on_log: LogSink | None
    ) -> RunResult:
        """Run one unit whose image is there and judge its outputs."""
        from docker.errors import DockerException
        from requests.exceptions import RequestException

        try:
            with self._connect() as api:
                version = api.version()
                if request.gpus and engine_major(version) < CDI_ENGINE_MAJOR:
                    return RunResult(RunStatus.BROKEN, no_cdi(version))
                run = _Run(api, request, env, cancel, on_log, self._runtime)
                result = run.to_end()
        except (DockerException, RequestException) as failed:
            return RunResult(RunStatus.BROKEN, f"the engine failed: {_first_line(failed)}")
        if result.ok:
            status, detail = check_outputs(request.out_dir, request.outputs, request.limits.out_bytes)
            result = replace(result, status=status, detail=detail)
        return replace(result, engine=engine_name(version, self._runtime))

    def sweep(self, prefix: str = "") -> int:
        """Remove containers of units whose label starts with `prefix`; 0 where no engine answers."""
        from docker.errors import DockerException

        removed = 0
        try:
            with self._connect() as api:
                for found in api.containers(all=True, filters={"label": LABEL}):
                    if found["Labels"].get(LABEL, "").startswith(prefix):
                        api.remove_container(found["Id"], force=True, v=True)
                        removed += 1
        except DockerException:
            return removed
        return removed

    def capabilities(self, chain_id: int, *, gpus: int = 0, patched: frozenset[str] = frozenset()) -> list[Check]:
        """Return the rows of `hearth worker doctor` about the engine; one FAIL row if none answers.

        `patched` are the versions of runc that the provider says its distribution has mended.
        """
        from docker.errors import DockerException

        try:
            with self._connect() as api:
                return judge_engine(api.version(), api.info(), chain_id, gpus=gpus, patched=patched)
        except DockerException as failed:
            return [
                Check(
                    "docker engine",
                    Level.FAIL,
                    f"no engine answers: {_first_line(failed)}",
                    'start Docker, or set runtimes = ["wasm"] in worker.toml',
                )
            ]

    def _connect(self) -> Any:  # docker.APIClient, whose published types leave half of its calls untyped
        from docker import APIClient
        from docker.utils import kwargs_from_env

        where = {"base_url": self._host} if self._host is not None else kwargs_from_env()
        return APIClient(**where, version="auto", timeout=ENGINE_SECONDS)

    @staticmethod
    def _pull(api: Any, name: str, digest: str, until: float) -> RunResult | None:
        """Pull one digest; return why it failed, telling a missing image from a registry that does not answer."""
        from docker.errors import APIError, NotFound

        try:
            lines = []
            for line in api.pull(name, tag=digest, stream=True, decode=True):
                lines.append(line)
                if time.monotonic() > until:
                    return RunResult(RunStatus.BAD_INPUT, f"{name}@{digest} was not pulled in the time that there was")
        except NotFound as failed:
            return RunResult(RunStatus.IMAGE_MISSING, f"{name}@{digest}: {_first_line(failed)}")
        except APIError as failed:
            return name_pull_failure(name, digest, _first_line(failed))
        errors = [str(line["error"]) for line in lines if "error" in line]
        return name_pull_failure(name, digest, errors[0]) if errors else None


class _Run:
    """Hold one container from creation to removal."""

    def __init__(
        self,
        api: Any,
        request: RunRequest,
        env: Mapping[str, str],
        cancel: threading.Event,
        on_log: LogSink | None,
        runtime: str,
    ) -> None:
        self._api = api
        self._request = request
        self._env = env
        self._cancel = cancel
        self._on_log = on_log
        self._runtime = runtime
        self._logs = {"stdout": LogBuffer(request.limits.log_bytes), "stderr": LogBuffer(request.limits.log_bytes)}
        self._sent = {"stdout": 0, "stderr": 0}

    def to_end(self) -> RunResult:
        from docker.errors import APIError

        request, api = self._request, self._api
        share_inputs((request.job_dir, request.in_dir))
        lend_output(request.out_dir)
        facts = api.inspect_image(request.image)
        volumes = tuple(sorted(facts["Config"].get("Volumes") or {}))
        config = container_config(
            request,
            self._env,
            ImageFacts(volumes=volumes),
            cpus=min(request.limits.cpus, int(api.info()["NCPU"])),
            runtime=self._runtime,
        )
        container = api.create_container_from_config(config)["Id"]
        began = time.monotonic()
        try:
            stream = api.attach(container, stdout=True, stderr=True, stream=True, logs=True, demux=True)
            reader = threading.Thread(target=self._read, args=(stream,), daemon=True)
            reader.start()
            try:
                began = time.monotonic()
                api.start(container)
                stopped = self._watch(container, began)
            except APIError as failed:
                result = name_start_failure(_first_line(failed), volumes)
            else:
                reader.join(ENGINE_SECONDS)
                result = name_end(api.inspect_container(container)["State"], stopped, request)
        finally:
            api.remove_container(container, force=True, v=True)
            wiped = take_output(request.out_dir)
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

    def _read(self, stream: Iterable[tuple[bytes | None, bytes | None]]) -> None:
        for pair in stream:
            for name, chunk in zip(("stdout", "stderr"), pair, strict=True):
                if chunk:
                    self._logs[name].write(chunk)
                    room = self._request.limits.log_bytes - self._sent[name]
                    if self._on_log is not None and room > 0:
                        self._sent[name] += min(room, len(chunk))
                        self._on_log(name, chunk[:room])

    def _watch(self, container: str, began: float) -> RunResult | None:
        """Wait for the end; kill on cancel, past the time, or past the output cap, and return why it was killed."""
        limits = self._request.limits
        while self._api.inspect_container(container)["State"]["Running"]:
            reason = None
            excess = over_cap(measure(self._request.out_dir), limits.out_bytes)
            if self._cancel.is_set():
                reason = RunResult(RunStatus.CANCELLED, "cancelled")
            elif time.monotonic() - began > limits.wall_seconds:
                reason = RunResult(RunStatus.TIMEOUT, f"not done after {limits.wall_seconds} s")
            elif excess:
                reason = RunResult(RunStatus.OUTPUT_OVER_CAP, excess)
            if reason is not None:
                self._kill(container)
                return reason
            self._cancel.wait(POLL_SECONDS)
        return None

    def _kill(self, container: str) -> None:
        from docker.errors import APIError

        try:
            self._api.kill(container)
        except APIError as failed:
            if "is not running" not in str(failed):
                raise
        self._api.wait(container, timeout=ENGINE_SECONDS)


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


def name_start_failure(message: str, volumes: Iterable[str] = ()) -> RunResult:
    """Tell a command that the image does not have, or a volume in its own way, from an engine that cannot start."""
    for volume in volumes:
        if f'to rootfs at "{posixpath.normpath(volume)}"' in message:
            return RunResult(RunStatus.IMAGE_MISSING, _no_volume(volume))
    if "executable file not found" in message or ("no such file or directory" in message and "exec" in message):
        return RunResult(RunStatus.EXIT, f"the command was not found in the image: {message}", exit_code=127)
    if "permission denied" in message and "exec" in message:
        return RunResult(RunStatus.EXIT, f"the command cannot be executed: {message}", exit_code=126)
    return RunResult(RunStatus.BROKEN, f"the engine could not start the container: {message}")


def name_pull_failure(name: str, digest: str, message: str) -> RunResult:
    """Tell an image that a registry does not have, or not for us, from a registry that cannot answer now."""
    gone = ("manifest unknown", "not found", "denied", "unauthorized", "name unknown", "no matching manifest", "404")
    if any(word in message.lower() for word in gone):
        return RunResult(RunStatus.IMAGE_MISSING, f"{name}@{digest}: {message}")
    return RunResult(RunStatus.BROKEN, f"{name}@{digest} could not be pulled: {message}")


def refuse_image(facts: Mapping[str, Any]) -> RunResult | None:
    """Refuse an image that preloads code or declares volumes that no sandbox has, from the engine's inspection."""
    for item in facts["Config"].get("Env") or []:
        if item.partition("=")[0] in IMAGE_ENV_REFUSED:
            return RunResult(
                RunStatus.IMAGE_MISSING, f"the image sets {item.partition('=')[0]}, which this worker refuses"
            )
    volumes = sorted(facts["Config"].get("Volumes") or {})
    wrong = next((volume for volume in volumes if not is_volume(volume)), None)
    if wrong is not None:
        return RunResult(RunStatus.IMAGE_MISSING, _no_volume(wrong))
    if len(volumes) > MAX_VOLUMES:
        why = f"the image declares {len(volumes)} volumes, more than {MAX_VOLUMES}: build it with fewer"
        return RunResult(RunStatus.IMAGE_MISSING, why)
    return None


def _no_volume(path: str) -> str:
    return (
        f"the image declares a VOLUME that no sandbox can give it, {plain(brief(path))!r}: build it without, and write "
        "to /out or /tmp"
    )


def is_volume(path: str) -> bool:
    """Say whether a folder that an image declares as a volume can be an empty one, as far as its name says."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    return path.startswith("/") and ".." not in parts and parts not in ([], ["proc"], ["dev"])


def _first_line(failed: Exception) -> str:
    explanation = getattr(failed, "explanation", None)
    text = str(explanation or failed).strip()
    return text.splitlines()[0][:500] if text else type(failed).__name__
