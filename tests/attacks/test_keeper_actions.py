"""Attack 24: every keeper action at every stage of a job, early, in the wrong state, and twice.

What is due succeeds once. All else is refused with its reason and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hearth.protocol import words
from hearth.protocol.types import SENTINEL
from tests.attacks.stages import STAGES, Scene, scene
from tests.kit import world as w
from tests.kit.evm import Reverted

SETTLE, CLOSE, RECLAIM, EXPIRE, LIVENESS = 1, 2, 3, 4, 5
NOTHING = "lens: nothing to do"


def _upkeep(op: int, index: int = 0, count: int = 0) -> Callable[[Scene], Any]:
    def call(s: Scene) -> Any:
        at = s.node if op == LIVENESS else index
        return s.world.lens.send.performUpkeep(
            [(op, words.pack_terms(s.terms), at, count)], w.ZERO, sender=s.world.keeper
        )

    return call


ACTIONS: dict[str, Callable[[Scene], Any]] = {
    "settle": lambda s: s.world.settle(s.terms),
    "settle_batch": lambda s: s.world.jobs.send.settle_batch([(words.pack_terms(s.terms), 0)], w.ZERO),
    "accept": lambda s: s.world.accept(s.terms),
    "close": lambda s: s.world.close(s.terms),
    "reclaim": lambda s: s.world.reclaim(s.terms),
    "expire": lambda s: s.world.expire(s.terms),
    "expire all": lambda s: s.world.expire(s.terms, SENTINEL),
    "unlock": lambda s: s.world.unlock(s.terms, parents=s.world.parents.get(s.world.id_of(s.terms), ())),
    "check_liveness": lambda s: s.world.nodes.send.check_liveness([s.node], w.ZERO),
    "upkeep settle": _upkeep(SETTLE),
    "upkeep close": _upkeep(CLOSE),
    "upkeep reclaim": _upkeep(RECLAIM),
    "upkeep expire": _upkeep(EXPIRE),
    "upkeep expire all": _upkeep(EXPIRE, SENTINEL),
    "upkeep liveness": _upkeep(LIVENESS, count=1),
    "upkeep unknown": _upkeep(6),
}
# What is due at a stage, beside what the stage of that name in `upkeep` makes due.
DUE: dict[str, set[str]] = {
    "expirable": {"expire"},
    "overdue": {"reclaim"},
    "last overdue": {"reclaim"},
    "silent": {"reclaim"},
    "noticed": {"close"},
    "submitted": {"settle", "settle_batch", "accept"},
    "judged": {"accept"},
    "window over": {"settle", "settle_batch", "accept"},
    "stale": {"settle", "settle_batch"},
    "proven": {"accept"},
    "unproven": {"settle", "settle_batch", "accept"},
    "array expirable": {"expire all"},
    "blocked expirable": {"expire"},
    "array blocked expirable": {"expire all"},
    "unlockable": {"unlock"},
    "failing": {"unlock"},
    "array unlockable": {"unlock"},
    "array failing": {"unlock"},
    "array submitted": {"settle", "settle_batch", "accept"},
    "resumed submitted": {"settle", "settle_batch", "accept"},
}
# Stages at which the node itself has been silent for longer than it may.
MUTE = {
    *("expirable", "overdue", "last overdue", "silent", "array expirable", "refunded", "expired"),
    *("window over", "stale", "unproven", "blocked expirable", "array blocked expirable"),
}
# Those of them at which it runs something: the silence of another pays nothing, and upkeep leaves it.
MUTE_AND_BUSY = {"overdue", "last overdue", "silent"}


def due(stage: str) -> set[str]:
    """Return the actions that are due at a stage."""
    found = set(DUE.get(stage, set()))
    found |= {f"upkeep {name}" for name in found if f"upkeep {name}" in ACTIONS}
    found |= {"check_liveness"} if stage in MUTE else set()
    return found | ({"upkeep liveness"} if stage in MUTE_AND_BUSY else set())


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("stage", STAGES)
def test_keeper_action__each_stage__succeeds_only_where_due_and_only_once(stage: str, action: str) -> None:
    found = scene(stage)
    evm = found.world.evm
    if action in due(stage):
        ACTIONS[action](found)
    before = evm.state_hash()
    # Refused: because it was never due, or because it has been done already.
    with pytest.raises(Reverted) as caught:
        ACTIONS[action](found)
    assert caught.value.reason.startswith(("jobs: ", "nodes: ", "lens: "))
    if action.startswith("upkeep"):
        assert caught.value.reason == NOTHING
    assert evm.state_hash() == before


# A stage that time alone makes due, with the action that it makes due.
EARLY = {"expirable": "expire", "overdue": "reclaim", "silent": "reclaim", "noticed": "close"}


@pytest.mark.parametrize("seconds", [1, 2, 60])
@pytest.mark.parametrize("stage", EARLY)
def test_keeper_action__some_seconds_early__is_refused_and_changes_nothing(stage: str, seconds: int) -> None:
    """Control: at its time the same call succeeds; the scene says when that is."""
    action = EARLY[stage]
    moment = scene(stage).world.evm.now
    start = {"expirable": "open", "overdue": "running", "silent": "running", "noticed": "closing"}[stage]
    found = scene(start, max_seconds=20_000) if stage == "silent" else scene(start)
    found.world.evm.at(moment - seconds)
    if stage == "overdue":
        # Alive, so that only the lease's end can make the reclaim due.
        found.world.nodes.send.beat(found.node, sender=found.world.operator)
    before = found.world.evm.state_hash()
    for name in (action, f"upkeep {action}"):
        with pytest.raises(Reverted):
            ACTIONS[name](found)
        assert found.world.evm.state_hash() == before
    found.world.evm.at(moment)
    ACTIONS[action](found)


@pytest.mark.parametrize("op", [SETTLE, CLOSE, RECLAIM, EXPIRE, LIVENESS])
def test_upkeep__stale_and_due_candidates_together__does_what_is_due_once(op: int) -> None:
    """A batch that names a unit twice, and one that is stale, does each due thing once and pays for it once."""
    stage = {SETTLE: "submitted", CLOSE: "noticed", RECLAIM: "last overdue", EXPIRE: "expirable", LIVENESS: "silent"}[
        op
    ]
    single, double = scene(stage), scene(stage)
    for found, copies in ((single, 1), (double, 3)):
        terms = words.pack_terms(found.terms)
        at = found.node if op == LIVENESS else 0
        stale = words.pack_terms(w.replace(found.terms, salt=10**9))
        items = [(op, terms, at, 1)] * copies + [(SETTLE, stale, 0, 0)]
        found.world.lens.send.performUpkeep(items, w.ZERO, sender=found.world.keeper)
    assert single.world.credit(single.world.keeper) == double.world.credit(double.world.keeper) > 0
    assert single.world.load(single.terms) == double.world.load(double.terms)


def test_keeper_action__table__covers_every_stage() -> None:
    assert set(DUE) <= set(STAGES)
    assert len(STAGES) * len(ACTIONS) == 47 * 16
