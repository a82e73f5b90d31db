"""Each template of `hearth init`, run as it is written: in the real sandboxes, or as what an engine would be asked."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from hearth.jobfile import Blob, ResolvedSpec, load_spec, local_sources, resolve
from hearth.local import templates
from tests.kit.require import require
from worker.gpu.nvidia import device_of
from worker.runtimes import docker
from worker.runtimes.base import OutputRule, RunRequest, RunStatus, SandboxLimits
from worker.runtimes.docker_images import ImageRules
from worker.runtimes.wasm import WasmRuntime

DIGEST = "sha256:" + "ab" * 32
ANY_CID = "bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy"
UUID = "GPU-6f0e8f2c-1111-2222-3333-444455556666"


def project(tmp_path: Path, template: str, image: str | None = None) -> ResolvedSpec:
    """Write a template, with another image where one is named, and return its job as a worker reads it."""
    templates.write(tmp_path, template, "devnet")
    job = tmp_path / "job.yaml"
    loaded = load_spec(job)
    if image is not None:
        assert loaded.spec.image is not None
        job.write_text(job.read_text().replace(f'"{loaded.spec.image}"', f'"{image}"'))
        loaded = load_spec(job)
    blobs = {src: Blob(cid=ANY_CID, size=1_000) for _, src in local_sources(loaded.spec)}
    return resolve(loaded.spec, blobs)


def request(tmp_path: Path, spec: ResolvedSpec, unit: int = 0, gpus: tuple[str, ...] = ()) -> RunRequest:
    """Fill the folders of a unit from the project, as a worker does from the store."""
    box = tmp_path / f"unit-{unit}"
    for name in ("in", "out"):
        (box / name).mkdir(parents=True)
    for item in load_spec(tmp_path / "job.yaml").spec.inputs:
        (box / item.dst[1:]).write_bytes((tmp_path / item.src).read_bytes())
    work = tmp_path / "work" if spec.workdir else box / "job"
    work.mkdir(exist_ok=True)
    module = load_spec(tmp_path / "job.yaml").spec.module
    return RunRequest(
        unit=f"template-{unit}-{os.getpid()}",
        command=tuple(spec.command),
        job_dir=work,
        in_dir=box / "in",
        out_dir=box / "out",
        limits=SandboxLimits(
            wall_seconds=60,
            memory_bytes=spec.resources.memory_mib << 20,
            cpus=spec.resources.cpus,
            out_bytes=spec.output_bytes,
            fuel=None if spec.image else 60 * 10**9,
        ),
        module=tmp_path / module if module else None,
        image=spec.image or None,
        env=dict(spec.env),
        outputs=tuple(OutputRule(rule.path, rule.required, rule.max_size) for rule in spec.outputs),
        gpus=gpus,
        index=unit,
        units=spec.units,
    )


def test_wasm__run_as_written__the_sum_of_its_numbers(tmp_path: Path) -> None:
    spec = project(tmp_path, "wasm")
    asked = request(tmp_path, spec)
    result = WasmRuntime(tmp_path).run(asked, threading.Event())
    assert (result.status, result.stdout) == (RunStatus.OK, b"the sum is 5050\n"), result
    assert (asked.out_dir / "sum.txt").read_text() == "5050\n"


@pytest.mark.parametrize("text", ["1\nx\n", "1\n2 3\n", "\n"])
def test_wasm__line_that_is_no_number__named_with_exit_2(tmp_path: Path, text: str) -> None:
    spec = project(tmp_path, "wasm")
    asked = request(tmp_path, spec)
    (asked.in_dir / "numbers.txt").write_text(text)
    result = WasmRuntime(tmp_path).run(asked, threading.Event())
    assert (result.status, result.exit_code) == (RunStatus.EXIT, 2)
    assert b"is no whole number" in result.stderr


def test_array__every_unit_run_and_reduced__pi(tmp_path: Path) -> None:
    spec = project(tmp_path, "array")
    assert spec.units == 8
    for unit in range(spec.units):
        result = WasmRuntime(tmp_path).run(request(tmp_path, spec, unit), threading.Event())
        assert result.status is RunStatus.OK, result
    reduced = subprocess.run(
        [sys.executable, "reduce.py", str(tmp_path)], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout
    assert reduced == f"pi is about {math.pi:.12f}, from 8 parts\n"


@pytest.mark.docker
def test_docker__run_as_written_on_another_image__its_report(tmp_path: Path) -> None:
    image = os.environ.get("HEARTH_TEST_IMAGE_PYTHON_NUMPY", "")
    host = os.environ.get("HEARTH_DOCKER_HOST") or os.environ.get("DOCKER_HOST")
    able, why = docker.DockerRuntime(host).available()
    require("docker", able and bool(image), f"{why}; HEARTH_TEST_IMAGE_PYTHON_NUMPY={image!r}")
    spec = project(tmp_path, "docker", image)
    asked = request(tmp_path, spec)
    rules = ImageRules(registries=(image.partition("/")[0],))
    result = docker.DockerRuntime(host, images=rules).run(asked, threading.Event())
    assert result.status is RunStatus.OK, result
    report = json.loads((asked.out_dir / "report.json").read_text())
    assert (report["greeting"], report["unit"], len(report["primes"])) == ("hello", 0, 25)
    assert result.stdout.startswith(b"hello from Python 3.")


def test_gpu__as_written__the_engine_is_asked_for_one_gpu(tmp_path: Path) -> None:
    spec = project(tmp_path, "gpu", f"pytorch/pytorch@{DIGEST}")
    assert (spec.resources.gpus, spec.resources.tier, spec.resources.vram_gib) == (1, "rtx-3060", 8)
    asked = request(tmp_path, spec, gpus=(device_of(UUID),))
    config = docker.container_config(asked, dict(asked.env), cpus=spec.resources.cpus)
    assert config["Image"] == f"pytorch/pytorch@{DIGEST}" and config["Cmd"] == ["python3", "main.py"]
    assert config["HostConfig"]["DeviceRequests"] == [{"Driver": "cdi", "DeviceIDs": [f"nvidia.com/gpu={UUID}"]}]
    mounts = {mount["Target"]: mount["Source"] for mount in config["HostConfig"]["Mounts"]}
    assert (Path(mounts["/job"]) / "main.py").is_file()
    assert config["HostConfig"]["Memory"] == 8 << 30
