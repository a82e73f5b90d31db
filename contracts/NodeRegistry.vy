# pragma version 0.4.3
# pragma evm-version cancun
# pragma nonreentrancy on
"""
@title NodeRegistry
@author Hearth
@license Apache-2.0
@notice Who offers machines, at what price, with what stake behind them, and how they have done so far.

        An owner (a cold wallet) registers a node for an operator (the hot key on the machine). The owner's stake
        lies in Escrow under this contract and the node's id. The operator beats; a node that stops beating is
        ineligible at once, without a transaction. JobRegistry, and nobody else, reserves a node's stake as the
        bond of a lease, frees it, and takes a tenth of it when a lease fails. Stake leaves only by exit, after the
        unbonding time and with no bond outstanding, and goes to the owner's credit in Escrow.
@custom:security Unaudited. Holds no money itself; its locks in Escrow are each node's own. Calls only go
        JobRegistry -> NodeRegistry -> Escrow, state first. `register` and `add_stake` alone reach a token, and are
        locked; all else calls nobody or Escrow's `split`, which calls nobody, so it is @reentrant. The governor can set the minimum stake of new registrations and pause them for 7 days, nothing else.
@custom:kill Cannot be switched off. A pause stops registrations only and ends by itself; owners leave by exit.
"""

from ethereum.ercs import IERC20

from interfaces import IEscrow
from interfaces import INodeRegistry

implements: INodeRegistry

import packing
import reasons
import reputation
import scoring

MAX_BATCH: constant(uint256) = 128
MAX_STAKE: constant(uint256) = packing.OWNER_STAKE_MASK
MAX_NODES: constant(uint256) = packing.TOTALS_NEXT_ID_MASK
BPS: constant(uint256) = 10000
HOUR: constant(uint256) = 3600
PAUSE_TIME: constant(uint256) = 7 * 86400
DEAD_ADDRESS: constant(address) = 0x000000000000000000000000000000000000dEaD

# A lane that follows another in the node state adds without touching its neighbour.
ONE_BUSY: constant(uint256) = 1 << packing.HOT_BUSY_SHIFT
BEAT_LANES: constant(uint256) = packing.HOT_BEAT_LANE + packing.HOT_LAPSED

# The gates of SPEC section "Matching", in the order in which they are checked. 0 = all hold.
NOT_LIVE: constant(uint256) = 1
NOT_ACTIVE: constant(uint256) = 2
LEAVING: constant(uint256) = 3
IN_QUARANTINE: constant(uint256) = 4
NO_SLOT: constant(uint256) = 5
STAKE_SHORT: constant(uint256) = 6
RUNTIME_MISSING: constant(uint256) = 7
TOO_FEW_GPUS: constant(uint256) = 8
VRAM_SHORT: constant(uint256) = 9
CORES_SHORT: constant(uint256) = 10
RAM_SHORT: constant(uint256) = 11
DISK_SHORT: constant(uint256) = 12
TIER_LOW: constant(uint256) = 13
ZONE_BARRED: constant(uint256) = 14
PRICE_HIGH: constant(uint256) = 15
ON_PROBATION: constant(uint256) = 16
# One 32-byte row a gate, row 0 first.
GATE_REASONS: constant(
    String[544]
) = "nodes: fits                     nodes: not live                 nodes: stake below minimum      nodes: exiting                  nodes: quarantined              nodes: no free slot             nodes: free stake short         nodes: runtime missing          nodes: too few GPUs             nodes: VRAM short               nodes: cores short              nodes: RAM short                nodes: disk short               nodes: GPU tier too low         nodes: zone not allowed         nodes: ask above ceiling        nodes: on probation             "

ESCROW: public(immutable(IEscrow))
ASSET: public(immutable(IERC20))  # zero for the native coin
JOBS: public(immutable(address))
DEAD_AFTER: public(immutable(uint256))  # seconds since the last beat
ASK_NOTICE: public(immutable(uint256))  # seconds
UNBONDING: public(immutable(uint256))  # seconds
MINIMUM_STAKE: public(immutable(uint256))  # base units, for ACTIVE
FEE_REFERENCE: public(immutable(uint256))  # base units, the fee that counts as one full success
LIVENESS_FEE: public(immutable(uint256))  # base units, per lapse, from the node's free stake
RATION_BPS: public(immutable(uint256))  # share of all stake that one clock hour may burn

