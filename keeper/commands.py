"""Keep the market moving: hearth keeper list|run|reload|status|bundle|explain."""

from __future__ import annotations

from pathlib import Path

import click

from hearth.cli.leaf import OUT, Leaf, Run
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
    from keeper.report import work_rows

    report = Keeping(run.client, config).list()
    rows = work_rows(report)
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
    from hearth.daemon.logs import configure_logs
    from hearth.daemon.loop import harden
    from keeper.report import profit_text

    configure_logs(False)
    if not run.dry_run:  # a dry run reads no key
        harden()
    report = Keeping(run.client, config).run(cycles=cycles)
    run.out.emit(report, lambda: [profit_text(report, run.client.session.asset)])


@keeper.command("reload", cls=Leaf)
@_CONFIG
def keeper_reload(run: Run, config: Path | None) -> None:
    """Have the running keeper read its keeper.toml again: whole, or not at all."""
    from hearth.cli.output import reload_lines

    report = Keeping(run.client, config).reload()
    run.out.emit(report, lambda: reload_lines(report["applied"], report["restart"]), report["applied"])


@keeper.command("status", cls=Leaf)
@_CONFIG
def keeper_status(run: Run, config: Path | None) -> None:
    """Show what the keeper last said: readiness, profit and loss, what it did."""
    from keeper.report import status_lines

    report = Keeping(run.client, config).status()
    run.out.emit(report, lambda: status_lines(report, run.client.session.asset))


@keeper.command("bundle", cls=Leaf)
@_CONFIG
@click.option("--log", type=click.Path(path_type=Path), help="The keeper's log, whose last lines go in; - is stdin.")
@click.option("--out", type=OUT, help="Write it here; by default it is printed.")
def keeper_bundle(run: Run, config: Path | None, log: Path | None, out: Path | None) -> None:
    """Collect what whoever helps you has to know, with every secret taken out."""
    run.save(lambda: Keeping(run.client, config).bundle(log), out)


@keeper.command("explain", cls=Leaf)
@click.argument("job")
@_CONFIG
def keeper_explain(run: Run, job: str, config: Path | None) -> None:
    """Say what a keeper would do about a job, and why."""
    from keeper.report import explain_lines

    report = Keeping(run.client, config).explain(job)
    run.out.emit(report, lambda: explain_lines(report))
