"""Events of jobs by chance, in any order: what checkpoints come to, and whose the shares of each transaction are."""

from __future__ import annotations

import random
from typing import Any

from hearth.client.job.checkpoints import checkpoints_in, paid_in
from hearth.client.job.receipt import shares_of
from hearth.market import events
from hearth.protocol import words
from hearth.protocol.types import SENTINEL, Outcome, State, Verdict
from hearth.protocol.units import NATIVE
from tests.web.vectors import _chance
from tests.web.vectors._events import WITH_RESULT, chance_header, chance_unit, log_of

JOBS = (b"\x01" * 32, b"\x02" * 32)
REGISTRY, OTHER = "0x" + "10" * 20, "0x" + "20" * 20
SEQUENCES = 150
_LEFT = ("Checkpointed", "GaveUp", "Reclaimed", "CheckpointPaid", "Started", "Settled")
_ENDS = (
    *("Settled", "Finished", "Closed", "Ruled", "Cancelled", "Declined", "GaveUp", "Reclaimed", "Expired"),
    *("Unproven", "Unlocked", "Proposed", "CheckpointPaid"),
)


def cases() -> Any:
    """Return sequences of events with what the library makes of them for the first job."""
    draw = _chance.source("folds")
    return {
        "jobs": ["0x" + job.hex() for job in JOBS],
        "registry": REGISTRY,
        "sequences": _chance.telling((_case(draw, at) for at in _chance.rows(SEQUENCES)), _kinds),
    }


def _kinds(row: dict[str, Any]) -> set[Any]:
    """Return what came of checkpoints, and which shares there are."""
    kept = {(one["kept"], one["pay"] is None) for _, rows in row["checkpoints"] for one in rows}
    shares = {("share", at) for at, share in enumerate(row["shares"]) if share != "0"}
    return {*kept, *shares}


def _case(draw: random.Random, number: int) -> dict[str, Any]:
    chain = bool(number % 2)
    logs = [_log(name, draw, chain=chain) for name in (_chain(draw) if chain else _transaction(draw))]
    told = [events.decode_of(log, _contract(name)) for name, log in logs]
    own = [event for event in told if getattr(event, "job_id", None) == JOBS[0]]
    return {
        "logs": [
            [_contract(name), ["0x" + topic.hex() for topic in log.topics], "0x" + log.data.hex()] for name, log in logs
        ],
        "checkpoints": [[unit, rows] for unit, rows in checkpoints_in(own, NATIVE).items()],
        "paid": paid_in(own),
        "shares": [str(amount) for amount in shares_of(told, JOBS[0], REGISTRY)],
    }


def _contract(name: str) -> str:
    return "Escrow" if name == "Split" else "JobRegistry"


def _chain(draw: random.Random) -> list[str]:
    """Return events of which a unit's checkpoints are made."""
    return [draw.choice(_LEFT) for _ in range(draw.randrange(4, 12))]


def _transaction(draw: random.Random) -> list[str]:
    """Return events with splits among them."""
    names: list[str] = []
    for _ in range(draw.randrange(1, 5)):
        names.append(draw.choice(_ENDS))
        names += ["Split"] * draw.choice((0, 1, 1, 1, 2))
    return names


def _log(name: str, draw: random.Random, *, chain: bool) -> tuple[str, Any]:
    """Return a log of an event; those of a chain are of one job, a few attempts, and a unit that seldom ends."""
    if name == "Split":
        shares = [words.pack(words.SHARE, {"account": draw.getrandbits(160), "amount": 10**n}) for n in (3, 5, 7, 9)]
        controller = draw.choice((REGISTRY, REGISTRY, REGISTRY, OTHER))
        return name, log_of("Escrow", name, {"controller": controller, "key": bytes(32), "shares": shares}, draw)
    index, attempts = (draw.choice((0, 0, 0, 1)), 3) if chain else (draw.randrange(2), 4)
    unit = chance_unit(draw, ended=name in WITH_RESULT)
    lanes = {lane.name: int(getattr(unit, lane.name)) for lane in words.UNIT.lanes}
    ending = name in ("GaveUp", "Reclaimed", "Declined")
    state = (
        draw.choice((State.OPEN, State.OPEN, State.REFUNDED)) if ending else draw.choice((State.RUNNING, State.SETTLED))
    )
    lanes |= {"attempts": draw.randrange(1, attempts), "state": state, "outcome": lanes["outcome"] or Outcome.OK}
    word = words.pack(words.UNIT, lanes)
    if name in ("Cancelled", "Expired", "Unlocked") and draw.random() < 0.3:
        index, word = SENTINEL, words.pack_header(chance_header(draw))
    values = {
        "job_id": JOBS[0] if chain else draw.choice((JOBS[0], JOBS[0], JOBS[0], JOBS[1])),
        "index": index,
        "node": draw.randrange(1, 5),
        "word": word,
        "attempt": draw.randrange(1, attempts),
        "seconds": draw.randrange(1, 5_000),
        "verdict": draw.choice(list(Verdict)),
        **{key: draw.randbytes(32) for key in ("root", "result", "report", "session_key")},
        **{key: draw.randrange(10**18) for key in ("pay", "fee", "refund", "taken", "amount", "best")},
    }
    return name, log_of("JobRegistry", name, values, draw)
