"""Match a unit with the fleet: the formulas of `hearth.protocol.formulas` over columns, bit for bit.

A `Fleet` holds every node's seven words and the columns derived from them, written by the page; `Fleet.at` freezes
what holds at one block (rates in force, nodes that can take anything at all), and `winner` names the node with the
largest key for one unit. The score is the same integer as `hearth.protocol.formulas.score` and the winner the same node
as a loop over `hearth.protocol.formulas.fit` and `key` would name (tests/keeper/test_match.py). Pure: numbers in,
numbers out.

Exactness. Rates, stakes and bonds have up to 80 bits, more than an int64 column holds. Each such value is kept
twice: as a float64 (relative error below 2**-51) and as its low 64 bits. A comparison is decided by the floats where
they differ by at least 2**40, far above their error of 2**30; nearer ones differ by less than 2**41 and are decided
by the difference of the low halves, which is then exact as a signed 64-bit number. The price share
floor((ceiling - rate) * 10000 / ceiling) is taken from the float quotient v, whose error is below 1e-10, unless v is
within 1e-6 of an integer m; there |(ceiling - rate) * 10000 - m * ceiling| < 2**61, so its low 64 bits give its sign.
Quotients of small integers (below 2**42, by at most 2**17) are floored from float64, where they cannot round across
an integer.

Source: SPEC section "Matching".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from hearth.protocol import formulas, words
from hearth.protocol.formulas import Ask, Market
from hearth.protocol.types import Best, Gate, HotStatus, JobId, Node, NodeId, Policy, State, Terms, Unit
from hearth.protocol.zones import ZONE_COUNT, zone_distance
from keeper.lots import lots

I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]
F64 = npt.NDArray[np.float64]
Whole = npt.NDArray[np.signedinteger[Any]]
Mask = npt.NDArray[np.bool_]

NODE_WORDS: Final = 7
"""Words of `INodeRegistry.Node`: owner, operator, stake, offer, hot, next_ask, exit_at."""
NODE_BYTES: Final = 32 * NODE_WORDS
OWNER, OPERATOR, STAKE, OFFER, HOT, NEXT_ASK, EXIT_AT = range(NODE_WORDS)

_LOW: Final = 2**64 - 1
_TWO64: Final = float(2**64)
_NEAR: Final = float(2**40)
_EDGE: Final = 1e-6
_NEVER: Final = 2**62
_NEXT_ASK_BITS: Final = 80


def encode_node(node: Node) -> bytes:
    """Return the seven words of a node as the chain's ABI has them, 224 bytes."""
    values = (
        int(node.owner, 16),
        int(node.operator, 16),
        node.stake,
        words.pack_offer(node.offer),
        words.pack_hot(node.hot),
        node.next_ask_at << _NEXT_ASK_BITS | node.next_ask,
        node.exit_at,
    )
    return b"".join(value.to_bytes(32, "big") for value in values)


def decode_node(node: NodeId, raw: bytes) -> Node:
    """Return the node that 224 bytes of chain words describe. Raises ValueError for spare bits."""
    v = [int.from_bytes(raw[32 * i : 32 * i + 32], "big") for i in range(NODE_WORDS)]
    return Node(
        id=node,
        owner=f"0x{v[OWNER]:040x}",
        operator=f"0x{v[OPERATOR]:040x}",
        stake=v[STAKE],
        offer=words.unpack_offer(v[OFFER]),
        hot=words.unpack_hot(v[HOT]),
        next_ask=v[NEXT_ASK] & (1 << _NEXT_ASK_BITS) - 1,
        next_ask_at=v[NEXT_ASK] >> _NEXT_ASK_BITS,
        exit_at=v[EXIT_AT],
    )


def limbs_of(raw: bytes, count: int) -> U64:
    """Return `count` words of ABI bytes as an array (words, 4) of 64-bit limbs, least significant first."""
    big = np.frombuffer(raw, dtype=">u8", count=4 * count).reshape(count, 4)
    return np.ascontiguousarray(big[:, ::-1].astype(np.uint64))


