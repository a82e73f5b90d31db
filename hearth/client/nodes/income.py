"""What a GPU of one model would earn: by what such nodes ask, what their jobs paid, and how busy they were.

Nothing is invented: a figure that the market's events do not give is None, and a note says what is missing. All is of
one GPU: a slot of eight counts as eight, and its rate is divided by eight. The rate is what an hour of a run paid, the
middle one by the time that ran, so that neither an absurd price nor a thousand short jobs moves it while most of the
time is honest. What an owner runs on a node of its own earns nothing, and is left out. An owner can still pay itself
from another wallet: so the report says how many owners and submitters a figure rests on, and where few had most of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from hearth.base.errors import ChainError, UsageError
from hearth.client.reading import market_events, misplaced
from hearth.client.views import strays_in
from hearth.protocol import formulas
from hearth.protocol.gas import LEASE_GAS, beats_gas
from hearth.protocol.gpu_tiers import slug_of, vendor_of
from hearth.protocol.types import BPS, COIN, RATE_SCALE, NodeId, Offer, State, Status
from hearth.protocol.units import NATIVE, parse_amount, show_amount, show_rate

if TYPE_CHECKING:
    from hearth.client.reports import AskSpread, Income, NodeEstimate
    from hearth.client.session import Session
    from hearth.market.events import Event
    from hearth.market.reads import Market, Posted
    from hearth.protocol.gpu_tiers import Vendor
    from hearth.protocol.types import Node

DAY: Final = 86_400
MONTH: Final = 30 * DAY
JOULES: Final = 3_600_000
"""Of a kWh."""
FEW: Final = 3
"""Owners or submitters below which a note says that few made a figure."""


@dataclass(slots=True)
class Lease:
    """A unit's time on a node: chain seconds from `begin` to `end` (None while it runs), and the `pay` after all, base
    units before the fee, None where nothing was paid yet. `gpus` are those of its slot."""

    node: NodeId
    owner: str
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

    def __post_init__(self) -> None:
        self._jobs: dict[bytes, Posted] = {}
        self._open: dict[tuple[bytes, int], Lease] = {}
        self._owners: dict[NodeId, str] = {}
        self._offers: dict[NodeId, Offer] = {}
        self._now: dict[NodeId, Offered] = {}

    def read(self, first: int, last: int) -> None:
        """Read the blocks `first` to `last`. Raises ChainError."""
        from hearth.market.events import topic_of

        network = self.market.network
        topics = ([topic_of(cls) for cls in (*_node_events(), *_unit_events())],)
        for event in market_events(self.market, [network.nodes, network.jobs], first, last, topics):
            self.add(event)
        self.leases += self._open.values()
        self.offered += self._now.values()

    def add(self, event: Event) -> None:
        """Tell one event, in the order of the chain."""
        from hearth.market.events import JobPosted, NodeEvent, NodeUnitEvent

        if isinstance(event, JobPosted):
            self._jobs.setdefault(event.job_id, self.market.posted_of(event))
        elif isinstance(event, NodeEvent):
            self._node(event)
        elif isinstance(event, NodeUnitEvent):
            posted = self._jobs.get(event.job_id)
            if why := misplaced(event, posted):
                self.market.strays.note(event.log, why)
            elif posted is not None:
                self._unit(event, posted)

    def is_own(self, lease: Lease) -> bool:
        """Say whether somebody who owned or operated the node ran it there."""
        return lease.submitter in self.hands[lease.node]

    def _node(self, event: object) -> None:
        from hearth.market.events import (
            ExitCancelled,
            ExitStarted,
            NodeEvent,
            NodeRegistered,
            OfferChanged,
            OperatorChanged,
            OwnerChanged,
        )
        from hearth.protocol import words

        assert isinstance(event, NodeEvent)
        hands = self.hands.setdefault(event.node, set())
        if isinstance(event, NodeRegistered | OwnerChanged):
            self._owners[event.node] = event.owner
            hands.add(event.owner)
        if isinstance(event, NodeRegistered | OperatorChanged):
            hands.add(event.operator)
        if isinstance(event, NodeRegistered | OfferChanged):
            self._offers[event.node] = words.unpack_offer(event.offer)
        if isinstance(event, NodeRegistered | OfferChanged | ExitCancelled):
            self._offer(event, self._offers.get(event.node))
        elif isinstance(event, ExitStarted):  # from here on nothing is matched, and it ends by this or by a cancel
            self._offer(event, None)

    def _offer(self, event: Event, offer: Offer | None) -> None:
        node: NodeId = event.node  # type: ignore[attr-defined]
        before = self._now.pop(node, None)
        fits = offer is not None and gpus_of(offer, self.vendor, self.tier)
        if before is None and not fits:
            return
        block = self.market.port.block(event.log.block_hash)
        if block is None:
            raise ChainError("the RPC serves no block of a log that it served", code="RPC_LIES", hint="hearth doctor")
        if before is not None:
            ended = Offered(before.node, before.slots, before.gpus, before.begin, block.timestamp)
            self.offered.append(ended)
        if offer is not None and fits:
            self._now[node] = Offered(node, offer.slots, offer.gpu_count, block.timestamp)

    def _unit(self, event: object, posted: Posted) -> None:
        from hearth.market.events import Closing, NodeUnitEvent, Started, Submitted
        from hearth.protocol import words

        assert isinstance(event, NodeUnitEvent)
        key, unit = (event.job_id, event.index), words.unpack_unit(event.word)
        if isinstance(event, Started):
            offer, owner = self._offers.get(event.node), self._owners.get(event.node)
            if offer is not None and owner is not None and (gpus := gpus_of(offer, self.vendor, self.tier)):
                self._open[key] = Lease(event.node, owner, posted.terms.submitter, gpus, unit.started)
            return
        lease = self._open.get(key)
        if lease is None or unit.state is State.DISPUTED:
            return
        if isinstance(event, Submitted):
            lease.end = unit.submitted_at
        elif isinstance(event, Closing):
            lease.end = unit.deadline_at  # that of its notice, up to which it is paid where nothing is handed in
        elif unit.state is not State.SUBMITTED:  # as a judge leaves it that releases it
            del self._open[key]
            lease.end = unit.submitted_at or lease.end
            lease.pay = getattr(event, "pay", 0) if lease.end is not None else 0
            (self.leases if lease.pay else self.lost).append(lease)


def _node_events() -> tuple[type[Event], ...]:
    from hearth.market import events

    return (
        *(events.NodeRegistered, events.OfferChanged, events.ExitStarted, events.ExitCancelled),
        *(events.OwnerChanged, events.OperatorChanged),
    )


def _unit_events() -> tuple[type[Event], ...]:
    from hearth.market import events

    return (
        *(events.JobPosted, events.Started, events.Submitted, events.Finished, events.Settled, events.Closing),
        *(events.Closed, events.Declined, events.GaveUp, events.Reclaimed, events.Disputed, events.Ruled),
        events.Unproven,
    )


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


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen from one second to another, in GPU-seconds where it is a time.

    `offered` is the time of all slots, `busy` that of other people's jobs which were paid, or may yet be. `begun`
    counts the leases that began: each costs gas. `paid` are those that ended and were paid, `own` counts what owners
    ran on nodes of their own.
    """

    offered: int
    busy: int
    begun: int
    nodes: frozenset[NodeId]
    paid: tuple[Lease, ...]
    own: int

    @property
    def rate(self) -> int | None:
        """Return what a second of a GPU paid, base units x 1e6, the middle by the time that ran."""
        return middle((one.rate, one.seconds * one.gpus) for one in self.paid)

    def most_of(self, people: Iterable[str]) -> int | None:
        """Return the share of the paid time that one of them had, bps, of `people` by lease; None where none was."""
        times: Counter[str] = Counter()
        for who, lease in zip(people, self.paid, strict=True):
            times[who] += lease.seconds * lease.gpus
        return max(times.values()) * BPS // times.total() if times else None


