# pragma version 0.4.3
# pragma evm-version cancun
# pragma nonreentrancy on
"""
@title Rules
@author Hearth
@license Apache-2.0
@notice What only `JobRegistry.post` needs: the ranges of terms, the parameters of new jobs, and a pause. A job freezes
        the parameters that it is posted under, so nothing here touches a posted job; what top_up and rule ask here is
        worked out from their arguments.
@custom:security Unaudited. Holds no money and is called as a view alone; it calls nobody but the judge that the terms
        name, by a static call. The governor sets parameters within the bounds below, and may pause posts
        for 7 days, at most once in 30.
@custom:kill Cannot be switched off. A pause ends by itself, and stops new jobs only.
"""

from interfaces import IJobRegistry
from interfaces import IJudge
from interfaces import INodeRegistry
from interfaces import IRules

implements: IRules

import leases
import packing
import reasons

PROTOCOL_VERSION: constant(uint256) = 1
MAX_PARENTS: constant(uint256) = 15
MAX_PARENT_WORDS: constant(uint256) = MAX_PARENTS + 1  # the conditions and the ids
PAUSE_TIME: constant(uint256) = 7 * 86400
PAUSE_EVERY: constant(uint256) = 30 * 86400  # from the beginning of one pause to the next
POLICY_GRACE: constant(uint256) = 86400  # a replaced policy is taken this long, and none is replaced sooner
FEE_CAP: constant(uint256) = 1000  # bps
# bps; with less, what a node on probation may take could hardly end its probation
FEE_FLOOR: constant(uint256) = 10
# Of a keeper fee, so that none of its shares, nor a caller's of a slash (of a bond of 8 keeper fees), is nothing.
KEEPER_FEE_FLOOR: constant(uint256) = 8
# fee_references: the most that a policy asks for at least, so that a pause alone stops posting.
MAX_MINIMUM: constant(uint256) = 1000

# Limits of SPEC section "Terms".
MAX_SECONDS: constant(uint256) = 30 * 86400
MAX_UNITS: constant(uint256) = 2**20
MAX_CHUNK: constant(uint256) = 256
MAX_WINDOW: constant(uint256) = 300
MAX_ATTEMPTS: constant(uint256) = 8
MAX_CHALLENGE_WINDOW: constant(uint256) = 7 * 86400
MAX_PROOF_TIME: constant(uint256) = 60 * 86400  # seconds to a deadline until which a bond may wait for a proof
# What this version builds: one unit a lease, of the flags newcomers, proven and keep. Replicas are looked at apart.
BUILT_LANES: constant(uint256) = (
    packing.LIMITS_CHUNK_LANE
    + packing.LIMITS_REPLICAS_LANE
    + packing.LIMITS_QUORUM_LANE
    + packing.LIMITS_FLAGS_LANE
    - packing.LIMITS_NEWCOMERS
    - packing.LIMITS_PROVEN
    - packing.LIMITS_KEEP
)
MAX_REPLICAS: constant(uint256) = 7
FLAGS_UNKNOWN: constant(uint256) = (
    packing.LIMITS_FLAGS_LANE
    - packing.LIMITS_NEWCOMERS
    - packing.LIMITS_PROVEN
    - packing.LIMITS_KEEP
    - packing.LIMITS_CONFIDENTIAL
    - packing.LIMITS_PREEMPTIBLE
)
BUILT: constant(uint256) = (
    (1 << packing.LIMITS_CHUNK_SHIFT) + (1 << packing.LIMITS_REPLICAS_SHIFT) + (1 << packing.LIMITS_QUORUM_SHIFT)
)
# What a job without a judge leaves out.
JUDGED_LANES: constant(uint256) = packing.LIMITS_CHALLENGE_WINDOW_LANE + packing.LIMITS_PROVEN

# What a judge may say of a unit, as in JobRegistry.
RELEASE: constant(uint256) = 0
CONFIRM: constant(uint256) = 1
VOID: constant(uint256) = 3

