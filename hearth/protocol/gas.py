"""What gas each call of the contracts may use, pure: keepers and workers reckon with it before they ask the chain.

Each figure is that of the dearest kind of unit, one of an array that an earlier holder gave back, and a few percent
above what was measured: who reckons with less takes work that costs more than it brings. Of a batch each item may come
from an array of another owner, and is accused by nobody: one that is costs 12,000 more. tests/contracts/test_gas.py
measures them all; docs/GAS.md has the figures of single units.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeVar

from hearth.protocol.types import Outcome, Unit

T = TypeVar("T")

BEAT_GAS: Final = 27_200
PROPOSE_GAS: Final = 77_000
"""For a unit that was touched before, as that of every job without an array is."""
PROPOSE_NEXT_GAS: Final = 103_000
"""For the next untouched unit of an array."""
IMPROVE_GAS: Final = 60_000
ACK_GAS: Final = 75_000
CLAIM_GAS: Final = 78_000
SUBMIT_GAS: Final = 44_000
SUBMIT_JUDGED_GAS: Final = 67_000
"""Where a judge is named, or the terms ask to KEEP the digest: its slot is new."""
CHECKPOINT_GAS: Final = 58_000
"""The first of a lease; later ones cost less."""
SETTLE_GAS: Final = 104_000
"""Of one that resumed none: each kept checkpoint that it pays costs more."""
PAID_CHECKPOINT_GAS: Final = 36_500
"""What settling a unit uses besides for each checkpoint that its result was made of."""
FINISH_GAS: Final = 102_000
"""Of a result that its own operator settles, as SETTLE_GAS."""
FINISH_CLAIMS_GAS: Final = 135_000
"""Of one that takes the array's next unit too."""
LEASE_GAS: Final = CLAIM_GAS + SUBMIT_GAS + SETTLE_GAS
"""What a unit costs a worker that claims it and settles it itself."""
SETTLE_BATCH_GAS: Final = 41_000
SETTLE_ITEM_GAS: Final = 55_000
"""Of a batch of settlements, and of each unit in it."""
MAX_SETTLE: Final = 64
"""The most units that one `settle_batch` takes."""
CLOSE_GAS: Final = 89_000
RECLAIM_GAS: Final = 114_000
"""Of one that leaves a checkpoint to keep."""
EXPIRE_GAS: Final = 60_500
UNLOCK_GAS: Final = 58_500
UNLOCK_PARENT_GAS: Final = 3_250
"""Of opening or refunding a job by its parents' ends, and of each parent."""
LIVENESS_BATCH_GAS: Final = 35_000
LIVENESS_ITEM_GAS: Final = 25_000
"""Of a check of silent nodes, and of each node in it."""
WITHDRAW_GAS: Final = 36_600
TOP_UP_GAS: Final = 70_000
"""Where a token pays, its approval aside; a native coin's costs less."""


def beats_gas(dead_after: int) -> int:
    """Return what a day of a node's beats may use: three in the seconds after which a silent one counts as dead."""
    return 86_400 * 3 // dead_after * BEAT_GAS


def settling_gas(units: int) -> int:
    """Return what settling so many units in one transaction may use."""
    return SETTLE_GAS if units == 1 else SETTLE_BATCH_GAS + SETTLE_ITEM_GAS * units


def paid_checkpoints_gas(unit: Unit) -> int:
    """Return what settling a unit may use besides, for the checkpoints that its result was made of.

    Which they are, only storage says: at most the one that it resumed from and every one before.
    """
    return PAID_CHECKPOINT_GAS * unit.resume if unit.outcome is Outcome.OK else 0


def settling_batches(units: Sequence[T], more_gas: Callable[[T], int]) -> Iterator[list[T]]:
    """Yield units to be settled together, in their order; `more_gas` is what one uses beside any other's.

    A batch uses no more than one of MAX_SETTLE units without checkpoints: those that pay for some fill it sooner.
    """
    part: list[T] = []
    for unit in units:
        if part and settling_gas(len(part) + 1) + sum(map(more_gas, [*part, unit])) > settling_gas(MAX_SETTLE):
            yield part
            part = []
        part.append(unit)
    if part:
        yield part


def unlocking_gas(parents: int) -> int:
    """Return what unlocking a job with so many parents may use."""
    return UNLOCK_GAS + UNLOCK_PARENT_GAS * parents
