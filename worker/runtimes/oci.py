"""Which versions of the programs that make containers have known ways out of one: runc, nvidia-container-toolkit."""

from __future__ import annotations

import re

from hearth.protocol.types import LOCAL_CHAIN_ID
from worker.runtimes.base import Check, Level

TOOLKIT_MINIMUM = "1.17.8"
"""Below: CVE-2024-0132, CVE-2025-23359, CVE-2025-23266 (a container's file can run code as root on the host)."""
RUNC_MINIMUM = {(1, 2): "1.2.8", (1, 3): "1.3.3", (1, 4): "1.4.0-rc.3"}
"""Below: CVE-2025-31133, CVE-2025-52565, CVE-2025-52881 (writes through masked paths); per release line."""
_VERSION = re.compile(r"(?<![0-9])([0-9]{1,6})\.([0-9]{1,6})\.([0-9]{1,6})(?![0-9])(?:[-~]rc\.?([0-9]{1,6}))?")
"""Bounded, so that no text is searched longer than it is."""


def parse_version(text: str) -> tuple[int, int, int, int] | None:
    """Return (major, minor, patch, rc) of the first version in a text, or None; a final release has rc 10^6.

    Takes what tools print: "runc version 1.1.5+ds1", "1.4.0-rc.2", "NVIDIA Container Toolkit CLI version 1.17.8".
    """
    found = _VERSION.search(text)
    if found is None:
        return None
    major, minor, patch, candidate = found.groups()
    return int(major), int(minor), int(patch), int(candidate) if candidate else 10**6


def _unsafe(name: str, chain_id: int, detail: str, fix: str) -> Check:
    """Grade a program with known ways out of a container: only a warning where the jobs are the provider's own."""
    if chain_id == LOCAL_CHAIN_ID:
        return Check(name, Level.WARN, f"{detail}; on a devnet, whose jobs are your own, a warning only", fix)
    return Check(name, Level.FAIL, f"{detail}; no node is registered with it", fix)


def check_toolkit(version: str, chain_id: int) -> Check:
    """Judge the version of nvidia-container-toolkit; an unsafe one refuses registration, save on a local chain."""
    name, found = "nvidia-container-toolkit", parse_version(version)
    if found is None:
        return Check(
            name, Level.FAIL, f"no version in {version!r}", f"install nvidia-container-toolkit {TOOLKIT_MINIMUM}"
        )
    minimum = parse_version(TOOLKIT_MINIMUM)
    assert minimum is not None
    if found >= minimum:
        return Check(name, Level.PASS, version.strip())
    return _unsafe(
        name,
        chain_id,
        f"{version.strip()} is below {TOOLKIT_MINIMUM} (CVE-2024-0132, CVE-2025-23359, CVE-2025-23266)",
        f"upgrade nvidia-container-toolkit to {TOOLKIT_MINIMUM} or newer",
    )


def check_runc(version: str, chain_id: int, patched: frozenset[str] = frozenset()) -> Check:
    """Judge the version of runc. `patched` holds exact version texts whose distribution has the fixes."""
    name, found = "runc", parse_version(version)
    if found is None:
        return Check(name, Level.FAIL, f"no version in {version!r}", "install runc 1.3.3 or newer")
    if version.strip() in patched:
        return Check(name, Level.PASS, f"{version.strip()}, patched by the distribution")
    minimum = RUNC_MINIMUM.get(found[:2]) or (RUNC_MINIMUM[1, 2] if found[:2] < (1, 2) else "0.0.0")
    lowest = parse_version(minimum)
    assert lowest is not None
    if found >= lowest:
        return Check(name, Level.PASS, version.strip())
    return _unsafe(
        name,
        chain_id,
        f"{version.strip()} is below {minimum} (CVE-2025-31133, CVE-2025-52565, CVE-2025-52881)",
        f"upgrade runc to {minimum} or newer; if your distribution's has the fixes, name it in docker.patched_runc",
    )
