"""Read the jobs that concern a node at one block, within a bound that no number of jobs and units moves.

Own leases are read at every block, and those for which something is gathered here: what is not read would look lost.
All other open leases share PAGES calls a block, first those that this node was proposed for, since an ack has its time,
then each job in its turn, whoever read it least recently first. So a stranger's arrays cost others' a wait, and nobody
a beat or an ack. Source: docs/decisions/0020-bound-what-a-round-reads.md.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from hearth.base.errors import ChainError, NotFoundError
from hearth.chain.port import Block
from hearth.market.reads import PAGE, Market, UnitView
from hearth.protocol import words
from hearth.protocol.formulas import MAX_UINT, Ask, Immutables, ask_of, lapses_at, node_gate
from hearth.protocol.types import MAX_ATTEMPTS, Accused, Gate, Header, JobId, Node, NodeFlag, NodeId, State, Terms, Unit
from worker.decide import OURS, Job, Lease, Reason, Saved, SpecFacts, Target

JOBS: Final = 16 * PAGE
"""Jobs without a lease of the node's whose words are read per block, in pages."""
PAGES: Final = 32
"""Calls per block for open leases of all jobs together; each reads PAGE units at most."""
PAGES_LED: Final = 24
"""The most of them for leases that this node was proposed for, so that such proposals never keep all others unread."""
KEEP: Final = 64
"""Blocks for which what has ended is kept, in case a reorganisation brings it back; a deeper one starts anew."""
GLANCE: Final = PAGE
"""Jobs that the node's offer can never serve whose words are read per block, to see whether they are over. More are
not posted in one: a post takes more than 80,000 gas."""


@dataclass(slots=True)
class Row:
    """A job that may concern this node.

    `leases` are touched indices worth reading, `seen` those that ever were, `own` those that are this node's as far as
    is known, `lost` those that were and the block where they were not any more. `led` are those that a proposal gives
    to this node, until a chain second. `listed` and `paged` are the rounds in which the job's word and one of its pages
    were read last, `next` where its next page begins.

    `since` are first sights of own attempts, `unread` tries to read its spec that came to nothing, `given_back` units
    that this machine could not run, `in_vain` how often since an ack something was fetched for its matches in vain, and
    `gather_at` until when nothing more is, `paid` the block of an own attempt's end and what it brought. `saved` are
    checkpoints by index and attempt, the oldest first, each with its block: the newest, and what a reorganisation may
    bring back. `unheard` is by the same how often in a row the chain was asked in vain what it has kept. `over` are the
    blocks of units' ends.
    """

    id: JobId
    terms: Terms
    posted: int
    leases: set[int] = field(default_factory=set)
    own: set[int] = field(default_factory=set)
    seen: set[int] = field(default_factory=set)
    lost: dict[int, int] = field(default_factory=dict)
    led: dict[int, int] = field(default_factory=dict)
    saved: dict[tuple[int, int], list[tuple[int, Saved]]] = field(default_factory=dict)
    over: dict[int, int] = field(default_factory=dict)
    paid: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    since: dict[tuple[int, int], int] = field(default_factory=dict)
    listed: int = 0
    paged: int = 0
    next: int = 0
    spec: SpecFacts | None = None
    unread: int = 0
    given_back: int = 0
    in_vain: int = 0
    unheard: dict[tuple[int, int], int] = field(default_factory=dict)
    gather_at: int = 0
    retry_at: int = 0
    retry_why: str = ""
    ended: int | None = None
    told: set[Reason] = field(default_factory=set)
    """For which reasons of this worker's own the log has said that it leaves the job alone."""
    gate: Gate | None = None
    """What the node's offer fails of it, whatever its state; None until that was looked at."""

    def hold(self, index: int) -> None:
        """Note that a lease is this node's."""
        self.leases.add(index)
        self.seen.add(index)
        self.own.add(index)

    def lose(self, index: int, block: int) -> None:
        """Note that a lease is not this node's, as of a block."""
        if index in self.own:
            self.own.remove(index)
            self.lost[index] = block

    def save(self, index: int, saved: Saved, block: int) -> None:
        """Note the checkpoint of an attempt, and forget those before it which no reorganisation brings back."""
        lines = [line for line in self.saved.get((index, saved.attempt), []) if line[0] < block]
        final = max((at for at, _ in lines if at <= block - KEEP), default=0)
        self.saved[index, saved.attempt] = [*(line for line in lines if line[0] >= final), (block, saved)]

    def forget(self, number: int) -> None:
        """Drop what block `number` makes final: leases that were lost, and what units that have ended had saved."""
        self.lost = {index: block for index, block in self.lost.items() if number <= block + KEEP}
        final = {index for index, block in self.over.items() if number > block + KEEP}
        self.saved = {attempt: lines for attempt, lines in self.saved.items() if attempt[0] not in final}
        self.over = {index: block for index, block in self.over.items() if index not in final}

    def step_back(self, fork: int) -> None:
        """Take back what was learnt from the block `fork` on, and read again what ended there."""
        self.since = {attempt: block for attempt, block in self.since.items() if block < fork}
        self.paid = {attempt: line for attempt, line in self.paid.items() if line[0] < fork}
        left = {attempt: [line for line in lines if line[0] < fork] for attempt, lines in self.saved.items()}
        self.saved = {attempt: lines for attempt, lines in left.items() if lines}
        self.over = {index: block for index, block in self.over.items() if block < fork}
        self.own |= {index for index, block in self.lost.items() if block >= fork}
        self.leases |= self.seen
        if self.ended is not None and self.ended >= fork:
            self.ended = None


