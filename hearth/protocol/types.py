"""The values that every part of Hearth passes around: ids, states, terms, and the unpacked words of the chain.

Every class here is a frozen value without behaviour beyond simple derivations. The packed forms are in
`hearth.protocol.words`, the formulas in `hearth.protocol.formulas`. Source: protocol.md "Terms", "Words" and
"States".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum, IntFlag
from typing import NewType

JobId = NewType("JobId", bytes)
"""32 bytes: keccak256 of (chain id, registry, terms)."""
NodeId = NewType("NodeId", int)
"""A uint32, counted from 1."""

ZERO_ADDRESS = "0x" + "00" * 20
ZERO_HASH = bytes(32)
SENTINEL = 2**256 - 1
"""NEXT for propose and claim, ALL for cancel and expire."""

LOCAL_CHAIN_ID = 31337
"""The id of a chain on one machine, for development: nothing on it has value, and it mines when it is asked to."""

MAX_ATTEMPTS = 8
"""How often a unit may be started."""

MAX_PARENTS = 15
MAX_VRAM_GIB = 1023
"""How many jobs a job may wait for."""

MAX_PROOF_SECONDS = 60 * 86_400
"""How far away the deadline of a job may be that asks for a proof: its bonds wait until then."""

RATE_SCALE = 10**6
"""A rate is base units times this, per second."""
MAX_RATE = (1 << 80) - 1
"""The highest rate of a job or of an offer: what its lane holds."""
MAX_STAKE = (1 << 80) - 1
"""The most stake of a node, in base units: what its lane holds."""
COIN = 10**18
"""Wei in one native coin."""
BPS = 10_000
"""One, in basis points."""


class State(IntEnum):
    """The eleven states of a unit. `Header.STATE` marks an array's header instead."""

    NONE = 0
    BLOCKED = 1
    OPEN = 2
    RUNNING = 3
    CLOSING = 4
    SUBMITTED = 5
    DISPUTED = 6
    SETTLED = 7
    REFUNDED = 8
    CANCELLED = 9
    EXPIRED = 10

    @property
    def terminal(self) -> bool:
        """Say whether a unit in this state has ended."""
        return self >= State.SETTLED

    @property
    def has_result(self) -> bool:
        """Say whether a unit in this state has a result."""
        return self in (State.SUBMITTED, State.DISPUTED, State.SETTLED)


class Outcome(IntEnum):
    """How an attempt ended: 1 to 5 are results (`submit`), 6 to 8 refusals (`decline`)."""

    NONE = 0
    OK = 1
    EXIT = 2
    TRAP = 3
    OUT_OF_MEMORY = 4
    TIMEOUT = 5
    BAD_INPUT = 6
    BAD_KEY = 7
    IMAGE_MISSING = 8

    @property
    def is_result(self) -> bool:
        """Say whether `submit` takes this outcome."""
        return Outcome.OK <= self <= Outcome.TIMEOUT


class Billing(IntEnum):
    """What a unit's seconds are: the posted maximum, fuel, or the time between start and submit."""

    FIXED = 0
    FUEL = 1
    METERED = 2


class Runtime(IntFlag):
    """What a node runs, or what a job needs: NVIDIA and AMD say whose GPUs."""

    WASM = 1
    DOCKER = 2
    NVIDIA = 4
    JUROR = 8
    AMD = 16


class Verdict(IntEnum):
    """What a judge may say of a unit (`JobRegistry.rule`)."""

    RELEASE = 0
    CONFIRM = 1
    REJECT = 2
    VOID = 3


class TermsFlag(IntFlag):
    """Switches in a job's terms."""

    CONFIDENTIAL = 1
    PREEMPTIBLE = 2
    NEWCOMERS = 4
    PROVEN = 8
    KEEP = 16


class UnitFlag(IntFlag):
    """Marks in a unit's word."""

    FUEL = 1
    STORE = 2
    KEYED = 4
    NOTICED = 8
    ACCUSED = 16
    ARRAY = 32
    ACKED = 64
    FRESH = 128


