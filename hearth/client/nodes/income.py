"""What a GPU of one model would earn: by what such nodes ask, what their jobs paid, and how busy they were.

Nothing is invented: a figure that the market's events do not give is None, and a note says what is missing. All is of
one GPU of a node: the rate of a slot of eight is divided by eight.

What a node says of itself costs it nothing: slots, GPUs, owner. Its stake does cost. So nodes are what counts. Among
the asks each counts once. In the busy share it counts by the time for which it offered, and is busy for no longer. The
rate is the middle one by the time that ran. There, and in the gas of leases, no node counts for more than the middle
node. Who has more than half of the nodes can still move all. What an owner runs on a node of its own is left out, but
one person may own nodes and pay by many wallets: so notes say where few owners or submitters had most of a figure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Final, TypeVar

from hearth.base.errors import ChainError, UsageError
from hearth.client.reading import market_events, misplaced
from hearth.client.views import strays_in
from hearth.market import events
from hearth.protocol import formulas, words
from hearth.protocol.gas import LEASE_GAS, beats_gas
from hearth.protocol.gpu_tiers import slug_of, vendor_of
from hearth.protocol.types import BPS, COIN, RATE_SCALE, NodeId, Offer, State, Status
from hearth.protocol.units import NATIVE, parse_amount, show_amount, show_rate

if TYPE_CHECKING:
    from hearth.client.reports import AskSpread, Income, NodeEstimate
    from hearth.client.session import Session
    from hearth.market.reads import Market, Posted
    from hearth.protocol.gpu_tiers import Vendor
    from hearth.protocol.types import Node

K = TypeVar("K")
DAY: Final = 86_400
MONTH: Final = 30 * DAY
JOULES: Final = 3_600_000
"""Of a kWh."""
FEW: Final = 3
"""Owners or submitters below which a note says that few made a figure."""
EVENTS: Final = (
    *(events.NodeRegistered, events.OfferChanged, events.ExitStarted, events.ExitCancelled),
    *(events.OwnerChanged, events.OperatorChanged, events.Unproven),
    *(events.JobPosted, events.Started, events.Submitted, events.Finished, events.Settled, events.Closing),
    *(events.Closed, events.Declined, events.GaveUp, events.Reclaimed, events.Disputed, events.Ruled),
)


@dataclass(slots=True)
class Lease:
    """A unit's time on a node: chain seconds from `begin` to `end` (None while it runs), and the `pay` after all, base
    units before the fee, None where nothing was paid yet. `gpus` are those of its slot."""

    node: NodeId
    submitter: str
    gpus: int
    begin: int
    end: int | None = None
    pay: int | None = None

    @property
    def seconds(self) -> int:
        """Return how long it ran, once it has ended; a run of no second counts as one."""
        assert self.end is not None
        return max(1, self.end - self.begin)

    @property
    def rate(self) -> int:
        """Return what a second of one GPU was paid, base units x 1e6."""
        assert self.pay is not None
        return self.pay * RATE_SCALE // (self.seconds * self.gpus)


@dataclass(frozen=True, slots=True)
class Offered:
    """So many slots of a node, of `gpus` each, from one second on; `end` is None while they are offered."""

    node: NodeId
    slots: int
    gpus: int
    begin: int
    end: int | None = None


@dataclass
class Past:
    """What the events of a market tell of the nodes with one model, since its first block."""

    market: Market
    vendor: Vendor
    tier: int
    leases: list[Lease] = field(default_factory=list)
    """Those that were paid, wait for it, or run; what was lost or given back is not among them."""
    lost: list[Lease] = field(default_factory=list)
    offered: list[Offered] = field(default_factory=list)
    hands: dict[NodeId, set[str]] = field(default_factory=dict)
    """Every address that ever owned or operated a node."""
    owners: dict[NodeId, str] = field(default_factory=dict)
    """The last owner of each."""

    def __post_init__(self) -> None:
        self._jobs: dict[bytes, Posted] = {}
        self._open: dict[tuple[bytes, int], Lease] = {}
        self._offers: dict[NodeId, Offer] = {}
        self._now: dict[NodeId, Offered] = {}

    def read(self, first: int, last: int) -> None:
        """Read the blocks `first` to `last`. Raises ChainError."""
        network = self.market.network
        topics = ([events.topic_of(cls) for cls in EVENTS],)
        for event in market_events(self.market, [network.nodes, network.jobs], first, last, topics):
            self.add(event)
        self.leases += self._open.values()
        self.offered += self._now.values()

    def add(self, event: events.Event) -> None:
        """Tell one event, in the order of the chain."""
        if isinstance(event, events.JobPosted):
            self._jobs.setdefault(event.job_id, self.market.posted_of(event))
        elif isinstance(event, events.NodeEvent):
            self._node(event)
        elif isinstance(event, events.NodeUnitEvent):
            posted = self._jobs.get(event.job_id)
            if why := misplaced(event, posted):
                self.market.strays.note(event.log, why)
            elif posted is not None:
                self._unit(event, posted)

    def is_own(self, lease: Lease) -> bool:
        """Say whether somebody who owned or operated the node ran it there."""
        return lease.submitter in self.hands[lease.node]

    def _node(self, event: events.NodeEvent) -> None:
        hands = self.hands.setdefault(event.node, set())
        if isinstance(event, events.NodeRegistered | events.OwnerChanged):
            self.owners[event.node] = event.owner
            hands.add(event.owner)
        if isinstance(event, events.NodeRegistered | events.OperatorChanged):
            hands.add(event.operator)
        if event.node not in self.owners:
            return
        if isinstance(event, events.NodeRegistered | events.OfferChanged):
            self._offers[event.node] = words.unpack_offer(event.offer)
        if isinstance(event, events.NodeRegistered | events.OfferChanged | events.ExitCancelled):
            self._offer(event, self._offers.get(event.node))
        elif isinstance(event, events.ExitStarted):  # from here on nothing is matched: it ends by this or by a cancel
            self._offer(event, None)

    def _offer(self, event: events.NodeEvent, offer: Offer | None) -> None:
        node = event.node
        before = self._now.pop(node, None)
        fits = offer is not None and gpus_of(offer, self.vendor, self.tier)
        if before is None and not fits:
            return
        block = self.market.port.block(event.log.block_hash)
        if block is None:
            raise ChainError("the RPC serves no block of a log that it served", code="RPC_LIES", hint="hearth doctor")
        if before is not None:
            self.offered.append(replace(before, end=block.timestamp))
        if offer is not None and fits:
            self._now[node] = Offered(node, offer.slots, offer.gpu_count, block.timestamp)

    def _unit(self, event: events.NodeUnitEvent, posted: Posted) -> None:
        key, unit = (event.job_id, event.index), words.unpack_unit(event.word)
        if isinstance(event, events.Started):
            offer = self._offers.get(event.node)
            if offer is not None and (gpus := gpus_of(offer, self.vendor, self.tier)):
                self._open[key] = Lease(event.node, posted.terms.submitter, gpus, unit.started)
            return
        lease = self._open.get(key)
        if lease is None or unit.state is State.DISPUTED:
            return
        if isinstance(event, events.Submitted):
            lease.end = unit.submitted_at
        elif isinstance(event, events.Closing):
            lease.end = unit.deadline_at  # that of its notice, up to which it is paid where nothing is handed in
        elif unit.state is not State.SUBMITTED:  # as a judge leaves it that releases it
            del self._open[key]
            lease.end, lease.pay = unit.submitted_at or lease.end, 0
            if (
                isinstance(event, events.Settled | events.Finished | events.Closed | events.Ruled)
                and lease.end is not None
            ):
                lease.pay = event.pay
            (self.leases if lease.pay else self.lost).append(lease)


def gpus_of(offer: Offer, vendor: Vendor, tier: int, *, better: bool = False) -> int:
    """Return how many GPUs of this model a slot has, or of `better` ones of the same vendor; 0 for none."""
    if vendor_of(offer.runtimes) is not vendor:
        return 0
    return offer.gpu_count if (offer.tier > tier if better else offer.tier == tier) else 0


def middle(weighted: Iterable[tuple[int, int]]) -> int | None:
    """Return the middle of (value, weight), the lower one of two; None where nothing has a weight."""
    rows = sorted(weighted)
    half, seen = sum(weight for _, weight in rows), 0
    for value, weight in rows:
        seen += weight
        if weight and 2 * seen >= half:
            return value
    return None


def capped(had: Mapping[NodeId, int]) -> dict[NodeId, int]:
    """Return what each node had, and of none more than the middle node had."""
    most = middle((value, 1) for value in had.values()) or 0
    return {node: min(value, most) for node, value in had.items()}


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen from one second to another.

    `offered` are seconds of nodes, `busy` those of them in which a GPU ran other people's jobs that were paid, or may
    yet be. `lease_gas` is that of the leases that began, for one GPU of each node. `rate` is what a second of a GPU
    paid, base units x 1e6. `hosts` are the owners by the seconds that their nodes offered; `earners` and `payers` are
    owners and submitters by the seconds of the `paid` leases. `own` counts what owners ran on nodes of their own.
    """

    nodes: int
    offered: int
    busy: int
    lease_gas: int
    rate: int | None
    paid: int
    hosts: Counter[str]
    earners: Counter[str]
    payers: Counter[str]
    own: int


