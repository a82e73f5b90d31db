"""Start a keeper: `python -m keeper --config keeper.toml`.

Settings are read and checked here, once; everything below gets them handed in. Exit codes are those of the errors in
hearth.base.errors; 0 after SIGTERM, SIGINT or the asked number of cycles.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structlog

from hearth.base.errors import HearthError

if TYPE_CHECKING:
    from hearth.chain.tx import Sender
    from hearth.market.network import Network
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
    """Build a keeper with its chain port, its key and its health; what it holds is released when `stack` ends."""
    from hearth.base.files import make_private
    from hearth.chain.rpc import Web3Chain
    from hearth.config.settings import Settings as Outer
    from hearth.config.settings import open_network, rpc_urls
    from keeper.health import Health
    from keeper.shell import Keeper

    outer = Outer(home=settings.home, network=settings.network, rpc=settings.rpc)
    network = open_network(outer)
    make_private(settings.home)
    port = Web3Chain(rpc_urls(outer, network), chain_id=network.chain_id, genesis_hash=network.genesis_hash)
    sender = _sender(settings, network, port, stack)
    return Keeper(settings, network, port, sender, Health(settings.home, STALL_SECONDS))


def _sender(settings: Settings, network: Network, port: Any, stack: ExitStack) -> Sender | None:
    if settings.account is None:
        return None
    from hearth.chain.keys import SignerLock, read_key, read_password, unlock
    from hearth.chain.tx import Sender, SenderConfig
    from hearth.chain.tx_journal import Journal
    from hearth.protocol import units

    key = read_key(settings.account.keystore)
    account = unlock(key, read_password(settings.account.password_file))
    # Service managers hand keys over in folders that cannot be written: there the state folder holds the lock.
    lock = key.lock_path if os.access(key.lock_path.parent, os.W_OK) else settings.home / key.lock_path.name
    stack.enter_context(SignerLock(lock))
    path = Journal.path_in(settings.home, network.chain_id, network.genesis_hash, key.address)
    journal = Journal(path, chain_id=network.chain_id, genesis_hash=network.genesis_hash, address=key.address)
    stack.callback(journal.close)
    config = SenderConfig(
        max_fee=settings.limits.max_gas_wei,
        timeout=float(units.parse_duration(settings.limits.wait)),
        poll=min(0.5, settings.poll),
    )
    return Sender(port, account, journal, config, chain_id=network.chain_id)


def _log_to_stderr(as_json: bool) -> None:
    render: Any = structlog.processors.JSONRenderer() if as_json else structlog.dev.ConsoleRenderer(colors=False)
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            render,
        ],
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the keeper until it is told to stop; return the exit status."""
    options = _parser().parse_args(argv)
    _log_to_stderr(options.json)
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
    from keeper.health import Server

    settings = settings_of(options)
    if options.explain:
        _explain(settings, options.explain, stack)
        return
    keeper = open_keeper(settings, stack)
    keeper.start()
    if settings.metrics.address is not None:
        server = Server(keeper.health, settings.metrics.address)
        stack.callback(server.close)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: keeper.stop())
    keeper.run(options.cycles)


def _explain(settings: Settings, job: str, stack: ExitStack) -> None:
    from hearth.base.errors import UsageError
    from hearth.protocol.types import JobId
    from keeper.shell import explain

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
