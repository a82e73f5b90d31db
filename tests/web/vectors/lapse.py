"""A unit's life: lapses, claims, and from when on anyone may settle, reclaim or expire, each function's result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from hearth.market.profiles import PUBLIC
from hearth.protocol import formulas, words
from hearth.protocol.types import Best, NodeId, State, Terms, Unit
from tests.web.vectors import _chance, _drawn
from tests.web.vectors._drawn import NOW, lane, terms_words
from tests.web.vectors._plain import outcome, plain

COUNT = 30


@dataclass(frozen=True)
class Case:
    """What the functions take."""

    terms: Terms
    unit: Unit
    best: Best
    now: int
    rate: int
    waited: int
    beat: int
    dead_after: int


FUNCTIONS: dict[str, Callable[[Case], Any]] = {
    "windowEnd": lambda c: c.unit.window_end,
    "deadlineAt": lambda c: c.unit.deadline_at,
    "submittedAt": lambda c: c.unit.submitted_at,
    "hasLiveProposal": lambda c: formulas.has_live_proposal(c.terms, c.unit, c.now),
    "withLapse": lambda c: hex(words.pack_unit(formulas.with_lapse(c.terms, c.unit, c.best, c.now))),
    "claimsFrom": lambda c: formulas.claims_from(c.terms, c.unit),
    "claimable": lambda c: formulas.claimable(c.terms, c.unit, c.now),
    "claimCeiling": lambda c: formulas.claim_ceiling(c.terms, c.waited),
    "claimWait": lambda c: formulas.claim_wait(c.terms, min(c.rate, c.terms.ceiling)),
    "claimableFrom": lambda c: formulas.claimable_from(c.terms, c.unit, c.rate),
    "proposable": lambda c: formulas.proposable(c.terms, c.unit, c.now),
    "hasTime": lambda c: formulas.has_time(c.terms, c.now),
    "expirableFrom": lambda c: formulas.expirable_from(c.terms),
    "challengeEnd": lambda c: formulas.challenge_end(c.terms, c.unit),
    "freshUntil": lambda c: formulas.fresh_until(c.terms, c.unit),
    "settleableFrom": lambda c: formulas.settleable_from(c.terms, c.unit),
    "declinableUntil": lambda c: formulas.declinable_until(c.terms, c.unit),
    "reclaimableFrom": lambda c: formulas.reclaimable_from(c.unit, c.beat, c.dead_after),
}


def cases() -> dict[str, Any]:
    """Return the functions' names, and cases with a result for each, in their order."""
    random = _chance.source("lapse 17")
    found = [*_worked_example(random), *_proposed(random), *(_case(random) for _ in _chance.rows(COUNT))]
    return {"functions": list(FUNCTIONS), "cases": [_written(case) for case in found]}


def _written(case: Case) -> dict[str, Any]:
    found = [outcome(lambda call=call: call(case)) for call in FUNCTIONS.values()]
    return {
        "terms": terms_words(case.terms),
        "unit": hex(words.pack_unit(case.unit)),
        "best": hex(words.pack_best(case.best)),
        "now": case.now,
        "rate": plain(case.rate),
        "waited": case.waited,
        "beat": case.beat,
        "deadAfter": case.dead_after,
        "out": [one.get("out", one) for one in found],
    }


def _worked_example(random: Random) -> list[Case]:
    """Return the open claims of protocol.md "Matching": a ceiling of a million under the public policy."""
    policy = PUBLIC.policy
    terms = replace(_drawn.drawn_terms(random, policy), ceiling=1_000_000, match_window=15)
    unit = Unit(State.OPEN, started=NOW)
    asked = zip((0, 7, 8, 30), (250_000, 425_001, 1_000_000, 1_000_001), strict=True)
    return [Case(terms, unit, Best(), NOW, rate, waited, NOW, 900) for waited, rate in asked]


def _proposed(random: Random) -> list[Case]:
    """Return proposals made early, with each count of lapses, looked at around their window's end and their lapse."""
    policy = PUBLIC.policy
    terms = replace(_drawn.drawn_terms(random, policy), match_window=15)
    ends = (NOW + 15, NOW + 15 + policy.ack_time)
    return [
        Case(terms, Unit(State.OPEN, started=NOW, mark=NOW + 15, lapses=lapses), Best(), now, 0, 0, 0, 900)
        for lapses in (0, 1, 2)
        for end in ends
        for now in (end - 1, end)
    ]


def _case(random: Random) -> Case:
    policy = _drawn.drawn_policy(random)
    if random.random() < 0.03:
        policy = replace(policy, claim_ramp=0)
    terms = _drawn.drawn_terms(random, policy)
    unit = _drawn.drawn_unit(
        random, state=random.choice((State.OPEN, State.OPEN, State.RUNNING, State.SUBMITTED, None))
    )
    # Near each moment at which something changes, or anywhere.
    turns = [unit.started, unit.mark, unit.mark + policy.ack_time, unit.started + policy.open_claim_after]
    turns += [formulas.claims_from(terms, unit), formulas.expirable_from(terms), terms.deadline, NOW]
    return Case(
        terms,
        unit,
        Best(
            node=NodeId(random.choice((0, 1, 7, 2**32 - 1))), key=random.getrandbits(48), extensions=random.randrange(4)
        ),
        now=max(0, random.choice(turns) + random.choice((-1, 0, 1, 60))),
        rate=random.choice((0, terms.ceiling, terms.ceiling + 1, terms.ceiling // 4, random.randint(0, terms.ceiling))),
        waited=random.choice((0, 1, 7, 15, 30, policy.claim_ramp, policy.claim_ramp - 1, lane(random, 40))),
        beat=random.choice((0, unit.started, unit.mark, NOW, lane(random, 32))),
        dead_after=random.choice((90, 900, 3_600)),
    )
