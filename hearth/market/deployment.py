"""Plan a deployment, carry it out on the one transaction path, and refuse what does not read back as planned.

The plan is pure: from a deployer and its nonce follow all addresses, so that the fixed pair of registries can name each
other. The same plan carried out again finds what stands and what is in flight, and creates the rest; hearth.market
.deploying keeps it while it is under way. Constructor arguments are taken by parameter name from the committed ABIs,
and every constant and immutable that a contract exposes must have an expected value here: a new one that nobody checks
is refused. Source: commands.md "Deployment".
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final, NamedTuple, Protocol

from hearth.base.errors import ChainError, ConfigError
from hearth.chain.port import Call, ChainPort
from hearth.chain.tx import Sender, Sent
from hearth.market.abi import artifact, codec
from hearth.market.contracts import CONTRACTS
from hearth.market.creation import create_address, creation_code, fixed_arguments
from hearth.market.immutables import is_ours
from hearth.market.network import Network
from hearth.market.profiles import Profile
from hearth.market.reads import Market
from hearth.protocol import words
from hearth.protocol.types import ZERO_ADDRESS
from hearth.protocol.units import Asset

CONFIRM_SECONDS: Final = 900.0
"""How long the blocks on top of the last creation are waited for."""
CONSTRUCTOR_GAS: Final = 200_000
"""What a constructor's own work and its immutables' bytes take at most: storage words, calls, events."""


@dataclass(frozen=True, slots=True)
class Step:
    """One contract to create: creation code with its encoded arguments, and the address that it gets at `nonce`."""

    name: str
    code: bytes
    address: str
    nonce: int

    @property
    def gas(self) -> int:
        """Return the gas that creating it takes, rounded up.

        It cannot be asked for beforehand: a constructor calls contracts that do not stand yet. Sources: EIP-2028,
        EIP-3860, the yellow paper's appendix G.
        """
        zeros = self.code.count(0)
        data = 4 * zeros + 16 * (len(self.code) - zeros) + 2 * -(-len(self.code) // 32)
        return 21_000 + 32_000 + data + 200 * artifact(self.name).runtime_size + CONSTRUCTOR_GAS


@dataclass(frozen=True)
class DeploymentPlan:
    """A whole deployment. `council` and `guardian` (zero for none) sit in its Steward, which governs it.

    `expected` holds, by contract and getter, what must be read back.
    """

    profile: Profile
    asset: Asset
    treasury: str
    council: str
    guardian: str
    deployer: str
    nonce: int
    steps: tuple[Step, ...]
    expected: Mapping[str, Mapping[str, Any]] = field(hash=False)

    @property
    def addresses(self) -> dict[str, str]:
        """Return the addresses by contract name."""
        return {step.name: step.address for step in self.steps}


class Created(NamedTuple):
    """A contract that stands: its address, the block that holds it, and its transaction where that is known."""

    address: str
    block: int
    tx_hash: bytes | None


class Deployer(Protocol):
    """The account that deploys, whatever signs for it."""

    address: str

    def deploy(self, step: Step) -> Created:
        """Create a contract, or find it created."""


def make_plan(
    profile: Profile,
    asset: Asset,
    *,
    deployer: str,
    nonce: int,
    treasury: str,
    council: str,
    guardian: str = ZERO_ADDRESS,
    per_ether: Fraction = Fraction(1),
) -> DeploymentPlan:
    """Return the plan of a deployment whose first transaction has `nonce`; amounts are brought to the asset.

    `per_ether` of the asset are worth an ether. Raises ConfigError BAD_TREASURY, BAD_COUNCIL, UNFIT_AMOUNTS.
    """
    if int(treasury, 16) == 0:
        raise ConfigError("the treasury is the zero address", code="BAD_TREASURY", hint="use --treasury ADDRESS")
    if int(council, 16) == 0:
        raise ConfigError("the council is the zero address", code="BAD_COUNCIL", hint="use --council ADDRESS")
    profile = profile.for_asset(asset, per_ether)
    parameters, policy = profile.node_parameters, words.pack_policy(profile.policy)
    addresses = {name: create_address(deployer, nonce + i) for i, name in enumerate(CONTRACTS)}
    token = asset.address or ZERO_ADDRESS
    arguments: dict[str, Any] = {
        **fixed_arguments(asset.address, addresses, policy, parameters),
        "treasury": treasury,
        "council": council,
        "guardian": guardian,
        "delay": profile.delay,
    }
    steps = tuple(
        Step(name, creation_code(name, arguments), addresses[name], nonce + i) for i, name in enumerate(CONTRACTS)
    )
    seats = (treasury.lower(), council.lower(), guardian.lower())
    expected = _expected(profile, policy, token, addresses, *seats)
    return DeploymentPlan(profile, asset, *seats, deployer.lower(), nonce, steps, expected)


def _expected(
    profile: Profile, policy: int, token: str, addresses: Mapping[str, str], treasury: str, council: str, guardian: str
) -> dict[str, dict[str, Any]]:
    """Return what each contract's getters must answer, by contract and getter. Addresses are in lower case."""
    parameters = profile.node_parameters
    pair = {"ESCROW": addresses["Escrow"], "ASSET": token, "DEAD_AFTER": parameters.dead_after}
    governed = {"governor": addresses["Steward"], "offered_governor": ZERO_ADDRESS, "paused_until": 0}
    return {
        "Escrow": {"ASSET": token, "tracked": 0},
        "NodeRegistry": {
            **pair,
            **governed,
            "JOBS": addresses["JobRegistry"],
            "ASK_NOTICE": parameters.ask_notice,
            "UNBONDING": parameters.unbonding,
            "MINIMUM_STAKE": parameters.minimum_stake,
            "FEE_REFERENCE": parameters.fee_reference,
            "LIVENESS_FEE": parameters.liveness_fee,
            "RATION_BPS": parameters.ration_bps,
            "minimum_stake": parameters.minimum_stake,
        },
        "Rules": {**governed, "NODES": addresses["NodeRegistry"], "policies": (policy, 0, 0, 0, 0)},
        "JobRegistry": {
            **pair,
            "NODES": addresses["NodeRegistry"],
            "RULES": addresses["Rules"],
            "TREASURY": treasury,
        },
        "Lens": {
            "JOBS": addresses["JobRegistry"],
            "NODES": addresses["NodeRegistry"],
            "RULES": addresses["Rules"],
            "ESCROW": addresses["Escrow"],
        },
        "Attesters": {"JOBS": addresses["JobRegistry"]},
        "Steward": {
            "NODES": addresses["NodeRegistry"],
            "RULES": addresses["Rules"],
            "DELAY": profile.delay,
            "council": council,
            "offered_council": ZERO_ADDRESS,
            "guardian": guardian,
        },
    }


