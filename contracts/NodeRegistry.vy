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
PAUSE_EVERY: constant(uint256) = 30 * 86400  # from the beginning of one pause to the next
VERDICT_TIME: constant(uint256) = 7 * 86400  # seconds for which a verdict sets a node aside, at least
MOST_SHARED: constant(uint256) = 6000  # bps of a bond that a judge may give to somebody
DEAD_ADDRESS: constant(address) = 0x000000000000000000000000000000000000dEaD

# A lane that follows another in the node state adds without touching its neighbour.
ONE_BUSY: constant(uint256) = 1 << packing.HOT_BUSY_SHIFT
BEAT_LANES: constant(uint256) = packing.HOT_BEAT_LANE + packing.HOT_LAPSED + packing.HOT_SILENT

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
OTHER_TIER: constant(uint256) = 13
ZONE_BARRED: constant(uint256) = 14
PRICE_HIGH: constant(uint256) = 15
ON_PROBATION: constant(uint256) = 16

ESCROW: public(immutable(IEscrow))
ASSET: public(immutable(IERC20))  # zero for the native coin
JOBS: public(immutable(address))
DEAD_AFTER: public(immutable(uint256))  # seconds since the last beat
ASK_NOTICE: public(immutable(uint256))  # seconds
UNBONDING: public(immutable(uint256))  # seconds
MINIMUM_STAKE: public(immutable(uint256))  # base units; ACTIVE takes half of it
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
_offered_operators: HashMap[uint256, address]  # node -> whose first beat takes it over
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
    governor: address,
):
    """
    @param jobs The JobRegistry of the pair; its address is predicted, and the deploy script checks it.
    @param minimum_stake The first minimum of new registrations, and the least it ever is; ACTIVE takes half of it.
    @param governor Who may raise it, and pause registrations; zero for nobody.
    """
    if jobs == empty(address):
        reasons._refuse(reasons.NODES_JOBS_ZERO)
    if dead_after < 3 or dead_after > 86400:
        reasons._refuse(reasons.NODES_DEAD_AFTER_RANGE)
    if ask_notice > 86400:
        reasons._refuse(reasons.NODES_NOTICE_RANGE)
    if unbonding < 1 or unbonding > 30 * 86400:
        reasons._refuse(reasons.NODES_UNBONDING_RANGE)
    if minimum_stake < 1 or minimum_stake > MAX_STAKE:
        reasons._refuse(reasons.NODES_MINIMUM_RANGE)
    if fee_reference < 1 or fee_reference > MAX_STAKE:
        reasons._refuse(reasons.NODES_REFERENCE_RANGE)
    if liveness_fee > minimum_stake:
        reasons._refuse(reasons.NODES_FEE_RANGE)
    if ration_bps > BPS:
        reasons._refuse(reasons.NODES_RATION_RANGE)
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
    self.governor = governor
    log INodeRegistry.MinimumStakeChanged(amount=minimum_stake)
    log INodeRegistry.GovernorChanged(governor=governor)


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
    if block.timestamp < self.paused_until:
        reasons._refuse(reasons.NODES_PAUSED)
    if operator == empty(address):
        reasons._refuse(reasons.NODES_OPERATOR_ZERO)
    self._check_offer(offer)
    self._check_ask(offer >> packing.OFFER_ASK_SHIFT)
    if stake < self.minimum_stake:
        reasons._refuse(reasons.NODES_NOT_ACTIVE)
    if stake > MAX_STAKE:
        reasons._refuse(reasons.NODES_STAKE_LARGE)

    totals: uint256 = self._totals
    node: uint256 = totals & packing.TOTALS_NEXT_ID_MASK
    if node == MAX_NODES:
        reasons._refuse(reasons.NODES_NO_IDS)
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
    if record == 0:
        reasons._refuse(reasons.NODES_UNKNOWN)
    if self._address(record) != owner:
        reasons._refuse(reasons.NODES_OTHER_OWNER)
    if amount == 0:
        reasons._refuse(reasons.NODES_AMOUNT_ZERO)
    if (record >> packing.OWNER_STAKE_SHIFT) + amount > MAX_STAKE:
        reasons._refuse(reasons.NODES_STAKE_LARGE)
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
    if offer >> packing.OFFER_ASK_SHIFT != 0:
        reasons._refuse(reasons.NODES_ASK_APART)
    hot: uint256 = self._hot[self._operator(node)][node]
    if (hot >> packing.HOT_BUSY_SHIFT) & packing.HOT_BUSY_MASK != 0:
        reasons._refuse(reasons.NODES_BUSY)
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
        if block.timestamp < next >> packing.NEXT_ASK_AT_SHIFT:
            reasons._refuse(reasons.NODES_ASK_PENDING)
        offer = (offer & ~packing.OFFER_ASK_LANE) | ((next & packing.NEXT_ASK_ASK_MASK) << packing.OFFER_ASK_SHIFT)
    at: uint256 = block.timestamp + ASK_NOTICE
    self._offers[node] = offer | packing.OFFER_PENDING
    self._next_asks[node] = (at << packing.NEXT_ASK_AT_SHIFT) | ask
    log INodeRegistry.AskChanged(node=node, ask=ask, at=at)


