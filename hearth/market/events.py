"""The events of the contracts: log to frozen value.

Layouts come from the committed ABIs at first use and must match the classes below, name by name. Every JobRegistry
event after JobPosted carries the unit's new word, so a reader needs nothing else. Addresses are in lower case. Source:
contracts/interfaces/*.vyi.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, Final, NamedTuple

from hearth.base.errors import ChainError, HearthError
from hearth.chain.port import Log
from hearth.market.abi import codec, signature_of, type_of
from hearth.market.changes import Change, ChangeOp
from hearth.market.contracts import CONTRACTS
from hearth.protocol import words
from hearth.protocol.types import SENTINEL, JobId, NodeId, Outcome, Terms, Verdict
from hearth.protocol.words import TermsWords

TERMS_BYTES: Final = 9 * 32
"""The nine words of the terms, at the start of JobPosted's data."""
MAX_NODE: Final = 1 << 32
"""A node's number is below it: it has 32 bits of a unit's word."""
MAX_UNITS: Final = 1 << 24
"""A unit's index is below it: their number has 24 bits of the terms."""
MAX_ATTEMPT: Final = 15
"""The last attempt of a unit: it has 4 bits of its word."""
MAX_SECONDS: Final = 1 << 24
"""What a lease has run is below it: seconds have 24 bits of a kept checkpoint."""
MAX_TIME: Final = 1 << 53
"""Seconds up to which a time is shown as a number."""


@dataclass(frozen=True, slots=True)
class Event:
    """A decoded log; `log` says which contract emitted it, and where in the chain."""

    log: Log


# ---- JobRegistry ----


@dataclass(frozen=True, slots=True)
class JobPosted(Event):
    """A job was posted and funded. The id is recomputed from the terms by `Market`, never trusted."""

    job_id: JobId
    submitter: str
    terms: TermsWords
    parents: tuple[bytes, ...]
    number: int
    """From 1: the first job of a market is the first that was posted."""
    previous: int
    """The block of the job posted before, 0 for the first."""


@dataclass(frozen=True, slots=True)
class UnitEvent(Event):
    """A unit moved; `word` is its new 256-bit word, for index ALL the array's header."""

    job_id: JobId
    index: int


@dataclass(frozen=True, slots=True)
class NodeUnitEvent(UnitEvent):
    """A unit moved by or for a node."""

    node: NodeId
    word: int


@dataclass(frozen=True, slots=True)
class Proposed(NodeUnitEvent):
    """A better proposal; `best` is the packed best proposal."""

    best: int


@dataclass(frozen=True, slots=True)
class Started(NodeUnitEvent):
    """A node acked or claimed."""

    session_key: bytes


@dataclass(frozen=True, slots=True)
class Submitted(NodeUnitEvent):
    """A node submitted a result; both digests are sha2-256."""

    result: bytes
    report: bytes


@dataclass(frozen=True, slots=True)
class Declined(NodeUnitEvent):
    """A node declined."""

    report: bytes


@dataclass(frozen=True, slots=True)
class GaveUp(NodeUnitEvent):
    """A node gave up a lease that it could not bring to a result."""

    report: bytes


@dataclass(frozen=True, slots=True)
class Settled(NodeUnitEvent):
    """A unit was settled; `pay` includes `fee`."""

    pay: int
    fee: int


@dataclass(frozen=True, slots=True)
class Finished(NodeUnitEvent):
    """A node submitted a result that was settled at once; both digests are sha2-256, `pay` includes `fee`."""

    result: bytes
    report: bytes
    pay: int
    fee: int


@dataclass(frozen=True, slots=True)
class Closing(NodeUnitEvent):
    """The submitter gave notice to a running unit."""


@dataclass(frozen=True, slots=True)
class Closed(NodeUnitEvent):
    """A unit whose notice ran out was closed; `pay` includes `fee`."""

    pay: int
    fee: int


