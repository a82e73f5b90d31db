"""Fleets against jobs: workers counted by what keeps them out, their asks, and the sentence of it."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

from hearth.client.job.gates import Fleet, takers, workers_in_words
from hearth.protocol.types import ZERO_ADDRESS, Node, NodeId, Terms, TermsFlag
from hearth.protocol.units import NATIVE
from tests.web.vectors import _chance, gates
from tests.web.vectors._drawn import NOW, node_fields, terms_words

FLEETS = 60


def cases() -> dict[str, Any]:
    """Return the market's immutables, and jobs with fleets of nodes that fit but for up to three changes."""
    random = _chance.source("fleet")
    found = [_case(random, size) for size in (0, 1, 1, 2, 3)]
    found += [_case(random, random.randint(3, 9)) for _ in _chance.rows(FLEETS)]
    # So dear that few or no stakes cover the bond.
    found += [_case(random, random.randint(1, 4), times=10**power) for power in (1, 3, 5, 8)]
    return {
        "deadAfter": gates.DEAD_AFTER,
        "minimumStake": str(gates.MINIMUM),
        "cases": _chance.telling(found, _kinds, 1),
    }


def _kinds(row: dict[str, Any]) -> set[Any]:
    """Return the gates that keep nodes out, and what is said besides."""
    said = (row["backed"] is None, row["takers"] > 0, "accept.attesters" in row["words"])
    return {*row["gates"], said}


def _case(random: Random, size: int, *, times: int = 1) -> dict[str, Any]:
    of_node, of_job = [*gates._of_node(), *gates._of_offer()], gates._of_price()
    job = gates._fitting()
    if random.random() < 0.4:
        changed = random.choice(of_job)(job)
        job = replace(job, terms=changed.terms)
    flags = TermsFlag(0) if random.random() < 0.4 else job.terms.flags
    # As tight as a deadline may be, or with time for a quarantine.
    deadline = job.terms.deadline + random.choice((0, 100))
    job = replace(job, terms=replace(job.terms, flags=flags, deadline=deadline))
    nodes = [_node(random, job, [*of_node, *of_job], at + 1) for at in range(size)]
    terms = job.terms if random.random() < 0.8 else replace(job.terms, judge="0x" + "7b" * 20)
    terms = replace(terms, ceiling=min(terms.ceiling * times, 2**80 - 1))
    return {"terms": terms_words(terms), "nodes": [node_fields(node) for node in nodes], **_said(nodes, terms, job)}


def _node(random: Random, job: gates.Case, changes: list[gates.Change], number: int) -> Node:
    for change in random.sample(changes, random.choice((0, 1, 1, 2, 3))):
        # What a change does to the job is another case's.
        job = replace(job, node=change(job).node)
    late = random.choice((0, 0, 0, 0, NOW + 1, NOW + 50, job.terms.deadline))
    seasoned = job.node.state.seasoned and random.random() < 0.8
    state = replace(job.node.state, quarantine=max(job.node.state.quarantine, late), seasoned=seasoned)
    operator = ZERO_ADDRESS if random.random() < 0.1 else job.node.operator
    return replace(job.node, id=NodeId(number), state=state, operator=operator)


def _said(nodes: list[Node], terms: Terms, job: gates.Case) -> dict[str, Any]:
    active = tuple(node for node in nodes if node.operator != ZERO_ADDRESS)
    fleet = Fleet(active, NOW, gates.DEAD_AFTER, gates.MINIMUM)
    counted = fleet.gates(terms)
    return {
        "now": NOW,
        "gates": {str(int(gate)): count for gate, count in sorted(counted.items())},
        "takers": takers(counted),
        "asks": [str(rate) for rate in fleet.asks(terms)],
        "anyPrice": [str(rate) for rate in fleet.asks(terms, any_price=True)],
        "backed": fleet.backed(terms, NATIVE),
        "words": workers_in_words(counted, terms),
    }
