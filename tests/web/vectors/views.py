"""Jobs as they stand at a block: what they have come to, who may act on each unit next, how results are checked."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from hearth.chain.port import Log
from hearth.client.judges.attested import Attested
from hearth.client.reading import _view
from hearth.client.views import JobView, next_step, verification
from hearth.market.profiles import PUBLIC
from hearth.market.reads import Posted, UnitView, _lease, _resumed, _view_of, as_written, job_of
from hearth.protocol import formulas, words
from hearth.protocol.types import (
    Accused,
    Best,
    Billing,
    Header,
    JobId,
    NodeId,
    Outcome,
    State,
    Terms,
    TermsFlag,
    Unit,
    UnitFlag,
)
from tests.kit import build
from tests.web.vectors import _chance
from tests.web.vectors._drawn import NOW, drawn_policy, drawn_terms, drawn_unit, terms_words
from tests.web.vectors._plain import outcome, plain

JUDGE = "0x" + "7b" * 20
COUNT = 10
LOG = Log("", (), b"", 1, bytes(32), bytes(32), 0)


_STATES = (
    *(
        State.OPEN,
        State.OPEN,
        State.OPEN,
        State.RUNNING,
        State.CLOSING,
        State.SUBMITTED,
        State.SUBMITTED,
        State.DISPUTED,
    ),
    *(State.SETTLED, State.SETTLED, State.BLOCKED, None),
)


class _Head:
    """As much of a block as a view reads."""

    def __init__(self, timestamp: int) -> None:
        self.number, self.timestamp = 1, timestamp


@dataclass(frozen=True)
class _Case:
    """A job, and what is known besides."""

    terms: Terms
    header: Header | None
    stored: list[UnitView]
    seen: dict[NodeId, int]
    dead_after: int
    waits: str | None
    attesters: str


def cases() -> Any:
    """Return jobs with what is said of them, and words of storage with what they are."""
    draw = _chance.source("views 2")
    chance = [(case := _job(draw), draw.sample(_looks(case), min(4, len(_looks(case))))) for _ in _chance.rows(COUNT)]
    return {
        "jobs": [_written(case, looks) for case, looks in [*chance, *((case, _looks(case)) for case in _edges())]],
        "storage": _storage(draw),
    }


def _written(case: _Case, looks: list[int]) -> dict[str, Any]:
    return {
        "terms": terms_words(case.terms),
        "header": None if case.header is None else hex(words.pack_header(case.header)),
        "stored": [
            [hex(word) for word in (words.pack_unit(one.unit), one.second, words.pack_accused(one.accused))]
            for one in case.stored
        ],
        "seen": [[int(node), at] for node, at in case.seen.items()],
        "deadAfter": case.dead_after,
        "waits": case.waits,
        "attesters": case.attesters,
        "verify": verification(case.terms, _judge(case)),
        "looks": [_look(case, now) for now in looks],
    }


def _judge(case: _Case) -> Attested | None:
    return Attested() if case.terms.judge == case.attesters else None


def _look(case: _Case, now: int) -> dict[str, Any]:
    posted = Posted(JobId(bytes(32)), case.terms, words.pack_terms(case.terms), (), LOG)
    view = _view(posted, case.header, case.stored, _Head(now))  # type: ignore[arg-type]
    known = (case.seen, case.dead_after, case.waits, _judge(case))
    return {
        "now": now,
        "next": [next_step(view, at, *known) for at in range(len(case.stored))],
        "facts": _facts(view),
    }


def _looks(case: _Case) -> list[int]:
    """Return the seconds around those at which something changes, in their order."""
    turns = _turns(case.stored, case.terms)
    for one in case.stored:
        if one.unit.state is State.RUNNING:
            beat = case.seen.get(one.unit.node, one.unit.started)
            turns.append(formulas.reclaimable_from(one.unit, beat, case.dead_after))
    return sorted({max(0, turn + offset) for turn in turns for offset in (-1, 0, 1)})


def _job(draw: random.Random) -> _Case:
    policy = drawn_policy(draw)
    flags = TermsFlag(draw.choice((0, 0, 4, 8, 12, 16)))
    terms = replace(drawn_terms(draw, policy), flags=flags, judge_data=draw.getrandbits(256))
    if draw.random() < 0.6:
        # A deadline that leaves time, so that more is said than that there is none.
        terms = replace(terms, deadline=NOW + 10**7, max_seconds=600, match_window=draw.choice((0, 15)))
    if draw.random() < 0.2:
        terms = replace(terms, units=1, chunk=1, replicas=3, quorum=2)
    stored, header = _stored(draw, terms.leases)
    seen = {NodeId(node): NOW - draw.choice((0, 10, 5_000)) for node in (1, 2)}
    waits = draw.choice((None, "", "waits for job 0x12"))
    attesters = draw.choice((JUDGE, "0x" + "7c" * 20, ""))
    return _Case(terms, header, stored, seen, draw.choice((90, 900)), waits, attesters)


def _edges() -> list[_Case]:
    """Return one-lease jobs in every state under the public policy, to be looked at around each of their turns."""
    plain_terms = build.terms(policy=words.pack_policy(PUBLIC.policy), max_seconds=600, deadline=NOW + 10**6)
    matched, metered = replace(plain_terms, match_window=15), replace(plain_terms, billing=Billing.METERED)
    judged = replace(plain_terms, judge=JUDGE, challenge_window=7_200)
    proven = replace(judged, flags=TermsFlag.PROVEN)
    waiting = Unit(State.OPEN, started=NOW)
    running = Unit(State.RUNNING, node=NodeId(1), rate=5, started=NOW, mark=NOW + 700)
    done = Unit(State.SUBMITTED, Outcome.OK, NodeId(1), 5, NOW, NOW + 300)
    held = replace(done, state=State.DISPUTED)
    jobs = [
        *((plain_terms, waiting), (judged, replace(waiting, node=NodeId(3))), (matched, waiting)),
        *((matched, replace(waiting, mark=NOW + 15, lapses=lapses)) for lapses in (0, 1)),
        *(
            (metered, replace(waiting, seconds=300)),
            (plain_terms, running),
            (plain_terms, replace(running, node=NodeId(9))),
        ),
        *((plain_terms, replace(running, state=State.CLOSING)), (plain_terms, done), (judged, done), (proven, done)),
        *((plain_terms, replace(done, flags=UnitFlag.FRESH)), (judged, replace(done, flags=UnitFlag.FRESH))),
        *((judged, held), (proven, held), (plain_terms, Unit(State.BLOCKED))),
    ]
    best = words.pack_best(Best(payee="0x" + "9c" * 20, node=NodeId(7), key=5))
    views = [(terms, UnitView(unit, best, Accused())) for terms, unit in jobs]
    seen = {NodeId(1): NOW + 100}
    return [
        *(_Case(terms, None, [view], seen, 900, None, "") for terms, view in views),
        _Case(proven, None, [UnitView(done, best, Accused())], seen, 900, None, JUDGE),
    ]


def _stored(draw: random.Random, leases: int) -> tuple[list[UnitView], Header | None]:
    """Return what storage holds of a job: one unit, or an array's touched ones and its header."""

    ended = leases == 3 and draw.random() < 0.5

    def unit() -> UnitView:
        one = drawn_unit(draw, state=State.SETTLED if ended else draw.choice(_STATES))
        best = Best(payee="0x" + "9c" * 20, node=NodeId(draw.choice((1, 7))), key=5)
        return UnitView(one, words.pack_best(best), Accused(NodeId(draw.choice((0, 4))), draw.choice((0, NOW))))

    if leases <= 1:
        return [unit()], None
    touched = 3 if ended else draw.choice((0, 1, min(leases, 3), min(leases, 5)))
    closed, waiting = draw.random() < 0.2, draw.random() < 0.2
    header = Header(closed, waiting, touched, done=touched // 2, failed=0, opened=NOW - 500, leases=leases)
    return [unit() for _ in range(touched)], header


def _turns(stored: list[UnitView], terms: Terms) -> list[int]:
    """Return the seconds near which something changes."""
    turns = [NOW, terms.deadline + terms.challenge_window] if not stored or len(stored) > 1 else []
    for one in stored:
        unit = one.unit
        opens = formulas.claims_from(terms, unit)
        if unit.state is State.OPEN:
            policy = formulas.policy_of(terms)
            turns += [opens, opens + policy.claim_ramp, unit.mark, unit.mark + policy.ack_time]
            turns += [formulas.expirable_from(formulas.topped(terms, unit))]
        elif unit.state in (State.SUBMITTED, State.DISPUTED):
            turns += [formulas.settleable_from(terms, unit), formulas.challenge_end(terms, unit)]
        else:
            turns.append(unit.mark)
    return turns


def _facts(view: JobView) -> dict[str, Any]:
    return {
        "untouched": view.untouched,
        "blocked": view.blocked,
        "finished": view.finished,
        "delivered": view.delivered,
        "unpaidUntil": view.unpaid_until,
        "tally": view.tally,
        "told": {"word": view.labels[0], "text": view.labels[1]},
        "ok": view.ok,
        "failed": view.failed,
        "verdict": view.verdict,
        "state": view.state,
    }


# ---- words of storage ----


def _storage(draw: random.Random) -> dict[str, Any]:
    """Return jobs' words, leases and checkpoints as storage has them, with what is read in each, or the refusal."""
    header = Header(touched=2, opened=NOW, leases=9)
    headers = [header, replace(header, closed=True), replace(header, waiting=True)]
    packed = [words.pack_header(one) for one in headers]
    units = [words.pack_unit(drawn_unit(draw)) for _ in range(6)]
    leases = [
        (at, index, word, second, accused)
        for at in range(len(headers))
        for index in (0, 1, 2, 8)
        for word, second, accused in ((0, 0, 0), (draw.choice(units), draw.getrandbits(256), 7), (11, 0, 0))
    ]
    kept = [words.pack(words.KEPT, {**dict.fromkeys(_KEPT, 3), "resume": resume}) for resume in range(10)]
    chains = [(0, []), (0, [0]), (2, []), (2, [0]), (3, [2, 0]), (3, [3, 0]), (9, [8, 7, 6, 5, 4, 3, 2, 1]), (1, [5])]
    resumed = [(attempt, [kept[one] for one in chain]) for attempt, chain in chains] + [(1, [1 << 255])]
    return {
        "jobs": [{"word": hex(word), **_told(_job_word, word)} for word in [*packed, *units, 0, 11, 31]],
        "headers": [hex(word) for word in packed],
        "leases": [
            {"header": at, "index": index, "words": [hex(word), hex(second), hex(accused)]}
            | _told(_lease_said, headers[at], index, word, second, accused)
            for at, index, word, second, accused in leases
        ],
        "resumed": [
            {"resume": attempt, "words": [hex(word) for word in chain]} | _told(_resumed_said, attempt, chain)
            for attempt, chain in resumed
        ],
        "results": [
            {"unit": hex(word), "second": hex(second)} | _told(_result_said, word, second)
            for word in map(words.pack_unit, _results())
            for second in (5, draw.getrandbits(256))
        ],
    }


def _results() -> list[Unit]:
    store = Unit(State.SUBMITTED, flags=UnitFlag.STORE)
    states = [replace(store, state=state) for state in (State.OPEN, State.SETTLED, State.REFUNDED)]
    return [store, *states, replace(store, flags=UnitFlag(0))]


def _told(call: Callable[..., Any], *args: Any) -> dict[str, Any]:
    return outcome(lambda: call(*args))


def _resumed_said(attempt: int, chain: list[int]) -> list[Any]:
    return [[at, plain(kept)] for at, kept in as_written(_resumed, attempt, chain).items()]


def _result_said(word: int, second: int) -> bytes | None:
    return _view_of(word, second, 0).kept


_KEPT = [lane.name for lane in words.KEPT.lanes]


def _job_word(word: int) -> str:
    told = job_of(word)
    return "header" if isinstance(told, Header) else told.state.name.lower()


def _lease_said(header: Header, index: int, word: int, second: int, accused: int) -> list[Any]:
    view = as_written(_lease, header, index, word, second, accused)
    best = as_written(words.unpack_best, view.second) if view.unit.window_end else Best()
    return [hex(words.pack_unit(view.unit)), hex(view.second), view.accused.node, best.node, best.payee]