@dataclass(frozen=True, slots=True)
class Checkpointed(NodeUnitEvent):
    """A lease named the files of which another attempt can resume it: their root's digest, seconds after its start."""

    seconds: int
    root: bytes


@dataclass(frozen=True, slots=True)
class CheckpointPaid(UnitEvent):
    """A checkpoint that an attempt had left earned its share of a result; `pay` includes `fee`."""

    node: NodeId
    attempt: int
    pay: int
    fee: int


@dataclass(frozen=True, slots=True)
class ToppedUp(NodeUnitEvent):
    """The submitter gave a running unit more time for `amount`."""

    amount: int


@dataclass(frozen=True, slots=True)
class Unlocked(UnitEvent):
    """A job's parents have ended: it is open now or, where one ended otherwise than asked, was refunded `refund`."""

    word: int
    refund: int


@dataclass(frozen=True, slots=True)
class Reclaimed(NodeUnitEvent):
    """A unit was taken from a node that failed."""


@dataclass(frozen=True, slots=True)
class Disputed(NodeUnitEvent):
    """The job's judge holds a unit while it looks at it."""


@dataclass(frozen=True, slots=True)
class Ruled(NodeUnitEvent):
    """The job's judge said what becomes of a unit; `pay` includes `fee`, `taken` is the bond that the node lost."""

    verdict: int
    pay: int
    fee: int
    taken: int


@dataclass(frozen=True, slots=True)
class Unproven(NodeUnitEvent):
    """A unit whose terms ask for a proof ended without one."""


@dataclass(frozen=True, slots=True)
class Cancelled(UnitEvent):
    """A unit, or for index ALL the untouched rest of an array, was cancelled."""

    word: int
    refund: int


@dataclass(frozen=True, slots=True)
class Expired(UnitEvent):
    """A unit, or for index ALL the untouched rest of an array, expired."""

    word: int
    refund: int


@dataclass(frozen=True, slots=True)
class PolicyChanged(Event):
    """New jobs take `policy`; the previous one is accepted until `until`."""

    policy: int
    previous: int
    until: int


# ---- Rules and NodeRegistry ----


@dataclass(frozen=True, slots=True)
class Paused(Event):
    """Posts or registrations are paused until `until`."""

    until: int


@dataclass(frozen=True, slots=True)
class GovernorOffered(Event):
    """A new governor was named and has yet to accept."""

    governor: str


@dataclass(frozen=True, slots=True)
class GovernorChanged(Event):
    """A governor accepted."""

    governor: str


@dataclass(frozen=True, slots=True)
class ChangeQueued(Event):
    """A market's council announced a change: what `op` does with `word`, from the second `due` on."""

    change: bytes
    op: int
    word: int
    salt: int
    due: int


@dataclass(frozen=True, slots=True)
class ChangeDropped(Event):
    """A queued change was taken back."""

    change: bytes


@dataclass(frozen=True, slots=True)
class ChangeExecuted(Event):
    """A queued change was carried out."""

    change: bytes
    op: int
    word: int


@dataclass(frozen=True, slots=True)
class CouncilOffered(Event):
    """The council's seat was offered to an account that has yet to accept."""

    council: str


@dataclass(frozen=True, slots=True)
class CouncilChanged(Event):
    """A council took its seat."""

    council: str


@dataclass(frozen=True, slots=True)
class GuardianChanged(Event):
    """A guardian was seated, or with the zero address none."""

    guardian: str


# ---- NodeRegistry ----


@dataclass(frozen=True, slots=True)
class NodeEvent(Event):
    """Something about a node changed."""

    node: NodeId


@dataclass(frozen=True, slots=True)
class NodeRegistered(NodeEvent):
    """A node was registered."""

    owner: str
    operator: str
    offer: int
    stake: int
    manifest: bytes


@dataclass(frozen=True, slots=True)
class OfferChanged(NodeEvent):
    """A node's offer or manifest changed."""

    offer: int
    manifest: bytes


