"""Look at everything that a worker needs, and say what to do about what is missing: `hearth worker doctor`.

Each look is one function that returns rows and never raises for what it looks at. PASS, WARN (works, at a risk that the
row names) or FAIL (a worker would not start, would get no work, or would lose its bond).
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from hearth.base.errors import REINSTALL, BlockMissing, ChainError, ConfigError, HearthError, StorageError
from hearth.base.files import free_bytes, mending, nearest
from hearth.base.urls import redact_url
from hearth.chain.follow import witnessed
from hearth.chain.port import Block, ChainPort
from hearth.chain.rpc import RpcChain
from hearth.client.nodes.obstacles import HOUR, bond_at, covered, longest, mend_of, on_probation, waits_of
from hearth.config.settings import asset_of
from hearth.daemon.chain_clock import GAPS, MAX_SKEW_SECONDS, ChainClock
from hearth.market.manifest import find_manifest, last_named
from hearth.market.network import Network
from hearth.market.reads import Market
from hearth.protocol.gas import LEASE_GAS, beats_gas
from hearth.protocol.runtimes import DOCKER, RUNTIMES, WASM
from hearth.protocol.state_labels import STATUS_LABELS
from hearth.protocol.types import RATE_SCALE, Node, Offer, Status
from hearth.protocol.units import NATIVE, Asset, amount_at_least, format_duration, format_size, show_amount, show_rate
from hearth.storage import canonical
from hearth.storage.stores import Store, open_store, provider_gateway
from worker.cgroups import memory_bytes
from worker.doctor_gpus import look_at_gpus
from worker.gateway import serving
from worker.gpu import probing
from worker.home import is_running
from worker.machine import others, overbooked, room_of, share_of
from worker.registered import differences, gateway_differences
from worker.runtimes import walls
from worker.runtimes.base import Check, Level
from worker.runtimes.profiles import DOCKER_PROFILE, GPU_ROW, WASM_PROFILE, Rule, Wall, profile_walls
from worker.runtimes.wasm import WasmRuntime
from worker.selftest import refuse_failed, try_gpus
from worker.settings import (
    MEND_CODE,
    UPDATE,
    Accept,
    Settings,
    docker_of,
    given_gpus,
    operator_key,
    probe_offer,
    runtimes_of,
)
from worker.status import lent_gpus
from worker.volumes import making, size_of, volumes_of
from worker.watch import find_node

GAS_DAYS: Final = 30
LEASES_A_DAY: Final = 24
UNSAFE: Final = ("runc", "nvidia-container-toolkit")
"""The rows whose FAIL refuses a registration."""
SLOW_SECONDS: Final = 2.0
"""How long a provider may take for a block."""
OWN_DISK: Final = Rule("disk", "filling this machine's disk", "a file system for /out", "mounts", row="volumes")
NEEDS: Final = {
    **dict.fromkeys(("offer", "accept", "machine"), DOCKER.name),
    **dict.fromkeys(("gas", "gas limits", "node"), "rpc"),
    "gateway": "node",
}
"""The row without which nothing can be said in another one: its fault is told once."""
REACH: Final = (
    "let gateway.listen be reached there, or mend gateway.urls; some routers do not let their own network reach its "
    "public address"
)
"""What to do where a gateway is not reached from here."""
GATEWAY_SECONDS: Final = 20.0
"""How long the chain is searched for the node's manifest, and how long each of its gateways may take."""
RANGE: Final = 2_000
"""Blocks of logs that a provider should give at once."""


