"""A job of folders: two inputs and a working directory of a size, and a program that says what it found in them."""

from __future__ import annotations

import os
import random
import struct
from array import array
from pathlib import Path
from typing import Final

import wasmtime

MIB: Final = 2**20
SIZE: Final = int(os.environ.get("HEARTH_WEB_FOLDERS_MIB", "6"))
"""MiB of data in all. A tree of one file of one block would have no node of its own: here are files of many."""
TEXT: Final = f"""\
version: 1
name: folders
runtime: wasm
module: ./sums.wasm
workdir: ./work
inputs: [{{src: ./data, dst: /in/data}}, {{src: ./one.bin, dst: /in/one.bin}}]
outputs: [{{path: /out/sums, required: true, max_size: 1MiB}}]
resources: {{cpus: 1, memory: 32MiB, disk: {SIZE // 512 + 1}GiB}}
limits: {{runtime: 2m, deadline: 1h}}
price: {{max_rate: "1.20/h"}}
"""
_IN, _JOB = 3, 4
_SUMS = """
(module
  (import "wasi_snapshot_preview1" "path_open"
    (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 3)
  (data (i32.const 256) "%s")
  (global $out (mut i32) (i32.const 0))
  (func $must (param i32) (if (local.get 0) (then unreachable)))
  (func $vector (param $at i32) (param $size i32)
    (i32.store (i32.const 0) (local.get $at)) (i32.store (i32.const 4) (local.get $size)))
  (func $sum (param $folder i32) (param $name i32) (param $size i32) (local $file i32) (local $at i32)
    (call $must (call $open (local.get $folder) (i32.const 0) (local.get $name) (local.get $size) (i32.const 0)
      (i64.const 2) (i64.const 2) (i32.const 0) (i32.const 8)))
    (local.set $file (i32.load (i32.const 8)))
    (i64.store (i32.const 16) (i64.const 0)) (i64.store (i32.const 24) (i64.const 0))
    (loop $more
      (call $vector (i32.const 65536) (i32.const 65536))
      (call $must (call $read (local.get $file) (i32.const 0) (i32.const 1) (i32.const 8)))
      (i64.store (i32.const 16) (i64.add (i64.load (i32.const 16)) (i64.load32_u (i32.const 8))))
      (local.set $at (i32.const 65536))
      (block $done (loop $words
        (br_if $done (i32.ge_u (local.get $at) (i32.add (i32.const 65536) (i32.load (i32.const 8)))))
        (i64.store (i32.const 24) (i64.add (i64.load (i32.const 24)) (i64.load (local.get $at))))
        (local.set $at (i32.add (local.get $at) (i32.const 8)))
        (br $words)))
      (br_if $more (i32.load (i32.const 8))))
    (call $vector (i32.const 16) (i32.const 16))
    (call $must (call $write (global.get $out) (i32.const 0) (i32.const 1) (i32.const 8))))
  (func (export "_start")
    (call $must (call $open (i32.const 6) (i32.const 0) (i32.const 256) (i32.const 4) (i32.const 9)
      (i64.const 64) (i64.const 64) (i32.const 0) (i32.const 8)))
    (global.set $out (i32.load (i32.const 8)))
    %s))
"""


def lay(folder: Path) -> bytes:
    """Write the program and what the job brings, beside TEXT's names; return what it leaves in /out/sums.

    Of each file the bytes and the sum of its words of 64 bits: no block is equal to another one.
    """
    sizes = {
        "data/large.bin": SIZE * MIB // 2,
        "data/deep/er/half.bin": SIZE * MIB // 4,
        **{f"data/many/{number:03}": 64 for number in range(40)},
        "one.bin": SIZE * MIB // 4,
        "work/src/main.txt": 4096,
    }
    found, memory, calls, chance = b"", bytearray(b"sums"), [], random.Random("folders")
    for name, size in sizes.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        total = 0
        with path.open("wb") as file:
            for at in range(0, size, MIB):
                part = chance.randbytes(min(MIB, size - at))
                file.write(part)
                total += sum(array("Q", part))
        found += struct.pack("<QQ", size, total % 2**64)
        below, _, rest = name.partition("/")
        place, root = (rest, _JOB) if below == "work" else (name, _IN)
        calls.append(f"(call $sum (i32.const {root}) (i32.const {256 + len(memory)}) (i32.const {len(place)}))")
        memory.extend(place.encode())
    # What a workdir leaves out comes to no worker.
    (folder / "work" / ".hearthignore").write_text("secret\n")
    (folder / "work" / "secret").write_bytes(b"never")
    held = "".join(f"\\{byte:02x}" for byte in memory)
    (folder / "sums.wasm").write_bytes(wasmtime.wat2wasm(_SUMS % (held, "\n    ".join(calls))))
    (folder / "job.yaml").write_text(TEXT, encoding="utf-8")
    return found
