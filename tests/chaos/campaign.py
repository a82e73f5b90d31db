"""Campaigns against a market of real processes: `python -m tests.chaos.campaign kill --rounds 8 --seed 1 --out FILE`.

Each run appends its records to FILE as JSON Lines: one for every fault, with its seed, moment, evidence and result, and
one for the market as the oracle judged it in the end. `summary FILE...` prints the tables of docs/ASSURANCE.md.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import statistics
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.chaos import alerts, kills, oracle, reorgs, restarts, rpc, soak
from tests.chaos.kills import Kill, Result
from tests.chaos.market import chaos_market

SHM = Path("/dev/shm")


class Book:
    """Where the records of a campaign go."""

    def __init__(self, path: Path, campaign: str, seed: int) -> None:
        self._path, self._campaign, self._seed = path, campaign, seed
        self._began = time.time()

    def write(self, kind: str, **facts: Any) -> None:
        """Append one record."""
        record = {"campaign": self._campaign, "seed": self._seed, "began": int(self._began), "kind": kind, **facts}
        with self._path.open("a") as file:
            file.write(json.dumps(record) + "\n")

    def kill(self, one: Kill) -> None:
        """Append one kill."""
        facts = {"who": one.who, "runtime": one.runtime, "point": one.point, "job": one.job.hex(), "ready": one.ready}
        self.write("kill", **facts, at=round(one.moment, 1), evidence=one.evidence, counts=one.counts)

    def reorg(self, one: reorgs.Reorg) -> None:
        """Append one reorg."""
        facts = {"depth": one.depth, "how": one.kind, "states": dict(one.states), "evidence": one.evidence}
        self.write("reorg", **facts, at=round(one.moment, 1), healed=round(one.seconds, 1))

    def restart(self, one: restarts.Restart) -> None:
        """Append one restart of an engine."""
        facts = {"how": one.how, "job": one.job.hex(), "evidence": one.evidence}
        self.write("restart", **facts, at=round(one.moment, 1), healed=round(one.seconds, 1))

    def verdict(self, facts: oracle.Facts, more: Sequence[str], seconds: float) -> list[str]:
        """Append what the oracle says of a market, and return it."""
        wrong = [*oracle.judge(facts), *more]
        ends = Counter(type(event).__name__ for event in facts.events if isinstance(event, oracle.ENDS))
        slowest = max(facts.ready, default=0.0)
        self.write(
            "verdict",
            jobs=len(facts.posted),
            ends=dict(ends),
            transactions=len(facts.sent),
            races=sum(not one.ok and oracle.lost_race(facts, one) for one in facts.sent),
            slowest_ready=round(slowest, 1),
            seconds=round(seconds),
            wrong=wrong,
        )
        return wrong


def kill_campaign(book: Book, home: Path, options: argparse.Namespace) -> list[str]:
    """Kill workers, keepers and submitters at every named point, `--rounds` times each."""
    wrong: list[str] = []
    points = options.keeper_points.split(",")
    plan = kills.Plan(options.runtimes.split(","), options.rounds, options.lanes, options.seed, points)
    for run in options.of.split(","):
        with chaos_market(home / run) as market:
            result = Result(on_kill=book.kill)
            kills.RUNS[run](market, plan, result)
            left = [f"{lane.name}: {one}" for lane in market.lanes for one in [*lane.sandboxes(), *lane.containers()]]
            ready = [one.ready for one in result.kills if one.ready is not None]
            facts = oracle.gather(market, left=left, ready=ready)
            wrong += book.verdict(facts, [*result.faults, *result.lacking()], result.moment)
    return wrong


def rpc_campaign(book: Book, home: Path, options: argparse.Namespace) -> list[str]:
    """Let the daemons' providers fail and lie for `--minutes`."""
    began = time.monotonic()
    with chaos_market(home) as market:
        pairs, wrong = rpc.run_rpc(market, seconds=60 * options.minutes, seed=options.seed)
        for pair in pairs:
            for who, usage in pair.usages.items():
                book.write("rpc", setup=pair.setup, who=who, told=dict(usage.told), used=dict(usage.used))
        alone = [pair for pair in pairs if len(rpc.SETUPS[pair.setup][0]) == 1]
        stale = [address for pair in alone for address in (pair.lane.operator, pair.keeper.address)]
        facts = oracle.gather(market, race_blocks=2, stale=stale)
        return book.verdict(facts, wrong, time.monotonic() - began)


def reorg_campaign(book: Book, home: Path, options: argparse.Namespace) -> list[str]:
    """Reorganise the chain `--runs` times."""
    began = time.monotonic()
    with chaos_market(home, dead_after=reorgs.DEAD_AFTER) as market:
        wrong = reorgs.run_reorgs(
            market, runs=options.runs, lanes=options.lanes, seed=options.seed, began=began, on_reorg=book.reorg
        )
        # What left the chain is sent again as it was; where the post that it builds on comes back later, it reverts.
        facts = oracle.gather(market, stale=[lane.operator for lane in market.lanes])
        return book.verdict(facts, wrong, time.monotonic() - began)


