"""Keys and money: hearth wallet new|import|list|show|balance|history|send|withdraw."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import click

from hearth.base.errors import UsageError
from hearth.cli.explain import read_text
from hearth.cli.leaf import ActingLeaf, Leaf, Run
from hearth.cli.output import table
from hearth.cli.root import Group

_SENT: Final[Mapping[str, str]] = {
    "sent": "sent in {tx}",
    "sent_before": "an earlier call sent it in {tx}",
    "posted_before": "its job is posted already",
    "tried": "would be sent, unless an earlier call sent it",
    "not_tried": "would be sent then; it cannot be tried before",
}


_SUMS: Final[Mapping[str, str]] = {
    "locked": "locked by posting and top-ups",
    "still_locked": "still locked",
    "from_nodes": "stake back, and pay for showing silent nodes",
}
_ALWAYS: Final = ("spent", "earned", "gas")
"""The sums of a history that are said where they are nothing, too."""
_ADDS_UP: Final = (
    "locked = spent + refunded + still locked",
    "credit in Escrow (hearth wallet show) = refunded + earned + stake back and pay for silent nodes - withdrawn",
    "the account's own balance: + withdrawn - locked - staked - gas, beside what it sent and got outside of the market",
)
"""How the sums of a whole history hang together."""


@click.group(cls=Group)
def wallet() -> None:
    """Keys and money."""


@wallet.command("new", cls=Leaf)
@click.argument("name", default="default")
def wallet_new(run: Run, name: str) -> None:
    """Make a key, in a file encrypted by its password."""
    report = run.client.wallet.new(name)
    run.out.emit(
        report,
        lambda: [f"{key}: {value}" for key, value in report.items() if key != "schema"],
        [report.get("address", "")],
    )


@wallet.command("import", cls=Leaf)
@click.argument("name")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--index", type=click.IntRange(0, 2**31 - 1), default=0, help="Which account of a recovery phrase.")
@click.option("--old-password-file", metavar="FILE", type=click.Path(path_type=Path), help="A keystore's own password.")
def wallet_import(run: Run, name: str, file: Path, index: int, old_password_file: Path | None) -> None:
    """Make a key file of the key in FILE (mode 600), or on stdin for -.

    \b
    FILE holds 64 hex digits, the keystore of another tool, or a recovery phrase (BIP-39).
    """
    report = run.client.wallet.import_key(name, file, index=index, old_password_file=old_password_file)
    run.out.emit(
        report,
        lambda: [f"{key}: {value}" for key, value in report.items() if key != "schema"],
        [report.get("address", "")],
    )


@wallet.command("list", cls=Leaf)
def wallet_list(run: Run) -> None:
    """List the keys; none is unlocked."""
    report = run.client.wallet.list()
    rows = [(key["name"], key["address"]) for key in report["keys"]]
    run.out.emit(
        report, lambda: table(("name", "address"), rows) or ["no keys: hearth wallet new"], [row[1] for row in rows]
    )


@wallet.command("show", cls=Leaf)
@click.argument("name", required=False)
def wallet_show(run: Run, name: str | None) -> None:
    """Show a key's name, address and file."""
    report = run.client.wallet.show(name)
    run.out.emit(report, lambda: [f"{key}: {report[key]}" for key in ("name", "address", "file")], [report["address"]])


@wallet.command("balance", cls=ActingLeaf)
@click.argument("name", required=False)
def wallet_balance(run: Run, name: str | None) -> None:
    """Show what a key or an address holds: coin, the market's asset, and credit in Escrow."""
    report = run.client.wallet.balance(name)
    native, asset, credit = (report["text"][part] for part in ("native", "asset", "credit"))
    lines = [report["address"], f"  {native}"]
    if report["asset_symbol"] not in native:
        lines.append(f"  {asset}")
    run.out.emit(report, lambda: [*lines, f"  {credit} of credit in Escrow"], [report["credit"]])


