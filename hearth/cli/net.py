"""Look at the whole market: hearth net status|workers|jobs|params|events|verify."""

from __future__ import annotations

import json
from pathlib import Path

import click

from hearth.base.errors import ChainError, HearthError, StorageError, WaitTimeout
from hearth.cli.gov import change_lines
from hearth.cli.jobs import STATE_HELP, show_jobs
from hearth.cli.leaf import NEW_FILE, Leaf, Run
from hearth.cli.output import event_line, table
from hearth.cli.root import Group
from hearth.client.views import moment, node_words
from hearth.protocol.units import format_duration


@click.group(cls=Group)
def net() -> None:
    """Look at the whole market."""


@net.command("status", cls=Leaf)
def net_status(run: Run) -> None:
    """Show whether the network is alive, what it holds, and how much work there is."""
    report = run.client.net.status()

    def text() -> list[str]:
        workers, units = report["workers_text"] or "none", report["units_text"] or "none"
        pause = f"; new posts are paused until {moment(report['paused_until'])}" if report["posts_paused"] else ""
        here, before = report["chain_id"], report["deployed_chain_id"]
        changed = f" (it was {before} at deployment: nobody can post)" if here != before else ""
        return [
            f"{report['network']}, chain {here}{changed}, block {report['block']}",
            f"  workers: {workers}; {report['busy']} of {report['slots']} slots busy",
            f"  {report['jobs']} jobs; units: {units}",
            f"  Escrow holds {report['escrow_text']}{pause}",
        ]

    run.out.emit(report, text)


@net.command("workers", cls=Leaf)
def net_workers(run: Run) -> None:
    """List every node with its status."""
    report = run.client.net.workers()
    rows = [
        (
            row["node"],
            node_words(row),
            row["ask_text"],
            f"{row['busy']}/{row['slots']}",
            row["stake_text"],
            f"{row['reputation_bps'] / 100:.0f} %",
            row["zone"],
            row["owner"],
        )
        for row in report["workers"]
    ]
    head = ("node", "status", "ask", "busy", "stake", "reputation", "zone", "owner")
    run.out.emit(report, lambda: table(head, rows) or ["no nodes: hearth worker register"], [row[0] for row in rows])


@net.command("jobs", cls=Leaf)
@click.option("--state", metavar="STATE", help=STATE_HELP)
def net_jobs(run: Run, state: str | None) -> None:
    """List everybody's jobs."""
    show_jobs(run, run.client.net.jobs(state=state))


@net.command("params", cls=Leaf)
def net_params(run: Run) -> None:
    """Show the parameters of new jobs and nodes."""
    report = run.client.net.params()

    def text() -> list[str]:
        parts = (("new jobs", report["policy"]), ("nodes", report["nodes"]), ("contracts", report["contracts"]))
        paused = [f"posts: paused until {moment(report['paused_until'])}"] if report["posts_paused"] else []
        lines = [
            line
            for title, rows in parts
            for line in (title, *(f"  {name}: {report['text'].get(name, value)}" for name, value in rows.items()))
        ]
        queued = ["changes that are queued", *change_lines(report["queued"])] if report["queued"] else []
        return [*paused, *lines, *queued]

    run.out.emit(report, text)


@net.command("events", cls=Leaf)
@click.option("--from", "first", type=click.IntRange(0), help="The first block.")
@click.option("--limit", type=click.IntRange(1), default=1_000, show_default=True, help="At most this many.")
def net_events(run: Run, first: int | None, limit: int) -> None:
    """Print the market's events; with --json one line each."""
    for facts in run.client.net.events(first=first, limit=limit)["events"]:
        run.out.line(facts, f"block {facts['block']}  {facts['event']}  {event_line(facts)}")


@net.command("verify", cls=Leaf)
def net_verify(run: Run) -> int:
    """Replay all events: every credit, lock, unit and result must be what the contracts and stores hold."""
    report = run.client.net.verify()
    error: HearthError | None = None
    if "strays" in report:
        error = ChainError(
            f"the books are doubtful: {report['strays']['count']} logs have no place in them, the first is "
            f"{report['strays']['first'][0]}",
            hint="hearth net verify --rpc URL asks another provider",
            code="RPC_LIES",
        )
    elif "unproven" in report:
        error = ChainError(
            f"how {', '.join(report['unproven'])} was created is not known: the books hold, and nothing says what else "
            "its deployer wrote into it",
            hint="name each creating transaction under creations in the network file: networks/README.md",
            code="NOT_PROVEN",
        )
    elif "unverified" in report:
        count, limit = report["unverified"], run.client.session.settings.timeout
        error = WaitTimeout(
            f"{count} results are not verified: {limit} s were too short; the books are verified",
            hint=f"hearth net verify --timeout {format_duration(10 * limit)}",
            component="net",
        )
    elif "unread" in report:
        error = StorageError(
            f"results cannot be read, the first of {report['unread'][0]}",
            hint="hearth doctor",
            code="RESULTS_INCOMPLETE",
        )
    if error is not None:
        report = {**report, **error.as_dict()}
    run.out.emit(report, lambda: [json.dumps(report)])
    status = run.out.after(error)
    return status if report["solvent"] else 1


@net.command("snapshot", cls=Leaf)
@click.option("--out", metavar="FILE", type=NEW_FILE, help="Write it there, else into this folder.")
def net_snapshot(run: Run, out: Path | None) -> None:
    """Write the market's logs up to a final block into a new file, which a page checks and begins from."""
    report = run.client.net.snapshot(out)
    did = "would hold" if report["dry_run"] else "holds"
    text = f"{report['file']} {did} {report['logs']} logs up to block {report['block']}, {report['bytes']} bytes"
    run.out.emit(report, lambda: [text], [report["file"]])
