"""What the client's methods return and `--json` prints: one type for each "schema" name, of the same plain values.

Unless a key says otherwise:

- amounts (`escrow`, `stake`, `fee`, ...) are base units of the market's asset as decimal strings, those of gas and of
  the native coin wei; a key `..._text`, or the object `text`, says the same for people;
- rates (`ask`, `ceiling`) are base units x 1,000,000 per second as decimal strings;
- moments (`time`, `deadline`, `last_beat`, ...) are Unix seconds, spans (`max_seconds`, `unbonding`, ...) seconds;
- `block` is a block's number, `..._bps` a share in 1/10,000, `..._gib` GiB, `..._bytes` bytes;
- addresses, job ids and transaction hashes are lower-case hex with 0x; other digests are hex without it;
- names of states, outcomes, gates and runtimes are those of docs/protocol.md in lower case.

The exported JSON Schemas are docs/schemas (`python -m tools.schemas`). docs/decisions/0030 says why these are
TypedDicts. They are imported for their types only: no command pays for typing_extensions.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from hearth.base.reports import ErrorFacts

Verdict = Literal["ok", "failed", "refunded", "pending"]
"""A job as a whole: "refunded" where it ended without a good result for every unit, "pending" before its end."""
Level = Literal["PASS", "WARN", "FAIL"]
"""A finding's grade: with WARN it works, with FAIL it does not."""
SentState = Literal["sent", "sent_before", "posted_before", "tried", "not_tried"]
"""What became of a call of a file: see SentCall."""
Plain = int | str
"""A number of an event or a parameter: a decimal string where it is above 2^53."""

_From = TypedDict("_From", {"from": str})
"""The key that is a word of Python's."""


class StrayLogs(TypedDict):
    """Logs under the market's addresses that its contracts never write, or that fit nowhere.

    `count` is how many this client has stepped over so far, `first` says where the first five stand and what is wrong.
    """

    count: int
    first: list[str]


class OfLogs(TypedDict):
    """A report of what logs say; `strays` is there where some were stepped over."""

    strays: NotRequired[StrayLogs]


# ---- transactions ----


class Transaction(TypedDict):
    """What a send came to, or, in a dry run, would come to.

    `action` names the contract function. `gas` counts units, `fee` is wei. `tx` and `block` are null in a dry run,
    `explorer` is null where the network has no explorer. `repeated` says that an earlier run had sent it already.
    """

    action: str
    tx: str | None
    block: int | None
    gas: int
    fee: str
    fee_text: str
    explorer: str | None
    repeated: bool
    dry_run: bool


class PreparedTx(_From):
    """A call that another machine, the one with the owner's key, is to send.

    `from` is the owner. `value` is wei; `approve` is what must be approved before, 0 in a native market. `key` names
    the effect: a journal sends it once.
    """

    schema: Literal["hearth.tx/1"]
    action: str
    chain_id: int
    to: str
    data: str
    value: str
    approve: str
    key: str


class JobAction(TypedDict):
    """What cancelling or accepting sent; of a cancel, how the job's units stand then."""

    schema: Literal["hearth.action/1"]
    action: Literal["cancel", "accept"]
    job: str
    counts: NotRequired[dict[str, int]]
    counts_text: NotRequired[str]
    transactions: list[Transaction]
    dry_run: bool


class Unlocking(TypedDict):
    """What unlocking sent: the job `opens`, or is refunded since a parent ended otherwise. `fee` went to the sender."""

    schema: Literal["hearth.action/1"]
    action: Literal["unlock"]
    job: str
    opens: bool
    fee: str
    fee_text: str
    transactions: list[Transaction]
    dry_run: bool


class ToppedUnit(TypedDict):
    """What a unit has once it was topped up.

    `topped_up` are the seconds of all its top-ups, `price` the most that it can pay now, `deadline_at` the first second
    too late to submit.
    """

    schema: Literal["hearth.action/1"]
    action: Literal["top-up"]
    job: str
    unit: int
    topped_up: int
    price: str
    price_text: str
    deadline_at: int
    deadline_text: str


class TopUp(ToppedUnit):
    """What topping a unit up by `seconds` sent, or an earlier call (`already_sent`); `amount` went into its lock."""

    seconds: int
    amount: str
    amount_text: str
    already_sent: bool
    transactions: list[Transaction]
    dry_run: bool


class AttestedResult(TypedDict):
    """One unit's result as an attester signed it.

    `spec` and `result` are digests, `outcome` and `fuel_seconds` what the node is paid by. `signature` is 65 bytes of
    hex with 0x, r, s and v, of the EIP-712 `Result` of contracts/Attesters.vy.
    """

    unit: int
    spec: str
    result: str
    outcome: str
    fuel_seconds: int
    signature: str


class Attestation(TypedDict):
    """What one attester signed of a job; `hearth job confirm` reads it from a file.

    `contract` is the network's Attesters. In a dry run nothing is signed, and `results` is empty.
    """

    schema: Literal["hearth.attestation/1"]
    network: str
    chain_id: int
    contract: str
    job: str
    signer: str
    results: list[AttestedResult]
    dry_run: bool


class Confirmation(TypedDict):
    """What confirming sent: one transaction for each of `units`."""

    schema: Literal["hearth.action/1"]
    action: Literal["confirm"]
    job: str
    units: list[int]
    transactions: list[Transaction]
    dry_run: bool


class Withdrawal(TypedDict):
    """What withdrawing from Escrow sent; nothing now where an earlier call had paid the same (`already_sent`)."""

    schema: Literal["hearth.action/1"]
    action: Literal["withdraw"]
    amount: str
    amount_text: str
    to: str
    already_sent: bool
    transactions: list[Transaction]
    dry_run: bool


