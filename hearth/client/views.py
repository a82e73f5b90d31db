"""Turn what the chain says of a job into plain facts and words: states, ends, events, and who may act next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, cast

from hearth.base.errors import NotFoundError
from hearth.market.changes import Change, ChangeOp
from hearth.market.events import (
    AskChanged,
    Cancelled,
    ChangeDropped,
    ChangeExecuted,
    ChangeQueued,
    Checkpointed,
    CheckpointPaid,
    Closed,
    Closing,
    CouncilChanged,
    CouncilOffered,
    CreditLocked,
    Declined,
    Disputed,
    Event,
    ExitCancelled,
    ExitFinished,
    ExitStarted,
    Expired,
    Finished,
    GaveUp,
    GovernorChanged,
    GovernorOffered,
    GuardianChanged,
    JobPosted,
    Locked,
    MinimumStakeChanged,
    NodeLapsed,
    NodeRegistered,
    NodeUnitEvent,
    OfferChanged,
    OperatorChanged,
    OperatorOffered,
    OwnerChanged,
    OwnerOffered,
    Paused,
    PolicyChanged,
    Proposed,
    Quarantined,
    Reclaimed,
    Rejected,
    Ruled,
    Settled,
    Slashed,
    Split,
    StakeAdded,
    Started,
    Submitted,
    ToppedUp,
    UnitEvent,
    Unlocked,
    Unproven,
    Withdrawn,
)
from hearth.market.reads import Posted, UnitView
from hearth.protocol import formulas, words
from hearth.protocol.state_labels import STATE_LABELS, STATUS_LABELS, array_label, unit_label
from hearth.protocol.types import (
    SENTINEL,
    ZERO_ADDRESS,
    Header,
    NodeId,
    Outcome,
    State,
    Status,
    Terms,
    TermsFlag,
    Unit,
)
from hearth.protocol.types import Verdict as Ruling
from hearth.protocol.units import Asset, format_duration, show_amount, show_rate

if TYPE_CHECKING:
    from hearth.client.judges.port import Judge
    from hearth.client.reports import EventFacts, NetWorker, NodeStatus, OfferRow, OfLogs, Verdict
    from hearth.market.strays import Strays

YEAR_10000 = 253_402_300_800
_TAKES = (STATUS_LABELS[Status.ACTIVE], STATUS_LABELS[Status.SLASHED])
LONG_SECONDS = 60
"""A result that waits longer for its settlement is not waited for."""
FINISHED = "finished"
"""What is next for a unit that has ended."""
OUTCOME_LABELS = {
    Outcome.NONE: "without an outcome",  # no contract settles so, but what an RPC says is not vouched for
    Outcome.OK: "ok",
    Outcome.EXIT: "failed: the program ended with an error or without its outputs",
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

    def stored(self, index: int) -> Unit:
        """Return a unit without its lapse applied: a touched one as it is on chain, the next one as it opens."""
        if index < len(self.units):
            return self.best[index].unit
        assert self.header is not None
        return Unit(State.OPEN, started=self.header.opened)

    @property
    def blocked(self) -> bool:
        """Say whether the job still waits for its parents."""
        return self.units[0].state is State.BLOCKED if self.header is None else self.header.waiting

    @property
    def finished(self) -> bool:
        """Say whether every lease has ended."""
        return self.untouched == 0 and all(unit.state.terminal for unit in self.units)

    @property
    def delivered(self) -> bool:
        """Say whether every lease has ended, or has a result that nobody but its submitter may settle for long.

        There is nothing to wait for then: a result does not change.
        """
        return self.untouched == 0 and all(
            unit.state.terminal or self._waits(unit) > LONG_SECONDS for unit in self.units
        )

    @property
    def unpaid_until(self) -> int:
        """Return when the last result that waits for its settlement may be settled, 0 where none waits."""
        waiting = (formulas.settleable_from(self.terms, unit) for unit in self.units if self._waits(unit) > 0)
        return max(waiting, default=0)

    def _waits(self, unit: Unit) -> int:
        """Return how many seconds a unit's result waits before anyone may settle it, 0 for other units."""
        # What has to be proven, or is held by its judge, may still end in a refund at any time.
        if unit.state is not State.SUBMITTED or self.terms.flags & TermsFlag.PROVEN:
            return 0
        return max(0, formulas.settleable_from(self.terms, unit) - self.now)

    def _has_result(self, unit: Unit) -> bool:
        return unit.state is State.SETTLED or self._waits(unit) > 0

    @property
    def topped_up(self) -> int:
        """Return what top-ups put into its lock: a unit's price grows by exactly what its own cost."""
        before = formulas.price(self.terms)
        return sum(formulas.price(formulas.topped(self.terms, unit)) - before for unit in self.units)

    @property
    def counts(self) -> dict[str, int]:
        """Count the leases by state, those that nobody touched included."""
        return self._counted(lambda unit: unit.state.name.lower())

    @property
    def tally(self) -> dict[str, int]:
        """Count the leases by what people read of them, those that nobody touched included."""
        return self._counted(unit_label)

    def _counted(self, label: Callable[[Unit], str]) -> dict[str, int]:
        found = Counter(label(unit) for unit in self.units)
        never = self.terms.leases - len(self.units)
        if never:
            closed = self.header is not None and self.header.closed
            found[label(Unit(State.CANCELLED if closed else State.BLOCKED if self.blocked else State.OPEN))] += never
        return dict(found)

    @property
    def labels(self) -> tuple[str, str]:
        """Return the word for how the job stands as a whole, and the same as people read it: "2 of 8 units failed"."""
        if self.header is None:
            return (word := unit_label(self.units[0])), word
        if self.finished:
            needed = self.terms.quorum if self.terms.replicas > 1 else self.terms.leases
            return array_label(self.tally, self.terms.leases, needed)
        word = STATE_LABELS[State[self.state.upper()]]
        return word, word

    @property
    def ok(self) -> int:
        """Count the units with a good result that is settled, or waits since its node is on probation."""
        return sum(self._has_result(unit) and unit.outcome is Outcome.OK for unit in self.units)

    @property
    def failed(self) -> int:
        """Count the units with a failure of the program that is settled, or waits since its node is on probation."""
        return sum(self._has_result(unit) and unit.outcome is not Outcome.OK for unit in self.units)

    @property
    def verdict(self) -> Verdict:
        """Return "ok", "failed", "refunded" or "pending", for the job as a whole."""
        if not self.delivered:
            return "pending"
        if self.terms.replicas > 1 and self.ok >= self.terms.quorum:
            return "ok"
        if self.failed:
            return "failed"
        return "ok" if self.ok == self.terms.leases else "refunded"

    @property
    def state(self) -> str:
        """Return a one-lease job's state; for an array "blocked", "open", "running", "ended"."""
        if self.header is None:
            return self.units[0].state.name.lower()
        if self.finished:
            return "ended"
        if self.blocked:
            return "blocked"
        return "running" if self.header.touched else "open"


