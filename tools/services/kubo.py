"""A real Kubo: built once from the pinned module in tools/kubo, run on loopback without peers."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

from tools.services.base import Service, instance_folder, listens, log, run, spawn, wait_for
from tools.services.golang import Pinned

# No telemetry endpoint in our build, and its plugin off as well.
KUBO = Pinned(
    "kubo",
    "github.com/ipfs/kubo",
    "github.com/ipfs/kubo/cmd/ipfs",
    "-s -w -X github.com/ipfs/kubo/plugin/plugins/telemetry.defaultEndpoint=",
)
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


def _address(repository: Path, name: str) -> int | None:
    """Return the TCP port in the repository's `api` or `gateway` file, None while it is not written."""
    path = repository / name
    text = path.read_text() if path.exists() else ""
    port = re.search(r"(?:tcp/|:)(\d+)/?$", text.strip())
    return int(port[1]) if port else None


def start() -> Service:
    """Start a fresh, empty node; its repository lies in the instance folder."""
    program = KUBO.binary()
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
    log(f"kubo: {KUBO.versions()[0]}, API on 127.0.0.1:{api}, gateway on 127.0.0.1:{gateway}")
    return Service(
        "kubo",
        process,
        {
            "HEARTH_KUBO_API": f"http://127.0.0.1:{api}",
            "HEARTH_KUBO_GATEWAY": f"http://127.0.0.1:{gateway}",
            "HEARTH_KUBO_BIN": str(program),
        },
    )
