"""Build small WebAssembly modules for the tests: from text, or from C with the pinned compiler, cached in .build/."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = Path(__file__).parent / "wasm_src"


def from_c(name: str) -> Path:
    """Compile tests/worker/wasm_src/NAME.c to a WASI command; the cache key is the source."""
    source = SOURCES / f"{name}.c"
    digest = hashlib.sha256(source.read_bytes()).hexdigest()[:16]
    built = ROOT / ".build" / "wasm" / f"{name}-{digest}.wasm"
    if not built.exists():
        built.parent.mkdir(parents=True, exist_ok=True)
        fresh = built.with_suffix(f".{os.getpid()}.tmp")
        flags = ["-target", "wasm32-wasi", "-O2", "-s", "-o", str(fresh), str(source)]
        subprocess.run([sys.executable, "-m", "ziglang", "cc", *flags], check=True)
        fresh.rename(built)
    return built


def from_text(folder: Path, text: str) -> Path:
    """Assemble a module in WebAssembly's text form."""
    import wasmtime

    path = folder / "module.wasm"
    path.write_bytes(wasmtime.wat2wasm(text))
    return path


def command(body: str, memory: str = '(memory (export "memory") 1)', start: str = "") -> str:
    """Return the text of a WASI command with a body for _start."""
    return f'(module {start} {memory} (func (export "_start") {body}))'