@dataclass(frozen=True, slots=True)
class AskChanged(NodeEvent):
    """A node's ask changes at `at`."""

    ask: int
    at: int


@dataclass(frozen=True, slots=True)
class OperatorOffered(NodeEvent):
    """A node's owner named another operator, whose first beat takes it over; zero took an offer back."""

    operator: str


@dataclass(frozen=True, slots=True)
class OperatorChanged(NodeEvent):
    """A node has a new operator, by its first beat."""

    operator: str


@dataclass(frozen=True, slots=True)
class OwnerOffered(NodeEvent):
    """A node's owner named a new one, which has yet to accept."""

    owner: str


@dataclass(frozen=True, slots=True)
class OwnerChanged(NodeEvent):
    """A node has a new owner."""

    owner: str


@dataclass(frozen=True, slots=True)
class StakeAdded(NodeEvent):
    """Somebody added stake."""

    payer: str
    amount: int


@dataclass(frozen=True, slots=True)
class ExitStarted(NodeEvent):
    """A node leaves; its exit can finish from `at` on."""

    at: int


@dataclass(frozen=True, slots=True)
class ExitCancelled(NodeEvent):
    """A node stays."""


@dataclass(frozen=True, slots=True)
class ExitFinished(NodeEvent):
    """A node left with its stake."""

    stake: int


@dataclass(frozen=True, slots=True)
class NodeLapsed(NodeEvent):
    """Somebody was paid for showing that a node is silent."""

    payee: str
    fee: int


@dataclass(frozen=True, slots=True)
class Slashed(NodeEvent):
    """A node paid for a failed lease."""

    payee: str
    reward: int
    burnt: int


@dataclass(frozen=True, slots=True)
class Rejected(NodeEvent):
    """A judge rejected a node's result: its bond went to `shares` (as in Split), the rest was burnt."""

    shares: tuple[int, ...]
    burnt: int
    until: int


@dataclass(frozen=True, slots=True)
class Quarantined(NodeEvent):
    """A node's breaker tripped."""

    until: int


@dataclass(frozen=True, slots=True)
class MinimumStakeChanged(Event):
    """New registrations need this stake."""

    amount: int


# ---- Escrow ----


@dataclass(frozen=True, slots=True)
class Locked(Event):
    """A controller locked money under a key."""

    controller: str
    key: bytes
    amount: int


@dataclass(frozen=True, slots=True)
class CreditLocked(Event):
    """A controller locked its own credit under a key."""

    controller: str
    key: bytes
    amount: int


@dataclass(frozen=True, slots=True)
class Split(Event):
    """A controller split a lock; each share is amount << 160 | account."""

    controller: str
    key: bytes
    shares: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Withdrawn(Event):
    """An account withdrew."""

    account: str
    to: str
    amount: int


_CLASSES: Final[tuple[type[Event], ...]] = (
    *(JobPosted, Proposed, Started, Submitted, Declined, GaveUp, Settled, Finished),
    *(Closing, Closed, Reclaimed, Cancelled, Expired, Disputed, Ruled, Unproven, Unlocked),
    *(Checkpointed, CheckpointPaid, ToppedUp),
    *(PolicyChanged, Paused, GovernorOffered, GovernorChanged),
    *(ChangeQueued, ChangeDropped, ChangeExecuted, CouncilOffered, CouncilChanged, GuardianChanged),
    *(NodeRegistered, OfferChanged, AskChanged, StakeAdded),
    *(OperatorOffered, OperatorChanged, OwnerOffered, OwnerChanged),
    *(ExitStarted, ExitCancelled, ExitFinished, NodeLapsed, Slashed, Rejected, Quarantined, MinimumStakeChanged),
    *(Locked, CreditLocked, Split, Withdrawn),
)
EVENTS: Final[dict[str, type[Event]]] = {cls.__name__: cls for cls in _CLASSES}
"""Every event class by its name in the contracts."""

