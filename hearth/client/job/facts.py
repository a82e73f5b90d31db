"""A job's plain facts, ready for JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from hearth.client.job.checkpoints import checkpoints_in
from hearth.client.job.courses import Courses
from hearth.client.job.parents import look_at, waits_for
from hearth.client.judges import judge_of
from hearth.client.views import OUTCOME_LABELS, JobView, job_hex, moment, next_step, result_cid, strays_in, verification
from hearth.protocol.state_labels import counted, unit_label
from hearth.protocol.types import State

if TYPE_CHECKING:
    from hearth.client.job.courses import Course
    from hearth.client.reading import JobReader
    from hearth.client.reports import CheckpointRow, JobFacts, JobRow, Lease
    from hearth.client.session import Session

SHOWN_UNITS: Final = 200
"""Leases that are listed one by one."""


def job_row(session: Session, view: JobView, course: Course) -> JobRow:
    """Return a job in a list: its name, its state, its counts, its times and cost, who posted it and until when."""
    terms = view.terms
    return {
        "job": job_hex(view.posted.job_id),
        "name": session.names.of(terms.spec),
        "state": view.state,
        "state_text": view.labels[1],
        "verdict": view.verdict,
        "units": terms.leases,
        "counts": view.counts,
        "counts_text": counted(view.tally),
        "submitter": terms.submitter,
        "block": view.posted.log.block_number,
        "deadline": terms.deadline,
        "posted_at": course.posted_at,
        "started_at": course.started_at,
        "ended_at": course.ended_at,
        "cost": None if course.spent is None else str(course.spent),
        "cost_text": None if course.spent is None else session.amount(course.spent),
    }


def _leases(
    session: Session, view: JobView, waits: str | None, checkpoints: Mapping[int, list[CheckpointRow]]
) -> list[Lease]:
    """Return the leases that are listed one by one, with who may act next on each and until when."""
    from hearth.protocol import formulas

    nodes = {unit.node for unit in view.units if unit.node and not unit.state.terminal}
    seen = {node: session.market.last_seen(node) for node in nodes}
    dead_after, judge = session.network.node_parameters.dead_after, judge_of(view.terms, session.network)
    leases: list[Lease] = []
    order = sorted(range(len(view.units)), key=lambda i: (view.units[i].state.terminal, i))
    for index in sorted(order[:SHOWN_UNITS]):
        unit = view.units[index]
        leases.append(
            {
                "unit": index,
                "state": unit.state.name.lower(),
                "state_text": unit_label(unit),
                "outcome": unit.outcome.name.lower(),
                "outcome_text": OUTCOME_LABELS[unit.outcome] if unit.outcome else "",
                "node": unit.node or None,
                "attempts": unit.attempts,
                "lapses": unit.lapses,
                "topped_up": formulas.topped(view.terms, unit).max_seconds - view.terms.max_seconds,
                "resumed_from": unit.resume or None,
                "checkpoints": checkpoints.get(index, []),
                "started": unit.started,
                "window_end": unit.window_end or None,
                "deadline_at": unit.deadline_at or None,
                "submitted_at": unit.submitted_at or None,
                "result_cid": None if (kept := view.best[index].kept) is None else result_cid(kept),
                "next": next_step(view, index, seen, dead_after, waits, judge),
            }
        )
    return leases


def _workers(session: Session, view: JobView) -> str | None:
    """Say who could take an open unit of a job; None where none is open to workers."""
    from hearth.client.job.gates import Fleet, open_in_words
    from hearth.protocol import formulas

    is_open = view.untouched or any(unit.state is State.OPEN for unit in view.units)
    if view.blocked or not is_open or not formulas.has_time(view.terms, view.now):
        return None
    return open_in_words(Fleet.read(session), view, session.asset)[1]


def job_facts(reads: JobReader, view: JobView) -> JobFacts:
    """Return everything that the chain knows of a job, with who may act next and until when."""
    from hearth.protocol import formulas
    from hearth.protocol.parents import unpack_parents
    from hearth.protocol.types import ZERO_ADDRESS, TermsFlag
    from hearth.protocol.units import show_rate

    session, terms, posted = reads.session, view.terms, view.posted
    parents = look_at(reads, unpack_parents(posted.parents), session.market.port.head()) if posted.parents else []
    course = Courses(reads).of(view)
    waits = waits_for(view, parents) if view.blocked else None
    escrow = formulas.escrow_at_post(terms) + view.topped_up
    checkpoints = {}
    if terms.checkpoint_every:
        checkpoints = checkpoints_in(reads.events(posted, posted.log.block_number, view.number), session.asset)
    return {
        "schema": "hearth.job/1",
        **job_row(session, view, course),
        "network": session.network.name,
        "at_block": view.number,
        "at_time": view.now,
        "finished": view.finished,
        "ok": view.ok,
        "failed": view.failed,
        "untouched": view.untouched,
        "posted": {
            "block": posted.log.block_number,
            "tx": "0x" + posted.log.tx_hash.hex(),
            "explorer": session.explorer("0x" + posted.log.tx_hash.hex()),
        },
        "spec": terms.spec.hex(),
        "max_seconds": terms.max_seconds,
        "max_attempts": terms.max_attempts,
        "match_window": terms.match_window,
        "billing": terms.billing.name.lower(),
        "deadline_text": moment(terms.deadline),
        "asset": session.asset.symbol,
        "escrow": str(escrow),
        "escrow_text": session.amount(escrow),
        "topped_up": str(view.topped_up),
        "checkpoint_every": terms.checkpoint_every or None,
        "ceiling": str(terms.ceiling),
        "ceiling_text": show_rate(terms.ceiling, session.asset),
        "keeper_fee": str(terms.keeper_fee),
        "parents": [parent.facts() for parent in parents],
        "waits": waits,
        "workers": _workers(session, view),
        "kept": bool(terms.flags & TermsFlag.KEEP),
        "verify": verification(terms, judge_of(terms, session.network)),
        "judge": None if terms.judge == ZERO_ADDRESS else terms.judge,
        "judge_data": None if terms.judge == ZERO_ADDRESS else f"{terms.judge_data:#066x}",
        "bond": str(formulas.bond(terms)),
        "bond_text": session.amount(formulas.bond(terms)),
        "leases": _leases(session, view, waits, checkpoints),
        **strays_in(session.market.strays),
    }
