"""Open what a worker needs, each part from those before it, and put it together."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import fields, replace
from functools import partial, reduce
from operator import or_
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, TypeVar

import structlog

from hearth import __version__
from hearth.base.errors import ChainError, ConfigError, HearthError, NotFoundError
from hearth.base.files import Spare, make_private, nearest
from hearth.base.urls import folder_of
from hearth.chain.keys import KeyFile, SignerLock
from hearth.chain.providers import OnFault
from hearth.chain.rpc import RpcChain
from hearth.chain.tx import SenderConfig
from hearth.chain.tx_journal import TxJournal
from hearth.config.settings import Settings as Outer
from hearth.config.settings import asset_of, home_folder
from hearth.config.settings import open_network as open_chosen
from hearth.daemon.health import Server
from hearth.daemon.signer import lock_path, open_sender, read_account, sender_config, shared_lock
from hearth.market.network import Network
from hearth.market.reads import Market
from hearth.protocol.gpu_tiers import NVIDIA, vendor_of
from hearth.protocol.runtimes import DOCKER, RUNTIMES
from hearth.protocol.types import ZERO_ADDRESS, Node, NodeId
from hearth.protocol.types import Runtime as RuntimeFlag
from hearth.protocol.units import show_rate
from hearth.storage.stores import Chain, Store, open_store
from worker.attempt.attempt import Means
from worker.attempt.executor import Executor, make_room
from worker.attempt.folder import folders_in
from worker.attempt.task import Bounds
from worker.cgroups import usable_cores
from worker.decide import Config, TrustedJudge
from worker.disk import Disk
from worker.gateway import serving, store_manifest
from worker.gpu import probing
from worker.gpu.figures import lacking_figures, measured_now
from worker.gpu.locks import Locks
from worker.gpu.pool import Pool
from worker.gpu.port import GpuInfo
from worker.home import GLANCE_SECONDS, OWN_HOME, hold
from worker.journal import AttemptJournal
from worker.loop import Told, Worker
from worker.machine import announce, home_of, others, overbooked, room_of, share_of
from worker.metrics import WorkerMetrics
from worker.registered import differences
from worker.runtimes.base import Runtime
from worker.runtimes.docker import DockerRuntime
from worker.settings import (
    DOCTOR,
    INIT,
    MEND_CODE,
    MEND_RPC,
    Accept,
    Settings,
    given_gpus,
    operator_key,
    probe_offer,
    promised_gpu,
    refuse_unknown_runtime,
    runtimes_of,
)
from worker.status import read_status
from worker.volumes import mounted, size_of, volumes_of
from worker.watch import NEW_OPERATOR, find_node, may_serve, refuse_anothers_node

if TYPE_CHECKING:
    from eth_account.signers.local import LocalAccount

    from hearth.chain.port import BlockRef
    from worker.reports import WorkerProcess

log = structlog.get_logger("worker")

T = TypeVar("T", Config, SenderConfig)


def build(
    settings: Settings,
    stack: ExitStack,
    overrides: Mapping[str, Any] | None = None,
    *,
    dry_run: bool = False,
    network: Network | None = None,
    operator: str | None = None,
) -> Worker:
    """Return a worker that has not begun; `stack` closes what it needs, in the reverse order. Raises HearthError.

    In a dry run it may look and never work: its home is a throwaway folder, and neither the key nor the home is held.

    `overrides` replaces fields of the loop's `Config` and of `SenderConfig`, and `rpc_timeout` (seconds per request),
    for tests of a worker in this process. `network` is the market of the settings and `operator` the address that
    works, where they were asked about.
    """
    changes = overrides or {}
    network = open_network(settings) if network is None else network
    key, account = unlocked(settings, operator)
    disk, lock, user_home = Disk(settings.home, settings.reserve_bytes), lock_path(key, settings.home), _user_home()
    refuse_in_use(settings.home, network, key)
    if dry_run:
        hold(disk.home).refuse_held()
        home = Path(stack.enter_context(TemporaryDirectory(prefix="hearth-dry-run-")))
        settings, lock, user_home = settings.model_copy(update={"home": home}), home / lock.name, home
    home, metrics = make_private(settings.home), WorkerMetrics()
    on_fault, rpc_timeout = partial(_on_fault, metrics), changes.get("rpc_timeout", 10.0)
    market = market_of(settings, network, rpc_timeout, on_fault)
    node = node_of(settings, disk.home, market, key.address)
    stack.enter_context(hold(home))
    runtimes = sandboxes_of(settings, node, home)
    if not dry_run:
        # Before any journal is opened: on a full disk its room must come first.
        for note in make_room(folders_in(home), runtimes, label_of(network, node)):
            log.info("recovered", what=note)
    spare = Disk(home, 0).spare
    paying = _changed(_paying(sender_config(network, settings.max_gas_wei), settings), changes)
    places: dict[str, Any] = {"home": home, "user_home": user_home, "lock": lock, "wait_seconds": GLANCE_SECONDS}
    sender = stack.enter_context(
        open_sender(market.port, network, key, account, **places, config=paying, service=True, spare=spare)
    )
    store = stack.enter_context(closing(open_stores(settings)))
    gpus = pool_of(settings, node, runtimes)
    journal = stack.enter_context(closing(journal_in(home, spare)))
    volumes = volumes_in(disk.home)
    executor = executor_of(settings, network, node, journal, store, disk, runtimes=runtimes, gpus=gpus, volumes=volumes)
    config_for = partial(config_of, network=network, node=node, runtimes=runtimes, volumes=volumes)
    if not dry_run:
        _introduce(settings, network, node, runtimes, gpus)
    worker = Worker(
        told_of(settings, network, node, disk, _changed(config_for(settings), changes)),
        market=market,
        sender=sender,
        journal=journal,
        executor=executor,
        store=store,
        metrics=metrics,
    )
    executor.on_change = gpus.on_change = worker.wake.set
    executor.gateways_of(worker.manifests.known)
    port_for = partial(port_of, network=network, rpc_timeout=rpc_timeout, on_fault=on_fault)
    worker.adopt = partial(_adopt, worker, changes, config_for, port_for)
    if not dry_run:
        _watch_gpus(worker, node, gpus)
        _serve(settings, metrics, runtimes, stack)
    return worker


def _watch_gpus(worker: Worker, node: Node, gpus: Pool) -> None:
    """Look at the GPUs again and again while the worker lives, where its node offers any."""
    if node.offer.gpu_count:
        threading.Thread(target=gpus.keep_looking, args=(worker.stop,), name="GPUs", daemon=True).start()


def _serve(settings: Settings, metrics: WorkerMetrics, runtimes: Mapping[str, Runtime], stack: ExitStack) -> None:
    """Serve what the settings wish, while `stack` is open: metrics and probes, and the store. Raises ConfigError."""
    if settings.metrics.address is not None:
        metrics.walls_down.set(sum(runtime.walls_down() for runtime in runtimes.values()))
        server = Server(
            settings.metrics.address,
            metrics.registry,
            metrics.health,
            hosts=settings.metrics.hosts,
            component="worker",
        )
        stack.callback(server.close)
    if settings.gateway.address is not None:
        gateway = stack.enter_context(serving(settings, settings.gateway.address))
        log.info("gateway.served", at=gateway.url.removeprefix("gateway+"), urls=list(settings.gateway.urls))
        # In a thread: a store may hang for as long as it likes, and beats must not wait for it.
        threading.Thread(target=_keep_manifest, args=(settings,), name="manifest", daemon=True).start()


def _keep_manifest(settings: Settings) -> None:
    """Store what the gateway is asked for first. Where the store takes nothing, no job is taken, and that is said."""
    try:
        store_manifest(settings)
    except HearthError as error:
        log.warning("the manifest is not stored", why=error.message)


def _adopt(
    worker: Worker,
    changes: Mapping[str, Any],
    config_for: Callable[[Settings], Config],
    port_for: Callable[[Settings], RpcChain],
    new: Settings,
) -> None:
    """Take up the live keys of new settings. Raises HearthError, with nothing taken up."""
    told = replace(worker.told, settings=new, config=_changed(config_for(new), changes))
    paying = _changed(_paying(worker.sender.config, new), changes)
    port = None
    if new.rpc != worker.told.settings.rpc:
        port = port_for(new)
        port.verify()
    worker.take_up(told, paying, bounds_of(new), port)


def unlocked(settings: Settings, asked: str | None = None) -> tuple[KeyFile, LocalAccount]:
    """Return the key that works, of the address that was `asked` about, and its account. Raises ConfigError."""
    operator_key(settings)
    try:
        key, account = read_account(settings.account.keystore, settings.account.password_file)
    except ConfigError as error:
        if error.code == "WRONG_PASSWORD":
            # A worker takes no --password-file.
            error.hint = f"mend account.password_file in worker.toml, then {DOCTOR}"
        raise
    if asked not in (None, key.address):
        raise ConfigError(
            f"{settings.account.keystore} is the key of {key.address} by now, and you were asked about {asked}",
            hint="hearth worker start",
            code="UNKNOWN_FILE",
            component="worker",
        )
    return key, account


def refuse_in_use(home: Path, network: Network, key: KeyFile) -> None:
    """Raise ConfigError KEY_IN_USE where a process signs with a key, or with a copy of it; of a worker, say whose home.

    Two workers of one key would both beat and claim for its node, and each take the nonces of the other.
    """
    user_home = _user_home()
    for path in (lock_path(key, home), shared_lock(user_home, network, key)):
        try:
            SignerLock(path).refuse_held()
        except ConfigError as error:
            other = home_of(user_home, home, error.details["pid"])
            if other is not None:
                error.hint = (
                    f"that is the worker in {other}: stop it, or give this one a key, and by it a node, of its own: "
                    f"hearth wallet list; {INIT}"
                )
            raise


def _user_home() -> Path:
    """Return the home folder of this user's commands, in which the machine's workers know of one another."""
    return home_folder(os.environ)


def open_network(settings: Settings) -> Network:
    """Read the network file that the settings name. Raises ConfigError."""
    return open_chosen(Outer(home=_user_home(), network=settings.network))


def _on_fault(metrics: WorkerMetrics, name: str, why: str) -> None:
    metrics.rpc_faults.labels(name).inc()
    log.warning("an RPC provider is set aside", provider=name, why=why)


def market_of(settings: Settings, network: Network, rpc_timeout: float, on_fault: OnFault) -> Market:
    """Open the market, by the settings' RPC or else the network file's, and check that it is the right one.

    `rpc_timeout` is in seconds per answer, `on_fault` hears who is set aside. Raises ChainError, ConfigError.
    """
    market = Market(port_of(settings, network, rpc_timeout, on_fault), network)
    try:
        market.identity.check()
        market.identity.check_code(settings.code)
    except ChainError as error:
        error.hint = MEND_CODE if error.code == "UNKNOWN_CODE" else MEND_RPC
        raise
    return market


def port_of(settings: Settings, network: Network, rpc_timeout: float, on_fault: OnFault) -> RpcChain:
    """Return the port to the chain, which asks nobody yet."""
    return RpcChain(
        settings.rpc or network.rpc,
        rpc_timeout,
        chain_id=network.chain_id,
        genesis_hash=network.genesis_hash,
        on_fault=on_fault,
    )


def node_of(settings: Settings, home: Path, market: Market, operator: str) -> Node:
    """Return the node to work for, as it stands; `home` is the worker's, also in a dry run.

    Raises ConfigError NO_NODE, NOT_OPERATOR, NOT_OWNER, MANY_NODES, HOME_IN_USE.
    """
    node = find_own_node(settings, home, market, operator, market.port.head().hash)
    if node is None:
        raise ConfigError(
            f"no node is registered for the key {operator}",
            hint="hearth worker register",
            code="NO_NODE",
            component="worker",
        )
    refuse_anothers_home(home, market, operator)
    return node


def find_own_node(settings: Settings, home: Path, market: Market, operator: str, block: BlockRef) -> Node | None:
    """Return the node that a key operates, or is offered, for account.payout; None where it may register one.

    Raises ConfigError NOT_OPERATOR, NOT_OWNER, MANY_NODES.
    """
    owner = settings.account.payout
    node = find_node(market, settings.node, operator, owner, block)
    if node is None:
        refuse_former_key(home, market, operator)
        refuse_anothers_node(market, operator, owner)
    return node


def refuse_former_key(home: Path, market: Market, operator: str) -> None:
    """Raise ConfigError NOT_OPERATOR where the worker of a home had a node by this key, and another key has it now.

    Whoever is told to register would stake a second node. What the home says counts for this chain alone.
    """
    said = read_status(home)
    if said is None or said["operator"] != operator:
        return
    node = _node_that_worked(home, said, market)
    if node is not None and node.operator not in (operator, ZERO_ADDRESS):
        raise ConfigError(
            f"node {node.id} has another operator now, {node.operator}, and this key is {operator}",
            hint=NEW_OPERATOR,
            code="NOT_OPERATOR",
            component="worker",
        )


def refuse_anothers_home(home: Path, market: Market, operator: str) -> None:
    """Raise ConfigError HOME_IN_USE where another key's worker has worked in a home, for a node that is not this key's.

    While it is stopped its lock says nothing; its journal, attempts and results are there for it to go on with. A key
    that its node is offered to goes on with them in its place.
    """
    said = None
    with suppress(ConfigError):  # a file that is damaged must not keep a worker from its own home
        said = read_status(home)
    if said is None or said["operator"] == operator:
        return
    node = _node_that_worked(home, said, market)
    if node is not None and node.operator != ZERO_ADDRESS and not may_serve(market, node, operator):
        raise ConfigError(
            f"{home} is the home of node {node.id}'s worker, whose key is {said['operator']}, and this key is "
            f"{operator}: two workers cannot share a home",
            hint=OWN_HOME,
            code="HOME_IN_USE",
            component="worker",
        )


def _node_that_worked(home: Path, said: WorkerProcess, market: Market) -> Node | None:
    """Return the node whose worker wrote what a home `said`, None where that was on another chain, or it has left."""
    network = market.network
    # A chain that has changed its id is the same one; the journal of before has the former id in its name.
    ids = {network.chain_id, network.job_chain_id}
    if not any(TxJournal.path_in(home, one, network.genesis_hash, said["operator"]).exists() for one in ids):
        return None
    try:
        return market.node(NodeId(said["node"]))
    except NotFoundError:
        return None


def open_stores(settings: Settings) -> Store:
    """Open the stores: one as it is; several are read in order, and the first two that can be written get results."""
    stores = [open_store(url) for url in settings.stores]
    return stores[0] if len(stores) == 1 else Chain(stores, mirrors=1)


def stored_beside(url: str, home: Path) -> bool:
    """Say whether a store is a folder on the disk of a home."""
    folder = folder_of(url)
    return folder is not None and nearest(folder).stat().st_dev == home.stat().st_dev


def sandboxes_of(settings: Settings, node: Node, home: Path) -> dict[str, Runtime]:
    """Return the sandboxes that the settings wish and that work here; say which of the node's offer do not.

    Raises ConfigError NO_OCI_RUNTIME: containers must not lose the kernel that the settings gave them, unseen.
    """
    refuse_unknown_runtime(settings)
    scratch = home / "tmp"
    scratch.mkdir(mode=0o700, exist_ok=True)
    wished = settings.offer.runtimes
    found = {
        name: sandbox
        for name, sandbox in runtimes_of(settings, scratch).items()
        if (wished is None or name in wished) and sandbox.available()[0]
    }
    for name, kind in RUNTIMES.items():
        if node.offer.runtimes & kind.flag and name not in found:
            log.warning("the node offers a runtime that does not work here", runtime=name, fix="hearth worker doctor")
    return found


def volumes_in(home: Path) -> tuple[Path, ...]:
    """Return the volumes that can be lent to attempts; say which that were made are not mounted."""
    missing = [str(volume.path) for volume in volumes_of(home) if not volume.mounted]
    if missing:
        log.warning("volumes are not mounted", paths=missing, fix="hearth worker doctor")
    return mounted(home)


def label_of(network: Network, node: Node) -> str:
    """Return what the names of this node's sandboxes start with."""
    return f"{network.chain_id}-{network.genesis_hash.hex()[:6]}-{node.id}-"