@wallet.command("send", cls=ActingLeaf)
@click.argument("address", metavar="ADDRESS|FILE|-")
@click.argument("amount", required=False)
@click.option("--again", is_flag=True, help="Send AMOUNT to ADDRESS once more.")
def wallet_send(run: Run, address: str, amount: str | None, again: bool) -> None:
    """Send AMOUNT to ADDRESS: the market's asset, or coin where it says so, as in "0.5 ETH".

    \b
    The same AMOUNT to the same ADDRESS is sent once, however often this is called; --again sends it once more.
    Without AMOUNT, send the calls of FILE, or of stdin for -, as the account that it names: what --print-tx or the
    page wrote. Each is sent once, however often this is called; a job that is posted already is not posted again.
    """
    if amount is None:
        _send_file(run, address, again=again)
        return
    report = run.client.wallet.send(address, amount, again=again)
    what, sent = f"{report['amount_text']} to {report['to']}", report["transactions"][0]["tx"]

    def text() -> list[str]:
        if report["dry_run"]:
            return [f"would send {what}, unless an earlier call sent it"]
        if report["already_sent"]:
            return [f"an earlier call sent {what} in {sent}; nothing was sent now (--again sends it once more)"]
        return [f"sent {what}"]

    run.out.emit(report, text, [sent])


def _send_file(run: Run, name: str, *, again: bool) -> None:
    if name.startswith("0x"):
        raise UsageError(f"how much is to be sent to {name}?", hint=f"hearth wallet send {name} AMOUNT")
    if again:
        raise UsageError(
            "a file is sent once: --again is for an AMOUNT to an ADDRESS",
            hint="prepare another file: --print-tx, or the page",
        )
    report = run.client.wallet.send_file(read_text(name, "hearth wallet send ADDRESS AMOUNT, or a file of --print-tx"))
    posted = [one["job"] for one in report["calls"] if one["function"] == "post" and not report["dry_run"]]

    def text() -> list[str]:
        lines = [f"{one['what']}: {_SENT[one['state']].format(tx=one['tx'])}" for one in report["calls"]]
        nothing = ["nothing was sent now"] if report["already_sent"] else []
        return [*lines, *nothing, *(f"next: hearth job show {job[:14]}" for job in posted if job)]

    run.out.emit(report, text, [one["tx"] or one["job"] or one["function"] for one in report["calls"]])


@wallet.command("history", cls=ActingLeaf)
@click.argument("name", required=False)
@click.option("--since", metavar="TIME", help="Only of this long, such as 30d.")
def wallet_history(run: Run, name: str | None, since: str | None) -> None:
    """Show what an account spent and earned, by job, and its gas. NAME is a key's name or an address."""
    report = run.client.wallet.history(name, since=since)

    def text() -> list[str]:
        from hearth.client.views import moment
        from hearth.protocol.units import show_amount

        asset = run.client.session.asset
        columns = ("locked", "spent", "refunded", "earned")
        rows = [
            (
                row["job"][:14],
                row["name"] or "-",
                "-" if row["posted_at"] is None else moment(row["posted_at"]),
                *("-" if row[column] == "0" else show_amount(int(row[column]), asset) for column in columns),  # type: ignore[literal-required]
            )
            for row in report["jobs"]
        ]
        lines = table(("job", "name", "posted", *columns), rows) or ["no jobs in this time"]
        sums = [(name, amount) for name, amount in report["text"].items() if name in _ALWAYS or report[name] != "0"]  # type: ignore[literal-required]
        of = {"gas": f" in {report['gas_transactions']} transactions"}
        lines += [f"{_SUMS.get(name, name)}: {amount}{of.get(name, '')}" for name, amount in sums]
        if report["since"] is None:
            lines += _ADDS_UP
        if report["gas_unknown"]:
            lines.append(f"not in it: {report['gas_unknown']} transactions whose receipts nobody here has")
        if report["other_transactions"] is None:
            lines.append("not in it: transactions that are in no journal here; how many, nobody here knows")
        elif report["other_transactions"]:
            lines.append(f"not in it: {report['other_transactions']} of its transactions, which no journal here has")
        return lines

    run.out.emit(report, text, [row["job"] for row in report["jobs"]])


@wallet.command("withdraw", cls=ActingLeaf)
@click.argument("amount", required=False)
@click.option("--to", metavar="ADDRESS", help="Where to; by default the account itself.")
@click.option("--again", is_flag=True, help="Pay AMOUNT to ADDRESS once more.")
def wallet_withdraw(run: Run, amount: str | None, to: str | None, again: bool) -> None:
    """Withdraw credit from Escrow, all of it without AMOUNT.

    \b
    The same AMOUNT to the same --to is paid once, however often this is called; --again pays it once more.
    """
    report = run.client.wallet.withdraw(amount=amount, to=to, again=again)
    what, sent = f"{report['amount_text']} to {report['to']}", report["transactions"][0]["tx"]

    def text() -> list[str]:
        if report["already_sent"]:
            return [f"an earlier call withdrew {what} in {sent}; nothing was sent now (--again pays it once more)"]
        return [f"withdrew {what}"]

    run.out.emit(report, text, [sent])
