"""Read a WebAssembly module far enough to say whether a worker could start it: imports, exports, memory, start.

A check before money moves, by the submitter: what it refuses no worker could run. Declarations are read here, bounded
by MAX_ENTRIES, for a fault that can be told in words; then the engine that workers have, with their settings, validates
all of it. Every fault is a SpecError of the field `module`.
Source: https://webassembly.github.io/spec/core/binary/modules.html.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, NoReturn

from hearth.base.errors import SpecError
from hearth.base.text import brief, plain
from hearth.base.wasm_engine import refusal_of
from hearth.protocol import wasi
from hearth.protocol.units import format_size, mib_ceil

MAGIC: Final = b"\0asm"
VERSION_1: Final = b"\1\0\0\0"
COMPONENT: Final = b"\x0d\0\1\0"
MAX_ENTRIES: Final = 100_000
"""Types, imports, exports and sections that a module may have, each."""
MAX_FUNCTIONS: Final = 1_000_000
MAX_PARAMETERS: Final = 1_000
"""Parameters or results of one function; the engine's own limit."""
MAX_REASON: Final = 300
"""Characters of the engine's own words that are shown."""
_PROPOSAL: Final = re.compile(r"(?i)enabled|disabled|disallowed|not supported without|multiple memories")
"""How the engine says that a module is of a proposal which its settings leave out."""
_OFF: Final = re.compile(r"(?P<what>[^:]+) support is not enabled(?P<at> \(at offset 0x[0-9a-f]+\))?")
"""What it says of most of them."""
WITHOUT: Final = (
    ("tail call", "compile it without them: -mno-tail-call (clang), -C target-feature=-tail-call (Rust)"),
    ("relaxed simd", "compile it without: -mno-relaxed-simd (clang), -C target-feature=-relaxed-simd (Rust)"),
    ("wide arithmetic", "compile it without: -mno-wide-arithmetic (clang), -C target-feature=-wide-arithmetic (Rust)"),
    ("exceptions", "compile it without -fwasm-exceptions (clang), and with panic=abort (Rust)"),
    ("threads", "compile it without -pthread and -matomics (clang), and for wasm32-wasip1, not wasip1-threads (Rust)"),
    ("64-bit", "compile it for wasm32, without 64-bit addresses"),
    ("memor", "link it as one module, without a second memory: -mno-multimemory (clang)"),
    *(
        (word, "compile it without garbage collection: from C, C++, Rust, Zig or Go")
        for word in ("garbage", "reference", "types")
    ),
)
"""What to change where a proposal is not run, by a word in its name; the first that fits."""
COMPILE_HINT: Final = "compile it for wasm32-wasi, as docs/JOB.md shows"

_TYPES, _IMPORTS, _FUNCTIONS, _TABLES, _MEMORY, _EXPORTS, _START = 1, 2, 3, 4, 5, 7, 8
_TAGS: Final = 13
_SECTIONS: Final = (_TYPES, _IMPORTS, _FUNCTIONS, _TABLES, _MEMORY, _TAGS, 6, _EXPORTS, _START, 9, 12, 10, 11)
_ORDER: Final = {section: place for place, section in enumerate(_SECTIONS)}
"""The place of each section; 13 (tags, of exceptions) and 12 (data count) came later than their neighbours."""
_VALUE_TYPES: Final = {0x7F: "i", 0x7E: "I", 0x7D: "f", 0x7C: "F", 0x7B: "v", 0x70: "r"}
_LETTERS: Final = "".join(_VALUE_TYPES.get(value, "?") for value in range(256)).encode()
"""The letter of each value type, "?" for those of proposals."""
_KINDS: Final = ("function", "table", "memory", "global", "tag")
_MEMORY_FLAGS: Final = ((0x02, "memory shared by threads"), (0x04, "64-bit memory"), (0x08, "custom page sizes"))
_OTHER_FILES: Final = (
    (b"\x7fELF", "a Linux program"),
    (b"MZ", "a Windows program"),
    (b"\xcf\xfa\xed\xfe", "a macOS program"),
    (b"#!", "a script"),
    (b"(module", "WebAssembly in text form"),
)


@dataclass(frozen=True, slots=True)
class Signature:
    """The parameters and results of a function, a letter each: i and I integers of 32 and 64 bits, f and F floats."""

    parameters: str
    results: str


@dataclass(frozen=True, slots=True)
class Import:
    """What a module needs from its host; only a function has a signature."""

    module: str
    name: str
    kind: str
    signature: Signature | None


