"""Take one unit of one job by hand: run it, submit it, and stop.

It is the worker's own loop with an errand: decisions, attempts, sandboxes and journals are those of `hearth worker
start`. What can be refused is refused before the first transaction. A process that is stopped or killed loses nothing:
the next one finds the lease on chain and goes on. Source: worker.md "By hand".
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal

from hearth.base.errors import ConfigError, HearthError, JobEnded, RefusedError, UsageError
from hearth.client.views import job_hex, moment
from hearth.daemon.loop import stop_on_signals
from hearth.protocol import formulas
from hearth.protocol.gas import BEAT_GAS, LEASE_GAS
from hearth.protocol.types import Gate, JobId, NodeId, Outcome, State, Unit
from worker.attempt.underway import Running
from worker.build import build
from worker.decide import (
    AHEAD,
    HELD,
    NO_GPU,
    ON_ITS_WAY,
    Config,
    LeaseKey,
    ReadSpec,
    Reason,
    Skip,
    Snapshot,
    Target,
    outlook,
    own_leases,
)
from worker.home import is_running
from worker.journal import AttemptRow, Phase
from worker.loop import Look, Worker
from worker.reason_texts import REASON_TEXTS

if TYPE_CHECKING:
    from hearth.client.session import Session
    from hearth.market.network import Network
    from hearth.protocol.types import Terms
    from worker.reports import WorkerTake
    from worker.settings import Settings

_OFFER: Final = (Gate.RUNTIME, Gate.GPU_COUNT, Gate.VRAM, Gate.CORES, Gate.RAM, Gate.DISK, Gate.TIER, Gate.ZONE)
_STAKE: Final = (Gate.NOT_ACTIVE, Gate.STAKE_SHORT)
_POLICY: Final = (
    *(Reason.OUTSIDE_SCHEDULE, Reason.SUBMITTER_REFUSED, Reason.RATE_BELOW_MINIMUM, Reason.TOO_LONG),
    *(Reason.PAY_BELOW_MINIMUM, Reason.NO_GPU_ASKED, Reason.GPU_KINDS, Reason.JUDGE_UNKNOWN),
    *(Reason.BOND_TOO_LARGE, Reason.IMAGE_REFUSED, Reason.TOO_BIG),
)
_LATER: Final = (
    *(
        Gate.NO_SLOT,
        Gate.QUARANTINED,
        Reason.SLOTS_FULL,
        Reason.DISK_FULL,
        Reason.NO_ROOM,
        Reason.NOT_READY,
        Reason.CLOCK_SKEW,
    ),
    *(Reason.CHAIN_SILENT, Reason.GAS_CAPPED, Reason.STORE_DOWN, Reason.UNPROFITABLE, Reason.TOO_TIGHT),
    *(Reason.OUTBID, Reason.AWAITS_ACK, Reason.AWAITS_OPEN_CLAIM, Reason.AWAITS_PARENTS, Reason.NOT_NEXT),
    Reason.RETRY_LATER,
    *NO_GPU,
)
"""Reasons that may pass by themselves."""


def take(
    session: Session,
    settings: Settings,
    job: JobId,
    index: int | None = None,
    *,
    network: Network | None = None,
    operator: str | None = None,
) -> WorkerTake:
    """Take a unit of a job (None: the next one that the node can take), run it and submit it.

    `network` is the market of the settings and `operator` the address that works, where they were asked about.
    A dry run says only that it could be taken, and writes nothing. Raises RefusedError NOT_TAKEN, FundsError,
    ConfigError KEY_IN_USE, UsageError BAD_ID, StorageError before anything is sent; later RefusedError NOT_TAKEN for a
    lost race, HearthError DECLINED or LEASE_LOST, JobEnded, and KeyboardInterrupt where it was told to stop.
    """
    terms = session.market.terms_of(job).terms
    if index is not None and index >= terms.leases:
        raise UsageError(
            f"job {job_hex(job)[:14]} has no unit {index}: it has {terms.leases}, counted from 0",
            hint=f"hearth job show {job_hex(job)[:14]}",
            code="BAD_ID",
        )
    with ExitStack() as stack:
        try:
            worker = build(settings, stack, dry_run=session.dry_run, network=network, operator=operator)
        except ConfigError as error:
            if error.code == "KEY_IN_USE" and is_running(settings.home):
                error.hint = "a running worker takes jobs by itself: hearth worker why JOB; hearth worker drain ends it"
            raise
        errand = worker.errand = Take(session, worker, terms, job, index)
        errand.prepare()
        if not session.dry_run and not errand.submitted:
            stop_on_signals(errand.stop)
            worker.run()
        return errand.report()


def _said_of(found: ReadSpec | Skip | None) -> str:
    """Say of a unit that can be taken what a dry run does not wait for."""
    if isinstance(found, Skip) and found.reason is Reason.AWAITS_PRICE:
        return f"it can be taken once the price of open claims has risen to this node's ask, in {found.detail}"
    return "it can be taken"


class Take:
    """The errand of a worker that is sent for one unit."""

    def __init__(self, session: Session, worker: Worker, terms: Terms, job: JobId, index: int | None = None) -> None:
        """Read nothing yet. A one-lease job has one unit, 0; of an array, None is any."""
        self._session, self._worker, self._terms = session, worker, terms
        self.wanted = Target(job, 0 if terms.leases == 1 else index)
        self._node = NodeId(0)
        self._attempt: LeaseKey | None = None
        self._unit: Unit | None = None
        self._entry: AttemptRow | None = None
        self._submitted_at: int | None = None
        self.submitted = False
        self._failed: HearthError | None = None
        self._said = ""

    # ---- before anything is sent ----

    def prepare(self) -> None:
        """Refuse what can be refused now; the spec is read for that, and but in a dry run the store is tried.

        Raises HearthError.
        """
        if not self._session.dry_run:
            self._worker.ask_store()
        look = self._worker.look()
        if self._attempt is None and isinstance(self._outlook(look), ReadSpec):
            self._worker.learn_spec(self.wanted.job)
            look = self._worker.look()
        self._judge(look)
        if self._failed is not None:
            raise self._failed
        if self._attempt is None:
            operator = look.snapshot.node.operator
            self._session.require_funds(operator, asset_units=0, gas=BEAT_GAS + LEASE_GAS, what="taking a job")

    def _outlook(self, look: Look) -> ReadSpec | Skip | None:
        return outlook(look.snapshot, look.config, self.wanted, look.now)

    # ---- the errand ----

    def stop(self) -> None:
        """End after this round; the next process goes on."""
        self._worker.stop.set()
        self._worker.wake.set()

    def narrow(self, snapshot: Snapshot, config: Config) -> Config:
        """Allow the one unit: that which the node holds already, else what was asked for."""
        self._node = snapshot.node.id
        if self._attempt is None:
            held = [key for key in _held(snapshot) if self.wanted.names(key.job, key.index)]
            if held:
                self._attempt = held[0]
                until = moment(own_leases(snapshot)[held[0]][1].unit.deadline_at)
                self._say(f"node {self._node} holds unit {held[0].index}, to be submitted until {until}")
        target = self.wanted if self._attempt is None else Target(self.wanted.job, self._attempt.index, taken=True)
        # Whoever names a job leaves nothing of it to keepers.
        return replace(config, target=target, propose=True, propose_after=0)

    def over(self, look: Look) -> bool:
        """Say whether the unit's end is known, and nothing else that the node holds would be given up."""
        self._judge(look)
        if not self.submitted and self._failed is None:
            return False
        others = [key for key in _held(look.snapshot) if key != self._attempt]
        if others:
            self._say("goes on with what the node holds besides: " + ", ".join(_name(key) for key in others))
        return not others

    def report(self) -> WorkerTake:
        """Return the report of what was submitted, or would be taken. Raises what ended it otherwise."""
        if self._failed is not None:
            raise self._failed
        if not self.submitted and not self._session.dry_run:
            self._session.tell("warning", {"text": self._interrupted()})
            raise KeyboardInterrupt
        attempt, unit, entry = self._attempt, self._unit, self._entry
        state: Literal["submitted", "takeable"] = "submitted" if self.submitted else "takeable"
        job = job_hex(self.wanted.job)
        following = f"hearth worker take {job[:14]}"
        if unit is not None and unit.state is State.SETTLED:
            following = "hearth worker earnings"
        elif unit is not None and self.submitted:
            at = moment(formulas.settleable_from(self._terms, unit))
            following = f"settled by a keeper, or when this node works again, from {at} on: hearth job show {job[:14]}"
        return {
            "schema": "hearth.worker.take/1",
            "job": job,
            "unit": self.wanted.index if attempt is None else attempt.index,
            "node": self._node,
            "attempt": None if attempt is None else attempt.attempts,
            "state": state,
            "outcome": unit.outcome.name.lower() if unit is not None and unit.outcome is not Outcome.NONE else None,
            "result": entry.result.hex() if entry is not None and any(entry.result) else None,
            "report": entry.report.hex() if entry is not None and any(entry.report) else None,
            "next": following,
            "dry_run": self._session.dry_run,
        }

    # ---- what has become of the unit ----

    def _judge(self, look: Look) -> None:
        """Note what the chain says of the unit, and whether that is its end."""
        if self._attempt is None:
            found = self._outlook(look)
            if not isinstance(found, Skip) or found.reason in ON_ITS_WAY:
                self._say(_said_of(found) if self._session.dry_run else "taking it")
                for ahead in (one.key for one in look.snapshot.executions if one.stage in AHEAD):
                    if self.wanted.names(ahead.job, ahead.index):
                        self._tell_work(self._worker.progress(ahead))
                return
            self._attempt = self._submitted_before()
            if self._attempt is None:
                self._failed = self._refusal(found)
                return
        self._follow(look, self._attempt)

    def _submitted_before(self) -> LeaseKey | None:
        """Return the node's attempt at the one unit that is meant, where it was submitted before this process began."""
        job, index = self.wanted.job, self.wanted.index
        if index is None:
            return None
        unit = self._worker.unit(job, index)
        mine = unit.node == self._node and unit.state.has_result
        return LeaseKey(job, index, unit.attempts) if mine else None

    def _follow(self, look: Look, attempt: LeaseKey) -> None:
        """Judge the attempt that the node holds, has submitted, or has lost."""
        snapshot = look.snapshot
        lease = own_leases(snapshot).get(attempt)
        unit = self._unit = lease[1].unit if lease else self._worker.unit(attempt.job, attempt.index)
        entry = self._worker.entry(attempt)
        # The loop ends a row once it is over on chain, and writes another detail over the one that is wanted here.
        if entry is not None and (entry.phase in (Phase.REFUSED, Phase.BROKEN) or any(entry.result)):
            self._entry = entry
        mine = (unit.node, unit.attempts) == (self._node, attempt.attempts)
        if mine and unit.state.has_result:
            # A block that a reorganisation takes away would leave the lease without a worker.
            self._submitted_at = snapshot.block if self._submitted_at is None else self._submitted_at
            self.submitted = snapshot.block >= self._submitted_at + look.config.confirmations
            self._say("submitted")
            return
        self._submitted_at, self.submitted = None, False
        if any(flight.job == attempt.job for flight in snapshot.flights):
            return
        if lease is None or (unit.state is State.RUNNING and look.now >= unit.deadline_at):
            self._failed = self._lost(unit, attempt)
            return
        work = self._worker.progress(attempt)
        if work is None:
            if self._entry is not None:
                failed = self._entry.phase in (Phase.REFUSED, Phase.BROKEN)
                self._say(f"failed: {self._entry.detail}" if failed else "submitting")
            return
        self._tell_work(work)

    # ---- words ----

    def _tell_work(self, work: Running | None) -> None:
        """Say how far an attempt is, which may have ended a moment ago."""
        if work is None:
            return
        self._say(work.phase)
        if work.phase.startswith("fetching"):
            self._session.tell("progress", {"what": work.phase, "done": work.done, "total": work.total})

    def _refusal(self, skip: Skip) -> RefusedError:
        """Return why the unit is not taken, and what could be done about it."""
        gate = self._worker.never_fits(self.wanted.job)
        if gate is not Gate.FITS:
            # The worker does not follow such a job, which is no news to whoever asks for it.
            skip = Skip(self.wanted.job, self.wanted.index, gate)
        job, reason = job_hex(self.wanted.job)[:14], skip.reason
        words = REASON_TEXTS[reason]
        if skip.detail:
            words += f" ({skip.detail})"
        if reason in _OFFER:
            hint = "hearth worker update, where the machine has more than its offer says"
        elif reason in _STAKE:
            hint = "hearth worker stake AMOUNT"
        elif reason is Gate.PRICE:
            hint = "hearth worker price RATE"
        elif reason in (Gate.NO_SLOT, Reason.SLOTS_FULL):
            hint = "hearth worker start goes on with what the node holds"
        elif reason in _POLICY:
            hint = f"change [accept] in worker.toml, then hearth worker take {job}"
        else:
            hint = f"hearth worker take {job} later" if reason in _LATER else f"hearth worker why {job}"
        return RefusedError(
            f"node {self._node} cannot take job {job}: {words}",
            hint=hint,
            code="NOT_TAKEN",
            component="worker",
            retryable=reason in _LATER,
            reason=reason.name.lower(),
            unit=skip.index,
        )

    def _lost(self, unit: Unit, attempt: LeaseKey) -> HearthError:
        """Return how the node came to hold the unit no more."""
        if unit.state is State.CANCELLED:
            return JobEnded(
                f"the submitter cancelled {_name(attempt)}: its time and the notice are paid",
                hint="hearth worker earnings",
            )
        if self._entry is not None and self._entry.phase in (Phase.REFUSED, Phase.BROKEN):
            return HearthError(
                f"{_name(attempt)} was given back: {self._entry.detail}",
                hint="hearth worker selftest",
                code="DECLINED",
                component="worker",
            )
        return HearthError(
            f"{_name(attempt)} was not submitted in time, and its lease is lost",
            hint="hearth worker earnings",
            code="LEASE_LOST",
            component="worker",
        )

    def _interrupted(self) -> str:
        again = f"hearth worker take {job_hex(self.wanted.job)[:14]} goes on"
        if self._attempt is None or self._unit is None:
            return f"stopped before the node held the unit; what was sent may still be mined: {again}"
        until = moment(self._unit.deadline_at)
        return f"stopped while node {self._node} holds {_name(self._attempt)} until {until}: {again}"

    def _say(self, text: str) -> None:
        if text != self._said:
            self._said = text
            self._session.tell("step", {"text": f"job {job_hex(self.wanted.job)[:14]}: {text}"})


def _held(snapshot: Snapshot) -> list[LeaseKey]:
    """Return the leases that fill a slot of the node, the one to be submitted first in front."""
    held = [
        (lease.unit.deadline_at, key) for key, (_, lease) in own_leases(snapshot).items() if lease.unit.state in HELD
    ]
    return [key for _, key in sorted(held)]


def _name(attempt: LeaseKey) -> str:
    return f"unit {attempt.index} of job {job_hex(attempt.job)[:14]}"