class Sending(_From):
    """What sending coin or the market's asset came to: `amount` is in base units of `asset`.

    `already_sent` says that an earlier call had sent it, whose transaction this is, and that nothing was sent now.
    """

    schema: Literal["hearth.action/1"]
    action: Literal["send"]
    asset: str
    amount: str
    amount_text: str
    to: str
    already_sent: bool
    transactions: list[Transaction]
    dry_run: bool


class SentCall(TypedDict):
    """A call of a file and what became of it.

    `state` is "sent", "sent_before" (by an earlier call of the command), "posted_before" (the chain has the job, or
    the call only pays for it), or of a dry run "tried" and "not_tried". `job` is of a call about one.
    """

    contract: str
    function: str
    what: str
    job: str | None
    state: SentState
    tx: str | None


class FileSending(_From):
    """What sending a file of prepared calls came to. `already_sent` says that nothing was sent now.

    `takes` is what its calls take of the account, `gas_most` what their gas may cost at the fees of then, in wei.
    `transactions` hold the approvals too.
    """

    schema: Literal["hearth.action/1"]
    action: Literal["send-file"]
    takes: str
    takes_text: str
    gas_most: str
    gas_most_text: str
    calls: list[SentCall]
    already_sent: bool
    transactions: list[Transaction]
    dry_run: bool


class OwnerAction(TypedDict):
    """What a node's owner sent.

    `action` is "register", "update", "price", "operator", "stake", "withdraw" or "exit start|cancel|finish". Where
    another machine is to send it, nothing was sent and `prepared` holds the call; `prepared_in` is the file that such a
    call came from.
    Registering tells `operator`, `stake` and, once it is mined, `node`; a new price `node` and `ask`; an operator
    `node`, `operator`, `kept` (it is the present one, and an offer is taken back) and, where that is so already,
    `already_sent`; more stake `node`, `added` and `already_sent`; a withdrawal `amount` and `to`; an exit `node` and
    `unbonding`.
    """

    schema: Literal["hearth.action/1"]
    action: str
    dry_run: bool
    transactions: list[Transaction]
    prepared: NotRequired[PreparedTx]
    prepared_in: NotRequired[str]
    operator: NotRequired[str]
    stake: NotRequired[str]
    stake_text: NotRequired[str]
    node: NotRequired[int | None]
    ask: NotRequired[str]
    ask_text: NotRequired[str]
    added: NotRequired[str]
    added_text: NotRequired[str]
    already_sent: NotRequired[bool]
    kept: NotRequired[bool]
    amount: NotRequired[str]
    amount_text: NotRequired[str]
    to: NotRequired[str]
    unbonding: NotRequired[int]


# ---- jobs ----


class JobRow(TypedDict):
    """A job in a list. `units` counts its leases, `counts` the same by state; `block` is that of its posting.

    `state` is a one-lease job's own, of an array "blocked", "open", "running" or "ended"; `state_text` is what people
    read of either, `counts_text` of its units. `name` is null where nobody here has read the job's spec. `posted_at`,
    `started_at` (when a worker first took it) and `ended_at` are null where there is no such moment yet, `cost` is what
    is spent of its escrow so far. In a list they are null too of other accounts' jobs: they are not read.
    """

    job: str
    name: str | None
    state: str
    state_text: str
    verdict: Verdict
    units: int
    counts: dict[str, int]
    counts_text: str
    submitter: str
    block: int
    deadline: int
    posted_at: int | None
    started_at: int | None
    ended_at: int | None
    cost: str | None
    cost_text: str | None


class JobList(OfLogs):
    """Jobs as they stand at `block`, newest first.

    `unnamed` counts those whose names are not read; where a name was asked for, they are left out.
    """

    schema: Literal["hearth.jobs/1"]
    network: str
    block: int
    unnamed: int
    jobs: list[JobRow]


class CheckpointRow(TypedDict):
    """The last checkpoint of one attempt of a unit: its files' CID, and the `seconds` that it had run by then.

    `kept` says that the attempt was lost and another may resume from it, as this one did from `resumed_from`. `pay`
    (which holds `fee`) is what was paid for it once a result was made of it, `earned_text` what its node's owner got of
    that; all are null before.
    """

    attempt: int
    node: int
    seconds: int
    root: str
    resumed_from: int | None
    kept: bool
    pay: str | None
    fee: str | None
    earned_text: str | None


class Lease(TypedDict):
    """One lease of a job.

    `attempts` counts those begun, `lapses` the proposals dropped since it opened. `topped_up` are the seconds that it
    has beside the job's `max_seconds`, `resumed_from` the attempt whose checkpoint the last one began with. Moments are
    chain seconds:
    `result_cid` is the CID of its result where the chain's storage has it (of a judged job, or a kept result);
    `started` is when it opened or, from its ack or claim on, when it began; `window_end` when an open lease's match
    window ends, `deadline_at` the first second too late to submit, `submitted_at` when its result came; each is null
    where the state has no such moment. `next` says in words who may act and until when.
    """

    unit: int
    state: str
    state_text: str
    outcome: str
    outcome_text: str
    node: int | None
    attempts: int
    lapses: int
    topped_up: int
    resumed_from: int | None
    checkpoints: list[CheckpointRow]
    started: int
    window_end: int | None
    deadline_at: int | None
    submitted_at: int | None
    result_cid: str | None
    next: str


class PostedAt(TypedDict):
    """Where a job was posted."""

    block: int
    tx: str
    explorer: str | None


