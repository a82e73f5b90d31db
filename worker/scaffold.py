"""Write a first worker.toml, for this machine and the operator's key."""

from __future__ import annotations

import tomllib
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from hearth.base.errors import ChainError, ConfigError
from hearth.base.files import AnyPath, path_of, replace_text

if TYPE_CHECKING:
    from pathlib import Path

    from hearth.client import Client
    from hearth.client.session import Session
    from hearth.protocol.units import Asset
    from worker.reports import WorkerFile

_OFFERED: Final = ("price", "country", "slots", "runtimes", "gpus", "cores", "memory", "disk")
_TOML: Final = """\
# A worker's settings: hearth worker doctor checks them, hearth worker register and start use them.
network = {network}
home = {home}
rpc = {rpc}
stores = {stores}

[account]
payout = {payout}                # who owns the stake and is paid: a cold address is best
keystore = {keystore}            # the hot key that works
password_file = {password_file}

[offer]
price = {price}                  # what one slot asks per hour
country = {country}
slots = {slots}
gpus = {gpus}
{sizes}
[accept]                         # left out, all that fits is taken
# submitters = ["0x..."]         # work for these alone
# refuse_submitters = ["0x..."]
# images = ["ghcr.io/me/*"]      # these alone; by name, or with a digest
# refuse_images = ["*@sha256:..."]
# modules = ["bafy..."]          # these WebAssembly modules alone
# judges = ["0x..."]             # contracts that may judge its results, and take its bonds
# attesters = ["0x..."]          # sets of attesters by whose word it is paid: their digests
# max_bond = 10                  # no judged job that binds more stake than so many times what a unit pays
# gpu_only = true                # no job without a GPU
# min_pay = "0.0001"             # the least that a unit can pay: more than the gas of claim and submit
# max_runtime = "6h"             # no longer lease
confirmations = {confirmations}

[storage]
reserve = {reserve}

[gateway]                        # left out, results are had by those alone whom the stores reach
# listen = "0.0.0.0:8080"        # serves this worker's store, block by block
# urls = ["https://..."]         # under which others reach it: hearth worker update tells them

[metrics]
listen = {listen}
"""


_OPTIONS: Final = {
    "account.payout": "--payout",
    "home": "--home",
    "metrics.listen": "--listen",
    **{f"offer.{name}": f"--{name}" for name in _OFFERED},
}
"""The option of `hearth worker init` that each field comes from."""


def write_settings(
    client: Client,
    config: AnyPath,
    *,
    price: str,
    country: str,
    payout: str | None = None,
    home: AnyPath | None = None,
    slots: int = 1,
    runtimes: tuple[str, ...] = (),
    gpus: str | tuple[str, ...] = "all",
    cores: int | None = None,
    memory: str | None = None,
    disk: str | None = None,
    listen: str | None = None,
) -> WorkerFile:
    """Write a worker.toml that the worker will take, and report it. Raises ConfigError CONFIG_EXISTS, NO_PASSWORD."""
    from hearth.config.sections import toml
    from hearth.config.settings import network_file, rpc_urls

    config, own_home = path_of(config), path_of(home)
    if config.exists():
        raise ConfigError(f"{config} exists already", hint="use --config FILE for another worker", code="CONFIG_EXISTS")
    session = client.session
    key = session.key("operator")
    password = session.password_file(key, "a worker")
    sizes = {"runtimes": list(runtimes) or None, "cores": cores, "memory": memory, "disk": disk}
    local = session.local
    owner = (payout or session.key("owner").address).lower()
    network = network_file(session.settings).resolve()
    text = _TOML.format(
        network=toml(str(network)),
        home=toml(str((own_home or session.settings.home / "workers" / key.name).absolute())),
        rpc=toml(list(rpc_urls(session.settings, session.network))),
        stores=toml(list(session.store_urls[:1])),
        payout=toml(owner),
        keystore=toml(str(key.path.absolute())),
        password_file=toml(str(password.absolute())),
        price=toml(price),
        country=toml(country),
        slots=slots,
        gpus=toml(gpus if isinstance(gpus, str) else list(gpus)),
        sizes="".join(f"{name} = {toml(value)}\n" for name, value in sizes.items() if value is not None),
        confirmations=0 if local else 2,
        reserve=toml("256MiB" if local else "2GiB"),
        listen=toml(listen if listen is not None else "" if local else "127.0.0.1:9464"),
    )
    _warn_of_bond(session, _check(text, config, session.asset))
    if not client.dry_run:
        _write(session, config, text, network)
    return {
        "schema": "hearth.worker.init/1",
        "config": str(config),
        "operator": key.address,
        "next": _next(session, key.address, owner),
        "dry_run": client.dry_run,
    }


def _write(session: Session, config: Path, text: str, network: Path) -> None:
    """Write a settings file, and vouch for it and for the network file that it names, as that was read."""
    from hearth.config.trust import Trust
    from hearth.market.network import network_in, read_network

    config.parent.mkdir(parents=True, exist_ok=True)
    trust = Trust(session.settings.home)
    raw = read_network(network)
    if network_in(raw, network) == session.network:
        # What came in its place meanwhile nobody has seen: the worker asks about it.
        trust.record(network, raw)
    trust.record(config, text.encode())
    replace_text(config, text)


def _warn_of_bond(session: Session, ask: int) -> None:
    """Warn of a price at which the market's least stake, which registering takes, covers no lease of an hour.

    Where no RPC answers nothing is known of the market's bonds: whoever registers is told.
    """
    from hearth.client.nodes.obstacles import short_of

    with suppress(ChainError):
        policy, least = session.market.policies().policy, session.network.node_parameters.minimum_stake
        if text := short_of(least, ask, policy, session.asset, registered=False):
            session.tell("warning", {"text": text})


def _check(text: str, config: Path, asset: Asset) -> int:
    """Return the price of a file, or refuse what the worker would refuse before it stands there, by the options that
    its fields come from."""
    from worker.settings import parse

    try:
        return parse(tomllib.loads(text), config).ask(asset)
    except ConfigError as error:
        told = [text.partition(": ") for text in error.details.get("problems", [error.message])]
        found = {_OPTIONS[name]: why for name, _, why in told if name in _OPTIONS}
        if len(found) < len(told):
            raise
        sentence, *also = (f"{option}: {why}" for option, why in found.items())
        hint = f"correct {' and '.join(found)}, then the same command"
        raise ConfigError(sentence, also=also, hint=hint) from error


def _next(session: Session, operator: str, owner: str) -> str:
    """Return what comes next: the start of a node that an owner has registered elsewhere for the key, else registering.

    Where no RPC answers nothing is known of a node: whoever has one is told when he registers.
    """
    from worker.watch import find_node

    try:
        market = session.market
        node = find_node(market, None, operator, owner, market.port.head().hash)
    except (ChainError, ConfigError) as error:
        if error.code == "MANY_NODES":
            return f"{error.hint}, then hearth worker start"
        node = None
    return "hearth worker start" if node is not None else _register(session, owner)


def _register(session: Session, owner: str) -> str:
    """Return the command that registers, with the account that must sign it where another might be taken."""
    from hearth.chain.keys import list_keys

    mine = next((key.name for key in list_keys(session.settings.keys_folder) if key.address == owner), None)
    if mine is None:
        return "hearth worker register --print-tx > register.json, which the key of account.payout sends"
    named = session.settings.account is not None
    return f"hearth worker register --account {mine}" if named else "hearth worker register"
