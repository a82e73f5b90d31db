"""hearth.protocol.attest: sets of attesters and what they commit to; contracts/Attesters.vy takes the same."""

from __future__ import annotations

from dataclasses import replace

import pytest
from eth_abi import encode
from eth_utils import keccak

from hearth.protocol.attest import AttesterSet, Result, Signature, typed_data
from hearth.protocol.types import JobId, Outcome, State, Unit

KEYS = tuple(f"0x{number:040x}" for number in range(1, 17))
VRS = (27, 1, 2)


@pytest.mark.parametrize("size", [1, 2, 16])
def test_set__within_bounds__is_taken(size: int) -> None:
    for quorum in range(1, size + 1):
        found = AttesterSet(KEYS[:size], quorum)
        raw = encode(["address[]", "uint256"], [KEYS[:size], quorum])
        assert found.judge_data == int.from_bytes(keccak(raw), "big")


@pytest.mark.parametrize(
    ("keys", "quorum", "why"),
    [
        ((), 0, "0 keys"),
        ((*KEYS, "0x" + "ff" * 20), 1, "17 keys"),
        (("0x" + "00" * 20, KEYS[0]), 1, "zero address"),
        ((KEYS[0], KEYS[0]), 1, "stands twice"),
        ((KEYS[1], KEYS[0]), 1, "ascending"),
        (KEYS[:3], 0, "quorum 0"),
        (KEYS[:3], 4, "quorum 4"),
        (KEYS[:3], -1, "quorum -1"),
    ],
)
def test_set__out_of_bounds__is_refused(keys: tuple[str, ...], quorum: int, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        AttesterSet(keys, quorum)


def test_set__each_change__is_another_commitment() -> None:
    sets = [AttesterSet(KEYS[:size], quorum) for size in range(1, 17) for quorum in range(1, size + 1)]
    assert len({one.judge_data for one in sets}) == len(sets)


def test_place__signatures_in_any_order__ascend_and_strangers_and_second_ones_fall_out() -> None:
    found = AttesterSet(KEYS[:3], 2).place([(KEYS[2], VRS), (KEYS[5], VRS), (KEYS[0], (28, 5, 6)), (KEYS[2], VRS)])
    assert found == [Signature(0, 28, 5, 6), Signature(2, *VRS)]


def test_result__of_a_unit__takes_outcome_fuel_and_the_auxiliary_slot() -> None:
    unit = Unit(state=State.SUBMITTED, outcome=Outcome.TRAP, seconds=9)
    found = Result.of(JobId(b"\x01" * 32), 3, b"\x02" * 32, unit, 5)
    assert found == Result(JobId(b"\x01" * 32), 3, b"\x02" * 32, bytes(31) + b"\x05", Outcome.TRAP, 9)
    assert found.fields == 3 | 9 << 4


def test_typed_data__every_field__is_in_the_message_and_the_domain() -> None:
    result = Result(JobId(b"\x01" * 32), 3, b"\x02" * 32, b"\x03" * 32, Outcome.OK, 9)
    found = typed_data(5, KEYS[0], result)
    assert found["domain"] == {
        "name": "Hearth Attesters",
        "version": "1",
        "chainId": 5,
        "verifyingContract": KEYS[0],
    }
    assert found["message"] == {
        "job": b"\x01" * 32,
        "index": 3,
        "spec": b"\x02" * 32,
        "result": b"\x03" * 32,
        "fields": 1 | 9 << 4,
    }
    assert [field["name"] for field in found["types"]["Result"]] == list(found["message"])
    assert found != typed_data(5, KEYS[0], replace(result, fuel_seconds=8))
