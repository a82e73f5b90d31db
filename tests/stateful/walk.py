"""Walk the market's machine for a million steps, and remember how far it came (make walk).

    python -m tests.stateful.walk --steps 500000 --seed 1     as many steps on each asset, at the same time
    python -m tests.stateful.walk --table                     write the record's table into docs/ASSURANCE.md

Each asset walks in a process of its own, by histories of 120 steps whose numbers follow from the seed, so that each is
played again by its number. tests/stateful/walk.json is written after every 25 of them: a walk that is interrupted goes
on where it was, as long as seed, contracts, model and machine are the same. The first difference between chain and
model ends it, with the history and the step.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import signal
import sys
import time
from collections import Counter
from hashlib import sha256
from pathlib import Path
from queue import Empty
from typing import Any, Final

from bench.sections import write_part
from hearth.base.files import replace_text
from hearth.protocol.types import State
from tests.stateful.test_market import STEPS, MarketMachine, Tally, play, shortcomings

ROOT: Final = Path(__file__).parents[2]
RECORD: Final = Path(__file__).parent / "walk.json"
PAGE: Final = ROOT / "docs" / "ASSURANCE.md"
ASSETS: Final = {"native": False, "erc20": True}
SLICE: Final = 25
"""Histories between two writings of the record."""
SPREAD: Final = 10**9
"""Histories that one seed names."""
LEAST: Final = 200
"""How often each rule, move and ending has to be seen: ten times what CI asks for; `make fuzz` asks for 1,000."""
_COUNTS: Final = ("attempted", "succeeded", "refused", "checkpoints", "finished")


def digest() -> str:
    """Return a hash of what walks: contracts, reference, model and machine."""
    found = sha256()
    folders = ("contracts", "hearth/protocol", "tests/kit", "tests/stateful")
    for path in sorted(path for folder in folders for path in (ROOT / folder).rglob("*")):
        if path.suffix in (".py", ".vy", ".vyi") and path != Path(__file__):
            found.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes())
    return found.hexdigest()


def row_of(tally: Tally, histories: int, seconds: float, fault: str | None = None) -> dict[str, Any]:
    """Return a tally as JSON has it."""
    return {
        "histories": histories,
        "steps": histories * STEPS,
        "seconds": round(seconds, 1),
        "fault": fault,
        **{name: dict(sorted(getattr(tally, name).items())) for name in _COUNTS},
        "visits": {f"{a.name} {b.name}": count for (a, b), count in sorted(tally.visits.items())},
        "endings": tally.endings,
        "longest_ending": tally.longest_ending,
    }


def tally_of(row: dict[str, Any]) -> Tally:
    """Return what a row says."""
    tally = Tally()
    for name in _COUNTS:
        setattr(tally, name, Counter(row.get(name, {})))
    moves = ((move.split(), count) for move, count in row.get("visits", {}).items())
    tally.visits = Counter({(State[a], State[b]): count for (a, b), count in moves})
    tally.endings, tally.longest_ending = row.get("endings", 0), row.get("longest_ending", 0)
    return tally


def walk(asset: str, seed: int, row: dict[str, Any], steps: int, told: Any) -> None:
    """Play histories from where a row stands until it has `steps`, and send each new row to `told`, a queue."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    tally = tally_of(row)
    machine = type("Machine", (MarketMachine,), {"erc20": ASSETS[asset], "tally": tally})
    histories, before, began = row.get("histories", 0), row.get("seconds", 0.0), time.monotonic()
    while histories * STEPS < steps:
        try:
            play(machine(), seed * SPREAD + histories)
        except Exception as error:  # noqa: BLE001 - whatever ends a history is what a walk looks for
            fault = f"{error!r}; {'; '.join(getattr(error, '__notes__', ()))}"
            told.put((asset, row_of(tally, histories, before + time.monotonic() - began, fault)))
            return
        histories += 1
        if not histories % SLICE or histories * STEPS >= steps:
            told.put((asset, row_of(tally, histories, before + time.monotonic() - began)))


