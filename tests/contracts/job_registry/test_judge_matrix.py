"""Every judge's call in every state, by the judge and by others: what it comes to, or why it is refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hearth.protocol import formulas, words
from hearth.protocol.types import NodeId, State, Terms, TermsFlag, Verdict
from tests.kit.evm import Reverted
from tests.kit.world import ZERO, World

NOT_SUBMITTED, NOT_DISPUTED = "jobs: not submitted", "jobs: not disputed"


def _bring(state: State) -> Callable[[World, Terms, NodeId], None]:
    """Return the steps that bring a job to a state."""

    def steps(world: World, terms: Terms, node: NodeId) -> None:
        world.post(terms)
        if state == State.CANCELLED:
            world.cancel(terms)
        if state == State.EXPIRED:
            world.evm.at(formulas.expirable_from(terms))
            world.expire(terms)
        if state in (State.OPEN, State.CANCELLED, State.EXPIRED):
            return
        world.claim(terms, node)
        if state == State.CLOSING:
            world.cancel(terms)
        if state == State.REFUNDED:
            world.give_up(terms)
        if state not in (State.SUBMITTED, State.DISPUTED, State.SETTLED):
            return
        world.submit(terms)
        if state == State.DISPUTED:
            world.dispute(terms)
        if state == State.SETTLED:
            world.accept(terms)

    return steps


STATES = [
    *(State.NONE, State.OPEN, State.RUNNING, State.CLOSING, State.SUBMITTED, State.DISPUTED),
    *(State.SETTLED, State.REFUNDED, State.CANCELLED, State.EXPIRED),
]
CALLS = ["dispute", *Verdict]


def _expected(state: State, call: str | Verdict, *, proven: bool) -> State | str:
    """Return the state that a judge's call leads to, or the reason why it does not."""
    if state not in (State.SUBMITTED, State.DISPUTED):
        return NOT_SUBMITTED
    if call == "dispute":
        return State.DISPUTED if state == State.SUBMITTED else NOT_SUBMITTED
    if call == Verdict.CONFIRM:
        return State.SETTLED
    if state == State.SUBMITTED and (call == Verdict.RELEASE or not proven):
        return NOT_DISPUTED
    return State.SUBMITTED if call == Verdict.RELEASE else State.REFUNDED


@pytest.mark.parametrize("proven", [False, True], ids=["", "proven"])
@pytest.mark.parametrize("state", STATES, ids=lambda state: state.name)
def test_matrix__each_judges_call_in_each_state__is_as_the_table_says(state: State, proven: bool) -> None:
    world = World()
    flags = TermsFlag.NEWCOMERS | (TermsFlag.PROVEN if proven else TermsFlag(0))
    node, terms = world.register(), world.terms(**world.judged(flags=flags, max_attempts=1))
    if state != State.NONE:
        _bring(state)(world, terms, node)
    assert world.state(terms) == state
    before = world.evm.state_hash()
    packed = words.pack_terms(terms)
    for call in CALLS:
        expected = _expected(state, call, proven=proven)
        with world.evm.isolated():
            try:
                world.dispute(terms) if call == "dispute" else world.rule(terms, int(call))
            except Reverted as reverted:
                assert reverted.reason == expected, call
                assert world.evm.state_hash() == before
            else:
                assert world.state(terms) == expected, call
        for sender in (world.submitter, world.operator, world.owner, world.keeper, world.deployer):
            with pytest.raises(Reverted) as refused:
                if call == "dispute":
                    world.jobs.send.dispute(packed, 0, sender=sender)
                else:
                    world.jobs.send.rule(packed, 0, call, 0, [0, 0, 0], ZERO, sender=sender)
            assert refused.value.reason == "jobs: not the judge"
        assert world.evm.state_hash() == before