def lane_of(limbs: U64, lanes: words.Word, name: str) -> I64:
    """Return lane `name` (at most 62 bits wide) of every word of `limbs`, shape (words, 4)."""
    shift, width = words.shift_of(lanes, name), words.width_of(lanes, name)
    if width > 62:
        raise ValueError(f"{name} does not fit an int64 column")
    low, _ = _bits(limbs, shift, width)
    return low.astype(np.int64)


def _bits(limbs: U64, shift: int, width: int) -> tuple[U64, U64]:
    """Return bits [shift, shift + width) as (low 64 bits, the rest), width at most 128."""
    first, offset = divmod(shift, 64)

    def limb(i: int) -> U64:
        part: U64 = limbs[:, i] if i < 4 else np.zeros(len(limbs), np.uint64)
        if offset == 0:
            return part
        above: U64 = limbs[:, i + 1] if i + 1 < 4 else np.zeros(len(limbs), np.uint64)
        joined: U64 = (part >> np.uint64(offset)) | (above << np.uint64(64 - offset))
        return joined

    low = limb(first)
    if width <= 64:
        return low & np.uint64((1 << width) - 1), np.zeros(len(limbs), np.uint64)
    return low, limb(first + 1) & np.uint64((1 << (width - 64)) - 1)


def _approx(low: U64, high: U64) -> F64:
    """Return high * 2**64 + low as float64."""
    value: F64 = high.astype(np.float64) * _TWO64 + low.astype(np.float64)
    return value


def _at_least(approx: F64, low: U64, bound: int) -> Mask:
    """Say which of the values given as (float64, low 64 bits) are >= `bound`, exactly. |values| < 2**82."""
    distance = approx - float(bound)
    mask: Mask = distance >= _NEAR
    near = np.abs(distance) < _NEAR
    if near.any():
        exact = (low[near] - np.uint64(bound & _LOW)).view(np.int64)
        mask[near] = exact >= 0
    return mask