class ParentFacts(TypedDict):
    """A job that another one waits for.

    `condition` is the end that is asked for. `state` is null where this market has no such job, `ended` before its end:
    "well" is every unit settled with outcome ok. `as_asked` says whether it ended so, `text` the same for people.
    """

    job: str
    condition: str
    state: str | None
    ended: str | None
    as_asked: bool | None
    text: str


class JobFacts(JobRow, OfLogs):
    """Everything that the chain knows of a job at block `at_block`, whose time is `at_time`.

    `ok` and `failed` count leases that were settled, `untouched` those that nobody touched. `escrow` is what
    was locked for it, `topped_up` of it by top-ups; `ceiling` is a rate, `keeper_fee` what each attempt sets aside for
    keepers, `bond` the stake that a lease reserves. `checkpoint_every` are the seconds between two checkpoints of a
    unit, null where none are made. `judge` is the contract that alone may hold results and end them, null where the job
    names none, and `judge_data` what that goes by. `parents` are the jobs that it waits for, or waited; `waits` says in
    words what it waits for still, null where nothing. `workers` says who could take an open unit now, null where none
    is. `kept` says that the chain itself keeps the digests of its
    results. `leases` lists at most 200, those that have not ended first.
    """

    schema: Literal["hearth.job/1"]
    network: str
    at_block: int
    at_time: int
    finished: bool
    ok: int
    failed: int
    untouched: int
    posted: PostedAt
    spec: str
    max_seconds: int
    max_attempts: int
    match_window: int
    billing: str
    deadline_text: str
    asset: str
    escrow: str
    escrow_text: str
    topped_up: str
    checkpoint_every: int | None
    ceiling: str
    ceiling_text: str
    keeper_fee: str
    parents: list[ParentFacts]
    waits: str | None
    workers: str | None
    kept: bool
    verify: str
    judge: str | None
    judge_data: str | None
    bond: str
    bond_text: str
    leases: list[Lease]


class EventFacts(TypedDict):
    """One event of the chain, flat: its place, a line for people, and its own fields.

    `event` is the name in the contract, `log` the index of the log in its block. A unit's event has `job`, `unit`
    ("all" for the untouched rest of an array), and where a node is concerned `node`, `state` and `outcome`; `result`
    and `report` are digests, `result_cid` is the CID of the same result, `pay` (which holds `fee`), `fee` and `refund`
    amounts. Other events have the fields of the contract: bytes are hex with 0x, numbers as `Plain` says, amounts in
    base units. A start that `resumed_from` an attempt's checkpoint names it; a checkpoint has its files' CID as `root`
    and the `seconds` from its attempt's start, a top-up the `seconds` of all of its unit's.
    """

    schema: Literal["hearth.event/1"]
    event: str
    block: int
    tx: str
    log: int
    text: str
    job: NotRequired[str]
    submitter: NotRequired[str]
    unit: NotRequired[int | Literal["all"]]
    node: NotRequired[int]
    state: NotRequired[str]
    outcome: NotRequired[str]
    result: NotRequired[str]
    result_cid: NotRequired[str]
    report: NotRequired[str]
    pay: NotRequired[str]
    refund: NotRequired[str]
    verdict: NotRequired[Literal["release", "confirm", "reject", "void"]]
    taken: NotRequired[str]
    change: NotRequired[str]
    op: NotRequired[int]
    word: NotRequired[Plain]
    salt: NotRequired[Plain]
    due: NotRequired[int]
    council: NotRequired[str]
    guardian: NotRequired[str]
    attempt: NotRequired[int]
    resumed_from: NotRequired[int]
    seconds: NotRequired[int]
    root: NotRequired[str]
    deadline_at: NotRequired[int]
    fee: NotRequired[Plain]
    account: NotRequired[str]
    amount: NotRequired[Plain]
    ask: NotRequired[Plain]
    at: NotRequired[int]
    burnt: NotRequired[Plain]
    controller: NotRequired[str]
    governor: NotRequired[str]
    key: NotRequired[str]
    manifest: NotRequired[str]
    offer: NotRequired[Plain]
    operator: NotRequired[str]
    owner: NotRequired[str]
    payee: NotRequired[str]
    payer: NotRequired[str]
    policy: NotRequired[Plain]
    previous: NotRequired[Plain]
    reward: NotRequired[Plain]
    shares: NotRequired[list[Plain]]
    stake: NotRequired[Plain]
    to: NotRequired[str]
    until: NotRequired[int]


class JobEvents(OfLogs):
    """A job's events, oldest first."""

    schema: Literal["hearth.events/1"]
    job: str
    events: list[EventFacts]


class Fault(TypedDict):
    """Why one unit's result or log could not be had: an error's code and message."""

    code: str
    message: str


class RenamedEntry(TypedDict):
    """An entry of the outputs, by its `path`, that was written under another `name`: programs obey its own."""

    path: str
    name: str


class LogRow(TypedDict):
    """What one unit's last attempt wrote, by its worker's report; `detail` says why it was given back or failed.

    With a `fault` the log itself could not be had, and `stderr` holds the last words of the report, if any.
    """

    unit: int
    node: int
    stdout: str
    stderr: str
    detail: str
    fault: NotRequired[Fault]


class JobLogs(OfLogs):
    """What a job's units wrote; `unread` counts the logs that could not be had, `error` sums them up."""

    schema: Literal["hearth.logs/1"]
    job: str
    units: list[LogRow]
    unread: int
    error: NotRequired[ErrorFacts]


class ResultRow(TypedDict):
    """One unit's result: `outputs` is a CID, null where it left none, `path` where the outputs were written.

    `result_cid` is the CID of its document, which `hearth job attest --result` takes.

    With a `fault` they are not there, or its document could not be read. `renamed` are entries under other names.
    """

    unit: int
    outcome: str
    exit_code: int | None
    result_cid: str
    outputs: str | None
    path: str | None
    fault: NotRequired[Fault]
    renamed: NotRequired[list[RenamedEntry]]


