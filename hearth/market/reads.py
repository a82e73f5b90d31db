"""Typed reads of one market, each pinned to a block.

Reads name a block by number, hash or tag; readers that must agree with each other name one block by its hash, so that
a reorg between two of them is an error and not a mixture. Terms come from logs and are believed only after their id
was recomputed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, TypeVar

from hearth.base.errors import ChainError, NotFoundError
from hearth.chain.port import Block, BlockRef, Call, ChainPort, Log, Topics
from hearth.market.abi import codec, no_answer
from hearth.market.calls import Calls, Upkeep, UpkeepOp, candidate, packed_terms, token_call
from hearth.market.events import Event, JobPosted, decode, decode_of, topic_of
from hearth.market.identity import Identity
from hearth.market.network import Network
from hearth.market.strays import Strays
from hearth.market.views import ask, values_of
from hearth.protocol import formulas, words
from hearth.protocol.parents import parents_hash, unpack_parents
from hearth.protocol.types import (
    SENTINEL,
    ZERO_ADDRESS,
    Accused,
    Best,
    Gate,
    Header,
    JobId,
    Kept,
    Node,
    NodeId,
    Policy,
    State,
    Terms,
    Unit,
    UnitFlag,
)
from hearth.protocol.words import TermsWords

RANGE: Final = 10_000
"""Blocks that are searched at once for posts whose blocks are not known."""
PAGE: Final = 256
"""Nodes, jobs or units that Lens returns at once."""
NODE_WORDS: Final = 7
NODE_BYTES: Final = 32 * NODE_WORDS
"""A node in a Lens page: owner, operator, stake, offer, hot, next_ask, exit_at."""
Value = TypeVar("Value")


def as_written(unpack: Callable[..., Value], *said: Any) -> Value:
    """Return what `unpack` reads in a contract's words. Raises ChainError RPC_BROKEN where no contract writes them."""
    try:
        return unpack(*said)
    except ValueError as error:
        raise ChainError(
            f"the RPC serves words that no contract writes: {error}", code="RPC_BROKEN", hint="hearth doctor"
        ) from error


def job_of(word: int) -> Header | Unit:
    """Return what a job's own word says: an array's header, or a one-lease job's unit. Raises as `as_written` does."""
    return as_written(words.unpack_header, word) if words.is_header(word) else as_written(words.unpack_unit, word)


@dataclass(frozen=True, slots=True)
class UnitView:
    """A unit as stored: its lapse is not applied (`protocol.with_lapse` does)."""

    unit: Unit
    second: int
    accused: Accused

    @property
    def best(self) -> Best:
        """Return the best proposal; meaningful only while the unit is OPEN with a proposal. Raises ChainError."""
        if not self.unit.window_end:
            return Best()
        return as_written(words.unpack_best, self.second)

    @property
    def kept(self) -> bytes | None:
        """Return the result's digest as storage keeps it, from SUBMITTED on; None for a unit without STORE."""
        kept = self.unit.flags & UnitFlag.STORE and self.unit.state.has_result
        return self.second.to_bytes(32, "big") if kept else None


@dataclass(frozen=True, slots=True)
class UnitStatus:
    """A unit as stored, its job's own word, and the checkpoints that its attempt was resumed from, by attempt.

    Of an unknown job `job` is 0 and the unit has no state, as has one that a one-lease job does not have.
    """

    job: int
    view: UnitView
    kept: Mapping[int, Kept]


@dataclass(frozen=True, slots=True)
class Posted:
    """A job as its log posted it, its id recomputed, and the list of its parents found to be the one of its terms."""

    job_id: JobId
    terms: Terms
    packed: TermsWords
    parents: tuple[bytes, ...]
    log: Log


@dataclass(frozen=True, slots=True)
class Policies:
    """What a post may name: `word`, and `previous` while `now < until`. Posts are paused while `now < paused_until`."""

    word: int
    previous: int
    until: int
    paused_until: int

    @property
    def policy(self) -> Policy:
        """Return the parameters of new jobs."""
        return words.unpack_policy(self.word)

    def takes(self, word: int, now: int) -> bool:
        """Say whether a post of the second `now` may name the parameters `word`, pauses aside."""
        return word == self.word or (word == self.previous and now < self.until)


