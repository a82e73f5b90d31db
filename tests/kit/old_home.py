"""Write the home that tests/e2e/test_old_home.py reads:  python -m tests.kit.old_home

A later tree must read it as it is: it is written anew only where a market of before can be used no more.
"""

from __future__ import annotations

import json
import sys
import tarfile
import tempfile
from pathlib import Path

import wasmtime

from tests.kit.evm import ROOT
from tests.kit.running import wait
from tests.kit.town import Town, town

ARCHIVE = ROOT / "tests" / "data" / "home-0.1.0.tar.xz"
FOLDER, URL = "@FOLDER@", "@URL@"
"""What stands in worker.toml for where the home lies, and for its chain."""
PROGRAM = '(module (memory (export "memory") 1) (func (export "_start")))'
JOB = """version: 1
name: old
runtime: wasm
module: ./nothing.wasm
outputs: [{path: /out, required: false, max_size: 1MiB}]
resources: {cpus: 1, memory: 64MiB}
limits: {runtime: 10s, deadline: 20d}
price: {max_rate: "%s"}
"""
LEFT_OUT = ("home/running", ".log")
"""Which processes run, and what they said: a killed machine has neither."""


def fill(place: Town, folder: Path) -> dict[str, str]:
    """Let the market's people act, and return the ids of the job that nobody takes and of the one that runs."""
    (folder / "nothing.wasm").write_bytes(wasmtime.wat2wasm(PROGRAM))
    (folder / "job.yaml").write_text(JOB % "0.01/h")
    (folder / "taken.yaml").write_text(JOB % "1.20/h")
    node = place.add_worker()
    place.add_keeper()
    jobs = {}
    for name, file in (("waiting", "job.yaml"), ("taken", "taken.yaml")):
        told = place.hearth("submit", str(folder / file), "--anyway", "--json")
        assert told.code == 0, told.err
        jobs[name] = told.json["job"]

    def state() -> str:
        found: str = place.hearth("job", "show", jobs["taken"], "--json").json["state"]
        return found

    wait(lambda: state() != "open", f"node {node} takes its job", 60)
    ledger = place.home / "keeper" / "ledger.json"
    wait(ledger.exists, "the keeper has books", 60)
    return jobs


def write(home: Path, archive: Path) -> None:
    """Archive what lies in the home's folder, without what tells of this machine and its processes."""

    def plain(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
        if entry.name.endswith(LEFT_OUT) or not (entry.isfile() or entry.isdir()):
            return None
        entry.uid = entry.gid = entry.mtime = 0
        entry.uname = entry.gname = ""
        return entry

    with tarfile.open(archive, "w:xz") as made:
        for path in sorted(home.parent.iterdir()):
            made.add(path, path.name, filter=plain)


def main() -> int:
    """Run a market, stop it, and archive its home."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        with town(folder / "home") as place:
            url, jobs = place.url, fill(place, folder)
        (folder / "jobs.json").write_text(json.dumps(jobs))
        config = folder / "home" / "worker.toml"
        config.write_text(config.read_text().replace(str(folder), FOLDER).replace(url, URL))
        write(folder / "home", ARCHIVE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
