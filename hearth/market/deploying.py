"""A deployment that survives its own death: planned once, remembered beside the network file, finished by a rerun.

What is remembered is small: who deploys, from which nonce on, and what. The plan follows from that bit for bit, the
sender's journal knows each transaction, and the chain says what stands. The record goes when the network file is there.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

from hearth.base.errors import ChainError, ConfigError, FundsError, RefusedError, UsageError
from hearth.base.failpoints import fp
from hearth.base.files import flush_folder, replace_text
from hearth.base.untrusted_json import read_json
from hearth.chain.port import Call, ChainPort
from hearth.chain.tx import ROLLUP_MARGIN, SenderConfig
from hearth.market.calls import token_call
from hearth.market.deployment import Deployer, DeploymentPlan, carry_out, make_plan
from hearth.market.network import Network, load_network, save_network
from hearth.market.profiles import Profile
from hearth.market.reads import Market
from hearth.protocol import words
from hearth.protocol.types import ZERO_ADDRESS
from hearth.protocol.units import NATIVE, Asset, show_amount, show_at_least

SCHEMA: Final = "hearth.deployment/1"
KEYS: Final = {
    *("schema", "name", "chain_id", "genesis_hash", "deployer", "nonce", "since", "contracts", "settings", "code")
}
"""What a record holds."""
_ADDRESS: Final = re.compile("0x[0-9a-f]{40}")
_AMOUNT: Final = re.compile(r"[0-9]{1,12}(\.[0-9]{1,18})?")


@dataclass(frozen=True, slots=True)
class Wish:
    """What to deploy: `name` is the network file's, and `per_ether` of the asset are worth an ether.

    `council` and `guardian` (zero for none) sit in the Steward at first; a change of them later is no other market.
    """

    name: str
    profile: Profile
    asset: Asset
    treasury: str
    council: str
    guardian: str = ZERO_ADDRESS
    per_ether: Fraction = Fraction(1)

    def settings(self) -> dict[str, str]:
        """Return what makes two wishes the same deployment, for people and for the record."""
        asset = self.asset
        return {
            "profile": self.profile.name,
            "treasury": self.treasury.lower(),
            "council": self.council.lower(),
            "guardian": "none" if self.guardian == ZERO_ADDRESS else self.guardian.lower(),
            "asset": f"{asset.symbol} of {asset.decimals} decimals, {asset.address or 'the native coin'}",
            "amounts": f"as for {self.per_ether} {asset.symbol} to an ether",
        }


@dataclass(frozen=True)
class Deployment:
    """A plan on its chain, what of it stands, and what the rest costs at most, in wei.

    `since` is the newest block when it was planned first; `resumed` says that a record of it was found.
    """

    wish: Wish
    path: Path
    chain_id: int
    genesis_hash: bytes
    plan: DeploymentPlan
    since: int
    resumed: bool
    deployed: frozenset[str]
    balance: int
    gas: int
    fee_now: int
    fee_most: int

    @property
    def record(self) -> Path:
        """Return the file that remembers this deployment while it is under way."""
        return record_path(self.path)


def worth_of(per_ether: str | None, asset: Asset) -> Fraction:
    """Return how many of the asset are worth an ether. Raises UsageError BAD_AMOUNT, also for a token without it."""
    text = per_ether if per_ether is not None or asset.address is not None else "1"
    if text is None or not _AMOUNT.fullmatch(text) or not Fraction(text):
        what = f"--per-ether {text!r} is no amount" if text is not None else "what a token is worth cannot be seen here"
        raise UsageError(
            what,
            hint=f"--per-ether 2500, where 2500 {asset.symbol} are worth an ether: amounts are fixed by it for good",
            code="BAD_AMOUNT",
        )
    return Fraction(text)


def record_path(path: Path) -> Path:
    """Return where a deployment is remembered whose network file will be `path`."""
    return path.with_name(path.name + ".deploying")


def find_deployed(wish: Wish, port: ChainPort, path: Path) -> Network | None:
    """Return the market that a network file names where it is what is wished for, None where there is no such file.

    Raises UsageError FILE_EXISTS where it is another one, or on another chain.
    """
    if not path.exists():
        return None
    network = load_network(path)
    market = Market(port, network)
    try:
        market.identity.check()
    except ChainError as error:
        if error.retryable:
            raise
        raise _exists(path, f"of which {error.message}") from error
    profile = wish.profile.for_asset(wish.asset, wish.per_ether)
    found = (
        network.asset,
        network.policy,
        network.node_parameters,
        market.immutable("JobRegistry", "TREASURY"),
        market.immutable("Steward", "DELAY"),
    )
    policy = words.pack_policy(profile.policy)
    if found != (wish.asset, policy, profile.node_parameters, wish.treasury.lower(), profile.delay):
        raise _exists(path, "with other settings than these")
    record_path(path).unlink(missing_ok=True)
    return network


def prepare(
    wish: Wish, port: ChainPort, deployer: str, path: Path, config: SenderConfig, *, anew: bool = False
) -> Deployment:
    """Plan a deployment, or the rest of the one that is under way, and check that the deployer can pay for it.

    Nothing is written or sent. `anew` leaves a record out of account. Raises FundsError, ConfigError DEPLOY_UNFINISHED
    where the record is of other settings, another deployer, chain or version, BAD_TREASURY, BAD_COUNCIL,
    BAD_DECIMALS, UNFIT_AMOUNTS, UsageError BAD_ADDRESS where the asset is no token.
    """
    chain_id, genesis, head = port.chain_id(), port.genesis_hash(), port.head().number
    raw = None if anew else _read(record_path(path))
    if raw is not None and raw["settings"] != wish.settings() and _is_unsent(raw, port, chain_id, genesis):
        raw = None
    nonce = port.nonce(deployer, pending=True) if raw is None else int(raw["nonce"])
    since = head if raw is None else int(raw["since"])
    plan = make_plan(
        wish.profile,
        wish.asset,
        deployer=deployer,
        nonce=nonce,
        treasury=wish.treasury,
        council=wish.council,
        guardian=wish.guardian,
        per_ether=wish.per_ether,
    )
    deployed = frozenset(step.name for step in plan.steps if raw is not None and port.code(step.address))
    if not deployed:
        _check_asset(wish.asset, port)
        port.call(Call(None, plan.steps[0].code, label="deploy.Escrow"), sender=deployer)
    fees = port.fees()
    gas = sum(step.gas for step in plan.steps if step.name not in deployed)
    most = min(config.max_fee, 2 * fees.base_fee + fees.priority_fee)
    beside = port.rollup_fee(b"".join(step.code for step in plan.steps if step.name not in deployed), gas)
    deployment = Deployment(
        wish=wish,
        path=path,
        chain_id=chain_id,
        genesis_hash=genesis,
        plan=plan,
        since=since,
        resumed=raw is not None,
        deployed=deployed,
        balance=port.balance(deployer),
        gas=gas,
        fee_now=gas * (fees.base_fee + fees.priority_fee) + beside,
        fee_most=gas * most * config.gas_margin_bps // 10_000 + ROLLUP_MARGIN * beside,
    )
    if raw is not None:
        _refuse_other(deployment, raw)
        if since > head:
            raise _unfinished(deployment.record, f"began at block {since}, and the chain's newest is {head}")
    if deployment.balance < deployment.fee_most:
        raise _short(deployment, Asset(config.symbol, 18))
    return deployment


def finish(
    deployment: Deployment, deployer: Deployer, port: ChainPort, *, confirmations: int = 0, **shown: Any
) -> Network:
    """Remember the deployment, carry it out, write the network file, forget it. `shown` is rpc, explorer, gateways.

    Raises what `carry_out` raises; the same deployment prepared again goes on where this one stopped.
    """
    deployment.path.parent.mkdir(parents=True, exist_ok=True)
    replace_text(deployment.record, json.dumps(_record(deployment), indent=2) + "\n", durable=True)
    fp("deploy.recorded")
    network = carry_out(
        deployment.plan, deployer, port, name=deployment.wish.name, confirmations=confirmations, **shown
    )
    fp("deploy.checked")
    save_network(network, deployment.path)
    flush_folder(deployment.path.parent)
    fp("deploy.written")
    deployment.record.unlink(missing_ok=True)
    return network


def _check_asset(asset: Asset, port: ChainPort) -> None:
    """Refuse what is no token, and decimals that are not its own: stake and fees are scaled by them, for good."""
    if asset.address is None:
        if asset.decimals != NATIVE.decimals:
            raise ConfigError(
                f"a native coin has {NATIVE.decimals} decimals, not {asset.decimals}",
                hint=f"use --decimals {NATIVE.decimals}",
                code="BAD_DECIMALS",
            )
        return
    hint = "use --token ADDRESS, an ERC-20 on this chain; without it the market pays in the native coin"
    if not port.code(asset.address):
        raise UsageError(f"--token {asset.address} is no contract on this chain", hint=hint, code="BAD_ADDRESS")
    try:
        answer = port.call(Call(asset.address, token_call("decimals"), label="token.decimals"))
    except RefusedError:
        answer = b""
    if len(answer) < 32:
        raise UsageError(f"--token {asset.address} is no ERC-20: it has no decimals", hint=hint, code="BAD_ADDRESS")
    own = int.from_bytes(answer[:32], "big")
    if own != asset.decimals:
        raise ConfigError(
            f"the token {asset.address} has {own} decimals, not {asset.decimals}",
            hint=f"use --decimals {own}",
            code="BAD_DECIMALS",
        )


# ---- the record ----


def _record(deployment: Deployment) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "name": deployment.wish.name,
        "chain_id": deployment.chain_id,
        "genesis_hash": "0x" + deployment.genesis_hash.hex(),
        "deployer": deployment.plan.deployer,
        "nonce": deployment.plan.nonce,
        "since": deployment.since,
        "contracts": deployment.plan.addresses,
        "settings": deployment.wish.settings(),
        "code": _digest(deployment.plan),
    }


def _digest(plan: DeploymentPlan) -> str:
    """Return the hash of everything that will be sent: other artifacts are another deployment."""
    from eth_utils.crypto import keccak

    return "0x" + keccak(b"".join(step.code for step in plan.steps)).hex()


def _read(path: Path) -> dict[str, Any] | None:
    """Return the record in a file, None where there is none. Raises ConfigError DEPLOY_UNFINISHED."""
    try:
        raw = read_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise _unfinished(path, f"cannot be read ({error})") from error
    if not isinstance(raw, dict) or raw.get("schema") != SCHEMA or raw.keys() != KEYS:
        raise _unfinished(path, "is of another version")
    if not all(type(raw[name]) is kind for name, kind in (("nonce", int), ("since", int), ("settings", dict))):
        raise _unfinished(path, "is damaged")
    # Bounds of a chain's own: a nonce has 64 bits (EIP-2681).
    if not (0 <= raw["nonce"] < 2**64 and raw["since"] >= 0 and _ADDRESS.fullmatch(str(raw["deployer"]))):
        raise _unfinished(path, "is damaged")
    found: dict[str, Any] = raw
    return found


def _is_unsent(raw: dict[str, Any], port: ChainPort, chain_id: int, genesis: bytes) -> bool:
    """Say whether nothing of a recorded deployment is on its chain or on the way there."""
    here = (raw["chain_id"], raw["genesis_hash"]) == (chain_id, "0x" + genesis.hex())
    return here and bool(port.nonce(raw["deployer"], pending=True) == raw["nonce"])


def _refuse_other(deployment: Deployment, raw: dict[str, Any]) -> None:
    """Refuse to go on with a deployment of other settings than the record's: its contracts would be orphans."""
    ours = _record(deployment)
    for name, value in {**ours["settings"], **ours}.items():
        found = raw["settings"].get(name) if name in ours["settings"] else raw[name]
        if found != value:
            what = "other contracts" if name == "code" else f"{name} {found!r}, not {value!r}"
            raise _unfinished(deployment.record, f"has {what}")


def _exists(path: Path, why: str) -> UsageError:
    return UsageError(
        f"{path} exists already, and names a market {why}", hint="use another --name, or --force", code="FILE_EXISTS"
    )


def _unfinished(path: Path, why: str) -> ConfigError:
    return ConfigError(
        f"the deployment under way in {path} {why}",
        code="DEPLOY_UNFINISHED",
        hint="run it again with its own settings, or give it up with --force: what it created stays, unused",
    )


def _short(deployment: Deployment, coin: Asset) -> FundsError:
    need, have = deployment.fee_most, deployment.balance
    address, short = deployment.plan.deployer, show_at_least(need - have, coin)
    return FundsError(
        f"{address} holds {show_amount(have, coin)} on chain {deployment.chain_id}, and deploying takes "
        f"up to {show_at_least(need, coin)} for {deployment.gas:,} gas: short by {short}",
        hint=f"send {coin.symbol} to {address}, then the same command again",
        address=address,
        asset=coin.symbol,
        chain_id=deployment.chain_id,
        have=str(have),
        need=str(need),
        short_by=str(need - have),
    )
