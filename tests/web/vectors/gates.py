"""Nodes against jobs: each gate at its bound and one beyond, alone and with others, and drawn pairs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from hearth.market.profiles import PUBLIC
from hearth.protocol import formulas, words
from hearth.protocol.types import (
    Best,
    Billing,
    Needs,
    Node,
    NodeFlag,
    NodeId,
    NodeState,
    Offer,
    Runtime,
    State,
    Terms,
    TermsFlag,
    Unit,
)
from tests.web.vectors import _chance, _drawn
from tests.web.vectors._drawn import NOW, node_fields, terms_words
from tests.web.vectors._plain import outcome, plain

DEAD_AFTER = PUBLIC.node_parameters.dead_after
MINIMUM = PUBLIC.node_parameters.minimum_stake
DRAWN, PAIRS = 5, 5


@dataclass(frozen=True)
class Case:
    """A job, one of its units, and a node that looks at it."""

    terms: Terms
    unit: Unit
    best: Best
    node: Node
    now: int = NOW


Change = Callable[[Case], Case]


def cases() -> dict[str, Any]:
    """Return the market's immutables, and cases with the results of the gates."""
    random = _chance.source("gates")
    changes = [*_of_node(), *_of_offer(), *_of_price(), *_of_unit()]
    found = [_fitting(), *(change(_fitting()) for change in changes)]
    found += [_both(random, changes) for _ in _chance.rows(PAIRS)]
    found += [_any(random) for _ in _chance.rows(DRAWN)]
    # Most are of the same job.
    terms: list[list[str]] = []
    return {
        "deadAfter": DEAD_AFTER,
        "minimumStake": str(MINIMUM),
        "cases": [_written(case, terms) for case in found],
        "terms": terms,
    }


def _written(case: Case, terms: list[list[str]]) -> dict[str, Any]:
    market = formulas.Immutables(DEAD_AFTER, MINIMUM)
    ask = formulas.ask_of(case.terms)
    if (packed := terms_words(case.terms)) not in terms:
        terms.append(packed)
    looked = (case.terms, case.unit, case.best, case.node, case.now, market)
    return {
        "terms": terms.index(packed),
        "unit": hex(words.pack_unit(case.unit)),
        "best": hex(words.pack_best(case.best)),
        "node": node_fields(case.node),
        "now": case.now,
        "ask": [plain(ask.ceiling), plain(ask.bond), plain(ask.probation)],
        "askInForce": plain(formulas.ask_in_force(case.node, case.now)),
        "mayNewcomer": formulas.may_newcomer(ask, case.node.state.bond),
        "gate": int(formulas.node_gate(case.node, ask, case.now, DEAD_AFTER, MINIMUM)),
        "propose": outcome(lambda: formulas.fit(*looked)),
        "claim": outcome(lambda: formulas.fit(*looked, claim=True)),
    }


def _fitting() -> Case:
    """Return a node and a unit that fit in each way, with as much as the job asks for and no more."""
    policy = PUBLIC.policy
    needs = Needs(Runtime.DOCKER | Runtime.NVIDIA, 17, 1, 10, 4, 16, 100, zone_mask=1 << 4 | 1 << 5, home=5)
    terms = Terms(
        _drawn.SUBMITTER,
        salt=0,
        spec=bytes(32),
        needs=needs,
        ceiling=10**15,
        max_seconds=3_600,
        deadline=NOW + 3_600 + 360,
        keeper_fee=10**14,
        policy=words.pack_policy(policy),
        match_window=15,
        flags=TermsFlag.NEWCOMERS,
        billing=Billing.METERED,
    )
    offer = Offer(needs.runtimes, 17, 1, 10, 4, 16, 100, zone=4, slots=2, ask=10**15)
    state = NodeState(beat=NOW - 10, busy=1, seasoned=True)
    node = Node(NodeId(7), "0x" + "0a" * 20, "0x" + "0b" * 20, MINIMUM, offer, state)
    unit = Unit(State.OPEN, node=NodeId(3), started=NOW - policy.open_claim_after - policy.claim_ramp)
    return Case(terms, unit, Best(), node)


def _both(random: Random, changes: Sequence[Change]) -> Case:
    """Return the fitting case with two changes: which gate is named first."""
    first, second = random.sample(changes, 2)
    return second(first(_fitting()))


def _any(random: Random) -> Case:
    policy = _drawn.drawn_policy(random)
    if random.random() < 0.1:
        policy = replace(policy, claim_ramp=0)
    terms = _drawn.drawn_terms(random, policy)
    best = Best(node=NodeId(random.choice((1, 2, 7))))
    unit = _drawn.drawn_unit(random, state=random.choice((State.OPEN, State.OPEN, None)))
    return Case(terms, unit, best, _drawn.drawn_node(random))


def _state(**changed: Any) -> Change:
    return lambda case: replace(case, node=replace(case.node, state=replace(case.node.state, **changed)))


def _offer(**changed: Any) -> Change:
    return lambda case: replace(case, node=replace(case.node, offer=replace(case.node.offer, **changed)))


def _node(**changed: Any) -> Change:
    return lambda case: replace(case, node=replace(case.node, **changed))


def _terms(**changed: Any) -> Change:
    return lambda case: replace(case, terms=replace(case.terms, **changed))


def _unit(**changed: Any) -> Change:
    return lambda case: replace(case, unit=replace(case.unit, **changed))


def _policy(**changed: Any) -> Change:
    def change(case: Case) -> Case:
        policy = replace(formulas.policy_of(case.terms), **changed)
        return replace(case, terms=replace(case.terms, policy=words.pack_policy(policy)))

    return change


