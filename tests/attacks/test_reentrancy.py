"""Attack 21: re-enter every function of the contract that is moving money, from every transfer and payment.

The attacker may gain nothing that the same two calls, one after the other, would not have given him.
"""

from __future__ import annotations

import pytest

from tests.attacks.reentry import CASES, INNER, Attack
from tests.kit.evm import Contract

HOME = {
    "withdraw": "Escrow",
    "post": "JobRegistry",
    "top_up": "JobRegistry",
    "register": "NodeRegistry",
    "add_stake": "NodeRegistry",
}
# What stays shut while its own contract moves money.
SHUT = {
    "withdraw": {"lock", "withdraw"},
    "post": {"post", "top_up"},
    "top_up": {"post", "top_up"},
    "register": {"register", "add_stake"},
    "add_stake": {"register", "add_stake"},
}


def writing(contract: Contract) -> list[str]:
    """Return the names of the functions that write."""
    return [function.name for function in contract.all_functions() if not function.is_view]


@pytest.mark.parametrize(("kind", "outer"), CASES)
def test_reentrancy__own_functions_in_every_callback__gain_nothing(kind: str, outer: str) -> None:
    attack = Attack(kind)
    home, before = HOME[outer], attack.wealth()
    names = writing(attack.contracts()[home])
    passed = []
    for name in names:
        with attack.evm.isolated():
            _, results = attack.strike(outer, home, name)
            if any(succeeded for succeeded, _ in results):
                passed.append(name)
            attack.check_books()
            after = attack.wealth()
        assert after <= before or after <= attack.most(outer, home, name), name
    print(f"re-entrancy, {kind}, {outer}: {len(names)} functions of {home}, {len(passed)} got through")
    assert not SHUT[outer] & set(passed)
    # The attack is real: what needs no lock gets through, and its money adds up all the same.
    assert passed, "no inner call got through"


@pytest.mark.parametrize(("kind", "outer"), CASES)
def test_reentrancy__no_inner_call__outer_call_stands(kind: str, outer: str) -> None:
    """Control: the outer calls themselves are valid, and their callbacks happen."""
    attack = Attack(kind)
    stood, results = attack.strike(outer, "NodeRegistry", "beat")
    assert stood
    assert [succeeded for succeeded, _ in results] == [True] * attack.calls
    attack.check_books()


def test_reentrancy__arguments__are_given_for_every_function_that_writes() -> None:
    attack = Attack("native")
    for name, contract in attack.contracts().items():
        missing = [function for function in writing(contract) if (name, function) not in INNER]
        assert not missing, missing
