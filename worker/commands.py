"""Provide a machine: hearth worker doctor|selftest|init|volumes|register|update|start|take|pause|resume|status|..."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from click.core import ParameterSource

from hearth.base.errors import UsageError
from hearth.base.found import WORKER_FILE
from hearth.cli.leaf import OUT, ActingLeaf, Leaf, Run
from hearth.cli.output import check_lines, table, then
from hearth.cli.root import Group
from hearth.protocol.state_labels import STATE_LABELS
from hearth.protocol.types import State
from hearth.protocol.units import format_duration
from worker.manage import Provider, selftest
from worker.scaffold import write_settings

if TYPE_CHECKING:
    from hearth.client.reports import AskSpread, Check, Diagnosis, NodeEstimate, OwnerAction, Wall
    from worker.reports import Selftest, WorkerBenchmark, WorkerMode

FILE = click.Path(dir_okay=False, path_type=Path)
_CONFIG = click.option("--config", type=FILE, default=Path(WORKER_FILE), show_default=True, help="The settings file.")


def _provider(run: Run, config: Path) -> Provider:
    """Return the worker of a settings file. One that --config did not name, and what it names, count once known.

    All of it is read anew after a question: what was answered is what lay there before it.
    """
    if click.get_current_context().get_parameter_source("config") is not ParameterSource.DEFAULT:
        return Provider(run.client, config)
    while True:
        vouched = run.vouched
        provider = Provider(run.client, config, vouch=run.use_found)
        provider.use_named()
        if run.vouched == vouched or run.dry_run:
            return provider


def _owner_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add what every owner action takes: the settings file, and the two halves of signing elsewhere."""
    function = click.option("--tx", type=FILE, help="Send what --print-tx wrote on the worker's machine.")(function)
    function = click.option("--print-tx", is_flag=True, help="Print the transaction for the owner's machine.")(function)
    return _CONFIG(function)


def _owner(
    run: Run, tx: Path | None, function: str, act: Callable[[], OwnerAction], **wanted: str | None
) -> OwnerAction:
    """Send what was prepared on the worker's machine, or act with what this machine knows.

    `function` is the contract's that the command stands for: a prepared call of another is refused. `wanted` is what
    the command line says of a prepared call, where it says anything: its `amount` or its `rate`.
    """
    return act() if tx is None else run.client.workers.send_prepared(tx, function, **wanted)


def _needed(text: str | None, command: str) -> str:
    """Return an argument that only a prepared call can do without. Raises UsageError."""
    if text is None:
        raise UsageError("it says neither how much nor which prepared call", hint=f"{command}, or --tx FILE")
    return text


@click.group(cls=Group)
def worker() -> None:
    """Earn with this machine."""


_STATES: Final = {"stands": "stands", "missing": "missing", "unseen": "cannot be seen"}


def _show_checks(
    run: Run, report: Diagnosis | Selftest | WorkerBenchmark, walls: Sequence[Wall] = (), *, everything: bool = True
) -> int:
    shown = [*check_lines(report["checks"], everything), *_wall_lines(report["checks"], walls, everything)]
    run.out.emit(report, lambda: shown, [report["result"]])
    return 3 if report["result"] == "FAIL" else 0


def _wall_lines(checks: Sequence[Check], walls: Sequence[Wall], everything: bool) -> list[str]:
    """Return the walls that somebody may raise, or `everything`; one that a check tells of is not told again."""
    told = {row["detail"]: f"see {row['name']}" for row in checks}
    shown = [wall for wall in walls if everything or (wall["fix"] and wall["detail"] not in told)]
    stand = [
        (
            f"{wall['runtime']} {wall['name']}",
            _STATES[wall["state"]],
            told.get(wall["detail"]) or then(wall["detail"], wall["fix"], "next"),
        )
        for wall in shown
    ]
    lines, rest = table(("wall", "", "that is"), stand), len(walls) - len(shown)
    more = [f"other walls: {rest} (--all shows them)"] if rest else []
    return ["", *lines, *more] if lines or more else []


def _show_action(run: Run, report: OwnerAction, *lines: str, then: str = "hearth worker status") -> None:
    """Print what an owner did; of what another machine prepared, `then` is the next command."""
    if "prepared" in report:
        run.out.emit(report, json.dumps(report["prepared"], indent=2).splitlines)
        return
    if report["dry_run"]:
        lines = ("a dry run: nothing was sent",)
    elif "prepared_in" in report:
        lines = (f"sent as prepared in {report['prepared_in']}; next: {then}",)
    # Each transaction was told when it was mined.
    run.out.emit(report, lambda: lines, [facts["tx"] for facts in report["transactions"]])


