"""The lane table: what stands at which bit of the 256-bit words that the contracts store, emit and take.

It is the one source of the layouts. `python -m tools.lanes` writes contracts/packing.vy, the tables of protocol.md
"Words" and words.json, for other programs, from it; `make check` compares them.

Packing refuses a value that does not fit its lane; unpacking refuses spare bits, as the contract does where a second
spelling would be a second id.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import IntEnum, IntFlag
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import Final, NamedTuple

from hearth.protocol.types import (
    Accused,
    Best,
    Billing,
    Header,
    Kept,
    Needs,
    NodeFlag,
    NodeId,
    NodeState,
    Offer,
    Outcome,
    Policy,
    Posted,
    Runtime,
    State,
    Terms,
    TermsFlag,
    Unit,
    UnitFlag,
)


class Lane(NamedTuple):
    """One value of a word. A name that starts with `_` is a lane that stays zero."""

    name: str
    width: int  # bits
    unit: str = ""
    meaning: str = ""
    values: tuple[tuple[str, int], ...] = ()
    """(name, value) of what the lane may hold, where it is one of several."""
    flags: tuple[tuple[str, int], ...] = ()
    """(name, value) of the bits that the lane's value is a sum of."""

    @property
    def is_zero(self) -> bool:
        """Tell whether the lane stays zero."""
        return self.name.startswith("_")


@dataclass(frozen=True)
class Word:
    """The layout of one kind of word: what it is, and its lanes, least significant first. Bits above them are zero."""

    what: str
    lanes: tuple[Lane, ...]

    @property
    def bits(self) -> int:
        """Bits that the lanes take together."""
        return sum(lane.width for lane in self.lanes)

    @cached_property
    def placed(self) -> tuple[tuple[Lane, int], ...]:
        """Each lane, and the bit at which it starts."""
        ends = accumulate(lane.width for lane in self.lanes)
        return tuple((lane, end - lane.width) for lane, end in zip(self.lanes, ends, strict=True))


def _members(enumeration: type[IntEnum] | type[IntFlag]) -> tuple[tuple[str, int], ...]:
    return tuple((str(member.name), int(member)) for member in enumeration)


HEADER_STATE: Final = 15
"""The state nibble that marks an array's header."""

_RATE: Final = "base units x 1e6 per second"


def _sizes(least: str) -> tuple[Lane, ...]:
    """Return the six sizes of needs and offers, each below a guard that a compare of all six at once borrows."""
    return (
        Lane("tier", 10, "", f"GPU tier{least}"),
        Lane("_guard_tier", 1),
        Lane("gpu_count", 6, "", f"GPUs{least}"),
        Lane("_guard_gpu_count", 1),
        Lane("vram_gib", 10, "GiB", "of each GPU"),
        Lane("_guard_vram_gib", 1),
        Lane("cores", 10),
        Lane("_guard_cores", 1),
        Lane("ram_gib", 14, "GiB"),
        Lane("_guard_ram_gib", 1),
        Lane("disk_gib", 17, "GiB"),
        Lane("_guard_disk_gib", 1),
    )