NODES: public(immutable(INodeRegistry))

_policy: uint256  # of new jobs; zero while a pause holds it back, and after it until the next one is set
_held_policy: uint256  # in force when the pause has ended
_previous_policy: uint256
_previous_until: uint256  # seconds
_changed_at: uint256  # seconds, of the last change of the policy
paused_until: public(reentrant(uint256))  # seconds
governor: public(reentrant(address))
offered_governor: public(reentrant(address))


@deploy
def __init__(nodes: INodeRegistry, policy: uint256, governor: address):
    """
    @param nodes The NodeRegistry of the market: amounts are bounded by its FEE_REFERENCE.
    @param policy The first parameters of new jobs (packing.POLICY_VERSION_SHIFT ..).
    @param governor Who may change them; zero for nobody.
    """
    NODES = nodes
    self._check_policy_range(policy)
    self._policy = policy
    self.governor = governor
    log IRules.PolicyChanged(policy=policy, previous=0, until=0)
    log IRules.GovernorChanged(governor=governor)


# ---- GOVERNANCE ----


@external
@reentrant
def set_policy(policy: uint256):
    """
    @notice Set the parameters of new jobs, once in 24 hours. The replaced ones are taken for 24 hours more.
    """
    self._check_governor()
    self._check_policy_range(policy)
    # Parameters that are other ones in every block would stop posts, as a pause does, and for ever.
    if block.timestamp < self._changed_at + POLICY_GRACE:
        reasons._refuse(reasons.RULES_CHANGED_LATELY)
    previous: uint256 = self._policy
    if previous == 0:
        previous = self._held_policy
    if block.timestamp < self.paused_until:
        self._held_policy = policy
    else:
        self._policy = policy
    self._previous_policy = previous
    self._previous_until = block.timestamp + POLICY_GRACE
    self._changed_at = block.timestamp
    log IRules.PolicyChanged(policy=policy, previous=previous, until=self._previous_until)


@external
@reentrant
def drop_previous_policy():
    """
    @notice Take posts under the current parameters only, from now on.
    """
    self._check_governor()
    self._previous_until = 0
    log IRules.PolicyChanged(policy=self._current(), previous=self._previous_policy, until=0)


@external
@reentrant
def pause():
    """
    @notice Stop new posts for 7 days, at most once in 30. Nothing else stops, and the pause ends by itself.
    """
    self._check_governor()
    last: uint256 = self.paused_until
    if last != 0 and block.timestamp < last - PAUSE_TIME + PAUSE_EVERY:
        reasons._refuse(reasons.RULES_PAUSED_LATELY)
    if self._policy != 0:
        self._held_policy = self._policy
        self._policy = 0
    self.paused_until = block.timestamp + PAUSE_TIME
    log IRules.Paused(until=self.paused_until)


@external
@reentrant
def offer_governor(governor: address):
    """
    @notice Offer the governor's rights to a new holder, who must accept. Zero takes it back.
    """
    self._check_governor()
    self.offered_governor = governor
    log IRules.GovernorOffered(governor=governor)


@external
@reentrant
def accept_governor():
    """
    @notice Become the governor.
    """
    if msg.sender != self.offered_governor:
        reasons._refuse(reasons.RULES_NOT_OFFERED)
    self.governor = msg.sender
    self.offered_governor = empty(address)
    log IRules.GovernorChanged(governor=msg.sender)


# ---- VIEWS ----


