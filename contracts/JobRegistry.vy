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
        calldata in every call that moves money. The funding lies in Escrow under this contract and the job's id; a
        unit that has not ended holds exactly its price and its keeper fees less the tips already paid, and at its
        end all of that is split in one call. Payments are credits in Escrow; nothing here depends on a transfer out.
@custom:security Unaudited. Calls only go JobRegistry -> NodeRegistry -> Escrow, state first. The governor sets
        bounded parameters of new jobs and may pause posts for 7 days; no call touches a posted job's parameters.
        `post` alone reaches a token, and is locked; every other call reaches NodeRegistry and Escrow only, which
        call nobody on these paths, so they are @reentrant. Within a token's callback a job that is being posted
        has no funding yet, and Escrow refuses every split of it.
@custom:kill Cannot be switched off. Every state that is not an end has a way out that anyone may take.
"""

from ethereum.ercs import IERC20

from interfaces import IEscrow
from interfaces import IJobRegistry
from interfaces import INodeRegistry

implements: IJobRegistry

import leases
import packing
import reasons

PROTOCOL_VERSION: constant(uint256) = 1
NEXT: constant(uint256) = max_value(uint256)  # the first untouched unit, in propose and claim
ALL: constant(uint256) = max_value(uint256)  # every untouched unit, in cancel and expire
MAX_PARENTS: constant(uint256) = 16
MAX_BATCH: constant(uint256) = 64
MAX_EXTENSIONS: constant(uint256) = 3
MAX_LAPSES: constant(uint256) = 2
SLASH_DIVISOR: constant(uint256) = 10
PAUSE_TIME: constant(uint256) = 7 * 86400
POLICY_GRACE: constant(uint256) = 86400  # a replaced policy is taken this long
FEE_CAP: constant(uint256) = 1000  # bps

# Limits of SPEC section "Terms".
MAX_SECONDS: constant(uint256) = 30 * 86400
MAX_UNITS: constant(uint256) = 2**20
MAX_CHUNK: constant(uint256) = 256
MAX_WINDOW: constant(uint256) = 300
MAX_ATTEMPTS: constant(uint256) = 8
MAX_CHALLENGE_WINDOW: constant(uint256) = 7 * 86400
# What this version builds: one unit a lease, one replica, no challenge window, no checkpoints, no flag but newcomers.
BUILT_LANES: constant(uint256) = (
    packing.LIMITS_CHUNK_LANE
    + packing.LIMITS_REPLICAS_LANE
    + packing.LIMITS_QUORUM_LANE
    + packing.LIMITS_CHALLENGE_WINDOW_LANE
    + packing.LIMITS_CHECKPOINT_EVERY_LANE
    + packing.LIMITS_FLAGS_LANE
    - packing.LIMITS_NEWCOMERS
)
BUILT: constant(uint256) = (
    (1 << packing.LIMITS_CHUNK_SHIFT) + (1 << packing.LIMITS_REPLICAS_SHIFT) + (1 << packing.LIMITS_QUORUM_SHIFT)
)

# Reasons, one 32-byte row each; SPEC section "Errors".
NOT_SUBMITTER: constant(uint256) = 0
PAUSED: constant(uint256) = 1
POLICY_OLD: constant(uint256) = 2
POSTED_BEFORE: constant(uint256) = 3
SPARE_BITS: constant(uint256) = 4
SPEC_ZERO: constant(uint256) = 5
RUNTIME_ZERO: constant(uint256) = 6
CEILING_ZERO: constant(uint256) = 7
SECONDS_RANGE: constant(uint256) = 8
DEADLINE_NEAR: constant(uint256) = 9
UNITS_RANGE: constant(uint256) = 10
CHUNK_RANGE: constant(uint256) = 11
NO_CHUNKS: constant(uint256) = 12
REPLICAS_RANGE: constant(uint256) = 13
NO_REPLICAS: constant(uint256) = 14
QUORUM_RANGE: constant(uint256) = 15
WINDOW_RANGE: constant(uint256) = 16
NO_CHALLENGES: constant(uint256) = 17
NO_CHECKPOINTS: constant(uint256) = 18
ATTEMPTS_RANGE: constant(uint256) = 19
BILLING_RANGE: constant(uint256) = 20
NO_CONFIDENTIAL: constant(uint256) = 21
NO_PREEMPTIBLE: constant(uint256) = 22
FLAG_UNKNOWN: constant(uint256) = 23
NO_VERIFIERS: constant(uint256) = 24
NO_COURT: constant(uint256) = 25
NO_PARENTS: constant(uint256) = 26
PRICE_LOW: constant(uint256) = 27
KEEPER_FEE_RANGE: constant(uint256) = 28
BOND_LARGE: constant(uint256) = 29
ESCROW_LARGE: constant(uint256) = 30
WRONG_VALUE: constant(uint256) = 31
TRANSFER_FAILED: constant(uint256) = 32
INDEX_RANGE: constant(uint256) = 33
INDEX_LATER: constant(uint256) = 34
JOB_CLOSED: constant(uint256) = 35
NOTHING_LEFT: constant(uint256) = 36
NOT_OPEN: constant(uint256) = 37
NOT_RUNNING: constant(uint256) = 38
NOT_CLOSING: constant(uint256) = 39
NOT_SUBMITTED: constant(uint256) = 40
CLAIMS_ONLY: constant(uint256) = 41
NO_CLAIMS: constant(uint256) = 42
PROPOSAL_LIVE: constant(uint256) = 43
NO_PROPOSAL: constant(uint256) = 44
WINDOW_OVER: constant(uint256) = 45
WINDOW_OPEN: constant(uint256) = 46
NOT_BETTER: constant(uint256) = 47
BEST_ALREADY: constant(uint256) = 48
EXCLUDED: constant(uint256) = 49
OWN_JOB: constant(uint256) = 50
NO_TIME: constant(uint256) = 51
NO_RESUME: constant(uint256) = 52
LATE: constant(uint256) = 53
OUTCOME_RANGE: constant(uint256) = 54
USED_RANGE: constant(uint256) = 55
RESULT_ZERO: constant(uint256) = 56
RECLAIMABLE: constant(uint256) = 57
NOT_RECLAIMABLE: constant(uint256) = 58
NOTICE_RUNNING: constant(uint256) = 59
NOT_EXPIRED: constant(uint256) = 60
NOTHING_DONE: constant(uint256) = 61
NOT_GOVERNOR: constant(uint256) = 62
POLICY_RANGE: constant(uint256) = 63
NOT_OFFERED: constant(uint256) = 64
CHAIN_CHANGED: constant(uint256) = 65
REASONS: constant(
    String[2112]
) = "jobs: not the submitter         jobs: paused                    jobs: policy not current        jobs: posted before             jobs: spare bits set            jobs: spec zero                 jobs: no runtime asked          jobs: ceiling zero              jobs: max_seconds out of range  jobs: deadline too near         jobs: units out of range        jobs: chunk out of range        jobs: no chunks yet             jobs: replicas out of range     jobs: no replicas yet           jobs: quorum out of range       jobs: match_window out of range jobs: no challenges yet         jobs: no checkpoints yet        jobs: attempts out of range     jobs: billing out of range      jobs: no confidential jobs yet  jobs: no preemptible jobs yet   jobs: unknown flag              jobs: no verifiers yet          jobs: no court yet              jobs: no parents yet            jobs: price below minimum       jobs: keeper_fee out of range   jobs: bond too large            jobs: escrow too large          jobs: wrong value sent          jobs: transfer failed           jobs: no such unit              jobs: not the next unit         jobs: closed                    jobs: nothing untouched         jobs: not open                  jobs: not running               jobs: not closing               jobs: not submitted             jobs: takes claims only         jobs: takes no claims yet       jobs: a proposal is live        jobs: no proposal               jobs: window over               jobs: window still open         jobs: not a better key          jobs: best already              jobs: node excluded             jobs: operator is the submitter jobs: no time left              jobs: no checkpoints to resume  jobs: too late to submit        jobs: outcome out of range      jobs: used out of range         jobs: result zero               jobs: reclaimable               jobs: not reclaimable yet       jobs: notice still running      jobs: not expired               jobs: nothing to do             jobs: not the governor          jobs: policy out of range       jobs: not offered to you        jobs: chain id has changed      "

ESCROW: public(immutable(IEscrow))
NODES: public(immutable(INodeRegistry))
ASSET: public(immutable(IERC20))  # zero for the native coin
TREASURY: public(immutable(address))
DEAD_AFTER: public(immutable(uint256))  # seconds, NodeRegistry's
CHAIN_ID: immutable(uint256)  # part of every id; a chain that changes its own must not lock up the jobs it has

_words: HashMap[bytes32, uint256]  # unit key -> unit word; job id of an array -> its header
_seconds: HashMap[bytes32, uint256]  # unit key -> best proposal while OPEN, result digest from SUBMITTED
_accused: HashMap[bytes32, uint256]  # unit key -> the last node that declined it; counts with the ACCUSED flag
_policy: uint256  # of new jobs; zero while a pause holds it back
_held_policy: uint256  # comes back when the pause ends
_previous_policy: uint256
_previous_until: uint256  # seconds
paused_until: public(reentrant(uint256))  # seconds
governor: public(reentrant(address))
offered_governor: public(reentrant(address))


@deploy
def __init__(escrow: IEscrow, nodes: INodeRegistry, treasury: address, policy: uint256):
    """
    @param nodes The NodeRegistry of the pair, deployed before with this contract's predicted address.
    @param policy The first parameters of new jobs (packing.POLICY_VERSION_SHIFT ..).
    """
    assert treasury != empty(address), "jobs: treasury zero"
    ESCROW = escrow
    NODES = nodes
    ASSET = IERC20(staticcall escrow.ASSET())
    TREASURY = treasury
    DEAD_AFTER = staticcall nodes.DEAD_AFTER()
    CHAIN_ID = chain.id
    self._check_policy_range(policy)
    self._policy = policy
    self.governor = msg.sender
    log IJobRegistry.PolicyChanged(policy=policy, previous=0, until=0)
    log IJobRegistry.GovernorChanged(governor=msg.sender)


# ---- SUBMITTERS ----


@external
@payable
def post(terms: IJobRegistry.Terms, parents: DynArray[bytes32, MAX_PARENTS]) -> bytes32:
    """
    @notice Post a job and lock its funding: leases x (price + attempts x keeper fee), exactly.
    @param terms Frozen from here on. The same terms are never taken twice.
    @param parents The preimage words of parents_hash; empty in this version.
    @return The job's id.
    """
    if chain.id != CHAIN_ID:
        self._refuse(CHAIN_CHANGED)
    job_id: bytes32 = self._job_id(terms)
    if self._words[job_id] != 0:
        self._refuse(POSTED_BEFORE)
    policy: uint256 = terms.policy
    if policy != self._policy or policy == 0:
        self._check_other_policy(policy)
    if terms.submitter & packing.SUBMITTER_ACCOUNT_MASK != convert(msg.sender, uint256):
        self._refuse(NOT_SUBMITTER)
    count: uint256 = self._check_terms(terms)
    if len(parents) != 0:
        self._refuse(NO_PARENTS)

    amount: uint256 = count * leases._budget(leases._unit_price(terms.money, terms.limits), terms.money, terms.limits)
    if amount > packing.SHARE_AMOUNT_MASK:
        self._refuse(ESCROW_LARGE)
    if count == 1:
        self._words[job_id] = packing.STATE_OPEN | (block.timestamp << packing.UNIT_STARTED_SHIFT)
    else:
        self._words[job_id] = packing.STATE_HEADER | (block.timestamp << packing.HEADER_OPENED_SHIFT)
    log IJobRegistry.JobPosted(job_id=job_id, submitter=msg.sender, terms=terms, parents=parents)

    # The lock is the next call after the transfer, so that nobody can lock the payer's tokens in between.
    if ASSET.address == empty(address):
        if msg.value != amount:
            self._refuse(WRONG_VALUE)
        extcall ESCROW.lock(job_id, amount, value=msg.value, skip_contract_check=True)
    else:
        if msg.value != 0:
            self._refuse(WRONG_VALUE)
        paid: bool = extcall ASSET.transferFrom(msg.sender, ESCROW.address, amount, default_return_value=True)
        if not paid:
            self._refuse(TRANSFER_FAILED)
        extcall ESCROW.lock(job_id, amount, skip_contract_check=True)
    return job_id


@external
@reentrant
def accept(terms: IJobRegistry.Terms, index: uint256):
    """
    @notice Settle a submitted unit at once, without waiting for the window and without a settler's pay.
    """
    self._check_submitter(terms.submitter)
    if not self._settle(terms, index, empty(address)):
        self._refuse(NOT_SUBMITTED)


@external
@reentrant
def cancel(terms: IJobRegistry.Terms, index: uint256):
    """
    @notice End an OPEN unit with a refund, give a RUNNING one notice, or (ALL) close an array and refund its
            untouched units.
    """
    self._check_submitter(terms.submitter)
    job_id: bytes32 = self._job_id(terms)
    word: uint256 = self._words[job_id]
    if index == ALL and self._state(word) == packing.STATE_HEADER:
        refund: uint256 = self._close_array(job_id, word, terms)
        log IJobRegistry.Cancelled(job_id=job_id, index=ALL, word=self._words[job_id], refund=refund)
        extcall ESCROW.split(job_id, [self._share(refund, terms.submitter), 0, 0, 0], skip_contract_check=True)
        return

    key: bytes32 = empty(bytes32)
    header: uint256 = 0
    key, word, header = self._touched(job_id, index)
    at: uint256 = self._event_index(header, index)
    state: uint256 = self._state(word)
    if state == packing.STATE_OPEN:
        word = self._with_lapse(key, word, terms.policy)
        if (word >> packing.UNIT_MARK_SHIFT) & packing.UNIT_MARK_MASK != 0:
            self._refuse(PROPOSAL_LIVE)
        refund: uint256 = leases._holds(leases._unit_price(terms.money, terms.limits), terms.money, terms.limits, word)
        word = self._end(job_id, key, word, header, packing.STATE_CANCELLED)
        log IJobRegistry.Cancelled(job_id=job_id, index=at, word=word, refund=refund)
        extcall ESCROW.split(job_id, [self._share(refund, terms.submitter), 0, 0, 0], skip_contract_check=True)
        return

    if state != packing.STATE_RUNNING:
        self._refuse(NOT_OPEN)
    if block.timestamp >= self._reclaimable_from(word):
        self._refuse(RECLAIMABLE)
    notice: uint256 = (terms.policy >> packing.POLICY_CANCEL_NOTICE_SHIFT) & packing.POLICY_CANCEL_NOTICE_MASK
    mark: uint256 = min((word >> packing.UNIT_MARK_SHIFT) & packing.UNIT_MARK_MASK, block.timestamp + notice)
    word = (
        (word & ~(packing.UNIT_STATE_LANE | packing.UNIT_MARK_LANE))
        | packing.STATE_CLOSING
        | (mark << packing.UNIT_MARK_SHIFT)
        | packing.UNIT_NOTICED
    )
    self._words[key] = word
    log IJobRegistry.Closing(
        job_id=job_id, index=at, node=(word >> packing.UNIT_NODE_SHIFT) & packing.UNIT_NODE_MASK, word=word
    )


# ---- OPERATORS ----


@external
@reentrant
def ack(terms: IJobRegistry.Terms, index: uint256, session_key: bytes32, resume_from: uint256):
    """
    @notice Consent to a won match and start the lease; the proposer is tipped. Called by the node's operator.
    @param session_key X25519 key for confidential inputs and live logs, zero for none.
    @param resume_from The checkpoint to resume from; zero in this version.
    """
    job_id: bytes32 = self._job_id(terms)
    key: bytes32 = empty(bytes32)
    word: uint256 = 0
    header: uint256 = 0
    key, word, header = self._touched(job_id, index)
    if self._state(word) != packing.STATE_OPEN:
        self._refuse(NOT_OPEN)
    word = self._with_lapse(key, word, terms.policy)
    mark: uint256 = (word >> packing.UNIT_MARK_SHIFT) & packing.UNIT_MARK_MASK
    if mark == 0:
        self._refuse(NO_PROPOSAL)
    if block.timestamp < mark:
        self._refuse(WINDOW_OPEN)
    best: uint256 = self._seconds[key]
    node: uint256 = (best >> packing.BEST_NODE_SHIFT) & packing.BEST_NODE_MASK
    rate: uint256 = (word >> packing.UNIT_RATE_SHIFT) & packing.UNIT_RATE_MASK
    self._start(
        terms,
        job_id,
        key,
        self._event_index(header, index),
        word + (1 << packing.UNIT_TIPS_SHIFT),
        node,
        rate,
        session_key,
        resume_from,
    )
    tip: uint256 = ((terms.money >> packing.MONEY_KEEPER_FEE_SHIFT) & packing.MONEY_KEEPER_FEE_MASK) // 2
    extcall ESCROW.split(job_id, [self._share(tip, best), 0, 0, 0], skip_contract_check=True)


@external
@reentrant
def claim(terms: IJobRegistry.Terms, index: uint256, node: uint256, session_key: bytes32, resume_from: uint256):
    """
    @notice Start a lease without a match, where the terms or the clock allow it. Called by the node's operator.
    @param index The unit, or NEXT for the array's first untouched one.
    """
    job_id: bytes32 = self._job_id(terms)
    at: uint256 = 0
    key: bytes32 = empty(bytes32)
    word: uint256 = 0
    at, key, word = self._open(job_id, terms.limits, index)
    word = self._with_lapse(key, word, terms.policy)
    if (word >> packing.UNIT_MARK_SHIFT) & packing.UNIT_MARK_MASK != 0:
        self._refuse(PROPOSAL_LIVE)
    lapses: uint256 = (word >> packing.UNIT_LAPSES_SHIFT) & packing.UNIT_LAPSES_MASK
    window: uint256 = (terms.limits >> packing.LIMITS_MATCH_WINDOW_SHIFT) & packing.LIMITS_MATCH_WINDOW_MASK
    if window != 0 and lapses < MAX_LAPSES:
        after: uint256 = (terms.policy >> packing.POLICY_OPEN_CLAIM_AFTER_SHIFT) & packing.POLICY_OPEN_CLAIM_AFTER_MASK
        if block.timestamp < ((word >> packing.UNIT_STARTED_SHIFT) & packing.UNIT_STARTED_MASK) + after:
            self._refuse(NO_CLAIMS)
    if lapses == 0 and (word >> packing.UNIT_NODE_SHIFT) & packing.UNIT_NODE_MASK == node:
        self._refuse(EXCLUDED)
    self._start(terms, job_id, key, at, word, node, 0, session_key, resume_from)


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
    key: bytes32 = empty(bytes32)
    word: uint256 = 0
    header: uint256 = 0
    key, word, header = self._touched(job_id, index)
    self._check_leased(word)
    if outcome == 0 or outcome > packing.OUTCOME_TIMEOUT:
        self._refuse(OUTCOME_RANGE)
    if result == empty(bytes32):
        self._refuse(RESULT_ZERO)
    if word & packing.UNIT_FUEL != 0:
        if used == 0 or used > packing.UNIT_SECONDS_MASK:
            self._refuse(USED_RANGE)
    elif used != 0:
        self._refuse(USED_RANGE)

    word = (
        (word & ~(packing.UNIT_STATE_LANE | packing.UNIT_OUTCOME_LANE | packing.UNIT_MARK_LANE))
        | packing.STATE_SUBMITTED
        | (outcome << packing.UNIT_OUTCOME_SHIFT)
        | (block.timestamp << packing.UNIT_MARK_SHIFT)
        | (used << packing.UNIT_SECONDS_SHIFT)
    )
    self._words[key] = word
    if word & packing.UNIT_STORE != 0:
        self._seconds[key] = convert(result, uint256)
    node: uint256 = (word >> packing.UNIT_NODE_SHIFT) & packing.UNIT_NODE_MASK
    log IJobRegistry.Submitted(
        job_id=job_id, index=self._event_index(header, index), node=node, word=word, result=result, report=report
    )
    extcall NODES.submitted(node, msg.sender, skip_contract_check=True)


@external
@reentrant
def decline(terms: IJobRegistry.Terms, index: uint256, outcome: uint256, report: bytes32):
    """
    @notice Give a lease back because its input, key or image cannot be used. Pays nothing; called by the operator.
    @param outcome 6 bad input, 7 bad key, 8 image missing.
    """
    job_id: bytes32 = self._job_id(terms)
    key: bytes32 = empty(bytes32)
    word: uint256 = 0
    header: uint256 = 0
    key, word, header = self._touched(job_id, index)
    self._check_leased(word)
    if outcome < packing.OUTCOME_BAD_INPUT or outcome > packing.OUTCOME_IMAGE_MISSING:
        self._refuse(OUTCOME_RANGE)
    node: uint256 = (word >> packing.UNIT_NODE_SHIFT) & packing.UNIT_NODE_MASK
    word |= outcome << packing.UNIT_OUTCOME_SHIFT

    price: uint256 = leases._unit_price(terms.money, terms.limits)
    refund: uint256 = 0
    if self._state(word) == packing.STATE_CLOSING:
        refund = leases._holds(price, terms.money, terms.limits, word)
        word = self._end(job_id, key, word, header, packing.STATE_CANCELLED)
    elif self._may_reopen(terms.limits, terms.policy, word, header):
        self._accused[key] = node
        word = self._reopen(key, word | packing.UNIT_ACCUSED)
    else:
        refund = leases._holds(price, terms.money, terms.limits, word)
        word = self._end(job_id, key, word, header, packing.STATE_REFUNDED)
    log IJobRegistry.Declined(
        job_id=job_id, index=self._event_index(header, index), node=node, word=word, report=report
    )
    bond: uint256 = leases._bond(price, terms.money, terms.policy)
    extcall NODES.declined(node, msg.sender, bond, skip_contract_check=True)
    if refund != 0:
        extcall ESCROW.split(job_id, [self._share(refund, terms.submitter), 0, 0, 0], skip_contract_check=True)


# ---- ANYONE ----


@external
@reentrant
def propose(terms: IJobRegistry.Terms, index: uint256, node: uint256, payee: address):
    """
    @notice Name a node for an open unit. The strictly larger key wins when the window ends.
    @param index The unit, or NEXT for the array's first untouched one.
    @param payee Who is tipped when the node acks; zero means msg.sender.
    """
    job_id: bytes32 = self._job_id(terms)
    at: uint256 = 0
    key: bytes32 = empty(bytes32)
    word: uint256 = 0
    at, key, word = self._open(job_id, terms.limits, index)
    word = self._with_lapse(key, word, terms.policy)
    window: uint256 = (terms.limits >> packing.LIMITS_MATCH_WINDOW_SHIFT) & packing.LIMITS_MATCH_WINDOW_MASK
    if window == 0 or (word >> packing.UNIT_LAPSES_SHIFT) & packing.UNIT_LAPSES_MASK >= MAX_LAPSES:
        self._refuse(CLAIMS_ONLY)
    mark: uint256 = (word >> packing.UNIT_MARK_SHIFT) & packing.UNIT_MARK_MASK
    if mark != 0 and block.timestamp >= mark:
        self._refuse(WINDOW_OVER)
    if (word >> packing.UNIT_NODE_SHIFT) & packing.UNIT_NODE_MASK == node:
        self._refuse(EXCLUDED)
    if not self._has_time(terms.limits, terms.policy):
        self._refuse(NO_TIME)

    rate: uint256 = 0
    score: uint256 = 0
    operator: address = empty(address)
    rate, score, operator = staticcall NODES.appraise(node, leases._ask(terms), skip_contract_check=True)
    if convert(operator, uint256) == terms.submitter & packing.SUBMITTER_ACCOUNT_MASK:
        self._refuse(OWN_JOB)
    rank: uint256 = leases._key(
        job_id, at, (word >> packing.UNIT_ATTEMPTS_SHIFT) & packing.UNIT_ATTEMPTS_MASK, node, score
    )

    extensions: uint256 = 0
    if mark == 0:
        mark = block.timestamp + window
    else:
        best: uint256 = self._seconds[key]
        if (best >> packing.BEST_NODE_SHIFT) & packing.BEST_NODE_MASK == node:
            self._refuse(BEST_ALREADY)
        if rank <= (best >> packing.BEST_KEY_SHIFT) & packing.BEST_KEY_MASK:
            self._refuse(NOT_BETTER)
        extensions = best >> packing.BEST_EXTENSIONS_SHIFT
        if extensions < MAX_EXTENSIONS and mark - block.timestamp < window // 3:
            extensions += 1
            mark += window // 3
    receiver: address = payee
    if payee == empty(address):
        receiver = msg.sender
    proposal: uint256 = (
        convert(receiver, uint256)
        | (node << packing.BEST_NODE_SHIFT)
        | (rank << packing.BEST_KEY_SHIFT)
        | (extensions << packing.BEST_EXTENSIONS_SHIFT)
    )
    word = (
        (word & ~(packing.UNIT_RATE_LANE | packing.UNIT_MARK_LANE))
        | (rate << packing.UNIT_RATE_SHIFT)
        | (mark << packing.UNIT_MARK_SHIFT)
    )
    self._seconds[key] = proposal
    self._words[key] = word
    log IJobRegistry.Proposed(job_id=job_id, index=at, node=node, word=word, best=proposal)


@external
@reentrant
def settle(terms: IJobRegistry.Terms, index: uint256, payee: address):
    """
    @notice Pay for a submitted unit once its window is over.
    @param payee Who gets the settler's pay; zero means msg.sender.
    """
    if not self._settle(terms, index, self._payee(payee)):
        self._refuse(NOT_SUBMITTED)


@external
@reentrant
def settle_batch(items: DynArray[IJobRegistry.Item, MAX_BATCH], payee: address):
    """
    @notice Settle several units; stale items are skipped and pay nothing.
    """
    receiver: address = self._payee(payee)
    done: bool = False
    for item: IJobRegistry.Item in items:
        if self._settle(item.terms, item.index, receiver):
            done = True
    if not done:
        self._refuse(NOTHING_DONE)


@external
@reentrant
def close(terms: IJobRegistry.Terms, index: uint256, payee: address):
    """
    @notice End a cancelled lease whose notice has run out without a submit; the owner is paid for its time.
    """
    job_id: bytes32 = self._job_id(terms)
    key: bytes32 = empty(bytes32)
    word: uint256 = 0
    header: uint256 = 0
    key, word, header = self._touched(job_id, index)
    if self._state(word) != packing.STATE_CLOSING:
        self._refuse(NOT_CLOSING)
    mark: uint256 = (word >> packing.UNIT_MARK_SHIFT) & packing.UNIT_MARK_MASK
    if block.timestamp < mark:
        self._refuse(NOTICE_RUNNING)
    node: uint256 = (word >> packing.UNIT_NODE_SHIFT) & packing.UNIT_NODE_MASK
    billed: uint256 = mark - ((word >> packing.UNIT_STARTED_SHIFT) & packing.UNIT_STARTED_MASK)
    billed = min(billed, terms.limits & packing.LIMITS_MAX_SECONDS_MASK) + (
        (terms.policy >> packing.POLICY_START_FEE_SECONDS_SHIFT) & packing.POLICY_START_FEE_SECONDS_MASK
    )
    price: uint256 = leases._unit_price(terms.money, terms.limits)
    pay: uint256 = leases._pay(price, word, billed)
    fee: uint256 = leases._fee(pay, terms.policy)
    rest: uint256 = leases._holds(price, terms.money, terms.limits, word) - pay
    reward: uint256 = leases._ramp(
        ((terms.money >> packing.MONEY_KEEPER_FEE_SHIFT) & packing.MONEY_KEEPER_FEE_MASK) // 8, block.timestamp - mark
    )
    word = self._end(job_id, key, word, header, packing.STATE_CANCELLED)
    log IJobRegistry.Closed(
        job_id=job_id, index=self._event_index(header, index), node=node, word=word, pay=pay, fee=fee
    )
    bond: uint256 = leases._bond(price, terms.money, terms.policy)
    owner: address = extcall NODES.closed(node, bond, skip_contract_check=True)
    self._pay_out(job_id, owner, pay, fee, self._payee(payee), reward, terms.submitter, rest)


@external
@reentrant
def reclaim(terms: IJobRegistry.Terms, index: uint256, payee: address):
    """
    @notice Take a lease back from a node that let it end or stopped beating. The node loses a tenth of its bond.
    @param payee Who gets the reclaimer's pay; zero means msg.sender.
    """
    job_id: bytes32 = self._job_id(terms)
    key: bytes32 = empty(bytes32)
    word: uint256 = 0
    header: uint256 = 0
    key, word, header = self._touched(job_id, index)
    if self._state(word) != packing.STATE_RUNNING:
        self._refuse(NOT_RUNNING)
    due: uint256 = self._reclaimable_from(word)
    if block.timestamp < due:
        self._refuse(NOT_RECLAIMABLE)
    node: uint256 = (word >> packing.UNIT_NODE_SHIFT) & packing.UNIT_NODE_MASK
    price: uint256 = leases._unit_price(terms.money, terms.limits)
    bond: uint256 = leases._bond(price, terms.money, terms.policy)
    slash: uint256 = bond // SLASH_DIVISOR
    base: uint256 = ((terms.money >> packing.MONEY_KEEPER_FEE_SHIFT) & packing.MONEY_KEEPER_FEE_MASK) // 8
    reward: uint256 = min(slash // 4, leases._ramp(base, block.timestamp - due))

    refund: uint256 = 0
    if self._may_reopen(terms.limits, terms.policy, word, header):
        word = self._reopen(key, word)
    else:
        refund = leases._holds(price, terms.money, terms.limits, word)
        word = self._end(job_id, key, word, header, packing.STATE_REFUNDED)
    log IJobRegistry.Reclaimed(job_id=job_id, index=self._event_index(header, index), node=node, word=word)
    extcall NODES.reclaimed(node, bond, slash, reward, self._payee(payee), skip_contract_check=True)
    if refund != 0:
        extcall ESCROW.split(job_id, [self._share(refund, terms.submitter), 0, 0, 0], skip_contract_check=True)


@external
@reentrant
def expire(terms: IJobRegistry.Terms, index: uint256, payee: address):
    """
    @notice End an open unit, or (ALL) an array's untouched ones, that can no longer finish before the deadline.
    @param payee Who gets the expirer's pay; zero means msg.sender. A unit of an array pays none.
    """
    due: uint256 = (
        ((terms.limits >> packing.LIMITS_DEADLINE_SHIFT) & packing.LIMITS_DEADLINE_MASK)
        + 1
        - leases._lease_time(terms.limits, terms.policy)
    )
    if block.timestamp < due:
        self._refuse(NOT_EXPIRED)
    job_id: bytes32 = self._job_id(terms)
    word: uint256 = self._words[job_id]
    keeper_fee: uint256 = (terms.money >> packing.MONEY_KEEPER_FEE_SHIFT) & packing.MONEY_KEEPER_FEE_MASK
    reward: uint256 = min(keeper_fee, leases._ramp(keeper_fee // 4, block.timestamp - due))
    refund: uint256 = 0
    at: uint256 = ALL
    if index == ALL and self._state(word) == packing.STATE_HEADER:
        refund = self._close_array(job_id, word, terms)
        word = self._words[job_id]
    else:
        key: bytes32 = empty(bytes32)
        header: uint256 = 0
        key, word, header = self._touched(job_id, index)
        if self._state(word) != packing.STATE_OPEN:
            self._refuse(NOT_OPEN)
        at = self._event_index(header, index)
        refund = leases._holds(leases._unit_price(terms.money, terms.limits), terms.money, terms.limits, word)
        # An array pays once, for its untouched units. Else touching each just before it expires would make each pay.
        if header != 0:
            reward = 0
        word = self._end(job_id, key, word, header, packing.STATE_EXPIRED)
    refund -= reward
    log IJobRegistry.Expired(job_id=job_id, index=at, word=word, refund=refund)
    extcall ESCROW.split(
        job_id,
        [self._share(refund, terms.submitter), self._share(reward, convert(self._payee(payee), uint256)), 0, 0],
        skip_contract_check=True,
    )


# ---- GOVERNANCE ----


@external
@reentrant
def set_policy(policy: uint256):
    """
    @notice Set the parameters of new jobs. The replaced ones are taken for 24 hours more.
    """
    self._check_governor()
    self._check_policy_range(policy)
    previous: uint256 = self._policy
    if previous == 0:
        previous = self._held_policy
        self._held_policy = policy
    else:
        self._policy = policy
    self._previous_policy = previous
    self._previous_until = block.timestamp + POLICY_GRACE
    log IJobRegistry.PolicyChanged(policy=policy, previous=previous, until=self._previous_until)


@external
@reentrant
def drop_previous_policy():
    """
    @notice Take posts under the current parameters only, from now on.
    """
    self._check_governor()
    self._previous_until = 0
    log IJobRegistry.PolicyChanged(policy=self._policy, previous=self._previous_policy, until=0)


@external
@reentrant
def pause():
    """
    @notice Stop new posts for 7 days. Nothing else stops, and the pause ends by itself.
    """
    self._check_governor()
    if self._policy != 0:
        self._held_policy = self._policy
        self._policy = 0
    self.paused_until = block.timestamp + PAUSE_TIME
    log IJobRegistry.Paused(until=self.paused_until)


@external
@reentrant
def offer_governor(governor: address):
    """
    @notice Offer the governor's rights to a new holder, who must accept. Zero takes it back.
    """
    self._check_governor()
    self.offered_governor = governor
    log IJobRegistry.GovernorOffered(governor=governor)


@external
@reentrant
def accept_governor():
    """
    @notice Become the governor.
    """
    if msg.sender != self.offered_governor:
        self._refuse(NOT_OFFERED)
    self.governor = msg.sender
    self.offered_governor = empty(address)
    log IJobRegistry.GovernorChanged(governor=msg.sender)


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
    @return (job word, unit word, auxiliary slot, accused node) as stored; the job word of an array is its header.
    """
    job: uint256 = self._words[job_id]
    key: bytes32 = job_id
    if self._state(job) == packing.STATE_HEADER:
        key = keccak256(abi_encode(job_id, index))
    return job, self._words[key], self._seconds[key], self._accused[key]


