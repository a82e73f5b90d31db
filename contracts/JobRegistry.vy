# pragma version 0.4.3
# pragma evm-version cancun
# pragma nonreentrancy on
"""
@title JobRegistry
@author Hearth
@license Apache-2.0
@notice Jobs: posted by a submitter with their funding, matched to nodes by anyone, run by a node's operator,
        settled, refunded or ended by anyone once their time has come.

        A job's id is the hash of its terms. Terms are frozen at post, travel in `JobPosted`, and come back as
        calldata in every call that moves money. The funding lies in Escrow under this contract and the submitter, one
        lock for all his jobs; a unit that has not ended holds exactly its price and its keeper fees less the tips
        already paid, and at its end all of that is split in one call. Payments are credits in Escrow; nothing here
        depends on a transfer out.
        A job may wait for other jobs' ends, its parents: anyone opens it then, or ends it with a refund, for a fee.
        A job may name a judge: a contract that alone may hold its submitted units and end them. It can move nothing
        but those units' money and those leases' bonds; who posts the job and who takes it consent to it.
@custom:security Unaudited. Calls only go JobRegistry -> NodeRegistry -> Escrow, state first but for a lease's start,
        which NodeRegistry lets or does not let begin. It has no owner and no setter; what `post` takes is said by
        Rules, a view. A judge is asked by static calls alone: at post by Rules, of replicas here, and can say no.
        `post` and `top_up` alone reach a token, and are locked; every other call reaches NodeRegistry and Escrow, and
        views of Rules and of a judge, of which none calls back, so they are @reentrant. Within a token's callback a
        job that is being posted or topped up has its state and no funding yet: what it splits then comes out of the
        same submitter's other jobs, or is refused where they hold too little. The funding follows in the same call or all of it is undone, so after
        it the lock is again what his units hold. No call splits another lock than that of the terms it is given.
@custom:kill Cannot be switched off. Every state that is not an end has a way out that anyone may take.
"""

from ethereum.ercs import IERC20

from interfaces import IEscrow
from interfaces import IJobRegistry
from interfaces import IJudge
from interfaces import INodeRegistry
from interfaces import IRules

implements: IJobRegistry

import leases
import packing
import reasons

PROTOCOL_VERSION: constant(uint256) = 1
NEXT: constant(uint256) = max_value(uint256)  # the first untouched unit, in propose and claim
ALL: constant(uint256) = max_value(uint256)  # every untouched unit, in cancel and expire
MAX_PARENTS: constant(uint256) = 15
MAX_PARENT_WORDS: constant(uint256) = MAX_PARENTS + 1  # the conditions and the ids
MAX_BATCH: constant(uint256) = 64
MAX_EXTENSIONS: constant(uint256) = 3
MAX_RESUMED: constant(uint256) = 8  # checkpoints that one result pays
ACCUSATION_TIME: constant(uint256) = 3600  # seconds from a decline to the start of the attempt that counts against it

# What a judge may say of a unit.
RELEASE: constant(uint256) = 0
CONFIRM: constant(uint256) = 1
REJECT: constant(uint256) = 2

ESCROW: public(immutable(IEscrow))
NODES: public(immutable(INodeRegistry))
RULES: public(immutable(IRules))
ASSET: public(immutable(IERC20))  # zero for the native coin
TREASURY: public(immutable(address))
DEAD_AFTER: public(immutable(uint256))  # seconds, NodeRegistry's
CHAIN_ID: immutable(uint256)  # part of every id; a chain that changes its own must not lock up the jobs it has

# Jobs posted << 64 | block of the last one: each JobPosted names the block of the one before it.
posted: public(reentrant(uint256))
_words: HashMap[bytes32, uint256]  # unit key -> unit word; job id of an array -> its header
# unit key -> best proposal while OPEN, seconds of the last checkpoint while RUNNING, result digest from SUBMITTED
_second_words: HashMap[bytes32, uint256]
_accused: HashMap[bytes32, uint256]  # unit key -> its last decline: packing.ACCUSED_NODE_SHIFT ..; see UNIT_ACCUSED

# Unit key -> attempt -> the checkpoint that a lost lease left: packing.KEPT_SECONDS_SHIFT ..
checkpoints: public(reentrant(HashMap[bytes32, HashMap[uint256, uint256]]))


# A unit as it is found: what it is reached by, its word (zero while it is untouched), and its array's header.
struct Unit:
    job_id: bytes32
    index: uint256
    key: bytes32
    word: uint256
    node: uint256  # the word's
    header: uint256  # zero for a one-lease job


# What a submitted unit is paid, in base units.
struct Payment:
    pay: uint256  # before the fee
    fee: uint256
    rest: uint256  # what the unit holds besides
    bond: uint256
    ok: bool  # whether it counts as a success of its node
    decliner: uint256  # the node that it accuses, zero for none
    shared: uint256  # seconds that its checkpoints are paid out of, before the unit's own: all of them, or none


@deploy
def __init__(escrow: IEscrow, nodes: INodeRegistry, rules: IRules, treasury: address):
    """
    @param nodes The NodeRegistry of the pair, deployed before with this contract's predicted address.
    """
    if treasury == empty(address):
        reasons._refuse(reasons.JOBS_TREASURY_ZERO)
    ESCROW = escrow
    NODES = nodes
    RULES = rules
    ASSET = IERC20(staticcall escrow.ASSET())
    TREASURY = treasury
    DEAD_AFTER = staticcall nodes.DEAD_AFTER()
    CHAIN_ID = chain.id


# ---- SUBMITTERS ----


@external
@payable
def post(terms: IJobRegistry.Terms, parents: DynArray[bytes32, MAX_PARENT_WORDS]) -> bytes32:
    """
    @notice Post a job and lock its funding, exactly: leases x (price + attempts x keeper fee), and with parents one
            keeper fee more, for its unlock.
    @param terms Frozen from here on. The same terms are never taken twice.
    @param parents What parents_hash is the hash of: the conditions, two bits for each parent, then the parents' ids.
    @return The job's id.
    """
    if chain.id != CHAIN_ID:
        reasons._refuse(reasons.JOBS_CHAIN_CHANGED)
    job_id: bytes32 = self._job_id(terms)
    if self._words[job_id] != 0:
        reasons._refuse(reasons.JOBS_POSTED_BEFORE)
    self._check_submitter(terms.submitter)
    amount: uint256 = 0
    self._words[job_id], amount = staticcall RULES.check(terms, parents, skip_contract_check=True)
    posted: uint256 = self.posted
    number: uint256 = (posted >> packing.POSTED_COUNT_SHIFT) + 1
    self.posted = (number << packing.POSTED_COUNT_SHIFT) | block.number
    log IJobRegistry.JobPosted(
        job_id=job_id,
        submitter=msg.sender,
        terms=terms,
        parents=parents,
        number=number,
        previous=posted & packing.POSTED_BLOCK_MASK,
    )

    self._fund(amount)
    return job_id


@external
@payable
def top_up(terms: IJobRegistry.Terms, index: uint256, seconds: uint256):
    """
    @notice Give a metered lease that runs more time, for what its price grows by. Bond and slash stay as they are.
    @param seconds What the lease, its unit's price and every later attempt grow by.
    """
    self._check_submitter(terms.submitter)
    u: Unit = self._unit(terms, index)
    amount: uint256 = 0
    u.word, amount = staticcall RULES.topped(terms.money, terms.limits, u.word, seconds, skip_contract_check=True)
    self._words[u.key] = u.word
    log IJobRegistry.ToppedUp(
        job_id=u.job_id,
        index=index,
        node=u.node,
        word=u.word,
        amount=amount,
    )
    self._fund(amount)


@external
@reentrant
def accept(terms: IJobRegistry.Terms, index: uint256):
    """
    @notice Settle a submitted unit at once, without waiting for the window and without a settler's pay.
    """
    self._check_submitter(terms.submitter)
    if self._settle(terms, index, empty(address)) != 0:
        reasons._refuse(reasons.JOBS_NOT_SUBMITTED)


