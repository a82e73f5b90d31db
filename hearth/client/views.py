"""Turn what the chain says of a job into plain facts and words: states, ends, events, and who may act next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, cast

from hearth.market.events import (
    AskChanged,
    Cancelled,
    Closed,
    Closing,
    CreditLocked,
    Declined,
    Event,
    ExitCancelled,
    ExitFinished,
    ExitStarted,
    Expired,
    GovernorChanged,
    GovernorOffered,
    JobPosted,
    Locked,
    MinimumStakeChanged,
    NodeLapsed,
    NodeRegistered,
    NodeUnitEvent,
    OfferChanged,
    OperatorChanged,
    OwnerChanged,
    OwnerOffered,
    Paused,
    PolicyChanged,
    Proposed,
    Quarantined,
    Reclaimed,
    Settled,
    Slashed,
    Split,
    StakeAdded,
    Started,
    Submitted,
    UnitEvent,
    Withdrawn,
)
from hearth.market.reads import Posted, UnitView
from hearth.protocol import formulas, words
from hearth.protocol.types import SENTINEL, Header, NodeId, Outcome, Policy, State, Terms, Unit
from hearth.protocol.units import Asset, format_duration, show_amount, show_rate

if TYPE_CHECKING:
    from hearth.client.reports import EventFacts, OfLogs, Verdict
    from hearth.market.strays import Strays

YEAR_10000 = 253_402_300_800
OUTCOME_WORDS = {
    Outcome.OK: "ok",
    Outcome.EXIT: "failed: the program ended with an error",
    Outcome.TRAP: "failed: the program trapped",
    Outcome.OUT_OF_MEMORY: "failed: out of memory",
    Outcome.TIMEOUT: "failed: out of time or fuel",
    Outcome.BAD_INPUT: "given back: bad input",
    Outcome.BAD_KEY: "given back: bad key",
    Outcome.IMAGE_MISSING: "given back: image missing",
}


@dataclass(frozen=True, slots=True)
class JobView:
    """A job at one block: its touched leases with their lapses applied, by index."""

    posted: Posted
    policy: Policy
    header: Header | None
    units: tuple[Unit, ...]
    best: tuple[UnitView, ...]
    number: int
    now: int

    @property
    def terms(self) -> Terms:
        """Return the job's terms."""
        return self.posted.terms

    @property
    def untouched(self) -> int:
        """Count the leases that nobody touched and that can still be."""
        if self.header is None or self.header.closed:
            return 0
        return self.terms.leases - self.header.touched

    @property
    def finished(self) -> bool:
        """Say whether every lease has ended."""
        return self.untouched == 0 and all(unit.state.terminal for unit in self.units)

    @property
    def counts(self) -> dict[str, int]:
        """Count the leases by state, those that nobody touched included."""
        found = Counter(unit.state.name.lower() for unit in self.units)
        never = self.terms.leases - len(self.units)
        if never:
            found["cancelled" if self.header is not None and self.header.closed else "open"] += never
        return dict(found)

    @property
    def ok(self) -> int:
        """Count the units that were settled with a good result."""
        return sum(unit.state is State.SETTLED and unit.outcome is Outcome.OK for unit in self.units)

    @property
    def failed(self) -> int:
        """Count the units that were settled with a failure of the program."""
        return sum(unit.state is State.SETTLED and unit.outcome is not Outcome.OK for unit in self.units)

    @property
    def verdict(self) -> Verdict:
        """Return "ok", "failed", "refunded" or "pending", for the job as a whole."""
        if not self.finished:
            return "pending"
        if self.failed:
            return "failed"
        return "ok" if self.ok == self.terms.leases else "refunded"

    @property
    def state(self) -> str:
        """Return a one-lease job's state; for an array "open", "running", "ended"."""
        if self.header is None:
            return self.units[0].state.name.lower()
        if self.finished:
            return "ended"
        return "running" if self.header.touched else "open"


def job_hex(job_id: bytes) -> str:
    """Return a job id as people write it."""
    return "0x" + job_id.hex()


def moment(seconds: int) -> str:
    """Return Unix seconds as UTC for people."""
    if seconds >= YEAR_10000:
        return "after the year 9999"
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def until(at: int, now: int) -> str:
    """Return a moment and how far away it is."""
    clock = datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S UTC")
    return f"{clock} (in {format_duration(at - now)})" if at > now else f"{clock} (past)"


