"""Start a keeper: `python -m keeper --config keeper.toml`.

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
from hearth.daemon.logs import configure_logs
from hearth.daemon.loop import harden, stop_on_signals

if TYPE_CHECKING:
    from keeper.settings import Settings
    from keeper.shell import Keeper

STALL_SECONDS = 180.0
"""Without the end of a cycle for this long, /healthz asks for a restart."""


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


def open_keeper(settings: Settings, stack: ExitStack) -> Keeper:
    """Build a keeper with its chain port, its key and its health; what it holds is released when `stack` ends.

    Without an account it is a dry run, which writes nothing.
    """
    from hearth.base.files import make_private
    from hearth.chain.rpc import Web3Chain
    from hearth.config.settings import Settings as Outer
    from hearth.config.settings import open_network, rpc_urls
    from hearth.daemon.signer import open_sender, read_account, sender_config
    from hearth.protocol import units
    from keeper.health import Health
    from keeper.shell import Keeper

    outer = Outer(home=settings.home, network=settings.network, rpc=settings.rpc)
    network = open_network(outer)
    port = Web3Chain(rpc_urls(outer, network), chain_id=network.chain_id, genesis_hash=network.genesis_hash)
    sender = None
    if settings.account is not None:
        make_private(settings.home)
        key, account = read_account(settings.account.keystore, settings.account.password_file)
        wait = float(units.parse_duration(settings.limits.wait))
        paying = sender_config(network, max_fee=settings.limits.max_gas_wei, timeout=wait)
        sender = stack.enter_context(open_sender(port, network, key, account, home=settings.home, config=paying))
    return Keeper(settings, network, port, sender, Health(STALL_SECONDS))


def run(keeper: Keeper, stack: ExitStack, cycles: int | None = None) -> None:
    """Run a keeper until SIGTERM, SIGINT or a number of cycles, with its probes where its settings say."""
    keeper.start()
    address = keeper.settings.metrics.address
    if address is not None:
        stack.callback(keeper.health.serve(address).close)
    stop_on_signals(keeper.stop)
    keeper.run(cycles)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the keeper until it is told to stop; return the exit status."""
    options = _parser().parse_args(argv)
    configure_logs(options.json)
    harden()
    try:
        with ExitStack() as stack:
            _run(options, stack)
    except HearthError as error:
        if options.json:
            print(json.dumps(error.as_dict()))
        else:
            print(f"{error.code}: {error.message}" + (f"\n  {error.hint}" if error.hint else ""), file=sys.stderr)
        return error.exit_code
    return 0


def _run(options: argparse.Namespace, stack: ExitStack) -> None:
    settings = settings_of(options)
    if options.explain:
        _explain(settings, options.explain, stack)
        return
    run(open_keeper(settings, stack), stack, options.cycles)


def _explain(settings: Settings, job: str, stack: ExitStack) -> None:
    from hearth.base.errors import UsageError
    from hearth.protocol.types import JobId
    from keeper.report import explain

    try:
        number = bytes.fromhex(job.removeprefix("0x"))
    except ValueError:
        number = b""
    if len(number) != 32:
        raise UsageError(f"{job} is no job id: 0x and 64 hex digits", hint="hearth jobs --all", component="keeper")
    keeper = open_keeper(settings.model_copy(update={"account": None}), stack)
    keeper.market.check()
    print(json.dumps(explain(keeper, JobId(number)), indent=2))


if __name__ == "__main__":
    sys.exit(main())