NEEDS: Final = Word(
    "what a job asks of one slot",
    (
        *_sizes(" at least"),
        Lane("runtimes", 12, "", "all of", flags=_members(Runtime)),
        Lane("zone_mask", 16, "", "one bit per allowed zone, 0 = anywhere"),
        Lane("home", 4, "", "zone that distances are measured from; counts where the mask is not 0"),
        Lane("exact", 1, "", "GPUs of this very tier, and of no higher one"),
    ),
)
OFFER: Final = Word(
    "one slot of a node",
    (
        *_sizes(""),
        Lane("runtimes", 12, "", "any of", flags=_members(Runtime)),
        Lane("zone", 4, "", "0..15, self-declared"),
        Lane("slots", 6, "", "1..63 identical slots"),
        Lane("pending", 1, "", "a newer ask waits in next_ask"),
        Lane("ask", 80, _RATE),
    ),
)
NEXT_ASK: Final = Word(
    "a node's newer ask",
    (Lane("ask", 80, _RATE), Lane("at", 40, "seconds", "from which it is in force")),
)
OWNER: Final = Word(
    "a node's record of owner and stake",
    (Lane("account", 160, "", "the owner"), Lane("stake", 80, "base units", "locked in Escrow")),
)
OPERATOR: Final = Word(
    "a node's record of operator and exit",
    (
        Lane("account", 160, "", "the operator"),
        Lane("exit_at", 40, "seconds", "from which an exit may finish, 0 for none begun"),
    ),
)
HOT: Final = Word(
    "the node state, which changes with leases and beats",
    (
        Lane("beat", 32, "seconds", "of the last beat"),
        Lane("busy", 6, "", "slots taken"),
        Lane("bond", 80, "base units", "reserved by leases"),
        Lane("r", 26, "1/2^20", "successes"),
        Lane("s", 26, "1/2^20", "failures"),
        Lane("rep_time", 32, "seconds", "until which r and s have decayed"),
        Lane("cusum", 8, "1/16", "the breaker's sum"),
        Lane("quarantine", 32, "seconds", "its end"),
        Lane("trips", 4, "", "how often the breaker tripped"),
        Lane("status", 3, flags=_members(NodeFlag)),
        Lane("seasoned", 1, "", "off probation, for ever"),
        Lane("count", 5, "", "full successes modulo 32"),
        Lane("silent", 1, "", "a reclaim has counted the silence since the last beat"),
    ),
)
UNIT: Final = Word(
    "a lease",
    (
        Lane("state", 4, values=_members(State)),
        Lane("outcome", 4, values=_members(Outcome)),
        Lane("node", 32),
        Lane("rate", 80, _RATE),
        Lane("started", 40, "seconds"),
        Lane("mark", 40, "seconds"),
        Lane("seconds", 24, "seconds", "of fuel, from submit on; of a metered unit those of its top-ups"),
        Lane("attempts", 4, "", "leases begun"),
        Lane("tips", 4, "", "tips paid"),
        Lane("lapses", 4, "", "proposals dropped since it opened"),
        Lane("flags", 8, flags=_members(UnitFlag)),
        Lane("resume", 4, "", "the attempt whose checkpoint this one resumed from, 0 none"),
        Lane("resumable", 1, "", "its leases may checkpoint"),
    ),
)
HEADER: Final = Word(
    "an array",
    (
        Lane("state", 4, "", "which no unit has", values=(("HEADER", HEADER_STATE),)),
        Lane("closed", 1, "", "by cancel or expire of ALL, or by unlock"),
        Lane("waiting", 1, "", "for its parents' ends"),
        Lane("_gap", 2),
        Lane("touched", 24, "", "leases opened, in order"),
        Lane("done", 24, "", "ended SETTLED with outcome ok"),
        Lane("failed", 24, "", "touched and ended otherwise"),
        Lane("opened", 40, "seconds", "of the post, or of unlock"),
        Lane("leases", 24, "", "of the terms: whoever waits for the array does not know them"),
        Lane("quorum", 4, "", "of the terms, where its leases are replicas of one unit; else 0"),
    ),
)
BEST: Final = Word(
    "the best proposal of an OPEN unit",
    (
        Lane("payee", 160, "", "who is tipped"),
        Lane("node", 32),
        Lane("key", 48, "", "see Key"),
        Lane("extensions", 4, "", "0..3"),
    ),
)
ACCUSED: Final = Word(
    "the last decline of a unit that re-opened; counts with the flag ACCUSED",
    (Lane("node", 32), Lane("at", 40, "seconds", "of the decline")),
)
KEY: Final = Word(
    "what a proposal is ranked by",
    (Lane("lot", 40, "", "of the seed and the node"), Lane("bucket", 8, "", "score // 500,000")),
)
KEPT: Final = Word(
    "the last checkpoint of a lost lease, kept for the next",
    (
        Lane("seconds", 24, "seconds", "from its start to the checkpoint"),
        Lane("rate", 80, _RATE),
        Lane("node", 32),
        Lane("resume", 4, "", "the attempt that it resumed from itself, 0 none"),
        Lane("before", 28, "seconds", "of the checkpoints that it was made of"),
    ),
)
POSTED: Final = Word(
    "of JobRegistry: where the list of all jobs ends",
    (
        Lane("block", 64, "", "of the last post: its JobPosted names the block of the one before it"),
        Lane("count", 64, "", "jobs posted"),
    ),
)
SHARE: Final = Word(
    "a part of Escrow's split",
    (Lane("account", 160, "", "who is credited"), Lane("amount", 96, "base units")),
)
BOOK: Final = Word(
    "a lock or a credit as Escrow stores it",
    (
        Lane("amount", 255, "base units"),
        Lane("used", 1, "", "from the first amount on: the slot never returns to zero"),
    ),
)
FIELDS: Final = Word(
    "what a judge finds instead of what was submitted; 0 where that stands",
    (Lane("outcome", 4, "", "a unit's"), Lane("seconds", 24, "seconds", "of fuel, where fuel is billed")),
)
SUBMITTER: Final = Word(
    "a word of the terms",
    (Lane("account", 160, "", "the submitter"), Lane("salt", 96, "", "any")),
)
MONEY: Final = Word(
    "a word of the terms",
    (Lane("ceiling", 80, _RATE), Lane("keeper_fee", 80, "base units")),
)
LIMITS: Final = Word(
    "a word of the terms",
    (
        Lane("max_seconds", 24, "seconds"),
        Lane("deadline", 40, "seconds"),
        Lane("units", 24),
        Lane("chunk", 16, "units"),
        Lane("replicas", 4),
        Lane("quorum", 4),
        Lane("match_window", 12, "seconds"),
        Lane("challenge_window", 24, "seconds"),
        Lane("checkpoint_every", 24, "seconds"),
        Lane("max_attempts", 4),
        Lane("billing", 4, values=_members(Billing)),
        Lane("flags", 8, flags=_members(TermsFlag)),
        Lane("bond_bps", 24, "bps", "of the price; the policy's minimum counts where it is more"),
    ),
)
JUDGE: Final = Word("a word of the terms", (Lane("account", 160, "", "the contract that judges, 0 for none"),))
POLICY: Final = Word(
    "the parameters that a job freezes",
    (
        Lane("version", 8, "", "the protocol's, 1"),
        Lane("fee_bps", 10, "bps", "of the pay"),
        Lane("min_bond_bps", 16, "bps", "of the price: what is lost by negligence goes by it"),
        Lane("claim_ramp", 12, "seconds", "in which an open claim's price rises to the ceiling"),
        Lane("fresh_delay", 16, "seconds", "before a result of a node on probation may be settled"),
        Lane("fetch_floor", 12, "seconds", "at least, in which a lease may be declined"),
        Lane("reserved", 8, "", "0 in this version"),
        Lane("min_price", 15, "coded amount"),
        Lane("min_keeper_fee", 15, "coded amount"),
        Lane("probation_price", 15, "coded amount"),
        Lane("min_match_window", 9, "seconds"),
        Lane("ack_time", 10, "seconds"),
        Lane("open_claim_after", 12, "seconds"),
        Lane("cancel_notice", 12, "seconds"),
        Lane("grace_floor", 12, "seconds"),
        Lane("start_fee_seconds", 12, "seconds", "of rate"),
        Lane("min_challenge_window", 20, "seconds", "of a job that names a judge"),
        Lane("key_timeout", 16, "seconds", "not used yet"),
        Lane("reserved_high", 16, "", "0 in this version"),
        Lane("min_checkpoint", 10, "seconds", "of checkpoint_every"),
    ),
)
AMOUNT: Final = Word(
    "a coded amount of a policy",
    (
        Lane("mantissa", 10, "base units", "amount = mantissa x 10^exponent"),
        Lane("exponent", 5),
    ),
)
TOTALS: Final = Word(
    "of NodeRegistry",
    (
        Lane("next_id", 32, "", "the next node's id"),
        Lane("hour", 32, "", "clock hour of burnt"),
        Lane("burnt", 96, "base units", "burnt in that hour"),
        Lane("total", 96, "base units", "of all stake"),
    ),
)