_totals: uint256  # next id, hour, burnt in that hour, total stake: packing.TOTALS_NEXT_ID_SHIFT ..
_owners: HashMap[uint256, uint256]  # node -> packing.OWNER_ACCOUNT_SHIFT ..
_operators: HashMap[uint256, uint256]  # node -> packing.OPERATOR_ACCOUNT_SHIFT ..
_offers: HashMap[uint256, uint256]  # node -> packing.OFFER_TIER_SHIFT ..
_next_asks: HashMap[uint256, uint256]  # node -> packing.NEXT_ASK_ASK_SHIFT ..
_hot: HashMap[address, HashMap[uint256, uint256]]  # operator -> node -> packing.HOT_BEAT_SHIFT ..
_offered_owners: HashMap[uint256, address]  # node -> who may accept it
minimum_stake: public(reentrant(uint256))  # base units, asked of new registrations
paused_until: public(reentrant(uint256))  # seconds
governor: public(reentrant(address))
offered_governor: public(reentrant(address))


@deploy
def __init__(
    escrow: IEscrow,
    jobs: address,
    dead_after: uint256,
    ask_notice: uint256,
    unbonding: uint256,
    minimum_stake: uint256,
    fee_reference: uint256,
    liveness_fee: uint256,
    ration_bps: uint256,
):
    """
    @param jobs The JobRegistry of the pair; its address is predicted, and the deploy script checks it.
    @param minimum_stake What ACTIVE takes for ever, and the first minimum of new registrations.
    """
    assert jobs != empty(address), "nodes: jobs zero"
    assert dead_after >= 3 and dead_after <= 86400, "nodes: dead_after out of range"
    assert ask_notice <= 86400, "nodes: ask_notice out of range"
    assert unbonding >= 1 and unbonding <= 30 * 86400, "nodes: unbonding out of range"
    assert minimum_stake >= 1 and minimum_stake <= MAX_STAKE, "nodes: minimum out of range"
    assert fee_reference >= 1 and fee_reference <= MAX_STAKE, "nodes: reference out of range"
    assert liveness_fee <= minimum_stake, "nodes: fee above minimum"
    assert ration_bps <= BPS, "nodes: ration out of range"
    ESCROW = escrow
    ASSET = IERC20(staticcall escrow.ASSET())
    JOBS = jobs
    DEAD_AFTER = dead_after
    ASK_NOTICE = ask_notice
    UNBONDING = unbonding
    MINIMUM_STAKE = minimum_stake
    FEE_REFERENCE = fee_reference
    LIVENESS_FEE = liveness_fee
    RATION_BPS = ration_bps
    self._totals = 1
    self.minimum_stake = minimum_stake
    self.governor = msg.sender
    log INodeRegistry.MinimumStakeChanged(amount=minimum_stake)
    log INodeRegistry.GovernorChanged(governor=msg.sender)


# ---- OWNERS ----


@external
@payable
def register(operator: address, offer: uint256, manifest: bytes32, stake: uint256) -> uint256:
    """
    @notice Register a node that msg.sender owns and `operator` runs.
    @param offer Packed offer of one slot, its ask included (packing.OFFER_TIER_SHIFT ..).
    @param manifest sha2-256 of the manifest document.
    @param stake Base units, sent along or approved to this contract.
    @return The node's id.
    """
    assert block.timestamp >= self.paused_until, "nodes: paused"
    assert operator != empty(address), "nodes: operator zero"
    self._check_offer(offer)
    self._check_ask(offer >> packing.OFFER_ASK_SHIFT)
    assert stake >= self.minimum_stake, "nodes: stake below minimum"
    assert stake <= MAX_STAKE, "nodes: stake too large"

    totals: uint256 = self._totals
    node: uint256 = totals & packing.TOTALS_NEXT_ID_MASK
    assert node != MAX_NODES, "nodes: no ids left"
    self._totals = totals + 1 + (stake << packing.TOTALS_TOTAL_SHIFT)
    self._owners[node] = (stake << packing.OWNER_STAKE_SHIFT) | convert(msg.sender, uint256)
    self._operators[node] = convert(operator, uint256)
    self._offers[node] = offer
    log INodeRegistry.NodeRegistered(
        node=node, owner=msg.sender, operator=operator, offer=offer, stake=stake, manifest=manifest
    )
    self._take(node, stake)
    return node