@view
@external
@reentrant
def check(terms: IJobRegistry.Terms, parents: DynArray[bytes32, MAX_PARENT_WORDS]) -> (uint256, uint256):
    """
    @notice Say what a job costs to post now; reverts with what is wrong about its terms.
    @return (the job's first word, funding in base units: leases x (price + attempts x keeper fee), with parents one
            keeper fee more)
    """
    policy: uint256 = terms.policy
    if policy != self._policy or policy == 0:
        self._check_other_policy(policy)
    count: uint256 = self._check_terms(terms)
    amount: uint256 = count * leases._budget(leases._unit_price(terms.money, terms.limits), terms.money, terms.limits)
    word: uint256 = 0
    if count != 1:
        word = (
            packing.STATE_HEADER
            | (block.timestamp << packing.HEADER_OPENED_SHIFT)
            | (count << packing.HEADER_LEASES_SHIFT)
        )
        if (terms.limits >> packing.LIMITS_REPLICAS_SHIFT) & packing.LIMITS_REPLICAS_MASK != 1:
            quorum: uint256 = (terms.limits >> packing.LIMITS_QUORUM_SHIFT) & packing.LIMITS_QUORUM_MASK
            word |= quorum << packing.HEADER_QUORUM_SHIFT
    else:
        word = packing.STATE_OPEN | (block.timestamp << packing.UNIT_STARTED_SHIFT)
    if terms.parents_hash != empty(bytes32):
        if count != 1:
            word |= packing.HEADER_WAITING
        else:
            word = (word & ~packing.UNIT_STATE_LANE) | packing.STATE_BLOCKED
        self._check_parents(terms.parents_hash, parents)
        amount += (terms.money >> packing.MONEY_KEEPER_FEE_SHIFT) & packing.MONEY_KEEPER_FEE_MASK
    elif len(parents) != 0:
        reasons._refuse(reasons.JOBS_PARENTS_HASH)
    if amount > packing.SHARE_AMOUNT_MASK:
        reasons._refuse(reasons.JOBS_ESCROW_LARGE)
    return word, amount


@view
@external
@reentrant
def topped(money: uint256, limits: uint256, word: uint256, seconds: uint256) -> (uint256, uint256):
    """
    @notice Say what it costs to give a unit more time now; reverts with why it cannot have it.
    @param money As in its terms, and so is limits.
    @param word The unit's.
    @param seconds What its lease and its price grow by.
    @return (the unit's word then, base units)
    """
    if word & packing.UNIT_STATE_MASK != packing.STATE_RUNNING:
        reasons._refuse(reasons.JOBS_NOT_RUNNING)
    if (limits >> packing.LIMITS_BILLING_SHIFT) & packing.LIMITS_BILLING_MASK != packing.BILLING_METERED:
        reasons._refuse(reasons.JOBS_NOT_METERED)
    mark: uint256 = (word >> packing.UNIT_MARK_SHIFT) & packing.UNIT_MARK_MASK
    if block.timestamp >= mark:
        reasons._refuse(reasons.JOBS_LATE)
    grown: uint256 = leases._topped(limits, word)
    if seconds == 0 or seconds > MAX_SECONDS - (grown & packing.LIMITS_MAX_SECONDS_MASK):
        reasons._refuse(reasons.JOBS_SECONDS_RANGE)
    if mark + seconds > (limits >> packing.LIMITS_DEADLINE_SHIFT) & packing.LIMITS_DEADLINE_MASK:
        reasons._refuse(reasons.JOBS_DEADLINE_NEAR)
    return (
        word + (seconds << packing.UNIT_SECONDS_SHIFT) + (seconds << packing.UNIT_MARK_SHIFT),
        leases._unit_price(money, grown + seconds) - leases._unit_price(money, grown),
    )