WORDS: Final[dict[str, Word]] = {
    "needs": NEEDS,
    "offer": OFFER,
    "next_ask": NEXT_ASK,
    "owner": OWNER,
    "operator": OPERATOR,
    "hot": HOT,
    "unit": UNIT,
    "header": HEADER,
    "best": BEST,
    "accused": ACCUSED,
    "key": KEY,
    "kept": KEPT,
    "posted": POSTED,
    "share": SHARE,
    "book": BOOK,
    "fields": FIELDS,
    "submitter": SUBMITTER,
    "money": MONEY,
    "limits": LIMITS,
    "judge": JUDGE,
    "policy": POLICY,
    "amount": AMOUNT,
    "totals": TOTALS,
}

_AMOUNTS: Final = ("min_price", "min_keeper_fee", "probation_price")


def shift_of(layout: Word, name: str) -> int:
    """Return the bit at which lane `name` starts."""
    return {lane.name: shift for lane, shift in layout.placed}[name]


def width_of(layout: Word, name: str) -> int:
    """Return the width of lane `name` in bits."""
    return {lane.name: lane.width for lane in layout.lanes}[name]


def pack(layout: Word, values: Mapping[str, int]) -> int:
    """Pack `values` into a word. Raises ValueError naming a value that does not fit its lane."""
    word = 0
    for lane, shift in layout.placed:
        value = 0 if lane.is_zero else int(values[lane.name])
        if not 0 <= value < 1 << lane.width:
            raise ValueError(f"{lane.name} = {value} does not fit in {lane.width} bits")
        word |= value << shift
    return word


