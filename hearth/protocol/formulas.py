"""The market's arithmetic, exact integers, pure: the reference implementation of the contracts.

The contracts follow this file bit for bit (tests/protocol/test_formulas.py). Times are chain seconds, amounts base
units, rates base units x 1e6 per second, shares bps. Rounding: prices, bonds and fuel seconds up, fees and payouts
down. Source: protocol.md "Terms", "Money", "Matching" and "Reputation"; mirrors contracts/JobRegistry.vy,
contracts/NodeRegistry.vy, contracts/scoring.vy and contracts/reputation.vy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from eth_utils.crypto import keccak

from hearth.base.abi import encode
from hearth.protocol import reputation, words
from hearth.protocol.types import (
    BPS,
    RATE_SCALE,
    ZERO_HASH,
    Best,
    Billing,
    Gate,
    Header,
    JobId,
    Kept,
    Needs,
    Node,
    NodeFlag,
    NodeId,
    NodeState,
    Offer,
    Outcome,
    Policy,
    State,
    Status,
    Terms,
    TermsFlag,
    Unit,
    UnitFlag,
)
from hearth.protocol.zones import zone_distance

VERSION: Final = 1
"""The protocol version, the lowest byte of every policy word."""

MAX_EXTENSIONS: Final = 3
MAX_LAPSES: Final = 2
BUCKET: Final = 500_000
SLASH_DIVISOR: Final = 10
MAX_SECONDS: Final = 30 * 86_400
"""The longest lease of a unit, with what it was topped up by."""
CHECKPOINT_SHARE: Final = (8, 10)
"""What a kept checkpoint earns of its time."""
MAX_RESUMED: Final = 8
"""How many kept checkpoints one result pays."""
STALE_SECONDS: Final = 30 * 86_400
"""How long past its window a dispute can hold a unit."""
MOST_SHARED: Final = 6_000
"""The most of a bond, in bps, that a judge may give to somebody."""
MAX_FETCH: Final = 3_600
MAX_UINT: Final = 2**256 - 1

TERMS_TYPE: Final = "(uint256,bytes32,uint256,uint256,uint256,uint256,uint256,uint256,bytes32)"


# ---- ids ----


def job_id(chain_id: int, registry: str, terms: Terms) -> JobId:
    """Return keccak256(abi_encode(chain_id, registry, terms)), the id of a job; `chain_id` is that at deployment."""
    return job_id_of_words(chain_id, registry, words.pack_terms(terms))


def job_id_of_words(chain_id: int, registry: str, packed: words.TermsWords) -> JobId:
    """Return the id of a job from its nine packed words."""
    return JobId(keccak(encode(["uint256", "address", TERMS_TYPE], [chain_id, registry, packed])))


def unit_key(job: JobId, index: int, leases: int) -> bytes:
    """Return the storage key of a lease: the job's own id for a one-lease job, else keccak256(job_id, index)."""
    return job if leases == 1 else keccak(encode(["bytes32", "uint256"], [job, index]))


# ---- money ----