class Fleet:
    """Every node that was ever registered, one row each (row = id - 1), in columns.

    A cache of the chain: `write` replaces rows by what a page of `Lens.nodes` returned, nothing else changes them.
    """

    def __init__(self, capacity: int = 256) -> None:
        self._size = 0
        self._limbs = np.zeros((capacity, NODE_WORDS, 4), np.uint64)
        self._wide = {name: np.zeros(capacity, np.uint64) for name in ("ask_low", "ask_high", "next_low", "next_high")}
        self._whole = {name: np.zeros(capacity, np.int64) for name in _WHOLE}
        self._free_low = np.zeros(capacity, np.uint64)
        self._free = np.zeros(capacity, np.float64)

    def __len__(self) -> int:
        return self._size

    def write(self, first: NodeId, raw: bytes) -> None:
        """Replace the rows of nodes `first`, `first` + 1, ... by ABI words, 224 bytes a node, and derive the columns.

        Raises ValueError where the rows would leave a gap, or a stake is not below 2**80.
        """
        count, rest = divmod(len(raw), NODE_BYTES)
        start = first - 1
        if rest or not 0 <= start <= self._size:
            raise ValueError(f"{len(raw)} bytes at node {first} do not continue a fleet of {self._size}")
        self._reserve(start + count)
        limbs = limbs_of(raw, count * NODE_WORDS).reshape(count, NODE_WORDS, 4)
        stake_low, stake_high = limbs[:, STAKE, 0], limbs[:, STAKE, 1]
        if (limbs[:, STAKE, 2:].any()) or (stake_high >> np.uint64(16)).any():
            raise ValueError(f"a stake among nodes {first}..{first + count - 1} is not below 2**80")
        rows = slice(start, start + count)
        self._limbs[rows] = limbs
        offer, hot, upcoming = limbs[:, OFFER], limbs[:, HOT], limbs[:, NEXT_ASK]
        for name, (word, lanes, lane) in _LANES.items():
            self._whole[name][rows] = lane_of(limbs[:, word], lanes, lane)
        ask_at = words.shift_of(words.OFFER, "ask")
        self._wide["ask_low"][rows], self._wide["ask_high"][rows] = _bits(offer, ask_at, 80)
        self._wide["next_low"][rows], self._wide["next_high"][rows] = _bits(upcoming, 0, 80)
        bond_low, bond_high = _bits(hot, words.shift_of(words.HOT, "bond"), 80)
        self._free_low[rows] = stake_low - bond_low
        self._free[rows] = _approx(stake_low, stake_high) - _approx(bond_low, bond_high)
        column = {name: values[rows] for name, values in self._whole.items()}
        starts, _ = _bits(upcoming, _NEXT_ASK_BITS, 62)
        column["turns_at"][:] = np.where(column["pending"] != 0, starts.astype(np.int64), _NEVER)
        column["leaves"][:] = limbs[:, EXIT_AT].any(axis=1)
        column["exited"][:] = ~limbs[:, OPERATOR].any(axis=1)
        r, s, one = column["r"], column["s"], formulas.ONE
        column["reputation"][:] = formulas.BPS * (r + one) // (r + s + 2 * one)
        slots = np.maximum(column["slots"], 1)  # a row of zeros: no slots, never ready
        column["load"][:] = 300 * (column["busy"] * formulas.BPS // slots)
        self._size = max(self._size, start + count)

    def node(self, node: NodeId) -> Node:
        """Return one node as it was last written. Raises IndexError for an id that is not in the fleet."""
        if not 1 <= node <= self._size:
            raise IndexError(node)
        return decode_node(node, self._limbs[node - 1][:, ::-1].astype(">u8").tobytes())

    def column(self, name: str) -> I64:
        """Return a whole column (read only by convention): see `_WHOLE` for the names."""
        return self._whole[name][: self._size]

    def at(self, now: int, market: Market) -> Nodes:
        """Freeze what holds at chain second `now`: rates in force, and the nodes that can take a lease at all."""
        live, column = slice(0, self._size), {name: values[: self._size] for name, values in self._whole.items()}
        ready = column["beat"] != 0
        ready &= now - column["beat"] < market.dead_after
        ready &= column["status"] & HotStatus.EXITING == 0
        ready &= now >= column["quarantine"]
        ready &= column["busy"] < column["slots"]
        rows = np.flatnonzero(ready)
        stake = self._limbs[rows, STAKE]
        rows = rows[_at_least(_approx(stake[:, 0], stake[:, 1]), stake[:, 0], market.minimum_stake)]
        turned = now >= column["turns_at"][rows]
        low = np.where(turned, self._wide["next_low"][live][rows], self._wide["ask_low"][live][rows])
        high = np.where(turned, self._wide["next_high"][live][rows], self._wide["ask_high"][live][rows])
        kept: dict[str, Whole] = {name: column[name][rows] for name in _KEPT}
        kept.update({name: column[name][rows].astype(np.int32) for name in _SIZES})
        return Nodes(
            fleet=self,
            now=now,
            market=market,
            ids=rows + 1,
            rate=_approx(low, high),
            rate_low=low,
            rate_high=high,
            free=self._free[rows],
            free_low=self._free_low[rows],
            operator_low=self._limbs[rows, OPERATOR, 0],
            columns=kept,
        )

    def _reserve(self, size: int) -> None:
        capacity = len(self._free)
        if size <= capacity:
            return
        more = max(size, 2 * capacity) - capacity

        def grown(values: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
            return np.concatenate([values, np.zeros((more, *values.shape[1:]), values.dtype)])

        self._limbs = grown(self._limbs)  # type: ignore[assignment]
        self._free_low = grown(self._free_low)  # type: ignore[assignment]
        self._free = grown(self._free)  # type: ignore[assignment]
        self._wide = {name: grown(values) for name, values in self._wide.items()}  # type: ignore[misc]
        self._whole = {name: grown(values) for name, values in self._whole.items()}  # type: ignore[misc]


_SIZES: Final = ("gpu_count", "vram_gib", "cores", "ram_gib", "disk_gib", "tier")
_LANES: Final = {
    **{name: (OFFER, words.OFFER, name) for name in (*_SIZES, "runtimes", "zone", "slots", "pending")},
    **{
        name: (HOT, words.HOT, name)
        for name in ("beat", "busy", "r", "s", "quarantine", "status", "seasoned", "cusum", "trips")
    },
}
_WHOLE: Final = (*_LANES, "turns_at", "leaves", "exited", "reputation", "load")
_KEPT: Final = ("runtimes", "zone", "busy", "seasoned", "reputation", "load")


@dataclass(frozen=True, slots=True)
class Nodes:
    """A fleet at one block: the ready nodes (live, ACTIVE, not leaving, not quarantined, with a free slot) in columns.

    `ids` ascends. `rate` is the ask in force as float64 with its low and high words; `free` the stake not bonded.
    """

    fleet: Fleet
    now: int
    market: Market
    ids: I64
    rate: F64
    rate_low: U64
    rate_high: U64
    free: F64
    free_low: U64
    operator_low: U64
    columns: dict[str, Whole]

    def rate_of(self, row: int) -> int:
        """Return the ask in force of the ready node in row `row`."""
        return int(self.rate_high[row]) << 64 | int(self.rate_low[row])


@dataclass(frozen=True, slots=True)
class Bucket:
    """The fitting nodes that share the highest bucket (score // 500,000): only their lots decide."""

    number: int
    ids: I64


@dataclass(frozen=True, slots=True)
class Match:
    """The node whose proposal wins a unit, with its key."""

    node: NodeId
    key: int


def candidates(nodes: Nodes, ask: Ask, submitter: str, barred: Iterable[int] = ()) -> I64:
    """Return the rows of the ready nodes that pass every gate of the ask, in the order of their ids.

    `barred` names nodes to leave out: the excluded one, and those whose slots other proposals will take.
    """
    needs, column = ask.needs, nodes.columns
    mask: Mask | None = None
    for name in _SIZES:
        need = getattr(needs, name)
        if need:
            enough = column[name] >= need
            mask = enough if mask is None else np.logical_and(mask, enough, out=mask)
    if needs.runtimes:
        runs = column["runtimes"] & int(needs.runtimes) == int(needs.runtimes)
        mask = runs if mask is None else np.logical_and(mask, runs, out=mask)
    if needs.zone_mask:
        near = _zones(needs.zone_mask)[column["zone"]]
        mask = near if mask is None else np.logical_and(mask, near, out=mask)
    if ask.probation:
        known = column["seasoned"] != 0
        if ask.probation == 1:
            known |= column["busy"] == 0
        mask = known if mask is None else np.logical_and(mask, known, out=mask)
    rows = np.arange(len(nodes.ids)) if mask is None else np.flatnonzero(mask)
    rows = rows[~_at_least(nodes.rate[rows], nodes.rate_low[rows], ask.ceiling + 1)]
    rows = rows[_at_least(nodes.free[rows], nodes.free_low[rows], ask.bond)]
    address = int(submitter, 16)
    same = nodes.operator_low[rows] == np.uint64(address & _LOW)
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
    gap = column["tier"][rows].astype(np.int64) - needs.tier
    hardware += 2 * np.maximum(0, formulas.BPS - 2_500 * gap)
    total += 2_000 * (hardware >> 3)
    if needs.zone_mask:
        distance = np.array([zone_distance(needs.home, zone) for zone in range(ZONE_COUNT)], np.int64)
        total += (1_000 * (formulas.BPS - 666 * distance))[column["zone"][rows]]
    else:
        total += 1_000 * formulas.BPS
    total -= column["load"][rows]
    kept: I64 = np.maximum(total, 0)
    return kept


def _price_share(rate: F64, rate_low: U64, ceiling: int) -> I64:
    """Return floor((ceiling - rate) * 10000 / ceiling), exactly (see the module's note)."""
    share = (float(ceiling) - rate) * (formulas.BPS / float(ceiling))
    whole: F64 = np.rint(share)
    edge = np.abs(share - whole) < _EDGE
    result: I64 = np.floor(share).astype(np.int64)
    if edge.any():
        m = whole[edge].astype(np.int64)
        numerator = (np.uint64(ceiling & _LOW) - rate_low[edge]) * np.uint64(formulas.BPS)
        remainder = (numerator - m.astype(np.uint64) * np.uint64(ceiling & _LOW)).view(np.int64)
        result[edge] = m - (remainder < 0)
    return result


def _size_share(need: int, offer: Whole) -> I64:
    """Return need * 10000 // offer, 10000 where the offer is 0; the gates make need <= offer."""
    if need == 0:
        return np.where(offer == 0, formulas.BPS, 0)
    share: F64 = np.floor(need * float(formulas.BPS) / offer)
    return share.astype(np.int64)


def best_bucket(nodes: Nodes, ask: Ask, submitter: str, barred: Iterable[int] = ()) -> Bucket | None:
    """Return the fitting nodes of the highest bucket, or None where no node fits."""
    rows = candidates(nodes, ask, submitter, barred)
    if not len(rows):
        return None
    value = scores(nodes, ask, rows)
    number = int(value.max()) // formulas.BUCKET
    return Bucket(number, nodes.ids[rows[value >= number * formulas.BUCKET]])


def draw(bucket: Bucket, seed: bytes) -> Match:
    """Return the node of a bucket with the largest lot; of two equal lots the lower id."""
    values = lots(seed, bucket.ids)
    first = int(values.argmax())
    return Match(NodeId(int(bucket.ids[first])), bucket.number << 40 | int(values[first]))


def winner(
    nodes: Nodes,
    terms: Terms,
    policy: Policy,
    job: JobId,
    index: int,
    unit: Unit,
    best: Best,
    barred: Sequence[int] = (),
) -> Match | None:
    """Return the node with the largest key among all that `hearth.protocol.formulas.fit` admits to a unit, or None.

    `unit` and `best` are as stored; an untouched lease is `Unit(state=State.OPEN)`.
    """
    read = formulas.with_lapse(unit, best, policy, nodes.now)
    if read.state != State.OPEN or not formulas.has_time(terms, policy, nodes.now):
        return None
    bucket = best_bucket(nodes, formulas.ask_of(terms, policy), terms.submitter, (*barred, read.node))
    return None if bucket is None else draw(bucket, formulas.seed(job, index, unit.attempts))


def gates(fleet: Fleet, terms: Terms, policy: Policy, now: int, market: Market) -> dict[Gate, int]:
    """Count the registered nodes by the first gate that keeps them from a fresh unit of the job (FITS: they can).

    Exited nodes are left out. This answers "why is nothing happening" for one job at a time, node by node.
    """
    counts: dict[Gate, int] = {}
    ask = formulas.ask_of(terms, policy)
    in_time = formulas.has_time(terms, policy, now)
    for row in np.flatnonzero(fleet.column("exited") == 0):
        node = fleet.node(NodeId(int(row) + 1))
        gate = formulas.node_gate(node, ask, now, market.dead_after, market.minimum_stake)
        if not gate and node.operator.lower() == terms.submitter.lower():
            gate = Gate.SUBMITTER
        elif not gate and not in_time:
            gate = Gate.NO_TIME
        counts[gate] = counts.get(gate, 0) + 1
    return counts
