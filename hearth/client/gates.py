"""Which workers could take a job, and what keeps the others from it, counted and in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from hearth.protocol.types import Gate

if TYPE_CHECKING:
    from hearth.client.session import Session
    from hearth.protocol.types import Policy, Terms

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
"""Gates that open again by themselves: such a worker counts as one that can take the job later."""


def count_gates(session: Session, terms: Terms, policy: Policy, *, excluded: int = 0) -> Counter[Gate]:
    """Count the workers by the first gate that keeps them from a job, or from a unit that excludes one node."""
    from hearth.protocol import formulas
    from hearth.protocol.types import ZERO_ADDRESS

    parameters = session.network.node_parameters
    head = session.market.port.head()
    ask = formulas.ask_of(terms, policy)
    found: Counter[Gate] = Counter()
    for node in session.market.nodes(head.hash):
        if node.operator == ZERO_ADDRESS:
            continue
        gate = formulas.node_gate(node, ask, head.timestamp, parameters.dead_after, parameters.minimum_stake)
        if gate is Gate.FITS and node.operator == terms.submitter:
            gate = Gate.SUBMITTER
        # Both open again when the node's other leases end.
        if gate is Gate.PROBATION and ask.probation == 1:
            gate = Gate.NO_SLOT
        if gate is Gate.STAKE_SHORT and node.stake >= ask.bond:
            gate = Gate.NO_SLOT
        if gate in (Gate.FITS, *PASSING) and node.id == excluded:
            gate = Gate.EXCLUDED
        found[gate] += 1
    return found


def takers(gates: Mapping[Gate, int]) -> int:
    """Count the workers that can take a job now, or when they are free again."""
    return gates.get(Gate.FITS, 0) + sum(gates.get(gate, 0) for gate in PASSING)


def workers_in_words(gates: Mapping[Gate, int]) -> str:
    """Return "14 workers: 9 short of VRAM, 2 above your price -> 3 can take it"."""
    total = sum(gates.values())
    if not total:
        return "no worker is registered on this network"
    kept = ", ".join(
        f"{count} {GATE_WORDS[gate]}" for gate, count in sorted(gates.items()) if gate is not Gate.FITS and count
    )
    noun = "worker" if total == 1 else "workers"
    return f"{total} {noun}{': ' + kept if kept else ''} -> {takers(gates)} can take it"