def state_cid(root: bytes) -> str:
    """Return the CID of a checkpoint's files, by the digest of their folder."""
    from hearth.storage import cid

    return str(cid.of_root(root))


def result_cid(digest: bytes) -> str:
    """Return the CID of a result's document, by its digest: what an attester names."""
    from hearth.storage import canonical

    return str(canonical.cid_of_digest(digest))


def require_unit(view: JobView, unit: int) -> None:
    """Refuse a unit that a job does not have. Raises NotFoundError."""
    if not 0 <= unit < view.terms.leases:
        name = job_hex(view.posted.job_id)[:14]
        raise NotFoundError(
            f"job {name} has no unit {unit}: 0 to {view.terms.leases - 1}", hint=f"hearth job show {name}"
        )


def job_hex(job_id: bytes) -> str:
    """Return a job id as people write it."""
    return "0x" + job_id.hex()


def moment(seconds: int) -> str:
    """Return Unix seconds as UTC for people."""
    return _clock(seconds, "%Y-%m-%d %H:%M:%S UTC")


def until(at: int, now: int) -> str:
    """Return a moment and how far away it is."""
    clock = _clock(at, "%H:%M:%S UTC")
    return f"{clock} (in {format_duration(at - now)})" if at > now else f"{clock} (past)"


def _clock(seconds: int, form: str) -> str:
    """Return Unix seconds in a form of strftime; a lane of 40 bits holds later ones than a calendar has."""
    if seconds >= YEAR_10000:
        return "after the year 9999"
    return datetime.fromtimestamp(seconds, UTC).strftime(form)


def node_words(row: NetWorker | NodeStatus) -> str:
    """Return how a node stands, with the end of its quarantine where it is in one."""
    held = quarantine_words(row)
    if not held:
        return row["status_text"]
    return held if row["status_text"] in _TAKES else f"{row['status_text']}, {held}"


