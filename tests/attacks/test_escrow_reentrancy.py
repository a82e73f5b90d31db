"""Attack 21: come back into Escrow from within its own payment, with every function that it has.

The attacker is a contract with a credit of 100, which withdraws 60 of it to itself and calls Escrow again while it is
being paid: by the coin's arrival, or by a token that calls its receiver before and after the balances move.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.kit.evm import Contract, Evm, compile_contract
from tests.kit.vault import Vault, key, share, shares

REENTER = 1 << 2
HOOK = 1 << 6
CREDIT, TAKEN = 100, 60
VICTIMS = 1_000


@dataclass(frozen=True)
class Scene:
    """One Escrow, its attacker, and others whose money lies in it."""

    vault: Vault
    attacker: Contract
    victim: str
    # How often the attacker is called in one payment.
    calls: int

    def wealth(self) -> int:
        """Return all that the attacker owns, inside Escrow and out."""
        vault = self.vault
        return (
            vault.holding(self.attacker)
            + vault.credit(self.attacker)
            + vault.locked(self.attacker, "mine")
            + vault.locked(self.attacker, "new")
        )

    def owed(self) -> int:
        """Return the sum of the books."""
        vault = self.vault
        outside = vault.holding(self.attacker)
        return self.wealth() - outside + vault.credit(self.victim) + vault.locked(self.victim, "a")

    def strike(self, name: str, *args: object, value: int = 0) -> list[tuple[bool, bytes]]:
        """Withdraw, and call `name` each time the payment calls back; return what came of each call."""
        attacker, escrow = self.attacker, self.vault.escrow
        attacker.send.prepare(escrow, escrow.encode(name, *args), value, self.calls)
        attacker.send.set_mood(REENTER)
        attacker.send.run(escrow, escrow.encode("withdraw", attacker, TAKEN), 0)
        attacker.send.set_mood(0)
        return [(attacker.call.succeeded(n), attacker.call.answers(n)) for n in range(self.calls)]


def _native(evm: Evm) -> tuple[Vault, int]:
    return Vault.native(evm), 1


def _hooked(evm: Evm) -> tuple[Vault, int]:
    token = evm.deploy("mocks/ZooToken", 18)
    return Vault(evm, evm.deploy("Escrow", token), token), 2


@pytest.fixture(params=[_native, _hooked], ids=["native", "hooked token"])
def scene(request: pytest.FixtureRequest) -> Scene:
    evm = Evm()
    build: Callable[[Evm], tuple[Vault, int]] = request.param
    vault, calls = build(evm)
    victim = evm.account("victim")
    vault.lock(victim, "a", VICTIMS)
    vault.pay(victim, VICTIMS)
    attacker = evm.deploy("mocks/Receiver")
    vault.pay(attacker, CREDIT)
    # A lock of its own, so that a split has something to split.
    vault.bring(evm.account("payer"), 0)
    value = vault.bring(attacker.address, CREDIT)
    attacker.send.run(vault.escrow, vault.escrow.encode("lock", key("mine"), CREDIT), value)
    if vault.token is not None:
        vault.token.send.set_hooked(attacker)
        vault.token.send.set_traits(HOOK)
    return Scene(vault, attacker, victim, calls)


# For each function: what the attacker passes, and which of its calls within one payment get through. What gets through
# moves the attacker's own money within books that are final already.
LEFT = CREDIT - TAKEN
CASES: dict[str, list[tuple[str, tuple[bool, bool]]]] = {
    "withdraw": [("all that was there", (False, False)), ("what is left", (False, False)), ("nothing", (False, False))],
    "lock": [("what is under way", (False, False)), ("nothing", (False, False))],
    "lock_credit": [("all that was there", (False, False)), ("what is left", (True, False)), ("one", (True, True))],
    "split": [("more than the lock", (False, False)), ("the whole lock", (True, False)), ("one", (True, True))],
}
AMOUNTS = {
    "all that was there": CREDIT,
    "what is left": LEFT,
    "what is under way": TAKEN,
    "more than the lock": CREDIT + 1,
    "the whole lock": CREDIT,
    "one": 1,
    "nothing": 0,
}


def _arguments(scene: Scene, name: str, amount: int) -> tuple[object, ...]:
    return {
        "withdraw": (scene.attacker, amount),
        "lock": (key("new"), amount),
        "lock_credit": (key("new"), amount),
        "split": (key("mine"), shares(share(scene.attacker, amount))),
    }[name]


@pytest.mark.parametrize(
    ("name", "what", "through"), [(name, what, through) for name, cases in CASES.items() for what, through in cases]
)
def test_reentrancy__any_function_from_within_a_payment__gains_nothing(
    scene: Scene, name: str, what: str, through: tuple[bool, bool]
) -> None:
    vault, amount = scene.vault, AMOUNTS[what]
    before = scene.wealth()
    value = amount if name == "lock" and vault.token is None else 0
    results = scene.strike(name, *_arguments(scene, name, amount), value=value)
    assert [succeeded for succeeded, _ in results] == list(through)[: scene.calls]
    assert scene.wealth() == before
    assert vault.credit(scene.victim) == vault.locked(scene.victim, "a") == VICTIMS
    assert vault.holding(vault.escrow) == scene.owed()
    if vault.token is not None:
        assert vault.escrow.call.tracked() == scene.owed()
        # The token may stop calling back now; the victim's money is all there.
        vault.token.send.set_traits(0)
    vault.escrow.send.split(key("a"), shares(share(scene.victim, VICTIMS)), sender=scene.victim)
    vault.escrow.send.withdraw(scene.victim, 2 * VICTIMS, sender=scene.victim)


def test_reentrancy__views_from_within_a_payment__show_final_books(scene: Scene) -> None:
    """Attack 21, read-only: a reader that is called during a payment sees the books as they will stay."""
    evm, vault, attacker = scene.vault.evm, scene.vault, scene.attacker
    expected = {
        "credit": ((attacker,), LEFT),
        "locked": ((attacker, key("mine")), CREDIT),
        "tracked": ((), 0 if vault.token is None else scene.owed() - TAKEN),
        "ASSET": ((), int(vault.escrow.call.ASSET(), 16)),
    }
    assert set(expected) == {f.name for f in vault.escrow.all_functions() if f.is_view}
    for name, (args, wanted) in expected.items():
        with evm.isolated():
            for succeeded, answer in scene.strike(name, *args):
                assert succeeded
                assert int.from_bytes(answer, "big") == wanted, name


def test_reentrancy__cases__name_every_function_that_writes() -> None:
    writing = {
        entry["name"]
        for entry in compile_contract("Escrow").abi
        if entry["type"] == "function" and entry["stateMutability"] not in ("view", "pure")
    }
    assert set(CASES) == writing