@external
@payable
def add_stake(node: uint256, owner: address, amount: uint256):
    """
    @notice Add to a node's stake; anyone may, in any state but EXITED.
    @param owner Whose node it is; a reorganisation may give an id to somebody else's.
    @param amount Base units, sent along or approved to this contract.
    """
    record: uint256 = self._owners[node]
    assert record != 0, "nodes: unknown node"
    assert self._address(record) == owner, "nodes: node of another owner"
    assert amount != 0, "nodes: amount zero"
    assert (record >> packing.OWNER_STAKE_SHIFT) + amount <= MAX_STAKE, "nodes: stake too large"
    self._owners[node] = record + (amount << packing.OWNER_STAKE_SHIFT)
    self._totals += amount << packing.TOTALS_TOTAL_SHIFT
    log INodeRegistry.StakeAdded(node=node, payer=msg.sender, amount=amount)
    self._take(node, amount)


@external
@reentrant
def update_offer(node: uint256, offer: uint256, manifest: bytes32):
    """
    @notice Replace what one slot offers, the ask aside, while nothing runs on the node.
    @param offer Packed offer with its ask lane zero.
    """
    self._check_owner(node)
    self._check_offer(offer)
    assert offer >> packing.OFFER_ASK_SHIFT == 0, "nodes: ask has its own call"
    hot: uint256 = self._hot[self._operator(node)][node]
    assert (hot >> packing.HOT_BUSY_SHIFT) & packing.HOT_BUSY_MASK == 0, "nodes: busy"
    kept: uint256 = self._offers[node] & (packing.OFFER_ASK_LANE | packing.OFFER_PENDING)
    self._offers[node] = offer | kept
    log INodeRegistry.OfferChanged(node=node, offer=offer | kept, manifest=manifest)


@external
@reentrant
def set_ask(node: uint256, ask: uint256):
    """
    @notice Announce a new rate; it takes effect after the ask notice. One may wait at a time.
    @param ask Base units x 1e6 per second.
    """
    self._check_owner(node)
    self._check_ask(ask)
    offer: uint256 = self._offers[node]
    if offer & packing.OFFER_PENDING != 0:
        next: uint256 = self._next_asks[node]
        assert block.timestamp >= next >> packing.NEXT_ASK_AT_SHIFT, "nodes: an ask is pending"
        offer = (offer & ~packing.OFFER_ASK_LANE) | ((next & packing.NEXT_ASK_ASK_MASK) << packing.OFFER_ASK_SHIFT)
    at: uint256 = block.timestamp + ASK_NOTICE
    self._offers[node] = offer | packing.OFFER_PENDING
    self._next_asks[node] = (at << packing.NEXT_ASK_AT_SHIFT) | ask
    log INodeRegistry.AskChanged(node=node, ask=ask, at=at)


@external
@reentrant
def set_operator(node: uint256, operator: address):
    """
    @notice Hand the node to another hot key, at once and at any time; leases, bond and beat go with it.
    """
    self._check_owner(node)
    record: uint256 = self._operators[node]
    old: address = self._address(record)
    assert operator != empty(address), "nodes: operator zero"
    assert operator != old, "nodes: same operator"
    hot: uint256 = self._hot[old][node]
    self._operators[node] = (record & packing.OPERATOR_EXIT_AT_LANE) | convert(operator, uint256)
    self._hot[old][node] = 0
    self._hot[operator][node] = hot
    log INodeRegistry.OperatorChanged(node=node, operator=operator)


@external
@reentrant
def offer_owner(node: uint256, owner: address):
    """
    @notice Offer the node, with stake and earnings to come, to a new owner, who must accept. Zero takes it back.
    """
    self._check_owner(node)
    self._offered_owners[node] = owner
    log INodeRegistry.OwnerOffered(node=node, owner=owner)


