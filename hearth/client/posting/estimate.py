"""What a job is expected to cost, by each billing that it may choose, and what the figure goes by.

No figure is invented. The rate is the middle ask of the workers that can take the job, none above its ceiling. The
seconds are those that units of the very same spec took, posted from here and settled on this chain: their inputs and
their program were these. Where one of the two is not known, there is a ceiling and no expectation.
Source: protocol.md "Money"; docs/decisions/0004-bill-containers-by-time.md says why.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from hearth.jobfile.resolved import FUEL_PER_SECOND
from hearth.market.reads import job_of
from hearth.protocol import formulas
from hearth.protocol.types import RATE_SCALE, Billing, Header, JobId, State, Unit, UnitFlag
from hearth.protocol.units import amount_at_least, format_duration, show_amount, show_rate

if TYPE_CHECKING:
    from hearth.client.session import Session
    from hearth.protocol.runtimes import RuntimeKind
    from hearth.protocol.types import Terms
    from hearth.protocol.units import Asset

LOOKED_JOBS: Final = 8
"""Earlier jobs of the same spec that are looked at, the newest first."""
LOOKED_UNITS: Final = 256
"""Units of each that are looked at, one page of Lens."""


@dataclass(frozen=True, slots=True)
class Runs:
    """What settled units of one spec took, in seconds: `elapsed` by the chain's clock, `fuel` where that was billed."""

    elapsed: tuple[int, ...] = ()
    fuel: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Cost:
    """What a job costs by one billing, base units.

    `at_most` is what posting locks. `expected` is None where the rate or the `seconds` that a unit bills are not known.
    """

    billing: Billing
    at_most: int
    expected: int | None
    seconds: int | None


@dataclass(frozen=True, slots=True)
class Estimate:
    """A job's costs, the chosen billing's first, and what they go by: `rate` is the middle one of `asks` workers."""

    costs: tuple[Cost, ...]
    rate: int | None
    asks: int
    units: int

    def lines(self, terms: Terms, asset: Asset) -> list[str]:
        """Say the costs and their ground in words; nothing where there is no rate to go by."""
        if self.rate is None:
            return []
        # At this rate no billing comes to more than the full time does.
        most = next(cost.expected for cost in self.costs if cost.billing is Billing.FIXED)
        assert most is not None
        costs = "; ".join(_cost_words(cost, self.rate, most, terms.billing, asset) for cost in self.costs)
        worker = "the ask of the one worker" if self.asks == 1 else f"the middle ask of the {self.asks} workers"
        seconds = {cost.billing: cost.seconds for cost in self.costs}
        elapsed, fuel = seconds[Billing.METERED], seconds.get(Billing.FUEL)
        time = "how long a unit takes is not known: none of this very spec has run and was settled from here"
        if elapsed is not None:
            counted = "" if fuel is None else f" and {format_duration(fuel)} of fuel"
            ran = "as the one" if self.units == 1 else f"the middle of {self.units}"
            time = f"{format_duration(elapsed)}{counted} a unit, {ran} of this spec that ran before"
        return [
            f"expected: {costs}",
            f"  by {show_rate(self.rate, asset)}, {worker} that can take it, one attempt each; {time}",
        ]


def _cost_words(cost: Cost, rate: int, most: int, chosen: Billing, asset: Asset) -> str:
    """Return "metered (chosen) 0.0123 ETH", or what it costs by the minute where its seconds are not known."""
    name = cost.billing.name.lower() + (" (chosen)" if cost.billing is chosen else "")
    if cost.expected is not None:
        return f"{name} {show_amount(cost.expected, asset)}"
    minute = show_amount((rate * 60 + RATE_SCALE // 2) // RATE_SCALE, asset)
    fuel = f"{60 * FUEL_PER_SECOND // 10**9} billion instructions"
    what = fuel if cost.billing is Billing.FUEL else "minute"
    return f"{name} {minute} for each {what} of a unit, at most {amount_at_least(most, asset)}"


def estimate(terms: Terms, kind: RuntimeKind, asks: Sequence[int], runs: Runs) -> Estimate:
    """Return what a job costs by each billing of its runtime.

    `asks` are the rates of the workers that can take it, cheapest first; `runs` are earlier units of its spec.
    """
    rate = asks[len(asks) // 2] if asks else None
    seconds = {
        Billing.FIXED: terms.max_seconds,
        Billing.METERED: _middle(runs.elapsed),
        Billing.FUEL: _middle(runs.fuel),
    }
    choices = [Billing.FUEL, Billing.METERED, Billing.FIXED] if kind.meters_fuel else [Billing.METERED, Billing.FIXED]
    costs = []
    for billing in sorted(choices, key=lambda choice: choice is not terms.billing):
        billed = seconds[billing]
        expected = None
        if rate is not None and billed is not None:
            # A unit that was submitted this long after its start, and settled at once.
            used = billed if billing is Billing.FUEL else 0
            unit = Unit(state=State.SUBMITTED, rate=rate, started=0, mark=billed, seconds=used)
            pay = formulas.pay_at_settle(replace(terms, billing=billing), unit)
            keepers = formulas.settle_reward(terms, 0) + (formulas.tip(terms) if terms.match_window else 0)
            expected = terms.units * (pay + keepers)
        costs.append(Cost(billing, formulas.escrow_at_post(terms), expected, billed))
    return Estimate(tuple(costs), rate, len(asks), len(runs.elapsed))


def earlier_runs(session: Session, spec: bytes) -> Runs:
    """Return what settled units of a spec took in the newest jobs that were posted from here.

    One that was cancelled under way says nothing of how long a unit takes.
    """
    market = session.market
    records = session.records.of_spec(spec, LOOKED_JOBS)
    jobs = [JobId(bytes.fromhex(record["job"][2:])) for record in records]
    elapsed, fuel = [], []
    for job, word in zip(jobs, market.job_words(jobs) if jobs else (), strict=True):
        if not word:
            continue
        told = job_of(word)
        if isinstance(told, Header):
            units = [one.unit for one in market.units(job, 0, min(told.touched, LOOKED_UNITS))]
        else:
            units = [told]
        for unit in units:
            if unit.state is State.SETTLED and not unit.flags & UnitFlag.NOTICED:
                elapsed.append(unit.submitted_at - unit.started)
                if unit.flags & UnitFlag.FUEL:
                    fuel.append(unit.seconds)
    return Runs(tuple(sorted(elapsed)), tuple(sorted(fuel)))


def _middle(seconds: tuple[int, ...]) -> int | None:
    """Return the middle one of sorted values, of two the larger; None of none."""
    return seconds[len(seconds) // 2] if seconds else None
