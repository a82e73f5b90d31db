"""Job ids: twenty vectors, written out by hand-made arithmetic that shares nothing with hearth.protocol.words or
protocol.

`python -m tests.contracts.test_ids` writes tests/data/job_ids.json again. Integers stand there as decimal strings,
words and addresses in hexadecimal, so that no reader loses digits.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from eth_abi import encode
from eth_hash.auto import keccak

from hearth.protocol import formulas, words
from hearth.protocol.types import Billing, Needs, Runtime, Terms, TermsFlag
from tests.kit.evm import CHAIN_ID
from tests.kit.world import World

DATA = Path(__file__).parent.parent / "data" / "job_ids.json"
COUNT = 20
# Field -> bits, in the order of protocol.md "Terms".
FIELDS = {
    "submitter": 160,
    "salt": 96,
    "spec": 256,
    "runtimes": 12,
    "tier": 10,
    "gpu_count": 6,
    "vram_gib": 10,
    "cores": 10,
    "ram_gib": 14,
    "disk_gib": 17,
    "zone_mask": 16,
    "home": 4,
    "exact": 1,
    "ceiling": 80,
    "keeper_fee": 80,
    "max_seconds": 24,
    "deadline": 40,
    "units": 24,
    "chunk": 16,
    "replicas": 4,
    "quorum": 4,
    "match_window": 12,
    "challenge_window": 24,
    "checkpoint_every": 24,
    "max_attempts": 4,
    "billing": 4,
    "flags": 8,
    "bond_bps": 24,
    "judge_data": 256,
    "judge": 160,
    "policy": 256,
    "parents_hash": 256,
}
HASHES = ("spec", "parents_hash")
ADDRESSES = ("submitter", "judge")
NEEDS_FIELDS = (
    *("runtimes", "tier", "gpu_count", "vram_gib", "cores", "ram_gib", "disk_gib", "zone_mask", "home", "exact"),
)


def _fields(number: int) -> dict[str, int]:
    """Choose the fields of one vector: all zero, all ones, one field alone at a time, else pseudo-random."""

    def drawn(name: str, bits: int) -> int:
        digest = hashlib.sha256(f"hearth job id vector {number} {name}".encode()).digest()
        return int.from_bytes(digest, "big") % (1 << bits)

    if number == 0:
        fields = dict.fromkeys(FIELDS, 0)
    elif number == 1:
        fields = {name: (1 << bits) - 1 for name, bits in FIELDS.items()}
    else:
        fields = {name: drawn(name, bits) for name, bits in FIELDS.items()}
    return {**fields, "billing": fields["billing"] % 3, "flags": fields["flags"] % 16}


def _words(f: dict[str, int]) -> list[int]:
    """Pack the fields by shifts that stand here and nowhere else."""
    needs = (
        f["tier"]
        + (f["gpu_count"] << 11)
        + (f["vram_gib"] << 18)
        + (f["cores"] << 29)
        + (f["ram_gib"] << 40)
        + (f["disk_gib"] << 55)
        + (f["runtimes"] << 73)
        + (f["zone_mask"] << 85)
        + (f["home"] << 101)
        + (f["exact"] << 105)
    )
    limits = (
        f["max_seconds"]
        + (f["deadline"] << 24)
        + (f["units"] << 64)
        + (f["chunk"] << 88)
        + (f["replicas"] << 104)
        + (f["quorum"] << 108)
        + (f["match_window"] << 112)
        + (f["challenge_window"] << 124)
        + (f["checkpoint_every"] << 148)
        + (f["max_attempts"] << 172)
        + (f["billing"] << 176)
        + (f["flags"] << 180)
        + (f["bond_bps"] << 188)
    )
    return [
        f["submitter"] + (f["salt"] << 160),
        f["spec"],
        needs,
        f["ceiling"] + (f["keeper_fee"] << 80),
        limits,
        f["judge_data"],
        f["judge"],
        f["policy"],
        f["parents_hash"],
    ]


def _id(chain_id: int, registry: str, packed: list[int]) -> bytes:
    """Hash the ABI encoding of (chain id, registry, struct of nine words)."""
    struct = [word.to_bytes(32, "big") if at in (1, 8) else word for at, word in enumerate(packed)]
    kinds = "(uint256,bytes32,uint256,uint256,uint256,uint256,uint256,uint256,bytes32)"
    return keccak(encode(["uint256", "address", kinds], [chain_id, registry, tuple(struct)]))


def _vector(number: int) -> dict[str, Any]:
    fields = _fields(number)
    chain_id = (1, 10, 8453, 31337, 42161, 2**64 - 1)[number % 6]
    registry = "0x" + hashlib.sha256(f"hearth registry {number}".encode()).hexdigest()[:40]
    packed = _words(fields)
    terms = {
        name: f"0x{value:040x}" if name in ADDRESSES else f"0x{value:064x}" if name in HASHES else str(value)
        for name, value in fields.items()
    }
    return {
        "chain_id": str(chain_id),
        "registry": registry,
        "terms": terms,
        "words": [f"0x{word:064x}" for word in packed],
        "job_id": "0x" + _id(chain_id, registry, packed).hex(),
    }


def _render() -> str:
    return json.dumps([_vector(number) for number in range(COUNT)], indent=2) + "\n"


def _terms(fields: dict[str, str]) -> Terms:
    """Read a vector's terms as the library's type."""
    numbers = {name: int(text, 16 if text.startswith("0x") else 10) for name, text in fields.items()}
    needs = {name: numbers.pop(name) for name in NEEDS_FIELDS}
    named: dict[str, Any] = {
        **numbers,
        **{name: fields[name] for name in ADDRESSES},
        **{name: bytes.fromhex(fields[name][2:]) for name in HASHES},
        "needs": Needs(**{**needs, "runtimes": Runtime(needs["runtimes"]), "exact": bool(needs["exact"])}),  # type: ignore[arg-type]
        "billing": Billing(numbers["billing"]),
        "flags": TermsFlag(numbers["flags"]),
    }
    return Terms(**named)


VECTORS: list[dict[str, Any]] = json.loads(DATA.read_text(encoding="utf-8")) if DATA.is_file() else []


def test_vectors__file__is_what_the_generator_writes() -> None:
    assert DATA.read_text(encoding="utf-8") == _render()
    assert len(VECTORS) == COUNT
    assert len({vector["job_id"] for vector in VECTORS}) == COUNT


@pytest.mark.parametrize("number", range(COUNT))
def test_job_id__vector__is_the_librarys(number: int) -> None:
    vector = VECTORS[number]
    terms = _terms(vector["terms"])
    packed = words.pack_terms(terms)
    flat = [int.from_bytes(word, "big") if isinstance(word, bytes) else word for word in packed]
    assert [f"0x{word:064x}" for word in flat] == vector["words"]
    assert words.unpack_terms(packed) == terms
    chain_id, registry = int(vector["chain_id"]), vector["registry"]
    assert "0x" + formulas.job_id(chain_id, registry, terms).hex() == vector["job_id"]
    assert "0x" + formulas.job_id_of_words(chain_id, registry, packed).hex() == vector["job_id"]


@pytest.mark.parametrize("number", range(COUNT))
def test_job_id__vector__is_the_hash_of_eleven_words(number: int) -> None:
    vector = VECTORS[number]
    head = int(vector["chain_id"]).to_bytes(32, "big") + bytes(12) + bytes.fromhex(vector["registry"][2:])
    body = b"".join(bytes.fromhex(word[2:]) for word in vector["words"])
    assert "0x" + keccak(head + body).hex() == vector["job_id"]


def test_job_id_of__vectors__is_the_contracts(world: World) -> None:
    for vector in VECTORS:
        packed = [int(word, 16) for word in vector["words"]]
        found = world.jobs.call.job_id_of(words.pack_terms(_terms(vector["terms"])))
        assert found == _id(CHAIN_ID, world.jobs.address, packed)
        assert found == formulas.job_id(CHAIN_ID, world.jobs.address, _terms(vector["terms"]))


def test_job_id__any_one_bit__changes_it() -> None:
    packed = _words(_fields(7))
    registry = VECTORS[7]["registry"]
    ids = {_id(1, registry, packed), _id(2, registry, packed), _id(1, VECTORS[8]["registry"], packed)}
    for at in range(9):
        for bit in (0, 127, 255):
            changed = list(packed)
            changed[at] ^= 1 << bit
            ids.add(_id(1, registry, changed))
    assert len(ids) == 3 + 27


if __name__ == "__main__":
    DATA.write_text(_render(), encoding="utf-8")