def journal_in(home: Path, spare: Spare) -> AttemptJournal:
    """Open the journal of attempts; say where one that could not be read was put aside."""
    journal = AttemptJournal(home / "work.db", spare)
    if journal.put_aside is not None:
        log.warning("the journal was unreadable and is put aside", path=str(journal.put_aside))
    return journal


def executor_of(
    settings: Settings,
    network: Network,
    node: Node,
    journal: AttemptJournal,
    store: Store,
    disk: Disk,
    *,
    runtimes: Mapping[str, Runtime],
    gpus: Pool,
    volumes: Sequence[Path],
) -> Executor:
    """Return what carries out attempts, with the names of this node's sandboxes and what reports say of the machine."""
    means = Means(
        journal=journal,
        store=store,
        folders=folders_in(settings.home, volumes),
        runtimes=runtimes,
        node=node.id,
        label=label_of(network, node),
        bounds=bounds_of(settings),
        keep_seconds=settings.keep_seconds,
        gpus=gpus,
        stores_here=any(stored_beside(url, disk.home) for url in settings.stores),
        local=network.local,
        machine={"cores": usable_cores()},
    )
    return Executor(means, disk=disk)


def _lack_of(settings: Settings, node: Node, gpu: GpuInfo) -> str | None:
    """Say what keeps a GPU from jobs, as `promised_gpu`; so does what a benchmark found of it."""
    lack, measured = promised_gpu(settings.offer, node.offer, gpu), measured_now(gpu, settings.home)
    return lack if lack is None or measured is None else "; ".join(filter(None, (lack, measured.why)))


