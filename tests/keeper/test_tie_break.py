"""The column hash equals the EVM's keccak256, and with it `hearth.protocol.formulas.lot`."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hearth.protocol import formulas
from hearth.protocol.types import NodeId
from keeper import tie_break
from keeper.tie_break import _CHUNK, _FEW, tie_breaks


@pytest.mark.parametrize("count", [0, 1, _FEW - 1, _FEW, _FEW + 1, _CHUNK, _CHUNK + 1])
def test_tie_breaks__any_length__equal_protocol(count: int) -> None:
    seed = bytes(range(32))
    ids = np.arange(1, count + 1, dtype=np.int64)
    drawn = tie_breaks(seed, ids)
    assert len(drawn) == count
    for i in {0, 1, count // 2, count - 2, count - 1} & set(range(count)):
        assert int(drawn[i]) == formulas.lot(seed, NodeId(i + 1))


@given(
    seed=st.binary(min_size=32, max_size=32),
    ids=st.lists(st.integers(0, 2**32 - 1), min_size=_FEW, max_size=_FEW + 8),
)
def test_tie_breaks__any_seed_and_ids__equal_protocol(seed: bytes, ids: list[int]) -> None:
    expected = [formulas.lot(seed, NodeId(i)) for i in ids]
    assert tie_breaks(seed, np.array(ids, np.int64)).tolist() == expected


def test_tie_breaks__tables_derived_anew__equal_protocol(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are derived once, where the module is imported, before any test could tell that they are right."""
    turns, source = tie_break._rho_pi()
    tables = {"_CONSTANTS": tie_break._round_constants(), "_TURNS": turns, "_SOURCE": source}
    for name, table in {**tables, "_BACK": np.uint64(64) - turns}.items():
        monkeypatch.setattr(tie_break, name, table)
    test_tie_breaks__any_length__equal_protocol(_FEW)
