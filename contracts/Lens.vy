# pragma version 0.4.3
# pragma evm-version cancun
# pragma nonreentrancy on
"""
@title Lens
@author Hearth
@license Apache-2.0
@notice Views over one pair of registries, and upkeep in the form that automation networks call. It has no storage,
        no money and no rights of its own: whatever it does, anyone may do without it, and another Lens may replace it.
@custom:security Unaudited. `performUpkeep` re-checks each candidate and passes on the payee that its caller names, or
        the caller, so nobody else can redirect a keeper's pay.
@custom:kill Nothing to switch off: deploy another.
"""

from ethereum.ercs import IERC20

from interfaces import IEscrow
from interfaces import IJobRegistry
from interfaces import IJudge
from interfaces import ILens
from interfaces import INodeRegistry
from interfaces import IRules

implements: ILens

import leases
import packing
import reason_texts
import reasons

MAX_PAGE: constant(uint256) = 256
MAX_CANDIDATES: constant(uint256) = 64
MAX_NODES_CHECKED: constant(uint256) = 128
MAX_RESUMED: constant(uint256) = 8  # checkpoints that one result pays, as in JobRegistry
ALL: constant(uint256) = max_value(uint256)

SETTLE: constant(uint256) = 1
CLOSE: constant(uint256) = 2
RECLAIM: constant(uint256) = 3
EXPIRE: constant(uint256) = 4
LIVENESS: constant(uint256) = 5

# Gates after NodeRegistry's own (hearth.protocol.types.Gate).
OWN_JOB: constant(uint256) = 17
EXCLUDED: constant(uint256) = 18
NO_TIME: constant(uint256) = 19
NOT_OPEN: constant(uint256) = 20

JOBS: public(immutable(IJobRegistry))
NODES: public(immutable(INodeRegistry))
RULES: public(immutable(IRules))
ESCROW: public(immutable(IEscrow))
ASSET: immutable(address)  # zero for the native coin
DEAD_AFTER: immutable(uint256)


@deploy
def __init__(jobs: IJobRegistry, nodes: INodeRegistry):
    """
    @param jobs The JobRegistry of the pair.
    @param nodes Its NodeRegistry.
    """
    JOBS = jobs
    NODES = nodes
    RULES = IRules(staticcall jobs.RULES())
    escrow: IEscrow = IEscrow(staticcall jobs.ESCROW())
    ESCROW = escrow
    ASSET = staticcall escrow.ASSET()
    DEAD_AFTER = staticcall nodes.DEAD_AFTER()


# ---- VIEWS ----


@view
@external
@reentrant
def nodes(first: uint256, count: uint256) -> DynArray[INodeRegistry.Node, MAX_PAGE]:
    """
    @notice Read nodes first .. first + count - 1, fewer at the end; at most 256.
    @return Records; all zero for an exited node.
    """
    page: DynArray[INodeRegistry.Node, MAX_PAGE] = []
    size: uint256 = self._size(first, count)
    for i: uint256 in range(MAX_PAGE):
        if i >= size:
            break
        page.append(staticcall NODES.get(first + i))
    return page


@view
@external
@reentrant
def gates(ask: INodeRegistry.Ask, first: uint256, count: uint256) -> DynArray[uint256, MAX_PAGE]:
    """
    @notice Say which of nodes first .. first + count - 1 could take a job that is not posted yet; fewer at the end; at
            most 256.
    @param ask What JobRegistry would make of the job's terms.
    @return The first gate of NodeRegistry that keeps each from it, 0 if it fits; an exited node is silent.
    """
    page: DynArray[uint256, MAX_PAGE] = []
    size: uint256 = self._size(first, count)
    for i: uint256 in range(MAX_PAGE):
        if i >= size:
            break
        page.append(staticcall NODES.gate(first + i, ask))
    return page