def unpack(layout: Word, word: int) -> dict[str, int]:
    """Unpack a word. Raises ValueError where a bit outside the named lanes is set."""
    values: dict[str, int] = {}
    for lane, shift in layout.placed:
        value = word >> shift & (1 << lane.width) - 1
        if not lane.is_zero:
            values[lane.name] = value
        elif value:
            raise ValueError(f"lane {lane.name} is not zero in {word:#x}")
    if word >> layout.bits:
        raise ValueError(f"spare bits are set in {word:#x}")
    return values


def _values(value: object) -> dict[str, int]:
    return {f.name: getattr(value, f.name) for f in fields(value)}  # type: ignore[arg-type]


def encode_amount(amount: int) -> int:
    """Encode a base-unit amount as exponent << 10 | mantissa, amount = mantissa x 10**exponent.

    Raises ValueError where the amount has more than three significant digits and does not fit exactly.
    """
    mantissa, exponent = amount, 0
    while mantissa > 1023 and mantissa % 10 == 0:
        mantissa //= 10
        exponent += 1
    if not 0 <= mantissa <= 1023 or exponent > 31:
        raise ValueError(f"{amount} is not mantissa (<= 1023) x 10**exponent (<= 31)")
    return pack(AMOUNT, {"mantissa": mantissa, "exponent": exponent})


def decode_amount(code: int) -> int:
    """Decode exponent << 10 | mantissa to base units."""
    coded = unpack(AMOUNT, code)
    return int(coded["mantissa"] * 10 ** coded["exponent"])


def pack_needs(needs: Needs) -> int:
    """Pack a job's needs."""
    return pack(NEEDS, _values(needs))


def unpack_needs(word: int) -> Needs:
    """Unpack a job's needs."""
    v = unpack(NEEDS, word)
    return Needs(**{**v, "runtimes": Runtime(v["runtimes"]), "exact": bool(v["exact"])})  # type: ignore[arg-type]


def pack_offer(offer: Offer) -> int:
    """Pack a node's offer."""
    return pack(OFFER, _values(offer))


def unpack_offer(word: int) -> Offer:
    """Unpack a node's offer."""
    v = unpack(OFFER, word)
    return Offer(**{**v, "runtimes": Runtime(v["runtimes"]), "pending": bool(v["pending"])})  # type: ignore[arg-type]


def pack_node_state(state: NodeState) -> int:
    """Pack a node's state."""
    return pack(HOT, _values(state))


def unpack_node_state(word: int) -> NodeState:
    """Unpack a node's state."""
    v = unpack(HOT, word)
    return NodeState(
        **{  # type: ignore[arg-type]
            **v,
            "status": NodeFlag(v["status"]),
            "seasoned": bool(v["seasoned"]),
            "silent": bool(v["silent"]),
        }
    )


def pack_unit(unit: Unit) -> int:
    """Pack a unit's word."""
    return pack(UNIT, _values(unit))


def unpack_unit(word: int) -> Unit:
    """Unpack a unit's word. Raises ValueError for an array's header."""
    v = unpack(UNIT, word)
    return Unit(
        **{  # type: ignore[arg-type]
            **v,
            "state": State(v["state"]),
            "outcome": Outcome(v["outcome"]),
            "node": NodeId(v["node"]),
            "flags": UnitFlag(v["flags"]),
            "resumable": bool(v["resumable"]),
        }
    )


def is_header(word: int) -> bool:
    """Say whether a job's word is an array's header."""
    return word & 15 == HEADER_STATE


def pack_header(header: Header) -> int:
    """Pack an array's header."""
    return pack(HEADER, {**_values(header), "state": HEADER_STATE})