@external
@reentrant
def set_operator(node: uint256, operator: address):
    """
    @notice Offer the node to another hot key, at any time. Its first beat takes the node over, leases, bond and beat
            with it; until then the present operator serves. Naming the present one takes an offer back.
    """
    self._check_owner(node)
    if operator == empty(address):
        reasons._refuse(reasons.NODES_OPERATOR_ZERO)
    offered: address = operator
    if operator == self._operator(node):
        offered = empty(address)
    self._offered_operators[node] = offered
    log INodeRegistry.OperatorOffered(node=node, operator=offered)


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
    @notice Become the owner of a node that was offered to msg.sender. What its former owner offered an operator is void.
    """
    if self._offered_owners[node] != msg.sender:
        reasons._refuse(reasons.NODES_NOT_OFFERED)
    record: uint256 = self._owners[node]
    if record == 0:
        reasons._refuse(reasons.NODES_UNKNOWN)
    self._owners[node] = (record & packing.OWNER_STAKE_LANE) | convert(msg.sender, uint256)
    self._offered_owners[node] = empty(address)
    self._offered_operators[node] = empty(address)
    log INodeRegistry.OwnerChanged(node=node, owner=msg.sender)


@external
@reentrant
def exit_start(node: uint256):
    """
    @notice Begin to leave: matching stops now, running leases end normally, the unbonding time runs.
    """
    self._check_owner(node)
    record: uint256 = self._operators[node]
    if record >> packing.OPERATOR_EXIT_AT_SHIFT != 0:
        reasons._refuse(reasons.NODES_LEAVING)
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
    if record >> packing.OPERATOR_EXIT_AT_SHIFT == 0:
        reasons._refuse(reasons.NODES_NOT_EXITING)
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
    if exit_at == 0:
        reasons._refuse(reasons.NODES_NOT_EXITING)
    if block.timestamp < exit_at:
        reasons._refuse(reasons.NODES_UNBONDING)
    operator: address = self._address(record)
    if (self._hot[operator][node] >> packing.HOT_BOND_SHIFT) & packing.HOT_BOND_MASK != 0:
        reasons._refuse(reasons.NODES_BOND_LEFT)
    owned: uint256 = self._owners[node]
    stake: uint256 = owned >> packing.OWNER_STAKE_SHIFT
    self._hot[operator][node] = 0
    self._operators[node] = 0
    self._owners[node] = 0
    self._offers[node] = 0
    self._next_asks[node] = 0
    self._offered_owners[node] = empty(address)
    self._offered_operators[node] = empty(address)
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
    @notice Say that the node is alive. A key's first beat is its consent: it makes a registered node ACTIVE, and
            takes over one that is offered to it.
    """
    if not self._beat(node):
        reasons._refuse(reasons.NODES_NOT_OPERATOR)


@external
@reentrant
def heartbeat(nodes: DynArray[uint256, MAX_BATCH]):
    """
    @notice Beat for several nodes of one operator; ids neither msg.sender's nor offered to it are skipped.
    """
    done: bool = False
    for node: uint256 in nodes:
        if self._beat(node):
            done = True
    if not done:
        reasons._refuse(reasons.NODES_NOTHING_DONE)


# ---- ANYONE ----


