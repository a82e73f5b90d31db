"""What ending a job may bring by the jobs that wait for it, its dependents, pure.

The end of a touched unit of an array pays its caller nothing, and jobs may wait for the array: ending it is worth a
share of what their unlocks pay. Nobody owes that pay. It comes only where every parent of the dependent ends, and the
dependent's submitter may cancel it until then. So a dependent counts only where the ends that its unlock still lacks
may all be made at once, and are few; what they share is its fee less the gas of its unlock. Source: keeper-program.md.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Final

from hearth.protocol import formulas
from hearth.protocol.gas import EXPIRE_GAS, unlocking_gas
from hearth.protocol.parents import Condition, Ended, ended, ends_at_worst
from hearth.protocol.types import JobId, State
from keeper.config import Config
from keeper.snapshot import JobRow, Snapshot

HOPED_ENDS: Final = 2
"""The most ends that a keeper makes for one dependent. They use less gas than to post the dependent and to cancel it
again, which is what it costs its submitter to have them made for nothing."""


@dataclass(frozen=True, slots=True)
class _Dependent:
    """A job that waits: the parents whose ends its unlock still lacks, and the share of each of those ends."""

    parents: tuple[JobId, ...]
    share: int


def hopes(snapshot: Snapshot, config: Config, now: int) -> dict[JobId, int]:
    """Return what each end of a job may bring at `now` by the unlocks after it, in base units, by that job.

    A job is in it only where all of its ends are worth their gas with it: else the unlock never comes.
    """
    return _Hopes(snapshot, config, now).carried()


class _Hopes:
    """One call of `hopes`: the jobs that are known, and what it has found out about those that others wait for."""

    def __init__(self, snapshot: Snapshot, config: Config, now: int) -> None:
        self.snapshot, self.config, self.now = snapshot, config, now
        self.waiting = [job for job in snapshot.jobs if job.waits]
        self.jobs = {job.id: job for job in snapshot.jobs} if self.waiting else {}
        self.counted: dict[JobId, int] = {}

    def carried(self) -> dict[JobId, int]:
        """Return what the dependents bring of which every missing end is worth its gas."""
        dependents = [dependent for job in self.waiting if (dependent := self.dependent(job)) is not None]
        hope: Counter[JobId] = Counter()
        after = dict(enumerate(dependents))
        relying: defaultdict[JobId, list[int]] = defaultdict(list)
        for number, dependent in after.items():
            for parent in dependent.parents:
                relying[parent].append(number)
                hope[parent] += dependent.share
        unsure = list(relying)
        while unsure:
            parent = unsure.pop()
            if self.is_worth(self.jobs[parent], hope[parent]):
                continue
            for dependent in [after.pop(number) for number in relying.pop(parent, ()) if number in after]:
                for other in dependent.parents:
                    hope[other] -= dependent.share
                unsure += dependent.parents
        return {parent: hope[parent] for dependent in after.values() for parent in dependent.parents}

    def dependent(self, job: JobRow) -> _Dependent | None:
        """Return what the missing ends of a job that waits share; None where they bring nothing, or not surely."""
        config, price = self.config, self.snapshot.gas_price
        # Each end, and then the unlock, may be left to others first, and must be mined.
        later = self.now + 2 * (config.jitter + config.latency)
        fee, gas = formulas.unlock_fee(job.terms), unlocking_gas(len(job.parents))
        if not fee or not config.is_worth(fee, gas, price) or not formulas.has_time(job.terms, later):
            return None
        lacks = self.missing(job)
        count = sum(self.ends(parent) for parent in lacks)
        if not 0 < count <= HOPED_ENDS:
            return None
        return _Dependent(lacks, max(0, fee - config.cost_of(gas, price)) // count)

    def missing(self, job: JobRow) -> tuple[JobId, ...]:
        """Return the parents whose ends the unlock of a job lacks; none where it lacks nothing, or may never come."""
        asked: dict[JobId, int] = {}
        for parent in job.parents:
            asked[parent.job] = asked.get(parent.job, Condition.ALWAYS) & parent.condition
        lacks: list[JobId] = []
        fails: list[JobId] = []
        for job_id, condition in asked.items():
            seen = self.snapshot.parents.get(job_id)
            if seen is None:
                return ()
            end = ended(seen.word)
            if end is Ended.NOT_YET:
                lacks.append(job_id)
                if self.ends(job_id) and not condition & ends_at_worst(seen.word):
                    fails.append(job_id)
            elif not condition & end:
                return ()  # it can be refunded as it is
        if fails:  # one parent that ends otherwise than asked is enough
            return (min(fails, key=lambda one: (self.ends(one), one)),)
        return tuple(lacks) if all(self.ends(one) for one in lacks) else ()

    def ends(self, parent: JobId) -> int:
        """Return how many calls end a job now; 0 where it is not known, is not over yet, or takes too many."""
        if parent not in self.counted:
            job = self.jobs.get(parent)
            self.counted[parent] = 0 if job is None else self._ends(job)
        return self.counted[parent]

    def _ends(self, job: JobRow) -> int:
        has_rest = _has_rest(job)
        count = len(job.units) + has_rest
        if count > HOPED_ENDS or any(row.unit.state not in (State.OPEN, State.BLOCKED) for row in job.units):
            return 0
        terms = [formulas.topped(job.terms, row.unit) for row in job.units] + [job.terms] * has_rest
        return count if all(self.now >= formulas.expirable_from(one) for one in terms) else 0

    def is_worth(self, job: JobRow, hope: int) -> bool:
        """Say whether each end of a job that is over is worth its gas, with what it may bring besides."""
        own = 0
        if job.terms.leases == 1 or not job.units:
            terms = formulas.topped(job.terms, job.units[0].unit) if job.units else job.terms
            overdue = self.now - formulas.expirable_from(terms)
            own = formulas.expire_reward(job.terms, None, overdue)
        return self.config.is_worth(own + hope, EXPIRE_GAS, self.snapshot.gas_price)


def _has_rest(job: JobRow) -> bool:
    """Say whether an array has leases that nobody has touched: one call ends all of them."""
    header = job.header
    return header is not None and not header.closed and header.touched < job.terms.leases