@view
@external
@reentrant
def ruled(limits: uint256, policy: uint256, word: uint256, verdict: uint256, fields: uint256) -> uint256:
    """
    @notice Say what a unit's word is once its judge has ruled, its end aside; reverts with why he cannot rule so.
    @param limits As in its terms, and so is policy.
    @param word The unit's.
    @param verdict As `JobRegistry.rule` takes it, and so are fields.
    """
    if verdict > VOID:
        reasons._refuse(reasons.JOBS_VERDICT_RANGE)
    state: uint256 = word & packing.UNIT_STATE_MASK
    if state != packing.STATE_DISPUTED:
        if state != packing.STATE_SUBMITTED:
            reasons._refuse(reasons.JOBS_NOT_SUBMITTED)
        if verdict != CONFIRM and (verdict == RELEASE or limits & packing.LIMITS_PROVEN == 0):
            reasons._refuse(reasons.JOBS_NOT_DISPUTED)
    if verdict != CONFIRM:
        if fields != 0:
            reasons._refuse(reasons.JOBS_OUTCOME_RANGE)
        if verdict == RELEASE:
            return (word & ~packing.UNIT_STATE_LANE) | packing.STATE_SUBMITTED
        return word
    # Who names his own judge would end his node's probation at once, and a stranger another's success.
    if word & packing.UNIT_FRESH != 0 and block.timestamp < leases._fresh_until(policy, word):
        reasons._refuse(reasons.JOBS_SETTLE_EARLY)
    return self._with_fields(word, fields)


@view
@external
@reentrant
def policies() -> (uint256, uint256, uint256, uint256, uint256):
    """
    @return (policy of new jobs or 0 while paused, held policy, previous policy, its last second + 1, paused until)
    """
    return self._policy, self._held_policy, self._previous_policy, self._previous_until, self.paused_until


# ---- INTERNAL ----


@view
@internal
def _current() -> uint256:
    """
    @return The policy of new jobs, or the one that comes back when a pause ends.
    """
    if self._policy != 0:
        return self._policy
    return self._held_policy


@view
@internal
def _check_terms(terms: IJobRegistry.Terms) -> uint256:
    """
    @notice Check every field's range; the id fixes them afterwards, so no later call does.
    @return The number of leases.
    """
    limits: uint256 = terms.limits
    if (
        terms.needs >> packing.NEEDS_BITS != 0
        or terms.needs & packing.NEEDS_GUARDS != 0
        or terms.money >> packing.MONEY_BITS != 0
        or limits >> packing.LIMITS_BITS != 0
        or terms.judge >> packing.JUDGE_BITS != 0
    ):
        reasons._refuse(reasons.JOBS_SPARE_BITS)
    replicas: uint256 = 1
    if limits & BUILT_LANES != BUILT:
        replicas = self._replicas(limits)
    if terms.spec == empty(bytes32):
        reasons._refuse(reasons.JOBS_SPEC_ZERO)
    if (terms.needs >> packing.NEEDS_RUNTIMES_SHIFT) & packing.NEEDS_RUNTIMES_MASK == 0:
        reasons._refuse(reasons.JOBS_RUNTIME_ZERO)
    if terms.money & packing.MONEY_CEILING_MASK == 0:
        reasons._refuse(reasons.JOBS_CEILING_ZERO)
    seconds: uint256 = limits & packing.LIMITS_MAX_SECONDS_MASK
    if seconds == 0 or seconds > MAX_SECONDS:
        reasons._refuse(reasons.JOBS_SECONDS_RANGE)
    if not leases._has_time(limits, terms.policy, block.timestamp):
        reasons._refuse(reasons.JOBS_DEADLINE_NEAR)
    units: uint256 = (limits >> packing.LIMITS_UNITS_SHIFT) & packing.LIMITS_UNITS_MASK
    if units == 0 or units > MAX_UNITS:
        reasons._refuse(reasons.JOBS_UNITS_RANGE)
    window: uint256 = (limits >> packing.LIMITS_MATCH_WINDOW_SHIFT) & packing.LIMITS_MATCH_WINDOW_MASK
    if window != 0 and (
        window < (terms.policy >> packing.POLICY_MIN_MATCH_WINDOW_SHIFT) & packing.POLICY_MIN_MATCH_WINDOW_MASK
        or window > MAX_WINDOW
    ):
        reasons._refuse(reasons.JOBS_WINDOW_RANGE)
    attempts: uint256 = (limits >> packing.LIMITS_MAX_ATTEMPTS_SHIFT) & packing.LIMITS_MAX_ATTEMPTS_MASK
    if attempts == 0 or attempts > MAX_ATTEMPTS:
        reasons._refuse(reasons.JOBS_ATTEMPTS_RANGE)
    billing: uint256 = (limits >> packing.LIMITS_BILLING_SHIFT) & packing.LIMITS_BILLING_MASK
    if billing > packing.BILLING_METERED:
        reasons._refuse(reasons.JOBS_BILLING_RANGE)
    every: uint256 = (limits >> packing.LIMITS_CHECKPOINT_EVERY_SHIFT) & packing.LIMITS_CHECKPOINT_EVERY_MASK
    if every != 0 and (
        billing != packing.BILLING_METERED
        or every < (terms.policy >> packing.POLICY_MIN_CHECKPOINT_SHIFT) & packing.POLICY_MIN_CHECKPOINT_MASK
    ):
        reasons._refuse(reasons.JOBS_CHECKPOINT_RANGE)

    price: uint256 = leases._unit_price(terms.money, limits)
    if price < leases._amount((terms.policy >> packing.POLICY_MIN_PRICE_SHIFT) & packing.POLICY_MIN_PRICE_MASK):
        reasons._refuse(reasons.JOBS_PRICE_LOW)
    least: uint256 = leases._amount(
        (terms.policy >> packing.POLICY_MIN_KEEPER_FEE_SHIFT) & packing.POLICY_MIN_KEEPER_FEE_MASK
    )
    keeper_fee: uint256 = (terms.money >> packing.MONEY_KEEPER_FEE_SHIFT) & packing.MONEY_KEEPER_FEE_MASK
    if keeper_fee < least or keeper_fee > max(price, least):
        reasons._refuse(reasons.JOBS_KEEPER_FEE_RANGE)
    if leases._bond(price, terms.money, limits, terms.policy) > packing.HOT_BOND_MASK:
        reasons._refuse(reasons.JOBS_BOND_LARGE)
    if terms.judge != 0:
        self._check_judged(terms)
    elif terms.judge_data != 0 or limits & JUDGED_LANES != 0:
        reasons._refuse(reasons.JOBS_NO_JUDGE)
    return units * replicas


