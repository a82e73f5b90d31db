"""Compile the programs that the worker runs in containers of its own: `python -m tools.build_programs [--check]`.

They are in git, one for each platform, so that a worker needs no compiler; `--check` compiles to a scratch folder and
fails if a byte differs. The compiler is the ziglang wheel of requirements-dev.lock.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import ziglang

from tools.vyper_files import ROOT

HEADERS: Final = Path(ziglang.__file__).parent / "lib" / "libc" / "include"


@dataclass(frozen=True, slots=True)
class Program:
    """A C file, `name`.c of a folder. `targets` are by the names that container engines have for platforms, each with
    the folders of the kernel's headers for it, where no C library brings these."""

    folder: Path
    name: str
    targets: dict[str, tuple[str, tuple[str, ...]]]
    flags: tuple[str, ...]

    def path(self, platform: str) -> Path:
        """Return where the program for a platform lies."""
        return self.folder / f"{self.name}-{platform}"


PROGRAMS: Final = (
    Program(
        ROOT / "worker" / "runtimes" / "janitor",
        "janitor",
        {
            "amd64": ("x86_64-linux-musl", ("x86-linux-any", "any-linux-any")),
            "arm64": ("aarch64-linux-musl", ("aarch64-linux-any", "any-linux-any")),
        },
        (
            *("-Os", "-static", "-nostdlib", "-ffreestanding", "-fno-builtin", "-fno-stack-protector"),
            *("-fno-asynchronous-unwind-tables", "-fno-sanitize=undefined"),
        ),
    ),
    # NVIDIA's driver library needs GNU's C library: this machine's, no older than of 2018.
    Program(
        ROOT / "worker" / "gpu" / "benchmark",
        "benchmark",
        {"amd64": ("x86_64-linux-gnu.2.28", ()), "arm64": ("aarch64-linux-gnu.2.28", ())},
        ("-std=gnu11", "-O2", "-Wl,-rpath,/lib/hearth", "-ldl"),
    ),
)


def build(program: Program, platform: str, path: Path) -> None:
    """Compile for one platform to `path`; the folder of the source must not show in the program."""
    target, kernel = program.targets[platform]
    headers = [f"-isystem{HEADERS / name}" for name in kernel]
    command = [sys.executable, "-m", "ziglang", "cc", "-target", target, "-s", "-Wall", "-Wextra", "-Werror"]
    command += [*program.flags, *headers, "-o", str(path), f"{program.name}.c"]
    subprocess.run(command, check=True, cwd=program.folder)
    path.chmod(0o755)


def stale() -> Iterator[Path]:
    """Yield each program in the tree that is not what its source compiles to."""
    with tempfile.TemporaryDirectory() as scratch:
        for program in PROGRAMS:
            for platform in program.targets:
                fresh, kept = Path(scratch) / program.path(platform).name, program.path(platform)
                build(program, platform, fresh)
                if not kept.exists() or kept.read_bytes() != fresh.read_bytes():
                    yield kept


def main(argv: list[str] | None = None) -> int:
    """Build or check every program; return 1 where one in the tree is not what its source compiles to."""
    parser = argparse.ArgumentParser(prog="python -m tools.build_programs", description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare with the programs in the tree")
    if not parser.parse_args(argv).check:
        for program in PROGRAMS:
            for platform in program.targets:
                build(program, platform, program.path(platform))
        return 0
    differing = list(stale())
    for path in differing:
        text = f"{path.relative_to(ROOT)} is not what its source compiles to: python -m tools.build_programs"
        print(text, file=sys.stderr)
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
