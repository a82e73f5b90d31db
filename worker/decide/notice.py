"""What a cancelled unit hands in within its notice, pure: its logs and outputs so far, for no more than `close` takes.

A `close` names no documents, so what was paid for would be lost. A submit names them; what it pays depends on the
billing. Source: docs/decisions/0007-price-each-early-end-of-a-lease.md.
"""

from __future__ import annotations

from dataclasses import replace

from hearth.protocol import formulas
from hearth.protocol.types import ZERO_ADDRESS, Billing, Outcome, State, Terms, Unit


def used_as_closed(terms: Terms, unit: Unit) -> int:
    """Return the `used` of a CLOSING unit's submit that pays what its close would: fuel seconds, 0 in other jobs.

    What a program used that was stopped is not known: a sandbox that is killed tells no count.
    """
    if terms.billing is not Billing.FUEL:
        return 0
    most = formulas.lease_seconds(formulas.topped(terms, unit))
    return max(1, min(most, unit.deadline_at - unit.started + formulas.policy_of(terms).start_fee_seconds))


def may_hand_in(terms: Terms, unit: Unit) -> bool:
    """Say whether a CLOSING unit whose program is stopped may be submitted as a time-out, by the last second that may.

    Nobody rules on it, since no second run makes the same of it, and it costs its submitter no more than its close.
    """
    if terms.judge != ZERO_ADDRESS:
        return False
    last = handed_in(terms, unit, unit.deadline_at - 1)
    return formulas.pay_at_settle(terms, last) <= formulas.pay_at_close(terms, unit)


def handed_in(terms: Terms, unit: Unit, at: int) -> Unit:
    """Return a CLOSING unit as it is once it has handed in what it has, at a second of the chain."""
    seconds = unit.seconds + used_as_closed(terms, unit)
    return replace(unit, state=State.SUBMITTED, outcome=Outcome.TIMEOUT, mark=at, seconds=seconds)
