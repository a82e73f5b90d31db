"""Money: the worked example of protocol.md, and drawn terms, units and checkpoints, each function's result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from hearth.market.profiles import PUBLIC
from hearth.protocol import formulas, words
from hearth.protocol.types import Billing, Header, Kept, Needs, NodeId, Outcome, State, Terms, Unit
from tests.web.vectors import _chance, _drawn
from tests.web.vectors._drawn import lane, terms_words
from tests.web.vectors._plain import outcome, plain

COUNT = 30


@dataclass(frozen=True)
class Case:
    """What the functions take."""

    terms: Terms
    unit: Unit
    header: Header
    kept: dict[int, Kept]
    overdue: int
    seconds: int
    amount: int


FUNCTIONS: dict[str, Callable[[Case], Any]] = {
    "unitPrice": lambda c: formulas.unit_price(c.terms),
    "price": lambda c: formulas.price(c.terms),
    "toppedSeconds": lambda c: formulas.topped(c.terms, c.unit).max_seconds,
    "topUpAmount": lambda c: formulas.top_up_amount(c.terms, c.unit, c.seconds),
    "leaseBudget": lambda c: formulas.lease_budget(c.terms),
    "unlockFee": lambda c: formulas.unlock_fee(c.terms),
    "escrowAtPost": lambda c: formulas.escrow_at_post(c.terms),
    "unitHolds": lambda c: formulas.unit_holds(c.terms, c.unit),
    "restHolds": lambda c: formulas.rest_holds(c.terms, c.header),
    "jobHolds": lambda c: formulas.job_holds(c.terms, c.header, [c.unit, c.unit]),
    "jobHoldsAlone": lambda c: formulas.job_holds(c.terms, None, [c.unit]),
    "tip": lambda c: formulas.tip(c.terms),
    "grace": lambda c: formulas.grace(c.terms),
    "leaseSeconds": lambda c: formulas.lease_seconds(c.terms),
    "baseBond": lambda c: formulas.base_bond(c.terms),
    "bond": lambda c: formulas.bond(c.terms),
    "slashOf": lambda c: formulas.slash_of(c.terms),
    "ramp": lambda c: formulas.ramp(c.amount, c.overdue),
    "settleReward": lambda c: formulas.settle_reward(c.terms, c.overdue),
    "reclaimReward": lambda c: formulas.reclaim_reward(c.terms, c.amount, c.overdue),
    "expireReward": lambda c: formulas.expire_reward(c.terms, c.unit, c.overdue),
    "expireRewardOfRest": lambda c: formulas.expire_reward(c.terms, None, c.overdue),
    "reserved": lambda c: formulas.reserved(c.unit, c.kept),
    "checkpointPays": lambda c: formulas.checkpoint_pays(c.terms, c.unit, c.kept),
    "feeOf": lambda c: formulas.fee_of(c.amount, formulas.policy_of(c.terms)),
}


def cases() -> dict[str, Any]:
    """Return the functions' names, and cases with a result for each, in their order."""
    random = _chance.source("money")
    drawn = [_worked_example(), _whole_lease_topped(), *(_case(random) for _ in _chance.rows(COUNT))]
    return {"functions": list(FUNCTIONS), "cases": [_written(case) for case in drawn]}


def _written(case: Case) -> dict[str, Any]:
    found = [outcome(lambda call=call: call(case)) for call in FUNCTIONS.values()]
    return {
        "terms": terms_words(case.terms),
        "unit": hex(words.pack_unit(case.unit)),
        "header": hex(words.pack_header(case.header)),
        "kept": {str(attempt): hex(words.pack_kept(one)) for attempt, one in case.kept.items()},
        "overdue": case.overdue,
        "seconds": case.seconds,
        "amount": plain(case.amount),
        "out": [one.get("out", one) for one in found],
    }


def _worked_example() -> Case:
    policy = PUBLIC.policy
    terms = Terms(
        submitter=_drawn.SUBMITTER,
        salt=0,
        spec=bytes(32),
        needs=Needs(),
        ceiling=333_333_333,
        max_seconds=61,
        deadline=10**9,
        keeper_fee=1_001,
        policy=words.pack_policy(policy),
        max_attempts=3,
        match_window=15,
        billing=Billing.FUEL,
    )
    unit = Unit(State.SUBMITTED, Outcome.OK, NodeId(1), 250_000_001, 100, 200, seconds=17, attempts=1, tips=1)
    return Case(terms, unit, Header(), {}, 200, 0, 1_016)


def _whole_lease_topped() -> Case:
    """Return a metered unit that took all of its seconds at the ceiling, a top-up's too: more than the posted price."""
    case = _worked_example()
    unit = replace(case.unit, rate=case.terms.ceiling, started=100, mark=100 + 61 + 17)
    return replace(case, terms=replace(case.terms, billing=Billing.METERED), unit=unit)


def _case(random: Random) -> Case:
    policy = _drawn.drawn_policy(random)
    terms = _drawn.drawn_terms(random, policy)
    if random.random() < 0.4:
        # What metered and resumed units are paid has the most cases.
        terms = replace(terms, billing=Billing.METERED, units=terms.chunk, replicas=1)
    state = random.choice((State.SUBMITTED, State.SUBMITTED, State.CLOSING, None))
    return Case(
        terms,
        _drawn.drawn_unit(random, state=state),
        _header(random, terms),
        _kept(random, terms),
        overdue=random.choice((0, 1, 10, 199, 200, 599, 600, 601, 10**6, lane(random, 40))),
        seconds=random.choice((0, 1, 60, lane(random, 24))),
        amount=random.choice((0, 1, random.randrange(10**20), lane(random, 96))),
    )


def _header(random: Random, terms: Terms) -> Header:
    touched = random.randint(0, terms.leases)
    return Header(
        closed=random.random() < 0.2,
        waiting=random.random() < 0.2,
        touched=touched,
        done=random.randint(0, touched),
        opened=lane(random, 40),
        leases=terms.leases,
    )


def _kept(random: Random, terms: Terms) -> dict[int, Kept]:
    """Draw checkpoints of which each may resume from any other, itself too, or from one that nobody kept."""
    whole = formulas.lease_seconds(terms)
    return {
        attempt: Kept(
            seconds=min(2**24 - 1, random.choice((0, random.randrange(whole + 2), lane(random, 24)))),
            rate=random.choice((random.randrange(10**18), lane(random, 80))),
            node=NodeId(random.choice((1, 2, lane(random, 32)))),
            resume=random.choice((0, 0, 1, 2, 3, 4)),
            before=min(2**28 - 1, random.choice((0, random.randrange(whole + 2), lane(random, 28)))),
        )
        for attempt in (1, 2, 3)
        if random.random() < 0.9
    }