@worker.command("doctor", cls=Leaf)
@_CONFIG
@click.option("--all", "everything", is_flag=True, help="Show what passes and what stands, too.")
def worker_doctor(run: Run, config: Path, everything: bool) -> int:
    """Check everything that a worker needs, with the fix for what is missing."""
    report = _provider(run, config).doctor()
    return _show_checks(run, report, report.get("walls", ()), everything=everything)


@worker.command("selftest", cls=Leaf)
@_CONFIG
def worker_selftest(run: Run, config: Path) -> int:
    """Run a real program in each runtime of this machine; without a worker.toml in the system's container engine."""
    named = click.get_current_context().get_parameter_source("config") is not ParameterSource.DEFAULT
    return _show_checks(run, selftest(_provider(run, config).settings if named or config.exists() else None))


@worker.command("benchmark", cls=Leaf)
@_CONFIG
def worker_benchmark(run: Run, config: Path) -> int:
    """Measure each GPU as a job would have it: memory, how fast it moves, and half-precision products.

    \b
    register and update do so where a GPU has no figures with its driver, and say them on the chain.
    """
    return _show_checks(run, _provider(run, config).benchmark())


@worker.command("init", cls=ActingLeaf)
@_CONFIG
@click.option("--price", metavar="RATE", required=True, help="What a slot asks, such as 0.60/h.")
@click.option("--country", metavar="CODE", required=True, help="Where the machine is: a two-letter code.")
@click.option("--payout", metavar="ADDRESS", help="Who is paid; by default this account.")
@click.option("--home", type=click.Path(file_okay=False, path_type=Path), help="The worker's state folder.")
@click.option("--slots", type=click.IntRange(1, 63), default=1, show_default=True, help="How many jobs at once.")
@click.option("--runtimes", metavar="A,B", help="wasm, docker or both; by default what works here.")
@click.option("--gpus", metavar="A,B", default="all", show_default=True, help="all, none, or names: nvidia-smi -L.")
@click.option("--cores", type=click.IntRange(1, 1023), help="Cores of a slot.")
@click.option("--memory", metavar="SIZE", help="Memory of a slot.")
@click.option("--disk", metavar="SIZE", help="Disk of a slot.")
@click.option("--listen", metavar="HOST:PORT", help="Where metrics are served; empty for nowhere.")
def worker_init(run: Run, config: Path, runtimes: str | None, gpus: str, **options: Any) -> None:
    """Write worker.toml for this machine and this account's key."""
    chosen = tuple(part.strip() for part in runtimes.split(",")) if runtimes else ()
    names = tuple(part.strip() for part in gpus.split(","))
    chosen_gpus = gpus if gpus in ("all", "none") else names
    report = write_settings(run.client, config, runtimes=chosen, gpus=chosen_gpus, **options)
    run.out.emit(
        report,
        lambda: [f"wrote {report['config']} for {report['operator']}", f"  next: {report['next']}"],
        [report["config"]],
    )


@worker.command("register", cls=ActingLeaf)
@_owner_options
@click.option("--stake", metavar="AMOUNT", help="The stake; by default the market's minimum.")
def worker_register(run: Run, config: Path, stake: str | None, print_tx: bool, tx: Path | None) -> None:
    """Register this machine's offer with a stake."""
    report = _owner(
        run, tx, "register", lambda: _provider(run, config).register(stake=stake, print_tx=print_tx), amount=stake
    )
    _show_action(run, report, f"node {report.get('node')}: next: hearth worker start")


@worker.command("update", cls=ActingLeaf)
@_owner_options
def worker_update(run: Run, config: Path, print_tx: bool, tx: Path | None) -> None:
    """Replace an idle node's offer by what settings and machine say now."""
    report = _owner(run, tx, "update_offer", lambda: _provider(run, config).update(print_tx=print_tx))
    _show_action(run, report, "the offer is replaced")


@worker.command("price", cls=ActingLeaf)
@click.argument("rate", required=False)
@_owner_options
def worker_price(run: Run, rate: str | None, config: Path, print_tx: bool, tx: Path | None) -> None:
    """Change the ask to RATE, such as 0.60/h; it counts after the market's notice. --tx FILE needs no RATE."""
    provider, command = _provider(run, config), "hearth worker price RATE"
    report = _owner(run, tx, "set_ask", lambda: provider.price(_needed(rate, command), print_tx=print_tx), rate=rate)
    _show_action(run, report, f"node {report.get('node')} will ask {report.get('ask_text')}")


