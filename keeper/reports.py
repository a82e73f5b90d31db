"""What the keeper's own commands return and print with --json; units as hearth/client/reports.py says.

An `id` names a unit of a job, or a node, as the keeper's log does.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict


class DueWork(TypedDict):
    """An action that would be sent now: its verb, what it concerns, and its reward."""

    does: str
    ids: list[str]
    earns: str
    earns_text: str


class Waiting(TypedDict):
    """What is left alone, and why."""

    id: str
    why: str


class KeeperWork(TypedDict):
    """The work that there is for a keeper at `block`."""

    schema: Literal["hearth.keeper.list/1"]
    block: int
    work: list[DueWork]
    waiting: list[Waiting]


class UnitState(TypedDict):
    """A touched unit's state, in capitals."""

    index: int
    state: str


class UnitPlan(TypedDict):
    """What a keeper does about one unit; `does` is "nothing" where it is left alone."""

    id: str
    does: str
    why: str


class Explanation(TypedDict):
    """What a keeper would do about one job at `block`, whose time is `time`.

    `touched` counts the leases that somebody touched. `nodes` counts the fleet by the first gate that keeps a node
    from the job.
    """

    job: str
    block: int
    time: int
    leases: int
    touched: int
    units: list[UnitState]
    keeper: list[UnitPlan]
    nodes: dict[str, int]
    nodes_that_fit: int


class KeeperExplanation(Explanation):
    """An explanation as it is printed."""

    schema: Literal["hearth.keeper.explain/1"]


class ProfitAndLoss(TypedDict):
    """What the payee was credited since the ledger began, and what gas was paid: `gas_wei` wei, `gas` the same in the
    asset. `mined` counts actions by verb.
    """

    asset: str
    rewards: str
    gas_wei: str
    gas: str
    profit: str
    mined: dict[str, int]


class ActionOutcome(TypedDict):
    """What became of one action of the last cycle; `detail` is a transaction's hash, or why it was not sent."""

    action: str
    id: str
    outcome: str
    detail: str


class ListedJob(TypedDict):
    """A job that the keeper knows: its units by state, its keeper fee, its ceiling (a rate)."""

    job: str
    leases: int
    touched: int
    units: dict[str, int]
    keeper_fee: str
    ceiling: str
    deadline: int


class _Listed(TypedDict):
    list: list[ListedJob]


"""The key that is a type of Python's."""


class KeeperStatus(_Listed):
    """The status file of a keeper, written at the end of a cycle at moment `at`.

    `account` is null in a dry run. `why` says why it is not `ready`. `skips` and `list` hold at most 500. `age`, in
    seconds, and `alive`, whether its process runs, are not in the file: whoever reads it adds them.
    """

    schema: Literal["hearth.keeper/1"]
    pid: int
    at: int
    network: str
    block: int
    time: int
    account: str | None
    payee: str
    ready: bool
    why: str
    balance_wei: str
    gas_price_wei: str
    nodes: int
    nodes_ready: int
    jobs: int
    units: dict[str, int]
    profit_and_loss: ProfitAndLoss
    actions: list[ActionOutcome]
    skips: list[Waiting]
    skips_left_out: int
    age: NotRequired[int]
    alive: NotRequired[bool]


class KeeperReload(TypedDict):
    """What the running keeper took up of its settings file, by key, and which keys need a restart."""

    schema: Literal["hearth.keeper.reload/1"]
    applied: list[str]
    restart: list[str]
    dry_run: bool


class KeeperBundle(TypedDict):
    """What a keeper's operator sends to whoever helps, with secrets taken out; a part that could not be had is null.

    `missing` says why, by the part's name. `made` is this machine's clock, Unix seconds. `settings` are keeper.toml,
    `process` the status file, `transactions` the last rows of the journal of transactions, `home` what lies in the
    state folder (bytes, permissions in octal), `log` the last lines of the log that was named.
    """

    schema: Literal["hearth.keeper.bundle/1"]
    made: int
    versions: dict[str, str]
    settings: dict[str, Any] | None
    process: dict[str, Any] | None
    transactions: list[dict[str, Any]] | None
    home: list[dict[str, Any]] | None
    log: list[str] | None
    missing: dict[str, str]