@view
@internal
def _check_judged(terms: IJobRegistry.Terms):
    """
    @notice The judge itself says whether it can judge these terms; what is no judge reverts.
    """
    window: uint256 = (terms.limits >> packing.LIMITS_CHALLENGE_WINDOW_SHIFT) & packing.LIMITS_CHALLENGE_WINDOW_MASK
    least: uint256 = (
        terms.policy >> packing.POLICY_MIN_CHALLENGE_WINDOW_SHIFT
    ) & packing.POLICY_MIN_CHALLENGE_WINDOW_MASK
    if window < least or window > MAX_CHALLENGE_WINDOW:
        reasons._refuse(reasons.JOBS_CHALLENGE_RANGE)
    # What nobody proves, and its bond, are held until the deadline.
    deadline: uint256 = (terms.limits >> packing.LIMITS_DEADLINE_SHIFT) & packing.LIMITS_DEADLINE_MASK
    if terms.limits & packing.LIMITS_PROVEN != 0 and deadline > block.timestamp + MAX_PROOF_TIME:
        reasons._refuse(reasons.JOBS_DEADLINE_FAR)
    if not (staticcall IJudge(convert(terms.judge, address)).takes(terms)):
        reasons._refuse(reasons.JOBS_JUDGE_REFUSES)


@pure
@internal
def _check_parents(hashed: bytes32, parents: DynArray[bytes32, MAX_PARENT_WORDS]):
    """
    @notice What a slip would make wait in vain, and be refunded for a fee, is refused.
    """
    if keccak256(abi_encode(parents)) != hashed:
        reasons._refuse(reasons.JOBS_PARENTS_HASH)
    count: uint256 = len(parents)
    if count < 2:
        reasons._refuse(reasons.JOBS_PARENTS_RANGE)
    conditions: uint256 = convert(parents[0], uint256)
    for i: uint256 in range(MAX_PARENTS):
        if i == count - 1:
            break
        # lanes: the parent's two bits
        if conditions & (leases.WELL | leases.OTHERWISE) == 0:
            reasons._refuse(reasons.JOBS_PARENTS_RANGE)
        conditions >>= 2  # lanes: the next parent's two bits
    if conditions != 0:
        reasons._refuse(reasons.JOBS_PARENTS_RANGE)


