"""Open everything that a worker needs and put it together."""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import structlog

from hearth.base.errors import ConfigError

if TYPE_CHECKING:
    from hearth.market.network import Network
    from hearth.storage.stores import Store
    from worker.settings import Settings
    from worker.shell import Worker

log = structlog.get_logger("worker")


def build(settings: Settings, stack: ExitStack, overrides: dict[str, Any] | None = None) -> Worker:
    """Open everything that a worker needs and put it together; `stack` closes it again. Raises HearthError.

    `overrides` replaces fields of the loop's `Config` and of `SenderConfig`, and `rpc_timeout` (seconds per request),
    for tests of a worker in this process.

    One function because each part is opened once, from those before it, and `stack` closes them in the reverse order.
    """
    from hearth.base.files import make_private
    from hearth.chain.rpc import Web3Chain
    from hearth.config.settings import asset_of
    from hearth.daemon.health import Server
    from hearth.daemon.signer import open_sender, read_account, sender_config
    from hearth.market.reads import Market
    from hearth.protocol.gpu_tiers import TIERS
    from hearth.protocol.runtimes import RUNTIMES
    from worker import gpu
    from worker.attempt.executor import Executor
    from worker.attempt.task import Bounds
    from worker.decide import Config
    from worker.journal import Journal
    from worker.metrics import Metrics
    from worker.settings import chosen_gpus, runtimes_of
    from worker.shell import Told, Worker
    from worker.watch import find_node

    network = open_network(settings)
    key, account = read_account(settings.account.keystore, settings.account.password_file)
    home = make_private(settings.home)
    changes = overrides or {}
    port = Web3Chain(
        settings.rpc or network.rpc,
        changes.get("rpc_timeout", 10.0),
        chain_id=network.chain_id,
        genesis_hash=network.genesis_hash,
    )
    market = Market(port, network)
    market.check()
    node = find_node(market, settings.node, key.address, port.head().hash)
    if node is None:
        raise ConfigError(
            f"no node is registered for the key {key.address}",
            hint="hearth worker register",
            code="NO_NODE",
            component="worker",
        )
    paying = _changed(sender_config(network, max_fee=settings.max_gas_wei), changes)
    sender = stack.enter_context(open_sender(port, network, key, account, home=home, config=paying))
    store = open_stores(settings)
    stack.callback(store.close)
    scratch = home / "tmp"
    scratch.mkdir(mode=0o700, exist_ok=True)
    wished = settings.offer.runtimes
    runtimes = {
        name: sandbox
        for name, sandbox in runtimes_of(settings, scratch).items()
        if (wished is None or name in wished) and sandbox.available()[0]
    }
    gpus = chosen_gpus(settings.offer, gpu.probe()) if node.offer.gpu_count else ()
    for name, kind in RUNTIMES.items():
        if node.offer.runtimes & kind.flag and name not in runtimes:
            log.warning("the node offers a runtime that does not work here", runtime=name, fix="hearth worker doctor")
    attempts = Journal(home / "work.db")
    stack.callback(attempts.close)
    if attempts.put_aside is not None:
        log.warning("the journal was unreadable and is put aside", path=str(attempts.put_aside))
    executor = Executor(
        journal=attempts,
        store=store,
        home=home,
        runtimes=runtimes,
        node=node.id,
        label=f"{network.chain_id}-{network.genesis_hash.hex()[:6]}-{node.id}-",
        tiers=TIERS,
        bounds=Bounds(settings.max_input_bytes, settings.max_output_bytes),
        keep_seconds=settings.keep_seconds,
        gpus=[item.uuid for item in gpus],
        machine={"cores": os.cpu_count() or 1, "gpus": [{"name": item.name, "driver": item.driver} for item in gpus]},
    )
    asset = asset_of(network)
    accept = settings.accept
    dead_after = network.node_parameters.dead_after
    config = Config(
        beat_every=max(1, dead_after // 3),
        # Slots whose GPU is gone are not promised.
        max_slots=len(gpus) // node.offer.gpu_count if node.offer.gpu_count else node.offer.slots,
        min_rate=settings.min_rate(asset),
        max_seconds=settings.max_runtime_seconds,
        max_output_bytes=settings.max_output_bytes,
        images=accept.images,
        modules=accept.modules,
        submitters_refused=frozenset(accept.refuse_submitters),
        verifiers=frozenset(accept.verifiers),
        confirmations=accept.confirmations,
        propose=accept.propose,
        propose_after=settings.propose_after_seconds,
        settle_after=settings.settle_after_seconds,
        withdraw_at=settings.withdraw_threshold(asset),
        runtimes=frozenset(runtimes),
    )
    told = Told(
        node=node.id,
        settings=settings,
        chain_id=network.chain_id,
        native=network.asset.address is None,
        config=_changed(config, changes),
        # Several looks per beat, several blocks per look on a fast chain.
        poll=min(2.0, dead_after / 12),
    )
    metrics = Metrics()
    worker = Worker(
        told,
        market=market,
        sender=sender,
        journal=attempts,
        executor=executor,
        store=store,
        tiers=TIERS,
        metrics=metrics,
    )
    executor.on_change = worker.wake.set
    address = settings.metrics.address
    if address is not None:
        stack.callback(Server(address, metrics.registry, metrics.health, component="worker").close)
    return worker


def _changed(value: Any, changes: dict[str, Any]) -> Any:
    from dataclasses import fields, replace

    return replace(value, **{f.name: changes[f.name] for f in fields(value) if f.name in changes})


def open_network(settings: Settings) -> Network:
    """Read the network file that the settings name. Raises ConfigError."""
    from hearth.config.settings import load_settings
    from hearth.config.settings import open_network as open_chosen

    return open_chosen(load_settings({"network": settings.network}))


def open_stores(settings: Settings) -> Store:
    """Open the stores: one as it is; several are read in order, and the first two that can be written get results."""
    from hearth.storage.stores import Chain, open_store

    stores = [open_store(url) for url in settings.stores]
    return stores[0] if len(stores) == 1 else Chain(stores, mirrors=1)
