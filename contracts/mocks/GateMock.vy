# pragma version 0.4.3
# pragma nonreentrancy on
"""
@title GateMock: NodeRegistry's matching gates on any words, without the calls that would lead to them
@author The Hearth authors
@license Apache-2.0
@notice Test only. tests/protocol/test_formulas.py compares it with hearth/protocol/formulas.py.
"""

from interfaces import IEscrow
from interfaces import INodeRegistry

import NodeRegistry as registry

initializes: registry


@deploy
def __init__(escrow: IEscrow, dead_after: uint256, minimum_stake: uint256):
    registry.__init__(escrow, self, dead_after, 0, 1, minimum_stake, 1, 0, 0, msg.sender)


@view
@external
@reentrant
def gate(hot: uint256, offer: uint256, stake: uint256, ask: INodeRegistry.Ask, rate: uint256) -> uint256:
    return registry._gate(hot, offer, stake, ask, rate)
