"""How the contracts of a market are created: their addresses, their constructor arguments, and the proof of both later.

Storage that creation code wrote tells of itself in no event, and two deployments of one code differ in what they were
created with. So whoever has to trust a market compares the transactions that created it with what these sources send.
Source: commands.md "Deployment".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from hearth.market.abi import artifact, codec
from hearth.market.contracts import CONTRACTS
from hearth.protocol.types import ZERO_ADDRESS

if TYPE_CHECKING:
    from hearth.chain.port import Transaction
    from hearth.market.network import Network, NodeParameters

OPEN_ARGUMENTS: Final = ("treasury", "council", "guardian", "delay")
"""Constructor arguments that no network file names: a market's own choice, read from the chain."""


def create_address(deployer: str, nonce: int) -> str:
    """Return the address of the contract that `deployer` creates at `nonce` (yellow paper, section 7)."""
    from eth_utils.crypto import keccak

    account = b"\x94" + bytes.fromhex(deployer[2:])
    if nonce < 0x80:
        number = bytes([nonce]) if nonce else b"\x80"
    else:
        raw = nonce.to_bytes((nonce.bit_length() + 7) // 8, "big")
        number = bytes([0x80 + len(raw)]) + raw
    payload = account + number
    return "0x" + keccak(bytes([0xC0 + len(payload)]) + payload)[12:].hex()


def creation_code(name: str, arguments: Mapping[str, Any]) -> bytes:
    """Return what creates a contract: the artifact's code and its encoded arguments, taken by parameter name."""
    return artifact(name).bytecode + codec(name).encode_constructor(arguments)


def fixed_arguments(
    token: str | None, contracts: Mapping[str, str], policy: int, parameters: NodeParameters
) -> dict[str, Any]:
    """Return by name the constructor arguments that follow from a network: all but OPEN_ARGUMENTS.

    `token` is the asset's address, None for the native coin; `contracts` are addresses by name.
    """
    return {
        "asset": token or ZERO_ADDRESS,
        **{short: contracts[name] for name, short in CONTRACTS.items()},
        "governor": contracts["Steward"],
        "policy": policy,
        "dead_after": parameters.dead_after,
        "ask_notice": parameters.ask_notice,
        "unbonding": parameters.unbonding,
        "minimum_stake": parameters.minimum_stake,
        "fee_reference": parameters.fee_reference,
        "liveness_fee": parameters.liveness_fee,
        "ration_bps": parameters.ration_bps,
    }


def creation_fault(name: str, sent: Transaction, network: Network) -> str | None:
    """Return how a transaction differs from one that created a contract of these sources for a network, None for none.

    An account creates one contract at each of its nonces, so the address alone says which transaction created it.
    """
    address = network.contracts[name]
    if sent.to is not None or create_address(sent.sender, sent.nonce) != address:
        return f"{name} at {address} was not created by the transaction that the network file names"
    if sent.block_number is None or sent.block_number < network.deploy_block:
        return f"{name} was not created at block {network.deploy_block}, from which events are read, or later"
    code = artifact(name).bytecode
    if not sent.data.startswith(code):
        return f"{name} was created by other code than that of these sources"
    try:
        found = codec(name).decode_constructor(sent.data[len(code) :])
    except ValueError as error:
        return f"{name} was created with arguments that cannot be read: {error}"
    wanted = fixed_arguments(network.asset.address, network.contracts, network.policy, network.node_parameters)
    for argument, value in found.items():
        if argument not in OPEN_ARGUMENTS and value != wanted[argument]:
            return f"{name} was created with {argument} {value}, not {wanted[argument]}"
    return None