def diagnose(settings: Settings, network: Network, port: ChainPort, user_home: Path) -> list[Check]:
    """Return every row, in the order in which a provider would fix them.

    `user_home` is the home folder of this user's commands, in which the machine's workers name themselves.
    """
    market = Market(port, network)
    looks: tuple[tuple[str, Callable[[], list[Check]]], ...] = (
        ("key file", lambda: look_at_keys(settings)),
        *((name, partial(look_at_runtime, name, settings, network.chain_id)) for name in RUNTIMES),
        ("gpu", lambda: look_at_gpus(settings, network.chain_id)),
        ("offer", lambda: look_at_offer(settings, asset_of(network))),
        ("accept", lambda: look_at_accept(settings, asset_of(network))),
        ("amounts", lambda: look_at_amounts(settings, network)),
        ("machine", lambda: look_at_machine(settings, asset_of(network), user_home)),
        ("disk", lambda: look_at_disk(settings)),
        ("volumes", lambda: look_at_volumes(settings)),
        ("store", lambda: look_at_stores(settings)),
        ("rpc", lambda: look_at_rpc(settings, market)),
        ("gas", lambda: look_at_gas(settings, market)),
        ("gas limits", lambda: look_at_gas_limits(settings, market)),
        ("node", lambda: look_at_node(settings, market)),
        ("gateway", lambda: look_at_gateway(settings, market)),
    )
    rows: list[Check] = []
    for name, look in looks:
        # Without an engine no container runs: nothing can fill the disk that volumes would keep free.
        if name == "volumes" and any(row.name == DOCKER.name and row.level is not Level.PASS for row in rows):
            continue
        first = NEEDS.get(name, name)
        if any(row.name == first and row.level is Level.FAIL for row in rows):
            rows.append(Check(name, Level.FAIL, f"see {first}", ""))
            continue
        try:
            rows += look()
        except HearthError as error:
            rows.append(Check(name, Level.FAIL, error.message, error.hint))
    return rows


def walls_of(settings: Settings, rows: Sequence[Check]) -> list[Wall]:
    """Say of each wall round what strangers run here whether it stands, by the rows of `diagnose`."""
    wished = settings.offer.runtimes
    walls: list[Wall] = []
    if wished is None or WASM.name in wished:
        walls += profile_walls(WASM.name, WASM_PROFILE, rows)
    if wished is None or DOCKER.name in wished:
        # Where no GPU is offered there is no row on how one is given, and nothing that has to stand.
        given = any(row.name == GPU_ROW for row in rows)
        rules = [rule for rule in DOCKER_PROFILE if given or rule.name != "gpus"]
        walls += profile_walls(DOCKER.name, [*rules, OWN_DISK], rows)
    return walls


def look_at_keys(settings: Settings) -> list[Check]:
    """Check that key and password are private, and that the one opens the other."""
    from worker.build import unlocked

    account = settings.account
    key, _ = unlocked(settings)
    rows = [Check("key file", Level.PASS, f"{key.address}, readable by its owner only; its password opens it")]
    if key.address == account.payout:
        rows.append(
            Check(
                "payout address",
                Level.WARN,
                "it is the hot key on this machine",
                "hearth wallet new on another machine; set account.payout to its address",
            )
        )
    else:
        rows.append(Check("payout address", Level.PASS, account.payout))
    return rows


def look_at_runtime(name: str, settings: Settings, chain_id: int) -> list[Check]:
    """Check a runtime by its own look, or where it has none by what its sandbox says of itself."""
    if name == WASM.name:
        return look_at_wasm()
    if name == DOCKER.name:
        return look_at_docker(settings, chain_id)
    works, detail = runtimes_of(settings)[name].available()
    return [Check(name, Level.PASS if works else Level.FAIL, detail, "" if works else "take it out of offer.runtimes")]


def look_at_wasm() -> list[Check]:
    """Check the WebAssembly engine, and the walls that this kernel gives its process."""
    works, detail = WasmRuntime().available()
    # Another version of the engine would count fuel otherwise: the package names the one that works here.
    fix = "" if works else REINSTALL
    return [Check("wasm", Level.PASS if works else Level.FAIL, detail, fix), *walls.look()]


