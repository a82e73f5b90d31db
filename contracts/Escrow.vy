# pragma version 0.4.3
# pragma evm-version cancun
# pragma nonreentrancy on
"""
@title Escrow: all the money of the market
@author The Hearth authors
@license Apache-2.0
@notice Holds one asset, the native coin or one ERC-20, for every version of the market's contracts. Each unit of it is
        either locked under a pair (controller, key) or credited to an account.

        A controller is whoever calls `lock`: a registry, in the market. It may split what it locked into credits, and
        nothing else; no controller reaches another's locks, and Escrow pulls from nobody. A credit leaves by its
        account's own `withdraw`, to a place that the account names, so a receiver that cannot be paid stops nobody but
        itself. To burn is to credit an address that has no key.

        A deposit is proved before it is counted. Native: `msg.value` is the amount, and the sum of the books needs no
        count of its own. ERC-20: the controller moves the payer's tokens here and calls `lock` next, which asks for
        `amount` above all that is `tracked`. Tokens that came otherwise are a donation to whoever locks next, so a
        controller moves and locks in one call. Native coin forced upon Escrow without a call belongs to nobody.
@custom:security Anyone may call anything here, and acts on its own locks and its own credit alone. The books are final
        before money leaves; only `withdraw` calls out, last. What is marked @reentrant was reviewed: it calls nobody,
        and the books that it reads and writes are right even inside a token's or a receiver's callback. `lock` is not
        marked: within a withdrawal the count has fallen while the tokens may still be here, and they would pass for a
        donation. A controller may share a key among many dealings, as JobRegistry does among a submitter's jobs: Escrow
        knows the sum alone, and within a token's callback serves a split of what is locked there already, whichever
        dealing it is meant for. The asset keeps its promises: a token that takes a fee from its sender's balance,
        shrinks balances or calls hooks must not be deployed with.

        An entry of the books once used stays marked in its highest bit, so that its slot never returns to zero and is
        never paid for as a new one again. Views answer without the mark. It is never money: amounts have 255 bits, and
        one that would grow beyond them overflows the word and is refused, while what is taken is at most the amount.
@custom:kill Nothing can be switched off, upgraded or owned. A frozen token stops `withdraw` until it thaws, and
        nothing else.
"""

from ethereum.ercs import IERC20
from interfaces import IEscrow

implements: IEscrow

import packing
import reasons

# The ERC-20 that is kept here, or zero for the native coin.
ASSET: public(reentrant(immutable(address)))

# What a controller locked under a key of its own choosing, in base units below packing.BOOK_USED. That bit is set by
# the first amount and stays; a sum that would reach it overflows the word, and is refused.
_locks: HashMap[address, HashMap[bytes32, uint256]]

# What an account may withdraw, alike.
_credits: HashMap[address, uint256]

# ERC-20: the sum of all locks and credits in base units; never above the balance. Native: stays zero.
tracked: public(reentrant(uint256))


@deploy
def __init__(asset: address):
    """
    @param asset the ERC-20 to keep, or zero for the native coin
    """
    # A call to an address without code looks like a transfer without a return value.
    if asset != empty(address) and not asset.is_contract:
        reasons._refuse(reasons.ESCROW_NO_ASSET)
    ASSET = asset


# ---- CONTROLLERS ----


@external
@payable
def lock(key: bytes32, amount: uint256):
    """
    @notice Lock money that has just arrived, adding to what the caller holds under `key`.
    @param key a name of the caller's own
    @param amount base units, below 2^96: native, the value sent; ERC-20, covered by tokens that are not yet tracked
    """
    if amount > packing.SHARE_AMOUNT_MASK:
        reasons._refuse(reasons.ESCROW_TOO_LARGE)
    if ASSET == empty(address):
        if msg.value != amount:
            reasons._refuse(reasons.ESCROW_WRONG_VALUE)
    else:
        if msg.value != 0:
            reasons._refuse(reasons.ESCROW_NOT_NATIVE)
        total: uint256 = self.tracked + amount
        balance: uint256 = staticcall IERC20(ASSET).balanceOf(self)
        if balance < total:
            reasons._refuse(reasons.ESCROW_NOT_FUNDED)
        self.tracked = total
    self._locks[msg.sender][key] = (self._locks[msg.sender][key] | packing.BOOK_USED) + amount
    log IEscrow.Locked(controller=msg.sender, key=key, amount=amount)