def quarantine_words(row: OfferRow | NetWorker | NodeStatus) -> str:
    """Return until when a node is in quarantine; empty where it is in none."""
    at = row["quarantined_until"]
    return f"{STATUS_LABELS[Status.SLASHED]} until {moment(at)}" if at else ""


def next_step(
    view: JobView,
    index: int,
    last_seen: Mapping[NodeId, int],
    dead_after: int,
    waits: str | None = None,
    judge: Judge | None = None,
) -> str:
    """Say in words who may act on a lease next, and until when.

    `waits` is what a blocked job waits for, `judge` who decides on its results, where that contract is known.
    """
    terms, now = view.terms, view.now
    unit, best = view.units[index], view.best[index].best
    if unit.state.terminal:
        return FINISHED
    if unit.state is State.OPEN:
        return _next_open(unit, view.stored(index), best.node, terms, now)
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
    if unit.state in (State.SUBMITTED, State.DISPUTED):
        return _next_submitted(unit, terms, now, judge)
    return waits or "waits for other jobs"


def verification(terms: Terms, judge: Judge | None) -> str:
    """Say how results of a job are checked, by whom and until when; `judge` is who decides, where it is known."""
    if terms.judge == ZERO_ADDRESS:
        return "none: nobody can challenge this result"
    who = f"judge {terms.judge}" if judge is None else judge.who(terms)
    if terms.flags & TermsFlag.PROVEN:
        end = moment(terms.deadline + terms.challenge_window)
        return f"{who} must confirm a result until {end}, else it is refunded"
    return f"{who} may dispute a result for {format_duration(terms.challenge_window)} after it came"


def _next_submitted(unit: Unit, terms: Terms, now: int, judge: Judge | None) -> str:
    """Say who may end a unit that has a result, and from when."""
    since = formulas.settleable_from(terms, unit)
    proven = bool(terms.flags & TermsFlag.PROVEN)
    end = "refund it, since nobody has proven it" if proven else "settle it"
    accept = "; hearth job accept JOB settles it at once"
    if unit.state is State.DISPUTED:
        if now < since:
            return f"its judge {terms.judge} looks at it; without a ruling anyone may {end} from {until(since, now)}"
        return f"its judge {terms.judge} has not ruled in time: anyone may {end} now"
    if now >= since:
        unjudged = " (nobody can challenge this result)" if terms.judge == ZERO_ADDRESS else ""
        return f"anyone may {end} now{unjudged}{accept}"
    if proven:
        last = until(since, now)
        confirming = f"its judge {terms.judge} may confirm it until {last}" if judge is None else judge.confirming(last)
        return f"{confirming}; then anyone may {end}{accept}"
    if now < formulas.challenge_end(terms, unit):
        return f"its judge {terms.judge} may dispute it; anyone may settle it from {until(since, now)}{accept}"
    return f"its node is on probation: anyone may settle it from {until(since, now)}{accept}"


def _next_open(unit: Unit, stored: Unit, best: int, terms: Terms, now: int) -> str:
    """Say who may take an OPEN unit: `unit` with its lapse applied, `stored` as it is on chain."""
    if not formulas.has_time(formulas.topped(terms, stored), now):
        return "no attempt can end before the deadline: anyone may expire it for a refund, hearth job cancel JOB too"
    if formulas.has_live_proposal(terms, unit, now):
        window, end = unit.window_end, formulas.lapses_at(terms, unit)
        if now < window:
            return f"better proposals until {until(window, now)}; then node {best} may take it until {until(end, now)}"
        return f"node {best} may take it until {until(end, now)}"
    claimable = formulas.claimable(terms, stored, now)
    excluded = ""
    if formulas.is_excluded(unit, unit.node, claim=True):
        excluded = f"; node {unit.node} is excluded, since it had the unit last" if unit.node else ""
    elif not claimable:
        excluded = f"; node {unit.node} let it pass, and can only claim it"
    opens = formulas.claims_from(terms, stored)
    risen = opens + formulas.policy_of(terms).claim_ramp
    if claimable:
        cheaper = "" if now >= risen else f", cheaper ones first, and at its full price from {until(risen, now)}"
        judged = " whose provider accepts its judge" if terms.judge != ZERO_ADDRESS else ""
        return f"any fitting worker{judged} may claim it{cheaper}{excluded}"
    return f"anyone may propose a fitting worker; workers may claim it from {until(opens, now)}{excluded}"


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
        return {**facts, **_node_facts(event, asset)}
    if isinstance(event, CheckpointPaid):
        facts |= {"node": event.node, "attempt": event.attempt, "pay": str(event.pay), "fee": str(event.fee)}
        facts["text"] = (
            f"the checkpoint of attempt {event.attempt} was used: node {event.node}'s owner earned "
            f"{_net(event.pay, event.fee, asset)}"
        )
    if isinstance(event, Unlocked):
        facts["refund"] = str(event.refund)
        back = show_amount(event.refund, asset)
        facts["text"] = (
            f"a job that it waited for ended otherwise than asked, {back} refunded"
            if event.refund
            else "what it waited for has ended as asked: it waits for a machine"
        )
    if isinstance(event, Cancelled | Expired):
        facts["refund"] = str(event.refund)
        what = "cancelled" if isinstance(event, Cancelled) else "expired"
        facts["text"] = f"{what}, {show_amount(event.refund, asset)} refunded"
    return facts


