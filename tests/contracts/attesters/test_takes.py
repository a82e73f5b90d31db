"""Attesters.takes: what can be judged."""

from __future__ import annotations

from tests.kit.attesters import Attested
from tests.kit.evm import reverts


def test_takes__job_without_proof_or_set__is_refused_at_post(attested: Attested) -> None:
    world = attested.world
    world.post(attested.terms())
    flags = attested.terms().flags
    for wrong in ({"judge_data": 0}, {"flags": flags & ~flags.PROVEN}):
        with reverts("jobs: refused by the judge"):
            world.post(attested.terms(**wrong))