@external
@reentrant
def lock_credit(key: bytes32, amount: uint256):
    """
    @notice Turn a part of the caller's own credit into its lock under `key`.
    @param key a name of the caller's own
    @param amount base units, at most the caller's credit
    """
    self._credits[msg.sender] = self._less(self._credits[msg.sender], amount)
    self._locks[msg.sender][key] = (self._locks[msg.sender][key] | packing.BOOK_USED) + amount
    log IEscrow.CreditLocked(controller=msg.sender, key=key, amount=amount)


@external
@reentrant
def split(key: bytes32, shares: uint256[4]):
    """
    @notice Turn a part of the caller's lock under `key` into credits; what is not named stays locked.
    @param shares each amount << 160 | account, base units; a share of zero base units is none, whoever it names
    """
    total: uint256 = 0
    for share: uint256 in shares:
        amount: uint256 = share >> packing.SHARE_AMOUNT_SHIFT
        if amount != 0:
            account: address = convert(share & packing.SHARE_ACCOUNT_MASK, address)
            # Nobody could ever withdraw it; money that is meant to be lost goes to a named dead address.
            if account == empty(address):
                reasons._refuse(reasons.ESCROW_FOR_NOBODY)
            # unsafe: at most four amounts below 2^96
            total = unsafe_add(total, amount)
            self._credits[account] = (self._credits[account] | packing.BOOK_USED) + amount
    self._locks[msg.sender][key] = self._less(self._locks[msg.sender][key], total)
    log IEscrow.Split(controller=msg.sender, key=key, shares=shares)


# ---- ACCOUNTS ----


@external
def withdraw(to: address, amount: uint256):
    """
    @notice Pay out a part of the caller's own credit.
    @param to who receives it; the caller or any other address but zero and Escrow itself
    @param amount base units, at most the caller's credit
    """
    if to == empty(address) or to == self:
        reasons._refuse(reasons.ESCROW_BAD_RECEIVER)
    self._credits[msg.sender] = self._less(self._credits[msg.sender], amount)
    log IEscrow.Withdrawn(account=msg.sender, to=to, amount=amount)
    if ASSET == empty(address):
        # No answer is copied, so a receiver cannot charge the caller for a long one.
        paid: bool = raw_call(to, b"", value=amount, revert_on_failure=False)
        if not paid:
            reasons._refuse(reasons.ESCROW_RECEIVER_REFUSED)
    else:
        self.tracked -= amount
        # A token may answer nothing, as some do; it may not answer false.
        moved: bool = extcall IERC20(ASSET).transfer(to, amount, default_return_value=True)
        if not moved:
            reasons._refuse(reasons.ESCROW_TOKEN_REFUSED)


# ---- VIEWS ----


@view
@external
@reentrant
def locked(controller: address, key: bytes32) -> uint256:
    """
    @return Base units that a controller holds under a key.
    """
    return self._locks[controller][key] & packing.BOOK_AMOUNT_MASK


@view
@external
@reentrant
def credit(account: address) -> uint256:
    """
    @return Base units that an account may withdraw.
    """
    return self._credits[account] & packing.BOOK_AMOUNT_MASK


# ---- INTERNALS ----


@pure
@internal
def _less(book: uint256, amount: uint256) -> uint256:
    """
    @return The entry with `amount` less, still marked where it was.
    """
    if book & packing.BOOK_AMOUNT_MASK < amount:
        reasons._refuse(reasons.ESCROW_SHORT)
    # unsafe: amount is at most the entry's, so it borrows nothing from the mark
    return unsafe_sub(book, amount)
