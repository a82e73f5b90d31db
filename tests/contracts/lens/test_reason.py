"""What Lens says in words for each number that a contract refuses with."""

from __future__ import annotations

import pytest

from hearth.protocol.reasons import REASONS
from tests.kit.world import World


def test_reason__every_number_of_the_table__is_its_text(world: World) -> None:
    assert {number: world.lens.call.reason(number) for number in REASONS} == {
        number: reason.text for number, reason in REASONS.items()
    }


@pytest.mark.parametrize("number", [0, 1, 2**256 - 1])
def test_reason__number_of_no_contract__is_empty(world: World, number: int) -> None:
    assert world.lens.call.reason(number) == ""


def test_reason__number_beside_a_row__is_empty(world: World) -> None:
    beside = {number + step for number in REASONS for step in (-1, 1)} - set(REASONS)
    assert len(beside) >= 8
    assert {world.lens.call.reason(number) for number in beside} == {""}