def next_step(view: JobView, index: int, last_seen: Mapping[NodeId, int], dead_after: int) -> str:
    """Say in words who may act on a lease next, and until when."""
    terms, policy, now = view.terms, view.policy, view.now
    unit, best = view.units[index], view.best[index].best
    if unit.state.terminal:
        return "nothing: it has ended"
    if unit.state is State.OPEN:
        return _next_open(unit, best.node, terms, policy, now)
    if unit.state is State.RUNNING:
        dead = formulas.reclaimable_from(unit, last_seen.get(unit.node, unit.started), dead_after)
        if now >= dead:
            return f"node {unit.node} is late or silent: anyone may reclaim the unit"
        return (
            f"node {unit.node} runs it and may submit until {until(unit.deadline_at, now)}; "
            f"if it falls silent, anyone may reclaim from {until(dead, now)}"
        )
    if unit.state is State.CLOSING:
        if now < unit.deadline_at:
            return f"node {unit.node} may still submit until {until(unit.deadline_at, now)}, then anyone may close it"
        return "the notice is over: anyone may close it"
    if unit.state is State.SUBMITTED:
        return "anyone may settle it now (nobody can challenge this result); hearth job accept JOB settles it at once"
    return "waits for a ruling"


def _next_open(unit: Unit, best: int, terms: Terms, policy: Policy, now: int) -> str:
    if not formulas.has_time(terms, policy, now):
        return "no attempt can end before the deadline: anyone may expire it for a refund, hearth job cancel JOB too"
    if formulas.has_live_proposal(unit, policy, now):
        window, end = unit.window_end, unit.window_end + policy.ack_time
        if now < window:
            return f"better proposals until {until(window, now)}; then node {best} may take it until {until(end, now)}"
        return f"node {best} may take it until {until(end, now)}"
    excluded = f"; node {unit.node} is excluded, since it had the unit last" if unit.node else ""
    if formulas.claimable(terms, policy, unit, now):
        return f"any fitting worker may claim it{excluded}"
    at = unit.started + policy.open_claim_after
    return f"anyone may propose a fitting worker; workers may claim it from {until(at, now)}{excluded}"


def event_facts(event: Event, asset: Asset) -> EventFacts:
    """Return an event as one flat object for JSON, with a line of text for people."""
    # A cast, because other events' fields are read by name: tests/client/test_reports.py holds each event to the type.
    return cast("EventFacts", _flat(event, asset))


def strays_in(strays: Strays) -> OfLogs:
    """Return what a report says of logs that were stepped over: nothing where none was."""
    return {"strays": {"count": len(strays), "first": list(strays.first)}} if strays else {}


def _flat(event: Event, asset: Asset) -> dict[str, Any]:
    log = event.log
    facts: dict[str, Any] = {
        "schema": "hearth.event/1",
        "event": type(event).__name__,
        "block": log.block_number,
        "tx": "0x" + log.tx_hash.hex(),
        "log": log.log_index,
    }
    if isinstance(event, JobPosted):
        return {**facts, "job": job_hex(event.job_id), "submitter": event.submitter, "text": "posted and funded"}
    if not isinstance(event, UnitEvent):
        for name in type(event).__dataclass_fields__:
            if name != "log":
                facts[name] = _plain(getattr(event, name))
        return {**facts, "text": _MARKET_TEXTS[type(event)](event, asset)}
    facts |= {"job": job_hex(event.job_id), "unit": "all" if event.index == SENTINEL else event.index}
    if isinstance(event, NodeUnitEvent):
        facts["node"] = event.node
        unit = words.unpack_unit(event.word)
        facts["state"] = unit.state.name.lower()
        if unit.outcome is not Outcome.NONE:
            facts["outcome"] = unit.outcome.name.lower()
        if isinstance(event, Submitted):
            facts |= {"result": event.result.hex(), "report": event.report.hex()}
        if isinstance(event, Declined):
            facts["report"] = event.report.hex()
        if isinstance(event, Settled | Closed):
            facts |= {"pay": str(event.pay), "fee": str(event.fee)}
        return {**facts, "text": _unit_text(event, unit, asset)}
    if isinstance(event, Cancelled | Expired):
        facts["refund"] = str(event.refund)
        what = "cancelled" if isinstance(event, Cancelled) else "expired"
        facts["text"] = f"{what}, {show_amount(event.refund, asset)} refunded"
    return facts


