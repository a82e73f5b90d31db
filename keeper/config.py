"""How a keeper works, pure: what it leaves to others, what a transaction may cost, which work is worth it."""

from __future__ import annotations

from dataclasses import dataclass

from eth_utils.crypto import keccak

from hearth.protocol import formulas
from hearth.protocol.types import COIN


@dataclass(frozen=True, slots=True)
class Config:
    """How this keeper works.

    `keeper` is its address (the jitter's seed), `payee` the account that its rewards are credited to. `jitter` is the
    longest time, in seconds, that it leaves to others; `latency` the seconds until a sent transaction is mined.
    `coin_price` is base units of the market's asset for one native coin (10**18 wei). An action may lose at most
    `max_loss` base units. `ack_bps` is the share of proposals that end in an ack, and so in a tip. `burst` is the
    number of leases of one array that a cycle proposes for.
    """

    keeper: str
    payee: str
    jitter: int = 12
    latency: int = 3
    coin_price: int = COIN
    max_loss: int = 0
    ack_bps: int = 9_000
    burst: int = 8

    def delay_of(self, name: str) -> int:
        """Return how many seconds this keeper leaves `name` to others: 0..jitter, differing by keeper and by name."""
        digest = keccak(bytes.fromhex(self.keeper.removeprefix("0x").rjust(40, "0")) + name.encode())
        return int.from_bytes(digest[:8], "big") % (self.jitter + 1)

    def cost_of(self, gas: int, gas_price: int) -> int:
        """Return what `gas` costs at `gas_price` wei each, in base units of the market's asset, rounded up."""
        return formulas.ceil_div(gas * gas_price * self.coin_price, COIN)

    def worth_of(self, reward: int, gas: int) -> int:
        """Return the most wei per gas at which `is_worth` holds for a reward."""
        return (reward + self.max_loss) * COIN // max(1, gas * self.coin_price)

    def is_worth(self, reward: int, gas: int, gas_price: int) -> bool:
        """Say whether a reward covers its gas, less the loss that the configuration allows."""
        return reward - self.cost_of(gas, gas_price) >= -self.max_loss
