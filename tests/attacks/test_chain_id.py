"""Attack L11: a chain that changes its id, as after a split, while jobs hold money."""

from __future__ import annotations

import pytest

from hearth.protocol.types import SENTINEL, State
from tests.attacks.stages import KINDS, finish, market, scene
from tests.kit import world as w
from tests.kit.evm import reverts

OTHER = 31_338


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stage", ["open", "proposed", "running", "submitted", "expirable", "overdue", "noticed"])
def test_chain_id__changes_under_a_job__it_ends_as_it_would_and_pays_the_same(kind: str, stage: str) -> None:
    """Profit of whoever has the chain split: nothing is locked up, nothing is paid otherwise. Control: the same id."""
    credits = []
    for chain_id in (None, OTHER):
        found = scene(stage, kind)
        world = found.world
        if chain_id is not None:
            world.evm.become_chain(chain_id)
        finish(found)
        assert found.unit_state() in (State.SETTLED, State.CANCELLED, State.EXPIRED, State.REFUNDED)
        assert world.lock_of(found.terms) == 0
        people = (world.submitter, world.owner, world.treasury, world.keeper)
        credits.append([world.credit(person) for person in people])
    assert credits[0] == credits[1] and sum(credits[0]) > 0


@pytest.mark.parametrize("kind", KINDS)
def test_chain_id__has_changed__no_new_job_is_taken_and_an_array_is_closed(kind: str) -> None:
    world = market(kind)
    terms = world.terms(units=3)
    world.post(terms)
    world.evm.become_chain(OTHER)
    with reverts("jobs: chain id has changed"):
        world.post(world.terms())
    world.cancel(terms, SENTINEL)
    assert world.lock_of(terms) == 0
    world.evm.become_chain(31_337)
    world.post(w.replace(world.terms(), salt=77))
