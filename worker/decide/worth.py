"""Whether a unit brings its gas back, pure: what it may be expected to pay, and what each of its transactions costs.

A submitter chooses how long a unit bills, and may cancel it. One that ends at once pays next to nothing, and an array
can hold a million of those: so the first unit of a job shows what the next ones are worth, and what still runs has
brought nothing yet. Whatever the submitter does, a job's units have then cost the node at most what they brought and
one unit's gas. What gas each of its calls uses is in hearth.protocol.gas.
Source: docs/decisions/0018-take-only-work-that-pays-and-fits.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hearth.protocol import formulas
from hearth.protocol.gas import PAID_CHECKPOINT_GAS
from hearth.protocol.types import COIN, RATE_SCALE, NodeId, Outcome, State, Terms, TermsFlag, Unit
from worker.decide.snapshot import Config, Job, Saved


@dataclass(frozen=True, slots=True)
class Begun:
    """What an attempt begins with: the `attempt` whose state it is, 0 for none.

    A result of it is made of as many `kept` checkpoints, which come before it with so many `seconds` of the unit's.
    `whole` is false where a log is missing: it then has these seconds at least, and so many checkpoints at most.
    """

    attempt: int = 0
    seconds: int = 0
    kept: int = 0
    whole: bool = True

    def gas(self, outcome: Outcome = Outcome.OK) -> int:
        """Return what settling a result uses besides: only one that is ok pays for what it was made of."""
        return PAID_CHECKPOINT_GAS * self.kept if outcome is Outcome.OK else 0


ANEW = Begun()


def begun_with(saved: Sequence[Saved], attempt: int) -> Begun:
    """Return what a lease begins with that resumes from an attempt (0 for none), by the checkpoints of its unit."""
    known = {one.attempt: one for one in saved}
    seconds = kept = 0
    at = attempt
    while at:
        one = known.get(at)
        if one is None or one.resume >= at:
            return Begun(attempt, seconds, kept + at, whole=False)
        seconds, kept, at = seconds + one.seconds, kept + 1, one.resume
    return Begun(attempt, seconds, kept)


def expected_pay(job: Job, unit: Unit, node: NodeId, rate: int, unpaid: int, begun: Begun = ANEW) -> int:
    """Return what one more unit of a job is expected to pay the node's owner, base units, less the fee.

    `unit` is the one, `begun` what it begins with, `rate` the node's ask. It is what the node's units of that job paid,
    or will, on average, where each of the `unpaid` ones, which are being taken or run, counts as one that brought
    nothing; the most that this one can pay where the node has had none.
    """
    terms, most = job.terms, most_pay(formulas.topped(job.terms, unit), rate, begun.seconds)
    waiting = [lease for lease in job.leases if lease.unit.state is State.SUBMITTED and lease.unit.node == node]
    if terms.flags & TermsFlag.PROVEN:
        waiting = []  # they may be paid, or not
    pays = [
        formulas.pay_at_settle(terms, lease.unit, begun_with(lease.saved, lease.unit.resume).seconds)
        for lease in waiting
    ]
    seen = [*job.paid, *(pay - formulas.fee_of(pay, formulas.policy_of(terms)) for pay in pays)]
    count = len(seen) + unpaid
    return min(most, sum(seen) // count) if count else most


def most_pay(terms: Terms, rate: int, shared: int = 0) -> int:
    """Return the most that a unit brings its node at a rate, less the fee; `terms` are those with its top-ups.

    `shared` are the seconds of the checkpoints that it was made of: they are not billed once more.
    """
    most = min(formulas.price(terms), rate * max(0, formulas.lease_seconds(terms) - shared) // RATE_SCALE)
    return most - formulas.fee_of(most, formulas.policy_of(terms))


def saved_pay(terms: Terms, unit: Unit, last: int, now: int, shared: int = 0) -> int:
    """Return what a RUNNING unit's checkpoint secures, less the fee: what its node is paid for the time since the last
    one, which was at `last` seconds of the lease (0 for none), where another attempt makes a result of it.

    `shared` are the unit's seconds that come before this lease's own, as in `most_pay`.
    """
    share, whole = formulas.CHECKPOINT_SHARE
    most = formulas.lease_seconds(formulas.topped(terms, unit)) - shared
    seconds = max(0, min(now - unit.started, most) - last)
    pay = unit.rate * seconds * share // whole // RATE_SCALE
    return pay - formulas.fee_of(pay, formulas.policy_of(terms))


def settle_pay(terms: Terms, unit: Unit, now: int, shared: int = 0) -> int:
    """Return what settling a SUBMITTED unit brings its node: the pay less the fee, and the settler's reward.

    `shared` are the seconds of the checkpoints that it was made of, as in `most_pay`.
    """
    pay = formulas.pay_at_settle(terms, unit, shared)
    overdue = max(0, now - formulas.settleable_from(terms, unit))
    return pay - formulas.fee_of(pay, formulas.policy_of(terms)) + formulas.settle_reward(terms, overdue)


def close_pay(terms: Terms, unit: Unit, now: int) -> int:
    """Return what closing a CLOSING unit brings its node: as at a settlement, and what its slot could earn by now."""
    pay, overdue = formulas.pay_at_close(terms, unit), max(0, now - unit.deadline_at)
    idle = unit.rate * overdue // RATE_SCALE
    return pay - formulas.fee_of(pay, formulas.policy_of(terms)) + formulas.settle_reward(terms, overdue) + idle


def ceiling(pay: int, gas: int, config: Config) -> int | None:
    """Return the most wei per gas at which `gas` costs no more than a pay and the loss that is allowed; None for any,
    where the provider does not ask."""
    if config.max_loss is None or not config.coin_price:
        return None
    return (pay + config.max_loss) * COIN // (gas * config.coin_price)


def without_loss(config: Config) -> Config:
    """Return what the provider allows where no loss is allowed: of what may be left out, and is sent many times."""
    return config if config.max_loss is None else replace(config, max_loss=0)


def is_worth(ceiling: int | None, config: Config) -> bool:
    """Say whether a ceiling allows today's gas price."""
    return ceiling is None or ceiling >= config.gas_price


def cost(gas: int, config: Config) -> int:
    """Return what gas costs at today's price, base units, rounded up."""
    return formulas.ceil_div(gas * config.gas_price * config.coin_price, COIN)