@external
@reentrant
def accept_owner(node: uint256):
    """
    @notice Become the owner of a node that was offered to msg.sender.
    """
    assert self._offered_owners[node] == msg.sender, "nodes: not offered to you"
    record: uint256 = self._owners[node]
    assert record != 0, "nodes: unknown node"
    self._owners[node] = (record & packing.OWNER_STAKE_LANE) | convert(msg.sender, uint256)
    self._offered_owners[node] = empty(address)
    log INodeRegistry.OwnerChanged(node=node, owner=msg.sender)


@external
@reentrant
def exit_start(node: uint256):
    """
    @notice Begin to leave: matching stops now, running leases end normally, the unbonding time runs.
    """
    self._check_owner(node)
    record: uint256 = self._operators[node]
    assert record >> packing.OPERATOR_EXIT_AT_SHIFT == 0, "nodes: exiting"
    at: uint256 = block.timestamp + UNBONDING
    self._operators[node] = record | (at << packing.OPERATOR_EXIT_AT_SHIFT)
    operator: address = self._address(record)
    hot: uint256 = self._hot[operator][node]
    if hot != 0:
        self._hot[operator][node] = hot | packing.HOT_EXITING
    log INodeRegistry.ExitStarted(node=node, at=at)


@external
@reentrant
def exit_cancel(node: uint256):
    """
    @notice Stay after all.
    """
    self._check_owner(node)
    record: uint256 = self._operators[node]
    assert record >> packing.OPERATOR_EXIT_AT_SHIFT != 0, "nodes: not exiting"
    operator: address = self._address(record)
    self._operators[node] = record & packing.OPERATOR_ACCOUNT_MASK
    hot: uint256 = self._hot[operator][node]
    if hot != 0:
        self._hot[operator][node] = hot & ~packing.HOT_EXITING
    log INodeRegistry.ExitCancelled(node=node)


@external
@reentrant
def exit_finish(node: uint256):
    """
    @notice Complete an exit; anyone may. The stake becomes the owner's credit in Escrow; the id is never used again.
    """
    record: uint256 = self._operators[node]
    exit_at: uint256 = record >> packing.OPERATOR_EXIT_AT_SHIFT
    assert exit_at != 0, "nodes: not exiting"
    assert block.timestamp >= exit_at, "nodes: still unbonding"
    operator: address = self._address(record)
    assert (self._hot[operator][node] >> packing.HOT_BOND_SHIFT) & packing.HOT_BOND_MASK == 0, "nodes: bond outstanding"
    owned: uint256 = self._owners[node]
    stake: uint256 = owned >> packing.OWNER_STAKE_SHIFT
    self._hot[operator][node] = 0
    self._operators[node] = 0
    self._owners[node] = 0
    self._offers[node] = 0
    self._next_asks[node] = 0
    self._offered_owners[node] = empty(address)
    self._totals -= stake << packing.TOTALS_TOTAL_SHIFT
    log INodeRegistry.ExitFinished(node=node, stake=stake)
    if stake != 0:
        extcall ESCROW.split(
            convert(node, bytes32),
            [(stake << packing.SHARE_AMOUNT_SHIFT) | (owned & packing.OWNER_ACCOUNT_MASK), 0, 0, 0],
        )


# ---- OPERATORS ----


@external
@reentrant
def beat(node: uint256):
    """
    @notice Say that the node is alive. The first beat makes a registered node ACTIVE.
    """
    assert self._beat(node), "nodes: not the operator"


@external
@reentrant
def heartbeat(nodes: DynArray[uint256, MAX_BATCH]):
    """
    @notice Beat for several nodes of one operator; ids that are not msg.sender's are skipped.
    """
    done: bool = False
    for node: uint256 in nodes:
        if self._beat(node):
            done = True
    assert done, "nodes: nothing to do"


# ---- ANYONE ----


