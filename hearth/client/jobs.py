"""Read jobs, wait for them, and act on one's own: show, events, wait, cancel, accept, receipt."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from hearth.base.errors import NotFoundError, RefusedError, UsageError, WaitTimeout
from hearth.client.posting.records import Records
from hearth.client.session import Session
from hearth.client.views import OUTCOME_WORDS, JobView, event_facts, job_hex, moment, next_step

if TYPE_CHECKING:
    from hearth.chain.port import Block, Log
    from hearth.market.events import Event
    from hearth.market.reads import Posted
    from hearth.protocol.types import JobId

STATES: Final = ("open", "running", "closing", "submitted", "settled", "refunded", "cancelled", "expired", "ended")
SHOWN_UNITS: Final = 200
"""Leases that `job show` lists one by one."""
POLL_SECONDS: Final = 0.5
CANCEL_GAS: Final = 150_000


class Jobs(Session):
    """Jobs as their submitter and any observer see them."""

    # ---- reading ----

    def jobs(self, *, state: str | None = None, everyone: bool = False) -> dict[str, Any]:
        """Return the jobs of this account, or of everyone, newest first, optionally in one state."""
        if state is not None and state not in STATES:
            raise UsageError(f'"{state}" is no state', hint=f"states: {', '.join(STATES)}; hearth jobs --help")
        market = self.market
        submitter = None if everyone else self.key().address
        head = market.port.head()
        posted = market.posted(from_block=self.network.deploy_block, to_block=head.number, submitter=submitter)
        rows = [self._row(view) for view in reversed(self._views(posted, head))]
        if state is not None:
            rows = [row for row in rows if row["state"] == state]
        return {"schema": "hearth.jobs/1", "network": self.network.name, "block": head.number, "jobs": rows}

    def job_show(self, job: str) -> dict[str, Any]:
        """Return everything that the chain knows of a job, with who may act next and until when."""
        view = self._look(self.job_id(job))
        return self._facts(view)

    def job_events(self, job: str) -> dict[str, Any]:
        """Return a job's events, oldest first."""
        job_id = self.job_id(job)
        posted = self.market.terms_of(job_id)
        head = self.market.port.head()
        events = self._events(job_id, posted.log.block_number, head.number)
        return {
            "schema": "hearth.events/1",
            "job": job_hex(job_id),
            "events": [event_facts(event, self.asset) for event in events],
        }

    def follow(self, job: str, *, timeout: float | None = None) -> Iterator[dict[str, Any]]:
        """Yield a job's events as they come, from its posting to its end.

        Raises WaitTimeout after `timeout` seconds (by default the settings'); the job is alive then.
        """
        job_id = self.job_id(job)
        market = self.market
        posted = market.terms_of(job_id)
        limit = float(self.settings.timeout) if timeout is None else timeout
        end = time.monotonic() + limit
        first = posted.log.block_number
        while True:
            head = market.port.head()
            if head.number >= first:
                for event in self._events(job_id, first, head.number):
                    yield event_facts(event, self.asset)
                first = head.number + 1
                if self._view(posted, head).finished:
                    return
            if time.monotonic() >= end:
                raise WaitTimeout(
                    f"job {job_hex(job_id)} has not ended after {limit:.0f} s; it is alive",
                    hint=f"hearth job show {job_hex(job_id)[:14]}",
                    job=job_hex(job_id),
                )
            time.sleep(POLL_SECONDS)

    def wait(self, job: str, *, timeout: float | None = None) -> dict[str, Any]:
        """Wait for a job's end, telling its timeline, and return what `job_show` does. Raises WaitTimeout."""
        for facts in self.follow(job, timeout=timeout):
            self.tell("event", facts)
        return self.job_show(job)

    # ---- acting ----

    def job_cancel(self, job: str, *, unit: int | None = None) -> dict[str, Any]:
        """Cancel a job, or one unit of it: what is open is refunded, what runs is given notice.

        Raises RefusedError NOTHING_TO_CANCEL where everything has ended or awaits its settlement.
        """
        from hearth.protocol.types import SENTINEL, State

        view = self._look(self.job_id(job))
        self._require_own(view)
        sent: list[dict[str, Any]] = []
        wanted = self._indices(view, unit, (State.OPEN, State.RUNNING))
        rest = unit is None and view.header is not None and view.untouched > 0
        if not wanted and not rest:
            raise RefusedError(
                f"nothing in job {job_hex(view.posted.job_id)[:14]} can be cancelled: it is {view.state}",
                hint=f"hearth job show {job_hex(view.posted.job_id)[:14]}",
                code="NOTHING_TO_CANCEL",
            )
        calls = self.market.calls
        self.require_funds(view.terms.submitter, asset_units=0, gas=CANCEL_GAS, what="cancelling")
        with self.sender() as sender:
            for index in [SENTINEL] * rest + wanted:
                attempt = 0 if index == SENTINEL else view.units[index].attempts
                key = f"cancel/{view.posted.job_id.hex()}/{index}/{attempt}"
                sent.append(self.send(sender, calls.cancel(view.posted.packed, index), key))
        if unit is None and not self.dry_run:
            self._records.mark_seen(job_hex(view.posted.job_id))
        return self._acted("cancel", view, sent)

    def job_accept(self, job: str, *, unit: int | None = None) -> dict[str, Any]:
        """Accept submitted results, which settles them at once. Raises RefusedError NOTHING_TO_ACCEPT."""
        from hearth.protocol.types import State

        view = self._look(self.job_id(job))
        self._require_own(view)
        wanted = self._indices(view, unit, (State.SUBMITTED,))
        if not wanted:
            raise RefusedError(
                f"job {job_hex(view.posted.job_id)[:14]} has no submitted result to accept: it is {view.state}",
                hint=f"hearth job show {job_hex(view.posted.job_id)[:14]}",
                code="NOTHING_TO_ACCEPT",
            )
        sent = []
        self.require_funds(view.terms.submitter, asset_units=0, gas=CANCEL_GAS, what="accepting")
        with self.sender() as sender:
            for index in wanted:
                key = f"accept/{view.posted.job_id.hex()}/{index}/{view.units[index].attempts}"
                sent.append(self.send(sender, self.market.calls.accept(view.posted.packed, index), key))
        return self._acted("accept", view, sent)

    def job_receipt(self, job: str) -> dict[str, Any]:
        """Return where a job's money went: paid, fees, tips, keepers, refunds, and every transaction with its gas."""
        from hearth.market.events import Closed, Settled
        from hearth.protocol import formulas

        view = self._look(self.job_id(job))
        market = self.market
        events = self._events(view.posted.job_id, view.posted.log.block_number, view.number)
        ends = [event for event in events if isinstance(event, Settled | Closed)]
        pay = sum(event.pay for event in ends)
        fee = sum(event.fee for event in ends)
        receipts: dict[bytes, dict[str, Any]] = {}
        refunded = keepers = 0
        for event in events:
            if event.log.tx_hash in receipts:
                continue
            receipt = market.port.receipt(event.log.tx_hash)
            if receipt is None:
                continue
            receipts[event.log.tx_hash] = {
                "tx": "0x" + event.log.tx_hash.hex(),
                "event": type(event).__name__,
                "block": receipt.block_number,
                "from": receipt.sender,
                "gas": receipt.gas_used,
                "fee": str(receipt.fee),
                "explorer": self.explorer("0x" + event.log.tx_hash.hex()),
            }
            back, paid = _shares(receipt.logs, self.network.escrow, view.posted.job_id)
            refunded += back
            keepers += paid
        escrow = formulas.escrow_at_post(view.terms)
        locked = market.locked(self.network.jobs, view.posted.job_id)
        return {
            "schema": "hearth.receipt/1",
            "job": job_hex(view.posted.job_id),
            "state": view.state,
            "asset": self.asset.symbol,
            "escrow": str(escrow),
            "still_locked": str(locked),
            "workers": str(pay - fee),
            "market_fee": str(fee),
            "keepers": str(keepers),
            "refunded": str(refunded),
            "text": {
                name: self.amount(value)
                for name, value in {
                    "escrow": escrow,
                    "still locked": locked,
                    "workers": pay - fee,
                    "market fee": fee,
                    "keepers": keepers,
                    "refunded": refunded,
                }.items()
            },
            "transactions": list(receipts.values()),
        }

    @property
    def _records(self) -> Records:
        return Records(self.settings.home, self.state / "jobs")

    # ---- inside ----

    def _look(self, job_id: JobId) -> JobView:
        return self._view(self.market.terms_of(job_id), self.market.port.head())

    def _view(self, posted: Posted, head: Block) -> JobView:
        """Read a job at a block, every lapse applied."""
        from hearth.market.reads import UnitView
        from hearth.protocol import formulas, words
        from hearth.protocol.types import JobId

        market, terms = self.market, posted.terms
        policy = words.unpack_policy(terms.policy)
        header = None
        if terms.leases > 1:
            header = market.header(JobId(posted.job_id), head.hash)
            stored = market.units(posted.job_id, 0, header.touched, head.hash) if header and header.touched else []
        else:
            stored = [market.unit(posted.job_id, 0, head.hash)]
        now = head.timestamp
        units = tuple(formulas.with_lapse(one.unit, one.best, policy, now) for one in stored)
        best = tuple(UnitView(replace(one.unit), one.second, one.accused) for one in stored)
        return JobView(posted, policy, header, units, best, head.number, now)

    def _views(self, posted: list[Posted], head: Block) -> list[JobView]:
        """Read many jobs at a block, one-lease jobs in pages."""
        from hearth.market.reads import UnitView
        from hearth.protocol import words
        from hearth.protocol.types import State

        found = []
        for one, word in zip(posted, self.market.job_words([one.job_id for one in posted], head.hash), strict=True):
            unit = None if words.is_header(word) else words.unpack_unit(word)
            if unit is None or (unit.state is State.OPEN and unit.mark):
                # An array's leases, and a proposal's node that a lapse names, lie in other slots.
                found.append(self._view(one, head))
                continue
            policy = words.unpack_policy(one.terms.policy)
            seen = (UnitView(unit, 0, 0),)
            found.append(JobView(one, policy, None, (unit,), seen, head.number, head.timestamp))
        return found

    def _events(self, job_id: JobId, first: int, last: int) -> list[Event]:
        from hearth.market.events import decode_all

        logs = self.market.port.logs([self.network.jobs], (None, job_id), from_block=first, to_block=last)
        return list(decode_all(logs))

    def _indices(self, view: JobView, unit: int | None, states: tuple[Any, ...]) -> list[int]:
        if unit is not None:
            if not 0 <= unit < view.terms.leases:
                raise NotFoundError(
                    f"job {job_hex(view.posted.job_id)[:14]} has no unit {unit}: 0 to {view.terms.leases - 1}",
                    hint=f"hearth job show {job_hex(view.posted.job_id)[:14]}",
                )
            return [unit] if unit < len(view.units) and view.units[unit].state in states else []
        return [index for index, one in enumerate(view.units) if one.state in states]

    def _require_own(self, view: JobView) -> None:
        address = self.key().address
        if address != view.terms.submitter:
            raise RefusedError(
                f"job {job_hex(view.posted.job_id)[:14]} was posted by {view.terms.submitter}, not by {address}",
                hint="use --account NAME; hearth wallet list",
                code="NOT_YOURS",
            )

    def _acted(self, action: str, view: JobView, sent: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "schema": "hearth.action/1",
            "action": action,
            "job": job_hex(view.posted.job_id),
            "transactions": sent,
            "dry_run": self.dry_run,
        }

    def _row(self, view: JobView) -> dict[str, Any]:
        terms = view.terms
        return {
            "job": job_hex(view.posted.job_id),
            "state": view.state,
            "verdict": view.verdict,
            "units": terms.leases,
            "counts": view.counts,
            "submitter": terms.submitter,
            "block": view.posted.log.block_number,
            "deadline": terms.deadline,
        }

    def _facts(self, view: JobView) -> dict[str, Any]:
        from hearth.protocol import formulas
        from hearth.protocol.units import format_rate

        terms, posted = view.terms, view.posted
        nodes = {unit.node for unit in view.units if unit.node and not unit.state.terminal}
        seen = {node: self.market.last_seen(node) for node in nodes}
        dead_after = self.network.node_parameters.dead_after
        leases = []
        order = sorted(range(len(view.units)), key=lambda i: (view.units[i].state.terminal, i))
        for index in sorted(order[:SHOWN_UNITS]):
            unit = view.units[index]
            leases.append(
                {
                    "unit": index,
                    "state": unit.state.name.lower(),
                    "outcome": unit.outcome.name.lower(),
                    "outcome_text": OUTCOME_WORDS.get(unit.outcome, ""),
                    "node": unit.node or None,
                    "attempts": unit.attempts,
                    "lapses": unit.lapses,
                    "started": unit.started,
                    "mark": unit.mark,
                    "next": next_step(view, index, seen, dead_after),
                }
            )
        escrow = formulas.escrow_at_post(terms)
        return {
            "schema": "hearth.job/1",
            **self._row(view),
            "network": self.network.name,
            "at_block": view.number,
            "at_time": view.now,
            "finished": view.finished,
            "ok": view.ok,
            "failed": view.failed,
            "untouched": view.untouched,
            "posted": {
                "block": posted.log.block_number,
                "tx": "0x" + posted.log.tx_hash.hex(),
                "explorer": self.explorer("0x" + posted.log.tx_hash.hex()),
            },
            "spec": terms.spec.hex(),
            "max_seconds": terms.max_seconds,
            "max_attempts": terms.max_attempts,
            "match_window": terms.match_window,
            "billing": terms.billing.name.lower(),
            "deadline_text": moment(terms.deadline),
            "asset": self.asset.symbol,
            "escrow": str(escrow),
            "escrow_text": self.amount(escrow),
            "ceiling": str(terms.ceiling),
            "ceiling_text": format_rate(terms.ceiling, self.asset, places=9),
            "keeper_fee": str(terms.keeper_fee),
            "verify": "none: nobody can challenge this result",
            "leases": leases,
        }


def _shares(logs: tuple[Log, ...], escrow: str, job: bytes) -> tuple[int, int]:
    """Return what a transaction gave back to a job's submitter, and what it gave to keepers.

    The place of a share says whose it is (contracts/JobRegistry.vy), an account may be several parties at once.
    """
    from hearth.market.events import (
        Cancelled,
        Closed,
        Declined,
        Expired,
        Reclaimed,
        Settled,
        Split,
        UnitEvent,
        decode_all,
    )

    refunded = keepers = 0
    last: Event | None = None
    for event in decode_all(logs):
        if isinstance(event, UnitEvent) and event.job_id == job:
            last = event
        if not isinstance(event, Split) or event.log.address != escrow or event.key != job:
            continue
        shares = [share >> 160 for share in event.shares]
        if isinstance(last, Settled | Closed):
            refunded, keepers = refunded + shares[3], keepers + shares[2]
        elif isinstance(last, Cancelled | Declined | Reclaimed | Expired):
            refunded, keepers = refunded + shares[0], keepers + shares[1]
        else:
            keepers += shares[0]
    return refunded, keepers
