"""An Escrow with its asset, as tests use it: the same steps on the native coin and on an ERC-20."""

from __future__ import annotations

from dataclasses import dataclass

from tests.kit.evm import NATIVE, Contract, Evm, Receipt

# Amounts and shares of Escrow are below this.
LIMIT = 2**96


def key(name: str) -> bytes:
    """Return a key as a controller would choose one."""
    return name.encode().ljust(32, b"\0")


def share(account: str | Contract, amount: int) -> int:
    """Pack one share of `Escrow.split`."""
    address = account.address if isinstance(account, Contract) else account
    return amount << 160 | int(address, 16)


def shares(*words: int) -> list[int]:
    """Fill up with shares of nothing to the four that `Escrow.split` takes."""
    return [*words, *[0] * (4 - len(words))]


@dataclass(frozen=True)
class Vault:
    """One Escrow on one chain; `token` is None for the native coin."""

    evm: Evm
    escrow: Contract
    token: Contract | None

    @classmethod
    def native(cls, evm: Evm) -> Vault:
        """Deploy an Escrow of the native coin."""
        return cls(evm, evm.deploy("Escrow", NATIVE), None)

    @classmethod
    def erc20(cls, evm: Evm, decimals: int = 18) -> Vault:
        """Deploy a plain token and an Escrow of it."""
        token = evm.deploy("mocks/MockToken", "Test Dollar", "TUSD", decimals)
        return cls(evm, evm.deploy("Escrow", token), token)

    def holding(self, who: str | Contract) -> int:
        """Return how many base units `who` holds outside the books, Escrow's own balance included."""
        if self.token is None:
            return self.evm.balance(who)
        return int(self.token.call.balanceOf(who))

    def bring(self, controller: str, amount: int) -> int:
        """Do what must come before a lock of `amount`; return the value to send with it.

        ERC-20: new tokens arrive at Escrow. Native: the controller gets the coin to send.
        """
        if self.token is None:
            self.evm.set_balance(controller, self.evm.balance(controller) + amount)
            return amount
        self.token.send.mint(self.escrow, amount)
        return 0

    def lock(self, controller: str, name: str, amount: int) -> Receipt:
        """Lock new money."""
        value = self.bring(controller, amount)
        return self.escrow.send.lock(key(name), amount, sender=controller, value=value)

    def pay(self, account: str | Contract, amount: int) -> None:
        """Credit new money to an account, as a controller that is no part of the test."""
        payer = self.evm.account("payer")
        self.lock(payer, "payment", amount)
        self.escrow.send.split(key("payment"), shares(share(account, amount)), sender=payer)

    def donate(self, amount: int) -> None:
        """Force money upon Escrow without any call to it."""
        if self.token is None:
            # A constructor that destroys itself in favour of Escrow: PUSH20 address, SELFDESTRUCT.
            self.evm.deploy_code(b"\x73" + bytes.fromhex(self.escrow.address[2:]) + b"\xff", value=amount)
        else:
            self.token.send.mint(self.escrow, amount)

    def locked(self, controller: str | Contract, name: str) -> int:
        """Return a lock in base units."""
        return int(self.escrow.call.locked(controller, key(name)))

    def credit(self, account: str | Contract) -> int:
        """Return a credit in base units."""
        return int(self.escrow.call.credit(account))
