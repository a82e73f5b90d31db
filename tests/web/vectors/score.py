"""Scores, and keys in which a lot breaks ties: the worked example of protocol.md "Matching", and drawn ones."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

from hearth.protocol import formulas, words
from hearth.protocol.reputation import ONE
from hearth.protocol.types import JobId, Needs, NodeId, NodeState, Offer
from tests.web.vectors import _chance, _drawn
from tests.web.vectors._drawn import lane, terms_words
from tests.web.vectors._plain import outcome, plain

COUNT = 30


def cases() -> dict[str, Any]:
    """Return what is scored with its score, what a lot is drawn of with lot and key, and scores as they are ranked."""
    random = _chance.source("score")
    needs = Needs(tier=400, vram_gib=10, ram_gib=16, cores=4, zone_mask=1 << 4, home=5)
    offer = Offer(tier=450, vram_gib=24, ram_gib=64, cores=12, zone=4, slots=3, ask=400_000)
    example = _score(needs, 1_000_000, 400_000, offer, NodeState(r=3 * ONE, s=ONE, busy=1))
    return {
        "scores": [example, *(_drawn_score(random) for _ in _chance.rows(COUNT))],
        "keys": [_key(random) for _ in _chance.rows(12)],
        "ranked": [_ranked(random) for _ in _chance.rows(3)],
    }


def _score(needs: Needs, ceiling: int, rate: int, offer: Offer, state: NodeState) -> dict[str, Any]:
    return {
        "needs": hex(words.pack_needs(needs)),
        "ceiling": plain(ceiling),
        "rate": plain(rate),
        "offer": hex(words.pack_offer(offer)),
        "hot": hex(words.pack_node_state(state)),
        **outcome(lambda: formulas.score(needs, ceiling, rate, offer, state)),
    }


def _drawn_score(random: Random) -> dict[str, Any]:
    offer, needs = _drawn.drawn_offer(random), _drawn.drawn_needs(random)
    if random.random() < 0.03:
        offer = replace(offer, slots=0)
    if random.random() < 0.5:
        needs = replace(needs, tier=max(0, offer.tier - random.randrange(6)))
    ceiling = (
        0
        if random.random() < 0.03
        else random.choice((1, 10**6, random.randrange(1, 10**18), lane(random, 80, 1), lane(random, 80, 1)))
    )
    rate = random.choice((0, ceiling, ceiling // 2, random.randint(0, ceiling), ceiling + 1, lane(random, 80)))
    state = _drawn.drawn_node_state(random)
    if random.random() < 0.7:
        state = replace(state, busy=random.randint(0, offer.slots))
    return _score(needs, ceiling, rate, offer, state)


def _key(random: Random) -> dict[str, Any]:
    job = JobId(random.randbytes(32))
    index, attempts = random.choice((0, 1, lane(random, 24))), random.randrange(16)
    node = NodeId(random.choice((1, lane(random, 32))))
    score = random.choice((0, 499_999, 500_000, 10**8, random.randrange(10**8)))
    seed = formulas.seed(job, index, attempts)
    return {
        "job": plain(bytes(job)),
        "index": index,
        "attempts": attempts,
        "node": node,
        "score": score,
        "seed": plain(seed),
        "lot": formulas.lot(seed, node),
        "key": formulas.key(score, seed, node),
    }


def _ranked(random: Random) -> dict[str, Any]:
    terms = _drawn.drawn_terms(random, _drawn.drawn_policy(random))
    index, score = random.choice((0, 0, 1, 2)), random.randrange(1, 10**8)
    return {"terms": terms_words(terms), "index": index, "score": score, "out": formulas.ranked(terms, index, score)}