class JobResults(OfLogs):
    """Outputs that were fetched: `bytes` of them, `missing` counts the units without a result.

    `judged` says that its job names a judge, such as attesters.
    `unread` counts those whose result could not be had, and `error` sums them up. `reduced` is what the user's own
    script printed.
    """

    schema: Literal["hearth.results/1"]
    job: str
    verdict: Verdict
    judged: bool
    folder: str
    bytes: int
    units: list[ResultRow]
    missing: int
    unread: int
    reduced: NotRequired[str]
    error: NotRequired[ErrorFacts]


class ReceiptLine(_From):
    """A transaction that moved a job: its first event, its sender (`from`), its `gas` in units and `fee` in wei."""

    tx: str
    event: str
    block: int
    gas: int
    fee: str
    explorer: str | None


class PaidCheckpoint(TypedDict):
    """What an attempt's checkpoint earned its node's owner since a result was made of it; `pay` holds `fee`."""

    unit: int
    attempt: int
    node: int
    pay: str
    fee: str


class ExplainedRow(TypedDict):
    """An argument of a call in words."""

    name: str
    text: str


_MaybeFrom = TypedDict("_MaybeFrom", {"from": str | None})


class ExplainedCall(_MaybeFrom):
    """A call that a wallet is asked to sign. `data_hash` is keccak256 of its data.

    `job`, `four_words` and `terms` are of a call about a job, None for others; `terms` has all that the call says of
    it. `value` is wei that the call takes, `approve` what must be approved before, in base units; None where the chain
    alone says how much. `from` is None where only its data was given.
    """

    contract: str
    address: str
    function: str
    data_bytes: int
    data_hash: str
    job: str | None
    four_words: str | None
    what: str
    rows: list[ExplainedRow]
    moves: str
    terms: dict[str, str] | None
    value: str | None
    value_text: str | None
    approve: str | None
    approve_text: str | None


class Explanation(TypedDict):
    """What somebody is asked to sign, by the data and the network file alone."""

    schema: Literal["hearth.explanation/1"]
    network: str
    chain_id: int
    calls: list[ExplainedCall]


class JobReceipt(OfLogs):
    """Where a job's money went: `escrow` came in, `topped_up` of it by top-ups, the rest says where it is now.

    `workers` and `market_fee` hold what was paid for `checkpoints`.
    """

    schema: Literal["hearth.receipt/1"]
    job: str
    state: str
    asset: str
    escrow: str
    topped_up: str
    still_locked: str
    workers: str
    checkpoints: list[PaidCheckpoint]
    market_fee: str
    keepers: str
    refunded: str
    text: dict[str, str]
    transactions: list[ReceiptLine]


class HistoryRow(TypedDict):
    """What one job moved for an account in a span, base units.

    Of its own jobs (`mine`): `locked` came in by posting and top-ups, `spent` went to workers, keepers and the
    treasury, `refunded` came back as credit. `earned` is its pay for work on the job, as worker's owner or keeper.
    `name` is null where nobody here has read the job's spec, `posted_at` where its block was not read.
    """

    job: str
    name: str | None
    mine: bool
    posted_at: int | None
    locked: str
    spent: str
    refunded: str
    earned: str


class AccountHistory(OfLogs):
    """What an account spent and earned from `first_block` to `block`; `since` is null where that is all of the market.

    The sums are those of `jobs`. `still_locked` is what its jobs hold at `block`. `staked` went into nodes'
    stakes, `from_nodes` is credit of no job: stake that came back, and pay for showing silent nodes. `withdrawn` left
    Escrow. `gas` is wei that `gas_transactions` cost; not in it are `gas_unknown`, whose receipts nobody has, and
    `other_transactions` of this account, which are in no journal here and in none of the market's events (null where
    nobody can say how many).
    """

    schema: Literal["hearth.account/1"]
    network: str
    address: str
    since: int | None
    first_block: int
    block: int
    asset: str
    locked: str
    spent: str
    refunded: str
    still_locked: str
    earned: str
    staked: str
    from_nodes: str
    withdrawn: str
    gas: str
    gas_transactions: int
    gas_unknown: int
    other_transactions: int | None
    text: dict[str, str]
    jobs: list[HistoryRow]


# ---- posting ----


class BillingCost(TypedDict):
    """What a job costs by one billing: `at_most` what posting locks, `expected` what it comes to by the plan's basis.

    `unit_seconds` are those that a unit is expected to bill, null where nothing is known of them; `expected` is null
    where they or the rate are.
    """

    billing: str
    at_most: str
    expected: str | None
    unit_seconds: int | None


class CostBasis(TypedDict):
    """What a plan's expected costs go by.

    `rate` is the middle ask of the `asks` workers that can take the job, null where none can; `units` counts the
    settled units of the same spec, posted from here, whose middle time and fuel are taken.
    """

    rate: str | None
    asks: int
    units: int


class PlannedJudge(TypedDict):
    """The attesters of a planned job: `quorum` of `keys` must sign a result before it is paid for.

    `digest` is the set's, which workers name whose providers accept it. A result that nobody confirms is refunded from
    `unproven_from` on and costs its node `slash`.
    """

    contract: str
    digest: str
    keys: list[str]
    quorum: int
    window: int
    unproven_from: int
    slash: str