@dataclass(frozen=True, slots=True)
class Export:
    """What a module shows its host; only a function has a signature."""

    kind: str
    signature: Signature | None


@dataclass(frozen=True, slots=True)
class Module:
    """What a module declares.

    `memory_pages` (of 64 KiB) is the memory that it starts with, 0 without one; `calls_host_at_start` says that its
    start function, which runs before `_start`, is a call of the host.
    """

    imports: tuple[Import, ...]
    exports: Mapping[str, Export]
    memory_pages: int
    calls_host_at_start: bool


def check_module(raw: bytes, memory_bytes: int) -> None:
    """Refuse a module that no worker could start with `memory_bytes` of memory.

    Raises SpecError of the field `module`: NO_WASM, BAD_MODULE, MODULE_TOO_LARGE, UNKNOWN_IMPORT, NO_ENTRY, NO_MEMORY,
    UNSUPPORTED_MODULE, and of the field `resources.memory`: MEMORY_SHORT.
    """
    check_declared(raw, memory_bytes)
    validate(raw)


def check_declared(raw: bytes, memory_bytes: int) -> None:
    """Refuse by its declarations alone a module that no worker could start, as `check_module` does, and the page."""
    module = read_module(raw)
    for wanted in module.imports:
        _check_import(wanted)
    _check_entry(module)
    memory = module.exports.get("memory")
    if memory is None or memory.kind != "memory":
        _refuse("exports no memory under the name memory", COMPILE_HINT, "NO_MEMORY")
    needed, had = module.memory_pages * wasi.PAGE_BYTES, min(memory_bytes, wasi.MAX_MEMORY_BYTES)
    if needed > had:
        raise SpecError(
            f"resources.memory: the module starts with {format_size(needed)} of memory, and the job asks for "
            f"{format_size(had)}",
            hint=f'write resources: {{memory: "{format_size(mib_ceil(needed) << 20)}"}}, or more',
            code="MEMORY_SHORT",
            field="resources.memory",
        )


def validate(raw: bytes) -> None:
    """Refuse a module that the engine of workers does not take. Raises SpecError UNSUPPORTED_MODULE or BAD_MODULE."""
    why = brief(plain(refusal_of(wasi.ENGINE_CONFIG, raw)), MAX_REASON)
    if off := _OFF.fullmatch(why):
        _unsupported("garbage collection" if off["what"] == "gc" else off["what"], off["at"] or "")
    if _PROPOSAL.search(why):
        _refuse(f"uses what workers do not run: {why}", _without(why), "UNSUPPORTED_MODULE")
    if why:
        _bad(why)


def check_size(size: int) -> None:
    """Refuse a module of more bytes than a worker takes. Raises SpecError MODULE_TOO_LARGE."""
    if size > wasi.MAX_MODULE_BYTES:
        _refuse(
            f"has {format_size(size)}; a worker takes at most {format_size(wasi.MAX_MODULE_BYTES)}",
            "strip it (-s), and pass data as inputs",
            "MODULE_TOO_LARGE",
        )


def read_module(raw: bytes) -> Module:
    """Return what a module declares. Raises SpecError NO_WASM, BAD_MODULE, MODULE_TOO_LARGE or UNSUPPORTED_MODULE."""
    check_size(len(raw))
    if raw[:4] != MAGIC:
        _refuse_file(raw)
    if raw[4:8] == COMPONENT:
        _refuse(
            "is a WebAssembly component, and workers run core modules",
            "compile it for wasm32-wasip1 (preview 1), not wasip2",
            "UNSUPPORTED_MODULE",
        )
    if raw[4:8] != VERSION_1:
        _refuse("is no WebAssembly of version 1", COMPILE_HINT, "NO_WASM")
    return _Reader().read(raw)


