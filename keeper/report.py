"""What a keeper tells people: the documents of `hearth keeper list` and `explain`, and how they are printed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hearth.base.errors import NotFoundError
from hearth.protocol.types import JobId
from hearth.protocol.units import Asset, show_amount
from keeper.actions import Skip, name_of
from keeper.decide import decide
from keeper.explain import explain_job
from keeper.loop import Keeper

if TYPE_CHECKING:
    from keeper.reports import DueWork, KeeperExplanation, KeeperWork, Waiting


# ---- documents ----


def work(keeper: Keeper) -> KeeperWork:
    """Read the market and return the work that there is: what would be sent, what it would earn, and what waits.

    Needs no key and sends nothing.
    """
    head = keeper.reader.sync(compare_all=True)
    said = decide(keeper.reader.snapshot(head), keeper.config, head.timestamp)
    rows: list[DueWork] = [
        {
            "does": one.kind,
            "ids": list(one.ids),
            "earns": str(one.reward),
            "earns_text": show_amount(one.reward, keeper.asset),
        }
        for one in said
        if not isinstance(one, Skip)
    ]
    waiting: list[Waiting] = [{"id": one.id, "why": one.reason} for one in said if isinstance(one, Skip)]
    return {"schema": "hearth.keeper.list/1", "block": head.number, "work": rows, "waiting": waiting}


def explain(keeper: Keeper, job: JobId) -> KeeperExplanation:
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


# ---- text ----


def work_rows(told: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return a row (does, what, earns) for each piece of work; ids are whole, a batch is named by its first."""
    return [(row["does"], name_of(row["ids"]), row["earns_text"]) for row in told["work"]]


def explain_lines(told: Mapping[str, Any]) -> list[str]:
    """Return what is done about a job, unit by unit with its whole id, after how the fleet fits it."""
    fits = ", ".join(f"{count} {gate}" for gate, count in told["nodes"].items()) or "no live node"
    return [f"nodes: {fits}", *(f"{row['id']}: {row['does']}, {row['why']}" for row in told["keeper"])]


def profit_text(told: Mapping[str, Any], asset: Asset) -> str:
    """Return the profit of a status document in the market's asset: "profit 0.0021 ETH"."""
    return f"profit {_amount(told, 'profit', asset)}"


def status_lines(told: Mapping[str, Any], asset: Asset) -> list[str]:
    """Return a status document for people; `asset` is the market's."""
    ready = "ready" if told["ready"] else f"not ready: {told['why']}"
    if not told.get("alive", True):
        ready = "it runs no more: hearth keeper run"
    mined = ", ".join(f"{count} {kind}" for kind, count in told["profit_and_loss"]["mined"].items()) or "nothing"
    who = told["account"] or "without an account"
    return [
        f"keeper {who} at block {told['block']}, {told['age']} s ago: {ready}",
        f"  rewards {_amount(told, 'rewards', asset)}, gas {_amount(told, 'gas', asset)}, {profit_text(told, asset)}",
        f"  mined {mined}; {told['jobs']} jobs, {told['nodes_ready']} nodes ready",
    ]


def _amount(told: Mapping[str, Any], line: str, asset: Asset) -> str:
    return show_amount(int(told["profit_and_loss"][line]), asset)
