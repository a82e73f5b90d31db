"""The docker runtime: one container per unit, by digest, without network, rights or a writable root.

`container_config` is the whole request to the engine as a pure function, so that a flag which this machine cannot
honour is still tested as a request. What an engine lacks is a row of `capabilities`, never a silent omission.
Source: SAFETY section 4, container flags and GPU.
"""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hearth.base.errors import HearthError
from worker.gpu import check_runc, parse_version
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

IMAGE = re.compile(r"(?P<name>[a-z0-9][a-zA-Z0-9._:/-]{0,254}?)(?::[\w.-]{1,128})?@(?P<digest>sha256:[0-9a-f]{64})\Z")
GPU_UUID = re.compile(r"GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")
LABEL = "hearth.unit"
GUEST_UID = 65534
CDI_ENGINE_MAJOR = 25
POLL_SECONDS = 0.25
ENGINE_SECONDS = 60
SHM_BYTES = 64 << 20
# One file may pass the cap by this much, so that the size check sees it and names the reason.
FILE_SLACK_BYTES = 1 << 20
# Read by every process that starts in the container, also by the GPU hook outside of it (CVE-2025-23266).
IMAGE_ENV_REFUSED = ("LD_PRELOAD", "LD_AUDIT")


@dataclass(frozen=True)
class ImageFacts:
    """Hold what an image brings along that the sandbox must answer: its environment and its declared volumes."""

    env: tuple[str, ...] = ()
    volumes: tuple[str, ...] = ()


def parse_image(reference: str) -> tuple[str, str] | None:
    """Return (name with registry, digest), or None unless the reference names a digest; a tag beside it is dropped."""
    found = IMAGE.match(reference)
    return (found["name"], found["digest"]) if found else None


def container_config(
    request: RunRequest,
    env: Mapping[str, str],
    image: ImageFacts = ImageFacts(),
    *,
    cpus: int,
    runtime: str = "",
) -> dict[str, Any]:
    """Return the body of the engine's create call for one unit: every flag of the sandbox is here and nowhere else."""
    limits = request.limits
    tmpfs = f"rw,noexec,nosuid,nodev,size={limits.tmp_bytes},mode=1777"
    config: dict[str, Any] = {
        "Image": request.image,
        "WorkingDir": "/job",
        "User": f"{GUEST_UID}:{GUEST_UID}",
        # void: an engine whose default runtime is NVIDIA's gives an image that asks for all GPUs none.
        "Env": [f"{name}={value}" for name, value in env.items()] + ["NVIDIA_VISIBLE_DEVICES=void"],
        "Labels": {LABEL: request.unit},
        "NetworkDisabled": True,
        "OpenStdin": False,
        "Tty": False,
        "StopTimeout": 5,
        "Healthcheck": {"Test": ["NONE"]},
        "HostConfig": {
            "NetworkMode": "none",
            "ReadonlyRootfs": True,
            "Privileged": False,
            "CapDrop": ["ALL"],
            "SecurityOpt": ["no-new-privileges"],
            "IpcMode": "private",
            "CgroupnsMode": "private",
            "PidsLimit": limits.pids,
            "Memory": limits.memory_bytes,
            "MemorySwap": limits.memory_bytes,
            "NanoCpus": cpus * 10**9,
            "ShmSize": SHM_BYTES,
            "Ulimits": [
                _ulimit("nofile", 1024),
                _ulimit("core", 0),
                _ulimit("fsize", max(limits.out_bytes, limits.tmp_bytes) + FILE_SLACK_BYTES),
            ],
            # A VOLUME of the image would be a writable folder on the host's disk without a cap.
            "Tmpfs": {path: tmpfs for path in ("/tmp", *image.volumes) if path not in ("/in", "/job", "/out")},
            "Mounts": [
                _bind(request.job_dir, "/job", read_only=True),
                _bind(request.in_dir, "/in", read_only=True),
                _bind(request.out_dir, "/out", read_only=False),
            ],
            "LogConfig": {"Type": "local", "Config": {"max-size": "10m", "max-file": "2"}},
            "RestartPolicy": {"Name": "no"},
            "OomScoreAdj": 500,
        },
    }
    if request.command:
        config["Cmd"] = list(request.command)
    if runtime:
        config["HostConfig"]["Runtime"] = runtime
    if request.gpus:
        ids = [f"nvidia.com/gpu={uuid}" for uuid in request.gpus]
        config["HostConfig"]["DeviceRequests"] = [{"Driver": "cdi", "DeviceIDs": ids}]
    return config