@view
@external
@reentrant
def policies() -> (uint256, uint256, uint256, uint256, uint256):
    """
    @return (policy of new jobs or 0 while paused, held policy, previous policy, its last second + 1, paused until)
    """
    return self._policy, self._held_policy, self._previous_policy, self._previous_until, self.paused_until


# ---- INTERNAL: units ----


@view
@internal
def _job_id(terms: IJobRegistry.Terms) -> bytes32:
    return keccak256(abi_encode(CHAIN_ID, self, terms))


@pure
@internal
def _state(word: uint256) -> uint256:
    return word & packing.UNIT_STATE_MASK


@view
@internal
def _touched(job_id: bytes32, index: uint256) -> (bytes32, uint256, uint256):
    """
    @return (key, word, header) of a unit; the header is 0 for a one-lease job, the word 0 for an untouched unit.
    """
    word: uint256 = self._words[job_id]
    if self._state(word) != packing.STATE_HEADER:
        if index != 0 and index != NEXT:
            self._refuse(INDEX_RANGE)
        # The key of an array's unit is no job: what it moves, and what its events name, is reached through its array.
        if word & packing.UNIT_ARRAY != 0:
            self._refuse(NOT_RUNNING)
        return job_id, word, 0
    key: bytes32 = keccak256(abi_encode(job_id, index))
    return key, self._words[key], word


