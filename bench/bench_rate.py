"""Measure the market's rate: `make bench-rate` writes bench/results/rate.json and a part of docs/PROVIDER.md.

Real processes: a local chain with a block a second, three workers of two slots and a keeper, each behind a provider of
its own that counts what it is asked. Once nothing is to do, once with an array for nodes on probation, and once with an
array for nodes that are seasoned: their words are set so, as after five units that paid the market a full fee each. The
market's amounts and times are the devnet's but for `dead_after`, which is the public one: a beat every five minutes.

A unit of the arrays sleeps a second. In the sandbox that takes no second: the program's clock jumps. So what is
measured is the market and the worker, and not how many processors this machine has. Times are reported, never asserted.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import click
import wasmtime

from bench.bench_match import machine
from bench.counting import Counting
from bench.sections import write_part
from hearth.jobfile import Blob
from hearth.market.events import Finished, Settled, Started
from hearth.market.profiles import PUBLIC
from hearth.protocol.types import JobId
from tests.chaos.market import ChaosMarket
from tests.kit.exchange import Scenario
from tests.kit.running import Process, start_python, wait

OUT: Final = Path(__file__).parent / "results" / "rate.json"
PAGE: Final = Path(__file__).parents[1] / "docs" / "PROVIDER.md"
WORKERS: Final = 3
SLOTS: Final = 2
UNITS: Final = 200
FRESH_UNITS: Final = 18
"""Of a node on probation, which holds one lease at a time until its result was to be looked at."""
IDLE_BLOCKS: Final = 20
AIM_RATE: Final = 300
AIM_CALLS: Final = 12
_ENDS: Final = ("finish", "submit")
LOOK: Final = 0.02
"""Seconds between two looks at the newest block."""

PROGRAM: Final = """
(module
  (import "wasi_snapshot_preview1" "path_open"
    (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_prestat_dir_name" (func $name (param i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 64) "result")
  (data (i32.const 80) "\\80\\00\\00\\00\\02\\00\\00\\00")
  (data (i32.const 128) "ok")
  (func (export "_start") (local $fd i32)
    ;; sleep: one subscription to the monotonic clock, SECOND nanoseconds from now
    (i32.store (i32.const 272) (i32.const 1))
    (i64.store (i32.const 280) (i64.const 1000000000))
    (if (call $poll (i32.const 256) (i32.const 320) (i32.const 1) (i32.const 384)) (then unreachable))
    ;; /out is the preopened folder whose name has the letter o in second place
    (local.set $fd (i32.const 3))
    (block $found (loop $next
      (drop (call $name (local.get $fd) (i32.const 96) (i32.const 4)))
      (br_if $found (i32.eq (i32.load8_u (i32.const 97)) (i32.const 111)))
      (local.set $fd (i32.add (local.get $fd) (i32.const 1)))
      (br $next)))
    (if (call $open (local.get $fd) (i32.const 0) (i32.const 64) (i32.const 6) (i32.const 9)
          (i64.const 64) (i64.const 64) (i32.const 0) (i32.const 112)) (then unreachable))
    (if (call $write (i32.load (i32.const 112)) (i32.const 80) (i32.const 1) (i32.const 116)) (then unreachable))))
"""
"""Sleeps a second, then writes "ok" to /out/result."""


@dataclass
class Watched:
    """A process of the market, and the provider that it asks."""

    name: str
    process: Process
    provider: Counting

    def seconds(self) -> float:
        """Return the processor time of the process and of its children that have ended, user and system."""
        # The name of the program, in brackets, may hold spaces; utime to cstime are fields 14 to 17 of proc(5).
        after = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return sum(map(int, after[11:15])) / os.sysconf("SC_CLK_TCK")

    def peak(self) -> float:
        """Return the most memory that the process itself has had resident, in MiB."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


class Blocks:
    """When each block was there, by the wall clock of this machine."""

    def __init__(self, market: ChaosMarket) -> None:
        self.came: dict[int, float] = {}
        self._market = market
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        while not self._stop.wait(LOOK):
            number = int(self._market.chain.rpc("eth_blockNumber"), 16)
            self.came.setdefault(number, time.time())

    def close(self) -> None:
        """Look no more."""
        self._stop.set()
        self._thread.join()


class Rig:
    """The market that is measured."""

    def __init__(self, home: Path) -> None:
        self.market = ChaosMarket(home, dead_after=PUBLIC.node_parameters.dead_after)
        self.blocks = Blocks(self.market)
        program = home / "sleeps.wasm"
        program.write_bytes(wasmtime.wat2wasm(PROGRAM))
        entry = self.market.store.add_path(program)
        self.module = Blob(cid=str(entry.cid), size=entry.size)
        self.nodes = [self._node(f"worker-{number}") for number in range(1, WORKERS + 1)]
        self.watched = [self._start_worker(node) for node in self.nodes]
        self.watched.append(self._start_keeper())

    def _node(self, name: str) -> Scenario:
        """Register a node, whose worker takes the program of the others too."""
        made = self.market.scenario(name, slots=SLOTS, stake=100)
        config = made.home / "worker.toml"
        config.write_text(config.read_text().replace(made.module.cid, self.module.cid))
        made.module = self.module
        return made

    def _start_worker(self, node: Scenario) -> Watched:
        provider = Counting(self.market.url)
        config = node.home / "worker.toml"
        config.write_text(config.read_text().replace(self.market.url, provider.url))
        node.start(fresh=True)
        assert node.process is not None
        return Watched(node.name, node.process, provider)

    def _start_keeper(self) -> Watched:
        provider = Counting(self.market.url)
        keeper = self.market.keeper(poll=0.2, rpc=(provider.url,))
        arguments = ("-m", "keeper", "--json", "--config", str(keeper.home / "keeper.toml"))
        process = start_python(keeper.home / "log", *arguments, HEARTH_HOME=str(self.market.user_home))
        return Watched("keeper", process, provider)

    def close(self) -> None:
        """Stop everything."""
        for one in self.watched:
            one.process.terminate()
        for one in self.watched:
            one.process.wait(30)
            one.provider.close()
        self.blocks.close()
        self.market.close()

    # ---- what is measured ----

    @contextmanager
    def measured(self, found: dict[str, Any]) -> Iterator[None]:
        """Note what the processes were asked for and took while the context was open."""
        calls = [Counter(one.provider.calls) for one in self.watched]
        requests = [one.provider.requests for one in self.watched]
        seconds = [one.seconds() for one in self.watched]
        first, began = self.market.chain.head().number, time.monotonic()
        yield
        blocks = found["blocks"] = self.market.chain.head().number - first
        found["seconds"] = round(time.monotonic() - began, 1)
        found["processes"] = []
        for one, before, asked, used in zip(self.watched, calls, requests, seconds, strict=True):
            more = Counter(one.provider.calls)
            more.subtract(before)
            found["processes"].append(
                {
                    "name": one.name,
                    "calls_a_block": round(more.total() / blocks, 1),
                    "requests_a_block": round((one.provider.requests - asked) / blocks, 1),
                    "processor_seconds": round(one.seconds() - used, 1),
                    "peak_mib": round(one.peak()),
                    "calls": {method: count for method, count in more.most_common() if count},
                }
            )

    def idle(self) -> dict[str, Any]:
        """Measure a market without work."""
        found: dict[str, Any] = {}
        with self.measured(found):
            until = self.market.chain.head().number + IDLE_BLOCKS
            wait(lambda: self.market.chain.head().number >= until, "blocks come")
        return found

    def array(self, units: int, *, newcomers: bool) -> dict[str, Any]:
        """Measure an array until its last unit is paid."""
        found: dict[str, Any] = {"units": units}
        with self.measured(found):
            job = self.nodes[0].post(units=units, newcomers=newcomers)
            posted = self.market.chain.head().timestamp
            wait(lambda: len(self.ends(job)) == units, f"{units} units are paid", 400)
        ends = self.ends(job)
        last = max(self.market.chain.block(number).timestamp for number in ends.values())  # type: ignore[union-attr]
        found["units_a_minute"] = round(60 * units / max(1, last - posted), 1)
        found["ended_by"] = dict(Counter(type(one).__name__ for one in self._events(job, Finished, Settled)))
        found["claims"] = sum(
            self.market.transactions_of(node.operator, "claim", self._first(job)) for node in self.nodes
        )
        found["timeline_ms"] = self.timeline(job, ends)
        return found

    def _events(self, job: JobId, *kinds: type) -> list[Any]:
        return [one for one in self.market.logs() if isinstance(one, kinds) and getattr(one, "job_id", None) == job]

    def _first(self, job: JobId) -> int:
        return min(int(one.log.block_number) for one in self._events(job, Started))

    def ends(self, job: JobId) -> dict[int, int]:
        """Return the block in which each unit was paid, by its index."""
        return {one.index: one.log.block_number for one in self._events(job, Finished, Settled)}

    def timeline(self, job: JobId, ends: dict[int, int]) -> dict[str, int]:
        """Return the median of each step of a unit, in ms, from the block with its lease to the block that ends it."""
        leased = {one.index: one.log.block_number for one in self._events(job, Started)}
        lives = [
            [self.blocks.came[leased[index]], *steps, self.blocks.came[ends[index]]]
            for node in self.nodes
            for index, steps in self._steps(node, job)
            if index in ends
        ]
        names = ("seen and begun", "inputs here", "program starts", "program ended", "result stored", "sent", "mined")
        waits = [statistics.median(life[i + 1] - life[i] for life in lives) for i in range(len(names))]
        return {name: round(1_000 * seconds) for name, seconds in zip(names, waits, strict=True)}

    def _steps(self, node: Scenario, job: JobId) -> Iterator[tuple[int, list[float]]]:
        """Yield the units that a worker has ended, with the seconds of its steps by the wall clock."""
        begun: dict[int, float] = {}
        sent: dict[int, float] = {}
        for line in node.log().splitlines():
            said = json.loads(line) if line.startswith("{") else {}
            if said.get("event") == "attempt starts" and job.hex() in said["attempt"]:
                begun[int(said["attempt"].split("-")[1])] = _second(said)
            elif said.get("event") == "sent" and job.hex() in said["key"] and said["key"].startswith(_ENDS):
                sent[int(re.split("[-/]", said["key"].partition(job.hex())[2])[1])] = _second(said)
        with sqlite3.connect(f"file:{node.home / 'state' / 'work.db'}?mode=ro", uri=True) as db:
            rows = db.execute("SELECT idx, moment, at FROM moments WHERE job = ? ORDER BY id", (job,)).fetchall()
        reached = {(index, moment): at for index, moment, at in rows}
        for index in begun.keys() & sent.keys():
            inner = [reached.get((index, name)) for name in ("m3.fetched", "m4.started", "m5.result", "m6.pinned")]
            if None not in inner:
                yield index, [begun[index], *inner, sent[index]]  # type: ignore[list-item]


def _second(said: dict[str, Any]) -> float:
    return datetime.fromisoformat(said["timestamp"]).timestamp()


def measure(home: Path, units: int, fresh_units: int) -> dict[str, Any]:
    """Measure a market under a folder: idle, with nodes on probation, with seasoned ones."""
    rig = Rig(home)
    try:
        for node in rig.nodes:
            node.working()
            number = node.node
            wait(lambda number=number: bool(rig.market.market.node(number).state.beat), f"{node.name} beats")  # type: ignore[misc]
        results: dict[str, Any] = {"idle": rig.idle()}
        print(json.dumps(results["idle"]), file=sys.stderr)
        results["fresh"] = rig.array(fresh_units, newcomers=True)
        print(json.dumps(results["fresh"]), file=sys.stderr)
        for node in rig.nodes:
            node.season()
        results["seasoned"] = rig.array(units, newcomers=False)
        print(json.dumps(results["seasoned"]), file=sys.stderr)
        return results
    finally:
        rig.close()


def said(results: dict[str, Any]) -> str:
    """Return the part of the page."""
    here, seasoned = results["machine"], results["seasoned"]
    lines = [
        "",
        f"{WORKERS} workers of {SLOTS} slots and a keeper on a local chain with a block a second, an array of "
        f"{seasoned['units']} units that",
        "sleep a second each (in the sandbox the program's clock jumps, so that no processor and no time is spent on "
        "it).",
        f"Taken on {here['cores']} cores ({here['processor']}), which the chain and all processes share; "
        "`bench/results/rate.json` has every call.",
        "",
        "| nodes | units a minute | RPC calls a block: a worker | the keeper | a worker's processor | its memory |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for name, title in (("seasoned", "seasoned"), ("fresh", "on probation"), ("idle", "without work")):
        one = results[name]
        workers, keeper = one["processes"][:-1], one["processes"][-1]
        calls = statistics.mean(row["calls_a_block"] for row in workers)
        share = statistics.mean(row["processor_seconds"] for row in workers) / one["seconds"]
        lines.append(
            f"| {title} | {one.get('units_a_minute', '')} | {calls:.1f} | {keeper['calls_a_block']} | {share:.0%} | "
            f"{max(row['peak_mib'] for row in workers)} MiB |"
        )
    steps = ", ".join(f"{name} {ms} ms" for name, ms in seasoned["timeline_ms"].items())
    pace = seasoned["units"] / seasoned["blocks"] / WORKERS / SLOTS
    asked = sum(sum(row["calls"].values()) for row in seasoned["processes"][:-1]) / seasoned["units"]
    lines += [
        "",
        f"A unit of a seasoned node, from the block with its lease to the block that pays it: {steps}.",
        f"It takes a worker {asked:.0f} calls, and here {seasoned['claims']} claims for {seasoned['units']} units. "
        "A result and the claim of the next unit are",
        f"one call, so a slot ends one unit a block at most: here {pace:.2f}. {limit(seasoned)}",
        f"Aimed for were {AIM_RATE} units a minute at {AIM_CALLS} calls a block.",
        "",
    ]
    return "\n".join(lines) + "\n"


def limit(seasoned: dict[str, Any]) -> str:
    """Say what kept the rate down, by what a unit's steps took: all but the wait for the block that pays it is work."""
    steps = seasoned["timeline_ms"]
    work, block = sum(steps.values()) - steps["mined"], 1_000 * seasoned["seconds"] / seasoned["blocks"]
    if work < block:
        return f"Of the {block:.0f} ms of a block a unit needs {work}: the rest is waiting, so blocks are the limit."
    return f"A unit needs {work} ms, more than the {block:.0f} of a block: this machine is the limit."


@click.command()
@click.option("--units", default=UNITS, show_default=True, help="Units of the array for seasoned nodes.")
@click.option("--fresh-units", default=FRESH_UNITS, show_default=True, help="Units of the array for fresh ones.")
@click.option("--out", type=click.Path(path_type=Path), default=OUT, show_default=True)
@click.option("--page/--no-page", default=True, help="Write the part of docs/PROVIDER.md.")
def main(units: int, fresh_units: int, out: Path, page: bool) -> None:
    """Measure the market's rate and write the results."""
    with tempfile.TemporaryDirectory() as folder:
        results = {"schema": "hearth.bench.rate/1", "machine": machine(), **measure(Path(folder), units, fresh_units)}
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    if page:
        write_part(PAGE, "rate", said(results))


if __name__ == "__main__":
    main()
