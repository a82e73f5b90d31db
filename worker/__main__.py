"""Run a worker: `python -P -m worker --config worker.toml`, what `hearth worker start` does as well.

Refuses to start on another chain or contracts than the network file's, with a key that others can read or that another
process uses, in the home of another worker, or for a node that another key operates. Exit 0 after SIGTERM, SIGINT or a
drain; else the error's code.
"""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hearth.base.errors import HearthError
from hearth.base.files import refusal_of
from hearth.daemon.logs import configure_logs
from hearth.daemon.loop import harden, stop_on_signals

if TYPE_CHECKING:
    from hearth.market.network import Network
    from worker.settings import Settings


def start(
    config: Path, found: Settings | None = None, network: Network | None = None, operator: str | None = None
) -> None:
    """Run the worker of a worker.toml until it is told to stop. Raises HearthError.

    What it says, the market and the address of the key are given where they were asked about.
    """
    from hearth.daemon.logs import set_level
    from hearth.daemon.reload import Reloader
    from worker import settings
    from worker.build import build

    reloader = Reloader(config, settings.load, settings.LIVE)
    with ExitStack() as stack:
        # Before anything else: a SIGHUP that nobody takes ends a process.
        reloader.listen(lambda: None)
        found = settings.load(config) if found is None else found
        set_level(found.log_level)
        worker = build(found, stack, network=network, operator=operator)
        take_up = worker.adopt

        def adopt(new: settings.Settings) -> None:
            take_up(new)
            set_level(new.log_level)

        def stop() -> None:
            worker.stop.set()
            worker.wake.set()

        worker.reloader, worker.adopt = reloader, adopt
        reloader.listen(worker.wake.set)
        stop_on_signals(stop)
        worker.run()


@click.command()
@click.option("--config", type=click.Path(dir_okay=False, path_type=Path), required=True, metavar="worker.toml")
@click.option("--json", "as_json", is_flag=True, help="Log JSON lines, and errors as JSON.")
def main(config: Path, as_json: bool) -> None:
    """Work for the market with this machine."""
    configure_logs(as_json)
    harden()
    try:
        start(config)
    except (HearthError, OSError) as error:
        said = refusal_of(error) if isinstance(error, OSError) else error
        if as_json:
            click.echo(json.dumps(said.as_dict()), err=True)
        else:
            click.echo(f"error: {said.message}\n{said.hint}".rstrip(), err=True)
        sys.exit(said.exit_code)


if __name__ == "__main__":
    main()
