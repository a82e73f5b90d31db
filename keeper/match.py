"""Match a unit with the fleet, pure: the formulas of `hearth.protocol.formulas` over columns, bit for bit.

`winner` names the node with the largest key for one unit. The score is the same integer as
`hearth.protocol.formulas.score` and the winner the same node as a loop over `hearth.protocol.formulas.fit` and `key`
would name (tests/keeper/test_match.py).

Exactness. The price share floor((ceiling - rate) * 10000 / ceiling) is taken from the float quotient v, whose error is
below 1e-10, unless v is within 1e-6 of an integer m; there |(ceiling - rate) * 10000 - m * ceiling| < 2**61, so its low
64 bits give its sign. Quotients of small integers (below 2**42, by at most 2**17) are floored from float64, where they
cannot round across an integer.

Source: protocol.md "Matching".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from hearth.protocol import formulas
from hearth.protocol.formulas import MAX_UINT, Ask, Immutables
from hearth.protocol.types import BPS, Best, Gate, JobId, NodeId, State, Terms, Unit
from hearth.protocol.zones import ZONE_COUNT, zone_distance
from keeper.columns import F64, I64, LOW, U64, Mask, at_least
from keeper.fleet import SIZES, Fleet, Nodes, Whole
from keeper.tie_break import tie_breaks

_EDGE: Final = 1e-6


@dataclass(frozen=True, slots=True)
class Bucket:
    """The fitting nodes that share the highest bucket (score // 500,000): only the tie-break decides."""

    number: int
    ids: I64


@dataclass(frozen=True, slots=True)
class Winner:
    """The node whose proposal wins a unit, with its key."""

    node: NodeId
    key: int


def candidates(nodes: Nodes, ask: Ask, submitter: str, barred: Iterable[int] = ()) -> I64:
    """Return the rows of the ready nodes that pass every gate of the ask, in the order of their ids.

    `barred` names nodes to leave out: the excluded one, and those whose slots other proposals will take.
    """
    needs, column = ask.needs, nodes.columns
    mask: Mask | None = None
    for name in SIZES:
        need = getattr(needs, name)
        if need:
            enough = column[name] >= need
            mask = enough if mask is None else np.logical_and(mask, enough, out=mask)
    if needs.runtimes:
        runs = column["runtimes"] & int(needs.runtimes) == int(needs.runtimes)
        mask = runs if mask is None else np.logical_and(mask, runs, out=mask)
    if needs.exact:
        this = column["tier"] == needs.tier
        mask = this if mask is None else np.logical_and(mask, this, out=mask)
    if needs.zone_mask:
        near = _zones(needs.zone_mask)[column["zone"]]
        mask = near if mask is None else np.logical_and(mask, near, out=mask)
    if ask.probation < MAX_UINT:
        known = column["seasoned"] != 0
        if ask.probation:
            known |= ~at_least(nodes.bond, nodes.bond_low, max(1, ask.probation - ask.bond + 1))
        mask = known if mask is None else np.logical_and(mask, known, out=mask)
    rows = np.arange(len(nodes.ids)) if mask is None else np.flatnonzero(mask)
    rows = rows[~at_least(nodes.rate[rows], nodes.rate_low[rows], ask.ceiling + 1)]
    rows = rows[at_least(nodes.free[rows], nodes.free_low[rows], ask.bond)]
    address = int(submitter, 16)
    same = nodes.operator_low[rows] == np.uint64(address & LOW)
    if same.any():
        own = [i for i in np.flatnonzero(same) if _operator(nodes, int(rows[i])) == address]
        rows = np.delete(rows, own)
    left_out = [i for i in barred if i]
    if left_out:
        rows = rows[~np.isin(nodes.ids[rows], left_out)]
    return rows


def _operator(nodes: Nodes, row: int) -> int:
    return int(nodes.fleet.node(NodeId(int(nodes.ids[row]))).operator, 16)


def _zones(mask: int) -> Mask:
    return np.array([mask >> zone & 1 == 1 for zone in range(ZONE_COUNT)], np.bool_)


def scores(nodes: Nodes, ask: Ask, rows: I64) -> I64:
    """Return `formulas.score` of the nodes in `rows`, whose rates must not exceed the ceiling (>= 1)."""
    needs, column = ask.needs, nodes.columns
    total = 4_000 * _price_share(nodes.rate[rows], nodes.rate_low[rows], ask.ceiling)
    total += 3_000 * column["reputation"][rows]
    hardware = 4 * _size_share(needs.vram_gib, column["vram_gib"][rows])
    hardware += _size_share(needs.ram_gib, column["ram_gib"][rows])
    hardware += _size_share(needs.cores, column["cores"][rows])
    # Who asks for no tier does not prefer a card that is said to be weak.
    gap = column["tier"][rows].astype(np.int64) - needs.tier if needs.tier else np.zeros(len(rows), np.int64)
    hardware += 2 * np.maximum(0, BPS - 100 * gap)
    total += 2_000 * (hardware >> 3)
    if needs.zone_mask:
        distance = np.array([zone_distance(needs.home, zone) for zone in range(ZONE_COUNT)], np.int64)
        total += (1_000 * (BPS - 666 * distance))[column["zone"][rows]]
    else:
        total += 1_000 * BPS
    total -= column["load"][rows]
    kept: I64 = np.maximum(total, 0)
    return kept


def _price_share(rate: F64, rate_low: U64, ceiling: int) -> I64:
    """Return floor((ceiling - rate) * 10000 / ceiling), exactly (see the module's note)."""
    share = (float(ceiling) - rate) * (BPS / float(ceiling))
    whole: F64 = np.rint(share)
    edge = np.abs(share - whole) < _EDGE
    result: I64 = np.floor(share).astype(np.int64)
    if edge.any():
        m = whole[edge].astype(np.int64)
        numerator = (np.uint64(ceiling & LOW) - rate_low[edge]) * np.uint64(BPS)
        remainder = (numerator - m.astype(np.uint64) * np.uint64(ceiling & LOW)).view(np.int64)
        result[edge] = m - (remainder < 0)
    return result


def _size_share(need: int, offer: Whole) -> I64:
    """Return need * 10000 // offer, 10000 where the offer is 0; the gates make need <= offer."""
    if need == 0:
        return np.where(offer == 0, BPS, 0)
    share: F64 = np.floor(need * float(BPS) / offer)
    return share.astype(np.int64)


def best_bucket(nodes: Nodes, ask: Ask, submitter: str, barred: Iterable[int] = ()) -> Bucket | None:
    """Return the fitting nodes of the highest bucket, or None where no node fits."""
    rows = candidates(nodes, ask, submitter, barred)
    if not len(rows):
        return None
    value = scores(nodes, ask, rows)
    number = int(value.max()) // formulas.BUCKET
    return Bucket(number, nodes.ids[rows[value >= number * formulas.BUCKET]])


def draw(bucket: Bucket, seed: bytes) -> Winner:
    """Return the node of a bucket that wins the tie-break: the largest lot, of two equal ones the lower id."""
    values = tie_breaks(seed, bucket.ids)
    first = int(values.argmax())
    return Winner(NodeId(int(bucket.ids[first])), bucket.number << 40 | int(values[first]))


def winner(
    nodes: Nodes,
    terms: Terms,
    job: JobId,
    index: int,
    unit: Unit,
    best: Best,
    barred: Sequence[int] = (),
) -> Winner | None:
    """Return the node with the largest key among all that `hearth.protocol.formulas.fit` admits to a unit, or None.

    `unit` and `best` are as stored; an untouched lease is `Unit(state=State.OPEN)`.
    """
    read = formulas.with_lapse(terms, unit, best, nodes.now)
    if read.state != State.OPEN or not formulas.has_time(formulas.topped(terms, unit), nodes.now):
        return None
    bucket = best_bucket(nodes, formulas.ask_of(terms), terms.submitter, (*barred, read.node))
    return None if bucket is None else draw(bucket, formulas.seed(job, index, unit.attempts))


def gates(fleet: Fleet, terms: Terms, now: int, immutables: Immutables) -> dict[Gate, int]:
    """Count the registered nodes by the first gate that keeps them from a fresh unit of the job (FITS: they can).

    Exited nodes are left out. This answers "why is nothing happening" for one job at a time, node by node.
    """
    counts: dict[Gate, int] = {}
    ask = formulas.ask_of(terms)
    in_time = formulas.has_time(terms, now)
    for row in np.flatnonzero(fleet.column("exited") == 0):
        node = fleet.node(NodeId(int(row) + 1))
        gate = formulas.node_gate(node, ask, now, immutables.dead_after, immutables.minimum_stake)
        if not gate and node.operator.lower() == terms.submitter.lower():
            gate = Gate.SUBMITTER
        elif not gate and not in_time:
            gate = Gate.NO_TIME
        counts[gate] = counts.get(gate, 0) + 1
    return counts
