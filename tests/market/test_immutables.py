"""What contracts can never change, read from their code: the same as their getters answer."""

from __future__ import annotations

from dataclasses import asdict, fields

import pytest

from hearth.market.deployment import constants
from hearth.market.immutables import LAYOUT, immutables_in
from hearth.market.network import NodeParameters
from hearth.protocol.types import ZERO_ADDRESS
from tests.kit.evm import CHAIN_ID
from tests.kit.world import World

UNLIKE = NodeParameters(901, 602, 604_803, 10**17 + 4, 10**15 + 5, 10**13 + 6, 107)


@pytest.mark.parametrize("erc20", [False, True], ids=["coin", "token"])
def test_immutables_in__code_of_real_contracts__is_what_their_getters_answer(erc20: bool) -> None:
    """Each value is unlike the others, so that none can stand in another's place."""
    world = World(erc20=erc20, parameters=UNLIKE)
    for name, contract in (("NodeRegistry", world.nodes), ("JobRegistry", world.jobs)):
        found = immutables_in(name, world.evm.code_at(contract))
        assert found is not None and tuple(found) == LAYOUT[name]
        getters = {getter: getattr(contract.call, getter)() for getter in constants(name)}
        told = {getter: int(one, 16) if isinstance(one, str) else one for getter, one in getters.items()}
        assert dict(found) == told | ({"CHAIN_ID": CHAIN_ID} if name == "JobRegistry" else {})
    token = ZERO_ADDRESS if world.token is None else world.token.address
    nodes = immutables_in("NodeRegistry", world.evm.code_at(world.nodes))
    assert nodes is not None and nodes["ASSET"] == int(token, 16)
    assert {one.name: nodes[one.name.upper()] for one in fields(NodeParameters)} == asdict(UNLIKE)


def test_immutables_in__other_code__says_nothing() -> None:
    world = World()
    code = world.evm.code_at(world.nodes)
    other = bytes([code[0] ^ 1]) + code[1:]
    for wrong in (b"", code[:-1], code[:-32], code + bytes(32), other, world.evm.code_at(world.jobs)):
        assert immutables_in("NodeRegistry", wrong) is None