def _then(*changes: Change) -> Change:
    def change(case: Case) -> Case:
        for one in changes:
            case = one(case)
        return case

    return change


def _of_node() -> list[Change]:
    half = formulas.active_stake(MINIMUM)
    fitting = _fitting()
    bond = formulas.bond(fitting.terms)
    return [
        _state(beat=0),
        # A chain whose time began with it.
        lambda case: replace(_state(beat=0)(case), now=DEAD_AFTER - 1),
        _state(beat=NOW - DEAD_AFTER),
        _state(beat=NOW - DEAD_AFTER + 1),
        _node(stake=half),
        _node(stake=half - 1),
        _state(status=NodeFlag.EXITING),
        _state(status=NodeFlag.LAPSED | NodeFlag.SLASHED),
        _state(quarantine=NOW),
        _state(quarantine=NOW + 1),
        _state(busy=2),
        _state(busy=63),
        _state(bond=MINIMUM - bond),
        _state(bond=MINIMUM - bond + 1),
        _state(bond=MINIMUM + 1),
        _node(operator=_drawn.SUBMITTER),
        _node(operator=_drawn.SUBMITTER.upper().replace("X", "x")),
        _node(exit_at=NOW + 5),
    ]


def _of_offer() -> list[Change]:
    sizes = {"gpu_count": 1, "vram_gib": 10, "cores": 4, "ram_gib": 16, "disk_gib": 100, "tier": 17}
    return [
        *(_offer(**{name: size - 1}) for name, size in sizes.items()),
        *(_offer(**{name: size + 1}) for name, size in sizes.items()),
        _offer(runtimes=Runtime.DOCKER),
        _offer(runtimes=Runtime.WASM | Runtime.JUROR),
        _offer(runtimes=Runtime(4095)),
        _offer(zone=5),
        _offer(zone=3),
        _offer(zone=15),
        lambda case: replace(case, terms=replace(case.terms, needs=replace(case.terms.needs, zone_mask=0))),
        lambda case: replace(case, terms=replace(case.terms, needs=replace(case.terms.needs, exact=True))),
        lambda case: replace(case, terms=replace(case.terms, needs=replace(case.terms.needs, exact=True, tier=18))),
        _offer(slots=0),
    ]


def _of_price() -> list[Change]:
    fitting = _fitting()
    bond = formulas.bond(fitting.terms)
    whole = formulas.price(fitting.terms)
    newcomer = _then(_state(seasoned=False), _terms(flags=TermsFlag(0)))
    coded = 5 * 10**15
    return [
        _offer(ask=10**15 + 1),
        _offer(ask=10**15 // 4),
        _then(_offer(pending=True), _node(next_ask=10**15 + 1, next_ask_at=NOW)),
        _then(_offer(pending=True), _node(next_ask=10**15 + 1, next_ask_at=NOW + 1)),
        _then(_offer(pending=True, ask=10**15 + 1), _node(next_ask=10**15, next_ask_at=NOW)),
        _then(_offer(pending=False), _node(next_ask=10**15 + 1, next_ask_at=NOW)),
        _state(seasoned=False),
        newcomer,
        _then(newcomer, _policy(probation_price=0)),
        _then(newcomer, _policy(probation_price=1)),
        _then(newcomer, _terms(max_seconds=1, ceiling=1), _policy(probation_price=1)),
        _then(newcomer, _terms(max_seconds=1, ceiling=10**6 * coded), _policy(probation_price=coded)),
        _then(newcomer, _terms(max_seconds=1, ceiling=10**6 * coded + 1), _policy(probation_price=coded)),
        *(_then(newcomer, _policy(probation_price=10**18), _state(bond=held)) for held in (1, 10**17, 5 * 10**17)),
        *(
            # The bond beside it is as much as probation allows, or one more.
            _then(newcomer, _terms(bond_bps=0), _policy(probation_price=10**18), _state(bond=5 * 10**17 - bond + more))
            for more in (0, 1)
        ),
        _terms(bond_bps=10**6),
        _terms(ceiling=0),
        _terms(ceiling=whole),
    ]


def _of_unit() -> list[Change]:
    policy = PUBLIC.policy
    proposed = _unit(mark=NOW - policy.ack_time, node=NodeId(3))
    mine = _unit(node=NodeId(7))
    before_end = NOW + 3_600 + 360
    rising = NOW - policy.open_claim_after
    return [
        *(_unit(state=state) for state in State if state is not State.OPEN),
        mine,
        _then(mine, _unit(lapses=1)),
        _then(mine, _unit(lapses=3)),
        _then(proposed, lambda case: replace(case, best=Best(node=NodeId(7)))),
        _then(proposed, lambda case: replace(case, best=Best(node=NodeId(4)))),
        _then(proposed, _unit(mark=NOW - policy.ack_time + 1), lambda case: replace(case, best=Best(node=NodeId(7)))),
        _terms(deadline=before_end - 1),
        _terms(deadline=before_end + 100),
        _unit(seconds=1),
        _then(_unit(seconds=100), _terms(deadline=before_end + 110)),
        _then(_unit(seconds=100), _terms(deadline=before_end + 109)),
        _then(_unit(seconds=100), _terms(billing=Billing.FUEL)),
        _terms(match_window=0),
        *(_unit(started=rising - after) for after in (-policy.open_claim_after, -1, 0, 1, policy.claim_ramp - 1)),
        *(_then(_unit(started=rising), _offer(ask=10**15 // 4 + more)) for more in (0, 1)),
        _policy(claim_ramp=0),
    ]
