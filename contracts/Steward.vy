# pragma version 0.4.3
# pragma evm-version cancun
# pragma nonreentrancy on
"""
@title Steward
@author Hearth
@license Apache-2.0
@notice The governor of a market's Rules and NodeRegistry. A council queues a change, everybody can see it for DELAY
        seconds, and anyone executes it then, for 14 days. The council or a guardian drops what waits, ends the previous
        policy, and pauses posts or registrations, as seldom as those contracts let it.

        Six changes are known, each an operation and its word:
          1  set the policy of new jobs (packing.POLICY_VERSION_SHIFT ..)
          2  set the stake asked of new registrations, in base units
          3  offer the governor's rights over posts to an address
          4  offer the governor's rights over registrations to an address
          5  offer the council's seat to an address, which must accept
          6  seat a guardian, zero for none
@custom:security Unaudited. It stores no calldata and forwards nothing but the calls above; what it governs refuses all
        that is out of its bounds, and lets no governor reach a job that is posted, a node, a lock or a credit. A guardian
        can keep everything as it is, by dropping each change, his own removal too: he can change nothing.
@custom:kill Without a council and a guardian nothing changes any more; the market goes on.
"""

from interfaces import INodeRegistry
from interfaces import IRules
from interfaces import ISteward

implements: ISteward

import reasons

SET_POLICY: constant(uint256) = 1
SET_MINIMUM_STAKE: constant(uint256) = 2
OFFER_POSTS: constant(uint256) = 3
OFFER_REGISTRATIONS: constant(uint256) = 4
OFFER_COUNCIL: constant(uint256) = 5
SEAT_GUARDIAN: constant(uint256) = 6

LIFE: constant(uint256) = 14 * 86400  # seconds from its due time in which a change can be executed
MAX_DELAY: constant(uint256) = 30 * 86400
# What `changes` holds of a change that is over; a due time is larger.
DROPPED: constant(uint256) = 1
EXECUTED: constant(uint256) = 2

NODES: public(immutable(address))
RULES: public(immutable(address))
DELAY: public(immutable(uint256))  # seconds

council: public(reentrant(address))
offered_council: public(reentrant(address))
guardian: public(reentrant(address))
changes: public(reentrant(HashMap[bytes32, uint256]))  # change -> the second from which it is due; see DROPPED


@deploy
def __init__(nodes: address, rules: address, council: address, guardian: address, delay: uint256):
    """
    @param nodes The NodeRegistry that it governs, and so is rules; both may stand later.
    @param guardian Zero for none.
    @param delay Seconds that everybody has to see a change, at most 30 days.
    """
    if council == empty(address):
        reasons._refuse(reasons.STEWARD_COUNCIL_ZERO)
    if delay == 0 or delay > MAX_DELAY:
        reasons._refuse(reasons.STEWARD_DELAY_RANGE)
    NODES = nodes
    RULES = rules
    DELAY = delay
    self.council = council
    self.guardian = guardian
    log ISteward.CouncilChanged(council=council)
    log ISteward.GuardianChanged(guardian=guardian)


# ---- COUNCIL AND GUARDIAN ----


@external
@reentrant
def queue(op: uint256, word: uint256, salt: uint256) -> bytes32:
    """
    @notice Announce a change. Called by the council.
    @param op 1 to 6.
    @param word The policy, the stake, or the address.
    @param salt Any; another one lets the same change be queued again.
    @return The change's id.
    """
    if msg.sender != self.council:
        reasons._refuse(reasons.STEWARD_NOT_COUNCIL)
    if op == 0 or op > SEAT_GUARDIAN:
        reasons._refuse(reasons.STEWARD_OP_RANGE)
    if op > SET_MINIMUM_STAKE and word > convert(max_value(uint160), uint256):
        reasons._refuse(reasons.STEWARD_WORD_RANGE)
    change: bytes32 = self._id(op, word, salt)
    self._check_over(self.changes[change])
    if self.changes[change] != 0:
        reasons._refuse(reasons.STEWARD_QUEUED)
    due: uint256 = block.timestamp + DELAY
    self.changes[change] = due
    log ISteward.ChangeQueued(change=change, op=op, word=word, salt=salt, due=due)
    return change


