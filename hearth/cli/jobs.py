"""Jobs: hearth offers, check, run, submit, jobs, and job show|spec|logs|get|cancel|accept|top-up|unlock|..."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hearth.base.errors import HearthError, JobEnded, JobFailed, NoWorkerError, UsageError
from hearth.base.text import quoted
from hearth.cli.explain import job_explain
from hearth.cli.leaf import OUT, ActingLeaf, Leaf, Run
from hearth.cli.output import event_line, table
from hearth.cli.root import Group
from hearth.client.job.results import unread_error
from hearth.client.nodes.manifests import in_words
from hearth.client.views import FINISHED, moment, quarantine_words
from hearth.protocol.state_labels import JOB_LABELS
from hearth.protocol.units import format_duration

if TYPE_CHECKING:
    from hearth.client.reports import (
        CheckpointRow,
        Confirmation,
        JobAction,
        JobFacts,
        JobList,
        JobPlan,
        OfferRow,
        Offers,
        PreparedJob,
        RerunPlan,
        ResultRow,
        Submission,
        TopUp,
        Unlocking,
    )

FILE = click.Path(dir_okay=False, path_type=Path)
SHOWN_LINES = 20
"""Lines of a program's output that a report of its job shows."""
SHOWN_NAMES = 5
"""Entries under other names that a report of one unit shows."""
FOLDER = click.Path(file_okay=False, path_type=Path)
ALLOW_OUTSIDE = click.option(
    "--allow-outside", is_flag=True, help="Bring files from outside the job file's folder too; each is listed."
)
ALLOW_PRIVATE = click.option(
    "--allow-private", is_flag=True, help="Bring what URLs in a private network answer too; each host is listed."
)
STATE_HELP = f"Only jobs in this state: {', '.join(JOB_LABELS)}, or ended; or by the chain's name."
WORKER_DECIDES = "any worker may refuse it by settings of its own; its owner sees why: hearth worker why JOB"
NO_TAKER = "hearth offers; hearth submit FILE --anyway posts it all the same"
POST_ANYWAY = "hearth submit FILE --anyway posts a job that waits for one"
AFTER_HELP = "Wait for this job to end: in success (the default), failure or always; may be repeated."


@click.command(cls=Leaf)
@click.option("--gpu", metavar="MODEL", help="This GPU or a better one, such as rtx-4090.")
@click.option("--vram", metavar="SIZE", help="At least this much GPU memory, such as 40 (GiB) or 40GiB.")
@click.option("--max-price", metavar="RATE", help="At most this ask, such as 2/h.")
@click.option("--wide", is_flag=True, help="Show the GPUs that each worker says it has, with their drivers.")
def offers(run: Run, gpu: str | None, vram: str | None, max_price: str | None, *, wide: bool) -> None:
    """List the live workers' offers, cheapest first."""
    report = run.client.workers.offers(gpu=gpu, vram=vram, max_price=max_price, wide=wide)
    rows = [
        (
            row["node"],
            row["ask_text"],
            f"{row['gpus']} x {row['tier']} {row['vram_gib']} GiB" if row["gpus"] else "-",
            row["cores"],
            f"{row['ram_gib']} GiB",
            row["zone"],
            f"{row['free']}/{row['slots']}" + (" (probation)" if row["probation"] else "") + _held(row),
            f"{row['reputation_bps'] / 100:.0f} %",
            "+".join(row["runtimes"]),
            *((in_words(row.get("says")),) if wide else ()),
        )
        for row in report["offers"]
    ]
    head = ["node", "ask", "GPU", "cores", "memory", "zone", "free", "reputation", "runtimes"]
    head += ["says it has"] if wide else []
    run.out.emit(report, lambda: table(head, rows) or _no_offers(report), [r[0] for r in rows])


def _no_offers(report: Offers) -> list[str]:
    """Say of a market without a fitting offer which workers there are, and what can be done."""
    if not report["others"]:
        return ["no worker is registered on this network", f"  next: {POST_ANYWAY}, or hearth worker --help"]
    silent = "; one that is stopped, or paused while idle, is silent" if "inactive" in report["others"] else ""
    return [f"no live worker fits: {report['others_text']}{silent}", f"  next: hearth net workers, or {POST_ANYWAY}"]


