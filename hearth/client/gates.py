"""Which workers could take a job, at what price, and what keeps the others from it, counted and in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from hearth.protocol.types import ZERO_ADDRESS, Gate, NodeId, State

if TYPE_CHECKING:
    from hearth.client.session import Session
    from hearth.client.views import JobView
    from hearth.protocol.types import Node, Policy, Terms

GATE_WORDS: Final = {
    Gate.NOT_LIVE: "silent",
    Gate.NOT_ACTIVE: "short of the minimum stake",
    Gate.EXITING: "leaving",
    Gate.QUARANTINED: "in quarantine",
    Gate.NO_SLOT: "busy",
    Gate.STAKE_SHORT: "short of free stake for the bond",
    Gate.RUNTIME: "without the runtime",
    Gate.GPU_COUNT: "with too few GPUs",
    Gate.VRAM: "short of VRAM",
    Gate.CORES: "short of cores",
    Gate.RAM: "short of memory",
    Gate.DISK: "short of disk",
    Gate.TIER: "with weaker GPUs",
    Gate.ZONE: "in other regions",
    Gate.PRICE: "above your price",
    Gate.PROBATION: "on probation",
    Gate.SUBMITTER: "your own",
    Gate.EXCLUDED: "excluded, since it had the unit last",
}
PASSING: Final = (Gate.NO_SLOT, Gate.QUARANTINED)
"""Gates that open again by themselves: such a worker counts as one that can take the job later.

Of a fleet, QUARANTINED says that an attempt still fits between the quarantine and the deadline, NO_TIME that none does.
"""
FLEET_WORDS: Final = {**GATE_WORDS, Gate.NO_TIME: "in quarantine until too late for the deadline"}


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

    def gates(self, terms: Terms, policy: Policy, *, excluded: int = 0, topped_up: int = 0) -> Counter[Gate]:
        """Count the workers by the first gate that keeps them from a job.

        Or from a unit of it, that excludes one node and was topped up by so many seconds.
        """
        looked = self._looked(terms, policy, excluded=excluded, topped_up=topped_up)
        return Counter(gate for _, gate in looked)

    def asks(self, terms: Terms, policy: Policy, *, any_price: bool = False) -> list[int]:
        """Return the asks in force of the workers that can take a job now or later, cheapest first.

        With `any_price`, each is looked at as if the job paid what it asks: with the bond and the probation of that
        price, where it is above the job's own.
        """
        return sorted(rate for rate, gate in self._looked(terms, policy, any_price=any_price) if takers({gate: 1}))

    def _looked(
        self, terms: Terms, policy: Policy, *, excluded: int = 0, topped_up: int = 0, any_price: bool = False
    ) -> Iterator[tuple[int, Gate]]:
        """Yield each node's ask in force and the first gate that keeps it from the job.

        A gate that only time opens is named where no other is shut: a node that is busy may be too dear as well.
        """
        from hearth.protocol import formulas

        # A bond goes by the job's own price, however long a unit may run.
        ask, whole = formulas.ask_of(terms, policy), replace(terms, max_seconds=terms.max_seconds + topped_up)
        for node in self.nodes:
            rate = formulas.ask_in_force(node, self.now)
            if any_price:
                ask = formulas.ask_of(replace(terms, ceiling=max(rate, terms.ceiling)), policy)
            gate = formulas.node_gate(_idle(node), ask, self.now, self.dead_after, self.minimum_stake)
            if gate is Gate.FITS and node.operator == terms.submitter:
                gate = Gate.SUBMITTER
            if gate is Gate.FITS:
                gate = formulas.node_gate(node, ask, self.now, self.dead_after, self.minimum_stake)
                # What an idle node passes opens again when its leases end.
                if gate in (Gate.PROBATION, Gate.STAKE_SHORT):
                    gate = Gate.NO_SLOT
                if gate is Gate.QUARANTINED and not formulas.has_time(whole, policy, node.state.quarantine):
                    gate = Gate.NO_TIME
            if gate is Gate.RUNTIME and node.offer.gpu_count < terms.needs.gpu_count:
                # A worker without GPUs often has no containers either; the GPUs are what the author asked for.
                gate = Gate.GPU_COUNT
            if gate in (Gate.FITS, *PASSING) and node.id == excluded:
                gate = Gate.EXCLUDED
            yield rate, gate


def _idle(node: Node) -> Node:
    """Return a node as it is when its leases and its quarantine are over."""
    return replace(node, state=replace(node.state, busy=0, bond=0, quarantine=0))


def takers(gates: Mapping[Gate, int]) -> int:
    """Count the workers that can take a job now, or when they are free again."""
    return gates.get(Gate.FITS, 0) + sum(gates.get(gate, 0) for gate in PASSING)


def open_gates(fleet: Fleet, view: JobView) -> Counter[Gate]:
    """Count the workers by what keeps them from a job's open units: from the one that the first of them could take.

    Where nobody can take any, from the last one looked at; nothing where no unit is open.
    """
    # Of two units that exclude the same node, the one with less time of its own can be taken where any can.
    waiting = sorted((unit for unit in view.units if unit.state is State.OPEN), key=lambda unit: -unit.seconds)
    excluded = {unit.node: unit.seconds for unit in waiting}
    excluded |= {NodeId(0): 0} if view.untouched else {}
    gates: Counter[Gate] = Counter()
    for node, seconds in excluded.items():
        gates = fleet.gates(view.terms, view.policy, excluded=node, topped_up=seconds)
        if takers(gates):
            break
    return gates


def workers_in_words(gates: Mapping[Gate, int], terms: Terms | None = None) -> str:
    """Return "14 workers: 9 short of VRAM, 2 above your price -> 3 can take it".

    Of a job with a judge, whose `terms` are given, that is less than it seems: whose settings accept that judge, the
    chain does not say.
    """
    total = sum(gates.values())
    if not total:
        return "no worker is registered on this network"
    kept = ", ".join(
        f"{count} {FLEET_WORDS[gate]}" for gate, count in sorted(gates.items()) if gate is not Gate.FITS and count
    )
    noun = "worker" if total == 1 else "workers"
    judged = ""
    if terms is not None and terms.judge != ZERO_ADDRESS and takers(gates):
        judged = " where accept.attesters or accept.judges of its settings names the job's judge"
    return f"{total} {noun}{': ' + kept if kept else ''} -> {takers(gates)} can take it{judged}"
