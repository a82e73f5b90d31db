"""Pack and unpack the 256-bit words that the contracts store and emit.

Every layout is one table of lanes (name, width), least significant first, equal to `contracts/packing.vy` and SPEC
section "Words". Packing refuses a value that does not fit its lane; unpacking refuses spare bits where the contract
does (terms), since a second spelling would be a second id.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Final

from hearth.protocol.types import (
    Best,
    Billing,
    Header,
    Hot,
    HotStatus,
    Needs,
    NodeId,
    Offer,
    Outcome,
    Policy,
    Runtime,
    State,
    Terms,
    TermsFlag,
    Unit,
    UnitFlag,
)

Lanes = tuple[tuple[str, int], ...]
"""(name, width in bits), least significant first. A name that starts with `_` is a lane that stays zero."""

_SIZES: Final[Lanes] = (
    ("tier", 6),
    ("_guard_tier", 1),
    ("gpu_count", 6),
    ("_guard_gpu_count", 1),
    ("vram_gib", 10),
    ("_guard_vram", 1),
    ("cores", 10),
    ("_guard_cores", 1),
    ("ram_gib", 14),
    ("_guard_ram", 1),
    ("disk_gib", 17),
    ("_guard_disk", 1),
)
NEEDS: Final[Lanes] = (*_SIZES, ("runtimes", 8), ("zone_mask", 16), ("home", 4))
OFFER: Final[Lanes] = (*_SIZES, ("runtimes", 8), ("zone", 4), ("slots", 6), ("pending", 1), ("ask", 80))
HOT: Final[Lanes] = (
    ("beat", 32),
    ("busy", 6),
    ("bond", 80),
    ("r", 26),
    ("s", 26),
    ("rep_time", 32),
    ("cusum", 8),
    ("quarantine", 32),
    ("trips", 4),
    ("status", 3),
    ("seasoned", 1),
    ("count", 6),
)
UNIT: Final[Lanes] = (
    ("state", 4),
    ("outcome", 4),
    ("node", 32),
    ("rate", 80),
    ("started", 40),
    ("mark", 40),
    ("seconds", 24),
    ("attempts", 4),
    ("tips", 4),
    ("lapses", 4),
    ("flags", 5),
    ("resume", 15),
)
HEADER: Final[Lanes] = (
    ("state", 4),
    ("closed", 1),
    ("_gap", 3),
    ("touched", 24),
    ("done", 24),
    ("failed", 24),
    ("opened", 40),
)
BEST: Final[Lanes] = (("payee", 160), ("node", 32), ("key", 48), ("extensions", 4))
MONEY: Final[Lanes] = (("ceiling", 80), ("keeper_fee", 80))
LIMITS: Final[Lanes] = (
    ("max_seconds", 24),
    ("deadline", 40),
    ("units", 24),
    ("chunk", 16),
    ("replicas", 4),
    ("quorum", 4),
    ("match_window", 12),
    ("challenge_window", 24),
    ("checkpoint_every", 24),
    ("max_attempts", 4),
    ("billing", 4),
    ("flags", 8),
)
POLICY: Final[Lanes] = (
    ("version", 8),
    ("fee_bps", 10),
    ("bond_none_bps", 16),
    ("bond_optimistic_bps", 16),
    ("bond_redundant_bps", 16),
    ("bond_proof_bps", 16),
    ("min_price", 15),
    ("min_keeper_fee", 15),
    ("probation_price", 15),
    ("min_match_window", 9),
    ("ack_time", 10),
    ("open_claim_after", 12),
    ("cancel_notice", 12),
    ("grace_floor", 12),
    ("start_fee_seconds", 12),
    ("min_challenge_window", 20),
    ("key_timeout", 16),
    ("audit_share_bps", 10),
    ("min_jurors", 6),
    ("min_checkpoint", 10),
)
TOTALS: Final[Lanes] = (("next_id", 32), ("hour", 32), ("burnt", 96), ("total", 96))

_AMOUNTS: Final = ("min_price", "min_keeper_fee", "probation_price")
HEADER_STATE: Final = 15
"""The state nibble that marks an array's header."""


def shift_of(lanes: Lanes, name: str) -> int:
    """Return the bit at which lane `name` starts."""
    shift = 0
    for lane, width in lanes:
        if lane == name:
            return shift
        shift += width
    raise KeyError(name)


def width_of(lanes: Lanes, name: str) -> int:
    """Return the width of lane `name` in bits."""
    return dict(lanes)[name]


def pack(lanes: Lanes, values: Mapping[str, int]) -> int:
    """Pack `values` into a word. Raises ValueError naming a value that does not fit its lane."""
    word = 0
    shift = 0
    for name, width in lanes:
        value = 0 if name.startswith("_") else int(values[name])
        if not 0 <= value < 1 << width:
            raise ValueError(f"{name} = {value} does not fit in {width} bits")
        word |= value << shift
        shift += width
    return word