@internal
def _open(job_id: bytes32, limits: uint256, index: uint256) -> (uint256, bytes32, uint256):
    """
    @notice Find an OPEN unit that may be proposed for or claimed; the array's next untouched one is opened.
    @return (index, key, word); the caller stores the word.
    """
    word: uint256 = self._words[job_id]
    if self._state(word) != packing.STATE_HEADER:
        if index != 0 and index != NEXT:
            self._refuse(INDEX_RANGE)
        if self._state(word) != packing.STATE_OPEN:
            self._refuse(NOT_OPEN)
        return 0, job_id, word

    if word & packing.HEADER_CLOSED != 0:
        self._refuse(JOB_CLOSED)
    touched: uint256 = (word >> packing.HEADER_TOUCHED_SHIFT) & packing.HEADER_TOUCHED_MASK
    at: uint256 = index
    if index == NEXT:
        at = touched
    if at >= (limits >> packing.LIMITS_UNITS_SHIFT) & packing.LIMITS_UNITS_MASK:
        self._refuse(INDEX_RANGE)
    if at > touched:
        self._refuse(INDEX_LATER)
    key: bytes32 = keccak256(abi_encode(job_id, at))
    if at == touched:
        self._words[job_id] = word + (1 << packing.HEADER_TOUCHED_SHIFT)
        opened: uint256 = (word >> packing.HEADER_OPENED_SHIFT) & packing.HEADER_OPENED_MASK
        return at, key, packing.STATE_OPEN | (opened << packing.UNIT_STARTED_SHIFT) | packing.UNIT_ARRAY
    word = self._words[key]
    if self._state(word) != packing.STATE_OPEN:
        self._refuse(NOT_OPEN)
    return at, key, word