_Read = Callable[[Log], Any]


class _Decoder(NamedTuple):
    cls: type[Event]
    topics: int
    size: int
    reads: tuple[_Read, ...]


def _topic_reader(kind: str, position: int) -> _Read:
    if kind == "address":
        return lambda log: "0x" + log.topics[position].hex()[24:]
    if kind == "uint256":
        return lambda log: int.from_bytes(log.topics[position], "big")
    if kind == "bytes32":
        return lambda log: log.topics[position]
    raise HearthError(f"no event has an indexed {kind}")


def _word(data: bytes, offset: int) -> int:
    return int.from_bytes(data[offset : offset + 32], "big")


def _array_reader(offset: int) -> _Read:
    """Read a bytes32[] whose head word at `offset` points at it."""

    def read(log: Log) -> tuple[bytes, ...]:
        start = _word(log.data, offset)
        count = _word(log.data, start)
        end = start + 32 + 32 * count
        if end > len(log.data):
            raise _malformed(log)
        return tuple(log.data[at : at + 32] for at in range(start + 32, end, 32))

    return read


def _data_reader(kind: str, offset: int) -> tuple[_Read, int]:
    """Return the reader of a value at `offset` of the data, and the bytes of its head."""
    if kind == "uint256":
        return (lambda log: _word(log.data, offset)), 32
    if kind == "bytes32":
        return (lambda log: log.data[offset : offset + 32]), 32
    if kind == "address":
        return (lambda log: "0x" + log.data[offset + 12 : offset + 32].hex()), 32
    if kind == "bytes32[]":
        return _array_reader(offset), 32
    if kind.startswith("uint256[") and kind.endswith("]"):
        count = int(kind[8:-1])
        return (lambda log: tuple(_word(log.data, offset + 32 * i) for i in range(count))), 32 * count
    if kind.startswith("("):
        parts = kind[1:-1].split(",")
        reads = tuple(_data_reader(part, offset + 32 * i)[0] for i, part in enumerate(parts))
        return (lambda log: tuple([read(log) for read in reads])), 32 * len(parts)
    raise HearthError(f"no event carries a {kind}")


def _decoder_of(entry: dict[str, Any]) -> _Decoder:
    cls = EVENTS.get(entry["name"])
    names = [p["name"] for p in entry["inputs"]]
    if cls is None or names != [f.name for f in fields(cls) if f.name != "log"]:
        raise HearthError(f"hearth.market.events does not know the event {signature_of(entry)} of the committed ABI")
    reads: list[_Read] = []
    topics, size = 1, 0
    for parameter in entry["inputs"]:
        kind = type_of(parameter)
        if parameter["indexed"]:
            reads.append(_topic_reader(kind, topics))
            topics += 1
        else:
            read, width = _data_reader(kind, size)
            reads.append(read)
            size += width
    return _Decoder(cls, topics, size, tuple(reads))


@lru_cache(maxsize=1)
def _decoders() -> dict[bytes, _Decoder]:
    from eth_utils.crypto import keccak

    table: dict[bytes, _Decoder] = {}
    for name in CONTRACTS:
        for entry in codec(name).abi:
            if entry["type"] == "event":
                table[keccak(text=signature_of(entry))] = _decoder_of(dict(entry))
    return table


@lru_cache(maxsize=1)
def _by_class() -> dict[type[Event], tuple[bytes, _Decoder]]:
    return {decoder.cls: (topic, decoder) for topic, decoder in _decoders().items()}


def topic_of(cls: type[Event]) -> bytes:
    """Return an event's first topic."""
    return _by_class()[cls][0]


def data_bytes_of(cls: type[Event]) -> int:
    """Return the least number of bytes that an event's data has."""
    return _by_class()[cls][1].size


