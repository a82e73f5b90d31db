"""One word for each state that something on the market can be in: what people read, in every command and on the page.

JSON keeps the chain's own names (`state`, `status`); a key `state_text` or `status_text` beside them says these words.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hearth.protocol.types import Outcome, State, Status, Unit

DONE: Final = "done"
FAILED: Final = "failed"
STATE_LABELS: Final[Mapping[State, str]] = {
    State.BLOCKED: "waiting for other jobs",
    State.OPEN: "waiting for a machine",
    State.RUNNING: "running",
    State.CLOSING: "stopping",
    State.SUBMITTED: "result in",
    State.DISPUTED: "under review",
    State.SETTLED: DONE,
    State.REFUNDED: "refunded",
    State.CANCELLED: "cancelled",
    State.EXPIRED: "expired",
}
"""A unit's state; of a settled one whose program failed FAILED is said instead."""
JOB_LABELS: Final = tuple(
    word for state in STATE_LABELS for word in ((DONE, FAILED) if state is State.SETTLED else (STATE_LABELS[state],))
)
"""Every word for a unit or for a job as a whole, in the order in which they come."""
STATUS_LABELS: Final[Mapping[Status, str]] = {
    Status.PENDING: "not ready",
    Status.ACTIVE: "live",
    Status.INACTIVE: "silent",
    Status.SLASHED: "quarantined",
    Status.EXITING: "leaving",
    Status.EXITED: "left",
}
"""A node's status. The chain knows no pause: a paused node is live to others, and silent once it has not beaten."""
END_LABELS: Final[Mapping[str, str]] = {
    "Settled": DONE,
    "Submitted": STATE_LABELS[State.SUBMITTED],
    "Closed": "stopped",
    "Reclaimed": "taken away",
    "Declined": "given back",
    "GaveUp": "gave up",
    "Rejected": "rejected",
    "Unproven": "unproven",
    "Lapsed": "let it pass",
}
"""How a node's lease stands by what came last; of a result that is not ok FAILED is said instead of DONE.

A proposal that its node let pass, or that a better node took over, is in no event: "Lapsed" stands for it.
"""


def unit_label(unit: Unit) -> str:
    """Return the word for how a unit stands; empty for one that there is not."""
    if unit.state is State.SETTLED and unit.outcome is not Outcome.OK:
        return FAILED
    return STATE_LABELS.get(unit.state, "")


def array_label(tally: Mapping[str, int], leases: int, needed: int) -> tuple[str, str]:
    """Return of an array that has ended its word, and the same with how many of its units that is true of.

    `tally` counts its leases by their words; with `needed` good ones it is done.
    """
    done, failed = tally.get(DONE, 0), tally.get(FAILED, 0)
    if done >= needed:
        return DONE, DONE
    for word, count in tally.items():
        if count == leases:
            return word, word
    if failed:
        return FAILED, f"{failed} of {leases} units {FAILED}"
    return STATE_LABELS[State.REFUNDED], f"{done} of {leases} units {DONE}"


def counted(tally: Mapping[str, int]) -> str:
    """Return "2 done, 1 running"."""
    return ", ".join(f"{count} {word}" for word, count in tally.items())
