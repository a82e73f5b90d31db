"""Base images from Debian packages, for machines that reach no public registry.

Each is one layer: `busybox` (static, every applet) and `python-numpy`. Archives are kept in the cache folder; an
image is imported, pushed to the loopback registry and pulled back by digest, as a user's image would be.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path

import docker
from docker.errors import DockerException

from tools.services.base import (
    Service,
    ServiceError,
    Unavailable,
    cache_folder,
    locked,
    log,
    program,
    run,
    update_package_lists,
)

SUITE = "bookworm"
# Changes when a recipe below does, so that an old archive is not reused.
RECIPE = "1"
# Not needed to run a program; about half of a minimal Debian.
TRIMMED = ("usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/info", "var/cache", "var/lib/apt/lists")


def _busybox(folder: Path) -> None:
    """Fill `folder` with a static busybox and a link for each of its applets."""
    if shutil.which("apt-get") is None:
        raise Unavailable("images: busybox-static comes from a Debian package, and apt-get is missing")
    with tempfile.TemporaryDirectory() as name:
        # apt's sandbox user must be able to write here.
        os.chmod(name, 0o755)
        if subprocess.run(["apt-get", "-qq", "download", "busybox-static"], cwd=name, capture_output=True).returncode:
            update_package_lists()
            run(["apt-get", "-qq", "download", "busybox-static"], what="apt-get download", cwd=Path(name))
        package = next(Path(name).glob("busybox-static_*.deb"))
        run(["dpkg-deb", "-x", str(package), name], what="dpkg-deb")
        (folder / "bin").mkdir()
        shutil.copy2(Path(name) / "bin" / "busybox", folder / "bin" / "busybox")
    for applet in run([str(folder / "bin" / "busybox"), "--list"], what="busybox --list").split():
        if applet != "busybox":
            (folder / "bin" / applet).symlink_to("busybox")
    for name in ("etc", "dev", "proc", "sys"):
        (folder / name).mkdir()
    (folder / "tmp").mkdir()
    (folder / "tmp").chmod(0o1777)
    (folder / "etc" / "passwd").write_text("root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n")
    (folder / "etc" / "group").write_text("root:x:0:\nnogroup:x:65534:\n")


def _python_numpy(folder: Path) -> None:
    """Fill `folder` with a minimal Debian that has python3 and numpy."""
    if os.geteuid() != 0:
        raise Unavailable("images: debootstrap needs root")
    debootstrap = program("debootstrap", "debootstrap")
    # Without one, debootstrap takes the distribution's own.
    mirror = os.environ.get("HEARTH_DEBIAN_MIRROR")
    include = "--include=python3-minimal,python3-numpy"
    command = [debootstrap, "--variant=minbase", include, SUITE, str(folder)]
    run(command + ([mirror] if mirror else []), what="debootstrap")
    for name in TRIMMED:
        shutil.rmtree(folder / name, ignore_errors=True)


RECIPES: dict[str, Callable[[Path], None]] = {"busybox": _busybox, "python-numpy": _python_numpy}


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Leave out device nodes, which an engine makes itself; keep the rest with fixed times and owners."""
    if member.ischr() or member.isblk() or member.isfifo():
        return None
    member.mtime = 0
    return member


def archive(name: str) -> Path:
    """Return the root file system of a base image as a tar file, making it on the first call."""
    folder = cache_folder() / "images"
    path = folder / f"{name}-{RECIPE}.tar"
    with locked(folder / f"{name}.lock"):
        if path.exists():
            return path
        log(f"images: making {name}")
        with tempfile.TemporaryDirectory(prefix=f"hearth-{name}-") as root:
            RECIPES[name](Path(root))
            part = path.with_suffix(".part")
            with tarfile.open(part, "w") as tar:
                for entry in sorted(Path(root).iterdir()):
                    tar.add(entry, entry.name, filter=_plain)
            part.replace(path)
    return path


def publish(docker_host: str, registry: str) -> Service:
    """Push every base image to `registry` and pull it by digest; its reference is in HEARTH_TEST_IMAGE_<NAME>.

    Raises ServiceError where the engine refuses one.
    """
    references = {}
    client = docker.DockerClient(base_url=docker_host, timeout=300)
    try:
        for name in RECIPES:
            repository = f"{registry}/hearth/{name}"
            client.api.import_image(str(archive(name)), repository=repository, tag=RECIPE)
            for line in client.images.push(repository, tag=RECIPE, stream=True, decode=True):
                if "error" in line:
                    raise ServiceError(f"images: pushing {name}: {line['error']}")
            digest = client.images.get_registry_data(f"{repository}:{RECIPE}").id
            reference = f"{repository}@{digest}"
            client.images.pull(reference)
            references[f"HEARTH_TEST_IMAGE_{name.upper().replace('-', '_')}"] = reference
            log(f"images: {reference}")
    except DockerException as failure:
        raise ServiceError(f"images: {failure}") from failure
    finally:
        client.close()
    return Service("images", None, references)
