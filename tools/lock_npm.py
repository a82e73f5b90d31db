"""Add to package-lock.json the optional packages for other platforms that npm left out.

npm drops an optional dependency that its registry does not serve, and `npm ci` then refuses the lock as incomplete.
A placeholder with the platform's name keeps the lock complete: npm skips it on every other platform.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

SYSTEMS = ("darwin", "linux", "win32")
CPU = {"amd64": "x64", "arm64": "arm64"}


def complete(lock: dict[str, Any]) -> list[str]:
    """Add the missing placeholders to `lock` in place and return their names."""
    packages: dict[str, Any] = lock["packages"]
    added = []
    for package in list(packages.values()):
        for name, version in package.get("optionalDependencies", {}).items():
            key = f"node_modules/{name}"
            system, _, machine = name.rpartition("/")[2].partition("-")[2].partition("-")
            if key in packages or system not in SYSTEMS or machine not in CPU:
                continue
            packages[key] = {
                "version": version,
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
        print(f"lock_npm: placeholder for {name}")
    path.write_text(json.dumps(lock, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
