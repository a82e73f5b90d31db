"""hearth.chain.typed_data: signatures as the contract takes them, and none that it would not."""

from __future__ import annotations

from typing import Any

import pytest
from eth_account import Account
from hypothesis import example, given
from hypothesis import strategies as st

from hearth.chain.typed_data import MAX_S, sign, signer
from hearth.protocol.attest import Result, typed_data
from hearth.protocol.types import JobId, Outcome

ORDER = 2 * MAX_S + 1
WORD = st.integers(0, 2**256 - 1)
ACCOUNT = Account.from_key(b"\x07" * 32)
ADDRESS = str(ACCOUNT.address).lower()


def document(index: int = 0) -> dict[str, Any]:
    result = Result(JobId(b"\x01" * 32), index, b"\x02" * 32, b"\x03" * 32, Outcome.OK, 0)
    return typed_data(1, "0x" + "aa" * 20, result)


@pytest.mark.parametrize("index", range(8))
def test_sign__any_document__is_low_and_recovers(index: int) -> None:
    v, r, s = sign(ACCOUNT, document(index))
    assert v in (27, 28) and 0 < s <= MAX_S
    assert signer(document(index), (v, r, s)) == ADDRESS
    assert signer(document(index + 1), (v, r, s)) != ADDRESS


def test_signer__other_forms_of_a_signature__are_nobodys() -> None:
    v, r, s = sign(ACCOUNT, document())
    for other in ((55 - v, r, ORDER - s), (v - 27, r, s), (v + 2, r, s), (v, r, 0), (v, r, ORDER)):
        assert signer(document(), other) is None


@given(st.integers(0, 300), WORD, WORD)
@example(27, 0, 1)
@example(28, 2**256 - 1, 1)
@example(27, ORDER, 1)
@example(27, 5, 1)
def test_signer__any_numbers__an_address_or_none(v: int, r: int, s: int) -> None:
    found = signer(document(), (v, r, s))
    assert found is None or (len(found) == 42 and found != ADDRESS)
