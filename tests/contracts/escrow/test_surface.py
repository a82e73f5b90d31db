"""Escrow's surface: what can be called, what it refuses by name, and what it does not have."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hearth.protocol.reasons import REASONS
from tests.kit.evm import CONTRACTS, Reverted, compile_contract
from tests.kit.refusals import reasons_in
from tests.kit.vault import Vault

SOURCE = (CONTRACTS / "Escrow.vy").read_text(encoding="utf-8")


def test_surface__functions__are_those_of_the_interface() -> None:
    def surface(name: str) -> set[tuple[str, str]]:
        return {
            (entry["name"], entry["stateMutability"])
            for entry in compile_contract(name).abi
            if entry["type"] == "function"
        }

    assert surface("Escrow") == surface("interfaces/IEscrow")
    assert {name for name, mutability in surface("Escrow") if mutability not in ("view", "pure")} == {
        "lock",
        "lock_credit",
        "split",
        "withdraw",
    }


def test_surface__nobody_owns_it() -> None:
    # A switch would need a stored address to compare the caller with: only the asset is kept.
    assert "msg.sender ==" not in SOURCE and "== msg.sender" not in SOURCE
    assert re.findall(r"^(\w+): public\(reentrant\((\w+)", SOURCE, re.MULTILINE) == [
        ("ASSET", "immutable"),
        ("tracked", "uint256"),
    ]


def test_surface__reasons__are_short_lowercase_and_each_tested() -> None:
    reasons = {REASONS[number].text for number in reasons_in("Escrow")}
    assert len(reasons) == 10 and reasons == {r.text for r in REASONS.values() if r.text.startswith("escrow: ")}
    tests = "".join(
        path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_*.py") if path != Path(__file__)
    )
    for reason in reasons:
        assert reason == reason.lower()
        assert f'reverts("{reason}")' in tests, f"no test demands {reason!r}"


def test_surface__plain_coin__is_refused(vault: Vault, stranger: str) -> None:
    with pytest.raises(Reverted):
        vault.evm.raw_call(vault.escrow, sender=stranger, value=1)
    with pytest.raises(Reverted):
        vault.evm.raw_call(vault.escrow, b"\x01\x02\x03\x04", sender=stranger)
    assert vault.evm.balance(vault.escrow) == 0


def test_surface__unknown_accounts_and_keys__read_zero(vault: Vault, stranger: str) -> None:
    assert vault.credit(stranger) == vault.locked(stranger, "a") == vault.escrow.call.tracked() == 0