class JobPlan(TypedDict):
    """A checked job, nothing of which was written or sent.

    `escrow` is what posting would lock, `ceiling` a rate, `keeper_fee` what each attempt sets aside. `billing` is the
    one that the job would be posted with, and `costs` has one row for each that it may have, that one first. `workers`
    counts nodes by the first gate that keeps them from it, `can_take` those that can take it now or when they are free
    (where `judge` is not null, if their settings accept that judge, which the chain does not say); `enough` says at
    which other price one could, where none can.
    `parents` are the jobs that it is to wait for, `judge` is null where nobody judges its results. `pending`, only in
    the dry run of a submission, is the same job where it was posted already; `error`, only of `hearth check`, says that
    no worker can take it.
    """

    schema: Literal["hearth.plan/1"]
    network: str
    name: str
    spec: str
    runtime: str
    units: int
    asset: str
    escrow: str
    ceiling: str
    keeper_fee: str
    billing: str
    costs: list[BillingCost]
    cost_basis: CostBasis
    max_seconds: int
    deadline: int
    download_bytes: int
    output_bytes: int
    workers: dict[str, int]
    can_take: int
    enough: str | None
    auto_price: bool
    parents: list[ParentFacts]
    judge: PlannedJudge | None
    text: list[str]
    error: NotRequired[ErrorFacts]
    dry_run: bool
    pending: NotRequired[str | None]


class RerunPlan(TypedDict):
    """The dry run of a rerun: what posting job `rerun_of` again would lock."""

    schema: Literal["hearth.plan/1"]
    dry_run: Literal[True]
    escrow: str
    rerun_of: str


class UnitEnd(TypedDict):
    """How one unit ended; `outputs` is a CID."""

    unit: int
    outcome: str
    text: str
    exit_code: int | None
    outputs: str | None


class Failure(TypedDict):
    """The last words of the first unit that failed: `status` is its result's, the rest its worker's report."""

    unit: int
    exit_code: int | None
    status: str
    detail: str
    stderr_tail: str


class JobEnd(TypedDict):
    """How a job's units ended.

    `verified` counts the results that were read by the digest on chain, `unread` those that could not be had; `units`
    lists the first 64. `kept_until` is the moment until which workers say that they keep the outputs. `stdout` is a
    single unit's. `parents_failed` says that it never ran, since a job that it waited for ended otherwise than asked.
    """

    verdict: Verdict
    ok: int
    failed: int
    verified: int
    unread: int
    units: list[UnitEnd]
    failure: Failure | None
    kept_until: int | None
    stdout: str
    parents_failed: bool
    fetched: JobResults | None


class Submission(TypedDict):
    """A posted job. `already_posted` says that an earlier run had posted it: this one sent nothing.

    `end` and `results` are there once it was waited for, and `error` too where it ended badly.
    """

    schema: Literal["hearth.submitted/1"]
    job: str
    already_posted: bool
    transactions: list[Transaction]
    waited: bool
    end: NotRequired[JobFacts]
    results: NotRequired[JobEnd]
    error: NotRequired[ErrorFacts]


class StoredSource(TypedDict):
    """A source of a job, or its "spec", as it is stored."""

    src: str
    cid: str


class PreparedJob(_From):
    """A job that another machine is to post: its data are stored in `store`, and nothing was sent.

    `prepared` are the transactions to sign as `from`, in this order, each once the one before is mined; none where the
    job was `already_posted`. The chain takes the last one before the moment `send_before`.
    """

    schema: Literal["hearth.prepared/1"]
    network: str
    job: str
    already_posted: bool
    escrow: str
    escrow_text: str
    send_before: int
    store: str
    stored: list[StoredSource]
    prepared: list[PreparedTx]


class SpecOfRun(TypedDict):
    """The job file that `hearth run` would post: a document of hearth/jobfile/job.schema.json."""

    schema: Literal["hearth.spec/1"]
    spec: dict[str, Any]


class PostedRecord(_From):
    """The journal's file of a job that is about to be posted.

    `fingerprint` names what a user would call the same job, `from` what it came from. `terms` are its nine words:
    digests as hex, numbers as decimal strings. `credit` is withdrawn from Escrow for it first, `parents` is the list
    that is posted beside the terms, as hex; older records lack both. `seen` says whether its end was shown.
    """

    schema: Literal["hearth.posted/1"]
    job: str
    fingerprint: str
    terms: list[str]
    credit: NotRequired[str]
    parents: NotRequired[list[str]]
    seen: bool


# ---- keys and money ----


class NamedKey(TypedDict):
    """A key by name."""

    name: str
    address: str


class KeyFacts(TypedDict):
    """One key and its encrypted file."""

    schema: Literal["hearth.wallet/1"]
    name: str
    address: str
    file: str


class KeyPlan(TypedDict):
    """The dry run of making a key."""

    schema: Literal["hearth.wallet/1"]
    name: str
    dry_run: Literal[True]


class KeyList(TypedDict):
    """The keys of a folder by name; none is unlocked."""

    schema: Literal["hearth.wallets/1"]
    folder: str
    keys: list[NamedKey]


class BalanceText(TypedDict):
    """A balance for people."""

    native: str
    asset: str
    credit: str


class Balance(TypedDict):
    """What an account holds: `native` coin in wei, the market's `asset`, and `credit` in Escrow."""

    schema: Literal["hearth.balance/1"]
    network: str
    address: str
    native: str
    asset_symbol: str
    asset: str
    credit: str
    text: BalanceText


# ---- workers ----


class SaidFigures(TypedDict):
    """What a node says that a program got of a GPU, `at` a Unix time: MiB of memory, 10^6 bytes a second from the host
    and within that memory, 10^9 half-precision operations a second."""

    at: int
    memory_mib: int
    from_host_mb_s: int
    memory_mb_s: int
    half_gflops: int