@view
@external
@reentrant
def overview() -> ILens.Overview:
    """
    @return The market as a whole: what a first look at it needs.
    """
    held: uint256 = ESCROW.address.balance
    if ASSET != empty(address):
        held = staticcall IERC20(ASSET).balanceOf(ESCROW.address)
    policy: uint256 = 0
    held_policy: uint256 = 0
    previous: uint256 = 0
    previous_until: uint256 = 0
    paused_until: uint256 = 0
    policy, held_policy, previous, previous_until, paused_until = staticcall RULES.policies()
    # A pause holds the parameters back; they come again at its end.
    if policy == 0:
        policy = held_policy
    return ILens.Overview(
        chain_id=chain.id,
        number=block.number,
        time=block.timestamp,
        asset=ASSET,
        held=held,
        tracked=staticcall ESCROW.tracked(),
        posted=staticcall JOBS.posted(),
        totals=staticcall NODES.totals(),
        policy=policy,
        previous_policy=previous,
        previous_until=previous_until,
        posts_paused_until=paused_until,
        registrations_paused_until=staticcall NODES.paused_until(),
        minimum_stake=staticcall NODES.minimum_stake(),
    )


@view
@external
@reentrant
def jobs(job_ids: DynArray[bytes32, MAX_PAGE]) -> DynArray[uint256, MAX_PAGE]:
    """
    @return The job word of each id: a unit word, an array's header, or 0 for an unknown job.
    """
    page: DynArray[uint256, MAX_PAGE] = []
    for job_id: bytes32 in job_ids:
        page.append(self._load(job_id, 0)[0])
    return page


@view
@external
@reentrant
def locks(controller: address, keys: DynArray[bytes32, MAX_PAGE]) -> DynArray[uint256, MAX_PAGE]:
    """
    @param controller JobRegistry, whose keys are submitters' addresses, or NodeRegistry, whose keys are nodes' ids.
    @return What Escrow holds under each key, in base units.
    """
    page: DynArray[uint256, MAX_PAGE] = []
    for key: bytes32 in keys:
        page.append(staticcall ESCROW.locked(controller, key))
    return page


@view
@external
@reentrant
def credits(accounts: DynArray[address, MAX_PAGE]) -> DynArray[uint256, MAX_PAGE]:
    """
    @return What each account may withdraw from Escrow, in base units.
    """
    page: DynArray[uint256, MAX_PAGE] = []
    for account: address in accounts:
        page.append(staticcall ESCROW.credit(account))
    return page


@view
@external
@reentrant
def units(job_id: bytes32, first: uint256, count: uint256) -> DynArray[ILens.UnitView, MAX_PAGE]:
    """
    @notice Read units as stored; at most 256. A one-lease job has unit 0 only, the others are all zero.
    """
    page: DynArray[ILens.UnitView, MAX_PAGE] = []
    for i: uint256 in range(MAX_PAGE):
        if i >= count:
            break
        raw: uint256[4] = self._load(job_id, first + i)
        page.append(ILens.UnitView(word=raw[1], second=raw[2], accused=raw[3]))
    return page


@view
@external
@reentrant
def status(places: DynArray[ILens.Place, MAX_PAGE]) -> DynArray[ILens.Status, MAX_PAGE]:
    """
    @return Of each place its job's word, the unit as stored, and the checkpoints that its attempt was resumed from.
    """
    page: DynArray[ILens.Status, MAX_PAGE] = []
    for place: ILens.Place in places:
        raw: uint256[4] = self._load(place.job_id, place.index)
        page.append(ILens.Status(job=raw[0], word=raw[1], second=raw[2], accused=raw[3], kept=self._kept(place, raw)))
    return page


@view
@external
@reentrant
def unit(terms: IJobRegistry.Terms, index: uint256) -> ILens.UnitView:
    """
    @notice Read a unit as every guard reads it: opened if it is the array's next one, its lapse applied.
    """
    raw: uint256[4] = self._read(terms, index)
    return ILens.UnitView(word=raw[1], second=raw[2], accused=raw[3])


