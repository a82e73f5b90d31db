"""The worker's reasons in words for a person: what `hearth worker why` and `hearth worker take` say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from hearth.client.job.gates import GATE_SENTENCES
from hearth.protocol.types import Gate
from worker.decide import Reason

if TYPE_CHECKING:
    from worker.reports import WorkerProcess

REASON_TEXTS: Final[Mapping[Reason | Gate, str]] = {
    **{gate: GATE_SENTENCES[gate] for gate in GATE_SENTENCES},
    Reason.PAUSED: "it is paused: hearth worker resume",
    Reason.DRAINING: "it ends what it holds, and then stops",
    Reason.OUTSIDE_SCHEDULE: "accept.schedule excludes this hour",
    Reason.CLOCK_SKEW: "this machine's clock and the newest block are far apart",
    Reason.CHAIN_SILENT: "the newest block is old, and none has come since",
    Reason.GAS_CAPPED: "gas costs more than half of max_gas_price, or this day's budget is spent",
    Reason.DISK_FULL: "less disk is free than storage.reserve",
    Reason.STORE_DOWN: "its store takes no results",
    Reason.GPU_DRIVER: "its GPU driver does not answer",
    Reason.GPU_LOST: "its GPU does not answer, or is gone",
    Reason.GPU_SICK: "its GPU is unfit until its owner acts",
    Reason.GPU_ENGINE: "its container engine gives no container its GPU",
    Reason.GPU_BUSY: "somebody else uses its GPU",
    Reason.OTHER_OWNER: "its node has another owner than account.payout",
    Reason.NOT_READY: "gas money is short",
    Reason.NODE_STATUS: "it may take nothing",
    Reason.SLOTS_FULL: "every slot is taken",
    Reason.SUBMITTER_REFUSED: "it does not work for the job's submitter",
    Reason.RATE_BELOW_MINIMUM: "it asks less than accept.min_price",
    Reason.PAY_BELOW_MINIMUM: "the job pays less than accept.min_pay",
    Reason.NO_GPU_ASKED: "it takes jobs for GPUs alone",
    Reason.GPU_KINDS: "the job wants one GPU model alone, and it has others too",
    Reason.UNPROFITABLE: "its gas costs more than it brings",
    Reason.TOO_LONG: "the job may run longer than accept.max_runtime",
    Reason.TOO_TIGHT: "its lease has less time beyond the run than this machine needs to submit",
    Reason.NOT_SUPPORTED: "this worker does not run such jobs",
    Reason.JUDGE_UNKNOWN: "accept.judges and accept.attesters lack the job's judge",
    Reason.BOND_TOO_LARGE: "it binds more stake than accept.max_bond allows",
    Reason.SPEC_BAD: "the job's spec cannot be run",
    Reason.IMAGE_REFUSED: "accept or docker.registries do not allow the program",
    Reason.TOO_BIG: "the job brings or leaves more than this worker takes",
    Reason.NO_ROOM: "its disk has no room now for all that the job may bring and leave",
    Reason.OUTBID: "another node leads",
    Reason.AWAITS_ACK: "another node has won the unit and may still take it",
    Reason.AWAITS_OPEN_CLAIM: "the unit takes no claims yet",
    Reason.AWAITS_PRICE: "the price of an open claim has not risen to its ask yet",
    Reason.ARRAY_CLOSED: "the submitter has closed the array",
    Reason.AWAITS_WINDOW: "its units are submitted and no other is open",
    Reason.AWAITS_JUDGE: "its units wait for the job's judge, and no other is open",
    Reason.AWAITS_KEEPER: "its units wait to be settled until gas is cheaper, and no other is open",
    Reason.NOT_NEXT: "the units of an array are taken in their order",
    Reason.NOT_CHOSEN: "it leads another unit of the job, and is sent for one",
    Reason.RETRY_LATER: "a try at the job failed, and it leaves it alone for a while",
    Reason.AWAITS_PARENTS: "the job waits for other jobs to end, and for whoever unlocks it then",
    Reason.ENDED: "no unit of the job is open",
    Reason.NOT_WATCHED: "no unit of the job is open",
    Reason.AWAITS_TURN: "more units are open than are read at one block; this job's are read at a later one",
    Reason.SPEC_UNREAD: "the job's spec is being read",
    Reason.LEADING: "it leads, and takes the unit once the window is over",
    Reason.GATHERING: "it leads, and fetches all that the unit needs before it takes it",
    Reason.TX_PENDING: "a transaction about the unit waits to be mined",
    Reason.AWAITS_CONFIRMATIONS: "the unit is its own, and runs some blocks later",
    Reason.RUNNING: "the unit is its own, and runs",
    Reason.STOPPING: "an earlier attempt at the unit is still being stopped",
    Reason.NOTICE: "the submitter cancelled the unit; the notice is paid without a run",
    Reason.LEASE_OVER: "its time for the unit is over",
}
"""Why a node does not take a unit, "it" being the node; every reason but FITS, which is none."""


def hold_lines(said: WorkerProcess) -> list[str]:
    """Say why a running worker takes nothing new, and what mends what only another machine can."""
    gpus = [_gpu_line(**one) for one in said.get("gpus", ()) if one["why"]]
    hold = said.get("hold")
    if not hold:
        return gpus
    words = next((REASON_TEXTS[one] for one in Reason if one == hold), "a reason of another version")
    lines = [f"nothing new is taken ({hold}): {words}"]
    if hold == Reason.NOT_READY:
        send = f'hearth wallet send {said["operator"]} "0.05 ETH" --account owner'
        lines.append(f"the key {said['operator']} cannot pay its gas; on the owner's machine: {send}")
    if hold == Reason.STORE_DOWN and said.get("store_refusal"):
        lines.append(f"{said['store_refusal']}; it is tried again by itself: hearth worker doctor")
    return lines + gpus


def _gpu_line(uuid: str, name: str, state: str, why: str) -> str:
    what = f"GPU {uuid}" if uuid else "no GPU"
    return f"{what} is given to {'no' if uuid else 'a'} job ({state}): {why}; hearth worker doctor"
