"""Fuzz the parsers of strangers' bytes, with coverage of Hearth's own code (make fuzz-parsers).

    python -m tests.fuzz --runs N            N inputs for each parser of bytes, a tenth of JSON, a hundredth of text
    python -m tests.fuzz --record            go on with every parser whose recorded executions are below its aim
    python -m tests.fuzz --keep              put what reaches a line of its own into tests/fuzz/corpus
    python -m tests.fuzz --table             write the record's table into docs/ASSURANCE.md

Each takes names of parsers. A parser runs in a process of its own, in slices; with --record tests/fuzz/record.json is
written after each of them, so that a campaign that is interrupted goes on where it was. A finding ends its parser's
run; the input lies in .build/fuzz.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

from hearth.base.files import replace_text
from tests.fuzz import corpus, lines
from tests.fuzz.target import AIMS, Target, quiet
from tests.fuzz.targets import TARGETS

ROOT: Final = Path(__file__).parents[2]
RECORD: Final = Path(__file__).parent / "record.json"
WORK: Final = ROOT / ".build" / "fuzz"
MAX_LENGTH: Final = 4096
"""Of a generated input; longer ones come in tests/fuzz/test_parsers.py."""
RSS_MIB: Final = 2048
HANG_SECONDS: Final = 60
"""Wall seconds of one input: a busy machine is no hang. The parser's own second is counted in its processor time."""

Row = dict[str, Any]


def read_record() -> dict[str, Row]:
    """Return what was run so far, by parser."""
    rows: dict[str, Row] = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    return rows


def note(name: str, row: Row) -> None:
    """Write one parser's row beside the others as they stand now."""
    rows = read_record() | {name: row}
    replace_text(RECORD, json.dumps(dict(sorted(rows.items())), indent=2) + "\n")


def blank(seed: int) -> Row:
    """Return the row of a parser that was never run."""
    return {"executions": 0, "taken": 0, "seconds": 0, "edges": 0, "findings": 0, "seed": seed, "slices": 0}


def run_slice(target: Target, row: Row, runs: int, seconds: int) -> bool:
    """Run one process of a parser, add what it did to its row, and say whether it found nothing."""
    folder, counter = WORK / target.name, WORK / f"{target.name}.taken"
    corpus.unpack(target, folder)
    counter.write_bytes(b"0 0\n")
    flags = [
        *(f"-runs={runs}", f"-max_total_time={seconds}", f"-seed={row['seed'] + row['slices']}"),
        *(f"-max_len={MAX_LENGTH}", f"-rss_limit_mb={RSS_MIB}", f"-timeout={HANG_SECONDS}", "-print_final_stats=1"),
        "-mutate_depth=1",  # our own mutations change several places at once
        f"-artifact_prefix={WORK}/{target.name}-",
    ]
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.engine", target.name, str(folder), *flags],
        cwd=ROOT,
        env=os.environ | {"HEARTH_FUZZ_TAKEN": str(counter)},
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    said = done.stderr
    ran = [int(number) for number in re.findall(r"number_of_executed_units: (\d+)", said)]
    edges = [int(number) for number in re.findall(r"\bcov: (\d+)", said)]
    taken, counted = map(int, counter.read_text().split())
    row["executions"] += ran[-1] if ran else counted
    row["taken"] += taken
    row["seconds"] += round(time.monotonic() - began)
    row["edges"] = max(row["edges"], *edges) if edges else row["edges"]
    row["slices"] += 1
    if done.returncode == 0:
        return True
    row["findings"] += 1
    print(f"{target.name}: a finding, its input is in {WORK}:\n{said[-3000:]}", flush=True)
    return False


def campaign(names: list[str], aims: dict[str, int], seed: int | None, length: int, *, record: bool) -> int:
    """Run each parser to its aim, in slices of `length` seconds; return how many had a finding."""
    WORK.mkdir(parents=True, exist_ok=True)
    found = 0
    for name in names:
        target, aim = TARGETS[name], aims[name]
        row = (read_record() if record else {}).get(name) or blank(seed or random.SystemRandom().randrange(1, 2**31))
        while row["executions"] < aim:
            clean = run_slice(target, row, aim - row["executions"], length)
            if record:
                note(name, row)
            print(f"{name}: {row['executions']:,} of {aim:,}, {row['edges']} edges, {row['seconds']} s", flush=True)
            if not clean:
                found += 1
                break
    return found


def keep(names: list[str]) -> None:
    """Keep in git, the shortest first, each parser's inputs that reach a line which no other does."""
    for name in names:
        target = TARGETS[name]
        corpus.unpack(target, WORK / name)
        inputs = sorted((path.read_bytes() for path in (WORK / name).iterdir()), key=lambda one: (len(one), one))
        chosen: list[bytes] = []
        seen: set[lines.Line] = set()
        with quiet():
            for data in [*target.seeds(), *inputs]:
                new = lines.reached(target, data) - seen
                seen |= new
                chosen += [data] if new else []
        print(f"{name}: {corpus.keep(target, chosen)} inputs kept", flush=True)


def main() -> int:
    """Run what the arguments ask; exit 1 where a parser has a finding."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", help=f"parsers, all by default: {', '.join(TARGETS)}")
    parser.add_argument("--runs", type=int, help="inputs of each parser of bytes; fewer of JSON and of text")
    parser.add_argument("--seed", type=int, help="to repeat a run; it is in the record, and printed by make")
    parser.add_argument("--record", action="store_true", help="go on with the recorded campaign")
    parser.add_argument("--slice", type=int, default=300, help="seconds of one process")
    parser.add_argument("--keep", action="store_true", help="put what reaches a line of its own into tests/fuzz/corpus")
    parser.add_argument("--table", action="store_true", help="write the record's table into docs/ASSURANCE.md")
    args = parser.parse_args()
    names = args.names or list(TARGETS)
    if unknown := [name for name in names if name not in TARGETS]:
        parser.error(f"no parser is called {unknown[0]}")
    share = 1.0 if args.runs is None else min(1.0, args.runs / AIMS["bytes"])
    aims = {name: max(1, round(share * AIMS[TARGETS[name].kind])) for name in names}
    if args.keep:
        keep(names)
    if args.table:
        from tests.fuzz import table

        table.write(read_record())
    if args.keep or args.table:
        return 0
    return int(campaign(names, aims, args.seed, args.slice, record=args.record) > 0)


if __name__ == "__main__":
    sys.exit(main())