def look_at_docker(settings: Settings, chain_id: int) -> list[Check]:
    """Check the container engine and every flag of the sandbox, where docker is offered or present."""
    wished = settings.offer.runtimes
    if wished is not None and DOCKER.name not in wished:
        return [Check("docker", Level.PASS, "not offered")]
    runtime = docker_of(settings)
    works, detail = runtime.available()
    if works:
        # A machine without a GPU needs no way to hand one to a container.
        gpus = (
            []
            if settings.offer.gpus == "none"
            else [one.device for one in probing.probe(settings.offer.gpu_names).gpus if one.uuid]
        )
        return runtime.capabilities(chain_id, gpus=gpus, patched=frozenset(settings.docker.patched_runc))
    if runtime.unknown_runtime():
        fix = 'register it with the engine (docs/PROVIDER.md, "gVisor"), or leave docker.runtime out'
        return [Check("docker", Level.FAIL, f"docker.runtime: {detail}", fix)]
    if wished is None:
        fix = f"{runtime.how_to_start()} to take containers"
        return [Check("docker", Level.WARN, f"{detail}; only wasm jobs are taken", fix)]
    return [Check("docker", Level.FAIL, detail, f'{runtime.how_to_start()}, or set offer.runtimes = ["wasm"]')]


def refuse_unfit(settings: Settings, chain_id: int, offer: Offer) -> None:
    """Refuse to offer a runtime through programs whose known holes let a job out, or GPUs that no job would get.

    On a local chain, whose jobs are the provider's own, a hole is only a warning. Raises ConfigError.
    """
    rows: list[Check] = []
    for name, kind in RUNTIMES.items():
        if offer.runtimes & kind.flag:
            rows += look_at_runtime(name, settings, chain_id)
            rows += look_at_gpus(settings, chain_id) if offer.gpu_count and kind.takes_gpu else []
    unsafe = next((row for row in rows if row.level is Level.FAIL and row.name in UNSAFE), None)
    if unsafe is not None:
        raise ConfigError(
            f"{unsafe.name}: {unsafe.detail}",
            hint=f'{unsafe.fix}; or set offer.runtimes = ["wasm"]',
            code="UNSAFE_ENGINE",
            component="worker",
        )
    if offer.gpu_count:
        _refuse_ungiven(settings, rows)


def _refuse_ungiven(settings: Settings, rows: Sequence[Check]) -> None:
    """Refuse to offer GPUs that the engine gives to no container. Raises ConfigError GPU_NOT_GIVEN."""
    for row in rows:
        if row.name == GPU_ROW:
            refuse_failed(row)
    lent = lent_gpus(settings.home)
    for row in try_gpus(docker_of(settings), given_gpus(settings, lent), lent):
        refuse_failed(row)


def _offer(settings: Settings, asset: Asset) -> Offer:
    """Return the offer of one slot of this machine, also while jobs have its GPUs. Raises ConfigError."""
    return probe_offer(settings, asset, lent=lent_gpus(settings.home))


def look_at_offer(settings: Settings, asset: Asset) -> list[Check]:
    """Check that the machine can keep what the settings promise."""
    offer = _offer(settings, asset)
    size = f"{offer.slots} x {offer.gpu_count} GPU, {offer.cores} cores, {offer.ram_gib} GiB RAM, {offer.disk_gib} GiB"
    rows = [Check("offer", Level.PASS, size)]
    if offer.ram_gib * offer.slots << 30 > memory_bytes() * 95 // 100:
        rows.append(Check("memory", Level.WARN, "all of it is promised to jobs", "lower offer.memory or offer.slots"))
    return rows


def look_at_accept(settings: Settings, asset: Asset) -> list[Check]:
    """Check that what is accepted can be met at all: a rule that refuses every job looks like a market without work."""
    offer, accept = _offer(settings, asset), settings.accept
    least = settings.min_rate(asset)
    longest = offer.ask * settings.max_runtime_seconds // RATE_SCALE
    if accept.gpu_only and not offer.gpu_count:
        text = "accept.gpu_only takes jobs for GPUs alone, and a slot has none"
        return [Check("accept", Level.FAIL, text, "take it out, or give each slot a GPU: offer.gpus")]
    if least > offer.ask:
        text = f"nothing is taken: the node asks {show_rate(offer.ask, asset)}, less than accept.min_price"
        return [Check("accept", Level.WARN, text, f"lower it to {show_rate(offer.ask, asset)}, or raise offer.price")]
    if settings.min_pay(asset) > longest:
        most = show_amount(longest, asset)
        text = f"nothing is taken: accept.max_runtime pays at most {most}, less than accept.min_pay"
        return [Check("accept", Level.WARN, text, "lower accept.min_pay, or raise accept.max_runtime")]
    return [Check("accept", Level.PASS, _accepted(accept))]