@view
@external
@reentrant
def fit(terms: IJobRegistry.Terms, index: uint256, node: uint256, claim: bool) -> uint256:
    """
    @notice A claim's price is looked at twice: in its place against the ceiling, and after all other gates against
            what open claims have risen to, which passes by itself (`claimable_from`).
    @return The first gate that keeps a node from proposing (or claiming) a unit, 0 if it fits.
    """
    raw: uint256[4] = self._find(terms, index)
    opens: uint256 = leases._claims_from(raw[1], terms.limits, terms.policy)
    word: uint256 = self._with_lapse(raw, terms.policy)
    header: bool = raw[0] & packing.HEADER_STATE_MASK == packing.STATE_HEADER
    if word & packing.UNIT_STATE_MASK != packing.STATE_OPEN or (header and raw[0] & packing.HEADER_CLOSED != 0):
        return NOT_OPEN
    ask: INodeRegistry.Ask = leases._ask(terms)
    code: uint256 = staticcall NODES.gate(node, ask)
    if code != 0:
        return code
    record: INodeRegistry.Node = staticcall NODES.get(node)
    if convert(record.operator, uint256) == terms.submitter & packing.SUBMITTER_ACCOUNT_MASK:
        return OWN_JOB
    if (word >> packing.UNIT_NODE_SHIFT) & packing.UNIT_NODE_MASK == node:
        if not claim or (word >> packing.UNIT_LAPSES_SHIFT) & packing.UNIT_LAPSES_MASK == 0:
            return EXCLUDED
    if not leases._has_time(leases._topped(terms.limits, word), terms.policy, block.timestamp):
        return NO_TIME
    if claim:
        ask.ceiling = leases._claim_ceiling(terms.money, terms.policy, max(block.timestamp, opens) - opens)
        code = staticcall NODES.gate(node, ask)
        if code != 0:
            return code
    if (terms.limits >> packing.LIMITS_REPLICAS_SHIFT) & packing.LIMITS_REPLICAS_MASK != 1 and not (
        staticcall IJudge(convert(terms.judge, address)).may_run(staticcall JOBS.job_id_of(terms), terms, index, node)
    ):
        return EXCLUDED
    return 0


@view
@external
@reentrant
def claimable_from(terms: IJobRegistry.Terms, index: uint256, rate: uint256) -> uint256:
    """
    @notice Say when an OPEN unit may be claimed by a node that asks `rate`, if nobody proposes or acks meanwhile.
    @return The first second, max_value(uint256) where the unit is not open or the rate is above the ceiling.
    """
    raw: uint256[4] = self._find(terms, index)
    header: bool = raw[0] & packing.HEADER_STATE_MASK == packing.STATE_HEADER
    if (
        raw[1] & packing.UNIT_STATE_MASK != packing.STATE_OPEN
        or (header and raw[0] & packing.HEADER_CLOSED != 0)
        or rate > terms.money & packing.MONEY_CEILING_MASK
    ):
        return max_value(uint256)
    opens: uint256 = leases._claims_from(raw[1], terms.limits, terms.policy)
    return opens + leases._claim_wait(terms.money, terms.policy, rate)


@view
@external
@reentrant
def score(terms: IJobRegistry.Terms, index: uint256, node: uint256) -> (uint256, uint256, uint256):
    """
    @notice Rate a node for a unit; reverts with the gate of NodeRegistry that fails.
    @return (rate in force, score 0..1e8, 48-bit key)
    """
    rate: uint256 = 0
    points: uint256 = 0
    operator: address = empty(address)
    rate, points, operator = staticcall NODES.appraise(node, leases._ask(terms))
    raw: uint256[4] = self._read(terms, index)
    at: uint256 = index
    if raw[0] & packing.HEADER_STATE_MASK != packing.STATE_HEADER:
        at = 0
    job_id: bytes32 = staticcall JOBS.job_id_of(terms)
    return rate, points, leases._key(
        job_id,
        at,
        (raw[1] >> packing.UNIT_ATTEMPTS_SHIFT) & packing.UNIT_ATTEMPTS_MASK,
        node,
        leases._ranked(terms.limits, at, points),
    )


@view
@external
@reentrant
def checkUpkeep(
    candidates: DynArray[ILens.Candidate, MAX_CANDIDATES]
) -> (bool, DynArray[ILens.Candidate, MAX_CANDIDATES]):
    """
    @notice Pick the candidates that are due now.
    @return (whether any is due, the due ones)
    """
    due: DynArray[ILens.Candidate, MAX_CANDIDATES] = []
    for candidate: ILens.Candidate in candidates:
        if self._due(candidate):
            due.append(candidate)
    return len(due) != 0, due


