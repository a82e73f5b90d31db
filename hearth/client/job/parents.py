"""The jobs that another one waits for: how far each has come, and what that lets anyone do with the one that waits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hearth.base.errors import ChainError
from hearth.client.views import OUTCOME_LABELS, JobView, job_hex, moment, until
from hearth.protocol import formulas, words
from hearth.protocol.parents import Condition, Ended, Parent, Progress, ended, progress
from hearth.protocol.state_labels import DONE, STATE_LABELS, unit_label
from hearth.protocol.types import Header, State, Terms, Unit, UnitFlag

if TYPE_CHECKING:
    from hearth.chain.port import Block
    from hearth.client.reading import JobReader
    from hearth.client.reports import ParentFacts
    from hearth.market.reads import Posted

ASKED: Final = {Condition.SUCCESS: "to end well", Condition.FAILURE: "to fail", Condition.ALWAYS: "to end"}


@dataclass(frozen=True, slots=True)
class ParentView:
    """A job that another one waits for, at the time `now`: its own word, and how it was posted.

    `posted` is None where this market has no such job. Of an array the word says enough: its units are not read.
    """

    parent: Parent
    word: int
    posted: Posted | None
    now: int

    @property
    def ended(self) -> Ended:
        """Return how it has ended."""
        return ended(self.word)

    @property
    def as_asked(self) -> bool | None:
        """Say whether it ended as asked, None before its end."""
        return None if self.ended is Ended.NOT_YET else bool(self.parent.condition & self.ended)

    @property
    def name(self) -> str:
        """Return the beginning of its id."""
        return job_hex(self.parent.job)[:14]

    @property
    def state(self) -> str | None:
        """Return its state, as `hearth jobs` names it; None where there is no such job."""
        if self.posted is None:
            return None
        if not words.is_header(self.word):
            return words.unpack_unit(self.word).state.name.lower()
        header = words.unpack_header(self.word)
        if self.ended is not Ended.NOT_YET:
            return "ended"
        return "blocked" if header.waiting else "running" if header.touched else "open"

    @property
    def text(self) -> str:
        """Say how far it has come, and until when it may take."""
        if self.posted is None:
            return "no job of this market: it never ends"
        if self.ended is Ended.WELL:
            return "ended well"
        if self.ended is Ended.OTHERWISE:
            return f"ended otherwise: {_end(self.word)}"
        state = STATE_LABELS.get(State[str(self.state).upper()], "")
        return f"{state}, {_moves(self.word, self.posted.terms, self.now)}"

    def facts(self) -> ParentFacts:
        """Return it for JSON."""
        how = {Ended.NOT_YET: None, Ended.WELL: "well", Ended.OTHERWISE: "otherwise"}[self.ended]
        return {
            "job": job_hex(self.parent.job),
            "condition": self.parent.condition.name.lower(),
            "state": self.state,
            "ended": how,
            "as_asked": self.as_asked,
            "text": self.text,
        }


def look_at(reads: JobReader, parents: Sequence[Parent], head: Block) -> list[ParentView]:
    """Read jobs that another one waits for, at a block. Their ids are a stranger's word: one may name no job.

    Raises ChainError RPC_BROKEN for a word that no contract writes.
    """
    market = reads.session.market
    seen = list(zip(parents, market.job_words([parent.job for parent in parents], head.hash), strict=True))
    for parent, word in seen:
        _require_word(parent, word)
    posted = market.terms_of_all([parent.job for parent, word in seen if _is_job(word)])
    return [ParentView(parent, word, posted.get(parent.job), head.timestamp) for parent, word in seen]


def _require_word(parent: Parent, word: int) -> None:
    """Refuse an answer that no contract gives, before anything is read from it."""
    try:
        ended(word)
    except ValueError as error:
        raise ChainError(
            f"the RPC serves a word of job {job_hex(parent.job)} that no contract writes: {error}",
            code="RPC_BROKEN",
            hint="hearth doctor",
        ) from error


def _is_job(word: int) -> bool:
    """Say whether a word is a job's own: an array's units stand under keys that look like ids."""
    return word != 0 and (words.is_header(word) or not words.unpack_unit(word).flags & UnitFlag.ARRAY)


def progress_of(parents: Sequence[ParentView]) -> Progress:
    """Say what `unlock` may do with a job by its parents."""
    return progress([one.parent for one in parents], [one.word for one in parents])


def waits_for(view: JobView, parents: Sequence[ParentView]) -> str:
    """Say of a blocked job what it waits for, or who may end its waiting."""
    if not formulas.has_time(view.terms, view.now):
        return "no attempt can end before the deadline: anyone may expire it for a refund, hearth job cancel JOB too"
    found = progress_of(parents)
    if found is Progress.OPENS:
        return "what it waited for has ended as asked: anyone may start it, hearth job unlock JOB"
    if found is Progress.FAILS:
        wrong = next(one for one in parents if one.as_asked is False)
        return (
            f"job {wrong.name} was {ASKED[wrong.parent.condition]}, and {wrong.text}: anyone may end this one for a "
            "refund, hearth job unlock JOB"
        )
    return f"waits for {missing(parents)}"


def missing(parents: Sequence[ParentView]) -> str:
    """Name the parents that have not ended, with what each does."""
    return ", ".join(f"{one.name} ({one.text})" for one in parents if one.ended is Ended.NOT_YET)


def latest_end(terms: Terms) -> int:
    """Return the moment until which a job may take to end, as far as its terms say.

    A result may come at the deadline, of a node on probation too. Where the terms ask for a proof, what has none by the
    deadline and the window is settled then, whoever ran it.
    """
    last = Unit(state=State.SUBMITTED, mark=terms.deadline, flags=UnitFlag.FRESH)
    return formulas.settleable_from(terms, last)


def _end(word: int) -> str:
    """Say how a job ended that did not end well."""
    if words.is_header(word):
        return _units(words.unpack_header(word))
    unit = words.unpack_unit(word)
    return OUTCOME_LABELS[unit.outcome] if unit.state is State.SETTLED else unit_label(unit)


def _moves(word: int, terms: Terms, now: int) -> str:
    """Say what a job that has not ended does, and until when."""
    if words.is_header(word):
        return f"{_units(words.unpack_header(word))} so far, until {moment(latest_end(terms))} at most"
    unit = words.unpack_unit(word)
    if unit.state in (State.RUNNING, State.CLOSING):
        return f"node {unit.node} may submit until {until(unit.deadline_at, now)}"
    if unit.state in (State.SUBMITTED, State.DISPUTED):
        since = formulas.settleable_from(terms, unit)
        return f"its result may be settled from {until(since, now)}"
    return f"until {moment(latest_end(terms))} at most"


def _units(header: Header) -> str:
    return f"{header.done} of {header.leases} units {DONE}"