def engine_campaign(book: Book, home: Path, options: argparse.Namespace) -> list[str]:
    """Kill and restart a container engine `--rounds` times each."""
    began = time.monotonic()
    with chaos_market(home) as market:
        wrong = restarts.run_restarts(market, rounds=options.rounds, seed=options.seed, on_restart=book.restart)
        return book.verdict(oracle.gather(market), wrong, time.monotonic() - began)


def soak_campaign(book: Book, home: Path, options: argparse.Namespace) -> list[str]:
    """Run a market under a fault every 20 s for `--minutes`; a run that is told to end writes what it has."""
    need_program()
    began = time.monotonic()
    with chaos_market(home, dead_after=reorgs.DEAD_AFTER, metrics=True) as market:
        since = time.time()

        def fault(one: soak.Committed) -> None:
            window, lasted = one.window, round(one.window.ended - one.window.began, 1)
            facts = {"of": window.of, "fault": window.fault, "evidence": one.evidence}
            book.write("fault", at=round(window.began - since, 1), lasted=lasted, **facts)

        def used(name: str, facts: Mapping[str, float]) -> None:
            book.write(
                "used", at=round(time.time() - since), who=name, **{what: round(one) for what, one in facts.items()}
            )

        soaked = soak.Soak(options.factor, fault, used)
        whole = False
        try:
            soak.run_soak(market, soaked, seconds=60 * options.minutes, seed=options.seed)
            whole = True
        finally:
            for one in soaked.firings:
                lasted = round(one.ended - one.began, 1)
                book.write("alert", alert=one.alert, of=one.of, at=round(one.began - since, 1), lasted=lasted)
            for name, samples in soaked.samples.items():
                flat = {what: [round(value) for value in soak.figures(values)] for what, values in samples.items()}
                book.write("flat", who=name, samples=len(samples.get("memory", ())), medians=flat)
            seconds = round(time.monotonic() - began)
            book.write("soak", seconds=seconds, factor=options.factor, whole=whole, wrong=soaked.wrong)
        stale = [one for lane in market.lanes for one in (lane.operator, *lane.former)]
        facts = oracle.gather(market, stale=[*stale, *(one.address for one in market.keepers)])
        return book.verdict(facts, soaked.wrong, time.monotonic() - began)


def need_program() -> None:
    """Refuse a run without Prometheus before an hour has gone by. Raises SystemExit."""
    if shutil.which("prometheus") is None:
        sys.exit("a soak needs prometheus on the PATH (Debian: apt-get install prometheus)")


def summary(paths: Sequence[Path]) -> str:
    """Return the tables of the records in some files."""
    records = [json.loads(line) for path in paths for line in path.read_text().splitlines()]
    of: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for record in records:
        of[record["kind"]].append(record)
    parts = (_kills(of["kill"]), _heard(of["rpc"]), _reorgs(of["reorg"]), _restarts(of["restart"]), _soaked(of))
    return "\n".join([line for part in parts for line in part] + [_verdict(one) for one in of["verdict"]])


