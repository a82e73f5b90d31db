"""Drawn terms, policies, units and nodes: half of them as markets have them, half with lanes at their ends."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

from hearth.market.profiles import PUBLIC
from hearth.protocol import words
from hearth.protocol.types import (
    ZERO_ADDRESS,
    ZERO_HASH,
    Billing,
    Needs,
    Node,
    NodeFlag,
    NodeId,
    NodeState,
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
from tests.web.vectors._plain import plain

SUBMITTER = "0x" + "5a" * 20
NOW = 1_760_000_000


def lane(random: Random, bits: int, least: int = 0) -> int:
    """Draw a value of a lane: its ends often, small values often."""
    top = (1 << bits) - 1
    ends = (least, least + 1, top - 1, top)
    return random.choice(
        (random.choice(ends), random.randint(least, min(top, least + 100)), random.randint(least, top))
    )


def word_values(random: Random, layout: words.Word, least: int = 0) -> dict[str, int]:
    """Draw every lane of a word."""
    return {one.name: lane(random, one.width, min(least, 1)) for one in layout.lanes if not one.is_zero}


def drawn_policy(random: Random) -> Policy:
    """Draw a policy: the public one with a few of its lanes drawn."""
    changed: dict[str, Any] = {
        name: lane(random, words.width_of(words.POLICY, name), 1)
        for name in ("fee_bps", "min_bond_bps", "claim_ramp", "fresh_delay", "fetch_floor", "open_claim_after")
        + ("ack_time", "grace_floor", "start_fee_seconds")
        if random.random() < 0.4
    }
    if random.random() < 0.5:
        changed["probation_price"] = random.randrange(1024) * 10 ** random.randrange(24)
    return replace(PUBLIC.policy, **changed)


def drawn_needs(random: Random) -> Needs:
    """Draw needs: small ones most often."""
    if random.random() < 0.3:
        values = word_values(random, words.NEEDS)
        return Needs(**{**values, "runtimes": Runtime(values["runtimes"] & 15)})  # type: ignore[arg-type]
    return Needs(
        runtimes=random.choice((Runtime.WASM, Runtime.DOCKER, Runtime.DOCKER | Runtime.NVIDIA)),
        tier=random.choice((0, 0, 17, 32)),
        gpu_count=random.choice((0, 0, 1, 2)),
        vram_gib=random.choice((0, 8, 10, 24)),
        cores=random.choice((0, 1, 4)),
        ram_gib=random.choice((0, 1, 16)),
        disk_gib=random.choice((0, 1, 100)),
        zone_mask=random.choice((0, 0, 0xFFFF, 1 << 4, random.getrandbits(16))),
        home=random.randrange(16),
    )


def drawn_terms(random: Random, policy: Policy) -> Terms:
    """Draw terms under a policy."""
    wild = random.random() < 0.5

    def drawn(bits: int, usual: int, least: int = 0) -> int:
        return lane(random, bits, least) if wild else usual

    chunk = random.choice((1, 1, 2, 5))
    return Terms(
        submitter=SUBMITTER,
        salt=random.getrandbits(8),
        spec=b"\x01" * 32,
        needs=drawn_needs(random),
        ceiling=drawn(80, random.randrange(1, 10**18), least=0 if random.random() < 0.05 else 1),
        max_seconds=drawn(24, random.choice((60, 61, 3_600, 86_400, random.randrange(1, 10**5))), least=1),
        deadline=drawn(40, NOW + random.randrange(-10_000, 1_000_000)),
        keeper_fee=drawn(80, random.choice((0, 1_001, 10**14, random.randrange(10**15)))),
        policy=words.pack_policy(policy),
        units=chunk * random.choice((1, 1, 2, 3, 1_000)),
        chunk=chunk,
        replicas=random.choice((1, 1, 1, 2, 3)),
        quorum=random.choice((1, 2)),
        match_window=drawn(12, random.choice((0, 15, 60))),
        challenge_window=drawn(24, random.choice((0, 3_600))),
        checkpoint_every=drawn(24, 0),
        max_attempts=random.randrange(1, 9),
        billing=random.choice(list(Billing)),
        flags=TermsFlag(random.choice((0, 0, 0, 4, 8, 12, 16))),
        bond_bps=drawn(24, random.choice((0, 5_000, 10_000))),
        judge=random.choice((ZERO_ADDRESS, "0x" + "7b" * 20)),
        parents_hash=random.choice((ZERO_HASH, ZERO_HASH, b"\x02" * 32)),
    )


def drawn_unit(random: Random, *, state: State | None = None) -> Unit:
    """Draw a unit; its times are near NOW most often, and in order."""
    wild = random.random() < 0.2
    started = lane(random, 40) if wild else NOW - random.choice((0, 1, 100, 3_000, random.randrange(100_000)))
    mark = lane(random, 40) if wild else started + random.choice((0, 1, 60, 3_600, random.randrange(100_000)))
    return Unit(
        state=random.choice(list(State)) if state is None else state,
        outcome=random.choice((Outcome.OK, random.choice(list(Outcome)))),
        node=NodeId(random.choice((0, 1, 2, 3, lane(random, 32)))),
        rate=random.choice((0, random.randrange(10**18), lane(random, 80))),
        started=started,
        mark=random.choice((0, min(mark, 2**40 - 1))),
        seconds=random.choice((0, 17, random.randrange(100_000), lane(random, 24))),
        attempts=lane(random, 4),
        tips=random.choice((0, 1, 2)),
        lapses=random.choice((0, 0, 1, 2, 3)),
        flags=UnitFlag(random.choice((0, 32, 64, 128, 144, random.getrandbits(8)))),
        resume=random.choice((0, 0, 1, 2, 3)),
        resumable=random.random() < 0.5,
    )


def drawn_offer(random: Random) -> Offer:
    """Draw an offer: one that fits usual needs most often."""
    if random.random() < 0.3:
        values = word_values(random, words.OFFER)
        values["slots"] = max(1, values["slots"])
        kinds = {"runtimes": Runtime(values["runtimes"]), "pending": bool(values["pending"])}
        return Offer(**{**values, **kinds})  # type: ignore[arg-type]
    return Offer(
        runtimes=Runtime(random.choice((1, 7, 7, 15))),
        tier=random.choice((0, 17, 19, 32, 46)),
        gpu_count=random.choice((0, 1, 2, 8)),
        vram_gib=random.choice((0, 24, 80)),
        cores=random.choice((1, 4, 12)),
        ram_gib=random.choice((1, 16, 64)),
        disk_gib=random.choice((1, 100, 1_000)),
        zone=random.randrange(16),
        slots=random.choice((1, 2, 3, 63)),
        pending=random.random() < 0.3,
        ask=random.choice((0, 1, random.randrange(10**18), random.randrange(10**10))),
    )


def drawn_node_state(random: Random) -> NodeState:
    """Draw a node's state: a living one most often."""
    if random.random() < 0.2:
        values = word_values(random, words.HOT)
        kinds = {name: bool(values[name]) for name in ("seasoned", "silent")}
        return NodeState(**{**values, **kinds, "status": NodeFlag(values["status"])})  # type: ignore[arg-type]
    return NodeState(
        beat=NOW - random.choice((0, 10, 899, 900, 901, 5_000, NOW)),
        busy=random.choice((0, 0, 1, 2, 63)),
        bond=random.choice((0, 0, random.randrange(10**20), 10**18)),
        r=random.choice((0, random.getrandbits(20), lane(random, 26))),
        s=random.choice((0, random.getrandbits(20), lane(random, 26))),
        rep_time=NOW - random.randrange(10**7),
        cusum=random.choice((0, 64, 128, lane(random, 8))),
        quarantine=random.choice((0, 0, NOW, NOW - 1, NOW + 1, NOW + 5_000)),
        trips=lane(random, 4),
        status=NodeFlag(random.choice((0, 0, 0, 1, 2, 4))),
        seasoned=random.random() < 0.6,
        count=lane(random, 5),
        silent=random.random() < 0.5,
    )