@dataclass(slots=True)
class _Sight:
    """What one block has shown of a job so far: its word, and units as stored."""

    row: Row
    word: int
    header: Header | None
    views: dict[int, UnitView] = field(default_factory=dict)

    @property
    def whole(self) -> bool:
        """Say whether everything that is worth reading was read."""
        return self.row.leases <= self.views.keys()


class RowReader:
    """Read rows of one node's, a block after the other. `waiting` are the jobs that the last one had no room for."""

    def __init__(self, market: Market, node: NodeId) -> None:
        self.waiting: set[JobId] = set()
        self._market = market
        self._node = node
        self._round = 0

    def is_own(self, unit: Unit) -> bool:
        """Say whether a unit is leased to the node."""
        return unit.state in OURS and unit.node == self._node

    def read(
        self,
        rows: Sequence[Row],
        others: Sequence[Row],
        head: Block,
        target: Target | None,
        ahead: Mapping[JobId, set[int]],
    ) -> tuple[Job, ...]:
        """Return the jobs of the rows that have their turn, in the rows' order; of `others` learn which are over.

        `ahead` are leases that must be read as own ones are, at most one a slot.
        """
        self._round += 1
        for row in rows:
            row.led = {index: until for index, until in row.led.items() if head.timestamp < until}
        chosen, glanced = self._choose(rows, target, ahead), self._glance(others, head)
        found = self._market.job_words([row.id for row in (*chosen, *glanced)], head.hash)
        for row, word in zip(glanced, found[len(chosen) :], strict=True):
            if _over(word):
                row.ended = head.number
        found = found[: len(chosen)]
        sights = [self._sight(row, word) for row, word in zip(chosen, found, strict=True)]
        for sight in sights:
            # A job whose post left the chain has no units, though this node held some of them.
            must = sight.row.own | sight.row.leases & ahead.get(sight.row.id, set())
            for first, count in _pages(must - sight.views.keys()) if sight.word else ():
                self._look(sight, first, count, head)
        self._share(sights, head, target)
        read = {sight.row.id for sight in sights if sight.whole}
        jobs = tuple(self._job(sight, head) for sight in sights)
        self.waiting = {row.id for row in rows if row.gate is Gate.FITS and row.ended is None} - read
        return jobs

    def _glance(self, rows: Sequence[Row], head: Block) -> list[Row]:
        """Return whose words are read of jobs that never fit; those whose time is over have ended."""
        for row in rows:
            if head.timestamp > row.terms.deadline:
                row.ended = head.number
        turn = sorted((row for row in rows if row.ended is None), key=lambda row: row.listed)[:GLANCE]
        for row in turn:
            row.listed = self._round
        return turn

    def _choose(self, rows: Sequence[Row], target: Target | None, ahead: Collection[JobId]) -> list[Row]:
        """Return the rows whose words are read: those that must be, and those whose turn it is."""
        named = {*ahead} if target is None else {*ahead, target.job}
        others = [row for row in rows if not row.own and row.id not in named]
        if len(others) > JOBS:
            others.sort(key=lambda row: (not row.led, row.listed, -row.posted))
        turn = {row.id for row in others[:JOBS]}
        chosen = [row for row in rows if row.own or row.id in named or row.id in turn]
        for row in chosen:
            # A new job's units wait as long as those of the others: by new ones nobody gets ahead.
            row.paged = row.paged if row.listed else self._round - 1
            row.listed = self._round
        return chosen

    def _sight(self, row: Row, word: int) -> _Sight:
        """Take what a job's word says: all of a one-lease job, but for the best proposal."""
        sight = _Sight(row, word, words.unpack_header(word) if words.is_header(word) else None)
        if word and sight.header is None:
            unit = words.unpack_unit(word)
            row.leases.add(0)
            if not unit.window_end:
                sight.views[0] = UnitView(unit, 0, Accused())
        return sight

    def _share(self, sights: Sequence[_Sight], head: Block, target: Target | None) -> None:
        """Spend the block's calls for open leases: the target's first, then led ones, then a page a job in its turn."""
        # A job that never fits is here for its own leases.
        turn = [sight for sight in sights if sight.word and sight.row.gate is Gate.FITS and not sight.whole]
        turn.sort(key=lambda sight: sight.row.paged)
        left = PAGES
        if target is not None:
            mine = [sight for sight in turn if sight.row.id == target.job]
            left -= self._deal(mine, 1, lambda sight: target.index or 0, head)
        left -= self._deal(turn, min(left, PAGES_LED), _led, head)
        self._deal(turn, left, lambda sight: None if sight.whole else sight.row.next, head)

    def _deal(self, turn: Sequence[_Sight], most: int, start: Callable[[_Sight], int | None], head: Block) -> int:
        """Read a page of each job in turn, and again, while there is one to start and at most so many; return them."""
        spent = 0
        while True:
            before = spent
            for sight in turn:
                index = start(sight) if spent < most else None
                if index is not None:
                    self._page(sight, index, head)
                    spent += 1
            if spent == before:
                return spent

    def _page(self, sight: _Sight, start: int, head: Block) -> None:
        """Read the next units of a job that are worth it, from an index on or else from its first."""
        row = sight.row
        unread = sorted(row.leases - sight.views.keys())
        first, count = next(_pages([index for index in unread if index >= start] or unread))
        self._look(sight, first, count, head)
        row.paged, row.next = self._round, first + count

    def _look(self, sight: _Sight, first: int, count: int, head: Block) -> None:
        """Read units with one call, and keep those of them that are worth it."""
        header, row = sight.header, sight.row
        if header is None:
            try:
                sight.views[0] = self._market.unit(row.id, 0, head.hash)
            except NotFoundError as error:
                raise ChainError(
                    f"the RPC shows job {row.id.hex()[:12]} and denies it, at one block",
                    code="RPC_LIES",
                    hint="hearth worker doctor",
                ) from error
            return
        for index, view in enumerate(self._market.units(row.id, first, count, head.hash, header), start=first):
            if index in row.leases or index in row.own:
                sight.views[index] = view

    def _job(self, sight: _Sight, head: Block) -> Job:
        """Say what was seen, and learn which leases are worth reading again."""
        row, header = sight.row, sight.header
        leases: list[Lease] = []
        for index, view in sorted(sight.views.items()):
            own = self.is_own(view.unit)
            if own or view.unit.state in (State.OPEN, State.BLOCKED):
                leases.append(self._lease(row, index, view, own, head))
            else:
                row.leases.discard(index)
            if not own:
                row.lose(index, head.number)
            until = lapses_at(row.terms, view.unit)
            if view.best.node == self._node and head.timestamp < until:
                row.led[index] = until
            else:
                row.led.pop(index, None)
        if header is not None:
            over = header.closed or header.touched >= row.terms.leases
            # What was not read may be this node's, or open.
            row.ended = head.number if over and not row.leases else None
        elif sight.word == 0:
            # Posted in a block that is gone; its log will be read again if it comes back.
            row.ended = head.number
        else:
            row.ended = head.number if words.unpack_unit(sight.word).state.terminal else None
        return Job(row.id, row.terms, tuple(leases), header, row.spec, row.retry_at, row.retry_why)

    def _lease(self, row: Row, index: int, view: UnitView, own: bool, head: Block) -> Lease:
        since = 0
        if own:
            row.hold(index)
            since = row.since.setdefault((index, view.unit.attempts), head.number)
        attempts = range(min(view.unit.attempts, MAX_ATTEMPTS), 0, -1) if row.saved else ()
        saved = tuple(row.saved[index, attempt][-1][1] for attempt in attempts if (index, attempt) in row.saved)
        return Lease(index, view.unit, view.best, since, saved)


