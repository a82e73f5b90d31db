"""What the worker's own commands return and print with --json; units as hearth/client/reports.py says."""

from __future__ import annotations

from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from hearth.client.reports import Check, NodeGates, NodeStatus


class WorkerFile(TypedDict):
    """A first worker.toml: its path, the address of the key that works, and the command that comes next."""

    schema: Literal["hearth.worker.init/1"]
    config: str
    operator: str
    next: str
    dry_run: bool


class WorkerMode(TypedDict):
    """What the worker was told; `alive` says whether a process is there to hear it now."""

    schema: Literal["hearth.worker.mode/1"]
    mode: str
    alive: bool
    dry_run: bool


class WorkerReload(TypedDict):
    """What the running worker took up of its settings file, by key, and which keys need a restart."""

    schema: Literal["hearth.worker.reload/1"]
    applied: list[str]
    restart: list[str]
    dry_run: bool


class Attempt(TypedDict):
    """An attempt under way: `done` of `total` is bytes, or seconds while the program runs; `job` is hex without 0x."""

    job: str
    index: int
    attempt: int
    phase: str
    done: int
    total: int
    since: int


class SkipReason(TypedDict):
    """Why the worker left a unit alone; `index` is null where it is the whole job."""

    index: int | None
    reason: str
    detail: str


class Gpu(TypedDict):
    """A GPU of a worker, and how it is; `why` says of a fault what was found, `name` is empty where it is gone."""

    uuid: str
    name: str
    state: str
    why: str


class WorkerFacts(TypedDict, total=False):
    """What a worker says of its last cycle, at `block`; absent while it does not work.

    `hold` says why it takes nothing new, `stake_short` what its stake lacks. `disk_free` and `disk_reserve` are bytes:
    of the disk of its home, and below which it takes nothing new. `store_refusal` is what its store says where it
    takes no results. `gateways` are where others may fetch this node's results, by the manifest that the chain names.
    `gpus` are those that it gives to jobs: their `state` is "free", "lent" or a fault.
    `pending` are the transactions that wait to be mined. `reasons` are by job, hex without 0x, at most 500.
    """

    status: str
    hold: str | None
    block: int
    chain_time: int
    last_beat: int
    busy: int
    slots: int
    stake: str
    stake_short: str
    credit: str
    disk_free: int
    disk_reserve: int
    store_refusal: str
    gas_capped: str
    gateways: list[str]
    gpus: list[Gpu]
    attempts: list[Attempt]
    pending: list[str]
    reasons: dict[str, list[SkipReason]]


class WorkerProcess(WorkerFacts):
    """The status file of a worker's process, written at `updated`.

    `state` is "working", "waiting" (it runs, and neither has work nor can take any: `status` and `hold` say why),
    "drained" or "stopped". `earnings` are its books, counts and amounts as decimal strings. `alive` is not in the file:
    whoever reads it adds whether the process lives.
    """

    schema: Literal["hearth.worker/1"]
    pid: int
    state: str
    node: int
    operator: str
    mode: str
    updated: int
    earnings: dict[str, str]
    alive: NotRequired[bool]


class WorkerStatus(NodeStatus):
    """What the chain and the process (null where none ever ran) say of this machine's node."""

    schema: Literal["hearth.worker.status/1"]
    mode: str
    process: WorkerProcess | None


class WorkerWhy(NodeGates):
    """Why this node does or does not take a job: the chain's gates, and the running worker's own reasons."""

    schema: Literal["hearth.worker.why/1"]
    worker: list[SkipReason]
    worker_alive: bool


class WorkerTake(TypedDict):
    """One unit taken by hand and submitted, or in a dry run free to be taken.

    `unit` is null where a dry run leaves it to the market; `attempt` and `outcome` are null before there is one.
    `result` and `report` are digests, hex without 0x, null where another process of this node made them.
    """

    schema: Literal["hearth.worker.take/1"]
    job: str
    unit: int | None
    node: int
    attempt: int | None
    state: Literal["submitted", "takeable"]
    outcome: str | None
    result: str | None
    report: str | None
    next: str
    dry_run: bool


class EarningsReport(TypedDict):
    """A node's books: leases by how they ended, and amounts; `income` is the owner's pay after `fees`.

    `left_at` is the chain second at which the node left the market, null where it has not.
    `gas_wei` is what the operator's key has paid since the ledger in the worker's home began, at its first start or
    where it was lost. `profit` is of that time, too: income less slashes, liveness fees and gas; null where no worker
    has run here, or where nobody said what a coin is worth (`gas.coin`). `keeping` are the tips and rewards that the
    key which works had for keeper's work: they are its own credit, in neither `income` nor `profit`. Where it is the
    owner's key too, `hearth wallet history` has both as earned, but what came out of nodes' stake, which it has apart.
    """

    schema: Literal["hearth.earnings/1"]
    node: int
    left_at: int | None
    owner: str
    asset: str
    paid: int
    failed_theirs: int
    declined: int
    given_up: int
    closed: int
    timed_out: int
    voided: int
    rejected: int
    unproven: int
    income: str
    fees: str
    keeping: str
    slashed: str
    liveness_fees: str
    owner_credit: str
    gas_wei: str
    profit: str | None
    text: dict[str, str]


class VolumeFacts(TypedDict):
    """One volume: where it is mounted, its image, and the image's size in bytes."""

    path: str
    image: str
    size: int
    mounted: bool


class WorkerVolumes(TypedDict):
    """The volumes of a worker's home, or those that were removed; `fstab` are their lines of /etc/fstab."""

    schema: Literal["hearth.worker.volumes/1"]
    home: str
    volumes: list[VolumeFacts]
    fstab: list[str]
    removed: bool
    dry_run: bool


class WorkerBundle(TypedDict):
    """What a provider sends to whoever helps, with secrets taken out; a part that could not be had is null.

    `missing` says why, by the part's name. `made` is this machine's clock, Unix seconds. `settings` are worker.toml,
    `process` the status file, `attempts` the last rows of the journal of attempts, `transactions` those of the journal
    of transactions, `home` what lies in the state folder (bytes, permissions in octal), `log` the last lines of the log
    that was named.
    """

    schema: Literal["hearth.worker.bundle/1"]
    made: int
    versions: dict[str, str]
    settings: dict[str, Any] | None
    doctor: list[Check] | None
    process: dict[str, Any] | None
    attempts: list[dict[str, Any]] | None
    transactions: list[dict[str, Any]] | None
    home: list[dict[str, Any]] | None
    log: list[str] | None
    missing: dict[str, str]


class WorkerBenchmark(TypedDict):
    """What a program got of each GPU; one that was not measured, or has far less than its model, is a WARN.

    The figures are in the manifest, and so in `hearth offers --wide --json`.
    """

    schema: Literal["hearth.worker.benchmark/1"]
    result: Literal["PASS", "FAIL"]
    checks: list[Check]


class Selftest(TypedDict):
    """What running a real program in each runtime found; a runtime that is not here is a WARN and no FAIL."""

    schema: Literal["hearth.selftest/1"]
    result: Literal["PASS", "FAIL"]
    checks: list[Check]
