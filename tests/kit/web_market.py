"""A market with jobs of every kind, and `hearth web` as processes of its own: what tests of the page read."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import wasmtime

from tests.kit.running import wait
from tests.kit.town import EXAMPLES, Town, town, wasm_file
from tests.kit.web_rpc import WebRpc, web_rpc

HOSTILE = "\x1b[31mred \u202egnp.exe\u202c \u200b\x00 <img src=x onerror=alert(1)>"
"""What a program writes and a submitter names to mislead whoever reads it."""
_SHOUT = """
(module
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\\10\\00\\00\\00%s\\00\\00\\00")
  (data (i32.const 16) "%s")
  (func (export "_start")
    (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))
    (drop (call $write (i32.const 2) (i32.const 0) (i32.const 1) (i32.const 8)))
    unreachable))
"""
_WRITES = """
(module
  (import "wasi_snapshot_preview1" "path_open"
    (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 64) "%s")
  (func $put (param $name i32) (param $size i32) (param $vector i32)
    (if (call $open (i32.const 6) (i32.const 0) (local.get $name) (local.get $size) (i32.const 9)
          (i64.const 64) (i64.const 64) (i32.const 0) (i32.const 8)) (then unreachable))
    (if (call $write (i32.load (i32.const 8)) (local.get $vector) (i32.const 1) (i32.const 12)) (then unreachable)))
  (func (export "_start") %s))
"""
"""Writes files into /out, the fourth of the sandbox's folders."""
SHEETS = {
    "hostile.json": json.dumps([{"__proto__": HOSTILE, "<img src=x>": 1}, {HOSTILE: [[]], "<img src=x>": 3}]),
    "broken.csv": 'a,b\n1,"2\n',
}
"""What a program leaves to mislead whoever looks at it as a table."""
COUNTS = EXAMPLES / "wordcount-array" / "wordcount.wasm"
FAILS = EXAMPLES / "failing" / "failing.wasm"
UNITS = 5
NOBODY = "0.01/h"
"""A rate that no worker asks."""


class WebMarket:
    """A town with one worker and a keeper, `hearth web` in front of its chain (`direct`) and of `rpc` (`url`)."""

    def __init__(self, place: Town, rpc: WebRpc) -> None:
        self.place, self.rpc = place, rpc
        self._folder = place.home / "jobs"
        self._folder.mkdir()
        self.jobs: dict[str, str] = {}
        """Ids by name."""

    def run(self, *arguments: str) -> Any:
        """Run a command of the town's user with --json and return its report."""
        told = self.place.hearth(*arguments, "--json")
        assert told.code == 0, (arguments, told.out, told.err)
        return told.json

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows of `hearth jobs --all`."""
        found: list[dict[str, Any]] = self.run("jobs", "--all")["jobs"]
        return found

    def post(self, name: str, module: Path = COUNTS, *, rate: str = "1.20/h", more: str = "") -> str:
        """Post a job, whether anybody can take it or not; return its id."""
        path = wasm_file(self._folder / f"{name}.yaml", module, rate=rate, more=more)
        told = self.place.hearth("submit", str(path), "--anyway", "--again", "-q")
        assert told.code == 0, told.out + told.err
        self.jobs[name] = told.out.strip()
        return self.jobs[name]

    def fill(self) -> None:
        """Post jobs of every kind and wait until those that can end have ended."""
        good = self.post("good")
        self.post("failing", FAILS)
        self.post("array", more=f"array: {{units: {UNITS}}}\n")
        self.post("hostile", _shout(self._folder), more=f"env: {{NOTE: {json.dumps(HOSTILE.replace(chr(0), ''))}}}\n")
        self.post("sheets", _writing(self._folder, SHEETS))
        self.post("child", more=f"after: '{good}'\n")
        waiting = self.post("open", rate=NOBODY)
        self.post("blocked", more=f"after: [{{job: '{waiting}', if: always}}]\n")
        self.post("rest", rate=NOBODY, more="array: {units: 3}\n")
        assert self.place.hearth("job", "cancel", self.post("cancelled", rate=NOBODY)).code == 0
        wanted = {self.jobs[name] for name in ("good", "failing", "array", "hostile", "sheets", "child", "cancelled")}

        def ended() -> bool:
            verdicts = {row["job"]: row["verdict"] for row in self.rows()}
            return "pending" not in {verdicts[job] for job in wanted}

        wait(ended, "the jobs end")

    def serve(self, name: str, *options: str) -> str:
        """Start a `hearth web` and return the address that it prints."""
        self.place.start(name, "-m", "hearth.cli", "web", "--port", "0", "--json", *options)
        log = self.place.home / f"{name}.log"
        # Of lines that are whole: what stands behind the last end of one is being written.
        line = wait(lambda: next((one for one in log.read_text().split("\n")[:-1] if one[:1] == "{"), ""), "it serves")
        url: str = json.loads(line)["url"]
        return url


def _shout(folder: Path) -> Path:
    """Write a program that says HOSTILE on both of its streams and traps."""
    said = HOSTILE.encode()
    text = "".join(f"\\{byte:02x}" for byte in said)
    path = folder / "shout.wasm"
    path.write_bytes(wasmtime.wat2wasm(_SHOUT % (f"\\{len(said):02x}", text)))
    return path


def _writing(folder: Path, files: dict[str, str]) -> Path:
    """Write a program that leaves some files."""
    memory, calls = bytearray(), []
    for name, text in files.items():
        (at, size), (data, length) = [(_laid(memory, one), len(one)) for one in (name.encode(), text.encode())]
        vector = _laid(memory, struct.pack("<II", data, length))
        calls.append(f"(call $put (i32.const {at}) (i32.const {size}) (i32.const {vector}))")
    path = folder / "writing.wasm"
    held = "".join(f"\\{byte:02x}" for byte in memory)
    path.write_bytes(wasmtime.wat2wasm(_WRITES % (held, " ".join(calls))))
    return path


def _laid(memory: bytearray, data: bytes) -> int:
    """Put bytes behind those that are in memory, aligned, and return their address."""
    memory.extend(bytes(-len(memory) % 4))
    memory.extend(data)
    return 64 + len(memory) - len(data)


@contextmanager
def web_market(home: Path) -> Iterator[WebMarket]:
    """Run a market with its jobs while the context is open."""
    with town(home) as place, web_rpc(place.url) as rpc:
        place.add_worker()
        place.add_keeper()
        made = WebMarket(place, rpc)
        made.fill()
        yield made