@pure
@internal
def _event_index(header: uint256, index: uint256) -> uint256:
    """
    @return The index that events name: 0 for a one-lease job, however it was addressed.
    """
    if header == 0:
        return 0
    return index


@view
@internal
def _with_lapse(key: bytes32, word: uint256, policy: uint256) -> uint256:
    """
    @notice Read an OPEN unit: a proposal that nobody acked in time is dropped, and its node becomes the excluded one.
    """
    if not leases._has_lapsed(word, policy, block.timestamp):
        return word
    return leases._drop(word, self._seconds[key])


@internal
def _start(
    terms: IJobRegistry.Terms,
    job_id: bytes32,
    key: bytes32,
    index: uint256,
    word: uint256,
    node: uint256,
    rate: uint256,
    session_key: bytes32,
    resume_from: uint256,
):
    """
    @notice Start a lease of an OPEN unit for the node that msg.sender operates.
    @param rate The rate locked by a proposal, zero to lock the ask in force.
    """
    if resume_from != 0:
        self._refuse(NO_RESUME)
    if convert(msg.sender, uint256) == terms.submitter & packing.SUBMITTER_ACCOUNT_MASK:
        self._refuse(OWN_JOB)
    if not self._has_time(terms.limits, terms.policy):
        self._refuse(NO_TIME)
    locked: uint256 = extcall NODES.engage(node, msg.sender, leases._ask(terms), rate, skip_contract_check=True)
    started: uint256 = (
        packing.STATE_RUNNING
        | (node << packing.UNIT_NODE_SHIFT)
        | (locked << packing.UNIT_RATE_SHIFT)
        | (block.timestamp << packing.UNIT_STARTED_SHIFT)
        | ((block.timestamp + leases._lease_time(terms.limits, terms.policy)) << packing.UNIT_MARK_SHIFT)
        | ((word & (packing.UNIT_ATTEMPTS_LANE | packing.UNIT_TIPS_LANE)) + (1 << packing.UNIT_ATTEMPTS_SHIFT))
        | (word & (packing.UNIT_ACCUSED | packing.UNIT_ARRAY))
    )
    if (terms.limits >> packing.LIMITS_BILLING_SHIFT) & packing.LIMITS_BILLING_MASK == packing.BILLING_FUEL:
        started |= packing.UNIT_FUEL
    self._words[key] = started
    log IJobRegistry.Started(job_id=job_id, index=index, node=node, word=started, session_key=session_key)


