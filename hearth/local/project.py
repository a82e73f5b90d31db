"""The files that a new project starts from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from hearth.client.reports import ProjectFiles

_PROJECT: Final = """\
# Settings of this project; a flag or HEARTH_... in the environment wins over them. Secrets stay in files of mode 600.
network = "{network}"
# account = "dev"
# password_file = "password.txt"
# timeout = "10m"
"""
_JOB: Final = """\
# A job: hearth check job.yaml, then hearth submit job.yaml --wait
version: 1
name: hello
runtime: wasm
module: ./hello.wasm
outputs: [{path: /out, required: false, max_size: 1MiB}]
resources: {cpus: 1, memory: 64MiB}
limits: {runtime: 60s, deadline: 1h}
price: {max_rate: "1.20/h"}
"""


def write_project(folder: Path | None, *, network: str, dry_run: bool = False) -> ProjectFiles:
    """Write hearth.toml and a job file to start from; what exists is left alone."""
    target = folder or Path()
    files = {"hearth.toml": _PROJECT.format(network=network), "job.yaml": _JOB}
    written, kept = [], []
    for name, text in files.items():
        path = target / name
        if path.exists():
            kept.append(str(path))
            continue
        if not dry_run:
            target.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        written.append(str(path))
    return {"schema": "hearth.init/1", "written": written, "kept": kept, "dry_run": dry_run}
