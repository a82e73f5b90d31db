"""What a market's contracts can never change, held against the network file: whom they pay and ask, the asset, and the
parameters of nodes.

Immutables stand behind a contract's runtime code, in the order in which its source declares them, so that who has read
the code has read them too. Of code that is not these sources' the getters are asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Final

from hearth.market.abi import artifact
from hearth.market.network import Network
from hearth.protocol.types import ZERO_ADDRESS

LAYOUT: Final[Mapping[str, tuple[str, ...]]] = {
    "NodeRegistry": (
        *("ESCROW", "ASSET", "JOBS", "DEAD_AFTER", "ASK_NOTICE", "UNBONDING", "MINIMUM_STAKE"),
        *("FEE_REFERENCE", "LIVENESS_FEE", "RATION_BPS"),
    ),
    "JobRegistry": ("ESCROW", "NODES", "RULES", "ASSET", "TREASURY", "DEAD_AFTER", "CHAIN_ID"),
}
"""By contract its immutables, in the order of its source."""


_ADDRESSES: Final = frozenset(("ASSET", "ESCROW", "NODES", "JOBS"))


def is_ours(contract: str, code: bytes) -> bool:
    """Say whether the runtime code of a contract is these sources', whatever immutables stand behind it."""
    return code.startswith(artifact(contract).runtime)


def immutables_in(contract: str, code: bytes) -> Mapping[str, int] | None:
    """Return the immutables in the runtime code of a contract of LAYOUT, None for code that is not these sources'."""
    names, made = LAYOUT[contract], artifact(contract)
    words = code[made.runtime_size :]
    if len(words) != 32 * len(names) or not is_ours(contract, code):
        return None
    return {name: int.from_bytes(words[32 * at : 32 * at + 32], "big") for at, name in enumerate(names)}


def said_of(network: Network) -> Iterator[tuple[str, str, int]]:
    """Yield the contract, the getter and the value of each immutable that a network file tells."""
    yield "JobRegistry", "ASSET", int(network.asset.address or ZERO_ADDRESS, 16)
    # The same code can stand over an Escrow, or beside a registry, of other code.
    yield "JobRegistry", "ESCROW", int(network.escrow, 16)
    yield "JobRegistry", "NODES", int(network.nodes, 16)
    yield "NodeRegistry", "ESCROW", int(network.escrow, 16)
    yield "NodeRegistry", "JOBS", int(network.jobs, 16)
    for name, value in asdict(network.node_parameters).items():
        yield "NodeRegistry", name.upper(), value


def in_words(getter: str, value: int | None) -> str:
    """Return what a getter answers for people: an address, a number, or that it does not answer."""
    if value is None:
        return "not answered"
    return f"0x{value:040x}" if getter in _ADDRESSES else str(value)