@pure
@internal
def _with_fields(word: uint256, fields: uint256) -> uint256:
    """
    @return A unit's word with the outcome and the fuel seconds that its judge found, if any.
    """
    if fields == 0:
        return word
    outcome: uint256 = fields & packing.FIELDS_OUTCOME_MASK
    used: uint256 = fields >> packing.FIELDS_SECONDS_SHIFT
    if outcome == 0 or outcome > packing.OUTCOME_TIMEOUT:
        reasons._refuse(reasons.JOBS_OUTCOME_RANGE)
    if used > packing.UNIT_SECONDS_MASK or (used == 0) != (word & packing.UNIT_FUEL == 0):
        reasons._refuse(reasons.JOBS_USED_RANGE)
    ruled: uint256 = (word & ~packing.UNIT_OUTCOME_LANE) | (outcome << packing.UNIT_OUTCOME_SHIFT)
    if used != 0:
        # lanes: a unit's word
        ruled = (ruled & ~packing.UNIT_SECONDS_LANE) | (used << packing.UNIT_SECONDS_SHIFT)
    return ruled


@pure
@internal
def _replicas(limits: uint256) -> uint256:
    """
    @notice Check a job's replicas; name the field that is out of range, or that this version does not build yet.
    """
    chunk: uint256 = (limits >> packing.LIMITS_CHUNK_SHIFT) & packing.LIMITS_CHUNK_MASK
    units: uint256 = (limits >> packing.LIMITS_UNITS_SHIFT) & packing.LIMITS_UNITS_MASK
    if chunk == 0 or chunk > MAX_CHUNK or units % chunk != 0:
        reasons._refuse(reasons.JOBS_CHUNK_RANGE)
    if chunk != 1:
        reasons._refuse(reasons.JOBS_NO_CHUNKS)
    replicas: uint256 = (limits >> packing.LIMITS_REPLICAS_SHIFT) & packing.LIMITS_REPLICAS_MASK
    if replicas % 2 == 0 or replicas > MAX_REPLICAS:
        reasons._refuse(reasons.JOBS_REPLICAS_RANGE)
    quorum: uint256 = (limits >> packing.LIMITS_QUORUM_SHIFT) & packing.LIMITS_QUORUM_MASK
    if quorum <= replicas // 2 or quorum > replicas:
        reasons._refuse(reasons.JOBS_QUORUM_RANGE)
    if limits & packing.LIMITS_CONFIDENTIAL != 0:
        reasons._refuse(reasons.JOBS_NO_CONFIDENTIAL)
    if limits & packing.LIMITS_PREEMPTIBLE != 0:
        reasons._refuse(reasons.JOBS_NO_PREEMPTIBLE)
    if limits & FLAGS_UNKNOWN != 0:
        reasons._refuse(reasons.JOBS_FLAG_UNKNOWN)
    if replicas != 1:
        # A judge alone tells them apart, and only what has to be proven leaves it the time.
        if limits & packing.LIMITS_PROVEN == 0:
            reasons._refuse(reasons.JOBS_REPLICAS_JUDGE)
        if units != 1:
            reasons._refuse(reasons.JOBS_UNITS_RANGE)
    return replicas


@view
@internal
def _check_other_policy(policy: uint256):
    """
    @notice Take a policy that is not the current one: the previous for 24 h, or the one that a pause, now over, held.
    """
    if block.timestamp < self.paused_until:
        reasons._refuse(reasons.JOBS_PAUSED)
    if self._policy == 0 and policy == self._held_policy:
        return
    if policy != self._previous_policy or block.timestamp >= self._previous_until:
        reasons._refuse(reasons.JOBS_POLICY_OLD)