PATIENCE_SECONDS: Final = 20.0
"""How long a benchmark, or another worker's job that ends, may have a GPU that a job of this one is to get."""


def pool_of(settings: Settings, node: Node, runtimes: Mapping[str, Runtime]) -> Pool:
    """Return the GPUs that a worker gives to jobs, looked at once; none where its node offers none."""
    if not node.offer.gpu_count:
        return Pool()
    docker = runtimes.get(DOCKER.name)
    engine = docker if isinstance(docker, DockerRuntime) else None
    vendor = vendor_of(node.offer.runtimes) or NVIDIA
    pool = Pool(
        partial(probing.probe_of, vendor),
        offered=partial(_lack_of, settings, node),
        named=settings.offer.gpu_names,
        trial=engine.try_gpu if engine is not None else lambda gpu: "",
        locks=Locks(),
        patience=PATIENCE_SECONDS,
    )
    pool.look()
    if engine is None:
        return pool
    if why := engine.gpu_refusals(pool.devices):
        pool.refuse([gpu.uuid for gpu in pool.devices], why)
        return pool
    for gpu in pool.devices:
        # By its place in a specification a container may get another's: it is tried before the first job.
        if gpu.number is not None and (why := engine.try_gpu(gpu)):
            pool.refuse([gpu.uuid], why)
    return pool