@external
@reentrant
def check_liveness(nodes: DynArray[uint256, MAX_BATCH], payee: address):
    """
    @notice Record nodes that stopped beating, once per lapse, for a small fee from each one's free stake.
    @param payee Who is credited; zero means msg.sender.
    """
    receiver: address = self._payee(payee)
    done: bool = False
    for node: uint256 in nodes:
        operator: address = self._operator(node)
        hot: uint256 = self._hot[operator][node]
        if hot == 0 or hot & (packing.HOT_LAPSED | packing.HOT_EXITING) != 0:
            continue
        if block.timestamp < (hot & packing.HOT_BEAT_MASK) + DEAD_AFTER:
            continue
        done = True
        self._hot[operator][node] = hot | packing.HOT_LAPSED
        record: uint256 = self._owners[node]
        fee: uint256 = min(
            LIVENESS_FEE,
            (record >> packing.OWNER_STAKE_SHIFT) - ((hot >> packing.HOT_BOND_SHIFT) & packing.HOT_BOND_MASK),
        )
        log INodeRegistry.NodeLapsed(node=node, payee=receiver, fee=fee)
        if fee != 0:
            self._owners[node] = record - (fee << packing.OWNER_STAKE_SHIFT)
            self._totals -= fee << packing.TOTALS_TOTAL_SHIFT
            extcall ESCROW.split(
                convert(node, bytes32),
                [(fee << packing.SHARE_AMOUNT_SHIFT) | convert(receiver, uint256), 0, 0, 0],
                skip_contract_check=True,
            )
    assert done, "nodes: nothing to do"


# ---- JOBREGISTRY ----


@external
@reentrant
def engage(node: uint256, operator: address, ask: INodeRegistry.Ask, rate: uint256) -> uint256:
    """
    @notice Start a lease: every gate holds, the bond is reserved, a slot is taken, the node has beaten.
    @param rate The rate locked by a proposal, zero to lock the ask in force.
    @return The locked rate.
    """
    self._check_jobs()
    hot: uint256 = self._hot[operator][node]
    assert hot != 0, "nodes: not the operator"
    offer: uint256 = self._offers[node]
    locked: uint256 = rate
    if rate == 0:
        locked = self._ask_in_force(node, offer)
    self._check_gate(self._gate(hot, offer, self._owners[node] >> packing.OWNER_STAKE_SHIFT, ask, locked))
    self._hot[operator][node] = (
        ((hot & ~BEAT_LANES) | block.timestamp) + ONE_BUSY + (ask.bond << packing.HOT_BOND_SHIFT)
    )
    return locked


@external
@reentrant
def submitted(node: uint256, operator: address):
    """
    @notice A lease was submitted: its slot is free, its bond stays, the node has beaten.
    """
    self._check_jobs()
    hot: uint256 = self._hot[operator][node]
    assert hot != 0, "nodes: not the operator"
    self._hot[operator][node] = ((hot & ~BEAT_LANES) | block.timestamp) - ONE_BUSY


@external
@reentrant
def declined(node: uint256, operator: address, bond: uint256):
    """
    @notice A lease was declined: slot and bond are free.
    """
    self._check_jobs()
    hot: uint256 = self._hot[operator][node]
    assert hot != 0, "nodes: not the operator"
    self._hot[operator][node] = hot - ONE_BUSY - (bond << packing.HOT_BOND_SHIFT)