class SaidGpu(TypedDict):
    """A GPU of which a node says that it has it: a name, a driver, and whole GiB; "" and 0 for what it does not say,
    and null where it says nothing that was measured."""

    name: str
    driver: str
    vram_gib: int
    measured: SaidFigures | None


class NodeSays(TypedDict):
    """What a node says of itself in its manifest, which nobody has checked."""

    software: str
    country: str
    gpus: list[SaidGpu]


class OfferRow(TypedDict):
    """What a live node offers and asks. The sizes are those of one slot. `tier` is "tier-N" where N is no model's
    key, and "" without a GPU.

    `free` counts the slots that a job could take now, none in a quarantine. On `probation` what leases reserve together
    is bounded.
    `quarantined_until` is null where it is in none. `says` is there where it was asked for, and found.
    """

    node: int
    owner: str
    ask: str
    ask_text: str
    runtimes: list[str]
    gpus: int
    tier: str
    vram_gib: int
    cores: int
    ram_gib: int
    disk_gib: int
    zone: str
    slots: int
    free: int
    probation: bool
    quarantined_until: int | None
    reputation_bps: int
    says: NotRequired[NodeSays]


class Offers(TypedDict):
    """Offers at `block`, cheapest first; `others` counts the registered workers that are not among them by status."""

    schema: Literal["hearth.offers/1"]
    network: str
    block: int
    offers: list[OfferRow]
    others: dict[str, int]
    others_text: str


class AskSpread(TypedDict):
    """What live nodes ask for one GPU: a slot's ask divided by its GPUs; `middle` is by nodes, the lower one of two.

    `gpus` are as many as they claim, `top_owner_bps` is the share of the nodes of the owner who has most. That, rates
    and their texts are null where there is no such node.
    """

    nodes: int
    owners: int
    top_owner_bps: int | None
    gpus: int
    lowest: str | None
    lowest_text: str | None
    middle: str | None
    middle_text: str | None


class Income(TypedDict):
    """What all of the GPUs would bring in a span, and cost.

    `pay` is less the market's fee, `gas` what `gas_wei` is worth in the asset, null where nobody said what a coin is
    worth. `power` is that of the busy time alone, null where its price was not given. `left` is the pay less both,
    null where `gas` is. `text` has those that are known.
    """

    pay: str
    gas_wei: str
    gas: str | None
    power: str | None
    left: str | None
    text: dict[str, str]


class NodeEstimate(OfLogs):
    """What `gpus` GPUs of a model would earn, by the market's events of the `span` seconds from `since` to `block`.

    `asks` are of this model now, `better` of the same vendor's faster ones, which take the same jobs. The rest is of
    this model: `nodes` of `owners` that offered it in the span, the seconds for which each did (`offered_seconds`),
    and the part of them in which its GPUs ran jobs of others that paid, or may yet (`busy_seconds`); `busy_bps` is its
    share, `shared_bps` the same with one more node, idle for the whole span. `rate` is what the run of one GPU paid
    before the fee, the middle one by time of `units`, where no node counts for more than the middle node; these
    `paid_submitters` paid `paid_owners`; `top_..._bps` is the share of the paid time of the one who had most.
    `own_units`, which owners ran on nodes of their own, are in none of these.
    `coin` is what one native coin is worth, null where nobody said, `watts` those of one busy GPU and `kwh` the price
    of a kWh, null where not given. `day` and `month` (30 days) are null where there is no rate. What could not be
    measured is null, never 0; `notes` say what is missing or doubtful.
    """

    schema: Literal["hearth.estimate/1"]
    network: str
    block: int
    gpu: str
    gpus: int
    asset: str
    since: int
    span: int
    asks: AskSpread
    better: AskSpread
    nodes: int
    owners: int
    offered_seconds: int
    busy_seconds: int
    busy_bps: int | None
    shared_bps: int | None
    rate: str | None
    rate_text: str | None
    units: int
    paid_owners: int
    paid_submitters: int
    top_owner_bps: int | None
    top_submitter_bps: int | None
    own_units: int
    fee_bps: int
    gas_price: str
    coin: str | None
    watts: int | None
    kwh: str | None
    day: Income | None
    month: Income | None
    notes: list[str]


class Wait(TypedDict):
    """What keeps a node from leases, or from more than one at a time, and the command that mends it.

    `reason` is "exited", "exiting", "stake", "beat", "silent", "quarantine" or "probation".
    """

    reason: str
    text: str
    next: str


class NodeStatus(TypedDict):
    """What the chain says of a node.

    `bond` is the part of `stake` that its leases hold, `stake_short` what it lacks to be active ("0" where nothing),
    `owner_credit` what waits for its owner in Escrow.
    `seconds_since_beat`, `quarantined_until` and `exit_at` are null where it never beat, is not in quarantine, does not
    leave. `waits` is empty where it takes as many leases as it has slots.
    """

    node: int
    status: str
    status_text: str
    owner: str
    operator: str
    stake: str
    stake_text: str
    stake_short: str
    bond: str
    owner_credit: str
    owner_credit_text: str
    busy: int
    slots: int
    ask: str
    ask_text: str
    last_beat: int
    seconds_since_beat: int | None
    reputation_bps: int
    quarantined_until: int | None
    exit_at: int | None
    waits: list[Wait]


class UnitGate(TypedDict):
    """What the chain says of a node and one open unit: "fits", or the first gate that is shut."""

    unit: int
    gate: str
    text: str


class NodeGates(TypedDict):
    """The chain's gates between a node and a job's open units, at most 20 and the first untouched one."""

    job: str
    state: str
    state_text: str
    node: int
    units: list[UnitGate]


# ---- the network ----