def _kills(records: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield how many kills count, by daemon and runtime, and how soon the next process was ready."""
    cells: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    ready: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for one in records:
        cells[one["who"], one["runtime"]][one["point"]] += one["counts"]
        if one["ready"] is not None:
            ready[one["who"], one["runtime"]].append(one["ready"])
    yield from (
        "| Killed | Runtime | Points | Kills that count | Fewest a point | Ready again, median and worst |",
        _rule(6),
    )
    for (who, runtime), points in cells.items():
        seconds = sorted(ready[who, runtime])
        times = f"{statistics.median(seconds):.0f} s, {seconds[-1]:.0f} s" if seconds else "-"
        yield f"| {who} | {runtime} | {len(points)} | {points.total()} | {min(points.values())} | {times} |"
    yield f"\n{sum(one['counts'] for one in records)} of {len(records)} kills count.\n"


def _heard(records: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield how many false answers each daemon used."""
    heard: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for one in records:
        heard[one["setup"], one["who"]].update(one["used"])
    yield from ("| Providers | Who | False answers used | The most frequent |", _rule(4))
    for (setup, who), used in heard.items():
        most = ", ".join(f"{name} {count}" for name, count in used.most_common(5))
        yield f"| {setup} | {who} | {used.total():,} | {most} |"
    yield f"\n{sum(used.total() for used in heard.values()):,} false answers were used.\n"


def _reorgs(records: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield how many reorgs there were, and what they met."""
    states: Counter[str] = Counter()
    for one in records:
        states.update(one["states"])
    depths = sorted({one["depth"] for one in records})
    if depths:
        span = f"{len(depths)} depths, {depths[0]} to {depths[-1]}"
        yield f"{len(records)} reorgs of {span}, under units {dict(states)}.\n"


def _restarts(records: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield how often an engine was restarted, in which way, and how soon the unit under it was settled."""
    for how in sorted({one["how"] for one in records}):
        each = [one for one in records if one["how"] == how]
        seconds = sorted(one["healed"] for one in each)
        broke = sum(bool(one["evidence"]) for one in each)
        yield (
            f"{len(each)} engines {how}, {broke} of them with a unit that ran again; settled after "
            f"{statistics.median(seconds):.0f} s in the middle and {seconds[-1]:.0f} s at worst.\n"
        )


def _soaked(of: Mapping[str, Sequence[dict[str, Any]]]) -> Iterator[str]:
    """Yield the faults of soaks, what fired, and what the daemons used: medians of the second and the last third."""
    if not of["fault"]:
        return
    faults: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for one in of["fault"]:
        faults[one["fault"]].append(one)
    yield from ("| Fault | Times, with evidence | Longest | Alerts that it calls for once it lasts |", _rule(4))
    for name, each in sorted(faults.items()):
        longest = max(one["lasted"] for one in each)
        called = ", ".join(alerts.TABLE[name].alerts) or "none"
        yield f"| {name} | {len(each)}, {sum(bool(one['evidence']) for one in each)} | {longest:.0f} s | {called} |"
    yield from ("", "| Alert | Fired | At | Longest |", _rule(4))
    fired: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for one in of["alert"]:
        fired[one["alert"]].append(one)
    for name, each in sorted(fired.items()):
        pairs = ", ".join(sorted({one["of"] for one in each}))
        yield f"| {name} | {len(each)} | {pairs} | {max(one['lasted'] for one in each):.0f} s |"
    yield from ("", "| Daemon that lived through it | Samples | What | Second third, last third |", _rule(4))
    for one in of["flat"]:
        for what, (before, after) in one["medians"].items():
            yield f"| {one['who']} | {one['samples']} | {what} | {before:,}, {after:,} |"
    for one in of["soak"]:
        wrong = "; ".join(one["wrong"]) or "nothing"
        run = "A soak" if one["whole"] else "A soak that was stopped early, and not judged whole,"
        yield f"\n{run} of {one['seconds']} s, rules {one['factor']:g} times as fast; wrong: {wrong}.\n"


def _verdict(one: dict[str, Any]) -> str:
    ends = ", ".join(f"{count} {name}" for name, count in one["ends"].items())
    wrong = Counter(said.partition(":")[0] for said in one["wrong"])
    return (
        f"{one['campaign']}, seed {one['seed']}: {one['jobs']} jobs, {ends}; {one['transactions']} transactions, "
        f"{one.get('races', 0)} lost races; {one['seconds']} s; wrong: {dict(wrong) or 'nothing'}"
    )


def _rule(columns: int) -> str:
    return "|" + "---|" * columns


CAMPAIGNS = {
    "kill": kill_campaign,
    "rpc": rpc_campaign,
    "reorg": reorg_campaign,
    "engine": engine_campaign,
    "soak": soak_campaign,
}


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="campaign", description=(__doc__ or "").partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    kill = commands.add_parser("kill", help="kill -9 at every named point")
    kill.add_argument("--rounds", type=int, default=1, help="kills for each point and runtime")
    kill.add_argument("--keeper-points", default=",".join(kills.KEEPER_POINTS), help="where keepers are killed")
    kill.add_argument("--lanes", type=int, default=2, help="workers of each runtime at the same time")
    kill.add_argument("--runtimes", default="wasm,docker")
    kill.add_argument("--of", default="worker,keeper,submitter")
    heard = commands.add_parser("rpc", help="providers that fail and lie")
    heard.add_argument("--minutes", type=float, default=1.0)
    turned = commands.add_parser("reorg", help="reorgs of depth 1 to 64")
    turned.add_argument("--runs", type=int, default=10)
    turned.add_argument("--lanes", type=int, default=3, help="workers at the same time")
    engines = commands.add_parser("engine", help="a container engine that is killed and restarted")
    engines.add_argument("--rounds", type=int, default=1, help="restarts of each kind")
    soaks = commands.add_parser("soak", help="a fault every 20 seconds, and flat memory, descriptors, threads and disk")
    soaks.add_argument("--minutes", type=float, default=10.0)
    soaks.add_argument("--factor", type=float, default=4.0, help="how many times as fast the alert rules run")
    for command in (kill, heard, turned, engines, soaks):
        command.add_argument("--seed", type=int, default=1)
        command.add_argument("--out", type=Path, default=Path(".build/chaos.jsonl"))
    shown = commands.add_parser("summary", help="the tables of docs/ASSURANCE.md")
    shown.add_argument("files", type=Path, nargs="+")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one campaign; 0 where the oracle found nothing wrong."""
    options = _options(argv)
    if options.command == "summary":
        print(summary(options.files))
        return 0
    # Whoever is told to end closes his market first.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    options.out.parent.mkdir(parents=True, exist_ok=True)
    book = Book(options.out.resolve(), options.command, options.seed)
    with tempfile.TemporaryDirectory(prefix="hearth-chaos-", dir=SHM if SHM.is_dir() else None) as folder:
        wrong = CAMPAIGNS[options.command](book, Path(folder) / "market", options)
    for one in wrong:
        print(one)
    print(f"{len(wrong)} things are wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