def _held(row: OfferRow) -> str:
    """Return what a table says beside a node that is in quarantine, and nothing beside another."""
    held = quarantine_words(row)
    return f" ({held})" if held else ""


def _variables(option: str, texts: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(f'{option} "{text}" is not K=V', hint=f"write {option} EPOCHS=3")
        found[name] = value
    return found


@click.command(cls=ActingLeaf)
@click.argument("file", type=FILE)
@click.option("--var", metavar="K=V", multiple=True, help="Fill ${K} in the file; may be repeated.")
@click.option("--after", metavar="JOB[:END]", multiple=True, help=AFTER_HELP)
@ALLOW_OUTSIDE
@ALLOW_PRIVATE
def check(run: Run, file: Path, var: tuple[str, ...], after: tuple[str, ...], **allowed: bool) -> int:
    """Check a job file: its fields, its sources, its price, and who could take it. Sends nothing.

    Ends with 8 where no worker can take it, as hearth submit does.
    """
    report = run.client.jobs.check(file, variables=_variables("--var", var), after=after, **allowed)
    error = (
        None if report["can_take"] else NoWorkerError("no worker can take this job", hint=report["enough"] or NO_TAKER)
    )
    shown = report if error is None else {**report, **error.as_dict()}
    run.out.emit(shown, lambda: [f"{report['name']}: spec {report['spec']}", *report["text"]], [report["spec"]])
    return run.out.after(error)


@click.command(cls=ActingLeaf, context_settings={"allow_interspersed_args": False})
@click.argument("program", metavar="IMAGE|MODULE.wasm")
@click.argument("command", nargs=-1, metavar="[COMMAND] [ARG]...", type=click.UNPROCESSED)
@click.option("--gpu", type=click.IntRange(0, 63), default=0, help="How many GPUs.")
@click.option("--tier", metavar="MODEL", help="The least GPU model, such as rtx-4090.")
@click.option("--vram", metavar="SIZE", help="The least memory of each GPU.")
@click.option("--cpus", type=click.IntRange(1, 1023), default=1, show_default=True)
@click.option("--memory", metavar="SIZE", default="1GiB", show_default=True)
@click.option("--runtime", metavar="TIME", default="10m", show_default=True, help="The longest that it may run.")
@click.option("--max-total", metavar="AMOUNT", help="All that it may cost.")
@click.option("--max-rate", metavar="RATE", help="The most per time, such as 1.2/h.")
@click.option("-i", "--input", "inputs", metavar="SRC:DST", multiple=True, help="A file or folder at DST below /in.")
@click.option("-o", "--output", "outputs", metavar="PATH", multiple=True, help="A path below /out that it must leave.")
@click.option("-e", "--env", metavar="K=V", multiple=True, help="A public variable of its environment.")
@click.option("--after", metavar="JOB[:END]", multiple=True, help=AFTER_HELP)
@click.option("--results", metavar="DIR", type=FOLDER, help="Fetch the outputs into this folder.")
@click.option("--wait/--detach", default=True, help="Wait for the end (the default), or return once it is posted.")
@click.option("--again", is_flag=True, help="Post a new job even if the same one is pending.")
@click.option("--anyway", is_flag=True, help="Post it though no worker can take it now.")
@click.option("--use-credit", is_flag=True, help="Pay from this account's credit in Escrow first.")
@click.option("--print-spec", is_flag=True, help="Print it as a job file to start from, and post nothing.")
@ALLOW_OUTSIDE
@ALLOW_PRIVATE
def run(
    run: Run,
    program: str,
    command: tuple[str, ...],
    env: tuple[str, ...],
    outputs: tuple[str, ...],
    after: tuple[str, ...],
    results: Path | None,
    wait: bool,
    again: bool,
    anyway: bool,
    use_credit: bool,
    print_spec: bool,
    allow_outside: bool,
    allow_private: bool,
    **options: Any,
) -> int:
    """Run a container image or a WASM module as a job, and wait for it.

    Options stand before IMAGE or MODULE. All that follows is the program's own: its command and its options.
    """
    _note_ours(run, program, command)
    options["env"] = _variables("-e", env)
    if print_spec:
        from hearth.client.posting.quick import spec_of_run, with_parents
        from hearth.jobfile import dump_spec

        made = spec_of_run(program, command, outputs=outputs, **options)
        spec = with_parents(run.client.session, made, after).spec
        run.out.emit(
            {"schema": "hearth.spec/1", "spec": spec.model_dump(mode="json", exclude_defaults=True, by_alias=True)},
            dump_spec(spec).rstrip().splitlines,
        )
        return 0
    report = run.client.jobs.posting.run(
        program,
        command,
        outputs=outputs,
        after=after,
        wait=wait,
        results=results,
        again=again,
        anyway=anyway,
        use_credit=use_credit,
        allow_outside=allow_outside,
        allow_private=allow_private,
        auto_price=True,  # which is asked about before it is posted
        **options,
    )
    return _show_submitted(run, report)


def _note_ours(run: Run, program: str, command: tuple[str, ...]) -> None:
    """Say which of a program's arguments are names of our options: long ones, for every program has a -e or a -q."""
    context = click.get_current_context()
    ours = {name for param in context.command.get_params(context) for name in (*param.opts, *param.secondary_opts)}
    named = dict.fromkeys(word.partition("=")[0] for word in command if word.startswith("--"))
    if found := [name for name in named if name in ours]:
        place = "MODULE" if program.endswith(".wasm") else "IMAGE"
        goes, it = ("goes", "it") if len(found) == 1 else ("go", "them")
        text = f"{', '.join(found)} after {place} {goes} to the program; put {it} before {place} where Hearth is meant"
        run.out.tell("note", {"text": text})


@click.command(cls=ActingLeaf)
@click.argument("file", type=FILE)
@click.option("--var", metavar="K=V", multiple=True, help="Fill ${K} in the file; may be repeated.")
@click.option("--after", metavar="JOB[:END]", multiple=True, help=AFTER_HELP)
@click.option("--wait/--detach", default=False, help="Wait for the end, or return once it is posted (the default).")
@click.option("--follow", is_flag=True, help="The same as --wait.")
@click.option("--results", metavar="DIR", type=FOLDER, help="Fetch the outputs into this folder (with --wait).")
@click.option("--again", is_flag=True, help="Post a new job even if one of the same file is pending.")
@click.option("--anyway", is_flag=True, help="Post it though no worker can take it now.")
@click.option("--use-credit", is_flag=True, help="Pay from this account's credit in Escrow first.")
@click.option("--print-tx", is_flag=True, help="Store the data and print the transactions, to sign elsewhere.")
@ALLOW_OUTSIDE
@ALLOW_PRIVATE
def submit(
    run: Run,
    file: Path,
    var: tuple[str, ...],
    after: tuple[str, ...],
    wait: bool,
    follow: bool,
    results: Path | None,
    again: bool,
    anyway: bool,
    use_credit: bool,
    print_tx: bool,
    **allowed: bool,
) -> int:
    """Post the job of a file; the same file again finds the job that it posted, instead of paying twice.

    \b
    With --print-tx nothing is sent. --account may then be an address without a key here.
    """
    report = run.client.jobs.posting.submit(
        file,
        variables=_variables("--var", var),
        after=after,
        wait=wait or follow,
        results=results,
        again=again,
        anyway=anyway,
        use_credit=use_credit,
        print_tx=print_tx,
        **allowed,
    )
    if report["schema"] == "hearth.prepared/1":
        run.out.emit(report, lambda: _prepared_lines(report), [report["job"]])
        return 0
    return _show_submitted(run, report)


def _prepared_lines(report: PreparedJob) -> list[str]:
    """Say what is stored, what to sign in which order and until when, and how to go on."""
    name = report["job"][:14]
    if report["already_posted"]:
        return [f"job {report['job']} was posted already: there is nothing to sign", f"  hearth job wait {name}"]
    lines = [f"job {report['job']}, nothing sent; stored in {report['store']}:"]
    lines += [f"  {one['cid']}  {one['src']}" for one in report["stored"]]
    many = len(report["prepared"])
    what = "this transaction" if many == 1 else f"these {many} transactions, each once the one before is mined,"
    lines.append(f"sign {what} as {report['from']}, and send before {moment(report['send_before'])}:")
    for number, tx in enumerate(report["prepared"], 1):
        lines.append(f"{number}. {tx['action']}: chain {tx['chain_id']}, to {tx['to']}, value {tx['value']} wei, data")
        lines.append(tx["data"])
    return [*lines, "  as a file, which the page Sign reads: add --json", f"  then: hearth job wait {name}"]


def _show_submitted(run: Run, report: Submission | JobPlan | RerunPlan) -> int:
    """Print what a submission came to and return the exit status of its outcome."""
    if report["schema"] == "hearth.plan/1":
        run.out.emit(report, lambda: ["nothing was posted (--dry-run)"])
        return 0
    job = report["job"]
    if not report["waited"]:
        run.out.emit(report, lambda: [f"job {job}", f"  hearth job show {job[:14]}"], [job])
        return 0
    results = report["results"]
    units = results["verified"] + results["unread"]
    error = _verdict_error(report) or unread_error(job, units, results["unread"])
    if error is not None:
        report = {**report, **error.as_dict()}

    def text() -> list[str]:
        lines = [f"job {job}: {results['verdict']}"]
        shown = results["units"] if len(results["units"]) <= 4 else []
        lines += [f"  unit {row['unit']}: {row['text']}, outputs {row['outputs'] or 'none'}" for row in shown]
        if not shown and results["units"]:
            lines.append(
                f"  {results['ok']} units ok, {results['failed']} failed, {results['verified']} results verified"
            )
        fetched = results["fetched"]
        if fetched and any(row["path"] for row in fetched["units"]):
            lines.append(f"  outputs in {fetched['folder']}")
        listed = results["units"]
        some = results["unread"] or len(listed) < results["verified"] or any(row["outputs"] for row in listed)
        if some and not fetched:
            lines.append(f"  hearth job get {job[:14]} -o DIR")
        odd = [row for row in fetched["units"] if "fault" in row or "renamed" in row] if fetched else []
        lines += [f"  {line}" for row in odd for line in _result_lines(row)]
        if results["kept_until"] and not fetched:
            lines.append(f"  its worker keeps them until {moment(results['kept_until'])}; --pin keeps them here")
        if results["stdout"]:
            said = results["stdout"].rstrip().splitlines()
            cut = f" (the last {SHOWN_LINES} of {len(said)} lines; hearth job logs {job[:14]})"
            lines.append("  stdout:" + (cut if len(said) > SHOWN_LINES else ""))
            lines += [f"  | {line}" for line in said[-SHOWN_LINES:]]
        return lines

    run.out.emit(report, text, [job])
    return run.out.after(error)


def _verdict_error(report: Submission) -> HearthError | None:
    """Return the error that the end of a job that was waited for is, None for a good one."""
    job, results = report["job"], report["results"]
    if results["verdict"] == "ok":
        return None
    if results["verdict"] == "failed":
        failure: Mapping[str, Any] = results["failure"] or {}
        words = str(failure.get("stderr_tail", "")).strip().splitlines()
        last = f"; its last words: {quoted(words[-1])}" if words else ""
        detail = f"; its worker says {quoted(failure['detail'])}" if failure.get("detail") else ""
        # What was stopped has none.
        code = "" if failure.get("exit_code") is None else f", exit code {failure['exit_code']}"
        return JobFailed(
            f"job {job[:14]} ran and failed: {failure.get('status', 'failed')}{code}{detail}{last}",
            hint=f"hearth job logs {job[:14]}",
            job=job,
            status=failure.get("status"),
            job_exit_code=failure.get("exit_code"),
        )
    if results["parents_failed"]:
        wrong = [row for row in report["end"]["parents"] if row["as_asked"] is False]
        named = ", ".join(f"{row['job'][:14]} (if: {row['condition']}) {row['text']}" for row in wrong)
        return JobEnded(
            f"job {job[:14]} did not run: what it waited for ended otherwise than asked, {named}; it is refunded",
            hint=f"hearth job show {wrong[0]['job'][:14] if wrong else job[:14]}",
            job=job,
        )
    return JobEnded(
        f"job {job[:14]} ended without a result for every unit ({results['ok']} ok); the rest is refunded",
        hint=f"hearth job events {job[:14]}",
        job=job,
    )


@click.command(cls=ActingLeaf)
@click.option("--state", metavar="STATE", help=STATE_HELP)
@click.option("--name", metavar="TEXT", help="Only jobs with this in their names.")
@click.option("--mine/--all", default=True, help="This account's jobs (the default), or everybody's.")
@click.option(
    "--last",
    type=click.IntRange(1, 10_000),
    metavar="N",
    help="Look at the market's newest N jobs alone, without reading its whole history.",
)
def jobs(run: Run, state: str | None, name: str | None, mine: bool, last: int | None) -> None:
    """List jobs, newest first."""
    show_jobs(run, run.client.jobs.list(state=state, name=name, everyone=not mine, last=last), named=name is not None)


def show_jobs(run: Run, report: JobList, *, named: bool = False) -> None:
    """Print a list of jobs; where they were searched by name, say how many could not be."""
    rows = [
        (
            row["job"][:14],
            row["name"] or "-",
            row["state_text"],
            row["counts_text"],
            row["cost_text"] or "-",
            f"block {row['block']}" if row["posted_at"] is None else moment(row["posted_at"]),
        )
        for row in report["jobs"]
    ]
    lines = table(("job", "name", "state", "units", "cost", "posted"), rows) or ["no jobs"]
    if named and (unnamed := report["unnamed"]):
        have = "1 job has a name that is" if unnamed == 1 else f"{unnamed} jobs have names that are"
        lines.append(f"{have} not read here; hearth job spec JOB reads one")
    run.out.emit(report, lambda: lines, [row["job"] for row in report["jobs"]])


@click.group(cls=Group)
def job() -> None:
    """Look at a job, fetch its results, act on it. JOB is an id or its beginning."""


job.add_command(job_explain)


@job.command("show", cls=Leaf)
@click.argument("job")
def job_show(run: Run, job: str) -> None:
    """Show a job's state, its units, and who may act next and until when."""
    report = run.client.jobs.show(job)

    def text() -> list[str]:
        waits = f": {report['waits']}" if report["waits"] else ""
        lines = [
            f"job {report['job']}" + (f" ({report['name']})" if report["name"] else ""),
            f"  state {report['state_text']}{waits}",
            f"  units: {report['counts_text']}",
            f"  posted in block {report['posted']['block']} by {report['submitter']}, {report['posted']['tx']}",
            f"  escrow {report['escrow_text']}, at most {report['ceiling_text']}, billing {report['billing']}",
            f"  {'; '.join(_course(report))}",
            f"  deadline {report['deadline_text']}; a lease's bond {report['bond_text']}",
            f"  verify {report['verify']}",
            *([f"  workers {report['workers']}", f"    {WORKER_DECIDES}"] if report["workers"] else []),
        ]
        lines += [f"  after {row['job']}, if {row['condition']}: {row['text']}" for row in report["parents"]]
        if report["checkpoint_every"]:
            every = format_duration(report["checkpoint_every"])
            lines.append(f"  checkpoints every {every}; another node can resume it")
        if report["kept"]:
            lines.append("  results are kept: the chain itself has their digests")
        for row in report["leases"]:
            # "done" says as much as "ok", and "failed" begins the outcome of a program that failed.
            outcome = (
                f", {row['outcome_text'].removeprefix('failed: ')}" if row["outcome_text"] not in ("", "ok") else ""
            )
            node = f", node {row['node']}" if row["node"] else ""
            more = f", topped up by {format_duration(row['topped_up'])}" if row["topped_up"] else ""
            resumed = f" from the checkpoint of attempt {row['resumed_from']}" if row["resumed_from"] else ""
            begun = f"attempt {row['attempts']}{resumed}"
            lines.append(f"  unit {row['unit']}: {row['state_text']}{outcome}{node}, {begun}{more}")
            if row["result_cid"]:
                lines.append(f"    result {row['result_cid']}")
            lines += [f"    {_checkpoint_line(one)}" for one in row["checkpoints"]]
            if row["next"] != FINISHED:
                lines.append(f"    next: {row['next']}")
        return lines

    run.out.emit(report, text, [report["job"]])


def _course(row: JobFacts) -> list[str]:
    """Say when a job was posted, began and ended, and what it cost so far."""
    moments = ((name, row[f"{name}_at"]) for name in ("posted", "started", "ended"))  # type: ignore[literal-required]
    lines = [f"{name} {moment(at)}" for name, at in moments if at is not None]
    return [*lines, f"cost so far {row['cost_text']}"] if row["cost_text"] else lines


def _checkpoint_line(row: CheckpointRow) -> str:
    """Say of an attempt's last checkpoint when it was made, by whom, and what became of it."""
    after = format_duration(row["seconds"])
    begun = f", begun with that of attempt {row['resumed_from']}" if row["resumed_from"] else ""
    end = "; kept for another attempt" if row["kept"] else ""
    if row["earned_text"]:
        end = f"; used, its node's owner earned {row['earned_text']}"
    return f"checkpoint of attempt {row['attempt']} (node {row['node']}{begun}) after {after}: {row['root']}{end}"


@job.command("spec", cls=Leaf)
@click.argument("job")
def job_spec(run: Run, job: str) -> None:
    """Print the canonical spec, the document whose hash is on chain."""
    import json

    report = run.client.jobs.spec(job)
    run.out.emit(report, json.dumps(report, indent=2, sort_keys=True).splitlines)


@job.command("logs", cls=Leaf)
@click.argument("job")
@click.option("--unit", type=click.IntRange(0), help="Only this unit.")
def job_logs(run: Run, job: str, unit: int | None) -> int:
    """Print what units wrote to stdout and stderr."""
    report = run.client.jobs.logs(job, unit=unit)
    error = unread_error(report["job"], len(report["units"]), report["unread"], "log")
    if error is not None:
        report = {**report, **error.as_dict()}

    def text() -> list[str]:
        lines = []
        for row in report["units"]:
            if len(report["units"]) > 1 or row["detail"]:
                said = f", which says {quoted(row['detail'])}" if row["detail"] else ""
                lines.append(f"--- unit {row['unit']}, node {row['node']}{said}")
            lines += row["stdout"].splitlines()
            lines += [f"stderr: {line}" for line in row["stderr"].splitlines()]
            if "fault" in row:
                lines.append(f"unit {row['unit']}: its log cannot be read: {row['fault']['message']}")
        return lines

    run.out.emit(report, text, ours=False)
    return run.out.after(error)


@job.command("events", cls=Leaf)
@click.argument("job")
@click.option("--follow", is_flag=True, help="Go on until the job has ended.")
def job_events(run: Run, job: str, follow: bool) -> None:
    """Print a job's events; with --json one line each."""
    stream = run.client.jobs.follow(job) if follow else run.client.jobs.events(job)["events"]
    for facts in stream:
        run.out.line(facts, f"block {facts['block']}  {event_line(facts)}")


@job.command("wait", cls=Leaf)
@click.argument("job")
@click.option("--results", metavar="DIR", type=FOLDER, help="Fetch the outputs into this folder.")
@click.option("--anyway", is_flag=True, help="Wait on though no worker is left that could take it.")
def job_wait(run: Run, job: str, results: Path | None, anyway: bool) -> int:
    """Wait for a job's end and show it, as submit --wait does; several may wait for one job."""
    return _show_submitted(run, run.client.jobs.posting.attach(job, results=results, anyway=anyway))


@job.command("get", cls=Leaf)
@click.argument("job")
@click.option("-o", "--output", "folder", metavar="DIR", type=FOLDER, help="The folder to write; it must not exist.")
@click.option("--unit", type=click.IntRange(0), help="Only this unit.")
@click.option("--reduce", metavar="SCRIPT", type=FILE, help="A Python script to run on the folder when all is there.")
@click.option("--pin", is_flag=True, help="Keep the blocks in this store.")
def job_get(run: Run, job: str, folder: Path | None, unit: int | None, reduce: Path | None, pin: bool) -> int:
    """Fetch a job's outputs, every block checked against the chain's digest.

    No more is written than the job's spec allows. Names that other programs obey, such as .git, get another one.
    """
    report = run.client.jobs.get(job, folder=folder, unit=unit, reduce=reduce, pin=pin)
    error = unread_error(report["job"], len(report["units"]), report["unread"])
    if error is not None:
        report = {**report, **error.as_dict()}

    def text() -> list[str]:
        lines = [line for row in report["units"] for line in _result_lines(row, report["judged"])]
        if report["missing"]:
            lines.append(f"{report['missing']} units have no result")
        seen = " --result ".join(row["result_cid"] for row in report["units"] if "fault" not in row)
        if report["judged"] and report["verdict"] == "pending" and seen:
            lines.append(f"an attester who finds it right: hearth job attest {report['job'][:14]} --result {seen}")
        return [*lines, *str(report.get("reduced", "")).splitlines()]

    run.out.emit(report, text, [report["folder"]])
    return run.out.after(error)


def _result_lines(row: ResultRow, judged: bool = False) -> list[str]:
    """Say where one unit's outputs are, which names in them are not their own, and the result's CID for its judge."""
    if "fault" in row:
        return [f"unit {row['unit']}: {row['outcome']}, not fetched: {row['fault']['message']}"]
    lines = [f"unit {row['unit']}: {row['outcome']}, {row['path'] or 'no outputs'}"]
    if judged:
        lines.append(f"  result {row['result_cid']}")
    renamed = row.get("renamed", [])
    lines += [
        f"  {one['path']} is written as {one['name']}: a program that works in this folder would obey it"
        for one in renamed[:SHOWN_NAMES]
    ]
    if len(renamed) > SHOWN_NAMES:
        lines.append(f"  and {len(renamed) - SHOWN_NAMES} more such names; --json lists them")
    return lines


def _show_action(run: Run, report: JobAction | Confirmation | Unlocking, done: str) -> None:
    text = "a dry run: nothing was sent" if report["dry_run"] else f"job {report['job'][:14]} {done}"
    # Each transaction was told when it was mined.
    run.out.emit(report, lambda: [text], [facts["tx"] for facts in report["transactions"]])


_CANCELLED = {
    "cancelled": "what was open is refunded",
    "closing": "what ran ends after its notice",
    "submitted": "a result that is in is settled as any other",
}
"""What a cancel comes to for a job's units, by the chain's name of their state."""


@job.command("cancel", cls=ActingLeaf)
@click.argument("job")
@click.option("--unit", type=click.IntRange(0), help="Only this unit.")
def job_cancel(run: Run, job: str, unit: int | None) -> None:
    """Cancel a job: what is open is refunded, what runs is given notice."""
    report = run.client.jobs.cancel(job, unit=unit)
    meant = "; ".join(words for state, words in _CANCELLED.items() if state in report["counts"])
    done = "is cancelled" if unit is None else f"goes on without unit {unit}"
    _show_action(run, report, f"{done}: {report['counts_text']}; {meant}")


@job.command("accept", cls=ActingLeaf)
@click.argument("job")
@click.option("--unit", type=click.IntRange(0), help="Only this unit.")
def job_accept(run: Run, job: str, unit: int | None) -> None:
    """Accept submitted results, which settles them at once."""
    _show_action(run, run.client.jobs.accept(job, unit=unit), "is settled for the results that were accepted")


@job.command("top-up", cls=ActingLeaf)
@click.argument("job")
@click.option("--time", required=True, metavar="TIME", help="How much longer it may run, such as 30m.")
@click.option("--unit", type=click.IntRange(0), help="This unit; by default the only one that runs.")
@click.option("--again", is_flag=True, help="Give the same unit the same time once more.")
def job_top_up(run: Run, job: str, time: str, unit: int | None, again: bool) -> None:
    """Give a unit that runs more time, for what its price grows by. Its job has to bill metered.

    \b
    The same TIME is given to the same unit once, however often this is called; --again gives it once more.
    """
    report = run.client.jobs.top_up(job, time, unit=unit, again=again)
    sent = report["transactions"][-1]["tx"]
    run.out.emit(report, lambda: [_topped_up_line(report)], [sent])


def _topped_up_line(report: TopUp) -> str:
    """Say what a top-up came to: how long the unit may run now, and the most that it can cost."""
    which = f"unit {report['unit']} of job {report['job'][:14]}"
    length, end = format_duration(report["seconds"]), report["deadline_text"]
    if report["dry_run"]:
        return f"would give {which} {length} more for {report['amount_text']}, until {end} (--dry-run)"
    most = f"it may run until {end}, and cost {report['price_text']} at most"
    if report["already_sent"]:
        sent = report["transactions"][-1]["tx"]
        return f"an earlier call gave {which} {length} more in {sent}: {most}; --again gives it once more"
    return f"{which} has {length} more for {report['amount_text']}: {most}"


@job.command("unlock", cls=ActingLeaf)
@click.argument("job")
def job_unlock(run: Run, job: str) -> None:
    """Start a job whose parents have ended as asked, or have it refunded. Anyone may, for a keeper fee."""
    report = run.client.jobs.unlock(job)
    opened = "waits for a machine: what it waited for has ended as asked"
    refunded = "is refunded: a job that it waited for ended otherwise than asked"
    done = f"{opened if report['opens'] else refunded}; {report['fee_text']} of credit for unlocking it"
    _show_action(run, report, done)


@job.command("attest", cls=ActingLeaf)
@click.argument("job")
@click.option("--unit", "units", multiple=True, type=click.IntRange(0), help="Only this unit; may be repeated.")
@click.option("--result", "seen", metavar="CID", multiple=True, help="Sign this result alone; may be repeated.")
@click.option("--attesters", metavar="FILE", type=FILE, help="The job's set: this account must be in it.")
@click.option("--out", metavar="FILE", type=OUT, help="Write the signatures there; by default they are printed.")
def job_attest(
    run: Run, job: str, units: tuple[int, ...], seen: tuple[str, ...], attesters: Path | None, out: Path | None
) -> None:
    """Sign a job's submitted results, as one of its attesters. Sends nothing; hearth job confirm takes the file."""
    import json

    report = run.client.jobs.attest(job, units, seen=seen, attesters=attesters, out=out)

    def text() -> list[str]:
        if run.dry_run:
            return ["a dry run: nothing was signed"]
        if out is None:
            return json.dumps(report, indent=2).splitlines()
        count = len(report["results"])
        what = f"{count} result{'s' * (count > 1)} of job {report['job'][:14]}"
        then = f"hearth job confirm {report['job'][:14]} {out} --attesters {attesters or 'FILE'}"
        return [f"{report['signer']} signed {what} into {out}", f"  {then}"]

    run.out.emit(report, text, [row["signature"] for row in report["results"]])


@job.command("confirm", cls=ActingLeaf)
@click.argument("job")
@click.argument("signatures", metavar="FILE...", nargs=-1, required=True, type=FILE)
@click.option("--unit", "units", multiple=True, type=click.IntRange(0), help="Only this unit; may be repeated.")
@click.option("--attesters", metavar="FILE", type=FILE, required=True, help="The job's set of attesters.")
@click.option("--payee", metavar="ADDRESS", help="Who gets the settler's pay; this account by default.")
def job_confirm(
    run: Run, job: str, signatures: tuple[Path, ...], units: tuple[int, ...], attesters: Path, payee: str | None
) -> None:
    """Have results paid for that enough attesters signed. FILE is what hearth job attest wrote; anyone may send it."""
    report = run.client.jobs.confirm(job, units, signatures, attesters=attesters, payee=payee)
    many = len(report["units"]) > 1
    which = f"unit{'s' * many} {', '.join(map(str, report['units']))}"
    _show_action(run, report, f"is settled for {which}, as enough attesters signed")


@job.command("rerun", cls=ActingLeaf)
@click.argument("job")
@click.option("--wait/--detach", default=False, help="Wait for the end.")
@click.option("--anyway", is_flag=True, help="Post it though no worker can take it now.")
@click.option("--use-credit", is_flag=True, help="Pay from this account's credit in Escrow first.")
def job_rerun(run: Run, job: str, wait: bool, anyway: bool, use_credit: bool) -> int:
    """Post a job's terms again, as a new job. It runs at once, whatever the old one waited for."""
    return _show_submitted(run, run.client.jobs.posting.rerun(job, wait=wait, anyway=anyway, use_credit=use_credit))


@job.command("receipt", cls=Leaf)
@click.argument("job")
def job_receipt(run: Run, job: str) -> None:
    """Show where a job's money went, and every transaction with its gas."""
    report = run.client.jobs.receipt(job)

    def text() -> list[str]:
        lines = [f"{name}: {amount}" for name, amount in report["text"].items()]
        rows = [
            (one["event"], one["tx"], one["block"], f"{one['gas']:,}", one["from"]) for one in report["transactions"]
        ]
        if int(report["refunded"]):
            lines.append("refunds are credit in Escrow: hearth wallet withdraw, or --use-credit with the next job")
        return [*lines, *table(("event", "transaction", "block", "gas", "sender"), rows)]

    run.out.emit(report, text, [one["tx"] for one in report["transactions"]])