class NetStatus(OfLogs):
    """A network at `block`: what Escrow holds, nodes by status, units by state, slots of all nodes.

    `workers_text` and `units_text` say the same counts in the words that people read.

    `deployed_chain_id` is what `chain_id` was when the market was deployed: where they differ, nobody can post.
    `paused_until` is the end of the last pause of posts, 0 for none; `posts_paused` says whether it is still to come.
    """

    schema: Literal["hearth.net/1"]
    network: str
    chain_id: int
    deployed_chain_id: int
    block: int
    time: int
    protocol_version: int
    asset: str
    escrow_balance: str
    escrow_text: str
    workers: dict[str, int]
    workers_text: str
    slots: int
    busy: int
    jobs: int
    units: dict[str, int]
    units_text: str
    posts_paused: bool
    paused_until: int


class NetWorker(TypedDict):
    """A node in a list; `bond` is the part of `stake` that its leases hold.

    `quarantined_until` is null where it is in no quarantine.
    """

    node: int
    status: str
    status_text: str
    owner: str
    operator: str
    stake: str
    stake_text: str
    bond: str
    ask: str
    ask_text: str
    busy: int
    slots: int
    zone: str
    reputation_bps: int
    last_beat: int
    quarantined: bool
    quarantined_until: int | None


class NetWorkers(TypedDict):
    """Every node that was not left, at `block`."""

    schema: Literal["hearth.workers/1"]
    network: str
    block: int
    workers: list[NetWorker]


class ChangedValue(TypedDict):
    """A field of the policy that a change replaces; amounts are base units, spans seconds."""

    name: str
    before: Plain
    after: Plain
    before_text: str
    after_text: str


class ChangeRow(TypedDict):
    """A change that the Steward holds: its id, what it does, and what became of it.

    `kind` is as `hearth gov queue` takes it, `word` the policy, the stake or the address, in hex. It can be executed
    from `ready` on and before `until`: "waiting", "due" and "lapsed" are before, within and after that. `ready` is when
    its delay is over (`due`), or, of a policy, 24 h after the last one was set, where that is later. `values` are the
    fields of a policy that it replaces, or has replaced; none where that cannot be told. `block` queued it.
    """

    change: str
    kind: str
    word: str
    salt: str
    state: Literal["waiting", "due", "lapsed", "dropped", "executed"]
    block: int
    due: int
    ready: int
    until: int
    values: list[ChangedValue]
    text: str


class Governed(TypedDict):
    """Who governs posts or registrations: `steward` says whether it is the market's own Steward.

    `offered` is who was offered those rights, null for nobody; `paused_until` the end of the last pause, and
    `pausable_from` the second from which the next may begin; both 0 where there was none.
    """

    governor: str
    steward: bool
    offered: str | None
    paused_until: int
    pausable_from: int


class GovStatus(OfLogs):
    """Who may change a market's defaults, and what waits: at `block`, whose second is `time`.

    A change waits `delay` seconds. `guardian` and `offered_council` are null for nobody. `changes` are those that wait
    and the newest that are over, oldest first; `earlier` counts what was queued besides and was not looked at.
    """

    schema: Literal["hearth.gov/1"]
    network: str
    block: int
    time: int
    steward: str
    council: str
    offered_council: str | None
    guardian: str | None
    delay: int
    posts: Governed
    registrations: Governed
    changes: list[ChangeRow]
    earlier: int


class GovAction(TypedDict):
    """What a council, a guardian or anybody else sent to the Steward; with `prepared` nothing was sent.

    `action` is "queue", "drop", "execute", "pause" or "accept"; `text` says it to people. `already_done` says that the
    chain holds it already, so that nothing was sent now. `change` and, once they are known, `due` and `ready` (see
    ChangeRow) are of the change that it is about; `what` says what was paused, accepted, or dropped besides a change.
    """

    schema: Literal["hearth.action/1"]
    action: str
    text: str
    already_done: bool
    dry_run: bool
    transactions: list[Transaction]
    prepared: NotRequired[PreparedTx]
    change: NotRequired[str]
    due: NotRequired[int]
    ready: NotRequired[int]
    what: NotRequired[list[str]]


class NetParams(OfLogs):
    """The parameters of new jobs (`policy`, and its packed word in hex) and of nodes, as docs/protocol.md lists them.

    `previous_until` is the last moment at which the previous policy is taken, `paused_until` the end of a pause of
    posts; 0 for none. `contracts` are addresses by name, `text` the parameters that have a unit, for people: amounts,
    spans of time, shares in percent. `queued` are the changes that wait for their time, or are due.
    """

    schema: Literal["hearth.params/1"]
    network: str
    policy_word: str
    policy: dict[str, Plain]
    previous_until: int
    posts_paused: bool
    paused_until: int
    nodes: dict[str, Plain]
    contracts: dict[str, str]
    queued: list[ChangeRow]
    text: dict[str, str]


class NetEvents(OfLogs):
    """The market's events up to `block`, oldest first."""

    schema: Literal["hearth.events/1"]
    network: str
    block: int
    events: list[EventFacts]


class NetVerification(OfLogs):
    """What replaying a market's whole history found.

    `solvent` says whether the books agree in every part; `faults`, the first 20, say what does not. `unread`, the first
    20 too, are results that could not be had: their workers' fault, and none of the books'. `unverified` counts results
    that were not looked at, since the time was over. `strays` are logs that had no place in these books, which makes
    them doubtful. `seconds` runs from the first posting to the newest block. `unproven` are the contracts of which
    neither file nor provider knows the transaction that created them: what else they hold is their deployer's word.
    `council` and `guardian` (null for nobody) govern the market, and everybody has `delay` seconds to see a change.
    """

    schema: Literal["hearth.verify/1"]
    jobs: int
    units: int
    settled: int
    failed: int
    reclaimed: int
    results_checked: int
    solvent: bool
    seconds: int
    council: str
    guardian: str | None
    delay: int
    unproven: NotRequired[list[str]]
    faults: NotRequired[list[str]]
    unread: NotRequired[list[str]]
    unverified: NotRequired[int]
    error: NotRequired[ErrorFacts]