@view
@internal
def _may_reopen(limits: uint256, policy: uint256, word: uint256, header: uint256) -> bool:
    """
    @return Whether a lease that ended without a result leaves an attempt, and time for it, in a job still open.
    """
    if (word >> packing.UNIT_ATTEMPTS_SHIFT) & packing.UNIT_ATTEMPTS_MASK >= (
        limits >> packing.LIMITS_MAX_ATTEMPTS_SHIFT
    ) & packing.LIMITS_MAX_ATTEMPTS_MASK:
        return False
    return header & packing.HEADER_CLOSED == 0 and self._has_time(limits, policy)


@internal
def _reopen(key: bytes32, word: uint256) -> uint256:
    """
    @return The new word: OPEN from now, without the node that leaves.
    """
    kept: uint256 = word & (
        packing.UNIT_NODE_LANE
        | packing.UNIT_ATTEMPTS_LANE
        | packing.UNIT_TIPS_LANE
        | packing.UNIT_ACCUSED
        | packing.UNIT_ARRAY
    )
    opened: uint256 = kept | packing.STATE_OPEN | (block.timestamp << packing.UNIT_STARTED_SHIFT)
    self._words[key] = opened
    return opened


@internal
def _end(job_id: bytes32, key: bytes32, word: uint256, header: uint256, state: uint256) -> uint256:
    """
    @notice Write a unit's last word, and count its end in the array's header.
    """
    ended: uint256 = (word & ~packing.UNIT_STATE_LANE) | state
    self._words[key] = ended
    if header != 0:
        one: uint256 = 1 << packing.HEADER_FAILED_SHIFT
        if (
            state == packing.STATE_SETTLED
            and (word >> packing.UNIT_OUTCOME_SHIFT) & packing.UNIT_OUTCOME_MASK == packing.OUTCOME_OK
        ):
            one = 1 << packing.HEADER_DONE_SHIFT
        self._words[job_id] = header + one
    return ended