@external
@reentrant
def drop(change: bytes32):
    """
    @notice Take a queued change back, for good. Called by the council or the guardian.
    """
    self._check_seat()
    self._check_over(self.changes[change])
    if self.changes[change] == 0:
        reasons._refuse(reasons.STEWARD_UNKNOWN)
    self.changes[change] = DROPPED
    log ISteward.ChangeDropped(change=change)


@external
@reentrant
def drop_previous_policy():
    """
    @notice Take posts under the current policy only, from now on. Called by the council or the guardian.
    """
    self._check_seat()
    extcall IRules(RULES).drop_previous_policy()


@external
@reentrant
def pause(posts: bool, registrations: bool):
    """
    @notice Stop new posts, new registrations or both for 7 days, each at most once in 30. Called by the council or the
            guardian.
    """
    self._check_seat()
    if not posts and not registrations:
        reasons._refuse(reasons.STEWARD_NOTHING_NAMED)
    if posts:
        extcall IRules(RULES).pause()
    if registrations:
        extcall INodeRegistry(NODES).pause()


@external
@reentrant
def accept_council():
    """
    @notice Become the council. Called by who was offered its seat.
    """
    if msg.sender != self.offered_council:
        reasons._refuse(reasons.STEWARD_NOT_OFFERED)
    self.council = msg.sender
    self.offered_council = empty(address)
    log ISteward.CouncilChanged(council=msg.sender)


# ---- ANYONE ----


@external
@reentrant
def execute(op: uint256, word: uint256, salt: uint256):
    """
    @notice Carry out a queued change that is due. One that is refused then stays, and may be tried again.
    """
    change: bytes32 = self._id(op, word, salt)
    due: uint256 = self.changes[change]
    self._check_over(due)
    if due == 0:
        reasons._refuse(reasons.STEWARD_UNKNOWN)
    if block.timestamp < due:
        reasons._refuse(reasons.STEWARD_EARLY)
    if block.timestamp >= due + LIFE:
        reasons._refuse(reasons.STEWARD_LATE)
    self.changes[change] = EXECUTED
    log ISteward.ChangeExecuted(change=change, op=op, word=word)
    if op == SET_POLICY:
        extcall IRules(RULES).set_policy(word)
    elif op == SET_MINIMUM_STAKE:
        extcall INodeRegistry(NODES).set_minimum_stake(word)
    elif op == OFFER_POSTS:
        extcall IRules(RULES).offer_governor(convert(word, address))
    elif op == OFFER_REGISTRATIONS:
        extcall INodeRegistry(NODES).offer_governor(convert(word, address))
    elif op == OFFER_COUNCIL:
        self.offered_council = convert(word, address)
        log ISteward.CouncilOffered(council=self.offered_council)
    else:
        self.guardian = convert(word, address)
        log ISteward.GuardianChanged(guardian=self.guardian)


@external
@reentrant
def accept_governor(posts: bool, registrations: bool):
    """
    @notice Take the governor's rights that were offered to this contract.
    """
    if not posts and not registrations:
        reasons._refuse(reasons.STEWARD_NOTHING_NAMED)
    if posts:
        extcall IRules(RULES).accept_governor()
    if registrations:
        extcall INodeRegistry(NODES).accept_governor()


# ---- INTERNAL ----


@pure
@internal
def _id(op: uint256, word: uint256, salt: uint256) -> bytes32:
    return keccak256(abi_encode(op, word, salt))


@pure
@internal
def _check_over(state: uint256):
    if state == DROPPED:
        reasons._refuse(reasons.STEWARD_DROPPED)
    if state == EXECUTED:
        reasons._refuse(reasons.STEWARD_EXECUTED)


@view
@internal
def _check_seat():
    # No guardian is zero, which nobody calls from.
    if msg.sender != self.council and msg.sender != self.guardian:
        reasons._refuse(reasons.STEWARD_NOT_SEATED)
