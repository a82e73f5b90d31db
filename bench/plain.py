"""Match by a plain loop over hearth.protocol, node by node: what the columns are measured and tested against."""

from __future__ import annotations

from collections.abc import Iterable

from hearth.protocol import formulas
from hearth.protocol.formulas import Immutables
from hearth.protocol.types import Best, JobId, Node, Terms, Unit
from keeper.match import Winner


def winner(
    nodes: Iterable[Node],
    terms: Terms,
    job: JobId,
    index: int,
    unit: Unit,
    best: Best,
    now: int,
    immutables: Immutables,
) -> Winner | None:
    """Return the fitting node with the largest key; the lot is drawn only for the best bucket, as the columns do."""
    bucket, level = -1, list[Node]()
    for node in nodes:
        if formulas.fit(terms, unit, best, node, now, immutables):
            continue
        rate = formulas.ask_in_force(node, now)
        number = formulas.score(terms.needs, terms.ceiling, rate, node.offer, node.state) // formulas.BUCKET
        if number > bucket:
            bucket, level = number, []
        if number == bucket:
            level.append(node)
    seed = formulas.seed(job, index, unit.attempts)
    found: Winner | None = None
    for node in level:
        key = formulas.key(bucket * formulas.BUCKET, seed, node.id)
        if found is None or key > found.key:
            found = Winner(node.id, key)
    return found