def look_at_amounts(settings: Settings, network: Network) -> list[Check]:
    """Check the amounts that only the market's asset shows, and that no other row names. Raises ConfigError."""
    settings.withdraw_threshold(asset_of(network)), settings.max_loss(asset_of(network), local=network.local)
    return []


def _accepted(accept: Accept) -> str:
    """Say which rules narrow what is taken."""
    rules = [
        ("submitters", accept.submitters),
        ("refuse_submitters", accept.refuse_submitters),
        ("images", () if accept.images == ("*",) else accept.images),
        ("refuse_images", accept.refuse_images),
        ("modules", () if accept.modules == ("*",) else accept.modules),
        ("refuse_modules", accept.refuse_modules),
    ]
    told = [f"{name} has {len(listed)}" for name, listed in rules if listed]
    told += ["gpu_only"] if accept.gpu_only else []
    if not accept.attesters and not accept.judges:
        told.append("no job with attesters or another judge, since accept.attesters and accept.judges are empty")
        return ", ".join(told) if len(told) > 1 else f"any job that fits, but {told[0]}"
    return ", ".join(told) if told else "any job that fits, and of judged ones those that accept names"


def look_at_machine(settings: Settings, asset: Asset, user_home: Path) -> list[Check]:
    """Check that this worker and those that run besides it do not promise the same things."""
    besides = others(user_home, settings.home)
    if not besides:
        return [Check("machine", Level.PASS, "no other worker of this user runs here")]
    offer = _offer(settings, asset)
    given = given_gpus(settings, lent_gpus(settings.home)) if offer.gpu_count else ()
    gpus = [one.uuid for one in given]
    found = overbooked(share_of(settings.home, offer, gpus), besides, room_of(settings.home))
    if not found:
        return [Check("machine", Level.PASS, f"{len(besides) + 1} workers, and what they offer together is there")]
    homes = ", ".join(one.home for one in besides)
    fix = f"lower the sizes in [offer] of one, then hearth worker update; the others are {homes}"
    return [Check("machine", Level.WARN, text, fix) for text in found]


def look_at_disk(settings: Settings) -> list[Check]:
    """Check that the home folder has room beyond its reserve, and that it can be written or made."""
    free = free_bytes(settings.home)
    if free < settings.reserve_bytes:
        text = f"{format_size(free >> 20 << 20)} free, less than the reserve of {settings.storage.reserve}"
        return [Check("disk", Level.FAIL, text, "free some room, or lower storage.reserve")]
    try:
        with tempfile.NamedTemporaryFile(dir=nearest(settings.home)) as file:
            file.write(b"x" * 4096)
            file.flush()
    except OSError as error:
        text = f"home {settings.home} cannot be written: {error.strerror}"
        return [Check("disk", Level.FAIL, text, mending(settings.home))]
    return [Check("disk", Level.PASS, f"{format_size(free >> 30 << 30)} free under {settings.home}")]


