"""What an engine can do, judged from its own answers: the rows of `hearth worker doctor` about it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from hearth.base.text import one_line
from worker.gpu.port import Device
from worker.runtimes.base import Check, Level
from worker.runtimes.oci import check_runc, parse_version
from worker.runtimes.profiles import GPU_ROW, GVISOR, is_gvisor

CDI_ENGINE_MAJOR = 25
CDI_ON = 'write {"features": {"cdi": true}} to /etc/docker/daemon.json, then systemctl restart docker'
"""What makes the engine know the GPUs by their UUIDs: after each upgrade of the driver, and each new card."""


def start_engine(host: str | None) -> str:
    """Return what a worker's owner does where no engine answers at `host`, the setting `docker.host`; None where that
    is left out. An engine whose address only the `docker` command knows is named."""
    from hearth.client.posting.engine import address_of_context

    if host:
        return f"start the engine at {one_line(host)}, or mend docker.host in worker.toml"
    named = os.environ.get("DOCKER_HOST")
    if named:
        return f"start the engine at {one_line(named)}, which DOCKER_HOST names, or set docker.host in worker.toml"
    address = address_of_context()
    if address:
        return f'start the engine of your docker context, and set docker.host = "{one_line(address)}" in worker.toml'
    return "start Docker"


def engine_major(version: Mapping[str, Any]) -> int:
    """Return the major version of an engine, 0 if it names none."""
    found = parse_version(str(version.get("Version", "")))
    return found[0] if found else 0


def no_cdi(version: Mapping[str, Any]) -> str:
    """Return the sentence on an engine that is too old to give GPUs."""
    return f"Docker {version['Version']} cannot give GPUs by CDI: it needs {CDI_ENGINE_MAJOR} or newer"


def no_gpus(version: Mapping[str, Any], info: Mapping[str, Any], gpus: Sequence[Device]) -> tuple[str, str]:
    """Say why an engine gives containers no GPUs, or not all of these, and what to do; two empty texts where it may.

    An engine that lists no devices may lack some all the same: a container shows that.
    """
    if any("Podman" in str(part.get("Name", "")) for part in version.get("Components") or []):
        return "Podman's Docker API passes over device requests: a container gets no GPU", "use Docker for GPU jobs"
    if engine_major(version) < CDI_ENGINE_MAJOR:
        return no_cdi(version), f"upgrade Docker to {CDI_ENGINE_MAJOR} or newer"
    if not info.get("CDISpecDirs"):
        return "CDI is off in this engine, by which containers get GPUs", CDI_ON
    if "DiscoveredDevices" in info:
        found = {str(one.get("ID")) for one in info["DiscoveredDevices"] or []}
        missing = [gpu for gpu in gpus if gpu.cdi not in found]
        if missing:
            return f"the engine has no CDI device for {', '.join(gpu.uuid for gpu in missing)}", missing[0].refresh
    return "", ""


def engine_name(version: Mapping[str, Any], runtime: str) -> str:
    """Return an engine's name for reports: its version, its OCI runtime, its platform."""
    return f"docker {version['Version']} {runtime} {version['Os']}/{version['Arch']}"


def runtime_of(name: str) -> str:
    """Return the OCI runtime in an engine's name."""
    return name.split()[2]


def runtime_in(info: Mapping[str, Any], wished: str) -> str:
    """Return the OCI runtime that containers have: the one of the settings, else the engine's default."""
    return wished or str(info.get("DefaultRuntime") or "runc")


def no_runtime(info: Mapping[str, Any], wished: str) -> str:
    """Return the sentence on an engine that does not know the runtime of the settings, "" where it does."""
    known = info.get("Runtimes") or {}
    if not wished or wished in known:
        return ""
    return f"the engine has no runtime {wished}, only {', '.join(sorted(known))}"