@internal
def _close_array(job_id: bytes32, header: uint256, terms: IJobRegistry.Terms) -> uint256:
    """
    @return What the untouched units hold.
    """
    if header & packing.HEADER_CLOSED != 0:
        self._refuse(JOB_CLOSED)
    untouched: uint256 = ((terms.limits >> packing.LIMITS_UNITS_SHIFT) & packing.LIMITS_UNITS_MASK) - (
        (header >> packing.HEADER_TOUCHED_SHIFT) & packing.HEADER_TOUCHED_MASK
    )
    if untouched == 0:
        self._refuse(NOTHING_LEFT)
    self._words[job_id] = header | packing.HEADER_CLOSED
    return untouched * leases._budget(leases._unit_price(terms.money, terms.limits), terms.money, terms.limits)


@internal
def _settle(terms: IJobRegistry.Terms, index: uint256, settler: address) -> bool:
    """
    @param settler Who gets the settler's pay; zero for nobody, when the submitter accepts.
    @return False where the unit is not SUBMITTED. This version has no challenge window: a submit can be settled at
            once.
    """
    job_id: bytes32 = self._job_id(terms)
    key: bytes32 = empty(bytes32)
    word: uint256 = 0
    header: uint256 = 0
    key, word, header = self._touched(job_id, index)
    if self._state(word) != packing.STATE_SUBMITTED:
        return False
    node: uint256 = (word >> packing.UNIT_NODE_SHIFT) & packing.UNIT_NODE_MASK
    mark: uint256 = (word >> packing.UNIT_MARK_SHIFT) & packing.UNIT_MARK_MASK
    ok: bool = (word >> packing.UNIT_OUTCOME_SHIFT) & packing.UNIT_OUTCOME_MASK == packing.OUTCOME_OK

    # A notice changes none of it: a submitter who sees a result on its way would else cancel and have it for less.
    billed: uint256 = terms.limits & packing.LIMITS_MAX_SECONDS_MASK
    billing: uint256 = (terms.limits >> packing.LIMITS_BILLING_SHIFT) & packing.LIMITS_BILLING_MASK
    if billing == packing.BILLING_FUEL:
        billed = min(billed, (word >> packing.UNIT_SECONDS_SHIFT) & packing.UNIT_SECONDS_MASK)
    elif billing == packing.BILLING_METERED:
        billed = min(billed, mark - ((word >> packing.UNIT_STARTED_SHIFT) & packing.UNIT_STARTED_MASK))
    price: uint256 = leases._unit_price(terms.money, terms.limits)
    pay: uint256 = leases._pay(price, word, billed)
    fee: uint256 = leases._fee(pay, terms.policy)
    rest: uint256 = leases._holds(price, terms.money, terms.limits, word) - pay
    reward: uint256 = 0
    if settler != empty(address):
        reward = leases._ramp(
            ((terms.money >> packing.MONEY_KEEPER_FEE_SHIFT) & packing.MONEY_KEEPER_FEE_MASK) // 8,
            block.timestamp - mark,
        )

    accused: uint256 = 0
    if ok and word & packing.UNIT_ACCUSED != 0:
        accused = self._accused[key]
        if accused == node:
            accused = 0
    bond: uint256 = leases._bond(price, terms.money, terms.policy)
    word = self._end(job_id, key, word, header, packing.STATE_SETTLED)
    log IJobRegistry.Settled(
        job_id=job_id, index=self._event_index(header, index), node=node, word=word, pay=pay, fee=fee
    )
    owner: address = extcall NODES.settled(node, bond, ok, fee, accused, skip_contract_check=True)
    self._pay_out(job_id, owner, pay, fee, settler, reward, terms.submitter, rest)
    return True


