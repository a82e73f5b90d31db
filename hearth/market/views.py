"""Ask one view of one contract of a market."""

from __future__ import annotations

from typing import Any

from hearth.chain.port import BlockRef, Call, ChainPort
from hearth.market.abi import codec, no_answer
from hearth.market.network import Network


def ask(port: ChainPort, network: Network, contract: str, name: str, *args: Any, block: BlockRef = "latest") -> bytes:
    """Return what a view answers, as it came. Raises ChainError where nothing does."""
    call = Call(network.contracts[contract], codec(contract).encode(name, *args), label=f"{contract}.{name}")
    data = port.call(call, block)
    if not data:
        raise no_answer(call.label, data)
    return data


def values_of(
    port: ChainPort, network: Network, contract: str, name: str, *args: Any, block: BlockRef = "latest"
) -> tuple[Any, ...]:
    """Return the values that a view answers. Raises ChainError where what answers is no such contract."""
    return codec(contract).decode_output(name, len(args), ask(port, network, contract, name, *args, block=block))