def look_at_volumes(settings: Settings) -> list[Check]:
    """Check that what a container writes lies on a file system of its own, which it alone can fill."""
    wished, slots = settings.offer.runtimes, settings.offer.slots
    if wished is not None and DOCKER.name not in wished:
        return [Check("volumes", Level.PASS, "not needed: WebAssembly counts what a program writes")]
    there = volumes_of(settings.home)
    if not there:
        text = (
            "there is none: between two looks a container can take this disk's room, and jobs beside it may find none"
        )
        return [Check("volumes", Level.WARN, text, making(settings.home, slots, "20GiB"))]
    command = making(settings.home, slots, format_size(there[0].size))
    lent = [volume for volume in there if volume.mounted]
    rows = []
    if lent:
        size = format_size(size_of(lent[0].path) >> 20 << 20)
        rows.append(Check("volumes", Level.PASS, f"{len(lent)} for {slots} slots, {size} for what a job writes"))
    if len(lent) < len(there):
        text = f"{len(there) - len(lent)} of {len(there)} are not mounted"
        rows.append(Check("volumes", Level.WARN, text, f"{command}, and its lines in /etc/fstab for the next boot"))
    if lent and len(lent) < slots:
        text = f"{slots} slots have {len(lent)} volumes, and only as many jobs run at once"
        rows.append(Check("volumes", Level.WARN, text, command))
    if any(volume.sparse for volume in there):
        text = "blocks of their images are not allocated: the disk can be full before they are"
        rows.append(Check("volumes", Level.WARN, text, command))
    return rows


def look_at_stores(settings: Settings) -> list[Check]:
    """Write a block to each writable store and read it back; at least one must take results."""
    rows: list[Check] = []
    writable = 0
    for url in settings.stores:
        store = open_store(url)
        try:
            rows.append(_look_at_store(store))
            writable += store.writable and rows[-1].level is Level.PASS
        except HearthError as error:
            rows.append(Check("store", Level.FAIL, error.message, "start it, or take it out of stores"))
        finally:
            store.close()
    if not writable:
        rows.append(Check("store", Level.FAIL, "none of the stores can be written", "add a folder or a Kubo to stores"))
    elif writable == 1:
        text = "results lie in one store only"
        rows.append(Check("copies", Level.WARN, text, "add a second writable store, such as kubo://127.0.0.1:5001"))
    return rows


def _look_at_store(store: Store) -> Check:
    status = store.status()
    if not status.reachable:
        return Check("store", Level.FAIL, f"{store.url}: {status.detail}", "start it, or take it out of stores")
    if store.writable:
        store.try_write()
    return Check("store", Level.PASS, f"{store.url}: {status.detail}")


def look_at_rpc(settings: Settings, market: Market) -> list[Check]:
    """Check identity, lag, log range and the clock against the chain's."""
    urls, port = settings.rpc or market.network.rpc, market.port
    asked = ", ".join(map(redact_url, urls))
    whose = "rpc in worker.toml" if settings.rpc else "the network file's rpc"
    try:
        market.identity.check()
        market.identity.check_code(settings.code)
    except ChainError as error:
        text = f"{error.message}: a worker asks {asked}, {whose}, and does not start"
        mend = MEND_CODE if error.code == "UNKNOWN_CODE" else f"mend {whose}"
        return [Check("rpc", Level.FAIL, text, f"{mend}, then hearth worker doctor")]
    text = f"chain {market.network.chain_id}, the contracts are the network file's; asked {asked}"
    rows = [Check("rpc", Level.PASS, text), *_look_at_providers(urls, market.network)]
    began = time.monotonic()
    head = port.head()
    took = time.monotonic() - began
    text = f"{took:.2f} s for a block"
    if took < SLOW_SECONDS:
        rows.append(Check("rpc speed", Level.PASS, text))
    else:
        rows.append(Check("rpc speed", Level.WARN, text, "use a nearer provider"))
    first = max(market.network.deploy_block, head.number - RANGE)
    port.logs([market.network.jobs], from_block=first, to_block=head.number)
    rows.append(Check("rpc logs", Level.PASS, f"{head.number - first + 1} blocks read"))
    return [*rows, look_at_blooms(market), look_at_clock(market, head)]