@internal
def _pay_out(
    job_id: bytes32,
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
    extcall ESCROW.split(
        job_id,
        [
            self._share(pay - fee, convert(owner, uint256)),
            self._share(fee, convert(TREASURY, uint256)),
            self._share(reward, convert(keeper, uint256)),
            self._share(rest - reward, submitter),
        ],
        skip_contract_check=True,
    )


# ---- INTERNAL: money and time ----


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
def _has_time(limits: uint256, policy: uint256) -> bool:
    """
    @return Whether an attempt that starts now can end before the deadline.
    """
    return (
        block.timestamp + leases._lease_time(limits, policy)
        <= (limits >> packing.LIMITS_DEADLINE_SHIFT) & packing.LIMITS_DEADLINE_MASK
    )


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
def _payee(payee: address) -> address:
    if payee == empty(address):
        return msg.sender
    return payee


# ---- INTERNAL: checks ----


@view
@internal
def _check_submitter(submitter: uint256):
    if submitter & packing.SUBMITTER_ACCOUNT_MASK != convert(msg.sender, uint256):
        self._refuse(NOT_SUBMITTER)


@view
@internal
def _check_leased(word: uint256):
    state: uint256 = self._state(word)
    if state != packing.STATE_RUNNING and state != packing.STATE_CLOSING:
        self._refuse(NOT_RUNNING)
    if block.timestamp >= (word >> packing.UNIT_MARK_SHIFT) & packing.UNIT_MARK_MASK:
        self._refuse(LATE)


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
        or terms.verifier >> packing.VERIFIER_BITS != 0
        or terms.court >> packing.COURT_BITS != 0
    ):
        self._refuse(SPARE_BITS)
    if limits & BUILT_LANES != BUILT:
        self._refuse_unbuilt(limits)
    if terms.verifier != 0:
        self._refuse(NO_VERIFIERS)
    if terms.court != 0:
        self._refuse(NO_COURT)
    if terms.parents_hash != empty(bytes32):
        self._refuse(NO_PARENTS)
    if terms.spec == empty(bytes32):
        self._refuse(SPEC_ZERO)
    if (terms.needs >> packing.NEEDS_RUNTIMES_SHIFT) & packing.NEEDS_RUNTIMES_MASK == 0:
        self._refuse(RUNTIME_ZERO)
    if terms.money & packing.MONEY_CEILING_MASK == 0:
        self._refuse(CEILING_ZERO)
    seconds: uint256 = limits & packing.LIMITS_MAX_SECONDS_MASK
    if seconds == 0 or seconds > MAX_SECONDS:
        self._refuse(SECONDS_RANGE)
    if not self._has_time(limits, terms.policy):
        self._refuse(DEADLINE_NEAR)
    units: uint256 = (limits >> packing.LIMITS_UNITS_SHIFT) & packing.LIMITS_UNITS_MASK
    if units == 0 or units > MAX_UNITS:
        self._refuse(UNITS_RANGE)
    window: uint256 = (limits >> packing.LIMITS_MATCH_WINDOW_SHIFT) & packing.LIMITS_MATCH_WINDOW_MASK
    if window != 0 and (
        window < (terms.policy >> packing.POLICY_MIN_MATCH_WINDOW_SHIFT) & packing.POLICY_MIN_MATCH_WINDOW_MASK
        or window > MAX_WINDOW
    ):
        self._refuse(WINDOW_RANGE)
    attempts: uint256 = (limits >> packing.LIMITS_MAX_ATTEMPTS_SHIFT) & packing.LIMITS_MAX_ATTEMPTS_MASK
    if attempts == 0 or attempts > MAX_ATTEMPTS:
        self._refuse(ATTEMPTS_RANGE)
    if (limits >> packing.LIMITS_BILLING_SHIFT) & packing.LIMITS_BILLING_MASK > packing.BILLING_METERED:
        self._refuse(BILLING_RANGE)

    price: uint256 = leases._unit_price(terms.money, limits)
    if price < leases._amount((terms.policy >> packing.POLICY_MIN_PRICE_SHIFT) & packing.POLICY_MIN_PRICE_MASK):
        self._refuse(PRICE_LOW)
    least: uint256 = leases._amount(
        (terms.policy >> packing.POLICY_MIN_KEEPER_FEE_SHIFT) & packing.POLICY_MIN_KEEPER_FEE_MASK
    )
    keeper_fee: uint256 = (terms.money >> packing.MONEY_KEEPER_FEE_SHIFT) & packing.MONEY_KEEPER_FEE_MASK
    if keeper_fee < least or keeper_fee > max(price, least):
        self._refuse(KEEPER_FEE_RANGE)
    if leases._bond(price, terms.money, terms.policy) > packing.HOT_BOND_MASK:
        self._refuse(BOND_LARGE)
    return units


