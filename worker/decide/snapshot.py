"""What a decision reads, pure: a node, its jobs and leases at one block, and what the provider allows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Literal

from hearth.protocol.formulas import Immutables
from hearth.protocol.runtimes import RUNTIMES
from hearth.protocol.types import Best, Header, JobId, Node, NodeId, Outcome, State, Terms, Unit
from hearth.protocol.units import NATIVE, Asset
from worker.registries import DEFAULT_REGISTRIES

HELD: Final = frozenset({State.RUNNING, State.CLOSING})
"""The states in which a lease occupies a slot of its node."""
OURS: Final = HELD | {State.SUBMITTED, State.DISPUTED}
"""The states in which a lease still belongs to its node."""
MAX_TRIES: Final = 3
"""After so many failures of this machine a unit is given back."""


class Reason(StrEnum):
    """Name why the worker leaves a lease alone for now. A `Gate` is the reason where the chain itself would refuse."""

    PAUSED = "paused"
    OUTSIDE_SCHEDULE = "outside_schedule"
    DRAINING = "draining"
    CLOCK_SKEW = "clock_skew"
    CHAIN_SILENT = "chain_silent"
    GAS_CAPPED = "gas_capped"
    DISK_FULL = "disk_full"
    STORE_DOWN = "store_down"
    GPU_DRIVER = "gpu_driver"
    GPU_LOST = "gpu_lost"
    GPU_SICK = "gpu_sick"
    GPU_ENGINE = "gpu_engine"
    GPU_BUSY = "gpu_busy"
    OTHER_OWNER = "other_owner"
    NOT_READY = "not_ready"
    NODE_STATUS = "node_status"
    TX_PENDING = "tx_pending"
    SLOTS_FULL = "slots_full"
    SUBMITTER_REFUSED = "submitter_refused"
    RATE_BELOW_MINIMUM = "rate_below_minimum"
    PAY_BELOW_MINIMUM = "pay_below_minimum"
    NO_GPU_ASKED = "no_gpu_asked"
    GPU_KINDS = "gpu_kinds"
    UNPROFITABLE = "unprofitable"
    TOO_LONG = "too_long"
    TOO_TIGHT = "too_tight"
    NOT_SUPPORTED = "not_supported"
    JUDGE_UNKNOWN = "judge_unknown"
    BOND_TOO_LARGE = "bond_too_large"
    SPEC_UNREAD = "spec_unread"
    SPEC_BAD = "spec_bad"
    IMAGE_REFUSED = "image_refused"
    TOO_BIG = "too_big"
    NO_ROOM = "no_room"
    OUTBID = "outbid"
    LEADING = "leading"
    GATHERING = "gathering"
    AWAITS_ACK = "awaits_ack"
    AWAITS_OPEN_CLAIM = "awaits_open_claim"
    AWAITS_PRICE = "awaits_price"
    AWAITS_KEEPER = "awaits_keeper"
    AWAITS_CONFIRMATIONS = "awaits_confirmations"
    RUNNING = "running"
    STOPPING = "stopping"
    NOTICE = "notice"
    LEASE_OVER = "lease_over"
    AWAITS_WINDOW = "awaits_window"
    AWAITS_JUDGE = "awaits_judge"
    AWAITS_PARENTS = "awaits_parents"
    ARRAY_CLOSED = "array_closed"
    ENDED = "ended"
    NOT_CHOSEN = "not_chosen"
    NOT_NEXT = "not_next"
    RETRY_LATER = "retry_later"
    NOT_WATCHED = "not_watched"
    AWAITS_TURN = "awaits_turn"


NO_GPU: Final = frozenset(
    {Reason.GPU_DRIVER, Reason.GPU_LOST, Reason.GPU_SICK, Reason.GPU_ENGINE, Reason.GPU_BUSY},
)
"""Why a slot has no GPU that jobs can have."""

BEATS_ON: Final = NO_GPU | {
    *(Reason.DISK_FULL, Reason.STORE_DOWN, Reason.CLOCK_SKEW, Reason.CHAIN_SILENT, Reason.GAS_CAPPED),
}
"""The holds in which an idle node beats all the same: its owner did not wish them, and silence would cost it a fee."""

OWN: Final = frozenset(
    {
        *(Reason.SUBMITTER_REFUSED, Reason.RATE_BELOW_MINIMUM, Reason.PAY_BELOW_MINIMUM, Reason.NO_GPU_ASKED),
        Reason.GPU_KINDS,
        *(Reason.UNPROFITABLE, Reason.TOO_LONG, Reason.TOO_TIGHT, Reason.NOT_SUPPORTED, Reason.JUDGE_UNKNOWN),
        *(Reason.BOND_TOO_LARGE, Reason.SPEC_BAD, Reason.IMAGE_REFUSED, Reason.TOO_BIG, Reason.NO_ROOM),
    }
)
"""The reasons for which this worker does not take a job that it might take by the market's rules: nobody else sees
them, so its log has each once a job. The others are of the market's course, or hold for every job (`worker.holds`)."""