@worker.command("stake", cls=ActingLeaf)
@click.argument("amount", required=False)
@click.option("--again", is_flag=True, help="Add once more what was added before.")
@_owner_options
def worker_stake(run: Run, amount: str | None, again: bool, config: Path, print_tx: bool, tx: Path | None) -> None:
    """Add AMOUNT of stake; it leaves only by exit. --tx FILE needs no AMOUNT.

    \b
    The same AMOUNT is added once, however often this is called; --again adds it once more.
    A worker that runs on this key is asked to add it, each time.
    """
    provider, command = _provider(run, config), "hearth worker stake AMOUNT"

    def act() -> OwnerAction:
        return provider.stake(_needed(amount, command), again=again, print_tx=print_tx)

    report = _owner(run, tx, "add_stake", act, amount=amount)
    line = f"node {report.get('node')} has {report.get('added_text')} more stake"
    if report.get("already_sent"):
        line = f"an earlier call added {report.get('added_text')}; nothing was sent now (--again adds it once more)"
    _show_action(run, report, line)


@worker.command("operator", cls=ActingLeaf)
@click.argument("address")
@click.option("--node", type=click.IntRange(1), help="The node, where worker.toml or its key is not here.")
@_owner_options
def worker_operator(run: Run, address: str, node: int | None, config: Path, print_tx: bool, tx: Path | None) -> None:
    """Offer the node to the key of ADDRESS, where the key that works is lost, stolen or replaced.

    \b
    The first beat of its worker takes the node over, leases, bond and beat with it; the old key serves until then
    and can do nothing more after. Naming the key that works takes an offer back.
    On the owner's machine: hearth worker operator ADDRESS --node N --account owner
    """
    provider = _provider(run, config)

    def act() -> OwnerAction:
        return provider.replace_operator(address, node=node, print_tx=print_tx)

    report = _owner(run, tx, "set_operator", act, operator=address)
    node_and_key = f"node {report.get('node')} {{}} the key of {report.get('operator')}"
    if report.get("kept"):
        lines = [node_and_key.format("stays with")]
    else:
        lines = [
            f"{node_and_key.format('is offered to')}, whose first beat takes it over; it needs coin for gas",
            "  next: account.keystore in worker.toml, then hearth worker start",
        ]
    if report.get("already_sent"):
        lines = ["nothing was sent: an earlier call counts", *lines]
    _show_action(run, report, *lines)


@worker.command("withdraw", cls=ActingLeaf)
@click.argument("amount", required=False)
@_owner_options
def worker_withdraw(run: Run, amount: str | None, config: Path, print_tx: bool, tx: Path | None) -> None:
    """Pay the owner's credit in Escrow out to the owner, all of it without AMOUNT."""
    provider = _provider(run, config)
    report = _owner(run, tx, "withdraw", lambda: provider.withdraw(amount, print_tx=print_tx), amount=amount)
    _show_action(run, report, f"withdrew {report.get('amount_text')} to {report.get('to')}")


@worker.command("exit", cls=ActingLeaf)
@_owner_options
@click.option("--cancel", is_flag=True, help="Stay after all.")
@click.option("--finish", is_flag=True, help="After the unbonding time: credit the stake.")
def worker_exit(run: Run, config: Path, cancel: bool, finish: bool, print_tx: bool, tx: Path | None) -> None:
    """Leave the market: matching stops at once, the stake comes back after the unbonding time."""
    provider = _provider(run, config)
    function = "exit_cancel" if cancel else "exit_finish" if finish else "exit_start"
    report = _owner(run, tx, function, lambda: provider.exit(cancel=cancel, finish=finish, print_tx=print_tx))
    then = "hearth worker withdraw" if finish else "hearth worker status"
    if finish:
        lines = ["exit finished: the stake is its owner's credit in Escrow", f"  next: {then}"]
    elif cancel:
        lines = ["exit cancelled: the node stays"]
    else:
        free = format_duration(report.get("unbonding", 0))
        lines = [f"exit started: no new work from now on, and the stake is free in {free}"]
        lines.append("  next: hearth worker exit --finish then; hearth worker exit --cancel stays")
    _show_action(run, report, *lines, then=then)


