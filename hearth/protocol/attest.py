"""What attesters sign, and the set of keys that a job commits to: pure. Mirrors contracts/Attesters.vy.

The signing itself is EIP-712, done by whatever holds the key; `typed_data` is the document that it is given.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from eth_utils.crypto import keccak

from hearth.base.abi import encode
from hearth.protocol import words
from hearth.protocol.types import ZERO_ADDRESS, JobId, Outcome, Unit

NAME: Final = "Hearth Attesters"
VERSION: Final = "1"
MAX_KEYS: Final = 16


class Signature(NamedTuple):
    """One attester's signature and the place of its key in the set: the struct `IAttesters.Signature`."""

    place: int
    v: int
    r: int
    s: int


@dataclass(frozen=True, slots=True)
class AttesterSet:
    """1 to 16 distinct addresses in lower case, ascending, and how many of them must sign. Raises ValueError."""

    keys: tuple[str, ...]
    quorum: int

    def __post_init__(self) -> None:
        """Refuse what could never confirm, or would confirm with fewer people than it says."""
        if not 1 <= len(self.keys) <= MAX_KEYS:
            raise ValueError(f"{len(self.keys)} keys: a set has 1 to {MAX_KEYS}")
        if ZERO_ADDRESS in self.keys:
            raise ValueError("the zero address signs nothing")
        if len(set(self.keys)) != len(self.keys):
            raise ValueError("a key stands twice, and counts once")
        if list(self.keys) != sorted(self.keys):
            raise ValueError("the keys are not in ascending order")
        if not 1 <= self.quorum <= len(self.keys):
            raise ValueError(f"quorum {self.quorum} of {len(self.keys)} keys: 1 to {len(self.keys)} can be asked for")

    @property
    def judge_data(self) -> int:
        """Return the word of the terms that commits to the set: keccak256(abi_encode(keys, quorum))."""
        return int.from_bytes(keccak(encode(["address[]", "uint256"], [self.keys, self.quorum])), "big")

    def place(self, signatures: Iterable[tuple[str, tuple[int, int, int]]]) -> list[Signature]:
        """Return signatures (v, r, s) by their signers as the contract takes them; strangers' and second ones fall out.

        There may be fewer than the quorum.
        """
        found = {self.keys.index(key): vrs for key, vrs in signatures if key in self.keys}
        return [Signature(place, *found[place]) for place in sorted(found)]


@dataclass(frozen=True, slots=True)
class Result:
    """What is signed of a submitted unit: whatever decides whether, and how much, its node is paid."""

    job: JobId
    index: int
    spec: bytes
    result: bytes
    outcome: Outcome
    fuel_seconds: int

    @classmethod
    def of(cls, job: JobId, index: int, spec: bytes, unit: Unit, second: int) -> Result:
        """Return the result of a unit as it stands; `second` is its auxiliary slot."""
        return cls(job, index, spec, second.to_bytes(32, "big"), unit.outcome, unit.seconds)

    @property
    def fields(self) -> int:
        """Return the outcome and the fuel seconds as one word."""
        return words.pack(words.FIELDS, {"outcome": int(self.outcome), "seconds": self.fuel_seconds})


def typed_data(chain_id: int, contract: str, result: Result) -> dict[str, Any]:
    """Return the EIP-712 document that an attester signs, `contract` being the chain's Attesters."""
    return {
        "types": {
            "EIP712Domain": [
                {"name": "name", "type": "string"},
                {"name": "version", "type": "string"},
                {"name": "chainId", "type": "uint256"},
                {"name": "verifyingContract", "type": "address"},
            ],
            "Result": [
                {"name": "job", "type": "bytes32"},
                {"name": "index", "type": "uint256"},
                {"name": "spec", "type": "bytes32"},
                {"name": "result", "type": "bytes32"},
                {"name": "fields", "type": "uint256"},
            ],
        },
        "primaryType": "Result",
        "domain": {"name": NAME, "version": VERSION, "chainId": chain_id, "verifyingContract": contract},
        "message": {
            "job": bytes(result.job),
            "index": result.index,
            "spec": result.spec,
            "result": result.result,
            "fields": result.fields,
        },
    }
