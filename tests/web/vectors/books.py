"""Lives of whole markets: their logs, what the library's replay makes of them, what storage held after each block."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final

from hearth.chain.port import Log
from hearth.client.audit.verify import Verifier
from hearth.client.job.checkpoints import checkpoints_in
from hearth.client.job.receipt import receipt
from hearth.client.views import JobView
from hearth.market.events import (
    Cancelled,
    CheckpointPaid,
    Expired,
    JobPosted,
    Locked,
    Settled,
    Split,
    Started,
    topic_of,
)
from hearth.market.reads import UnitStatus
from hearth.protocol import words
from hearth.protocol.types import ZERO_ADDRESS, Header, JobId
from tests.kit.nonsense import nonsense
from tests.web.vectors._history import History, Port
from tests.web.vectors._plain import plain

NONSENSE: Final = 12
"""Logs that no contract writes, among those of a market."""


def cases() -> Any:
    """Return a native market with all lives, and one of a token with a few."""
    return {name: _market(history) for name, history in lived().items()}


@cache
def lived() -> dict[str, History]:
    """Return both markets by name, with the lives lived."""
    native, token = History(), History(erc20=True)
    native.live()
    token.live_few()
    return {"native": native, "token": token}


def _market(history: History) -> dict[str, Any]:
    network, evm = history.network, history.evm
    addresses = list(network.contracts.values())
    logs = [log for log in evm.logs if log.address in addresses]
    replay = _Replay(history, logs)
    books = replay.told.books
    blocks = {log.block_number for log in logs}
    return {
        "contracts": dict(network.contracts),
        "jobChainId": network.job_chain_id,
        "asset": plain(network.asset),
        "logs": [_brief(log, addresses) for log in logs],
        "times": [[block, second] for block, second in evm.times.items() if block in blocks],
        "now": evm.now,
        "locks": [[controller, "0x" + key.hex(), str(amount)] for (controller, key), amount in books.locks.items()],
        "credits": [[account, str(amount)] for account, amount in books.credits.items()],
        "total": str(books.total),
        "held": str(history.market.asset_balance(network.escrow)),
        "tracked": str(history.market.tracked()),
        "reclaimed": replay.told.reclaimed,
        "nodes": [[node.id, str(node.stake), node.owner != ZERO_ADDRESS] for node in history.market.nodes("latest")],
        "holds": [["0x" + key.hex(), str(amount)] for key, amount in replay.holds.items()],
        "faults": replay.faults,
        "steps": history.steps,
        "jobs": [_job(history, replay, job) for job in replay.told.posted],
        "altered": [
            {"why": why, "edits": [[at, _brief(log, addresses) if log else None] for at, log in edits]}
            | _Replay(history, _edited(logs, edits)).found()
            # Logs are the same in a market of a token.
            for why, edits in _alterations(history, logs)[: None if network.asset.address is None else 4]
        ],
    }


def _brief(log: Log, addresses: Sequence[str]) -> list[Any]:
    """Return a log in short: the number of its contract, topics, data, block, and its own number there."""
    topics = ["0x" + topic.hex() for topic in log.topics]
    return [addresses.index(log.address), topics, "0x" + log.data.hex(), log.block_number, log.log_index]


class _Told(Port):
    """A port that tells other logs than the chain has."""

    def __init__(self, history: History, logs: Sequence[Log]) -> None:
        super().__init__(history.evm)
        self._logs = logs

    @property
    def all_logs(self) -> Sequence[Log]:
        return self._logs


class _Replay:
    """What `hearth net verify` makes of a market's logs, governance, creation and stored results aside."""

    def __init__(self, history: History, logs: Sequence[Log]) -> None:
        verifier = Verifier(history.reads_of(_Told(history, logs)))
        verifier._end = math.inf
        market, head = verifier._market, history.port.head()
        self.told = verifier._read(head)
        books = self.told.books
        self.faults = [*verifier._compare_books(books, head), *self.told.faults]
        nodes = market.nodes("latest")
        verifier._here = frozenset(node.id for node in nodes if node.owner != ZERO_ADDRESS)
        for node in nodes:
            locked = books.locks[history.network.nodes, int(node.id).to_bytes(32, "big")]
            if locked != node.stake:
                self.faults.append(f"node {node.id} has a stake of {node.stake}, and {locked} is locked for it")
        self.holds: defaultdict[bytes, int] = defaultdict(int)
        self.stored: dict[bytes, list[UnitStatus]] = {}
        self.units: dict[bytes, Any] = {}
        for one, header, stored in market.stored(list(self.told.posted.values()), "latest"):
            self.stored[one.job_id] = stored
            self.units[one.job_id] = verifier._verify_job(one, header, stored, self.told, self.holds, self.faults)
        self.faults += verifier._compare_holds(books, self.holds, head)
        self.strays = market.strays

    def found(self) -> dict[str, Any]:
        """Return what is wrong."""
        return {"faults": self.faults, "strays": len(self.strays), "first": self.strays.first}


