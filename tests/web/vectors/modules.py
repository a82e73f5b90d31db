"""WebAssembly modules, whole and damaged: what the submitter's check says of each."""

from __future__ import annotations

from typing import Any

import wasmtime

from hearth.base.errors import HearthError
from hearth.jobfile.wasm_module import check_declared, check_module
from hearth.protocol import wasi
from tests.jobfile.module_cases import PLAIN, PROPOSALS
from tests.kit.evm import ROOT
from tests.web.vectors import _chance

MEMORY = '(memory (export "memory") 1)'
START = '(func (export "_start"))'
CUT, CHANGED = 20, 60
MIB = 1 << 20
_WASI = "wasi_snapshot_preview1"


def cases() -> dict[str, Any]:
    """Return modules by name as hex, and cases: which one, how it was cut and changed, the memory, and the refusal."""
    random = _chance.source("modules")
    bases = {**{name: bytes(wasmtime.wat2wasm(f"(module {text})")) for name, text in _texts().items()}, **_files()}
    found = [_case(bases, name, None, [], 64 * MIB) for name in bases]
    sized = ("good", "large memory")
    found += [_case(bases, name, None, [], memory) for name in sized for memory in (1, 65_536, 1 << 40)]
    wide = [name for name in bases if len(bases[name]) > 20]
    for _ in _chance.rows(CUT):
        name = random.choice(wide)
        found.append(_case(bases, name, random.randrange(len(bases[name])), [], 64 * MIB))
    for _ in _chance.rows(CHANGED):
        name = random.choice(wide)
        # Declarations stand at the beginning.
        most = min(len(bases[name]), 400)
        edits = [[random.randrange(8, most), random.randrange(256)] for _ in range(random.choice((1, 1, 2)))]
        found.append(_case(bases, name, None, edits, 64 * MIB))
    return {"bases": {name: raw.hex() for name, raw in bases.items()}, "cases": found, "code": _of_code()}


def _of_code() -> list[dict[str, Any]]:
    """Return modules with and without proposals, and what the workers' engine says of each."""
    found = []
    for name, text in {**PROPOSALS, **PLAIN}.items():
        raw = bytes(wasmtime.wat2wasm(f"(module {MEMORY} {START} {text})"))
        try:
            check_module(raw, 64 * MIB)
            code = None
        except HearthError as error:
            code = error.code
        found.append({"name": name, "module": raw.hex(), "code": code})
    return found


def _case(bases: dict[str, bytes], name: str, cut: int | None, edits: list[list[int]], memory: int) -> dict[str, Any]:
    raw = bytearray(bases[name][:cut])
    for at, byte in edits:
        raw[at] = byte
    told: dict[str, Any] = {"base": name, "cut": cut, "edits": edits, "memory": str(memory)}
    try:
        check_declared(bytes(raw), memory)
    except HearthError as error:
        return {**told, "code": error.code}
    return {**told, "code": None}


def _texts() -> dict[str, str]:
    words = {"i": "i32", "I": "i64"}
    imports = "".join(
        f'(import "{_WASI}" "{name}" (func (param {" ".join(words[one] for one in kinds)}) '
        f"{'' if name in wasi.NO_RESULT else '(result i32)'}))"
        for name, kinds in wasi.CALLS.items()
    )
    return {
        "good": f"{MEMORY} {START}",
        "all calls": f"{imports} {MEMORY} {START}",
        "other parameters": f'(import "{_WASI}" "fd_close" (func (param i64) (result i32))) {MEMORY} {START}',
        "unknown call": f'(import "{_WASI}" "sock_open" (func)) {MEMORY} {START}',
        "env": f'(import "env" "puts" (func)) {MEMORY} {START}',
        "old": f'(import "wasi_unstable" "fd_close" (func)) {MEMORY} {START}',
        "proto": f'(import "__proto__" "constructor" (func)) {MEMORY} {START}',
        "long name": f'(import "{"é" * 90}" "{"x" * 81}" (func)) {MEMORY} {START}',
        "memory from outside": f'(import "env" "memory" (memory 1)) {START}',
        "table from outside": f'(import "env" "t" (table 1 2 funcref)) {MEMORY} {START}',
        "global from outside": f'(import "env" "g" (global i32)) {MEMORY} {START}',
        "no memory": START,
        "memory not shown": f"(memory 1) {START}",
        "large memory": f'(memory (export "memory") 2000) {START}',
        "no start": MEMORY,
        "library": f'{MEMORY} (func (export "_initialize"))',
        "start with parameters": f'{MEMORY} (func (export "_start") (param i32))',
        "start that is a memory": '(memory (export "_start") 1)',
        "called at start": f'(import "{_WASI}" "sched_yield" (func)) {MEMORY} {START} (start 0)',
        "host at start": f'(import "{_WASI}" "proc_exit" (func $x)) {MEMORY} {START} (start $x)',
        "own start": f"{MEMORY} {START} (func $s) (start $s)",
        "vectors": f'{MEMORY} {START} (func (export "v") (param v128 funcref f32 f64 i64))',
    }


def _files() -> dict[str, bytes]:
    return {
        "failing": (ROOT / "examples" / "failing" / "failing.wasm").read_bytes(),
        "empty": b"",
        "Linux": b"\x7fELF\x02",
        "Windows": b"MZ\x90",
        "script": b" \n\t#!/bin/sh",
        "text": b"\x0b(module)",
        "short": b"\0as",
        "component": b"\0asm\x0d\0\1\0",
        "version": b"\0asm\2\0\0\0",
        "bare": b"\0asm\1\0\0\0",
        "number": b"\0asm\1\0\0\0\1\xff\xff\xff\xff\xff\1",
        "name": b"\0asm\1\0\0\0\2\5\1\1\xff\1x",
    }
