"""Run one attempt that copies its input to its output in a process of its own, and tell what memory that took.

python -m tests.worker.attempt.copying FOLDER      of the folder that `prepare` has made; prints JSON
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from hearth.jobfile import Blob
from hearth.jobfile.resolved import ResolvedInput, ResolvedOutput, ResolvedResources
from hearth.protocol.types import NodeId, Outcome
from hearth.storage.stores import FolderStore
from tests.worker import wasm_tools
from tests.worker.attempt.jobs import KEY, Jobs
from worker.attempt.attempt import Means
from worker.attempt.executor import Executor
from worker.attempt.folder import folders_in
from worker.attempt.task import Bounds, Task
from worker.journal import AttemptJournal
from worker.runtimes.wasm import WasmRuntime

ROOT = Path(__file__).resolve().parents[3]
SECONDS = 1_800
# /in is file descriptor 3 and /out is 6, in the order of the sandbox's folders; a piece is 1 MiB.
PROGRAM = """
(module
  (import "wasi_snapshot_preview1" "path_open"
    (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 32)
  (data (i32.const 0) "data") (data (i32.const 8) "result") (data (i32.const 16) "\\00\\00\\01\\00")
  (func (export "_start")
    (if (call $open (i32.const 3) (i32.const 0) (i32.const 0) (i32.const 4) (i32.const 0)
          (i64.const 2) (i64.const 2) (i32.const 0) (i32.const 32)) (then unreachable))
    (if (call $open (i32.const 6) (i32.const 0) (i32.const 8) (i32.const 6) (i32.const 9)
          (i64.const 64) (i64.const 64) (i32.const 0) (i32.const 36)) (then unreachable))
    (block (loop
      (i32.store (i32.const 20) (i32.const 1048576))
      (if (call $read (i32.load (i32.const 32)) (i32.const 16) (i32.const 1) (i32.const 40)) (then unreachable))
      (br_if 1 (i32.eqz (i32.load (i32.const 40))))
      (i32.store (i32.const 20) (i32.load (i32.const 40)))
      (if (call $write (i32.load (i32.const 36)) (i32.const 16) (i32.const 1) (i32.const 44)) (then unreachable))
      (if (i32.ne (i32.load (i32.const 44)) (i32.load (i32.const 40))) (then unreachable))
      (br 0)))))
"""


def prepare(folder: Path, size: int) -> None:
    """Store an input of `size` bytes, no two of its leaves alike, and the module, where `copy` will read them."""
    store = FolderStore(folder / "store")
    data = folder / "data"
    with data.open("wb") as file:
        for number in range(size >> 20):
            file.write(number.to_bytes(8, "big") * (1 << 17))
    entry, module = store.add_path(data), store.add_path(wasm_tools.from_text(folder, PROGRAM))
    data.unlink()
    (folder / "job.json").write_text(
        json.dumps({"input": str(entry.cid), "size": entry.size, "module": str(module.cid), "bytes": module.size})
    )


def copy(folder: Path) -> dict[str, Any]:
    """Run the attempt as a worker does: fetch, run in the sandbox, store what came out."""
    about = json.loads((folder / "job.json").read_text())
    size, jobs = about["size"], Jobs(folder)
    disk = -(-(2 * size + (1 << 20)) >> 30) or 1
    spec = jobs.spec(
        module=Blob(cid=about["module"], size=about["bytes"]),
        workdir=None,
        inputs=(ResolvedInput(cid=about["input"], dst="/in/data", size=size),),
        outputs=(ResolvedOutput(path="/out/result", required=True, max_size=size),),
        resources=ResolvedResources(
            gpus=0,
            vendor="",
            tier="",
            exact=False,
            vram_gib=0,
            cpus=1,
            memory_mib=64,
            disk_gib=disk + 1,
            regions=(),
        ),
        runtime_seconds=SECONDS,
    )
    scratch = folder / "scratch"
    scratch.mkdir()
    journal = AttemptJournal(folder / "home" / "work.db")
    means = Means(
        journal=journal,
        store=jobs.store,
        folders=folders_in(folder / "home"),
        runtimes={"wasm": WasmRuntime(scratch)},
        node=NodeId(3),
        label=f"copying-{os.getpid()}-",
        bounds=Bounds(),
        keep_seconds=3_600,
    )
    executor = Executor(means)
    began = time.monotonic()
    executor.start(Task(KEY, jobs.terms(spec), SECONDS, 10.0))
    while executor.active():
        time.sleep(0.01)
    seconds = time.monotonic() - began
    entry = journal.entry(KEY)
    assert entry is not None and entry.outcome is Outcome.OK, entry
    executor.close()
    result = jobs.store.get_json(entry.result)
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return {
        "bytes_in": size,
        "bytes_out": result["outputs"]["size"],
        "seconds": round(seconds, 2),
        "worker_peak_mib": round(_peak_kib() / 1024, 1),
        # The kernel counts what a process was started from too: at least what the sandbox took.
        "sandbox_peak_mib": round(children / 1024, 1),
    }


def _peak_kib() -> int:
    """Return the most resident memory that this process has had since it was started."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1])
    raise AssertionError("this kernel tells no VmHWM")


def measured(folder: Path, size: int) -> dict[str, Any]:
    """Prepare a job of `size` bytes in an empty folder, run it in a process of its own, and return what it told."""
    prepare(folder, size)
    command = [sys.executable, "-m", "tests.worker.attempt.copying", str(folder)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True, text=True)
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


if __name__ == "__main__":
    print(json.dumps(copy(Path(sys.argv[1]))))