def _job(history: History, replay: _Replay, job: JobId) -> dict[str, Any]:
    """Return what storage holds of a job in the end, and what is said of it."""
    reads = history.reads
    posted = replay.told.posted[job]
    view = reads.view(posted, history.port.head())
    rows = checkpoints_in(reads.events(posted, 0, history.evm.block), history.asset)
    told = replay.units[job]
    return {
        "job": "0x" + job.hex(),
        "header": None if view.header is None else hex(words.pack_header(view.header)),
        "units": [_unit(one) for one in replay.stored[job]],
        "told": {"settled": told.settled, "failed": told.failed, "results": sorted(told.results)},
        "facts": _facts(view),
        "checkpoints": [[unit, found] for unit, found in rows.items()],
        "receipt": _receipt(reads, "0x" + job.hex()),
    }


def _unit(one: UnitStatus) -> dict[str, list[str]]:
    words_of = (words.pack_unit(one.view.unit), one.view.second, words.pack_accused(one.view.accused))
    return {"words": list(map(hex, words_of)), "kept": [hex(words.pack_kept(kept)) for kept in one.kept.values()]}


def _facts(view: JobView) -> dict[str, Any]:
    word, text = view.labels
    told = {"tally": view.tally, "told": {"word": word, "text": text}}
    return {**told, "verdict": view.verdict, "state": view.state, "ok": view.ok, "failed": view.failed}


def _receipt(reads: Any, job: str) -> dict[str, Any]:
    told = receipt(reads, job)
    names = ("escrow", "topped_up", "still_locked", "workers", "checkpoints", "market_fee", "keepers", "refunded")
    return {name: told[name] for name in names}  # type: ignore[literal-required]


# ---- logs that are not the market's ----

Edits = list[tuple[int, Log | None]]
"""By place in the list of logs: what stands there instead, None for nothing; two of one place stand there both."""


def _edited(logs: Sequence[Log], edits: Edits) -> list[Log]:
    places = {at for at, _ in edits}
    found: list[Log] = []
    for at, log in enumerate(logs):
        found += [new for place, new in edits if place == at and new is not None] if at in places else [log]
    return found