class NodeFlag(IntFlag):
    """Recorded marks of a node; the status shown to users is computed (`protocol.status`)."""

    LAPSED = 1
    EXITING = 2
    SLASHED = 4


class Status(IntEnum):
    """A node's status, computed at read."""

    PENDING = 0
    ACTIVE = 1
    INACTIVE = 2
    SLASHED = 3
    EXITING = 4
    EXITED = 5


class Gate(IntEnum):
    """The reasons why a node cannot take a unit, in the order in which they are checked."""

    FITS = 0
    NOT_LIVE = 1
    NOT_ACTIVE = 2
    EXITING = 3
    QUARANTINED = 4
    NO_SLOT = 5
    STAKE_SHORT = 6
    RUNTIME = 7
    GPU_COUNT = 8
    VRAM = 9
    CORES = 10
    RAM = 11
    DISK = 12
    TIER = 13
    ZONE = 14
    PRICE = 15
    PROBATION = 16
    SUBMITTER = 17
    EXCLUDED = 18
    NO_TIME = 19
    NOT_OPEN = 20


@dataclass(frozen=True, slots=True)
class Needs:
    """What a job asks of a node; sizes are per slot, GiB unless named otherwise.

    `zone_mask` has one bit per allowed zone, 0 = anywhere and no preference; `home` (0..15) is the zone that
    distances are measured from and counts only where the mask is not 0. `exact` takes GPUs of this very tier alone.
    """

    runtimes: Runtime = Runtime.WASM
    tier: int = 0
    gpu_count: int = 0
    vram_gib: int = 0
    cores: int = 0
    ram_gib: int = 0
    disk_gib: int = 0
    zone_mask: int = 0
    home: int = 0
    exact: bool = False


@dataclass(frozen=True, slots=True)
class Offer:
    """One slot of a node, and how many identical slots it has (1..63).

    `ask` is base units x 1e6 per second. `pending` says that a newer ask waits in the node's `next_ask`.
    """

    runtimes: Runtime = Runtime.WASM
    tier: int = 0
    gpu_count: int = 0
    vram_gib: int = 0
    cores: int = 0
    ram_gib: int = 0
    disk_gib: int = 0
    zone: int = 0
    slots: int = 1
    pending: bool = False
    ask: int = 0


@dataclass(frozen=True, slots=True)
class NodeState:
    """The part of a node's record that changes with its leases and beats: one word on chain, the lane table's HOT.

    Beat and reputation times are chain seconds, the bond base units, r and s 1/2**20, cusum 1/16. `silent` says that a
    reclaim has counted the silence since the last beat.
    """

    beat: int = 0
    busy: int = 0
    bond: int = 0
    r: int = 0
    s: int = 0
    rep_time: int = 0
    cusum: int = 0
    quarantine: int = 0
    trips: int = 0
    status: NodeFlag = NodeFlag(0)
    seasoned: bool = False
    count: int = 0
    silent: bool = False


@dataclass(frozen=True, slots=True)
class Node:
    """Everything that the chain knows of a node. `next_ask` counts from `next_ask_at` while `offer.pending`."""

    id: NodeId
    owner: str
    operator: str
    stake: int
    offer: Offer
    state: NodeState
    next_ask: int = 0
    next_ask_at: int = 0
    exit_at: int = 0


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit's word. `mark`, `rate` and `node` mean what the state says (protocol.md "Words").

    Read the lane `mark` by what it means: `window_end`, `deadline_at` and `submitted_at` are chain seconds, each 0 in
    the states that have no such moment.
    """

    state: State = State.NONE
    outcome: Outcome = Outcome.NONE
    node: NodeId = NodeId(0)
    rate: int = 0
    started: int = 0
    mark: int = 0
    seconds: int = 0
    attempts: int = 0
    tips: int = 0
    lapses: int = 0
    flags: UnitFlag = UnitFlag(0)
    resume: int = 0
    resumable: bool = False

    @property
    def window_end(self) -> int:
        """Return the end of an OPEN unit's match window, from which its best node may ack; 0 for no proposal."""
        return self.mark if self.state == State.OPEN else 0

    @property
    def deadline_at(self) -> int:
        """Return the first second that is too late to submit: the end of the lease, or of a cancel's notice."""
        return self.mark if self.state in (State.RUNNING, State.CLOSING) else 0

    @property
    def submitted_at(self) -> int:
        """Return when the result was submitted."""
        return self.mark if self.state in (State.SUBMITTED, State.DISPUTED, State.SETTLED) else 0