class _Reader:
    """Collect what the sections declare, in their order."""

    def __init__(self) -> None:
        self.types: list[Signature] = []
        self.imports: list[Import] = []
        self.functions: list[int] = []
        """The type of each function, imported ones first."""
        self.memories: list[int] = []
        """The pages that each memory starts with."""
        self.exports: dict[str, Export] = {}
        self.start: int | None = None

    def read(self, raw: bytes) -> Module:
        """Read every section's frame, and what is in the seven that matter here."""
        readers: dict[int, Callable[[_Bytes], None]] = {
            _TYPES: self._types,
            _IMPORTS: self._imports,
            _FUNCTIONS: self._functions,
            _TABLES: self._tables,
            _MEMORY: self._memories,
            _EXPORTS: self._exports,
            _START: self._start,
        }
        file = _Bytes(raw, 8, len(raw))
        last = -1
        sections = 0
        while file.at < file.end:
            sections += 1
            if sections > MAX_ENTRIES:
                _unsupported(f"more than {MAX_ENTRIES} sections")
            section = file.byte()
            body = file.part(file.number())
            if section == 0:  # custom: a name, debug data
                continue
            place = _ORDER.get(section, -1)
            if place <= last:
                _bad(f"section {section} is unknown, doubled or out of order")
            last = place
            if section == _TAGS:
                _unsupported("exceptions")
            if section in readers:
                readers[section](body)
                if body.at != body.end:
                    _bad(f"section {section} holds more than it declares")
        called = [wanted for wanted in self.imports if wanted.kind == "function"]
        return Module(
            tuple(self.imports),
            self.exports,
            self.memories[0] if self.memories else 0,
            self.start is not None and self.start < len(called),
        )

    def _types(self, body: _Bytes) -> None:
        for _ in range(body.count(MAX_ENTRIES)):
            if body.byte() != 0x60:
                _unsupported("types of a proposal (garbage collection, function references)")
            self.types.append(Signature(_letters(body), _letters(body)))

    def _imports(self, body: _Bytes) -> None:
        for _ in range(body.count(MAX_ENTRIES)):
            module, name, kind = body.text(), body.text(), body.byte()
            signature = None
            if kind == 0:
                self.functions.append(body.number())
                signature = self._signature(len(self.functions) - 1)
            elif kind == 1:
                body.byte()
                _limits(body)
            elif kind == 2:
                self.memories.append(_limits(body))
            elif kind == 3:
                body.byte()
                body.byte()
            elif kind == 4:
                body.byte()
                body.number()
            else:
                _bad(f"an import is of the unknown kind {kind}")
            self.imports.append(Import(module, name, _KINDS[kind], signature))

    def _functions(self, body: _Bytes) -> None:
        self.functions.extend([body.number() for _ in range(body.count(MAX_FUNCTIONS))])

    def _tables(self, body: _Bytes) -> None:
        for _ in range(body.count(MAX_ENTRIES)):
            if _VALUE_TYPES.get(body.byte()) != "r":
                _unsupported("tables of a proposal")
            _limits(body)

    def _memories(self, body: _Bytes) -> None:
        self.memories.extend([_limits(body) for _ in range(body.count(MAX_ENTRIES))])
        if len(self.memories) > 1:
            _unsupported("more than one memory")

    def _exports(self, body: _Bytes) -> None:
        for _ in range(body.count(MAX_ENTRIES)):
            name, kind, index = body.text(), body.byte(), body.number()
            if kind >= len(_KINDS):
                _bad(f"an export is of the unknown kind {kind}")
            if name in self.exports:
                _bad(f'"{brief(name)}" is exported twice')
            if kind == 2 and index >= len(self.memories):
                _bad(f"memory {index} is exported and not declared")
            self.exports[name] = Export(_KINDS[kind], self._signature(index) if kind == 0 else None)

    def _start(self, body: _Bytes) -> None:
        self.start = body.number()
        if self._signature(self.start) != Signature("", ""):
            _bad("its start function takes parameters or returns results")

    def _signature(self, function: int) -> Signature:
        """Return the signature of a function by its index."""
        if function >= len(self.functions):
            _bad(f"function {function} is named and not declared")
        index = self.functions[function]
        if index >= len(self.types):
            _bad(f"type {index} is named and not declared")
        return self.types[index]