def judge_engine(
    version: Mapping[str, Any],
    info: Mapping[str, Any],
    chain_id: int,
    *,
    gpus: Sequence[Device] = (),
    patched: frozenset[str] = frozenset(),
    wished: str = "",
) -> list[Check]:
    """Grade an engine from its `version` and `info` answers; pure, so that recorded engines are tests.

    `gpus` are those that jobs are to get. `wished` is the OCI runtime of the settings, "" for the engine's
    default.
    """
    security = [str(option) for option in info.get("SecurityOptions") or []]
    remapped = any("userns" in option or "rootless" in option for option in security)
    runtime = runtime_in(info, wished)
    return [
        Check("docker engine", Level.PASS, engine_name(version, runtime)),
        check_runc(_runc_of(version), chain_id, patched),
        *_limit_rows(info),
        _security_row(security, "seccomp", Level.FAIL, "start the engine with its default seccomp profile"),
        _security_row(security, "apparmor", Level.WARN, "enable AppArmor in the kernel"),
        _groups_row(info),
        _row(
            "user namespace",
            remapped,
            "root in a container is nobody outside",
            Level.WARN,
            "root in a container would be root of this machine",
            'write {"userns-remap": "default"} to /etc/docker/daemon.json, then systemctl restart docker',
        ),
        _row(
            "log driver local",
            "local" in (info.get("Plugins") or {}).get("Log", []),
            "present",
            Level.FAIL,
            "missing: logs of a container could fill the disk",
            "upgrade the engine",
        ),
        _gvisor_row(info, runtime),
        Check(
            "output quota",
            Level.WARN,
            "a watcher kills the unit once /out is over its cap; a burst may pass the cap for a moment",
            "keep the worker's folder on a file system of its own",
        ),
        *([_gpu_row(version, info, gpus)] if gpus else []),
    ]


def _gpu_row(version: Mapping[str, Any], info: Mapping[str, Any], gpus: Sequence[Device]) -> Check:
    lack, fix = no_gpus(version, info, gpus)
    found = "the engine takes CDI device requests; hearth worker selftest tries each GPU"
    return _row(GPU_ROW, not lack, found, Level.FAIL, lack, fix)


def _groups_row(info: Mapping[str, Any]) -> Check:
    return _row(
        "control groups v2",
        str(info.get("CgroupVersion")) == "2",
        "honoured",
        Level.WARN,
        "version 1, which kernels and engines are giving up: limits are kept by the old rules",
        "boot with systemd.unified_cgroup_hierarchy=1",
    )


def _gvisor_row(info: Mapping[str, Any], runtime: str) -> Check:
    if is_gvisor(runtime):
        arguments = (info.get("Runtimes") or {}).get(runtime, {}).get("runtimeArgs") or []
        if "--oci-seccomp" in arguments:
            text = "--oci-seccomp refuses clone3 in a way that the C library does not expect: threads do not start"
            return Check("gVisor (runsc)", Level.WARN, text, "take it out of runtimeArgs in /etc/docker/daemon.json")
        return Check("gVisor (runsc)", Level.PASS, "containers speak to a kernel of their own")
    text, fix = "containers speak to this machine's kernel", f'set docker.runtime = "{GVISOR}" in worker.toml'
    if not any(map(is_gvisor, info.get("Runtimes") or {})):
        fix = f'runsc install, then systemctl restart docker, and {fix} (docs/PROVIDER.md, "gVisor")'
    return Check("gVisor (runsc)", Level.WARN, text, fix)


def _runc_of(version: Mapping[str, Any]) -> str:
    return next((str(part["Version"]) for part in version.get("Components", []) if part["Name"] == "runc"), "")


def _row(name: str, good: bool, found: str, missing: Level, lack: str, fix: str) -> Check:
    """Return a row that passes with what was `found`, or has the level `missing`, says the `lack`, and its `fix`."""
    return Check(name, Level.PASS, found) if good else Check(name, missing, lack, fix)


def _limit_rows(info: Mapping[str, Any]) -> list[Check]:
    return [
        _row(
            name,
            bool(info.get(flag)),
            "honoured",
            missing,
            "this kernel or engine does not honour it",
            f"boot a kernel with the {name} cgroup",
        )
        for flag, name, missing in (
            ("MemoryLimit", "memory limit", Level.FAIL),
            ("SwapLimit", "swap limit", Level.WARN),
            ("PidsLimit", "process limit", Level.FAIL),
            ("CpuCfsQuota", "cpu limit", Level.FAIL),
        )
    ]


def _security_row(options: list[str], name: str, missing: Level, fix: str) -> Check:
    found = next((option for option in options if name in option), "")
    unconfined = "unconfined" in found
    if found and not unconfined:
        return Check(name, Level.PASS, found)
    return Check(name, missing, "unconfined" if unconfined else "not active in this engine", fix)