def _node_facts(event: NodeUnitEvent, asset: Asset) -> dict[str, Any]:
    """Return what an event says of a unit and of the node that has it, or had it."""
    facts: dict[str, Any] = {"node": event.node}
    unit = words.unpack_unit(event.word)
    facts["state"] = unit.state.name.lower()
    if unit.outcome is not Outcome.NONE:
        facts["outcome"] = unit.outcome.name.lower()
    if isinstance(event, Submitted | Finished):
        facts |= {"result": event.result.hex(), "result_cid": result_cid(event.result), "report": event.report.hex()}
    if isinstance(event, Declined | GaveUp):
        facts["report"] = event.report.hex()
    if isinstance(event, Settled | Finished | Closed | Ruled):
        facts |= {"pay": str(event.pay), "fee": str(event.fee)}
    if isinstance(event, Ruled):
        facts |= {"verdict": Ruling(event.verdict).name.lower(), "taken": str(event.taken)}
    if isinstance(event, Started) and unit.resume:
        facts["resumed_from"] = unit.resume
    if isinstance(event, Checkpointed):
        facts |= {"attempt": unit.attempts, "seconds": event.seconds, "root": state_cid(event.root)}
    if isinstance(event, ToppedUp):
        facts |= {"amount": str(event.amount), "seconds": unit.seconds, "deadline_at": unit.deadline_at}
    return {**facts, "text": _unit_text(event, unit, asset)}


def _unit_text(event: NodeUnitEvent, unit: Unit, asset: Asset) -> str:
    node = f"node {event.node}"
    reopened = "it waits for a machine again" if unit.state is State.OPEN else "no attempt left, refunded"
    if isinstance(event, Proposed):
        return f"{node} proposed"
    if isinstance(event, Started):
        resumed = f", from the checkpoint of attempt {unit.resume}" if unit.resume else ""
        return f"{node} started (attempt {unit.attempts}{resumed})"
    if isinstance(event, Checkpointed):
        return f"{node} stored a checkpoint after {format_duration(event.seconds)}: {state_cid(event.root)}"
    if isinstance(event, ToppedUp):
        whole = f"{format_duration(unit.seconds)} in all, until {moment(unit.deadline_at)}"
        return f"topped up for {show_amount(event.amount, asset)}: {whole}"
    if isinstance(event, Submitted):
        return f"{node} submitted: {OUTCOME_LABELS[unit.outcome]}, result {result_cid(event.result)}"
    if isinstance(event, Settled | Finished):
        how = "submitted and settled" if isinstance(event, Finished) else "settled"
        earned = f"{node}'s owner earned {_net(event.pay, event.fee, asset)}"
        result = f", result {result_cid(event.result)}" if isinstance(event, Finished) else ""
        return f"{how} ({OUTCOME_LABELS[unit.outcome]}), {earned}{result}"
    if isinstance(event, Declined):
        return f"{node} gave it back; {reopened}"
    if isinstance(event, GaveUp):
        return f"{node} gave it up and paid for that; {reopened}"
    if isinstance(event, Reclaimed):
        return f"{node} lost it: late or silent; {reopened}"
    if isinstance(event, Disputed):
        return f"the judge holds {node}'s result"
    if isinstance(event, Ruled):
        return _ruled_text(event, unit, asset)
    if isinstance(event, Unproven):
        return f"nobody has proven {node}'s result in time; refunded"
    if isinstance(event, Closing):
        return f"{node} was given notice"
    if isinstance(event, Closed):
        return f"closed after notice, {node}'s owner earned {_net(event.pay, event.fee, asset)}"
    return f"{node}: {type(event).__name__}"


