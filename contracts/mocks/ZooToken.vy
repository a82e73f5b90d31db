# pragma version 0.4.3
"""
@title ZooToken: an ERC-20 with a switch for each way of being awkward
@author The Hearth authors
@license Apache-2.0
@notice Test only. Without traits it is a plain token; anyone may set traits at any time, so that a test can deposit
        with an honest token and withdraw from an awkward one. Tokens that answer at great length are LongToken.
"""

# What a transfer does besides, or instead of, moving the amount.
flag Trait:
    FEE  # the receiver gets less, by fee_bps
    SILENT  # answers nothing
    LIE  # moves nothing and answers false
    REVERT  # refuses
    FREEZE  # refuses for frozen accounts
    PAUSE  # refuses for everybody
    HOOK  # calls `hooked` before and after the balances move
    BURN  # uses up all the gas
    NO_ZERO  # refuses to move nothing


interface Hooked:
    def on_move(): nonpayable


event Transfer:
    sender: indexed(address)
    receiver: indexed(address)
    value: uint256


BPS: constant(uint256) = 10_000
ONE: constant(uint256) = 10**18

decimals: public(uint8)
traits: public(Trait)
fee_bps: public(uint256)
hooked: public(address)
frozen: public(HashMap[address, bool])
allowance: public(HashMap[address, HashMap[address, uint256]])
# Balances are shares * ratio / ONE, so that `rebase` grows or shrinks them all at once.
shares: HashMap[address, uint256]
ratio: uint256


@deploy
def __init__(decimals: uint8):
    self.decimals = decimals
    self.ratio = ONE


# ---- SWITCHES ----


@external
def set_traits(traits: Trait):
    self.traits = traits


@external
def set_fee(bps: uint256):
    self.fee_bps = bps


@external
def set_hooked(account: address):
    self.hooked = account


@external
def freeze(account: address, frozen: bool):
    self.frozen[account] = frozen


@external
def rebase(numerator: uint256, denominator: uint256):
    self.ratio = self.ratio * numerator // denominator


@external
def mint(to: address, amount: uint256):
    self.shares[to] += amount * ONE // self.ratio


# ---- ERC-20 ----


@view
@external
def balanceOf(account: address) -> uint256:
    return self._balance(account)


@external
@raw_return
def transfer(to: address, amount: uint256) -> Bytes[32]:
    return self._move(msg.sender, to, amount)


@external
@raw_return
def transferFrom(source: address, to: address, amount: uint256) -> Bytes[32]:
    assert self.allowance[source][msg.sender] >= amount, "token: allowance short"
    self.allowance[source][msg.sender] -= amount
    return self._move(source, to, amount)


@external
def approve(spender: address, amount: uint256) -> bool:
    self.allowance[msg.sender][spender] = amount
    return True


@view
@internal
def _balance(account: address) -> uint256:
    return self.shares[account] * self.ratio // ONE


@internal
def _move(source: address, to: address, amount: uint256) -> Bytes[32]:
    traits: Trait = self.traits
    if Trait.LIE in traits:
        return abi_encode(False)
    assert Trait.REVERT not in traits, "token: refused"
    assert Trait.PAUSE not in traits, "token: paused"
    assert not (Trait.FREEZE in traits and (self.frozen[source] or self.frozen[to])), "token: frozen"
    assert not (Trait.NO_ZERO in traits and amount == 0), "token: nothing to move"
    if Trait.BURN in traits:
        raise UNREACHABLE
    if Trait.HOOK in traits:
        extcall Hooked(self.hooked).on_move()
    received: uint256 = amount
    if Trait.FEE in traits:
        received -= amount * self.fee_bps // BPS
    assert self._balance(source) >= amount, "token: balance short"
    self.shares[source] -= amount * ONE // self.ratio
    self.shares[to] += received * ONE // self.ratio
    log Transfer(sender=source, receiver=to, value=received)
    if Trait.HOOK in traits:
        extcall Hooked(self.hooked).on_move()
    if Trait.SILENT in traits:
        return b""
    return abi_encode(True)
