"""Run a real program in each runtime of this machine, end to end through its sandbox."""

from __future__ import annotations

import tempfile
import threading
from pathlib import Path
from typing import Final

PROGRAM: Final = """
(module
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 16) "hearth selftest\\n")
  (data (i32.const 0) "\\10\\00\\00\\00\\10\\00\\00\\00")
  (func (export "_start")
    (if (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)) (then unreachable))))
"""
WORDS: Final = b"hearth selftest\n"
SECONDS: Final = 30
MEMORY: Final = 64 << 20


def selftest() -> list[dict[str, str]]:
    """Return one row per runtime: PASS, WARN for one that is not here, FAIL for one that does not do its work."""
    from worker.runtimes.docker import DockerRuntime

    works, detail = DockerRuntime().available()
    docker = {
        "name": "docker",
        "level": "PASS" if works else "WARN",
        "detail": detail,
        "fix": "" if works else "start Docker",
    }
    return [_wasm(), docker]


def _wasm() -> dict[str, str]:
    import wasmtime

    from worker.runtimes.base import Limits, RunRequest
    from worker.runtimes.wasm import WasmRuntime

    with tempfile.TemporaryDirectory(prefix="hearth-selftest-") as scratch:
        home = Path(scratch)
        folders = {name: home / name for name in ("job", "in", "out", "tmp")}
        for folder in folders.values():
            folder.mkdir()
        module = home / "module"
        module.write_bytes(wasmtime.wat2wasm(PROGRAM))
        runtime = WasmRuntime(folders["tmp"])
        refusal = runtime.prepare(str(module))
        if refusal is not None:
            return {"name": "wasm", "level": "FAIL", "detail": refusal.detail, "fix": "pip install wasmtime"}
        request = RunRequest(
            unit="selftest-0-1",
            command=(),
            job_dir=folders["job"],
            in_dir=folders["in"],
            out_dir=folders["out"],
            limits=Limits(wall_seconds=SECONDS, memory_bytes=MEMORY, cpus=1, out_bytes=1 << 20, fuel=10**9),
            module=module,
            outputs=(),
        )
        result = runtime.run(request, threading.Event())
    if not result.ok or result.stdout != WORDS:
        return {
            "name": "wasm",
            "level": "FAIL",
            "detail": f"{result.status.value}: {result.detail}",
            "fix": "hearth worker doctor",
        }
    return {
        "name": "wasm",
        "level": "PASS",
        "detail": f"ran a module with {result.engine}, {result.fuel_used} fuel",
        "fix": "",
    }
