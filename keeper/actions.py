"""What the keeper says: actions to send, and reasons why nothing is done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from hearth.protocol.types import JobId, NodeId

ALL: Final = -1
"""The index of an action or a Skip that means the untouched rest of an array."""


@dataclass(frozen=True, slots=True)
class _OnUnit:
    """An action on one unit; index ALL is the untouched rest of an array."""

    job: JobId
    index: int

    @property
    def id(self) -> str:
        """Name the unit."""
        return unit_id(self.job, self.index)


@dataclass(frozen=True, slots=True)
class Propose(_OnUnit):
    """Propose a node for a unit, or improve the best proposal. `follows`: an earlier lease must be proposed first."""

    node: NodeId
    key: int
    reward: int
    gas: int
    improves: bool = False
    follows: bool = False


@dataclass(frozen=True, slots=True)
class Reclaim(_OnUnit):
    """Take a unit from a node that fell silent or ran out of time."""

    node: NodeId
    reward: int
    gas: int


@dataclass(frozen=True, slots=True)
class Expire(_OnUnit):
    """Refund a unit, or for index ALL the untouched rest of an array, that cannot end before its deadline."""

    reward: int
    gas: int


@dataclass(frozen=True, slots=True)
class Close(_OnUnit):
    """End a unit whose notice is over."""

    reward: int
    gas: int


@dataclass(frozen=True, slots=True)
class Settle:
    """Settle up to 64 submitted units at once."""

    items: tuple[tuple[JobId, int], ...]
    reward: int
    gas: int

    @property
    def id(self) -> str:
        """Name the first unit and the number of the others."""
        return unit_id(*self.items[0]) + (f" and {len(self.items) - 1} more" if len(self.items) > 1 else "")


@dataclass(frozen=True, slots=True)
class CheckLiveness:
    """Record that up to 128 nodes fell silent."""

    nodes: tuple[NodeId, ...]
    reward: int
    gas: int

    @property
    def id(self) -> str:
        """Name the first node and the number of the others."""
        return node_id(self.nodes[0]) + (f" and {len(self.nodes) - 1} more" if len(self.nodes) > 1 else "")


Action = Propose | Reclaim | Expire | Close | Settle | CheckLiveness


@dataclass(frozen=True, slots=True)
class Skip:
    """Say why nothing is done about a unit ("0x.../3", "0x.../all") or a node ("node 7")."""

    id: str
    reason: str


def unit_id(job: JobId, index: int) -> str:
    """Return the name of a unit in actions, skips and logs."""
    return f"0x{job.hex()}/{'all' if index == ALL else index}"


def node_id(node: NodeId) -> str:
    """Return the name of a node in actions, skips and logs."""
    return f"node {node}"


def ids_of(action: Action) -> tuple[str, ...]:
    """Return the names of everything that an action touches."""
    if isinstance(action, Settle):
        return tuple(unit_id(job, index) for job, index in action.items)
    if isinstance(action, CheckLiveness):
        return tuple(node_id(node) for node in action.nodes)
    return (action.id,)


def verb_of(action: Action) -> str:
    """Return an action's name for logs, metrics and people."""
    if isinstance(action, Propose):
        return "improve" if action.improves else "propose"
    if isinstance(action, CheckLiveness):
        return "check_liveness"
    return type(action).__name__.lower()
