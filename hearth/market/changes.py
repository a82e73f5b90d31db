"""What a market's Steward knows of a change: an operation, its word and a salt, and what the state of one says.

Source: protocol.md "Governance", contracts/Steward.vy.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final, assert_never

from hearth.protocol.units import Asset, show_amount

LIFE: Final = 14 * 86_400
"""Seconds from its due time in which a change can be executed."""
DROPPED: Final = 1
EXECUTED: Final = 2
"""What the Steward holds of a change that is over; a due time is larger."""
POLICY_GRACE: Final = 86_400
"""Seconds in which a replaced policy is taken still, and no other is set (Rules)."""
PAUSE_TIME: Final = 7 * 86_400
PAUSE_EVERY: Final = 30 * 86_400
"""Seconds that a pause lasts, and from its beginning to the next one's (Rules, NodeRegistry)."""
GOVERNED: Final = {"posts": "Rules", "registrations": "NodeRegistry"}
"""The contracts that have a governor, by what he governs there."""


def pausable_from(paused_until: int) -> int:
    """Return the second from which what was last paused until then can be paused again; 0 where it never was."""
    return paused_until and paused_until - PAUSE_TIME + PAUSE_EVERY


class ChangeOp(IntEnum):
    """What a change does with its word."""

    SET_POLICY = 1
    SET_MINIMUM_STAKE = 2
    OFFER_POSTS = 3
    OFFER_REGISTRATIONS = 4
    OFFER_COUNCIL = 5
    SEAT_GUARDIAN = 6

    @property
    def names_an_address(self) -> bool:
        """Say whether the word is an address."""
        return self > ChangeOp.SET_MINIMUM_STAKE

    @property
    def offers(self) -> str | None:
        """Return over what it offers a governor's rights, a key of GOVERNED; None where it offers none."""
        return {ChangeOp.OFFER_POSTS: "posts", ChangeOp.OFFER_REGISTRATIONS: "registrations"}.get(self)


@dataclass(frozen=True, slots=True)
class Change:
    """One change: `word` is the policy, the stake in base units, or the address; another `salt` makes another one."""

    op: ChangeOp
    word: int
    salt: int

    def __post_init__(self) -> None:
        """Refuse what no Steward would queue. Raises ValueError."""
        if not (0 <= self.word < 1 << 256 and 0 <= self.salt < 1 << 256):
            raise ValueError("a word or a salt has more than 256 bits")
        if self.op.names_an_address and self.word >> 160:
            raise ValueError(f"{self.word:#x} is no address")

    @property
    def id(self) -> bytes:
        """Return what the Steward knows it by."""
        from eth_utils.crypto import keccak

        return bytes(keccak(b"".join(int(part).to_bytes(32, "big") for part in (self.op, self.word, self.salt))))

    def in_words(self, asset: Asset) -> str:
        """Return what it does, in one line that needs nothing else; amounts are of the market's asset."""
        address = self.address if self.word else "nobody"
        match self.op:
            case ChangeOp.SET_POLICY:
                return f"policy {self.word:#066x} for new jobs"
            case ChangeOp.SET_MINIMUM_STAKE:
                return f"new nodes stake at least {show_amount(self.word, asset)}"
            case ChangeOp.OFFER_POSTS | ChangeOp.OFFER_REGISTRATIONS:
                return f"the governor's rights over {self.op.offers} are offered to {address}"
            case ChangeOp.OFFER_COUNCIL:
                return f"the council's seat is offered to {address}"
            case ChangeOp.SEAT_GUARDIAN:
                return f"{address} is the guardian"
        assert_never(self.op)

    @property
    def address(self) -> str:
        """Return the address that the word is."""
        return f"0x{self.word:040x}"