def _ulimit(name: str, value: int) -> dict[str, Any]:
    return {"Name": name, "Soft": value, "Hard": value}


def _bind(source: Path, target: str, *, read_only: bool) -> dict[str, Any]:
    options = {"Propagation": "rprivate", "NonRecursive": True}
    path = os.path.abspath(source)
    return {"Type": "bind", "Source": path, "Target": target, "ReadOnly": read_only, "BindOptions": options}


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
        return True, _engine_name(version, self._runtime)

    def prepare(self, target: str) -> RunResult | None:
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
                    problem = self._pull(api, name, digest)
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
        wrong = [uuid for uuid in request.gpus if not GPU_UUID.match(uuid)]
        if wrong:
            return RunResult(RunStatus.BROKEN, f"{wrong[0]!r} is not a GPU UUID")
        return self.prepare(request.image) or self._run(request, env, cancel, on_log)

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
                    return RunResult(RunStatus.BROKEN, _no_cdi(version))
                run = _Run(api, request, env, cancel, on_log, self._runtime)
                result = run.to_end()
        except (DockerException, RequestException) as failed:
            return RunResult(RunStatus.BROKEN, f"the engine failed: {_first_line(failed)}")
        if result.ok:
            status, detail = check_outputs(request.out_dir, request.outputs, request.limits.out_bytes)
            result = replace(result, status=status, detail=detail)
        return replace(result, engine=_engine_name(version, self._runtime))

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
    def _pull(api: Any, name: str, digest: str) -> RunResult | None:
        """Pull one digest; return why it failed, telling a missing image from a registry that does not answer."""
        from docker.errors import APIError, NotFound

        try:
            lines = list(api.pull(name, tag=digest, stream=True, decode=True))
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
        config = container_config(
            request,
            self._env,
            ImageFacts(volumes=tuple(sorted(facts["Config"].get("Volumes") or {}))),
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
                result = name_start_failure(_first_line(failed))
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


def name_start_failure(message: str) -> RunResult:
    """Tell a command that the image does not have, which is the job's fault, from an engine that cannot start."""
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
    """Refuse an image whose environment preloads code, from the engine's inspection of it."""
    for item in facts["Config"].get("Env") or []:
        if item.partition("=")[0] in IMAGE_ENV_REFUSED:
            return RunResult(
                RunStatus.IMAGE_MISSING, f"the image sets {item.partition('=')[0]}, which this worker refuses"
            )
    return None


def engine_major(version: Mapping[str, Any]) -> int:
    """Return the major version of an engine, 0 if it names none."""
    found = parse_version(str(version.get("Version", "")))
    return found[0] if found else 0


def _no_cdi(version: Mapping[str, Any]) -> str:
    return f"Docker {version['Version']} cannot give GPUs by CDI: it needs {CDI_ENGINE_MAJOR} or newer"


def _engine_name(version: Mapping[str, Any], runtime: str) -> str:
    return f"docker {version['Version']} {runtime or 'runc'} {version['Os']}/{version['Arch']}"


def _first_line(failed: Exception) -> str:
    explanation = getattr(failed, "explanation", None)
    text = str(explanation or failed).strip()
    return text.splitlines()[0][:500] if text else type(failed).__name__


def judge_engine(
    version: Mapping[str, Any],
    info: Mapping[str, Any],
    chain_id: int,
    *,
    gpus: int = 0,
    patched: frozenset[str] = frozenset(),
) -> list[Check]:
    """Grade an engine from its `version` and `info` answers; pure, so that recorded engines are tests."""
    rows = [Check("docker engine", Level.PASS, _engine_name(version, ""))]
    runc = next((str(part["Version"]) for part in version.get("Components", []) if part["Name"] == "runc"), "")
    rows.append(check_runc(runc, chain_id, patched))
    for flag, name in (
        ("MemoryLimit", "memory limit"),
        ("SwapLimit", "swap limit"),
        ("PidsLimit", "process limit"),
        ("CpuCfsQuota", "cpu limit"),
    ):
        honoured = bool(info.get(flag))
        level = Level.PASS if honoured else Level.WARN if flag == "SwapLimit" else Level.FAIL
        fix = "" if honoured else f"boot a kernel with the {name} cgroup"
        rows.append(Check(name, level, "honoured" if honoured else "this kernel or engine does not honour it", fix))
    security = [str(option) for option in info.get("SecurityOptions") or []]
    rows.append(_security_row(security, "seccomp", Level.FAIL, "start the engine with its default seccomp profile"))
    rows.append(_security_row(security, "apparmor", Level.WARN, "enable AppArmor in the kernel"))
    remapped = any("userns" in option or "rootless" in option for option in security)
    rows.append(
        Check(
            "user namespace",
            Level.PASS if remapped else Level.WARN,
            "root in a container is nobody outside" if remapped else "containers share the host's user ids",
            "" if remapped else "start the engine with --userns-remap=default, or rootless",
        )
    )
    local = "local" in (info.get("Plugins") or {}).get("Log", [])
    rows.append(
        Check(
            "log driver local",
            Level.PASS if local else Level.FAIL,
            "present" if local else "missing: logs of a container could fill the disk",
            "" if local else "upgrade the engine",
        )
    )
    runsc = "runsc" in (info.get("Runtimes") or {})
    rows.append(
        Check(
            "gVisor (runsc)",
            Level.PASS if runsc else Level.WARN,
            "registered" if runsc else "not registered: containers share the host's kernel",
            "" if runsc else 'install gVisor and set docker.runtime = "runsc" in worker.toml',
        )
    )
    rows.append(
        Check(
            "output quota",
            Level.WARN,
            "/out is watched and its unit killed at the cap, which a burst may pass for a moment",
            "keep the worker's folder on a file system of its own",
        )
    )
    if gpus:
        able = engine_major(version) >= CDI_ENGINE_MAJOR
        rows.append(
            Check(
                "GPU by CDI",
                Level.PASS if able else Level.FAIL,
                "the engine takes CDI device requests" if able else _no_cdi(version),
                "" if able else f"upgrade Docker to {CDI_ENGINE_MAJOR} or newer",
            )
        )
    return rows


def _security_row(options: list[str], name: str, missing: Level, fix: str) -> Check:
    found = next((option for option in options if name in option), "")
    unconfined = "unconfined" in found
    if found and not unconfined:
        return Check(name, Level.PASS, found)
    return Check(name, missing, "unconfined" if unconfined else "not active in this engine", fix)


def share_inputs(folders: Iterable[Path]) -> None:
    """Let the guest's user read the input folders: the worker's umask hides them from every other user."""
    for folder in folders:
        for here, _, files in os.walk(folder):
            os.chmod(here, stat.S_IMODE(os.lstat(here).st_mode) | 0o055)
            for name in files:
                path = os.path.join(here, name)
                mode = os.lstat(path).st_mode
                if stat.S_ISREG(mode):
                    os.chmod(path, stat.S_IMODE(mode) | 0o044)


def lend_output(folder: Path) -> None:
    """Let the guest's user write the output folder and what an earlier attempt left in it."""
    if os.geteuid() != 0:
        os.chmod(folder, 0o777)  # the folder above keeps everyone else out
        return
    _own(folder, GUEST_UID, GUEST_UID)


def take_output(folder: Path) -> str:
    """Give the outputs to the worker's user, readable, without set-id bits; links are left for `check_outputs`.

    A tree too deep for tools that go by path names is deleted instead, and the reason returned.
    """
    tree = measure(folder)
    if tree.too_deep:
        with os.scandir(folder) as found:
            paths = [entry.path for entry in found]
        subprocess.run(["rm", "-rf", "--", *paths], check=True)  # unlike shutil, it has no limit on depth
        return tree.offence
    if os.geteuid() != 0:
        return ""
    _own(folder, os.geteuid(), os.getegid())
    for here, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = os.path.join(here, name)
            mode = os.lstat(path).st_mode
            if stat.S_ISDIR(mode):
                os.chmod(path, 0o700)
            elif stat.S_ISREG(mode):
                os.chmod(path, 0o600)
    os.chmod(folder, 0o700)
    return ""


def _own(folder: Path, uid: int, gid: int) -> None:
    os.chown(folder, uid, gid)
    for here, folders, files in os.walk(folder):
        for name in (*folders, *files):
            os.chown(os.path.join(here, name), uid, gid, follow_symlinks=False)