def seen(past: Past, nodes: Sequence[Node], begin: int, now: int, dead_after: int) -> Seen:
    """Return what of the past lies between two seconds.

    Beats are in no log: of a node that is silent now, its slots count until it was taken for dead, and those of a node
    that never beat not at all.
    """
    alive = {node.id: min(now, node.state.beat + dead_after) if node.state.beat else 0 for node in nodes}

    def within(node: NodeId, start: int, end: int | None) -> int:
        return max(0, min(alive.get(node, now) if end is None else end, now) - max(start, begin))

    offers = [(one, within(one.node, one.begin, one.end)) for one in past.offered]
    others = [one for one in past.leases if not past.is_own(one)]
    begun = [*others, *(one for one in past.lost if not past.is_own(one))]
    offered = sum(seconds * one.slots * one.gpus for one, seconds in offers)
    busy = sum(within(one.node, one.begin, one.end) * one.gpus for one in others)
    return Seen(
        offered=offered,
        busy=min(busy, offered),
        begun=sum(one.begin >= begin for one in begun),
        nodes=frozenset(one.node for one, seconds in offers if seconds),
        paid=tuple(one for one in others if one.pay and one.end is not None and one.end >= begin),
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


def income(found: Seen, gpus: int, seconds: int, costs: Costs) -> dict[str, int | None]:
    """Return what so many GPUs of one node bring in a span, base units, and gas in wei too; None for what is unknown.

    Pay and profit are rounded down, costs up.
    """
    rate = found.rate
    if rate is None or not found.offered:
        return dict.fromkeys(("pay", "gas_wei", "gas", "power", "left"))
    pay = rate * gpus * found.busy * seconds // (RATE_SCALE * found.offered)
    pay -= pay * costs.fee_bps // BPS
    beats = formulas.ceil_div(beats_gas(costs.dead_after) * seconds, DAY)
    leases = formulas.ceil_div(LEASE_GAS * found.begun * gpus * seconds, found.offered)
    wei = (beats + leases) * costs.gas_price
    gas = formulas.ceil_div(wei * costs.coin, COIN) if costs.coin else None
    power = None
    if costs.kwh is not None:
        power = formulas.ceil_div(costs.kwh * costs.watts * gpus * found.busy * seconds, JOULES * found.offered)
    left = None if gas is None else pay - gas - (power or 0)
    return {"pay": pay, "gas_wei": wei, "gas": gas, "power": power, "left": left}


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
        "nodes": len(found.nodes),
        "owners": len({node.owner for node in nodes if node.id in found.nodes}),
        "offered_gpu_seconds": found.offered,
        "busy_gpu_seconds": found.busy,
        "busy_bps": found.busy * BPS // found.offered if found.offered else None,
        "shared_bps": found.busy * BPS // (found.offered + count * span) if found.offered else None,
        "rate": None if rate is None else str(rate),
        "rate_text": None if rate is None else show_rate(rate, asset),
        "units": len(found.paid),
        "paid_owners": len({one.owner for one in found.paid}),
        "paid_submitters": len({one.submitter for one in found.paid}),
        "top_owner_bps": found.most_of(one.owner for one in found.paid),
        "top_submitter_bps": found.most_of(one.submitter for one in found.paid),
        "own_units": found.own,
        "fee_bps": fee_bps,
        "gas_price": str(costs.gas_price),
        "coin": str(coin_units) if coin_units else None,
        "watts": watts,
        "kwh": None if kwh_units is None else str(kwh_units),
        "day": _income(session, income(found, count, DAY, costs)),
        "month": _income(session, income(found, count, MONTH, costs)),
        "notes": _notes(found, asks[False], span),
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
    """Return what live nodes ask for one GPU of this model, or of `better` ones; the middle is by GPUs."""
    rows = [
        (formulas.ask_in_force(node, now) // gpus, gpus * node.offer.slots, node.owner)
        for node in live
        if (gpus := gpus_of(node.offer, vendor, tier, better=better)) and node.offer.slots
    ]
    half, least = middle((ask, gpus) for ask, gpus, _ in rows), min((ask for ask, _, _ in rows), default=None)
    return {
        "nodes": len(rows),
        "owners": len({owner for _, _, owner in rows}),
        "gpus": sum(gpus for _, gpus, _ in rows),
        "lowest": None if least is None else str(least),
        "lowest_text": None if least is None else show_rate(least, session.asset),
        "middle": None if half is None else str(half),
        "middle_text": None if half is None else show_rate(half, session.asset),
    }


def _income(session: Session, figures: dict[str, int | None]) -> Income | None:
    """Return the figures of a span, None where there is nothing to reckon by."""
    if figures["pay"] is None:
        return None
    known = {name: None if value is None else str(value) for name, value in figures.items()}
    text = {
        name: show_amount(value, NATIVE if name == "gas_wei" else session.asset)
        for name, value in figures.items()
        if value is not None
    }
    return {
        "pay": str(figures["pay"]),
        "gas_wei": str(figures["gas_wei"]),
        "gas": known["gas"],
        "power": known["power"],
        "left": known["left"],
        "text": text,
    }


def _notes(found: Seen, asks: AskSpread, span: int) -> list[str]:
    """Say what is missing, and what makes the figures doubtful."""
    if not found.offered:
        return ["no node offered this GPU in that time: nothing here says what one would earn"]
    notes = [f"units that owners ran on nodes of their own are left out: {found.own}"] if found.own else []
    rate = found.rate
    if rate is None:
        return ["no job of somebody else was paid on such a node in that time: an income would be invented", *notes]
    if span < DAY:
        notes.append("all of it is of less than a day")
    owners, submitters = [one.owner for one in found.paid], [one.submitter for one in found.paid]
    if min(len(set(owners)), len(set(submitters))) < FEW:
        few = f"so few owners and submitters ({len(set(owners))} and {len(set(submitters))}) made the rate"
        notes.append(f"{few} that all may be one person: one can pay oneself from another wallet")
    for whose, people in (("owner's nodes", owners), ("submitter's jobs", submitters)):
        most = found.most_of(people)
        if len(set(people)) > 1 and most is not None and 2 * most > BPS:
            notes.append(f"one {whose} had {most // 100} % of the time that was paid")
    if asks["middle"] is not None and rate > int(asks["middle"]):
        why = "of units with a fixed bill that ended early, or of dearer days"
        notes.append(f"a run paid more than such nodes ask now, {asks['middle_text']} in the middle: {why}")
    return notes
