"""What an engine can do, judged from its own answers: the rows of `hearth worker doctor` about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from worker.gpu import check_runc, parse_version
from worker.runtimes.base import Check, Level

CDI_ENGINE_MAJOR = 25


def engine_major(version: Mapping[str, Any]) -> int:
    """Return the major version of an engine, 0 if it names none."""
    found = parse_version(str(version.get("Version", "")))
    return found[0] if found else 0


def no_cdi(version: Mapping[str, Any]) -> str:
    """Return the sentence on an engine that is too old to give GPUs."""
    return f"Docker {version['Version']} cannot give GPUs by CDI: it needs {CDI_ENGINE_MAJOR} or newer"


def engine_name(version: Mapping[str, Any], runtime: str) -> str:
    """Return an engine's name for reports: its version, its OCI runtime, its platform."""
    return f"docker {version['Version']} {runtime or 'runc'} {version['Os']}/{version['Arch']}"


def judge_engine(
    version: Mapping[str, Any],
    info: Mapping[str, Any],
    chain_id: int,
    *,
    gpus: int = 0,
    patched: frozenset[str] = frozenset(),
) -> list[Check]:
    """Grade an engine from its `version` and `info` answers; pure, so that recorded engines are tests."""
    rows = [Check("docker engine", Level.PASS, engine_name(version, ""))]
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
                "the engine takes CDI device requests" if able else no_cdi(version),
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