@view
@internal
def _check_policy_range(policy: uint256):
    """
    @notice The bounds of SPEC section "Parameters", hard-coded.
    """
    window: uint256 = (policy >> packing.POLICY_MIN_MATCH_WINDOW_SHIFT) & packing.POLICY_MIN_MATCH_WINDOW_MASK
    ack_time: uint256 = (policy >> packing.POLICY_ACK_TIME_SHIFT) & packing.POLICY_ACK_TIME_MASK
    after: uint256 = (policy >> packing.POLICY_OPEN_CLAIM_AFTER_SHIFT) & packing.POLICY_OPEN_CLAIM_AFTER_MASK
    ramp: uint256 = (policy >> packing.POLICY_CLAIM_RAMP_SHIFT) & packing.POLICY_CLAIM_RAMP_MASK
    fetch: uint256 = (policy >> packing.POLICY_FETCH_FLOOR_SHIFT) & packing.POLICY_FETCH_FLOOR_MASK
    grace: uint256 = (policy >> packing.POLICY_GRACE_FLOOR_SHIFT) & packing.POLICY_GRACE_FLOOR_MASK
    challenge: uint256 = (
        policy >> packing.POLICY_MIN_CHALLENGE_WINDOW_SHIFT
    ) & packing.POLICY_MIN_CHALLENGE_WINDOW_MASK
    fee: uint256 = (policy >> packing.POLICY_FEE_BPS_SHIFT) & packing.POLICY_FEE_BPS_MASK
    price: uint256 = leases._amount((policy >> packing.POLICY_MIN_PRICE_SHIFT) & packing.POLICY_MIN_PRICE_MASK)
    keeper_fee: uint256 = leases._amount(
        (policy >> packing.POLICY_MIN_KEEPER_FEE_SHIFT) & packing.POLICY_MIN_KEEPER_FEE_MASK
    )
    probation: uint256 = leases._amount(
        (policy >> packing.POLICY_PROBATION_PRICE_SHIFT) & packing.POLICY_PROBATION_PRICE_MASK
    )
    # What counts as one full success.
    reference: uint256 = staticcall NODES.FEE_REFERENCE()
    if (
        policy & packing.POLICY_VERSION_MASK != PROTOCOL_VERSION
        or fee > FEE_CAP
        or (policy >> packing.POLICY_MIN_BOND_BPS_SHIFT) & packing.POLICY_MIN_BOND_BPS_MASK == 0
        or window == 0
        or window > MAX_WINDOW
        or ack_time < 2
        or ack_time > 600
        or after < 2
        or after > 3600
        or ramp == 0
        or ramp > 3600
        or fetch == 0
        or fetch > 3600
        or policy & (packing.POLICY_RESERVED_LANE + packing.POLICY_RESERVED_HIGH_LANE) != 0
        or grace == 0
        or grace > 3600
        or challenge == 0
        or challenge > MAX_CHALLENGE_WINDOW
        # Else nobody could confirm a newcomer's late proof before it ends unproven, which costs its node a slash.
        or (policy >> packing.POLICY_FRESH_DELAY_SHIFT) & packing.POLICY_FRESH_DELAY_MASK > challenge
        or keeper_fee < KEEPER_FEE_FLOOR
        or max(keeper_fee, price) > MAX_MINIMUM * reference
        # A job of probation_price is at most one full success: fewer, or cheaper ones, end no probation.
        or (probation != 0 and (fee < FEE_FLOOR or leases._fee(probation, policy) > reference))
    ):
        reasons._refuse(reasons.RULES_POLICY_RANGE)


@view
@internal
def _check_governor():
    if msg.sender != self.governor:
        reasons._refuse(reasons.RULES_NOT_GOVERNOR)
