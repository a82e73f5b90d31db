"""Compile worker/runtimes/janitor/janitor.c for each platform: `python -m tools.build_janitor [--check]`.

The programs are in git, so that a worker needs no compiler; `--check` compiles to a scratch folder and fails if a byte
differs. The compiler is the ziglang wheel of requirements-dev.lock.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import ziglang

from tools.vyper_files import ROOT

FOLDER = ROOT / "worker" / "runtimes" / "janitor"
SOURCE = FOLDER / "janitor.c"
# By the names that container engines have for platforms: the target, and the folder of the kernel's headers for it.
TARGETS = {"amd64": ("x86_64-linux-musl", "x86-linux-any"), "arm64": ("aarch64-linux-musl", "aarch64-linux-any")}
HEADERS = Path(ziglang.__file__).parent / "lib" / "libc" / "include"
FLAGS = (
    *("-Os", "-s", "-static", "-nostdlib", "-ffreestanding", "-fno-builtin", "-fno-stack-protector"),
    *("-fno-asynchronous-unwind-tables", "-fno-sanitize=undefined", "-Wall", "-Wextra", "-Werror"),
)


def build(platform: str, path: Path) -> None:
    """Compile for one platform to `path`; the folder of the source must not show in the program."""
    target, kernel = TARGETS[platform]
    headers = [f"-isystem{HEADERS / name}" for name in (kernel, "any-linux-any")]
    command = [sys.executable, "-m", "ziglang", "cc", "-target", target, *FLAGS, *headers]
    command += ["-o", str(path), SOURCE.name]
    subprocess.run(command, check=True, cwd=FOLDER)
    path.chmod(0o755)


def stale(folder: Path = FOLDER) -> list[str]:
    """Return the platforms whose program in `folder` is not what the source compiles to."""
    found = []
    with tempfile.TemporaryDirectory() as scratch:
        for platform in TARGETS:
            fresh, kept = Path(scratch) / platform, folder / f"janitor-{platform}"
            build(platform, fresh)
            if not kept.exists() or kept.read_bytes() != fresh.read_bytes():
                found.append(platform)
    return found


def main(argv: list[str] | None = None) -> int:
    """Build or check every program; return 1 where one in the tree is not what its source compiles to."""
    parser = argparse.ArgumentParser(prog="python -m tools.build_janitor", description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare with the programs in the tree")
    if not parser.parse_args(argv).check:
        for platform in TARGETS:
            build(platform, FOLDER / f"janitor-{platform}")
        return 0
    differing = stale()
    for platform in differing:
        print(f"janitor-{platform} is not what janitor.c compiles to: python -m tools.build_janitor", file=sys.stderr)
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