class _Bytes:
    """Read forward through a part of a module, and never past its end."""

    def __init__(self, raw: bytes, at: int, end: int) -> None:
        self._raw = raw
        self.at = at
        self.end = end

    def byte(self) -> int:
        """Return the next byte."""
        if self.at >= self.end:
            _bad("it ends in the middle: a part of the file is missing")
        self.at += 1
        return self._raw[self.at - 1]

    def number(self) -> int:
        """Return an unsigned integer of up to 32 bits (LEB128)."""
        value = self.byte()
        if value < 0x80:
            return value
        value &= 0x7F
        for shift in (7, 14, 21, 28):
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if value >> 32:
                    break
                return value
        _bad("a number has more than 32 bits")

    def long(self) -> int:
        """Return an unsigned integer of up to 64 bits (LEB128): a bound that may belong to a 64-bit memory."""
        value = 0
        for shift in range(0, 70, 7):
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        _bad("a number has more than 64 bits")

    def count(self, most: int) -> int:
        """Return how many entries follow."""
        value = self.number()
        if value > most:
            _refuse(f"declares {value} entries where this check reads at most {most}", "split it", "UNSUPPORTED_MODULE")
        return value

    def text(self) -> str:
        """Return a name."""
        try:
            return self.take(self.number()).decode()
        except UnicodeDecodeError:
            _bad("a name is no UTF-8 text")

    def take(self, size: int) -> bytes:
        """Return the next `size` bytes."""
        part = self.part(size)
        return self._raw[part.at : part.end]

    def part(self, size: int) -> _Bytes:
        """Return a reader of the next `size` bytes and step over them."""
        begin = self.at
        if size > self.end - begin:
            _bad("it ends in the middle: a part of the file is missing")
        self.at += size
        return _Bytes(self._raw, begin, begin + size)


def _letters(body: _Bytes) -> str:
    letters = body.take(body.count(MAX_PARAMETERS)).translate(_LETTERS).decode()
    if "?" in letters:
        _unsupported("value types of a proposal")
    return letters


def _limits(body: _Bytes) -> int:
    """Return the least size of a memory or table; flags that workers do not know are refused by name."""
    flags = body.byte()
    least = body.long()
    if flags & 1:
        body.long()
    for flag, name in _MEMORY_FLAGS:
        if flags & flag:
            _unsupported(name)
    if flags > 1:
        _bad("a memory or table has unknown flags")
    return least


def _check_import(wanted: Import) -> None:
    name = f"{brief(wanted.module)}.{brief(wanted.name)}"
    letters = wasi.CALLS.get(wanted.name)
    if wanted.module != wasi.MODULE or letters is None or wanted.signature is None:
        _refuse(
            f"imports the {wanted.kind} {name}, which no worker offers: only the functions of {wasi.MODULE}",
            _IMPORT_HINTS.get(wanted.module, COMPILE_HINT),
            "UNKNOWN_IMPORT",
        )
    if wanted.signature != Signature(letters, "" if wanted.name in wasi.NO_RESULT else "i"):
        _refuse(f"imports {name} with other parameters than it has", COMPILE_HINT, "UNKNOWN_IMPORT")


_IMPORT_HINTS: Final = {
    "env": "link what it calls into the module: undefined symbols become imports of env",
    "wasi_unstable": "compile it with a newer compiler: this is the WASI before preview 1",
    "wasi": "compile it without threads",
}
"""What to do about an import, by the module that it names."""


def _check_entry(module: Module) -> None:
    entry = module.exports.get("_start")
    if entry is None or entry.signature is None:
        if "_initialize" in module.exports:
            _refuse(
                "is a library: it exports _initialize and no function _start",
                "link it as a program with main, without -mexec-model=reactor or crate-type cdylib",
                "NO_ENTRY",
            )
        _refuse("exports no function _start: a job is a program with main", COMPILE_HINT, "NO_ENTRY")
    if entry.signature.parameters:
        _refuse("has a _start that takes parameters, and a worker calls it without", COMPILE_HINT, "NO_ENTRY")
    if module.calls_host_at_start:
        _refuse(
            "calls its host before its memory can be seen: its start function is an import",
            "call it in main",
            "UNSUPPORTED_MODULE",
        )


def _refuse_file(raw: bytes) -> NoReturn:
    head = raw[:64].lstrip()
    what = next((f": it looks like {name}" for magic, name in _OTHER_FILES if head.startswith(magic)), "")
    if not raw:
        what = ": it is empty"
    _refuse(f"is no WebAssembly module{what}", COMPILE_HINT, "NO_WASM")


def _unsupported(what: str, at: str = "") -> NoReturn:
    _refuse(f"uses {what}, which workers do not run{at}", _without(what), "UNSUPPORTED_MODULE")


def _without(what: str) -> str:
    return next((hint for word, hint in WITHOUT if word in what.lower()), "compile it without")


def _bad(what: str) -> NoReturn:
    _refuse(f"is damaged: {what}", "compile or copy it again", "BAD_MODULE")


def _refuse(what: str, hint: str, code: str) -> NoReturn:
    raise SpecError(f"module: {what}", hint=hint, code=code, field="module")
