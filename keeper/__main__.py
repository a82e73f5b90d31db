"""Start a keeper: `python -P -m keeper --config keeper.toml`.

Settings are read and checked here, once; everything below gets them handed in. Exit codes are those of the errors in
hearth.base.errors; 0 after SIGTERM, SIGINT or the asked number of cycles.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hearth.base.errors import HearthError
from hearth.base.files import refusal_of
from hearth.daemon.logs import configure_logs
from hearth.daemon.loop import harden

if TYPE_CHECKING:
    from keeper.settings import Settings


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="keeper", description="Keep a Hearth market moving, and be paid for it.")
    parser.add_argument("--config", type=Path, required=True, metavar="keeper.toml")
    parser.add_argument("--network", help="name or path of the network file, in place of the configured one")
    parser.add_argument("--rpc", action="append", help="RPC URL in place of the configured ones; may be repeated")
    parser.add_argument("--metrics", metavar="HOST:PORT", help="where to serve metrics and probes; empty for nowhere")
    parser.add_argument("--dry-run", action="store_true", help="send nothing, say what would be sent")
    parser.add_argument("--cycles", type=int, help="stop after this many cycles")
    parser.add_argument("--explain", metavar="JOB", help="print what is done about one job and why, then stop")
    parser.add_argument("--json", action="store_true", help="log JSON lines; errors are printed as JSON")
    return parser


def settings_of(options: argparse.Namespace) -> Settings:
    """Return the settings of the file with the flags on top."""
    from hearth.config.sections import network_of
    from keeper.settings import load, parse

    settings = load(options.config)
    changes: dict[str, Any] = {}
    if options.network:
        changes["network"] = network_of(options.network, Path.cwd())
    if options.rpc:
        changes["rpc"] = tuple(options.rpc)
    if options.metrics is not None:
        changes["metrics"] = {"listen": options.metrics}
    if options.dry_run:
        changes["account"] = None
    if not changes:
        return settings
    return parse({**settings.model_dump(), **changes}, options.config)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the keeper until it is told to stop; return the exit status."""
    options = _parser().parse_args(argv)
    configure_logs(options.json)
    harden()
    try:
        with ExitStack() as stack:
            _run(options, stack)
    except (HearthError, OSError) as error:
        said = refusal_of(error) if isinstance(error, OSError) else error
        if options.json:
            print(json.dumps(said.as_dict()))
        else:
            print(f"{said.code}: {said.message}" + (f"\n  {said.hint}" if said.hint else ""), file=sys.stderr)
        return said.exit_code
    return 0


def _run(options: argparse.Namespace, stack: ExitStack) -> None:
    from hearth.daemon.reload import Reloader
    from keeper.process import open_keeper, run_keeper
    from keeper.settings import LIVE

    # Before anything else: a SIGHUP that nobody takes ends a process.
    reloader = Reloader(options.config, lambda path: settings_of(options), LIVE)
    reloader.listen(lambda: None)
    settings = settings_of(options)
    if options.explain:
        _explain(settings, options.explain, stack)
        return
    run_keeper(open_keeper(settings, stack), stack, options.cycles, reloader)


def _explain(settings: Settings, job: str, stack: ExitStack) -> None:
    from hearth.base.errors import UsageError
    from hearth.protocol.types import JobId
    from keeper.process import open_keeper
    from keeper.report import explain

    try:
        number = bytes.fromhex(job.removeprefix("0x"))
    except ValueError:
        number = b""
    if len(number) != 32:
        raise UsageError(f"{job} is no job id: 0x and 64 hex digits", hint="hearth jobs --all", component="keeper")
    keeper = open_keeper(settings.model_copy(update={"account": None}), stack)
    keeper.market.identity.check()
    print(json.dumps(explain(keeper, JobId(number)), indent=2))


if __name__ == "__main__":
    sys.exit(main())
