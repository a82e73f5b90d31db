"""Random histories of one Escrow against a model of its books, on each kind of asset.

The model is kept in Python: locks by (controller, key), credits and outside holdings by account, and what was given to
Escrow without a call. After every step each of these must equal the chain's, and the books rebuilt from the events
alone must equal the model. A refused call must give the reason that the model expects and leave the chain as it was.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, ClassVar

import pytest
from eth_utils import to_checksum_address
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.kit.evm import NATIVE, Evm, Receipt, Reverted
from tests.kit.vault import LIMIT, Vault, key, share, shares
from tests.stateful.tally import Tally

pytestmark = pytest.mark.stateful

# Derandomised runs are short and the same each time; `make fuzz` sets a profile of its own.
SETTINGS = settings(max_examples=160, stateful_step_count=12) if settings().derandomize else settings()

# The wallet is an account with code; the others are plain.
PEOPLE = ("controller", "operator", "submitter", "wallet")
KEYS = ("a", "b")
# Bits of Receiver's mood and of ZooToken's traits.
REFUSE, REENTER = 1 << 0, 1 << 2
HOOK = 1 << 6
# Each kind of refusal and of come-back must have been seen this often in a derandomised run.
SEEN_OFTEN = 3

people = st.sampled_from(PEOPLE)
keys = st.sampled_from(KEYS)
# A part of what there is in thousandths; above 1000 it is more than all.
parts = st.one_of(st.integers(0, 1000), st.just(1000), st.integers(1001, 1100))
amounts = st.one_of(st.integers(0, 1000), st.integers(0, 10**12), st.integers(0, LIMIT - 1))


def part_of(whole: int, thousandths: int) -> int:
    """Return a part of `whole`, and more than it where more than all is asked for."""
    amount = whole * thousandths // 1000
    return amount if thousandths <= 1000 else max(amount, whole + 1)


class EscrowMachine(RuleBasedStateMachine):
    """All that anyone can do to one Escrow, one transaction per rule."""

    tally: ClassVar[Tally]
    # How often the wallet is called while a withdrawal pays it.
    calls_back: ClassVar[int]

    def deploy(self, evm: Evm) -> Vault:
        """Return the Escrow under test."""
        raise NotImplementedError

    @initialize()
    def start(self) -> None:
        self.tally.runs += 1
        self.evm = Evm()
        self.vault = self.deploy(self.evm)
        self.escrow = self.vault.escrow
        self.wallet = self.evm.deploy("mocks/Receiver")
        self.closed = self.evm.deploy("mocks/MockToken", "Takes no coin", "CLO", 0)
        self.address = {name: self.evm.account(name) for name in PEOPLE if name != "wallet"}
        self.address["wallet"] = self.wallet.address
        self.locks: Counter[tuple[str, str]] = Counter()
        self.credits: Counter[str] = Counter()
        self.outside = {name: self.vault.holding(self.address[name]) for name in PEOPLE}
        self.given = 0
        self.seen_locks: Counter[tuple[str, bytes]] = Counter()
        self.seen_credits: Counter[str] = Counter()
        self.seen_balance = 0

        # Nobody starts poor, or most tries would be about nothing.
        for number, name in enumerate(PEOPLE):
            amount = 10 ** (6 * number + 3) + number
            self.act(name, "lock", key("a"), 3 * amount, value=self.bring(name, 3 * amount))
            self.locks_new(name, "a", 3 * amount)
            self.act(name, "split", key("a"), shares(share(self.address[name], amount)))
            self.locks[name, "a"] -= amount
            self.credits[name] += amount

    # ---- sending ----

    def act(self, who: str, name: str, *args: Any, value: int = 0) -> None:
        """Call Escrow as one of the people; the wallet calls through its own code and pays its own coin."""
        if who == "wallet":
            receipt = self.wallet.send.run(self.escrow, self.escrow.encode(name, *args), value)
        else:
            receipt = getattr(self.escrow.send, name)(*args, sender=self.address[who], value=value)
        self.replay(receipt)

    def attempt(
        self, title: str, expected: str | None, moved: int, who: str, name: str, *args: Any, value: int = 0
    ) -> bool:
        """Send, and demand what the model expects: success (None), or this reason and an unchanged chain.

        `moved` is the amount at stake: a call that was to move nothing is no success.
        """
        if expected is None:
            self.act(who, name, *args, value=value)
            if moved:
                self.tally.success(title)
            else:
                self.tally.nothing(title)
            return True
        before = self.evm.state_hash()
        with pytest.raises(Reverted) as caught:
            self.act(who, name, *args, value=value)
        assert caught.value.reason == expected
        assert self.evm.state_hash() == before, "a refused call changed the chain"
        self.tally.refusal(title, expected)
        return False

    def replay(self, receipt: Receipt) -> None:
        """Apply a receipt's events to the books that know nothing else."""
        for log in receipt.logs:
            if log.address != self.escrow.address:
                continue
            args = log.args
            if log.name == "Locked":
                self.seen_locks[args["controller"], args["key"]] += args["amount"]
                self.seen_balance += args["amount"]
            elif log.name == "CreditLocked":
                self.seen_credits[args["controller"]] -= args["amount"]
                self.seen_locks[args["controller"], args["key"]] += args["amount"]
            elif log.name == "Split":
                for word in args["shares"]:
                    self.seen_credits[to_checksum_address((word % 2**160).to_bytes(20, "big"))] += word >> 160
                    self.seen_locks[args["controller"], args["key"]] -= word >> 160
            else:
                assert log.name == "Withdrawn"
                self.seen_credits[args["account"]] -= args["amount"]
                self.seen_balance -= args["amount"]

    def bring(self, who: str, amount: int) -> int:
        """Do what precedes a lock of new money, and enter it in the model as not yet locked; return the value."""
        if self.vault.token is None:
            self.outside[who] += amount
        else:
            self.given += amount
        return self.vault.bring(self.address[who], amount)

    def locks_new(self, who: str, name: str, amount: int) -> None:
        """Enter a lock of money that was brought."""
        self.locks[who, name] += amount
        if self.vault.token is None:
            self.outside[who] -= amount
        else:
            self.given -= amount

    def pick_lock(self, pick: int) -> tuple[str, str]:
        """Choose a lock that holds something, while there is one."""
        held = [(who, name) for who in PEOPLE for name in KEYS if self.locks[who, name]] or [("controller", "a")]
        return held[pick % len(held)]

    def pick_payee(self, pick: int) -> str:
        """Choose an account that has credit, while there is one."""
        rich = [who for who in PEOPLE if self.credits[who]] or ["operator"]
        return rich[pick % len(rich)]

    # ---- rules ----

    @rule(who=people, name=keys, amount=st.one_of(amounts, st.integers(LIMIT, LIMIT + 1)))
    def lock(self, who: str, name: str, amount: int) -> None:
        value = self.bring(who, amount)
        expected = "escrow: too large" if amount >= LIMIT else None
        if self.attempt("lock", expected, amount, who, "lock", key(name), amount, value=value):
            self.locks_new(who, name, amount)

    @rule(who=people, name=keys, brought=st.integers(1, 10**12), off=st.integers(-1, 1))
    def lock_off_by_one(self, who: str, name: str, brought: int, off: int) -> None:
        """Native: lock one more or less than the value. ERC-20: lock all that nobody owns, and one more or less."""
        value = self.bring(who, brought)
        if self.vault.token is None:
            amount = brought + off
            expected = "escrow: wrong value" if off else None
        else:
            amount = min(self.given, LIMIT - 2) + off
            expected = "escrow: not funded" if amount > self.given else None
        if self.attempt("lock_off_by_one", expected, amount, who, "lock", key(name), amount, value=value):
            self.locks_new(who, name, amount)

    @rule(pick=st.integers(0, 3), name=keys, part=parts)
    def lock_credit(self, pick: int, name: str, part: int) -> None:
        who = self.pick_payee(pick)
        amount = part_of(self.credits[who], part)
        expected = "escrow: short" if amount > self.credits[who] else None
        if self.attempt("lock_credit", expected, amount, who, "lock_credit", key(name), amount):
            self.credits[who] -= amount
            self.locks[who, name] += amount

    @rule(
        pick=st.integers(0, 7),
        payees=st.lists(st.tuples(people, st.integers(0, 250)), min_size=1, max_size=4),
        over=st.sampled_from((0, 0, 1)),
    )
    def split(self, pick: int, payees: list[tuple[str, int]], over: int) -> None:
        """Split a part of a lock, or one base unit more than all of it."""
        who, name = self.pick_lock(pick)
        held = self.locks[who, name]
        paid = [(payee, min(part_of(held, part), LIMIT - 1)) for payee, part in payees]
        if over and held < LIMIT - 1:
            paid[-1] = (paid[-1][0], held + 1)
        total = sum(amount for _, amount in paid)
        expected = "escrow: short" if total > held else None
        words = shares(*[share(self.address[payee], amount) for payee, amount in paid])
        if self.attempt("split", expected, total, who, "split", key(name), words):
            for payee, amount in paid:
                self.credits[payee] += amount
                self.locks[who, name] -= amount

    @rule(pick=st.integers(0, 7), position=st.integers(0, 3), part=parts, nobody=st.integers(0, 1))
    def split_with_nobody(self, pick: int, position: int, part: int, nobody: int) -> None:
        """A share for address zero is refused wherever it stands; a share of nothing for it is none."""
        who, name = self.pick_lock(pick)
        held = self.locks[who, name]
        amount = min(held * min(part, 1000) // 1000, LIMIT - 1)
        words = [share(NATIVE, nobody) if n == position else 0 for n in range(4)]
        words[(position + 1) % 4] = share(self.address[who], amount)
        expected = "escrow: share for nobody" if nobody else None
        if self.attempt("split_with_nobody", expected, amount, who, "split", key(name), words):
            self.credits[who] += amount
            self.locks[who, name] -= amount

    @rule(pick=st.integers(0, 3), to=people, part=parts)
    def withdraw(self, pick: int, to: str, part: int) -> None:
        who = self.pick_payee(pick)
        amount = part_of(self.credits[who], part)
        expected = "escrow: short" if amount > self.credits[who] else None
        if self.attempt("withdraw", expected, amount, who, "withdraw", self.address[to], amount):
            self.credits[who] -= amount
            self.outside[to] += amount

    @rule(pick=st.integers(0, 3), where=st.sampled_from(("nobody", "escrow", "closed", "wallet", "wallet", "wallet")))
    def withdraw_to_a_bad_place(self, pick: int, where: str) -> None:
        """Zero and Escrow itself are refused; so is coin for a contract that takes none. The wallet is fine."""
        who = self.pick_payee(pick)
        to = {"nobody": NATIVE, "escrow": self.escrow, "closed": self.closed, "wallet": self.wallet}[where]
        amount = self.credits[who]
        expected = "escrow: bad receiver" if where in ("nobody", "escrow") else None
        if where == "closed" and self.vault.token is None:
            expected = "escrow: receiver refused"
        if self.attempt("withdraw_to_a_bad_place", expected, amount, who, "withdraw", to, amount):
            self.credits[who] -= amount
            if where == "wallet":
                self.outside["wallet"] += amount

    @rule(amount=st.integers(1, 10**12))
    def give(self, amount: int) -> None:
        """Money arrives without a call to Escrow: forced coin, or tokens sent by mistake."""
        self.vault.donate(amount)
        self.given += amount
        self.tally.success("give")

    @rule(
        part=st.integers(0, 1000),
        inner=st.sampled_from(("lock", "lock_credit", "lock_credit", "split", "split", "withdraw")),
        inner_part=parts,
        name=keys,
        payee=people,
    )
    def come_back(self, part: int, inner: str, inner_part: int, name: str, payee: str) -> None:
        """The wallet withdraws, and calls Escrow again from within the payment.

        Within it `lock` and `withdraw` are shut; what moves only books works on books that are final already.
        """
        amount = part_of(self.credits["wallet"], part)
        left = self.credits["wallet"] - amount
        held = self.locks["wallet", name]
        wanted = part_of(left if inner in ("lock_credit", "withdraw") else held, inner_part)
        wanted = min(wanted, LIMIT - 1)
        arguments = {
            "lock": (key(name), amount),
            "lock_credit": (key(name), wanted),
            "split": (key(name), shares(share(self.address[payee], wanted))),
            "withdraw": (self.wallet, wanted),
        }[inner]
        value = amount if inner == "lock" and self.vault.token is None else 0
        self.wallet.send.prepare(self.escrow, self.escrow.encode(inner, *arguments), value, self.calls_back)
        self.wallet.send.set_mood(REENTER)
        self.attempt("come_back", None, amount, "wallet", "withdraw", self.wallet, amount)
        self.wallet.send.set_mood(0)
        self.credits["wallet"] = left
        self.outside["wallet"] += amount
        for n in range(self.calls_back):
            worked = False
            if inner == "lock_credit" and wanted <= self.credits["wallet"]:
                self.credits["wallet"] -= wanted
                self.locks["wallet", name] += wanted
                worked = True
            elif inner == "split" and wanted <= self.locks["wallet", name]:
                self.locks["wallet", name] -= wanted
                self.credits[payee] += wanted
                worked = True
            assert self.wallet.call.succeeded(n) == worked
            self.tally.visit(f"inner {inner} {'works' if worked else 'is refused'}")

    @rule(pick=st.integers(0, 3), part=st.integers(0, 1000), refuses=st.booleans())
    def withdraw_to_a_moody_wallet(self, pick: int, part: int, refuses: bool) -> None:
        """A receiver that refuses coin keeps only its own payer waiting."""
        who = self.pick_payee(pick)
        amount = part_of(self.credits[who], part)
        self.wallet.send.set_mood(REFUSE if refuses else 0)
        expected = None
        if refuses and self.calls_back:
            expected = "escrow: receiver refused" if self.vault.token is None else "receiver: refused"
        if self.attempt("withdraw_to_a_moody_wallet", expected, amount, who, "withdraw", self.wallet, amount):
            self.credits[who] -= amount
            self.outside["wallet"] += amount
        self.wallet.send.set_mood(0)

    # ---- invariants ----

    @invariant()
    def books_equal_the_model(self) -> None:
        for who in PEOPLE:
            address = self.address[who]
            assert self.vault.credit(address) == self.credits[who] == self.seen_credits[address]
            assert self.vault.holding(address) == self.outside[who]
            for name in KEYS:
                locked = self.vault.locked(address, name)
                assert locked == self.locks[who, name] == self.seen_locks[address, key(name)]

    @invariant()
    def money_covers_the_books(self) -> None:
        owed = self.locks.total() + self.credits.total()
        assert self.vault.holding(self.escrow) == owed + self.given
        assert self.seen_balance == owed
        assert self.escrow.call.tracked() == (0 if self.vault.token is None else owed)

    def teardown(self) -> None:
        """Everybody leaves, whatever happened before: each lock and each credit can be taken out in full."""
        for (who, name), held in self.locks.items():
            while held:
                amount = min(held, LIMIT - 1)
                self.act(who, "split", key(name), shares(share(self.address[who], amount)))
                self.credits[who] += amount
                held -= amount
        for who, amount in self.credits.items():
            self.act(who, "withdraw", self.address[who], amount)
            self.outside[who] += amount
            assert self.vault.holding(self.address[who]) == self.outside[who]
        assert self.vault.holding(self.escrow) == self.given
        assert self.escrow.call.tracked() == 0


RULES = {
    "lock",
    "lock_off_by_one",
    "lock_credit",
    "split",
    "split_with_nobody",
    "withdraw",
    "withdraw_to_a_bad_place",
    "give",
    "come_back",
    "withdraw_to_a_moody_wallet",
}
REFUSALS = (
    "refusal lock: escrow: too large",
    "refusal lock_credit: escrow: short",
    "refusal split: escrow: short",
    "refusal split_with_nobody: escrow: share for nobody",
    "refusal withdraw: escrow: short",
    "refusal withdraw_to_a_bad_place: escrow: bad receiver",
)
INNER = (
    "inner lock is refused",
    "inner withdraw is refused",
    "inner lock_credit works",
    "inner lock_credit is refused",
    "inner split works",
    "inner split is refused",
)


class NativeMachine(EscrowMachine):
    tally = Tally("escrow-native")
    calls_back = 1

    def deploy(self, evm: Evm) -> Vault:
        return Vault.native(evm)


class TokenMachine(EscrowMachine):
    tally = Tally("escrow-erc20")
    calls_back = 0

    def deploy(self, evm: Evm) -> Vault:
        return Vault.erc20(evm)


class SixDecimalsMachine(EscrowMachine):
    tally = Tally("escrow-erc20-6")
    calls_back = 0

    def deploy(self, evm: Evm) -> Vault:
        return Vault.erc20(evm, decimals=6)


class HookedMachine(EscrowMachine):
    """A token that calls the receiver before and after each payment, which no deployment should use."""

    tally = Tally("escrow-hooked")
    calls_back = 2

    def deploy(self, evm: Evm) -> Vault:
        token = evm.deploy("mocks/ZooToken", 18)
        token.send.set_traits(HOOK)
        return Vault(evm, evm.deploy("Escrow", token), token)

    @initialize()
    def start(self) -> None:
        super().start()
        assert self.vault.token is not None
        self.vault.token.send.set_hooked(self.wallet)


class _Counted:
    """Run the machine, then look at what its rules did."""

    machine: ClassVar[type[EscrowMachine]]
    visits: ClassVar[tuple[str, ...]]

    def runTest(self) -> None:
        super().runTest()  # type: ignore[misc]
        self.machine.tally.publish()
        self.machine.tally.demand(RULES, visits=dict.fromkeys(self.visits, SEEN_OFTEN))


class TestNative(_Counted, NativeMachine.TestCase):
    settings = SETTINGS
    machine = NativeMachine
    visits = (*REFUSALS, *INNER, "refusal lock_off_by_one: escrow: wrong value")


class TestErc20(_Counted, TokenMachine.TestCase):
    settings = SETTINGS
    machine = TokenMachine
    visits = (*REFUSALS, "refusal lock_off_by_one: escrow: not funded")


@pytest.mark.deep  # what TestErc20 does, in other numbers
class TestErc20SixDecimals(_Counted, SixDecimalsMachine.TestCase):
    settings = SETTINGS
    machine = SixDecimalsMachine
    visits = (*REFUSALS, "refusal lock_off_by_one: escrow: not funded")


class TestErc20Hooked(_Counted, HookedMachine.TestCase):
    settings = SETTINGS
    machine = HookedMachine
    visits = (*REFUSALS, *INNER, "refusal lock_off_by_one: escrow: not funded")
