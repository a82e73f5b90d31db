"""Seeded fleets and jobs for the benchmarks and for the tests of the matcher.

Amounts are those of a native-coin market: a rate of 0.1 coin an hour is 2.8e19 base units x 1e6 per second, more
than 64 bits, so that the wide columns are what is measured.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Final, Literal

from hearth.market.profiles import PUBLIC
from hearth.protocol import words
from hearth.protocol.formulas import Immutables
from hearth.protocol.types import JobId, Needs, Node, NodeId, NodeState, Offer, Runtime, Terms, TermsFlag

Kind = Literal["random", "all equal", "one tier"]
KINDS: Final[tuple[Kind, ...]] = ("random", "all equal", "one tier")

NOW: Final = 1_700_000_000
IMMUTABLES: Final = Immutables(dead_after=900, minimum_stake=10**17)
COIN: Final = 10**18
RATE_PER_HOUR: Final = COIN * 10**6 // 3_600

# The public profile, with minima low enough for the cheapest of the jobs below.
POLICY: Final = replace(PUBLIC.policy, min_price=10**9, min_keeper_fee=10**9)
POLICY_WORD: Final = words.pack_policy(POLICY)

# (tier, VRAM GiB, rate per hour in 1/1000 coin) of a few GPU classes
_CLASSES: Final = ((8, 12, 20), (14, 24, 40), (20, 24, 60), (30, 48, 90), (40, 80, 150), (44, 141, 250))


_ZONE: Final = 5
"""Where the all-equal fleet is: every job allows it."""


@dataclass(frozen=True, slots=True)
class Job:
    """A job to match: its terms with the id that the market would give them."""

    id: JobId
    terms: Terms


def fleet(kind: Kind, size: int, seed: int = 1) -> list[Node]:
    """Return `size` nodes, ids from 1: of random classes, all alike, or of one tier with differing prices."""
    draw = random.Random(seed)
    return [_node(draw, kind, i) for i in range(1, size + 1)]


def _node(draw: random.Random, kind: Kind, number: int) -> Node:
    if kind == "all equal":
        tier, vram, rate, zone, cores, ram, slots, busy = 20, 24, 60 * RATE_PER_HOUR // 1_000, _ZONE, 16, 64, 1, 0
        state = NodeState(beat=NOW - 100, r=20 << 20, rep_time=NOW - 5_000, seasoned=True)
    else:
        tier, vram, milli = draw.choice(_CLASSES) if kind == "random" else _CLASSES[3]
        rate = milli * RATE_PER_HOUR // 1_000 * draw.randint(700, 1_500) // 1_000
        zone, cores, ram = draw.randrange(16), draw.choice((8, 16, 32, 64)), draw.choice((32, 64, 128, 256))
        slots = draw.choice((1, 1, 2, 4, 8))
        busy = draw.randint(0, slots)
        state = NodeState(
            beat=NOW - draw.choice((50, 120, 299, 400, 899, 900, 5_000)),
            busy=busy,
            bond=busy * draw.randint(0, COIN // 50),
            r=draw.randrange(40 << 20),
            s=draw.randrange(6 << 20),
            rep_time=NOW - draw.randrange(10**6),
            quarantine=NOW + 3_600 if draw.random() < 0.02 else 0,
            seasoned=draw.random() < 0.8,
        )
    return Node(
        id=NodeId(number),
        owner=f"0x{number + 0x10000:040x}",
        operator=f"0x{number + 0x20000:040x}",
        stake=5 * COIN + number,
        offer=Offer(
            runtimes=Runtime.WASM | Runtime.DOCKER | Runtime.NVIDIA,
            tier=tier,
            gpu_count=1,
            vram_gib=vram,
            cores=cores,
            ram_gib=ram,
            disk_gib=500,
            zone=zone,
            slots=slots,
            ask=rate,
        ),
        state=state,
    )


def jobs(count: int, seed: int = 2, kind: Kind = "random") -> list[Job]:
    """Return `count` jobs that a fleet of this kind can take, from a little WASM to its largest GPU."""
    draw = random.Random(seed)
    return [_job(draw, kind) for _ in range(count)]


def _job(draw: random.Random, kind: Kind) -> Job:
    tier, vram, milli = draw.choice(_CLASSES) if kind == "random" else _CLASSES[2 if kind == "all equal" else 3]
    gpu = draw.random() < 0.8
    terms = Terms(
        submitter=f"0x{draw.randrange(1 << 160):040x}",
        salt=draw.randrange(1 << 96),
        spec=draw.randbytes(32),
        needs=Needs(
            runtimes=Runtime.DOCKER | Runtime.NVIDIA if gpu else Runtime.WASM,
            tier=tier if gpu else 0,
            gpu_count=1 if gpu else 0,
            vram_gib=vram if gpu else 0,
            cores=draw.choice((1, 4, 8)),
            ram_gib=draw.choice((2, 16, 32)),
            disk_gib=draw.choice((1, 40)),
            zone_mask=draw.choice((0, 0, draw.randrange(1, 1 << 16) | 1 << _ZONE)),
            home=draw.randrange(16),
        ),
        ceiling=milli * RATE_PER_HOUR // 1_000 * draw.randint(1_000, 3_000) // 1_000,
        max_seconds=draw.choice((60, 600, 3_600)),
        deadline=NOW + 86_400,
        keeper_fee=10**15,
        policy=POLICY_WORD,
        match_window=12,
        max_attempts=3,
        flags=draw.choice((TermsFlag(0), TermsFlag.NEWCOMERS)),
    )
    return Job(JobId(draw.randbytes(32)), terms)
