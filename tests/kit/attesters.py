"""A market whose jobs are judged by attesters, for the tests of contracts/Attesters.vy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from eth_account import Account
from eth_account.signers.local import LocalAccount

from hearth.chain import typed_data
from hearth.protocol import words
from hearth.protocol.attest import AttesterSet, Result, Signature
from hearth.protocol.attest import typed_data as document_of
from hearth.protocol.types import NodeId, Terms, TermsFlag
from tests.kit.evm import Contract, Receipt
from tests.kit.world import ZERO, World


def account(number: int) -> LocalAccount:
    """Return the attester of a number, always the same one."""
    return Account.from_key(bytes([7] * 31 + [number]))


def address(who: LocalAccount) -> str:
    """Return an attester's address as sets have it."""
    return str(who.address).lower()


class Attested:
    """One World with its Attesters; jobs name `members`, of whom `quorum` must sign."""

    def __init__(self, world: World, members: int = 3, quorum: int = 2) -> None:
        self.world = world
        self.contract: Contract = world.evm.deploy("Attesters", world.jobs)
        self.members = sorted((account(number) for number in range(1, members + 1)), key=address)
        self.set = AttesterSet(tuple(map(address, self.members)), quorum)

    def terms(self, **overrides: Any) -> Terms:
        """Build terms that name this judge and this set."""
        return self.world.terms(**{**self.named(), **overrides})

    def named(self) -> dict[str, Any]:
        """Return the fields of terms that name this judge and this set."""
        return {
            "judge": self.contract.address.lower(),
            "judge_data": self.set.judge_data,
            "challenge_window": self.world.policy.min_challenge_window,
            "flags": TermsFlag.NEWCOMERS | TermsFlag.PROVEN,
        }

    def submitted(self, *, index: int = 0, used: int | None = None, **overrides: Any) -> tuple[Terms, NodeId]:
        """Post a job and have its unit `index`, and those before it, submitted by a node of its own."""
        terms = self.world.post(self.terms(**overrides))
        node = self.world.register()
        for at in range(index + 1):
            self.world.claim(terms, node, at)
            self.world.evm.warp(5)
            self.world.submit(terms, at, used=used)
        return terms, node

    def result(self, terms: Terms, index: int = 0, **changes: Any) -> Result:
        """Return what is to be signed of a unit as it stands, with changes."""
        _, word, second, _ = self.world.load(terms, index)
        found = Result.of(self.world.id_of(terms), index, terms.spec, words.unpack_unit(word), second)
        return replace(found, **changes)

    def document(self, result: Result, *, chain_id: int | None = None, contract: str | None = None) -> dict[str, Any]:
        """Return the document that attesters sign."""
        chain = self.world.evm.chain_id if chain_id is None else chain_id
        return document_of(chain, contract or self.contract.address, result)

    def sign(self, document: dict[str, Any], members: Iterable[int] = (0, 1)) -> list[Signature]:
        """Return the signatures of a document by some members, by their places."""
        return [Signature(place, *typed_data.sign(self.members[place], document)) for place in members]

    def signed(self, terms: Terms, index: int = 0, members: Iterable[int] = (0, 1), **changes: Any) -> list[Signature]:
        """Return some members' signatures of a unit as it stands, with changes."""
        return self.sign(self.document(self.result(terms, index, **changes)), members)

    def confirm(
        self,
        terms: Terms,
        signatures: Sequence[Signature],
        index: int = 0,
        *,
        keys: Sequence[str] | None = None,
        quorum: int | None = None,
        payee: str = ZERO,
        sender: str | None = None,
    ) -> Receipt:
        """Bring signatures to the contract, as the keeper."""
        return self.contract.send.confirm(
            words.pack_terms(terms),
            index,
            list(self.set.keys if keys is None else keys),
            self.set.quorum if quorum is None else quorum,
            [tuple(one) for one in signatures],
            payee,
            sender=sender or self.world.keeper,
        )