def top_bps(had: Counter[str]) -> int | None:
    """Return the share of the one who had most; None where nobody had anything."""
    return max(had.values()) * BPS // had.total() if had else None


def summed(rows: Iterable[tuple[K, int]]) -> Counter[K]:
    """Return the sum of each key, but for zeros."""
    sums: Counter[K] = Counter()
    for key, value in rows:
        sums[key] += value
    return +sums


def seen(past: Past, nodes: Sequence[Node], begin: int, now: int, dead_after: int) -> Seen:
    """Return what of the past lies between two seconds.

    Beats are in no log, and the chain keeps the last one alone. So a node counts until that one let it be taken for
    dead, whatever silence was before it, and not at all without one. Of a node that has left, none is kept.
    """
    alive = {node.id: node.state.beat and node.state.beat + dead_after for node in nodes if int(node.operator, 16)}
    owner = past.owners

    def within(one: Lease | Offered) -> int:
        return max(0, min(now if one.end is None else one.end, alive.get(one.node, now), now) - max(one.begin, begin))

    offered = summed((one.node, within(one)) for one in past.offered)
    room = summed((one.node, within(one) * one.slots * one.gpus) for one in past.offered)
    others = [one for one in past.leases if not past.is_own(one)]
    busy = summed((one.node, within(one) * one.gpus) for one in others)
    begun = Counter(one.node for one in (*others, *past.lost) if one.begin >= begin and not past.is_own(one))
    gas = {node: formulas.ceil_div(LEASE_GAS * begun[node] * offered[node], room[node]) for node in room if begun[node]}
    paid = [one for one in others if one.pay and one.end is not None and one.end >= begin]
    ran = summed((one.node, one.seconds) for one in paid)
    counts = capped(ran)
    return Seen(
        nodes=len(offered),
        offered=offered.total(),
        busy=sum(offered[node] * min(busy[node], most) // most for node, most in room.items()),
        lease_gas=sum(capped(gas).values()),
        rate=middle((one.rate, one.seconds * counts[one.node] * RATE_SCALE // ran[one.node]) for one in paid),
        paid=len(paid),
        hosts=summed((owner[node], seconds) for node, seconds in offered.items()),
        earners=summed((owner[one.node], one.seconds) for one in paid),
        payers=summed((one.submitter, one.seconds) for one in paid),
        own=sum(past.is_own(one) for one in past.leases if one.end is None or one.end >= begin),
    )


@dataclass(frozen=True, slots=True)
class Costs:
    """What providing takes: `fee_bps` of a pay, wei for a unit of gas, `coin` base units for one coin (0 where nobody
    said), seconds after which a silent node is dead, and the power of a busy GPU: watts, and base units for a kWh."""

    fee_bps: int
    gas_price: int
    coin: int
    dead_after: int
    watts: int = 0
    kwh: int | None = None


@dataclass(frozen=True, slots=True)
class Figures:
    """What a span brings and takes, base units, and gas in wei too; None for what nobody said the price of."""

    pay: int
    gas_wei: int
    gas: int | None
    power: int | None
    left: int | None


def income(found: Seen, gpus: int, seconds: int, costs: Costs) -> Figures | None:
    """Return what so many GPUs of one node bring in a span; None where there is nothing to reckon by.

    Pay and profit are rounded down, costs up.
    """
    if found.rate is None or not found.offered:
        return None
    pay = found.rate * gpus * found.busy * seconds // (RATE_SCALE * found.offered)
    pay -= pay * costs.fee_bps // BPS
    beats = formulas.ceil_div(beats_gas(costs.dead_after) * seconds, DAY)
    leases = formulas.ceil_div(found.lease_gas * gpus * seconds, found.offered)
    wei = (beats + leases) * costs.gas_price
    gas = formulas.ceil_div(wei * costs.coin, COIN) if costs.coin else None
    power = None
    if costs.kwh is not None:
        power = formulas.ceil_div(costs.kwh * costs.watts * gpus * found.busy * seconds, JOULES * found.offered)
    return Figures(pay, wei, gas, power, None if gas is None else pay - gas - (power or 0))


def estimate(
    session: Session, gpu: str, *, count: int, watts: int | None, kwh: str | None, coin: str | None, days: int
) -> NodeEstimate:
    """Return what `count` GPUs of a model would earn by the market's last `days`; `Workers.estimate` says how.

    Raises UsageError, also UNKNOWN_TIER, ChainError.
    """
    vendor, tier = _model(gpu)
    kwh_units, coin_units = _prices(session, count, watts, kwh, coin, days)
    market, asset = session.market, session.asset
    head, parameters = market.port.head(), session.network.node_parameters
    start = market.port.block(session.network.deploy_block)
    begin = max(head.timestamp - days * DAY, start.timestamp if start else 0)
    session.tell("step", {"text": "reading what jobs paid and how busy nodes were"})
    past = Past(market, vendor, tier)
    past.read(session.network.deploy_block, head.number)
    nodes = market.nodes(head.hash)
    found = seen(past, nodes, begin, head.timestamp, parameters.dead_after)
    fee_bps = market.policy(head.hash).fee_bps
    costs = Costs(fee_bps, market.port.fees().price, coin_units, parameters.dead_after, watts or 0, kwh_units)
    live = [
        node
        for node in nodes
        if formulas.status(node, head.timestamp, parameters.dead_after, parameters.minimum_stake) is Status.ACTIVE
    ]
    asks = {better: _asks(session, live, head.timestamp, vendor, tier, better=better) for better in (False, True)}
    rate, span = found.rate, head.timestamp - begin
    report: NodeEstimate = {
        "schema": "hearth.estimate/1",
        "network": session.network.name,
        "block": head.number,
        "gpu": slug_of(vendor, tier),
        "gpus": count,
        "asset": asset.symbol,
        "since": begin,
        "span": span,
        "asks": asks[False],
        "better": asks[True],
        "nodes": found.nodes,
        "owners": len(found.hosts),
        "offered_seconds": found.offered,
        "busy_seconds": found.busy,
        "busy_bps": found.busy * BPS // found.offered if found.offered else None,
        "shared_bps": found.busy * BPS // (found.offered + span) if found.offered else None,
        "rate": None if rate is None else str(rate),
        "rate_text": None if rate is None else show_rate(rate, asset),
        "units": found.paid,
        "paid_owners": len(found.earners),
        "paid_submitters": len(found.payers),
        "top_owner_bps": top_bps(found.earners),
        "top_submitter_bps": top_bps(found.payers),
        "own_units": found.own,
        "fee_bps": fee_bps,
        "gas_price": str(costs.gas_price),
        "coin": str(coin_units) if coin_units else None,
        "watts": watts,
        "kwh": None if kwh_units is None else str(kwh_units),
        "day": _income(session, income(found, count, DAY, costs)),
        "month": _income(session, income(found, count, MONTH, costs)),
        "notes": _notes(found, asks[False], asks[True], span),
        **strays_in(market.strays),
    }
    return report


def _model(gpu: str) -> tuple[Vendor, int]:
    """Return who makes a model, and its key. Raises UsageError UNKNOWN_TIER."""
    from hearth.base.errors import SpecError
    from hearth.jobfile import near_tiers, tier_number, tier_slug
    from hearth.protocol.gpu_tiers import vendor_of_slug

    try:
        slug = tier_slug(gpu)
    except SpecError as error:
        near = near_tiers(gpu)
        meant = f"did you mean {' or '.join(near)}? " if near else ""
        hint = f"{meant}hearth offers lists the models that offer here, docs/protocol.md all of them"
        raise UsageError(f'"{gpu}" is no GPU model of the tier table', hint=hint, code="UNKNOWN_TIER") from error
    vendor = vendor_of_slug(slug)
    assert vendor is not None
    return vendor, tier_number(slug)


def _prices(
    session: Session, count: int, watts: int | None, kwh: str | None, coin: str | None, days: int
) -> tuple[int | None, int]:
    """Return what a kWh costs and what a coin is worth, base units. Raises UsageError."""
    example = "hearth worker estimate --help"
    for name, value in (("--count", count), ("--days", days), ("--watts", 1 if watts is None else watts)):
        if not 1 <= value <= 100_000:
            raise UsageError(f"{name} {value} is not from 1 to 100000", hint=example)
    if (watts is None) != (kwh is None):
        given, missing = ("--watts", "--kwh") if kwh is None else ("--kwh", "--watts")
        hint = f'--watts 350 --kwh "0.0001 {session.asset.symbol}", or neither'
        raise UsageError(f"{given} without {missing} says nothing of what power costs", hint=hint)
    native = session.asset.address is None
    if coin is not None and native:
        text = f"gas is paid in {session.asset.symbol} here, as jobs are: --coin says nothing"
        raise UsageError(text, hint="leave --coin out")
    worth = COIN if native else parse_amount(coin, session.asset) if coin is not None else 0
    return (None if kwh is None else parse_amount(kwh, session.asset)), worth


def _asks(session: Session, live: Sequence[Node], now: int, vendor: Vendor, tier: int, *, better: bool) -> AskSpread:
    """Return what live nodes ask for one GPU of this model, or of `better` ones; each node counts once."""
    rows = [
        (formulas.ask_in_force(node, now) // gpus, gpus * node.offer.slots, node.owner)
        for node in live
        if (gpus := gpus_of(node.offer, vendor, tier, better=better)) and node.offer.slots
    ]
    common, least = middle((ask, 1) for ask, _, _ in rows), min((ask for ask, _, _ in rows), default=None)
    owners = Counter(owner for _, _, owner in rows)
    return {
        "nodes": len(rows),
        "owners": len(owners),
        "top_owner_bps": top_bps(owners),
        "gpus": sum(gpus for _, gpus, _ in rows),
        "lowest": None if least is None else str(least),
        "lowest_text": None if least is None else show_rate(least, session.asset),
        "middle": None if common is None else str(common),
        "middle_text": None if common is None else show_rate(common, session.asset),
    }


def _income(session: Session, figures: Figures | None) -> Income | None:
    """Return the figures of a span as they are printed."""
    if figures is None:
        return None
    gas, power, left = (None if value is None else str(value) for value in (figures.gas, figures.power, figures.left))
    assets = {name: NATIVE if name == "gas_wei" else session.asset for name in asdict(figures)}
    text = {name: show_amount(value, assets[name]) for name, value in asdict(figures).items() if value is not None}
    pay, gas_wei = str(figures.pay), str(figures.gas_wei)
    return {"pay": pay, "gas_wei": gas_wei, "gas": gas, "power": power, "left": left, "text": text}


def _notes(found: Seen, asks: AskSpread, better: AskSpread, span: int) -> list[str]:
    """Say what is missing, and what makes the figures doubtful."""
    notes, rate = [], found.rate
    if not found.offered:
        notes.append("no node offered this GPU in that time: nothing here says what one would earn")
    elif rate is None:
        notes.append("no job of somebody else was paid on such a node in that time: an income would be invented")
    elif span < DAY:
        notes.append("all of it is of less than a day")
    if found.own:
        notes.append(f"units that owners ran on nodes of their own are left out: {found.own}")
    owners, submitters = len(found.earners), len(found.payers)
    if rate is not None and min(owners, submitters) < FEW:
        few = f"so few owners and submitters ({owners} and {submitters}) made the rate"
        notes.append(f"{few} that all may be one person: one can pay oneself from another wallet")
    for whose, what, people, most in (
        ("owner's nodes", "the time that was paid", owners, top_bps(found.earners)),
        ("submitter's jobs", "the time that was paid", submitters, top_bps(found.payers)),
        ("owner's nodes", "the time that was offered", len(found.hosts), top_bps(found.hosts)),
        ("owner", "the nodes that ask now", asks["owners"], asks["top_owner_bps"]),
        ("owner", "the nodes with better GPUs", better["owners"], better["top_owner_bps"]),
    ):
        if people > 1 and most is not None and 2 * most > BPS:
            notes.append(f"one {whose} had {most // 100} % of {what}")
    if rate is not None and asks["middle"] is not None and rate > int(asks["middle"]):
        why = "of units with a fixed bill that ended early, or of dearer days"
        notes.append(f"a run paid more than such nodes ask now, {asks['middle_text']} in the middle: {why}")
    return notes