def _ruled_text(event: Ruled, unit: Unit, asset: Asset) -> str:
    verdict = Ruling(event.verdict)
    if verdict is Ruling.RELEASE:
        return f"the judge lets node {event.node}'s result stand: it can be settled as if it had not been held"
    if verdict is Ruling.REJECT:
        taken = show_amount(event.taken, asset)
        return f"the judge rejected node {event.node}'s result: refunded, its bond of {taken} lost"
    earned = f"node {event.node}'s owner earned {_net(event.pay, event.fee, asset)}"
    if verdict is Ruling.CONFIRM:
        return f"the judge confirmed it ({OUTCOME_LABELS[unit.outcome]}), {earned}"
    return f"the judge could not tell: refunded but for the start fee, {earned}"


def _net(pay: int, fee: int, asset: Asset) -> str:
    return show_amount(pay - fee, asset)


def shown_key(key: bytes) -> str:
    """Name what Escrow keeps money for: a node's stake by its number, jobs by their submitter; else the key itself."""
    number = int.from_bytes(key, "big")
    if number < 1 << 32:
        return f"node {number}"
    return f"the jobs of 0x{number:040x}" if number < 1 << 160 else f"key {job_hex(key)[:14]}"


def _offer(word: int, asset: Asset) -> str:
    offer = words.unpack_offer(word)
    return f"{offer.slots} {'slot' if offer.slots == 1 else 'slots'} at {show_rate(offer.ask, asset)}"


def _split(event: Split, asset: Asset) -> str:
    return f"{shown_key(event.key)}: {_shown_shares(event.shares, asset)}"


def _shown_shares(shares: Iterable[int], asset: Asset) -> str:
    parts = [words.unpack_share(share) for share in shares]
    shown = ", ".join(f"{show_amount(amount, asset)} to {account}" for account, amount in parts if amount)
    return shown or "nothing to anybody"


def _change(event: ChangeQueued | ChangeExecuted, asset: Asset) -> str:
    return Change(ChangeOp(event.op), event.word, 0).in_words(asset)


def _seat(address: str) -> str:
    return address if int(address, 16) else "nobody"


_MARKET_TEXTS: Final[Mapping[type[Event], Callable[[Any, Asset], str]]] = {
    NodeRegistered: lambda e, a: (
        f"node {e.node} registered: {_offer(e.offer, a)}, stake {show_amount(e.stake, a)}, "
        f"owner {e.owner}, operator {e.operator}"
    ),
    OfferChanged: lambda e, a: f"node {e.node} offers {_offer(e.offer, a)}",
    AskChanged: lambda e, a: f"node {e.node} asks {show_rate(e.ask, a)} from {moment(e.at)}",
    OperatorOffered: lambda e, a: (
        f"node {e.node} stays with its operator"
        if int(e.operator, 16) == 0
        else f"node {e.node} is offered to the operator {e.operator}, until whose first beat the present one serves"
    ),
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
    Rejected: lambda e, a: (
        f"node {e.node} lost its bond by a judge's verdict: {_shown_shares(e.shares, a)}, "
        f"{show_amount(e.burnt, a)} burnt; it takes no leases until {moment(e.until)}"
    ),
    Quarantined: lambda e, a: f"node {e.node} is quarantined until {moment(e.until)}",
    MinimumStakeChanged: lambda e, a: f"new nodes stake at least {show_amount(e.amount, a)}",
    Locked: lambda e, a: f"{show_amount(e.amount, a)} locked for {shown_key(e.key)}",
    CreditLocked: lambda e, a: f"{show_amount(e.amount, a)} of credit locked for {shown_key(e.key)}",
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
    ChangeQueued: lambda e, a: f"change {job_hex(e.change)[:14]} waits until {moment(e.due)}: {_change(e, a)}",
    ChangeDropped: lambda e, a: f"change {job_hex(e.change)[:14]} was dropped",
    ChangeExecuted: lambda e, a: f"change {job_hex(e.change)[:14]} was executed: {_change(e, a)}",
    CouncilOffered: lambda e, a: f"the council's seat is offered to {_seat(e.council)}",
    CouncilChanged: lambda e, a: f"{e.council} is the council",
    GuardianChanged: lambda e, a: f"{_seat(e.guardian)} is the guardian",
}
"""What people read of an event that is no unit's. Amounts are rounded, times UTC, jobs and nodes named as elsewhere."""


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return "0x" + value.hex()
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, int) and value > 2**53 else value