def unpack(lanes: Lanes, word: int) -> dict[str, int]:
    """Unpack a word. Raises ValueError where a bit outside the named lanes is set."""
    values: dict[str, int] = {}
    rest = word
    for name, width in lanes:
        value = rest & ((1 << width) - 1)
        rest >>= width
        if not name.startswith("_"):
            values[name] = value
        elif value:
            raise ValueError(f"lane {name} is not zero in {word:#x}")
    if rest:
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
    return exponent << 10 | mantissa


def decode_amount(code: int) -> int:
    """Decode exponent << 10 | mantissa to base units."""
    return int((code & 1023) * 10 ** (code >> 10))


def pack_needs(needs: Needs) -> int:
    """Pack a job's needs."""
    return pack(NEEDS, _values(needs))


def unpack_needs(word: int) -> Needs:
    """Unpack a job's needs."""
    v = unpack(NEEDS, word)
    return Needs(**{**v, "runtimes": Runtime(v["runtimes"])})  # type: ignore[arg-type]


def pack_offer(offer: Offer) -> int:
    """Pack a node's offer."""
    return pack(OFFER, _values(offer))


def unpack_offer(word: int) -> Offer:
    """Unpack a node's offer."""
    v = unpack(OFFER, word)
    return Offer(**{**v, "runtimes": Runtime(v["runtimes"]), "pending": bool(v["pending"])})  # type: ignore[arg-type]


def pack_hot(hot: Hot) -> int:
    """Pack a node's hot word."""
    return pack(HOT, _values(hot))


def unpack_hot(word: int) -> Hot:
    """Unpack a node's hot word."""
    v = unpack(HOT, word)
    return Hot(**{**v, "status": HotStatus(v["status"]), "seasoned": bool(v["seasoned"])})  # type: ignore[arg-type]


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
    return Header(**{**v, "closed": bool(v["closed"])})  # type: ignore[arg-type]


def pack_best(best: Best) -> int:
    """Pack the best proposal."""
    return pack(BEST, {**_values(best), "payee": int(best.payee, 16)})


def unpack_best(word: int) -> Best:
    """Unpack the best proposal. The payee is in lower case."""
    v = unpack(BEST, word)
    return Best(payee=f"0x{v['payee']:040x}", node=NodeId(v["node"]), key=v["key"], extensions=v["extensions"])


def pack_policy(policy: Policy) -> int:
    """Pack the parameters of new jobs. Raises ValueError for an amount that has no exact code."""
    values = _values(policy)
    return pack(POLICY, {**values, **{name: encode_amount(values[name]) for name in _AMOUNTS}})


def unpack_policy(word: int) -> Policy:
    """Unpack the parameters of a job."""
    v = unpack(POLICY, word)
    return Policy(**{**v, **{name: decode_amount(v[name]) for name in _AMOUNTS}})


TermsWords = tuple[int, bytes, int, int, int, int, int, int, bytes]
"""submitter, spec, needs, money, limits, verifier, court, policy, parents_hash: the struct `IJobRegistry.Terms`."""


def pack_terms(terms: Terms) -> TermsWords:
    """Pack terms into the nine words of `IJobRegistry.Terms`. Raises ValueError naming a field out of its lane."""
    values = _values(terms)
    if not 0 <= terms.salt < 1 << 96:
        raise ValueError(f"salt = {terms.salt} does not fit in 96 bits")
    for name in ("spec", "parents_hash"):
        if len(values[name]) != 32:  # type: ignore[arg-type]
            raise ValueError(f"{name} is not 32 bytes")
    return (
        terms.salt << 160 | int(terms.submitter, 16),
        bytes(terms.spec),
        pack_needs(terms.needs),
        pack(MONEY, values),
        pack(LIMITS, values),
        int(terms.verifier, 16),
        int(terms.court, 16),
        terms.policy,
        bytes(terms.parents_hash),
    )


def unpack_terms(words: TermsWords) -> Terms:
    """Unpack the nine words. Addresses are in lower case. Raises ValueError where spare bits are set."""
    submitter, spec, needs, money, limits, verifier, court, policy, parents_hash = words
    if verifier >> 160 or court >> 160:
        raise ValueError("spare bits are set in verifier or court")
    v = unpack(LIMITS, limits)
    v.update(unpack(MONEY, money))
    return Terms(
        submitter=f"0x{submitter & (1 << 160) - 1:040x}",
        salt=submitter >> 160,
        spec=bytes(spec),
        needs=unpack_needs(needs),
        verifier=f"0x{verifier:040x}",
        court=f"0x{court:040x}",
        policy=policy,
        parents_hash=bytes(parents_hash),
        **{**v, "billing": Billing(v["billing"]), "flags": TermsFlag(v["flags"])},  # type: ignore[arg-type]
    )