@pure
@internal
def _refuse_unbuilt(limits: uint256):
    """
    @notice Name the field that is out of range, or that this version does not build yet.
    """
    chunk: uint256 = (limits >> packing.LIMITS_CHUNK_SHIFT) & packing.LIMITS_CHUNK_MASK
    if (
        chunk == 0
        or chunk > MAX_CHUNK
        or ((limits >> packing.LIMITS_UNITS_SHIFT) & packing.LIMITS_UNITS_MASK) % chunk != 0
    ):
        self._refuse(CHUNK_RANGE)
    if chunk != 1:
        self._refuse(NO_CHUNKS)
    replicas: uint256 = (limits >> packing.LIMITS_REPLICAS_SHIFT) & packing.LIMITS_REPLICAS_MASK
    if replicas % 2 == 0 or replicas > 7:
        self._refuse(REPLICAS_RANGE)
    quorum: uint256 = (limits >> packing.LIMITS_QUORUM_SHIFT) & packing.LIMITS_QUORUM_MASK
    if quorum <= replicas // 2 or quorum > replicas:
        self._refuse(QUORUM_RANGE)
    if replicas != 1:
        self._refuse(NO_REPLICAS)
    if (limits >> packing.LIMITS_CHALLENGE_WINDOW_SHIFT) & packing.LIMITS_CHALLENGE_WINDOW_MASK != 0:
        self._refuse(NO_CHALLENGES)
    if (limits >> packing.LIMITS_CHECKPOINT_EVERY_SHIFT) & packing.LIMITS_CHECKPOINT_EVERY_MASK != 0:
        self._refuse(NO_CHECKPOINTS)
    if limits & packing.LIMITS_CONFIDENTIAL != 0:
        self._refuse(NO_CONFIDENTIAL)
    if limits & packing.LIMITS_PREEMPTIBLE != 0:
        self._refuse(NO_PREEMPTIBLE)
    self._refuse(FLAG_UNKNOWN)


@internal
def _check_other_policy(policy: uint256):
    """
    @notice Take a policy that is not the current one: the previous for 24 h, or the one that a pause, now over, held.
    """
    if block.timestamp < self.paused_until:
        self._refuse(PAUSED)
    if self._policy == 0:
        self._policy = self._held_policy
        if policy == self._policy:
            return
    if policy != self._previous_policy or block.timestamp >= self._previous_until:
        self._refuse(POLICY_OLD)


@pure
@internal
def _check_policy_range(policy: uint256):
    """
    @notice The bounds of SPEC section "Parameters", hard-coded.
    """
    window: uint256 = (policy >> packing.POLICY_MIN_MATCH_WINDOW_SHIFT) & packing.POLICY_MIN_MATCH_WINDOW_MASK
    ack_time: uint256 = (policy >> packing.POLICY_ACK_TIME_SHIFT) & packing.POLICY_ACK_TIME_MASK
    after: uint256 = (policy >> packing.POLICY_OPEN_CLAIM_AFTER_SHIFT) & packing.POLICY_OPEN_CLAIM_AFTER_MASK
    grace: uint256 = (policy >> packing.POLICY_GRACE_FLOOR_SHIFT) & packing.POLICY_GRACE_FLOOR_MASK
    fee: uint256 = (policy >> packing.POLICY_FEE_BPS_SHIFT) & packing.POLICY_FEE_BPS_MASK
    if (
        policy & packing.POLICY_VERSION_MASK != PROTOCOL_VERSION
        or fee > FEE_CAP
        or (policy >> packing.POLICY_AUDIT_SHARE_BPS_SHIFT) & packing.POLICY_AUDIT_SHARE_BPS_MASK > fee
        or (policy >> packing.POLICY_BOND_NONE_BPS_SHIFT) & packing.POLICY_BOND_NONE_BPS_MASK == 0
        or window == 0
        or window > MAX_WINDOW
        or ack_time < 2
        or ack_time > 600
        or after < 2
        or after > 3600
        or grace == 0
        or grace > 3600
        or (policy >> packing.POLICY_MIN_CHALLENGE_WINDOW_SHIFT) & packing.POLICY_MIN_CHALLENGE_WINDOW_MASK
        > MAX_CHALLENGE_WINDOW
    ):
        self._refuse(POLICY_RANGE)


@view
@internal
def _check_governor():
    if msg.sender != self.governor:
        self._refuse(NOT_GOVERNOR)


@pure
@internal
def _refuse(code: uint256):
    """
    @notice Revert with a row of REASONS, its padding cut off.
    """
    raise reasons._trim(slice(REASONS, code * reasons.ROW, 32))