@external
@reentrant
def settled(node: uint256, bond: uint256, ok: bool, fee: uint256, accused: uint256) -> address:
    """
    @notice A submitted lease was settled: its bond is free; a success counts by the fee it paid.
    @param accused A node that declined the unit before, observed as a failure; zero for none.
    @return The owner, who is paid.
    """
    self._check_jobs()
    operator: address = self._operator(node)
    hot: uint256 = self._hot[operator][node] - (bond << packing.HOT_BOND_SHIFT)
    if ok:
        hot = reputation._observe(
            hot, True, min(reputation.ONE, reputation.ONE * fee // FEE_REFERENCE), block.timestamp
        )
    self._hot[operator][node] = hot
    if accused != 0:
        self._observe_failure(accused, reputation.ONE)
    return self._address(self._owners[node])


@external
@reentrant
def closed(node: uint256, bond: uint256) -> address:
    """
    @notice A cancelled lease ran out its notice: slot and bond are free.
    @return The owner, who is paid.
    """
    self._check_jobs()
    operator: address = self._operator(node)
    self._hot[operator][node] -= ONE_BUSY + (bond << packing.HOT_BOND_SHIFT)
    return self._address(self._owners[node])


@external
@reentrant
def reclaimed(node: uint256, bond: uint256, slash: uint256, reward: uint256, payee: address):
    """
    @notice A lease failed: slot and the rest of the bond are free, the failure counts, the slash leaves the stake.
    @dev The burn is rationed per clock hour, so that an outage cannot slash a network: at or above the ration
         nothing is burnt and the failure counts half. slash <= bond <= stake.
    @param reward Part of `slash` that goes to `payee`; the rest is burnt.
    """
    self._check_jobs()
    operator: address = self._operator(node)
    totals: uint256 = self._totals
    stakes: uint256 = totals >> packing.TOTALS_TOTAL_SHIFT
    hour: uint256 = block.timestamp // HOUR
    burnt: uint256 = 0
    if (totals >> packing.TOTALS_HOUR_SHIFT) & packing.TOTALS_HOUR_MASK == hour:
        burnt = (totals >> packing.TOTALS_BURNT_SHIFT) & packing.TOTALS_BURNT_MASK

    burn: uint256 = slash - reward
    weight: uint256 = reputation.ONE
    if burnt >= max(stakes * RATION_BPS // BPS, 3 * MINIMUM_STAKE):
        burn = 0
        weight = reputation.ONE // 2
    taken: uint256 = reward + burn
    self._totals = (
        (totals & packing.TOTALS_NEXT_ID_MASK)
        | (hour << packing.TOTALS_HOUR_SHIFT)
        | ((burnt + burn) << packing.TOTALS_BURNT_SHIFT)
        | ((stakes - taken) << packing.TOTALS_TOTAL_SHIFT)
    )
    self._owners[node] -= taken << packing.OWNER_STAKE_SHIFT
    self._hot[operator][node] -= ONE_BUSY + (bond << packing.HOT_BOND_SHIFT)
    self._observe_failure(node, weight)
    log INodeRegistry.Slashed(node=node, payee=payee, reward=reward, burnt=burn)
    if taken != 0:
        extcall ESCROW.split(
            convert(node, bytes32),
            [
                self._share(reward, payee),
                self._share(burn, DEAD_ADDRESS),
                0,
                0,
            ],
            skip_contract_check=True,
        )


# ---- GOVERNANCE ----


@external
@reentrant
def set_minimum_stake(amount: uint256):
    """
    @notice Set the stake asked of new registrations, at least what ACTIVE takes.
    """
    self._check_governor()
    assert amount >= MINIMUM_STAKE and amount <= MAX_STAKE, "nodes: minimum out of range"
    self.minimum_stake = amount
    log INodeRegistry.MinimumStakeChanged(amount=amount)


@external
@reentrant
def pause():
    """
    @notice Stop new registrations for 7 days. Nothing else stops, and the pause ends by itself.
    """
    self._check_governor()
    self.paused_until = block.timestamp + PAUSE_TIME
    log INodeRegistry.Paused(until=self.paused_until)


@external
@reentrant
def offer_governor(governor: address):
    """
    @notice Offer the governor's rights to a new holder, who must accept. Zero takes it back.
    """
    self._check_governor()
    self.offered_governor = governor
    log INodeRegistry.GovernorOffered(governor=governor)


@external
@reentrant
def accept_governor():
    """
    @notice Become the governor.
    """
    assert msg.sender == self.offered_governor, "nodes: not offered to you"
    self.governor = msg.sender
    self.offered_governor = empty(address)
    log INodeRegistry.GovernorChanged(governor=msg.sender)


# ---- VIEWS ----


@view
@external
@reentrant
def last_seen(node: uint256) -> uint256:
    """
    @return The second of the node's last beat, zero if there was none.
    """
    return self._hot[self._operator(node)][node] & packing.HOT_BEAT_MASK


@view
@external
@reentrant
def appraise(node: uint256, ask: INodeRegistry.Ask) -> (uint256, uint256, address):
    """
    @notice Rate a node for a unit; reverts with the first gate that fails.
    @return (ask in force, score 0..1e8, operator)
    """
    operator: address = self._operator(node)
    hot: uint256 = self._hot[operator][node]
    offer: uint256 = self._offers[node]
    rate: uint256 = self._ask_in_force(node, offer)
    self._check_gate(self._gate(hot, offer, self._owners[node] >> packing.OWNER_STAKE_SHIFT, ask, rate))
    return rate, scoring._score(ask.needs, ask.ceiling, rate, offer, hot), operator


@view
@external
@reentrant
def gate(node: uint256, ask: INodeRegistry.Ask) -> uint256:
    """
    @return The first gate that keeps the node from a lease, 0 if none does.
    """
    offer: uint256 = self._offers[node]
    return self._gate(
        self._hot[self._operator(node)][node],
        offer,
        self._owners[node] >> packing.OWNER_STAKE_SHIFT,
        ask,
        self._ask_in_force(node, offer),
    )


@view
@external
@reentrant
def get(node: uint256) -> INodeRegistry.Node:
    """
    @return The node's record; all zero for an unknown or exited node.
    """
    record: uint256 = self._operators[node]
    owned: uint256 = self._owners[node]
    operator: address = self._address(record)
    return INodeRegistry.Node(
        owner=self._address(owned),
        operator=operator,
        stake=owned >> packing.OWNER_STAKE_SHIFT,
        offer=self._offers[node],
        hot=self._hot[operator][node],
        next_ask=self._next_asks[node],
        exit_at=record >> packing.OPERATOR_EXIT_AT_SHIFT,
    )


@view
@external
@reentrant
def totals() -> uint256:
    """
    @return next id, hour, burnt in that hour, total stake (packing.TOTALS_NEXT_ID_SHIFT ..)
    """
    return self._totals


# ---- INTERNAL ----


@internal
def _beat(node: uint256) -> bool:
    hot: uint256 = self._hot[msg.sender][node]
    if hot == 0:
        record: uint256 = self._operators[node]
        if record == 0 or self._address(record) != msg.sender:
            return False
        hot = block.timestamp << packing.HOT_REP_TIME_SHIFT
        if record >> packing.OPERATOR_EXIT_AT_SHIFT != 0:
            hot |= packing.HOT_EXITING
    self._hot[msg.sender][node] = (hot & ~BEAT_LANES) | block.timestamp
    return True


@payable
@internal
def _take(node: uint256, amount: uint256):
    """
    @dev Move `amount` from msg.sender into the node's lock in Escrow, the lock being the next call after the transfer.
    """
    key: bytes32 = convert(node, bytes32)
    if ASSET.address == empty(address):
        assert msg.value == amount, "nodes: wrong value sent"
        extcall ESCROW.lock(key, amount, value=msg.value)
    else:
        assert msg.value == 0, "nodes: wrong value sent"
        paid: bool = extcall ASSET.transferFrom(msg.sender, ESCROW.address, amount, default_return_value=True)
        assert paid, "nodes: transfer failed"
        extcall ESCROW.lock(key, amount)


@internal
def _observe_failure(node: uint256, weight: uint256):
    """
    @dev A no-op for a node that has left.
    """
    operator: address = self._operator(node)
    if operator == empty(address):
        return
    old: uint256 = self._hot[operator][node]
    hot: uint256 = reputation._observe(old, False, weight, block.timestamp)
    self._hot[operator][node] = hot
    until: uint256 = (hot >> packing.HOT_QUARANTINE_SHIFT) & packing.HOT_QUARANTINE_MASK
    if until != (old >> packing.HOT_QUARANTINE_SHIFT) & packing.HOT_QUARANTINE_MASK:
        log INodeRegistry.Quarantined(node=node, until=until)


@view
@internal
def _operator(node: uint256) -> address:
    return self._address(self._operators[node])


@pure
@internal
def _address(record: uint256) -> address:
    return convert(record & packing.OWNER_ACCOUNT_MASK, address)


@pure
@internal
def _share(amount: uint256, account: address) -> uint256:
    """
    @return A share word of Escrow.split, no share at all for no amount.
    """
    if amount == 0:
        return 0
    return (amount << packing.SHARE_AMOUNT_SHIFT) | convert(account, uint256)


@view
@internal
def _payee(payee: address) -> address:
    if payee == empty(address):
        return msg.sender
    return payee


@view
@internal
def _ask_in_force(node: uint256, offer: uint256) -> uint256:
    if offer & packing.OFFER_PENDING != 0:
        next: uint256 = self._next_asks[node]
        if block.timestamp >= next >> packing.NEXT_ASK_AT_SHIFT:
            return next & packing.NEXT_ASK_ASK_MASK
    return offer >> packing.OFFER_ASK_SHIFT


@view
@internal
def _gate(hot: uint256, offer: uint256, stake: uint256, ask: INodeRegistry.Ask, rate: uint256) -> uint256:
    """
    @dev Mirrors `node_gate` of hearth/protocol/formulas.py. A node that never beat has hot == 0.
    """
    if hot == 0 or block.timestamp >= (hot & packing.HOT_BEAT_MASK) + DEAD_AFTER:
        return NOT_LIVE
    if stake < MINIMUM_STAKE:
        return NOT_ACTIVE
    if hot & packing.HOT_EXITING != 0:
        return LEAVING
    if block.timestamp < (hot >> packing.HOT_QUARANTINE_SHIFT) & packing.HOT_QUARANTINE_MASK:
        return IN_QUARANTINE
    busy: uint256 = (hot >> packing.HOT_BUSY_SHIFT) & packing.HOT_BUSY_MASK
    if busy >= (offer >> packing.OFFER_SLOTS_SHIFT) & packing.OFFER_SLOTS_MASK:
        return NO_SLOT
    if stake - ((hot >> packing.HOT_BOND_SHIFT) & packing.HOT_BOND_MASK) < ask.bond:
        return STAKE_SHORT
    # lanes: what is needed and not offered, still in its place
    if ((ask.needs & ~offer) >> packing.NEEDS_RUNTIMES_SHIFT) & packing.NEEDS_RUNTIMES_MASK != 0:
        return RUNTIME_MISSING
    # All six sizes in one compare: a lane that is too small borrows its guard bit.
    held: uint256 = ((offer & packing.OFFER_SIZES) | packing.OFFER_GUARDS) - (ask.needs & packing.NEEDS_SIZES)
    if held & packing.OFFER_GUARDS != packing.OFFER_GUARDS:
        return self._short_size(held)
    zones: uint256 = (ask.needs >> packing.NEEDS_ZONE_MASK_SHIFT) & packing.NEEDS_ZONE_MASK_MASK
    # lanes: the mask has one bit for each zone
    if zones != 0 and (zones >> ((offer >> packing.OFFER_ZONE_SHIFT) & packing.OFFER_ZONE_MASK)) & 1 == 0:
        return ZONE_BARRED
    if rate > ask.ceiling:
        return PRICE_HIGH
    if ask.probation != 0 and hot & packing.HOT_SEASONED == 0 and (ask.probation == 2 or busy != 0):
        return ON_PROBATION
    return 0


@pure
@internal
def _short_size(held: uint256) -> uint256:
    """
    @dev Name the first size whose guard bit was borrowed.
    """
    if held & packing.OFFER_GUARD_GPU_COUNT == 0:
        return TOO_FEW_GPUS
    if held & packing.OFFER_GUARD_VRAM_GIB == 0:
        return VRAM_SHORT
    if held & packing.OFFER_GUARD_CORES == 0:
        return CORES_SHORT
    if held & packing.OFFER_GUARD_RAM_GIB == 0:
        return RAM_SHORT
    if held & packing.OFFER_GUARD_DISK_GIB == 0:
        return DISK_SHORT
    return TIER_LOW


@pure
@internal
def _check_gate(code: uint256):
    """
    @dev Revert with the gate's reason, its padding cut off.
    """
    if code == 0:
        return
    raise reasons._trim(slice(GATE_REASONS, code * reasons.ROW, 32))


@pure
@internal
def _check_offer(offer: uint256):
    assert (
        offer >> packing.OFFER_BITS == 0 and offer & (packing.OFFER_GUARDS | packing.OFFER_PENDING) == 0
    ), "nodes: spare bits set"
    assert (offer >> packing.OFFER_SLOTS_SHIFT) & packing.OFFER_SLOTS_MASK != 0, "nodes: no slots"
    assert (offer >> packing.OFFER_RUNTIMES_SHIFT) & packing.OFFER_RUNTIMES_MASK != 0, "nodes: no runtime"


@pure
@internal
def _check_ask(ask: uint256):
    assert ask != 0 and ask <= packing.OFFER_ASK_MASK, "nodes: ask out of range"


@view
@internal
def _check_owner(node: uint256):
    assert msg.sender == self._address(self._owners[node]), "nodes: not the owner"


@view
@internal
def _check_jobs():
    assert msg.sender == JOBS, "nodes: not the job registry"


@view
@internal
def _check_governor():
    assert msg.sender == self.governor, "nodes: not the governor"