def carry_out(
    plan: DeploymentPlan,
    deployer: Deployer,
    port: ChainPort,
    *,
    name: str,
    rpc: tuple[str, ...] = (),
    explorer: str | None = None,
    gateways: tuple[str, ...] = (),
    confirmations: int = 0,
) -> Network:
    """Create the contracts that do not stand yet, read everything back, and return the network.

    `confirmations` are the blocks on top of the last creation that are waited for before it is read back. Raises
    ChainError DEPLOY_NONCE where another transaction of the deployer took a nonce of the plan, WRONG_CONTRACTS where a
    value does not read back: the contracts are then useless (they name addresses without code) and hold nothing.
    """
    if deployer.address.lower() != plan.deployer:
        raise ValueError(f"the plan is {plan.deployer}'s, not {deployer.address}'s")
    created: dict[str, Created] = {}
    for step in plan.steps:
        one = created[step.name] = deployer.deploy(step)
        if one.address.lower() != step.address:
            raise _mismatch(f"{step.name}'s address", step.address, one.address)
    _await(port, max(one.block for one in created.values()) + confirmations)
    network = Network(
        name=name,
        chain_id=port.chain_id(),
        genesis_hash=port.genesis_hash(),
        contracts=plan.addresses,
        asset=plan.asset,
        policy=words.pack_policy(plan.profile.policy),
        deploy_block=min(one.block for one in created.values()),
        node_parameters=plan.profile.node_parameters,
        code_hashes=read_back(plan, port),
        creations={name: one.tx_hash for name, one in created.items() if one.tx_hash is not None},
        rpc=rpc,
        explorer=explorer,
        gateways=gateways,
    )
    Market(port, network).identity.check()
    return network


