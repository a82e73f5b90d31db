"""Draw the tie-break of many nodes at once, pure: Keccak-256 over columns.

`hearth.protocol.formulas.lot` hashes 64 bytes for one node; where a fleet shares one bucket, every node's lot counts,
and a Python call per hash would cost more than all other work of a match. Here one lane of numpy arrays holds the same
lane of every node's sponge, so the 24 rounds run once for the whole fleet. Source: FIPS 202 (Keccak-f[1600]) with the
original padding byte 0x01, as the EVM's keccak256.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from hearth.protocol import formulas
from hearth.protocol.types import NodeId

U64 = npt.NDArray[np.uint64]

_ROUNDS: Final = 24
_CHUNK: Final = 2_048
"""Nodes per pass: 25 lanes of this length stay in a core's second-level cache."""
_FEW: Final = 32
"""Below this many nodes, one hash after another is faster than 24 rounds of array calls."""


def _round_constants() -> tuple[np.uint64, ...]:
    """Derive the round constants from the degree-8 feedback register of FIPS 202, section 3.2.5."""
    constants = []
    register = 1
    for _ in range(_ROUNDS):
        word = 0
        for j in range(7):
            if register & 1:
                word |= 1 << ((1 << j) - 1)
            register <<= 1
            if register & 0x100:
                register ^= 0x171
        constants.append(np.uint64(word))
    return tuple(constants)


def _rho_pi() -> tuple[U64, npt.NDArray[np.intp]]:
    """Derive each lane's turn and the lane that each place takes, from FIPS 202, sections 3.2.2 and 3.2.3.

    Lanes are numbered x + 5y. Every row of five is followed by its first two again, so that `chi` reads its
    neighbours by a shifted view: 7 places a row.
    """
    turns = np.zeros((25, 1), np.uint64)
    source = np.zeros(25, np.intp)
    x, y = 1, 0
    for t in range(24):
        turns[x + 5 * y] = (t + 1) * (t + 2) // 2 % 64
        x, y = y, (2 * x + 3 * y) % 5
    for y in range(5):
        for x in range(5):
            source[y + 5 * ((2 * x + 3 * y) % 5)] = x + 5 * y
    rows = source.reshape(5, 5)
    return turns, np.concatenate([rows, rows[:, :2]], axis=1).reshape(35)


_CONSTANTS: Final = _round_constants()
_TURNS, _SOURCE = _rho_pi()
_BACK: Final = np.uint64(64) - _TURNS
_ONE: Final = np.uint64(1)
_SIXTY_THREE: Final = np.uint64(63)


def _squeeze(seed: bytes, ids: U64) -> U64:
    """Return lane 3 (digest bytes 24 to 31, least significant first) of keccak256(seed ++ uint256(id))."""
    n = len(ids)
    lanes = np.zeros((25, n), np.uint64)
    for i in range(4):
        lanes[i] = int.from_bytes(seed[8 * i : 8 * i + 8], "little")
    lanes[7] = ids.byteswap()
    lanes[8] = 1
    lanes[16] = 1 << 63
    square = lanes.reshape(5, 5, n)
    spare = np.empty((25, n), np.uint64)
    rows = np.empty((35, n), np.uint64)
    wide = rows.reshape(5, 7, n)
    around = np.empty((7, n), np.uint64)
    tilt, turned = np.empty((5, n), np.uint64), np.empty((5, n), np.uint64)
    for constant in _CONSTANTS:
        np.bitwise_xor.reduce(square, axis=0, out=around[1:6])  # theta
        around[0], around[6] = around[5], around[1]
        np.left_shift(around[2:], _ONE, out=tilt)
        np.right_shift(around[2:], _SIXTY_THREE, out=turned)
        np.bitwise_or(tilt, turned, out=tilt)
        np.bitwise_xor(tilt, around[:5], out=tilt)
        np.bitwise_xor(square, tilt, out=square)
        np.right_shift(lanes, _BACK, out=spare)  # rho; numpy shifts a lane by 64 to 0
        np.left_shift(lanes, _TURNS, out=lanes)
        np.bitwise_or(lanes, spare, out=lanes)
        np.take(lanes, _SOURCE, axis=0, out=rows, mode="clip")  # pi
        np.invert(wide[:, 1:6], out=square)  # chi
        np.bitwise_and(square, wide[:, 2:], out=square)
        np.bitwise_xor(square, wide[:, :5], out=square)
        np.bitwise_xor(lanes[0], constant, out=lanes[0])  # iota
    out: U64 = lanes[3]
    return out


def tie_breaks(seed: bytes, ids: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return `hearth.protocol.formulas.lot(seed, id)` of every id: 40-bit integers, in the order of `ids`."""
    if len(ids) < _FEW:
        return np.array([formulas.lot(seed, NodeId(int(i))) for i in ids], np.int64)
    out = np.empty(len(ids), np.int64)
    for start in range(0, len(ids), _CHUNK):
        part = ids[start : start + _CHUNK].astype(np.uint64)
        out[start : start + _CHUNK] = (_squeeze(seed, part).byteswap() & np.uint64((1 << 40) - 1)).astype(np.int64)
    return out
