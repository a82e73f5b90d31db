"""Commands that need no market, or make one: demo, init, doctor, devnet, completion."""

from __future__ import annotations

from pathlib import Path

import click

from hearth.base.errors import UsageError
from hearth.base.text import quoted
from hearth.cli.leaf import ActingLeaf, Leaf, Run
from hearth.cli.output import check_lines
from hearth.cli.root import Group
from hearth.local import templates
from hearth.local.market import LocalMarket


@click.command(cls=Leaf)
@click.option("--keep", is_flag=True, help="Keep the chain and the files of the demo.")
@click.option("--port", type=click.IntRange(0, 65_535), default=0, help="Port of the local chain; 0 picks a free one.")
@click.option("--web", is_flag=True, help="Then let the market go on and serve its page, until Ctrl-C.")
def demo(run: Run, keep: bool, port: int, web: bool) -> int:
    """Show the market at work on a local chain of its own: workers, a keeper, jobs, results, books.

    With --rpc the chain is one that runs already, such as a geth in developer mode: of the chain id of local ones, its
    public accounts rich.
    """
    import json

    from hearth.local.demo import run_demo

    if port and run.given["rpc"]:
        raise UsageError("--port is of the demo's own chain, and --rpc names another", hint="leave one of them out")
    report = run_demo(run.client.session.tell, keep=keep, port=port, rpc=run.given["rpc"] or (), web=web)
    # One JSON line whatever the options: it is what the demo is read by.
    print(json.dumps(report), flush=True)
    return 0 if report["solvent"] and "unread" not in report and "strays" not in report else 1


@click.command(cls=Leaf)
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path), required=False)
@click.option(
    "--template",
    type=click.Choice(templates.names()),
    default=templates.DEFAULT,
    show_default=True,
    help="The kind of job.",
)
def init(run: Run, folder: Path | None, template: str) -> None:
    """Write a project to start from: hearth.toml, a job file and its program; what exists is left alone."""
    from hearth.local.project import write_project

    settings = run.client.session.settings
    report = write_project(folder, template, network=settings.network, dry_run=run.dry_run, trust=settings.trust)

    def text() -> list[str]:
        made = "would write" if report["dry_run"] else "wrote"
        return [*(f"{made} {name}" for name in report["written"]), *(f"kept {name}" for name in report["kept"])]

    run.out.emit(report, text, report["written"])


@click.command(cls=Leaf)
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(dir_okay=False, path_type=Path))
def trust(run: Run, files: tuple[Path, ...]) -> None:
    """Use settings and network files that were found in a folder: read them first.

    \b
    A hearth.toml, a worker.toml or a network file that nobody named could choose whom you pay. It counts where it lies
    and as it stands: once it is moved or changed, it is asked about again.
    """
    from hearth.local.project import trust_files

    report = trust_files(files, dry_run=run.dry_run)
    done = "would use" if report["dry_run"] else "uses"
    run.out.emit(
        report, lambda: [f"hearth {done} {quoted(path)} as it stands" for path in report["trusted"]], report["trusted"]
    )


@click.command(cls=ActingLeaf)
@click.option("--all", "everything", is_flag=True, help="Show what passes, too.")
def doctor(run: Run, everything: bool) -> int:
    """Look at what this machine needs to submit jobs: settings, network, RPC, account, store, container engine."""
    report = run.client.doctor()
    run.out.emit(report, lambda: check_lines(report["checks"], everything), [report["result"]])
    return 3 if report["result"] == "FAIL" else 0


@click.group(cls=Group)
def devnet() -> None:
    """Run a local chain with the market on it."""


@devnet.command("up", cls=Leaf)
@click.option("--port", type=click.IntRange(1, 65_535), default=8545, show_default=True)
@click.option("--erc20", is_flag=True, help="A market that pays in a test token.")
@click.option("--block-time", type=click.IntRange(1, 60), default=1, show_default=True, help="Seconds per block.")
def devnet_up(run: Run, port: int, erc20: bool, block_time: int) -> None:
    """Start it, deploy the market, and make keys of its public accounts; again, it finds what runs."""
    report = LocalMarket(run.client.session).up(port=port, erc20=erc20, block_time=block_time)

    def text() -> list[str]:
        return [
            f"chain {report['url']}  process {report['pid']}",
            f"network file {report['network_file']}",
            *(f"{name} {address}" for name, address in report["contracts"].items()),
            *(f"key {key['name']} {key['address']}" for key in report["keys"]),
        ]

    run.out.emit(report, text, [report["url"]])


@devnet.command("down", cls=Leaf)
@click.option("--wipe", is_flag=True, help="Forget the chain as well.")
def devnet_down(run: Run, wipe: bool) -> None:
    """Stop it; its state is kept."""
    report = LocalMarket(run.client.session).down(wipe=wipe)
    run.out.emit(report, lambda: ["stopped" if report["stopped"] else "it did not run"])


@devnet.command("fund", cls=Leaf)
@click.argument("who", metavar="[NAME|ADDRESS]", required=False)
@click.argument("amount", required=False)
def devnet_fund(run: Run, who: str | None, amount: str | None) -> None:
    """Give play money of the running local chain to an account, by default this one.

    \b
    Without AMOUNT coin and, where the market pays in a test token, some of it.
    """
    report = LocalMarket(run.client.session).fund(who, amount)
    done = "would give" if report["dry_run"] else "gave"
    given = " and ".join(one["amount_text"] for one in report["given"])
    run.out.emit(report, lambda: [f"{done} {given} to {report['address']}"], report["transactions"])


@click.command(cls=Leaf)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(run: Run, shell: str) -> None:
    """Print the completion script of a shell: eval "$(hearth completion bash)"."""
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None, "click completes every shell of the choice"
    script = kind(click.get_current_context().find_root().command, {}, "hearth", "_HEARTH_COMPLETE").source()
    run.out.emit({"schema": "hearth.completion/1", "shell": shell, "script": script}, script.splitlines)