@external
@reentrant
def check_liveness(nodes: DynArray[uint256, MAX_BATCH], payee: address):
    """
    @notice Record nodes that stopped beating, once per lapse, for a small fee from the free stake of each that runs
            something.
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
        fee: uint256 = 0
        # The silence of a node that runs nothing keeps nobody waiting.
        if (hot >> packing.HOT_BUSY_SHIFT) & packing.HOT_BUSY_MASK != 0:
            fee = min(
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
    if not done:
        reasons._refuse(reasons.NODES_NOTHING_DONE)


# ---- JOBREGISTRY ----


@external
@reentrant
def engage(node: uint256, operator: address, ask: INodeRegistry.Ask, rate: uint256) -> (uint256, bool):
    """
    @notice Start a lease: every gate holds, the bond is reserved, a slot is taken, the node has beaten.
    @param rate The rate locked by a proposal, zero to lock the ask in force.
    @return (the locked rate, whether the node is seasoned)
    """
    self._check_jobs()
    hot: uint256 = self._hot[operator][node]
    if hot == 0:
        reasons._refuse(reasons.NODES_NOT_OPERATOR)
    offer: uint256 = self._offers[node]
    locked: uint256 = rate
    if rate == 0:
        locked = self._ask_in_force(node, offer)
    self._check_gate(self._gate(hot, offer, self._owners[node] >> packing.OWNER_STAKE_SHIFT, ask, locked))
    self._hot[operator][node] = (
        ((hot & ~BEAT_LANES) | block.timestamp) + ONE_BUSY + (ask.bond << packing.HOT_BOND_SHIFT)
    )
    return locked, hot & packing.HOT_SEASONED != 0


@external
@reentrant
def submitted(node: uint256, operator: address):
    """
    @notice A lease was submitted: its slot is free, its bond stays, the node has beaten.
    """
    self._check_jobs()
    hot: uint256 = self._hot[operator][node]
    if hot == 0:
        reasons._refuse(reasons.NODES_NOT_OPERATOR)
    self._hot[operator][node] = ((hot & ~BEAT_LANES) | block.timestamp) - ONE_BUSY


@external
@reentrant
def declined(node: uint256, operator: address, bond: uint256, burn: uint256):
    """
    @notice A lease was declined: slot and bond are free.
    @param burn Base units of the bond: what a match brought its proposer; zero without one.
    """
    self._check_jobs()
    self._hot[operator][node] = self._freed(node, operator, bond)
    self._burn(node, burn)


@external
@reentrant
def gave_up(node: uint256, operator: address, bond: uint256, burn: uint256, fee: uint256):
    """
    @notice A lease was given up: slot and the rest of the bond are free, the failure counts.
    @param burn Base units of the bond. No ration spares it: an outage makes nobody give up.
    @param fee What the lease would have paid, by which the failure counts.
    """
    self._check_jobs()
    self._observe_failure(node, operator, self._freed(node, operator, bond), self._weight(fee))
    self._burn(node, burn)


@external
@reentrant
def settled(node: uint256, bond: uint256, ok: bool, fee: uint256, accused: uint256) -> address:
    """
    @notice A submitted lease was settled: its bond is free; a success counts by the fee it paid.
    @param accused A node that declined the unit before, observed as a failure of the same weight; zero for none.
    @return The owner, who is paid.
    """
    self._check_jobs()
    operator: address = self._operator(node)
    hot: uint256 = self._hot[operator][node] - (bond << packing.HOT_BOND_SHIFT)
    weight: uint256 = self._weight(fee)
    if ok:
        hot = reputation._observe(hot, True, weight, block.timestamp)
    self._hot[operator][node] = hot
    self._accuse(accused, weight)
    return self._address(self._owners[node])


@external
@reentrant
def finished(
    node: uint256, operator: address, bond: uint256, ok: bool, fee: uint256, accused: uint256, ask: INodeRegistry.Ask
) -> (address, uint256, bool):
    """
    @notice A lease was submitted and settled at once: slot and bond are free, the node has beaten, a success counts.
            Where every gate holds, its next lease starts.
    @param accused As in `settled`.
    @param ask Of the next lease; a ceiling of zero for none.
    @return (the owner, who is paid; the next lease's locked rate, zero for none; whether the node is seasoned)
    """
    self._check_jobs()
    hot: uint256 = self._hot[operator][node]
    if hot == 0:
        reasons._refuse(reasons.NODES_NOT_OPERATOR)
    hot = ((hot & ~BEAT_LANES) | block.timestamp) - ONE_BUSY - (bond << packing.HOT_BOND_SHIFT)
    weight: uint256 = self._weight(fee)
    if ok:
        hot = reputation._observe(hot, True, weight, block.timestamp)
    record: uint256 = self._owners[node]
    rate: uint256 = 0
    if ask.ceiling != 0:
        offer: uint256 = self._offers[node]
        rate = self._ask_in_force(node, offer)
        if self._gate(hot, offer, record >> packing.OWNER_STAKE_SHIFT, ask, rate) == 0:
            hot += ONE_BUSY + (ask.bond << packing.HOT_BOND_SHIFT)
        else:
            rate = 0
    self._hot[operator][node] = hot
    self._accuse(accused, weight)
    return self._address(record), rate, hot & packing.HOT_SEASONED != 0


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
def reclaimed(
    node: uint256,
    busy: uint256,
    bond: uint256,
    slash: uint256,
    reward: uint256,
    least: uint256,
    fee: uint256,
    payee: address,
):
    """
    @notice A lease failed: slot and the rest of the bond are free, the failure counts, the slash leaves the stake.
    @dev The burn is rationed per clock hour, so that an outage cannot slash a network: at or above the ration
         `least` is burnt and the failure counts half. slash <= bond <= stake.
    @param busy Slots that it held: 1, or 0 where its result was submitted and not proven.
    @param reward Part of `slash` that goes to `payee`; the rest is burnt.
    @param least Base units that are burnt in any case: what a match brought its proposer.
    @param fee What the lease would have paid, by which the failure of a live node counts. A dead one failed by its
           silence, which counts once, however many leases it held.
    """
    self._check_jobs()
    operator: address = self._operator(node)
    totals: uint256 = self._totals
    stakes: uint256 = totals >> packing.TOTALS_TOTAL_SHIFT
    hour: uint256 = block.timestamp // HOUR
    burnt: uint256 = 0
    if (totals >> packing.TOTALS_HOUR_SHIFT) & packing.TOTALS_HOUR_MASK == hour:
        burnt = (totals >> packing.TOTALS_BURNT_SHIFT) & packing.TOTALS_BURNT_MASK

    hot: uint256 = self._hot[operator][node] - (busy << packing.HOT_BUSY_SHIFT) - (bond << packing.HOT_BOND_SHIFT)
    weight: uint256 = self._weight(fee)
    # What was submitted was not lost by silence.
    if busy != 0 and block.timestamp >= (hot & packing.HOT_BEAT_MASK) + DEAD_AFTER:
        weight = reputation.ONE
        if hot & packing.HOT_SILENT != 0:
            weight = 0
        hot |= packing.HOT_SILENT

    burn: uint256 = slash - reward
    if burnt >= max(stakes * RATION_BPS // BPS, 3 * MINIMUM_STAKE):
        burn = min(burn, least)
        weight = weight // 2
    taken: uint256 = reward + burn
    self._totals = (
        (totals & packing.TOTALS_NEXT_ID_MASK)
        | (hour << packing.TOTALS_HOUR_SHIFT)
        | ((burnt + burn) << packing.TOTALS_BURNT_SHIFT)
        | ((stakes - taken) << packing.TOTALS_TOTAL_SHIFT)
    )
    self._owners[node] -= taken << packing.OWNER_STAKE_SHIFT
    self._observe_failure(node, operator, hot, weight)
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


@external
@reentrant
def slashed(node: uint256, bond: uint256, shares: uint256[3]):
    """
    @notice A judge rejected a submitted lease: its bond is lost, the failure counts ten times, the node is set aside.
    @dev Four tenths at least reach nobody, so that who judges himself loses by it. No ration spares a verdict.
    @param shares Parts of the bond, as Escrow.split takes them; the rest is burnt.
    """
    self._check_jobs()
    paid: uint256 = 0
    for share: uint256 in shares:
        paid += share >> packing.SHARE_AMOUNT_SHIFT
    if paid > bond * MOST_SHARED // BPS:
        reasons._refuse(reasons.NODES_SHARES_LARGE)
    operator: address = self._operator(node)
    until: uint256 = block.timestamp + VERDICT_TIME
    hot: uint256 = self._hot[operator][node] - (bond << packing.HOT_BOND_SHIFT)
    hot = reputation._observe(hot, False, reputation.VERDICT, block.timestamp)
    until = max(until, (hot >> packing.HOT_QUARANTINE_SHIFT) & packing.HOT_QUARANTINE_MASK)
    self._hot[operator][node] = (
        (hot & ~packing.HOT_QUARANTINE_LANE) | (until << packing.HOT_QUARANTINE_SHIFT) | packing.HOT_SLASHED
    )
    self._owners[node] -= bond << packing.OWNER_STAKE_SHIFT
    self._totals -= bond << packing.TOTALS_TOTAL_SHIFT
    log INodeRegistry.Rejected(node=node, shares=shares, burnt=bond - paid, until=until)
    extcall ESCROW.split(
        convert(node, bytes32),
        [shares[0], shares[1], shares[2], self._share(bond - paid, DEAD_ADDRESS)],
        skip_contract_check=True,
    )


# ---- GOVERNANCE ----


@external
@reentrant
def set_minimum_stake(amount: uint256):
    """
    @notice Set the stake asked of new registrations, at least the first minimum.
    """
    self._check_governor()
    if amount < MINIMUM_STAKE or amount > MAX_STAKE:
        reasons._refuse(reasons.NODES_MINIMUM_RANGE)
    self.minimum_stake = amount
    log INodeRegistry.MinimumStakeChanged(amount=amount)


@external
@reentrant
def pause():
    """
    @notice Stop new registrations for 7 days, at most once in 30. Nothing else stops, and the pause ends by itself.
    """
    self._check_governor()
    last: uint256 = self.paused_until
    if last != 0 and block.timestamp < last - PAUSE_TIME + PAUSE_EVERY:
        reasons._refuse(reasons.NODES_PAUSED_LATELY)
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
    if msg.sender != self.offered_governor:
        reasons._refuse(reasons.NODES_NOT_OFFERED)
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
def operator_of(node: uint256) -> address:
    """
    @return Zero for a node that left.
    """
    return self._operator(node)


@view
@external
@reentrant
def owner_of(node: uint256) -> address:
    """
    @return Zero for a node that left.
    """
    return self._address(self._owners[node])


@view
@external
@reentrant
def offered_operator(node: uint256) -> address:
    """
    @return The key whose first beat takes the node over, zero for none.
    """
    return self._offered_operators[node]


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
        operator: address = self._address(record)
        if operator != msg.sender:
            if self._offered_operators[node] != msg.sender:
                return False
            hot = self._hot[operator][node]
            self._hot[operator][node] = 0
            self._operators[node] = (record & packing.OPERATOR_EXIT_AT_LANE) | convert(msg.sender, uint256)
            self._offered_operators[node] = empty(address)
            log INodeRegistry.OperatorChanged(node=node, operator=msg.sender)
        if hot == 0:
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
        if msg.value != amount:
            reasons._refuse(reasons.NODES_WRONG_VALUE)
        extcall ESCROW.lock(key, amount, value=msg.value)
    else:
        if msg.value != 0:
            reasons._refuse(reasons.NODES_WRONG_VALUE)
        paid: bool = extcall ASSET.transferFrom(msg.sender, ESCROW.address, amount, default_return_value=True)
        if not paid:
            reasons._refuse(reasons.NODES_TRANSFER_FAILED)
        extcall ESCROW.lock(key, amount)


@view
@internal
def _weight(fee: uint256) -> uint256:
    """
    @return What a fee weighs as an observation, in 1/2**20.
    """
    return min(reputation.ONE, reputation.ONE * fee // FEE_REFERENCE)


@view
@internal
def _freed(node: uint256, operator: address, bond: uint256) -> uint256:
    """
    @return The node state without slot and bond of a lease that its operator ends.
    """
    hot: uint256 = self._hot[operator][node]
    if hot == 0:
        reasons._refuse(reasons.NODES_NOT_OPERATOR)
    return hot - ONE_BUSY - (bond << packing.HOT_BOND_SHIFT)


@internal
def _burn(node: uint256, amount: uint256):
    """
    @dev Burn a part of the stake that a bond has just freed.
    """
    if amount == 0:
        return
    self._owners[node] -= amount << packing.OWNER_STAKE_SHIFT
    self._totals -= amount << packing.TOTALS_TOTAL_SHIFT
    log INodeRegistry.Slashed(node=node, payee=empty(address), reward=0, burnt=amount)
    extcall ESCROW.split(convert(node, bytes32), [self._share(amount, DEAD_ADDRESS), 0, 0, 0], skip_contract_check=True)


@internal
def _accuse(node: uint256, weight: uint256):
    """
    @param node The one that declined what another made a result of; zero for none.
    """
    if node != 0:
        operator: address = self._operator(node)
        # One that has left is not observed.
        if operator != empty(address):
            self._observe_failure(node, operator, self._hot[operator][node], weight)


@internal
def _observe_failure(node: uint256, operator: address, old: uint256, weight: uint256):
    """
    @notice Store a node state with a failure folded in; one without weight changes nothing of it.
    """
    if weight == 0:
        self._hot[operator][node] = old
        return
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
    # Half of what registering takes: one fee or one slash stops no node.
    if 2 * stake < MINIMUM_STAKE:
        return NOT_ACTIVE
    if hot & packing.HOT_EXITING != 0:
        return LEAVING
    if block.timestamp < (hot >> packing.HOT_QUARANTINE_SHIFT) & packing.HOT_QUARANTINE_MASK:
        return IN_QUARANTINE
    busy: uint256 = (hot >> packing.HOT_BUSY_SHIFT) & packing.HOT_BUSY_MASK
    if busy >= (offer >> packing.OFFER_SLOTS_SHIFT) & packing.OFFER_SLOTS_MASK:
        return NO_SLOT
    reserved: uint256 = (hot >> packing.HOT_BOND_SHIFT) & packing.HOT_BOND_MASK
    if stake - reserved < ask.bond:
        return STAKE_SHORT
    # lanes: what is needed and not offered, still in its place
    if ((ask.needs & ~offer) >> packing.NEEDS_RUNTIMES_SHIFT) & packing.NEEDS_RUNTIMES_MASK != 0:
        return RUNTIME_MISSING
    # All six sizes in one compare: a lane that is too small borrows its guard bit.
    held: uint256 = ((offer & packing.OFFER_SIZES) | packing.OFFER_GUARDS) - (ask.needs & packing.NEEDS_SIZES)
    if held & packing.OFFER_GUARDS != packing.OFFER_GUARDS:
        return self._short_size(held)
    # What is left of the tier's lane is how much better it is.
    if ask.needs & packing.NEEDS_EXACT != 0 and held & packing.OFFER_TIER_MASK != 0:
        return OTHER_TIER
    zones: uint256 = (ask.needs >> packing.NEEDS_ZONE_MASK_SHIFT) & packing.NEEDS_ZONE_MASK_MASK
    # lanes: the mask has one bit for each zone
    if zones != 0 and (zones >> ((offer >> packing.OFFER_ZONE_SHIFT) & packing.OFFER_ZONE_MASK)) & 1 == 0:
        return ZONE_BARRED
    if rate > ask.ceiling:
        return PRICE_HIGH
    # What a newcomer has submitted still counts: it may be junk until somebody has looked. A first lease always fits.
    if hot & packing.HOT_SEASONED == 0 and (
        ask.probation == 0 or (reserved != 0 and reserved + ask.bond > ask.probation)
    ):
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
    return OTHER_TIER


@pure
@internal
def _check_gate(code: uint256):
    """
    @dev Revert with the gate's reason.
    """
    if code != 0:
        reasons._refuse(reasons.GATE + code)


@pure
@internal
def _check_offer(offer: uint256):
    if offer >> packing.OFFER_BITS != 0 or offer & (packing.OFFER_GUARDS | packing.OFFER_PENDING) != 0:
        reasons._refuse(reasons.NODES_SPARE_BITS)
    if (offer >> packing.OFFER_SLOTS_SHIFT) & packing.OFFER_SLOTS_MASK == 0:
        reasons._refuse(reasons.NODES_NO_SLOTS)
    if (offer >> packing.OFFER_RUNTIMES_SHIFT) & packing.OFFER_RUNTIMES_MASK == 0:
        reasons._refuse(reasons.NODES_NO_RUNTIME)


@pure
@internal
def _check_ask(ask: uint256):
    if ask == 0 or ask > packing.OFFER_ASK_MASK:
        reasons._refuse(reasons.NODES_ASK_RANGE)


@view
@internal
def _check_owner(node: uint256):
    if msg.sender != self._address(self._owners[node]):
        reasons._refuse(reasons.NODES_NOT_OWNER)


@view
@internal
def _check_jobs():
    if msg.sender != JOBS:
        reasons._refuse(reasons.NODES_NOT_JOBS)


@view
@internal
def _check_governor():
    if msg.sender != self.governor:
        reasons._refuse(reasons.NODES_NOT_GOVERNOR)