def look_at_blooms(market: Market) -> Check:
    """Check whether this chain's blocks announce their logs, by the one in which Rules was created."""
    witness = market.network.bloom_witness
    found = None if witness is None else witnessed(market.port, witness)
    if found:
        return Check("rpc blooms", Level.PASS, "blocks announce their logs: those without any of ours cost no request")
    what = "cannot be seen: what created Rules is not known here" if found is None else "is not so here"
    text = f"that blocks announce their logs {what}; so every block is asked for its logs, a request each"
    return Check("rpc blooms", Level.WARN, text, "use an rpc that serves a request for each block, and two more")


def look_at_clock(market: Market, head: Block) -> Check:
    """Check this machine's clock against the newest block."""
    skew = int(time.time()) - head.timestamp
    if abs(skew) <= MAX_SKEW_SECONDS:
        return Check("clock", Level.PASS, f"{skew} s from the newest block")
    numbers = range(max(0, head.number - GAPS), head.number)
    clock = ChainClock()
    clock.learn([*(block for number in numbers if (block := market.port.block(number)) is not None), head])
    fix = "timedatectl set-ntp true, or another rpc"
    if skew > 0 and clock.mines_on_demand:
        text = f"the newest block is {skew} s old, of a chain whose blocks come when somebody sends: it proves no clock"
        return Check("clock", Level.WARN, text, "timedatectl says whether the clock is synchronised")
    text = f"{skew} s from the newest block: the clock is wrong, or the provider lags"
    return Check("clock", Level.WARN if market.network.local else Level.FAIL, text, fix)


def _look_at_providers(urls: Sequence[str], network: Network) -> list[Check]:
    """Check each RPC provider by itself, and say what so many of them are good for."""
    if len(urls) == 1:
        rows = [Check("rpc providers", Level.WARN, "only one is configured", "add a second URL to rpc")]
    elif len(urls) == 2:
        rows = [Check("rpc providers", Level.PASS, "2 are configured; of three, one that lies is outvoted")]
    else:
        rows = [Check("rpc providers", Level.PASS, f"{len(urls)} are configured")]
    for url in urls:
        try:
            RpcChain([url], attempts=1, chain_id=network.chain_id, genesis_hash=network.genesis_hash).verify()
        except ChainError as error:
            rows.append(Check("rpc providers", Level.WARN, error.message, "take it out of rpc, or mend it"))
    return rows


@dataclass(frozen=True, slots=True)
class GasOfADay:
    """What the gas of a day costs in wei, by the price of now: of its beats, and of its beats and leases."""

    price: int
    beats: int
    all: int

    @property
    def at(self) -> str:
        """Return the price for people."""
        return f"at {self.price / 10**9:.3g} gwei"


def gas_of_a_day(settings: Settings, market: Market) -> GasOfADay:
    """Return what a day takes at today's fees, the tip included, and never above max_gas_price."""
    fees = market.port.fees()
    price = min(settings.max_gas_wei, fees.base_fee + fees.priority_fee) + fees.beside
    beats = beats_gas(market.network.node_parameters.dead_after)
    return GasOfADay(price, beats * price, (beats + LEASES_A_DAY * LEASE_GAS) * price)


def look_at_gas(settings: Settings, market: Market) -> list[Check]:
    """Check that the hot key can pay for beats and leases for a month, at today's fees."""
    address = operator_key(settings).address
    day = gas_of_a_day(settings, market)
    need = GAS_DAYS * day.all
    have = market.port.balance(address)
    coin = NATIVE
    text = f"{show_amount(have, coin)} for {GAS_DAYS} days, which take {show_amount(need, coin)} {day.at}"
    if have >= need:
        return [Check("gas", Level.PASS, text)]
    seconds = have * GAS_DAYS * 86_400 // need
    level = Level.WARN if seconds >= 86_400 else Level.FAIL
    # As it stands this machine's account may be the key itself, which can send itself nothing.
    missing = amount_at_least(need - have, coin)
    fix = f'on the owner\'s machine: hearth wallet send {address} "{missing}" --account owner'
    return [Check("gas", level, f"{text}: enough for {_about(seconds)}", fix)]


