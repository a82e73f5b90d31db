"""Whether a unit brings its gas back, pure: what it may be expected to pay, and what taking and submitting it costs.

A submitter chooses how long a unit bills. One that ends at once pays next to nothing where its time or its fuel is
billed, and an array can hold a million of those: so the first units of a job show what the next ones are worth.
Figures of gas are the ceilings of docs/GAS.md.
"""

from __future__ import annotations

from typing import Final

from hearth.protocol import formulas
from hearth.protocol.types import RATE_SCALE, Billing, NodeId, Policy, State
from worker.decide.snapshot import Job

COIN: Final = 10**18
"""Wei in one native coin."""
ACK_GAS: Final = 75_000
CLAIM_GAS: Final = 78_000
PROPOSE_GAS: Final = 103_000
SUBMIT_GAS: Final = 44_000
"""Each as for a unit of an array, which is the dearer kind."""


def expected_pay(job: Job, policy: Policy, node: NodeId, rate: int) -> int:
    """Return what one more unit of a job is expected to pay the node's owner, base units, less the fee.

    `rate` is the node's ask. It is what the node's units of that job paid, or will, on average; the most that a unit
    can pay where there is none, and where every unit bills its full time.
    """
    terms = job.terms
    most = min(formulas.price(terms), rate * formulas.lease_seconds(terms) // RATE_SCALE)
    most -= formulas.fee_of(most, policy)
    if terms.billing is Billing.FIXED:
        return most
    waiting = [lease.unit for lease in job.leases if lease.unit.state is State.SUBMITTED and lease.unit.node == node]
    pays = [formulas.pay_at_settle(terms, policy, unit) for unit in waiting]
    seen = [*job.paid, *(pay - formulas.fee_of(pay, policy) for pay in pays)]
    return min(most, sum(seen) // len(seen)) if seen else most


def gas_worth(pay: int, max_loss: int, gas: int, coin_price: int) -> int:
    """Return the most wei per gas at which `gas` costs no more than a pay and the loss that is allowed."""
    return (pay + max_loss) * COIN // (gas * coin_price)
