"""A keeper as a process: put together from its settings, run until it is told to stop."""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import Final

import structlog

from hearth.base.files import make_private
from hearth.chain.rpc import RpcChain
from hearth.config.settings import Settings as Outer
from hearth.config.settings import home_folder, open_network, rpc_urls
from hearth.daemon.logs import set_level
from hearth.daemon.loop import stop_on_signals
from hearth.daemon.reload import Reloader
from hearth.daemon.signer import open_sender, read_account, sender_config
from hearth.market.network import Network
from hearth.protocol import units
from keeper.health import KeeperHealth
from keeper.loop import Keeper
from keeper.settings import Settings

log = structlog.get_logger("keeper")

STALL_SECONDS: Final = 180.0
"""Without the end of a cycle for this long, /healthz asks for a restart."""


def port_of(settings: Settings, network: Network) -> RpcChain:
    """Return the port to the chain, which asks nobody yet."""
    outer = Outer(home=settings.home, network=settings.network, rpc=settings.rpc)
    return RpcChain(
        rpc_urls(outer, network),
        chain_id=network.chain_id,
        genesis_hash=network.genesis_hash,
        on_fault=lambda name, why: log.warning("rpc.set_aside", provider=name, why=why),
    )


def open_keeper(settings: Settings, stack: ExitStack) -> Keeper:
    """Build a keeper with its chain port, its key and its health; what it holds is released when `stack` ends.

    Without an account it is a dry run, which writes nothing.
    """
    network = open_network(Outer(home=settings.home, network=settings.network, rpc=settings.rpc))
    port = port_of(settings, network)
    sender = None
    if settings.account is not None:
        make_private(settings.home)
        key, account = read_account(settings.account.keystore, settings.account.password_file)
        wait = float(units.parse_duration(settings.limits.wait))
        limits = settings.limits
        paying = sender_config(network, max_fee=limits.max_gas_wei, day_budget=limits.day_budget, timeout=wait)
        user_home = home_folder(os.environ)
        opened = open_sender(
            port, network, key, account, home=settings.home, user_home=user_home, config=paying, service=True
        )
        sender = stack.enter_context(opened)
    keeper = Keeper(settings, network, port, sender, KeeperHealth(STALL_SECONDS))

    def adopt(new: Settings) -> None:
        changed = new.rpc != keeper.settings.rpc
        fresh = port_of(new, network)
        if changed:
            fresh.verify()
        keeper.take_up(new)
        if changed:
            port.ask_instead(fresh)
        set_level(new.log_level)

    keeper.adopt = adopt
    return keeper


def run_keeper(
    keeper: Keeper, stack: ExitStack, cycles: int | None = None, reloader: Reloader[Settings] | None = None
) -> None:
    """Run a keeper until SIGTERM, SIGINT or a number of cycles, with its probes where its settings say.

    With a `reloader` it takes up changed settings.
    """
    set_level(keeper.settings.log_level)
    keeper.reloader = reloader
    keeper.start()
    metrics = keeper.settings.metrics
    if metrics.address is not None:
        stack.callback(keeper.health.serve(metrics.address, metrics.hosts).close)
    stop_on_signals(keeper.stop)
    keeper.run(cycles)