def able(node: Node, immutables: Immutables) -> Node:
    """Return the node as its offer alone makes it: awake, unhurt, idle, at the lower of its two prices."""
    state = replace(node.state, beat=1, busy=0, bond=0, quarantine=0, status=NodeFlag(0))
    # A price that is pending may fit later.
    offer = replace(node.offer, pending=False, ask=min(node.offer.ask, node.next_ask or node.offer.ask))
    return replace(node, state=state, offer=offer, stake=max(node.stake, immutables.minimum_stake))


def never_fits(terms: Terms, node: Node, immutables: Immutables) -> Gate:
    """Return the gate that the offer of an able node fails: sizes, runtimes, zone or price; else FITS."""
    ask: Ask = ask_of(terms)._replace(bond=0, probation=MAX_UINT)
    return node_gate(node, ask, 1, immutables.dead_after, immutables.minimum_stake)


def _over(word: int) -> bool:
    """Say whether a job's word shows that no node without a lease of it can take one; 0 is a post that is gone."""
    if word and words.is_header(word):
        return words.unpack_header(word).closed
    return not word or words.unpack_unit(word).state.terminal


def _led(sight: _Sight) -> int | None:
    """Return the unread lease that this node was proposed for, and whose ack would be late first."""
    unread = sight.row.led.keys() & sight.row.leases - sight.views.keys()
    return min(unread, key=lambda index: (sight.row.led[index], index), default=None)


def _pages(indices: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Cover indices by pages: yield the first index and the number of units of each, at most PAGE."""
    left = sorted(indices)
    while left:
        count = bisect_left(left, left[0] + PAGE)
        yield left[0], left[count - 1] - left[0] + 1
        left = left[count:]
