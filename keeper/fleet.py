"""Every node of a market in columns, as of one block; pure.

A `Fleet` holds every node's seven words and the columns derived from them, written by the page; `Fleet.at` freezes what
holds at one block: rates in force, nodes that can take anything at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from hearth.protocol import reputation, words
from hearth.protocol.formulas import Immutables, active_stake
from hearth.protocol.types import BPS, Node, NodeFlag, NodeId
from keeper.columns import F64, I64, U64, approx, at_least, bits, lane_of, limbs_of

Whole = npt.NDArray[np.signedinteger[Any]]

NODE_WORDS: Final = 7
"""Words of `INodeRegistry.Node`: owner, operator, stake, offer, hot, next_ask, exit_at."""
NODE_BYTES: Final = 32 * NODE_WORDS
OWNER, OPERATOR, STAKE, OFFER, HOT, NEXT_ASK, EXIT_AT = range(NODE_WORDS)

_NEVER: Final = 2**62
_NEXT_ASK_BITS: Final = 80


def encode_node(node: Node) -> bytes:
    """Return the seven words of a node as the chain's ABI has them, 224 bytes."""
    values = (
        int(node.owner, 16),
        int(node.operator, 16),
        node.stake,
        words.pack_offer(node.offer),
        words.pack_node_state(node.state),
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
        state=words.unpack_node_state(v[HOT]),
        next_ask=v[NEXT_ASK] & (1 << _NEXT_ASK_BITS) - 1,
        next_ask_at=v[NEXT_ASK] >> _NEXT_ASK_BITS,
        exit_at=v[EXIT_AT],
    )


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
        self._bond_low = np.zeros(capacity, np.uint64)
        self._bond = np.zeros(capacity, np.float64)

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
        self._wide["ask_low"][rows], self._wide["ask_high"][rows] = bits(offer, ask_at, 80)
        self._wide["next_low"][rows], self._wide["next_high"][rows] = bits(upcoming, 0, 80)
        bond_low, bond_high = bits(hot, words.shift_of(words.HOT, "bond"), 80)
        self._bond_low[rows], self._bond[rows] = bond_low, approx(bond_low, bond_high)
        self._free_low[rows] = stake_low - bond_low
        self._free[rows] = approx(stake_low, stake_high) - self._bond[rows]
        column = {name: values[rows] for name, values in self._whole.items()}
        starts, _ = bits(upcoming, _NEXT_ASK_BITS, 62)
        column["turns_at"][:] = np.where(column["pending"] != 0, starts.astype(np.int64), _NEVER)
        column["leaves"][:] = limbs[:, EXIT_AT].any(axis=1)
        column["exited"][:] = ~limbs[:, OPERATOR].any(axis=1)
        r, s, one = column["r"], column["s"], reputation.ONE
        column["reputation"][:] = BPS * (r + one) // (r + s + 2 * one)
        slots = np.maximum(column["slots"], 1)  # a row of zeros: no slots, never ready
        column["load"][:] = 300 * (column["busy"] * BPS // slots)
        self._size = max(self._size, start + count)

    def node(self, node: NodeId) -> Node:
        """Return one node as it was last written. Raises IndexError for an id that is not in the fleet."""
        if not 1 <= node <= self._size:
            raise IndexError(node)
        return decode_node(node, self._limbs[node - 1][:, ::-1].astype(">u8").tobytes())

    def column(self, name: str) -> I64:
        """Return a whole column (read only by convention): see `_WHOLE` for the names."""
        return self._whole[name][: self._size]

    def at(self, now: int, immutables: Immutables) -> Nodes:
        """Freeze what holds at chain second `now`: rates in force, and the nodes that can take a lease at all."""
        live, column = slice(0, self._size), {name: values[: self._size] for name, values in self._whole.items()}
        ready = column["beat"] != 0
        ready &= now - column["beat"] < immutables.dead_after
        ready &= column["status"] & NodeFlag.EXITING == 0
        ready &= now >= column["quarantine"]
        ready &= column["busy"] < column["slots"]
        rows = np.flatnonzero(ready)
        stake = self._limbs[rows, STAKE]
        rows = rows[at_least(approx(stake[:, 0], stake[:, 1]), stake[:, 0], active_stake(immutables.minimum_stake))]
        turned = now >= column["turns_at"][rows]
        low = np.where(turned, self._wide["next_low"][live][rows], self._wide["ask_low"][live][rows])
        high = np.where(turned, self._wide["next_high"][live][rows], self._wide["ask_high"][live][rows])
        kept: dict[str, Whole] = {name: column[name][rows] for name in _KEPT}
        kept.update({name: column[name][rows].astype(np.int32) for name in SIZES})
        return Nodes(
            fleet=self,
            now=now,
            immutables=immutables,
            ids=rows + 1,
            rate=approx(low, high),
            rate_low=low,
            rate_high=high,
            free=self._free[rows],
            free_low=self._free_low[rows],
            bond=self._bond[rows],
            bond_low=self._bond_low[rows],
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
        self._bond_low = grown(self._bond_low)  # type: ignore[assignment]
        self._bond = grown(self._bond)  # type: ignore[assignment]
        self._wide = {name: grown(values) for name, values in self._wide.items()}  # type: ignore[misc]
        self._whole = {name: grown(values) for name, values in self._whole.items()}  # type: ignore[misc]


SIZES: Final = ("gpu_count", "vram_gib", "cores", "ram_gib", "disk_gib", "tier")
_LANES: Final = {
    **{name: (OFFER, words.OFFER, name) for name in (*SIZES, "runtimes", "zone", "slots", "pending")},
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

    `ids` ascends. `rate` is the ask in force as float64 with its low and high words; `free` the stake not bonded,
    `bond` the rest.
    """

    fleet: Fleet
    now: int
    immutables: Immutables
    ids: I64
    rate: F64
    rate_low: U64
    rate_high: U64
    free: F64
    free_low: U64
    bond: F64
    bond_low: U64
    operator_low: U64
    columns: dict[str, Whole]
