"""Hypothesis strategies for whole markets: small fleets and jobs in every state, around one point in time.

Fields that are drawn each for itself hardly ever make up a market in which a keeper has something to do. So most jobs
are drawn as ones about which something is to be done, and most nodes as ones that fit. Few of Hypothesis' examples are
independent of each other, so that each market has several kinds of jobs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from hypothesis import strategies as st

from bench import fleets
from hearth.protocol import formulas, words
from hearth.protocol.formulas import Immutables
from hearth.protocol.parents import Condition, Parent
from hearth.protocol.types import (
    Best,
    Billing,
    Header,
    JobId,
    Needs,
    Node,
    NodeFlag,
    NodeId,
    Outcome,
    Runtime,
    State,
    Terms,
    TermsFlag,
    Unit,
    UnitFlag,
)
from keeper.fleet import Fleet, encode_node
from keeper.snapshot import JobRow, ParentWord, Snapshot, UnitRow
from keeper.trust import Record
from tests.kit import build

NOW = 1_700_000_000
IMMUTABLES = Immutables(dead_after=900, minimum_stake=100)
KEEPER = "0x" + "ee" * 20
OTHER = "0x" + "dd" * 20
RATE = 10**6


@dataclass(frozen=True)
class Case:
    """A snapshot with the nodes that its fleet was written from."""

    snapshot: Snapshot
    nodes: tuple[Node, ...]


def write_fleet(nodes: tuple[Node, ...]) -> Fleet:
    fleet = Fleet()
    fleet.write(NodeId(1), b"".join(encode_node(node) for node in nodes))
    return fleet


def case_of(
    nodes: tuple[Node, ...],
    jobs: tuple[JobRow, ...],
    *,
    gas_price: int = 0,
    fee: int = 5,
    records: dict[NodeId, Record] | None = None,
    parents: dict[JobId, ParentWord] | None = None,
) -> Case:
    view = write_fleet(nodes).at(NOW, IMMUTABLES)
    return Case(Snapshot(100, NOW, view, jobs, fee, gas_price, records or {}, parents or {}), nodes)


def node(number: int, **changes: object) -> Node:
    """Return a live, seasoned node with two slots and stake for many leases."""
    return build.node(number, **{"beat": NOW - 10, **changes})


def terms(salt: int = 1, **changes: object) -> Terms:
    """Return the terms of a matched job: 60 s, ceiling twice the usual ask, keeper fee 1,000."""
    plain = build.terms(
        submitter="0x" + "aa" * 20,
        salt=salt,
        spec=bytes(32),
        needs=Needs(runtimes=Runtime.WASM, cores=1, ram_gib=1),
        ceiling=10 * RATE,
        deadline=NOW + 86_400,
        keeper_fee=1_000,
        policy=fleets.POLICY_WORD,
        match_window=12,
        flags=TermsFlag.NEWCOMERS,
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


def job(
    *rows: UnitRow,
    number: int = 1,
    header: Header | None = None,
    since: int = 0,
    parents: tuple[Parent, ...] = (),
    **changes: object,
) -> JobRow:
    """Return a job with these units."""
    row = JobRow(JobId(number.to_bytes(32, "big")), terms(salt=number, **changes), rows, header, since)
    return replace(row, parents=parents)


RUNS = words.pack_unit(Unit(state=State.RUNNING))
WELL = words.pack_unit(Unit(state=State.SETTLED, outcome=Outcome.OK))
FAILED = words.pack_unit(Unit(state=State.SETTLED, outcome=Outcome.EXIT))
JOB_WORDS = (
    *(0, RUNS, WELL, FAILED, words.pack_unit(Unit(state=State.CANCELLED))),
    words.pack_unit(Unit(state=State.SETTLED, outcome=Outcome.OK, flags=UnitFlag.ARRAY)),
    *(words.pack_header(Header(touched=2, done=done, failed=1, leases=3)) for done in (1, 2)),
    words.pack_header(Header(touched=3, done=3, leases=3)),
    words.pack_header(Header(closed=True, touched=1, done=1, leases=3)),
)
"""Words of jobs that others may wait for: running, ended well, ended otherwise, and of what is no job."""


def parent(number: int, condition: Condition = Condition.SUCCESS) -> Parent:
    """Return one of the jobs that others wait for."""
    return Parent(JobId((1_000 + number).to_bytes(32, "big")), condition)


some_parent = st.builds(parent, st.integers(0, 3), st.sampled_from(Condition))
some_parent_word = st.builds(
    ParentWord, st.sampled_from([*JOB_WORDS, *[WELL] * 6]), st.sampled_from([0, NOW - 30, NOW - 3, NOW])
)
all_parent_words = st.fixed_dictionaries({parent(number).job: some_parent_word for number in range(4)})
some_parent_words = st.one_of(
    all_parent_words,
    st.dictionaries(st.integers(0, 3).map(lambda number: parent(number).job), some_parent_word),
)


def open_unit(**changes: object) -> UnitRow:
    """Return a fresh unit, opened 100 s ago."""
    return UnitRow(0, replace(Unit(state=State.OPEN, started=NOW - 100), **changes))  # type: ignore[arg-type]


moments = st.sampled_from([-100_000, -901, -900, -899, -61, -60, -59, -13, -12, -1, 0, 1, 2, 3, 4, 12, 60, 900, 5_000])


@st.composite
def fitting_node(draw: st.DrawFn, number: int) -> Node:
    """Return a live node with stake, a free slot, and an offer that fits any job but some that ask for a season."""
    slots = draw(st.integers(1, 3))
    return node(
        number,
        stake=10**12,
        cores=draw(st.sampled_from([1, 4])),
        ask=draw(st.sampled_from([1, 5, 9])) * RATE,
        slots=slots,
        busy=draw(st.integers(0, slots - 1)),
        s=draw(st.integers(0, 3 << 20)),
        seasoned=draw(st.sampled_from([True, True, False])),
    )


@st.composite
def silent_node(draw: st.DrawFn, number: int) -> Node:
    """Return a node that runs something and fell silent."""
    return node(number, stake=10**12, busy=draw(st.integers(1, 2)), beat=NOW - draw(st.sampled_from([900, 960, 5_000])))


@st.composite
def wild_node(draw: st.DrawFn, number: int) -> Node:
    return node(
        number,
        operator="0x" + "aa" * 20 if draw(st.integers(0, 9)) == 0 else f"0x{number + 0x200:040x}",
        stake=draw(st.sampled_from([0, 99, 100, 500, 9_000, 10**12])),
        cores=draw(st.sampled_from([0, 1, 4])),
        ask=draw(st.sampled_from([0, 1, 5, 9, 10, 11])) * RATE,
        slots=draw(st.integers(1, 3)),
        beat=draw(st.sampled_from([0, NOW - 900, NOW - 899, NOW - 10, NOW - 10, NOW - 10, NOW])),
        busy=draw(st.integers(0, 2)),
        bond=draw(st.sampled_from([0, 0, 100])),
        r=draw(st.integers(0, 30 << 20)),
        s=draw(st.integers(0, 3 << 20)),
        seasoned=draw(st.booleans()),
        status=NodeFlag(draw(st.sampled_from([0, 0, 0, 1, 2, 3]))),
        quarantine=draw(st.sampled_from([0, 0, 0, NOW + 1])),
    )


@st.composite
def some_nodes(draw: st.DrawFn) -> tuple[Node, ...]:
    kinds = draw(st.permutations([*[fitting_node] * 3, silent_node, wild_node, wild_node]))
    return tuple(draw(kind(number)) for number, kind in enumerate(kinds[: draw(st.integers(1, 6))], 1))


@st.composite
def wild_unit(draw: st.DrawFn, index: int, metered: bool) -> UnitRow:
    state = State(draw(st.sampled_from([2, 2, 2, 2, 3, 3, 4, 5, 5, 6, 7, 8, 9, 10])))
    mark = NOW + draw(moments)
    best, own = Best(), False
    rate = 0
    excluded = draw(st.integers(0, 3))
    if state == State.OPEN:
        if draw(st.booleans()):
            best = Best(
                payee=draw(st.sampled_from([KEEPER, OTHER])),
                node=NodeId(draw(st.integers(1, 6))),
                key=draw(st.sampled_from([0, 1 << 40, 120 << 40, 200 << 40])),
                extensions=draw(st.integers(0, 3)),
            )
            own, rate = best.payee == KEEPER and draw(st.booleans()), 5 * RATE
        else:
            mark = 0
    started = NOW + draw(st.sampled_from([-5_000, -1_000, -900, -899, -100, -3, 0]))
    return UnitRow(
        index,
        Unit(
            state=state,
            node=NodeId(excluded),
            rate=rate,
            started=started,
            mark=max(mark, started) if state in (State.SUBMITTED, State.CLOSING) else mark,
            attempts=draw(st.integers(0, 2)),
            lapses=draw(st.integers(0, 2)) if state == State.OPEN else 0,
            seconds=draw(st.sampled_from([0, 0, 1, 700])) if metered else 0,
            outcome=Outcome.OK if state in (State.SUBMITTED, State.DISPUTED) else Outcome.NONE,
            resume=draw(st.sampled_from([0, 0, 1, 3])) if metered and state is not State.OPEN else 0,
            resumable=metered and state is not State.OPEN,
        ),
        best,
        own,
    )


DUE_STATES = {"runs": State.RUNNING, "closing": State.CLOSING, "submitted": State.SUBMITTED}
DUE = ("fresh", "proposed", *DUE_STATES, "waits", "over")
"""Kinds of jobs about which something is to be done."""


@st.composite
def due_unit(draw: st.DrawFn, kind: str) -> UnitRow:
    """Return a unit about which something is to be done now, or in a second."""
    if kind in ("fresh", "over"):
        return open_unit()
    if kind == "waits":
        return UnitRow(0, Unit(state=State.BLOCKED, started=NOW - 100))
    number = NodeId(draw(st.integers(1, 6)))
    if kind == "proposed":
        best = Best(payee=OTHER, node=number, key=draw(st.sampled_from([1, 1 << 40])))
        return replace(open_unit(mark=NOW + draw(st.sampled_from([4, 8, 60])), rate=RATE), best=best)
    mark = NOW - draw(st.sampled_from([0, -1, 1, 900, 4_000]))
    ended = Outcome.OK if kind == "submitted" else Outcome.NONE
    return UnitRow(0, Unit(state=DUE_STATES[kind], node=number, started=NOW - 5_000, mark=mark, outcome=ended))


@st.composite
def due_job(draw: st.DrawFn, number: int, kind: str) -> JobRow:
    """Return a job about which something is to be done now, for a fee that may pay its gas."""
    array = draw(st.booleans())
    base = terms(
        salt=number,
        units=draw(st.sampled_from([3, 9])) if array else 1,
        keeper_fee=draw(st.sampled_from([10**8, 10**6, 1_000])),
        flags=TermsFlag(draw(st.sampled_from([4, 4, 0]))),
    )
    spare = {"over": [-1, -60, -700], "waits": [80_000, 80_000, 2]}.get(kind, [80_000])
    lasts = formulas.lease_seconds(base) + formulas.grace(base)
    base = replace(base, deadline=NOW + lasts + draw(st.sampled_from(spare)))
    listed = tuple(draw(st.lists(some_parent, min_size=1, max_size=2))) if kind == "waits" else ()
    header = None
    rows: tuple[UnitRow, ...] = (draw(due_unit(kind)),)
    if array:  # of one that is fresh, over or waits no lease is touched
        rows = () if kind in ("fresh", "over", "waits") else rows
        header = Header(waiting=bool(listed), touched=len(rows), opened=NOW - 500, leases=base.leases)
    record = draw(st.sampled_from([Record(), Record(5)]))
    return JobRow(JobId(number.to_bytes(32, "big")), base, rows, header, NOW - 500, record, listed)


@st.composite
def wild_job(draw: st.DrawFn, number: int) -> JobRow:
    array, metered = draw(st.booleans()), draw(st.booleans())
    base = terms(
        salt=number,
        units=draw(st.sampled_from([2, 3, 1 << 20])) if array else 1,
        keeper_fee=draw(st.sampled_from([0, 7, 1_000, 10**6])),
        match_window=draw(st.sampled_from([0, 12, 12, 300])),
        flags=TermsFlag(draw(st.sampled_from([0, 4]))),
        billing=Billing.METERED if metered else Billing.FUEL,
    )
    lasts = formulas.lease_seconds(base) + formulas.grace(base)
    base = replace(base, deadline=NOW + lasts + draw(st.sampled_from([-700, -1, 0, 1, 3, 4, 700, 80_000])))
    header = None
    listed = draw(st.one_of(st.just([]), st.lists(some_parent, min_size=1, max_size=4)))
    waits = bool(listed) and draw(st.booleans())
    if array:
        touched = draw(st.integers(0, 0 if waits else 3 if base.units > 2 else 2))
        rows = tuple(draw(wild_unit(i, metered)) for i in range(min(touched, base.units)))
        closed = not waits and draw(st.integers(0, 4)) == 0
        header = Header(closed=closed, waiting=waits, touched=len(rows), opened=NOW - 500, leases=base.leases)
    elif waits:
        rows = (UnitRow(0, Unit(state=State.BLOCKED, started=NOW - draw(st.sampled_from([3, 100])))),)
    else:
        rows = (draw(wild_unit(0, metered)),)
    since = NOW - draw(st.integers(0, 500))
    record, job_id = draw(some_record), JobId(number.to_bytes(32, "big"))
    return JobRow(job_id, base, rows, header, since, record, tuple(listed))


some_record = st.builds(
    Record, st.sampled_from([-3, -2, -1, 0, 0, 0, 1, 5]), st.sampled_from([0, NOW - 300, NOW - 59, NOW + 12])
)


@st.composite
def cases(draw: st.DrawFn, kinds: tuple[str, ...] = (*DUE, "wild")) -> Case:
    """Return a market with one to five of these kinds of jobs, in which most nodes fit."""
    nodes = draw(some_nodes())
    drawn = draw(st.permutations(kinds))[: draw(st.integers(1, 5))]
    jobs = tuple(
        draw(wild_job(number) if kind == "wild" else due_job(number, kind)) for number, kind in enumerate(drawn, 1)
    )
    price = draw(st.sampled_from([0, 1, 50]))
    known = draw(st.dictionaries(st.sampled_from([node.id for node in nodes]), some_record, max_size=3))
    fee = draw(st.sampled_from([10**6, 10**6, 5, 0]))
    return case_of(nodes, jobs, gas_price=price, fee=fee, records=known, parents=draw(some_parent_words))
