"""Give a unit that runs more time, for what its price grows by."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from hearth.base.errors import RefusedError, UsageError
from hearth.client.job.cancelling import indices
from hearth.client.paying import Payment, pay_once
from hearth.client.views import JobView, job_hex, moment
from hearth.protocol import formulas, words
from hearth.protocol.gas import TOP_UP_GAS
from hearth.protocol.state_labels import unit_label
from hearth.protocol.types import Billing, State, Unit
from hearth.protocol.units import amount_at_least, format_duration, parse_duration

if TYPE_CHECKING:
    from hearth.chain.tx import Sender
    from hearth.client.reading import JobReader
    from hearth.client.reports import ToppedUnit, TopUp, Transaction
    from hearth.client.session import DryRun
    from hearth.market.events import ToppedUp

APPROVE_GAS: Final = 70_000
SHOWN_UNITS: Final = 5


def top_up(reads: JobReader, view: JobView, time: str, unit: int | None, *, again: bool) -> TopUp:
    """Give a unit of one's own job `time` more, such as "30m"; without `unit`, the one that runs.

    The same time is given to the same unit once, however often this is called (`already_sent`); `again` gives it once
    more. Raises UsageError BAD_DURATION for no time and WHICH_UNIT where several units run; RefusedError NOT_METERED,
    UNIT_NOT_RUNNING, TOO_LATE, TOO_LONG and DEADLINE_NEAR; FundsError. Nothing is signed then.
    """
    session, terms, market = reads.session, view.terms, reads.session.market
    name, seconds = job_hex(view.posted.job_id)[:14], parse_duration(time)
    if not seconds:
        raise UsageError(
            f"{time} is no time to top up by", hint=f"hearth job top-up {name} --time 30m", code="BAD_DURATION"
        )
    index = _chosen(view, unit)
    now, length = view.units[index], format_duration(seconds)
    wrong = _refusal(view, index, seconds)
    if wrong is not None and not now.seconds:
        # Nothing that was sent earlier has come to anything: there is no payment to look for.
        raise wrong
    amount = formulas.top_up_amount(terms, now, seconds)
    effect = f"top-up/{view.posted.job_id.hex()}/{index}/{seconds}/"
    approvals: list[Transaction] = []

    def ready(sender: Sender | DryRun) -> bool:
        if wrong is not None:
            raise wrong
        # Unlimited for the native coin.
        short = market.allowance(terms.submitter, session.network.jobs) < amount
        gas = TOP_UP_GAS + (APPROVE_GAS if short else 0)
        session.require_funds(terms.submitter, asset_units=amount, gas=gas, what="topping up")
        if short:
            approve = market.calls.approve(session.network.jobs, amount)
            approvals.append(session.send(sender, approve, f"approve/{effect}{now.attempts}/{now.seconds}"))
        # Simulated without its approval, the call would be refused.
        return not (session.dry_run and short)

    if wrong is None and not session.dry_run:
        text = f"top unit {index} of job {name} up by {length} for {amount_at_least(amount, session.asset)}?"
        session.tell("confirm", {"text": text, "needed": False})
    payment = Payment(
        market.calls.top_up(terms, index, now, seconds),
        effect,
        f"top-up of unit {index} of job {name} by {length}",
        f"hearth job top-up {name} --unit {index} --time {length}",
        ready,
    )
    paid, already = pay_once(session, payment, again=again)
    new = replace(now, mark=now.mark + seconds, seconds=now.seconds + seconds)
    told = None if session.dry_run else _told(reads, paid)
    if told is not None:
        # What was sent earlier came to something else than it would now.
        amount, new = told.amount, words.unpack_unit(told.word)
    facts = _facts(reads, view, index, new)
    return {
        **facts,
        "seconds": seconds,
        "amount": str(amount),
        "amount_text": session.amount(amount),
        "already_sent": already,
        "transactions": [*approvals, *paid],
        "dry_run": session.dry_run,
    }


def _facts(reads: JobReader, view: JobView, index: int, unit: Unit) -> ToppedUnit:
    """Return what a unit has once it was topped up."""
    price = formulas.unit_price(formulas.topped(view.terms, unit))
    return {
        "schema": "hearth.action/1",
        "action": "top-up",
        "job": job_hex(view.posted.job_id),
        "unit": index,
        "topped_up": unit.seconds,
        "price": str(price),
        "price_text": reads.session.amount(price),
        "deadline_at": unit.deadline_at,
        "deadline_text": moment(unit.deadline_at),
    }


def _chosen(view: JobView, unit: int | None) -> int:
    """Return the unit that is meant: of an array without a number, the only one that runs."""
    name = job_hex(view.posted.job_id)[:14]
    running = indices(view, unit, (State.RUNNING,))
    if unit is not None or view.header is None:
        index = unit or 0
        if index >= len(view.units):
            raise _not_running(
                f"unit {index} of job {name} waits for a machine: there is no run to give more time", name
            )
        return index
    if not running:
        raise _not_running(f"no unit of job {name} runs: its state is {view.labels[1]}", name)
    if len(running) > 1:
        shown = ", ".join(map(str, running[:SHOWN_UNITS]))
        more = f" and {len(running) - SHOWN_UNITS} more" if len(running) > SHOWN_UNITS else ""
        raise UsageError(
            f"{len(running)} units of job {name} run: {shown}{more}",
            hint=f"hearth job top-up {name} --unit {running[0]} --time ...",
            code="WHICH_UNIT",
        )
    return running[0]


def _refusal(view: JobView, index: int, seconds: int) -> RefusedError | None:
    """Return why the contract would refuse to give a unit so many seconds more, None where it would not."""
    terms, unit, name = view.terms, view.units[index], job_hex(view.posted.job_id)[:14]
    which = f"unit {index} of job {name}"
    if unit.state is not State.RUNNING:
        return _not_running(f"{which} does not run: its state is {unit_label(unit)}", name)
    if terms.billing is not Billing.METERED:
        return RefusedError(
            f"job {name} bills {terms.billing.name.lower()}, and only a metered one can be topped up",
            hint=f"hearth job show {name}; write billing: metered into the next job file",
            code="NOT_METERED",
        )
    if view.now >= unit.deadline_at:
        return RefusedError(
            f"{which} had to end by {moment(unit.deadline_at)}: it is too late for more time",
            hint=f"hearth job show {name}",
            code="TOO_LATE",
        )
    has = terms.max_seconds + unit.seconds
    if has + seconds > formulas.MAX_SECONDS:
        most = formulas.MAX_SECONDS - has
        return RefusedError(
            f"{which} has {format_duration(has)}, and no unit has more than {format_duration(formulas.MAX_SECONDS)}",
            hint=_less(name, index, most),
            code="TOO_LONG",
        )
    if unit.deadline_at + seconds > terms.deadline:
        most = max(0, terms.deadline - unit.deadline_at)
        return RefusedError(
            f"{which} may run until {moment(unit.deadline_at)}, and its job's deadline is {moment(terms.deadline)}: "
            f"there is room for {format_duration(most)} more",
            hint=_less(name, index, most),
            code="DEADLINE_NEAR",
        )
    return None


def _not_running(text: str, name: str) -> RefusedError:
    return RefusedError(text, hint=f"hearth job show {name}", code="UNIT_NOT_RUNNING")


def _less(name: str, index: int, most: int) -> str:
    """Return what can be done instead where at most so many seconds can be given."""
    if not most:
        return f"hearth job show {name}; more time needs a new job with a longer limits.runtime"
    return f"hearth job top-up {name} --unit {index} --time {format_duration(most)}"


def _told(reads: JobReader, paid: list[Transaction]) -> ToppedUp | None:
    """Return what the chain told of a top-up; None where its receipt is not served."""
    from hearth.market.events import ToppedUp

    market = reads.session.market
    receipts = [market.port.receipt(bytes.fromhex(one["tx"][2:])) for one in paid if one["tx"] is not None]
    logs = [log for receipt in receipts if receipt is not None for log in receipt.logs]
    return next((event for event in market.events_in(logs) if isinstance(event, ToppedUp)), None)