def trusted_judges(accept: Accept, network: Network) -> dict[str, TrustedJudge]:
    """Return by whose word jobs are taken. A judge that goes by sets of keys is trusted for those that are named alone.

    Whoever chooses the keys decides whether work is paid: that may be the submitter himself.
    """
    sets = frozenset(int(digest, 16) for digest in accept.attesters)
    return {
        **{judge: TrustedJudge() for judge in accept.judges},
        network.attesters: TrustedJudge("accept.attesters", sets),
    }


def config_of(
    settings: Settings,
    network: Network,
    node: Node,
    *,
    runtimes: Mapping[str, Runtime],
    volumes: Sequence[Path],
) -> Config:
    """Return what the provider allows, for decisions: amounts and rates in the market's asset. Raises ConfigError."""
    asset, accept = asset_of(network), settings.accept
    if accept.gpu_only and not node.offer.gpu_count:
        raise ConfigError(
            f"accept.gpu_only takes jobs for GPUs alone, and node {node.id} offers none",
            hint="take it out of worker.toml, or hearth worker update once a slot has a GPU",
            component="worker",
        )
    return Config(
        beat_every=max(1, network.node_parameters.dead_after // 3),
        # Slots that have no volume where others have are not promised.
        max_slots=min(node.offer.slots, len(volumes) or node.offer.slots),
        min_rate=settings.min_rate(asset),
        min_pay=settings.min_pay(asset),
        max_seconds=settings.max_runtime_seconds,
        max_input_bytes=settings.max_input_bytes,
        max_output_bytes=min([settings.max_output_bytes, *map(size_of, volumes)]),
        volumes=bool(volumes),
        gpu_only=accept.gpu_only,
        images=accept.images,
        images_refused=accept.refuse_images,
        modules=accept.modules,
        modules_refused=accept.refuse_modules,
        registries=settings.docker.registries,
        submitters=None if accept.submitters is None else frozenset(accept.submitters),
        submitters_refused=frozenset(accept.refuse_submitters),
        judges=trusted_judges(accept, network),
        max_bond=accept.max_bond,
        resume=accept.resume,
        confirmations=accept.confirmations,
        propose=accept.propose,
        propose_after=settings.propose_after_seconds,
        settle_after=settings.settle_after_seconds,
        withdraw_at=settings.withdraw_threshold(asset),
        runtimes=frozenset(runtimes),
        asset=asset,
        max_loss=settings.max_loss(asset, local=network.local),
        coin_price=settings.coin_price(asset),
    )


def bounds_of(settings: Settings) -> Bounds:
    """Return what jobs may bring and leave."""
    return Bounds(settings.max_input_bytes, settings.max_output_bytes, settings.pace)


def _paying(config: SenderConfig, settings: Settings) -> SenderConfig:
    """Return how transactions are paid, with the settings' limits."""
    return replace(config, max_fee=settings.max_gas_wei, day_budget=settings.day_budget)


def told_of(settings: Settings, network: Network, node: Node, disk: Disk, config: Config) -> Told:
    """Return what the loop must know that does not change."""
    return Told(
        node=node.id,
        settings=settings,
        disk=disk,
        chain_id=network.chain_id,
        native=network.asset.address is None,
        config=config,
        # Several looks per beat, several blocks per look on a fast chain.
        poll=min(2.0, network.node_parameters.dead_after / 12),
    )


def _introduce(settings: Settings, network: Network, node: Node, runtimes: Mapping[str, Runtime], gpus: Pool) -> None:
    """Begin the log: which program, which node, what that offers, and where worker.toml offers something else."""
    offer, asset = node.offer, asset_of(network)
    slot = f"{offer.gpu_count} GPU, {offer.cores} cores, {offer.ram_gib} GiB RAM, {offer.disk_gib} GiB disk"
    log.info(
        "a worker begins",
        version=__version__,
        node=node.id,
        network=network.name,
        offer=f"{offer.slots} x {slot} at {show_rate(offer.ask, asset)}",
        runtimes=sorted(runtimes),
        home=str(settings.home),
    )
    _stand_beside(settings.home, node, gpus)
    flags = reduce(or_, (RUNTIMES[name].flag for name in runtimes), RuntimeFlag(0))
    try:
        with probing.one_look():
            found = differences(settings.offer, probe_offer(settings, asset, flags), node, asset)
            unmeasured = lacking_figures(given_gpus(settings), settings.home)
    except ConfigError as error:
        log.warning("this machine cannot offer what worker.toml says", why=error.message, fix=DOCTOR)
        return
    for text, fix in found:
        log.warning("the chain has another offer than worker.toml", what=text, fix=fix)
    for gpu in unmeasured:
        log.warning("a GPU was not measured with this driver", gpu=gpu.uuid, fix="hearth worker benchmark")


def _stand_beside(home: Path, node: Node, gpus: Pool) -> None:
    """Name this worker's share of the machine, and warn where it and the other workers promise more than there is."""
    share, user_home = share_of(home, node.offer, gpus.uuids), _user_home()
    announce(user_home, share)
    for text in overbooked(share, others(user_home, home), room_of(home)):
        log.warning("this machine is promised twice", what=text, fix="hearth worker doctor")


def _changed(value: T, changes: Mapping[str, Any]) -> T:
    """Return a dataclass with those of its fields replaced that `changes` names."""
    return replace(value, **{f.name: changes[f.name] for f in fields(value) if f.name in changes})