class Stage(StrEnum):
    """Say how far this machine has come with an attempt.

    The first two come before a lease does: all that the attempt needs is fetched, or lies here whole. They are known to
    the process that fetched it alone, so that what a killed one left half is never taken for whole.
    """

    GATHERING = "gathering"
    GATHERED = "gathered"
    WORKING = "working"
    DONE = "done"
    REFUSED = "refused"
    BROKEN = "broken"


AHEAD: Final = frozenset({Stage.GATHERING, Stage.GATHERED})
"""The stages of what is brought here for a match, ahead of its ack."""
UNDER_WAY: Final = AHEAD | {Stage.WORKING}
"""The stages in which an attempt fills a slot of this machine."""


class Kind(StrEnum):
    """Name the transactions of a worker, as the tx journal knows them."""

    BEAT = "beat"
    PROPOSE = "propose"
    ACK = "ack"
    CLAIM = "claim"
    SUBMIT = "submit"
    FINISH = "finish"
    DECLINE = "decline"
    GIVE_UP = "give_up"
    SETTLE = "settle"
    CLOSE = "close"
    CHECKPOINT = "checkpoint"
    WITHDRAW = "withdraw"


ENGAGING: Final = frozenset({Kind.ACK, Kind.CLAIM})
TAKING: Final = ENGAGING | {Kind.PROPOSE}


@dataclass(frozen=True, slots=True, order=True)
class LeaseKey:
    """Name one attempt: the job's id, the lease's index, and the attempt, counted from 1 at the first ack or claim."""

    job: JobId
    index: int
    attempts: int

    def __str__(self) -> str:
        return f"{self.job.hex()}-{self.index}-{self.attempts}"


@dataclass(frozen=True, slots=True)
class SpecFacts:
    """What the worker must know of a spec before it risks a bond on it.

    `runtime` is a name of the table of runtimes, `target` the module's CID or the image with its digest, `output_bytes`
    the cap of all outputs together, `input_bytes` all data that is fetched, an image aside, `sandbox_bytes` what its
    sandbox may keep on the home's disk besides. `bad` says why the document
    cannot be run at all (empty: it can).
    """

    runtime: str = ""
    target: str = ""
    output_bytes: int = 0
    input_bytes: int = 0
    sandbox_bytes: int = 0
    bad: str = ""

    def claim(self, volumes: bool) -> int:
        """Return the bytes of the home's disk that an attempt may take; with `volumes` its outputs take none."""
        return self.input_bytes + self.sandbox_bytes + (0 if volumes else self.output_bytes)


@dataclass(frozen=True, slots=True)
class Saved:
    """The last checkpoint of an attempt, as the market's logs have it: whose, the seconds from the lease's start, the
    32 bytes that name its tree, and the attempt whose state that lease began with itself (0 for none)."""

    attempt: int
    node: NodeId
    seconds: int
    root: bytes
    resume: int = 0


@dataclass(frozen=True, slots=True)
class Lease:
    """A lease as stored at the pinned block. `since` is the first block at which this process saw this attempt.

    `saved` are the last checkpoints of the unit's attempts, the newest attempt first.
    """

    index: int
    unit: Unit
    best: Best = field(default_factory=Best)
    since: int = 0
    saved: tuple[Saved, ...] = ()


@dataclass(frozen=True, slots=True)
class Job:
    """A job that the worker watches: terms, header (arrays only) and the touched leases that were read and not ended.

    `retry_at` is a chain second before which nothing new is tried on the job (a lost race, a refusal, a store that is
    down); 0 = any time. `retry_why` says what stands against it until then. `gather_at` is one before which nothing is
    fetched for its matches, since that was in vain. `paid` is what units of the job brought this node when they were
    settled or closed, less the fee, and 0 for each that it gave back.
    """

    id: JobId
    terms: Terms
    leases: tuple[Lease, ...] = ()
    header: Header | None = None
    spec: SpecFacts | None = None
    retry_at: int = 0
    retry_why: str = ""
    gather_at: int = 0
    paid: tuple[int, ...] = ()

    @property
    def waits(self) -> bool:
        """Say whether the job waits for other jobs to end, its parents: no unit of it is open before."""
        if self.header is not None:
            return self.header.waiting
        return any(lease.unit.state == State.BLOCKED for lease in self.leases)


@dataclass(frozen=True, slots=True)
class Execution:
    """An attempt as the journal knows it. `result`, `report`, `used` and `outcome` count from DONE or REFUSED on.

    `begun` says that its program has been started: nothing that it needs is missing. `offered` names a checkpoint that
    is stored and that the chain has neither taken nor refused, the attempt's `offers`th, `resumes` the attempt whose
    checkpoint lies here whole for it, 0 for none.
    """

    key: LeaseKey
    stage: Stage
    outcome: Outcome = Outcome.NONE
    result: bytes = bytes(32)
    report: bytes = bytes(32)
    used: int = 0
    tries: int = 1
    begun: bool = False
    offered: bytes | None = None
    resumes: int = 0
    offers: int = 0


