"""JobRegistry.post of jobs that ask for a proof: their bonds are held until the deadline, so that is bounded."""

from __future__ import annotations

from hearth.protocol.types import MAX_PROOF_SECONDS, TermsFlag
from tests.kit.evm import reverts
from tests.kit.world import World

PROVEN = TermsFlag.NEWCOMERS | TermsFlag.PROVEN


def test_post__proof_by_a_far_deadline__is_refused(world: World) -> None:
    last = world.evm.now + MAX_PROOF_SECONDS
    with reverts("jobs: deadline too far"):
        world.post(**world.judged(deadline=last + 1, flags=PROVEN))
    world.post(**world.judged(deadline=last, flags=PROVEN))


def test_post__far_deadline_without_a_proof__is_taken(world: World) -> None:
    """A result that nobody disputes is settled after its window, whatever the deadline is."""
    far = world.evm.now + 100 * MAX_PROOF_SECONDS
    world.post(**world.judged(deadline=far))
    world.post(deadline=far)


def test_post__deadline_of_40_bits__is_far_for_a_proof_alone(world: World) -> None:
    far = 2**39 + world.evm.now + 5_000
    for flags in (PROVEN, TermsFlag.PROVEN):
        with reverts("jobs: deadline too far"):
            world.post(**world.judged(flags=flags, deadline=far))
    world.post(**world.judged(flags=TermsFlag.NEWCOMERS, deadline=far))