@external
@reentrant
def cancel(terms: IJobRegistry.Terms, index: uint256):
    """
    @notice End an OPEN unit with a refund, give a RUNNING one notice, or (ALL) close an array and refund its
            untouched units.
    """
    self._check_submitter(terms.submitter)
    u: Unit = self._unit(terms, index)  # ALL is no unit of an array: its word is 0
    state: uint256 = u.word & packing.UNIT_STATE_MASK
    if state != packing.STATE_RUNNING:
        if (
            state == packing.STATE_OPEN
            and (u.word >> packing.UNIT_MARK_SHIFT) & packing.UNIT_MARK_MASK != 0
            and not leases._has_lapsed(u.word, terms.policy, block.timestamp)
        ):
            reasons._refuse(reasons.JOBS_PROPOSAL_LIVE)
        refund: uint256 = 0
        u.word, refund = self._end_open(terms, u.job_id, index, packing.STATE_CANCELLED)
        log IJobRegistry.Cancelled(job_id=u.job_id, index=index, word=u.word, refund=refund)
        self._refund(refund, terms.submitter)
        return

    self._check_not_due(u.word)
    notice: uint256 = (terms.policy >> packing.POLICY_CANCEL_NOTICE_SHIFT) & packing.POLICY_CANCEL_NOTICE_MASK
    mark: uint256 = min((u.word >> packing.UNIT_MARK_SHIFT) & packing.UNIT_MARK_MASK, block.timestamp + notice)
    u.word = (
        (u.word & ~(packing.UNIT_STATE_LANE | packing.UNIT_MARK_LANE))
        | packing.STATE_CLOSING
        | (mark << packing.UNIT_MARK_SHIFT)
        | packing.UNIT_NOTICED
    )
    self._words[u.key] = u.word
    log IJobRegistry.Closing(
        job_id=u.job_id,
        index=index,
        node=u.node,
        word=u.word,
    )


# ---- OPERATORS ----


@external
@reentrant
def ack(terms: IJobRegistry.Terms, index: uint256, session_key: bytes32, resume_from: uint256):
    """
    @notice Consent to a won match and start the lease; the proposer is tipped. Called by the node's operator.
    @param session_key X25519 key for confidential inputs and live logs, zero for none.
    @param resume_from The attempt whose kept checkpoint this one resumes from, zero for none.
    """
    u: Unit = self._unit(terms, index)
    if u.word & packing.UNIT_STATE_MASK != packing.STATE_OPEN:
        reasons._refuse(reasons.JOBS_NOT_OPEN)
    u.word = self._with_lapse(u.key, u.word, terms.policy)
    mark: uint256 = (u.word >> packing.UNIT_MARK_SHIFT) & packing.UNIT_MARK_MASK
    if mark == 0:
        reasons._refuse(reasons.JOBS_NO_PROPOSAL)
    if block.timestamp < mark:
        reasons._refuse(reasons.JOBS_WINDOW_OPEN)
    best: uint256 = self._second_words[u.key]
    node: uint256 = (best >> packing.BEST_NODE_SHIFT) & packing.BEST_NODE_MASK
    rate: uint256 = (u.word >> packing.UNIT_RATE_SHIFT) & packing.UNIT_RATE_MASK
    u.word = (u.word | packing.UNIT_ACKED) + (1 << packing.UNIT_TIPS_SHIFT)
    self._start(terms, u, node, rate, terms.money & packing.MONEY_CEILING_MASK, session_key, resume_from)
    self._split(terms.submitter, [self._share(leases._tip(terms.money), best), 0, 0, 0])


@external
@reentrant
def claim(terms: IJobRegistry.Terms, index: uint256, node: uint256, session_key: bytes32, resume_from: uint256):
    """
    @notice Start a lease without a match, where the terms or the clock allow it. Called by the node's operator. What
            the node may ask rises from a quarter of the ceiling to all of it within `claim_ramp`.
    @param index The unit, or NEXT for the array's first untouched one.
    @param resume_from As `ack`.
    """
    u: Unit = self._open(terms, index)
    opens: uint256 = leases._claims_from(u.word, terms.limits, terms.policy)
    u.word = self._with_lapse(u.key, u.word, terms.policy)
    if (u.word >> packing.UNIT_MARK_SHIFT) & packing.UNIT_MARK_MASK != 0:
        reasons._refuse(reasons.JOBS_PROPOSAL_LIVE)
    if block.timestamp < opens:
        reasons._refuse(reasons.JOBS_NO_CLAIMS)
    if (u.word >> packing.UNIT_LAPSES_SHIFT) & packing.UNIT_LAPSES_MASK == 0 and (
        u.word >> packing.UNIT_NODE_SHIFT
    ) & packing.UNIT_NODE_MASK == node:
        reasons._refuse(reasons.JOBS_EXCLUDED)
    ceiling: uint256 = leases._claim_ceiling(terms.money, terms.policy, block.timestamp - opens)
    self._start(terms, u, node, 0, ceiling, session_key, resume_from)


@external
@reentrant
def checkpoint(job_id: bytes32, index: uint256, root: bytes32):
    """
    @notice Name the files of which another attempt could resume this one, should its lease be lost. Called by the
            node's operator. It earns nothing yet, and it is no beat.
    @param root sha2-256 of the files' UnixFS root.
    """
    u: Unit = self._touched(job_id, index)
    self._check_leased(u.word)
    if msg.sender != staticcall NODES.operator_of(u.node, skip_contract_check=True):
        reasons._refuse(reasons.NODES_NOT_OPERATOR)
    seconds: uint256 = block.timestamp - ((u.word >> packing.UNIT_STARTED_SHIFT) & packing.UNIT_STARTED_MASK)
    if u.word & packing.UNIT_RESUMABLE == 0 or root == empty(bytes32) or seconds <= self._second_words[u.key]:
        reasons._refuse(reasons.JOBS_CHECKPOINT_RANGE)
    self._second_words[u.key] = seconds
    log IJobRegistry.Checkpointed(job_id=u.job_id, index=index, node=u.node, word=u.word, seconds=seconds, root=root)


@external
@reentrant
def submit(job_id: bytes32, index: uint256, result: bytes32, report: bytes32, outcome: uint256, used: uint256):
    """
    @notice Hand in a result before the lease ends. Called by the node's operator; frees its slot.
    @param result sha2-256 of the result document.
    @param report sha2-256 of the report document.
    @param outcome 1 ok, 2 exit, 3 trap, 4 out of memory, 5 timeout.
    @param used Fuel seconds where the job bills fuel, else 0.
    """
    u: Unit = self._touched(job_id, index)
    u.word = self._with_result(u, result, outcome, used)
    self._words[u.key] = u.word
    log IJobRegistry.Submitted(job_id=u.job_id, index=index, node=u.node, word=u.word, result=result, report=report)
    extcall NODES.submitted(u.node, msg.sender, skip_contract_check=True)


