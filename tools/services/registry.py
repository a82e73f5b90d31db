"""An image registry on loopback, from Debian's own package."""

from __future__ import annotations

import shutil

from tools.services.base import Service, free_port, instance_folder, listens, log, program, spawn, wait_for

CONFIG = """\
version: 0.1
log: {{level: warn}}
storage: {{filesystem: {{rootdirectory: "{folder}"}}, delete: {{enabled: true}}}}
http: {{addr: "127.0.0.1:{port}", secret: "loopback only"}}
"""


def start() -> Service:
    """Start an empty registry on a free loopback port; raises Unavailable where its program cannot be had."""
    server = program("docker-registry", "docker-registry")
    folder = instance_folder() / "registry"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    port = free_port()
    config = instance_folder() / "registry.yml"
    config.write_text(CONFIG.format(folder=folder, port=port))
    process = spawn("registry", [server, "serve", str(config)])
    wait_for("registry", process, lambda: listens(port), 30.0)
    log(f"registry: 127.0.0.1:{port}")
    return Service("registry", process, {"HEARTH_TEST_REGISTRY": f"127.0.0.1:{port}"})
