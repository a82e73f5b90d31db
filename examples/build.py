"""Compile the C programs of examples and templates to WebAssembly: `python examples/build.py [--check]`.

The modules are in git, so that running one needs no compiler; `--check` compiles to a scratch folder and fails
if a byte differs. The compiler is the ziglang wheel of requirements-dev.lock, which brings its own C library.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROGRAMS = (
    "examples/digits/digits",
    "examples/wordcount-array/wordcount",
    "examples/failing/failing",
    "examples/resume/count",
    "hearth/local/templates/wasm/sum",
    "hearth/local/templates/array/pi",
)
FLAGS = ("-target", "wasm32-wasi", "-O2", "-s", "-Wall", "-Werror")


def build(program: str, target: Path) -> None:
    """Compile ROOT/program.c to `target`; the folder of the source must not show in the module."""
    source = ROOT / f"{program}.c"
    command = [sys.executable, "-m", "ziglang", "cc", *FLAGS, "-o", str(target), source.name]
    subprocess.run(command, check=True, cwd=source.parent)
    target.chmod(0o644)


def main() -> int:
    """Build or check every module; return 1 if a module in the tree is not what its source compiles to."""
    parser = argparse.ArgumentParser(description="Compile the C programs of examples and templates to WebAssembly.")
    parser.add_argument("--check", action="store_true", help="compare with the modules in the tree")
    check = parser.parse_args().check
    stale = []
    with tempfile.TemporaryDirectory() as scratch:
        for program in PROGRAMS:
            kept = ROOT / f"{program}.wasm"
            if not check:
                build(program, kept)
                continue
            fresh = Path(scratch) / "fresh.wasm"
            build(program, fresh)
            if not kept.exists() or kept.read_bytes() != fresh.read_bytes():
                stale.append(program)
    for program in stale:
        print(
            f"{program}.wasm is not what {program}.c compiles to: run python examples/build.py",
            file=sys.stderr,
        )
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
