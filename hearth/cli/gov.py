"""Change the market's defaults: hearth gov status|queue|drop|execute|pause|accept."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click

from hearth.cli.leaf import ActingLeaf, Run
from hearth.cli.root import Group
from hearth.client.views import moment
from hearth.protocol.units import format_duration

if TYPE_CHECKING:
    from hearth.client.reports import ChangeRow, GovAction, Governed


@click.group(cls=Group)
def gov() -> None:
    """Change the market's defaults: late, and in the open."""


def _print_tx(function: Callable[..., Any]) -> Callable[..., Any]:
    text = "Print the transaction, for a Safe or another machine to send."
    return click.option("--print-tx", is_flag=True, help=text)(function)


def change_lines(rows: Iterable[ChangeRow]) -> list[str]:
    """Return a line for each change."""
    return [f"  {row['change'][:14]}  {_when(row)}: {row['text']}" for row in rows]


def _when(row: ChangeRow) -> str:
    if row["state"] == "waiting" and row["ready"] >= row["until"]:
        return f"not before it lapses, {moment(row['until'])}"
    if row["state"] == "waiting":
        return f"from {moment(row['ready'])}"
    if row["state"] == "due":
        return f"now, until {moment(row['until'])}"
    return f"lapsed, {moment(row['until'])}" if row["state"] == "lapsed" else row["state"]


def _governor(what: str, one: Governed, now: int) -> str:
    who = "the Steward" if one["steward"] else f"{one['governor']}, and not the Steward"
    offered = f", offered to {one['offered']}" if one["offered"] else ""
    when = "paused now" if now < one["paused_until"] else "last paused"
    paused = f", {when} until {moment(one['paused_until'])}" if one["paused_until"] else ""
    paused += f", and again from {moment(one['pausable_from'])} at the earliest" if now < one["pausable_from"] else ""
    return f"  {what} are governed by {who}{offered}{paused}"


def _show(run: Run, report: GovAction) -> None:
    if "prepared" in report:
        run.out.emit(report, json.dumps(report["prepared"], indent=2).splitlines)
        return
    change = report.get("change", "")
    line = f"a dry run, nothing was sent: {report['text']}" if report["dry_run"] else report["text"]
    following = [f"next: hearth gov execute {change[:14]}"] if report["action"] == "queue" else []
    # Each transaction was told when it was mined.
    run.out.emit(report, lambda: [line, *following], [change or facts["tx"] for facts in report["transactions"]])


@gov.command("status", cls=ActingLeaf)
def gov_status(run: Run) -> None:
    """Show council, guardian and governors, and the changes that wait or are over."""
    report = run.client.gov.status()

    def text() -> list[str]:
        offered = f", whose seat is offered to {report['offered_council']}" if report["offered_council"] else ""
        waits = [row for row in report["changes"] if row["state"] in ("waiting", "due")]
        over = [row for row in report["changes"] if row not in waits]
        return [
            f"{report['network']}, block {report['block']}, {moment(report['time'])}",
            f"  council {report['council']}{offered}",
            f"  guardian {report['guardian'] or 'none'}",
            _governor("posts", report["posts"], report["time"]),
            _governor("registrations", report["registrations"], report["time"]),
            f"  a change waits {format_duration(report['delay'])}",
            *(["waits", *change_lines(waits)] if waits else ["nothing waits"]),
            *(["is over", *change_lines(over)] if over else []),
            *([f"{report['earlier']} more were queued and are not shown"] if report["earlier"] else []),
        ]

    run.out.emit(report, text, [row["change"] for row in report["changes"] if row["state"] in ("waiting", "due")])


@gov.command("queue", cls=ActingLeaf)
@click.argument("kind", type=click.Choice(["policy", "minimum-stake", "governor", "council", "guardian"]))
@click.argument("values", nargs=-1)
@_print_tx
def gov_queue(run: Run, kind: str, values: tuple[str, ...], print_tx: bool) -> None:
    """Announce a change, as the council; anybody can execute it once its delay is over.

    \b
      policy FIELD=VALUE...           of new jobs: fee_bps=300, ack_time=90s, min_price=0.000002
      minimum-stake AMOUNT            of new registrations
      governor posts ADDRESS          offer the rights over posts, and so over registrations
      council ADDRESS                 offer the council's seat
      guardian ADDRESS                seat a guardian
    In place of an ADDRESS, none takes an offer back, or leaves the guardian's seat empty.
    """
    _show(run, run.client.gov.queue(kind, values, print_tx=print_tx))


@gov.command("drop", cls=ActingLeaf)
@click.argument("change", metavar="CHANGE|previous-policy")
@_print_tx
def gov_drop(run: Run, change: str, print_tx: bool) -> None:
    """Take a queued change back for good, or end the previous policy at once, as council or guardian.

    CHANGE is an id or its beginning, 4 hex digits or more.
    """
    _show(run, run.client.gov.drop(change, print_tx=print_tx))


@gov.command("execute", cls=ActingLeaf)
@click.argument("change")
@_print_tx
def gov_execute(run: Run, change: str, print_tx: bool) -> None:
    """Carry out a change that is due; anybody may.

    CHANGE is an id or its beginning, 4 hex digits or more.
    """
    _show(run, run.client.gov.execute(change, print_tx=print_tx))


@gov.command("pause", cls=ActingLeaf)
@click.argument("what", nargs=-1, metavar="posts|registrations...")
@_print_tx
def gov_pause(run: Run, what: tuple[str, ...], print_tx: bool) -> None:
    """Stop new posts, new registrations or both for 7 days, each once in 30, as council or guardian.

    It asks first; where nobody can be asked, --yes answers.
    """
    _show(run, run.client.gov.pause(what, print_tx=print_tx))


@gov.command("accept", cls=ActingLeaf)
@click.argument("what", nargs=-1, metavar="council|posts|registrations...")
@_print_tx
def gov_accept(run: Run, what: tuple[str, ...], print_tx: bool) -> None:
    """Take the council's seat, or let the Steward take the governor's rights that it was offered."""
    _show(run, run.client.gov.accept(what, print_tx=print_tx))