@worker.command("start", cls=Leaf)
@_CONFIG
def worker_start(run: Run, config: Path) -> None:
    """Run the worker until it is told to stop."""
    _provider(run, config).start()


@worker.command("take", cls=Leaf)
@click.argument("job")
@_CONFIG
@click.option("--unit", type=click.IntRange(0), help="This unit of an array; by default the next one.")
def worker_take(run: Run, job: str, config: Path, unit: int | None) -> None:
    """Take one job by hand: run it, submit it and stop."""
    report = _provider(run, config).take(job, unit=unit)
    name = f"unit {report['unit'] if report['unit'] is not None else 'next'} of job {report['job'][:14]}"
    state = STATE_LABELS[State.SUBMITTED] if report["state"] == "submitted" else "free to take"
    line = f"{name}: {state}{': ' + report['outcome'] if report['outcome'] else ''}"
    run.out.emit(report, lambda: [line, f"  next: {report['next']}"], [report["job"]])


def _show_mode(run: Run, report: WorkerMode) -> None:
    lines = [f"mode {report['mode']}"]
    if not report["alive"] and report["mode"] == "drain":
        lines = [
            "no worker runs here now",
            "  next: hearth worker start ends what is left; hearth worker resume ends the drain",
        ]
    elif not report["alive"]:
        lines = [f"mode {report['mode']} (no worker runs now: it will read this when it starts)"]
    run.out.emit(report, lambda: lines, [report["mode"]])


@worker.command("pause", cls=Leaf)
@_CONFIG
def worker_pause(run: Run, config: Path) -> None:
    """Take nothing new and end what runs; an idle worker that is paused does not beat, and is not matched."""
    _show_mode(run, _provider(run, config).pause())


@worker.command("resume", cls=Leaf)
@_CONFIG
def worker_resume(run: Run, config: Path) -> None:
    """Take work again."""
    _show_mode(run, _provider(run, config).resume())


@worker.command("drain", cls=Leaf)
@_CONFIG
def worker_drain(run: Run, config: Path) -> None:
    """End what runs, then stop."""
    _show_mode(run, _provider(run, config).drain())


@worker.command("reload", cls=Leaf)
@_CONFIG
def worker_reload(run: Run, config: Path) -> None:
    """Have the running worker read its worker.toml again: whole, or not at all."""
    from hearth.cli.output import reload_lines

    report = _provider(run, config).reload()
    run.out.emit(report, lambda: reload_lines(report["applied"], report["restart"]), report["applied"])


@worker.command("volumes", cls=Leaf)
@_CONFIG
@click.option("--slots", type=click.IntRange(1, 63), help="How many; by default the settings' slots.")
@click.option("--size", metavar="SIZE", help="Of each, such as 20GiB: a job has 19.7GiB of it.")
@click.option("--home", type=click.Path(file_okay=False, path_type=Path), help="By default the settings' home.")
@click.option("--user", metavar="NAME", help="Who runs the worker; by default who owns its home.")
@click.option("--remove", is_flag=True, help="Unmount and delete all of them.")
def worker_volumes(
    run: Run, config: Path, slots: int | None, size: str | None, home: Path | None, user: str | None, remove: bool
) -> None:
    """Give each slot's output a file system of its own, once, as root: no job can fill this disk then."""
    provider = _provider(run, config)
    report = provider.volumes(slots=slots, size=size, home=home, user=user, remove=remove)

    def text() -> list[str]:
        count = len(report["volumes"])
        if report["removed"]:
            return [f"{count} volumes of {report['home']} removed; /etc/fstab needs no more:", *report["fstab"]]
        said = "would be there" if report["dry_run"] else "are mounted"
        rows = [f"{count} volumes {said} in {report['home']}; so that they are at the next boot, /etc/fstab needs:"]
        return [*rows, *report["fstab"], "  next: hearth worker doctor"]

    run.out.emit(report, text, [one["path"] for one in report["volumes"]])