def ceil_div(a: int, b: int) -> int:
    """Divide non-negative integers, rounding up."""
    return -(-a // b)


def unit_price(terms: Terms) -> int:
    """Return p', the most that one unit can pay: ceil(ceiling x max_seconds / 1e6)."""
    return ceil_div(terms.ceiling * terms.max_seconds, RATE_SCALE)


def price(terms: Terms) -> int:
    """Return a lease's price, chunk x p'."""
    return terms.chunk * unit_price(terms)


def topped(terms: Terms, unit: Unit) -> Terms:
    """Return a job's terms as they are for a unit: max_seconds with what the unit was topped up by."""
    if not unit.seconds or terms.billing != Billing.METERED:
        return terms
    return replace(terms, max_seconds=terms.max_seconds + unit.seconds)


def top_up_amount(terms: Terms, unit: Unit, seconds: int) -> int:
    """Return what topping a unit up by `seconds` costs: what its price grows by."""
    now = topped(terms, unit)
    return price(replace(now, max_seconds=now.max_seconds + seconds)) - price(now)


def lease_budget(terms: Terms) -> int:
    """Return what a fresh lease holds in escrow: its price and every keeper fee it may need."""
    return price(terms) + terms.max_attempts * terms.keeper_fee


def unlock_fee(terms: Terms) -> int:
    """Return what `unlock` pays its caller: a keeper fee, which a job with parents is funded with besides."""
    return terms.keeper_fee


def escrow_at_post(terms: Terms) -> int:
    """Return the exact funding of a job."""
    unlock = unlock_fee(terms) if terms.parents_hash != ZERO_HASH else 0
    return terms.leases * lease_budget(terms) + unlock


def unit_holds(terms: Terms, unit: Unit) -> int:
    """Return what an unended unit holds: its budget less the tips already paid; zero once it has ended.

    A BLOCKED one-lease job holds the fee of its `unlock` too.
    """
    if unit.state.terminal:
        return 0
    unlock = unlock_fee(terms) if unit.state is State.BLOCKED else 0
    return lease_budget(topped(terms, unit)) - unit.tips * tip(terms) + unlock


def rest_holds(terms: Terms, header: Header) -> int:
    """Return what the untouched leases of an array hold, with the fee of its `unlock` while it waits."""
    if header.closed:
        return 0
    unlock = unlock_fee(terms) if header.waiting else 0
    return (terms.leases - header.touched) * lease_budget(terms) + unlock


def job_holds(terms: Terms, header: Header | None, units: Iterable[Unit]) -> int:
    """Return what a job holds of its submitter's lock: each touched unit's part and, of an array, the rest's."""
    touched = sum(unit_holds(terms, unit) for unit in units)
    return touched + (rest_holds(terms, header) if header is not None else 0)


def lock_key(submitter: str) -> bytes:
    """Return what Escrow keeps the money of all of a submitter's jobs under: the address, to 32 bytes."""
    return int(submitter, 16).to_bytes(32, "big")


def policy_of(terms: Terms) -> Policy:
    """Return the parameters that a job froze at post."""
    return words.unpack_policy(terms.policy)


def tip(terms: Terms) -> int:
    """Return what a proposer earns when its proposal is acked."""
    return terms.keeper_fee // 2


def grace(terms: Terms) -> int:
    """Return the seconds that a lease has beyond max_seconds."""
    return max(policy_of(terms).grace_floor, terms.max_seconds // 10) * terms.chunk


def lease_seconds(terms: Terms) -> int:
    """Return the seconds that a lease may bill: max_seconds for each of its units."""
    return terms.max_seconds * terms.chunk


def base_bond(terms: Terms) -> int:
    """Return the least bond of a lease: max(ceil(the policy's share x price), 8 keeper fees)."""
    return max(ceil_div(policy_of(terms).min_bond_bps * price(terms), BPS), 8 * terms.keeper_fee)


def bond(terms: Terms) -> int:
    """Return the stake that a lease reserves, what a judge may take: max(ceil(bond_bps x price), the base bond)."""
    return max(ceil_div(terms.bond_bps * price(terms), BPS), base_bond(terms))


def slash_of(terms: Terms) -> int:
    """Return what a lost lease costs the node, its caller's reward included; it goes by the base bond."""
    return base_bond(terms) // SLASH_DIVISOR


def give_up_burn(terms: Terms) -> int:
    """Return what giving a lease up burns: what a reclaim would, less the most that its caller gets."""
    slash = slash_of(terms)
    return slash - slash // 4


def tip_to_burn(terms: Terms, unit: Unit) -> int:
    """Return what a lost lease burns at least, where a match began it: what its proposer was paid."""
    return tip(terms) if unit.flags & UnitFlag.ACKED else 0


def ramp(base: int, overdue: int) -> int:
    """Grow a keeper's pay from 1x to 4x over 600 s since the action became valid, rounding down."""
    return base * (1000 + min(3000, 5 * overdue)) // 1000


def settle_reward(terms: Terms, overdue: int) -> int:
    """Return the settler's and the closer's pay."""
    return ramp(terms.keeper_fee // 8, overdue)


def reclaim_reward(terms: Terms, slash: int, overdue: int) -> int:
    """Return the reclaimer's pay, which comes out of the slash; so does the settler's of a unit without a proof."""
    return min(slash // 4, ramp(terms.keeper_fee // 8, overdue))


def expire_reward(terms: Terms, unit: Unit | None, overdue: int) -> int:
    """Return the expirer's pay; `unit` is None for an array's untouched ones, which pay once for the whole array."""
    if unit is not None and terms.leases > 1:
        return 0
    return min(terms.keeper_fee, ramp(terms.keeper_fee // 4, overdue))


def reserved(unit: Unit, kept: Mapping[int, Kept]) -> int:
    """Return the seconds that come first of the checkpoints which a lease resumed from; `kept` by attempt."""
    if not unit.resume:
        return 0
    return kept[unit.resume].before + kept[unit.resume].seconds


def billed_seconds(terms: Terms, unit: Unit, shared: int = 0) -> int:
    """Return the seconds that a SUBMITTED unit bills, whether it was cancelled meanwhile or not.

    `shared` are those that `reserved` keeps for the checkpoints which it was made of.
    """
    limit = lease_seconds(topped(terms, unit))
    if terms.billing == Billing.FUEL:
        return min(unit.seconds, limit)
    if terms.billing == Billing.METERED:
        return min(unit.submitted_at - unit.started, max(0, limit - shared))
    return limit


def pay_at_settle(terms: Terms, unit: Unit, shared: int = 0) -> int:
    """Return a SUBMITTED unit's pay before the fee; `shared` as in `billed_seconds`."""
    return min(price(topped(terms, unit)), unit.rate * billed_seconds(terms, unit, shared) // RATE_SCALE)


class CheckpointPay(NamedTuple):
    """What a kept checkpoint earns when a result that was made of it is settled: pay and fee in base units."""

    attempt: int
    node: NodeId
    pay: int
    fee: int


def checkpoint_pays(terms: Terms, unit: Unit, kept: Mapping[int, Kept]) -> list[CheckpointPay]:
    """Return what a SUBMITTED unit's settling pays for kept checkpoints, newest first, nodes that left included.

    `kept` names them by attempt. All that a unit bills stays within its seconds, whoever ran them: the oldest
    checkpoint has them first, each later one what is left, MAX_RESUMED at most, the result the rest (`billed_seconds`).
    """
    if unit.outcome != Outcome.OK:
        return []
    whole = lease_seconds(topped(terms, unit))
    pays, attempt = [], unit.resume
    for _ in range(MAX_RESUMED):
        if not attempt:
            break
        record = kept[attempt]
        seconds = min(max(0, whole - record.before), record.seconds)
        if seconds:
            share, parts = CHECKPOINT_SHARE
            pay = record.rate * seconds * share // parts // RATE_SCALE
            pays.append(CheckpointPay(attempt, record.node, pay, fee_of(pay, policy_of(terms))))
        attempt = record.resume
    return pays


def pay_at_close(terms: Terms, unit: Unit) -> int:
    """Return the pay of a CLOSING unit whose notice is over, before the fee."""
    whole = topped(terms, unit)
    seconds = min(unit.deadline_at - unit.started, lease_seconds(whole)) + policy_of(terms).start_fee_seconds
    return min(price(whole), unit.rate * seconds // RATE_SCALE)


def pay_at_void(terms: Terms, unit: Unit) -> int:
    """Return the pay of a unit that its judge voids, before the fee: the start fee."""
    return min(price(topped(terms, unit)), unit.rate * policy_of(terms).start_fee_seconds // RATE_SCALE)


def fee_of(pay: int, policy: Policy) -> int:
    """Return the treasury's share of a pay, rounding down."""
    return pay * policy.fee_bps // BPS


def whole_fee(terms: Terms, unit: Unit) -> int:
    """Return the fee of a lease of which every second is billed: what its failure weighs by, in base units.

    As posted: a submitter who tops up a lease that fails could else make the failure heavier.
    """
    return fee_of(min(price(terms), unit.rate * lease_seconds(terms) // RATE_SCALE), policy_of(terms))


# ---- the life of a unit ----


def lapses_at(terms: Terms, unit: Unit) -> int:
    """Return the first second at which an OPEN unit's proposal can be acked no more, 0 where it holds none."""
    return unit.window_end and unit.window_end + policy_of(terms).ack_time


def has_live_proposal(terms: Terms, unit: Unit, now: int) -> bool:
    """Say whether an OPEN unit holds a proposal whose ack time has not run out."""
    return now < lapses_at(terms, unit)


def with_lapse(terms: Terms, unit: Unit, best: Best, now: int) -> Unit:
    """Return the unit as every guard reads it: a proposal that nobody acked in time is dropped and counted."""
    if not unit.window_end or has_live_proposal(terms, unit, now):
        return unit
    return replace(unit, node=best.node, lapses=unit.lapses + 1, rate=0, mark=0)


def claims_from(terms: Terms, unit: Unit) -> int:
    """Return the first second since its last proposal at which an OPEN unit takes claims; their price rises from it on.

    `unit` is as stored: where a lapse is applied, its proposal's mark is lost. While a proposal is live, that is the
    second at which it lapses, if nobody acks it.
    """
    if terms.match_window == 0:
        return unit.started
    opens = unit.started + policy_of(terms).open_claim_after
    lapsed = lapses_at(terms, unit)
    if not lapsed:
        return opens
    return lapsed if unit.lapses + 1 >= MAX_LAPSES else max(opens, lapsed)


def claimable(terms: Terms, unit: Unit, now: int) -> bool:
    """Say whether an OPEN unit (as stored) takes claims now, their price aside."""
    return unit.state == State.OPEN and now >= claims_from(terms, unit)


def claim_ceiling(terms: Terms, waited: int) -> int:
    """Return the highest ask that a claim may lock `waited` seconds after `claims_from`.

    It is a quarter of the ceiling at first and all of it after the policy's claim_ramp, rounding down.
    """
    ramp = policy_of(terms).claim_ramp
    return terms.ceiling * (ramp + 3 * min(ramp, waited)) // (4 * ramp)


def claim_wait(terms: Terms, rate: int) -> int:
    """Return the fewest seconds after which `claim_ceiling` reaches a rate, which is at most the ceiling."""
    policy = policy_of(terms)
    parts = ceil_div(4 * policy.claim_ramp * rate, terms.ceiling)
    return ceil_div(max(0, parts - policy.claim_ramp), 3)


def claimable_from(terms: Terms, unit: Unit, rate: int) -> int | None:
    """Return the first second at which an OPEN unit (as stored) may be claimed by a node that asks `rate`.

    That is if nobody proposes or acks meanwhile. None where the rate is above the ceiling. Mirrors
    `Lens.claimable_from`.
    """
    if rate > terms.ceiling:
        return None
    return claims_from(terms, unit) + claim_wait(terms, rate)


def proposable(terms: Terms, unit: Unit, now: int) -> bool:
    """Say whether an OPEN unit (its lapse applied) takes a proposal now, the key aside."""
    if unit.state != State.OPEN or terms.match_window == 0 or unit.lapses >= MAX_LAPSES:
        return False
    return unit.window_end == 0 or now < unit.window_end


def has_time(terms: Terms, now: int) -> bool:
    """Say whether an attempt that starts now can end before the deadline; of a unit that may be topped up, `topped`."""
    return now + lease_seconds(terms) + grace(terms) <= terms.deadline


def expirable_from(terms: Terms) -> int:
    """Return the first second at which `expire` is valid; of a unit that may be topped up, for `topped` terms."""
    return terms.deadline - lease_seconds(terms) - grace(terms) + 1


def challenge_end(terms: Terms, unit: Unit) -> int:
    """Return the second from which a SUBMITTED unit cannot be disputed any more: its submit where there is no judge."""
    return unit.submitted_at + terms.challenge_window


def fresh_until(terms: Terms, unit: Unit) -> int:
    """Return the first second at which the result of a node that was on probation counts for its record."""
    return unit.submitted_at + policy_of(terms).fresh_delay


def settleable_from(terms: Terms, unit: Unit) -> int:
    """Return the first second at which anyone may settle a SUBMITTED or DISPUTED unit; its submitter may accept before.

    Where the terms ask for a proof, settling then is a refund, and costs the node what a lost lease does.
    """
    opens = challenge_end(terms, unit)
    if unit.state == State.DISPUTED:
        opens += STALE_SECONDS
    if terms.flags & TermsFlag.PROVEN:
        return max(opens, terms.deadline + terms.challenge_window)
    return max(opens, fresh_until(terms, unit)) if unit.flags & UnitFlag.FRESH else opens


def declinable_until(terms: Terms, unit: Unit) -> int:
    """Return the second from which a RUNNING unit cannot be declined any more, only given up."""
    return unit.started + max(policy_of(terms).fetch_floor, min(terms.max_seconds // 4, MAX_FETCH))


def reclaimable_from(unit: Unit, beat: int, dead_after: int) -> int:
    """Return the first second at which a RUNNING unit can be reclaimed: lease over, or node dead."""
    return min(unit.deadline_at, max(beat, unit.started) + dead_after)


# ---- matching ----

_SIZE_GATES: Final = (
    (Gate.GPU_COUNT, "gpu_count"),
    (Gate.VRAM, "vram_gib"),
    (Gate.CORES, "cores"),
    (Gate.RAM, "ram_gib"),
    (Gate.DISK, "disk_gib"),
    (Gate.TIER, "tier"),
)


class Ask(NamedTuple):
    """What a job asks of a node (`INodeRegistry.Ask`): needs, highest rate, bond, and what probation allows.

    That is the most stake, base units, that a node on probation may have reserved with the lease, where it is not its
    first; 0 for seasoned nodes only.
    """

    needs: Needs
    ceiling: int
    bond: int
    probation: int


def ask_of(terms: Terms) -> Ask:
    """Derive from the terms what the matching gates compare a node with."""
    policy = policy_of(terms)
    if terms.flags & TermsFlag.NEWCOMERS or policy.probation_price == 0:
        probation = MAX_UINT
    elif price(terms) <= policy.probation_price:
        probation = ceil_div(policy.min_bond_bps * policy.probation_price, BPS)
    else:
        probation = 0
    return Ask(terms.needs, terms.ceiling, bond(terms), probation)


def ask_in_force(node: Node, now: int) -> int:
    """Return the node's rate: the pending ask once its notice is over, else the offer's."""
    if node.offer.pending and now >= node.next_ask_at:
        return node.next_ask
    return node.offer.ask


def status(node: Node, now: int, dead_after: int, minimum_stake: int) -> Status:
    """Compute a node's status at `now`."""
    if int(node.operator, 16) == 0:
        return Status.EXITED
    if node.exit_at:
        return Status.EXITING
    if node.state.status & NodeFlag.SLASHED and now < node.state.quarantine:
        return Status.SLASHED
    if node.state.beat == 0 or stake_short(node, minimum_stake):
        return Status.PENDING
    return Status.ACTIVE if now < node.state.beat + dead_after else Status.INACTIVE


def active_stake(minimum_stake: int) -> int:
    """Return the stake that a node has to keep to be ACTIVE, in base units: half of what registering takes."""
    return (minimum_stake + 1) // 2


def stake_short(node: Node, minimum_stake: int) -> int:
    """Return how much stake, in base units, a node lacks before it can be ACTIVE."""
    return max(0, active_stake(minimum_stake) - node.stake)


def liveness_fee(node: Node, fee: int) -> int:
    """Return what recording a node's silence pays out of its free stake, where the market's fee is `fee`."""
    return min(fee, node.stake - node.state.bond) if node.state.busy else 0


def quarantined_until(node: Node, now: int) -> int | None:
    """Return the end of a node's quarantine in chain seconds, None where it is in none."""
    return node.state.quarantine if now < node.state.quarantine else None


def may_newcomer(ask: Ask, reserved: int) -> bool:
    """Say whether a node on probation that has so much stake reserved, base units, may take one lease more."""
    return ask.probation != 0 and (reserved == 0 or reserved + ask.bond <= ask.probation)


def node_gate(node: Node, ask: Ask, now: int, dead_after: int, minimum_stake: int) -> Gate:
    """Return the first gate that keeps a node from a lease (mirrors `NodeRegistry.gate`)."""
    state, offer, needs = node.state, node.offer, ask.needs
    if state.beat == 0 or now >= state.beat + dead_after:
        return Gate.NOT_LIVE
    if stake_short(node, minimum_stake):
        return Gate.NOT_ACTIVE
    if state.status & NodeFlag.EXITING:
        return Gate.EXITING
    if now < state.quarantine:
        return Gate.QUARANTINED
    if state.busy >= offer.slots:
        return Gate.NO_SLOT
    if node.stake - state.bond < ask.bond:
        return Gate.STAKE_SHORT
    if needs.runtimes & ~offer.runtimes:
        return Gate.RUNTIME
    for gate, size in _SIZE_GATES:
        if getattr(offer, size) < getattr(needs, size):
            return gate
    if needs.exact and offer.tier != needs.tier:
        return Gate.TIER
    if needs.zone_mask and not needs.zone_mask >> offer.zone & 1:
        return Gate.ZONE
    if ask_in_force(node, now) > ask.ceiling:
        return Gate.PRICE
    if not (state.seasoned or may_newcomer(ask, state.bond)):
        return Gate.PROBATION
    return Gate.FITS


class Immutables(NamedTuple):
    """The immutables of NodeRegistry that matching reads."""

    dead_after: int
    minimum_stake: int


def fit(
    terms: Terms,
    unit: Unit,
    best: Best,
    node: Node,
    now: int,
    immutables: Immutables,
    *,
    claim: bool = False,
) -> Gate:
    """Return the first gate that keeps a node from proposing (or claiming) a unit (mirrors `Lens.fit`).

    `unit` and `best` are as stored; the lapse is applied here. An untouched lease is open since its header was. A PRICE
    that passes by itself, since open claims have not risen to the node's ask yet, is named where no other gate is shut.
    """
    read = with_lapse(terms, unit, best, now)
    if read.state != State.OPEN:
        return Gate.NOT_OPEN
    gate = node_gate(node, ask_of(terms), now, immutables.dead_after, immutables.minimum_stake)
    if gate:
        return gate
    if node.operator.lower() == terms.submitter.lower():
        return Gate.SUBMITTER
    if is_excluded(read, node.id, claim=claim):
        return Gate.EXCLUDED
    if not has_time(topped(terms, unit), now):
        return Gate.NO_TIME
    if not claim:
        return Gate.FITS
    risen = claim_ceiling(terms, max(0, now - claims_from(terms, unit)))
    return Gate.PRICE if ask_in_force(node, now) > risen else Gate.FITS


def is_excluded(read: Unit, node: NodeId, *, claim: bool) -> bool:
    """Say whether an OPEN unit (its lapse applied) excludes a node that proposes or claims it.

    Which had it last may not have it again; which let a proposal pass may claim it, once open claims have begun.
    """
    return read.node == node and not (claim and read.lapses > 0)


def score(needs: Needs, ceiling: int, rate: int, offer: Offer, state: NodeState) -> int:
    """Return S, 0..1e8: price 40 %, reputation 30 %, hardware 20 %, distance 10 %, less the load penalty."""
    p = (ceiling - rate) * BPS // ceiling
    r = reputation.reputation(state.r, state.s)
    h = (
        4 * _share(needs.vram_gib, offer.vram_gib)
        + 2 * (max(0, BPS - 100 * (offer.tier - needs.tier)) if needs.tier else BPS)
        + _share(needs.ram_gib, offer.ram_gib)
        + _share(needs.cores, offer.cores)
    ) // 8
    g = BPS - 666 * zone_distance(needs.home, offer.zone) if needs.zone_mask else BPS
    load = 300 * (state.busy * BPS // offer.slots)
    return max(0, 4000 * p + 3000 * r + 2000 * h + 1000 * g - load)


def _share(need: int, offer: int) -> int:
    return BPS if offer == 0 else need * BPS // offer


def seed(job: JobId, index: int, attempts: int) -> bytes:
    """Return the seed of a unit's lot."""
    return keccak(encode(["bytes32", "uint256", "uint256"], [job, index, attempts]))


def lot(unit_seed: bytes, node: NodeId) -> int:
    """Return a node's 40-bit lot."""
    return int.from_bytes(keccak(encode(["bytes32", "uint256"], [unit_seed, node]))[-5:], "big")


def ranked(terms: Terms, index: int, unit_score: int) -> int:
    """Return the score that a proposal's key is made of: replicas but the first go by lot alone."""
    return 0 if terms.replicas > 1 and index else unit_score


def key(unit_score: int, unit_seed: bytes, node: NodeId) -> int:
    """Return the 48-bit key of a proposal: the score's bucket, then the lot. The strictly larger key wins."""
    return unit_score // BUCKET << 40 | lot(unit_seed, node)