def read_back(plan: DeploymentPlan, port: ChainPort) -> dict[str, bytes]:
    """Compare code, constants, immutables and first state with the plan; return the code hashes.

    Raises ChainError WRONG_CONTRACTS naming what differs, or a getter that the plan has no value for.
    """
    from eth_utils.crypto import keccak

    hashes: dict[str, bytes] = {}
    for name, address in plan.addresses.items():
        code = port.code(address)
        if not is_ours(name, code):
            size = artifact(name).runtime_size
            raise _mismatch(f"{name}'s code", f"{size} bytes of the artifact", f"{len(code)} other bytes")
        hashes[name] = keccak(code)
        values = plan.expected[name]
        unchecked = sorted(constants(name) - set(values))
        if unchecked:
            raise _mismatch(f"{name}.{unchecked[0]}", "an expected value in the plan", "none")
        for getter, wanted in values.items():
            data = port.call(Call(address, codec(name).encode(getter), label=f"{name}.{getter}"))
            found: Any = codec(name).decode_output(getter, 0, data)
            found = found[0] if len(found) == 1 else tuple(found)
            if found != wanted:
                raise _mismatch(f"{name}.{getter}", wanted, found)
    return hashes


def constants(name: str) -> set[str]:
    """Return the getters of a contract's public constants and immutables: the UPPER_CASE ones without arguments."""
    return {
        entry["name"]
        for entry in artifact(name).abi
        if entry["type"] == "function" and not entry["inputs"] and entry["name"].isupper()
    }


def _mismatch(what: str, wanted: Any, found: Any) -> ChainError:
    return ChainError(
        f"{what} does not read back: planned {wanted}, found {found}",
        code="WRONG_CONTRACTS",
        retryable=False,
        hint="rebuild the artifacts, then deploy anew",
    )


def _await(port: ChainPort, block: int) -> None:
    """Wait until the chain has reached a block. Raises ChainError TX_PENDING where it stands still."""
    end = time.monotonic() + CONFIRM_SECONDS
    while port.head().number < block:
        if time.monotonic() >= end:
            raise ChainError(
                f"the chain has not reached block {block} after {CONFIRM_SECONDS:.0f} s",
                code="TX_PENDING",
                hint="run the same command again to go on waiting, or use --confirmations 0",
            )
        time.sleep(0.2)


Tell = Callable[[Step, Sent | None], None]
"""Hears of a contract that stands, and of its transaction where that is known."""


class TxDeployer:
    """Deploy through the one transaction path.

    `since` is a block before the deployment, given for a contract whose own block nobody remembers.
    """

    def __init__(self, sender: Sender, port: ChainPort, *, since: int = 0, tell: Tell | None = None) -> None:
        self.address = sender.address
        self._sender = sender
        self._port = port
        self._since = since
        self._tell = tell

    def deploy(self, step: Step) -> Created:
        """Create a contract and wait for its receipt, or find that it stands. Raises ChainError DEPLOY_NONCE."""
        key = f"deploy/{step.address}"
        known = self._sender.journal.find(key)
        if (known is None or not (known.state.live or known.state.done)) and self._port.code(step.address):
            # Created by a process whose journal is not at hand; what it is, is read back at the end.
            self._heard(step, None)
            return Created(step.address, self._since, None)
        try:
            sent = self._sender.send(Call(None, step.code, 0, f"deploy.{step.name}"), key=key, nonce=step.nonce)
        except ChainError as error:
            if error.code != "NONCE_TAKEN":
                raise
            raise ChainError(
                f"{step.name} cannot get its address {step.address}: {self.address} used nonce {step.nonce} for "
                "something else, or is about to; what stands of the deployment holds nothing and is of no use",
                code="DEPLOY_NONCE",
                hint="use --force to give it up and deploy anew, with nothing else signing for the account",
                retryable=False,
            ) from error
        assert sent.tx_hash is not None and sent.block_number is not None
        self._heard(step, sent)
        receipt = self._port.receipt(sent.tx_hash)
        # A receipt need not say the address, which follows from the nonce; what stands there is read back at the end.
        told = None if receipt is None else receipt.contract
        return Created(told or step.address, sent.block_number, sent.tx_hash)

    def _heard(self, step: Step, sent: Sent | None) -> None:
        if self._tell is not None:
            self._tell(step, sent)