@view
@external
@reentrant
def reason(number: uint256) -> String[32]:
    """
    @param number What a contract of the market reverted with: the argument of `Refused`.
    @return The reason in words, empty for a number that is no reason's.
    """
    return reason_texts._text(number)


# ---- ANYONE ----


@external
def performUpkeep(candidates: DynArray[ILens.Candidate, MAX_CANDIDATES], payee: address):
    """
    @notice Do what is still due of the candidates, for the pay of the registries' own calls.
    @param candidates As `checkUpkeep` returns them.
    @param payee Who is paid; zero means msg.sender.
    """
    receiver: address = payee
    if payee == empty(address):
        receiver = msg.sender
    done: bool = False
    for candidate: ILens.Candidate in candidates:
        if not self._due(candidate):
            continue
        done = True
        if candidate.op == SETTLE:
            extcall JOBS.settle(candidate.terms, candidate.index, receiver)
        elif candidate.op == CLOSE:
            extcall JOBS.close(candidate.terms, candidate.index, receiver)
        elif candidate.op == RECLAIM:
            extcall JOBS.reclaim(candidate.terms, candidate.index, receiver)
        elif candidate.op == EXPIRE:
            extcall JOBS.expire(candidate.terms, candidate.index, receiver)
        else:
            extcall NODES.check_liveness(self._range(candidate), receiver)
    if not done:
        reasons._refuse(reasons.LENS_NOTHING_DONE)


# ---- INTERNAL ----


@view
@internal
def _size(first: uint256, count: uint256) -> uint256:
    """
    @return How many of the node ids first .. first + count - 1 a page has: at most 256, none that was not given out.
    """
    end: uint256 = (staticcall NODES.totals()) & packing.TOTALS_NEXT_ID_MASK
    return min(min(count, MAX_PAGE), end - min(first, end))


@view
@internal
def _kept(place: ILens.Place, raw: uint256[4]) -> DynArray[uint256, MAX_RESUMED]:
    """
    @return The checkpoints that a unit's attempt was resumed from, newest first.
    """
    found: DynArray[uint256, MAX_RESUMED] = []
    key: bytes32 = place.job_id
    if raw[0] & packing.HEADER_STATE_MASK == packing.STATE_HEADER:
        key = keccak256(abi_encode(place.job_id, place.index))
    attempt: uint256 = (raw[1] >> packing.UNIT_RESUME_SHIFT) & packing.UNIT_RESUME_MASK
    for _: uint256 in range(MAX_RESUMED):
        if attempt == 0:
            break
        kept: uint256 = staticcall JOBS.checkpoints(key, attempt)
        found.append(kept)
        attempt = (kept >> packing.KEPT_RESUME_SHIFT) & packing.KEPT_RESUME_MASK
    return found


@view
@internal
def _load(job_id: bytes32, index: uint256) -> uint256[4]:
    job: uint256 = 0
    word: uint256 = 0
    second: uint256 = 0
    accused: uint256 = 0
    job, word, second, accused = staticcall JOBS.load(job_id, index)
    raw: uint256[4] = [job, word, second, accused]
    if raw[0] & packing.HEADER_STATE_MASK != packing.STATE_HEADER and index != 0:
        return [job, 0, 0, 0]  # a one-lease job has no such unit
    return raw


@view
@internal
def _find(terms: IJobRegistry.Terms, index: uint256) -> uint256[4]:
    """
    @return (job word, unit word as stored, or as it opens if it is the array's next one, auxiliary slot, last decline)
    """
    job_id: bytes32 = staticcall JOBS.job_id_of(terms)
    raw: uint256[4] = self._load(job_id, index)
    if raw[0] & packing.HEADER_STATE_MASK == packing.STATE_HEADER and raw[1] == 0:
        if (
            index == (raw[0] >> packing.HEADER_TOUCHED_SHIFT) & packing.HEADER_TOUCHED_MASK
            and index < (raw[0] >> packing.HEADER_LEASES_SHIFT) & packing.HEADER_LEASES_MASK
        ):
            opened: uint256 = (raw[0] >> packing.HEADER_OPENED_SHIFT) & packing.HEADER_OPENED_MASK
            state: uint256 = packing.STATE_OPEN
            if raw[0] & packing.HEADER_WAITING != 0:
                state = packing.STATE_BLOCKED
            raw[1] = state | (opened << packing.UNIT_STARTED_SHIFT) | packing.UNIT_ARRAY
    return raw


