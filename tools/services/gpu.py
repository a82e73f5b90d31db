"""An engine that injects devices by CDI, newer than this system's, and a driver library that plays a machine with GPUs.

The engine is Debian's next release's, unpacked in the cache folder beside this system's runc: nothing is upgraded. The
driver's libraries are of `tools/gpu`. Tests write their own machines and CDI specs (tests/kit/played_gpu.py).
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Final

from tools.services import engine
from tools.services.base import ROOT, Service, Unavailable, cache_folder, instance_folder, locked, log, program, run
from tools.services.golang import GoProgram

SUITE: Final = "trixie"
KEYRING: Final = "/usr/share/keyrings/debian-archive-keyring.gpg"
PACKAGES: Final = ("docker.io", "containerd")
LIBRARY: Final = "libnvidia-ml.so.1"
CUDA: Final = "libcuda.so.1"
SMI: Final = "nvidia-smi"
SOURCES: Final = ROOT / "tools" / "gpu"
# A C library as old as any image of a test.
TARGET: Final = f"{platform.machine()}-linux-gnu.2.31"
FLAGS: Final = ("-O1", "-Wall", "-Wextra", "-Werror")
# What no service needs, for tests marked deep: NVIDIA's own toolkit, and an engine that lists its devices.
TOOLKIT: Final = "github.com/NVIDIA/nvidia-container-toolkit"
CTK: Final = GoProgram(
    "nvidia-ctk", f"{TOOLKIT}/cmd/nvidia-ctk", "nvidia-ctk", version_at=f"{TOOLKIT}/internal/info.version", c=True
)
HOOK: Final = GoProgram("nvidia-ctk", f"{TOOLKIT}/cmd/nvidia-cdi-hook", "nvidia-cdi-hook", c=True)
MOBY: Final = "github.com/docker/docker"
DOCKERD: Final = GoProgram("dockerd", f"{MOBY}/cmd/dockerd", "dockerd", version_at=f"{MOBY}/dockerversion.Version")
BUILDS: Final = {
    LIBRARY: ("nvml.c", "-shared", "-fPIC", f"-Wl,-soname,{LIBRARY}"),
    CUDA: ("cuda.c", "-shared", "-fPIC", f"-Wl,-soname,{CUDA}"),
    SMI: ("nvml.c", "-DSMI"),
}


def programs() -> Path:
    """Return the folder of the engine's programs, fetched on the first call. Raises Unavailable without apt."""
    if shutil.which("apt-get") is None or not Path(KEYRING).exists():
        raise Unavailable("gpu: its engine comes from Debian packages, and apt-get or Debian's keys are missing")
    folder = cache_folder() / "engine" / SUITE
    with locked(folder.with_name(f"{SUITE}.lock")):
        if not folder.exists():
            log(f"gpu: fetching {', '.join(PACKAGES)} of {SUITE}")
            with tempfile.TemporaryDirectory(dir=folder.parent) as name:
                _unpack(Path(name))
                (Path(name) / "root").rename(folder)
    return folder


def _unpack(scratch: Path) -> None:
    """Fetch the packages with lists of their own, and unpack them to `root` below the scratch folder."""
    mirror = os.environ.get("HEARTH_DEBIAN_MIRROR") or _mirror()
    source, lists, cache = scratch / "sources.list", scratch / "lists", scratch / "cache"
    source.write_text(f"deb [signed-by={KEYRING}] {mirror} {SUITE} main\n")
    for place in (lists / "partial", cache / "archives" / "partial"):
        place.mkdir(parents=True)
    options = {
        "Dir::Etc::sourcelist": str(source),
        "Dir::Etc::sourceparts": "/dev/null",
        "Dir::State::lists": str(lists),
        "Dir::Cache": str(cache),
        "Acquire::Languages": "none",
        # The sandbox user of apt may not write below the cache folder.
        "APT::Sandbox::User": "root",
    }
    apt = ["apt-get", "-qq", *(word for key, value in options.items() for word in ("-o", f"{key}={value}"))]
    run([*apt, "update"], what=f"apt-get update of {SUITE}")
    run([*apt, "download", *PACKAGES], what="apt-get download", cwd=scratch)
    for package in sorted(scratch.glob("*.deb")):
        run(["dpkg-deb", "-x", str(package), str(scratch / "root")], what="dpkg-deb")


def _mirror() -> str:
    """Return where this system's own packages come from."""
    told = run(["apt-get", "indextargets", "--format", "$(REPO_URI) $(LABEL)"], what="apt-get indextargets")
    found = re.search(r"^(\S+) Debian$", told, re.MULTILINE)
    if found is None:
        raise Unavailable("gpu: this system names no mirror of its packages")
    return found[1]


def driver() -> Path:
    """Return the folder with the played driver's libraries and nvidia-smi, compiled on the first call for a source."""
    sources = b"".join(path.read_bytes() for path in sorted(SOURCES.iterdir()))
    key = hashlib.sha256(sources + repr((TARGET, FLAGS, BUILDS)).encode()).hexdigest()[:16]
    folder = cache_folder() / "played-gpu" / key
    with locked(folder.with_name("lock")):
        if not folder.exists():
            with tempfile.TemporaryDirectory(dir=folder.parent) as name:
                made = Path(name) / "made"
                made.mkdir()
                for file, flags in BUILDS.items():
                    command = [sys.executable, "-m", "ziglang", "cc", "-target", TARGET, *FLAGS, *flags]
                    run([*command, "-o", str(made / file)], what=f"compiling {file}", cwd=SOURCES)
                made.rename(folder)
    return folder


def start(registry: str) -> Service:
    """Start the engine, which takes CDI specs from a folder of its own. Raises Unavailable as `engine.start` does."""
    if os.geteuid() != 0:
        raise Unavailable("gpu: only root can start an engine")
    program("runc", "runc")
    root, specs = programs(), instance_folder() / "cdi"
    specs.mkdir(exist_ok=True)
    config: dict[str, object] = {"features": {"cdi": True}, "cdi-spec-dirs": [str(specs)]}
    process, host = engine.start_own("gpu", registry, config, programs=root)
    environ = {
        "HEARTH_GPU_DOCKER_HOST": host,
        "HEARTH_GPU_PROGRAMS": str(root),
        "HEARTH_GPU_SPECS": str(specs),
        "HEARTH_GPU_DRIVER": str(driver()),
    }
    return Service("gpu", process, environ)