@worker.command("status", cls=Leaf)
@_CONFIG
def worker_status(run: Run, config: Path) -> None:
    """Show what the chain and the running worker say of this machine."""
    report = _provider(run, config).status()

    def text() -> list[str]:
        from hearth.client.views import node_words

        said = report["process"]
        age = report["seconds_since_beat"]
        withdraw = ": hearth worker withdraw pays it out" if int(report["owner_credit"]) else ""
        lines = [
            f"node {report['node']}: {node_words(report)}, {report['busy']} of {report['slots']} slots busy",
            f"  stake {report['stake_text']}, asks {report['ask_text']}, rank {report['reputation_bps'] // 100} %",
            f"  owner's credit in Escrow {report['owner_credit_text']}{withdraw}",
            f"  last beat {'never' if age is None else f'{age} s ago'}, mode {report['mode']}",
            *(f"  {wait['text']}: {wait['next']}" for wait in report["waits"]),
        ]
        if said is None or not said["alive"]:
            return [*lines, "  no worker runs here: hearth worker start"]
        from worker.reason_texts import hold_lines

        lines += [f"  process {said['pid']}, {said['state']}", *map("  {}".format, hold_lines(said))]
        free, reserve = said.get("disk_free"), said.get("disk_reserve", 0)
        if free is not None and free < reserve:
            text = f"{free >> 20} MiB of disk are free, less than storage.reserve ({reserve >> 20} MiB): free some room"
            lines.append(f"  nothing new is taken: {text}; then hearth worker doctor")
        if said.get("gas_capped"):
            lines.append(f"  {said['gas_capped']}; raise max_gas_price or gas.max_per_day, then hearth worker reload")
        if said.get("gateways"):
            lines.append(f"  results can be fetched at {', '.join(said['gateways'])}")
        lines += [f"  0x{one['job'][:12]} unit {one['index']}: {one['phase']}" for one in said.get("attempts", [])]
        return lines

    run.out.emit(report, text, [report["node"]])


@worker.command("why", cls=Leaf)
@click.argument("job")
@_CONFIG
def worker_why(run: Run, job: str, config: Path) -> None:
    """Say why this machine does or does not take a job."""
    report = _provider(run, config).why(job)

    def text() -> list[str]:
        lines = [f"unit {row['unit']}: {row['text']}" for row in report["units"]]
        said = {row["gate"] for row in report["units"]}
        own = [row for row in report["worker"] if row["reason"] not in said]
        lines += [f"the worker: {row['detail'] or row['reason']}" for row in own]
        if not lines:
            return [
                f"job {report['job'][:14]} has no unit that a machine can take: its state is {report['state_text']}"
            ]
        return lines if report["worker_alive"] else [*lines, "no worker runs here now: hearth worker start"]

    run.out.emit(report, text)


@worker.command("bundle", cls=Leaf)
@_CONFIG
@click.option("--log", type=click.Path(path_type=Path), help="The worker's log, whose last lines go in; - is stdin.")
@click.option("--out", type=OUT, help="Write it here, for your eyes only; by default it is printed.")
def worker_bundle(run: Run, config: Path, log: Path | None, out: Path | None) -> None:
    """Collect what whoever helps you has to know, with every secret taken out.

    \b
    Settings, checks, status, journals and versions, in one document that you can read before you send it.
    Under systemd: journalctl -u hearth-worker -n 300 | hearth worker bundle --log - --out FILE
    """
    run.save(lambda: _provider(run, config).bundle(log), out)


_BOOKS: Final = {
    "paid": "leases whose program ended well",
    "failed_theirs": "leases whose program failed by itself: paid, too",
    "declined": "leases given back in their first time: not paid, and no slash",
    "given_up": "leases given up later: not paid, and nearly a slash",
    "closed": "leases that their submitter cancelled: the time is paid",
    "timed_out": "leases lost, since nothing was submitted in time: not paid, and a slash",
    "voided": "leases whose judge could not tell: the start fee is paid",
    "rejected": "leases whose judge rejected the result: not paid, and the bond is lost",
    "unproven": "leases that nobody confirmed in time: not paid, and a slash",
    "income": "paid to the owner, less the market's fees",
    "fees": "the market's",
    "keeping": "tips and rewards for keeper's work, such as matching: credit of the key that works",
    "slashed": "stake lost by lost leases",
    "liveness_fees": "stake lost by silence",
    "owner's credit": "waits in Escrow: hearth worker withdraw",
    "gas": "paid by this machine's key since the first start in this home",
    "profit": "since then: income less slashes, liveness fees and gas",
}
"""The lines of a node's books, and what each is."""


@worker.command("earnings", cls=Leaf)
@_CONFIG
def worker_earnings(run: Run, config: Path) -> None:
    """Show the node's books: leases by how they ended, income, losses, gas and profit."""
    report = _provider(run, config).earnings()
    said = {**report, **report["text"]}

    def text() -> list[str]:
        from hearth.client.views import moment

        at = report["left_at"]
        left = [] if at is None else [f"node {report['node']} left the market at {moment(at)}"]
        rows = [(name.replace("_", " "), said[name], words) for name, words in _BOOKS.items()]
        return [*left, *table(("", "", ""), rows)]

    run.out.emit(report, text, [report["income"]])