@dataclass(frozen=True, slots=True)
class Flight:
    """A transaction that was signed and is not yet mined. `bond` counts for acks and claims.

    The `index` of what takes an array's next lease is SENTINEL. A finish that takes one too is told twice: of the unit
    that it ends, and of the next, which has that one's slot.
    """

    kind: Kind
    job: JobId | None = None
    index: int = 0
    bond: int = 0


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything that one decision reads, all of it at one block.

    `credit` is the operator's own credit in Escrow (tips and settle rewards), base units.
    """

    block: int
    timestamp: int
    node: Node
    immutables: Immutables
    jobs: tuple[Job, ...] = ()
    executions: tuple[Execution, ...] = ()
    flights: tuple[Flight, ...] = ()
    credit: int = 0


@dataclass(frozen=True, slots=True)
class Target:
    """The one unit that a worker is sent for: of `job` the one at `index`, or the first that it can take (None).

    `taken` says that the node has it: it takes nothing new any more.
    """

    job: JobId
    index: int | None = None
    taken: bool = False

    def names(self, job: JobId, index: int | None) -> bool:
        """Say whether a unit may be the one that is meant; an `index` of None is the whole job."""
        return job == self.job and (None in (self.index, index) or index == self.index)


@dataclass(frozen=True, slots=True)
class TrustedJudge:
    """A judge by whose word the provider takes jobs: any of its jobs, or of its `sets` (`judge_data`) alone.

    `setting` is where the provider names the sets.
    """

    setting: str = "accept.judges"
    sets: frozenset[int] | None = None


@dataclass(frozen=True, slots=True)
class Config:
    """What the provider allows. Rates are base units x 1e6 per second, times seconds, sizes bytes, amounts base units.

    `hold` is why nothing new is accepted (None: it is), `target` the only unit that is (None: any). `images` and
    `modules` are shell patterns, `images_refused` and `modules_refused` win over them; `registries` are those of
    docker.registries. `submitters` None takes anybody's jobs. `min_pay` is the least that all the time
    which a unit may bill must pay. `withdraw_at` 0 never withdraws. `asset` is what reasons are worded in.

    `room` are the bytes of the home's disk that no attempt under way has claimed, `volumes` says that outputs lie on
    file systems of their own.

    `max_slots` are those that this machine has all for now; where these are fewer than the offer's, `lack` is why.
    `gpu_tiers` are the tiers of the GPUs that a slot may get.

    `lead` is how many seconds before a deadline this machine must send to be mined in time.

    `resume` says which units may begin with the state of a lost attempt, a stranger's: "unjudged" are those without a
    judge.

    A unit may lose `max_loss` by the gas of taking, submitting and settling it, None for any loss; `gas_price` is wei
    per gas now, `coin_price` base units for one native coin (10**18 wei), 0 where nobody said.
    """

    beat_every: int
    hold: Reason | None = None
    target: Target | None = None
    max_slots: int = 63
    lack: tuple[Reason, str] | None = None
    min_rate: int = 0
    min_pay: int = 0
    max_seconds: int = 30 * 86_400
    max_input_bytes: int = 1 << 63
    max_output_bytes: int = 1 << 63
    room: int = 1 << 63
    volumes: bool = False
    gpu_only: bool = False
    gpu_tiers: frozenset[int] = frozenset()
    images: tuple[str, ...] = ("*",)
    images_refused: tuple[str, ...] = ()
    modules: tuple[str, ...] = ("*",)
    modules_refused: tuple[str, ...] = ()
    registries: tuple[str, ...] = DEFAULT_REGISTRIES
    submitters: frozenset[str] | None = None
    submitters_refused: frozenset[str] = frozenset()
    judges: Mapping[str, TrustedJudge] = field(default_factory=dict)
    max_bond: int = 10
    resume: Literal["unjudged", "always", "never"] = "unjudged"
    confirmations: int = 0
    propose: bool = True
    propose_after: int = 0
    settle_after: int = 0
    max_tries: int = MAX_TRIES
    lead: float = 0.0
    withdraw_at: int = 0
    runtimes: frozenset[str] = frozenset(RUNTIMES)
    max_loss: int | None = None
    gas_price: int = 0
    coin_price: int = 0
    asset: Asset = NATIVE

    def programs(self, program: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return which programs are accepted and which refused, of the field of a job that names them. Raises KeyError
        for another."""
        return {
            "image": (self.images, self.images_refused),
            "module": (self.modules, self.modules_refused),
        }[program]