def terms_words(terms: Terms) -> list[str]:
    """Return the nine words of terms in hexadecimal."""
    return [hex(one) if isinstance(one, int) else plain(one) for one in words.pack_terms(terms)]


def drawn_node(random: Random) -> Node:
    """Draw a node of a market."""
    offer = drawn_offer(random)
    return Node(
        NodeId(random.choice((1, 2, 3, 2**32 - 1))),
        owner="0x" + "0a" * 20,
        operator=random.choice(("0x" + "0b" * 20, "0x" + "0b" * 20, SUBMITTER, ZERO_ADDRESS)),
        stake=random.choice((10**18, 10**18, 5 * 10**17, 5 * 10**17 - 1, 0, random.getrandbits(80))),
        offer=offer,
        state=drawn_node_state(random),
        next_ask=random.choice((0, offer.ask + 1, offer.ask // 2)),
        next_ask_at=NOW + random.choice((-1, 0, 1, 600)),
        exit_at=random.choice((0, 0, 0, NOW - 1, NOW + 1)),
    )


def node_fields(node: Node) -> dict[str, Any]:
    """Return a node as Lens says it: its words in hexadecimal."""
    return {
        "id": node.id,
        "owner": node.owner,
        "operator": node.operator,
        "stake": str(node.stake),
        "offer": hex(words.pack_offer(node.offer)),
        "hot": hex(words.pack_node_state(node.state)),
        "nextAsk": str(node.next_ask),
        "nextAskAt": node.next_ask_at,
        "exitAt": node.exit_at,
    }
