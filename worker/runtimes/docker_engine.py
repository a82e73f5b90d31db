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
    security = [str(option) for option in info.get("SecurityOptions") or []]
    remapped = any("userns" in option or "rootless" in option for option in security)
    rows = [
        Check("docker engine", Level.PASS, engine_name(version, "")),
        check_runc(_runc_of(version), chain_id, patched),
        *_limit_rows(info),
        _security_row(security, "seccomp", Level.FAIL, "start the engine with its default seccomp profile"),
        _security_row(security, "apparmor", Level.WARN, "enable AppArmor in the kernel"),
        _row(
            "user namespace",
            remapped,
            "root in a container is nobody outside",
            Level.WARN,
            "containers share the host's user ids",
            "start the engine with --userns-remap=default, or rootless",
        ),
        _row(
            "log driver local",
            "local" in (info.get("Plugins") or {}).get("Log", []),
            "present",
            Level.FAIL,
            "missing: logs of a container could fill the disk",
            "upgrade the engine",
        ),
        _row(
            "gVisor (runsc)",
            "runsc" in (info.get("Runtimes") or {}),
            "registered",
            Level.WARN,
            "not registered: containers share the host's kernel",
            'install gVisor and set docker.runtime = "runsc" in worker.toml',
        ),
        Check(
            "output quota",
            Level.WARN,
            "a watcher kills the unit once /out is over its cap; a burst may pass the cap for a moment",
            "keep the worker's folder on a file system of its own",
        ),
    ]
    if gpus:
        rows.append(
            _row(
                "GPU by CDI",
                engine_major(version) >= CDI_ENGINE_MAJOR,
                "the engine takes CDI device requests",
                Level.FAIL,
                no_cdi(version),
                f"upgrade Docker to {CDI_ENGINE_MAJOR} or newer",
            )
        )
    return rows


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
