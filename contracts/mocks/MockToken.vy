# pragma version 0.4.3
"""
@title MockToken: an ERC-20 that does what the standard says
@author The Hearth authors
@license Apache-2.0
@notice Test money, for local chains only: anyone may mint any amount.
"""

from ethereum.ercs import IERC20
from ethereum.ercs import IERC20Detailed

implements: IERC20
implements: IERC20Detailed

name: public(String[32])
symbol: public(String[32])
decimals: public(uint8)
totalSupply: public(uint256)
balanceOf: public(HashMap[address, uint256])
allowance: public(HashMap[address, HashMap[address, uint256]])


@deploy
def __init__(name: String[32], symbol: String[32], decimals: uint8):
    self.name = name
    self.symbol = symbol
    self.decimals = decimals


@external
def mint(to: address, amount: uint256):
    """
    @notice Create `amount` base units for `to`.
    """
    self.totalSupply += amount
    self.balanceOf[to] += amount
    log IERC20.Transfer(sender=empty(address), receiver=to, value=amount)


@external
def transfer(to: address, amount: uint256) -> bool:
    self._move(msg.sender, to, amount)
    return True


@external
def transferFrom(source: address, to: address, amount: uint256) -> bool:
    allowed: uint256 = self.allowance[source][msg.sender]
    assert allowed >= amount, "token: allowance short"
    self.allowance[source][msg.sender] = allowed - amount
    self._move(source, to, amount)
    return True


@external
def approve(spender: address, amount: uint256) -> bool:
    self.allowance[msg.sender][spender] = amount
    log IERC20.Approval(owner=msg.sender, spender=spender, value=amount)
    return True


@internal
def _move(source: address, to: address, amount: uint256):
    held: uint256 = self.balanceOf[source]
    assert held >= amount, "token: balance short"
    self.balanceOf[source] = held - amount
    self.balanceOf[to] += amount
    log IERC20.Transfer(sender=source, receiver=to, value=amount)