@external
@reentrant
def finish(
    terms: IJobRegistry.Terms,
    index: uint256,
    result: bytes32,
    report: bytes32,
    outcome: uint256,
    used: uint256,
    claims: bool,
    session_key: bytes32,
):
    """
    @notice Submit and settle at once, where nobody has a say in between: no judge, and no node on probation. The
            node's owner gets the settler's pay.
    @param result As in `submit`, and so are report, outcome and used.
    @param claims Whether the node takes the array's first untouched unit too, as `claim` would. What keeps it from
           that does not keep the result from being paid.
    @param session_key Of that lease, as in `claim`.
    """
    u: Unit = self._unit(terms, index)
    u.word = self._with_result(u, result, outcome, used)
    if terms.judge != 0 or u.word & packing.UNIT_FRESH != 0:
        reasons._refuse(reasons.JOBS_SETTLE_EARLY)
    ask: INodeRegistry.Ask = empty(INodeRegistry.Ask)
    if claims and not self._is_submitter(terms.submitter):
        ask = leases._next_ask(terms, u.header, block.timestamp)
    p: Payment = self._payment(terms, u, True)
    u.word = self._end(u, packing.STATE_SETTLED)
    log IJobRegistry.Finished(
        job_id=u.job_id, index=index, node=u.node, word=u.word, result=result, report=report, pay=p.pay, fee=p.fee
    )
    owner: address = empty(address)
    rate: uint256 = 0
    seasoned: bool = False
    owner, rate, seasoned = extcall NODES.finished(
        u.node, msg.sender, p.bond, p.ok, p.fee, p.decliner, ask, skip_contract_check=True
    )
    reward: uint256 = self._share_of_keeper_fee(terms.money)
    self._pay_parts(terms, u, p, owner, owner, reward)
    if rate != 0:
        self._words[u.job_id] += 1 << packing.HEADER_TOUCHED_SHIFT
        u.index = (u.header >> packing.HEADER_TOUCHED_SHIFT) & packing.HEADER_TOUCHED_MASK
        u.key = keccak256(abi_encode(u.job_id, u.index))
        u.word = leases._first_word(u.header)
        self._begin(terms, u, u.node, rate, seasoned, session_key, 0)


@external
@reentrant
def decline(terms: IJobRegistry.Terms, index: uint256, outcome: uint256, report: bytes32):
    """
    @notice Give a lease back because its input, key or image cannot be used, while that is found out; or, cancelled,
            before its notice ends. Pays nothing; called by the operator.
    @dev What a match brought its proposer is burnt from the bond, else nodes and keepers in league would share tips.
    @param outcome 6 bad input, 7 bad key, 8 image missing.
    """
    u: Unit = self._unit(terms, index)
    self._check_leased(u.word)
    if outcome < packing.OUTCOME_BAD_INPUT or outcome > packing.OUTCOME_IMAGE_MISSING:
        reasons._refuse(reasons.JOBS_OUTCOME_RANGE)
    closing: bool = u.word & packing.UNIT_STATE_MASK == packing.STATE_CLOSING
    if not closing:
        if block.timestamp >= leases._declinable_until(terms.limits, terms.policy, u.word):
            reasons._refuse(reasons.JOBS_DECLINE_LATE)
        self._check_not_due(u.word)
    burn: uint256 = leases._tip_to_burn(terms.money, u.word)
    u.word |= outcome << packing.UNIT_OUTCOME_SHIFT

    refund: uint256 = 0
    if not closing and self._may_reopen(terms, u):
        self._accused[u.key] = u.node | (block.timestamp << packing.ACCUSED_AT_SHIFT)
        u.word = self._reopen(u.key, u.word | packing.UNIT_ACCUSED)
    else:
        refund = leases._unit_holds(terms.money, terms.limits, u.word)
        end: uint256 = packing.STATE_REFUNDED
        if closing:
            end = packing.STATE_CANCELLED
        u.word = self._end(u, end)
    log IJobRegistry.Declined(job_id=u.job_id, index=index, node=u.node, word=u.word, report=report)
    bond: uint256 = leases._lease_bond(terms.money, terms.limits, terms.policy)
    extcall NODES.declined(u.node, msg.sender, bond, burn, skip_contract_check=True)
    self._refund(refund, terms.submitter)


@external
@reentrant
def give_up(terms: IJobRegistry.Terms, index: uint256, report: bytes32):
    """
    @notice Give a lease back that will have no result. It costs the node what a reclaim does, less what the reclaimer
            may get; the slot is free at once. Called by the operator, before anyone may reclaim.
    @param report sha2-256 of the report document.
    """
    u: Unit = self._unit(terms, index)
    if u.word & packing.UNIT_STATE_MASK != packing.STATE_RUNNING:
        reasons._refuse(reasons.JOBS_NOT_RUNNING)
    self._check_not_due(u.word)
    lost: leases.Losses = leases._losses(terms.money, terms.limits, terms.policy, u.word)
    refund: uint256 = 0
    u.word, refund = self._lose(terms, u)
    log IJobRegistry.GaveUp(job_id=u.job_id, index=index, node=u.node, word=u.word, report=report)
    extcall NODES.gave_up(
        u.node, msg.sender, lost.bond, lost.slash - lost.slash // 4, lost.fee, skip_contract_check=True
    )
    self._refund(refund, terms.submitter)


# ---- ANYONE ----


@external
@reentrant
def propose(terms: IJobRegistry.Terms, index: uint256, node: uint256, payee: address):
    """
    @notice Name a node for an open unit. The strictly larger key wins when the window ends.
    @param index The unit, or NEXT for the array's first untouched one.
    @param payee Who is tipped when the node acks; zero means msg.sender.
    """
    u: Unit = self._open(terms, index)
    u.word = self._with_lapse(u.key, u.word, terms.policy)
    window: uint256 = (terms.limits >> packing.LIMITS_MATCH_WINDOW_SHIFT) & packing.LIMITS_MATCH_WINDOW_MASK
    if window == 0 or (u.word >> packing.UNIT_LAPSES_SHIFT) & packing.UNIT_LAPSES_MASK >= leases.MAX_LAPSES:
        reasons._refuse(reasons.JOBS_CLAIMS_ONLY)
    mark: uint256 = (u.word >> packing.UNIT_MARK_SHIFT) & packing.UNIT_MARK_MASK
    if mark != 0 and block.timestamp >= mark:
        reasons._refuse(reasons.JOBS_WINDOW_OVER)
    if (u.word >> packing.UNIT_NODE_SHIFT) & packing.UNIT_NODE_MASK == node:
        reasons._refuse(reasons.JOBS_EXCLUDED)
    if not leases._has_time(leases._topped(terms.limits, u.word), terms.policy, block.timestamp):
        reasons._refuse(reasons.JOBS_NO_TIME)

    rate: uint256 = 0
    score: uint256 = 0
    operator: address = empty(address)
    rate, score, operator = staticcall NODES.appraise(node, self._ask(terms, u, node), skip_contract_check=True)
    if convert(operator, uint256) == terms.submitter & packing.SUBMITTER_ACCOUNT_MASK:
        reasons._refuse(reasons.JOBS_OWN_JOB)
    rank: uint256 = leases._key(
        u.job_id,
        u.index,
        (u.word >> packing.UNIT_ATTEMPTS_SHIFT) & packing.UNIT_ATTEMPTS_MASK,
        node,
        leases._ranked(terms.limits, u.index, score),
    )

    extensions: uint256 = 0
    if mark == 0:
        mark = block.timestamp + window
    else:
        best: uint256 = self._second_words[u.key]
        if (best >> packing.BEST_NODE_SHIFT) & packing.BEST_NODE_MASK == node:
            reasons._refuse(reasons.JOBS_BEST_ALREADY)
        if rank <= (best >> packing.BEST_KEY_SHIFT) & packing.BEST_KEY_MASK:
            reasons._refuse(reasons.JOBS_NOT_BETTER)
        extensions = best >> packing.BEST_EXTENSIONS_SHIFT
        if extensions < MAX_EXTENSIONS and mark - block.timestamp < window // 3:
            extensions += 1
            mark += window // 3
    proposal: uint256 = (
        convert(self._payee(payee), uint256)
        | (node << packing.BEST_NODE_SHIFT)
        | (rank << packing.BEST_KEY_SHIFT)
        | (extensions << packing.BEST_EXTENSIONS_SHIFT)
    )
    u.word = (
        (u.word & ~(packing.UNIT_RATE_LANE | packing.UNIT_MARK_LANE))
        | (rate << packing.UNIT_RATE_SHIFT)
        | (mark << packing.UNIT_MARK_SHIFT)
    )
    self._second_words[u.key] = proposal
    self._words[u.key] = u.word
    log IJobRegistry.Proposed(job_id=u.job_id, index=u.index, node=node, word=u.word, best=proposal)