def unpack_header(word: int) -> Header:
    """Unpack an array's header. Raises ValueError for a unit's word."""
    v = unpack(HEADER, word)
    if v.pop("state") != HEADER_STATE:
        raise ValueError(f"{word:#x} is no array header")
    return Header(**{**v, "closed": bool(v["closed"]), "waiting": bool(v["waiting"])})  # type: ignore[arg-type]


def pack_best(best: Best) -> int:
    """Pack the best proposal."""
    return pack(BEST, {**_values(best), "payee": int(best.payee, 16)})


def unpack_best(word: int) -> Best:
    """Unpack the best proposal. The payee is in lower case."""
    v = unpack(BEST, word)
    return Best(payee=f"0x{v['payee']:040x}", node=NodeId(v["node"]), key=v["key"], extensions=v["extensions"])


def pack_accused(accused: Accused) -> int:
    """Pack who declined a unit last, and when."""
    return pack(ACCUSED, _values(accused))


def unpack_accused(word: int) -> Accused:
    """Unpack who declined a unit last, and when."""
    v = unpack(ACCUSED, word)
    return Accused(node=NodeId(v["node"]), at=v["at"])


def pack_kept(kept: Kept) -> int:
    """Pack a kept checkpoint."""
    return pack(KEPT, _values(kept))


def unpack_kept(word: int) -> Kept:
    """Unpack a kept checkpoint, all zero for none."""
    v = unpack(KEPT, word)
    return Kept(**{**v, "node": NodeId(v["node"])})  # type: ignore[arg-type]


def unpack_posted(word: int) -> Posted:
    """Unpack where the list of all jobs ends."""
    return Posted(**unpack(POSTED, word))


def unpack_share(word: int) -> tuple[str, int]:
    """Unpack a share of Escrow's split: the account in lower case, and base units."""
    v = unpack(SHARE, word)
    return f"0x{v['account']:040x}", v["amount"]


def pack_policy(policy: Policy) -> int:
    """Pack the parameters of new jobs. Raises ValueError for an amount that has no exact code."""
    values = _values(policy)
    return pack(POLICY, {**values, **{name: encode_amount(values[name]) for name in _AMOUNTS}})


@lru_cache(maxsize=64)
def unpack_policy(word: int) -> Policy:
    """Unpack the parameters of a job. Jobs share them, so that few words are unpacked again and again.

    `Terms` holds the word: an amount has more than one spelling, and a job's id is of the one that was posted.
    """
    v = unpack(POLICY, word)
    return Policy(**{**v, **{name: decode_amount(v[name]) for name in _AMOUNTS}})


TermsWords = tuple[int, bytes, int, int, int, int, int, int, bytes]
"""submitter, spec, needs, money, limits, judge_data, judge, policy, parents_hash: the struct `IJobRegistry.Terms`."""


def pack_terms(terms: Terms) -> TermsWords:
    """Pack terms into the nine words of `IJobRegistry.Terms`. Raises ValueError naming a field out of its lane."""
    values = _values(terms)
    for name in ("spec", "parents_hash"):
        if len(values[name]) != 32:  # type: ignore[arg-type]
            raise ValueError(f"{name} is not 32 bytes")
    return (
        pack(SUBMITTER, {"account": int(terms.submitter, 16), "salt": terms.salt}),
        bytes(terms.spec),
        pack_needs(terms.needs),
        pack(MONEY, values),
        pack(LIMITS, values),
        terms.judge_data,
        pack(JUDGE, {"account": int(terms.judge, 16)}),
        terms.policy,
        bytes(terms.parents_hash),
    )


def unpack_terms(words: TermsWords) -> Terms:
    """Unpack the nine words. Addresses are in lower case. Raises ValueError where spare bits are set."""
    submitter, spec, needs, money, limits, judge_data, judge, policy, parents_hash = words
    payer = unpack(SUBMITTER, submitter)
    v = unpack(LIMITS, limits)
    v.update(unpack(MONEY, money))
    return Terms(
        submitter=f"0x{payer['account']:040x}",
        salt=payer["salt"],
        spec=bytes(spec),
        needs=unpack_needs(needs),
        judge_data=judge_data,
        judge=f"0x{unpack(JUDGE, judge)['account']:040x}",
        policy=policy,
        parents_hash=bytes(parents_hash),
        **{**v, "billing": Billing(v["billing"]), "flags": TermsFlag(v["flags"])},  # type: ignore[arg-type]
    )