def _alterations(history: History, logs: Sequence[Log]) -> list[tuple[str, Edits]]:
    """Return ways in which a provider's logs may be other than the market's."""

    def at(cls: Any, number: int = 0, fits: Callable[[Log], bool] = lambda log: True) -> int:
        return [place for place, log in enumerate(logs) if log.topics[0] == topic_of(cls) and fits(log)][number]

    registry = history.network.jobs
    settled, locked, posted, held = at(Settled), at(Locked, -1), at(JobPosted), at(JobPosted, -1)
    split = at(Split, 1, lambda log: log.topics[1][12:].hex() == registry[2:])
    paid = at(CheckpointPaid)
    after = next(place for place in range(paid, len(logs)) if logs[place].topics[0] == topic_of(Split))
    started = at(Started, -1)
    again = 1_000  # the number of a log that stands in its block a second time
    other = logs[started].data[:31] + bytes([logs[started].data[31] ^ 1]) + logs[started].data[32:]
    shares = (int.from_bytes(logs[after].data[:32], "big") + (1 << 160)).to_bytes(32, "big") + logs[after].data[32:]
    return [
        ("a settlement is not told", [(settled, None)]),
        ("a split is not told", [(split, None)]),
        ("a lock is told twice", [(locked, logs[locked]), (locked, logs[locked]._replace(log_index=again))]),
        ("a post is told twice", [(posted, logs[posted]), (posted, logs[posted]._replace(log_index=again))]),
        ("a post is not told", [(held, None)]),
        ("a checkpoint's payment is not told", [(paid, None)]),
        ("a checkpoint's split is not told", [(after, None)]),
        ("a checkpoint's split pays otherwise", [(after, logs[after]._replace(data=shares))]),
        ("a unit's word is another", [(started, logs[started]._replace(data=other))]),
        ("the logs end with a checkpoint's payment", [(place, None) for place in range(paid + 1, len(logs))]),
        (
            "another controller's split comes first",
            [(paid, logs[paid]), (paid, _of_other(history, logs[after], shares))],
        ),
        ("units are told that the job does not have", _misplaced(history, logs, posted)),
        *((f"nothing is told of a unit of {what}", edits) for what, edits in _silent(logs)),
        ("nonsense is told among the rest", _noise(history, logs)),
    ]


def _of_other(history: History, split: Log, shares: bytes) -> Log:
    """Return a split of the node registry's own, under the key of node 1, of other shares."""
    registry = bytes(12) + bytes.fromhex(history.network.nodes[2:])
    return split._replace(topics=(split.topics[0], registry, (1).to_bytes(32, "big")), data=shares, log_index=1_000)


def _misplaced(history: History, logs: Sequence[Log], posted: int) -> Edits:
    """Return events of a one-lease job's second unit, and of all of its units, behind its post."""
    post = logs[posted]
    job, header = post.topics[1], words.pack_header(Header(closed=True, opened=5, leases=1)).to_bytes(32, "big")
    started = next(log for log in logs if log.topics[:2] == (topic_of(Started), job))
    second = started._replace(topics=(*started.topics[:2], (1).to_bytes(32, "big"), started.topics[3]))
    every = post._replace(topics=(topic_of(Cancelled), job, b"\xff" * 32), data=header + bytes(32))
    told = [
        one._replace(block_number=post.block_number, log_index=1_000 + at) for at, one in enumerate((second, every))
    ]
    return [(posted, post), *((posted, one) for one in told)]


def _silent(logs: Sequence[Log]) -> list[tuple[str, Edits]]:
    """Return for a closed array, and for one that is not, the logs of its last touched unit, to leave them out."""
    arrays: dict[bytes, int] = {}
    closed = set()
    for log in logs:
        if log.topics[0] == topic_of(Started) and (index := int.from_bytes(log.topics[2], "big")):
            arrays[log.topics[1]] = index
        if log.topics[0] in (topic_of(Cancelled), topic_of(Expired)) and log.topics[2] == b"\xff" * 32:
            closed.add(log.topics[1])
    found = {}
    for job, last in arrays.items():
        unit = last.to_bytes(32, "big")
        places = [at for at, log in enumerate(logs) if log.topics[1:3] == (job, unit)]
        found["a closed array" if job in closed else "an open array"] = [(at, None) for at in places]
    return [(what, list(edits)) for what, edits in found.items()]


def _noise(history: History, logs: Sequence[Log]) -> Edits:
    real = [(list(log.topics), log.data) for log in logs if log.address == history.network.jobs][:12]
    job = next(log.topics[1] for log in logs if log.topics[0] == topic_of(JobPosted))
    said = list(nonsense(job, real, 7))
    last = len(logs) - 1
    noise = [
        logs[last]._replace(address=history.network.jobs, topics=tuple(topics), data=data, log_index=1_000 + at)
        for at, (topics, data) in enumerate(said[:: len(said) // NONSENSE])
    ]
    return [(last, logs[last]), *((last, log) for log in noise)]