def read_record() -> dict[str, Any]:
    """Return the record as it stands, {} for none."""
    found: dict[str, Any] = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    return found


def run(steps: int, seed: int) -> int:
    """Walk on both assets, write the record as it grows, and return the exit status."""
    record = read_record()
    if (record.get("digest"), record.get("seed")) != (digest(), seed):
        record = {"digest": digest(), "seed": seed, "assets": {}}
    told: Any = multiprocessing.Queue()
    rows = record["assets"]
    walkers = [
        multiprocessing.Process(target=walk, args=(asset, seed, rows.get(asset, {}), steps, told)) for asset in ASSETS
    ]
    for walker in walkers:
        walker.start()
    try:
        while any(walker.is_alive() for walker in walkers) or not told.empty():
            try:
                asset, row = told.get(timeout=1.0)
            except Empty:
                continue
            rows[asset] = row
            replace_text(RECORD, json.dumps(record, indent=1) + "\n")
            print(f"{asset}: {row['steps']:,} steps in {row['seconds']:,.0f} s{_said(row)}", flush=True)
    except KeyboardInterrupt:
        print("stopped: the same command goes on")
    finally:
        for walker in walkers:
            walker.terminate()
            walker.join()
    faults = [row["fault"] for row in rows.values() if row["fault"]]
    short = [said for row in rows.values() for said in shortcomings(tally_of(row), LEAST)] if _done(rows, steps) else []
    for line in (*faults, *short):
        print(line)
    return 1 if faults or short or not _done(rows, steps) else 0


def _done(rows: dict[str, Any], steps: int) -> bool:
    return all(rows.get(asset, {}).get("steps", 0) >= steps for asset in ASSETS)


def _said(row: dict[str, Any]) -> str:
    return f", ended by {row['fault']}" if row["fault"] else ""


def table() -> str:
    """Return the part of docs/ASSURANCE.md that the record fills."""
    record = read_record()
    rows = [(asset, row, tally_of(row)) for asset, row in record["assets"].items()]
    lines = [
        f"Seed {record['seed']}, histories of {STEPS} steps, each compared with the model after every step; "
        "`make walk` goes on from `tests/stateful/walk.json`.",
        "",
        "| asset | steps | histories | seconds | differences | rarest rule | rarest move | calls to an end |",
        "|---|---:|---:|---:|---:|---|---|---:|",
    ]
    for asset, row, tally in rows:
        rates = {name: tally.succeeded[name] / count for name, count in tally.attempted.items()}
        rule = min(rates, key=lambda name: rates[name])
        a, b = min(tally.visits, key=lambda move: tally.visits[move])
        lines.append(
            f"| {asset} | {row['steps']:,} | {row['histories']:,} | {row['seconds']:,.0f} | {int(bool(row['fault']))} "
            f"| `{rule}`: {rates[rule]:.0%} of {tally.attempted[rule]:,} succeed "
            f"| {a.name} to {b.name}: {tally.visits[a, b]:,} | {tally.longest_ending} at most |"
        )
    seen = sum((tally.visits for _, _, tally in rows), Counter[tuple[State, State]]())
    refused = sum((tally.refused for _, _, tally in rows), Counter[str]())
    lines += [
        "",
        "```text",
        "Moves: " + ", ".join(f"{a.name} to {b.name} {count:,}" for (a, b), count in sorted(seen.items())) + ".",
        "```",
        "",
        f"{sum(refused.values()):,} calls were refused, for {len(refused)} pairs of rule and reason.",
    ]
    return "\n".join(lines) + "\n"


def main(argv: list[str]) -> int:
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.stateful.walk", description="Walk the market's machine.")
    parser.add_argument("--steps", type=int, default=500_000, help="on each asset")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--table", action="store_true", help="write the table only")
    options = parser.parse_args(argv)
    status = 0 if options.table else run(options.steps, options.seed)
    if RECORD.exists():
        write_part(PAGE, "walk", table(), command="make walk")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
