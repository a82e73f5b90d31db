"""hearth job explain: what a wallet is asked to sign, on another machine than the one that asks."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from hearth.base.errors import UsageError
from hearth.base.files import read_bounded
from hearth.cli.leaf import Leaf, Run

if TYPE_CHECKING:
    from hearth.client.reports import ExplainedCall, Explanation

_HINT: Final = "give the data that the wallet shows, as 0x and hex digits, or a file that --print-tx wrote"


@click.command("explain", cls=Leaf)
@click.argument("call", metavar="0xDATA|FILE|-")
def job_explain(run: Run, call: str) -> None:
    """Say what a wallet is asked to sign: its data as 0x and hex digits, a file of --print-tx, or - for stdin.

    \b
    It reads the data and the network file, and asks no chain. Compare what it says with the page: the hash is of the
    whole data; the four words are of the job.
    """
    from hearth.client.explain.explaining import explain

    text = call if call.startswith("0x") else read_text(call, _HINT)
    report = explain(text, run.client.session.network)
    hashes = [one["data_hash"] for one in report["calls"]]
    run.out.emit(report, lambda: list(_lines(report)), hashes)


def read_text(name: str, hint: str) -> str:
    """Return the text of a file, or of stdin for "-". Raises UsageError BAD_TX with this hint."""
    from hearth.client.explain.explaining import MOST_TEXT

    try:
        raw = sys.stdin.buffer.read(MOST_TEXT + 1) if name == "-" else read_bounded(Path(name), MOST_TEXT)
        return raw.decode()
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise UsageError(f"{name} cannot be read: {why}", hint=hint, code="BAD_TX") from error


def _lines(report: Explanation) -> Iterator[str]:
    from hearth.client.explain.explaining import lines_of, rows_of

    for place, one in enumerate(report["calls"]):
        if place:
            yield ""
        yield from lines_of(one["what"], [*rows_of(one), *_rows(one, report)])


def _rows(one: ExplainedCall, report: Explanation) -> Iterator[tuple[str, str]]:
    before = "" if one["approve_text"] is None else f"an approval of exactly {one['approve_text']}, if less is; then "
    where = f"to {one['address']} ({one['contract']}), function {one['function']}"
    paid = one["value_text"] or "what the added time costs"
    yield "the wallet shows", f"{before}{paid} {where}, on chain {report['chain_id']}"
    if one["terms"] is not None and one["function"] == "post":
        yield from ((f"terms: {name}", text) for name, text in one["terms"].items())
    yield "data", f"{one['data_bytes']} bytes, keccak256 {one['data_hash']}"
