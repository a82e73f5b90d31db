"""The submitter's look into a WebAssembly module: what it sees, what it refuses, and that nothing else comes out."""

from __future__ import annotations

import re
import struct
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest
import wasmtime
from hypothesis import example, given
from hypothesis import strategies as st

from hearth.base.errors import SpecError
from hearth.base.wasm_engine import engine_of
from hearth.jobfile import wasm_module
from hearth.jobfile.wasm_module import Import, Signature, check_module, read_module
from hearth.protocol import wasi
from hearth.protocol.wasi import ENGINE_CONFIG
from tests.jobfile.module_cases import PLAIN, PROPOSALS

ROOT = Path(__file__).resolve().parents[2]
MODULES = sorted((ROOT / "examples").rglob("*.wasm"))
PAGE = 65_536
MIB = 1 << 20
MEMORY = '(memory (export "memory") 1)'
START = '(func (export "_start"))'


def wat(text: str) -> bytes:
    return bytes(wasmtime.wat2wasm(text))


def refusal(raw: bytes, memory: int = 64 * MIB) -> SpecError:
    with pytest.raises(SpecError) as refused:
        check_module(raw, memory)
    return refused.value


def section(number: int, body: bytes) -> bytes:
    return bytes([number]) + leb(len(body)) + body


def leb(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


HEAD = b"\0asm\1\0\0\0"
GOOD = wat(f"(module {MEMORY} {START})")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_check_module__an_example__passes_and_is_read_as_the_engine_reads_it(path: Path) -> None:
    raw = path.read_bytes()
    check_module(raw, 64 * MIB)
    module = read_module(raw)
    engine = wasmtime.Module(wasmtime.Engine(), raw)
    assert [(wanted.module, wanted.name) for wanted in module.imports] == [
        (wanted.module, wanted.name) for wanted in engine.imports
    ]
    assert list(module.exports) == [export.name for export in engine.exports]
    memory = next(export.type for export in engine.exports if export.name == "memory")
    assert isinstance(memory, wasmtime.MemoryType)
    assert module.memory_pages == memory.limits.min > 0


def test_read_module__every_kind_of_declaration__is_seen() -> None:
    raw = wat(
        """(module
          (import "m" "f" (func $f (param i32 i64 f32 f64 v128 funcref) (result i32 i64)))
          (import "m" "t" (table 1 2 funcref)) (import "m" "g" (global (mut i64))) (import "m" "mem" (memory 3 9))
          (func $s) (func (export "_start") (param f64)) (export "again" (func $f)) (export "memory" (memory 0))
          (start $s))"""
    )
    module = read_module(raw)
    wide = Signature("iIfFvr", "iI")
    assert module.imports == (
        Import("m", "f", "function", wide),
        Import("m", "t", "table", None),
        Import("m", "g", "global", None),
        Import("m", "mem", "memory", None),
    )
    assert module.exports["again"].signature == wide
    assert module.exports["_start"].signature == Signature("F", "")
    assert (module.exports["memory"].kind, module.memory_pages) == ("memory", 3)
    assert not module.calls_host_at_start


@pytest.mark.parametrize("name", wasi.CALLS)
def test_check_module__each_call_that_workers_offer__passes_with_its_own_parameters_only(name: str) -> None:
    words = {"i": "i32", "I": "i64"}
    parameters = " ".join(words[letter] for letter in wasi.CALLS[name])
    result = "" if name in wasi.NO_RESULT else "(result i32)"

    def module(parameters: str, result: str) -> bytes:
        wanted = f'(import "wasi_snapshot_preview1" "{name}" (func (param {parameters}) {result}))'
        return wat(f"(module {wanted} {MEMORY} {START})")

    check_module(module(parameters, result), PAGE)
    for other in (module(f"{parameters} f32", result), module(parameters, "(result i64)")):
        refused = refusal(other)
        assert refused.code == "UNKNOWN_IMPORT" and "other parameters" in refused.message


@pytest.mark.parametrize(
    ("raw", "code", "message", "hint"),
    [
        (b"", "NO_WASM", "it is empty", "wasm32-wasi"),
        (b"\0as", "NO_WASM", "is no WebAssembly module", "wasm32-wasi"),
        (b"\x7fELF\2\1\1", "NO_WASM", "a Linux program", "wasm32-wasi"),
        (b"#!/bin/sh\n", "NO_WASM", "a script", "wasm32-wasi"),
        (b"\n(module)", "NO_WASM", "text form", "wasm32-wasi"),
        (b"\0asm\2\0\0\0", "NO_WASM", "version 1", "wasm32-wasi"),
        (b"\0asm\x0d\0\1\0", "UNSUPPORTED_MODULE", "component", "wasm32-wasip1"),
        (GOOD[:-1], "BAD_MODULE", "ends in the middle", "copy it again"),
        (HEAD + b"\1\xff\xff\xff\xff\xff", "BAD_MODULE", "more than 32 bits", "copy it again"),
        (HEAD + section(14, b""), "BAD_MODULE", "unknown", "copy it again"),
        (GOOD + section(1, b"\0"), "BAD_MODULE", "out of order", "copy it again"),
        (HEAD + section(1, b"\0\0"), "BAD_MODULE", "more than it declares", "copy it again"),
        (HEAD + section(7, b"\1\1a\0\0"), "BAD_MODULE", "function 0 is named", "copy it again"),
        (HEAD + section(7, b"\1\1a\2\0"), "BAD_MODULE", "memory 0 is exported", "copy it again"),
        (HEAD + section(7, b"\1\1\xff\2\0"), "BAD_MODULE", "UTF-8", "copy it again"),
        (HEAD + section(7, b"\1\1a\5\0"), "BAD_MODULE", "unknown kind 5", "copy it again"),
        (HEAD + section(2, b"\1\1a\1b\5"), "BAD_MODULE", "unknown kind 5", "copy it again"),
        (HEAD + section(2, b"\1\1a\1b\0\0"), "BAD_MODULE", "type 0 is named", "copy it again"),
        (HEAD + section(5, b"\1\x10\1"), "BAD_MODULE", "unknown flags", "copy it again"),
        (HEAD + section(5, b"\1\x01\1" + b"\xff" * 10), "BAD_MODULE", "64 bits", "copy it again"),
        (wat(f"(module {MEMORY} (memory 1) {START})"), "UNSUPPORTED_MODULE", "more than one memory", "without"),
        (wat(f'(module (memory (export "memory") i64 1) {START})'), "UNSUPPORTED_MODULE", "64-bit memory", "without"),
        (wat(f'(module (memory (export "memory") 1 1 shared) {START})'), "UNSUPPORTED_MODULE", "threads", "without"),
        (wat(f"(module (type (struct)) {MEMORY} {START})"), "UNSUPPORTED_MODULE", "garbage", "without"),
        (wat(f"(module (func (param exnref)) {MEMORY} {START})"), "UNSUPPORTED_MODULE", "proposal", "without"),
        (wat(f'(module (import "env" "puts" (func)) {MEMORY} {START})'), "UNKNOWN_IMPORT", "env.puts", "link"),
        (
            wat(f'(module (import "wasi_unstable" "fd_read" (func)) {MEMORY} {START})'),
            "UNKNOWN_IMPORT",
            "wasi_unstable.fd_read",
            "newer compiler",
        ),
        (
            wat(f'(module (import "wasi_snapshot_preview1" "sock_open" (func)) {MEMORY} {START})'),
            "UNKNOWN_IMPORT",
            "sock_open",
            "wasm32-wasi",
        ),
        (
            wat(f'(module (import "wasi_snapshot_preview1" "fd_read" (memory 1)) {START})'),
            "UNKNOWN_IMPORT",
            "the memory",
            "wasm32-wasi",
        ),
        (wat(f"(module {MEMORY})"), "NO_ENTRY", "no function _start", "wasm32-wasi"),
        (wat(f'(module {MEMORY} (func (export "_initialize")))'), "NO_ENTRY", "is a library", "main"),
        (wat('(module (memory (export "_start") 1))'), "NO_ENTRY", "no function _start", "wasm32-wasi"),
        (wat(f'(module {MEMORY} (func (export "_start") (param i32)))'), "NO_ENTRY", "takes parameters", "wasm32"),
        (wat(f"(module (memory 1) {START})"), "NO_MEMORY", "no memory", "wasm32-wasi"),
        (wat(f'(module (func (export "memory")) {START})'), "NO_MEMORY", "no memory", "wasm32-wasi"),
    ],
)  # fmt: skip
def test_check_module__cannot_run__named_with_a_hint(raw: bytes, code: str, message: str, hint: str) -> None:
    refused = refusal(raw)
    assert (refused.code, refused.details["field"], refused.exit_code) == (code, "module", 2)
    assert message in refused.message and hint in refused.hint


def test_check_module__start_function_of_the_host__refused_and_one_of_its_own_passes() -> None:
    quit_at_once = '(import "wasi_snapshot_preview1" "proc_exit" (func $x (param i32)))'
    own = f"(module {quit_at_once} {MEMORY} {START} (func $s) (start $s))"
    check_module(wat(own), PAGE)
    host = HEAD + section(1, b"\1\x60\0\0") + section(2, b"\1\1a\1b\0\0") + section(8, b"\0")
    assert read_module(host).calls_host_at_start
    typed = HEAD + section(1, b"\1\x60\1\x7f\0") + section(2, b"\1\1a\1b\0\0") + section(8, b"\0")
    assert refusal(typed).code == "BAD_MODULE"


@pytest.mark.parametrize(("memory", "fits"), [(3 * PAGE - 1, False), (3 * PAGE, True), (3 * PAGE + 1, True)])
def test_check_module__initial_memory__at_most_what_the_job_asks(memory: int, fits: bool) -> None:
    raw = wat(f'(module (memory (export "memory") 3) {START})')
    if fits:
        check_module(raw, memory)
        return
    refused = refusal(raw, memory)
    assert (refused.code, refused.details["field"]) == ("MEMORY_SHORT", "resources.memory")
    assert '"1MiB"' in refused.hint


def test_check_module__memory_of_whole_gib__is_told_in_gib() -> None:
    raw = wat(f'(module (memory (export "memory") {(1 << 30) // PAGE}) {START})')
    assert '"1GiB"' in refusal(raw, PAGE).hint


def test_check_module__more_memory_than_32_bits_reach__does_not_help() -> None:
    whole = wat(f'(module (memory (export "memory") 65536) {START})')
    check_module(whole, 1 << 40)
    more = HEAD + section(5, b"\1\0" + leb(65_537))
    more = GOOD[: GOOD.index(b"\5")] + more[8:] + GOOD[GOOD.index(b"\5") + 5 :]
    assert refusal(more, 1 << 40).code == "MEMORY_SHORT"


def test_read_module__over_the_size_cap__refused_before_it_is_parsed() -> None:
    assert refusal(HEAD + bytes(wasi.MAX_MODULE_BYTES)).code == "MODULE_TOO_LARGE"


def _heavy() -> Iterator[tuple[str, bytes]]:
    """Yield modules as large as may be, each of nothing but one thing that costs a reader time."""
    room = wasi.MAX_MODULE_BYTES - 64
    yield "sections", HEAD + b"\0\0" * (room // 2)
    many = wasm_module.MAX_ENTRIES
    yield "types", HEAD + section(1, leb(many) + b"\x60\0\0" * many)
    wide = b"\x60" + leb(600) + b"\x7f" * 600 + b"\0"
    yield "parameters", HEAD + section(1, leb(many) + wide * many)
    yield (
        "exports",
        HEAD
        + section(5, b"\1\0\1")
        + section(
            7,
            leb(many) + b"".join(b"\4" + struct.pack("<I", n % 0x7F7F7F7F & 0x7F7F7F7F) + b"\2\0" for n in range(many)),
        ),
    )
    functions = wasm_module.MAX_FUNCTIONS
    yield "functions", HEAD + section(1, b"\1\x60\0\0") + section(3, leb(functions) + b"\0" * functions)
    yield "name", HEAD + section(2, b"\1" + leb(room - 100) + b"a" * (room - 100))


def test_read_module__as_heavy_as_can_be__is_answered_in_seconds() -> None:
    for name, raw in _heavy():
        assert len(raw) <= wasi.MAX_MODULE_BYTES
        begun = time.process_time()
        with suppress(SpecError):
            read_module(raw)
        assert time.process_time() - begun < 5, name


SMALL = [path.read_bytes() for path in MODULES if path.stat().st_size < 100_000] + [GOOD]


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A module with bytes changed, cut out, doubled or put in; mostly near its head, where the declarations are."""
    raw = bytearray(draw(st.sampled_from(SMALL)))
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, min(len(raw), 2_000)))
        kind = draw(st.sampled_from(("set", "cut", "double", "insert", "end")))
        if kind == "set" and at < len(raw):
            raw[at] = draw(st.integers(0, 255))
        elif kind == "cut":
            del raw[at : at + draw(st.integers(1, 64))]
        elif kind == "double":
            raw[at:at] = raw[at : at + draw(st.integers(1, 64))]
        elif kind == "insert":
            raw[at:at] = draw(st.binary(max_size=16))
        else:
            del raw[at:]
    return bytes(raw)


@given(raw=st.one_of(mutated(), st.binary(max_size=200).map(lambda tail: HEAD + tail), st.binary(max_size=200)))
@example(raw=b"")
def test_check_module__mutated__passes_or_is_a_refusal_with_code_message_and_hint(raw: bytes) -> None:
    try:
        check_module(raw, 64 * MIB)
    except SpecError as refused:
        assert refused.message and refused.hint and re.fullmatch("[A-Z_]+", refused.code)


@given(raw=mutated())
def test_check_module__what_the_engine_and_its_rules_accept__is_not_refused(raw: bytes) -> None:
    """No false refusal: a module that compiles and imports and exports what a worker wants passes here."""
    try:
        module = wasmtime.Module(_engine(), raw)
    except wasmtime.WasmtimeError:
        return
    known = all(
        wanted.module == wasi.MODULE
        and isinstance(wanted.type, wasmtime.FuncType)
        and _signature(wanted.type) == (wasi.CALLS.get(wanted.name or ""), "" if wanted.name == "proc_exit" else "i")
        for wanted in module.imports
    )
    exports = {export.name: export.type for export in module.exports}
    start, memory = exports.get("_start"), exports.get("memory")
    if (
        known
        and isinstance(start, wasmtime.FuncType)
        and not start.params
        and isinstance(memory, wasmtime.MemoryType)
        and memory.limits.min * PAGE <= 64 * MIB
    ):
        check_module(raw, 64 * MIB)


WAT = f"(module {MEMORY} {START} %s)"


@pytest.mark.parametrize("proposal", PROPOSALS)
def test_check_module__proposal_that_the_workers_engine_leaves_out__unsupported(proposal: str) -> None:
    """Case 10: four passed the check, were posted, and each worker gave them back, money locked to the deadline."""
    raw = wat(WAT % PROPOSALS[proposal])
    with pytest.raises(wasmtime.WasmtimeError):
        wasmtime.Module(_engine(), raw)
    assert refusal(raw).code == "UNSUPPORTED_MODULE", refusal(raw).message


@pytest.mark.parametrize("name", PLAIN)
def test_check_module__code_of_each_kind_that_workers_run__passes(name: str) -> None:
    check_module(wat(WAT % PLAIN[name]), 64 * MIB)


def test_check_module__cases_of_the_wild__are_named() -> None:
    said = {name: refusal(wat(WAT % PROPOSALS[name])).message for name in ("tail calls", "relaxed SIMD", "exceptions")}
    assert said["tail calls"].startswith("module: uses tail calls, which workers do not run (at offset 0x")
    assert "relaxed SIMD" in said["relaxed SIMD"] and "exceptions" in said["exceptions"]


@pytest.mark.parametrize(
    ("proposal", "word"),
    [
        *(("tail calls", "-mno-tail-call"), ("relaxed SIMD", "-mno-relaxed-simd"), ("exceptions", "-fwasm-exceptions")),
        *(("exceptions in a table", "-fwasm-exceptions"), ("threads", "-pthread"), ("shared memory", "-pthread")),
        *(("64-bit tables", "wasm32"), ("a second memory", "one module"), ("wide arithmetic", "-mno-wide-arithmetic")),
        *(
            (name, "garbage")
            for name in ("references to functions", "reference types of a signature", "structs", "i31")
        ),
    ],
)
def test_check_module__proposal_left_out__says_what_to_change_when_compiling(proposal: str, word: str) -> None:
    assert word in refusal(wat(WAT % PROPOSALS[proposal])).hint


@pytest.mark.parametrize("code", ["(func (result i32))", "(func i32.add drop)", "(func local.get 7 drop)"])
def test_check_module__code_that_no_engine_takes__damaged(code: str) -> None:
    raw = wat(WAT % code) if "result" in code else bytes(wasmtime.wat2wasm(WAT % code))
    assert refusal(raw).code == "BAD_MODULE"


@cache
def _engine() -> wasmtime.Engine:
    """Return the worker's engine."""
    return engine_of(ENGINE_CONFIG)


def _signature(kind: wasmtime.FuncType) -> tuple[str, str]:
    letters = {"i32": "i", "i64": "I"}
    return (
        "".join(letters.get(str(value), "?") for value in kind.params),
        "".join(letters.get(str(value), "?") for value in kind.results),
    )
