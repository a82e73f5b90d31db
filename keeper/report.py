"""What a keeper tells people: the documents of `hearth keeper list` and `explain`."""

from __future__ import annotations

from typing import Any

from hearth.base.errors import NotFoundError
from hearth.protocol.types import JobId
from hearth.protocol.units import format_amount
from keeper.actions import Skip
from keeper.decide import decide
from keeper.explain import explain_job
from keeper.shell import Keeper


def work(keeper: Keeper) -> dict[str, Any]:
    """Read the market and return the work that there is: what would be sent, what it would earn, and what waits.

    Needs no key and sends nothing.
    """
    head = keeper.reader.sync(compare_all=True)
    said = decide(keeper.reader.snapshot(head), keeper.config, head.timestamp)
    rows = [
        {
            "does": one.kind,
            "ids": list(one.ids),
            "earns": str(one.reward),
            "earns_text": format_amount(one.reward, keeper.asset),
        }
        for one in said
        if not isinstance(one, Skip)
    ]
    waiting = [{"id": one.id, "why": one.reason} for one in said if isinstance(one, Skip)]
    return {"schema": "hearth.keeper.list/1", "block": head.number, "work": rows, "waiting": waiting}


def explain(keeper: Keeper, job: JobId) -> dict[str, Any]:
    """Read the market and return what `keeper` would do about one job and why.

    Needs no key and sends nothing. Raises NotFoundError where the job ended or was never posted.
    """
    head = keeper.reader.sync(compare_all=True)
    try:
        told = explain_job(keeper.reader.snapshot(head), keeper.config, head.timestamp, job)
    except KeyError as error:
        raise NotFoundError(
            f"no keeper has work in job 0x{job.hex()}: it ended, or was never posted",
            hint=f"hearth job show 0x{job.hex()}",
            component="keeper",
        ) from error
    return {"schema": "hearth.keeper.explain/1", **told}
