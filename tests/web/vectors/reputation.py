"""Records of nodes: decay, estimate, observations and verdicts."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

from hearth.protocol import reputation, words
from hearth.protocol.reputation import HALF_LIFE, ONE, STEP, VERDICT
from hearth.protocol.types import NodeState
from tests.web.vectors import _chance, _drawn
from tests.web.vectors._drawn import NOW, lane
from tests.web.vectors._plain import outcome, plain


def cases() -> dict[str, Any]:
    """Return the calls of each function, and a row of observations in which each starts from the last one's state."""
    random = _chance.source("reputation")
    steps = [0, 1, 128, 255, 256, 257, 384, 8_191, 8_192, 2**32, -1, -256, -257]
    steps += [random.randrange(8_300) for _ in _chance.rows(8)]
    values = [0, 1, ONE, 50 * ONE, (1 << 26) - 1]
    lanes = [(lane(random, 26), lane(random, 26)) for _ in _chance.rows(6)]
    return {
        "decay": [_decay(random.choice((*values, lane(random, 26))), one) for one in steps],
        "reputation": [{"r": r, "s": s, "out": reputation.reputation(r, s)} for r, s in [(0, 0), (ONE, 0), *lanes]],
        "observe": [*_row(random), *_seasoning(), *(_observe(random) for _ in _chance.rows(25))],
        "reject": [_reject(random) for _ in _chance.rows(5)],
    }


def _decay(value: int, steps: int) -> dict[str, Any]:
    return {"value": value, "steps": steps, **outcome(lambda: reputation.decay(value, steps))}


def _state(state: NodeState) -> dict[str, Any]:
    """Return a state as its values: what is observed last may be more than the lanes hold."""
    return {name: value for name, value in plain(state).items() if name not in ("bond", "beat", "busy")}


def _observed(state: NodeState, ok: bool, weight: int, now: int) -> dict[str, Any]:
    found = outcome(lambda: _state(reputation.observe(state, ok, weight, now)))
    return {"hot": hex(words.pack_node_state(state)), "ok": ok, "weight": weight, "now": now, **found}


def _row(random: Random) -> list[dict[str, Any]]:
    state, now, row = NodeState(rep_time=NOW), NOW, []
    for _ in _chance.rows(20):
        now += random.choice((0, 60, STEP - 1, STEP, random.randrange(HALF_LIFE)))
        ok = random.random() < 0.6
        weight = random.choice((ONE, ONE, ONE // 3, 0, random.randrange(ONE)))
        row.append(_observed(state, ok, weight, now))
        state = reputation.observe(state, ok, weight, now)
    return row


def _seasoning() -> list[dict[str, Any]]:
    """Return the success with which a node is off probation, and one that is just too light."""
    state = NodeState(r=reputation.SEASONED_AT - ONE, rep_time=NOW)
    return [_observed(state, True, weight, NOW) for weight in (ONE, ONE - 1)]


def _observe(random: Random) -> dict[str, Any]:
    state = _drawn.drawn_node_state(random)
    # A quarantine of 2106 does not fit its lane, but a number holds it.
    now = max(0, state.rep_time + random.choice((0, STEP - 1, STEP, HALF_LIFE, random.randrange(10**8), -1, -STEP)))
    if random.random() < 0.3:
        state = replace(state, count=31, trips=random.choice((0, 1, 15)))
    if random.random() < 0.3:
        # Just below the trip, or a failure that fills a part of a 64th.
        state = replace(state, cusum=random.choice((128, 129, 191)), s=random.choice((0, ONE // 64 - 1, ONE // 64)))
    weight = random.choice((0, 1, ONE // 64, ONE // 64 + 1, ONE // 2, ONE - 1, ONE, VERDICT, random.randrange(ONE)))
    return _observed(state, random.random() < 0.5, weight, now)


def _reject(random: Random) -> dict[str, Any]:
    state = _drawn.drawn_node_state(random)
    now = max(0, state.rep_time + random.choice((0, STEP, random.randrange(10**7), -STEP)))
    found = outcome(lambda: _state(reputation.reject(state, now)))
    return {"hot": hex(words.pack_node_state(state)), "now": now, **found}
