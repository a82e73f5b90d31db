"""Keep the market moving: hearth keeper list|run|status|explain."""

from __future__ import annotations

import json
from pathlib import Path

import click

from hearth.cli.leaf import Leaf, Run
from hearth.cli.output import table
from hearth.cli.root import Group
from keeper.manage import Keeping

_CONFIG = click.option(
    "--config", type=click.Path(dir_okay=False, path_type=Path), help="A keeper.toml; by default this account's own."
)


@click.group(cls=Group)
def keeper() -> None:
    """Keep the market moving, and be paid for it."""


@keeper.command("list", cls=Leaf)
@_CONFIG
def keeper_list(run: Run, config: Path | None) -> None:
    """List the work that there is for a keeper now."""
    report = Keeping(run.client, config).list()
    rows = [(row["does"], ", ".join(row["ids"])[:60], row["earns_text"]) for row in report["work"]]
    run.out.emit(
        report,
        lambda: table(("does", "what", "earns"), rows) or [f"nothing to do; {len(report['waiting'])} units wait"],
        [name for row in report["work"] for name in row["ids"]],
    )


@keeper.command("run", cls=Leaf)
@_CONFIG
@click.option("--cycles", type=click.IntRange(1), help="Stop after this many blocks.")
def keeper_run(run: Run, config: Path | None, cycles: int | None) -> None:
    """Run a keeper until it is told to stop."""
    import logging
    import sys

    import structlog

    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    report = Keeping(run.client, config).run(cycles=cycles)
    run.out.emit(report, lambda: [f"profit {report['profit_and_loss']['profit']} {report['profit_and_loss']['asset']}"])


@keeper.command("status", cls=Leaf)
@_CONFIG
def keeper_status(run: Run, config: Path | None) -> None:
    """Show what the keeper last said: readiness, profit and loss, what it did."""
    report = Keeping(run.client, config).status()

    def text() -> list[str]:
        books = report["profit_and_loss"]
        ready = "ready" if report["ready"] else f"not ready: {report['why']}"
        return [
            f"keeper {report['account']} at block {report['block']}, {report['age']} s ago: {ready}",
            f"  rewards {books['rewards']}, gas {books['gas']}, profit {books['profit']} base units",
            f"  mined {json.dumps(books['mined'])}; {report['jobs']} jobs, {report['nodes_ready']} nodes ready",
        ]

    run.out.emit(report, text)


@keeper.command("explain", cls=Leaf)
@click.argument("job")
@_CONFIG
def keeper_explain(run: Run, job: str, config: Path | None) -> None:
    """Say what a keeper would do about a job, and why."""
    report = Keeping(run.client, config).explain(job)

    def text() -> list[str]:
        fits = ", ".join(f"{count} {gate}" for gate, count in report["nodes"].items()) or "no live node"
        return [f"nodes: {fits}", *(f"{row['id'][-20:]}: {row['does']}, {row['why']}" for row in report["keeper"])]

    run.out.emit(report, text)
