"""Add to package-lock.json the optional packages for other platforms that npm left out.

npm drops an optional dependency that it cannot use here, and `npm ci` then refuses the lock as incomplete. An entry
with the platform's name and its hash keeps the lock complete: npm skips it elsewhere, and checks the hash there.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

SYSTEMS = ("darwin", "linux", "win32")
CPU = {"amd64": "x64", "arm64": "arm64"}


INTEGRITY = re.compile(r"sha512-[A-Za-z0-9+/]{86}==")


def published(name: str, version: str) -> str:
    """Return the hash of a published package, as npm writes it. Raises SystemExit where it has none."""
    command = ["npm", "view", f"{name}@{version}", "dist.integrity"]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    if INTEGRITY.fullmatch(said) is None:
        raise SystemExit(f"lock_npm: npm names no hash of {name}@{version}: {said[:200]!r}")
    return said


def complete(lock: dict[str, Any], hash_of: Callable[[str, str], str] = published) -> list[str]:
    """Add what is missing to `lock` in place, each with its hash, and return the names of what was changed."""
    packages: dict[str, Any] = lock["packages"]
    added = []
    for package in list(packages.values()):
        for name, version in package.get("optionalDependencies", {}).items():
            key = f"node_modules/{name}"
            system, _, machine = name.rpartition("/")[2].partition("-")[2].partition("-")
            if system not in SYSTEMS or machine not in CPU or "integrity" in packages.get(key, {}):
                continue
            packages[key] = {
                "version": version,
                "integrity": hash_of(name, version),
                "cpu": [CPU[machine]],
                "dev": True,
                "optional": True,
                "os": [system],
            }
            added.append(name)
    lock["packages"] = dict(sorted(packages.items()))
    return added


def main() -> int:
    """Complete ./package-lock.json and name what was added."""
    path = Path("package-lock.json")
    lock = json.loads(path.read_text(encoding="utf-8"))
    for name in complete(lock):
        print(f"lock_npm: {name}")
    path.write_text(json.dumps(lock, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