@dataclass(frozen=True, slots=True)
class Seats:
    """Who sits in a market's Steward: addresses, zero for nobody; a change waits `delay` seconds."""

    council: str
    offered_council: str
    guardian: str
    delay: int

    @property
    def seated(self) -> tuple[str, ...]:
        """Return who may drop changes and pause."""
        return tuple(seat for seat in (self.council, self.guardian) if seat != ZERO_ADDRESS)


@dataclass(frozen=True, slots=True)
class Totals:
    """The registry's counters: ids are 1 .. next_id - 1; burnt and total stake in base units."""

    next_id: int
    hour: int
    burnt: int
    total: int


@dataclass(frozen=True, slots=True)
class Overview:
    """A market as a whole, at the block `number` of the second `time` (protocol.md "Lens"). Amounts in base units.

    `asset` is an address, zero for the native coin; `held` is Escrow's balance of it, `tracked` what Escrow counts, 0
    on a native market. `jobs` were posted, the last one in the block `last_post`. The two pauses of posts and
    registrations end at their seconds, 0 for none; `minimum_stake` is a new registration's.
    """

    chain_id: int
    number: int
    time: int
    asset: str
    held: int
    tracked: int
    jobs: int
    last_post: int
    totals: Totals
    policies: Policies
    registrations_paused_until: int
    minimum_stake: int


def node_of(node: NodeId, record: bytes) -> Node:
    """Decode one 224-byte record of a Lens page. Raises ValueError for one that no contract writes."""
    at = [int.from_bytes(record[i : i + 32], "big") for i in range(0, NODE_BYTES, 32)]
    owner, operator, stake, offer, hot, next_ask, exit_at = at
    return Node(
        id=node,
        owner=f"0x{owner:040x}",
        operator=f"0x{operator:040x}",
        stake=stake,
        offer=words.unpack_offer(offer),
        state=words.unpack_node_state(hot),
        next_ask=next_ask & (1 << 80) - 1,
        next_ask_at=next_ask >> 80,
        exit_at=exit_at,
    )


