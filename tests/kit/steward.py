"""A market that a Steward governs, for the tests of contracts/Steward.vy."""

from __future__ import annotations

from dataclasses import replace
from enum import IntEnum
from typing import Any

from hearth.base.abi import encode
from hearth.protocol import words
from tests.kit.evm import Contract, Receipt
from tests.kit.world import DAY, POLICY, World

DELAY = 2 * DAY
LIFE = 14 * DAY
NEW_POLICY = words.pack_policy(replace(POLICY, fee_bps=POLICY.fee_bps - 1))
NONE = "0x" + "00" * 20


class Op(IntEnum):
    """What a change does with its word."""

    POLICY = 1
    STAKE = 2
    POSTS = 3
    REGISTRATIONS = 4
    COUNCIL = 5
    GUARDIAN = 6


class Stewarded:
    """One World whose governor is a Steward, taken over in two steps as a later one takes a market over."""

    def __init__(self, world: World, delay: int = DELAY) -> None:
        self.world = world
        self.council, self.guardian = world.evm.account("council"), world.evm.account("guardian")
        seats = (self.council, self.guardian)
        self.contract: Contract = world.evm.deploy("Steward", world.nodes, world.rules, *seats, delay)
        for registry in (world.nodes, world.rules):
            registry.send.offer_governor(self.contract)
        self.contract.send.accept_governor(True, True, sender=world.stranger)

    def queue(self, op: int, word: int, salt: int = 0, *, sender: str | None = None) -> bytes:
        """Queue a change as the council; return its id."""
        self.contract.send.queue(op, word, salt, sender=sender or self.council)
        return self.id_of(op, word, salt)

    def execute(self, op: int, word: int, salt: int = 0, *, sender: str | None = None) -> Receipt:
        """Execute a change as a stranger."""
        return self.contract.send.execute(op, word, salt, sender=sender or self.world.stranger)

    def change(self, op: int, word: int, salt: int = 0) -> Receipt:
        """Queue a change, wait for it, execute it."""
        self.queue(op, word, salt)
        self.world.evm.warp(DELAY)
        return self.execute(op, word, salt)

    def state(self, change: bytes) -> int:
        """Return what the Steward holds of a change."""
        found: int = self.contract.call.changes(change)
        return found

    def id_of(self, op: int, word: int, salt: int = 0) -> bytes:
        """Return a change's id."""
        from eth_utils.crypto import keccak

        return keccak(encode(["uint256", "uint256", "uint256"], [op, word, salt]))

    def word(self, op: int) -> int:
        """Return a word that a change of this kind may carry now."""
        words_: dict[int, Any] = {Op.POLICY: NEW_POLICY, Op.STAKE: 2 * 10**18}
        return int(words_.get(op, int(self.world.keeper, 16)))
