"""Which workers could take a job, at what price, and what keeps the others from it, counted and in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from hearth.protocol.runtimes import RUNTIMES
from hearth.protocol.state_labels import STATUS_LABELS
from hearth.protocol.types import ZERO_ADDRESS, Gate, State, Status
from hearth.protocol.units import parse_rate, rate_at_most

if TYPE_CHECKING:
    from hearth.client.session import Session
    from hearth.client.views import JobView
    from hearth.protocol.types import Node, Terms
    from hearth.protocol.units import Asset

GATE_LABELS: Final = {
    Gate.NOT_LIVE: STATUS_LABELS[Status.INACTIVE],
    Gate.NOT_ACTIVE: "short of the minimum stake",
    Gate.EXITING: STATUS_LABELS[Status.EXITING],
    Gate.QUARANTINED: STATUS_LABELS[Status.SLASHED],
    Gate.NO_SLOT: "busy",
    Gate.STAKE_SHORT: "short of free stake for the bond",
    Gate.RUNTIME: "without the runtime",
    Gate.GPU_COUNT: "with too few GPUs",
    Gate.VRAM: "short of VRAM",
    Gate.CORES: "short of cores",
    Gate.RAM: "short of memory",
    Gate.DISK: "short of disk",
    Gate.TIER: "with weaker or other GPUs",
    Gate.ZONE: "in other regions",
    Gate.PRICE: "above your price",
    Gate.PROBATION: "on probation",
    Gate.SUBMITTER: "your own",
    Gate.EXCLUDED: "excluded, since it had the unit last",
}
PASSING: Final = (Gate.NO_SLOT, Gate.QUARANTINED, Gate.NOT_OPEN)
"""Gates that open again by themselves: such a worker counts as one that can take the job later.