class Market:
    """Read one market over a chain port. `calls` builds what can be sent to it.

    Every read raises ChainError where no answer comes, and RPC_BROKEN where its words are such that no contract writes.
    """

    def __init__(self, port: ChainPort, network: Network) -> None:
        self.port = port
        self.network = network
        self.calls = Calls(network)
        self.identity = Identity(port, network)
        self.strays = Strays()
        """Logs that were stepped over, since this reader began."""
        self._names = {address: name for name, address in network.contracts.items()}

    def job_id(self, terms: Terms | TermsWords) -> JobId:
        """Return the id that these terms have on this market."""
        return formulas.job_id_of_words(self.network.job_chain_id, self.network.jobs, packed_terms(terms))

    # ---- logs ----

    def events_in(self, logs: Iterable[Log]) -> Iterator[Event]:
        """Yield the events of the market's contracts among logs, in their order.

        Logs of others are left out; one under a contract's address that it never writes is stepped over too, and
        counted in `strays`: no log stops a reader.
        """
        for log in logs:
            event = self._event_in(log)
            if event is not None:
                yield event

    def _event_in(self, log: Log) -> Event | None:
        name = self._names.get(log.address)
        if name is None:
            return None
        try:
            event = decode_of(log, name)
            if isinstance(event, JobPosted):
                self.posted_of(event)
        except (ChainError, ValueError) as error:
            self.strays.note(log, str(error))
            return None
        return event

    # ---- jobs ----

    def posted(
        self, *, from_block: int, to_block: int, job_ids: Sequence[JobId] | None = None, submitter: str | None = None
    ) -> list[Posted]:
        """Return the jobs posted in a range, their ids recomputed, oldest first: all, or those of some ids, not none.

        Of strays see `events_in`.
        """
        topics: Topics = (topic_of(JobPosted), job_ids, None if submitter is None else _topic_address(submitter))
        logs = self.port.logs([self.network.jobs], topics, from_block=from_block, to_block=to_block)
        found: dict[JobId, Posted] = {}
        for event in self.events_in(logs):
            if isinstance(event, JobPosted):
                if event.job_id in found:
                    self.strays.note(event.log, f"job 0x{event.job_id.hex()[:12]} is posted already")
                else:
                    found[event.job_id] = self.posted_of(event)
        return list(found.values())

    def newest(self, count: int, head: Block) -> list[Posted]:
        """Return the last `count` jobs up to a block, newest first, by the logs of the blocks of their posts alone.

        JobRegistry knows how many jobs there are and the block of the last one, and each JobPosted names the block of
        the one before. Where contracts see other numbers than those of the chain's own blocks, as on Arbitrum, ranges
        are searched instead. Raises ChainError RPC_LIES where the logs do not lead from each job to the one before it.
        """
        seen = self.overview(head.hash)
        if seen.number != head.number:
            return self._newest_in_ranges(count, seen.jobs, head)
        number, at, found = seen.jobs, seen.last_post, list[Posted]()
        while number and len(found) < count:
            here = [event for event in self._posts_in(at, at) if event.number <= number]
            for event in sorted(here, key=lambda event: event.number, reverse=True):
                if event.number != number:
                    break
                found.append(self.posted_of(event))
                number, before = number - 1, event.previous
            else:
                if here and (not number or before < at):
                    at = before
                    continue
            raise _no_post(number, f"in block {at}")
        return found[:count]

    def _newest_in_ranges(self, count: int, number: int, head: Block) -> list[Posted]:
        """Return what `newest` does, of `number` jobs, by ranges of blocks back from a block."""
        found, last, start = list[Posted](), head.number, self.network.deploy_block
        while number and len(found) < count:
            if last < start:
                raise _no_post(number, f"from block {start} to {head.number}")
            first = max(start, last - RANGE + 1)
            here = {event.number: event for event in self._posts_in(first, last)}
            while number in here and len(found) < count:
                found.append(self.posted_of(here[number]))
                number -= 1
            last = first - 1
        return found

    def _posts_in(self, first: int, last: int) -> list[JobPosted]:
        """Return the posts of a range, those that are of no contract's writing aside."""
        logs = self.port.logs([self.network.jobs], (topic_of(JobPosted),), from_block=first, to_block=last)
        return [event for event in self.events_in(logs) if isinstance(event, JobPosted)]

    def posted_in(self, log: Log) -> Posted | None:
        """Return the job that a log posts; None for any other log. Raises ChainError where its id is not its own."""
        event = decode(log)
        return self.posted_of(event) if isinstance(event, JobPosted) else None

    def posted_of(self, event: JobPosted) -> Posted:
        """Return the job that an event posts. Raises ChainError for terms of another job, ValueError for none."""
        if self.job_id(event.terms) != event.job_id:
            raise ChainError(
                f"the RPC serves a job 0x{event.job_id.hex()} whose terms have another id",
                code="RPC_LIES",
                hint="hearth doctor",
            )
        terms = words.unpack_terms(event.terms)
        if parents_hash(event.parents) != terms.parents_hash:
            raise ChainError(
                f"the RPC serves a job 0x{event.job_id.hex()} that waits for other jobs than it was posted for",
                code="RPC_LIES",
                hint="hearth doctor",
            )
        unpack_parents(event.parents)
        if terms.submitter != event.submitter:
            raise ChainError(
                f"the RPC serves a job 0x{event.job_id.hex()} under another submitter than its own",
                code="RPC_LIES",
                hint="hearth doctor",
            )
        return Posted(event.job_id, terms, event.terms, event.parents, event.log)

    def terms_of(self, job_id: JobId) -> Posted:
        """Return a job's terms from its log.

        Raises NotFoundError where it was never posted, ChainError where it was and no log can be had that posts it.
        """
        return self.terms_of_all([job_id])[job_id]

    def terms_of_all(self, job_ids: Sequence[JobId]) -> dict[JobId, Posted]:
        """Return the terms of some jobs, by their ids, from one search of the logs. Raises what `terms_of` raises."""
        if not job_ids:
            return {}  # no id at all would ask for every job
        head = self.port.head()
        logged = self.posted(from_block=self.network.deploy_block, to_block=head.number, job_ids=job_ids)
        found = {posted.job_id: posted for posted in logged}
        for job_id in job_ids:
            if job_id in found:
                continue
            if self.job_word(job_id, head.hash):
                raise ChainError(
                    f"job 0x{job_id.hex()} is on {self.network.name}, and the RPC serves no log that posts it",
                    code="RPC_LIES",
                    hint="hearth doctor",
                )
            raise NotFoundError(f"there is no job 0x{job_id.hex()} on {self.network.name}", hint="hearth jobs --all")
        return found

    def load(self, job_id: JobId, index: int, block: BlockRef = "latest") -> tuple[int, int, int, int]:
        """Return (job word, unit word, auxiliary slot, accused) as stored."""
        job, unit, second, accused = self._view("JobRegistry", "load", job_id, index, block=block)
        return job, unit, second, accused

    def job_word(self, job_id: JobId, block: BlockRef = "latest") -> int:
        """Return a job's word: a unit's, an array's header, or 0 for a job that was never posted."""
        return self.load(job_id, 0, block)[0]

    def header(self, job_id: JobId, block: BlockRef = "latest") -> Header | None:
        """Return an array's header, None for a one-lease job. Raises NotFoundError for an unknown job."""
        word = self.job_word(job_id, block)
        if word == 0:
            raise _no_job(job_id)
        told = job_of(word)
        return told if isinstance(told, Header) else None

    def unit(self, job_id: JobId, index: int = 0, block: BlockRef = "latest") -> UnitView:
        """Return a unit, its lapse not applied.

        An untouched lease of an array is OPEN since the header's time, BLOCKED while the array waits for its parents,
        or CANCELLED once it is closed. Raises NotFoundError for an unknown job. Whether the index exists only the
        terms can say.
        """
        job, unit, second, accused = self.load(job_id, index, block)
        if job == 0:
            raise _no_job(job_id)
        if not words.is_header(job):
            return as_written(_view_of, job, second, accused)
        return as_written(_lease, as_written(words.unpack_header, job), index, unit, second, accused)

    def units(
        self, job_id: JobId, first: int, count: int, block: BlockRef = "latest", header: Header | None = None
    ) -> list[UnitView]:
        """Return `count` leases of an array from `first` on, in pages through Lens. `header` spares a call: the
        array's, of the same block."""
        header = header or self.header(job_id, block)
        if header is None:
            return [self.unit(job_id, 0, block)]
        found: list[UnitView] = []
        while len(found) < count:
            start = first + len(found)
            wanted = min(PAGE, count - len(found))
            page = self._page("units", job_id, start, wanted, count=wanted, block=block)
            found.extend(as_written(_lease, header, start + i, *view) for i, view in enumerate(page))
        return found

    def statuses(self, places: Sequence[tuple[JobId, int]], block: BlockRef = "latest") -> list[UnitStatus]:
        """Return the unit at each place, a job's id and an index, in pages through Lens.

        An untouched lease of an array is as `unit` says, its lapse is not applied.
        """
        headers: dict[int, Header] = {}
        found: list[UnitStatus] = []
        for start in range(0, len(places), PAGE):
            asked = list(places[start : start + PAGE])
            page = self._page("status", asked, count=len(asked), block=block)
            for (_, index), (job, word, second, accused, kept) in zip(asked, page, strict=True):
                if words.is_header(job):
                    if job not in headers:
                        headers[job] = as_written(words.unpack_header, job)
                    view = as_written(_lease, headers[job], index, word, second, accused)
                else:
                    view = as_written(_view_of, word, second, accused)
                found.append(UnitStatus(job, view, as_written(_resumed, view.unit.resume, kept)))
        return found

    def stored(
        self, jobs: Sequence[Posted], block: BlockRef, ahead: Callable[[str], None] = lambda what: None
    ) -> Iterator[tuple[Posted, Header | None, list[UnitStatus]]]:
        """Yield each job that the chain knows, its header if it is an array, and its touched units, no lapse applied.

        All of them share the pages of Lens: neither a job nor an array costs a call of its own. What the chain does not
        know is a stray log's. `ahead` is called with what is read next before each page, and may raise.
        """
        for start in range(0, len(jobs), PAGE):
            ahead(f"its jobs, {len(jobs)} in all")
            known: list[tuple[Posted, UnitStatus, Header | None]] = []
            page = jobs[start : start + PAGE]
            for one, first in zip(page, self.statuses([(one.job_id, 0) for one in page], block), strict=True):
                if first.job:
                    told = job_of(first.job)
                    known.append((one, first, told if isinstance(told, Header) else None))
                else:
                    self.strays.note(one.log, f"job 0x{one.job_id.hex()[:12]} is not on the chain")
            rest = self._rest_of(
                [(one.job_id, header.touched) for one, _, header in known if header is not None], block, ahead
            )
            for one, first, header in known:
                touched = 1 if header is None else header.touched
                yield one, header, [first, *islice(rest, touched - 1)] if touched else []

    def _rest_of(
        self, arrays: list[tuple[JobId, int]], block: BlockRef, ahead: Callable[[str], None]
    ) -> Iterator[UnitStatus]:
        """Yield the touched units of arrays but for each one's first, a page at a time."""
        places = ((job, index) for job, touched in arrays for index in range(1, touched))
        while page := list(islice(places, PAGE)):
            ahead("its arrays")
            yield from self.statuses(page, block)

    def unit_now(self, terms: Terms | TermsWords, index: int, block: BlockRef = "latest") -> UnitView:
        """Return a unit with its lapse applied at the block's time, as every guard reads it."""
        (view,) = self._view("Lens", "unit", packed_terms(terms), index, block=block)
        return as_written(_view_of, *view)

    def job_words(self, job_ids: Sequence[JobId], block: BlockRef = "latest") -> list[int]:
        """Return many jobs' words, in pages through Lens."""
        return self._pages("jobs", wanted=job_ids, block=block)

    def fit(
        self, terms: Terms | TermsWords, index: int, node: NodeId, *, claim: bool = False, block: BlockRef = "latest"
    ) -> Gate:
        """Return the first gate that keeps a node from proposing (or claiming) a unit."""
        (code,) = self._view("Lens", "fit", packed_terms(terms), index, node, claim, block=block)
        return as_written(Gate, code)

    def claimable_from(
        self, terms: Terms | TermsWords, index: int, rate: int, *, block: BlockRef = "latest"
    ) -> int | None:
        """Return the first second at which a node that asks `rate` may claim an open unit, None where it never may."""
        (second,) = self._view("Lens", "claimable_from", packed_terms(terms), index, rate, block=block)
        return None if second == SENTINEL else second

    def score(
        self, terms: Terms | TermsWords, index: int, node: NodeId, block: BlockRef = "latest"
    ) -> tuple[int, int, int]:
        """Return (rate in force, score, key) of a node for a unit, whatever the gates say."""
        rate, score, key = self._view("Lens", "score", packed_terms(terms), index, node, block=block)
        return rate, score, key

    def overview(self, block: BlockRef = "latest") -> Overview:
        """Return the market as a whole, by one call."""
        (found,) = self._view("Lens", "overview", block=block)
        chain_id, number, time, asset, held, tracked, posted, totals, *rest = found
        policy, previous, until, paused_until, registrations, minimum_stake = rest
        end = as_written(words.unpack_posted, posted)
        return Overview(
            *(chain_id, number, time, str(asset).lower(), held, tracked, end.count, end.block),
            Totals(**words.unpack(words.TOTALS, totals)),
            Policies(policy, previous, until, paused_until),
            *(registrations, minimum_stake),
        )

    def policies(self, block: BlockRef = "latest") -> Policies:
        """Return the parameters that new jobs may name."""
        current, held, previous, until, paused_until = self._view("Rules", "policies", block=block)
        # After a pause the held one stays where it is, in force, until the next is set.
        return Policies(current or held, previous, until, paused_until)

    def seats(self, block: BlockRef = "latest") -> Seats:
        """Return who sits in the Steward, and how long a change waits there."""
        council, offered, guardian, delay = (
            self.immutable("Steward", name, block) for name in ("council", "offered_council", "guardian", "DELAY")
        )
        return Seats(council.lower(), offered.lower(), guardian.lower(), int(delay))

    def change(self, change: bytes, block: BlockRef = "latest") -> int:
        """Return what the Steward holds of a change: 0 for never queued, DROPPED, EXECUTED, or the second it is due."""
        (state,) = self._view("Steward", "changes", change, block=block)
        return int(state)

    def governor(self, contract: str, block: BlockRef = "latest") -> str:
        """Return who governs "Rules" or "NodeRegistry", zero for nobody."""
        return str(self.immutable(contract, "governor", block)).lower()

    def policy(self, block: BlockRef = "latest") -> Policy:
        """Return the current parameters of new jobs."""
        return self.policies(block).policy

    # ---- nodes ----

    def totals(self, block: BlockRef = "latest") -> Totals:
        """Return the registry's counters."""
        (word,) = self._view("NodeRegistry", "totals", block=block)
        return Totals(**words.unpack(words.TOTALS, word))

    def node(self, node: NodeId, block: BlockRef = "latest") -> Node:
        """Return one node. Raises NotFoundError for an id that was never given out."""
        data = self._raw("NodeRegistry", "get", node, block=block)
        if len(data) != NODE_BYTES:
            raise no_answer("NodeRegistry.get", data)
        found = as_written(node_of, node, data)
        if found.owner == ZERO_ADDRESS:
            raise NotFoundError(f"there is no node {node} on {self.network.name}", hint="hearth net workers")
        return found

    def _node_ranges(self, block: BlockRef, next_id: int | None = None) -> Iterator[tuple[int, int]]:
        """Yield (first id, how many) of the pages that hold every node."""
        end = self.totals(block).next_id if next_id is None else next_id
        for first in range(1, end, PAGE):
            yield first, min(PAGE, end - first)

    def node_pages(self, block: BlockRef, next_id: int | None = None) -> Iterator[tuple[NodeId, bytes]]:
        """Yield (first id, records) for every node: 224 bytes each, for readers that keep columns.

        `next_id` spares a call: the totals' of the same block.
        """
        for first, count in self._node_ranges(block, next_id):
            data = self._raw("Lens", "nodes", first, count, block=block)
            if len(data) != 64 + count * NODE_BYTES or int.from_bytes(data[32:64], "big") != count:
                raise no_answer("Lens.nodes", data)
            yield NodeId(first), data[64:]

    def nodes(self, block: BlockRef, next_id: int | None = None) -> list[Node]:
        """Return every node, those that left included (their owner is kept, their operator is zero).

        `next_id` as in `node_pages`.
        """
        found: list[Node] = []
        for first, records in self.node_pages(block, next_id):
            for i in range(len(records) // NODE_BYTES):
                record = records[i * NODE_BYTES : (i + 1) * NODE_BYTES]
                found.append(as_written(node_of, NodeId(first + i), record))
        return found

    def gates(self, ask: formulas.Ask, block: BlockRef = "latest") -> list[Gate]:
        """Return the first gate that keeps each node, from id 1 on, from a job that asks this, posted or not.

        It is NodeRegistry's answer: of a job's submitter, its units and its time it knows nothing. A node that left
        is NOT_LIVE.
        """
        packed = (words.pack_needs(ask.needs), ask.ceiling, ask.bond, ask.probation)
        found: list[Gate] = []
        for first, count in self._node_ranges(block):
            found.extend(
                as_written(Gate, code) for code in self._page("gates", packed, first, count, count=count, block=block)
            )
        return found

    def last_seen(self, node: NodeId, block: BlockRef = "latest") -> int:
        """Return the time of a node's last beat, 0 for never."""
        (beat,) = self._view("NodeRegistry", "last_seen", node, block=block)
        return int(beat)

    def offered_operator(self, node: NodeId, block: BlockRef = "latest") -> str:
        """Return the address whose first beat takes a node over, zero for none."""
        (operator,) = self._view("NodeRegistry", "offered_operator", node, block=block)
        return str(operator).lower()

    def check_upkeep(self, candidates: Iterable[Upkeep], block: BlockRef = "latest") -> list[Upkeep]:
        """Return the candidates that are due."""
        _, due = self._view("Lens", "checkUpkeep", [candidate(c) for c in candidates], block=block)
        return [
            Upkeep(as_written(UpkeepOp, op), None if op == UpkeepOp.LIVENESS else terms, index, count)
            for op, terms, index, count in due
        ]

    # ---- checkpoints ----

    def kept(self, job_id: JobId, index: int, leases: int, attempt: int, block: BlockRef = "latest") -> Kept:
        """Return the checkpoint that a lost lease of a unit left, all zero for none."""
        key = formulas.unit_key(job_id, index, leases)
        (word,) = self._view("JobRegistry", "checkpoints", key, attempt, block=block)
        return as_written(words.unpack_kept, word)

    # ---- money ----

    def credit(self, account: str, block: BlockRef = "latest") -> int:
        """Return what an account can withdraw, in base units."""
        (amount,) = self._view("Escrow", "credit", account, block=block)
        return int(amount)

    def locked(self, controller: str, key: bytes, block: BlockRef = "latest") -> int:
        """Return what is locked under (controller, key), in base units."""
        (amount,) = self._view("Escrow", "locked", controller, key, block=block)
        return int(amount)

    def locks(self, controller: str, keys: Sequence[bytes], block: BlockRef = "latest") -> list[int]:
        """Return what is locked under each key of a controller, in base units, in pages through Lens."""
        return self._pages("locks", controller, wanted=keys, block=block)

    def credits(self, accounts: Sequence[str], block: BlockRef = "latest") -> list[int]:
        """Return what each account can withdraw, in base units, in pages through Lens."""
        return self._pages("credits", wanted=accounts, block=block)

    def tracked(self, block: BlockRef = "latest") -> int:
        """Return the sum of all locks and credits as Escrow keeps it on an ERC-20 market; 0 on a native one."""
        (amount,) = self._view("Escrow", "tracked", block=block)
        return int(amount)

    def asset_balance(self, account: str, block: BlockRef = "latest") -> int:
        """Return an account's balance of the market's asset, in base units."""
        token = self.network.asset.address
        if token is None:
            return self.port.balance(account, block)
        return self._token_view("balanceOf", account, block=block)

    def allowance(self, owner: str, spender: str, block: BlockRef = "latest") -> int:
        """Return what `spender` may take of an owner's tokens; unlimited for the native coin."""
        if self.network.asset.address is None:
            return SENTINEL
        return self._token_view("allowance", owner, spender, block=block)

    # ---- calling ----

    def immutable(self, contract: str, name: str, block: BlockRef = "latest") -> Any:
        """Return a constant or immutable of a contract through its getter."""
        (value,) = self._view(contract, name, block=block)
        return value

    def _raw(self, contract: str, name: str, *args: Any, block: BlockRef) -> bytes:
        return ask(self.port, self.network, contract, name, *args, block=block)

    def _view(self, contract: str, name: str, *args: Any, block: BlockRef) -> tuple[Any, ...]:
        return values_of(self.port, self.network, contract, name, *args, block=block)

    def _pages(self, name: str, *args: Any, wanted: Sequence[Any], block: BlockRef) -> list[int]:
        """Return Lens' answer of a word for each that is wanted, which is the last argument of the view."""
        found: list[int] = []
        for start in range(0, len(wanted), PAGE):
            page = list(wanted[start : start + PAGE])
            found += self._page(name, *args, page, count=len(page), block=block)
        return found

    def _page(self, name: str, *args: Any, count: int, block: BlockRef) -> list[Any]:
        """Return a page of Lens that has an entry for each that was asked for. Raises ChainError where it has not."""
        data = self._raw("Lens", name, *args, block=block)
        (page,) = codec("Lens").decode_output(name, len(args), data)
        if len(page) != count:
            raise no_answer(f"Lens.{name}", data)
        return list(page)

    def _token_view(self, name: str, *args: str, block: BlockRef) -> int:
        token = self.network.asset.address or ZERO_ADDRESS
        data = self.port.call(Call(token, token_call(name, *args), label=f"token.{name}"), block)
        if len(data) < 32:
            raise no_answer(f"token.{name}", data)
        return int.from_bytes(data[:32], "big")


def _topic_address(address: str) -> bytes:
    return bytes(12) + bytes.fromhex(address[2:])


def _no_post(number: int, where: str) -> ChainError:
    return ChainError(
        f"the RPC serves no log of the market's job {number} {where}", code="RPC_LIES", hint="hearth doctor"
    )


def _no_job(job_id: JobId) -> NotFoundError:
    return NotFoundError(f"there is no job 0x{job_id.hex()}", hint="hearth jobs --all")


def _resumed(attempt: int, kept: Sequence[int]) -> dict[int, Kept]:
    """Return by attempt the checkpoints that one resumed from, of which each names the one before it.

    Raises ChainError where they are not those that are named.
    """
    found: dict[int, Kept] = {}
    for word in kept:
        if not attempt or attempt in found:
            raise no_answer("Lens.status", bytes(32))
        found[attempt] = words.unpack_kept(word)
        attempt = found[attempt].resume
    if attempt and len(found) < formulas.MAX_RESUMED:
        raise no_answer("Lens.status", bytes(32))
    return found


def _view_of(word: int, second: int, accused: int) -> UnitView:
    return UnitView(words.unpack_unit(word), second, words.unpack_accused(accused))


def _lease(header: Header, index: int, word: int, second: int, accused: int) -> UnitView:
    """Read a lease of an array: an untouched one is as the header says, open, blocked, or gone with a closed array."""
    if word:
        return _view_of(word, second, accused)
    state = State.BLOCKED if header.waiting else State.OPEN
    if header.closed and index >= header.touched:
        state = State.CANCELLED
    return UnitView(Unit(state=state, started=header.opened), 0, Accused())
