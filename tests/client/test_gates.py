"""Whoever had a unit last does not count as somebody who can take it, whatever else would pass by itself."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from hearth.client.gates import count_gates, takers
from hearth.protocol import formulas
from hearth.protocol.types import Gate


@pytest.mark.parametrize("gate", [Gate.FITS, Gate.NO_SLOT, Gate.QUARANTINED, Gate.PROBATION, Gate.STAKE_SHORT])
def test_count_gates__the_excluded_node__takes_nothing(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    node = SimpleNamespace(id=3, operator="0x" + "0a" * 20, stake=10)
    market = SimpleNamespace(
        port=SimpleNamespace(head=lambda: SimpleNamespace(hash=b"", timestamp=0)), nodes=lambda block: [node]
    )
    parameters = SimpleNamespace(dead_after=900, minimum_stake=1)
    session: Any = SimpleNamespace(market=market, network=SimpleNamespace(node_parameters=parameters))
    terms: Any = SimpleNamespace(submitter="0x" + "0b" * 20)
    monkeypatch.setattr(formulas, "ask_of", lambda terms, policy: SimpleNamespace(probation=1, bond=5))
    monkeypatch.setattr(formulas, "node_gate", lambda *facts: gate)
    assert takers(count_gates(session, terms, session)) == 1
    assert count_gates(session, terms, session, excluded=3) == {Gate.EXCLUDED: 1}