class Snapshot(TypedDict):
    """What a new file of a market's history holds, or would hold: its `logs` up to and with `block`, in `parts`."""

    schema: Literal["hearth.snapshot/1"]
    network: str
    file: str
    block: int
    block_hash: str
    logs: int
    parts: int
    bytes: int
    dry_run: bool


class HistoryHead(TypedDict):
    """The first line of that file: whose logs follow, and the last block of which they do."""

    schema: Literal["hearth.history/1"]
    chain_id: int
    genesis_hash: str
    deploy_block: int
    contracts: dict[str, str]
    block: int
    block_hash: str


HistoryPart = TypedDict("HistoryPart", {"from": int, "to": int, "blocks": list[list[Any]]})
"""Each line after it: the logs of all blocks from one to another, by block: number, hash, and of each log its index,
its transaction, the contract's name, its topics and its data."""


class DemoReport(NetVerification):
    """What the demo's chain came to, and what the demo took: `seconds` is time of the chain, these are of the clock.

    `wall_seconds` runs from the start of the demo to its end, when everything is stopped; `setup_seconds`, the part of
    it before the first job is posted. `finished` counts the results that settled themselves as they were submitted,
    `given_up` the leases that workers gave up.
    """

    finished: int
    given_up: int
    setup_seconds: float
    wall_seconds: float


# ---- the store ----


class Imported(TypedDict):
    """What a CAR file put into the store, or would have put: its `roots`, which are pinned, and all of its blocks."""

    schema: Literal["hearth.import/1"]
    file: str
    roots: list[str]
    blocks: int
    bytes: int
    dry_run: bool


class Exported(TypedDict):
    """What a new CAR file holds, or would hold: all blocks of `root`."""

    schema: Literal["hearth.export/1"]
    file: str
    root: str
    blocks: int
    bytes: int
    dry_run: bool


class PageFile(TypedDict):
    """One file of the page."""

    name: str
    bytes: int
    cid: str


class WebPage(TypedDict):
    """The page that is served, or would be: its address with this start's token, None where nothing is served; its
    market, None where its files alone were looked at; the CID of its folder, and its files."""

    schema: Literal["hearth.web/1"]
    url: str | None
    network: str | None
    writable: bool
    cid: str
    files: list[PageFile]
    dry_run: bool


# ---- this machine ----


class Check(TypedDict):
    """One thing that was looked at: what was found, and what mends it ("" where nothing has to)."""

    name: str
    level: Level
    detail: str
    fix: str


class Wall(TypedDict):
    """One wall round what strangers run in a runtime: whether it stands, what that means, what to do ("" for nothing).

    `state` is "stands", "missing", or "unseen" where only a program inside could say.
    """

    runtime: str
    name: str
    state: Literal["stands", "missing", "unseen"]
    detail: str
    fix: str


class Diagnosis(TypedDict):
    """What a machine needs to submit jobs, or to work; `result` is the worst of the levels.

    `walls` are a worker's: those that a machine may lack.
    """

    schema: Literal["hearth.doctor/1"]
    result: Level
    checks: list[Check]
    walls: NotRequired[list[Wall]]


class ProjectFiles(TypedDict):
    """The files of a new project, of a template: those written, and those that existed and were kept."""

    schema: Literal["hearth.init/1"]
    template: str
    written: list[str]
    kept: list[str]
    dry_run: bool


class TrustedFiles(TypedDict):
    """The files that commands may use where they find them, as they stand: absolute paths."""

    schema: Literal["hearth.trust/1"]
    trusted: list[str]
    dry_run: bool


class LostKey(TypedDict):
    """A key of another system's file that could not be carried over, and why."""

    key: str
    why: str


class ConvertedJob(TypedDict):
    """A job file made of another system's: `job` is a document of hearth/jobfile/job.schema.json."""

    schema: Literal["hearth.convert/1"]
    format: str
    job: dict[str, Any]
    notes: list[LostKey]


class LostBlocks(TypedDict):
    """The newest blocks of a chain that was killed: how many, the number of the last one, and their transactions."""

    blocks: int
    reached: int
    transactions: list[str]


class DevnetUp(TypedDict):
    """A running local chain; `started` and `deployed` say whether this call did it, `keys` what keys it has.

    `lost` stands there where the chain was killed before it had saved its last blocks.
    """

    schema: Literal["hearth.devnet/1"]
    running: Literal[True]
    url: str
    pid: int
    network_file: str
    started: bool
    deployed: bool
    contracts: dict[str, str]
    asset: str
    keys: list[NamedKey]
    lost: NotRequired[LostBlocks]


class Given(TypedDict):
    """An amount of an asset that was given away, in base units."""

    asset: str
    amount: str
    amount_text: str


class DevnetFund(TypedDict):
    """What the faucet of a local chain gave to an address, with the hashes of its transactions."""

    schema: Literal["hearth.devnet.fund/1"]
    address: str
    given: list[Given]
    transactions: list[str]
    dry_run: bool


class DevnetDown(TypedDict):
    """A local chain that does not run; `stopped` says whether it did, `wiped` whether its state is gone."""

    schema: Literal["hearth.devnet/1"]
    running: Literal[False]
    stopped: bool
    wiped: bool


class Completion(TypedDict):
    """A shell's completion script."""

    schema: Literal["hearth.completion/1"]
    shell: str
    script: str