@dataclass(frozen=True, slots=True)
class Header:
    """An array's header: leases opened in order, ended ok, ended otherwise; `waiting` for its parents' ends."""

    closed: bool = False
    waiting: bool = False
    touched: int = 0
    done: int = 0
    failed: int = 0
    opened: int = 0
    leases: int = 0
    quorum: int = 0
    """Of replicas, how many have to end ok; 0 for the leases of an array, which all have to."""


@dataclass(frozen=True, slots=True)
class Best:
    """The best proposal for an OPEN unit."""

    payee: str = ZERO_ADDRESS
    node: NodeId = NodeId(0)
    key: int = 0
    extensions: int = 0


@dataclass(frozen=True, slots=True)
class Accused:
    """Who declined a unit last, 0 for nobody, and when in chain seconds."""

    node: NodeId = NodeId(0)
    at: int = 0


@dataclass(frozen=True, slots=True)
class Posted:
    """Where the list of all jobs ends: the block of the last post, and how many jobs there are."""

    block: int = 0
    count: int = 0


@dataclass(frozen=True, slots=True)
class Kept:
    """The last checkpoint of a lost lease: seconds from its start, its rate and node, and what it resumed from itself.

    `resume` is an attempt, 0 for none, and `before` the seconds of the checkpoints that this one was made of. The whole
    record is 0 where `seconds` is.
    """

    seconds: int = 0
    rate: int = 0
    node: NodeId = NodeId(0)
    resume: int = 0
    before: int = 0


@dataclass(frozen=True, slots=True)
class Policy:
    """The parameters that a job freezes at post. Times in seconds, shares in bps, amounts in base units.

    The three amounts are stored as mantissa (10 bits) x 10**exponent (5 bits): see `words.encode_amount`.
    """

    version: int
    fee_bps: int
    min_bond_bps: int
    claim_ramp: int
    fresh_delay: int
    fetch_floor: int
    reserved: int
    min_price: int
    min_keeper_fee: int
    probation_price: int
    min_match_window: int
    ack_time: int
    open_claim_after: int
    cancel_notice: int
    grace_floor: int
    start_fee_seconds: int
    min_challenge_window: int
    key_timeout: int
    reserved_high: int
    min_checkpoint: int


@dataclass(frozen=True, slots=True)
class Terms:
    """A job's terms, frozen at post. Times in seconds, amounts in base units, `ceiling` in base units x 1e6 / s."""

    submitter: str
    salt: int
    spec: bytes
    needs: Needs
    ceiling: int
    max_seconds: int
    deadline: int
    keeper_fee: int
    policy: int
    units: int = 1
    chunk: int = 1
    replicas: int = 1
    quorum: int = 1
    match_window: int = 0
    challenge_window: int = 0
    checkpoint_every: int = 0
    max_attempts: int = 1
    billing: Billing = Billing.FIXED
    flags: TermsFlag = TermsFlag(0)
    bond_bps: int = 0
    judge_data: int = 0
    judge: str = ZERO_ADDRESS
    parents_hash: bytes = field(default=ZERO_HASH)

    @property
    def leases(self) -> int:
        """Count the leases: units / chunk x replicas."""
        return self.units // self.chunk * self.replicas