@external
@reentrant
def settle(terms: IJobRegistry.Terms, index: uint256, payee: address):
    """
    @notice Pay for a submitted unit once its window is over.
    @param payee Who gets the settler's pay; zero means msg.sender.
    """
    refusal: uint256 = self._settle(terms, index, self._payee(payee))
    if refusal != 0:
        reasons._refuse(refusal)


@external
@reentrant
def settle_batch(items: DynArray[IJobRegistry.Item, MAX_BATCH], payee: address):
    """
    @notice Settle several units; stale items are skipped and pay nothing.
    """
    receiver: address = self._payee(payee)
    done: bool = False
    for item: IJobRegistry.Item in items:
        if self._settle(item.terms, item.index, receiver) == 0:
            done = True
    if not done:
        reasons._refuse(reasons.JOBS_NOTHING_DONE)


@external
@reentrant
def close(terms: IJobRegistry.Terms, index: uint256, payee: address):
    """
    @notice End a cancelled lease whose notice has run out without a submit; the owner is paid for its time.
    """
    u: Unit = self._unit(terms, index)
    if u.word & packing.UNIT_STATE_MASK != packing.STATE_CLOSING:
        reasons._refuse(reasons.JOBS_NOT_CLOSING)
    mark: uint256 = (u.word >> packing.UNIT_MARK_SHIFT) & packing.UNIT_MARK_MASK
    if block.timestamp < mark:
        reasons._refuse(reasons.JOBS_NOTICE_RUNNING)
    billed: uint256 = mark - ((u.word >> packing.UNIT_STARTED_SHIFT) & packing.UNIT_STARTED_MASK)
    limits: uint256 = leases._topped(terms.limits, u.word)
    billed = min(billed, limits & packing.LIMITS_MAX_SECONDS_MASK) + (
        (terms.policy >> packing.POLICY_START_FEE_SECONDS_SHIFT) & packing.POLICY_START_FEE_SECONDS_MASK
    )
    p: Payment = self._paid(terms, u.word, billed)
    reward: uint256 = leases._ramp(self._share_of_keeper_fee(terms.money), block.timestamp - mark)
    u.word = self._end(u, packing.STATE_CANCELLED)
    log IJobRegistry.Closed(job_id=u.job_id, index=index, node=u.node, word=u.word, pay=p.pay, fee=p.fee)
    owner: address = extcall NODES.closed(u.node, p.bond, skip_contract_check=True)
    self._pay_out(owner, p.pay, p.fee, self._payee(payee), reward, terms.submitter, p.rest)


