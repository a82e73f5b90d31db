"""Match by a plain loop over `hearth.protocol`, node by node: what the columns are measured and tested against."""

from __future__ import annotations

from collections.abc import Iterable

from hearth import protocol
from hearth.protocol import Market
from hearth.types import Best, JobId, Node, Policy, Terms, Unit
from keeper.match import Match


def winner(
    nodes: Iterable[Node],
    terms: Terms,
    policy: Policy,
    job: JobId,
    index: int,
    unit: Unit,
    best: Best,
    now: int,
    market: Market,
) -> Match | None:
    """Return the fitting node with the largest key; the lot is drawn only for the best bucket, as the columns do."""
    bucket, level = -1, list[Node]()
    for node in nodes:
        if protocol.fit(terms, policy, unit, best, node, now, market):
            continue
        rate = protocol.ask_in_force(node, now)
        number = protocol.score(terms.needs, terms.ceiling, rate, node.offer, node.hot) // protocol.BUCKET
        if number > bucket:
            bucket, level = number, []
        if number == bucket:
            level.append(node)
    seed = protocol.seed(job, index, unit.attempts)
    found: Match | None = None
    for node in level:
        key = protocol.key(bucket * protocol.BUCKET, seed, node.id)
        if found is None or key > found.key:
            found = Match(node.id, key)
    return found