@worker.command("estimate", cls=Leaf)
@click.option("--gpu", metavar="MODEL", required=True, help="The GPU, such as rtx-4090.")
@click.option("--count", type=int, default=1, show_default=True, help="How many of them one machine has.")
@click.option("--watts", type=int, help="What one GPU draws under load; with --kwh.")
@click.option("--kwh", metavar="AMOUNT", help='What a kWh costs, in the market\'s asset, such as "0.0001 ETH".')
@click.option("--coin", metavar="AMOUNT", help="What one coin for gas is worth, where the market pays in a token.")
@click.option("--days", type=int, default=30, show_default=True, help="How far back the market's events count.")
def worker_estimate(run: Run, gpu: str, **options: Any) -> None:
    """Say what a GPU would earn here, by what others were paid. It needs neither a wallet nor a node.

    \b
    The day is the middle rate that jobs paid, times the share of their time in which such GPUs were busy, less
    the market's fee, gas, and power while busy. A figure that the market does not give is left out, never guessed.
    Nobody promises that tomorrow is like the past.
    """
    report = run.client.workers.estimate(gpu, **options)
    ids = [] if report["day"] is None else [report["day"]["left"] or report["day"]["pay"]]
    run.out.emit(report, lambda: _estimate_lines(report), ids)


def _estimate_lines(report: NodeEstimate) -> list[str]:
    from hearth.client.views import moment

    nodes = f"{_many(report['nodes'], 'node')} of {_many(report['owners'], 'owner')}"
    rows = [("asks now", _ask_words(report["asks"])), ("better GPUs ask", _ask_words(report["better"]))]
    if report["rate_text"] is not None:
        units, payers = _many(report["units"], "unit"), _many(report["paid_submitters"], "submitter")
        paid = f"the middle of {units} that {payers} paid {_many(report['paid_owners'], 'owner')}"
        rows.append(("jobs paid", f"{report['rate_text']} of a run, {paid}"))
    if report["busy_bps"] is not None and report["shared_bps"] is not None:
        shared = f"{report['shared_bps'] / 100:.1f} % if yours shared that work"
        rows.append(("busy", f"{report['busy_bps'] / 100:.1f} % of the time that {nodes} offered; {shared}"))
    head = f"{report['gpus']} x {report['gpu']} on {report['network']}, by the {format_duration(report['span'])} "
    lines = [f"{head}since {moment(report['since'])}; rates are for one GPU", *table(("", ""), rows)[1:]]
    day, month = report["day"], report["month"]
    if day is not None and month is not None:
        lines += ["", *table(("", "a day", "30 days", ""), _income_rows(report, day["text"], month["text"]))]
    notes = [f"note: {note}" for note in report["notes"]]
    notes += [] if report["nodes"] else ["  next: hearth offers shows what there is"]
    return [*lines, "", *notes] if notes else lines


def _ask_words(asks: AskSpread) -> str:
    if asks["middle_text"] is None:
        return "no live node"
    nodes = f"{_many(asks['nodes'], 'live node')} of {_many(asks['owners'], 'owner')}"
    rates = f"{asks['lowest_text']} at least, {asks['middle_text']} in the middle"
    return f"{rates}, by {_many(asks['gpus'], 'GPU')} of {nodes}"


def _many(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _income_rows(
    report: NodeEstimate, day: Mapping[str, str], month: Mapping[str, str]
) -> list[tuple[str, str, str, str]]:
    """Return the lines of what comes in and goes out; what is unknown says why."""
    gas = "gas" if "gas" in day else "gas_wei"
    rows = [
        ("pay", "pay", f"less the market's fee of {report['fee_bps'] / 100:g} %"),
        ("gas", gas, "of beats, and of claim, submit and settle of each unit, at today's price"),
        ("power", "power", f"{report['watts']} W a GPU, while it is busy"),
        ("left", "left", "" if "power" in day else "power is not in it: --watts and --kwh"),
    ]
    if "left" not in day:
        rows[3] = ("left", "left", "unknown: --coin AMOUNT says what the coin for gas is worth")
    return [
        (name, day.get(key, "-"), month.get(key, "-"), why) for name, key, why in rows if name != "power" or key in day
    ]
