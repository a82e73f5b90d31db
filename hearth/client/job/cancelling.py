"""Cancel what can be cancelled of a job, and wait for the rest."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from hearth.base.errors import RefusedError, WaitTimeout
from hearth.client.views import JobView, job_hex, require_unit
from hearth.protocol import formulas
from hearth.protocol.types import SENTINEL, State

if TYPE_CHECKING:
    from hearth.client.reading import JobReader
    from hearth.client.reports import Transaction

POLL_SECONDS: Final = 1.0


def indices(view: JobView, unit: int | None, states: tuple[Any, ...]) -> list[int]:
    """Return the job's units, or the one, that are in one of these states. Raises NotFoundError for no such unit."""
    if unit is not None:
        require_unit(view, unit)
        return [unit] if unit < len(view.units) and view.units[unit].state in states else []
    return [index for index, one in enumerate(view.units) if one.state in states]


def wanted(view: JobView, unit: int | None) -> list[int]:
    """Return what of a job, or of one unit, is to be cancelled: indices, and SENTINEL for what nobody touched."""
    rest = [SENTINEL] if unit is None and view.header is not None and view.untouched > 0 else []
    return rest + indices(view, unit, (State.BLOCKED, State.OPEN, State.RUNNING))


def cancel(reads: JobReader, view: JobView, unit: int | None) -> tuple[list[Transaction], JobView]:
    """Cancel until nothing is left to be; return the transactions, and the job as it stands then.

    None was sent where everything moved first. Raises WaitTimeout with what is left.
    """
    session = reads.session
    sent: list[Transaction] = []
    told = False
    end = time.monotonic() + session.settings.timeout
    while left := wanted(view, unit):
        held = [index for index in left if index != SENTINEL and _is_held(view, index)]
        with session.sender() as sender:
            for index in left:
                if index in held:
                    continue
                attempt = 0 if index == SENTINEL else view.units[index].attempts
                call = session.market.calls.cancel(view.posted.packed, index)
                try:
                    key = f"cancel/{view.posted.job_id.hex()}/{index}/{attempt}"
                    sent.append(session.send(sender, call, key))
                except RefusedError as error:
                    # It moved since it was read: proposed for, submitted, ended. The next look says which.
                    session.tell("note", {"text": f"unit {index} moved meanwhile ({error.message}); looking again"})
        if session.dry_run:
            return sent, view
        if held and not told:
            told = True
            text = f"{_units(held)} held by a proposal: cancelled once it runs, or once the proposal has lapsed"
            session.tell("note", {"text": text})
        time.sleep(POLL_SECONDS)
        view = reads.view(view.posted, session.market.port.head())
        left = wanted(view, unit)
        if left and time.monotonic() >= end:
            name = job_hex(view.posted.job_id)[:14]
            raise WaitTimeout(
                f"{len(sent)} cancelled; {_units(left)} of job {name} could not be cancelled within "
                f"{session.settings.timeout} s",
                hint=f"hearth job cancel {name}",
            )
    return sent, view


def _is_held(view: JobView, index: int) -> bool:
    """Say whether a live proposal holds a unit, so that the contract refuses to cancel it."""
    return formulas.has_live_proposal(view.terms, view.units[index], view.now)


def _units(indices: list[int]) -> str:
    """Return "unit 3", or "units 3, 4, 5, 6, 7 and 7 more"."""
    shown = ", ".join("the untouched ones" if index == SENTINEL else str(index) for index in indices[:5])
    more = f" and {len(indices) - 5} more" if len(indices) > 5 else ""
    return f"unit{'s' * (len(indices) > 1)} {shown}{more}"