@external
@reentrant
def reclaim(terms: IJobRegistry.Terms, index: uint256, payee: address):
    """
    @notice Take a lease back from a node that let it end or stopped beating. The node loses a tenth of its bond.
    @param payee Who gets the reclaimer's pay; zero means msg.sender.
    """
    u: Unit = self._unit(terms, index)
    if u.word & packing.UNIT_STATE_MASK != packing.STATE_RUNNING:
        reasons._refuse(reasons.JOBS_NOT_RUNNING)
    due: uint256 = self._reclaimable_from(u.word)
    if block.timestamp < due:
        reasons._refuse(reasons.JOBS_NOT_RECLAIMABLE)
    lost: leases.Losses = leases._losses(terms.money, terms.limits, terms.policy, u.word)
    reward: uint256 = min(lost.slash // 4, leases._ramp(self._share_of_keeper_fee(terms.money), block.timestamp - due))
    least: uint256 = leases._tip_to_burn(terms.money, u.word)

    refund: uint256 = 0
    u.word, refund = self._lose(terms, u)
    log IJobRegistry.Reclaimed(job_id=u.job_id, index=index, node=u.node, word=u.word)
    extcall NODES.reclaimed(
        u.node, 1, lost.bond, lost.slash, reward, least, lost.fee, self._payee(payee), skip_contract_check=True
    )
    self._refund(refund, terms.submitter)


@external
@reentrant
def expire(terms: IJobRegistry.Terms, index: uint256, payee: address):
    """
    @notice End an open unit, or (ALL) an array's untouched ones, that can no longer finish before the deadline.
    @param payee Who gets the expirer's pay; zero means msg.sender. A unit of an array pays none.
    """
    u: Unit = self._unit(terms, index)
    limits: uint256 = leases._topped(terms.limits, u.word)
    due: uint256 = (
        ((limits >> packing.LIMITS_DEADLINE_SHIFT) & packing.LIMITS_DEADLINE_MASK)
        + 1
        - leases._lease_time(limits, terms.policy)
    )
    if block.timestamp < due:
        reasons._refuse(reasons.JOBS_NOT_EXPIRED)
    refund: uint256 = 0
    u.word, refund = self._end_open(terms, u.job_id, index, packing.STATE_EXPIRED)
    keeper_fee: uint256 = (terms.money >> packing.MONEY_KEEPER_FEE_SHIFT) & packing.MONEY_KEEPER_FEE_MASK
    reward: uint256 = min(keeper_fee, leases._ramp(keeper_fee // 4, block.timestamp - due))
    # An array pays once, for its untouched units. Else touching each just before it expires would make each pay.
    if index != ALL and u.header != 0:
        reward = 0
    refund -= reward
    log IJobRegistry.Expired(job_id=u.job_id, index=index, word=u.word, refund=refund)
    self._refund_less(refund, terms.submitter, reward, payee)


@external
@reentrant
def unlock(terms: IJobRegistry.Terms, parents: DynArray[bytes32, MAX_PARENT_WORDS], payee: address):
    """
    @notice Open a job whose parents have all ended as asked, or refund one of whose parents ended otherwise.
    @param parents As posted.
    @param payee Who gets the keeper fee of it; zero means msg.sender.
    """
    job_id: bytes32 = self._job_id(terms)
    word: uint256 = self._words[job_id]
    is_array: bool = word & packing.UNIT_STATE_MASK == packing.STATE_HEADER
    if word & packing.UNIT_STATE_MASK != packing.STATE_BLOCKED and not (
        is_array and word & packing.HEADER_WAITING != 0
    ):
        reasons._refuse(reasons.JOBS_NOT_BLOCKED)
    # What can only expire is not opened first: its submitter would pay for both.
    if not leases._has_time(terms.limits, terms.policy, block.timestamp):
        reasons._refuse(reasons.JOBS_NO_TIME)
    fails: bool = self._fails(terms.parents_hash, parents)
    at: uint256 = 0
    if is_array:
        at = ALL
    refund: uint256 = 0
    fee: uint256 = (terms.money >> packing.MONEY_KEEPER_FEE_SHIFT) & packing.MONEY_KEEPER_FEE_MASK
    if fails:
        word, refund = self._end_open(terms, job_id, at, packing.STATE_CANCELLED)
        refund -= fee
    else:
        if is_array:
            word = (word & ~(packing.HEADER_OPENED_LANE | packing.HEADER_WAITING)) | (
                block.timestamp << packing.HEADER_OPENED_SHIFT
            )
        else:
            word = packing.STATE_OPEN | (block.timestamp << packing.UNIT_STARTED_SHIFT)
        self._words[job_id] = word
    log IJobRegistry.Unlocked(job_id=job_id, index=at, word=word, refund=refund)
    self._refund_less(refund, terms.submitter, fee, payee)


# ---- JUDGES ----


@external
@reentrant
def dispute(terms: IJobRegistry.Terms, index: uint256):
    """
    @notice Hold a submitted unit while its judge looks at it. Called by the judge that the terms name.
    """
    self._check_judge(terms.judge)
    u: Unit = self._unit(terms, index)
    if u.word & packing.UNIT_STATE_MASK != packing.STATE_SUBMITTED:
        reasons._refuse(reasons.JOBS_NOT_SUBMITTED)
    if block.timestamp >= leases._challenge_end(terms.limits, u.word):
        reasons._refuse(reasons.JOBS_DISPUTE_LATE)
    u.word = (u.word & ~packing.UNIT_STATE_LANE) | packing.STATE_DISPUTED
    self._words[u.key] = u.word
    log IJobRegistry.Disputed(job_id=u.job_id, index=index, node=u.node, word=u.word)


@external
@reentrant
def rule(
    terms: IJobRegistry.Terms, index: uint256, verdict: uint256, fields: uint256, shares: uint256[3], payee: address
):
    """
    @notice Say what becomes of a submitted unit. Called by the judge that the terms name.
    @param verdict 0 release a disputed unit, which is submitted again; 1 confirm it, which pays for it; 2 reject it,
           which refunds it and takes the bond; 3 void it, which refunds it less the start fee. A unit that is not
           disputed can be confirmed, and where the terms ask for a proof rejected and voided too.
    @param fields What a confirmed unit's outcome and fuel seconds are instead (packing.FIELDS_OUTCOME_SHIFT ..); zero
           leaves them.
    @param shares Of the bond of a rejected unit, as Escrow.split takes them, at most six tenths; the rest is burnt.
    @param payee Who gets the settler's pay of a confirmed unit; zero means msg.sender.
    """
    self._check_judge(terms.judge)
    u: Unit = self._unit(terms, index)
    u.word = staticcall RULES.ruled(terms.limits, terms.policy, u.word, verdict, fields, skip_contract_check=True)
    if verdict == RELEASE:
        self._words[u.key] = u.word
        self._log_ruled(u, RELEASE, 0, 0, 0)
        return
    if verdict == CONFIRM:
        self._pay_for(terms, u, self._payee(payee), self._share_of_keeper_fee(terms.money), True)
        return
    p: Payment = self._paid(
        terms, u.word, (terms.policy >> packing.POLICY_START_FEE_SECONDS_SHIFT) & packing.POLICY_START_FEE_SECONDS_MASK
    )
    u.word = self._end(u, packing.STATE_REFUNDED)
    if verdict == REJECT:
        self._log_ruled(u, REJECT, 0, 0, p.bond)
        extcall NODES.slashed(u.node, p.bond, shares, skip_contract_check=True)
        self._refund(p.rest + p.pay, terms.submitter)
        return
    self._log_ruled(u, verdict, p.pay, p.fee, 0)
    owner: address = extcall NODES.settled(u.node, p.bond, False, 0, 0, skip_contract_check=True)
    self._pay_out(owner, p.pay, p.fee, empty(address), 0, terms.submitter, p.rest)


# ---- VIEWS ----


@view
@external
@reentrant
def job_id_of(terms: IJobRegistry.Terms) -> bytes32:
    """
    @return keccak256(abi_encode(chain id at deployment, this contract, terms))
    """
    return self._job_id(terms)


@view
@external
@reentrant
def load(job_id: bytes32, index: uint256) -> (uint256, uint256, uint256, uint256):
    """
    @return (job word, unit word, auxiliary slot, last decline) as stored; the job word of an array is its header.
    """
    word: uint256 = self._words[job_id]
    key: bytes32 = job_id
    if word & packing.UNIT_STATE_MASK == packing.STATE_HEADER:
        key = keccak256(abi_encode(job_id, index))
    return word, self._words[key], self._second_words[key], self._accused[key]


# ---- INTERNAL: units ----


@view
@internal
def _job_id(terms: IJobRegistry.Terms) -> bytes32:
    return keccak256(abi_encode(CHAIN_ID, self, terms))


@pure
@internal
def _found(job_id: bytes32, index: uint256, key: bytes32, word: uint256, header: uint256) -> Unit:
    return Unit(
        job_id=job_id,
        index=index,
        key=key,
        word=word,
        node=(word >> packing.UNIT_NODE_SHIFT) & packing.UNIT_NODE_MASK,
        header=header,
    )


@view
@internal
def _touched(job_id: bytes32, index: uint256) -> Unit:
    word: uint256 = self._words[job_id]
    if word & packing.UNIT_STATE_MASK != packing.STATE_HEADER:
        if index != 0:
            reasons._refuse(reasons.JOBS_INDEX_RANGE)
        # The key of an array's unit is no job: what it moves, and what its events name, is reached through its array.
        if word & packing.UNIT_ARRAY != 0:
            reasons._refuse(reasons.JOBS_NOT_RUNNING)
        return self._found(job_id, index, job_id, word, 0)
    key: bytes32 = keccak256(abi_encode(job_id, index))
    return self._found(job_id, index, key, self._words[key], word)


@view
@internal
def _unit(terms: IJobRegistry.Terms, index: uint256) -> Unit:
    return self._touched(self._job_id(terms), index)


@internal
def _open(terms: IJobRegistry.Terms, index: uint256) -> Unit:
    """
    @notice Find an OPEN unit that may be proposed for or claimed; the array's next untouched one is opened.
    @return As it is now; the caller stores the word.
    """
    job_id: bytes32 = self._job_id(terms)
    word: uint256 = self._words[job_id]
    if word & packing.UNIT_STATE_MASK != packing.STATE_HEADER:
        if index != 0 and index != NEXT:
            reasons._refuse(reasons.JOBS_INDEX_RANGE)
        if word & packing.UNIT_STATE_MASK != packing.STATE_OPEN:
            reasons._refuse(reasons.JOBS_NOT_OPEN)
        return self._found(job_id, 0, job_id, word, 0)

    if word & packing.HEADER_CLOSED != 0:
        reasons._refuse(reasons.JOBS_JOB_CLOSED)
    if word & packing.HEADER_WAITING != 0:
        reasons._refuse(reasons.JOBS_NOT_OPEN)
    touched: uint256 = (word >> packing.HEADER_TOUCHED_SHIFT) & packing.HEADER_TOUCHED_MASK
    at: uint256 = index
    if index == NEXT:
        at = touched
    if at >= (word >> packing.HEADER_LEASES_SHIFT) & packing.HEADER_LEASES_MASK:
        reasons._refuse(reasons.JOBS_INDEX_RANGE)
    if at > touched:
        reasons._refuse(reasons.JOBS_INDEX_LATER)
    key: bytes32 = keccak256(abi_encode(job_id, at))
    u: Unit = self._found(job_id, at, key, self._words[key], word)
    if at == touched:
        u.word = leases._first_word(word)
        self._words[job_id] = word + (1 << packing.HEADER_TOUCHED_SHIFT)
    elif u.word & packing.UNIT_STATE_MASK != packing.STATE_OPEN:
        reasons._refuse(reasons.JOBS_NOT_OPEN)
    return u


@view
@internal
def _with_lapse(key: bytes32, word: uint256, policy: uint256) -> uint256:
    """
    @notice Read an OPEN unit: a proposal that nobody acked in time is dropped, and its node becomes the excluded one.
    """
    if not leases._has_lapsed(word, policy, block.timestamp):
        return word
    return leases._drop(word, self._second_words[key])


@internal
def _start(
    terms: IJobRegistry.Terms,
    u: Unit,
    node: uint256,
    rate: uint256,
    ceiling: uint256,
    session_key: bytes32,
    resume_from: uint256,
):
    """
    @notice Start a lease of an OPEN unit for the node that msg.sender operates.
    @param rate The rate locked by a proposal, zero to lock the ask in force.
    @param ceiling The highest rate that may be locked now.
    """
    if resume_from != 0 and self.checkpoints[u.key][resume_from] == 0:
        reasons._refuse(reasons.JOBS_NO_CHECKPOINT)
    if self._is_submitter(terms.submitter):
        reasons._refuse(reasons.JOBS_OWN_JOB)
    if not leases._has_time(leases._topped(terms.limits, u.word), terms.policy, block.timestamp):
        reasons._refuse(reasons.JOBS_NO_TIME)
    ask: INodeRegistry.Ask = self._ask(terms, u, node)
    ask.ceiling = ceiling
    locked: uint256 = 0
    seasoned: bool = False
    locked, seasoned = extcall NODES.engage(node, msg.sender, ask, rate, skip_contract_check=True)
    self._begin(terms, u, node, locked, seasoned, session_key, resume_from)


@internal
def _begin(
    terms: IJobRegistry.Terms,
    u: Unit,
    node: uint256,
    rate: uint256,
    seasoned: bool,
    session_key: bytes32,
    resume_from: uint256,
):
    """
    @notice Write the lease that NodeRegistry has let a node begin.
    """
    limits: uint256 = leases._topped(terms.limits, u.word)
    started: uint256 = (
        packing.STATE_RUNNING
        | (node << packing.UNIT_NODE_SHIFT)
        | (rate << packing.UNIT_RATE_SHIFT)
        | (block.timestamp << packing.UNIT_STARTED_SHIFT)
        | ((block.timestamp + leases._lease_time(limits, terms.policy)) << packing.UNIT_MARK_SHIFT)
        | (
            (u.word & (packing.UNIT_SECONDS_LANE | packing.UNIT_ATTEMPTS_LANE | packing.UNIT_TIPS_LANE))
            + (1 << packing.UNIT_ATTEMPTS_SHIFT)
        )
        | (u.word & (packing.UNIT_ACCUSED | packing.UNIT_ARRAY | packing.UNIT_ACKED))
        | (resume_from << packing.UNIT_RESUME_SHIFT)
    )
    if (terms.limits >> packing.LIMITS_BILLING_SHIFT) & packing.LIMITS_BILLING_MASK == packing.BILLING_FUEL:
        started |= packing.UNIT_FUEL
    if terms.judge != 0 or terms.limits & packing.LIMITS_KEEP != 0:
        started |= packing.UNIT_STORE
    if not seasoned:
        started |= packing.UNIT_FRESH
    if limits & packing.LIMITS_CHECKPOINT_EVERY_LANE != 0:
        started |= packing.UNIT_RESUMABLE
        # The proposal that lies there would be read as a checkpoint.
        self._second_words[u.key] = 0
    self._words[u.key] = started
    log IJobRegistry.Started(job_id=u.job_id, index=u.index, node=node, word=started, session_key=session_key)


@view
@internal
def _may_reopen(terms: IJobRegistry.Terms, u: Unit) -> bool:
    """
    @return Whether a lease that ended without a result leaves an attempt, and time for it, in a job still open.
    """
    if (u.word >> packing.UNIT_ATTEMPTS_SHIFT) & packing.UNIT_ATTEMPTS_MASK >= (
        terms.limits >> packing.LIMITS_MAX_ATTEMPTS_SHIFT
    ) & packing.LIMITS_MAX_ATTEMPTS_MASK:
        return False
    return u.header & packing.HEADER_CLOSED == 0 and leases._has_time(
        leases._topped(terms.limits, u.word), terms.policy, block.timestamp
    )


@internal
def _with_result(u: Unit, result: bytes32, outcome: uint256, used: uint256) -> uint256:
    """
    @notice Take a lease's result; what must be known of it later is stored.
    @return The unit's word, SUBMITTED now; the caller stores it.
    """
    self._check_leased(u.word)
    if outcome == 0 or outcome > packing.OUTCOME_TIMEOUT:
        reasons._refuse(reasons.JOBS_OUTCOME_RANGE)
    if result == empty(bytes32):
        reasons._refuse(reasons.JOBS_RESULT_ZERO)
    if used > packing.UNIT_SECONDS_MASK or (used == 0) != (u.word & packing.UNIT_FUEL == 0):
        reasons._refuse(reasons.JOBS_USED_RANGE)
    if u.word & packing.UNIT_STORE != 0:
        self._second_words[u.key] = convert(result, uint256)
    return (
        (u.word & ~(packing.UNIT_STATE_LANE | packing.UNIT_OUTCOME_LANE | packing.UNIT_MARK_LANE))
        | packing.STATE_SUBMITTED
        | (outcome << packing.UNIT_OUTCOME_SHIFT)
        | (block.timestamp << packing.UNIT_MARK_SHIFT)
        | (used << packing.UNIT_SECONDS_SHIFT)
    )


@internal
def _reopen(key: bytes32, word: uint256) -> uint256:
    """
    @return The new word: OPEN from now, without the node that leaves.
    """
    kept: uint256 = word & (
        packing.UNIT_NODE_LANE
        | packing.UNIT_ATTEMPTS_LANE
        | packing.UNIT_SECONDS_LANE
        | packing.UNIT_TIPS_LANE
        | packing.UNIT_ACCUSED
        | packing.UNIT_ARRAY
    )
    opened: uint256 = kept | packing.STATE_OPEN | (block.timestamp << packing.UNIT_STARTED_SHIFT)
    self._words[key] = opened
    return opened


@internal
def _lose(terms: IJobRegistry.Terms, u: Unit) -> (uint256, uint256):
    """
    @notice End a lease that its node has lost. Where the unit opens again, its last checkpoint is kept.
    @return (the new word, the refund: 0 where the unit is open again)
    """
    if self._may_reopen(terms, u):
        if u.word & packing.UNIT_RESUMABLE != 0:
            attempt: uint256 = (u.word >> packing.UNIT_ATTEMPTS_SHIFT) & packing.UNIT_ATTEMPTS_MASK
            seconds: uint256 = self._second_words[u.key]
            if seconds != 0:
                resumed: uint256 = (u.word >> packing.UNIT_RESUME_SHIFT) & packing.UNIT_RESUME_MASK
                self.checkpoints[u.key][attempt] = (
                    seconds
                    | (leases._reserved(self.checkpoints[u.key][resumed]) << packing.KEPT_BEFORE_SHIFT)
                    | (((u.word >> packing.UNIT_RATE_SHIFT) & packing.UNIT_RATE_MASK) << packing.KEPT_RATE_SHIFT)
                    | (u.node << packing.KEPT_NODE_SHIFT)
                    | (resumed << packing.KEPT_RESUME_SHIFT)
                )
        return self._reopen(u.key, u.word), 0
    refund: uint256 = leases._unit_holds(terms.money, terms.limits, u.word)
    return self._end(u, packing.STATE_REFUNDED), refund


@internal
@payable
def _fund(amount: uint256):
    """
    @notice Take exactly this from msg.sender, into its lock.
    @dev The lock is the next call after the transfer, so that nobody can lock the payer's tokens in between.
    """
    if ASSET.address == empty(address):
        if msg.value != amount:
            reasons._refuse(reasons.JOBS_WRONG_VALUE)
    else:
        if msg.value != 0:
            reasons._refuse(reasons.JOBS_WRONG_VALUE)
        paid: bool = extcall ASSET.transferFrom(msg.sender, ESCROW.address, amount, default_return_value=True)
        if not paid:
            reasons._refuse(reasons.JOBS_TRANSFER_FAILED)
    extcall ESCROW.lock(convert(msg.sender, bytes32), amount, value=msg.value, skip_contract_check=True)


@internal
def _refund(refund: uint256, submitter: uint256):
    if refund != 0:
        self._refund_less(refund, submitter, 0, msg.sender)


@internal
def _refund_less(refund: uint256, submitter: uint256, reward: uint256, payee: address):
    """
    @param reward What whoever ends or opens the job gets besides.
    """
    self._split(
        submitter, [self._share(refund, submitter), self._share(reward, convert(self._payee(payee), uint256)), 0, 0]
    )


@view
@internal
def _fails(parents_hash: bytes32, parents: DynArray[bytes32, MAX_PARENT_WORDS]) -> bool:
    """
    @notice Read how a job's parents have ended; refused while none ended otherwise than asked, and one has not ended.
    @param parents As posted: the conditions, two bits for each parent, then the parents' ids.
    @return Whether one ended otherwise than asked.
    """
    if keccak256(abi_encode(parents)) != parents_hash:
        reasons._refuse(reasons.JOBS_PARENTS_HASH)
    conditions: uint256 = convert(parents[0], uint256)
    waits: bool = False
    first: bool = True
    for parent: bytes32 in parents:
        if first:
            first = False
            continue
        end: uint256 = leases._ended(self._words[parent])
        if end == 0:
            waits = True
        # lanes: the parent's two bits, of an end's one
        elif conditions & end == 0:
            return True
        conditions >>= 2  # lanes: the next parent's two bits
    if waits:
        reasons._refuse(reasons.JOBS_PARENT_RUNS)
    return False


@internal
def _end_open(terms: IJobRegistry.Terms, job_id: bytes32, index: uint256, state: uint256) -> (uint256, uint256):
    """
    @notice End an OPEN or BLOCKED unit, or (ALL) close an array.
    @param state The unit's end.
    @return (the new word, what was held)
    """
    word: uint256 = self._words[job_id]
    if index == ALL and word & packing.UNIT_STATE_MASK == packing.STATE_HEADER:
        held: uint256 = self._close_array(job_id, word, terms)
        return self._words[job_id], held
    u: Unit = self._touched(job_id, index)
    state_before: uint256 = u.word & packing.UNIT_STATE_MASK
    if state_before != packing.STATE_OPEN and state_before != packing.STATE_BLOCKED:
        reasons._refuse(reasons.JOBS_NOT_OPEN)
    held: uint256 = leases._unit_holds(terms.money, terms.limits, u.word)
    return self._end(u, state), held


@internal
def _end(u: Unit, state: uint256) -> uint256:
    """
    @notice Write a unit's last word, and count its end in the array's header.
    """
    ended: uint256 = (u.word & ~packing.UNIT_STATE_LANE) | state
    self._words[u.key] = ended
    if u.header != 0:
        one: uint256 = 1 << packing.HEADER_FAILED_SHIFT
        if (
            state == packing.STATE_SETTLED
            and (u.word >> packing.UNIT_OUTCOME_SHIFT) & packing.UNIT_OUTCOME_MASK == packing.OUTCOME_OK
        ):
            one = 1 << packing.HEADER_DONE_SHIFT
        self._words[u.job_id] = u.header + one
    return ended


@internal
def _close_array(job_id: bytes32, header: uint256, terms: IJobRegistry.Terms) -> uint256:
    """
    @return What the untouched units hold, and the fee of an unlock that did not come.
    """
    if header & packing.HEADER_CLOSED != 0:
        reasons._refuse(reasons.JOBS_JOB_CLOSED)
    untouched: uint256 = ((header >> packing.HEADER_LEASES_SHIFT) & packing.HEADER_LEASES_MASK) - (
        (header >> packing.HEADER_TOUCHED_SHIFT) & packing.HEADER_TOUCHED_MASK
    )
    if untouched == 0:
        reasons._refuse(reasons.JOBS_NOTHING_LEFT)
    self._words[job_id] = (header & ~packing.HEADER_WAITING) | packing.HEADER_CLOSED
    held: uint256 = untouched * leases._budget(leases._unit_price(terms.money, terms.limits), terms.money, terms.limits)
    if header & packing.HEADER_WAITING != 0:
        held += (terms.money >> packing.MONEY_KEEPER_FEE_SHIFT) & packing.MONEY_KEEPER_FEE_MASK
    return held


@internal
def _settle(terms: IJobRegistry.Terms, index: uint256, settler: address) -> uint256:
    """
    @param settler Who gets the settler's pay; zero for nobody, when the submitter accepts.
    @return Zero once it is settled, else why it cannot be.
    """
    u: Unit = self._unit(terms, index)
    state: uint256 = u.word & packing.UNIT_STATE_MASK
    reward: uint256 = 0
    if settler == empty(address):
        if state != packing.STATE_SUBMITTED:
            return reasons.JOBS_NOT_SUBMITTED
    else:
        if state != packing.STATE_SUBMITTED and state != packing.STATE_DISPUTED:
            return reasons.JOBS_NOT_SUBMITTED
        since: uint256 = leases._settleable_from(terms.limits, terms.policy, u.word)
        if block.timestamp < since:
            return reasons.JOBS_SETTLE_EARLY
        reward = leases._ramp(self._share_of_keeper_fee(terms.money), block.timestamp - since)
        if terms.limits & packing.LIMITS_PROVEN != 0:
            self._fail_unproven(terms, u, settler, reward)
            return 0
    self._pay_for(terms, u, settler, reward, False)
    return 0


@internal
def _log_ruled(u: Unit, verdict: uint256, pay: uint256, fee: uint256, taken: uint256):
    log IJobRegistry.Ruled(
        job_id=u.job_id,
        index=u.index,
        node=u.node,
        word=u.word,
        verdict=verdict,
        pay=pay,
        fee=fee,
        taken=taken,
    )


@internal
def _pay_for(terms: IJobRegistry.Terms, unit: Unit, settler: address, reward: uint256, ruled: bool):
    """
    @notice End a submitted unit with its pay.
    @param settler Who gets the settler's pay; zero where the submitter accepts.
    @param reward The settler's pay.
    @param ruled Whether its judge ends it.
    """
    u: Unit = unit
    # A submitter who accepts at once vouches for a newcomer with his own money alone: he may be its owner.
    p: Payment = self._payment(terms, u, settler != empty(address) or u.word & packing.UNIT_FRESH == 0)
    u.word = self._end(u, packing.STATE_SETTLED)
    if ruled:
        self._log_ruled(u, CONFIRM, p.pay, p.fee, 0)
    else:
        log IJobRegistry.Settled(job_id=u.job_id, index=u.index, node=u.node, word=u.word, pay=p.pay, fee=p.fee)
    owner: address = extcall NODES.settled(u.node, p.bond, p.ok, p.fee, p.decliner, skip_contract_check=True)
    self._pay_parts(terms, u, p, owner, settler, reward)


@pure
@internal
def _paid(terms: IJobRegistry.Terms, word: uint256, billed: uint256) -> Payment:
    """
    @param billed Seconds.
    @return What a unit earns for them, as no success.
    """
    limits: uint256 = leases._topped(terms.limits, word)
    price: uint256 = leases._unit_price(terms.money, limits)
    p: Payment = empty(Payment)
    p.pay = leases._pay(price, word, billed)
    p.fee = leases._fee(p.pay, terms.policy)
    p.rest = leases._holds(price, terms.money, limits, word) - p.pay
    p.bond = leases._lease_bond(terms.money, terms.limits, terms.policy)
    return p


@view
@internal
def _payment(terms: IJobRegistry.Terms, u: Unit, counts: bool) -> Payment:
    """
    @param u Submitted.
    @param counts Whether a success counts for the node.
    """
    started: uint256 = (u.word >> packing.UNIT_STARTED_SHIFT) & packing.UNIT_STARTED_MASK
    # A notice changes none of it: a submitter who sees a result on its way would else cancel and have it for less.
    limits: uint256 = leases._topped(terms.limits, u.word)
    most: uint256 = limits & packing.LIMITS_MAX_SECONDS_MASK
    billed: uint256 = most
    billing: uint256 = (terms.limits >> packing.LIMITS_BILLING_SHIFT) & packing.LIMITS_BILLING_MASK
    if billing == packing.BILLING_FUEL:
        billed = min(billed, (u.word >> packing.UNIT_SECONDS_SHIFT) & packing.UNIT_SECONDS_MASK)
    elif billing == packing.BILLING_METERED:
        resumed: uint256 = (u.word >> packing.UNIT_RESUME_SHIFT) & packing.UNIT_RESUME_MASK
        if resumed != 0:
            # The seconds of what it was made of come first, or idling would take them; who resumed could see them.
            billed -= min(billed, leases._reserved(self.checkpoints[u.key][resumed]))
        billed = min(billed, ((u.word >> packing.UNIT_MARK_SHIFT) & packing.UNIT_MARK_MASK) - started)
    p: Payment = self._paid(terms, u.word, billed)
    if (u.word >> packing.UNIT_OUTCOME_SHIFT) & packing.UNIT_OUTCOME_MASK == packing.OUTCOME_OK:
        p.ok = counts
        p.shared = most
        if counts and u.word & packing.UNIT_ACCUSED != 0:
            accused: uint256 = self._accused[u.key]
            p.decliner = accused & packing.ACCUSED_NODE_MASK
            # What works much later says nothing of what the decliner found.
            if p.decliner == u.node or started >= (accused >> packing.ACCUSED_AT_SHIFT) + ACCUSATION_TIME:
                p.decliner = 0
    return p


@internal
def _pay_parts(terms: IJobRegistry.Terms, u: Unit, p: Payment, owner: address, settler: address, reward: uint256):
    """
    @notice Pay the checkpoints that a result was made of, then its owner, the fee and the settler; the rest is the
            submitter's.
    """
    rest: uint256 = p.rest - self._pay_checkpoints(terms, u, p.shared)
    self._pay_out(owner, p.pay, p.fee, settler, reward, terms.submitter, rest)


@internal
def _pay_checkpoints(terms: IJobRegistry.Terms, u: Unit, shared: uint256) -> uint256:
    """
    @notice Pay the checkpoints that a result was made of, as far as the unit has seconds: the oldest has them first,
            each later one what is left, the result the rest. So nobody bills a second that was somebody's already.
    @param shared Seconds; zero where the outcome is not ok.
    @return What they earned, fees included. It is at most the ceiling for each of those seconds.
    """
    paid: uint256 = 0
    attempt: uint256 = (u.word >> packing.UNIT_RESUME_SHIFT) & packing.UNIT_RESUME_MASK
    for _: uint256 in range(MAX_RESUMED):
        if attempt == 0 or shared == 0:
            break
        kept: uint256 = self.checkpoints[u.key][attempt]
        before: uint256 = (kept >> packing.KEPT_BEFORE_SHIFT) & packing.KEPT_BEFORE_MASK
        seconds: uint256 = min(shared - min(shared, before), kept & packing.KEPT_SECONDS_MASK)
        node: uint256 = (kept >> packing.KEPT_NODE_SHIFT) & packing.KEPT_NODE_MASK
        owner: address = staticcall NODES.owner_of(node, skip_contract_check=True)
        # Of one that has left, the submitter keeps it.
        if owner != empty(address) and seconds != 0:
            pay: uint256 = leases._checkpoint_pay((kept >> packing.KEPT_RATE_SHIFT) & packing.KEPT_RATE_MASK, seconds)
            fee: uint256 = leases._fee(pay, terms.policy)
            log IJobRegistry.CheckpointPaid(
                job_id=u.job_id, index=u.index, node=node, attempt=attempt, pay=pay, fee=fee
            )
            self._pay_out(owner, pay, fee, empty(address), 0, terms.submitter, 0)
            paid += pay
        attempt = (kept >> packing.KEPT_RESUME_SHIFT) & packing.KEPT_RESUME_MASK
    return paid


@internal
def _fail_unproven(terms: IJobRegistry.Terms, u: Unit, settler: address, ramped: uint256):
    """
    @notice End a submitted unit that nobody has proven in time: a refund, and the node loses what a lost lease does.
    @param ramped The settler's pay, which comes out of the slash and is at most a quarter of it.
    """
    lost: leases.Losses = leases._losses(terms.money, terms.limits, terms.policy, u.word)
    refund: uint256 = leases._unit_holds(terms.money, terms.limits, u.word)
    ended: uint256 = self._end(u, packing.STATE_REFUNDED)
    log IJobRegistry.Unproven(job_id=u.job_id, index=u.index, node=u.node, word=ended)
    extcall NODES.reclaimed(
        u.node, 0, lost.bond, lost.slash, min(lost.slash // 4, ramped), 0, lost.fee, settler, skip_contract_check=True
    )
    self._refund(refund, terms.submitter)


@internal
def _pay_out(
    owner: address,
    pay: uint256,
    fee: uint256,
    keeper: address,
    reward: uint256,
    submitter: uint256,
    rest: uint256,
):
    """
    @notice Split what an ended unit held: the owner's pay less the fee, the fee, the keeper's pay, the rest.
    """
    self._split(
        submitter,
        [
            self._share(pay - fee, convert(owner, uint256)),
            self._share(fee, convert(TREASURY, uint256)),
            self._share(reward, convert(keeper, uint256)),
            self._share(rest - reward, submitter),
        ],
    )


@internal
def _split(submitter: uint256, shares: uint256[4]):
    """
    @notice Split the one lock of all of a submitter's jobs; its key is the address without the salt, as at post.
    """
    extcall ESCROW.split(convert(submitter & packing.SUBMITTER_ACCOUNT_MASK, bytes32), shares, skip_contract_check=True)


# ---- INTERNAL: money and time ----


@pure
@internal
def _share_of_keeper_fee(money: uint256) -> uint256:
    """
    @return What settling, closing and reclaiming pay at first.
    """
    return ((money >> packing.MONEY_KEEPER_FEE_SHIFT) & packing.MONEY_KEEPER_FEE_MASK) // 8


@pure
@internal
def _share(amount: uint256, account: uint256) -> uint256:
    """
    @param account An address, or a word whose lower 160 bits are one.
    @return A share word of Escrow.split, no share at all for no amount.
    """
    if amount == 0:
        return 0
    return (amount << packing.SHARE_AMOUNT_SHIFT) | (account & packing.SHARE_ACCOUNT_MASK)


@view
@internal
def _reclaimable_from(word: uint256) -> uint256:
    """
    @return The first second at which a RUNNING unit may be reclaimed: its lease is over, or its node is dead.
    """
    seen: uint256 = staticcall NODES.last_seen(
        (word >> packing.UNIT_NODE_SHIFT) & packing.UNIT_NODE_MASK, skip_contract_check=True
    )
    dead: uint256 = max(seen, (word >> packing.UNIT_STARTED_SHIFT) & packing.UNIT_STARTED_MASK) + DEAD_AFTER
    return min((word >> packing.UNIT_MARK_SHIFT) & packing.UNIT_MARK_MASK, dead)


@view
@internal
def _check_not_due(word: uint256):
    if block.timestamp >= self._reclaimable_from(word):
        reasons._refuse(reasons.JOBS_RECLAIMABLE)


@view
@internal
def _payee(payee: address) -> address:
    if payee == empty(address):
        return msg.sender
    return payee


# ---- INTERNAL: checks ----


@view
@internal
def _check_submitter(submitter: uint256):
    if not self._is_submitter(submitter):
        reasons._refuse(reasons.JOBS_NOT_SUBMITTER)


@view
@internal
def _is_submitter(submitter: uint256) -> bool:
    return submitter & packing.SUBMITTER_ACCOUNT_MASK == convert(msg.sender, uint256)


@view
@internal
def _ask(terms: IJobRegistry.Terms, u: Unit, node: uint256) -> INodeRegistry.Ask:
    """
    @return What the matching gates compare the node with. Of replicas, their judge is asked first whether it may run
            this one.
    """
    if (terms.limits >> packing.LIMITS_REPLICAS_SHIFT) & packing.LIMITS_REPLICAS_MASK != 1 and not (
        staticcall IJudge(convert(terms.judge, address)).may_run(u.job_id, terms, u.index, node)
    ):
        reasons._refuse(reasons.JOBS_EXCLUDED)
    return leases._ask(terms)


@view
@internal
def _check_judge(judge: uint256):
    # No judge is named by zero, which nobody calls from.
    if judge != convert(msg.sender, uint256):
        reasons._refuse(reasons.JOBS_NOT_JUDGE)


@view
@internal
def _check_leased(word: uint256):
    state: uint256 = word & packing.UNIT_STATE_MASK
    if state != packing.STATE_RUNNING and state != packing.STATE_CLOSING:
        reasons._refuse(reasons.JOBS_NOT_RUNNING)
    if block.timestamp >= (word >> packing.UNIT_MARK_SHIFT) & packing.UNIT_MARK_MASK:
        reasons._refuse(reasons.JOBS_LATE)
