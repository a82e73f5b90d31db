"""Words of the chain as columns of numbers, pure, and exact comparisons of values that are wider than a column.

Rates, stakes and bonds have up to 80 bits, more than an int64 column holds. Each such value is kept twice: as a float64
(relative error below 2**-51) and as its low 64 bits. A comparison is decided by the floats where they differ by at
least 2**40, far above their error of 2**30; nearer ones differ by less than 2**41 and are decided by the difference of
the low halves, which is then exact as a signed 64-bit number.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from hearth.protocol import words

I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]
F64 = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

LOW: Final = 2**64 - 1
_TWO64: Final = float(2**64)
_NEAR: Final = float(2**40)


def limbs_of(raw: bytes, count: int) -> U64:
    """Return `count` words of ABI bytes as an array (words, 4) of 64-bit limbs, least significant first."""
    big = np.frombuffer(raw, dtype=">u8", count=4 * count).reshape(count, 4)
    return np.ascontiguousarray(big[:, ::-1].astype(np.uint64))


def lane_of(limbs: U64, lanes: words.Word, name: str) -> I64:
    """Return lane `name` (at most 62 bits wide) of every word of `limbs`, shape (words, 4)."""
    shift, width = words.shift_of(lanes, name), words.width_of(lanes, name)
    if width > 62:
        raise ValueError(f"{name} does not fit an int64 column")
    low, _ = bits(limbs, shift, width)
    return low.astype(np.int64)


def bits(limbs: U64, shift: int, width: int) -> tuple[U64, U64]:
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


def approx(low: U64, high: U64) -> F64:
    """Return high * 2**64 + low as float64."""
    value: F64 = high.astype(np.float64) * _TWO64 + low.astype(np.float64)
    return value


def at_least(approx: F64, low: U64, bound: int) -> Mask:
    """Say which of the values given as (float64, low 64 bits) are >= `bound`, exactly. |values| < 2**82."""
    distance = approx - float(bound)
    mask: Mask = distance >= _NEAR
    near = np.abs(distance) < _NEAR
    if near.any():
        exact = (low[near] - np.uint64(bound & LOW)).view(np.int64)
        mask[near] = exact >= 0
    return mask