Of a fleet, QUARANTINED says that an attempt still fits between the quarantine and the deadline, NO_TIME that none does,
and NOT_OPEN that the worker let a proposal of the unit pass: it can claim the unit once open claims have begun.
"""
FLEET_LABELS: Final = {
    **GATE_LABELS,
    Gate.NO_TIME: "quarantined until too late for the deadline",
    Gate.NOT_OPEN: "waiting for open claims, since it let the unit pass",
}
GATE_SENTENCES: Final[Mapping[Gate, str]] = {
    **{gate: f"it is {words}" for gate, words in GATE_LABELS.items()},
    Gate.NO_SLOT: "every slot that it may fill is taken",
    Gate.ZONE: "the job excludes its region",
    Gate.PROBATION: "it is on probation: leases of a low price, and few before they are settled",
    Gate.PRICE: "it asks more than the job's ceiling",
    Gate.SUBMITTER: "its operator posted the job",
    Gate.NO_TIME: "no attempt can end before the job's deadline",
    Gate.NOT_OPEN: "the unit is not open",
}
"""Why a node does not take a unit, "it" being the node: every gate but FITS, which is none."""


@dataclass(frozen=True, slots=True)
class Opening:
    """What of an open unit its job's terms do not say.

    It excludes one node, 0 for none, was topped up by so many seconds, and lets the excluded node claim it from a
    second on, the wait for its price aside; 0 for never.
    """

    excluded: int = 0
    topped_up: int = 0
    again: int = 0


@dataclass(frozen=True, slots=True)
class Fleet:
    """The nodes of a market at one block, whose time is `now`; read once, then asked as often as needed."""

    nodes: tuple[Node, ...]
    now: int
    dead_after: int
    minimum_stake: int

    @classmethod
    def read(cls, session: Session) -> Fleet:
        """Read every node that was not left, at the newest block."""
        from hearth.protocol.types import ZERO_ADDRESS

        parameters = session.network.node_parameters
        head = session.market.port.head()
        nodes = tuple(node for node in session.market.nodes(head.hash) if node.operator != ZERO_ADDRESS)
        return cls(nodes, head.timestamp, parameters.dead_after, parameters.minimum_stake)

    def gates(self, terms: Terms, opening: Opening | None = None, *, any_price: bool = False) -> Counter[Gate]:
        """Count the workers by the first gate that keeps them from a job, or from an open unit of it.

        `any_price` as in `asks`.
        """
        return Counter(gate for _, gate in self._looked(terms, opening or Opening(), any_price=any_price))

    def asks(self, terms: Terms, *, any_price: bool = False) -> list[int]:
        """Return the asks in force of the workers that can take a job now or later, cheapest first.

        With `any_price`, each is looked at as if the job paid what it asks: with the bond and the probation of that
        price, where it is above the job's own.
        """
        looked = self._looked(terms, Opening(), any_price=any_price)
        return sorted(rate for rate, gate in looked if takers({gate: 1}))

    def backed(self, terms: Terms, asset: Asset) -> str | None:
        """Return the highest price at which free stake covers the bond, where for want of it no worker can take a job.

        None where a worker can take it, or where another price is no help.
        """
        from hearth.jobfile.plan import auto_keeper_fee
        from hearth.protocol import formulas

        def at(ceiling: int) -> Terms:
            # A bond covers keeper fees as well, which go by the price where nobody names one.
            lower = replace(terms, ceiling=ceiling)
            fee = auto_keeper_fee(formulas.unit_price(lower), formulas.policy_of(terms))
            return replace(lower, keeper_fee=min(terms.keeper_fee, fee))

        def fits(node: Node, ceiling: int) -> bool:
            ask = formulas.ask_of(at(ceiling))
            return formulas.node_gate(_idle(node), ask, self.now, self.dead_after, self.minimum_stake) is Gate.FITS

        if takers(self.gates(terms)):
            return None
        best = 0
        for node in self.nodes:
            # A bond grows with the price, so that what fits at its ask fits up to some price.
            low, high = max(best, formulas.ask_in_force(node, self.now)), terms.ceiling
            if node.operator == terms.submitter or low >= high or fits(node, high) or not fits(node, low):
                continue
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if fits(node, middle) else (low, middle)
            best = low
        text = rate_at_most(best, asset)
        return text if best and takers(self.gates(at(parse_rate(text, asset)))) else None

    def _looked(self, terms: Terms, opening: Opening, *, any_price: bool = False) -> Iterator[tuple[int, Gate]]:
        """Yield each node's ask in force and the first gate that keeps it from the job.

        A gate that only time opens is named where no other is shut: a node that is busy may be too dear as well.
        """
        from hearth.protocol import formulas

        # A bond goes by the job's own price, however long a unit may run.
        ask, whole = formulas.ask_of(terms), replace(terms, max_seconds=terms.max_seconds + opening.topped_up)
        for node in self.nodes:
            rate = formulas.ask_in_force(node, self.now)
            if any_price:
                ask = formulas.ask_of(replace(terms, ceiling=max(rate, terms.ceiling)))
            gate = formulas.node_gate(_idle(node), ask, self.now, self.dead_after, self.minimum_stake)
            if gate is Gate.FITS and node.operator == terms.submitter:
                gate = Gate.SUBMITTER
            if gate is Gate.FITS:
                gate = formulas.node_gate(node, ask, self.now, self.dead_after, self.minimum_stake)
                # What an idle node passes opens again when its leases end.
                if gate in (Gate.PROBATION, Gate.STAKE_SHORT):
                    gate = Gate.NO_SLOT
                if gate is Gate.QUARANTINED and not formulas.has_time(whole, node.state.quarantine):
                    gate = Gate.NO_TIME
            if gate is Gate.RUNTIME and node.offer.gpu_count < terms.needs.gpu_count:
                # A worker without GPUs often has no containers either; the GPUs are what the author asked for.
                gate = Gate.GPU_COUNT
            if gate in (Gate.FITS, *PASSING) and node.id == opening.excluded:
                again = opening.again and opening.again + formulas.claim_wait(terms, rate)
                if not again or not formulas.has_time(whole, max(self.now, again)):
                    gate = Gate.EXCLUDED
                elif self.now < again:
                    gate = Gate.NOT_OPEN
            yield rate, gate


def _idle(node: Node) -> Node:
    """Return a node as it is when its leases and its quarantine are over."""
    return replace(node, state=replace(node.state, busy=0, bond=0, quarantine=0))


def takers(gates: Mapping[Gate, int]) -> int:
    """Count the workers that can take a job now, or when they are free again."""
    return sum(gates.get(gate, 0) for gate in (Gate.FITS, *PASSING))


def open_gates(fleet: Fleet, view: JobView) -> Counter[Gate]:
    """Count the workers by what keeps them from a job's open units: from the one that the first of them could take.

    Where nobody can take any, from the last one looked at; nothing where no unit is open.
    """
    waiting = [_opening(view, index) for index, unit in enumerate(view.units) if unit.state is State.OPEN]
    # Of units that are alike, the one that can be claimed again first can be taken where any can.
    alike = {replace(one, again=one.again > 0): one for one in sorted(waiting, key=lambda one: -one.again)}
    openings = [*alike.values(), *([Opening()] if view.untouched else [])]
    gates: Counter[Gate] = Counter()
    for opening in openings:
        gates = fleet.gates(view.terms, opening)
        if takers(gates):
            break
    return gates


def again_from(view: JobView, index: int) -> int:
    """Return from which second on the node that let an open unit pass can claim it, its price aside; 0 for never.

    A node that had the unit, and did not only let a proposal pass, can take it never again.
    """
    from hearth.protocol import formulas

    read = view.units[index]
    if formulas.is_excluded(read, read.node, claim=True):
        return 0
    return formulas.claims_from(view.terms, view.stored(index))


def _opening(view: JobView, index: int) -> Opening:
    unit = view.units[index]
    return Opening(unit.node, unit.seconds, again_from(view, index))


def workers_in_words(gates: Mapping[Gate, int], terms: Terms | None = None) -> str:
    """Return "14 workers: 9 short of VRAM, 2 above your price -> 3 can take it".

    Of a job with a judge or an image, whose `terms` are given, that is less than it seems: whose settings accept that
    judge and that image, the chain does not say.
    """
    total = sum(gates.values())
    if not total:
        return "no worker is registered on this network"
    kept = ", ".join(
        f"{count} {FLEET_LABELS[gate]}" for gate, count in sorted(gates.items()) if gate is not Gate.FITS and count
    )
    noun = "worker" if total == 1 else "workers"
    settings = []
    if terms is not None and takers(gates):
        if terms.judge != ZERO_ADDRESS:
            settings.append("accept.attesters or accept.judges of its settings names the job's judge")
        if any(kind.flag & terms.needs.runtimes and kind.program == "image" for kind in RUNTIMES.values()):
            settings.append("docker.registries and accept.images of its settings allow the image")
    where = f" where {', and '.join(settings)}" if settings else ""
    return f"{total} {noun}{': ' + kept if kept else ''} -> {takers(gates)} can take it{where}"


def open_in_words(fleet: Fleet, view: JobView, asset: Asset) -> tuple[int, str]:
    """Return how many workers can take a posted job's open units, and who they are in words."""
    gates = open_gates(fleet, view)
    words = workers_in_words(gates, view.terms)
    lower = fleet.backed(view.terms, asset) if gates.get(Gate.STAKE_SHORT) else None
    return takers(gates), words if lower is None else f"{words}; lower the price to {lower}, in a new job"
