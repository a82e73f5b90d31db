"""Attesters.takes: what can be judged."""

from __future__ import annotations

from hearth.protocol import words
from tests.kit.attesters import Attested
from tests.kit.evm import reverts


def test_takes__job_without_proof_or_set__is_refused_at_post(attested: Attested) -> None:
    world = attested.world
    world.post(attested.terms())
    flags = attested.terms().flags
    for wrong in ({"judge_data": 0}, {"flags": flags & ~flags.PROVEN}):
        with reverts("jobs: refused by the judge"):
            world.post(attested.terms(**wrong))


def test_may_run__anybody__may_not(attested: Attested) -> None:
    node = attested.world.register()
    assert attested.contract.call.may_run(bytes(32), words.pack_terms(attested.terms()), 0, node) is False
