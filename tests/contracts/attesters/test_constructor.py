"""Attesters' constructor: what can be read back."""

from __future__ import annotations

from tests.kit.attesters import Attested


def test_constructor__world__reads_back_its_registry(attested: Attested) -> None:
    assert attested.contract.call.JOBS() == attested.world.jobs.address
