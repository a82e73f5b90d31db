"""The files of attested jobs: a set of attesters, and what one of them signed. Strangers write both."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hearth.base.errors import SpecError, UsageError
from hearth.base.files import expand, read_bounded
from hearth.base.untrusted_json import read_json
from hearth.client.money import address_of
from hearth.protocol.attest import MAX_KEYS, AttesterSet

if TYPE_CHECKING:
    from hearth.client.reports import Attestation, AttestedResult
    from hearth.protocol.attest import Result

MAX_SET_BYTES: Final = 1 << 14
MAX_ATTESTATION_BYTES: Final = 1 << 24
"""Enough for every unit of a job of 50,000."""
MAX_UNIT: Final = 1 << 24
SET_HINT: Final = 'write {keys: ["0x...", "0x..."], quorum: 2}; docs/JOB.md'
_HASH = re.compile("0x[0-9a-f]{64}")
_ADDRESS = re.compile("0x[0-9a-f]{40}")
_SIGNATURE = re.compile("0x[0-9a-f]{130}")


@dataclass(frozen=True, slots=True)
class Signed:
    """One attester's signatures as a file holds them: who it says that it is, and (v, r, s) of each unit."""

    name: str
    signer: str
    rows: dict[int, AttestedResult]

    def vrs(self, index: int) -> tuple[int, int, int]:
        """Return the signature of a unit that the file has."""
        raw = bytes.fromhex(self.rows[index]["signature"][2:])
        return raw[64], int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:64], "big")


def load_set(path: Path) -> AttesterSet:
    """Read a set of attesters, YAML or JSON: `keys`, 1 to 16 addresses in any order, and `quorum`.

    Raises SpecError NO_ATTESTERS where the file cannot be read, BAD_ATTESTERS for what is no set.
    """
    from hearth.jobfile.text import read_text

    raw = _read(path, MAX_SET_BYTES)
    if raw is None:
        raise SpecError(
            f"{path} names the attesters, and no set of it is read",
            hint="correct the path; a job file's paths count from its folder",
            code="NO_ATTESTERS",
            file=str(path),
        )
    try:
        if len(raw) > MAX_SET_BYTES:
            raise SpecError(f"{path} has more than {MAX_SET_BYTES} bytes", hint=SET_HINT)
        data = read_text(raw, str(path))[0] if raw.strip() else None
    except SpecError as error:
        raise SpecError(error.message, hint=error.hint or SET_HINT, code="BAD_ATTESTERS", file=str(path)) from error
    try:
        return _set_of(data)
    except (ValueError, UsageError) as error:
        why = error.message if isinstance(error, UsageError) else str(error)
        raise SpecError(f"{path}: {why}", hint=SET_HINT, code="BAD_ATTESTERS", file=str(path)) from error


def set_beside(folder: Path, name: str) -> AttesterSet:
    """Read the set that a job file in a folder names. Raises SpecError with the field that names it."""
    try:
        return load_set(folder / expand(Path(name)))
    except ValueError as error:
        raise SpecError(
            f"verify.attesters: {name}: {error}",
            hint="write its path out, from /",
            code="NO_ATTESTERS",
            field="verify.attesters",
        ) from error
    except SpecError as error:
        raise SpecError(
            f"verify.attesters: {error.message}", hint=error.hint, code=error.code, field="verify.attesters"
        ) from error


def _set_of(data: Any) -> AttesterSet:
    if not isinstance(data, dict) or set(data) != {"keys", "quorum"}:
        raise ValueError("a set of attesters holds keys and quorum, and nothing else")
    keys, quorum = data["keys"], data["quorum"]
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
        raise ValueError("keys is no list of addresses in quotes")
    if isinstance(quorum, bool) or not isinstance(quorum, int):
        raise ValueError("quorum is no whole number")
    if len(keys) > MAX_KEYS:
        raise ValueError(f"{len(keys)} keys: a set has 1 to {MAX_KEYS}")
    return AttesterSet(tuple(sorted(address_of(key) for key in keys)), quorum)


def row_of(result: Result, vrs: tuple[int, int, int]) -> AttestedResult:
    """Return what a signature says of a unit, with the signature: r, s and v, 65 bytes."""
    v, r, s = vrs
    return {
        "unit": result.index,
        "spec": result.spec.hex(),
        "result": result.result.hex(),
        "outcome": result.outcome.name.lower(),
        "fuel_seconds": result.fuel_seconds,
        "signature": f"0x{r:064x}{s:064x}{v:02x}",
    }


def load_attestation(path: Path, job: str) -> Signed:
    """Read a file of `hearth job attest` for a job. Raises UsageError BAD_ATTESTATION for anything else."""
    raw = _read(path, MAX_ATTESTATION_BYTES)
    if raw is None:
        raise _bad(path, "cannot be read")
    try:
        data = read_json(raw, max_bytes=MAX_ATTESTATION_BYTES)
    except ValueError as error:
        raise _bad(path, f"is no attestation: {error}") from error
    why = _fault(data)
    if why:
        raise _bad(path, f"is no attestation: {why}")
    document: Attestation = data
    if document["job"] != job:
        raise _bad(path, f"attests job {document['job'][:14]}, not {job[:14]}")
    return Signed(str(path), document["signer"], {row["unit"]: row for row in document["results"]})


def _fault(data: Any) -> str:
    """Return what is wrong with a document that claims to be an attestation, "" for nothing."""
    if not isinstance(data, dict) or data.get("schema") != "hearth.attestation/1":
        return "its schema is not hearth.attestation/1"
    if not _is(_HASH, data.get("job")) or not _is(_ADDRESS, data.get("signer")):
        return "job or signer is missing or malformed"
    rows = data.get("results")
    if not isinstance(rows, list) or not rows:
        return "results is no list, or empty"
    seen: set[int] = set()
    for row in rows:
        unit = row.get("unit") if isinstance(row, dict) else None
        if isinstance(unit, bool) or not isinstance(unit, int) or not 0 <= unit < MAX_UNIT or unit in seen:
            return "a result names no unit, or one twice"
        if not _is(_SIGNATURE, row.get("signature")):
            return f"unit {unit} has no signature of 65 bytes"
        seen.add(unit)
    return ""


def _is(pattern: re.Pattern[str], value: object) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None


def _read(path: Path, limit: int) -> bytes | None:
    """Return a file's bytes, one more than the limit at most; None where it cannot be read."""
    try:
        return read_bounded(path, limit)
    except (OSError, ValueError):
        return None


def _bad(path: Path, why: str) -> UsageError:
    return UsageError(
        f"{path} {why}", hint="hearth job attest JOB --out FILE writes one", code="BAD_ATTESTATION", file=str(path)
    )