@view
@internal
def _with_lapse(raw: uint256[4], policy: uint256) -> uint256:
    """
    @return A unit's word with its lapse applied.
    """
    if raw[1] & packing.UNIT_STATE_MASK == packing.STATE_OPEN and leases._has_lapsed(raw[1], policy, block.timestamp):
        return leases._drop(raw[1], raw[2])
    return raw[1]


@view
@internal
def _read(terms: IJobRegistry.Terms, index: uint256) -> uint256[4]:
    """
    @return (job word, unit word with its lapse applied, auxiliary slot, last decline)
    """
    raw: uint256[4] = self._find(terms, index)
    raw[1] = self._with_lapse(raw, terms.policy)
    return raw


@view
@internal
def _due(candidate: ILens.Candidate) -> bool:
    """
    @return Whether the registry would take the call now, and pay for it.
    """
    if candidate.op == LIVENESS:
        ids: DynArray[uint256, MAX_NODES_CHECKED] = self._range(candidate)
        for node: uint256 in ids:
            hot: uint256 = (staticcall NODES.get(node)).hot
            silent: bool = block.timestamp >= (hot & packing.HOT_BEAT_MASK) + DEAD_AFTER
            busy: uint256 = (hot >> packing.HOT_BUSY_SHIFT) & packing.HOT_BUSY_MASK
            if busy != 0 and silent and hot & (packing.HOT_LAPSED | packing.HOT_EXITING) == 0:
                return True
        return False

    job_id: bytes32 = staticcall JOBS.job_id_of(candidate.terms)
    raw: uint256[4] = self._load(job_id, candidate.index)
    state: uint256 = raw[1] & packing.UNIT_STATE_MASK
    mark: uint256 = (raw[1] >> packing.UNIT_MARK_SHIFT) & packing.UNIT_MARK_MASK
    header: bool = raw[0] & packing.HEADER_STATE_MASK == packing.STATE_HEADER
    if candidate.op == SETTLE:
        return (
            (state == packing.STATE_SUBMITTED or state == packing.STATE_DISPUTED)
            and block.timestamp >= leases._settleable_from(candidate.terms.limits, candidate.terms.policy, raw[1])
        )
    if candidate.op == CLOSE:
        return state == packing.STATE_CLOSING and block.timestamp >= mark
    if candidate.op == RECLAIM:
        if state != packing.STATE_RUNNING:
            return False
        seen: uint256 = staticcall NODES.last_seen((raw[1] >> packing.UNIT_NODE_SHIFT) & packing.UNIT_NODE_MASK)
        dead: uint256 = max(seen, (raw[1] >> packing.UNIT_STARTED_SHIFT) & packing.UNIT_STARTED_MASK) + DEAD_AFTER
        return block.timestamp >= min(mark, dead)
    if candidate.op == EXPIRE:
        limits: uint256 = leases._topped(candidate.terms.limits, raw[1])
        if leases._has_time(limits, candidate.terms.policy, block.timestamp):
            return False
        if header and candidate.index == ALL:
            whole: uint256 = (raw[0] >> packing.HEADER_LEASES_SHIFT) & packing.HEADER_LEASES_MASK
            return (
                raw[0] & packing.HEADER_CLOSED == 0
                and (raw[0] >> packing.HEADER_TOUCHED_SHIFT) & packing.HEADER_TOUCHED_MASK < whole
            )
        return (state == packing.STATE_OPEN or state == packing.STATE_BLOCKED) and not header
    return False


@pure
@internal
def _range(candidate: ILens.Candidate) -> DynArray[uint256, MAX_NODES_CHECKED]:
    """
    @return The node ids index .. index + count - 1, at most 128.
    """
    ids: DynArray[uint256, MAX_NODES_CHECKED] = []
    for i: uint256 in range(MAX_NODES_CHECKED):
        if i >= candidate.count:
            break
        ids.append(candidate.index + i)
    return ids
