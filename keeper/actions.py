"""What a decision says, pure: actions to send, and reasons why nothing is done.

An action knows its effect: its kind, what it is about, its transaction's key in the journal, and its call.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from hearth.protocol.parents import Parent, pack_parents
from hearth.protocol.types import SENTINEL, JobId, NodeId
from hearth.protocol.words import TermsWords

if TYPE_CHECKING:
    from hearth.chain.port import Call
    from hearth.market.calls import Calls

ALL: Final = -1
"""The index of an action or a Skip that means the untouched rest of an array."""

Packed = Callable[[JobId], TermsWords]
"""Return a job's terms as the contracts take them."""


def unit_id(job: JobId, index: int) -> str:
    """Return the name of a unit in actions, skips and logs."""
    return f"0x{job.hex()}/{'all' if index == ALL else index}"


def node_id(node: NodeId) -> str:
    """Return the name of a node in actions, skips and logs."""
    return f"node {node}"


def name_of(ids: Sequence[str]) -> str:
    """Return one name for several things: the first one's, whole, and the number of the others."""
    return ids[0] + (f" and {len(ids) - 1} more" if len(ids) > 1 else "")


@dataclass(frozen=True, slots=True)
class Skip:
    """Say why nothing is done about a unit ("0x.../3", "0x.../all") or a node ("node 7")."""

    id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Rest(Skip):
    """Say that nothing is proposed for a node, or for a unit's whole job, for a while, since proposals were lost."""


# ---- what is sent ----


@dataclass(frozen=True, slots=True, kw_only=True)
class Action(ABC):
    """Something to send: `reward` is what it earns, in base units, `gas` what it is expected to use."""

    reward: int
    gas: int

    @property
    @abstractmethod
    def kind(self) -> str:
        """Return the action's name in logs, metrics, the journal and for people."""

    @property
    @abstractmethod
    def ids(self) -> tuple[str, ...]:
        """Name everything that the action touches."""

    @property
    def id(self) -> str:
        """Name what the action is about, in one line."""
        return name_of(self.ids)

    @property
    def why(self) -> str:
        """Say to people what the action brings."""
        return f"earns {self.reward}"

    def tx_key(self, block: int) -> str:
        """Return the key in the transaction journal of the action as decided at `block`: signed for once."""
        return f"{self.kind}/{self.id}/{block}"

    @abstractmethod
    def call(self, calls: Calls, packed: Packed, payee: str) -> Call:
        """Return the call that carries the action out; `payee` is credited."""


@dataclass(frozen=True, slots=True)
class _OnUnit(Action):
    """An action on one unit; index ALL is the untouched rest of an array."""

    job: JobId
    index: int

    @property
    def ids(self) -> tuple[str, ...]:
        return (unit_id(self.job, self.index),)


@dataclass(frozen=True, slots=True)
class Propose(_OnUnit):
    """Propose a node for a unit, or improve the best proposal. `follows`: an earlier lease must be proposed first."""

    node: NodeId
    key: int
    improves: bool = False
    follows: bool = False

    @property
    def kind(self) -> str:
        return "improve" if self.improves else "propose"

    @property
    def why(self) -> str:
        return f"node {self.node}, earns {self.reward}"

    def call(self, calls: Calls, packed: Packed, payee: str) -> Call:
        # The contract takes only the next untouched lease. One that follows it in this cycle is named NEXT, so that it
        # can be simulated now and still is the lease of its index when it is mined.
        index = SENTINEL if self.follows else self.index
        return calls.propose(packed(self.job), index, self.node, payee)


@dataclass(frozen=True, slots=True)
class Reclaim(_OnUnit):
    """Take a unit from a node that fell silent or ran out of time."""

    kind: ClassVar[str] = "reclaim"
    node: NodeId

    @property
    def why(self) -> str:
        return f"node {self.node}, earns {self.reward}"

    def call(self, calls: Calls, packed: Packed, payee: str) -> Call:
        return calls.reclaim(packed(self.job), self.index, payee)


@dataclass(frozen=True, slots=True)
class Expire(_OnUnit):
    """Refund a unit, or for index ALL the untouched rest of an array, that cannot end before its deadline."""

    kind: ClassVar[str] = "expire"

    def call(self, calls: Calls, packed: Packed, payee: str) -> Call:
        return calls.expire(packed(self.job), SENTINEL if self.index == ALL else self.index, payee)


@dataclass(frozen=True, slots=True)
class Unlock(_OnUnit):
    """Open a job whose parents ended as asked or, where one did not, refund it; index ALL is a whole array."""

    kind: ClassVar[str] = "unlock"
    parents: tuple[Parent, ...]
    opens: bool

    @property
    def why(self) -> str:
        ended = "its parents ended as asked" if self.opens else "a parent ended otherwise than asked: refunded"
        return f"{ended}, earns {self.reward}"

    def call(self, calls: Calls, packed: Packed, payee: str) -> Call:
        return calls.unlock(packed(self.job), pack_parents(self.parents), payee)


@dataclass(frozen=True, slots=True)
class Close(_OnUnit):
    """End a unit whose notice is over."""

    kind: ClassVar[str] = "close"

    def call(self, calls: Calls, packed: Packed, payee: str) -> Call:
        return calls.close(packed(self.job), self.index, payee)


@dataclass(frozen=True, slots=True)
class Settle(Action):
    """Settle up to 64 submitted units at once."""

    kind: ClassVar[str] = "settle"
    items: tuple[tuple[JobId, int], ...]

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(unit_id(job, index) for job, index in self.items)

    def call(self, calls: Calls, packed: Packed, payee: str) -> Call:
        if len(self.items) == 1:
            job, index = self.items[0]
            return calls.settle(packed(job), index, payee)
        return calls.settle_batch([(packed(job), index) for job, index in self.items], payee)


@dataclass(frozen=True, slots=True)
class CheckLiveness(Action):
    """Record that up to 128 nodes fell silent."""

    kind: ClassVar[str] = "check_liveness"
    nodes: tuple[NodeId, ...]

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(node_id(node) for node in self.nodes)

    def call(self, calls: Calls, packed: Packed, payee: str) -> Call:
        return calls.check_liveness(self.nodes, payee)