def look_at_gas_limits(settings: Settings, market: Market) -> list[Check]:
    """Check that the limits on gas let beats through, and that it is known what gas costs in the market's asset."""
    asset, base_fee = asset_of(market.network), market.port.fees().base_fee
    rows = []
    if base_fee * 2 > settings.max_gas_wei:
        level = Level.FAIL if base_fee > settings.max_gas_wei else Level.WARN
        what = "beats and submits wait" if level is Level.FAIL else "nothing new is taken"
        text = f"the base fee is {base_fee / 10**9:.3g} gwei, max_gas_price {settings.max_gas_price}: {what}"
        rows.append(Check("gas limits", level, text, "raise max_gas_price, then hearth worker reload"))
    budget, day = settings.day_budget, gas_of_a_day(settings, market)
    if budget is not None and budget < day.all:
        level = Level.FAIL if budget < day.beats else Level.WARN
        what = "a day of beats costs" if level is Level.FAIL else "a day of beats and leases costs"
        cost = show_amount(day.beats if level is Level.FAIL else day.all, NATIVE)
        lasts = _about(budget * 86_400 // day.all)
        text = f"gas.max_per_day is {settings.gas.max_per_day}, and {what} {cost} {day.at}: it lasts {lasts} of 24h"
        rows.append(Check("gas limits", level, text, "raise gas.max_per_day, then hearth worker reload"))
    if not settings.coin_price(asset):
        text = f"what a coin is worth in {asset.symbol} is not said: units are taken that cost more gas than they bring"
        rows.append(Check("gas limits", Level.WARN, text, "set gas.coin, then hearth worker reload"))
    return rows or [Check("gas limits", Level.PASS, f"at most {settings.max_gas_price}")]


def _about(seconds: int) -> str:
    """Return a time to the whole hour or minute below, where it is long enough for that."""
    unit = next((unit for unit in (3_600, 60) if seconds >= unit), 1)
    return format_duration(seconds // unit * unit)


def look_at_node(settings: Settings, market: Market) -> list[Check]:
    """Check that a node is registered for this key, and what it may do now."""
    from hearth.protocol import formulas
    from worker.build import find_own_node, refuse_anothers_home

    address = operator_key(settings).address
    head = market.port.head()
    node = find_own_node(settings, settings.home, market, address, head.hash)
    refuse_anothers_home(settings.home, market, address)
    if node is None:
        none = Check("node", Level.WARN, f"no node is registered for {address}", "hearth worker register")
        return [none, look_at_price(settings, market, None)]
    parameters = market.network.node_parameters
    status = formulas.status(node, head.timestamp, parameters.dead_after, parameters.minimum_stake)
    rows = []
    asset = asset_of(market.network)
    short = [one for one in waits_of(node, head.timestamp, parameters, asset) if one["reason"] == "stake"]
    rows += [Check("stake", Level.FAIL, f"{one['text']}, so no work comes", one["next"]) for one in short]
    free = node.stake - node.state.bond
    text = f"node {node.id} is {STATUS_LABELS[status]}, free stake {show_amount(free, asset)}"
    # Whether it beats is no matter here: a worker need not run yet.
    good = status in (Status.ACTIVE, Status.INACTIVE, Status.PENDING) and not short
    rows.append(Check("node", Level.PASS if good else Level.WARN, text, "" if good else "hearth worker status"))
    return [*rows, look_at_price(settings, market, node), *_look_at_registered(settings, node, asset)]


def look_at_price(settings: Settings, market: Market, node: Node | None) -> Check:
    """Check that the stake covers a lease of an hour at the node's price, the one that waits for its notice included.

    Without a node they are the market's least stake and the price of worker.toml.
    """
    asset, policy = asset_of(market.network), market.policies().policy
    if node is None:
        ask, stake = settings.ask(asset), market.network.node_parameters.minimum_stake
    else:
        ask, stake = node.next_ask if node.offer.pending else node.offer.ask, node.stake
    text = covered(stake, ask, policy, asset)
    bound = None if node is not None and node.state.seasoned else on_probation(ask, policy, asset)
    if bound:
        text += f"; {bound}"
    if bond_at(ask, HOUR, policy) <= stake:
        return Check("price", Level.WARN if bound else Level.PASS, text, "hearth net params" if bound else "")
    level = Level.WARN if longest(stake, ask, policy) else Level.FAIL
    return Check("price", level, text, mend_of(stake, ask, policy, asset, registered=node is not None))


def _look_at_registered(settings: Settings, node: Node, asset: Asset) -> list[Check]:
    """Check that the chain has what worker.toml offers; an offer that cannot be made has a row of its own."""
    try:
        offer = _offer(settings, asset)
    except ConfigError:
        return []
    found = differences(settings.offer, offer, node, asset)
    rows = [Check("registered", Level.WARN, text, fix) for text, fix in found]
    return rows or [Check("registered", Level.PASS, "the chain has what worker.toml offers")]


def look_at_gateway(settings: Settings, market: Market) -> list[Check]:
    """Check that whoever no store reaches can fetch results where the manifest says.

    Where the worker does not run, its store is served for as long as the look takes. Raises ConfigError where the
    address cannot be had.
    """
    wish, rows, digest = settings.gateway, list[Check](), b""
    if not wish.listen and not wish.urls:
        return [_look_at_reach(settings, local=market.network.local)]
    address, head = operator_key(settings).address, market.port.head()
    node = find_node(market, settings.node, address, settings.account.payout, head.hash)
    if node is not None:
        found = last_named(market, [node.id], head, until=time.monotonic() + GATEWAY_SECONDS)
        if node.id in found:
            digest, manifest = found[node.id].digest, find_manifest(market, found[node.id])
            named = () if manifest is None else manifest.gateways
            rows += [Check("gateway", Level.WARN, *one) for one in gateway_differences(wish.urls, named)]
    with ExitStack() as stack:
        if wish.address is not None and not is_running(settings.home):
            stack.enter_context(serving(settings, wish.address))
        rows += [_look_at_url(url, digest, local=market.network.local) for url in wish.urls]
    if not wish.urls:
        text = f"blocks are served at {wish.listen}, and no manifest says so: nobody knows of it"
        fix = f"set gateway.urls to the address under which others reach it, then {UPDATE}"
        rows.append(Check("gateway", Level.WARN, text, fix))
    return rows


def _look_at_reach(settings: Settings, *, local: bool) -> Check:
    """Say who can fetch results without a gateway."""
    urls = [url for url in settings.stores if not url.startswith("gateway+")]
    if local or not all(url.startswith("folder://") or "://" not in url for url in urls):
        return Check("gateway", Level.PASS, "none: results are had by those whom the stores reach")
    text = "results lie in folders of this machine, where their submitters cannot fetch them"
    fix = f"set gateway.listen and gateway.urls, then {UPDATE}; or add a Kubo that others reach to stores"
    return Check("gateway", Level.WARN, text, fix)


def _look_at_url(url: str, digest: bytes, *, local: bool) -> Check:
    """Ask a gateway for the manifest's block as a submitter would; without a digest, whether it is a gateway."""
    store = provider_gateway(url, local=local)
    try:
        if not digest:
            status = store.status()
            said = Level.PASS if status.reachable else Level.WARN
            return Check("gateway", said, f"{url}: {status.detail}", "" if status.reachable else REACH)
        store.get_block(canonical.cid_of_digest(digest), GATEWAY_SECONDS)
    except BlockMissing:
        text = f"{url} answers, and does not give the block of the node's manifest: it serves another store"
        return Check("gateway", Level.WARN, text, f"name this worker's own gateway in gateway.urls, then {UPDATE}")
    except StorageError as error:
        return Check("gateway", Level.WARN, f"{url}: {error.message}", REACH)
    finally:
        store.close()
    return Check("gateway", Level.PASS, f"{url} gives the block of the node's manifest")