def _unit_text(event: NodeUnitEvent, unit: Unit, asset: Asset) -> str:
    node = f"node {event.node}"
    reopened = "open again" if unit.state is State.OPEN else "no attempt left, refunded"
    if isinstance(event, Proposed):
        return f"{node} proposed"
    if isinstance(event, Started):
        return f"{node} started (attempt {unit.attempts})"
    if isinstance(event, Submitted):
        return f"{node} submitted: {OUTCOME_WORDS[unit.outcome]}"
    if isinstance(event, Settled):
        return f"settled ({OUTCOME_WORDS[unit.outcome]}), {node}'s owner earned {_net(event.pay, event.fee, asset)}"
    if isinstance(event, Declined):
        return f"{node} gave it back; {reopened}"
    if isinstance(event, Reclaimed):
        return f"{node} lost it: late or silent; {reopened}"
    if isinstance(event, Closing):
        return f"{node} was given notice"
    if isinstance(event, Closed):
        return f"closed after notice, {node}'s owner earned {_net(event.pay, event.fee, asset)}"
    return f"{node}: {type(event).__name__}"


def _net(pay: int, fee: int, asset: Asset) -> str:
    return show_amount(pay - fee, asset)


def _key(key: bytes) -> str:
    """Name what Escrow keeps money for: a job by its id, a node's stake by its number."""
    number = int.from_bytes(key, "big")
    return f"node {number}" if number < 1 << 32 else f"job {job_hex(key)[:14]}"


def _offer(word: int, asset: Asset) -> str:
    offer = words.unpack_offer(word)
    return f"{offer.slots} {'slot' if offer.slots == 1 else 'slots'} at {show_rate(offer.ask, asset)}"


def _split(event: Split, asset: Asset) -> str:
    parts = [words.unpack_share(share) for share in event.shares]
    shown = ", ".join(f"{show_amount(amount, asset)} to {account}" for account, amount in parts if amount)
    return f"{_key(event.key)}: {shown or 'nothing to anybody'}"


_MARKET_TEXTS: Final[Mapping[type[Event], Callable[[Any, Asset], str]]] = {
    NodeRegistered: lambda e, a: (
        f"node {e.node} registered: {_offer(e.offer, a)}, stake {show_amount(e.stake, a)}, "
        f"owner {e.owner}, operator {e.operator}"
    ),
    OfferChanged: lambda e, a: f"node {e.node} offers {_offer(e.offer, a)}",
    AskChanged: lambda e, a: f"node {e.node} asks {show_rate(e.ask, a)} from {moment(e.at)}",
    OperatorChanged: lambda e, a: f"node {e.node} has the operator {e.operator}",
    OwnerOffered: lambda e, a: f"node {e.node} is offered to {e.owner}",
    OwnerChanged: lambda e, a: f"node {e.node} belongs to {e.owner}",
    StakeAdded: lambda e, a: f"node {e.node} has {show_amount(e.amount, a)} more of stake, from {e.payer}",
    ExitStarted: lambda e, a: f"node {e.node} leaves, from {moment(e.at)} on with its stake",
    ExitCancelled: lambda e, a: f"node {e.node} stays",
    ExitFinished: lambda e, a: f"node {e.node} left with its stake of {show_amount(e.stake, a)}",
    NodeLapsed: lambda e, a: f"node {e.node} is silent, {e.payee} earned {show_amount(e.fee, a)} by showing it",
    Slashed: lambda e, a: (
        f"node {e.node} was slashed: {show_amount(e.reward, a)} to {e.payee}, {show_amount(e.burnt, a)} burnt"
    ),
    Quarantined: lambda e, a: f"node {e.node} is in quarantine until {moment(e.until)}",
    MinimumStakeChanged: lambda e, a: f"new nodes stake at least {show_amount(e.amount, a)}",
    Locked: lambda e, a: f"{show_amount(e.amount, a)} locked for {_key(e.key)}",
    CreditLocked: lambda e, a: f"{show_amount(e.amount, a)} of credit locked for {_key(e.key)}",
    Split: _split,
    Withdrawn: lambda e, a: (
        f"{e.account} withdrew {show_amount(e.amount, a)}{'' if e.to == e.account else ' to ' + e.to}"
    ),
    PolicyChanged: lambda e, a: (
        f"policy {e.policy:#066x} for new jobs, "
        f"{'the previous one is taken until ' + moment(e.until) if e.until else 'and no other'}"
    ),
    Paused: lambda e, a: f"paused until {moment(e.until)}",
    GovernorOffered: lambda e, a: f"{e.governor} is named as the next governor",
    GovernorChanged: lambda e, a: f"{e.governor} is the governor",
}
"""What people read of an event that is no unit's. Amounts are rounded, times UTC, jobs and nodes named as elsewhere."""


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return "0x" + value.hex()
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, int) and value > 2**53 else value