def _malformed(log: Log) -> ChainError:
    return ChainError(
        f"log {log.log_index} of block {log.block_number} is malformed", code="RPC_BROKEN", hint="hearth doctor"
    )


def decode(log: Log) -> Event | None:
    """Decode a log; None for a topic that no contract of Hearth emits. Raises ChainError for a malformed one."""
    decoder = _decoders().get(log.topics[0]) if log.topics else None
    if decoder is None:
        return None
    if len(log.topics) != decoder.topics or len(log.data) < decoder.size:
        raise _malformed(log)
    return decoder.cls(log, *[read(log) for read in decoder.reads])


@lru_cache(maxsize=1)
def _emitters() -> dict[type[Event], frozenset[str]]:
    """Map every event to the contracts that log it."""
    names: dict[type[Event], set[str]] = {}
    for name in CONTRACTS:
        for entry in codec(name).abi:
            if entry["type"] == "event":
                names.setdefault(EVENTS[entry["name"]], set()).add(name)
    return {cls: frozenset(found) for cls, found in names.items()}


def decode_of(log: Log, contract: str) -> Event:
    """Decode a log of a contract of Hearth. Raises ChainError or ValueError for one that this contract never writes.

    What the event says can be shown and reckoned with; whether it is true only the contracts' storage says. The id of
    a posted job is not looked at: `Market` does.
    """
    event = decode(log)
    if event is None or contract not in _emitters()[type(event)]:
        raise ValueError(f"{contract} writes no such event")
    if isinstance(event, NodeEvent | NodeUnitEvent | CheckpointPaid) and event.node >= MAX_NODE:
        raise ValueError(f"there is no node {event.node}")
    if isinstance(event, Checkpointed) and event.seconds >= MAX_SECONDS:
        raise ValueError(f"no lease runs for {event.seconds} s")
    if isinstance(event, UnitEvent):
        _check_unit(event)
    elif isinstance(event, JobPosted):
        _check_terms(words.unpack_terms(event.terms))
    elif isinstance(event, NodeRegistered | OfferChanged):
        words.unpack_offer(event.offer)
    elif isinstance(event, ChangeQueued):
        if Change(ChangeOp(event.op), event.word, event.salt).id != event.change:
            raise ValueError("it queues a change under the id of another")
    elif isinstance(event, ChangeExecuted):
        Change(ChangeOp(event.op), event.word, 0)
    if any(getattr(event, name, 0) > MAX_TIME for name in ("at", "until", "due")):
        raise ValueError("it names a time beyond reason")
    return event


def _check_terms(terms: Terms) -> None:
    """Refuse terms that no contract takes and that nothing can be divided by. Raises ValueError."""
    if not terms.chunk:
        raise ValueError("it posts leases of no unit")
    if not terms.ceiling:
        raise ValueError("it posts units that pay nothing")
    if not words.unpack_policy(terms.policy).claim_ramp:
        raise ValueError("it posts units whose price for claims never rises")


def _check_unit(event: UnitEvent) -> None:
    """Refuse an index that no job has, and a word that is none of a unit's, or for index ALL none of an array's."""
    if isinstance(event, CheckpointPaid):
        if event.index >= MAX_UNITS:
            raise ValueError(f"no job has a unit {event.index:#x}")
        if event.attempt > MAX_ATTEMPT:
            raise ValueError(f"no unit has an attempt {event.attempt}")
        return
    word: int = event.word  # type: ignore[attr-defined]
    if event.index == SENTINEL and isinstance(event, Cancelled | Expired | Unlocked):
        words.unpack_header(word)
        return
    if event.index >= MAX_UNITS:
        raise ValueError(f"no job has a unit {event.index:#x}")
    unit = words.unpack_unit(word)
    if isinstance(event, Submitted | Settled | Finished | Disputed | Ruled | Unproven) and unit.outcome is Outcome.NONE:
        raise ValueError("it names a result without an outcome")
    if isinstance(event, Ruled):
        Verdict(event.verdict)
